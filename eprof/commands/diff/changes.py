"""OLD and NEW on the same kernels, and their difference cell by cell: what changed counts, times and prices cost."""

import math
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, finite, known_or_zero
from eprof.base.brief import Brief
from eprof.base.errors import UsageError
from eprof.base.known import gathered, mapped
from eprof.base.marks import Mark
from eprof.base.nouns import Nouns
from eprof.base.vocabulary import BYTES, COUNTS, FLOAT_PARTS, LEVEL_PARTS, PRICED
from eprof.commands.diff.matching import Kernel, Match
from eprof.costs import Costs
from eprof.lab.welch import Test, welch
from eprof.profile.priced import Energy

# The columns of a grid: every word of the vocabulary, and constant power, whose "count" is seconds.
WORDS = PRICED
TIME = len(WORDS) - 1
IS_TIME = np.arange(len(WORDS)) == TIME
MATCHED, APPEARED, VANISHED = "matched", "appeared", "vanished"
# What is known of a cell's energy. NONE: there is nothing to know (a class total beside its parts, no price needed).
KNOWN, LOWER, LOST, NONE = 0, 1, 2, 3
# Cycles are times too. The columns of the other counts, by their unit.
FOLLOWS_TIME = np.array([*(count.unit == "cycle" for count in COUNTS.values()), True])
COUNTED = [np.array([count.unit == unit for count in COUNTS.values()]) for unit in ("instruction", "byte", "flop")]
# By how much counts of a deterministic program differ from run to run.
REPEATS = 1e-3
_MISSING, _ESTIMATED, _SIMULATED = int(Mark.MISSING), int(Mark.ESTIMATED), int(Mark.SIMULATED)
_Key = tuple[str | None, str]
_Rows = slice | Sequence[int]


class Grid(Brief, Struct, frozen=True, eq=False, dict=True):
    """Counts and energies, (n_kernels, n_words), or a stack of them, (n_repeats, n_kernels, n_words).

    number: instructions, bytes, seconds; joules; price: of one of them, J, or W for time. NaN = not known.
    marks: those of the energy; counted: those of the number. A LOWER energy has a value and is marked MISSING.
    """

    number: Floats
    joules: Floats
    price: Floats
    marks: Ints
    counted: Ints

    @cached_property
    def state(self) -> Ints:
        """Of each energy of a grid what is known: KNOWN, LOWER, LOST or NONE, as integers of the grid's shape."""
        known, lost = ~np.isnan(self.joules), (self.marks & _MISSING) != 0
        return np.select([known & ~lost, known, lost], [KNOWN, LOWER, LOST], NONE).astype(np.int64)

    def __getitem__(self, place: int) -> "Grid":
        """One grid of a stack: that of repeat `place`, or of the mean at -1."""
        return self.each(lambda table: table[place])

    def each(self, function: Callable[[Any], Any]) -> "Grid":
        """The grid of what `function` makes of each of the five tables."""
        return Grid(*(function(getattr(self, name)) for name in self.__struct_fields__))

    def rows(self, places: Sequence[int]) -> "Grid":
        """The grid of the kernels at `places` alone."""
        return self.each(lambda table: table[..., list(places), :])


def known_sum(table: Floats) -> float | None:
    """The sum of what is known of a table; None if nothing is."""
    known = table[~np.isnan(table)]
    return math.fsum(known.tolist()) if known.size else None


def combined(marks: Ints) -> int:
    """The marks of all cells of a table in one: bits of `Mark`."""
    return int(np.bitwise_or.reduce(marks, axis=None, initial=0))


# --------------------------------------------------------------------------------------------------------- one side


