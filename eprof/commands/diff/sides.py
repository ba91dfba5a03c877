"""OLD and NEW, each with its counts, prices and joules as grids: a row a kernel, a column a word of the vocabulary."""

import math
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints
from eprof.base.errors import UsageError
from eprof.base.text import ShortRepr
from eprof.base.vocabulary import COUNTS, ESTIMATED, MISSING, PRICED, Nouns
from eprof.commands.diff.matching import Kernel
from eprof.costs import Costs
from eprof.counts.times import ONE_SECOND
from eprof.energy.replicas import Replicas
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
    marks: those of the energy; counted: those of the number. A LOWER energy has a value and is marked MISSING.
    """

    number: Floats
    joules: Floats
    price: Floats
    marks: Ints
    counted: Ints

    @cached_property
    def state(self) -> Ints:
        """How far each energy of a grid is known: KNOWN, LOWER (a bound), LOST, or NONE (there is none to know)."""
        known, lost = ~np.isnan(self.joules), (self.marks & MISSING) != 0
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
        """The formulas by which OLD, or NEW, counts a word; empty where it does not, or they have no text."""
        return {way.formula for way in self.first.counts.how.get(word, ()) if way.formula}

    @property
    def threads(self) -> Floats:
        """The mean threads of a launch of each kernel, (n_kernels,), in the first repeat; NaN: no log tells them."""
        counts, keys = self.first.counts, [(kernel.device, kernel.name) for kernel in self.named]
        if counts.shape is None:
            return np.full(len(keys), np.nan)
        means = counts.shape["blocks"] * counts.shape["threads"] / counts.rows.launches**2
        mean_of = dict(zip(_keys(self.first), means.tolist(), strict=True))
        return np.array([mean_of.get(key, np.nan) for key in keys])

    @property
    def factors(self) -> list[float]:
        """The factor that scales each repeat's prices to its meter; repeats that are not scaled are left out."""
        return [energy.metered.factor for energy in self.energies if energy.metered is not None]

    @property
    def is_modelled(self) -> bool:
        """Whether the times of some kernels of OLD, or NEW, come from a model of a simulated device."""
        return any(energy.modelled is not None and not energy.modelled.shares_only for energy in self.energies)

    @property
    def tells_launches(self) -> bool:
        """Whether logs tell how often what OLD, or NEW, ran was launched; cachegrind's do not, nor who called whom."""
        return not any(log.format.startswith("callgrind") and log.calls is None for log in self.logs)

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


def side(label: str, energies: Sequence[Energy]) -> Side:
    """Make OLD, or NEW, of its repeats. Raises UsageError if they are priced differently or there are none."""
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
        rows = energy.profile.rows
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
    """One repeat's counts and seconds, their marks, joules, their marks: (n_keys, n_words) each; 0 if not launched."""
    row_of = {key: row for row, key in enumerate(_keys(energy))}
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
    if split is not None:
        joules[launched] = split.joules.spread(WORDS)[here]
        marks[launched] = split.joule_marks.spread(WORDS, 0)[here]
    return number, counted, joules, marks


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
