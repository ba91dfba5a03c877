"""Predicted against metered joules: of whole programs in run directories, and of runs made up of measured kernels."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.errors import EprofError, MeterError
from eprof.base.optional import gathered, less, mapped, ratio, relative_range
from eprof.base.text import listed
from eprof.base.vocabulary import mark_names
from eprof.lab.fitting import cross_validation
from eprof.lab.fitting.cross_validation import errors_percent
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.settings import setting_of_each
from eprof.lab.power.marks import Mark, zone_offset_s
from eprof.lab.power.series import Series, shared, utc_text
from eprof.logs.runs import ENERGY, TIME, Measured, Run, is_run, median, open_run
from eprof.profile import api
from eprof.profile.priced_profile import TOTAL, joule_marks_of, joules_of

_TO_DOCS = "(docs/validate.md)"


class _Window(NamedTuple):
    """A stretch in which a run's program ran, s since the epoch, and how often in a row. alone: without a profiler."""

    begin_s: float
    end_s: float
    runs: int
    alone: bool


def chosen(series: Sequence[Series], components: Sequence[str], notes: list[str]) -> list[Series]:
    """Choose an external meter's series: of the named components, or without names the only one there is.

    notes: gets a note on each component that lies in another and is not added twice. Raises MeterError: a component
    that is in no log, several to choose from, or a log without dates.
    """
    found = shared(series)
    names = [each.component for each in found.series]
    absent = [name for name in components if name not in names]
    if absent:
        raise MeterError(f"--component {absent[0]}: the power logs have {listed(names)}.")
    asked = [each for each, name in zip(series, names, strict=True) if name in components]
    if asked:
        found = shared(asked)
        notes.extend(f"{part} lies in {whole}, and is added once." for part, whole in found.wholes.items())
    outermost = [each for each in found.series if each.component not in found.wholes]
    if not asked and len(outermost) > 1:
        raise MeterError(
            f"--power: the logs have {listed([each.component for each in outermost])}; say which of them the program "
            "runs on with --component NAME (repeatable)."
        )
    undated = [each for each in outermost if not each.absolute]
    if undated:
        raise MeterError(
            f"{undated[0].source}: its times have no date, so nobody knows which of them belong to a run; log times "
            f"since the epoch, or dates {_TO_DOCS}."
        )
    return outermost


def measured(run: Run, series: Sequence[Series], notes: list[str]) -> Measured:
    """The energy of one run of the program by the power of `series`, as `chosen`: the median over repetitions.

    notes: gets by how many hours dates without a zone were moved. Raises MeterError: the run does not tell when the
    program ran, or the power is not known at that time.
    """
    windows = _windows(run)
    # The power is known of nearly all of the time that the program ran.
    sure_s = [(window, 0.95 * (window.end_s - window.begin_s)) for window in windows]
    seen = [window for window, least_s in sure_s if all(_known(window, each)[1] >= least_s for each in series)]
    if not seen:
        window, source = windows[0], series[0].source
        logged = f"{utc_text(series[0].edges[0])} to {utc_text(series[0].edges[-1])}"
        ran = f"{utc_text(window.begin_s)} to {utc_text(window.end_s)}"
        raise MeterError(
            f"{source}: power is known from {logged} UTC, and {run.path} ran the program from {ran} UTC; give a log of "
            f"that time {_TO_DOCS}."
        )
    for source in dict.fromkeys(each.source for each in series):
        shifts_s = [_zone_s(seen[0], each) for each in series if each.source == source]
        if any(shifts_s):
            notes.append(f"{source}: its dates have no zone; moved by {shifts_s[0] / 3600:+g} h they meet {run.path}.")
    joules = []
    for window in seen:
        # What little is not known is taken for the mean power of the rest.
        of_components = (_known(window, each) for each in series)
        total_j = sum(known_j * (window.end_s - window.begin_s) / known_s for known_j, known_s in of_components)
        joules.append(total_j / window.runs)
    sources = listed(list(dict.fromkeys(each.source for each in series)))
    beside = "start-up, copies and idle time, the prediction only the kernels"
    if not seen[0].alone:
        beside += "; a profiler watched the program at that time"
    return Measured(
        joules=median(joules),
        method=f"power log {sources}",
        covers=listed([each.component for each in series]),
        runs=sum(window.runs for window in seen),
        spread=relative_range(joules) or 0.0 if len(joules) > 1 else None,
        seconds=median([(window.end_s - window.begin_s) / window.runs for window in seen]),
        beside=beside,
    )


def _windows(run: Run) -> list[_Window]:
    """When a run's program ran: without a profiler, if it ever did. Raises MeterError: the run does not tell."""
    windows = []
    for measurement in run.manifest.get("measurements", []):
        seconds = (measurement.get("energy") or {}).get("window_s") or measurement.get("seconds")
        if measurement.get("what") not in (TIME, ENERGY) or not seconds or "started_utc" not in measurement:
            continue
        utc = measurement["started_utc"]
        try:
            begin_s = datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()
        except ValueError as err:
            raise MeterError(f"run.json: `{utc[:40]}` is no time.") from err
        alone = measurement.get("command") == run.manifest.get("program")
        windows.append(_Window(begin_s, begin_s + seconds, max(int(measurement.get("runs", 1)), 1), alone))
    if not windows:
        raise MeterError(
            f"{run.path}: run.json does not tell when the program ran without counting; collect it again with this "
            "version of eprof."
        )
    return [window for window in windows if window.alone] or windows


