"""Fits a program's counts to small runs and predicts larger ones; errors are those at node counts left out of a fit.

Three numbers are fitted, all linear in what was measured: the factor of the program's work, w; that of its network
time, m; and alpha, the measured time over the sum of the parts (4.19):

    p T = alpha (w A + m N)        E = P_idle p T + w C        and alpha m N dP_c more if processors poll

A, N: seconds of the work and of the messages that the definition counts; C: joules of the work above idle.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import UsageError
from eprof.base.optional import growth
from eprof.base.vocabulary import Mark, mark_names
from eprof.clusters.cluster import INTERRUPT, POLL, Cluster, Run
from eprof.commands.scale.model import WORDS, Point, Program, points

ALPHA_VARIES = 0.05
_NETWORK = ("messages", "network_bytes")
_LEAST_NODE_COUNTS = 2


class Prediction(Struct, frozen=True, kw_only=True):
    """What a fit on fewer processors predicts for a row; errors as shares of the measured values, None without one."""

    size: float
    processors: int
    core_mhz: float
    time_s: float
    energy_j: float
    efficiency: float | None
    time_error: float | None
    energy_error: float | None
    marks: list[str] = field(default_factory=list)


class Fit(Struct, frozen=True, kw_only=True):
    """A program fitted to small runs. factors: what its counts were multiplied with.

    left_out: errors of node counts that a fit had not seen, largest share of time and of energy. alpha_by_processors:
    how far alpha varies over p.
    """

    fitted_on: list[int]
    factors: dict[str, float]
    alpha: float
    alpha_by_processors: dict[str, float]
    left_out_time: float | None
    left_out_energy: float | None
    predictions: list[Prediction]


class _Known(Struct, frozen=True):
    """A run whose energy and size are known, with the unfitted model of it. waiting_w: the power during messages."""

    run: Run
    point: Point
    idle_w: float
    waiting_w: float

    @property
    def work_s(self) -> float:
        """The time of the work of all processors together, as the definition counts it, s: A."""
        return self.point.time_s * self.point.processors - self.point.network_s


def fit(cluster: Cluster, program: Program, runs: Sequence[Run], predict: Sequence[int]) -> Fit:
    """The fit of a program to its runs below the node counts to `predict`, and its errors. Raises UsageError."""
    known = []
    for run in runs:
        if run.size is not None and run.energy_j is not None:
            clock = cluster.at(run.core_mhz)
            at_alpha_1 = replace(program, alpha=1.0)
            [point] = points(cluster, at_alpha_1, run.size, [run.processors], clock, INTERRUPT)
            polling_w = (cluster.waiting == POLL) * clock.on_chip_w
            known.append(_Known(run, point, clock.idle_w, clock.idle_w + polling_w))
    small = [each for each in known if each.run.processors < min(predict, default=math.inf)]
    counts = sorted({each.run.processors for each in small})
    if len(counts) < _LEAST_NODE_COUNTS:
        raise UsageError(
            f"A fit needs runs of {program.name} with size, time and energy on {_LEAST_NODE_COUNTS} node counts or "
            f"more, below those to predict; there are {len(counts)}."
        )
    fitted = _solved(program, small)
    # The errors at each node count of a fit that was made on the others.
    left_out: list[Prediction] = []
    if len(counts) > _LEAST_NODE_COUNTS:
        for count in counts[1:]:
            others = [each for each in small if each.run.processors != count]
            left_out += _predicted(cluster, _solved(program, others), small, others, [count])
    work, network = fitted.factors["on_chip"], fitted.factors["messages"]
    by_count: dict[int, list[float]] = {}
    for each in known:
        modelled_s = work * each.work_s + network * each.point.network_s
        by_count.setdefault(each.run.processors, []).append(each.run.processors * each.run.time_s / modelled_s)
    return Fit(
        fitted_on=counts,
        factors={"work": work, "network": network},
        alpha=fitted.alpha,
        alpha_by_processors={str(count): float(np.mean(alphas)) for count, alphas in sorted(by_count.items())},
        left_out_time=max((abs(error.time_error or 0.0) for error in left_out), default=None),
        left_out_energy=max((abs(error.energy_error or 0.0) for error in left_out), default=None),
        predictions=list(_predicted(cluster, fitted, known, small, predict)),
    )


def of_program(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs of a program; all runs where they are of one program, whatever its name. Raises UsageError: none is."""
    names = dict.fromkeys(run.program for run in runs)
    chosen = [run for run in runs if run.program == name or len(names) == 1]
    if not chosen:
        raise UsageError(f"There is no run of {name}; there are runs of {', '.join(names)}.")
    return chosen


