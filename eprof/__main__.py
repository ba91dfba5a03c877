"""`python -m eprof`."""

from eprof.cli import main

# A guard: processes that read logs import this module again.
if __name__ == "__main__":
    main()
