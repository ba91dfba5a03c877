"""What a roofline says, in words and rows of numbers; the page and the terminal say the same."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eprof.words.lever import lever, share_of
from eprof.words.names import short
from eprof.words.numbers import percent, plain, quantity


def label(machine: Mapping[str, Any]) -> str:
    """A machine in a few words: "14 × jetson-tk1 852/924 FP32"."""
    many = f"{machine['number']:g} × " if machine["number"] != 1 else ""
    setting = "" if machine["setting"] == "fixed" else f" {machine['setting']}"
    cap = "" if machine["power_cap_w"] is None else f", {machine['power_cap_w']:g} W"
    return f"{many}{machine['name']}{setting} {machine['precision'].upper()}{cap}"


def verdict(machine: Mapping[str, Any]) -> str:
    """Whether racing to halt is right, and why."""
    balance, half = plain(machine["time_balance"]), plain(machine["effective_energy_balance"])
    if machine["race_to_halt"]:
        return (
            f"{label(machine)}: race to halt. From {half} flop/B on, half of the best flop/J is reached; that is not "
            f"above the time balance, {balance} flop/B, so what is fast enough is also efficient."
        )
    return (
        f"{label(machine)}: racing to halt is not enough. Half of the best flop/J takes {half} flop/B, more than the "
        f"time balance of {balance}: a kernel that is bound by arithmetic in time still pays mostly for bytes."
    )


def match(one: Mapping[str, Any]) -> str:
    """How many make up the other, and who is better where."""
    other, first = _named(one["name"], one["setting"]), _named(one["reference"], one["reference_setting"])
    return (
        f"{one['number']:g} × {other} draw up to {quantity(one['peak_power_w'], 'W')}, {first} "
        f"{quantity(one['reference_peak_power_w'], 'W')} (exactly equal: {one['number_exact']:.4g}). "
        f"Faster: {regions(one['faster'])}. More flop/J: {regions(one['more_efficient'])}."
    )


def _named(name: str, setting: str) -> str:
    return name if setting == "fixed" else f"{name} {setting}"


def regions(found: Sequence[Mapping[str, Any]]) -> str:
    """Who is better where: "gtx680 below 3.76 flop/B (up to 1.07 times), jetson-tk1 from there on"."""
    words = []
    for one in found:
        low, high = one["from"], one["to"]
        where = "everywhere" if low is None and high is None else ""
        if not where:
            where = f"below {plain(high)}" if low is None else f"from {plain(low)}"
            where += f" to {plain(high)} flop/B" if low is not None and high is not None else " flop/B"
        size = "" if not one["winner"] else f" ({_times(one['least'], one['most'])} times)"
        words.append(f"{one['winner'] or 'both the same'} {where}{size}")
    return "; ".join(words)


def _times(least: float, most: float) -> str:
    """How many times: "up to 1.07", "1.08 to 1.30"; a single number where the two read the same."""
    low, high = (f"{one:.2f}" if one < 10 else f"{one:.3g}" for one in (least, most))
    return high if low == high else f"up to {high}" if low == "1.00" else f"{low} to {high}"


def headline(document: Mapping[str, Any]) -> str:
    """The one thing to know: of equal power, of the kernel with most energy, or of the first machine."""
    if document["equal_power"]:
        return match(document["equal_power"][0])
    known = [one for one in document["kernels"] if one["speed_share"] is not None and one["energy_share"] is not None]
    if not known:
        return verdict(document["machines"][0])
    one = known[0]
    return (
        f"{short(one['name'], 40)} takes most energy: {share_of(one, 'speed_share')} of the roofline's speed, "
        f"{share_of(one, 'energy_share')} of the arch line's flop/J; {lever(one)}."
    )


_Machine = Mapping[str, Any]
ROWS: tuple[tuple[str, Callable[[_Machine], str]], ...] = (
    ("peak", lambda m: quantity(m["peak_flop_per_s"], "flop/s")),
    ("DRAM", lambda m: quantity(m["dram_byte_per_s"], "B/s")),
    ("a flop costs", lambda m: f"{m['flop_pj']:.4g} pJ"),
    ("a DRAM byte costs", lambda m: f"{m['dram_pj_per_byte']:.4g} pJ"),
    ("constant power", lambda m: quantity(m["constant_power_w"], "W")),
    ("time balance, flop/B", lambda m: plain(m["time_balance"])),
    ("energy balance, flop/B", lambda m: plain(m["energy_balance"])),
    ("balance gap", lambda m: plain(m["balance_gap"])),
    ("effective energy balance", lambda m: plain(m["effective_energy_balance"])),
    ("eta, flops without π0", lambda m: percent(m["flop_efficiency"])),
    ("best speed", lambda m: quantity(m["best_flop_per_s"], "flop/s")),
    ("best efficiency", lambda m: quantity(m["peak_flop_per_j"], "flop/J")),
    ("highest power", lambda m: quantity(m["peak_power_w"], "W")),
    ("race to halt", lambda m: "yes" if m["race_to_halt"] else "no"),
)


def capped(machine: Mapping[str, Any]) -> str:
    """From which to which flop/B the power cap limits speed."""
    low, high = machine["capped_from"], machine["capped_to"]
    if machine["power_cap_w"] is None or low == high:
        return "nowhere"
    return f"{plain(low)} to {'∞' if high is None else plain(high)}"
