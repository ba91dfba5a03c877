"""Reader of the databases that `nsys export --type sqlite` and `nsys stats` make of a report: times of kernels.

Only the table of kernels is added up. It is joined by numbers that are unique (StringIds, devices); by `correlationId`,
of which a launch may have two rows among the API calls, only the range of a launch is looked up.
"""

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Ints
from eprof.base.errors import LogError
from eprof.base.gpus import UNNAMED
from eprof.base.optional import either, mapped, only
from eprof.base.text import counted, when
from eprof.logs.log import LAUNCH, NO_RANGE, RANGES, WHOLE_GRAPH, Log, Names
from eprof.logs.stream import Source
from eprof.nvidia import KIND
from eprof.nvidia.tables import DATABASE, VERSION, Timed, table_of
from eprof.readers.cells import no_kernels
from eprof.readers.gaps import Gaps

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
STRINGS = "StringIds"  # which only databases of nsys have
_GPUS, _ORDINALS = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
_CAPTURE, _PROCESSES, _DIAGNOSTICS = "META_DATA_CAPTURE", "PROCESSES", "DIAGNOSTIC_EVENT"
_COPIES = {"CUPTI_ACTIVITY_KIND_MEMCPY": "copies", "CUPTI_ACTIVITY_KIND_MEMSET": "memsets"}
_WAYS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP", 11: "unified HtoD", 12: "unified DtoH", 13: "unified DtoD"}
_MEMORIES = {0: "pageable", 1: "pinned", 4: "managed", 6: "managed"}
# What the CPU does, the outer kind first, and the column that numbers its name.
_RANGES, _CALLS = "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"
_OF_THE_CPU = {_RANGES: "textId", _CALLS: "nameId"}
_PUSH_POP = 59  # an event type of NVTX
_ROWS = 1 << 16  # that are held as Python's numbers
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_NAMES = ("demangledName", "shortName", "mangledName")  # the best first
_NO_NAME = "(a kernel without name)"
_PID = "(globalPid >> 24) & 16777215"  # the process number in nsys's globalPid
_TIMED = "typeof({0}.start) = 'integer' and typeof({0}.end) = 'integer' and {0}.end >= {0}.start and {0}.end > 0"
_LOST = "Not all CUDA events might have been collected"
_NO_KERNELS = (
    "the export of Nsight Systems holds no kernels; see that the program launches kernels on the GPU, and that nsys "
    "traces them (`nsys profile --trace=cuda`)"
)


class _Database(Struct):
    """nsys's database. columns: table -> its columns."""

    connection: sqlite3.Connection
    columns: dict[str, set[str]]

    def has(self, table: str, *columns: str) -> bool:
        """Whether nsys's database has a table with these columns."""
        return table in self.columns and self.columns[table] >= set(columns)

    def column(self, table: str, name: str, of: str) -> str:
        """SQL for a column of a table, "null" if the table has no such column. of: the table's alias."""
        return when(self.has(table, name), f"{of}.{name}") or "null"


def read(source: Source, connection: sqlite3.Connection, tables: Iterable[str], parts: str | None = None) -> Log:
    """Read an SQLite export of nsys. parts: "stream" or LAUNCH, by which the launches of a kernel are split.

    Raises LogError, one sentence, if it tells no kernels; sqlite3.Error if the database is damaged.
    """
    quoted = {table: table.replace('"', '""') for table in tables}
    database = _Database(
        connection,
        {
            table: {str(row[1]) for row in connection.execute(f'pragma table_info("{name}")')}
            for table, name in quoted.items()
        },
    )
    if not database.has(KERNELS, "start", "end", "deviceId"):
        raise LogError(f"{source.path}: {_NO_KERNELS}")
    kernels = list(_kernels(database, parts))
    if not kernels:
        raise LogError(f"{source.path}: {_NO_KERNELS}")
    pids: list[object] = []
    if database.has(KERNELS, "globalPid"):
        pids = [pid for (pid,) in connection.execute(f"select distinct {_PID} from {KERNELS}")]
    gaps = _gaps(database)
    gaps.began_ns = 0
    return source.log(
        [table_of(kernels, DATABASE, parts)],
        [*source.notes, *_notes(database, kernels, len(pids))],
        format_=KIND,
        command=_command(database, pids),
        runs=max(1, len(pids)),
        idle=gaps.idle if len(pids) < 2 else None,
        copies_s=sum(seconds for _, _, seconds in _copies(database)),
        copies=gaps.copies,
    )


