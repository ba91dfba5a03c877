"""What is fuzzed: readers, each with a seed, how it is spoilt, and what must hold of the result."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import damage
import others
import seeds
import written
from check import check, check_container, check_less, check_rows, check_whole

# Of so many inputs, one is checked as far as this; the rest as far as rows, which is what differs from input to input.
SUMS_EVERY, LESS_EVERY, WHOLE_EVERY = 64, 64, 1024


@dataclass(frozen=True)
class Target:
    """A reader. judge: raises for an input what must not be. others: what damages may mix in."""

    name: str
    seed: bytes
    judge: Callable[[bytes], None]
    others: tuple[bytes, ...] = ()
    ways: tuple[damage.Damage, ...] = damage.ALL

    def spoilt(self, number: int) -> bytes:
        """Input `number`, always the same."""
        return damage.damaged(self.seed, number, self.others, self.ways)

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
        elif number % LESS_EVERY == 0 and is_part(data, self.seed):
            check_less(self.seed, data, self.columns)
        elif number % SUMS_EVERY in (0, 2):
            check(data, self.columns)
        else:
            check_rows(data, self.columns)


@dataclass(frozen=True)
class LongTarget(Target):
    """Logs of every format with a very long line in them: time must grow as the length does."""

    def spoilt(self, number: int) -> bytes:
        """Input `number`, with one to three long pieces."""
        return damage.damaged(self.others[number % len(self.others)], number, self.others, damage.VERY_LONG)


@dataclass(frozen=True)
class WrittenTarget(Target):
    """Logs of every format written anew for each input (`written.py`), then spoilt; one in `LESS_EVERY` lost lines."""

    def spoilt(self, number: int) -> bytes:
        """Input `number`; half of them are spoilt once, the others up to three times."""
        _, data = written.drawn(number)
        chance = random.Random(number)
        if number % LESS_EVERY == 0:
            return chance.choice(damage.ONLY_LESS)(data, chance, self.others)
        if number % 2:
            return chance.choice(damage.ALL)(data, chance, self.others)
        return damage.damaged(data, number, self.others)

    def check(self, data: bytes, number: int) -> None:
        """As far as is this input's turn."""
        whole = written.drawn(number)[1] if number % LESS_EVERY == 0 else b""
        LogTarget(self.name, whole, check, self.others).check(data, number)


def is_part(data: bytes, whole: bytes) -> bool:
    """Whether `data` is a piece of `whole`, or some of its lines."""
    lines = iter(whole.splitlines(keepends=True))
    return data in whole or all(line in lines for line in data.splitlines(keepends=True))


def _logs() -> dict[str, Target]:
    made = {name: make() for name, make in {**seeds.SEEDS, **seeds.REFUSED}.items()}
    mixed_in = tuple(made.values())
    columns = {"nvprof-headerless": tuple(seeds.COLUMNS)}
    found: dict[str, Target] = {
        name: LogTarget(name, data, check, mixed_in, columns=columns.get(name)) for name, data in made.items()
    }
    return {
        **found,
        "ncu-report": Target("ncu-report", made["ncu-report"], check_container, mixed_in),
        "long": LongTarget("long", made["nvprof-text-usage"], check_rows, mixed_in),
        "written": WrittenTarget("written", written.drawn(0)[1], check, mixed_in),
    }


def _others() -> dict[str, Target]:
    made = {name: make() for name, (make, _) in others.SEEDS.items()}
    mixed_in = tuple(made.values())
    ways = {"formula": damage.OF_FORMULAS, "cache": damage.ALL, "measured": damage.ALL}
    return {
        name: Target(name, made[name], judge, mixed_in, ways.get(name, damage.OF_FORM))
        for name, (_, judge) in others.SEEDS.items()
    }


TARGETS: dict[str, Target] = {**_logs(), **_others()}
