"""From a file to a `Log`, or to one sentence on why there is none. A reader is imported when a log needs it."""

import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from io import BufferedReader, BytesIO
from itertools import chain, islice
from pathlib import Path

from eprof.base.errors import LogError
from eprof.base.resources import content
from eprof.logs.sniff import SQLITE, refuse_foreign
from eprof.profilers.ncu import signs as ncu_signs
from eprof.profilers.nsys import signs as nsys_signs
from eprof.profilers.oclgrind import signs as oclgrind_signs
from eprof.rows import header as headers
from eprof.rows import packing
from eprof.rows.log import Log
from eprof.rows.stream import Source, Tuning, blocks, open_source

Reader = Callable[[Source, Iterator[bytes], Container[str] | None, str | None, int], Log]
Keep = Container[str] | Callable[[str], Container[str]] | None
_STRETCH_BYTES = 1 << 16  # of rows that are read sooner together than line by line
_TIMES_PACKED = 10  # a log is about as many times its packed size
_MOST_COLUMNS = 1 << 20  # bytes of a file of column names


def read(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    keep: Keep = None,
    progress: Callable[[int], None] | None = None,
    parts: str | None = None,
) -> Log:
    """Read one log, whatever profiler it is of.

    columns: the column names of rows that have no header (see `read_columns`). names: metric description -> metric
    name, for tables headed by descriptions. keep: the counters to hold, by name, or what gives those of a profiler;
    None for all. progress: is told how many bytes more were read. parts: "stream" or "nvtx", by which rows of a kernel
    are to be told apart.
    Raises LogError, one sentence, if the file cannot be read or holds no kernels.
    """
    return read_tuned(path, Tuning(), columns=columns, names=names, keep=keep, progress=progress, parts=parts)


def read_tuned(
    path: str | Path,
    tuning: Tuning,
    *,
    columns: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    keep: Keep = None,
    progress: Callable[[int], None] | None = None,
    parts: str | None = None,
) -> Log:
    """As `read`, holding as much at once as `tuning` says."""
    source = open_source(path, progress)
    with source.handle:
        log = _read(source, tuning, columns, names or {}, keep, parts)
    return log.of_bounds() if source.lacks_bytes else log


def _read(
    source: Source,
    tuning: Tuning,
    columns: Sequence[str] | None,
    names: Mapping[str, str],
    keep: Keep,
    parts: str | None,
) -> Log:
    """As `read`, from an open file."""
    head = _unpacked_head(source)
    if head.startswith(SQLITE):
        from eprof.profilers.nvprof.sqlite import read_sqlite

        return read_sqlite(source, _of(keep, "nvprof"), parts)
    if head.startswith(ncu_signs.REPORT):
        from eprof.profilers.ncu import report as ncu_report

        return ncu_report.read(source, _of(keep, "ncu"))
    if columns is None and (reader := _other_reader(head)) is not None:
        return reader(source, blocks(source, tuning), _of(keep, "ncu"), parts, tuning.fold_rows)
    size = os.fstat(source.handle.fileno()).st_size
    if oclgrind_signs.MARK.encode() in source.head or size > len(source.head) and oclgrind_signs.is_in(source.path):
        from eprof.profilers.oclgrind import reader as oclgrind

        return oclgrind.read(source.path, source.chunks(tuning.chunk_bytes), _of(keep, "oclgrind"))
    refuse_foreign(source.path, head)
    pieces = blocks(source, tuning)
    first = next(pieces, b"")
    if columns is None and (reader := _other_reader(first)) is not None:
        return reader(source, chain([first], pieces), _of(keep, "ncu"), parts, tuning.fold_rows)
    from eprof.profilers.nvprof import reader as nvprof

    size_bytes = _likely_bytes(size, source)
    walked = nvprof.walk(source, chain([first], pieces), tuning, columns, names, _of(keep, "nvprof"), parts, size_bytes)
    if columns is None and not walked.has_tables:
        late = _late_reader(source.path, tuning, walked.is_foreign, walked.is_profiled)
        if late is not None:
            with (again := open_source(source.path)).handle:
                log = late(again, blocks(again, tuning), _of(keep, "ncu"), parts, tuning.fold_rows)
            source.lacks_bytes |= again.lacks_bytes
            return log
    return walked.log(columns is not None)


def _of(keep: Keep, profiler: str) -> Container[str] | None:
    return keep(profiler) if callable(keep) else keep


def _likely_bytes(size: int, source: Source) -> int:
    """How long a log of `size` bytes on disk is when it is unpacked."""
    return size if packing.kind(source.head) is None else _TIMES_PACKED * size


def _other_reader(block: bytes) -> Reader | None:
    """Who reads a log with such a block, if it is not of nvprof."""
    if ncu_signs.is_in(block):
        return _ncu_reader()
    if nsys_signs.is_in(block):
        from eprof.profilers.nsys import json as nsys_json

        return nsys_json.read
    return None


def _ncu_reader() -> Reader:
    from eprof.profilers.ncu import reader as ncu

    return ncu.read


def _late_reader(path: str | Path, tuning: Tuning, is_foreign: bool, is_profiled: bool) -> Reader | None:
    """The same for a log without any table of nvprof, which may have others behind much other text."""
    if is_foreign:
        return _ncu_reader()
    if is_profiled:
        return None
    with (source := open_source(path)).handle:
        return next(filter(None, map(_other_reader, blocks(source, tuning))), None)


def _unpacked_head(source: Source) -> bytes:
    """The first bytes, unpacked if the file is packed. Raises LogError if they cannot be."""
    how = packing.kind(source.head)
    if how is None:
        return source.head
    # A zstd frame gives nothing before its first block is whole, so some more of the file is looked at.
    more = b""
    if how == "zstd" and isinstance(source.handle, BufferedReader):
        more = source.handle.peek(1 << 18)
    head = next((piece for piece in packing.unpack([source.head, more], how, [], 1 << 16) if piece), b"")
    if not head:
        raise LogError(
            f"{source.path}: the {how} data are damaged or cut off before the first line; copy the file again"
        )
    return head


def read_columns(path: str | Path) -> list[str]:
    """The column names in a file of one CSV line, for rows without header. Raises LogError if there is no such line."""
    try:
        source = Source(str(path), BytesIO(), content(Path(path), _MOST_COLUMNS))
    except OSError as err:
        raise LogError(f"{path}: cannot be read: {err.strerror or err}; give one line of column names") from err
    text = b"".join(islice(blocks(source, Tuning()), 2)).decode()
    lines = [line for line in text.split("\n") if line.strip()]
    names = [name.strip() for name in headers.split(lines[0])] if lines else []
    if len(lines) != 1 or len(names) < 2:
        raise LogError(f"{path}: this must be one line with the names of the columns, separated by commas")
    return names
