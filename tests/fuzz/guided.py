"""Fuzz the readers guided by coverage: what reaches new lines of eprof is damaged further (atheris, libFuzzer).

    pip install atheris
    python tests/fuzz/guided.py SEED [options of libFuzzer, such as -runs=1000000 -max_total_time=3600]

Damages are those of `damage.py`, and libFuzzer's own. Findings go where those of `run.py` go. New inputs that reach new
lines are put into a folder of yours: CORPUS in the environment, else a temporary one.
"""

import logging
import os
import random
import sys
import tempfile
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
with atheris.instrument_imports(include=["eprof.logs"]):
    import eprof.logs.combining
    import eprof.logs.reading  # noqa: F401

import damage
from run import Target
from seeds import SEEDS


def main() -> None:
    """Run until libFuzzer has had enough; it ends the process."""
    logging.disable()
    others = [make() for make in SEEDS.values()]

    def mutate(data: bytes, most: int, number: int) -> bytes:
        own = random.Random(number).random() < 0.3
        return (atheris.Mutate(data, most) if own else damage.damaged(data or others[0], number, others))[:most]

    corpus = os.environ.get("CORPUS") or tempfile.mkdtemp(prefix="eprof-fuzz-")
    (Path(corpus) / sys.argv[1]).write_bytes(SEEDS[sys.argv[1]]())
    atheris.Setup([sys.argv[0], corpus, "-max_len=65536", *sys.argv[2:]], Target(1e9), custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
