"""The types of the document `eprof.comm/1` (docs/comm.md). SI units; None: not known."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from eprof.commands.comm.model import POLLING
from eprof.profile.schema import Document

SCHEMA = "eprof.comm/1"
MODELLED, SIMULATED, MEASURED = "modelled", "simulated", "measured"


class Relative(Struct, frozen=True):
    """Against polling at the first clock, of the same operation and size. j_per_mb = latency x power."""

    latency: float
    power: float
    j_per_mb: float


class Row(Struct, frozen=True, kw_only=True):
    """Operations of a kind and a size, waited for in one way; core_mhz None: the clock in force, left alone.

    latency_s, energy_j: of one operation of one process; power_w: of one process's share of the machine, or of what the
    cluster's table is of. j_per_mb: joules per 10^6 bytes. busy: the share of its time that a processor worked.
    spread: how far the repeats of this, or of polling if more, are apart, as a share of their latency.
    """

    primitive: str
    bytes: float
    waiting: str
    core_mhz: float | None
    operations: int
    latency_s: float
    power_w: float | None
    energy_j: float | None
    j_per_mb: float | None
    busy: float | None
    spread: float
    relative: Relative | None
    marks: list[str] = field(default_factory=list)


class Threshold(Struct, frozen=True, kw_only=True):
    """From how many bytes on a way to wait pays: fewer joules, latency within 5 % of polling. because: why never."""

    primitive: str
    waiting: str
    core_mhz: float | None
    bytes: float | None
    because: str | None = None


class Limit(Struct, frozen=True, kw_only=True):
    """J/MB of endless messages, as a share of those of polling at the first clock."""

    waiting: str
    core_mhz: float
    j_per_mb: float


class Total(Struct, frozen=True, kw_only=True):
    """All messages of a program, waited for in one way."""

    waiting: str
    core_mhz: float | None
    messages: int
    bytes: float
    time_s: float
    energy_j: float
    marks: list[str] = field(default_factory=list)


class Comm(Document, frozen=True, kw_only=True):
    """The whole document. kind: "modelled", "simulated" or "measured". joules_from: what saw or priced them.

    break_even_s: the time of a message from which on blocking takes fewer joules. program: whose messages these are.
    """

    schema: str = SCHEMA
    kind: str
    mpi: str | None
    processes: int | None
    joules_from: str
    cluster: dict[str, Any] | None
    program: str | None
    rows: list[Row]
    thresholds: list[Threshold]
    break_even_s: float | None = None
    limits: list[Limit] = field(default_factory=list)
    totals: list[Total] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def is_base(self, entry: Row | Threshold | Total) -> bool:
        """Whether a row on messages is what the others stand against: polling at the first clock."""
        return (entry.waiting, entry.core_mhz) == (POLLING, self.rows[0].core_mhz)

    def rows_of(self, threshold: Threshold) -> list[Row]:
        """The rows of messages whose threshold it is."""
        way = (threshold.primitive, threshold.waiting, threshold.core_mhz)
        return [row for row in self.rows if (row.primitive, row.waiting, row.core_mhz) == way]

    def records(self) -> Iterator[dict[str, Any]]:
        """The rows of messages as a table; what is relative to polling is a column each."""
        for row in self.rows:
            cells = {**asdict(row), "marks": " ".join(row.marks)}
            relative = cells.pop("relative")
            if relative is not None:
                cells |= {f"relative_{name}": value for name, value in asdict(relative).items()}
            yield cells
