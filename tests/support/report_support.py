"""Builders of documents `eprof.profile/1` for the tests of the report: consistent numbers, invented kernels."""

import random
from functools import cache
from typing import Any

from eprof.base.vocabulary import BYTES, COMPUTATION_WORDS, COUNTS, NONE, Mark, mark_names, marks_of_names
from eprof.commands.report.page import html
from eprof.profile.rooflines import PARTS, Machine, machine_data

# pJ for each, at Jetson TK1's 852/924 MHz ([FMM] Table I); an FP instruction is charged as two flops there.
PRICES = {
    "fp64_fma": 278.2,
    "fp64_add": 278.2,
    "fp64_mul": 278.2,
    "fp32_fma": 58.0,
    "fp32_add": 58.0,
    "fp32_mul": 58.0,
    "integer": 60.0,
    "special": 116.0,
    "shared_read": 35.4,
    "shared_write": 35.4,
    "l1_read": 35.4,
    "l1_write": 35.4,
    "l2_read": 90.2,
    "l2_write": 90.2,
    "dram_read": 377.0,
    "dram_write": 377.0,
}
FREE = ("fp64_other", "fp32_other", "fp16_fma", "fp16_add", "fp16_mul", "conversion", "control", "load_store", "misc")
POWER = 6.79
HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    '"onmouseover="window.hacked = 1" x="',
    "<svg/onload=window.hacked=1>\u2028{{7*7}}{% for x in y %}",
    '=HYPERLINK("//evil.example/?x=1","k")',
    "<img src=x onerror=window.hacked=1><!--",
    "a\x00b\x1b[31m\u202egnp.exe\u2066 ]]> &lt;b&gt; \ud800 \U0001f525",
    "' + alert(1) + '${alert(1)}`",
    "@SUM(1)\t+cmd|' /C calc'!A0",
]
FMM = ["U (near field, P2P)", "V (M2L, FFT + Hadamard)", "X (P2L)", "W (M2P)", "UP (P2M, M2M)", "DOWN (L2L, L2P)"]

Cell = dict[str, Any]


def counts_of(scale: float, flavour: float, seed: int) -> dict[str, float]:
    """Counts of an invented kernel. scale: flops; flavour: 0 all arithmetic .. 1 all memory."""
    dice = random.Random(seed)
    work, traffic = scale * (1.05 - flavour), scale * (0.05 + flavour)
    shares = {
        "fp64_fma": 0.02 * work,
        "fp64_add": 0.01 * work,
        "fp64_mul": 0.01 * work,
        "fp32_fma": 0.9 * work,
        "fp32_add": 0.35 * work,
        "fp32_mul": 0.2 * work,
        "integer": 0.9 * scale,
        "special": 0.12 * work,
        "shared_read": 2.6 * work,
        "shared_write": 0.4 * work,
        "l1_read": 1.1 * scale,
        "l2_read": 0.7 * scale,
        "l2_write": 0.2 * scale,
        "dram_read": 0.6 * traffic,
        "dram_write": 0.2 * traffic,
        "load_store": 0.5 * scale,
        "control": 0.2 * scale,
        "conversion": 0.01 * scale,
        "misc": 0.3 * scale,
    }
    whole = {name: float(round(value * dice.uniform(0.7, 1.4))) for name, value in shares.items()}
    zeros = dict.fromkeys(("fp16_fma", "fp16_add", "fp16_mul", "fp64_other", "fp32_other", "l1_write"), 0.0)
    values = zeros | whole
    return {name: values[name] for name in COUNTS if name in values}


def cell(name: str, value: float | None, marks: Mark = NONE, priced: bool = True) -> Cell:
    """A count with its energy, as `document.py` makes it."""
    price = PRICES.get(name, 0.0 if name in FREE else None) if priced else None
    if name.startswith("l1") and value and priced:
        marks |= Mark.ASSUMED
    energy = None if value is None or (price is None and value) else value * (price or 0.0) * 1e-12
    lost = Mark.MISSING if priced and energy is None else NONE
    if not priced:
        energy = None
    return {"value": value, "unit": COUNTS[name].unit, "energy_j": energy, "marks": mark_names(marks | lost)}


