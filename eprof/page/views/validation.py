"""What the page of a validation shows: numbers arrive computed, here they are put into words, bars and cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from eprof.page.section import Section
from eprof.page.svg import pct
from eprof.validation.protocols import FIT
from eprof.words.names import cut
from eprof.words.numbers import MINUS, NARROW, plain, quantity, whole
from eprof.words.validation import likeness, main, percent, protocol

_BARS = 40
_FAR = 15.0
# Mean errors in per cent at which the colour changes: the same colour means the same error in every report.
_STEPS = (2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0)
_NAME = 44
_MIX, _SMALL = 3, 0.005


@dataclass(frozen=True)
class Figure:
    """A label, a number in large digits, its unit and a note in small ones."""

    label: str
    value: str
    unit: str = ""
    note: str = ""
    known: bool = True


@dataclass(frozen=True)
class Cell:
    """A table cell: what it says and what it is sorted by. l: words, not a number."""

    text: str
    value: str = ""
    l: bool = False  # noqa: E741  as the class of the style sheet


@dataclass(frozen=True)
class Row:
    """A table row. ours: to be seen first."""

    name: str
    cells: Sequence[Cell]
    why: str = ""
    title: str = ""
    ours: bool = False


def _figure(label: str, value: float | None, unit: str = "%", note: str = "") -> Figure:
    if value is None:
        return Figure(label, "not known", known=False)
    number, _, own = (percent(value) if unit == "%" else quantity(value, unit).replace(NARROW, " ")).partition(" ")
    return Figure(label, number, own, note)


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Typical, wide and worst error, RMSE, and on how much this rests."""
    one = document["protocols"][main(document)]
    rest = "run" if main(document) == "runs" else "row"
    about = (
        f"{document['benchmarks']} kernels, {len(document['settings'])} settings" if "benchmarks" in document else ""
    )
    return [
        _figure("Mean error", one["mean_percent"], note=protocol(main(document))),
        _figure("Nine in ten within", one["p90_percent"]),
        _figure("Worst", one["max_percent"]),
        _figure("Root mean square", one["rmse_w"], "W"),
        Figure("Tested on", whole(one["n"]), rest if one["n"] == 1 else f"{rest}s", about),
    ]


def gate(document: Mapping[str, Any]) -> dict[str, str] | None:
    """Whether the gate passed, in words."""
    found = document.get("gate")
    if found is None:
        return None
    words = (
        f"{protocol(found['protocol'])}: mean error {percent(found['value_percent'])}, allowed "
        f"{percent(found['max_error_percent'])}."
    )
    passed = found["passed"]
    return {"kind": "passed" if passed else "failed", "word": "Passed" if passed else "Failed", "words": words}


def number(value: float | None, digits: int = 1) -> Cell:
    """A number with fixed decimals and a real minus."""
    if value is None:
        return Cell("–", "")
    return Cell(f"{value:.{digits}f}".replace("-", MINUS), f"{value:.6g}")


_HEADS = ("rows", "mean %", "sd %", "min %", "max %", "bias %", "RMSE W")
_KEYS = ("mean_percent", "sd_percent", "min_percent", "max_percent", "bias_percent", "rmse_w")


def _scores(one: Mapping[str, Any]) -> list[Cell]:
    return [Cell(whole(one["n"]), str(one["n"])), *(number(one[key]) for key in _KEYS)]


def protocols(document: Mapping[str, Any]) -> Section | None:
    """How it was tested, and what came out."""
    found = document["protocols"]
    if not document["rows"]:
        return None
    rows = [
        Row(protocol(name), _scores(one), why=one["meaning"], ours=name == main(document))
        for name, one in found.items()
    ]
    content = {
        "answer": _protocols_answer(document),
        "label": "Errors by protocol",
        "heads": ("tested by", *_HEADS),
        "rows": rows,
        "sortable": False,
        "after": "Errors are relative to the measured power: 100 (predicted − measured) / measured. Mean, sd, "
        "min and max are "
        "of their size, the bias is their signed mean: above 0, too much is predicted.",
    }
    return Section("tested", "How it was tested", "How it was tested", "validation_table.html", content)


