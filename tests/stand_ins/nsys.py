"""A stand-in for nsys 2023.4: runs the program, leaves a trace, and prints the table of its kernels as CSV.

The trace is not one of NVIDIA's: it holds the table that `stats` is to print, and only this stand-in reads it.
STAND_IN_TIMES: a real table to replay. STAND_IN_NSYS: what goes wrong, if anything.
"""

import os
import sys

# Of `signal`, `subprocess` and `pathlib` each takes longer to import than all of this to run, and there are hundreds of runs.
from _signal import SIG_IGN, SIGINT, SIGKILL, SIGSEGV, SIGTERM, signal

MODE = os.environ.get("STAND_IN_NSYS", "")
HEADER = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
VERSION = "2020.3.4.32-52657a0" if MODE == "old" else "2023.4.4.54-234433681190v0"
REPORT = "gpukernsum" if MODE == "old-report" else "cuda_gpu_kern_sum"
VALUED = ("-o",)
NAMES = {SIGINT: "SIGINT", SIGKILL: "SIGKILL", SIGSEGV: "SIGSEGV", SIGTERM: "SIGTERM"}


def read(path):
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def table():
    if "STAND_IN_TIMES" in os.environ:
        return read(os.environ["STAND_IN_TIMES"])
    # 3 launches of 1500 ns: ncu's stand-in says 2000 ns for each.
    return f'{HEADER}\n100.0,4500,3,1500.0,1500.0,1500,1500,0.0,"work(float *, int)"\n'


def profile(words):
    options = {}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        options[word.partition("=")[0]] = words.pop(0) if word in VALUED else word.partition("=")[2]
    assert (options["--trace"], options["--sample"], options["--cpuctxsw"]) == ("cuda", "none", "none")
    signal(SIGINT, SIG_IGN)  # before the program runs: what it writes first may be what a test waits for to interrupt
    child = os.posix_spawnp(words[0], words, os.environ, setsigdef=[SIGINT])
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if MODE == "killed":
        os.kill(os.getpid(), SIGKILL)
    if MODE == "failing":
        print("Agent launcher failed.", file=sys.stderr)
        return 1
    print("Generating '/tmp/nsys-report-stand-in.qdstrm'")
    if MODE == "no-importer":
        write(options["-o"].replace("%%", "%") + ".qdstrm", "a stream")
        print("Importer error status: The importer binary and its dependencies were not found.", file=sys.stderr)
        print("Unable to retrieve the importer version: skipping importation of the QDSTRM file.", file=sys.stderr)
        return 128 - ended if ended < 0 else ended
    name = options["-o"].replace("%%", "%") + ".nsys-rep"
    write(name, "" if MODE == "no-kernel" else table())
    print(f"[1/1] [========================100%] {name}\nGenerated:\n    {name}")
    if ended < 0:
        print(f"The target application terminated with signal {-ended} ({NAMES.get(-ended, -ended)})")
    return 128 - ended if ended < 0 else ended


def stats(words):
    options = {words[n]: words[n + 1] for n in range(0, len(words) - 1, 2)}
    if options["--report"] != REPORT:
        print(f"ERROR: Report '{options['--report']}' could not be found.", file=sys.stderr)
        return 0
    trace = words[-1]
    export = os.path.splitext(trace)[0] + ".sqlite"  # noqa: PTH122
    write(export, "a large by-product")
    text = read(trace)
    print(f"Generating SQLite file {export} from {trace}")
    print(f"Processing [{export}] with [{REPORT}.py]... ")
    if not text:
        print(f"SKIPPED: {export} does not contain CUDA kernel data.")
        return 0
    if MODE == "torn":
        print(text[:40], flush=True)
        return 1
    print(f"\n{text}", end="")
    return 0


def main():
    words = sys.argv[1:]
    if MODE == "mute":
        return 127
    if words == ["--version"]:
        print(f"NVIDIA Nsight Systems version {VERSION}")
    elif words == ["stats", "--help-reports"]:
        print(f"The following built-in reports are available:\n  {REPORT} -- CUDA GPU Kernel Summary")
        return 1
    elif words == ["profile", "--help"]:
        print("usage: nsys profile [<args>] [application] [<application args>]\n\t--cuda-graph-trace=")
    else:
        return {"profile": profile, "stats": stats}[words[0]](words[1:])
    return 0


sys.exit(main())
