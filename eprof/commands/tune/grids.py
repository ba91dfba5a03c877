"""Grids: energy and time of kernels at every setting, from a profile or measurements; and the settings picked.

The choice is by model, time or meter ([FMM] II-E). Times follow the clocks by the time model of `energy`, fitted to
measured times and tested on kernels it has not seen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import ClassVar

import numpy as np
import pandas as pd
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, finite
from eprof.base.errors import CostError, EprofError
from eprof.base.optional import mapped
from eprof.base.text import few, when
from eprof.base.vocabulary import NONE, Mark, in_document
from eprof.commands.tune.setting_in_force import SettingInForce
from eprof.costs import Costs, CostTable
from eprof.energy.attribution import attribute, joules_by_price
from eprof.energy.clocks import at_clock
from eprof.energy.modelled_time import has_modelled_time
from eprof.energy.time_at_clocks import TimeModel, time_model_of
from eprof.energy.uncertainty import amounts_of, middle, prices_of
from eprof.lab.fitting import cross_validation
from eprof.lab.fitting.cross_validation import Report, cross_validate, mean_error_percent, of_form
from eprof.lab.fitting.solve import form_without_prior
from eprof.lab.fitting.table_power import power_by_table
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.settings import distinct_settings, parse_setting, setting_label, setting_of_each
from eprof.lab.measurements.values import COUNTED
from eprof.lab.objective import Clocks, Objective
from eprof.profile.profile import Energy
from eprof.profile.rooflines import traffic_of
from eprof.profile.schema import Range
from eprof.profile.whatif_model import at_setting, of_priced

# Two energies closer than this are the same: which of them is the least is rounding.
_SAME = 1e-9


class Point(Clocks, frozen=True):
    """A setting: its clocks in MHz, the marks of its prices, and a sentence where the table does not list it, else "".

    is_beyond: its core clock is beyond those that the table was fitted to.
    """

    marks: Mark = NONE
    why: str = ""
    is_beyond: bool = False


class Grid(Struct, frozen=True, eq=False):
    """One kernel, or a program, at every setting: (n_settings,) each, NaN = not known.

    energy_j, time_s: what the choice is made from; energy predicted by a table or a fit, time measured or modelled.
    measured_j, measured_s: what a meter and a clock saw at that setting. now: the place of the setting where the
    program runs; None: it is not among these, or all settings were measured. offered: which may be picked.
    """

    COLUMNS: ClassVar = ("energy_j", "time_s", "measured_j", "measured_s")
    name: str
    kernel: str
    energy_j: Floats
    time_s: Floats
    measured_j: Floats
    measured_s: Floats
    offered: Bools
    marks: Mark = NONE
    launches: float = 1.0
    now: int | None = None

    @property
    def measured(self) -> "Grid":
        """The same grid with energy_j and time_s as meter and clock saw them, not as predicted."""
        return replace(self, energy_j=self.measured_j, time_s=self.measured_s)

    @property
    def known(self) -> int:
        """At how many settings both energy and time of the grid are known."""
        return int((np.isfinite(self.energy_j) & np.isfinite(self.time_s)).sum())

    def allowed(self, objective: Objective) -> Bools:
        """Which settings are offered and keep the objective's limits, (n_settings,).

        A slowdown is against the time at `now`, or else against the fastest setting offered.
        """
        since_s = mapped(lambda place: finite(self.time_s[place]), self.now)
        return objective.allowed(self.energy_j, np.where(self.offered, self.time_s, np.nan), since_s)

    def pick(self, objective: Objective) -> int | None:
        """The place of the objective's best setting among those allowed; None: no setting is allowed."""
        return objective.pick(self.energy_j, self.time_s, self.allowed(objective))


def together(grids: Sequence[Grid], name: str) -> Grid:
    """The grid of the program `name`: its kernels' energies and times added up at each setting; NaN: one is unknown."""
    sums = {column: np.sum([getattr(grid, column) for grid in grids], axis=0) for column in Grid.COLUMNS}
    marks = reduce(Mark.__or__, [grid.marks for grid in grids], NONE)
    return Grid(name, name, **sums, offered=grids[0].offered, marks=marks, now=grids[0].now)


