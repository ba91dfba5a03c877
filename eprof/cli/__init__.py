"""The command line: a module a command. `main` is what the command `eprof` starts, `end_at_once` its end."""

from eprof.cli.dispatch import main
from eprof.cli.signals_and_streams import end_at_once

__all__ = ["end_at_once", "main"]
