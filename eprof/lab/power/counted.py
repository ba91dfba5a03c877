"""What a processor did in each interval of a log that has its joules, too: counts of `perf stat -I` ([S] 5.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eprof.base.errors import LogError
from eprof.base.vocabulary import PRICED
from eprof.costs import CostTable
from eprof.counts.counters import capability_of
from eprof.lab.power.activity import Activity, filled
from eprof.lab.power.series import Series
from eprof.logs import reading
from eprof.logs.join.combining import combine
from eprof.logs.rows.log import INTERVAL
from eprof.profile.profile import build


def counted(path: str, power: Sequence[Series], table: CostTable) -> Activity | None:
    """What was counted in each interval of a log beside `power`, in the books of a table; None: nothing that it prices.

    Counts that perf has no number for stand in from the intervals beside them. Raises DefinitionError.
    """
    meters = tuple(series.component for series in power if series.explained)
    if not meters:
        return None
    try:
        log = reading.read(path, parts=INTERVAL)
    except LogError:  # joules alone, in a form that is no profiler's
        return None
    profile = build([log], combine([log], capability_of))
    counts = profile.counts(table.at().books)
    if counts.rows.part is None:
        return None
    ends_s, interval = np.unique(counts.rows.part.astype(np.float64), return_inverse=True)
    edges = np.append(0.0, ends_s)
    rates, holes, ways = {}, {}, {}
    for word, amounts in zip(counts.amounts.names, counts.amounts.values.T, strict=True):
        known = ~np.isnan(amounts)
        if word in PRICED and known.any():
            per_s = np.bincount(interval, amounts) / np.diff(edges)
            rates[word], holes[word] = filled(per_s, edges), np.isnan(per_s)
            ways[word] = counts.how[word], int(np.bitwise_or.reduce(counts.amount_marks[word][known]))
    if not ways:
        return None
    clock_mhz = np.full(len(ends_s), np.nan)
    return Activity(meters, path, edges, rates, holes, clock_mhz, ways=ways, sockets=profile.sockets or 1)
