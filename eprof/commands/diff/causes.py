"""What caused a change: fewer bytes, another precision, fewer launches, other prices.

Constant power is a consequence of time. Where bytes or flops explain the change of a kernel's time, its constant power
is added to theirs; else "time" is a cause of its own (docs/diff.md).
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints, known_or_zero
from eprof.base.known import ratio
from eprof.base.marks import Mark
from eprof.base.vocabulary import COUNTS
from eprof.commands.diff.changes import APPEARED, IS_TIME, TIME, VANISHED, WORDS, Changes, Grid
from eprof.commands.diff.parts import Refits, price_because
from eprof.commands.diff.schema import Cause
from eprof.costs import Costs
from eprof.energy.simulated import roofs_s
from eprof.energy.time_model import TimeModel

TIMED, MODEL, LAUNCHES, PRICE = "time", "model", "launches", "price"
_GROUP_OF = {word: count.name if count.group == "other" else count.group for word, count in COUNTS.items()}
_UNITS = {_GROUP_OF[word]: count.unit for word, count in COUNTS.items()} | {TIMED: "s", MODEL: "s"}
_KEYS = (*dict.fromkeys(_GROUP_OF.values()), TIMED, MODEL, LAUNCHES, PRICE, APPEARED, VANISHED)
_PLACES = {key: place for place, key in enumerate(_KEYS)}
_ONE_SIDED = [_PLACES[APPEARED], _PLACES[VANISHED]]
_KEY_OF_WORD = np.array([_PLACES[_GROUP_OF.get(word, TIMED)] for word in WORDS])
_DRAM = [WORDS.index(word) for word in ("dram_read", "dram_write", "dram")]
_ASKED = [WORDS.index(word) for word in ("global_read", "global_write")]
# What all requests of warps move, in each book.
_MOVED = {
    "served": [*_DRAM, *(WORDS.index(word) for word in ("l1_read", "l1_write", "l2_read", "l2_write"))],
    "accessed": [WORDS.index(word) for word in ("l1_read", "l2_write")],
}
_SIMULATED = int(Mark.SIMULATED)
_PER_LAUNCH = 0.01
_EXACT = 1e-6
# What the time model with its default exponent is off on average, on the worst of four data sets (docs/tune.md).
_ERROR = 0.056
_FLOATS = ("fp64", "fp32", "fp16")


class _Ledger(Struct, frozen=True, eq=False):
    """The change of each kernel by cause, (n_matches, n_causes), in J.

    constant_j: what of `joules` is constant power, of the change of time `time_s`. old, new: counts, seconds, launches.
    size_j: the parts of `joules` without their signs; clear_j: of these, what is at prices that are known well enough.
    """

    joules: Floats
    constant_j: Floats
    time_s: Floats
    old: Floats
    new: Floats
    size_j: Floats
    clear_j: Floats

    def total(self) -> "_Ledger":
        """The causes of all kernels together, (1, n_causes)."""
        return _Ledger(*(getattr(self, name).sum(axis=0, keepdims=True) for name in self.__struct_fields__))

    def causes(self, row: int, price: str) -> list[Cause]:
        """The causes of one row's change, the largest first. price: why prices changed."""
        changes_j = self.joules[row]
        whole_j = float(changes_j.sum())
        names = {PRICE: price}
        causes = [
            Cause(
                what=names.get(_KEYS[place], _KEYS[place]),
                old=float(self.old[row, place]),
                new=float(self.new[row, place]),
                unit=_UNITS.get(_KEYS[place], ""),
                change_j=float(changes_j[place]),
                share=ratio(float(changes_j[place]), whole_j),
                constant_j=float(self.constant_j[row, place]),
                time_s=float(self.time_s[row, place]),
                is_told=bool(2 * self.clear_j[row, place] >= self.size_j[row, place]),
            )
            for place in np.flatnonzero(changes_j).tolist()
        ]
        return sorted(_with_precision(causes), key=lambda cause: -abs(cause.change_j))


def causes(changes: Changes, refits: Refits | None) -> tuple[list[Cause], list[list[Cause]]]:
    """The causes of the whole change, and those of each matched kernel; none where no energy is compared."""
    if not changes.has_energy:
        return [], [[] for _ in changes.matches]
    ledger = _ledger(changes, _clear(changes, refits))
    price = price_because(changes)
    every = range(len(changes.matches))
    told = [_told_through(ledger.causes(row, price), changes, [row]) for row in every]
    return _told_through(ledger.total().causes(0, price), changes, every), told


def _told_through(causes: list[Cause], changes: Changes, rows: Sequence[int]) -> list[Cause]:
    """The causes of some kernels' change, that by DRAM bytes with what changed these."""
    return [replace(cause, through=_through(changes, rows)) if cause.what == "dram" else cause for cause in causes]


