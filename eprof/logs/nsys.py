"""Times of kernels from `nsys stats --format csv` (cuda_gpu_kern_sum): exact totals, no counters, no device."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from eprof.logs.header import split
from eprof.logs.table import Table, framed, name_column

KIND = "nsys-summary"
COMMAND = "nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep"
_TOTAL = re.compile(r"Total Time \((ns|nsec|us|usec|ms|msec|s|sec)\)")
_SCALE = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_PERHAPS = re.compile(r'"?Time ?\(%\)"?,"?Total Time \(')
_TEXT = re.compile(r"\s*Time ?\(%\)\s+Total Time \(.*\)\s+(?:Num Calls|Instances|Operations|Count)\s")
_ASIDE = re.compile(r"(?:Processing|Generating|Exporting|Using|Running|NOTICE|SKIPPED)\b.*(?:\.sqlite|\[)")
_NUMBER = re.compile(r"\d{1,30}(\.\d*)?")
_WHOLE = re.compile(r"\d{1,12}")


@dataclass
class Nsys:
    """The tables of `nsys stats` as lines come."""

    kernels: list[tuple[str, int, float]] = field(default_factory=list)
    columns: list[str] | None = None
    others: int = 0
    text: int | None = None
    foreign: int | None = None

    def feed(self, number: int, line: str) -> bool:
        """Take a line; whether it was of use."""
        if _PERHAPS.match(line):
            self._header(number, [name.strip() for name in split(line)])
            return True
        if self.columns is None:
            if _TEXT.match(line):
                self.text = self.text or number
            return _ASIDE.match(line) is not None
        return self._row(split(line)) if line.strip() else self._end()

    def _header(self, number: int, names: list[str]) -> None:
        kernel = {"Instances"} <= set(names) and ("Name" in names or {"Category", "Operation"} <= set(names))
        self.columns = names if kernel and any(_TOTAL.fullmatch(name) for name in names) else None
        if self.columns is None:
            self.foreign = self.foreign or number

    def _end(self) -> bool:
        self.columns = None
        return True

    def _row(self, fields: list[str]) -> bool:
        assert self.columns is not None
        if len(fields) != len(self.columns):
            return False
        row = dict(zip(self.columns, fields, strict=True))
        total = next(name for name in self.columns if _TOTAL.fullmatch(name))
        time, launches = row[total].strip(), row["Instances"].strip()
        if not _NUMBER.fullmatch(time) or not _WHOLE.fullmatch(launches):
            return False
        if row.get("Category", "CUDA_KERNEL") == "CUDA_KERNEL" and not row.get("Name", "").startswith("[CUDA mem"):
            unit = _TOTAL.fullmatch(total)
            scale = _SCALE[(unit[1] if unit else "ns").removesuffix("ec")]
            self.kernels.append((row.get("Name") or row.get("Operation", ""), int(launches), float(time) * scale))
        else:
            self.others += 1
        return True

    def table(self) -> Table | None:
        """The times; None if there are none."""
        if not self.kernels:
            return None
        names, launches, times = zip(*self.kernels, strict=True)
        rows = framed(
            {
                "device": pd.Categorical([None] * len(names), categories=[]),
                "kernel": name_column(names),
                "run": np.zeros(len(names), dtype=np.int64),
                "launches": np.array(launches, dtype=np.int64),
                "time_s": np.array(times, dtype=np.float64),
            }
        )
        return Table(KIND, rows, pd.DataFrame(index=rows.index), {})

    def why_no_table(self) -> str | None:
        """One sentence if the log is of nsys; None if it is not."""
        if self.text is not None:
            return f"the tables of nsys are printed as text (line {self.text}); write them with `{COMMAND} > times.csv`"
        if self.foreign is not None:
            return f"the log has tables of nsys but none of kernels; make one with `{COMMAND} > times.csv`"
        return None
