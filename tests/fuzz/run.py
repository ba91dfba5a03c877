"""Fuzz the readers: damages of valid inputs, drawn at random.

    python tests/fuzz/run.py TARGET...|all [--inputs N] [--seconds S] [--totals FILE] [--random N] [--share K/N]

TARGET is a name of `targets.py`. What breaks an invariant of `check.py` in a new place is written to
tests/fuzz/findings/TARGET/, and is then a case of tests/whole/test_fuzz.py; the exit code is then 1. With --totals, counts are
added to those in a file of JSON, and inputs go on from the number where they ended there: none is drawn twice. With
--share 1/2 and --share 2/2, two processes divide the targets among them.
`guided.py` does the same guided by coverage.
"""

import argparse
import fcntl
import gc
import hashlib
import json
import logging
import math
import resource
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]
from targets import TARGETS, Target

SLICE_S = 3.0
MOST_BYTES = 6 << 30
Totals = dict[str, dict[str, float]]


def keep(target: str, data: bytes) -> Path:
    """Write a finding."""
    path = HERE / "findings" / target / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class Run:
    """Runs inputs of one target, counts them, and keeps the smallest of those that break something in one place."""

    def __init__(self, target: Target, first: int = 0) -> None:
        self.target, self.next = target, first
        self.inputs, self.broken, self.seconds = 0, 0, 0.0
        self.places: dict[object, Path] = {}

    def one(self, data: bytes, number: int) -> None:
        """Check an input."""
        self.inputs += 1
        try:
            self.target.check(data, number)
        except (Exception, SystemExit) as err:
            self.broken += 1
            place = (type(err), *traceback.extract_tb(err.__traceback__)[-1][:2], str(err)[:30])
            before = self.places.get(place)
            if before is None:
                print(f"{self.target.name} {number}: {type(err).__name__}: {err}"[:300], flush=True)
            if before is None or len(data) < before.stat().st_size:
                self.places[place] = keep(self.target.name, data)
                if before is not None:
                    before.unlink()

    def some(self, most: int, seconds: float = math.inf) -> int:
        """Inputs drawn at random, so many, or for so long on the processor; how many it were."""
        start, before = time.process_time(), self.inputs
        while self.inputs - before < most and time.process_time() - start < seconds:
            self.one(self.target.spoilt(self.next), self.next)
            self.next += 1
        self.seconds += time.process_time() - start
        return self.inputs - before


def read_totals(path: Path | None) -> Totals:
    """What was done before: target -> inputs, broken, seconds (of the processor), guided."""
    return json.loads(path.read_text()) if path is not None and path.is_file() else {}


def add_totals(path: Path | None, name: str, **more: float) -> None:
    """Add to what was done before."""
    if path is None:
        return
    with path.with_suffix(".lock").open("w") as lock:  # other processes add to it too
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = read_totals(path)
        row = known.setdefault(name, {})
        for what, number in more.items():
            row[what] = round(row.get(what, 0) + number, 3)
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(known, indent=1) + "\n")
        beside.replace(path)


def table(known: Totals) -> str:
    """The totals in Markdown, a row a target; rates are of the processor's time."""
    rows = ["| reader | at random | guided | broke something | a second |", "|---|---:|---:|---:|---:|"]
    for name in dict.fromkeys([*TARGETS, *known]):
        one = known.get(name, {})
        counts = [int(one.get(what, 0)) for what in ("random", "guided", "broken")]
        rate = sum(counts[:2]) / one["seconds"] if one.get("seconds") else 0
        rows.append(f"| {name} | {counts[0]:,} | {counts[1]:,} | {counts[2]:,} | {rate:,.0f} |")
    sums = [int(sum(one.get(what, 0) for one in known.values())) for what in ("random", "guided", "broken")]
    return "\n".join([*rows, f"| all | {sums[0]:,} | {sums[1]:,} | {sums[2]:,} | |"])


def prepare() -> None:
    """Bounded memory, no log lines, and no time for garbage but between slices."""
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    gc.disable()


def main() -> int:
    """Parse the command line; slices of all targets in turn until the time or the inputs are at their end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="*", metavar="TARGET", help="all, or some of what --list tells")
    parser.add_argument("--list", action="store_true", help="tell the targets")
    parser.add_argument("--told", action="store_true", help="show the totals as a table")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of each target, with those of --totals")
    parser.add_argument("--seconds", type=float, default=3600, help="of all targets together")
    parser.add_argument("--totals", type=Path, help="a file of JSON to add the counts to")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="the number of the first input")
    parser.add_argument("--share", default="1/1", metavar="K/N", help="every Nth of the targets, from the Kth on")
    options = parser.parse_args()
    if options.list or options.told:
        print(table(read_totals(options.totals)) if options.told else "\n".join(TARGETS))
        return 0
    if not options.target or not {"all", *TARGETS} >= set(options.target):
        parser.error(f"name targets: all, {', '.join(TARGETS)}")
    prepare()
    known = read_totals(options.totals)
    part, parts = map(int, options.share.split("/"))
    names = (list(TARGETS) if "all" in options.target else options.target)[part - 1 :: parts]
    done = {name: int(known.get(name, {}).get("random", 0)) for name in names}
    runs = [Run(TARGETS[name], options.random + done[name]) for name in names]
    end = time.monotonic() + options.seconds

    def left(run: Run) -> int:
        return max(options.inputs - done[run.target.name] - run.inputs, 0)

    while time.monotonic() < end and any(left(run) for run in runs):
        for run in runs:
            if left(run) and time.monotonic() < end:
                before = run.broken, run.seconds
                number = run.some(left(run), SLICE_S)
                gc.collect()
                add_totals(
                    options.totals,
                    run.target.name,
                    random=number,
                    broken=run.broken - before[0],
                    seconds=run.seconds - before[1],
                )
    for run in runs:
        if not run.inputs:
            continue
        rate = run.inputs / run.seconds if run.seconds else 0
        print(
            f"{run.target.name}: {run.inputs:,} inputs, {run.broken} broke something, {rate:.0f} a second", flush=True
        )
    return any(run.broken for run in runs)


if __name__ == "__main__":
    sys.exit(main())
