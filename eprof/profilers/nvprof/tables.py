"""Tables in CSV: the header lines that begin them, and open tables, which take lines one by one or long stretches."""

from __future__ import annotations

from abc import ABC, abstractmethod

from msgspec import Struct

from eprof.base.text import pattern
from eprof.logs.rows.columns import Form, LineRows, ParsedRows, Rows
from eprof.logs.rows.sections import split
from eprof.profilers.nvprof.store import Store

DEVICE = pattern(r"\(\d+\)\s*$")
WHOLE = pattern(r"\s*\d{1,12}\s*")  # launches; sums of more would not fit
_HELD_LINES = 20_000
METRICS, EVENTS, WIDE, TRACE, SUMMARY, IGNORED = (
    "nvprof-metrics-summary",
    "nvprof-events-summary",
    "nvprof-wide-trace",
    "nvprof-gpu-trace",
    "nvprof-gpu-summary",
    "ignored",
)
FOREIGN_NCU, FOREIGN_NSYS = "ncu", "nsys"

WIDE_FIXED = ("Device", "Context", "Stream", "Kernel", "Correlation_ID")
_LONGEST_PREFIX = 3
_MOST_COLUMNS = 5000  # a few hundred counters are all that a GPU has
_PERHAPS = pattern(r'(?:[^,]*,){0,3}"?(?:Device|Start|Time ?\(%\)|Type|ID|Process ID)"?,')
# Columns that a table of the kind must have; the first kind that fits is taken.
_KINDS = (
    (METRICS, {"Device", "Kernel", "Invocations", "Metric Name", "Avg"}),
    (EVENTS, {"Device", "Kernel", "Invocations", "Event Name", "Avg"}),
    (FOREIGN_NCU, {"ID", "Process ID"}),
    (FOREIGN_NCU, {"Process ID", "Process Name"}),
    (FOREIGN_NSYS, {"Time (%)", "Total Time (ns)", "Instances"}),
    (WIDE, {"Device", "Context", "Stream", "Kernel"}),
    (TRACE, {"Start", "Duration", "Device", "Name"}),
    (SUMMARY, {"Time(%)", "Time", "Calls", "Name"}),
    (IGNORED, {"Device", "Count", "Avg Size"}),
    (IGNORED, {"Start", "Duration", "Name"}),
)


def is_device(text: str) -> bool:
    """Whether a cell names a device with its index."""
    return DEVICE.search(text) is not None


def is_whole(text: str) -> bool:
    """Whether a cell is a number of launches."""
    return WHOLE.fullmatch(text) is not None


def is_named(text: str) -> bool:
    """Whether a cell is more than blanks."""
    return bool(text.strip())


class Section:
    """One open table, from its header line on; takes the lines that are its rows.

    This one keeps nothing: of API calls, and of totals of Unified Memory, every line with as many fields is a row.
    """

    has_units = False

    def __init__(self, header: Header, run: int, store: Store) -> None:
        self.header = header
        self.run = run
        self.store = store
        self.rows = 0
        self.units_pending = self.has_units

    def accepts(self, fields: list[str]) -> bool:
        """Take the fields of a line if they are a row of this open table, or its row of units."""
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
        """Take the row of units below the open table's header, if these fields are one."""
        return False

    def fits(self, fields: list[str]) -> bool:
        """Whether fields, as many as the header has, are a row of the open table and not program output."""
        return True

    def take(self, fields: list[str]) -> None:
        """Take the fields of a row of the open table."""

    def close(self) -> None:
        """The open table ends here: hand what was taken to the store."""


class ColumnSection(Section, ABC):
    """A table that may be long. `form`: how its lines are parsed, and which columns are read."""

    form: Form

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self._lines: list[list[str]] = []

    @abstractmethod
    def all_fit(self, rows: Rows) -> bool:
        """Whether `fits` is true of every row, and `take` of the open table would change nothing in it."""

    @abstractmethod
    def add(self, rows: Rows) -> None:
        """Take rows that fit the open table."""

    @abstractmethod
    def finish(self) -> None:
        """Hand what was added to the open table to the store."""

    @property
    def takes_stretches(self) -> bool:
        """Whether rows of the open table may come next, and may be parsed together."""
        return not self.header.prefix and not self.units_pending

    def expects_units(self) -> bool:
        """After rows that were not clean: whether they may be if columns of numbers have other cells, too."""
        return False

    def take(self, fields: list[str]) -> None:
        """Hold the row of the open table until there are some more."""
        self._lines.append([fields[place] for place in self.form.places])
        if len(self._lines) >= _HELD_LINES:
            self._add_lines()

    def take_stretch(self, rows: ParsedRows) -> bool:
        """Take many rows at once. False, and nothing is taken, if one of them does not fit."""
        if not self.all_fit(rows):
            return False
        self._add_lines()
        self.rows += len(rows)
        self.add(rows)
        return True

    def close(self) -> None:
        """The open table ends here: its last rows are added."""
        self._add_lines()
        self.finish()

    def _add_lines(self) -> None:
        if self._lines:
            columns = zip(*self._lines, strict=True)
            self.add(LineRows(dict(zip(self.form.places, columns, strict=True))))
            self._lines = []


class Header(Struct, frozen=True):
    """A header line: `columns` are the table's own, after `prefix` columns that a script put in front of every line."""

    kind: str
    columns: tuple[str, ...]
    prefix: int = 0
    quoted: bool = True

    @property
    def width(self) -> int:
        """How many fields a line below the header has."""
        return self.prefix + len(self.columns)

    def position(self, name: str) -> int | None:
        """Where the header's first column of this name is, counted with the prefix; None if there is none."""
        return self.prefix + self.columns.index(name) if name in self.columns else None

    def at(self, name: str) -> int:
        """`position` of a column that the header of this kind of table always has."""
        return self.prefix + self.columns.index(name)


def header_of(line: str) -> Header | None:
    """The header that `line` is, or None."""
    if not _PERHAPS.match(line):
        return None
    return header_of_fields(split(line), quoted='"' in line)


def header_of_fields(fields: list[str], quoted: bool = True) -> Header | None:
    """The header that these column names make, with up to three columns of a script in front; or None."""
    if len(fields) > _MOST_COLUMNS:
        return None
    names = [field.strip() for field in fields]
    for prefix in range(min(_LONGEST_PREFIX, len(names)) + 1):
        own = names[prefix:]
        for kind, needed in _KINDS:
            if own and own[0] in needed | {"Type"} and needed <= set(own):
                return Header(kind, tuple(own), prefix, quoted)
    return None
