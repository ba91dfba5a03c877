"""Prices of an A100, an H200 and a B200 from watts that others measured: what their tables in costs/ are made of.

    python docs/studies/power/modern.py DATA          DATA: the folder of public measurements (modern and sampled)

An A100 at any clock, with V the core voltage relative to 1410 MHz, and prices at V = 1:

    P = P_idle(f) + V^2 sum_i rate_i price_i + DRAM bytes/s * price of the memory's side + V^2 f SMs * price of a cycle

P_idle is the board's own. Prices are non-negative and drawn to those of [SC25] (a tenth of each is as far as a relative
error of one per cent); every source weighs the same, whatever its number of rows. A byte of DRAM pays L1 and L2 too.
"""

import csv
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Struct
from scipy.optimize import least_squares, nnls

Floats = npt.NDArray[np.float64]
TERA, PICO = 1e12, 1e-12
LEVELS = ("l1_byte", "l2_byte", "dram_byte")

# What pays with the core's voltage, and what does not. Last: pJ of one cycle of one active multiprocessor.
ALL_PRICES = (
    *("tensor_fp16_flop", "tensor_tf32_flop", "tensor_int8_flop", "fp32_flop", "fp64_flop"),
    *("l1_byte", "l2_byte", "dram_path_byte", "dram_byte", "sm_active_cycle"),
)
# [SC25] Table 3: flops of matrix units with random operands, the others half-way. HBM: half of it on the core's side.
PRIOR_PJ = (0.70, 1.40, 0.35, 8.18, 21.8, 11.4, 31.3, 43.0, 43.0, 71.0)
_DRAWN = 0.1
SMS, TOP_MHZ = 108, 1410.0


class Run(Struct, frozen=True):
    """A measured run. rates: work or bytes a second, by price; idle_w: of its board at its clock."""

    source: str
    device: str
    core_mhz: float
    idle_w: float
    power_w: float
    rates: Mapping[str, float]
    operands: str = "constant"


# ---- an A100's idle watts and volts, by clock


def of_clocks(data: Path, folder: str, what: str) -> Callable[[float], float]:
    """`idle_power` in W or `supply_voltage` in mV of a board of EnergAIzer's by core clock in MHz, linear between."""
    path = data / "modern" / "energaizer" / f"{folder}_{what}.json"
    points = sorted((float(mhz), float(value)) for mhz, value in json.loads(path.read_text()).items())
    clocks, values = zip(*points, strict=True)
    return lambda mhz: float(np.interp(mhz, clocks, values))


def relative_volts(data: Path) -> Callable[[float], float]:
    """Core voltage over that at 1410 MHz, the mean of two boards, as the table's settings have it."""
    boards = [of_clocks(data, folder, "supply_voltage") for folder in ("netsres117", "yz8")]
    return lambda mhz: float(np.mean([volts(mhz) / volts(TOP_MHZ) for volts in boards]))


# ---- an A100's runs


def _streamed(bytes_per_s: float) -> dict[str, float]:
    return dict.fromkeys(LEVELS, bytes_per_s)


def streams(data: Path) -> Iterator[Run]:
    """A stream at 61 clocks (SXM4-80GB, constant operands) and BabelStream at 5 (80GB PCIe, cap of 300 W)."""
    idle = of_clocks(data, "netsres117", "idle_power")
    folder = data / "sampled" / "dcgm_a100_spec"
    watts = pd.read_csv(folder / "GA100-dvfs-stream-dcgm.csv.gz").set_index("sm_app_clock")["power_usage"]
    rates = pd.read_csv(folder / "GA100-dvfs-stream-perf.csv.gz").set_index("dvfs")["bandwidth"]
    for mhz, power_w in watts.items():
        yield Run("stream", "A100-SXM4-80GB", mhz, idle(mhz), power_w, _streamed(rates[mhz] * 1e9))
    # gpu-power-frequency-benchmarks at 2fe08d2: watt-hours, seconds, GB/s. Its idle is that of a 40 GB PCIe board.
    idle = of_clocks(data, "yz8", "idle_power")
    for mhz, watt_hours, seconds, gb_per_s in (
        (1410, 1.43286, 22.6201, 1687.36),
        (1305, 1.19012, 22.5518, 1691.76),
        (1200, 1.06139, 22.4936, 1696.30),
        (1110, 0.97201, 22.5361, 1694.18),
        (1005, 0.91132, 22.6026, 1690.77),
    ):
        watts_ = watt_hours * 3600 / seconds
        yield Run("BabelStream", "A100 80GB PCIe", mhz, idle(mhz), watts_, _streamed(gb_per_s * 1e9))


