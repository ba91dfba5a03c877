"""Published cost tables against watts that others measured: loads, products, programs, idle boards by clock.

    python docs/studies/power/published.py DATA             DATA: the folder of public measurements (modern and sampled)
    python docs/studies/power/published.py DATA --rewrite   put the table into docs/costs.md

A row is predicted as the tool does it, from rates alone, at the row's clock: P = pi0 + sum of rates times charges, with
the table's own constant power; its interval from the table's replicas. `modern.py` says which rows were in a fit.
"""

import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import modern
import numpy as np
import pandas as pd
import prices
from modern import Run
from msgspec import Struct

from eprof import costs
from eprof.base.gpus import most_w
from eprof.costs import Costs

# What a rate of `modern` is in words of the vocabulary, and how many of these each of it is.
WORDS = {
    "fp32_flop": ("fp32_fma", 0.5),
    "fp64_flop": ("fp64_fma", 0.5),
    "l1_byte": ("l1_read", 1.0),
    "l2_byte": ("l2_read", 1.0),
    "shared_byte": ("shared_read", 1.0),
    "dram_byte": ("dram_read", 1.0),
}


class Predicted(Struct, frozen=True):
    """Watts of a row: by the table, and the ends of its interval; none above what the board may draw."""

    power_w: float
    low_w: float
    high_w: float
    limit_w: float

    def holds(self, power_w: float) -> bool:
        """Whether the interval holds a measurement; what a sensor reads above the limit is its error."""
        return self.low_w <= min(power_w, self.limit_w) <= self.high_w


def in_words(rates: Mapping[str, float]) -> dict[str, float]:
    """Rates by price as rates by word of the vocabulary."""
    words: dict[str, float] = {}
    for price, rate in rates.items():
        word, number = WORDS.get(price, (price.removesuffix("_flop"), 1.0))
        words[word] = words.get(word, 0.0) + number * rate
    return words


def power_w(at: Costs, rates: Mapping[str, float]) -> float:
    """Watts at these costs, by rates of words; every multiprocessor is active."""
    if at.sm_count and at.setting.core_mhz:
        rates = {"sm_active_cycle": at.sm_count * at.setting.core_mhz * 1e6, **rates}
    return at.constant_power_w + sum(rate * at.charges[word].pj * 1e-12 for word, rate in rates.items())


def predicted(device: str, rates: Mapping[str, float], core_mhz: float | None = None) -> Predicted:
    """Watts of a device at a core clock, and their interval; by rates of words. Cut at what the board may draw."""
    known = _known(device, core_mhz)
    limit_w = most_w(device) or known[0].peaks.power_limit_w or np.inf
    watts = [min(power_w(at, rates), limit_w) for at in known]
    return Predicted(watts[0], min(watts), max(watts), limit_w)


@lru_cache
def _known(device: str, core_mhz: float | None) -> tuple[Costs, ...]:
    """The costs that the tool takes for a device at a clock, and by each replica."""
    table = costs.for_device(device)
    assert table is not None
    setting = table.nearest(core_mhz, None) if core_mhz else None
    return (table.at(setting), *table.replicas(setting))


class Score(Struct, frozen=True):
    """How a table does on some runs: errors in %, the share in the interval in %, the interval's width as x/÷."""

    rows: int
    mean: float
    least: float
    most: float
    inside: float
    width: float


def score(runs: Iterable[Run]) -> Score:
    """The score of the tables that the tool takes for the runs' devices."""
    off, inside, widths = [], [], []
    for run in runs:
        ends = predicted(run.device, in_words(run.rates), run.core_mhz)
        off.append(100 * (ends.power_w / run.power_w - 1))
        inside.append(ends.holds(run.power_w))
        widths.append((ends.high_w / ends.low_w) ** 0.5)
    mean, width = float(np.mean(np.abs(off))), float(np.median(widths))
    return Score(len(off), mean, min(off), max(off), 100 * float(np.mean(inside)), width)


def of_a100(data: Path) -> dict[str, list[Run]]:
    """All runs of A100s, by what they are."""
    groups: dict[str, list[Run]] = {}
    every = (modern.streams, lambda _: modern.copies(), modern.products, modern.rooflines, modern.loops)
    for source in (*every, modern.transformers):
        for run in source(data):
            kind = f", {run.operands}" if run.source == "products" else ""
            groups.setdefault(f"{run.source}{kind}, {run.device}", []).append(run)
    return groups


