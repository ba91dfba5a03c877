"""A difference as the page shows it: figures, waterfall, table rows. Numbers arrive computed; here they are placed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from eprof.base.vocabulary import CONSTANT
from eprof.page.figures import Figure
from eprof.page.sections.method import setting
from eprof.page.svg import pct
from eprof.words import diff as diff_words
from eprof.words.badges import AT_LEAST, MISSING, letters, written
from eprof.words.names import cores, cut, short
from eprof.words.numbers import plain, quantity, signed_percent, whole
from eprof.words.view import marks_of

_Document = Mapping[str, Any]
_NAME = 46
_FAMILIES = {
    "computation": "Computation",
    "data": "Data movement",
    "constant": "Constant power",
    "total": "Energy",
}
# Steps smaller than this against the largest are one row: drawn alone, nobody would see them.
_DRAWN = 0.002
# A waterfall whose totals differ by less than this part of them does not start at 0.
_ZOOM = 0.25


@dataclass(frozen=True)
class Row:
    """A row of the waterfall. kind: "total", "less", "more", "still"."""

    name: str
    kind: str
    bar: Markup
    amount: Markup
    share: str


@dataclass(frozen=True)
class Waterfall:
    """The rows, and a sentence if the axis does not start at 0."""

    rows: list[Row]
    axis: str
    sentence: str


def signed(value: float | None, unit: str, marks: int = 0) -> Markup:
    """A change with its sign and a triangle for its direction."""
    if value is None:
        return written(None, marks)
    if value == 0:
        return Markup("0")
    text = ("+" if value > 0 else "") + quantity(value, unit)
    sign = "▲" if value > 0 else "▼"
    kind = "more" if value > 0 else "less"
    least = AT_LEAST if marks & MISSING else ""
    return Markup('<span class="{}"><i aria-hidden="true">{}</i> {}{}</span>{}').format(
        kind, sign, least, text, letters(marks & ~MISSING)
    )


def figures(document: _Document) -> list[Figure]:
    """The five figures: change in energy and time, speedup, greenup, powerup."""
    change, share = document["change_j"], document["change_share"]
    marks = marks_of(document)
    times = marks_of(document["old"], "time_marks") | marks_of(document["new"], "time_marks")
    energy = (
        Figure("Energy", "not compared")
        if change is None
        else Figure("Energy", _plus(change, "J"), f"({signed_percent(share)})" if share is not None else "", marks)
    )
    seconds = document["change_time_s"]
    time = Figure("Time", "not known") if seconds is None else Figure("Time", _plus(seconds, "s"), "", times & ~MISSING)
    return [
        energy,
        time,
        _factor("Speedup", document["speedup"], "OLD / NEW, time"),
        _factor("Greenup", document["greenup"], "OLD / NEW, energy"),
        _factor("Powerup", document["powerup"], "NEW / OLD, power"),
    ]


def _plus(value: float, unit: str) -> str:
    return ("+" if value > 0 else "") + quantity(value, unit)


def _factor(label: str, value: float | None, note: str) -> Figure:
    return Figure(label, "not known") if value is None else Figure(label, plain(value), note)


# ------------------------------------------------------------------------------------------------------ waterfall


def waterfall(document: _Document) -> Waterfall | None:
    """OLD, a step per part, NEW; None if there is no change to draw."""
    if not document["change_j"] and not diff_words.moving(document):
        return None
    old, new = document["old"]["compared_j"], document["new"]["compared_j"]
    steps = _gathered(diff_words.moving(document))
    running = [old]
    for step in steps:
        running.append(running[-1] + step["change_j"])
    start, scale = _axis([*running, new])
    shown = diff_words.is_shown(document)
    rows = [_total("OLD", document["old"], old, start, scale)]
    for step, at in zip(steps, running, strict=False):
        rows.append(_step(step, at, start, scale, old, shown))
    rows.append(_total("NEW", document["new"], new, start, scale))
    axis = f"The axis starts at {quantity(start, 'J')}, not at 0." if start else ""
    return Waterfall(rows, axis, _sentence(document, shown))


def _sentence(document: _Document, shown: bool) -> str:
    what = "What both sides know of it" if document["partial"] else "Energy"
    steps = "Steps are grey, because no difference is shown by the repeats." if not shown else ""
    text = f"{what}, from OLD to NEW; each step is a part of the change, largest first, and they add up. {steps}"
    return f"{text} {diff_words.unchanged(document)}".strip()


def _gathered(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps, those too small to be seen in one."""
    most = max((abs(step["change_j"]) for step in steps), default=0.0)
    large = [step for step in steps if abs(step["change_j"]) >= _DRAWN * most]
    small = [step for step in steps if abs(step["change_j"]) < _DRAWN * most]
    if len(small) < 2:
        return list(steps)
    marks = sorted({mark for step in small for mark in step["marks"]})
    change = sum(step["change_j"] for step in small)
    return [*large, {"label": f"{len(small)} smaller parts", "change_j": change, "marks": marks}]


