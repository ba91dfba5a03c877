"""`eprof completion`."""

SUMMARY = "completion for bash, zsh and fish"
PLACE = 17  # in `eprof --help`
