"""The inputs and settings of the study, and the two ways of saying which memory served a byte."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from law import Law, LawError, Tally, as_log, drivers, fit, fmm_plan, predict, tallies  # puts samples/ on the path

# isort: split
from fmm.count import Counter as WorkCounter
from fmm.solver import Plan

ROOT = Path(__file__).resolve().parents[3]
FMM = ROOT / "samples" / "fmm" / "fmm"
# [FMM] Table IV
INPUTS = {
    "F1": (262144, 128),
    "F2": (131072, 64),
    "F3": (131072, 256),
    "F4": (131072, 512),
    "F5": (65536, 1024),
    "F6": (65536, 512),
    "F7": (65536, 128),
    "F8": (65536, 64),
}
SETTINGS = {
    "S1": "852/924",
    "S2": "756/924",
    "S3": "180/924",
    "S4": "852/792",
    "S5": "612/528",
    "S6": "540/528",
    "S7": "612/396",
    "S8": "852/204",
}
# (distribution, N, Q, seed): small, and different enough to tell all drivers apart
FITTED = [
    ("clustered", 100, 20, 1),
    ("clustered", 150, 20, 2),
    ("clustered", 300, 20, 1),
    ("clustered", 400, 70, 2),
    ("clustered", 800, 70, 2),
    ("clustered", 100, 5, 1),
    ("uniform", 150, 50, 1),
    ("uniform", 300, 300, 1),
    ("clustered", 700, 150, 3),
]
# Not used for the law: every Q of F1 to F8 at a size that is simulated in a minute
HELD_OUT = [
    ("uniform", 1024, 64, 1),
    ("uniform", 1024, 128, 1),
    ("uniform", 2048, 256, 1),
    ("uniform", 1024, 512, 1),
    ("uniform", 1536, 1024, 1),
]
# Oclgrind's names of what `--count` counts
SAME = {
    "add": ("fadd", "fsub"),
    "mul": ("fmul",),
    "fma": ("call _Z3fmaddd()",),
    "rsqrt": ("call _Z5rsqrtd()",),
    "global_load": ("load global (bytes)",),
    "global_store": ("store global (bytes)",),
    "shared_load": ("load local (bytes)",),
    "shared_store": ("store local (bytes)",),
}
WARP = 32


def simulate(dist: str, n: int, q: int, seed: int) -> dict[str, dict[str, int]]:
    """Run fmm on the simulated device: what each kernel executed. Raises LawError if the program fails."""
    words = [f"N={n}", f"Q={q}", f"dist={dist}", f"seed={seed}", "precision=double", "device=oclgrind", "check=50"]
    done = subprocess.run(
        [sys.executable, str(FMM), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OCLGRIND_INST_COUNTS": "1", "LC_ALL": "C"},
    )
    if done.returncode:
        raise LawError(f"fmm {' '.join(words)} failed on the simulated device: {done.stderr.strip()}")
    return {kernel: dict(tally) for kernel, tally in tallies(done.stdout).items()}


def label(case: tuple[str, int, int, int]) -> str:
    """A case as the words that fmm takes."""
    dist, n, q, seed = case
    return f"dist={dist} N={n} Q={q} seed={seed}"


def law_of(simulated: Mapping[str, Mapping[str, Tally]]) -> Law:
    """The law that the fitted cases obey. Raises LawError if they do not, to the last instruction."""
    return fit([(drivers(plan_of(case)), simulated[label(case)]) for case in FITTED])


def plan_of(case: tuple[str, int, int, int]) -> Plan:
    """The lists of a case."""
    dist, n, q, seed = case
    return fmm_plan(n, q, dist, seed)


def differences(told: Mapping[str, Tally], seen: Mapping[str, Tally]) -> dict[str, tuple[int, int]]:
    """Where a prediction and a simulation differ: "kernel, opcode" -> (told, seen)."""
    names = {(kernel, opcode) for side in (told, seen) for kernel in side for opcode in side[kernel]}
    pairs = {key: tuple(side.get(key[0], {}).get(key[1], 0) for side in (told, seen)) for key in names}
    return {f"{kernel}, {opcode}": pair for (kernel, opcode), pair in sorted(pairs.items()) if pair[0] != pair[1]}


def against_count(executed: Mapping[str, Tally], plan: Plan) -> dict[str, float]:
    """The largest relative difference between a simulation and the program's own `--count`, kernel by kernel."""
    counted = WorkCounter(plan, "double").kernels()
    found = {}
    for kernel, tally in executed.items():
        work = counted[kernel]
        told = {
            "add": work.add,
            "mul": work.mul,
            "fma": work.fma,
            "rsqrt": work.rsqrt,
            "global_load": work.load + work.index_load,
            "global_store": work.store,
            "shared_load": work.local_load,
            "shared_store": work.local_store,
        }
        seen = {name: sum(tally.get(opcode, 0) for opcode in opcodes) for name, opcodes in SAME.items()}
        found[kernel] = max(abs(seen[name] - told[name]) / max(told[name], 1) for name in told)
    return found


def ideal_caches(table: pd.DataFrame, kernels: pd.Series, plan: Plan) -> pd.DataFrame:
    """The same counts as if an L2 cache of any size served whatever was asked for twice.

    DRAM: each element once a kernel (`unique` of `--count`). L2: all other requests for global memory, an index that
    the lanes of a warp read alike once a warp. The simulated device, without caches, charges every request to DRAM:
    what a GPU does lies between. Shared memory is left as it is.
    """
    counted = WorkCounter(plan, "double").kernels()
    found = table.copy()
    for row, kernel in kernels.items():
        work = counted[str(kernel)]
        write = min(work.store, work.unique)
        asked = work.load + work.store + work.index_load / WARP
        found.loc[row, ["dram_read", "dram_write"]] = [work.unique - write, write]
        found.loc[row, ["l2_read", "l2_write"]] = [max(asked - work.unique, 0.0), 0.0]
    return found


def log_of(law: Law, name: str, folder: Path) -> Path:
    """The counts of an input as a file in Oclgrind's format, whose first line says that they are computed."""
    n, q = INPUTS[name]
    head = f"computed, not recorded: fmm N={n} Q={q} precision=double by the law of docs/studies/fmm-64"
    path = folder / f"{name}.txt"
    path.write_text(as_log(predict(law, drivers(fmm_plan(n, q))), head))
    return path


def read_json(path: Path) -> dict[str, dict[str, dict[str, int]]]:
    """A saved simulation."""
    return dict(json.loads(path.read_text()))
