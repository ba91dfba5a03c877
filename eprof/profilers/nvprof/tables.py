"""Tables of nvprof: header lines, open tables, the store of what was read; and rows by column.

Of few lines the columns are lists of text, of long stretches of lines what pyarrow parses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from eprof.base.arrays import Array, Bools, Floats
from eprof.base.gpus import alike, beginning
from eprof.base.optional import added, gathered, only
from eprof.base.text import few, pattern, when
from eprof.logs.log import BYTES_PER_S, COUNT, OTHER, PAGES, PERCENT, Copies, HostCalls, Table
from eprof.logs.passes import repeats
from eprof.logs.stream import split
from eprof.nvidia import folding
from eprof.nvidia.folding import Piece
from eprof.readers.cells import (
    LEAST_WRONG,
    RATES,
    REASONS,
    Rates,
    as_cell,
    cells,
    no_kernels,
    shows_wrong,
    unused_notes,
)
from eprof.readers.gaps import FAULTS, Gaps, again_of, kind_of_copy
from eprof.readers.sections import (
    Coded,
    bools,
    chosen,
    clean_columns,
    coded,
    floats,
    made,
    mask,
    numbers_of,
    texts_of,
)

# What traces without Correlation_ID put behind a kernel's name.
LAUNCH_ID = pattern(r" \[[0-9]+\]$")
_UNITS = ("", "%", *RATES)
# What cells with these units are, and those with any other.
_KIND_OF_UNIT = np.array(
    [as_cell(kind) for kind in (COUNT, PERCENT, *[BYTES_PER_S] * len(RATES), OTHER)], dtype=np.int8
)
_DIGITS = "0123456789"


class Answers(dict[str, Any]):
    """A function of texts that come again in nvprof's logs: `ask` is called once for each different text, in order."""

    def __init__(self, ask: Callable[[str], Any], dtype: npt.DTypeLike) -> None:
        super().__init__()
        self._ask = ask
        self._dtype = dtype

    def __missing__(self, text: str) -> Any:
        """Ask for a text that is new."""
        self[text] = answer = self._ask(text)
        return answer

    def of_texts(self, texts: Sequence[str]) -> Array:
        """What `ask` returned for each text, (n_texts,)."""
        return np.fromiter(map(self.__getitem__, texts), self._dtype, len(texts))


class Form(Struct, frozen=True, dict=True):
    """How lines of an nvprof table are parsed: how many fields a line has, and the places of the wanted columns.

    names: columns in which few different texts come again and again. values: columns of numbers, maybe with units.
    numbers: columns of numbers without. together: such columns, which a line fills all or none of; maybe: any of them.
    with_id: the one of `names` whose texts end in a launch id (" [123]"), which is left out. checked: columns of
    counts that are not kept. A line where a count may have gone wrong is not clean (see `parse`).
    """

    width: int
    names: tuple[int, ...]
    values: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    maybe: tuple[int, ...] = ()
    with_id: int | None = None
    checked: tuple[int, ...] = ()

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The places of all columns that are wanted, ascending."""
        return tuple(sorted((*self.names, *self.values, *self.numbers, *self.together, *self.maybe)))


class Rows:
    """Rows of an nvprof table, whose columns are taken by their place in a line.

    A column is a list of texts where lines were split one by one; pyarrow makes codes of texts, texts, or numbers (NaN
    where a cell is empty).
    """

    def __init__(self, size: int, columns: Mapping[int, Any]) -> None:
        self._size = size
        self._columns = columns

    def __len__(self) -> int:
        """The number of rows."""
        return self._size

    def each(self, place: int, answers: Answers) -> Array:
        """What `answers` says of each text in the column at `place` of nvprof's rows, (n_rows,)."""
        column = self._columns[place]
        return answers.of_texts(column.texts)[column.codes] if isinstance(column, Coded) else answers.of_texts(column)

    def all(self, place: int, answers: Answers) -> bool:
        """Whether `answers` is true for all texts in the column at `place` of nvprof's rows; each is asked of once."""
        column = self._columns[place]
        return bool(answers.of_texts(column.texts if isinstance(column, Coded) else column).all())

    def cells(self, place: int, rates: Rates = RATES) -> tuple[Floats, Array]:
        """The values (NaN = none) and kinds of cells in the column at `place` of nvprof's rows, see `cells.cells`."""
        column = self._columns[place]
        if isinstance(column, np.ndarray):
            return column, np.full(len(column), as_cell(COUNT), dtype=np.int8)
        if isinstance(column, list):
            return cells(column, rates)
        endings = coded(made("dictionary_encode", made("ascii_ltrim", column, characters=f"{_DIGITS}.eE+-")))
        units = {unit: code for code, unit in enumerate(_UNITS)}
        unit = np.array([units.get(text, len(_UNITS)) for text in endings.texts])[endings.codes]
        values = numbers_of(made("ascii_rtrim", column, characters="KMGTB/s%"))
        values = values * np.array([1.0, 1.0, *(rates[unit] for unit in RATES), np.nan])[unit]
        kinds = _KIND_OF_UNIT[unit]
        is_odd = ~_may_be_count(values)
        if is_odd.any():
            values[is_odd], kinds[is_odd] = cells(texts_of(chosen(column, is_odd)), rates)
        return values, kinds

    def numbers(self, place: int) -> Floats:
        """The numbers in the column at `place` of nvprof's rows; NaN where a cell holds none."""
        return self.cells(place)[0]

    def is_filled(self, place: int) -> Bools:
        """Whether each cell in the column at `place` of nvprof's rows holds anything but blanks, (n_rows,)."""
        column = self._columns[place]
        if isinstance(column, list):
            return np.array([bool(text.strip()) for text in column], dtype=bool)
        return np.asarray(~np.isnan(column))

    def chosen(self, rows: Bools) -> Rows:
        """Those of nvprof's rows where `rows` is true."""
        return Rows(int(rows.sum()), {place: chosen(column, rows) for place, column in self._columns.items()})


