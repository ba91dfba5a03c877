"""The whole job, `eprof report LOG -o out.json`, beside a bare `pandas.read_csv` of the same rows, process for process.

    python benchmarks/report.py [FOLDER] [ROUNDS]

Both are timed from the start of Python to its end, taking turns; pandas gets one clean table: the same rows without the
lines around them. Prints medians, their ratio, and the most memory each process held.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from generate import summary, write_all
from read import bare

PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1])"
GOALS = "goals: at most 1.5 times pandas and 1,000 MB"


def run(command: list[str]) -> tuple[float, float]:
    """(seconds, MB at the most) of one process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{command}: {process.stderr.read().decode() if process.stderr else status}")
    return seconds, usage.ru_maxrss / 1024


def compare(path: Path, rounds: int) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Rounds of (seconds, MB) of eprof and of pandas on one log, in turns."""
    ours, theirs = [], []
    clean = bare(path)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.json")
        report = ["-m", "eprof", "report", str(path), "--costs", "jetson-tk1", "-q", "-f", "-o", out]
        for _ in range(rounds):
            ours.append(run([sys.executable, *report]))
            theirs.append(run([sys.executable, "-c", PANDAS, str(clean)]))
    return ours, theirs


def main(folder: Path, rounds: int) -> None:
    """Print a line for each log."""
    paths = write_all(folder)
    small = folder / "rows100k.csv"
    if not small.exists():
        summary(small, runs=5, kernels=2500)
    print(
        f"{'log':10} {'MB':>6} {'eprof s':>9} {'pandas s':>9} {'ratio':>6} {'eprof MB':>9} {'pandas MB':>10}   {GOALS}"
    )
    for name, path in {"rows100k": small, **paths}.items():
        ours, theirs = compare(path, rounds)
        seconds, other = (statistics.median(one for one, _ in runs) for runs in (ours, theirs))
        memory, other_memory = (max(one for _, one in runs) for runs in (ours, theirs))
        size = path.stat().st_size / 1e6
        print(
            f"{name:10} {size:6.0f} {seconds:9.2f} {other:9.2f} {seconds / other:6.2f} {memory:9.0f} {other_memory:10.0f}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".bench"), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
