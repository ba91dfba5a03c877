"""`Side`: OLD or NEW as grids, a row a kernel, a column a word; `Changes`: what each cell's change costs, and why."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, finite, known_or_zero
from eprof.base.errors import UsageError
from eprof.base.optional import gathered, mapped
from eprof.base.text import ShortRepr, when
from eprof.base.vocabulary import (
    ASSUMED,
    BYTES,
    COUNTS,
    ESTIMATED,
    FLOAT_PARTS,
    LEVEL_PARTS,
    MISSING,
    PRICED,
    SIMULATED,
    Nouns,
)
from eprof.commands.diff.matching import Kernel, Match
from eprof.costs import Costs
from eprof.counts.times import ONE_SECOND
from eprof.energy.uncertainty import Replicas
from eprof.lab.welch import Test, welch
from eprof.logs.log import Log
from eprof.profile.intervals import replicas
from eprof.profile.profile import Energy

# The columns of a grid: every word of the vocabulary, and constant power, whose "count" is seconds.
WORDS = PRICED
TIME = len(WORDS) - 1
IS_TIME = np.arange(len(WORDS)) == TIME
# What is known of a cell's energy. NONE: there is nothing to know (a class total beside its parts, no price needed).
KNOWN, LOWER, LOST, NONE = 0, 1, 2, 3
# Cycles are times too. The columns of the other counts, by their unit.
FOLLOWS_TIME = np.array([*(count.unit == "cycle" for count in COUNTS.values()), True])
COUNTED = [np.array([count.unit == unit for count in COUNTS.values()]) for unit in ("instruction", "byte", "flop")]
_Key = tuple[str | None, str]


class Grid(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """Counts and energies, (n_kernels, n_words), or a stack of them, (n_repeats, n_kernels, n_words).

    number: instructions, bytes, seconds; joules; price: of one of them, J, or W for time. NaN = not known.
    held: the share of the price that a board's power limit leaves, so that joules = number x price x held.
    marks: those of the energy; counted: those of the number. A LOWER energy has a value and is marked MISSING.
    """

    number: Floats
    joules: Floats
    price: Floats
    held: Floats
    marks: Ints
    counted: Ints

    @cached_property
    def state(self) -> Ints:
        """How far each energy of a grid is known: KNOWN, LOWER (a bound), LOST, or NONE (there is none to know)."""
        known, lost = ~np.isnan(self.joules), (self.marks & MISSING) != 0
        return np.select([known & ~lost, known, lost], [KNOWN, LOWER, LOST], NONE).astype(np.int64)

    @cached_property
    def freed(self) -> "Grid":
        """The grid with the joules that no power limit holds."""
        return replace(self, joules=self.joules / self.held)

    def __getitem__(self, place: int) -> "Grid":
        """One grid of a stack: that of repeat `place`, or of the mean at -1."""
        return self.each(lambda table: table[place])

    def each(self, function: Callable[[Any], Any]) -> "Grid":
        """The grid of what `function` makes of each of its tables."""
        return Grid(*(function(getattr(self, name)) for name in self.__struct_fields__))

    def rows(self, places: Sequence[int]) -> "Grid":
        """The grid of the kernels at `places` alone."""
        return self.each(lambda table: table[..., list(places), :])


def known_sum(table: Floats) -> float | None:
    """The sum of the cells of a table that are not NaN; None if all are."""
    known = table[~np.isnan(table)]
    return math.fsum(known.tolist()) if known.size else None


def combined(marks: Ints) -> int:
    """The marks of all cells of a table in one: bits of `Mark`."""
    return int(np.bitwise_or.reduce(marks, axis=None, initial=0))


class Side(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """OLD or NEW: one priced profile, or several repeats of it on the same kernels.

    named: the kernels as `matching` wants them. grids: a stack, a grid a repeat, and behind several their mean.
    price: J an instruction or byte, W for constant power; NaN = no price.
    """

    label: str
    energies: tuple[Energy, ...]
    named: list[Kernel]
    grids: Grid
    price: Floats

    @cached_property
    def mean(self) -> Grid:
        """The grid of means over the repeats of OLD, or NEW. A kernel counts 0 in repeats that did not launch it."""
        return self.grids[-1]

    @property
    def first(self) -> Energy:
        """The first repeat of OLD, or NEW, whose title, cost tables and definitions stand for all."""
        return self.energies[0]

    @cached_property
    def replicas(self) -> Replicas | None:
        """The replicas of the prices of OLD, or NEW; None: there are too few, or they are another GPU's."""
        return replicas(self.first)

    @property
    def tables(self) -> list[Costs]:
        """The cost tables of OLD, or NEW: one for all, or one for each GPU, that of the GPU which takes most first."""
        return [gpu.costs for gpu in self.first.each if gpu.costs is not None]

    @cached_property
    def core_w(self) -> float | None:
        """The constant power of one core, W, where a program pays only for the cores that it kept busy; else None."""
        return _constant_w(self.first) if self.first.shares_socket else None

    @property
    def costs(self) -> Costs | None:
        """The first of `tables`; None where nothing is priced."""
        return next(iter(self.tables), None)

    @cached_property
    def origins(self) -> set[tuple[str, ...]]:
        """A key for each log of OLD, or NEW, that tells whether both are made from the same logs.

        It is host, start of the run and file name; without a run directory, path and hash. So two runs that count
        alike, and leave equal logs, are two.
        """
        origins: set[tuple[str, ...]] = set()
        for energy in self.energies:
            run, logs = energy.profile.run, energy.profile.logs
            if run is not None and run.started_utc:
                started = str(run.section("host").get("name")), str(run.started_utc)
                origins |= {(*started, os.path.basename(log.path)) for log in logs}  # noqa: PTH119
            else:
                origins |= {(os.path.realpath(log.path), log.sha256) for log in logs}
        return origins

    @property
    def runs(self) -> list[tuple[str, str]]:
        """(start, directory) of the run of each repeat of OLD, or NEW; of logs alone ("", a number of its own)."""
        runs = (energy.profile.run or energy.profile.saved for energy in self.energies)
        return [(run.started_utc or "", str(run.path)) if run else ("", str(n)) for n, run in enumerate(runs)]

    @property
    def logs(self) -> list[Log]:
        """The logs of all repeats of OLD, or NEW."""
        return [log for energy in self.energies for log in energy.profile.logs]

    @property
    def measured(self) -> list[float]:
        """What a meter saw in each repeat of OLD, or NEW, J; repeats without a meter are left out."""
        return [energy.measured_j for energy in self.energies if energy.measured_j is not None]

    @property
    def nouns(self) -> Nouns:
        """The words for what OLD, or NEW, ran ("kernel", "function")."""
        return self.first.counts.nouns

    def formulas(self, word: str) -> set[str]:
        """The formulas by which OLD, or NEW, counts a word, or its parts; empty where it does not, or without text."""
        words = [word, *FLOAT_PARTS.get(word, ()), *LEVEL_PARTS.get(word, ())]
        return {way.formula for each in words for way in self.first.counts.how.get(each, ()) if way.formula}

    @cached_property
    def elapsed_cycles(self) -> dict[str, float]:
        """The sum of each counter of the cycles in which OLD's, or NEW's, kernels ran, where all of them have it."""
        sums: dict[str, float] = {}
        for launches in (part.launches for part in self.first.profile.counted):
            names = (name for name, unit in launches.units.items() if unit == "count" and "cycles_elapsed" in name)
            sums |= {name: float(launches.counters[name].sum()) for name in names if not name.startswith("dram")}
        return {name: number for name, number in sums.items() if number > 0}

    @cached_property
    def own_clocks(self) -> str:
        """The clocks that OLD's, or NEW's, log tells, where prices were asked for at others; else empty."""
        clocks, costs = self.first.profile.clocks, self.first.costs
        if clocks is None or costs is None or not costs.setting_from.startswith("asked"):
            return ""
        setting = costs.setting
        pairs = [(clocks.core_mhz, setting.core_mhz), (clocks.memory_mhz, setting.memory_mhz)]
        told = [(own, priced) for own, priced in pairs if own and priced]
        is_other = any(not math.isclose(own, priced, rel_tol=SAME_CLOCK) for own, priced in told)
        return when(is_other, f"{'/'.join(f'{own:g}' for own, _ in told)} MHz")

    @property
    def factors(self) -> list[float]:
        """The factor that scales each repeat's prices to its meter; repeats that are not scaled are left out."""
        return [energy.metered.factor for energy in self.energies if energy.metered is not None]

    @property
    def is_modelled(self) -> bool:
        """Whether the times of some kernels of OLD, or NEW, come from a model of a simulated device."""
        return any(energy.modelled is not None and not energy.modelled.shares_only for energy in self.energies)

    @property
    def efficiency(self) -> float | None:
        """The share of the roofline's speed that modelled times of OLD, or NEW, rest on; None: none is modelled."""
        return self.first.modelled.efficiency if self.first.modelled is not None and self.is_modelled else None

    def above_constant(self) -> "Side":
        """OLD, or NEW, again, where constant power and all else that follows time cost 0 J."""
        is_free = FOLLOWS_TIME & (IS_TIME | ~np.isnan(self.grids.joules))
        free = {name: np.where(is_free, 0, getattr(self.grids, name)) for name in ("joules", "price", "marks")}
        return replace(self, price=np.where(FOLLOWS_TIME, 0.0, self.price), grids=replace(self.grids, **free))

    @property
    def lacks_rows(self) -> bool:
        """Whether a log of OLD, or NEW, is known to be cut off or damaged, so that kernels may be missing."""
        return any(table.lacks_rows for log in self.logs for table in log.tables)

    @property
    def is_of_rates(self) -> bool:
        """Whether a log of OLD, or NEW, tells nothing but rates, so that its second is an assumption."""
        return any(part.time_from == ONE_SECOND for energy in self.energies for part in energy.profile.counted)

    def launched(self, launches: Floats) -> "Side":
        """OLD, or NEW, as if it had launched its kernels so often, (n_kernels,), each time as its mean launch."""
        named = [replace(kernel, launches=number) for kernel, number in zip(self.named, launches.tolist(), strict=True)]
        return replace(self.scaled(launches / np.array([kernel.launches for kernel in self.named])), named=named)

    def scaled(self, factors: Floats) -> "Side":
        """OLD, or NEW, with all counts, times and joules of each kernel so many times, (n_kernels,)."""
        amounts = {name: getattr(self.grids, name) * factors[:, None] for name in ("number", "joules")}
        return replace(self, grids=replace(self.grids, **amounts))

    def taken(self, places: Sequence[int]) -> "Side":
        """OLD, or NEW, with the kernels at `places` alone."""
        return replace(self, named=[self.named[place] for place in places], grids=self.grids.rows(places))


