"""Small valid logs of every format, made up here; the fuzzer starts from them.

python tests/fuzz/seeds.py    writes them to tests/fuzz/corpus
"""

import gzip
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import logs_support as make

HERE = Path(__file__).parent
WIDE = '"Device","Context","Stream","Kernel","Correlation_ID","inst_integer","dram_read_throughput","sm_efficiency"'
NCU_LONG = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    '"Section Name","Metric Name","Metric Unit","Metric Value"'
)
DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"


def summary() -> bytes:
    """Metrics and events of two kernels."""
    rows = [make.metric("inst_integer", 1000 + i, kernel=f"k{i}(int, float*)") for i in range(3)]
    rows += [
        make.metric("dram_read_throughput", "1.5GB/s"),
        make.metric("sm_efficiency", "50.0%"),
        make.metric("inst_fp_32", "<OVERFLOW>"),
    ]
    events = [make.event("gld_request", 5), make.event("l1_global_load_hit", 7)]
    return make.profiled(
        1, "==1== Event result:", make.EVENTS, *events, "", "==1== Metric result:", make.METRICS, *rows
    ).encode()


def wide() -> bytes:
    """A row a launch."""
    rows = [f'"{make.K20C}","1","7","k{i % 2}(int)",{i},{100 + i},{1.5 + i},{50 + i}.0' for i in range(6)]
    return make.profiled(2, WIDE, ",,,,,,GB/s,%", *rows).encode()


def trace() -> bytes:
    """Times of launches, and a copy."""
    copy = f'0.1,1.0,,,,,,,,,,4.0,1.0,"{make.K20C}","1","7","[CUDA memcpy HtoD]"'
    return make.profiled(3, make.TRACE, make.TRACE_UNITS, make.launch(2.0), make.launch(3.0, "k1(int)"), copy).encode()


def usage() -> bytes:
    """A GPU summary with API calls below it."""
    rows = ['60.0,3.0,3,1.0,1.0,1.0,"k0(int)"', '40.0,2.0,2,1.0,1.0,1.0,"[CUDA memcpy HtoD]"']
    return make.profiled(4, make.USAGE, "%,ms,,ms,ms,ms,", *rows).encode()


def ncu_long() -> bytes:
    """Two launches of `ncu --csv`."""
    lines = ["==PROF== Connected to process 7 (/made/up)", NCU_LONG]
    for launch in range(2):
        start = f'"{launch}","7","made_up","host","k{launch}(double *)","1","7","(32, 1, 1)","(64, 1, 1)","0","8.0","Command line profiler metrics"'
        lines += [
            f'{start},"{DFMA}","inst","{1000 + launch}"',
            f'{start},"dram__bytes_read.sum","byte","1,024"',
            f'{start},"gpu__time_duration.sum","nsecond","2,000"',
        ]
    return "\n".join([*lines, "==PROF== Disconnected from process 7", ""]).encode()


def ncu_raw() -> bytes:
    """Two launches of `ncu --csv --page raw`."""
    head = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
    rows = [
        f'"{i}","7","made_up","host","k(double *)","1","7","(32, 1, 1)","(64, 1, 1)","0","9.0","{10 + i}","1,024"'
        for i in range(2)
    ]
    return "\n".join([f'{head},"{DFMA}","dram__bytes_read.sum"', f'{"," * 10},"inst","byte"', *rows, ""]).encode()


def nsys() -> bytes:
    """A summary of kernels by nsys."""
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    return f'{head}\n60.0,3000,3,1000.0,1000.0,1000,1000,0.0,"k0(int)"\n40.0,2000,2,1000.0,1000.0,1000,1000,0.0,k1\n'.encode()


def oclgrind() -> bytes:
    """Two launches on the simulated device."""
    block = "Instructions executed for kernel 'k':\n       25856 - load global (206848 bytes)\n       25600 - fadd\n       25600 - call llvm.fmuladd.f64()\n          12 - br\n\n"
    return (block + "program output\n" + block).encode()


def nvvp() -> bytes:
    """A SQLite export with one kernel."""
    with tempfile.NamedTemporaryFile(suffix=".nvvp") as file:
        base = sqlite3.connect(file.name)
        base.execute("create table StringTable (_id_ integer primary key, value text)")
        base.execute("insert into StringTable values (1, 'k(int)'), (2, 'Tesla K20c')")
        base.execute("create table CUPTI_ACTIVITY_KIND_DEVICE (id integer, name integer)")
        base.execute("insert into CUPTI_ACTIVITY_KIND_DEVICE values (0, 2)")
        base.execute(
            "create table CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start integer, end integer, deviceId integer, name integer, correlationId integer)"
        )
        base.execute("insert into CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL values (10, 2010, 0, 1, 1)")
        base.commit()
        base.close()
        return Path(file.name).read_bytes()


SEEDS = {
    "nvprof-summary": summary,
    "nvprof-wide": wide,
    "nvprof-trace": trace,
    "nvprof-usage": usage,
    "nvprof-sqlite": nvvp,
    "ncu-long": ncu_long,
    "ncu-raw": ncu_raw,
    "nsys": nsys,
    "oclgrind": oclgrind,
    "gzip": lambda: gzip.compress(summary(), mtime=0),
}

if __name__ == "__main__":
    for name, seed in SEEDS.items():
        (HERE / "corpus").mkdir(exist_ok=True)
        (HERE / "corpus" / name).write_bytes(seed())
