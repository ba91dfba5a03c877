"""The first screen of a report: how many joules, where and why, what to try, how sure. From `eprof.profile/1`."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from eprof.base.known import growth
from eprof.base.known import ratio as divided
from eprof.base.text import bracketed, counted, phrase, when
from eprof.base.vocabulary import CONSTANT, COUNTS, DATA, GROUPS
from eprof.profile import schema
from eprof.show.report import lacking, metered
from eprof.show.report.headline import at_least, contenders
from eprof.show.report.lever import reached
from eprof.show.report.view import View, above_of, time_of
from eprof.show.words import costs as costs_words
from eprof.show.words.badges import ASSUMED, MISSING, SIMULATED, Amount, ratio
from eprof.show.words.blocks import Point, Row, Table, numbers, texts
from eprof.show.words.cells import Cell, Name, Quantity, Share
from eprof.show.words.intervals import in_brackets, known
from eprof.show.words.numbers import NARROW, more_or_less, percent, percent_span, plain, quantity, signed_percent, span

_FEWEST, _MOST = 3, 5
_ENOUGH = 0.9  # of the energy, that the kernels shown take
_STEP = 0.2  # what is tried: a fifth less of something
_LITTLE = 0.03  # of the energy: what saves less is not worth trying
_MOSTLY = 0.3  # of a part, that one kernel has: worth naming it
_WASTED = 1.2  # times the requested bytes, from which on they are the cause
_SHORT_S = 10e-6  # launches that take less than this wait for their start
_WAIT = 100 / 64  # instructions that callgrind takes to last as long as a byte from DRAM: 100 cycles for a line of 64 B
# Instructions for each flop, a vector's once a lane: a[i] = s b[i] + c[i] takes 4 if scalar, 2.5 or less if in vectors.
_SCALAR = 3.0
_MOSTLY_INTEGER = 30.0  # from here on, floating-point arithmetic is not what the function is for
_REQUESTED = ("global_read", "global_write")
_CACHED = ("l1", "l2", "l3", "dram")  # the levels that serve them
_FAMILIES = {count.group: count.family for count in COUNTS.values()}
_INSTRUCTIONS = ("int", "sfu", "other")  # whose names say that they are instructions
_NARROWER = (
    *(("tensor_tf32", "tensor_fp16"), ("tensor_tf32", "tensor_bf16")),
    *(("tensor_fp16", "tensor_fp8"), ("tensor_bf16", "tensor_fp8"), ("tensor_fp8", "tensor_fp4")),
)
_PRICES = {
    "measured": "measured on this {processor}",
    "fitted": "fitted to measured power",
    "published": "published, not measured here",
    "estimated": "of data sheets, for a {processor} that nobody measured (--energy 12J, a meter's, narrows it most)",
}


class Cause(Struct, frozen=True):
    """What takes most of the energy of a kernel: its name in prose, its share, and why it is so much."""

    name: str
    share: float
    why: str = ""
    is_decided: bool = True

    @property
    def text(self) -> str:
        """As in "DRAM 71 %: 4.1 times the bytes requested"."""
        if not self.is_decided:
            return f"undecided{self.name}"
        return f"{self.name} {percent(self.share)}{phrase(': {}', self.why)}"


# -------------------------------------------------------------------------------------------------------- where, why


def where(view: View, most: int = _MOST) -> Table:
    """The first screen's table of kernels, or groups of them, that take most, each with its largest cause in words."""
    entries: Sequence[schema.Kernel | schema.Group] = view.document.groups or view.kernels
    entries = sorted(entries, key=lambda entry: -(view.ranked(entry).value or 0.0))
    shown = entries[: _number_shown(view, entries, most)]
    amounts = [view.ranked(entry) for entry in shown]
    everything = view.ranked(view.document)
    common = _common(amounts)
    unit = {"total": "J", "time": "s"}.get(view.measure, "")
    rows = []
    for entry, amount in zip(shown, amounts, strict=True):
        cells: list[Cell] = [
            Name(_name(view, entry), entry.name, place=view.place_of(entry)),
            Quantity(_shown(view, entry, amount), unit, amount.marks & ~common),
            Share(ratio(amount, everything).value),
            _cause_text(view, entry),
        ]
        rows.append(Row(cells))
    amount_label = {"total": "energy"}.get(view.measure, view.measure)
    why = when(view.has_energy, "largest cause")
    columns = [*texts(_noun(view)), *numbers(amount_label, "share"), *texts(why)]
    return Table(columns, rows, left_out=_left_out(view, entries, len(shown)), headless=True)