def warnings(cluster: Cluster, fitted: Fit) -> list[str]:
    """A warning if alpha varies with p, so that it cannot be carried to other p; else none."""
    alphas = fitted.alpha_by_processors.values()
    drift = (
        f"Alpha, measured over modelled time, goes from {min(alphas):.3g} to {max(alphas):.3g} with the node count: "
        f"the message times of {cluster.name} do not hold at all message sizes, so predictions drift."
    )
    return [drift] * (max(alphas) > (1 + ALPHA_VARIES) * min(alphas))


def _solved(program: Program, known: Sequence[_Known]) -> Program:
    """Fit a program's alpha and factors by least squares of relative errors; unknowns w, alpha w, alpha m, >= 0."""
    equations = []
    for each in known:
        total_s = each.run.processors * each.run.time_s
        above_idle_j = each.point.energy_j - each.idle_w * each.point.time_s * each.point.processors
        equations.append(np.array([0.0, each.work_s, each.point.network_s]) / total_s)
        joules = [above_idle_j, each.idle_w * each.work_s, each.waiting_w * each.point.network_s]
        equations.append(np.array(joules) / (each.run.energy_j or np.nan))
    matrix: Floats = np.stack(equations)
    # Least squares with no unknown below 0: of so few, every choice of those not 0 can be tried.
    target = np.ones(len(matrix))
    best: Floats = np.zeros(matrix.shape[1])
    least = np.square(target).sum()
    for chosen in product((False, True), repeat=matrix.shape[1]):
        solution = np.zeros(matrix.shape[1])
        if any(chosen):
            solution[list(chosen)] = np.linalg.lstsq(matrix[:, list(chosen)], target)[0]
        residual = np.square(matrix @ solution - target).sum()
        if solution.min() >= 0 and residual < least:
            best, least = solution, residual
    work, alpha_work, alpha_network = best
    if not work or not alpha_work:
        lacks = "give runs on one processor too"
        if any(each.run.processors == 1 for each in known):
            lacks = f"their times and energies do not follow what {program.name} counts"
        raise UsageError(f"The runs do not show how much work the program does; {lacks}.")
    alpha = alpha_work / work
    factors = dict.fromkeys(WORDS, float(work)) | dict.fromkeys(_NETWORK, float(alpha_network / alpha))
    return replace(program, alpha=float(alpha), factors=factors)


def _predicted(
    cluster: Cluster, program: Program, known: Sequence[_Known], small: Sequence[_Known], counts: Sequence[int]
) -> Iterator[Prediction]:
    """What a program predicts for each size and clock of the runs `small`, on the node counts `counts`."""
    measured = {(each.point.size, each.run.processors, each.point.core_mhz): each.run for each in known}
    seen = sorted({(each.point.size, each.point.core_mhz) for each in small})
    for size, core_mhz in seen:
        for point in points(cluster, program, size, counts, cluster.at(core_mhz), cluster.waiting):
            run = measured.get((size, point.processors, core_mhz))
            yield Prediction(
                size=size,
                processors=point.processors,
                core_mhz=core_mhz,
                time_s=point.time_s,
                energy_j=point.energy_j,
                efficiency=point.efficiency,
                time_error=growth(point.time_s, getattr(run, "time_s", None)),
                energy_error=growth(point.energy_j, getattr(run, "energy_j", None)),
                marks=mark_names(Mark.ESTIMATED | cluster.marks),
            )
