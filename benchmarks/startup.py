"""How much longer `eprof --help` and `import eprof` take than `python -c pass`, side by side in one run.

Usage: python benchmarks/startup.py [ROUNDS]. The three commands take turns, so that other load on the machine hits all alike.
"""

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import eprof": ["-c", "import eprof"],
    "eprof --help": ["-m", "eprof", "--help"],
}
LIMITS_MS = {"import eprof": 20, "eprof --help": 70}


def seconds(arguments: list[str]) -> float:
    """Wall-clock time of one fresh interpreter."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print medians and what each adds to a bare interpreter."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    base = statistics.median(times["python -c pass"])
    for name, found in times.items():
        median = statistics.median(found)
        limit = f"  (goal: at most {LIMITS_MS[name]} ms more)" if name in LIMITS_MS else ""
        print(f"{name:16} {1e3 * median:6.1f} ms  +{1e3 * (median - base):5.1f} ms{limit}")


main()
