"""Iso-energy-efficiency in closed form ([S] 4, docs/scale.md): what a program takes on p processors, and why; its fit.

A program (`counters/programs/*.toml`) says what it counts, by its size n and its processors p.

It is eprof's own sum, E = sum_k n_k eps_k + pi0 T, a term a cause: the program as it is on one processor, then what p
of them add. Times come from the counts, t_k a count; energies of a count are its time above idle, t_k dP_k; pi0 is the
power of an idle processor, and T the processors' time added up. Then: how a problem must grow, or which clock it
takes, to keep its efficiency ([S] 4.24); and a program's counts fitted to small runs.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import UsageError
from eprof.base.optional import either, growth, mapped, ratio
from eprof.base.text import when
from eprof.base.toml import GROWING, Document, Formula
from eprof.base.vocabulary import Mark, mark_names
from eprof.clusters.cluster import INTERRUPT, POLL, Clock, Cluster, Run, Storage, definition

SCHEMA = 1
# On-chip work and accesses beyond the caches of the program on one processor; what p processors do more of each, which
# may be negative; messages and their bytes, over all processors, a message once. Bytes of files as on-chip work.
WORDS = (
    *("on_chip", "off_chip", "io_bytes", "on_chip_extra", "off_chip_extra", "io_bytes_extra"),
    *("messages", "network_bytes"),
)
_MAY_BE_NEGATIVE = ("on_chip_extra", "off_chip_extra", "io_bytes_extra")
_NAMES = ("n", "p")


class Program(Struct, frozen=True):
    """A parallel program's counts as formulas of n and p. factors: what a fit multiplies counts with.

    alpha: measured time over the sum of its parts (4.19): what overlaps. memory: bytes of all processors, if known.
    """

    name: str
    about: str
    source: str
    size: str
    alpha: float
    formulas: Mapping[str, Formula]
    memory: Formula | None = None
    factors: Mapping[str, float] = {}

    def work(self, size: float, processors: int) -> dict[str, float]:
        """The counts of a program of size n on p processors, by `WORDS` ([S] 4.4, the application's vector).

        Raises UsageError: they are no numbers there.
        """
        counts = dict.fromkeys(WORDS, 0.0)
        counts |= {word: self._value(formula, word, size, processors) for word, formula in self.formulas.items()}
        for word in ("on_chip", "off_chip", "io_bytes"):
            if counts[word] + counts[f"{word}_extra"] < 0:
                raise UsageError(
                    f"{self.name}: `{word}` and `{word}_extra` are less than nothing at n = {size:g}, p = {processors}."
                )
        return counts

    def memory_bytes(self, size: float, processors: int) -> float:
        """The bytes that a program takes of all processors' memory; 0 if no formula tells. Raises UsageError."""
        return mapped(self._value, self.memory, "memory_bytes", size, processors) or 0.0

    def _value(self, formula: Formula, word: str, size: float, processors: int) -> float:
        """A count of the program at n = size, p = processors, times its factor. Raises UsageError: none, or below 0."""
        try:
            value = float(formula({"n": float(size), "p": float(processors)}))
        except (OverflowError, ValueError, ZeroDivisionError) as err:
            raise UsageError(f"{self.name}: `{word}` has no value at n = {size:g}, p = {processors} ({err}).") from err
        if value < 0 and word not in _MAY_BE_NEGATIVE:
            raise UsageError(f"{self.name}: `{word}` is negative at n = {size:g}, p = {processors}.")
        return value * self.factors.get(word, 1.0)


def load(name_or_path: str) -> Program:
    """A parallel program by its name, or from a `.toml` file. Raises DefinitionError with file and line."""
    return read(definition(name_or_path, "program"))


def read(document: Document) -> Program:
    """The parallel program in a document. Raises DefinitionError."""
    root = document.root.table(("schema", "name", "about", "source", "size", "alpha", "memory_bytes", "count"))
    root.schema(SCHEMA)
    counts = root["count"].table(WORDS)
    memory = root["memory_bytes"].formula(_NAMES, GROWING) if "memory_bytes" in root else None
    for word in ("on_chip", "off_chip"):
        if word not in counts:
            raise counts[word].wrong("a formula of n, written as a text")
    return Program(
        name=root["name"].text(),
        about=root["about"].text(""),
        source=root["source"].text(),
        size=root["size"].text("size"),
        alpha=root["alpha"].number(1e-3, 1e3),
        formulas={word: formula.formula(_NAMES, GROWING) for word, formula in counts.items()},
        memory=memory,
    )


BASE = "base"
# What p processors take more than one, E0 by cause.
CAUSES = ("compute", "memory", "io", "messages", "bytes", "waiting")


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
        """Iso-energy-efficiency EE = E1/Ep, E1 the energy on one processor; None where nothing takes energy."""
        return ratio(self.base_j, self.energy_j)


def points(
    cluster: Cluster, program: Program, size: float, processors: Sequence[int], clock: Clock, waiting: str
) -> list[Point]:
    """Evaluate the model for each number of processors, at one size and clock. Raises UsageError: no counts there."""
    priced = ((number, *_priced(cluster, program, size, number, clock, waiting)) for number in processors)
    return [
        Point(
            processors=number,
            size=size,
            core_mhz=clock.core_mhz,
            time_s=program.alpha * math.fsum(seconds.values()) / number,
            base_s=program.alpha * seconds[BASE],
            base_j=joules[BASE],
            energy_j=math.fsum(joules.values()),
            overhead_j={cause: joules[cause] for cause in CAUSES},
            network_s=seconds["messages"] + seconds["bytes"],
        )
        for number, joules, seconds in priced
    ]


def _priced(
    cluster: Cluster, program: Program, size: float, processors: int, clock: Clock, waiting: str
) -> tuple[dict[str, float], dict[str, float]]:
    """(cause -> J, E1 as `BASE`, then the parts of E0; cause -> s of all processors together, without alpha).

    Files take t_IO a byte, and dP_IO above idle meanwhile (4.4 to 4.10). A message of B/M bytes takes what the
    cluster's table says, T_net = M t_s + B t_w in all (4.16). Processors that poll spin for as long as messages take,
    which is alpha times that. Raises UsageError.
    """
    work = program.work(size, processors)
    on_chip_s, off_chip_s = cluster.on_chip_s(clock), cluster.off_chip_s
    storage = cluster.storage
    if storage is None:
        if work["io_bytes"] or work["io_bytes_extra"]:
            raise UsageError(f"{cluster.name} has no [storage], which a program with `io_bytes` needs: byte_s, busy_w.")
        storage = Storage(0.0, 0.0)
    start_s = whole_s = 0.0
    if messages := work["messages"]:
        start_s = messages * cluster.messages.seconds[0]
        whole_s = messages * cluster.messages.of_size(work["network_bytes"] / messages)
    counts = {
        BASE: (work["on_chip"], work["off_chip"], work["io_bytes"], 0.0),
        "compute": (work["on_chip_extra"], 0.0, 0.0, 0.0),
        "memory": (0.0, work["off_chip_extra"], 0.0, 0.0),
        "io": (0.0, 0.0, work["io_bytes_extra"], 0.0),
        "messages": (0.0, 0.0, 0.0, start_s),
        "bytes": (0.0, 0.0, 0.0, whole_s - start_s),
    }
    joules, seconds = {}, {}
    for cause, (on_chip, off_chip, io_bytes, network_s) in counts.items():
        times_s = (on_chip * on_chip_s, off_chip * off_chip_s, io_bytes * storage.byte_s)
        watts = (clock.on_chip_w, clock.off_chip_w, storage.busy_w)
        above_idle_j = sum(time_s * above_w for time_s, above_w in zip(times_s, watts, strict=True))
        seconds[cause] = sum(times_s) + network_s
        joules[cause] = program.alpha * seconds[cause] * clock.idle_w + above_idle_j
    joules["waiting"] = (waiting == POLL) * program.alpha * whole_s * clock.on_chip_w
    return joules, seconds


def best_clock_mhz(cluster: Cluster, program: Program) -> float | None:
    """f*, the clock at which E1 is least; EE rises above, and falls below, where E0 does not depend on the clock.

    E1(f) = a/f + b f^(gamma-1) + c with a = alpha W_c CPI P_idle, b = W_c CPI dP_c(f0)/f0^gamma, so that
    f* = (a / ((gamma - 1) b))^(1/gamma). None for a table without gamma, or with one of at most 1: no such clock.
    """
    gamma, clock = cluster.gamma, cluster.default
    if gamma is None or gamma <= 1 or not clock.on_chip_w:
        return None
    share = program.alpha * clock.idle_w / ((gamma - 1) * clock.on_chip_w)
    return float(clock.core_mhz * share ** (1 / gamma))


class Case(NamedTuple):
    """A program of one size, on these numbers of processors and clocks of a cluster. waiting: "interrupt" or "poll"."""

    cluster: Cluster
    program: Program
    size: float
    processors: Sequence[int]
    clocks: Sequence[Clock]
    waiting: str

    def efficiency(self, size: float, processors: int, clock: Clock) -> float:
        """Iso-energy-efficiency EE of the program at a size, processors and clock; NaN where nothing takes energy."""
        joules, _ = _priced(self.cluster, self.program, size, processors, clock, self.waiting)
        return either(ratio(joules[BASE], math.fsum(joules.values())), math.nan)


class Keep(Struct, frozen=True):
    """The size, or the clocks in MHz, that keep the efficiency `target` on so many processors.

    None and `because`, the reason, where none does.
    """

    processors: int
    target: float
    size: float | None
    clocks_mhz: list[float]
    because: str | None


_MEMORY_SHARE = 0.8  # of the processors' memory, [S] 4.7-3
_LEAST_SIZE, _LARGEST_SIZE = 2.0, 1e12
_STEPS = 100  # of a bisection on a scale of logarithms: more digits than a number has
_NO_REACTION = 1e-3  # dEE / d ln n


def size_to_keep(case: Case, processors: int, target: float) -> Keep:
    """The least size that keeps an efficiency of `target` at the first clock, or why none does.

    It solves E1(n) = EE/(1-EE) E0(n, p).
    """
    clock = case.clocks[0]

    def reached(at_size: float) -> float:
        return case.efficiency(at_size, processors, clock)

    largest = _LARGEST_SIZE
    if case.cluster.memory_bytes is not None:
        most_bytes = _MEMORY_SHARE * case.cluster.memory_bytes * processors
        if case.program.memory_bytes(largest, processors) > most_bytes:
            largest = _least(lambda at_size: case.program.memory_bytes(at_size, processors) > most_bytes, largest)
    at_bound = reached(largest)
    if not at_bound >= target:
        is_of_memory = case.cluster.memory_bytes and largest < _LARGEST_SIZE
        bound = when(is_of_memory, "the largest that memory holds") or "any size"
        reason = f"the efficiency is {at_bound:.3g} at {largest:.3g}, {bound}"
        if largest > math.e * _LEAST_SIZE and abs(at_bound - reached(largest / math.e)) < _NO_REACTION:
            reason = f"the efficiency no longer reacts to the size: it is {at_bound:.3g} at {largest:.3g}"
        return Keep(processors, target, None, [], reason)
    found = _least(lambda at_size: reached(at_size) >= target, largest)
    return Keep(processors, target, found, [clock.core_mhz], None)


def clocks_to_keep(case: Case, processors: int, target: float) -> Keep:
    """The listed clocks that keep an efficiency of `target` or more, or why none of them does."""
    reached = {clock.core_mhz: case.efficiency(case.size, processors, clock) for clock in case.clocks}
    kept = sorted(mhz for mhz, value in reached.items() if value >= target)
    if not kept:
        return Keep(processors, target, None, [], f"the efficiency is {max(reached.values()):.3g} at best")
    return Keep(processors, target, case.size, kept, None)


def _least(holds: Callable[[float], bool], largest: float) -> float:
    """The least size up to `largest` from which on `holds` is true, by bisection."""
    low, high = math.log(_LEAST_SIZE), math.log(largest)
    if holds(_LEAST_SIZE):
        return _LEAST_SIZE
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if holds(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


# ----------------------------------------------------------------------------------------------------------------------
# A program's counts fitted to small runs, to predict larger ones; errors are those at node counts left out of a fit.
#
# Three numbers are fitted, all linear in what was measured: the factor of the program's work, w; that of its network
# time, m; and alpha, the measured time over the sum of the parts (4.19):
#
#     p T = alpha (w A + m N)        E = P_idle p T + w C        and alpha m N dP_c more if processors poll
#
# A, N: seconds of the work and of the messages that the definition counts; C: joules of the work above idle.

ALPHA_VARIES = 0.05
_NETWORK = ("messages", "network_bytes")
_LEAST_NODE_COUNTS = 2
_OF_POINT = ("size", "processors", "core_mhz", "time_s", "energy_j", "efficiency")


class Prediction(Struct, frozen=True, kw_only=True):
    """What a fit on fewer processors predicts; errors as shares of the measured values, None where not measured."""

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
    """A program fitted to small runs. factors: what its counts of work and of the network were multiplied with.

    left_out: the largest errors, as shares, at node counts that a fit had not seen, of time and of energy; None: not
    tried. alpha_by_processors: node count -> alpha there.
    """

    fitted_on: list[int]
    factors: dict[str, float]
    alpha: float
    alpha_by_processors: dict[str, float]
    left_out_time: float | None
    left_out_energy: float | None
    predictions: list[Prediction]


class _Known(Struct, frozen=True):
    """A run whose energy and size are known, with the unfitted model of it. waiting_w: power while messages travel."""

    run: Run
    point: Point
    idle_w: float
    waiting_w: float

    @property
    def work_s(self) -> float:
        """A: the time in s of the work of all processors together, without messages, as the definition counts it."""
        return self.point.time_s * self.point.processors - self.point.network_s


def fit_program(cluster: Cluster, program: Program, runs: Sequence[Run], predict: Sequence[int]) -> Fit:
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


def runs_of_program(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs of a program; all runs where they are of one program, whatever its name. Raises UsageError: none is."""
    names = dict.fromkeys(run.program for run in runs)
    chosen = [run for run in runs if run.program == name or len(names) == 1]
    if not chosen:
        raise UsageError(f"There is no run of {name}; there are runs of {', '.join(names)}.")
    return chosen


def fit_warnings(cluster: Cluster, fitted: Fit) -> list[str]:
    """A warning if alpha varies with p, so that it cannot be carried to other p; else none."""
    alphas = fitted.alpha_by_processors.values()
    drift = (
        f"Alpha, measured over modelled time, goes from {min(alphas):.3g} to {max(alphas):.3g} with the node count: "
        f"the message times of {cluster.name} do not hold at all message sizes, so predictions drift."
    )
    return [drift] * (max(alphas) > (1 + ALPHA_VARIES) * min(alphas))


def _solved(program: Program, known: Sequence[_Known]) -> Program:
    """A program with alpha and factors fitted to runs: least squares of relative errors, w, alpha w, alpha m >= 0."""
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
    """Yield what a fitted program predicts for each size and clock of the runs `small`, on each of `counts` nodes."""
    measured = {(each.point.size, each.run.processors, each.point.core_mhz): each.run for each in known}
    seen = sorted({(each.point.size, each.point.core_mhz) for each in small})
    for size, core_mhz in seen:
        for point in points(cluster, program, size, counts, cluster.at(core_mhz), cluster.waiting):
            run = measured.get((size, point.processors, core_mhz))
            yield Prediction(
                **{name: getattr(point, name) for name in _OF_POINT},
                time_error=growth(point.time_s, getattr(run, "time_s", None)),
                energy_error=growth(point.energy_j, getattr(run, "energy_j", None)),
                marks=mark_names(Mark.ESTIMATED | cluster.marks),
            )
