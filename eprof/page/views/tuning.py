"""What the page of `eprof tune` shows: heat maps, the trade of time for energy, kernels, and what is lost."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from eprof.page.section import Section
from eprof.page.svg import pct
from eprof.page.views.validation import Cell, Figure, Row, heat_table, number
from eprof.words.names import cut
from eprof.words.numbers import MINUS, NARROW, quantity
from eprof.words.tuning import change, heat, label, lost_words, same, step, time_words
from eprof.words.validation import percent

_MAPS = 12
_NAME = 44
_NAMED_DOTS = 12


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """The pick, its energy and time, against the fastest, and what clocks for each kernel would add."""
    best, fastest, own = document["best"], document["fastest"], document["each_its_own"]
    if best is None:
        return [Figure("Best setting", "none", known=False)]
    found = [
        Figure("Best setting", label(best), "MHz", "core/memory"),
        _quantity("Energy there", best["energy_j"], "J", "predicted"),
        _quantity("Time there", best["time_s"], "s", document["time"]["from"]),
    ]
    if fastest is not None and not same(best, fastest):
        found.append(_change("Energy against the fastest", best["energy_j"], fastest["energy_j"]))
        found.append(_change("Time against the fastest", best["time_s"], fastest["time_s"]))
    if own is not None and len(document["kernels"]) > 1:
        found.append(
            _change("Each kernel at its own", own["energy_j"], best["energy_j"], "energy, if switching were free")
        )
    return found


def _quantity(name: str, value: float | None, unit: str, note: str = "") -> Figure:
    if value is None:
        return Figure(name, "not known", known=False)
    digits, _, own = quantity(value, unit).partition(NARROW)
    return Figure(name, digits, own, note)


def _change(name: str, value: float | None, before: float | None, note: str = "") -> Figure:
    if value is None or not before:
        return Figure(name, "not known", known=False)
    ratio = 100 * (value / before - 1)
    size = percent(abs(ratio)).removesuffix(" %")
    sign = "" if abs(ratio) < 0.005 else "+" if ratio > 0 else MINUS
    return Figure(name, f"{sign}{size}", "%", note)


def clocks(document: Mapping[str, Any]) -> Section | None:
    """The heat map of the program, and one for each kernel."""
    whole = heat(document)
    if not whole.cells:
        return None
    framed = ", framed: the setting in force" if document["now"] else ""
    content = {
        "answer": f"{whole.caption} Core clock across, memory clock down, in MHz.",
        "label": "Energy at each setting",
        "heat": energy_map(document),
        "after": f"{whole.legend.replace('*', '★')}{framed}. From light to dark in equal ratios, from the least "
        "to the most energy."
        + (" Faint: outside the limit." if not all(one["allowed"] for one in document["settings"]) else ""),
        "more_heading": "The kernels that use most energy",
        "more": _maps(document) if len(document["kernels"]) > 1 else [],
    }
    return Section("clocks", "Clocks", "Energy at every clock setting", "validation_heat.html", content)


def energy_map(document: Mapping[str, Any]) -> Markup:
    """The program's cells, with signs for the picks."""
    whole = heat(document)
    cells = {}
    for (core, memory), one in whole.cells.items():
        at = next(x for x in document["settings"] if (x["core_mhz"], x["memory_mhz"]) == (core, memory))
        kinds = ["no" if one.step is None else f"h{one.step}", "now" if one.now else "", "" if at["allowed"] else "off"]
        cells[core, memory] = Markup('<td class="{}" title="{}">{}{}</td>').format(
            " ".join(kind for kind in kinds if kind), one.title, one.text, _sign(one.sign)
        )
    return heat_table(cells)


def _sign(sign: str) -> Markup:
    return Markup(" <b>{}</b>").format(sign.replace("*", "★")) if sign else Markup("")


