"""Sentences on the tables of Nsight Compute that were read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from eprof.base.text import few, pattern
from eprof.profilers.ncu import derived
from eprof.profilers.ncu.headers import SUMMARY
from eprof.profilers.ncu.sheet import Part, Remarks
from eprof.profilers.ncu.signs import SLOWED
from eprof.profilers.ncu.tables import ASIDE, counting

_RATE = pattern(r"\.(?:pct|ratio|max_rate)$|\.(?:pct_of|per_cycle|peak)_")
_SHOWN, _FEW = 12, 6


def of_parts(parts: Sequence[Part], keep: Container[str] | None) -> Iterator[str]:
    """What there is to say on counters of ncu, whichever form they were printed in."""
    if any(not np.isnan(part.rows["time_s"]).all() for part in parts):
        yield SLOWED
    remarks = Remarks.of_all(parts)
    if remarks.several:
        names = few(remarks.several, _SHOWN)
        yield f"{names}: a cell holds the values of several instances, whose sum nothing tells, so not known"
    if keep is not None:
        missing = [f"{name} ({number})" for name, number in remarks.missing.items()]
        if missing:
            yield f"cells without a number, by metric: {few(missing, _SHOWN)}; these are not known"
    # Totals that rates do not give for any row, for lack of cycles, say, count nothing.
    countable = [
        name
        for part in parts
        for name in part.units
        if not name.endswith(derived.TOTAL) or not np.isnan(part.column(name)).all()
    ]
    if parts and not counting(countable):
        yield _not_counted(remarks.metrics)


def of_lines(parts: Sequence[Part], is_page_scaled: bool) -> Iterator[str]:
    """What there is to say on counters that ncu printed. is_page_scaled: that the page rounds was said."""
    is_summary = any(part.kind == SUMMARY for part in parts)
    if is_summary:
        yield "totals of a summary are its averages times the invocations; averages are rounded"
    averages: dict[str, None] = {}  # of several launches, and so no totals
    for part in parts:
        several = part.rows["launches"] > 1
        for name, values in part.counters.items():
            if name.endswith(derived.TOTAL) and np.isnan(values[several]).any():
                averages[name.removesuffix(derived.TOTAL)] = None
    if averages and is_summary:
        yield (
            f"{few(list(averages), _SHOWN)}: a summary has only the mean rate of launches, which tells no total; "
            "print the log without --print-summary"
        )
    remarks = Remarks.of_all(parts)
    if remarks.twice:
        yield f"{few(remarks.twice, _FEW)}: told twice for one launch, with two values; the first is used"
    if remarks.scaled and not is_page_scaled:
        yield (
            f"printed in scaled units, so rounded, and 0 may stand for a few: {few(remarks.scaled, _FEW)}; "
            "`--csv --page raw --print-units base` writes them whole"
        )


def _not_counted(metrics: Sequence[str]) -> str:
    """A note on what an ncu log has instead, if none of its metrics is one that eprof knows."""
    names = sorted((name for name in metrics if name not in derived.TIMES), key=lambda name: name.startswith(ASIDE))
    if not names:
        return "the log has no metric but times; `eprof counters` lists what to ask ncu for with --metrics"
    rates = [name for name in names if not name.startswith(ASIDE) and _RATE.search(name)]
    only = f"{len(rates)} are percentages or rates a cycle, which are no counts; " if rates else ""
    return (
        f"none of the log's {len(names)} metrics is one that eprof counts with ({only}it has {few(names, _FEW)}); "
        "`eprof counters` lists what to ask ncu for with --metrics"
    )
