"""Boards by their data sheets: power limits, kinds of memory, peaks (`counters/boards.toml`)."""

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.gpus import capabilities, capability_of_label, normal_name
from eprof.base.resources import folder
from eprof.base.toml import Document

PEAKS = ("sp_gflops", "dp_gflops", "dram_gb_per_s")
_WELL_KNOWN = ("GeForce RTX 4090", "Tesla V100", "GeForce GTX 1080 Ti")
_FAMILY = re.compile(r"^(geforce|quadro|tesla) ")
_MEMORY_SIZE = re.compile(r"[ -]\d+ ?gb$")


class DataSheet(Struct, frozen=True):
    """A board. name: as the driver prints it. memory: "gddr", "laptop" (with GDDR), "hbm", or "shared" with the CPU.

    limit_w: its power limit in W. beyond_power, beyond_clock: how many times its limit and its boost clock it may
    reach, as partners and owners set it. peaks: sp_gflops, dp_gflops, dram_gb_per_s, as cost tables have them; may be
    empty. sms: multiprocessors. None: not known.
    """

    name: str
    memory: str | None = None
    limit_w: float | None = None
    peaks: Mapping[str, float] = {}
    beyond_power: float = 1.0
    beyond_clock: float = 1.0
    sms: int | None = None

    @property
    def most_w(self) -> float | None:
        """What the board may draw for long, in W."""
        return None if self.limit_w is None else self.limit_w * self.beyond_power


def data_sheet(device_name: str) -> DataSheet | None:
    """The data sheet of the GPU that a log calls `device_name`, or a user for short ("RTX 4090").

    None: no board is listed under that name, or several are ("V100").
    """
    name = normal_name(device_name)
    exact = _listed().get(name) or _listed().get(_MEMORY_SIZE.sub("", name))
    if exact is not None:
        return exact
    words = set(_words(name))
    if not words:
        return None
    more_words = {key: len(_words(key)) - len(words) for key in _listed() if words <= set(_words(key))}
    nearest = [key for key, number in more_words.items() if number == min(more_words.values())]
    return _listed()[nearest[0]] if len(nearest) == 1 else None


def power_limit_w(device_name: str) -> float | None:
    """The power limit in W of the board that a log calls `device_name`; None if it is not known."""
    return (data_sheet(device_name) or DataSheet("")).limit_w


def most_w(device_name: str) -> float | None:
    """The power in W that the board that a log calls `device_name` may draw for long; None if it is not known."""
    return (data_sheet(device_name) or DataSheet("")).most_w


def sheets_of(device_label: str | None, sms: int | None = None) -> list[DataSheet]:
    """The boards that the GPU with this label in a log may be: the named one, or all of a compute capability.

    sms: its multiprocessors, if the log tells them.
    """
    if device_label is None:
        return []
    capability = capability_of_label(device_label)
    if capability is not None:
        return sheets_with(capability, sms)
    sheet = data_sheet(device_label)
    return [] if sheet is None else [sheet]


def sheets_with(capability: str, sms: int | None = None) -> list[DataSheet]:
    """All boards with a compute capability that have a data sheet; those with so many multiprocessors, if any have."""
    able = [sheet for sheet in sheets() if capability in capabilities(sheet.name)]
    return [sheet for sheet in able if sms is not None and sheet.sms == sms] or able


def sheets() -> list[DataSheet]:
    """All boards that have a data sheet; their names are as their drivers print them."""
    return list(_listed().values())


def example(lowest: float, highest: float) -> str:
    """A GPU of a compute capability from `lowest` to `highest`, to show how one is named: a well-known one, or any."""
    names = [*_WELL_KNOWN, *(sheet.name for sheet in sheets())]
    able = (name for name in names if any(lowest <= float(number) <= highest for number in capabilities(name)))
    return next(able, _WELL_KNOWN[0]).removeprefix("GeForce ")


def near(device_name: str) -> list[str]:
    """Up to three names of boards with a data sheet that `device_name` may mean."""
    name = normal_name(device_name)
    with_it = [key for key in _listed() if set(_words(name)) <= set(_words(key))]
    short_names = {_FAMILY.sub("", key): key for key in _listed()}
    close = difflib.get_close_matches(_FAMILY.sub("", name), short_names, n=3, cutoff=0.6)
    keys = with_it or [short_names[close_name] for close_name in close]
    return [_listed()[key].name for key in keys[:3]]


@lru_cache(maxsize=1)
def _listed() -> Mapping[str, DataSheet]:
    document = Document.read(folder("counters") / "boards.toml")
    beyond = document.data["beyond"]
    listed = {}
    for memory, boards in document.data.items():
        if memory == "beyond":
            continue
        for name, numbers in boards.items():
            peaks = {key: number for key, number in numbers.items() if key not in ("w", "most_w", "sms")}
            beyond_power = numbers.get("most_w", numbers["w"]) / numbers["w"]
            sheet = DataSheet(name, memory, numbers["w"], peaks, beyond_power, sms=numbers.get("sms"))
            if memory in beyond["memory"] or name.split()[0] in beyond["names"]:
                sheet = replace(sheet, beyond_power=beyond["power"], beyond_clock=beyond["clock"])
            listed[normal_name(name)] = sheet
    return listed


def _words(name: str) -> list[str]:
    return name.replace("-", " ").split()
