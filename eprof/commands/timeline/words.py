"""A document `eprof.timeline/1` in words: the total, the largest functions, components, what is not sure."""

from collections.abc import Iterator
from functools import reduce
from operator import mul, or_

from eprof.base.optional import gathered, mapped, ratio, summed
from eprof.base.text import counted, few, listed, phrase, when
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.timeline.document import Cause, Component, Function, Timeline
from eprof.commands.timeline.joules import UNSEEN
from eprof.show.amounts import ESTIMATED, MISSING, bits
from eprof.show.blocks import (
    Block,
    Cell,
    Column,
    Headline,
    Legend,
    Name,
    Notes,
    Point,
    Quantity,
    Row,
    Share,
    Table,
    everywhere_if,
    table_of,
)
from eprof.show.numbers import and_more, percent, quantity, signed_percent, whole

_SHOWN = 6
TITLE = "Timeline"
_OVER = 1.05  # of a whole, that its parts may have together, as meters differ
OUTSIDE = "in no function"
_CAUSES = {
    CONSTANT: "constant power",
    "dram": "DRAM",
    "fp64": "FP64",
    "fp32": "FP32",
    "fp16": "FP16",
    "tensor_fp16": "tensor cores",
    "sm_active_cycle": "active SMs",
    "l2": "L2",
    "l1": "L1",
    UNSEEN: "work not sampled",
}


def subject(document: Timeline) -> str:
    """What was metered and for how long: "GPU, CPU over 12 s"."""
    names = [component.name for component in document.components]
    return f"{few(names, 4)} over {quantity(document.duration_s, 's')}"


def headline(document: Timeline) -> Headline:
    """The headline of a timeline: the total, what takes most of it, and what idle or base power is of it."""
    bound = when(missing(*added(document)), "At least ")
    total = f"{bound}{quantity(document.total_j, 'J')} in {quantity(document.duration_s, 's')}"
    largest = _largest(document)
    lead = [_by_cause(document), _bursts(document), _busy(document), _idle(document)]
    if document.functions and largest:
        return Headline(f"{total}: {listed(largest)}.", " ".join(filter(None, lead)))
    if largest:
        lead.insert(0, f"In parts: {listed(largest)}.")
    mean_w = sum(each.mean_w or 0.0 for each in added(document))
    while_known = when(mean_w > _OVER * document.total_j / document.duration_s, " while it is known")
    return Headline(
        f"{total}: {quantity(mean_w, 'W')} on average{while_known}{_base(document)}.", " ".join(filter(None, lead))
    )


def _base(document: Timeline) -> str:
    """Words on which part of the joules is base power, and what is above; "" if power has no two levels."""
    base_j = [mapped(mul, each.base_w, document.duration_s - each.unknown_s) for each in added(document)]
    share = ratio(sum(joules or 0.0 for joules in base_j), document.total_j)
    if None in base_j or not share:
        return ""
    base_w = sum(each.base_w or 0.0 for each in added(document))
    above = quantity((1 - share) * document.total_j, "J")
    return f"; base power, {quantity(base_w, 'W')}, takes {percent(share)} of it and {above} are above"


def _bursts(document: Timeline) -> str:
    """A sentence on the bursts above base power of the component with most joules in them; "" without bursts."""
    component = max(added(document), key=lambda each: sum(burst.energy_j for burst in each.bursts))
    bursts = component.bursts
    if not bursts:
        return ""
    where = when(len(added(document)) > 1, f" of {component.name}")
    largest = max(bursts, key=lambda burst: burst.energy_j)
    span = f"from {quantity(largest.begin_s, 's')} to {quantity(largest.end_s, 's')}: {quantity(largest.energy_j, 'J')}"
    mean = quantity(largest.energy_j / (largest.end_s - largest.begin_s), "W")
    if len(bursts) == 1:
        return f"One burst{where}, {span}, {mean}."
    total = quantity(sum(burst.energy_j for burst in bursts), "J")
    return f"{len(bursts)} bursts{where}, {total} in all; the largest {span}, {mean}."


