"""`eprof calibrate`."""

SUMMARY = "a cost table for this GPU or processor: microbenchmarks, then a fit"
PLACE = 12  # in `eprof --help`
