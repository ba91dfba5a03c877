"""Energy of functions with their callees and by source line, and of operators of a framework (PyTorch, NVTX).

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
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints, finite, group_marks, group_sums, known_or_zero, numbers_of
from eprof.base.optional import added, gathered, mapped
from eprof.base.vocabulary import ESTIMATED, MISSING, Mark, mark_names
from eprof.counts.counts import count
from eprof.counts.times import by_share
from eprof.energy.attribution import attribute, given_way
from eprof.energy.clocks import with_active_cycles
from eprof.logs import combine
from eprof.logs.log import BETWEEN, Names
from eprof.logs.runs import Key
from eprof.profile import schema
from eprof.profile.priced_profile import ENERGIES, PricedProfile, kernel_time_marks

_MOST_CALLED, _MOST_CALLERS, _DEEPEST = 100, 3, 16  # functions of libraries; lines that call each; calls above each
_LEAST_SHARE = 0.01
_Edges = Mapping[int, Mapping[int, float]]  # caller -> callee -> instructions beneath


class Inclusive(NamedTuple):
    """Energy of functions with their callees, (n_functions,): known J, J above constant power, marks."""

    energy_j: Floats
    above_j: Floats
    marks: Ints


def inclusive(energy: PricedProfile) -> Inclusive | None:
    """The energy of each function with all that it calls; None: no log tells calls, nothing is priced, or `-k` selects.

    A selection lacks what its functions call.
    """
    if energy.split is None or not energy.profile.whole or not any(log.calls for log in energy.profile.logs):
        return None
    rows = energy.counts.rows
    row_of = {key: row for row, key in enumerate(_keys(rows.device, rows.kernel, rows.part))}
    beneath: dict[int, dict[int, float]] = {}
    for log in energy.profile.logs:
        if not log.calls:
            continue
        of_tables = [
            _keys(rows.device.texts(), rows.kernel.texts(), mapped(Names.texts, rows.part))
            for rows in (table.rows for table in log.tables)
        ]
        places = {str(key.kernel): row_of[key] for key in chain.from_iterable(of_tables) if key in row_of}
        for caller, callee, number, _ in log.calls.each():
            if caller in places and callee in places and caller != callee:
                added(beneath.setdefault(places[caller], {}), places[callee], number)
    own_j = known_or_zero(np.stack([energy.split.total_j, energy.split.work_j], axis=1))
    return _summed(own_j, energy.split.family_marks["total"] | ESTIMATED, beneath)


def _keys(devices: Iterable[object], names: Iterable[object], parts: Iterable[object] | None) -> Iterator[Key]:
    """A key for each function's row, of device, name and part: it may have a row on each machine and in each rank."""
    return map(Key, devices, names, parts if parts is not None else repeat(None))


def _summed(own_j: Floats, own_marks: Ints, beneath: _Edges) -> Inclusive:
    """The energy and marks of each function with all that it calls. own_j: in all and above constant, (n_nodes, 2)."""
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
    """Yields lists of functions that call each other in a circle (most of one), callees before callers (Tarjan 1972).

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


def callers(energy: PricedProfile) -> dict[str, list[schema.Caller]]:
    """Library function -> the program's own functions that it ran beneath: each one's share, and the line with most.

    Where another library's function called it, that one's callers have its share, as far up as logs tell.
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
    """The program's functions that a library function ran beneath, the 3 with the largest shares, at least 1 % each.

    called_by: library function -> (caller, line) -> instructions; callers in `libraries` are followed up, 16 calls far.
    """
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


def by_line(energy: PricedProfile) -> PricedProfile | None:
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
    of_lines = count(lines, counted.definition, energy.costs.books)
    counts = with_active_cycles(of_lines, energy.costs, profile.cpu_use.cores or 1)
    split = attribute(counts, energy.costs)
    if energy.split is not None:
        of_function = dict(zip(energy.counts.rows.kernel.tolist(), energy.split.held.tolist(), strict=True))
        split = given_way(split, np.array([of_function[name] for name in counts.rows.kernel.tolist()]))
    return replace(energy, counts=counts, split=split, grouping=None, questions=(), metered=None)


NOT_TRACED = "(not in the trace)"
_NOT_TOLD = "(operator not told)"


class _Shares(Struct):
    """Which share of a kernel's energy which operator takes: columns of equal length, an entry a pair of the two.

    row: the kernel's; operator: a place in `path`, the operators' names with their modules.
    """

    row: Ints
    operator: Ints
    share: Floats
    launches: Floats
    path: list[str]


def operators(energy: PricedProfile, place_of: Ints) -> list[schema.Operator] | None:
    """The operators with their energy, time and launches, largest energy (else time) first; None: no log tells any.

    place_of: the place in the document of each row's kernel.
    """
    shares = _shares(energy)
    if shares is None:
        return None
    rows = energy.counts.rows
    joules, joule_marks = _joules(energy, shares)
    time_s = _sums(rows.time_s[:, None], shares)[:, 0]
    time_marks = group_marks(kernel_time_marks(energy)[shares.row][:, None], shares.operator)[:, 0]
    launches = np.bincount(shares.operator, shares.launches)
    columns = (joules, joule_marks, time_s, time_marks, launches, _kernels_of_operators(energy, shares, place_of))
    made = []
    for path, own_j, marks, own_s, marks_of_s, number, kernels in zip(shares.path, *columns, strict=True):
        module, _, name = path.rpartition(BETWEEN)
        words = [mark_names(mark) for mark in marks.tolist()]
        operator = schema.Operator(
            name=name,
            module=module or None,
            launches=round(number),
            time_s=finite(own_s),
            time_marks=mark_names(int(marks_of_s)),
            energy_j=schema.Joules(*map(finite, own_j.tolist())),
            energy_marks=schema.JouleMarks(*words),
            kernels=kernels,
            marks=words[-1],
        )
        made.append(operator)
    return sorted(made, key=lambda each: (-(each.energy_j.total or 0.0), -(each.time_s or 0.0), each.name))


