"""The document `eprof.comm/1`, typed: what each way to wait takes, against polling, and from which size on it pays."""

import math
import os
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product, takewhile
from operator import or_
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from eprof.base.optional import either, gathered, ratio
from eprof.base.text import phrase
from eprof.base.vocabulary import Mark, mark_names
from eprof.clusters.cluster import Clock, Cluster
from eprof.clusters.cluster import about as cluster_about
from eprof.commands.comm.messages import Sent
from eprof.commands.comm.waits import BLOCKING, MESSAGE, POLLING, Sample, break_even_s, closed_form, waiting_w
from eprof.profile.schema import Document

SCHEMA = "eprof.comm/1"
MODELLED, SIMULATED, MEASURED = "modelled", "simulated", "measured"


class Relative(Struct, frozen=True):
    """A row as factors of polling at the first clock with the same operation and size. j_per_mb = latency x power."""

    latency: float
    power: float
    j_per_mb: float


class Row(Struct, frozen=True, kw_only=True):
    """MPI operations of one kind and size, waited for in one way; core_mhz None: the clock in force, left alone.

    latency_s, energy_j: of one operation of one process; power_w: of one process's share of the machine, or of what the
    cluster's table is of. j_per_mb: joules per 10^6 bytes. busy: the share of its time that a processor worked.
    spread: how far the repeats of this, or of polling if more, are apart, as a share of their latency.
    """

    primitive: str
    bytes: float
    waiting: str
    core_mhz: float | None
    operations: int
    latency_s: float
    power_w: float | None
    energy_j: float | None
    j_per_mb: float | None
    busy: float | None
    spread: float
    relative: Relative | None
    marks: list[str] = field(default_factory=list)


class Threshold(Struct, frozen=True, kw_only=True):
    """From how many bytes on a way to wait pays: fewer joules, latency within 5 % of polling; because: why at none."""

    primitive: str
    waiting: str
    core_mhz: float | None
    bytes: float | None
    because: str | None = None


class Limit(Struct, frozen=True, kw_only=True):
    """The J/MB of a way to wait as messages grow without end, as a share of polling's at the first clock."""

    waiting: str
    core_mhz: float
    j_per_mb: float


class Total(Struct, frozen=True, kw_only=True):
    """Time and joules of all messages of a program, waited for in one way at one clock."""

    waiting: str
    core_mhz: float | None
    messages: int
    bytes: float
    time_s: float
    energy_j: float
    marks: list[str] = field(default_factory=list)


class Comm(Document, frozen=True, kw_only=True):
    """The document of `eprof comm`. kind: "modelled", "simulated" or "measured". joules_from: what saw or priced them.

    break_even_s: the time of a message from which on blocking takes fewer joules. program: whose messages these are.
    """

    schema: str = SCHEMA
    kind: str
    mpi: str | None
    processes: int | None
    joules_from: str
    cluster: dict[str, Any] | None
    program: str | None
    rows: list[Row]
    thresholds: list[Threshold]
    break_even_s: float | None = None
    limits: list[Limit] = field(default_factory=list)
    totals: list[Total] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def rows_of(self, threshold: Threshold) -> list[Row]:
        """The rows that a threshold was found from: of its operation, way to wait and clock."""
        way = (threshold.primitive, threshold.waiting, threshold.core_mhz)
        return [row for row in self.rows if (row.primitive, row.waiting, row.core_mhz) == way]

    def records(self) -> Iterator[dict[str, Any]]:
        """A dictionary a row, for the CSV; `relative` becomes a column for each of its fields."""
        for row in self.rows:
            cells = {**asdict(row), "marks": " ".join(row.marks)}
            relative = cells.pop("relative")
            if relative is not None:
                cells |= {f"relative_{name}": value for name, value in asdict(relative).items()}
            yield cells


_LATER = 1.05  # as late a message may come: [S] 6.4.4 prints "less than 5 %"
_OF_SAMPLE = ("primitive", "waiting", "core_mhz", "operations", "latency_s", "energy_j", "busy")


class Case(NamedTuple):
    """What `eprof comm` was asked: ways to wait, clocks (the cluster's default first), cluster, number of processes."""

    ways: Sequence[str]
    clocks: Sequence[Clock]
    cluster: Cluster
    processes: int
    command_line: Sequence[str] = ()


def modelled(case: Case, sizes: Sequence[int]) -> Comm:
    """The document `eprof.comm/1` of one message of each size in bytes, in closed form. Raises CostError."""
    return of_program(case, None, [Sent(MESSAGE, 1, size) for size in sizes], [])


def of_program(case: Case, program: str | None, sent: Sequence[Sent], notes: Sequence[str]) -> Comm:
    """The document `eprof.comm/1` of messages `sent` by a program (None: by none), in closed form. Raises CostError."""
    samples = list(closed_form(case.cluster, sent, case.ways, case.clocks))
    what = phrase("The messages of {}", program) or "Waiting for messages"
    ways = gathered(((sample.waiting, sample.core_mhz), sample) for sample in samples)
    totals = [
        Total(
            waiting=waiting,
            core_mhz=core_mhz,
            messages=sum(sample.operations for sample in same),
            bytes=math.fsum(sample.operations * sample.size for sample in same),
            time_s=math.fsum(sample.operations * sample.latency_s for sample in same),
            energy_j=math.fsum(sample.operations * (sample.energy_j or 0.0) for sample in same),
            marks=mark_names(reduce(or_, (sample.marks for sample in same))),
        )
        for (waiting, core_mhz), same in ways.items()
        if program
    ]
    return _document(
        case,
        samples,
        title=f"{what} on {case.cluster.name}",
        processes=None,
        kind=MODELLED,
        joules_from=f"powers and times of {case.cluster.name} ({case.cluster.basis})",
        program=program,
        totals=totals,
        warnings=[*notes, *case.cluster.warnings],
    )


