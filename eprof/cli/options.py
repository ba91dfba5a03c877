"""Options that mean the same in several commands (docs/cli.md); values for those not given, from a `--config FILE`."""

import argparse
import contextlib
import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.base import units
from eprof.base.errors import EprofError, UsageError

if TYPE_CHECKING:
    from eprof.base.toml import Node

SUFFIXES = {".html": "html", ".htm": "html"} | {f".{kind}": kind for kind in ("json", "csv", "parquet", "md", "txt")}
# Of reports. `planned` takes the longest suffix that a name ends in.
_FOR_TOOLS = {".speedscope.json": "speedscope", ".folded": "folded", ".prom": "prom", "trace.json": "trace"}
REPORT_SUFFIXES = SUFFIXES | _FOR_TOOLS
TIMELINE_SUFFIXES = {**SUFFIXES, "trace.json": "trace"}

TABLE = "NAME|FILE"
SETTING = "CORE/MEMORY"
# Names of what an option takes, in its help; `eprof completion` knows values by them.
GPU = "GPU"
DEFINITION = "NAME|CAPABILITY|FILE"
MAPPING = "NAME|FILE|KEY=COLUMN,..."
WRITTEN = "write .html .json .csv .parquet .md or .txt"
ALSO_WRITTEN = "; for other tools .speedscope.json .folded .prom trace.json"
Commands = Any  # argparse does not name the type of its subparsers in public


def command(commands: Commands, name: str, description: str, *examples: str) -> "Parser":
    """Add a command to argparse's subparsers; returns its parser, whose help is the description and the examples."""
    epilog = "\n  ".join(["Examples:", *examples]) if examples else None
    parser: Parser = commands.add_parser(
        name, description=description, epilog=epilog, formatter_class=_Help, allow_abbrev=False
    )
    return parser


class _Help(argparse.HelpFormatter):
    """Forms the help of commands: descriptions in paragraphs, examples as they stand."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("Examples:"):
            return text
        return super()._fill_text(text, width, indent)


class Options(argparse._ActionsContainer):
    """A command, or a group of its options, to which options are added."""

    def flag(self, name: str, help: str, short: str | None = None) -> None:
        """Add an option without a value, False where it is not given."""
        self.add_argument(*filter(None, (short, name)), action="store_true", help=help)

    def value(self, name: str, metavar: str, help: str, short: str | None = None, **more: Any) -> None:
        """Add an option with one value, called `metavar` in the help; `more`: as argparse's `add_argument` has it."""
        self.add_argument(*filter(None, (short, name)), metavar=metavar, help=help, **more)

    def choice(self, name: str, known: Sequence[str], help: str, **more: Any) -> None:
        """Add an option whose value is one of the words `known`."""
        self.add_argument(name, choices=known, help=help, **more)

    def repeatable(self, name: str, metavar: str | None, help: str, short: str | None = None, **more: Any) -> None:
        """Add an option that may be given several times; its value is a list of what was given."""
        self.add_argument(*filter(None, (short, name)), action="append", default=[], metavar=metavar, help=help, **more)

    def mapping(self) -> None:
        """Add `--mapping`, `--only`: what the columns of measurements mean, and which rows to take."""
        self.value("--mapping", MAPPING, "what the columns mean (default: the mapping that suits them)")
        self.repeatable("--only", "COLUMN=CELL", "take the rows that have this cell there (repeatable)")


class Group(Options, argparse._ArgumentGroup):
    """A group of a command's options under a title of their own."""


