"""Report files of Nsight Compute (`.ncu-rep`), through NVIDIA's own reader, the package `ncu-report` (an extra).

The container of a report file of Nsight Compute (`.ncu-rep`): is it whole, and how many launches does it hold?

After the magic come messages of Google's Protocol Buffers, each with its length in front (4 bytes, little-endian): a
file header, then blocks, each a header and its payload of sources (device code), results (a profiled launch) and range
results. Read off two reports of ncu 2022.2; NVIDIA's reader passes over what it cannot use without a word, so this is
how eprof knows what it should have found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any, TypeVar

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Array
from eprof.base.errors import LogError
from eprof.base.known import mapped
from eprof.base.text import counted, pattern, phrase, when
from eprof.logs.rows.cells import is_wrong
from eprof.logs.rows.log import Log
from eprof.logs.rows.numbers import Unit, unit_of
from eprof.logs.rows.stream import Source, whole_file
from eprof.profilers.ncu import derived, opcodes
from eprof.profilers.ncu.sheet import GPU_NAME, IMPORT, Collected, Remarks, Sheet, notes_of_counters
from eprof.profilers.ncu.signs import REPORT

KIND = "ncu-report"
_DEVICE = "launch__device_id"
_VERSION = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_NEEDS = (
    "this is a report file of Nsight Compute, which NVIDIA's package ncu-report reads: pip install ncu-report; or "
    f"make a CSV of it with `{IMPORT}`"
)
_FIELD_VERSION = 1
_SOURCES, _RESULTS, _SESSION, _PAYLOAD, _PROCESS, _RANGES = 1, 2, 3, 5, 6, 7
_PID, _PROGRAM = 1, 3
_FIXED = {1: 8, 5: 4}  # bytes of fields, by their wire type
_LARGEST_HEADER = 64 << 20  # session details and string tables are some kB
_BUILD = pattern(rb"Nsight Compute\D{0,20}(\d{4}\.\d+(?:\.\d+)*)")

T = TypeVar("T", int, bytes)
Message = dict[int, list[int | bytes]]


def read(source: Source, _: object, keep: Container[str] | None, *__: object) -> Log:
    """Read a report file of ncu (`.ncu-rep`). keep: the counters to hold, by name; None for all.

    Raises LogError, one sentence: the package is missing, the file is cut off, damaged, newer than the package, or has
    no launches.
    """
    with whole_file(source, ".ncu-rep") as handle:
        shape = shape_of(source.path, handle)
        if not shape.results:
            raise LogError(
                f"{source.path}: the report holds no profiled kernel; see that the program launches kernels on the "
                "GPU, that the filters (-k, -s, -c, --nvtx) let some through, and give ncu `--target-processes all`"
            )
        actions = _actions(source.path, handle.name, shape)
        try:
            # Ranges do not tell their processes apart.
            pids = ["0"] * shape.results if shape.ranges else [str(pid) for pid in shape.pids]
            collected = Collected()
            collected.add(KIND, collected.piece(_sheet(actions, pids, keep), keep))
        except (TypeError, ValueError, RuntimeError) as err:  # of names and values that are none
            raise LogError(f"{source.path}: the report file is damaged ({err}); copy the file again") from err
    tables = collected.tables()
    return source.log(
        tables,
        [*source.notes, *notes_of_counters(tables, collected.remarks, keep)],
        command=shape.program,
        runs=max(1, len(set(shape.pids))),
        clocks=tuple(collected.clocks),
    )


def _actions(path: str, name: str, shape: Shape) -> list[Any]:
    """What NVIDIA's reader makes of the launches in an ncu report.

    Raises LogError if it is not there, or does not see all of them.
    """
    try:
        import ncu_report
    except ImportError as err:
        why = when(not isinstance(err, ModuleNotFoundError), f" ({err})")
        raise LogError(f"{path}: {_NEEDS}{why}") from err
    try:
        context = ncu_report.load_report(name)
        # A launch that it cannot parse comes without name or metrics, and without a word.
        actions = [action for stretch in context for action in stretch if action.name() and action.metric_names()]
    except Exception as err:  # whatever a foreign library makes of foreign bytes
        raise LogError(f"{path}: NVIDIA's package ncu-report cannot read the report ({err}); {_mend(shape)}") from err
    if len(actions) != shape.results:
        raise LogError(
            f"{path}: NVIDIA's package ncu-report {context.get_version()} reads {len(actions)} of the {shape.results} "
            f"launches in this report{phrase(' of ncu {}', shape.build)}, so it is newer than the "
            f"package, or damaged; {_mend(shape)}"
        )
    return actions


def _mend(shape: Shape) -> str:
    ncu = f"ncu{phrase(' {}', shape.build)}"
    return f"pip install --upgrade ncu-report, or make a CSV of it with the {ncu} that wrote it: `{IMPORT}`"


def _sheet(actions: Sequence[Any], pids: Sequence[str], keep: Container[str] | None) -> Sheet:
    names = [dict.fromkeys(action.metric_names()) for action in actions]
    metrics = list(dict.fromkeys(chain.from_iterable(names)))
    chosen = [name for name in metrics if derived.is_read(name, keep)]
    units: dict[str, Unit] = {}
    missing: Counter[str] = Counter()
    values = {name: np.full(len(actions), np.nan) for name in chosen}
    for row, (action, own) in enumerate(zip(actions, names, strict=True)):
        for name in chosen:
            if name in own:
                metric = action.metric_by_name(name)
                unit = unit_of(metric.unit())
                units.setdefault(name, unit)
                values[name][row] = _number(metric) * unit.factor
                missing[name] += bool(np.isnan(values[name][row]))
    versions = zip(*(_words(actions, name) for name in _VERSION), strict=True)
    return Sheet(
        kind=KIND,
        device=_words(actions, _DEVICE),
        capability=[phrase("{}.{}", *version) or None for version in versions],
        gpu=_words(actions, GPU_NAME),
        kernel=[_text(action.name(action.NameBase_DEMANGLED)) for action in actions],
        process=pids,
        launches=np.ones(len(actions), dtype=np.int64),
        units=units,
        values=np.array([values[name] for name in units]).reshape(len(units), len(actions)),
        by_opcode=_by_opcode(actions, names, keep),
        remarks=Remarks(metrics=metrics, missing=+missing),
    )


def _value(metric: Any) -> Any:
    """A metric's value in an ncu report; None where it has none, or there is no such metric."""
    return metric.value() if metric is not None and metric.has_value() else None


