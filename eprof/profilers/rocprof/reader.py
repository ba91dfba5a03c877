"""Reader of tables of AMD's profilers, CSV or drawn as text: rocprof, rocprofv3, Omniperf, rocprof-compute, rocpd.

A row is a launch with its counters, a launch with one of them, or a kernel with the sum of its times. Counters that
several runs of a launch counted stand side by side; its time is that of the first. A graphics die is a device.
"""

import csv
import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from decimal import Decimal
from io import StringIO
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

from eprof.base.errors import LogError
from eprof.base.gpus import UNNAMED
from eprof.base.optional import gathered
from eprof.base.resources import folder
from eprof.base.text import counted, pattern, when
from eprof.base.toml import Document
from eprof.logs import log
from eprof.logs.log import LACKS_ROWS, NOT_IN_TABLE, ON_TOTALS, UNKNOWN, Log, Names, Table, TableRows
from eprof.logs.stream import Source
from eprof.profilers.rocprof import COUNTED, DRAWN, HEADER, TIMED
from eprof.readers.cells import ENGLISH, Locale, ungrouped, unused_notes
from eprof.readers.gaps import Gaps
from eprof.readers.pytorch_trace import LATEST_NS

_TABLES = Document.read(folder("counters") / "rocprof" / "tables.toml").data
_COLUMNS, _SUMS_S, _MODELS = _TABLES["columns"], _TABLES["sums_s"], _TABLES["models"]
_MACHINE_CODE = pattern(r"(?:\.kd)?(?: \[clone \.kd\])?$")
_CALL = pattern(r"(?:__)?(?:hip[A-Z]|hsa_)\w+")  # of the host, in tables that look like those of kernels
_OF_HEADERS = frozenset(_COLUMNS["kernel"])
_FENCES = ("```", "~~~")
_OF_KERNELS = ("", "KERNEL_DISPATCH")  # domains; the others are of calls and copies
_BARRIER = "<barrier packet>"  # no kernel, though rocprof counts it among them
# Of hardware, without its channels, and what rocprof makes of these: totals, means of a wave, shares of the time.
_HARDWARE = r"(?:SQC?|TC[ACP]|TA|TD|GRBM|SPI|CP[CF]|GL[12]C|GCEA)_\w+"
_SHARE = pattern(r"[A-Za-z0-9]+(?:Busy|Stalled|Hit|Conflict|Utilization|Percent)")
_CHANNEL, _CHANNELS = pattern(r"\[\d+\]$"), "[]"
_COUNTER = pattern(
    rf"{_HARDWARE}(?:\[\d+\])?|(?:FETCH|WRITE)_SIZE|(?:Fetch|Write)Size|Wavefronts|\w+Insts|{_SHARE.pattern}"
)
_NANOSECONDS = pattern(r"[0-9]{1,19}(?:\.[0-9]{1,9})?")
_STAMPS, _TAIL_B = pattern(rb'\b([0-9]{9,19})"?,"?([0-9]{9,19})"?$'), 50
_STAMP = pattern(rb"\b[0-9]{9,19}\b")
_TRACE, _COUNTS = "kernel_trace.csv", "counter_collection.csv"  # of one run of rocprofv3, side by side
_OF_OMNIPERF = "Dispatch_ID"  # and of rocprofv2; rocprofv3 writes Dispatch_Id
_OF_A_WAVE, _OF_THE_GRID = "VALUInsts", "waves of the grid"  # a mean, and what it is the mean of
_HOUR_NS = 3600 * 10**9
_OF_MI300 = "TCC_BUBBLE_sum"
_NEARLY_ALL = 0.99  # percentages are rounded
_MOST_CALLS, _DIGITS, _MOST_FACTS = 10**12, 9, 100_000  # more are damage


