"""The tables of a difference: OLD beside NEW, what changed, kernels, counts, the model's bounds, what is left out."""

from collections.abc import Iterator, Sequence

from eprof.base.known import less, ratio
from eprof.base.labels import labels
from eprof.base.nouns import Nouns
from eprof.base.vocabulary import CONSTANT
from eprof.commands.diff import why
from eprof.commands.diff.schema import Document, Kernel, KernelSide, Part
from eprof.commands.diff.words import moving, step_label, unchanged
from eprof.show.words import intervals
from eprof.show.words.badges import MISSING, bits
from eprof.show.words.blocks import Column, Medium, Row, Table, numbers, texts
from eprof.show.words.cells import Bar, Cell, Change, Factor, Name, Quantity, Share, Tag, Written, signed_quantity
from eprof.show.words.numbers import whole

_SIDES = (Column("OLD"), Column("NEW"), Column("change"))
_FAMILIES = {"computation": "Computation", "data": "Data movement", "constant": "Constant power", "total": "Energy"}
_UNITS = {"byte": "B", "instruction": "", "flop": "flop", "cycle": "", "s": "s"}
_STATUSES = {"appeared": "new", "vanished": "gone"}
_REASONS = {"counts": "counts", "time": "time", "cost": "price", "setting": "setting", "meter": "meter"}


def sides(document: Document) -> Table:
    """Table of both sides: energy by family, time, power and what a meter saw, OLD beside NEW."""
    both = document.old, document.new
    rows = [*_energies(document), *_intervals(document)]
    old, new = (Quantity(side.time_s, "s", bits(side.time_marks)) for side in both)
    rows.append(_beside("Time", old, new, document.change_time_s, old.value))
    old, new = (Quantity(side.power_w, "W", bits(side.marks)) for side in both)
    if old.value is not None and new.value is not None:
        rows.append(_beside("Mean power", old, new, new.value - old.value, old.value))
    old, new = (Quantity(side.energy_j.measured, "J") for side in both)
    if old.value is not None and new.value is not None:
        rows.append(_beside("Measured", old, new, new.value - old.value, old.value))
    note = ""
    if refits := document.intervals:
        note = intervals.of_change(document.nouns, refits.share, refits.replicas, refits.paired, refits.within)
    return Table([Column("", align="left"), *_SIDES, Column("of OLD")], rows, note=note)


def _energies(document: Document) -> Iterator[Row]:
    old, new = document.old, document.new
    if old.costs is None and new.costs is None:
        return
    for family, label in _FAMILIES.items():
        before = Quantity(getattr(old.energy_j, family), "J", bits(old.energy_marks[family]))
        after = Quantity(getattr(new.energy_j, family), "J", bits(new.energy_marks[family]))
        parts = [part for part in document.parts if family in (part.kind, "total")]
        change = None if document.change_j is None else float(sum(part.change_j for part in parts))
        # Each word of each kernel once, though counts and price are two parts of it.
        compared_old_j = sum({(part.what, part.kernel): part.old_j for part in parts}.values())
        lacks = bits(document.marks) & MISSING if family == "total" else 0
        yield _beside(label, before, after, change, compared_old_j, lacks)


def _intervals(document: Document) -> Iterator[Row]:
    """Rows of the intervals of OLD, NEW and the change; that of a modelled total says too little."""
    if document.intervals is None or document.above_constant:
        return
    old, new = (intervals.cell((side.interval_j or {}).get("total"), "J") for side in (document.old, document.new))
    change = intervals.cell(document.interval_j, "J", signed=True)
    yield Row([intervals.label(document.intervals.share), old, new, change, ""])


def _beside(label: str, old: Quantity, new: Quantity, change: float | None, whole: float | None, lacks: int = 0) -> Row:
    """A number of both sides, and its change as a share of `whole`.

    What only one side knows is not in a change, so that it is no lower bound. lacks: the mark of a total that says so.
    """
    marks = (old.marks | new.marks) & ~MISSING | lacks
    return Row([label, old, new, Change(change, old.unit, marks), Share(ratio(change, whole), signed=True)])


# ----------------------------------------------------------------------------------------------------- what changed


def steps(document: Document) -> Table:
    """Table of what the difference is made of, largest first; a page has its bars instead."""
    largest = max((abs(step.change_j) for step in document.steps), default=0.0) or 1.0
    change = document.change_j
    columns = [
        Column("what changed", align="left"),
        Column("by"),
        *_interval_column(document),
        Column("share"),
        Column("less · more", align="center", media=Medium.TERMINAL),
    ]
    rows = [
        Row(
            [
                step_label(step, document.nouns),
                Change(step.change_j, "J", bits(step.marks)),
                *_interval_cell(document, step.interval_j),
                Share(ratio(step.change_j, change)),
                Bar(step.change_j / largest),
            ]
        )
        for step in moving(document)
    ]
    total = Change(change, "J", bits(document.marks))
    whole = Share(1.0 if change else None)
    ends = _interval_cell(document, document.interval_j)
    rows.append(Row(["change", total, *ends, whole, ""], total=True))
    return Table(columns, rows, note=unchanged(document))


def _interval_column(document: Document) -> list[Column]:
    if document.intervals is None:
        return []
    return [Column(intervals.label(document.intervals.share))]


def _interval_cell(document: Document, ends: Sequence[float] | None) -> list[Cell]:
    return [] if document.intervals is None else [intervals.cell(ends, "J", signed=True)]


# ---------------------------------------------------------------------------------------------------------- kernels


