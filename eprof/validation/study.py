"""A validation: which protocols were run on which measurements, with the model's and the baselines' predictions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from eprof.base.errors import EprofError
from eprof.costs import CostTable
from eprof.fitting import means
from eprof.fitting.form import Form
from eprof.fitting.quality import Unknowns
from eprof.fitting.solve import fit
from eprof.measurements import Measurements
from eprof.validation import protocols, run
from eprof.validation.models import PLAIN, FormModel, LinearRegression, baselines, has_extra
from eprof.validation.priced import CONSTANT, price
from eprof.validation.protocols import Places, SettingKey
from eprof.validation.run import Model
from eprof.validation.scores import Floats, Scores, score

# Called with what is being done, and how far it is: (words, done, in all).
Report = Callable[[str, int, int], None]
OWN = "eprof"
SCALED = "_scaled"
_PLAIN_WORDS = {
    protocols.TABLE: "of the other measured kernels",
    protocols.HOLDOUT: "at settings that were held out",
    protocols.LEAVE_ONE_SETTING_OUT: "at settings that were left out",
    protocols.LEAVE_ONE_BENCHMARK_OUT: "for kernels that were left out",
    protocols.K_FOLD: "for rows that were left out",
    protocols.K_FOLD_BENCHMARKS: "for kernels that were left out",
}
_SCALED_TOO = (protocols.LEAVE_ONE_BENCHMARK_OUT, protocols.TRANSFER, protocols.TABLE)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions by one protocol, (n,), W; NaN for rows that it does not test. folds: how many models were made."""

    predicted: Floats
    folds: int
    scores: Scores


@dataclass(frozen=True)
class Plan:
    """What to run. protocols: names of `protocols.py`, without TABLE and TRANSFER, which follow from the inputs."""

    protocols: Sequence[str] = ()
    form: Form = field(default_factory=Form)
    validation: Sequence[SettingKey] = ()
    folds: int = 10
    seed: int = 0
    baselines: bool = False
    scale: bool = False
    processes: int | None = None