def rooflines_h200(data: Path) -> Iterator[Run]:
    """FP32 multiply-adds and bytes of DRAM in all proportions on an H200 (RRZE's gpu-benches at 1038c5d)."""
    rows = pd.read_csv(data / "modern" / "rrze_gpu_roofline_power.csv")
    for line in rows[rows["gpu"] == "H200"].itertuples():
        rates = dict.fromkeys(modern.LEVELS, line.dram_byte_per_s) | {"fp32_flop": 2 * line.n_fp32_thread_per_s}
        yield Run("roofline", "H200", line.core_mhz, 0.0, line.power_w, rates)


def shapes(data: Path, chip: modern.Chip, device: str) -> dict[str, list[Run]]:
    """Steady products of aiconfigurator's below the cap, by type and what bounds them."""
    groups: dict[str, list[Run]] = {}
    rows = modern.shapes(data, chip)
    for line in rows[~rows["is_capped"]].itertuples():
        run = Run(line.framework, device, 0.0, 0.0, line.power, _rates_of(line, chip), "")
        groups.setdefault(f"{line.kind} products, {line.gemm_dtype}, {line.framework}, {device}", []).append(run)
    return groups


def _rates_of(line: Any, chip: modern.Chip) -> dict[str, float]:
    """What a row of `modern.shapes` does a second, by price."""
    moved = {name: getattr(line, name) for name in ("dram_byte", "l2_byte", "shared_byte")}
    return {chip.types[line.gemm_dtype]: line.flop, **moved}


def lab(data: Path) -> dict[str, dict[str, dict[str, float]]]:
    """The runs of gpu-power-lab at 249b1c9 on a B300, by the name of their rung."""
    with gzip.open(data / "modern" / "b300-gpu-power-lab.json.gz", "rt") as file:
        files = json.load(file)["files"]
    return {name.partition("rung-")[2].removesuffix(".json"): run for name, run in files.items()}


def caps(data: Path) -> list[Run]:
    """Products of BF16 of 8192^3 on a B300 under caps of 900 to 450 W."""
    runs = []
    for cap_w in (900, 700, 550, 450):
        run = lab(data)[f"cap-{cap_w}w"]
        flops = run["compute"]["iterations"] * 2 * 8192.0**3 / (run["timing"]["steady_ms"] * 1e-3)
        watts, mhz = run["power"]["avg_w"], run["clocks"]["sm_avg_mhz"]
        runs.append(Run("caps", "B300 SXM6 AC", mhz, 0.0, watts, {"tensor_bf16_flop": flops}))
    return runs


def clock_laws(data: Path) -> Iterator[tuple[str, list[float]]]:
    """What a B300 would draw under its caps, over what it did, by each law of the core's voltage."""
    at, runs = costs.load("b300").at(), caps(data)
    a100_volts = modern.relative_volts(data)
    measured = {run.core_mhz: _relative_volts(run, at) for run in runs}
    laws: dict[str, Callable[[float], float]] = {
        "one price for all clocks": lambda _: 1.0,
        "the A100's volts at the same share of the top clock": lambda mhz: a100_volts(mhz / 2032 * modern.TOP_MHZ),
        "its own volts, each cap left out": lambda mhz: _without(measured | {2032.0: 1.0}, mhz),
    }
    for name, law in laws.items():
        made = [at.constant_power_w + _above_w(run, at) * law(run.core_mhz) ** 2 for run in runs]
        yield name, [watts / run.power_w for watts, run in zip(made, runs, strict=True)]


def _above_w(run: Run, at: Costs) -> float:
    return power_w(at, in_words(run.rates)) - at.constant_power_w


def _relative_volts(run: Run, at: Costs) -> float:
    return float(((run.power_w - at.constant_power_w) / _above_w(run, at)) ** 0.5)


def _without(volts: Mapping[float, float], mhz: float) -> float:
    """The voltage at a clock by those at the others."""
    others = sorted(other for other in volts if other != mhz)
    return float(np.interp(mhz, others, [volts[other] for other in others]))


_V100 = "Tesla V100-SXM2-16GB"


