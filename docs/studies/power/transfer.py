"""How well one shape of prices carries over to a GPU that was not measured.

    python docs/studies/power/transfer.py DATA          DATA: the folder with nvdvfs_counts_*.csv (README.md)

Power of kernel k on GPU g:  P = pi_g + s_g * sum_i c_i r_ik, with one shape c for all GPUs, a scale s_g and a constant
power pi_g for each, and the rates r of counted classes in 1/s. Fits minimise the sum of absolute relative errors, with
c, s and pi at or above 0. A GPU that is predicted was left out of the shape, and so was the kernel that is predicted,
on every GPU. "Metered run": the joules of a run of some kernels are known, and one factor makes the model agree.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import linprog

Floats = npt.NDArray[np.float64]

TERMS = ("fp64", "fp32", "integer", "warp_issue", "shared", "l1", "l2", "dram")
# File, core MHz, memory MHz, board power limit in W, column of L1 reads: on Volta a texture transaction is no sector.
GPUS = {
    "GTX 980": ("nvdvfs_counts_gtx980_high.csv", 1100, 3600, 165.0, "n_tex_trans"),
    "GTX 1080 Ti": ("nvdvfs_counts_gtx1080ti.csv", 1600, 5500, 250.0, "n_tex_trans"),
    "P100": ("nvdvfs_counts_p100.csv", 1328, 715, 250.0, "n_tex_trans"),
    "V100": ("nvdvfs_counts_v100.csv", 1380, 877, 250.0, "n_gld_trans"),
}
ROUNDS = 12
DRAWS = 200
RUN_KERNELS = 4


@dataclass(frozen=True)
class Measured:
    """Kernels of one GPU at one setting. rates: (n_kernels, n_terms), in 1e12/s, so that prices are in pJ."""

    name: str
    limit_w: float
    kernels: npt.NDArray[np.object_]
    rates: Floats
    power_w: Floats

    def without(self, kernel: str) -> "Measured":
        """The same without every input of one kernel."""
        keep = self.kernels != kernel
        return Measured(self.name, self.limit_w, self.kernels[keep], self.rates[keep], self.power_w[keep])


def read(folder: Path) -> list[Measured]:
    """The measurements of all GPUs at their default clocks."""
    return [_read(folder, name, *columns) for name, columns in GPUS.items()]


def _read(folder: Path, name: str, file: str, core_mhz: int, memory_mhz: int, limit_w: float, l1: str) -> Measured:
    rows = pd.read_csv(folder / file)
    rows = rows[(rows["core_mhz"] == core_mhz) & (rows["mem_mhz"] == memory_mhz)]
    counts = [
        rows["n_fp64_thread_inst"],
        rows["n_fp32_thread_inst"] - rows["n_sfu_sp"],
        rows["n_int_thread_inst"],
        rows["n_warp_inst"],
        128 * (rows["n_shared_ld_trans"] + rows["n_shared_st_trans"]),
        32 * (rows[l1] + rows["n_gst_trans"]),
        32 * (rows["n_l2_rd_trans"] + rows["n_l2_wr_trans"]),
        32 * (rows["n_dram_rd_trans"] + rows["n_dram_wr_trans"]),
    ]
    per_second = np.stack([column.to_numpy(dtype=float) for column in counts], axis=1)
    per_second /= rows["time_ms"].to_numpy()[:, None] * 1e-3
    return Measured(
        name, limit_w, rows["bench_name"].to_numpy(dtype=object), per_second * 1e-12, rows["power_w"].to_numpy()
    )


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


def shape(gpus: list[Measured]) -> tuple[Floats, dict[str, tuple[float, float]]]:
    """The common shape in pJ, and each GPU's scale and constant power; the scales' geometric mean is 1."""
    scales = np.ones(len(gpus))
    power_w = np.concatenate([gpu.power_w for gpu in gpus])
    own = np.concatenate([np.full(len(gpu.power_w), place) for place, gpu in enumerate(gpus)])
    is_own = (own[:, None] == np.arange(len(gpus))).astype(float)
    rates = np.concatenate([gpu.rates for gpu in gpus])

    for _ in range(ROUNDS):
        prices = least_absolute(np.hstack([rates * scales[own][:, None], is_own]), power_w)[: len(TERMS)]
        fitted = [least_absolute(np.column_stack([gpu.rates @ prices, np.ones(len(gpu.power_w))]), gpu.power_w) for gpu in gpus]
        scales = np.array([scale for scale, _ in fitted])
        middle = np.exp(np.log(scales).mean())
        scales, prices = scales / middle, prices * middle

    constants = [constant for _, constant in fitted]
    return prices, {gpu.name: (scale, constant) for gpu, scale, constant in zip(gpus, scales, constants, strict=True)}


def error(predicted: Floats, measured: Floats) -> float:
    """Mean absolute relative error in %."""
    return float(100 * np.mean(np.abs(predicted / measured - 1)))


def predict(gpu: Measured, others: list[Measured]) -> tuple[Floats, Floats]:
    """Dynamic power of each kernel at scale 1, and how much constant power is of the limit, from other GPUs and kernels."""
    dynamic_w = np.empty(len(gpu.power_w))
    share = np.empty(len(gpu.power_w))
    for kernel in dict.fromkeys(gpu.kernels):
        seen = [other.without(kernel) for other in others]
        prices, fitted = shape(seen)
        mine = gpu.kernels == kernel
        dynamic_w[mine] = gpu.rates[mine] @ prices
        share[mine] = np.mean([fitted[other.name][1] / other.limit_w for other in others])
    return dynamic_w, share


def of_own_run(model_w: Floats, power_w: Floats, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Modelled and metered power of kernels in runs whose total joules are metered; by the model, and by time alone.

    Each run has some kernels with random shares of its time. Returns predicted over measured, (n_draws * n_kernels,).
    """
    by_model, by_time = [], []
    for _ in range(DRAWS):
        kernels = draw.choice(len(power_w), RUN_KERNELS, replace=False)
        shares = draw.dirichlet(np.ones(RUN_KERNELS))
        mean_w = shares @ power_w[kernels]
        factor = mean_w / (shares @ model_w[kernels])
        by_model.append(factor * model_w[kernels] / power_w[kernels])
        by_time.append(mean_w / power_w[kernels])
    return np.concatenate(by_model), np.concatenate(by_time)


