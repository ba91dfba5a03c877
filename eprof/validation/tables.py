"""The document `eprof.validation/1` as a table of rows and as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from eprof.base.text import in_markdown

_SCORES = ("mean_percent", "sd_percent", "min_percent", "max_percent", "bias_percent", "rmse_w")


def frame(document: Mapping[str, Any]) -> pd.DataFrame:
    """A row for each measured row, with a column of predicted W for each protocol; run directories follow, in J."""
    found = []
    for row in document["rows"]:
        plain = {key: value for key, value in row.items() if key != "predicted_w"}
        found.append({**plain, **{f"{name}_w": value for name, value in row["predicted_w"].items()}})
    for run in document.get("runs", ()):
        found.append(
            {
                "benchmark": run["path"],
                "measured_j": run["measured_j"],
                "predicted_j": run["predicted_j"],
                "error_percent": run["error_percent"],
            }
        )
    return pd.DataFrame(found)


def markdown(document: Mapping[str, Any]) -> str:
    """Errors by protocol, of the model and of the baselines, as Markdown tables."""
    lines = [f"# Validation of {in_markdown(document['title'])}", "", f"{document['n']} measurements.", ""]
    lines += _table("model", [(name, one) for name, one in document["protocols"].items()])
    for model, by_protocol in document["baselines"].items():
        lines += ["", f"## {in_markdown(model)}", "", *_table("protocol", list(by_protocol.items()))]
    if document["notes"]:
        lines += ["", "## Notes", "", *[f"- {in_markdown(note)}" for note in document["notes"]]]
    return "\n".join(lines) + "\n"


def _table(head: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    heads = [head, "n", "mean %", "sd %", "min %", "max %", "bias %", "RMSE W"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, one in rows:
        cells = [in_markdown(name.replace("_", " ")), str(one["n"]), *(written(one[key]) for key in _SCORES)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def written(value: float | None) -> str:
    """Two decimals; a dash for what is not known."""
    return "-" if value is None else f"{value:.2f}"
