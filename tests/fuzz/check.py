"""What must hold for any bytes: a report or one sentence, soon, in bounded memory, never a total out of nothing.

A check that goes through to the tables and their sums takes ten times as long as reading: most inputs are read as far
as the numbers of each row (`check_rows`), one of `EVERY` further. See docs/fuzzing.md.
"""

import math
import signal
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from frames_support import combine

from eprof.base.arrays import Columns
from eprof.base.errors import EprofError
from eprof.base.text import printable
from eprof.logs import read
from eprof.logs.log import Log, Names, Table, TableRows
from eprof.logs.stream import Tuning
from eprof.nvidia import folding
from eprof.nvidia import tables as nsys
from eprof.profile import api
from eprof.profilers.ncu import report as ncu_report_blocks
from eprof.profilers.oclgrind import reader as oclgrind

SLOW_S = 5.0
ENDLESS_S = 60.0
LONGEST = 5000  # characters of a sentence
NO_NUMBERS = np.zeros(0)
NO_ROWS = TableRows(Names.of([]), Names.of([]), run=NO_NUMBERS, launches=NO_NUMBERS, time_s=NO_NUMBERS)
STAND_IN = Table("as far as rows", NO_ROWS, Columns.of({}, 0), {})
_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_FOLDER = tempfile.TemporaryDirectory(dir=_IN_MEMORY, prefix="eprof-fuzz-")
refusals: deque[str] = deque(maxlen=1)  # what was said last
FOLDER = _FOLDER.name  # gone with this process


@contextmanager
def as_file(data: bytes, name: str = "log") -> Iterator[str]:
    """The path of a file in memory that holds `data`; the next call with this name writes over it."""
    path = f"{FOLDER}/{name}"
    Path(path).write_bytes(data)
    yield path


@contextmanager
def strictly(data: bytes) -> Iterator[None]:
    """Time is bounded, warnings of libraries are errors, and an `EprofError` is one line."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {ENDLESS_S} s")

    start = time.process_time()
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except EprofError as err:
        said = printable(str(err))  # as the command line shows it
        refusals.append(said)
        assert said.strip() and "\n" not in said and len(said) < LONGEST, f"not one sentence: {said[:LONGEST]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert time.process_time() - start < SLOW_S + len(data) / 1e5, "too slow"


def attempt(data: bytes, tuning: Tuning | None = None, columns: Sequence[str] | None = None) -> Log | None:
    """What the reader makes of bytes; None where it refuses them in one line."""
    log = None
    with as_file(data) as path, strictly(data):
        log = read(path, columns=columns, tuning=tuning)
    return log


def _sound(values: Any, what: str) -> None:
    """Known values are finite and not negative."""
    values = np.asarray(values, dtype=np.float64)
    assert not (values < 0).any() and not np.isinf(values).any(), f"{what} that is none"


def _sound_counts(values: Any, unit: str) -> None:
    """As `_sound`; a counter that is no count may be negative, but is finite."""
    _sound(values if unit == "count" else np.abs(values), "a count")


def check(data: bytes, columns: Sequence[str] | None = None) -> None:
    """Raises AssertionError, or whatever a reader should not have raised."""
    log = attempt(data, columns=columns)
    with strictly(data):
        if log is not None:
            check_log(log)


def check_log(log: Log) -> None:
    """What must hold of a log that was read, and of its sums."""
    for table in log.tables:
        _sound(table.rows.launches, "a number of launches")
    joined = combine([log])
    for name, unit in joined.units.items():
        _sound_counts(joined.counters[name], unit)
    _sound(joined.kernels["time_s"], "a time")
    _sound(joined.kernels["launches"], "a number of launches")


def check_rows(data: bytes, columns: Sequence[str] | None = None) -> None:
    """As `check`, as far as the rows of each table."""
    before = [getattr(where, name) for where, name, _ in _STAND_INS]
    try:
        for where, name, stand_in in _STAND_INS:
            setattr(where, name, stand_in)
        attempt(data, columns=columns)
    finally:
        for (where, name, _), own in zip(_STAND_INS, before, strict=True):
            setattr(where, name, own)


def _of_store(self: folding.TableStore) -> tuple[Table, ...]:
    for piece in (one for some in self.pieces.values() for one in some):
        _sound(piece.launches, "a number of launches")
        if piece.time_s is not None:
            _sound(piece.time_s, "a time")
        for values, kinds in piece.counters.values():
            for kind in np.unique(kinds[kinds >= 0]).tolist():
                _sound_counts(values[kinds == kind], folding.UNITS[kind])
    return (STAND_IN,) * len(self.pieces)


def _of_nsys(self: nsys.Nsys) -> Table:
    _sound([kernel.launches for kernel in self.kernels], "a number of launches")
    _sound([kernel.time_s for kernel in self.kernels], "a time")
    return STAND_IN


def _of_oclgrind(kernels: dict[str, oclgrind.Kernel], _: object) -> tuple[Table, list[str]]:
    for kernel in kernels.values():
        _sound([float(one) for one in kernel.counts.values()], "a count")
        _sound(kernel.launches, "a number of launches")
        oclgrind.decide_type(kernel)
    return STAND_IN, []


_STAND_INS = (
    (folding.TableStore, "tables", _of_store),
    (nsys.Nsys, "table", _of_nsys),
    (oclgrind, "_table", _of_oclgrind),
)


def sound(value: Any, name: str = "") -> None:
    """Every number of a document is finite, and no energy or time is negative."""
    if isinstance(value, dict):
        for key, one in value.items():
            sound(one, str(key))
    elif isinstance(value, list | tuple):
        for one in value:
            sound(one, name)
    elif isinstance(value, float | int):
        assert math.isfinite(value), f"{name} is {value}"
        assert value >= 0 or not name.endswith(("_j", "_s")) or name == "change_j", f"{name} is negative"


def check_whole(data: bytes, columns: Sequence[str] | None = None) -> None:
    """As `check`, through to the document."""
    with as_file(data) as path, as_file(",".join(columns or ()).encode(), "columns") as named, strictly(data):
        document = api.load(path, columns=named if columns else None).energy("gtx680").document()
        assert document["kernels"]
        sound(document)


def check_container(data: bytes) -> None:
    """What eprof itself reads of a report of ncu: its container."""
    with as_file(data) as path, strictly(data), Path(path).open("rb") as handle:
        shape = ncu_report_blocks.report_file_of(path, handle)
        assert shape.results <= len(data), "more launches than bytes"


def totals(log: Log) -> dict[str, float]:
    """The sum of each counter over kernels, and of the time, where it is known; averages left out."""
    joined = combine([log])
    sums = joined.counters[[name for name, unit in joined.units.items() if unit == "count"]].sum()
    return {**sums.to_dict(), "time_s": float(joined.kernels["time_s"].sum())}


def check_less(whole: bytes, damaged: bytes, columns: Sequence[str] | None = None) -> None:
    """A log that lost something has no higher total than the whole, unless a sentence is there that was not before."""
    before, after = attempt(whole, columns=columns), attempt(damaged, columns=columns)
    if before is None or after is None or set(after.notes) - set(before.notes):
        return
    if any(combine([log]).warnings for log in (before, after)):  # the whole may have left out something too
        return
    old = totals(before)
    for name, value in totals(after).items():
        assert value <= old.get(name, np.inf) * (1 + 1e-9), f"{name}: {value} of a part, {old.get(name)} of the whole"