class _Launch(Struct):
    """A launch of a kernel, or all its launches where a table has sums. NaN seconds: not told.

    gpu: its number; "" where the table tells none. share: of the time of all rows, in %. begins: when the launch began
    in the run that counted each counter.
    """

    kernel: str
    gpu: str
    number: int = 1
    time_s: float = math.nan
    start_ns: int = UNKNOWN
    ends_s: tuple[float, float] = (math.nan, math.nan)
    share: float = math.nan
    is_of_radeon: bool = False
    counters: dict[str, float] = field(default_factory=dict)
    begins: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: float, begin: str) -> None:
        """Add a channel's value to an AMD GPU's counter; those of a later run, which counts it again, are left out."""
        if self.begins.setdefault(name, begin) == begin:
            self.counters[name] = self.counters.get(name, 0.0) + value


def read(
    source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None = None, *_: object
) -> Log:
    """Read a table of AMD's profilers. `keep`: the counters that get a column. Raises LogError if it has no kernels."""
    text = DRAWN.sub(_without_blanks, b"".join(pieces))
    headers = list(HEADER.finditer(text))
    begin = min((header.start() for header in headers), default=0)
    written = text[begin:].decode("utf-8-sig", "replace").lstrip()
    rows = csv.DictReader(StringIO("".join(_in_csv(written))))
    launches: dict[tuple[str, ...], _Launch] = {}
    try:
        rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
        lost, is_inside, tables = _take(rows, launches)
    except csv.Error as err:
        raise LogError(
            f"{source.path}: line {rows.line_num} is damaged ({err}); give the table as it was written"
        ) from err
    _check(source, [launch for launch in launches.values() if launch.kernel != _BARRIER])
    runs = gathered((run, launch.kernel) for (run, *_), launch in launches.items())
    of_calls = {run for run, own in runs.items() if all(map(_CALL.fullmatch, own))}
    launches = {key: launch for key, launch in launches.items() if key[0] not in of_calls}
    rest = _left_out(launches)
    launches = rest | {key: launch for key, launch in launches.items() if launch.kernel != _BARRIER}
    # Counters that were added up over channels are NAME_sum, unless the log has that, too.
    for counters in (launch.counters for launch in launches.values()):
        for name in [name for name in counters if name.endswith(_CHANNELS)]:
            counters.setdefault(f"{name.removesuffix(_CHANNELS)}_sum", counters.pop(name))
    seen = dict.fromkeys(name for launch in launches.values() for name in launch.counters)
    gpu = _device(source.path)
    if "MI300" not in gpu and not any(launch.counters.get(_OF_MI300) for launch in launches.values()):
        seen.pop(_OF_MI300, None)  # later GPUs have no such reads, and count others
    names = {name for name in seen if keep is None or name in keep}
    notes = [*source.notes, *unused_notes(seen, keep or seen)]
    if names and not any(launch.counters.get(name) for launch in launches.values() for name in names):
        names.clear()
        notes.append("all counters are 0, as where rocprofv3 cannot count at changing clocks, so they are not known")
    if of_calls:
        notes.append("a table of calls of the host stands beside that of kernels, and is left out")
    if rest:
        notes.append(LACKS_ROWS)
    if lost:
        notes.append(f"{ON_TOTALS}{counted(lost, 'row was', 'rows were')} left out, whose cells do not fit the header")
    if len(headers) > tables:
        notes.append(f"{ON_TOTALS}other tables below the first are not read; make each a file of its own")
    if launches and all(launch.is_of_radeon for launch in launches.values()):
        notes.append(log.OF_RADEON)
    # Where the numbers of a process's launches jump, others ran.
    numbers = gathered(((run, process), int(number)) for run, process, number in launches if number.isdecimal())
    is_whole = all(max(own) - min(own) < len(own) for own in numbers.values())
    lost_gaps = when(not is_whole, "launches between those of the table are not in it")
    if not lost_gaps and not seen:
        lost_gaps = _serialised_by(source.path, rows.fieldnames or (), text)
    if lost_gaps:
        notes.append(f"{lost_gaps}, so nothing tells when no kernel ran")
    # The last time of a table that is whole, and has no line end, has as many digits as the one before.
    stamps = _STAMPS.search(text[-_TAIL_B:])
    has_end = text.endswith((b"\n", b"\r")) or stamps is not None and len(stamps[1]) == len(stamps[2])
    is_cut = lost > 0 or not (is_inside or has_end)
    kind = COUNTED if seen else TIMED  # also where nobody has a use for what slowed the launches down
    table, gaps = _table(launches, names, gpu, kind, is_cut, not lost_gaps)
    return source.log([table], notes, lines=rows.line_num, idle=gaps.idle, copies=gaps.copies)


