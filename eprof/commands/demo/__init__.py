"""`eprof demo`."""

SUMMARY = "a report and a diff of recorded logs that come with eprof"
PLACE = 15  # in `eprof --help`
