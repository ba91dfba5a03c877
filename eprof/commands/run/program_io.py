"""Input and output of the program of `eprof run`, in each of its runs; marks in its output; power over time."""

import _socket
import errno
import os
import re
import select
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from eprof.base.errors import CollectError
from eprof.base.text import visible, when
from eprof.collect import program_marks
from eprof.collect.collector import Strip
from eprof.collect.directory import COMPONENTS, MARKS
from eprof.collect.meter import Component
from eprof.collect.process import Signals, let_go

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
    """One process whose output is split off: its file, open for reading, and what takes the profiler's lines out."""

    file: BinaryIO
    strip: Strip


class Splitter:
    """Writes each process's standard output to `STEM-PID.txt`, and passes all on to `target` in the order it came.

    strip: makes, for each process, what takes the profiler's part out. before: called each time something is passed on.
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
        """Pass on what has come since, split by process; whether the splitting process reported the end, or is gone."""
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
        with suppress(OSError):
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
    """The process that splits output: takes pieces off the socket, writes them to files, lists them in the journal."""

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
                    with suppress(BlockingIOError):
                        while not self._ended:
                            self._receive()
                    self._ours.setblocking(True)
                    self._tell(0, _DRAINED)
                else:
                    watched = False
                    poll.unregister(number)

    def _receive(self) -> None:
        """Take one piece off the socket, append it to its writer's file and list it in the journal, or its loss."""
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
        """Append a line to the journal: a process and the bytes of its piece, or a mark in place of these."""
        with suppress(OSError):
            os.write(self._journal, _LINE.pack(pid, size))


_SENDER = (_socket.SOL_SOCKET, _socket.SCM_CREDENTIALS)


class Input:
    """Standard input for several runs: a file is read from where it stood; a pipe is kept as the first run reads it."""

    def __init__(self, runs: int) -> None:
        self._first = True
        self._start: int | None = None
        self._kept: IO[bytes] | None = None
        self._lost: OSError | None = None
        mode = os.fstat(0).st_mode if _is_open(0) else 0
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
        with suppress(OSError):
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


# ----------------------------------------------------------------------------------------------------------------------
# Sections of a program, told by lines of its output as they pass: `eprof run --mark REGEX`.
#
# The output goes on unchanged and at once. A line has the time at which its first byte came.

_END = "end"
_ENDS = re.compile(rb"[\r\n]")
_PASSED = 1 << 16  # bytes
_LONGEST_LINE = 1 << 12
_PAUSE_MS = 20


class _Section(NamedTuple):
    """A section of the program that has not ended. level: the place of the pattern of `--mark` that began it."""

    level: int
    name: str
    begin_s: float


class Marker:
    """Finds sections of a program by lines of its output, and writes each into a table as it ends; s since the epoch.

    A line that a pattern of `--mark` matches begins a section, named by the first group that matched, else by the whole
    match. It ends the section that the pattern began before, with all that later patterns began in that. If the pattern
    has a group `end`, sections may hold others: a line where that group matches ends the last one of its name, and an
    empty `end` the last one.
    """

    def __init__(self, patterns: Sequence[str], path: Path) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self.path = path
        self._open: list[_Section] = []
        self.found = self.at_once = 0
        self.failed: OSError | None = None

    def line(self, text: str, time_s: float) -> None:
        """Begin or end sections by a line of output that came at `time_s`; the first pattern that matches counts."""
        matches = ((level, pattern.search(text)) for level, pattern in enumerate(self._patterns))
        level, match = next(((level, match) for level, match in matches if match), (0, None))
        if match is None:
            return
        nests = _END in match.re.groupindex
        if nests and match[_END] is not None:
            name = _named(match[_END])
            same = [section for section in self._open if section.level == level and name in ("", section.name)]
            if same:
                inner = self._open[self._open.index(same[-1]) :]
                self._close(lambda section: section in inner, time_s)
            return
        self._close(lambda section: section.level > level or (section.level == level and not nests), time_s)
        name = next((group for group in match.groups() if group), match[0])
        self._open.append(_Section(level, _named(name), time_s))
        self.found += 1

    def _close(self, ends: Callable[[_Section], bool], time_s: float) -> None:
        """Write down the open sections for which `ends` is true as ended at `time_s`, the innermost first."""
        for section in reversed(self._open):
            if ends(section):
                self._write(section.name, section.begin_s, time_s)
        self._open = [section for section in self._open if not ends(section)]

    def program(self, name: str, begin_s: float, end_s: float) -> None:
        """End all open sections with the program, and write down the program itself as the outermost one."""
        self._close(lambda section: True, end_s)
        self._write(name, begin_s, end_s)

    def _write(self, name: str, begin_s: float, end_s: float) -> None:
        """Append a section to the table. One that began and ended at one moment has no time, and is only counted."""
        if f"{begin_s:.6f}" == f"{end_s:.6f}":
            self.at_once += 1
            return
        try:
            program_marks.append(str(self.path), program_marks.row(begin_s, end_s, name, ""))
        except OSError as err:
            self.failed = err


