"""A `Sheet` of launches and their metrics, whichever form ncu printed them in; `NcuStore`, `Messages`, `Remarks`.

And ncu's messages: why there is no table, or what is not right with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns, alike, numbered
from eprof.base.errors import DefinitionError
from eprof.base.optional import added, either, mapped
from eprof.base.resources import folder
from eprof.base.signs import TOTAL
from eprof.base.text import counted, few, pattern, phrase, when
from eprof.base.toml import Document
from eprof.counts import definition_files
from eprof.logs.log import COUNT, PERCENT, Clock, Log, Names, OfShape, Table
from eprof.nvidia.folding import Cells, Piece, TableStore
from eprof.profilers.ncu import SLOWED, SUMMARY, derived
from eprof.readers.cells import ABSENT, Unit, as_cell, is_wrong, kind_of, unit_of
from eprof.readers.messages import ASSERTION, Findings, shortened

CSV = "ncu --set full --csv --page raw --print-units base --log-file FILE.csv PROGRAM"
IMPORT = "ncu --import FILE.ncu-rep --csv --page raw --print-units base > out.csv"
IMPORTED = f"the report as a CSV: `{IMPORT}`"
_LINE = pattern(r"\s*==(PROF|WARNING|ERROR|INFO)== ?(.*)")
_BARE = pattern(r"(?:unrecognised option|the argument for option|Invalid option) \S.*")  # of ncu up to 2022
# Pages and summaries that hold no counters of launches, by the line that names their columns.
_OTHERS = (
    (pattern(r'"?(?:Address|Line No)"?(?:,| {2,})"?Source"?(?:[, ].*)?\s*'), "its page of source code"),
    (pattern(r'"?Launch Attribute"?(?:,| +)"?Value"?\s*'), "its page of the session"),
    (
        pattern(r'"Domain","Range:.*"Kernel Name".*'),
        "its summary per NVTX range, in which ranges within ranges have the same launches",
    ),
    (pattern(r'.*\bKernel Name"?,.*\bMetric Name"?,.*'), "a table that lost columns"),
)
_FIRST = frozenset('"ALutIK.')  # letters of _BARE and _OTHERS
_CONNECTED = pattern(r"Connected to process (\d+)(?: \((.*)\))?")
_NOTED = 3


class Messages:
    """The messages of ncu in a log, with the numbers of their lines.

    processes: number of a process that ncu watched -> its program. page: the line where ncu's page for reading begins.
    """

    def __init__(self) -> None:
        self._findings = Findings("ncu")
        self._lines: list[tuple[int, str, str]] = []
        self._other_page: tuple[int, str] | None = None
        self.processes: dict[str, str] = {}
        self.page: int | None = None

    def hear(self, number: int, text: str) -> bool:
        """Keep a line that is a message of ncu, or heads a page without counters; False: no message of ncu."""
        if line := _LINE.match(text):
            kind, words = line.groups()
            if connected := _CONNECTED.match(words):
                self.processes[connected[1]] = connected[2] or ""
            elif kind in ("ERROR", "WARNING") or words.startswith("Report:"):
                self._note(number, kind, words.strip())
            return True
        if ASSERTION in text:
            self._findings.look(number, text)
        if text[:1] not in _FIRST:  # nearly all of what a program says
            return False
        if _BARE.fullmatch(text.rstrip()):
            self._note(number, "ERROR", text.strip())
            return True
        if self._other_page is None:
            self._other_page = next(((number, page) for shape, page in _OTHERS if shape.fullmatch(text)), None)
        return False

    def _note(self, number: int, kind: str, text: str) -> None:
        self._lines.append((number, kind, text))
        self._findings.look(number, text)

    @property
    def has_errors(self) -> bool:
        """Whether ncu reported an error."""
        return any(kind == "ERROR" for _, kind, _ in self._lines)

    def notes(self) -> list[str]:
        """Sentences for a log that has a table of ncu: what its messages warn of."""
        texts = list(dict.fromkeys((text, kind) for _, kind, text in self._lines if kind in ("ERROR", "WARNING")))
        notes = [f"ncu says: {shortened(text)}" for text, _ in texts[:_NOTED]]
        if self.has_errors:
            notes.append("ncu reported an error, so launches may be missing from the log; look at what it says")
        if len(texts) > _NOTED:
            notes.append(f"ncu says {len(texts) - _NOTED} other things of this kind")
        return notes

    def why_no_table(self) -> str:
        """One sentence on why a log has no table of ncu, by the messages in it, and what to do."""
        if explanation := self._findings.explanation():
            return explanation
        if self._other_page is not None:
            number, page = self._other_page
            return f"ncu printed {page} (line {number}), which is nothing to count with; print {IMPORTED}"
        if self.page is not None:
            return (
                f"the tables of ncu's page for reading (line {self.page}) are not below a line that names their kernel "
                f"(`name(...), Context 1, Stream 7`); give the whole page, or make a CSV with `{CSV}`"
            )
        for number, kind, text in self._lines:
            if kind == "ERROR":
                return f"ncu failed (line {number} says: {shortened(text)}); mend that, and profile again"
        if not self.processes:
            return f"no table of ncu was found; make one with `{CSV}`"
        processes = counted(len(self.processes), "process", "processes")
        return (
            f"ncu watched {processes} but wrote no table; see that the program launches kernels on the "
            "GPU, ends by itself, and that no filter (-k, -s, -c) leaves out all of them"
        )


GPU_NAME = "device__attribute_display_name"
_ADVICE = ("roofline__", "derived__memory_", "memory_", "smsp__warp_issue_stalled_")
# What no kernel does, and what only rules tell of it.
_ASIDE = ("device__", "launch__", "sm__maximum_warps", "profiler__", "c2clink__", "nvlink__", "numa__", *_ADVICE)
_PID_DIGITS = 18  # that fit in 64 bits
_RATE = pattern(r"\.(?:pct|ratio|max_rate)$|\.(?:pct_of|per_cycle|peak)_")
_SHOWN, _FEW = 12, 6


@cache
def labels_of_page() -> Mapping[str, Any]:
    """What ncu's details page says: labels, rates by unit, sentences (`counters/ncu/labels.toml`)."""
    return Document.read(folder("counters") / "ncu" / "labels.toml").data


