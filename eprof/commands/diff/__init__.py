"""`eprof diff`: its line and its place in `eprof --help`."""

SUMMARY = "two variants: what changed in energy, time and counts, and why"
PLACE = 3  # in `eprof --help`
