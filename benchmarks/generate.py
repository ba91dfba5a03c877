"""Write the large logs that `benchmarks/read.py` reads: made up, but in the form of real nvprof logs.

python benchmarks/generate.py FOLDER
"""

import sys
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


def summary(path: Path, runs: int, kernels: int) -> None:
    """`runs` appended runs of a metrics summary, with a line of program output in front of each."""
    with path.open("w") as out:
        for run in range(runs):
            out.write(
                f"step {run} of a made-up program\n"
                + run_lines(1000 + run, "=={pid}== Metric result:\n")
                + SUMMARY_HEADER
            )
            for kernel in range(kernels):
                start = f'"Tesla K20c (0)","{kernel_name(kernel)}",{1 + kernel % 9}'
                for place, (name, description, kind) in enumerate(METRICS):
                    value = cell(kind, 1 + run + kernel * 31 + place)
                    out.write(f'{start},"{name}","{description}",{value},{value},{value}\n')


def wide(path: Path, launches: int) -> None:
    """A trace with counters: a row a launch, 200 different kernels."""
    with path.open("w") as out:
        names = ",".join(f'"{name}"' for name, _, _ in METRICS)
        units = ",".join(kind if kind in ("GB/s", "%") else "" for _, _, kind in METRICS)
        out.write(run_lines(1, "") + f'"Device","Context","Stream","Kernel","Correlation_ID",{names}\n,,,,,{units}\n')
        for launch in range(launches):
            values = ",".join(
                cell("count" if kind == "count" else "ratio", launch + place)
                for place, (_, _, kind) in enumerate(METRICS)
            )
            out.write(f'"Tesla K20c (0)","1","7","{kernel_name(launch % 200)}",{launch},{values}\n')


def trace(path: Path, launches: int) -> None:
    """A trace without counters, in the old form with launch ids in the names."""
    columns = (
        "Start,Duration,Grid X,Grid Y,Grid Z,Block X,Block Y,Block Z,Registers Per Thread,Static SMem,Dynamic SMem"
    )
    header = ",".join(f'"{name}"' for name in f"{columns},Size,Throughput,Device,Context,Stream,Name".split(","))
    with path.open("w") as out:
        out.write(run_lines(2, "") + header + "\ns,us,,,,,,,,B,B,MB,GB/s,,,,\n")
        for launch in range(launches):
            start, time = f"{launch / 1e4:.6f}", f"{launch % 91 + 0.5:.6f}"
            place = '"Tesla K20c (0)","1","7"'
            out.write(f'{start},{time},64,1,1,256,1,1,32,0,0,,,{place},"{kernel_name(launch % 200)} [{launch}]"\n')


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


def ncu_long(path: Path, launches: int) -> None:
    """Long form of ncu: a row a launch and metric, 40 metrics."""
    assert len(NCU_METRICS) == 40
    with path.open("w") as out:
        out.write(
            "==PROF== Connected to process 4711 (/opt/made_up)\nstep 1\n==PROF== Disconnected from process 4711\n"
        )
        out.write(quoted([*NCU_COLUMNS, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]))
        for launch in range(launches):
            about = ncu_launch(launch)
            for place, (name, unit) in enumerate(NCU_METRICS.items()):
                out.write(quoted([*about, "Command line profiler metrics", name, unit, ncu_cell(unit, launch + place)]))


def ncu_raw(path: Path, launches: int) -> None:
    """Raw page of ncu: a row a launch, 40 metrics that eprof knows or may know and 360 others, as in a full set."""
    metrics = NCU_METRICS | {f"device__attribute_{number}": "" for number in range(180)}
    metrics |= {f"sm__other_{number}.avg.pct_of_peak_sustained_active": "%" for number in range(180)}
    with path.open("w") as out:
        out.write("==PROF== Connected to process 4711 (/opt/made_up)\n")
        out.write(quoted([*NCU_COLUMNS, *metrics]) + quoted([""] * len(NCU_COLUMNS) + list(metrics.values())))
        for launch in range(launches):
            cells = [ncu_cell(unit, launch + place) for place, unit in enumerate(metrics.values())]
            out.write(quoted([*ncu_launch(launch), *cells]))


def write_ncu(folder: Path) -> dict[str, Path]:
    """The two logs of ncu, written if they are not there yet: 120,000 rows of the long form, 3,000 launches each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.csv" for name in ("ncu_long", "ncu_raw")}
    for path, write in zip(paths.values(), (ncu_long, ncu_raw), strict=True):
        if not path.exists():
            write(path, launches=3000)
    return paths


def write_all(folder: Path) -> dict[str, Path]:
    """The three large logs, written if they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.csv" for name in ("summary", "wide", "trace")}
    if not paths["summary"].exists():
        summary(paths["summary"], runs=50, kernels=5000)
    if not paths["wide"].exists():
        wide(paths["wide"], launches=1_000_000)
    if not paths["trace"].exists():
        trace(paths["trace"], launches=1_000_000)
    return paths


if __name__ == "__main__":
    for written in write_all(Path(sys.argv[1])).values():
        print(written, f"{written.stat().st_size / 1e6:.0f} MB")