def kernel(
    name: str,
    values: dict[str, float | None],
    time_s: float | None,
    *,
    launches: int = 1,
    device: str | None = "Jetson TK1 (0)",
    marks: dict[str, Mark] | None = None,
    time_marks: Mark = NONE,
    priced: bool = True,
) -> Cell:
    """A kernel whose parts add up."""
    marks = marks or {}
    cells = {count: cell(count, value, marks.get(count, NONE), priced) for count, value in values.items()}
    constant = time_s * POWER if time_s is not None and priced else None
    parts = {
        "computation": _sum(cells, COMPUTATION_WORDS),
        "data": _sum(cells, BYTES),
        "constant": constant,
    }
    part_marks = {
        "computation": _marks(cells, COMPUTATION_WORDS),
        "data": _marks(cells, BYTES),
        "constant": time_marks | (Mark.MISSING if time_s is None else NONE),
    }
    if not priced:
        part_marks = dict.fromkeys(part_marks, Mark.MISSING)
    known = [value for value in parts.values() if value is not None]
    total = sum(known) if known else None
    joined = part_marks["computation"] | part_marks["data"] | part_marks["constant"]
    return {
        "name": name,
        "device": device,
        "launches": launches,
        "time_s": time_s,
        "time_marks": mark_names(time_marks | (Mark.MISSING if time_s is None else NONE)),
        "power_w": total / time_s if total is not None and time_s else None,
        "counts": cells,
        "energy_j": {**parts, "total": total, "measured": None},
        "energy_marks": {key: mark_names(mark) for key, mark in {**part_marks, "total": joined}.items()},
        "intensity_flop_per_byte": _intensity(values),
        "marks": mark_names(joined),
    }


def _sum(cells: dict[str, Cell], family: tuple[str, ...]) -> float | None:
    known = [cells[name]["energy_j"] for name in family if name in cells and cells[name]["energy_j"] is not None]
    return sum(known) if known else None


def _marks(cells: dict[str, Cell], family: tuple[str, ...]) -> Mark:
    found = NONE
    for name in family:
        if name in cells and (cells[name]["energy_j"] or cells[name]["energy_j"] is None):
            found |= marks_of_names(cells[name]["marks"])
    return found


def _intensity(values: dict[str, float | None]) -> float | None:
    traffic = (values.get("dram_read") or 0) + (values.get("dram_write") or 0)
    if any(values.get(count.name) is None for count in COUNTS.values() if count.flops) or not traffic:
        return None
    return sum((values[count.name] or 0) * count.flops for count in COUNTS.values() if count.flops) / traffic


def document(kernels: list[Cell], *, priced: bool = True, warnings: tuple[str, ...] = (), **changes: Any) -> Cell:
    """A whole document around kernels: totals, provenance, a cost table."""
    labels = list(dict.fromkeys(one["device"] for one in kernels)) or [None]
    devices = [
        {
            "name": (label or "").partition(" (")[0] or None,
            "index": at,
            "capability": "3.2",
            "capability_from": "device name",
        }
        for at, label in enumerate(labels)
    ]
    parts = {
        part: _total(one["energy_j"][part] for one in kernels) for part in ("computation", "data", "constant", "total")
    }
    part_marks = {
        part: mark_names(_joined(one["energy_marks"][part] for one in kernels))
        for part in ("computation", "data", "constant", "total")
    }
    time_s = _total(one["time_s"] for one in kernels)
    order = sorted(kernels, key=lambda one: (-(one["energy_j"]["total"] or 0), -(one["time_s"] or 0), one["name"]))
    made = {
        "schema": "eprof.profile/1",
        "eprof": "0.1.0",
        "title": "fmm --n 131072 --s 128",
        "created_utc": "2026-11-21T14:02:11Z",
        "command_line": ["eprof", "report", "logs/fmm metrics.csv", "logs/fmm-trace.csv", "--costs", "jetson-tk1"],
        "inputs": [
            _input("logs/fmm metrics.csv", "nvprof-metrics-summary"),
            _input("logs/fmm-trace.csv", "nvprof-gpu-trace"),
        ],
        "device": devices[0],
        "devices": devices,
        "definition": {
            "name": "nvprof/kepler-3.x",
            "source": "CUDA 10.2 Profiler User's Guide, metrics for capability 3.x.",
        },
        "costs": costs() if priced else None,
        "time_s": time_s,
        "time_marks": mark_names(_joined(one["time_marks"] for one in kernels)),
        "time_from": "the GPU trace" if time_s is not None else None,
        "power_w": parts["total"] / time_s if parts["total"] is not None and time_s else None,
        "launches": sum(one["launches"] for one in kernels),
        "energy_j": {**parts, "measured": None},
        "energy_marks": part_marks,
        "counts": _total_counts(kernels),
        "intensity_flop_per_byte": _whole_intensity(kernels),
        "marks": part_marks["total"],
        **(_modelled(order, parts, time_s) if priced and parts["total"] else {}),
        "warnings": list(warnings),
        "kernels": order,
    }
    return {**made, **changes}


