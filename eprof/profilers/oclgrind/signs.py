"""How counts of Oclgrind are recognised. It imports no reader, so that other logs need not wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from eprof.rows.signs import Signs

if TYPE_CHECKING:
    from eprof.base.arrays import Columns
    from eprof.rows.log import Launches

KIND = "oclgrind-inst-counts"
DEVICE = "Oclgrind Simulator"
MARK = "Instructions executed for kernel '"
VECTORS = ("insertelement", "extractelement", "shufflevector")
_WHOLE = ("load ", "store ")  # counted in bytes too, which are right for vectors
# Bytes of a piece; pieces of a program's own output before its first kernel.
_PIECE = 1 << 16
_LOOK_PIECES = 1 << 10


def is_in(path: str) -> bool:
    """Whether a file holds a block of Oclgrind's counts; a program may have written much before the first."""
    mark = MARK.encode()
    kept = 0
    buffer = bytearray(len(mark) + _PIECE)  # used again and again: new ones would take as long as looking
    with Path(path).open("rb") as file:
        for _ in range(_LOOK_PIECES):
            end = kept + file.readinto(memoryview(buffer)[kept : kept + _PIECE])
            if buffer.find(mark, 0, end) >= 0:
                return True
            if end == kept:
                return False
            kept = min(len(mark), end)
            buffer[:kept] = buffer[end - kept : end]
    return False


def _reader_of(block: bytes) -> str | None:
    return "reader" if MARK.encode() in block else None


def _reader_of_file(path: str) -> str | None:
    return "reader" if is_in(path) else None


def _lower_bounds(launches: Launches) -> Columns:
    """How Oclgrind counts what a kernel with vectors computes: once a vector, so MISSING."""
    import numpy as np  # late: `eprof run` needs this file before a program starts, and no numpy

    from eprof.base.arrays import Columns
    from eprof.base.marks import Mark

    counters, marks = launches.counters, launches.marks
    vectors = (counters.only(VECTORS) > 0).any(axis=1)
    arithmetic = np.array([not name.startswith(_WHOLE) for name in counters.names], dtype=bool)
    lost = np.outer(vectors, arithmetic) & (counters.values > 0)
    return Columns(marks.names, marks.values | np.where(lost, int(Mark.MISSING), 0).astype(np.int8))


SIGNS = Signs(
    reader_of=_reader_of,
    reader_of_file=_reader_of_file,
    counts_repeat=True,
    lower_bounds=_lower_bounds,
)
