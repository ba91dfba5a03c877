"""What changed, and by what cause: the parts of a change, how far each is known, and the causes of all of it.

The parts add up to the change, by word, and by group as steps. Intervals price both sides by the same replicas of their
prices. One table's prices are wrong alike on both sides, so that the change is far surer than either energy. Two tables
are taken to be wrong independently of each other. The error of the model is in the energies of both sides, not in the
change.

Causes are fewer bytes, another precision, fewer launches, other prices. Constant power is a consequence of time. Where
bytes or flops explain the change of a kernel's time, its constant power is added to theirs; else "time" is a cause of
its own (docs/diff.md).

The model ([T] 3.5; [R] II): the old variant does work W (flop) and moves traffic Q (B), the new one f W and Q/m; all
intensities and balances are in flop/B. eta is the flop efficiency eps_flop/(eps_flop + pi0 tau_flop).
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from operator import add, or_

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints, finite, known_or_zero
from eprof.base.errors import CostError
from eprof.base.optional import mapped, ratio
from eprof.base.text import ShortRepr
from eprof.base.vocabulary import ASSUMED, CONSTANT, COUNTS, MISSING, SIMULATED, SOME_FLOPS, mark_names
from eprof.commands.diff.changes import (
    APPEARED,
    FOLLOWS_TIME,
    IS_TIME,
    MATCHED,
    TIME,
    VANISHED,
    WORDS,
    Changes,
    Grid,
    Side,
)
from eprof.commands.diff.schema import Cause, Model, Part, Range, Step
from eprof.energy.attribution import FAMILIES
from eprof.energy.modelled_time import roofs_s
from eprof.energy.time_at_clocks import TimeModel
from eprof.energy.uncertainty import Replicas, independent, middle, places
from eprof.profile.rooflines import Machine, flops_of, machine, main_precision, traffic_of

TIMED, CPU_TIMED, COST, SETTING, METER, LIMIT = "time", "cpu_time", "cost", "setting", "meter", "limit"
PROCESSOR = "processor"  # each side's own, at its own prices
PRICES = (COST, SETTING, METER, LIMIT)
# The words of every combination of marks: thousands of kernels use them.
MARK_WORDS = {bits: mark_names(bits) for bits in range(16)}
FAMILY_OF = {word: count.family for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}
UNITS = {word: count.unit for word, count in COUNTS.items()} | {CONSTANT: "s"}
# What a part of the change is of: a group, or one of the other instructions.
_OTHERS = {word: count.name for word, count in COUNTS.items() if count.group == "other"}
GROUP_OF = {word: count.group for word, count in COUNTS.items()} | _OTHERS | {CONSTANT: CONSTANT}
_MOST_PAIRS = 1000
_SEED = 20261122
_ONE_WIDTH = 0.9  # if fewer of the flops are of one width, one balance cannot stand for all
_ROUNDING = 1e-9
MODEL, LAUNCHES, PRICE = "model", "launches", "price"
_UNITS_OF_CAUSES = {GROUP_OF[word]: count.unit for word, count in COUNTS.items()}
_UNITS_OF_CAUSES |= dict.fromkeys((TIMED, CPU_TIMED, MODEL), "s")
_CAUSE_OF = GROUP_OF | {CONSTANT: TIMED}
_CAUSE_OF_FAMILY = FAMILY_OF | {CONSTANT: TIMED}
_KEYS = tuple(
    dict.fromkeys([*_CAUSE_OF.values(), *_CAUSE_OF_FAMILY.values(), MODEL, LAUNCHES, PRICE, LIMIT, APPEARED, VANISHED])
)
_PLACES = {key: place for place, key in enumerate(_KEYS)}
_ONE_SIDED = [_PLACES[APPEARED], _PLACES[VANISHED]]
_KEY_OF_WORD, _KEY_OF_FAMILY = (np.array([_PLACES[of[word]] for word in WORDS]) for of in (_CAUSE_OF, _CAUSE_OF_FAMILY))
_DRAM = [WORDS.index(word) for word in ("dram_read", "dram_write", "dram")]
_SOME_FLOPS = [WORDS.index(word) for word in SOME_FLOPS]
_ASKED = [WORDS.index(word) for word in ("global_read", "global_write")]
# What all requests of warps move, in each book.
_MOVED = {
    "served": [*_DRAM, *(WORDS.index(word) for word in ("l1_read", "l1_write", "l2_read", "l2_write"))],
    "accessed": [WORDS.index(word) for word in ("l1_read", "l2_write")],
}
_PER_LAUNCH = 0.01
_EXACT = 1e-6
# What the time model with its default exponent is off on average, on the worst of four data sets (docs/tune.md).
_ERROR = 0.056
_FLOATS = ("fp64", "fp32", "fp16")


def all_parts(changes: Changes, spread: "Spread") -> list[Part]:
    """The parts of the change, largest first: by word, of all matched kernels and of each that came or went."""
    parts = [
        replace(part, interval_j=spread.of_words([part.what], part.because, part.change_j))
        for part in parts_of(changes, spread.rows_of(MATCHED).tolist(), None, MATCHED)
    ]
    for row in np.flatnonzero(changes.apart != MATCHED).tolist():
        parts += [
            replace(part, interval_j=spread.of_rows([row], part.change_j, part.what))
            for part in parts_of(changes, [row], changes.names(row)[-1], str(changes.apart[row]))
        ]
    return sorted(parts, key=lambda part: -abs(part.change_j))


def parts_of(changes: Changes, rows: Sequence[int], kernel: str | None, kernels: str) -> list[Part]:
    """The parts of the change of the matches `rows`: for each word one by counts or time, one by prices if they differ.

    Largest change first. Sums are `math.fsum` of the cells: exact but for one rounding, so that turning OLD and NEW
    turns the sign alone.
    """
    cells = changes.cells
    time_because = TIMED if changes.core_w is None else CPU_TIMED
    parts = []
    for column, word in enumerate(WORDS):
        paid = [row for row in rows if cells["paid"][row][column]]
        if not paid:
            continue
        of_word = {name: [table[row][column] for row in paid] for name, table in cells.items()}
        # Where the mix of kinds alone makes a mean price differ, that is a change of the counts.
        because = time_because if word == CONSTANT else "counts"
        if changes.is_of_two_processors:
            because = PROCESSOR
        reasons = {because: math.fsum(of_word["quantity_j"] + of_word["price_j"])}
        if any(of_word["is_repriced"]):
            reasons = dict.fromkeys(reasons, math.fsum(of_word["quantity_j"]))
            reasons[price_because(changes)] = math.fsum(of_word["price_j"])
        if any(of_word["limit_j"]):
            reasons[LIMIT] = math.fsum(of_word["limit_j"])
        sums = {name: math.fsum(of_word[name]) for name in ("old", "new", "old_j", "new_j")}
        part = Part(
            what=word,
            kind=FAMILY_OF[word],
            unit=UNITS[word],
            old=finite(sums["old"]),
            new=finite(sums["new"]),
            old_j=sums["old_j"],
            new_j=sums["new_j"],
            marks=MARK_WORDS[reduce(or_, of_word["marks"])],
            because="",
            change_j=0.0,
            kernel=kernel,
            kernels=kernels,
        )
        parts += [replace(part, because=because, change_j=change_j) for because, change_j in reasons.items()]
    return sorted(parts, key=lambda part: -abs(part.change_j))


def price_because(changes: Changes) -> str:
    """Why prices changed: "cost" (another table), "setting" (other clocks) or "meter" (another factor)."""
    old, new = changes.old_side.tables, changes.new_side.tables
    if {(costs.name, costs.source) for costs in old} != {(costs.name, costs.source) for costs in new}:
        return COST
    if {costs.setting.label for costs in old} != {costs.setting.label for costs in new}:
        return SETTING
    return METER if changes.old_side.factors or changes.new_side.factors else COST


def steps(parts: Iterable[Part], spread: "Spread") -> list[Step]:
    """The parts of the change added up by group and reason; kernels that came or went as steps of their own."""
    bundles: dict[tuple[str | None, str | None, str], list[Part]] = {}
    for part in parts:
        key: tuple[str | None, str | None, str] = (None, None, part.kernels)
        if part.kernels == MATCHED:
            # Tables of two processors price other words.
            group_of = FAMILY_OF if part.because == PROCESSOR else GROUP_OF
            key = (LIMIT if part.because == LIMIT else group_of[part.what], part.because, MATCHED)
        bundles.setdefault(key, []).append(part)
    bundled = []
    for (group, because, kernels), members in bundles.items():
        words = list(dict.fromkeys(part.what for part in members))
        change_j = math.fsum(part.change_j for part in members)
        interval_j = spread.of_rows(spread.rows_of(kernels), change_j)
        if because is not None:
            interval_j = spread.of_words(words, because, change_j)
        names = len({part.kernel for part in members})
        marks = [mark for mark in MARK_WORDS[15] if any(mark in part.marks for part in members)]
        bundled.append(Step(group, because, kernels, words, names, change_j, marks, interval_j))
    return sorted(bundled, key=lambda step: -abs(step.change_j))


class Refits(Struct, frozen=True, eq=False):
    """Replicas of the prices of OLD and of NEW. is_paired: of one table for one GPU, hence with the same errors."""

    old: Replicas
    new: Replicas
    is_paired: bool

    def change(self, before: Floats, after: Floats) -> Floats:
        """Joules of NEW less those of OLD by each replica: (..., n_priced) counts and seconds -> (..., n_replicas)."""
        if self.old is self.new:
            return self.new.joules(after - before)
        return self.new.joules(after) - self.old.joules(before)


def spread_of(changes: Changes) -> "Spread":
    """The intervals of a change by replicas of both sides' prices; without replicas, each interval is None."""
    old, new = changes.old_side, changes.new_side
    before, after = old.replicas, new.replicas
    if not changes.has_energy or before is None or after is None:
        return Spread(changes, None)
    old_table, new_table = old.first.table, new.first.table
    assert old_table is not None and new_table is not None
    of_tables = [(table.name, table.source, table.device) for table in (old_table, new_table)]
    if len(set(of_tables)) == 1:
        is_one_setting = np.array_equal(before.prices, after.prices)
        return Spread(changes, Refits(before, before if is_one_setting else after, True))
    # Pairs of every replica of OLD with every one of NEW; of many, a part drawn at random, the same each time,
    # whichever of both tables is OLD's.
    pairs = np.arange(before.number * after.number)
    if len(pairs) > _MOST_PAIRS:
        pairs = np.random.default_rng(_SEED).choice(len(pairs), _MOST_PAIRS, replace=False)
    if of_tables[0] < of_tables[1]:
        of_old, of_new = np.divmod(pairs, after.number)
    else:
        of_new, of_old = np.divmod(pairs, before.number)
    share = max(before.share, after.share)
    before = replace(before, prices=before.prices[:, of_old], share=share)
    return Spread(changes, Refits(before, replace(after, prices=after.prices[:, of_new], share=share), False))