def gaps_of(
    connection: sqlite3.Connection, kernels: Mapping[str, str], copies: Iterable[str], memories: Mapping[int, str]
) -> Gaps:
    """The gaps between the kernels in a database of CUPTI's tables, with the copies and memsets in them.

    kernels: tables, and the columns of names in them. memories: what numbers call the kinds of memory. A kernel without
    a time leaves the gaps open.
    """
    gaps = Gaps()
    whole = "ifnull(cast({} as integer), 0)"
    rows = "select iif({0}, {1}.start, 0) start, iif({0}, {1}.end - {1}.start, -1) ns, " + whole.format("deviceId")
    parts = [
        f"{rows.format(_TIMED.format(table), table)}, {whole.format(name)}, 1, null from {table}"
        for table, name in kernels.items()
    ]
    for table in copies:
        timed = _TIMED.format(table)
        columns = {str(row[1]) for row in connection.execute(f"pragma table_info({table})")}
        if {"start", "end", "deviceId"} <= columns:
            way, size = "''", "null"
            if {"copyKind", "srcKind", "dstKind", "bytes"} <= columns:
                words = _case("copyKind", _WAYS), *(_case(f"{end}Kind", memories) for end in ("src", "dst"))
                way, size = " || ' ' || ".join(words), "bytes"
            parts.append(f"{rows.format(timed, table)}, {way}, 0, {size} from {table} where {timed}")
    cursor = connection.execute(f"{' union all '.join(parts)} order by start")
    while held := cursor.fetchmany(_ROWS):
        starts, ns, devices, names, is_kernel, size_b = zip(*held, strict=True)
        launched = Names.of(map(str, devices)), Names.of(map(str, names)), np.array(starts), np.array(ns)
        gaps.add(*launched, is_kernel=np.array(is_kernel, dtype=bool), size_b=np.array(size_b, dtype=np.float64))
    return gaps


def _case(column: str, words: Mapping[int, str]) -> str:
    """SQL that gives the word for each number in a column; '' for other numbers."""
    return " ".join([f"case {column}", *(f"when {key} then '{word}'" for key, word in words.items()), "else '' end"])


def _gaps(database: _Database) -> Gaps:
    """The gaps between kernels in nsys's database, with what the CPU did meanwhile."""
    name = ", ".join(column for column in _NAMES if database.has(KERNELS, column)) or "null"
    kernels = {KERNELS: f"coalesce({name}, 0, 0)"}
    if database.has(_GRAPHS, "start", "end", "deviceId"):
        kernels[_GRAPHS] = "-1"  # a graph that is traced as a whole runs as one kernel
    gaps = gaps_of(database.connection, kernels, _COPIES.keys() & database.columns, _MEMORIES)
    for table in _OF_THE_CPU:
        gaps.explain(*_of_the_cpu(database, table, gaps.shortest_ns))
    if not gaps.paths:
        gaps.add_up(*_of_the_cpu(database, _RANGES, gaps.least_ns))
    return gaps


