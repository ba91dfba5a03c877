"""Small valid logs of every format, made up here; the fuzzer starts from them. Small, so that many a second can be read.

python tests/fuzz/seeds.py    writes them to tests/fuzz/corpus
"""

import gzip
import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))
import logs_support as make

HERE = Path(__file__).parent
WIDE = '"Device","Context","Stream","Kernel","Correlation_ID","inst_integer","dram_read_throughput","sm_efficiency"'
NCU = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
NCU_LONG = f'{NCU},"Section Name","Metric Name","Metric Unit","Metric Value"'
NCU_SUMMARY = (
    '"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC","Invocations",'
    '"Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"'
)
DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"
OPCODES = "sass__thread_inst_executed_true_per_opcode"
USAGE_UNITS = "%,ms,,ms,ms,ms,"
COLUMNS = ["Device", "Context", "Stream", "Kernel", "inst_integer", "gld_request"]


def metrics() -> bytes:
    """Metrics of two kernels."""
    rows = [
        make.metric("inst_integer", 1000, kernel="k(int, float*)"),
        make.metric("inst_integer", 500),
        make.metric("dram_read_throughput", "1.5GB/s"),
        make.metric("sm_efficiency", "50.0%"),
        make.metric("inst_fp_32", "<OVERFLOW>"),
    ]
    return make.profiled(1, "==1== Metric result:", make.METRICS, *rows).encode()


def events() -> bytes:
    """Events, with a total, and metrics below."""
    head = make.EVENTS + ',"Total"'
    lines = [head, make.event("gld_request", 5) + ",10", make.event("l1_global_load_hit", 7) + ",14"]
    lines += ["", "==1== Metric result:", make.METRICS, make.metric("ipc", "1.5")]
    return make.profiled(1, "==1== Event result:", *lines).encode()


def wide() -> bytes:
    """A row a launch."""
    rows = [f'"{make.K20C}","1","7","k{i % 2}(int)",{i},{100 + i},{1.5 + i},{50 + i}.0' for i in range(3)]
    return make.profiled(2, WIDE, ",,,,,,GB/s,%", *rows).encode()


def wide_bare() -> bytes:
    """A row a launch, without the row of units, with columns that a script put in front."""
    head = 'size,"Device","Context","Stream","Kernel","inst_integer","Fp Operations","ipc"'
    rows = [f'64,"{make.K20C}","1","7","k(int) [{i}]",{100 + i},"<INVALID>",{1.5 + i}' for i in range(2)]
    return make.profiled(2, head, *rows).encode()


def trace() -> bytes:
    """Times of launches, and a copy."""
    copy = f'0.1,1.0,,,,,,,,,,4.0,1.0,"{make.K20C}","1","7","[CUDA memcpy HtoD]"'
    return make.profiled(3, make.TRACE, make.TRACE_UNITS, make.launch(2.0), make.launch(3.0, "k1(int)"), copy).encode()


def trace_new() -> bytes:
    """Times of launches, as of CUDA 10: a number in a column of its own."""
    head, units = f'{make.TRACE},"Correlation_ID"', f"{make.TRACE_UNITS},"
    rows = [f'0.5,{ms},64,1,1,32,1,1,21,0.0,0,,,"{make.K20C}","1","7","k(int)",{ms}' for ms in (2, 3)]
    return make.profiled(3, head, units, *rows).encode()


def usage() -> bytes:
    """A GPU summary."""
    rows = ['60.0,3.0,3,1.0,1.0,1.0,"k0(int)"', '40.0,2.0,2,1.0,1.0,1.0,"[CUDA memcpy HtoD]"']
    return make.profiled(4, make.USAGE, USAGE_UNITS, *rows).encode()


def usage_typed() -> bytes:
    """A GPU summary with types and API calls, and one of an old version below."""
    typed = [f'"Type",{make.USAGE}', f",{USAGE_UNITS}", '"GPU activities",60.0,3.0,3,1.0,1.0,1.0,"k0(int)"']
    typed += ['"API calls",60.0,3.0,3,1.0,1.0,1.0,"cudaMalloc"', "", "==4== API calls:", make.USAGE, USAGE_UNITS]
    return make.profiled(4, *typed, '99.0,7.5,3,1.0,1.0,1.0,"cudaFree"').encode()


