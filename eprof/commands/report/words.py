"""A report's tables in every medium: split, kernels, groups, operators, counts, components; sentences on what-ifs."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby

from eprof.base.labels import labels
from eprof.base.optional import mapped
from eprof.base.text import capital, cut, pattern, phrase, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, Nouns, mark_names
from eprof.commands.report.view import Priced, View, by_time_of, callees_of, energy_of, time_of
from eprof.logs.log import BETWEEN
from eprof.profile import schema
from eprof.show import cost_words, intervals
from eprof.show.amounts import ESTIMATED, UNKNOWN, Amount, bits, ratio, total
from eprof.show.blocks import (
    Cell,
    Column,
    Field,
    Medium,
    Name,
    Quantity,
    Row,
    Share,
    Stack,
    Table,
    everywhere_if,
    signs,
    table_of,
)
from eprof.show.numbers import NARROW, and_more, more_or_less, percent, plain_or, quantity, span, whole

_PARTS = (COMPUTATION, DATA, CONSTANT)
_WIDE, _WIDEST = 90, 100  # columns of a terminal


def split_table(view: View) -> Table:
    """A report's table of computation, data and constant energy: share and interval of each, their sum, the meter's."""
    total = view.energy("total")
    columns = [
        Column("part", "left"),
        Column("energy"),
        Column("of what is known" if total.lower else "share", media=Medium.TERMINAL),
        Column(_interval_label(view), media=_intervals_of([view.document])),
        Column("marks", "left", Medium.MARKDOWN),
    ]
    rows = []
    for part in (*_PARTS, "total"):
        energy = view.energy(part)
        ends = intervals.cell(view.interval(part), "J")
        cells: list[Cell] = [
            part,
            _quantity(energy, "J"),
            _share(energy, total),
            ends,
            ", ".join(mark_names(energy.marks)),
        ]
        rows.append(Row(cells, total=part == "total"))
    measured = view.document.energy_j.measured
    if view.to_meter is not None and view.to_meter.idle_j:
        idle = Quantity(view.to_meter.idle_j, "J", ESTIMATED)
        rows.append(Row(["idle", idle, f"outside of {view.nouns.kernels}", "", "estimated"]))
    if measured is not None:
        rows.append(Row(["measured", Quantity(measured, "J"), "by the meter, per run", "", ""]))
    interval, costs, note = view.document.interval_j, view.costs, ""
    if interval and costs and costs.of:
        note = "Intervals: those of each GPU, added up as if all prices were off to the same side."
    elif interval and costs:
        how = interval.share, interval.replicas, costs.interval_is, costs.basis, interval.within, interval.apart
        note = intervals.meaning(view.nouns, *how)
    return Table(columns, rows, note=note)


def kernel_table(view: View, limit: int | None) -> Table:
    """A report's table of kernels, largest first, each with its computation, data and constant energy, if known."""
    shown = view.kernels[:limit]
    names = [kernel.name for kernel in shown]
    label_of = dict(zip(names, labels(names), strict=True))
    devices, metered = everywhere_if(view.several_devices), everywhere_if(view.to_meter is not None)
    callees = everywhere_if(any(callees_of(kernel).value is not None for kernel in view.kernels))
    with_intervals = _intervals_of(view.kernels) & ~Medium.PAGE
    return table_of(
        shown,
        (Column(view.nouns.kernel, "left"), lambda kernel: Name(label_of[kernel.name], kernel.name)),
        (Column("device", "left", devices), lambda kernel: kernel.device or UNKNOWN),
        (Column(view.nouns.launches), lambda kernel: str(kernel.launches)),
        _TIME,
        *_energy_fields(view, Medium.TERMINAL),
        (Column("by time", media=metered, from_width=_WIDE), lambda kernel: _quantity(by_time_of(kernel), "J")),
        (
            Column("with callees", media=callees, from_width=_WIDE),
            lambda kernel: _quantity(callees_of(kernel, view.is_above), "J"),
        ),
        *((Column(part, media=Medium.MARKDOWN), partial(_energy_cell, part)) for part in _PARTS),
        (
            Column("flop/B", media=Medium.TERMINAL, from_width=_WIDE),
            lambda kernel: plain_or("", kernel.intensity_flop_per_byte),
        ),
        (
            Column(_interval_label(view), media=with_intervals, from_width=_WIDEST),
            lambda kernel: intervals.cell(kernel.interval_j, "J"),
        ),
        (Column("marks", "left", Medium.MARKDOWN), lambda kernel: ", ".join(kernel.marks)),
        left_out=and_more(len(view.kernels) - len(shown), view.nouns.kernel),
    )


