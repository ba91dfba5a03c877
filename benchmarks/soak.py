"""Many logs of mixed health in one command: nothing lost, results as one by one, memory flat, nothing left behind.

    python benchmarks/soak.py [--logs 1000] [--large-mb 24] [--loads 200] [--files 10000] [FOLDER]

Makes the logs in FOLDER (a temporary one, if none is named), then checks, each with processes of their own:

- every engine (one process, several, a local Dask cluster) gives the same document to the last digit;
- its counts are exactly, and its times to 1e-12, the sums of the readable logs read one by one;
- each file that cannot be read is left out with its reason, and no other;
- memory: a quarter of the logs and all of them, and a few large logs and four times as many;
- a Python process that calls `eprof.load` again and again keeps its memory, threads and descriptors;
- no temporary file, process or hidden file is left.

Exits with 1 if any of this does not hold. `tests/whole/test_soak.py` runs a small one.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
from logs_support import EVENTS, METRICS, TRACE, TRACE_UNITS, USAGE, event, launch, metric, profiled  # noqa: E402

# Most that memory may grow by, in kB: for each further log of the same kernels; and from few large logs to many.
KB_A_LOG, KB_LARGE = 8, 24_000

NCU = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name",'
    '"Metric Name","Metric Unit","Metric Value"'
)


def _kernels(number: int) -> list[str]:
    """Some of thirty names; some have commas, quotes and letters that are no ASCII."""
    names = [f"kernel_{i}(int, float*)" for i in range(28)] + ["größe<true>(double)", 'say<"x, y">(int)']
    return [names[(number * 7 + i) % len(names)] for i in range(3)]


def _metrics(number: int) -> str:
    rows = [metric("inst_integer", 1000 + number, kernel=name) for name in _kernels(number)]
    return profiled(number + 1, METRICS, *rows)


def _events(number: int) -> str:
    return profiled(number + 1, EVENTS, *(event("gld_request", 10 + number, kernel=name) for name in _kernels(number)))


def _trace(number: int) -> str:
    rows = [launch(0.1 + number / 7000, kernel=name, number=i) for i, name in enumerate(_kernels(number))]
    return profiled(number + 1, TRACE, TRACE_UNITS, *rows)


def _usage(number: int) -> str:
    rows = [
        f'33.3,{1.5 + number / 1000},2,0.75,0.7,0.8,"{name.replace(chr(34), chr(34) * 2)}"' for name in _kernels(number)
    ]
    return profiled(number + 1, USAGE, "%,ms,,ms,ms,ms,", *rows)


def _ncu(number: int) -> str:
    rows = [
        f'"{i}","7","app","127.0.0.1","{name.replace(chr(34), chr(34) * 2)}","2026-Jan-01 00:00:00","1","7",'
        f'"Command line profiler metrics","smsp__sass_thread_inst_executed_op_integer_pred_on.sum","inst","{500 + number}"'
        for i, name in enumerate(_kernels(number))
    ]
    return "\n".join(["==PROF== Connected to process 7", NCU, *rows, ""])


HEALTHY = (_metrics, _events, _trace, _usage, _ncu)


def make(folder: Path, number: int) -> None:
    """`number` logs, about three in four of them healthy."""
    random.seed(8)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(number):
        path = folder / f"log-{i:05d}.csv"
        whole = HEALTHY[i // 2 % len(HEALTHY)](i)
        _make(path, i, whole)


def _make(path: Path, number: int, whole: str) -> None:
    """One log: whole, packed, in another encoding, or spoilt."""
    data = whole.encode()
    ways = {
        3: b"",
        7: data[: len(data) * 2 // 3],  # cut inside a row
        11: random.randbytes(3000) + b"\0",
        13: gzip.compress(data, mtime=0),
        17: gzip.compress(data * 50, mtime=0)[:-40],
        19: "\n".join(_trace(number).split("\n")[6:-1]).encode(),  # without its header
        21: b"Date;Temperature\n1;20\n2;21\n",
        27: gzip.compress(data, mtime=0),
        29: profiled(1, "==1== Warning: Unable to profile.").encode(),
        33: ("\ufeff" + whole.replace("\n", "\r\n")).encode("utf-16-le"),
        37: whole.encode("latin-1", "replace"),
    }
    way = number % 40
    if way == 23:
        path.symlink_to(path.name)
    elif way == 25:
        path.mkdir()
    elif way == 31:
        path.symlink_to("nowhere")
    else:
        path.write_bytes(ways.get(way, data))
        path.chmod(0 if way == 39 else 0o644)


def large(path: Path, megabytes: float, number: int) -> None:
    """A trace of so many MB."""
    rows = "".join(launch(0.1 + i / 7000 + number / 100, kernel=f"kernel_{i % 30}(int)") + "\n" for i in range(2000))
    with path.open("w") as file:
        file.write(profiled(number + 1, TRACE, TRACE_UNITS))
        for _ in range(max(1, round(megabytes * 1e6 / len(rows)))):
            file.write(rows)


REPORT = """
import json, os, resource, sys
from eprof.profile import api
from eprof.logs import many
many._MANY_FILES = min(many._MANY_FILES, int(os.environ.get("SOAK_MANY", 400)))
def main(paths, options):
    made = api.load(*paths, **options).energy("gtx680").document()
    for key in ("created_utc", "command_line"):
        made.pop(key, None)
    return made
