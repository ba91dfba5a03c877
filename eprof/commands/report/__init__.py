"""`eprof report`."""

SUMMARY = "energy report from saved profiler logs; needs no GPU"
PLACE = 2  # in `eprof --help`
