"""What the document of a difference lists: the two sides, counts, tests, kernels; and the rows of the CSV.

Its model says of a change that trades work for traffic: the case, bounds of the greenup, and more.

The old variant does work W (flop) and moves traffic Q (B), the new one f W and Q/m. [T] 3.5; all intensities and
balances are in flop/B.

eta is the flop efficiency eps_flop/(eps_flop + pi0 tau_flop) ([R] II): with eta = 1 every equation here is the one for
pi0 = 0. [T] 3.5.10 prints a greenup's upper bound for case 1 that the model itself exceeds (it lowers m in one place
and raises it in another); the one here follows from [T] eq. 26 with f > 1 and f m I < B_tau, and docs/diff.md shows it.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.errors import CostError
from eprof.base.known import less, ratio
from eprof.base.marks import Mark, names
from eprof.base.nouns import in_document
from eprof.base.text import few
from eprof.base.vocabulary import COUNTS
from eprof.commands.diff.changes import LOWER, TIME, WORDS, Changes, Grid, combined, known_sum
from eprof.commands.diff.changes import Side as Variant
from eprof.commands.diff.parts import MARK_WORDS, Spread, cells, of_side, parts_of
from eprof.commands.diff.schema import (
    Bounds,
    Cause,
    Costs,
    Count,
    Device,
    EnergyByFamily,
    Kernel,
    KernelPart,
    KernelSide,
    Log,
    Match,
    Model,
    Sample,
    Side,
    ToMeter,
)
from eprof.commands.diff.schema import Test as TestResult
from eprof.energy.attribution import FAMILIES
from eprof.lab.welch import Test
from eprof.profile.rooflines import Machine, flops_of, machine, main_precision, traffic_of

if TYPE_CHECKING:
    import pandas as pd


# If fewer of the flops than this are of one width, one balance cannot stand for all.
_ONE_WIDTH = 0.9
# Below this, a factor is 1: the bounds are those of a trade-off, f >= 1 and m >= 1.
_SAME = 1e-9
_SEVERAL_WIDTHS = "the flops are of several widths, and one balance does not stand for all"


class _MissingError(Exception):
    """What the model lacks, in words."""


def reading(old: Variant, new: Variant) -> Model:
    """The model's reading: the change of all kernels together, where work, traffic, peaks and prices are known."""
    try:
        return _reading(old, new)
    except _MissingError as err:
        return Model(case=None, missing=f"The model does not read this change: {err}.")


def _reading(old: Variant, new: Variant) -> Model:
    if old.costs is None or new.costs is None:
        raise _MissingError("no cost table says what a flop and a byte cost")
    if old.costs.name != new.costs.name or old.costs.setting != new.costs.setting:
        raise _MissingError("the two sides are priced differently, and the model compares two programs on one machine")
    tables = [Columns(tuple(WORDS), side.mean.number) for side in (old, new)]
    work = [float(flops_of(table).sum()) for table in tables]
    moved = [float(traffic_of(table).sum()) for table in tables]
    _require("flops", old, new, work)
    _require("DRAM bytes", old, new, moved)

    precision = main_precision(tables[0])
    if precision is None:
        raise _MissingError(_SEVERAL_WIDTHS)
    of_width = [float(np.nansum(flops_of(table, precision))) for table in tables]
    if any(part < _ONE_WIDTH * whole for part, whole in zip(of_width, work, strict=True)):
        raise _MissingError(_SEVERAL_WIDTHS)
    try:
        on = machine(old.costs, precision)
    except CostError as err:
        raise _MissingError(str(err).rstrip(".").partition(": no roofline")[0]) from err

    # All flops count as those of the one width; where there are others, that is an approximation.
    marks = on.marks | _marks(old) | _marks(new)
    if of_width != work:
        marks |= Mark.ESTIMATED
    model = assess((work[0], moved[0]), (work[1], moved[1]), on)
    return replace(model, marks=names(marks))


def _require(quantity: str, old: Variant, new: Variant, amounts: list[float]) -> None:
    """That both sides know an amount that the model reads, and that there is any."""
    for side, amount in zip((old, new), amounts, strict=True):
        if math.isnan(amount):
            raise _MissingError(f"the {quantity} of {side.label} are not known for every {side.nouns.kernel}")
        if amount == 0:
            raise _MissingError(f"{side.label} has no {quantity}")