def _without_blanks(drawn: re.Match[bytes]) -> bytes:
    """Turn a summary of kernels that rocpd drew as text, blanks between cells, into CSV; names have blanks, too."""
    header, *rows = drawn[0].strip().split(b"\n")[1:]
    names = [name.strip() for name in header.split(b"  ") if name.strip()]
    cells = [names, *(row.strip().rsplit(None, len(names) - 1) for row in rows)]
    return b"\n" + b"".join(b",".join(b'"%b"' % cell.replace(b'"', b'""') for cell in row) + b"\n" for row in cells)


def _in_csv(text: str) -> Iterator[str]:
    """An AMD table's lines; those with bars as CSV, numbers without groups of digits; empty lines as a blank cell."""
    lines = text.splitlines(keepends=True)
    barred = [place for place, line in enumerate(lines) if line.lstrip().startswith("|")]
    cells = {place: [cell.strip() for cell in lines[place].strip().strip("|").split("|")] for place in barred}
    locale = Locale()
    for own in cells.values():
        locale.look(map(ungrouped, own), repeat(False, len(own)))
    group, point = next(iter(locale.proof), ENGLISH)
    for place, line in enumerate(lines):
        if place in cells:
            numbers = [ungrouped(cell).replace(group, "").replace(point, ".") for cell in cells[place]]
            pairs = zip(cells[place], numbers, strict=True)
            own = [(cell if math.isnan(_number(number)) else number).replace('"', '""') for cell, number in pairs]
            line = ",".join(f'"{cell}"' for cell in own) + "\n"
        yield line if line.strip() else " \n"


def _take(rows: "csv.DictReader[str]", launches: dict[tuple[str, ...], _Launch]) -> tuple[int, bool, int]:
    """Put the launches in rows of a table of AMD's profilers into `launches`, by run, process and number.

    The table ends at a fence of Markdown, and at the header of another. A row that does not fit the header is lost if
    it stands right below that or a row, or anywhere above one; else it is of something else.
    Returned: how many rows are lost, whether lines of text that the table stands in follow it, and how many were read.
    """
    lost, unsure, run, lines_of_text, is_open = 0, 0, 0, 0, True
    for number, read_row in enumerate(rows):
        lines_of_text += 1
        cells = [cell for cell in (*read_row.values(), *(read_row.get(None) or ())) if isinstance(cell, str)]
        if all(math.isnan(_number(cell)) for cell in cells):
            if not _OF_HEADERS.isdisjoint(map(str.strip, cells)):
                # The header again, as of tables of several runs below each other, or that of another table.
                is_open = [cell.strip() for cell in cells] == list(read_row)
                run, unsure, lines_of_text = run + is_open, 0, 0
            is_open = is_open and not cells[0].lstrip().startswith(_FENCES)
        elif is_open:
            row = _with_whole_name(read_row)
            tells_calls = row.keys().isdisjoint(_SUMS_S) or 1 <= _number(_cell(row, "calls")) < _MOST_CALLS
            fits = tells_calls and None not in row and None not in row.values()
            unsure += not fits
            if fits or lines_of_text == 1:
                lost, unsure, lines_of_text = lost + unsure, 0, 0
            if fits and (kernel := _cell(row, "kernel")) and _cell(row, "domain") in _OF_KERNELS:
                key = (str(run), _cell(row, "process"), _cell(row, "launch") or f"row {number}")
                if _cell(row, "domain"):  # a summary by domain tells the same kernels again in that of all domains
                    key = ("", "", " ".join(row.values()))
                launch = launches.get(key) or launches.setdefault(key, _launch(kernel, row))
                for name, value in _counters(row):
                    launch.add(name, value, _cell(row, "begin"))
    return lost, lines_of_text > 1 or not is_open, run + 1


