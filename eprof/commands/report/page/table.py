"""The page's table of all kernels, which the script windows, sorts and filters; its first rows are real HTML."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import mul
from typing import Any

import numpy as np
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.optional import either, mapped
from eprof.base.text import when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, GROUPS
from eprof.commands.report.page import script
from eprof.commands.report.page.script import Card
from eprof.commands.report.view import DRAM, View, above_of, by_time_of, callees_of, energy_of, power_of, time_of
from eprof.profile import schema
from eprof.show import as_html
from eprof.show.amounts import Amount, bits, quantity_of, ratio, share_of, written
from eprof.show.numbers import percent, plain, quantity, whole

FIRST_ROWS = 20
_Read = Callable[[View, schema.Kernel], Amount]


class Column(Struct, frozen=True):
    """A column of the table of all kernels. kind: name, device, main, share, sum, whole, plain, or quantity.

    read: gives the amount of a kernel; above: the same without constant power, where that differs. bound: a sum, so
    that MISSING makes it "at least".
    """

    key: str
    label: str
    kind: str
    unit: str = ""
    title: str = ""
    read: _Read | None = None
    bound: bool = True
    above: _Read | None = None


def _joules(part: str) -> _Read:
    return lambda _, kernel: energy_of(kernel, part)


def _per_flop(joules_of: Callable[[schema.Kernel], Amount]) -> _Read:
    """A function that reads a kernel's pJ per flop, of the joules that `joules_of` tells."""

    def read(view: View, kernel: schema.Kernel) -> Amount:
        joules = ratio(joules_of(kernel), view.flops(kernel))
        return Amount(mapped(mul, joules.value, 1e12), joules.marks)

    return read


_CALLS = Column(
    "launches", "Calls", "whole", title="how often it was called", read=lambda _, kernel: Amount(kernel.launches)
)
_TIME = Column(
    "time", "Time", "quantity", "s", "time of all calls, without counter collection", lambda _, kernel: time_of(kernel)
)
_INTENSITY = Column("intensity", "flop/B", "plain", "", "flops per DRAM byte", View.intensity, bound=False)
_SHARE = Column("share", "Share", "share", title="share of all, with what passes while none of them runs")
_SUM = Column("sum", "Sum", "sum", title="running sum of the shares, in the order shown")

_ENERGY_COLUMNS = (
    Column("total", "Energy", "main", "J", "energy of all calls", _joules("total")),
    _SHARE,
    _SUM,
    _CALLS,
    _TIME,
    Column(
        "bytime", "By time", "quantity", "J", "metered energy if it went with time alone", lambda _, k: by_time_of(k)
    ),
    Column(
        *("callees", "With callees", "quantity", "J", "with all that it calls, estimated"),
        lambda _, kernel: callees_of(kernel),
        above=lambda _, kernel: callees_of(kernel, is_above=True),
    ),
    Column(
        *("power", "Power", "quantity", "W", "mean power"),
        lambda _, kernel: power_of(kernel),
        above=lambda _, kernel: ratio(above_of(kernel), time_of(kernel)),
    ),
    Column("constant", "Constant", "quantity", "J", "constant power times time", _joules(CONSTANT)),
    Column("computation", "Computation", "quantity", "J", "energy of all instructions", _joules(COMPUTATION)),
    Column("data", "Data", "quantity", "J", "energy of all bytes", _joules(DATA)),
    Column(
        *("perflop", "pJ/flop", "plain", "", "energy for each flop"),
        _per_flop(lambda kernel: energy_of(kernel, "total")),
        above=_per_flop(above_of),
    ),
    _INTENSITY,
)
_INSTRUCTIONS = Column("instructions", "Instructions", "quantity", "", "instructions of all threads", View.instructions)
_DRAM = Column(
    "dram", "DRAM", "quantity", "B", "bytes from and to DRAM", lambda view, kernel: view.summed(kernel, DRAM)
)
_COUNT_COLUMNS = (
    Column("flops", "Flops", "quantity", "", "floating-point operations", View.flops),
    Column(
        "bytes", "Bytes", "quantity", "B", "bytes at all levels", lambda view, k: view.summed(k, view.exclusive["byte"])
    ),
    _DRAM,
    _INTENSITY,
)
_ABOVE = "_above"  # behind the key of a column: its numbers without constant power
_WRITTEN = {"whole": whole, "plain": plain}  # by kind; the others with their unit
_MAIN = {column.key: replace(column, kind="main") for column in (_TIME, _DRAM, _INSTRUCTIONS)}