def text_counters() -> bytes:
    """Metrics as text."""
    lines = ["Invocations    Metric Name    Metric Description    Min    Max    Avg", f'Device "{make.K20C}"']
    lines += ["    Kernel: k(int, float*)", "     2    inst_integer    Integer Instructions    10    12    11"]
    lines += ["     2    sm_efficiency    Multiprocessor Activity    89.45%    97.48%    94.22%"]
    return make.profiled(5, "==5== Metric result:", *lines).encode()


def text_usage() -> bytes:
    """A GPU summary as text."""
    lines = ["            Type  Time(%)      Time     Calls       Avg       Min       Max  Name"]
    lines += [" GPU activities:   60.00%  3.0000ms         3  1.0000ms  1.0000ms  1.0000ms  k0(int, float*)"]
    lines += ["                   40.00%  2.0000us         2  1.0000us  1.0000us  1.0000us  [CUDA memcpy HtoD]"]
    lines += ["      API calls:   98.00%  9.0000ms         1  9.0000ms  9.0000ms  9.0000ms  cudaMalloc"]
    return make.profiled(5, *lines).encode()


def text_trace() -> bytes:
    """A GPU trace as text."""
    lines = [
        "   Start  Duration   Grid Size  Block Size  Regs*  SSMem*   Size  Throughput  Device  Context  Stream  Name"
    ]
    lines += [
        "320.70ms  29.494ms          -          -      -      -  256.00MB  8.4764GB/s  Tesla    1    7  [CUDA memcpy]"
    ]
    lines += [
        "351.49ms  1.5863ms  (512 256 1)  (16 32 1)  14     0B      -           -  Tesla      1       7  k(int) [120]"
    ]
    return make.profiled(5, *lines).encode()


def headerless() -> bytes:
    """Rows that lost their header; `COLUMNS` names their columns."""
    return "".join(f'"{make.K20C}","1","7","k(int)",{100 + i},{i}\n' for i in range(3)).encode()


def ncu_long() -> bytes:
    """Two launches of `ncu --csv`."""
    lines = ["==PROF== Connected to process 7 (/made/up)", NCU_LONG]
    for launch in range(2):
        start = f'"{launch}","7","p","h","k{launch}(double *)","1","7","(32, 1, 1)","(64, 1, 1)","0","8.0","Metrics"'
        lines += [f'{start},"{DFMA}","inst","{1000 + launch}"', f'{start},"dram__bytes_read.sum","byte","1,024"']
        lines += [f'{start},"gpu__time_duration.sum","nsecond","2,000"']
    return "\n".join([*lines, "==PROF== Disconnected from process 7", ""]).encode()


def ncu_details() -> bytes:
    """Labels of the details page, in scaled units, and a row of advice."""
    start = '"0","7","p","h","k(double *)","1","7","(32, 1, 1)","(64, 1, 1)","0","8.0"'
    lines = [f'{NCU_LONG},"Rule Name","Rule Type","Rule Description"']
    lines += [f'{start},"GPU Speed Of Light Throughput","Duration","usecond","5.31",']
    lines += [f'{start},"Memory Workload Analysis","Memory Throughput","Gbyte/second","1.5",']
    lines += [f'{start},"Instruction Statistics","Executed Instructions","inst","5,318,969",']
    lines += [f'{start},"SpeedOfLight","","","","SOLBottleneck","WRN","Look at ""Memory"""']
    return "\n".join([*lines, ""]).encode()


def ncu_raw() -> bytes:
    """Two launches of `ncu --csv --page raw`."""
    row = '"7","p","h","k(double *)","1","7","(32, 1, 1)","(64, 1, 1)","0","9.0"'
    rows = [f'"{i}",{row},"{10 + i}","1,024"' for i in range(2)]
    return "\n".join([f'{NCU},"{DFMA}","dram__bytes_read.sum"', f'{"," * 10},"inst","byte"', *rows, ""]).encode()


