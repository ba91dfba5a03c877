"""The types of the document `eprof.validation/1` (docs/validate.md): every report is drawn from them.

None is a number that is not known. What was measured on rows of a file stands in one structure, which is there or not
as a whole; in JSON its fields stand beside the others.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from eprof.base.clocks import Clocks
from eprof.commands.validate.scores import Scores
from eprof.lab.fitting.search import Form

SCHEMA = "eprof.validation/1"
Range = tuple[float | None, float | None]
# Fields that are left out of the JSON where they say nothing, and stand at its end.
_LAST = ("runs", "candidates", "gate")


class Times(Struct, frozen=True):
    """Errors of modelled times, relative to the measured ones, by model; what the model by component had to assume."""

    scores: dict[str, Scores]
    missing: list[str]
    why: str


class Protocol(Scores, frozen=True, kw_only=True):
    """Errors by one protocol. folds: how many models were fitted for it; meaning: how it tests, in words."""

    folds: int
    meaning: str


class Row(Struct, frozen=True, kw_only=True):
    """A measured row. predicted_w: by protocol; None where the protocol does not test the row."""

    benchmark: str
    kernel: str
    core_mhz: float
    memory_mhz: float
    time_s: float | None
    measured_w: float | None
    predicted_w: dict[str, float | None]
    error_percent: float | None


class Input(Struct, frozen=True):
    """A file of measurements."""

    path: str


class Costs(Struct, frozen=True):
    """The cost table that was scored."""

    name: str
    device: str
    source: str
    basis: str | None = None


class FittedForm(Form, frozen=True):
    """What was fitted in every fold, and how."""

    seed: int = 0


class Histogram(Struct, frozen=True):
    """How many rows have a signed error between neighbouring edges."""

    edges_percent: list[float]
    counts: list[int]


class SettingScores(Clocks, frozen=True):
    """Errors at one setting; in JSON the scores' fields stand beside the clocks."""

    scores: Scores


class Reference(Clocks, frozen=True):
    """Power of a kernel at the reference setting, or at the measured one nearest to it."""

    measured_w: float | None
    predicted_w: float | None


class KernelScores(Struct, frozen=True, kw_only=True):
    """Errors of one kernel, as those of a setting. mix: shares of its power by term; nearest: the most similar one."""

    benchmark: str
    kernel: str
    scores: Scores
    reference: Reference
    mix: dict[str, float]
    nearest: str | None
    distance: float | None


class Likeness(Struct, frozen=True):
    """Errors of kernels that are nearer than the median `distance` to another one, and of those that are not."""

    distance: float
    near: Scores
    far: Scores


class Ranges(Struct, frozen=True):
    """The least and the largest clock, power, and rate of each term that was measured."""

    core_mhz: Range
    memory_mhz: Range
    power_w: Range
    rates: dict[str, Range]
    rate_unit: str


class Measured(Struct, frozen=True, kw_only=True):
    """What was found on rows of measured power."""

    inputs: list[Input]
    trained_on: list[Input] | None
    costs: Costs | None
    form: FittedForm | None
    benchmarks: int
    settings: list[Clocks]
    reference: Clocks
    main_protocol: str
    table_saw_these: bool
    histogram: Histogram
    by_setting: list[SettingScores]
    by_benchmark: list[KernelScores]
    likeness: Likeness | None
    range: Ranges


class WholeRun(Struct, frozen=True):
    """A run directory with measured energy: predicted against measured J of one program."""

    path: str
    predicted_j: float | None
    measured_j: float
    method: str
    reasons: str
    marks: tuple[str, ...]
    error_percent: float | None


class MeteredRuns(Struct, frozen=True):
    """How well predictions split the metered joules of runs of some kernels, beside a split by time alone.

    within: nine kernels of ten are this factor off at most.
    """

    runs: int
    kernels: int
    mean_percent: float
    within: float
    by_time_mean_percent: float
    by_time_within: float


class Neighbour(Struct, frozen=True):
    """A measured kernel that is similar to a candidate, with its mean error."""

    benchmark: str
    distance: float
    mean_percent: float | None


class Candidate(Struct, frozen=True):
    """A kernel of a profile. unlike: what takes more of its energy than of any measured kernel's."""

    kernel: str
    neighbours: list[Neighbour]
    unlike: list[str]


class Gate(Struct, frozen=True):
    """The largest mean error that may pass, in per cent, and the protocol that came out worst."""

    max_error_percent: float
    protocol: str
    value_percent: float | None
    passed: bool


class Validation(Struct, kw_only=True, omit_defaults=True):
    """The whole document."""

    schema: str
    eprof: str
    created_utc: str
    command_line: list[str]
    title: str
    n: int
    protocols: dict[str, Protocol]
    baselines: dict[str, dict[str, Scores]]
    notes: list[str]
    rows: list[Row]
    measured: Measured | None = None
    to_meter: dict[str, MeteredRuns] = {}
    times: Times | None = None
    runs: list[WholeRun] = []
    candidates: list[Candidate] = []
    gate: Gate | None = None

    @property
    def main_protocol(self) -> str:
        """The name of the protocol that the headline speaks of; "runs" without measured rows."""
        return self.measured.main_protocol if self.measured is not None else "runs"

    def records(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of a validation's table: measured rows with predicted W by protocol, runs with J."""
        for row in self.rows:
            cells = asdict(row)
            watts = cells.pop("predicted_w")
            yield {**cells, **{f"{protocol}_w": predicted for protocol, predicted in watts.items()}}
        for run in self.runs:
            joules = {"measured_j": run.measured_j, "predicted_j": run.predicted_j}
            yield {"benchmark": run.path, **joules, "error_percent": run.error_percent}

    def plain(self) -> dict[str, Any]:
        """The document of a validation as plain data, in the order of the JSON."""
        data: dict[str, Any] = to_builtins(self)
        measured = data.pop("measured", {})
        for name in measured.keys() & {"by_setting", "by_benchmark"}:
            for place, entry in enumerate(measured[name]):
                # The scores' fields stand beside the others.
                fields = (value if key == "scores" else {key: value} for key, value in entry.items())
                measured[name][place] = dict(chain.from_iterable(each.items() for each in fields))
        last = {name: data.pop(name) for name in _LAST if name in data}
        return {**data, **measured, **last}
