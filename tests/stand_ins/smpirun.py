"""Stands in for SimGrid's smpirun: writes what it would, at once. STAND_IN_SMPIRUN says what goes wrong."""

import itertools
import os
import sys
import time
from pathlib import Path

if "-version" in sys.argv:
    print("SimGrid version 3.32")
    sys.exit()
mode = os.environ.get("STAND_IN_SMPIRUN", "")
after = dict(itertools.pairwise(sys.argv))
log = next(word.rpartition(":")[2] for word in sys.argv if word.startswith("--log=host_energy.app:file:"))
platform = Path(after["-platform"]).read_text()
names = Path(after["-hostfile"]).read_text().split()
assert all(f'<host id="{name}"' in platform for name in names)
print("simulating", flush=True)
if "-trace-file" in after:
    trace = Path(after["-trace-file"])
    folder = Path(f"{trace}_files")
    folder.mkdir()
    files = [folder / f"17.5_rank-{rank}.txt" for rank in range(1, int(after["-np"]) + 1)]
    for rank, file in enumerate(files):
        file.write_text(f"{rank} init\n{rank} compute 1e9\n{rank} finalize\n"[: -3 if mode == "cut" else None])
    trace.write_text("".join(f"{file}\n" for file in files))
elif mode == "hangs":
    Path("replaying").touch()
    time.sleep(300)
if mode == "dies":
    sys.stderr.write("[0.0] [xbt_exception/ERROR] Parse error\n")
    sys.exit(134)
time_s, energy_j = ("7.661194", "3854.972073") if "2800mhz" in log else ("8.035695", "3796.685246")
head = f"[{time_s}] [host_energy/INFO]"
Path(log).write_text(
    f"{head} Total energy consumption: 9000.5 Joules (used hosts: {energy_j} Joules; unused/idle hosts: 5.0)\n"
    f"{head} Energy consumption of host node-0: 963.743018 Joules\n"
)