def group_table(view: View, groups: Sequence[schema.Group]) -> Table:
    """A report's table of phases: each group of kernels with the same split as the whole."""
    largest = max(energy_of(group, "total").or_zero for group in groups)
    on_page = Medium.PAGE & everywhere_if(largest > 0)

    def stack(group: schema.Group) -> Stack:
        joules = {name: amount.or_zero for name, amount in view.groups_of(group).items()}
        return Stack(group.name, joules, largest)

    return table_of(
        groups,
        (Column("group", "left"), lambda group: Name(group.name, group.name)),
        (Column("", "left", on_page), stack),
        (Column(view.nouns.kernels, media=Medium.PAGE), lambda group: whole(len(group.kernels))),
        (Column(view.nouns.launches), lambda group: whole(group.launches)),
        _TIME,
        *_energy_fields(view, Medium.ALL),
        (Column("of all", media=on_page), partial(_share_of_all, view)),
        (Column("flop/B", media=Medium.PAGE), lambda group: plain_or(UNKNOWN, group.intensity_flop_per_byte)),
        (
            Column(_interval_label(view), media=_intervals_of(groups), from_width=_WIDEST),
            lambda group: intervals.cell(group.interval_j, "J"),
        ),
    )


def operator_table(view: View, limit: int | None) -> Table:
    """A report's table of a framework's operators, largest first, each with the modules that called it."""
    operators = merged_operators(view.document.operators or [])
    shown = operators[:limit]
    return table_of(
        shown,
        (Column("operator", "left"), lambda operator: operator.name),
        (Column("called in", "left"), lambda operator: operator.module or ""),
        (Column(view.nouns.launches), lambda operator: whole(operator.launches)),
        _TIME,
        *_energy_fields(view, Medium.PAGE),
        (Column("of all"), partial(_share_of_all, view)),
        note=_HOW_SHARED,
        left_out=and_more(len(operators) - len(shown), "operator"),
    )


def _intervals_of(rows: Sequence[schema.Profile | schema.Kernel | schema.Group]) -> Medium:
    """The media whose tables show intervals: all, or none if no row has one, as where all are lower bounds."""
    return everywhere_if(any(row.interval_j for row in rows))


def _interval_label(view: View) -> str:
    if not view.document.interval_j:
        return ""
    return intervals.label(view.document.interval_j.share)


_TIME: Field[Priced] = Column("time"), lambda entry: _quantity(time_of(entry), "s")


def _energy_fields(view: View, shares: Medium) -> list[Field[Priced]]:
    """The columns of the energy and of its three parts, which only the media `shares` show; none without energy."""
    if not view.has_energy:
        return []
    labels = zip(("comp.", "data", "const."), _PARTS, strict=True)
    of_parts = [(Column(label, media=shares), partial(_part_share, part)) for label, part in labels]
    return [(Column("energy"), partial(_energy_cell, "total")), *of_parts]


def _energy_cell(part: str, entry: Priced) -> Quantity:
    return _quantity(energy_of(entry, part), "J")


def _part_share(part: str, entry: Priced) -> Share:
    return _share(energy_of(entry, part), energy_of(entry, "total"))


def _share_of_all(view: View, entry: Priced) -> Share:
    return _share(energy_of(entry, "total"), view.with_rest(view.energy("total")))


def count_table(view: View, verbose: bool) -> Table:
    """A report's table of what was counted, and what each costs; zeros and what was not counted only if `verbose`."""
    priced = everywhere_if(view.costs is not None)
    columns = [Column("count", "left"), Column("number"), Column("energy", media=priced), Column("each", media=priced)]
    rows = []
    for name, word in view.words.items():
        if not word.value.value and not verbose:
            continue
        charge = view.charges.get(name)
        cells: list[Cell] = [word.count.label, _quantity(word.value, word.count.symbol), "", "no price"]
        if charge is not None:
            cells[3] = cost_words.price(charge, "{:.4g}".format)
        if charge is not None and charge.pays:
            cells[2] = _quantity(word.energy, "J")
        rows.append(Row(cells))
    return Table(columns, rows)


def _quantity(amount: Amount, unit: str) -> Quantity:
    return Quantity(amount.value, unit, amount.marks)


def _share(part: Amount, whole_amount: Amount) -> Share:
    share = ratio(part, whole_amount)
    return Share(share.value, marks=share.marks)


