"""From a file to a `Log`, or to one sentence on why there is none."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO
from itertools import chain, islice
from pathlib import Path

from eprof.base.errors import LogError
from eprof.base.resources import content
from eprof.logs.sniff import SQLITE, refuse_foreign
from eprof.profilers.ncu import reader as ncu
from eprof.profilers.ncu import report as ncu_report
from eprof.profilers.nsys import json as nsys_json
from eprof.profilers.nvprof.lines import Block, Outcome, Walk
from eprof.profilers.nvprof.sqlite import read_sqlite
from eprof.profilers.nvprof.store import Store
from eprof.profilers.oclgrind import reader as oclgrind
from eprof.rows import header as headers
from eprof.rows import packing
from eprof.rows.header import Header
from eprof.rows.log import Log
from eprof.rows.stream import Source, Tuning, blocks, open_source
from eprof.rows.threads import ahead, is_memory_scarce

Reader = Callable[[Source, Iterator[bytes], Container[str] | None, str | None, int], Log]
_STRETCH_BYTES = 1 << 16  # of rows that are read sooner together than line by line
_TIMES_PACKED = 10  # a log is about as many times its packed size
_MOST_COLUMNS = 1 << 20  # bytes of a file of column names


def read(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    keep: Container[str] | None = None,
    progress: Callable[[int], None] | None = None,
    parts: str | None = None,
) -> Log:
    """Read one log, whatever profiler it is of.

    columns: the column names of rows that have no header (see `read_columns`). names: metric description -> metric
    name, for tables headed by descriptions. keep: the counters to hold, by name; None for all. progress: is told how
    many bytes more were read. parts: "stream" or "nvtx", by which rows of a kernel are to be told apart.
    Raises LogError, one sentence, if the file cannot be read or holds no kernels.
    """
    return read_tuned(path, Tuning(), columns=columns, names=names, keep=keep, progress=progress, parts=parts)


def read_tuned(
    path: str | Path,
    tuning: Tuning,
    *,
    columns: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    keep: Container[str] | None = None,
    progress: Callable[[int], None] | None = None,
    parts: str | None = None,
) -> Log:
    """As `read`, holding as much at once as `tuning` says."""
    source = open_source(path, progress)
    with source.handle:
        log = _read(source, tuning, columns, names or {}, keep, parts)
    return _lacking_rows(log) if source.lacks_bytes else log


def _read(
    source: Source,
    tuning: Tuning,
    columns: Sequence[str] | None,
    names: Mapping[str, str],
    keep: Container[str] | None,
    parts: str | None,
) -> Log:
    """As `read`, from an open file."""
    head = _unpacked_head(source)
    if head.startswith(SQLITE):
        return read_sqlite(source, keep, parts)
    if head.startswith(ncu_report.MAGIC):
        return ncu_report.read(source, keep)
    if columns is None and (reader := _other_reader(head)) is not None:
        return reader(source, blocks(source, tuning), keep, parts, tuning.fold_rows)
    size = os.fstat(source.handle.fileno()).st_size
    if oclgrind.MARK.encode() in source.head or size > len(source.head) and oclgrind.is_in(source.path):
        return oclgrind.read(source.path, source.chunks(tuning.chunk_bytes), keep)
    refuse_foreign(source.path, head)
    pieces = blocks(source, tuning)
    first = next(pieces, b"")
    if columns is None and (reader := _other_reader(first)) is not None:
        return reader(source, chain([first], pieces), keep, parts, tuning.fold_rows)
    store = Store(names, keep, parts)
    walk = Walk(store, min(_STRETCH_BYTES, tuning.fast_from), _given(columns))
    is_long = _likely_bytes(size, source) >= tuning.fast_from and not is_memory_scarce()
    marked = (Block(block, is_long) for block in chain([first], pieces))
    for block in ahead(marked) if is_long else marked:
        walk.feed(block)
    walk.close(source.ends_with_newline)
    if columns is None and not store.pieces:
        late: Reader | None = ncu.read if walk.seen.foreign else None
        if late is None and not walk.seen.messages.profiled:
            late = _late_reader(source.path, tuning)
        if late is not None:
            with (again := open_source(source.path)).handle:
                log = late(again, blocks(again, tuning), keep, parts, tuning.fold_rows)
            source.lacks_bytes |= again.lacks_bytes
            return log
    return _log(source, store, walk.seen, columns is not None)


def _likely_bytes(size: int, source: Source) -> int:
    """How long a log of `size` bytes on disk is when it is unpacked."""
    return size if packing.kind(source.head) is None else _TIMES_PACKED * size


def _other_reader(block: bytes) -> Reader | None:
    """Who reads a log with such a block, if it is not of nvprof."""
    if ncu.is_in(block):
        return ncu.read
    return nsys_json.read if nsys_json.is_in(block) else None


def _late_reader(path: str | Path, tuning: Tuning) -> Reader | None:
    """The same for a log without any table of nvprof, which may have others behind much other text."""
    with (source := open_source(path)).handle:
        return next(filter(None, map(_other_reader, blocks(source, tuning))), None)


def _unpacked_head(source: Source) -> bytes:
    """The first bytes, unpacked if the file is packed. Raises LogError if they cannot be."""
    how = packing.kind(source.head)
    if how is None:
        return source.head
    # A zstd frame gives nothing before its first block is whole, so some more of the file is looked at.
    more = (source.handle.peek(1 << 18) if isinstance(source.handle, BufferedReader) else b"") if how == "zstd" else b""
    head = next((one for one in packing.unpack([source.head, more], how, [], 1 << 16) if one), b"")
    if not head:
        raise LogError(
            f"{source.path}: the {how} data are damaged or cut off before the first line; copy the file again"
        )
    return head


def _given(columns: Sequence[str] | None) -> list[Header]:
    """The headers that a list of columns may stand for: with the columns of a script in front, and without.

    Raises LogError if these are not the columns of a table.
    """
    if columns is None:
        return []
    found = headers.of_fields(list(columns))
    if found is None or found.kind in (headers.FOREIGN_NCU, headers.FOREIGN_NSYS, headers.IGNORED):
        raise LogError(
            "the list of columns does not name those of an nvprof table; it needs at least Device, Context, Stream, "
            "Kernel and the counters in the order of the log"
        )
    return [found, *([Header(found.kind, found.columns)] if found.prefix else [])]


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


def _log(source: Source, store: Store, seen: Outcome, has_columns: bool) -> Log:
    tables = store.tables()
    if not tables:
        damaged = f" ({source.notes[0]})" if source.notes and not seen.lines else ""
        raise LogError(f"{source.path}: {_why_nothing(seen, store, has_columns)}{damaged}")
    notes = [*seen.messages.notes(), *source.notes, *store.notes, *store.closing_notes(), *_line_notes(seen, source)]
    log = Log(
        path=source.path,
        format="+".join(dict.fromkeys(table.kind for table in tables)),
        lines=seen.lines,
        skipped_lines=seen.skipped_lines,
        sha256=source.sha256,
        size_bytes=source.size_bytes,
        tables=tables,
        notes=tuple(notes),
        command=seen.messages.command,
        example_skipped=seen.example_skipped,
        processes=max(1, len(seen.pids)),
        device=next(iter(seen.devices)) if len(seen.devices) == 1 else None,
    )
    return _lacking_rows(log) if seen.lacks_rows else log


def _lacking_rows(log: Log) -> Log:
    """The log, all of whose sums are lower bounds."""
    return replace(log, tables=tuple(replace(table, lacks_rows=True) for table in log.tables))


def _line_notes(seen: Outcome, source: Source) -> Iterable[str]:
    """Sentences on lines that were not read."""
    if seen.skipped_lines:
        what = "1 line is" if seen.skipped_lines == 1 else f"{seen.skipped_lines} lines are"
        yield f"{what} no part of a table and skipped, for example: {seen.example_skipped}"
    if seen.unquoted:
        yield (
            f"{_lost_quotes(seen.unquoted)}, so rows with commas in a name were not read and totals are lower bounds; "
            "give the log as nvprof wrote it"
        )
    if seen.broken_rows:
        what = "1 of them looks like a row" if seen.broken_rows == 1 else f"{seen.broken_rows} of them look like rows"
        yield f"{what} that something happened to, so totals are lower bounds"
    if seen.lost_rows:
        number = len(seen.lost_rows)
        yield (
            f"{number} of them look{'s' if number == 1 else ''} like rows of a table that an empty line or a `==` line "
            f"had ended (the first is line {seen.lost_rows[0]}); they were not read"
        )
    if seen.cut_off:
        yield (
            f"the log looks cut off: its last line ({seen.lines}) is no whole row, so totals are lower bounds; "
            "collect the log again"
        )
    elif not source.ends_with_newline and seen.ends_in_row:
        yield (
            f"the last row (line {seen.lines}) has no line end; if the log was cut off, its last field is not whole, "
            "so totals are taken for lower bounds"
        )
    if seen.foreign:
        yield f"a table of another profiler (line {seen.foreign[1]}) was not read"


def _lost_quotes(unquoted: tuple[int, int]) -> str:
    return f"the log has lost its quotes (a row has {unquoted[0]} fields and its header {unquoted[1]})"


def _why_nothing(seen: Outcome, store: Store, has_columns: bool) -> str:
    """What happened and what to do, for a log without kernels."""
    said = seen.messages.why_no_table()
    if said:
        return said
    if seen.headerless and not has_columns:
        return (
            f"the rows have no header line (line {seen.headerless[0]} says: {seen.headerless[1]}); pass --columns FILE "
            "with one line of column names"
        )
    if has_columns and not seen.tables:
        return "no row has as many fields as the list of columns; give the list that belongs to this log"
    return _why_no_kernels(seen, store)


def _why_no_kernels(seen: Outcome, store: Store) -> str:
    if store.ranges:
        return (
            "the log holds only tables by NVTX range, and ranges may overlap; give the whole log, with the table below "
            "`Profiling result:`"
        )
    if store.others:
        return (
            f"the log holds copies and memsets ({', '.join(list(store.others)[:3])}) but no kernels; see that the "
            "program launches kernels on the GPU"
        )
    if seen.tables and seen.rows:
        return (
            "the log's tables hold no kernels, only such things as API calls; profile with --metrics, --events or a "
            "GPU trace"
        )
    if seen.unquoted:
        return f"{_lost_quotes(seen.unquoted)}, so fields cannot be told apart; give the log as nvprof wrote it"
    if seen.tables:
        return (
            f"a table begins but has no rows (the log has {seen.lines} lines); the log looks cut off, so profile again"
        )
    if seen.messages.profiled:
        return (
            f"nvprof started but wrote no result (the log ends at line {seen.lines}); see that the program ends by "
            "itself, and profile again"
        )
    example = f" (one says: {seen.example_skipped})" if seen.example_skipped else ""
    return (
        f"no table of nvprof, ncu or nsys was found in {seen.lines} lines{example}; give the log as the profiler wrote "
        "it"
    )