def _zone_s(window: _Window, series: Series) -> float:
    """By how many s the zone of a series' dates is off, so that the series meets the window; 0: not at all."""
    return zone_offset_s(series, [Mark("run", window.begin_s, window.end_s)])


def _known(window: _Window, series: Series) -> tuple[float, float]:
    """The joules that the external meter saw in a window, and for how many s of that its power is known."""
    return series.shifted(_zone_s(window, series)).seen(window.begin_s, window.end_s)


def sorted_inputs(inputs: Iterable[str | Path]) -> tuple[list[Path], list[Path]]:
    """(files of measurements, run directories of whole programs) among the inputs of a validation.

    Raises EprofError for what is neither, or does not exist.
    """
    paths = list(map(Path, inputs))
    for path in paths:
        if not path.exists():
            raise EprofError(f"{path}: there is no such file or directory.")
        if not path.is_file() and not is_run(path):
            raise EprofError(f"{path}: is a directory, but not a run directory of `eprof run`.")
    return [path for path in paths if path.is_file()], [path for path in paths if not path.is_file()]


class WholeRun(Struct, frozen=True):
    """A run directory with measured energy: predicted against measured J of one program."""

    path: str
    predicted_j: float | None
    measured_j: float
    method: str
    reasons: str
    marks: tuple[str, ...]
    error_percent: float | None


def held_against_meter(
    directories: Sequence[Path],
    costs: str | None = None,
    setting: str | None = None,
    kernels: Sequence[str] = (),
    meter: Callable[[Run], Measured] | None = None,
) -> tuple[list[WholeRun], list[str]]:
    """(each run directory's predicted against metered joules; a note for each run without a meter).

    meter: what an external meter saw of a run, in place of what eprof's own did.
    Raises EprofError: no cost table is made for the GPU, and none is named; MeterError: the meter did not see the run.
    """
    runs = []
    notes = []
    for path in directories:
        energy = api.load(path, kernels=kernels).energy(costs, setting, to_meter=False)
        if energy.split is None:
            raise EprofError(f"{path}: no cost table is made for this GPU; name one with --costs.")
        measured = energy.measured if meter is None else meter(open_run(path))
        if measured is None:
            notes.append(f"{path}: no meter was read in this run, so there is nothing to hold a prediction against.")
            continue
        predicted_j = joules_of(energy)[TOTAL]
        error = ratio(less(predicted_j, measured.joules), measured.joules)
        run = WholeRun(
            path=str(path),
            predicted_j=predicted_j,
            measured_j=measured.joules,
            method=measured.method,
            reasons=measured.reasons(),
            marks=tuple(mark_names(joule_marks_of(energy)[TOTAL])),
            error_percent=mapped((100.0).__mul__, error),
        )
        runs.append(run)
    return runs, notes


RUNS, KERNELS = 200, 4


class MeteredRuns(Struct, frozen=True):
    """How well predictions split the metered joules of made-up runs among their kernels, beside a split by time alone.

    within: nine kernels of ten are this factor off at most.
    """

    runs: int
    kernels: int
    mean_percent: float
    within: float
    by_time_mean_percent: float
    by_time_within: float


def of_metered_runs(measurements: Measurements, predicted_w: Floats) -> MeteredRuns | None:
    """Errors of kernels' joules in made-up runs whose sum is metered, split by predictions and by time alone.

    A run is four kernels, drawn at random at one setting, with random times. None: no setting has four predicted ones.
    """
    power_w = measurements.power_w
    # At each setting that has enough predicted kernels.
    known = np.isfinite(predicted_w) & (predicted_w > 0) & (power_w > 0)
    places = gathered((setting, at) for at, setting in enumerate(setting_of_each(measurements.rows)) if known[at])
    pools = [np.array(rows) for rows in places.values() if len(rows) >= KERNELS]
    if not pools:
        return None
    draw = np.random.default_rng(cross_validation.SEED)
    energies = []
    for _ in range(RUNS):
        kernels = draw.choice(pools[draw.integers(len(pools))], KERNELS, replace=False)
        time_s = draw.dirichlet(np.ones(KERNELS))
        joules, predicted_j = time_s * power_w[kernels], time_s * predicted_w[kernels]
        energies.append((joules, predicted_j * joules.sum() / predicted_j.sum(), time_s * joules.sum()))
    truth, by_counts, by_time = np.concatenate(energies, axis=1)

    def off(estimate: Floats) -> tuple[float, float]:
        """The mean error in per cent, and the factor that nine of ten estimates are off at most."""
        mean_percent = np.abs(errors_percent(truth, estimate)).mean()
        return float(mean_percent), float(np.exp(np.quantile(np.abs(np.log(estimate / truth)), 0.9)))

    return MeteredRuns(RUNS, KERNELS, *off(by_counts), *off(by_time))
