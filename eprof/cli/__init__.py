"""The command line: a module a command. `main` is what the command `eprof` starts."""

from eprof.cli.dispatch import main

__all__ = ["main"]
