"""The document `eprof.scale/1` as a table of rows."""

import pandas as pd
from msgspec import structs

from eprof.scaling.schema import Scale


def frame(document: Scale) -> pd.DataFrame:
    """A row for each row of the document; what is more on many processors, a column a cause."""
    rows = []
    for row in document.rows:
        cells = structs.asdict(row)
        overhead = cells.pop("overhead_j") or {}
        rows.append({**cells, **{f"overhead_{cause}_j": joules for cause, joules in overhead.items()}})
    return pd.DataFrame(rows)
