"""A document `eprof.validation/1` in words and tables: for the page, the terminal and Markdown alike."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eprof.base.optional import mapped
from eprof.base.text import by_sign, cut, phrase, when
from eprof.base.vocabulary import GROUPS
from eprof.commands.validate.document import KernelScores, Validation
from eprof.commands.validate.similar_kernels import Candidate
from eprof.commands.validate.study import CARD_SCALED, OWN, SCALED, Scores, Times
from eprof.commands.validate.whole_runs import WholeRun
from eprof.lab.fitting import cross_validation
from eprof.show import blocks as show
from eprof.show import cost_words
from eprof.show.amounts import bits
from eprof.show.blocks import Block, Column, Field, Headline, Name, Notes, Quantity, Row, Sentence, Table
from eprof.show.numbers import error_percent as percent

_NAMES = {
    cross_validation.TABLE: "the table as it is",
    cross_validation.FIT: "fit (training rows)",
    cross_validation.HOLDOUT: "hold-out by setting",
    cross_validation.LEAVE_ONE_SETTING_OUT: "one setting left out",
    cross_validation.LEAVE_ONE_BENCHMARK_OUT: "one kernel left out",
    cross_validation.K_FOLD: "k-fold, rows",
    cross_validation.K_FOLD_BENCHMARKS: "k-fold, kernels",
    cross_validation.TRANSFER: "trained on other data",
    "runs": "whole programs",
}
_FITTED = "For kernels and clocks that it was fitted to"
_NEW_CLOCKS = "For a known kernel at clocks that it was not fitted to"
_NEW_KERNEL = "For a kernel that it was not fitted to"
_WITHOUT = {cross_validation.TABLE: ", without --costs"}
_SUBJECTS = {
    cross_validation.TABLE: "For these kernels",
    cross_validation.FIT: _FITTED,
    cross_validation.HOLDOUT: _NEW_CLOCKS,
    cross_validation.LEAVE_ONE_SETTING_OUT: _NEW_CLOCKS,
    cross_validation.LEAVE_ONE_BENCHMARK_OUT: _NEW_KERNEL,
    cross_validation.K_FOLD: f"{_FITTED}, in other rows",
    cross_validation.K_FOLD_BENCHMARKS: _NEW_KERNEL,
    cross_validation.TRANSFER: "For these kernels, none of which it was fitted to",
    "runs": "For these programs",
}
_SCORES = {
    "mean_percent": "mean %",
    "sd_percent": "sd %",
    "min_percent": "min %",
    "max_percent": "max %",
    "bias_percent": "bias %",
    "rmse_w": "RMSE W",
}
# A terminal has room for some scores alone.
_MEDIA = {"sd_percent": ~show.Medium.TERMINAL, "min_percent": ~show.Medium.TERMINAL}
TITLE = "# Validation"
# Of a kernel's power: how many of its parts are named, and the smallest share that is.
_PARTS, _SMALL = 3, 0.005
# As much worse is worse.
_WORSE = 1.15


def protocol(name: str) -> str:
    """A protocol's name in words: "one kernel left out"."""
    words = _NAMES[name.removesuffix(CARD_SCALED).removesuffix(SCALED)]
    if name.endswith(CARD_SCALED):
        return f"{words}, one scale factor for the card"
    return words + when(name.endswith(SCALED), ", one scale factor a kernel")


def main_scores(document: Validation) -> Scores:
    """The scores of a validation's main protocol, of which the headline speaks."""
    return document.protocols[document.main_protocol]


def headline(document: Validation) -> Headline:
    """The headline of a validation: mean error by its main protocol, nine out of ten, the worst, and their use."""
    scores, name = main_scores(document), document.main_protocol
    if scores.mean_percent is None:
        return Headline("No row could be predicted.", "The notes say why.")
    subject = _SUBJECTS[name]
    is_no_test = name == cross_validation.FIT
    if name == cross_validation.TABLE and document.measured is not None and document.measured.table_saw_these:
        subject, is_no_test = _FITTED, True
    predicted = {"runs": "energy"}.get(name, "power")
    sentence = f"{subject}, predicted {predicted} is off by {percent(scores.mean_percent)} on average."
    spread = "One measurement is no statement about others."
    if scores.n > 1:
        bias, lean = scores.bias_percent or 0.0, ""
        if abs(bias) >= 0.5 * scores.mean_percent:
            lean = f", and most predictions are too {by_sign(bias, 'low', 'high')}"
        spread = (
            f"Nine predictions in ten are within {percent(scores.p90_percent)}, the worst of {scores.n} is off by "
            f"{percent(scores.max_percent)}{lean}."
        )
    # What predictions with such an error can be used for: smaller differences mean nothing.
    tenth = scores.p90_percent or 0.0
    use = "Take predicted joules as rough: shares and orders of magnitude, not differences of a few per cent."
    if tenth <= 10:
        use = f"Differences of more than about {percent(tenth)} between kernels can be believed; smaller ones cannot."
    elif tenth <= 25:
        use = "Good enough to find the kernels that cost most, not to rank those that are close."
    if is_no_test:
        use = f"That is no test; this is: --protocol leave-one-benchmark-out --baselines{_WITHOUT.get(name, '')}."
    return Headline(sentence, f"{spread} {use}")


