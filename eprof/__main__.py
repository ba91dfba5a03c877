"""`python -m eprof`."""

from eprof.cli import main

main()
