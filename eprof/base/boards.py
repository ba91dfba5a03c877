"""Boards by their data sheets: power limits, kinds of memory, peaks (`counters/boards.toml`)."""

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.gpus import capabilities, capabilities_of_label, capability_of_label, normal_name
from eprof.base.known import only
from eprof.base.resources import folder
from eprof.base.text import phrase
from eprof.base.toml import Document

PEAKS = ("sp_gflops", "dp_gflops", "dram_gb_per_s")
_WELL_KNOWN = ("GeForce RTX 4090", "Tesla V100", "GeForce GTX 1080 Ti")
_SAME_DRAM = 0.05  # of the peak, which logs tell at the clock that DRAM had
_BITS, _SAME_BITS = (64, 96, 128, 160, 192, 256, 320, 384, 512), 0.04  # of the buses of boards with GDDR6; of a bus
_WITH_GDDR6 = (7.5, 8.9)  # the compute capabilities of the first and the last of these
_FAMILY = re.compile(r"^(geforce|quadro|tesla) ")
_MEMORY_SIZE = re.compile(r"[ -]\d+ ?gb$")


class DataSheet(Struct, frozen=True):
    """A board. name: as the driver prints it. memory: "gddr", "laptop" (with GDDR), "hbm", or "shared" with the CPU.

    limit_w: its power limit in W. beyond_power, beyond_clock: how many times its limit and its clock it may reach, as
    partners and owners set it. peaks: sp_gflops, dp_gflops, dram_gb_per_s, as cost tables have them, at that clock; may
    be empty. sms: multiprocessors. memory_b: bytes that it holds. constant_w: constant power, where it is published.
    None: not known.
    """

    name: str
    memory: str | None = None
    limit_w: float | None = None
    peaks: Mapping[str, float] = {}
    beyond_power: float = 1.0
    beyond_clock: float = 1.0
    sms: int | None = None
    memory_b: float | None = None
    constant_w: float | None = None

    @property
    def most_w(self) -> float | None:
        """What the board may draw for long, in W; None: not known."""
        return None if self.limit_w is None else self.limit_w * self.beyond_power


class Traits(Struct, frozen=True):
    """What a log without a GPU's name tells of it: multiprocessors, peak of DRAM in GB/s, its clock. None: not told."""

    sms: int | None = None
    dram_gb_per_s: float | None = None
    dram_ghz: float | None = None

    @property
    def text(self) -> str:
        """The traits in words: "58 multiprocessors and DRAM of 300 GB/s"; "" if none is told."""
        told = [phrase("{} multiprocessors", self.sms), phrase("DRAM of {:.3g} GB/s", self.dram_gb_per_s)]
        return " and ".join(filter(None, told))

    def among(self, sheets: list[DataSheet]) -> list[DataSheet]:
        """The boards that have the traits; a trait that is not told, or that none of them has, rules out none."""
        with_sms = [sheet for sheet in sheets if self.sms is not None and sheet.sms == self.sms] or sheets
        with_dram = [sheet for sheet in with_sms if self._has_dram(sheet)] or with_sms
        return [sheet for sheet in with_dram if self._has_bus(sheet)] or with_dram

    def _has_dram(self, sheet: DataSheet) -> bool:
        peak = sheet.peaks.get("dram_gb_per_s", 0.0)
        return self.dram_gb_per_s is not None and abs(self.dram_gb_per_s - peak) <= _SAME_DRAM * peak

    def _has_bus(self, sheet: DataSheet) -> bool:
        """Whether a board may have this clock: its peak over two bits a cycle is the width of a bus, or not known."""
        peak, least = sheet.peaks.get("dram_gb_per_s"), min(map(float, capabilities(sheet.name)), default=0.0)
        if sheet.memory != "gddr" or not peak or not self.dram_ghz or not _WITH_GDDR6[0] <= least <= _WITH_GDDR6[1]:
            return True
        bits = 8 * peak / (2 * self.dram_ghz)
        return any(abs(bits - width) <= _SAME_BITS * width for width in _BITS)

    def tells(self, sheets: list[DataSheet]) -> "Traits":
        """The same traits, but None for one that not all of these boards have."""
        sms = self.sms if all(sheet.sms == self.sms for sheet in sheets) else None
        return Traits(sms, self.dram_gb_per_s if all(map(self._has_dram, sheets)) else None)


