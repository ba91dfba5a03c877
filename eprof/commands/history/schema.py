"""The types of the document `eprof.history/1` (docs/history.md). SI units; None: not known."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from eprof.base.nouns import Nouns, nouns_of
from eprof.profile.schema import Document

SCHEMA = "eprof.history/1"


class Run(Struct, frozen=True, kw_only=True):
    """A run. time_from: "run" (when it ran) or "report" (when its report was made). processor: "cpu".

    commit: of the folder that it ran in, if it was recorded; changed: whether files there differed from that commit.
    """

    path: str
    commit: str | None
    changed: bool
    time_utc: str
    time_from: str
    device: str
    costs: str
    eprof: str
    time_s: float | None
    energy_j: dict[str, float | None]
    marks: list[str]
    processor: str | UnsetType = UNSET

    @property
    def nouns(self) -> Nouns:
        """The words for what ran, in a history."""
        return nouns_of(self.processor)


class Change(Struct, frozen=True, kw_only=True):
    """A step of the energy between two runs. kernel: None for the whole program; run: the first after it, by place.

    before_j, after_j: means of the runs between this step and its neighbours. p: how often noise alone would look so.
    because: the part of the energy that changed most, and by how much. also: what else differs there.
    """

    kernel: str | None
    run: int
    before_j: float
    after_j: float
    change_share: float | None
    runs_before: int
    runs_after: int
    p: float
    because: str | None
    because_j: float | None
    also: list[str]


class Kernel(Struct, frozen=True, kw_only=True):
    """The energy of a kernel in each run; None where it did not run, or is not known."""

    name: str
    energy_j: list[float | None]


class Noise(Struct, frozen=True, kw_only=True):
    """How much runs of one commit differ: the pooled standard deviation as a share of the mean."""

    share: float
    commits: int
    runs: int


class History(Document, frozen=True, kw_only=True):
    """Runs in the order of their times, and the changes of the whole program and of its kernels."""

    schema: str = SCHEMA
    level: float
    runs: list[Run]
    noise: Noise | None
    changes: list[Change]
    kernels: list[Kernel]
    warnings: list[str] = field(default_factory=list)

    def records(self) -> Iterator[dict[str, Any]]:
        """The table of a history: a row for each run and kernel, and one for the run as a whole."""
        for place, run in enumerate(self.runs):
            about = {"run": run.path, "commit": run.commit, "time_utc": run.time_utc}
            yield {**about, "kernel": "", "energy_j": run.energy_j["total"]}
            for kernel in self.kernels:
                yield {**about, "kernel": kernel.name, "energy_j": kernel.energy_j[place]}
