"""`eprof counters`."""

SUMMARY = "list, show and check counter definitions"
PLACE = 14  # in `eprof --help`
