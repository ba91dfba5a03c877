"""What caused a change: fewer bytes, another precision, fewer launches, other prices.

Constant power is a consequence of time. Where bytes or flops explain the change of a kernel's time, its constant power
is added to theirs; else "time" is a cause of its own (docs/diff.md).
"""

from operator import add

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints, known_or_zero
from eprof.base.optional import mapped, ratio
from eprof.base.vocabulary import ASSUMED, CONSTANT, COUNTS, SIMULATED
from eprof.commands.diff.changes import APPEARED, VANISHED, Changes
from eprof.commands.diff.parts import CPU_TIMED, FAMILY_OF, GROUP_OF, TIMED, Spread, price_because
from eprof.commands.diff.schema import Cause
from eprof.commands.diff.sides import FOLLOWS_TIME, IS_TIME, TIME, WORDS, Grid
from eprof.costs import Costs
from eprof.energy.clocks import TimeModel
from eprof.energy.modelled_time import roofs_s

MODEL, LAUNCHES, PRICE = "model", "launches", "price"
_UNITS_OF_CAUSES = {GROUP_OF[word]: count.unit for word, count in COUNTS.items()}
_UNITS_OF_CAUSES |= dict.fromkeys((TIMED, CPU_TIMED, MODEL), "s")
_CAUSE_OF = GROUP_OF | {CONSTANT: TIMED}
_CAUSE_OF_FAMILY = FAMILY_OF | {CONSTANT: TIMED}
_KEYS = tuple(
    dict.fromkeys([*_CAUSE_OF.values(), *_CAUSE_OF_FAMILY.values(), MODEL, LAUNCHES, PRICE, APPEARED, VANISHED])
)
_PLACES = {key: place for place, key in enumerate(_KEYS)}
_ONE_SIDED = [_PLACES[APPEARED], _PLACES[VANISHED]]
_KEY_OF_WORD, _KEY_OF_FAMILY = (np.array([_PLACES[of[word]] for word in WORDS]) for of in (_CAUSE_OF, _CAUSE_OF_FAMILY))
_DRAM = [WORDS.index(word) for word in ("dram_read", "dram_write", "dram")]
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
    keys = _keys(changes)
    price_keys = np.where(np.isin(keys, _ONE_SIDED), keys, _PLACES[PRICE])
    change_j = _added(keys, by_count) + _added(price_keys, by_price)
    constant_j = _added(keys, np.where(_of_time(changes), by_count, 0.0))
    time_s = _added(keys, np.where(IS_TIME & changes.paid, changes.new.number - changes.old.number, 0.0))
    old, new = (
        _added(keys, _amounts(changes, grid, launches, keys))
        for (_, grid), launches in zip(changes.sides, changes.launches, strict=True)
    )
    size_j = _added(keys, abs(by_count)) + _added(price_keys, abs(by_price))
    clear_j = _added(keys, abs(by_count) * is_clear) + _added(price_keys, abs(by_price) * is_clear)

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
            )
            for place in np.flatnonzero(change_j[row]).tolist()
        ]
        causes.append(sorted(_with_precision(of_row), key=lambda cause: -abs(cause.change_j)))
    return causes[-1], causes[:-1]


def _through(changes: Changes) -> list[str | UnsetType]:
    """Why each kernel moves other DRAM bytes, last all together: "coalescing", "cache hits"; UNSET: requests, unknown.

    DRAM bytes are those asked for, times what a warp's requests move for each, times what caches leave of that.
    """
    is_known = np.ones(len(changes.matches) + 1, dtype=np.bool_)
    factors = []
    for side, grid in changes.sides:
        if side.costs is None or len(side.tables) > 1 or changes.is_of_two_processors:
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
    """Cells of the change added up by cause, (n_matches, n_words) -> (n_matches + 1, n_causes); last, all together."""
    sums = np.zeros((len(keys), len(_KEYS)))
    np.add.at(sums, (np.arange(len(keys))[:, None], keys), cells)
    return np.concatenate([sums, sums.sum(axis=0, keepdims=True)])


def _of_time(changes: Changes) -> Bools:
    """True for cells that follow from time: constant power, and cycles that one side assumes to pass throughout."""
    is_made = ((changes.old.counted | changes.new.counted) & ASSUMED) != 0
    return np.asarray(IS_TIME | FOLLOWS_TIME & is_made)


def _keys(changes: Changes) -> Ints:
    """The cause of each cell's change by counts or time, as its place in `_KEYS`, (n_matches, n_words).

    Launches are the cause of the counts that they explain, and counts that of such time.
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
        keys = np.where(_of_time(changes), keys[:, [TIME]], keys)
    for status in (APPEARED, VANISHED):
        keys[changes.apart == status] = _PLACES[status]
    return keys


def _amounts(changes: Changes, grid: Grid, launches: Floats, keys: Ints) -> Floats:
    """The amount that each cell adds to its cause's: instructions, B, s or J; in the first column launches, kernels."""
    is_own = (keys == _KEY_OF_WORD) | (keys == _KEY_OF_FAMILY)
    is_own[:, TIME] |= keys[:, TIME] == _PLACES[MODEL]
    number = grid.joules if changes.is_of_two_processors else changes.amounts(grid)
    amounts = np.where(changes.paid & is_own, number, 0.0)
    first = keys[:, 0]
    is_one_sided, is_by_launches = np.isin(first, _ONE_SIDED), first == _PLACES[LAUNCHES]
    amounts[is_one_sided, 0] = launches[is_one_sided] > 0
    amounts[is_by_launches, 0] = launches[is_by_launches]
    return amounts


def _causes_of_time(changes: Changes) -> Ints:
    """The cause of each kernel's change of time, as its place in `_KEYS`, (n_matches,); `TIMED`: none explains it."""
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
    if is_priced_alike:
        causes[~is_modelled & _is_by_bytes(changes, old)] = _PLACES["dram"]
    return causes


def _is_by_bytes(changes: Changes, costs: Costs) -> Bools:
    """Whether the change of DRAM bytes predicts that of a measured time within the time model's error, (n_matches,).

    The time that a kernel spends on its bytes grows with them, the rest stays. A change below that error tells nothing.
    """
    peak = costs.peaks_as_run.dram_gb_per_s
    if peak is None:
        return np.zeros(len(changes.matches), dtype=np.bool_)
    model = TimeModel(peak * 1e3)  # bytes in a cycle of 1 MHz
    old_s, new_s = (grid.number[:, TIME] for grid in (changes.old, changes.new))
    old_byte, new_byte = (known_or_zero(grid.number[:, _DRAM]).sum(axis=1) for grid in (changes.old, changes.new))
    p = model.exponent
    with np.errstate(invalid="ignore", divide="ignore"):
        memory_s = model.memory_time(old_s, old_byte, 1.0)
        predicted_s = (old_s**p - memory_s**p + (memory_s * new_byte / old_byte) ** p) ** (1 / p)
        is_predicted = abs(predicted_s - new_s) <= _ERROR * new_s
        return np.asarray(is_predicted & (abs(old_s - new_s) > _ERROR * np.maximum(old_s, new_s)))


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
