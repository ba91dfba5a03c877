"""How well one shape of prices carries over to a GPU that nobody measured, and the file of that shape.

    python docs/studies/power/transfer.py DATA            the tables of README.md (a few minutes)
    python docs/studies/power/transfer.py DATA --write    writes counters/measurements/priors/shape.toml
    python docs/studies/power/transfer.py DATA --check    exit code 1 if that file is not what --write makes

DATA: the folder with power/nvdvfs_counts_*.csv and modern/ (README.md). Power of run k on GPU g:

    P = K_g + s_g (f_g sum_i c_i r_ik + c_dram r_dram,k + c_tensor (limit_g - K_g) / peak_g r_tensor,k)

c: one shape of prices for all GPUs; f: a factor on what the chip does, by its process; r: rates of counted classes in
1/s, of SM-active cycles by lanes; peak: the tensor cores' rate of FP16 on the data sheet, so that c_tensor is the share
of what the limit leaves that they take at full rate. K: constant power, a share of the limit by kind of board. s: what
GPUs differ by, else.

All are fitted at once, in logarithms, to relative errors of power (soft absolute values, so that a wild row counts
little). A GPU counts as its rows do, but at most as eight. `PRIORS` says how far from round numbers, and from each
other, parameters may lie. A GPU that is predicted was left out of all this, boards of the same chip too, and the kernel
on every GPU where counts of it exist.
"""

import csv
import gzip
import json
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Struct
from published import LAB_MIXES, mix_rates
from scipy.optimize import least_squares

Floats = npt.NDArray[np.float64]

FILE = Path(__file__).parents[3] / "counters" / "measurements" / "priors" / "shape.toml"
# Price -> a round number in pJ about which its logarithm may lie. Tensor work: as a share (above).
PRIOR_PJ = {
    "fp64_full_rate_instruction": 50.0,
    "fp64_low_rate_instruction": 200.0,
    "fp32_instruction": 15.0,
    "integer_instruction": 8.0,
    "warp_issue_instruction": 300.0,
    "shared_byte": 5.0,
    "l1_byte": 15.0,
    "l2_byte": 35.0,
    "dram_byte": 60.0,
    "tensor_fp16_flop": 0.6,
    "sm_cycle": 400.0,
}
TERMS = tuple(PRIOR_PJ)
DRAM, TENSOR = TERMS.index("dram_byte"), TERMS.index("tensor_fp16_flop")
PROCESSES = ("28 to 16 nm", "12 nm", "8 and 7 nm", "5 and 4 nm")
BOARDS = ("gddr", "gddr_5nm", "hbm")
# Standard deviations of logarithms: of prices, of the step of f from a process to the next (and its mean), of GPUs' own
# scale and share of constant power, of measured idle power as a constant, of shares by kind of board, and of a run.
PRIORS = {"price": 1.0, "step": 0.3, "scale": 0.3, "share": 0.35, "idle": 0.2, "board": 0.6, "run": 0.12}
STEP, SHARE = -0.3, 0.2
MOST_ROWS = 8
DRAWS = 60
# Of single prices, tried. Not less than 0.3: they are known worse than the sums by which intervals are held to runs.
SPREADS = np.arange(0.3, 1.21, 0.1)
KNOWN_SD = float(np.log(1.3)) / 1.645  # a measured idle power: 30 % either way in nine of ten
RUNS, RUN_KERNELS = 200, 4


class Gpu(Struct, frozen=True):
    """A GPU and its data sheet: process and kind of board (places in PROCESSES, BOARDS), W, lanes, tensor Tflop/s.

    idle_w: measured, at the clocks of a load. chip: boards of one chip are left out together.
    """

    name: str
    chip: str
    year: int
    process: int
    board: int
    limit_w: float
    lanes_tera_hz: float = 0.0
    tensor_tflops: float = 0.0
    idle_w: float | None = None


class Measured(Struct, frozen=True):
    """Runs of one GPU. rates: (n_runs, n_terms), in 1e12/s, so that prices are in pJ."""

    gpu: Gpu
    kernels: npt.NDArray[np.object_]
    rates: Floats
    power_w: Floats

    def rows(self, places: npt.NDArray[np.bool_]) -> "Measured":
        """Some of the runs."""
        return Measured(self.gpu, self.kernels[places], self.rates[places], self.power_w[places])


# ---- runs of 2014 to 2017: counts by nvprof, real kernels