def _modelled(kernels: list[Cell], parts: Cell, time_s: float | None) -> Cell:
    """Limits, clocks and answers as `document.py` makes them; consistent where the page compares, else invented."""
    made = Machine("jetson-tk1", "NVIDIA Jetson TK1", "852/924", "fp32", 327.2e9, 14.78e9, 29e-12, 377e-12, POWER)
    found: Cell = {"limits": {"machines": [machine_data(made)], "kernels": [_limits(one, made) for one in kernels]}}
    if time_s:
        found["clocks"] = _clocks(parts, time_s)
    answer = {
        "asked": False,
        "assumes": "times stay as they are",
        "modelled": True,
        "time_s": time_s,
        "marks": ["estimated"],
    }
    found["what_if"] = [
        {
            "question": f"pi0={factor}",
            "says": f"constant power of {POWER * factor:.3g} W instead of {POWER:.3g} W",
            **answer,
            "energy_j": {**parts, "total": parts["total"] - (1 - factor) * (parts["constant"] or 0.0)},
            "change_j": -(1 - factor) * (parts["constant"] or 0.0),
            "change_share": -(1 - factor) * (parts["constant"] or 0.0) / parts["total"],
            "time_share": 0.0 if time_s else None,
        }
        for factor in (0.5, 0.25, 0.75, 1.25)
    ]
    return found


def _limits(one: Cell, machine: Machine) -> Cell:
    counts = {name: cell["value"] or 0.0 for name, cell in one["counts"].items()}
    work = sum(COUNTS[name].flops * value for name, value in counts.items())
    moved = counts.get("dram_read", 0.0) + counts.get("dram_write", 0.0)
    roof = max(work / machine.peak_flop_per_s, moved / machine.dram_byte_per_s)
    time_s, joules = one["time_s"], one["energy_j"]
    constant = joules["constant"] or 0.0
    waiting = constant * max(0.0, 1 - roof / time_s) if time_s else 0.0
    parts = dict.fromkeys(PARTS, 0.0)
    parts |= {"dram": moved * 377e-12, "waiting": waiting, "constant": constant - waiting, "flops": work * 29e-12}
    known = bool(time_s and work and moved)
    return {
        "work_flop": work,
        "flop_per_s": work / time_s if known else None,
        "flop_per_j": work / joules["total"] if known else None,
        "roofline_time_s": roof or None,
        "speed_share": roof / time_s if known else None,
        "energy_share": 0.5 if known else None,
        "intensity_flop_per_byte": {"shared": None, "l1": None, "l2": None, "dram": work / moved if moved else None},
        "parts_j": parts,
        "lever": max(parts, key=lambda part: parts[part]) if known else None,
    }


def _clocks(parts: Cell, time_s: float) -> Cell:
    cores, memories = (72, 180, 396, 540, 648, 756, 852), (924, 528, 204, 68)
    settings = [
        {
            "core_mhz": float(core),
            "memory_mhz": float(memory),
            "energy_j": parts["total"] * (0.4 + 0.6 * (852 / core) ** 0.8 * (924 / memory) ** 0.3),
            "time_s": time_s * 852 / core,
            "this": (core, memory) == (852, 924),
        }
        for memory in memories
        for core in cores
    ]
    lowest = min(settings, key=lambda one: one["energy_j"])
    low = {**lowest, "energy_range_j": [lowest["energy_j"], lowest["energy_j"] * 1.2]}
    fastest = min(settings, key=lambda one: one["time_s"])
    share = "DRAM traffic goes with the memory clock, the rest of the time with the core clock"
    return {
        "modelled": True,
        "assumes": share,
        "marks": ["estimated"],
        "settings": settings,
        "lowest": low,
        "fastest": fastest,
    }


