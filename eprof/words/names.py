"""Kernel names made short enough for a chart. The full name stands in the title and in the section on one kernel."""

from collections import Counter
from collections.abc import Sequence

from eprof.base.kernels import base, core, short
from eprof.base.text import cut

__all__ = ["base", "core", "cores", "cut", "short"]


def cores(names: Sequence[str]) -> list[tuple[int, int]]:
    """`core` of every name, but the whole name where two different ones would look alike without their parameters."""
    found = [core(name) for name in names]
    distinct = {name: name[start:end] for name, (start, end) in zip(names, found, strict=True)}
    seen = Counter(distinct.values())
    return [
        span if seen[distinct[name]] == 1 else (span[0], len(name)) for name, span in zip(names, found, strict=True)
    ]
