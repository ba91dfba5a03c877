"""`eprof run`: its options, and what it prints."""

import argparse
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from eprof import profilers
from eprof.base.errors import CollectError, EprofError, LogError, UsageError, shortage
from eprof.base.kernels import selector
from eprof.base.optional import mapped
from eprof.base.text import phrase, printable, when
from eprof.cli import options as cli_options
from eprof.cli.options import Commands, Parser, command, has_trace, positive, problem_size, seconds, whole
from eprof.cli.output import Output, Progress, planned, say, shown_path
from eprof.cli.signals_and_streams import ended_by
from eprof.collect import process
from eprof.collect.collector import EACH, GPU
from eprof.collect.directory import COMPONENTS
from eprof.profilers import advice

if TYPE_CHECKING:
    from eprof.collect.collector import Nodes
    from eprof.commands.run.session import Session
    from eprof.commands.run.settings import Settings, Setup

CLUSTERS = "simgrid"  # the profiler that simulates clusters
ALONE = NONE, SAMPLED = "none", "gpm"  # the program runs alone, for a timeline: no profiler, a sampled GPU
# Options that only a profiler of kernels can follow; and those that a meter can, too.
_OF_KERNELS = (
    *("costs", "setting", "efficiency", "capability", "kernel_name", "to_meter", "launch_skip"),
    *("launch_count", "nvtx", "time_only", "host_energy", "lock_clocks", "checked", "caches"),
)
# What `eprof run` says that a program is, by whether it uses a GPU.
_KINDS = {True: ", as {name} names a GPU's library", False: ", as {name} links no library of GPUs", None: ""}


class _ReportCommand(NamedTuple):
    """The command that reports on a run, and what the user is told it can do `beside`.

    refused: options of `eprof run` that mean nothing to the profiler, and `why`.
    """

    command: str = "report"
    beside: str = "with other costs if asked"
    refused: tuple[str, ...] = ()
    why: str = ""


_OF_PROGRAMS = (*_OF_KERNELS, "repeat", "no_energy")
_REPORTS = {
    CLUSTERS: _ReportCommand("scale", "with other runs beside it", _OF_PROGRAMS, "which simulates whole programs"),
    NONE: _ReportCommand("timeline", "with other marks if asked", _OF_KERNELS, "which counts nothing"),
    SAMPLED: _ReportCommand("timeline", "with --costs for joules by cause", _OF_KERNELS, "which sees no single kernel"),
}
# The files that these commands write.
_WRITTEN = {
    "report": cli_options.REPORT_SUFFIXES,
    "scale": cli_options.SUFFIXES,
    "timeline": cli_options.TIMELINE_SUFFIXES,
}


