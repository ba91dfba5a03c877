"""`eprof doctor`."""

SUMMARY = "what this machine can do, and how to mend what is missing"
PLACE = 16  # in `eprof --help`
