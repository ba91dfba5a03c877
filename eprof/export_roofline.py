"""A roofline document as JSON and CSV."""

import csv
import io
from typing import Any

from eprof.export import dumped, harmless

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


def to_json(document: dict[str, Any]) -> bytes:
    """The document as JSON, UTF-8."""
    return dumped(document, indent=2) + b"\n"


def to_csv(document: dict[str, Any]) -> bytes:
    """One long table: a row a point of a line ("line"), a row a kernel ("kernel"); an unknown number is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for machine in document["machines"]:
        for point in machine["lines"]:
            _write(writer, {"kind": "line", **{key: machine[key] for key in ("name", "setting", "precision")}, **point})
    for kernel in document["kernels"]:
        _write(
            writer, {"kind": "kernel", **kernel, "intensity_flop_per_byte": kernel["intensity_flop_per_byte"]["dram"]}
        )
    return buffer.getvalue().encode("utf-8", "backslashreplace")


def _write(writer: Any, row: dict[str, Any]) -> None:
    values = [row.get(name) for name in _COLUMNS]
    writer.writerow([harmless(value) if isinstance(value, str) else "" if value is None else value for value in values])
