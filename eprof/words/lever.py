"""What would lift a kernel towards its limits, in words: the part of its energy that takes most (rooflines/dots.py)."""

from collections.abc import Mapping
from typing import Any

from eprof.words.numbers import percent

PARTS = {
    "flops": ("flops", "fewer or narrower ones"),
    "dram": ("DRAM bytes", "more flop/B"),
    "constant": ("constant power", "less of it"),
    "waiting": ("waiting", "more utilisation"),
    "instructions": ("other instructions", "fewer of them"),
    "nearer": ("nearer bytes", "fewer of them"),
}
EXPLAINED = (
    "Waiting: constant power while slower than the roofline. Constant power: what is left at the roofline's time. "
    "Nearer bytes: of caches and shared memory."
)


def share_of(limit: Mapping[str, Any], key: str) -> str | None:
    """`speed_share` or `energy_share` in words: "58 %", or "at most 58 %" where the energy is a lower bound."""
    if limit[key] is None:
        return None
    at_most = "at most " if key in limit.get("at_most", ()) else ""
    return f"{at_most}{percent(limit[key])}"


def lever(limit: Mapping[str, Any]) -> str:
    """One phrase: what takes most of the energy, its share, and what would save it."""
    part = limit["lever"]
    if part is None:
        return "not known: no time"
    whole = sum(value or 0.0 for value in limit["parts_j"].values())
    share = percent((limit["parts_j"][part] or 0.0) / whole) if whole else ""
    what, remedy = PARTS[part]
    return f"{what} {share}: {remedy}"
