"""The page of `eprof validate`, one file that fetches nothing (docs/validate.md)."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from eprof.base.optional import mapped
from eprof.base.text import by_sign, counted, cut, phrase, when
from eprof.commands.validate import words
from eprof.commands.validate.document import Histogram, Measured, SettingScores, Validation
from eprof.commands.validate.study import Scores
from eprof.commands.validate.whole_runs import WholeRun
from eprof.commands.validate.words import protocol
from eprof.lab.fitting.cross_validation import FIT
from eprof.show.as_html import pct
from eprof.show.blocks import Row, Section, Sentence, Table, numbers, quiet, texts
from eprof.show.heat_map import heat_table
from eprof.show.html_page import Figure, card, method, templates
from eprof.show.numbers import MINUS, NARROW, plain, plain_or, quantity, quantity_or, whole
from eprof.show.numbers import error_percent as percent

# Mean errors in per cent at which the colour changes: the same colour means the same error in every report.
STEPS = (2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0)
_HEIGHT = 150


class Pair(Struct, frozen=True):
    """A kernel or program, measured and predicted. full, name: its names; words: both as text: "81.2 → 84.0 W"."""

    full: str
    name: str
    measured: float
    predicted: float
    words: str

    @property
    def error_percent(self) -> float:
        """The signed error of the prediction, relative to what was measured, in per cent."""
        return 100 * (self.predicted / self.measured - 1)

    @property
    def error(self) -> str:
        """The signed error of the prediction as text: "+3.1 %"."""
        return signed(self.error_percent)


def signed(value: float | None) -> str:
    """A signed error in per cent as text: "+3.1 %"; "unknown" for None."""
    if value is None:
        return "unknown"
    size = f"{abs(value):.1f}"
    return f"{when(size != '0.0', by_sign(value, MINUS, '+'))}{size}{NARROW}%"


def bars(pairs: Sequence[Pair], far_percent: float) -> Markup:
    """Two thin bars a pair, measured above predicted; the largest fills the width. far_percent: large errors."""
    top = max((value for pair in pairs for value in (pair.measured, pair.predicted)), default=0.0) or 1.0
    template = templates().get_template("validation_bars.html")
    drawn = template.render(pairs=pairs, width=lambda value: pct(100 * value / top), far_percent=far_percent)
    return Markup(drawn)  # noqa: S704  escaped there


def histogram(histogram: Histogram) -> Markup:
    """An SVG histogram of signed errors of predictions, as wide to both sides as the larger error."""
    edges, counts = histogram.edges_percent, histogram.counts
    filled = [place for place, several in enumerate(counts) if several]
    reach = max(10.0, -edges[filled[0]], edges[filled[-1] + 1])
    step = 5 * (1 + (reach > 20))
    many = int(reach // step)
    tick = Markup(
        '<line class="{0}" x1="{1}" x2="{1}" y1="6" y2="{2}"/>'
        '<text class="tick" x="{1}" y="{3}" text-anchor="{4}">{5} %</text>'
    )
    body = Markup("")
    for error in (step * number for number in range(-many, many + 1)):
        anchor = {-reach: "start", reach: "end"}.get(error, "middle")
        words = when(error, f"{error:+g}".replace("-", MINUS)) or "0"
        kind = "axis" + when(not error, " zero")
        body += tick.format(kind, pct(50 * (error + reach) / reach), _HEIGHT, _HEIGHT + 16, anchor, words)
    bar = Markup(
        '<rect class="v-predicted" x="{}" y="{:.1f}" width="{}" height="{:.1f}">'
        "<title>{:g} to {:g} %: {}</title></rect>"
    )
    for place in filled:
        low, high = edges[place], edges[place + 1]
        height = max(1.0, counts[place] / max(counts) * (_HEIGHT - 20))
        left, width = pct(50 * (low + reach) / reach + 0.08), pct(50 * (high - low) / reach - 0.16)
        body += bar.format(left, _HEIGHT - height, width, height, low, high, counts[place])
    label = f"Histogram of errors from {-reach:g} to {reach:g} per cent"
    drawing = Markup('<svg class="bar" width="100%" height="{}" role="img" aria-label="{}">{}</svg>')
    return drawing.format(_HEIGHT + 20, label, body)


def error_map(settings: Sequence[SettingScores]) -> Markup:
    """An HTML table of mean errors by setting: core clock across, memory clock down; with the bias."""
    cells = {}
    known = Markup('<td class="h{}" title="{}">{:.1f} <small>{}</small></td>')
    for setting in settings:
        scores, cell = setting.scores, Markup('<td class="no"></td>')
        if scores.mean_percent is not None:
            step = sum(scores.mean_percent >= edge for edge in STEPS)
            errors = f"mean {percent(scores.mean_percent)}, largest {percent(scores.max_percent)}"
            title = f"{setting.label} MHz: {scores.n} rows, {errors}"
            cell = known.format(step, title, scores.mean_percent, signed(scores.bias_percent))
        cells[setting.core_mhz, setting.memory_mhz] = cell
    return heat_table(cells)


_BARS = 40
_FAR = 15.0


def figures(document: Validation) -> Iterator[Figure]:
    """Yield the page's key figures, of the main protocol: mean error, nine in ten, worst, RMS, rows tested on."""
    scores = words.main_scores(document)
    row = {"runs": "run"}.get(document.main_protocol, "row")
    about = ""
    if document.measured is not None:
        about = f"{document.measured.benchmarks} kernels, {len(document.measured.settings)} settings"
    errors = {"Mean error": scores.mean_percent, "Nine in ten within": scores.p90_percent, "Worst": scores.max_percent}
    for name, error in errors.items():
        large = mapped(lambda error: percent(error).replace(" ", NARROW), error) or "not known"
        yield Figure(name, large, when(name == "Mean error", protocol(document.main_protocol)))
    yield Figure("Root mean square", quantity_or("not known", scores.rmse_w, "W"))
    yield Figure("Tested on", f"{whole(scores.n)}{NARROW}{row}{when(scores.n != 1, 's')}", about)