NVDVFS = {  # file, core and memory MHz, multiprocessors; on Volta a texture transaction is no sector
    Gpu("GTX 980", "gm204", 2014, 0, 0, 165): ("gtx980_high", 1100, 3600, 16, 128, "n_tex_trans"),
    Gpu("GTX 1080 Ti", "gp102", 2017, 0, 0, 250): ("gtx1080ti", 1600, 5500, 28, 128, "n_tex_trans"),
    Gpu("P100", "gp100", 2016, 0, 2, 250): ("p100", 1328, 715, 56, 64, "n_tex_trans"),
    Gpu("V100", "gv100", 2017, 1, 2, 250): ("v100", 1380, 877, 80, 64, "n_gld_trans"),
}


def counted(folder: Path) -> Iterator[Measured]:
    """Kernels of NV-DVFS-Benchmark at the default clocks."""
    for gpu, (name, core_mhz, memory_mhz, sms, lanes, l1) in NVDVFS.items():
        rows = pd.read_csv(folder / f"nvdvfs_counts_{name}.csv")
        rows = rows[(rows["core_mhz"] == core_mhz) & (rows["mem_mhz"] == memory_mhz)]
        fp64 = "fp64_full_rate_instruction" if gpu.board == BOARDS.index("hbm") else "fp64_low_rate_instruction"
        counts = {
            fp64: rows["n_fp64_thread_inst"],
            "fp32_instruction": rows["n_fp32_thread_inst"] - rows["n_sfu_sp"],
            "integer_instruction": rows["n_int_thread_inst"],
            "warp_issue_instruction": rows["n_warp_inst"],
            "shared_byte": 128 * (rows["n_shared_ld_trans"] + rows["n_shared_st_trans"]),
            "l1_byte": 32 * (rows[l1] + rows["n_gst_trans"]),
            "l2_byte": 32 * (rows["n_l2_rd_trans"] + rows["n_l2_wr_trans"]),
            "dram_byte": 32 * (rows["n_dram_rd_trans"] + rows["n_dram_wr_trans"]),
        }
        seconds = rows["time_ms"] * 1e-3
        rates = pd.DataFrame({term: counts[term] / seconds if term in counts else 0 * seconds for term in TERMS})
        rates["sm_cycle"] = rows["sm_activity"] * sms * lanes / 128 * core_mhz * 1e6
        names = rows["bench_name"].to_numpy(dtype=object)
        yield Measured(gpu, names, rates.to_numpy(dtype=float) * 1e-12, rows["power_w"].to_numpy())


# ---- runs since 2018: microbenchmarks and matrix products. Their counts follow from what they do

A100 = Gpu("A100-SXM4-40GB", "ga100", 2020, 2, 2, 400, 9.75, 312, 51.6)
A100_80 = Gpu("A100-SXM4-80GB", "ga100", 2020, 2, 2, 400, 9.75, 312, 82.3)
A100_PCIE = Gpu("A100, 300 W", "ga100", 2020, 2, 2, 300, 9.75, 312)
RTX_5000 = Gpu("Quadro RTX 5000", "tu104", 2018, 1, 0, 230, 5.58, 89.2, 58.5)
RTX_3090 = Gpu("GeForce RTX 3090", "ga102", 2020, 2, 0, 350, 17.8, 142, (127 * 88.5) ** 0.5)
A5000 = Gpu("RTX A5000", "ga102", 2021, 2, 0, 230, 13.9, 111, 78.0)
A10G = Gpu("A10G", "ga102", 2021, 2, 0, 300, 17.5, 140, 76.0)
RTX_4090 = Gpu("GeForce RTX 4090", "ad102", 2022, 3, 1, 450, 41.3, 330, 52.0)
H200 = Gpu("H200", "gh100", 2024, 3, 2, 700, 33.5, 989)
B300 = Gpu("B300 SXM6", "gb300", 2025, 3, 2, 1100, 38.5, 2500, 183.5)
PRO_MAXQ = Gpu("RTX PRO 6000 Max-Q", "gb202", 2025, 3, 1, 300, 54.9, 439)
PRO = Gpu("RTX PRO 6000", "gb202", 2025, 3, 1, 600, 63, 504)
# Boards of which only idle power is known. A board of a chip that is predicted is not among them either.
IDLE_ALONE = (
    Gpu("A100-PCIE-40GB", "ga100", 2020, 2, 2, 250, idle_w=67.3),
    Gpu("Tesla K40m", "gk110", 2013, 0, 0, 245, idle_w=60.2),
)
LANES = {"ga100": 64, "tu104": 64}  # of a multiprocessor; others 128
Rates = dict[str, float]


def multiplied(per_s: float, term: str = "fp32_instruction") -> Rates:
    """A loop of multiply-adds, unrolled: 3 % of what is issued is the loop."""
    return {term: per_s, "warp_issue_instruction": 1.03 * per_s / 32}


