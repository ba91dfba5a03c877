"""`eprof costs`."""

SUMMARY = "list, show and check cost tables"
PLACE = 13  # in `eprof --help`