class Parser(Options, argparse.ArgumentParser):
    """The parser of a command. runs_program: the command line ends in that of a program, see `split`."""

    runs_program = False

    def group(self, title: str) -> Group:
        """Add a group to the command's help, under a title; returns it, so that options are added to it."""
        group = Group(self, title)
        self._action_groups.append(group)
        return group

    def add_inputs(self, help: str, metavar: str = "INPUT", nargs: str = "+") -> None:
        """Add the arguments that name what the command reads."""
        self.add_argument("inputs", nargs=nargs, metavar=metavar, help=help)

    def add_pricing(self, default_costs: str) -> None:
        """Add `--costs`, `--setting`, `--efficiency`, `--capability`: what a count pays, and on which GPU."""
        self.value(
            "--costs",
            TABLE,
            f"cost table (default: {default_costs}); or the GPU, as in 'RTX 4090', which names it too where "
            "logs do not; `estimated`: by its data sheet, if nobody measured it; `none`: counts alone",
        )
        nearest = "nearest to the run's clocks, else the table's"
        self.value("--setting", SETTING, f"DVFS setting in MHz, e.g. 852/924 (default: {nearest})")
        self.add_efficiency("of its peak that a simulated device reaches, for the modelled time (default 0.25)")
        self.add_capability()

    def add_efficiency(self, help: str) -> None:
        """Add `--efficiency`."""
        self.value("--efficiency", "FRACTION", help, type=float)

    def add_capability(self) -> None:
        """Add `--capability`."""
        self.value("--capability", "X.Y", "compute capability, where the device's name does not tell")

    def add_to_meter(self) -> None:
        """Add `--to-meter`."""
        self.add_argument(
            "--to-meter",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="scale the cost table so that kernels and idle time take what the meter saw (default: where no table "
            "is made for this GPU)",
        )

    def add_columns(self) -> None:
        """Add `--columns`."""
        self.value("--columns", "FILE", "column names (one CSV line) of headerless rows")

    def add_jobs(self) -> None:
        """Add `--jobs`."""
        self.value("--jobs", "N", "processes at most (default: as many as cores)", type=positive)

    def add_listing(self) -> None:
        """Add `--format` of commands that list and show."""
        self.choice("--format", ("txt", "json"), "of standard output", default="txt")

    def add_kernels(self) -> None:
        """Add `-k`, which selects kernels."""
        self.repeatable("--kernel-name", "NAME|regex:...", "only these kernels (repeatable)", "-k")

    def add_output(
        self, purpose: str = WRITTEN, replaced: str = "output files", suffixes: Mapping[str, str] = SUFFIXES
    ) -> None:
        """Add `-o`, `--format`, `-f`, `--open`: where the result goes."""
        names = "%%p: process id, %%h: host, %%q{VAR}: a variable, %%%%: per cent sign (repeatable)"
        self.repeatable("--output", "PATH", f"{purpose}; {names}", "-o", type=expanded)
        self.choice("--format", sorted(set(suffixes.values())), "format of --output, or of standard output")
        self.flag("--force", f"overwrite existing {replaced}", "-f")
        self.flag("--open", "open the HTML report in a browser")


def expanded(path: str) -> str:
    """The path of `-o` with `%p` (process id), `%h` (host), `%q{VAR}` and `%%` filled in. Raises ArgumentTypeError."""
    import re

    known = {"%": "%", "p": str(os.getpid()), "h": os.uname().nodename}
    known |= {f"q{{{name}}}": value for name, value in os.environ.items()}

    def filled(match: re.Match[str]) -> str:
        word = match[1]
        if word in known:
            return known[word]
        if word.startswith("q{"):
            name = word[2:-1] or "(empty name)"
            raise argparse.ArgumentTypeError(f"{path}: the environment has no variable {name}")
        raise argparse.ArgumentTypeError(f"%{word} in {path} is not known; use %p, %h, %q{{VAR}}, or %% for %")

    return re.sub(r"%(q\{[^}]*\}|.?)", filled, path)


def matching(names: list[str]) -> list[str]:
    """File names with each pattern ("*.csv") replaced by the files that match it. Raises EprofError: none does."""
    files: list[str] = []
    for name in names:
        if os.path.lexists(name) or not glob.has_magic(name):
            files.append(name)
            continue
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise EprofError(f"{name}: no file matches this pattern.")
        files += matches
    return files


