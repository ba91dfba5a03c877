"""Reads measured runs at several node counts and clocks: users' tables, Slurm's jobs by `sacct`, simulations.

What the columns of tables mean, whatever wrote them, is in `counters/runs.toml`.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from itertools import pairwise, takewhile
from operator import or_
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.optional import only
from eprof.base.resources import folder, log_content
from eprof.base.resources import lines as lines_of
from eprof.base.text import counted, listed, pattern, phrase
from eprof.base.toml import Document
from eprof.base.vocabulary import Mark
from eprof.clusters.cluster import Run, medians, simulated_runs, simulation_record
from eprof.commands.scale import gpu_ranks

JOB = "job"
_ASK = "sacct -P -o JobID,JobName,NNodes,ElapsedRaw,ConsumedEnergyRaw,ReqCPUFreq,State"
_MOST_BYTES = 64 << 20
_DEEPEST = 6
_SEPARATORS = "|,;\t"
_RULE = pattern(r"[\s|:-]*")
_MARKDOWN_RULE = pattern(r"\s*\|(\s*:?-+:?\s*\|)+\s*")
_ANY_NUMBER = pattern(r"(?=[.:+_-]*\d)[\d.:+_-]+")
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
_GOVERNOR = pattern(r"[A-Za-z]+\+?|HighM1")  # sacct cuts long words: "Conservat+"
_POWERS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_LEAST_MHZ = 100  # of a processor's clock
_FLAGS = 1 << 31  # from here on a number is Slurm's flag for a governor (slurm.h: CPU_FREQ_RANGE_FLAG)


class Row(Struct, frozen=True):
    """A row of a table of runs. where: file and line. cells: column name in small letters -> text."""

    where: str
    cells: Mapping[str, str]

    def has(self, quantity: str) -> bool:
        """Whether the row's table has a column for a quantity, empty or not."""
        return any(name in self.cells for name in _meaning()["column"][quantity])

    @property
    def is_whole(self) -> bool:
        """Whether a run came to its end, by the state in its row; True without a state, False if it is cut off."""
        return not self.has("state") or self.text("state").upper() in _meaning()["states"]["whole"]

    def text(self, quantity: str) -> str:
        """The cell of the first column for a quantity that is not empty in this row; "" if all are."""
        return next((text for name in _meaning()["column"][quantity] if (text := self.cells.get(name, ""))), "")

    def number(self, quantity: str) -> float | None:
        """A quantity in SI units or MHz (0: a governor's), of the first column with one, or None. Raises LogError."""
        unknown = _meaning()["unknown"]
        for name, how in _meaning()["column"][quantity].items():
            text = self.cells.get(name, "")
            number = _as_number(text, how)
            if not text or text.lower() in unknown["texts"] or number in unknown["numbers"]:
                continue
            if not 0 <= number < 1e18:
                raise LogError(f"{self.where}: {quantity} is `{text[:40]}`, which is no {how} from 0 on.")
            return number
        return None

    def run(self, processors: float, time_s: float) -> Run:
        """The row as a run of no known size; clock and energy of 0 or blank are None."""
        name, core_mhz, energy_j = self.text("program"), self.number("core_mhz"), self.number("energy_j")
        return Run(
            name or "program", None, int(processors), core_mhz or None, time_s, energy_j or None, where=self.where
        )


@lru_cache
def _meaning() -> dict[str, dict[str, Any]]:
    """What `counters/runs.toml` says: columns of each quantity, whole states, texts and numbers of unknown ones."""
    data = Document.read(folder("counters") / "runs.toml").data
    columns = {quantity: {name.lower(): how for name, how in each.items()} for quantity, each in data["column"].items()}
    words, numbers = data["unknown"]["texts"], data["unknown"]["numbers"]
    unknown = {"texts": [*words, *numbers], "numbers": [float(number) for number in numbers]}
    return data | {"column": columns, "unknown": unknown}


def _as_number(text: str, how: str) -> float:
    """A cell written in the form `how` as a number, in SI units (clocks: MHz); NaN: none, 0: a clock's governor."""
    match = _FORMS[how].fullmatch(text)
    if match is None:
        return 0.0 if how == _CLOCK and _GOVERNOR.fullmatch(text) else math.nan
    if how == _TIME:
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    number = float(match[1]) * _POWERS[(match[2] or "").lower()]
    if how != _CLOCK:
        return number
    if not match[2] and number >= _FLAGS:
        return 0.0
    # Bare kHz; "2.40G" counts Hz, "2.40M" of older versions kHz.
    return number / (1e6 if match[2] and number >= 1e6 * _LEAST_MHZ else 1e3)


