"""Tables of nvprof: the header lines that begin them, open ones, which take lines one by one or many, and the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from eprof.base.arrays import Floats
from eprof.base.optional import gathered
from eprof.base.text import few, pattern, when
from eprof.logs.log import PAGES, Copies, HostCalls
from eprof.logs.stream import split
from eprof.nvidia import folding
from eprof.nvidia.folding import Piece
from eprof.profilers.nvprof.columns import Answers, Form, Rows
from eprof.readers.cells import REASONS, Rates, no_kernels, unused_notes
from eprof.readers.gaps import FAULTS, again_of, kind_of_copy

DEVICE = pattern(r"\(\d+\)\s*$")
WHOLE = pattern(r"\s*\d{1,12}\s*")  # launches; sums of more would not fit
_HELD_LINES = 20_000
METRICS, EVENTS = "nvprof-metrics-summary", "nvprof-events-summary"
WIDE, TRACE, SUMMARY = "nvprof-wide-trace", "nvprof-gpu-trace", "nvprof-gpu-summary"
IGNORED, FOREIGN_NCU, FOREIGN_NSYS = "ignored", "ncu", "nsys"
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
NO_DEVICE = -1
_UNLIKE = 2.0  # times as long, from which on two copies move unlike numbers of bytes, our choice
_EXAMPLES = 3


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


class Store(folding.Store, dict=True):
    """What was read of a log of nvprof so far. `names`: description -> metric name; `keep`: the counters to hold, None
    for all.

    rates: how many B/s the units of rates are from here on; None: the log did not tell. ranges: how many tables of NVTX
    ranges were left out. unused: names of counters that are not wanted; has_useless: a table has none that is. others:
    what ran and is no kernel -> calls and seconds. pages: what moved of Unified Memory, and faults -> number, s, bytes.
    calls: of functions of CUDA, by name.
    shapes: number of a kernel -> launches, and the numbers of a `Shape` added up. cut_off: what tables left of names of
    GPUs, where they cut the number off. lacks_units: a trace has no row of them.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    _squashed: dict[str, str] = field(default_factory=dict)
    keep: Container[str] | None = None
    notes: list[str] = field(default_factory=list)
    rates: Rates | None = None
    ranges: int = 0
    unused: dict[str, None] = field(default_factory=dict)
    has_useless: bool = False
    others: dict[str, list[float]] = field(default_factory=dict)
    _ends_s: dict[str, list[float]] = field(default_factory=dict)  # of the others in sums: all shortest and longest
    pages: dict[str, Floats] = field(default_factory=dict)
    calls: dict[str, HostCalls] = field(default_factory=dict)
    shapes: dict[int, Floats] = field(default_factory=dict)
    cut_off: dict[str, None] = field(default_factory=dict)
    lacks_units: bool = False
    _answers: dict[Callable[[str], Any], Answers] = field(default_factory=dict)

    def canonical(self, label: str) -> str:
        """The metric of nvprof that a column's label is, or describes ("Executed IPC": "ipc")."""
        if not self._squashed:
            self._squashed = {_squash(description): name for description, name in self.names.items()}
        return self.names.get(label) or self._squashed.get(_squash(label), label)

    def device_of(self, name: str) -> int:
        """The number that the store gives a device; -1 where its name is cut off before the index, "(0)"."""
        if DEVICE.search(name):
            return self.devices.of(name)
        if name.strip():
            self.cut_off.setdefault(name)
        return NO_DEVICE

    def keeps(self, counter: str) -> bool:
        """Whether the store keeps the values of a counter; it remembers the others for a note."""
        is_kept = self.keep is None or counter in self.keep
        if not is_kept:
            self.unused.setdefault(counter)
        return is_kept

    def keeps_label(self, label: str) -> bool:
        """As `keeps`, for a counter by its label in a summary."""
        return self.keeps(self.canonical(label.strip()))

    def note(self, sentence: str) -> None:
        """Store a sentence for the user, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def part_of(self, text: str) -> int:
        """The number that the store gives to a part (a stream, a range); -1 for an empty cell."""
        return self.parts.of(text.strip()) if text.strip() else -1

    def each(self, ask: Callable[[str], Any], dtype: npt.DTypeLike = np.bool_) -> Answers:
        """A function of texts that calls `ask` once for each text, and keeps the answers for all tables of the log."""
        return self._answers.setdefault(ask, Answers(ask, dtype))

    @property
    def copies_s(self) -> float:
        """How long copies and memsets took, in s, page faults left out."""
        known = [(name, time_s) for name, (_, time_s) in self.others.items() if FAULTS not in name]
        return sum(time_s for name, time_s in known if kind_of_copy(name) or "memset" in name)

    @property
    def copies(self) -> tuple[Copies, ...]:
        """The copies of nvprof's tables by kind: of a trace with their bytes, of a summary without; () for none."""
        copied = []
        for name, (calls, time_s) in self.others.items():
            if kind := kind_of_copy(name):
                # Copies of a name have unlike sizes as far as their times tell.
                ends_s = self._ends_s[name]
                are_unlike = bool(ends_s) and max(ends_s) >= _UNLIKE * min(ends_s)
                copied.append(Copies(*kind, int(calls), time_s, 0.0, again_of(calls, are_unlike)))
        pages = (Copies(way, PAGES, int(sums[0]), *sums[1:].tolist()) for way, sums in self.pages.items())
        return self.gaps.copies or (*copied, *pages)

    def count_other(self, name: str, calls: float, time_s: float, ends_s: Iterable[float] = ()) -> None:
        """Count in the store something that took time on the GPU but is no kernel, such as a copy."""
        self._ends_s.setdefault(name, []).extend(ends_s)
        before = self.others.setdefault(name, [0.0, 0.0])
        before[0] += calls
        if not np.isnan(time_s):
            before[1] += time_s

    def groups(self, pieces: Sequence[Piece]) -> Iterable[tuple[frozenset[str] | None, Sequence[Piece]]]:
        """The pieces by table, with the counters of their run, as one without a column is not missing there."""
        by_run = gathered((int(piece.run[0]), piece.counters) for piece in pieces)
        collected = {run: frozenset[str]().union(*counters) for run, counters in by_run.items()}
        groups = gathered(((collected[int(piece.run[0])], frozenset(piece.counters)), piece) for piece in pieces)
        return [(of_run, alike) for (of_run, _), alike in groups.items()]

    def closing_notes(self) -> list[str]:
        """Sentences on cells in the store without a value, and on what ran but is no kernel."""
        notes = [
            f"{counter}: {number} cell{when(number > 1, 's')} {REASONS[reason]}, taken as missing"
            for (counter, reason), number in sorted(self.missing.items())
        ]
        notes += [
            f"{number} kernel rows of {kind} have no readable time; it is taken as missing"
            for kind, number in self.untimed.items()
            if number and kind not in (METRICS, EVENTS, WIDE)
        ]
        if self.has_useless:
            notes.append(
                "a table has only counters that tell no instructions, bytes or times "
                f"({few([f'`{name}`' for name in self.unused], _EXAMPLES)}); `eprof counters` lists those that do"
            )
        else:
            notes += unused_notes(self.unused, self.keep, "metrics")
        if self.ranges:
            notes.append("tables by NVTX range were left out: the table of the whole run has their launches too")
        if self.others:
            notes.append(no_kernels((name, int(calls), time_s) for name, (calls, time_s) in self.others.items()))
        return notes