def _marks(side: Variant) -> Mark:
    """The marks of the counts of flops and DRAM bytes that the model reads."""
    columns = [column for column, word in enumerate(WORDS) if word.startswith(("fp32_", "fp64_", "fp16_", "dram_"))]
    read = [column for column in columns if (side.mean.number[:, column] != 0).any()]
    return Mark(combined(side.mean.counted[:, read]))


def assess(old: tuple[float, float], new: tuple[float, float], machine: Machine) -> Model:
    """Assess a change from one (work in flop, traffic in B) to another; all four are above 0."""
    f = new[0] / old[0]
    m = old[1] / new[1]
    intensity = old[0] / old[1]
    balance = machine.time_balance
    cases = {(True, True): 1, (True, False): 2, (False, False): 3}
    case = cases.get((intensity < balance, f * m * intensity < balance))
    is_tradeoff = f >= 1 - _SAME and m >= 1 - _SAME
    free, constant = (
        _bounds(f, m, intensity, balance, machine.energy_balance, eta, case if is_tradeoff else None)
        for eta in (1.0, machine.flop_efficiency)
    )
    return Model(
        case=case,
        missing=None,
        precision=machine.precision,
        work_factor=f,
        traffic_factor=m,
        old_intensity_flop_per_byte=intensity,
        new_intensity_flop_per_byte=f * m * intensity,
        time_balance=balance,
        energy_balance=machine.energy_balance,
        is_tradeoff=is_tradeoff,
        speedup=max(1.0, balance / intensity) / max(f, balance / (m * intensity)),
        without_constant_power=free,
        with_constant_power=constant,
        marks=names(machine.marks),
    )


def effective_balance(intensity: float, balance: float, energy_balance: float, eta: float) -> float:
    """Bhat(I) = eta B_eps + (1 - eta) max(0, B_tau - I) ([R] II)."""
    return eta * energy_balance + (1 - eta) * max(0.0, balance - intensity)


def _bounds(
    f: float, m: float, intensity: float, balance: float, energy_balance: float, eta: float, case: int | None
) -> Bounds:
    """The greenup ([T] eqs. 16, 26), its bounds in the case ([T] 3.5.4, 3.5.10 to 3.5.12), and the break-even f."""
    before = 1 + effective_balance(intensity, balance, energy_balance, eta) / intensity
    after = f + effective_balance(f * m * intensity, balance, energy_balance, eta) / (m * intensity)
    scaled = eta * energy_balance
    # Cases 1 and 2: I (1 + Bhat(I)/I) over B_tau + eta B_eps.
    edge = intensity * before / (balance + scaled)
    low, high = {
        1: (edge, before / (1 + scaled / balance)),
        2: (balance / (f * intensity) * edge, m * edge),
        3: (before / (f + scaled / intensity), before / (1 + scaled / (m * intensity))),
        None: (None, None),
    }[case]
    return Bounds(before / after, low, high, _break_even(m, intensity, balance, scaled, eta, before))


def _break_even(m: float, intensity: float, balance: float, scaled: float, eta: float, before: float) -> float:
    """The f with f + Bhat(f m I)/(m I) = 1 + Bhat(I)/I: below it the change saves energy ([T] eqs. 17, 27).

    The left side rises with f, at slope 1 where the new variant is compute bound and eta where it is memory bound.
    """
    compute_bound = before - scaled / (m * intensity)
    if compute_bound * m * intensity >= balance:
        return compute_bound
    return (before - (scaled + (1 - eta) * balance) / (m * intensity)) / eta


_NAMES = ("kernel_old", "kernel_new", "status", "match", "score")
_CAUSES = 3
_PART = ("what", "kind", "because", "unit", "old", "new", "old_j", "new_j", "change_j")
_NUMBERS = ("score", "old", "new", "old_j", "new_j", "change_j")


def total_time(half: Grid) -> float | None:
    """The time of all kernels of one side in the document; None unless all are known."""
    total = float(half.number[:, TIME].sum())
    return None if math.isnan(total) else total


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# ------------------------------------------------------------------------------------------------------------ sides


