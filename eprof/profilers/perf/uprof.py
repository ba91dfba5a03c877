"""Reader of cumulative reports of AMDuProfPcm (`-C`): what it counted in a run, by the names that perf has for it."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

from eprof.base import cpus
from eprof.base.errors import LogError
from eprof.base.resources import folder
from eprof.base.text import few, pattern, phrase
from eprof.base.toml import Document
from eprof.logs.log import WHOLE_MACHINE, WHOLE_PROGRAM, Log
from eprof.logs.stream import Source
from eprof.profilers.perf import UPROF
from eprof.readers.cells import unused_notes
from eprof.readers.counted import ALL, LOST, Parts, Row, table

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
    events = _events(lines)
    counts = [event for event, counted in events.items() if not math.isnan(counted.total)]
    if not counts:
        raise LogError(f"{source.path}: this report of AMDuProfPcm has no {few(list(_EVENTS), 2)} of a run; {_HOW}")
    notes = [*source.notes, *unused_notes(counts, keep)]
    if lost := [event for event, counted in events.items() if counted.unknown]:
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
    row = Row(WHOLE_MACHINE if is_of_all else program or WHOLE_PROGRAM, events=events, device=device)
    return source.log([table(UPROF, [row], keep)], notes, lines=len(lines), command=program, device=device)


def _events(lines: Sequence[str]) -> dict[str, Parts]:
    """AMDuProfPcm's events by the columns that add up to the whole; LOST: damage, or a row again."""
    columns: list[int] = []
    events: dict[str, Parts] = {}
    for line in lines:
        name, *cells = line.split(",")
        if name == "Metric":
            by_scope = [[at for at, cell in enumerate(cells) if cell.strip().startswith(scope)] for scope in _SCOPES]
            columns = next(filter(None, by_scope), [])
        elif columns and (event := _EVENTS.get(name)):
            texts = [*map(str.strip, cells), *[""] * (max(columns) + 1)]
            is_whole = event not in events
            events[event] = Parts({("", str(at), ""): (math.nan, LOST) for at in columns})
            known = [at for at in columns if is_whole and _NUMBER.fullmatch(texts[at])]
            events[event] |= {("", str(at), ""): (float(texts[at]), ALL) for at in known}
    return events
