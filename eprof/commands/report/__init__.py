"""`eprof report`."""
