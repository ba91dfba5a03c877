"""GPUs: their names, which drivers and profilers write in several ways, their capabilities, and boards by data sheets.

`counters/devices.toml` has names and capabilities, `counters/boards.toml` power limits, kinds of memory and peaks.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import compress, islice
from operator import mul
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base.optional import mapped, only, ratio
from eprof.base.resources import folder
from eprof.base.text import pattern, phrase, when
from eprof.base.toml import Document

# What is behind the name of a GPU in some logs: its memory, its form.
_VARIANT = pattern(r"([ -]\d+ ?gb|[ -](max-q|with max-q design|laptop gpu|hbm\w*|pcie|sxm\d?|nvl))$")
# A name as drivers print it, behind a colon or "=": tables cut names off, and kernels are called after chips.
_TOLD = pattern(rb"[:=] *[\"']?((?:NVIDIA|GeForce|Tesla|Quadro|TITAN|RTX)(?: [\w-]{1,24}){1,7})")
_CAPABILITY = pattern(rb"(?i)(?:compute capability|capability major/minor version number) *[:=] *(\d{1,2}\.\d)\b")
_INDEX = pattern(r"(?<!\s)\s*\(\d+\)\s*$")
_MAKERS = pattern(r"^(nvidia[ -]|amd[ -]instinct[ -])+")
UNNAMED = "GPU without name"  # what a trace's devices are labelled where it does not name them
_NUMBERED = "ncu device 0 (CC {})"
_CUT = "{}… (CC {})"  # of a GPU whose name a table cut off
_LABEL = pattern(r"(?:ncu device \d+|(?P<start>.+)…) \(CC (?P<capability>\d+\.\d+)\)")


def normal_name(device_name: str) -> str:
    """The name of a GPU's model for matching: `normal_label` of a device's label without its " (0)"."""
    return normal_label(unnumbered(device_name))


def unnumbered(device_label: str) -> str:
    """The label of a device without its number behind: "Tesla V100 (0)" -> "Tesla V100"."""
    return _INDEX.sub("", device_label)


@cache
def normal_label(device_label: str) -> str:
    """A device's label for matching: lower case, single blanks, without the maker, whom not every driver names."""
    return _MAKERS.sub("", " ".join(device_label.lower().split()))


def may_be_same(name: str, other_name: str) -> bool:
    """Whether two names may be of one kind of GPU: all words of the shorter one are in the longer one."""
    words = set(normal_name(name).replace("-", " ").split())
    other_words = set(normal_name(other_name).replace("-", " ").split())
    if not words or not other_words:
        return False
    return words <= other_words or other_words <= words


def capability_of_label(label: str) -> str | None:
    """The compute capability in a label that names no GPU whole ("ncu device 0 (CC 8.0)"), else None."""
    match = _LABEL.fullmatch(label)
    return match and match["capability"]


def start_of_label(label: str) -> str | UnsetType:
    """The beginning of a GPU's name in a label with a name cut off ("GeForce GTX 105… (CC 6.1)"); else UNSET."""
    match = _LABEL.fullmatch(label)
    return (match and match["start"]) or UNSET


def capabilities_of_label(label: str) -> tuple[str, ...]:
    """The compute capabilities that the GPU of a log's label may have, as the label tells one or by its name."""
    told = capability_of_label(label)
    if told is not None:
        return (told,)
    return capabilities(label)


def capabilities(device_name: str) -> tuple[str, ...]:
    """The compute capabilities that a GPU of this name may have; several where names were reused, () if not known."""
    name = normal_name(device_name)
    while name not in capabilities_by_name():
        shorter = _VARIANT.sub("", name)
        if shorter == name:
            return ()
        name = shorter
    return capabilities_by_name()[name]


@cache
def capabilities_by_name() -> dict[str, tuple[str, ...]]:
    """The compute capabilities of each GPU of `counters/devices.toml`, by its name for matching."""
    by_name: dict[str, tuple[str, ...]] = {}
    for capability, devices in _data("devices.toml")["device"].items():
        for device in devices:
            key = normal_name(device)
            by_name[key] = (*by_name.get(key, ()), capability)
    return by_name


