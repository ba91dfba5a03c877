"""Fuzz what NVIDIA's own reader makes of damaged reports of ncu: in processes of their own, for it may take them down.

    python tests/fuzz/native.py REPORT.ncu-rep [--inputs 200] [--first 0] [--totals FILE]

The reports are some MB and not part of the repository, so a finding is told by its number: `spoilt(data, number)`.
"""

import argparse
import random
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]
BATCH = 20
PATIENCE_S = 60.0  # for one input
_START = 64  # bytes of the file header, which the container's own walk (`check_container`) sees to


def spoilt(data: bytes, number: int) -> bytes:
    """Some bits are wrong, or a piece stands where another did; lengths stay, so that most reach the reader."""
    chance = random.Random(number)
    changed = bytearray(data)
    for _ in range(chance.choice((1, 4, 32, 256))):
        place = chance.randrange(_START, len(data))
        if chance.random() < 0.7:
            changed[place] ^= 1 << chance.randrange(8)
        else:
            size = min(chance.randrange(1, 64), len(data) - place)
            start = chance.randrange(len(data) - size)
            changed[place : place + size] = data[start : start + size]
    return bytes(changed)


def child(path: Path, first: int, inputs: int) -> None:
    """Read inputs, and tell the number of each before it is read."""
    from check import attempt, check_log, strictly

    data = path.read_bytes()
    for number in range(first, first + inputs):
        print(number, flush=True)
        log = attempt(spoilt(data, number))
        if log is not None:
            with strictly(data):
                check_log(log)


def main() -> int:
    """Batches, each in a process; a batch that ends early goes on behind the input that ended it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--totals", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.report, options.first, options.inputs)
        return 0
    from run import add_totals

    number, end, broken = options.first, options.first + options.inputs, 0
    while number < end:
        batch = min(BATCH, end - number)
        words = [sys.executable, __file__, str(options.report), "--child", f"--first={number}", f"--inputs={batch}"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S * batch)
            status, said, why = done.returncode, done.stdout, done.stderr.strip().rpartition("\n")[2]
        except subprocess.TimeoutExpired as err:
            status, said, why = 1, (err.stdout or b"").decode(), "no end"
        last = int(said.split()[-1]) if said.split() else number
        if status:
            broken += 1
            how = signal.Signals(-status).name if status < 0 else why
            print(f"{options.report.name} {last}: {how}", flush=True)
        add_totals(options.totals, "ncu-report-native", random=last + 1 - number, broken=int(bool(status)))
        number = last + 1
    print(f"{options.report.name}: {options.inputs} inputs, {broken} broke something", flush=True)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
