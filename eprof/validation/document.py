"""The document `eprof.validation/1`: a validation as plain data, from which every report is made (docs/validate.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from eprof import __version__
from eprof.measurements import Measurements
from eprof.validation import likeness, protocols
from eprof.validation.scores import Floats, errors_percent, grouped, histogram, score
from eprof.validation.study import SCALED, Outcome, Validation

SCHEMA = "eprof.validation/1"
_SAW = "the table as it is, on rows of a file that it was made from: how well it follows them, no test"
EDGES = [float(one) for one in range(-50, 51, 2)]


@dataclass(frozen=True)
class Gate:
    """The largest mean error that may pass, in per cent, and the protocol that came out worst."""

    max_error_percent: float
    protocol: str
    value_percent: float | None

    @property
    def passed(self) -> bool:
        """Whether the worst mean error is known and within the limit."""
        return self.value_percent is not None and self.value_percent <= self.max_error_percent


@dataclass(frozen=True)
class WholeRun:
    """A run directory with measured energy: predicted against measured J of one program."""

    path: str
    predicted_j: float | None
    measured_j: float
    method: str
    reasons: str
    marks: tuple[str, ...]


def gate(document: Mapping[str, Any], limit_percent: float) -> Gate:
    """Hold the worst mean error of all protocols that were asked for against a limit; baselines do not count."""
    means = {name: one["mean_percent"] for name, one in document["protocols"].items()}
    unknown = next((name for name, mean in means.items() if mean is None), None)
    worst = unknown or max(means, key=lambda name: means[name])
    return Gate(limit_percent, worst, means[worst])


def document(
    validation: Validation | None,
    *,
    whole_runs: Sequence[WholeRun] = (),
    candidates: Sequence[Mapping[str, Any]] = (),
    command_line: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The whole document. Numbers are Python floats and ints; what is not known is None."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "eprof": __version__,
        "created_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command_line": list(command_line),
        "title": "",
        "n": 0,
        "protocols": {},
        "baselines": {},
        "notes": list(notes),
        "rows": [],
    }
    if validation is not None:
        found |= _measured(validation, notes)
    if whole_runs:
        runs, scores = _whole_runs(whole_runs)
        found["runs"] = runs
        found["protocols"] = {**found["protocols"], "runs": scores}
        found["n"] += len(runs)
        found["title"] = found["title"] or ", ".join(one.path.rpartition("/")[2] for one in whole_runs)
    if candidates:
        found["candidates"] = list(candidates)
    return found


def _measured(validation: Validation, notes: Sequence[str]) -> dict[str, Any]:
    measurements, main = validation.measurements, validation.main
    predicted = validation.outcomes[main].predicted
    shares = likeness.mixes(validation.parts, measurements.rows["benchmark"]).shares
    table = validation.table
    return {
        "title": ", ".join(one.rpartition("/")[2] for one in measurements.sources),
        "inputs": _inputs(measurements),
        "trained_on": _inputs(validation.trained_on) if validation.trained_on is not None else None,
        "costs": None if table is None else {"name": table.name, "device": table.device, "source": table.source},
        "form": _form(validation),
        "n": len(measurements),
        "benchmarks": int(measurements.rows["benchmark"].nunique()),
        "settings": [
            {"core_mhz": core, "memory_mhz": memory} for core, memory in protocols.settings(measurements.rows)
        ],
        "reference": {"core_mhz": measurements.reference[0], "memory_mhz": measurements.reference[1]},
        "main_protocol": main,
        "protocols": {name: _outcome(name, one, validation) for name, one in validation.outcomes.items()},
        "table_saw_these": validation.table_saw_these,
        "baselines": {
            model: {name: _short(one) for name, one in by_protocol.items()}
            for model, by_protocol in validation.baselines.items()
        },
        "histogram": {
            "edges_percent": EDGES,
            "counts": histogram(errors_percent(measurements.power_w, predicted), EDGES),
        },
        "by_setting": _by_setting(measurements, predicted),
        "by_benchmark": _by_benchmark(measurements, predicted, shares),
        "likeness": _likeness(measurements, predicted, shares),
        "range": _ranges(measurements),
        "notes": list(dict.fromkeys([*notes, *measurements.notes, *validation.notes])),
        "rows": _rows(validation),
    }


def _inputs(measurements: Measurements) -> list[dict[str, Any]]:
    return [{"path": one} for one in measurements.sources]


def _form(validation: Validation) -> dict[str, Any] | None:
    """How models were fitted; None where none was."""
    if set(validation.outcomes) <= {protocols.TABLE, protocols.TABLE + SCALED}:
        return None
    form = asdict(validation.plan.form)
    return {**form, "prior": dict(form["prior"]) if form["prior"] else None, "seed": validation.plan.seed}


def _meaning(name: str) -> str:
    """What a protocol says, in words."""
    if name.endswith(SCALED):
        words = protocols.MEANINGS[name.removesuffix(SCALED)]
        return f"{words}; then one measured scale factor for each kernel, from one row that is not scored"
    return protocols.MEANINGS[name]


def _outcome(name: str, outcome: Outcome, validation: Validation) -> dict[str, Any]:
    meaning = _SAW if name == protocols.TABLE and validation.table_saw_these else _meaning(name)
    return {**_short(outcome), "folds": outcome.folds, "meaning": meaning}


def _short(outcome: Outcome) -> dict[str, Any]:
    return outcome.scores.data()


def _by_setting(measurements: Measurements, predicted: Floats) -> list[dict[str, Any]]:
    found = grouped(measurements.rows, ("core_mhz", "memory_mhz"), "power_w", predicted)
    return [{"core_mhz": float(core), "memory_mhz": float(memory), **one.data()} for (core, memory), one in found]


def _by_benchmark(measurements: Measurements, predicted: Floats, shares: pd.DataFrame) -> list[dict[str, Any]]:
    """A row a benchmark, worst mean error first: scores, measured and predicted power at the reference, its mix."""
    rows = measurements.rows.assign(predicted=predicted)
    near = likeness.nearest(shares)
    found = []
    for (name,), one in grouped(rows, ("benchmark",), "power_w", predicted):
        mine = rows[rows["benchmark"] == name]
        at = _nearest_row(mine, measurements.reference)
        mix = shares.loc[name].sort_values(ascending=False) if name in shares.index else pd.Series(dtype=float)
        found.append(
            {
                "benchmark": str(name),
                "kernel": str(mine["kernel"].iloc[0]),
                **one.data(),
                "reference": {
                    "core_mhz": float(at["core_mhz"]),
                    "memory_mhz": float(at["memory_mhz"]),
                    "measured_w": _number(at["power_w"]),
                    "predicted_w": _number(at["predicted"]),
                },
                "mix": {str(term): float(share) for term, share in mix.items() if share > 0},
                "nearest": str(near.loc[name, "nearest"]) if name in near.index else None,
                "distance": _number(near.loc[name, "distance"]) if name in near.index else None,
            }
        )
    return sorted(found, key=lambda one: -(one["mean_percent"] or -1.0))


def _nearest_row(rows: pd.DataFrame, reference: tuple[float, float]) -> pd.Series:
    """The row at the reference setting, or at the setting nearest to it."""
    off = (rows["core_mhz"] / reference[0] - 1).abs() + (rows["memory_mhz"] / reference[1] - 1).abs()
    found: pd.Series = rows.iloc[int(np.argmin(off.to_numpy()))]
    return found


def _likeness(measurements: Measurements, predicted: Floats, shares: pd.DataFrame) -> dict[str, Any] | None:
    """Whether kernels that have no like among the others are predicted worse: errors of both halves. None: too few."""
    near = likeness.nearest(shares)
    if len(near) < 8:
        return None
    middle = float(near["distance"].median())
    distance = measurements.rows["benchmark"].map(near["distance"]).to_numpy(dtype=float)
    power = measurements.power_w
    halves = {}
    for name, at in (("near", distance <= middle), ("far", distance > middle)):
        halves[name] = score(power[at], predicted[at]).data()
    return {"distance": middle, **halves}


def _ranges(measurements: Measurements) -> dict[str, Any]:
    """What was seen: clocks, power, and the least and largest rate of each term, 1e9 a second."""
    rows, rates = measurements.rows, measurements.rates
    return {
        **{
            name: [_number(rows[name].min()), _number(rows[name].max())]
            for name in ("core_mhz", "memory_mhz", "power_w")
        },
        "rates": {str(term): [_number(rates[term].min()), _number(rates[term].max())] for term in rates},
        "rate_unit": "1e9 events/s" if measurements.kind == "counts" else "1e9 cycles of full use/s",
    }


def _rows(validation: Validation) -> list[dict[str, Any]]:
    """Every measured row with what each protocol predicts for it; None where the protocol does not test it."""
    rows = validation.measurements.rows
    names = list(validation.outcomes)
    columns = [_listed(validation.outcomes[name].predicted) for name in names]
    predictions = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    main = errors_percent(validation.measurements.power_w, validation.outcomes[validation.main].predicted)
    found = []
    for at, (prediction, error) in enumerate(zip(predictions, _listed(main), strict=True)):
        row = rows.iloc[at]
        found.append(
            {
                "benchmark": str(row["benchmark"]),
                "kernel": str(row["kernel"]),
                "core_mhz": float(row["core_mhz"]),
                "memory_mhz": float(row["memory_mhz"]),
                "time_s": _number(row["time_s"]),
                "measured_w": _number(row["power_w"]),
                "predicted_w": prediction,
                "error_percent": error,
            }
        )
    return found


def _listed(values: Floats) -> list[float | None]:
    return [float(one) if math.isfinite(one) else None for one in values]


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _whole_runs(whole_runs: Sequence[WholeRun]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run directories with their errors, and the scores over them; power is not known, so neither is the RMSE in W."""
    measured = np.array([one.measured_j for one in whole_runs])
    predicted = np.array([math.nan if one.predicted_j is None else one.predicted_j for one in whole_runs])
    errors = _listed(errors_percent(measured, predicted))
    runs = [
        {**asdict(one), "marks": list(one.marks), "error_percent": error}
        for one, error in zip(whole_runs, errors, strict=True)
    ]
    scores = {
        **score(measured, predicted).data(),
        "rmse_w": None,
        "folds": 0,
        "meaning": "whole programs: predicted against measured energy",
    }
    return runs, scores
