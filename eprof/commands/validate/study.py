"""The study of `eprof validate`: scores of our model and of baselines by protocol, and its warnings.

And scores of modelled times, by component and by the roofline, fitted to nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats
from eprof.base.errors import CostError, EprofError
from eprof.base.optional import mapped
from eprof.base.text import phrase
from eprof.commands.validate.baselines import baselines
from eprof.costs import CostTable
from eprof.counts.definition import COMPONENTS as OF_LAUNCH
from eprof.energy.modelled_time import DEFAULT_EFFICIENCY, at_peaks, highest_s
from eprof.energy.time_by_component import Work, components, gpu_at_setting
from eprof.lab.fitting import cross_validation, table_power
from eprof.lab.fitting.cross_validation import Model, Report, errors_percent
from eprof.lab.fitting.quality import no_better, too_few_rows
from eprof.lab.fitting.solve import Form, fit, form_without_prior
from eprof.lab.fitting.table_power import CONSTANT_PART
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.settings import SettingKey, rows_by_setting


class Scores(Struct, frozen=True):
    """Errors over `n` rows; `missing` more could not be predicted and are in no number.

    mean, sd (of a sample), min, median, p90 and max are of the absolute relative error |predicted - measured| /
    measured, in per cent; bias is the mean of the signed one (above 0: predicted too much). above_constant is the mean
    |predicted - measured| in per cent of what was measured above constant power, in the mean: where most of the power
    is constant, a relative error is small whatever the counts say. None: not known.
    """

    n: int
    missing: int
    mean_percent: float | None = None
    sd_percent: float | None = None
    min_percent: float | None = None
    median_percent: float | None = None
    p90_percent: float | None = None
    max_percent: float | None = None
    bias_percent: float | None = None
    rmse_w: float | None = None
    above_constant_percent: float | None = None


def score(measured: Floats, predicted: Floats, constant: Floats | None = None) -> Scores:
    """Scores of predicted against measured power, and above the constant part of it, where known; all in W, (n,)."""
    signed = errors_percent(measured, predicted)
    scored = np.isfinite(signed)
    if not scored.any():
        return Scores(0, len(signed))

    sizes = np.abs(signed[scored])
    off_w = (predicted - measured)[scored]
    above_w = np.nan if constant is None else float((measured - constant)[scored].mean())
    above_percent = float(100 * np.abs(off_w).mean() / above_w) if above_w > 0 else None
    return Scores(
        n=int(sizes.size),
        missing=int((~scored).sum()),
        mean_percent=float(sizes.mean()),
        sd_percent=float(sizes.std(ddof=1)) if sizes.size > 1 else None,
        min_percent=float(sizes.min()),
        median_percent=float(np.median(sizes)),
        p90_percent=float(np.percentile(sizes, 90)),
        max_percent=float(sizes.max()),
        bias_percent=float(signed[scored].mean()),
        rmse_w=float(np.sqrt(np.mean(off_w**2))),
        above_constant_percent=above_percent,
    )


def grouped(measurements: Measurements, by: str | list[str], predicted: Floats) -> Iterator[tuple[Any, Scores]]:
    """Yield (value or values, scores) of each group of rows that are the same in `by`, sorted by these values."""
    places: dict[Any, Any] = measurements.rows.reset_index(drop=True).groupby(by).indices
    for key in sorted(places):
        yield key, score(measurements.power_w[places[key]], predicted[places[key]])


def histogram(errors: Floats, edges: Sequence[float]) -> list[int]:
    """How many signed errors in % fall between each two neighbouring edges; what lies beyond is in the outermost."""
    finite = errors[np.isfinite(errors)]
    inside = np.clip(finite, edges[0], np.nextafter(edges[-1], edges[0]))
    return [int(count) for count in np.histogram(inside, bins=edges)[0]]


def scaled(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predicted W times a factor of each row's own benchmark, its measured over predicted power at the reference; (n,).

    The row that gave the factor is left out (NaN), and so are benchmarks that were not measured there.
    """
    here, factors = _factors(measurements, predicted, reference)
    own = measurements.rows["benchmark"].map(factors).to_numpy(dtype=float)
    return np.where(here, np.nan, predicted * own)


