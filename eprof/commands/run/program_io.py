"""What a program reads, the same in each run, and what it writes, process by process."""

import _socket
import contextlib
import errno
import os
import select
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from eprof.base.errors import CollectError
from eprof.collect.collector import Strip
from eprof.collect.process import let_go

# ----------------------------------------------------------------------------------------------------------------------
# Standard output of a program and its children, taken apart: the kernel reports which process wrote each piece.
#
# Some profilers write into the program's standard output. Where several processes share it, their pieces would mix; so
# it is a socket, on which every piece comes with the number of its writer (SO_PASSCRED). A process of our own takes the
# pieces and writes each writer's into a file at once. It goes on if eprof is killed: neither program nor log is lost.

_PIECE = 1 << 17
_BUFFER = 1 << 20
# A line of the journal: the writer, and how many bytes it wrote, or one of the marks below.
_LINE = struct.Struct("<qq")
_CREDENTIALS = struct.Struct("<iii")  # pid, uid, gid
_DRAINED, _FAILED = -1, -2


class _Writer(NamedTuple):
    """For one writing process: its file, open for reading, and what takes the profiler's lines out."""

    file: BinaryIO
    strip: Strip


class Splitter:
    """Writes each process's standard output to `STEM-PID.txt`, and passes all on to `target` in the order it came.

    strip: makes what takes the profiler's part out, for each process; before: called each time something is passed on.
    `stdout` is for the program. Call `tick` often, and `finish` when the program has ended.
    """

    def __init__(
        self, stem: Path, strip: Callable[[], Strip], target: int | None, before: Callable[[], None] | None = None
    ) -> None:
        self._stem = stem
        self._strip = strip
        self._target = target
        self._before = before
        self._writers: dict[int, _Writer] = {}
        self.failed: OSError | None = None
        helper_end, program_end = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        helper_end.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        program_end.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _BUFFER)
        self._journal, journal = os.pipe()
        orders, self._orders = os.pipe()
        parent = os.fork()
        if not parent:
            # A child of the child: the program stays our only child, and nobody waits for the helper.
            if os.fork():
                os._exit(0)
            _serve(helper_end, orders, journal, stem)
        os.waitpid(parent, 0)
        os.close(journal)
        os.close(orders)
        helper_end.close()
        os.set_blocking(self._journal, False)
        self._theirs: _socket.socket | None = program_end
        self.stdout = program_end.fileno()

    def started(self) -> None:
        """Close our copy of the program's standard output once the program has it, or the output would never end."""
        if self._theirs is not None:
            self._theirs.close()
            self._theirs = None

    def tick(self) -> bool:
        """Pass on what has come since, split by process; returns whether the helper reported the end, or is gone."""
        while True:
            try:
                lines = os.read(self._journal, _LINE.size << 10)
            except BlockingIOError:
                return False
            if not lines:
                self.failed = self.failed or OSError(errno.EPIPE, "the process that writes it was killed", "eprof")
                return True
            for pid, size in _LINE.iter_unpack(lines):
                if size == _DRAINED:
                    return True
                if size == _FAILED:
                    self.failed = self.failed or OSError(pid, os.strerror(pid), str(self._stem.parent))
                else:
                    if pid not in self._writers:
                        self._writers[pid] = _Writer(_path(self._stem, pid).open("rb"), self._strip())
                    file, strip = self._writers[pid]
                    self._pass(strip.feed(file.read(size)))

    def finish(self) -> None:
        """Pass on all split output so far; children that outlive the program go on writing into their files."""
        self.started()
        with contextlib.suppress(OSError):
            os.write(self._orders, b"?")
        os.close(self._orders)
        os.set_blocking(self._journal, True)
        while not self.tick():
            pass
        os.close(self._journal)
        for writer in self._writers.values():
            self._pass(writer.strip.feed(b"", final=True))
            writer.file.close()

    def _pass(self, piece: bytes) -> None:
        if self._target is None or not piece:
            return
        if self._before is not None:
            self._before()
        try:
            write_all(self._target, piece)
        except OSError:
            # Nobody reads any more (`| head`), or the disk behind it is full: the log still has everything.
            self._target = None


