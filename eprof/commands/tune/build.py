"""From what users have to grids of energy and time: a profile priced at every setting of a table, or measurements.

Times follow the clocks by the time model of `energy`, fitted to measured times and tested on kernels it has not seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError, EprofError, UsageError
from eprof.base.marks import Mark
from eprof.base.nouns import in_document
from eprof.commands.tune.grid import Grid, Point
from eprof.commands.tune.schema import PowerModel
from eprof.costs import Costs, CostTable
from eprof.counts.counts import Counts
from eprof.energy.attribution import attribute
from eprof.energy.clocks import at_clock
from eprof.energy.clocks import setting_of as setting_at
from eprof.energy.limits import given_way
from eprof.energy.simulated import has_modelled_time, roofline_s
from eprof.energy.time_model import TimeModel, of_table
from eprof.lab.fitting.solve import form_without_prior
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.reading import is_measurements
from eprof.lab.measurements.values import COUNTED
from eprof.lab.validation import protocols
from eprof.lab.validation.predictions import Report, by_price, cross_validate, of_form, price
from eprof.lab.validation.protocols import label, parse, score, setting_of
from eprof.lab.validation.protocols import settings as setting_keys
from eprof.profile.profile import Energy
from eprof.profile.rooflines import traffic_of

_CLOCKS = ["core_mhz", "memory_mhz"]
_KNOWN = [*_CLOCKS, "time_s", "dram_byte"]
_EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_SHARES = (0.4, 0.5, 0.6, 0.67, 0.72, 0.77, 0.83, 0.87, 0.91, 0.95, 1.0)


class Timed(Struct, frozen=True, eq=False):
    """Rows with measured times: benchmark, core_mhz, memory_mhz, time_s, dram_byte (of that row); n rows."""

    rows: pd.DataFrame
    reference: tuple[float, float]

    def pairs(self) -> pd.DataFrame:
        """Each row beside its benchmark's row at the reference (else the nearest setting); those are left out."""
        rows = self.rows
        off = (rows["core_mhz"] / self.reference[0] - 1).abs() + (rows["memory_mhz"] / self.reference[1] - 1).abs()
        nearest_first = rows.assign(off=off).sort_values("off", kind="stable")
        first = nearest_first.drop_duplicates("benchmark").set_index("benchmark")
        both = rows.join(first[_KNOWN].add_suffix("_0"), on="benchmark")
        same = (both["core_mhz"] == both["core_mhz_0"]) & (both["memory_mhz"] == both["memory_mhz_0"])
        return both[~same].reset_index(drop=True)


def errors(model: TimeModel, pairs: pd.DataFrame) -> Floats:
    """Signed errors in per cent of times that a time fit predicted from the reference row, (n,)."""
    return np.asarray(100 * (predict(model, pairs) / pairs["time_s"].to_numpy(dtype=float) - 1))


def predict(model: TimeModel, pairs: pd.DataFrame) -> Floats:
    """Times in s of all rows of `Timed.pairs` by the time fit, from their reference rows, (n,)."""
    numbers = {name: pairs[name].to_numpy(dtype=float) for name in (*_CLOCKS, *(f"{name}_0" for name in _KNOWN))}
    return model.at(
        numbers["time_s_0"],
        numbers["dram_byte_0"],
        (numbers["core_mhz_0"], numbers["memory_mhz_0"]),
        (numbers["core_mhz"], numbers["memory_mhz"]),
    )


class _Tried:
    """Every pair of a small grid of exponents and shares on the same rows; for each peak it is worked out once."""

    def __init__(self, pairs: pd.DataFrame) -> None:
        self._pairs = pairs
        self._known: dict[float, tuple[list[TimeModel], Floats]] = {}

    def best(self, byte_per_cycle: float | None, rows: npt.NDArray[np.bool_]) -> TimeModel:
        """The fitted pair of the time model with the least mean absolute relative error on the chosen rows."""
        if byte_per_cycle is None or not rows.any():
            return TimeModel(byte_per_cycle)
        if byte_per_cycle not in self._known:
            models = [TimeModel(byte_per_cycle, p, share) for p in _EXPONENTS for share in _SHARES]
            self._known[byte_per_cycle] = models, np.abs([errors(model, self._pairs) for model in models])
        models, sizes = self._known[byte_per_cycle]
        return models[int(np.argmin(sizes[:, rows].mean(axis=1)))]