def add(commands: Commands) -> Parser:
    """Add `eprof run` to the commands: its parser. `options.split` takes PROGRAM and its arguments off before."""
    parser = command(
        commands,
        "run",
        "Run PROGRAM under the profiler of this machine, keep the raw logs in a run directory, and report where the "
        "energy went. Options of eprof come before PROGRAM; everything after it is PROGRAM's own.",
        "eprof run --costs jetson-tk1 ./fmm -- N=65536 Q=128",
        "eprof run --profiler oclgrind samples/nbody/nbody -- N=1024",
        "eprof run --profiler none --mark 'step [0-9]+' ./solver        power over time alone, section by section",
        "eprof run --profiler simgrid --cluster gigabit-demo -n 16 --size 2^20 ./fft 1048576",
        "eprof run --dry-run ./fmm        what would be run, and why",
    )
    parser.runs_program = True
    parser.usage = "eprof run [options] PROGRAM [--] [ARG...]"
    parser.add_pricing("the one made for this GPU; jetson-tk1 for the simulated device")
    parser.add_to_meter()
    parser.choice("--profiler", ("auto", *profilers.names()), "default: the best that is usable here", default="auto")
    parser.value(
        "--caches",
        "GPU",
        "the GPU whose caches the simulated device has (v100; v100:warm: L2 keeps what a launch leaves; none); "
        "default: that of the prices",
    )
    parser.value(
        "--repeat",
        "N",
        "measure time and energy N times: medians and spreads; default: once, and the time of a short program of a CPU "
        "as often as a second has room (3 to 15 times)",
        type=positive,
    )
    parser.repeatable(
        "--mark",
        "REGEX",
        "a line of PROGRAM's output that matches begins a section, named by the first group; the next one ends it "
        "(or, in sections that hold others, a line that matches a group `end`); for `eprof timeline` (repeatable)",
    )
    parser.value("--timeout", "S", "stop PROGRAM after S seconds", type=seconds)
    parser.value("--launch-skip", "N", "do not count the first N kernel launches (ncu)", type=whole, default=0)
    parser.value("--launch-count", "N", "count N kernel launches only (ncu)", type=positive)
    parser.value("--nvtx", "NAME", "count only inside this NVTX range (ncu)")
    parser.flag("--dry-run", "print the commands, the passes and what each counter is for; run nothing")
    parser.flag("--time-only", "measure time, no counters and no energy")
    parser.flag("--no-energy", "do not measure energy")
    parser.flag("--host-energy", "measure the processor's energy (RAPL) instead of the GPU's")
    parser.flag("--checked", "simulated device: interpret kernels, which finds more of their errors, and takes long")
    parser.flag("--lock-clocks", "let ncu lock the clocks to their base (it does not otherwise)")
    group = parser.group("an MPI program on a simulated cluster (--profiler simgrid)")
    group.value("--cluster", "NAME", "the cluster's table, or a file.toml (docs/scale.md)")
    group.value("--processes", "N", "processes, one a node", type=positive, short="-n")
    group.value("--size", "N", "the size of the problem, for `eprof scale`")
    purpose = f"the run directory, or a report: .html .json .csv .parquet .md .txt{cli_options.ALSO_WRITTEN}"
    parser.add_kernels()
    parser.add_output(purpose, "run directory and existing files", cli_options.REPORT_SUFFIXES)
    parser.flag("--no-report", "collect only; `eprof report DIRECTORY` makes the report later")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run `eprof run`. The exit code is the program's, 126, 127, 128+n, or 1 where not all was collected."""
    if not options.program:
        raise UsageError("Say which program to run: eprof run [options] PROGRAM [--] [ARG...].")
    try:
        return _run(options)
    except CollectError as err:
        say(str(err))
        _hint_at_misplaced_options(options)
        return err.code


def _run(options: argparse.Namespace) -> int:
    """Check options, choose the profiler, run the program under it and report: the exit code. Raises EprofError."""
    from eprof.commands.run.session import Session
    from eprof.commands.run.settings import prepare

    selector(options.kernel_name)  # what is no regular expression is refused before anything runs
    for pattern in options.mark:
        try:
            re.compile(pattern)
        except re.error as err:
            raise UsageError(f"--mark '{pattern}': is no regular expression ({err}).") from err
    report = _REPORTS.get(options.profiler, _ReportCommand())
    for name in report.refused:
        if getattr(options, name) != options.parser.get_default(name):
            raise UsageError(f"--{name.replace('_', '-')} means nothing to {options.profiler}, {report.why}.")
    nodes = _nodes(options)
    place, files = _places(options)
    outputs = []
    if files:
        of_files = argparse.Namespace(**{**vars(options), "output": files, "open": False})
        outputs = planned(of_files, _WRITTEN[report.command])
    setup = prepare(_settings(options, place, nodes))
    if has_trace(outputs, options):
        _check_trace(setup)
    options.costs = setup.costs
    if options.dry_run:
        return _dry_run(setup)
    if not options.quiet:
        say(_chosen(setup))
    session = Session(setup, Progress(options.quiet))
    try:
        status = session.run()
        for warning in dict.fromkeys(session.warnings):
            say(warning)
        if status:
            _hint_at_misplaced_options(options)
        return _report(options, session, outputs, status)
    except KeyboardInterrupt as err:
        number = ended_by(err)
        shown = shown_path(session.directory.path)
        again = f"eprof {report.command} {shown}"
        say(f"ended by {number.name}; the raw logs are kept in {shown}; `{again}` makes the report.")
        return 128 + number