def copies() -> Iterator[Run]:
    """Copies in DRAM and in L2 (tfg-cuda-energy-performance-nvidia at 4ec0ac0), idle 51.6 W."""
    in_l2 = dict.fromkeys(LEVELS[:2], 1490.8e9)
    yield Run("copies", "A100-SXM4-40GB", TOP_MHZ, 51.6, 169.4, _streamed(1354.9e9))
    yield Run("copies", "A100-SXM4-40GB", TOP_MHZ, 51.6, 123.5, in_l2)


def loops(data: Path) -> Iterator[Run]:
    """Loops of multiply-adds with constant operands: tfg's, and Kernel Tuner's at ten clocks (40GB PCIe)."""
    yield Run("loops", "A100-SXM4-40GB", TOP_MHZ, 51.6, 187.4, {"fp32_flop": 19.32e12})
    yield Run("loops", "A100-SXM4-40GB", TOP_MHZ, 51.6, 203.4, {"fp64_flop": 9.37e12})
    idle = of_clocks(data, "yz8", "idle_power")
    cache = json.loads((data / "modern" / "kerneltuner_a100pcie40_synthetic_fp32.json").read_text())["cache"]
    for run in cache.values():
        mhz = run["nvml_gr_clock"]
        flops = 19.3e12 * 196.24 / run["time"]
        yield Run("loops", "A100-PCIE-40GB", mhz, idle(mhz), run["nvml_power"], {"fp32_flop": flops})


def rooflines(data: Path) -> Iterator[Run]:
    """RRZE's roofline of eight A100-SXM4-40GB at 1410 MHz (gpu-benches at 1038c5d)."""
    with (data / "modern" / "rrze_gpu_roofline_power.csv").open() as file:
        for line in csv.DictReader(file):
            if line["gpu"] == "A100-SXM4-40GB":
                rates = _streamed(float(line["dram_byte_per_s"]))
                rates["fp32_flop"] = 2 * float(line["n_fp32_thread_per_s"])
                yield Run("roofline", line["gpu"], TOP_MHZ, 54.0, float(line["power_w"]), rates)


_BYTES = {"fp16": 2.0, "bf16": 2.0, "tf32": 4.0, "fp32": 4.0, "int8": 1.0}
_PAID_AS = {"bf16": "tensor_fp16_flop", "fp32": "fp32_flop"}
_OPERANDS = {"zeros": "zeros", "low_entropy": "few values", "sparse_struct": "sparse"}


def tiled(flop_per_s: float, kind: str, rows: float = 128, columns: float = 128) -> dict[str, float]:
    """The work of a product of matrices and the bytes that its tiles move, a second.

    A tile of `rows` x `columns` loads (rows + columns) elements for each step of k from L2 into shared memory; its
    warps read them from there for tiles of their own: of 64 x 64 on tensor cores, of 8 x 8 a thread without (1.2 bytes
    a multiply-add in ncu's log of such a product).
    """
    loaded = flop_per_s / 2 * _BYTES[kind] * (1 / rows + 1 / columns)
    read = 0.6 * flop_per_s if kind == "fp32" else flop_per_s / 2 * _BYTES[kind] * 2 / 64
    price = _PAID_AS.get(kind, f"tensor_{kind}_flop")
    return {price: flop_per_s, "l1_byte": 2 * loaded + read, "l2_byte": loaded}


