"""Logs of nvprof in CSV and text: from blocks of lines to a `Log`, or to one sentence on why there is none."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from eprof.base.errors import LogError
from eprof.base.threads import ahead, is_memory_scarce
from eprof.logs.rows import header as headers
from eprof.logs.rows.header import Header
from eprof.logs.rows.log import Log
from eprof.logs.rows.stream import Source, Tuning
from eprof.profilers import signs
from eprof.profilers.nvprof.lines import Block, Outcome, Walk
from eprof.profilers.nvprof.store import Store

_STRETCH_BYTES = 1 << 16  # of rows that are read sooner together than line by line


class Walked(Struct, frozen=True):
    """What was found in a log, read to its end."""

    source: Source
    store: Store
    seen: Outcome

    def log(self, has_columns: bool) -> Log:
        """What was read of nvprof's log as a `Log`.

        has_columns: the user named the columns. Raises LogError if it holds no kernels.
        """
        source, store, seen = self.source, self.store, self.seen
        tables = store.tables()
        if not tables:
            damaged = f" ({source.notes[0]})" if source.notes and not seen.lines else ""
            raise LogError(f"{source.path}: {_why_nothing(seen, store, has_columns)}{damaged}")
        of_lines = _line_notes(seen, source)
        log = source.log(
            tables,
            [*seen.messages.notes(), *source.notes, *store.notes, *store.closing_notes(), *of_lines],
            lines=seen.lines,
            skipped_lines=seen.skipped_lines,
            command=seen.messages.command,
            example_skipped=seen.example_skipped,
            processes=max(1, len(seen.pids)),
            device=next(iter(seen.devices)) if len(seen.devices) == 1 else None,
            several_devices=len(seen.devices) > 1,
            shapes=store.launch_shapes(),
        )
        return log.of_bounds() if seen.lacks_rows else log


def walk(
    source: Source,
    pieces: Iterator[bytes],
    tuning: Tuning,
    columns: Sequence[str] | None,
    names: Mapping[str, str],
    keep: Container[str] | None,
    parts: str | None,
    size_bytes: int,
) -> Walked:
    """Read all blocks of an nvprof log of about `size_bytes`. The other arguments are those of `logs.read`."""
    store = Store(names, keep, parts)
    lines = Walk(store, min(_STRETCH_BYTES, tuning.fast_from), _given(columns))
    is_long = size_bytes >= tuning.fast_from and not is_memory_scarce()
    marked = (Block(block, is_long) for block in pieces)
    if is_long:
        store.codes  # noqa: B018 - now: of two threads each may make its own, and one would read the other's as names
    # Three threads: one reads, one has polars parse rows, and this one adds them up.
    for block in ahead(lines.parsed(ahead(marked))) if is_long else marked:
        lines.feed(block)
    lines.close(source.ends_with_newline)
    return Walked(source, store, lines.seen)


def _given(columns: Sequence[str] | None) -> list[Header]:
    """The headers that a user's list of columns may stand for: with the columns of a script in front, and without.

    Raises LogError if these are not the columns of a table.
    """
    if columns is None:
        return []
    header = headers.of_fields(list(columns))
    if header is None or header.kind in (headers.FOREIGN_NCU, headers.FOREIGN_NSYS, headers.IGNORED):
        raise LogError(
            "the list of columns does not name those of an nvprof table; it needs at least Device, Context, Stream, "
            "Kernel and the counters in the order of the log"
        )
    return [header, *([Header(header.kind, header.columns)] if header.prefix else [])]


def _line_notes(seen: Outcome, source: Source) -> Iterable[str]:
    if seen.skipped_lines:
        lines = "1 line is" if seen.skipped_lines == 1 else f"{seen.skipped_lines} lines are"
        yield f"{lines} no part of a table and skipped, for example: {seen.example_skipped}"
    if seen.unquoted:
        yield (
            f"{_lost_quotes(seen.unquoted)}, so rows with commas in a name were not read and totals are lower bounds; "
            "give the log as nvprof wrote it"
        )
    if seen.broken_rows:
        rows = "1 of them looks like a row" if seen.broken_rows == 1 else f"{seen.broken_rows} of them look like rows"
        yield f"{rows} that something happened to, so totals are lower bounds"
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
    reason = seen.messages.why_no_table()
    if reason:
        return reason
    if seen.headerless and not has_columns:
        return (
            f"the rows have no header line (line {seen.headerless[0]} says: {seen.headerless[1]}); pass --columns FILE "
            "with one line of column names"
        )
    if has_columns and not seen.tables:
        return "no row has as many fields as the list of columns; give the list that belongs to this log"
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
    lines = "1 line" if seen.lines == 1 else f"{seen.lines} lines"
    return (
        f"no log of a profiler that eprof reads ({', '.join(signs())}) was found in {lines}{example}; give "
        "the log as the profiler wrote it"
    )
