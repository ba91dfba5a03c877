"""Numbers as people read them: three significant digits, SI prefixes, narrow no-break spaces, a real minus.

`reports/report.js` formats the same way, digit for digit (tests/commands/report/test_report_browser.py compares them).
"""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from eprof.base.optional import mapped
from eprof.base.text import by_sign, when

NARROW = "\u202f"
MINUS = "\u2212"
PREFIXES = {-15: "f", -12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
LITTLE = 0.03  # of the energy: what saves less is not worth trying
_THREE = Context(prec=3, rounding=ROUND_HALF_UP)


def digits(value: float) -> tuple[str, int]:
    """Three significant digits and the power of ten of the first: 0.01225 -> ("123", -2). `value` is above 0."""
    rounded = _THREE.create_decimal_from_float(float(value))
    return "".join(map(str, rounded.as_tuple().digits)).ljust(3, "0"), rounded.adjusted()


def grouped(whole: str) -> str:
    """Digits with a narrow space between thousands, from five digits on: "12345" -> "12 345"."""
    if len(whole) < 5:
        return whole
    head = len(whole) % 3 or 3
    return NARROW.join([whole[:head], *(whole[place : place + 3] for place in range(head, len(whole), 3))])


def placed(figures: str, power: int) -> str:
    """Write digits with their decimal point: ("123", 1) -> "12.3"."""
    if power >= 2:
        return grouped(figures + "0" * (power - 2))
    if power >= 0:
        return f"{figures[: power + 1]}.{figures[power + 1 :]}"
    return "0." + "0" * (-power - 1) + figures


def quantity(value: float, unit: str) -> str:
    """A number with its unit and the SI prefix that fits: 0.689, "J" -> "689 mJ". Seconds take no prefix above 1."""
    if value == 0:
        return f"0{NARROW}{unit}".rstrip(NARROW)
    sign = when(value < 0, MINUS)
    if unit in ("", "B", "flop") and float(value).is_integer() and abs(value) < 1000:
        return f"{sign}{int(abs(value))}{NARROW}{unit}".rstrip(NARROW)
    figures, power = digits(abs(value))
    prefix = max(-15, min({"s": 0}.get(unit, 18), 3 * (power // 3)))
    return f"{sign}{placed(figures, power - prefix)}{NARROW}{PREFIXES[prefix]}{unit}".rstrip(NARROW)


def quantity_or(unknown: str, value: float | None, unit: str) -> str:
    """A number with its unit, or `unknown` for None."""
    return mapped(quantity, value, unit) or unknown


def plain(value: float) -> str:
    """A number of three significant digits without a unit, a prefix only if unreadable: 57.4, 0.0123, 1.20 M."""
    if value == 0:
        return "0"
    figures, power = digits(abs(value))
    if not -4 <= power <= 5:
        return quantity(value, "")
    return when(value < 0, MINUS) + placed(figures, power)


def plain_or(unknown: str, value: float | None) -> str:
    """A number as `plain` writes it, or `unknown` for None."""
    return mapped(plain, value) or unknown


def whole(value: float) -> str:
    """A count of things: 4980 -> "4980", 12345 -> "12 345"."""
    return grouped(str(round(value)))


def percent(share: float) -> str:
    """A share in per cent: 0.0861 -> "8.6 %", 0.83 -> "83 %"; near 0 "< 0.1 %", near 1 "> 99.9 %"."""
    size = abs(share) * 100
    sign = when(share < 0, MINUS)
    if size == 0:
        text = "0"
    elif size < 0.05:  # too little for a sign
        sign, text = "", f"<{NARROW}0.1"
    elif 99.95 <= size < 99.999:
        sign, text = "", (f">{NARROW}99.9" if share > 0 else f"<{NARROW}{MINUS}99.9")
    elif size < 9.95 or 99 < size < 99.95:
        text = _fixed(size, "0.1")
    else:
        text = grouped(_fixed(size, "1"))
    return f"{sign}{text}{NARROW}%"


def _fixed(value: float, step: str) -> str:
    return str(Decimal(value).quantize(Decimal(step), rounding=ROUND_HALF_UP))


def signed_percent(share: float) -> str:
    """A relative change in per cent with its sign: 0.031 -> "+3.1 %"."""
    text = percent(_doubled(share))
    return when(share > 0 and not text.startswith("<"), "+") + text


def more_or_less(change: float, less: str = "less", write: Callable[[float], str] = percent) -> str:
    """A change as a number without its sign: -0.06 -> "6.0 % less", 0.1 -> "10 % more".

    less: the word for a count, "fewer".
    """
    return f"{write(abs(_doubled(change)))} {by_sign(change, less, 'more')}"


def _doubled(change: float) -> float:
    """A change, or 1 where it rounds to that: nearly all is not all, but nearly 100 % more is twice as much."""
    return 1.0 if 0.9995 <= change < 1 else change


def and_more(number: int, noun: str) -> str:
    """The text on rows for which a table has no room: "and 12 more kernels"; empty where there are none."""
    return when(number > 0, f"and {whole(number)} more {noun}{when(number != 1, 's')}")


def span(low: float, high: float, unit: str, *, signed: bool = False) -> str:
    """Two numbers, the unit once where both have it: "2.24 to 3.55 J"; signed: "−934 to −302 mJ"."""
    first, last = (when(signed and end > 0, "+") + quantity(end, when(end, unit)) for end in (low, high))
    if first == last:
        return last
    number, _, its_unit = first.partition(NARROW)
    if its_unit == last.partition(NARROW)[2]:
        first = number
    return f"{first} to {last}"


def percent_span(low: float, high: float) -> str:
    """Two numbers, the ends of a share: "13 to 26 %"."""
    first, last = percent(low), percent(high)
    if first == last:
        return last
    return f"{first.removesuffix(f'{NARROW}%')} to {last}"


def utc(stamp: Any) -> str:
    """A time stamp as people write it: "2026-11-21 14:02:11 UTC"; "time not known" without one."""
    return str(stamp or "").replace("T", " ").replace("Z", " UTC") or "time not known"


def error_percent(value: float | None) -> str:
    """An error that is in per cent with the digits that matter: "0.42 %", "4.9 %", "12 %"; None: "unknown"."""
    if value is None:
        return "unknown"
    digits = 0
    if abs(value) < 1:
        digits = 2
    elif abs(value) < 9.95:
        digits = 1
    return f"{value:.{digits}f} %"
