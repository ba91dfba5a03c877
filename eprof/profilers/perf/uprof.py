"""Reader of cumulative reports of AMDuProfPcm (`-C`): what it counted in a run, by the names that perf has for it."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

from eprof.base import cpus
from eprof.base.errors import LogError
from eprof.base.resources import folder
from eprof.base.text import few, pattern, phrase
from eprof.base.toml import Document
from eprof.logs.log import COUNT, OTHER, WHOLE_PROGRAM, Log, Names, Table, TableRows
from eprof.logs.stream import Source
from eprof.profilers.perf import UPROF
from eprof.profilers.perf.reader import SYSTEM
from eprof.readers.cells import unused_notes
from eprof.readers.counted import NOT_ALL

_EVENTS = Document.read(folder("counters") / "perf" / "uprof.toml").data["events"]
_MODEL = pattern(r"Family\(0x([0-9a-f]{1,4})\) Model\(0x([0-9a-f]{1,4})\).*")
_COMMAND = pattern(r'"?AMDuProfPcm (?P<options>.*?)(?: -- (?P<program>.*?))?"?')
# Columns of whole machines, or else of their parts, which add up to these.
_SCOPES = ("System", "Package", "CCX", "Core")
_NUMBER = pattern(r"[0-9]{1,18}\.[0-9]{2}")  # with fewer decimals it is cut off
_HOW = "count a whole run: `AMDuProfPcm -m fp -a -C -o FILE -- PROGRAM`"


def read(
    source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None = None, *_: object
) -> Log:
    """Read a report of AMDuProfPcm, a row. Raises LogError if it is of stretches of time, or counts nothing of a run.

    `keep`: the counters that get a column.
    """
    lines = b"".join(pieces).decode("utf-8", "replace").splitlines()
    numbers = _numbers(lines)
    lost = [event for event, of_event in numbers.items() if any(map(math.isnan, of_event))]
    known = {event: [number for number in of_event if not math.isnan(number)] for event, of_event in numbers.items()}
    counts = {event: sum(of_event) for event, of_event in known.items() if of_event}
    if not counts:
        raise LogError(f"{source.path}: this report of AMDuProfPcm has no {few(list(_EVENTS), 2)} of a run; {_HOW}")
    amounts = {event: (count, COUNT) for event, count in counts.items() if keep is None or event in keep}
    notes = [*source.notes, *unused_notes(counts, keep)]
    if lost:
        notes.append(f"{few(lost, 2, 'events')}: damaged cells, so these are missing, or lower bounds")
    about = dict(line.split(":,", 1) for line in lines if ":," in line)
    command = _COMMAND.fullmatch(about.get("Command", "").strip())
    program = command and command["program"]
    # The name of the processor, with its microarchitecture where the name does not tell it.
    device = about.get("Processor Name", "").strip() or None
    model = _MODEL.match(about.get("System", ""))
    if device and model and not cpus.microarchitecture(device):
        device += phrase(", {}", cpus.of_model(f"AuthenticAMD {int(model[1], 16)} {int(model[2], 16)}"))
    is_of_all = command is not None and " -a " in f" {command['options']} "
    rows = TableRows.of(
        Names.of([device]), Names.of([SYSTEM if is_of_all else program or WHOLE_PROGRAM]), time_s=[math.nan]
    )
    partly = {event + NOT_ALL: (1.0, OTHER) for event in lost if event in amounts}
    table = Table.of_amounts(UPROF, rows, [amounts | partly])
    return source.log([table], notes, lines=len(lines), command=program, device=device)


def _numbers(lines: Sequence[str]) -> dict[str, list[float]]:
    """AMDuProfPcm's event -> what each column that adds up to the whole has of it; NaN: damage, or a row again."""
    columns: list[int] = []
    numbers: dict[str, list[float]] = {}
    for line in lines:
        name, *cells = line.split(",")
        if name == "Metric":
            by_scope = [[at for at, cell in enumerate(cells) if cell.strip().startswith(scope)] for scope in _SCOPES]
            columns = next(filter(None, by_scope), [])
        elif columns and (event := _EVENTS.get(name)):
            texts = [*map(str.strip, cells), *[""] * (max(columns) + 1)]
            is_whole = event not in numbers
            numbers[event] = [
                float(texts[at]) if is_whole and _NUMBER.fullmatch(texts[at]) else math.nan for at in columns
            ]
    return numbers