def side_of(label: str, energies: Sequence[Energy]) -> Side:
    """OLD, or NEW (`label`), as grids of its priced repeats. Raises UsageError if prices differ, or there are none."""
    if not energies:
        raise UsageError(f"{label}: nothing to compare; name a log or a run directory.")
    energies = [energy.whole()[0] for energy in energies]  # a kernel has a row for each operator that launches it
    # Where each repeat was scaled to its own meter, the factors may differ; so may the cores that each kept busy.
    pricings = {
        frozenset(
            gpu.costs and (gpu.costs.name, gpu.costs.setting.label, gpu.costs.factor != 1 or _constant_w(gpu))
            for gpu in energy.each
        )
        for energy in energies
    }
    if len(pricings) > 1:
        raise UsageError(f"The repeats of {label} are priced differently; say --costs and --setting.")
    keys = list(dict.fromkeys(key for energy in energies for key in kernel_keys(energy)))
    launches = np.zeros(len(keys))
    place_of: dict[_Key, float] = {}
    for energy in energies:
        number_of = dict(zip(kernel_keys(energy), energy.counts.rows.launches.astype(float), strict=True))
        launches += np.array([number_of.get(key, 0.0) for key in keys]) / len(energies)
        # `energy` itself is sorted by energy.
        rows = energy.profile.rows
        last = max(1, len(rows) - 1)
        for place, key in enumerate(zip(rows.device, rows.kernel, strict=True)):
            place_of.setdefault(key, place / last)
    number, counted, joules, marks, free_j = (
        np.stack(tables) for tables in zip(*(_tables(energy, keys) for energy in energies), strict=True)
    )
    if len(energies) > 1:
        number, counted = _with_mean(number, counted)
        free_j, _ = _with_mean(free_j, marks)
        joules, marks = _with_mean(joules, marks)
    # Functions of a CPU's program that do next to nothing count alike, and all are compared together.
    tells = ~FOLLOWS_TIME & (not energies[0].counts.nouns.is_of_cpu)
    counts = known_or_zero(number[-1][:, tells])
    named = [
        Kernel(name, device, often, place_of.get((device, name), 0.0), tuple(row) if np.count_nonzero(row) > 1 else ())
        for (device, name), often, row in zip(keys, launches.tolist(), counts.tolist(), strict=True)
    ]
    held = np.divide(joules, free_j, out=np.ones_like(joules), where=free_j > 0)
    price = _mean_prices(energies)
    prices = np.broadcast_to(price, joules.shape)
    meters = {energy.metered.factor for energy in energies if energy.metered is not None}
    if energies[0].gpus:
        prices = np.array(prices)
        for gpu in energies[0].gpus:
            labels = {part.device.label for part in gpu.profile.counted}
            prices[:, [device in labels for device, _ in keys]] = _mean_prices([gpu])
    if len(meters) > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            prices = np.where(number > 0, free_j / number, prices)
    grids = Grid(number, joules, prices, held, marks, counted)
    side = Side(label, tuple(energies), named, grids, price)
    if not side.own_clocks:
        return side
    assumed = IS_TIME * ASSUMED
    return replace(side, grids=replace(grids, marks=grids.marks | assumed, counted=grids.counted | assumed))


