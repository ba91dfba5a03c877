"""The types of the document `eprof.scale/1` (docs/scale.md). SI units; None: not known."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from eprof.clusters.cluster import Part
from eprof.profile.schema import Document

SCHEMA = "eprof.scale/1"
MODELLED, MEASURED = "modelled", "measured"


class Row(Struct, frozen=True, kw_only=True):
    """A program of one size on a number of processors at one clock.

    efficiency: E1/Ep, both at this clock (4.21). efficiency_to_slowest_clock: E1 at the slowest clock over Ep (4.25).
    speedup: T1/Tp at this clock. overhead_j: Ep - E1 by cause, where it is modelled; it adds up. alpha: measured time
    over the modelled one. polling_j: what Ep is if processors poll while they wait. pareto: nothing else of the same
    program and size takes less energy and less time. marks: "simulated", "assumed"... (docs/profile-json.md).
    parts: what makes up the energy on a GPU cluster, by cause. ranks, imbalance: of such a run.
    """

    program: str
    size: float | None
    processors: int
    core_mhz: float | None
    time_s: float
    energy_j: float | None
    power_w: float | None
    efficiency: float | None
    efficiency_to_slowest_clock: float | None
    speedup: float | None
    overhead_j: dict[str, float] | None = None
    polling_j: float | None = None
    alpha: float | None = None
    repeats: int = 1
    marks: list[str] = field(default_factory=list)
    time_marks: list[str] = field(default_factory=list)
    parts: dict[str, Part] | None = None
    ranks: int | None = None
    imbalance: float | None = None
    pareto: bool = False


class Keep(Struct, frozen=True):
    """The size, or the clocks, that keep the efficiency on so many processors; where none does, None and the reason."""

    processors: int
    target: float
    size: float | None
    clocks_mhz: list[float]
    because: str | None


class Best(Struct, frozen=True, kw_only=True):
    """The best row for an objective; None: no energy is known, or a limit leaves none."""

    objective: str
    program: str
    size: float | None
    processors: int | None = None
    core_mhz: float | None = None
    energy_j: float | None = None
    time_s: float | None = None
    marks: list[str] = field(default_factory=list)
    time_marks: list[str] = field(default_factory=list)


class Prediction(Struct, frozen=True, kw_only=True):
    """What a fit on fewer processors predicts for a row; errors as shares of the measured values, None without one."""

    size: float
    processors: int
    core_mhz: float
    time_s: float
    energy_j: float
    efficiency: float | None
    time_error: float | None
    energy_error: float | None
    marks: list[str] = field(default_factory=list)


class Fit(Struct, frozen=True, kw_only=True):
    """A program fitted to small runs. factors: what its counts were multiplied with.

    left_out: errors of node counts that a fit had not seen, largest share of time and of energy. alpha_by_processors:
    how far alpha varies over p.
    """

    fitted_on: list[int]
    factors: dict[str, float]
    alpha: float
    alpha_by_processors: dict[str, float]
    left_out_time: float | None
    left_out_energy: float | None
    predictions: list[Prediction]


class Scale(Document, frozen=True, kw_only=True):
    """The whole document. kind: "modelled" or "measured". f_star_mhz: the clock at which E1 is least (docs/scale.md).

    shape: the class of the program, 1 to 4 ([S] 4.7-6), modelled only. node: what a node of GPUs draws beside them.
    """

    schema: str = SCHEMA
    kind: str
    cluster: dict[str, Any] | None = None
    program: dict[str, Any] | None = None
    unit: str = "node"
    waiting: str | None = None
    node: dict[str, Any] | None = None
    rows: list[Row]
    best: list[Best]
    keep: list[Keep] = field(default_factory=list)
    shape: int | None = None
    f_star_mhz: float | None = None
    fit: Fit | None = None
    warnings: list[str] = field(default_factory=list)

    def records(self) -> Iterator[dict[str, Any]]:
        """A dictionary a row, for the CSV; extra joules and parts of the energy have a column for each cause."""
        for row in self.rows:
            cells = asdict(row)
            overhead = cells.pop("overhead_j") or {}
            parts = cells.pop("parts") or {}
            cells |= {name: " ".join(cells[name]) for name in ("marks", "time_marks")}
            cells |= {f"overhead_{cause}_j": joules for cause, joules in overhead.items()}
            cells |= {f"{cause}_j": part.energy_j for cause, part in parts.items()}
            yield cells | {f"{cause}_marks": " ".join(part.marks) for cause, part in parts.items()}