def _shown(view: View, entry: schema.Kernel | schema.Group, amount: Amount) -> float | None:
    """What a row shows of an amount: of joules that nothing bounds above, the low end of the interval."""
    if view.measure == "total" and amount.lower and entry.interval_j and entry.interval_j[1] is None:
        return entry.interval_j[0]
    return amount.value


def _noun(view: View) -> str:
    return "group" if view.document.groups else view.nouns.kernel


def _name(view: View, entry: schema.Kernel | schema.Group) -> str:
    if isinstance(entry, schema.Group):
        return entry.name
    label = view.label(entry)
    if view.several_devices and entry.device:
        return f"{label}, {entry.device}"
    return label


def _number_shown(view: View, entries: Sequence[schema.Kernel | schema.Group], most: int) -> int:
    """How many kernels the first screen shows: as many as take nine tenths: three at least, five at most."""
    whole_amount = view.ranked(view.document).value or 0.0
    reached_so_far = 0.0
    for number, entry in enumerate(entries[:most], start=1):
        reached_so_far += view.ranked(entry).value or 0.0
        if number >= _FEWEST and reached_so_far >= _ENOUGH * whole_amount:
            return number
    return most


def _left_out(view: View, entries: Sequence[schema.Kernel | schema.Group], shown: int) -> str:
    rest = entries[shown:]
    if not rest:
        return ""
    more = f"and {counted(len(rest), f'more {_noun(view)}')}"
    share = divided(sum(view.ranked(entry).value or 0.0 for entry in rest), view.ranked(view.document).value)
    return more if share is None else f"{more}, {percent(share)}"


def _common(amounts: Sequence[Amount]) -> int:
    """The marks that all rows of the first screen have, but for MISSING: each lower bound is called one."""
    common = ~MISSING
    for amount in amounts:
        common &= amount.marks
    return common


def _cause_text(view: View, entry: schema.Kernel | schema.Group) -> str:
    largest = cause(view, entry)
    if largest is not None:
        return largest.text
    return when(view.has_energy and above_of(entry).value is None, "unknown")


def cause(view: View, entry: schema.Kernel | schema.Group) -> Cause | None:
    """The largest cause of a kernel's or group's energy, for the first screen; None where no energy is known.

    Constant power is no cause where its time was modelled: it would be an assumption that is handed back.
    """
    parts = {group: amount.value for group, amount in view.groups_of(entry).items() if amount.value}
    everything = view.counted_energy(entry).value
    if not parts or not everything or above_of(entry).value is None:
        return None
    largest, *others = contenders(view, parts)
    share = parts[largest] / everything
    if not others:
        return Cause(view.in_prose(largest), share, _why(view, entry, largest))
    both = when(len(others) == 1, f": {view.in_prose(largest)} or {view.in_prose(others[0])}")
    return Cause(both, share, is_decided=False)


def _why(view: View, entry: schema.Kernel | schema.Group, group: str) -> str:
    """Why a kernel on the first screen takes it, by the group that takes most."""
    if group == CONSTANT:
        return _why_constant(view, entry)
    if _FAMILIES[group] == DATA:
        return _why_bytes(view, entry, group)
    return _why_instructions(view, entry, group)


def _why_constant(view: View, entry: schema.Kernel | schema.Group) -> str:
    """Why a kernel takes constant power: short launches, or how far it is from its roofline."""
    seconds = time_of(entry).value
    if seconds and seconds / entry.launches < _SHORT_S:
        return f"{view.nouns.launches} of {quantity(seconds / entry.launches, 's')}"
    place = view.place_of(entry)
    limits = view.document.limits
    if not limits or place is None:
        return ""
    return phrase("{} of roofline speed", reached(limits.kernels[place], "speed_share"))


