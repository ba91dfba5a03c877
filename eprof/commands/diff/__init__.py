"""`eprof diff`."""

SUMMARY = "two variants: what changed in energy, time and counts, and why"
PLACE = 3  # in `eprof --help`