def v100_programs(data: Path) -> Iterator[pd.DataFrame]:
    """Programs on two V100s by clock, a table of `mhz`, `watts` and `time` for each: watts of nobody's counts.

    33 programs at 13 clocks (GPU-DVFS-Dataset at b25725f), and 87 microbenchmarks from 802 MHz on (synergy-sc-ae at
    f19ecee): at the lowest clocks these draw 11 to 34 W, less than a V100 that does nothing.
    """
    folder = data / "modern" / "v100-zyj"
    watts = pd.read_csv(folder / "dataset_power.csv", index_col=0)
    speed = pd.read_csv(folder / "dataset_performance.csv", index_col=0)
    for name, row in watts.iterrows():
        yield pd.DataFrame(
            {
                "source": "programs",
                "mhz": row.index.astype(float),
                "watts": row.values,
                "time": 1 / speed.loc[name].values,
            }
        )
    rows = pd.read_csv(data / "modern" / "synergy-v100-187clocks-micro.csv.gz")
    for _, runs in rows[rows["core-freq"] >= 802].groupby("kernel-name"):
        time = runs["run-time [s]"]
        made = {"mhz": runs["core-freq"], "watts": runs["mean-energy [J]"] / time, "time": time}
        yield pd.DataFrame(made).assign(source="microbenchmarks")


def v100_by_clock(data: Path) -> pd.DataFrame:
    """What the V100's table makes of programs at other clocks, over what they drew: `own`, and `kept` at one price.

    What a program takes above constant power follows from its watts at the clock nearest to 1380 MHz, and all of that
    is taken to go with the core's voltage.
    """
    table, judged = costs.for_device(_V100), []
    assert table is not None
    costs_at = cache(lambda mhz: table.at(table.nearest(mhz, None)))
    for program in v100_programs(data):
        known = program.loc[(program["mhz"] - 1380).abs().idxmin()]
        there = costs_at(known["mhz"])
        above_j = (known["watts"] - there.constant_power_w) * known["time"] / (there.setting.core_v or 1.0) ** 2
        at = [costs_at(mhz) for mhz in program["mhz"]]
        squared = np.array([(costs_there.setting.core_v or np.nan) ** 2 for costs_there in at])
        constant_w = np.array([costs_there.constant_power_w for costs_there in at])
        own = constant_w + squared * above_j / program["time"]
        kept = there.constant_power_w + above_j / program["time"]
        judged.append(program.assign(own=own / program["watts"] - 1, kept=kept / program["watts"] - 1))
    rows = pd.concat(judged)
    return rows[(rows["mhz"] - 1380).abs() > 60]


def at_the_cap(data: Path, chip: modern.Chip, device: str, flop_per_cycle: float) -> tuple[float, float]:
    """What compute-bound BF16 products at the power cap would draw, over what they do, in the median.

    Their clock is not known: at the lowest that their rate allows, which must not be above it, and at the top clock.
    """
    rows = modern.shapes(data, chip)
    rows = rows[rows["is_capped"] & (rows["kind"] == "compute-bound") & (rows["gemm_dtype"] == "bfloat16")]
    table = costs.for_device(device)
    assert table is not None
    ratios, top = [], table.at()
    for line in rows.itertuples():
        rates = in_words(_rates_of(line, chip))
        lowest = table.at(table.nearest(line.flop / flop_per_cycle * 1e-6, None))
        ratios.append([power_w(at, rates) / line.power for at in (lowest, top)])
    lowest_clock, top_clock = np.median(ratios, axis=0)
    return float(lowest_clock), float(top_clock)


def idle_error(data: Path, folder: str, device: str) -> float:
    """Mean relative error of the table's constant power over the clocks at which a board idled, but for its level."""
    table = costs.for_device(device)
    assert table is not None
    memory = table.default.memory_mhz
    path = data / "modern" / "energaizer" / f"{folder}_idle_power.json"
    watts = {float(mhz): float(power) for mhz, power in json.loads(path.read_text()).items()}
    ratios = np.array([table.at(f"{mhz:g}/{memory:g}").constant_power_w / power for mhz, power in watts.items()])
    return float(np.mean(np.abs(ratios / np.median(ratios) - 1)))


