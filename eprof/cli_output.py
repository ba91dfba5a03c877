"""Where a command's result goes: the files that `-o` names, standard output, a browser. Every command uses it."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eprof.cli_options import SUFFIXES
from eprof.errors import UsageError
from eprof.plain import printable

Output = tuple[Path, str]


class Result(NamedTuple):
    """What a command found. render: a format of `SUFFIXES` -> the bytes of a file; show: the summary, on a terminal.

    Both are called late, so that only the rooms that make the wanted form are loaded. `render` raises UsageError for a
    format that this result has not.
    """

    render: Callable[[str], bytes]
    show: Callable[[], None]


def planned(options: argparse.Namespace) -> list[Output]:
    """The files to write with their formats; checked before any log is read: no long work for nothing.

    Raises UsageError, EprofError: a format that the suffix does not tell, a file that may not be replaced.
    """
    from eprof.writing import refuse_existing

    found: list[Output] = []
    for name in options.output:
        path = Path(name)
        kind = options.format or SUFFIXES.get(path.suffix.lower())
        if kind is None:
            raise UsageError(
                f"-o {name}: cannot tell the format from the suffix; use {' '.join(SUFFIXES)} or --format."
            )
        refuse_existing(path, options.force)
        if path.exists() and any(Path(one).exists() and path.samefile(one) for one in getattr(options, "inputs", ())):
            raise UsageError(f"-o {name}: is one of the inputs, and is not overwritten even with -f/--force.")
        if any(path == other for other, _ in found):
            raise UsageError(f"-o {name}: is named twice.")
        found.append((path, kind))
    if options.open and not any(kind == "html" for _, kind in found):
        path = Path(Path(options.inputs[0]).stem + ".html")
        refuse_existing(path, options.force)
        found.append((path, "html"))
    return found


def deliver(result: Result, outputs: list[Output], options: argparse.Namespace, page: Path | None = None) -> None:
    """Write the files, then the result on standard output: in `--format` if no file takes it, else the summary.

    page: an HTML report to write in any case, in place of an older one.
    """
    from eprof.writing import write

    if page is not None:
        write(page, result.render("html"), True)
        print(f"eprof: wrote {printable(str(page))}", file=sys.stderr)
    for path, kind in outputs:
        write(path, result.render(kind), options.force)
        print(f"eprof: wrote {printable(str(path))}", file=sys.stderr)
    if options.format and not outputs:
        _print_bytes(result.render(options.format), options.format)
    elif not options.quiet:
        result.show()
    if options.open:
        _open(page or next(path for path, kind in outputs if kind == "html"))


def open_closed_streams() -> None:
    """Stand-ins for standard streams that our caller closed: files opened later would take their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as we do
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def give_up_output() -> None:
    """Send what is still to be printed nowhere: standard output cannot take it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_bytes(content: bytes, kind: str) -> None:
    if kind == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is not for a terminal; name a file with -o, or redirect.")
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        print(f"eprof: no browser could be started; open {printable(str(path))} yourself.", file=sys.stderr)
