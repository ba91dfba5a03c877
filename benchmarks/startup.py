"""How much processor time a first command takes, next to `import pandas`. All commands take turns.

Usage: python benchmarks/startup.py [ROUNDS]. The goal: a report on a small log takes at most 0.7 times `import pandas`.
"""

import operator
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BASE = "import pandas"
LOG = """==1== NVPROF is profiling process 1, command: ./made_up
==1== Profiling application: ./made_up
==1== Profiling result:
==1== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla K20c (0)","axpy(int, float*)",2,"inst_integer","Integer Instructions",{0},{0},{0}
"Tesla K20c (0)","axpy(int, float*)",2,"flop_count_sp_fma","FLOPS",1000,1000,1000
"Tesla K20c (0)","axpy(int, float*)",2,"dram_read_transactions","Device Memory Read Transactions",500,500,500
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """The arguments of the interpreter, by name."""
    old, new = folder / "old.csv", folder / "new.csv"
    old.write_text(LOG.format(1_000_000))
    new.write_text(LOG.format(900_000))
    report = ["-m", "eprof", "report", str(old), "--costs", "gtx680", "--time", "0.5"]
    return {
        BASE: ["-c", BASE],
        "python -c pass": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "eprof --help": ["-m", "eprof", "--help"],
        "eprof report": report,
        "eprof report -o": [*report, "-o", str(folder / "report.html"), "--force"],
        "eprof diff": ["-m", "eprof", "diff", str(old), str(new), "--costs", "gtx680"],
    }


def processor_s(arguments: list[str]) -> float:
    """User and system time of one fresh interpreter."""
    # Without compiled modules a run would measure the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)}: exit code {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print medians of the times, and of the ratios to `import pandas` in the same round: load changes both alike."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        timed = commands(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(rounds):
            for name, arguments in timed.items():
                times[name].append(processor_s(arguments))
    for name, seconds in times.items():
        ratio = statistics.median(map(operator.truediv, seconds, times[BASE]))
        print(f"{name:16} {1e3 * statistics.median(seconds):7.1f} ms  {ratio:5.2f} of {BASE}")


main()
