"""Priced profiles made by hand, for the tests of `eprof diff`."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from frames_support import counts_of

from eprof.base.vocabulary import COUNTS, NONE, Mark
from eprof.costs import Charge, Costs, Peaks, Price, Setting
from eprof.counts.definition import without_counters
from eprof.energy.attribution import attribute
from eprof.profile.device import Device
from eprof.profile.profile import Energy, Profile

MISSING, ESTIMATED, SIMULATED = int(Mark.MISSING), int(Mark.ESTIMATED), int(Mark.SIMULATED)
PRICES = {
    "fp32_fma": 58.0,
    "fp32_add": 58.0,
    "fp32_mul": 58.0,
    "fp32_other": None,
    "fp32": 58.0,
    "integer": 60.0,
    "control": None,
    "shared_read": 35.0,
    "dram_read": 377.0,
    "dram_write": 377.0,
}
FLOPS = [name for name, count in COUNTS.items() if count.flops]


def costs(prices=PRICES, watts=6.8, name="table", setting="852/924", books="served", peaks=True):
    """A cost table at a setting; None: a word that pays nothing."""
    core, memory = map(float, setting.split("/"))
    charges = {
        word: Charge(pj is not None, pj or 0.0, "p" if pj is not None else None, "why", NONE)
        for word, pj in prices.items()
    }
    found = Peaks(327.168, 13.632, 14.784, "why") if peaks else Peaks()
    named = {"sp_flop": Price("sp_flop", 29.0, "29", NONE)}
    where = Setting(core, 1.0, memory, 1.0)
    return Costs(
        name=name, device="GPU", source="us", books=books, setting=where, setting_from="", charges=charges,
        constant_power_w=watts, constant_why="", constant_marks=NONE, marks=NONE, peaks=found, prices=named,
    )  # fmt: skip


def counted(kernels, marks=None, time_marks=None, launches=None, device="GPU (0)", books="served"):
    """Counts from {kernel: {word: number, "time": seconds}}; a word that is not given is not counted.

    A class total excludes its parts, as in `eprof.counts.counts`: the one that is not given is NaN without a mark.
    """
    rows, names = list(kernels.values()), list(kernels)
    table = pd.DataFrame(rows, columns=list(COUNTS), dtype="float64")
    marked = pd.DataFrame(np.where(table.isna(), MISSING, 0), columns=list(COUNTS)).astype("int64")
    for at, row in enumerate(rows):
        kinds = [word for word in ("fp32_fma", "fp32_add", "fp32_mul", "fp32_other")]
        if "fp32" in row:
            marked.loc[at, kinds] = 0
        elif any(word in row for word in kinds):
            marked.loc[at, "fp32"] = 0
    for (name, word), mark in (marks or {}).items():
        marked.loc[names.index(name), word] = mark
    frame = pd.DataFrame(
        {
            "device": device,
            "kernel": pd.Series(names, dtype=object),
            "launches": [(launches or {}).get(name, 1) for name in names],
            "time_s": [float(row.get("time", np.nan)) for row in rows],
            "time_marks": np.array([(time_marks or {}).get(name, 0) for name in names], dtype="int64"),
        }
    )
    return counts_of(frame, table, marked, {}, books)


def energy(kernels, prices=PRICES, **more):
    """A priced profile. priced: a `Costs`, or None for no cost table at all."""
    about = {key: more.pop(key) for key in ("marks", "time_marks", "launches", "device") if key in more}
    sha256, name = more.pop("sha256", None), more.pop("title", "program")
    time_from = more.pop("time_from", None)
    priced = more.pop("priced") if "priced" in more else costs(prices, **more)
    found = counted(kernels, books=priced.books if priced else "served", **about)
    label = about.get("device", "GPU (0)")
    one = SimpleNamespace(
        device=Device(label, label.partition(" (")[0], 0, "3.5", "name"),
        definition=without_counters(),
        launches=SimpleNamespace(energy_j=dict, counters=(), units={}, is_metered=np.zeros(0, dtype=bool)),
        time_from=time_from,
        warnings=(),
    )
    logs = (
        SimpleNamespace(
            path=f"{name}.csv",
            format="made",
            sha256=sha256 or str(id(found)),
            command=None,
            caches="",
            tables=(),
            limit_w=None,
        ),
    )
    profile = Profile(name, logs, (one,), _books={"served": found})
    split = attribute(found, priced) if priced is not None else None
    return Energy(profile, priced, found, split)


KERNEL = {
    **dict.fromkeys(FLOPS, 0.0),
    "fp32_fma": 1e9,
    "fp32_add": 2e8,
    "fp32_mul": 1e8,
    "fp32_other": 0.0,
    "integer": 7e8,
    "control": 1e7,
    "shared_read": 3e8,
    "dram_read": 4e9,
    "dram_write": 1e9,
    "time": 0.35,
}


def kernel(**changed):
    """`KERNEL` with some numbers changed; None: not counted. Times "time", seconds."""
    found = {**KERNEL, **changed}
    return {word: value for word, value in found.items() if value is not None}
