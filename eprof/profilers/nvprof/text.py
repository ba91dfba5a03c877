"""nvprof's tables for people, made without --csv: fixed-width text."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from eprof.base.text import pattern, when
from eprof.profilers.nvprof.sections import SummarySection, TraceSection, UsageSection, WideSection, is_kernel
from eprof.profilers.nvprof.tables import (
    DEVICE,
    EVENTS,
    IGNORED,
    METRICS,
    SUMMARY,
    TRACE,
    WIDE,
    Header,
    NvprofStore,
    OpenTable,
)
from eprof.readers.cells import OLD_RATES, SECONDS, cells, seconds, shows_wrong
from eprof.readers.gaps import FAULTS

# A program may print very long lines: no pattern here may try the places of one over and over.
# Some terminals join lines that fill their width, so the device may stand behind the header, and the kernel behind it.
COUNTERS = pattern(r"\s*+Invocations\s+(Metric|Event) Name\s++(?:.*\s)?Min\s++Max\s++Avg(\s+Total)?\s*+(Device \".*)?")
_DEVICE = pattern(r'\s*+Device "([^"]*+)"(?:\s*+|\s++(Kernel: .*))')
KERNEL = pattern(r"\s++Kernel: (.*)")
_INSTANCES = pattern(r"\[([^\[\]]*+)\]")
_USAGE = pattern(r"\s*(?:Type\s+)?Time\(%\)\s+Time\s+Calls((?:\s+(?:Avg|Min|Max))*+)\s+Name\s*")
_TRACE = pattern(r"\s*Start\s+Duration\s+Grid Size\s.*\sName\s*")
_API_TRACE = pattern(r"\s*Start\s+Duration\s+(?:Unified Memory\s+)?Name\s*")
_WIDE = pattern(r"\s*Device\s+Context\s+Stream\s+Kernel\s+\S.*")
_COLUMN = pattern(r"\S+(?: \S+)*")
_UNIFIED = pattern(r"\s*Count\s+Avg Size\s+Min Size\s.*\sName\s*")
_PAGES = pattern(
    r"\s+(?P<count>\d{1,12})(?:\s+(?:-|[\d.]+[A-Za-z]+)){3}\s+(?P<size>\S+)\s+(?P<time>\S+)\s+(?P<name>\S.*)"
)
_OF_PAGES = {"Host To Device": "HtoD", "Device To Host": "DtoH", "Gpu page fault groups": FAULTS}
_HEADERS = (COUNTERS, _USAGE, _TRACE, _API_TRACE, _WIDE, _UNIFIED)
_FIRST = ("Invocations", "Type", "Time", "Start", "Count", "Device ")  # words of these
_LEVEL = (pattern(r"[A-Z][a-z]+"), pattern(r"\(\d+\)"))
# A row of a summary up to its calls; then come as many values as the header has columns, and the name.
_USAGE_ROW = (
    r"(?:\s*+(?P<type>[A-Z][A-Za-z ()]*+):)?\s++(?P<share>[\d.]++)%?\s++(?P<time>\S++)\s++(?P<calls>\d{{1,12}}+)"
    r"(?P<values>(?:\s++\S++){{{values}}})\s++(?P<name>\S.*)"
)
METRICS_FOLLOW = "Invocations Metric Name Metric Description Min Max Avg"  # where the header was left out
_TYPE = pattern(r"\s*+(GPU activities|API calls):\s*+")
_BARE_ROW = pattern(r"\s*+(?:GPU activities|API calls):\s++[\d.]++%\s.*")
_NO_NAME = (
    "a trace made without --csv cuts off the names of devices; the device is that of other logs, else the only one "
    "whose name begins so"
)
_UNITS_ROW = pattern(r"\s*%\s+(ns|us|ms|s)\s+(ns|us|ms|s)\s+.*")  # the second is that of Avg, and so of the others
_TRACE_UNITS = pattern(r"\s*(ns|us|ms|s)\s+(ns|us|ms|s)(?:\s(?:[KMGT]?B(?:/s)?|\s)++)?")


class TextSection(ABC):
    """An open table of nvprof's text: takes whole lines, and gives their fields to a table as of CSV."""

    def __init__(self, table: OpenTable) -> None:
        self.store = table.store
        self._table = table

    @property
    def is_in_kernels(self) -> bool:
        """Whether the latest row in nvprof's text was a kernel's."""
        return self._table.is_in_kernels

    @abstractmethod
    def takes_row(self, line: str) -> bool:
        """Take a line of nvprof's text if it is a row of this table; returns False, with nothing taken, if not."""

    def takes_blank(self, line: str) -> bool:
        """Take a blank line of nvprof's text if no row came before: editors may leave some; whether it was taken."""
        return not self._table.rows

    def close(self) -> None:
        """The table of nvprof's text ends here: hand over what was taken."""
        self._table.close()