def products(data: Path) -> Iterator[Run]:
    """Products of 2048^3 by type and operands on an A100-SXM4-80GB (power-to-flops at 0967af5)."""
    idle = of_clocks(data, "netsres117", "idle_power")
    rows = pd.read_csv(data / "modern" / "a100sxm80_gemm_exp1_exchange_e2958cc757b9.csv")
    for line in rows.itertuples():
        made = tiled(line.ops_nominal / line.duration_s, line.dtype)
        operands = _OPERANDS.get(line.operand_dist_a, "random")
        mhz = line.sm_clock_mhz
        yield Run("products", "A100-SXM4-80GB", mhz, idle(mhz), line.mean_power_w, made, operands)


# Layers, width, heads, width of the inner layer, words.
_MODELS = {
    "bertmodel_large": (24, 1024, 16, 4096, 0),
    "optmodel_opt-1p3b": (24, 2048, 32, 8192, 50272),
    "gpt2model_gpt2": (12, 768, 12, 3072, 50257),
}


def transformers(data: Path, gpu: str = "a100") -> Iterator[Run]:
    """Prefills of transformers in BF16 (energaizer-ispass26-artifact at cd60749): its 40GB PCIe A100, or its H100.

    Their work is counted by hand: products by their tiles, each operand once from DRAM, and element-wise passes. Which
    board of an H100 is not said: the SXM's clock and watts.
    """
    device, folder, core_mhz = {
        "a100": ("A100-PCIE-40GB", "yz8", 900.0),
        "h100": ("H100 80GB HBM3", "h100", 1830.0),
    }[gpu]
    idle = of_clocks(data, folder, "idle_power")
    rows = pd.read_csv(data / "modern" / f"energaizer_{gpu}_workloads.csv")
    named = rows["workload"].str.extract(rf"^(\w+model_[\w.-]+?)_pbf16_b(\d+)_s(\d+)_modeprefill_freq{core_mhz:g}")
    for (model, batch, length), energy_j, time_ms in zip(
        named.itertuples(index=False), rows["energy"], rows["time"], strict=True
    ):
        if model in _MODELS:
            rates = _prefill(*_MODELS[model], int(batch), int(length), time_ms * 1e-3)
            if gpu == "h100":  # whose tables tell shared memory, through which tiles go, from L1
                rates["shared_byte"] = rates.pop("l1_byte")
            watts = energy_j / time_ms * 1e3
            yield Run("transformers", device, core_mhz, idle(core_mhz), watts, rates, "typical")