def front(grid: Grid) -> list[int]:
    """The places of the offered settings on a grid's Pareto front of time and energy, fastest first."""
    known = np.flatnonzero(np.isfinite(grid.energy_j) & (grid.time_s > 0) & grid.offered)
    places: list[int] = []
    for place in known[np.lexsort((grid.energy_j[known], grid.time_s[known]))].tolist():
        if not places or grid.energy_j[place] < grid.energy_j[places[-1]]:
            places.append(place)
    return places


class PowerModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What predicted power: a "table", or a "refit" that has not seen what it predicts (`protocol`), or "none"."""

    kind: str
    name: str = ""
    device: str = ""
    source: str = ""
    basis: str | None = None
    protocol: str = ""
    power_error_percent: float | None | UnsetType = UNSET


class TimeModelUsed(Struct, frozen=True):
    """The model of time at other settings, as the document has it (`energy/time_at_clocks.py`)."""

    byte_per_cycle: float | None
    exponent: float
    share_of_peak: float
    words: str


class TimeError(Struct, frozen=True):
    """The time model's errors on `n` rows of kernels that it was not fitted to."""

    n: int
    mean_percent: float
    max_percent: float
    protocol: str


class Time(Struct, frozen=True):
    """Where times are from ("measured" or "modelled"). of_simulated: even the time of the run came from a model."""

    source: str = field(name="from")
    model: TimeModelUsed | None
    error: TimeError | None
    of_simulated: bool = False


class Choice(Struct, frozen=True):
    """The settings picked of one grid, by their places; None: none could be picked.

    best: by the model. fastest: the time oracle (race to halt). measured: by meter and clock, where both are known.
    wrong, oracle_wrong: whether `best`, or `fastest`, is not the measured best. lost_percent, oracle_lost_percent: how
    much more energy it used. breaks_a_limit: whether `best`, as measured, breaks a limit that the objective sets.
    """

    best: int | None
    fastest: int | None
    measured: int | None
    wrong: bool | None = None
    oracle_wrong: bool | None = None
    lost_percent: float | None = None
    oracle_lost_percent: float | None = None
    breaks_a_limit: bool | None = None


def choose(grid: Grid, objective: Objective) -> Choice:
    """The settings picked of one grid: the model's best, the fastest and the measured best; and what they lose."""
    best = grid.pick(objective)
    # By measured times where there are some to choose from.
    fastest = measured = None
    if np.isfinite(grid.measured_s).sum() > 1:
        fastest = int(np.nanargmin(grid.measured_s))
    elif np.isfinite(offered_s := grid.time_s[grid.offered]).any():
        # Where a lower clock costs no time by the model, the highest clocks are the fastest: the last of the settings.
        fastest = int(np.flatnonzero(grid.offered & (grid.time_s <= (1 + _SAME) * np.nanmin(offered_s)))[-1])
    if grid.known < 2:
        best = None  # of one setting that is known none is the best
    # A best one is measured where the energy of two settings or more is.
    if np.isfinite(grid.measured_j).sum() > 1:
        measured = grid.measured.pick(objective)
    if measured is None:
        return Choice(best, fastest, None)

    value = objective.value(grid.measured_j, grid.measured_s)
    wrong, lost = _loss_of(best, measured, value, grid.measured_j)
    oracle_wrong, oracle_lost = _loss_of(fastest, measured, value, grid.measured_j)
    broken = None
    if best is not None and not np.isnan(grid.measured_j[best]):
        broken = not grid.measured.allowed(objective)[best]
    return Choice(best, fastest, measured, wrong, oracle_wrong, lost, oracle_lost, broken)


def _loss_of(pick: int | None, measured: int, value: Floats, energy_j: Floats) -> tuple[bool | None, float | None]:
    """(whether `pick` is worse by `value` than the measured best, how much more energy it uses, %); None: unknown."""
    if pick is None or np.isnan(value[pick]):
        return None, None
    if abs(value[pick] - value[measured]) <= _SAME * abs(value[measured]):
        return False, 0.0
    return True, float(100 * (energy_j[pick] / energy_j[measured] - 1))


class Lost(Struct, frozen=True):
    """How much more energy wrong picks used than the measured best, over these or all cases ([FMM] Table II)."""

    cases: int
    wrong: int
    mean_percent: float
    min_percent: float
    max_percent: float
    all_mean_percent: float


