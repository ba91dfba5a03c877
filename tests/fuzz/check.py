"""What must hold for any bytes: a report or one sentence, soon, in bounded memory, never a total out of nothing."""

import tempfile
import time
from pathlib import Path

import numpy as np

from eprof import api
from eprof.errors import EprofError
from eprof.logs import combine, read
from eprof.logs.reading import read_tuned
from eprof.logs.stream import Tuning
from eprof.logs.table import Log

SLOW_S = 5.0
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


def attempt(data: bytes, tuning: Tuning | None = None) -> Log | None:
    """What the reader makes of bytes; None where it refuses them in one line."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(data)
        file.flush()
        try:
            return read(file.name) if tuning is None else read_tuned(file.name, tuning)
        except EprofError as err:
            assert str(err) and "\n" not in str(err), f"not one line: {err!r}"
            return None


def check(data: bytes) -> None:
    """Raises AssertionError, or whatever a reader should not have raised."""
    start = time.process_time()
    log = attempt(data)
    if log is not None:
        joined = combine([log])
        values = joined.counters.to_numpy()
        assert not (values < 0).any() and not np.isinf(values).any(), "a count that is none"
        times = joined.kernels["time_s"].to_numpy()
        assert not (times < 0).any() and not np.isinf(times).any(), "a time that is none"
        assert (joined.kernels["launches"] >= 0).all()
    assert time.process_time() - start < SLOW_S + len(data) / 1e5, "too slow"


def check_whole(data: bytes) -> None:
    """As `check`, through to the document."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(data)
        file.flush()
        try:
            document = api.load(file.name).energy("gtx680").document()
        except EprofError as err:
            assert str(err) and "\n" not in str(err), f"not one line: {err!r}"
            return
        assert document["kernels"]


def totals(log: Log) -> dict[str, float]:
    """The sum of each counter over kernels, and of the time, where it is known; averages left out."""
    joined = combine([log])
    sums = joined.counters[[name for name, unit in joined.units.items() if unit == "count"]].sum()
    return {**sums.to_dict(), "time_s": float(joined.kernels["time_s"].sum())}


def check_less(whole: bytes, damaged: bytes) -> None:
    """A log that lost something has no higher total than the whole, unless a sentence is there that was not before."""
    before, after = attempt(whole), attempt(damaged)
    if before is None or after is None or set(after.notes) - set(before.notes) or combine([after]).warnings:
        return
    old = totals(before)
    for name, value in totals(after).items():
        assert value <= old.get(name, np.inf) * (1 + 1e-9), f"{name}: {value} of a part, {old[name]} of the whole"