def streamed(bytes_per_s: float, *levels: str) -> Rates:
    """A copy, 4 bytes a thread: of 8 bytes a load, a store and four others, of which two count as integer."""
    words = bytes_per_s / 8
    rates = {f"{level}_byte": bytes_per_s for level in levels}
    return {**rates, "integer_instruction": 2 * words, "warp_issue_instruction": 6 * words / 32}


def product(flop_per_s: float, element: int) -> Rates:
    """A product of matrices in FP32: tiles of 128 x 128 in shared memory, of 8 x 8 in the registers of a thread."""
    pairs = flop_per_s / 2
    tile = pairs * element * 2 / 128
    return {
        "fp32_instruction": pairs,
        "warp_issue_instruction": 1.3 * pairs / 32,
        "l1_byte": tile,
        "l2_byte": tile,
        "shared_byte": tile + pairs * element * 2 / 8,
    }


def tensor_product(flop_per_s: float, tile: tuple[int, int], warp_flop: float, of_shared: float) -> Rates:
    """A product of 2-byte elements: tiles from L2, an instruction for warp_flop flops, shared bytes a flop."""
    tiles = flop_per_s * (1 / tile[0] + 1 / tile[1])
    issued = 2 * flop_per_s / warp_flop
    return {
        "tensor_fp16_flop": flop_per_s,
        "l2_byte": tiles,
        "shared_byte": tiles + flop_per_s * of_shared,
        "warp_issue_instruction": issued,
    }


def mma(flop_per_s: float) -> Rates:
    """`mma.sync` of m16n8k16: warps hold tiles of 64 x 64."""
    return tensor_product(flop_per_s, (128, 128), 4096, 1 / 32)


def wgmma(flop_per_s: float) -> Rates:
    """Hopper's and Blackwell's: one instruction for a tile, whose operands come from shared memory."""
    return tensor_product(flop_per_s, (128, 256), 1e6, 0.012)


def today(folder: Path) -> Iterator[tuple[Gpu, str, float, Rates, float]]:
    """GPU, run, watts, rates a second and core MHz of every public run; README.md says which were not taken and why."""
    for name, gpu in (("a100", A100), ("rtx5000", RTX_5000)):
        yield from _of_archive(folder / "a100-rtx5000-tfg_results_20260328_055448.tgz", name, gpu)
    yield A100, "FP32 loop", 190.0, multiplied(0.95 * 9.75e12), 1410
    yield A5000, "FP32 loop", 207.0, multiplied(0.95 * 13.9e12), 1695
    yield RTX_3090, "FP32 loop", 419.0, multiplied(0.95 * 82 * 128 * 1.8e9), 1800
    yield RTX_4090, "FP32 loop", 385.0, multiplied(0.95 * 128 * 128 * 2.52e9), 2520
    yield A100_PCIE, "BabelStream", 228.0, streamed(1687e9, "l1", "l2", "dram"), 1410
    yield PRO, "BabelStream", 258.0, streamed(1489e9, "l1", "l2", "dram"), 2430
    yield A10G, "FP16 product", 172.7, mma(68.6e12), 1710
    for row in pd.read_csv(folder / "rrze_gpu_roofline_power.csv").itertuples():
        words = row.dram_byte_per_s / 8
        rates = {**streamed(row.dram_byte_per_s, "l1", "l2", "dram"), "fp32_instruction": row.n_fp32_thread_per_s}
        rates["warp_issue_instruction"] = (row.n_fp32_thread_per_s + 5 * words) / 32
        gpu, core_mhz = (A100, 1410) if row.gpu.startswith("A100") else (H200, 1980)
        yield gpu, f"{row.fl_per_b:g} flop/B", row.power_w, rates, core_mhz
    yield from _of_products(folder)
    yield from _of_lab(folder)
    with (folder / "rtx3090_components.csv").open() as file:
        loops = [row for row in csv.DictReader(file) if row["mode"] == "reg_mma"]
    watts = median(float(row["power_w"]) for row in loops)
    flops = 8192 * median(float(row["N_MMA"]) / float(row["elapsed_s"]) for row in loops)
    yield RTX_3090, "mma loop", watts, {"tensor_fp16_flop": flops, "warp_issue_instruction": flops / 4096}, 1935
    probe = "power-rtxpro6000-mma-rate-probe.csv"
    with (folder.parent / "ncu-modern" / probe).open() as file:
        probed = [row for row in csv.DictReader(line for line in file if line[0] != "#")]
    for variant in ("f16acc", "f32acc"):
        runs = [(float(row["tflops"]), float(row["power_w"])) for row in probed if row["variant"] == variant]
        flops = 1e12 * median(tflops for tflops, _ in runs)
        rates = {"tensor_fp16_flop": flops, "warp_issue_instruction": flops / 4096}
        yield PRO_MAXQ, f"mma loop, {variant}", median(power for _, power in runs), rates, 2257