def metric_of(label: str) -> str:
    """The metric that a label of ncu's details page stands for; a text that is no label stays as it is."""
    said = labels_of_page()
    unit, _, what = label.partition(": ")
    if what and unit in said["breakdown"]:
        return f"{said['breakdown'][unit]}__{what.lower().replace(' ', '_')}.avg.pct_of_peak_sustained_elapsed"
    return str(said["label"].get(label, label))


class Remarks(Struct):
    """What there is to say to the user about ncu's metrics in a log.

    metrics: the names of all, also of those that are not read. missing: how many rows have a metric without a number.
    scaled: counts that were printed in scaled units, and so rounded. twice: metrics that a launch has with two values,
    of which the first is taken. several: metrics whose cells hold only the values of several instances.
    """

    metrics: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    scaled: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    several: list[str] = field(default_factory=list)

    def take(self, others: Remarks) -> None:
        """Add the remarks on another sheet of ncu, each once."""
        for name in ("metrics", "scaled", "twice", "several"):
            setattr(self, name, list(dict.fromkeys([*getattr(self, name), *getattr(others, name)])))
        for metric, number in others.missing.items():
            self.missing[metric] = self.missing.get(metric, 0) + number


class Sheet(Struct):
    """What ncu tells of launches: a row a launch (or kernel of a summary), a column a metric.

    device, capability, gpu (its name), kernel, process, part: texts of the rows; of a part None: not asked for.
    units: the metrics that are read. values: (n_metrics, n_rows), in base units; of a summary they are averages.
    by_opcode: counters for each opcode, totals.
    """

    kind: str
    device: Names
    capability: Names
    gpu: Names
    kernel: Names
    process: Names
    launches: Array
    units: dict[str, Unit]
    values: Array
    remarks: Remarks
    part: Names | None = None
    by_opcode: dict[str, Array] = field(default_factory=dict)


