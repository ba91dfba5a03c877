"""Cost tables: what an instruction or a byte costs on one GPU or CPU. This file finds, loads and checks them.

A table is a file of `costs/`, or one of the user's (docs/costs.md). `table.py` is what a table is and what follows
from it at a DVFS setting, `file.py` reads and checks its file; the types are to be imported from here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eprof.base import cpus
from eprof.base.errors import CostError, DefinitionError
from eprof.base.gpus import normal_name
from eprof.base.optional import mapped
from eprof.base.resources import folder, tree
from eprof.base.text import brief, did_you_mean
from eprof.base.toml import Document
from eprof.base.vocabulary import CPU
from eprof.costs.file import checked, read
from eprof.costs.parts import BASES as BASES
from eprof.costs.parts import DEFAULT as DEFAULT
from eprof.costs.parts import Charge as Charge
from eprof.costs.parts import Costs as Costs
from eprof.costs.parts import Peaks as Peaks
from eprof.costs.parts import Price as Price
from eprof.costs.parts import Scale as Scale
from eprof.costs.parts import Setting as Setting
from eprof.costs.table import CostTable as CostTable
from eprof.costs.table import name_in_tables

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ESTIMATED = "estimated"  # names the table that `estimated` of estimate.py makes for the GPU of a log
NONE = "none"  # what a user names instead of a table to have counts alone


def tables() -> list[str]:
    """The names of the cost tables that come with eprof, sorted."""
    return sorted(_shipped())


def load(name_or_path: str) -> CostTable:
    """Load and check a cost table: one that comes with eprof by its name, or your file by its path (`.toml`).

    The name may also be that of a GPU: "H100" is the table that serves it, "rtx4090" the estimate of its data sheet, as
    "estimated:RTX 4090" is.
    Raises CostError: no table of that name. DefinitionError: the file cannot be read or is not right (with the line).
    """
    if name_or_path.startswith(f"{ESTIMATED}:"):
        return _estimated(name_or_path.removeprefix(f"{ESTIMATED}:"))
    if is_file(name_or_path):
        return checked(Document.read(Path(name_or_path)))
    if name_or_path == ESTIMATED:
        raise CostError(
            "`estimated` is the table of the GPU that a profiler's log names, and there is no log here; name the GPU: "
            '--costs "RTX 4090".'
        )
    name = name_or_path.lower()
    if name in _shipped():
        return _load_shipped(name)
    # A GPU that a user names for short: the table that serves it, else its estimate.
    spaced = re.sub(r"(?<=[a-z])(?=\d{3})", " ", name)
    own = for_device(name) or for_device(spaced)
    if own is not None:
        return own
    for called in (name, spaced):
        with contextlib.suppress(CostError):
            return _estimated(called)
    meant = did_you_mean(name, tables())
    raise CostError(
        f"There is no cost table `{brief(name_or_path, 100)}`.{meant} There are {', '.join(tables())}; "
        "a file of your own is given by its path, such as ./my-gpu.toml. One of another GPU makes "
        f'`eprof costs --estimate "{brief(name_or_path, 100)}" --tdp-w WATTS -o mine.toml`.'
    )


def gpu_meant(name_or_path: str) -> str | None:
    """The GPU, as tables list it, meant by a cost table's name or a GPU's short name; None: none. Raises as `load`."""
    table = load(name_or_path)
    served = [*table.devices, *(device for board in table.boards for device in board.devices)]
    if table.processor == CPU or not served:
        return None
    if table.basis == ESTIMATED:
        return table.device
    told = normal_name(name_or_path)
    return next((device for device in served if normal_name(device) == told), served[0])


def _estimated(device_name: str) -> CostTable:
    """The estimated cost table of a GPU, under a name that tells it from those of other GPUs."""
    from eprof.costs.estimate import estimated

    table = estimated(device_name)
    return replace(table, name=f"{ESTIMATED}:{table.device}")


def is_file(name_or_path: str) -> bool:
    """Whether `load` takes this for the path of a cost table, and not for the name of one that comes with eprof."""
    return name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path


def for_device(device_name: str, memory_mhz: float | None = None) -> CostTable | None:
    """The cost table for the device that a log calls `device_name`, as it holds there; None if there is none.

    memory_mhz: the clock of its memory, for `CostTable.on`. A table may serve devices that it was not made for
    (`CostTable.is_for`): then all that it says of them is assumed. So it is of a CPU that no table serves: it gets the
    table of its nearest relative.
    """
    # To check all tables takes as long as the rest of a small report.
    listed = (name for name in tables() if name_in_tables(device_name) in _flat_text(name))
    chosen = (table for table in map(_load_shipped, listed) if table.devices or table.boards)
    for table in chosen:
        if table.serves(device_name):
            return table.on(device_name, memory_mhz)
    return mapped(_load_shipped, cpus.nearest_costs(device_name))


def check(path: str) -> list[str]:
    """Everything that is wrong with the cost table at `path`: sentences with file and line; empty if it is right."""
    return examine(path)[1]


def examine(path: str) -> tuple[CostTable | None, list[str]]:
    """(The cost table at `path`, or None if anything is wrong; what `check` says of it), from reading it once."""
    try:
        document = Document.read(Path(path))
    except DefinitionError as err:
        return None, [str(err)]
    table, errors = read(document)
    return table, [str(err) for err in errors]


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Traversable]:
    """Name -> file of the cost tables that come with eprof; not of clusters, whose tables are in the folder below."""
    home = folder("costs")
    files = (file for file in tree(home, ".toml") if home.joinpath(file.name).is_file())
    return {file.name.removesuffix(".toml"): file for file in files}


@lru_cache(maxsize=64)
def _flat_text(name: str) -> str:
    """The whole text of a cost table's file in lower case, with single blanks, to look for names of devices in it."""
    return " ".join(_shipped()[name].read_text(encoding="utf-8").lower().split())


@lru_cache(maxsize=64)
def _load_shipped(name: str) -> CostTable:
    return checked(Document.read(_shipped()[name]))