def _of_archive(path: Path, name: str, gpu: Gpu) -> Iterator[tuple[Gpu, str, float, Rates, float]]:
    """The runs of tfg-cuda-energy-performance-nvidia: rates and mean watts of a steady part."""
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"results/{name}/energy/efficiency_active_summary.csv")
        assert file is not None
        runs = pd.read_csv(file).set_index("Test")
    fp64 = "fp64_full_rate_instruction" if gpu is A100 else "fp64_low_rate_instruction"
    made = {
        "BW sustained": lambda rate: streamed(rate, "l1", "l2", "dram"),
        "BW peak": lambda rate: streamed(rate, "l1", "l2"),
        "Compute FP32 peak": lambda rate: multiplied(rate / 2),
        "Compute FP64 peak": lambda rate: multiplied(rate / 2, fp64),
        "GEMM TF32=0 max": lambda rate: product(rate, 4),
        "GEMM TF32=1 max": lambda rate: mma(2 * rate) if gpu is A100 else product(rate, 4),
    }
    for test, rates in made.items():
        run = runs.loc[test]
        yield gpu, test, run["Active power (W)"], rates(1e9 * run["Perf"]), run["Mean SM in window"]


def _of_products(folder: Path) -> Iterator[tuple[Gpu, str, float, Rates, float]]:
    """Products of random matrices: an A100 of 80 GB by type, an H200 where its limit does not bind.

    The H200's sensor remembers the run before: medians of many shapes. A TF32 flop is taken for two of FP16.
    """
    runs = pd.read_csv(folder / "a100sxm80_gemm_exp1_exchange_e2958cc757b9.csv", index_col=False)
    runs = runs[runs["operand_dist_a"].isin(["dense_random", "declared_typical"])]
    for (dtype, operands), group in runs.groupby(["dtype", "operand_dist_a"]):
        if dtype in ("fp16", "bf16", "tf32"):
            flops = (2 if dtype == "tf32" else 1) * float((group["ops_nominal"] / group["duration_s"]).median())
            power_w, core_mhz = group["mean_power_w"].median(), group["sm_clock_mhz"].median()
            yield A100_80, f"{dtype}, {operands}", power_w, mma(flops), core_mhz
    shapes = pd.read_parquet(folder / "aiconfigurator-gemm-watts.parquet")
    shapes = shapes[(shapes["system"] == "h200_sxm") & (shapes["gemm_dtype"] == "bfloat16") & shapes["steady"]]
    m, n, k = shapes["m"], shapes["n"], shapes["k"]
    tflops = 2 * m * n * k / shapes["latency"] * 1e-9
    tbytes = 2 * (m * n + n * k + m * k) / shapes["latency"] * 1e-9
    for low in (300, 400):
        chosen = (tflops > low) & (tflops <= low + 100) & (tbytes > 1) & (tbytes <= 2)
        rates = {**wgmma(1e12 * float(tflops[chosen].median())), "dram_byte": 1e12 * float(tbytes[chosen].median())}
        yield H200, f"BF16 product, {low} Tflop/s", float(shapes["power"][chosen].median()), rates, 1755


def _of_lab(folder: Path) -> Iterator[tuple[Gpu, str, float, Rates, float]]:
    """Units of a B300, alone and at once, and cuBLAS; integers and L2 were folded, special functions have no price."""
    with gzip.open(folder / "b300-gpu-power-lab.json.gz", "rt") as file:
        runs = json.load(file)["files"]
    terms = {"fp32_fma": "fp32_instruction", "shared_read": "shared_byte", "shared_write": "shared_byte"}
    for name, units in {"fma": ("fma",), "dram": ("dram",), "smem": ("smem",), **LAB_MIXES}.items():
        if {"int32", "l2", "sfu"} & set(units):
            continue
        run = next(run for path, run in runs.items() if path.endswith(f"rung-unit-{name}.json"))
        rates: Rates = {}
        for word, rate in mix_rates(run, units).items():
            for term in ("l1_byte", "l2_byte", "dram_byte") if word == "dram_read" else (terms[word],):
                rates[term] = rates.get(term, 0.0) + rate
        # Bytes move as vectors of 16 a thread, each with an instruction for its address.
        moved = rates.get("dram_byte", 0.0) + rates.get("shared_byte", 0.0)
        rates["warp_issue_instruction"] = (rates.get("fp32_instruction", 0.0) + moved / 8) / 32
        yield B300, name, run["power"]["avg_w"], rates, 2032
    for dtype, flop_of_fp16 in {"fp16": 1.0, "bf16": 1.0, "tf32": 2.0, "fp8": 0.5}.items():
        run = next(run for path, run in runs.items() if path.endswith(f"rung-prec-{dtype}.json"))
        flops = flop_of_fp16 * 2 * 8192**3 * run["compute"]["iterations"] / (run["timing"]["steady_ms"] * 1e-3)
        yield B300, f"{dtype} product", run["power"]["avg_w"], wgmma(flops), 2032


