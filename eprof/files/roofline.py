"""A roofline document as JSON, CSV, Parquet and Markdown."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from eprof.base.text import in_markdown
from eprof.files.drawing import markdown
from eprof.files.export import dumped, harmless, to_parquet
from eprof.profile import schema
from eprof.words import costs as costs_words
from eprof.words.blocks import Block, Notes, Sentence, Tone
from eprof.words.roofline import dot_table, headline, machine_table, sweep_table

if TYPE_CHECKING:
    import pandas as pd

_TEXTS = ("kind", "name", "setting", "precision", "lever")
_COLUMNS = (
    "kind",
    "name",
    "setting",
    "precision",
    "intensity_flop_per_byte",
    "flop_per_s",
    "flop_per_j",
    "power_w",
    "speed_share",
    "energy_share",
    "lever",
)


def render(kind: str, document: schema.Roofline | Mapping[str, Any]) -> bytes:
    """The document as "json", "csv", "parquet" or "md"."""
    document = schema.typed(document, schema.Roofline)
    match kind:
        case "json":
            return dumped(document, indent=2) + b"\n"
        case "csv":
            return to_csv(document)
        case "parquet":
            return to_parquet(frame(document))
    return to_markdown(document)


def _rows(document: schema.Roofline) -> Iterator[list[Any]]:
    """A row a point of a line ("line"), a row a kernel ("kernel"); None is not known."""
    for machine in document.machines:
        named = {"kind": "line", "name": machine.name, "setting": machine.setting, "precision": machine.precision}
        for point in machine.lines or []:
            row = {**named, **structs.asdict(point)}
            yield [row.get(name) for name in _COLUMNS]
    for dot in document.kernels:
        row = {**structs.asdict(dot), "kind": "kernel", "intensity_flop_per_byte": dot.intensity_flop_per_byte.dram}
        yield [row.get(name) for name in _COLUMNS]


def frame(document: schema.Roofline) -> "pd.DataFrame":
    """The points of lines and the kernels as one long table: texts, and float64 with NaN where nothing is known."""
    import pandas as pd

    rows = pd.DataFrame(list(_rows(document)), columns=list(_COLUMNS))
    numbers = [name for name in _COLUMNS if name not in _TEXTS]
    return rows.astype({**dict.fromkeys(numbers, "float64"), **dict.fromkeys(_TEXTS, "object")})


def to_csv(document: schema.Roofline) -> bytes:
    """The same as CSV; an unknown number is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in _rows(document):
        writer.writerow([_csv_cell(value) for value in row])
    return buffer.getvalue().encode("utf-8", "backslashreplace")


def _csv_cell(value: Any) -> Any:
    return harmless(value) if value is None or isinstance(value, str) else value


def to_markdown(document: schema.Roofline) -> bytes:
    """The balances of the machines, and how far kernels are below the lines."""
    costs = Sentence(f"Costs: {costs_words.all_named(document.machines).removeprefix('costs ')}.", Tone.QUIET)
    blocks: list[Block] = [
        Sentence(headline(document)),
        costs,
        sweep_table(document) or machine_table(document.machines),
    ]
    if document.kernels:
        blocks.append(dot_table(document, None))
    heading = f"## {in_markdown(document.title or 'Rooflines')}"
    return markdown(heading, [*blocks, Notes(document.warnings, "warning")])
