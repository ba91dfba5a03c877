"""Fuzz guided by coverage: what reaches new lines of eprof is damaged further (atheris, libFuzzer).

    pip install atheris
    python tests/fuzz/guided.py TARGET [--totals FILE] [options of libFuzzer, such as -runs=1000000 -max_total_time=3600]

Targets, damages and checks are those of `run.py`, and damages of libFuzzer's own. Findings go where those of `run.py` go;
look there, for the exit code is libFuzzer's. New inputs that reach new lines are put into a folder of yours: CORPUS in
the environment, else a temporary one.
"""

import gc
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]
with atheris.instrument_imports(include=["eprof"]):
    from run import Run, add_totals, prepare
    from targets import TARGETS

import damage

TOLD_EVERY = 500
OWN = 0.3  # of the damages are libFuzzer's


class Guided:
    """Counts what libFuzzer runs; it ends the process without a word, so totals are written on the way."""

    def __init__(self, run: Run, totals: Path | None) -> None:
        self.run, self.totals, self.told, self.broken, self.start = run, totals, 0, 0, time.process_time()

    def __call__(self, data: bytes) -> None:
        # Sums and documents are checked as often as in `run.py`.
        self.run.one(data, self.run.inputs)
        if self.run.inputs - self.told >= TOLD_EVERY:
            now = time.process_time()
            add_totals(
                self.totals,
                self.run.target.name,
                guided=self.run.inputs - self.told,
                broken=self.run.broken - self.broken,
                seconds=now - self.start,
            )
            self.told, self.broken, self.start = self.run.inputs, self.run.broken, now
            gc.collect()


def main() -> None:
    """Run until libFuzzer has had enough; it ends the process."""
    name, *rest = sys.argv[1:]
    totals = None
    if rest[:1] == ["--totals"]:
        totals, rest = Path(rest[1]), rest[2:]
    prepare()
    target = TARGETS[name]

    def mutate(data: bytes, most: int, number: int) -> bytes:
        if random.Random(number).random() < OWN:
            return bytes(atheris.Mutate(data, most))
        return damage.damaged(data or target.seed, number, target.others, target.ways)[:most]

    corpus = os.environ.get("CORPUS") or tempfile.mkdtemp(prefix="eprof-fuzz-")
    Path(corpus).mkdir(parents=True, exist_ok=True)
    (Path(corpus) / name).write_bytes(target.seed)
    options = ["-max_len=65536", "-rss_limit_mb=4096", "-timeout=300", *rest]
    atheris.Setup([sys.argv[0], corpus, *options], Guided(Run(target), totals), custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