if __name__ == "__main__":
    made = main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
    json.dump([made, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss], sys.stdout)
"""

ONE_BY_ONE = """
import json, sys
from pathlib import Path
from eprof.counts import definition_files
from eprof.base.errors import LogError
from eprof.logs.many import Reading, attempt, read_all
gather = sys.argv[2] == "together"
reading = Reading(None, definition_files.descriptions(), definition_files.names_in_use, None, None, gather=gather)
paths = [Path(one) for one in json.loads(sys.argv[1])]
logs = read_all(paths, reading) if gather else {path: attempt(path, reading) for path in paths}
sums, left = {}, {}
for path, log in logs.items():
    if isinstance(log, LogError):
        left[str(path)] = str(log)
        continue
    for table in log.tables:
        rows, counters = table.rows.frame(), table.counters.frame()
        for label in [*counters, "time_s", "launches"]:
            values = (counters if label in counters else rows)[label].to_numpy()
            for device, kernel, value in zip(rows["device"], rows["kernel"], values):
                if value == value:
                    key = json.dumps([table.kind, device if device == device else None, kernel, label])
                    sums[key] = sums.get(key, 0) + float(value)
json.dump([sums, left], sys.stdout)
"""

AGAIN = """
import gc, json, os, sys, threading
from eprof.profile import api
def state():
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return [pages * os.sysconf("SC_PAGE_SIZE") // 1024, threading.active_count(), len(os.listdir("/proc/self/fd"))]
paths, times = json.loads(sys.argv[1]), int(sys.argv[2])
for _ in range(max(times // 10, 10)):
    api.load(*paths).energy("gtx680").document()
before = state()
for _ in range(times):
    api.load(*paths).energy("gtx680").document()
json.dump([before, state()], sys.stdout)
"""


class Soak:
    """The checks, what they found wrong, and what they measured."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wrong = folder, list[str]()
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.drop = _unprivileged()

    def python(self, code: str, *words: object, **environment: str):
        """What a script prints as JSON, and its seconds of processor time with those of its children."""
        script = self.folder / f"script-{abs(hash(code)) % 10**8}.py"
        script.write_text(code)
        more = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), "EPROF_CACHE": "off", **environment}
        before = os.times()
        done = subprocess.run(
            [*self.drop, sys.executable, str(script), *(one if isinstance(one, str) else json.dumps(one) for one in words)],
            env={**os.environ, **more}, capture_output=True, text=True, cwd=self.folder, check=False, timeout=3000,
        )  # fmt: skip
        after = os.times()
        if done.returncode:
            raise SystemExit(f"soak: a script ended with {done.returncode}: {done.stderr[-2000:]}")
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return json.loads(done.stdout), spent

    def check(self, good: bool, words: str) -> None:
        """Say what holds; keep what does not."""
        print(f"{'ok   ' if good else 'WRONG'} {words}", flush=True)
        if not good:
            self.wrong.append(words)

    def mixed(self, number: int, engines: dict[str, dict[str, object]]) -> None:
        """One command over logs of mixed health, by every engine, against one by one."""
        logs = self.folder / "mixed"
        if not logs.is_dir():
            make(logs, number)
        paths = sorted(str(path) for path in logs.iterdir() if not path.is_dir())
        made = {}
        for name, options in engines.items():
            began = time.perf_counter()
            (made[name], peak), spent = self.python(REPORT, [str(logs / "*.csv")], options)
            wall = time.perf_counter() - began
            print(
                f"      {name}: {wall:.1f} s, {spent:.1f} s of processor time, {peak / 1024:.0f} MB at most", flush=True
            )
        first, *others = (json.dumps(one, sort_keys=True) for one in made.values())
        self.check(all(one == first for one in others), f"{len(made)} engines give one document")
        (sums, left), spent = self.python(ONE_BY_ONE, paths, "one by one")
        print(f"      one by one: {spent:.1f} s of processor time", flush=True)
        self._left_out(next(iter(made.values())), paths, left)
        self._sums(paths, sums)

    def _left_out(self, document: dict, paths: list[str], left: dict[str, str]) -> None:
        told = {one.removeprefix("Left out: ") for one in document["warnings"] if one.startswith("Left out: ")}
        self.check(
            told == set(left.values()) and len(left) > 0, f"{len(left)} of {len(paths)} left out, each with its reason"
        )
        read = {one["path"] for one in document["inputs"]}
        self.check(read == set(paths) - set(left), f"{len(read)} others are in the report")

    def _sums(self, paths: list[str], sums: dict[str, float]) -> None:
        """What was read together, by table, device, kernel and counter, against one by one."""
        (table, _), _ = self.python(ONE_BY_ONE, paths, "together")
        exact = {key for key in sums if json.loads(key)[-1] != "time_s"}
        wrong = [key for key in exact if table.get(key) != sums[key]]
        self.check(
            not wrong and len(exact) > 20, f"{len(exact)} sums of counts are those of one by one, exactly {wrong[:2]}"
        )
        off = [key for key in sums.keys() - exact if not abs(table.get(key, -1) - sums[key]) <= 1e-12 * sums[key]]
        self.check(
            not off and table.keys() == sums.keys(),
            f"{len(sums) - len(exact)} sums of times are those of one by one, to 1e-12 {off[:2]}",
        )

    def memory(self, number: int) -> None:
        """A quarter of the healthy logs and all of them, of the same kernels."""
        logs = self.folder / "healthy"
        logs.mkdir(exist_ok=True)
        for i in range(number):
            (logs / f"log-{i:05d}.csv").write_text(HEALTHY[i % 3](i % 40))
        peaks = []
        for some in (number // 4, number):
            (_, peak), _ = self.python(REPORT, sorted(str(one) for one in logs.iterdir())[:some], {})
            peaks.append(peak)
        growth = (peaks[1] - peaks[0]) / (number - number // 4)
        self.check(
            growth < KB_A_LOG,
            f"{number // 4} logs {peaks[0] / 1024:.1f} MB, {number} logs {peaks[1] / 1024:.1f} MB: {growth:.2f} kB a log",
        )

    def large(self, megabytes: float, few: int = 2) -> None:
        """A few large logs and four times as many."""
        logs = self.folder / "large"
        logs.mkdir(exist_ok=True)
        for i in range(4 * few):
            large(logs / f"log-{i}.csv", megabytes, i)
        peaks = []
        for some in (few, 4 * few):
            (_, peak), _ = self.python(REPORT, [str(logs / f"log-{i}.csv") for i in range(some)], {"cache": False})
            peaks.append(peak)
        self.check(
            peaks[1] - peaks[0] < KB_LARGE,
            f"{few} logs of {megabytes:g} MB {peaks[0] / 1024:.1f} MB, {4 * few} logs {peaks[1] / 1024:.1f} MB",
        )

    def again(self, times: int) -> None:
        """One process that loads again and again."""
        paths = sorted(str(one) for one in (self.folder / "healthy").iterdir())[:6]
        (before, after), _ = self.python(AGAIN, paths, str(times))
        self.check(
            after[0] - before[0] < 4000 + 8 * times and after[1:] == before[1:],
            f"eprof.load {times} times: {before[0] / 1024:.1f} to {after[0] / 1024:.1f} MB, threads {before[1]} to "
            f"{after[1]}, descriptors {before[2]} to {after[2]}",
        )

    def files(self, number: int) -> None:
        """So many small files, as the command reads them, with few descriptors."""
        logs = self.folder / "files"
        logs.mkdir(exist_ok=True)
        for i in range(number):
            (logs / f"log-{i:05d}.csv").write_text(HEALTHY[i % 3](i % 97))
        before, began = os.times(), time.perf_counter()
        words = [
            sys.executable,
            "-m",
            "eprof",
            "report",
            f"{logs}/*.csv",
            "--costs",
            "gtx680",
            "-q",
            "-f",
            "-o",
            "files.json",
        ]
        done = subprocess.run(
            ["/bin/sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *words], cwd=self.folder, check=False, capture_output=True,
            text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        self.check(
            done.returncode == 0 and "Traceback" not in done.stderr,
            f"{number} files with 64 descriptors: {time.perf_counter() - began:.1f} s, {spent:.1f} s of processor time, "
            f"{1000 * spent / number:.2f} ms a file",
        )

    def clean(self) -> None:
        """Nothing is left behind."""
        left = [one.name for one in self.temporary.iterdir() if "dask" not in one.name]
        hidden = [one.name for one in self.folder.iterdir() if one.name.startswith(".")]
        self.check(not left and not hidden, f"no temporary file is left {left}{hidden}")


def _unprivileged() -> list[str]:
    """Words before a command that take root's right to read everything away."""
    if os.geteuid():
        return []
    away = "-dac_override,-dac_read_search,-fowner"
    words = ["setpriv", f"--bounding-set={away}", f"--inh-caps={away}"]
    try:
        return words if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0 else []
    except OSError:
        return []


def main() -> None:
    """The whole soak."""
    parser = argparse.ArgumentParser(description="Many logs of mixed health in one command.")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--large-mb", type=float, default=24)
    parser.add_argument("--loads", type=int, default=200)
    parser.add_argument("--files", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eprof-soak-") as own:
        soak = Soak(Path(options.folder or own).absolute())
        engines: dict[str, dict[str, object]] = {"one process": {}, "two processes": {"workers": 2}}
        soak.mixed(options.logs, engines)
        soak.memory(options.logs)
        soak.large(options.large_mb)
        soak.again(options.loads)
        if options.files:
            soak.files(options.files)
        soak.clean()
    if soak.wrong:
        raise SystemExit(f"soak: {len(soak.wrong)} checks failed")


if __name__ == "__main__":
    main()