def _protocols_answer(document: Mapping[str, Any]) -> str:
    """What the difference between fitting and predicting says."""
    found, name = document["protocols"], main(document)
    if FIT in found and name != FIT and found[name]["mean_percent"] and found[FIT]["mean_percent"]:
        ratio = found[name]["mean_percent"] / found[FIT]["mean_percent"]
        more = "hardly more than" if ratio < 1.15 else f"{ratio:.1f} times"
        return (
            f"On rows that the fit has not seen the error is {more} the {percent(found[FIT]['mean_percent'])} "
            "on those that "
            "it was made from. The larger number is the one to expect."
        )
    return "Each line holds predictions against measured power in another way; the one in bold stands in the headline."


def trust(document: Mapping[str, Any]) -> Section | None:
    """Whether to trust it for a kernel of the reader's own."""
    if "range" not in document:
        return None
    worst = document["by_benchmark"][0]
    sentences = [
        "A prediction is as good as for the measured kernels that are like yours: whose power goes to the same "
        "things, at "
        "clocks and rates inside those below. Beyond them nobody has looked."
    ]
    said = likeness(document)
    if said:
        sentences.append(said)
    if worst["mean_percent"] is not None:
        sentences.append(
            f"The kernel that is predicted worst is {worst['benchmark']}, off by {percent(worst['mean_percent'])} on "
            f"average; most of its power goes to {_mix(worst)}."
        )
    candidates = [{"kernel": one["kernel"], "words": _candidate(one)} for one in document.get("candidates", ())]
    content = {"sentences": sentences, "candidates": candidates, "ranges": _ranges(document["range"])}
    return Section("trust", "Your kernel", "May I believe it for my kernel?", "validation_trust.html", content)


def _candidate(one: Mapping[str, Any]) -> str:
    if not one["neighbours"]:
        return "nothing that it does has a price."
    near = ", ".join(
        f"{two['benchmark']} ({100 * (1 - two['distance']):.0f} % alike, off by {percent(two['mean_percent'])})"
        for two in one["neighbours"]
    )
    unlike = f" No measured kernel spends as much on {', '.join(one['unlike'])}." if one["unlike"] else ""
    return f"most like {near}.{unlike}"


def _ranges(found: Mapping[str, Any]) -> list[dict[str, str]]:
    rows = [
        ("core clock", found["core_mhz"], "MHz"),
        ("memory clock", found["memory_mhz"], "MHz"),
        ("measured power", found["power_w"], "W"),
        *((term.replace("_", " "), span, found["rate_unit"]) for term, span in found["rates"].items()),
    ]
    return [
        {"name": name, "least": _plain(least), "most": _plain(most), "unit": unit} for name, (least, most), unit in rows
    ]


def _plain(value: float | None) -> str:
    return "–" if value is None else plain(value)


def _mix(one: Mapping[str, Any]) -> str:
    """The largest parts of a kernel's power."""
    parts = [(term, share) for term, share in one["mix"].items() if share >= _SMALL][:_MIX]
    return (
        ", ".join(f"{term.replace('_', ' ')} {100 * share:.0f} %" for term, share in parts) or "nothing that is known"
    )


def kernels(document: Mapping[str, Any]) -> Section | None:
    """Predicted against measured power of each kernel at the reference setting, as in the figures of [FMM] and [S]."""
    rows = [one for one in document.get("by_benchmark", ()) if one["reference"]["measured_w"] is not None]
    rows = [one for one in rows if one["reference"]["predicted_w"] is not None]
    if not rows:
        return None
    at = document["reference"]
    top = max(max(one["reference"]["measured_w"], one["reference"]["predicted_w"]) for one in rows)
    shown = rows[:_BARS]
    rest = f"{len(rows) - len(shown)} kernels with smaller errors are in the table below." if len(rows) > _BARS else ""
    off = sum(one["mean_percent"] > _FAR for one in rows)
    answer = (
        f"At {at['core_mhz']:g}/{at['memory_mhz']:g} MHz, {protocol(main(document))}; the kernels that are "
        "predicted worst over "
        f"all settings stand first. {_off(off, len(rows))}"
    )
    content = {"answer": answer, "rows": [_pair(one, top) for one in shown], "rest": rest}
    return Section("kernels", "Kernels", "Predicted against measured", "validation_bars.html", content)


def _off(several: int, of: int) -> str:
    if not several:
        return f"None of {of} is off by more than {_FAR:.0f} % on average."
    return f"{several} of {of} {'is' if several == 1 else 'are'} off by more than {_FAR:.0f} % on average."


