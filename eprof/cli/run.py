"""The door to `eprof run` and `eprof doctor`: their options, and what they print. `commands` calls it."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.base.errors import CollectError, EprofError, LogError, UsageError, shortage
from eprof.base.text import printable
from eprof.cli.options import add_output, add_pricing, positive, seconds, whole
from eprof.cli.output import ended_by

if TYPE_CHECKING:
    from eprof.collect.doctor import Check
    from eprof.collect.session import Session
    from eprof.planning.settings import Settings, Setup

Output = tuple[Path, str]
Deliver = Callable[..., int]
_Commands = Any  # argparse does not name the type of its subparsers in public
_PROFILERS = ("auto", "nvprof", "ncu", "oclgrind")
# The options of `run` that take a value: what follows them is not the program.
VALUED = frozenset(
    [
        "--costs",
        "--setting",
        "--efficiency",
        "--capability",
        "--profiler",
        "--repeat",
        "--timeout",
        "--launch-skip",
        "--launch-count",
        "--nvtx",
        "-k",
        "--kernel-name",
        "-o",
        "--output",
        "--format",
        "--config",
    ]
)


def add_run(commands: _Commands) -> argparse.ArgumentParser:
    """The options of `eprof run`; the program and its arguments are taken off before (`split`)."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="profile a program: counters, time, energy; with a GPU or on a simulated one",
        usage="eprof run [options] PROGRAM [--] [ARG...]",
        description="Run PROGRAM under the profiler of this machine, keep the raw logs in a run directory, and report "
        "where the energy went. Options of eprof come before PROGRAM; everything after it is PROGRAM's own.",
        epilog="Examples:\n  eprof run --costs jetson-tk1 ./fmm -- N=65536 Q=128\n"
        "  eprof run --profiler oclgrind samples/nbody/nbody -- N=1024\n"
        "  eprof run --dry-run ./fmm        what would be run, and why",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_pricing(parser, "the one made for this GPU; jetson-tk1 for the simulated device")
    _add_measuring(parser)
    add_output(
        parser,
        "the run directory, or a report: .html .json .csv .parquet .md .txt",
        "run directory and existing files",
    )
    parser.add_argument(
        "--no-report", action="store_true", help="collect only; `eprof report DIRECTORY` makes the report later"
    )
    return parser


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profiler", choices=_PROFILERS, default="auto", help="default: the best that is usable here")
    parser.add_argument(
        "--repeat", type=positive, default=1, metavar="N", help="measure time and energy N times: medians and spreads"
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="stop PROGRAM after S seconds")
    parser.add_argument(
        "--launch-skip", type=whole, default=0, metavar="N", help="do not count the first N kernel launches (ncu)"
    )
    parser.add_argument("--launch-count", type=positive, metavar="N", help="count N kernel launches only (ncu)")
    parser.add_argument("--nvtx", metavar="NAME", help="count only inside this NVTX range (ncu)")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the commands, the passes and what each counter is for; run nothing",
    )
    parser.add_argument("--time-only", action="store_true", help="measure time, no counters and no energy")
    parser.add_argument("--no-energy", action="store_true", help="do not measure energy")
    parser.add_argument(
        "--host-energy", action="store_true", help="measure the processor's energy (RAPL) instead of the GPU's"
    )
    parser.add_argument(
        "--lock-clocks", action="store_true", help="let ncu lock the clocks to their base (it does not otherwise)"
    )


def add_doctor(commands: _Commands) -> argparse.ArgumentParser:
    """The options of `eprof doctor`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="what this machine can do, and how to mend what is missing",
        description="Look for profilers, driver, GPU, counter permission, power meter, clocks, the simulated device "
        "and a cost table, and say for each problem what mends it. Exit code 0 if `eprof run` can work here, else 1.",
        allow_abbrev=False,
    )
    parser.add_argument("--format", choices=("txt", "json"), default="txt", help="of standard output")
    return parser


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of `eprof run` up to PROGRAM, and PROGRAM with its arguments; one `--` beside PROGRAM is dropped."""
    index = 1
    while index < len(words):
        word = words[index]
        if word == "--":
            return list(words[:index]), list(words[index + 1 :])
        if not word.startswith("-") or word == "-":
            rest = list(words[index + 1 :])
            return list(words[:index]), [word, *(rest[1:] if rest[:1] == ["--"] else rest)]
        index += 2 if word in VALUED else 1
    return list(words), []


