"""Every command of README and the documents works as written, or says what it needs that a test does not have."""

import gzip
import importlib.util
import itertools
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from logs_support import TRACE, TRACE_UNITS, launch, profiled
from validation_support import as_csv, made, table

from eprof.cli import dispatch
from eprof.cli.options import split

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "logs"
COUNTERS = (SAMPLES / "invented" / "tk1-fmm-counters.csv").read_text()
TIMES = (SAMPLES / "invented" / "tk1-fmm-times.csv").read_text()
KERNELS = re.findall(r'"(\w+\([^"]*\))"$', TIMES, re.MULTILINE)
PAGES = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "    eprof" in path.read_text()
]
COMMAND = re.compile(r"^    (?:\$ )?(eprof [^#\n]*?)(?: +# (.*))?$", re.MULTILINE)
KINETO = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "GK20A"}],
    "traceEvents": [
        {"ph": "X", "cat": category, "name": name, "pid": process, "tid": 1, "ts": ts, "dur": 10, "args": arguments}
        for category, name, process, ts, arguments in (
            ("cpu_op", "aten::addmm", 7, 0, {}),
            ("cuda_runtime", "cudaLaunchKernel", 7, 5, {"correlation": 1}),
            ("kernel", KERNELS[0], 0, 50, {"correlation": 1, "device": 0, "stream": 7}),
        )
    ],
}
PRINTED = re.compile(r"^    \$ (eprof [^#\n]*?)(?: +#.*)?\n((?:    .+\n)+)", re.MULTILINE)
LIKWID = "CPU name:,Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz\nTABLE,Group 1 Raw,{0},1\nEvent,Counter,HWThread 0\n{1},PMC0,9\n"
RANGE = '"1  ""<default domain>:step:none:none:none:none:none:none""  ",'


def documented(page):
    """(words, what the remark says) of each command of a page; a synopsis, with [options], is none."""
    for command, remark in COMMAND.findall(page.read_text()):
        if "[" not in command:
            words = shlex.split(re.split(r" [>|] ", command)[0])
            yield words[1:], remark


