"""What a reader makes of a log: `Log`, with `Table`, `Clock`, `Calls`, `Copies`, `Idle`; and `Launches`, logs joined.

Readers add up the rows of a kernel. Asked for launches one by one (`parts=LAUNCH`), which take much room, they make
each launch a part, named by its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Columns, Floats, Ints, Texts
from eprof.base.optional import mapped, ratio
from eprof.base.text import ShortRepr, cut, few, pattern, phrase
from eprof.base.units import in_joules
from eprof.base.vocabulary import Mark

if TYPE_CHECKING:
    import pandas as pd

# Units of a counter's values after reading. Only "count" is a count; the others are kept as what they are.
COUNT, PERCENT, BYTES_PER_S, LEVEL, OTHER = "count", "percent", "byte_per_s", "level", "other"
# Of measured energy; its counter is named by what the meter covers: "processor packages and DRAM".
JOULE = "joule"
# Counters of how many processors, and how many of their cores, a row of a CPU's log kept busy, where it tells.
# Of a whole machine: how many CPUs were counted, which may be a core each, or threads of fewer.
SOCKETS, CORES, CPUS = "sockets in use", "cores in use", "CPUs counted"
# Behind the name of a counter: the share of the time in which it was counted, in %, where that is not all of it; and in
# how many parts of the processor, or intervals, it has no number.
RUNNING, NOT_ALL = " running", ": parts without a number"
# What adds up over launches; the others are averages.
TOTALS = frozenset({COUNT, JOULE})
# Between the names in the path of an operator: "BertLayer_0 > Linear_3 > aten::addmm".
BETWEEN = " > "
_PROGRAMS, _SHOWN = 3, 60  # of several programs: how many are named, and of each how much
# What a log that counts all of a program, and does not name it, calls its only row.
WHOLE_PROGRAM = "whole program"
# What a log that counts on all CPUs calls its row, as perf does in place of a command (perf stat -a).
WHOLE_MACHINE = "system wide"
# What rows of one kernel can be told apart by.
RANK, STREAM, NVTX, MARK = "rank", "stream", "nvtx", "mark"
RANGES = (NVTX, MARK)  # a mark is a range of NVTX where a GPU is profiled
PARTS = (RANK, STREAM, *RANGES)
NO_RANGE = "(outside of ranges)"  # a part of launches on a GPU
OUTSIDE = "(outside of marks)"  # a part of what ran on a CPU
LAUNCH = "launch"
# What a profiler counted in each stretch of time; a part is named by its end in s.
INTERVAL = "interval"
UNKNOWN = -1  # a start
# Words in notes of logs.
UNUSED = "counted, and not used"  # of counters that eprof knows no use of
NOT_USED = "Not used with"  # at the start of a note on counters of a GPU that only other generations have a use for
HARDLY_WORKED = "the CPUs hardly worked"  # of a log that is as good as one of an idle machine
OF_RADEON = "waves are of 32 work-items, as on Radeon GPUs"
_MUCH_KERNEL = 1 / 3  # of the time of processors: worth a word
_OF_KERNEL = "of the processor time ran in the kernel: system calls,"
# The share, and the number of page faults where it is told: there is what can be saved.
IN_KERNEL = pattern(rf"((?:At least )?([0-9]{{1,3}}) %) {_OF_KERNEL} ([0-9,]+ page faults)?")
NOT_IN_TABLE = "(not in the table)"  # what kernels took together whose rows a table lost
NOT_SHOWN = "functions not shown"  # what functions took together that a list leaves out
WHOLE_GRAPH = "(CUDA graphs)"  # the kernels of CUDA graphs that a trace has as a whole
RESTS = NOT_IN_TABLE, NOT_SHOWN, WHOLE_GRAPH  # rows of nothing that has a name
CUT_NAME = "no table has the GPU's whole name"  # begins a note on which GPU it is taken for
ON_TOTALS = "Totals: "  # begins a note of a reader that bears on all numbers, and so is for the first screen
CUT_OFF = f"{ON_TOTALS}the log looks cut off, so they are lower bounds; collect it again"
LACKS_ROWS = f"{ON_TOTALS}the table was cut off; what its percentages leave is {NOT_IN_TABLE}"


def much_in_kernel(used_s: float, system_s: float, faults: float = 0, least: str = "") -> Iterator[str]:
    """A note (`IN_KERNEL`) if `system_s`, the time in the operating system's kernel, is much of `used_s`; else none.

    faults: page faults. least: "At least " where `system_s` may be more.
    """
    if system_s > _MUCH_KERNEL * used_s:
        paging = f"{f'{faults:,.0f} ' * bool(faults)}page faults"
        yield f"{least}{100 * system_s / used_s:.0f} % {_OF_KERNEL} {paging}, input and output"


def metered_part(whole_j: float, of: str, part_j: float, whose: str) -> Iterator[str]:
    """A note that `part_j` of the metered joules `whole_j` has a meter of its own; none where it saw 0, or more.

    of, whose: what the two meters cover, in words.
    """
    if 0 < part_j <= whole_j:
        share = f"{100 * part_j / whole_j:.0f} %"
        yield f"{ON_TOTALS}of the {in_joules(whole_j)} of {of} {share} are {whose} ({in_joules(part_j)})"


class Names(ShortRepr, Struct, frozen=True, eq=False):
    """A column of names, each held once. codes: for each row the place of its name in `names`; -1: not known."""

    names: tuple[str, ...]
    codes: Array

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Names:
        """A column with a name for each row; None: not known."""
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return cls(tuple(places), np.array(codes, dtype=np.int32))

    @classmethod
    def joined(cls, columns: Iterable[Names]) -> Names:
        """One column of several, their rows below each other; each different name is held once."""
        places: dict[str, int] = {}
        codes = []
        for column in columns:
            own = [places.setdefault(name, len(places)) for name in column.names]
            # The last is for -1: no name.
            codes.append(np.array([*own, -1], dtype=np.int32)[column.codes])
        return cls(tuple(places), np.concatenate(codes))

    def __len__(self) -> int:
        return len(self.codes)

    def chosen(self, rows: Array) -> Names:
        """The column of some rows: a mask of them, or their numbers in the order that they get."""
        return Names(self.names, self.codes[rows])

    __getitem__ = chosen  # as of an array

    def renamed(self, names: Iterable[str]) -> Names:
        """The same rows with the name `names[i]` for each `self.names[i]`; equal new names become one."""
        return Names.of([*names, None]).chosen(self.codes)  # the last is for -1

    def texts(self) -> Texts:
        """The name of each row; None where it is not known."""
        return np.asarray(np.array([*self.names, None], dtype=object)[self.codes])


class _Rows(ShortRepr, Struct, frozen=True, eq=False):
    """A record of columns of equal length; a column that it lacks is None."""

    def columns(self) -> dict[str, Array | Names]:
        """The columns that the record has, by name."""
        columns = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: column for name, column in columns.items() if column is not None}

    def chosen(self, rows: Array) -> Self:
        """The record of some rows: a mask of them, or their numbers in the order that they get."""
        return replace(self, **{name: column[rows] for name, column in self.columns().items()})

    @classmethod
    def below(cls, records: Sequence[Self]) -> Self:
        """One record of several with the same columns, their rows below each other."""
        columns: dict[str, Any] = {}
        for name, first in records[0].columns().items():
            pieces = [getattr(record, name) for record in records]
            columns[name] = Names.joined(pieces) if isinstance(first, Names) else np.concatenate(pieces)
        return replace(records[0], **columns)

    def frame(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame, a column each."""
        import pandas as pd

        columns = self.columns()
        return pd.DataFrame(columns | {name: each.texts() for name, each in columns.items() if isinstance(each, Names)})


