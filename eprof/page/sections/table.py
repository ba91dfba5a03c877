"""All kernels: the table that the script windows, sorts and filters; its first rows are real HTML."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from eprof.base.vocabulary import GROUPS
from eprof.page import packed, svg
from eprof.page.section import Section
from eprof.words import names
from eprof.words.badges import Amount, written
from eprof.words.numbers import percent, plain, quantity, whole
from eprof.words.view import DRAM, View, energy_of, number, power_of, ratio, time_of
from eprof.words.view import Column as Counted

FIRST_ROWS = 20
NAME_LENGTH = 34
_Read = Callable[[View, Mapping[str, Any]], Amount]


@dataclass(frozen=True)
class Column:
    """A column: what it reads and how it is written. kind: name, device, main, share, sum, whole, plain, or quantity.

    bound: a sum, so that MISSING makes it "at least".
    """

    key: str
    label: str
    kind: str
    unit: str = ""
    title: str = ""
    read: _Read | None = None
    bound: bool = True


def _part(name: str) -> _Read:
    return lambda view, kernel: energy_of(kernel, name)


def _launches(view: View, kernel: Mapping[str, Any]) -> Amount:
    return Amount(number(kernel.get("launches")))


_CALLS = Column("launches", "Calls", "whole", title="launches of the kernel", read=_launches)
_TIME = Column(
    "time", "Time", "quantity", "s", "time of all calls, without counter collection", lambda v, k: time_of(k)
)
_INTENSITY = Column("intensity", "flop/B", "plain", "", "flops per DRAM byte", lambda v, k: v.intensity(k), bound=False)
_SHARE = Column("share", "Share", "share", title="share of all kernels")
_SUM = Column("sum", "Sum", "sum", title="running sum of the shares, in the order shown")

_ENERGY_COLUMNS = (
    Column("total", "Energy", "main", "J", "predicted energy", _part("total")),
    _SHARE,
    _SUM,
    _CALLS,
    _TIME,
    Column("power", "Power", "quantity", "W", "mean power: energy over time", lambda v, k: power_of(k)),
    Column("constant", "Constant", "quantity", "J", "constant power times time", _part("constant")),
    Column("computation", "Computation", "quantity", "J", "energy of all instructions", _part("computation")),
    Column("data", "Data", "quantity", "J", "energy of all bytes", _part("data")),
    Column("perflop", "pJ/flop", "plain", "", "energy for each flop", lambda v, k: _in_pj(v.per_flop(k))),
    _INTENSITY,
)
_INSTRUCTIONS = Column(
    "instructions", "Instructions", "quantity", "", "thread-level instructions", lambda v, k: v.instructions(k)
)
_COUNT_COLUMNS = (
    Column("flops", "Flops", "quantity", "", "floating-point operations", lambda v, k: v.flops(k)),
    Column("bytes", "Bytes", "quantity", "B", "bytes at all levels", lambda v, k: v.summed(k, v.byte_words)),
    Column("dram", "DRAM", "quantity", "B", "bytes from and to DRAM", lambda v, k: v.summed(k, DRAM)),
    _INTENSITY,
)


def _in_pj(amount: Amount) -> Amount:
    return Amount(None if amount.value is None else amount.value * 1e12, amount.marks)


def columns(view: View) -> list[Column]:
    """The columns of this document: those of energy where it is known, else those of the counts."""
    first = [Column("name", "Kernel", "name")]
    if view.several_devices:
        first.append(Column("device", "Device", "device"))
    if view.measure == "total":
        return first + list(_ENERGY_COLUMNS)
    main = _TIME if view.measure == "time" else _INSTRUCTIONS
    main = Column(main.key, main.label, "main", main.unit, main.title, main.read)
    rest = (_CALLS, _INSTRUCTIONS, *_COUNT_COLUMNS) if view.measure == "time" else (_CALLS, *_COUNT_COLUMNS)
    return [*first, main, _SHARE, _SUM, *rest]


def section(view: View) -> Section | None:
    """The section with its first rows and, for the script, all of them."""
    if not view.kernels:
        return None
    table = [column for column in columns(view) if column.read is not None]
    amounts = {column.key: _amounts(view, column) for column in table}
    empty = {
        column.key
        for column in table
        if column.kind != "main" and all(amount.value is None for amount in amounts[column.key])
    }
    shown = [column for column in columns(view) if column.key not in empty]
    kept = {key: values for key, values in amounts.items() if key not in empty}
    many = len(view.kernels) > 1
    content = {
        "columns": shown,
        "rows": _rows(view, shown, kept),
        "count": whole(len(view.kernels)),
        "status": _status(view),
        "left_out": max(0, len(view.kernels) - FIRST_ROWS),
        "tools": many,
        "constant": view.measure == "total",
    }
    heading = f"All {whole(len(view.kernels))} kernels" if many else "The kernel in numbers"
    link = f"All {whole(len(view.kernels))}" if many else "Numbers"
    return Section("table", link, heading, "table.html", content, _data(view, shown, kept))


def _amounts(view: View, column: Column) -> list[Amount]:
    assert column.read is not None
    return [column.read(view, view.kernels[at]) for at in range(len(view.kernels))]


def _status(view: View) -> Markup:
    amount = view.ranked(view.document)
    unit = {"total": "J", "time": "s", "instructions": ""}[view.measure]
    what = "instructions" if view.measure == "instructions" else ""
    count = whole(len(view.kernels))
    if amount.value is None:
        return Markup("{} of {} kernels").format(count, count)
    number_ = written(quantity(amount.value, unit), amount.marks)
    return Markup("{} of {} kernels, {}{} ({})").format(
        count, count, number_, f" {what}".rstrip(), percent(1.0) if amount.value else percent(0.0)
    )


@dataclass(frozen=True)
class TableRow:
    """A row as HTML: the kernel's place in the document, its names, and a cell a column after the name."""

    at: int
    name: str
    full: str
    cells: list[tuple[str, Markup]]


