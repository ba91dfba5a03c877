"""Header lines: which table begins, and where its columns are."""

import csv

from msgspec import Struct

from eprof.base.text import pattern

METRICS, EVENTS, WIDE, TRACE, SUMMARY, IGNORED = (
    "nvprof-metrics-summary",
    "nvprof-events-summary",
    "nvprof-wide-trace",
    "nvprof-gpu-trace",
    "nvprof-gpu-summary",
    "ignored",
)
FOREIGN_NCU, FOREIGN_NSYS = "ncu", "nsys"

WIDE_FIXED = ("Device", "Context", "Stream", "Kernel", "Correlation_ID")
_LONGEST_PREFIX = 3
_MOST_COLUMNS = 5000  # a few hundred counters are all that a GPU has
_PERHAPS = pattern(r'(?:[^,]*,){0,3}"?(?:Device|Start|Time ?\(%\)|Type|ID|Process ID)"?,')
# Columns that a table of the kind must have; the first kind that fits is taken.
_KINDS = (
    (METRICS, {"Device", "Kernel", "Invocations", "Metric Name", "Avg"}),
    (EVENTS, {"Device", "Kernel", "Invocations", "Event Name", "Avg"}),
    (FOREIGN_NCU, {"ID", "Process ID"}),
    (FOREIGN_NCU, {"Process ID", "Process Name"}),
    (FOREIGN_NSYS, {"Time (%)", "Total Time (ns)", "Instances"}),
    (WIDE, {"Device", "Context", "Stream", "Kernel"}),
    (TRACE, {"Start", "Duration", "Device", "Name"}),
    (SUMMARY, {"Time(%)", "Time", "Calls", "Name"}),
    (IGNORED, {"Device", "Count", "Avg Size"}),
    (IGNORED, {"Start", "Duration", "Name"}),
)


class Header(Struct, frozen=True):
    """A header line: `columns` are the table's own, after `prefix` columns that a script put in front of every line."""

    kind: str
    columns: tuple[str, ...]
    prefix: int = 0
    quoted: bool = True

    @property
    def width(self) -> int:
        """How many fields a line below the header has."""
        return self.prefix + len(self.columns)

    def position(self, name: str) -> int | None:
        """Where the header's first column of this name is, counted with the prefix; None if there is none."""
        return self.prefix + self.columns.index(name) if name in self.columns else None

    def at(self, name: str) -> int:
        """`position` of a column that the header of this kind of table always has."""
        return self.prefix + self.columns.index(name)


def split(line: str, delimiter: str = ",") -> list[str]:
    """The fields of one CSV line, a header or a row.

    A line that is none (a field of more than 128 KB) has no fields.
    """
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def find(line: str) -> Header | None:
    """The header that `line` is, or None."""
    if not _PERHAPS.match(line):
        return None
    return of_fields(split(line), quoted='"' in line)


def of_fields(fields: list[str], quoted: bool = True) -> Header | None:
    """The header that these column names make, with up to three columns of a script in front; or None."""
    if len(fields) > _MOST_COLUMNS:
        return None
    names = [field.strip() for field in fields]
    for prefix in range(min(_LONGEST_PREFIX, len(names)) + 1):
        own = names[prefix:]
        for kind, needed in _KINDS:
            if own and own[0] in needed | {"Type"} and needed <= set(own):
                return Header(kind, tuple(own), prefix, quoted)
    return None
