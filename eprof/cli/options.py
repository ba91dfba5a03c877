"""Options that mean the same in several commands, added once (docs/cli.md)."""

import argparse
import glob
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eprof.base.errors import EprofError

if TYPE_CHECKING:
    import re

SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".md": "md",
    ".txt": "txt",
}
# Of what a program did. `planned` takes the longest suffix that a name ends in.
REPORT_SUFFIXES = {
    **SUFFIXES,
    ".speedscope.json": "speedscope",
    ".folded": "folded",
    ".prom": "prom",
    "trace.json": "trace",
}


TABLE = "NAME|FILE"
JOULES = "JOULES"
SETTING = "CORE/MEMORY"
# Names of what an option takes, in its help; `eprof completion` knows values by them.
GPU = "GPU"
DEFINITION = "NAME|CAPABILITY|FILE"
MAPPING = "MAPPING|FILE"
WRITTEN = "write .html .json .csv .parquet .md or .txt"
ALSO_WRITTEN = "; for other tools .speedscope.json .folded .prom trace.json"
Commands = Any  # argparse does not name the type of its subparsers in public


def command(commands: Commands, name: str, summary: str, description: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of a command, with its help and its options in common."""
    epilog = "\n  ".join(["Examples:", *examples]) if examples else None
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    return parser


class _Help(argparse.HelpFormatter):
    """Descriptions in paragraphs, examples as they stand."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("Examples:"):
            return text
        return super()._fill_text(text, width, indent)


def repeatable(parser: argparse._ActionsContainer, *names: str, **more: Any) -> None:
    """An option of a command that may be given several times; its value is a list."""
    parser.add_argument(*names, action="append", default=[], **more)


def add_pricing(parser: argparse.ArgumentParser, default_costs: str) -> None:
    """`--costs`, `--setting`, `--efficiency`, `--capability`: what a count pays, and on which GPU."""
    parser.add_argument(
        "--costs",
        metavar=TABLE,
        help=f"cost table (default: {default_costs}); `estimated`, or 'estimated:RTX 4090' where the log does not "
        "name the GPU: a rough one for a GPU that nobody measured",
    )
    parser.add_argument(
        "--setting",
        metavar=SETTING,
        help="DVFS setting in MHz, e.g. 852/924 (default: nearest to the run's clocks, else the table's)",
    )
    parser.add_argument(
        "--efficiency",
        type=float,
        metavar="FRACTION",
        help="of its peak that a simulated device reaches, for the modelled time (default 0.25)",
    )
    add_capability(parser)


def add_to_meter(parser: argparse.ArgumentParser) -> None:
    """`--to-meter`."""
    parser.add_argument(
        "--to-meter",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="scale the cost table so that kernels and idle time take what the meter saw (default: where no table is "
        "made for this GPU)",
    )


def add_capability(parser: argparse.ArgumentParser) -> None:
    """`--capability`."""
    parser.add_argument("--capability", metavar="X.Y", help="compute capability, where the device's name does not tell")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """`--columns`."""
    parser.add_argument("--columns", metavar="FILE", help="column names (one CSV line) of headerless rows")


def add_listing(parser: argparse.ArgumentParser) -> None:
    """`--format` of commands that list and show."""
    parser.add_argument("--format", choices=("txt", "json"), default="txt", help="of standard output")


def add_output(
    parser: argparse.ArgumentParser,
    purpose: str = WRITTEN,
    replaced: str = "output files",
    suffixes: Mapping[str, str] = SUFFIXES,
    names: bool = True,
) -> None:
    """`-k` (unless not `names`), `-o`, `--format`, `-f`, `--open`: which kernels, and where the result goes."""
    if names:
        repeatable(parser, "-k", "--kernel-name", metavar="NAME|regex:...", help="only these kernels (repeatable)")
    repeatable(
        parser,
        "-o",
        "--output",
        metavar="PATH",
        type=expanded,
        help=f"{purpose}; %%p: process id, %%h: host, %%q{{VAR}}: a variable, %%%%: per cent sign (repeatable)",
    )
    formats = sorted(set(suffixes.values()))
    parser.add_argument("--format", choices=formats, help="format of --output, or of standard output")
    parser.add_argument("-f", "--force", action="store_true", help=f"overwrite existing {replaced}")
    parser.add_argument("--open", action="store_true", help="open the HTML report in a browser")


def expanded(path: str) -> str:
    """A path with `%p`, `%h`, `%q{VAR}` and `%%` filled in, as profilers do; for argparse."""
    import re

    return re.sub(r"%(q\{[^}]*\}|.?)", _filled, path)


def _filled(match: "re.Match[str]") -> str:
    word = match[1]
    fixed = {"%": "%", "p": str(os.getpid()), "h": os.uname().nodename}
    if word in fixed:
        return fixed[word]
    if not word.startswith("q{"):
        raise argparse.ArgumentTypeError(f"%{word} in {match.string} is not known; use %p, %h, %q{{VAR}}, or %% for %")
    name = word[2:-1]
    if name not in os.environ:
        raise argparse.ArgumentTypeError(f"{match.string}: the environment has no variable {name or '(empty name)'}")
    return os.environ[name]


def matching(names: list[str]) -> list[str]:
    """Names of files given to a command, with the files that match in place of patterns.

    Raises EprofError for a pattern without any.
    """
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
    """An option's whole number from 1 on, for argparse."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def whole(text: str) -> int:
    """An option's whole number, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def joules(text: str | None) -> float | None:
    """What `--energy` says, in J; None where it is not given. Raises UsageError."""
    if text is None:
        return None
    from eprof.energy import metering

    return metering.joules(text)


def seconds(text: str) -> float:
    """An option's time in seconds, above 0, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number
