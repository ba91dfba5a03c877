"""Results as bytes of a file: JSON, CSV, Parquet, traces; and blocks of `eprof.show.blocks` as Markdown."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from eprof.base.text import counted, in_code, in_markdown, pattern, phrase, printable, when
from eprof.show.blocks import (
    Block,
    Cell,
    Headline,
    Legend,
    Medium,
    Name,
    Notes,
    Point,
    Sentence,
    Table,
    Verdict,
    legend,
    plain_text,
)

if TYPE_CHECKING:
    import pandas as pd


_UNSEEN = pattern("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "|", "%")  # wide ones too
_encoder = msgspec.json.Encoder(enc_hook=lambda value: value.item())  # numbers of NumPy


def to_json(document: Any) -> bytes:
    """A document as JSON, UTF-8, one line a kernel so that text tools and diffs stay usable."""
    if isinstance(document, Mapping):
        kernels, head = document["kernels"], dumped({**document, "kernels": []}, indent=2)
    else:
        kernels, head = document.kernels, dumped(msgspec.structs.replace(document, kernels=[]), indent=2)
    if not kernels:
        return head + b"\n"
    lines = [*map(dumped, kernels)]
    lines[0] = head.removesuffix(b"[]\n}") + b"[\n    " + lines[0]
    lines[-1] += b"\n  ]\n}\n"
    return b",\n    ".join(lines)


def dumped(value: msgspec.Struct | Mapping[str, Any], indent: int | None = None) -> bytes:
    """Encode as JSON on one line, or on indented lines; characters that a terminal may obey or not show are escaped."""
    try:
        encoded = _encoder.encode(value)
        if indent:
            encoded = msgspec.json.format(encoded, indent=indent)
    except UnicodeEncodeError:  # a name that is not Unicode
        plain = msgspec.to_builtins(value, enc_hook=lambda number: number.item())
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=indent)
        encoded = text.encode("utf-8", "backslashreplace")
    return _visible(encoded)


def _visible(encoded: bytes) -> bytes:
    """JSON in which characters that a terminal may obey or not show are escapes."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return _UNSEEN.sub(lambda letter: f"\\u{ord(letter[0]):04x}", encoded.decode()).encode()


def to_csv(frame: "pd.DataFrame", quoting: Literal[0, 2] = 2) -> bytes:
    """A table as CSV; a text that a spreadsheet would run as a formula gets a leading quote mark.

    quoting: 2, all texts are quoted; 0, those that need it.
    """
    from pandas.api.types import is_numeric_dtype

    safe = frame.rename(columns=harmless)
    for name in safe.columns:
        if not is_numeric_dtype(safe[name]):
            safe[name] = [harmless(value) for value in safe[name]]
    buffer = io.StringIO()
    safe.to_csv(buffer, index=False, quoting=quoting, lineterminator="\n")
    return buffer.getvalue().encode("utf-8", "backslashreplace")


def harmless(value: Any) -> str:
    """A text on one line, with a quote mark in front where a spreadsheet would run it; "" for None and NaN."""
    is_unknown = value is None or value != value  # NaN is not equal to itself
    text = when(not is_unknown, printable(str(value)))
    return when(text.lstrip().startswith(_FORMULAS), "'") + text


def to_parquet(frame: "pd.DataFrame") -> bytes:
    """A table as Parquet: the same columns as `to_csv`, typed."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def trace_of(head: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The bytes of a trace file for Perfetto. head: what the trace is of; rows: its events."""
    events = b",\n".join(map(dumped, rows))
    return b'{"otherData":' + dumped(head) + b',\n"displayTimeUnit":"ns",\n"traceEvents":[\n' + events + b"\n]}\n"


def trace_name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """The row of a trace that names a process ("process_name") or a thread."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def trace_number(value: float) -> float:
    """Round to twelve significant digits: Perfetto 52 misreads seventeen (1.3573520000000001e-05 becomes 0.0035)."""
    return float(f"{value:.12g}")


_NAME = 60
_NOTES = 40_000  # characters: a comment takes 65,536
_RULES = {"left": "---", "right": "---:", "center": ":---:"}


def markdown(heading: str, blocks: Iterable[Block]) -> bytes:
    """Blocks as a Markdown file: its heading, then the blocks. Verdicts that follow each other are one list."""
    text = heading
    previous: Block | None = None
    for block in blocks:
        drawn = "\n".join(_drawn(block)).rstrip()
        if drawn:
            if not (isinstance(block, Verdict) and isinstance(previous, Verdict)):
                text += "\n"
            text += f"\n{drawn}"
            previous = block
    return (text + "\n").encode("utf-8", "backslashreplace")


def _drawn(block: Block) -> Iterator[str]:
    """Yield the lines of a block in Markdown; of long notes, the first 40,000 characters."""
    match block:
        case Headline():
            yield f"**{in_markdown(block.text)}** {in_markdown(block.lead)}"
        case Sentence():
            yield in_markdown(block.text)
        case Point():
            yield f"**{block.label}:** {in_markdown(block.text)}"
        case Verdict():
            yield f"- {'✅' if block.passed else '❌'} {in_markdown(block.text)}"
        case Table():
            yield from _table(block.on(Medium.MARKDOWN).fitted(_NAME))
        case Legend():
            yield legend(block.marks)
        case Notes():
            if block.texts:
                yield f"<details><summary>{counted(len(block.texts), block.noun)}</summary>"
                yield ""
                lines = [f"- {in_markdown(note)}" for note in block.texts]
                ends = accumulate(map(len, lines))
                shown = [line for line, end in zip(lines, ends, strict=True) if end <= _NOTES]
                yield from shown
                if len(shown) < len(lines):
                    yield f"- and {counted(len(lines) - len(shown), f'more {block.noun}')} in the JSON"
                yield ""
                yield "</details>"


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table in Markdown: title, header, rows (totals bold), what was left out, note."""
    if table.title:
        yield from (in_markdown(table.title), "")
    yield _line(in_markdown(column.label) for column in table.columns)
    yield "|" + "|".join(_RULES[column.align] for column in table.columns) + "|"
    for row in table.rows:
        cells = [_cell(cell) for cell in row.cells]
        if row.total:
            cells = [phrase("**{}**", cell) for cell in cells]
        yield _line(cells)
    if table.left_out:
        yield _line([in_markdown(table.left_out), *("" for _ in table.columns[1:])])
    if table.note:
        yield from ("", in_markdown(table.note))


def _line(cells: Iterable[str]) -> str:
    return "|" + "|".join(phrase(" {}", cell) + " " for cell in cells) + "|"


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Name):
        return in_markdown(plain_text(cell))
    return in_code(cell.text) + phrase(" ({})", in_markdown(cell.note))