def _number(metric: Any) -> float:
    """The same as a number; NaN where it is none."""
    value = _value(metric)
    if not isinstance(value, int | float) or not np.isfinite(value) or is_wrong(value):
        return float("nan")
    return float(value)


def _by_opcode(actions: Sequence[Any], names: Sequence[Iterable[str]], keep: Container[str] | None) -> dict[str, Array]:
    counters: dict[str, Array] = {}
    for name in dict.fromkeys(name for own in names for name in own if opcodes.PER_OPCODE.fullmatch(name)):
        metrics = [action.metric_by_name(name) for action in actions]
        total = np.array([_number(metric) for metric in metrics])
        counters |= opcodes.columns(name, [_opcodes(metric) for metric in metrics], total, keep)
    return counters


def _opcodes(metric: Any) -> opcodes.Opcodes:
    if metric is None or not metric.has_correlation_ids():
        return None
    names = metric.correlation_ids()
    return {str(names.as_string(place)): float(metric.as_double(place)) for place in range(metric.num_instances())}


def _words(actions: Sequence[Any], name: str) -> list[str | None]:
    """The value of an attribute of each launch in an ncu report as text; None where it has none."""
    return [mapped(_text, _value(action.metric_by_name(name))) for action in actions]


def _text(value: object) -> str:
    """A name or a whole number in an ncu report, without the NULs that Windows leaves at the end of names."""
    if isinstance(value, float):
        value = int(value)
    return str(value).replace("\0", "")


class Shape(Struct):
    """What the container holds. pids: the process of each result. build: the ncu. program: the first's path."""

    version: int = 0
    pids: list[int] = field(default_factory=list)
    ranges: int = 0
    build: str | None = None
    program: str | None = None

    @property
    def results(self) -> int:
        """How many profiled launches and ranges an ncu report file holds."""
        return len(self.pids) + self.ranges


class _Damaged(Exception):
    """The bytes are no container, with what is wrong."""


def shape_of(path: str, handle: IO[bytes]) -> Shape:
    """Walk over the blocks of an ncu report, payloads skipped. Raises LogError if it is none, cut off or damaged."""
    handle.seek(0, 2)
    size = handle.tell()
    handle.seek(0)
    if handle.read(4) != REPORT:
        raise LogError(f"{path}: this is no report file of Nsight Compute (it does not begin with NVR)")
    report = Shape()
    try:
        report.version = _last(_message(handle, size), _FIELD_VERSION, 0)
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


def _block(handle: IO[bytes], size: int, report: Shape) -> None:
    header = _message(handle, size)
    process = parse(_last(header, _PROCESS, b""))
    session = _last(header, _SESSION, b"")
    program = _last(process, _PROGRAM, b"").decode("utf-8", "replace")
    report.program = report.program or program.replace("\0", "") or None  # ncu of Windows counts the end of the text
    build = _BUILD.search(session)
    if build and not report.build:
        report.build = build[1].decode()
    entries = sum(_last(header, kind, 0) for kind in (_SOURCES, _RESULTS, _RANGES))
    end = handle.tell() + _last(header, _PAYLOAD, 0)
    reason = "cut off" if end > size else "damaged"
    for _ in range(entries):
        length = _length(handle)
        if handle.tell() + length > min(end, size):
            raise _Damaged(reason)
        handle.seek(length, 1)
    if handle.tell() != end:
        raise _Damaged(reason)
    report.pids += [_last(process, _PID, 0)] * _last(header, _RESULTS, 0)
    report.ranges += _last(header, _RANGES, 0)


def _length(handle: IO[bytes]) -> int:
    length = handle.read(4)
    if len(length) < 4:
        raise _Damaged("cut off")
    return int.from_bytes(length, "little")


def _message(handle: IO[bytes], size: int) -> Message:
    length = _length(handle)
    if length > _LARGEST_HEADER:
        raise _Damaged("damaged")
    if handle.tell() + length > size:
        raise _Damaged("cut off")
    return parse(handle.read(length))


def parse(data: bytes) -> Message:
    """The fields of a message of Protocol Buffers in an ncu report file by number, as numbers and bytes."""
    fields: Message = {}
    for number, value in _fields(data):
        fields.setdefault(number, []).append(value)
    return fields


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of Protocol Buffers, one by one: number and value."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
        elif kind in (1, 2, 5):
            length = _FIXED.get(kind, 0)
            if not length:
                length, place = _varint(data, place)
            if place + length > len(data):
                raise _Damaged("damaged")
            yield key >> 3, data[place : place + length]
            place += length
        else:
            raise _Damaged("damaged")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of variable length in a message of Protocol Buffers, and where it ends."""
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 127) << shift
        shift += 7
        place += 1
        if byte < 128:
            return value, place
    raise _Damaged("damaged")


def _last(message: Message, field_number: int, left_out: T) -> T:
    """A field in a message of an ncu report file, a number or bytes; `left_out` where it is not there."""
    value = message.get(field_number, [left_out])[-1]
    if not isinstance(value, type(left_out)):
        raise _Damaged("damaged")
    return value
