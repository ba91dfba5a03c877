"""Oclgrind: how it is started, and how its counts are read, and here recognised."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.signs import Signs, reads

if TYPE_CHECKING:
    from eprof.base.arrays import Columns
    from eprof.logs.log import Launches

KIND = "oclgrind-inst-counts"
DEVICE = "Oclgrind Simulator"
MARK = "Instructions executed for kernel '"
VECTORS = ("insertelement", "extractelement", "shufflevector")
_WHOLE = ("load ", "store ", "cache ")  # counted in bytes and sectors too, which are right for vectors
_PIECE = 1 << 16  # bytes


def blocks_in(path: str | Path, most: int = sys.maxsize) -> int:
    """How many blocks of Oclgrind's counts begin in a file; reading ends at `most` blocks."""
    mark = MARK.encode()
    blocks = kept = 0
    buffer = bytearray(len(mark) + _PIECE)  # used again and again: new ones would take as long as looking
    with Path(path).open("rb") as file:
        while blocks < most and (read := file.readinto(memoryview(buffer)[kept : kept + _PIECE])):
            end = kept + read
            blocks += buffer.count(mark, 0, end)
            kept = min(len(mark) - 1, end)
            buffer[:kept] = buffer[end - kept : end]
    return blocks


def _lower_bounds(launches: Launches) -> Columns:
    """The marks of counters: MISSING for arithmetic of kernels with vectors, which Oclgrind counts once a vector."""
    from eprof.base.vocabulary import Mark  # late: it brings msgspec

    counters = launches.counters
    has_vectors = (counters.only(VECTORS) > 0).any(axis=1, keepdims=True)
    arithmetic = [not name.startswith(_WHOLE) for name in counters.names]
    return launches.marked(Mark.MISSING, (counters.values > 0) & arithmetic & has_vectors).marks


SIGNS = Signs(
    reader_of=reads("reader", lambda block: MARK.encode() in block),
    counts_repeat=True,
    lower_bounds=_lower_bounds,
)