def lost(picks: Sequence[tuple[bool | None, float | None]]) -> Lost | None:
    """What picks that are not the measured best lose. picks: (whether wrong, per cent lost). None: none is known."""
    losses = [percent for _, percent in picks if percent is not None]
    if not losses:
        return None
    over_wrong = [percent for wrong, percent in picks if wrong and percent is not None]
    over = over_wrong or [0.0]
    return Lost(len(losses), len(over_wrong), float(np.mean(over)), min(over), max(over), float(np.mean(losses)))


_CLOCKS = ["core_mhz", "memory_mhz"]
_KNOWN = [*_CLOCKS, "time_s", "dram_byte"]
_EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_SHARES = (0.4, 0.5, 0.6, 0.67, 0.72, 0.77, 0.83, 0.87, 0.91, 0.95, 1.0)
_UNLISTED = "the table lists both clocks, but not this pair"
# A rate so much above the largest that was measured is beyond it.
_BEYOND = 1.05


def paired(rows: pd.DataFrame, reference: tuple[float, float]) -> pd.DataFrame:
    """Join each row with its benchmark's row nearest to the reference clocks, as columns `_0`; drop the latter rows.

    rows: columns benchmark, core_mhz, memory_mhz, measured time_s, dram_byte. reference: core and memory clock in MHz.
    """
    off = (rows["core_mhz"] / reference[0] - 1).abs() + (rows["memory_mhz"] / reference[1] - 1).abs()
    nearest_first = rows.assign(off=off).sort_values("off", kind="stable")
    first = nearest_first.drop_duplicates("benchmark").set_index("benchmark")
    both = rows.join(first[_KNOWN].add_suffix("_0"), on="benchmark")
    same = (both["core_mhz"] == both["core_mhz_0"]) & (both["memory_mhz"] == both["memory_mhz_0"])
    return both[~same].reset_index(drop=True)


def predict(models: Sequence[TimeModel], pairs: pd.DataFrame) -> Floats:
    """Predict times in s, (models, n), of rows of `paired` by models, from the row that their columns `_0` hold."""
    core, memory = pairs[_CLOCKS].to_numpy(dtype=float).T
    core_0, memory_0, time_s_0, dram_byte_0 = pairs[[f"{name}_0" for name in _KNOWN]].to_numpy(dtype=float).T
    return np.stack([model.at(time_s_0, dram_byte_0, (core_0, memory_0), (core, memory)) for model in models])


class TimeCheck(Struct, frozen=True, eq=False):
    """The time model fitted to all benchmarks, and predictions for each by a model that was fitted to the others.

    pairs: rows of `paired`, with `predicted_s`. error: of these predictions.
    """

    model: TimeModel
    pairs: pd.DataFrame
    error: TimeError


def time_check(measurements: Measurements, byte_per_cycle: float | None = None) -> TimeCheck | None:
    """Fit the time model to these measurements, and test it on each benchmark by one that was fitted to the others.

    byte_per_cycle: DRAM's peak by the table; None: the most that the rows fitted to reached. The result is None where
    no DRAM bytes were counted, or each benchmark was timed at one setting only.
    """
    rows = measurements.rows[["benchmark", *_CLOCKS, "time_s"]]
    rows = rows.assign(dram_byte=measurements.counts().get("dram_byte", np.nan))
    pairs = paired(rows, measurements.reference)
    pairs = pairs[np.isfinite(pairs["time_s"]) & np.isfinite(pairs["dram_byte_0"])].reset_index(drop=True)
    if pairs.empty:
        return None
    measured_s = pairs["time_s"].to_numpy(dtype=float)
    tried: dict[float, tuple[list[TimeModel], Floats]] = {}

    def best(training: pd.DataFrame, chosen: Bools) -> TimeModel:
        """The model with the peak of the `training` rows, and exponent and share that fit the `chosen` pairs best."""
        reached = training["dram_byte"] / (training["time_s"] * training["memory_mhz"] * 1e6)
        peak = byte_per_cycle or finite(reached[np.isfinite(reached)].max()) or None
        # One benchmark alone has no others: the model then stays as it is without data.
        if peak is None or not chosen.any():
            return TimeModel(peak)
        if peak not in tried:
            models = [TimeModel(peak, p, share) for p in _EXPONENTS for share in _SHARES]
            tried[peak] = models, np.abs(predict(models, pairs) / measured_s - 1)
        models, sizes = tried[peak]
        return models[int(np.argmin(sizes[:, chosen].mean(axis=1)))]

    predicted = np.full(len(pairs), np.nan)
    for name in dict.fromkeys(pairs["benchmark"]):
        mine = (pairs["benchmark"] == name).to_numpy()
        model = best(rows[rows["benchmark"] != name], ~mine)
        predicted[mine] = predict([model], pairs[mine])[0]
    percent = np.abs(100 * (predicted / measured_s - 1))
    known = int(np.isfinite(percent).sum())
    error = TimeError(known, float(np.nanmean(percent)), float(np.nanmax(percent)), "leave_one_benchmark_out")
    return TimeCheck(best(rows, np.ones(len(pairs), dtype=bool)), pairs.assign(predicted_s=predicted), error)