def ncu_instances() -> bytes:
    """A launch with a count for each opcode, the name of the device, and its time."""
    row = '"0","7","p","h","k(double *)","1","7","(32, 1, 1)","(64, 1, 1)","NVIDIA H100","6.00","12 (FFMA: 8; MOV: 4)","2,000.00"'
    start = NCU.removesuffix(',"Device","CC"')
    head = f'{start},"device__attribute_display_name","launch__device_id","{OPCODES}","gpu__time_duration.sum"'
    return "\n".join([head, f'{"," * 11}"inst","ns"', row, ""]).encode()


def ncu_summary() -> bytes:
    """Kernels of `ncu --csv --print-summary per-kernel`."""
    row = '"7","p","h","k(double *)","(32, 1, 1)","(64, 1, 1)","0","8.0","4","Metrics"'
    rows = [f'{row},"{DFMA}","inst","10","12","11.25"', f'{row},"gpu__time_duration.sum","us","1.5","2.5","2.00"']
    return "\n".join([NCU_SUMMARY, *rows, ""]).encode()


def ncu_page() -> bytes:
    """ncu's page for reading: two launches."""
    ruler = f"    {'-' * len(DFMA)} ----------- ------------"
    lines = ["==PROF== Connected to process 7 (/made/up)", "[7] p@h"]
    for time in ("5.31", "1,002.50"):
        lines += ["  k(double *) (64, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.0", "    Section: Metrics"]
        lines += [ruler, f"    {'Metric Name':{len(DFMA)}} Metric Unit Metric Value", ruler]
        lines += [
            f"    {DFMA} {'inst':>11} {'1,024':>12}",
            f"    {'gpu__time_duration.sum':{len(DFMA)}} {'us':>11} {time:>12}",
        ]
        lines += [ruler, "    WRN   This kernel is small.", ""]
    return "\n".join(lines).encode()


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


def _message(*fields: tuple[int, int | bytes]) -> bytes:
    """A message of Protocol Buffers with these fields."""
    parts = [
        _varint(number << 3) + _varint(value)
        if isinstance(value, int)
        else _varint(number << 3 | 2) + _varint(len(value)) + value
        for number, value in fields
    ]
    return b"".join(parts)


def ncu_report() -> bytes:
    """The container of a report of ncu: a file header, and a block with a source and two launches (without content)."""
    payload = b"".join(len(one).to_bytes(4, "little") + one for one in (b"source", b"launch 1", b"launch 2"))
    process = _message((1, 7), (3, b"/made/up"))
    block = _message((1, 1), (2, 2), (3, b"Nsight Compute 2022.2.0"), (5, len(payload)), (6, process))
    header = _message((1, 3))
    start = b"".join(len(one).to_bytes(4, "little") + one for one in (header, block))
    return b"NVR\0" + start + payload


def nsys() -> bytes:
    """A summary of kernels by nsys."""
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    return f'{head}\n60.0,3000,3,1000.0,1000.0,1000,1000,0.0,"k0(int)"\n40.0,2000,2,1000.0,1000.0,1000,1000,0.0,k1\n'.encode()


def nsys_trace() -> bytes:
    """Two launches and a copy, a row each."""
    head = "Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Ctx,Strm,Name"
    rows = ['10,2010,1,64,,NVIDIA A100 (0),1,7,"k0(int)"', "3000,500,2,,4.1,NVIDIA A100 (0),1,7,[CUDA memcpy HtoD]"]
    return "\n".join([head, *rows, "4000,1000,3,32,,NVIDIA A100 (1),1,7,k1", ""]).encode()


def nsys_text() -> bytes:
    """A summary of kernels as nsys shows it without --format."""
    lines = [" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):", ""]
    lines.append(" Time (%)  Total Time (ns)  Instances  Avg (ns)    Name   ")
    lines.append(" --------  ---------------  ---------  --------  ---------")
    lines += [
        "     60.0            3,000          3    1000.0  k0(int)  ",
        "     40.0             2000          2    1000.0  k1       ",
    ]
    return "\n".join([*lines, ""]).encode()