def side_of(variant: Variant, compared_j: float | None) -> Side:
    """One side in the document of a difference. compared_j: its part of the energy that the change is of."""
    profile = variant.first.profile
    time_s = known_sum(variant.mean.number[:, TIME])
    time_marks = names(combined(variant.mean.counted[:, TIME]))
    energy, energy_marks = _energy(variant)
    factors = variant.factors
    to_meter: ToMeter | UnsetType = UNSET
    if factors:
        to_meter = ToMeter(math.fsum(variant.measured) / len(factors), math.fsum(factors) / len(factors))
    return Side(
        title=profile.title,
        name=_name(variant),
        inputs=[
            Log(path=log.path, format=log.format, sha256=log.sha256, command=log.command)
            for repeat in variant.energies
            for log in repeat.profile.logs
        ],
        devices=[
            Device(
                counted.device.name,
                counted.device.index,
                counted.device.capability,
                in_document(counted.definition.processor),
            )
            for counted in profile.counted
        ],
        definition=", ".join(dict.fromkeys(counted.definition.name for counted in profile.counted)),
        costs=_costs(variant),
        repeats=len(variant.energies),
        launches=_finite(math.fsum(kernel.launches for kernel in variant.named)),
        time_s=time_s,
        time_marks=time_marks,
        time_from=variant.first.time_from,
        power_w=None if "missing" in time_marks else ratio(energy.total, time_s),
        energy_j=energy,
        energy_marks=energy_marks,
        compared_j=compared_j,
        marks=energy_marks["total"],
        interval_j=of_side(variant),
        to_meter=to_meter,
    )


def _name(variant: Variant) -> str:
    """What the document calls a side: its run directory or its log, with how many more there are."""
    profile = variant.first.profile
    paths = [log.path for log in profile.logs]
    if profile.priced_as is not None and profile.priced_as.path.suffix == ".json":  # a report that was read back
        paths = [str(profile.priced_as.path)]
    first = profile.run.path.name if profile.run is not None else paths[0].rstrip("/").rpartition("/")[2]
    if len(variant.energies) > 1 or profile.run is not None:
        return few([first] * len(variant.energies), 1)
    return few([first, *paths[1:]], 1)


def _costs(variant: Variant) -> Costs | None:
    costs = variant.costs
    if costs is None:
        return None
    return Costs(
        name=costs.name,
        device=costs.device,
        source=costs.source,
        books=costs.books,
        setting=costs.setting_data,
        setting_from=costs.setting_from,
        constant_power_w=costs.constant_power_w,
        marks=names(costs.marks),
        basis=costs.basis,
        serves=variant.first.table is None or variant.first.profile.is_served_by(variant.first.table),
    )


def _energy(variant: Variant) -> tuple[EnergyByFamily, dict[str, list[str]]]:
    """Energy of a side by family in the document, with marks; the same sums as `eprof.profile/1` has."""
    measured = math.fsum(variant.measured) / len(variant.measured) if variant.measured else None
    if variant.costs is None:
        return EnergyByFamily(measured=measured), {family: ["missing"] for family in (*FAMILIES, "total")}
    columns = {family: [WORDS.index(word) for word in words] for family, words in FAMILIES.items()}
    columns["total"] = list(range(len(WORDS)))
    joules = {family: known_sum(variant.mean.joules[:, places]) for family, places in columns.items()}
    marks = {family: names(combined(variant.mean.marks[:, places])) for family, places in columns.items()}
    return EnergyByFamily(**joules, measured=measured), marks


# ---------------------------------------------------------------------------------------------------- counts, tests


def counts(changes: Changes) -> dict[str, Count]:
    """The counts in the document: every word that a side counted, in total; None where a side lacks some of it."""
    totals = {}
    for column, word in enumerate(COUNTS):
        numbers = [half.number[:, column] for _, half in changes.halves]
        old, new = (None if np.isnan(number).any() else math.fsum(number.tolist()) for number in numbers)
        is_nothing = old == 0 and new == 0
        if is_nothing or (old is None and new is None):
            continue
        # A lower bound of one side keeps a word from being compared.
        is_lower = (changes.old.state[:, column] == LOWER) | (changes.new.state[:, column] == LOWER)
        is_bound = (is_lower & ~changes.compared[:, column]).any()
        totals[word] = Count(
            old=old,
            new=new,
            change=None if is_bound else less(new, old),
            unit=COUNTS[word].unit,
            marks=names(combined(changes.old.counted[:, column] | changes.new.counted[:, column])),
        )
    return totals


def test_of(test: Test | None) -> TestResult | None:
    """Welch's test as the document has it."""
    if test is None:
        return None
    return TestResult(
        change=test.change,
        low=test.low,
        high=test.high,
        p=test.p,
        shown=test.shown,
        old=Sample(mean=test.old_mean, sd=test.old_sd, n=test.old_n),
        new=Sample(mean=test.new_mean, sd=test.new_sd, n=test.new_n),
    )