def _total(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _joined(lists: Any) -> Mark:
    found = NONE
    for words in lists:
        found |= marks_of_names(words)
    return found


def _total_counts(kernels: list[Cell]) -> Cell:
    found = {}
    for name in COUNTS:
        cells = [one["counts"][name] for one in kernels if name in one["counts"]]
        if cells:
            mark = _joined(one["marks"] for one in cells)
            value = _total(one["value"] for one in cells)
            found[name] = {
                "value": value,
                "unit": COUNTS[name].unit,
                "energy_j": _total(one["energy_j"] for one in cells),
                "marks": mark_names(mark),
                "how": _how(name, mark, len(cells)) if value is not None else [],
            }
    return found


def _how(name: str, mark: Mark, kernels: int) -> list[Cell]:
    note = "takes every L2 sector for a miss" if mark & Mark.ESTIMATED else None
    formula = {"l2_read": "32 * (l2_read_sectors - dram_read_sectors)", "fp32_fma": "flop_count_sp_fma"}.get(
        name, f"inst_{name}"
    )
    return [
        {
            "formula": formula,
            "note": note,
            "marks": mark_names(mark & ~(Mark.ASSUMED | Mark.MISSING)),
            "kernels": kernels,
        }
    ]


def _whole_intensity(kernels: list[Cell]) -> float | None:
    if any(one["intensity_flop_per_byte"] is None for one in kernels) or not kernels:
        return None
    return _intensity({name: _total(one["counts"][name]["value"] for one in kernels) for name in kernels[0]["counts"]})


def _input(path: str, kind: str) -> Cell:
    return {
        "path": path,
        "format": kind,
        "lines": 1320,
        "skipped_lines": 5,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "size_bytes": 22564,
        "command": "./fmm --n 131072 --s 128",
        "notes": ["5 lines of program output were skipped"],
    }


def costs() -> Cell:
    """A cost table like `costs/jetson-tk1.toml`."""
    charges = {
        name: {
            "pays": True,
            "pj": price,
            "formula": "2 * sp_flop" if name.startswith("fp32") else f"{name.partition('_')[0]}_byte",
            "why": "add, multiply and multiply-add take the same path, so each is charged as two flops",
            "marks": ["assumed"] if name.startswith("l1") else [],
        }
        for name, price in PRICES.items()
    }
    free = {
        name: {"pays": False, "pj": 0, "formula": None, "why": "not in Table I; constant power carries it", "marks": []}
        for name in FREE
    }
    return {
        "name": "jetson-tk1",
        "device": "NVIDIA Jetson TK1",
        "source": "Choi and Vuduc, Table I and section II-A",
        "books": "served",
        "setting": {"core_mhz": 852, "core_v": 1.03, "memory_mhz": 924, "memory_v": 1.01},
        "setting_from": "the table's default",
        "constant_power_w": POWER,
        "constant_why": "2.806 W/V times the core voltage and 3.858 W/V times the memory voltage",
        "charges": {**charges, **free},
        "marks": [],
        "notes": ["Table I has no L1 row; L1 bytes take the price of shared memory."],
    }


def fmm(**changes: Any) -> Cell:
    """Six kernels, constant power the largest part."""
    sizes = [(5.2e9, 0.05, 0.742), (2.4e9, 0.9, 0.421), (1.1e9, 0.3, 0.152), (1.0e9, 0.25, 0.139)]
    sizes += [(6.0e8, 0.5, 0.088), (4.0e8, 0.45, 0.061)]
    kernels = [
        kernel(name, counts_of(scale, flavour, at), time, launches=(1, 8, 1, 1, 6, 6)[at])
        for at, (name, (scale, flavour, time)) in enumerate(zip(FMM, sizes, strict=True))
    ]
    return document(kernels, **changes)


def one(**changes: Any) -> Cell:
    """One kernel."""
    return document(
        [kernel("void lud_internal(float*, int, int)", counts_of(3e8, 0.4, 1), 0.031, launches=63)], **changes
    )


def fifty(**changes: Any) -> Cell:
    """Fifty kernels, most of them small, with long template names."""
    dice = random.Random(50)
    kernels = []
    for at in range(50):
        scale = 4e9 / (1 + at) ** 1.3
        name = (
            f"void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::Agent{at}, double, {at}>(int*, double)"
            if at % 3
            else f"kernel_{at}(float const*, float*, int)"
        )
        kernels.append(kernel(name, counts_of(scale, dice.random(), at), scale / 8e9, launches=at + 1))
    return document(kernels, **changes)


def many(number: int = 1500, **changes: Any) -> Cell:
    """Thousands of template instances with names of about 70 characters."""
    dice = random.Random(number)
    bases = [
        "gemm_batched",
        "elementwise_op",
        "reduce_sum",
        "scan_block",
        "transpose_tile",
        "softmax_warp",
        "copy_strided",
    ]
    bases += [f"stage_{at}_of_pipeline" for at in range(25)]
    kernels = []
    for at in range(number):
        base = bases[min(int(dice.expovariate(0.25)), len(bases) - 1)]
        name = f"void app::{base}<float, {at % 97}, {at}, app::Policy<{dice.randrange(2048):04d}>>(float*)"
        scale = 4e8 / (1 + at) ** 0.8 * dice.uniform(0.5, 2)
        kernels.append(
            kernel(
                name.replace("app::Policy", "app::" + "Policy".ljust(70 - len(name) + 6, "_")),
                counts_of(scale, dice.random(), at),
                scale / 8e9,
                launches=1 + at % 40,
            )
        )
    return document(kernels, **changes)


@cache
def page_of_thousands() -> tuple[Cell, str]:
    """`many()` and its page, which takes seconds: made once, not to be changed."""
    made = many()
    return made, html(made)


def two_devices() -> Cell:
    """Kernels of the same names on two GPUs."""
    kernels = [
        kernel(name, counts_of(1e9 / (1 + at), 0.5, at + place), 0.1 / (1 + at), device=f"Tesla K20c ({place})")
        for place in (0, 1)
        for at, name in enumerate(FMM[:4])
    ]
    return document(kernels)


def no_costs() -> Cell:
    """Counts and times, no cost table."""
    kernels = [
        kernel(name, counts_of(1e9 / (1 + at), 0.5, at), 0.1 / (1 + at), priced=False) for at, name in enumerate(FMM)
    ]
    warning = "No cost table is made for Jetson TK1, so no energy is shown. Three ways to joules: a table of its own."
    return document(kernels, priced=False, warnings=(warning,))


def no_costs_no_time() -> Cell:
    """Counts only."""
    kernels = [kernel(name, counts_of(1e9 / (1 + at), 0.5, at), None, priced=False) for at, name in enumerate(FMM)]
    return document(kernels, priced=False)


def no_time() -> Cell:
    """Counts and costs, but no time: constant power is not known."""
    return document([kernel(name, counts_of(1e9 / (1 + at), 0.8, at), None) for at, name in enumerate(FMM)])


def some_time() -> Cell:
    """The time of two of six kernels is not known."""
    return document(
        [kernel(name, counts_of(1e9, 0.5, at), None if at in (1, 3) else 0.1) for at, name in enumerate(FMM)]
    )


def time_only() -> Cell:
    """A trace without counters, with a cost table: what is priced is missing."""
    nothing: dict[str, float | None] = dict.fromkeys(PRICES)
    return document([kernel(name, nothing, 0.1 / (1 + at)) for at, name in enumerate(FMM)])


def time_only_no_costs() -> Cell:
    """A trace and nothing else."""
    return document([kernel(name, {}, 0.1 / (1 + at), priced=False) for at, name in enumerate(FMM)], priced=False)


def missing(names_lost: tuple[str, ...] = ("special", "dram_write"), unpriced: tuple[str, ...] = ("tensor",)) -> Cell:
    """Some counts were not taken, another has no price: totals are lower bounds."""
    kernels = []
    for at, name in enumerate(FMM):
        values: dict[str, float | None] = {**counts_of(2e9 / (1 + at), 0.5, at)}
        values |= dict.fromkeys(names_lost)
        values |= dict.fromkeys(unpriced, 1.5e8 / (1 + at))
        kernels.append(kernel(name, values, 0.3 / (1 + at)))
    return document(kernels, warnings=("Not counted in these logs, though jetson-tk1 prices them: Special functions.",))


def all_marks() -> Cell:
    """Everything estimated, assumed and simulated."""
    every = Mark.ESTIMATED | Mark.ASSUMED | Mark.SIMULATED
    kernels = []
    for at, name in enumerate(FMM):
        values = counts_of(2e9 / (1 + at), 0.2, at)
        kernels.append(
            kernel(
                name,
                values,
                0.03 / (1 + at),
                marks=dict.fromkeys(values, every),
                time_marks=Mark.ESTIMATED | Mark.ASSUMED,
            )
        )
    made = document(kernels)
    made["costs"]["marks"] = ["assumed"]
    for charge in made["costs"]["charges"].values():
        charge["marks"] = ["assumed"]
    return made


def data_bound() -> Cell:
    """Moving data is the largest part, constant power is small."""
    return document([kernel(name, counts_of(4e9, 0.95, at), 0.01) for at, name in enumerate(FMM[:3])])


def compute_bound() -> Cell:
    """Arithmetic is the largest part."""
    return document(
        [kernel(name, {**counts_of(4e9, 0.0, at), "fp64_fma": 9e9}, 0.05) for at, name in enumerate(FMM[:3])]
    )


def zero() -> Cell:
    """Kernels that did nothing in no time."""
    return document([kernel(name, dict.fromkeys(counts_of(1, 0.5, 0), 0.0), 0.0) for name in FMM[:2]])


def measured() -> Cell:
    """With a meter's reading."""
    made = fmm()
    made["energy_j"]["measured"] = made["energy_j"]["total"] / 1.031
    return made


def hostile() -> Cell:
    """Hostile strings wherever a string can come from a log."""
    kernels = [
        kernel(name, counts_of(1e9 / (1 + at), 0.5, at), 0.1, device=f"{HOSTILE[at % 2]} ({at % 2})")
        for at, name in enumerate(HOSTILE)
    ]
    made = document(kernels, warnings=tuple(HOSTILE), title=HOSTILE[0] + HOSTILE[1])
    made["command_line"] = ["eprof", "report", *HOSTILE]
    for entry in made["inputs"]:
        entry |= {
            "path": HOSTILE[4],
            "format": HOSTILE[2],
            "command": HOSTILE[0],
            "notes": list(HOSTILE),
            "sha256": HOSTILE[1],
        }
    made["costs"] |= {"name": HOSTILE[1], "source": HOSTILE[0], "notes": list(HOSTILE), "constant_why": HOSTILE[4]}
    made["definition"] = {"name": HOSTILE[0], "source": HOSTILE[4]}
    for charge in made["costs"]["charges"].values():
        charge |= {"why": HOSTILE[0], "formula": HOSTILE[4]}
    for count in made["counts"].values():
        count["how"] = [{"formula": HOSTILE[0], "note": HOSTILE[4], "marks": [], "kernels": 8}]
    return made


def empty() -> Cell:
    """A document without kernels and counts: nothing should break."""
    return document([], priced=False)


def missing_above() -> Cell:
    """Moving data is the largest part of what is known, and something is missing."""
    values: dict[str, float | None] = {**counts_of(4e9, 0.95, 3), "integer": None}
    return document([kernel(name, values, 0.01) for name in FMM[:3]])


def phases() -> Cell:
    """Six kernels in two groups, one of them with a hostile name."""
    made = fmm()
    names_of = {HOSTILE[0]: [0, 1], "other": [2, 3, 4, 5]}
    made["grouped"] = f"{HOSTILE[0]}: names with ^[UV]"
    made["groups"] = []
    for name, places in names_of.items():
        whole = document([made["kernels"][at] for at in places])
        wanted = ("launches", "time_s", "power_w", "counts", "energy_j", "energy_marks", "marks")
        group = {key: whole[key] for key in wanted} | {"name": name, "kernels": places, "time_marks": []}
        made["groups"].append({**group, "intensity_flop_per_byte": whole["intensity_flop_per_byte"]})
    return made


def fitted() -> Cell:
    """Priced with a fitted table: an interval, errors, a range that this run leaves."""
    made = fmm()
    whole = made["energy_j"]["total"]
    made["interval_j"] = {"share": 0.9, "replicas": 30, "total": [0.93 * whole, 1.06 * whole]}
    made["costs"]["fit"] = {
        "data": [HOSTILE[0]],
        "rows": 145,
        "benchmarks": 29,
        "settings": 5,
        "error_percent": {"fit": 9.8, "leave_one_benchmark_out": 14.5},
        "told": {"fp64_instruction": "not told", "fp32_instruction": "told"},
        "range": {"core_mhz": [900, 1380], "power_w": [1, 250]},
        "notes": [HOSTILE[1]],
    }
    return made


CASES = {
    "phases": phases,
    "fitted": fitted,
    "one": one,
    "fmm": fmm,
    "fifty": fifty,
    "two_devices": two_devices,
    "no_costs": no_costs,
    "no_costs_no_time": no_costs_no_time,
    "no_time": no_time,
    "some_time": some_time,
    "time_only": time_only,
    "time_only_no_costs": time_only_no_costs,
    "missing": missing,
    "missing_above": missing_above,
    "all_marks": all_marks,
    "data_bound": data_bound,
    "compute_bound": compute_bound,
    "zero": zero,
    "measured": measured,
    "hostile": hostile,
    "empty": empty,
}
