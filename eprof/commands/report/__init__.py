"""`eprof report`: its line and its place in `eprof --help`."""

SUMMARY = "energy report from saved profiler logs; needs no GPU"
PLACE = 2  # in `eprof --help`
