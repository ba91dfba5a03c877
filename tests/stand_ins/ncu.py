"""A stand-in for ncu 2024.1: runs the program, then writes the log that is asked for. Options, exit codes, messages alike."""

import os
import signal
import subprocess
import sys
from pathlib import Path

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
FLAGS = {"--csv", "--nvtx"}


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


def main():
    words = sys.argv[1:]
    mode = os.environ.get("STAND_IN", "")
    if words == ["--version"]:
        print("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2024.1.1.0 (build 33998838) (public-release)")
        return 0
    if "--query-metrics" in words:
        return 0
    options, command = parse(words)
    child = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    ended = child.wait()
    lines = [f"==PROF== Connected to process {child.pid} ({command[0]})"]
    if mode == "permission":
        lines.append(
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0."
        )
    lines.append(f"==PROF== Disconnected from process {child.pid}")
    if mode == "no-kernel":
        lines.append("==WARNING== No kernels were profiled.")
    elif "STAND_IN_COUNTERS" in os.environ:
        lines += Path(os.environ["STAND_IN_COUNTERS"]).read_text().splitlines()
    elif mode != "permission":
        names = options["--metrics"].split(",")
        lines.append(
            ",".join(f'"{name}"' for name in ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", *names])
        )
        lines.append(",".join('""' for _ in range(5 + len(names))))
        lines += [
            ",".join([f'"{n}"', f'"{child.pid}"', '"a"', '"h"', '"work"', *('"1"' for _ in names)]) for n in range(2)
        ]
    if ended:
        lines.append(f"==ERROR== The application returned an error code ({ended & 0xFF}).")
    Path(options["--log-file"]).write_text("\n".join(lines) + "\n")
    return 1 if mode == "permission" else ended & 0xFF


sys.exit(main())