class Link(Struct, frozen=True):
    """A board's connection to its host: name ("PCIe 3.0"), and the B/s that copies of pinned memory reach."""

    name: str
    pinned_byte_per_s: float


NOTHING_TOLD = Traits()


@lru_cache
def data_sheet(device_name: str) -> DataSheet | None:
    """The data sheet of the GPU that a log, or a user for short ("RTX 4090"), calls so; None: of none, or several."""
    name = normal_name(device_name)
    exact = _listed().get(name) or _listed().get(_MEMORY_SIZE.sub("", name))
    if exact is not None:
        return exact
    words = set(_words(name))
    if not words:
        return None
    more_words = {key: len(_words(key)) - len(words) for key in _listed() if words <= set(_words(key))}
    return only([_listed()[key] for key, number in more_words.items() if number == min(more_words.values())])


def host_link(device_label: str) -> Link | None:
    """The PCIe link to the host of the GPU with this label in a log; None: not known, or it is connected otherwise."""
    told = _document().data["pcie"]
    sheet = data_sheet(device_label)
    short = device_label.removeprefix("NVIDIA ")
    if sheet is not None and (sheet.memory == "shared" or sheet.name.startswith(tuple(told["other"]))):
        return None
    lowest = min(map(float, capabilities_of_label(device_label)), default=0.0)
    since = [generation for first, generation in told["since"].items() if float(first) <= lowest]
    if not since:
        return None
    generation = next((named for named, names in told["named"].items() if short.startswith(tuple(names))), since[-1])
    is_narrow = sheet is not None and (sheet.memory == "laptop" or sheet.name in told["x8"])
    lanes = f"PCIe {generation}{' x8' if is_narrow else ''}"
    return Link(lanes, told["gb_per_s"][generation] * told["pinned"] * 1e9 / (1 + is_narrow))


def power_limit_w(device_name: str) -> float | None:
    """The power limit in W of the board that a log calls `device_name`; None if it is not known."""
    return (data_sheet(device_name) or DataSheet("")).limit_w


def most_w(device_name: str) -> float | None:
    """The power in W that the board that a log calls `device_name` may draw for long; None if it is not known."""
    return (data_sheet(device_name) or DataSheet("")).most_w


def sheets_of(device_label: str | None, told: Traits = NOTHING_TOLD) -> list[DataSheet]:
    """The boards that the GPU with this label in a log may be: the named one, or all of a compute capability."""
    if device_label is None:
        return []
    capability = capability_of_label(device_label)
    if capability is not None:
        return sheets_with(capability, told)
    return [sheet for sheet in [data_sheet(device_label)] if sheet is not None]


def sheets_with(capability: str, told: Traits = NOTHING_TOLD) -> list[DataSheet]:
    """All boards of a compute capability that have a data sheet; of them those that fit the traits of a log, if any."""
    return told.among([sheet for sheet in sheets() if capability in capabilities(sheet.name)])


def sheets() -> list[DataSheet]:
    """All boards that have a data sheet; their names are as their drivers print them."""
    return list(_listed().values())


def example(lowest: float, highest: float) -> str:
    """The name of some GPU of a compute capability from `lowest` to `highest`, a well-known one if there is one."""
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
def _document() -> Document:
    return Document.read(folder("counters") / "boards.toml")


@lru_cache(maxsize=1)
def _listed() -> Mapping[str, DataSheet]:
    document = _document()
    beyond = document.data["beyond"]
    listed = {}
    for memory, boards in document.data.items():
        if memory in ("beyond", "pcie"):
            continue
        for name, numbers in boards.items():
            peaks = {key: number for key, number in numbers.items() if key in PEAKS}
            beyond_power = numbers.get("most_w", numbers["w"]) / numbers["w"]
            held_b = numbers.get("gb", 0) * 2.0**30 or None
            beyond_clock = 1.0
            if "most_gflops" in numbers:
                beyond_clock = numbers["most_gflops"] / numbers["sp_gflops"]
            sheet = DataSheet(name, memory, numbers["w"], peaks, beyond_power, beyond_clock, numbers.get("sms"), held_b)
            sheet = replace(sheet, constant_w=numbers.get("constant_w"))
            if memory in beyond["memory"] or name.split()[0] in beyond["names"]:
                sheet = replace(sheet, beyond_power=beyond["power"], beyond_clock=beyond["clock"])
            listed[normal_name(name)] = sheet
    return listed


def _words(name: str) -> list[str]:
    return name.replace("-", " ").split()
