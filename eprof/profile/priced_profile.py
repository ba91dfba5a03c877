"""`PricedProfile`: a profile with prices on it, of one GPU or several, and the energy and time of all its kernels."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Array, Floats, Ints, Texts, known_or_zero
from eprof.base.errors import UsageError
from eprof.base.gpus import capabilities, capability_of_label, most_w, sheets_with
from eprof.base.optional import mapped, ratio
from eprof.base.text import NotebookResult, listed
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, GROUP_OF, GROUPS, MISSING, RANDOM, Mark, mark_names
from eprof.costs import ESTIMATED, Costs, CostTable
from eprof.counts.counts import Counts
from eprof.energy.attribution import FAMILIES, Limits, Split, limits, within_limits
from eprof.energy.meter_factor import Metered
from eprof.energy.modelled_time import Modelled
from eprof.logs.log import PARTS as GROUPED_PARTS
from eprof.logs.log import KernelRows
from eprof.logs.runs import Measured
from eprof.profile.counted_profile import CountedProfile
from eprof.profile.device import Device
from eprof.profile.grouping import Grouping, merged, parse
from eprof.profile.rooflines import all_flops_of, intensity_of, traffic_of

if TYPE_CHECKING:
    import pandas as pd

TOTAL = "total"
ENERGIES = (COMPUTATION, DATA, CONSTANT, TOTAL)
ROW_OF = {group: row for row, group in enumerate(GROUPS)}


class PricedProfile(NotebookResult, Struct, frozen=True, eq=False, dict=True):
    """A profile priced at one setting; kernels with the most energy (else time) come first.

    `costs`, `split` and `table` are None where no cost table is in force. modelled: how the times of simulated kernels
    were. questions, grouping: what `asking` and `grouped` added to the document. total_s: the time of all kernels,
    where it is known of them together only; those without a time took what it leaves of it. metered: how the table was
    scaled to a meter, if it was. by_component: whether time by component was asked for. gpus: where logs are of several
    GPUs, the profile of each at its own prices, the largest energy first; `costs` and `table` are None then.
    is_declined: whether the user wants no prices ("--costs none"). is_guessed: whether no table is made for the GPU or
    CPU and nobody asked for the one that prices it.
    """

    profile: CountedProfile
    costs: Costs | None
    counts: Counts
    split: Split | None
    modelled: Modelled | None = None
    notes: tuple[str, ...] = ()
    table: CostTable | None = None
    questions: tuple[str, ...] = ()
    grouping: Grouping | None = None
    total_s: float | None = None
    metered: Metered | None = None
    by_component: bool = False
    gpus: tuple[Self, ...] = ()
    is_declined: bool = False
    is_guessed: bool = False

    @property
    def each(self) -> tuple[Self, ...]:
        """The priced profile of each GPU with prices of its own; the profile itself, where it has one table."""
        return self.gpus or (self,)

    def check_one_gpu(self, command: str) -> None:
        """Raises UsageError if several GPUs have prices of their own, for a command that works on one."""
        if self.gpus:
            names = listed(list(dict.fromkeys(str(part.device.name) for part in self.profile.counted)))
            raise UsageError(f"{command} is of one GPU, and these logs are of {names}: give the logs of one of them.")

    def places_of(self, gpu: Self) -> Ints:
        """The places in this profile of the rows of `gpu`, one of `each`, in their order there."""
        own = set(gpu.counts.rows.device)
        return np.flatnonzero([label in own for label in self.counts.rows.device])

    @property
    def paying(self) -> frozenset[str]:
        """The words that cost something on some GPU of the profile."""
        tables = [gpu.costs for gpu in self.each if gpu.costs is not None]
        return frozenset(word for costs in tables for word, charge in costs.charges.items() if charge.pays)

    @property
    def weights(self) -> Floats:
        """The weight of each row, (n_rows,): its energy in J, or its time in s where no energy is known."""
        if self.split is None or np.isnan(self.split.total_j).all():
            return self.counts.rows.time_s
        return self.split.total_j

    @property
    def energy_j(self) -> float | None:
        """All energy of the kernels that is known, in J: a lower bound where `lacks_some`. None: nothing is known."""
        return joules_of(self)["total"]

    @property
    def time_s(self) -> float | None:
        """The time of all kernels in s, as far as it is known; None: no time is known."""
        return time_of(self)

    def grouped(self, *rules: str) -> Self:
        """The priced profile with its kernels in groups: "REGEX=NAME" each, or "device", "rank", "stream", "nvtx"...

        "rank", "stream", "nvtx" and "mark" are for logs that were loaded with `parts`. Raises UsageError.
        """
        grouping = parse(rules)
        if grouping is not None and grouping.by in GROUPED_PARTS and self.counts.rows.part is None:
            raise UsageError(f'To group by {grouping.by}, load the logs with parts="{grouping.by}".')
        return replace(self, grouping=grouping)

    def by(self, *rules: str) -> Self:
        """The priced profile with a row for each group in the place of kernels, as `grouped`; without rules, itself."""
        grouping = self.grouped(*rules).grouping
        if grouping is None:
            return self
        counted, split, _ = merged(self.counts, self.split, grouping.names(self.counts.rows))
        nouns = replace(counted.nouns, kernel="group", kernels="groups")
        return replace(self, counts=replace(counted, nouns=nouns), split=split, grouping=None)

    def whole(self) -> tuple[Self, np.ndarray]:
        """The priced profile with each kernel's parts (ranks, streams, ranges) added up; and each row's new place."""
        if self.counts.rows.part is None:
            return self, np.arange(len(self.counts.rows))
        counted, split, codes = merged(self.counts, self.split)
        order = in_order(counted.rows, split)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        split = mapped(Split.chosen, split, order)
        gpus = tuple(gpu.whole()[0] for gpu in self.gpus)
        return replace(self, counts=counted.chosen(order), split=split, grouping=None, gpus=gpus), place[codes]

    def priced(self, costs: Costs) -> Self:
        """The profile at the prices `costs`, held to what its boards may draw; kernels at a time share its power."""
        costs = costs.shared_by(self.profile.at_once)
        made = replace(self, costs=costs)
        split, held_costs = within_limits(self.counts, costs, made.limits)
        order = in_order(self.counts.rows, split)
        return replace(made, costs=held_costs, counts=self.counts.chosen(order), split=split.chosen(order))

    @cached_property
    def limits(self) -> Limits:
        """The power limits of the boards that the profile's kernels ran on; infinite where time is modelled.

        What a meter saw was drawn, be it above the limit by the error of a sensor.
        """
        rows = self.counts.rows
        board_w = dict.fromkeys(rows.device.tolist(), math.inf)
        for gpu in self.each:
            if gpu.costs is not None and gpu.modelled is None:
                board_w |= {part.device.label: board_limit_w(gpu, part.device) for part in gpu.profile.counted}
        watts = np.array([board_w[label] for label in rows.device.tolist()])
        if self.metered is not None:
            watts = np.maximum(watts, self.metered.mean_w)
        at_once = {label: self.profile.at_once_on({label}) for label in board_w}
        return limits(rows, watts, self.total_s, np.array([at_once[label] for label in rows.device.tolist()]))

    def only(self, places: np.ndarray) -> Self:
        """The priced profile of the kernels at these places alone."""
        others_s = np.delete(self.counts.rows.time_s, places)
        total_s = None
        if self.total_s is not None and not np.isnan(others_s).any():
            total_s = self.total_s - float(others_s.sum())
        gpus = []
        for gpu in self.gpus:
            own = self.places_of(gpu)
            gpus.append(gpu.only(np.searchsorted(own, places[np.isin(places, own)])))
        return replace(
            self,
            counts=self.counts.chosen(places),
            split=mapped(Split.chosen, self.split, places),
            grouping=None,
            questions=(),
            total_s=total_s,
            metered=None,
            gpus=tuple(gpus),
        )

    @property
    def shares_socket(self) -> bool:
        """Whether constant power is taken to be that of the busy cores alone, a share of a CPU socket's."""
        return self.table is not None and self.profile.cpu_use.socket_share(self.table) is not None

    @property
    def is_at_own_peaks(self) -> bool:
        """Whether the costs' peaks are those of the GPU or CPU that ran, so that no exact time beats their roofline."""
        return self.modelled is not None or self.table is not None and self.profile.is_served_by(self.table)

    @property
    def is_timed(self) -> bool:
        """Whether the profile's time of all kernels is known in full: of each of them, or of all together."""
        return self.total_s is not None or bool(self.counts.rows.is_timed.all())

    @property
    def lacks_some(self) -> bool:
        """Whether some work of the priced profile was not counted, or has no price."""
        return self.split is not None and bool((self.split.row_marks & MISSING).any())

    @property
    def measured(self) -> Measured | None:
        """What a meter saw while the profiled program ran; None where none was read."""
        return self.profile.measured

    @property
    def measured_j(self) -> float | None:
        """The joules that a meter saw, or that the user says it saw; None: none are known."""
        if self.metered is not None:
            return self.metered.meter.joules
        return mapped(attrgetter("joules"), self.measured)

    @property
    def time_from(self) -> str | None:
        """Where the profile's times come from, in words; None if they are those of the logs."""
        sources = [*(part.time_from for part in self.profile.counted), self.modelled and self.modelled.how]
        return "; ".join(dict.fromkeys(source for source in sources if source)) or None

    def to_frame(self) -> "pd.DataFrame":
        """A row a kernel, largest energy first; columns carry units: `time_s`, `total_j`, `fp64_fma` (instructions)...

        `X` is the count (instructions or bytes), `X_j` its energy; `marks` are words joined by spaces. NaN = not known.
        """
        import pandas as pd

        marks = self.counts.rows.time_marks
        if self.split is not None:
            marks = self.split.row_marks
        words = [" ".join(mark_names(mark)) for mark in marks.tolist()]
        columns: dict[str, Any] = {**self.sums(), "marks": words}
        for word in self.listed:
            columns[word] = self.counts.amounts[word]
            if self.split is not None and word in self.split.joules:
                columns[f"{word}_j"] = self.split.joules[word]
        return pd.DataFrame(columns)

    def sums(self) -> dict[str, Array]:
        """The first columns of `to_frame`: each kernel, its launches, time, energies, power and intensity."""
        rows = self.counts.rows
        split = self.split
        joules = dict.fromkeys((*FAMILIES, "total"), np.full(len(rows), np.nan))
        if split is not None:
            parts = (split.computation_j, split.data_j, split.constant_j, split.total_j)
            joules = dict(zip(joules, parts, strict=True))
        # Energy over a time that is a lower bound would bound the power on neither side.
        is_whole = (rows.time_marks & MISSING) == 0
        return {
            "device": rows.device,
            "kernel": rows.kernel,
            **({} if rows.part is None else {"part": rows.part}),
            "launches": rows.launches,
            "time_s": rows.time_s,
            **{f"{family}_j": values for family, values in joules.items()},
            "power_w": joules["total"] / np.where(is_whole & (rows.time_s > 0), rows.time_s, np.nan),
            "intensity_flop_per_byte": intensity_of(self.counts.whole),
        }

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """The words in the profile's document: counted in some kernel, or priced but missing."""
        counts = self.counts
        is_counted = ~np.isnan(counts.amounts.values).all(axis=0)
        is_lost = (np.bitwise_or.reduce(counts.amount_marks.values, axis=0) & MISSING) != 0
        paying = self.paying - {RANDOM}
        is_paying = np.array([word in paying for word in counts.amounts.names], dtype=np.bool_)
        return tuple(compress(counts.amounts.names, is_counted | (is_lost & is_paying)))