class TableRows(_Rows, frozen=True, eq=False):
    """The rows of a log's `Table`, all columns (n_rows,).

    device: "Tesla K20c (0)"; not known (-1) where the log names none. kernel: the full name as printed, without a
    launch id. run: 0, 1, ... for appended runs and processes. launches: how many launches a row stands for: 1 in a
    trace that is not long. time_s: their total time without counter collection; NaN where the table has none. process:
    the number of the run's process (-1: not known), where the reader knows it. part: the rank, stream, NVTX range or
    operator of the row, where rows are split.

    Of launches one by one that tell when they ran: start_ns, since the epoch or on a clock of the log (-1: not known);
    stream; operator: the path of what launched it (`BETWEEN`). Of launches added up by the profiler: least_s, most_s,
    the shortest and the longest of them (NaN: not told).
    """

    device: Names
    kernel: Names
    run: Ints
    launches: Ints
    time_s: Floats
    process: Ints | None = None
    part: Names | None = None
    start_ns: Ints | None = None
    stream: Names | None = None
    operator: Names | None = None
    least_s: Floats | None = None
    most_s: Floats | None = None

    @classmethod
    def of(
        cls, device: Names, kernel: Names, launches: Iterable[int] = (), time_s: Iterable[float] = (), **more: Any
    ) -> TableRows:
        """The rows of these columns; where not given: all of run 0, each of one launch and of unknown time."""
        size = len(kernel)
        return cls(
            device,
            kernel,
            launches=np.array([*launches] or np.ones(size), dtype=np.int64),
            time_s=np.array([*time_s] or np.full(size, np.nan), dtype=np.float64),
            **{"run": np.zeros(size, dtype=np.int64)} | more,
        )

    def __len__(self) -> int:
        return len(self.launches)