def sections(document: Validation) -> Iterator[Section]:
    """Yield the cards of the page of `eprof validate`, as far as something was measured for them."""
    measured, parts = document.measured, dict[str, Sequence[str]]()
    if document.runs:
        yield _programs(document.runs)
    if measured is not None:
        yield _tested(document)
        yield _trust(document, measured)
        yield from _kernels(document, measured)
        yield from _spread(document, measured)
        if document.baselines:
            yield _baselines(document)
        answer = f"{protocol(document.main_protocol).capitalize()}, over all settings."
        same = "The same: the share of the power that goes to the same things in both."
        below = f"What power goes to is the model's reading, not a measurement. {same}"
        table = words.kernels(document, measured.by_benchmark)
        yield card("all", "All kernels", "Every kernel", Sentence(answer), table, quiet(below))
        how = []
        if (costs := measured.costs) is not None:
            how.append(f"Cost table {costs.name} for {costs.device}. {costs.source}")
        if (form := measured.form) is not None:
            clock_tree = when(form.clock_tree, " + b · f · V² (clock tree)")
            how.append(
                f"P = Σ rate · c · V² + c₁ V (core and memory) + constant{clock_tree}; voltages {form.voltages}, "
                f"relative weights, {form.loss.upper()} loss; all coefficients ≥ 0."
            )
            how.append("In every fold, voltages and coefficients are estimated from the training rows alone.")
        parts = {
            "How": how,
            "Measurements": [source.path for source in measured.inputs],
            "Trained on": [source.path for source in measured.trained_on or ()],
        }
    yield method(document, parts, document.notes)


