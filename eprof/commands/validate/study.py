"""The study of `eprof validate`: scores of our model and baselines by protocol, its warnings, similar kernels, times.

Baselines of [S] 5 know event rates and clocks; `cross_validation.BASELINES_WITHOUT_COUNTS`, the
kernel's name and clocks alone. Then what is held against these: kernels of a profile, and times by the model and by the
roofline, fitted to nothing.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError, EprofError
from eprof.base.optional import mapped
from eprof.base.text import phrase
from eprof.base.vocabulary import CONSTANT
from eprof.costs import CostTable
from eprof.counts.definition import COMPONENTS as OF_LAUNCH
from eprof.energy.attribution import attribute, joules_by_price
from eprof.energy.modelled_time import DEFAULT_EFFICIENCY, at_peaks, highest_s
from eprof.energy.time_by_component import Work, components, gpu_at_setting
from eprof.lab.fitting import cross_validation, table_power
from eprof.lab.fitting.cross_validation import (
    BASELINES_WITHOUT_COUNTS,
    CLOCKS,
    SEED,
    Model,
    Report,
    errors_percent,
    of_form,
)
from eprof.lab.fitting.quality import no_better, too_few_rows
from eprof.lab.fitting.solve import Form, fit, form_without_prior
from eprof.lab.fitting.table_power import CONSTANT_PART
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.settings import SettingKey, rows_by_setting
from eprof.profile.profile import Profile


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


def grouped(
    rows: pd.DataFrame, by: Sequence[str], measured: str, predicted: Floats
) -> Iterator[tuple[tuple[Any, ...], Scores]]:
    """The scores of each group of rows that share the columns `by`, with the group's values, sorted by them."""
    power = rows[measured].to_numpy(dtype=float)
    places = rows.reset_index(drop=True).groupby(list(by), dropna=False).indices
    groups = {key if isinstance(key, tuple) else (key,): place for key, place in places.items()}
    # Texts last, because they do not compare with numbers.
    for key in sorted(groups, key=lambda key: [(isinstance(value, str), value) for value in key]):
        group = groups[key]
        yield key, score(power[group], predicted[group])


def histogram(errors: Floats, edges: Sequence[float]) -> list[int]:
    """How many signed errors in % fall between each two neighbouring edges; what lies beyond is in the outermost."""
    finite = errors[np.isfinite(errors)]
    inside = np.clip(finite, edges[0], np.nextafter(edges[-1], edges[0]))
    return [int(count) for count in np.histogram(inside, bins=edges)[0]]


# What a level of cache or scratchpad serves: the "texture events" of [S] 5, which MLR goes without.
_EXTRA = ("l1_", "l2_", "shared_", "texture_")


