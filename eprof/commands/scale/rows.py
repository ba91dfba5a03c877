"""Tables of runs, whatever wrote them, as rows of the quantities that `counters/runs.toml` finds in their columns."""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from eprof.base.errors import LogError
from eprof.base.resources import folder, log_content
from eprof.base.resources import lines as lines_of
from eprof.base.text import listed, pattern
from eprof.base.toml import Document

JOB = "job"
_NEEDED = ("processes", "time_s")
_ASK = "sacct -P -o JobID,JobName,NNodes,ElapsedRaw,ConsumedEnergyRaw,ReqCPUFreq,State"
_MOST_BYTES = 64 << 20
_MOST = 1e18
_DEEPEST = 6
_SEPARATORS = "|,;\t"
_RULE = pattern(r"[\s|:-]*")
_NUMBER = pattern(r"(?=[.:+_-]*\d)[\d.:+_-]+")
_NUMERAL = r"([+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?)"
_TIME, _CLOCK = "time (days-hours:minutes:seconds)", "clock in kHz"
# How columns are written, in the words of `counters/runs.toml`.
_FORMS = {
    "text": pattern(r"(?!)()()"),
    "number": pattern(_NUMERAL + "()"),
    "number with K, M, G": pattern(_NUMERAL + "([KkMmGgTtPp]?)"),
    _TIME: pattern(r"(?:(?:(\d{1,6})-)?(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:\.\d{1,9})?)"),
    _CLOCK: pattern(_NUMERAL + "([KkMmGg]?)"),
}
_POWERS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_LEAST_MHZ = 100  # of a processor's clock


class Row(Struct, frozen=True):
    """A row of a table of runs. cells: by the names of their columns, in small letters."""

    where: str
    cells: Mapping[str, str]

    def has(self, quantity: str) -> bool:
        """Whether a table of runs has a column for a quantity."""
        return any(name in self.cells for name in _meaning()["column"][quantity])

    @property
    def is_whole(self) -> bool:
        """Whether a run came to its end, as far as its row tells: a state that is cut off is none that is known."""
        return not self.has("state") or self.text("state").upper() in _meaning()["states"]["whole"]

    def text(self, quantity: str) -> str:
        """What is written of a quantity, in the first of its columns that is not empty."""
        return next((text for name in _meaning()["column"][quantity] if (text := self.cells.get(name, ""))), "")

    def number(self, quantity: str) -> float | None:
        """The value of a quantity, SI units and MHz, of the first column that knows it. Raises LogError: no number."""
        unknown = _meaning()["unknown"]
        for name, how in _meaning()["column"][quantity].items():
            text = self.cells.get(name, "")
            number = _value(text, how)
            if not text or text.lower() in unknown["texts"] or number in unknown["numbers"]:
                continue
            if not 0 <= number < _MOST:
                raise LogError(f"{self.where}: {quantity} is `{text[:40]}`, which is no {how} from 0 on.")
            return number
        return None


@lru_cache
def _meaning() -> dict[str, dict[str, Any]]:
    data = Document.read(folder("counters") / "runs.toml").data
    columns = {quantity: {name.lower(): how for name, how in each.items()} for quantity, each in data["column"].items()}
    unknown = data["unknown"] | {"numbers": [float(number) for number in data["unknown"]["numbers"]]}
    return data | {"column": columns, "unknown": unknown}


def _value(text: str, how: str) -> float:
    """A number as it is written in a column; NaN where it is none, 0 for a clock that a governor chooses."""
    match = _FORMS[how].fullmatch(text)
    if match is None:
        return 0.0 if how == _CLOCK else math.nan
    if how == _TIME:
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    number = float(match[1]) * _POWERS[(match[2] or "").lower()]
    if how != _CLOCK:
        return number
    # Bare kHz; "2.40G" counts Hz, "2.40M" of older versions kHz.
    mhz = number / (1e6 if match[2] else 1e3)
    return mhz * 1e3 if match[2] and mhz < _LEAST_MHZ else mhz


# ---- files


def is_accounting(path: str) -> bool:
    """Whether a file is what `sacct --json` prints."""
    return path.endswith(".json") and Path(path).is_file() and _accounted(log_content(path, _MOST_BYTES)) is not None


def read(path: str, notes: list[str]) -> list[Row]:
    """The rows of a table of runs: separated, of fixed width below a line of dashes, or printed by `sacct --json`.

    Raises LogError with file and line.
    """
    content = log_content(path, _MOST_BYTES)
    jobs = _accounted(content)
    if jobs is not None:
        return [Row(f"{path}: job {cells['jobid']}", cells) for job in jobs for cells in _of_job(job)]
    if content[-1:] not in (b"\n", b"\r", b""):
        notes.append(f"{path}: its last line has no end; if the table was cut off there, its last cell is not whole.")
    return _of_lines(path, lines_of(content), notes)