class TextCounters(TextSection):
    """nvprof's summary of metrics or events in text: `Device "..."`, `Kernel: ...`, then a row a counter."""

    def __init__(self, run: int, store: NvprofStore, header: re.Match[str]) -> None:
        columns = ["Device", "Kernel", "Invocations", f"{header[1]} Name", "Avg", *["Total"] * bool(header[2])]
        self._values = len(columns) - 2  # these are Min, Max, Avg and maybe Total
        kind = {"Event": EVENTS, "Metric": METRICS}[header[1]]
        self._described = kind == METRICS
        self._counters = SummarySection(Header(kind, tuple(columns)), run, store)
        self._counters.needed = self._counters.needed[1:]  # the line with the device may have been left out
        super().__init__(self._counters)
        self._device = self._kernel = ""
        if header[3]:
            self.takes_row(header[3])

    def takes_row(self, line: str) -> bool:
        """Take a line of nvprof's text if it names a device or a kernel, or is a row below; returns whether it does."""
        device = _DEVICE.fullmatch(line.rstrip())
        kernel = KERNEL.fullmatch(f"    {device[2]}" if device and device[2] else line.rstrip() + " ")
        if device:
            self._device = device[1]
            if self._device.strip() and not DEVICE.search(self._device):  # somebody may have cut the index off
                name = self._device.strip()
                self._device = f"{name} (0)"
                self.store.note(f"device `{name}` has no index; it is taken for the first, (0)")
        if device or kernel:
            self._kernel = ""
            if kernel:
                self._kernel = kernel[1].rstrip()
            if line.startswith("\tKernel: "):
                self._counters.rates = OLD_RATES  # the versions that put a tab there
            return True
        row = self._fields(line)
        if not row or not self._counters.takes_row([self._device, self._kernel, *row]):
            return False
        self.store.note(
            "a table is text made without --csv: rates, percentages and counts of more than 10 digits are rounded; "
            "profile with --csv"
        )
        return True

    def _fields(self, line: str) -> list[str] | None:
        """Invocations, the counter's name, average and maybe total, of a row of nvprof's text; None: it is no row."""
        # Values by hardware instance are "[ 1 2 3 ]".
        words = _INSTANCES.sub(lambda match: ",".join(match[1].split()), line).split()
        values: list[str] = []
        while words and len(values) < self._values:
            values.append(words.pop())
            if words and _LEVEL[1].fullmatch(values[-1]) and _LEVEL[0].fullmatch(words[-1]):
                values[-1] = f"{words.pop()} {values[-1]}"
        if len(words) < 2 or len(values) < self._values or (len(words) > 2 and not self._described):
            return None
        name = " ".join(words[1:4]) if words[3:4] == ["instances)"] else words[1]
        cells = values[::-1]
        wrong = [value for value in cells if shows_wrong(value)]
        return [words[0], name, *(wrong[:1] * (len(cells) - 2) or cells[2:])]