def _of_the_cpu(database: _Database, table: str, least_ns: int) -> tuple[Names, Ints, Ints]:
    """(Names, starts, ends in ns) of what lasted `least_ns` on the CPU, in a table of nsys's database, if any."""
    rows: list[tuple[object, int, int]] = []
    column = _OF_THE_CPU[table]
    if database.has(table, "start", "end", column) and database.has(STRINGS, "id", "value"):
        own = database.column(table, "text", "t")
        rows = database.connection.execute(
            f"select coalesce({own}, s.value), t.start, t.end from {table} t left join {STRINGS} s "
            f"on s.id = t.{column} where {_TIMED.format('t')} and t.end - t.start >= ?",
            [least_ns],
        ).fetchall()
    names, starts, ends = list(zip(*rows, strict=True)) or ((), (), ())
    shown = Names.of(VERSION.sub("", _text(name)) or None for name in names)
    return shown, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def _kernels(database: _Database, parts: str | None) -> Iterable[Timed]:
    """The launches in nsys's database, summed by kernel, device and part (as `parts` asks); untimed ones apart."""
    pid, part = _process_and_part(database, KERNELS, parts)
    timed = _TIMED.format("k")
    if parts in RANGES and (range_of := _range_of_launches(database)):
        database.connection.create_function(
            "range_of", 2, lambda process, correlation: range_of.get((process, correlation), NO_RANGE)
        )
        part = "range_of(k.globalPid >> 24, k.correlationId)"
    named = [column for column in _NAMES if database.has(KERNELS, column)]
    ids = ", ".join(f"k.{column} {column}" for column in named) or "null"
    groups = ", ".join(str(number) for number in range(1, max(1, len(named)) + 5))
    name = "null"
    if database.has(STRINGS, "id", "value"):  # the best of its names that stands there
        texts = [f"(select s.value from {STRINGS} s where s.id = {column})" for column in named]
        name = f"coalesce({', '.join([*texts, 'null', 'null'])})"
    # Names are looked up for each group, not for each launch: StringIds may have no index.
    rows = database.connection.execute(
        f"select {name}, number, process, part, is_timed, launches, ns from ("
        f"select {ids}, k.deviceId number, {pid} process, {part} part, {timed} is_timed, count(*) launches, "
        f"sum(case when {timed} then k.end - k.start end) ns, min(k.rowid) first "
        f"from {KERNELS} k group by {groups}) order by first"
    ).fetchall()
    if database.has(_GRAPHS, "start", "end", "deviceId"):
        graph_pid, graph_part = _process_and_part(database, _GRAPHS, parts)
        rows += database.connection.execute(
            f"select '{WHOLE_GRAPH}', k.deviceId, {graph_pid}, {graph_part}, 1, count(*), sum(k.end - k.start) "
            f"from {_GRAPHS} k where {timed} group by 2, 3, 4"
        ).fetchall()
    device_of = _devices(database, [(number, process) for _, number, process, *_ in rows])
    added: dict[tuple[str, str | None, str | None, int], list[float]] = {}
    for text, number, process, place, is_timed, launches, ns in rows:
        key = (_text(text) or _NO_NAME, device_of[number, process], mapped(str, place), is_timed)
        sums = added.setdefault(key, [0, 0])
        sums[0] += launches
        sums[1] += either(ns, math.nan)
    for (kernel, device, place, _), (launches, ns) in added.items():
        yield Timed(kernel, device, int(launches), ns * 1e-9, place)


def _process_and_part(database: _Database, table: str, parts: str | None) -> tuple[str, str]:
    """SQL for (the process of a launch, its part as `parts` asks for it); the table's alias is k."""
    pid = _PID.replace("globalPid", "k.globalPid") if database.has(table, "globalPid") else "0"
    stream = database.column(table, "streamId", "k")
    launch = f"case when {_TIMED.format('k')} then k.start || coalesce(' ' || {stream}, '') end"
    return pid, {"stream": stream, LAUNCH: launch}.get(parts or "", "null")


def _range_of_launches(database: _Database) -> dict[tuple[int, int], str]:
    """(Process, correlation number) of a launch -> the innermost NVTX push/pop range around it; {}: not told."""
    has_id = database.has(_RANGES, "textId")
    if not (
        database.has(_RANGES, "start", "end", "eventType", "globalTid")
        and database.has(_CALLS, "start", "globalTid", "correlationId")
        and database.has(KERNELS, "globalPid", "correlationId")
    ):
        return {}
    own = database.column(_RANGES, "text", "t")
    of_strings = when(has_id, f"(select value from {STRINGS} where id = textId)") or "null"
    rows = database.connection.execute(
        f"select globalTid, start, 0, end, coalesce({own}, {of_strings}) from {_RANGES} t "
        f"where eventType = {_PUSH_POP} and {_TIMED.format('t')} union all "
        # Of a launch that has two rows, the outer one.
        f"select globalTid, min(start), 1, correlationId, null from {_CALLS} "
        f"where correlationId in (select correlationId from {KERNELS}) group by globalTid, correlationId "
        "order by 1, 2, 3, 4 desc"
    )
    range_of: dict[tuple[int, int], str] = {}
    thread = None
    around: list[tuple[int, str]] = []
    for its_thread, start, is_call, number, name in rows:
        if its_thread != thread:
            thread, around = its_thread, []
        while around and around[-1][0] < start:
            around.pop()
        if not is_call:
            around.append((number, _text(name)))
        elif around:
            range_of[its_thread >> 24, number] = around[-1][1]
    return range_of


