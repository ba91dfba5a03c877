"""What a program reads when it is run several times: the same input each time."""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from eprof.base.errors import CollectError


class Input:
    """Standard input for several runs: a file is read from where it stood; a pipe is kept as the first run reads it."""

    def __init__(self, runs: int) -> None:
        mode = os.fstat(0).st_mode if _is_open(0) else 0
        self._start = os.lseek(0, 0, os.SEEK_CUR) if stat.S_ISREG(mode) else None
        self._kept: IO[bytes] | None = None
        self._lost: OSError | None = None
        if runs > 1 and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            self._kept = self._spool()
        self._first = True

    def _spool(self) -> IO[bytes] | None:
        """Where standard input is kept for later runs; None, and why, if there is no place."""
        import tempfile

        try:
            # Lives as long as the session: the file has no name and vanishes with the process.
            return tempfile.TemporaryFile()
        except OSError as err:
            self._lost = err
            return None

    @contextmanager
    def open(self) -> Iterator[int]:
        """The file descriptor from which the next run reads standard input.

        Raises CollectError if the input was not kept for it.
        """
        first, self._first = self._first, False
        if self._lost is not None and not first:
            raise CollectError(
                f"its standard input could not be kept for this run ({self._lost.strerror or self._lost}); set TMPDIR "
                "to a folder that has room, or give the input as a file (< FILE)."
            )
        if self._start is not None:
            os.lseek(0, self._start, os.SEEK_SET)
            yield 0
        elif self._kept is None:
            yield 0 if _is_open(0) else os.open(os.devnull, os.O_RDONLY)
        elif first:
            import threading

            copied, write_end = os.pipe()
            threading.Thread(target=self._pump, args=(write_end,), daemon=True).start()
            yield copied
            os.close(copied)
        else:
            again = os.open(f"/proc/self/fd/{self._kept.fileno()}", os.O_RDONLY | os.O_CLOEXEC)
            yield again
            os.close(again)

    def _pump(self, target: int) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(0, 1 << 16):
                self._keep(piece)
                write_all(target, piece)
        os.close(target)

    def _keep(self, piece: bytes) -> None:
        """Keep a piece of standard input for later runs; without room for it this run still gets all of its input."""
        if self._kept is None or self._lost is not None:
            return
        try:
            self._kept.write(piece)
            self._kept.flush()
        except OSError as err:
            self._lost = err


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def write_all(target: int, piece: bytes) -> None:
    """Write all of `piece` to a stream. Raises OSError."""
    view = memoryview(piece)
    while view:
        view = view[os.write(target, view) :]
