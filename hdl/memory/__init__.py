"""State buffer (SBUF) and partial-sum buffer (PSUM)."""
