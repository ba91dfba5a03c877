"""`eprof timeline`: power logs and marks -> joules by component and function."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.errors import UsageError
from eprof.base.optional import mapped
from eprof.cli import options as cli_options
from eprof.cli.options import Commands, Parser, command, matching, seconds, signed_seconds, watts
from eprof.cli.output import Output, Result, deliver, planned, result_by_words
from eprof.commands.timeline import fusion

if TYPE_CHECKING:
    from eprof.commands.timeline.fusion import Asked


def add(commands: Commands) -> Parser:
    """Add `eprof timeline` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "timeline",
        "Put logs of power meters and what a program did together: joules by component and function, idle power apart. "
        "Needs no GPU.",
        "eprof timeline my-program.eprof -o timeline.html        a run of `eprof run --mark REGEX`",
        "eprof timeline power.csv --marks trace.sqlite -o trace.json",
        "eprof timeline smi.csv rapl.csv --marks marks.csv --sync 0.5",
        "eprof timeline node.dcgm --marks jobs.csv --costs a100-sxm4-80gb",
    )
    parser.add_inputs(
        "power over time: a run directory of eprof run; a log of a meter that docs/timeline.md names, such as "
        "nvidia-smi, tegrastats, turbostat, perf stat -I; a CSV table",
        metavar="POWER",
    )
    parser.repeatable(
        "--marks",
        "FILE",
        "what ran when: begin_s,end_s,name in CSV, an nsys database (NVTX), a PyTorch or Caliper trace, "
        "otf2-print, a run directory",
    )
    parser.value("--interval", "T", "how often a meter was read whose log does not tell: 60s, 100ms", type=seconds)
    parser.value("--sync", "S", "look for the offset between the clocks, up to S either way", type=seconds)
    parser.value("--offset", "S", "move the power by S (default: trust the time stamps)", type=signed_seconds)
    parser.value("--idle", "W", "idle power of each component (default: as seen before and after)", type=watts)
    parser.value(
        "--costs",
        cli_options.TABLE,
        "split the joules of GPUs whose activity was sampled (DCGM) by cause, by this table",
    )
    parser.add_output(f"{cli_options.WRITTEN}; trace.json for Perfetto", suffixes=cli_options.TIMELINE_SUFFIXES)
    return parser


def timeline(options: argparse.Namespace) -> int:
    """Run `eprof timeline`."""
    from eprof import costs
    from eprof.commands.timeline.fusion import Asked

    if options.interval is not None and options.interval > _LONGEST_INTERVAL_S:
        raise UsageError(f"--interval {options.interval:g}: is a day at most.")
    if options.sync is not None and options.sync > _LONGEST_SYNC_S:
        raise UsageError(f"--sync {options.sync:g}: must be at most {_LONGEST_SYNC_S:g} s.")
    if options.sync is not None and options.offset is not None:
        raise UsageError("--offset says what --sync looks for; give one of them.")
    if options.idle is not None and not 0 <= options.idle < float("inf"):
        raise UsageError(f"--idle {options.idle:g}: must be a power in W from 0 on.")
    paths = list(dict.fromkeys(matching(options.inputs)))
    outputs = planned(options, cli_options.TIMELINE_SUFFIXES)
    table = mapped(costs.load, options.costs)
    asked = Asked(options.sync, options.offset, options.idle, options.command_line, table)
    deliver(_made(paths, options.marks, asked, options.verbose, options.interval), outputs, options)
    return 0


def deliver_run(home: str, outputs: list[Output], options: argparse.Namespace, page: Path) -> None:
    """Show the timeline of one run directory, and write `outputs`. page: an HTML report to write in any case."""
    from eprof.commands.timeline.fusion import Asked

    deliver(_made([home], [], Asked(command_line=options.command_line), options.verbose), outputs, options, page)


def _made(
    paths: Sequence[str], marked: Sequence[str], asked: "Asked", verbose: bool, interval_s: float | None = None
) -> Result:
    """The timeline of power logs and marks (also those of run directories) as a result to show. Raises LogError."""
    from eprof.commands.timeline import document as timeline_document
    from eprof.commands.timeline import joules
    from eprof.lab.power import activity, marks
    from eprof.lab.power import logs as power

    notes = [note for path in paths for note in timeline_document.notes_of(path)]
    read_logs = [power.sampled(timeline_document.power_of(path), notes, interval_s) for path in paths]
    series = [each for powers, _ in read_logs for each in powers]
    sampled = [each for _, beside in read_logs for each in activity.activities(beside)]
    if asked.costs is not None:
        for path, (powers, _) in zip(paths, read_logs, strict=True):
            sampled += filter(None, [joules.counted(timeline_document.power_of(path), powers, asked.costs)])
        if not sampled:
            raise UsageError(
                "--costs prices sampled activity and counts of intervals, of which these logs have none; give a log of "
                "dcgmi dmon, or of perf stat -I with events of cores beside joules."
            )
    elif sampled:
        notes.append("How busy units were was sampled, too: --costs, such as a100-sxm4-80gb, splits joules by cause.")
    sampled += [each for _, beside in read_logs for each in joules.busy_alone(beside)]
    of_marks = [*marked, *(path for path in paths if Path(path).is_dir())]
    files = [file for path in of_marks if (file := timeline_document.marks_of(path))]
    fused = fusion.fused(series, marks.read_all(files), asked, notes, sampled)
    title = ", ".join(Path(path).resolve().name for path in paths[:3])
    document = timeline_document.document(fused, asked, title)

    def trace(_: str) -> bytes:
        from eprof.commands.timeline.page import to_trace

        return to_trace(document, fused)

    return result_by_words(document, __package__, verbose, trace)


_LONGEST_SYNC_S, _LONGEST_INTERVAL_S = 3600.0, 86400.0