def scaled_by_one(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predicted W times the factor of one benchmark, its measured over predicted power at the reference: (k, n).

    Each of the k benchmarks that were measured there gives the factor in turn; its own rows are left out (NaN).
    """
    benchmarks = measurements.rows["benchmark"].to_numpy()
    _, factors = _factors(measurements, predicted, reference)
    mended = [np.where(benchmarks == name, np.nan, predicted * factor) for name, factor in factors.items()]
    return np.array(mended).reshape(len(factors), len(predicted))


def _factors(measurements: Measurements, predicted: Floats, reference: SettingKey) -> tuple[Bools, dict[Any, float]]:
    """(whether each row is at the reference setting, (n,); benchmark -> its measured over predicted power there)."""
    rows = measurements.rows
    here = ((rows["core_mhz"] == reference[0]) & (rows["memory_mhz"] == reference[1])).to_numpy(dtype=np.bool_)
    factors: dict[Any, float] = {}
    ratios = measurements.power_w[here] / predicted[here]
    for name, factor in zip(rows["benchmark"][here], ratios, strict=True):
        factors.setdefault(name, float(factor))
    return here, factors


OWN = "eprof"
SCALED, CARD_SCALED = "_scaled", "_card_scaled"
# By these, kernels are new to the model.
_NEW_KERNELS = (cross_validation.LEAVE_ONE_BENCHMARK_OUT, cross_validation.TRANSFER, cross_validation.TABLE)


class Outcome(Struct, frozen=True, eq=False):
    """Predictions by one protocol, (n,), W; NaN for rows that it does not test. folds: how many models were made."""

    predicted: Floats
    folds: int
    scores: Scores


class Plan(Struct, frozen=True):
    """What the study of a validation runs.

    protocols: names of protocols, without TABLE and TRANSFER, which follow from the inputs; none: those that the rows
    can be split by, unless there is a table or a training set to score. form: None: the one that suits the rows.
    holdout: settings to test on, which ask for HOLDOUT. scale: "kernel": also with one measured scale factor for each
    kernel that is new to the model; "card": with one, of one kernel, for all of them.
    """

    protocols: Sequence[str] = ()
    form: Form | None = None
    holdout: Sequence[SettingKey] = ()
    folds: int = 10
    baselines: bool = False
    scale: str | None = None
    processes: int | None = None


class Study(Struct, frozen=True, eq=False):
    """The result of a validation. outcomes: protocol -> ours; baselines: model -> protocol -> theirs.

    parts: watts of each term and of constant power for each row, by the table or by a fit to all rows: what a kernel's
    power goes to, for similarity alone; no score rests on it.
    """

    measurements: Measurements
    plan: Plan
    table: CostTable | None
    trained_on: Measurements | None
    outcomes: Mapping[str, Outcome]
    baselines: Mapping[str, Mapping[str, Outcome]]
    parts: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def table_saw_these(self) -> bool:
        """Whether the table says that it was made from a file of the same name: its errors are then those of a fit."""
        if self.table is None:
            return False
        made_from = {str(name) for name in self.table.fit.data.get("data", ())}
        return any(Path(source).name in made_from for source in self.measurements.sources)

    @property
    def main(self) -> str:
        """The protocol, of those run, that says most about a new kernel: headline and plots are of it."""
        order = [name for name in cross_validation.MEANINGS if name in self.outcomes]
        if self.table_saw_these:
            fits = (cross_validation.TABLE, cross_validation.FIT)
            order.sort(key=lambda name: fits.index(name) if name in fits else -1)
        return order[0]


def validate(
    measurements: Measurements,
    plan: Plan,
    *,
    table: CostTable | None = None,
    setting: str | None = None,
    train: Measurements | None = None,
    report: Report | None = None,
) -> Study:
    """Validate a table as it is, and models refitted in every fold, on measured power.

    table: scored as it is, at `setting` if there is one, else each row at its own. train: other measurements to train
    on, tested on these. Raises EprofError: a protocol that these rows cannot be split by, measurements that the table
    does not price.
    """
    names = [*plan.protocols]
    if plan.holdout and cross_validation.HOLDOUT not in names:
        names.append(cross_validation.HOLDOUT)
    notes: list[str] = []
    if table is None and train is None and not names:
        names, notes = cross_validation.defaults(measurements)
    form = plan.form or form_without_prior(measurements)
    plan = replace(plan, protocols=names, form=form)
    notes += measurements.notes
    trained = train or measurements
    if (train is not None or plan.protocols) and (few := too_few_rows(trained, form)):
        notes.append(f"{few}: a fit follows such rows whatever they are, and its error on them says nothing.")

    priced = mapped(table_power.power_by_table, table, measurements, setting)
    if priced is not None:
        parts = priced.parts
    else:
        # What the power of each row goes to, by a fit to all training rows.
        parts = fit(trained, replace(form, starts=1)).parts(measurements)
        constants = [name for name in parts if name not in measurements.terms]
        parts = parts.drop(columns=constants).assign(**{CONSTANT_PART: parts[constants].sum(axis=1)})
    work = _Work(measurements, plan, report, parts[CONSTANT_PART].to_numpy(dtype=np.float64))
    outcomes: dict[str, Outcome] = {}
    if priced is not None:
        notes += priced.notes
        outcomes[cross_validation.TABLE] = work.outcome(priced.power_w)
    outcomes |= work.by_every_protocol(cross_validation.of_form(form, OWN), train)
    if plan.scale:
        outcomes |= work.scaled(outcomes)

    rivals: dict[str, dict[str, Outcome]] = {}
    if plan.baselines:
        models, missing = baselines(measurements)
        notes += missing
        if train is None and not plan.protocols:
            notes.append("Baselines are trained, so they need --protocol or --train; a table alone is scored as it is.")
            models = []
        rivals = {model.name: work.by_every_protocol(model, train) for model in models}
    notes += _no_better_than_means(work, outcomes, rivals)
    return Study(measurements, plan, table, train, outcomes, rivals, parts, tuple(notes))


class _Work(Struct, frozen=True, eq=False):
    """What all protocols of one validation share. constant_w: of each row, by the table or a fit to all rows."""

    measurements: Measurements
    plan: Plan
    report: Report | None
    constant_w: Floats

    def by_every_protocol(self, model: Model, train: Measurements | None) -> dict[str, Outcome]:
        """Protocol -> outcome of a model: trained on `train`, if that is given, and by each protocol of the plan."""
        outcomes = {}
        if train is not None:
            test = self.measurements
            apart = sorted(set(test.terms) ^ set(train.terms))
            if train.kind != test.kind or apart:
                why = phrase("only one of the two counts {}", ", ".join(apart)) or f"{train.kind} against {test.kind}"
                both = f"{', '.join(train.sources)} does not count the same things as {', '.join(test.sources)}"
                raise EprofError(f"--train: {both}: {why}.")
            outcomes[cross_validation.TRANSFER] = self.outcome(cross_validation.train_and_test(model, train, test), 1)
        for name in self.plan.protocols:
            by_benchmark = name in (cross_validation.LEAVE_ONE_BENCHMARK_OUT, cross_validation.K_FOLD_BENCHMARKS)
            if self.measurements.own and by_benchmark:
                raise EprofError(
                    f"{name.replace('_', '-')}: these measurements hold no counts, so each benchmark has unknowns of "
                    "its own, and none can be predicted from the others. Use --protocol leave-one-setting-out."
                )
            outcomes[name] = self.refit(model, name, self.report)
        return outcomes

    def refit(self, model: Model, protocol: str, report: Report | None = None) -> Outcome:
        """The outcome of one protocol: the model is fitted anew in each fold, and tested on the rows left out."""
        plan = self.plan
        rows = self.measurements.rows
        folds = cross_validation.folds(protocol, rows, holdout_settings=plan.holdout, k=plan.folds)
        progress = report and partial(report, f"{protocol.replace('_', ' ')}, {model.name}")
        predicted = cross_validation.cross_validate(
            model, self.measurements, folds, processes=plan.processes, progress=progress
        )
        tested = np.concatenate([fold.test for fold in folds])
        scores = score(self.measurements.power_w[tested], predicted[tested], self.constant_w[tested])
        return Outcome(predicted, len(folds), scores)

    def outcome(self, predicted: Floats, folds: int = 0) -> Outcome:
        """The outcome with these predictions for all rows, (n,) in W, and their scores."""
        return Outcome(predicted, folds, score(self.measurements.power_w, predicted, self.constant_w))

    def scaled(self, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """Protocol + suffix -> outcome with measured scale factors, where its kernels are new to the model."""
        power_w, reference = self.measurements.power_w, self.measurements.reference
        with_factors = {}
        for name, outcome in ((name, outcomes[name]) for name in outcomes if name in _NEW_KERNELS):
            if self.plan.scale == "card":
                # The factor of one benchmark for all others: each in turn is the one that was metered.
                predicted = scaled_by_one(self.measurements, outcome.predicted, reference)
                known = ~np.isnan(predicted)
                scores = score(np.broadcast_to(power_w, predicted.shape)[known], predicted[known])
                middle = pd.DataFrame(predicted).median().to_numpy()
                with_factors[name + CARD_SCALED] = Outcome(middle, outcome.folds, scores)
            else:
                predicted = scaled(self.measurements, outcome.predicted, reference)
                known = ~np.isnan(predicted)
                scores = score(power_w[known], predicted[known], self.constant_w[known])
                with_factors[name + SCALED] = Outcome(predicted, outcome.folds, scores)
        return with_factors


def _no_better_than_means(
    work: _Work, outcomes: Mapping[str, Outcome], rivals: Mapping[str, Mapping[str, Outcome]]
) -> Iterator[str]:
    """Yield warnings on each protocol, or cost table, that predicts power no better than a plain mean does."""
    power = work.measurements.power_w
    # Beside a table, plain means are tested on kernels that they have not seen.
    names = {name: name for name in outcomes if name in work.plan.protocols and name != cross_validation.FIT}
    if cross_validation.TABLE in outcomes and work.measurements.rows["benchmark"].nunique() > 1:
        names[cross_validation.TABLE] = cross_validation.LEAVE_ONE_BENCHMARK_OUT
    for name, protocol in names.items():
        ours = outcomes[name]
        known = ~np.isnan(ours.predicted)
        errors = {}
        for model in cross_validation.BASELINES_WITHOUT_COUNTS:
            mean = rivals.get(model.name, {}).get(protocol) or work.refit(model, protocol)
            errors[model.name] = score(power[known], mean.predicted[known]).mean_percent
        if sentence := no_better(cross_validation.LEFT_OUT[name], ours.scores.mean_percent, errors):
            yield sentence


BY_COMPONENT, UNBOUND, ROOFLINE = "by component", "by component, no bandwidth", "roofline"
AS_SIMULATED = f"roofline over {DEFAULT_EFFICIENCY:g}"
_KINDS = ("fp64", "fp32", "integer", "special")


class Times(Struct, frozen=True):
    """Errors of modelled times, by model. missing: words not counted; why: what the model by component assumes."""

    scores: dict[str, Scores]
    missing: list[str]
    why: str


def times(table: CostTable, measurements: Measurements) -> Times:
    """Errors of modelled times, by component ([S] 5.5) and by roofline, at each row's own setting.

    Raises EprofError: the table does not describe multiprocessors, the measurements lack what the models need.
    """
    if table.multiprocessors is None:
        raise CostError(f"--time: {table.name} does not describe multiprocessors; it needs a [time_components].")
    if not {"fp32_flop", "fp64_flop"} <= set(measurements.work) or "dram_byte" not in measurements.terms:
        raise EprofError(
            f"--time: the mapping {measurements.mapping} does not say what flops these rows did (fp32_flop, fp64_flop "
            "in [time]), or which bytes DRAM moved (the term dram_byte)."
        )
    predicted = {name: np.full(len(measurements), np.nan) for name in (BY_COMPONENT, UNBOUND, ROOFLINE, AS_SIMULATED)}
    missing: dict[str, None] = {}
    for setting, rows in rows_by_setting(measurements).items():
        try:
            costs = table.at(setting if table.default.core_mhz is not None else None)
        except CostError:
            continue  # these rows are counted as not predicted
        some = measurements.take(rows)
        machine = gpu_at_setting(costs)
        assert machine is not None, "a checked table has a clock and a peak of DRAM"
        modelled = components(work_of(some), machine)
        predicted[BY_COMPONENT][rows] = modelled.total / machine.core_hz
        predicted[UNBOUND][rows] = (modelled.total - modelled.cycles["bandwidth"]) / machine.core_hz
        work = {group: some.work[f"{group}_flop"].to_numpy(dtype=np.float64) for group in ("fp32", "fp64")}
        work["dram"] = some.counts()["dram_byte"].to_numpy()
        predicted[ROOFLINE][rows] = highest_s(at_peaks(work, costs.peaks))
        missing |= dict.fromkeys(word for words in modelled.missing for word in words)
    predicted[AS_SIMULATED] = predicted[ROOFLINE] / DEFAULT_EFFICIENCY
    measured = measurements.rows["time_s"].to_numpy(dtype=np.float64)
    # Errors of seconds are no watts.
    scores = {name: replace(score(measured, time_s), rmse_w=None) for name, time_s in predicted.items()}
    return Times(scores, list(missing), table.multiprocessors.why)


def work_of(measurements: Measurements) -> Work:
    """The counts and shape of one launch of each measured row, as the time models take them; NaN: not known."""
    counts = measurements.counts()
    nothing = np.full(len(measurements), np.nan)
    told = {str(name): measurements.work[name].to_numpy(dtype=np.float64) for name in measurements.work}
    instructions = {kind: counts[word].to_numpy() for kind in _KINDS if (word := f"{kind}_instruction") in counts}
    instructions |= {kind: told[kind] for kind in told if kind == "control"}
    launch = {name: told.get(name, nothing) for name in OF_LAUNCH}
    return Work(**launch, instructions=instructions, dram_byte=counts["dram_byte"].to_numpy())
