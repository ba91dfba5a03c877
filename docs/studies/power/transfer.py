"""How well one shape of prices carries over to a GPU that nobody measured, and the file of that shape.

    python docs/studies/power/transfer.py DATA            the tables of README.md (some minutes)
    python docs/studies/power/transfer.py DATA --write    writes counters/measurements/priors/shape.toml
    python docs/studies/power/transfer.py DATA --check    exit code 1 if that file is not what --write makes

DATA: the folder with nvdvfs_counts_*.csv (README.md).

Power of kernel k on GPU g:  P = pi_g + s_g * sum_i c_i r_ik, with one shape c for all GPUs, a scale s_g and a constant
power pi_g for each, and the rates r of counted classes in 1/s. Fits minimise the sum of absolute relative errors, with
c, s and pi at or above 0. A GPU that is predicted was left out of the shape, and so was the kernel that is predicted,
on every GPU. Own run: the joules of a run of some kernels are known, and one factor makes the model agree.

FP64 has two prices: chips that run it at half or a third of the rate of FP32 have units for it, the others a few.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import linprog

Floats = npt.NDArray[np.float64]

FILE = Path(__file__).parents[3] / "counters" / "measurements" / "priors" / "shape.toml"
TERMS = {
    "fp64_full_rate": "instruction",
    "fp64_low_rate": "instruction",
    "fp32": "instruction",
    "integer": "instruction",
    "warp_issue": "instruction",
    "shared": "byte",
    "l1": "byte",
    "l2": "byte",
    "dram": "byte",
}


@dataclass(frozen=True)
class Gpu:
    """Where a GPU's rows are: the file, its default clocks in MHz; and what its data sheet says.

    l1: the column of L1 reads. On Volta a texture transaction is no sector.
    """

    name: str
    file: str
    core_mhz: int
    memory_mhz: int
    limit_w: float
    memory: str
    has_full_rate_fp64: bool
    l1: str = "n_tex_trans"


GPUS = (
    Gpu("GTX 980", "nvdvfs_counts_gtx980_high.csv", 1100, 3600, 165, "gddr", False),
    Gpu("GTX 1080 Ti", "nvdvfs_counts_gtx1080ti.csv", 1600, 5500, 250, "gddr", False),
    Gpu("P100", "nvdvfs_counts_p100.csv", 1328, 715, 250, "hbm", True),
    Gpu("V100", "nvdvfs_counts_v100.csv", 1380, 877, 250, "hbm", True, "n_gld_trans"),
)
# Idle power over power limit, W, of boards at the clocks of a load, by kind of memory: what is public (README.md).
IDLE_W = {
    "gddr": {
        "GeForce RTX 4090": (52, 450),
        "GeForce RTX 3090, two boards": ((127 * 88.5) ** 0.5, 350),
        "RTX A5000": (78, 230),
        "Tesla K40m": (60, 245),
        "Quadro RTX 5000": (58.5, 230),
    },
    "hbm": {
        "A100-SXM4-40GB": (51.6, 400),
        "A100-PCIE-40GB": (67.3, 250),
        "A100-SXM4-80GB": (82.3, 400),
        "B300 SXM6": (183.5, 1400),
    },
}
FULL_RATE_FP64 = ("2.0", "3.5", "3.7", "6.0", "7.0", "7.2", "8.0", "9.0", "10.0")
# Matrix products on tensor cores, FP16, pJ a flop: the least and the most that was published (README.md).
TENSOR_FP16_PJ = (0.37, 2.1)
ROUNDS = 8
RUNS = 200
RUN_KERNELS = 4
LEFT_OUT_DRAWS = 40
DRAWS = 60  # of the file
NOISE = 6  # draws of prices for each drawn shape
# A measured idle power is not quite the constant of the fit: 30 % either way in nine of ten.
KNOWN_SD = float(np.log(1.3)) / 1.645
# Spreads of single prices that are tried, sd of their logarithms.
PRICE_SDS = np.arange(0.0, 1.21, 0.1)


@dataclass(frozen=True)
class Measured:
    """Kernels of one GPU at one setting. rates: (n_kernels, n_terms), in 1e12/s, so that prices are in pJ."""

    gpu: Gpu
    kernels: npt.NDArray[np.object_]
    rates: Floats
    power_w: Floats

    def rows(self, places: npt.NDArray[np.int64]) -> "Measured":
        """Some of the rows."""
        return Measured(self.gpu, self.kernels[places], self.rates[places], self.power_w[places])

    def without(self, kernel: str) -> "Measured":
        """The same without every input of one kernel."""
        return self.rows(np.flatnonzero(self.kernels != kernel))

    def drawn(self, kernels: npt.NDArray[np.object_]) -> "Measured":
        """All rows of these kernels, as often as each is named."""
        return self.rows(np.concatenate([np.flatnonzero(self.kernels == kernel) for kernel in kernels]))


def read(folder: Path) -> list[Measured]:
    """The measurements of all GPUs at their default clocks."""
    return [_read(folder, gpu) for gpu in GPUS]


def _read(folder: Path, gpu: Gpu) -> Measured:
    rows = pd.read_csv(folder / gpu.file)
    rows = rows[(rows["core_mhz"] == gpu.core_mhz) & (rows["mem_mhz"] == gpu.memory_mhz)]
    counts = [
        rows["n_fp64_thread_inst"] * gpu.has_full_rate_fp64,
        rows["n_fp64_thread_inst"] * (not gpu.has_full_rate_fp64),
        rows["n_fp32_thread_inst"] - rows["n_sfu_sp"],
        rows["n_int_thread_inst"],
        rows["n_warp_inst"],
        128 * (rows["n_shared_ld_trans"] + rows["n_shared_st_trans"]),
        32 * (rows[gpu.l1] + rows["n_gst_trans"]),
        32 * (rows["n_l2_rd_trans"] + rows["n_l2_wr_trans"]),
        32 * (rows["n_dram_rd_trans"] + rows["n_dram_wr_trans"]),
    ]
    per_second = np.stack([column.to_numpy(dtype=float) for column in counts], axis=1)
    per_second /= rows["time_ms"].to_numpy()[:, None] * 1e-3
    return Measured(gpu, rows["bench_name"].to_numpy(dtype=object), per_second * 1e-12, rows["power_w"].to_numpy())


# ---- fits


def least_absolute(columns: Floats, power_w: Floats) -> Floats:
    """The prices at or above 0 with the least sum of |predicted - measured| / measured; (n_columns,)."""
    rows, size = columns.shape
    relative = columns / power_w[:, None]
    errors = np.eye(rows)
    solution = linprog(
        np.concatenate([np.zeros(size), np.ones(2 * rows)]),
        A_eq=np.hstack([relative, errors, -errors]),
        b_eq=np.ones(rows),
    )
    return np.asarray(solution.x[:size])


def scale_and_constant(measured: Measured, dynamic_w: Floats) -> tuple[float, float]:
    """The factor on dynamic power, and the constant power in W, that suit a GPU's rows best."""
    scale, constant_w = least_absolute(np.column_stack([dynamic_w, np.ones(len(dynamic_w))]), measured.power_w)
    return float(scale), float(constant_w)