def read(folder: Path) -> list[Measured]:
    """The measurements of all GPUs. Runs of one name on one GPU are one: their medians."""
    parts = list(counted(folder / "power"))
    of_gpu: dict[Gpu, dict[str, list[tuple[float, list[float]]]]] = {}
    for gpu, name, power_w, rates, core_mhz in today(folder / "modern"):
        # At the full rate of every lane; a slower clock is that much less.
        top_mhz = {"h200": 1980, "b300 sxm6": 2032}.get(gpu.name.lower(), core_mhz)
        lanes = gpu.lanes_tera_hz * core_mhz / top_mhz
        row = [rates.get(term, 0.0) * 1e-12 for term in TERMS]
        row[TERMS.index("sm_cycle")] = lanes / 128
        of_gpu.setdefault(gpu, {}).setdefault(name, []).append((float(power_w), row))
    for gpu, runs in of_gpu.items():
        powers = [np.median([power for power, _ in same]) for same in runs.values()]
        rates = [np.median([row for _, row in same], axis=0) for same in runs.values()]
        parts.append(Measured(gpu, np.array(list(runs), dtype=object), np.array(rates), np.array(powers)))
    return parts


# ---- the fit


class Shape(Struct, frozen=True):
    """Logarithms: prices (n_terms,), factors by process, shares by kind of board; GPUs' own scales and shares."""

    prices: Floats
    processes: Floats
    shares: Floats
    scales: Mapping[str, float] = {}
    own_shares: Mapping[str, float] = {}

    def constant_w(self, gpu: Gpu) -> float:
        """Constant power by the data sheet, W."""
        return gpu.limit_w * float(np.exp(self.shares[gpu.board]))

    def prices_pj(self, gpu: Gpu, constant_w: float) -> Floats:
        """What a count costs on a GPU of this data sheet, pJ; (n_terms,)."""
        logs = self.prices + self.processes[gpu.process]
        logs[DRAM] = self.prices[DRAM]
        left = max(gpu.limit_w - constant_w, 1.0) / gpu.tensor_tflops if gpu.tensor_tflops else 1.0
        logs[TENSOR] = self.prices[TENSOR] + np.log(left)
        return np.asarray(np.exp(logs))


def fit(parts: list[Measured], idle_alone: Sequence[Gpu] = IDLE_ALONE) -> Shape:
    """The shape of prices that suits these GPUs best, and the idle power of these others."""
    terms, number = len(TERMS), len(parts)
    prior_pj = np.log(list(PRIOR_PJ.values()))
    weights = [np.sqrt(min(len(part.power_w), MOST_ROWS) / len(part.power_w)) for part in parts]

    def parameters(values: Floats) -> tuple[Shape, Floats, Floats]:
        prices, steps, shares, scales, own = np.split(
            values, np.cumsum([terms, len(PROCESSES) - 1, len(BOARDS), number])
        )
        return Shape(prices, np.concatenate([[0.0], np.cumsum(steps)]), shares), scales, own

    def residuals(values: Floats) -> Floats:
        shape, scales, own = parameters(values)
        made = []
        for part, weight, scale, share in zip(parts, weights, scales, own, strict=True):
            constant_w = shape.constant_w(part.gpu) * np.exp(share)
            watts = constant_w + np.exp(scale) * (part.rates @ shape.prices_pj(part.gpu, constant_w))
            made.append(weight * np.log(watts / part.power_w) / PRIORS["run"])
            if part.gpu.idle_w is not None:
                made.append([np.log(constant_w / part.gpu.idle_w) / PRIORS["idle"]])
        alone_sd = np.hypot(PRIORS["idle"], PRIORS["share"])
        made.append([off / alone_sd for off in off_shares(shape, idle_alone)])
        made.append((shape.prices - prior_pj) / PRIORS["price"])
        made.append((np.diff(shape.processes) - STEP) / PRIORS["step"])
        made.append((shape.shares - np.log(SHARE)) / PRIORS["board"])
        return np.concatenate([*made, scales / PRIORS["scale"], own / PRIORS["share"]])

    start = np.concatenate(
        [prior_pj, np.full(len(PROCESSES) - 1, STEP), np.full(len(BOARDS), np.log(SHARE)), np.zeros(2 * number)]
    )
    shape, scales, own = parameters(least_squares(residuals, start, loss="soft_l1", max_nfev=80).x)
    names = [part.gpu.name for part in parts]
    return Shape(
        shape.prices,
        shape.processes,
        shape.shares,
        dict(zip(names, scales.tolist(), strict=True)),
        dict(zip(names, own.tolist(), strict=True)),
    )


