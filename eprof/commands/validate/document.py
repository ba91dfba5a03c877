"""From a study to the document `eprof.validation/1`, from which every report is made (docs/validate.md)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from msgspec.structs import asdict

from eprof.base.arrays import Floats, finite
from eprof.base.clocks import Clocks
from eprof.base.errors import EprofError
from eprof.base.version import __version__
from eprof.commands.validate import schema
from eprof.commands.validate.study import CARD_SCALED, SCALED, Outcome, Study, mixes, nearest, of_metered_runs
from eprof.lab.measurements import Measurements
from eprof.lab.validation import protocols
from eprof.lab.validation.protocols import errors_percent, grouped, histogram, score

EDGES = [float(edge) for edge in range(-50, 51, 2)]
_SAW = "the table as it is, on rows of a file that it was made from: how well it follows them, no test"
# With fewer kernels, errors of two halves say nothing.
_HALVED_FROM = 8


def document(
    study: Study | None,
    *,
    whole_runs: Sequence[schema.WholeRun] = (),
    candidates: Sequence[schema.Candidate] = (),
    command_line: Sequence[str] = (),
    notes: Sequence[str] = (),
    max_error_percent: float | None = None,
    times: schema.Times | None = None,
) -> schema.Validation:
    """The whole document `eprof.validation/1`.

    max_error_percent: the gate that the worst mean error of all protocols is held against.

    Raises EprofError: there is neither a study nor a run with a meter.
    """
    if study is None and not whole_runs:
        raise EprofError(f"{notes[0]} Run it again where `eprof doctor` finds a meter.")
    paths = [run.path for run in whole_runs] if study is None else study.measurements.sources
    made = schema.Validation(
        schema=schema.SCHEMA,
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
        made.n += len(study.measurements)
        made.protocols = {name: _protocol(name, outcome, study) for name, outcome in study.outcomes.items()}
        made.baselines = {
            model: {name: outcome.scores for name, outcome in by_protocol.items()}
            for model, by_protocol in study.baselines.items()
        }
        made.notes = list(dict.fromkeys([*made.notes, *study.notes]))
        made.rows = _rows(study)
        made.to_meter = _to_meter(study)
        made.measured = _measured(study)
    if whole_runs:
        made.protocols["runs"] = _of_runs(whole_runs)
    if max_error_percent is not None:
        made.gate = gate(made.protocols, max_error_percent)
    return made


def gate(tested: Mapping[str, schema.Protocol], limit_percent: float) -> schema.Gate:
    """The gate in the document of a validation: the worst mean error against a limit; one not known does not pass."""

    def badness(name: str) -> float:
        error = tested[name].mean_percent
        return np.inf if error is None else error

    worst = max(tested, key=badness)
    error = tested[worst].mean_percent
    return schema.Gate(limit_percent, worst, error, error is not None and error <= limit_percent)


def _to_meter(study: Study) -> dict[str, schema.MeteredRuns]:
    """In the document: how each protocol's predictions split metered runs; not where a factor a kernel was measured."""
    scored = {
        name: of_metered_runs(study.measurements, outcome.predicted, study.plan.seed)
        for name, outcome in study.outcomes.items()
        if not name.endswith(SCALED)
    }
    return {name: scores for name, scores in scored.items() if scores is not None}


def _of_runs(whole_runs: Sequence[schema.WholeRun]) -> schema.Protocol:
    """Scores of whole programs in the document; they are joules, so there is no RMSE in W."""
    measured = np.array([run.measured_j for run in whole_runs])
    predicted = np.array([run.predicted_j for run in whole_runs], dtype=float)
    scores = {**asdict(score(measured, predicted)), "rmse_w": None}
    return schema.Protocol(**scores, folds=0, meaning="whole programs: predicted against measured energy")


def _protocol(name: str, outcome: Outcome, study: Study) -> schema.Protocol:
    meaning = _SAW if name == protocols.TABLE and study.table_saw_these else _meaning(name)
    return schema.Protocol(**asdict(outcome.scores), folds=outcome.folds, meaning=meaning)


def _meaning(name: str) -> str:
    words = protocols.MEANINGS[name.removesuffix(CARD_SCALED).removesuffix(SCALED)]
    if name.endswith(CARD_SCALED):
        return f"{words}; then the scale factor of one kernel for all others, each kernel being that one in turn"
    if not name.endswith(SCALED):
        return words
    return f"{words}; then one measured scale factor for each kernel, from one row that is not scored"


