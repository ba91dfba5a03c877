"""Valid logs of many formats, written from facts: what they say in total is known, however odd the names are.

For hypothesis (`facts`) and for the fuzzer (`drawn`). A format tells the counts of an instruction, times, or both.
"""

import csv
import gzip
import io
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import logs_support as make
import pyarrow as pa
import seeds
from hypothesis import strategies as st

NAMES = (
    "k(int)", "axpy(int, float*)", 'odd "one", two', "größe<a, b>(void)", "_Z4axpyPf", "void f<(bool)1, 3u>(float const *)",
    "run<[lambda() (instance 1)]>(int)", "=k=", "a'b(int)", "核(int)",
)  # fmt: skip
COUNTER = "inst_integer"


@dataclass(frozen=True)
class Kernel:
    """What a kernel did: how often it ran, with so many instructions and for so long, the same each time."""

    name: str
    launches: int
    count: int
    time_ns: int


Facts = Sequence[Kernel]


def _csv(*rows: Sequence[object], quote: int = csv.QUOTE_ALL) -> list[str]:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=quote).writerows(rows)
    return text.getvalue().splitlines()


def _each(facts: Facts) -> Iterator[Kernel]:
    return (one for one in facts for _ in range(one.launches))


def _nvprof(*lines: str) -> bytes:
    return make.profiled(7, *lines).encode()


def metrics(facts: Facts) -> bytes:
    """A summary of metrics."""
    rows = [make.metric(COUNTER, one.count, one.name, one.launches) for one in facts]
    return _nvprof("==7== Metric result:", make.METRICS, *rows)


def events(facts: Facts) -> bytes:
    """A summary of events, with totals."""
    rows = [
        make.event(COUNTER, one.count, one.name.replace('"', '""'), one.launches) + f",{one.count * one.launches}"
        for one in facts
    ]
    return _nvprof("==7== Event result:", f'{make.EVENTS},"Total"', *rows)


def wide(facts: Facts) -> bytes:
    """A row a launch with counters."""
    rows = _csv(*((make.K20C, 1, 7, one.name, i, one.count, "1.5") for i, one in enumerate(_each(facts))))
    head = f'"Device","Context","Stream","Kernel","Correlation_ID","{COUNTER}","dram_read_throughput"'
    return _nvprof(head, ",,,,,,GB/s", *rows)


def trace(facts: Facts) -> bytes:
    """A row a launch with its time."""
    rows = [
        make.launch(f"{one.time_ns / 1e6:.6f}", one.name.replace('"', '""'), i) for i, one in enumerate(_each(facts))
    ]
    return _nvprof(make.TRACE, make.TRACE_UNITS, *rows)


def usage(facts: Facts) -> bytes:
    """A row a kernel with its time."""
    rows = _csv(*((100.0, f"{_total_ms(one):.6f}", one.launches, 1, 1, 1, one.name) for one in facts))
    return _nvprof(make.USAGE, seeds.USAGE_UNITS, *rows)


def text_usage(facts: Facts) -> bytes:
    """The same for people."""
    head = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name"
    rows = [
        f" GPU activities:  100.00%  {_total_ms(one):.6f}ms  {one.launches:8}  1.0ms  1.0ms  1.0ms  {one.name}"
        for one in facts
    ]
    return _nvprof(head, *rows)


def text_counters(facts: Facts) -> bytes:
    """A summary of metrics for people."""
    lines = ["Invocations    Metric Name    Metric Description    Min    Max    Avg", f'Device "{make.K20C}"']
    for one in facts:
        lines += [f"    Kernel: {one.name}", f"  {one.launches}    {COUNTER}    Integers    1    9    {one.count}"]
    return _nvprof("==7== Metric result:", *lines)


