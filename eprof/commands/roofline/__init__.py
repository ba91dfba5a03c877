"""`eprof roofline`."""
