"""Rows of a long log added up while it is read, so that memory grows with its kernels and runs, not with its launches.

Joining logs (`combining`) adds up the rows of a kernel anyway. What it must still be able to tell apart stays apart:
runs, and which cells hold no value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from eprof.rows.cells import UNITS
from eprof.rows.log import COUNT
from eprof.rows.pieces import Array, Piece


def fold(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces with the same sums and the same holes: a row for each run, device, kernel, part and pattern of holes.

    Totals and times add up; rates and percentages become averages weighted by launches.
    """
    alike: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        signature = (
            piece.run,
            piece.time_s is None,
            piece.part is None,
            *((label, kind) for label, (_, kind) in piece.counters.items()),
        )
        alike.setdefault(signature, []).append(piece)
    return [_added_up(_joined(group)) for group in alike.values()]


def _columns(piece: Piece) -> list[Array]:
    times = [] if piece.time_s is None else [piece.time_s]
    return [*times, *(values for values, _ in piece.counters.values())]


def _kernels(piece: Piece) -> Array:
    """A number for each device, kernel and part, by row."""
    numbers = np.asarray(pd.factorize((piece.device.astype(np.int64) + 1) << 32 | piece.kernel)[0])
    if piece.part is None:
        return numbers
    return np.asarray(pd.factorize(numbers << 32 | (piece.part.astype(np.int64) + 1))[0])


def _added_up(piece: Piece) -> Piece:
    """One row for each device, kernel, part and pattern of cells without a value."""
    key = _kernels(piece)
    for column in _columns(piece):
        lost = np.isnan(column)
        if lost.any() and not lost.all():
            key = np.asarray(pd.factorize(key * 2 + lost)[0])
    size = int(key.max()) + 1
    first = np.full(size, len(key), dtype=np.int64)
    np.minimum.at(first, key, np.arange(len(key)))
    launches = np.bincount(key, piece.launches, size)
    counters = {
        label: (_sum(key, size, values, kind, piece, launches), kind)
        for label, (values, kind) in piece.counters.items()
    }
    times = None if piece.time_s is None else np.bincount(key, piece.time_s, size)
    part = None if piece.part is None else piece.part[first]
    return Piece(piece.run, piece.device[first], piece.kernel[first], launches.astype(np.int64), times, counters, part)


def _sum(key: Array, size: int, values: Array, kind: int, piece: Piece, launches: Array) -> Array:
    if UNITS[kind] == COUNT:
        return np.bincount(key, values, size)
    return np.bincount(key, values * piece.launches, size) / np.maximum(launches, 1)


def _joined(pieces: Sequence[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]

    def join(columns: Sequence[Array]) -> Array:
        return np.concatenate(columns)

    return Piece(
        first.run,
        join([one.device for one in pieces]),
        join([one.kernel for one in pieces]),
        join([one.launches for one in pieces]),
        None if first.time_s is None else join([one.time_s for one in pieces if one.time_s is not None]),
        {
            label: (join([one.counters[label][0] for one in pieces]), kind)
            for label, (_, kind) in first.counters.items()
        },
        None if first.part is None else join([one.part for one in pieces if one.part is not None]),
    )
