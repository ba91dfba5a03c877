"""Launches one by one, for readers that add up the rows of a kernel: each launch is a part, named by its start.

Asked for by `parts=LAUNCH`; nothing else is worth the room that millions of launches take.
"""

import numpy as np
from msgspec.structs import replace

from eprof.logs.rows.log import Names, TableRows

LAUNCH = "launch"
UNKNOWN = -1  # a start


def part_of(start_ns: int, stream: object) -> str:
    """The part that a launch is."""
    return f"{start_ns} {'' if stream is None else stream}".rstrip()


def told_apart(rows: TableRows) -> TableRows:
    """Rows whose parts are single launches, with their starts and streams instead; as they are without parts."""
    if rows.part is None:
        return rows
    labels = [text.partition(" ") for text in rows.part.names]
    # The last is for rows without a part.
    starts = np.array([*(int(start) for start, *_ in labels), UNKNOWN], dtype=np.int64)
    streams = Names.of([*(stream or None for *_, stream in labels), None])
    codes = rows.part.codes
    return replace(rows, part=None, start_ns=starts[codes], stream=streams.chosen(codes))
