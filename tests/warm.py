"""`python -m eprof` in a process of its own, without waiting half a second for its imports each time.

A server, started once, imports what eprof imports and reads the cellar; for each call it forks, and the child becomes
`python -m eprof ARGUMENTS`: its own process with its own directory, environment, streams, exit code and end. What a start
from nothing shows (what is imported, how quick, closed streams, signals) is tested with processes that do start so.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What Python and the loader look at before eprof runs: a server for each choice of these. Others are set in the child.
_EARLY = ("LD_", "LC_", "LANG", "PYTHON", "MALLOC_", "OMP_", "OPENBLAS_", "ARROW_")
_LATE = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")


def run(arguments, cwd, env, stdin=None, text=True, timeout=120):
    """`python -m eprof ARGUMENTS` to its end, as `subprocess.run` would: a `CompletedProcess` with both outputs.

    stdin: text or bytes for a pipe, a file, or None for an empty input. Raises subprocess.TimeoutExpired.
    """
    command = [sys.executable, "-m", "eprof", *map(str, arguments)]
    if not hasattr(socket, "SOCK_SEQPACKET") or not sys.platform.startswith("linux"):
        source = {"input": stdin} if isinstance(stdin, str | bytes) else {"stdin": stdin or subprocess.DEVNULL}
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=text, timeout=timeout, **source)
    early = {key: env[key] for key in sorted(env) if key.startswith(_EARLY) and key not in _LATE}
    return _server(tuple(early.items())).call(command, cwd, env, stdin, text, timeout)


@cache
def _server(early):
    return _Server(dict(early))


class _Server:
    """The process that forks, seen from the tests. It ends when the tests do: then its socket is closed."""

    def __init__(self, early):
        kept = {key: os.environ[key] for key in ("HOME", "PATH", "TMPDIR") if key in os.environ}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link = ours
        subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], env={**kept, **early, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
        )  # fmt: skip
        theirs.close()

    def call(self, command, cwd, env, stdin, text, timeout):
        theirs, readers, writers = self._streams(stdin)
        job = {"words": command[3:], "cwd": str(cwd), "env": env}
        socket.send_fds(self._link, [json.dumps(job).encode("utf-8", "surrogateescape")], theirs)
        for one in theirs:
            os.close(one)
        threads = [_Thread(_write, *one) for one in writers] + [_Thread(_read, one) for one in readers]
        answer = self._link.recv(64)
        assert answer, "the process that forks eprof ended: does every module of eprof import?"
        pid = int(answer)
        self._link.settimeout(timeout)
        try:
            code = int(self._link.recv(64))
        except TimeoutError:
            os.kill(pid, 9)
            self._link.settimeout(None)
            self._link.recv(64)
            raise subprocess.TimeoutExpired(command, timeout) from None
        self._link.settimeout(None)
        out, err = (one.result(timeout) for one in threads[-2:])
        if text:
            out, err = (io.TextIOWrapper(io.BytesIO(one), encoding="utf-8").read() for one in (out, err))
        return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(code), out, err)

    @staticmethod
    def _streams(stdin):
        """(three for the child, two to read, those to write with what to write), file descriptors all."""
        (out, out_in), (err, err_in) = os.pipe(), os.pipe()
        if isinstance(stdin, str | bytes):
            theirs, ours = os.pipe()
            return [theirs, out_in, err_in], [out, err], [(ours, stdin.encode() if isinstance(stdin, str) else stdin)]
        source = os.open(os.devnull, os.O_RDONLY) if stdin in (None, subprocess.DEVNULL) else os.dup(stdin.fileno())
        return [source, out_in, err_in], [out, err], []


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
    from eprof import costs, counters

    for once in (counters.definitions, counters.names_in_use, counters.descriptions, counters.other_names):
        once()
    for name in costs.tables():
        costs.load(name)


def _serve(link):
    """Fork for each call; returns, in the child only, what to be. Ends when the tests have."""
    while True:
        message, streams, _, _ = socket.recv_fds(link, 1 << 20, 3)
        if not message:
            os._exit(0)
        child = os.fork()
        if not child:
            link.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return json.loads(message.decode("utf-8", "surrogateescape"))
        for stream in streams:
            os.close(stream)
        link.send(str(child).encode())
        link.send(str(os.waitpid(child, 0)[1]).encode())


def _become(job):
    """`python -m eprof` with these words, from here on."""
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    places = [job["cwd"], *job["env"].get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:] = [*places, *(one for one in sys.path[1:] if one not in places)]
    sys.argv[1:] = job["words"]
    gc.enable()
    runpy.run_module("eprof", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _prepare()
    gc.collect()
    gc.disable()
    gc.freeze()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