def covering(ratio: Floats, share: float = 0.9) -> float:
    """The factor x for which measured power lies within x/÷ of the predicted one for so many kernels."""
    return float(np.exp(np.quantile(np.abs(np.log(ratio)), share)))


def joint(gpus: list[Measured]) -> None:
    """Print the shape of all GPUs together."""
    prices, fitted = shape(gpus)
    print("One shape for all, pJ:", ", ".join(f"{term} {price:.3g}" for term, price in zip(TERMS, prices, strict=True)))
    for gpu in gpus:
        scale, constant_w = fitted[gpu.name]
        together = error(scale * (gpu.rates @ prices) + constant_w, gpu.power_w)
        columns = np.column_stack([gpu.rates, np.ones(len(gpu.power_w))])
        alone = error(columns @ least_absolute(columns, gpu.power_w), gpu.power_w)
        print(f"{gpu.name:12} scale {scale:.2f}, {constant_w:5.1f} W constant; error {together:.1f} %, own prices {alone:.1f} %")


def left_out(gpus: list[Measured]) -> None:
    """Print errors and intervals for each GPU as if it had never been measured."""
    draw = np.random.default_rng(2026)
    print(f"\n{'left out':12} {'limit only':>10} {'data sheet':>10} {'idle known':>10} {'own run':>8} {'by time':>8}   90 % within x/÷")
    rows = []
    for gpu in gpus:
        others = [other for other in gpus if other is not gpu]
        dynamic_w, share = predict(gpu, others)
        # The constant that suits its own kernels stands in for a measured idle power.
        _, idle_w = least_absolute(np.column_stack([dynamic_w, np.ones(len(dynamic_w))]), gpu.power_w)
        sheet_w = dynamic_w + share * gpu.limit_w
        known_w = dynamic_w + idle_w
        limit = np.mean([np.median(other.power_w) / other.limit_w for other in others]) * gpu.limit_w
        by_model, by_time = of_own_run(known_w, gpu.power_w, draw)
        row = [
            error(np.full(len(gpu.power_w), limit), gpu.power_w),
            error(sheet_w, gpu.power_w),
            error(known_w, gpu.power_w),
            100 * float(np.mean(np.abs(by_model - 1))),
            100 * float(np.mean(np.abs(by_time - 1))),
        ]
        within = [covering(sheet_w / gpu.power_w), covering(known_w / gpu.power_w), covering(by_model)]
        rows.append([*row, *within])
        print(_line(gpu.name, row, within), flush=True)
    means = np.mean(rows, axis=0)
    print(_line("mean", means[:5], means[5:]))


def _line(name: str, row: list[float] | Floats, within: list[float] | Floats) -> str:
    cells = " ".join(f"{value:>{width}.1f}" for value, width in zip(row, (10, 10, 10, 8, 8), strict=True))
    return f"{name:12} {cells}   {', '.join(f'{factor:.2f}' for factor in within)}"


if __name__ == "__main__":
    measured = read(Path(sys.argv[1]))
    joint(measured)
    left_out(measured)