def rank_words(ranks: schema.Ranks, nouns: Nouns) -> str:
    """Sentences on the spread of times, energies and launches over MPI ranks, on the slowest one and the imbalance."""
    low, high = ranks.launches.min or 0, ranks.launches.max or 0
    spreads = [
        _rank_spread(ranks.time_s, "s", "time"),
        _rank_spread(ranks.energy_j, "J", "energy"),
        when(low != high, f"{nouns.launches} {whole(low)} to {whole(high)}"),
    ]
    marks = {"times": ranks.time_marks, "energies": ranks.energy_marks}
    lower = [numbers for numbers in marks if marks[numbers] and ranks.time_s.min is not None]
    sentences = [
        f"{whole(ranks.number)} ranks, smallest, median and largest: {'; '.join(filter(None, spreads))}.",
        phrase("The {} are lower bounds, for something is missing.", " and ".join(lower)),
        slowest_words(ranks),
    ]
    return " ".join(filter(None, sentences))


def slowest_words(ranks: schema.Ranks) -> str:
    """A report's sentence on the slowest MPI rank and the imbalance; empty without one."""
    slowest = ranks.slowest
    if slowest is None:
        return ""
    if ranks.imbalance is None:
        return "How uneven the ranks are is not known, for some time is missing."
    name = capital(slowest)
    return f"{name} is the slowest; imbalance {percent(ranks.imbalance)} (its time over the mean, less one)."


def _rank_spread(spread: schema.Spread, unit: str, noun: str) -> str:
    numbers = [quantity(value, unit) for value in (spread.min, spread.median, spread.max) if value is not None]
    return phrase("{} {}", noun, ", ".join(numbers))


_FRAMES, _FRAME_LENGTH = 2, 40  # innermost frames; characters of each
_INSTANCE = pattern(r"(?:_\d+|#\d+)$")
_ENERGIES = ("computation", "data", "constant", "total")
_HOW_SHARED = (
    "A kernel's energy is shared over its launches by their time in the trace, so that of an operator is estimated "
    "where others launch the same kernels, unless the counts are by launch."
)


def merged_operators(operators: Iterable[schema.Operator]) -> list[schema.Operator]:
    """The operators by name and the innermost modules, without the numbers of instances; largest first.

    `BertLayer_0 > BertIntermediate_0 > Linear_4` and `BertLayer_1 > BertIntermediate_1 > Linear_10` are one.
    """
    alike: dict[tuple[str, str], list[schema.Operator]] = {}
    for operator in operators:
        frames = [_INSTANCE.sub("", frame) for frame in (operator.module or "").split(BETWEEN)]
        shown = [cut(frame, _FRAME_LENGTH) for frame, _ in groupby(frames)]
        alike.setdefault((operator.name, BETWEEN.join(shown[-_FRAMES:])), []).append(operator)
    sums = []
    for (name, module), members in alike.items():
        energies = {part: total(energy_of(each, part) for each in members) for part in _ENERGIES}
        time = total(map(time_of, members))
        marks = {part: mark_names(amount.marks) for part, amount in energies.items()}
        operator = schema.Operator(
            name=name,
            module=module or None,
            launches=sum(each.launches for each in members),
            time_s=time.value,
            time_marks=mark_names(time.marks),
            energy_j=schema.Joules(**{part: amount.value for part, amount in energies.items()}),
            energy_marks=schema.JouleMarks(**marks),
            kernels=[],
            marks=marks["total"],
        )
        sums.append(operator)
    return sorted(sums, key=lambda each: (-(each.energy_j.total or 0.0), -(each.time_s or 0.0)))


def operator_words(view: View) -> str:
    """A sentence on the operator that takes most energy, else time; empty if neither is known."""
    operators = merged_operators(view.document.operators or [])
    largest = operators[0]
    called = largest.name + phrase(" in {}", largest.module)
    share = ratio(energy_of(largest, "total"), view.energy("total")).value
    if share is None:
        share = ratio(time_of(largest), view.time).value
        return phrase("{} takes {} of the time.", called, mapped(percent, share))
    known = when(view.energy("total").lower, "known ")
    return f"{called} takes {percent(share)} of the {known}energy of {whole(len(operators))} operators."


# What each component is called in the head of a column, and in a sentence.
_COMPONENTS = {
    "loads": ("loads", "waiting for loads"),
    "computation": ("comp.", "computation"),
    "shared": ("shared", "shared memory"),
    "conflicts": ("conflicts", "bank conflicts"),
    "texture": ("texture", "texture"),
    "stores": ("stores", "stores"),
    "bandwidth": ("DRAM", "waiting for DRAM's bandwidth"),
}
_LARGEST, _SMALL = 3, 0.005