def _busy(document: Timeline) -> str:
    """A sentence on how long something ran on the GPUs that were sampled; "" if none was."""
    busy = [(each.name, each.busy_s) for each in document.components if each.busy_s is not None]
    if not busy:
        return ""
    mean_s = sum(seconds for _, seconds in busy) / len(busy)
    who = f"{busy[0][0]} was" if len(busy) == 1 else f"{len(busy)} GPUs were"
    least = when(any(each.unknown_s for each in document.components if each.busy_s is not None), "at least ")
    of = f" of {quantity(document.duration_s, 's')}"
    return f"{who} busy for {least}{quantity(mean_s, 's')}{of}{when(len(busy) > 1, ' on average')}."


def _by_cause(document: Timeline) -> str:
    """A sentence on the three causes that take most of the joules that are split by cause; "" without a split."""
    joules = {word: sum(cause.energy_j for cause in same) for word, same in whole_by_word(document).items()}
    total_j = sum(joules.values())
    if not total_j:
        return ""
    largest = sorted(joules, key=lambda word: -joules[word])[:3]
    shares = [f"{percent(joules[word] / total_j)} {cause_label(word)}" for word in largest]
    return f"Of their joules {listed(shares)}." if len(document.splits) > 1 else f"Of it {listed(shares)}."


def whole_by_word(document: Timeline) -> dict[str, list[Cause]]:
    """Cause -> its entries for the whole time, one for each GPU or CPU; the cause with most joules first."""
    whole = (cause for split in document.splits for cause in split.causes if cause.function is None)
    by_word = gathered((cause.word, cause) for cause in whole)
    return dict(sorted(by_word.items(), key=lambda entry: -sum(cause.energy_j for cause in entry[1])))


def cause_label(word: str) -> str:
    """A cause as it stands in a sentence: "constant power", "DRAM"."""
    return _CAUSES.get(word) or COUNTS[word].label


def causes(document: Timeline) -> Table:
    """Table of joules by cause: of all GPUs and CPUs that are split, and of each."""
    total_j = sum(split.metered_j for split in document.splits)
    columns = [Column("cause", "left"), Column("energy"), Column(""), Column("from"), Column("to")]
    gpus = [split.component for split in document.splits if len(document.splits) > 1]
    columns += [Column(gpu, from_width=100) for gpu in gpus]
    lines = []
    for word, same in whole_by_word(document).items():
        unsure = reduce(or_, (bits(cause.marks) for cause in same))
        energy_j, low_j, high_j = (
            sum(getattr(cause, name) for cause in same) for name in ("energy_j", "low_j", "high_j")
        )
        by_gpu = {
            split.component: cause.energy_j
            for split in document.splits
            for cause in split.causes
            if cause.function is None and cause.word == word
        }
        cells: list[Cell] = [cause_label(word), Quantity(energy_j, "J", unsure), Share(ratio(energy_j, total_j))]
        cells += [Quantity(low_j, "J"), Quantity(high_j, "J")]
        lines.append(Row([*cells, *(Quantity(by_gpu.get(gpu, 0.0), "J", unsure) for gpu in gpus)]))
    return Table(columns, lines, title="By cause")


def by_prices(document: Timeline) -> Iterator[Point]:
    """Yield a line on the cost table that splits joules by cause, and how far off its prices are; else none."""
    if not document.splits:
        return
    over = when(all(split.idle_w for split in document.splits), " above the idle power that the log has")
    off = [
        f"{signed_percent(split.modelled_j / split.metered_j - 1)} ({split.component})"
        for split in document.splits
        if split.metered_j
    ]
    with_idle = when(over, "with it ")
    alone = phrase(f"{with_idle}the prices are {{}} off", few(off, 4)) or "the meter saw nothing"
    costs = document.splits[0].costs
    work = when(not all(split.counted for split in document.splits), " Work is taken for active x clock x units.")
    yield Point("Prices", f"{costs}, held to the meter{over}; {alone}.{work}")


def added(document: Timeline) -> list[Component]:
    """The components that are part of no other component, so that their joules add up to the total."""
    return [component for component in document.components if component.part_of is None]


