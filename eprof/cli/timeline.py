"""`eprof timeline`: power logs and marks -> joules by component and function."""

import argparse

from eprof.base.errors import UsageError
from eprof.cli.options import Commands, add_output, command, matching
from eprof.cli.output import deliver, of_document, planned


def add(commands: Commands) -> argparse.ArgumentParser:
    """The options of `eprof timeline`."""
    parser = command(
        commands,
        "timeline",
        "power over time: joules by component and function",
        "Put logs of power meters and what a program did together: joules by component and function, idle power apart. "
        "Needs no GPU.",
        "eprof timeline power.csv --marks trace.sqlite -o timeline.html",
        "eprof timeline smi.csv rapl.csv --marks marks.csv --sync 0.5",
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="POWER",
        help="power over time: power.csv of eprof run, nvidia-smi, tegrastats, turbostat, perf stat -I, or a CSV table",
    )  # fmt: skip
    parser.add_argument(
        "--marks", action="append", default=[], metavar="FILE",
        help="what ran when: begin_s,end_s,name in CSV, an nsys database (NVTX), a PyTorch trace, otf2-print",
    )  # fmt: skip
    parser.add_argument(
        "--sync", type=float, metavar="S", help="look for the offset between the clocks, up to S either way"
    )
    parser.add_argument(
        "--offset", type=float, metavar="S", help="move the power by S (default: trust the time stamps)"
    )
    parser.add_argument(
        "--idle", type=float, metavar="W", help="idle power of each component (default: as seen before and after)"
    )
    add_output(parser, names=False)
    return parser


def timeline(options: argparse.Namespace) -> int:
    """Run `eprof timeline`."""
    from eprof.timeline import build, marks, power

    if options.sync is not None and not 0 < options.sync <= _LONGEST_SYNC_S:
        raise UsageError(f"--sync {options.sync:g}: must be more than 0 and at most {_LONGEST_SYNC_S:g} s.")
    if options.sync is not None and options.offset is not None:
        raise UsageError("--offset says what --sync looks for; give one of them.")
    if options.idle is not None and not 0 <= options.idle < float("inf"):
        raise UsageError(f"--idle {options.idle:g}: must be a power in W from 0 on.")
    paths = matching(options.inputs)
    outputs = planned(options)
    notes: list[str] = []
    series = [each for path in dict.fromkeys(paths) for each in power.read(path, notes)]
    notes += build.twice(series)
    asked = build.Asked(options.sync, options.offset, options.idle, options.command_line)
    read = build.merged([marks.read(path) for path in options.marks])
    document = build.timeline(series, read, asked, notes, ", ".join(paths[:3]))
    deliver(of_document(document, "timeline", options.verbose, terminal="words"), outputs, options)
    return 0


_LONGEST_SYNC_S = 3600.0
