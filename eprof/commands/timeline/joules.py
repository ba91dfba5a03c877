"""Joules of power series: by function, with what it calls; as base power and bursts; by cause, held to the meter.

Causes are what sampled or counted activity says a processor's power goes to ([S] 5.4, 5.5):

    n_k = sum over samples of active_k x peak_k(clock) x dt          E = sum_k n_k eps_k + pi0 T

Power is metered: constant power is what the GPU draws idle at that clock where its log has such moments. What the meter
saw beyond constant power and prices is work that no share tells, and goes with active multiprocessors x f V^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints
from eprof.base.errors import LogError
from eprof.base.optional import gathered, mapped, ratio
from eprof.base.vocabulary import CONSTANT, PRICED, Mark, marked
from eprof.costs import Costs, CostTable
from eprof.counts.counts import Counts
from eprof.counts.definition_files import capability_of
from eprof.energy.attribution import attribute
from eprof.energy.meter_factor import WITHIN
from eprof.energy.uncertainty import amounts_of, middle, prices_of
from eprof.lab.power.activity import Activity, filled, meaning, pace_of
from eprof.lab.power.marks import Mark as ProgramMark
from eprof.lab.power.marks import Pieces
from eprof.lab.power.series import Series
from eprof.logs import reading
from eprof.logs.join import combine
from eprof.logs.log import INTERVAL, KernelRows
from eprof.profile.profile import build


def inclusive(marks: Sequence[ProgramMark]) -> Pieces:
    """Stretches of time of each function with all that it calls; calls of itself count once. Functions overlap."""
    own = by_name(marks)
    rows = []
    for place, same in enumerate(own.values()):
        end_s = -np.inf
        for mark in sorted(same, key=lambda mark: mark.begin_s):
            if mark.end_s > end_s:
                rows.append((max(mark.begin_s, end_s), mark.end_s, place))
                end_s = mark.end_s
    return Pieces(tuple(own), *np.array(rows, dtype=np.float64).reshape(-1, 3).T)


def by_name(marks: Sequence[ProgramMark]) -> dict[str, list[ProgramMark]]:
    """Function -> its marks, functions in the order in which they first come."""
    return gathered((mark.name, mark) for mark in marks)


def steadiest_offset_s(series: Series, pieces: Pieces, within_s: float) -> float:
    """By how many s the power's clock is behind the marks', where power is steadiest inside the functions.

    The offset within `within_s` at which what the mean power of each function explains of the power is most.
    """
    step = series.period_s / 10  # how finely clocks are compared
    offsets = np.arange(-within_s, within_s + step / 2, step)
    # How well fused clocks fit: sum over functions, and outside, of joules squared over time.
    explained = []
    for offset in offsets:
        moved = series.shifted(offset)
        seconds = pieces.summed(moved.known_s(pieces.begin_s, pieces.end_s))
        joules = pieces.summed(moved.energy_j(pieces.begin_s, pieces.end_s))
        whole_j, whole_s = moved.seen(moved.edges[0], moved.edges[-1])
        rest_j, rest_s = whole_j - joules.sum(), whole_s - seconds.sum()
        known = seconds > 0
        inside = float((joules[known] ** 2 / seconds[known]).sum())
        explained.append(inside + (ratio(rest_j**2, max(rest_s, 0.0)) or 0.0))
    found_s = float(offsets[int(np.argmax(explained))])
    return 0.0 if abs(found_s) < 1e-6 * series.period_s else found_s  # less of an offset is rounding


def moved_j_per_ms(series: Series, pieces: Pieces) -> float:
    """Joules that another ms between the clocks would give to another function: jumps at borders x 1 ms."""
    half = series.period_s
    after = series.energy_j(pieces.begin_s, pieces.begin_s + half) / half
    before = series.energy_j(pieces.begin_s - half, pieces.begin_s) / half
    return float(np.abs(after - before).sum() * 1e-3)


# ----------------------------------------------------------------------------------------------------------------------
# Base power and bursts in a log that nobody marked: two levels, where the power has them.

# N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9 (1979): two levels explain so much
# of the variance. Of power that is anywhere in a range as often as anywhere else, they explain three quarters.
_TWO_LEVELS = 0.75
_RUNS = 8  # samples a stretch of the upper level at least: chance alone makes one of every four samples
_APART = 0.1  # of the lower level: what is nearer is no burst that a user could know
_BETWEEN = 3  # new values of the meter: a shorter pause does not end a burst
_FEWEST = 20  # samples: of fewer, chance makes two levels often


class Burst(Struct, frozen=True):
    """A stretch in which a power series is on the upper of two levels: from when to when in s, and all its joules."""

    begin_s: float
    end_s: float
    energy_j: float


class PowerLevels(Struct, frozen=True):
    """Base power and bursts of a power series. base_w: median of the lower level; None: there are no two levels."""

    base_w: float | None = None
    bursts: list[Burst] = []


def power_levels(series: Series) -> PowerLevels:
    """The base power and bursts of a power series; empty where it has no two levels, or is too short to tell."""
    seconds, known = np.diff(series.edges), np.isfinite(series.watts)
    order = np.argsort(series.watts[known], kind="stable")
    watts, weights = series.watts[known][order], seconds[known][order]
    if len(watts) < _FEWEST or watts[0] == watts[-1]:
        return PowerLevels()
    below_s, below_j = np.cumsum(weights)[:-1], np.cumsum(weights * watts)[:-1]
    total_s, total_j = weights.sum(), (weights * watts).sum()
    between = (total_j * below_s - total_s * below_j) ** 2 / (below_s * (total_s - below_s)) / total_s**2
    place = int(np.argmax(between))
    variance = (weights * (watts - total_j / total_s) ** 2).sum() / total_s
    base_w = watts[np.searchsorted(below_s, below_s[place] / 2)]
    upper_w = (total_j - below_j[place]) / (total_s - below_s[place])
    if between[place] / variance <= _TWO_LEVELS or upper_w - base_w < _APART * base_w:
        return PowerLevels()
    is_high = np.concatenate([[0], series.watts > watts[place], [0]]).astype(np.int8)
    begins_s = series.edges[np.flatnonzero(np.diff(is_high) > 0)]
    ends_s = series.edges[np.flatnonzero(np.diff(is_high) < 0)]
    if len(watts) < _RUNS * len(begins_s):
        return PowerLevels()
    # What a short pause parts is one burst.
    apart = np.append(True, begins_s[1:] - ends_s[:-1] >= _BETWEEN * series.new_every_s)
    first: Ints = np.flatnonzero(apart)
    begins_s, ends_s = begins_s[first], ends_s[np.append(first[1:] - 1, len(ends_s) - 1)]
    joules: Floats = series.energy_j(begins_s, ends_s)
    return PowerLevels(float(base_w), list(map(Burst, begins_s.tolist(), ends_s.tolist(), joules.tolist())))


_SETTLED_S = 0.3  # after which a GPU's power no longer holds what ran before: its meter lags by 0.15 s
_SEEN_S, _PERIODS = 0.5, 8  # of idle moments that tell idle power, and samples of the meter in them
UNSEEN = "unseen"  # work that no sampled share tells: integers, caches, issue
_WORDS = (*PRICED[:-1], UNSEEN, CONSTANT)
_OTHER_CLOCK = 1.15  # how far off idle power is at a clock at which it was not seen
_ROUNDING = 1e-9
_CLOCKS = 24  # settings that are priced one by one; of more, clocks are rounded
_STEP_MHZ = 60


class Causes(Struct, frozen=True, eq=False):
    """The joules of a GPU or CPU in groups of stretches of time, by cause. joules, low, high: (n_groups, n_words).

    words: of the vocabulary, `UNSEEN`, and constant power.
    marks: of each word. modelled_j: what the prices alone say, (n_groups,). idle_w: setting -> idle power, where the
    log has it. unseen_pj: what an active cycle of a multiprocessor takes beyond the prices, at 1 V of the table, in the
    whole log; None: the table does not say how many there are. unpriced: words that were sampled without a price.
    """

    words: tuple[str, ...]
    joules: Floats
    low: Floats
    high: Floats
    marks: Mapping[str, int]
    modelled_j: Floats
    idle_w: Mapping[str, float]
    unseen_pj: float | None = None
    unpriced: tuple[str, ...] = ()


def busy_alone(sampled: Sequence[Series]) -> list[Activity]:
    """The activity of each GPU in series such as "busy 0", where nothing but that was sampled; else []."""
    names = {series.component.partition(" ")[0] for series in sampled}
    if names != {meaning().busy}:
        return []
    return [
        Activity(
            components=(f"gpu {series.component.partition(' ')[2]}".strip(),),
            source=series.source,
            edges=series.edges,
            shares={meaning().busy: filled(series.watts, series.edges)},
            filled={},
            clock_mhz=np.full(len(series.watts), np.nan),
        )
        for series in sampled
    ]


def counted(path: str, power: Sequence[Series], table: CostTable) -> Activity | None:
    """The activity of a CPU in each interval of a log of `perf stat -I` that has its joules (`power`), too ([S] 5.4).

    None: no joules, or nothing that the table prices. Counts that perf has no number for stand in from the
    intervals beside them. Raises DefinitionError.
    """
    meters = tuple(series.component for series in power if series.explained)
    if not meters:
        return None
    try:
        log = reading.read(path, parts=INTERVAL)
    except LogError:  # joules alone, in a form that is no profiler's
        return None
    profile = build([log], combine([log], capability_of))
    counts = profile.counts(table.at().books)
    if counts.rows.part is None:
        return None
    ends_s, interval = np.unique(counts.rows.part.astype(np.float64), return_inverse=True)
    edges = np.append(0.0, ends_s)
    rates, holes, ways = {}, {}, {}
    for word, amounts in zip(counts.amounts.names, counts.amounts.values.T, strict=True):
        known = ~np.isnan(amounts)
        if word in PRICED and known.any():
            per_s = np.bincount(interval, amounts) / np.diff(edges)
            rates[word], holes[word] = filled(per_s, edges), np.isnan(per_s)
            ways[word] = counts.how[word], int(np.bitwise_or.reduce(counts.amount_marks[word][known]))
    if not ways:
        return None
    clock_mhz = np.full(len(ends_s), np.nan)
    return Activity(meters, path, edges, rates, holes, clock_mhz, ways=ways, sockets=profile.cpu_use.sockets or 1)


def causes(
    activity: Activity, table: CostTable, power: Series, begin_s: Floats, end_s: Floats, owner: Ints, number: int
) -> Causes:
    """The joules of a GPU or CPU by cause in `number` groups of stretches of time; owner: the group of each stretch.

    Each group's joules add up to what the meter saw in it. Raises CostError.
    """
    table = table.in_sockets(activity.sockets)
    settings = _settings(activity, table)
    idle = _idle_w(activity, settings, power)
    seen_w = {**_idle_w(activity, settings, power, meaning().least), **idle}
    idle_w = _at_all_settings(seen_w, {label: table.at(label or None).constant_power_w for label in settings})
    # The last group is the whole log.
    begin_s, end_s = np.append(begin_s, activity.edges[0]), np.append(end_s, activity.edges[-1])
    owner = np.append(owner, number)

    def grouped(amounts: Floats) -> Floats:
        return np.bincount(owner, amounts, minlength=number + 1).astype(np.float64)

    joules, marks = np.zeros((number + 1, len(PRICED))), dict.fromkeys(_WORDS, 0)
    drawn: Floats = np.zeros((number + 1, len(PRICED), 1))  # by each replica of the prices
    active: Floats = np.zeros(number + 1)  # cycles of an active multiprocessor, times the square of the voltage
    for label, rows in settings.items():
        costs = table.at(label or None)
        if label in idle_w:
            mark = marked(Mark.ESTIMATED, label not in idle)
            costs = replace(costs, constant_power_w=idle_w[label], constant_marks=mark)
        counts, active_s = _counts(activity, table, costs, rows, begin_s, end_s, grouped, number + 1)
        active += active_s * (costs.setting.core_mhz or 1.0) * 1e6 * (costs.setting.core_v or 1.0) ** 2
        split = attribute(counts, costs)
        for word in split.joules.names:
            joules[:, PRICED.index(word)] += np.nan_to_num(split.joules[word])
            marks[word] |= int(np.bitwise_or.reduce(split.joule_marks[word], initial=0))
        prices = np.stack([prices_of(replica) for replica in table.replicas(label or None) or (costs,)], axis=-1)
        if label in idle_w:
            prices[-1] = idle_w[label]
        drawn = drawn + np.nan_to_num(amounts_of(counts))[:, :, np.newaxis] * prices
    metered_j = grouped(power.energy_j(begin_s, end_s))
    whole_j = _beyond_j(joules[:, :, np.newaxis], metered_j)[0]
    cycles = active[-1] * (table.sm_count or 0.0)
    unseen_pj = mapped(lambda joules: joules * 1e12, ratio(float(whole_j), float(cycles)))
    split_j = _held_to_meter(joules[:, :, np.newaxis], active, metered_j, bool(idle_w))[:-1, :, 0]
    interval = middle(_held_to_meter(drawn, active, metered_j, bool(idle_w))[:-1], split_j, table.interval_share)
    # Held to a meter, kernels that a table has not seen are still so far off, in either direction.
    within = max(table.within, WITHIN)
    factors = np.full(len(_WORDS), within)
    if idle_w:
        factors[-1] = 1.0 + (_OTHER_CLOCK - 1.0) * (settings.keys() > idle.keys())
    interval[:, :, 0] = np.minimum(interval[:, :, 0], split_j / factors)
    highest = np.minimum(split_j * factors, metered_j[:-1, np.newaxis])
    interval[:, :, 1] = np.maximum(interval[:, :, 1], highest)
    used = [place for place in range(len(_WORDS)) if split_j[:, place].any()]
    words = tuple(_WORDS[place] for place in used)
    marks[UNSEEN] = int(Mark.ASSUMED)
    return Causes(
        words,
        split_j[:, used],
        interval[:, used, 0],
        interval[:, used, 1],
        {word: marks[word] | marked(Mark.ESTIMATED, word != CONSTANT or not idle_w) for word in words},
        joules[:-1].sum(axis=1),
        seen_w,
        unseen_pj,
        tuple(word for word in PRICED if word not in words and marks[word] & int(Mark.MISSING)),
    )


def _beyond_j(joules: Floats, metered_j: Floats) -> Floats:
    """J that the meter saw in the whole log (the last row) beyond constant power and prices, >= 0; (n_replicas,)."""
    return np.asarray(np.maximum(metered_j[-1] - joules[-1].sum(axis=0), 0.0))


def _held_to_meter(joules: Floats, active: Floats, metered_j: Floats, has_idle: bool) -> Floats:
    """Joules of `_WORDS` that add up to the meter's: (n, n_priced, n_replicas) -> (n, n_words, n_replicas).

    What the meter saw in the whole log, the last row, beyond constant power and prices goes with `active`, (n,). Then
    each row is held to its own metered joules, (n,): what is above constant power, in proportion.
    """
    dynamic, constant = joules[:, :-1], joules[:, -1]
    unseen = active[:, np.newaxis] / (active[-1] or 1.0) * _beyond_j(joules, metered_j)
    above = np.concatenate([dynamic, unseen[:, np.newaxis]], axis=1)
    total, sums = metered_j[:, np.newaxis], above.sum(axis=1)
    if not has_idle:  # constant power is the table's, times one factor for the whole log
        constant = constant * total[-1] / np.where(sums[-1] + constant[-1] > 0, sums[-1] + constant[-1], 1.0)
    # A meter that sees less than constant power, or more where nothing was sampled, has all of it constant.
    rest = np.where(sums > 0, np.maximum(total - constant, 0.0), 0.0)
    factor = rest / np.where(sums > 0, sums, 1.0)
    return np.concatenate([above * factor[:, np.newaxis], (total - rest)[:, np.newaxis]], axis=1)


def _settings(activity: Activity, table: CostTable) -> dict[str, Bools]:
    """Label of a table's setting -> which samples of activity are nearest to it, (n,); the default without a clock."""
    clocks = np.where(np.isnan(activity.clock_mhz), table.default.core_mhz or 0.0, activity.clock_mhz)
    if len(np.unique(clocks)) > _CLOCKS:
        clocks = _STEP_MHZ * np.round(clocks / _STEP_MHZ)
    settings: dict[str, Bools] = {}
    for mhz in np.unique(clocks).tolist():
        label = table.nearest(mhz, None) or ""
        settings[label] = settings.get(label, np.zeros(len(clocks), bool)) | (clocks == mhz)
    return settings