class Side(Brief, Struct, frozen=True, eq=False, dict=True):
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
        """The grid of means over the repeats of a side. A kernel that some repeats did not launch counts 0 there."""
        return self.grids[-1]

    @property
    def first(self) -> Energy:
        """The first repeat of a side, whose title, cost tables and definitions are those of all."""
        return self.energies[0]

    @property
    def tables(self) -> list[Costs]:
        """The cost tables of a side: one for all, or one for each GPU, that of the GPU which takes most first."""
        return [gpu.costs for gpu in self.first.each if gpu.costs is not None]

    @cached_property
    def core_w(self) -> float | None:
        """The constant power of one core, W, where a program pays only for the cores that it kept busy; else None."""
        return _constant_w(self.first) if self.first.shares_socket else None

    @property
    def unpriced(self) -> set[str | None]:
        """The labels of the devices that no cost table prices, where a side ran on several GPUs."""
        return {part.device.label for gpu in self.first.gpus if gpu.costs is None for part in gpu.profile.counted}

    @property
    def costs(self) -> Costs | None:
        """The first of `tables`; None where nothing is priced."""
        return next(iter(self.tables), None)

    @cached_property
    def origins(self) -> set[tuple[str, ...]]:
        """A key for each log of a side, to tell whether OLD and NEW are made from the same logs.

        It is host, start of the run and file name; without a run directory, path and hash. So two runs that count
        alike, and leave equal logs, are two.
        """
        origins: set[tuple[str, ...]] = set()
        for profile in (energy.profile for energy in self.energies):
            run = profile.run
            for log in profile.logs:
                if run is not None and run.started_utc:
                    host = str(run.section("host").get("name"))
                    origins.add((host, str(run.started_utc), os.path.basename(log.path)))  # noqa: PTH119
                else:
                    origins.add((os.path.realpath(log.path), log.sha256))
        return origins

    @property
    def runs(self) -> list[tuple[str, str]]:
        """(start, directory) of the run that each repeat of a side is of; of a log without one, ("", its number)."""
        runs = [energy.profile.run for energy in self.energies]
        return [(run.started_utc or "", str(run.path)) if run else ("", str(place)) for place, run in enumerate(runs)]

    @property
    def lacks_rows(self) -> bool:
        """Whether a log of a side is cut off or damaged, so that launches may be missing."""
        logs = (log for energy in self.energies for log in energy.profile.logs)
        return any(table.lacks_rows for log in logs for table in log.tables)

    @property
    def measured(self) -> list[float]:
        """What a meter saw in each repeat of a side, J; repeats without a meter are left out."""
        return [energy.measured_j for energy in self.energies if energy.measured_j is not None]

    @property
    def nouns(self) -> Nouns:
        """The words for what ran on a side."""
        return self.first.counts.nouns

    @property
    def factors(self) -> list[float]:
        """The factor that scales each repeat's prices to its meter; repeats that are not scaled are left out."""
        return [energy.metered.factor for energy in self.energies if energy.metered is not None]

    @property
    def is_modelled(self) -> bool:
        """Whether the times of some kernels of a side come from a model of a simulated device."""
        return any(energy.modelled is not None and not energy.modelled.shares_only for energy in self.energies)

    @property
    def efficiency(self) -> float | None:
        """The share of the roofline's speed that modelled times of a side rest on; None where they are no model."""
        return self.first.modelled.efficiency if self.first.modelled is not None and self.is_modelled else None

    def above_constant(self) -> "Side":
        """The same side of the comparison, where constant power and all else that follows time cost 0 J."""
        is_free = FOLLOWS_TIME & (IS_TIME | ~np.isnan(self.grids.joules))
        free = {name: np.where(is_free, 0, getattr(self.grids, name)) for name in ("joules", "price", "marks")}
        return replace(self, price=np.where(FOLLOWS_TIME, 0.0, self.price), grids=replace(self.grids, **free))

    def taken(self, places: Sequence[int]) -> "Side":
        """The same side with the kernels at `places` alone."""
        return replace(self, named=[self.named[place] for place in places], grids=self.grids.rows(places))


