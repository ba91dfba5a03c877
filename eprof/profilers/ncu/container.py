"""The container of a report file of Nsight Compute (`.ncu-rep`): is it whole, and how many launches does it hold?

After the magic come messages of Google's Protocol Buffers, each with its length in front (4 bytes, little-endian): a
file header, then blocks, each a header and its payload of sources (device code), results (a profiled launch) and range
results. Read off two reports of ncu 2022.2; NVIDIA's reader passes over what it cannot use without a word, so this is
how eprof knows what it should have found.
"""

from collections.abc import Iterator
from typing import IO

from msgspec import Struct, field

from eprof.base.errors import LogError
from eprof.base.text import pattern
from eprof.profilers.ncu.signs import REPORT

_VERSION = 1
_SOURCES, _RESULTS, _SESSION, _PAYLOAD, _PROCESS, _RANGES = 1, 2, 3, 5, 6, 7
_PID, _PROGRAM = 1, 3
_FIXED = {1: 8, 5: 4}  # bytes of fields, by their wire type
_LARGEST_HEADER = 64 << 20  # session details and string tables are some kB
_BUILD = pattern(rb"Nsight Compute\D{0,20}(\d{4}\.\d+(?:\.\d+)*)")

Message = dict[int, list[int | bytes]]


class Shape(Struct):
    """What the container holds. pids: the process of each result, as they come. build: the ncu that wrote it.

    program: the path of the first process.
    """

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


def shape(path: str, handle: IO[bytes]) -> Shape:
    """Walk over the blocks of an open ncu report file, payloads skipped.

    Raises LogError if it is none, cut off or damaged.
    """
    handle.seek(0, 2)
    size = handle.tell()
    handle.seek(0)
    if handle.read(4) != REPORT:
        raise LogError(f"{path}: this is no report file of Nsight Compute (it does not begin with NVR)")
    report = Shape()
    try:
        report.version = _number(_message(handle, size), _VERSION)
        _block(handle, size, report)  # at least that of the session
        while handle.tell() < size:
            _block(handle, size, report)
    except _Damaged as err:
        launches = "1 whole launch" if report.results == 1 else f"{report.results} whole launches"
        before = f"; {launches} before that" if report.results else ""
        raise LogError(
            f"{path}: the report file is {err} at byte {handle.tell()} of {size}{before}; "
            "copy the file again, or profile again"
        ) from err
    return report


def _block(handle: IO[bytes], size: int, report: Shape) -> None:
    header = _message(handle, size)
    process = parse(_bytes_field(header, _PROCESS))
    session = _bytes_field(header, _SESSION)
    program = _bytes_field(process, _PROGRAM).decode("utf-8", "replace")
    report.program = report.program or program.replace("\0", "") or None  # ncu of Windows counts the end of the text
    build = _BUILD.search(session)
    if build and not report.build:
        report.build = build[1].decode()
    entries = sum(_number(header, kind) for kind in (_SOURCES, _RESULTS, _RANGES))
    end = handle.tell() + _number(header, _PAYLOAD)
    for _ in range(entries):
        length = _length(handle)
        if handle.tell() + length > min(end, size):
            raise _Damaged("cut off" if end > size else "damaged")
        handle.seek(length, 1)
    if handle.tell() != end:
        raise _Damaged("cut off" if end > size else "damaged")
    report.pids += [_number(process, _PID)] * _number(header, _RESULTS)
    report.ranges += _number(header, _RANGES)


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


def _number(message: Message, field_number: int) -> int:
    """A number in a message of an ncu report file; 0 where the field is left out."""
    value = message.get(field_number, [0])[-1]
    if not isinstance(value, int):
        raise _Damaged("damaged")
    return value


def _bytes_field(message: Message, field_number: int) -> bytes:
    value = message.get(field_number, [b""])[-1]
    if not isinstance(value, bytes):
        raise _Damaged("damaged")
    return value