def read_table(path: str, notes: list[str]) -> list[Row]:
    """The rows of a table of runs: separated, of fixed width, or of `sacct --json`. Raises LogError with the line."""
    content = log_content(path, _MOST_BYTES)
    jobs = _accounted(content)
    if jobs is not None:
        return [Row(f"{path}: job {cells['jobid']}", cells) for job in jobs for cells in _of_job(job)]
    if content[-1:] not in (b"\n", b"\r", b""):
        notes.append(f"{path}: its last line has no end; if the table was cut off there, its last cell is not whole.")
    filled = [(number, line) for number, line in enumerate(lines_of(content), 1) if line.strip()]
    if not filled:
        form = "a table with a header: program,size,processes,core_mhz,time_s,energy_j"
        raise LogError(f"{path}: is empty; runs are {form}.")
    (first, header), *rest = _of_markdown(path, filled, notes)
    split = _splitting(header, next((line for _, line in rest), ""))
    try:
        names = [name.lower() for name in split(header)]
        table = [(number, split(line)) for number, line in rest if not _RULE.fullmatch(line)]
    except csv.Error as err:
        raise LogError(f"{path}: is no table ({err}).") from err
    lacks = [key for key in ("processes", "time_s") if not any(name in names for name in _meaning()["column"][key])]
    if lacks:
        what = f"no column {listed(lacks, 'or')} in the header, taken to be `{header.strip()[:40]}`"
        if any(_ANY_NUMBER.fullmatch(word) for name in names for word in name.split()):
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
    whole = ((number, cells) for number, cells in table if len(cells) == len(names))
    rows = [Row(f"{path}:{number}", dict(zip(names[::-1], cells[::-1], strict=True))) for number, cells in whole]
    is_fixed = not any(separator in header for separator in _SEPARATORS)
    if is_fixed and any(row.text("program").endswith("+") for row in rows):
        notes.append(f"{path}: names of jobs are cut off, so that different programs may look alike; ask sacct with -P")
    return rows


def _of_markdown(path: str, lines: Sequence[tuple[int, str]], notes: list[str]) -> Sequence[tuple[int, str]]:
    """The numbered lines of a Markdown text's first table, without outer bars; of any other text all, as they are."""
    headers = [
        at
        for at, ((_, line), (_, rule)) in enumerate(pairwise(lines))
        if line.lstrip().startswith("|") and _MARKDOWN_RULE.fullmatch(rule)
    ]
    if not headers:
        return lines
    if len(headers) > 1:
        notes.append(f"{path}: holds {len(headers)} tables; the first, of line {lines[headers[0]][0]}, is read alone")
    table = takewhile(lambda line: line[1].lstrip().startswith("|"), lines[headers[0] :])
    return [(number, line.strip().removeprefix("|").removesuffix("|")) for number, line in table]