# Work of a thread in one pass of the inner loop of gpu-power-lab's workload_powervirus.cu, and the word that counts it.
_LAB_WORK = {
    "fma": {"fp32_fma": 128},
    "dram": {"dram_read": 64},
    "l2": {"l1_read": 64},
    "sfu": {"special": 16, "fp32_fma": 32},
    "smem": {"shared_read": 32, "shared_write": 32},
}
_PASSES, _THREADS = 2048, 148 * 4 * 256
LAB_MIXES = {
    "fma+dram": ("fma", "dram"),
    "fma+smem": ("fma", "smem"),
    "fma+sfu": ("fma", "sfu"),
    "fma+int32": ("fma", "int32"),
    "dram+l2": ("dram", "l2"),
    "four-way": ("fma", "sfu", "int32", "smem"),
}


def mixes(data: Path) -> Iterator[tuple[Run, float]]:
    """Runs of two to four units of a B300 at once, which share its warps, and what the table b300 makes of them in W.

    gpu-power-lab at 249b1c9. The integer loop is priced by its own run: the compiler folded it, so that its
    instructions are not known.
    """
    units_alone = {name.removeprefix("unit-"): run for name, run in lab(data).items()}
    at, loop = costs.load("b300").at(), units_alone["int32"]
    loop_j = (loop["power"]["avg_w"] - at.constant_power_w) / _passes_per_s(loop)
    for name, units in LAB_MIXES.items():
        run = units_alone[name]
        rates = mix_rates(run, units)
        row = Run(name, "B300 SXM6 AC", 2032.0, 183.5, run["power"]["avg_w"], rates)
        yield row, power_w(at, rates) + ("int32" in units) * loop_j * _passes_per_s(run) / len(units)


def mix_rates(run: Mapping[str, Mapping[str, float]], units: tuple[str, ...]) -> dict[str, float]:
    """Events a second by word in a run of these units at once, which share its warps."""
    rates: dict[str, float] = {}
    for unit in units:
        for word, number in _LAB_WORK.get(unit, {}).items():
            rates[word] = rates.get(word, 0.0) + number * _passes_per_s(run) / len(units)
    return rates


def _passes_per_s(run: Mapping[str, Mapping[str, float]]) -> float:
    return run["compute"]["iterations"] * _PASSES * _THREADS / (run["timing"]["steady_ms"] * 1e-3)


def main(data: Path) -> None:
    """Print every comparison, or put the table of them into the guide."""
    lines = ["| runs | rows | off on average | from, to | inside | interval |", "|---|---|---|---|---|---|"]
    groups = of_a100(data) | {"roofline, H200": list(rooflines_h200(data))}
    groups["transformers, H100 80GB HBM3"] = list(modern.transformers(data, "h100"))
    groups |= shapes(data, modern.H200, "H200") | shapes(data, modern.B200, "B200")
    groups["products under caps, B300"] = caps(data)
    for name, runs in groups.items():
        found = score(runs)
        ends = f"{found.least:+.0f} to {found.most:+.0f} %"
        lines.append(
            f"| {name} | {found.rows} | {found.mean:.1f} % | {ends} | {found.inside:.0f} % | x/÷{found.width:.2f} |"
        )
    prices.show("\n".join(lines) + "\n", "<!-- published.py begins -->\n", "<!-- published.py ends -->")
    for folder, device in (("yz8", "A100-PCIE-40GB"), ("netsres117", "A100-SXM4-80GB")):
        print(f"idle of {device} by clock: {100 * idle_error(data, folder, device):.2f} % off, but for its level")
    for (source, is_above), rows in (by := v100_by_clock(data)).groupby(["source", by["mhz"] > 1380]):
        own, kept = (100 * rows[law].abs().mean() for law in ("own", "kept"))
        where = "above" if is_above else "below"
        print(
            f"V100, {source} {where} 1380 MHz by their watts there: {own:.1f} % off, at one price for all {kept:.1f} %"
        )
    for law, ratios in clock_laws(data):
        print(f"B300 under caps of 900 to 450 W, {law}: {', '.join(f'{100 * (each - 1):+.0f}' for each in ratios)} %")
    for chip, device, flop_per_cycle in ((modern.H200, "H200", 132 * 4096), (modern.B200, "B200", 148 * 8192)):
        lowest, top = at_the_cap(data, chip, device, flop_per_cycle)
        print(f"{device}, at the cap: {lowest:.2f} of it at the lowest clock that rates allow, {top:.2f} at the top")
    for row, watts in mixes(data):
        print(
            f"B300 {row.source}: {watts:.0f} W, measured {row.power_w:.0f} ({100 * (watts / row.power_w - 1):+.1f} %)"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