def off_shares(shape: Shape, gpus: Iterable[Gpu]) -> list[float]:
    """Logarithms of constant power by the data sheet over measured idle power, of those whose idle power is known."""
    return [float(np.log(shape.constant_w(gpu) / gpu.idle_w)) for gpu in gpus if gpu.idle_w is not None]


# ---- runs whose joules are metered, which the model only splits


def runs(number: int) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    """Runs of some of so many kernels: which, and their shares of time."""
    draw = np.random.default_rng(2026)
    for _ in range(RUNS):
        yield draw.choice(number, RUN_KERNELS, replace=False), draw.dirichlet(np.ones(RUN_KERNELS))


def of_own_run(model_w: Floats, power_w: Floats) -> tuple[Floats, Floats]:
    """Modelled over metered power of kernels in runs whose total joules are metered; by model, and by time alone."""
    by_model, by_time = [], []
    for kernels, of_time in runs(len(power_w)):
        mean_w = of_time @ power_w[kernels]
        by_model.append(mean_w / (of_time @ model_w[kernels]) * model_w[kernels] / power_w[kernels])
        by_time.append(mean_w / power_w[kernels])
    return np.concatenate(by_model), np.concatenate(by_time)


def covering(ratio: Floats, share: float = 0.9) -> float:
    """The factor x for which measured power lies within x/÷ of the predicted one for so many kernels."""
    return float(np.exp(np.quantile(np.abs(np.log(ratio)), share)))


# ---- a GPU left out


def error(predicted: Floats, measured: Floats) -> float:
    """Mean absolute relative error in %."""
    return float(100 * np.mean(np.abs(predicted / measured - 1)))


def steps(number: int) -> Floats:
    """So many numbers, spread evenly over the standard normal distribution."""
    return np.array([NormalDist().inv_cdf((place + 0.5) / number) for place in range(number)])


class Spread(NamedTuple):
    """Standard deviations of logarithms: of a price, of that of tensor work, of all prices of a GPU together."""

    price: float
    tensor: float
    scale: float

    def factors(self, number: int, seed: int) -> Floats:
        """Factors on prices: one a price, of median 1, and one on all of a draw; (number, n_terms)."""
        draw = np.random.default_rng(seed)
        own = np.array([draw.permutation(steps(number)) for _ in TERMS]).T
        common = draw.permutation(steps(number))[:, None]
        sds = np.where(np.arange(len(TERMS)) == TENSOR, self.tensor, self.price)
        return np.asarray(np.exp(sds * own + self.scale * common))


class LeftOut(Struct, frozen=True):
    """A GPU as if it had never been measured: W of each run by prices; constant power by the data sheet, and measured.

    share_sd, scale_sd: how far shares of constant power and scales of the other GPUs spread.
    """

    measured: Measured
    by_term_w: Floats
    sheet_w: float
    idle_w: float
    share_sd: float
    scale_sd: float

    @property
    def dynamic_w(self) -> Floats:
        """Power above the constant, (n_runs,)."""
        return np.asarray(self.by_term_w.sum(axis=1))

    @property
    def of_tensor(self) -> npt.NDArray[np.bool_]:
        """Which runs do tensor work, (n_runs,)."""
        return np.asarray(self.measured.rates[:, TENSOR] > 0)

    def drawn_w(self, spread: Spread) -> Floats:
        """Power of each run by drawn prices and constants of the data sheet, (n_draws, n_runs)."""
        factors = spread.factors(240, seed=5)
        constants = np.exp(self.share_sd * np.random.default_rng(6).permutation(steps(len(factors))))
        return np.asarray(factors @ self.by_term_w.T + self.sheet_w * constants[:, None])

    def ends(self, spread: Spread) -> tuple[Floats, Floats]:
        """The ends of each run's 90 % interval, W."""
        low, high = np.percentile(self.drawn_w(spread), [5, 95], axis=0)
        return low, high

    def held(self, spread: Spread) -> npt.NDArray[np.bool_]:
        """Which runs lie in their intervals by the data sheet, (n_runs,)."""
        low, high = self.ends(spread)
        return np.asarray((low <= self.measured.power_w) & (self.measured.power_w <= high))


