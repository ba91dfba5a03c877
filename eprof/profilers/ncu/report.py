"""Report files of Nsight Compute (`.ncu-rep`), through NVIDIA's own reader, the package `ncu-report` (an extra).

The container of a report file of Nsight Compute (`.ncu-rep`): is it whole, and how many launches does it hold?

After the magic come messages of Google's Protocol Buffers, each with its length in front (4 bytes, little-endian): a
file header, then blocks, each a header and its payload of sources (device code), results (a profiled launch) and range
results. Read off two reports of ncu 2022.2; NVIDIA's reader passes over what it cannot use without a word, so this is
how eprof knows what it should have found.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Sequence
from typing import IO, Any, TypeVar

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Array
from eprof.base.errors import LogError
from eprof.base.optional import mapped
from eprof.base.text import counted, pattern, phrase, when
from eprof.logs.log import Log
from eprof.logs.stream import Source, whole_file
from eprof.profilers.ncu import REPORT, derived
from eprof.profilers.ncu.sheet import GPU_NAME, IMPORT, Launch, log_of_launches
from eprof.readers.cells import is_wrong

KIND = "ncu-report"
_DEVICE = "launch__device_id"
_VERSION = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_NEEDS = (
    "this is a report file of Nsight Compute, which NVIDIA's package ncu-report reads: pip install ncu-report; or "
    f"make a CSV of it with `{IMPORT}`"
)
_SOURCES, _RESULTS, _SESSION, _PAYLOAD, _PROCESS, _RANGES = 1, 2, 3, 5, 6, 7
_PID, _PROGRAM = 1, 3
_VARINT, _BYTES = 0, 2  # wire types
_FIXED = {1: 8, 5: 4}  # bytes of fields of the other wire types
_LARGEST_HEADER = 64 << 20  # session details and string tables are some kB
_BUILD = pattern(rb"Nsight Compute\D{0,20}(\d{4}\.\d+(?:\.\d+)*)")

T = TypeVar("T", int, bytes)
Message = dict[int, int | bytes]


def read(source: Source, _: object, keep: Container[str] | None, *__: object) -> Log:
    """Read a report file of ncu (`.ncu-rep`). keep: the counters to hold, by name; None for all.

    Raises LogError, one sentence: the package is missing, the file is cut off, damaged, newer than the package, or has
    no launches.
    """
    with whole_file(source, ".ncu-rep") as handle:
        shape = report_file_of(source.path, handle)
        if not shape.results:
            raise LogError(
                f"{source.path}: the report holds no profiled kernel; see that the program launches kernels on the "
                "GPU, that the filters (-k, -s, -c, --nvtx) let some through, and give ncu `--target-processes all`"
            )
        actions = _actions(source.path, handle.name, shape)
        try:
            log = _log(source.path, actions, shape, keep)
        except (TypeError, ValueError, RuntimeError) as err:  # of names and values that are none
            raise LogError(f"{source.path}: the report file is damaged ({err}); copy the file again") from err
    return source.log(
        log.tables,
        [*source.notes, *log.notes],
        command=shape.program,
        runs=max(1, len(set(shape.pids))),
        clocks=log.clocks,
        by_shape=log.by_shape,
    )


def _actions(path: str, name: str, shape: ReportFile) -> list[Any]:
    """A report's launches as objects of NVIDIA's reader. Raises LogError: that is missing, or does not see them all."""
    try:
        import ncu_report
    except ImportError as err:
        why = when(not isinstance(err, ModuleNotFoundError), f" ({err})")
        raise LogError(f"{path}: {_NEEDS}{why}") from err
    build = phrase(" {}", shape.build)
    mend = f"pip install --upgrade ncu-report, or make a CSV of it with the ncu{build} that wrote it: `{IMPORT}`"
    try:
        context = ncu_report.load_report(name)
        # A launch that it cannot parse comes without name or metrics, and without a word.
        actions = [action for stretch in context for action in stretch if action.name() and action.metric_names()]
    except Exception as err:  # whatever a foreign library makes of foreign bytes
        raise LogError(f"{path}: NVIDIA's package ncu-report cannot read the report ({err}); {mend}") from err
    if len(actions) != shape.results:
        raise LogError(
            f"{path}: NVIDIA's package ncu-report {context.get_version()} reads {len(actions)} of the {shape.results} "
            f"launches in this report{phrase(' of ncu {}', shape.build)}, so it is newer than the "
            f"package, or damaged; {mend}"
        )
    return actions


def _log(path: str, actions: Sequence[Any], shape: ReportFile, keep: Container[str] | None) -> Log:
    """The `Log` of launches in an ncu report, as NVIDIA's reader has them, with the metrics that are read."""
    metrics = dict.fromkeys(name for action in actions for name in action.metric_names())
    read_here = {name for name in metrics if derived.is_read(name, keep)}
    launches = []
    # Ranges do not tell their processes apart.
    pids = ["0"] * shape.results if shape.ranges else map(str, shape.pids)
    for action, pid in zip(actions, pids, strict=True):
        own = {name: action.metric_by_name(name) for name in action.metric_names() if name in read_here}
        launches.append(
            Launch(
                kernel=_text(action.name(action.NameBase_DEMANGLED)),
                gpu=_attribute(action, GPU_NAME),
                values={name: _number(metric) for name, metric in own.items()},
                units={name: metric.unit() for name, metric in own.items()},
                device=_attribute(action, _DEVICE),
                capability=phrase("{}.{}", *(_attribute(action, name) for name in _VERSION)) or None,
                process=pid,
            )
        )
    by_opcode: dict[str, Array] = {}
    for name in filter(derived.PER_OPCODE.fullmatch, metrics):
        with_opcodes = [action.metric_by_name(name) for action in actions]
        total = np.array([_number(metric) for metric in with_opcodes])
        by_opcode |= derived.opcode_columns(name, [_opcodes(metric) for metric in with_opcodes], total, keep)
    return log_of_launches(path, KIND, launches, metrics, keep, by_opcode)


