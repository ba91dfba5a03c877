"""`eprof demo`: a report and a diff of recorded logs, so that an installed eprof shows at once what it does."""

import argparse
from pathlib import Path

from eprof.base import resources
from eprof.cli.options import Commands, Parser, command

_EXAMPLES = (
    "report eprof-demo/fmm.txt --costs jetson-tk1 -o eprof-demo/fmm.html -f",
    "diff eprof-demo/gemm-naive.txt eprof-demo/gemm-tiled.txt --costs jetson-tk1 -o eprof-demo/gemm.html -f",
)
_FOLDER = "eprof-demo"
_START = (
    "Recorded on a simulated device (Oclgrind), so counts are exact for it and time is a model. No program runs now."
)
_END = "Next, a program of yours: `eprof run ./my-program`. `eprof doctor` says what works on this machine."


def add(commands: Commands) -> Parser:
    """Add `eprof demo` with its options to the commands; return its parser."""
    return command(
        commands,
        "demo",
        f"Write logs of sample programs, recorded on the simulated device, to the folder {_FOLDER}, and show what "
        "`eprof report` and `eprof diff` make of them. Needs no GPU, no profiler and no compiler.",
    )


def demo(options: argparse.Namespace) -> int:
    """Run `eprof demo`. Exit code 0; raises OSError if its folder cannot be written."""
    folder = Path(_FOLDER)
    folder.mkdir(exist_ok=True)
    for log in resources.tree(resources.folder("samples/logs/simulated"), ".txt"):
        (folder / log.name).write_bytes(log.read_bytes())
    flags = [flag for flag, is_given in (("-q", options.quiet), ("-v", options.verbose)) if is_given]
    print(_START)
    for example in _EXAMPLES:
        words = [*example.split(), *flags]
        print(f"\n$ eprof {' '.join(words)}")
        options.start(words)
    print(f"\n{_END}")
    return 0