def shape(parts: list[Measured]) -> tuple[Floats, list[tuple[float, float]]]:
    """The common shape in pJ, and each GPU's scale and constant power; the scales' geometric mean is 1."""
    scales = np.ones(len(parts))
    power_w = np.concatenate([part.power_w for part in parts])
    own = np.concatenate([np.full(len(part.power_w), place) for place, part in enumerate(parts)])
    is_own = (own[:, None] == np.arange(len(parts))).astype(float)
    rates = np.concatenate([part.rates for part in parts])

    for _ in range(ROUNDS):
        prices = least_absolute(np.hstack([rates * scales[own][:, None], is_own]), power_w)[: len(TERMS)]
        fitted = [scale_and_constant(part, part.rates @ prices) for part in parts]
        # Of few kernels drawn at random, one GPU's may be without any dynamic power in the fit.
        scales = np.clip([scale for scale, _ in fitted], 0.2, 5)
        middle = np.exp(np.log(scales).mean())
        scales, prices = scales / middle, prices * middle

    constants = [constant_w for _, constant_w in fitted]
    return prices, list(zip(scales.tolist(), constants, strict=True))


def shares(parts: list[Measured], constants_w: list[float], memory: str) -> Floats:
    """Constant power over power limit of the boards with this kind of memory, or with "any": fitted, and public."""
    kinds = IDLE_W if memory == "any" else {memory: IDLE_W[memory]}
    fitted = [
        constant_w / part.gpu.limit_w
        for part, constant_w in zip(parts, constants_w, strict=True)
        if part.gpu.memory in kinds
    ]
    return np.array([*fitted, *(idle_w / limit_w for idle in kinds.values() for idle_w, limit_w in idle.values())])


