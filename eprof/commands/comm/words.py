"""A document `eprof.comm/1` in words: from which size on blocking pays, what it saves, every row."""

import math
from collections.abc import Iterator
from functools import reduce
from operator import or_

from eprof.base.optional import gathered, growth, mapped
from eprof.base.text import capital, listed, phrase, when
from eprof.commands.comm.document import MEASURED, Comm, Row
from eprof.show.amounts import MISSING, bits
from eprof.show.blocks import (
    Block,
    Cell,
    Column,
    Headline,
    Legend,
    Notes,
    Point,
    Quantity,
    Share,
    Table,
    Written,
    everywhere_if,
    plain_text,
    table_of,
)
from eprof.show.blocks import Row as Cells
from eprof.show.numbers import more_or_less, quantity, whole

TITLE = "Waiting for messages"
BLOCKING = "blocking"
_PAYS = "It pays where it takes fewer joules per MB than polling and messages come at most 5 % later."
_NEVER = 1 << 50  # bytes of a message that nobody sends


def size_text(size: float) -> str:
    """A message's size in bytes in words, in KiB or MiB where it is a whole number of them: "64 KiB"."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:g} {name}"
    return quantity(size, "B")


def subject(document: Comm) -> str:
    """Where numbers on waiting for messages are from: model, simulation or measurement, and of what the joules are."""
    of_processes = phrase(" · {} processes", document.processes)
    return f"{document.kind}{of_processes} · joules: {document.joules_from}"


def way(document: Comm, waiting: str, core_mhz: float | None) -> str:
    """A way to wait for messages in words: "blocking at 1900 MHz"; without the clock where the document has but one."""
    has_clocks = len({row.core_mhz for row in document.rows}) > 1
    return waiting + when(has_clocks, phrase(" at {:g} MHz", core_mhz) or ", clock left alone")


def headline(document: Comm) -> Headline:
    """The headline: from which size on blocking pays at the first clock; for a program's messages, what it saves."""
    if document.totals:
        return _of_totals(document)
    plain = BLOCKING, document.rows[0].core_mhz
    blocking = [threshold for threshold in document.thresholds if (threshold.waiting, threshold.core_mhz) == plain]
    if not blocking:
        return Headline("Blocking was not asked for.", "--waiting polling,blocking holds it against polling.")
    paying = [threshold for threshold in blocking if threshold.bytes is not None]
    never = [threshold for threshold in blocking if threshold.bytes is None]
    reasons = listed(list(dict.fromkeys(threshold.because or "" for threshold in never)) or [""], "or")
    if not paying:
        return Headline(f"Blocking pays at no size: {reasons}.", _PAYS)
    sizes = gathered((threshold.bytes or 0.0, threshold.primitive) for threshold in paying)
    where = ", ".join(f"from {size_text(size)} on for {listed(names)}" for size, names in sorted(sizes.items()))
    if len(paying) == len({row.primitive for row in document.rows}) and len(sizes) == 1:
        where = f"from {size_text(next(iter(sizes)))} on"
    text = f"Blocking pays {where}"
    # What it changes for the largest messages that it pays for.
    row = max((row for threshold in paying for row in document.rows_of(threshold)), key=lambda row: row.bytes)
    if row.relative is not None:
        joules, latency = (more_or_less(factor - 1) for factor in (row.relative.j_per_mb, row.relative.latency))
        text += f": {joules} J/MB at {size_text(row.bytes)}, {latency} latency"
    lead = _PAYS
    if never:
        lead = f"For {listed([threshold.primitive for threshold in never])} it never does: {reasons}. {_PAYS}"
    return Headline(f"{text}.", lead)


