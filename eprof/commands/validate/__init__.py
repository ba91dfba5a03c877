"""`eprof validate`."""

SUMMARY = "predicted against measured power: errors, cross-validation, plots"
PLACE = 6  # in `eprof --help`