class Table(ShortRepr, Struct, frozen=True, eq=False):
    """All tables of one kind in one log, of one run or several, below each other.

    kind: the profiler's name, a hyphen, and the kind: "nvprof-gpu-trace".

    How a reader makes one, of n rows and the counters "inst_integer" and "ipc":

        device = Names(("Tesla K20c (0)",), codes)
        rows = TableRows.of(device, Names.of(texts), launches, time_s)
        Table(kind, rows, Columns(("inst_integer", "ipc"), values), {"inst_integer": COUNT, "ipc": OTHER})
        Table.of_amounts(kind, rows, [{"inst_integer": (5, COUNT), "ipc": (0.5, OTHER)}, ...])  # row by row

    counters: float64, (n, n_counters), a column a counter as the log names it; *totals* over the row's launches where
    the unit is one of TOTALS, else averages; NaN = there, but without a value: overflowed, invalid. Arrays that were
    filled counter by counter, (n_counters, n), are given as `values.T`. units: counter -> one of the units above.
    collected: the counters that its runs have in tables of this kind, where these are not the columns; None: they are.
    lacks_rows: the log is known to have lost rows, so all sums are lower bounds.
    """

    kind: str
    rows: TableRows
    counters: Columns
    units: Mapping[str, str]
    collected: frozenset[str] | None = None
    lacks_rows: bool = False

    @classmethod
    def of_amounts(
        cls,
        kind: str,
        rows: TableRows,
        amounts: Sequence[Mapping[str, tuple[float, str]]],
        absent: Mapping[str, float] | None = None,
        **more: Any,
    ) -> Self:
        """The table of `rows` and, for each, `amounts`: counter -> (value, unit).

        absent: counter -> the value of rows without it, NaN if it is not given.
        """
        units = {name: unit for each in amounts for name, (_, unit) in each.items()}
        nothing = {name: ((absent or {}).get(name, np.nan), "") for name in units}
        values = [[each.get(name, nothing[name])[0] for name in units] for each in amounts]
        counters = Columns(tuple(units), np.array(values, dtype=np.float64).reshape(len(amounts), len(units)))
        return cls(kind, rows, counters, units, **more)

    @property
    def profiler(self) -> str:
        """The profiler that wrote the log's table."""
        return self.kind.partition("-")[0]

    def chosen(self, rows: Array) -> Table:
        """The table of the rows where `rows` is true."""
        return replace(self, rows=self.rows.chosen(rows), counters=self.counters.chosen(rows))


class Clock(Struct, frozen=True):
    """The mean clocks in MHz of a device over `time_s` s of its launches, as a log tells them; None: not told."""

    device: str | None
    time_s: float
    core_mhz: float | None
    memory_mhz: float | None

    @staticmethod
    def mean(device: str | None, clocks: Sequence[Clock]) -> Clock:
        """The clocks of a device over all of `clocks` together: means weighted by their times."""
        core_mhz = _mean([(clock.core_mhz, clock.time_s) for clock in clocks])
        memory_mhz = _mean([(clock.memory_mhz, clock.time_s) for clock in clocks])
        return Clock(device, sum(clock.time_s for clock in clocks), core_mhz, memory_mhz)