def _maps(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Heat maps of the kernels that use most energy."""
    found = sorted(document["kernels"], key=lambda one: -((one["best"] or {}).get("energy_j") or 0.0))
    return [
        {
            "full": one["name"],
            "name": cut(one["name"], 70),
            "words": f"best at {label(one['best'])}, fastest at {label(one['fastest'])} MHz",
            "heat": _kernel_map(document, one),
        }
        for one in found[:_MAPS]
    ]


def _kernel_map(document: Mapping[str, Any], kernel: Mapping[str, Any]) -> Markup:
    known = [one for one in kernel["energy_j"] if one is not None]
    cells = {}
    for setting, energy in zip(document["settings"], kernel["energy_j"], strict=True):
        picks = (("★", "best"), ("»", "fastest"), ("m", "measured_best"))
        sign = "".join(mark for mark, name in picks if same(kernel[name], setting))
        kind = "no" if energy is None else f"h{step(energy, min(known), max(known))}"
        words = "–" if energy is None else quantity(energy, "J")
        cells[setting["core_mhz"], setting["memory_mhz"]] = Markup('<td class="{}">{}{}</td>').format(
            kind, words, _sign(sign)
        )
    return heat_table(cells)


def trade(document: Mapping[str, Any]) -> Section | None:
    """Time against energy of every setting: what less energy costs in time."""
    best, fastest = document["best"], document["fastest"]
    known = [one for one in document["settings"] if one["energy_j"] is not None and one["time_s"]]
    if best is None or fastest is None or len(known) < 3 or fastest["energy_j"] is None:
        return None
    front = document["front"]
    content = {
        "answer": f"{len(front)} of {len(known)} settings are worth a look: at every other one, another takes "
        "no more time "
        "and less energy.",
        "chart": _dots(known, front, best, fastest),
        "after": "To the right: more time than the fastest setting. Upwards: more energy than the best one. "
        "Names are core/memory "
        "MHz of the settings worth a look.",
    }
    return Section("trade", "Time for energy", "What less energy costs in time", "validation_chart.html", content)


def _dots(
    known: Sequence[Mapping[str, Any]],
    front: Sequence[Mapping[str, Any]],
    best: Mapping[str, Any],
    fastest: Mapping[str, Any],
    height: int = 260,
) -> Markup:
    quick, least = min(one["time_s"] for one in known), min(one["energy_j"] for one in known)
    wide = max(one["time_s"] for one in known) / quick - 1 or 1.0
    tall = max(one["energy_j"] for one in known) / least - 1 or 1.0

    def place(one: Mapping[str, Any]) -> tuple[str, float]:
        return pct(4 + 88 * (one["time_s"] / quick - 1) / wide), height - 46 - (height - 76) * (
            one["energy_j"] / least - 1
        ) / tall

    body = Markup('<line class="axis" x1="0%" x2="100%" y1="{}" y2="{}"/>').format(height - 18, height - 18)
    for share in (0.0, 0.5, 1.0):
        body += Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">+{} % time</text>').format(
            pct(4 + 88 * share), height - 2, f"{100 * wide * share:.0f}"
        )
    body += Markup('<text class="tick" x="0%" y="14">+{} % energy</text>').format(f"{100 * tall:.0f}")
    for one in known:
        kind = "dot best" if same(one, best) else "dot fastest" if same(one, fastest) else "dot"
        x, y = place(one)
        words = f"{label(one)} MHz: {quantity(one['energy_j'], 'J')} in {quantity(one['time_s'], 's')}"
        body += Markup('<circle class="{}" cx="{}" cy="{:.1f}" r="5"><title>{}</title></circle>').format(
            kind, x, y, words
        )
    body += _names(front, best, place)
    text = f"Energy against time at {len(known)} settings"
    return Markup('<svg class="bar" width="100%" height="{}" role="img" aria-label="{}">{}</svg>').format(
        height, text, body
    )


def _names(front: Sequence[Mapping[str, Any]], best: Mapping[str, Any], place: Any) -> Markup:
    """Names below the dots of the front, where other dots are not; one too close to the last is left out."""
    body, last = Markup(""), None
    for one in front if len(front) <= _NAMED_DOTS else [*front[:1], *[x for x in front if same(x, best)]]:
        x, y = place(one)
        if last is not None and abs(float(x[:-1]) - last[0]) < 9 and abs(y - last[1]) < 14:
            continue
        last = float(x[:-1]), y
        body += Markup('<text class="dot-name" x="{}" y="{:.1f}" text-anchor="middle">{}</text>').format(
            x, y + 18, label(one)
        )
    return body


def kernels(document: Mapping[str, Any]) -> Section | None:
    """Every kernel's best and fastest setting."""
    found = document["kernels"]
    if len(found) < 2:
        return None
    measured = any(one["measured_best"] for one in found)
    others = sum(not same(one["best"], one["fastest"]) for one in found)
    heads = ["kernel", "best", "energy", "time", "fastest", "energy saved %", "more time %"]
    heads += ["measured best", "lost %", "fastest lost %"] if measured else []
    own = document["each_its_own"]
    after = ""
    if own is not None and document["best"] is not None and document["best"]["energy_j"]:
        after = (
            "Each kernel at its own setting, if changing clocks were free: "
            f"{change(own['energy_j'] / document['best']['energy_j'] - 1)}"
            " energy than all at the program's best."
        )
    content = {
        "answer": f"For {others} of {len(found)} kernels the fastest setting is not the one with "
        f"{document['objective_words']}.",
        "label": "Best setting of every kernel",
        "heads": heads,
        "words": ("best", "fastest", "measured best"),
        "rows": [
            _row(one, measured) for one in sorted(found, key=lambda one: -((one["best"] or {}).get("energy_j") or 0.0))
        ],
        "sortable": True,
        "after": after,
    }
    return Section("kernels", "Kernels", "Kernel by kernel", "validation_table.html", content)


def _row(one: Mapping[str, Any], measured: bool) -> Row:
    best, fastest = one["best"], one["fastest"]
    cells = [
        Cell(label(best), l=True),
        _amount(best, "energy_j", "J"),
        _amount(best, "time_s", "s"),
        Cell("same" if same(best, fastest) else label(fastest), l=True),
        _less(best, fastest, "energy_j", -1),
        _less(best, fastest, "time_s", 1),
    ]
    if measured:
        cells += [
            Cell(label(one["measured_best"]), l=True),
            number(one["lost_percent"]),
            number(one["oracle_lost_percent"]),
        ]
    return Row(cut(one["name"], _NAME), cells, title=one["name"])


def _amount(one: Mapping[str, Any] | None, what: str, unit: str) -> Cell:
    value = None if one is None else one[what]
    return Cell("–") if value is None else Cell(quantity(value, unit), f"{value:.6g}")


def _less(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None, what: str, sign: int) -> Cell:
    if one is None or other is None or one[what] is None or not other[what]:
        return Cell("–")
    return number(sign * 100 * (one[what] / other[what] - 1) + 0.0)  # no minus zero


def meter(document: Mapping[str, Any]) -> Section | None:
    """The table of [FMM] Table II on these measurements."""
    found = document["energy_lost_percent"]
    if found is None:
        return None
    rows = [
        _lost("the model", found["model"], True),
        _lost("the fastest setting (race-to-halt)", found["oracle"], False),
    ]
    content = {
        "answer": " ".join(lost_words(document)),
        "label": "Mispredictions",
        "heads": ("pick", "kernels", "not the measured best", "lost mean %", "min %", "max %", "mean over all %"),
        "rows": rows,
        "sortable": False,
        "after": "Lost: how much more energy was measured at the pick than at the measured best, over the "
        "kernels whose pick is "
        "not the measured best; the last column is over all kernels.",
    }
    return Section("meter", "Against the meter", "Against the measured best", "validation_table.html", content)


def _lost(name: str, one: Mapping[str, Any], ours: bool) -> Row:
    keys = ("mean_percent", "min_percent", "max_percent", "all_mean_percent")
    cells = [Cell(str(one["cases"]), str(one["cases"])), Cell(str(one["wrong"]), str(one["wrong"]))]
    return Row(name, [*cells, *(number(one[key], 2) for key in keys)], ours=ours)


def method(document: Mapping[str, Any]) -> Section:
    """What stands behind the numbers."""
    parts = [
        ("Chosen for", [f"{document['objective_words'][0].upper()}{document['objective_words'][1:]}."]),
        ("Power", [_model(document["model"])]),
        ("Time", [time_words(document)]),
        ("Notes", document["notes"]),
        ("Command", [" ".join(document["command_line"])] if document["command_line"] else []),
        ("Made by", [f"eprof {document['eprof']}, {document['schema']}"]),
    ]
    content = {"parts": [(heading, sentences) for heading, sentences in parts if sentences]}
    return Section("method", "Method", "Method and provenance", "validation_method.html", content)


def _model(model: Mapping[str, Any]) -> str:
    error = model.get("power_error_percent")
    tested = f" Its mean error on the measured power of these rows is {percent(error)}." if error is not None else ""
    if model["kind"] == "table":
        return f"Cost table {model['name']} for {model['device']}. {model['source']}{tested}"
    left = "kernel" if model["protocol"] == "leave_one_benchmark_out" else "setting"
    return f"A fit for each {left}, made from all the others: nothing is predicted by a fit that has seen it.{tested}"
