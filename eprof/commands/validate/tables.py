"""The document `eprof.validation/1` as a table of rows."""

import pandas as pd
from msgspec.structs import asdict

from eprof.commands.validate.schema import Validation


def frame(document: Validation) -> pd.DataFrame:
    """The table of a validation: a row for each measured row, predicted W by protocol; run directories follow, in J."""
    rows = []
    for row in document.rows:
        plain = asdict(row)
        watts = plain.pop("predicted_w")
        rows.append({**plain, **{f"{protocol}_w": predicted for protocol, predicted in watts.items()}})
    for run in document.runs:
        joules = {"measured_j": run.measured_j, "predicted_j": run.predicted_j}
        rows.append({"benchmark": run.path, **joules, "error_percent": run.error_percent})
    return pd.DataFrame(rows)
