"""A document `eprof.scale/1` in words: the answer, what keeps the efficiency, every row, a fit."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_, itemgetter

from msgspec.structs import replace

from eprof.base.optional import gathered, mapped, ratio
from eprof.base.text import by_sign, capital, counted, few, listed, phrase, when
from eprof.commands.scale.document import MODELLED, Best, Row, Scale
from eprof.commands.scale.model import Fit, Keep
from eprof.show.amounts import MISSING, bits
from eprof.show.blocks import (
    Block,
    Cell,
    Column,
    Factor,
    Headline,
    Medium,
    Notes,
    Point,
    Quantity,
    Share,
    Table,
    Written,
    everywhere_if,
    table_of,
)
from eprof.show.blocks import Row as Cells
from eprof.show.numbers import percent, plain, quantity, signed_percent, whole

TITLE = "Scaling"
OBJECTIVES = {
    "energy": "least energy",
    "edp": "least energy x time",
    "e2d": "least energy^2 x time",
    "ed2p": "least energy x time^2",
    "time": "least time",
}
CAUSES = {
    "compute": "computing more",
    "memory": "more memory accesses",
    "io": "reading and writing files",
    "messages": "starting messages",
    "bytes": "moving bytes",
    "waiting": "polling",
    "computation": "computation",
    "data": "moving data",
    "constant": "constant power",
    "imbalance": "waiting for the slowest rank",
    "between": "GPUs idle between kernels",
    "unused": "GPUs without a rank",
    "metered": "what a meter saw beyond it",
    "host": "the hosts",
    "network": "the network",
    "storage": "storage devices",
}
# Columns of a terminal, of 80 characters.
_TOGETHER = {
    "kernels": ("computation", "data", "constant"),
    "idle": ("imbalance", "between", "unused"),
    "nodes": ("host", "network", "storage"),
    "rest": ("metered",),
}
# The widths of a terminal from which columns are shown.
_SHOWN = 5
SHAPES = {
    1: "its efficiency stays near 1",
    2: "its efficiency falls with the processors, mostly by work; a larger problem helps",
    3: "its efficiency falls with the processors, mostly by the network; a larger problem helps",
    4: "its efficiency falls with the processors, and a larger problem does not help",
}


def subject(document: Scale) -> str:
    """One line on where a scaling's numbers come from: model, cluster and way to wait, or kinds of runs."""
    if document.kind == MODELLED:
        cluster = document.cluster or {}
        prices = f"powers and times: {cluster['name']} ({cluster['basis']})"
        return f"modelled in closed form · {prices} · waiting: {document.waiting}"
    kinds: Counter[str] = Counter()
    for row in document.rows:
        kind, is_metered = "measured", "metered" in (row.parts or {})
        if "simulated" in row.marks and not is_metered:
            kind = "simulated"
        elif row.parts is not None and not is_metered:
            kind = "modelled"
        kinds[kind] += 1
    if len(kinds) == 1:
        return counted(len(document.rows), f"{next(iter(kinds))} run")
    return f"{listed([f'{whole(number)} {kind}' for kind, number in kinds.items()])} runs"


