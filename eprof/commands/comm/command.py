"""`eprof comm`: what waiting for messages costs, and from which size on blocking pays."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.errors import UsageError
from eprof.base.optional import mapped, only
from eprof.base.text import did_you_mean, pattern
from eprof.cli.options import Commands, Parser, clocks, command, expanded, positive, seconds
from eprof.cli.output import deliver, planned, refuse_existing, result_by_words, say
from eprof.clusters.cluster import DEFAULT
from eprof.commands.comm import messages

if TYPE_CHECKING:
    from eprof.commands.comm.document import Case
    from eprof.commands.comm.waits import Plan

_SIZE = pattern(r"(\d{1,10})\s*(B|kB|KiB|MB|MiB)?")
_UNITS = {"B": 1, "kB": 1000, "KiB": 1 << 10, "MB": 10**6, "MiB": 1 << 20}
_BLOCK = 1024  # bytes that a strided operation moves at once
_PRIMITIVES = ("put", "get", "accumulate", "strided")
_WAYS = ("polling", "blocking")
_MEASURED = ("openmpi", "mpich")


def add(commands: Commands) -> Parser:
    """Add `eprof comm` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "comm",
        "Tell what MPI processes take while they wait for messages, polling or blocked, at one clock or a lower one: "
        "latency, power, joules per MB, each against polling, and the size from which on blocking pays. In closed form "
        "from a table of the cluster; with --mpi simulated by SimGrid, or measured on this machine.",
        "eprof comm --cluster gigabit-demo",
        "eprof comm --mpi openmpi -n 2 -o comm.html",
        "eprof comm --messages program.mpiP --cluster gigabit-demo",
        "eprof comm --cluster gigabit-demo --shim libwait.so",
    )
    parser.choice("--mpi", (*_MEASURED, "simgrid"), "run the shift benchmark (default: closed form)")
    parser.value("--cluster", "NAME", f"a table of powers and times, or a file.toml ({DEFAULT})", default=DEFAULT)
    parser.value("--processes", "N", "of the benchmark (2)", type=positive, default=2, short="-n")
    parser.value("--sizes", "LIST", "1KiB,64KiB, or 1KiB..4MiB, which grows fourfold (this)", default="1KiB..4MiB")
    parser.value("--operations", "LIST", "of the benchmark (all)", default=",".join(_PRIMITIVES))
    parser.value("--waiting", "LIST", "polling,blocking (both)", default=",".join(_WAYS))
    parser.value(
        "--clock",
        "MHZ",
        "clocks: of the waits (all of the cluster's); on this machine of whole runs, held and then given back (none)",
    )
    parser.add_argument("--seconds", type=seconds, default=0.1, help="how long each measurement takes (0.1)")
    parser.value("--messages", "FILE", "price a program's messages: mpiP's report, or otf2-print")
    parser.value(
        "--shim",
        "FILE",
        "write the library that lets a program wait without spinning, with what pays here",
        type=expanded,
    )
    parser.add_output()
    return parser


def comm(options: argparse.Namespace) -> int:
    """Run `eprof comm`."""
    from eprof.clusters import cluster
    from eprof.commands.comm import document as comm_document
    from eprof.commands.comm import waits, words

    if options.messages and options.mpi:
        raise UsageError("--messages prices messages in closed form; leave --mpi out.")
    ways = _words(options.waiting, _WAYS, "--waiting")
    sizes = byte_sizes(options.sizes)
    outputs = planned(options)
    shim = mapped(Path, options.shim or None)
    if shim is not None:
        refuse_existing(shim, options.force)
        waits.compile_library(shim, only({options.mpi} & {*_MEASURED}))
    machine = cluster.load(options.cluster)
    clocks_mhz = clocks(options.clock, "1900,2330")
    case = comm_document.Case(ways, [], machine, options.processes, options.command_line)
    if options.mpi not in _MEASURED:
        asked = [machine.at(core_mhz) for core_mhz in clocks_mhz] or machine.clocks
        case = case._replace(clocks=[machine.default, *(clock for clock in asked if clock != machine.default)])
    if options.mpi in _MEASURED:
        measured = waits.on_this_machine(options.mpi, _plan(options, case, sizes), clocks_mhz, machine)
        document = comm_document.measured(case, *measured)
    elif options.mpi == "simgrid":
        simulated = waits.on_simgrid(_plan(options, case, sizes), case.clocks, machine)
        document = comm_document.simulated(case, *simulated)
    elif options.messages:
        sent, notes = messages.read_messages(options.messages)
        document = comm_document.of_program(case, Path(options.messages).name, sent, notes)
    else:
        document = comm_document.modelled(case, sizes)
    deliver(result_by_words(document, __package__, options.verbose), outputs, options)
    if shim is not None:
        told = " ".join(["env", f"LD_PRELOAD={shim.resolve()}", *words.settings(document)])
        say(f"wrote {shim}; use it: mpirun -n {case.processes} {told} PROGRAM")
    return 0


def _plan(options: argparse.Namespace, case: "Case", sizes: Sequence[int]) -> "Plan":
    """What the benchmark is to run. Raises UsageError: the options ask for what it cannot do."""
    from eprof.commands.comm.waits import Plan

    if case.processes < 2:
        raise UsageError("-n 1: the benchmark needs two processes or more.")
    for size in sizes:
        if size % 8 or (size > _BLOCK and size % _BLOCK):
            raise UsageError(f"--sizes: {size} bytes; the benchmark takes multiples of 8, above 1 KiB of 1 KiB.")
    primitives = _words(options.operations, _PRIMITIVES, "--operations")
    return Plan(primitives, sizes, case.ways, case.processes, options.seconds)


def byte_sizes(text: str) -> list[int]:
    """The sizes, in bytes, of "1KiB,64KiB" or "1KiB..4MiB", which grows fourfold. Raises UsageError."""
    sizes: list[int] = []
    for part in text.split(","):
        first, span, last = part.partition("..")
        size, most = _message_bytes(first), _message_bytes(last if span else first)
        if size > most:
            raise UsageError(f"--sizes {text}: goes from more to less.")
        while size <= most:
            sizes.append(size)
            size *= 4
    return sorted(set(sizes))


def _message_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = mapped(lambda match: int(match[1]) * _UNITS[match[2] or "B"], match) or 0
    if not 0 < size <= 1 << 30:
        raise UsageError(f"--sizes: `{text}` is no size from 1 B to 1024 MiB; write 1KiB,64KiB or 1KiB..4MiB.")
    return size


def _words(text: str, known: Sequence[str], option: str) -> list[str]:
    """The words of a comma-separated list, in the order of `known`. Raises UsageError for one that is not known."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in known:
            raise UsageError(f"{option} {text}: `{word}` is none of {', '.join(known)}.{did_you_mean(word, known)}")
    return [word for word in known if word in words]
