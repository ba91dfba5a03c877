"""Names of GPUs: drivers and profilers write the name of one GPU in several ways."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import compress, islice

from eprof.base import resources
from eprof.base.known import mapped, only
from eprof.base.text import pattern
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
_LABEL = pattern(r"ncu device \d+ \(CC (\d+\.\d+)\)")


def normal_name(device_name: str) -> str:
    """The name of a kind of GPU for matching: as `normal_label`, without the " (0)" behind."""
    return normal_label(unnumbered(device_name))


def unnumbered(device_label: str) -> str:
    """The label of a device without the " (0)" behind."""
    return _INDEX.sub("", device_label)


def normal_label(device_label: str) -> str:
    """The label of one GPU for matching: lower case, single blanks, without makers, which not every driver names."""
    return _MAKERS.sub("", " ".join(device_label.lower().split()))


def may_be_same(name: str, other_name: str) -> bool:
    """Whether two names may be of one kind of GPU: all words of the shorter one are in the longer one."""
    words = set(normal_name(name).replace("-", " ").split())
    other_words = set(normal_name(other_name).replace("-", " ").split())
    if not words or not other_words:
        return False
    return words <= other_words or other_words <= words


def capability_of_label(label: str) -> str | None:
    """The compute capability in ncu's label of a device ("ncu device 0 (CC 8.0)"), else None."""
    match = _LABEL.fullmatch(label)
    return match and match[1]


def capabilities_of_label(label: str) -> tuple[str, ...]:
    """The compute capabilities that the GPU with this label in a log may have, by ncu's label or by its name."""
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
    document = Document.read(resources.folder("counters") / "devices.toml")
    by_name: dict[str, tuple[str, ...]] = {}
    for capability, devices in document.data["device"].items():
        for device in devices:
            key = normal_name(device)
            by_name[key] = (*by_name.get(key, ()), capability)
    return by_name


def that_hold(most_blocks: float, by_warps: float, threads: float) -> frozenset[str]:
    """The compute capabilities whose multiprocessors hold so many blocks at most, and by warps of so many `threads`."""
    held = Document.read(resources.folder("counters") / "devices.toml").data["holds"]
    warps = math.ceil(threads / 32)
    alike = ((most_blocks, by_warps) == (blocks, most // warps) for most, blocks in held.values())
    return frozenset(compress(held, alike))


def of_amd(units: int, memory_b: float) -> str:
    """The GPU of AMD with so many compute units and so much memory, of which some is reserved; "" if none is known."""
    known = Document.read(resources.folder("counters") / "devices.toml").data["amd"]
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
    """The GPUs of `counters/devices.toml` and their names for matching, made once: each log looks through them."""
    document = Document.read(resources.folder("counters") / "devices.toml")
    return {device: normal_name(device) for devices in document.data["device"].values() for device in devices}


def alike(names: Sequence[str]) -> str | None:
    """The only GPU of `names`, or what forms of one share; else ncu's label for their one capability; None: several."""
    shared = only({_VARIANT.sub("", normal_name(name)) for name in names})
    form = next((name for name in names if normal_name(name) == shared), None)
    capability = only({capability for name in names for capability in capabilities(name)})
    return only(names) or form or mapped(_NUMBERED.format, capability)


def told_in(output: bytes) -> str | None:
    """The one GPU that a program's output names as drivers do, or ncu's label for its capability; else None."""
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