def in_order(rows: KernelRows, split: Split | None) -> Ints:
    """The places of kernels in a report's order: most energy first, then most time, then by name; unknown ones last."""
    # The last key counts first.
    keys = [_alphabetical(rows.device), _alphabetical(rows.kernel), -rows.time_s]
    if split is not None:
        keys.append(-split.total_j)
    return np.lexsort(np.stack(keys))


def _alphabetical(texts: Texts) -> Floats:
    """The place of each text in alphabetical order, (n,); None is last."""
    rank: dict[str | None, int] = {
        text: place for place, text in enumerate(sorted({text for text in texts if text is not None}))
    }
    return np.array([rank.get(text, len(rank)) for text in texts], dtype=np.float64)


def joules_of(energy: PricedProfile) -> dict[str, float | None]:
    """The energy of all kernels together by family (`ENERGIES`), in J; None: not known."""
    split = energy.split
    if split is None:
        return dict.fromkeys(ENERGIES)

    computation, data = sum_of_known(split.computation_j), sum_of_known(split.data_j)
    if energy.total_s is None or energy.costs is None:
        constant, total = sum_of_known(split.constant_j), sum_of_known(split.total_j)
    else:
        constant = energy.total_s * energy.costs.constant_power_w
        total = math.fsum(joules for joules in (computation, data, constant) if joules is not None)
    return {COMPUTATION: computation, DATA: data, CONSTANT: constant, TOTAL: total}