class TextUsage(TextSection):
    """nvprof's summary in text of the GPU's work, or of API calls. columns: of values, between calls and the name."""

    def __init__(self, run: int, store: NvprofStore, of_api: bool, columns: Sequence[str]) -> None:
        self._row = re.compile(_USAGE_ROW.format(values=len(columns)))
        self._type = "API calls" if of_api else "GPU activities"
        header = Header(SUMMARY, ("Type", "Time(%)", "Time", "Calls", *columns, "Name"))
        self._usage = UsageSection(header, run, store)
        self._usage.takes_units(["", "%", "s", "", *["s"] * len(columns), ""])
        super().__init__(self._usage)
        self._units: tuple[float | None, float | None] = None, None

    def takes_row(self, line: str) -> bool:
        """Take a line of nvprof's text if it is a row of a summary, a type broken off it, or units; whether it is."""
        units = _UNITS_ROW.fullmatch(line)
        if units:
            self._units = SECONDS[units[1]], SECONDS[units[2]]
            return True
        if not self._usage.rows and (alone := _TYPE.fullmatch(line)):
            self._type = alone[1]
            return True
        row = self._row.fullmatch(line)
        if row is None or np.isnan(time_s := seconds(row["time"], self._units[0])):
            return False
        self._type = row["type"] or self._type
        if self._type == "GPU activities":
            self.store.note("a table is text made without --csv: times are rounded to 4 to 7 digits")
        values = [repr(seconds(value, self._units[1])) for value in row["values"].split()]
        return self._usage.takes_row([self._type, row["share"], repr(time_s), row["calls"], *values, row["name"]])


def _in_bytes(text: str) -> str:
    """A size or a rate of nvprof's text in bytes (a K is 1024), as text; "" if it is none."""
    (value,), _ = cells([text.removesuffix("/s") + "/s"])
    return when(value >= 0, repr(float(value)))


_SIZES = ("Size", "Throughput", "Unified Memory")


class TextTrace(TextSection):
    """nvprof's GPU trace in text, which cuts off names of devices: one is known only if its index is still there."""

    def __init__(self, run: int, store: NvprofStore, header: str) -> None:
        names = ("Start", "Duration", "Grid X", *_SIZES, "SrcMemType", "DstMemType", "Device", "Name")
        self._launches = TraceSection(Header(TRACE, names), run, store)
        self._launches.rounded = 1e-4  # five digits
        self._launches.device_of = store.device_of
        self._launches.takes_units(["s", "s", "", "B", "B/s", "B", "", "", "", ""])
        super().__init__(self._launches)
        self._columns = re.split(r"\s{2,}", header.strip())
        self._has_all = {"Duration", "Grid Size", "Name"} <= set(self._columns)
        self._units: tuple[float | None, float | None] = None, None

    def takes_row(self, line: str) -> bool:
        """Take a line of nvprof's text if it is a row of a trace, fields two blanks apart, or units; whether it is."""
        if not self._launches.rows and (units := _TRACE_UNITS.fullmatch(line)):
            self._units = SECONDS[units[1]], SECONDS[units[2]]
            return True
        fields = re.split(r"\s{2,}", line.strip(), maxsplit=len(self._columns) - 1)
        if not self._has_all or len(fields) != len(self._columns) or np.isnan(seconds(fields[0], self._units[0])):
            return False
        row = dict(zip(self._columns, fields, strict=True))
        time_s = seconds(row["Duration"], self._units[1])
        if np.isnan(time_s) and row["Duration"] != "-":
            return False
        self._launches.rows += 1
        device, grid = row.get("Device", ""), row["Grid Size"].removeprefix("-")
        if grid and is_kernel(row["Name"]) and not DEVICE.search(device):
            self.store.note(_NO_NAME)
            self.store.tell_cut_off(self._launches.run, device)
        start_s = seconds(fields[0], self._units[0])
        time = when(time_s >= 0, repr(time_s))
        sizes = (_in_bytes(row.get(column, "")) for column in _SIZES)
        memory = row.get("SrcMemType", ""), row.get("DstMemType", "")
        self._launches.take([repr(start_s), time, grid, *sizes, *memory, device, row["Name"]])
        self._launches.is_in_kernels = bool(grid) and is_kernel(row["Name"])
        self.store.note("a trace is text made without --csv: times are rounded to 4 or 5 digits")
        return True


