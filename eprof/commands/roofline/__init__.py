"""`eprof roofline`."""

SUMMARY = "roofline, arch line and power line of cost tables, kernels below them"
PLACE = 4  # in `eprof --help`
