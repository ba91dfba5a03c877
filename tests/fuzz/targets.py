"""What is fuzzed: readers, each with a seed, how it is spoilt, and what must hold of the result."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import damage
import seeds
from check import check, check_container, check_less, check_rows, check_whole

# Of so many inputs, one is checked as far as this; the rest as far as rows.
SUMS_EVERY, LESS_EVERY, WHOLE_EVERY = 8, 16, 64


@dataclass(frozen=True)
class Target:
    """A reader. judge: raises for an input what must not be. others: what damages may mix in."""

    name: str
    seed: bytes
    judge: Callable[[bytes], None]
    others: tuple[bytes, ...] = ()

    def spoilt(self, number: int) -> bytes:
        """Input `number`, always the same."""
        return damage.damaged(self.seed, number, self.others)

    def check(self, data: bytes, number: int) -> None:
        """Raises what must not be."""
        self.judge(data)


@dataclass(frozen=True)
class LogTarget(Target):
    """A reader of logs. columns: of rows without header."""

    columns: tuple[str, ...] | None = None

    def spoilt(self, number: int) -> bytes:
        """Input `number`; those for `check_less` have only lost something."""
        if number % LESS_EVERY:
            return super().spoilt(number)
        chance = random.Random(number)
        return chance.choice(damage.ONLY_LESS)(self.seed, chance, self.others)

    def check(self, data: bytes, number: int) -> None:
        """As far as is this input's turn."""
        if number % WHOLE_EVERY == 1:
            check_whole(data, self.columns)
        elif number % LESS_EVERY == 0 and data in self.seed:
            check_less(self.seed, data, self.columns)
        elif number % SUMS_EVERY == 2:
            check(data, self.columns)
        else:
            check_rows(data, self.columns)


def _logs() -> dict[str, Target]:
    made = {name: make() for name, make in {**seeds.SEEDS, **seeds.REFUSED}.items()}
    others = tuple(made.values())
    columns = {"nvprof-headerless": tuple(seeds.COLUMNS)}
    found: dict[str, Target] = {
        name: LogTarget(name, data, check, others, columns.get(name)) for name, data in made.items()
    }
    return {**found, "ncu-report": Target("ncu-report", made["ncu-report"], check_container, others)}


TARGETS: dict[str, Target] = _logs()