def energy_intervals(side: Side) -> dict[str, Range | None] | None:
    """Family, or "total" -> [low, high] in J of OLD's, or NEW's, energy; None: a lower bound. All None: no replicas."""
    replicas = side.replicas
    if replicas is None:
        return None
    # Counts as they are paid for: where a board's limit binds, a kernel pays a part of the prices.
    mean = side.mean
    factor = np.divide(mean.price, side.price, out=np.ones_like(mean.price), where=side.price > 0)
    amounts = known_or_zero(mean.number * mean.held * factor).sum(axis=0)
    families = {family: places(words) for family, words in FAMILIES.items()}
    families["total"] = list(range(len(amounts)))
    ends: dict[str, Range | None] = dict.fromkeys(families)
    for family, columns in families.items():
        if (mean.marks[:, columns] & MISSING).any():
            continue
        chosen = np.zeros_like(amounts)
        chosen[columns] = amounts[columns]
        parts_j = known_or_zero(mean.joules[:, columns]).sum(axis=1)
        spread_j = 0.0 if columns == [TIME] else independent(parts_j)
        ends[family] = replicas.interval(replicas.joules(chosen), float(parts_j.sum()), spread_j).tolist()
    return ends


class Spread(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """The intervals of a change, from its joules by each replica. refits: None where the prices' errors are unknown.

    What is compared as a lower bound, or was added up of several prices, has no interval.
    """

    changes: Changes
    refits: Refits | None

    @cached_property
    def amounts(self) -> tuple[Floats, Floats]:
        """The compared counts and seconds of OLD and NEW, (n_matches, n_priced).

        Where a program pays for cores in use, seconds are scaled to as many cores as the first repeat kept in use,
        whose prices the replicas are.
        """
        compared = []
        for side, grid in self.changes.sides:
            number = grid.number
            if side.core_w is not None and side.costs is not None:
                number = np.where(IS_TIME, grid.joules / side.costs.constant_power_w, number)
            compared.append(known_or_zero(np.where(self.changes.paid, number, 0.0)))
        old, new = compared
        return old, new

    @cached_property
    def is_open(self) -> Bools:
        """True for cells that no interval can be made of: lower bounds, and energies that are not count times price."""
        is_open = (self.changes.marks & MISSING) != 0
        for side, grid in self.changes.sides:
            # Where kinds of several prices were added up, the energy is not count times price.
            expected_j = grid.number * known_or_zero(side.price)
            is_product = IS_TIME & (side.core_w is not None)
            is_open |= ~is_product & (np.abs(grid.joules - expected_j) > _ROUNDING * np.abs(grid.joules))
        return np.asarray(self.changes.paid & is_open)

    def rows_of(self, status: str) -> Ints:
        """The rows of the matches whose `Changes.apart` is `status`."""
        return np.flatnonzero(self.changes.apart == status)

    def of_words(self, words: Sequence[str], because: str, change_j: float) -> Range | None:
        """[low, high], J, of some words' change over all matched kernels: by prices if `because` is one, else counts.

        The change is split in two as `changes.split` does it. None: not known.
        """
        refits, columns, rows = self.refits, [WORDS.index(word) for word in words], self.rows_of(MATCHED)
        if refits is None or self.is_open[rows][:, columns].any():
            return None
        old, new = (amounts[rows].sum(axis=0)[columns, None] for amounts in self.amounts)
        before, after = refits.old.prices[columns], refits.new.prices[columns]
        joules = (after - before) * ((old + new) / 2)
        if because not in PRICES:
            prices = [side.price[columns] for side, _ in self.changes.sides]
            prices_differ = ~np.isnan(prices).any(axis=0) & self.changes.has_other_price[columns]
            whole = (new - old) * after if refits.old is refits.new else new * after - old * before
            joules = whole - joules * prices_differ[:, None]
        ends: Range = refits.old.interval(joules.sum(axis=0), change_j).tolist()
        return ends

    def of_rows(self, rows: Ints | list[int], change_j: float, word: str = "") -> Range | None:
        """[low, high], J, of the change of the matches `rows` together, of all words or of one; None: not known."""
        chosen = np.array([word in ("", each) for each in WORDS])
        if self.refits is None or self.is_open[rows][:, chosen].any():
            return None
        old, new = (amounts[rows].sum(axis=0) * chosen for amounts in self.amounts)
        ends: Range = self.refits.old.interval(self.refits.change(old, new), change_j).tolist()
        return ends

    def of_share(self, change_share: float | None, still_s: Sequence[float] = (0.0, 0.0)) -> Range | None:
        """[low, high] of the change as a share of OLD's compared energy; each replica makes both. None: not known.

        still_s: seconds of OLD and of NEW without kernels that are added to both.
        """
        if self.refits is None or change_share is None or self.is_open.any():
            return None
        old, new = (amounts.sum(axis=0) + IS_TIME * gap_s for amounts, gap_s in zip(self.amounts, still_s, strict=True))
        old_j = self.refits.old.joules(old)
        if (old_j <= 0).any():
            return None
        ends: Range = middle(self.refits.change(old, new) / old_j, change_share, self.refits.old.share).tolist()
        return ends

    def of_kernels(self, change_j: Sequence[float]) -> list[Range | None]:
        """The interval, J, of the change of each match; None: not known. change_j: (n_matches,)."""
        ends: list[Range | None] = [None] * len(change_j)
        if self.refits is not None:
            ends = self.refits.old.interval(self.refits.change(*self.amounts), np.array(change_j)).tolist()
            for row in np.flatnonzero(self.is_open.any(axis=1)).tolist():
                ends[row] = None
        return ends


def causes(changes: Changes, spread: Spread) -> tuple[list[Cause], list[list[Cause]]]:
    """The causes of the whole change, and those of each match, largest first; none where no energy is compared."""
    if not changes.has_energy:
        return [], [[] for _ in changes.matches]
    # The words whose prices are known well enough to be a cause: an interval of one sign no wider than the price.
    is_clear = np.ones(len(WORDS), dtype=np.bool_)
    if (refits := spread.refits) is not None:
        for (side, _), replicas in zip(changes.sides, (refits.old, refits.new), strict=True):
            low, high = replicas.price_intervals.T
            is_clear &= (low == high) | ((low > 0) & (high - low <= known_or_zero(side.price)))

    # Tables of (n_matches + 1, n_causes); the last row is of all kernels together.
    by_price: Floats = np.where(changes.is_repriced, changes.price_j, 0.0)
    by_count: Floats = changes.quantity_j + changes.price_j - by_price
    # Constant power follows from time, and so do cycles that one side assumes to pass throughout.
    is_of_time = IS_TIME | FOLLOWS_TIME & (((changes.old.counted | changes.new.counted) & ASSUMED) != 0)
    keys = _keys(changes, np.asarray(is_of_time))
    is_one_sided = np.isin(keys, _ONE_SIDED)
    by_cause = [(keys, by_count)]
    for why, joules in ((PRICE, by_price), (LIMIT, changes.limit_j)):
        by_cause.append((np.where(is_one_sided, keys, _PLACES[why]), joules))
    change_j = np.sum([_added(places, joules) for places, joules in by_cause], axis=0)
    constant_j = _added(keys, np.where(is_of_time, by_count, 0.0))
    time_s = _added(keys, np.where(IS_TIME & changes.paid, changes.new.number - changes.old.number, 0.0))
    old, new = (
        _added(keys, _amounts(changes, grid, launches, keys))
        for (_, grid), launches in zip(changes.sides, changes.launches, strict=True)
    )
    size_j = np.sum([_added(places, abs(joules)) for places, joules in by_cause], axis=0)
    otherwise_j = _added(keys, abs(by_count) * changes.is_counted_otherwise)
    clear_j = np.sum([_added(places, abs(joules) * is_clear) for places, joules in by_cause], axis=0)

    is_apart = changes.is_of_two_processors
    name_of = dict(enumerate(_KEYS)) | {_PLACES[PRICE]: price_because(changes)}
    if changes.core_w is not None:
        name_of[_PLACES[TIMED]] = CPU_TIMED
    units = dict.fromkeys(_CAUSE_OF_FAMILY.values(), "J") if is_apart else _UNITS_OF_CAUSES
    causes = []
    for row, through in enumerate(_through(changes)):
        whole_j = float(change_j[row].sum())
        of_row = [
            Cause(
                what=name_of[place],
                old=float(old[row, place]),
                new=float(new[row, place]),
                unit=units.get(name_of[place], ""),
                change_j=float(change_j[row, place]),
                share=ratio(float(change_j[row, place]), whole_j),
                constant_j=float(constant_j[row, place]) * (not is_apart),
                time_s=float(time_s[row, place]),
                is_told=bool(2 * clear_j[row, place] >= size_j[row, place]),
                through=through if place == _PLACES["dram"] else UNSET,
                counters=(2 * otherwise_j[row, place] > size_j[row, place] and "other") or UNSET,
            )
            for place in np.flatnonzero(change_j[row]).tolist()
        ]
        causes.append(sorted(_with_precision(of_row), key=lambda cause: -abs(cause.change_j)))
    return causes[-1], causes[:-1]


def _through(changes: Changes) -> list[str | UnsetType]:
    """Why DRAM bytes of each kernel, and last of all, changed: "coalescing", "cache hits"; UNSET: requests, unknown.

    DRAM bytes are those asked for, times what a warp's requests move for each, times what caches leave of that.
    """
    is_known = np.ones(len(changes.matches) + 1, dtype=np.bool_)
    factors = []
    for side, grid in changes.sides:
        is_of_gpus = not (side.nouns.is_of_cpu or changes.is_of_two_processors)
        if side.costs is None or len(side.tables) > 1 or not is_of_gpus:
            return [UNSET] * len(is_known)
        number = known_or_zero(grid.number)
        by_match = (number[:, words].sum(axis=1) for words in (_ASKED, _MOVED[side.costs.books], _DRAM))
        asked, moved, dram = (np.append(bytes_, bytes_.sum()) for bytes_ in by_match)
        is_known &= (asked > 0) & (dram > 0) & (moved > dram)
        with np.errstate(invalid="ignore", divide="ignore"):
            factors.append(np.stack([asked, moved / asked, dram / moved]))
    with np.errstate(invalid="ignore", divide="ignore"):
        changed = np.log(factors[1] / factors[0])
    most = np.argmax(changed * np.copysign(1.0, changed.sum(axis=0)), axis=0)
    whys: tuple[str | UnsetType, ...] = (UNSET, "coalescing", "cache hits")
    return [whys[place] for place in np.where(is_known, most, 0).tolist()]


def _added(keys: Ints, cells: Floats) -> Floats:
    """Cells of the change added up by cause, (n_matches, n_words) -> (n_matches + 1, n_causes); last, all matches."""
    sums = np.zeros((len(keys), len(_KEYS)))
    np.add.at(sums, (np.arange(len(keys))[:, None], keys), cells)
    return np.concatenate([sums, sums.sum(axis=0, keepdims=True)])


def _keys(changes: Changes, is_of_time: Bools) -> Ints:
    """The cause of each cell's change by counts or time, as its place in `_KEYS`, (n_matches, n_words).

    Launches are the cause of the counts that they explain, and counts that of such time. is_of_time: cells that follow
    from time.
    """
    keys = np.tile(_KEY_OF_FAMILY if changes.is_of_two_processors else _KEY_OF_WORD, (len(changes.matches), 1))
    if not changes.is_of_two_processors:
        launches_old, launches_new = changes.launches
        with np.errstate(invalid="ignore", divide="ignore"):
            old, new = changes.old.number / launches_old[:, None], changes.new.number / launches_new[:, None]
        # Launched another number of times, counting the same in each launch.
        is_same = np.isclose(old, new, rtol=_PER_LAUNCH, atol=0) | ~changes.paid
        by_launches = (launches_old != launches_new) & is_same[:, :TIME].all(axis=1)
        keys[by_launches] = _PLACES[LAUNCHES]
        # More launches explain more time only where each takes as long as before, as far as the time model could tell.
        is_as_long = np.isclose(old[:, TIME], new[:, TIME], rtol=_ERROR, atol=0)
        keys[:, TIME] = np.where(by_launches & is_as_long, _PLACES[LAUNCHES], _causes_of_time(changes))
        if (changes.apart != changes.statuses).any():  # work moved between functions, and its time with it
            keys[:, TIME] = _PLACES[TIMED]
        keys = np.where(is_of_time, keys[:, [TIME]], keys)
    for status in (APPEARED, VANISHED):
        keys[changes.apart == status] = _PLACES[status]
    return keys


def _amounts(changes: Changes, grid: Grid, launches: Floats, keys: Ints) -> Floats:
    """How much each cell adds to its cause: instructions, B, s or J; in the first column launches, or kernels."""
    is_own = (keys == _KEY_OF_WORD) | (keys == _KEY_OF_FAMILY)
    is_own[:, TIME] |= keys[:, TIME] == _PLACES[MODEL]
    number = grid.joules if changes.is_of_two_processors else changes.amounts(grid)
    amounts = np.where(changes.paid & is_own, number, 0.0)
    amounts[:, _SOME_FLOPS] *= changes.is_of_two_processors  # a second price of flops that others count
    first = keys[:, 0]
    is_one_sided, is_by_launches = np.isin(first, _ONE_SIDED), first == _PLACES[LAUNCHES]
    amounts[is_one_sided, 0] = launches[is_one_sided] > 0
    amounts[is_by_launches, 0] = launches[is_by_launches]
    return amounts


def _causes_of_time(changes: Changes) -> Ints:
    """The cause of each kernel's change of time, as its place in `_KEYS`, (n_matches,); `TIMED`: none explains it.

    Bytes explain a modelled time as its roofline says, and a measured one if they predict its change within the time
    model's error.
    """
    old, new = changes.old_side.costs, changes.new_side.costs
    causes = np.full(len(changes.matches), _PLACES[TIMED])
    if old is None or new is None or len(changes.old_side.tables) > 1 or len(changes.new_side.tables) > 1:
        return causes
    times_s = changes.old.number[:, TIME], changes.new.number[:, TIME]
    is_modelled = (changes.old.counted & changes.new.counted)[:, TIME] & SIMULATED != 0
    lasting, bounds = [], []
    for _, grid in changes.sides:
        roofs = roofs_s(Columns(tuple(WORDS), grid.number), old)
        flops_s = roofs["fp32"] + roofs["fp64"]
        width = np.where(roofs["fp64"] > roofs["fp32"], _PLACES["fp64"], _PLACES["fp32"])
        lasting.append(np.maximum(flops_s, roofs["dram"]))
        bounds.append(np.where(roofs["dram"] >= flops_s, _PLACES["dram"], width))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        is_explained = np.isclose(times_s[0] * lasting[1] / lasting[0], times_s[1], rtol=_EXACT, atol=0)
    binding = np.where(lasting[0] >= lasting[1], *bounds)
    is_priced_alike = (old.name, old.setting) == (new.name, new.setting)
    rest = _PLACES[MODEL if is_priced_alike else PRICE]
    causes[is_modelled] = np.where(is_explained, binding, rest)[is_modelled]
    peak = old.peaks_as_run.dram_gb_per_s
    if is_priced_alike and peak is not None:
        # The time that a kernel spends on its bytes grows with them, the rest stays.
        model = TimeModel(peak * 1e3)  # bytes in a cycle of 1 MHz
        old_s, new_s, p = *times_s, model.exponent
        old_byte, new_byte = (known_or_zero(grid.number[:, _DRAM]).sum(axis=1) for _, grid in changes.sides)
        with np.errstate(invalid="ignore", divide="ignore"):
            memory_s = model.memory_time(old_s, old_byte, 1.0)
            predicted_s = (old_s**p - memory_s**p + (memory_s * new_byte / old_byte) ** p) ** (1 / p)
            is_by_bytes = abs(predicted_s - new_s) <= _ERROR * new_s
            is_by_bytes &= abs(old_s - new_s) > _ERROR * np.maximum(old_s, new_s)  # less tells nothing
        causes[~is_modelled & is_by_bytes] = _PLACES["dram"]
    return causes


def _with_precision(causes: list[Cause]) -> list[Cause]:
    """The causes, with two precisions as one cause where one took over the work of the other."""
    floats = {cause.what: cause for cause in causes if cause.what in _FLOATS}
    for fell in floats.values():
        for rose in floats.values():
            gone, came = fell.old - fell.new, rose.new - rose.old
            if gone > 0 and 0.5 * gone <= came <= 2 * gone and 2 * gone >= fell.old:
                sums = {
                    name: getattr(fell, name) + getattr(rose, name) for name in ("change_j", "constant_j", "time_s")
                }
                share, is_told = mapped(add, fell.share, rose.share), fell.is_told and rose.is_told
                both = replace(fell, **sums, share=share, is_told=is_told, instead=rose.what)
                return [*(cause for cause in causes if cause is not fell and cause is not rose), both]
    return causes


def reading(old: Side, new: Side) -> Model:
    """What flops and DRAM bytes alone say of the change; only `missing` (why not) if they are not known of all."""
    unread = Model(
        missing="The model reads flops of one width and bytes of DRAM, known of every kernel, at the prices and peaks "
        "of one setting of one table."
    )
    tables = [Columns(tuple(WORDS), side.mean.number) for side in (old, new)]
    work, moved = ([float(amounts(table).sum()) for table in tables] for amounts in (flops_of, traffic_of))
    prices = {(costs.name, costs.setting) for costs in (*old.tables, *new.tables)}
    if (
        len(prices) != 1
        or old.is_of_rates
        or new.is_of_rates
        or not (old.costs and new.costs)
        or not all(amount > 0 for amount in (*work, *moved))
    ):
        return unread
    precision = main_precision(tables[0])
    of_width = [float(np.nansum(flops_of(table, precision))) for table in tables]
    if precision is None or any(part < _ONE_WIDTH * whole for part, whole in zip(of_width, work, strict=True)):
        return unread
    try:
        return assess((work[0], moved[0]), (work[1], moved[1]), machine(old.costs, precision))
    except CostError:  # no roofline at this setting
        return unread


def assess(old: tuple[float, float], new: tuple[float, float], machine: Machine) -> Model:
    """The model of a change from (flop, B) to (flop, B), all above 0: speedup, greenup, and the break-even in work.

    The break-even is the f with f + Bhat(f m I)/(m I) = 1 + Bhat(I)/I: below it the change saves energy ([T] eqs. 17,
    27). The left side rises with f, at slope 1 where the new variant is compute bound and eta where it is memory bound.
    """
    f, m, intensity = new[0] / old[0], old[1] / new[1], old[0] / old[1]
    balance, eta = machine.time_balance, machine.flop_efficiency
    scaled = eta * machine.energy_balance

    def bytes_cost(intensity: float) -> float:
        """Bhat(I) = eta B_eps + (1 - eta) max(0, B_tau - I) ([R] II)."""
        return scaled + (1 - eta) * max(0.0, balance - intensity)

    before = 1 + bytes_cost(intensity) / intensity
    after = f + bytes_cost(f * m * intensity) / (m * intensity)
    break_even = before - scaled / (m * intensity)
    if break_even * m * intensity < balance:  # it is memory bound there
        break_even = (before - (scaled + (1 - eta) * balance) / (m * intensity)) / eta
    return Model(
        missing=None,
        precision=machine.precision,
        work_factor=f,
        traffic_factor=m,
        intensity_flop_per_byte=intensity,
        time_balance=balance,
        energy_balance=machine.energy_balance,
        speedup=max(1.0, balance / intensity) / max(f, balance / (m * intensity)),
        greenup=before / after,
        break_even_work_factor=break_even,
    )
