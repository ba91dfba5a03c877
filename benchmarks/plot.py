"""Draw how the cost of a report grows with its log, from what `peers.py --json FILE` measured.

python benchmarks/plot.py FILE OUT.svg
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

sys.path.insert(0, str(Path(__file__).parent))
from generate import LOGS
from peers import PEERS

STYLES = {
    "eprof": ("#b3430f", "-", 2.2),
    "pandas": ("#1f5fa8", "--", 1.4),
    "polars": ("#5a7d1c", "-.", 1.4),
    "wc -l": ("#777777", ":", 1.4),
}


def draw(axis: "pyplot.Axes", name: str, found: list[dict], what: str) -> None:
    """One panel: a line a peer."""
    mine = sorted((one for one in found if one["log"] == name), key=lambda one: one["rows"])
    for peer in PEERS if what == "seconds" else PEERS[:3]:
        points = [(one["rows"], one[peer][what]) for one in mine if one[peer][what] is not None]
        color, line, width = STYLES[peer]
        axis.plot(
            *zip(*points, strict=True), line, color=color, linewidth=width, marker="o", markersize=3.5, label=peer
        )
        lost = [(one["rows"], one["memory_limit_gb"] * 1024) for one in mine if one[peer][what] is None]
        if lost and what == "memory_mb":
            axis.plot(*zip(*lost, strict=True), "x", color=color, markersize=7)
    axis.set(xscale="log", yscale="log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.minorticks_off()
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def main(source: Path, out: Path) -> None:
    """Write the plot: seconds above, memory below, a column a log."""
    found = json.loads(source.read_text())
    names = [name for name in LOGS if any(one["log"] == name for one in found)]
    pyplot.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "eprof", "font.family": "sans-serif", "font.size": 9}
    )
    figure, axes = pyplot.subplots(2, len(names), figsize=(3.1 * len(names), 5.6), sharey="row", squeeze=False)
    for place, name in enumerate(names):
        draw(axes[0, place], name, found, "seconds")
        draw(axes[1, place], name, found, "memory_mb")
        axes[0, place].set_title(LOGS[name][0], fontsize=9)
        axes[1, place].set_xlabel("rows")
    axes[0, 0].set_ylabel("seconds, start to end")
    axes[1, 0].set_ylabel("MB at the most")
    limit = found[0]["memory_limit_gb"]
    axes[0, 0].legend(frameon=False)
    figure.text(
        0.005, 0.005, f"a cross: the process wanted more than {limit:g} GB of memory", fontsize=8, color="#555555"
    )
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
