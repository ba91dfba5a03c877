"""`eprof costs` in a terminal: which tables there are, and what is in one."""

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import phrase, printable, when
from eprof.base.vocabulary import OF_OTHERS, nouns_of
from eprof.show.console import Row, listing_table, marks_of, show_list


def show_tables(tables: Sequence[Row]) -> None:
    """`eprof costs` on the terminal: list the cost tables."""
    listing = listing_table("name", "made for", "basis", "settings")
    for table in tables:
        listing.add_row(table["name"], table["device"], table["basis"] or "not stated", str(max(1, table["settings"])))
    show_list([listing, Text("`eprof costs NAME` shows what every count pays, why, and its source.", style="dim")])


def show_costs(explained: Row) -> None:
    """`eprof costs TABLE` on the terminal: show one cost table at one setting."""
    show_list(_costs(explained))


def _costs(explained: Row) -> Iterable[RenderableType]:
    constant, peaks, setting = explained["constant"], explained["peaks"], explained["setting"]
    yield Text(printable(f"{explained['name']}: {explained['device']}"), style="bold")
    yield f"Source: {explained['source']}"
    yield f"Basis: {phrase('{}: {}', explained['basis'], explained['basis_is']) or 'not stated'}."
    unit = "of its reference voltage" if explained["relative_voltages"] else "V"
    volts = [f"{name} {setting[f'{name}_v']:g} {unit}" for name in ("core", "memory") if setting[f"{name}_v"]]
    where = f"{setting['label']} MHz" if "/" in setting["label"] else "fixed"
    yield f"Setting: {', '.join([where, *volts])} ({explained['setting_from']}). Books: {explained['books']}."
    marks = marks_of(constant["marks"])
    yield f"Constant power: {constant['power_w']:.3f} W = {constant['formula']}{marks}: {constant['why']}."
    units = (
        ("sp_gflops", "Gflop/s SP"),
        ("dp_gflops", "Gflop/s DP"),
        ("dram_gb_per_s", "GB/s"),
        ("power_limit_w", "W of power"),
    )
    known = [f"{peaks[key]:g} {unit}" for key, unit in units if peaks[key] is not None]
    if known:
        yield f"Peaks: {', '.join(known)} ({peaks['why']})."
    if (units := explained["time_components"]) is not None:
        lanes = ", ".join(f"{number:g} {name}" for name, number in units["lanes"].items())
        yield (
            f"Multiprocessors: {units['number']:g} of {lanes.replace('_', '-')} units; a load takes "
            f"{units['latency_cycles']:g} cycles ({'; '.join(filter(None, (units['source'], units['why'])))})."
        )
    if (watts := constant["interval_w"]) is not None:
        yield f"Its interval: {watts[0]:.3g} to {watts[1]:.3g} W{phrase(', from {}', constant['from'])}."
    if explained["interval_is"]:
        yield f"Intervals: {explained['interval_is']}."
    yield _charges(explained)
    prices = explained["prices"]
    if any(price["interval_pj"] or price["from"] for price in prices):
        table = listing_table("price", "pJ", "interval", "from")
        for price in prices:
            interval = phrase("{:.3g} to {:.3g}", *(price["interval_pj"] or [None]))
            table.add_row(price["name"], f"{price['pj']:.4g}", interval, printable(price["from"] or ""))
        yield table
    for board in explained["boards"]:
        yield f"Also for {', '.join(board['devices'])}{when(board['assumed'], ' (assumed)')}: {board['why']}"
    yield from explained["notes"]
    labels = [f"{setting['label']}{when(setting['default'], ' (default)')}" for setting in explained["settings"]]
    if len(labels) > 1:
        yield f"Settings, core/memory MHz: {', '.join(labels)}."


def _charges(explained: Row) -> Table:
    """What every count pays by a cost table, counts that pay the same for the same reason in one row.

    Counts that its kind of processor does not have, as L3 on a GPU or warps on a CPU, are left out unless they pay.
    """
    foreign = OF_OTHERS[explained["processor"]]
    nouns = nouns_of(explained["processor"])
    labels: dict[tuple[str, str, str], list[str]] = {}
    for charge in explained["charges"]:
        if charge["status"] != "pays" and charge["word"] in foreign:
            continue
        pays = {"pays": f"{charge['pj'] or 0:.4g} pJ", "nothing": "nothing"}.get(charge["status"], "no price")
        # "No price" says what the mark `missing` would say again.
        why = charge["why"]
        if charge["status"] != "unpriced":
            why += marks_of(charge["marks"])
            if formula := charge["formula"]:
                numbers = when(not formula.isidentifier(), f" = {charge['numbers']}")
                why = f"{formula}{numbers}: {why}"
        labels.setdefault((charge["status"], pays, why), []).append(nouns.label(charge["word"]))

    table = listing_table("counts", "pays", "why")
    for (status, pays, why), counts in labels.items():
        table.add_row(", ".join(counts), pays, printable(why), style=when(status != "pays", "dim"))
    return table