def _of_lines(path: str, lines: Sequence[str], notes: list[str]) -> list[Row]:
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not filled:
        raise LogError(
            f"{path}: is empty; runs are a table with a header: program,size,processes,core_mhz,time_s,energy_j."
        )
    (first, header), *rest = filled
    split = _splitting(header, rest[0][1] if rest else "")
    try:
        names = [name.lower() for name in split(header)]
        table = [(number, split(line)) for number, line in rest if not _RULE.fullmatch(line)]
    except csv.Error as err:
        raise LogError(f"{path}: is no table ({err}).") from err
    lacks = [key for key in _NEEDED if not any(name in names for name in _meaning()["column"][key])]
    if lacks:
        what = f"no column {listed(lacks, 'or')} in the header"
        if any(_NUMBER.fullmatch(word) for name in names for word in name.split()):
            what = "the first line is a row and no header (sacct: leave out -n)"
        raise LogError(
            f"{path}:{first}: {what}; name the columns program, size, processes, core_mhz, time_s, energy_j, or give "
            f"what `{_ASK}` prints."
        )
    is_of_jobs = any(name in names for name in _meaning()["column"][JOB])
    unlike = [(number, cells) for number, cells in table if len(cells) != len(names)]
    if unlike and not is_of_jobs:
        number, cells = unlike[0]
        raise LogError(f"{path}:{number}: {len(cells)} cells, but the header has {len(names)}.")
    if unlike:
        notes.append(f"{path}: {len(unlike)} lines are no rows of jobs and were left out (the first is {unlike[0][0]})")
    # Of columns with the same name the first counts.
    rows = [
        Row(f"{path}:{number}", dict(zip(reversed(names), reversed(cells), strict=True)))
        for number, cells in table
        if len(cells) == len(names)
    ]
    is_fixed = not any(separator in header for separator in _SEPARATORS)
    if is_fixed and any(row.text("program").endswith("+") for row in rows):
        notes.append(f"{path}: names of jobs are cut off, so that different programs may look alike; ask sacct with -P")
    return rows


def _splitting(header: str, rule: str) -> Callable[[str], list[str]]:
    """How a table's lines fall into cells: at a separator, or where dashes below the header show the columns."""
    separator = max(_SEPARATORS, key=header.count)
    if separator not in header and "-" in rule and not rule.strip("- "):
        spans = [match.span() for match in re.finditer("-+", rule)]
        gaps = [end for _, end in spans[:-1]]

        def in_columns(line: str) -> list[str]:
            # Text across the gap of two columns does not stand in them, as a tab or a letter of two bytes makes it.
            is_shifted = any(line[gap : gap + 1].strip() for gap in gaps) or line[spans[-1][1] :].strip()
            return [] if is_shifted else [line[start:end].strip() for start, end in spans]

        return in_columns
    if separator == "|":  # as sacct prints it, which knows no quotes
        return lambda line: [cell.strip() for cell in line.split("|")]
    return lambda line: [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


# ---- sacct --json


class _Accounting(Struct):
    jobs: list[dict[str, Any]] | None = None


def _accounted(content: bytes) -> list[dict[str, Any]] | None:
    """The jobs in what `sacct --json` printed; None for anything else."""
    if not content.lstrip().startswith(b"{"):
        return None
    try:
        return msgspec.json.decode(content, type=_Accounting).jobs
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _of_job(job: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The cells of a job's own row, and of each of its steps. Its number is written as sacct's columns have it."""
    own = dict(_flat({key: value for key, value in job.items() if key != "steps"}))
    number = own.get("job_id", "")
    if own.get("array/job_id", "0") != "0" and own.get("array/task_id"):
        number = f"{own['array/job_id']}_{own['array/task_id']}"
    if own.get("het/job_id", "0") != "0":
        number = f"{own['het/job_id']}+{own.get('het/job_offset') or 0}"
    yield {**own, "jobid": number}
    for step in job.get("steps") or []:
        cells = dict(_flat(step))
        name = cells.get("step/id/step_id") or cells.get("step/id", "").rpartition(".")[2]
        yield {**cells, "cluster": own.get("cluster", ""), "jobid": f"{number}.{name}"}


def _flat(entry: Any, way: str = "") -> Iterator[tuple[str, str]]:
    """The entries of a job by their ways, in small letters. A number that is not set, infinite or negative is none."""
    if isinstance(entry, dict) and "number" in entry:
        known = entry.get("set", True) and not entry.get("infinite")
        yield from _flat(entry["number"] if known else None, way)
    elif isinstance(entry, dict) and way.count("/") < _DEEPEST:
        for key, value in entry.items():
            yield from _flat(value, f"{way}/{key}".lower().strip("/"))
    elif isinstance(entry, list) and entry and isinstance(entry[0], dict):
        for resource in (each for each in entry if isinstance(each, dict)):
            yield from _flat(resource.get("count"), f"{way}/{resource.get('type')}".lower())
    elif isinstance(entry, list):
        yield way, ",".join(map(str, entry))
    else:
        is_unknown = entry is None or (isinstance(entry, int | float) and entry < 0)
        yield way, "" if is_unknown else str(entry)
