"""`eprof fit`."""

SUMMARY = "a cost table from measured counts, time and power"
PLACE = 5  # in `eprof --help`
