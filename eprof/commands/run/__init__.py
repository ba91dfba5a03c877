"""`eprof run`."""
