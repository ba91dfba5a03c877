"""The document `eprof.validation/1`, from which every report is made (docs/validate.md), and how a study becomes it.

None is a number that is not known. What was measured on rows of a file stands in one structure, which is there or not
as a whole; in JSON its fields stand beside the others.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from eprof import __version__
from eprof.base.arrays import Floats, finite
from eprof.base.errors import EprofError
from eprof.base.optional import either, mapped
from eprof.commands.validate.similar_kernels import Candidate, mixes, nearest
from eprof.commands.validate.study import CARD_SCALED, SCALED, Scores, Study, Times, grouped, histogram, score
from eprof.commands.validate.whole_runs import MeteredRuns, WholeRun, of_metered_runs
from eprof.lab.fitting import cross_validation
from eprof.lab.fitting.cross_validation import errors_percent
from eprof.lab.fitting.solve import Form
from eprof.lab.measurements import Measurements, settings
from eprof.lab.objective import Clocks

SCHEMA = "eprof.validation/1"
Range = tuple[float | None, float | None]
# Fields that are left out of the JSON where they say nothing, and stand at its end.
_LAST = ("runs", "candidates", "gate")


class Protocol(Scores, frozen=True, kw_only=True):
    """Errors by one protocol of testing. folds: how many models were fitted for it; meaning: how it tests, in words."""

    folds: int
    meaning: str


class Row(Struct, frozen=True, kw_only=True):
    """A measured row. predicted_w: protocol -> W, None where the row is not tested; error: of the main protocol."""

    benchmark: str
    kernel: str
    core_mhz: float
    memory_mhz: float
    time_s: float | None
    measured_w: float | None
    predicted_w: dict[str, float | None]
    error_percent: float | None


class Input(Struct, frozen=True):
    """A file of measurements."""

    path: str


class ScoredTable(Struct, frozen=True):
    """The cost table whose predictions were scored as they are."""

    name: str
    device: str
    source: str
    basis: str | None = None


class FittedForm(Form, frozen=True):
    """The form of the model that was fitted in every fold, and the seed of its random choices."""

    seed: int = cross_validation.SEED


class Histogram(Struct, frozen=True):
    """How many rows have a signed error, in per cent, between each two neighbouring edges."""

    edges_percent: list[float]
    counts: list[int]


class SettingScores(Clocks, frozen=True):
    """Errors at one setting; in JSON the scores' fields stand beside the clocks."""

    scores: Scores


class Reference(Clocks, frozen=True):
    """A kernel's measured and predicted power at the reference setting, or at the measured one nearest to that."""

    measured_w: float | None
    predicted_w: float | None


class KernelScores(Struct, frozen=True, kw_only=True):
    """Errors of one kernel over all settings. mix: term -> share of its power. nearest: the kernel most like it.

    distance: how unlike that is, from 0 to 1.
    """

    benchmark: str
    kernel: str
    scores: Scores
    reference: Reference
    mix: dict[str, float]
    nearest: str | None
    distance: float | None


class Likeness(Struct, frozen=True):
    """Errors of kernels nearer to another one than `distance`, the median of all; and of the other half."""

    distance: float
    near: Scores
    far: Scores


class Ranges(Struct, frozen=True):
    """The least and the largest clock, power, and rate of each term that was measured."""

    core_mhz: Range
    memory_mhz: Range
    power_w: Range
    rates: dict[str, Range]
    rate_unit: str


class Measured(Struct, frozen=True, kw_only=True):
    """What a validation found on rows of measured power."""

    inputs: list[Input]
    trained_on: list[Input] | None
    costs: ScoredTable | None
    form: FittedForm | None
    benchmarks: int
    settings: list[Clocks]
    reference: Clocks
    main_protocol: str
    table_saw_these: bool
    histogram: Histogram
    by_setting: list[SettingScores]
    by_benchmark: list[KernelScores]
    likeness: Likeness | None
    range: Ranges


class Gate(Struct, frozen=True):
    """--max-error: the largest mean error that may pass, per cent; and the protocol whose mean error is worst."""

    max_error_percent: float
    protocol: str
    value_percent: float | None
    passed: bool


