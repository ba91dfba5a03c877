"""What a total lacks, wholly or in part, by groups of counts."""

from eprof.base.text import few, phrase, when
from eprof.base.vocabulary import CONSTANT, GROUPS
from eprof.show.report.view import View, Word
from eprof.show.words.badges import MISSING, Amount

_NAMED = 6
_SHORT = 2  # things that the headline has room for


def in_headline(view: View) -> str:
    """What a total lacks, where that is short: " without host memory"; else empty."""
    wholly, partly = _groups(view)
    lost = wholly + [f"a part of {name}" for name in partly]
    return when(len(lost) <= _SHORT, phrase(" without {}", " and ".join(lost)))


def in_trust(view: View) -> str:
    """All that a total lacks, where the headline has no room for it: "Missing wholly: FP64; partly: integer."."""
    wholly, partly = _groups(view)
    if in_headline(view) or not wholly + partly:
        return ""
    missing = {"wholly": few(wholly, _NAMED), "partly": few(partly, _NAMED)}
    return f"Missing {'; '.join(f'{how}: {names}' for how, names in missing.items() if names)}."


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
