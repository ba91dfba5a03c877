"""The utilisation of the tensor pipe where a log has it only in ncu's advice, as on the default pages.

    Tensor is the highest-utilized pipeline (93.4%) based on elapsed cycles in the workload, ... It's dominated by its
    Tensor (FP) sub-pipeline. ... It executes 16-bit floating point tensor operations.

The rule (HighPipeUtilization.py) prints the value of `sm__pipe_tensor_cycles_active`, so the sentence becomes a row of
that metric. Up to capability 9.0 the highest may be "Shared", in which FP64 and tensor pipes are added up; it counts
as the tensor pipe where the sentence says that tensor work dominates it. That the pipe "executes 16-bit floating
point" is what ncu says of every type.
"""

from collections.abc import Sequence

from eprof.base.text import pattern
from eprof.logs.rows.sections import Section

_SENTENCE = pattern(
    r"\b(?:Tensor(?: \(\w+\))?|(?P<shared>Shared)) is the highest-utilized pipeline \((?P<tens>\d+)\.(?P<tenths>\d)%\) "
    r"based on (?P<cycles>active|elapsed) cycles"
)
_MARK = " is the highest-utilized pipeline ("
_TENSOR_DOMINATES = "dominated by its Tensor"
_PER_MILLE = "‰"  # without a decimal point, which some files write as a comma

Metric = tuple[str, str, str]


def metric(advice: str) -> Metric | None:
    """Name, unit and value of the metric in ncu's sentence on the busiest pipe; None if it is not the tensor pipe."""
    match = _SENTENCE.search(advice)
    if match is None or (match["shared"] and _TENSOR_DOMINATES not in advice):
        return None
    name = f"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_{match['cycles']}"
    return name, _PER_MILLE, match["tens"] + match["tenths"]


def as_metrics(section: Section, lines: Sequence[str]) -> Sequence[str]:
    """Lines of a table of launches, those with ncu's sentence on the busiest pipe as rows of its metric."""
    if not any(_MARK in line for line in lines):
        return lines
    return [_as_metric(section, line) if _MARK in line else line for line in lines]


def block_as_metrics(section: Section, block: bytes) -> bytes:
    """A block of whole lines, those with ncu's sentence on the busiest pipe as rows of its metric."""
    if _MARK.encode() not in block:
        return block
    lines = block.decode("utf-8", "replace").split("\n")
    return "\n".join(as_metrics(section, lines)).encode()


def _as_metric(section: Section, line: str) -> str:
    """A line with ncu's sentence on the busiest pipe as a row of its metric."""
    cells = metric(line)
    fields = section.split(line)
    if cells is None or len(fields) < section.least:
        return line
    for column, cell in zip(section.needed, cells, strict=True):
        place = section.at(column)
        assert place is not None
        fields[place] = cell
    return section.delimiter.join('"' + field.replace('"', '""') + '"' for field in fields)