def verdicts(document: Validation) -> list[show.Verdict]:
    """Whether the validation's gate was passed, with error and limit; [] where there is no gate."""
    if (gate := document.gate) is None:
        return []
    word = when(gate.passed, "passed") or "failed"
    value = phrase("{:.1f} %", gate.value_percent) or "unknown"
    text = f"Gate {word}: {protocol(gate.protocol)} has a mean error of {value}, allowed are "
    return [show.Verdict(gate.passed, f"{text}{gate.max_error_percent:g} %.")]


def blocks(document: Validation, verbose: bool) -> Iterator[Block]:
    """Yield the blocks of a validation, for a terminal and for Markdown; every kernel if `verbose`."""
    yield by_protocol(document)
    if document.to_meter:
        yield metered_runs(document)
    if document.times is not None:
        yield from times(document.times)
    if document.baselines:
        yield baselines(document)
    if document.measured is not None:
        yield kernels(document, document.measured.by_benchmark, show.limit(8, verbose))
    if document.runs:
        yield whole_runs(document.runs)
    for candidate in document.candidates:
        yield Sentence(candidate_words(candidate))
    yield from verdicts(document)
    yield Notes(document.notes)


def subject(document: Validation) -> str:
    """The cost table that was validated, and what it rests on; "" where fits predicted the power."""
    if document.measured is None or document.measured.costs is None:
        return ""
    return cost_words.all_named([document.measured.costs])


def by_protocol(document: Validation) -> Table:
    """Table of errors by protocol; the row of the headline's stands out."""
    return show.table_of(
        document.protocols.items(),
        (Column("tested by", "left"), lambda tested: protocol(tested[0])),
        (Column("rows"), lambda tested: str(tested[1].n)),
        *_scores(lambda tested: tested[1]),
        (Column("above constant %"), lambda tested: show.decimals(tested[1].above_constant_percent)),
        (Column("which is", "left", show.Medium.PAGE), lambda tested: tested[1].meaning),
        is_total=lambda tested: tested[0] == document.main_protocol,
        title="Error in % of the measured power",
    )


def _scores(of: Callable[[Any], Scores], media: Mapping[str, show.Medium] = _MEDIA) -> list[Field[Any]]:
    """A table's columns of scores, and their cells. of: an entry -> its `Scores`; media: score -> where it is shown."""

    def field(name: str) -> Field[Any]:
        column = Column(_SCORES[name], media=media.get(name, show.Medium.ALL))
        return column, lambda entry: show.decimals(getattr(of(entry), name))

    return list(map(field, _SCORES))


def metered_runs(document: Validation) -> Table:
    """Table of errors where metered joules of four kernels are split, by predictions and by time alone."""
    columns = [Column("split by", "left"), *map(Column, ("mean %", "9 of 10 in", "by time %", "9 of 10 in"))]
    rows = []
    for name, scores in document.to_meter.items():
        by_counts = show.decimals(scores.mean_percent), _within(scores.within)
        by_time = show.decimals(scores.by_time_mean_percent), _within(scores.by_time_within)
        rows.append(Row([protocol(name), *by_counts, *by_time], total=name == document.main_protocol))
    factor = f"{next(iter(document.to_meter.values())).within:.2f}"
    note = f"x/÷{factor}: the joules of nine kernels in ten are off by a factor of {factor} at most, either way."
    return Table(columns, rows, title="Error of a kernel's joules where the sum of four is metered, in %", note=note)


def times(modelled: Times) -> Iterator[Block]:
    """Yield a table of errors of modelled times, and what the model by component had to do without."""
    yield show.table_of(
        modelled.scores.items(),
        (Column("modelled", "left"), lambda modelled: modelled[0]),
        (Column("rows"), lambda modelled: str(modelled[1].n)),
        *_scores(lambda modelled: modelled[1], {})[:-1],
        title="Error in % of the measured time; nothing is fitted to these times",
    )
    if not any(scores.n for scores in modelled.scores.values()):
        yield Sentence("No row has a modelled time: the cost table has none of these settings, or rows lack counts.")
    without = phrase("The time by component is modelled without: {}. ", ", ".join(modelled.missing))
    yield show.quiet(f"{without}{phrase('Assumed: {}.', modelled.why)}".strip())


