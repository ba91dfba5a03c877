"""`eprof fit`."""
