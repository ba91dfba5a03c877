"""Marks that a Python program sets itself: `with eprof.mark("assemble"):`. (C, C++ and Fortran: `eprof_mark.h`.)

PowerPack's start, stop and label ([S] 3.2.1). `eprof run` names the table to write marks to in the variable
`EPROF_MARKS`, or `COUNTED`: then callgrind is told of them, by `profilers/callgrind/hook`. Without the variable a mark
is a look into a dictionary. Where a profiler listens to NVTX, a mark is a range of NVTX, too.
"""

import csv
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eprof.base.text import phrase, printable, visible, when

VARIABLE = "EPROF_MARKS"
COUNTED = "valgrind"
TELL = "_eprof_mark"  # of `sys`: what takes "+" or "-" and a name (`profilers/callgrind/hook`)
COLUMNS = ("begin_s", "end_s", "name", "rank")
LONGEST_NAME = 200
# Who sets marks: processes that inherit the number of another are its children. MPI says which rank it is.
_PROCESS = "EPROF_MARKS_PROCESS"
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")


@contextmanager
def mark(name: str) -> Iterator[None]:
    """Mark the part of a program inside the `with` block, so that `eprof run` tells its joules; marks may be nested.

    Also a decorator: `@eprof.mark("assemble")`. Times are s since the epoch, as `eprof timeline` reads them.
    """
    nvtx = _nvtx()
    if nvtx is not None:
        nvtx.push_range(name)
    begin_s = time.time()
    # Written twice: a mark that a crash ends is not lost.
    _write(name, begin_s, None)
    try:
        yield
    finally:
        _write(name, begin_s, time.time())
        if nvtx is not None:
            nvtx.pop_range()


def get_include() -> str:
    """The folder of `eprof_mark.h`, for a compiler's -I."""
    return str(Path(__file__).parent)


def row(begin_s: float, end_s: float | None, name: str, rank: str) -> str:
    """One line of the table of marks, CSV of `COLUMNS`. end_s: None where the mark has not ended."""
    end = phrase("{:.6f}", end_s)
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow([f"{begin_s:.6f}", end, visible(name)[:LONGEST_NAME], rank])
    return line.getvalue()


def _write(name: str, begin_s: float, end_s: float | None) -> None:
    """Write a mark to the table that `EPROF_MARKS` names, or tell callgrind, if `eprof run` wants marks at all."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    if path == COUNTED:
        tell = getattr(sys, TELL, None)
        if tell is not None:
            tell(when(end_s is None, "+") or "-", printable(name)[:LONGEST_NAME])
        return
    try:
        # Which rank, process and thread marks; none for the main thread of the only process.
        own = str(os.getpid())
        ranks = (f"rank {os.environ[name]}" for name in _RANK if name in os.environ)
        words = [next(ranks, "")]
        if os.environ.setdefault(_PROCESS, own) != own:
            words.append(f"process {own}")
        if threading.current_thread() is not threading.main_thread():
            words.append(f"thread {threading.get_native_id()}")
        append(path, row(begin_s, end_s, name, " ".join(filter(None, words))))
    except OSError as err:
        del os.environ[VARIABLE]
        warnings.warn(f"{path}: marks are lost from here on ({err.strerror}).", RuntimeWarning, stacklevel=2)


def append(path: str, line: str) -> None:
    """Add a line to the table of marks at `path`, below its header; in one piece, as others write. Raises OSError."""
    with Path(path).open("ab", buffering=0) as table:
        header = when(not table.tell(), ",".join(COLUMNS) + "\n")
        table.write((header + line).encode("utf-8", "surrogateescape"))


def _nvtx() -> Any:
    """The module nvtx, or PyTorch's range functions; None unless a profiler listens or the program has loaded nvtx."""
    if "NVTX_INJECTION64_PATH" not in os.environ and "nvtx" not in sys.modules:
        return None
    try:
        return import_module("nvtx")
    except ImportError:
        torch = sys.modules.get("torch")
        return torch and SimpleNamespace(push_range=torch.cuda.nvtx.range_push, pop_range=torch.cuda.nvtx.range_pop)
