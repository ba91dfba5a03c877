"""A stand-in for ncu 2024.1: runs the program, then writes the log that is asked for. Options, exit codes, messages alike.

STAND_IN_COUNTERS: a real log to replay. STAND_IN: what goes wrong, if anything. STAND_IN_PROCESSES: how many processes
run the kernel. STAND_IN_GPU: "NAME, CAPABILITY". STAND_IN_OLD: as 2022.3, which prints instances without their opcodes.
"""

import os
import sys

# Of `signal`, `subprocess` and `pathlib` each takes longer to import than all of this to run, and there are hundreds of runs.
from _signal import SIG_IGN, SIGINT, signal

VALUED = {
    "--page",
    "--print-units",
    "--target-processes",
    "--clock-control",
    "--log-file",
    "-k",
    "--launch-skip",
    "--launch-count",
    "--nvtx-include",
    "--metrics",
}
INSTANCES = "--print-metric-instances"
VALUED.add(INSTANCES)
MODES = ["none", "values"] if "STAND_IN_OLD" in os.environ else ["none", "values", "details"]
# As 2024.1 prints it; an option behind it has the same word.
HELP = f"""  {INSTANCES} arg (=none)  Set output mode for metrics with instance values:
{"".join(f"{'':42}{mode}{chr(10)}{'':42}(Some words on it){chr(10)}" for mode in MODES)}
  --print-details arg (=header)         Select which part of a section should be printed:
                                          details
"""
PER_OPCODE = "sass__thread_inst_executed_true_per_opcode"
OPCODES = {"DFMA": 1000, "LDG": 3000, "MUFU": 250, "EXIT": 1000}
FLAGS = {"--csv", "--nvtx"}
COLUMNS = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
]
COLUMNS += ["Device", "CC"]
# A kernel of 1000 threads, each with a double-precision multiply-add on 32 bytes of DRAM; all else is 0.
VALUES = {
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 1000,
    "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum": 1000,
    "smsp__sass_thread_inst_executed_op_memory_pred_on.sum": 2000,
    "smsp__sass_thread_inst_executed_op_control_pred_on.sum": 1000,
    "smsp__sass_thread_inst_executed_pred_on.sum": 4000,
    "smsp__inst_executed.sum": 128,
    "smsp__sass_data_bytes_mem_global_op_ld.sum": 24000,
    "smsp__sass_data_bytes_mem_global_op_st.sum": 8000,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 750,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 250,
    "lts__t_sectors_srcunit_tex_op_read.sum": 750,
    "lts__t_sectors_srcunit_tex_op_write.sum": 250,
    "dram__bytes_read.sum": 24000,
    "dram__bytes_write.sum": 8000,
    "gpu__time_duration.sum": 2000,
}
# What each mode says, and ncu's exit code; None: the program's.
FAULTS = {
    "permission": (
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
        "target device 0. For instructions on enabling permissions and to get more information see "
        "https://developer.nvidia.com/ERR_NVGPUCTRPERM",
        1,
    ),
    "old-gpu": (
        "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
        1,
    ),
    "busy": ("==ERROR== Profiling failed because a driver resource was unavailable.", 1),
    "no-metric": ("==ERROR== Failed to find metric dram__bytes_read.sum", 1),
    "no-kernel": ("==WARNING== No kernels were profiled.", None),
}


def parse(words):
    options = {}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in VALUED:
            options[word] = words.pop(0)
        elif word in FLAGS:
            options[word] = True
        else:
            print(f"==ERROR== unrecognised option '{word}'. Use --help for further details.", file=sys.stderr)
            sys.exit(1)
    return options, words


def unit(name):
    if name == "gpu__time_duration.sum":
        return "nsecond"
    return "byte" if "bytes" in name else "sector" if "sectors" in name else "inst"


