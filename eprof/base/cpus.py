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


def constant_span_w() -> tuple[float, float]:
    """The least and the most W that a CPU's socket draws without work, over all that eprof knows."""
    section = dict(_sections())[UNNAMED]
    return section["least_w"].number(), section["most_w"].number()


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