def component_words(view: View) -> str:
    """A sentence on the largest components of the first kernel whose cycles are modelled."""
    costs, parts = view.document.costs, view.document.time_components
    assert parts
    timed = (pair for pair in zip(view.kernels, parts.kernels, strict=True) if pair[1].time_s is not None)
    kernel, cycles = next(timed, (None, None))
    if kernel is None or cycles is None:
        return "Nothing was counted that the model could make cycles of."
    total = sum(cycles.cycles.values())
    largest = sorted(cycles.cycles.items(), key=lambda part: -part[1])[:_LARGEST]
    named = [f"{percent(part / total)} {_COMPONENTS[name][1]}" for name, part in largest if part >= _SMALL * total]
    elsewhere = when(costs is not None and costs.gpu_match == "other", f" for {parts.device}")
    seconds = quantity(cycles.time_s or 0.0, "s")
    if kernel.time_s not in (None, cycles.time_s):
        seconds += f" in all; the report has {quantity(kernel.time_s or 0.0, 's')}"
    return f"{view.label(kernel)}: {', '.join(named)} (modelled{elsewhere}: {seconds})."


def component_table(view: View, limit: int | None) -> Table:
    """A report's table of time by component: kernels in the document's order, with shares of their modelled cycles."""
    parts = view.document.time_components
    assert parts
    used = [name for name in _COMPONENTS if any(kernel.cycles.get(name) for kernel in parts.kernels)]
    columns = [
        *(Column(view.nouns.kernel, "left"), Column("time"), Column("modelled")),
        *(Column(_COMPONENTS[name][0], from_width=_WIDEST * (name in ("texture", "stores"))) for name in used),
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


def same_clocks(first: schema.AtClocks, second: schema.AtClocks) -> bool:
    """Whether two settings have the same clocks."""
    return (first.core_mhz, first.memory_mhz) == (second.core_mhz, second.memory_mhz)


def clock_words(clocks: schema.Clocks, run: schema.Profile) -> str:
    """A report's sentence on the clocks of the lowest energy, what they save, and what they cost in time.

    Against the run itself where its own clocks are between those that the table knows.
    """
    lowest, here = clocks.lowest, next((setting for setting in clocks.settings if setting.this), None)
    least = when("missing" in clocks.marks, "at least ")
    setting = f"{lowest.core_mhz:g}{NARROW}MHz core and {lowest.memory_mhz:g}{NARROW}MHz memory"
    is_lower = any((other.energy_j or math.inf) < (lowest.energy_j or 0.0) for other in clocks.settings)
    among = when(is_lower, " of those that the table lists and was fitted to")
    prediction = f"Lowest prediction{among}: {setting}, {least}{quantity(lowest.energy_j or 0.0, 'J')}"
    if here is not None and same_clocks(here, lowest):
        return f"{prediction}: this run's setting."
    before = here or run
    before_j = before.energy_j.total if isinstance(before, schema.Profile) else before.energy_j
    pairs = (lowest.energy_j, before_j), (lowest.time_s, before.time_s)
    energy, time = (more_or_less((now or 0.0) / (then or 1.0) - 1) for now, then in pairs)
    changes = f"{prediction}: {energy} energy, {time} time."
    low, high = lowest.energy_range_j or (None, None)
    if low is None or high is None or high <= low * 1.005:
        return changes
    return f"{changes} It would be {span(low, high, 'J')} if times followed one clock alone."


def answer_words(answer: schema.Answer) -> str:
    """A what-if answer as a sentence: "If dram=-20%: ~17.2 J, 6.0 % less, 5.5 % less time (20 % fewer bytes)."."""
    joules, time, marks = answer.energy_j.total, answer.time_share, bits(answer.marks)
    pieces = ["not known"]
    if joules is not None:
        pieces = [signs(marks) + quantity(joules, "J")]
    if answer.change_share is not None:
        pieces.append(when(is_same(answer.change_share), "the same") or more_or_less(answer.change_share))
    if time is not None and not is_same(time):
        pieces.append(f"{more_or_less(time)} time")
    return f"If {answer.question}: {', '.join(pieces)} ({answer.says}; {answer.assumes})."


def is_same(share: float) -> bool:
    """Whether the change of a what-if answer is too small to be worth a number."""
    return abs(share) < 5e-5