def side(label: str, energies: Sequence[Energy]) -> Side:
    """Make one side of its repeats. Raises UsageError if they are priced differently or there are none."""
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
    keys = list(dict.fromkeys(key for energy in energies for key in _keys(energy)))
    launches = np.zeros(len(keys))
    place_of: dict[_Key, float] = {}
    for energy in energies:
        number_of = dict(zip(_keys(energy), energy.counts.rows.launches.astype(float), strict=True))
        launches += np.array([number_of.get(key, 0.0) for key in keys]) / len(energies)
        # `energy` itself is sorted by energy.
        rows = energy.profile.counts().rows
        last = max(1, len(rows) - 1)
        for place, key in enumerate(zip(rows.device, rows.kernel, strict=True)):
            place_of.setdefault(key, place / last)
    named = [
        Kernel(name, device, number, place_of.get((device, name), 0.0))
        for (device, name), number in zip(keys, launches.tolist(), strict=True)
    ]
    number, counted, joules, marks = (
        np.stack(tables) for tables in zip(*(_tables(energy, keys) for energy in energies), strict=True)
    )
    if len(energies) > 1:
        number, counted = _with_mean(number, counted)
        joules, marks = _with_mean(joules, marks)
    price = _mean_prices(energies)
    prices = np.broadcast_to(price, joules.shape)
    meters = {energy.metered.factor for energy in energies if energy.metered is not None}
    if energies[0].gpus:
        prices = np.array(prices)
        for gpu in energies[0].gpus:
            labels = {part.device.label for part in gpu.profile.counted}
            prices[:, [device in labels for device, _ in keys]] = _mean_prices([gpu])
    # Where a board's limit binds, each kernel has prices of its own.
    is_held = any(energy.split is not None and energy.split.over_j.any() for energy in energies)
    if is_held or len(meters) > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            prices = np.where(number > 0, joules / number, prices)
    grids = Grid(number, joules, prices, marks, counted)
    return Side(label, tuple(energies), named, grids, price)


def _constant_w(energy: Energy) -> float:
    """Constant power, W, to nine digits: of one core where a program pays only for those kept busy, else of all."""
    assert energy.costs is not None
    cores = (energy.profile.cores or 1.0) if energy.shares_socket else 1.0
    return float(f"{energy.costs.constant_power_w / cores:.9g}")


def _keys(energy: Energy) -> list[_Key]:
    rows = energy.counts.rows
    return list(zip(rows.device, rows.kernel, strict=True))


def _tables(energy: Energy, keys: Sequence[_Key]) -> tuple[Floats, Ints, Floats, Ints]:
    """Numbers, their marks, joules, their marks: (n_keys, n_words) each; 0 where the repeat launched no such kernel."""
    row_of = {key: row for row, key in enumerate(_keys(energy))}
    rows = np.array([row_of.get(key, -1) for key in keys])
    launched = rows >= 0
    here = rows[launched]
    shape = (len(keys), len(WORDS))
    number, joules = np.zeros(shape), np.zeros(shape)
    marks, counted = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    counts, split = energy.counts, energy.split
    number[launched, :TIME] = counts.amounts.only(COUNTS)[here]
    counted[launched, :TIME] = counts.amount_marks.only(COUNTS)[here]
    time_s = counts.rows.time_s
    number[launched, TIME] = time_s[here]
    counted[launched, TIME] = (counts.rows.time_marks | np.isnan(time_s) * _MISSING)[here]
    joules[launched] = np.nan
    if split is not None:
        for column, word in enumerate(WORDS):
            if word in split.joules:
                joules[launched, column] = split.joules[word][here]
                marks[launched, column] = split.joule_marks[word][here]
    return number, counted, joules, marks


