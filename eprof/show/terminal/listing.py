"""Lists of what comes with eprof, cost tables and counter definitions, in a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import phrase, printable
from eprof.show.terminal.drawing import terminal

Row = Mapping[str, Any]
BOOKS = {"both": "", "other": "", "served": "served", "accessed": "accessed", "component": "time", "step": "step"}


def marks_of(marks: Sequence[str]) -> str:
    """The marks of a row in brackets, behind its text."""
    return phrase(" [{}]", ", ".join(marks))


def listing_table(*columns: str) -> Table:
    """An empty list with these columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in columns:
        narrow = name in ("way", "pays", "settings", "count", "name", "books", "profiler", "basis")
        table.add_column(name, no_wrap=narrow, overflow="fold")
    return table


def show(parts: Iterable[RenderableType]) -> None:
    """Print each part; texts as what can be printed of them."""
    console = terminal()
    for part in parts:
        console.print(Text(printable(part)) if isinstance(part, str) else part)
