"""The command `eprof report`: its options, and how it loads logs, prices them, and writes the report."""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.errors import UnknownLogError
from eprof.cli.options import ALSO_WRITTEN, REPORT_SUFFIXES, WRITTEN, Commands, Parser, command, has_trace, joules
from eprof.cli.output import Output, Progress, deliver, loaded, planned, result_by_modules, say

if TYPE_CHECKING:
    from eprof.profile.profile import Energy
    from eprof.profile.schema import Profile

# Logs of runs by eprof do not tell when launches ran, so it has no traces.
_LEFT_OUT = "Left out: "
_SHOWN = 3  # of logs that were left out, on standard error
COMPONENTS = "components"  # of --time: no seconds, but a question


def add(commands: Commands) -> Parser:
    """Add `eprof report` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "report",
        "Read what a profiler wrote, count instructions by class and bytes by memory level, price them with a cost "
        "table, and show where the energy went. Logs of one run are joined by device and kernel.",
        "eprof report metrics.csv --costs gtx680 -o report.html",
        "eprof report metrics.csv trace.csv.gz --costs jetson-tk1 --setting 852/924",
        "eprof report 'logs/*.csv' --costs my-gpu.toml --format json > energy.json",
    )
    parser.add_inputs(
        "logs of nvprof (CSV, text, .nvvp), ncu (CSV, text, .ncu-rep), nsys (CSV, text, JSON, .sqlite), "
        "the PyTorch profiler (.pt.trace.json), rocprof (CSV), perf, LIKWID or callgrind, packed or not; run "
        "directories of `eprof run`, or 'patterns'; several are joined"
    )
    parser.add_pricing("the one made for this GPU; see `eprof costs`")
    parser.add_to_meter()
    parser.value(
        "--energy",
        "JOULES",
        "what a meter saw of the whole run, in J, mJ, kJ or Wh, such as 812J: --to-meter with this energy",
    )
    parser.repeatable(
        "--time",
        "[KERNEL=]TIME|components",
        "time without counters, for logs that have none; total, or of one kernel (repeatable); `components`: also "
        "model what each kernel's time goes to: loads, computation, shared memory, bank conflicts...",
    )
    parser.add_columns()
    parser.repeatable(
        "--what-if",
        "CHANGES",
        "modelled answer to e.g. pi0=0.5, dram=-20%%, setting=612/924, costs=gtx680, cap=10W, integer=free, race; "
        "several joined by commas are one question (repeatable)",
    )
    parser.repeatable(
        "--group",
        "REGEX=NAME",
        "kernels whose name matches are one group, e.g. a phase (repeatable; the first match counts); or "
        "`device`, `rank`, `stream`, `nvtx`, `mark`",
    )
    parser.value(
        "--rank",
        "REGEX",
        r"with --group rank: where logs' paths tell it, e.g. 'rank(\d+)' (default: the one number that differs)",
    )
    parser.flag("--strict", "stop at a log that cannot be read (default: report on the others)")
    parser.value("--scheduler", "ADDRESS", "read on a Dask cluster: tcp://HOST:PORT (pip install dask distributed)")
    parser.flag("--no-cache", "read large logs anew, and keep nothing of them")
    parser.add_kernels()
    parser.add_output(f"{WRITTEN}{ALSO_WRITTEN}", suffixes=REPORT_SUFFIXES)
    return parser


def report(options: argparse.Namespace) -> int:
    """Run `eprof report`: load the logs, price them, deliver the report in every wanted form; returns exit code 0."""
    outputs = planned(options, REPORT_SUFFIXES)
    metered_j = joules(options.energy)
    try:
        from eprof.base.resources import cores
        from eprof.profile.grouping import part_of

        profile = loaded(
            options,
            gpu=options.costs,
            columns=options.columns,
            time=[given for given in options.time if given != COMPONENTS],
            strict=options.strict,
            scheduler=options.scheduler,
            cache=not options.no_cache,
            workers=cores(),
            parts=part_of(options.group),
            rank=options.rank,
            timeline=has_trace(outputs, options),
        )
    except UnknownLogError as err:
        from eprof.lab.inputs import clearer_error

        raise clearer_error(options.inputs, err) from err
    energy = profile.energy(
        options.costs,
        setting=options.setting,
        efficiency=options.efficiency,
        to_meter=options.to_meter,
        metered_j=metered_j,
        by_component=COMPONENTS in options.time,
    )
    _deliver_energy(energy.asking(*options.what_if).grouped(*options.group), outputs, options)
    return 0


def deliver_run(home: str, outputs: list[Output], options: argparse.Namespace, page: Path) -> None:
    """Report on a run directory alone, with the options of `eprof run`. page: an HTML report to write in any case."""
    from eprof.profile import api

    profile = api.load(
        home,
        capability=options.capability,
        kernels=options.kernel_name,
        command_line=options.command_line,
        progress=Progress(options.quiet).reading,
        timeline=has_trace(outputs, options),
    )
    energy = profile.energy(
        options.costs, setting=options.setting, efficiency=options.efficiency, to_meter=options.to_meter
    )
    _deliver_energy(energy, outputs, options, page=page)


def to_count(document: "Profile") -> str:
    """Advice for a report's document: the command that counts what is not known yet; "" if none helps."""
    from eprof.commands.report.advice.collecting import how_to_count
    from eprof.commands.report.view import View

    return how_to_count(View(document), has_advice=False)


def _deliver_energy(
    energy: "Energy", outputs: list[Output], options: argparse.Namespace, page: Path | None = None
) -> None:
    """Write a report's files and the result on standard output; `page`: an HTML report to write in any case."""
    from eprof.profile.document import document as described

    document = described(energy)
    for_tools = partial(_for_tool, energy, document)
    result = result_by_modules(document, "eprof.commands.report", options.verbose, energy.to_frame, for_tools)
    deliver(result, outputs, options, page)
    if not options.verbose or options.quiet or options.format and not outputs:
        # No list of notes says which logs are missing.
        left_out = [warning for warning in document.warnings if warning.startswith(_LEFT_OUT)]
        for warning in left_out[:_SHOWN]:
            say(warning)
        if len(left_out) > _SHOWN:
            say(f"{len(left_out) - _SHOWN} more logs are left out; the warnings in the document name them.")


def _for_tool(energy: "Energy", document: "Profile", kind: str) -> bytes:
    """The bytes of a report for another tool. kind: "prom", "speedscope", "folded", or else a trace for Perfetto."""
    from eprof.commands.report import files

    match kind:
        case "prom":
            return files.to_openmetrics(document)
        case "speedscope":
            return files.to_speedscope(document)
        case "folded":
            return files.to_folded(document)
    assert energy.profile.timeline is not None, "the logs were loaded with it"
    return files.to_trace(document, energy.profile.timeline, say)