def headline(document: Scale) -> Headline:
    """The headline of scaling: where energy x time is least, and what is taken there; of several problems, of each."""
    row = _leading(document)
    if row is None:
        in_limits = when(any(run.energy_j for run in document.rows), "No run is within the limits.")
        lead = when(not in_limits, "Joules are in sacct's ConsumedEnergyRaw, or a column energy_j.")
        return Headline(in_limits or "No run has an energy, so no node count is best.", lead)
    if len({(run.program, run.size) for run in document.rows}) > 1:
        return _of_several(document)
    if len(document.rows) == 1 and not row.parts:
        lead = "Which is best is told from runs of the same program on other node counts, or at other clocks."
        return Headline(f"One run alone, on {place(document, row)}: {_taken(row)}.", lead)
    # What it is best for, energy x time before others.
    names = [best.objective for best in document.best if _is_best(best, row)]
    least = f"take{when(row.processors == 1, 's')} the {_objective(min(names, key=lambda name: name != 'edp'))}"
    text = f"{place(document, row)}{_of_known(document, row)} {least}: {_taken(row)}."
    against: list[str] = []
    # A table has the efficiency of each node count of GPUs.
    if not row.parts:
        for best in document.best:
            if best.objective == "energy" and best.energy_j is not None and not _is_best(best, row):
                takes = f"take{when(best.processors == 1, 's')} the least energy"
                against.append(f"{place(document, best)} {takes}: {_taken(best)}.")
                break
        if row.energy_j and row.efficiency is not None and row.processors != 1:
            speedup = when(row.speedup, f" at {plain(row.speedup or 0.0)} times the speed")
            to_one = f"{signed_percent(1 / row.efficiency - 1)} energy against one alone{speedup}"
            of_all = f"an energy efficiency of {plain(row.efficiency)}."
            against.append(f"{row.program}{of_size(row.size)}: {to_one}, {of_all}")
    # Where most of the extra energy of more nodes goes.
    changes = row.overhead_j or {}
    more = {cause: joules for cause, joules in changes.items() if joules > 0}
    if sum(changes.values()) > 0:
        cause = max(more, key=more.__getitem__)
        against.append(f"{percent(more[cause] / sum(more.values()))} of the extra energy goes into {CAUSES[cause]}.")
    return Headline(text, " ".join(against))


def _taken(best: Best | Row) -> str:
    """The joules and seconds that a row of scaling takes: "735 J, 190 ms"; "at least" where they are lower bounds."""
    at_least = when(MISSING & bits([*best.marks, *best.time_marks]), "at least ")
    return f"{at_least}{quantity(best.energy_j or 0.0, 'J')}{phrase(', {}', mapped(quantity, best.time_s, 's'))}"


def _of_several(document: Scale) -> Headline:
    """The headline for several problems: for each program the best node count of its largest, and the worst efficiency.

    Best is by energy x time, else by the first objective. The worst efficiency is of more than one processor, and may
    be above 1.
    """
    name = min((best.objective for best in document.best), key=lambda name: name != "edp")
    by_size = sorted(document.best, key=lambda best: best.size or 0.0)
    largest = {best.program: best for best in by_size if best.objective == name and best.processors is not None}
    answers = [
        f"{best.program}{of_size(best.size)} on {place(document, best)} ({_taken(best)})" for best in largest.values()
    ]
    text = f"{capital(_objective(name))}: {few(sorted(answers), _SHOWN)}."
    rows = ((row.efficiency, row) for row in document.rows if row.efficiency and row.processors > 1)
    efficiency, row = min(rows, key=itemgetter(0), default=(0.0, None))
    if row is None:
        return Headline(text, "")
    falls = by_sign(efficiency - 1, "falls to", "is nowhere below")
    where = f"{row.program}{of_size(row.size)} on {place(document, row)}"
    worst = f"The energy efficiency, joules on one over joules on all, {falls} {plain(efficiency)} ({where})."
    return Headline(text, worst)


def _leading(document: Scale) -> Row | None:
    """The row that is best for energy x time, else for another objective, of the largest problem; None: no best row."""
    by_rank = sorted(document.best, key=lambda best: (best.objective != "edp", -(best.size or 0.0)))
    return next((row for best in by_rank for row in document.rows if _is_best(best, row)), None)


def _is_best(best: Best, row: Row) -> bool:
    return all(getattr(best, name) == getattr(row, name) for name in ("program", "size", "processors", "core_mhz"))


def place(document: Scale, row: Row | Best) -> str:
    """On what a row's run was, in words: "16 nodes at 2400 MHz"; "not known" without a node count."""
    if row.processors is None:
        return when(any(each.energy_j for each in document.rows), "none within the limits") or "not known"
    plural = when(row.processors != 1, "s")
    return f"{row.processors} {document.unit}{plural}{phrase(' at {:g} MHz', row.core_mhz)}"