def _left_out(launches: Mapping[tuple[str, ...], _Launch]) -> dict[tuple[str, ...], _Launch]:
    """The rest of each run in an AMD table whose rows are not all of the time by their percentages, as after `head`.

    How many launches took it is not told, so it counts as one.
    """
    rest: dict[tuple[str, ...], _Launch] = {}
    for run, own in gathered((run, launch) for (run, *_), launch in launches.items()).items():
        share = sum(launch.share for launch in own) / 100
        if 0 < share < _NEARLY_ALL:
            rest[run, "", ""] = _Launch(NOT_IN_TABLE, "", 1, sum(launch.time_s for launch in own) * (1 / share - 1))
    return rest


def _with_whole_name(row: dict[str | Any, str | Any]) -> dict[str | Any, str | Any]:
    """The row of an AMD table, its kernel's name joined where that has commas, no quotes, and numbers behind it."""
    if None not in row:
        return row
    columns = [column for column in row if column is not None]
    place = next((place for place, column in enumerate(columns) if column in _COLUMNS["kernel"]), 0)
    cells = [*(row[column] for column in columns), *row[None]]
    end = place + 1 + len(row[None])
    name = ",".join(cells[place:end])
    is_name = name.count("(") == name.count(")") and math.isnan(_number(cells[end - 1]))
    if not is_name or any(math.isnan(_number(cell)) for cell in cells[end:]):
        return row
    return dict(zip(columns, [*cells[:place], name, *cells[end:]], strict=True))


def _check(source: Source, launches: Collection[_Launch]) -> None:
    """Raises LogError if a table of AMD's profilers has no kernels, or only calls of the host."""
    if not launches:
        raise LogError(f"{source.path}: no kernel ran, or none that was asked for; profile again without a filter")
    if all(_CALL.fullmatch(launch.kernel) for launch in launches):
        longest = max(launches, key=lambda launch: np.nan_to_num(launch.time_s, nan=-math.inf))
        raise LogError(
            f"{source.path}: these are calls of the host (most time is in {longest.kernel}), and no kernels; give "
            "results.stats.csv or results.csv, which rocprof writes beside it"
        )


def _cell(row: Mapping[str, str], what: str) -> str:
    """The first filled cell of an AMD table's row whose column means `what`, by tables.toml; "" without one."""
    return next((row[name].strip() for name in _COLUMNS[what] if row.get(name)), "")


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _launch(kernel: str, row: Mapping[str, str]) -> _Launch:
    """The launch, or a kernel's launches, in a row of an AMD table. Times that a spreadsheet rounded are NaN."""
    launch = _Launch(_MACHINE_CODE.sub("", kernel), "".join(filter(str.isdecimal, _cell(row, "gpu")))[:_DIGITS])
    launch.is_of_radeon = _cell(row, "wave") == "32" or _cell(row, "scalars") == "128"
    if unit := next(iter(_SUMS_S.keys() & row.keys()), None):
        launch.number, total_s = int(_number(_cell(row, "calls"))), _number(row[unit]) * _SUMS_S[unit]
        if 0 < total_s < math.inf:
            launch.time_s = total_s
        launch.share = _number(_cell(row, "share"))
        launch.ends_s = (_number(_cell(row, "least_ns")) * 1e-9, _number(_cell(row, "most_ns")) * 1e-9)
        return launch
    begin, end = _cell(row, "begin"), _cell(row, "end")
    if not end:
        launch.time_s = _number(_cell(row, "duration_ns")) * 1e-9
    elif _NANOSECONDS.fullmatch(begin) and _NANOSECONDS.fullmatch(end):
        # A float holds those of a long uptime to 2 ns, of a date to 256.
        begin_ns, end_ns = Decimal(begin), Decimal(end)
        if begin_ns < end_ns < (LATEST_NS if begin_ns else _HOUR_NS):  # 0: rocprofv2 does not know when it began
            launch.start_ns, launch.time_s = int(begin_ns), float(end_ns - begin_ns) * 1e-9
    return launch