def columns(view: View) -> list[Column]:
    """The columns of the table of all kernels: those of energy where it is known, else those of the counts."""
    first = [Column("name", view.nouns.kernel.capitalize(), "name")]
    if view.several_devices:
        first.append(Column("device", "Device", "device"))
    if view.measure == "total":
        return [*first, *_ENERGY_COLUMNS]
    others = [column for column in (_INSTRUCTIONS, *_COUNT_COLUMNS) if column.key != view.measure]
    return [*first, _MAIN[view.measure], _SHARE, _SUM, _CALLS, *others]


class _Table:
    """The columns of a document in which something is known, and their amounts, a kernel each."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.kernels = view.ranked(view.document)
        self.all = view.with_rest(self.kernels)
        self.amounts: dict[str, list[Amount]] = {}
        self.columns = []
        for column in columns(view):
            if column.read is not None:
                amounts = [column.read(view, kernel) for kernel in view.kernels]
                if column.kind != "main" and all(amount.value is None for amount in amounts):
                    continue
                self.amounts[column.key] = amounts
            if column.above is not None:
                self.amounts[f"{column.key}{_ABOVE}"] = [column.above(view, kernel) for kernel in view.kernels]
            self.columns.append(column)

    def shown(self, key: str, place: int) -> Amount:
        """The amount of a kernel in a column, without constant power where the report leaves that out."""
        above = self.amounts.get(f"{key}{_ABOVE}") if self.view.is_above else None
        return (above or self.amounts[key])[place]


def section(view: View) -> Card | None:
    """The report page's table of all kernels: its first rows and, for the script, all of them; None without kernels."""
    if not view.kernels:
        return None
    table = _Table(view)
    shown = table.columns
    if len(view.kernels) == 1 and view.is_above:  # no box says so
        shown = [replace(column, label="Above constant") if column.key == "total" else column for column in shown]
    count = whole(len(view.kernels))
    is_one = len(view.kernels) == 1
    # How many kernels the table shows, and how much of all they take; the script keeps it up to date.
    status = Markup("{} of {} {}").format(count, count, view.nouns.kernels)
    if table.all.value is not None:
        share = percent(table.kernels.or_zero / table.all.value)
        noun = when(view.measure == "instructions", " instructions")
        status += Markup(", {}{} ({})").format(quantity_of(table.kernels, view.unit), noun, share)
    content = {
        "columns": shown,
        "rows": _rows(table),
        "count": count,
        "status": status,
        "left_out": len(view.kernels) > FIRST_ROWS,
        "tools": not is_one,
        "constant": view.measure == "total",
        "modelled": view.is_above,
    }
    link, heading = f"All {count}", f"All {count} {view.nouns.kernels}"
    if is_one:
        link, heading = "Numbers", f"The {view.nouns.kernel} in numbers"
    return Card("table", link, heading, "table.html", content, _data(table))


class Row(Struct, frozen=True):
    """A row of the table of kernels as HTML: the place in the document, names, and a cell a column after the name."""

    place: int
    name: str
    full: str
    cells: list[tuple[str, Markup]]


def _rows(table: _Table) -> list[Row]:
    """The first rows of the table of kernels as HTML, those that take most first."""
    view = table.view
    rows = []
    running = 0.0
    scale = max(view.ranked(kernel).or_zero for kernel in view.kernels) or 1.0
    for place in view.order[:FIRST_ROWS]:
        kernel = view.kernels[place]
        ranked = view.ranked(kernel)
        running += ranked.or_zero
        parts = {"plain": ranked}
        if view.measure == "total":
            parts = view.groups_of(kernel)
        cells = []
        for column in table.columns[1:]:
            match column.kind:
                case "device":
                    cell = written(kernel.device)
                case "share":
                    cell = share_of(ranked, table.all)
                case "sum":
                    cell = share_of(Amount(running, table.all.marks), table.all)
                case kind:
                    amount = ranked if kind == "main" else table.shown(column.key, place)
                    write = _WRITTEN.get(kind) or partial(quantity, unit=column.unit)
                    cell = written(mapped(write, amount.value), amount.marks, bound=column.bound)
            if column.kind == "main":
                cell += as_html.mini(as_html.laid(((group, part.or_zero) for group, part in parts.items()), scale))
            cells.append((column.kind, cell))
        rows.append(Row(place, view.label(kernel), kernel.name, cells))
    return rows