def _constant_w(energy: Energy) -> float:
    """Constant power, W, to nine digits: of one core where a program pays only for those kept busy, else of all."""
    assert energy.costs is not None
    cores = (energy.profile.cpu_use.cores or 1.0) if energy.shares_socket else 1.0
    return float(f"{energy.costs.constant_power_w / cores:.9g}")


def kernel_keys(energy: Energy) -> list[_Key]:
    """(device, name) of each row of a priced profile."""
    rows = energy.counts.rows
    return list(zip(rows.device, rows.kernel, strict=True))


def _tables(energy: Energy, keys: Sequence[_Key]) -> tuple[Floats, Ints, Floats, Ints, Floats]:
    """One repeat's counts and seconds, their marks, joules, their marks, joules without a power limit.

    (n_keys, n_words) each; 0 if not launched.
    """
    row_of = {key: row for row, key in enumerate(kernel_keys(energy))}
    launched = np.array([key in row_of for key in keys])
    here = [row_of[key] for key in keys if key in row_of]
    number, joules = np.zeros((2, len(keys), len(WORDS)))
    marks, counted = np.zeros((2, len(keys), len(WORDS)), dtype=np.int64)
    counts, split = energy.counts, energy.split
    number[launched, :TIME] = counts.amounts.only(COUNTS)[here]
    counted[launched, :TIME] = counts.amount_marks.only(COUNTS)[here]
    time_s, time_marks = counts.rows.time_s[here], counts.rows.time_marks[here]
    number[launched, TIME], counted[launched, TIME] = time_s, time_marks | np.isnan(time_s) * MISSING
    joules[launched] = np.nan
    free_j = joules
    if split is not None:
        joules[launched] = split.joules.columns_or(WORDS)[here]
        marks[launched] = split.joule_marks.columns_or(WORDS, 0)[here]
        free_j = joules.copy()
        free_j[launched] /= np.where(IS_TIME, 1.0, split.held[here, None])
    return number, counted, joules, marks, free_j


def _with_mean(stack: Floats, marks: Ints) -> tuple[Floats, Ints]:
    """Append the mean over the repeats that know a cell, as one more repeat, to a stack of tables; and to its marks.

    (n_repeats, n_kernels, n_words) -> (n_repeats + 1, n_kernels, n_words). One value many times is that value. Where
    only some repeats know a cell, its mean is ESTIMATED, and has the marks of those alone.
    """
    is_known = ~np.isnan(stack)
    n_known = is_known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(is_known, stack, 0.0).sum(axis=0) / n_known
    lowest, highest = np.fmin.reduce(stack), np.fmax.reduce(stack)
    mean = np.where(lowest == highest, lowest, mean)
    is_partly = (n_known > 0) & (n_known < len(stack))
    of_known = np.bitwise_or.reduce(np.where(is_known, marks, 0)) | ESTIMATED
    of_mean = np.where(is_partly, of_known, np.bitwise_or.reduce(marks))
    return np.concatenate([stack, mean[None]]), np.concatenate([marks, of_mean[None]])


