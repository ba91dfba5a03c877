"""`python -m eprof` in a process of its own, without waiting for its imports each time, which take a second.

A server, started once for all workers of a run, imports what eprof imports and reads the cellar; for each call it forks, and
the child becomes `python -m eprof ARGUMENTS`: its own process with its own directory, environment, streams, limits, exit code
and end. What a start from nothing shows (what is imported, how quick, closed streams, memory, signals that come early) is tested with
processes that do start so.
"""

import contextlib
import gc
import hashlib
import importlib
import io
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What Python and the loader look at before eprof runs: a server for each choice of these. Others are set in the child.
_EARLY = ("LD_", "LC_", "LANG", "PYTHON", "MALLOC_", "OMP_", "OPENBLAS_", "ARROW_")
_LATE = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
_LATE += ("PYTHON_VERSION", "PYTHON_SHA256", "PYTHON_PIP_VERSION")  # said by container images, to nobody
_CAN = hasattr(socket, "SOCK_SEQPACKET") and sys.platform.startswith("linux")


def run(arguments, cwd, env, stdin=None, text=True, timeout=300, **more):
    """`python -m eprof ARGUMENTS` to its end, as `subprocess.run` would: a `CompletedProcess` with both outputs.

    stdin: text or bytes for a pipe, a file, or None for an empty input. more: see `start`. Raises subprocess.TimeoutExpired.
    """
    process = start(arguments, cwd, env, stdin, text, **more)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start(
    arguments, cwd, env, stdin=None, text=True, stdout=None, stderr=None, limit=None, session=False, removed=None
):
    """The same, going on: a `subprocess.Popen`, or what can do as much of it as tests ask for.

    stdout, stderr: files, where they are not to be read here. limit: (a RLIMIT of `resource`, a number). session: in a
    session of its own. removed: a folder that is removed before eprof starts.
    """
    command = [sys.executable, "-m", "eprof", *map(str, arguments)]
    if _CAN and "LD_PRELOAD" not in env:  # a server takes as long to start as three of these runs
        early = {key: env[key] for key in sorted(env) if key.startswith(_EARLY) and key not in _LATE}
        job = {"words": command[3:], "cwd": str(cwd), "env": env, "limit": limit, "session": session}
        job["removed"] = str(removed) if removed else None
        return _server(tuple(early.items())).start(command, job, stdin, (stdout, stderr), text)
    source = subprocess.PIPE if isinstance(stdin, str | bytes) else stdin or subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=cwd, env=env, text=text, stdin=source, stdout=stdout or subprocess.PIPE,
        stderr=stderr or subprocess.PIPE, start_new_session=session, preexec_fn=lambda: _restrict(limit, removed),
    )  # fmt: skip
    if isinstance(stdin, str | bytes):
        process.communicate = lambda timeout=None: subprocess.Popen.communicate(process, stdin, timeout)
    return process


@cache
def _server(early):
    return _Server(dict(early))


class _Server:
    """The process that forks, seen from the tests. It ends when the tests of all workers do: then no socket is open."""

    def __init__(self, early):
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        told = json.dumps([run, str(ROOT), early]).encode("utf-8", "surrogateescape")
        name = f"\0eprof-warm-{hashlib.sha256(told).hexdigest()}"
        while True:
            self._link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with contextlib.suppress(ConnectionRefusedError):
                return self._link.connect(name)
            self._link.close()
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door, contextlib.suppress(OSError):
                door.bind(name)  # an error: another worker was quicker
                door.listen()
                self._begin(early, door.fileno())

    @staticmethod
    def _begin(early, door):
        kept = {key: os.environ[key] for key in ("HOME", "PATH", "TMPDIR") if key in os.environ}
        subprocess.Popen(
            [sys.executable, __file__, str(door)], env={**kept, **early, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[door],
        )  # fmt: skip

    def start(self, command, job, stdin, outputs, text):
        (source, writers), (said, theirs) = _source(stdin), os.pipe()
        streams, readers = [source], []
        for one in outputs:
            ours, end = os.pipe() if one is None else (None, os.dup(one.fileno()))
            streams.append(end)
            readers.append(ours)
        message = json.dumps(job).encode("utf-8", "surrogateescape")
        socket.send_fds(self._link, [message], [theirs, *streams])
        for one in (theirs, *streams):
            os.close(one)
        for one in writers:
            _Thread(_write, *one)
        return _Started(command, said, [None if one is None else _Thread(_read, one) for one in readers], text)


class _Started:
    """A process that was forked, as `subprocess.Popen` would show it."""

    def __init__(self, command, said, readers, text):
        self.args, self._said, self._readers, self._text, self.returncode = command, said, readers, text, None
        self.pid = self._number()

    def _number(self):
        answer = os.read(self._said, 16)
        assert answer, "the process that forks eprof ended: does every module of eprof import?"
        return int(answer)

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._said], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = os.waitstatus_to_exitcode(self._number())
            os.close(self._said)
        return self.returncode

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def communicate(self, timeout=None):
        self.wait(timeout)
        found = [None if one is None else one.result(timeout) for one in self._readers]
        return tuple(
            io.TextIOWrapper(io.BytesIO(one), "utf-8").read() if self._text and one is not None else one
            for one in found
        )

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _source(stdin):
    """(the child's standard input, [(where to write, what)]), file descriptors both."""
    if isinstance(stdin, str | bytes):
        theirs, ours = os.pipe()
        return theirs, [(ours, stdin.encode() if isinstance(stdin, str) else stdin)]
    return os.open(os.devnull, os.O_RDONLY) if stdin in (None, subprocess.DEVNULL) else os.dup(stdin.fileno()), []


