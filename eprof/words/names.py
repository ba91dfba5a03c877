"""Kernel names made short enough for a chart. The full name stands in the title and in the section on one kernel."""

from collections import Counter
from collections.abc import Sequence

from eprof.base.kernels import base, core, short
from eprof.base.text import cut

__all__ = ["base", "core", "cores", "cut", "proper", "short"]


def cores(names: Sequence[str]) -> list[tuple[int, int]]:
    """`core` of every name, but the whole name where two different ones would look alike without their parameters."""
    spans = {name: core(name) for name in names}
    seen = Counter(name[start:end] for name, (start, end) in spans.items())

    def span(name: str) -> tuple[int, int]:
        start, end = spans[name]
        return start, end if seen[name[start:end]] == 1 else len(name)

    return [span(name) for name in names]


def proper(names: Sequence[str]) -> list[str]:
    """The names without what `cores` leaves out."""
    return [name[start:end] for name, (start, end) in zip(names, cores(names), strict=True)]
