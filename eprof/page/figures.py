"""The five figures under the headline."""

from dataclasses import dataclass

from eprof.words.badges import MISSING, Amount
from eprof.words.numbers import NARROW, quantity, signed_percent
from eprof.words.view import DRAM, View, number, ratio


@dataclass(frozen=True)
class Figure:
    """A label, a number in large digits, its unit and note in small ones, and its marks."""

    label: str
    value: str
    note: str = ""
    marks: int = 0

    @property
    def digits(self) -> str:
        """The number without its unit."""
        return self.value.partition(NARROW)[0] if self.known else self.value

    @property
    def unit(self) -> str:
        """The unit without its number."""
        return self.value.partition(NARROW)[2] if self.known else ""

    @property
    def lower(self) -> bool:
        """Whether the number is a lower bound."""
        return self.known and bool(self.marks & MISSING)

    @property
    def signs(self) -> int:
        """The marks that stand raised behind the number; "at least" stands in front of it."""
        return self.marks & ~MISSING if self.known else 0

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return self.value[:1].isdigit() or self.value[:1] in "+−<>"


def figures(view: View) -> list[Figure]:
    """Energy, time, power, energy per flop and the error against the meter; counts where no energy is known."""
    time = _figure("Kernel time", view.time, "s", "", "no time in the logs")
    if not view.has_energy:
        why = "no cost table" if view.costs is None else "no price"
        return [
            Figure("Energy", "not known", why),
            time,
            _figure("Instructions", view.instructions(view.document), "", "", ""),
            _figure("To and from DRAM", view.summed(view.document, DRAM), "B", "", ""),
            _meter(view),
        ]
    return [
        _figure("Energy", view.energy("total"), "J", f"predicted{_within(view)}", ""),
        time,
        _figure(
            "Mean power", _power(view), "W", "", "no time passed" if view.time.value == 0 else "the time is not known"
        ),
        _figure(
            "Energy per flop",
            view.per_flop(view.document),
            "J",
            "",
            "flops not known" if not _flops(view) else "no flops",
        ),
        _meter(view),
    ]


def _within(view: View) -> str:
    """The interval of a fitted table's prices, in words."""
    found = (view.document.get("interval_j") or {}).get("total")
    return f", {quantity(found[0], 'J')} to {quantity(found[1], 'J')}" if found else ""


def _flops(view: View) -> bool:
    return view.flops(view.document).value is not None


def _power(view: View) -> Amount:
    """Mean power; not known where the energy lacks the constant part of kernels without a time."""
    return Amount(None) if view.time.lower else view.power


def _figure(label: str, amount: Amount, unit: str, note: str, why: str) -> Figure:
    if amount.value is None:
        return Figure(label, "not known", why)
    return Figure(label, quantity(amount.value, unit), note, amount.marks)


def _meter(view: View) -> Figure:
    """The signed error, predicted minus measured over measured."""
    measured = number((view.document.get("energy_j") or {}).get("measured"))
    total = view.energy("total")
    if not measured or total.value is None:
        return Figure("Against the meter", "not measured")
    error = ratio(Amount(total.value - measured, total.marks), Amount(measured))
    return Figure(
        "Against the meter", signed_percent(error.value or 0.0), f"({quantity(measured, 'J')} measured)", error.marks
    )