class NcuStore(TableStore, dict=True):
    """What was read of a log of ncu so far. runs: number of a table and process (None: not told) -> number of a run.

    times_s: shape of a launch -> the times of launches like it, s.
    """

    runs: dict[tuple[int, str | None], int] = field(default_factory=dict)
    remarks: Remarks = field(default_factory=Remarks)
    clocks: list[Clock] = field(default_factory=list)
    times_s: dict[derived.Shaped, list[float]] = field(default_factory=dict)

    def piece(self, sheet: Sheet, keep: Container[str] | None, table: int = 0) -> Piece:
        """The rows of ncu's sheet with its counters (counts as totals, others as averages), and those derived.

        keep: the counters to hold; None for all. table: the number of the table in the log.
        """
        launches = sheet.launches
        kinds = {name: kind_of(name, unit) for name, unit in sheet.units.items()}
        is_count = np.array([kind == COUNT for kind in kinds.values()], dtype=bool)
        counters = dict(zip(kinds, np.where(is_count[:, None], sheet.values * launches, sheet.values), strict=True))
        devices = _labels(sheet.device, sheet.capability, sheet.gpu)
        if derived.SM_COUNT not in counters and len(set(devices.codes.tolist())) == 1:
            lanes = np.full(len(launches), np.nan)
            if derived.FFMA_PEAK in counters:
                lanes = np.array([_lanes(capability) for capability in sheet.capability.texts()])
            number = derived.multiprocessors(counters, launches, lanes)
            if not math.isnan(number):
                counters[derived.SM_COUNT], kinds[derived.SM_COUNT] = launches * number, COUNT
        time_s = derived.seconds(counters, launches)
        self.clocks += derived.clocks(counters, devices.texts(), time_s, launches)
        for shape, seconds in derived.shapes(counters, sheet.kernel, time_s, launches):
            self.times_s.setdefault(shape, []).append(seconds)
        self.remarks.take(sheet.remarks)

        made = derived.totals(counters, time_s, launches, keep) | sheet.by_opcode
        counters |= made
        kinds |= dict.fromkeys(made, COUNT)
        cells: dict[str, Cells] = {}
        for name in (name for name in kinds if keep is None or name in keep):
            values, kind = counters[name], np.int8(as_cell(kinds[name]))
            cells[name] = values, np.where(np.isnan(values), np.int8(ABSENT), kind)
        return Piece(
            self._runs(sheet.process, table),
            self.devices.codes(devices),
            self.kernels.codes(sheet.kernel),
            launches,
            time_s,
            cells,
            either(mapped(self.parts.codes, sheet.part), np.zeros(0, np.int32)),
        )

    def _runs(self, processes: Names, table: int) -> Array:
        """The number of each row's run, (n_rows,): of its process, and another one in each table."""
        process, first = numbered(processes.codes)
        runs = []
        for text in processes.chosen(first).texts():
            run = self.runs.setdefault((table, text), len(self.runs))
            if text is not None and text.isdecimal() and len(text) <= _PID_DIGITS:
                self.processes[run] = int(text)
            runs.append(run)
        return np.array(runs, dtype=np.int64)[process]

    def by_shape(self) -> dict[str, tuple[OfShape, ...]]:
        """Kernel -> its launches by the shape of their blocks, if launches of as many threads differ in that."""
        alike: dict[tuple[str, tuple[int, ...]], tuple[OfShape, ...]] = {}
        for (kernel, block, threads), seconds in self.times_s.items():
            of_shape = OfShape(block, threads, len(seconds), sum(seconds), (min(seconds), max(seconds)))
            added(alike, (kernel or "", threads), (of_shape,))
        shapes: dict[str, tuple[OfShape, ...]] = {}
        for (kernel, _), own in alike.items():
            if len(own) > 1:
                added(shapes, kernel, own)
        return shapes

    def tables(self) -> tuple[Table, ...]:
        """All that ncu collected, a table a kind; without tables of advice alone, and metrics of the device alone."""
        tables = []
        for table in super().tables():
            if table.units and all(name.startswith(_ADVICE) for name in table.units):
                continue
            if not _counts_work(table.units):
                units = {name: unit for name, unit in table.units.items() if not name.startswith(_ASIDE)}
                table = replace(table, units=units, counters=Columns(tuple(units), table.counters.only(units)))
            tables.append(table)
        return tuple(tables)