def _may_be_count(values: Floats) -> Bools:
    return (values < LEAST_WRONG) & ~np.signbit(values)


def parse(lines: memoryview, form: Form) -> Rows | None:
    """Parse lines of nvprof's CSV, UTF-8 with plain ends, by pyarrow; None if one is not clean: see `clean_columns`."""
    import pyarrow as pa

    numbers = (*form.numbers, *form.together, *form.maybe)
    types = dict.fromkeys(form.names, pa.dictionary(pa.int32(), pa.string()))
    types |= dict.fromkeys((*form.values, *form.checked), pa.string())
    types |= dict.fromkeys(numbers, pa.float64())
    if form.with_id is not None:
        types[form.with_id] = pa.string()
    columns = clean_columns(lines, form.width, types)
    if columns is None:
        return None
    for texts in (columns.pop(place) for place in form.checked):
        if any(map(shows_wrong, texts_of(made("filter", texts, made("match_substring", texts, pattern="84467"))))):
            return None
    if form.with_id is not None:
        # Names without the launch ids at their ends. By regular expression it would take six times as long.
        names = columns[form.with_id]
        in_bracket = made("ascii_rtrim", names, characters="]")
        before = made("ascii_rtrim", in_bracket, characters=_DIGITS)
        lengths, of_ids, rest = (np.from_dlpack(made("binary_length", texts)) for texts in (names, in_bracket, before))
        has_id = (of_ids == lengths - 1) & (rest < of_ids) & bools(made("ends_with", before, pattern=" ["))
        without_ids = made("if_else", mask(has_id), made("utf8_slice_codeunits", before, start=0, stop=-2), names)
        columns[form.with_id] = made("dictionary_encode", without_ids)
    for place in numbers:
        lacking = columns[place].null_count
        columns[place] = floats(columns[place])
        if np.count_nonzero(~(columns[place] < LEAST_WRONG)) > lacking:
            return None
    gaps = [np.isnan(columns[place]) for place in form.together]
    are_counts = all(_may_be_count(columns[place]).all() for place in form.numbers)
    if not (are_counts and all(np.array_equal(gap, gaps[0]) for gap in gaps)):
        return None
    columns |= {place: coded(columns[place]) for place in form.names}
    return Rows(len(columns[form.names[0]].codes), columns)


# ----------------------------------------------------------------------------------------------------------------------
# Header lines, what a log has in all, and open tables, which take lines one by one or many.

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
_CUT_INDEX = pattern(r" \(\d*$")  # behind a name that is whole
_UNLIKE = 2.0  # times as long, from which on two copies move unlike numbers of bytes, our choice
_EXAMPLES = 3


class Header(Struct, frozen=True):
    """A header line of nvprof's CSV: a table's `columns`, behind `prefix` columns that a script put in front."""

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
    """The header of a table of nvprof's CSV that `line` is, or None."""
    if not _PERHAPS.match(line):
        return None
    return header_of_fields(split(line), quoted='"' in line)


def header_of_fields(fields: list[str], quoted: bool = True) -> Header | None:
    """The nvprof header that these column names make, with up to three columns of a script in front; or None."""
    if len(fields) > _MOST_COLUMNS:
        return None
    names = [field.strip() for field in fields]
    for prefix in range(min(_LONGEST_PREFIX, len(names)) + 1):
        own = names[prefix:]
        for kind, needed in _KINDS:
            if own and own[0] in needed | {"Type"} and needed <= set(own):
                return Header(kind, tuple(own), prefix, quoted)
    return None


