"""Fetch, dispatch, semaphores, faults, counters and registers."""
