"""All prices of the tables that come with eprof, side by side, as the Markdown table of docs/costs.md.

python docs/studies/power/prices.py             print it
python docs/studies/power/prices.py --rewrite   put it into docs/costs.md
"""

import re
import sys
from pathlib import Path

import numpy as np

from eprof import costs
from eprof.costs import CostTable

GUIDE = Path(__file__).parents[2] / "costs.md"
BEGIN, END = "<!-- prices.py begins -->\n", "<!-- prices.py ends -->"
COLUMNS = {
    "fp64_fma": "FP64 FMA",
    "fp32_fma": "FP32 FMA",
    "integer": "integer",
    "special": "special",
    "warp_issue": "warp instr.",
    "tensor_fp16": "tensor FP16 flop",
    "shared_read": "shared B",
    "l1_read": "L1 B",
    "l2_read": "L2 B",
    "dram_read": "DRAM B",
}
SOURCES = {
    "aiconfigurator": "AIC",
    "antepara": "SC25",
    "gpu-power-lab": "Lab",
    "nv-dvfs": "NV-DVFS",
    "[fmm]": "FMM",
    "keckler": "Keckler",
    "[t]": "T",
}


def markdown() -> str:
    """The table."""
    tables = [costs.load(name) for name in costs.tables()]
    head = ["table", "basis", "from", *COLUMNS.values(), "constant W"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(_cells(table))} |" for table in tables]
    return "\n".join(lines) + "\n"


def _cells(table: CostTable) -> list[str]:
    source = next((short for sign, short in SOURCES.items() if sign in table.source.lower()), "see the file")
    replicas = [replica.constant_power_w for replica in table.replicas()]
    constant = _cell(table.at().constant_power_w, replicas, table.interval_share)
    return [f"`{table.name}`", str(table.basis), source, *(_charge(table, word) for word in COLUMNS), constant]


def _charge(table: CostTable, word: str) -> str:
    """What a word pays at the default setting in pJ, with the interval that its prices leave; a star: marked."""
    charge = table.at().charges.get(word)
    if charge is None:
        return ""
    if not charge.pays:
        return "0"
    star = "*" if charge.marks else ""
    return _cell(charge.pj, [replica.charges[word].pj for replica in table.replicas()], table.interval_share) + star


def _cell(value: float, by_replica: list[float], share: float) -> str:
    if not by_replica:
        return f"{value:.3g}"
    outside = 50 * (1 - share)
    low, high = np.percentile(by_replica, [outside, 100 - outside])
    return f"{value:.3g} ({_plain(low)} to {_plain(high)})"


def _plain(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


def show(table: str, begin: str = BEGIN, end: str = END) -> None:
    """Print a table, or put it into the guide between two signs if the user wants that."""
    if "--rewrite" not in sys.argv:
        print(table, end="")
        return
    text = GUIDE.read_text()
    GUIDE.write_text(re.sub(f"{begin}.*?{end}", lambda _: begin + table + end, text, flags=re.DOTALL))


if __name__ == "__main__":
    show(markdown())
