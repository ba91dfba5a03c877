"""Scaling, worked out once more: the closed form with its causes, and what a table of measured runs says. Plain loops.

Written from docs/scale.md and [S] 4, not from eprof. A machine is a dictionary: clocks {MHz: (idle W, on-chip W, off-chip W)},
cycles, off_chip_s, messages [(bytes, s), ...]. Work is one of on_chip, off_chip, on_chip_extra, off_chip_extra, messages,
network_bytes and alpha.
"""

from math import inf
from statistics import median


def message_s(points: list[tuple[float, float]], size: float) -> float:
    """The time of a message: on a line between two points, the first one's below them, the last line beyond them."""
    if size <= points[0][0]:
        return points[0][1]
    for (small, before), (large, after) in zip(points, points[1:], strict=False):
        if size <= large or (large, after) == points[-1]:
            return before + (after - before) * (size - small) / (large - small)
    raise AssertionError("two points at least")


def closed_form(machine: dict, mhz: float, work: dict, processors: int, waiting: str) -> dict:
    """Time, E1, Ep and E0 by cause of a program on so many processors, at one of the machine's clocks."""
    idle_w, on_chip_w, off_chip_w = machine["clocks"][mhz]
    cycle_s = machine["cycles"] / (mhz * 1e6)
    start_s = wire_s = 0.0
    if work["messages"]:
        start_s = work["messages"] * machine["messages"][0][1]
        each_s = message_s(machine["messages"], work["network_bytes"] / work["messages"])
        wire_s = work["messages"] * each_s - start_s

    byte_s, storage_w = machine.get("storage", (0.0, 0.0))
    files, more_files = work.get("io_bytes", 0.0), work.get("io_bytes_extra", 0.0)

    def joules(on_chip: float, off_chip: float, other_s: float = 0.0, file_bytes: float = 0.0) -> float:
        busy_s, memory_s, file_s = on_chip * cycle_s, off_chip * machine["off_chip_s"], file_bytes * byte_s
        idle_j = work["alpha"] * (busy_s + memory_s + file_s + other_s) * idle_w
        return idle_j + busy_s * on_chip_w + memory_s * off_chip_w + file_s * storage_w

    base_s = work["on_chip"] * cycle_s + work["off_chip"] * machine["off_chip_s"] + files * byte_s
    more_s = work["on_chip_extra"] * cycle_s + work["off_chip_extra"] * machine["off_chip_s"] + more_files * byte_s
    causes = {
        "compute": joules(work["on_chip_extra"], 0.0),
        "memory": joules(0.0, work["off_chip_extra"]),
        "io": joules(0.0, 0.0, 0.0, more_files),
        "messages": joules(0.0, 0.0, start_s),
        "bytes": joules(0.0, 0.0, wire_s),
        # A processor that polls computes for as long as the messages take, which is alpha times what they would alone.
        "waiting": work["alpha"] * (start_s + wire_s) * on_chip_w if waiting == "poll" else 0.0,
    }
    base_j = joules(work["on_chip"], work["off_chip"], 0.0, files)
    return {
        "time_s": work["alpha"] * (base_s + more_s + start_s + wire_s) / processors,
        "base_s": work["alpha"] * base_s,
        "base_j": base_j,
        "energy_j": base_j + sum(causes.values()),
        "causes": causes,
    }


def measured(rows: list[dict]) -> list[dict]:
    """What a table of runs says, a row for each different run: medians, efficiencies, speedup, what nothing beats."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["program"], row["size"], row["processes"], row["core_mhz"]), []).append(row)
    told = []
    for (program, size, processes, mhz), same in groups.items():
        joules = [row["energy_j"] for row in same if row["energy_j"]]
        told.append(
            {
                **{"program": program, "size": size, "processors": processes, "core_mhz": mhz, "repeats": len(same)},
                "time_s": median(row["time_s"] for row in same),
                "energy_j": median(joules) if joules else None,
            }
        )
    for row in told:
        alike = [other for other in told if (other["program"], other["size"]) == (row["program"], row["size"])]
        alone = [other for other in alike if other["processors"] == 1]
        here = [other for other in alone if other["core_mhz"] == row["core_mhz"]]
        slow = min((other for other in alone if other["core_mhz"]), key=lambda other: other["core_mhz"], default=None)
        row["efficiency"] = _over(here[0]["energy_j"] if here else None, row["energy_j"])
        row["efficiency_to_slowest_clock"] = _over(slow["energy_j"] if slow else None, row["energy_j"])
        row["speedup"] = _over(here[0]["time_s"] if here else None, row["time_s"])
        row["power_w"] = _over(row["energy_j"], row["time_s"])
        row["pareto"] = row["energy_j"] is not None and not any(
            other["energy_j"] is not None
            and other["energy_j"] <= row["energy_j"]
            and other["time_s"] <= row["time_s"]
            and (other["energy_j"], other["time_s"]) != (row["energy_j"], row["time_s"])
            for other in alike
        )
    return told


def best(told: list[dict], program: str, size: float | None, joules: float, seconds: float) -> float:
    """The least E^joules T^seconds of a problem, infinite where no energy is known."""
    known = [row for row in told if (row["program"], row["size"]) == (program, size) and row["energy_j"] is not None]
    return min((row["energy_j"] ** joules * row["time_s"] ** seconds for row in known), default=inf)


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