def _mean(clocks: Iterable[tuple[float | None, float]]) -> float | None:
    known = [(mhz, time_s) for mhz, time_s in clocks if mhz is not None]
    return ratio(sum(mhz * time_s for mhz, time_s in known), sum(time_s for _, time_s in known))


class Calls(Struct, frozen=True, eq=False):
    """Calls between the kernels of a log, which are functions; all columns (n_calls,).

    beneath: the instructions that ran in the callee, and in all that it called, for that caller. places: the source
    lines that called ("mm.c:12"; "": not told). libraries: of functions that are of a library, by their names.
    """

    caller: Names
    callee: Names
    beneath: Floats
    places: Names
    libraries: dict[str, str]

    def each(self) -> Iterator[tuple[str, str, float, str]]:
        """The calls of functions one by one: caller, callee, instructions beneath, and the source line that called."""
        callers, callees, places = (names.texts().tolist() for names in (self.caller, self.callee, self.places))
        return zip(callers, callees, self.beneath.tolist(), places, strict=True)


class Shape(Struct, frozen=True):
    """Sums over launches of a kernel: blocks, threads of a block, registers of a thread, shared bytes of a block."""

    kernel: str
    launches: int
    blocks: float
    threads: float
    registers: float
    shared_byte: float


class OfShape(Struct, frozen=True):
    """Launches of a kernel in blocks of one shape, with how long all take, the shortest and the longest, in s.

    block, threads: the threads of a block, and of a launch, in each dimension.
    """

    block: tuple[int, ...]
    threads: tuple[int, ...]
    launches: int
    time_s: float
    launch_s: tuple[float, float]


class During(Struct, frozen=True):
    """What the CPU did in some gaps between kernels ("outer > inner": `BETWEEN`): how many gaps, and their time."""

    doing: str
    gaps: int
    time_s: float


PAGES = "pages"  # of managed memory, as a kind of `Copies.memory`


class Copies(Struct, frozen=True):
    """Copies of one kind in a log: the way ("HtoD"), the host's memory ("pageable", "pinned", "unified"; "": not told).

    Of memory `PAGES` are totals of what kernels waited for: no part of how long copies took. size_b: of all of them
    together; 0: not told. again_s: what those took that copied as many bytes as an earlier one, with a kernel between
    them; None: not told.
    """

    way: str
    memory: str
    number: int
    time_s: float
    size_b: float = 0.0
    again_s: float | None = None


class HostCalls(Struct, frozen=True):
    """Calls of a function of CUDA by the program: how many, how long together, and the longest of them, in s.

    longest_s: 0 where the log does not tell. once_s: what a run pays once: the longest call, where it takes at least
    half of what all calls of the function take; a sum over all `runs` of the log. is_range: it is no function, but a
    range of NVTX that the program named, with calls in it.
    """

    name: str
    number: int
    time_s: float
    longest_s: float = 0.0
    once_s: float = 0.0
    runs: int = 1
    is_range: bool = False

    @classmethod
    def of_run(cls, name: str, number: int, time_s: float, longest_s: float | None) -> Self:
        """The calls of one run, of which the log may not tell the longest (None or NaN)."""
        longest_s = time_s if number == 1 else max(0.0, longest_s or 0.0)  # 0 is the greater of 0 and NaN
        once_s = longest_s if 2 * longest_s >= time_s else 0.0
        return cls(name, number, time_s, longest_s, once_s)

    def __add__(self, other: Self) -> Self:
        """The calls of a function of CUDA in two runs together."""
        number, time_s = self.number + other.number, self.time_s + other.time_s
        longest_s, once_s = max(self.longest_s, other.longest_s), self.once_s + other.once_s
        return type(self)(self.name, number, time_s, longest_s, once_s, self.runs + other.runs, self.is_range)