class TimeCheck(Struct, frozen=True, eq=False):
    """The time model fitted to all benchmarks, and predictions of each by a model that was fitted to the others.

    pairs: rows with `predicted_s`; signed_percent: errors of rows whose benchmark the model has not seen.
    """

    model: TimeModel
    pairs: pd.DataFrame
    signed_percent: Floats

    @property
    def mean_percent(self) -> float:
        """The mean absolute relative error of fitted times."""
        return float(np.nanmean(np.abs(self.signed_percent)))

    @property
    def max_percent(self) -> float:
        """The largest relative error of fitted times."""
        return float(np.nanmax(np.abs(self.signed_percent)))


def check(timed: Timed, byte_per_cycle: float | None) -> TimeCheck | None:
    """Fit the time model, and test it on each benchmark with a model fitted to the others. None: no two settings.

    byte_per_cycle: of the table; None: the most that the training rows reached.
    """
    pairs = timed.pairs()
    pairs = pairs[np.isfinite(pairs["time_s"]) & np.isfinite(pairs["dram_byte_0"])].reset_index(drop=True)
    if pairs.empty:
        return None

    tried = _Tried(pairs)
    predicted = np.full(len(pairs), np.nan)
    for name in dict.fromkeys(pairs["benchmark"]):
        mine = (pairs["benchmark"] == name).to_numpy()
        others = timed.rows[timed.rows["benchmark"] != name]
        # One benchmark alone has no others: the model then stays as it is without data.
        model = tried.best(byte_per_cycle or _peak_byte_per_cycle(others), ~mine)
        predicted[mine] = predict(model, pairs[mine])
    signed = 100 * (predicted / pairs["time_s"].to_numpy(dtype=float) - 1)

    fitted = tried.best(byte_per_cycle or _peak_byte_per_cycle(timed.rows), np.ones(len(pairs), dtype=bool))
    return TimeCheck(fitted, pairs.assign(predicted_s=predicted), np.asarray(signed))


def _peak_byte_per_cycle(rows: pd.DataFrame) -> float | None:
    """The most bytes that any row moved in a cycle of the memory clock: a peak for data that come without one."""
    dram_byte, time_s, memory_mhz = (rows[name].to_numpy(dtype=float) for name in ("dram_byte", "time_s", "memory_mhz"))
    with np.errstate(invalid="ignore", divide="ignore"):
        reached = dram_byte / (time_s * memory_mhz * 1e6)
    return float(np.max(reached, where=np.isfinite(reached), initial=0.0)) or None


# ----------------------------------------------------------------------------------------------------------- grids

MEASURED, MODELLED = "measured", "modelled"
_UNLISTED = "the table lists both clocks, but not this pair"
# A rate so much above the largest that was measured is beyond it.
_BEYOND = 1.05


class Tuning(Struct, frozen=True, eq=False):
    """Kernels at every setting. whole: what they are together, in words. time_from: MEASURED or MODELLED.

    of_simulated: even the time of the run came from a model.
    """

    title: str
    points: Sequence[Point]
    grids: Sequence[Grid]
    whole: str
    time_from: str
    time_model: TimeModel | None
    time_check: TimeCheck | None
    model: PowerModel
    notes: Sequence[str] = field(default_factory=tuple)
    of_simulated: bool = False
    processor: str | UnsetType = UNSET


class _Place(NamedTuple):
    """A setting with the costs there."""

    point: Point
    costs: Costs


def from_profile(
    energy: Energy, table: CostTable, wanted: Sequence[str] = (), now: str | None = None, now_from: str = ""
) -> Tuning:
    """The grids of a profile: priced at every setting of its table, with modelled times.

    energy: priced at the setting in force. wanted: settings ("852/924") in place of those that the table lists.
    now: the setting that the profile was taken at. Raises CostError: a table with one setting only, or no setting that
    it knows; EprofError: no kernel has a time.
    """
    if table.default.core_mhz is None or max(len(table.settings), len(wanted)) < 2:
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    nouns = energy.counts.nouns
    if energy.total_s is not None:
        raise EprofError(
            f"Only the time of all {nouns.kernels} together is known, and how it follows the clocks differs from "
            f"{nouns.kernel} to {nouns.kernel}; give --time KERNEL=SECONDS, or a trace."
        )
    if np.isnan(energy.counts.rows.time_s).all():
        raise EprofError(f"No {nouns.kernel} has a time, so nothing is known of its energy; give a trace, or --time.")
    assert energy.costs is not None
    places, refused = _places(table, wanted)
    here = Point(*parse(now or energy.costs.setting.label))
    grids = _grids(energy, of_table(table), here, places)
    notes = [*energy.costs.notes, *refused]
    simulated = has_modelled_time(energy.counts)
    if simulated.any():
        notes.append(
            f"The times of simulated kernels ({int(simulated.sum())} of {len(simulated)}) are the roofline's over the "
            "efficiency at every setting, and not those of the model above."
        )
    notes += [
        *_beyond_measured(table, energy),
        *_profile_notes(energy.counts, grids, here, table, now_from),
    ]
    return Tuning(
        energy.profile.title,
        [place.point for place in places],
        grids,
        whole="the program",
        time_from=MODELLED,
        of_simulated=bool(simulated.any()),
        time_model=of_table(table),
        time_check=None,
        model=power_model(table),
        notes=tuple(notes),
        processor=in_document(energy.profile.counted[0].definition.processor),
    )


