"""Time by component in words: what takes the largest kernel's time, and a table of all."""

from eprof.base.labels import labels
from eprof.base.text import phrase, when
from eprof.commands.report.sections import Section
from eprof.commands.report.view import View
from eprof.show.amounts import ESTIMATED, UNKNOWN, bits
from eprof.show.blocks import Cell, Column, Name, Quantity, Row, Share, Table
from eprof.show.numbers import and_more, percent, quantity

# What each component is called in the head of a column, and in a sentence.
_NAMES = {
    "loads": ("loads", "waiting for loads"),
    "computation": ("comp.", "computation"),
    "shared": ("shared", "shared memory"),
    "conflicts": ("conflicts", "bank conflicts"),
    "texture": ("texture", "texture"),
    "stores": ("stores", "stores"),
    "bandwidth": ("DRAM", "waiting for DRAM's bandwidth"),
}
_LARGEST, _SMALL = 3, 0.005
_WIDE = 100  # columns of a terminal


def sentence(view: View) -> str:
    """A sentence on the largest components of the first kernel whose cycles are modelled."""
    costs, parts = view.document.costs, view.document.time_components
    assert parts
    timed = (pair for pair in zip(view.kernels, parts.kernels, strict=True) if pair[1].time_s is not None)
    kernel, cycles = next(timed, (None, None))
    if kernel is None or cycles is None:
        return "Nothing was counted that the model could make cycles of."
    total = sum(cycles.cycles.values())
    largest = sorted(cycles.cycles.items(), key=lambda part: -part[1])[:_LARGEST]
    named = [f"{percent(part / total)} {_NAMES[name][1]}" for name, part in largest if part >= _SMALL * total]
    elsewhere = when(costs is not None and costs.gpu_match == "other", f" for {parts.device}")
    seconds = quantity(cycles.time_s or 0.0, "s")
    if kernel.time_s not in (None, cycles.time_s):
        seconds += f" in all; the report has {quantity(kernel.time_s or 0.0, 's')}"
    return f"{view.label(kernel)}: {', '.join(named)} (modelled{elsewhere}: {seconds})."


def table(view: View, limit: int | None) -> Table:
    """Time by component: kernels in the document's order, each with the shares of its modelled cycles."""
    parts = view.document.time_components
    assert parts
    used = [name for name in _NAMES if any(kernel.cycles.get(name) for kernel in parts.kernels)]
    columns = [
        *(Column(view.nouns.kernel, "left"), Column("time"), Column("modelled")),
        *(Column(_NAMES[name][0], from_width=_WIDE * (name in ("texture", "stores"))) for name in used),
        *(Column("warps", from_width=_WIDE), Column("rounds", from_width=_WIDE)),
    ]
    shown = view.kernels[:limit]
    short = labels([kernel.name for kernel in shown])
    rows = []
    for name, kernel, cycles in zip(short, shown, parts.kernels, strict=False):
        total = sum(cycles.cycles.values())
        shares: list[Cell] = [UNKNOWN for _ in used]
        if total:
            shares = [Share(cycles.cycles[part] / total) for part in used]
        measured = Quantity(kernel.time_s, "s", bits(kernel.time_marks))
        modelled = Quantity(cycles.time_s, "s", ESTIMATED)
        warps, rounds = f"{cycles.active_warps:.4g}", f"{cycles.rounds:.4g}"
        rows.append(Row([Name(name, kernel.name), measured, modelled, *shares, warps, rounds]))
    left_out = and_more(len(view.kernels) - len(shown), view.nouns.kernel)
    note = (
        f"Cycles of one multiprocessor of {parts.device} at {parts.core_mhz:g} MHz by component ([S] 5.5), not "
        f"measured; warps are those active at a time.{phrase(' Assumed: {}.', parts.assumes)}"
    )
    return Table(columns, rows, note=note, left_out=left_out)


_PAGE_ROWS = 100


def section(view: View) -> Section | None:
    """The section on time by component, or None where nobody asked for it."""
    if not view.document.time_components:
        return None
    content = {"sentence": sentence(view), "ranks": None, "how": None, "table": table(view, _PAGE_ROWS)}
    return Section("components", "Time", "Time by component", "phases.html", content)