def left_out(parts: list[Measured]) -> Iterator[LeftOut]:
    """Each GPU, predicted from the others: no board of its chip is among them, and none of its kernels."""
    for part in parts:
        others = [other for other in parts if other.gpu.chip != part.gpu.chip]
        idle_alone = [gpu for gpu in IDLE_ALONE if gpu.chip != part.gpu.chip]
        predicted = np.empty_like(part.rates)
        sheet_w = np.empty(len(part.power_w))
        kernels = list(dict.fromkeys(part.kernels)) if part.gpu in NVDVFS else [None]
        for kernel in kernels:
            seen = [other.rows(other.kernels != kernel) if kernel else other for other in others]
            shape = fit(seen, idle_alone)
            mine = part.kernels == kernel if kernel else np.ones(len(part.power_w), dtype=bool)
            sheet_w[mine] = shape.constant_w(part.gpu)
            predicted[mine] = part.rates[mine] * shape.prices_pj(part.gpu, shape.constant_w(part.gpu))
        idle_w = part.gpu.idle_w or fitted_constant(part, predicted.sum(axis=1))
        share_sd = spread_of_shares(shape, [*(other.gpu for other in others), *idle_alone])
        scale_sd = float(np.std(list(shape.scales.values())))
        yield LeftOut(part, predicted, float(np.mean(sheet_w)), idle_w, share_sd, scale_sd)


def spread_of_shares(shape: Shape, gpus: Iterable[Gpu]) -> float:
    """How far measured idle powers lie from the shares of their kinds of boards: sd of the logarithm."""
    return float(np.sqrt(np.mean(np.square(off_shares(shape, gpus)))))


def fitted_constant(part: Measured, dynamic_w: Floats) -> float:
    """The constant power that suits a GPU's own rows best, W, where nobody measured its idle power."""
    tried = np.linspace(0.02, 0.6, 117) * part.gpu.limit_w
    return float(min(tried, key=lambda watts: error(dynamic_w + watts, part.power_w)))


def spread_for(parts: list[LeftOut]) -> Spread:
    """The least spreads with which intervals hold nine of ten runs: of those without tensor work, then of the others.

    GPUs count alike.
    """
    scale = float(np.mean([part.scale_sd for part in parts]))

    def least(of_tensor: bool, made: Callable[[float], Spread]) -> Spread:
        chosen = [part for part in parts if (part.of_tensor == of_tensor).any()]
        for sd in SPREADS:
            if np.mean([part.held(made(sd))[part.of_tensor == of_tensor].mean() for part in chosen]) >= 0.9:
                break
        return made(float(sd))

    without = least(False, lambda sd: Spread(sd, 0.0, scale))
    return least(True, lambda sd: without._replace(tensor=sd))


# ---- what is printed


def show(parts: list[Measured], unseen: list[LeftOut]) -> None:
    """Print the tables of README.md."""
    shape = fit(parts)
    prices = ", ".join(f"{term} {pj:.3g}" for term, pj in zip(TERMS, np.exp(shape.prices), strict=True))
    print(f"One shape for all, pJ: {prices}")
    print("Factors by process:", dict(zip(PROCESSES, np.exp(shape.processes).round(2).tolist(), strict=True)))
    print("Shares of the limit:", dict(zip(BOARDS, np.exp(shape.shares).round(3).tolist(), strict=True)))
    print(
        f"\n{'GPU left out':20}{'runs':>5}{'scale':>7}{'sheet %':>9}{'bias %':>8}{'idle %':>8}{'held %':>8}{'x/÷':>6}"
    )
    table = []
    for out in unseen:
        part, spread = (
            out.measured,
            spread_for([other for other in unseen if other.measured.gpu.chip != out.measured.gpu.chip]),
        )
        low, high = out.ends(spread)
        ratio = (out.dynamic_w + out.sheet_w) / part.power_w
        numbers = (
            np.exp(shape.scales[part.gpu.name]),
            error(out.dynamic_w + out.sheet_w, part.power_w),
            100 * float(np.mean(ratio) - 1),
            error(out.dynamic_w + out.idle_w, part.power_w),
            100 * float(np.mean(out.held(spread))),
            float(np.median(np.sqrt(high / low))),
        )
        table.append((part.gpu.year, numbers))
        cells = "{:7.2f}{:9.1f}{:+8.0f}{:8.1f}{:8.0f}{:6.2f}".format(*numbers)
        print(f"{part.gpu.name:20}{len(part.power_w):5}{cells}")
    for what, first, last in (("2014 to 2017", 2014, 2017), ("since 2018", 2018, 2026)):
        rows = [row for year, row in table if first <= year <= last]
        means = [*np.mean(rows, axis=0)[:5], float(np.median([row[5] for row in rows]))]
        print(f"{what:25}" + "{:7.2f}{:9.1f}{:+8.0f}{:8.1f}{:8.0f}{:6.2f}".format(*means))
    print("\nA metered run of four kernels: error of a kernel's joules, %; nine of ten within")
    for out in unseen:
        if out.measured.gpu in NVDVFS:
            model, by_time = of_own_run(out.dynamic_w + out.sheet_w, out.measured.power_w)
            errors = f"{100 * np.mean(np.abs(model - 1)):.1f}, by time alone {100 * np.mean(np.abs(by_time - 1)):.1f}"
            print(f"{out.measured.gpu.name:20}{errors}; x/÷ {covering(model):.2f}, by time {covering(by_time):.2f}")
    print(f"\nSpreads for the file: {spread_for(unseen)}")
    for out in unseen:
        for name, ratio in zip(out.measured.kernels, (out.dynamic_w + out.sheet_w) / out.measured.power_w, strict=True):
            if out.measured.gpu.year >= 2018 and not name.endswith("flop/B"):
                print(f"    {out.measured.gpu.name}, {name}: {100 * (ratio - 1):+.0f} %")