def _through(changes: Changes, rows: Sequence[int]) -> str | UnsetType:
    """Why kernels move other bytes of DRAM though they ask for as many: "coalescing", "cache hits"; UNSET: unknown.

    DRAM bytes are those asked for, times what a warp's requests move for each, times what caches leave of that.
    """
    sides = []
    for half, side in ((changes.old, changes.old_side), (changes.new, changes.new_side)):
        if side.costs is None:
            return UNSET
        number = known_or_zero(half.number[rows])
        asked, moved, dram = (number[:, words].sum() for words in (_ASKED, _MOVED[side.costs.books], _DRAM))
        if not asked or not dram or moved <= dram:
            return UNSET
        sides.append((asked, moved / asked, dram / moved))
    factors = [math.log(new / old) for old, new in zip(*sides, strict=True)]
    towards = math.copysign(1.0, sum(factors))
    whys: tuple[str | UnsetType, ...] = (UNSET, "coalescing", "cache hits")
    return whys[int(np.argmax(np.array(factors) * towards))]


def _clear(changes: Changes, refits: Refits | None) -> Bools:
    """The words whose prices are known well enough to be a cause: an interval of one sign no wider than the price."""
    clear = np.ones(len(WORDS), dtype=np.bool_)
    if refits is None:
        return clear
    for side, replicas in ((changes.old_side, refits.old), (changes.new_side, refits.new)):
        low, high = replicas.price_intervals.T
        clear &= (low == high) | ((low > 0) & (high - low <= known_or_zero(side.price)))
    return clear


def _ledger(changes: Changes, clear: Bools) -> _Ledger:
    # What the mix of kinds makes of a mean price is by counts.
    apart = (changes.old.price != changes.new.price) & (changes.old_side.price != changes.new_side.price)
    by_price: Floats = np.where(apart, changes.price_j, 0.0)
    by_count: Floats = changes.quantity_j + changes.price_j - by_price
    keys, launches = _keys(changes), changes.launches
    price_keys = np.where(np.isin(keys, _ONE_SIDED), keys, _PLACES[PRICE])
    constant_j = np.where(IS_TIME, by_count, 0.0)
    time_s = np.where(IS_TIME & changes.paid, changes.new.number - changes.old.number, 0.0)
    return _Ledger(
        joules=_added(keys, by_count) + _added(price_keys, by_price),
        constant_j=_added(keys, constant_j),
        time_s=_added(keys, time_s),
        old=_added(keys, _amounts(changes.old, launches[0], changes.paid, keys)),
        new=_added(keys, _amounts(changes.new, launches[1], changes.paid, keys)),
        size_j=_added(keys, abs(by_count)) + _added(price_keys, abs(by_price)),
        clear_j=_added(keys, abs(by_count) * clear) + _added(price_keys, abs(by_price) * clear),
    )


def _added(keys: Ints, cells: Floats) -> Floats:
    """Cells of the change added up by cause, (n_matches, n_words) -> (n_matches, n_causes)."""
    sums = np.zeros((len(keys), len(_KEYS)))
    np.add.at(sums, (np.arange(len(keys))[:, None], keys), cells)
    return sums


def _keys(changes: Changes) -> Ints:
    """The cause of each cell by counts or time, (n_matches, n_words)."""
    keys = np.tile(_KEY_OF_WORD, (len(changes.matches), 1))
    of_time = _causes_of_time(changes)
    by_launches = _is_by_launches(changes)
    keys[by_launches] = _PLACES[LAUNCHES]
    # More launches explain more time only where each takes as long as before, as far as the time model could tell.
    with np.errstate(invalid="ignore", divide="ignore"):
        old_s, new_s = (
            half.number[:, TIME] / launches
            for (_, half), launches in zip(changes.halves, changes.launches, strict=True)
        )
    is_as_long = np.isclose(old_s, new_s, rtol=_ERROR, atol=0)
    keys[:, TIME] = np.where(by_launches & is_as_long, _PLACES[LAUNCHES], of_time)
    for status in (APPEARED, VANISHED):
        keys[changes.statuses == status] = _PLACES[status]
    return keys


def _amounts(half: Grid, launches: Floats, paid: Bools, keys: Ints) -> Floats:
    """What each cell of a cause counts: instructions, bytes, seconds; launches, or one side's kernels, in the first."""
    amounts = np.where(paid, half.number, 0.0)
    amounts[:, TIME] *= np.isin(keys[:, TIME], [_PLACES[TIMED], _PLACES[MODEL]])
    first = keys[:, 0]
    is_one_sided, is_by_launches = np.isin(first, _ONE_SIDED), first == _PLACES[LAUNCHES]
    amounts[np.isin(keys, [*_ONE_SIDED, _PLACES[LAUNCHES]])] = 0.0
    amounts[is_one_sided, 0] = launches[is_one_sided] > 0
    amounts[is_by_launches, 0] = launches[is_by_launches]
    return amounts


