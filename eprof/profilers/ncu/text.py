"""Nsight Compute's page for reading (made without --csv): its tables as rows like those of `ncu --csv`.

    [4711] app@127.0.0.1
      kernel(float *) (2, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.0
        Section: Command line profiler metrics
        ------------------- ----------- ------------
        Metric Name         Metric Unit Metric Value
        ------------------- ----------- ------------
        dram__bytes_read.sum      Mbyte         1.05

Up to 2021 the tables had no line of names, and the kernel's line the date instead of grid, device and CC. Summaries
(`--print-summary`) have `Invocations 3` in the kernel's line and three columns of values; up to 2022 the line is
`kernel, Block Size 64, Grid Size 2, Device 0, 3 invocations`, once for each section. A cell that is longer than its
column goes on in the lines below, whose other cells are empty.

What ncu's rules say in sentences becomes rows of metrics, as `counters/ncu/labels.toml` has it; in tables, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct, field

from eprof.base.text import counted, pattern
from eprof.profilers.ncu import LONG, SUMMARY, VALUE
from eprof.profilers.ncu.sheet import GPU_NAME, labels_of_page
from eprof.readers.cells import unit_of
from eprof.readers.sections import CsvSection, Piece, below

COLUMNS = {
    LONG: ["ID", "Process ID", "Process Name", "Kernel Name", "Grid Size", "Block Size", "Stream", "Device", "CC"],
    SUMMARY: ["Block Size", "Process ID", "Process Name", "Kernel Name", "Stream", "Device", "CC", "Invocations"],
}
_METRIC = ("Metric Name", "Metric Unit")
_PROCESS = pattern(r"\s*\[(\d{1,10})\] (\S.*)@\S+\s*")
_DEVICE = pattern(r"\s*Device (\d{1,4})(?:, CC (\d{1,3}\.\d))?\s*")
_TAIL = pattern(
    r"(?: (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)))?(?:, \d{4}-\w{3}-\d\d \d\d:\d\d:\d\d)?"
    r"(?P<about>(?:, [A-Za-z][A-Za-z ]* [\d.]+)+)\s*$"
)
_OLD_SUMMARY = pattern(
    r", Block Size (\d{1,9}), Grid Size (\d{1,12})(?:, Device (\d{1,4}))?, (\d{1,12}) invocations\s*$"
)
_ABOUT = pattern(r"([A-Za-z][A-Za-z ]{0,40}) ([\d.]+)")
_RULER = pattern(r"\s*---+(?: ---+){2,}\s*")
_COLUMN = pattern(r"---+")
_HEADER = pattern(r"\s*Metric Name\s+Metric Unit\s+(?:Metric Value|Minimum\s+Maximum\s+Average)\s*")
_RULE = pattern(r"\s*(?:OPT|INF|WRN|ERR) .*|\s*---+ ---+\s*")
_SECTION = pattern(r"\s*(?:Section|Table Name) ?: .*")
_LOOSE = pattern(r"\s*(?=\w+?__[\w.])([\w.]++)\s+(?:([A-Za-z%][\w/%]*)\s+)?([\d.,]+)\s*")
_REMARKED = pattern(r"^([\d.,]++)\s++(?:#|//|<-|(?<=\s\s)[^\s\d(]).*")  # a value, and what somebody wrote behind it
_UNRULED = pattern(r"\s*(\S(?:\S| (?! ))*)\s{2,}(?:([A-Za-z%][\w/%]*)\s+)?([\d.,]+)\s*")
_NO_VALUE = pattern(r"[a-z][a-z0-9]*_[a-z0-9_.]+\s*")  # a metric whose value is an empty text
_COMMENT = pattern(r"^\s*(?://+|#+|\*|>)(?=\s|$)")
_NEAR = 160  # characters before `, Context` that grid, block and date may take
_LONG_COLUMNS = 3
_KINDS = {_LONG_COLUMNS: LONG, 5: SUMMARY}
_ATTRIBUTE = "device__attribute_"

Metric = tuple[str, str, str]


class Page(Struct):
    """Takes ncu's text page line by line, and has its tables. A kernel's line begins a launch, or a row of a summary.

    last: the row that may go on: the pieces of its name, its unit, the pieces of its value. first: the metric that
    launches of the run begin with; is_first: the next one is a launch's first. program: of the first process.
    in_section: rows of ncu's labels may follow without rulers, as on a page that lost these.
    """

    first_line: int = 0
    launches: int = 0
    orphans: int = 0
    launch: tuple[str, ...] | None = None
    kind: str = LONG
    process: tuple[str, str] = ("0", "")
    processes: int = 0
    program: str = ""
    device: tuple[str, str] = ("", "")
    name: str = ""
    first: str = ""
    is_first: bool = False
    last: tuple[list[str], str, list[str]] | None = None
    spans: list[tuple[int, int]] | None = None
    begun: bool = False
    in_section: bool = False
    advice: list[str] = field(default_factory=list)
    is_scaled: bool = False
    rows: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: {LONG: [], SUMMARY: []})

    def feed(self, number: int, text: str) -> bool:
        """Take a line if it is of ncu's text page; returns False, with nothing taken, if not."""
        if not text.strip():
            self.finish()
            self.spans = None
            return False
        if _RULER.fullmatch(text):  # above and below the names of the columns, and below the last row
            self.first_line = self.first_line or number
            self.finish()
            is_last = self.begun and self.spans is not None
            self.spans = None if is_last else [dashes.span() for dashes in _COLUMN.finditer(text)]
            self.begun = False
        elif self.spans is not None and (_HEADER.fullmatch(text) or self._row(text) or self._goes_on(text)):
            self.begun = self.begun or not _HEADER.fullmatch(text)
        elif not self._head(text):
            return self._is_aside(number, text)
        return True

    def _is_aside(self, number: int, text: str) -> bool:
        """Whether a line of ncu's text is a section's title, names of columns, or advice that follows a table."""
        if _HEADER.fullmatch(text):
            self.first_line = self.first_line or number
            return True
        if self.launch is None:
            return False
        if _SECTION.fullmatch(text):
            self.finish()
            self.in_section = True
            return True
        row = _UNRULED.fullmatch(text) if self.in_section else None
        if row is not None and _is_label(row[1]):
            self.finish()
            self.last = ([row[1]], row[2] or "", [row[3]])
            return True
        if _RULE.fullmatch(text):
            self.finish()
        elif not (self.advice and text.startswith("    ")):
            self.finish()
            return False
        self.advice.append(text.strip())
        return True

    def _row(self, text: str) -> bool:
        """Take a line of ncu's page if it is a row of the open table, or a metric without a value; whether it is."""
        assert self.spans is not None
        if len(self.spans) not in _KINDS:
            return False
        start = self.spans[0][0]
        cells = below(text.rstrip(), self.spans)
        loose = _LOOSE.fullmatch(text.rstrip()) if cells is None and len(self.spans) == _LONG_COLUMNS else None
        if loose is not None:  # a name that is longer than the column
            cells = list(loose.groups(default=""))
        if cells is not None and cells[0] and cells[-1]:
            self.finish()
            self.last = ([cells[0]], cells[1], [_REMARKED.sub(r"\1", cells[-1])])
            return True
        if _NO_VALUE.fullmatch(text, start) is None or text[:start].strip():
            return False
        self.finish()
        return True

    def _goes_on(self, text: str) -> bool:
        """Take a line of ncu's page if all it has is the rest of a cell of the row above; returns whether it does."""
        assert self.spans is not None
        if self.last is None:
            return False
        ends = [*(start for start, _ in self.spans[1:]), len(text)]
        cells = [text[start:end].strip() for (start, _), end in zip(self.spans, ends, strict=True)]
        filled = [place for place, cell in enumerate(cells) if cell]
        start = self.spans[0][0]
        if text[:start].strip() or filled not in ([0], [len(cells) - 1]):
            return False
        names, _, values = self.last
        if filled == [0]:
            name = "".join(names)
            if not start or "(" not in name or name.endswith(")"):
                return False  # not the rest of a label and the name in brackets, but a metric without a value
        (names if filled == [0] else values).append(cells[filled[0]])
        return True

    def finish(self) -> None:
        """Add the row of ncu's page that might go on, and metrics of advice, to `rows`, if a launch has begun."""
        if self.advice:
            if self.launch is not None and self.kind == LONG:
                self.rows[LONG] += [(*self.launch, *metric) for metric in of_advice(" ".join(self.advice))]
            self.advice = []
        if self.last is None:
            return
        names, unit, values = self.last
        name, value = _joined(names), _joined(values)
        kind = _KINDS.get(len(self.spans or ()), LONG)
        self.last = None
        if self.launch is not None and kind == self.kind:
            # A further run of ncu begins where a launch begins with another metric, if no lines name processes: every
            # launch of a run has the same sections, and excerpts of several runs often lost these lines.
            if self.is_first and not self.process[1]:
                self.is_first = False
                if self.first and name != self.first:
                    self.processes += 1
                    self.process = str(self.processes), ""
                self.first = name
                self.launch = self.launch[0], *self.process, *self.launch[3:]
            self.rows[kind].append((*self.launch, name, unit, value))
            self.is_scaled = self.is_scaled or unit_of(unit).factor != 1
        elif self.launch is not None or not name.startswith(_ATTRIBUTE):
            self.orphans += 1
        elif name == GPU_NAME:
            self.name = value

    def _head(self, text: str) -> bool:
        """Take a line of ncu's page if it names a process, a device or a kernel for what follows; whether it does."""
        process, device = _PROCESS.fullmatch(text), _DEVICE.fullmatch(text)
        if process is None and device is None:
            return self._kernel(text)
        self.finish()
        self.device, self.name, self.launch = ("", ""), "", None
        if device is not None:
            self.device = device[1], device[2] or ""
        if process is not None:
            self.process = process[1], process[2]
            self.program = self.program or process[2]
            self.processes += 1
        return True

    def _kernel(self, text: str) -> bool:
        """Take a line of ncu's page if it names a kernel, and so begins a launch or a summary; whether it does."""
        if text.rstrip().endswith(" invocations"):
            return self._old_summary(text)
        place = max(text.rfind(", Context "), text.rfind(", Invocations "))
        tail = _TAIL.search(text, max(0, place - _NEAR)) if place >= 0 else None
        if tail is None:
            return False
        name = text[: tail.start()].strip()
        about = dict(_ABOUT.findall(tail["about"]))
        is_summary = "Invocations" in about
        if not name or not (is_summary or {"Context", "Stream"} <= set(about)):
            return False
        device = (about.get("Device", ""), about.get("CC", ""))
        if is_summary and "Device" not in about:
            device = self.device
        launch, where = (str(self.launches), *self.process, name), (about.get("Stream", ""), *device)
        if is_summary:
            self._launch(SUMMARY, (*launch, *where, about["Invocations"]))
        else:
            self._launch(LONG, (*launch, tail["grid"] or "", tail["block"] or "", *where))
        return True

    def _old_summary(self, text: str) -> bool:
        """Take a line of ncu's page if it names a kernel as summaries of ncu up to 2022 do; returns whether it does."""
        tail = _OLD_SUMMARY.search(text, max(0, len(text) - _NEAR))
        if tail is None or not text[: tail.start()].strip():
            return False
        block, grid, number, invocations = tail.groups()
        # The line comes again with each section: the same numbers, the same kernel.
        kernel = (f"{self.processes}: {block} x {grid}", *self.process, text[: tail.start()].strip(), "")
        device = self.device if number is None else (number, "")
        self._launch(SUMMARY, (*kernel, *device, invocations))
        return True

    def _launch(self, kind: str, launch: tuple[str, ...]) -> None:
        """Begin a launch of ncu's page, or a row of a summary (`kind`), with the cells that all its metrics share."""
        self.finish()
        self.launch = launch
        self.is_first = True
        self.in_section = False
        self.kind = kind
        self.launches += 1
        self.spans = None
        if self.name:
            self.rows[kind].append((*launch, GPU_NAME, "", self.name))

    def take(self, kind: str) -> Piece | None:
        """Give the rows of one kind of ncu's text page that came since the last call; None if there are none."""
        rows = self.rows[kind]
        self.rows[kind] = []
        return {place: list(column) for place, column in enumerate(zip(*rows, strict=True))} or None

    def notes(self) -> Iterable[str]:
        """Sentences for a log that has ncu's text page."""
        if self.is_scaled:
            yield (
                "ncu's page for reading rounds scaled numbers to two decimals; "
                "`--csv --page raw --print-units base` writes them whole"
            )
        if self.orphans:
            rows = counted(self.orphans, "row is", "rows are")
            yield f"{rows} below no line of ncu's page that names their kernel, so not read"

    def section(self, kind: str) -> CsvSection:
        """The header that the rows of ncu's text would have in a CSV."""
        return CsvSection(kind, [*COLUMNS[kind], *_METRIC, VALUE[kind]], first_line=self.first_line)


