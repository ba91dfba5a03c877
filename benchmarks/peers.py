"""The whole job, `eprof report LOG -o out.json`, beside `pandas.read_csv`, `polars.read_csv` and `wc -l`.

    python benchmarks/peers.py [--logs summary,wide,...] [--rows 10000,100000,1000000] [--rounds 3] [--memory-gb 16]
                               [--folder .bench] [--json FILE] [--keep]

Each is a process of its own, timed from its start to its end, in turns; eprof reads the log, without its cache, the others
the same rows below one clean header, and they do nothing with them. Prints medians, ratios, the same of processor time (user
and system), which other programs on the machine disturb less, and the most memory that each process held. A process that
wants more memory than it may have is told as such. --json: adds the measurements to FILE, for `plot.py`.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from generate import LOGS, write

PEERS = ("eprof", "pandas", "polars", "wc -l")
READ = "import sys, {0}; {0}.read_csv(sys.argv[1])"


@dataclass
class Cost:
    """What a process took; None: it wanted more memory than it may have."""

    seconds: float | None
    cpu_s: float | None
    memory_mb: float | None


def run(command: list[str], memory_gb: float) -> Cost:
    """One process."""
    limit = int(memory_gb * 2**30)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    # Without compiled modules a run would measure the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limited
    )
    said = process.stderr.read().decode(errors="replace") if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        if "memory" in said.lower() or "bad_alloc" in said or os.WIFSIGNALED(status):
            return Cost(None, None, None)
        raise SystemExit(f"{command}: {said or status}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def commands(log: Path, bare: Path, out: Path) -> dict[str, list[str]]:
    """What each peer runs."""
    report = ["-m", "eprof", "report", str(log), "--costs", "jetson-tk1", "--no-cache", "-q", "-f", "-o", str(out)]
    return {
        "eprof": [sys.executable, *report],
        "pandas": [sys.executable, "-c", READ.format("pandas"), str(bare)],
        "polars": [sys.executable, "-c", READ.format("polars"), str(bare)],
        "wc -l": ["wc", "-l", str(log)],
    }


def medians(costs: list[Cost]) -> Cost:
    """The median of rounds; of memory the most."""
    if any(one.seconds is None for one in costs):
        return Cost(None, None, None)
    seconds, cpu, memory = zip(*(asdict(one).values() for one in costs), strict=True)
    return Cost(statistics.median(seconds), statistics.median(cpu), max(memory))


def measure(name: str, rows: int, options: argparse.Namespace) -> dict[str, object]:
    """All peers on one log, in turns."""
    log, bare = write(name, rows, options.folder)
    with tempfile.TemporaryDirectory() as folder:
        jobs = commands(log, bare, Path(folder) / "out.json")
        rounds: dict[str, list[Cost]] = {peer: [] for peer in PEERS}
        log.read_bytes() if log.stat().st_size < 1 << 30 else None  # in the page cache, as its bare table is
        for _ in range(options.rounds):
            for peer in PEERS:
                rounds[peer].append(run(jobs[peer], options.memory_gb))
    found = {
        "log": name,
        "rows": rows,
        "mb": log.stat().st_size / 1e6,
        "rounds": options.rounds,
        "memory_limit_gb": options.memory_gb,
        **{peer: asdict(medians(costs)) for peer, costs in rounds.items()},
    }
    if not options.keep:
        log.unlink()
        bare.unlink()
    return found


def text(value: float | None, form: str) -> str:
    """A number, or that memory did not suffice."""
    return "memory" if value is None else format(value, form)


def line(found: dict[str, object]) -> str:
    """A row of the table."""
    costs = [found[peer] for peer in PEERS]
    own = costs[0]
    cells = [f"{found['log']:9} {found['rows']:11,} {found['mb']:8.0f}"]
    cells += [f"{text(one['seconds'], '.2f'):>8}" for one in costs]
    for what in ("seconds", "cpu_s"):
        for one in costs[1:3]:
            ratio = None if own[what] is None or one[what] is None else own[what] / one[what]
            cells.append(f"{text(ratio, '.2f') if ratio is not None else '-':>8}")
    cells += [f"{text(one['memory_mb'], '.0f'):>8}" for one in costs[:3]]
    return " ".join(cells)


def main() -> None:
    """Print a line for each log and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", default=",".join(LOGS))
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-gb", type=float, default=16)
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", action="store_true", help="leave the logs, for another run")
    options = parser.parse_args()
    print(
        f"{'':30} {'seconds':^35} {'eprof over, time':^17} {'over, processor':^17} {'MB at the most':^26}\n"
        f"{'log':9} {'rows':>11} {'MB':>8} {'eprof':>8} {'pandas':>8} {'polars':>8} {'wc -l':>8} "
        f"{'pandas':>8} {'polars':>8} {'pandas':>8} {'polars':>8} {'eprof':>8} {'pandas':>8} {'polars':>8}"
    )
    for rows in map(int, options.rows.split(",")):
        for name in options.logs.split(","):
            found = measure(name, rows, options)
            print(line(found), flush=True)
            if options.json:
                before = json.loads(options.json.read_text()) if options.json.exists() else []
                before = [one for one in before if (one["log"], one["rows"]) != (name, rows)]
                options.json.write_text(json.dumps([*before, found], indent=1) + "\n")


if __name__ == "__main__":
    main()