def capabilities_by_limits(most_blocks: float, by_warps: float, threads: float) -> frozenset[str]:
    """The compute capabilities whose SM holds `most_blocks` blocks, and warps for `by_warps` blocks of `threads`."""
    held = _data("devices.toml")["holds"]
    warps = math.ceil(threads / 32)
    alike = ((most_blocks, by_warps) == (blocks, most // warps) for most, blocks in held.values())
    return frozenset(compress(held, alike))


def of_amd(units: int, memory_b: float) -> str:
    """The name of AMD's GPU with so many compute units, and memory of `memory_b` or a little more; "" if not known."""
    known = _data("devices.toml")["amd"]
    gib = math.ceil(memory_b / 2**30)
    return next((gpu["name"] for gpu in known if (gpu["units"], gpu["gib"]) == (units, gib)), "")


def beginning(start: str) -> list[str]:
    """The GPUs of `counters/devices.toml` whose names start with `start`; [] where that is only a maker's name.

    Text tables cut names off ("GeForce GTX 108"). Variants of one GPU ("-16GB") have one name there.
    """
    known = normal_name(start)
    return sorted(name for name, normal in _normal_names().items() if known and normal.startswith(known))


@cache
def _normal_names() -> dict[str, str]:
    """Each GPU's name in `counters/devices.toml` -> its name for matching; made once: each log looks through them."""
    all_devices = _data("devices.toml")["device"].values()
    return {device: normal_name(device) for devices in all_devices for device in devices}


def alike(names: Sequence[str], start: str) -> str | None:
    """One label for a GPU that may have any of `names`, which all begin with `start` (a name that a log cut off).

    It is the only name, or that of which all are variants, or `start` and their only capability; else None.
    """
    shared = only({_VARIANT.sub("", normal_name(name)) for name in names})
    form = next((name for name in names if normal_name(name) == shared), None)
    capability = only({capability for name in names for capability in capabilities(name)})
    return only(names) or form or mapped(partial(_CUT.format, start.strip()), capability)


def told_in(output: bytes) -> str | None:
    """The GPU that a program's output names as drivers do, else a label of its capability; None: none or several."""
    found: set[str] = set()
    for match in _TOLD.finditer(output):
        words = match[1].decode().split()
        names = (" ".join(words[:number]) for number in range(len(words), 0, -1))
        found.update(islice((name for name in names if capabilities(name)), 1))
    if found:
        return only(found)
    return mapped(_NUMBERED.format, only({match[1].decode() for match in _CAPABILITY.finditer(output)}))


# What `nvidia-smi -q`, its first page (42W / 250W) and its columns (`--query-gpu=enforced.power.limit`) say of a board.
_LIMITS = (
    pattern(rb"(?im)^\s*(?:current |enforced )?power limit\s*:\s*([\d.]+) ?W"),
    pattern(rb"\bP\d+\s+(?:[\d.]+W|N/A) / *([\d.]+)W"),
)
_LIMIT_COLUMN = pattern(rb"(?m)^(.*?)\b(?:enforced\.)?power\.limit(?: \[W\])?\b[^\n]*\n((?:[^\n]+\n)*[^\n]*)")


def limit_told_in(output: bytes) -> float | None:
    """The one power limit in W that nvidia-smi tells in a program's output; None: it tells none, or several."""
    watts = {float(match[1]) for form in _LIMITS for match in form.finditer(output)}
    for match in _LIMIT_COLUMN.finditer(output) if b"power.limit" in output else ():
        rows = [line.split(b",") for line in match[2].splitlines()]
        column = match[1].count(b",")
        cells = [row[column].strip().removesuffix(b" W") for row in rows if len(row) > column]
        watts |= {float(cell) for cell in cells if cell.replace(b".", b"", 1).isdigit()}
    return only(watts - {0.0})


# ----------------------------------------------------------------------------------------------------------------------
# Boards by their data sheets.

PEAKS = ("sp_gflops", "dp_gflops", "dram_gb_per_s")
_WELL_KNOWN = ("GeForce RTX 4090", "Tesla V100", "GeForce GTX 1080 Ti")
_OF_PEAK = 0.92, 1.02  # of the peak: what logs tell at the clock that DRAM had (real logs: 0.949 to 1.0), and rounded
_OF_BASE = 0.97, 1.005  # of the base clock: what ncu, which locks clocks to it, saw (real logs: 0.976 to 1.0)
SAME_MEMORY = 0.02  # of the clock of a memory, which logs round
_FAMILY = re.compile(r"^(geforce|quadro|tesla) ")
_MEMORY_SIZE = re.compile(r"[ -]\d+ ?gb$")


class DataSheet(Struct, frozen=True):
    """The data sheet of a GPU's board, which has the name that its driver prints. None: not known.

    memory: "gddr", "laptop" (with GDDR), "hbm", or "shared" with the CPU. limit_w: its power limit in W. beyond_power,
    beyond_clock: how many times its limit and its clock it may reach, as partners and owners set it. peaks: sp_gflops,
    dp_gflops, dram_gb_per_s, as cost tables have them, at its clock; may be empty. sms: multiprocessors. memory_b:
    bytes that it holds. dram_ghz: its clock. base_mhz: of its cores. constant_w: constant power, if published.
    """

    name: str
    memory: str | None = None
    limit_w: float | None = None
    peaks: Mapping[str, float] = {}
    beyond_power: float = 1.0
    beyond_clock: float = 1.0
    sms: int | None = None
    memory_b: float | None = None
    dram_ghz: float | None = None
    base_mhz: float | None = None
    constant_w: float | None = None

    @property
    def most_w(self) -> float | None:
        """The power that the board may draw for long, in W; None: not known."""
        return mapped(mul, self.limit_w, self.beyond_power)


class Traits(Struct, frozen=True):
    """Traits of a GPU that its log does not name: multiprocessors, peak of DRAM in GB/s, its clock. None: not told.

    base_mhz: the clock of its cores where the profiler locks them to their base. start: how its name begins; UNSET: not
    told.
    """

    sms: int | None = None
    dram_gb_per_s: float | None = None
    dram_ghz: float | None = None
    base_mhz: float | None = None
    start: str | UnsetType = UNSET

    @property
    def text(self) -> str:
        """The traits in words, for a sentence: "58 multiprocessors and DRAM of 300 GB/s"; "" if none is told."""
        told = [phrase("{} multiprocessors", self.sms), phrase("DRAM of {:.3g} GB/s", self.dram_gb_per_s)]
        told.append(phrase("DRAM at {:.3g} GHz", None if self.dram_gb_per_s else self.dram_ghz))
        told.append(phrase("cores of {:.0f} MHz at base", self.base_mhz))
        told.append(phrase("a name that begins with {}", self.start or None))
        return " and ".join(filter(None, told))

    def among(self, sheets: list[DataSheet]) -> list[DataSheet]:
        """The boards that have the traits; a trait that is not told, or that none of them has, rules out none."""
        sheets = [sheet for sheet in sheets if self.is_start_of(sheet.name)] or sheets
        with_sms = [sheet for sheet in sheets if self.sms is not None and sheet.sms == self.sms] or sheets
        with_dram = [sheet for sheet in with_sms if self._has_dram(sheet)] or with_sms
        with_clock = [sheet for sheet in with_dram if self._has_clock(sheet)] or with_dram
        return [sheet for sheet in with_clock if self._has_base(sheet)] or with_clock

    def is_start_of(self, name: str) -> bool:
        """Whether `name` begins with `start`, the cut-off name among the traits; False if there is none."""
        return bool(self.start) and normal_name(name).startswith(normal_name(str(self.start)))

    def _has_dram(self, sheet: DataSheet) -> bool:
        peak = sheet.peaks.get("dram_gb_per_s", 0.0)
        least, most = _OF_PEAK
        return self.dram_gb_per_s is not None and least * peak <= self.dram_gb_per_s <= most * peak

    def _has_base(self, sheet: DataSheet) -> bool:
        least, most = _OF_BASE
        share = ratio(self.base_mhz, sheet.base_mhz)
        return share is not None and least <= share <= most

    def _has_clock(self, sheet: DataSheet) -> bool:
        """Whether a board's memory may have the clock `dram_ghz`; True where that cannot be told. HBM keeps its own."""
        share = ratio(self.dram_ghz, sheet.dram_ghz)
        if share is None or sheet.memory == "hbm":
            return share is None or abs(share - 1) <= SAME_MEMORY
        least, most = _OF_PEAK
        return least <= share <= most

    def tells(self, sheets: list[DataSheet]) -> "Traits":
        """The traits without those that one of the boards `sheets` has not, as far as its sheet tells."""
        is_shared = {
            "sms": all(sheet.sms == self.sms for sheet in sheets),
            "dram_gb_per_s": all(map(self._has_dram, sheets)),
            "dram_ghz": all(sheet.dram_ghz and self._has_clock(sheet) for sheet in sheets),
            "base_mhz": all(map(self._has_base, sheets)),
        }
        told = Traits(**{name: getattr(self, name) for name, shared in is_shared.items() if shared})
        return replace(told, start=self.start) if all(self.is_start_of(sheet.name) for sheet in sheets) else told


class Link(Struct, frozen=True):
    """A board's connection to its host: name ("PCIe 3.0"), and the B/s that copies of pinned memory reach."""

    name: str
    pinned_byte_per_s: float


NOTHING_TOLD = Traits()


@lru_cache
def data_sheet(device_name: str) -> DataSheet | None:
    """The data sheet of the board that a log, or a user for short ("RTX 4090"), calls so; None: none or several fit."""
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
    """The PCIe link of the GPU with this label in a log; None: not known, or the GPU is connected otherwise."""
    told = _data("boards.toml")["pcie"]
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
    lanes = f"PCIe {generation}{when(is_narrow, ' x8')}"
    return Link(lanes, told["gb_per_s"][generation] * told["pinned"] * 1e9 / (1 + is_narrow))


def power_limit_w(device_name: str) -> float | None:
    """The power limit in W of the board that a log calls `device_name`; None if it is not known."""
    return (data_sheet(device_name) or DataSheet("")).limit_w


def most_w(device_name: str) -> float | None:
    """The power in W that the board that a log calls `device_name` may draw for long; None if it is not known."""
    return (data_sheet(device_name) or DataSheet("")).most_w


def sheets_of(device_label: str | None, told: Traits = NOTHING_TOLD) -> list[DataSheet]:
    """The boards that a log's GPU may be by its label: the named one, or all of its capability with traits `told`."""
    if device_label is None:
        return []
    capability = capability_of_label(device_label)
    if capability is not None:
        return sheets_with(capability, replace(told, start=start_of_label(device_label)))
    return [sheet for sheet in [data_sheet(device_label)] if sheet is not None]


def sheets_with(capability: str, told: Traits = NOTHING_TOLD) -> list[DataSheet]:
    """The data sheets of a compute capability's boards that have the traits that a log told (see `Traits.among`)."""
    return told.among([sheet for sheet in sheets() if capability in capabilities(sheet.name)])


def sheets() -> list[DataSheet]:
    """The data sheets of all boards in `counters/boards.toml`."""
    return list(_listed().values())


def example(lowest: float, highest: float) -> str:
    """The name of some GPU of a compute capability from `lowest` to `highest`, a well-known one if there is one."""
    names = [*_WELL_KNOWN, *(sheet.name for sheet in sheets())]
    able = (name for name in names if any(lowest <= float(number) <= highest for number in capabilities(name)))
    return next(able, _WELL_KNOWN[0]).removeprefix("GeForce ")


def near(device_name: str) -> list[str]:
    """The names of up to three boards with a data sheet that have the words of `device_name`, else are most like it."""
    name = normal_name(device_name)
    with_it = [key for key in _listed() if set(_words(name)) <= set(_words(key))]
    import difflib  # takes a millisecond, and few commands need it

    short_names = {_FAMILY.sub("", key): key for key in _listed()}
    close = difflib.get_close_matches(_FAMILY.sub("", name), short_names, n=3, cutoff=0.6)
    keys = with_it or [short_names[close_name] for close_name in close]
    return [_listed()[key].name for key in keys[:3]]


@cache
def _data(file: str) -> Mapping[str, Any]:
    """The data of a TOML file in `counters/`, read once."""
    return Document.read(folder("counters") / file).data


@cache
def _listed() -> Mapping[str, DataSheet]:
    """Name for matching -> data sheet, of each board in `counters/boards.toml`."""
    data = _data("boards.toml")
    beyond = data["beyond"]
    listed = {}
    for memory, boards in data.items():
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
            dram_ghz = mapped((1e-3).__mul__, numbers.get("dram_mhz"))
            if "bits" in numbers:
                dram_ghz = 8 * peaks["dram_gb_per_s"] / (2 * numbers["bits"])
            others = {name: numbers.get(name) for name in ("base_mhz", "constant_w")}
            sheet = replace(sheet, dram_ghz=dram_ghz, **others)
            if memory in beyond["memory"] or name.split()[0] in beyond["names"]:
                sheet = replace(sheet, beyond_power=beyond["power"], beyond_clock=beyond["clock"])
            listed[normal_name(name)] = sheet
    return listed


def _words(name: str) -> list[str]:
    return name.replace("-", " ").split()