def forgotten(program: Sequence[str], words: Sequence[str]) -> list[str]:
    """The options of eprof that stand behind PROGRAM without a `--` that would show that they are meant for it."""
    if "--" in words:
        return []
    known = VALUED | {
        "--dry-run",
        "--time-only",
        "--no-energy",
        "--host-energy",
        "--lock-clocks",
        "--no-report",
        "--force",
        "--open",
        "--quiet",
        "--verbose",
        "--no-color",
    }
    return [one for one in program[1:] if one.startswith("--") and one.partition("=")[0] in known]


def run(options: argparse.Namespace, outputs: Callable[[argparse.Namespace], list[Output]], deliver: Deliver) -> int:
    """`eprof run`. The exit code is the program's own, or 126, 127, 128+n, or 1 where nothing could be collected."""
    if not options.program:
        raise UsageError("Say which program to run: eprof run [options] PROGRAM [--] [ARG...].")
    try:
        return _run(options, outputs, deliver)
    except CollectError as err:
        _say(str(err))
        _hint(options)
        return err.code


def _run(options: argparse.Namespace, outputs: Callable[[argparse.Namespace], list[Output]], deliver: Deliver) -> int:
    from eprof.planning import settings as running

    _check_names(options.kernel_name)
    place, files = _places(options)
    wanted = outputs(argparse.Namespace(**{**vars(options), "output": files, "open": False})) if files else []
    setup = running.prepare(_settings(options, place))
    options.costs = setup.costs
    if options.dry_run:
        return _dry_run(setup)
    if not options.quiet:
        _say(_chosen(setup))
    session = running.session(setup, _show if sys.stderr.isatty() and not options.quiet else None)
    try:
        status = session.run()
        for warning in dict.fromkeys(session.warnings):
            _say(warning)
        if status:
            _hint(options)
        return _report(options, session, wanted, deliver, status)
    except KeyboardInterrupt as err:
        number = ended_by(err)
        shown = _short(Path(session.directory.path))
        _say(f"ended by {number.name}; the raw logs are kept in {shown}; `eprof report {shown}` makes the report.")
        return 128 + number


def _check_names(names: Sequence[str]) -> None:
    """Raises UsageError for what is no regular expression, before anything runs."""
    if names:
        from eprof.base.kernels import selector

        selector(names)


def _settings(options: argparse.Namespace, place: str | None) -> "Settings":
    from eprof.planning.settings import Settings

    return Settings(
        program=tuple(options.program),
        profiler=options.profiler,
        costs=options.costs,
        setting=options.setting,
        efficiency=options.efficiency,
        capability=options.capability,
        kernels=tuple(options.kernel_name),
        place=place,
        force=options.force,
        repeat=options.repeat,
        timeout_s=options.timeout,
        launch_skip=options.launch_skip,
        launch_count=options.launch_count,
        nvtx=options.nvtx,
        time_only=options.time_only,
        no_energy=options.no_energy,
        host_energy=options.host_energy,
        lock_clocks=options.lock_clocks,
        command_line=tuple(options.command_line),
        stdout=2 if options.format and not options.output else 1,
    )


def _places(options: argparse.Namespace) -> tuple[str | None, list[str]]:
    """The run directory that -o names, if any, and the files that it names. Raises UsageError for two directories."""
    folders = [name for name in options.output if _is_folder(name, options.format)]
    if len(folders) > 1:
        raise UsageError(f"-o names two run directories: {folders[0]} and {folders[1]}; one run makes one.")
    return (folders[0].rstrip("/") if folders else None), [name for name in options.output if name not in folders]


def _is_folder(name: str, kind: str | None) -> bool:
    suffix = Path(name).suffix.lower()
    return suffix == ".eprof" or name.endswith("/") or Path(name).is_dir() or (not suffix and kind is None)


def _chosen(setup: "Setup") -> str:
    """Which profiler is used and why, and why not the ones before it."""
    tool = setup.tool
    others = "; ".join(f"{one.name}: {one.why}" for one in setup.looked if one.name != tool.name)
    version = f" {tool.version}" if tool.version else ""
    return f"profiler {tool.name}{version}: {tool.why}" + (f" (not {others})" if others else "") + "."


