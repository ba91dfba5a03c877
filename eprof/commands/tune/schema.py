"""The types of the document `eprof.tune/1` (docs/tune.md): every report is drawn from them. None: not known."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from eprof.base.clocks import Clocks
from eprof.base.known import mapped
from eprof.base.vocabulary import Nouns, nouns_of
from eprof.profile.schema import Document, Range

SCHEMA = "eprof.tune/1"
LISTS = ("energy_j", "time_s", "measured_j", "measured_s")
PICKS = ("best", "fastest", "measured_best", "now")


class At(Clocks, frozen=True, kw_only=True):
    """Energy and time at one setting, predicted and measured. why: what the table does not know of it."""

    energy_j: float | None
    time_s: float | None
    power_w: float | None
    measured_j: float | None
    measured_s: float | None
    marks: tuple[str, ...]
    why: str | None


class Setting(At, frozen=True, kw_only=True):
    """One of the settings that are compared. value: what is minimised; allowed: whether it may be picked."""

    value: float | None
    allowed: bool


class Kernel(Struct, frozen=True, kw_only=True):
    """One kernel, with the settings picked for it (None: none could be) and lists over all settings.

    now: the setting that ran. wrong: whether a pick is not the measured best, and what it lost.
    """

    name: str
    kernel: str
    launches: float
    best: At | None
    fastest: At | None
    measured_best: At | None
    now: At | None
    wrong: bool | None
    lost_percent: float | None
    oracle_wrong: bool | None
    oracle_lost_percent: float | None
    breaks_a_limit: bool | None
    energy_j: list[float | None]
    time_s: list[float | None]
    measured_j: list[float | None]
    measured_s: list[float | None]
    marks: tuple[str, ...]


class FrontPoint(Clocks, frozen=True):
    """A setting that no other beats in both time and energy."""

    energy_j: float
    time_s: float


class Joules(Struct, frozen=True):
    """Energy in J and time in s of the program, with each kernel at its own best setting."""

    energy_j: float | None
    time_s: float | None


class PowerModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What predicted the power: a "table", or a "refit" that has not seen what it predicts (`protocol`), or "none"."""

    kind: str
    name: str = ""
    device: str = ""
    source: str = ""
    basis: str | None = None
    protocol: str = ""
    power_error_percent: float | None | UnsetType = UNSET


class TimeModelUsed(Struct, frozen=True):
    """The model of time at other settings (`energy/clocks.py`)."""

    byte_per_cycle: float | None
    exponent: float
    share_of_peak: float
    words: str


class TimeError(Struct, frozen=True):
    """The time model's error on kernels that it was not fitted to."""

    n: int
    mean_percent: float
    max_percent: float
    protocol: str


class Time(Struct, frozen=True):
    """Where times are from ("measured" or "modelled"). of_simulated: even the time of the run came from a model."""

    source: str = field(name="from")
    model: TimeModelUsed | None
    error: TimeError | None
    of_simulated: bool = False


class Mispredictions(Struct, frozen=True):
    """How many picks, of the model or of the fastest (oracle), are not the measured best, or break a limit."""

    cases: int
    model: int
    oracle: int
    model_breaks_a_limit: int


class Lost(Struct, frozen=True):
    """How much more energy wrong picks used, over these or over all cases; 0 if none is wrong ([FMM] Table II)."""

    cases: int
    wrong: int
    mean_percent: float
    min_percent: float
    max_percent: float
    all_mean_percent: float


class LostBy(Struct, frozen=True):
    """How much more energy than at the measured best was used at the model's picks, and at the fastest (oracle)."""

    model: Lost
    oracle: Lost


class Gain(Struct, frozen=True):
    """What the answer saves of what is minimised, as a share of that at the setting it is held against.

    energy_range: the interval of the share of energy; None: not known. is_worth_it: whether the saving is enough, and
    sure enough, to change clocks for.
    """

    share: float | None
    energy_range: Range | None
    is_worth_it: bool


class Tune(Document, frozen=True, kw_only=True):
    """The whole document; the settings picked are for all kernels together.

    now: the setting where the program runs; None: all settings were measured. is_now_assumed: that it runs there is an
    assumption. ran: where the profile was taken; held_by: the profiler that may have held the clocks there. gain: of
    the answer against `now`, or the fastest. processor: "cpu". capability: of the GPU.
    """

    schema: str = SCHEMA
    program: str
    model: PowerModel
    objective: str
    objective_words: str
    max_slowdown_percent: float | None
    power_limit_w: float | None
    time: Time
    best: At | None
    fastest: At | None
    measured_best: At | None
    now: At | None
    is_now_assumed: bool = False
    held_by: str | UnsetType = UNSET
    ran: At | None = None
    gain: Gain | None = None
    each_its_own: Joules | None
    settings: list[Setting]
    front: list[FrontPoint]
    mispredictions: Mispredictions | None
    energy_lost_percent: LostBy | None
    marks: tuple[str, ...]
    processor: str | UnsetType = UNSET
    capability: str | None = None
    notes: list[str]
    kernels: list[Kernel]

    @property
    def is_of_run(self) -> bool:
        """Whether the program ran at one setting, `now`, and others are predicted; else all settings were measured."""
        return self.now is not None

    def baseline(self, picked: "Picked") -> At | None:
        """The setting that the best one is held against: where the program runs, or of measurements the fastest."""
        return picked.now if self.is_of_run else picked.fastest

    def answer(self, picked: "Picked") -> At | None:
        """The setting to choose: the measured best where energy was measured, else the model's; None: there is none."""
        return picked.measured_best or picked.best

    def amounts(self, picked: "Picked") -> tuple[str, str]:
        """The names of the fields, of energy and of time, that the answer rests on: predicted or measured."""
        return ("energy_j", "time_s") if picked.measured_best is None else ("measured_j", "measured_s")

    @property
    def nouns(self) -> Nouns:
        """The words for a kernel and a launch on the kind of processor that the program ran on."""
        return nouns_of(self.processor)

    def records(self) -> Iterator[dict[str, Any]]:
        """The table's rows, a setting each: of all kernels together, then of each. `pick`: those of PICKS there."""
        whole = {name: [getattr(setting, name) for setting in self.settings] for name in LISTS}
        yield from self._records(self.program, self, whole)
        for kernel in self.kernels:
            yield from self._records(kernel.name, kernel, {name: getattr(kernel, name) for name in LISTS})

    def _records(self, name: str, picks: "Picked", lists: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
        for place, setting in enumerate(self.settings):
            yield {
                "kernel": name,
                "core_mhz": setting.core_mhz,
                "memory_mhz": setting.memory_mhz,
                **{column: values[place] for column, values in lists.items()},
                "pick": " ".join(pick for pick in PICKS if same(getattr(picks, pick), setting)),
            }


Picked: TypeAlias = Kernel | Tune


def label(setting: Clocks | None) -> str:
    """A setting as users write it, "852/924"; "-" for None."""
    return mapped(lambda setting: setting.label, setting) or "-"


def same(first: Clocks | None, second: Clocks | None) -> bool:
    """Whether neither setting is None, and their clocks are the same."""
    return first is not None and second is not None and first.label == second.label
