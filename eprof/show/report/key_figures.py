"""The five figures under the headline."""

from eprof.base.text import phrase
from eprof.base.vocabulary import CONSTANT
from eprof.show.page.frame import Figure
from eprof.show.report.view import DRAM, View, power_of
from eprof.show.words.badges import MISSING, Amount
from eprof.show.words.intervals import known, wide
from eprof.show.words.numbers import NARROW, percent, plain, quantity, signed_percent


def figures(view: View) -> list[Figure]:
    """The key figures: energy, time, power, energy per flop, error against the meter; counts without any energy."""
    time = _figure(_time_of(view), view.time, "s", "no time in the logs")
    if not view.has_energy:
        why = "no cost table" if view.costs is None else "no price"
        return [
            Figure("Energy", "not known", why),
            time,
            _figure("Instructions", view.instructions(view.document), ""),
            _figure("To and from DRAM", view.summed(view.document, DRAM), "B"),
            _meter(view),
        ]
    if view.is_modelled:
        return [*_modelled(view), _meter(view)]
    no_power = "no time passed" if view.time.value == 0 else "the time is not known"
    no_flops = "no flops" if view.flops(view.document).value is not None else "flops not known"
    # Energy that lacks the constant part of kernels without a time, over the time of the others, is no power.
    power = Amount(None) if view.time.lower else power_of(view.document)
    energy, ends = view.energy("total"), view.interval("total")
    note = f"{view.total_is}{phrase(', {}', wide(ends, 'J'))}"
    if energy.lower and (pair := known(ends)) is not None:
        # An interval from the low end of prices on, beside "at least", would be below its own number.
        energy, note = (
            Amount(energy.value, energy.marks & ~MISSING),
            f"counted, at most {quantity(pair[1], 'J')} in all",
        )
    if view.is_above:
        constant = _figure("Constant power", view.energy(CONSTANT), "J", note="of the cores in use, assumed")
        above = _figure("Energy above constant power", view.above, "J", note="predicted")
        return [
            above,
            constant,
            time,
            _figure("Energy per flop", view.per_flop(view.document), "J", no_flops),
            _meter(view),
        ]
    return [
        _figure("Energy", energy, "J", note=note),
        time,
        _figure("Mean power", power, "W", no_power),
        _figure("Energy per flop", view.per_flop(view.document), "J", no_flops),
        _meter(view),
    ]


def _modelled(view: View) -> list[Figure]:
    constant, time = view.energy(CONSTANT), view.time
    least_j = view.at_the_roofline(constant.value or 0.0, lambda kernel: kernel.energy_j.constant)
    least_s = view.at_the_roofline(time.value or 0.0, lambda kernel: kernel.time_s)
    modelled = view.document.modelled_time
    slower = percent(modelled.efficiency) if modelled else ""
    note = f"at the roofline's speed; {quantity(constant.value or 0.0, 'J')} at {slower} of it"
    return [
        _figure("Energy above constant power", view.above, "J", note="predicted"),
        _figure("Constant power", Amount(least_j, constant.marks), "J", note=note),
        _figure(_time_of(view), Amount(least_s, time.marks), "s", note="at the roofline's speed"),
    ]


def _time_of(view: View) -> str:
    return f"{view.nouns.kernel.capitalize()} time"


def _figure(label: str, amount: Amount, unit: str, why: str = "", note: str = "") -> Figure:
    if amount.value is None:
        return Figure(label, "not known", why)
    return Figure(label, quantity(amount.value, unit), note, amount.marks)


def _meter(view: View) -> Figure:
    """The key figure of the meter: predicted minus measured over measured; or the factor that made it nothing."""
    if view.to_meter is not None:
        joules = quantity(view.to_meter.metered_j, "J")
        return Figure("Scaled to the meter", f"×{NARROW}{plain(view.to_meter.factor)}", f"({joules} metered)")
    measured, total = view.document.energy_j.measured, view.energy("total")
    if not measured or total.value is None:
        return Figure("Against the meter", "not measured")
    error = signed_percent((total.value - measured) / measured)
    return Figure("Against the meter", error, f"({quantity(measured, 'J')} measured)", total.marks)
