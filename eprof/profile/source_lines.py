"""Energy by source line, where a log tells lines: each line's counts, priced as those of its function are."""

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from eprof.counts.counts import count
from eprof.counts.times import by_share
from eprof.energy.attribution import attribute
from eprof.energy.clocks import with_active_cycles
from eprof.logs import combine

if TYPE_CHECKING:
    from eprof.profile.profile import Energy


def by_line(energy: "Energy") -> "Energy | None":
    """The priced lines of a profile, as rows whose part is the line; None where no line is told, or nothing is priced.

    A line has of the program's time what the functions have: its share of the weight that times go by.
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
    return replace(energy, counts=counts, split=split, grouping=None, questions=(), metered=None)