@dataclass(frozen=True, eq=False)
class Validation:
    """What was found. outcomes: protocol -> ours; baselines: model -> protocol -> theirs.

    parts: watts of each term and of constant power for each row, by the table or by a fit to all rows: what a kernel's
    power goes to, for likeness alone; no score rests on it.
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
        fit_record = self.table.fit if self.table is not None else None
        made_from = {str(one) for one in fit_record.data.get("data", ())} if fit_record is not None else set()
        return bool(made_from & {Path(one).name for one in self.measurements.sources})

    @property
    def main(self) -> str:
        """The protocol that says most about a new kernel: what the report draws."""
        order = (
            protocols.TRANSFER,
            *([] if self.table_saw_these else [protocols.TABLE]),
            protocols.LEAVE_ONE_BENCHMARK_OUT,
            protocols.K_FOLD_BENCHMARKS,
            protocols.HOLDOUT,
            protocols.LEAVE_ONE_SETTING_OUT,
            protocols.K_FOLD,
            protocols.TABLE,
            protocols.FIT,
        )
        return next(name for name in order if name in self.outcomes)


def validate(
    measurements: Measurements,
    plan: Plan,
    *,
    table: CostTable | None = None,
    train: Measurements | None = None,
    report: Report | None = None,
) -> Validation:
    """Score a table as it is, and models refitted in every fold, on measured power.

    table: scored as it is. train: other measurements to train on, tested on these. Raises EprofError: nothing to run,
    a protocol that these rows cannot be split by, measurements that the table does not price.
    """
    work = _Work(measurements, plan, report)
    few = Unknowns.of(train or measurements, plan.form).too_many(len(train or measurements))
    notes = [f"{few}: a fit follows such rows whatever they are, and its error on them says nothing."] if few else []
    if table is not None and train is None and not plan.protocols:
        notes = []
    outcomes: dict[str, Outcome] = {}
    parts: pd.DataFrame | None = None
    if table is not None:
        priced = price(table, measurements)
        notes += priced.notes
        parts = priced.parts
        outcomes[protocols.TABLE] = work.outcome(priced.power_w, 0)
    ours = FormModel(plan.form, OWN, plan.seed)
    if train is not None:
        _same_terms(train, measurements)
        outcomes[protocols.TRANSFER] = work.outcome(run.train_and_test(ours, train, measurements), 1)
    for name in plan.protocols:
        outcomes[name] = work.refit(ours, name)
    if not outcomes:
        raise EprofError("There is nothing to validate: give --costs, --train or --protocol.")
    if plan.scale:
        outcomes.update(work.scaled(outcomes))
    others: dict[str, dict[str, Outcome]] = {}
    if plan.baselines:
        others, said = _baselines(work, train)
        notes += said
    notes += _plain_notes(work, outcomes, others)
    if parts is None:
        parts = _parts(train or measurements, measurements, plan)
    return Validation(measurements, plan, table, train, outcomes, others, parts, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Work:
    """What all protocols of one validation share."""

    measurements: Measurements
    plan: Plan
    report: Report | None

    def refit(self, model: Model, protocol: str) -> Outcome:
        """Run one protocol with one model."""
        plan = self.plan
        found = protocols.folds(
            protocol, self.measurements.rows, validation=plan.validation, k=plan.folds, seed=plan.seed
        )
        self._can_be_split(protocol)
        words = f"{protocol.replace('_', ' ')}, {model.name}"

        def told(done: int, of: int) -> None:
            if self.report is not None:
                self.report(words, done, of)

        predicted = run.cross_validate(model, self.measurements, found, processes=plan.processes, progress=told)
        return self.outcome(predicted, len(found), np.concatenate([one.test for one in found]))

    def trained(self, model: Model, protocol: str) -> Outcome:
        """A quick model by one protocol, in this process and without a word."""
        plan = self.plan
        found = protocols.folds(
            protocol, self.measurements.rows, validation=plan.validation, k=plan.folds, seed=plan.seed
        )
        return self.outcome(run.cross_validate(model, self.measurements, found, processes=1), len(found))

    def outcome(self, predicted: Floats, folds: int, tested: Places | None = None) -> Outcome:
        """Predictions with the scores of the rows at the places `tested`; None: of all rows."""
        at = np.arange(len(predicted)) if tested is None else tested
        return Outcome(predicted, folds, score(self.measurements.power_w[at], predicted[at]))

    def scaled(self, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """The same with one measured scale factor per benchmark, where benchmarks are new to the model."""
        found = {}
        for name, one in outcomes.items():
            if name in _SCALED_TOO:
                predicted = run.scaled(self.measurements, one.predicted, self.measurements.reference)
                found[name + SCALED] = self.outcome(predicted, one.folds, np.flatnonzero(~np.isnan(predicted)))
        return found

    def _can_be_split(self, protocol: str) -> None:
        if self.measurements.own and protocol in (protocols.LEAVE_ONE_BENCHMARK_OUT, protocols.K_FOLD_BENCHMARKS):
            raise EprofError(
                f"{protocol.replace('_', '-')}: these measurements hold no counts, so each benchmark has unknowns of "
                "its own, and none can be predicted from the others. Use --protocol leave-one-setting-out."
            )


def _baselines(work: _Work, train: Measurements | None) -> tuple[dict[str, dict[str, Outcome]], list[str]]:
    """Every baseline by every protocol that trains something, and which baselines cannot run here."""
    models, said = baselines()
    if not has_extra(work.measurements):
        models = [one for one in models if one != LinearRegression(extra=True)]
        said = [*said, "MLR+ is not among the baselines: there are no counts of caches or shared memory to add."]
    found: dict[str, dict[str, Outcome]] = {}
    for model in models:
        by_protocol: dict[str, Outcome] = {}
        if train is not None:
            predicted = run.train_and_test(model, train, work.measurements)
            by_protocol[protocols.TRANSFER] = work.outcome(predicted, 1)
        for name in work.plan.protocols:
            by_protocol[name] = work.refit(model, name)
        if by_protocol:
            found[model.name] = by_protocol
    if not found:
        said = [*said, "Baselines are trained, so they need --protocol or --train; a table alone is scored as it is."]
    return found, said


def _plain_notes(
    work: _Work, outcomes: Mapping[str, Outcome], others: Mapping[str, Mapping[str, Outcome]]
) -> list[str]:
    """A sentence for each protocol that leaves something out, or a table, that a plain mean does as well as."""
    simple = {model.name: dict(others.get(model.name, {})) for model in PLAIN}
    split = {name: name for name in outcomes if name in work.plan.protocols and name != protocols.FIT}
    if protocols.TABLE in outcomes and work.measurements.rows["benchmark"].nunique() > 1:
        split[protocols.TABLE] = protocols.LEAVE_ONE_BENCHMARK_OUT
    said = []
    for name, protocol in split.items():
        ours, known = outcomes[name].scores.mean_percent, ~np.isnan(outcomes[name].predicted)
        theirs = {}
        for model in PLAIN:
            found = simple[model.name].get(protocol) or work.trained(model, protocol)
            theirs[model.name] = score(work.measurements.power_w[known], found.predicted[known]).mean_percent or np.nan
        where = _PLAIN_WORDS.get(name, name.replace("_", " "))
        one = means.sentence(where, ours if ours is not None else np.nan, theirs)
        said += [one] if one is not None else []
    return said


def _same_terms(train: Measurements, test: Measurements) -> None:
    """Raise EprofError if the training rows lack what the test rows count, or count in other units."""
    if train.kind != test.kind or set(train.terms) != set(test.terms):
        lost = sorted(set(test.terms) ^ set(train.terms))
        what = f"only one of the two counts {', '.join(lost)}" if lost else f"{train.kind} against {test.kind}"
        raise EprofError(
            f"--train: {', '.join(train.sources)} does not count the same things as {', '.join(test.sources)}: {what}."
        )


def _parts(train: Measurements, test: Measurements, plan: Plan) -> pd.DataFrame:
    """What the power of each row goes to by a fit to all training rows."""
    own = fit(train, replace(plan.form, starts=1), plan.seed).parts(test)
    constants = [name for name in own if name not in test.terms]
    parts = own.drop(columns=constants)
    return parts.assign(**{CONSTANT: own[constants].sum(axis=1)})