def positive(text: str) -> int:
    """An option's value as a whole number of 1 or more. Raises ArgumentTypeError."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def whole(text: str) -> int:
    """An option's value as a whole number of 0 or more. Raises ArgumentTypeError."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def joules(text: str | None) -> float | None:
    """The joules of `--energy`; None where it is not given. Raises UsageError."""
    if text is None:
        return None
    from eprof.energy import meter_factor

    return meter_factor.joules(text)


def clocks(text: str | None, example: str) -> list[float]:
    """The core clocks in MHz of `--clock`, parted by commas; [] if it is not given. Raises UsageError."""
    try:
        return [float(part) for part in (text or "").split(",") if text]
    except ValueError as err:
        raise UsageError(f"--clock {text}: is no list of clocks in MHz, such as {example}.") from err


def seconds(text: str) -> float:
    """An option's value as a time above 0 in s, "5" or "2min". Raises ArgumentTypeError."""
    number = signed_seconds(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time above 0")
    return number


def _quantity(text: str, sizes: Mapping[str, float], noun: str) -> float:
    """A quantity ("100ms") by the `sizes` of its units. Raises ArgumentTypeError: it is no `noun`."""
    number = units.amount(text, sizes)
    if number != number:
        raise argparse.ArgumentTypeError(f"{text!r} is no {noun}")
    return number


# An option's value as a time in s, "-5" or "100ms"; and as a power in W.
signed_seconds = partial(_quantity, sizes=units.TIME, noun="time, such as 5, 100ms or 2min")
watts = partial(_quantity, sizes=units.POWER, noun="power, such as 250 or 1.2kW")


def split(words: Sequence[str], parser: argparse.ArgumentParser) -> tuple[list[str], list[str]]:
    """Split a command line at PROGRAM: (command and options, PROGRAM and its arguments), without a `--` beside it."""
    valued = {name for option in parser._actions if option.nargs != 0 for name in option.option_strings}
    index = 1
    while index < len(words):
        word = words[index]
        if word == "--":
            return list(words[:index]), list(words[index + 1 :])
        if not word.startswith("-") or word == "-":
            rest = list(words[index + 1 :])
            if rest[:1] == ["--"]:
                rest = rest[1:]
            return list(words[:index]), [word, *rest]
        index += 2 if word in valued else 1
    return list(words), []


def problem_size(text: str) -> float:
    """The size of a problem: a number, or a formula of numbers such as "2^25". Raises UsageError."""
    from eprof.base.toml import GROWING, Formula

    try:
        size = float(Formula.parse(text, GROWING)({}))
    except (ValueError, KeyError, ZeroDivisionError, OverflowError):
        size = 0.0
    if not 0 < size < 1e18:
        raise UsageError(f"--size {text}: is no size above 0 and below 10^18; write 33554432, 3e7 or 2^25.")
    return size


def has_trace(outputs: list[tuple[Path, str]], options: argparse.Namespace) -> bool:
    """Whether `-o` (its paths and formats: `outputs`) or `--format` asks for a trace, which needs single launches."""
    return any(kind == "trace" for _, kind in outputs) or (not outputs and options.format == "trace")


def only(options: argparse.Namespace) -> dict[str, str]:
    """`--only COLUMN=CELL` as column -> the cell that rows of measurements must have there. Raises UsageError."""
    cells = {}
    for text in options.only:
        column, _, cell = map(str.strip, text.partition("="))
        if not (column and cell):
            raise UsageError(f"--only {text}: write COLUMN=CELL.")
        cells[column] = cell
    return cells


# ----------------------------------------------------------------------------------------------------------------------
# Values for options that the command line does not give, from a TOML file: `--config FILE`, or one that is found.

_NO_KEYS = {"help", "version", "config"}
# A file that came with somebody's logs must not write files, start a browser, connect to anything, run a benchmark or
# change clocks, nor what one side of a comparison costs.
_ONLY_NAMED = ("output", "force", "open", "scheduler", "directory", "shim", "mpi", "clock", "lock_clocks", "settings")
_ONE_SIDE = ("old_", "new_", "more_")
# The change that a gate judges may bring a configuration file, which must then decide nothing of what the gate sees.
_GATES = ("fail_above", "max_error")
_LOOKS = (*_GATES, "format", "no_color", "verbose", "quiet", "jobs")
Actions = dict[str, argparse.Action]


def options_of(parser: argparse.ArgumentParser) -> Actions:
    """The options of a command by the key that sets each in a configuration file: `kernel_name` -> `--kernel-name`."""
    return {option.dest: option for option in parser._actions if option.option_strings and option.dest not in _NO_KEYS}


def find_config() -> Path | None:
    """The configuration file for this folder, `eprof.toml` or a `pyproject.toml` with `[tool.eprof]`; None: none.

    The nearest one, up to the root of the repository or the home folder. Outside of both, this folder alone counts:
    everybody may write to /tmp.
    """
    with contextlib.suppress(OSError):
        here = Path.cwd()
        home = Path("~").expanduser()
        above = [here, *here.parents]
        last = next((folder for folder in above if folder == home or (folder / ".git").exists()), here)
        for folder in above[: above.index(last) + 1]:
            own = folder / "eprof.toml"
            if own.is_file():
                return own
            project = folder / "pyproject.toml"
            if project.is_file() and b"[tool.eprof" in project.read_bytes():
                return project
    return None


def fill_from_config(
    options: argparse.Namespace, given: Iterable[str], own: Actions, known: Actions, found: Path | None
) -> None:
    """Set the options that the command line does not give to what the configuration file says.

    given: the options that the command line gives; own: the command's options. known: those of every command, so that
    one file serves all: what only others have is checked too, and left out. found: the file, if `--config` names none.
    Raises DefinitionError with the line for an option that does not exist, or a value that it cannot have.
    """
    from eprof.base.toml import Document

    path = found or Path(options.config)
    table = Document.read(path).root
    if path.name == "pyproject.toml":
        table = table["tool"]["eprof"]
    taken = set(given)
    options.configured = set()
    keys = table.table(known)
    gates = [gate for gate in _GATES if gate in own and (gate in keys or gate in taken)]
    for key, node in keys.items():
        is_judged = bool(gates) and key in own and key not in taken and key not in _LOOKS
        if found is not None and (is_judged or key in _ONLY_NAMED or key.startswith(_ONE_SIDE)):
            under = f" under --{gates[0].replace('_', '-')}" if is_judged else ""
            raise node.error(f"`{key}` counts{under} only in a file that --config names, and this one was found.")
        option = own.get(key, known[key])
        value: Any = None
        if option.nargs == 0:
            value = node.truth()
        elif isinstance(option.default, list):
            value = [_single(option, each, path.parent) for each in node.each()]
        else:
            value = _single(option, node, path.parent)
        if key in own and key not in taken:
            setattr(options, key, value)
            options.configured.add(key)


def is_given(options: argparse.Namespace, key: str) -> bool:
    """Whether the command line itself gives the option `key`; False where a configuration file does."""
    return getattr(options, key) not in (None, [], False) and key not in getattr(options, "configured", ())


def _single(option: argparse.Action, node: "Node", folder: Path) -> Any:
    """An option's value in a configuration file that lies in `folder`. Raises DefinitionError: it cannot be that."""
    if option.choices is not None:
        return node.choice(list(option.choices))
    if option.type is None:
        text = node.text()
        # A file that lies beside the configuration file, and not in this folder, by a path that leads there from here.
        with contextlib.suppress(OSError):  # too long for a path
            if "FILE" in str(option.metavar) and not Path(text).exists() and (folder / text).is_file():
                return str(folder / text)
        return text
    check = node.text if option.type is expanded else node.number
    check()
    try:
        return option.type(str(node.value))  # type: ignore[operator]
    except argparse.ArgumentTypeError as err:
        raise node.error(f"`{option.dest}`: {err}.") from err
    except ValueError as err:
        raise node.wrong("a whole number") from err