def _path(stem: Path, pid: int) -> Path:
    return stem.with_name(f"{stem.name}-{pid}.txt")


def _serve(helper_end: _socket.socket, orders: int, journal: int, stem: Path) -> None:
    """Run as the process that splits output, after the fork, and exit; it holds the run directory's lock alone."""
    code = 1
    try:
        os.setsid()  # a terminal's Ctrl-C is not for it
        let_go({helper_end.fileno(), orders, journal}, stem.parent.parent)
        os.chdir(stem.parent)  # which may be renamed while children live on
        _Helper(helper_end, orders, journal, Path(stem.name)).run()
        code = 0
    finally:
        os._exit(code)


class _Helper:
    """Takes pieces off the socket, writes them down, and lists them in the journal as long as eprof lives."""

    def __init__(self, helper_end: _socket.socket, orders: int, journal: int, stem: Path) -> None:
        self._ours = helper_end
        self._orders = orders
        self._journal = journal
        self._stem = stem
        self._files: dict[int, int] = {}
        self._ended = False

    def run(self) -> None:
        """Split output by the process that wrote it, until nobody writes any more."""
        poll = select.poll()
        poll.register(self._ours.fileno(), select.POLLIN)
        poll.register(self._orders, select.POLLIN)
        watched = True
        while watched or not self._ended:
            for number, _ in poll.poll():
                if number == self._ours.fileno():
                    self._receive()
                    if self._ended:
                        poll.unregister(number)
                elif os.read(self._orders, 1):
                    # Take all that was written so far, and say that this was all.
                    self._ours.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        while not self._ended:
                            self._receive()
                    self._ours.setblocking(True)
                    self._tell(0, _DRAINED)
                else:
                    watched = False
                    poll.unregister(number)

    def _receive(self) -> None:
        piece, more, _, _ = self._ours.recvmsg(_PIECE, _socket.CMSG_SPACE(_CREDENTIALS.size))
        if not piece:
            self._ended = True
            return
        pid = next((_CREDENTIALS.unpack(data)[0] for level, kind, data in more if (level, kind) == _SENDER), 0)
        try:
            if pid not in self._files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._files[pid] = os.open(_path(self._stem, pid), flags, 0o666)
            write_all(self._files[pid], piece)
        except OSError as err:
            # The program is not held up, and its end is reported as always: with a sentence on what is lost.
            self._tell(err.errno or 0, _FAILED)
            return
        self._tell(pid, len(piece))

    def _tell(self, pid: int, size: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._journal, _LINE.pack(pid, size))


_SENDER = (_socket.SOL_SOCKET, _socket.SCM_CREDENTIALS)


class Input:
    """Standard input for several runs: a file is read from where it stood; a pipe is kept as the first run reads it."""

    def __init__(self, runs: int) -> None:
        self._first = True
        self._start: int | None = None
        self._kept: IO[bytes] | None = None
        self._lost: OSError | None = None
        mode = 0
        if _is_open(0):
            mode = os.fstat(0).st_mode
        if stat.S_ISREG(mode):
            self._start = os.lseek(0, 0, os.SEEK_CUR)
        elif runs > 1 and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            import tempfile

            try:
                self._kept = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the session
            except OSError as err:
                self._lost = err

    @contextmanager
    def open(self) -> Iterator[int]:
        """The descriptor from which the next run reads standard input. Raises CollectError: it was not kept."""
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
            threading.Thread(target=self._pump, args=(self._kept, write_end), daemon=True).start()
            yield copied
            os.close(copied)
        else:
            again = os.open(f"/proc/self/fd/{self._kept.fileno()}", os.O_RDONLY | os.O_CLOEXEC)
            yield again
            os.close(again)

    def _pump(self, kept: IO[bytes], target: int) -> None:
        """Pass standard input on, and keep it for later runs; without room for it this run still gets all of it."""
        with contextlib.suppress(OSError):
            while piece := os.read(0, 1 << 16):
                try:
                    if self._lost is None:
                        kept.write(piece)
                        kept.flush()
                except OSError as err:
                    self._lost = err
                write_all(target, piece)
        os.close(target)


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