def _used(model: TimeModel) -> TimeModelUsed:
    return TimeModelUsed(model.byte_per_cycle, model.exponent, model.share, model.words)


class Tuning(Struct, frozen=True, eq=False):
    """What `eprof tune` chooses from: kernels, a grid each, at every setting of `points`. whole: all kernels, in words.

    is_now_assumed: the setting where the program runs is assumed. held_by, ran: the profiler that may have held the
    clocks, "" if none, and the place in `points` of the setting that it saw. saved: by the program's energy in J,
    (n_settings,), and two places, the interval of what the first saves against the second. capability: of the GPU.
    """

    title: str
    points: Sequence[Point]
    grids: Sequence[Grid]
    whole: str
    time: Time
    model: PowerModel
    notes: Sequence[str]
    is_now_assumed: bool = False
    processor: str | UnsetType = UNSET
    held_by: str = ""
    ran: int | None = None
    saved: Callable[[Floats, int, int], Range] | None = None
    capability: str | None = None


def from_profile(
    energy: Energy, table: CostTable, settings: Sequence[str] = (), now: SettingInForce | None = None
) -> Tuning:
    """The kernels of a profile, priced at every setting of a table, with modelled times.

    energy: priced at the setting in force. settings: labels ("852/924") in place of those that the table lists. now:
    the setting that the profile was taken at; None: the one that it is priced at. Raises CostError: a table with one
    setting only, or no setting that it knows; EprofError: no kernel has a time, here or at other clocks.
    """
    if table.default.core_mhz is None or max(len(table.settings), len(settings)) < 2:
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    nouns = energy.counts.nouns
    if energy.total_s is not None:
        raise EprofError(
            f"Only the time of all {nouns.kernels} together is known, and how it follows the clocks differs from "
            f"{nouns.kernel} to {nouns.kernel}; give --time KERNEL=TIME, or a trace."
        )
    if np.isnan(energy.counts.rows.time_s).all():
        raise EprofError(f"No {nouns.kernel} has a time, so nothing is known of its energy; give a trace, or --time.")
    assert energy.costs is not None
    now = now or SettingInForce(energy.costs.setting.label)
    here, model = Point(*parse_setting(now.label)), time_model_of(table)
    costs_at, refused = _to_compare(table, settings, (here.label, now.runs_at))
    grids = _grids(energy, now, costs_at)
    if len(costs_at) > 1 and not any(grid.known > 1 for grid in grids):
        amounts = energy.counts.amounts
        paying = [word for word, charge in energy.costs.charges.items() if charge.pays and word in amounts]
        is_timed_only = np.isnan(amounts.only(paying)).all()
        uncounted = when(is_timed_only, "only time was counted") or "DRAM bytes were not counted"
        raise EprofError(
            f"Cannot tell which clocks are best: {uncounted}, so energy and time at other clocks are not known. To "
            "count: eprof run PROGRAM."
        )
    points = list(costs_at)
    places = [point.label for point in points]
    notes = list(dict.fromkeys(note for costs in (energy.costs, *costs_at.values()) for note in costs.notes))
    notes += refused
    simulated = has_modelled_time(energy.counts)
    if simulated.any():
        notes.append(
            f"The times of simulated kernels ({int(simulated.sum())} of {len(simulated)}) are the roofline's over the "
            "efficiency at every setting, and not those of the model above."
        )
    notes += _profile_notes(energy, grids, table, now.how)
    return Tuning(
        energy.profile.title,
        points,
        grids,
        whole="the program",
        time=Time("modelled", _used(model), None, bool(simulated.any())),
        is_now_assumed=now.is_assumed,
        model=power_model(table),
        notes=notes,
        processor=in_document(energy.profile.counted[0].definition.processor),
        held_by=now.held_by,
        ran=places.index(here.label) if now.held_by and here.label in places else None,
        saved=partial(_saved, energy, table, here, points, np.stack([grid.time_s for grid in grids], axis=-1)),
        capability=energy.profile.counted[0].device.capability,
    )