class _Other(Struct, frozen=True):
    """GPU work in nvprof's log that is no kernel: how often, seconds; shortest and longest times if a sum has them."""

    calls: float
    time_s: float
    ends_s: tuple[float, ...]

    def __add__(self, more: _Other) -> _Other:
        return _Other(self.calls + more.calls, self.time_s + more.time_s, self.ends_s + more.ends_s)


class NvprofStore(folding.TableStore, dict=True):
    """What was read of a log of nvprof so far. keep: the counters to hold; None for all.

    names: description of a metric -> its name. rates: how many B/s the units of rates are from here on; None: the log
    did not tell. ranges: how many tables of NVTX ranges were left out. unused: names of counters that are not wanted;
    has_useless: a table has none that is. traces: run -> the gaps between its kernels. pages: what moved of Unified
    Memory, and faults -> number, s, bytes. calls: of functions of CUDA, by name. shapes: number of a kernel ->
    launches, and the numbers of a `Shape` added up. cut_off: what tables left of names of GPUs, where they cut the
    number off; cut_off_of: those of each run in whose trace they stand. lacks_units: a trace has no row of them.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    _squashed: dict[str, str] = field(default_factory=dict)
    keep: Container[str] | None = None
    notes: list[str] = field(default_factory=list)
    rates: Rates | None = None
    ranges: int = 0
    unused: dict[str, None] = field(default_factory=dict)
    has_useless: bool = False
    traces: dict[int, Gaps] = field(default_factory=dict)
    _others: dict[tuple[int, str], _Other] = field(default_factory=dict)
    pages: dict[str, Floats] = field(default_factory=dict)
    calls: dict[str, HostCalls] = field(default_factory=dict)
    shapes: dict[int, Floats] = field(default_factory=dict)
    cut_off: dict[str, None] = field(default_factory=dict)
    cut_off_of: dict[int, set[str]] = field(default_factory=dict)
    lacks_units: bool = False
    _answers: dict[Callable[[str], Any], Answers] = field(default_factory=dict)

    def canonical(self, label: str) -> str:
        """The metric of nvprof that a column's label is, or describes ("Executed IPC": "ipc")."""
        if not self._squashed:
            self._squashed = {_squash(description): name for description, name in self.names.items()}
        return self.names.get(label) or self._squashed.get(_squash(label), label)

    def device_of(self, name: str) -> int:
        """The number that nvprof's store gives a device; -1 where its name is cut off before the index, "(0)"."""
        if DEVICE.search(name):
            return self.devices.of(name)
        if name.strip():
            self.cut_off.setdefault(_CUT_INDEX.sub("", name))
        return NO_DEVICE

    @property
    def longest(self) -> dict[str, str]:
        """What tables left of a GPU's name -> the longest one that begins so, which is taken to be the same GPU's."""
        return {name: max((each for each in self.cut_off if each.startswith(name)), key=len) for name in self.cut_off}

    def tell_cut_off(self, run: int, name: str) -> None:
        """Remember the cut name of a GPU on which a kernel of a run's trace ran."""
        self.cut_off_of.setdefault(run, set()).add(_CUT_INDEX.sub("", name))

    def name_cut_off(self) -> bool:
        """Tell GPUs apart whose cut names do not begin alike, each run's kernels on its own; whether there are such."""
        if len(set(self.longest.values())) < 2:
            return False
        gpu_of = {name: alike(beginning(longest), longest) or longest for name, longest in self.longest.items()}
        of_run = {run: only({gpu_of[name] for name in own}) for run, own in self.cut_off_of.items()}
        for piece in self.pieces.get(TRACE, []):
            gpus = [of_run.get(run) for run in piece.run.tolist()]
            named = [NO_DEVICE if gpu is None else self.devices.of(gpu) for gpu in gpus]
            piece.device = np.where(piece.device == NO_DEVICE, np.array(named, dtype=np.int32), piece.device)
        return True

    def keeps(self, counter: str) -> bool:
        """Whether the store keeps the values of a counter; the names of others are remembered for a note."""
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
        """`ask` as `Answers` for all tables of an nvprof log: it is called once for each different text."""
        return self._answers.setdefault(ask, Answers(ask, dtype))

    @property
    def gaps(self) -> Gaps:
        """The gaps between the kernels of all of nvprof's traces."""
        return Gaps.of_runs(self.traces.values())

    @property
    def others(self) -> dict[str, _Other]:
        """What took time on the GPU in nvprof's log and is no kernel, by its name, of all runs."""
        of_runs: dict[str, _Other] = {}
        for (_, name), other in self._others.items():
            added(of_runs, name, other)
        return of_runs

    def leave_out_repeats(self, tables: Sequence[Table]) -> None:
        """Forget copies and gaps of runs whose launches stand in the tables twice: the launches count once, too."""
        timed = {place: runs for place, runs in repeats(tables).items() if tables[place].kind in (TRACE, SUMMARY)}
        for run in set(chain.from_iterable(timed.values())):
            self.traces.pop(run, None)
            self._others = {key: other for key, other in self._others.items() if key[0] != run}

    @property
    def copies_s(self) -> float:
        """How long copies and memsets in nvprof's log took, in s, page faults left out."""
        known = [(name, other.time_s) for name, other in self.others.items() if FAULTS not in name]
        return sum(time_s for name, time_s in known if kind_of_copy(name) or "memset" in name)

    @property
    def copies(self) -> tuple[Copies, ...]:
        """The copies of nvprof's tables by kind: of a trace with their bytes, of a summary without; () for none."""
        copied = []
        for name, other in self.others.items():
            if kind := kind_of_copy(name):
                # Copies of a name have unlike sizes as far as their times tell.
                are_unlike = bool(other.ends_s) and max(other.ends_s) >= _UNLIKE * min(other.ends_s)
                again = again_of(other.calls, are_unlike)
                copied.append(Copies(*kind, int(other.calls), other.time_s, 0.0, again))
        pages = (Copies(way, PAGES, int(sums[0]), *sums[1:].tolist()) for way, sums in self.pages.items())
        return self.gaps.copies or (*copied, *pages)

    def count_other(self, run: int, name: str, calls: float, time_s: float, ends_s: Iterable[float] = ()) -> None:
        """Count in the store something that took time on the GPU in a run but is no kernel, such as a copy."""
        added(self._others, (run, name), _Other(calls, float(np.nan_to_num(time_s)), tuple(ends_s)))

    def groups(self, pieces: Sequence[Piece]) -> Iterable[tuple[frozenset[str] | None, Sequence[Piece]]]:
        """Nvprof's pieces, a group for each run and set of columns: (all counters of the run, pieces of the group)."""
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
        if others := self.others:
            notes.append(no_kernels((name, int(other.calls), other.time_s) for name, other in others.items()))
        return notes


