"""Energy, time and flop/B of all kernels of a priced profile together."""

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints, known_or_zero
from eprof.base.known import ratio
from eprof.base.marks import Mark
from eprof.base.text import printable
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUPS
from eprof.costs import ESTIMATED
from eprof.costs.datasheets import data_sheet, most_w, sheets_with
from eprof.logs.rows.log import KernelRows
from eprof.profile.rooflines import all_flops_of, traffic_of

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

TOTAL = "total"
ENERGIES = (COMPUTATION, DATA, CONSTANT, TOTAL)
_ACTS_IN_S = 0.01  # a power limit acts on launches of this length
_FOR_A_MOMENT = (
    3.0  # times its limit that a board may draw for 100 us (PCI Express CEM 5.0; Intel, ATX 3.0 design guide)
)
_PLAUSIBLE = 0.7  # a factor on prices that a table may be off by
CONSTANT_ROW = list(GROUPS).index(CONSTANT)


def joules_of(energy: "Energy") -> dict[str, float | None]:
    """Total energy of the run by family, in J; None: not known."""
    split = energy.split
    if split is None:
        return dict.fromkeys(ENERGIES)

    computation, data = known_sum(split.computation_j), known_sum(split.data_j)
    if energy.total_s is None or energy.costs is None:
        constant, total = known_sum(split.constant_j), known_sum(split.total_j)
    else:
        constant = energy.total_s * energy.costs.constant_power_w
        total = math.fsum(joules for joules in (computation, data, constant) if joules is not None)
    return {COMPUTATION: computation, DATA: data, CONSTANT: constant, TOTAL: total}


def joules_by_group(energy: "Energy", places: Ints) -> Floats:
    """The energy known of each group of counts in some kernels together, (n_groups,), in J, in the order of `GROUPS`.

    places: of the kernels; all of them have the constant energy of the total time, where only that is known.
    """
    assert energy.split is not None and energy.costs is not None
    joules = np.zeros(len(GROUPS))
    rows = {group: row for row, group in enumerate(GROUPS)}
    words = energy.split.joules.names
    of_words = [rows[CONSTANT if word == CONSTANT else COUNTS[word].group] for word in words]
    np.add.at(joules, of_words, known_or_zero(energy.split.joules.values[places]).sum(axis=0))
    if energy.total_s is not None and len(places) == len(energy.counts.rows):
        joules[CONSTANT_ROW] = energy.total_s * energy.costs.constant_power_w
    return joules


def joule_marks_of(energy: "Energy") -> dict[str, int]:
    """The marks on each of `joules_of`."""
    marks = kernel_marks_of(energy)
    if energy.total_s is not None and energy.costs is not None:
        marks[CONSTANT] = int(energy.costs.constant_marks)
        marks[TOTAL] = marks[COMPUTATION] | marks[DATA] | marks[CONSTANT]
    if energy.metered is not None:
        # What was not counted is in what the meter saw; only the idle time is modelled.
        marks[TOTAL] = int(Mark.ESTIMATED) if energy.metered.idle_j else 0
    return marks


def kernel_marks_of(energy: "Energy") -> dict[str, int]:
    """The marks on the energies of the kernels, of all kernels together."""
    if energy.split is None:
        return dict.fromkeys(ENERGIES, int(Mark.MISSING))
    joined = np.bitwise_or.reduce(energy.split.family_marks.values, axis=0).tolist()
    return dict(zip(ENERGIES, joined, strict=True))


def time_of(energy: "Energy") -> float | None:
    """The time of all kernels in s: of them together where only that is known, else the sum of what is known."""
    return known_sum(energy.counts.rows.time_s) if energy.total_s is None else energy.total_s


def time_marks_of(energy: "Energy") -> int:
    """The marks on the total time `time_of`."""
    return 0 if energy.total_s is not None else int(np.bitwise_or.reduce(kernel_time_marks(energy)))


def kernel_time_marks(energy: "Energy") -> Ints:
    """The marks of each kernel's time; MISSING where it is not known."""
    rows = energy.counts.rows
    return rows.time_marks | np.where(np.isnan(rows.time_s), int(Mark.MISSING), 0)


def board_limit_w(energy: "Energy") -> float:
    """The power in W that the profile's board may draw for long; infinite where it is not known.

    By its data sheet, and what partners and owners set beyond it; else by the table. Where only the compute capability
    is known, or which it may be, that of the largest such board.
    """
    assert energy.costs is not None
    devices = [part.device for part in energy.profile.counted]
    limits_w = [limit for device in devices if device.name and (limit := most_w(device.name)) is not None]
    if not limits_w and energy.table is not None and (of_named := most_w(energy.table.device)) is not None:
        limits_w = [of_named]  # an estimate of the board that the user named
    of_table = energy.costs.peaks.power_limit_w
    if limits_w or of_table and energy.costs.basis != ESTIMATED:
        return min(limits_w, default=of_table or math.inf)
    may_be = [capability for device in devices for capability in device.may_be or (device.capability,)]
    of_boards = [sheet.most_w for capability in may_be if capability for sheet in sheets_with(capability)]
    return max((limit for limit in of_boards if limit), default=of_table or math.inf)