class Validation(Struct, kw_only=True, omit_defaults=True):
    """The document of `eprof validate`. protocols: name -> its errors; baselines: model -> protocol -> its errors.

    measured: of rows of measured power; runs: whole programs against their meter; to_meter: protocol -> made-up runs.
    """

    schema: str
    eprof: str
    created_utc: str
    command_line: list[str]
    title: str
    n: int
    protocols: dict[str, Protocol]
    baselines: dict[str, dict[str, Scores]]
    notes: list[str]
    rows: list[Row]
    measured: Measured | None = None
    to_meter: dict[str, MeteredRuns] = {}
    times: Times | None = None
    runs: list[WholeRun] = []
    candidates: list[Candidate] = []
    gate: Gate | None = None

    @property
    def main_protocol(self) -> str:
        """The name of the protocol that the headline speaks of; "runs" without measured rows."""
        return getattr(self.measured, "main_protocol", "runs")

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of a validation's CSV: measured rows with predicted W by protocol, then runs with J."""
        for row in self.rows:
            cells = asdict(row)
            watts = cells.pop("predicted_w")
            yield {**cells, **{f"{protocol}_w": predicted for protocol, predicted in watts.items()}}
        for run in self.runs:
            joules = {"measured_j": run.measured_j, "predicted_j": run.predicted_j}
            yield {"benchmark": run.path, **joules, "error_percent": run.error_percent}

    def plain(self) -> dict[str, Any]:
        """The document of a validation as plain data, in the order of the JSON."""
        data: dict[str, Any] = to_builtins(self)
        measured = data.pop("measured", {})
        for name in measured.keys() & {"by_setting", "by_benchmark"}:
            for place, entry in enumerate(measured[name]):
                # The scores' fields stand beside the others.
                fields = (value if key == "scores" else {key: value} for key, value in entry.items())
                measured[name][place] = dict(chain.from_iterable(each.items() for each in fields))
        last = {name: data.pop(name) for name in _LAST if name in data}
        return {**data, **measured, **last}


EDGES = [float(edge) for edge in range(-50, 51, 2)]
_SAW = "the table as it is, on rows of a file that it was made from: how well it follows them, no test"
# With fewer kernels, errors of two halves say nothing.
_HALVED_FROM = 8


def document(
    study: Study | None,
    whole_runs: Sequence[WholeRun] = (),
    candidates: Sequence[Candidate] = (),
    command_line: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    max_error_percent: float | None = None,
    times: Times | None = None,
) -> Validation:
    """The document `eprof.validation/1`: a study's scores, runs against their meter, and the gate's verdict.

    candidates: kernels of a profile, with the measured kernels most like them. max_error_percent: the gate that the
    worst mean error of all protocols is held against. Raises EprofError: neither a study nor a run with a meter.
    """
    if study is None and not whole_runs:
        raise EprofError(f"{notes[0]} Run it again where `eprof doctor` finds a meter.")
    paths = [run.path for run in whole_runs]
    if study is not None:
        paths = list(study.measurements.sources)
    made = Validation(
        schema=SCHEMA,
        eprof=__version__,
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command_line=list(command_line),
        title=", ".join(path.rpartition("/")[2] for path in paths),
        n=len(whole_runs),
        protocols={},
        baselines={},
        notes=list(notes),
        rows=[],
        runs=list(whole_runs),
        candidates=list(candidates),
        times=times,
    )
    if study is not None:
        _add(made, study)
        made.measured = _measured(study)
    if whole_runs:
        measured_j = np.array([run.measured_j for run in whole_runs])
        predicted_j = np.array([run.predicted_j for run in whole_runs], dtype=float)
        scores = {**asdict(score(measured_j, predicted_j)), "rmse_w": None}  # they are joules, not W
        meaning = "whole programs: predicted against measured energy"
        made.protocols["runs"] = Protocol(**scores, folds=0, meaning=meaning)
    if max_error_percent is not None:
        # The worst mean error of all protocols is held against the limit; one that is not known fails.
        errors = {name: either(scores.mean_percent, np.inf) for name, scores in made.protocols.items()}
        worst = max(errors, key=errors.__getitem__)
        passed = errors[worst] <= max_error_percent
        made.gate = Gate(max_error_percent, worst, made.protocols[worst].mean_percent, passed)
    return made


def _add(made: Validation, study: Study) -> None:
    """Add to the document `made` what the study found on rows of measured power: scores, notes, rows."""
    measurements, rows = study.measurements, study.measurements.rows
    predicted = {name: outcome.predicted for name, outcome in study.outcomes.items()}
    errors = errors_percent(measurements.power_w, predicted[study.main])
    made.n += len(measurements)
    for name, outcome in study.outcomes.items():
        meaning = cross_validation.MEANINGS[name.removesuffix(CARD_SCALED).removesuffix(SCALED)]
        if name == cross_validation.TABLE and study.table_saw_these:
            meaning = _SAW
        elif name.endswith(CARD_SCALED):
            meaning += "; then the scale factor of one kernel for all others, each kernel being that one in turn"
        elif name.endswith(SCALED):
            meaning += "; then one measured scale factor for each kernel, from one row that is not scored"
        made.protocols[name] = Protocol(**asdict(outcome.scores), folds=outcome.folds, meaning=meaning)
        # How predictions split metered runs; not where a factor a kernel was measured.
        if not name.endswith(SCALED) and (metered := of_metered_runs(measurements, outcome.predicted)):
            made.to_meter[name] = metered
    made.baselines = {
        model: {name: outcome.scores for name, outcome in by_protocol.items()}
        for model, by_protocol in study.baselines.items()
    }
    made.notes = list(dict.fromkeys([*made.notes, *study.notes]))
    made.rows = [
        Row(
            benchmark=str(row["benchmark"]),
            kernel=str(row["kernel"]),
            core_mhz=float(row["core_mhz"]),
            memory_mhz=float(row["memory_mhz"]),
            time_s=finite(row["time_s"]),
            measured_w=finite(row["power_w"]),
            predicted_w={name: finite(watts[place]) for name, watts in predicted.items()},
            error_percent=finite(errors[place]),
        )
        for place, row in enumerate(rows.to_dict("records"))
    ]


