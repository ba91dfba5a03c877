#!/usr/bin/env python3
"""The 64 cases of the seed, simulated: `python docs/studies/fmm-64/make.py` rebuilds results, figures and tables.

Needs eprof with its `simulator` extra. Takes some two minutes on two idle cores, most of it in the simulated device;
`--saved` takes the recorded simulations of simulated.json instead, in seconds.
"""
# ruff: noqa: E501, E731, T201

import csv
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

import eprof
from eprof.base.arrays import Columns
from eprof.base.vocabulary import Mark
from eprof.energy.attribution import attribute
from eprof.energy.modelled_time import DEFAULT_EFFICIENCY, model_time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import figures  # noqa: E402
from law import Law, drivers, fmm_plan, predict  # noqa: E402

COMPUTATION = {
    "integer": ("integer",),
    "FP64 multiply-add": ("fp64_fma",),
    "FP64 add": ("fp64_add",),
    "FP64 multiply": ("fp64_mul",),
}
DATA = {
    "shared memory": ("shared_read", "shared_write", "l1_read", "l1_write"),
    "L2": ("l2_read", "l2_write"),
    "DRAM": ("dram_read", "dram_write"),
}
PARTS = {**COMPUTATION, **DATA}
NONE, IDEAL = "no caches", "ideal caches"
SWEEP_N, SWEEP_Q = 65536, (16, 32, 64, 128, 256, 512, 1024)
Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Rebuild everything beside this file."""
    path = HERE / "simulated.json"
    if "--saved" not in arguments:
        save_simulations(path)
    simulated = cases.read_json(path)
    law = cases.law_of(simulated)
    checked = check(law, simulated)
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in cases.INPUTS for row in priced(law, name, Path(folder))]
        phases = {q: phase_rows(law, q, Path(folder)) for q in SWEEP_Q}
    write_csv(HERE / "results.csv", rows)
    write_csv(HERE / "sweep.csv", [row for found in phases.values() for row in found])
    for name, text in drawn(rows, phases).items():
        (HERE / f"{name}.svg").write_text(text)
    write_tables(HERE / "README.md", {"checked": checked, "compared": compared(rows), "inputs": input_table(rows)})
    print(compared(rows))
    return 0


def save_simulations(path: Path) -> None:
    """Run the fitted and the held-out cases on the simulated device."""
    found = {}
    for case in [*cases.FITTED, *cases.HELD_OUT]:
        print(f"simulating fmm {cases.label(case)}", file=sys.stderr, flush=True)
        found[cases.label(case)] = cases.simulate(*case)
    path.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


def check(law: Law, simulated: Mapping[str, Mapping[str, Mapping[str, int]]]) -> str:
    """Prediction against simulation, and both against --count, as a table. Raises LawError on any difference."""
    lines = [
        "| input, not used for the law | instructions executed | law says | largest difference to `--count`, all kernels but the transforms | the transforms |",
        "|---|---:|---:|---:|---:|",
    ]
    for case in [one for one in known(simulated) if one not in cases.FITTED]:
        seen, plan = simulated[cases.label(case)], cases.plan_of(case)
        told = predict(law, drivers(plan))
        wrong = cases.differences(told, seen)
        if wrong:
            raise cases.LawError(f"fmm {cases.label(case)}: the law and the simulation differ: {wrong}")
        apart = cases.against_count(seen, plan)
        fft = max((value for kernel, value in apart.items() if kernel in ("v_fft", "v_ifft")), default=0.0)
        rest = max(value for kernel, value in apart.items() if kernel not in ("v_fft", "v_ifft"))
        lines.append(
            f"| N={case[1]} Q={case[2]} | {executed(seen):,} | {executed(told):,} | {100 * rest:.2g} % | {100 * fft:.0f} % |"
        )
    return "\n".join(lines)


def known(simulated: Mapping[str, Any]) -> list[tuple[str, int, int, int]]:
    """The cases that were simulated."""
    every = [*cases.FITTED, *cases.HELD_OUT, *(("uniform", n, q, 1) for n, q in cases.INPUTS.values())]
    return [case for case in every if cases.label(case) in simulated]


def executed(tallies: Mapping[str, Mapping[str, int]]) -> int:
    """All instructions."""
    return sum(number for tally in tallies.values() for name, number in tally.items() if "(bytes)" not in name)


def priced(law: Law, name: str, folder: Path) -> list[Row]:
    """One input at all settings, with both ideas of the caches: a row each, sums over kernels."""
    n, q = cases.INPUTS[name]
    profile = eprof.load(cases.log_of(law, name, folder))
    plan = fmm_plan(n, q)
    found = []
    for setting, clocks in cases.SETTINGS.items():
        energy = profile.energy("jetson-tk1", setting=clocks)  # eprof's own answer: every request is DRAM's
        assert energy.split is not None and energy.costs is not None
        head = {"case": f"{name} {setting}", "input": name, "N": n, "Q": q, "setting": setting, "mhz": clocks}
        head["voltages"] = "interpolated" if energy.costs.constant_marks & Mark.ESTIMATED else "listed"
        found.append({**head, "caches": NONE, **sums(energy.counts, energy.split)})
        counts = energy.counts
        cached = cases.ideal_caches(counts.table, counts.kernels["kernel"], plan)
        untimed = replace(counts.rows, time_s=np.full(len(counts.rows), np.nan))
        amounts = Columns(tuple(cached), cached.to_numpy(dtype=np.float64))
        timed, _, _ = model_time(replace(counts, rows=untimed, amounts=amounts, shape=None), energy.costs)
        split = attribute(timed, energy.costs)
        found.append({**head, "caches": IDEAL, **sums(timed, split)})
    return found


def sums(counts: Any, split: Any) -> Row:
    """Time, energies and counts of one priced profile."""
    row: Row = {
        "time_s": counts.kernels["time_s"].sum(),
        "computation_j": split.computation_j.sum(),
        "data_j": split.data_j.sum(),
        "constant_j": split.constant_j.sum(),
    }
    for part, names in PARTS.items():
        there = [name for name in names if name in counts.table]
        row[part] = counts.table[there].sum().sum()
        row[f"{part} J"] = split.table[[name for name in there if name in split.table]].sum().sum()
    row["special"] = counts.table["special"].sum()
    return row


def phase_rows(law: Law, q: int, folder: Path) -> list[Row]:
    """Flops, requested and distinct bytes, and modelled energy of each phase, for one Q of the sweep."""
    cases.INPUTS[f"Q{q}"] = (SWEEP_N, q)
    try:
        profile = eprof.load(cases.log_of(law, f"Q{q}", folder))
    finally:
        del cases.INPUTS[f"Q{q}"]
    counted = cases.WorkCounter(fmm_plan(SWEEP_N, q), "double").kernels()
    energy = profile.energy("jetson-tk1", setting="852/924")
    frame = energy.to_frame().set_index("kernel")
    rows = []
    for phase, members in PHASES.items():
        mine = [kernel for kernel in counted if kernel.partition("_")[0] in members]
        here = frame.reindex(mine)
        flops = sum(counted[kernel].flops for kernel in mine)
        unique = sum(counted[kernel].unique for kernel in mine)
        asked = float((here["dram_read"] + here["dram_write"]).sum())
        rows.append({
            "Q": q,
            "phase": phase,
            "flops": flops,
            "requested_bytes": asked,
            "distinct_bytes": unique,
            "flop_per_requested_byte": flops / asked if asked else "",
            "flop_per_distinct_byte": flops / unique if unique else "",
            "modelled_s": float(here["time_s"].sum()),
            "modelled_j": float(here["total_j"].sum()),
        })  # fmt: skip
    return rows


PHASES = {"U": ("u",), "V": ("v",), "W": ("w",), "X": ("x",), "UP, DOWN": ("up", "down")}


def write_csv(path: Path, rows: list[Row]) -> None:
    """Six digits are more than a model deserves."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def drawn(rows: list[Row], phases: Mapping[int, list[Row]]) -> dict[str, str]:
    """The figures, by name."""
    first = {row["input"]: row for row in rows if row["setting"] == "S1" and row["caches"] == NONE}
    ideal = {row["input"]: row for row in rows if row["setting"] == "S1" and row["caches"] == IDEAL}
    bars = lambda of, parts, tail="": {name: {part: row[part + tail] for part in parts} for name, row in of.items()}
    both = lambda parts, tail="": {
        "No caches: every request for global memory is DRAM's (simulated device)": bars(first, parts, tail),
        "Ideal caches: DRAM moves each element once, L2 serves the rest": bars(ideal, parts, tail),
    }
    split = {
        name: {
            row["setting"]: {part: row[f"{part}_j"] for part in ("computation", "data", "constant")}
            for row in rows
            if row["input"] == name and row["caches"] == NONE
        }
        for name in cases.INPUTS
    }
    return {
        "mix": figures.shares("Instructions by class, as the seed's figure 4a (simulated)", {"": bars(first, COMPUTATION)}),
        "bytes": figures.shares("Bytes by level that serves them, as the seed's figure 4b (simulated)", both(DATA)),
        "energy": figures.shares("Energy by class at S1 (852/924 MHz), as the seed's figure 6 (simulated)", both(PARTS, " J")),
        "parts": figures.shares(
            "Computation, data and constant energy, as the seed's figure 7 (simulated, no caches)",
            split,
            row=13,
            note=f"Time is modelled: roofline at {DEFAULT_EFFICIENCY:.0%} of the peaks. S4, S5, S7: interpolated voltages.",
        ),
        "sweep": figures.lines(
            f"Q moves work between phases: flops a point, N = {SWEEP_N}, double precision",
            SWEEP_Q,
            {
                phase: [next(r["flops"] for r in found if r["phase"] == phase) / SWEEP_N for found in phases.values()]
                for phase in PHASES
            },
            "Q, most points in a leaf box",
            "flop / point",
        ),
    }  # fmt: skip


