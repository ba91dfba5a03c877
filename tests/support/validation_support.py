"""Measurements made from a known model, with and without noise."""

import numpy as np
import pandas as pd
from msgspec import convert

from eprof.commands.validate.document import Validation
from eprof.commands.validate.study import Scores
from eprof.lab.measurements import Measurements

PRICES = {"fp32_instruction": 20.0, "integer_instruction": 30.0, "l2_byte": 25.0, "dram_byte": 150.0}
DOMAINS = {**dict.fromkeys(PRICES, "core"), "dram_byte": "memory"}
CORES, MEMORIES = (500.0, 700.0, 900.0, 1000.0), (500.0, 800.0, 1000.0)
CONSTANT_W = 12.0


def volts(mhz):
    """Relative voltage of a clock; 1 at 1000 MHz."""
    return 0.7 + 0.3 * (np.asarray(mhz) / 1000.0) ** 2


def made(benchmarks=8, cores=CORES, memories=MEMORIES, noise=0.0, per_setting=0.0, seed=0):
    """Measurements of random kernels: P = sum rate c V^2 + constant, times by a p-norm of core and memory time.

    noise: of each row; per_setting: one factor for all rows of a setting (sd of both, relative).
    """
    random = np.random.default_rng(seed)
    kernels = []
    for at in range(benchmarks):
        work = {name: 10 ** random.uniform(8.0, 9.3) for name in PRICES}
        kernels.append((f"kernel{at}", work, random.uniform(0.002, 0.01)))
    off = {(core, memory): 1 + per_setting * random.standard_normal() for core in cores for memory in memories}
    rows, rates = [], []
    for name, work, least_s in kernels:
        for memory in memories:
            for core in cores:
                core_s, memory_s = least_s * 1000 / core, work["dram_byte"] / (50e6 * memory)
                seconds = (core_s**3 + memory_s**3) ** (1 / 3)
                per_second = {term: count / seconds / 1e9 for term, count in work.items()}
                power = CONSTANT_W
                for term, rate in per_second.items():
                    power += rate * PRICES[term] * 1e-3 * float(volts(core if DOMAINS[term] == "core" else memory)) ** 2
                power *= off[core, memory] * (1 + noise * random.standard_normal())
                rows.append((name, name, 0, core, memory, seconds, power, np.nan, np.nan, len(rows) + 2))
                rates.append(per_second)
    columns = [
        "benchmark",
        "kernel",
        "threads",
        "core_mhz",
        "memory_mhz",
        "time_s",
        "power_w",
        "core_v",
        "memory_v",
        "line",
    ]
    frame = pd.DataFrame(rows, columns=columns)
    return Measurements(frame, pd.DataFrame(rates), DOMAINS, "counts", (max(cores), max(memories)), (), ("made.csv",))


def as_csv(measurements, path):
    """Write measurements as a file that the shipped mapping of nvprof counts reads."""
    rows, counts = measurements.rows, measurements.counts()
    zero = pd.Series(0, index=rows.index)
    frame = pd.DataFrame(
        {
            "bench_id": pd.factorize(rows["benchmark"])[0],
            "bench_name": rows["benchmark"],
            "arg_set": "a",
            "kernel": rows["kernel"],
            "core_mhz": rows["core_mhz"],
            "mem_mhz": rows["memory_mhz"],
            "time_ms": rows["time_s"] * 1e3,
            "power_w": rows["power_w"],
            "energy_mj": rows["power_w"] * rows["time_s"] * 1e3,
            "n_warp_inst": zero,
            "n_int_thread_inst": counts["integer_instruction"],
            "n_fp32_thread_inst": counts["fp32_instruction"],
            "n_fp64_thread_inst": zero,
            "n_flop_sp": counts["fp32_instruction"],
            "n_fma_sp": zero,
            "n_sfu_sp": zero,
            "n_flop_dp": zero,
            "n_fma_dp": zero,
            "n_cf_inst": zero,
            "n_shared_ld_trans": zero,
            "n_shared_st_trans": zero,
            "n_gld_trans": zero,
            "n_gst_trans": zero,
            "n_tex_trans": zero,
            "n_l2_rd_trans": counts["l2_byte"] / 32,
            "n_l2_wr_trans": zero,
            "n_dram_rd_trans": counts["dram_byte"] / 32,
            "n_dram_wr_trans": zero,
            "achieved_occupancy": 0.5,
            "sm_activity": 0.9,
        }
    )
    frame.to_csv(path, index=False)
    return path


TABLE = """schema = 1
name = "made"
devices = ["Made GPU"]
device = "Made GPU"
source = "numbers of a test"
books = "served"
setting = [
{settings}
]
[pj_per_v2]
core = {{ fp32_instruction = 20.0, integer_instruction = 30.0, l2_byte = 25.0 }}
memory = {{ dram_byte = 150.0 }}
[constant_power]
w = 12.0
why = "made"
[charge]
"""


def table(cores=CORES, memories=MEMORIES):
    """The text of a cost table with the known model: it prices these measurements exactly."""
    lines = [
        f"{{ core_mhz = {core:g}, core_mv = {1e3 * float(volts(core)):.10g}, memory_mhz = {memory:g}, "
        f"memory_mv = {1e3 * float(volts(memory)):.10g}{', default = true' if (core, memory) == (cores[-1], memories[-1]) else ''} }},"
        for core in cores
        for memory in memories
    ]
    return TABLE.format(settings="\n".join(lines)) + _charges()


def _charges():
    """Every word of the vocabulary: priced where a price is there, else nothing."""
    from eprof.base.vocabulary import COUNTS

    priced = {
        "fp32_fma": "fp32_instruction", "fp32_add": "fp32_instruction", "fp32_mul": "fp32_instruction",
        "fp32_other": "fp32_instruction", "fp32": "fp32_instruction", "integer": "integer_instruction",
        "l2_read": "l2_byte", "l2_write": "l2_byte", "dram_read": "dram_byte", "dram_write": "dram_byte",
    }  # fmt: skip
    lines = []
    for word in COUNTS:
        if word in priced:
            lines.append(f'{word} = {{ formula = "{priced[word]}", why = "made" }}')
        else:
            lines.append(f'{word} = {{ nothing = "made" }}')
    return "\n".join(lines) + "\n"


def typed(saved):
    """The document of a saved `eprof.validation/1`."""
    measured = dict(saved)
    for name in ("by_setting", "by_benchmark"):
        measured[name] = [
            {**entry, "scores": {key: entry[key] for key in Scores.__struct_fields__}} for entry in saved[name]
        ]
    return convert({**saved, "measured": measured}, Validation)
