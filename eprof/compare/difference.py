"""Two sides compared: `Difference`, its numbers, and its document `eprof.diff/1` (by `document`)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from eprof.base.errors import LogError
from eprof.base.marks import Mark
from eprof.compare import gates as gating
from eprof.compare.changes import LOWER, Changes, Half, changes
from eprof.compare.matching import Match, Matching, match
from eprof.compare.model import Read, reading
from eprof.compare.side import TIME, Side, side
from eprof.compare.welch import Test, welch
from eprof.profile.profile import Energy

_MISSING = int(Mark.MISSING)


@dataclass(frozen=True, eq=False)
class Difference:
    """NEW against OLD. Energies in J; "compared" is what both sides know, and all parts of the change are of it."""

    old: Side
    new: Side
    matching: Matching
    changes: Changes
    gates: tuple[gating.Outcome, ...] = ()
    command_line: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def matches(self) -> tuple[Match, ...]:
        """Every kernel of both sides once."""
        return self.matching.matches

    @cached_property
    def parts(self) -> list[dict[str, Any]]:
        """What the change is made of: by word over all matched kernels, and by word for each that came or went.

        Their `change_j` add up to `change_j`, in whatever order they are added with `math.fsum`.
        """
        from eprof.compare.parts import all_parts

        return all_parts(self)

    @cached_property
    def change_j(self) -> float | None:
        """The change of the compared energy: the sum of all parts; None if no energy is compared."""
        return math.fsum(part["change_j"] for part in self.parts) if self.has_energy else None

    @cached_property
    def has_energy(self) -> bool:
        """Whether any energy is known on both sides. A kernel that only one has is compared with nothing at all."""
        return self.old.costs is not None and self.new.costs is not None and bool(self.changes.compared.any())

    def compared_j(self, half: Half) -> float | None:
        """The energy of one side, as far as it is compared."""
        return math.fsum(half.joules[self.changes.compared].tolist()) if self.has_energy else None

    @cached_property
    def marks(self) -> int:
        """The marks of the change: those of every cell in it, MISSING if something is not."""
        found = self.changes.marks[self._moving]
        lost = self.changes.uncompared.any() or self.changes.unknown.any() or not self.has_energy
        return int(np.bitwise_or.reduce(found.ravel(), initial=0)) | (_MISSING if lost else 0)

    @property
    def _moving(self) -> Any:
        one, other = self.changes.old, self.changes.new
        return self.changes.compared & ((one.joules != 0) | (other.joules != 0))

    @property
    def is_partial(self) -> bool:
        """Whether some energy that one side knows is left out because the other does not."""
        return bool(self.changes.uncompared.any())

    def time_s(self, half: Half) -> float | None:
        """The time of all kernels of one side; None unless all are known."""
        total = float(half.number[:, TIME].sum())
        return None if math.isnan(total) else total

    @cached_property
    def speedup(self) -> float | None:
        """T_old / T_new ([T] 3.5); None where a time is a lower bound, of which no quotient is known."""
        if (np.stack([half.state[:, TIME] for half in (self.changes.old, self.changes.new)]) == LOWER).any():
            return None
        return _ratio(self.time_s(self.changes.old), self.time_s(self.changes.new))

    @cached_property
    def greenup(self) -> float | None:
        """E_old / E_new ([T] eq. 16), of what is compared."""
        return _ratio(self.compared_j(self.changes.old), self.compared_j(self.changes.new))

    @cached_property
    def powerup(self) -> float | None:
        """P_new / P_old = speedup / greenup; None where constant energy is not in the comparison."""
        constant = self.changes.compared[:, TIME].all()
        return _ratio(self.speedup, self.greenup) if constant else None

    @cached_property
    def reading(self) -> Read:
        """What the two-level model says."""
        return reading(self.old, self.new)

    @cached_property
    def is_zero(self) -> bool:
        """Whether nothing changed: every count, time and price that is known, to the last digit."""
        one, other = self.changes.old, self.changes.new
        paired = all(match.old is not None and match.new is not None for match in self.matches)
        prices = np.array_equal(self.old.price, self.new.price, equal_nan=True)
        return paired and prices and np.array_equal(one.number, other.number, equal_nan=True)

    @cached_property
    def same_inputs(self) -> bool:
        """Whether both sides are made from the same logs."""
        return bool(self.old.inputs) and self.old.inputs == self.new.inputs

    def test(self, row: int | None = None) -> Test | None:
        """Welch's test on the compared energy of all kernels, or of one match; None without repeats."""
        rows = slice(None) if row is None else slice(row, row + 1)
        return welch(
            *(self._repeated(repeats, rows) for repeats in (self.changes.old_repeats, self.changes.new_repeats))
        )

    def time_test(self) -> Test | None:
        """Welch's test on the time of all kernels."""
        sides = (self.changes.old_repeats, self.changes.new_repeats)
        times = [[float(one.number[:, TIME].sum()) for one in repeats] for repeats in sides]
        return welch(*([one for one in several if not math.isnan(one)] for several in times))

    def _repeated(self, repeats: Sequence[Half], rows: slice) -> list[float]:
        """The compared energy of every repeat that knows all of it."""
        compared = self.changes.compared[rows]
        totals = [math.fsum(half.joules[rows][compared].tolist()) for half in repeats]
        return [total for total in totals if not math.isnan(total)]

    def document(self) -> dict[str, Any]:
        """The difference as the plain data of `docs/diff.md`: what is saved, and what every report is made of."""
        from eprof.compare.document import document

        return document(self)

    def to_frame(self) -> pd.DataFrame:
        """A row a part of every kernel, with its units in the columns; the same as the CSV."""
        from eprof.compare.document import frame

        return frame(self)

    def __repr__(self) -> str:
        """What it is about; `document` and `to_frame` show the numbers."""
        change = "not known" if self.change_j is None else f"{self.change_j:+.6g} J"
        return f"<Difference of {len(self.matches)} kernels: {change}>"

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()  # type: ignore[operator,no-any-return]


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def compare(
    old: Sequence[Energy],
    new: Sequence[Energy],
    *,
    match_by_hand: Sequence[str] = (),
    similar: bool = True,
    keep: Callable[[str], bool] | None = None,
    fail_above: Sequence[str] = (),
    command_line: Sequence[str] = (),
) -> Difference:
    """Compare two variants, each one priced profile or several repeats of it.

    match_by_hand, similar: see `matching.match`. keep: which kernels, by their full name on either side. fail_above:
    gates, see `gates.parse`.
    Raises UsageError (a match or a gate that names nothing, repeats priced differently) and EprofError (a gate that
    cannot be judged).
    """
    asked = [gating.parse(text) for text in fail_above]
    sides = side("OLD", old), side("NEW", new)
    matching = match(sides[0].named, sides[1].named, match_by_hand, similar)
    if keep is not None:
        *sides, matching = _kept(*sides, matching, keep)  # type: ignore[assignment]
    found = Difference(*sides, matching, changes(*sides, matching.matches), (), tuple(command_line), matching.notes)
    return replace(found, gates=tuple(gating.judge(asked, found))) if asked else found


def _kept(old: Side, new: Side, matching: Matching, keep: Callable[[str], bool]) -> tuple[Side, Side, Matching]:
    """The matches of which either side's name is kept, and the sides without all other kernels.

    Raises LogError if none is.
    """
    chosen = [
        one
        for one in matching.matches
        if (one.old is not None and keep(old.named[one.old].name))
        or (one.new is not None and keep(new.named[one.new].name))
    ]
    if not chosen:
        raise LogError("-k/--kernel-name matches no kernel of either side.")
    places_old = [one.old for one in chosen if one.old is not None]
    places_new = [one.new for one in chosen if one.new is not None]
    again = tuple(
        replace(
            one,
            old=None if one.old is None else places_old.index(one.old),
            new=None if one.new is None else places_new.index(one.new),
        )
        for one in chosen
    )
    note = (
        f"{len(chosen)} of {len(matching.matches)} kernels are selected by -k/--kernel-name; totals are of these only."
    )
    return old.taken(places_old), new.taken(places_new), Matching(again, (*matching.notes, note))
