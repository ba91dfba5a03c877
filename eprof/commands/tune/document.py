"""The document `eprof.tune/1`, from which every report is made (docs/tune.md), and how grids become it.

None: not known.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from eprof.base.arrays import finite, finite_all
from eprof.base.optional import either, mapped, ratio
from eprof.base.text import few, when
from eprof.base.vocabulary import Nouns, mark_names, nouns_of
from eprof.commands.tune.grids import Choice, Grid, Lost, Point, PowerModel, Time, Tuning, choose, front, lost, together
from eprof.lab.objective import Clocks, Objective
from eprof.profile.schema import Document, Range
from eprof.show.numbers import LITTLE

SCHEMA = "eprof.tune/1"
PICKS = ("best", "fastest", "measured_best", "now")
# What a meter says of a choice.
_JUDGED = ("wrong", "lost_percent", "oracle_wrong", "oracle_lost_percent", "breaks_a_limit")


class At(Clocks, frozen=True, kw_only=True):
    """Energy and time at one setting, as predicted and as measured. why: what the table does not know of it."""

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
    """One kernel, with the settings picked for it (None: none could be) and lists over all settings of the document.

    now: the setting that ran. wrong: whether `best` is not the measured best; lost_percent: what energy that lost.
    oracle_wrong, oracle_lost_percent: the same of `fastest`.
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
    """A setting that no other beats in both time and energy: a point of the Pareto front."""

    energy_j: float
    time_s: float


class Joules(Struct, frozen=True):
    """Energy in J and time in s of the program, with each kernel at its own best setting."""

    energy_j: float | None
    time_s: float | None


class Mispredictions(Struct, frozen=True):
    """How many kernels' picks, of the model or the fastest (oracle), are not the measured best, or break a limit."""

    cases: int
    model: int
    oracle: int
    model_breaks_a_limit: int


class LostBy(Struct, frozen=True):
    """How much more energy than at the measured best the model's picks use, and the fastest settings (oracle)."""

    model: Lost
    oracle: Lost


class Gain(Struct, frozen=True):
    """What the setting to choose saves of the objective's value, as a share of that at `now`, or at the fastest.

    energy_range: the interval of the share of energy; None: not known. is_worth_it: whether the saving is enough, and
    sure enough, to change clocks for.
    """

    share: float | None
    energy_range: Range | None
    is_worth_it: bool


class Tune(Document, frozen=True, kw_only=True):
    """The document of `eprof tune`; its own picks (best, fastest...) are for all kernels together.

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
        """(field of energy, field of time) that the answer rests on: those predicted, or those measured."""
        return ("energy_j", "time_s") if picked.measured_best is None else ("measured_j", "measured_s")

    @property
    def nouns(self) -> Nouns:
        """The words for a kernel and a launch on the kind of processor that the program ran on."""
        return nouns_of(self.processor)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the CSV's rows, one a setting: of all kernels together, then of each. `pick`: its names of PICKS."""
        whole = {name: [getattr(setting, name) for setting in self.settings] for name in Grid.COLUMNS}
        yield from self._records(self.program, self, whole)
        for kernel in self.kernels:
            yield from self._records(kernel.name, kernel, {name: getattr(kernel, name) for name in Grid.COLUMNS})

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
    """The clocks of a setting as users write them, "852/924"; "-" for None."""
    return mapped(lambda setting: setting.label, setting) or "-"


def same(first: Clocks | None, second: Clocks | None) -> bool:
    """Whether neither setting is None, and their clocks are the same."""
    return first is not None and second is not None and first.label == second.label


