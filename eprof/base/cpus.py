"""CPUs, by `counters/cpus.toml`: the microarchitecture by name or by /proc/cpuinfo; its cost table and flops."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from eprof.base import resources
from eprof.base.toml import Document, Node

UNNAMED = "unnamed"  # the section of a CPU that no log names
_FIELDS = (("vendor_id", "cpu family", "model"), ("CPU implementer", "CPU part"))  # of x86 and Arm


def microarchitecture(name: str) -> str | None:
    """The microarchitecture ("skylake-sp") of a CPU by its name, or by what LIKWID calls its type; None: not known."""
    return next((section for section, names in _names().items() if names.search(name)), None)


def nearest_costs(name: str) -> str | None:
    """The cost table, by name, nearest to the CPU called `name`; None: its microarchitecture is not known."""
    known = microarchitecture(name)
    return next((entry["costs"].text() for section, entry in _sections() if section == known), None)


def is_unlike(name: str | None) -> bool:
    """Whether the CPU called `name` is unlike those of all cost tables, and of all that eprof can profile."""
    return any(re.search(each, name or "") for each in dict(_sections())[UNNAMED]["unlike"].texts())


def is_client(name: str | None) -> bool:
    """Whether the CPU called `name` is of a laptop or a desktop, by its name."""
    return any(re.search(each, name or "") for each in dict(_sections())[UNNAMED]["clients"].texts())


def constant_span_w(name: str | None = None) -> tuple[float, float]:
    """The least and the most W that a socket of the CPU draws without work, over all such CPUs that eprof knows."""
    section, whose = dict(_sections())[UNNAMED], "client_" * is_client(name)
    return section[f"{whose}least_w"].number(), section[f"{whose}most_w"].number()


def apart() -> float:
    """The factor, up or down, by which the cores of two kinds of CPU may differ in joules for the same work."""
    return dict(_sections())[UNNAMED]["apart"].number()


@cache
def fp64_flops_a_cycle(name: str | None) -> float:
    """The most FP64 flops a cycle of one core of this microarchitecture; where it is not known, the most of any."""
    known = {section: entry["fp64_flops"].number() for section, entry in _sections() if section != UNNAMED}
    return known.get(name or "", max(known.values()))


def in_cpuinfo(text: str) -> str | None:
    """The microarchitecture of the first CPU in the text of /proc/cpuinfo; None: not known."""
    first = dict(re.findall(r"^([^:\n]*?)\s*: *(.*?) *$", text.partition("\n\n")[0], re.MULTILINE))
    for fields in _FIELDS:
        if known := of_model(" ".join(first.get(field, "") for field in fields)):
            return known
    return None


def of_model(numbers: str) -> str | None:
    """The microarchitecture of a CPU "VENDOR FAMILY MODEL" ("AuthenticAMD 25 144"); None: not known."""
    return _models().get(numbers)


def of_cpuid(cpuid: str) -> str | None:
    """The CPU, by the number that perf tells: its microarchitecture, or "IBM Z"; None: not known.

    "GenuineIntel-6-55-4" (family, model in hexadecimal digits, stepping), "0x00000000410fd0c0" (Arm's MIDR) or
    "IBM,3931,704" (tools/perf/arch/*/util/header.c of Linux).
    """
    if of_x86 := re.match(r"(\w+)-(\d+)-([0-9A-F]+)(?:-|$)", cpuid):
        return of_model(f"{of_x86[1]} {of_x86[2]} {int(of_x86[3], 16)}")
    if re.fullmatch(r"0x[0-9a-f]{16}", cpuid):
        implementer, part = int(cpuid[-8:-6], 16), int(cpuid[-4:-1], 16)
        return of_model(f"0x{implementer:02x} 0x{part:03x}")
    return "IBM Z" if cpuid.startswith("IBM,") else None


@cache
def _names() -> dict[str, re.Pattern[str]]:
    """Microarchitecture -> a pattern for its own name and the names of its CPUs."""
    patterns = {}
    for name, entry in _sections():
        names = [rf"(?<![\w-]){re.escape(name)}(?![\w-])", *entry["names"].texts()]
        patterns[name] = re.compile("|".join(names), re.IGNORECASE)
    return patterns


@cache
def _models() -> dict[str, str]:
    """The microarchitecture of each CPU "VENDOR FAMILY MODEL"; the file may give a range: "GenuineIntel 6 30-31"."""
    name_of: dict[str, str] = {}
    for name, entry in _sections():
        for models in entry["models"].texts():
            family, _, model = models.rpartition(" ")
            first, dash, last = model.partition("-")
            numbers: Iterable[object] = [model]
            if dash:
                numbers = range(int(first), int(last) + 1)
            name_of |= {f"{family} {number}": name for number in numbers}
    return name_of


@cache
def _sections() -> list[tuple[str, Node]]:
    return Document.read(resources.folder("counters") / "cpus.toml").root.items()
