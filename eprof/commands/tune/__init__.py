"""`eprof tune`."""

SUMMARY = "which DVFS setting uses least energy, against race to halt"
PLACE = 7  # in `eprof --help`
