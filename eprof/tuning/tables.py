"""The document `eprof.tune/1` as a table of rows and as Markdown."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from eprof.base.text import in_markdown

_LISTS = ("energy_j", "time_s", "measured_j", "measured_s")


def frame(document: Mapping[str, Any]) -> pd.DataFrame:
    """A row for each kernel and setting, and for all kernels together; `pick` says which were chosen, and by what."""
    settings = document["settings"]
    found = []
    for kernel in [_whole(document), *document["kernels"]]:
        for at, setting in enumerate(settings):
            pair = {"core_mhz": setting["core_mhz"], "memory_mhz": setting["memory_mhz"]}
            picks = [name for name in ("best", "fastest", "measured_best", "now") if same(kernel[name], setting)]
            values = {name: kernel[name][at] for name in _LISTS}
            found.append({"kernel": kernel["name"], **pair, **values, "pick": " ".join(picks)})
    return pd.DataFrame(found)


def _whole(document: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: [one[name] for one in document["settings"]] for name in _LISTS}
    picks = {name: document[name] for name in ("best", "fastest", "measured_best", "now")}
    return {"name": document["program"], **picks, **lists}


def same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether two entries are of the same setting."""
    return one is not None and other is not None and label(one) == label(other)


def label(one: Mapping[str, Any] | None) -> str:
    """The setting of an entry, "852/924"; a dash for none."""
    return "-" if one is None else f"{one['core_mhz']:g}/{one['memory_mhz']:g}"


def markdown(document: Mapping[str, Any]) -> str:
    """Best and fastest setting of every kernel, as a Markdown table."""
    heads = ("kernel", "best", "energy J", "time s", "fastest", "energy J", "measured best", "lost %", "fastest lost %")
    lines = [
        f"# Clocks for {in_markdown(document['title'])}",
        "",
        f"Objective: {in_markdown(document['objective_words'])}.",
        "",
    ]
    lines += ["| " + " | ".join(heads) + " |", "|---|" + "---|" * (len(heads) - 1)]
    whole = {**_whole(document), "lost_percent": None, "oracle_lost_percent": None}
    for one in [whole, *document["kernels"]]:
        cells = [
            in_markdown(str(one["name"])),
            label(one["best"]),
            *(_number((one["best"] or {}).get(name)) for name in ("energy_j", "time_s")),
            label(one["fastest"]),
            _number((one["fastest"] or {}).get("energy_j")),
            label(one["measured_best"]),
            _number(one["lost_percent"]),
            _number(one["oracle_lost_percent"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if document["notes"]:
        lines += ["", "## Notes", "", *[f"- {in_markdown(note)}" for note in document["notes"]]]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
