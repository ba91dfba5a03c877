"""What the tests of logs share: the real logs, lines to make logs of, and ways to compare what was read."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from frames_support import combine

from eprof.logs import read
from eprof.logs.stream import Tuning

REAL = Path(__file__).parents[3] / "shared" / "data" / "nvprof"
NAMES = sorted(path.name for path in REAL.glob("*")) if REAL.is_dir() else []
METRICS = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"'
EVENTS = '"Device","Kernel","Invocations","Event Name","Min","Max","Avg"'
TRACE = (
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread",'
    '"Static SMem","Dynamic SMem","Size","Throughput","Device","Context","Stream","Name"'
)
TRACE_UNITS = "s,ms,,,,,,,,KB,B,MB,GB/s,,,,"
USAGE = '"Time(%)","Time","Calls","Avg","Min","Max","Name"'
K20C = "Tesla K20c (0)"
# Tunings that must not change what is read: everything together, everything line by line, tiny blocks.
TOGETHER = Tuning(fast_from=1)
ONE_BY_ONE = Tuning(fast_from=1 << 60)
TINY = Tuning(chunk_bytes=7, fast_from=1 << 60)


def real(name):
    """The path of a real log; skips where the shared data is not there."""
    if not (REAL / name).exists():
        pytest.skip(f"needs the real log {name}, which is not part of this project")
    return REAL / name


def profiled(pid=1, *lines, command="./made_up"):
    """nvprof's lines around a result."""
    return "\n".join(
        [
            f"=={pid}== NVPROF is profiling process {pid}, command: {command}",
            f"=={pid}== Profiling application: {command}",
            f"=={pid}== Profiling result:",
            *lines,
            "",
        ]
    )


def metric(name, average, kernel="axpy(int, float*)", launches=2, device=K20C):
    """A row of a metrics summary."""
    kernel = kernel.replace('"', '""')
    return f'"{device}","{kernel}",{launches},"{name}","{name} described",{average},{average},{average}'


def event(name, average, kernel="axpy(int, float*)", launches=2, device=K20C):
    """A row of an events summary without Total."""
    return f'"{device}","{kernel}",{launches},"{name}",{average},{average},{average}'


def launch(ms, kernel="axpy(int, float*)", number=1, device=K20C):
    """A row of a GPU trace."""
    return f'0.5,{ms},64,1,1,32,1,1,21,0.0,0,,,"{device}","1","7","{kernel} [{number}]"'


def write(tmp_path, text, name="log.csv", packed=False, encoding="utf-8"):
    """A log file with this text (or bytes)."""
    data = text if isinstance(text, bytes) else text.encode(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def totals(*logs):
    """(device, kernel, counter) -> value, and times and launches beside the counters; without what is not known."""
    joined = combine(list(logs))
    found = {}
    for i, row in joined.kernels.iterrows():
        values = {**joined.counters.loc[i].to_dict(), "launches": row["launches"], "time_s": row["time_s"]}
        found.update({(row["device"], row["kernel"], name): value for name, value in values.items() if value == value})
    return found


def same(one, other):
    """Whether two results of `totals` are equal up to rounding."""
    return one.keys() == other.keys() and all(np.isclose(one[key], other[key], rtol=1e-12, atol=0) for key in one)


def cell(log, counter, kernel=None):
    """The one value of a counter in a log (of a kernel whose name starts so)."""
    for table in log.tables:
        if counter in table.counters:
            chosen = table.counters[counter]
            if kernel is not None:
                chosen = chosen[[name.startswith(kernel) for name in table.rows.kernel.texts()]]
            (value,) = chosen
            return value
    raise AssertionError(f"{counter} is in no table")


def unit(log, counter):
    """The unit of a counter."""
    return next(table.units[counter] for table in log.tables if counter in table.units)


def picture(log):
    """All that was read, in a form that compares, without the last digits, which depend on the order of adding up."""

    def rounded(frame):
        return [
            [f"{cell:.12g}" if isinstance(cell, float) else str(cell) for cell in row] for row in frame.values.tolist()
        ]

    return (
        log.format,
        log.lines,
        log.skipped_lines,
        log.command,
        log.runs,
        log.notes,
        [
            (t.kind, rounded(t.rows.frame()), t.counters.names, rounded(t.counters.frame()), dict(t.units))
            for t in log.tables
        ],
    )


def read_tuned(path, tuning, **options):
    """As `read`, holding as much at once as `tuning` says."""
    return read(path, tuning=tuning, **options)


__all__ = [name for name in dir() if name[0] != "_"] + ["read"]


def example_of_skipped(log):
    """The line that a note of the log gives as an example of those that are no part of a table."""
    return next(
        example for _, found, example in (note.partition("skipped, for example: ") for note in log.notes) if found
    )