def spread(rows: list[Row], caches: str, value: Callable[[Row], float]) -> str:
    """The least, the median and the most of a share over some rows, in per cent."""
    found = [100 * value(row) for row in rows if row["caches"] == caches]
    return f"{min(found):.0f} to {max(found):.0f} %, median {median(found):.0f}"


def total(row: Row) -> float:
    """Joules of a row."""
    return float(row["computation_j"] + row["data_j"] + row["constant_j"])


def compared(rows: list[Row]) -> str:
    """What the seed reports against what comes out here."""
    work = lambda row: sum(row[part] for part in COMPUTATION)
    data = lambda row, tail="": sum(row[part + tail] for part in DATA)
    shares = {
        ("integer, of computation instructions", "about 60 %"): lambda r: r["integer"] / work(r),
        ("integer, of computation energy", "about 23 %"): lambda r: r["integer J"] / r["computation_j"],
        ("DRAM, of data accesses (bytes)", "about 13 %"): lambda r: r["DRAM"] / data(r),
        ("DRAM, of data energy", "up to 50 %"): lambda r: r["DRAM J"] / r["data_j"],
        ("L2, of data energy", "30 to 40 %"): lambda r: r["L2 J"] / r["data_j"],
        ("L1 and shared memory, of data energy", "10 to 20 %"): lambda r: r["shared memory J"] / r["data_j"],
        ("constant power, of all energy", "75 to 95 %"): lambda r: r["constant_j"] / total(r),
    }
    lines = ["| share | seed | here, no caches | here, ideal caches |", "|---|---:|---:|---:|"]
    for (words, theirs), value in shares.items():
        lines.append(f"| {words} | {theirs} | {spread(rows, NONE, value)} | {spread(rows, IDEAL, value)} |")
    for words, theirs, answer in (
        ("inputs that use least energy at the fastest setting (or one as fast)", "all", race_to_halt),
        ("settings with the least energy (inputs)", "S1 (852/924)", thriftiest),
        ("setting with the highest constant share", "S3", most_constant),
    ):
        lines.append(f"| {words} | {theirs} | {answer(rows, NONE)} | {answer(rows, IDEAL)} |")
    return "\n".join(lines)


