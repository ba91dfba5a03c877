"""What a total lacks: which groups of counts, and the most that each can take."""

import math

from eprof.base.text import few, phrase, when
from eprof.base.vocabulary import CONSTANT, GROUPS
from eprof.show.report.view import View, Word
from eprof.show.words.badges import MISSING, Amount
from eprof.show.words.numbers import quantity

_NAMED = 4
_SHORT = 2  # things that the headline has room for
_LITTLE = 0.03  # of the total: a group that can take less lacks nothing that matters
_FEW, _MOST = 0.1, 0.5


def share(view: View) -> float:
    """The most that what was not counted can take, as a share of all energy; 1 where nothing bounds it."""
    total = view.energy("total").value or 0.0
    bounds = _bounds(view)
    if bounds is None:
        return 1.0 if view.energy("total").lower else 0.0
    most = bounds.get("total", 0.0)
    return 1.0 if most is None else most / (total + most or 1.0)


def matters(view: View) -> bool:
    """Whether what was not counted can take a tenth of all energy or more."""
    return share(view) > _FEW


def is_most(view: View) -> bool:
    """Whether what was not counted can take more than what was."""
    return share(view) > _MOST


def in_headline(view: View) -> str:
    """What a total lacks, where that is short: " without host memory"; else empty."""
    wholly, partly = _groups(view)
    lost = wholly + [f"a part of {name}" for name in partly]
    return when(len(lost) <= _SHORT, phrase(" without {}", " and ".join(lost)))


def in_trust(view: View) -> str:
    """All that a total lacks and that matters: "Not counted: L2 (at most 1.20 J), FP64, and 3 more."."""
    bounds = _bounds(view)
    wholly, partly = _groups(view)
    if bounds is None:
        missing = {"wholly": few(wholly, _NAMED), "partly": few(partly, _NAMED)}
        text = "; ".join(f"{how}: {names}" for how, names in missing.items() if names)
        return phrase("Missing {}.", text)
    if not matters(view):
        return ""
    if view.above.value is None:
        return "Nothing but time was counted." if view.time.value is not None else "Nothing was counted, nor its time."
    total = view.energy("total").value or 0.0
    capped = bounds.get("total")
    # The largest first; those that nothing bounds but the board, which then all have the same room, before them.
    groups = [group for group in bounds if group != "total"]
    ordered = sorted(groups, key=lambda group: -math.inf if bounds[group] is None else -(bounds[group] or 0.0))
    names = []
    for group in ordered:
        most = bounds[group]
        if most is not None and most < _LITTLE * total:
            continue
        is_open = most is None or capped is not None and most >= capped
        names.append(_name(view, group) + when(not is_open, f" (at most {quantity(most or 0.0, 'J')})"))
    together = ""
    if capped:
        together = f", {when(len(names) > 1, 'together ')}{quantity(capped, 'J')} at most"
    return f"Not counted: {few(names, _NAMED)}{together}."


def _bounds(view: View) -> dict[str, float | None] | None:
    """The most that each group's uncounted part can take; None in a document without intervals."""
    interval = view.document.interval_j
    return interval.uncounted if interval else None


def _groups(view: View) -> tuple[list[str], list[str]]:
    """The groups that a total lacks wholly, and those of which it lacks a part."""
    if view.costs is None:
        return [], []
    lost = {word.count.group for word in view.words.values() if _lacks(view, word)}
    wholly = [_name(view, group) for group in GROUPS if group in lost and not _joules_lacking(view, group)]
    partly = [_name(view, group) for group in GROUPS if group in lost and _joules_lacking(view, group)]
    constant = view.energy(CONSTANT)
    if constant.value is None:
        wholly.insert(0, "constant power (no time)")
    elif constant.lower:
        partly.insert(0, "constant power")
    return wholly, partly


def _lacks(view: View, word: Word) -> bool:
    """Whether the energy of a count lacks something; of a metered share, whether the count does."""
    is_share = view.to_meter is not None and word.energy.value
    return bool((word.value if is_share else word.energy).marks & MISSING)


def _joules_lacking(view: View, group: str) -> float:
    return view.groups.get(group, Amount(None)).value or 0.0


def _name(view: View, group: str) -> str:
    """A lacking group in prose; beside work on tensor cores, missing FP16 is that of other instructions."""
    name = view.in_prose(group)
    if group == "fp16" and _joules_lacking(view, "tensor"):
        return f"{name} outside tensor cores"
    return name