def _to_compare(table: CostTable, settings: Sequence[str], ran: Sequence[str]) -> tuple[dict[Point, Costs], list[str]]:
    """(settings to compare, by memory, then core clock -> costs there; sentences on doubtful settings).

    These are `settings`, or without any those that the table lists, and `ran`. A setting that the table cannot price is
    left out, with a sentence; one beyond the clocks that the table was fitted to stays, with a sentence. Raises
    CostError: the table prices none.
    """
    seen_mhz = table.fit.data.get("range", {}).get("core_mhz")
    listed = [setting.label for setting in table.settings if setting.core_mhz is not None]
    costs_at: dict[Point, Costs] = {}
    refused: list[str] = []
    beyond: list[str] = []
    for name in dict.fromkeys([*(settings or listed), *ran]):
        try:
            costs = table.at(name)
        except CostError as err:
            refused.append(f"{name} is left out: {err}")
            continue
        setting, why = costs.setting, ""
        estimated = costs.marks & Mark.ESTIMATED
        assert setting.core_mhz is not None and setting.memory_mhz is not None
        if setting.label not in listed:
            why = when(estimated, costs.setting_from.partition("; ")[2]) or _UNLISTED
        is_beyond = not table.is_fitted_to(setting.core_mhz)
        if is_beyond:
            beyond.append(setting.label)
            why = "beyond the clocks that the table was fitted to"
        costs_at[Point(setting.core_mhz, setting.memory_mhz, estimated, why, is_beyond)] = costs
    if not costs_at:
        raise CostError(refused[0])
    if beyond:
        refused.append(
            f"{table.name} was fitted to {seen_mhz[0]:g} to {seen_mhz[1]:g} MHz. What it says of "
            f"{few(beyond, 4)} MHz is a guess; these are not recommended."
        )
    by_memory = sorted(costs_at, key=lambda point: (point.memory_mhz, point.core_mhz))
    return {point: costs_at[point] for point in by_memory}, refused


def _grids(energy: Energy, ran: SettingInForce, costs_at: Mapping[Point, Costs]) -> list[Grid]:
    """A grid for each kernel: at each setting its joules by the costs there and its modelled time.

    Times at the setting that ran stay as they are; those of simulated kernels are scaled as the roofline's time.
    """
    assert energy.costs is not None
    counts, start = energy.counts, of_priced(energy).taken_at(*parse_setting(ran.label))
    joules, seconds = [], []
    marks = np.full(len(counts.rows), int(energy.costs.marks & Mark.ASSUMED | Mark.ESTIMATED), dtype=np.int64)
    for point, costs in costs_at.items():
        there = at_setting(start, point.label).below_limits()
        seconds.append(there.time_s)
        joules.append(there.work_j + there.costs.constant_power_w * there.time_s)
        marks |= attribute(there.work.counts, costs).row_marks

    now = {point.label: place for place, point in enumerate(costs_at)}.get(ran.runs_at)
    # To stay where the program runs is no change that a fit would have to vouch for.
    offered = np.array([not point.is_beyond or point.label == ran.runs_at for point in costs_at])
    unmeasured = np.full(len(costs_at), np.nan)
    rows = counts.rows.kernel, counts.rows.launches, np.array(joules).T, np.array(seconds).T, marks
    return [
        Grid(name, name, energy_j, time_s, unmeasured, unmeasured, offered, Mark(int(bits)), float(launches), now)
        for name, launches, energy_j, time_s, bits in zip(*rows, strict=True)
    ]


