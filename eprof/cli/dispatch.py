"""`main`: reads the command line, runs one command, and exits; the parser of `eprof`.

Only the standard library is imported here; each command imports its rooms when it runs: `eprof --help` is quick.
"""

import argparse
import errno
import itertools
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from eprof import __version__
from eprof import commands as folders
from eprof.base.errors import EprofError, UsageError, shortage
from eprof.base.text import did_you_mean, when
from eprof.cli.options import Actions, Parser, fill_from_config, find_config, options_of, split
from eprof.cli.output import say
from eprof.cli.signals_and_streams import end_by_signals, end_now, ended_by, give_up_output, open_closed_streams

_Parsers = dict[str, Parser]
_NOT_WRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF)


def names() -> list[str]:
    """The commands, in any order: folders of `eprof/commands/` with a `command.py`."""
    return [file.parent.name for file in Path(folders.__path__[0]).glob("*/command.py")]


def module(name: str) -> ModuleType:
    """The module of a command: its function `add` makes the parser, and the one of the command's name runs the command.

    Imported by name: to import all of them takes a tenth of a small report's time. Raises UsageError: no such command.
    """
    if name not in names():
        raise UsageError(f"there is no command `{name}` in this eprof.")
    return import_module(f"{folders.__name__}.{name}.command")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 1 bad input, 2 wrong usage, 130 interrupted. Our bugs keep their traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    if not sys.warnoptions:
        # What is to be said of numbers, eprof says; processes that read logs inherit this.
        sys.warnoptions.append("ignore")
        warnings.simplefilter("ignore")
    try:
        end_by_signals()
        code = _run(words)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as err:
        if isinstance(err, KeyboardInterrupt):
            end_now()
        code = _failed(err)
    sys.exit(code)


def _failed(err: Exception | KeyboardInterrupt) -> int:
    """Print a sentence on the error that ended a command; returns the exit code. Raises `err` if it is eprof's bug."""
    match err:
        case EprofError():
            say(str(err))
            return err.exit_code
        case BrokenPipeError():
            # The reader of our output went away (`eprof report ... | head`): nothing is left to say. 128 + SIGPIPE.
            give_up_output()
            return 141
        case KeyboardInterrupt():
            number = ended_by(err)
            interrupted = number == signal.SIGINT
            say("interrupted; nothing was written." if interrupted else f"ended by {number.name}.")
            return 128 + number
        case OSError(filename=None, errno=number) if number in _NOT_WRITTEN:
            give_up_output()
            say(f"standard output cannot be written ({err.strerror}); make room, or name a file with -o.")
            return 1
    reason = shortage(err)
    if reason is None and isinstance(err, OSError) and err.filename is not None:
        reason = f"{os.fsdecode(err.filename)}: {err.strerror}"
    elif reason is None and isinstance(err, FileNotFoundError):
        reason = "the working directory does not exist any more; change into another one"
    if reason is None:
        raise err
    say(f"{reason}.")
    return 1


def _run(words: list[str]) -> int:
    """Parse the words of a command line and run its command; returns the exit code."""
    parser, commands = _parser(next(iter(words), ""))
    ours = words
    program: list[str] = []
    if words and words[0] in commands and commands[words[0]].runs_program:
        ours, program = split(words, commands[words[0]])
    _refuse_unknown(parser, commands, ours)
    options = parser.parse_args(ours)
    options.parser = commands[options.command]
    options.parsers = _parser
    options.start = _run
    options.command_line = ["eprof", *words]
    found = find_config() if options.config is None else None
    if found is not None or options.config:
        _configure(options, ours, found)
    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    options.program = program
    if not options.parser.runs_program:
        # Its threads wait for work by spinning, and a report has no products of matrices that are worth them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code: int = getattr(module(options.command), options.command)(options)
    return code


class _Parser(Parser):
    """A parser whose errors are a sentence or two, as all errors are."""

    def error(self, message: str) -> NoReturn:
        end = when(not message.endswith((".", "?")), ".")
        say(f"{message}{end} `{self.prog} --help` has more.")
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, and say which one is like it."""
        if action.choices is not None and value not in action.choices:
            choices = ", ".join(map(str, action.choices))
            meant = did_you_mean(value, action.choices)
            raise argparse.ArgumentError(action, f"`{value}` is none of {choices}.{meant}")


def _refuse_unknown(parser: Parser, commands: _Parsers, words: list[str]) -> None:
    """Exit with code 2 and a likelier name, if the words of the command line name an unknown command or option."""
    if not words or words[0].startswith("-"):
        return
    name = words[0]
    if name not in commands:
        hint = f" To report on a log: eprof report {name}." if Path(name).exists() else did_you_mean(name, commands)
        parser.error(f"there is no command `{name}`.{hint}")
    known = commands[name]._option_string_actions
    for word in itertools.takewhile(lambda word: word != "--", words[1:]):
        option = word.partition("=")[0]
        if option.startswith("--") and option not in known:
            commands[name].error(f"there is no option `{option}`.{did_you_mean(option, known)}")


def _configure(options: argparse.Namespace, words: list[str], found: Path | None) -> None:
    """Fill options that the command line leaves out from the configuration file: the one `found`, else `--config`'s."""
    _, parsers = _parser()
    known: Actions = {}
    for parser in parsers.values():
        known |= options_of(parser)
    parser, bare = _parser(options.command)
    for option in bare[options.command]._actions:
        option.default = argparse.SUPPRESS
    given = vars(parser.parse_args(words))
    fill_from_config(options, given, options_of(parsers[options.command]), known, found)
    if found is not None and options.configured:
        # What reports keep of the command says where its options come from, as if they had been asked for.
        options.command_line[2:2] = ["--config", str(found)]
        say(f"{', '.join(sorted(options.configured))} from {found} (--config '' does without).")


def _parser(only: str | None = None) -> tuple[Parser, _Parsers]:
    """The parser of `eprof`, and each command's parser by its name.

    only: the one command to load; for a word that is none, parsers without options; None: all, as slow as a short run.
    """
    parser = _Parser(
        prog="eprof",
        description="Where do this kernel's joules go, and what can I change?",
        epilog="Example: eprof report metrics.csv trace.csv --costs jetson-tk1 -o report.html",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"eprof {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    known = names()
    if only in known:
        parsers = {only: module(only).add(commands)}
    else:
        about = {name: import_module(f"{folders.__name__}.{name}") for name in known}
        known.sort(key=lambda name: about[name].PLACE)
        if only is None:
            parsers = {name: module(name).add(commands) for name in known}
        else:
            parsers = {name: commands.add_parser(name, help=about[name].SUMMARY) for name in known}
    for command in parsers.values():
        common = command.group("options of every command")
        common.flag("--quiet", "print no summary, only errors", short="-q")
        common.flag("--verbose", "print every note about the input, and all kernels", short="-v")
        common.flag("--no-color", "no colours (also NO_COLOR; FORCE_COLOR forces them)")
        common.value(
            "--config",
            "FILE",
            'TOML file with values for options not given, e.g. costs = "gtx680" (default: eprof.toml, or [tool.eprof] '
            "of pyproject.toml, of this folder or one above)",
        )
    return parser, parsers