def _pair(one: Mapping[str, Any], top: float) -> dict[str, Any]:
    measured, predicted = one["reference"]["measured_w"], one["reference"]["predicted_w"]
    error = 100 * (predicted / measured - 1)
    words = f"{one['benchmark']}: measured {quantity(measured, 'W')}, predicted {quantity(predicted, 'W')}"
    return {
        "full": one["benchmark"],
        "name": cut(one["benchmark"], _NAME),
        "bar": pair(measured, predicted, top, words),
        "power": f"{plain(measured)} → {plain(predicted)}{NARROW}W",
        "error": signed(error),
        "far": abs(error) > _FAR,
    }


def signed(value: float) -> str:
    """A signed error in per cent: "+3.1 %"."""
    size = f"{abs(value):.1f}"
    sign = "" if size == "0.0" else "+" if value > 0 else MINUS
    return f"{sign}{size}{NARROW}%"


def pair(measured: float, predicted: float, top: float, label: str) -> Markup:
    """Two thin bars, measured above predicted; `top` fills the width."""
    return Markup(
        '<svg class="bar" width="100%" height="22" role="img" aria-label="{}">'
        '<rect class="v-measured" y="2" width="{}" height="8"/>'
        '<rect class="v-predicted" y="12" width="{}" height="8"/></svg>'
    ).format(label, pct(100 * measured / top), pct(100 * predicted / top))


def distribution(document: Mapping[str, Any]) -> Section | None:
    """How signed errors are spread."""
    found = document.get("histogram")
    if not found or not sum(found["counts"]):
        return None
    one = document["protocols"][main(document)]
    edges, counts = found["edges_percent"], found["counts"]
    filled = [at for at, several in enumerate(counts) if several]
    reach = max(10.0, -edges[filled[0]], edges[filled[-1] + 1])
    lean = "" if one["bias_percent"] is None else f" Their mean is {signed(one['bias_percent'])}."
    content = {
        "answer": f"{protocol(main(document)).capitalize()}: {one['n']} errors, half of them within "
        f"{percent(one['median_percent'])}.{lean}",
        "chart": histogram(edges, counts, reach),
        "after": "Left of 0: less was predicted than measured. Errors beyond 50 % are counted in the outermost bars.",
    }
    return Section("spread", "Spread", "How errors are spread", "validation_chart.html", content)


def histogram(edges: Sequence[float], counts: Sequence[int], reach: float, height: int = 150) -> Markup:
    """Bars of counts over signed errors from -reach to reach per cent."""
    top, width = max(counts), 2 * reach
    body = Markup("")
    for at, several in enumerate(counts):
        if several:
            high = max(1.0, several / top * (height - 20))
            body += Markup(
                '<rect class="v-predicted" x="{}" y="{:.1f}" width="{}" height="{:.1f}">'
                "<title>{} to {} %: {}</title></rect>"
            ).format(
                pct(100 * (edges[at] + reach) / width + 0.08),
                height - high,
                pct(100 * (edges[at + 1] - edges[at]) / width - 0.16),
                high,
                f"{edges[at]:g}",
                f"{edges[at + 1]:g}",
                several,
            )
    ticks = Markup("")
    for tick in _ticks(reach):
        x = pct(100 * (tick + reach) / width)
        anchor = "start" if tick == -reach else "end" if tick == reach else "middle"
        kind = "axis zero" if tick == 0 else "axis"
        ticks += Markup(
            '<line class="{}" x1="{}" x2="{}" y1="6" y2="{}"/>'
            '<text class="tick" x="{}" y="{}" text-anchor="{}">{} %</text>'
        ).format(kind, x, x, height, x, height + 16, anchor, f"{tick:+g}".replace("-", MINUS) if tick else "0")
    label = f"Histogram of errors from {-reach:g} to {reach:g} per cent"
    return Markup('<svg class="bar" width="100%" height="{}" role="img" aria-label="{}">{}{}</svg>').format(
        height + 20, label, ticks, body
    )


