"""`eprof completion`."""