def middle_share(parts: list[Measured], fitted: list[tuple[float, float]], memory: str) -> tuple[float, float]:
    """The geometric mean of `shares`, and the standard deviation of their logarithm."""
    logs = np.log(np.maximum(shares(parts, [constant_w for _, constant_w in fitted], memory), 0.05))
    return float(np.exp(logs.mean())), float(logs.std(ddof=1))


def drawn_shapes(parts: list[Measured], number: int, seed: int) -> Iterator[tuple[Floats, set[str]]]:
    """Shapes of GPUs and kernels drawn at random with replacement, and which kernels were drawn.

    Both kinds of FP64 are drawn each time, if there are both.
    """
    draw = np.random.default_rng(seed)
    names = np.array(sorted({name for part in parts for name in part.kernels}), dtype=object)
    kinds = {part.gpu.has_full_rate_fp64 for part in parts}
    while number:
        chosen = [parts[place] for place in draw.integers(len(parts), size=len(parts))]
        kernels = draw.choice(names, len(names))
        if {part.gpu.has_full_rate_fp64 for part in chosen} != kinds:
            continue
        yield shape([part.drawn(kernels) for part in chosen])[0], set(kernels)
        number -= 1


def steps(number: int) -> Floats:
    """So many numbers, spread evenly over the standard normal distribution."""
    return np.array([NormalDist().inv_cdf((place + 0.5) / number) for place in range(number)])


def spread_prices(shapes: Floats, price_sd: float, scale_sd: float, draw: np.random.Generator) -> Floats:
    """Shapes with a factor of mean 1 on each price, and one on all prices of a shape; (n_shapes, n_terms)."""
    noise = np.exp(price_sd * draw.standard_normal(shapes.shape) - price_sd**2 / 2)
    scales = np.exp(scale_sd * draw.permutation(steps(len(shapes))))
    return shapes * noise * scales[:, None]


def spread_of_scales(fitted: list[tuple[float, float]]) -> float:
    """Standard deviation of the logarithm of the GPUs' scales."""
    return float(np.std(np.log([scale for scale, _ in fitted]), ddof=1))


# ---- a GPU left out


def error(predicted: Floats, measured: Floats) -> float:
    """Mean absolute relative error in %."""
    return float(100 * np.mean(np.abs(predicted / measured - 1)))


def predict(target: Measured, others: list[Measured]) -> tuple[Floats, Floats]:
    """Dynamic power of each kernel at scale 1 and constant power by the data sheet, W, from other GPUs and kernels."""
    dynamic_w = np.empty(len(target.power_w))
    sheet_w = np.empty(len(target.power_w))
    for kernel in dict.fromkeys(target.kernels):
        seen = [other.without(kernel) for other in others]
        prices, fitted = shape(seen)
        mine = target.kernels == kernel
        dynamic_w[mine] = target.rates[mine] @ prices
        sheet_w[mine] = middle_share(seen, fitted, target.gpu.memory)[0] * target.gpu.limit_w
    return dynamic_w, sheet_w


