"""`eprof run`."""

SUMMARY = "profile a program: counters, time, energy; with a GPU or on a simulated one"
PLACE = 1  # in `eprof --help`