class Idle(Struct, frozen=True):
    """Idle time of GPUs: without a kernel, from the first work to the last kernel, in all and at a stretch, in s.

    copied_s: how much of it copies took. copies_s: how long copies and memsets ran at all, those beside each other
    once; alone_s: how long of it no kernel ran. first_s: how much of time_s nothing ran before first launches of
    kernels that came again, and of the first: what a start takes. during: what the CPU did in the longest gaps, as far
    as told. short_gaps: how many gaps are no longer than the CPU's next launch takes; short_s: their time. before_s:
    from the start of the program to its first work of a GPU, in all `runs`; 0: not told. calls: of CUDA, where a
    summary tells these instead (see `idle_of_calls`); surely_s: how much of time_s passed, however they ran.
    kernels_s: (GPU, how long its kernels took, how long one ran or several did): less where they surely ran at a
    time.
    """

    time_s: float
    longest_s: float
    copied_s: float
    copies_s: float
    alone_s: float | None  # None: an older report did not tell
    first_s: float = 0.0
    during: tuple[During, ...] = ()
    short_gaps: int = 0
    short_s: float = 0.0
    before_s: float = 0.0
    surely_s: float | None = None
    calls: tuple[HostCalls, ...] = ()
    runs: int = 1
    kernels_s: tuple[tuple[str | None, float, float], ...] = ()


class Log(ShortRepr, Struct, frozen=True, eq=False, kw_only=True):
    """One log as its reader read it (`Source.log`). format: the kinds of table in it. notes: for the user.

    runs: how many runs or processes launched its kernels. clocks: those that the launches ran at, one entry a device,
    where the log has them. device, limit_w: the only device that lines beside the tables name, and its power limit
    there. calls: which function called which, where the log tells. shapes: of launches, where a log has them beside its
    counters. by_shape: kernel -> its launches by shape, where there are several for as many threads. by_line: rows of
    `tables` again, a source line each as `part`. idle: how long no kernel ran between the launches of a trace, where
    each tells its start. copies_s: how long copies and memsets took, which are no kernels; copies: the copies of these,
    by their kinds. calls_of_host: of CUDA's functions, where a summary tells them. caches: those that were simulated.
    homes: of functions, the names of the programs and libraries that they are in, where the log tells these.
    """

    path: str
    format: str
    lines: int = 0
    skipped_lines: int = 0
    sha256: str
    size_bytes: int
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    command: str | None = None
    runs: int = 1
    clocks: tuple[Clock, ...] = ()
    device: str | None = None
    limit_w: float | None = None
    calls: Calls | None = None
    shapes: tuple[Shape, ...] = ()
    by_shape: dict[str, tuple[OfShape, ...]] = {}
    by_line: Table | None = None
    idle: Idle | None = None
    copies_s: float = 0.0
    copies: tuple[Copies, ...] = ()
    calls_of_host: tuple[HostCalls, ...] = ()
    caches: str = ""
    homes: dict[str, str] = {}

    def renamed(self, names: Mapping[str, str]) -> Log:
        """The same log with other names for some of its functions, by their names so far."""

        def column(functions: Names) -> Names:
            return functions.renamed(names.get(name, name) for name in functions.names)

        def table(of: Table) -> Table:
            return replace(of, rows=replace(of.rows, kernel=column(of.rows.kernel)))

        if not names:
            return self
        calls = self.calls and replace(
            self.calls,
            caller=column(self.calls.caller),
            callee=column(self.calls.callee),
            libraries={names.get(name, name): library for name, library in self.calls.libraries.items()},
        )
        return replace(self, tables=tuple(map(table, self.tables)), by_line=mapped(table, self.by_line), calls=calls)

    def of_bounds(self, lacks_rows: bool) -> Log:
        """The same log; if `lacks_rows`, all its tables are marked so: their sums are lower bounds."""
        tables = (replace(table, lacks_rows=lacks_rows or table.lacks_rows) for table in self.tables)
        return replace(self, tables=tuple(tables))