def times_limit(rows: KernelRows) -> Floats:
    """How many times its limit a board may draw in launches as long as each kernel's in the mean, (n_kernels,)."""
    return np.where(rows.time_s / rows.launches >= _ACTS_IN_S, 1.0, _FOR_A_MOMENT)


def held_to_limit(energy: "Energy") -> "Energy":
    """The profile with prices that make no more of its counts than the board can draw in that time, and a note.

    Time and clocks are measured, so that the prices give way: all but constant power, by one factor. Those of another
    GPU stay as they are, and a note says that the two are not alike.
    """
    joules, time_s = joules_of(energy), time_of(energy)
    total_j, constant_j = joules[TOTAL], joules[CONSTANT] or 0.0
    is_predicted = energy.costs is not None and energy.metered is None and energy.modelled is None
    if not is_predicted or not total_j or not time_s or time_marks_of(energy) & Mark.MISSING:
        return energy
    most_j = board_limit_w(energy) * time_s
    if constant_j >= most_j:
        return energy
    if total_j <= most_j:
        notes = _over_limit(energy)
        return replace(energy, notes=(*notes, *energy.notes)) if notes else energy
    made = f"The prices make {total_j / time_s:.4g} W of these counts and times, and the board may draw"
    limit = f"{most_j / time_s:.4g} W{_beyond(energy)}"
    if energy.table is None or not energy.profile.is_served_by(energy.table):
        why = "they are of another processor, too large, or the counts or times are not those of this run"
        return replace(energy, notes=(f"{made} {limit}: {why}.", *energy.notes))
    factor = (most_j - constant_j) / (total_j - constant_j)
    note = f"{made} {limit}: its power limit binds, so that all but constant power is taken times {factor:.3g}."
    if factor < _PLAUSIBLE:
        note += " So far off, the times, the counts or the board are probably not those of this run."
    assert energy.costs is not None
    charges = {
        word: replace(charge, pj=charge.pj * factor, marks=charge.marks | Mark.ESTIMATED) if charge.pays else charge
        for word, charge in energy.costs.charges.items()
    }
    held = energy.priced(replace(energy.costs, charges=charges, held=factor))
    return replace(held, notes=(note, *held.notes))


def _over_limit(energy: "Energy") -> list[str]:
    """What takes more than its board can draw where the run as a whole does not: a device, or else a kernel."""
    if energy.total_s is not None or energy.split is None:
        return []
    rows, total_j, limit_w = energy.counts.rows, known_or_zero(energy.split.total_j), board_limit_w(energy)
    parts = []
    for device in dict.fromkeys(rows.device.tolist()):
        is_its = np.array([label == device for label in rows.device])
        parts.append((total_j[is_its].sum(), rows.time_s[is_its].sum(), limit_w, device))
    parts += zip(total_j, rows.time_s, limit_w * times_limit(rows), rows.kernel, strict=True)
    for joules, time_s, may_draw_w, name in parts:
        if joules > may_draw_w * time_s * (1 + 1e-9) and time_s > 0:
            return [
                f"The prices make {joules / time_s:.4g} W of {printable(str(name))}, and the board may draw "
                f"{may_draw_w:.4g} W: they are too high for it, or the times or counts are not those of this run."
            ]
    return []


def _beyond(energy: "Energy") -> str:
    """What tells that a board's limit is taken for more than its data sheet says; else empty."""
    names = [part.device.name for part in energy.profile.counted]
    known = [sheet for name in names if name and (sheet := data_sheet(name)) is not None]
    beyond = max((sheet.beyond_power for sheet in known), default=1.0)
    return f" ({beyond:g} times its data sheet's limit, as partners and owners set it)" if beyond > 1 else ""


def intensity_of(energy: "Energy") -> float | None:
    """Flops per DRAM byte of all kernels; None where either is not known of some kernel."""
    counts = energy.counts.whole
    work, moved = all_flops_of(counts), traffic_of(counts)
    if np.isnan(work).any() or np.isnan(moved).any():
        return None
    return ratio(float(work.sum()), float(moved.sum()))


def known_sum(values: npt.ArrayLike) -> float | None:
    """The total of what is known; None if nothing is."""
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    total = float(known.sum())
    return total if known.size and math.isfinite(total) else None