def _mean_prices(energies: Sequence[Energy]) -> Floats:
    """The price of each word, (n_words,), J or W; NaN without: of the first repeat, or a mean if meters scaled each."""
    prices = np.full((len(energies), len(WORDS)), np.nan)
    tables = [energy.costs for energy in energies]
    for price, costs in zip(prices, tables, strict=True):
        if costs is not None:
            charges = [costs.charges.get(word) for word in COUNTS]
            price[:TIME] = [np.nan if charge is None else charge.pj * 1e-12 * charge.pays for charge in charges]
            price[TIME] = costs.constant_power_w
    is_scaled = len({costs and (costs.factor, costs.constant_power_w) for costs in tables}) > 1
    return np.asarray(prices.mean(axis=0) if is_scaled else prices[0])


MATCHED, APPEARED, VANISHED = "matched", "appeared", "vanished"
# By how much counts of a deterministic program differ from run to run.
REPEATS = 1e-3
# What bytes of L2 may be net of, and the share of them from which on that matters.
_FARTHER = {
    "l2_read": ("dram_read", "system_read"),
    "l2_write": ("dram_write", "system_write"),
    "l2": ("dram_read", "dram_write", "dram", "system_read", "system_write"),
}
_MUCH = 0.01
SAME_CLOCK = 0.01
_EQUAL = 1e-5  # digits beyond are rounding: of units, of a product, of a time that is told twice
_LONGER, _HALF = 1.1, 0.5  # times the time, or cycles, that a busy machine does not make; of a way, in factors
_ONE_OF_EACH = 2  # logs: one of OLD and one of NEW
_Rows = slice | Sequence[int]


