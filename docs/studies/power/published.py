"""Published cost tables against measurements that they have not seen: watts of microbenchmarks, idle watts by clock.

    python docs/studies/power/published.py DATA          DATA: the folder of public measurements

A row is predicted from rates alone: P = pi0 + sum of rates times prices; its interval from the table's replicas.
"""

import csv
import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eprof import costs
from eprof.costs import Costs, CostTable

CONTROL, MIDDLE, RANDOM = "control", "middle", "random"
LEVELS = ("l1_read", "l2_read", "dram_read")
# [SC25] Table 3, the A100: control and datapath in pJ a byte or a flop; of FP32 and FP64 only the sum was seen.
A100_SPLIT = {
    "l1_byte": (10.08, 2.64),
    "l2_byte": (24.88, 12.80),
    "dram_byte": (67.76, 37.12),
    "fp32_flop": (10.7 * 0.37 / 0.70, 10.7 * 0.33 / 0.70),
    "fp64_flop": (28.5 * 0.37 / 0.70, 28.5 * 0.33 / 0.70),
}


@dataclass(frozen=True)
class Row:
    """A measured run: the GPU, events a second by word of the vocabulary, watts, and where they are from."""

    name: str
    device: str
    rates: Mapping[str, float]
    power_w: float
    source: str


@dataclass(frozen=True)
class Predicted:
    """Watts of a row: by the table, and the ends of its interval."""

    power_w: float
    low_w: float
    high_w: float

    def holds(self, power_w: float) -> bool:
        """Whether the interval holds a measurement."""
        return self.low_w <= power_w <= self.high_w


def _copied(bytes_per_s: float, *levels: str) -> dict[str, float]:
    return dict.fromkeys(levels, bytes_per_s)


_TFG = "tfg-cuda-energy-performance-nvidia at 4ec0ac0 (A100-SXM4-40GB, constant operands)"
ROWS = (
    Row("DRAM copy", "A100-SXM4-40GB", _copied(1355e9, *LEVELS), 169.4, _TFG),
    Row("L2 copy, 4 MB", "A100-SXM4-40GB", _copied(1491e9, "l1_read", "l2_read"), 123.5, _TFG),
    Row("FP32 multiply-adds", "A100-SXM4-40GB", {"fp32_fma": 9.66e12}, 187.4, _TFG),
    Row("FP64 multiply-adds", "A100-SXM4-40GB", {"fp64_fma": 4.68e12}, 203.4, _TFG),
    Row(
        "BabelStream",
        "A100 80GB PCIe",
        _copied(1687e9, *LEVELS),
        228,
        "gpu-power-frequency-benchmarks at 2fe08d2 (an A100 with a cap of 300 W)",
    ),
)


def power_w(at: Costs, rates: Mapping[str, float]) -> float:
    """Watts at these costs."""
    return at.constant_power_w + sum(rate * at.charges[word].pj * 1e-12 for word, rate in rates.items())


def predicted(table: CostTable, rates: Mapping[str, float]) -> Predicted:
    """Watts by the table, and its interval."""
    spanned = [power_w(replica, rates) for replica in table.replicas()]
    return Predicted(power_w(table.at(), rates), min(spanned), max(spanned))


def by_operands(rates: Mapping[str, float]) -> dict[str, float]:
    """Watts of an A100 if all operands cost control, control and half of the datapath, or both."""
    table = costs.load("a100")
    watts = {}
    for name, share in ((CONTROL, 0.0), (MIDDLE, 0.5), (RANDOM, 1.0)):
        prices = {price: control + share * datapath for price, (control, datapath) in A100_SPLIT.items()}
        at = table.with_numbers(prices).at()
        watts[name] = power_w(at, rates)
    return watts


def rooflines(data: Path) -> Iterator[Row]:
    """FP32 multiply-adds and bytes of DRAM in all proportions, on eight A100 and an H200 (RRZE's gpu-benches)."""
    with (data / "rrze_gpu_roofline_power.csv").open() as file:
        for line in csv.DictReader(file):
            rates = _copied(float(line["dram_byte_per_s"]), *LEVELS)
            rates["fp32_fma"] = float(line["n_fp32_thread_per_s"])
            name = f"{float(line['fl_per_b']):g} flop/B, card {float(line['card'] or 0):g}"
            yield Row(name, line["gpu"], rates, float(line["power_w"]), "gpu-benches at 1038c5d")


