"""A document `eprof.comm/1` in words: from which size on blocking pays, what it saves, every row."""

from collections.abc import Iterator, Sequence

from eprof.base.marks import Mark, from_names
from eprof.base.text import capital, listed
from eprof.comm.schema import MEASURED, Comm, Row, Threshold, Total
from eprof.words.blocks import Block, Column, Headline, Notes, Point, Sentence, Table, Tone
from eprof.words.blocks import Row as Cells
from eprof.words.cells import Cell, Quantity, Share, Written, plain_text
from eprof.words.numbers import percent, quantity, signed_percent, whole

TITLE = "Waiting for messages"
BLOCKING = "blocking"
_BINARY = ((1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(size: float) -> str:
    """The size of messages in bytes, in KiB and MiB where it is a whole number of them: "64 KiB"."""
    for unit, name in _BINARY:
        if size >= unit and size % unit == 0:
            return f"{size / unit:g} {name}"
    return quantity(size, "B")


def subject(document: Comm) -> str:
    """Whose numbers on waiting for messages these are."""
    of_processes = f" · {document.processes} processes" if document.processes else ""
    return f"{document.kind}{of_processes} · joules: {document.joules_from}"


def way(document: Comm, waiting: str, core_mhz: float | None) -> str:
    """A way to wait for messages: "blocking at 1900 MHz", without the clock where there is one only."""
    clocks = {row.core_mhz for row in document.rows}
    if len(clocks) == 1:
        return waiting
    return f"{waiting}, clock left alone" if core_mhz is None else f"{waiting} at {core_mhz:g} MHz"


def headline(document: Comm) -> Headline:
    """From where on blocking pays at the first clock; of a program's messages, what it saves."""
    if document.totals:
        return _of_totals(document)
    found = [threshold for threshold in document.thresholds if _is_plain_blocking(document, threshold)]
    if not found:
        return Headline(document.title, "Blocking was not asked for.")
    paying = [threshold for threshold in found if threshold.bytes is not None]
    never = [threshold for threshold in found if threshold.bytes is None]
    reasons = listed(list(dict.fromkeys(threshold.because or "" for threshold in never)) or [""], "or")
    if not paying:
        return Headline(f"Blocking pays at no size: {reasons}.")
    text = f"Blocking pays {_from_where(paying, document)}."
    if never:
        text += f" For {listed([threshold.primitive for threshold in never])} it never does: {reasons}."
    return Headline(text, _at_the_largest(document, paying))


def _from_where(paying: Sequence[Threshold], document: Comm) -> str:
    sizes: dict[float, list[str]] = {}
    for threshold in paying:
        sizes.setdefault(threshold.bytes or 0.0, []).append(threshold.primitive)
    if len(paying) == len({row.primitive for row in document.rows}) and len(sizes) == 1:
        return f"from {size_text(next(iter(sizes)))} on"
    return ", ".join(f"from {size_text(size)} on for {listed(names)}" for size, names in sorted(sizes.items()))


def _is_plain_blocking(document: Comm, threshold: Threshold) -> bool:
    """Whether a way to wait is blocking at the first clock."""
    return (threshold.waiting, threshold.core_mhz) == (BLOCKING, document.rows[0].core_mhz)


def _at_the_largest(document: Comm, paying: Sequence[Threshold]) -> str:
    """What blocking changes for the largest messages that it pays for."""
    rows = [row for threshold in paying for row in document.rows_of(threshold)]
    row = max(rows, key=lambda row: row.bytes, default=None)
    if row is None or row.relative is None:
        return ""
    changes = f"{signed_percent(row.relative.j_per_mb - 1)} J/MB, {signed_percent(row.relative.latency - 1)} latency"
    return f"At {size_text(row.bytes)} ({row.primitive}): {changes} against polling."


def _of_totals(document: Comm) -> Headline:
    first = document.totals[0]
    least = min(document.totals, key=lambda total: total.energy_j)
    sent = f"{whole(first.messages)} messages, {quantity(first.bytes, 'B')}"
    joules, time = quantity(first.energy_j, "J"), quantity(first.time_s, "s")
    marks = int(from_names(first.marks))
    least_of = "at least " if marks & Mark.MISSING else ""
    took = f"{least_of}{joules} and {time} {way(document, first.waiting, first.core_mhz)}"
    if least is first or not first.energy_j:
        return Headline(f"{sent}: {took}.", "No other way to wait takes less.", marks)
    saved, later = least.energy_j / first.energy_j - 1, least.time_s / first.time_s - 1
    changes = f"{signed_percent(saved)} energy, {signed_percent(later)} time"
    return Headline(f"{sent}: {took}.", f"{capital(way(document, least.waiting, least.core_mhz))}: {changes}.", marks)


def blocks(document: Comm, verbose: bool) -> Iterator[Block]:
    """What waiting for messages costs, for a terminal and for Markdown; every row if `verbose`."""
    yield Sentence(f"{document.title} · {subject(document)}", Tone.QUIET)
    yield headline(document)
    yield from tables(document)
    yield from points(document)
    if verbose:
        yield rows(document)
    yield Notes(document.warnings)


def tables(document: Comm) -> Iterator[Table]:
    """Tables of all messages of a program; else from which sizes on ways to wait pay, if there is more than polling."""
    if document.totals:
        yield totals(document.totals, document)
    elif document.thresholds:
        yield thresholds(document)


def points(document: Comm) -> Iterator[Block]:
    """From which waiting time on blocking takes fewer joules, and what is the most that can be saved."""
    if document.break_even_s is not None:
        yield Point("Time", f"messages of {quantity(document.break_even_s, 's')} and more take fewer joules blocked.")
    if document.limits:
        most = min(document.limits, key=lambda limit: limit.j_per_mb)
        saved = percent(1 - most.j_per_mb)
        yield Point("Limit", f"{way(document, most.waiting, most.core_mhz)} saves {saved} of J/MB at most.")


def thresholds(document: Comm) -> Table:
    """From which message size on each way to wait pays, and what it changes; operations alike share a row."""
    columns = [Column("operation", "left"), Column("waiting", "left"), Column("pays from")]
    columns += [Column(name) for name in ("latency", "power", "J/MB")]
    alike: dict[str, tuple[list[str], list[Cell]]] = {}
    for threshold in document.thresholds:
        cells = _of_threshold(document, threshold)
        names, _ = alike.setdefault(" ".join(map(plain_text, cells)), ([], cells))
        names.append(threshold.primitive)
    lines = [Cells([_operations(document, names), *cells]) for names, cells in alike.values()]
    largest = size_text(max(row.bytes for row in document.rows))
    return Table(columns, lines, title=f"From which size on it pays, and changes at {largest}")


def _operations(document: Comm, names: Sequence[str]) -> str:
    is_all = len(names) > 1 and len(names) == len({row.primitive for row in document.rows})
    return "all" if is_all else ", ".join(names)


def _of_threshold(document: Comm, threshold: Threshold) -> list[Cell]:
    largest = max(document.rows_of(threshold), key=lambda row: row.bytes)
    start = "never" if threshold.bytes is None else size_text(threshold.bytes)
    changes = [_of(largest, name) for name in ("latency", "power", "j_per_mb")]
    return [way(document, threshold.waiting, threshold.core_mhz), Written(start, threshold.bytes), *changes]


def totals(entries: Sequence[Total], document: Comm) -> Table:
    """The table of all messages of a program in each way to wait."""
    columns = [Column("waiting", "left")]
    columns += [Column(name) for name in ("energy", "time", "energy, change", "time, change")]
    first = entries[0]
    lines = []
    for entry in entries:
        marks = int(from_names(entry.marks))
        cells: list[Cell] = [way(document, entry.waiting, entry.core_mhz)]
        cells += [Quantity(entry.energy_j, "J", marks), Quantity(entry.time_s, "s", marks)]
        cells += [_change_of_waiting(entry.energy_j, first.energy_j), _change_of_waiting(entry.time_s, first.time_s)]
        lines.append(Cells(cells))
    return Table(columns, lines, title="All messages")


def _change_of_waiting(now: float, before: float) -> Share:
    return Share(now / before - 1 if before and now != before else None, signed=True)


def rows(document: Comm) -> Table:
    """The table of every message size; what is relative to polling at the first clock as a change."""
    has_busy = any(row.busy is not None for row in document.rows)
    columns = [
        Column("operation", "left"),
        Column("size"),
        Column("waiting", "left"),
        Column("latency"),
        Column("power", from_width=100),
        Column("J/MB"),
        Column("latency, change", from_width=100),
        Column("power, change", from_width=100),
        Column("J/MB, change"),
        *([Column("busy", from_width=100)] if has_busy else []),
    ]
    lines = [Cells([*_message_cells(document, row), *([Share(row.busy)] if has_busy else [])]) for row in document.rows]
    return Table(columns, lines, title="All")


def _message_cells(document: Comm, row: Row) -> list[Cell]:
    marks = int(from_names(row.marks)) if document.kind == MEASURED or document.program else 0
    return [
        row.primitive,
        Written(size_text(row.bytes), row.bytes),
        way(document, row.waiting, row.core_mhz),
        Quantity(row.latency_s, "s"),
        Quantity(row.power_w, "W", marks),
        Quantity(row.j_per_mb, "J", marks),
        _of(row, "latency"),
        _of(row, "power"),
        _of(row, "j_per_mb"),
    ]


def _of(row: Row, name: str) -> Share:
    factor = getattr(row.relative, name) if row.relative else None
    return Share(None if factor is None or factor == 1 else factor - 1, signed=True)
