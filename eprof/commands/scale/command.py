"""`eprof scale`: on how many nodes, and at which clock, a parallel program takes least energy, and why."""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.errors import UsageError
from eprof.base.optional import mapped
from eprof.base.text import few, pattern
from eprof.cli.options import Commands, Parser, clocks, command, matching, problem_size, seconds, watts
from eprof.cli.output import Output, deliver, planned, result_by_words
from eprof.clusters.cluster import DEFAULT

if TYPE_CHECKING:
    from eprof.commands.scale.document import Asked, Scale

_OBJECTIVES = ("energy", "edp", "e2d", "ed2p")
_RANGE = pattern(r"(\d{1,9})\.\.(\d{1,9})")
_MOST = 10_000_000


def add(commands: Commands) -> Parser:
    """Add `eprof scale` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "scale",
        "Tell at which node count and clock a parallel program takes least energy, how its problem must grow to keep "
        "its energy efficiency, and why that falls: from measured runs, or from what the program counts and a table of "
        "the cluster. Needs no GPU.",
        "eprof scale runs.csv -o scale.html",
        "eprof scale --program ft --size 2^25 -p 1..128 --clock 2400,2800",
        "eprof scale --program romm --size 1000 -p 2..64 --keep 0.9",
        "eprof scale runs.csv --program ft --cluster gigabit-demo --predict 32,64",
    )
    runs = (
        "tables of runs: program,size,processes,core_mhz,time_s,energy_j; or sacct -P; of GPU clusters a folder a "
        "node count, of run directories or logs by rank, or a report in JSON; `n4=` before it: of four nodes"
    )
    parser.add_inputs(runs, metavar="RUNS", nargs="*")
    model = parser.group("model")
    counts = "what the program counts, one of `counters/programs` or a file.toml"
    model.value("--program", "NAME", counts, dest="counted")
    model.value("--cluster", "NAME", f"a table of powers and times, or a file.toml ({DEFAULT})")
    model.value("--size", "N", "the size of the problem, such as 2^25")
    model.value("--processors", "LIST", "node counts: 1,2,4 or 1..128, which doubles", short="-p")
    model.value("--clock", "MHZ", "core clocks: 2400,2800 (all of the cluster's)")
    model.choice("--waiting", ("interrupt", "poll"), "what processors do while messages travel")
    model.value("--keep", "EE", "the size that keeps this energy efficiency on each node count", type=float)
    model.choice("--by", ("size", "clock"), "what may change to keep it (size)", default="size")
    model.value("--predict", "LIST", "node counts to predict by a fit of the program to the other RUNS")
    ranks = parser.group("ranks on GPUs")
    parser.add_pricing("the one made for the GPU")
    ranks.value("--rank", "REGEX", r"where paths tell the rank, e.g. 'rank(\d+)'")
    ranks.value("--host-power", "W", "of a node without its GPUs", dest="host_w", type=watts)
    ranks.value("--network-power", "W", "of its share of the network", dest="network_w", type=watts)
    best = parser.group("what is best")
    best.value("--objective", "NAME", "energy, edp, e2d, ed2p, time, ed0.5p... (the first four)")
    best.value("--deadline", "S", "the longest time that is allowed", type=seconds)
    best.value("--power-limit", "W", "the highest mean power that is allowed", type=watts)
    parser.add_output()
    return parser


def scale(options: argparse.Namespace) -> int:
    """Run `eprof scale`."""
    from eprof.commands.scale import document as scale_document
    from eprof.lab.objective import parse

    names = [*filter(None, [options.objective])] or _OBJECTIVES
    if options.keep is not None and not 0 < options.keep < 1:
        raise UsageError(f"--keep {options.keep:g}: an energy efficiency is between 0 and 1.")
    asked = scale_document.Asked(
        objectives=[parse(name, None, options.power_limit) for name in names],
        keep=options.keep,
        keep_by=options.by,
        deadline_s=options.deadline,
        predict=mapped(_counts, options.predict or None, "--predict") or (),
        command_line=options.command_line,
    )
    outputs = planned(options)
    document = _measured(options, asked) if options.inputs else _modelled(options, asked)
    deliver(result_by_words(document, __package__, options.verbose), outputs, options)
    return 0


def _measured(options: argparse.Namespace, asked: "Asked") -> "Scale":
    """The document of measured RUNS, with a fit where --program is given. Raises UsageError, LogError."""
    from msgspec.structs import replace

    from eprof.base.resources import cores
    from eprof.base.vocabulary import Mark
    from eprof.cli.output import Progress
    from eprof.clusters import cluster
    from eprof.commands.scale import document as scale_document
    from eprof.commands.scale import measured_runs
    from eprof.commands.scale import model as scale_model
    from eprof.commands.scale.gpu_ranks import Reading
    from eprof.profile import api
    from eprof.profile.profile import Profile

    if options.predict and not options.counted:
        raise UsageError("--predict needs --program, which is fitted to the runs.")
    if options.keep is not None:
        raise UsageError("--keep is asked of a model; leave the RUNS out and say --program and --size.")
    paths = matching(options.inputs)
    beside = mapped(cluster.beside, options.cluster or None) or cluster.Beside()
    for name in ("host_w", "network_w"):
        power = getattr(options, name)
        if power is None:
            continue
        if not 0 <= power < _MOST:
            raise UsageError(f"--{name.removesuffix('_w')}-power {power:g}: must be a power in W from 0 on.")
        beside = replace(beside, **{name: power}, marks=beside.marks | Mark.ASSUMED)
    load = partial(api.load, capability=options.capability, workers=cores(), progress=Progress(options.quiet).reading)
    pricing = {name: getattr(options, name) for name in ("costs", "setting", "efficiency")}
    reading = Reading(beside, options.rank, load, partial(Profile.energy, **pricing, to_meter=False, estimate=False))
    runs, notes = measured_runs.read(paths, reading)
    model = None
    if options.counted:
        model = cluster.load(options.cluster or DEFAULT), scale_model.load(options.counted)
    return scale_document.measured(runs, notes, few(paths, 2), asked, model, reading.beside)


def deliver_run(home: str, outputs: list[Output], options: argparse.Namespace, page: Path) -> None:
    """Report on the simulated runs of one run directory, and write `outputs`. page: HTML to write in any case."""
    from eprof.commands.scale import document as scale_document
    from eprof.commands.scale import measured_runs
    from eprof.lab.objective import parse

    runs, notes = measured_runs.read([home])
    asked = scale_document.Asked([parse(name) for name in _OBJECTIVES], command_line=options.command_line)
    document = scale_document.measured(runs, notes, home, asked)
    deliver(result_by_words(document, __package__, options.verbose), outputs, options, page)


def _modelled(options: argparse.Namespace, asked: "Asked") -> "Scale":
    """The document of --program modelled in closed form, of --size, on -p processors. Raises UsageError."""
    from eprof.clusters import cluster
    from eprof.commands.scale import document as scale_document
    from eprof.commands.scale import model

    if not options.counted:
        raise UsageError("Give tables of RUNS, or a program to model: --program ft --size 2^25 -p 1..128.")
    if options.size is None or options.processors is None:
        raise UsageError("A model needs --size and -p, such as --size 2^25 -p 1..128.")
    machine = cluster.load(options.cluster or DEFAULT)
    asked_mhz = clocks(options.clock, "2400,2800")
    chosen = [machine.at(core_mhz) for core_mhz in asked_mhz] or list(machine.clocks)
    program, size = model.load(options.counted), problem_size(options.size)
    counts = _counts(options.processors, "-p")
    case = model.Case(machine, program, size, counts, chosen, options.waiting or machine.waiting)
    return scale_document.modelled(case, asked)


def _counts(text: str, option: str) -> list[int]:
    """The node counts of "1,2,4" or "1..128", which doubles, each once, ascending. Raises UsageError."""
    counts: list[int] = []
    for part in text.split(","):
        span = _RANGE.fullmatch(part.strip())
        if span:
            first, last = int(span[1]), int(span[2])
            if first > last:
                raise UsageError(f"{option} {text}: `{part}` goes from more to less.")
            counts += [first << step for step in range(last.bit_length()) if 0 < first << step <= last]
        elif part.strip().isdecimal() and len(part.strip()) < 10:
            counts.append(int(part))
        else:
            why = "is no whole number of nodes; write 1,2,4 or 1..128, which doubles."
            raise UsageError(f"{option} {text}: `{part}` {why}")
    if not counts or not all(0 < count <= _MOST for count in counts):
        raise UsageError(f"{option} {text}: node counts go from 1 to {_MOST}.")
    return sorted(set(counts))
