"""What else strangers hand over: cost tables, definitions, measurements, mappings, run directories, configuration,
reports, entries of the cache, formulas. Seeds, and what must hold of what eprof makes of each.
"""

import argparse
import json
import math
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import seeds
from check import FOLDER, as_file, check_log, sound, strictly

from eprof import costs
from eprof.base.toml import Formula
from eprof.cli import dispatch, options
from eprof.counts import definition_files
from eprof.lab.measurements import mapping, reading
from eprof.logs import many, read
from eprof.logs.log import Log
from eprof.profile import api
from eprof.profile.profile import Profile
from eprof.show import export

ROOT = Path(__file__).parents[2]
PRICED_EVERY = 10
MEASURED = b"""bench_id,bench_name,arg_set,kernel,core_mhz,mem_mhz,time_ms,power_w,n_warp_inst,n_fp32_thread_inst,n_sfu_sp,n_gld_trans,n_tex_trans,n_dram_rd_trans,n_dram_wr_trans
0,a,in0,ka,500,500,0.35,38.5,2336,4009,412,344,172,178,112
0,a,in0,ka,600,500,0.33,39.2,2336,4009,412,344,172,178,112
1,b,in0,kb,500,700,1.35,48.5,99336,9001,0,944,872,778,512
"""
CONFIG = b"""costs = "gtx680"
setting = "852/924"
efficiency = 0.25
output = ["report.html", "report.json"]
kernel_name = ["k", "regex:^k"]
quiet = true
"""
DEFINITION = b"""schema = 1
name = "made up"
source = "made up here"
extends = "nvprof/parts/kepler.toml"
applies = { profiler = "nvprof", capability = ["3.5"] }

[counter]
all = "inst_integer"
some = { slices = "inst_{}", expect = 4, partial = true }

[parameter]
lanes = { value = 32, why = "made up" }

[quantity]
half = [{ formula = "all / 2 + some * (lanes - 31)", mark = "estimated", note = "made up" }]

[instruction]
integer = [{ formula = "all - half" }]

[absent]
special = "made up"
"""


@cache
def profile() -> Profile:
    """A profile to put prices on."""
    with as_file(seeds.metrics(), "profile.csv") as path:
        return api.load(path)


def _is_priced(data: bytes) -> bool:
    """One of ten, by what is in it."""
    return zlib.crc32(data) % PRICED_EVERY == 0


def cost_table(data: bytes) -> None:
    """A table is checked, explained and (one of ten, by what is in it) used, or all that is wrong with it is said."""
    with as_file(data, "costs.toml") as path, strictly(data):
        table, mistakes = costs.examine(path)
        assert (table is None) == bool(mistakes), "neither a table nor a mistake"
        assert all(one and "\n" not in one for one in mistakes), "a mistake of several lines"
        if table is not None:
            json.dumps(table.explain(None), allow_nan=False)
            if _is_priced(data):
                sound(profile().energy(path).document())


def definition(data: bytes) -> None:
    """A definition is loaded and explained."""
    from eprof.commands.counters.command import explain, summary

    with as_file(data, "counters.toml") as path, strictly(data):
        found = definition_files.load(Path(path))
        json.dumps({**summary(found), "counts": explain(found)}, allow_nan=False)


def _measured(path: str, columns: str | None) -> None:
    found = reading.read(path, columns)
    assert len(found) and np.isfinite(found.rates.to_numpy()).all() and (found.rates.to_numpy() >= 0).all()
    assert (
        np.isfinite(found.rows[["core_mhz", "memory_mhz"]].to_numpy()).all()
        and not np.isinf(found.rows["time_s"]).any()
    )
    assert np.isfinite(found.power_w).all() and (found.power_w > 0).all(), "power that is none"
    assert all(math.isfinite(one) for one in found.reference), "a reference that is none"


def measured(data: bytes) -> None:
    """Rows that can be used have finite numbers."""
    with as_file(data, "measured.csv") as path, strictly(data):
        _measured(path, None)


def columns(data: bytes) -> None:
    """A mapping is read, and used on good measurements."""
    with as_file(data, "mapping.toml") as path, as_file(MEASURED, "good.csv") as good, strictly(data):
        mapping.load(path)
        _measured(good, path)


@cache
def _options() -> tuple[options.Actions, options.Actions]:
    """Those of `eprof report`, and of all commands."""
    each = {name: options.options_of(one) for name, one in dispatch._parser()[1].items()}
    return each["report"], {key: option for one in each.values() for key, option in one.items()}