def scaled(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predicted W times a factor of each row's own benchmark, its measured over predicted power at the reference; (n,).

    The row that gave the factor is left out (NaN), and so are benchmarks that were not measured there.
    """
    here, factors = _factors(measurements, predicted, reference)
    own = measurements.rows["benchmark"].map(factors).to_numpy(dtype=float)
    return np.where(here, np.nan, predicted * own)


def scaled_by_one(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predicted W times the factor of one benchmark, its measured over predicted power at the reference: (k, n).

    Each of the k benchmarks that were measured there gives the factor once; its own rows are left out (NaN).
    """
    benchmarks = measurements.rows["benchmark"].to_numpy()
    _, factors = _factors(measurements, predicted, reference)
    mended = [np.where(benchmarks == name, np.nan, predicted * factor) for name, factor in factors.items()]
    return np.array(mended).reshape(len(factors), len(predicted))


def _factors(
    measurements: Measurements, predicted: Floats, reference: tuple[float, float]
) -> tuple[npt.NDArray[np.bool_], dict[Any, float]]:
    """Whether each row is at the reference setting, (n,); and benchmark -> its measured over predicted power there."""
    rows = measurements.rows
    here = ((rows["core_mhz"] == reference[0]) & (rows["memory_mhz"] == reference[1])).to_numpy(dtype=np.bool_)
    factors: dict[Any, float] = {}
    ratios = measurements.power_w[here] / predicted[here]
    for name, factor in zip(rows["benchmark"][here], ratios, strict=True):
        factors.setdefault(name, float(factor))
    return here, factors


def _regression(train: Measurements, test: Measurements, *, extra: bool) -> Floats:
    """The baseline of least squares: power on event rates and both clocks, with an intercept, signs free ([S] 5).

    extra: also with the rates of L1, L2 and shared memory (MLR+); without, only instructions and DRAM (MLR). Weights
    are of least norm, so that columns that say the same are no error.
    """
    terms = _terms(train, extra)
    inputs = np.column_stack([np.ones(len(train)), _inputs(train, terms)])
    scale = np.abs(inputs).max(axis=0)
    scale[scale == 0] = 1.0
    weights, *_ = np.linalg.lstsq(inputs / scale, train.power_w, rcond=None)
    weights /= scale
    return np.asarray(_inputs(test, terms) @ weights[1:] + weights[0])


def _terms(measurements: Measurements, extra: bool = True) -> tuple[str, ...]:
    return tuple(str(term) for term in measurements.terms if extra or not str(term).startswith(_EXTRA))


def _inputs(measurements: Measurements, terms: Sequence[str]) -> Floats:
    """Inputs of the baselines: rates of `terms`, then the clocks: (n, n_terms + 2)."""
    clocks = measurements.rows[CLOCKS].to_numpy(dtype=float)
    return np.column_stack([measurements.rates[list(terms)].to_numpy(dtype=float), clocks])


def _network(train: Measurements, test: Measurements) -> Floats:
    """The baseline of a neural network: Song's BP-ANN, 10 inputs, two hidden layers of 4 sigmoid neurons ([S] 5).

    Its inputs are the ten rates and clocks that correlate best with the power of the training rows, brought to mean 0
    and spread 1 as the power is. The best of a few starts, by the error on the training rows, is kept.
    """
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits

    terms = _terms(train)
    inputs, power_w = _inputs(train, terms), train.power_w
    spread = inputs.std(axis=0)
    # Ten at most, whose correlation with power is strongest; they vary.
    varying = np.flatnonzero(spread > 0)
    strength = [abs(float(np.corrcoef(inputs[:, column], power_w)[0, 1])) for column in varying]
    columns = np.sort(varying[np.argsort(strength)[::-1][:10]])
    middle = inputs.mean(axis=0)
    scaled, others = ((each - middle)[:, columns] / spread[columns] for each in (inputs, _inputs(test, terms)))
    middle_w, spread_w = power_w.mean(), power_w.std() or 1.0
    networks = []
    for start in range(2):
        sizes = {"hidden_layer_sizes": (4, 4), "activation": "logistic", "solver": "lbfgs"}
        network = MLPRegressor(**sizes, alpha=1e-3, max_iter=300, random_state=SEED + start)
        # Matrices are so small that one thread is quickest; that it could be trained longer need not be said.
        with np.errstate(all="ignore"), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            networks.append(network.fit(scaled, (power_w - middle_w) / spread_w))
    best = min(networks, key=lambda network: network.loss_)
    return np.asarray(best.predict(others) * spread_w + middle_w)


REGRESSION = Model("linear regression (MLR)", partial(_regression, extra=False))
EXTRA_REGRESSION = Model("linear regression, extra counters (MLR+)", partial(_regression, extra=True))
NETWORK = Model("neural network (BP-ANN 10-4-4-1)", _network)


def baselines(measurements: Measurements) -> tuple[list[Model], list[str]]:
    """The models to compare eprof's with, and a sentence for each that cannot run here."""
    models = [
        *BASELINES_WITHOUT_COUNTS,
        of_form(Form(voltages="one", clock_tree=False), "V = 1 everywhere"),
        REGRESSION,
    ]
    notes = []
    has_sklearn = find_spec("sklearn") is not None
    if not has_sklearn:
        needs = "it needs scikit-learn; pip install scikit-learn."
        notes.append(f"The neural network (BP-ANN) is not among the baselines: {needs}")
    if _terms(measurements) == _terms(measurements, extra=False):
        notes.append("MLR+ is not among the baselines: there are no counts of caches or shared memory to add.")
    else:
        models.append(EXTRA_REGRESSION)
    if has_sklearn:
        models.append(NETWORK)
    return models, notes


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
    seed: int = 0
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
        """The name of the protocol, of those run, that says most about a new kernel: the report draws it."""
        order = [
            cross_validation.TRANSFER,
            cross_validation.TABLE,
            cross_validation.LEAVE_ONE_BENCHMARK_OUT,
            cross_validation.K_FOLD_BENCHMARKS,
            cross_validation.HOLDOUT,
            cross_validation.LEAVE_ONE_SETTING_OUT,
            cross_validation.K_FOLD,
            cross_validation.FIT,
        ]
        if self.table_saw_these:
            order.remove(cross_validation.TABLE)
            order.insert(-1, cross_validation.TABLE)
        return next(name for name in order if name in self.outcomes)


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
        parts = fit(trained, replace(form, starts=1), plan.seed).parts(measurements)
        constants = [name for name in parts if name not in measurements.terms]
        parts = parts.drop(columns=constants).assign(**{CONSTANT_PART: parts[constants].sum(axis=1)})
    work = _Work(measurements, plan, report, parts[CONSTANT_PART].to_numpy(dtype=np.float64))
    outcomes: dict[str, Outcome] = {}
    if priced is not None:
        notes += priced.notes
        outcomes[cross_validation.TABLE] = work.outcome(priced.power_w)
    outcomes |= work.by_every_protocol(cross_validation.of_form(form, OWN, plan.seed), train)
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
        folds = cross_validation.folds(protocol, rows, holdout_settings=plan.holdout, k=plan.folds, seed=plan.seed)
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
        """Protocol + suffix -> outcome with measured scale factors, where its benchmarks are new to the model."""
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
    """Warnings of the study: each protocol, or cost table, that predicts power no better than a plain mean does."""
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


def mixes(parts: pd.DataFrame, benchmarks: pd.Series) -> pd.DataFrame:
    """The mix of power of each benchmark, by which they are compared: each term's share, (n_benchmarks, p).

    parts: W of each term and of constant power, (n, p), NaN: not known.
    """
    known = parts.notna().all(axis=1).to_numpy()
    watts = parts[known].groupby(benchmarks[known].to_numpy(), sort=False).mean()
    total = watts.sum(axis=1)
    return watts[total > 0].div(total[total > 0], axis=0)


def distances(mix: Floats, mixes: Floats) -> Floats:
    """The distance of a mix of power, (p,), from each of others, (m, p): 0 is the same, 1 has nothing in common."""
    return np.asarray(0.5 * np.abs(mixes - mix).sum(axis=1))


def nearest(shares: pd.DataFrame) -> pd.DataFrame:
    """For each benchmark the most similar other one: columns `nearest`, `distance`; empty if there is no other."""
    if len(shares) < 2:
        return pd.DataFrame({"nearest": pd.Series(dtype=object), "distance": pd.Series(dtype=float)})
    values = shares.to_numpy(dtype=float)
    apart = np.stack([distances(mix, values) for mix in values])
    np.fill_diagonal(apart, np.inf)
    closest = apart.argmin(axis=1)
    return pd.DataFrame({"nearest": shares.index[closest], "distance": apart.min(axis=1)}, index=shares.index)


class Neighbour(Struct, frozen=True):
    """A measured kernel that is similar to a candidate, with its mean error."""

    benchmark: str
    distance: float
    mean_percent: float | None


class Candidate(Struct, frozen=True):
    """A kernel of a profile, with the measured kernels whose joules are made up most alike.

    unlike: prices (classes, levels) that make up more of its energy than of any kernel's that was measured.
    """

    kernel: str
    neighbours: list[Neighbour]
    unlike: list[str]


# A price that takes this much more of the energy than of any measured kernel's is beyond what was measured.
_BEYOND = 0.05


def find(profile: Profile, table: CostTable, study: Study) -> list[Candidate]:
    """The candidates in a profile: each kernel, with the three measured ones of the most similar mix of power."""
    costs = table.at()
    counts = profile.counts(costs.books)
    shares = mixes(study.parts, study.measurements.rows["benchmark"])
    joules = joules_by_price(table, attribute(counts, costs).table).rename(columns={CONSTANT: CONSTANT_PART})
    joules = joules.reindex(columns=shares.columns).fillna(0.0)
    predicted = study.outcomes[study.main].predicted
    rows = study.measurements.rows.assign(predicted=predicted).groupby("benchmark")
    errors = {name: score(mine["power_w"].to_numpy(), mine["predicted"].to_numpy()).mean_percent for name, mine in rows}
    candidates = []
    for place, kernel in enumerate(counts.kernels["kernel"]):
        near: list[Neighbour] = []
        unlike: list[str] = []
        total = float(joules.iloc[place].sum())
        if total > 0:
            mix = joules.iloc[place] / total
            far = distances(mix.to_numpy(dtype=float), shares.to_numpy(dtype=float))
            for row in np.argsort(far)[:3]:
                name = str(shares.index[row])
                near.append(Neighbour(name, float(far[row]), errors[name]))
            unlike = [str(term) for term in mix.index if mix[term] > shares[term].max() + _BEYOND]
        candidates.append(Candidate(str(kernel), near, unlike))
    return candidates


BY_COMPONENT, UNBOUND, ROOFLINE = "by component", "by component, no bandwidth", "roofline"
AS_SIMULATED = f"roofline over {DEFAULT_EFFICIENCY:g}"
_KINDS = ("fp64", "fp32", "integer", "special")


class Times(Struct, frozen=True):
    """Errors of modelled times, relative to the measured ones, by model; what the model by component had to assume."""

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
