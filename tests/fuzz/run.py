"""Fuzz the readers: damages of valid logs, drawn at random.

    python tests/fuzz/run.py SEED|all [--inputs 1000000] [--seconds 3600] [--random N]

SEED is a name of `seeds.py`. What breaks an invariant of `check.py` in a new place is written to tests/fuzz/findings/, and
is then a case of tests/test_fuzz.py. `guided.py` does the same guided by coverage.
"""

import argparse
import hashlib
import logging
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
import damage
from check import check, check_whole
from seeds import SEEDS

WHOLE_EVERY = 64


def keep(data: bytes) -> Path:
    """Write a finding."""
    path = HERE / "findings" / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


class Target:
    """Runs inputs, counts them, and keeps those that break something."""

    def __init__(self, seconds: float) -> None:
        self.inputs, self.broken, self.end = 0, 0, time.monotonic() + seconds
        self.places: set[object] = set()

    def __call__(self, data: bytes) -> None:
        self.inputs += 1
        try:
            (check_whole if self.inputs % WHOLE_EVERY == 0 else check)(data)
        except Exception as err:
            self.broken += 1
            place = (type(err), *traceback.extract_tb(err.__traceback__)[-1][:2])
            if place not in self.places:
                print(f"{type(err).__name__}: {err}: {keep(data)}", flush=True)
            self.places.add(place)

    @property
    def is_done(self) -> bool:
        return time.monotonic() > self.end


def at_random(name: str, target: Target, inputs: int, seed: int) -> None:
    """Damages drawn at random."""
    others = [make() for make in SEEDS.values()]
    for number in range(inputs):
        target(damage.damaged(SEEDS[name](), seed + number, others))
        if target.is_done:
            return


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", choices=["all", *SEEDS])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--random", type=int, default=1, metavar="N", help="start of the random numbers")
    options = parser.parse_args()
    logging.disable()
    names = list(SEEDS) if options.seed == "all" else [options.seed]
    for name in names:
        target = Target(options.seconds / len(names))
        start = time.monotonic()
        at_random(name, target, options.inputs // len(names), options.random)
        rate = target.inputs / (time.monotonic() - start)
        print(f"{name}: {target.inputs:,} inputs, {target.broken} broke something, {rate:.0f} a second", flush=True)


if __name__ == "__main__":
    main()
