"""perf stat of Linux: how it is started, and how its counts are read.

Here: how they are recognised, also inside a README or behind other output; and the names of events.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile

from eprof.base.signs import Signs
from eprof.base.text import pattern

KIND, UPROF = "perf-stat", "perf-uprof"
NOT_KNOWN = r"<not counted>|<not supported>"
EVENT = r"(?:[A-Za-z][\w-]*/[^/\n]*/\w*|[A-Za-z][\w.:@-]*)(?: \[\w+\])?"
# Of any other word tables of measured programs would be taken for perf's: 12,sgemm,input0,500,600,8.15.
UNITS = r"msec|nsec|ns|Joules|[KMGT]?i?B(?:ytes)?(?:/s)?|Watts|[KMG]?Hz|cycles|[%CVWJ]"
# A row of `perf stat -x SEP`, from the value on: before it stand a time, a CPU; after it a metric.
ROW = pattern(
    rf"(?<![\w.])(?P<value>[0-9]+(?:[.,][0-9]+)?|{NOT_KNOWN})(?P<sep>[^\w.<>\"'-]{{1,3}}?)(?P<unit>{UNITS}|)(?P=sep)"
    rf"(?P<event>{EVENT})(?P=sep)(?P<more>.*?(?P=sep))??(?P<runtime_ns>[0-9]+)(?P=sep)"
    r"(?P<running>100[.,]00|[0-9]{1,2}[.,][0-9][0-9])(?![0-9])"
)
_BLANKS = "[,.'\u2019 \u00a0\u202f\ufffd]"
_NUMBER = rf"[0-9]{{1,3}}(?:{_BLANKS}[0-9]{{2,3}})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)?"
# A row of text. Before its value stand a time, and the place that it is of, and of how many there.
TEXT = pattern(
    rf"[>\s]*+(?:(?P<time>[0-9]+[.,][0-9]{{9}})\s+)?(?:(?P<place>(?:CPU|[SNDC])[0-9][\w-]*|\S+-[0-9]+)\s+(?:(?P<of>[0-9]+)\s+)?)?"
    rf"(?P<value>{_NUMBER}|{NOT_KNOWN})\s+(?:(?P<unit>{UNITS})\s+)?(?P<event>{EVENT})(?:[ \t]+(?P<cgroup>[\w/.:-]+))?"
    r"(?P<rest>\s*(?:[#(\[].*)?)"
)
LONGEST_LINE = 4000
# Events that perf counts by itself or has a word for, or that are spelled as those of a processor are
# (fp_arith_inst_retired.scalar_double): rows of them are perf's also where its header was not pasted.
_OWN = pattern(
    "(?:cpu-|ref-|bus-)?cycles|(?:branch-)?instructions|branch(?:es|-misses|-loads)|cache-(?:misses|references)|"
    "(?:task|cpu)-clock|(?:context-switche|(?:cpu-)?migration|(?:page-|minor-|major-)?fault)s|"
    "(?:stalled|idle)-cycles-(?:front|back)end|(?:l1-[di]cache|llc|[di]tlb|node)-(?:load|store|prefetche?)(?:s|-misses)|"
    r"power(?:_(?:per_)?core)?/energy-[\w-]+/|[a-z]\w*_\w*\.[a-z][\w.]*"
)
_METRIC = pattern(r"#\s+[0-9.,]+ ?%?\s+[A-Za-z/]|\([\s+-]*[0-9.,]+%\s*\)")
_ELAPSED = "seconds time elapsed"
HEADER = "Performance counter stats for "
STARTED = "# started on "
INTERVALS = " counts unit events"
_MARKS = (HEADER.encode(), INTERVALS.encode(), b'"counter-value"')
# perf writes at the start of a file, or behind all that the program wrote.
_LOOK_BYTES = 1 << 16


def _reader_of(block: bytes) -> str | None:
    if b"AMDuProfPcm Report" in block:
        return "uprof"
    return "reader" if _has_sign(block) or is_without_header(block) else None


def _has_sign(block: bytes) -> bool:
    return any(mark in block for mark in _MARKS) or any(map(ROW.search, _lines(block)))


def is_without_header(block: bytes) -> bool:
    """Whether a log begins with rows of perf's text, no header: of two events at least, with a metric or the time."""
    if not any(map(alone, _lines(block))):
        return False
    lines = list(takewhile(lambda line: not _has_sign(line.encode()), _lines(block)))
    rows = list(filter(None, map(alone, lines)))
    is_told = any(_ELAPSED in line for line in lines) or any(_METRIC.match(row["rest"].lstrip()) for row in rows)
    return is_told and len({row["event"] for row in rows}) > 1


def alone(line: str) -> re.Match[str] | None:
    """The row of text that a line is, where it is perf's without a header too; else None."""
    row = TEXT.fullmatch(line[:LONGEST_LINE])
    is_own = row is not None and not row["cgroup"] and _OWN.fullmatch(plain(row["event"])[0])
    return row if is_own else None


def _lines(block: bytes) -> list[str]:
    ends = block[:_LOOK_BYTES] + block[_LOOK_BYTES:][-_LOOK_BYTES:]
    return ends.decode("utf-8", "replace").split("\n")


SIGNS = Signs(reader_of=_reader_of, of_programs=True)

# ----------------------------------------------------------------------------------------------------------------------
# Events: one name for each, and their units.

DURATION = "duration_time"
BYTES_OF = " bytes"  # behind the name of an event that perf prints in such units
_PMU = pattern(r"([\w-]+)/(.*)/\w*|(?P<event>\S+) \[(?P<unit>\w+)\]")
_CORES = pattern(r"cpu|cpu_core|cpu_atom|cpu_lowpower|armv[0-9]+\w*|apple_\w+")
_MODIFIERS = pattern(r":[ukhpPGHSDeIW]+$")
_INSIDE = pattern(r":([ukhpPGHSDeIW]+)/$")
_KERNEL_ONLY = pattern(r".*[:/](?=[pPGHSDeIW]*[kh])[khpPGHSDeIW]+$")


def spelled(event: str) -> str:
    """An event with its modifiers behind the unit, where perf has them inside: `cpu_core/cycles/u` of `:u/`."""
    return _INSIDE.sub(r"/\1", event)


def is_core(unit: str) -> bool:
    """Whether a unit of the processor, by perf's name, is a kind of cores, of which a program uses one at a time."""
    return _CORES.fullmatch(unit) is not None


@cache
def plain(event: str) -> tuple[str, str]:
    """A perf event's plain name, and the unit of the processor that counts it.

    `cpu_core/INST_RETIRED.ANY/u` is "inst_retired.any" on "cpu_core"; channels such as `uncore_imc_3/x/` are all
    `uncore_imc/x/`. An event that is given by numbers keeps its unit: `cpu/event=0xc7,umask=0x10/`. What only
    the kernel did is another count: `instructions:k`.
    """
    name = event.lower()
    if _KERNEL_ONLY.fullmatch(event):
        return name, ""
    inside = _PMU.fullmatch(name)
    if inside is None:
        return _MODIFIERS.sub("", name), ""
    if inside["unit"]:
        return inside["event"], inside["unit"]
    pmu, inner = inside[1], inside[2]
    if "=" not in inner and _CORES.fullmatch(pmu):
        return inner, pmu
    return f"{re.sub('_[0-9]+$', '', pmu)}/{inner}/", pmu
