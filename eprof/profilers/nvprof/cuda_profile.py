"""Logs of CUDA's command-line profiler (CUDA_PROFILE=1), which came before nvprof: a line a launch or a copy.

Its lines are handed on as rows of nvprof's summary, a launch each. Times are in µs (NVIDIA, "Compute Command Line
Profiler User Guide", DU-05982). The rows tell their columns by name, or below a header (CUDA_PROFILE_CSV=1).
"""

from collections.abc import Container, Iterator

from eprof.base.text import pattern
from eprof.logs.log import Log
from eprof.logs.stream import Source, Tuning
from eprof.profilers.nvprof.reader import walk

_DEVICE = pattern(r"# CUDA_DEVICE (\d{1,6}) (\S.*)")
_CELL = pattern(r"(?<!\w)(\w{1,40})=\[ ([^\[\]]{0,9999}) \]")
_TIME = pattern(r"\d{1,15}(?:\.\d{1,9})?")
_COPY = pattern(r"memcpy([HDAP]to[HDAP])\w*")
_HEADER = b'"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,us,,us,us,us,\n'


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None, *_: object) -> Log:
    """Read a log of CUDA's profiler before nvprof. keep, parts: see `logs.read`. Raises LogError without kernels."""
    return walk(source, _as_of_nvprof(pieces), Tuning(), None, {}, keep, parts, 0).log(False)


def _as_of_nvprof(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks of a log of the profiler before nvprof, turned into nvprof's CSV; a line that is not understood stays."""
    columns: list[str] = []
    yield _HEADER
    for piece in pieces:
        lines = piece.decode("utf-8", "replace").splitlines()
        yield "".join(_row(line, columns) for line in lines).encode()


def _row(line: str, columns: list[str]) -> str:
    """A line of the profiler before nvprof as nvprof's CSV, "" for comments. columns: set in place by a header line."""
    if device := _DEVICE.fullmatch(line.rstrip()):
        return f'Device "{device[2].strip()} ({device[1]})"\n'
    if line.startswith("#"):
        return ""
    if not columns and "gputime" in line.split(","):
        columns += line.strip().split(",")
        return ""
    cells = dict(_CELL.findall(line)) or dict(zip(columns, line.strip().split(","), strict=False))
    name, time = cells.get("method", ""), cells.get("gputime", "")
    if not name or not _TIME.fullmatch(time):
        return f"{line}\n"
    copy = _COPY.fullmatch(name)
    shown = f"[CUDA memcpy {copy[1]}]" if copy else name.replace('"', '""')
    if name.startswith("memset"):
        shown = "[CUDA memset]"
    return f'"GPU activities",0,{time},1,{time},{time},{time},"{shown}"\n'