def oclgrind() -> bytes:
    """Two launches on the simulated device."""
    block = "Instructions executed for kernel 'k':\n       25856 - load global (206848 bytes)\n       25600 - fadd\n       25600 - call llvm.fmuladd.f64()\n          12 - call _Z6vload2mPU3AS1Kf()\n\n"
    return (block + "program output\n" + block).encode()


def callgrind() -> bytes:
    """Two parts of a profile, with calls."""
    head = b"version: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./a\n"
    part = (
        "part: {}\n\ndesc: Trigger: Program termination\npositions: line\nevents: Ir Dr Dw\nsummary: 36 5 1\n\n"
        "ob=(1) /a\nfl=(1) a.c\nfn=(1) main\n10 1 0 1\n+2 2\ncob=(2) /b.so\ncfn=(2) work'2\ncalls=3 0\n* 30 5\n"
        "jcnd=1/2 +8\n*\n+1 1\n\nob=(2)\nfn=(2)\n40 20 5\n* 10\nfn=(3) 0x00000000000010a0\n0 0\n\ntotals: 34 5 1\n"
    )
    return b"# callgrind format\n" + head + (part.format(1) + part.format(2)).encode()


def perf() -> bytes:
    """CSV of two intervals on two processors, and a run of which energy was counted too."""
    rows = [
        f"     {time}.000000001,CPU{cpu},{number},{unit},{event},1000000,{share},1.5,insn per cycle"
        for time in (1, 2)
        for number, unit, event, share in ((4000, "", "cycles:u", "100.00"), (6000, "", "instructions:u", "50.00"))
        for cpu in (0, 1)
    ]
    rows += ["", "# started on Mon Nov 23 12:00:00 2026", "", "12.50,Joules,power/energy-pkg/,2000000000,100.00,,"]
    rows += ["2000000000,ns,duration_time,2000000000,100.00,,", "3000,,cycles,900000,100.00,,"]
    return "\n".join(["# started on Mon Nov 23 11:00:00 2026", "", *rows, ""]).encode()


def perf_text() -> bytes:
    """The text of a run, behind what the program printed."""
    lines = ["program output", "", " Performance counter stats for './a 3':", ""]
    lines += ["         12,344.22 msec task-clock:u              #    0.993 CPUs utilized"]
    lines += ["     1,234,567,890      cycles:u                  #    3.1 GHz                      (83.33%)"]
    lines += ["   <not supported>      branches:u", "             15.25 Joules power/energy-pkg/", ""]
    return "\n".join([*lines, "      12.431238670 seconds time elapsed", "", ""]).encode()


def perf_json() -> bytes:
    """JSON of one event on two processors."""
    row = '{{"cpu" : "{}", "counter-value" : "{}.000000", "unit" : "", "event" : "cycles", "event-runtime" : 900, "pcnt-running" : 100.00, "metric-value" : "3.1", "metric-unit" : "GHz"}}\n'
    return (row.format(0, 4000) + row.format(1, 5000)).encode()


def likwid() -> bytes:
    """CSV of a region, counted with two groups on two threads."""
    lines = ["CPU name:,Intel(R) Core(TM) i5-7500,,", "CPU type:,Intel Kabylake processor,,"]
    for number, group in enumerate(("L3", "ENERGY"), 1):
        lines += [f"TABLE,Region r,Group {number} Raw,{group},3", "Region Info,HWThread 0,HWThread 1,"]
        lines += ["RDTSC Runtime [s],0.5,0.4,", "call count,2,2,", "Event,Counter,HWThread 0,HWThread 1"]
        lines += [
            "INSTR_RETIRED_ANY,FIXC0,1000,2000",
            "CPU_CLK_UNHALTED_CORE,FIXC1,3000,4000",
            "PWR_PKG_ENERGY,PWR0,7.5,0",
        ]
        lines += [
            f"TABLE,Region r,Group {number} Metric,{group},1",
            "Metric,HWThread 0,HWThread 1,",
            "Runtime (RDTSC) [s],0.5000,0.4000,",
        ]
    return "\n".join([*lines, ""]).encode()