def uncommented(text: str) -> str:
    """A line of ncu's text without the sign of a comment or quotation before it; what follows stays where it is."""
    return _COMMENT.sub(lambda sign: " " * len(sign[0]), text)


def _is_label(text: str) -> bool:
    """Whether a text is a label of ncu's details page."""
    said = labels_of_page()
    return text in said["label"] or text in said["rate"]


def _joined(pieces: Sequence[str]) -> str:
    """A cell of ncu's text that was broken over lines, in the midst of words too."""
    whole = [pieces[0]]
    for before, piece in zip(pieces, pieces[1:], strict=False):
        whole += [" " if before.endswith((";", ":", ",")) or piece.startswith("(") else "", piece]
    return "".join(whole)


@cache
def _sentences() -> list[tuple[str, re.Pattern[str], list[Metric]]]:
    """For each sentence of ncu's that tells metrics: a text that it contains, its pattern, templates of the metrics."""
    return [
        (sentence["sign"], re.compile(sentence["pattern"]), [tuple(metric.values()) for metric in sentence["metrics"]])
        for sentence in labels_of_page()["sentence"]
    ]


def of_advice(advice: str) -> list[Metric]:
    """(name, unit, value) of each metric that the sentences of ncu's rules in `advice` tell."""
    told = []
    for sign, form, metrics in _sentences():
        if sign in advice and (found := form.search(advice)):
            words = found.groupdict()
            told += [(name.format(**words), unit, value.format(**words)) for name, unit, value in metrics]
    return told