def run_directory(place, joules=22.0, **more):
    """What `eprof run` leaves of a run on a Jetson TK1 with a meter. The numbers are invented."""
    (place / "logs").mkdir(parents=True)
    (place / "logs" / "counters-1-1.csv").write_text(COUNTERS)
    (place / "logs" / "time-1-1.csv").write_text(TIMES)
    energy = {"joules": joules, "window_s": 2.5, "runs": 1, "method": "made", "core_mhz": 852, "memory_mhz": 924}
    record = {"schema": "eprof.run/1", "status": "complete", "program": ["./fmm"], "command": "./fmm", "warnings": []}
    record |= {"pricing": {}, "measurements": [{"what": "energy", "number": 1, "energy": energy}]}
    (place / "run.json").write_text(json.dumps(record | more))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A folder with logs of all the names that the documents use. Their numbers are invented."""
    folder = tmp_path_factory.mktemp("logs")
    launches = [launch(100.0 + number, kernel, 1, "GK20A (0)") for number, kernel in enumerate(KERNELS)]
    texts = {
        **dict.fromkeys(
            ["metrics", "counters", "counters-1234", "counters-old", "counters-new", "more-counters"], COUNTERS
        ),
        **dict.fromkeys(["time", "times", "time-1250"], TIMES),
        **dict.fromkeys(["trace", "trace-old", "trace-new"], profiled(1, TRACE, TRACE_UNITS, *launches)),
        **dict.fromkeys(["log", "old", "new"], COUNTERS + TIMES),
        "kernels": COUNTERS.replace("GK20A", "Tesla K20c"),
        "columns": "Input Size,Device,Context,Stream,Kernel,inst_integer\n",
        "flops": LIKWID.format("FLOPS_DP", "FP_ARITH_INST_RETIRED_SCALAR_DOUBLE"),
        "mem": LIKWID.format("MEM", "CAS_COUNT_RD"),
        "rows": '4096,"GK20A (0)",1,7,"axpy(int)",1000\n',
        "ncu": re.sub(r'("host",|"Host Name",)', rf"\1{RANGE}", (ROOT / "tests/golden/logs/ncu.csv").read_text()),
    }
    texts["ncu"] = texts["ncu"].replace(
        RANGE, '"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",', 1
    )
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "log.txt").write_text((ROOT / "tests/golden/logs/ncu.csv").read_text())
    for log in (SAMPLES / "simulated").glob("*.txt"):
        (folder / log.name).write_bytes(log.read_bytes())
    (folder / "release.txt").write_text((folder / "gemm-naive.txt").read_text())
    (folder / "now.txt").write_text((folder / "gemm-tiled.txt").read_text())
    for name in ("trace", "model"):
        (folder / f"{name}.pt.trace.json.gz").write_bytes(gzip.compress(json.dumps(KINETO).encode()))
    for rank in range(2):
        place = folder / "night" / f"rank{rank}"
        place.mkdir(parents=True)
        (place / "metrics-1.csv").write_text(COUNTERS)
        (place.parent / f"{rank}.csv.gz").write_bytes(gzip.compress(COUNTERS.encode()))
    for name in ("run", "fmm", "old", "new", "old-1", "old-2", "new-1", "new-2"):
        run_directory(folder / f"{name}.eprof")
    for number in range(4):
        times = {"commit": str(number) * 40, "started_utc": f"2026-11-0{number + 1}T00:00:00.000000Z"}
        run_directory(folder / "nightly" / f"{number}.eprof", **times)
    for name in ("measured", "apps", "microbenchmarks"):
        few = made(benchmarks=4, cores=(500.0, 700.0, 1000.0), memories=(500.0, 1000.0), noise=0.02, seed=len(name))
        as_csv(few, folder / f"{name}.csv")
    power = "\n".join(["time_s,cpu_w", *(f"{second},{100 if second < 4 else 50}" for second in range(10)), ""])
    for name in ("power", "smi", "rapl"):
        (folder / f"{name}.csv").write_text(power)
    (folder / "marks.csv").write_text("begin_s,end_s,name\n0,4,compute\n4,9,exchange\n")
    rows = [f"ft,1e6,{p},2800,{8 / p + 0.1},{800 + 60 * p}" for p in (1, 2, 4, 8, 16, 32, 64)]
    (folder / "runs.csv").write_text("\n".join(["program,size,processes,core_mhz,time_s,energy_j", *rows, ""]))
    for name in ("gtx980", "my-gpu"):
        (folder / f"{name}.toml").write_text(table())
    (folder / "samples").symlink_to(ROOT / "samples")
    return folder


# Commands that start processes, whose memory would be that of all tests.
STARTING = ("run", "calibrate", "comm", "scale", "doctor")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documented_commands_work_as_written(eprof_command, eprof_here, logs, tmp_path, page):
    written = {name for words, _ in documented(page) for name in outputs(words)}
    for path in logs.iterdir():
        if path.name not in written:
            (tmp_path / path.name).symlink_to(path)
    tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for words, remark in documented(page):
        if re.search(r"\bneeds\b", remark):
            parse(words)
        elif "samples/nbody/nbody" not in words or importlib.util.find_spec("pyopencl"):
            for name in outputs(words):
                (tmp_path / name).unlink(missing_ok=True)
            done = (eprof_command if words[0] in STARTING else eprof_here)(*words, env=tools)
            assert done.returncode in codes(words), f"eprof {shlex.join(words)}\n{done.stderr}"


@pytest.mark.parametrize("command", re.findall(r"\| `(eprof [^`]+)`", (ROOT / "README.md").read_text()))
def test_commands_in_tables_are_commands(command):
    parse(shlex.split(command)[1:])


SHOWN = [(page, *shown) for page in PAGES for shown in PRINTED.findall(page.read_text())]


@pytest.mark.parametrize(("page", "command", "printed"), SHOWN)
def test_what_the_documents_show_is_printed(eprof_here, real_log, tmp_path, page, command, printed):
    """EPROF_REWRITE=1 in the environment puts what is printed now into the documents: look at the difference."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (tmp_path / "eprof-demo").symlink_to(SAMPLES / "simulated")
    words = shlex.split(command)[1:]
    for name in (word for word in words if word.endswith(".ncu-rep")):
        (tmp_path / name).symlink_to(real_log(f"../ncu-modern/{name}"))
    done = eprof_here(*(word for word in words if word not in {"-o", "-f", *outputs(words)}), env={"COLUMNS": "96"})
    now = "".join(f"    {line}".rstrip() + "\n" for line in done.stdout.splitlines())
    if "EPROF_REWRITE" in os.environ:
        page.write_text(page.read_text().replace(printed, now))
    assert now == printed


def outputs(words):
    """What a command writes."""
    return {name for option, name in itertools.pairwise(words) if option == "-o"}


def parse(words):
    """Ends with the message of the command line where the parser does not take these words."""
    parser, parsers = dispatch._parser(words[0])
    parser.parse_args(split(words, parsers["run"])[0] if words[0] == "run" else words)


def codes(words):
    """Exit codes that say that a command worked: a gate may say no, and a machine may have nothing to run with."""
    if {"--fail-above", "--max-error"} & set(words):
        return {0, 3}
    return {0, 1} if words == ["doctor"] else {0}
