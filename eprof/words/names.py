"""Kernel names made short enough for a chart. The full name stands in the title and in the section on one kernel."""

from collections import Counter
from collections.abc import Sequence

_RETURNS = "void "


def core(name: str) -> tuple[int, int]:
    """Where the name proper starts and ends: without `void ` in front and without the parameter list behind."""
    start = len(_RETURNS) if name.startswith(_RETURNS) else 0
    if not name.endswith(")"):
        return start, len(name)
    depth = 0
    for at in range(len(name) - 1, start, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return (start, at) if name[at - 1] not in " (" else (start, len(name))
    return start, len(name)


def cores(names: Sequence[str]) -> list[tuple[int, int]]:
    """`core` of every name, but the whole name where two different ones would look alike without their parameters."""
    found = [core(name) for name in names]
    distinct = {name: name[start:end] for name, (start, end) in zip(names, found, strict=True)}
    seen = Counter(distinct.values())
    return [
        span if seen[distinct[name]] == 1 else (span[0], len(name)) for name, span in zip(names, found, strict=True)
    ]


def cut(text: str, length: int) -> str:
    """At most `length` characters, left out in the middle, where template instances differ least."""
    if len(text) <= length:
        return text
    tail = (length - 1) * 2 // 5
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"


def short(name: str, length: int) -> str:
    """A name for a chart: no `void `, no parameter list, cut in the middle."""
    start, end = core(name)
    return cut(name[start:end], length)


def base(name: str) -> str:
    """What template instances have in common: `void axpy<float, 4>(float*)` -> `axpy`."""
    start, end = core(name)
    kept, depth = [], 0
    text = name[start:end]
    for at, letter in enumerate(text):
        if letter == "<" and not text[:at].endswith("operator"):
            depth += 1
        elif letter == ">" and depth and text[at - 1] != "-":
            depth -= 1
        elif not depth:
            kept.append(letter)
    return "".join(kept) if not depth and kept else text