def _with_mean(stack: Floats, marks: Ints) -> tuple[Floats, Ints]:
    """The stack and its marks, with the mean over the repeats that know a cell as one more repeat at the end.

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
    of_known = np.bitwise_or.reduce(np.where(is_known, marks, 0)) | _ESTIMATED
    of_mean = np.where(is_partly, of_known, np.bitwise_or.reduce(marks))
    return np.concatenate([stack, mean[None]]), np.concatenate([marks, of_mean[None]])


def _mean_prices(energies: Sequence[Energy]) -> Floats:
    """The price of each word, (n_words,), NaN without one: a mean over repeats if each was scaled to its own meter."""
    prices = np.full((len(energies), len(WORDS)), np.nan)
    for price, energy in zip(prices, energies, strict=True):
        if energy.costs is None:
            continue
        for column, word in enumerate(COUNTS):
            charge = energy.costs.charges.get(word)
            if charge is not None:
                price[column] = charge.pj * 1e-12 if charge.pays else 0.0
        price[TIME] = energy.costs.constant_power_w
    if (
        len({(energy.costs.factor, energy.costs.constant_power_w) for energy in energies if energy.costs is not None})
        < 2
    ):
        return np.asarray(prices[0])
    return np.asarray(np.mean(prices, axis=0))


# ------------------------------------------------------------------------------------------------------- the change


class Changes(Brief, Struct, frozen=True, eq=False, dict=True):
    """The change of every match and word, (n_matches, n_words), in J; 0 where nothing is compared.

    quantity_j: for changed counts, bytes or time; price_j: for changed prices. compared: both sides know the energy.
    old, new: the means over repeats, a row a match; old_repeats, new_repeats: each repeat.
    """

    old_side: Side
    new_side: Side
    matches: tuple[Match, ...]
    old: Grid
    new: Grid
    quantity_j: Floats
    price_j: Floats
    compared: Bools
    marks: Ints
    old_repeats: tuple[Grid, ...]
    new_repeats: tuple[Grid, ...]

    @property
    def sides(self) -> tuple[tuple[Side, Grid], tuple[Side, Grid]]:
        """(side, grid of its means) of OLD and of NEW."""
        return (self.old_side, self.old), (self.new_side, self.new)

    @cached_property
    def kernels(self) -> list[tuple[Kernel | None, Kernel | None]]:
        """The kernels of each match, OLD's and NEW's; None where a side has none."""
        olds: dict[int | None, Kernel] = dict(enumerate(self.old_side.named))
        news: dict[int | None, Kernel] = dict(enumerate(self.new_side.named))
        return [(olds.get(match.old), news.get(match.new)) for match in self.matches]

    @cached_property
    def statuses(self) -> "np.ndarray[Any, Any]":
        """Of each match, whether the kernel is on both sides: MATCHED, APPEARED or VANISHED."""
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
        """How often each side launches the kernel of each match, (n_matches,); 0 where it does not have it."""
        old, new = np.array([[getattr(kernel, "launches", 0.0) for kernel in pair] for pair in self.kernels]).T
        return old, new

    @cached_property
    def rests_on_time(self) -> bool:
        """Whether the measured time alone changed, no count that both sides have: a busy machine changes it by itself.

        Counts of a deterministic program repeat almost to the digit: start-up code sees other addresses and names.
        """
        if self.is_modelled or self.price_j.any() or not self.quantity_j[:, TIME].any():
            return False
        old, new = self.counted_by_both
        apart, whole = abs(new - old).sum(axis=0), old.sum(axis=0)
        return bool(whole.any()) and all(apart[unit].sum() <= REPEATS * whole[unit].sum() for unit in COUNTED)

    @cached_property
    def counted_by_both(self) -> Floats:
        """The counts of OLD and of NEW, (2, n_matches, n_counts); 0 where one side did not count."""
        numbers = np.array([grid.number[:, :TIME] for _, grid in self.sides])
        return np.where(np.isnan(numbers).any(axis=0), 0.0, numbers)

    @cached_property
    def is_modelled(self) -> bool:
        """Whether the times of OLD or of NEW come from a model."""
        return self.old_side.is_modelled or self.new_side.is_modelled

    @cached_property
    def core_w(self) -> float | None:
        """The constant power of one core, W, where both sides pay it, by one table, for cores kept busy; else None."""
        old, new = self.old_side.core_w, self.new_side.core_w
        return old if old == new and _are_priced_alike(self.old_side, self.new_side) else None

    @cached_property
    def is_of_two_processors(self) -> bool:
        """Whether OLD and NEW ran on different GPUs or CPUs, each with prices of its own."""
        return _are_of_two_processors(self.old_side, self.new_side)

    def amounts(self, grid: Grid) -> Floats:
        """What each cell of OLD or NEW pays for: instructions, bytes; seconds, or CPU time where there is `core_w`."""
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
        """Whether nothing changed between the sides: every count, time and price known, to the last digit."""
        paired = (self.statuses == MATCHED).all() and np.array_equal(*self.launches)
        same_prices = np.array_equal(self.old_side.price, self.new_side.price, equal_nan=True)
        same_prices &= np.array_equal(self.old.price, self.new.price, equal_nan=True)
        return bool(paired and same_prices and np.array_equal(self.old.number, self.new.number, equal_nan=True))

    @cached_property
    def unknown(self) -> Bools:
        """The cells where neither side knows an energy that at least one of them has to pay."""
        lost = (self.old.state == LOST) | (self.new.state == LOST)
        return np.asarray(lost & (self.old.state >= LOST) & (self.new.state >= LOST))

    @cached_property
    def uncompared(self) -> Bools:
        """The cells where one side at least knows an energy, but the two cannot be compared."""
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
        is_amount = IS_TIME & _are_priced_alike(self.old_side, self.new_side) | self.is_of_two_processors
        return np.asarray(is_other & ~is_amount)

    @cached_property
    def paid(self) -> Bools:
        """The cells of the change that are compared and cost anything on either side."""
        return np.asarray(self.compared & ((self.old.joules != 0) | (self.new.joules != 0)))

    @cached_property
    def cells(self) -> dict[str, list[list[Any]]]:
        """The tables of the change ("paid", "old_j", ...) as lists [match][word]: quick to add thousands up."""
        old, new = self.old, self.new
        tables = {"paid": self.paid & self.has_energy, "old": self.amounts(old), "new": self.amounts(new)}
        tables |= {"old_j": old.joules, "new_j": new.joules, "quantity_j": self.quantity_j, "price_j": self.price_j}
        tables |= {"marks": self.marks, "is_repriced": self.is_repriced}
        return {name: table.tolist() for name, table in tables.items()}

    def marks_of(self, rows: slice) -> int:
        """The marks of the change of some matches: those of all that is paid, MISSING if something is left out."""
        marks = combined(self.marks[rows][self.paid[rows]])
        if self.uncompared[rows].any() or self.unknown[rows].any() or not self.has_energy:
            marks |= _MISSING
        return marks

    def compared_j(self, grid: Grid, rows: _Rows = slice(None), columns: _Rows = slice(None)) -> float:
        """The compared energy, J, of some cells of a grid, OLD's, NEW's or a repeat's; NaN if one is not known."""
        compared = self.compared[rows][:, columns]
        return math.fsum(grid.joules[rows][:, columns][compared].tolist())

    def known_j(self, grid: Grid, rows: _Rows = slice(None)) -> float | None:
        """The compared energy, J, of some matches of a grid, OLD's, NEW's or a repeat's; None: not known."""
        if self.has_energy:
            return finite(self.compared_j(grid, rows))
        return None

    def test(self, amount: Callable[[Grid], float | None]) -> Test | None:
        """Welch's test of what `amount` makes of each repeat of NEW against OLD's; None if too few repeats know it.

        Where time alone changed, it is over runs.
        """
        if self.rests_on_time:
            return self._test_of_runs(amount)
        return welch(*(list(chain(*runs.values())) for runs in self._by_run(amount)))

    @cached_property
    def time_is_told(self) -> bool:
        """Whether a change of time is more than noise: it is modelled, or shown by runs of OLD and NEW in turns."""
        test = self._test_of_runs(lambda grid: finite(grid.number[:, TIME].sum()))
        return self.is_modelled or (test is not None and test.shown)

    def _test_of_runs(self, amount: Callable[[Grid], float | None]) -> Test | None:
        """Welch's test on the mean of `amount` over each run; None also if all runs of a side began before the other's.

        Repeats of one run follow each other, on one machine, idle or busy for all of them.
        """
        old, new = self._by_run(amount)
        is_dated = all(started for started, _ in [*old, *new])
        if not (old and new) or (is_dated and (max(old) < min(new) or max(new) < min(old))):
            return None
        return welch(*([math.fsum(repeats) / len(repeats) for repeats in runs.values()] for runs in (old, new)))

    def _by_run(self, amount: Callable[[Grid], float | None]) -> list[dict[tuple[str, str], list[float]]]:
        sides = (self.old_side, self.old_repeats), (self.new_side, self.new_repeats)
        return [
            gathered(
                (run, known)
                for run, grid in zip(side.runs, repeats, strict=True)
                if (known := mapped(finite, amount(grid))) is not None
            )
            for side, repeats in sides
        ]

    def names(self, row: int) -> list[str]:
        """The names of a match: OLD's, then NEW's, as far as the sides have the kernel."""
        return [kernel.name for kernel in self.kernels[row] if kernel is not None]