def _counters(row: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yields name and value of the counters in a row of an AMD table; all channels of a counter have the same name."""
    pairs: Iterable[tuple[str, str]] = row.items()
    if _number(row.get(_OF_A_WAVE)) > 0 and not math.isnan(waves := _waves(row)):
        yield _OF_THE_GRID, waves
    if counter := _cell(row, "counter"):
        pairs = [(counter, _cell(row, "count"))]
    for name, text in pairs:
        if _COUNTER.fullmatch(name) and 0 <= (value := _number(text)) < math.inf:
            yield _CHANNEL.sub(_CHANNELS, name), value


def _waves(row: Mapping[str, str]) -> float:
    """The waves that a launch begins by the work-items of its grid; NaN where a table of AMD's profilers lacks sizes.

    rocprof's own count of waves may be that of other kernels, too; it was seen twice as large.
    """
    items, group, wave = (_number(_cell(row, size)) for size in ("items", "group", "wave"))
    if not (1 <= wave <= group <= items < math.inf):
        return math.nan
    return math.ceil(items / group) * math.ceil(group / wave)


def _unit(counter: str) -> str:
    """The unit of a counter of rocprof's by its name: a share of the time, a mean of a wave, else a count."""
    if _SHARE.fullmatch(counter):
        return log.PERCENT
    if counter.endswith("Insts"):  # means of a wave
        return log.OTHER
    return log.COUNT


def _serialised_by(path: str, columns: Collection[str], text: bytes) -> str:
    """Why AMD's profiler may have begun launches only after the one before had ended, as for counters; else ""."""
    if _OF_OMNIPERF in columns:
        return "Omniperf and rocprofv2 may start each kernel when the one before has ended"
    beside = Path(path).with_name(Path(path).name.replace(_TRACE, _COUNTS))
    if not path.endswith(_TRACE) or not beside.is_file():
        return ""
    with beside.open("rb") as handle:
        stamps = set(_STAMP.findall(handle.read(_MOST_FACTS)))
    return when(stamps & set(_STAMP.findall(text)), f"{beside.name} was counted in the same run")


def _device(path: str) -> str:
    """The GPU that Omniperf's sysinfo.csv beside a table names; `UNNAMED` where there is none."""
    beside = Path(path).with_name("sysinfo.csv")
    if not Path(path).name.startswith(("pmc_perf", "timestamps")) or not beside.is_file():
        return UNNAMED
    with beside.open(newline="", encoding="utf-8", errors="replace") as handle:
        facts = handle.read(_MOST_FACTS).splitlines()
    model = (next(csv.DictReader(facts), {}).get("gpu_model") or "").partition("_")[0]
    return f"AMD Instinct {_MODELS.get(model, model)}" if model else UNNAMED


def _table(
    by_run: Mapping[tuple[str, ...], _Launch], names: set[str], gpu: str, kind: str, is_cut: bool, has_gaps: bool
) -> tuple[Table, Gaps]:
    """(`Table`, gaps) of launches that AMD's profilers tell. by_run: their keys begin with the number of a run."""
    launches = list(by_run.values())
    # Where nothing tells of any GPU, as in sums, it is that of the tables beside it.
    is_told = gpu != UNNAMED or any(launch.gpu for launch in launches)
    devices = Names.of(f"{gpu} ({launch.gpu or 0})" if is_told else None for launch in launches)
    kernels = Names.of(launch.kernel for launch in launches)
    starts = np.array([launch.start_ns for launch in launches], dtype=np.int64)
    rows = TableRows.of(
        devices,
        kernels,
        [launch.number for launch in launches],
        [launch.time_s for launch in launches],
        run=np.array([int(run or 0) for run, *_ in by_run]),
        least_s=np.array([launch.ends_s[0] for launch in launches]),
        most_s=np.array([launch.ends_s[1] for launch in launches]),
    )
    gaps = Gaps()
    if has_gaps and kind == TIMED and (starts != UNKNOWN).all():
        gaps.add(devices, kernels, starts, (1e9 * rows.time_s).round().astype(np.int64))
    amounts = [
        {name: (value, _unit(name)) for name, value in launch.counters.items() if name in names} for launch in launches
    ]
    return Table.of_amounts(kind, rows, amounts, lacks_rows=is_cut), gaps
