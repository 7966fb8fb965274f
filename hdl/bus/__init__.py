"""Bus signatures and arbiters."""
