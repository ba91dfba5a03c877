"""The logs that `benchmarks/peers.py` reads: made up, but in the form of real ones, with as many rows as asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path

METRICS = (
    ("flop_count_sp_fma", "Floating Point Operations(Single Precision FMA)", "count"),
    ("inst_integer", "Integer Instructions", "count"),
    ("dram_read_transactions", "Device Memory Read Transactions", "count"),
    ("dram_write_transactions", "Device Memory Write Transactions", "count"),
    ("l2_read_transactions", "L2 Read Transactions", "count"),
    ("dram_read_throughput", "Device Memory Read Throughput", "GB/s"),
    ("sm_efficiency", "Multiprocessor Activity", "%"),
    ("ipc", "Executed IPC", "ratio"),
)
NCU_COLUMNS = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
NCU_METRICS = {
    "gpu__time_duration.sum": "ns",
    **{f"dram__bytes_{way}.sum": "byte" for way in ("read", "write")},
    **{f"lts__t_sectors_srcunit_tex_op_{way}.sum": "sector" for way in ("read", "write")},
    **{f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum": "sector" for way in ("ld", "st")},
    **{f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{way}.sum": "" for way in ("ld", "st")},
    **{SASS.format(f"{type_}{kind}"): "inst" for type_ in "dfh" for kind in ("fma", "add", "mul")},
    **{SASS.format(kind): "inst" for kind in ("integer", "bit", "conversion", "control", "memory", "misc")},
    **{f"sm__throughput_{number}.avg.pct_of_peak_sustained_elapsed": "%" for number in range(16)},
}
SUMMARY_HEADER = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'


# What a log is written of: text that only the log has, then text that the bare table below one header has too.
Parts = Iterator[tuple[str, str]]
TILE = 100_000  # rows that are made once and then repeated: values do not matter here, and Python is slow


def kernel_name(number: int) -> str:
    """A name as long, and with as many commas, as those of templates are."""
    return f"void kernel_{number}<float, bool=1>(float const *, float*, int, int)"


def cell(kind: str, seed: int) -> str:
    """A value as nvprof prints it in a summary."""
    if kind == "count":
        return str(seed * 7919 % 1_000_003 * 4096)
    number = f"{seed % 997 / 10:.6f}"
    return number if kind == "ratio" else number + kind


def run_lines(pid: int, mode: str) -> str:
    """The lines around a result."""
    return (
        f"=={pid}== NVPROF is profiling process {pid}, command: ./made_up\n"
        f"=={pid}== Profiling application: ./made_up\n=={pid}== Profiling result:\n{mode.format(pid=pid)}"
    )


def tiled(make: Callable[[int], str], rows: int) -> Parts:
    """`rows` rows; those of the first tile again and again."""
    tile = [make(row) for row in range(min(rows, TILE))]
    whole = "".join(tile)
    for _ in range(rows // len(tile)):
        yield "", whole
    yield "", "".join(tile[: rows % len(tile)])


def summary(rows: int) -> Parts:
    """A metrics summary: a row a kernel and metric, of up to 5,000 kernels; further runs are appended to the file."""
    kernels = max(1, min(5000, rows // 16))
    body = "".join(
        f'"Tesla K20c (0)","{kernel_name(kernel)}",{1 + kernel % 9},"{name}","{description}",{value},{value},{value}\n'
        for kernel in range(kernels)
        for place, (name, description, kind) in enumerate(METRICS)
        for value in [cell(kind, 1 + kernel * 31 + place)]
    )
    for run in range(max(1, rows // (8 * kernels))):
        lines = f"step {run} of a made-up program\n" + run_lines(1000 + run, "=={pid}== Metric result:\n")
        yield (lines + SUMMARY_HEADER, "") if run else (lines, SUMMARY_HEADER)
        yield "", body


def wide(rows: int) -> Parts:
    """A trace with counters: a row a launch, 200 different kernels."""

    def row(launch: int) -> str:
        values = ",".join(
            cell("count" if kind == "count" else "ratio", launch + place) for place, (_, _, kind) in enumerate(METRICS)
        )
        return f'"Tesla K20c (0)","1","7","{kernel_name(launch % 200)}",{launch},{values}\n'

    names = ",".join(f'"{name}"' for name, _, _ in METRICS)
    units = ",".join(kind if kind in ("GB/s", "%") else "" for _, _, kind in METRICS)
    yield run_lines(1, ""), f'"Device","Context","Stream","Kernel","Correlation_ID",{names}\n'
    yield f",,,,,{units}\n", ""
    yield from tiled(row, rows)


def trace(rows: int) -> Parts:
    """A trace without counters, in the old form with launch ids in the names."""

    def row(launch: int) -> str:
        start, time = f"{launch / 1e4:.6f}", f"{launch % 91 + 0.5:.6f}"
        place = '"Tesla K20c (0)","1","7"'
        return f'{start},{time},64,1,1,256,1,1,32,0,0,,,{place},"{kernel_name(launch % 200)} [{launch}]"\n'

    columns = (
        "Start,Duration,Grid X,Grid Y,Grid Z,Block X,Block Y,Block Z,Registers Per Thread,Static SMem,Dynamic SMem"
    )
    names = f"{columns},Size,Throughput,Device,Context,Stream,Name".split(",")
    yield run_lines(2, ""), ",".join(f'"{name}"' for name in names) + "\n"
    yield "s,us,,,,,,,,B,B,MB,GB/s,,,,\n", ""
    yield from tiled(row, rows)


def ncu_cell(unit: str, seed: int) -> str:
    """A value as ncu prints it: counts with groups of three, percentages with two decimals."""
    return f"{seed % 9973 / 100:.2f}" if unit == "%" else f"{seed * 7919 % 1_000_003 * 64:,}"


def ncu_launch(launch: int) -> list[str]:
    """What ncu says of a launch in every row: 200 different kernels."""
    kernel = kernel_name(launch % 200)
    return [str(launch), "4711", "made_up", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(64, 8, 1)", "0", "8.0"]


def quoted(fields: list[str]) -> str:
    """A line of CSV with every field in quotes, as ncu writes it."""
    return '"' + '","'.join(fields) + '"\n'


def ncu_long(rows: int) -> Parts:
    """Long form of ncu: a row a launch and metric, 40 metrics."""
    assert len(NCU_METRICS) == 40
    yield (
        "==PROF== Connected to process 4711 (/opt/made_up)\nstep 1\n==PROF== Disconnected from process 4711\n",
        quoted([*NCU_COLUMNS, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]),
    )
    for launch in range(max(1, rows // 40)):
        about = ncu_launch(launch)
        yield (
            "",
            "".join(
                quoted([*about, "Command line profiler metrics", name, unit, ncu_cell(unit, launch + place)])
                for place, (name, unit) in enumerate(NCU_METRICS.items())
            ),
        )


def ncu_raw(rows: int) -> Parts:
    """Raw page of ncu: a row a launch, 40 metrics that eprof knows or may know and 360 others, as in a full set."""
    metrics = NCU_METRICS | {f"device__attribute_{number}": "" for number in range(180)}
    metrics |= {f"sm__other_{number}.avg.pct_of_peak_sustained_active": "%" for number in range(180)}
    yield "==PROF== Connected to process 4711 (/opt/made_up)\n", quoted([*NCU_COLUMNS, *metrics])
    yield quoted([""] * len(NCU_COLUMNS) + list(metrics.values())), ""
    for launch in range(rows):
        cells = [ncu_cell(unit, launch + place) for place, unit in enumerate(metrics.values())]
        yield "", quoted([*ncu_launch(launch), *cells])


LOGS = {
    "summary": ("nvprof metrics summary", summary),
    "wide": ("nvprof wide trace", wide),
    "trace": ("nvprof GPU trace", trace),
    "ncu_long": ("Nsight Compute, long form", ncu_long),
    "ncu_raw": ("Nsight Compute, raw page of 411 columns", ncu_raw),
}


def write(name: str, rows: int, folder: Path) -> tuple[Path, Path]:
    """A log and its bare table, one header and the rows, for readers of tables. Written if they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    log, bare = (folder / f"{name}-{rows}.{kind}" for kind in ("csv", "bare"))
    if not (log.exists() and bare.exists()):
        with log.with_suffix(".part").open("w") as whole, bare.open("w") as table:
            for own, both in LOGS[name][1](rows):
                whole.write(own + both)
                table.write(both)
        log.with_suffix(".part").replace(log)
    return log, bare