def kineto() -> bytes:
    """A trace with an operator, its launch, the kernel and a range of counters."""
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 9},
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 7,
            "tid": 7,
            "ts": 2,
            "dur": 1,
            "args": {"correlation": 3},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": "k(int)",
            "pid": 0,
            "tid": 7,
            "ts": 4,
            "dur": 2.5,
            "args": {"correlation": 3, "device": 0, "stream": 7},
        },
        {
            "ph": "X",
            "cat": "cuda_profiler_range",
            "name": "k(int)",
            "pid": 0,
            "tid": 0,
            "ts": 4,
            "dur": 2.5,
            "args": {"dram__bytes.sum": 4096},
        },
    ]
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}],
        "baseTimeNanoseconds": 10**18,
    }
    return json.dumps({**head, "traceEvents": rows}).encode()


def nvvp() -> bytes:
    """A SQLite export with two kernels and a copy, in small pages."""
    with tempfile.NamedTemporaryFile(suffix=".nvvp") as file:
        base = sqlite3.connect(file.name)
        base.execute("pragma page_size = 512")
        base.execute("create table StringTable (_id_ integer primary key, value text)")
        base.execute("insert into StringTable values (1, 'k(int)'), (2, 'Tesla K20c')")
        base.execute("create table CUPTI_ACTIVITY_KIND_DEVICE (id integer, name integer)")
        base.execute("insert into CUPTI_ACTIVITY_KIND_DEVICE values (0, 2)")
        base.execute(
            "create table CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start integer, end integer, deviceId integer, name integer)"
        )
        base.execute("insert into CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL values (10, 2010, 0, 1), (3000, 4000, 0, 1)")
        base.execute("create table CUPTI_ACTIVITY_KIND_MEMCPY (start integer, end integer)")
        base.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (10, 20)")
        base.commit()
        base.close()
        return Path(file.name).read_bytes()


def mixed() -> bytes:
    """Logs of two profilers and a program in one file."""
    return b"".join((b"program output\n", usage(), b"12 things, of which 3\n", metrics(), trace()))


def mixed_ncu() -> bytes:
    """A summary of nsys, and two logs of ncu behind it."""
    return nsys() + b"output\n" + ncu_raw() + ncu_long()


SEEDS = {
    "nvprof-metrics": metrics,
    "nvprof-events": events,
    "nvprof-wide": wide,
    "nvprof-wide-bare": wide_bare,
    "nvprof-trace": trace,
    "nvprof-trace-new": trace_new,
    "nvprof-usage": usage,
    "nvprof-usage-typed": usage_typed,
    "nvprof-text-counters": text_counters,
    "nvprof-text-usage": text_usage,
    "nvprof-text-trace": text_trace,
    "nvprof-headerless": headerless,
    "nvprof-sqlite": nvvp,
    "ncu-long": ncu_long,
    "ncu-details": ncu_details,
    "ncu-raw": ncu_raw,
    "ncu-instances": ncu_instances,
    "ncu-summary": ncu_summary,
    "ncu-page": ncu_page,
    "nsys": nsys,
    "nsys-trace": nsys_trace,
    "nsys-text": nsys_text,
    "oclgrind": oclgrind,
    "callgrind": callgrind,
    "perf": perf,
    "perf-text": perf_text,
    "perf-json": perf_json,
    "likwid": likwid,
    "kineto": kineto,
    "gzip": lambda: gzip.compress(metrics(), mtime=0),
    "zstd": lambda: bytes(pa.compress(metrics(), "zstd", asbytes=True)),
    "mixed-nvprof": mixed,
    "mixed-ncu": mixed_ncu,
}
# Read by another's library: no log in itself.
REFUSED = {"ncu-report": ncu_report}
# Made by libraries, whose next version may make other bytes.
BY_LIBRARIES = ("nvprof-sqlite", "gzip", "zstd")

if __name__ == "__main__":
    (HERE / "corpus").mkdir(exist_ok=True)
    for name, seed in {**SEEDS, **REFUSED}.items():
        (HERE / "corpus" / name).write_bytes(seed())
