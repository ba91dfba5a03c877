"""Power series, marks and sampled activities put on one clock: moved, cut to the time of the power; idle power."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eprof.base.errors import LogError
from eprof.base.text import few, when
from eprof.commands.timeline.joules import inclusive, mean_idle_w, steadiest_offset_s
from eprof.costs import CostTable
from eprof.lab.power.activity import Activity
from eprof.lab.power.marks import Mark, Marks, Pieces, exclusive, one_rank, zone_offset_s
from eprof.lab.power.series import Series, shared, sharing_warnings


class Asked(NamedTuple):
    """What `eprof timeline` was asked; None: not asked for.

    sync_s: look for an offset between the clocks of up to so many s; offset_s: move the power by so much; idle_w: the
    idle power of each component; costs: the table that splits joules by cause.
    """

    sync_s: float | None = None
    offset_s: float | None = None
    idle_w: float | None = None
    command_line: Sequence[str] = ()
    costs: CostTable | None = None


class Fused(NamedTuple):
    """Power and marks on one clock, from the first to the last moment of which power is known.

    exclusive: stretches of time by innermost function; inclusive: with what it calls. wholes: component -> the
    component whose joules include its own. offsets_s: component -> by how much its clock was moved. activities: what
    was sampled of GPUs, on the same clock. warnings: sentences on what is not as it seems.
    """

    series: Sequence[Series]
    marks: Sequence[Mark]
    begin_s: float
    end_s: float
    exclusive: Pieces
    inclusive: Pieces
    idle_w: Mapping[str, float | None]
    wholes: Mapping[str, str]
    offsets_s: Mapping[str, float]
    warnings: Sequence[str]
    activities: Sequence[Activity] = ()


def fused(
    series: Sequence[Series], marks: Marks, asked: Asked, notes: Iterable[str], sampled: Sequence[Activity] = ()
) -> Fused:
    """Put power series, marks and activities `sampled` of GPUs on one clock. Raises LogError: their times lie apart."""
    own = {(each.source, each.component): place for place, each in enumerate(series)}
    found = shared(series)
    series = found.series
    warnings = [*notes, *sharing_warnings(found), *marks.notes]
    chosen: list[Mark] = []
    moved = list(series)
    if marks.marks:
        chosen = _chosen(marks, series, warnings)
        moved = [_moved(each, marks, chosen, asked, warnings) for each in series]
    begin_s = min(float(each.edges[0]) for each in moved)
    end_s = max(float(each.edges[-1]) for each in moved)
    seen = [mark for mark in chosen if mark.begin_s < end_s and mark.end_s > begin_s]
    if chosen and not seen:
        days = abs(chosen[0].begin_s - end_s) / 86_400
        apart = when(days >= 2, f"{days:,.0f} days") or f"{days * 86_400:.4g} s"
        raise LogError(
            f"The power and the marks are of different times: power ends {apart} away from the first mark; "
            "say --offset S to move the power."
        )
    if len(seen) < len(chosen):
        warnings.append(f"{len(chosen) - len(seen)} marks lie where no power was logged, and are left out.")
    cut = [mark for mark in seen if mark.begin_s < begin_s or end_s < mark.end_s < np.inf]
    if cut:
        functions = few(list(dict.fromkeys(f"`{mark.name}`" for mark in cut)), 3)
        warnings.append(f"{functions}: marked also where no power was logged, so its time and joules are lower bounds.")
    offsets_s = [float(new.edges[0] - old.edges[0]) for new, old in zip(moved, series, strict=True)]
    placed = [
        (each, [own[each.source, component] for component in each.components])
        for each in sampled
        if all((each.source, component) in own for component in each.components)
    ]
    clipped = [Mark(mark.name, max(mark.begin_s, begin_s), min(mark.end_s, end_s), mark.rank) for mark in seen]
    of_components = [
        each.moved(tuple(moved[place].component for place in places), offsets_s[places[0]]) for each, places in placed
    ]
    idle_w = {each.component: _idle_w(each, clipped, asked) for each in moved}
    # What nvidia-smi calls busy and its power are means of other windows: its idle samples hold what ran before.
    for each in [each for each in of_components if each.pays]:
        whole = [power for power in moved if (power.component,) == each.components]
        if whole and idle_w[each.label] is None and not each.ways:
            idle_w[each.label] = mean_idle_w(each, whole[0])
    return Fused(
        series=moved,
        marks=clipped,
        begin_s=begin_s,
        end_s=end_s,
        exclusive=exclusive(clipped),
        inclusive=inclusive(clipped),
        idle_w=idle_w,
        wholes=found.wholes,
        offsets_s={each.component: offset_s for each, offset_s in zip(moved, offsets_s, strict=True)},
        warnings=[*warnings, *(note for each, _ in placed for note in each.notes)],
        activities=of_components,
    )


def _chosen(marks: Marks, series: Sequence[Series], warnings: list[str]) -> list[Mark]:
    """Marks of one rank or thread, by begin, outer ones first. warnings: gets sentences on what is odd."""
    chosen, others = one_rank(marks.marks)
    if others:
        warnings.append(
            f"Marks of {others} other ranks or threads are left out: they share the meters, and joules cannot be "
            "divided among them."
        )
    never = sum(mark.end_s == np.inf for mark in chosen)
    if never:
        warnings.append(f"{never} marks have no end and are taken to go on to the end of the power.")
    if any(each.absolute != marks.absolute for each in series):
        warnings.append("Power or marks have no date: both are taken to begin together; --offset S moves the power.")
    return sorted(chosen, key=lambda mark: (mark.begin_s, -mark.end_s))


def _moved(series: Series, marks: Marks, chosen: Sequence[Mark], asked: Asked, warnings: list[str]) -> Series:
    """A power series moved onto the marks' clock: to a common begin or zone, then by --offset, or as --sync finds."""
    if series.absolute != marks.absolute:
        series = series.shifted(chosen[0].begin_s - float(series.edges[0]))
    elif zone_s := zone_offset_s(series, chosen):
        warnings.append(f"Times of {series.component} have no zone; moved by {zone_s / 3600:+g} h they meet the marks.")
        series = series.shifted(zone_s)
    if asked.offset_s is not None:
        return series.shifted(asked.offset_s)
    if asked.sync_s is not None:
        whole = exclusive([mark for mark in chosen if np.isfinite(mark.end_s)])
        offset_s = steadiest_offset_s(series, whole, asked.sync_s)
        is_at_end = abs(offset_s) > asked.sync_s - series.period_s / 10
        moved = f"{1e3 * offset_s:+.3g} ms{when(is_at_end, ', as far as --sync looked; let it look farther')}"
        warnings.append(f"The power of {series.component} fits the marks best when it is moved by {moved}.")
        return series.shifted(offset_s)
    return series


def _idle_w(series: Series, marks: Sequence[Mark], asked: Asked) -> float | None:
    """A component's idle power: as asked for, else the lower of its means before the first mark and after the last.

    None: not seen. After work a GPU stays at its clocks for a while: its power then is not yet idle.
    """
    if asked.idle_w is not None:
        return asked.idle_w
    if not marks:
        return None
    first, last = marks[0].begin_s, max(mark.end_s for mark in marks)
    begins, ends = np.array([series.edges[0], last]), np.array([first, series.edges[-1]])
    ends = np.maximum(begins, ends)
    seconds = series.known_s(begins, ends)
    seen = seconds >= 3 * series.period_s
    if not seen.any():
        return None
    return float((series.energy_j(begins, ends)[seen] / seconds[seen]).min())
