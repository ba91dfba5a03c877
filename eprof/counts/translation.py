"""Where counters are used, and what the other profiler calls them: `eprof counters --find`."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from eprof.base import resources
from eprof.base.text import pattern
from eprof.base.toml import Document, Node
from eprof.counts.counters import definitions
from eprof.counts.definition import Definition

_METRIC = pattern(r"\b(?=[a-z]\w*?__\w)\w++(?:\.\w++)+")


class OtherName(Struct, frozen=True):
    """Names of a counter in nvprof (`*`: the number of a slice), and the formula of ncu's metrics that is the same."""

    nvprof: tuple[str, ...]
    ncu: str
    note: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of ncu that a translation's formula holds."""
        return tuple(_METRIC.findall(self.ncu))


@cache
def other_names() -> tuple[OtherName, ...]:
    """The translations between nvprof and ncu in `counters/nvprof-ncu.toml`, in its order.

    Raises DefinitionError where it says it wrongly.
    """
    document = Document.read(resources.folder("counters") / "nvprof-ncu.toml")
    rows = document.root.table(("schema", "row"))["row"]
    return tuple(_other_name(row) for row in rows.entries())


def _other_name(row: Node) -> OtherName:
    row.table(("nvprof", "ncu", "note"))
    names = tuple(name.text() for name in row["nvprof"].each())
    name = OtherName(names, row["ncu"].text(""), row["note"].text(""))
    if not name.nvprof or not name.metrics:
        raise row.error("a row names counters of nvprof, and metrics of ncu with their suffix.")
    return name


def search(text: str, extra: Path | None = None) -> list[dict[str, Any]]:
    """Where a profiler's counters are used: rows of definition, counter (full name), words that it helps to count.

    `also`: what the other of nvprof and ncu calls it, as far as `counters/nvprof-ncu.toml` has it. Names that only that
    file knows have no definition and no words.
    """
    rows = [row for definition in definitions(extra) for row in _search_definition(text.lower(), definition)]
    used = {row["counter"] for row in rows}
    only_translated = dict.fromkeys(name for pair in other_names() for name in pair.nvprof)
    for name in only_translated:
        if text.lower() in name.lower() and not any(fnmatchcase(counter, name) for counter in used):
            rows.append(_usage_row("", "nvprof", name, ()))
    return rows


def _search_definition(text: str, definition: Definition) -> list[dict[str, Any]]:
    words: dict[str, list[str]] = {}
    for row in definition.explain():
        for counter in row["counters"]:
            if text in counter.lower():
                words.setdefault(counter, []).append(row["word"])
    return [_usage_row(definition.name, definition.profiler, counter, words[counter]) for counter in sorted(words)]


def _usage_row(definition: str, profiler: str, counter: str, words: Iterable[str]) -> dict[str, Any]:
    also = []
    for pair in other_names():
        note = f" ({pair.note})" if pair.note else ""
        if profiler == "nvprof" and any(fnmatchcase(counter, name) for name in pair.nvprof):
            also.append(f"ncu: {pair.ncu}{note}")
        elif profiler == "ncu" and _partition_name(counter) == _partition_name(pair.ncu):
            also.append(f"nvprof: {', '.join(pair.nvprof)}{note}")
    return {
        "definition": definition,
        "counter": counter,
        "words": list(dict.fromkeys(words)),
        "also": also,
    }


def _partition_name(metric: str) -> str:
    """A metric of multiprocessors (`sm__`) by its name for their partitions: the sums are the same."""
    return re.sub("^sm__", "smsp__", metric)