class KernelRows(_Rows, frozen=True, eq=False):
    """The rows of `Launches` and `Counts`: a device, a kernel and, if split, a part. All columns (n_kernels,).

    device: None where no log names it. time_s: total, NaN = not known. time_marks: `Mark` bits. part: a rank, a stream
    or an NVTX range; None where no log has it. least_s, most_s: the shortest and the longest launch where a log tells
    them, else the mean of a launch in the run in which that is shortest, and longest; NaN = not known, None: no log.
    """

    device: Texts
    kernel: Texts
    launches: Ints
    time_s: Floats
    time_marks: Ints
    part: Texts | None = None
    least_s: Floats | None = None
    most_s: Floats | None = None

    def __len__(self) -> int:
        return len(self.launches)

    @property
    def n_kernels(self) -> int:
        """The number of different (device, kernel), however many parts these are split into."""
        return len(set(zip(self.device, self.kernel, strict=True)))

    @property
    def is_timed(self) -> Bools:
        """Whether the time of each kernel is known in full: it is there, and no lower bound."""
        return np.asarray(~np.isnan(self.time_s) & ((self.time_marks & int(Mark.MISSING)) == 0))

    def with_times(self, where: Bools, time_s: Floats | float, marks: Ints | int) -> KernelRows:
        """The rows with other times in s and marks where `where` is true; least_s and most_s are NaN there."""
        new = {"time_s": time_s, "time_marks": marks, "least_s": np.nan, "most_s": np.nan}
        own = self.columns().keys() & new
        return replace(self, **{name: np.where(where, new[name], getattr(self, name)) for name in own})


class Launches(ShortRepr, Struct, frozen=True, eq=False):
    """The tables of one or more logs joined: one row for each device and kernel, summed over launches and runs.

    counters: float64, (n_kernels, n_counters), NaN = not known. marks: same shape, int8 `Mark` bits. units: counter ->
    unit. profilers: counter -> who counted it. warnings: sentences about what did not match. lacks_rows: a log was cut
    or damaged, so that launches of any kernel may be missing; of those that are there, all counters are. timeline: the
    launches one by one, where a log tells when each ran.
    """

    rows: KernelRows
    counters: Columns
    marks: Columns
    units: Mapping[str, str] = field(default_factory=dict)
    profilers: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lacks_rows: bool = False
    timeline: TableRows | None = None

    @property
    def is_metered(self) -> Bools:
        """Whether a meter's joules of each row are known in full, (n_kernels,)."""
        meters = [covers for covers, unit in self.units.items() if unit == JOULE]
        is_missing = (self.marks.only(meters) & int(Mark.MISSING)) > 0
        return np.asarray((~np.isnan(self.counters.only(meters)) & ~is_missing).any(axis=1))

    def energy_j(self) -> dict[str, float]:
        """What a meter covered -> its joules of all rows; left out where a row has no value, or a lower bound."""
        joules = {}
        for covers in (name for name, unit in self.units.items() if unit == JOULE):
            is_missing = (self.marks[covers] & int(Mark.MISSING)) > 0
            if not (is_missing | np.isnan(self.counters[covers])).any():
                joules[covers] = float(self.counters[covers].sum())
        return joules

    def marked(self, mark: Mark, where: Array) -> Launches:
        """The same launches with `mark` added to counters' marks where `where` is true, (n_kernels, n_counters)."""
        marks = self.marks.values | np.where(where, int(mark), 0).astype(np.int8)
        return replace(self, marks=Columns(self.marks.names, marks))

    def marked_by_part(self) -> Launches:
        """The same launches; counters are marked ESTIMATED where they were scaled up, MISSING where parts lack them."""
        is_scaled = self.counters.beside(RUNNING) < 100
        return self.marked(Mark.ESTIMATED, is_scaled).marked(Mark.MISSING, self.counters.beside(NOT_ALL) > 0)

    def chosen(self, rows: Array) -> Launches:
        """The joined rows, with their counters, where `rows` is true."""
        return replace(self, **{name: getattr(self, name).chosen(rows) for name in ("rows", "counters", "marks")})


def of_several_programs(commands: Iterable[str]) -> str | None:
    """A warning's phrase if logs' commands are of several programs, or of one with different arguments; else None.

    A command without arguments may be one whose arguments are not known.
    """
    whole = list(dict.fromkeys(" ".join(command.split()) for command in commands if command.strip()))
    names = [re.split(r"[/\\]", command.split()[0])[-1].partition("@")[0] for command in whole]
    programs = list(dict.fromkeys(names))
    detailed = [command for command in whole if " " in command]
    if len(programs) > 1:
        return f"{len(programs)} programs: {_listed(programs)}; their counts and times are added up or set side by side"
    if len(detailed) > 1:
        return f"{len(detailed)} commands: {_listed(detailed)}; what they counted and timed is taken for one program's"
    return None


