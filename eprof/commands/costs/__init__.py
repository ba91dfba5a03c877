"""`eprof costs`."""
