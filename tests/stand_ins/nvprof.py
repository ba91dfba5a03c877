"""A stand-in for nvprof: runs the program as nvprof does, then replays a log. Options, exit codes and messages as of 11.8.

STAND_IN_TRACE, STAND_IN_COUNTERS: the real logs to replay (the process id is put in). STAND_IN: what goes wrong, if anything.
"""

import os
import sys

# Of `signal`, `subprocess` and `pathlib` each takes longer to import than all of this to run, and there are hundreds of runs.
from _signal import SIG_BLOCK, SIG_IGN, SIG_UNBLOCK, SIGINT, SIGTERM, pthread_sigmask, signal

VALUED = {"-u", "--log-file", "--events", "--metrics", "--kernels", "--devices", "--timeout"}
FLAGS = {"--csv", "--print-gpu-trace", "--profile-child-processes"}
EVENTS = ["l1_global_load_hit", "l1_local_load_hit", "l1_local_store_hit"]
EVENTS += [f"l2_subp{n}_read_{unit}_hit_sectors" for n in range(4) for unit in ("l1", "tex")]
METRICS = [f"flop_count_{p}_{kind}" for p in ("dp", "sp") for kind in ("fma", "add", "mul")]
METRICS += [f"shared_{way}_transactions" for way in ("load", "store")] + ["shared_efficiency", "inst_integer"]
METRICS += ["l2_write_transactions", "l2_tex_read_transactions", "tex_cache_transactions", "sysmem_write_transactions"]
METRICS += ["dram_read_transactions", "dram_write_transactions"]
DEVICE = "Tesla K20c"
KERNEL = "work(float*, int)"
# Without libcuda, and with one but no GPU that answers.
SKIPPED = {"no-driver": "unable to locate cuda driver library", "no-device": "CUDA device error"}


def query(names):
    print("Available Events:\n                            Name   Description")
    print(f"Device 0 ({DEVICE}):")
    for name in names:
        print(f"                        {name}:  Stands in for {name}.\n")


def parse(words):
    options = {}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in VALUED:
            options[word] = words.pop(0)
        elif word in FLAGS:
            options[word] = True
        else:
            print(f"======== Error: Encountered invalid option : {word}", file=sys.stderr)
            print('======== Use "nvprof --help" to get more information.', file=sys.stderr)
            sys.exit(5)
    return options, words


def table(options, launches):
    if "--print-gpu-trace" in options:
        yield "==PID== Profiling result:"
        header = ["Start", "Duration", "Grid X", "Grid Y", "Grid Z", "Block X", "Block Y", "Block Z"]
        header += [
            "Registers Per Thread",
            "Static SMem",
            "Dynamic SMem",
            "Size",
            "Throughput",
            "Device",
            "Context",
            "Stream",
            "Name",
        ]
        yield ",".join(f'"{name}"' for name in header)
        yield "ns,ns,,,,,,,,B,B,B,GB/s,,,,"
        for n in range(launches):
            yield f'{n * 1000},{int(os.environ.get("STAND_IN_NS", "500"))},64,1,1,256,1,1,21,0,0,,,"{DEVICE} (0)","1","7","{KERNEL} [{n}]"'
        return
    for kind, option in (("Event", "--events"), ("Metric", "--metrics")):
        asked = [name for name in options.get(option, "").split(",") if name]
        if asked:
            yield f"==PID== {kind} result:"
            description = ',"Metric Description"' if kind == "Metric" else ""
            yield f'"Device","Kernel","Invocations","{kind} Name"{description},"Min","Max","Avg"'
            for name in asked:
                value = "50.000000%" if name == "shared_efficiency" else "1000"
                row = f'"{DEVICE} (0)","{KERNEL}",{launches},"{name}"' + (f',"{name}"' if kind == "Metric" else "")
                yield f"{row},{value},{value},{value}"


def end(ended):
    if ended > 0:
        return f"======== Error: Application returned non-zero code {ended}"
    return f"======== Error: Application received signal {-ended}"


def log_text(options, pid, command, launches, ended):
    mode = os.environ.get("STAND_IN", "")
    if mode in SKIPPED:
        ending = "======== Warning: No profile data collected." if not ended else end(ended)
        return f"======== Warning: {SKIPPED[mode]}, GPU profiling skipped\n{ending}\n"
    lines = [f"==PID== NVPROF is profiling process PID, command: {command}"]
    counting = "--events" in options or "--metrics" in options
    if mode == "permission" and counting:
        lines.append(
            "==PID== Warning: ERR_NVGPUCTRPERM - The user does not have permission to profile on the target device."
        )
    elif mode == "cc80":
        lines.append("======== Warning: nvprof is not supported on devices with compute capability 8.0 and higher.")
    else:
        lines.append(f"==PID== Profiling application: {command}")
        replay = os.environ.get("STAND_IN_COUNTERS" if counting else "STAND_IN_TRACE")
        if replay:
            lines += read(replay).splitlines()
        elif launches:
            lines += table(options, launches)
        else:
            lines.append("No kernels were profiled.")
        if mode == "overflow" and counting:
            lines.append(
                '======== Warning: One or more events or metrics overflowed. Rerun with "--print-gpu-trace" for detail.'
            )
    if ended:
        lines.append(end(ended))
    return "\n".join(lines).replace("PID", str(pid)) + "\n"


def read(path):
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def pass_on(child):
    """Send SIGTERM to the program, which may have ended a moment ago: the profiler gets the signal of the group too."""
    try:  # noqa: SIM105 - contextlib takes longer to import
        os.kill(child, SIGTERM)
    except ProcessLookupError:
        pass


def main():
    words = sys.argv[1:]
    mode = os.environ.get("STAND_IN", "")
    if words == ["--version"]:
        print("nvprof: NVIDIA (R) Cuda command line profiler\nRelease version 11.8.87 (21)")
        return 0
    if words and words[0].startswith("--query-"):
        if mode == "no-query":
            print("======== Error: unable to locate cuda driver library.", file=sys.stderr)
            print("======== Make sure nvidia driver is properly installed.", file=sys.stderr)
            return 23
        query(EVENTS if words[0] == "--query-events" else METRICS)
        return 0
    options, command = parse(words)
    if mode == "internal" and ("--events" in options or "--metrics" in options):
        print("======== Error: internal error.", file=sys.stderr)
        return 4
    signal(SIGINT, SIG_IGN)
    pthread_sigmask(SIG_BLOCK, [SIGTERM])  # it waits until there is a program to pass it on to
    child = os.posix_spawnp(command[0], command, os.environ, setsigdef=[SIGINT], setsigmask=[])
    signal(SIGTERM, lambda *_: pass_on(child))
    pthread_sigmask(SIG_UNBLOCK, [SIGTERM])
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal(SIGTERM, SIG_IGN)
    if mode == "silent":
        return 0
    launches = int(os.environ.get("STAND_IN_LAUNCHES", "3"))
    counting = "--events" in options or "--metrics" in options
    if counting and "STAND_IN_OTHER_LAUNCHES" in os.environ:
        launches = int(os.environ["STAND_IN_OTHER_LAUNCHES"])
    for n in range(int(os.environ.get("STAND_IN_PROCESSES", "1"))):
        path = options["--log-file"].replace("%%", "\0").replace("%p", str(child + n)).replace("\0", "%")
        write(path, log_text(options, child + n, " ".join(command), launches + n, ended))
    return 9 if ended > 0 else 15 if ended < 0 else 0


sys.exit(main())