def _listed(words: Sequence[str]) -> str:
    return few([f"`{cut(word, _SHOWN)}`" for word in words], _PROGRAMS)


def launch_part(start_ns: int, stream: object) -> str:
    """The name of the part that is a single launch: its start in ns and its stream, "1700000000 7"."""
    return f"{start_ns}{phrase(' {}', stream)}".rstrip()


def starts_and_streams(rows: TableRows) -> TableRows:
    """The rows of single launches with `start_ns` and `stream` as columns, taken from the names in `part`."""
    if rows.part is None:
        return rows
    labels = [text.partition(" ") for text in rows.part.names]
    # The last is for rows without a part.
    starts = np.array([*(int(start) for start, *_ in labels), UNKNOWN], dtype=np.int64)
    streams = Names.of([*(stream or None for *_, stream in labels), None])
    codes = rows.part.codes
    return replace(rows, part=None, start_ns=starts[codes], stream=streams.chosen(codes))


# ----------------------------------------------------------------------------------------------------------------------
# The least time without a kernel, by the calls of CUDA, where a summary tells these and no launches.

MOST = 0.8  # of a gap, that what explains it covers
MOST_TOLD = 5
# Calls that prepare what kernels need: the longest of them, where it is most of all, comes before these (assumed).
_PREPARES = pattern(
    r"^cu.*(?:Alloc(?!.*Async)|Malloc(?!.*Async)|HostRegister|CtxCreate|CtxRetain|Init$|SetDevice|Load)"
)


def idle_of_calls(
    calls: Iterable[HostCalls], kernels_s: float, copies_s: float, comes_again: bool = True
) -> Idle | None:
    """Idle time of a GPU by a summary's sums: of CUDA's calls, and of all kernels and all copies in s; None: none.

    In a thread calls follow each other, and kernels may run meanwhile: what calls took longer than kernels, the GPU was
    idle, and no less than what is paid once to prepare kernels, which come later. Calls of several threads may run
    beside each other: the longest call alone took as long as it did, and so did the longest range that the program
    names. comes_again: whether some kernel was launched more than once.
    """
    longest_first = sorted((call for call in calls if not call.is_range), key=lambda call: -call.time_s)
    ranges = sorted((call for call in calls if call.is_range), key=lambda call: -call.longest_s)
    prepared_s = sum(call.once_s for call in longest_first if _PREPARES.search(call.name))
    of_calls_s = max(sum(call.time_s for call in longest_first) - kernels_s, prepared_s)
    time_s = max([of_calls_s, *(each.longest_s - kernels_s for each in ranges)])
    if not time_s > 0 or not longest_first:
        return None
    copied_s = min(copies_s, time_s - prepared_s)
    once_s = min(sum(call.once_s for call in longest_first), time_s - copied_s)
    again: Iterable[During] = (During(call.name, call.number, call.time_s - call.once_s) for call in longest_first)
    beside = ranges[:1] * (of_calls_s < time_s)
    if beside:
        # The shortest range that has most of what calls leave open tells best where it passed.
        open_s = min(time_s - max(of_calls_s, 0.0), time_s - once_s - copied_s)
        inner = next(each for each in reversed(ranges) if each.longest_s >= MOST * ranges[0].longest_s)
        # In what the range leaves of the longest one kernels have room, but the first call, that starts CUDA, has none.
        rest_s = ranges[0].longest_s - inner.longest_s
        is_start = kernels_s <= rest_s < max(call.once_s for call in longest_first)
        if inner.number == 1 and (is_start or not comes_again):
            once_s += open_s
            beside = [*beside[inner == ranges[0] :], replace(inner, once_s=open_s)]
            open_s = 0.0
        again = chain(again, [During(inner.name, 1, open_s)])
    during = tuple(sorted(again, key=lambda each: -each.time_s)[:MOST_TOLD])
    told = *longest_first, *beside
    surely_s = max(max(call.longest_s for call in told) - kernels_s, 0.0)
    runs = max(call.runs for call in told)
    return Idle(time_s, 0.0, copied_s, copies_s, None, once_s, during, surely_s=surely_s, calls=told, runs=runs)
