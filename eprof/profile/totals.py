"""Energy, time and flop/B of all kernels of a priced profile together."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eprof.base.arrays import Floats, Ints, known_or_zero
from eprof.base.boards import data_sheet, most_w, sheets_with
from eprof.base.gpus import capabilities, capability_of_label
from eprof.base.known import mapped, ratio
from eprof.base.marks import MISSING, Mark
from eprof.base.text import printable, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, GROUP_OF, GROUPS
from eprof.costs import ESTIMATED, CostTable
from eprof.energy.limits import Limits, limits
from eprof.profile.rooflines.work import all_flops_of, traffic_of

if TYPE_CHECKING:
    from eprof.profile.device import Device
    from eprof.profile.priced import Energy

TOTAL = "total"
ENERGIES = (COMPUTATION, DATA, CONSTANT, TOTAL)
_PLAUSIBLE = 0.7  # a factor on prices that a table may be off by
ROW_OF = {group: row for row, group in enumerate(GROUPS)}


def joules_of(energy: "Energy") -> dict[str, float | None]:
    """The energy of all kernels together by family (`ENERGIES`), in J; None: not known."""
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
    assert energy.split is not None
    joules = np.zeros(len(GROUPS))
    of_words = [ROW_OF[GROUP_OF[word]] for word in energy.split.joules.names]
    np.add.at(joules, of_words, known_or_zero(energy.split.joules.values[places]).sum(axis=0))
    if energy.total_s is not None and energy.costs is not None and len(places) == len(energy.counts.rows):
        joules[ROW_OF[CONSTANT]] = energy.total_s * energy.costs.constant_power_w
    return joules


def joule_marks_of(energy: "Energy") -> dict[str, int]:
    """The marks on each energy of `joules_of`, by family."""
    marks = dict.fromkeys(ENERGIES, MISSING)
    if energy.split is not None:
        joined = np.bitwise_or.reduce(energy.split.family_marks.values, axis=0)
        marks = dict(zip(ENERGIES, joined.tolist(), strict=True))
    if energy.total_s is not None and energy.costs is not None:
        marks[CONSTANT] = int(energy.costs.constant_marks)
        marks[TOTAL] = marks[COMPUTATION] | marks[DATA] | marks[CONSTANT]
    if energy.metered is not None:
        # What was not counted is in what the meter saw; only the idle time is modelled.
        marks[TOTAL] = int(Mark.ESTIMATED) * bool(energy.metered.idle_j)
    return marks


def time_of(energy: "Energy") -> float | None:
    """The time of all kernels in s: the total where only that is known, else the sum of known times; None: none is."""
    if energy.total_s is not None:
        return energy.total_s
    return known_sum(energy.counts.rows.time_s)


def time_marks_of(energy: "Energy") -> int:
    """The marks on the total time `time_of`."""
    if energy.total_s is not None:
        return 0
    return int(np.bitwise_or.reduce(kernel_time_marks(energy)))


def kernel_time_marks(energy: "Energy") -> Ints:
    """The marks of each kernel's time; MISSING where it is not known."""
    rows = energy.counts.rows
    return rows.time_marks | np.where(np.isnan(rows.time_s), MISSING, 0)


def board_limit_w(energy: "Energy", device: "Device") -> float:
    """The power in W that the board of a device of the profile may draw for long; infinite where it is not known.

    As the log tells it; else by its data sheet, and what partners and owners set beyond it; else by the table, or the
    board that it is of, where that may be this one. Where only the compute capability is known, or which it may be, the
    largest limit of such a board. Of a CPU, that of its sockets, which the table has.
    """
    assert energy.costs is not None
    if energy.profile.is_of_cpu and energy.costs.peaks.power_limit_w:
        return energy.costs.peaks.power_limit_w * (mapped(energy.profile.beyond_sockets, energy.table) or 1)
    of_name = energy.profile.limit_w or mapped(most_w, device.name)
    if of_name is not None:
        return of_name
    of_table = energy.costs.peaks.power_limit_w
    if energy.table is not None and _may_be_of(energy.table, device):
        of_board = mapped(most_w, energy.table.device)
        if of_board is not None or of_table and energy.costs.basis != ESTIMATED:
            return of_board or of_table or math.inf
    may_be = [capability for capability in device.may_be or (device.capability,) if capability]
    of_boards = [sheet.limit_w for capability in may_be for sheet in sheets_with(capability, device.told)]
    return max((limit_w for limit_w in of_boards if limit_w), default=of_table or math.inf)