def _prefill(
    layers: int, width: int, heads: int, inner: int, words: int, batch: int, length: int, seconds: float
) -> dict[str, float]:
    tokens = batch * length
    layer = [(1, tokens, width, width)] * 4 + [(1, tokens, inner, width), (1, tokens, width, inner)]
    layer += [(batch * heads, length, length, width // heads), (batch * heads, length, width // heads, length)]
    total = dict.fromkeys(("tensor_fp16_flop", *LEVELS), 0.0)
    for number, m, n, k in layers * layer + [(1, tokens, words, width)] * (words > 0):
        made = tiled(2.0 * number * m * n * k, "fp16", min(128, m), min(128, n)) | {
            "dram_byte": 2.0 * number * (m * n + m * k + n * k)
        }
        for price, amount in made.items():
            total[price] += amount
    passes = layers * 2.0 * (tokens * width * 18 + tokens * inner * 4 + batch * heads * length**2 * 7)
    return {price: (amount + passes * (price in LEVELS)) / seconds for price, amount in total.items()}


# ---- an A100's prices


def fit_a100(runs: Iterable[Run], volts: Callable[[float], float]) -> Floats:
    """The prices in pJ at V = 1, in the order of `ALL_PRICES`."""
    runs = list(runs)
    number = pd.Series([run.source for run in runs]).map(pd.Series([run.source for run in runs]).value_counts())
    weights = 1 / np.sqrt(number.to_numpy()) / np.array([run.power_w for run in runs])
    above_w = np.array([run.power_w - run.idle_w for run in runs])
    matrix = np.vstack([columns(runs, volts) * weights[:, None], np.diag(_DRAWN / np.array(PRIOR_PJ))])
    prices, _ = nnls(matrix, np.concatenate([above_w * weights, np.full(len(PRIOR_PJ), _DRAWN)]))
    return np.asarray(prices)


def columns(runs: Iterable[Run], volts: Callable[[float], float]) -> Floats:
    """Watts of each run at one pJ of each of `ALL_PRICES`, (n_runs, n_prices)."""
    rows = []
    for run in runs:
        squared = volts(run.core_mhz) ** 2
        rates = {**run.rates, "dram_path_byte": run.rates.get("dram_byte", 0.0)}
        rates["sm_active_cycle"] = SMS * run.core_mhz * 1e6
        with_core = {price: squared * (price != "dram_byte") + (price == "dram_byte") for price in ALL_PRICES}
        rows.append([rates.get(price, 0.0) * with_core[price] * PICO for price in ALL_PRICES])
    return np.array(rows)


def errors(runs: list[Run], prices: Floats, volts: Callable[[float], float]) -> Floats:
    """Relative errors of predicted watts, with the board's own idle watts."""
    measured = np.array([run.power_w for run in runs])
    idle = np.array([run.idle_w for run in runs])
    return np.asarray((idle + columns(runs, volts) @ prices) / measured - 1)


def a100(data: Path) -> None:
    """Print the fit, each source left out, and what was never in it."""
    volts = relative_volts(data)
    random = [run for run in products(data) if run.operands == "random"]
    fitted = [*streams(data), *copies(), *random]
    prices = fit_a100(fitted, volts)
    print("A100, pJ at 1410 MHz:", ", ".join(f"{name} {pj:.3g}" for name, pj in zip(ALL_PRICES, prices, strict=True)))
    print(f"an active SM: {prices[-1] * TOP_MHZ * 1e6 * PICO:.3f} W at 1410 MHz")
    for source in dict.fromkeys(run.source for run in fitted):
        own = [run for run in fitted if run.source == source]
        without = fit_a100([run for run in fitted if run.source != source], volts)
        print(f"  {source}: {_words(errors(own, prices, volts))}; left out: {_words(errors(own, without, volts))}")
    print(f"what programs take beside, an active SM: {what_activity_leaves(data, prices, volts):.2f} W at 1410 MHz")
    others = [*rooflines(data), *loops(data), *transformers(data), *products(data)]
    for source, operands in dict.fromkeys((run.source, run.operands) for run in others if run not in random):
        own = [run for run in others if (run.source, run.operands) == (source, operands)]
        print(f"  never fitted, {source} ({operands}): {_words(errors(own, prices, volts))}")


def what_activity_leaves(data: Path, prices: Floats, volts: Callable[[float], float]) -> float:
    """Watts an active multiprocessor at the top clock that SPEC's programs take beside DRAM, FP32 and FP64; median.

    Of DCGM's activity of an A100 (derived-run-means), at clocks above 1 GHz, where a fifth of the time or more is busy.
    """
    known = dict(zip(ALL_PRICES, prices, strict=True))
    rows = pd.read_csv(data / "sampled" / "dcgm_a100_spec" / "derived-run-means.csv.gz")
    rows = rows[(rows["SMACT_i"] > 0.2) & (rows["freq"] > 1000)]
    squared = rows["freq"].map(volts) ** 2
    idle = rows["freq"].map(lambda mhz: np.interp(mhz, [210, 510, 1005, 1410], [78.8, 80.8, 86.5, 108.7]))
    dram = rows["DRAMA"] * 2039e9 * (known["dram_byte"] + squared * sum(known[name] for name in ALL_PRICES[5:8]))
    flops = rows["freq"] * 1e6 * SMS * squared
    work = flops * (rows["FP32A_i"] * 128 * known["fp32_flop"] + rows["FP64A_i"] * 64 * known["fp64_flop"])
    left = rows["POWER"] - idle - PICO * (dram + work)
    return float((left / (rows["SMACT_i"] * SMS * rows["freq"] / TOP_MHZ * squared)).median())


def _words(relative: Floats) -> str:
    mean, low, high = 100 * abs(relative).mean(), 100 * relative.min(), 100 * relative.max()
    return f"{mean:.1f} % off on average ({low:+.0f} to {high:+.0f} %, {len(relative)} rows)"


# ---- H200 and B200: watts of matrix products


class Chip(Struct, frozen=True):
    """A GPU of aiconfigurator's: `system`, power limit in W, bytes of L2, tile, and where the fit begins.

    prior_pj: by price; l2_byte and shared_byte are what tiles move, dram_byte what DRAM adds. peaks: a second, by type
    (data sheet). spread: how far prices may be from the prior, as a factor. kept_byte: of the operands, what L2 still
    holds when a loop comes to them again, by type.
    """

    system: str
    limit_w: float
    l2_byte: float
    tile: tuple[float, float]
    constant_w: float
    prior_pj: Mapping[str, float]
    types: Mapping[str, str]
    peak_flop: Mapping[str, float]
    peak_byte: float
    spread: float = 1.5
    kept_byte: Mapping[str, float] = {}


_ELEMENT = {"bfloat16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625}  # bytes; of FP4 with its scales
_H200_TYPES = {"bfloat16": "tensor_bf16_flop", "fp8_block": "tensor_fp8_flop"}
# Idle at the top clock: 120 W (EnergAIzer's H100), and loops of tiny products draw 126 W at least (B200: 242 W).
H200 = Chip(
    *("h200_sxm", 700.0, 50e6, (128.0, 256.0), 118.0),
    {"dram_byte": 81.5, "l2_byte": 32.3, "shared_byte": 3.5, "tensor_bf16_flop": 0.52, "tensor_fp8_flop": 0.26},
    _H200_TYPES,
    {"bfloat16": 989e12, "fp8_block": 1979e12},
    4.8e12,
    kept_byte={"bfloat16": 25e6},  # its L2 is in two halves, which keep copies of the same bytes; FP8's find none there
)
B200 = Chip(
    *("b200_sxm", 1000.0, 126e6, (256.0, 256.0), 240.0),
    {
        **{"dram_byte": 70.0, "l2_byte": 25.0, "shared_byte": 3.5, "tensor_bf16_flop": 0.39},
        **{"tensor_fp8_flop": 0.20, "tensor_fp4_flop": 0.10},
    },
    {**_H200_TYPES, "fp8": "tensor_fp8_flop", "nvfp4": "tensor_fp4_flop"},
    {"bfloat16": 2250e12, "fp8": 4500e12, "fp8_block": 4500e12, "nvfp4": 9000e12},
    8e12,
)


def shapes(data: Path, chip: Chip) -> pd.DataFrame:
    """Steady rows of a chip with what they do a second: flops, and bytes of DRAM, L2 and shared memory.

    Left out: calls of less than 8 us, which do not run back to back, whatever their latency says, and products that
    come neither to 0.4 of the peak rate nor to 0.6 of the bandwidth: their time goes to launches and to the making of
    scales, which no shape tells. Bytes of DRAM: each operand once, if they do not fit into L2 (of half to all of it, a
    part), less what L2 keeps.
    """
    rows = pd.read_parquet(data / "modern" / "aiconfigurator-gemm-watts.parquet")
    rows = rows[(rows["system"] == chip.system) & rows["steady"] & (rows["latency"] > 8e-3)].copy()
    seconds = rows["latency"] * 1e-3
    element = rows["gemm_dtype"].map(_ELEMENT)
    m, n, k = rows["m"].astype(float), rows["n"].astype(float), rows["k"].astype(float)
    moved = element * (m * k + n * k) + 2 * m * n
    tile_m, tile_n = np.minimum(chip.tile[0], m), np.minimum(chip.tile[1], n)
    tiles = np.ceil(m / tile_m) * np.ceil(n / tile_n)
    loaded = element * k * tiles * (tile_m + tile_n)
    outside = np.clip(2 * moved / chip.l2_byte - 1, 0, 1)
    rows["flop"] = 2 * m * n * k / seconds
    kept = rows["gemm_dtype"].astype(str).map(chip.kept_byte).fillna(0.0)
    rows["dram_byte"] = np.minimum(moved * outside, np.maximum(moved - kept, 0.0)) / seconds
    rows["l2_byte"] = (loaded + 2 * m * n) / seconds
    rows["shared_byte"] = loaded / seconds
    rows["half"] = [
        int(hashlib.sha256(f"{a}/{b}/{c}".encode()).hexdigest(), 16) % 2 for a, b, c in zip(m, n, k, strict=True)
    ]
    rows["is_capped"] = rows["power"] > 0.97 * chip.limit_w
    is_compute = rows["flop"] > 0.4 * rows["gemm_dtype"].map(chip.peak_flop)
    is_memory = moved * outside / seconds > 0.6 * chip.peak_byte
    rows["kind"] = np.where(is_memory, "memory-bound", "compute-bound")
    # Watts of an idle board at hundreds of Tflop/s: the loop that was metered was not the one that was timed.
    return rows[(is_compute | is_memory) & (rows["power"] > 1.5 * chip.constant_w)]


def watts_of(rows: pd.DataFrame, chip: Chip, prices: Mapping[str, float], constant_w: float) -> Floats:
    """Predicted watts of products, not cut at the limit."""
    tensor = rows["gemm_dtype"].map(chip.types).map(prices)
    moved = sum(rows[level] * prices[level] for level in ("dram_byte", "l2_byte", "shared_byte"))
    return np.asarray(constant_w + PICO * (rows["flop"] * tensor + moved), dtype=np.float64)


def fit_chip(rows: pd.DataFrame, chip: Chip) -> dict[str, float]:
    """Prices in pJ, least squares of logarithms that forgives outliers.

    A compute-bound product at the cap only says "at least", for its clock gave way. Every campaign, type, kind and side
    of the cap weighs the same; a price is drawn to its prior.
    """
    gave_way = rows["is_capped"] & (rows["kind"] == "compute-bound")
    names = list(chip.prior_pj)
    groups = [rows["framework"], rows["gemm_dtype"], rows["kind"], gave_way]
    weights = 1 / np.sqrt(rows.groupby(groups)["power"].transform("size").to_numpy())

    def residuals(logarithms: Floats) -> Floats:
        prices = {name: chip.prior_pj[name] * np.exp(log) for name, log in zip(names, logarithms, strict=True)}
        off = np.log(watts_of(rows, chip, prices, chip.constant_w) / rows["power"].to_numpy())
        off = np.where(gave_way, np.minimum(off, 0), off)
        return np.concatenate([off * weights / 0.1, logarithms / np.log(chip.spread)])

    found = least_squares(residuals, np.zeros(len(names)), loss="soft_l1").x
    return {name: float(chip.prior_pj[name] * np.exp(log)) for name, log in zip(names, found, strict=True)}


def scored(rows: pd.DataFrame, chip: Chip, prices: Mapping[str, float]) -> Iterator[str]:
    """Errors by campaign, type and kind of product; predictions are cut at the limit, as a board is."""
    predicted = np.minimum(watts_of(rows, chip, prices, chip.constant_w), chip.limit_w)
    rows = rows.assign(off=predicted / rows["power"] - 1)
    kind = np.where(rows["is_capped"], "at the cap", rows["kind"])
    for names, group in rows.groupby([rows["framework"], rows["gemm_dtype"], kind]):
        bins = group["off"].groupby(pd.qcut(group["power"], 8, duplicates="drop"), observed=True).median()
        mean, bias = 100 * group["off"].abs().mean(), 100 * group["off"].median()
        yield (
            f"  {' '.join(names)}: {mean:.1f} % off on average, {bias:+.1f} % in the median, "
            f"medians of bins {100 * bins.abs().mean():.1f} % ({len(group)} rows)"
        )


def chips(data: Path) -> None:
    """Print the fit to each half of the shapes, and how it holds on the other."""
    for chip in (H200, B200):
        rows = shapes(data, chip)
        for half in (0, 1):
            prices = fit_chip(rows[rows["half"] == half], chip)
            print(chip.system, ", ".join(f"{name} {pj:.3g}" for name, pj in prices.items()), "pJ; the other half:")
            print("\n".join(scored(rows[rows["half"] != half], chip, prices)))
        both = ", ".join(f"{name} {pj:.3g}" for name, pj in fit_chip(rows, chip).items())
        print(f"{chip.system}, both halves: {both}")


if __name__ == "__main__":
    a100(Path(sys.argv[1]))
    chips(Path(sys.argv[1]))