def _measured(study: Study) -> schema.Measured:
    measurements = study.measurements
    predicted = study.outcomes[study.main].predicted
    shares = mixes(study.parts, measurements.rows["benchmark"])
    errors = errors_percent(measurements.power_w, predicted)
    at_settings = grouped(measurements.rows, ("core_mhz", "memory_mhz"), "power_w", predicted)
    table, trained_on = study.table, study.trained_on
    costs = None if table is None else schema.Costs(table.name, table.device, table.source, table.basis)
    form = None
    if study.plan.form is not None and not all(name.startswith(protocols.TABLE) for name in study.outcomes):
        plain = asdict(study.plan.form)
        plain["prior"] = dict(plain["prior"]) if plain["prior"] else None
        form = schema.FittedForm(**plain, seed=study.plan.seed)
    return schema.Measured(
        inputs=list(map(schema.Input, measurements.sources)),
        trained_on=None if trained_on is None else list(map(schema.Input, trained_on.sources)),
        costs=costs,
        form=form,
        benchmarks=int(measurements.rows["benchmark"].nunique()),
        settings=[Clocks(core, memory) for core, memory in protocols.settings(measurements.rows)],
        reference=Clocks(*measurements.reference),
        main_protocol=study.main,
        table_saw_these=study.table_saw_these,
        histogram=schema.Histogram(EDGES, histogram(errors, EDGES)),
        by_setting=[schema.SettingScores(float(core), float(memory), each) for (core, memory), each in at_settings],
        by_benchmark=_by_benchmark(measurements, predicted, shares),
        likeness=_likeness(measurements, predicted, shares),
        range=_ranges(measurements),
    )


def _by_benchmark(measurements: Measurements, predicted: Floats, shares: pd.DataFrame) -> list[schema.KernelScores]:
    rows = measurements.rows.assign(predicted=predicted)
    near = nearest(shares)
    kernels = []
    for (name,), scores in grouped(rows, ("benchmark",), "power_w", predicted):
        mine = rows[rows["benchmark"] == name]
        mix = {}
        if name in shares.index:
            largest_first = pd.Series(shares.loc[name]).sort_values(ascending=False)
            mix = {str(term): float(share) for term, share in largest_first.items() if share > 0}
        kernels.append(
            schema.KernelScores(
                benchmark=str(name),
                kernel=str(mine["kernel"].iloc[0]),
                scores=scores,
                reference=_reference(mine, measurements.reference),
                mix=mix,
                nearest=str(near.loc[name, "nearest"]) if name in near.index else None,
                distance=finite(near["distance"].get(name, np.nan)),
            )
        )
    return sorted(kernels, key=lambda kernel: -(kernel.scores.mean_percent or -1.0))


def _reference(rows: pd.DataFrame, reference: tuple[float, float]) -> schema.Reference:
    """The row of the document at the reference setting, or at the setting nearest to it."""
    off = (rows["core_mhz"] / reference[0] - 1).abs() + (rows["memory_mhz"] / reference[1] - 1).abs()
    row = rows.iloc[int(np.argmin(off.to_numpy()))]
    clocks = float(row["core_mhz"]), float(row["memory_mhz"])
    return schema.Reference(*clocks, measured_w=finite(row["power_w"]), predicted_w=finite(row["predicted"]))


def _likeness(measurements: Measurements, predicted: Floats, shares: pd.DataFrame) -> schema.Likeness | None:
    """In the document: whether kernels that are similar to no other are predicted worse; errors of both halves.

    None: too few.
    """
    near = nearest(shares)
    if len(near) < _HALVED_FROM:
        return None
    middle = float(near["distance"].median())
    distance = measurements.rows["benchmark"].map(near["distance"]).to_numpy(dtype=float)
    power = measurements.power_w
    halves = [score(power[half], predicted[half]) for half in (distance <= middle, distance > middle)]
    return schema.Likeness(middle, *halves)


def _ranges(measurements: Measurements) -> schema.Ranges:
    rows, rates = measurements.rows, measurements.rates
    return schema.Ranges(
        core_mhz=_seen_range(rows["core_mhz"]),
        memory_mhz=_seen_range(rows["memory_mhz"]),
        power_w=_seen_range(rows["power_w"]),
        rates={str(term): _seen_range(rates[term]) for term in rates},
        rate_unit="1e9 events/s" if measurements.kind == "counts" else "1e9 cycles of full use/s",
    )


def _seen_range(values: pd.Series) -> schema.Range:
    return finite(values.min()), finite(values.max())


def _rows(study: Study) -> list[schema.Row]:
    """Every measured row in the document, with what each protocol predicts for it."""
    power = study.measurements.power_w
    predicted = {name: outcome.predicted for name, outcome in study.outcomes.items()}
    errors = errors_percent(power, predicted[study.main])
    return [
        schema.Row(
            benchmark=str(row["benchmark"]),
            kernel=str(row["kernel"]),
            core_mhz=float(row["core_mhz"]),
            memory_mhz=float(row["memory_mhz"]),
            time_s=finite(row["time_s"]),
            measured_w=finite(row["power_w"]),
            predicted_w={name: finite(watts[place]) for name, watts in predicted.items()},
            error_percent=finite(errors[place]),
        )
        for place, row in enumerate(study.measurements.rows.to_dict("records"))
    ]