class Launch(Struct):
    """A launch whose ncu metrics another reader or tool gives. values: in `units`, or base units if it has none.

    part: the range that it ran in, if rows are split by these.
    """

    kernel: str
    gpu: str | None
    values: dict[str, float]
    units: dict[str, str]
    part: str | None = None
    device: str | None = "0"
    capability: str | None = None
    process: str = "0"


def log_of_launches(
    path: str,
    kind: str,
    launches: Sequence[Launch],
    metrics: Iterable[str],
    keep: Container[str] | None,
    by_opcode: Mapping[str, Array] | None = None,
) -> Log:
    """The log of launches whose metrics another reader or tool gives: tables, notes and clocks.

    metrics: the names of all, also of those that no launch has as a value. keep: the counters to hold, None for all.
    by_opcode: counters for each opcode, (n_launches,).
    """
    units: dict[str, Unit] = {}
    for launch in launches:
        for name in launch.values:
            if name not in units and derived.is_read(name, keep):
                units[name] = unit_of(launch.units.get(name, ""))
    missing: Counter[str] = Counter()
    matrix = np.full((len(units), len(launches)), np.nan)
    for row, name in zip(matrix, units, strict=True):
        for place, launch in enumerate(launches):
            value = launch.values.get(name, 0.0)
            if not math.isfinite(value) or is_wrong(value):
                missing[name] += 1
            elif name in launch.values:
                row[place] = value * unit_of(launch.units.get(name, "")).factor
    has_parts = any(launch.part is not None for launch in launches)
    sheet = Sheet(
        kind=kind,
        device=Names.of(launch.device for launch in launches),
        capability=Names.of(launch.capability for launch in launches),
        gpu=Names.of(launch.gpu for launch in launches),
        kernel=Names.of(launch.kernel for launch in launches),
        process=Names.of(launch.process for launch in launches),
        launches=np.ones(len(launches), dtype=np.int64),
        units=units,
        values=matrix,
        remarks=Remarks(metrics=list(metrics), missing=missing),
        part=Names.of(launch.part for launch in launches) if has_parts else None,
        by_opcode=dict(by_opcode or {}),
    )
    collected = NcuStore()
    collected.add(kind, collected.piece(sheet, keep))
    tables = collected.tables()
    return Log(
        path=path,
        format=kind,
        sha256="",
        size_bytes=0,
        tables=tables,
        notes=tuple(notes_of_counters(tables, collected.remarks, keep)),
        clocks=tuple(collected.clocks),
        by_shape=collected.by_shape(),
    )


@cache
def _lanes(capability: str | None) -> float:
    """The FP32 lanes of a multiprocessor of an ncu sheet's GPU; NaN where no definition tells."""
    try:
        return definition_files.find("ncu", capability or "").parameters.get("fp32_lanes", math.nan)
    except DefinitionError:
        return math.nan