def _devices(database: _Database, seen: Iterable[tuple[object, object]]) -> dict[tuple[object, object], str | None]:
    """(Number, process) -> the device's label as nsys prints it, "NVIDIA A100 (0)"; None: the only GPU, without name.

    A process numbers the devices that it sees. Where the export tells which they are, two processes may have two GPUs
    with the same number: these are then labelled with the numbers of the machine.
    """
    pairs = list(dict.fromkeys(seen))
    place: dict[tuple[object, object], object] = {}
    if database.has(_ORDINALS, "gpuId", "cudaId", "pid"):
        rows = database.connection.execute(f"select cudaId, pid, gpuId from {_ORDINALS}")
        place = {(ordinal, process): gpu for ordinal, process, gpu in rows}
    several: dict[object, set[str]] = {}
    if database.has(_GPUS, "id", "name"):
        for number, name in database.connection.execute(f"select id, name from {_GPUS}"):
            several.setdefault(number, set()).add(_text(name))
    names = {number: only(own) for number, own in several.items()}  # None: several names share a number
    gpu_of = {pair: place.get(pair, pair[0]) for pair in pairs}
    numbers = {pair: pair[0] for pair in pairs}
    if len(set(gpu_of.values())) > len(set(numbers.values())):
        numbers = gpu_of
    if all(name is None for name in names.values()) and len(set(numbers.values())) == 1:
        return dict.fromkeys(pairs)
    return {pair: f"{names.get(gpu_of[pair]) or UNNAMED} ({numbers[pair]})" for pair in pairs}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _command(database: _Database, pids: list[object]) -> str | None:
    """The command line that nsys traced, else the name of the only process; None: not told."""
    if database.has(_CAPTURE, "name", "value"):
        query = f"select name, value from {_CAPTURE} where name like 'PROCESS_0:%'"
        settings = dict(database.connection.execute(query))
        words = [settings.get("PROCESS_0:COMMAND")]
        words += [settings.get(f"PROCESS_0:ARGUMENT_{number}") for number in range(len(settings))]
        if words[0]:
            return " ".join(word for word in words if isinstance(word, str))
    if len(pids) == 1 and database.has(_PROCESSES, "pid", "name"):
        named = database.connection.execute(f"select name from {_PROCESSES} where pid = ?", pids).fetchall()
        if len(named) == 1:
            return _text(named[0][0]) or None
    return None


def _notes(database: _Database, kernels: list[Timed], processes: int) -> Iterable[str]:
    """Notes on nsys's database: launches without time or lost, whole graphs, copies, several processes."""
    lost = sum(kernel.launches for kernel in kernels if math.isnan(kernel.time_s))
    if lost:
        yield f"{counted(lost, 'launch of kernels has', 'launches of kernels have')} no readable time"
    if database.has(_DIAGNOSTICS, "text"):
        query = f"select 1 from {_DIAGNOSTICS} where text like '{_LOST}%' limit 1"
        if database.connection.execute(query).fetchone():
            yield f"nsys says: {_LOST}; launches may be missing"
    if database.has(_GRAPHS, "start", "end"):
        number, seconds = _sum(database, _GRAPHS)
        if number:
            yield (
                f"{counted(number, 'launch of CUDA graphs is', 'launches of CUDA graphs are')} traced as a whole "
                f"({seconds * 1e3:.6g} ms): their kernels "
                f"are together {WHOLE_GRAPH}; trace with `nsys profile --cuda-graph-trace=node`"
            )
    if others := list(_copies(database)):
        yield no_kernels(others)
    if processes > 1:
        yield (
            f"{processes} processes launched kernels, each of which may call another GPU number 0: how long none ran "
            "is not told; trace one process, or make a report a rank"
        )


def _copies(database: _Database) -> Iterator[tuple[str, int, float]]:
    """("copies" or "memsets", how many, s in all) in nsys's database."""
    for table, noun in _COPIES.items():
        if database.has(table, "start", "end"):
            number, seconds = _sum(database, table)
            if number:
                yield noun, number, seconds


def _sum(database: _Database, table: str) -> tuple[int, float]:
    """(The number of rows of a table in nsys's database, the s that those with a time took together)."""
    number, ns = database.connection.execute(
        f"select count(*), total(case when {_TIMED.format('t')} then t.end - t.start end) from {table} t"
    ).fetchone()
    return number, ns * 1e-9