def _saved(
    energy: Energy, table: CostTable, here: Point, points: Sequence[Point], time_s: Floats, joules: Floats, *pair: int
) -> Range:
    """[low, high] of the share of energy saved at the setting at place `pair[0]` against that at `pair[1]`.

    By each replica of the prices; and with times inversely proportional to the core clock alone, or to the memory clock
    alone. time_s: (n_settings, n_kernels), as modelled from `here`. joules: (n_settings,), by the table and `time_s`.
    """
    counts = energy.counts
    factors = []  # energy over the table's: by two plainer models of time, then by each replica
    for place in pair:
        point = points[place]
        clocks = (here.core_mhz, point.core_mhz), (here.memory_mhz, point.memory_mhz)
        times_s = [time_s[place], *(counts.rows.time_s * before / after for before, after in clocks)]
        speedup = point.core_mhz / here.core_mhz
        by_table, *by_time = (np.nansum(amounts_of(at_clock(counts, each_s, speedup)), axis=0) for each_s in times_s)
        prices = prices_of(table.at(point.label))
        replicas = [prices_of(costs) for costs in table.replicas(point.label)] or [prices]
        told = [amounts @ prices for amounts in by_time] + [by_table @ of_replica for of_replica in replicas]
        factors.append(np.array(told) / (by_table @ prices))
    best, before = pair
    left = joules[best] / joules[before]
    saved = 1 - left * factors[0] / factors[1]
    ends = [*saved[:2], *middle(saved[2:], 1 - left, table.interval_share)]
    return [float(min(ends)), float(max(ends))]


def _profile_notes(energy: Energy, grids: Sequence[Grid], table: CostTable, now_from: str) -> Iterator[str]:
    """Yield sentences on kernels whose rates no price was fitted to, whose bytes are unknown, or that lack joules."""
    times_s, kernels = energy.counts.rows.time_s, energy.counts.nouns.kernels
    # What kernels do more often a second than any that the table was fitted to.
    measured = table.fit.data.get("range", {})
    beyond = []
    if measured and energy.split is not None and energy.costs is not None:
        joules = joules_by_price(table, energy.split.table)
        for term, paid in energy.costs.prices.items():
            if term in measured and paid.pj > 0:
                rate = joules[term].to_numpy() / (paid.pj * 1e-12) / times_s / 1e9
                if several := int((rate > _BEYOND * measured[term][1]).sum()):
                    beyond.append(f"{term.replace('_', ' ')} ({several} of {len(times_s)} {kernels})")
    if beyond:
        yield (
            f"Some {kernels} do more a second than any that {table.name} was fitted to, so their prices are a guess: "
            f"{', '.join(beyond)}."
        )
    if now_from:
        yield now_from
    untimed = int((np.isnan(traffic_of(energy.counts.amounts)) & ~np.isnan(times_s)).sum())
    if untimed and time_model_of(table).byte_per_cycle is not None:
        yield (
            f"{untimed} of {len(grids)} {kernels} have no count of DRAM bytes, so their time at other settings is not "
            "known, nor that of the program."
        )
    if bounds := sum(bool(grid.marks & Mark.MISSING) for grid in grids):
        yield (
            f"Energies of {bounds} of {len(grids)} {kernels} are lower bounds, because something could "
            "not be counted or priced; what is missing could change the choice."
        )


def refuse_untunable(measurements: Measurements) -> None:
    """Raise EprofError if no row of measurements has a time, or all rows are at one setting."""
    if measurements.rows["time_s"].isna().all():
        why = "holds no times, so nothing tells energy from power; `eprof tune` needs a time for each row."
        raise EprofError(f"{measurements.sources[0]}: {why}")
    if len(measurements.settings) < 2:
        raise EprofError("All rows are at one setting, so there is nothing to choose from.")


def modelled(measurements: Measurements, checked: TimeCheck | None) -> Measurements:
    """The measurements with modelled times away from the reference, and rates by counts over these, as if not timed.

    A benchmark's times come from a model that was fitted to the others. Raises EprofError: there is no time model.
    """
    if checked is None or measurements.kind != COUNTED:
        raise EprofError("Modelled times need counts of DRAM bytes, which these measurements do not hold.")
    keys = ["benchmark", *_CLOCKS]
    known = checked.pairs.drop_duplicates(keys).set_index(keys)["predicted_s"]
    rows = measurements.rows
    times = rows[keys].join(known, on=keys)["predicted_s"].fillna(rows["time_s"]).to_numpy(dtype=float)
    ratio = rows["time_s"].to_numpy(dtype=float) / times
    return replace(measurements, rows=rows.assign(time_s=times), rates=measurements.rates.mul(ratio, axis=0))