def _labels(*columns: Names) -> Names:
    """Each row's device, by columns device, capability, GPU: "GPU (0)", "ncu device 0 (CC 8.0)", or None: not told."""
    kind, first = alike(*(column.codes for column in columns))
    labels: list[str | None] = []
    for device, capability, gpu in zip(*(column.chosen(first).texts() for column in columns), strict=True):
        if device and device[0].isalpha():  # its name, as in tables that others made of ncu's
            gpu, device = gpu or device, ""
        if gpu:
            labels.append(f"{gpu} ({device or 0})")
        elif capability:
            labels.append(f"ncu device {device or 0} (CC {capability})")
        else:
            labels.append(phrase("ncu device {}", device) or None)
    return Names.of(labels).chosen(kind)


def _counts_work(names: Iterable[str]) -> bool:
    """Whether some of these metrics of ncu count a program's work; others only tell of the device or the launch."""
    return any("__" in name and not name.startswith(_ASIDE) for name in names)


def names_of_nvprof(remarks: Remarks) -> list[str]:
    """The metrics that only nvprof has, where a table in ncu's form has no other: it was made by hand."""
    if any("__" in name for name in remarks.metrics):  # as nearly all names of ncu have
        return []
    of_nvprof = definition_files.names_in_use("nvprof")
    return [name for name in remarks.metrics if name in of_nvprof]


def notes_of_counters(tables: Sequence[Table], remarks: Remarks, keep: Container[str] | None) -> Iterator[str]:
    """Yields notes for the user on ncu's counters, in whatever form they were printed."""
    if any(not np.isnan(table.rows.time_s).all() for table in tables):
        yield SLOWED
    if remarks.several:
        shown = few(remarks.several, _SHOWN)
        yield f"{shown}: a cell holds the values of several instances, whose sum nothing tells, so not known"
    if keep is not None:
        missing = [f"{name} ({number})" for name, number in remarks.missing.items()]
        if missing:
            yield f"cells without a number, by metric: {few(missing, _SHOWN)}; these are not known"
    # Shares count nothing, nor do totals that rates do not give for any row, for lack of cycles, say.
    countable = [
        name
        for table in tables
        for name in table.units
        if table.units[name] != PERCENT and not (name.endswith(TOTAL) and np.isnan(table.counters[name]).all())
    ]
    if not tables or _counts_work(countable):
        return
    metrics = [name for name in remarks.metrics if name not in derived.TIMES]
    names = sorted(metrics, key=lambda name: name.startswith(_ASIDE))
    if not names:
        yield "the log has no metric but times; `eprof counters` lists what to ask ncu for with --metrics"
        return
    rates = [name for name in names if not name.startswith(_ASIDE) and _RATE.search(name)]
    only = when(rates, f"{len(rates)} are percentages or rates a cycle, which are no counts; ")
    yield (
        f"none of the log's {len(names)} metrics is one that eprof counts with ({only}it has {few(names, _FEW)}); "
        "`eprof counters` lists what to ask ncu for with --metrics"
    )


def notes_of_lines(tables: Sequence[Table], remarks: Remarks, is_page_scaled: bool) -> Iterator[str]:
    """Yields notes on counters of ncu's printed logs. is_page_scaled: a note already says that its page rounds."""
    is_summary = any(table.kind == SUMMARY for table in tables)
    if is_summary:
        yield "totals of a summary are its averages times the invocations; averages are rounded"
    averages: dict[str, None] = {}  # of several launches, and so no totals
    for table in tables:
        several = table.rows.launches > 1
        for name in table.units:
            if name.endswith(TOTAL) and np.isnan(table.counters[name][several]).any():
                averages[name.removesuffix(TOTAL)] = None
    if averages and is_summary:
        yield (
            f"{few(list(averages), _SHOWN)}: a summary has only the mean rate of launches, which tells no total; "
            "print the log without --print-summary"
        )
    if remarks.twice:
        yield f"{few(remarks.twice, _FEW)}: told twice for one launch, with two values; the first is used"
    if remarks.scaled and not is_page_scaled:
        yield (
            f"printed in scaled units, so rounded, and 0 may stand for a few: {few(remarks.scaled, _FEW)}; "
            "`--csv --page raw --print-units base` writes them whole"
        )
