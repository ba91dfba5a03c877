#!/usr/bin/env python3
"""The 64 cases of the seed run whole, with modelled caches: `python docs/studies/fmm-64/whole.py FOLDER [F8 F6 ...]`.

Each input is run once on the simulated device, with the caches of a Jetson TK1, and priced at all settings. Logs are kept in
FOLDER, and taken from there when they are there. Rebuilds whole.csv, whole.svg and the table of README.md.
"""
# ruff: noqa: E501, T201

import subprocess
import sys
from pathlib import Path

import eprof

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import figures  # noqa: E402
from make import DATA, Row, sums, write_csv, write_tables  # noqa: E402

MODEL = "jetson-tk1"


def main(folder: Path, names: list[str]) -> None:
    """Run, price, write."""
    rows = [row for name in names for row in priced(name, logged(name, folder))]
    write_csv(HERE / "whole.csv", rows)
    fastest = {row["input"]: {part: row[f"{part} J"] for part in DATA} for row in rows if row["setting"] == "S1"}
    (HERE / "whole.svg").write_text(figures.shares("Data energy by level at S1, caches modelled", {"": fastest}))
    write_tables(HERE / "README.md", {"whole": table(rows)})
    print(table(rows))


def logged(name: str, folder: Path) -> Path:
    """The run directory of an input."""
    points, leaf = cases.INPUTS[name]
    place = folder / f"{name}.eprof"
    if not (place / "run.json").is_file():
        print(f"running {name}", file=sys.stderr, flush=True)
        command = [
            sys.executable,
            "-m",
            "eprof",
            "run",
            "-q",
            "--no-report",
            "--caches",
            MODEL,
            "--costs",
            "jetson-tk1",
        ]
        program = [str(cases.FMM), "--", f"N={points}", f"Q={leaf}", "precision=double", "check=0"]
        subprocess.run([*command, "-o", str(place), "-f", *program], check=True, stdout=subprocess.DEVNULL)
    return place


def priced(name: str, log: Path) -> list[Row]:
    """One input at all settings."""
    profile = eprof.load(log)
    found = []
    for setting, clocks in cases.SETTINGS.items():
        energy = profile.energy("jetson-tk1", setting=clocks)
        assert energy.split is not None
        found.append(
            {"case": f"{name} {setting}", "input": name, "setting": setting, **sums(energy.counts, energy.split)}
        )
    return found


def table(rows: list[Row]) -> str:
    """One line an input, at S1; the constant share over all settings."""
    lines = [
        "| input | DRAM, GB | L2, GB | DRAM, of data accesses | DRAM, of data energy | L2, of data energy | constant, S1 to S8 | energy at S1 | least at |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for name in dict.fromkeys(row["input"] for row in rows):
        mine = {row["setting"]: row for row in rows if row["input"] == name}
        first = mine["S1"]
        moved, joules = sum(first[part] for part in DATA), sum(first[f"{part} J"] for part in DATA)
        total = {setting: row["computation_j"] + row["data_j"] + row["constant_j"] for setting, row in mine.items()}
        constant = [row["constant_j"] / total[setting] for setting, row in mine.items()]
        lines.append(
            f"| {name} | {first['DRAM'] / 1e9:.3g} | {first['L2'] / 1e9:.3g} | {first['DRAM'] / moved:.0%} | {first['DRAM J'] / joules:.0%} "
            f"| {first['L2 J'] / joules:.0%} | {min(constant):.0%} to {max(constant):.0%} | {total['S1']:.3g} J | {min(total, key=total.__getitem__)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(cases.INPUTS))
