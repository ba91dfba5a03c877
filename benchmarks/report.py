"""The whole job, `eprof report LOG -o out.json`, beside a bare `pandas.read_csv` of the same rows, process for process.

    python benchmarks/report.py [FOLDER] [ROUNDS] [LOG ...]

LOG: some of rows100k, ncu_long, ncu_raw, summary, wide, trace; all without one. Both are timed from the start of Python to its end, taking turns; pandas gets one clean table: the same rows without the
lines around them. Prints medians, their ratio, the same of processor time (user and system), which other programs on the
machine disturb less, and the most memory each process held.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from generate import summary, write_all, write_ncu
from read import bare

PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1])"
GOALS = "goals: at most 1.5 times pandas and 1,000 MB"


def run(command: list[str]) -> tuple[float, float, float]:
    """(seconds, seconds of processor time, MB at the most) of one process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{command}: {process.stderr.read().decode() if process.stderr else status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


Runs = list[tuple[float, float, float]]


def compare(path: Path, rounds: int) -> tuple[Runs, Runs]:
    """Rounds of `run` of eprof and of pandas on one log, in turns."""
    ours, theirs = [], []
    clean = bare(path)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.json")
        report = ["-m", "eprof", "report", str(path), "--costs", "jetson-tk1", "-q", "-f", "-o", out]
        for _ in range(rounds):
            ours.append(run([sys.executable, *report]))
            theirs.append(run([sys.executable, "-c", PANDAS, str(clean)]))
    return ours, theirs


def logs(folder: Path, names: list[str]) -> dict[str, Path]:
    """The logs of these names, written if they are not there yet."""
    paths = write_ncu(folder)
    small = folder / "rows100k.csv"
    if not small.exists():
        summary(small, runs=5, kernels=2500)
    paths = {"rows100k": small, **paths}
    if not names or set(names) - set(paths):
        paths |= write_all(folder)
    return {name: path for name, path in paths.items() if not names or name in names}


def main(folder: Path, rounds: int, names: list[str]) -> None:
    """Print a line for each log."""
    print(
        f"{'log':10} {'MB':>6} {'eprof s':>9} {'pandas s':>9} {'ratio':>6} {'eprof cpu':>10} {'pandas cpu':>11} "
        f"{'ratio':>6} {'eprof MB':>9} {'pandas MB':>10}   {GOALS}"
    )
    for name, path in logs(folder, names).items():
        both = compare(path, rounds)
        (seconds, other), (cpu, other_cpu) = (
            [statistics.median(one[place] for one in runs) for runs in both] for place in (0, 1)
        )
        memory, other_memory = (max(one[2] for one in runs) for runs in both)
        size = path.stat().st_size / 1e6
        print(
            f"{name:10} {size:6.0f} {seconds:9.2f} {other:9.2f} {seconds / other:6.2f} {cpu:10.2f} {other_cpu:11.2f} "
            f"{cpu / other_cpu:6.2f} {memory:9.0f} {other_memory:10.0f}"
        )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]) if given else Path(".bench"), int(given[1]) if len(given) > 1 else 3, given[2:])