def _ticks(reach: float) -> list[float]:
    step = 10.0 if reach > 20 else 5.0
    inner = [step * one for one in range(-int(reach // step), int(reach // step) + 1)]
    return inner


def settings(document: Mapping[str, Any]) -> Section | None:
    """Mean error at each pair of clocks."""
    found = [one for one in document.get("by_setting", ()) if one["mean_percent"] is not None]
    if len(found) < 2:
        return None
    worst, best = max(found, key=_mean), min(found, key=_mean)
    content = {
        "answer": f"From {percent(best['mean_percent'])} at {_setting(best)} to {percent(worst['mean_percent'])} at "
        f"{_setting(worst)}, {protocol(main(document))}.",
        "label": "Mean error by setting",
        "heat": error_map(found),
        "after": "Core clock across, memory clock down, in MHz; mean size of the error in %, then the bias. "
        "Colours change at " + ", ".join(f"{one:g}" for one in _STEPS) + " %.",
        "more": [],
        "more_heading": "",
    }
    return Section("settings", "Clocks", "Error by clock setting", "validation_heat.html", content)


def _mean(one: Mapping[str, Any]) -> float:
    return float(one["mean_percent"])


def _setting(one: Mapping[str, Any]) -> str:
    return f"{one['core_mhz']:g}/{one['memory_mhz']:g}{NARROW}MHz"


def error_map(found: Sequence[Mapping[str, Any]]) -> Markup:
    """Mean errors as a table of core by memory clock."""
    cells = {(one["core_mhz"], one["memory_mhz"]): _error_cell(one) for one in found}
    return heat_table(cells)


def _error_cell(one: Mapping[str, Any]) -> Markup:
    step = sum(one["mean_percent"] >= edge for edge in _STEPS)
    title = (
        f"{one['core_mhz']:g}/{one['memory_mhz']:g} MHz: {one['n']} rows, mean {percent(one['mean_percent'])}, largest "
    )
    return Markup('<td class="h{}" title="{}{}">{} <small>{}</small></td>').format(
        step, title, percent(one["max_percent"]), f"{one['mean_percent']:.1f}", signed(one["bias_percent"])
    )


def heat_table(cells: Mapping[tuple[float, float], Markup]) -> Markup:
    """Cells by (core MHz, memory MHz) as a table: core clocks across, memory clocks down, highest on top."""
    cores = sorted({core for core, _ in cells})
    memories = sorted({memory for _, memory in cells}, reverse=True)
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(f"{core:g}") for core in cores)
    body = Markup("")
    for memory in memories:
        line = Markup("").join(cells.get((core, memory), Markup('<td class="no"></td>')) for core in cores)
        body += Markup('<tr><th scope="row">{}</th>{}</tr>').format(f"{memory:g}", line)
    corner = Markup('<th scope="col">memory \\ core</th>')
    return Markup('<table class="heat"><thead><tr>{}{}</tr></thead><tbody>{}</tbody></table>').format(
        corner, head, body
    )


def baselines(document: Mapping[str, Any]) -> Section | None:
    """Ours beside simpler models, and beside a network."""
    found = document["baselines"]
    if not found:
        return None
    names = list(next(iter(found.values())))
    ours = {name: document["protocols"][name] for name in names}
    rows = [Row("eprof", _means(ours, names), ours=True)]
    rows += [Row(model, _means(by_protocol, names)) for model, by_protocol in found.items()]
    heads = [part for name in names for part in (f"{protocol(name)}: mean %", "max %")]
    last = names[-1] if main(document) not in names else main(document)
    content = {
        "answer": _baseline_answer(found, ours, last),
        "label": "Errors of simpler models",
        "heads": ("model", *heads),
        "rows": rows,
        "sortable": False,
        "after": "All are trained on the same rows and tested on the same others.",
    }
    return Section("baselines", "Baselines", "Against other models", "validation_table.html", content)


def _baseline_answer(found: Mapping[str, Any], ours: Mapping[str, Any], name: str) -> str:
    """Which models come closer on rows that they have not seen, and which only on those that they have."""
    own = ours[name]["mean_percent"] or 0.0
    closer = [model for model, one in found.items() if (one[name]["mean_percent"] or 0.0) < own]
    if closer:
        verb = "comes" if len(closer) == 1 else "come"
        words = (
            f"By the test “{protocol(name)}” {', '.join(closer)} {verb} closer to the measured power; but none "
            "of their "
            "coefficients is an energy, so they cannot say where the power goes."
        )
    else:
        words = f"By the test “{protocol(name)}” none of the other models comes closer to the measured power."
    return words + _learnt_by_heart(found, ours, name)


def _learnt_by_heart(found: Mapping[str, Any], ours: Mapping[str, Any], name: str) -> str:
    """A model that follows its training rows better than ours, but does worse on others."""
    if FIT not in ours or name == FIT:
        return ""
    for model, one in found.items():
        means = (
            one[FIT]["mean_percent"],
            one[name]["mean_percent"],
            ours[FIT]["mean_percent"],
            ours[name]["mean_percent"],
        )
        if None not in means and means[0] < means[2] and means[1] > 1.15 * means[3]:
            return (
                f" The {model} follows the rows that it was trained on best, within {percent(means[0])}, and is off by "
                f"{percent(means[1])} where it has to predict: it has learnt them by heart."
            )
    return ""


def _means(by_protocol: Mapping[str, Any], names: Sequence[str]) -> list[Cell]:
    keys = ("mean_percent", "max_percent")
    return [number(by_protocol[name][key]) for name in names for key in keys]


def all_kernels(document: Mapping[str, Any]) -> Section | None:
    """Every kernel with its errors, what its power goes to, and its like."""
    found = document.get("by_benchmark")
    if not found:
        return None
    rows = [
        Row(
            cut(one["benchmark"], _NAME),
            [*_scores(one)[1:], Cell(_mix(one), l=True), _nearest(one)],
            title=one["benchmark"],
        )
        for one in found
    ]
    content = {
        "answer": f"{protocol(main(document)).capitalize()}, over all settings.",
        "label": "Every kernel",
        "heads": ("kernel", *_HEADS[1:], "its power goes to", "most like"),
        "words": ("its power goes to", "most like"),
        "rows": rows,
        "sortable": True,
        "after": "What power goes to is the model's reading, not a measurement. Alike: the share of the power "
        "that goes to the "
        "same things in both.",
    }
    return Section("all", "All kernels", "Every kernel", "validation_table.html", content)


def _nearest(one: Mapping[str, Any]) -> Cell:
    if one["nearest"] is None or one["distance"] is None:
        return Cell("–", l=True)
    return Cell(f"{cut(one['nearest'], 32)} ({100 * (1 - one['distance']):.0f} % alike)", l=True)


def programs(document: Mapping[str, Any]) -> Section | None:
    """Run directories: predicted against measured energy of whole programs."""
    found = document.get("runs")
    if not found:
        return None
    known = [one for one in found if one["predicted_j"] is not None]
    top = max([1e-300, *(max(one["measured_j"], one["predicted_j"]) for one in known)])
    rows = [
        {
            "full": one["path"],
            "name": cut(one["path"].rpartition("/")[2], _NAME),
            "bar": pair(one["measured_j"], one["predicted_j"], top, one["path"]),
            "power": f"{quantity(one['measured_j'], 'J')} → {quantity(one['predicted_j'], 'J')}",
            "error": signed(one["error_percent"]),
            "far": abs(one["error_percent"]) > _FAR,
        }
        for one in known
    ]
    answer = f"Energy that a meter saw, and what is predicted for the kernels. They may differ: {found[0]['reasons']}."
    lower = sum("missing" in one["marks"] for one in known)
    rest = f"{lower} predictions are lower bounds: something could not be counted or priced." if lower else ""
    content = {"answer": answer, "rows": rows, "rest": rest}
    return Section("programs", "Programs", "Whole programs", "validation_bars.html", content)


def method(document: Mapping[str, Any]) -> Section:
    """What stands behind the numbers."""
    costs, form = document.get("costs"), document.get("form")
    how = []
    if costs:
        how.append(f"Cost table {costs['name']} for {costs['device']}. {costs['source']}")
    if form:
        how.append(
            "P = Σ rate · c · V² + c₁ V (core and memory) + constant"
            + (" + b · f · V² (clock tree)" if form["clock_tree"] else "")
            + f"; voltages {form['voltages']}, {form['weights']} weights, {form['loss'].upper()} loss; all "
            "coefficients ≥ 0."
        )
        how.append("In every fold, voltages and coefficients are estimated from the training rows alone.")
    inputs = [one["path"] for one in document.get("inputs", ())]
    trained = [one["path"] for one in document.get("trained_on") or ()]
    parts = [
        ("How", how),
        ("Measurements", inputs),
        ("Trained on", trained),
        ("Notes", document["notes"]),
        ("Command", [" ".join(document["command_line"])] if document["command_line"] else []),
        ("Made by", [f"eprof {document['eprof']}, {document['schema']}"]),
    ]
    content = {"parts": [(heading, sentences) for heading, sentences in parts if sentences]}
    return Section("method", "Method", "Method and provenance", "validation_method.html", content)
