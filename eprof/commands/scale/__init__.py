"""`eprof scale`."""

SUMMARY = "how many nodes and which clock; why efficiency falls"
PLACE = 9  # in `eprof --help`