def of_size(size: float | None) -> str:
    """The words " of 1 200 000" behind a program's name; empty if the size of its problem is not known."""
    return phrase(" of {}", size_text(size))


def size_text(size: float | None) -> str:
    """The size of a problem as text: "1 200 000"; empty if it is not known."""
    return phrase("{:.10g}", size) if size is None or size % 1 else whole(int(size))


def _of_known(document: Scale, best: Row | Best) -> str:
    """The words ", of those known in full" if a row that is only a lower bound may be better; else empty."""
    if best.energy_j is None or best.time_s is None or "missing" in best.marks:
        return ""
    same = [row for row in document.rows if (row.program, row.size) == (best.program, best.size)]
    bounds = [row for row in same if "missing" in row.marks and row.energy_j is not None]
    may_be_better = any((row.energy_j or 0.0) < best.energy_j or row.time_s < best.time_s for row in bounds)
    return when(may_be_better, ", of those known in full")


def blocks(document: Scale, verbose: bool) -> Iterator[Block]:
    """The blocks on scaling for a terminal and for Markdown; every row, and the energy with polling, if `verbose`."""
    if not document.rows[0].parts:
        # Of one run there is nothing to choose.
        if len(document.rows) > 1:
            yield best(document)
    elif verbose:
        yield from (best(document), parts(document))
    else:
        yield on_nodes(document)
        # "energy on 4 nodes; edp on 8 nodes"
        places: dict[str, list[str]] = {}
        for entry in sorted(document.best, key=lambda entry: entry.processors or math.inf):
            where = "nothing within the limits"
            if entry.processors is not None:
                where = place(document, entry) + _of_known(document, entry)
            places.setdefault(where, []).append(_objective(entry.objective).removeprefix("least "))
        yield Point("Least", "; ".join(f"{', '.join(names)} on {where}" for where, names in places.items()) + ".")
    if document.keep:
        yield kept(document.keep)
    yield from points(document)
    if verbose:
        yield rows(document)
        if document.kind == MODELLED:
            yield causes(document)
    if document.fit:
        yield predictions(document.fit)
    yield Notes(document.warnings)


def points(document: Scale) -> Iterator[Block]:
    """Yield remarks, as far as known: class of the program, cost of polling, best clock, errors of a fit."""
    if document.shape is not None:
        yield Point("Shape", f"{SHAPES[document.shape]} (class {document.shape} of 4).")
    leading = _leading(document)
    if leading and leading.polling_j and leading.energy_j and document.waiting == "interrupt":
        more = leading.polling_j / leading.energy_j - 1
        if more > 0.0005:
            polling = "energy if processors poll while they wait, as most MPI libraries do."
            yield Point("Waiting", f"{signed_percent(more)} {polling}")
    if document.f_star_mhz is not None:
        yield Point("Clock", f"one processor takes least energy at {document.f_star_mhz:.4g} MHz.")
    if document.fit is not None:
        fitted, on = document.fit, ", ".join(map(str, document.fit.fitted_on))
        trust = f"fitted on {on} processors: too few to leave one out."
        if fitted.left_out_energy is not None and fitted.left_out_time is not None:
            errors = f"{percent(fitted.left_out_energy)} of energy and {percent(fitted.left_out_time)} of time"
            trust = f"fitted on {on} processors; a fit without one of them is off by {errors} there at most."
        yield Point("Trust", trust)