# ---- the file


def file_text(parts: list[Measured], spread: Spread) -> str:
    """The file of the shape."""
    shape = fit(parts)
    factors = dict(zip(TERMS, spread.factors(DRAWS, seed=2026).T, strict=True))
    factors["constant_steps"] = np.random.default_rng(2027).permutation(steps(DRAWS))
    share_sd = spread_of_shares(shape, [*(part.gpu for part in parts), *IDLE_ALONE])
    shares = {kind: (share, share_sd) for kind, share in zip(BOARDS, np.exp(shape.shares).tolist(), strict=True)}
    any_sd = float(np.hypot(share_sd, np.std(shape.shares)))
    shares |= {"laptop": (LAPTOP_SHARE, 2 * share_sd), "any": (float(np.exp(np.mean(shape.shares))), any_sd)}
    lines = [HEAD, "[pj]"]
    lines += [
        f"{term} = {pj:.3g}" for term, pj in zip(TERMS, np.exp(shape.prices), strict=True) if term != DRAWN_FROM_LIMIT
    ]
    lines += ["", TENSOR_HEAD, "[tensor]", f"share = {np.exp(shape.prices[TENSOR]):.3g}", "", CHIPS]
    names = [f'"{name}" = {factor:.2f}' for name, factor in zip(PROCESSES, np.exp(shape.processes), strict=True)]
    lines += ["[process]", *names, "", CONSTANT, "[constant]"]
    lines += [f"{kind} = {{ share = {share:.3f}, sd = {sd:.2f} }}" for kind, (share, sd) in shares.items()]
    least_w = min(part.gpu.limit_w for part in parts)
    lines += [f"idle_known_sd = {KNOWN_SD:.2f}", f"least_limit_w = {least_w:g}", "", REPLICAS, "[replicas]"]
    lines += [f"{name} = [{', '.join(f'{value:.3g}' for value in values)}]" for name, values in factors.items()]
    return "\n".join(lines) + "\n"


DRAWN_FROM_LIMIT = TERMS[TENSOR]
LAPTOP_SHARE = 0.07  # an RTX 3050 Laptop (80 W at most) draws 7.6 W in all while it loads from L1 (ncu-modern)
HEAD = """\
# Prices of a GPU that nobody measured (docs/costs.md), and how far off they may be. `python
# docs/studies/power/transfer.py DATA --write` makes this file again: one shape of prices for 16 GPUs of 2014 to 2025;
# its README says which, and how well each of them is predicted from the others.
#
# pJ an instruction, a byte, or a cycle of a multiprocessor of 128 lanes, on chips of 28 to 16 nm. On others all but a
# byte of DRAM are multiplied by the factor of their process."""
TENSOR_HEAD = """\
# Tensor work at the full rate of FP16 takes this share of the watts that constant power leaves of the board's limit."""
CHIPS = """\
# Factors on prices. chips.toml says which chip is of which process."""
CONSTANT = """\
# Constant power as a share of the board's power limit, by its memory and process, and the standard deviation of the
# share's logarithm. laptop: one board. any: all kinds. idle_known_sd: that of measured idle power.
# least_limit_w: boards with a lower limit are none of these; their shares are known half as well."""
REPLICAS = """\
# Factors on prices: one drawn for each price, and one for the GPU as a whole. Constant power is multiplied by
# exp(sd * step)."""


if __name__ == "__main__":
    measured = read(Path(sys.argv[1]))
    left = list(left_out(measured))
    if "--write" in sys.argv:
        FILE.write_text(file_text(measured, spread_for(left)))
    elif "--check" in sys.argv:
        sys.exit(FILE.read_text() != file_text(measured, spread_for(left)))
    else:
        show(measured, left)