def of_own_run(model_w: Floats, power_w: Floats) -> tuple[Floats, Floats]:
    """Modelled and metered power of kernels in runs whose total joules are metered; by the model, and by time alone.

    Returns predicted over measured, (n_runs * n_kernels,).
    """
    by_model, by_time = [], []
    for kernels, of_time in runs(len(power_w)):
        mean_w = of_time @ power_w[kernels]
        factor = mean_w / (of_time @ model_w[kernels])
        by_model.append(factor * model_w[kernels] / power_w[kernels])
        by_time.append(mean_w / power_w[kernels])
    return np.concatenate(by_model), np.concatenate(by_time)


def runs(number: int) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    """Runs of some of so many kernels: which, and their shares of time."""
    draw = np.random.default_rng(2026)
    for _ in range(RUNS):
        yield draw.choice(number, RUN_KERNELS, replace=False), draw.dirichlet(np.ones(RUN_KERNELS))


def covering(ratio: Floats, share: float = 0.9) -> float:
    """The factor x for which measured power lies within x/÷ of the predicted one for so many kernels."""
    return float(np.exp(np.quantile(np.abs(np.log(ratio)), share)))


@dataclass(frozen=True)
class LeftOut:
    """A GPU as if it had never been measured.

    sheet_w, idle_w: constant power of each kernel by the data sheet, and with idle power known. shapes: drawn at
    random, (n_draws, n_terms). unseen: which draws lack which kernels, (n_draws, n_kernels).
    """

    measured: Measured
    dynamic_w: Floats
    sheet_w: Floats
    sheet_sd: float
    idle_w: Floats
    limit_only_w: float
    scale_sd: float
    shapes: Floats
    unseen: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, target: Measured, others: list[Measured]) -> "LeftOut":
        """The GPU `target`, predicted from `others`."""
        dynamic_w, sheet_w = predict(target, others)
        drawn = list(drawn_shapes(others, LEFT_OUT_DRAWS, seed=7))
        _, fitted = shape(others)
        limit_only = np.mean([np.median(other.power_w) / other.gpu.limit_w for other in others]) * target.gpu.limit_w
        return cls(
            measured=target,
            dynamic_w=dynamic_w,
            sheet_w=sheet_w,
            sheet_sd=middle_share(others, fitted, target.gpu.memory)[1],
            # The constant that suits its own kernels stands in for a measured idle power.
            idle_w=np.full(len(dynamic_w), scale_and_constant(target, dynamic_w)[1]),
            limit_only_w=float(limit_only),
            scale_sd=spread_of_scales(fitted),
            shapes=np.array([prices for prices, _ in drawn]),
            unseen=np.array([[kernel not in seen for kernel in target.kernels] for _, seen in drawn]),
        )

    def replicas_w(self, price_sd: float, constant_w: Floats, constant_sd: float) -> Floats:
        """Power of each kernel by drawn shapes and constants; (n_draws * NOISE, n_kernels)."""
        draw = np.random.default_rng(5)
        prices = spread_prices(np.repeat(self.shapes, NOISE, axis=0), price_sd, self.scale_sd, draw)
        constants = np.exp(constant_sd * draw.permutation(steps(len(prices))))
        return prices @ self.measured.rates.T + constants[:, None] * constant_w

    def covered(self, price_sd: float, constant_w: Floats, constant_sd: float) -> float:
        """The share of kernels whose measured power is in the 90 % interval of the draws that have not seen them."""
        replicas_w = self.replicas_w(price_sd, constant_w, constant_sd)
        unseen = np.repeat(self.unseen, NOISE, axis=0)
        edges = [np.percentile(power_w[new], [5, 95]) for power_w, new in zip(replicas_w.T, unseen.T, strict=True)]
        low, high = np.transpose(edges)
        return float(np.mean((low <= self.measured.power_w) & (self.measured.power_w <= high)))

    def covered_of_own_run(self, price_sd: float) -> float:
        """The share of kernels of metered runs that are in the 90 % interval, if each draw has its own factor.

        Constant power is that of the data sheet. Draws may have seen the kernels here, on the other GPUs.
        """
        replicas_w = self.replicas_w(price_sd, self.sheet_w, self.sheet_sd)
        power_w = self.measured.power_w
        inside = []
        for kernels, of_time in runs(len(power_w)):
            factors = (of_time @ power_w[kernels]) / (replicas_w[:, kernels] @ of_time)
            low, high = np.percentile(factors[:, None] * replicas_w[:, kernels], [5, 95], axis=0)
            inside.append((low <= power_w[kernels]) & (power_w[kernels] <= high))
        return float(np.mean(inside))