def table(options, pid, names):
    capability = os.environ.get("STAND_IN_GPU", "NVIDIA H100, 9.0").rpartition(",")[2].strip()
    yield ",".join(f'"{name}"' for name in [*COLUMNS, *names])
    yield ",".join(f'"{one}"' for one in [*[""] * len(COLUMNS), *map(unit, names)])
    launches = int(os.environ.get("STAND_IN_LAUNCHES", "3"))
    skipped, most = int(options.get("--launch-skip", "0")), int(options.get("--launch-count", "1000"))
    for process in range(int(os.environ.get("STAND_IN_PROCESSES", "1"))):
        for n in range(skipped, min(launches + process, skipped + most)):
            cells = [
                n,
                pid + process,
                "program",
                "127.0.0.1",
                "work(float*, int)",
                1,
                7,
                "(256, 1, 1)",
                "(4, 1, 1)",
                0,
                capability,
            ]
            yield ",".join(f'"{one}"' for one in [*cells, *(value(name, options) for name in names)])


def value(name, options):
    """A cell; of a metric with a value for each opcode the total, and with the option each of them too."""
    if name != PER_OPCODE:
        return VALUES.get(name, 0)
    each = "; ".join(f"{opcode}: {count}" for opcode, count in OPCODES.items())
    return f"{sum(OPCODES.values())} ({each})" if options.get(INSTANCES) == "details" else sum(OPCODES.values())


def offer():
    lost = tuple(os.environ.get("STAND_IN_LOST", "-").split())
    return [name for name in os.environ.get("STAND_IN_OFFER", "").split() if not name.startswith(lost)]


def query():
    """No chip's list holds metrics with a value for each opcode."""
    for name in offer():
        if not name.startswith("sass__"):
            print(f"{name:100} Counter         inst            stands in for {name}")
    return 0


def knows(names):
    """`--list-metrics`: a name that ncu does not know becomes a pattern."""
    for name in names:
        word = name if name in offer() else rf"regex:^{name}\.(sum|min|max|avg|pct|ratio|max_rate)$"
        print(f"{word}\n -{word}")
    return 0


def unconnected(log):
    """Without libcuda the program is not run; the reason is on standard error, and the log has ncu's own exit code."""
    print(
        "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).", file=sys.stderr
    )
    write(log, "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n")
    return 1


def read(path):
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def answer(words):
    """What is asked of ncu itself; None if it is to profile."""
    if words == ["--version"]:
        print("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2024.1.1.0 (build 33998838) (public-release)")
        return 0
    if words == ["--help"]:
        print(HELP)
        return 0
    if words[0] == "--list-metrics":
        return knows(words[2].split(","))
    return query() if "--query-metrics" in words else None


def started(options, mode):
    """ncu's exit code where it does not come to run the program; None if it does."""
    if options.get(INSTANCES, "none") not in MODES:
        print(
            f"==ERROR== the argument for option '{INSTANCES}' is invalid. Use --help for further details.",
            file=sys.stderr,
        )
        return 1
    return unconnected(options["--log-file"]) if mode == "no-driver" else None


def main():
    mode = os.environ.get("STAND_IN", "")
    answered = answer(sys.argv[1:])
    if answered is not None:
        return answered
    options, command = parse(sys.argv[1:])
    refused = started(options, mode)
    if refused is not None:
        return refused
    signal(SIGINT, SIG_IGN)  # before the program runs: what it writes first may be what a test waits for to interrupt
    child = os.posix_spawnp(command[0], command, os.environ, setsigdef=[SIGINT])
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if mode == "silent":
        return 0
    lines = [f"==PROF== Connected to process {child} ({command[0]})"]
    message, code = FAULTS.get(mode, (None, None))
    if message is not None and mode != "no-kernel":
        lines.append(message)
    lines.append(f"==PROF== Disconnected from process {child}")
    if mode == "no-kernel":
        lines.append(message)
    elif "STAND_IN_COUNTERS" in os.environ:
        lines += read(os.environ["STAND_IN_COUNTERS"]).splitlines()
    elif message is None:
        lines += table(options, child, options["--metrics"].split(","))
    if ended:
        lines.append(f"==ERROR== The application returned an error code ({abs(ended) & 0xFF}).")
    write(options["--log-file"], "\n".join(lines) + "\n")
    return code if code is not None else abs(ended) & 0xFF


sys.exit(main())