def _value(metric: Any) -> Any:
    """A metric's value in an ncu report; None where it has none, or there is no such metric."""
    return metric.value() if metric is not None and metric.has_value() else None


def _number(metric: Any) -> float:
    """A metric's value in an ncu report as a number; NaN where it has none."""
    value = _value(metric)
    return float(value) if isinstance(value, int | float) and not is_wrong(value) else math.nan


def _opcodes(metric: Any) -> derived.Opcodes:
    """Opcode -> count, of a metric of a launch in an ncu report; None where it has no values by opcode."""
    if metric is None or not metric.has_correlation_ids():
        return None
    names = metric.correlation_ids()
    return {str(names.as_string(place)): float(metric.as_double(place)) for place in range(metric.num_instances())}


def _attribute(action: Any, name: str) -> str | None:
    """The value of an attribute of a launch in an ncu report as text; None where it has none."""
    return mapped(_text, _value(action.metric_by_name(name)))


def _text(value: object) -> str:
    """A name or a whole number in an ncu report, without the NULs that Windows leaves at the end of names."""
    if isinstance(value, float):
        value = int(value)
    return str(value).replace("\0", "")


class ReportFile(Struct):
    """What an ncu report file holds. pids: the process of each launch. ranges: how many it profiled.

    build: ncu's version. program: the path of the first program.
    """

    pids: list[int] = field(default_factory=list)
    ranges: int = 0
    build: str | None = None
    program: str | None = None

    @property
    def results(self) -> int:
        """How many profiled launches and ranges an ncu report file holds."""
        return len(self.pids) + self.ranges


class _Damaged(Exception):
    """The bytes are no report file; the message says why, "cut off" or "damaged"."""


def report_file_of(path: str, handle: IO[bytes]) -> ReportFile:
    """What an ncu report holds, from the headers of its blocks. Raises LogError: it is none, cut off or damaged."""
    size = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    if handle.read(4) != REPORT:
        raise LogError(f"{path}: this is no report file of Nsight Compute (it does not begin with NVR)")
    report = ReportFile()
    try:
        _message(handle, size)  # of the file
        _block(handle, size, report)  # at least that of the session
        while handle.tell() < size:
            _block(handle, size, report)
    except _Damaged as err:
        launches = counted(report.results, "whole launch", "whole launches")
        before = when(report.results, f"; {launches} before that")
        raise LogError(
            f"{path}: the report file is {err} at byte {handle.tell()} of {size}{before}; "
            "copy the file again, or profile again"
        ) from err
    return report


def _block(handle: IO[bytes], size: int, report: ReportFile) -> None:
    """Read the header of the next block, add what it tells to `report`, in place, and skip the block's payload."""
    header = _message(handle, size)
    process = _fields(_field(header, _PROCESS, b""))
    program = _field(process, _PROGRAM, b"").decode("utf-8", "replace")
    report.program = report.program or program.replace("\0", "") or None  # ncu of Windows counts the end of the text
    build = _BUILD.search(_field(header, _SESSION, b""))
    if build and not report.build:
        report.build = build[1].decode()
    entries = sum(_field(header, kind, 0) for kind in (_SOURCES, _RESULTS, _RANGES))
    end = handle.tell() + _field(header, _PAYLOAD, 0)
    reason = "cut off" if end > size else "damaged"
    for _ in range(entries):
        length = _length(handle)
        if handle.tell() + length > min(end, size):
            raise _Damaged(reason)
        handle.seek(length, os.SEEK_CUR)
    if handle.tell() != end:
        raise _Damaged(reason)
    report.pids += [_field(process, _PID, 0)] * _field(header, _RESULTS, 0)
    report.ranges += _field(header, _RANGES, 0)


def _message(handle: IO[bytes], size: int) -> Message:
    """The next message of an ncu report file, read behind its length. Raises _Damaged: it is too long, or cut off."""
    length = _length(handle)
    if length > _LARGEST_HEADER:
        raise _Damaged("damaged")
    if handle.tell() + length > size:
        raise _Damaged("cut off")
    return _fields(handle.read(length))


def _length(handle: IO[bytes]) -> int:
    length = handle.read(4)
    if len(length) < 4:
        raise _Damaged("cut off")
    return int.from_bytes(length, "little")


def _fields(data: bytes) -> Message:
    """The fields of a message of Protocol Buffers by number, as numbers and bytes; the last of a number counts."""
    fields: Message = {}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            fields[number], place = _varint(data, place)
            continue
        if wire_type in _FIXED:
            length = _FIXED[wire_type]
        elif wire_type == _BYTES:
            length, place = _varint(data, place)
        else:
            raise _Damaged("damaged")
        if place + length > len(data):
            raise _Damaged("damaged")
        fields[number] = data[place : place + length]
        place += length
    return fields


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """(value, where it ends) of a number of variable length in a message of Protocol Buffers."""
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 127) << shift
        shift += 7
        place += 1
        if byte < 128:
            return value, place
    raise _Damaged("damaged")


def _field(message: Message, number: int, left_out: T) -> T:
    """A field of a message, a number or bytes; `left_out` where it is not there. Raises _Damaged: it is the other."""
    value = message.get(number, left_out)
    if not isinstance(value, type(left_out)):
        raise _Damaged("damaged")
    return value