def _programs(runs: Sequence[WholeRun]) -> Section:
    """The card of whole programs: joules that a meter saw against those predicted."""
    known = [(run, run.predicted_j) for run in runs if run.predicted_j is not None]
    pairs = []
    for run, predicted_j in known:
        both = f"{quantity(run.measured_j, 'J')} → {quantity(predicted_j, 'J')}"
        pairs.append(Pair(run.path, run.path.rpartition("/")[2], run.measured_j, predicted_j, both))
    answer = f"Energy that a meter saw, and what is predicted for the kernels. They may differ: {runs[0].reasons}."
    lower = sum("missing" in run.marks for run, _ in known)
    bounds = counted(lower, "prediction is a lower bound", "predictions are lower bounds")
    rest = when(lower, f"{bounds}: something could not be counted or priced.")
    return card("programs", "Programs", "Whole programs", Sentence(answer), bars(pairs, _FAR), quiet(rest))


def _spread(document: Validation, measured: Measured) -> Iterator[Section]:
    """Yield the cards of how errors are spread over rows (a histogram) and over clock settings (a map)."""
    scores, tested_by = words.main_scores(document), protocol(document.main_protocol)
    if sum(measured.histogram.counts):
        lean = phrase(" Their mean is {}.", mapped(signed, scores.bias_percent))
        within = f"{scores.n} errors, half of them within {percent(scores.median_percent)}"
        answer = Sentence(f"{tested_by.capitalize()}: {within}.{lean}")
        below = "Left of 0: less was predicted than measured. Errors beyond 50 % are counted in the outermost bars."
        yield card("spread", "Spread", "How errors are spread", answer, histogram(measured.histogram), quiet(below))

    errors = {at.label: at.scores.mean_percent for at in measured.by_setting if at.scores.mean_percent is not None}
    if len(errors) > 1:
        ends = min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__)
        least, most = (f"{percent(errors[label])} at {label}{NARROW}MHz" for label in ends)
        answer = Sentence(f"From {least} to {most}, {tested_by}.")
        below = (
            "Core clock across, memory clock down, in MHz; mean size of the error in %, then the bias. Colours "
            f"change at {', '.join(f'{step:g}' for step in STEPS)} %."
        )
        chart = error_map(measured.by_setting)
        yield card("settings", "Clocks", "Error by clock setting", answer, chart, quiet(below))


def _tested(document: Validation) -> Section:
    """The card of errors by protocol: what to expect of unseen kernels, and how errors are defined."""
    answer = "Each line holds predictions against measured power in another way; the bold one is the headline's."
    # What the difference between errors on kernels that were seen and unseen says.
    name, unseen = document.main_protocol, words.main_scores(document).mean_percent
    seen = getattr(document.protocols.get(FIT), "mean_percent", None)
    if name != FIT and seen and unseen:
        more = when(unseen / seen < 1.15, "hardly more than") or f"{unseen / seen:.1f} times"
        answer = (
            f"On rows that the fit has not seen the error is {more} the {percent(seen)} on those that it was made "
            "from. The larger number is the one to expect."
        )
    explained = quiet(
        "Errors are relative to the measured power: 100 (predicted − measured) / measured. Mean, sd, min and max are "
        "of their size, the bias is their signed mean: above 0, too much is predicted. "
        "Above constant: the mean error in watts, in per cent of what was measured above constant power."
    )
    tables = [words.by_protocol(document)]
    if document.to_meter:
        tables.append(words.metered_runs(document))
    of_times = mapped(words.times, document.times) or ()
    return card("tested", "How it was tested", "How it was tested", Sentence(answer), *tables, explained, *of_times)