def _measured(study: Study) -> Measured:
    """What a study's measurements were (inputs, ranges, form of the fit), and errors by setting and by kernel."""
    measurements, rows = study.measurements, study.measurements.rows
    predicted = study.outcomes[study.main].predicted
    shares = mixes(study.parts, rows["benchmark"])
    near = nearest(shares)
    at_settings = grouped(measurements, ["core_mhz", "memory_mhz"], predicted)
    table, trained_on = study.table, study.trained_on
    form = likeness = None
    if study.plan.form is not None and not all(name.startswith(cross_validation.TABLE) for name in study.outcomes):
        form = FittedForm(**asdict(study.plan.form))
    # Errors of the half of kernels that are like another one, and of the other half.
    if len(near) >= _HALVED_FROM:
        middle, power_w = float(near["distance"].median()), measurements.power_w
        distance = rows["benchmark"].map(near["distance"]).to_numpy(dtype=float)
        halves = [score(power_w[half], predicted[half]) for half in (distance <= middle, distance > middle)]
        likeness = Likeness(middle, *halves)

    def seen(values: pd.Series) -> Range:
        return finite(values.min()), finite(values.max())

    return Measured(
        inputs=list(map(Input, measurements.sources)),
        trained_on=mapped(lambda trained: list(map(Input, trained.sources)), trained_on),
        costs=mapped(lambda table: ScoredTable(table.name, table.device, table.source, table.basis), table),
        form=form,
        benchmarks=int(rows["benchmark"].nunique()),
        settings=[Clocks(core, memory) for core, memory in settings.distinct_settings(rows)],
        reference=Clocks(*measurements.reference),
        main_protocol=study.main,
        table_saw_these=study.table_saw_these,
        histogram=Histogram(EDGES, histogram(errors_percent(measurements.power_w, predicted), EDGES)),
        by_setting=[SettingScores(float(core), float(memory), each) for (core, memory), each in at_settings],
        by_benchmark=_by_benchmark(measurements, predicted, shares, near),
        likeness=likeness,
        range=Ranges(
            core_mhz=seen(rows["core_mhz"]),
            memory_mhz=seen(rows["memory_mhz"]),
            power_w=seen(rows["power_w"]),
            rates={str(term): seen(measurements.rates[term]) for term in measurements.rates},
            rate_unit={"counts": "1e9 events/s"}.get(measurements.kind, "1e9 cycles of full use/s"),
        ),
    )


def _by_benchmark(
    measurements: Measurements, predicted: Floats, shares: pd.DataFrame, near: pd.DataFrame
) -> list[KernelScores]:
    """The scores of each kernel, the worst first, with its row at the reference setting, or the nearest to it."""
    rows = measurements.rows.assign(predicted=predicted)
    kernels = []
    for name, scores in grouped(measurements, "benchmark", predicted):
        mine = rows[rows["benchmark"] == name]
        core, memory = measurements.reference
        off = (mine["core_mhz"] / core - 1).abs() + (mine["memory_mhz"] / memory - 1).abs()
        row = mine.iloc[int(np.argmin(off.to_numpy()))]
        mix = {}
        if name in shares.index:
            largest_first = pd.Series(shares.loc[name]).sort_values(ascending=False)
            mix = {str(term): float(share) for term, share in largest_first.items() if share > 0}
        clocks, watts = (row["core_mhz"], row["memory_mhz"]), (row["power_w"], row["predicted"])
        kernel = KernelScores(
            benchmark=str(name),
            kernel=str(mine["kernel"].iloc[0]),
            scores=scores,
            reference=Reference(*map(float, clocks), *map(finite, watts)),
            mix=mix,
            nearest=near["nearest"].get(name),
            distance=finite(near["distance"].get(name, np.nan)),
        )
        kernels.append(kernel)
    return sorted(kernels, key=lambda kernel: -(kernel.scores.mean_percent or -1.0))
