"""What valgrind, callgrind_annotate and cg_annotate print of a profile, as a profile of callgrind again."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from eprof.base.known import only
from eprof.base.text import pattern
from eprof.profilers.callgrind.file_format import REST

_REFS = {
    **{"I refs": ("Ir",), "I1 misses": ("I1mr",), "LLi misses": ("ILmr",), "L2i misses": ("ILmr",)},
    **{"D refs": ("Dr", "Dw"), "D1 misses": ("D1mr", "D1mw")},
    **{"LLd misses": ("DLmr", "DLmw"), "L2d misses": ("DLmr", "DLmw")},
}
_COUNT = pattern(r"[>\s]*==[0-9]+== (\w+) +(refs|misses): +([0-9,]+)(?: +\( *([0-9,]+) rd +\+ +([0-9,]+) wr\))?\s*")
_COMMAND = pattern(r"[>\s]*==[0-9]+== Command: (.*)")
_EVENTS = pattern(r"[>\s]*((?:[A-Z]\w+\s+)+)file:function\s*")
_ROW = pattern(r"[>\s]*((?:(?:[0-9][0-9,]*|\.)(?: *\( *[0-9.]+%\))?\s+)+)(\S.*)")
_NUMBER = pattern(r"(?<![\w.(])(?:[0-9][0-9,]*|\.)(?![0-9.]*%)")
_PLACE = pattern(r"(.*?):(.*?)(?: \[(.*)\])?")
_TOTALS = "PROGRAM TOTALS"


class _Costs(NamedTuple):
    """Numbers of executions and misses, by event, of what is called `name`, in a file of an object."""

    name: str
    numbers: Mapping[str, int]
    file: str = "???"
    object: str = "???"


def as_profile(text: str) -> str:
    """Turn printed sums, or an annotator's table of functions, into a callgrind file's text; other texts stay."""
    if "\nfn=" in text:
        return text
    lines = text.split("\n")
    costs = list(_functions(lines)) or list(_programs(lines)) or list(_heads(lines))
    # What one of them lacks is not known, and no zero.
    events = [event for event in (costs[0].numbers if costs else ()) if all(event in each.numbers for each in costs)]
    if not events:
        return text
    rows = [[each.numbers[event] for event in events] for each in costs]
    return "\n".join(
        (
            *("# callgrind format", "version: 1", "creator: callgrind, as printed", f"events: {' '.join(events)}", ""),
            *(
                f"ob={each.object}\nfl={each.file}\nfn={each.name}\n0 {' '.join(map(str, row))}\n"
                for each, row in zip(costs, rows, strict=True)
            ),
            f"totals: {' '.join(str(sum(column)) for column in zip(*rows, strict=True))}\n",
        )
    )


def _functions(lines: list[str]) -> Iterator[_Costs]:
    """The functions of the first table of an annotator, and what of its totals is in none of them.

    Functions that add up to more than all there is hold their callees (`--inclusive=yes`): the totals alone are told.
    """
    totals, events, found = list[int](), list[str](), list[_Costs]()
    for line in lines:
        row, header = _ROW.fullmatch(line), _EVENTS.fullmatch(line)
        if found and not line.strip():
            break
        if header is not None and not found:
            events = header[1].split()
        elif row is not None and row[2].strip() == _TOTALS:
            totals = _numbers(row[1])
        elif row is not None and events and (place := _PLACE.fullmatch(row[2])):
            numbers = _numbers(row[1])
            if len(numbers) == len(events):  # else the row is cut off, and in what is not shown
                found.append(_Costs(place[2], dict(zip(events, numbers, strict=True)), place[1], place[3] or "???"))
    printed = only(list(_programs(lines)))
    whole = dict(zip(events, totals, strict=False)) if totals or printed is None else printed.numbers
    if not all(event in whole for event in events):
        yield from found
        return
    rest = {event: whole[event] - sum(each.numbers[event] for each in found) for event in events}
    if found and min(rest.values()) < 0:
        yield _Costs("whole program", whole)
        return
    yield from found
    if found and any(rest.values()):
        yield _Costs(REST, rest)


def _programs(lines: list[str]) -> Iterator[_Costs]:
    """The programs whose sums valgrind printed when they ended."""
    name, numbers = "whole program", dict[str, int]()
    for line in lines:
        command, count = _COMMAND.fullmatch(line), _COUNT.fullmatch(line)
        events = _REFS.get(f"{count[1]} {count[2]}", ()) if count else ()
        if numbers and (command or events[:1] == ("Ir",)):
            yield _Costs(name, numbers)
            numbers = {}
        if command:
            name = command[1].strip()
        if count and events:
            told = count[3] if len(events) == 1 else f"{count[4]} {count[5]}"
            numbers |= dict(zip(events, _numbers(told), strict=False))
    if numbers:
        yield _Costs(name, numbers)


def _heads(lines: list[str]) -> Iterator[_Costs]:
    """The programs of heads of profiles, whose costs are not there: what they sum up to."""
    told = dict[str, str]()
    for line in lines:
        key, _, value = line.partition(": ")
        told[key] = value.strip()
        if key == "summary" and told.get("events"):
            numbers = dict(zip(told["events"].split(), _numbers(value), strict=False))
            yield _Costs(told.get("cmd") or "whole program", numbers)


def _numbers(text: str) -> list[int]:
    return [int(number.replace(",", "").replace(".", "0")) for number in _NUMBER.findall(text)]
