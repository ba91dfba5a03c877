"""Which components share joules: parts lie in a whole, and meters of two logs may be of the same part."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from eprof.base.text import listed, pattern
from eprof.timeline.series import Series

_NUMBER = r"[-_ ]?(\d[\w-]*)?"  # which of several
# Meters of the whole machine: all else is in them, also of other logs.
_MACHINE = pattern(r"vdd_in|pom_5v_in|system\d*|total|node|syswatt|(energy-)?psys|platform", re.IGNORECASE)
# A package, and what lies in it in the same log.
_PACKAGE = pattern(rf"(?:(?:energy-)?(?:pkg|package)|cpu|socket){_NUMBER}|pkgwatt", re.IGNORECASE)
_IN_PACKAGE = pattern(rf"(?:cores?|uncore|pp[01]){_NUMBER}|energy-cores|energy-gpu|corwatt|gfxwatt", re.IGNORECASE)
# What meters of several logs may both be of.
_KINDS = (
    _PACKAGE,
    pattern(rf"(?:energy-)?(?:d?ram|mem|memory){_NUMBER}|ramwatt", re.IGNORECASE),
    pattern(rf"gpu{_NUMBER}", re.IGNORECASE),
)


def shared(series: Sequence[Series]) -> tuple[list[Series], dict[str, str]]:
    """The same with names of their own, and for each component whose joules another has, too, that other.

    Such joules are never added to the other's.
    """
    names = _names(series)
    wholes = [_whole(place, series) for place in range(len(series))]
    named = [replace(each, component=name) for each, name in zip(series, names, strict=True)]
    return named, {name: names[whole] for name, whole in zip(names, wholes, strict=True) if whole is not None}


def _names(series: Sequence[Series]) -> list[str]:
    """What components are called: where several have a name, with their log, and a number where that does not do."""
    names: list[str] = []
    for each in series:
        alike = [other for other in series if other.component == each.component]
        name = each.component if len(alike) == 1 else f"{each.component} ({Path(each.source).name})"
        before = sum(other == name or other.startswith(f"{name} #") for other in names)
        names.append(f"{name} #{before + 1}" if before else name)
    return names


def _whole(place: int, series: Sequence[Series]) -> int | None:
    """The place of the component that has the joules of another."""
    part = series[place]
    for other, whole in enumerate(series):
        if other != place and _MACHINE.fullmatch(whole.component):
            return None if _MACHINE.fullmatch(part.component) and place < other else other
    for other, whole in enumerate(series):
        if whole.source == part.source and _same(_PACKAGE, whole, _IN_PACKAGE, part):
            return other
        if other < place and whole.source != part.source and any(_same(kind, whole, kind, part) for kind in _KINDS):
            return other
    return None


def _same(kind: re.Pattern[str], whole: Series, of_part: re.Pattern[str], part: Series) -> bool:
    """Whether two components are of these kinds, and of one number where both have one."""
    found, other = kind.fullmatch(whole.component), of_part.fullmatch(part.component)
    if found is None or other is None:
        return False
    return not found[1] or not other[1] or found[1] == other[1]


def warnings(series: Sequence[Series], wholes: dict[str, str]) -> Iterator[str]:
    """Sentences on what is added up of several logs, and what is not."""
    source = {each.component: each.source for each in series}
    for part, whole in wholes.items():
        if source[part] != source[whole]:
            yield (
                f"{part} of {source[part]} is taken to have the joules of {whole} of {source[whole]}, and is not "
                "added; if they are of different machines, rename its column."
            )
    added = [each for each in series if each.component not in wholes]
    if len({each.source for each in added}) > 1:
        names = listed([f"{each.component} ({each.source})" for each in added][:6])
        yield f"The total adds up {names}: give one log if two of them see the same joules."