def _why_bytes(view: View, entry: schema.Kernel | schema.Group, group: str) -> str:
    """Why a kernel moves bytes: over those requested if more, else what is done with each, else as they are."""
    moved = view.summed(entry, _words_of(entry, group))
    if not moved.value:
        return ""
    requested = view.summed(entry, _REQUESTED) if group in _CACHED else Amount(None)
    if requested.value and not requested.marks & MISSING and moved.value >= _WASTED * requested.value:
        return f"{plain(moved.value / requested.value)} times the bytes requested"
    size = at_least(moved, "B")
    intensity = entry.intensity_flop_per_byte
    if group != "dram" or intensity is None:
        return size
    return f"{size}, {plain(intensity)}{NARROW}flop/B"


def _why_instructions(view: View, entry: schema.Kernel | schema.Group, group: str) -> str:
    """Why a kernel executes instructions: how many; integer and others by the flops that they serve."""
    words = _words_of(entry, group)
    executed = view.summed(entry, words)
    if not executed.value:
        return ""
    flops = view.flops(entry)
    if group in ("int", "other") and flops.value:
        return f"{plain(executed.value / flops.value)} for each flop"
    unit = COUNTS[words[0]].symbol
    return at_least(executed, unit) + when(not unit, " instructions")


def _words_of(entry: schema.Kernel | schema.Group, group: str) -> list[str]:
    """The counts of a cause's group that cost something here; all of it, if nothing does."""
    words = [name for name in entry.counts if COUNTS[name].group == group]
    return [name for name in words if entry.counts[name].energy_j] or words


# ---------------------------------------------------------------------------------------------------------------- try


class Try(Struct, frozen=True):
    """A change, what it saves in words, and which share of the energy that is."""

    act: str
    saves: float
    most: float | None = None
    beside: str = ""

    def text(self, everything: float) -> str:
        """What to try, as in "cut DRAM bytes by 20 %: saves 1.74 mJ (15 % of 11.6 mJ)".

        everything: J that the share is of.
        """
        most = self.saves if self.most is None else self.most
        joules = span(self.saves * everything, most * everything, "J")
        share = percent_span(self.saves, most)
        return f"{self.act}: saves {joules} ({share} of {quantity(everything, 'J')}){self.beside}"


def what_to_try(view: View) -> Point:
    """What to try, the change with the largest believable effect: a fifth less of what takes most, or other clocks."""
    largest = max(_changes(view), key=lambda change: change.saves, default=None)
    texts = [_of_loops(view)]
    if not view.has_energy:
        texts.insert(0, _how_to_price(view))
    if view.has_energy and view.above.value is None and not view.to_meter:
        texts.insert(0, "count what it does, with eprof run: nothing that was counted here has a price")
    if largest is not None and largest.saves >= _LITTLE:
        texts.insert(0, largest.text(view.counted_energy(view.document).value or 0.0))
    return Point("Try", "; ".join(filter(None, texts)) or f"nothing, because {_why_nothing(view)}")


def _how_to_price(view: View) -> str:
    if view.costs is not None:
        return "count what it does, with eprof run: nothing that was counted here has a price"
    if view.nouns.is_of_cpu:
        return "name the processor's prices with --costs (eprof costs lists them), or make them: eprof calibrate --cpu"
    return 'name the GPU, as in --costs "RTX 4090"'


def _why_nothing(view: View) -> str:
    if not any(view.is_certain(group) for group, amount in view.groups.items() if amount.value):
        return "the prices leave every part open"
    return f"{percent(_STEP)} less of any part that the prices tell saves less than {percent(_LITTLE)}"


def _of_loops(view: View) -> str:
    """What to try by the counts of a CPU's largest function: its loops wait for DRAM, or are not vectorised."""
    if not view.nouns.is_of_cpu or not view.kernels:
        return ""
    kernel = max(view.kernels, key=lambda kernel: view.ranked(kernel).value or 0.0)
    executed, flops = view.instructions(kernel).value or 0.0, view.flops(kernel).value or 0.0
    missed = view.summed(kernel, ("dram_read", "dram"))
    name = view.label(kernel)
    if missed.marks & SIMULATED and _WAIT * (missed.value or 0.0) > executed:
        return f"{name} mostly waits for DRAM: work on blocks that stay in the last-level cache"
    if not flops or not _SCALAR <= executed / flops < _MOSTLY_INTEGER:
        return ""
    return f"{name} takes {plain(executed / flops)} instructions for each flop: vectorise its loops (-O3 -march=native)"