class TextWide(TextSection):
    """nvprof's GPU trace with counters in text: columns end where headings do. It cuts off names, of kernels too."""

    def __init__(self, run: int, store: NvprofStore, header: str) -> None:
        headings = list(_COLUMN.finditer(header.rstrip()))
        self._ends = [heading.end() for heading in headings]
        self._launches = WideSection(Header(WIDE, tuple(heading[0] for heading in headings)), run, store)
        # The device and the kernel may be cut off.
        self._launches.needed = tuple(enumerate((str.strip, str.isdecimal, str.isdecimal, str.strip)))
        super().__init__(self._launches)

    def takes_blank(self, line: str) -> bool:
        """Take a blank line of nvprof's text, if no row came before, as the row of units; whether it was taken."""
        return super().takes_blank(line) and self.takes_row(line)

    def takes_row(self, line: str) -> bool:
        """Take a line of nvprof's text if it is a row of a trace with counters, or of units or blank; whether it is."""
        line = line.rstrip()
        if any(line[end : end + 1].strip() for end in self._ends) or len(line) > self._ends[-1]:
            return False
        fields = [line[start:end].strip() for start, end in zip([0, *self._ends], self._ends, strict=False)]
        if not self._launches.takes_row(fields):
            return False
        if self._launches.rows:
            self.store.note(
                "a trace is text made without --csv: it cuts off the names of kernels, so those that begin alike are "
                "taken for one; profile with --csv"
            )
            if not DEVICE.search(fields[0]):
                self.store.note(_NO_NAME)
        return True


class TextOthers(TextSection):
    """nvprof's tables in text that tell no kernels: Unified Memory totals, API calls."""

    def takes_row(self, line: str) -> bool:
        """Whether a line of nvprof's text is a row of totals, whose pages and faults are kept, or an API call."""
        if row := _PAGES.fullmatch(line):
            time_s = seconds(row["time"])
            way = _OF_PAGES.get(row["name"].strip())
            if way and not np.isnan(time_s):
                moved = np.array([int(row["count"]), time_s, float(_in_bytes(row["size"]) or 0)])
                self.store.pages[way] = self.store.pages.get(way, 0.0) + moved
            return True
        return re.fullmatch(r"\s*[\d.]+(?:ns|us|ms|s)\s+(?:-|[\d.]+(?:ns|us|ms|s))\s+\S.*", line) is not None


def is_header(line: str) -> bool:
    """Whether a line opens a table of nvprof's text."""
    return line.lstrip().startswith(_FIRST) and any(pattern.fullmatch(line) for pattern in _HEADERS)


def is_bare_row(line: str, in_log: bool) -> bool:
    """Whether a line begins a part of nvprof's summary without its header: a first row; of a known log, its type."""
    return _BARE_ROW.fullmatch(line) is not None or in_log and _TYPE.fullmatch(line) is not None


def open_table(line: str, run: int, store: NvprofStore, of_api: bool) -> TextSection:
    """The table of nvprof's text that the header `line` opens; `of_api` if the log said that API calls follow."""
    counters = COUNTERS.fullmatch(line)
    if counters:
        return TextCounters(run, store, counters)
    usage = _USAGE.fullmatch(line)
    if usage or is_bare_row(line, True):
        columns = usage[1].split() if usage else ["Avg", "Min", "Max"]
        return TextUsage(run, store, of_api, columns)
    if _TRACE.fullmatch(line):
        return TextTrace(run, store, line)
    if _WIDE.fullmatch(line):
        return TextWide(run, store, line)
    return TextOthers(OpenTable(Header(IGNORED, ()), run, store))
