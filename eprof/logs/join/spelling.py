"""Kernels that traces and the logs of ncu spell differently: "(bool)1" or "true", "float*" or "float *".

Times of nsys or of PyTorch's profiler belong to the kernels that ncu counted. Names that differ in spelling only are
made the same; then those that differ in their parameters, which ncu writes as "T1"; then those whose functions have the
same name, if there is only one such kernel on each side. Where that does not tell, ncu's own time of the kernel is left
to stand for both: a kernel is never timed twice.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np
from msgspec.structs import replace

from eprof import profilers
from eprof.base.kernels import core
from eprof.base.optional import gathered
from eprof.base.text import pattern, when
from eprof.logs.log import Log

_UNNAMED = pattern(r"<unnamed>|\(anonymous namespace\)")
_CAST = pattern(r"\((?:bool|char|short|int|long|long long|unsigned(?: (?:char|short|int|long|long long))?)\)(?=-?\d)")
_SUFFIX = pattern(r"\b(\d+)(?:u|l|ul|ull|ll)\b", re.IGNORECASE)
_LAMBDA = pattern(r"\[lambda\(([^\[\]]*)\) \(instance (\d+)\)\]")
_CONST = pattern(r"\bconst\b")  # before its type or behind it
_SPACE = pattern(r"\s+(?=\W)|(?<=\W)\s+")
_EXAMPLES = 3
_OTHER_WORDS = (("true", "1"), ("false", "0"))


def agree(logs: Sequence[Log]) -> tuple[Sequence[Log], list[str]]:
    """The logs with one spelling for each kernel's name, that of ncu, and sentences on what was changed or left out."""
    counted = _kernels(logs, profilers.unions())
    if not counted:
        return logs, []
    names, ambiguous = match(_kernels(logs, profilers.timed()), counted)
    if not names and not ambiguous:
        return logs, []
    respelled = []
    for log in logs:
        tables = list(log.tables)
        for place, table in enumerate(tables):
            if table.kind in profilers.timed():
                kernel = table.rows.kernel
                rows = replace(table.rows, kernel=kernel.renamed(names.get(name, name) for name in kernel.names))
                is_clear = np.array([name not in ambiguous for name in kernel.names], dtype=bool)
                tables[place] = replace(table, rows=rows).chosen(is_clear[kernel.codes])
        respelled.append(replace(log, tables=tuple(tables)))
    notes = []
    if ambiguous:
        more = when(len(ambiguous) > _EXAMPLES, " and others")
        notes.append(
            f"a trace times {', '.join(f'`{name}`' for name in ambiguous[:_EXAMPLES])}{more}, which may be one of "
            "several kernels that ncu names otherwise: these times were not used"
        )
    return respelled, notes


def match(timed: Collection[str], counted: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Name in a trace -> ncu's name, where these differ; and the names that may be any of several of ncu's."""
    timed_only = sorted(set(timed) - set(counted))
    counted_only = sorted(set(counted) - set(timed))
    names: dict[str, str] = {}
    for key in (spelled, without_parameters, function):
        groups = gathered((key(name), name) for name in counted_only)
        for name, timed_names in gathered((key(name), name) for name in timed_only).items():
            if len(timed_names) == 1 == len(groups.get(name, ())):
                names[timed_names[0]] = groups[name][0]
        timed_only = [name for name in timed_only if name not in names]
        counted_only = [name for name in counted_only if name not in names.values()]
    left = set(map(function, counted_only))
    return names, [name for name in timed_only if function(name) in left]


def function(kernel: str) -> str:
    """The name of the kernel's function, without what it returns, its template arguments and its parameters."""
    bare = _UNNAMED.sub("{}", kernel)
    return re.split(r"[<(]", bare, maxsplit=1)[0].rpartition(" ")[2]


def spelled(kernel: str) -> str:
    """The kernel's name without the blanks, casts, suffixes and `const` that only some versions of the tools write."""
    name = _LAMBDA.sub(r"{lambda(\1)#\2}", _CONST.sub("", _UNNAMED.sub("{}", kernel)))
    name = _SUFFIX.sub(r"\1", _CAST.sub("", name))
    for word, number in _OTHER_WORDS:
        name = re.sub(rf"\b{word}\b", number, name)
    return _SPACE.sub("", name.strip())


def without_parameters(kernel: str) -> str:
    """The kernel's name and template arguments: ncu spells parameters as "T1", other tools as their types."""
    start, end = core(kernel)
    return spelled(kernel[start:end])


def _kernels(logs: Sequence[Log], kinds: Collection[str]) -> set[str]:
    tables = [table for log in logs for table in log.tables if table.kind in kinds]
    return {table.rows.kernel.names[code] for table in tables for code in set(table.rows.kernel.codes.tolist())}