class Changes(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """The change of every match and word, (n_matches, n_words), in J; 0 where nothing is compared.

    quantity_j: for changed counts, bytes or time; price_j: for changed prices; limit_j: for power limits that hold the
    sides unequally. compared: both sides know the energy.
    is_net: bytes of L2 that one side alone tells net of those farther away.
    old, new: the means over repeats, a row a match; old_repeats, new_repeats: each repeat. is_priced_alike: both sides
    pay by one table at one setting. is_of_two_processors: they ran on two GPUs or CPUs, each with prices of its own.
    """

    old_side: Side
    new_side: Side
    matches: tuple[Match, ...]
    old: Grid
    new: Grid
    quantity_j: Floats
    price_j: Floats
    limit_j: Floats
    compared: Bools
    is_net: Bools
    marks: Ints
    old_repeats: tuple[Grid, ...]
    new_repeats: tuple[Grid, ...]
    is_priced_alike: bool
    is_of_two_processors: bool

    @property
    def sides(self) -> tuple[tuple[Side, Grid], tuple[Side, Grid]]:
        """(side, grid of its means) of OLD and of NEW."""
        return (self.old_side, self.old), (self.new_side, self.new)

    @cached_property
    def kernels(self) -> list[tuple[Kernel | None, Kernel | None]]:
        """The (kernel of OLD, kernel of NEW) of each match; None where a side has none."""
        olds: dict[int | None, Kernel] = dict(enumerate(self.old_side.named))
        news: dict[int | None, Kernel] = dict(enumerate(self.new_side.named))
        return [(olds.get(match.old), news.get(match.new)) for match in self.matches]

    @cached_property
    def statuses(self) -> "np.ndarray[Any, Any]":
        """MATCHED for each match whose kernel is on both sides, APPEARED: in NEW alone, VANISHED: in OLD alone."""
        one_sided = {(True, False): APPEARED, (False, True): VANISHED}
        return np.array([one_sided.get((old is None, new is None), MATCHED) for old, new in self.kernels])

    @cached_property
    def apart(self) -> "np.ndarray[Any, Any]":
        """As `statuses`, but all MATCHED where both sides are of CPUs and share a function.

        A compiler moves the work of a CPU's functions into each other, so that all of them are compared together.
        Elsewhere the change of a kernel that appeared or vanished is a part of its own.
        """
        if all(side.nouns.is_of_cpu for side, _ in self.sides) and (self.statuses == MATCHED).any():
            return np.full(len(self.matches), MATCHED)
        return self.statuses

    @cached_property
    def launches(self) -> tuple[Floats, Floats]:
        """How often each side launches the kernel of each match, (n_matches,); 0 where it does not have it.

        Where one second of each side is compared, launches do not change: each is 1.
        """
        old, new = np.array([[getattr(kernel, "launches", 0.0) for kernel in pair] for pair in self.kernels]).T
        return (np.sign(old), np.sign(new)) if self.of_rates else (old, new)

    @property
    def tells_launches(self) -> bool:
        """Whether logs tell how often kernels or functions were launched; cachegrind's do not, nor who called whom."""
        logs = (log for side, _ in self.sides for log in side.logs)
        return not any(log.format.startswith("callgrind") and log.calls is None for log in logs)

    @property
    def of_rates(self) -> list[str]:
        """The labels of the sides that tell nothing but rates; if there are any, all is compared of one second."""
        return [side.label for side, _ in self.sides if side.is_of_rates]

    @cached_property
    def rests_on_time(self) -> bool:
        """Whether the change is of measured time alone, which a busy machine changes by itself.

        No count that both sides have changed, or time outweighs, the other way, what counts tell of a CPU or of
        repeats. Counts of a deterministic program repeat almost to the digit: start-up code sees other addresses.
        """
        changed_s = known_or_zero(self.new.number - self.old.number)[:, TIME] * (self.quantity_j[:, TIME] != 0)
        is_of_one_side = abs(changed_s[self.apart != MATCHED].sum()) > _HALF * abs(changed_s.sum())
        is_repriced = self.price_j.any() or not self.is_priced_alike
        if self.is_modelled or is_repriced or is_of_one_side or not changed_s.any() or self.is_time_explained:
            return False
        if not self.counted_by_both.any():  # launches are all that is counted
            old, new = (launches[self.apart == MATCHED] for launches in self.launches)
            return np.array_equal(old, new)
        of_time_j, counted_j = (float(self.quantity_j[:, words].sum()) for words in (FOLLOWS_TIME, ~FOLLOWS_TIME))
        is_against = of_time_j * counted_j < 0 and abs(of_time_j) > abs(counted_j)
        may_be_noise = self.old_side.nouns.is_of_cpu or len(self.old_repeats) + len(self.new_repeats) > _ONE_OF_EACH
        return (is_against and may_be_noise) or not self._counts_changed(REPEATS)

    @cached_property
    def is_time_explained(self) -> bool:
        """Whether clocks, or cycles, that both logs tell go half of the way, in factors, that their times go.

        A busy machine changes no clock by so much, nor cycles by a tenth, as profilers of GPUs run kernels alone.
        """
        before_s, after_s = (float(known_or_zero(grid.number[:, TIME]).sum()) for _, grid in self.sides)
        if not before_s or not after_s:
            return False
        way = math.log(after_s / before_s)
        clocks = [side.first.profile.clocks for side, _ in self.sides]
        told = [(clock.core_mhz, clock.memory_mhz) if clock else (None, None) for clock in clocks]
        pairs = list(zip(*reversed(told), strict=True))  # a slower clock makes a longer time
        if abs(way) >= math.log(_LONGER):
            pairs += self._cycles()
        return any(before and after and math.log(after / before) / way >= _HALF for before, after in pairs if way)

    def _cycles(self) -> Iterator[tuple[float, float]]:
        """Yield (OLD, NEW) sums over all kernels: of each word in cycles, and of each counter of elapsed cycles."""
        is_told = ((self.old.counted | self.new.counted) & ASSUMED) == 0
        both = [np.where(is_told & FOLLOWS_TIME & ~IS_TIME, grid.number, np.nan) for _, grid in self.sides]
        old, new = (known_or_zero(table).sum(axis=0).tolist() for table in both)
        yield from zip(old, new, strict=True)
        elapsed = [side.elapsed_cycles for side, _ in self.sides]
        yield from ((elapsed[0][name], elapsed[1][name]) for name in elapsed[0] if name in elapsed[1])

    def _counts_changed(self, limit: float) -> bool:
        """Whether instructions, bytes or flops changed, up or down, by more than this share."""
        old, new = self.counted_by_both
        apart, whole = abs(new - old).sum(axis=0), old.sum(axis=0)
        return any(apart[unit].sum() > limit * whole[unit].sum() for unit in COUNTED)

    def counts_grew(self, rows: _Rows, limit: float) -> bool:
        """Whether the matches `rows` execute more instructions or flops, or move more bytes, by more than the limit."""
        old, new = self.counted_by_both[:, rows]
        return any(new[:, unit].sum() > old[:, unit].sum() * (1 + limit) for unit in COUNTED)

    @cached_property
    def counted_by_both(self) -> Floats:
        """The counts of OLD and of NEW, (2, n_matches, n_counts); 0 where one side did not count."""
        numbers = np.array([grid.number[:, :TIME] for _, grid in self.sides])
        return np.where(np.isnan(numbers).any(axis=0), 0.0, numbers)

    @cached_property
    def is_counted_otherwise(self) -> Bools:
        """Whether OLD and NEW make each word from other counters, (n_words,): what differs may be the method.

        Cycles may be made of time, at the clock and for the cores of each run: they are not meant.
        """
        is_counted = np.all([(np.nan_to_num(grid.number) > 0).any(axis=0) for _, grid in self.sides], axis=0)
        ways = [(self.old_side.formulas(word), self.new_side.formulas(word)) for word in WORDS]
        are_other = [bool(old and new and not old & new) for old, new in ways]
        return np.asarray(is_counted & ~FOLLOWS_TIME & are_other)

    @cached_property
    def simpler(self) -> dict[str, dict[str, str]]:
        """Word -> {"no caches": why, ...}: how the simulated devices of both sides count it simpler than a GPU does."""
        found: dict[str, dict[str, str]] = {}
        for side, grid in self.sides:
            for word, ways in side.first.counts.how.items():
                is_simulated = (grid.counted[:, WORDS.index(word)] & SIMULATED).any()
                if is_simulated and not side.nouns.is_of_cpu:
                    notes = (way.note.partition(": ") for way in ways)
                    found.setdefault(word, {}).update((simpler, why) for simpler, _, why in notes if why)
        return found

    @cached_property
    def is_modelled(self) -> bool:
        """Whether the times of OLD or of NEW come from a model."""
        return self.old_side.is_modelled or self.new_side.is_modelled

    @cached_property
    def core_w(self) -> float | None:
        """The constant power of one core, W, where both sides pay it, by one table, for cores kept busy; else None."""
        old, new = self.old_side.core_w, self.new_side.core_w
        return old if old == new and self.is_priced_alike else None

    def amounts(self, grid: Grid) -> Floats:
        """What a grid's cells pay for: instructions, bytes; s, or s of CPU time where cores in use are paid."""
        if self.core_w is None:
            return grid.number
        return np.where(IS_TIME, grid.joules / self.core_w, grid.number)

    @cached_property
    def has_energy(self) -> bool:
        """Whether both sides are priced, and some energy of OLD's own kernels and some of NEW's is compared."""
        is_priced = self.old_side.costs is not None and self.new_side.costs is not None
        own = (self.compared[launches > 0] for launches in self.launches)
        return is_priced and bool(self.paid.any()) and all(cells.any() for cells in own)

    @property
    def is_zero(self) -> bool:
        """Whether nothing changed between the sides: every count, time, price and metered energy, to the last digit."""
        olds, news = ((side.price, grid.price, grid.number) for side, grid in self.sides)
        are_equal = all(np.array_equal(old, new, equal_nan=True) for old, new in zip(olds, news, strict=True))
        are_paired = (self.statuses == MATCHED).all() and np.array_equal(*self.launches)
        return bool(are_equal and are_paired and self.old_side.measured == self.new_side.measured)

    @property
    def guessed(self) -> str:
        """The name of the first table that nobody asked for, of a GPU or CPU that none is made for; else empty."""
        gpus = (gpu for side, _ in self.sides for energy in side.energies for gpu in energy.each)
        return next((gpu.costs.name for gpu in gpus if gpu.is_guessed and gpu.costs is not None), "")

    @cached_property
    def unknown(self) -> Bools:
        """True for cells where neither side knows an energy that at least one of them has to pay."""
        lost = (self.old.state == LOST) | (self.new.state == LOST)
        return np.asarray(lost & (self.old.state >= LOST) & (self.new.state >= LOST))

    @cached_property
    def uncompared(self) -> Bools:
        """True for cells where one side at least knows an energy, but the two cannot be compared."""
        old, new = self.old, self.new
        valued = (old.state <= LOWER) | (new.state <= LOWER)
        # One side pays exactly nothing, and the other has nothing to know.
        free = (old.state == KNOWN) & (old.joules == 0) & (new.state == NONE)
        free |= (new.state == KNOWN) & (new.joules == 0) & (old.state == NONE)
        return np.asarray(valued & ~self.compared & ~free)

    @cached_property
    def is_repriced(self) -> Bools:
        """The cells whose price changed with the tables, not with the mix of instructions, (n_matches, n_words)."""
        return np.asarray((self.old.price != self.new.price) & self.has_other_price)

    @cached_property
    def has_other_price(self) -> Bools:
        """Whether each word has another price in the table of NEW than in that of OLD, (n_words,)."""
        is_other = self.old_side.price != self.new_side.price
        is_amount = IS_TIME & self.is_priced_alike | self.is_of_two_processors
        return np.asarray(is_other & ~is_amount)

    @cached_property
    def paid(self) -> Bools:
        """The cells of the change that are compared and cost anything on either side."""
        return np.asarray(self.compared & ((self.old.joules != 0) | (self.new.joules != 0)))

    @cached_property
    def cells(self) -> dict[str, list[list[Any]]]:
        """The tables of the change ("paid", "old_j", ...) as lists [match][word]: thousands are quick to add up."""
        old, new = self.old, self.new
        tables = {"paid": self.paid & self.has_energy, "old": self.amounts(old), "new": self.amounts(new)}
        tables |= {"old_j": old.joules, "new_j": new.joules, "quantity_j": self.quantity_j, "price_j": self.price_j}
        tables |= {"limit_j": self.limit_j, "marks": self.marks, "is_repriced": self.is_repriced}
        return {name: table.tolist() for name, table in tables.items()}

    def marks_of(self, rows: slice) -> int:
        """The marks of the change of the matches `rows`: of all that is paid, MISSING if something is left out."""
        marks = combined(self.marks[rows][self.paid[rows]])
        if self.uncompared[rows].any() or self.unknown[rows].any() or not self.has_energy:
            marks |= MISSING
        return marks

    def compared_j(self, grid: Grid, rows: _Rows = slice(None), columns: _Rows = slice(None)) -> float:
        """The sum, J, of a grid's energies in the compared cells of `rows` and `columns`; NaN if one is not known."""
        # A repeat that ran what others did not has no energy to know of words that nobody counts; theirs are 0.
        joules = np.where(grid.state[rows] == NONE, 0.0, grid.joules[rows])[:, columns]
        return math.fsum(joules[self.compared[rows][:, columns]].tolist())

    def known_j(self, grid: Grid, rows: _Rows = slice(None)) -> float | None:
        """The sum, J, of a grid's energies in the compared cells of `rows`; None: no side is priced, or one is lost."""
        return finite(self.compared_j(grid, rows)) if self.has_energy else None

    def test(self, amount: Callable[[Grid], float | None], of_runs: bool = False) -> Test | None:
        """Welch's test of what `amount` makes of each repeat of NEW against OLD's; None if too few repeats know it.

        of_runs, and where time alone changed: of the mean of `amount` over each run, because repeats of one run follow
        each other, on one machine, idle or busy for all of them. None also if all runs of a side began before the
        other's.
        """
        amounts: list[dict[tuple[str, str], list[float]]] = []  # by (start, directory) of the run
        for side, repeats in ((self.old_side, self.old_repeats), (self.new_side, self.new_repeats)):
            known = zip(side.runs, (mapped(finite, amount(grid)) for grid in repeats), strict=True)
            amounts.append(gathered((key, number) for key, number in known if number is not None))
        if not (of_runs or self.rests_on_time):
            return welch(*(list(chain(*runs.values())) for runs in amounts))
        old, new = amounts
        if not (old and new) or (self.are_dated and (max(old) < min(new) or max(new) < min(old))):
            return None
        return welch(*([math.fsum(repeats) / len(repeats) for repeats in runs.values()] for runs in amounts))

    @property
    def are_dated(self) -> bool:
        """Whether every run of both sides tells when it began, and so whether they took turns."""
        return all(started for side, _ in self.sides for started, _ in side.runs)

    @cached_property
    def time_is_told(self) -> bool:
        """Whether a change of time is no mere noise: times are modelled, or runs of OLD and NEW in turns show it."""
        test = self.test(lambda grid: finite(grid.number[:, TIME].sum()), of_runs=True)
        return self.is_modelled or (test is not None and test.shown)

    def names(self, row: int) -> list[str]:
        """The names of a match: OLD's, then NEW's, as far as the sides have the kernel."""
        return [kernel.name for kernel in self.kernels[row] if kernel is not None]


def split(old: Side, new: Side, matches: Sequence[Match]) -> Changes:
    """Split the change of every cell, for the terms E = n c of the model (docs/model.md; [FMM] section II):

    n1 c1 - n0 c0 = (n1 - n0) (c0 + c1) / 2   changed counts, bytes or time, at the mean of the two prices
                  + (c1 - c0) (n0 + n1) / 2   changed price, at the mean of the two counts

    This is the Shapley value of two factors: neither goes first, so swapping OLD and NEW turns every part's sign. With
    equal prices the second is exactly 0. A price c = p h, held at the share h by a board's power limit, changes by both
    factors in the same way: (p1 - p0) (h0 + h1) / 2 + (h1 - h0) (p0 + p1) / 2. A cell that one side does not know is
    left out, never taken for 0.
    """
    places_old, places_new = [match.old for match in matches], [match.new for match in matches]
    olds, news = (
        side.grids.rows([place or 0 for place in places]) for side, places in ((old, places_old), (new, places_new))
    )
    olds, news = _absent(olds, news, places_old, old.lacks_rows), _absent(news, olds, places_new, new.lacks_rows)
    news = _folded(news, olds[-1])
    olds = _folded(olds, news[-1])

    pricings = [{(gpu.name, gpu.source, gpu.setting, gpu.factor) for gpu in side.tables} for side in (old, new)]
    is_priced_alike = pricings[0] == pricings[1]
    names = [{part.device.name for part in side.first.profile.counted} for side in (old, new)]
    tables = [{(costs.name, costs.source, costs.device) for costs in side.tables} for side in (old, new)]
    are_named = None not in names[0] | names[1] and all(tables)
    are_apart = are_named and not names[0] & names[1] and tables[0] != tables[1]
    if are_apart:
        # Of two tables, which may price other words, only the energies compare; what one does not price is nothing.
        olds, news = (replace(each, joules=np.where(each.state == NONE, 0.0, each.joules)) for each in (olds, news))

    # A count of 0 needs no price, and takes the other side's; so it does the share that a limit leaves.
    mean_old, mean_new = olds[-1], _rounded(news[-1], olds[-1])
    # What no table prices is known of neither side, though a count of 0 would pay nothing.
    is_unpriced = np.isnan(mean_old.price) & np.isnan(mean_new.price)
    is_unpriced &= (mean_old.state == LOST) | (mean_new.state == LOST)
    before, after = (
        replace(
            own,
            price=known_or_zero(np.where(np.isnan(own.price), other.price, own.price)),
            held=np.where(own.number == 0, other.held, own.held),
            joules=np.where(is_unpriced, np.nan, own.joules),
            marks=own.marks | is_unpriced * MISSING,
        )
        for own, other in ((mean_old, mean_new), (mean_new, mean_old))
    )
    same_books = are_apart or len({costs.books for costs in (*old.tables, *new.tables)}) < 2
    # Two lower bounds are compared where both lack the same thing: what a simulator leaves out. A counter that
    # overflowed, on the other hand, may lack half of a kernel on one side and little on the other.
    is_simulated = (before.marks & after.marks & SIMULATED) != 0
    both_lower = (before.state == LOWER) & (after.state == LOWER) & is_simulated
    compared: Bools = (before.state == KNOWN) & (after.state == KNOWN) | both_lower
    if are_apart:  # as far as each report knows its own
        compared = (before.state <= LOWER) & (after.state <= LOWER)
    if old.is_of_rates != new.is_of_rates:  # cycles that are assumed to pass tell nothing of the other side
        compared &= ~(FOLLOWS_TIME & ~IS_TIME & ((before.counted | after.counted) & ASSUMED != 0))
    if not same_books:
        # A byte of L2 is not the same thing in two books.
        levels = [WORDS.index(word) for word in BYTES]
        compared[:, levels] &= (before.joules[:, levels] == 0) & (after.joules[:, levels] == 0)
    is_net = _net_on_one_side(old, new, before, after)
    compared &= ~is_net
    paid = [grid.price * grid.held for grid in (before, after)]
    quantity = (after.number - before.number) * ((paid[0] + paid[1]) / 2)
    mean_number = (before.number + after.number) / 2
    price = (after.price - before.price) * ((before.held + after.held) / 2) * mean_number
    limit = (after.held - before.held) * ((before.price + after.price) / 2) * mean_number
    # An energy may be known, as 0, of what was not counted.
    uncounted = np.isnan(quantity + price)
    quantity = np.where(uncounted, after.joules - before.joules, quantity)
    price, limit = (np.where(uncounted, 0.0, each) for each in (price, limit))
    if is_priced_alike:
        # Of one table, constant power differs by how many cores are in use: CPU time is an amount, as time is.
        quantity[:, TIME], price[:, TIME] = (after.joules - before.joules)[:, TIME], 0.0
    if are_apart:
        quantity, price, limit = after.joules - before.joules, np.zeros_like(price), np.zeros_like(limit)
    # A class that only simulated bounds are known of keeps its mark; what is compared exactly misses nothing.
    is_lower = (before.state == LOWER) | (after.state == LOWER)
    marks = (before.marks | after.marks) & np.where(is_lower, -1, ~MISSING)

    return Changes(
        old_side=old,
        new_side=new,
        matches=tuple(matches),
        old=before,
        new=after,
        # Adding 0.0 makes 0 of the -0 that comes of a class that pays nothing.
        quantity_j=np.where(compared, quantity, 0.0) + 0.0,
        price_j=np.where(compared, price, 0.0) + 0.0,
        limit_j=np.where(compared, limit, 0.0) + 0.0,
        compared=compared,
        is_net=is_net,
        marks=np.where(compared, marks, 0),
        old_repeats=tuple(olds[place] for place in range(len(old.energies))),
        new_repeats=tuple(news[place] for place in range(len(new.energies))),
        is_priced_alike=is_priced_alike,
        is_of_two_processors=are_apart,
    )


def _rounded(grid: Grid, partner: Grid) -> Grid:
    """The grid with the numbers of `partner` if all that both know is equal but for rounding; else as it is."""
    is_equal = np.isclose(grid.number, partner.number, rtol=_EQUAL, atol=0)
    if not is_equal[~np.isnan(grid.number + partner.number)].all():
        return grid
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(is_equal & (grid.number != 0), partner.number / grid.number, 1.0)
    is_held_alike = is_equal & np.isclose(grid.held, partner.held, rtol=_EQUAL, atol=0)
    joules = np.where(is_held_alike & (grid.price == partner.price), partner.joules, grid.joules * factor)
    held = np.where(is_held_alike, partner.held, grid.held)
    return replace(grid, number=np.where(is_equal, partner.number, grid.number), joules=joules, held=held)


def _net_on_one_side(old: Side, new: Side, before: Grid, after: Grid) -> Bools:
    """True for bytes of L2 that one side tells net of those farther away, which the other did not count, (n, n_words).

    Books of bytes served take from L2's what DRAM and the host served; what is not counted is not taken away.
    """
    is_net = np.zeros(before.number.shape, dtype=np.bool_)
    for near, farther in _FARTHER.items():
        ways = [side.formulas(near) for side in (old, new)]
        if not all(ways) or ways[0] & ways[1]:
            continue
        column, far = WORDS.index(near), [WORDS.index(word) for word in farther]
        known = [~np.isnan(grid.number[:, far]) for grid in (before, after)]
        moved = np.fmax(*(known_or_zero(grid.number) for grid in (before, after)))
        is_lacking = known[0] != known[1]
        is_much = is_lacking & (moved[:, far] > _MUCH * moved[:, [column]])
        is_net[:, column] = is_lacking.any(axis=1) & is_much.any()
    return is_net


def _absent(grids: Grid, partner: Grid, places: Sequence[int | None], lacks_rows: bool) -> Grid:
    """Set the cells of kernels that a side lacks (`places`: None) to 0 in the words that `partner` counts.

    A word that the side knows of none of its own kernels stays unknown: what one side alone counts is no change. So do
    all words of kernels that may stand in rows which the side's log lost.
    """
    is_absent = np.array([place is None for place in places])
    known, own = partner[-1], grids[-1].rows(np.flatnonzero(~is_absent).tolist())
    is_lost = (own.state == LOST).all(axis=0) & (len(own.state) > 0) | lacks_rows
    is_counted = (~is_lost | ~np.isnan(own.number).all(axis=0)) & (not lacks_rows)
    none = replace(
        known,
        number=np.where(is_counted, known.number * 0.0, np.nan),  # NaN stays
        joules=np.where(is_lost, np.nan, known.joules * 0.0),
        marks=known.marks | is_lost * MISSING,
    )
    rows = is_absent[:, None]
    return Grid(*(np.where(rows, getattr(none, name), getattr(grids, name)) for name in Grid.__struct_fields__))


def _folded(grids: Grid, partner: Grid) -> Grid:
    """Add up parts (kinds of FP32, reads and writes) to their total where `partner` has only that; parts become NaN.

    Kinds neither counted nor priced add nothing. The price of the sum is its energy over its count. ESTIMATED: a total
    may hold instructions of no kind.
    """
    for total, parts in {**FLOAT_PARTS, **LEVEL_PARTS}.items():
        column = WORDS.index(total)
        kinds = [WORDS.index(part) for part in parts]
        state = grids[-1].state
        only_total = (partner.state[:, column] <= LOWER) & (partner.state[:, kinds] == NONE).all(axis=1)
        only_kinds = (state[:, column] == NONE) & (state[:, kinds] != NONE).any(axis=1)
        rows = np.flatnonzero(only_total & only_kinds)
        if not rows.size:
            continue
        chosen = grids.rows(rows.tolist())
        is_lost = (chosen.state[..., kinds] == LOST).any(axis=-1)
        # Of kinds that are all unknown nothing is known; the sum of some is a lower bound.
        number, joules, free_j = (
            np.where(np.isnan(parts).all(axis=-1), np.nan, np.nansum(parts, axis=-1))
            for parts in (table[..., kinds] for table in (chosen.number, chosen.joules, chosen.joules / chosen.held))
        )
        grids = grids.each(np.copy)
        with np.errstate(invalid="ignore", divide="ignore"):
            grids.price[:, rows, column] = np.where(number > 0, free_j / number, grids.price[:, rows, column])
            grids.held[:, rows, column] = np.where(free_j > 0, joules / free_j, 1.0)
        grids.number[:, rows, column] = number
        grids.joules[:, rows, column] = np.where(is_lost, np.nan, joules)
        for marks, of_kinds in ((grids.marks, chosen.marks), (grids.counted, chosen.counted)):
            marks[:, rows, column] = np.bitwise_or.reduce(of_kinds[..., kinds], axis=-1) | ESTIMATED
        for kind in kinds:
            grids.number[:, rows, kind] = grids.joules[:, rows, kind] = np.nan
            grids.marks[:, rows, kind] = grids.counted[:, rows, kind] = 0
    return grids