def simulated(case: Case, samples: Sequence[Sample], mpi: str) -> Comm:
    """The document `eprof.comm/1` of what SimGrid simulated. mpi: SimGrid's version."""
    strided = "SimGrid simulates no copies and no caches: strided operations take what contiguous ones do."
    return _document(
        case,
        samples,
        title=f"Waiting for messages on {case.cluster.name}",
        kind=SIMULATED,
        mpi=mpi,
        joules_from=f"{mpi}, with the powers of {case.cluster.name} ({case.cluster.basis})",
        warnings=[*case.cluster.warnings, strided],
    )


def measured(case: Case, samples: Sequence[Sample], mpi: str, joules_from: str) -> Comm:
    """The document `eprof.comm/1` of what was measured on this machine. joules_from: a meter, or assumed powers."""
    notes = []
    if any(Mark.ASSUMED in sample.marks for sample in samples):
        per_process = f"one {case.cluster.unit} of {case.cluster.name} a process (--cluster)"
        notes.append(
            f"No meter: joules are processor time at assumed powers, {per_process}; latency and processor time are "
            "measured."
        )
    if any(sample.energy_j is None for sample in samples):
        still = "The meter's counter did not move in some rows"
        notes.append(f"{still}: their joules are not known; measure longer (--seconds).")
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    if case.processes > cores:
        notes.append(f"{case.processes} processes share {cores} cores: polling ones keep each other from working.")
    elif load > cores + 0.5:
        notes.append(f"Other programs keep the {cores} cores busy (load {load:.1f}): latencies are theirs, too.")
    title = f"Waiting for messages under {mpi}"
    return _document(case, samples, title=title, kind=MEASURED, mpi=mpi, joules_from=joules_from, warnings=notes)


def _document(case: Case, samples: Sequence[Sample], **about: object) -> Comm:
    """The document `eprof.comm/1` of samples; with break-even time and limits unless they were measured."""
    rows = list(_rows(samples))
    made = Comm(
        command_line=list(case.command_line),
        cluster=cluster_about(case.cluster),
        rows=rows,
        thresholds=list(_thresholds(rows)),
        **{"mpi": None, "program": None, "processes": case.processes, **about},  # type: ignore[arg-type]
    )
    if made.kind == MEASURED:
        return made
    break_even = break_even_s(case.cluster) if BLOCKING in case.ways else None
    polling_w = case.cluster.default.busy_w
    limits = [
        Limit(waiting=way, core_mhz=clock.core_mhz, j_per_mb=either(ratio(waiting_w(way, clock), polling_w), 1.0))
        for clock, way in product(case.clocks, case.ways)
        if (way, clock) != (POLLING, case.cluster.default)
    ]
    return replace(made, break_even_s=break_even, limits=limits)


def _rows(samples: Sequence[Sample]) -> Iterator[Row]:
    """Rows of the document `eprof.comm/1`: each sample beside polling at the first clock."""
    base_way = POLLING, next((sample.core_mhz for sample in samples), None)
    of_base = [sample for sample in samples if (sample.waiting, sample.core_mhz) == base_way]
    polled = {(sample.primitive, sample.size): sample for sample in of_base}
    for sample in samples:
        base = polled.get((sample.primitive, sample.size))
        relative = None
        if base is not None and base.energy_j and base.latency_s and sample.energy_j:
            # Of equal bytes, J/MB change as joules do.
            latency, joules = sample.latency_s / base.latency_s, sample.energy_j / base.energy_j
            relative = Relative(latency, joules / latency, joules)
        yield Row(
            **{name: getattr(sample, name) for name in _OF_SAMPLE},
            bytes=sample.size,
            power_w=ratio(sample.energy_j, sample.latency_s),
            j_per_mb=ratio(sample.energy_j, sample.size / 1e6),
            spread=max(sample.spread, getattr(base, "spread", 0.0)),
            relative=relative,
            marks=mark_names(sample.marks),
        )


def _thresholds(rows: Sequence[Row]) -> Iterator[Threshold]:
    """Yield a threshold for each MPI operation and way to wait but polling at the first clock."""
    ways = gathered(((row.primitive, row.waiting, row.core_mhz), row) for row in rows)
    for (primitive, waiting, core_mhz), same in ways.items():
        if (waiting, core_mhz) == (POLLING, rows[0].core_mhz):
            continue
        # The least size from which on all pay; else why the largest does not.
        largest_first = sorted(same, key=lambda row: -row.bytes)
        paying = list(takewhile(lambda row: _why_not(row) is None, largest_first))
        least = min((row.bytes for row in paying), default=None)
        because = _why_not(largest_first[0])
        yield Threshold(primitive=primitive, waiting=waiting, core_mhz=core_mhz, bytes=least, because=because)


def _why_not(row: Row) -> str | None:
    """Why waiting as in `row` does not pay against polling; None: it does."""
    if row.relative is None:
        return "polling, or joules, to compare with are not known"
    if row.relative.j_per_mb >= 1:
        return "it takes no fewer joules"
    if row.relative.j_per_mb >= 1 - row.spread:
        return "repeats differ by more than it saves"
    if row.relative.latency > _LATER:
        return "messages come more than 5 % later"
    return None
