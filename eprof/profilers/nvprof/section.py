"""An open table: takes its lines one by one, or a whole body at once; both end in the same columns of strings."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import csv as arrow_csv

from eprof.profilers.nvprof.store import Store
from eprof.rows.columns import Arrays, Columns, column
from eprof.rows.header import Header

# How lines are parsed: fields in a line, places of the wanted columns, and types of those that are not text.
Form = tuple[int, tuple[int, ...], tuple[tuple[int, pa.DataType], ...]]
Parsed = tuple[Arrays, list[str]]
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
DEVICE = re.compile(r"\(\d+\)\s*$")
WHOLE = re.compile(r"\s*\d{1,12}\s*")  # launches; sums of more would not fit
_FLUSH = 20_000
_LAST = 1 << 16


class Section(ABC):
    """One open table, from its header line on; takes the lines that are its rows."""

    fast = False
    has_units = False

    def __init__(self, header: Header, run: int, store: Store) -> None:
        self.header, self.run, self.store = header, run, store
        self.rows = 0
        self.units_pending = self.has_units

    def accepts(self, fields: list[str]) -> bool:
        """Take the fields of a line if they are a row of this table, or its row of units."""
        if len(fields) != self.header.width:
            return False
        if self.units_pending and self.takes_units(fields):
            self.units_pending = False
            return True
        if not self.fits(fields):
            return False
        self.units_pending = False
        self.rows += 1
        self.take(fields)
        return True

    def takes_units(self, fields: list[str]) -> bool:
        """Take the row of units below the header, if these fields are one."""
        return False

    @abstractmethod
    def fits(self, fields: list[str]) -> bool:
        """Whether fields, as many as the header has, are a row of this table and not program output."""

    @abstractmethod
    def take(self, fields: list[str]) -> None:
        """Take the fields of a row."""

    @abstractmethod
    def close(self) -> None:
        """The table ends here: hand what was taken to the store."""


class Ignored(Section):
    """A table whose rows are known but of no use here: API calls, Unified Memory totals."""

    def fits(self, fields: list[str]) -> bool:
        """Every line with the header's number of fields."""
        return True

    def take(self, fields: list[str]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing was kept."""


class ColumnSection(Section):
    """A table that may be long. `wanted`: positions in a line (prefix included) of the columns that are read."""

    fast = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.fast = not header.prefix
        self.wanted: tuple[int, ...] = ()
        self._pending: list[list[str]] = []

    @abstractmethod
    def all_fit(self, columns: Arrays) -> bool:
        """Whether `fits` is true of every row."""

    @abstractmethod
    def add(self, columns: Columns) -> None:
        """Take rows that fit: position -> strings."""

    @abstractmethod
    def finish(self) -> None:
        """Hand what was added to the store."""

    def take(self, fields: list[str]) -> None:
        """Hold the row until there are some more."""
        self._pending.append([fields[i] for i in self.wanted])
        if len(self._pending) >= _FLUSH:
            self._flush()

    def close(self) -> None:
        """The table ends here."""
        self._flush()
        self.store.later.do(self.finish)

    def _flush(self) -> None:
        if self._pending:
            columns = zip(*self._pending, strict=True)
            self.store.later.do(self.add, {i: column(texts) for i, texts in zip(self.wanted, columns, strict=True)})
            self._pending = []

    def column_types(self) -> Mapping[int, pa.DataType]:
        """Types to parse wanted columns to where it is not string."""
        return {}

    @property
    def form(self) -> Form:
        """How its rows are parsed."""
        return self.header.width, self.wanted, tuple(self.column_types().items())

    def add_body(self, body: Body, is_output: Callable[[str], bool]) -> list[str] | None:
        """Take many lines at once; gives those that were program output. None: not possible, and nothing taken.

        It is not possible if a row does not fit, if lines and rows are not one to one (a quote left open), or if a line
        with another number of fields is not program output.
        """
        parsed = None if _ends_in_quotes(body.text) else self._parse(body)
        if parsed is None:
            return None
        columns, odd = parsed
        rows = len(next(iter(columns.values())))
        if rows + len(odd) != body.lines or not all(map(is_output, odd)) or not self.all_fit(columns):
            return None
        self._flush()
        self.rows += rows
        self.store.later.do(self.add, columns)
        return odd

    def _parse(self, body: Body) -> Parsed | None:
        try:
            return body.parsed(self.form)
        except pa.ArrowInvalid:
            return None


@dataclass
class Body:
    """Lines of a table, and perhaps their columns, being parsed in a thread as rows of the `foreseen` form."""

    text: memoryview
    lines: int
    foreseen: tuple[Form, Future[Parsed]] | None = None

    def parsed(self, form: Form) -> Parsed:
        """The columns. Raises pyarrow.ArrowInvalid as `parse` does."""
        if self.foreseen is not None and self.foreseen[0] == form:
            return self.foreseen[1].result()
        return parse(self.text, form)


def _ends_in_quotes(body: memoryview) -> bool:
    """Whether the last line leaves a quote open; only there would that make no two lines one row."""
    whole = bytes(body[-_LAST:]).rstrip(b"\n")
    return bool(whole[whole.rfind(b"\n") + 1 :].count(b'"') % 2)


def parse(body: memoryview, form: Form) -> Parsed:
    """The wanted columns of CSV lines, and the lines that have another number of fields.

    Raises pyarrow.ArrowInvalid where a cell is not of the type asked for.
    """
    width, wanted, types = form[0], form[1], dict(form[2])
    odd: list[str] = []

    def skip(row: arrow_csv.InvalidRow) -> str:
        odd.append(row.text)
        return "skip"

    table = arrow_csv.read_csv(
        pa.BufferReader(pa.py_buffer(body)),
        read_options=arrow_csv.ReadOptions(column_names=[str(i) for i in range(width)], use_threads=False),
        parse_options=arrow_csv.ParseOptions(invalid_row_handler=skip),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=[str(i) for i in wanted],
            column_types={str(i): types.get(i, pa.string()) for i in wanted},
            null_values=[""],
            check_utf8=False,  # blocks are valid UTF-8
            strings_can_be_null=False,
        ),
    ).unify_dictionaries()
    return {i: _one(table.column(k)) for k, i in enumerate(wanted)}, odd


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
