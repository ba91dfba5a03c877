"""The tables of a difference: OLD beside NEW, what changed, kernels, counts, the model's bounds, what is left out."""

import math
from collections.abc import Sequence

from eprof.base.labels import labels
from eprof.base.optional import gathered, less, ratio
from eprof.base.vocabulary import CONSTANT
from eprof.commands.diff import cause_words, standing
from eprof.commands.diff.parts import PRICES
from eprof.commands.diff.schema import Document, KernelSide
from eprof.commands.diff.words import FAMILIES, moving, step_label, unchanged
from eprof.show.words import intervals
from eprof.show.words.amounts import MISSING, bits
from eprof.show.words.blocks import Column, Medium, Row, Table, numbers, texts
from eprof.show.words.cells import Bar, Cell, Change, Factor, Name, Quantity, Share, Tag, Written, signed_quantity
from eprof.show.words.numbers import whole

_SIDES = (Column("OLD"), Column("NEW"), Column("change"))
_UNITS = {"byte": "B", "flop": "flop", "s": "s"}  # others are numbers of things
_STATUSES = {"appeared": "new", "vanished": "gone"}
_REASONS = {word: word for word in ("counts", "time", "setting", "meter")}
_REASONS |= {"cpu_time": "CPU time", "cost": "price", "processor": "each its own"}


def sides(document: Document) -> Table:
    """Table of both sides: energy by family, time, power and what a meter saw, OLD beside NEW."""
    both, joule = (document.old, document.new), document.nouns.joule
    rows = []
    is_priced = any(side.costs is not None for side in both)
    for family, label in [*FAMILIES.items(), ("total", document.nouns.energy.capitalize())] * is_priced:
        energies = [Quantity(getattr(side.energy_j, family), joule, bits(side.energy_marks[family])) for side in both]
        parts = [part for part in document.parts if family in (part.kind, "total")]
        change = None if document.change_j is None else float(sum(part.change_j for part in parts))
        # Each word of each kernel once, though counts and price are two parts of it.
        compared_old_j = sum({(part.what, part.kernel): part.old_j for part in parts}.values())
        rows.append(_beside(label, energies, change, compared_old_j))
    note = ""
    if refits := document.intervals:
        is_repriced = any(part.because in PRICES for part in document.parts)
        pairing = {(True, False): "alike", (True, True): "paired"}.get((refits.paired, is_repriced), "apart")
        note = intervals.of_change(document.nouns, refits.share, refits.replicas, pairing, refits.within)
        # The interval of a modelled total says too little.
        if not document.above_constant:
            totals = (intervals.cell((side.interval_j or {}).get("total"), joule) for side in both)
            rows.append(
                Row([intervals.label(refits.share), *totals, _interval_cell(document, document.interval_j), ""])
            )
    times = [Quantity(side.time_s, "s", bits(side.time_marks)) for side in both]
    rows.append(_beside("Time", times, document.change_time_s, document.old.time_s))
    powers = [Quantity(side.power_w, "W", bits(side.marks)) for side in both]
    metered = [Quantity(side.energy_j.measured, "J") for side in both]
    for label, amounts in (("Mean power", powers), ("Measured", metered)):
        before, after = (amount.value for amount in amounts)
        if before is not None and after is not None and not (amounts[0].marks | amounts[1].marks) & MISSING:
            change = (after - before) * (not math.isclose(after, before))  # no rounding
            rows.append(_beside(label, amounts, change, before))
    columns = [*_SIDES, Column("of OLD")]
    if standing.are_strangers(document):  # what one takes more than the other is no change
        columns[2:] = [Column("", media=Medium.NONE)] * 2
    return Table([Column("", align="left"), *columns], rows, note=note)


def _beside(label: str, both: Sequence[Quantity], change: float | None, whole: float | None) -> Row:
    """A row: a quantity of OLD and of NEW, its change, and that as a share of `whole`."""
    cell = Change(change, both[0].unit, (both[0].marks | both[1].marks) & ~MISSING)
    return Row([label, *both, cell, Share(ratio(change, whole), signed=True)])


def _changed(document: Document, change_j: float | None, marks: Sequence[str]) -> Change:
    """The cell of a change in J or W, never marked as a lower bound: it is of what both sides know."""
    return Change(change_j, document.nouns.joule, bits(marks) & ~MISSING)


def steps(document: Document) -> Table:
    """Table of the steps of the change, largest first, for the terminal and Markdown; a page has bars instead."""
    largest = max((abs(step.change_j) for step in document.steps), default=0.0) or 1.0
    change = document.change_j
    columns = [
        Column("what changed", align="left"),
        Column("by"),
        _interval_column(document),
        Column("share"),
        Column("less · more", align="center", media=Medium.TERMINAL),
    ]
    rows = []
    for step in moving(document):
        by, ends = _changed(document, step.change_j, step.marks), _interval_cell(document, step.interval_j)
        share, bar = Share(ratio(step.change_j, change)), Bar(step.change_j / largest)
        rows.append(Row([step_label(step, document.nouns), by, ends, share, bar]))
    by, ends = _changed(document, change, document.marks), _interval_cell(document, document.interval_j)
    rows.append(Row(["change", by, ends, Share(ratio(change, change)), ""], total=True))
    return Table(columns, rows, note=unchanged(document))


def _interval_column(document: Document) -> Column:
    if document.intervals is None:
        return Column("", media=Medium.NONE)
    return Column(intervals.label(document.intervals.share))