def _places(table: CostTable, wanted: Sequence[str]) -> tuple[list[_Place], list[str]]:
    """The settings of the grids with the costs at each, and a sentence for each that the table cannot price."""
    listed = [setting.label for setting in table.settings if setting.core_mhz is not None]
    places: list[_Place] = []
    refused: list[str] = []
    for name in dict.fromkeys(wanted or listed):
        try:
            costs = table.at(name)
        except CostError as err:
            refused.append(f"{name} is left out: {err}")
        else:
            setting = costs.setting
            estimated = costs.marks & Mark.ESTIMATED
            assert setting.core_mhz is not None
            assert setting.memory_mhz is not None
            why = costs.setting_from.partition("; ")[2] if estimated else _UNLISTED
            if setting.label in listed:
                why = ""
            places.append(_Place(Point(setting.core_mhz, setting.memory_mhz, estimated, why), costs))
    if not places:
        raise CostError(refused[0])
    return sorted(places, key=lambda place: (place.point.memory_mhz, place.point.core_mhz)), refused


def _grids(energy: Energy, model: TimeModel, here: Point, places: Sequence[_Place]) -> list[Grid]:
    """A grid a kernel: its joules by the costs at each setting, over the time that is modelled there."""
    assert energy.costs is not None and energy.split is not None
    counts = energy.counts
    joules = np.full((len(places), len(counts.rows)), np.nan)
    seconds = np.full_like(joules, np.nan)
    marks = np.full(len(counts.rows), int(energy.costs.marks & Mark.ASSUMED | Mark.ESTIMATED), dtype=np.int64)
    for number, place in enumerate(places):
        seconds[number] = _times_at(model, energy, here, place)
        timed = at_clock(counts, seconds[number], place.point.core_mhz / here.core_mhz)
        # What a board's limit took off the prices at the clocks of the log, it takes off everywhere.
        split = given_way(attribute(timed, place.costs), energy.split.held)
        constant_w = place.costs.constant_power_w
        slowed_s = energy.limits.slowed_s(split.work_j, constant_w, seconds[number])
        more_j = constant_w * (slowed_s - seconds[number])
        joules[number], seconds[number] = split.total_j + more_j, slowed_s
        marks |= split.row_marks

    labels = [place.point.label for place in places]
    now = labels.index(here.label) if here.label in labels else None
    unmeasured = np.full(len(places), np.nan)
    return [
        Grid(
            name,
            name,
            energy_j=joules[:, kernel],
            time_s=seconds[:, kernel],
            measured_j=unmeasured,
            measured_s=unmeasured,
            marks=Mark(int(marks[kernel])),
            launches=float(launches),
            now=now,
        )
        for kernel, (name, launches) in enumerate(zip(counts.rows.kernel, counts.rows.launches, strict=True))
    ]


def _times_at(model: TimeModel, energy: Energy, here: Point, place: _Place) -> Floats:
    """Times in s at a setting of the grid, (n_kernels,), from those at the setting `here`, which stay as they are.

    The time of a simulated kernel is the roofline's at every setting.
    """
    assert energy.costs is not None
    table, known = energy.counts.amounts, energy.counts.rows.time_s
    times = known
    if place.point.label != here.label:
        clocks = (here.core_mhz, here.memory_mhz), (place.point.core_mhz, place.point.memory_mhz)
        times = model.at(known, traffic_of(table), *clocks)
    simulated = has_modelled_time(energy.counts)
    if not simulated.any():
        return times
    with np.errstate(invalid="ignore", divide="ignore"):
        by_roofline = known * roofline_s(table, place.costs) / roofline_s(table, energy.costs)
    return np.where(simulated, by_roofline, times)