def _squash(label: str) -> str:
    return " ".join(label.split()).casefold()


class OpenTable:
    """One open table of nvprof, from its header line on; takes the lines that are its rows.

    This class itself keeps nothing: of traces of API calls, and of totals of Unified Memory, every line with as many
    fields is a row.
    """

    has_units = False
    is_in_kernels = False  # whether the latest row was a kernel's

    def __init__(self, header: Header, run: int, store: NvprofStore) -> None:
        self.header = header
        self.run = run
        self.store = store
        self.rows = 0
        self.units_pending = self.has_units

    def takes_row(self, fields: list[str]) -> bool:
        """Take fields if they are a row of nvprof's open table, or its row of units; returns whether they are."""
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
        """Take fields if they are the row of units below the header of nvprof's table; returns whether they are."""
        return False

    def fits(self, fields: list[str]) -> bool:
        """Whether fields, as many as the header has, are a row of the open table and not program output."""
        return True

    def take(self, fields: list[str]) -> None:
        """Take the fields of a row of the open table."""

    def close(self) -> None:
        """The open table ends here: hand what was taken to the store."""


class ColumnSection(OpenTable, ABC):
    """A table of nvprof that may be long. `form`: how its lines are parsed, and which columns are read.

    needed: places of cells, and the test that each of these must pass in every row.
    """

    form: Form
    is_in_kernels = True
    needed: Sequence[tuple[int, Callable[[str], object]]] = ()

    def __init__(self, header: Header, run: int, store: NvprofStore) -> None:
        super().__init__(header, run, store)
        self._lines: list[list[str]] = []

    def fits(self, fields: list[str]) -> bool:
        """Whether fields are a row of nvprof's open table: each cell that it needs passes its test."""
        return all(fits(fields[place]) for place, fits in self.needed)

    def all_fit(self, rows: Rows) -> bool:
        """Whether all of nvprof's rows fit, as `fits` tells, and can be added as they are. Asks of each text once."""
        return all(rows.all(place, self.store.each(fits)) for place, fits in self.needed)

    @abstractmethod
    def add(self, rows: Rows) -> None:
        """Take rows that fit the open table."""

    @abstractmethod
    def finish(self) -> None:
        """Hand what was added to the open table to the store."""

    def expects_units(self) -> bool:
        """Allow other cells than numbers in nvprof's table from here on; returns whether it may help to parse rows."""
        return False

    def take(self, fields: list[str]) -> None:
        """Hold the row of nvprof's open table until there are some more."""
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
