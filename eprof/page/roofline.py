"""The page of `eprof roofline`: a function of the document `eprof.roofline/1` (docs/roofline.md)."""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from eprof.page.sections.limits import panels
from eprof.page.sections.method import utc
from eprof.page.shell import filled
from eprof.page.unmasked import unmasked
from eprof.words import names
from eprof.words.lever import EXPLAINED, lever, share_of
from eprof.words.numbers import plain, quantity, whole
from eprof.words.roofline import ROWS, capped, headline, label, match, verdict

DRAWN, LISTED = 300, 200
_SCRIPT = "roofline.js"


def html(document: Mapping[str, Any]) -> str:
    """One self-contained HTML file."""
    document = unmasked(document)
    machines = document["machines"]
    return filled(
        "roofline.html",
        ["report.css"],
        [_SCRIPT],
        title=document["title"] or ", ".join(dict.fromkeys(one["name"] for one in machines)),
        created=utc(document["created_utc"]),
        headline=headline(document),
        leads=[*map(match, document["equal_power"]), *map(verdict, machines)],
        legend=[(at % 6, label(one)) for at, one in enumerate(machines)],
        panels=_panels(document),
        machines=[label(one) for one in machines],
        numbers=[(name, [read(one) for one in machines]) for name, read in ROWS] + _caps(machines),
        notes=list(dict.fromkeys(f"{one['name']}: {note}" for one in machines for note in one["notes"])),
        kernels=[_kernel(one) for one in document["kernels"][:LISTED]],
        rest=max(0, len(document["kernels"]) - LISTED),
        explained=EXPLAINED,
        warnings=document["warnings"],
        command=shlex.join(map(str, document["command_line"])),
        eprof=document["eprof"],
        schema=document["schema"],
        whole=whole,
    )


def _caps(machines: list[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    if all(one["power_cap_w"] is None for one in machines):
        return []
    return [("capped, flop/B", [capped(one) for one in machines])]


def _panels(document: Mapping[str, Any]) -> list[Markup]:
    kernels = [one for one in document["kernels"] if _drawable(one)][:DRAWN]
    machines = document["machines"]
    lines = [_line(one["lines"]) for one in machines]
    return panels(lines, [one["time_balance"] for one in machines], kernels, span=_span(machines))


def _span(machines: list[Mapping[str, Any]]) -> tuple[float, float]:
    points = machines[0]["lines"]
    return points[0]["intensity_flop_per_byte"], points[-1]["intensity_flop_per_byte"]


def _drawable(one: Mapping[str, Any]) -> bool:
    return all((one["intensity_flop_per_byte"]["dram"], one["flop_per_s"], one["flop_per_j"], one["power_w"]))


def _line(points: list[Mapping[str, float]]) -> Callable[[float], tuple[float, float, float]]:
    """The document's points as a function, straight between neighbours on logarithmic axes."""
    import numpy as np

    at = np.log([one["intensity_flop_per_byte"] for one in points])
    rows = [np.log([one[key] for one in points]) for key in ("flop_per_s", "flop_per_j", "power_w")]

    def read(intensity: float) -> tuple[float, float, float]:
        speed, efficiency, power = (float(np.exp(np.interp(np.log(intensity), at, row))) for row in rows)
        return speed, efficiency, power

    return read


def _kernel(one: Mapping[str, Any]) -> list[str]:
    start, end = names.core(one["name"])
    values = [one["flop_per_s"], one["flop_per_j"]]
    levels = [one["intensity_flop_per_byte"][level] for level in ("dram", "l2", "l1", "shared")]
    return [
        names.cut(one["name"][start:end], 40),
        *("–" if value is None else plain(value) for value in levels),
        *("–" if value is None else quantity(value, "") for value in values),
        *(share_of(one, key) or "–" for key in ("speed_share", "energy_share")),
        lever(one),
    ]