def _at_all_settings(seen_w: Mapping[str, float], constant_w: Mapping[str, float]) -> dict[str, float]:
    """Idle power in W at every setting, from those where it was seen: in a line with the table's constant power."""
    if not seen_w:
        return {}
    labels = list(seen_w)
    known, table = np.array([seen_w[label] for label in labels]), np.array([constant_w[label] for label in labels])
    slope, base = float(known.sum() / table.sum()), 0.0
    if len(labels) > 1 and np.ptp(table) > 0:
        slope, base = np.polyfit(table, known, 1).tolist()
    return {label: seen_w.get(label, base + slope * watts) for label, watts in constant_w.items()}


def mean_idle_w(activity: Activity, power: Series) -> float | None:
    """The mean power in W of a GPU while nothing runs on it; None where its log has too little of that."""
    everywhere = {"": np.ones(len(activity.seconds), bool)}
    for least in (0.0, meaning().least):
        if watts := _idle_w(activity, everywhere, power, least):
            return watts[""]
    return None


def _idle_w(activity: Activity, settings: Mapping[str, Bools], power: Series, least: float = 0.0) -> dict[str, float]:
    """Setting -> mean power in W while the GPU was busy for `least` of 0.3 s at most, where seen long enough."""
    begin_s, end_s = activity.edges[:-1], activity.edges[1:]
    busy_s = np.append(0.0, np.cumsum(activity.busy * activity.seconds))
    since_s = np.maximum(begin_s - _SETTLED_S, activity.edges[0])
    share = (busy_s[1:] - np.interp(since_s, activity.edges, busy_s)) / (end_s - since_s)
    watts = {}
    for label, rows in settings.items():
        quiet = rows & (share <= least + _ROUNDING)
        seconds = float(power.known_s(begin_s[quiet], end_s[quiet]).sum())
        if seconds >= max(_SEEN_S, _PERIODS * power.period_s):
            watts[label] = float(power.energy_j(begin_s[quiet], end_s[quiet]).sum()) / seconds
    return watts


