"""The document `eprof.comm/1` as a table of rows."""

import pandas as pd
from msgspec import structs

from eprof.commands.comm.schema import Comm


def frame(document: Comm) -> pd.DataFrame:
    """The table of waiting for messages: a row for each row of the document; relative to polling, a column each."""
    rows = []
    for row in document.rows:
        cells = {**structs.asdict(row), "marks": " ".join(row.marks)}
        relative = cells.pop("relative")
        if relative is not None:
            cells |= {f"relative_{name}": value for name, value in structs.asdict(relative).items()}
        rows.append(cells)
    return pd.DataFrame(rows)
