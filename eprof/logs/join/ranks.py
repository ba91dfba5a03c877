"""Which rank of a parallel program a log is of: its name or the user gives it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from eprof.base.errors import UsageError
from eprof.base.optional import gathered, only
from eprof.base.text import pattern, when
from eprof.logs.log import Log, Names

# What rows of one kernel can be told apart by.
RANK, STREAM, NVTX, MARK = "rank", "stream", "nvtx", "mark"
RANGES = (NVTX, MARK)  # a mark is a range of NVTX where a GPU is profiled
PARTS = (RANK, STREAM, *RANGES)
NO_RANGE = "(outside of ranges)"  # a part of launches on a GPU
OUTSIDE = "(outside of marks)"  # a part of what ran on a CPU
_NUMBER = pattern(r"\d+")
_EXAMPLES = 3


def ranks(paths: Sequence[Path], pattern: str | None, each: bool = False) -> dict[Path, str]:
    """The rank of each log or run directory, as text; numbers without zeros in front.

    pattern: a regular expression whose first group is the rank; it is looked for in the names below the folder that all
    share, and where it is not in all of these, in the whole paths. Without one, the rank is the number in the names
    that differs between logs named alike ("rank0/metrics.csv", "rank1/metrics.csv"), or the only one in the name of a
    single log. each: where the names give none,
    every path is a rank of its own (run directories), by its name. Raises UsageError, one sentence, if there is none.
    """
    folder = os.path.commonpath([path.parent for path in paths])
    names = [os.path.relpath(path, folder) for path in paths]
    if pattern is not None:
        return dict(zip(paths, _matched(paths, names, pattern), strict=True))
    alike = gathered((_NUMBER.sub("#", name), place) for place, name in enumerate(names))
    rank_of: dict[Path, str] = {}
    for places in alike.values():
        of_names = [_NUMBER.findall(names[place]) for place in places]
        # The one number in which names that are else alike differ is the rank of each.
        columns = [column for column in zip(*of_names, strict=True) if len(set(column)) > 1]
        numbers = only({tuple(map(int, column)): list(column) for column in columns}.values())
        if len(paths) == 1:
            numbers = of_names[0][:1] if len(set(map(int, of_names[0]))) == 1 else None
        if numbers is None and each and len(paths) > 1:
            return dict(zip(paths, names, strict=True))
        if numbers is None:
            examples = ", ".join(names[place] for place in places[:_EXAMPLES])
            raise UsageError(
                f"--group rank: no one number in the names of the inputs ({examples}"
                f"{when(len(places) > _EXAMPLES, ' ...')}) tells their ranks; say where it stands with a regular "
                r"expression, such as --rank 'rank(\d+)'."
            )
        rank_of |= {paths[place]: _plain_rank(number) for place, number in zip(places, numbers, strict=True)}
    return {path: rank_of[path] for path in paths}


def labelled(log: Log, rank: str) -> Log:
    """The log with its MPI rank as the part of all its rows."""
    tables = []
    for table in log.tables:
        part = Names((rank,), np.zeros(len(table.rows), dtype=np.int8))
        tables.append(replace(table, rows=replace(table.rows, part=part)))
    return replace(log, tables=tuple(tables))


def _matched(paths: Sequence[Path], names: Sequence[str], pattern: str) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as err:
        raise UsageError(f"--rank {pattern}: not a regular expression ({err}).") from err
    if not compiled.groups:
        raise UsageError(rf"--rank {pattern}: put the rank in parentheses, such as 'rank(\d+)'.")
    for texts in (names, [str(path) for path in paths]):
        matches = [compiled.search(text) for text in texts]
        if all(matches):
            break
    for name, match in zip(names, matches, strict=True):
        if not match or not match[1]:
            raise UsageError(f"--rank {pattern}: tells no rank in {name}; it must for every input.")
    return [_plain_rank(match[1]) for match in matches if match]


def _plain_rank(rank: str) -> str:
    return str(int(rank)) if rank.isascii() and rank.isdigit() else rank
