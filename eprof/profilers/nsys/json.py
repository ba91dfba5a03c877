"""`nsys stats --format json`: arrays of objects, a row of a table each, between lines of what nsys says."""

import json
from collections.abc import Iterator
from typing import Any

from eprof.base.errors import LogError
from eprof.base.text import pattern
from eprof.logs.rows.log import Log
from eprof.logs.rows.stream import Source
from eprof.profilers.nsys.signs import KIND
from eprof.profilers.nsys.summary import COMMAND, Nsys, Shape, shape_of

_OBJECT = pattern(r'\{\s*"')  # never inside of a string: quotes are escaped there
_LONGEST = 4 << 20  # characters of an object
_DECODER = json.JSONDecoder()


def read(source: Source, blocks: Iterator[bytes], _: object = None, parts: str | None = None, *__: object) -> Log:
    """Read the JSON tables of nsys, which hold no counters to choose among.

    Raises LogError, one sentence, if none tells the times of kernels, or if the last is cut off.
    """
    nsys = Nsys(parts)
    shapes: dict[tuple[str, ...], Shape | None] = {}
    skipped = lines = 0
    example = text = ""
    is_closed = True
    for block in blocks:
        lines += block.count(b"\n")
        text += block.decode("utf-8", "replace")
        rows, text = _rows(text)
        is_closed = _is_closed(text, is_closed and not rows)
        for row in rows:
            columns = tuple(row)
            if columns not in shapes:
                shapes[columns] = shape_of(columns)
            shape = shapes[columns]
            if shape is None:
                nsys.foreign = nsys.foreign or lines
            elif not nsys.row(shape, ["" if value is None else str(value) for value in row.values()]):
                skipped += 1
                example = example or json.dumps(row)[:80]
    if not is_closed:
        raise LogError(f"{source.path}: the JSON is cut off or damaged behind line {lines}; write it again with nsys")
    if not nsys.kernels:
        why = nsys.why_no_table() or f"no row of nsys tells a kernel; make a table with `{COMMAND} > times.csv`"
        raise LogError(f"{source.path}: {why}")
    notes = [*source.notes, *nsys.notes()]
    if skipped:
        rows_have = "1 row has" if skipped == 1 else f"{skipped} rows have"
        notes.append(f"{rows_have} no readable time or number of launches and is skipped, for example: {example}")
    about = {"lines": lines, "skipped_lines": skipped, "example_skipped": example or None}
    return source.log([nsys.table()], notes, format_=KIND, **about)


def _rows(text: str) -> tuple[list[dict[str, Any]], str]:
    """The whole objects in nsys's JSON, and what stands behind them: a row that is not whole yet, or the array's
    end.
    """
    rows: list[dict[str, Any]] = []
    place = 0
    start = _OBJECT.search(text)
    while start is not None:
        place = start.start()
        end = start.end()
        try:
            row, place = _DECODER.raw_decode(text, place)
            rows.append(row)
            start = _OBJECT.search(text, place)
        except (ValueError, RecursionError):
            # With another row behind it, this is none, but words of a program.
            start = _OBJECT.search(text, end)
    rest = text[place:]
    return rows, rest if len(rest) <= _LONGEST else ""


def _is_closed(rest: str, before: bool) -> bool:
    """Whether no array of nsys's JSON is open behind the last whole row.

    before: the same before `rest`, if no row came since.
    """
    if "]" in rest.partition("{")[0]:
        return True
    return before and _OBJECT.search(rest) is None