def _rows(view: View, shown: list[Column], amounts: dict[str, list[Amount]]) -> list[TableRow]:
    found, running = [], 0.0
    spans = names.cores([kernel["name"] for kernel in view.kernels])
    scale = max((view.ranked(kernel).value or 0.0 for kernel in view.kernels), default=0.0) or 1.0
    for at in view.order[:FIRST_ROWS]:
        kernel = view.kernels[at]
        running += view.ranked(kernel).value or 0.0
        cells = [
            (column.kind, _cell(view, column, at, amounts, running, scale)) for column in shown if column.kind != "name"
        ]
        start, end = spans[at]
        found.append(TableRow(at, names.cut(kernel["name"][start:end], NAME_LENGTH), kernel["name"], cells))
    return found


def _cell(
    view: View, column: Column, at: int, amounts: dict[str, list[Amount]], running: float, scale: float
) -> Markup:
    kernel = view.kernels[at]
    if column.kind == "device":
        return written(kernel.get("device"))
    if column.kind in ("share", "sum"):
        part = view.ranked(kernel)
        whole_amount = view.ranked(view.document)
        share = ratio(Amount(running, whole_amount.marks) if column.kind == "sum" else part, whole_amount)
        return written(None if share.value is None else percent(share.value), share.marks, bound=False)
    amount = amounts[column.key][at]
    cell = written(_text(column, amount.value), amount.marks, bound=column.bound)
    return cell + _mini(view, kernel, scale) if column.kind == "main" else cell


def _text(column: Column, value: float | None) -> str | None:
    if value is None:
        return None
    if column.kind == "whole":
        return whole(value)
    return plain(value) if column.kind == "plain" else quantity(value, column.unit)


def _mini(view: View, kernel: Mapping[str, Any], scale: float) -> Markup:
    if view.measure != "total":
        return svg.mini(svg.laid([("plain", view.ranked(kernel).value or 0.0)], scale))
    groups = view.groups_of(kernel)
    return svg.mini(svg.laid(((group, amount.value or 0.0) for group, amount in groups.items()), scale))


def _data(view: View, shown: list[Column], amounts: dict[str, list[Amount]]) -> dict[str, str]:
    """Everything that the script needs, as JSON texts."""
    kernel_names = [kernel["name"] for kernel in view.kernels]
    starts, ends = packed.spans(kernel_names, names.cores(kernel_names))
    heads, tails = packed.split(kernel_names)
    return {
        "columns": packed.text([_described(column) for column in shown]),
        "measure": packed.text(view.measure),
        "heads": heads,
        "names": tails,
        "from": starts,
        "to": ends,
        **_devices(view),
        "order": packed.text(view.order if view.measure == "instructions" else None),
        "numbers": packed.joined(
            {
                key: packed.column([amount.value for amount in column], figures=_figures(view, key))
                for key, column in amounts.items()
                if key != "launches" and not _derived(view, key, amounts)
            }
        ),
        "launches": packed.text([kernel.get("launches") for kernel in view.kernels]),
        "marks": packed.joined({key: packed.flags(*_marks(column)) for key, column in amounts.items()}),
        "whole": packed.text(_whole(view)),
        "watts": packed.text(_watts(view)),
        "groups": packed.text(list(GROUPS)),
        **_counts(view),
    }