def _trust(document: Validation, measured: Measured) -> Section:
    """The card "May I believe it for my kernel?": similar kernels, the worst one, and the ranges that were measured."""
    worst = measured.by_benchmark[0]
    sentences = [
        "A prediction is as good as for the measured kernels that are like yours: whose power goes to the same things, "
        "at clocks and rates inside those below. Nothing was measured beyond them.",
        words.similarity(document),
    ]
    if worst.scores.mean_percent is not None:
        sentences.append(
            f"The kernel that is predicted worst is {worst.benchmark}, off by {percent(worst.scores.mean_percent)} on "
            f"average; most of its power goes to {words.mix(worst)}."
        )
    sentences += [words.candidate_words(candidate) for candidate in document.candidates]
    blocks = [Sentence(sentence) for sentence in sentences if sentence is not None]
    seen = measured.range
    clocks = [("core clock", seen.core_mhz, "MHz"), ("memory clock", seen.memory_mhz, "MHz")]
    spans = [*clocks, ("measured power", seen.power_w, "W")]
    for term, span in seen.rates.items():
        is_of_bytes = term.endswith("_byte") and seen.rate_unit.startswith("1e9 events")
        spans.append((words.term_name(term), span, when(is_of_bytes, "GB/s") or seen.rate_unit))
    rows = [Row([name, plain_or("–", least), plain_or("–", most), unit]) for name, (least, most), unit in spans]
    columns = [*texts("quantity"), *numbers("least", "most"), *texts("unit")]
    ranges = Table(columns, rows, title="What was measured")
    return card("trust", "Your kernel", "May I believe it for my kernel?", *blocks, ranges)


def _kernels(document: Validation, measured: Measured) -> Iterator[Section]:
    """Yield the card of predicted against measured power of each kernel, as in the figures of [FMM] and [S]."""
    pairs = []
    for kernel in measured.by_benchmark:
        measured_w, predicted_w = kernel.reference.measured_w, kernel.reference.predicted_w
        if measured_w is not None and predicted_w is not None:
            both = f"{plain(measured_w)} → {plain(predicted_w)}{NARROW}W"
            pairs.append(Pair(kernel.benchmark, cut(kernel.benchmark, 44), measured_w, predicted_w, both))
    if not pairs:
        return
    off = sum((kernel.scores.mean_percent or 0.0) > _FAR for kernel in measured.by_benchmark)
    is_off = {1: "is"}.get(off, "are")
    answer = (
        f"At {measured.reference.label} MHz, {protocol(document.main_protocol)}; the kernels that are predicted worst "
        f"over all settings stand first. {off or 'None'} of {len(pairs)} {is_off} off by more than {_FAR:.0f} % on "
        "average."
    )
    rest = len(pairs) - _BARS
    more = quiet(when(rest > 0, f"{rest} kernels with smaller errors are in the table below."))
    chart = bars(pairs[:_BARS], _FAR)
    yield card("kernels", "Kernels", "Predicted against measured", Sentence(answer), chart, more)


def _baselines(document: Validation) -> Section:
    """The card of other models: which of them come closer in the main protocol, and which overfit."""
    names = list(next(iter(document.baselines.values())))
    tested = max(names, key=lambda name: (name == document.main_protocol, names.index(name)))
    ours, test = document.protocols, f"By the test “{protocol(tested)}”"
    closer = [model for model, scores in document.baselines.items() if _mean(scores[tested]) < _mean(ours[tested])]
    answer = f"{test} none of the other models comes closer to the measured power."
    if closer:
        verb = {1: "comes"}.get(len(closer), "come")
        answer = (
            f"{test} {', '.join(closer)} {verb} closer to the measured power; but none of their "
            "coefficients is an energy, so they cannot say where the power goes."
        )
    is_fitted = FIT in ours and tested != FIT
    for model, scores in document.baselines.items() if is_fitted else ():
        fitted, predicted = _mean(scores[FIT]), _mean(scores[tested])
        if fitted < _mean(ours[FIT]) and predicted > 1.15 * _mean(ours[tested]):
            answer += (
                f" The {model} follows the rows that it was trained on best, within {percent(fitted)}, and is off by "
                f"{percent(predicted)} where it has to predict: it has learnt them by heart."
            )
            break
    below = quiet("All are trained on the same rows and tested on the same others.")
    return card("baselines", "Baselines", "Against other models", Sentence(answer), words.baselines(document), below)


def _mean(scores: Scores) -> float:
    return scores.mean_percent or 0.0
