"""Rows added up by kernel, held to a plain dictionary: whatever the pieces they come in, and the columns these have."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.logs.log import COUNT, PERCENT, Names
from eprof.nvidia.folding import Piece, RowSums, TableStore
from eprof.readers.cells import ABSENT, OVERFLOW, as_cell

COUNTS, SHARES = as_cell(COUNT), as_cell(PERCENT)
cell = st.one_of(
    st.none(),
    st.just((math.nan, OVERFLOW)),
    st.tuples(st.integers(0, 9).map(float), st.sampled_from([COUNTS, SHARES])),
)
row = st.tuples(
    st.integers(0, 1), st.sampled_from("ab"), st.integers(1, 3), st.sampled_from([1.0, 2.0, math.nan]), cell, cell
)


def piece(store, rows):
    """Rows as a piece; a counter of which none has a cell is no column of it."""
    runs, kernels, launches, times, *cells = zip(*rows, strict=True)
    made = Piece(
        np.array(runs),
        np.zeros(len(rows), np.int32),
        store.kernels.codes(Names.of(kernels)),
        np.array(launches),
        np.array(times),
    )
    for label, column in zip("xy", cells, strict=True):
        if any(value is not None for value in column):
            filled = [(math.nan, ABSENT) if value is None else value for value in column]
            values, kinds = zip(*filled, strict=True)
            made.counters[label] = np.array(values), np.array(kinds, np.int8)
    return made


def added_up(rows):
    """By what is told apart: launches, seconds, and the value of each counter, a total or an average over launches."""
    groups = defaultdict(list)
    for run, kernel, launches, time_s, *cells in rows:
        kinds = tuple(ABSENT if value is None else value[1] for value in cells)
        groups[run, kernel, math.isnan(time_s), kinds].append((launches, time_s, cells))
    sums = {}
    for (run, kernel, _, kinds), members in groups.items():
        launches = sum(own for own, *_ in members)
        values = []
        for place, kind in enumerate(kinds):
            known = [(own, cells[place][0]) for own, _, cells in members if cells[place] is not None]
            total = sum(value * (1 if kind == COUNTS else own) for own, value in known) if kind >= 0 else math.nan
            values.append(total / (launches if kind == SHARES else 1))
        sums[run, kernel, kinds, math.isnan(members[0][1])] = (launches, sum(time for _, time, _ in members), *values)
    return sums


@settings(max_examples=60)
@given(rows=st.lists(row, min_size=1, max_size=12), cuts=st.sets(st.integers(1, 11)), held=st.integers(1, 9))
def test_pieces_add_up_to_the_same_however_they_come(monkeypatch, rows, cuts, held):
    monkeypatch.setattr("eprof.nvidia.folding._HELD_ROWS", held)
    store, sums = TableStore(), RowSums()
    ends = sorted(cut for cut in cuts if cut < len(rows))
    for start, end in zip([0, *ends], [*ends, len(rows)], strict=True):
        sums.add(piece(store, rows[start:end]))
    whole = sums.take()
    expected = added_up(rows)
    names = store.kernels.names()
    made = {}
    for place in range(len(whole.kernel)):
        (x, x_kind), (y, y_kind) = ((cells[place] for cells in whole.cells(label)) for label in "xy")
        key = (whole.run[place], names[whole.kernel[place]], (x_kind, y_kind), math.isnan(whole.time_s[place]))
        assert key not in made
        made[key] = (whole.launches[place], whole.time_s[place], x, y)
    assert made.keys() == expected.keys()
    for key, values in expected.items():
        assert made[key] == pytest.approx(values, nan_ok=True)
    assert sum(whole.rows) == len(rows)