def idle(data: Path, folder: str) -> dict[float, float]:
    """Idle watts by locked core clock in MHz (energaizer-ispass26-artifact at cd60749)."""
    watts = json.loads((data / "energaizer" / f"{folder}_idle_power.json").read_text())
    return {float(mhz): float(power) for mhz, power in watts.items()}


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


def mixes(data: Path) -> Iterator[tuple[Row, float]]:
    """Runs of two to four units of a B300 at once, which share its warps, and what the table b300 makes of them in W.

    The integer loop is priced by its own run: the compiler folded it, so that its instructions are not known.
    """
    with gzip.open(data / "b300-gpu-power-lab.json.gz", "rt") as file:
        runs = json.load(file)["files"]
    lab = {name.partition("rung-unit-")[2].removesuffix(".json"): run for name, run in runs.items()}
    at = costs.load("b300").at()
    loop_j = (lab["int32"]["power"]["avg_w"] - at.constant_power_w) / passes_per_s(lab["int32"])
    for name, units in LAB_MIXES.items():
        rates = mix_rates(lab[name], units)
        row = Row(name, "B300 SXM6 AC", rates, lab[name]["power"]["avg_w"], "gpu-power-lab at 249b1c9")
        yield row, power_w(at, rates) + ("int32" in units) * loop_j * passes_per_s(lab[name]) / len(units)


def mix_rates(run: Mapping[str, Mapping[str, float]], units: tuple[str, ...]) -> dict[str, float]:
    """Events a second by word in a run of these units at once, which share its warps."""
    rates: dict[str, float] = {}
    for unit in units:
        for word, number in _LAB_WORK.get(unit, {}).items():
            rates[word] = rates.get(word, 0.0) + number * passes_per_s(run) / len(units)
    return rates


def passes_per_s(run: Mapping[str, Mapping[str, float]]) -> float:
    """Passes of all threads through the inner loop a second."""
    return run["compute"]["iterations"] * _PASSES * _THREADS / (run["timing"]["steady_ms"] * 1e-3)


def main(data: Path) -> None:
    """Print every comparison."""
    print("| row | control | middle | random | interval | measured W |\n|---|---|---|---|---|---|")
    for row in ROWS:
        by = by_operands(row.rates)
        table = costs.for_device(row.device)
        assert table is not None
        ends = predicted(table, row.rates)
        cells = " | ".join(f"{watts:.0f} ({100 * (watts / row.power_w - 1):+.0f} %)" for watts in by.values())
        print(f"| {row.name} | {cells} | {ends.low_w:.0f} to {ends.high_w:.0f} | {row.power_w:g} |")
    for device in ("A100-SXM4-40GB", "H200"):
        print(_summary(device, [row for row in rooflines(data) if row.device == device]))
    for folder, device in (("yz8", "A100-PCIE-40GB"), ("netsres117", "A100-SXM4-80GB")):
        print(
            f"idle of {device} at {len(idle(data, folder))} clocks: {100 * idle_error(data, folder, device):.2f} % off"
        )
    for row, watts in mixes(data):
        print(f"B300 {row.name}: {watts:.0f} W, measured {row.power_w:.0f} ({100 * (watts / row.power_w - 1):+.1f} %)")


def _summary(device: str, rows: list[Row]) -> str:
    table = costs.for_device(device)
    assert table is not None
    made = [predicted(table, row.rates) for row in rows]
    errors = [one.power_w / row.power_w - 1 for one, row in zip(made, rows, strict=True)]
    held = sum(one.holds(row.power_w) for one, row in zip(made, rows, strict=True))
    mean = 100 * sum(map(abs, errors)) / len(errors)
    return (
        f"{device}, {len(rows)} points of RRZE's roofline: {mean:.1f} % off on average, {100 * min(errors):+.0f} to "
        f"{100 * max(errors):+.0f} %; {held} inside the interval"
    )


def idle_error(data: Path, folder: str, device: str) -> float:
    """Mean relative error of the table's constant power over all clocks at which a board idled."""
    table = costs.for_device(device)
    assert table is not None
    memory = table.default.memory_mhz
    errors = [
        abs(table.at(f"{mhz:g}/{memory:g}").constant_power_w / watts - 1) for mhz, watts in idle(data, folder).items()
    ]
    return sum(errors) / len(errors)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
