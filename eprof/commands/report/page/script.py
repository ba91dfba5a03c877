"""`Card`, a section of the page with the data of its script; numbers of kernels as compact columns of JSON.

Columns have three figures, more only where the rounding would show.
JSON text is built here and placed in a `<script type="application/json">`, which is never executed; `<` is escaped.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray


class Card(Struct, frozen=True):
    """A section of a report's page: anchor, name in the row of links, heading, template in `reports/`, what goes there.

    `data` goes, as JSON, to the script.
    """

    anchor: str
    link: str
    heading: str
    template: str
    content: Mapping[str, Any]
    data: Mapping[str, str] = field(default_factory=dict)


Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def text(value: Any) -> str:
    """A plain value as packed JSON that is safe between script tags: ASCII only, no `<`. Raises ValueError for NaN."""
    encoded = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter, escape in _ESCAPES.items():
        encoded = encoded.replace(letter, escape)
    return encoded


def joined(entries: dict[str, str]) -> str:
    """A JSON object of values that are JSON already."""
    return "{" + ",".join(f"{text(key)}:{entry}" for key, entry in entries.items()) + "}"


def column(values: Sequence[float | None] | Numbers, price: float | None = None, *, figures: int = 4) -> str:
    """A packed column of numbers: JSON of [figures each, all figures, a letter each for the power of ten, exceptions].

    Written like this, and with zeros for figures that nobody sees, it takes half of what plain numbers would. price:
    what the script multiplies numbers by. That product must read the same too, else the number is an exception and
    stands in full. A letter "!" means: not known. No number is below 0.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not (numbers > 0).any():
        figures = 1
    most, power, exact = _fitting(numbers, figures, price)
    letters = np.where(np.isnan(numbers), ord("!"), power + ord("N")).astype(np.uint8).tobytes().decode("latin-1")
    exceptions = {int(place): float(numbers[place]) for place in np.flatnonzero(~exact & (numbers > 0))}
    all_figures = (most[:, None] // 10 ** np.arange(figures - 1, -1, -1)) % 10 + ord("0")
    return text([figures, all_figures.astype(np.uint8).tobytes().decode("ascii"), letters, exceptions])


def _fitting(numbers: Numbers, figures: int, price: float | None) -> tuple[Integers, Integers, Booleans]:
    """(figures, power of ten, whether these read the same) of each number: three figures if they do, else the nearest.

    Rounded twice, 154.46 would read as 155 (by way of 154.5), hence the neighbours.
    """
    chosen, chosen_power = most, power = _rounded(numbers, figures)
    few, few_power = _rounded(numbers, min(figures, 3))
    done = np.zeros(numbers.shape, dtype=bool)
    candidates = [(most, power), (most - 1, power), (most + 1, power)]
    if figures == 4:
        candidates.insert(0, (few * 10, few_power))
    for whole, exponent in candidates:
        fits = ~done & (whole >= 10 ** (figures - 1)) & (whole < 10**figures)
        fits &= _reads(whole, exponent, figures, numbers, 1.0) & _reads(whole, exponent, figures, numbers, price)
        chosen, chosen_power = np.where(fits, whole, chosen), np.where(fits, exponent, chosen_power)
        done |= fits
    return chosen, chosen_power, done


def _rounded(numbers: Numbers, figures: int) -> tuple[Integers, Integers]:
    """The first figures of each packed number as an integer, and the power of ten of the first; 0 if not above 0."""
    known = numbers > 0
    safe = np.where(known, numbers, 1.0)
    power = np.floor(np.log10(safe))
    whole = np.floor(safe * 10.0 ** (figures - 1 - power) + 0.5)
    power = power + (whole >= 10**figures) - (whole < 10 ** (figures - 1))
    whole = np.floor(safe * 10.0 ** (figures - 1 - power) + 0.5)
    return np.where(known, whole, 0).astype(np.int64), np.where(known, np.clip(power, -40, 40), 0).astype(np.int64)


def _reads(whole: Integers, power: Integers, figures: int, numbers: Numbers, price: float | None) -> Booleans:
    """Whether numbers packed to so many `figures`, times the price, show the same three figures as the full numbers."""
    if not price:
        return np.ones(numbers.shape, dtype=bool)
    product = whole * 10.0 ** (power - figures + 1) * price
    sent, sent_power = _rounded(product, 3)
    true, true_power = _rounded(numbers * price, 3)
    # Half-way between two readings the last bit decides, and the script may multiply in another order.
    tie = np.abs(product * 10.0 ** (2 - sent_power) % 1 - 0.5) < 1e-6
    return np.asarray((sent == true) & (sent_power == true_power) & ~tie)


def flags(values: Sequence[int], matters: Sequence[bool] | None = None) -> str:
    """A packed column of marks: JSON of a list, or of one number where all that matter are the same."""
    seen = {value for place, value in enumerate(values) if matters is None or matters[place]}
    if len(seen) <= 1:
        return str(int(next(iter(seen), 0)))
    return "[" + ",".join([str(int(value)) for value in values]) + "]"


def split(names: Sequence[str]) -> tuple[str, str]:
    """Packed names: JSON of the heads that they share (up to "<"), and of each name's head (its number) and tail."""
    heads: dict[str, int] = {}
    tails: list[int | str] = []
    for name in names:
        head = name[: name.find("<") + 1]
        tails += [heads.setdefault(head, len(heads)), name[len(head) :]]
    return text(list(heads)), text(tails)


def labels(names: Sequence[str], short: Sequence[str]) -> str:
    """Packed short names: JSON, for each the numbers of the template arguments behind it, or else the name itself."""
    packed_labels: list[list[int] | str] = []
    for name, label in zip(names, short, strict=True):
        function, *rest = re.split("[<(]", name.removeprefix("void "), maxsplit=1)
        arguments = "".join(rest).split(", ")
        details = label.removeprefix(function).removeprefix("<").removesuffix(">").split(", ")
        places = [arguments.index(detail) for detail in details if detail in arguments]
        written = ", ".join(arguments[place] for place in places)
        if label == function:
            packed_labels.append([])
        elif label == f"{function}<{written}>":
            packed_labels.append(places)
        else:
            packed_labels.append(label)
    return text(packed_labels)