def race_to_halt(rows: list[Row], caches: str) -> str:
    """For how many inputs no setting is faster than the one with the least energy."""
    found = 0
    for name in cases.INPUTS:
        mine = [row for row in rows if row["caches"] == caches and row["input"] == name]
        found += min(mine, key=total)["time_s"] <= 1.000001 * min(row["time_s"] for row in mine)
    return f"{found} of {len(cases.INPUTS)}"


def thriftiest(rows: list[Row], caches: str) -> str:
    """The settings that use least energy, with how many inputs each."""
    mine = [row for row in rows if row["caches"] == caches]
    best = [min((row for row in mine if row["input"] == name), key=total)["setting"] for name in cases.INPUTS]
    return ", ".join(f"{setting} ({best.count(setting)})" for setting in sorted(set(best)))


def most_constant(rows: list[Row], caches: str) -> str:
    """The setting of the case with the largest share of constant energy."""
    mine = [row for row in rows if row["caches"] == caches]
    return str(max(mine, key=lambda row: row["constant_j"] / total(row))["setting"])


def input_table(rows: list[Row]) -> str:
    """The inputs at S1."""
    lines = [
        "| input | N | Q | FP64 instructions | integer | shared, GB | global requested, GB | distinct, GB | modelled time, no / ideal caches | energy, no / ideal caches |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (n, q) in cases.INPUTS.items():
        asked, ideal = (
            next(r for r in rows if r["input"] == name and r["setting"] == "S1" and r["caches"] == caches)
            for caches in (NONE, IDEAL)
        )
        floats = sum(asked[part] for part in COMPUTATION) - asked["integer"]
        lines.append(
            f"| {name} | {n} | {q} | {floats:.3g} | {asked['integer']:.3g} | {asked['shared memory'] / 1e9:.3g} | "
            f"{asked['DRAM'] / 1e9:.3g} | {ideal['DRAM'] / 1e9:.3g} | {asked['time_s']:.3g} / {ideal['time_s']:.3g} s | "
            f"{total(asked):.3g} / {total(ideal):.3g} J |"
        )
    return "\n".join(lines)


def write_tables(path: Path, tables: Mapping[str, str]) -> None:
    """Put each table between its two marks in the page."""
    text = path.read_text()
    for name, table in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{path}: no marks {start} ... {end}")
        text = f"{before}{start}\n{table}\n{end}{after}"
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
