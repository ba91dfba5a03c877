"""A roofline document as JSON, CSV, Parquet and Markdown."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from eprof.base.text import in_markdown
from eprof.commands.roofline.words import dot_table, headline, machine_table, sweep_table
from eprof.profile import schema
from eprof.show import cost_words
from eprof.show.blocks import Block, Notes, Sentence, quiet
from eprof.show.export import dumped, markdown

if TYPE_CHECKING:
    import pandas as pd

_NAMES, _LEVER = ("kind", "name", "setting", "precision"), "lever"
_NUMBERS = ("intensity_flop_per_byte", "flop_per_s", "flop_per_j", "power_w", "speed_share", "energy_share")
_COLUMNS = (*_NAMES, *_NUMBERS, _LEVER)


def to_json(document: schema.Roofline | Mapping[str, Any]) -> bytes:
    """A roofline document as JSON."""
    return dumped(document, indent=2) + b"\n"


def frame(document: schema.Roofline) -> "pd.DataFrame":
    """The points of rooflines ("line") and the kernels ("kernel") as one long table, a row each.

    Texts, and float64 with NaN for what is unknown.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for machine in document.machines:
        named = {"kind": "line", "name": machine.name, "setting": machine.setting, "precision": machine.precision}
        rows += [{**named, **structs.asdict(point)} for point in machine.lines or []]
    for dot in document.kernels:
        intensity = {"intensity_flop_per_byte": dot.intensity_flop_per_byte.dram}
        rows.append({**structs.asdict(dot), "kind": "kernel", **intensity})
    table = pd.DataFrame([[row.get(name) for name in _COLUMNS] for row in rows], columns=list(_COLUMNS))
    return table.astype(dict.fromkeys(_COLUMNS, "object") | dict.fromkeys(_NUMBERS, "float64"))


def to_markdown(document: schema.Roofline) -> bytes:
    """A roofline as Markdown: the balances of the machines, and how far kernels are below the lines."""
    costs = quiet(f"Costs: {cost_words.all_named(document.machines).removeprefix('costs ')}.")
    numbers = sweep_table(document) or machine_table(document.machines)
    blocks: list[Block] = [Sentence(headline(document)), costs, numbers]
    if document.kernels:
        blocks.append(dot_table(document, None))
    heading = f"## {in_markdown(document.title or 'Rooflines')}"
    return markdown(heading, [*blocks, Notes(document.warnings, "warning")])
