"""`eprof costs`: list, show and check cost tables."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.errors import UsageError
from eprof.base.text import phrase, printable, when
from eprof.base.vocabulary import OF_OTHERS, nouns_of
from eprof.cli.options import GPU, SETTING, TABLE, Commands, Parser, command, is_given, watts
from eprof.cli.output import print_listing, say, write
from eprof.show.console import Row, listing_table, marks_of

_PEAKS = {"sp_gflops": "Gflop/s SP", "dp_gflops": "Gflop/s DP", "dram_gb_per_s": "GB/s", "power_limit_w": "W of power"}


def add(commands: Commands) -> Parser:
    """Add `eprof costs` with its options to the commands; return its parser."""
    parser = command(
        commands, "costs", "Without a name: the tables at hand. With one: what every count pays at a setting, and why."
    )
    parser.add_argument("name", nargs="?", metavar=TABLE, help="a table, or a file of your own to check and show")
    parser.value("--setting", SETTING, "DVFS setting in MHz (default: the table's)")
    parser.value("--estimate", GPU, "make a table for a GPU that nobody measured: 'RTX 4090'")
    parser.value(
        "--idle-w",
        "WATTS",
        "with --estimate: power of the idle GPU at the clocks of a load, as nvidia-smi prints it right after one",
        type=watts,
    )
    parser.value("--tdp-w", "WATTS", "with --estimate: its power limit (default: of its data sheet)", type=watts)
    parser.repeatable("--output", "FILE", "with --estimate: the table's file (default: show it)", short="-o")
    parser.flag("--force", "overwrite FILE", short="-f")
    parser.add_listing()
    return parser


def costs(options: argparse.Namespace) -> int:
    """Run `eprof costs`. Exit code 1 if a table's mistakes leave nothing of it, else 0."""
    from eprof import costs as tables

    if options.estimate is not None:
        return _estimate(options)
    for option in ("idle_w", "tdp_w", "output"):
        if is_given(options, option):
            raise UsageError(f"--{option.replace('_', '-')} goes with --estimate GPU.")
    if options.name is None:
        if is_given(options, "setting"):
            raise UsageError("--setting is one of a table's: eprof costs NAME --setting CORE/MEMORY.")
        about = ("name", "device", "basis", "settings", "books", "source")
        rows = [
            {name: getattr(table, name) for name in about} | {"settings": len(table.settings)}
            for table in map(tables.load, tables.tables())
        ]
        return print_listing(options, rows, _tables(rows))
    mistakes: list[str] = []
    if tables.is_file(options.name):
        table, mistakes = tables.examine(options.name)
    else:
        table = tables.load(options.name)
        if table.processor == "cpu" and not table.serves(options.name) and options.name.lower() != table.name:
            say(f"{options.name} has no table of its own; this is the nearest that eprof has.")
    for mistake in mistakes:
        say(mistake)
    if table is None:
        return 1
    explained = table.explain(options.setting)
    return print_listing(options, explained, _costs(explained))


def _estimate(options: argparse.Namespace) -> int:
    """Run `eprof costs --estimate GPU`: make its table, write it to files or show it; the exit code."""
    from eprof.costs import estimate

    if options.name is not None or is_given(options, "setting"):
        raise UsageError("--estimate makes a table by itself; name no other table and no setting.")
    text = estimate.table_text(options.estimate, options.idle_w, options.tdp_w)
    table = estimate.parsed(text)
    if is_given(options, "output"):
        for path in options.output:
            write(Path(path), text.encode(), options.force)
        for note in table.notes:
            say(note)
        return 0
    return print_listing(options, table.explain(), _costs(table.explain()))


def _tables(tables: Sequence[Row]) -> Iterable[RenderableType]:
    """`eprof costs` on the terminal: list the cost tables."""
    listing = listing_table("name", "made for", "basis", "settings")
    for table in tables:
        listing.add_row(table["name"], table["device"], table["basis"] or "not stated", str(max(1, table["settings"])))
    return [listing, Text("`eprof costs NAME` shows what every count pays, why, and its source.", style="dim")]


def _costs(explained: Row) -> Iterable[RenderableType]:
    """`eprof costs TABLE` on the terminal: show one cost table at one setting."""
    constant, peaks, setting = explained["constant"], explained["peaks"], explained["setting"]
    yield Text(printable(f"{explained['name']}: {explained['device']}"), style="bold")
    yield f"Source: {explained['source']}"
    yield f"Basis: {phrase('{}: {}', explained['basis'], explained['basis_is']) or 'not stated'}."
    unit = when(explained["relative_voltages"], "of its reference voltage") or "V"
    volts = [f"{name} {setting[f'{name}_v']:g} {unit}" for name in ("core", "memory") if setting[f"{name}_v"]]
    where = when("/" in setting["label"], f"{setting['label']} MHz") or "fixed"
    yield f"Setting: {', '.join([where, *volts])} ({explained['setting_from']}). Books: {explained['books']}."
    marks = marks_of(constant["marks"])
    yield f"Constant power: {constant['power_w']:.3f} W = {constant['formula']}{marks}: {constant['why']}."
    known = [f"{peaks[key]:g} {unit}" for key, unit in _PEAKS.items() if peaks[key] is not None]
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
    """Table of what every count pays by a cost table, counts that pay the same for the same reason in one row.

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