def nvvp(facts: Facts) -> bytes:
    """A database."""
    with tempfile.NamedTemporaryFile(suffix=".nvvp") as file:
        base = sqlite3.connect(file.name)
        base.execute("create table StringTable (_id_ integer primary key, value text)")
        base.executemany("insert into StringTable values (?, ?)", [(i + 1, one.name) for i, one in enumerate(facts)])
        base.execute("create table CUPTI_ACTIVITY_KIND_DEVICE (id integer, name integer)")
        table = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
        base.execute(f"create table {table} (start integer, end integer, deviceId integer, name integer)")
        for i, one in enumerate(facts):
            rows = [(1000, 1000 + one.time_ns, 0, i + 1)] * one.launches
            base.executemany(f"insert into {table} values (?, ?, ?, ?)", rows)
        base.commit()
        base.close()
        return Path(file.name).read_bytes()


def _ncu(one: Kernel, number: int) -> tuple[object, ...]:
    return (number, 7, "p", "h", one.name, 1, 7, "(32, 1, 1)", "(64, 1, 1)", 0, "8.0")


def ncu_long(facts: Facts) -> bytes:
    """A row a launch and metric."""
    rows = [
        (*_ncu(one, i), "Metrics", *metric)
        for i, one in enumerate(_each(facts))
        for metric in ((seeds.DFMA, "inst", f"{one.count:,}"), ("gpu__time_duration.sum", "nsecond", one.time_ns))
    ]
    return "\n".join(["==PROF== Connected to process 7 (/p)", seeds.NCU_LONG, *_csv(*rows), ""]).encode()


def ncu_raw(facts: Facts) -> bytes:
    """A row a launch."""
    rows = [(*_ncu(one, i), one.count, one.time_ns) for i, one in enumerate(_each(facts))]
    head = f'{seeds.NCU},"{seeds.DFMA}","gpu__time_duration.sum"'
    return "\n".join([head, f'{"," * 10},"inst","nsecond"', *_csv(*rows), ""]).encode()


def ncu_summary(facts: Facts) -> bytes:
    """A row a kernel and metric."""
    rows = [
        (*_ncu(one, 0)[1:5], *_ncu(one, 0)[7:], one.launches, "Metrics", name, unit, 1, 9, f"{value}.00")
        for one in facts
        for name, unit, value in ((seeds.DFMA, "inst", one.count), ("gpu__time_duration.sum", "ns", one.time_ns))
    ]
    return "\n".join([seeds.NCU_SUMMARY, *_csv(*rows), ""]).encode()


def nsys(facts: Facts) -> bytes:
    """A row a kernel with its time."""
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    rows = [(100.0, one.time_ns * one.launches, one.launches, 1.0, 1.0, 1, 1, 0.0, one.name) for one in facts]
    return "\n".join([head, *_csv(*rows, quote=csv.QUOTE_MINIMAL), ""]).encode()


def ncu_page(facts: Facts) -> bytes:
    """The page for reading: a block a launch."""
    lines = ["==PROF== Connected to process 7 (/p)", "==PROF== Disconnected from process 7", "[7] p@127.0.0.1"]
    ruler = f"    {'-' * len(seeds.DFMA)} ----------- ----------------"
    names = f"    {'Metric Name':{len(seeds.DFMA)}} Metric Unit     Metric Value"
    for one in _each(facts):
        lines.append(f"  {one.name} (64, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.0")
        lines += ["    Section: Command line profiler metrics", ruler, names, ruler]
        for name, unit, value in ((seeds.DFMA, "inst", one.count), ("gpu__time_duration.sum", "ns", one.time_ns)):
            lines.append(f"    {name:{len(seeds.DFMA)}} {unit:>11} {value:16,}")
        lines += [ruler, ""]
    return "\n".join([*lines, ""]).encode()


def nsys_text(facts: Facts) -> bytes:
    """The summary of nsys for reading."""
    lines = [
        " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):",
        "",
        f" Time (%)  {'Total Time (ns)':>20}  Instances  Name",
    ]
    lines += [f" --------  {'-' * 20}  ---------  {'-' * 40}"]
    lines += [f"    100.0  {one.time_ns * one.launches:20,}  {one.launches:9,}  {one.name:40}" for one in facts]
    return "\n".join([*lines, "", ""]).encode()


