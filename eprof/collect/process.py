"""One process, started without a shell and waited for (`run`): its signals, its keeper, its end, its time limit."""

import contextlib
import ctypes
import errno
import math
import os
import re
import resource
import select
import shlex
import shutil
import signal
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from eprof.base.errors import CollectError
from eprof.base.optional import either
from eprof.base.text import phrase, when

# ----------------------------------------------------------------------------------------------------------------------
# Signals of eprof while a program runs: each reaches the program once, and none is lost between two measurements.

STOPPING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
# Sent on to the program. SIGTSTP and SIGCONT act on eprof itself, SIGPIPE and faults are its own.
_FORWARDED = {*STOPPING, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH}
_LOOK_S = 0.02
_SI_KERNEL = 0x80  # sent by the kernel: a terminal's Ctrl-C, which the whole foreground group gets


class Signals:
    """The signals that eprof holds back and hands on to the program. stopped_by: the first that ends the session.

    old_mask: the signals that the program is to start with blocked. own_group: the program has a process group of its
    own.
    """

    def __init__(self, waited: frozenset[signal.Signals], old_mask: set[signal.Signals], own_group: bool) -> None:
        self.waited = waited
        self.old_mask = old_mask
        self.own_group = own_group
        self.stopped_by: signal.Signals | None = None
        self.between = False  # whether that came while no program was running, so that none could answer it

    def wait(self, seconds: float) -> tuple[signal.Signals, bool] | None:
        """(The next signal within `seconds`, whether it must be sent on to the program); None if none comes."""
        info = signal.sigtimedwait(self.waited | {signal.SIGCHLD}, max(seconds, 0.0))
        if info is None:
            return None
        number = signal.Signals(info.si_signo)
        if number in STOPPING and self.stopped_by is None:
            self.stopped_by = number
        shared = info.si_code == _SI_KERNEL and not self.own_group
        return number, number is not signal.SIGCHLD and not shared

    def rest(self, seconds: float) -> None:
        """Wait `seconds` while no program runs, or until a signal comes that ends the session; it stays pending."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not STOPPING & signal.sigpending():
            time.sleep(_LOOK_S)

    def drain(self) -> None:
        """Take the signals that came while no program was running, and note what ends the session."""
        before = self.stopped_by
        while self.wait(0.0) is not None:
            pass
        self.between = self.between or self.stopped_by is not before


@contextmanager
def held() -> Iterator[Signals]:
    """Hold eprof's signals back inside the block, for `run`; those ignored from the start (nohup) stay ignored."""
    waited = frozenset(number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN)
    old = {signal.Signals(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, waited | {signal.SIGCHLD})}
    signals = Signals(waited, old, own_group=not _in_foreground())
    try:
        yield signals
    finally:
        signals.drain()
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _in_foreground() -> bool:
    """Whether a terminal sends its Ctrl-C to our process group; then the program must stay in it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


# ----------------------------------------------------------------------------------------------------------------------
# Who keeps a program: a process between eprof and it, which ends it and all that it started if eprof is killed.
#
# Only a parent is told how a process ended, and Linux gives the children of the dead to the nearest `subreaper` above
# them. So the keeper starts the program, tells eprof how it ended, and finds also what the program left behind.

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
_PAUSE_S = 0.02
_LIFE_S = 0.5  # how often the keeper looks whether eprof lives
_END_S = 1.0  # for a profiler to give clocks back and close its files
_NEWS = struct.Struct("<q")
_COUNTED = re.compile(r"(?<!\w)(\w++): (\d+)")


class Kept(NamedTuple):
    """A program that runs, and its keeper. life: a pipe that closes when eprof ends, however. news: of the keeper.

    counted: once the program has ended, of it and all that it started: the lines of /proc/PID/io, times in ns
    (`elapsed`, `used` of processors, `system` of that in Linux's kernel), page `faults`; how long its first thread
    `ran`, was `queued`.
    """

    pid: int
    keeper: int
    life: int
    news: int
    counted: dict[str, int]

    def ended(self) -> int | None:
        """The status of the kept program as `waitpid` gives it, once it has ended; SIGKILL where nobody knows."""
        if os.waitpid(self.keeper, os.WNOHANG)[0] != self.keeper:
            return None
        status = os.read(self.news, _NEWS.size)
        counted = os.read(self.news, select.PIPE_BUF).decode(errors="replace")
        self.counted.update({name: int(number) for name, number in _COUNTED.findall(counted)})
        os.close(self.life)
        os.close(self.news)
        if not status:  # somebody killed the keeper
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            return int(signal.SIGKILL)
        return int(_NEWS.unpack(status)[0])


def start_kept(spawn: Callable[[], int]) -> Kept:
    """Start a program under a keeper. spawn: starts it and returns its process id. Raises OSError, as `spawn` does."""
    looked, life = os.pipe()
    news, told = os.pipe()
    keeper = os.fork()
    if not keeper:
        os.close(life)
        _keep(spawn, looked, told)
    os.close(looked)
    os.close(told)
    pid = _NEWS.unpack(os.read(news, _NEWS.size) or _NEWS.pack(-errno.EIO))[0]
    if pid > 0:
        return Kept(pid, keeper, life, news, {})
    os.waitpid(keeper, 0)
    os.close(life)
    os.close(news)
    raise OSError(-pid, os.strerror(-pid))


def _keep(spawn: Callable[[], int], life: int, news: int) -> NoReturn:
    """Run as the keeper, after the fork, and exit: it holds nothing of eprof's, and no terminal signals it."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        os.setpgid(0, 0)
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        began_ns, late_ns = round(1e9 * time.monotonic()), _ran_and_queued_ns("self")[1]
        pid = spawn()
        os.write(news, _NEWS.pack(pid))
        let_go({life, news})
        waited = _waited_for(pid, life, late_ns)
        if waited is None:
            _end_all(pid)
        else:
            ended_ns, *of_first_thread = waited
            elapsed_ns = max(ended_ns - began_ns, sum(of_first_thread))
            os.write(news, _NEWS.pack(os.waitpid(pid, 0)[1]))
            # Of the program, and of what it left behind: the keeper's own time would be more than that of a short one.
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            used_ns, system_ns = (round(1e9 * seconds) for seconds in (used.ru_utime + used.ru_stime, used.ru_stime))
            told = "elapsed: {}\nused: {}\nran: {}\nqueued: {}\n".format(elapsed_ns, used_ns, *of_first_thread)
            told += f"system: {system_ns}\nfaults: {used.ru_minflt + used.ru_majflt}\n"
            os.write(news, told.encode() + Path("/proc/self/io").read_bytes())
    except OSError as err:
        with contextlib.suppress(OSError):
            os.write(news, _NEWS.pack(-(err.errno or errno.EIO)))
    finally:
        os._exit(0)


def let_go(needed: set[int], folder: Path | None = None) -> None:
    """Close inherited files, or pipes of others would stay open; keep the descriptors `needed` and that of `folder`."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    for link in list(Path("/proc/self/fd").glob("*")):
        if int(link.name) > 2 and int(link.name) not in needed:
            with contextlib.suppress(OSError):
                if link.readlink() != folder:
                    os.close(int(link.name))


def _waited_for(pid: int, life: int, late_ns: int) -> tuple[int, int, int] | None:
    """Wait for a program; returns, in ns, (when it ended, how long its first thread ran, waited for a processor).

    late_ns: how long the keeper had waited for a processor when it started the program: on a busy machine the keeper is
    late to see the end. None if eprof ended before (`life` closes).
    """
    poll = select.poll()
    poll.register(life, select.POLLHUP)
    while not poll.poll(0):
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            late_ns = _ran_and_queued_ns("self")[1]
            signal.sigtimedwait({signal.SIGCHLD}, _LIFE_S)
        elif ended.si_pid != pid:
            os.waitpid(ended.si_pid, 0)
        else:
            late_ns = _ran_and_queued_ns("self")[1] - late_ns
            return round(1e9 * time.monotonic()) - late_ns, *_ran_and_queued_ns(str(pid))
    return None


def _ran_and_queued_ns(process: str) -> tuple[int, int]:
    """How long, in ns, a process's first thread (ran, waited for a processor); zeros where Linux does not tell."""
    try:
        ran_ns, queued_ns = Path(f"/proc/{process}/schedstat").read_text().split()[:2]
    except (OSError, ValueError):
        return 0, 0
    return int(ran_ns), int(queued_ns)


def _end_all(pid: int) -> None:
    """End the kept program and all below it: by SIGTERM, after 1 s by SIGKILL, until nothing is left."""
    until = time.monotonic() + _END_S
    number: signal.Signals | None = signal.SIGTERM
    while True:
        if number is not None:
            for process in {*descendants(os.getpid()), pid}:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        number = signal.SIGKILL if time.monotonic() > until else None
        time.sleep(_PAUSE_S)


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, parents first, from /proc; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    below = list(children.get(pid, []))
    for process in below:
        below += children.get(process, [])
    return below


_IDLE_S = 0.5
_TICK_S = 0.02
_GRACE_S = 5.0
_SPARED = 2
_DEVICE_MS = 12  # the column of /proc/diskstats
_HEAD_BYTES = 4096
# By the ends of the names of scripts.
_INTERPRETERS = {".py": "python", ".sh": "sh", ".bash": "bash", ".pl": "perl", ".rb": "ruby", ".R": "Rscript"}
# Python ignores these in itself; a program must not inherit that.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


class Ended(NamedTuple):
    """How a process ended: its exit code, or the signal that killed it; `seconds` of wall-clock time.

    cpu_s: the processor time of the process and all that it waited for, system_s of it in Linux's kernel. ran_s: that
    of its first thread, which other processes kept from a processor for queued_s. io: bytes of its files, by `_files`.
    """

    code: int | None
    signal: int | None
    seconds: float
    timed_out: bool = False
    cpu_s: float = 0.0
    ran_s: float = 0.0
    queued_s: float = 0.0
    io: Mapping[str, float] = MappingProxyType({})
    system_s: float = 0.0
    page_faults: int = 0

    @property
    def status(self) -> int:
        """The exit code of a process as a shell reports it: 128+n for signal n."""
        return either(self.code, 128 + (self.signal or 0))


class Streams(NamedTuple):
    """The file descriptors that a process gets as standard input, output and error."""

    stdin: int = 0
    stdout: int = 1
    stderr: int = 2


def resolve(program: str) -> str:
    """The path of the program that a shell would run. CollectError: 127 not found, 126 not executable."""
    if not program:
        raise CollectError("The program's name is empty.", 127)
    path = program if "/" in program else shutil.which(program)
    if path is None:
        use = _by_interpreter(program) or f"./{program}"
        hint = when(Path(program).is_file(), f" There is one in this directory: use {use}.")
        raise CollectError(f"{program}: program not found in PATH.{hint}", 127)
    if not Path(path).exists():
        raise CollectError(f"{program}: there is no such program.", 127)
    if Path(path).is_dir():
        raise CollectError(f"{program}: is a directory, not a program.", 126)
    if not os.access(path, os.X_OK):
        mend = phrase("use {}", _by_interpreter(program)) or f"`chmod +x {program}`, or name its interpreter first"
        raise CollectError(f"{program}: is not executable; {mend}.", 126)
    return path


def _by_interpreter(program: str) -> str:
    """How to run a script whose first line names no interpreter: "`eprof run python a.py`"; "" where nothing tells."""
    interpreter = _INTERPRETERS.get(Path(program).suffix, "")
    with contextlib.suppress(OSError), Path(program).open("rb") as file:
        is_told = file.read(2) == b"#!"
        return when(not is_told and shutil.which(interpreter), f"`eprof run {interpreter} {shlex.quote(program)}`")
    return ""


def run(
    command: Sequence[str],
    signals: Signals,
    *,
    environment: Mapping[str, str] | None = None,
    streams: Streams | None = None,
    timeout_s: float | None = None,
    tick: Callable[[], None] | None = None,
    profiler: str | None = None,
) -> Ended:
    """Run a process to its end and send signals on to it. tick: called some 50 times a second meanwhile.

    A process that outlives `timeout_s` gets SIGTERM, 5 s later SIGKILL, with all that it started. profiler: a pattern
    for the paths of a profiler around the program, which is spared both signals and may write its log for 5 s more.
    Raises CollectError if the process cannot be started (126, 127).
    """
    began, devices_s = time.monotonic(), _devices_s()
    kept = _start(command, signals, dict(either(environment, os.environ)), streams or Streams())
    deadline = began + either(timeout_s, math.inf)
    stops = 0
    while (status := kept.ended()) is None:
        if tick is not None:
            tick()
        if time.monotonic() >= deadline:
            number = signal.SIGKILL if stops else signal.SIGTERM
            _stop(kept, number, profiler if stops < _SPARED else None)
            deadline = time.monotonic() + _GRACE_S
            stops += 1
        pause_s = _IDLE_S if tick is None else _TICK_S
        got = signals.wait(min(pause_s, deadline - time.monotonic()))
        if got is not None and got[1]:
            # The whole group, where a terminal would have signalled it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.kill, os.killpg)[signals.own_group](kept.pid, got[0])
    # A keeper that somebody killed tells nothing.
    untold = {"elapsed": round(1e9 * (time.monotonic() - began))}
    counted = {**untold, **kept.counted}
    seconds, cpu_s, ran_s, queued_s = (counted.get(each, 0) / 1e9 for each in ("elapsed", "used", "ran", "queued"))
    if tick is not None:
        tick()
    code = os.waitstatus_to_exitcode(status)
    ended = Ended(code, None, seconds, stops > 0, cpu_s, ran_s, queued_s, _files(kept.counted, devices_s))
    ended = ended._replace(system_s=counted.get("system", 0) / 1e9, page_faults=counted.get("faults", 0))
    return ended._replace(code=None, signal=-code) if code < 0 else ended


def _files(counted: Mapping[str, int], before_s: Mapping[str, float]) -> dict[str, float]:
    """`Ended.io`: bytes that a program read and wrote, as it asked (caches and pipes too), and on storage devices.

    device_s: how long the machine's busiest storage device worked meanwhile, for whomever. counted: as `Kept.counted`;
    before_s: `_devices_s` at the start. A key is missing where Linux does not tell.
    """
    names = {"rchar": "asked_read_bytes", "wchar": "asked_written_bytes", "read_bytes": "read_bytes"}
    files: dict[str, float] = {name: counted[key] for key, name in names.items() if key in counted}
    if "write_bytes" in counted:
        files["written_bytes"] = max(counted["write_bytes"] - counted.get("cancelled_write_bytes", 0), 0)
    worked_s = [seconds - before_s[device] for device, seconds in _devices_s().items() if device in before_s]
    if worked_s:
        files["device_s"] = round(max(worked_s), 6)
    return files


def _devices_s() -> dict[str, float]:
    """Storage device -> for how many s it has worked since the machine started; empty where Linux does not tell."""
    try:
        rows = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    except OSError:
        return {}
    return {row[2]: int(row[_DEVICE_MS]) / 1000 for row in rows if len(row) > _DEVICE_MS}


def loading_s(program: str) -> float:
    """The processor seconds that the dynamic loader takes to start a program; 0.0 where it has no loader or fails."""
    path = shutil.which(program)
    if path is None:
        return 0.0
    head = Path(path).read_bytes()[:_HEAD_BYTES]
    words = (word for word in head.split(b"\0") if word.startswith(b"/") and b"/ld" in word and b".so" in word)
    loader = next(words, None)
    if loader is None or not head.startswith(b"\x7fELF"):
        return 0.0
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    try:
        # It maps the program and its libraries, and lists them.
        pid = os.posix_spawn(loader, [os.fsdecode(loader), "--list", path], os.environ, file_actions=quiet)
    except OSError:
        return 0.0
    _, status, used = os.wait4(pid, 0)
    return 0.0 if status else used.ru_utime + used.ru_stime


def run_alone(command: Sequence[str], output: int, errors: int, **options: Any) -> Ended:
    """Run a process without input, output and errors into these descriptors. Raises KeyboardInterrupt on a signal."""
    with Path(os.devnull).open("rb") as nothing, held() as signals:
        ended = run(command, signals, streams=Streams(nothing.fileno(), output, errors), **options)
        signals.drain()
        if signals.stopped_by is not None:
            raise KeyboardInterrupt(signals.stopped_by)
        return ended


def _start(command: Sequence[str], signals: Signals, environment: dict[str, str], streams: Streams) -> Kept:
    """Start a process under a keeper, in a group of its own where no terminal signals it. Raises CollectError."""
    if any("\0" in word for word in command):
        raise CollectError(f"{command[0]!r}: an argument holds a NUL character, which no program can be given.", 126)
    moves = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(streams)]
    group = (os.getpgrp(), 0)[signals.own_group]

    def spawn() -> int:
        return os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=moves,
            setsigmask=signals.old_mask,
            setsigdef=_PYTHON_IGNORES,
            setpgroup=group,
        )

    try:
        return start_kept(spawn)
    except OSError as err:
        if err.errno == errno.ENOENT and not Path(command[0]).exists():
            raise CollectError(f"{command[0]}: there is no such program.", 127) from err
        reasons = {
            errno.ENOENT: "the interpreter named in its first line does not exist",
            errno.ENOEXEC: "is no program for this machine, nor a script whose first line names one (#!/bin/sh)"
            + phrase("; use {}", _by_interpreter(command[0])),
            errno.E2BIG: "the arguments and the environment are too long for this system",
        }
        reason = reasons.get(err.errno or 0, f"cannot be run ({err.strerror or err})")
        raise CollectError(f"{command[0]}: {reason}.", 126) from err


def _stop(kept: Kept, number: int, profiler: str | None) -> None:
    """Send a signal to the program and all that it started. profiler: spare the program and what matches this."""
    for process in reversed(descendants(kept.keeper)):
        path = ""
        with contextlib.suppress(OSError):
            path = str(Path(f"/proc/{process}/exe").readlink()).lower()
        if profiler is None or process != kept.pid and not re.search(profiler, path):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
