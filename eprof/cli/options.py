"""Options that mean the same in several commands, added once (docs/cli.md)."""

import argparse
import glob
import os

from eprof.base.errors import EprofError

SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".md": "md",
    ".txt": "txt",
}


def add_pricing(parser: argparse.ArgumentParser, default_costs: str) -> None:
    """`--costs`, `--setting`, `--efficiency`, `--capability`: what a count pays, and on which GPU."""
    parser.add_argument("--costs", metavar="NAME|FILE", help=f"cost table (default: {default_costs})")
    parser.add_argument(
        "--setting",
        metavar="CORE/MEMORY",
        help="DVFS setting in MHz, e.g. 852/924 (default: nearest to the run's clocks, else the table's)",
    )
    parser.add_argument(
        "--efficiency",
        type=float,
        metavar="FRACTION",
        help="of its peak that a simulated device reaches, for the modelled time (default 0.25)",
    )
    parser.add_argument("--capability", metavar="X.Y", help="compute capability, where the device's name does not tell")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """`--strict`, `--scheduler`, `--no-cache`: how many logs are read, and where."""
    parser.add_argument(
        "--strict", action="store_true", help="stop at a log that cannot be read (default: report on the others)"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="read on a Dask cluster: tcp://HOST:PORT, or local (pip install eprof[dask])",
    )
    parser.add_argument("--no-cache", action="store_true", help="read large logs anew, and keep nothing of them")


def add_output(parser: argparse.ArgumentParser, what: str, replaced: str) -> None:
    """`-k`, `-o`, `--format`, `-f`, `--open`: which kernels, and where the result goes."""
    kernels = "only these kernels (repeatable)"
    parser.add_argument("-k", "--kernel-name", action="append", default=[], metavar="NAME|regex:...", help=kernels)
    parser.add_argument("-o", "--output", action="append", default=[], metavar="PATH", help=f"{what} (repeatable)")
    parser.add_argument(
        "--format", choices=sorted(set(SUFFIXES.values())), help="format of --output, or of standard output"
    )
    parser.add_argument("-f", "--force", action="store_true", help=f"overwrite existing {replaced}")
    parser.add_argument("--open", action="store_true", help="open the HTML report in a browser")


def matching(names: list[str]) -> list[str]:
    """Names of files, with the files that match in place of patterns. Raises EprofError for a pattern without any."""
    found: list[str] = []
    for name in names:
        if os.path.lexists(name) or not glob.has_magic(name):
            found.append(name)
            continue
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise EprofError(f"{name}: no file matches this pattern.")
        found += matches
    return found


def positive(text: str) -> int:
    """A whole number from 1 on, for argparse."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def whole(text: str) -> int:
    """A whole number, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def seconds(text: str) -> float:
    """A time in seconds, above 0, for argparse."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found