def _of_totals(document: Comm) -> Headline:
    """The headline of a program's messages: the way to wait that takes least energy, and what it saves."""
    first = document.totals[0]
    least = min(document.totals, key=lambda total: total.energy_j)
    marks = bits(first.marks)
    at_least = when(marks & MISSING, "at least ")
    sent = capital(f"{at_least}{whole(first.messages)} messages, {quantity(first.bytes, 'B')}.")
    joules, waiting = quantity(least.energy_j, "J"), capital(way(document, least.waiting, least.core_mhz))
    if least is first or not first.energy_j:
        took = f"{at_least}{joules}, {quantity(least.time_s, 's')}"
        return Headline(f"{waiting} takes the least energy: {took}.", f"{sent} No other way to wait takes less.", marks)
    saved, later = (more_or_less(share - 1) for share in (least.energy_j / first.energy_j, least.time_s / first.time_s))
    before = way(document, first.waiting, first.core_mhz)
    change = f"{at_least}{quantity(first.energy_j, 'J')} become {joules}"
    return Headline(f"{waiting} takes {saved} energy and {later} time than {before}: {change}.", sent, marks)


def blocks(document: Comm, verbose: bool) -> Iterator[Block]:
    """The blocks on waiting for messages, for a terminal and for Markdown; every row if `verbose`."""
    yield from tables(document)
    yield from points(document)
    if verbose:
        yield rows(document)
    shown = document.totals or document.rows * verbose
    yield Legend(reduce(or_, [bits(entry.marks) for entry in shown], 0))
    yield Notes(document.warnings)


def tables(document: Comm) -> Iterator[Table]:
    """Tables of all messages of a program; else from which sizes on ways to wait pay, if there is more than polling."""
    if document.totals:
        yield totals(document)
    elif document.thresholds:
        yield thresholds(document)


def points(document: Comm) -> Iterator[Block]:
    """Yield remarks: from which time of a message on blocking takes fewer joules; how to make a program block."""
    if document.break_even_s is not None:
        yield Point("Time", f"messages of {quantity(document.break_even_s, 's')} and more take fewer joules blocked.")
    if any(threshold.bytes is not None for threshold in document.thresholds if threshold.waiting == BLOCKING):
        yield Point("Next", "add --shim libwait.so: the library that lets a program wait so.")


def settings(document: Comm) -> list[str]:
    """Environment variables for the library of `--shim`: from how many bytes on it blocks, and lowers the clock.

    Both where that pays for all operations. Waits of unknown size spin as long as it takes to break even.
    """
    first_mhz = document.rows[0].core_mhz
    told = [f"EPROF_WAIT_BYTES={min(_pays_from(document, first_mhz), _NEVER):.0f}"]
    if document.break_even_s is not None:
        told.append(f"EPROF_WAIT_US={1e6 * document.break_even_s:.3g}")
    lower = {row.core_mhz for row in document.rows} - {first_mhz, None}
    starts = {core_mhz: _pays_from(document, core_mhz) for core_mhz in lower}
    if starts and min(starts.values()) < math.inf:
        core_mhz = min(starts, key=lambda mhz: starts[mhz])
        told += [f"EPROF_WAIT_MHZ={core_mhz:g}", f"EPROF_WAIT_MHZ_BYTES={starts[core_mhz]:.0f}"]
    return told


def _pays_from(document: Comm, core_mhz: float | None) -> float:
    """The bytes from which on blocking at a clock pays for all operations, and more than at the first; inf: none."""
    first_mhz = document.rows[0].core_mhz
    blocked = [row for row in document.rows if (row.waiting, row.core_mhz) == (BLOCKING, first_mhz)]
    at_first_j = {(row.primitive, row.bytes): row.energy_j or 0.0 for row in blocked}
    starts = []
    for threshold in document.thresholds:
        if (threshold.waiting, threshold.core_mhz) != (BLOCKING, core_mhz):
            continue
        start = math.inf
        for row in sorted(document.rows_of(threshold), key=lambda row: -row.bytes):
            is_less = core_mhz == first_mhz or (row.energy_j or math.inf) < at_first_j[row.primitive, row.bytes]
            if threshold.bytes is None or row.bytes < threshold.bytes or not is_less:
                break
            start = row.bytes
        starts.append(start)
    return max(starts, default=math.inf)