def _data(table: _Table) -> dict[str, str]:
    """Name -> JSON of what the page's script is given of all kernels: names, numbers, marks, and every count."""
    view, everything = table.view, table.all
    if view.measure == "total":  # all that the script's table is of, with constant power
        everything = view.with_rest(view.energy("total"))
    kernel_names = [kernel.name for kernel in view.kernels]
    heads, tails = script.split(kernel_names)
    devices = {}
    if view.several_devices:
        of_kernels = [kernel.device or "" for kernel in view.kernels]
        names = list(dict.fromkeys(of_kernels))
        places = {name: place for place, name in enumerate(names)}
        devices = {"devices": script.text(names), "device": script.text([places[name] for name in of_kernels])}
    numbers = {
        key: script.column([amount.value for amount in amounts], figures=_figures(view, key))
        for key, amounts in table.amounts.items()
        if key != "launches" and not _is_derived(table, key)
    }
    marks = {key: script.flags([amount.marks for amount in amounts]) for key, amounts in table.amounts.items()}
    return {
        "columns": script.text([[column.key, column.kind, column.unit, int(column.bound)] for column in table.columns]),
        "measure": script.text(view.measure),
        "metered": script.text(view.to_meter is not None),
        "heads": heads,
        "names": tails,
        "labels": script.labels(kernel_names, [view.label(kernel) for kernel in view.kernels]),
        **devices,
        "order": script.text(None if view.measure in ("total", "time") else view.order),
        "numbers": script.joined(numbers),
        "launches": script.text([kernel.launches for kernel in view.kernels]),
        "marks": script.joined(marks),
        "whole": script.text({view.measure: everything, "above": view.above}),
        "watts": script.text(view.document.constant_w),
        "groups": script.text(list(GROUPS)),
        "groupLabels": script.text({group: view.group_label(group) for group in GROUPS}),
        **_counts(view),
    }


# Figures sent: all that could matter, but where there are thousands of kernels only what is shown, and some more for
# what the script adds up or divides.
ALL_FIGURES = 9
COMPACT_ABOVE = 500
_CLOSE: Mapping[str, Any] = {"rtol": 1e-9, "atol": 0.0, "equal_nan": True}
_FIGURES = {"total": 5, "time": 5, "perflop": 3, "perflop_above": 3, "intensity": 3}


def _figures(view: View, key: str) -> int:
    """How many figures of a column's numbers the page's script is given: fewer where there are many kernels."""
    if len(view.kernels) <= COMPACT_ABOVE:
        return ALL_FIGURES
    return _FIGURES.get(key, 4)


def _is_derived(table: _Table, key: str) -> bool:
    """Whether the table's script can work the column out: power from energy and time, constant energy from watts."""
    if (
        key not in ("power", "power_above", "constant")
        or "time" not in table.amounts
        or len(table.view.kernels) <= COMPACT_ABOVE
    ):
        return False
    known, time_s = _values(table.amounts[key]), _values(table.amounts["time"])
    expected = time_s * (table.view.document.constant_w or np.nan)
    if key.startswith("power"):
        joules = [above_of(kernel) for kernel in table.view.kernels]
        if key == "power":
            joules = table.amounts["total"]
        expected = _values(joules) / np.where(time_s > 0, time_s, np.nan)
    return np.allclose(expected, known, **_CLOSE)


def _values(amounts: Sequence[Amount]) -> script.Numbers:
    return np.array([amount.value for amount in amounts], dtype=np.float64)


def _counts(view: View) -> dict[str, str]:
    """Every count of every kernel as packed JSON for the script: words, counts, marks, energies.

    Energies only where they are not simply count times price.
    """
    words = []
    counts = {}
    marks = {}
    energies = {}
    for name in view.words:
        column, charge = view.column(name), view.charges.get(name)
        price = None  # J each; not known where there is none, or one by GPU
        if charge is not None and not charge.pays:
            price = 0.0
        elif charge is not None and not math.isnan(charge.pj):
            price = charge.pj * 1e-12
        counts[name] = script.column(column.values, price, figures=_figures(view, name))
        # The marks of a 0 are never shown, so they need not keep a column from being one number.
        # −1: neither counted nor missing.
        of_kernels = [bits(count.marks) if count else -1 for count in column.counts]
        marks[name] = script.flags(of_kernels, (column.values != 0).tolist())
        nothing = column.values == 0
        expected = np.where(nothing, 0.0, column.values * either(price, np.nan))
        if not np.allclose(expected, np.where(nothing & np.isnan(column.joules), 0.0, column.joules), **_CLOSE):
            energies[name] = script.column(column.joules, figures=_figures(view, name))
        count = view.words[name].count
        is_added = name in (*view.exclusive["byte"], *view.exclusive["instruction"])
        words.append([name, count.label, count.group, count.unit, price, int(is_added), view.masks[name]])
    return {
        "words": script.text(words),
        "counts": script.joined(counts),
        "countMarks": script.joined(marks),
        "energies": script.joined(energies),
    }
