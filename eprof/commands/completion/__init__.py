"""`eprof completion`."""

SUMMARY = "completion for bash, zsh and fish, and the man page"
PLACE = 17  # in `eprof --help`