def _named(text: str) -> str:
    return visible(text).strip()[: program_marks.LONGEST_NAME].strip()


@contextmanager
def passing(target: int, line: Callable[[str, float], None]) -> Iterator[int]:
    """Give a descriptor for a program to write to inside the block; lines are looked at, and all goes to `target`.

    line: called for each line with its text and when it came, by the monotonic clock. At the end of the block all that
    was written has been passed on; what children that go on write later is passed on as long as eprof lives.
    """
    source, own_end = os.pipe()
    ended, passed = threading.Event(), threading.Event()

    def work() -> None:
        lines = _Lines(line)
        waiting = select.poll()
        waiting.register(source, select.POLLIN)
        # If nobody takes the output any more, the pipe is closed, and the program learns it as without us.
        with suppress(OSError):
            while True:
                is_last = ended.is_set()
                if not waiting.poll(_PAUSE_MS):
                    if is_last:
                        lines.close()
                        passed.set()
                    continue
                piece = os.read(source, _PASSED)
                if not piece:
                    break
                now_s = time.monotonic()
                write_all(target, piece)
                lines.take(piece, now_s)
        os.close(source)
        lines.close()
        passed.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        yield own_end
    finally:
        os.close(own_end)
        ended.set()
        passed.wait()


class _Lines:
    """Makes lines of a program's output as it comes in pieces, with times of first bytes; cuts very long lines."""

    def __init__(self, line: Callable[[str, float], None]) -> None:
        self._line: Callable[[str, float], object] = line
        self._begun = b""
        self._began_s = 0.0

    def take(self, piece: bytes, time_s: float) -> None:
        """Take the next piece of the program's output, and when it came."""
        *whole, rest = _ENDS.split(piece)
        for text in whole:
            self._add(text, time_s)
            self._finish()
        self._add(rest, time_s)

    def _add(self, text: bytes, time_s: float) -> None:
        if not self._begun:
            self._began_s = time_s
        self._begun += text[: _LONGEST_LINE - len(self._begun)]

    def close(self) -> None:
        """Take the last line, which needs no end; what the program's children write later is none of its lines."""
        self._finish()
        self._line = lambda text, time_s: None

    def _finish(self) -> None:
        if self._begun:
            self._line(self._begun.decode("utf-8", "replace"), self._began_s)
        self._begun = b""


_HELD_BACK = (
    "The program holds its output back where that is no terminal; `stdbuf -oL PROGRAM` (C) or PYTHONUNBUFFERED=1 "
    "(Python) lets each line out."
)
IDLE_S = 1.0  # of power before the program and after it


class Watch:
    """Records power of components and marks in one measurement of `eprof run`.

    patterns: of lines of the program's output (`Marker`). listens: whether the program's times mean anything, so it may
    set marks itself (`eprof.mark`). Without any of these and components nothing is recorded.
    """

    def __init__(
        self, components: Sequence[Component] = (), patterns: Sequence[str] = (), listens: bool = False
    ) -> None:
        self.components = components
        self.patterns = patterns
        self.listens = listens
        self.environment: dict[str, str] = {}
        self._epoch_s = time.time() - time.monotonic()
        self._marker: Marker | None = None

    @contextmanager
    def recording(self, home: Path, signals: Signals) -> Iterator[None]:
        """Get ready for marks; record power of components into `home`, from 1 s before the block to 1 s after it."""
        if self.components or self.patterns or self.listens:
            self._marker = self._marker or Marker(self.patterns, home / MARKS)
        if self.listens:
            self.environment = {program_marks.VARIABLE: str((home / MARKS).absolute())}
        if not self.components:
            yield
            return
        from eprof.collect.sensors import sampling

        with sampling(self.components, home / COMPONENTS, self._epoch_s):
            signals.rest(IDLE_S)
            yield
            signals.rest(IDLE_S)

    @contextmanager
    def program(self, name: str, target: int) -> Iterator[int]:
        """Watch one run of the program; gives the descriptor for its output, which all goes on to `target`."""
        begin_s = time.monotonic()
        with passing(target, self._line) if self.patterns else nullcontext(target) as output:
            yield output
        marker = self._marker
        if marker is not None and (self.components or self.patterns or marker.path.exists()):
            marker.program(name, self._epoch_s + begin_s, self._epoch_s + time.monotonic())

    def _line(self, text: str, time_s: float) -> None:
        assert self._marker is not None
        self._marker.line(text, self._epoch_s + time_s)

    def warnings(self) -> Iterator[str]:
        """Yield sentences on marks that could not be written, never matched, or came too late to have a time."""
        marker = self._marker
        if marker is None or not self.patterns:
            return
        if marker.failed is not None:
            yield f"Some marks could not be written and are lost ({marker.failed.strerror})."
        if not marker.found:
            yield f"No line of the output matches --mark {' or '.join(self.patterns)}; stderr is not looked at."
        if marker.at_once:
            some = f"The lines of {marker.at_once} of {marker.found} marked sections"
            mend = when(marker.at_once > marker.found / 2, f" {_HELD_BACK}")
            yield f"{some} came at once: they have no time.{mend}"


NOTHING = Watch()
