"""How counts of Oclgrind are recognised. It imports no reader, so that other logs need not wait for it."""

from pathlib import Path

KIND = "oclgrind-inst-counts"
DEVICE = "Oclgrind Simulator"
MARK = "Instructions executed for kernel '"
# Bytes of a piece; pieces of a program's own output before its first kernel.
_PIECE = 1 << 16
_LOOK_PIECES = 1 << 10


def is_in(path: str) -> bool:
    """Whether a file holds a block of Oclgrind's counts; a program may have written much before the first."""
    mark, kept = MARK.encode(), 0
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