def split(old: Side, new: Side, matches: Sequence[Match]) -> Changes:
    """Split the change of every cell, for the terms E = n c of the model (docs/model.md; [FMM] section II):

    n1 c1 - n0 c0 = (n1 - n0) (c0 + c1) / 2   changed counts, bytes or time, at the mean of the two prices
                  + (c1 - c0) (n0 + n1) / 2   changed price, at the mean of the two counts

    This is the Shapley value of two factors: neither goes first, so swapping OLD and NEW turns every part's sign. With
    equal prices the second is exactly 0. A cell that one side does not know is left out, never taken for 0.
    """
    places_old, places_new = [match.old for match in matches], [match.new for match in matches]
    olds, news = (
        side.grids.rows([place or 0 for place in places]) for side, places in ((old, places_old), (new, places_new))
    )
    olds, news = _absent(olds, news, places_old), _absent(news, olds, places_new)
    news = _folded(news, olds[-1])
    olds = _folded(olds, news[-1])

    are_apart = _are_of_two_processors(old, new)
    if are_apart:
        # What one's table prices in other words than the other's is nothing there.
        olds, news = (replace(each, joules=np.where(each.state == NONE, 0.0, each.joules)) for each in (olds, news))

    # A count of 0 needs no price, and takes the other side's.
    mean_old, mean_new = olds[-1], news[-1]
    lacks_old, lacks_new = np.isnan(mean_old.price), np.isnan(mean_new.price)
    before = replace(mean_old, price=known_or_zero(np.where(lacks_old, mean_new.price, mean_old.price)))
    after = replace(mean_new, price=known_or_zero(np.where(lacks_new, mean_old.price, mean_new.price)))
    same_books = are_apart or len({costs.books for costs in (*old.tables, *new.tables)}) < 2
    # Two lower bounds are compared where both lack the same thing: what a simulator leaves out. A counter that
    # overflowed, on the other hand, may lack half of a kernel on one side and little on the other.
    is_simulated = (before.marks & after.marks & _SIMULATED) != 0
    both_lower = (before.state == LOWER) & (after.state == LOWER) & is_simulated
    compared: Bools = (before.state == KNOWN) & (after.state == KNOWN) | both_lower
    if are_apart:  # as far as each report knows its own
        compared = (before.state <= LOWER) & (after.state <= LOWER)
    if not same_books:
        # A byte of L2 is not the same thing in two books.
        levels = [WORDS.index(word) for word in BYTES]
        compared[:, levels] &= (before.joules[:, levels] == 0) & (after.joules[:, levels] == 0)
    quantity = (after.number - before.number) * ((before.price + after.price) / 2)
    price = (after.price - before.price) * ((before.number + after.number) / 2)
    if _are_priced_alike(old, new):
        # Of one table, constant power differs by how many cores are in use: CPU time is an amount, as time is.
        quantity[:, TIME], price[:, TIME] = (after.joules - before.joules)[:, TIME], 0.0
    if are_apart:
        quantity, price = after.joules - before.joules, np.zeros_like(price)
    # A class that only simulated bounds are known of keeps its mark; what is compared exactly misses nothing.
    is_lower = (before.state == LOWER) | (after.state == LOWER)
    marks = (before.marks | after.marks) & np.where(is_lower, -1, ~_MISSING)

    return Changes(
        old_side=old,
        new_side=new,
        matches=tuple(matches),
        old=before,
        new=after,
        # Adding 0.0 makes 0 of the -0 that comes of a class that pays nothing.
        quantity_j=np.where(compared, quantity, 0.0) + 0.0,
        price_j=np.where(compared, price, 0.0) + 0.0,
        compared=compared,
        marks=np.where(compared, marks, 0),
        old_repeats=tuple(olds[place] for place in range(len(old.energies))),
        new_repeats=tuple(news[place] for place in range(len(new.energies))),
    )


