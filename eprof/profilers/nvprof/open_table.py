"""An open table: takes its lines one by one, or long stretches of them at once."""

from __future__ import annotations

from abc import ABC, abstractmethod

from eprof.base.text import pattern
from eprof.logs.rows.columns import Form, LineRows, ParsedRows, Rows
from eprof.logs.rows.header import Header
from eprof.profilers.nvprof.store import Store

DEVICE = pattern(r"\(\d+\)\s*$")
WHOLE = pattern(r"\s*\d{1,12}\s*")  # launches; sums of more would not fit
_HELD_LINES = 20_000


def is_device(text: str) -> bool:
    """Whether a cell names a device with its index."""
    return DEVICE.search(text) is not None


def is_whole(text: str) -> bool:
    """Whether a cell is a number of launches."""
    return WHOLE.fullmatch(text) is not None


def is_named(text: str) -> bool:
    """Whether a cell is more than blanks."""
    return bool(text.strip())


class Section(ABC):
    """One open table, from its header line on; takes the lines that are its rows."""

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

    @abstractmethod
    def fits(self, fields: list[str]) -> bool:
        """Whether fields, as many as the header has, are a row of the open table and not program output."""

    @abstractmethod
    def take(self, fields: list[str]) -> None:
        """Take the fields of a row of the open table."""

    @abstractmethod
    def close(self) -> None:
        """The open table ends here: hand what was taken to the store."""


class Ignored(Section):
    """A table whose rows are known but of no use here: API calls, Unified Memory totals."""

    def fits(self, fields: list[str]) -> bool:
        """Every line with the number of fields of the ignored table's header is a row of it."""
        return True

    def take(self, fields: list[str]) -> None:
        """Nothing of an ignored table is kept."""

    def close(self) -> None:
        """Nothing of an ignored table was kept."""


class ColumnSection(Section):
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
