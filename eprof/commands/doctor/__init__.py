"""`eprof doctor`."""