def spread_of_prices(parts: list[LeftOut]) -> float:
    """The least spread of single prices with which intervals cover nine of ten kernels of metered runs."""
    for price_sd in PRICE_SDS:
        if np.mean([part.covered_of_own_run(price_sd) for part in parts]) >= 0.9:
            break
    return float(price_sd)


# ---- what is printed


def show_joint(parts: list[Measured]) -> None:
    """Print the shape of all GPUs together."""
    prices, fitted = shape(parts)
    print("One shape for all, pJ:", ", ".join(f"{term} {price:.3g}" for term, price in zip(TERMS, prices, strict=True)))
    for part, (scale, constant_w) in zip(parts, fitted, strict=True):
        of_all = error(scale * (part.rates @ prices) + constant_w, part.power_w)
        columns = np.column_stack([part.rates, np.ones(len(part.power_w))])
        alone = error(columns @ least_absolute(columns, part.power_w), part.power_w)
        errors = f"error {of_all:.1f} %, own prices {alone:.1f} %"
        print(f"{part.gpu.name:12} scale {scale:.2f}, {constant_w:5.1f} W constant; {errors}")


COLUMNS = ("limit only", "data sheet", "idle known", "own run", "idle -30 %", "idle +30 %", "own, sheet", "by time")


def errors_of(part: LeftOut) -> list[float]:
    """Mean errors in % by `COLUMNS`."""
    power_w, dynamic_w = part.measured.power_w, part.dynamic_w
    constants_w = (part.idle_w, 0.7 * part.idle_w, 1.3 * part.idle_w, part.sheet_w)
    own_runs = [of_own_run(dynamic_w + constant_w, power_w)[0] for constant_w in constants_w]
    _, by_time = of_own_run(power_w, power_w)
    return [
        error(np.full(len(power_w), part.limit_only_w), power_w),
        error(dynamic_w + part.sheet_w, power_w),
        error(dynamic_w + part.idle_w, power_w),
        *(100 * float(np.mean(np.abs(ratio - 1))) for ratio in (*own_runs, by_time)),
    ]


def show_left_out(parts: list[LeftOut]) -> None:
    """Print the errors of each GPU as if it had never been measured."""
    print("\nGPU left out: mean error of power, or of a kernel's joules, %")
    print_table(COLUMNS, parts, [errors_of(part) for part in parts], ".1f")


def show_intervals(parts: list[LeftOut]) -> None:
    """Print which factors cover nine kernels of ten, and how many kernels 90 % intervals cover.

    The spread of prices that a GPU's intervals take is that which suits the three others.
    """
    factors, shares = [], []
    for part in parts:
        power_w, dynamic_w = part.measured.power_w, part.dynamic_w
        ratios = [(dynamic_w + constant_w) / power_w for constant_w in (part.sheet_w, part.idle_w)]
        factors.append([covering(ratio) for ratio in (*ratios, of_own_run(dynamic_w + part.idle_w, power_w)[0])])
        price_sd = spread_of_prices([other for other in parts if other is not part])
        of_sheet = part.covered(price_sd, part.sheet_w, part.sheet_sd)
        with_idle = part.covered(price_sd, part.idle_w, KNOWN_SD)
        shares.append([100 * of_sheet, 100 * with_idle, 100 * part.covered_of_own_run(price_sd)])
    kinds = ("data sheet", "idle known", "own run")
    print("\nNine of ten kernels are within x/÷")
    print_table(kinds, parts, factors, ".2f")
    print("\nKernels in 90 % intervals, %")
    print_table(kinds, parts, shares, ".0f")
    print(f"\nSpread of single prices for the file: {spread_of_prices(parts):.1f}")


