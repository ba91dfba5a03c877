"""`eprof history`."""

SUMMARY = "energy over many runs, and where it changed"
PLACE = 8  # in `eprof --help`