def _dry_run(setup: "Setup") -> int:
    """Print what would be run: valid shell commands, and lines of explanation that begin with #."""
    plan = setup.plan()
    place = Path(setup.settings.place or "RUN")
    print(printable(f"# {_chosen(setup)}"))
    for step in setup.steps(plan, place):
        print(printable(f"# {step.what}: {step.why}; each kernel runs (passes): {step.passes}"))
        words = [f"{key}={shlex.quote(value)}" for key, value in step.environment.items()]
        print(printable(" ".join([*words, shlex.join(step.command)])))
        if step.then is not None:
            print(printable(f"{shlex.join(step.then.command)} > {shlex.quote(str(step.then.log))}"))
    for counter, why in plan.counters.items():
        print(printable(f"# {counter}: {why}"))
    for sentence in plan.missing:
        print(printable(f"# {sentence}"))
    return 0


def _report(
    options: argparse.Namespace, session: "Session", outputs: list[Output], deliver: Deliver, status: int
) -> int:
    """Report on what was collected; the exit code is the program's, or 1 if there is nothing to report on."""
    home = Path(session.directory.path)
    shown = _short(home)
    if not session.has_kernels:
        where = f"the run is kept in {shown}" if home.is_dir() else f"{shown} is gone"
        _say(f"Nothing was collected to report on; {where}.")
        return status or 1
    if options.no_report:
        _say(f"run directory {shown}; `eprof report {shown}` makes its report.")
        return status
    from eprof import api

    try:
        energy = api.load(
            home, capability=options.capability, kernels=options.kernel_name, command_line=options.command_line
        ).energy(options.costs, setting=options.setting, efficiency=options.efficiency)
        deliver(energy, outputs, options, page=Path(shown) / "report.html")
    except LogError as err:
        _say(f"{str(err).rstrip('.')}. The raw logs are kept in {shown}/logs.")
        return status or 1
    except EprofError as err:
        _say(f"{str(err).rstrip('.')}. The raw logs are kept; `eprof report {shown}` makes the report again.")
        return status or 1
    except (MemoryError, ImportError, RuntimeError, AttributeError) as err:
        short = shortage(err)
        if short is None:
            raise
        _say(f"{short}. The raw logs are kept; `eprof report {shown}` makes the report again.")
        return status or 1
    if not options.quiet:
        _say(f"run directory {shown}; `eprof report {shown}` makes the report again, with other costs if asked.")
    return status


def _short(path: Path) -> str:
    """A path as one would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _say(sentence: str) -> None:
    print(printable(f"eprof: {sentence}"), file=sys.stderr)


def _show(line: str) -> None:
    """A line of progress in place; an empty one wipes it."""
    # A line that wraps could not be wiped.
    width = os.get_terminal_size(2).columns or 80
    print(f"\r\x1b[K{printable(line)[: width - 1]}", end="", file=sys.stderr, flush=True)


def _hint(options: argparse.Namespace) -> None:
    """Where options of eprof stand behind PROGRAM, say so: they were the program's."""
    behind = forgotten(options.program, options.command_line)
    if behind:
        _say(f"{', '.join(behind)} stood behind PROGRAM and was given to it; options of eprof come before it.")


def doctor(options: argparse.Namespace) -> int:
    """`eprof doctor`. Exit code 0 if `eprof run` can work here, else 1."""
    from eprof.collect import doctor as examination

    checks = examination.examine()
    checks.insert(-1, _cost_check())
    if options.format == "json":
        import json

        print(json.dumps({"schema": "eprof.doctor/1", "checks": [one.as_data() for one in checks]}, indent=1))
    else:
        for one in checks:
            print(printable(one.line()))
            if one.remedy:
                print(printable(f"      {one.remedy}"))
    return 0 if examination.can_run(checks) else 1


def _cost_check() -> "Check":
    """Whether a cost table was made for this GPU."""
    from eprof import costs
    from eprof.collect.doctor import Check
    from eprof.collect.tools import gpu
    from eprof.planning.settings import SIMULATED_COSTS

    name, _ = gpu()
    table = costs.for_device(name) if name is not None else None
    if table is not None:
        return Check("cost table", True, f"{table.name} is made for {name}")
    others = ", ".join(costs.tables())
    if name is None:
        return Check(
            "cost table", None, f"no GPU to price; the simulated device takes {SIMULATED_COSTS}; there are {others}"
        )
    return Check(
        "cost table",
        False,
        f"none is made for {name}; there are {others}",
        "eprof run --costs NAME PROGRAM prices it as that board; a table of your own is one file (docs/costs.md)",
    )