def print_table(columns: tuple[str, ...], parts: list[LeftOut], rows: list[list[float]], form: str) -> None:
    """Print a row a GPU, and their mean."""
    names = [*(part.measured.gpu.name for part in parts), "mean"]
    print(f"{'':12}" + "".join(f"{column:>12}" for column in columns))
    for name, row in zip(names, [*rows, np.mean(rows, axis=0)], strict=True):
        print(f"{name:12}" + "".join(f"{value:12{form}}" for value in row))


# ---- the file


def file_text(parts: list[Measured], price_sd: float) -> str:
    """The file of the shape."""
    prices, fitted = shape(parts)
    low_pj, high_pj = TENSOR_FP16_PJ
    middle_pj = (low_pj * high_pj) ** 0.5
    draw = np.random.default_rng(2026)
    shapes = np.array([drawn for drawn, _ in drawn_shapes(parts, DRAWS, seed=2026)])
    replicas = {
        **_named(spread_prices(shapes, price_sd, spread_of_scales(fitted), draw).T),
        "tensor_fp16_flop": middle_pj * (high_pj / low_pj) ** (draw.permutation(steps(DRAWS)) / (2 * 1.645)),
        "constant_steps": draw.permutation(steps(DRAWS)),
    }
    prices_pj = {**_named(prices), "tensor_fp16_flop": middle_pj}
    lines = [HEAD, "[pj]", *(f"{name} = {price:.3g}" for name, price in prices_pj.items())]
    lines += ["", FP64, "[fp64]", f"full_rate = {json.dumps(FULL_RATE_FP64)}"]
    lines += ["", CONSTANT, "[constant]", *_constants(parts, fitted), f"idle_known_sd = {KNOWN_SD:.2f}"]
    lines += ["", REPLICAS, "[replicas]", *(f"{name} = {_list(values)}" for name, values in replicas.items())]
    return "\n".join(lines) + "\n"


def _named(values: Floats) -> dict[str, Floats]:
    return {f"{term}_{unit}": value for (term, unit), value in zip(TERMS.items(), values, strict=True)}


def _constants(parts: list[Measured], fitted: list[tuple[float, float]]) -> Iterator[str]:
    for memory in (*IDLE_W, "any"):
        share, sd = middle_share(parts, fitted, memory)
        yield f"{memory} = {{ share = {share:.3f}, sd = {sd:.2f} }}"


def _list(values: Floats) -> str:
    return "[" + ", ".join(f"{value:.3g}" for value in values) + "]"


HEAD = """\
# Prices of a GPU that nobody measured, in pJ (docs/costs.md), and how far off they may be.
#
# Instructions and bytes: one shape for four GPUs, least absolute relative errors of power on the counts, times and
# powers of NV-DVFS-Benchmark (Q. Wang, X. Chu, ICPADS 2018; csvs/raw of https://github.com/blackjack2015/NV-DVFS-Benchmark
# at commit 56df884), at the default clocks of a GTX 980, a GTX 1080 Ti, a P100 and a V100. Tensor work: the middle of
# what was published. `python docs/studies/power/transfer.py DATA --write` makes this file again.
"""
FP64 = """\
# Compute capabilities with units for FP64 at a half or a third of the rate of FP32 (CUDA C++ Programming Guide,
# throughput of native arithmetic instructions). FP64 on all others pays the price of the low rate."""
CONSTANT = """\
# Constant power as a share of the board's power limit, by its kind of memory, and the standard deviation of the share's
# logarithm. idle_known_sd: that of a constant power which was measured as idle power."""
REPLICAS = """\
# Shapes of GPUs and kernels drawn at random, times a factor drawn for each price and one for the GPU as a whole; prices
# of tensor work drawn from the published range. Constant power is multiplied by exp(sd * step)."""


if __name__ == "__main__":
    measured = read(Path(sys.argv[1]))
    left_out = [LeftOut.of(part, [other for other in measured if other is not part]) for part in measured]
    if "--write" in sys.argv:
        FILE.write_text(file_text(measured, spread_of_prices(left_out)))
    elif "--check" in sys.argv:
        sys.exit(FILE.read_text() != file_text(measured, spread_of_prices(left_out)))
    else:
        show_joint(measured)
        show_left_out(left_out)
        show_intervals(left_out)
