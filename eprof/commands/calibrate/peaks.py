"""How fast a benchmark ran beside what the hardware can do: the fraction of peak, by the busiest resource."""

from collections.abc import Mapping
from typing import Any

from eprof.commands.calibrate.manifest import Manifest, at, capability_of

# Above this, something is counted that was not done. Clocks are read at moments, so a little is no mistake; where the
# rate is no ceiling, some GPUs of the capability have twice the units, or two kinds of them.
IMPOSSIBLE, SUSPICIOUS = 1.1, 4.0


def resource(word: str) -> str:
    """The unit that a word keeps busy: `fp32_fma` -> fp32, `dram_read` -> dram, `integer` -> integer."""
    return word.partition("_")[0]


def peaks(manifest: Manifest, device: Mapping[str, Any], core_mhz: float, memory_mhz: float | None) -> dict[str, float]:
    """Instructions or bytes a second that the whole GPU can do, by resource; what is not known is left out."""
    capability = capability_of(str(device["capability"]))
    cycles = float(device["sms"]) * core_mhz * 1e6
    rates = {name: at(rate.at, capability) for name, rate in manifest.rates.items()}
    known = {name: rate * cycles for name, rate in rates.items() if rate is not None}
    ratio = device.get("fp32_to_fp64")
    if ratio and "fp32" in known:
        known["fp64"] = known["fp32"] / float(ratio)
    mhz = memory_mhz or float(device.get("memory_khz") or 0) / 1e3
    if mhz and device.get("bus_bits"):
        # Two transfers a cycle of the clock that the driver and NVML report.
        known["dram"] = 2 * mhz * 1e6 * float(device["bus_bits"]) / 8
    return known


def fraction(counts: Mapping[str, float], time_s: float, known: Mapping[str, float]) -> tuple[float | None, str | None]:
    """The largest fraction of a peak that a benchmark reached, and of which resource.

    counts: those that the benchmark is about. None if the peak of one of them is not known: that may be the limit.
    """
    used: dict[str, float] = {}
    for word, count in counts.items():
        name = resource(word)
        if name not in known:
            return None, None
        used[name] = used.get(name, 0.0) + count / time_s / known[name]
    if not used:
        return None, None
    busiest = max(used, key=lambda name: used[name])
    return used[busiest], busiest
