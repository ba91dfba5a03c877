"""Nsight Compute, `ncu`: how it is started, and how its tables, pages and reports are read, and here recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eprof.base.signs import LEAST, Signs
from eprof.base.text import pattern
from eprof.nvidia import KIND

if TYPE_CHECKING:
    from eprof.base.arrays import Columns
    from eprof.logs.log import Launches

# A row a metric of a launch; a row a launch, on the raw page; a row a metric of a kernel; and what is no table of text.
LONG, RAW, SUMMARY = "ncu-long", "ncu-raw", "ncu-summary"
KINDS = (LONG, RAW, "ncu-report", SUMMARY, "ncu-metrics")
VALUE = {LONG: "Metric Value", SUMMARY: "Average"}  # the column of the values
REPORT = b"NVR\0"  # a report file begins so
SLOWED = (
    "time is ncu's own (it may lock clocks to their base and flush caches), so estimated: prefer a log of times made "
    "with `nsys stats`, or --time"
)

# Starts of lines that ncu or nsys write, beside the header lines of their tables.
_SIGN = pattern(
    rb'(?:^|\n)(?:[^\n]*Process ID"?[,;\t] ?"?(?:Process|Kernel) Name'
    rb'|[^\n]{0,300}Kernel Name"?[,;\t][^\n]{0,300}Metric Name'
    rb'|(?:[#/*>]+ *)?==(?:PROF|ERROR|WARNING)== |"?Time ?\(%\)"?,"?Total Time \('
    rb'|"?Start ?\(\w+\)"?,"?Duration ?\(\w+\)"?,"?CorrId"?,|(?:"?PID"?,"?TID"?,"?DevId"?,)?"?Count"?,"?QCount"?,'
    rb"|[#/*> \t|]*(?:Time ?\(%\)[ |]+Total Time \(|(?<=[| ])Time *\| *Total Time *\|"
    rb"|Start ?\(\w+\)[ |]+Duration ?\(\w+\)[ |]+CorrId )"
    rb"|[ \t]*CUDA Kernel Statistics \(nanoseconds\)"
    rb"|[ \t]*(?:PID +TID +DevId +)?Count +QCount "
    rb"|unrecognised option '|the argument for option '|Invalid option --|[ \t]*Note: The shown averages are calc"
    rb'|"?(?:Address|Line No)"?(?:,| {2,})"?Source"?[, \r\n]|"?Launch Attribute"?(?:,| +)"?Value'
    rb"|[^\n]*, Context \d+, Stream \d+|[#/*> \t]*Metric Name +Metric Unit +(?:Metric Value|Minimum))"
)
_NVPROF = pattern(rb'(?:^|\n)(?:==\d+== |"?(?:Device|Start|Time\(%\)|Type)"?,)')
_NSIGHT_PYTHON = pattern(rb"Annotation,(?:Value,)?Metric,[^\n]*\bKernel,")


def is_in(block: bytes) -> bool:
    """Whether the first block of a log has a sign of ncu or nsys before any of nvprof."""
    sign = _SIGN.search(block)
    return sign is not None and _NVPROF.search(block, 0, sign.start()) is None


def _reader_of(block: bytes) -> str | None:
    """The module for a log by its first block: `report`, `handed_on` (nsight-python's CSV), `reader`, or None."""
    if block.startswith(REPORT):
        return "report"
    if _NSIGHT_PYTHON.match(block):
        return "handed_on"
    return "reader" if is_in(block) else None


def _aside() -> frozenset[str]:
    from eprof.profilers.ncu.derived import TIMES

    return TIMES


def _lower_bounds(launches: Launches) -> Columns:
    """The marks of ncu's counters, with MISSING on totals that were made at the least possible clock."""
    from eprof.base.vocabulary import Mark  # late: it brings msgspec

    counters = launches.counters
    is_least = [name.endswith(LEAST) for name in counters.names]
    return launches.marked(Mark.MISSING, (counters.values > 0) & is_least).marks


SIGNS = Signs(
    reader_of=_reader_of,
    slowed=frozenset(KINDS),
    slowed_note=SLOWED,
    lower_bounds=_lower_bounds,
    unions=frozenset(KINDS),
    complete=frozenset((RAW, "ncu-report")),
    timed=frozenset((KIND, "nsys-trace")),  # of nsys, beside its own
    aside=_aside,
    strays="reader",
    frames="handed_on",
    first_device=pattern(r"ncu device 0\b"),
    capabilities=(7.0, float("inf")),
    generations="from Volta on",
    commands={
        "streams": "ncu --csv --page raw",
        "nvtx": "ncu --csv --nvtx",
        "counts": "ncu --set full --csv --page raw --log-file counts.csv",
    },
)