def configuration(data: bytes) -> None:
    """Options have the types that the command line gives them."""
    own, every = _options()
    with as_file(data, "eprof.toml") as path, strictly(data):
        found = argparse.Namespace(config=path)
        options.fill_from_config(found, (), own, every, None)
        for key in found.configured:
            value = getattr(found, key)
            if isinstance(own[key].default if key in own else None, list):
                assert all(isinstance(one, str) for one in value), key
            else:
                assert isinstance(value, str | bool | float | int), key


def report(data: bytes) -> None:
    """A report of eprof that is given as a log is a profile again, or it is refused."""
    with as_file(data, "report.json") as path, strictly(data):
        for one in api.profiles(path, api.load):
            if _is_priced(data):
                sound(one.energy("gtx680").document())


@cache
def _directory() -> Path:
    """A run directory with two logs, and `run.json` still to be written."""
    home = Path(FOLDER) / "made.eprof"
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "counters-1.csv").write_bytes(seeds.metrics())
    (home / "logs" / "time-1.csv").write_bytes(seeds.trace())
    (home / "logs" / "time-2.csv").write_bytes(seeds.trace())
    return home


def run_directory(data: bytes) -> None:
    """A run directory is reported on whatever `run.json` says, or refused."""
    home = _directory()
    (home / "run.json").write_bytes(data)
    with strictly(data):
        found = api.load(home)
        priced = found.energy(None if found.priced_as is not None else "gtx680")
        document = priced.document()
        sound(document)
        export.to_json(document)


def formula(data: bytes) -> None:
    """A formula is refused in one line, or has a value for numbers and for arrays."""
    with strictly(data):
        try:
            found = Formula.parse(data.decode("utf-8", "replace"))
        except ValueError as err:
            assert len(str(err)) < 3000
            return
        with np.errstate(all="ignore"):
            value = found(dict.fromkeys(found.names, np.array([1.5, np.nan, 0.0])))
        assert np.shape(value) in ((), (3,))


def entry_of_cache(data: bytes) -> None:
    """A damaged entry is none, or holds a sound log."""
    found, stamp, entry = _cached()
    before = entry.read_bytes()
    entry.write_bytes(data)
    try:
        with strictly(data):
            log = found.get(stamp)
            if log is not None:
                assert isinstance(log, Log)
                check_log(log)
    finally:
        entry.write_bytes(before)


@cache
def _cached() -> tuple[many.Cache, many.Stamp, Path]:
    """A cache with one entry, of a log that is small for one."""
    path = Path(FOLDER) / "cached.csv"
    path.write_bytes(seeds.wide())
    found = many.Cache(Path(FOLDER) / "cache", "asked")
    smallest, many.SMALLEST_BYTES = many.SMALLEST_BYTES, 0
    try:
        stamp = many.Stamp.of(path)
        assert stamp is not None
        found.put(stamp, read(path))
    finally:
        many.SMALLEST_BYTES = smallest
    (entry,) = (one for one in found.folder.iterdir() if one.name.endswith("-asked"))
    return found, stamp, entry


def _made_report() -> bytes:
    return export.to_json(profile().energy("gtx680").document())


def _manifest() -> bytes:
    """What a run with a meter says of itself."""
    energy = {"joules": 12.5, "method": "made up", "window_s": 2.0, "runs": 2, "core_mhz": 700.0, "slowed_by": ["heat"]}
    told = {
        "schema": "eprof.run/1", "status": "complete", "command": "./made up", "warnings": ["made up"],
        "device": {"name": "Tesla K20c"}, "meter": {"covers": "the board"},
        "pricing": {"costs": "gtx680", "setting": None, "efficiency": None},
        "measurements": [{"what": "energy", "number": 1, "energy": {**energy, "core_mhz_spread": 0.1}}],
    }  # fmt: skip
    return json.dumps(told, indent=1).encode()


SEEDS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], None]]] = {
    "cost-table": (lambda: (ROOT / "costs" / "gtx680.toml").read_bytes(), cost_table),
    "cost-table-fitted": (lambda: (ROOT / "costs" / "v100.toml").read_bytes(), cost_table),
    "definition": (lambda: DEFINITION, definition),
    "definition-volta": (lambda: (ROOT / "counters" / "nvprof" / "volta-7.0.toml").read_bytes(), definition),
    "measured": (lambda: MEASURED, measured),
    "mapping": (lambda: (ROOT / "counters" / "measurements" / "nvdvfs-counts.toml").read_bytes(), columns),
    "config": (lambda: CONFIG, configuration),
    "report": (_made_report, report),
    "run-directory": (_manifest, run_directory),
    "formula": (lambda: b"32 * (a + b) / (c - 1.5e3)", formula),
    "cache": (lambda: _cached()[2].read_bytes(), entry_of_cache),
}