def _counts(
    activity: Activity,
    table: CostTable,
    costs: Costs,
    rows: Bools,
    begin_s: Floats,
    end_s: Floats,
    grouped: Callable[[Floats], Floats],
    number: int,
) -> tuple[Counts, Floats]:
    """(counts at one setting, a row for each group of stretches; active seconds at its clock, (number,))."""

    def within(per_s: Floats) -> Floats:
        sums = np.append(0.0, np.cumsum(np.where(rows, per_s, 0.0) * activity.seconds))
        inside = np.interp(end_s, activity.edges, sums) - np.interp(begin_s, activity.edges, sums)
        return grouped(inside)

    amounts: dict[str, Floats] = {}
    marks: dict[str, Ints] = {}
    how = {}
    for field, word, per_s, ways, mark in activity.work(table, costs):
        amounts[word] = within(per_s)
        is_filled = within(activity.filled[field].astype(np.float64)) > 0
        marks[word] = np.where(is_filled, mark | int(Mark.ASSUMED | Mark.ESTIMATED), mark)
        how[word] = ways
    none = np.zeros(number, np.int64)
    of_rows = KernelRows(
        device=np.full(number, activity.label, object),
        kernel=np.arange(number).astype(object),
        launches=none + 1,
        time_s=within(np.ones(len(rows))),
        time_marks=none,
    )
    counts = Counts(of_rows, Columns.of(amounts, number), Columns.of(marks, number), how, costs.books)
    return counts, within(activity.active * pace_of(costs, activity.clock_mhz))