def _changes(view: View) -> Iterator[Try]:
    everything = view.counted_energy(view.document).value
    if not everything or view.above.value is None:
        return
    for group, amount in view.groups.items():
        if group != "tensor" and amount.value and view.is_certain(group):
            yield _fewer(view, group, amount.value / everything)
    if view.is_certain("tensor"):
        for wide, narrow in _NARROWER:
            price, narrower = view.charges.get(wide), view.charges.get(narrow)
            joules = view.words[wide].energy.value if wide in view.words else None
            if price is None or narrower is None or not narrower.pj or not joules:
                continue
            saves = joules / everything * (1 - narrower.pj / price.pj)
            names = (COUNTS[word].label.removeprefix("Tensor ") for word in (narrow, wide))
            yield Try(f"use {' for '.join(names)} on tensor cores, if accurate enough", saves)
    yield from _other_clocks(view)


def _fewer(view: View, group: str, share: float) -> Try:
    """What to try: a fifth less of one thing; of DRAM bytes as the what-if has it: time follows the roofline."""
    if group == CONSTANT:
        return Try(f"shorten the run by {percent(_STEP)}{_mostly_in(view, group)}", _STEP * share)
    noun = _counted_things(view, group)
    saves, time = _STEP * share, ""
    for answer in view.document.what_if or ():
        if answer.question == f"{group}=-20%" and answer.change_share is not None and not view.is_modelled:
            saves, time = -answer.change_share, _time_of(answer.time_share)
    return Try(f"cut {noun} by {percent(_STEP)}{_mostly_in(view, group)}", saves, beside=time)


def _counted_things(view: View, group: str) -> str:
    """What to try fewer of: "DRAM bytes", "FP32 operations", "integer instructions"."""
    if _FAMILIES[group] == DATA:
        return f"{view.in_prose(group)} bytes"
    if view.in_prose(group) == "instruction issue":
        return "instructions"
    return view.in_prose(group) if group in _INSTRUCTIONS else f"{GROUPS[group]} operations"


def _time_of(share: float | None) -> str:
    if share is None or abs(share) < _LITTLE:
        return ""
    return f", {more_or_less(share)} time"


def _mostly_in(view: View, group: str) -> str:
    """The kernel that has most of a part, and how slow it is: " (53 % in u_list, now 20 % of roofline speed)"."""
    joules = view.joules_by_kernel(group)
    largest = max(range(len(joules)), key=joules.__getitem__)
    kernel, share = view.kernels[largest], joules[largest] / (sum(joules) or 1.0)
    if share < _MOSTLY:
        return ""
    where = when(len(joules) > 1, f"{percent(share)} in {view.label(kernel)}")
    speed = when(group == CONSTANT, phrase("now {}", _why_constant(view, kernel)))
    return bracketed(", ".join(filter(None, [where, speed])))


def _other_clocks(view: View) -> Iterator[Try]:
    """What to try: the clocks with the lowest energy, if the times behind them were not themselves modelled."""
    clocks = view.document.clocks
    if not clocks or view.is_modelled:
        return
    lowest = clocks.lowest
    here = next((setting for setting in clocks.settings if setting.this), None)
    if here is None or not here.energy_j or lowest.energy_j is None:
        return
    ends = [end or lowest.energy_j for end in lowest.energy_range_j or ()] or [lowest.energy_j]
    saves = [1 - end / here.energy_j for end in reversed(ends)]
    time = growth(lowest.time_s, here.time_s)
    clocks_of = {"core": (lowest.core_mhz, here.core_mhz), "memory": (lowest.memory_mhz, here.memory_mhz)}
    changes = [_other_clock(name, *pair) for name, pair in clocks_of.items() if pair[0] != pair[1]]
    if changes:
        yield Try(" and ".join(changes), saves[0], saves[-1], f"{_time_of(time)}, modelled")


def _other_clock(name: str, now: float, before: float) -> str:
    verb = "lower" if now < before else "raise"
    return f"{verb} the {name} clock to {now:g}{NARROW}MHz (from {before:g})"


# -------------------------------------------------------------------------------------------------------------- trust