def thresholds(document: Comm) -> Table:
    """Table of the message size from which on each way to wait pays, and its changes; operations alike share a row."""
    columns = [Column("waiting", "left"), Column("pays from"), *map(Column, ("latency", "power", "J/MB"))]
    alike: dict[str, tuple[list[str], list[Cell]]] = {}
    for threshold in document.thresholds:
        row = max(document.rows_of(threshold), key=lambda row: row.bytes)
        start = mapped(size_text, threshold.bytes) or "never"
        changes = [_change(row, name) for name in ("latency", "power", "j_per_mb")]
        waiting = way(document, threshold.waiting, threshold.core_mhz)
        cells: list[Cell] = [waiting, Written(start, threshold.bytes), *changes]
        names, _ = alike.setdefault(" ".join(map(plain_text, cells)), ([], cells))
        names.append(threshold.primitive)
    primitives = {row.primitive for row in document.rows}
    lines = [Cells(cells) for _, cells in alike.values()]
    if len(primitives) > 1:
        columns.insert(0, Column("operation", "left"))
        all_of = {len(primitives): "all"}
        lines = [Cells([all_of.get(len(names), ", ".join(names)), *cells]) for names, cells in alike.values()]
    largest = size_text(max(row.bytes for row in document.rows))
    return Table(columns, lines, title=f"From which size on it pays, and changes at {largest}")


def totals(document: Comm) -> Table:
    """Table of all messages of a program: energy and time in each way to wait, and changes against the first."""
    first = document.totals[0]
    return table_of(
        document.totals,
        (Column("waiting", "left"), lambda total: way(document, total.waiting, total.core_mhz)),
        (Column("energy"), lambda total: Quantity(total.energy_j, "J", bits(total.marks))),
        (Column("time"), lambda total: Quantity(total.time_s, "s", bits(total.marks))),
        (Column("energy, change"), lambda total: Share(growth(total.energy_j, first.energy_j) or None, signed=True)),
        (Column("time, change"), lambda total: Share(growth(total.time_s, first.time_s) or None, signed=True)),
        title="All messages",
    )


def rows(document: Comm) -> Table:
    """Table of every operation, message size and way to wait, with changes against polling at the first clock."""

    def amount(row: Row, value: float | None, unit: str) -> Quantity:
        return Quantity(value, unit, bits(row.marks))

    def latency(row: Row) -> Quantity:
        # What was measured rests on no powers of a table; joules may.
        return Quantity(row.latency_s, "s", (document.kind != MEASURED) * bits(row.marks))

    of_operation = everywhere_if(len({row.primitive for row in document.rows}) > 1)
    of_busy = everywhere_if(any(row.busy is not None for row in document.rows))
    return table_of(
        document.rows,
        (Column("operation", "left", of_operation), lambda row: row.primitive),
        (Column("size", "right" if of_operation else "left"), lambda row: Written(size_text(row.bytes), row.bytes)),
        (Column("waiting", "left"), lambda row: way(document, row.waiting, row.core_mhz)),
        (Column("J/MB, change"), lambda row: _change(row, "j_per_mb")),
        (Column("J/MB"), lambda row: amount(row, row.j_per_mb, "J")),
        (Column("latency"), latency),
        (Column("power", from_width=100), lambda row: amount(row, row.power_w, "W")),
        (Column("latency, change", from_width=100), lambda row: _change(row, "latency")),
        (Column("power, change", from_width=100), lambda row: _change(row, "power")),
        (Column("busy", media=of_busy, from_width=100), lambda row: Share(row.busy)),
        title="All",
    )


def _change(row: Row, name: str) -> Share:
    """The cell of the field `name` of a row's `Relative`, as a change; empty where it is unknown, or no change."""
    factor: float | None = getattr(row.relative, name, None)
    return Share(growth(factor, 1.0) or None, signed=True)