class _Thread(threading.Thread):
    def __init__(self, work, *arguments):
        super().__init__(daemon=True)
        self._work, self._arguments, self._result = work, arguments, None
        self.start()

    def run(self):
        self._result = self._work(*self._arguments)

    def result(self, timeout):
        self.join(timeout)
        assert not self.is_alive(), "somebody still holds an output of eprof open"
        return self._result


def _read(source):
    with open(source, "rb") as file:  # noqa: PTH123 - a descriptor
        return file.read()


def _write(target, data):
    try:
        with open(target, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(data)
    except BrokenPipeError:
        return


# ------------------------------------------------------------------------------------------------------- the server


def _prepare():
    """Every module of eprof (they import the heavy extras only when they need them), and the cellar, which never changes."""
    import eprof

    for module in pkgutil.walk_packages(eprof.__path__, "eprof."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from eprof import costs, profilers
    from eprof.counts import definition_files
    from eprof.show import html_page

    for once in (definition_files.definitions, definition_files.descriptions):
        once()
    for profiler in profilers.names():
        definition_files.names_in_use(profiler)
    for name in costs.tables():
        costs.load(name)
    # What most pages are made with; compiling it takes as long as the rest of a short report.
    importlib.import_module("pyarrow.pandas_compat")
    for path in (ROOT / "reports").glob("*.html"):
        if not path.name.startswith(("diff", "roofline", "validation")):
            html_page.templates().get_template(path.name)
    for name in ("report.css", "report.js"):
        html_page.asset(name)
    _rehearse()


def _rehearse():
    """Read, price, compare and show small logs, and compile all regular expressions: no child waits for these."""
    import eprof
    from eprof.base import text
    from eprof.commands.report import files, page, terminal
    from eprof.show import export

    samples = ROOT / "samples" / "logs"
    invented = [samples / "invented" / f"tk1-fmm-{what}.csv" for what in ("counters", "times")]
    for logs in (
        invented,
        [samples / "simulated" / "gemm-naive.txt"],
        [ROOT / "tests" / "golden" / "logs" / "ncu.csv"],
    ):
        profile = eprof.load(*logs, cache=False)
        document = profile.energy("jetson-tk1").document()
        for show in (export.to_json, files.to_markdown, terminal.text, page.html):
            show(document)
        eprof.diff(profile, profile, costs="jetson-tk1").document()
    for one in gc.get_objects():
        if type(one) is text._Pattern:
            for use in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
                getattr(one, use)


def _serve(door):
    """Fork for each call of whoever comes to the door; returns, in the child only, what to be. Ends when all have gone."""
    running, links = {}, [_entered(door)]
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([woken, door, *links], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell(running)
            continue
        if door in ready:
            links.append(_entered(door))
            continue
        link = ready[0]
        message, streams, _, _ = socket.recv_fds(link, 1 << 20, 4)
        if not message:
            links.remove(link)
            link.close()
            if links:
                continue
            os._exit(0)
        child = os.fork()
        if not child:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            ours = (one.detach() for one in (door, *links))
            for one in (*ours, woken, wake, streams.pop(0), *running.values()):
                os.close(one)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return json.loads(message.decode("utf-8", "surrogateescape"))
        running[child] = streams.pop(0)
        os.write(running[child], f"{child:<16}".encode())
        for stream in streams:
            os.close(stream)


def _entered(door):
    """A new link, to a process of the same user: the name of the door is no secret."""
    while True:
        link, _ = door.accept()
        if struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] == os.getuid():
            return link
        link.close()


def _tell(running):
    """Who waits for a child that ended reads how."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(running[child], f"{status:<16}".encode())
        os.close(running.pop(child))


def _restrict(limit, removed):
    """What the process does to itself before it becomes eprof."""
    if removed:
        os.rmdir(removed)  # noqa: PTH106
    if limit:
        resource.setrlimit(limit[0], (limit[1], limit[1]))


def _become(job):
    """`python -m eprof` with these words, from here on."""
    if job["session"]:
        os.setsid()
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    places = [job["cwd"], *job["env"].get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:] = [*places, *(one for one in sys.path[1:] if one not in places)]
    sys.argv[1:] = job["words"]
    gc.enable()
    _restrict(job["limit"], job["removed"])
    runpy.run_module("eprof", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _prepare()
    gc.collect()
    gc.disable()
    gc.freeze()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