def _check_trace(setup: "Setup") -> None:
    """Raises UsageError, before anything runs, if `-o trace` is asked of a profiler whose logs hold no launch times."""
    name = setup.collector.name
    signs = profilers.signs_of(name)
    if advice.LAUNCHES in signs.commands:
        return
    if setup.collector.processor != GPU:
        raise UsageError(f"A trace shows launches of a GPU's kernels; {name} runs no GPU. Leave trace.json out.")
    if setup.collector.simulated:
        raise UsageError(f"A trace shows when launches ran; {name} simulates a GPU without time. Leave trace.json out.")
    raise UsageError(
        f"A trace shows when each launch ran, which the logs of {name} do not tell. Leave trace.json out, trace the "
        f"program once more ({advice.commands(advice.LAUNCHES, [setup.tool.capability])}), and give both: "
        "eprof report RUN.eprof TRACE.csv -o trace.json."
    )


def _nodes(options: argparse.Namespace) -> "Nodes | None":
    """The simulated cluster and processes of `--cluster`; None for other profilers than simgrid. Raises UsageError."""
    if options.profiler != CLUSTERS:
        for name in ("cluster", "processes", "size"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} is for --profiler {CLUSTERS}, which simulates clusters.")
        return None
    if options.cluster is None or options.processes is None:
        raise UsageError(f"--profiler {CLUSTERS} needs a cluster and processes, such as --cluster gigabit-demo -n 16.")
    from eprof.clusters import cluster

    program = [process.resolve(options.program[0]), *options.program[1:]]
    size = mapped(problem_size, options.size)
    return cluster.nodes_to_simulate(cluster.load(options.cluster), program, options.processes, size)


def _settings(options: argparse.Namespace, place: str | None, nodes: "Nodes | None") -> "Settings":
    """The `Settings` of a run: options of the same names, and the run directory `place` and cluster `nodes`."""
    from eprof.commands.run.settings import Settings

    # Most settings are options of the same name.
    same = {name: value for name, value in vars(options).items() if name in Settings._fields}
    return Settings(
        **{**same, "program": tuple(options.program), "command_line": tuple(options.command_line)},
        kernels=tuple(options.kernel_name),
        place=place,
        timeout_s=options.timeout,
        marks=tuple(options.mark),
        nodes=nodes,
        stdout=2 if options.format and not options.output else 1,
    )


def _places(options: argparse.Namespace) -> tuple[str | None, list[str]]:
    """(run directory that -o names, or None; files that it names). Raises UsageError for two directories."""
    folders = []
    for name in options.output:
        suffix = Path(name).suffix.lower()
        has_no_format = not suffix and options.format is None
        if suffix == ".eprof" or name.endswith("/") or Path(name).is_dir() or has_no_format:
            folders.append(name)
    if not folders:
        return None, options.output
    if len(folders) > 1:
        raise UsageError(f"-o names two run directories: {folders[0]} and {folders[1]}; one run makes one.")
    return folders[0].rstrip("/"), [name for name in options.output if name not in folders]


def _chosen(setup: "Setup") -> str:
    """A sentence on which profiler is used and why, and why not those that were tried before it."""
    tool = setup.tool
    version = phrase(" {}", tool.version)
    kind, settings = "", setup.settings
    if settings.profiler == "auto":
        from eprof.commands.run.settings import uses_gpu

        whether = uses_gpu(process.resolve(settings.program[0]), settings.program[1:])
        kind = _KINDS[whether].format(name=settings.program[0])
    chosen = f"profiler {tool.name}{version}{kind}: {tool.why}"
    refused = "; ".join(f"{looked.name}: {looked.why}" for looked in setup.looked if looked.name != tool.name)
    return f"{chosen}{phrase(' (not {})', refused)}."


