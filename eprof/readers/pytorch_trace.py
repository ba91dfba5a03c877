"""The JSON of a trace of PyTorch's profiler as structures (`Trace`, `Event`); what eprof does not need is skipped."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from eprof.readers.cells import LARGEST

LATEST_NS = 4 * 10**18  # in the year 2096; twice as many ns are a number of 64 bits
Id = int | float | str | None


class Event(Struct, gc=False):
    """A row of a PyTorch trace: phase ("X": with a duration), category, name, times in µs. args: as in the file."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: Id = None
    tid: Id = None
    ts: float = 0.0
    dur: float = 0.0
    args: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def thread(self) -> str:
        """The process and thread of an event of the CPU in a PyTorch trace."""
        return f"{self.pid} {self.tid}"


class Link(Struct):
    """Arguments of a launch or a kernel in a PyTorch trace; the two share `correlation`. None: not told."""

    correlation: int | None = None
    device: Id = None
    stream: Id = None


class Gpu(Struct):
    """A GPU of the machine, as a PyTorch trace has it. units: its multiprocessors, or compute units."""

    id: int = -1
    name: str = ""
    units: int | None = field(name="numSms", default=None)
    memory_b: float | None = field(name="totalGlobalMem", default=None)


class Trace(Struct):
    """A PyTorch trace. base_ns: the time since the epoch at which the times of newer traces begin."""

    events: list[Event] = field(name="traceEvents")
    base_ns: Annotated[int, Meta(ge=0, le=LATEST_NS)] = field(name="baseTimeNanoseconds", default=0)
    gpus: list[Gpu] = field(name="deviceProperties", default_factory=list)


def parsed_trace(text: bytes) -> Trace:
    """The PyTorch trace in a JSON text. Raises msgspec.DecodeError: it is no JSON; ValidationError: it is no trace."""
    if not text.isascii():
        text = text.decode("utf-8", "replace").encode()
    return msgspec.json.decode(text, type=Trace, strict=False)


def link_of(event: Event) -> Link:
    """An event's correlation number, device and stream, from its arguments."""
    return msgspec.json.decode(event.args, type=Link, strict=False)


def counters_of(event: Event) -> dict[str, float]:
    """Name -> value of the arguments of an event in a PyTorch trace that are numbers: the counters of a range."""
    arguments = msgspec.json.decode(event.args, type=dict[str, Any])
    known = {name: value for name, value in arguments.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in known.items() if abs(value) < LARGEST}
