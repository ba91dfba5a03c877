"""Tables of nsys in JSON: rows as objects of an array, maybe behind what a program printed."""

import json
from collections.abc import Iterator
from typing import Any

from eprof.base.errors import LogError
from eprof.base.text import counted, pattern, phrase, when
from eprof.logs.log import Log
from eprof.logs.stream import Source
from eprof.nvidia import KIND
from eprof.nvidia.tables import COMMAND, Nsys, NsysTable, nsys_table_of

_OBJECT = pattern(r'\{\s*"')  # never inside of a string: quotes are escaped there
_DECODER = json.JSONDecoder()
_LONGEST = 4 << 20  # characters of an object


def read(source: Source, blocks: Iterator[bytes], _: object = None, parts: str | None = None, *__: object) -> Log:
    """Read tables of `nsys stats --format json`. Raises LogError: none tells times of kernels, or one is cut off."""
    nsys = Nsys(parts)
    shapes: dict[tuple[str, ...], NsysTable | None] = {}
    skipped = lines = 0
    example = text = ""
    is_closed = True
    for block in blocks:
        lines += block.count(b"\n")
        text += block.decode("utf-8", "replace")
        rows, text = _rows(text)
        # Behind the last whole row an array may end, or nothing begin.
        is_open = rows or not is_closed
        is_closed = "]" in text.partition("{")[0] or not (is_open or _OBJECT.search(text))
        for row in rows:
            columns = tuple(row)
            if columns not in shapes:
                shapes[columns] = nsys_table_of(columns)
                nsys.begin(shapes[columns])
            shape = shapes[columns]
            if shape is not None and not nsys.row(shape, [phrase("{}", value) for value in row.values()]):
                skipped += 1
                example = example or json.dumps(row)[:80]
    if not is_closed:
        raise LogError(f"{source.path}: the JSON is cut off or damaged behind line {lines}; write it again with nsys")
    nsys.finish()
    if not nsys.kernels:
        why = nsys.why_no_table() or f"no row of nsys tells a kernel; make a table with `{COMMAND} > times.csv`"
        raise LogError(f"{source.path}: {why}")
    notes = [*source.notes, *nsys.notes()]
    if skipped:
        rows_have = counted(skipped, "row has", "rows have")
        notes.append(f"{rows_have} no readable time or number of launches and is skipped, for example: {example}")
    about = {"lines": lines, "skipped_lines": skipped, **nsys.beside}
    return source.log([nsys.table()], notes, format_=KIND, **about)


def _rows(text: str) -> tuple[list[dict[str, Any]], str]:
    """(whole objects in a text of nsys's JSON, rest behind them): the rest is a cut row, or the array's end."""
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
    return rows, when(len(rest) <= _LONGEST, rest)