def _largest(document: Timeline) -> list[str]:
    """Up to two texts as "53 % in solve": functions that take most joules, or components, if no function is known."""
    joules = {function.name: total_of(document, function.energy_j) for function in document.functions}
    if joules:
        joules[OUTSIDE] = total_of(document, document.outside_j)
    elif len(document.components) > 1:
        several = added(document)
        if len(several) == 1:
            several = [each for each in document.components if each.part_of is not None]
        several = sorted(several, key=lambda each: each.energy_j)
        while sum(each.energy_j for each in several) > _OVER * document.total_j:
            several.pop()  # a second meter of the whole
        joules = {each.name: each.energy_j for each in several if len(several) > 1}
    known = [(share, name) for name, energy_j in joules.items() if (share := ratio(energy_j, document.total_j))]
    largest = sorted(known, reverse=True)[:2]  # functions or components in the headline
    return [f"{percent(share)} {name if name == OUTSIDE else f'in {name}'}" for share, name in largest]


def _idle(document: Timeline) -> str:
    """A sentence on the share of joules that an idle machine would have taken; "" where not all idle power was seen."""
    idle = [component.idle_w for component in added(document) if component.idle_w is not None]
    share = ratio(sum(idle) * document.duration_s, document.total_j)
    if not share or len(idle) < len(added(document)):
        return ""
    return f"Idle power, {quantity(sum(idle), 'W')}, would take {percent(share)} in that time."


def total_of(document: Timeline, joules: dict[str, float | None]) -> float | None:
    """The sum of `joules` (component -> J) over components that are part of no other; None where none is known."""
    known = [energy_j for component in added(document) if (energy_j := joules[component.name]) is not None]
    return sum(known) if known else None


def by_energy(document: Timeline) -> list[Function]:
    """The functions of a timeline, those that take most joules first."""
    return sorted(document.functions, key=lambda function: -(total_of(document, function.energy_j) or 0.0))


def marks(function: Function, inclusive: bool = False) -> int:
    """The marks of a function's own joules, or `inclusive` of all that it calls, as bits: ESTIMATED, MISSING."""
    estimated = function.inclusive_estimated if inclusive else function.estimated
    return ESTIMATED * estimated | missing(function)


def missing(*entries: Component | Function) -> int:
    """The mark of joules: MISSING (a lower bound) where power is not known all the time, else none (0)."""
    return MISSING * any(entry.unknown_s for entry in entries)


def marks_outside(document: Timeline, *components: Component) -> int:
    """The mark of joules in no function: MISSING, unless functions have all time without known power; else 0."""
    in_functions_s = sum(function.unknown_s for function in document.functions)
    is_inside = len(document.components) == 1 and document.components[0].unknown_s <= (1 + 1e-9) * in_functions_s
    return (not is_inside) * missing(*components)


def blocks(document: Timeline, verbose: bool) -> Iterator[Block]:
    """Yield a timeline's blocks, for a terminal and for Markdown; every function if `verbose`."""
    if document.splits:
        yield causes(document)
    if document.functions:
        yield functions(document, verbose)
    yield components(document)
    yield from by_prices(document)
    yield from trust(document)
    unsure = reduce(
        or_, [missing(*added(document)), *(bits(each.marks) for split in document.splits for each in split.causes)]
    )
    yield Legend(unsure | reduce(or_, map(marks, document.functions), 0))
    yield Notes(document.warnings)


def trust(document: Timeline) -> Iterator[Point]:
    """Yield lines on how long power is unknown, and how sure functions' joules are, by samples and clocks."""
    lost = [each for each in added(document) if each.unknown_s]
    if lost:
        longest = quantity(max(each.unknown_s for each in lost), "s")
        names = few([each.name for each in lost], 2)
        yield Point("Lost", f"The power of {names} is not known for {when(len(lost) > 1, 'up to ')}{longest}.")
    if not document.functions:
        yield Point("Marks", "--marks FILE tells the joules of what ran when: begin_s,end_s,name in CSV, or a trace.")
        return
    slow = [function.name for function in document.functions if function.estimated]
    worst = max(document.components, key=lambda component: component.moved_j_per_ms)
    texts = [f"A clock that is 1 ms off moves at most {quantity(worst.moved_j_per_ms, 'J')} between functions."]
    if slow:
        period = quantity(max(component.new_every_s for component in document.components), "s")
        functions = counted(len(slow), "function")
        texts.append(f"A new value comes every {period}. Shorter than three of them, so ~ estimated: {functions}.")
    yield Point("Trust", " ".join(texts))