def kernels(document: Document, limit: int | None = None) -> Table:
    """Table of the kernels with the largest change, of `limit` at most; by time where no energy is compared."""
    shown = document.kernels[:limit]
    changes = [change_of(kernel, document.has_energy)[0] for kernel in document.kernels]
    largest = max((abs(change or 0.0) for change in changes), default=0.0) or 1.0
    ratios = Medium.PAGE | Medium.MARKDOWN
    columns = [
        Column(document.nouns.kernel, align="left"),
        *_SIDES,
        *_interval_column(document),
        Column("", media=Medium.PAGE),
        Column("of OLD"),
        Column("speedup", media=ratios),
        Column("calls", media=Medium.PAGE),
    ]
    names = labels([kernel.name for kernel in shown])
    rows = [_kernel(document, kernel, name, largest) for kernel, name in zip(shown, names, strict=True)]
    left_out = ""
    if others := changes[len(shown) :]:
        together = signed_quantity(sum(filter(None, others)), _unit(document))
        left_out = f"{whole(len(others))} other {document.nouns.of(len(others))}, together {together}"
    return Table(columns, rows, left_out=left_out, browsable=True)


def _unit(document: Document) -> str:
    return "J" if document.has_energy else "s"


def change_of(kernel: Kernel, has_energy: bool) -> tuple[float | None, float | None]:
    """The change of a kernel between OLD and NEW in J, or in s if no energy is compared, and its share of OLD."""
    old, new = (_taken(side, has_energy) for side in (kernel.old, kernel.new))
    change = kernel.change_j
    if not has_energy:
        change = less(new, old)
    return change, ratio(change, old)


def _taken(side: KernelSide | None, has_energy: bool) -> float | None:
    """What a kernel takes in OLD or NEW, in J or in s; nothing where it did not run."""
    if side is None:
        return 0.0
    return side.compared_j if has_energy else side.time_s


def _kernel(document: Document, kernel: Kernel, name: str, largest: float) -> Row:
    has_energy = document.has_energy
    change, share = change_of(kernel, has_energy)
    status: Cell = Share(share, signed=True)
    if kernel.status in _STATUSES:
        status = Tag(_STATUSES[kernel.status])
    launches = [side.launches for side in (kernel.old, kernel.new) if side is not None]
    calls = " → ".join(dict.fromkeys(f"{number:g}" for number in launches))
    cells = [
        Name(name, kernel.name, _remark(kernel, document.nouns)),
        _amount(kernel.old, has_energy),
        _amount(kernel.new, has_energy),
        Change(change, _unit(document), has_energy * bits(kernel.marks)),
        *_interval_cell(document, kernel.interval_j),
        Bar((change or 0.0) / largest),
        status,
        Factor(kernel.speedup),
        Written(calls, launches[-1]),
    ]
    return Row(cells)


def _remark(kernel: Kernel, nouns: Nouns) -> str:
    if kernel.status != "matched":
        return ""
    was = ""
    if kernel.match is not None and kernel.old is not None and kernel.match.how != "name":
        # Back ticks are around the name here; no real name holds any.
        name = labels([kernel.old.name])[0].replace("`", "'")
        was = f"was `{name}`: {kernel.match.how}, {kernel.match.score:.2f}"
    return "; ".join(filter(None, [was, why.of_kernel(kernel, nouns)]))


def _amount(side: KernelSide | None, has_energy: bool) -> Cell:
    if side is None:
        return "–"
    return Quantity(side.energy_j, "J", bits(side.marks)) if has_energy else Quantity(side.time_s, "s")


# ---------------------------------------------------------------------------------------------- counts, model, rest


def counts(document: Document) -> Table:
    """Table of changed counts: a row a part of the matched kernels, largest first, then what costs nothing."""
    columns = [*texts("count"), *_SIDES, *texts("by"), *numbers("energy")]
    columns += _interval_column(document)
    parts = [part for part in document.parts if part.kernel is None]
    rows = [_part(part, document) for part in parts]
    priced = {part.what for part in parts}
    for word, count in document.counts.items():
        if word not in priced:
            unit, marks = _UNITS[count.unit], bits(count.marks)
            amounts = Quantity(count.old, unit, marks), Quantity(count.new, unit, marks), Change(count.change, unit)
            rows.append(Row([document.nouns.label(word), *amounts, "", "", *_interval_cell(document, None)]))
    return Table(columns, rows)


def _part(part: Part, document: Document) -> Row:
    unit, marks = _UNITS[part.unit], _count_marks(part, document) & ~MISSING
    is_price = part.because in ("cost", "setting", "meter")
    return Row(
        [
            document.nouns.label(part.what),
            Quantity(part.old, unit, marks),
            Quantity(part.new, unit, marks),
            "" if is_price else Change(part.new - part.old, unit),
            _REASONS[part.because],
            Change(part.change_j, "J", bits(part.marks)),
            *_interval_cell(document, part.interval_j),
        ]
    )


def _count_marks(part: Part, document: Document) -> int:
    """The marks of a changed count itself, not of its price."""
    if part.what == CONSTANT:
        return bits(document.old.time_marks) | bits(document.new.time_marks)
    count = document.counts.get(part.what)
    return bits(count.marks) if count else 0


def left_out(document: Document) -> Table | None:
    """Table of what is not in the difference: word, why, what OLD and NEW know of it; None if nothing is."""
    label = document.nouns.label
    rows = [
        Row([label(word.what), word.why, Quantity(word.old_j, "J"), Quantity(word.new_j, "J")])
        for word in document.uncompared
    ]
    rows += [Row([label(word.what), word.why, Quantity(None), Quantity(None)]) for word in document.unknown]
    if not rows:
        return None
    return Table([*texts("count", "why"), *numbers("known of OLD", "known of NEW")], rows)