def lines_with_advice(section: CsvSection, lines: Sequence[str]) -> Sequence[str]:
    """The lines of ncu's table of launches; a line with a rule's sentence that tells metrics becomes rows of these.

    Such rows end where rows with metrics do, maybe with a delimiter behind: rows of one length are read sooner.
    """
    rows = []
    end = max(section.places((*section.needed, section.part or "")), default=-1) + 1
    ending = section.delimiter * any(line.endswith(section.delimiter) for line in lines[:9])
    for line in lines:
        metrics = of_advice(line)
        fields = section.split(line) if metrics else []
        if len(fields) < section.least:
            rows.append(line)
            continue
        for metric in metrics:
            for place, cell in zip(section.places(section.needed), metric, strict=True):
                fields[place] = cell
            told = ('"' + field.replace('"', '""') + '"' for field in fields[:end])
            rows.append(section.delimiter.join(told) + ending)
    return rows


def block_with_advice(section: CsvSection, block: bytes) -> bytes:
    """As `lines_with_advice`, for the bytes of whole lines. Sentences stand in columns of rules."""
    has_rules = any(column.startswith("Rule ") for column in section.columns)
    signs = {sign.encode() for sign, _, _ in _sentences()}
    if not (has_rules and any(sign in block for sign in signs)):
        return block
    lines = block.decode("utf-8", "replace").split("\n")
    return "\n".join(lines_with_advice(section, lines)).encode()
