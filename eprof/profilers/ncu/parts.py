"""The parts of a kernel's launches in ncu's tables: the stream, or the NVTX range that the launch was in.

With `--nvtx`, tables of launches have a column "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:
Msg". A cell holds the thread, then each open range in quotes, the outermost first:
`1  "<default domain>:step:none:none:none:none:none:none"  "<default domain>:solve:none:none:..." `.
"""

from collections.abc import Callable, Sequence

from eprof.base.text import pattern
from eprof.logs.rows.sections import Section
from eprof.profilers.ncu.headers import LONG, RAW

OUTSIDE = "(outside of ranges)"
_PUSH_POP = "Push/Pop_Range"
_RANGE = pattern(r'"([^"]+)"')
_AFTER = 6  # fields that follow the name of a range: type and value of its payload, of its colour, of its message


def column_of(section: Section, parts: str | None) -> str | None:
    """The column of an ncu table of launches with the part (stream or NVTX range); None if none is there or wanted."""
    if section.kind not in (LONG, RAW):
        return None
    if parts == "stream":
        return "Stream" if "Stream" in section.columns else None
    if parts == "nvtx":
        return next((name for name in section.columns if _PUSH_POP in name), None)
    return None


def labels(section: Section, words: Callable[[str], Sequence[str | None]]) -> list[str | None] | None:
    """The part of each launch in an ncu table; None for a stream that is not in the log.

    None for all if no parts are wanted.

    words: what a column says of each launch.
    """
    if section.part is None:
        return None
    cells = [cell or "" for cell in words(section.part)]
    if section.part == "Stream":
        return [cell.strip() or None for cell in cells]
    ranges = {cell: innermost(cell) for cell in set(cells)}
    return [ranges[cell] for cell in cells]


def innermost(cell: str) -> str:
    """The name of the innermost NVTX push/pop range in a cell of ncu's."""
    ranges = _RANGE.findall(cell)
    if not ranges:
        return OUTSIDE
    fields = str(ranges[-1]).partition(":")[2].rsplit(":", _AFTER)
    return fields[0].strip() or str(ranges[-1])
