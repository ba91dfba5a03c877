"""`eprof comm`."""

SUMMARY = "what waiting for messages costs; when blocking pays"
PLACE = 10  # in `eprof --help`