def _shares(energy: PricedProfile) -> _Shares | None:
    """The operators' shares of each kernel, by a trace's launches or by the kernel's part; None: no log tells any."""
    profile = energy.profile
    timeline = profile.timeline
    has_operators = timeline is not None and timeline.operator is not None and (timeline.operator.codes >= 0).any()
    by_launch = profile.parts is None and energy.counts.rows.part is not None
    if not has_operators and not by_launch:
        return None
    traced = _traced(energy) if has_operators else {}
    rows = energy.counts.rows
    shares: list[tuple[int, str, float, float]] = []
    for row, key in enumerate(zip(rows.device, rows.kernel, strict=True)):
        of_row = traced.get(key, [(NOT_TRACED if traced else _NOT_TOLD, 1.0, float(rows.launches[row]))])
        if by_launch and rows.part is not None and rows.part[row] is not None:
            of_row = [(rows.part[row], 1.0, float(rows.launches[row]))]
        shares += [(row, *one) for one in of_row]
    places, path, share, launches = zip(*shares, strict=True)
    return _Shares(np.array(places), numbers_of(path), np.array(share), np.array(launches), list(dict.fromkeys(path)))


def _traced(energy: PricedProfile) -> dict[tuple[str | None, str], list[tuple[str, float, float]]]:
    """(device, kernel) -> the operators that launched it in the trace: path, share of the kernel's time, launches."""
    timeline = energy.profile.timeline
    assert timeline is not None and timeline.operator is not None
    columns = (timeline.device, timeline.kernel, timeline.operator)
    keys = list(zip(*(column.texts().tolist() for column in columns), strict=True))
    number = numbers_of(keys)
    weight = np.nan_to_num(timeline.time_s)
    seconds, launches = np.bincount(number, weight), np.bincount(number)
    parts = zip(dict.fromkeys(keys), seconds.tolist(), launches.tolist(), strict=True)
    of_kernel = gathered(
        ((device, kernel), (path or _NOT_TOLD, time_s, many)) for (device, kernel, path), time_s, many in parts
    )
    shares = {}
    for key, own in of_kernel.items():
        # Of all seconds, or of all launches if no time is known.
        sizes = [time_s for _, time_s, _ in own]
        if not sum(sizes) > 0:
            sizes = [many for *_, many in own]
        whole = sum(sizes)
        shares[key] = [(path, size / whole, many) for (path, _, many), size in zip(own, sizes, strict=True)]
    return shares


def _sums(values: Floats, shares: _Shares) -> Floats:
    """The known values of kernels shared out to operators and added up: (n_kernels, n) -> (n_operators, n)."""
    return group_sums(values[shares.row] * shares.share[:, None], shares.operator)


def _joules(energy: PricedProfile, shares: _Shares) -> tuple[Floats, Ints]:
    """Joules of each operator as `ENERGIES` (computation, data, constant, total), (n_operators, 4), and their marks.

    What was counted of a kernel that several operators share is marked as estimated.
    """
    split = energy.split
    size = len(shares.path)
    if split is None:
        return np.full((size, len(ENERGIES)), np.nan), np.full((size, len(ENERGIES)), MISSING)
    values = np.stack([split.computation_j, split.data_j, split.constant_j, split.total_j], axis=1)
    marks = split.family_marks.values[shares.row]
    # Constant energy goes with time: only what was counted is shared by a guess.
    counted = np.nan_to_num(values[shares.row, :2]) > 0
    guessed = counted & (shares.share < 1)[:, None]
    guesses = np.column_stack([guessed, np.zeros(len(guessed), dtype=bool), guessed.any(axis=1)])
    marks = marks | guesses * np.int64(Mark.ESTIMATED)
    return _sums(values, shares), group_marks(marks, shares.operator)


def _kernels_of_operators(energy: PricedProfile, shares: _Shares, place_of: Ints) -> list[list[tuple[int, float]]]:
    """For each operator, the place in the document of each of its kernels, and its share of that kernel's energy."""
    weight = np.nan_to_num(energy.weights)
    whole = np.bincount(place_of, weight)
    rows_of = np.bincount(place_of)
    own: list[dict[int, float]] = [{} for _ in shares.path]
    for row, operator, share in zip(shares.row.tolist(), shares.operator.tolist(), shares.share.tolist(), strict=True):
        place = int(place_of[row])
        of_kernel = weight[row] / whole[place] if whole[place] > 0 else 1 / rows_of[place]
        added(own[operator], place, share * float(of_kernel))
    return [sorted(places.items()) for places in own]
