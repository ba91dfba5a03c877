"""The document `eprof.roofline/1`: machines with their lines, kernels below them, equal power (docs/roofline.md)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from eprof import __version__
from eprof.rooflines import Machine, Match, described

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

SCHEMA = "eprof.roofline/1"
_STEPS = 193


def document(
    machines: Sequence[Machine],
    matches: Sequence[Match] = (),
    energy: "Energy | None" = None,
    command_line: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Everything that a roofline report shows. The kernels of `energy` are placed below its own costs' lines."""
    profile = energy.document() if energy is not None else None
    kernels = _kernels(profile) if profile is not None else []
    span = _span(machines, kernels)
    grid = np.geomspace(*span, _STEPS)
    return {
        "schema": SCHEMA,
        "eprof": __version__,
        "title": profile["title"] if profile is not None else None,
        "created_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command_line": list(command_line),
        "machines": [{**described(one), "lines": one.lines(grid)} for one in machines],
        "equal_power": [one.data() for one in matches],
        "inputs": profile["inputs"] if profile is not None else [],
        "kernels": kernels,
        "warnings": [*warnings, *(profile["warnings"] if profile is not None else [])],
    }


def _kernels(profile: dict[str, Any]) -> list[dict[str, Any]]:
    limits = profile.get("limits", {}).get("kernels") or []
    return [
        {
            "name": kernel["name"],
            "device": kernel["device"],
            "launches": kernel["launches"],
            "time_s": kernel["time_s"],
            "energy_j": kernel["energy_j"]["total"],
            "power_w": kernel["power_w"],
            **limit,
            "marks": kernel["marks"],
        }
        for kernel, limit in zip(profile["kernels"], limits, strict=False)
    ]


def _span(machines: Sequence[Machine], kernels: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The flop/B to draw: an octave or more around every balance and every kernel, in whole powers of two."""
    wanted = [one.time_balance for one in machines] + [one.energy_balance for one in machines]
    wanted += [one.half_efficiency_intensity for one in machines]
    wanted += [at for one in kernels if (at := one["intensity_flop_per_byte"]["dram"])]
    low, high = min([0.5, *wanted]), max([64.0, *wanted])
    return float(2 ** np.floor(np.log2(low) - 1)), float(2 ** np.ceil(np.log2(high) + 1))