def document(tuning: Tuning, objective: Objective, command_line: Sequence[str] = ()) -> Tune:
    """The document `eprof.tune/1`: the best settings for each kernel and for all together, and what they save."""
    grids, points = tuning.grids, tuning.points
    program = together(grids, tuning.whole)
    whole = choose(program, objective)
    choices = [choose(grid, objective) for grid in grids]
    model = lost([(choice.wrong, choice.lost_percent) for choice in choices])
    oracle = lost([(choice.oracle_wrong, choice.oracle_lost_percent) for choice in choices])
    losses = mispredictions = None
    if model is not None and oracle is not None:
        broken = sum(bool(choice.breaks_a_limit) for choice in choices)
        losses = LostBy(model, oracle)
        mispredictions = Mispredictions(model.cases, model.wrong, oracle.wrong, broken)

    told, *told_kernels = [program, *grids]
    if whole.measured is not None:
        told, *told_kernels = [grid.measured for grid in (program, *grids)]
    values, allowed = objective.value(told.energy_j, told.time_s), told.allowed(objective)
    goal = objective.words(when(program.now is None, "the fastest setting") or "now")
    return Tune(
        command_line=list(command_line),
        title=tuning.title,
        program=tuning.whole,
        model=tuning.model,
        objective=objective.name,
        objective_words=goal,
        max_slowdown_percent=mapped(lambda share: 100 * share, objective.max_slowdown),
        power_limit_w=objective.power_limit_w,
        time=tuning.time,
        **_picks(program, whole, points),
        is_now_assumed=tuning.is_now_assumed,
        held_by=tuning.held_by or UNSET,
        ran=mapped(lambda place: At(**_at(program, place, points)), tuning.ran),
        gain=_gain(tuning, told, objective, either(whole.measured, whole.best), either(program.now, whole.fastest)),
        each_its_own=_each_its_own(told_kernels, objective),
        settings=[
            Setting(**_at(program, place, points), value=finite(values[place]), allowed=bool(allowed[place]))
            for place in range(len(points))
        ],
        front=[
            FrontPoint(points[at].core_mhz, points[at].memory_mhz, float(told.energy_j[at]), float(told.time_s[at]))
            for at in front(told)
        ],
        mispredictions=mispredictions,
        energy_lost_percent=losses,
        marks=tuple(mark_names(int(program.marks))),
        processor=tuning.processor,
        capability=tuning.capability,
        notes=[*tuning.notes, *_notes(grids, choices, whole, goal)],
        kernels=[
            Kernel(
                name=grid.name,
                kernel=grid.kernel,
                launches=grid.launches,
                **_picks(grid, choice, points),
                **{name: getattr(choice, name) for name in _JUDGED},
                **dict[str, Any]((name, finite_all(getattr(grid, name))) for name in Grid.COLUMNS),
                marks=tuple(mark_names(int(grid.marks))),
            )
            for grid, choice in zip(grids, choices, strict=True)
        ],
    )


def _gain(tuning: Tuning, program: Grid, objective: Objective, answer: int | None, before: int | None) -> Gain | None:
    """What the program gains at the setting at place `answer` over that at `before`; None: it stays, or is not known.

    It is worth a change where it is more than a little and, of energy, above 0 by all of its interval; and in any case
    where the setting before keeps no limit.
    """
    if answer is None or before is None or answer == before:
        return None
    value = objective.value(program.energy_j, program.time_s)
    saved = 1 - float(value[answer] / value[before])
    ends = tuning.saved and tuning.saved(program.energy_j, answer, before)
    is_sure = objective.name != "energy" or ((ends or [saved])[0] or 0.0) > 0
    is_worth_it = not program.allowed(objective)[before] or (saved >= LITTLE and is_sure)
    return Gain(finite(saved), ends, bool(is_worth_it))


def _each_its_own(kernels: Sequence[Grid], objective: Objective) -> Joules | None:
    """The program if each kernel ran at its own best setting, and changes cost nothing; None: one has no best."""
    best = [(grid, place) for grid in kernels if (place := grid.pick(objective)) is not None]
    if len(best) < len(kernels):
        return None
    own_j, own_s = (sum(getattr(grid, field)[place] for grid, place in best) for field in ("energy_j", "time_s"))
    return Joules(finite(own_j), finite(own_s))


def _notes(grids: Sequence[Grid], choices: Sequence[Choice], whole: Choice, goal: str) -> Iterator[str]:
    """Yield sentences on kernels for which no setting can be picked, and picks that break a limit. goal: in words."""
    both = zip(grids, choices, strict=True)
    unpicked = [grid.name for grid, choice in both if choice.best is None and choice.measured is None]
    if unpicked:
        yield f"No setting can be picked for {few(unpicked, 1)}: none is known that gives {goal}."
    elif whole.best is None and whole.measured is None:
        is_unknown = np.isnan([grid.energy_j for grid in grids]).any(axis=0).all()
        why = when(is_unknown, "at none is the energy of all of them known") or f"none gives {goal}"
        yield f"No setting can be picked for all kernels together: {why}."
    if broken := sum(bool(choice.breaks_a_limit) for choice in choices):
        yield f"For {broken} kernels the pick breaks the limit, as measured."


def _picks(grid: Grid, choice: Choice, points: Sequence[Point]) -> dict[str, Any]:
    """Pick (of PICKS) -> its setting, energy and time for a kernel or program, as `At`; None: none was picked."""
    places = {"best": choice.best, "fastest": choice.fastest, "measured_best": choice.measured, "now": grid.now}
    return {pick: mapped(lambda place: At(**_at(grid, place, points)), place) for pick, place in places.items()}


def _at(grid: Grid, place: int, points: Sequence[Point]) -> dict[str, Any]:
    """The fields of an `At`: clocks, energy, time and marks of a grid at the setting at `place` of `points`."""
    energy_j, time_s, point = finite(grid.energy_j[place]), finite(grid.time_s[place]), points[place]
    return {
        "core_mhz": point.core_mhz,
        "memory_mhz": point.memory_mhz,
        "energy_j": energy_j,
        "time_s": time_s,
        "power_w": ratio(energy_j, time_s),
        "measured_j": finite(grid.measured_j[place]),
        "measured_s": finite(grid.measured_s[place]),
        "marks": tuple(mark_names(int(point.marks | grid.marks))),
        "why": point.why or None,
    }
