"""A report as a trace for Perfetto, in Chrome's JSON: launches on their streams, predicted power (docs/traces.md)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import Struct

from eprof import __version__
from eprof.base.kernels import short
from eprof.base.optional import mapped
from eprof.base.text import phrase, visible, when
from eprof.base.vocabulary import Mark
from eprof.logs.log import UNKNOWN, TableRows
from eprof.profile import schema
from eprof.show.export import trace_name, trace_number, trace_of
from eprof.show.words.amounts import bits
from eprof.show.words.numbers import quantity

_NAME = 80
_ROUNDING = 1e-3  # of the energy: times in ns
_GPU_NOT_NAMED = "GPU not named"


class _Launch(Struct):
    """A launch of a kernel. lane: 0; 1, 2... for one that overlaps others of its stream, drawn on a line of its own."""

    device: str
    stream: str
    start_ns: int
    end_ns: int
    kernel: schema.Kernel
    operator: str | None
    lane: int = 0

    @property
    def track(self) -> str:
        """The name of the trace's line that the launch is on."""
        stream = phrase("stream {}", self.stream) or "kernels"
        return stream + when(self.lane, f" (overlap {self.lane})")


def to_trace(document: schema.Profile, timeline: TableRows, warn: Callable[[str], None] = lambda note: None) -> bytes:
    """The bytes of a trace: launches of a report's kernels as in `timeline`, in µs from the first start, to the ns.

    A launch takes the mean power of its kernel for as long as it ran, so the counter of a GPU's power, integrated over
    time, is the energy of its launches. Kernels that the document does not have (`-k`) and launches without a time are
    left out. warn: takes the sentence that the trace does not hold all energy of the report, which stands in it too.
    """
    kernel_of = {(kernel.device, kernel.name): kernel for kernel in document.kernels}
    columns = (timeline.device, timeline.kernel, timeline.stream, timeline.operator)
    texts = [[None] * len(timeline) if column is None else column.texts().tolist() for column in columns]
    starts = mapped(np.ndarray.tolist, timeline.start_ns) or []
    lengths_ns = np.nan_to_num(timeline.time_s * 1e9, nan=UNKNOWN).round().astype(np.int64).tolist()
    launches = [
        _Launch(device or _GPU_NOT_NAMED, stream or "", start, start + length, kernel_of[device, kernel], operator)
        for device, kernel, stream, operator, start, length in zip(*texts, starts, lengths_ns, strict=True)
        if (device, kernel) in kernel_of and start != UNKNOWN and length != UNKNOWN
    ]
    # Streams by their numbers: shorter ones are smaller.
    launches.sort(key=lambda launch: (launch.device, len(launch.stream), launch.stream, launch.start_ns))
    # Perfetto drops what overlaps on one line, so that goes to further lines.
    for _, of_stream in groupby(launches, key=lambda launch: (launch.device, launch.stream)):
        free_ns: list[int] = []
        for launch in of_stream:
            launch.lane = next((lane for lane, end in enumerate(free_ns) if end <= launch.start_ns), len(free_ns))
            free_ns[launch.lane : launch.lane + 1] = [launch.end_ns]
    first_ns = min((launch.start_ns for launch in launches), default=0)
    head = {
        "eprof": __version__,
        "title": visible(document.title),
        "costs": ", ".join(costs.name for costs in document.prices) or None,
        "first_start_ns": first_ns,
    }
    if note := _shortfall(document, launches):
        head["note"] = note
        warn(note)
    # The head comes first: it is how eprof recognises its own traces.
    return trace_of(head, _rows(launches, first_ns))


def _shortfall(document: schema.Profile, launches: Sequence[_Launch]) -> str:
    """A sentence on how much of the report's energy is not in the trace, and why; empty if all of it is."""
    total_j = document.energy_j.total
    if not total_j:
        return ""
    seconds = [(launch.end_ns - launch.start_ns) * 1e-9 for launch in launches]
    traced_j = sum((launch.kernel.power_w or 0.0) * time_s for launch, time_s in zip(launches, seconds, strict=True))
    if traced_j >= (1 - _ROUNDING) * total_j:
        return ""
    drawn = {id(launch.kernel) for launch in launches if launch.kernel.power_w is not None}
    lacking = sum(id(kernel) not in drawn for kernel in document.kernels)
    why = "not every launch has a known time"
    if lacking:
        why = f"{lacking} of {len(document.kernels)} kernels have no launch whose time and energy are known"
    return f"The launches of this trace take {quantity(traced_j, 'J')} of the report's {quantity(total_j, 'J')}: {why}."


def _rows(launches: Sequence[_Launch], first_ns: int) -> Iterator[dict[str, Any]]:
    for number, (device, of_device) in enumerate(groupby(launches, key=attrgetter("device")), 1):
        own = list(of_device)
        yield trace_name("process_name", number, 0, visible(device))
        threads: dict[str, int] = {}
        for launch in own:
            if launch.track not in threads:
                threads[launch.track] = len(threads) + 1
                yield trace_name("thread_name", number, threads[launch.track], visible(launch.track))
            length_ns = launch.end_ns - launch.start_ns
            power_w = launch.kernel.power_w
            arguments: dict[str, Any] = {"kernel": visible(launch.kernel.name)}
            if power_w is not None:
                arguments |= {"energy_j": trace_number(power_w * length_ns * 1e-9), "power_w": trace_number(power_w)}
            arguments |= {"marks": " ".join(launch.kernel.marks), "operator": visible(launch.operator or "")}
            yield {
                "ph": "X",
                "name": visible(short(launch.kernel.name, _NAME)),
                "cat": "kernel",
                "pid": number,
                "tid": threads[launch.track],
                "ts": (launch.start_ns - first_ns) / 1e3,
                "dur": length_ns / 1e3,
                "args": {name: value for name, value in arguments.items() if value != ""},
            }
        yield from _power(own, number, first_ns)


def _power(launches: Sequence[_Launch], process: int, first_ns: int) -> Iterator[dict[str, Any]]:
    """A row for each change of a GPU's predicted power, W: the sum over the kernels that run, 0 between them."""
    known = [launch for launch in launches if launch.kernel.power_w is not None]
    if not known:
        return
    is_bound = len(known) < len(launches) or any(bits(launch.kernel.marks) & int(Mark.MISSING) for launch in known)
    # Perfetto adds the unit, which is the name of the argument.
    name = "predicted power" + when(is_bound, ", at least,")
    changes_w: dict[int, list[float]] = {}
    for launch in known:
        power_w = launch.kernel.power_w or 0.0
        changes_w.setdefault(launch.start_ns, []).append(power_w)
        changes_w.setdefault(launch.end_ns, []).append(-power_w)
    times_ns = sorted(changes_w)
    running = np.cumsum([sum(changes_w[time_ns]) for time_ns in times_ns])
    # What rounding leaves of a sum that is nothing is no power.
    floor_w = 1e-9 * float(running.max(initial=0.0))
    running[running <= floor_w] = 0.0
    for time_ns, power_w in zip(times_ns, running.tolist(), strict=True):
        value = trace_number(power_w)
        yield {"ph": "C", "name": name, "pid": process, "ts": (time_ns - first_ns) / 1e3, "args": {"W": value}}
