"""What `eprof run` adds around a program that does nothing: `true`, on the simulated device and with nothing to report.

Usage: python benchmarks/overhead.py [ROUNDS]. The commands take turns, so that other load on the machine hits all alike.
Wall-clock time is from start to end; processor time is user and system time of the process and its children. The least of
the rounds says most of the code, the median most of the machine. Needs the simulated device (`pip install -e '.[simulator]'`).
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What the installed script `eprof` holds.
ENTRY = "from eprof.cli import main; main()"
COMMANDS = {
    "true": ["true"],
    "python -c pass": [sys.executable, "-c", "pass"],
    "eprof run true": [sys.executable, "-c", ENTRY, "run", "--no-report", "true"],
}
LIMIT_MS = 100


def cost(command: list[str], folder: str) -> tuple[float, float]:
    """Wall-clock and processor time in ms of one fresh process."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "PYTHONPYCACHEPREFIX": f"{folder}/pycache"}
    before, start = processor_s(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    wall, used = time.perf_counter() - start, processor_s() - before
    if ENTRY in command and "No kernel ran on the simulated device" not in done.stderr:
        sys.exit(f"the simulated device was not used: {done.stderr}")
    return 1e3 * wall, 1e3 * used


def processor_s() -> float:
    """User and system time of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print medians and minima, and what eprof adds to `true`."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS.values():
            cost(command, folder)  # compiles the modules, as an installation does
        for _ in range(rounds):
            for name, command in COMMANDS.items():
                found[name].append(cost(command, folder))
    print(f"{'ms':16} {'wall median':>12} {'wall least':>12} {'cpu median':>12} {'cpu least':>12}")
    for name, costs in found.items():
        wall, used = ([one[i] for one in costs] for i in (0, 1))
        numbers = (statistics.median(wall), min(wall), statistics.median(used), min(used))
        print(f"{name:16} " + " ".join(f"{number:12.1f}" for number in numbers))
    added = [
        statistics.median(one[i] for one in found["eprof run true"])
        - statistics.median(one[i] for one in found["true"])
        for i in (0, 1)
    ]
    print(
        f"added to true: {added[0]:.1f} ms on the clock, {added[1]:.1f} ms of processor time (goal: at most {LIMIT_MS} ms)"
    )


main()