def joules_by_group(energy: PricedProfile, places: Ints) -> Floats:
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


def joule_marks_of(energy: PricedProfile) -> dict[str, int]:
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


def time_of(energy: PricedProfile) -> float | None:
    """The time of all kernels in s: the total where only that is known, else the sum of known times; None: none is."""
    if energy.total_s is not None:
        return energy.total_s
    return sum_of_known(energy.counts.rows.time_s)


def time_marks_of(energy: PricedProfile) -> int:
    """The marks on the total time `time_of`."""
    if energy.total_s is not None:
        return 0
    return int(np.bitwise_or.reduce(kernel_time_marks(energy)))


def kernel_time_marks(energy: PricedProfile) -> Ints:
    """The marks of each kernel's time; MISSING where it is not known."""
    rows = energy.counts.rows
    return rows.time_marks | np.where(np.isnan(rows.time_s), MISSING, 0)


def board_limit_w(energy: PricedProfile, device: Device) -> float:
    """The power in W that the board of a device of the profile may draw for long; infinite where it is not known.

    As the log tells it; else by its data sheet, and what partners and owners set beyond it; else by the table, or the
    board that it is of, where that may be this one. Where only the compute capability is known, or which it may be, the
    largest limit of such a board. Of a CPU, that of its sockets, which the table has.
    """
    assert energy.costs is not None
    if energy.profile.is_of_cpu and energy.costs.peaks.power_limit_w:
        return energy.costs.peaks.power_limit_w * (mapped(energy.profile.cpu_use.beyond_sockets, energy.table) or 1)
    of_name = energy.profile.limit_w or mapped(most_w, device.name)
    if of_name is not None:
        return of_name
    of_table = energy.costs.peaks.power_limit_w
    if energy.table is not None:
        table_is_for = capabilities(energy.table.device)
        may_be_of_table = not table_is_for or device.capability in (None, *table_is_for)
        if device.name is not None and capability_of_label(device.name) is None:
            may_be_of_table = energy.table.serves(device.name)
        of_board = mapped(most_w, energy.table.device)
        if may_be_of_table and (of_board is not None or of_table and energy.costs.basis != ESTIMATED):
            return of_board or of_table or math.inf
    may_be = [capability for capability in device.may_be or (device.capability,) if capability]
    boards = [sheet for capability in may_be for sheet in sheets_with(capability, device.told)]
    # What owners set counts where the board is nearly known; the largest limit of many is above it.
    of_boards = [sheet.most_w if device.told.start else sheet.limit_w for sheet in boards]
    return max((limit_w for limit_w in of_boards if limit_w), default=of_table or math.inf)


def limit_by_table_w(table: CostTable) -> float:
    """The power in W that any board which a table is made for may draw for long; infinite where nothing tells."""
    of_boards = [watts for name in (table.device, *table.devices) if (watts := most_w(name)) is not None]
    return max(of_boards, default=table.peaks().power_limit_w or math.inf)


def intensity_of_all(energy: PricedProfile) -> float | None:
    """Flops per DRAM byte of all kernels; None where either is not known of some kernel."""
    counts = energy.counts.whole
    work, moved = all_flops_of(counts), traffic_of(counts)
    if np.isnan(work).any() or np.isnan(moved).any():
        return None
    return ratio(float(work.sum()), float(moved.sum()))


def sum_of_known(values: npt.ArrayLike | Sequence[float | None]) -> float | None:
    """The sum of the values without NaN and None; None if nothing is known, or the sum is infinite."""
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    total = float(known.sum())
    return total if known.size and math.isfinite(total) else None