def _beyond_measured(table: CostTable, energy: Energy) -> Iterator[str]:
    """A sentence for what tuned kernels do more often a second than any that the table was fitted to."""
    measured = table.fit.data.get("range", {}) if table.fit is not None else {}
    if not measured or energy.split is None or energy.costs is None:
        return
    joules = by_price(table, energy.split.table)
    times = energy.counts.rows.time_s
    beyond = []
    for term, paid in energy.costs.prices.items():
        if term not in measured or paid.pj <= 0:
            continue
        rate = joules[term].to_numpy() / (paid.pj * 1e-12) / times / 1e9
        several = int((rate > _BEYOND * measured[term][1]).sum())
        if several:
            beyond.append(f"{term.replace('_', ' ')} ({several} of {len(times)} {energy.counts.nouns.kernels})")
    if beyond:
        yield (
            f"More a second than in any measurement that {table.name} was fitted to: {', '.join(beyond)}. "
            "Nothing was measured there."
        )


def _profile_notes(
    counts: Counts, grids: Sequence[Grid], here: Point, table: CostTable, now_from: str
) -> Iterator[str]:
    if now_from:
        yield now_from
    if grids[0].now is None:
        yield f"{here.label} MHz, where the profile was taken, is not among the settings compared."
    untimed = int((np.isnan(traffic_of(counts.amounts)) & ~np.isnan(counts.rows.time_s)).sum())
    if untimed and of_table(table).byte_per_cycle is not None:
        yield (
            f"{untimed} of {len(grids)} {counts.nouns.kernels} have no count of DRAM bytes, so their time at other "
            "settings is not known, nor that of the program."
        )
    bounds = sum(bool(grid.marks & Mark.MISSING) for grid in grids)
    if bounds:
        yield (
            f"Energies of {bounds} of {len(grids)} {counts.nouns.kernels} are lower bounds, because something could "
            "not be counted or priced; what is missing could change the choice."
        )


def check_times(measurements: Measurements) -> None:
    """Raise EprofError if no row to tune has a time."""
    if measurements.rows["time_s"].isna().all():
        raise EprofError(
            f"{measurements.sources[0]}: holds no times, so nothing tells energy from power; `eprof tune` needs a time "
            "for each row."
        )


def time_check(measurements: Measurements) -> TimeCheck | None:
    """The time model on these measurements, tested on each benchmark by one that was fitted to the others.

    None: no DRAM bytes were counted, or each benchmark was timed at one setting only.
    """
    counts = measurements.counts()
    rows = measurements.rows[["benchmark", "core_mhz", "memory_mhz", "time_s"]]
    return check(Timed(rows.assign(dram_byte=counts.get("dram_byte", np.nan)), measurements.reference), None)


def modelled(measurements: Measurements, checked: TimeCheck | None) -> Measurements:
    """The measured rows as if only the reference had been timed: modelled times, and rates, counts over those times.

    A benchmark's times come from a model that was fitted to the others. Raises EprofError: there is no time model.
    """
    if checked is None or measurements.kind != COUNTED:
        raise EprofError("Modelled times need counts of DRAM bytes, which these measurements do not hold.")
    keys = ["benchmark", "core_mhz", "memory_mhz"]
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
    """The grids of measured kernels with predicted power, (n,), at every setting.

    modelled_rows: the same rows with modelled times, for which `predicted_w` then holds. checked: the errors of the
    time model.
    Raises EprofError: no times, or one setting only.
    """
    rows, reference = measurements.rows, Point(*measurements.reference)
    check_times(measurements)
    if len(measurements.settings) < 2:
        raise EprofError("All rows are at one setting, so there is nothing to choose from.")
    notes = list(notes)
    fitted = checked.model if checked is not None else None
    time_from = MEASURED
    if modelled_rows is not None:
        time_from = MODELLED
        notes.append(f"Times are modelled from the one measured at {reference.label} MHz.")
    data = rows[["benchmark", "kernel", "time_s", "power_w"]].assign(
        setting=[label(key) for key in setting_of(rows)],
        predicted_w=predicted_w,
        predicted_s=(modelled_rows or measurements).rows["time_s"],
    )
    points = [Point(core, memory) for core, memory in setting_keys(rows)]
    names = list(dict.fromkeys(rows["benchmark"]))
    several = f"all {len(names)} kernels, one launch each"
    return Tuning(
        title=", ".join(source.rpartition("/")[2] for source in measurements.sources),
        points=points,
        grids=[_measured_grid(name, data[data["benchmark"] == name], points, reference) for name in names],
        whole=several if len(names) > 1 else "the kernel, one launch",
        time_from=time_from,
        time_model=fitted,
        time_check=checked,
        model=model,
        notes=tuple(notes),
    )


