"""perf's names of events, brought to one for each, and their units."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from eprof.base.text import pattern

TASK_CLOCK, CPU_CLOCK = "task-clock", "cpu-clock"
CLOCKS = (TASK_CLOCK, CPU_CLOCK)
DURATION = "duration_time"
# The kernel counts these by itself, on machines without counters too.
SOFTWARE = frozenset(
    {
        *CLOCKS,
        *(DURATION, "user_time", "system_time", "context-switches", "cs", "cpu-migrations", "migrations"),
        *("page-faults", "faults", "minor-faults", "major-faults", "alignment-faults", "emulation-faults"),
        *("cgroup-switches", "bpf-output", "dummy"),
    }
)
BYTES_OF = " bytes"  # behind the name of an event that perf prints in such units
BYTES = {"B": 1, "Bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_PMU = pattern(r"([\w-]+)/(.*)/\w*|(?P<event>\S+) \[(?P<unit>\w+)\]")
_CORES = pattern(r"cpu|cpu_core|cpu_atom|armv[0-9]+\w*|apple_\w+")
_MODIFIERS = pattern(r":[ukhpPGHSDeIW]+$")
_KERNEL_ONLY = pattern(r".*[:/](?=[pPGHSDeIW]*[kh])[khpPGHSDeIW]+$")
# Domains of RAPL: cores and graphics are inside of packages, and everything is inside of psys.
_DOMAINS = {"pkg": "package", "psys": "the whole platform", "cores": "processor cores", "gpu": "the graphics unit"}


@cache
def plain(event: str) -> tuple[str, str]:
    """A perf event's plain name, and the unit of the processor that counts it.

    `cpu_core/INST_RETIRED.ANY/u` is "inst_retired.any" on "cpu_core"; channels such as `uncore_imc_3/x/` are all
    `uncore_imc/x/`. An event that is given by numbers keeps its unit: `cpu/event=0xc7,umask=0x10/`. What only
    the kernel did is another count: `instructions:k`.
    """
    name = event.lower()
    if _KERNEL_ONLY.fullmatch(event):
        return name, ""
    inside = _PMU.fullmatch(name)
    if inside is None:
        return _MODIFIERS.sub("", name), ""
    if inside["unit"]:
        return inside["event"], inside["unit"]
    pmu, inner = inside[1], inside[2]
    if "=" not in inner and _CORES.fullmatch(pmu):
        return inner, pmu
    return f"{re.sub('_[0-9]+$', '', pmu)}/{inner}/", pmu


def is_user_only(event: str) -> bool:
    """Whether a perf event leaves the kernel's share out, as for users without privileges."""
    return event.endswith((":u", "/u"))


def domain(event: str) -> str | None:
    """The domain of a perf energy event: "pkg" of `power/energy-pkg/`; None for others."""
    return event.removeprefix("power/energy-").rstrip("/") if event.startswith("power/energy-") else None


def covered(domains: Iterable[str], packages: int | None) -> tuple[tuple[str, ...], str]:
    """The domains of perf's energy events to add up, and what they cover.

    packages: how many there are; None: not known.
    """
    known = set(domains)
    first = next((name for name in _DOMAINS if name in known), None)
    if first is None:
        return (), ""
    if first != "pkg":
        return (first,), _DOMAINS[first]
    number = f"{packages} " if packages else ""
    words = f"{number}processor package{'' if packages == 1 else 's'}"
    return (("pkg", "ram"), f"{words} and DRAM") if "ram" in known else (("pkg",), words)
