"""A timeline as a trace for Perfetto: power of each component over time, functions beneath (docs/timeline.md)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from eprof import __version__
from eprof.base.text import phrase, visible, when
from eprof.commands.timeline.document import Fused, Timeline
from eprof.lab.power.marks import Mark
from eprof.show.export import trace_name, trace_number, trace_of

_POWER, _FUNCTIONS = 1, 2  # processes of the trace


def to_trace(document: Timeline, fused: Fused) -> bytes:
    """A trace in JSON for Perfetto: power in W at each step, marks with their joules; in us from the start, to the ns.

    The joules of a mark are those of all that runs in it. Of unknown power the counter is 0; the mark says how long.
    """
    head = {"eprof": __version__, "title": visible(document.title), "first_s": fused.begin_s}
    return trace_of(head, _rows(fused))


def _rows(fused: Fused) -> Iterator[dict[str, Any]]:
    """The events of the trace: each change of a component's power, 0 behind the last, then the marks."""
    yield trace_name("process_name", _POWER, 0, "power")
    for series in fused.series:
        name = visible(series.component + phrase(", part of {},", fused.wholes.get(series.component)))
        times_s = (series.edges - fused.begin_s).tolist()
        for time_s, watts in zip(times_s, [*np.nan_to_num(series.watts).tolist(), 0.0], strict=True):
            # Perfetto adds the unit, which is the name of the argument.
            power = {"W": trace_number(watts)}
            yield {"ph": "C", "name": name, "pid": _POWER, "ts": _microseconds(time_s), "args": power}
    if not fused.marks:
        return
    yield trace_name("process_name", _FUNCTIONS, 0, "functions")
    lanes: list[_Lane] = []
    for mark in sorted(fused.marks, key=lambda mark: (mark.begin_s, -mark.end_s)):
        if not any(lane.takes(mark) for lane in lanes):
            lanes.append(_Lane())
            lanes[-1].takes(mark)
    for number, lane in enumerate(lanes, 1):
        yield trace_name("thread_name", _FUNCTIONS, number, "functions" + when(number > 1, f" (overlap {number - 1})"))
        yield from (_slice(fused, mark, number) for mark in lane.marks)


def _microseconds(time_s: float) -> float:
    return round(time_s * 1e9) / 1e3


class _Lane:
    """A thread of the trace: marks within or behind each other. Perfetto would drop those that overlap otherwise."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._open: list[Mark] = []

    def takes(self, mark: Mark) -> bool:
        """Add a mark, which begins no earlier than those of the lane, if it fits; return whether it did."""
        self._open = [around for around in self._open if around.end_s > mark.begin_s]
        if self._open and mark.end_s > self._open[-1].end_s:
            return False
        self._open.append(mark)
        self.marks.append(mark)
        return True


def _slice(fused: Fused, mark: Mark, lane: int) -> dict[str, Any]:
    seen = {series.component: series.seen(mark.begin_s, mark.end_s) for series in fused.series}
    joules = {component: energy_j for component, (energy_j, known_s) in seen.items() if known_s > 0}
    total_j = sum(energy_j for component, energy_j in joules.items() if component not in fused.wholes)
    unknown_s = mark.end_s - mark.begin_s - min(known_s for _, known_s in seen.values())
    arguments = {"energy_j": trace_number(total_j)} if joules else {}
    if len(fused.series) > 1:
        arguments |= {f"{visible(component)}_j": trace_number(energy_j) for component, energy_j in joules.items()}
    if unknown_s > 1e-6:
        arguments["power_not_known_s"] = trace_number(unknown_s)
    start_us = _microseconds(mark.begin_s - fused.begin_s)
    return {
        "ph": "X",
        "name": visible(mark.name),
        "cat": "function",
        "pid": _FUNCTIONS,
        "tid": lane,
        "ts": start_us,
        "dur": round(_microseconds(mark.end_s - fused.begin_s) - start_us, 3),
        "args": arguments,
    }