def functions(document: Timeline, verbose: bool, by_component: bool = True) -> Table:
    """Table of joules by function, its own by component and with all that it calls; every one if `verbose`."""
    several = [component for component in document.components if by_component and len(document.components) > 1]
    names = [component.name for component in several]
    columns = [
        Column("function", "left"),
        Column("calls"),
        Column("time"),
        Column("energy"),
        Column(""),
        *(Column(name, from_width=100) for name in names),
        Column("above idle", from_width=100),
        Column("with callees"),
        *(Column("most of it", "left") for _ in document.splits[:1]),
    ]
    shown = by_energy(document)
    if not verbose:
        shown = shown[:_SHOWN]
    lines = []
    for function in shown:
        unsure, joules = marks(function), total_of(document, function.energy_j)
        above: Cell = ""
        of_components = [function.above_idle_j[component.name] for component in added(document)]
        if None not in of_components:
            above = Quantity(sum(joules or 0.0 for joules in of_components), "J", unsure)
        row: list[Cell] = [
            Name(function.name, function.name),
            whole(function.calls),
            Quantity(function.time_s, "s"),
            Quantity(joules, "J", unsure),
            Share(ratio(joules, document.total_j)),
            *(Quantity(function.energy_j[name], "J", unsure) for name in names),
            above,
            Quantity(total_of(document, function.inclusive_j), "J", marks(function, inclusive=True)),
            *(_most(document, function.name) for _ in document.splits[:1]),
        ]
        lines.append(Row(row))
    left_out = and_more(len(document.functions) - len(shown), "function")
    outside = total_of(document, document.outside_j)
    unsure = marks_outside(document, *added(document))
    time, energy = Quantity(document.outside_s, "s"), Quantity(outside, "J", unsure)
    cells: list[Cell] = [OUTSIDE, "", time, energy, Share(ratio(outside, document.total_j))]
    cells += [Quantity(document.outside_j[each.name], "J", marks_outside(document, each)) for each in several]
    most = [_most(document, "") for _ in document.splits[:1]]
    lines.append(Row([*cells, "", "", *most], total=True))
    return Table(columns, lines, left_out=left_out)


def _most(document: Timeline, function: str) -> str:
    """The cause that takes most of a function's joules, and its share: "DRAM 35 %"; "" where no joules are split."""
    own = (cause for split in document.splits for cause in split.causes if cause.function == function)
    joules = summed((cause.word, cause.energy_j) for cause in own)
    total_j = sum(joules.values())
    if not total_j:
        return ""
    word = max(joules, key=lambda word: joules[word])
    return f"{cause_label(word).removesuffix(' power')} {percent(joules[word] / total_j)}"


def components(document: Timeline) -> Table:
    """Table of what each meter saw: joules, mean power, idle or base power, how often a new value came."""
    of_idle = everywhere_if(bool(document.functions) or any(each.idle_w is not None for each in document.components))
    of_base = everywhere_if(any(each.base_w is not None for each in document.components))
    return table_of(
        document.components,
        (Column("component", "left"), lambda component: component.name),
        (Column("energy"), lambda component: Quantity(component.energy_j, "J", missing(component))),
        (Column("mean"), lambda component: Quantity(component.mean_w, "W")),
        (Column("idle", media=of_idle), lambda each: mapped(Quantity, each.idle_w, "W") or "not seen"),
        (Column("base", media=of_base), lambda each: mapped(Quantity, each.base_w, "W") or "–"),
        (Column("new value every"), lambda component: Quantity(component.new_every_s, "s")),
        (Column("", "left"), lambda component: phrase("part of {}", component.part_of)),
    )
