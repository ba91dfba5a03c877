"""Which tables tell of the same launches, counted in several passes, and which of further launches.

Profilers count only so much at once, so a program is run again for other counters: once for events and once for
metrics, or once for each of several lists. What such passes have in common must not be added up. Tables of the same
counters, or nearly so (a damaged log lacks some), are of further runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import compress

import numpy as np
from msgspec.structs import replace

from eprof import profilers
from eprof.base.arrays import Columns, numbered
from eprof.logs.rows.header import EVENTS, METRICS
from eprof.logs.rows.log import Table

_OPPOSITE = {EVENTS: METRICS, METRICS: EVENTS}
_SHAPES = ("launch__", "achieved_occupancy", "sm__warps_active")
_Signature = tuple[str, frozenset[str]]


def passes(tables: Sequence[Table]) -> list[list[int]]:
    """The places of the tables of each pass over the same launches.

    Tables of one pass add up, those of several stand side by side.

    The order of the tables does not matter, but for that of the passes' tables.
    """
    signatures = [_signature(table) for table in tables]
    groups: list[list[_Signature]] = []
    for signature in sorted(set(signatures), key=lambda pair: (-len(pair[1]), sorted(pair[1]), pair[0])):
        alike = next((known for known in groups if _are_runs(signature, known)), None)
        if alike is None:
            groups.append([signature])
        else:
            alike.append(signature)
    number = {signature: place for place, known in enumerate(groups) for signature in known}
    places: list[list[int]] = [[] for _ in groups]
    for place, signature in enumerate(signatures):
        places[number[signature]].append(place)
    return places


def _signature(table: Table) -> _Signature:
    """What the pass of a table is known by: its kind, and the counters that its runs have.

    Times are no list of counters, nor are launch shapes, which every pass has.
    """
    counters = frozenset(table.units) if table.collected is None else table.collected
    aside = profilers.aside()
    return table.kind, frozenset(counter for counter in counters - aside if not counter.startswith(_SHAPES))


def _are_runs(signature: _Signature, known: Sequence[_Signature]) -> bool:
    """Whether a table is of further runs and no further pass: one list of counters holds most of the other's."""
    if are_opposite({signature[0]}, {kind for kind, _ in known}):
        return False
    own = signature[1]
    return any(own == other or 2 * len(own & other) > min(len(own), len(other)) for _, other in known)


def are_opposite(kinds: Collection[str], others: Collection[str]) -> bool:
    """Whether tables of some kinds cannot be passes over the launches of others.

    nvprof writes events apart from metrics. Pages and reports of ncu in several forms are views of one collection.
    """
    views, other_views = ({kind for kind in group if kind in profilers.unions()} for group in (kinds, others))
    if views and other_views and views != other_views:
        return True
    return any(_OPPOSITE.get(kind) in others for kind in kinds)


def by_collection(table: Table) -> Iterable[Table]:
    """The table in passes: parts whose runs have the same counters; what a run has no value of, it did not collect.

    Readers of nvprof's logs keep these apart themselves.
    """
    if table.kind not in profilers.unions() or not len(table.rows):
        return [table]
    known = ~np.isnan(np.column_stack([table.rows.time_s, table.counters.values]))
    if known.all():
        return [table]
    run = numbered(table.rows.run)[0]
    order = np.argsort(run, kind="stable")
    of_run = np.logical_or.reduceat(known[order], np.unique(run[order], return_index=True)[1])
    patterns, pattern = np.unique(of_run, axis=0, return_inverse=True)
    pattern = pattern.ravel()[run]
    parts = []
    for number, has in enumerate(patterns[:, 1:]):
        part = table.chosen(pattern == number)
        labels = tuple(compress(part.counters.names, has))
        counters = Columns(labels, part.counters.values[:, has])
        parts.append(replace(part, counters=counters, units={label: part.units[label] for label in labels}))
    return parts
