"""Reader of traces that the PyTorch profiler exports (Kineto, `.pt.trace.json(.gz)`; docs/traces.md).

A row a launch: when it ran, on which stream, for which operator. GPU time is that of kernels alone: annotations of the
GPU cover kernels, copies are none. Where CUPTI's range profiler was on, the trace has the counters of each launch
instead of its time.

Who launched a kernel is told as one path: annotations, modules and the operator around the launch. A kernel has the
correlation number of its launch, a row of the CUDA or HIP runtime; the launch lies within the rows of its thread that
enclose it in time. The `External id` of a kernel is not used: in older traces it is the correlation number, and replays
of graphs have none. Nor are flows, which often lack an end.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec
import numpy as np

from eprof.base.arrays import Columns, Ints
from eprof.base.errors import LogError
from eprof.base.gpus import UNNAMED, of_amd
from eprof.base.optional import gathered, mapped, only
from eprof.base.text import phrase
from eprof.logs.log import BETWEEN, LAUNCH, Log, Names, Table, TableRows
from eprof.logs.stream import Source, unpacked
from eprof.profilers.kineto import RANGES, TRACE
from eprof.readers.cells import NO_UNIT, kind_of, no_kernels
from eprof.readers.gaps import Gaps
from eprof.readers.pytorch_trace import LATEST_NS, Event, Gpu, Id, Link, Trace, counters_of, link_of, parsed_trace

_CHUNK = 1 << 22
_LATEST_US = LATEST_NS / 1e3
_KERNEL, _RANGE = "kernel", "cuda_profiler_range"
_CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver")
_OTHERS = {"gpu_memcpy": "copies", "gpu_memset": "memsets"}
# What PyTorch called the categories before 1.12.
_OLD = {
    "Kernel": _KERNEL,
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Runtime": "cuda_runtime",
    "Operator": "cpu_op",
}
_RECORD = "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
GRAPH = "(graph launch)"
OUTSIDE = "(outside of operators)"
NOT_TOLD = "(launch not in the trace)"
_OPERATOR, _ANNOTATION, _PYTHON = "cpu_op", "user_annotation", "python_function"
_MODULE = "nn.Module: "
_BACKWARD = "autograd::engine::evaluate_function: "


def read(source: Source, _: Iterator[bytes], __: object, parts: str | None, *___: object) -> Log:
    """Read a trace of the PyTorch profiler. parts: as in `logs.read`. Raises LogError if it tells no kernels."""
    text = b"".join(unpacked(source, source.chunks(_CHUNK), _CHUNK))
    notes: list[str] = []
    gaps = Gaps()
    try:
        trace = parsed_trace(text)
        events = [event for event in trace.events if event.ph == "X"]
        if b'"Kernel"' in text:
            for event in events:
                event.cat = _OLD.get(event.cat or "", event.cat)
        tables = [_kernels(trace, events, parts, notes, gaps), _ranges(trace, events, parts, notes)]
    except msgspec.ValidationError as err:
        raise LogError(
            f"{source.path}: this is no trace of the PyTorch profiler ({err}); give one that it exported"
        ) from err
    except msgspec.DecodeError as err:
        raise LogError(f"{source.path}: the JSON is cut off or damaged ({err}); export the trace again") from err
    known = [table for table in tables if table is not None]
    if not known:
        raise LogError(f"{source.path}: the trace has no kernels, only what the CPU did; {_RECORD}")
    others = gathered((_OTHERS[event.cat], event.dur) for event in events if event.cat in _OTHERS)
    if others:
        notes.append(no_kernels((noun, len(own), sum(own) * 1e-6) for noun, own in sorted(others.items())))
    copies_s = 1e-6 * sum(event.dur for event in events if event.cat in _OTHERS)
    return source.log(known, [*source.notes, *notes], idle=gaps.idle, copies_s=copies_s, copies=gaps.copies)


def _kernels(trace: Trace, events: Sequence[Event], parts: str | None, notes: list[str], gaps: Gaps) -> Table | None:
    """A PyTorch trace's `Table` of launches with times; None without any. gaps: takes kernels, copies, CPU's calls."""
    kernels = [event for event in events if event.cat == _KERNEL]
    if not kernels:
        return None
    timed = [event for event in events if event.dur >= 0 and abs(event.ts) + event.dur < _LATEST_US]
    work = [*kernels, *(event for event in timed if event.cat in _OTHERS)]
    start_ns, time_ns = _times(work)
    columns = _devices([link_of(event) for event in work], trace.gpus), _kernel_names(work)
    copies = work[len(kernels) :]
    size_b = np.array([np.nan] * len(kernels) + [counters_of(copy).get("bytes", np.nan) for copy in copies])
    gaps.add(*columns, start_ns, time_ns, is_kernel=np.arange(len(work)) < len(kernels), size_b=size_b)
    recorded = [event for event in timed if event.cat in (_ANNOTATION, _OPERATOR, *_CALLS)]
    gaps.began_ns = min(_nanoseconds(event) for event in (*recorded, *work))
    for kind in ((_ANNOTATION,), (_OPERATOR,), _CALLS):
        ranges = [event for event in timed if event.cat in kind]
        begins_ns, lasts_ns = _times(ranges)
        gaps.explain(Names.of(event.name for event in ranges), begins_ns, begins_ns + lasts_ns)

    links = [link_of(kernel) for kernel in kernels]
    call_of = {link_of(event).correlation: event for event in events if event.cat in _CALLS}
    call_of.pop(None, None)  # nothing belongs to a call without a number
    time_s = np.array([kernel.dur for kernel in kernels]) * 1e-6
    lost = int((time_s < 0).sum())  # as some versions of Kineto wrote
    if lost:
        notes.append(f"{lost} launches of kernels end before they start, so their times are not known")
    streams = Names.of(mapped(str, kernel_link.stream) for kernel_link in links)
    rows = TableRows.of(
        _devices(links, trace.gpus),
        _kernel_names(kernels),
        time_s=np.where(time_s < 0, np.nan, time_s),
        part=streams if parts == "stream" else None,
        start_ns=start_ns[: len(kernels)] + trace.base_ns,
        stream=streams,
        operator=_operators(events, [call_of.get(each.correlation) for each in links], notes),
    )
    return Table(TRACE, rows, Columns.of({}, len(kernels)), {})


def _times(events: Sequence[Event]) -> tuple[Ints, Ints]:
    """(starts, lengths) of events of a PyTorch trace, ns, (n_events,) each."""
    starts = np.array([_nanoseconds(event) for event in events], dtype=np.int64)
    return starts, (1e3 * np.array([event.dur for event in events])).round().astype(np.int64)


def _nanoseconds(kernel: Event) -> int:
    """The start of an event of a PyTorch trace, ns. Raises msgspec.ValidationError for what is no time."""
    if not abs(kernel.ts) < _LATEST_US:
        raise msgspec.ValidationError(f"a kernel starts at {kernel.ts:g} µs")
    return round(kernel.ts * 1e3)


def _ranges(trace: Trace, events: Sequence[Event], parts: str | None, notes: list[str]) -> Table | None:
    """A PyTorch trace's `Table` of CUPTI's range counters, a row a launch, in order; None without any."""
    ranges = sorted((event for event in events if event.cat == _RANGE), key=lambda event: event.ts)
    counters = [counters_of(each) for each in ranges]
    if not any(counters):
        return None
    notes.append(
        "its counters are of CUPTI's range profiler, whose rows have no times of their own; give a trace without "
        "profiler_metrics along with it for times"
    )
    launches = [event for event in events if "Launch" in event.name and "HostFunc" not in event.name]
    calls = sorted((event for event in launches if event.cat in _CALLS), key=lambda event: event.ts)
    operator = None
    if len(calls) == len(ranges):
        operator = _operators(events, calls, notes)
    else:
        notes.append(f"{len(ranges)} ranges with counters, {len(calls)} launches of kernels: operators are not told")
    rows = TableRows.of(
        _devices([Link(device=each.pid) for each in ranges], trace.gpus),
        _kernel_names(ranges),
        part=operator if parts in (None, LAUNCH) else None,
    )
    amounts = [{name: (value, kind_of(name, NO_UNIT)) for name, value in each.items()} for each in counters]
    return Table.of_amounts(RANGES, rows, amounts)


def _operators(events: Sequence[Event], calls: Sequence[Event | None], notes: list[str]) -> Names | None:
    """The path of each launch in a PyTorch trace, its operator last: "Linear_3 > aten::addmm"; None: none is told."""
    if not any(event.cat == _OPERATOR for event in events):
        notes.append(f"the trace is of the GPU alone, so it tells no operators; {_RECORD}")
        return None
    wanted = {id(call) for call in calls if call is not None}
    rows = [
        event
        for event in events
        if id(event) in wanted
        or event.cat in (_OPERATOR, _ANNOTATION)
        or (event.cat == _PYTHON and event.name.startswith(_MODULE))
    ]
    path_of = {id(None): NOT_TOLD}
    rows.sort(key=attrgetter("thread"))
    for _, of_thread in groupby(rows, key=attrgetter("thread")):
        around: list[Event] = []  # the events that enclose the row, the outermost first
        for row in sorted(of_thread, key=lambda row: (row.ts, id(row) in wanted, -row.dur)):
            around = [scope for scope in around if scope.ts + scope.dur > row.ts or scope.ts == row.ts]
            if id(row) in wanted:
                path_of[id(row)] = _path(row, around)
            else:
                around.append(row)
    texts = [path_of[id(call)] for call in calls]
    replayed = sum(text.endswith(GRAPH) for text in texts)
    if replayed:
        notes.append(
            f"{replayed} launches of kernels are of graphs, whose operators the trace does not tell: they stand as "
            f"{GRAPH}; record without CUDA or HIP graphs to tell them apart"
        )
    return Names.of(texts)


def _kernel_names(kernels: Sequence[Event]) -> Names:
    unnamed = dict.fromkeys(("", "__missing__"), "(a kernel without name)")
    return Names.of(unnamed.get(kernel.name, kernel.name) for kernel in kernels)


def _devices(links: Sequence[Link], gpus: Sequence[Gpu]) -> Names:
    """A label for the device of each link of a PyTorch trace, "NVIDIA A100 (0)"; the only one where a link has none."""
    name_of: dict[Id, str] = {gpu.id: gpu.name or of_amd(gpu.units or 0, gpu.memory_b or 0.0) for gpu in gpus}
    # AMD's device numbers are not those of the list, whose GPUs mostly are alike.
    alike = only(set(name_of.values()))
    only_one = only(set(name_of))
    numbers = (only_one if each.device is None else each.device for each in links)
    return Names.of((name_of.get(number, alike) or UNNAMED) + phrase(" ({})", number) for number in numbers)


def _path(launch: Event, around: Sequence[Event]) -> str:
    """The path of a launch in PyTorch: annotations, modules, backward functions around it, and its operator last."""
    frames = []
    operator = OUTSIDE
    for scope in around:
        if scope.cat == _PYTHON:
            frames.append(scope.name.removeprefix(_MODULE))
        elif scope.cat == _ANNOTATION:
            frames.append(scope.name)
        elif scope.name.startswith(_BACKWARD):
            frames.append(scope.name.removeprefix(_BACKWARD))
        if scope.cat == _OPERATOR:
            operator = scope.name.removeprefix(_BACKWARD)
    if "GraphLaunch" in launch.name:
        operator = GRAPH
    frames = [frame for frame in frames if frame]
    if frames and frames[-1] == operator:
        frames.pop()
    return BETWEEN.join(name.replace(BETWEEN, ">") for name in (*frames, operator))
