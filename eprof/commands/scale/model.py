"""Iso-energy-efficiency in closed form ([S] 4, docs/scale.md): what a program takes on p processors, and why.

It is eprof's own sum, E = sum_k n_k eps_k + pi0 T, a row a cause: the program as it is on one processor, then what p of
them add. Times come from the counts, t_k a count; energies of a count are its time above idle, t_k dP_k; pi0 is the
power of an idle processor, and T the processors' time added up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Columns, Floats
from eprof.base.marks import NONE, Mark
from eprof.base.vocabulary import CLUSTER_COUNTS
from eprof.clusters.cluster import POLL, Clock, Cluster
from eprof.commands.scale.program import Program, Work
from eprof.costs import Charge, Costs, Setting
from eprof.counts.counts import Counts
from eprof.energy.attribution import attribute
from eprof.logs.rows.log import KernelRows

BASE = "base"
# What p processors take more than one, E0 by cause.
CAUSES = ("compute", "memory", "messages", "bytes", "waiting")
_ROWS = (BASE, *CAUSES)
_WORDS = tuple(CLUSTER_COUNTS)
_PJ = 1e12


class Point(Struct, frozen=True):
    """A program of size n on p processors at a clock.

    time_s: of all processors together, over p: even work (2.10). base_j: E1, of one processor (4.12). energy_j: Ep
    (4.14). overhead_j: E0 = Ep - E1 by cause (4.17). efficiency: EE = E1/Ep (4.21), above 1 where E0 is negative.
    """

    processors: int
    size: float
    core_mhz: float
    time_s: float
    base_s: float
    base_j: float
    energy_j: float
    overhead_j: dict[str, float]
    network_s: float

    @property
    def efficiency(self) -> float | None:
        """EE = E1/Ep; None where nothing takes energy."""
        return self.base_j / self.energy_j if self.energy_j else None


def points(
    cluster: Cluster, program: Program, sizes: Sequence[float], processors: Sequence[int], clock: Clock, waiting: str
) -> list[Point]:
    """The modelled points: every size on every number of processors at one clock.

    Raises UsageError: the program has no counts there.
    """
    asked = [(size, number, program.work(size, number)) for size in sizes for number in processors]
    joules, seconds = _priced(cluster, [work for *_, work in asked], clock, waiting)
    made = []
    for (size, number, work), joules_of, seconds_of in zip(asked, joules, seconds, strict=True):
        made.append(
            Point(
                processors=number,
                size=size,
                core_mhz=clock.core_mhz,
                time_s=float(seconds_of.sum()) / number,
                base_s=float(seconds_of[0]),
                base_j=float(joules_of[0]),
                energy_j=float(joules_of.sum()),
                overhead_j=dict(zip(CAUSES, joules_of[1:].tolist(), strict=True)),
                network_s=sum(_network_s(cluster, work)),
            )
        )
    return made


def efficiency(cluster: Cluster, work: Work, clock: Clock, waiting: str) -> float:
    """EE of one program; NaN where nothing takes energy."""
    joules, _ = _priced(cluster, [work], clock, waiting)
    total = joules.sum()
    return float(joules[0, 0] / total) if total else np.nan


def _priced(cluster: Cluster, works: Sequence[Work], clock: Clock, waiting: str) -> tuple[Floats, Floats]:
    """Joules and seconds in the model by cause, (n_works, n_causes) each: E1 first, then what E0 is made of."""
    tables = [_counts(cluster, work, clock, waiting) for work in works]
    amounts = np.concatenate([amounts for amounts, _ in tables])
    seconds = np.concatenate([seconds for _, seconds in tables])
    causes = np.array(_ROWS * len(works), dtype=object)
    zeros = np.zeros(len(seconds), dtype=np.int64)
    rows = KernelRows(device=np.full(len(seconds), cluster.name), kernel=causes, launches=zeros + 1, time_s=seconds,
                      time_marks=zeros)  # fmt: skip
    marks = Columns(_WORDS, np.zeros(amounts.shape, dtype=np.int64))
    split = attribute(Counts(rows, Columns(_WORDS, amounts), marks, {}, "served"), costs(cluster, clock))
    joules: Floats = np.nansum(split.joules.values, axis=1)
    return joules.reshape(len(works), len(_ROWS)), seconds.reshape(len(works), len(_ROWS))


def _counts(cluster: Cluster, work: Work, clock: Clock, waiting: str) -> tuple[Floats, Floats]:
    """Amounts in the model, (n_causes, n_words), and the seconds of all processors of each cause, (n_causes,)."""
    on_chip_s = cluster.on_chip_s(clock)
    start_s, transfer_s = _network_s(cluster, work)
    spinning_s = work.alpha * (start_s + transfer_s) if waiting == POLL else 0.0
    amounts = [
        [work.on_chip, work.off_chip, 0.0, 0.0, 0.0],
        [work.on_chip_extra, 0.0, 0.0, 0.0, 0.0],
        [0.0, work.off_chip_extra, 0.0, 0.0, 0.0],
        [0.0, 0.0, work.messages, 0.0, 0.0],
        [0.0, 0.0, 0.0, work.network_bytes, 0.0],
        [0.0, 0.0, 0.0, 0.0, spinning_s],
    ]
    seconds = [
        work.on_chip * on_chip_s + work.off_chip * cluster.off_chip_s,
        work.on_chip_extra * on_chip_s,
        work.off_chip_extra * cluster.off_chip_s,
        start_s,
        transfer_s,
        0.0,
    ]
    return np.array(amounts), work.alpha * np.array(seconds)


def _network_s(cluster: Cluster, work: Work) -> tuple[float, float]:
    """T_net = M t_s + B t_w (4.16) in its two parts, where a message of B/M bytes takes what the table says."""
    if not work.messages:
        return 0.0, 0.0
    start_s = work.messages * cluster.messages.start_s()
    whole_s = work.messages * cluster.messages.of_size(work.network_bytes / work.messages)
    return start_s, whole_s - start_s


def costs(cluster: Cluster, clock: Clock) -> Costs:
    """The modelled cluster as a cost table: t_k dP_k a count, and the power of an idle unit.

    Messages cost their time only.
    """
    prices_j = {
        "on_chip": cluster.on_chip_s(clock) * clock.on_chip_w,
        "off_chip": cluster.off_chip_s * clock.off_chip_w,
        "messages": 0.0,
        "network_bytes": 0.0,
        "spinning_s": clock.on_chip_w,
    }
    marks = Mark.ASSUMED if cluster.basis == "assumed" else NONE
    charges = {word: Charge(True, joules * _PJ, None, cluster.source, marks) for word, joules in prices_j.items()}
    return Costs(
        name=cluster.name,
        device=cluster.about,
        source=cluster.source,
        books="served",
        setting=Setting(core_mhz=clock.core_mhz),
        setting_from="asked for",
        charges=charges,
        constant_power_w=clock.idle_w,
        constant_why=f"an idle {cluster.unit}",
        constant_marks=marks,
        marks=marks,
        basis=cluster.basis,
    )


def best_clock_mhz(cluster: Cluster, program: Program, size: float) -> float | None:
    """f*, at which E1 is least: above it EE rises where E0 does not depend on the clock, below it EE falls.

    E1(f) = a/f + b f^(gamma-1) + c with a = alpha W_c CPI P_idle, b = W_c CPI dP_c(f0)/f0^gamma, so that
    f* = (a / ((gamma - 1) b))^(1/gamma). None for a table without gamma, or with one of at most 1: no such clock.
    """
    gamma, clock = cluster.gamma, cluster.default
    if gamma is None or gamma <= 1 or not clock.on_chip_w:
        return None
    alpha = program.work(size, 1).alpha
    share = alpha * clock.idle_w / ((gamma - 1) * clock.on_chip_w)
    return float(clock.core_mhz * share ** (1 / gamma))