def best(document: Scale) -> Table:
    """Table of the best node count and clock for each objective: a row each or, of several problems, a column each."""
    problems = gathered(((entry.program, entry.size), entry) for entry in document.best)
    if len(problems) > 1:
        names = [_objective(name) for name in dict.fromkeys(entry.objective for entry in document.best)]
        columns = [Column("problem", "left"), *(Column(name.removeprefix("least "), "left") for name in names)]
        lines = []
        for (program, size), entries in problems.items():
            places = ((entry.processors, phrase(" at {:g}", entry.core_mhz)) for entry in entries)
            where = [when(number, f"{number}{clock}") or "none" for number, clock in places]
            lines.append(Cells([f"{program}{of_size(size)}", *where]))
        has_clocks = any(entry.core_mhz for entry in document.best)
        title = f"Least, on how many {document.unit}s{when(has_clocks, ' at which MHz')}"
        return Table(columns, lines, title=title)
    return table_of(
        document.best,
        (Column("for", "left"), lambda entry: _objective(entry.objective)),
        (Column("on", "left"), lambda entry: place(document, entry)),
        (Column("energy"), lambda entry: amount(document, entry)),
        (Column("time"), lambda entry: amount(document, entry, "time_s")),
        title="Best",
    )


def _objective(name: str) -> str:
    return OBJECTIVES.get(name, name)


def on_nodes(document: Scale) -> Table:
    """Table of energy, time and shares of the largest parts on each node count; of many, the ends and the best rows."""
    shown = document.rows
    if len(shown) > _SHOWN:
        ends = (shown[0], shown[-1])
        shown = [row for row in shown if row in ends or any(_is_best(entry, row) for entry in document.best)]
    known = [name for name, causes in _TOGETHER.items() if any(_share(row, causes) for row in shown)]
    is_clocked = any(row.core_mhz is not None for row in shown)
    widths = {"rest": 100, "idle": 92} if is_clocked else {"rest": 90}
    columns = [Column("on", "left"), *map(Column, ("energy", "time", "EE"))]
    columns += [Column(name, from_width=widths.get(name, 0)) for name in known]
    lines = []
    for row in shown:
        taken = amount(document, row), amount(document, row, "time_s")
        cells: list[Cell] = [place(document, row), *taken, Factor(row.efficiency)]
        lines.append(Cells([*cells, *(Share(_share(row, _TOGETHER[name])) for name in known)]))
    more = len(document.rows) - len(shown)
    return Table(columns, lines, left_out=when(more, counted(more, "more node count")))


def _share(row: Row, causes: Sequence[str]) -> float | None:
    """The share of a row's energy that some causes take; None: not known, or a meter saw less than modelled."""
    metered = (row.parts or {}).get("metered")
    if metered is not None and (metered.energy_j or 0.0) < 0:
        return None
    joules = [part.energy_j for cause, part in (row.parts or {}).items() if cause in causes]
    known = [energy_j for energy_j in joules if energy_j is not None]
    return ratio(sum(known), row.energy_j) if known else None


def parts(document: Scale) -> Table:
    """Table of the joules on a GPU cluster: a column for each node count, a row for each cause."""
    rows = [row for row in document.rows if row.parts]
    # What takes something, or may.
    taking = {cause for row in rows for cause, part in (row.parts or {}).items() if part.energy_j != 0}
    causes = [cause for cause in CAUSES if cause in taking]
    widths = [0] * _SHOWN + [120] * len(rows)
    columns = [Column(place(document, row), from_width=width) for row, width in zip(rows, widths, strict=False)]
    lines = []
    for cause in causes:
        cells: list[Cell] = [CAUSES[cause]]
        for part in ((row.parts or {}).get(cause) for row in rows):
            cells.append(mapped(lambda part: Quantity(part.energy_j, "J", bits(part.marks)), part) or "")
        lines.append(Cells(cells))
    totals = [Quantity(row.energy_j, "J", bits(row.marks)) for row in rows]
    return Table([Column("", "left"), *columns], [*lines, Cells(["all", *totals], total=True)], title="Energy by cause")


def kept(entries: Sequence[Keep]) -> Table:
    """Table of the problem sizes or clocks that keep an efficiency on more processors, or why none does."""
    return table_of(
        entries,
        (Column("processors", "left"), lambda entry: str(entry.processors)),
        (Column("size"), lambda entry: Written(phrase("{:.6g}", entry.size) or "none", entry.size)),
        (Column("clocks, MHz", "left"), lambda entry: ", ".join(f"{mhz:g}" for mhz in entry.clocks_mhz)),
        (Column("", "left"), lambda entry: entry.because or ""),
        title=f"What keeps an energy efficiency of {entries[0].target:g}",
    )