def from_measurements(
    measurements: Measurements,
    predicted_w: Floats,
    model: PowerModel,
    *,
    modelled_rows: Measurements | None = None,
    checked: TimeCheck | None = None,
    notes: Sequence[str] = (),
) -> Tuning:
    """The grids of measured benchmarks over all settings. predicted_w: the power of each row by a model, (n,) in W.

    modelled_rows: the same rows with modelled times, for which `predicted_w` then holds. checked: the errors of the
    time model. Raises EprofError: no times, or one setting only.
    """
    refuse_untunable(measurements)
    rows, time = measurements.rows, Time("measured", None, None)
    if checked is not None:
        time = Time("measured", _used(checked.model), checked.error)
    if modelled_rows is not None:
        time = replace(time, source="modelled")
        notes = [*notes, f"Times are modelled from the one measured at {setting_label(measurements.reference)} MHz."]
    data = rows[["benchmark", "kernel", "time_s", "power_w"]].assign(
        setting=[setting_label(key) for key in setting_of_each(rows)],
        predicted_w=predicted_w,
        predicted_s=(modelled_rows or measurements).rows["time_s"],
    )
    points = [Point(core, memory) for core, memory in distinct_settings(rows)]
    labels = [point.label for point in points]
    offered = np.ones(len(points), dtype=bool)
    grids = []
    for name in dict.fromkeys(rows["benchmark"]):
        mine = data[data["benchmark"] == name]
        numbers = mine[["time_s", "power_w", "predicted_w", "predicted_s"]]
        # Rows measured again at a setting count with their median.
        medians = numbers.groupby(mine["setting"]).median().reindex(labels).to_numpy(dtype=float)
        time_s, power_w, own_w, own_s = medians.T
        kernel = str(mine["kernel"].iloc[0])
        grids.append(Grid(name, kernel, own_w * own_s, own_s, power_w * time_s, time_s, offered))
    title = ", ".join(source.rpartition("/")[2] for source in measurements.sources)
    whole = when(len(grids) > 1, f"all {len(grids)} kernels, one launch each") or "the kernel, one launch"
    return Tuning(title, points, grids, whole, time, model, notes)


def predicted(
    measured: Measurements,
    table: CostTable | None,
    processes: int | None = None,
    report: Report | None = None,
    tested: Measurements | None = None,
) -> tuple[Floats, PowerModel, list[str]]:
    """(each measured row's power by a table or fits, (n,) in W; the document's entry on what predicted it; notes).

    By `table` as it is; without one by a fit that has not seen the row's benchmark; NaN where nothing was counted.
    tested: the same rows with modelled times, if power is to be predicted for those. Raises EprofError: one benchmark
    only.
    """
    if table is not None:
        priced = power_by_table(table, tested or measured)
        error = mean_error_percent(measured.power_w, priced.power_w)
        return priced.power_w, replace(power_model(table), power_error_percent=error), list(priced.notes)

    if measured.own:
        watts = np.full(len(measured.rows), np.nan)
        return watts, PowerModel(kind="none"), ["Nothing was counted, so nothing is predicted."]
    # Fits have not seen what they predict.
    protocol = cross_validation.LEAVE_ONE_BENCHMARK_OUT
    if measured.rows["benchmark"].nunique() < 2:
        raise EprofError("One kernel only: nothing else to fit a cost table to; name one with --costs.")
    folds = cross_validation.folds(protocol, measured.rows)
    progress = mapped(lambda report: partial(report, "fitting without the kernel"), report)
    model = of_form(form_without_prior(measured))
    watts = cross_validate(model, measured, folds, processes=processes, progress=progress, tested=tested)
    error = mean_error_percent(measured.power_w, watts)
    return watts, PowerModel(kind="refit", protocol=protocol, power_error_percent=error), []


def power_model(table: CostTable) -> PowerModel:
    """The document's entry on the cost table that predicted power."""
    return PowerModel(kind="table", name=table.name, device=table.device, source=table.source, basis=table.basis)