def _are_priced_alike(old: Side, new: Side) -> bool:
    """Whether both sides pay by one table at one setting."""
    before, after = ({(gpu.name, gpu.source, gpu.setting, gpu.factor) for gpu in side.tables} for side in (old, new))
    return before == after


def _are_of_two_processors(old: Side, new: Side) -> bool:
    """Whether the sides ran on two GPUs or CPUs, each with prices of its own.

    Counts times prices are not split then: of two tables, which may price other words, only the energies compare.
    """
    names = [{part.device.name for part in side.first.profile.counted} for side in (old, new)]
    tables = [{(costs.name, costs.source, costs.device) for costs in side.tables} for side in (old, new)]
    are_named = None not in names[0] | names[1] and all(tables)
    return are_named and not names[0] & names[1] and tables[0] != tables[1]


def _absent(grids: Grid, partner: Grid, places: Sequence[int | None]) -> Grid:
    """The grids of a side, with 0 for kernels that it does not have (`places`: None) in what `partner` counts.

    A word that the side knows of none of its own kernels stays unknown: what one side alone counts is no change.
    """
    is_absent = np.array([place is None for place in places])
    known, own = partner[-1], grids[-1].rows(np.flatnonzero(~is_absent).tolist())
    is_lost = (own.state == LOST).all(axis=0) & (len(own.state) > 0)
    is_counted = ~is_lost | ~np.isnan(own.number).all(axis=0)
    none = replace(
        known,
        number=np.where(is_counted, known.number * 0.0, np.nan),  # NaN stays
        joules=np.where(is_lost, np.nan, known.joules * 0.0),
        marks=known.marks | is_lost * _MISSING,
    )
    rows = is_absent[:, None]
    return Grid(*(np.where(rows, getattr(none, name), getattr(grids, name)) for name in Grid.__struct_fields__))


def _folded(grids: Grid, partner: Grid) -> Grid:
    """A side's grids, with parts (kinds of FP32, reads and writes) added up where `partner` has only their total.

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
        number, joules = (np.nansum(table[..., kinds], axis=-1) for table in (chosen.number, chosen.joules))
        grids = grids.each(np.copy)
        with np.errstate(invalid="ignore", divide="ignore"):
            grids.price[:, rows, column] = np.where(number > 0, joules / number, grids.price[:, rows, column])
        grids.number[:, rows, column] = number
        grids.joules[:, rows, column] = np.where(is_lost, np.nan, joules)
        for marks, of_kinds in ((grids.marks, chosen.marks), (grids.counted, chosen.counted)):
            marks[:, rows, column] = np.bitwise_or.reduce(of_kinds[..., kinds], axis=-1) | _ESTIMATED
        for kind in kinds:
            grids.number[:, rows, kind] = grids.joules[:, rows, kind] = np.nan
            grids.marks[:, rows, kind] = grids.counted[:, rows, kind] = 0
    return grids