# Figures sent: all that could matter, but where there are thousands of kernels only what is shown, and some more for
# what the script adds up or divides.
ALL_FIGURES = 9
COMPACT_ABOVE = 500
_FIGURES = {"total": 5, "time": 5, "perflop": 3, "intensity": 3}


def _figures(view: View, key: str) -> int:
    if len(view.kernels) <= COMPACT_ABOVE:
        return ALL_FIGURES
    return _FIGURES.get(key, 4)


def _derived(view: View, key: str, amounts: dict[str, list[Amount]]) -> bool:
    """Whether the script can work the column out: power from energy and time, constant energy from time and watts."""
    if key not in ("power", "constant") or "time" not in amounts or len(view.kernels) <= COMPACT_ABOVE:
        return False
    watts = _watts(view)
    for at, amount in enumerate(amounts[key]):
        time = amounts["time"][at].value
        expected = ratio(amounts["total"][at], amounts["time"][at]).value if key == "power" else _times(time, watts)
        if not _close(expected, amount.value):
            return False
    return True


def _times(value: float | None, factor: float | None) -> float | None:
    return None if value is None or factor is None else value * factor


def _close(expected: float | None, known: float | None) -> bool:
    if expected is None or known is None:
        return expected is known
    return abs(expected - known) <= 1e-9 * abs(expected)


def _watts(view: View) -> float | None:
    return number((view.costs or {}).get("constant_power_w"))


def _described(column: Column) -> list[Any]:
    """What the script needs of a column; its label stands in the table's head."""
    return [column.key, column.kind, column.unit, int(column.bound)]


def _marks(column: list[Amount]) -> tuple[list[int], list[bool]]:
    return [int(amount.marks) for amount in column], [True] * len(column)


def _whole(view: View) -> dict[str, Any]:
    amount, above = view.ranked(view.document), view.above
    found = {view.measure: [amount.value, int(amount.marks)]}
    return {**found, "above": [above.value, int(above.marks)]}


def _devices(view: View) -> dict[str, str]:
    if not view.several_devices:
        return {}
    labels = [kernel.get("device") or "" for kernel in view.kernels]
    known = list(dict.fromkeys(labels))
    at = {label: place for place, label in enumerate(known)}
    return {"devices": packed.strings(known), "device": packed.text([at[label] for label in labels])}


def _counts(view: View) -> dict[str, str]:
    """Every count of every kernel. Energies only where they are not simply count times price."""
    words, counts, marks, energies = [], {}, {}, {}
    for name in view.words:
        column = view.column(name)
        price = _price(view, name)
        counts[name] = packed.column(column.values, price, figures=_figures(view, name))
        # The marks of a 0 are never shown, so they need not keep a column from being one number.
        marks[name] = packed.flags(column.marks.tolist(), (column.values != 0).tolist())
        if not _follows(column, price):
            energies[name] = packed.column(column.joules, figures=_figures(view, name))
        words.append(_word(view, name, price))
    return {
        "words": packed.text(words),
        "counts": packed.joined(counts),
        "countMarks": packed.joined(marks),
        "energies": packed.joined(energies),
    }


def _price(view: View, name: str) -> float | None:
    """Joules for each, 0 if it pays nothing, None if there is no price."""
    charge = view.charges.get(name)
    if charge is None:
        return None
    return (number(charge.get("pj")) or 0.0) * 1e-12 if charge.get("pays") else 0.0


def _follows(column: Counted, price: float | None) -> bool:
    """Whether every energy is what the script works out: count times price, 0 for a count of 0, else not known."""
    nothing = column.values == 0
    expected = np.where(nothing, 0.0, column.values * (np.nan if price is None else price))
    known = np.where(nothing & np.isnan(column.joules), 0.0, column.joules)
    return bool(np.allclose(expected, known, rtol=1e-9, atol=0.0, equal_nan=True))


def _word(view: View, name: str, price: float | None) -> list[Any]:
    """Name, label, group, 1 for bytes, price, 1 if it adds to the count of all, the marks that its count can have."""
    word = view.words[name]
    counted = name in (view.instruction_words if word.unit == "instruction" else view.byte_words)
    return [name, word.label, word.group, int(word.unit == "byte"), price, int(counted), view.masks[name]]