def stand_out(document: Scale) -> bool:
    """Whether the rows on the Pareto front are fewer than half, so that bold and large dots set them apart."""
    return 0 < 2 * sum(row.pareto for row in document.rows) < len(document.rows)


def rows(document: Scale) -> Table:
    """Table of every row of scaling: program, size, processors, clock, energy, time, power, efficiency, speedup."""
    is_rare = stand_out(document)
    of_size = everywhere_if(any(row.size is not None for row in document.rows))
    of_clock = everywhere_if(any(row.core_mhz is not None for row in document.rows))
    return table_of(
        document.rows,
        (Column("program", "left"), lambda row: row.program),
        (Column("size", media=of_size), lambda row: Written(size_text(row.size), row.size)),
        (Column("processors"), lambda row: str(row.processors)),
        (Column("MHz", media=of_clock), lambda row: Written(phrase("{:.6g}", row.core_mhz), row.core_mhz)),
        (Column("energy"), lambda row: amount(document, row)),
        (Column("time"), lambda row: amount(document, row, "time_s")),
        (Column("power", from_width=100), lambda row: replace(amount(document, row), value=row.power_w, unit="W")),
        (Column("efficiency"), lambda row: Factor(row.efficiency)),
        (
            Column("to slowest clock", media=of_clock & ~Medium.TERMINAL),
            lambda row: Factor(row.efficiency_to_slowest_clock),
        ),
        (Column("speedup", from_width=100), lambda row: Factor(row.speedup)),
        is_total=lambda row: row.pareto and is_rare,
        title="All",
        note=when(is_rare, "Bold: no other row takes less energy and less time."),
    )


def amount(document: Scale, entry: Row | Best, name: str = "energy_j") -> Quantity:
    """The energy or time of a row with its marks; of measured runs without marks that all rows share, but MISSING."""
    unit, marks = {"energy_j": ("J", "marks"), "time_s": ("s", "time_marks")}[name]
    own, shared = bits(getattr(entry, marks)), 0
    if document.kind != MODELLED:
        shared = reduce(and_, (bits(getattr(row, marks)) for row in document.rows))
    return Quantity(getattr(entry, name), unit, own & (~shared | MISSING))


def causes(document: Scale) -> Table:
    """Table of the joules beyond one processor's, by cause, and of the energy with polling."""
    causes = [cause for cause in CAUSES if any((row.overhead_j or {}).get(cause) for row in document.rows)]
    labels = ["MHz", *(CAUSES[cause] for cause in causes), "energy, polling"]
    columns = [Column("processors", "left"), *map(Column, labels)]
    lines = []
    for row in document.rows:
        joules = [*((row.overhead_j or {}).get(cause) for cause in causes), row.polling_j]
        amounts = [Quantity(energy_j, "J", bits(row.marks)) for energy_j in joules]
        lines.append(Cells([str(row.processors), f"{row.core_mhz:g}", *amounts]))
    return Table(columns, lines, title="Why: energy beyond that of one processor")


def predictions(fitted: Fit) -> Table:
    """Table of what a fit predicts for runs on more nodes, with its errors where these were measured."""
    return table_of(
        fitted.predictions,
        (Column("size", "left", from_width=100), lambda entry: size_text(entry.size)),
        (Column("processors"), lambda entry: str(entry.processors)),
        (Column("MHz"), lambda entry: f"{entry.core_mhz:g}"),
        (Column("energy"), lambda entry: Quantity(entry.energy_j, "J", bits(entry.marks))),
        (Column("off by"), lambda entry: Share(entry.energy_error, signed=True)),
        (Column("time"), lambda entry: Quantity(entry.time_s, "s", bits(entry.marks))),
        (Column("off by"), lambda entry: Share(entry.time_error, signed=True)),
        (Column("efficiency", from_width=100), lambda entry: Factor(entry.efficiency)),
        title="Predicted",
    )
