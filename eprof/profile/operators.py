"""Operators of a program that starts kernels by name (PyTorch, NVTX): what each takes of the kernels' energy."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats, Ints, finite, group_marks, group_sums, numbers_of
from eprof.base.optional import added, gathered
from eprof.base.vocabulary import MISSING, Mark, mark_names
from eprof.logs.log import BETWEEN
from eprof.profile import schema
from eprof.profile.priced import ENERGIES, Priced, kernel_time_marks

NOT_TRACED = "(not in the trace)"
_NOT_TOLD = "(operator not told)"


class _Shares(Struct):
    """What each operator takes of each row: columns of equal length. path: of each operator, by its number."""

    row: Ints
    operator: Ints
    share: Floats
    launches: Floats
    path: list[str]


def operators(energy: Priced, place_of: Ints) -> list[schema.Operator] | None:
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
    made = [_operator(*row) for row in zip(shares.path, *columns, strict=True)]
    return sorted(made, key=lambda each: (-(each.energy_j.total or 0.0), -(each.time_s or 0.0), each.name))


def _shares(energy: Priced) -> _Shares | None:
    profile = energy.profile
    timeline = profile.timeline
    has_operators = timeline is not None and timeline.operator is not None and (timeline.operator.codes >= 0).any()
    by_launch = profile.parts is None and energy.counts.rows.part is not None
    if not has_operators and not by_launch:
        return None
    shares = _each_share(energy, _traced(energy) if has_operators else {}, by_launch)
    row, path, share, launches = zip(*shares, strict=True)
    return _Shares(np.array(row), numbers_of(path), np.array(share), np.array(launches), list(dict.fromkeys(path)))


def _each_share(
    energy: Priced, traced: dict[tuple[str | None, str], list[tuple[str, float, float]]], by_launch: bool
) -> Iterator[tuple[int, str, float, float]]:
    """Yields the number of a row, the path of an operator, its share of the row, and its launches."""
    rows = energy.counts.rows
    for row, key in enumerate(zip(rows.device, rows.kernel, strict=True)):
        part = rows.part[row] if by_launch and rows.part is not None else None
        if part is not None:
            yield row, part, 1.0, float(rows.launches[row])
            continue
        untold = [(NOT_TRACED if traced else _NOT_TOLD, 1.0, float(rows.launches[row]))]
        for path, share, launches in traced.get(key, untold):
            yield row, path, share, launches


def _traced(energy: Priced) -> dict[tuple[str | None, str], list[tuple[str, float, float]]]:
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
    return {key: _as_shares(parts) for key, parts in of_kernel.items()}


def _as_shares(parts: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """(path, seconds, launches) -> (path, share of all seconds, or of all launches if no time is known, launches)."""
    whole_s = sum(time_s for _, time_s, _ in parts)
    if whole_s > 0:
        return [(path, time_s / whole_s, many) for path, time_s, many in parts]
    whole = sum(many for *_, many in parts)
    return [(path, many / whole, many) for path, _, many in parts]


def _sums(values: Floats, shares: _Shares) -> Floats:
    """The known values of rows shared out to operators and added up: (n_rows, n) -> (n_operators, n)."""
    return group_sums(values[shares.row] * shares.share[:, None], shares.operator)


def _joules(energy: Priced, shares: _Shares) -> tuple[Floats, Ints]:
    """Energies by operator and family, (n_operators, 4), and their marks."""
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


def _kernels_of_operators(energy: Priced, shares: _Shares, place_of: Ints) -> list[list[tuple[int, float]]]:
    weight = np.nan_to_num(energy.weights)
    whole = np.bincount(place_of, weight)
    rows_of = np.bincount(place_of)
    own: list[dict[int, float]] = [{} for _ in shares.path]
    for row, operator, share in zip(shares.row.tolist(), shares.operator.tolist(), shares.share.tolist(), strict=True):
        place = int(place_of[row])
        of_kernel = weight[row] / whole[place] if whole[place] > 0 else 1 / rows_of[place]
        added(own[operator], place, share * float(of_kernel))
    return [sorted(places.items()) for places in own]


def _operator(
    path: str,
    joules: Floats,
    joule_marks: Ints,
    time_s: float,
    time_marks: int,
    launches: float,
    kernels: list[tuple[int, float]],
) -> schema.Operator:
    module, _, name = path.rpartition(BETWEEN)
    marks = [mark_names(mark) for mark in joule_marks.tolist()]
    return schema.Operator(
        name=name,
        module=module or None,
        launches=round(launches),
        time_s=finite(time_s),
        time_marks=mark_names(int(time_marks)),
        energy_j=schema.Joules(*map(finite, joules.tolist())),
        energy_marks=schema.JouleMarks(*marks),
        kernels=kernels,
        marks=marks[-1],
    )
