"""What a kernel must do, counted by hand from its source and the lists it works on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Work:
    """Counts of one kernel or phase, summed over lanes and launches.

    add, mul, fma, rsqrt: floating-point instructions as the source spells them. load, store: bytes of data requested
    from global memory, however often; index_load: those of integers (ranges, lists), which all lanes of a group read
    alike; local_load, local_store: shared memory. unique: bytes of distinct data read or written, the least that any
    cache can leave for DRAM.
    """

    launches: int = 0
    interactions: int = 0
    add: int = 0
    mul: int = 0
    fma: int = 0
    rsqrt: int = 0
    load: int = 0
    store: int = 0
    index_load: int = 0
    local_load: int = 0
    local_store: int = 0
    unique: int = 0

    @property
    def flops(self) -> int:
        """An FMA is two operations, a reciprocal square root one."""
        return self.add + self.mul + 2 * self.fma + self.rsqrt

    def __add__(self, other: "Work") -> "Work":
        return Work(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def table(self) -> dict[str, int]:
        """All counts, with flops."""
        return {name: int(count) for name, count in {**asdict(self), "flops": self.flops}.items()}


def attractions(count: int, real: int) -> Work:
    """The instructions of `attract`: 3 add, 1 mul, 3 fma, 1 rsqrt, and a source of four reals from shared memory."""
    local_load = 4 * real * count
    return Work(interactions=count, add=3 * count, mul=count, fma=3 * count, rsqrt=count, local_load=local_load)


def as_json(settings: Mapping[str, object], groups: Mapping[str, Mapping[str, Work]]) -> str:
    """Settings and counts, e.g. {"phases": {...}, "kernels": {...}}."""
    tables = {group: {name: work.table() for name, work in rows.items()} for group, rows in groups.items()}
    return json.dumps({"settings": dict(settings), **tables}, indent=1)


def as_text(rows: Mapping[str, Work]) -> str:
    """One line a kernel or phase, bytes in MB."""
    head = f"{'':10} {'interactions':>14} {'Mflop':>10} {'Mfma':>9} {'Madd':>9} {'Mmul':>9} {'Mrsqrt':>8}"
    lines = [head + f" {'MB load':>9} {'MB store':>8} {'MB shared':>9} {'MB unique':>9} {'flop/B':>7}"]
    for name, work in rows.items():
        millions = [work.flops, work.fma, work.add, work.mul, work.rsqrt, work.load + work.index_load, work.store]
        values = [count / 1e6 for count in [*millions, work.local_load + work.local_store, work.unique]]
        widths = (10, 9, 9, 9, 8, 9, 8, 9, 9)
        row = " ".join(f"{value:{width}.3f}" for value, width in zip(values, widths, strict=True))
        intensity = f"{work.flops / work.unique:7.2f}" if work.unique else f"{'-':>7}"
        lines.append(f"{name:10} {work.interactions:14} {row} {intensity}")
    lines.append("load, store, shared: requested; unique: each element once; flop/B: of unique bytes, an FMA is 2 flop")
    return "\n".join(lines)
