"""`eprof timeline`."""

SUMMARY = "power over time: joules by component and function"
PLACE = 11  # in `eprof --help`
