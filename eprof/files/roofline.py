"""A roofline document as JSON, CSV, Parquet and Markdown."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from eprof.base.text import in_markdown
from eprof.files.export import dumped, harmless, to_parquet
from eprof.words.lever import lever, share_of
from eprof.words.numbers import plain
from eprof.words.roofline import ROWS, capped, headline, label

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


def render(kind: str, document: dict[str, Any]) -> bytes:
    """The document as "json", "csv", "parquet" or "md"."""
    match kind:
        case "json":
            return dumped(document, indent=2) + b"\n"
        case "csv":
            return to_csv(document)
        case "parquet":
            return to_parquet(frame(document))
    return markdown(document).encode("utf-8", "backslashreplace")


def _rows(document: Mapping[str, Any]) -> Iterator[list[Any]]:
    """A row a point of a line ("line"), a row a kernel ("kernel"); None is not known."""
    for machine in document["machines"]:
        for point in machine["lines"]:
            row = {"kind": "line", **{key: machine[key] for key in ("name", "setting", "precision")}, **point}
            yield [row.get(name) for name in _COLUMNS]
    for kernel in document["kernels"]:
        row = {"kind": "kernel", **kernel, "intensity_flop_per_byte": kernel["intensity_flop_per_byte"]["dram"]}
        yield [row.get(name) for name in _COLUMNS]


def frame(document: Mapping[str, Any]) -> pd.DataFrame:
    """The points of lines and the kernels as one long table: texts, and float64 with NaN where nothing is known."""
    found = pd.DataFrame(list(_rows(document)), columns=list(_COLUMNS))
    numbers = [name for name in _COLUMNS if name not in _TEXTS]
    return found.astype({**dict.fromkeys(numbers, "float64"), **dict.fromkeys(_TEXTS, "object")})


def to_csv(document: Mapping[str, Any]) -> bytes:
    """The same as CSV; an unknown number is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in _rows(document):
        cells = [harmless(value) if isinstance(value, str) else "" if value is None else value for value in row]
        writer.writerow(cells)
    return buffer.getvalue().encode("utf-8", "backslashreplace")


def markdown(document: Mapping[str, Any]) -> str:
    """The balances of the machines, and how far kernels are below the lines."""
    machines, kernels = document["machines"], document["kernels"]
    named = [in_markdown(label(one)) for one in machines]
    lines = [f"## {in_markdown(document['title'] or 'Rooflines')}", "", in_markdown(headline(document)), ""]
    lines += [f"| | {' | '.join(named)} |", "|---|" + "---:|" * len(machines)]
    lines += [f"| {name} | {' | '.join(in_markdown(read(one)) for one in machines)} |" for name, read in ROWS]
    if any(one["power_cap_w"] is not None for one in machines):
        lines.append(f"| capped, flop/B | {' | '.join(in_markdown(capped(one)) for one in machines)} |")
    if kernels:
        heads = ("kernel", "flop/B", "of roofline", "of arch line", "largest part of its energy")
        lines += ["", f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---|"]
        lines += [f"| {' | '.join(_kernel(one))} |" for one in kernels]
    lines += ["", *(f"- {in_markdown(warning)}" for warning in document["warnings"])]
    return "\n".join(lines).rstrip() + "\n"


def _kernel(kernel: Mapping[str, Any]) -> list[str]:
    intensity = kernel["intensity_flop_per_byte"]["dram"]
    shares = [share_of(kernel, key) or "unknown" for key in ("speed_share", "energy_share")]
    flops = "unknown" if intensity is None else plain(intensity)
    return [in_markdown(one) for one in (kernel["name"], flops, *shares, lever(kernel))]