# ---------------------------------------------------------------------------------------------------------- kernels


def kernels(changes: Changes, spread: Spread | None, causes: Sequence[list[Cause]]) -> list[Kernel]:
    """The kernels in the document, each match, largest change first; without energy, the largest time first.

    causes: those of each match.
    """
    paid = cells(changes)
    kernels = []
    for row, (pair, status) in enumerate(zip(changes.matches, changes.statuses.tolist(), strict=True)):
        rows = slice(row, row + 1)
        name = changes.names(row)[-1]
        parts = parts_of(paid[row], changes, name, status)
        old = _kernel_side(changes, changes.old_side, changes.old, pair.old, row)
        new = _kernel_side(changes, changes.new_side, changes.new, pair.new, row)
        change_j = test = None
        if changes.has_energy:
            change_j = math.fsum(part.change_j for part in parts)
            test = test_of(changes.energy_test(rows))
        speedup = greenup = None
        if old is not None and new is not None:
            speedup = ratio(old.time_s, new.time_s)
            greenup = ratio(old.compared_j, new.compared_j)
        kernel = Kernel(
            name=name,
            status=status,
            match=None if pair.how is None else Match(how=pair.how, score=pair.score),
            old=old,
            new=new,
            change_j=change_j,
            speedup=speedup,
            greenup=greenup,
            partial=bool(changes.uncompared[row].any()),
            marks=MARK_WORDS[changes.marks_of(rows)],
            test=test,
            parts=[KernelPart(*(getattr(part, name) for name in KernelPart.__struct_fields__)) for part in parts],
            causes=causes[row][:_CAUSES],
        )
        kernels.append(kernel)
    if spread is not None:
        ends = spread.of_kernels(np.array([kernel.change_j for kernel in kernels]))
        kernels = [replace(kernel, interval_j=pair) for kernel, pair in zip(kernels, ends, strict=True)]

    def size(kernel: Kernel) -> tuple[float, float]:
        times_s = [side.time_s or 0.0 for side in (kernel.old, kernel.new) if side is not None]
        return abs(kernel.change_j or 0.0), max(times_s)

    return sorted(kernels, key=size, reverse=True)


def _kernel_side(changes: Changes, side: Variant, half: Grid, place: int | None, row: int) -> KernelSide | None:
    if place is None:
        return None
    kernel = side.named[place]
    marks = ["missing"]
    energy_j = None
    if side.costs is not None:
        marks = MARK_WORDS[combined(side.mean.marks[place])]
        energy_j = known_sum(side.mean.joules[place])
    return KernelSide(
        name=kernel.name,
        device=kernel.device,
        launches=kernel.launches,
        time_s=_finite(float(half.number[row, TIME])),
        energy_j=energy_j,
        compared_j=changes.compared_j(half, slice(row, row + 1)) if changes.has_energy else None,
        marks=marks,
    )


# -------------------------------------------------------------------------------------------------------------- CSV


def frame(changes: Changes) -> "pd.DataFrame":
    """The table of a difference: a row a part of every kernel, which kernels, what, because of what, counts and
    joules.

    Words that were counted but have no energy to compare stand there too, without `change_j`.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for row, (pair, paid) in enumerate(zip(changes.matches, cells(changes), strict=True)):
        status = str(changes.statuses[row])
        head = {
            "kernel_old": changes.old_side.name_of(pair.old),
            "kernel_new": changes.new_side.name_of(pair.new),
            "status": status,
            "match": pair.how,
            "score": pair.score,
        }
        parts = parts_of(paid, changes, None, status)
        for part in parts:
            rows.append(head | {key: getattr(part, key) for key in _PART} | {"marks": " ".join(part.marks)})
        words = {part.what for part in parts}
        for column, count in enumerate(COUNTS.values()):
            old, new = changes.old.number[row, column], changes.new.number[row, column]
            is_nothing = (old == 0 and new == 0) or (math.isnan(old) and math.isnan(new))
            if is_nothing or count.name in words:
                continue
            marks = names(int(changes.old.counted[row, column] | changes.new.counted[row, column]))
            counted = {"what": count.name, "kind": count.family, "unit": count.unit, "old": old, "new": new}
            rows.append(head | counted | {"marks": " ".join(marks)})
    # Object columns, because names in logs may hold what is no text to Arrow; numbers become numbers again.
    columns = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in (*_NAMES, *_PART, "marks")}
    return pd.DataFrame(columns).astype(dict.fromkeys(_NUMBERS, "float64"))
