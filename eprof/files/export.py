"""The same result as a table: CSV, Parquet, Markdown, JSON."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson
import pandas as pd

from eprof.base.text import in_code, in_markdown, printable
from eprof.words.headline import headline
from eprof.words.numbers import quantity
from eprof.words.view import View

SIGNS = {"estimated": "~", "assumed": "?", "simulated": "s"}

_UNSEEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "|", "%")  # wide ones too


def marked(value: float | None, unit: str, marks: Sequence[str]) -> str:
    """A quantity with its marks: "≥ ~12.3 J"; "?" alone never stands for a number: an unknown one is "unknown"."""
    if value is None:
        return "unknown"
    before = "≥ " if "missing" in marks else ""
    signs = "".join(SIGNS[mark] for mark in marks if mark in SIGNS)
    return before + signs + printable(quantity(value, unit))


def to_json(document: dict[str, Any]) -> bytes:
    """The document as JSON, UTF-8, one line a kernel so that text tools and diffs stay usable."""
    kernels = document["kernels"]
    head = dumped({**document, "kernels": []}, indent=2)
    if not kernels:
        return head + b"\n"
    rows = b",\n    ".join(map(dumped, kernels))
    return head.removesuffix(b'"kernels": []\n}') + b'"kernels": [\n    ' + rows + b"\n  ]\n}\n"


def dumped(value: Mapping[str, Any], indent: int | None = None) -> bytes:
    """JSON on one line, or indented by two, with escapes for what a terminal might obey or not show."""
    try:
        found = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | (orjson.OPT_INDENT_2 if indent else 0))
    except TypeError:  # orjson is quicker than json, but refuses text that is no Unicode
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain)
        found = text.encode("utf-8", "backslashreplace")
    if found.isascii() and b"\x7f" not in found:
        return found
    return _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", found.decode()).encode()


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python, for json."""
    return value.item()


def to_csv(frame: pd.DataFrame, quoting: Literal[0, 2] = 2) -> bytes:
    """One row a kernel; a text that a spreadsheet would run as a formula gets a leading quote mark.

    quoting: 2, all texts are quoted; 0, those that need it.
    """
    safe = frame.rename(columns=harmless)
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = [harmless(value) for value in safe[name]]
    buffer = io.StringIO()
    safe.to_csv(buffer, index=False, quoting=quoting, lineterminator="\n")
    return buffer.getvalue().encode("utf-8", "backslashreplace")


def harmless(value: Any) -> str:
    """A text that no spreadsheet runs as a formula, on one line, without control characters."""
    text = "" if pd.isna(value) else printable(str(value))
    return f"'{text}" if text.lstrip().startswith(_FORMULAS) else text


def to_parquet(frame: pd.DataFrame) -> bytes:
    """The same columns as `to_csv`, typed."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def to_markdown(document: dict[str, Any], limit: int = 50) -> bytes:
    """A summary for a pull request or a notebook: the headline, the split, the kernels, the warnings."""
    head = headline(View(document))
    lines = [
        f"## {in_markdown(document['title'])}",
        "",
        f"**{in_markdown(head.sentence)}** {in_markdown(head.consequence)}".rstrip(),
        "",
    ]
    lines += ["| part | energy | marks |", "|---|---:|---|"]
    for part in ("computation", "data", "constant", "total"):
        marks = document["energy_marks"][part]
        lines.append(f"| {part} | {marked(document['energy_j'][part], 'J', marks)} | {', '.join(marks)} |")
    lines += ["", "| kernel | launches | time | energy | computation | data | constant | marks |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---|"]
    lines += [_markdown_row(kernel) for kernel in document["kernels"][:limit]]
    rest = len(document["kernels"]) - limit
    lines += [f"| {rest} other kernels | | | | | | | |"] if rest > 0 else []
    lines += ["", *(f"- {in_markdown(warning)}" for warning in document["warnings"])]
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "backslashreplace")


def _markdown_row(kernel: dict[str, Any]) -> str:
    joules, marks = kernel["energy_j"], kernel["energy_marks"]
    cells = [
        in_code(kernel["name"]),
        f"{kernel['launches']}",
        marked(kernel["time_s"], "s", []),
        *(marked(joules[part], "J", marks[part]) for part in ("total", "computation", "data", "constant")),
        ", ".join(kernel["marks"]),
    ]
    return f"| {' | '.join(cells)} |"