def _interval_cell(document: Document, ends: Sequence[float] | None) -> str:
    return intervals.cell(ends, document.nouns.joule, signed=True)


def kernels(document: Document, limit: int | None = None) -> Table:
    """Table of the kernels with the largest change, of `limit` at most; by time where no energy is compared."""
    has_energy, unit = document.has_energy, document.unit
    shown = document.kernels[:limit]
    changes = changes_of(document)
    largest = max((abs(change or 0.0) for change, _ in changes), default=0.0) or 1.0
    ratios = Medium.PAGE | Medium.MARKDOWN
    columns = [
        Column(document.nouns.kernel, align="left"),
        *_SIDES,
        _interval_column(document),
        Column("", media=Medium.PAGE),
        Column("of OLD"),
        Column("speedup", media=ratios),
        Column("calls", media=Medium.PAGE),
    ]
    rows = []
    for kernel, (change, share), name in zip(shown, changes, labels([kernel.name for kernel in shown]), strict=False):
        remarks = []
        if kernel.old is not None and kernel.match is not None and kernel.match.how != "name":
            # Back ticks are around the name here; no real name holds any.
            was = labels([kernel.old.name])[0].replace("`", "'")
            remarks.append(f"was `{was}`: {kernel.match.how}, {kernel.match.score:.2f}")
        if kernel.status not in _STATUSES:
            remarks.append(cause_words.of_kernel(kernel, document.nouns))
        launches = [side.launches for side in (kernel.old, kernel.new) if side is not None]
        cells: list[Cell] = [
            Name(name, kernel.name, "; ".join(filter(None, remarks))),
            _amount(document, kernel.old),
            _amount(document, kernel.new),
            Change(change, unit, has_energy * bits(kernel.marks) & ~MISSING),
            _interval_cell(document, kernel.interval_j),
            Bar((change or 0.0) / largest),
            Tag(_STATUSES[kernel.status]) if kernel.status in _STATUSES else Share(share, signed=True),
            Factor(kernel.speedup),
            Written(" → ".join(dict.fromkeys(f"{number:g}" for number in launches)), launches[-1]),
        ]
        rows.append(Row(cells))
    left_out = ""
    if others := changes[len(shown) :]:
        together = signed_quantity(sum(change or 0.0 for change, _ in others), unit)
        left_out = f"{whole(len(others))} other {document.nouns.of(len(others))}, together {together}"
    return Table(columns, rows, left_out=left_out, browsable=True)


def changes_of(document: Document) -> list[tuple[float | None, float | None]]:
    """The change of each kernel between OLD and NEW in J, or in s if no energy is compared, and its share of OLD.

    Where it did not run, it takes nothing; what one of two strangers alone has takes all that is known of it.
    """
    are_strangers = standing.are_strangers(document)
    changes = []
    for kernel in document.kernels:
        what = "time_s"
        if document.has_energy:
            what = "energy_j" if are_strangers and kernel.match is None else "compared_j"
        old, new = (getattr(side, what, 0.0) for side in (kernel.old, kernel.new))
        change = kernel.change_j if what == "compared_j" else less(new, old)
        changes.append((change, ratio(change, old)))
    return changes


def _amount(document: Document, side: KernelSide | None) -> Cell:
    if side is None:
        return "–"
    if document.has_energy:
        return Quantity(side.energy_j, document.unit, bits(side.marks))
    return Quantity(side.time_s, "s")


def counts(document: Document) -> Table:
    """Table of changed counts: a row a part of the matched kernels, largest first, then what costs nothing."""
    columns = [
        *texts(f"count{document.nouns.pace}"),
        *_SIDES,
        *texts("by"),
        *numbers(document.nouns.energy),
        _interval_column(document),
    ]
    rows = []
    parts = [part for part in document.parts if part.kernel is None]
    for part in parts:
        # The marks of the count itself, not of its price.
        marks = bits(getattr(document.counts.get(part.what), "marks", ()))
        if part.what == CONSTANT:
            marks = bits(document.old.time_marks) | bits(document.new.time_marks)
        unit, marks = _UNITS.get(part.unit, ""), marks & ~MISSING
        amounts = Quantity(part.old, unit, marks), Quantity(part.new, unit, marks)
        change = "" if part.because in PRICES else Change(less(part.new, part.old), unit)
        energy = (
            _REASONS[part.because],
            _changed(document, part.change_j, part.marks),
            _interval_cell(document, part.interval_j),
        )
        rows.append(Row([document.nouns.label(part.what), *amounts, change, *energy]))
    priced = {part.what for part in parts}
    for word, count in document.counts.items():
        if word not in priced:
            unit, marks = _UNITS.get(count.unit, ""), bits(count.marks)
            amounts = Quantity(count.old, unit, marks), Quantity(count.new, unit, marks)
            rows.append(Row([document.nouns.label(word), *amounts, Change(count.change, unit), "", "", ""]))
    return Table(columns, rows)


def left_out(document: Document) -> Table | None:
    """Table of what is not in the difference: word, why, what OLD and NEW know of it; None if nothing is."""
    label, joule = document.nouns.label, document.nouns.joule
    unknown = gathered((word.why, label(word.what)) for word in document.unknown)
    rows = [
        Row([label(word.what), word.why, Quantity(word.old_j, joule), Quantity(word.new_j, joule)])
        for word in document.uncompared
    ]
    rows += [Row([", ".join(words), why, Quantity(None), Quantity(None)]) for why, words in unknown.items()]
    if not rows:
        return None
    return Table([*texts("count", "why"), *numbers("known of OLD", "known of NEW")], rows)
