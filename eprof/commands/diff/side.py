"""One side of a difference: one priced profile, or several repeats of it on the same kernels, with their mean."""

import math
import os
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints
from eprof.base.brief import Brief
from eprof.base.errors import UsageError
from eprof.base.marks import Mark
from eprof.base.nouns import Nouns
from eprof.base.vocabulary import COUNTS, PRICED
from eprof.commands.diff.matching import Kernel
from eprof.costs import Costs
from eprof.logs.rows.log import Log
from eprof.logs.runs import Run
from eprof.profile.profile import Energy

# The columns of a grid: every word of the vocabulary, and constant power, whose "count" is seconds.
WORDS = PRICED
TIME = len(WORDS) - 1
_MISSING, _ESTIMATED = int(Mark.MISSING), int(Mark.ESTIMATED)


class Grid(Struct, frozen=True, eq=False):
    """Counts and energies, (n_kernels, n_words). number: instructions, bytes, seconds; NaN = not known.

    marks: those of the energy; counted: those of the number. A LOWER energy has a value and is marked MISSING.
    """

    number: Floats
    joules: Floats
    marks: Ints
    counted: Ints

    def taken(self, rows: Sequence[int]) -> "Grid":
        """Some rows of a side's grid."""
        places = list(rows)
        return Grid(self.number[places], self.joules[places], self.marks[places], self.counted[places])

    def above_constant(self) -> "Grid":
        """The side's grid with constant power for nothing."""
        is_time = np.arange(len(WORDS)) == TIME
        return replace(self, joules=np.where(is_time, 0.0, self.joules), marks=np.where(is_time, 0, self.marks))


class Side(Brief, Struct, frozen=True, eq=False, dict=True):
    """OLD or NEW. named: the kernels as `matching` wants them; mean: over the repeats.

    A kernel that some repeats did not launch counts 0 there. price: J an instruction or byte, W for constant power;
    NaN = no price.
    """

    label: str
    energies: tuple[Energy, ...]
    named: list[Kernel]
    repeats: tuple[Grid, ...]
    mean: Grid
    price: Floats

    @property
    def first(self) -> Energy:
        """The first repeat of a side; titles, costs and definitions are those of all."""
        return self.energies[0]

    @property
    def costs(self) -> Costs | None:
        """The prices of all repeats of a side."""
        return self.first.costs

    @cached_property
    def origins(self) -> set[tuple[str, ...]]:
        """Which logs of which runs this side is made of. Runs that count alike leave equal logs: these are two."""
        return {_origin(energy.profile.run, log) for energy in self.energies for log in energy.profile.logs}

    def name_of(self, place: int | None) -> str | None:
        """The name of a side's kernel; None for none."""
        return None if place is None else self.named[place].name

    @property
    def measured(self) -> list[float]:
        """What a meter saw in each repeat of a side, J."""
        return [energy.measured_j for energy in self.energies if energy.measured_j is not None]

    @property
    def nouns(self) -> Nouns:
        """The words for what ran on a side."""
        return self.first.profile.nouns

    @property
    def factors(self) -> list[float]:
        """What the prices of each repeat of a side were scaled by, to what its meter saw; none where they were not."""
        return [energy.metered.factor for energy in self.energies if energy.metered is not None]

    def cell_prices(self, grid: Grid) -> Floats:
        """The price of each cell of a grid, (n_kernels, n_words): joules over number where factors differ."""
        prices = np.broadcast_to(self.price, grid.joules.shape)
        if len(set(self.factors)) < 2:
            return prices
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(grid.number > 0, grid.joules / grid.number, prices)

    @property
    def is_modelled(self) -> bool:
        """Whether the times of some kernels of a side come from a model of a simulated device."""
        return any(energy.modelled is not None and not energy.modelled.shares_only for energy in self.energies)

    @property
    def efficiency(self) -> float | None:
        """The share of the roofline's speed that modelled times of a side rest on."""
        return self.first.modelled.efficiency if self.first.modelled is not None and self.is_modelled else None

    def above_constant(self) -> "Side":
        """The same side with constant power for nothing."""
        grids = [grid.above_constant() for grid in (self.mean, *self.repeats)]
        price = np.where(np.arange(len(WORDS)) == TIME, 0.0, self.price)
        return replace(self, price=price, mean=grids[0], repeats=tuple(grids[1:]))

    def taken(self, places: Sequence[int]) -> "Side":
        """The same side with some of its kernels only."""
        grids = [grid.taken(places) for grid in (self.mean, *self.repeats)]
        named = [self.named[place] for place in places]
        return replace(self, named=named, mean=grids[0], repeats=tuple(grids[1:]))


def _origin(run: Run | None, log: Log) -> tuple[str, ...]:
    """A log by its run's host and time of start; one of no run directory by where it is."""
    started = run.started_utc if run is not None else None
    if run is None or not started:
        return os.path.realpath(log.path), log.sha256
    return str(run.section("host").get("name")), str(started), os.path.basename(log.path)  # noqa: PTH119


