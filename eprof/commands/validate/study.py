"""A validation: which protocols were run on which measurements, with the model's and the baselines' predictions.

Then what is held against these: kernels of a profile, and times by the model and by the roofline, fitted to nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError, EprofError
from eprof.base.optional import mapped
from eprof.base.text import phrase
from eprof.commands.validate import baselines
from eprof.commands.validate.scores import Scores, score
from eprof.costs import CostTable
from eprof.counts.definition import COMPONENTS as OF_LAUNCH
from eprof.energy.attribution import attribute
from eprof.energy.modelled_time import DEFAULT_EFFICIENCY, Work, at_peaks, components, highest_s, machine_of
from eprof.lab.fitting import predictions, protocols
from eprof.lab.fitting.predictions import CONSTANT_POWER, Model, Report
from eprof.lab.fitting.protocols import SettingKey
from eprof.lab.fitting.quality import no_better, too_few_rows
from eprof.lab.fitting.search import Form
from eprof.lab.fitting.solve import fit, form_without_prior
from eprof.lab.measurements import Measurements
from eprof.profile.profile import Profile

OWN = "eprof"
SCALED, CARD_SCALED = "_scaled", "_card_scaled"
# By these, kernels are new to the model.
_NEW_KERNELS = (protocols.LEAVE_ONE_BENCHMARK_OUT, protocols.TRANSFER, protocols.TABLE)


class Outcome(Struct, frozen=True, eq=False):
    """Predictions by one protocol, (n,), W; NaN for rows that it does not test. folds: how many models were made."""

    predicted: Floats
    folds: int
    scores: Scores


class Plan(Struct, frozen=True):
    """What to run.

    protocols: names of `protocols.py`, without TABLE and TRANSFER, which follow from the inputs; none: those that the
    rows can be split by, unless there is a table or a training set to score. form: None: the one that suits the rows.
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
    """What was found. outcomes: protocol -> ours; baselines: model -> protocol -> theirs.

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
            protocols.TRANSFER,
            protocols.TABLE,
            protocols.LEAVE_ONE_BENCHMARK_OUT,
            protocols.K_FOLD_BENCHMARKS,
            protocols.HOLDOUT,
            protocols.LEAVE_ONE_SETTING_OUT,
            protocols.K_FOLD,
            protocols.FIT,
        ]
        if self.table_saw_these:
            order.remove(protocols.TABLE)
            order.insert(-1, protocols.TABLE)
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
    if plan.holdout and protocols.HOLDOUT not in names:
        names.append(protocols.HOLDOUT)
    notes: list[str] = []
    if table is None and train is None and not names:
        names, notes = protocols.defaults(measurements)
    form = plan.form or form_without_prior(measurements)
    plan = replace(plan, protocols=names, form=form)
    notes += measurements.notes
    trained = train or measurements
    if (train is not None or plan.protocols) and (few := too_few_rows(trained, form)):
        notes.append(f"{few}: a fit follows such rows whatever they are, and its error on them says nothing.")

    priced = mapped(predictions.price, table, measurements, setting)
    if priced is not None:
        parts = priced.parts
    else:
        # What the power of each row goes to, by a fit to all training rows.
        parts = fit(trained, replace(form, starts=1), plan.seed).parts(measurements)
        constants = [name for name in parts if name not in measurements.terms]
        parts = parts.drop(columns=constants).assign(**{CONSTANT_POWER: parts[constants].sum(axis=1)})
    work = _Work(measurements, plan, report, parts[CONSTANT_POWER].to_numpy(dtype=np.float64))
    outcomes: dict[str, Outcome] = {}
    if priced is not None:
        notes += priced.notes
        outcomes[protocols.TABLE] = work.outcome(priced.power_w)
    outcomes |= work.by_every_protocol(predictions.of_form(form, OWN, plan.seed), train)
    if plan.scale:
        outcomes |= work.scaled(outcomes)

    rivals: dict[str, dict[str, Outcome]] = {}
    if plan.baselines:
        models, missing = baselines.baselines(measurements)
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
            outcomes[protocols.TRANSFER] = self.outcome(predictions.train_and_test(model, train, test), 1)
        for name in self.plan.protocols:
            by_benchmark = name in (protocols.LEAVE_ONE_BENCHMARK_OUT, protocols.K_FOLD_BENCHMARKS)
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
        folds = protocols.folds(protocol, rows, holdout_settings=plan.holdout, k=plan.folds, seed=plan.seed)
        progress = report and partial(report, f"{protocol.replace('_', ' ')}, {model.name}")
        processes = plan.processes
        predicted = predictions.cross_validate(model, self.measurements, folds, processes=processes, progress=progress)
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
                predicted = baselines.scaled_by_one(self.measurements, outcome.predicted, reference)
                known = ~np.isnan(predicted)
                scores = score(np.broadcast_to(power_w, predicted.shape)[known], predicted[known])
                middle = pd.DataFrame(predicted).median().to_numpy()
                with_factors[name + CARD_SCALED] = Outcome(middle, outcome.folds, scores)
            else:
                predicted = baselines.scaled(self.measurements, outcome.predicted, reference)
                known = ~np.isnan(predicted)
                scores = score(power_w[known], predicted[known], self.constant_w[known])
                with_factors[name + SCALED] = Outcome(predicted, outcome.folds, scores)
        return with_factors


def _no_better_than_means(
    work: _Work, outcomes: Mapping[str, Outcome], rivals: Mapping[str, Mapping[str, Outcome]]
) -> Iterator[str]:
    """Yields a sentence for each protocol, or table, whose errors are no smaller than those of a plain mean."""
    power = work.measurements.power_w
    # Beside a table, plain means are tested on kernels that they have not seen.
    names = {name: name for name in outcomes if name in work.plan.protocols and name != protocols.FIT}
    if protocols.TABLE in outcomes and work.measurements.rows["benchmark"].nunique() > 1:
        names[protocols.TABLE] = protocols.LEAVE_ONE_BENCHMARK_OUT
    for name, protocol in names.items():
        ours = outcomes[name]
        known = ~np.isnan(ours.predicted)
        errors = {}
        for model in predictions.PLAIN:
            mean = rivals.get(model.name, {}).get(protocol) or work.refit(model, protocol)
            errors[model.name] = score(power[known], mean.predicted[known]).mean_percent
        if sentence := no_better(protocols.LEFT_OUT[name], ours.scores.mean_percent, errors):
            yield sentence


def mixes(parts: pd.DataFrame, benchmarks: pd.Series) -> pd.DataFrame:
    """The share of each term in each benchmark's mean power, (n_benchmarks, p), by which benchmarks are compared.

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
    """For each kernel of a profile the three measured ones with the most similar mix of power, with their errors."""
    costs = table.at()
    counts = profile.counts(costs.books)
    shares = mixes(study.parts, study.measurements.rows["benchmark"])
    joules = predictions.by_price(table, attribute(counts, costs).table)
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
    for setting, rows in predictions.rows_by_setting(measurements).items():
        try:
            costs = table.at(setting if table.default.core_mhz is not None else None)
        except CostError:
            continue  # these rows are counted as not predicted
        some = measurements.take(rows)
        machine = machine_of(costs)
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
