"""Energy by operator: each kernel's energy shared over the operators that launched it (docs/traces.md).

A trace tells who made each launch and how long it ran; counters tell a kernel's launches together. So each operator
takes of a kernel's energy the share of the time that its launches took: constant energy goes with time, and the rest is
estimated, as if all launches of a kernel drew the same power. Where the counts themselves are by launch (CUPTI's
counters in the trace), a row has its operator already, and nothing is shared. Either way operators add up to the
kernels.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats, Ints, group_marks, group_sums, numbers_of
from eprof.base.marks import Mark, names
from eprof.logs.rows.log import BETWEEN
from eprof.profile import schema
from eprof.profile.totals import ENERGIES, kernel_time_marks

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

NOT_TRACED = "(not in the trace)"
_NOT_TOLD = "(operator not told)"


class _Shares(Struct):
    """What each operator takes of each row: columns of equal length. path: of each operator, by its number."""

    row: Ints
    operator: Ints
    share: Floats
    launches: Floats
    path: list[str]

    @classmethod
    def of(cls, parts: Iterable[tuple[int, str, float, float]]) -> "_Shares":
        """From a row, an operator's path, its share and its launches each."""
        row, path, share, launches = zip(*parts, strict=True)
        return cls(np.array(row), numbers_of(path), np.array(share), np.array(launches), list(dict.fromkeys(path)))


def operators(energy: "Energy", place_of: Ints) -> list[schema.Operator] | None:
    """The energy by operator, a structure each, largest energy (else time) first; None where no log tells operators.

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
    kernels = _kernels(energy, shares, place_of)
    made = [
        _operator(path, joules[number], joule_marks[number], time_s[number], time_marks[number], launches[number])
        for number, path in enumerate(shares.path)
    ]
    for operator, own in zip(made, kernels, strict=True):
        operator.kernels = own
    return sorted(made, key=lambda each: (-(each.energy_j.total or 0.0), -(each.time_s or 0.0), each.name))


def _shares(energy: "Energy") -> _Shares | None:
    profile = energy.profile
    timeline = profile.timeline
    has_operators = timeline is not None and timeline.operator is not None and (timeline.operator.codes >= 0).any()
    by_launch = profile.parts is None and energy.counts.rows.part is not None
    if not has_operators and not by_launch:
        return None
    return _Shares.of(_each_share(energy, _traced(energy) if has_operators else {}, by_launch))


def _each_share(
    energy: "Energy", traced: dict[tuple[str | None, str], list[tuple[str, float, float]]], by_launch: bool
) -> Iterator[tuple[int, str, float, float]]:
    rows = energy.counts.rows
    for row, key in enumerate(zip(rows.device, rows.kernel, strict=True)):
        part = rows.part[row] if by_launch and rows.part is not None else None
        if part is not None:
            yield row, part, 1.0, float(rows.launches[row])
            continue
        untold = [(NOT_TRACED if traced else _NOT_TOLD, 1.0, float(rows.launches[row]))]
        for path, share, launches in traced.get(key, untold):
            yield row, path, share, launches


def _traced(energy: "Energy") -> dict[tuple[str | None, str], list[tuple[str, float, float]]]:
    """Of each device and kernel in the trace, its operators: path, share of the kernel's time, launches."""
    timeline = energy.profile.timeline
    assert timeline is not None and timeline.operator is not None
    columns = (timeline.device, timeline.kernel, timeline.operator)
    keys = list(zip(*(column.texts().tolist() for column in columns), strict=True))
    number = numbers_of(keys)
    weight = np.nan_to_num(timeline.time_s)
    seconds, launches = np.bincount(number, weight), np.bincount(number)
    of_kernel: dict[tuple[str | None, str], list[tuple[str, float, float]]] = {}
    for (device, kernel, path), time_s, many in zip(dict.fromkeys(keys), seconds, launches, strict=True):
        of_kernel.setdefault((device, kernel), []).append((path or _NOT_TOLD, float(time_s), float(many)))
    return {key: _as_shares(parts) for key, parts in of_kernel.items()}


def _as_shares(parts: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Seconds of operators as shares of all of them; of launches, where no time is known."""
    whole_s = sum(time_s for _, time_s, _ in parts)
    if whole_s > 0:
        return [(path, time_s / whole_s, many) for path, time_s, many in parts]
    whole = sum(many for *_, many in parts)
    return [(path, many / whole, many) for path, _, many in parts]


def _sums(values: Floats, shares: _Shares) -> Floats:
    """What is known of each operator: (n_rows, n) -> (n_operators, n)."""
    return group_sums(values[shares.row] * shares.share[:, None], shares.operator)


def _joules(energy: "Energy", shares: _Shares) -> tuple[Floats, Ints]:
    """Energies by operator and family, (n_operators, 4), and their marks."""
    split = energy.split
    size = len(shares.path)
    if split is None:
        return np.full((size, len(ENERGIES)), np.nan), np.full((size, len(ENERGIES)), int(Mark.MISSING))
    values = np.stack([split.computation_j, split.data_j, split.constant_j, split.total_j], axis=1)
    marks = split.family_marks.values[shares.row]
    # Constant energy goes with time: only what was counted is shared by a guess.
    counted = np.nan_to_num(values[shares.row, :2]) > 0
    guessed = counted & (shares.share < 1)[:, None]
    guesses = np.column_stack([guessed, np.zeros(len(guessed), dtype=bool), guessed.any(axis=1)])
    marks = marks | guesses * np.int64(Mark.ESTIMATED)
    return _sums(values, shares), group_marks(marks, shares.operator)


def _kernels(energy: "Energy", shares: _Shares, place_of: Ints) -> list[list[tuple[int, float]]]:
    weight = energy.counts.rows.time_s if energy.split is None else energy.split.total_j
    weight = np.where(np.isnan(weight), 0.0, weight)
    whole = np.bincount(place_of, weight)
    rows_of = np.bincount(place_of)
    own: list[dict[int, float]] = [{} for _ in shares.path]
    for row, operator, share in zip(shares.row.tolist(), shares.operator.tolist(), shares.share.tolist(), strict=True):
        place = int(place_of[row])
        of_kernel = weight[row] / whole[place] if whole[place] > 0 else 1 / rows_of[place]
        own[operator][place] = own[operator].get(place, 0.0) + share * float(of_kernel)
    return [sorted(places.items()) for places in own]


def _operator(
    path: str, joules: Floats, joule_marks: Ints, time_s: float, time_marks: int, launches: float
) -> schema.Operator:
    module, _, name = path.rpartition(BETWEEN)
    marks = [names(mark) for mark in joule_marks.tolist()]
    return schema.Operator(
        name=name,
        module=module or None,
        launches=round(launches),
        time_s=_known(time_s),
        time_marks=names(int(time_marks)),
        energy_j=schema.Joules(*map(_known, joules.tolist())),
        energy_marks=schema.JouleMarks(*marks),
        kernels=[],
        marks=marks[-1],
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