def side(label: str, energies: Sequence[Energy]) -> Side:
    """Make one side of its repeats. Raises UsageError if they are priced differently or there are none."""
    if not energies:
        raise UsageError(f"{label}: nothing to compare; name a log or a run directory.")
    if len({_pricing(energy.costs) for energy in energies}) > 1:
        raise UsageError(f"The repeats of {label} are priced differently; say --costs and --setting.")
    keys = list(dict.fromkeys(key for energy in energies for key in _keys(energy)))
    grids = tuple(_grid(energy, keys) for energy in energies)
    return Side(label, tuple(energies), _kernels(energies, keys), grids, _mean(grids), _mean_prices(energies))


def _pricing(costs: Costs | None) -> tuple[str, str, str] | None:
    """What the repeats of a side have in common; where each was scaled to its own meter, not the factor."""
    if costs is None:
        return None
    constant_w = costs.constant_power_w if costs.factor == 1 else math.nan
    return costs.name, costs.setting.label, repr(constant_w)


Key = tuple[str | None, str]


def _keys(energy: Energy) -> list[Key]:
    rows = energy.counts.rows
    return list(zip(rows.device, rows.kernel, strict=True))


def _kernels(energies: Sequence[Energy], keys: Sequence[Key]) -> list[Kernel]:
    launches = np.zeros(len(keys))
    places: dict[Key, float] = {}
    for energy in energies:
        number = dict(zip(_keys(energy), energy.counts.rows.launches.astype(float), strict=True))
        launches += np.array([number.get(key, 0.0) for key in keys]) / len(energies)
        # `energy` itself is sorted by energy.
        rows = energy.profile.counts().rows
        last = max(1, len(rows) - 1)
        here = {key: place / last for place, key in enumerate(zip(rows.device, rows.kernel, strict=True))}
        places = {**here, **places}
    return [
        Kernel(name, device, number, places.get((device, name), 0.0))
        for (device, name), number in zip(keys, launches.tolist(), strict=True)
    ]


def _grid(energy: Energy, keys: Sequence[Key]) -> Grid:
    """A repeat of a side on the kernels `keys`. One that it did not launch executed nothing: zeros."""
    row_of = {key: row for row, key in enumerate(_keys(energy))}
    rows = np.array([row_of.get(key, -1) for key in keys])
    launched = rows >= 0
    shape = (len(keys), len(WORDS))
    number, joules = np.zeros(shape), np.zeros(shape)
    marks, counted = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    here = rows[launched]
    counts = energy.counts
    split = energy.split
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
    return Grid(number, joules, marks, counted)


def _mean(grids: Sequence[Grid]) -> Grid:
    """The mean of a side's repeats that know a cell; ESTIMATED where some do not."""
    if len(grids) == 1:
        return grids[0]
    number, some = _known_mean([grid.number for grid in grids])
    joules, some_j = _known_mean([grid.joules for grid in grids])
    marks = np.bitwise_or.reduce([grid.marks for grid in grids])
    counted = np.bitwise_or.reduce([grid.counted for grid in grids])
    return Grid(number, joules, _partly(marks, grids, some_j, "marks"), _partly(counted, grids, some, "counted"))


def _known_mean(tables: Sequence[Floats]) -> tuple[Floats, Bools]:
    """The mean over what is known of a side, and where only some repeats know it.

    One value many times is that value.
    """
    stack = np.stack(tables)
    known = ~np.isnan(stack)
    number = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, stack, 0.0).sum(axis=0) / number
    lowest, highest = np.fmin.reduce(stack), np.fmax.reduce(stack)
    same: Floats = np.where(lowest == highest, lowest, mean)
    return same, np.asarray((number > 0) & (number < len(tables)), dtype=np.bool_)


def _partly(marks: Ints, grids: Sequence[Grid], some: Bools, which: str) -> Ints:
    """Where only some repeats of a side know a cell, its mark MISSING is of one left out: ESTIMATED instead."""
    if not some.any():
        return marks
    table = {"marks": "joules", "counted": "number"}[which]
    of_known = np.zeros_like(marks)
    for grid in grids:
        of_known |= np.where(np.isnan(getattr(grid, table)), 0, getattr(grid, which))
    return np.where(some, of_known | _ESTIMATED, marks)


def _mean_prices(energies: Sequence[Energy]) -> Floats:
    """The prices of all repeats of a side; their mean where each was scaled to its own meter."""
    prices = [np.full(len(WORDS), np.nan) for _ in energies]
    for price, energy in zip(prices, energies, strict=True):
        if energy.costs is None:
            continue
        for column, word in enumerate(COUNTS):
            charge = energy.costs.charges.get(word)
            if charge is not None:
                price[column] = charge.pj * 1e-12 if charge.pays else 0.0
        price[TIME] = energy.costs.constant_power_w
    is_one = len({energy.costs.factor for energy in energies if energy.costs is not None}) < 2
    return prices[0] if is_one else np.asarray(np.mean(prices, axis=0))