def _splitting(header: str, rule: str) -> Callable[[str], list[str]]:
    """A function that splits a line into cells: at the separator, or where dashes below the header show columns."""
    separator = max(_SEPARATORS, key=header.count)
    if separator not in header and "-" in rule and not rule.strip("- "):
        spans = [match.span() for match in re.finditer("-+", rule)]

        def in_columns(line: str) -> list[str]:
            # Text across the gap of two columns does not stand in them, as a tab or a letter of two bytes makes it.
            is_shifted = any(line[end : end + 1].strip() for _, end in spans) or line[spans[-1][1] :].strip()
            return [] if is_shifted else [line[start:end].strip() for start, end in spans]

        return in_columns
    if separator == "|":  # as sacct prints it, which knows no quotes
        return lambda line: [cell.strip() for cell in line.split("|")]
    return lambda line: [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


class _Accounting(Struct):
    jobs: list[dict[str, Any]] | None = None


def _accounted(content: bytes) -> list[dict[str, Any]] | None:
    """The jobs in what `sacct --json` printed; None for anything else."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if content.lstrip().startswith(b"{"):
            return msgspec.json.decode(content, type=_Accounting).jobs
    return None


def _of_job(job: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the cells of a job's own row and of each of its steps, job numbers written as in sacct's columns."""
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
    """Yield (path in small letters, text) of each entry of a job; "": a number that is unset, infinite or negative."""
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


def read(paths: Sequence[str], reading: gpu_ranks.Reading | None = None) -> tuple[list[Run], list[str]]:
    """(runs in tables, simulations and ranks on GPUs, repeats as medians; notes). Raises LogError with file, line."""
    notes: list[str] = []
    runs: list[Run] = []
    reports: list[gpu_ranks.Report] = []
    accounted: list[Row] = []
    reading = reading or gpu_ranks.Reading()
    for path in paths:
        nodes, name = gpu_ranks.named(path)
        is_json = path.endswith(".json") and Path(path).is_file()
        is_of_jobs = is_json and _accounted(log_content(path, _MOST_BYTES)) is not None
        if manifest := simulation_record(Path(path)):
            runs += simulated_runs(Path(path), manifest, notes)
        elif (nodes is not None or Path(name).is_dir() or name.endswith(gpu_ranks.SUFFIX)) and not is_of_jobs:
            reports.append(gpu_ranks.read(path, reading))
        else:
            table = read_table(path, notes)
            accounted += [row for row in table if row.has(JOB)]
            whole = [row for row in table if row.is_whole and not row.has(JOB)]
            runs += [_run(row) for row in whole if not row.text("report")]
            told = [row for row in whole if row.text("report")]
            reports += [gpu_ranks.named_by(_run(row), row.text("report"), Path(path).parent, reading) for row in told]
            if left_out := sum(not row.is_whole for row in table if not row.has(JOB)):
                notes.append(f"{path}: {left_out} of {len(table)} rows left out, as no whole runs by their state")
    if accounted:
        runs += of_jobs(accounted, notes)
    if reports:
        runs += gpu_ranks.runs(reports, reading.beside, notes)
    if len({run.cluster for run in runs}) > 1:
        runs = [replace(run, program=run.program + phrase(" on {}", run.cluster)) for run in runs]
    notes = list(dict.fromkeys(notes))
    return medians(runs, notes), notes


def _run(row: Row) -> Run:
    """A row of a user's table as a run; energy of 0 or blank is None: a meter that saw nothing saw no program either.

    Raises LogError: no node count, no time, or a step of a job.
    """
    processors, time_s = row.number("processes"), row.number("time_s")
    if processors is None or processors < 1 or processors != int(processors):
        raise LogError(f"{row.where}: processes is `{row.text('processes')}`, and must be a whole number from 1 on.")
    if not time_s:
        raise LogError(f"{row.where}: time_s is `{row.text('time_s')}`, and must be more than 0.")
    if row.cells.get("jobname") in ("batch", "extern", "interactive"):
        raise LogError(f"{row.where}: `{row.text('program')}` is a step of some job; ask sacct for JobID, which tells.")
    return replace(row.run(processors, time_s), size=row.number("size") or None)


# A job of an array, a part of a heterogeneous one, a step. A number that is cut off ("1234567+") is none.
_JOB_NUMBER = pattern(r"(\d{1,18}(?:_(?:\d{1,18}|\[.*\]))?)(?:\+(\d{1,9}))?(?:\.(.+))?")
_EXTERN = "extern"
_SAME = 1.01
_Rows = list[tuple[str, Row]]


def of_jobs(rows: Sequence[Row], notes: list[str]) -> Iterator[Run]:
    """Yield the runs of the jobs in rows of sacct, which may repeat and stand in any order.

    Rows do not add up: a job's energy is its own row's, else its largest step's. Jobs that did not come to their end
    are no runs. Raises LogError: none did.
    """
    jobs: dict[tuple[str, str], dict[str, _Rows]] = {}
    strange = []
    for row in {tuple(sorted(row.cells.items())): row for row in rows}.values():
        match = _JOB_NUMBER.fullmatch(row.text(JOB))
        if match is None:
            strange.append(row.where)
            continue
        parts = jobs.setdefault((row.text("grid"), match[1]), {})
        parts.setdefault(match[2] or "", []).append((match[3] or "", row))
    if strange:
        notes.append(f"{counted(len(strange), 'row')} without the number of a job left out (the first is {strange[0]})")
    made = [_job(job, parts, notes) for (_, job), parts in jobs.items()]
    left_out = Counter(run for run in made if isinstance(run, str))
    if left_out:
        number, reasons = left_out.total(), listed([f"{number} {why}" for why, number in sorted(left_out.items())])
        notes.append(f"{number} of {counted(len(jobs), 'job')} left out, as no whole runs: {reasons}")
        if number == len(jobs):
            raise LogError(f"{rows[0].where}: of {counted(len(jobs), 'job')} none is a whole run: {reasons}.")
    if not any(row.text("state") for row in rows):
        notes.append("nothing tells which jobs came to their end; ask sacct for State, too")
    yield from (run for run in made if isinstance(run, Run))


def _job(job: str, parts: dict[str, _Rows], notes: list[str]) -> Run | str:
    """The run of a Slurm job, or why it is none. Parts of a heterogeneous job run at once, each on its own nodes."""
    if "" in parts:
        return _part(job, parts[""], notes)
    runs = []
    for number in map(str, range(max(2, len(parts)))):
        run = _part(f"{job}+{number}", parts[number], notes) if number in parts else "without some of their parts"
        if isinstance(run, str):
            return run
        runs.append(run)
    energies = [run.energy_j for run in runs if run.energy_j is not None]
    lacks = (0 < len(energies) < len(runs)) * int(Mark.MISSING)
    notes.append("parts of a heterogeneous job are one run: their nodes and joules add up")
    return replace(
        runs[0],
        processors=sum(run.processors for run in runs),
        core_mhz=only({run.core_mhz for run in runs}),
        time_s=max(run.time_s for run in runs),
        energy_j=sum(energies) or None,
        marks=int(reduce(or_, (run.marks for run in runs), lacks)),
    )


def _part(job: str, rows: _Rows, notes: list[str]) -> Run | str:
    """The run of a Slurm job, or of a part of one, from its own row and its steps'; or why it is none, as text."""
    own = [row for step, row in rows if not step]
    if not own:
        return "with rows of steps alone"
    whole = [row for row in own if row.is_whole]
    if not whole:
        return min(next(iter(row.text("state").split()), "without a state") for row in own)
    # A step that is written as the job is takes no longer than it.
    by_time = [(row.number("time_s") or 0.0, row.number("energy_j") or 0.0, row.text("program")) for row in whole]
    first = whole[by_time.index(max(by_time))]
    steps = [(step, row) for step, row in rows if step or (row in whole and row is not first)]
    time_s, processors = first.number("time_s"), first.number("processes")
    if not time_s or not processors or processors % 1:
        return "that took no time or no nodes"
    clocks = {row.number("core_mhz") for row in [first, *(row for _, row in steps)]} - {None, 0.0}
    run = first.run(processors, time_s)
    run = replace(run, core_mhz=run.core_mhz or only(clocks))
    broken = sorted(step for step, row in steps if not row.is_whole and step != _EXTERN)
    if broken:
        notes.append(f"job {job} came to its end, but not its step {listed(broken[:3])}: it may have done only a part")
    outside = [row for step, row in steps if step == _EXTERN and (row.number("time_s") or 0.0) >= time_s - 1]
    outside_j = max((row.number("energy_j") or 0.0 for row in outside), default=0.0)
    if run.energy_j is None:
        # The energy of its largest step: a lower bound, unless that ran as long and on as many nodes.
        known = [row for step, row in steps if row.is_whole or step == _EXTERN]
        energy_j = max((row.number("energy_j") or 0.0 for row in known), default=0.0)
        largest = [row for row in known if energy_j and row.number("energy_j") == energy_j]
        if largest:
            notes.append(f"the energy of job {job} is that of its largest step")
            sizes = [(row.number("time_s") or 0.0, row.number("processes") or 0.0) for row in largest]
            is_all = any(step_s >= time_s - 1 and nodes >= run.processors for step_s, nodes in sizes)
            run = replace(run, energy_j=energy_j, marks=int(Mark.MISSING) * (not is_all))
    elif 0 < outside_j * _SAME < run.energy_j:
        notes.append(
            f"job {job}: its own row has {run.energy_j:.6g} J, as this Slurm adds up steps that overlap; its step "
            f"{_EXTERN}, which sees all of it, has {outside_j:.6g} J, and counts"
        )
        run = replace(run, energy_j=outside_j)
    if (run.energy_j or 0.0) > 1e5 * run.time_s * run.processors:
        notes.append(f"job {job}: {run.energy_j:.3g} J would be more than 100 kW a node; its energy is not known")
        return replace(run, energy_j=None, marks=0)
    return run
