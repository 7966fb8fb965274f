"""Small blocks that several folders use: queues, arbitration."""
