"""The document `eprof.validation/1` as a table of rows and as Markdown."""

from collections.abc import Iterable, Mapping

import pandas as pd
from msgspec.structs import asdict

from eprof.base.text import in_markdown
from eprof.validation.schema import Validation
from eprof.validation.scores import Scores

_HEADS = {
    "n": "n",
    "mean_percent": "mean %",
    "sd_percent": "sd %",
    "min_percent": "min %",
    "max_percent": "max %",
    "bias_percent": "bias %",
    "rmse_w": "RMSE W",
}


def frame(document: Validation) -> pd.DataFrame:
    """A row for each measured row, with a column of predicted W for each protocol; run directories follow, in J."""
    rows = []
    for row in document.rows:
        plain = asdict(row)
        watts = plain.pop("predicted_w")
        rows.append({**plain, **{f"{protocol}_w": predicted for protocol, predicted in watts.items()}})
    for run in document.runs:
        joules = {"measured_j": run.measured_j, "predicted_j": run.predicted_j}
        rows.append({"benchmark": run.path, **joules, "error_percent": run.error_percent})
    return pd.DataFrame(rows)


def markdown(document: Validation) -> str:
    """Errors by protocol, of the model and of the baselines, as Markdown tables."""
    lines = [f"# Validation of {in_markdown(document.title)}", "", f"{document.n} measurements.", ""]
    lines += _table("model", document.protocols)
    for model, by_protocol in document.baselines.items():
        lines += ["", f"## {in_markdown(model)}", "", *_table("protocol", by_protocol)]
    if document.notes:
        lines += ["", "## Notes", "", *[f"- {in_markdown(note)}" for note in document.notes]]
    return "\n".join(lines) + "\n"


def _table(head: str, rows: Mapping[str, Scores]) -> Iterable[str]:
    yield f"| {head} | {' | '.join(_HEADS.values())} |"
    yield "|---|" + "---:|" * len(_HEADS)
    for name, scores in rows.items():
        cells = [in_markdown(name.replace("_", " ")), *(_written(getattr(scores, field)) for field in _HEADS)]
        yield "| " + " | ".join(cells) + " |"


def _written(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.2f}"
