"""The document `eprof.scale/1` as a table of rows."""

import pandas as pd
from msgspec import structs

from eprof.commands.scale.schema import Scale


def frame(document: Scale) -> pd.DataFrame:
    """The table of scaling: a row for each row of the document; what is more on many processors, a column a cause."""
    rows = []
    for row in document.rows:
        cells = structs.asdict(row)
        overhead = cells.pop("overhead_j") or {}
        parts = cells.pop("parts") or {}
        cells |= {name: " ".join(cells[name]) for name in ("marks", "time_marks")}
        causes = {f"overhead_{cause}_j": joules for cause, joules in overhead.items()}
        causes |= {f"{cause}_j": part.energy_j for cause, part in parts.items()}
        rows.append({**cells, **causes, **{f"{cause}_marks": " ".join(part.marks) for cause, part in parts.items()}})
    return pd.DataFrame(rows)
