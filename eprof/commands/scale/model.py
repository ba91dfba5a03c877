"""Iso-energy-efficiency in closed form ([S] 4, docs/scale.md): what a program takes on p processors, and why.

A program (`counters/programs/*.toml`) says what it counts, by its size n and its processors p.

It is eprof's own sum, E = sum_k n_k eps_k + pi0 T, a term a cause: the program as it is on one processor, then what p
of them add. Times come from the counts, t_k a count; energies of a count are its time above idle, t_k dP_k; pi0 is the
power of an idle processor, and T the processors' time added up. At the end: how a problem must grow, or which clock it
takes, to keep its efficiency ([S] 4.24).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from eprof.base.errors import UsageError
from eprof.base.optional import either, mapped, ratio
from eprof.base.text import when
from eprof.base.toml import GROWING, Document, Formula
from eprof.clusters.cluster import POLL, Clock, Cluster, Storage, definition

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
    """A program's counts as formulas of n and p. factors: what a fit multiplies counts with.

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
    memory = None
    if "memory_bytes" in root:
        memory = root["memory_bytes"].formula(_NAMES, GROWING)
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
    """Cause -> J (E1 as `BASE`, then the parts of E0); and cause -> s of all processors together, without alpha.

    Files take t_IO a byte, and dP_IO above idle meanwhile (4.4 to 4.10). A message of B/M bytes takes what the
    cluster's table says, T_net = M t_s + B t_w in all (4.16). Processors that poll spin for as long as messages take,
    which is alpha times that.
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
        start_s = messages * cluster.messages.start_s()
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
    """f*, at which E1 is least: above it EE rises where E0 does not depend on the clock, below it EE falls.

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
        """EE of the program at a size; NaN where nothing takes energy."""
        joules, _ = _priced(self.cluster, self.program, size, processors, clock, self.waiting)
        return either(ratio(joules[BASE], math.fsum(joules.values())), math.nan)


class Keep(Struct, frozen=True):
    """The size, or the clocks, that keep the efficiency on so many processors; where none does, None and the reason."""

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
    """The listed clocks that keep an efficiency of `target` or more, or why none does."""
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