def _axis(levels: Sequence[float]) -> tuple[float, float]:
    """Where the axis starts, and how many J its whole width is."""
    low, high = min(levels), max(levels)
    if low > 0 and high - low < _ZOOM * high:
        start = max(0.0, low - 0.15 * (high - low))
        return start, (high - start) or 1.0
    return min(0.0, low), (high - min(0.0, low)) or 1.0


def _total(label: str, side: Mapping[str, Any], value: float, start: float, scale: float) -> Row:
    width = 100 * (value - start) / scale
    bar = Markup('<svg class="bar" width="100%" height="18" role="img" aria-label="{}">{}</svg>').format(
        f"{label}: {quantity(value, 'J')}",
        Markup('<rect class="w-total" y="2" width="{}" height="14"/>').format(pct(width)),
    )
    return Row(f"{label} · {cut(side['name'], _NAME - 8)}", "total", bar, written(quantity(value, "J")), "")


def _step(step: Mapping[str, Any], at: float, start: float, scale: float, old: float, shown: bool) -> Row:
    change = step["change_j"]
    label = step.get("label") or diff_words.label(step)
    kind = ("less" if change < 0 else "more") if shown else "still"
    left, width = 100 * (min(at, at + change) - start) / scale, 100 * abs(change) / scale
    first = 100 * (at - start) / scale
    share = signed_percent(change / old) if old else ""
    bar = Markup('<svg class="bar" width="100%" height="18" role="img" aria-label="{}">{}{}</svg>').format(
        f"{label}: {_plus(change, 'J')}" + (f", {share} of OLD" if share else ""),
        Markup('<line class="w-join" x1="{0}" x2="{0}" y1="-13" y2="16"/>').format(pct(first)),
        Markup('<rect class="w-{}" x="{}" y="2" width="{}" height="14"/>').format(kind, pct(left), pct(width)),
    )
    return Row(label, kind, bar, signed(change, "J", marks_of(step)), share)


# ------------------------------------------------------------------------------------------------- OLD beside NEW


def sides(document: _Document) -> list[tuple[str, Markup, Markup, Markup]]:
    """Energy by family, time, power and what a meter saw: label, OLD, NEW, change."""
    found = []
    if document["old"]["costs"] is not None or document["new"]["costs"] is not None:
        lost = MISSING if "missing" in document["marks"] else 0
        for part, label in _FAMILIES.items():
            change = _family_change(document, part)
            marks = [marks_of(document[side]["energy_marks"], part) for side in ("old", "new")]
            values = [document[side]["energy_j"][part] for side in ("old", "new")]
            found.append(_beside(label, values, marks, change, "J", lost if part == "total" else 0))
    times = [marks_of(document[side], "time_marks") for side in ("old", "new")]
    values = [document[side]["time_s"] for side in ("old", "new")]
    found.append(_beside("Time", values, times, document["change_time_s"], "s"))
    powers = [document[side]["power_w"] for side in ("old", "new")]
    if None not in powers:
        marks = [marks_of(document[side]) for side in ("old", "new")]
        found.append(_beside("Mean power", powers, marks, powers[1] - powers[0], "W"))
    measured = [document[side]["energy_j"]["measured"] for side in ("old", "new")]
    if None not in measured:
        found.append(_beside("Measured", measured, [0, 0], measured[1] - measured[0], "J"))
    return found


def _beside(
    label: str, values: Sequence[float | None], marks: Sequence[int], change: float | None, unit: str, more: int = 0
) -> tuple[str, Markup, Markup, Markup]:
    """A row; a change is never "at least": what only one side knows is not in it, and `more` says so."""
    old, new = (_written(value, unit, mark) for value, mark in zip(values, marks, strict=True))
    return label, old, new, signed(change, unit, (marks[0] | marks[1]) & ~MISSING | more)


def _written(value: float | None, unit: str, marks: int) -> Markup:
    return written(None if value is None else quantity(value, unit), marks)