def trust(view: View) -> Point:
    """The first screen's trust: what the prices are and how far off, what is missing, and where the time is from."""
    texts = [_verdict(view), *_prices(view), lacking.in_trust(view), *_times(view)]
    return Point("Trust", " ".join(filter(None, texts)))


def _verdict(view: View) -> str:
    """Trust in one word, whether a lower bound, how far off the joules may be: "good (new kernels 8.6 % off)."."""
    if view.costs is None or not view.has_energy:
        return ""
    if view.to_meter is not None:
        return "rough." if view.to_meter.idle_j or metered.is_by_time(view) else "good."
    off = _kernels_off(view, view.costs)
    is_own = view.costs.gpu_match == "own" and not view.is_modelled
    # What a good table says of a part is nothing good of a total that lacks others.
    word = "good" if off and is_own and not lacking.in_trust(view) else "rough"
    if view.energy("total").lower and known(view.interval("total")) is None:
        word += f", a lower bound{lacking.in_headline(view)}"
    return f"{word} ({off or _spread(view) or 'error unknown'})."


def _spread(view: View) -> str:
    total, pair = view.energy("total").value, known(view.interval("total"))
    if not total or pair is None or view.is_modelled:
        return ""
    if pair[1] < total:
        return "the prices make more than the board can draw"
    return f"{signed_percent(pair[0] / total - 1)} to {signed_percent(pair[1] / total - 1)}"


def notes(view: View) -> list[str]:
    """The notes of the first screen: warnings that say more than its lines, not of the prices, or what is missing."""
    above = view.costs.notes if view.costs else view.document.warnings[:1]
    others = [note for note in view.document.warnings if note not in above]
    return [note for note in others if not note.startswith("Not counted here") and "has no price for" not in note]


def _prices(view: View) -> Iterator[str]:
    costs = view.costs
    if costs is None:
        yield from view.document.warnings[:1]
        return
    if view.to_meter is not None:
        yield metered.certainty(view, view.to_meter)
        return
    facts = [_basis(view, costs)]
    if costs.name != costs.basis:
        is_default = costs.setting_from == "the table's default"
        facts = [costs_words.at_setting(costs) + " (its default)" * is_default, *facts]
    if costs.gpu_match == "other":
        whose = f"another {view.nouns.processor}'s, so joules hold if the two are alike"
        facts = [costs_words.of_another(costs, view.nouns), whose]
    yield f"Prices: {', '.join(filter(None, facts))}."
    if costs.gpu_match != "other":
        yield from _range_of(view)


def _basis(view: View, costs: schema.Costs) -> str:
    basis = _PRICES.get(costs.basis or "", "without a stated basis")
    basis = basis.format(processor=view.nouns.processor)
    if costs.gpu_match == "similar":
        return f"of the similar {costs.device.partition(' (')[0]}, {basis}"
    return basis


def _range_of(view: View) -> Iterator[str]:
    interval = view.document.interval_j
    if not interval or not in_brackets(interval.total, "J"):
        return
    holds = "the intervals of the prices"
    if interval.share < 1:
        holds = f"{percent(interval.share)} of the refits"
    elif view.costs and view.costs.interval_is:
        holds = view.costs.interval_is
    if view.energy("total").lower:
        holds += ", and above them what the board can draw: not all was counted"
    yield f"Brackets: {holds}."


def _kernels_off(view: View, costs: schema.Costs) -> str:
    """Trust: the error of a fit on kernels that it had not seen; not where another's prices are taken."""
    if costs.gpu_match != "own":
        return ""
    errors: Mapping[str, float] = (costs.fit or {}).get("error_percent", {})
    error = errors.get("leave_one_benchmark_out")
    if error is None:
        return ""
    return f"new {view.nouns.kernels} {percent(error / 100)} off on average"


def _times(view: View) -> Iterator[str]:
    if view.is_modelled:
        # A count that is not whole, or rests on an assumption, is not exact.
        is_exact = not any(word.value.marks & (MISSING | ASSUMED) for word in view.words.values())
        exact = "exact for the simulator" if is_exact else "simulated"
        yield f"Counts: {exact}. Time: a model."
    elif view.time.marks & SIMULATED:
        yield f"Time: given; how the {view.nouns.kernels} share it is a model."
    elif view.document.time_from:
        yield f"Time: {view.document.time_from}."