def nsys_trace(facts: Facts) -> bytes:
    """A row a launch with its time."""
    head = "Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,Strm,Name"
    rows = [(i, one.time_ns, i, 64, "NVIDIA A100 (0)", 1, 7, one.name) for i, one in enumerate(_each(facts))]
    copy = (9, 99, 9, "", "NVIDIA A100 (0)", 1, 7, "[CUDA memset]")
    return "\n".join([head, *_csv(*rows, copy, quote=csv.QUOTE_MINIMAL), ""]).encode()


def oclgrind(facts: Facts) -> bytes:
    """A block a launch."""
    block = "Instructions executed for kernel '{}':\n  {:10} - add\n           1 - br\n\n"
    return "".join(block.format(one.name, one.count) for one in _each(facts)).encode()


def kineto(facts: Facts) -> bytes:
    """A trace of PyTorch's profiler: an operator, a call and a kernel a launch."""
    rows = []
    for number, one in enumerate(_each(facts)):
        at = 10.0 * number
        call, links = {"correlation": number}, {"correlation": number, "device": 0, "stream": 7}
        rows += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::{number % 2}", "pid": 1, "tid": 1, "ts": at, "dur": 9},
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 1,
                "tid": 1,
                "ts": at + 1,
                "args": call,
            },
            {"ph": "X", "cat": "kernel", "name": one.name, "ts": at, "dur": one.time_ns / 1e3, "args": links},
        ]
    gpus = [{"id": 0, "name": "NVIDIA A100"}]
    return json.dumps({"schemaVersion": 1, "deviceProperties": gpus, "traceEvents": rows}).encode()


def _total_ms(one: Kernel) -> float:
    return one.time_ns * one.launches / 1e6


# What writes each, the counter that it tells (None: none), whether it tells times.
FORMATS: dict[str, tuple[Callable[[Facts], bytes], str | None, bool]] = {
    "nvprof-metrics": (metrics, COUNTER, False),
    "nvprof-events": (events, COUNTER, False),
    "nvprof-wide": (wide, COUNTER, False),
    "nvprof-trace": (trace, None, True),
    "nvprof-usage": (usage, None, True),
    "nvprof-text-usage": (text_usage, None, True),
    "nvprof-text-counters": (text_counters, COUNTER, False),
    "nvprof-sqlite": (nvvp, None, True),
    "ncu-long": (ncu_long, seeds.DFMA, True),
    "ncu-raw": (ncu_raw, seeds.DFMA, True),
    "ncu-summary": (ncu_summary, seeds.DFMA, True),
    "ncu-page": (ncu_page, seeds.DFMA, True),
    "nsys": (nsys, None, True),
    "nsys-text": (nsys_text, None, True),
    "nsys-trace": (nsys_trace, None, True),
    "oclgrind": (oclgrind, "add", False),
    "kineto": (kineto, None, True),
}
WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
    "Windows": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "PowerShell": lambda data: data.decode().encode("utf-16"),
    "output": lambda data: b"Hello from the program, at 0.5 of it\n" + data + b"Good bye\n",
}


def write(facts: Facts, name: str, wrapping: str = "as it is") -> bytes:
    """A log; databases, traces and what Oclgrind writes are of their own kind, so these are packed at most."""
    data = FORMATS[name][0](facts)
    if name in ("nvprof-sqlite", "kineto") and wrapping not in ("as it is", "gzip"):
        return data
    return data if name == "oclgrind" and wrapping in ("gzip", "zstd", "PowerShell") else WRAPPINGS[wrapping](data)


facts = st.lists(
    st.builds(Kernel, st.sampled_from(NAMES), st.integers(1, 3), st.integers(0, 10**9), st.integers(1, 10**9)),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one.name,
)


def drawn(number: int) -> tuple[str, bytes]:
    """A format, and a log of it, by number."""
    chance = random.Random(number)
    names = chance.sample(NAMES, chance.randrange(1, 4))
    some = [Kernel(one, chance.randrange(1, 3), chance.randrange(10**6), chance.randrange(1, 10**6)) for one in names]
    name = chance.choice(list(FORMATS))
    return name, write(some, name, chance.choice(list(WRAPPINGS)))