def _dry_run(setup: "Setup") -> int:
    """Print what `eprof run` would run: valid shell commands, and lines of explanation that begin with #."""
    plan = setup.plan()
    lines = [f"# {_chosen(setup)}"]
    for step in setup.steps(plan, Path(setup.settings.place or "RUN")):
        passes = when(step.passes != "1", f"; passes over each kernel: {step.passes}")
        lines.append(f"# {step.what}: {step.why}{passes}")
        words = [f"{key}={shlex.quote(value)}" for key, value in step.environment.items()]
        lines.append(" ".join([*words, shlex.join(step.command)]))
        if step.then is not None:
            each = when(EACH in step.then.command, f"# for each {step.then.source}: ")
            lines.append(f"{each}{shlex.join(step.then.command)} > {shlex.quote(str(step.then.log))}")
    lines += [f"# {counter}: {why}" for counter, why in plan.counters.items()]
    lines += [f"# {sentence}" for sentence in plan.missing]
    for line in lines:
        print(printable(line))
    return 0


def _report(options: argparse.Namespace, session: "Session", outputs: list[Output], status: int) -> int:
    """Report on what `eprof run` collected; the exit code is the program's, or 1 if there is nothing to report on."""
    from eprof.cli import dispatch

    home = session.directory.path
    shown = shown_path(home)
    if not session.has_kernels and options.profiler not in ALONE:
        where = when(home.is_dir(), f"the run is kept in {shown}") or f"{shown} is gone"
        say(f"Nothing was collected to report on; {where}.")
        return status or 1
    reported = _REPORTS.get(options.profiler, _ReportCommand())
    again = f"eprof {reported.command} {shown}"
    if options.profiler in ALONE and not (home / COMPONENTS).is_file():
        why = when(options.no_energy, "as asked") or "as no sensor can be read here"
        say(f"No power was measured, {why}; with the log of another meter: eprof timeline POWER --marks {shown}.")
        return status
    if options.no_report:
        say(f"run directory {shown}; `{again}` makes its report.")
        return status
    # What was collected stays in any case.
    reason = ""
    try:
        # The command that reports on such runs stands in its own folder. The page goes into the run directory too.
        dispatch.module(reported.command).deliver_run(shown, outputs, options, Path(shown) / "report.html")
    except LogError as err:
        reason = f"{str(err).rstrip('.')}. The raw logs are kept in {shown}/logs."
    except EprofError as err:
        reason = f"{str(err).rstrip('.')}. The raw logs are kept; `{again}` makes the report again."
    except (MemoryError, ImportError, RuntimeError, AttributeError) as err:
        short = shortage(err)
        if short is None:
            raise
        reason = f"{short}. The raw logs are kept; `{again}` makes the report again."
    if reason:
        say(reason)
        return status or 1
    if not options.quiet:
        say(f"run directory {shown}; `{again}` makes the report again, {reported.beside}.")
    return status


def _hint_at_misplaced_options(options: argparse.Namespace) -> None:
    """Say which options of eprof came after PROGRAM, so went to it; not if a `--` shows that this was meant."""
    known = [name for name in options.parser._option_string_actions if name.startswith("--")]
    misplaced = [word for word in options.program[1:] if word.partition("=")[0] in known]
    # Other programs have an `-o`, too, but only eprof writes this.
    misplaced += [
        f"-o {name}" for option, name in pairwise(options.program) if option == "-o" and name.endswith(".eprof")
    ]
    # A `--` shows that they are meant for PROGRAM.
    if misplaced and "--" not in options.command_line:
        say(f"{', '.join(misplaced)} came after PROGRAM and was given to it; options of eprof come before it.")
