"""The command line: a module a command. `main` is what the command `eprof` starts, `end_at_once` its end."""

from eprof.cli.dispatch import main
from eprof.cli.output import end_at_once

__all__ = ["end_at_once", "main"]
