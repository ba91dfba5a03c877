"""`eprof demo`."""