def _may_be_of(table: CostTable, device: "Device") -> bool:
    """Whether a device may be the one that a table is of."""
    if device.name is not None and capability_of_label(device.name) is None:
        return table.serves(device.name)
    known = capabilities(table.device)
    return not known or device.capability in (None, *known)


def limits_of(energy: "Energy") -> Limits:
    """The power limits of the boards of the priced kernels; infinite where time is modelled.

    What a meter saw was drawn, be it above the limit by the error of a sensor.
    """
    rows, metered = energy.counts.rows, energy.metered
    board_w = dict.fromkeys(rows.device.tolist(), math.inf)
    for gpu in energy.each:
        if gpu.costs is not None and gpu.modelled is None:
            board_w |= {part.device.label: board_limit_w(gpu, part.device) for part in gpu.profile.counted}
    watts = np.array([board_w[label] for label in rows.device.tolist()])
    if metered is not None:
        watts = np.maximum(watts, metered.mean_w)
    return limits(rows, watts, energy.total_s)


def held_notes(energy: "Energy") -> list[str]:
    """A sentence for each GPU whose prices made more than its board can draw; [] where none did."""
    return [note for gpu in energy.each if (note := _held_note(gpu, bool(energy.gpus)))]


def _held_note(energy: "Energy", has_others: bool) -> str:
    """The sentence of one GPU: on the device of its worst kernel, or on that kernel alone; "" if no limit binds."""
    split = energy.split
    if split is None or energy.metered is not None or not split.over_j.any():
        return ""
    rows, limits, nouns = energy.counts.rows, energy.limits, energy.counts.nouns
    made_j = known_or_zero(split.total_j) + split.over_j
    worst = int(np.argmin(split.held))
    own = limits.is_in & (limits.device == limits.device[worst])
    seconds, most_w = (float(values[limits.device[worst]]) for values in (limits.device_s, limits.device_w))
    if made_j[own].sum() > most_w * seconds:
        whose = "these counts and times"
        if has_others or len(limits.device_w) > 1:
            whose = printable(str(rows.device[worst]))
        watts, factor = made_j[own].sum() / seconds, split.chosen(np.flatnonzero(own)).held_together
    else:
        whose, factor = printable(str(rows.kernel[worst])), float(split.held[worst])
        watts, most_w = made_j[worst] / rows.time_s[worst], limits.kernel_w[worst]
    limit = f"{most_w:.4g} W{_beyond(energy)}"
    note = f"The prices make {watts:.4g} W of {whose}, and the board may draw {limit}"
    if energy.table is None or not energy.profile.is_served_by(energy.table):
        note += f": they are of another {nouns.processor}, too large, or the counts or times are not those of this run;"
    else:
        note += ": its power limit binds, so that"
    note += f" all but constant power is taken times {factor:.3g}."
    if factor < _PLAUSIBLE:
        note += " So far off, the times, the counts or the board are probably not those of this run."
    return note


def _beyond(energy: "Energy") -> str:
    """A phrase on why a board's limit is another than its data sheet says; "" where it is the same."""
    if energy.profile.limit_w:
        return ", as the log tells"
    names = [part.device.name for part in energy.profile.counted]
    known = [sheet for name in names if name and (sheet := data_sheet(name)) is not None]
    beyond = max((sheet.beyond_power for sheet in known), default=1.0)
    return when(beyond > 1, f" ({beyond:g} times its data sheet's limit, as partners and owners set it)")


def intensity_of(energy: "Energy") -> float | None:
    """Flops per DRAM byte of all kernels; None where either is not known of some kernel."""
    counts = energy.counts.whole
    work, moved = all_flops_of(counts), traffic_of(counts)
    if np.isnan(work).any() or np.isnan(moved).any():
        return None
    return ratio(float(work.sum()), float(moved.sum()))


def known_sum(values: npt.ArrayLike | Sequence[float | None]) -> float | None:
    """The sum of the values without NaN and None; None if nothing is known, or the sum is infinite."""
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    total = float(known.sum())
    return total if known.size and math.isfinite(total) else None
