"""Grids of energy and time: of a profile priced at every setting of a table, and of measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.base.errors import CostError, EprofError
from eprof.base.marks import NONE, Mark
from eprof.costs import Costs, CostTable, Setting
from eprof.counting.counts import Counts
from eprof.energy.attribution import attribute
from eprof.energy.simulated import has_modelled_time, roofline_s
from eprof.energy.time_model import TimeModel, of_table
from eprof.measurements import Measurements
from eprof.measurements.values import COUNTED
from eprof.profile.profile import Energy
from eprof.rooflines import traffic_of
from eprof.tuning.grid import Floats, Grid, Point
from eprof.tuning.time_fit import TimeCheck, Timed, check
from eprof.validation.candidates import by_price
from eprof.validation.protocols import settings as setting_keys

MEASURED, MODELLED = "measured", "modelled"
_UNLISTED = "the table lists both clocks, but not this pair"


@dataclass(frozen=True, eq=False)
class Tuning:
    """Kernels at every setting. whole: what they are together, in words. time_from: MEASURED or MODELLED."""

    title: str
    points: Sequence[Point]
    grids: Sequence[Grid]
    whole: str
    time_from: str
    time_model: TimeModel | None
    time_check: TimeCheck | None
    model: Mapping[str, object]
    notes: Sequence[str] = field(default_factory=tuple)


def from_profile(
    energy: Energy, table: CostTable, wanted: Sequence[str] = (), now: str | None = None, now_from: str = ""
) -> Tuning:
    """A profile priced at every setting of its table, with modelled times.

    energy: priced at the setting in force. wanted: settings ("852/924") in place of those that the table lists.
    now: the setting that the profile was taken at. Raises CostError: a table with one setting only, or no setting that
    it knows; EprofError: no kernel has a time.
    """
    if table.default.core_mhz is None or (len(table.settings) < 2 and len(wanted) < 2):
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    counts = energy.counts
    if energy.total_s is not None:
        raise EprofError(
            "Only the time of all kernels together is known, and how it follows the clocks differs from kernel to "
            "kernel; give --time KERNEL=SECONDS, or a trace."
        )
    if counts.kernels["time_s"].isna().all():
        raise EprofError("No kernel has a time, so nothing is known of its energy; give a trace, or --time.")
    points, costs, refused = _points(table, wanted)
    assert energy.costs is not None
    here = Point(*_clocks(now or energy.costs.setting.label))
    model = of_table(table)
    dram = traffic_of(counts.table)
    joules, seconds, marks = (
        [],
        [],
        np.full(len(counts.kernels), int(energy.costs.marks & Mark.ASSUMED), dtype=np.int64),
    )
    for point, one in zip(points, costs, strict=True):
        times = _times(model, energy, dram, (here, point), one)
        split = attribute(_timed(counts, times), one)
        joules.append(split.total_j.where(~np.isnan(times)).to_numpy(dtype=float))
        seconds.append(times)
        marks |= split.row_marks.to_numpy(dtype=np.int64)
    marks |= int(Mark.ESTIMATED)
    place = next((at for at, one in enumerate(points) if one.label == here.label), None)
    grids = [
        _grid(counts, at, np.array(joules)[:, at], np.array(seconds)[:, at], Mark(int(marks[at])), place)
        for at in range(len(counts.kernels))
    ]
    beyond = _beyond(table, counts, energy)
    notes = [
        *energy.costs.notes,
        *refused,
        *_of_roof(counts),
        *beyond,
        *_profile_notes(counts, dram, marks, here, place, table, now_from),
    ]
    about = {"kind": "table", "name": table.name, "device": table.device, "source": table.source}
    title = energy.profile.title
    return Tuning(title, points, grids, "the program", MODELLED, model, None, about, tuple(notes))


def _points(table: CostTable, wanted: Sequence[str]) -> tuple[list[Point], list[Costs], list[str]]:
    """The settings with the costs at each, and a sentence for each that the table cannot price."""
    listed = [one.label for one in table.settings if one.core_mhz is not None]
    points, costs, refused = [], [], []
    for name in dict.fromkeys(wanted or listed):
        try:
            one = table.at(name)
        except CostError as err:
            refused.append(f"{name} is left out: {err}")
            continue
        points.append(_point(one.setting, one.marks, one.setting_from, one.setting.label in listed))
        costs.append(one)
    if not points:
        raise CostError(refused[0])
    order = sorted(range(len(points)), key=lambda at: (points[at].memory_mhz, points[at].core_mhz))
    return [points[at] for at in order], [costs[at] for at in order], refused


def _point(setting: Setting, marks: Mark, found: str, listed: bool) -> Point:
    assert setting.core_mhz is not None and setting.memory_mhz is not None
    why = "" if listed else found.partition("; ")[2] if marks & Mark.ESTIMATED else _UNLISTED
    return Point(setting.core_mhz, setting.memory_mhz, marks & Mark.ESTIMATED, why)


def _clocks(label: str) -> tuple[float, float]:
    core, _, memory = label.partition("/")
    return float(core), float(memory)


def _times(model: TimeModel, energy: Energy, dram: Floats, points: tuple[Point, Point], there: Costs) -> Floats:
    """Times in s at the second of two settings, (n_kernels,), from those at the first, which stay as they are there.

    The time of a simulated kernel is the roofline's at every setting. there: the costs at the second.
    """
    assert energy.costs is not None
    here, point = points
    table, known = energy.counts.table, energy.counts.kernels["time_s"].to_numpy(dtype=float)
    clocks = (here.core_mhz, here.memory_mhz), (point.core_mhz, point.memory_mhz)
    times = known if point.label == here.label else model.at(known, dram, *clocks)
    simulated = has_modelled_time(energy.counts)
    if not simulated.any():
        return times
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(simulated, known * roofline_s(table, there) / roofline_s(table, energy.costs), times)


def _of_roof(counts: Counts) -> list[str]:
    """A sentence on the times of simulated kernels, if there are some."""
    simulated = has_modelled_time(counts)
    if not simulated.any():
        return []
    return [
        f"The times of simulated kernels ({int(simulated.sum())} of {len(simulated)}) are the roofline's over the "
        "efficiency at every setting, and not those of the model above."
    ]


def _timed(counts: Counts, time_s: Floats) -> Counts:
    return replace(counts, kernels=counts.kernels.assign(time_s=time_s))


def _grid(counts: Counts, at: int, energy_j: Floats, time_s: Floats, marks: Mark, now: int | None) -> Grid:
    kernel = counts.kernels.iloc[at]
    nothing = np.full(len(energy_j), np.nan)
    name = str(kernel["kernel"])
    return Grid(name, name, energy_j, time_s, nothing, nothing, marks, float(kernel["launches"]), now)


def _beyond(table: CostTable, counts: Counts, energy: Energy) -> list[str]:
    """A sentence for what the kernels do more often a second than any that the table was fitted to."""
    seen = table.fit.data.get("range", {}) if table.fit is not None else {}
    if not seen or energy.split is None or energy.costs is None:
        return []
    joules = by_price(table, energy.split.table)
    found = {}
    for term, price in energy.costs.prices.items():
        if term in seen and price.pj > 0:
            rate = joules[term].to_numpy() / (price.pj * 1e-12) / counts.kernels["time_s"].to_numpy(dtype=float) / 1e9
            several = int((rate > 1.05 * seen[term][1]).sum())
            if several:
                found[term] = several
    if not found:
        return []
    what = ", ".join(
        f"{term.replace('_', ' ')} ({several} of {len(counts.kernels)} kernels)" for term, several in found.items()
    )
    return [f"More a second than in any measurement that {table.name} was fitted to: {what}. Nobody has looked there."]


def _profile_notes(
    counts: Counts,
    dram: Floats,
    marks: npt.NDArray[np.int64],
    here: Point,
    place: int | None,
    table: CostTable,
    now_from: str,
) -> list[str]:
    notes = []
    if now_from:
        notes.append(now_from)
    if place is None:
        notes.append(f"{here.label} MHz, where the profile was taken, is not among the settings compared.")
    untimed = int((np.isnan(dram) & counts.kernels["time_s"].notna()).sum())
    if untimed and of_table(table).byte_per_cycle is not None:
        notes.append(
            f"{untimed} of {len(counts.kernels)} kernels have no count of DRAM bytes, so their time at other settings "
            "is not known, nor that of the program."
        )
    missing = int(((marks & int(Mark.MISSING)) != 0).sum())
    if missing:
        notes.append(
            f"Energies of {missing} of {len(counts.kernels)} kernels are lower bounds, because something could not be "
            "counted or priced; what is missing could change the choice."
        )
    return notes


def time_check(measurements: Measurements) -> TimeCheck | None:
    """The time model on these measurements, tested on each benchmark by one that was fitted to the others.

    None: no DRAM bytes were counted, or each benchmark was timed at one setting only.
    """
    counts = measurements.counts()
    rows = measurements.rows[["benchmark", "core_mhz", "memory_mhz", "time_s"]]
    return check(Timed(rows.assign(dram_byte=counts.get("dram_byte", np.nan)), measurements.reference), None)


def modelled(measurements: Measurements, checked: TimeCheck | None) -> Measurements:
    """The same rows as if only the reference had been timed: times as modelled, and rates, counts over those times.

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
    model: Mapping[str, object],
    *,
    asked: Measurements | None = None,
    checked: TimeCheck | None = None,
    notes: Sequence[str] = (),
) -> Tuning:
    """Measured kernels with predicted power, (n,), at every setting.

    asked: the same rows with modelled times, for which `predicted_w` then holds; checked: the time model's errors.
    Raises EprofError: no times, or one setting only.
    """
    rows = measurements.rows
    if rows["time_s"].isna().all():
        raise EprofError("These measurements hold no times, so nothing tells energy from power; each row needs a time.")
    if len(measurements.settings) < 2:
        raise EprofError("All rows are at one setting, so there is nothing to choose from.")
    said = [*notes]
    reference = measurements.reference
    if asked is not None:
        said.append(f"Times are modelled from the one measured at {reference[0]:g}/{reference[1]:g} MHz.")
    data = rows[["benchmark", "kernel", "core_mhz", "memory_mhz", "time_s", "power_w"]].assign(
        predicted_w=predicted_w, asked_s=(asked or measurements).rows["time_s"]
    )
    points = [Point(core, memory) for core, memory in setting_keys(rows)]
    names = list(dict.fromkeys(rows["benchmark"]))
    grids = [_measured_grid(name, data[data["benchmark"] == name], points, reference) for name in names]
    title = ", ".join(one.rpartition("/")[2] for one in measurements.sources)
    whole = f"all {len(names)} kernels, one launch each" if len(names) > 1 else "the kernel, one launch"
    time_from = MEASURED if asked is None else MODELLED
    fitted = checked.model if checked is not None else None
    return Tuning(title, points, grids, whole, time_from, fitted, checked, model, tuple(said))


def _measured_grid(name: str, rows: pd.DataFrame, points: Sequence[Point], reference: tuple[float, float]) -> Grid:
    """One benchmark; rows measured again at a setting count with their median, so that a stray one does not decide."""
    labels = [Point(core, memory).label for core, memory in zip(rows["core_mhz"], rows["memory_mhz"], strict=True)]
    at = (
        rows[["time_s", "power_w", "predicted_w", "asked_s"]]
        .groupby(labels)
        .median()
        .reindex([one.label for one in points])
    )
    here = Point(*reference).label
    place = next((place for place, one in enumerate(points) if one.label == here), None)
    return Grid(
        name,
        str(rows["kernel"].iloc[0]),
        (at["predicted_w"] * at["asked_s"]).to_numpy(dtype=float),
        at["asked_s"].to_numpy(dtype=float),
        (at["power_w"] * at["time_s"]).to_numpy(dtype=float),
        at["time_s"].to_numpy(dtype=float),
        NONE,
        1.0,
        place,
    )