def _family_change(document: _Document, kind: str) -> float | None:
    if document["change_j"] is None or kind == "total":
        return document["change_j"]  # type: ignore[no-any-return]
    return float(sum(part["change_j"] for part in document["parts"] if part["kind"] == kind))


# -------------------------------------------------------------------------------------------------------- kernels


@dataclass(frozen=True)
class KernelRow:
    """A row of the table of kernels. sort: the value of each column for the script, "" = not known."""

    name: str
    full: str
    was: str
    cells: list[Markup]
    bar: Markup
    sort: list[str]


@dataclass(frozen=True)
class Kernels:
    """The table: its columns, its rows, and a row for those that are not shown."""

    columns: list[str]
    rows: list[KernelRow]
    rest: str


def kernels(document: _Document, limit: int) -> Kernels:
    """The kernels with the largest change, of `limit` at most."""
    shown = document["kernels"][:limit]
    energy = document["change_j"] is not None
    scale = max((abs(_change(one, energy) or 0.0) for one in document["kernels"]), default=0.0) or 1.0
    names = [str(one["name"]) for one in shown]
    rows = [_kernel(one, span, energy, scale) for one, span in zip(shown, cores(names), strict=True)]
    columns = ["OLD", "NEW", "Change", "of OLD", "Speedup", *(["Greenup"] if energy else []), "Calls"]
    return Kernels(columns, rows, _rest(document, limit, energy))


def _rest(document: _Document, limit: int, energy: bool) -> str:
    rest = document["kernels"][limit:]
    if not rest:
        return ""
    changes = [_change(one, energy) for one in rest]
    known = sum(change for change in changes if change is not None)
    unit = "J" if energy else "s"
    return f"{whole(len(rest))} other kernels, together {_plus(known, unit)}; the CSV and the JSON list all of them."


def _change(kernel: Mapping[str, Any], energy: bool) -> float | None:
    if energy:
        return kernel["change_j"]  # type: ignore[no-any-return]
    times = [kernel[side]["time_s"] if kernel[side] else 0.0 for side in ("old", "new")]
    return None if None in times else times[1] - times[0]


def _kernel(kernel: Mapping[str, Any], span: tuple[int, int], energy: bool, scale: float) -> KernelRow:
    key, unit = ("energy_j", "J") if energy else ("time_s", "s")
    change, marks = _change(kernel, energy), marks_of(kernel) if energy else 0
    old = None if kernel["old"] is None else kernel["old"]["compared_j" if energy else "time_s"]
    share = change / old if change is not None and old else None
    status = {"appeared": "new", "vanished": "gone"}.get(kernel["status"])
    of_old = Markup('<span class="pill">{}</span>').format(status) if status else _text(share, signed_percent)
    values = [_of(kernel, "old", key), _of(kernel, "new", key), change, share, kernel["speedup"]]
    cells = [
        _amount(kernel, "old", key, unit),
        _amount(kernel, "new", key, unit),
        signed(change, unit, marks),
        of_old,
        _text(kernel["speedup"], plain),
    ]
    if energy:
        values.append(kernel["greenup"])
        cells.append(_text(kernel["greenup"], plain))
    calls = [_of(kernel, side, "launches") for side in ("old", "new")]
    values.append(calls[1] if calls[1] is not None else calls[0])
    cells.append(_calls(calls))
    name = str(kernel["name"])
    return KernelRow(
        cut(name[span[0] : span[1]], _NAME),
        name,
        _was(kernel),
        cells,
        _diverging((change or 0.0) / scale),
        ["" if value is None else f"{value:.9g}" for value in values],
    )


def _was(kernel: Mapping[str, Any]) -> str:
    """The old name and how it was matched, unless by its full name."""
    match = kernel["match"]
    if match is None or match["how"] == "name":
        return ""
    return f"was {short(kernel['old']['name'], _NAME)} ({match['how']}, {match['score']:.2f})"


def _of(kernel: Mapping[str, Any], side: str, key: str) -> float | None:
    return None if kernel[side] is None else kernel[side][key]


def _amount(kernel: Mapping[str, Any], side: str, key: str, unit: str) -> Markup:
    if kernel[side] is None:
        return Markup("–")
    return _written(kernel[side][key], unit, marks_of(kernel[side]) if key == "energy_j" else 0)


def _text(value: float | None, write: Any) -> Markup:
    return Markup("") if value is None else Markup("{}").format(write(value))