def _is_by_launches(changes: Changes) -> Bools:
    """The kernels that are launched another number of times and count the same in each launch."""
    old, new = changes.launches
    counts = (np.where(changes.paid, half.number, 0.0)[:, :TIME] for half in (changes.old, changes.new))
    with np.errstate(invalid="ignore", divide="ignore"):
        old_each, new_each = (
            count / launches[:, None] for count, launches in zip(counts, changes.launches, strict=True)
        )
        is_same = np.isclose(old_each, new_each, rtol=_PER_LAUNCH, atol=0).all(axis=1)
    return np.asarray((old != new) & is_same)


def _causes_of_time(changes: Changes) -> Ints:
    """What explains the change of each kernel's time, (n_matches,): `TIMED` where nothing does."""
    old, new = changes.old_side.costs, changes.new_side.costs
    causes = np.full(len(changes.matches), _PLACES[TIMED])
    if old is None or new is None:
        return causes
    times_s = changes.old.number[:, TIME], changes.new.number[:, TIME]
    is_modelled = (changes.old.counted & changes.new.counted)[:, TIME] & _SIMULATED != 0
    before, after = (roofs_s(Columns(tuple(WORDS), half.number), old) for half in (changes.old, changes.new))
    lasting = [np.maximum(roofs["fp32"] + roofs["fp64"], roofs["dram"]) for roofs in (before, after)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        is_explained = np.isclose(times_s[0] * lasting[1] / lasting[0], times_s[1], rtol=_EXACT, atol=0)
    binding = np.where(lasting[0] >= lasting[1], _binding(before), _binding(after))
    is_priced_alike = (old.name, old.setting) == (new.name, new.setting)
    rest = _PLACES[MODEL if is_priced_alike else PRICE]
    causes[is_modelled] = np.where(is_explained, binding, rest)[is_modelled]
    if is_priced_alike:
        causes[~is_modelled & _is_by_bytes(changes, old)] = _PLACES["dram"]
    return causes


def _binding(roofs: dict[str, Floats]) -> Ints:
    """The group whose roof is the lowest in each kernel, a cause of its time, (n_matches,)."""
    flops = np.where(roofs["fp64"] > roofs["fp32"], _PLACES["fp64"], _PLACES["fp32"])
    return np.where(roofs["dram"] >= roofs["fp32"] + roofs["fp64"], _PLACES["dram"], flops)


def _is_by_bytes(changes: Changes, costs: Costs) -> Bools:
    """Where the change of DRAM bytes predicts that of a measured time within the error of the time model.

    The time that a kernel spends on its bytes grows with them, the rest stays. A change below that error tells nothing.
    """
    peak = costs.peaks.dram_gb_per_s
    if peak is None:
        return np.zeros(len(changes.matches), dtype=np.bool_)
    model = TimeModel(peak * 1e3)  # bytes in a cycle of 1 MHz
    old_s, new_s = (half.number[:, TIME] for half in (changes.old, changes.new))
    old_byte, new_byte = (known_or_zero(half.number[:, _DRAM]).sum(axis=1) for half in (changes.old, changes.new))
    p = model.exponent
    with np.errstate(invalid="ignore", divide="ignore"):
        memory_s = model.memory_time(old_s, old_byte, 1.0)
        predicted_s = (old_s**p - memory_s**p + (memory_s * new_byte / old_byte) ** p) ** (1 / p)
        is_predicted = abs(predicted_s - new_s) <= _ERROR * new_s
        return np.asarray(is_predicted & (abs(old_s - new_s) > _ERROR * np.maximum(old_s, new_s)))


def _with_precision(causes: list[Cause]) -> list[Cause]:
    """Two precisions of which one took over the work of the other, as one cause."""
    floats = {cause.what: cause for cause in causes if cause.what in _FLOATS}
    for fell in floats.values():
        for rose in floats.values():
            gone, came = fell.old - fell.new, rose.new - rose.old
            if gone > 0 and 0.5 * gone <= came <= 2 * gone and 2 * gone >= fell.old:
                both = replace(
                    fell,
                    change_j=fell.change_j + rose.change_j,
                    share=None if fell.share is None or rose.share is None else fell.share + rose.share,
                    constant_j=fell.constant_j + rose.constant_j,
                    time_s=fell.time_s + rose.time_s,
                    is_told=fell.is_told and rose.is_told,
                    instead=rose.what,
                )
                return [*(cause for cause in causes if cause is not fell and cause is not rose), both]
    return causes