def _squash(label: str) -> str:
    return " ".join(label.split()).casefold()


class Section:
    """One open table, from its header line on; takes the lines that are its rows.

    This one keeps nothing: of traces of API calls, and of totals of Unified Memory, every line with as many fields is a
    row.
    """

    has_units = False
    is_in_kernels = False  # whether the latest row was a kernel's

    def __init__(self, header: Header, run: int, store: Store) -> None:
        self.header = header
        self.run = run
        self.store = store
        self.rows = 0
        self.units_pending = self.has_units

    def takes_row(self, fields: list[str]) -> bool:
        """Take a line's fields if they are a row of this table, or its row of units; returns whether they are."""
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
        """Take a line's fields if they are the row of units below the table's header; returns whether they are."""
        return False

    def fits(self, fields: list[str]) -> bool:
        """Whether fields, as many as the header has, are a row of the open table and not program output."""
        return True

    def take(self, fields: list[str]) -> None:
        """Take the fields of a row of the open table."""

    def close(self) -> None:
        """The open table ends here: hand what was taken to the store."""


class ColumnSection(Section, ABC):
    """A table that may be long. `form`: how its lines are parsed, and which columns are read.

    needed: places of cells, and what must be true of them in every row.
    """

    form: Form
    is_in_kernels = True
    needed: Sequence[tuple[int, Callable[[str], object]]] = ()

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self._lines: list[list[str]] = []

    def fits(self, fields: list[str]) -> bool:
        """Whether fields are a row of the open table: those that it needs are what they must be."""
        return all(fits(fields[place]) for place, fits in self.needed)

    def all_fit(self, rows: Rows) -> bool:
        """Whether every row fits, as `fits` tells, and can be added as it is. Each text is looked at once."""
        return all(rows.all(place, self.store.each(fits)) for place, fits in self.needed)

    @abstractmethod
    def add(self, rows: Rows) -> None:
        """Take rows that fit the open table."""

    @abstractmethod
    def finish(self) -> None:
        """Hand what was added to the open table to the store."""

    def expects_units(self) -> bool:
        """Allow other cells than numbers from here on, as rows could not be parsed; returns whether that may help."""
        return False

    def take(self, fields: list[str]) -> None:
        """Hold the row of the open table until there are some more."""
        self._lines.append([fields[place] for place in self.form.places])
        if len(self._lines) >= _HELD_LINES:
            self.add_lines()

    def close(self) -> None:
        """The open table ends here: its last rows are added."""
        self.add_lines()
        self.finish()

    def add_lines(self) -> None:
        """Add the rows of the open table that are held, so that others can follow."""
        if self._lines:
            columns = map(list, zip(*self._lines, strict=True))
            self.add(Rows(len(self._lines), dict(zip(self.form.places, columns, strict=True))))
            self._lines = []