def _calls(calls: Sequence[float | None]) -> Markup:
    known = [f"{value:g}" for value in calls if value is not None]
    return Markup("{}").format(known[0] if len(set(known)) == 1 else " → ".join(known))


def _diverging(share: float) -> Markup:
    """A small bar to the left for less, to the right for more."""
    width = 50 * min(abs(share), 1.0)
    left = 50 - width if share < 0 else 50
    kind = "less" if share < 0 else "more"
    return Markup(
        '<svg class="mini" width="80" height="10" aria-hidden="true">'
        '<line class="w-join" x1="50%" x2="50%" y1="0" y2="10"/>'
        '<rect class="w-{}" x="{}" y="1" width="{}" height="8"/></svg>'
    ).format(kind, pct(left), pct(width))


# ---------------------------------------------------------------------------------------------- counts, model, rest


def counts(document: _Document) -> list[dict[str, Any]]:
    """A row a part, largest change first, then the counts that cost nothing or are not compared."""
    rows = [_part_row(part, document) for part in document["parts"] if part["kernel"] is None]
    told = {part["what"] for part in document["parts"]}
    for name, cell in document["counts"].items():
        if name not in told:
            unit = "B" if cell["unit"] == "byte" else ""
            marks = marks_of(cell)
            amounts = [_written(cell[side], unit, marks) for side in ("old", "new")]
            change = signed(cell["change"], unit)
            rows.append(
                {"label": diff_words.what({"what": name}), "amounts": [*amounts, change], "why": "", "joules": None}
            )
    return rows


def _part_row(part: Mapping[str, Any], document: _Document) -> dict[str, Any]:
    unit = {"byte": "B", "instruction": "", "s": "s"}[part["unit"]]
    is_time = part["what"] == CONSTANT
    marks = (
        marks_of(document["old"], "time_marks") | marks_of(document["new"], "time_marks")
        if is_time
        else marks_of(document["counts"].get(part["what"]) or {})
    )
    amounts = [_written(part[side], unit, marks & ~MISSING) for side in ("old", "new")]
    of_price = part["because"] in ("cost", "setting")
    change = Markup("") if of_price else signed(part["new"] - part["old"], unit)
    return {
        "label": diff_words.what(part),
        "amounts": [*amounts, change],
        "why": diff_words.because(part),
        "joules": signed(part["change_j"], "J", marks_of(part)),
    }


def bounds(model: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The model's numbers with and without constant power; empty where it reads nothing."""
    if model["missing"]:
        return []
    pairs = [model["with_constant_power"], model["without_constant_power"]]
    rows = [("Greenup on the roofline", [plain(one["greenup"]) for one in pairs])]
    if pairs[0]["low"] is not None:
        rows.append(
            ("Bounds of the greenup in this case", [f"{plain(one['low'])} to {plain(one['high'])}" for one in pairs])
        )
    even = [one["break_even_work_factor"] for one in pairs]
    rows.append(("Energy is saved below f =", [plain(one) if one > 0 else "none" for one in even]))
    return rows


def lost(document: _Document) -> list[tuple[str, str, Markup, Markup]]:
    """What is not in the change: word, why, what OLD and NEW know of it."""
    found = []
    for one in document["uncompared"]:
        known = [_written(one[key], "J", 0) for key in ("old_j", "new_j")]
        found.append((diff_words.what(one), one["why"], *known))
    for one in document["unknown"]:
        found.append((diff_words.what(one), one["why"], written(None), written(None)))
    return found


def provenance(document: _Document) -> list[tuple[str, list[tuple[str, str]]]]:
    """Facts on both sides: what was read, on which device, with which prices."""
    return [(label, list(_facts(document[key]))) for label, key in (("OLD", "old"), ("NEW", "new"))]


def _facts(side: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Program", str(side["title"])
    yield "Device", ", ".join(dict.fromkeys(one["name"] or "not named" for one in side["devices"]))
    costs = side["costs"]
    if costs is None:
        yield "Costs", "none"
    else:
        yield "Costs", f"{costs['name']}, {setting(costs)}"
    if side["time_from"]:
        yield "Time", str(side["time_from"])
    if side["repeats"] > 1:
        yield "Repeats", f"{side['repeats']}; all numbers are means over them"
    for one in side["inputs"][:20]:
        yield "Log", f"{one['path']} ({one['format']}, SHA-256 {one['sha256'][:16]}…)"
    if len(side["inputs"]) > 20:
        yield "Logs", f"and {len(side['inputs']) - 20} more, in the JSON"