def _measured_grid(name: str, rows: pd.DataFrame, points: Sequence[Point], reference: Point) -> Grid:
    """The grid of one measured benchmark; rows measured again at a setting count with their median."""
    labels = [point.label for point in points]
    numbers = rows[["time_s", "power_w", "predicted_w", "predicted_s"]]
    medians = numbers.groupby(rows["setting"]).median().reindex(labels).to_numpy(dtype=float)
    time_s, power_w, predicted_w, predicted_s = medians.T
    return Grid(
        name,
        str(rows["kernel"].iloc[0]),
        energy_j=predicted_w * predicted_s,
        time_s=predicted_s,
        measured_j=power_w * time_s,
        measured_s=time_s,
        now=labels.index(reference.label) if reference.label in labels else None,
    )


# ----------------------------------------------------------------------------------------- what predicts, and where


def are_measurements(names: Iterable[str]) -> bool:
    """Whether the inputs to tune by are measurements and not logs. Raises UsageError: some are, some are not."""
    kinds = {is_measurements(Path(name)) for name in names}
    if len(kinds) > 1:
        raise UsageError("Some inputs are measurements, others are logs; tune one kind at a time.")
    return kinds.pop()


def predicted(
    measured: Measurements,
    table: CostTable | None,
    processes: int | None = None,
    report: Report | None = None,
    tested: Measurements | None = None,
) -> tuple[Floats, PowerModel, list[str]]:
    """Power of every measured row to tune by, (n,), W, with what predicted it and notes.

    By `table` as it is; without one by a fit that has not seen the kernel, or, where kernels have unknowns of their
    own, has not seen the setting. tested: the same rows with modelled times, if it is those that are to be predicted.
    Raises EprofError: one kernel only.
    """
    if table is not None:
        priced = price(table, tested or measured)
        error = score(measured.power_w, priced.power_w).mean_percent
        return priced.power_w, replace(power_model(table), power_error_percent=error), list(priced.notes)

    protocol = _protocol(measured)
    folds = protocols.folds(protocol, measured.rows)

    def progress(done: int, of: int) -> None:
        if report is not None:
            report("fitting without the kernel", done, of)

    model = of_form(form_without_prior(measured))
    watts = cross_validate(model, measured, folds, processes=processes, progress=progress, tested=tested)
    error = score(measured.power_w, watts).mean_percent
    return watts, PowerModel(kind="refit", protocol=protocol, power_error_percent=error), []


def _protocol(measured: Measurements) -> str:
    """By which validation protocol fits have not seen what they predict, for tuning."""
    if len(measured.settings) < 2:
        raise EprofError("All rows are at one setting, so there is nothing to choose from.")
    if measured.own:
        return protocols.LEAVE_ONE_SETTING_OUT
    if measured.rows["benchmark"].nunique() < 2:
        raise EprofError("One kernel only: nothing else to fit a cost table to; name one with --costs.")
    return protocols.LEAVE_ONE_BENCHMARK_OUT


def power_model(table: CostTable) -> PowerModel:
    """A cost table as what predicts the power at every setting."""
    return PowerModel(kind="table", name=table.name, device=table.device, source=table.source, basis=table.basis)


def setting_in_force(energy: Energy, table: CostTable, given: str | None) -> tuple[str, str]:
    """The setting at which a profile was taken, and a sentence on how it is known.

    In this order: `given`; what its run directory says; what its meter or ncu saw; the table's default, an assumption.
    Raises CostError: a table with one setting only.
    """
    if table.default.core_mhz is None:
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    if given is not None:
        return label(parse(given)), ""
    run_directory = energy.profile.priced_as
    recorded = str(run_directory.pricing("setting") or "") if run_directory is not None else ""
    if recorded:
        return label(parse(recorded)), f"The profile was taken at {recorded} MHz, as its run directory says."
    seen = energy.profile.clocks
    if seen is not None and (seen_label := setting_at(table, seen)) is not None:
        return seen_label, f"The profile was taken at {seen_label} MHz, as {seen.seen_by} saw."
    default = table.default.label
    return (
        default,
        f"The profile is taken to be from {default} MHz, the table's default; say so with --setting if it is not.",
    )
