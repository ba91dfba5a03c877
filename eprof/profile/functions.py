"""Energy of functions: with their callees, and by source line.

A log of calls says what ran beneath each (callgrind, in instructions, exactly). A caller gets of its callee's energy,
with what that calls in turn, the share of the instructions that ran beneath its calls; that joules go as instructions
do is an estimate, gprof's (Graham, Kessler, McKusick 1982). Functions that call each other in a circle have the energy
of the whole circle each.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints, known_or_zero
from eprof.base.optional import added
from eprof.base.vocabulary import ESTIMATED
from eprof.counts.counts import count
from eprof.counts.times import by_share
from eprof.energy.attribution import attribute, given_way
from eprof.energy.clocks import with_active_cycles
from eprof.logs import combine
from eprof.logs.log import Log
from eprof.logs.runs import Key
from eprof.profile import schema
from eprof.profile.priced import Priced

_MOST_CALLED, _MOST_CALLERS, _DEEPEST = 100, 3, 16  # functions of libraries; lines that call each; calls above each
_LEAST_SHARE = 0.01
_Edges = Mapping[int, Mapping[int, float]]  # caller -> callee -> instructions beneath


class Inclusive(NamedTuple):
    """The known energy of each row with its callees, in J, that above constant power, and what marks it; (n_rows,)."""

    energy_j: Floats
    above_j: Floats
    marks: Ints


def inclusive(energy: Priced) -> Inclusive | None:
    """The energy of each kernel or function with all that it calls; None where no log tells calls.

    Of some kernels alone (`-k`) nothing is told: what they call is not there.
    """
    if energy.split is None or not energy.profile.whole or not any(log.calls for log in energy.profile.logs):
        return None
    rows = energy.counts.rows
    row_of = {key: row for row, key in enumerate(_keys(rows.device, rows.kernel, rows.part))}
    beneath: dict[int, dict[int, float]] = {}
    for log in energy.profile.logs:
        places = _rows_by_name(log, row_of)
        for caller, callee, number, _ in log.calls.each() if log.calls else ():
            if caller in places and callee in places and caller != callee:
                added(beneath.setdefault(places[caller], {}), places[callee], number)
    own_j = known_or_zero(np.stack([energy.split.total_j, energy.split.work_j], axis=1))
    return _summed(own_j, energy.split.family_marks["total"] | ESTIMATED, beneath)


def _keys(devices: Iterable[object], names: Iterable[object], parts: Iterable[object] | None) -> Iterator[Key]:
    """A key for each row, of device, name and part: one function may have a row on each machine and in each rank."""
    return map(Key, devices, names, parts if parts is not None else repeat(None))


def _rows_by_name(log: Log, row_of: Mapping[Key, int]) -> dict[str, int]:
    keys = chain.from_iterable(
        _keys(rows.device.texts(), rows.kernel.texts(), None if rows.part is None else rows.part.texts())
        for rows in (table.rows for table in log.tables)
    )
    return {str(key.kernel): row_of[key] for key in keys if key in row_of}


def _summed(own_j: Floats, own_marks: Ints, beneath: _Edges) -> Inclusive:
    """The joules and marks of each node with all that it calls. own_j: in all and above, (n_nodes, 2)."""
    circles = list(_circles(len(own_j), beneath))
    circle_of = {node: number for number, circle in enumerate(circles) for node in circle}
    calls: list[dict[int, float]] = [{} for _ in circles]
    called = np.zeros(len(circles))
    for caller, callees in beneath.items():
        for callee, number in callees.items():
            above, below = circle_of[caller], circle_of[callee]
            if above != below:
                added(calls[above], below, number)
                called[below] += number

    joules = np.zeros((len(circles), own_j.shape[1]))
    marks = np.zeros(len(circles), dtype=int)
    for number, circle in enumerate(circles):
        joules[number] = own_j[circle].sum(axis=0)
        marks[number] = np.bitwise_or.reduce(own_marks[circle])
        for below, weight in calls[number].items():
            if called[below]:
                joules[number] += joules[below] * weight / called[below]
                marks[number] |= marks[below]
    place = [circle_of[node] for node in range(len(own_j))]
    return Inclusive(joules[place, 0], joules[place, 1], marks[place])


def _circles(nodes: int, beneath: _Edges) -> Iterator[list[int]]:
    """Yields lists of nodes that call each other in a circle (most of one node), callees before callers (Tarjan 1972).

    Without recursion, which deep calls would exhaust.
    """
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: list[int] = []
    is_open: set[int] = set()
    for root in range(nodes):
        if root in order:
            continue
        path: list[tuple[int, Iterator[int]]] = [(root, iter(beneath.get(root, {})))]
        while path:
            node, callees = path[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                open_.append(node)
                is_open.add(node)
            following = next((callee for callee in callees if callee not in order or callee in is_open), None)
            if following is not None:
                if following in order:
                    lowest[node] = min(lowest[node], order[following])
                else:
                    path.append((following, iter(beneath.get(following, {}))))
                continue
            path.pop()
            if path:
                lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
            if lowest[node] == order[node]:
                circle = [open_.pop()]
                while circle[-1] != node:
                    circle.append(open_.pop())
                is_open.difference_update(circle)
                yield circle


def callers(energy: Priced) -> dict[str, list[schema.Caller]]:
    """Library function -> the program's own functions that it ran beneath: each one's share, and the line with most.

    Above other functions of libraries each of these has its callers' shares, as far up as is told.
    """
    called_by: dict[str, dict[tuple[str, str], float]] = {}
    libraries: set[str] = set()
    for log in energy.profile.logs:
        if log.calls:
            libraries.update(log.calls.libraries)
            for caller, callee, number, place in log.calls.each():
                if caller != callee and callee in log.calls.libraries:
                    added(called_by.setdefault(callee, {}), (caller, place), number)
    largest = sorted(called_by, key=lambda name: -sum(called_by[name].values()))[:_MOST_CALLED]
    return {name: told for name in largest if (told := _own_callers(name, called_by, libraries))}


def _own_callers(
    function: str, called_by: Mapping[str, Mapping[tuple[str, str], float]], libraries: Container[str]
) -> list[schema.Caller]:
    below, own = {function: 1.0}, defaultdict[str, dict[str, float]](dict)
    for _ in range(_DEEPEST):
        above = defaultdict[str, float](float)
        for name, share in below.items():
            sites = called_by.get(name, {})
            for (caller, place), number in sites.items():
                of_site = share * number / (sum(sites.values()) or 1.0)
                if caller in libraries:
                    above[caller] += of_site
                else:
                    added(own[caller], place, of_site)
        below = above
    told = [schema.Caller(name, max(of, key=of.__getitem__) or None, sum(of.values())) for name, of in own.items()]
    told.sort(key=lambda caller: -caller.share)
    return [caller for caller in told[:_MOST_CALLERS] if caller.share >= _LEAST_SHARE]


def by_line(energy: Priced) -> Priced | None:
    """The profile priced by source line: rows are lines of functions; None: no log tells lines, or nothing is priced.

    Each row's `part` is its line. The time of all functions is shared out over lines as `by_share` does it.
    """
    profile = energy.profile
    logs = [replace(log, tables=(log.by_line,), calls=None) for log in profile.logs if log.by_line is not None]
    if not logs or energy.costs is None or profile.parts is not None or len(profile.counted) > 1:
        return None
    (counted,) = profile.counted
    lines = combine(logs)
    lines = lines.chosen(np.isin(lines.rows.kernel, energy.counts.rows.kernel))
    if not len(lines.rows):
        return None
    total_s = float(np.nansum(counted.launches.rows.time_s))
    if total_s:
        lines, _ = by_share(lines, counted.definition, total_s, counted.launches)
    counts = with_active_cycles(count(lines, counted.definition, energy.costs.books), energy.costs, profile.cores or 1)
    split = attribute(counts, energy.costs)
    if energy.split is not None:
        of_function = dict(zip(energy.counts.rows.kernel.tolist(), energy.split.held.tolist(), strict=True))
        split = given_way(split, np.array([of_function[name] for name in counts.rows.kernel.tolist()]))
    return replace(energy, counts=counts, split=split, grouping=None, questions=(), metered=None)
