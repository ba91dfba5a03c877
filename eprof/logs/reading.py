"""`read`: from a file to a `Log`, or to one sentence on why there is none. Readers are imported when needed."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader, BytesIO
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any

from eprof import profilers
from eprof.base.errors import LogError
from eprof.base.resources import content
from eprof.base.text import pattern
from eprof.logs.log import Log
from eprof.logs.stream import Source, Tuning, blocks, open_source, packing, split, unpack, utf16

Keep = Container[str] | Callable[[str], Container[str]] | None
_TIMES_PACKED = 10  # a log is about as many times its packed size
_MOST_COLUMNS = 1 << 20  # bytes of a file of column names
_FOREIGN = {
    b"\x7fELF": "this is a program, not a log; profile it with `eprof run`, or give its log",
    b"MZ": "this is a Windows program, not a log; profile it there, and give the log",
    b"PK\x03\x04": "this is a zip archive; unpack it and give the logs in it",
    b"BZh": "this is packed with bzip2; unpack it first (gzip and zstd are read as they are)",
    b"\xfd7zXZ": "this is packed with xz; unpack it first (gzip and zstd are read as they are)",
    b"7z\xbc\xaf": "this is a 7z archive; unpack it and give the logs in it",
    b"\x89PNG": "this is a picture; give the log as text",
    b"\xff\xd8\xff": "this is a picture; give the log as text",
    b"%PDF": "this is a PDF; give the log as text",
    b"\3BOTF2": "this is a trace of OTF2; `otf2-print` makes text of it, whose messages `eprof comm --messages` prices",
    b"PAR1": "this is a Parquet file; give the log as the profiler wrote it",
}

_LOOK = 4096  # of the first bytes
# Counters of AMD's profilers that somebody put into a table like ncu's, and databases.
_OF_AMD = pattern(
    rb"Metric Name[^\n]*\n(?:[^\n]*,)?\"?(?:SQC?|TC[ACP]|TA|TD|SPI|GRBM|CP[CF])_[A-Z][A-Z0-9_]+(?:\[\d+\])?\"?,"
    rb"|^SQLite format 3\0[\0-\xff]*CREATE TABLE [\"`]?(?:rocpd_|(?:HIP|KERN)\b)"
)


def read(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    keep: Keep = None,
    progress: Callable[[int], None] | None = None,
    parts: str | None = None,
    tuning: Tuning | None = None,
) -> Log:
    """Read the log in one file, whatever profiler it is of.

    columns: the column names of rows that have no header (see `read_columns`). names: metric description -> metric
    name, for tables headed by descriptions. keep: the counters to hold, by name, or what gives those of a profiler;
    None for all. progress: called with the number of new bytes. parts: "stream" or "nvtx", which splits the rows of a
    kernel. tuning: how much is held at once.
    Raises LogError, one sentence, if the file cannot be read or holds no kernels.
    """
    source = open_source(path, progress)
    with source.handle:
        log = _read(source, tuning or Tuning(), columns, names or {}, keep, parts)
    return log.of_bounds(source.lacks_bytes)


def _read(
    source: Source,
    tuning: Tuning,
    columns: Sequence[str] | None,
    names: Mapping[str, str],
    keep: Keep,
    parts: str | None,
) -> Log:
    """Find the reader by the log's first block, else take the one of unsigned logs, and read. Arguments: as `read`."""
    head = _unpacked_head(source)
    if _OF_AMD.search(head, 0, _LOOK):
        raise LogError(
            f"{source.path}: this is of a profiler of AMD GPUs, in a form that eprof does not read; give its CSV "
            "(results.csv, or of `rocprofv3 --output-format csv`)"
        )
    pieces = blocks(source, tuning)
    is_binary = b"\0" in head
    reader = _reader_of(head) if columns is None or is_binary else None
    if reader is None:
        refuse_foreign(source.path, head, (signs.refusal(source.path, head) for signs in profilers.signs().values()))
        first = next(pieces, b"")
        pieces = chain([first], pieces)
        if columns is None:
            reader = _reader_of(first)
    if reader is not None:
        return _read_by(reader, source, pieces, keep, parts, tuning)
    unsigned = profilers.module_of(lambda signs: signs.takes_unsigned)
    if unsigned is None:
        raise LogError(f"{source.path}: no profiler that this eprof knows writes such logs")
    times = _TIMES_PACKED if packing(source.head) else 1
    size_bytes = times * os.fstat(source.handle.fileno()).st_size
    kept = _kept(keep, unsigned)
    walked = unsigned.walk(source, pieces, tuning, columns, names, kept, parts, size_bytes)
    if columns is None and not walked.store.pieces:
        late = _late_reader(source.path, tuning, walked.seen)
        if late is not None:
            with (again := open_source(source.path)).handle:
                read = _read_by(late, again, blocks(again, tuning), keep, parts, tuning)
            source.lacks_bytes |= again.lacks_bytes
            return read
    log: Log = walked.log(columns is not None)
    return log


def _read_by(
    reader: ModuleType, source: Source, pieces: Iterator[bytes], keep: Keep, parts: str | None, tuning: Tuning
) -> Log:
    log: Log = reader.read(source, pieces, _kept(keep, reader), parts, tuning.fold_rows)
    return log


def _kept(keep: Keep, reader: ModuleType) -> Container[str] | None:
    """The counters to hold of a log that `reader` reads: `keep`, or what it gives for the reader's profiler."""
    return keep(reader.__name__.split(".")[-2]) if callable(keep) else keep


def _reader_of(block: bytes) -> ModuleType | None:
    return profilers.module_of(lambda signs: signs.reader_of(block))


def _late_reader(path: str | Path, tuning: Tuning, seen: Any) -> ModuleType | None:
    """The reader of a log whose table stands behind much other text, or None. seen: what was met besides tables."""
    if seen.foreign:
        return profilers.module_of(lambda signs: signs.strays)
    if seen.messages.commands:
        return None
    with (source := open_source(path)).handle:
        return next(filter(None, map(_reader_of, blocks(source, tuning))), None)


def _unpacked_head(source: Source) -> bytes:
    """The first bytes of a log, unpacked if the file is packed. Raises LogError if they cannot be."""
    how = packing(source.head)
    if how is None:
        return source.head
    # A zstd frame gives nothing before its first block is whole, so some more of the file is looked at.
    start = [source.head]
    if how == "zstd" and isinstance(source.handle, BufferedReader):
        start.append(source.handle.peek(1 << 18))
    head = next(filter(None, unpack(start, how, [], 1 << 16)), b"")
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
    text = b"".join(islice(blocks(source, Tuning()), 2)).decode().strip()
    names = [name.strip() for name in split(text)]
    if "\n" in text or len(names) < 2:
        raise LogError(f"{path}: this must be one line with the names of the columns, separated by commas")
    return names


def refuse_foreign(path: str, head: bytes, refusals: Iterable[str | None]) -> None:
    """Raise LogError if a file that starts with `head` is no log. refusals: profilers' reasons against it, or None."""
    if not head:
        raise LogError(f"{path}: the file is empty; was the profiler stopped before it wrote its result?")
    for magic, sentence in _FOREIGN.items():
        if head.startswith(magic) and (magic != b"MZ" or b"\0" in head):
            raise LogError(f"{path}: {sentence}")
    for refusal in refusals:
        if refusal is not None:
            raise LogError(f"{path}: {refusal}")
    if b"\0" in head and not utf16(head) and head.strip(b"\0"):
        raise LogError(f"{path}: this is a binary file of an unknown kind; give the log as the profiler wrote it")