def _within(factor: float) -> show.Written:
    return show.Written(f"x/÷{factor:.2f}", factor)


def baselines(document: Validation) -> Table:
    """Table of mean errors by protocol: of eprof's model, then of simpler ones."""
    names = list(next(iter(document.baselines.values())))
    columns = [Column("model", "left")]
    for name in names:
        columns += [Column(protocol(name)), Column("max %", media=~show.Medium.TERMINAL)]
    rows = [Row([OWN, *_means(document.protocols, names)], total=True)]
    rows += [Row([model, *_means(scores, names)]) for model, scores in document.baselines.items()]
    return Table(columns, rows, title="Against simpler models, mean error in %")


def _means(by_protocol: Mapping[str, Scores], names: Sequence[str]) -> list[show.Written]:
    """The cells of mean and largest error by each protocol of `names`."""
    scores = [by_protocol[name] for name in names]
    return [show.decimals(value) for protocol in scores for value in (protocol.mean_percent, protocol.max_percent)]


def kernels(document: Validation, kernels: Sequence[KernelScores], most: int | None = None) -> Table:
    """Table of kernels, worst first: errors, power, what power goes to, the most similar kernel. most: rows shown."""
    more = len(kernels) - len(kernels[:most])
    same = "{} ({} the same)"
    return show.table_of(
        kernels[:most],
        (Column("kernel", "left"), lambda kernel: Name(kernel.benchmark, kernel.benchmark)),
        *_scores(lambda kernel: kernel.scores),
        (Column("meas. W"), lambda kernel: show.decimals(kernel.reference.measured_w)),
        (Column("pred. W"), lambda kernel: show.decimals(kernel.reference.predicted_w)),
        (Column("its power goes to", "left", show.Medium.PAGE), mix),
        (
            Column("most similar", "left", show.Medium.PAGE),
            lambda kernel: phrase(same, mapped(cut, kernel.nearest, 32), mapped(alike, kernel.distance)) or "–",
        ),
        title=f"Kernels, error in %, {protocol(document.main_protocol)}",
        left_out=when(more, f"{more} more with smaller errors"),
        browsable=True,
    )


def whole_runs(runs: Sequence[WholeRun]) -> Table:
    """Table of measured and predicted energy of whole programs."""
    return show.table_of(
        runs,
        (Column("run", "left"), lambda run: run.path),
        (Column("measured"), lambda run: Quantity(run.measured_j, "J")),
        (Column("predicted"), lambda run: Quantity(run.predicted_j, "J", bits(run.marks))),
        (Column("error %"), lambda run: show.decimals(run.error_percent)),
        title="Whole programs",
    )


def alike(distance: float) -> str:
    """How alike the power of two kernels is, by the `distance` of their mixes: "85 %"."""
    return f"{100 * (1 - distance):.0f} %"


def term_name(term: str) -> str:
    """What a price is of: "DRAM byte" of "dram_byte", "FP32 instruction", "warp issue instruction"."""
    word, _, unit = term.rpartition("_")
    return phrase("{} {}", GROUPS.get(word), unit) or term.replace("_", " ")


def mix(kernel: KernelScores) -> str:
    """What most of a kernel's power goes to, as text: "DRAM byte 41 %, FP32 instruction 20 %"."""
    parts = [(term_name(term), share) for term, share in kernel.mix.items() if share >= _SMALL]
    return ", ".join(f"{term} {100 * share:.0f} %" for term, share in parts[:_PARTS]) or "nothing that is known"


def candidate_words(candidate: Candidate) -> str:
    """A sentence on measured kernels most like one of the user's, and what that does more of than any of them."""
    if not candidate.neighbours:
        return f"{candidate.kernel}: nothing that it does has a price."
    near = ", ".join(
        f"{other.benchmark} ({alike(other.distance)} of the power goes to the same things; off by "
        f"{percent(other.mean_percent)})"
        for other in candidate.neighbours
    )
    unlike = phrase(" No measured kernel spends as much on {}.", ", ".join(map(term_name, candidate.unlike)))
    return f"{candidate.kernel}: most similar to {near}.{unlike}"


def similarity(document: Validation) -> str | None:
    """A sentence on whether kernels that are like no other are predicted worse; None: too few kernels to tell."""
    likeness = getattr(document.measured, "likeness", None)
    if likeness is None or likeness.near.mean_percent is None or likeness.far.mean_percent is None:
        return None
    near, far = likeness.near.mean_percent, likeness.far.mean_percent
    advice, another = "Look for a kernel like yours: those", "measured kernel"
    if far <= _WORSE * near:
        advice, another = "Similarity says little here: kernels", "one"
    share = f"{alike(likeness.distance)} or more of where their power goes with another {another}"
    return f"{advice} that share {share} are off by {percent(near)}, the others by {percent(far)}."
