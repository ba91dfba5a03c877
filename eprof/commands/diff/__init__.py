"""`eprof diff`."""
