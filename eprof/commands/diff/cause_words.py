"""Why a difference is there, in words: "4.10 times fewer DRAM bytes, so 496 µs shorter: 91 % of the saving"."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from eprof.base.text import bracketed, by_sign, capital, listed, phrase, uncapital, when
from eprof.base.vocabulary import COUNTS, FLOAT_PARTS, GROUPS, Nouns
from eprof.commands.diff.schema import Cause, Document, Kernel
from eprof.show.numbers import more_or_less, percent, percent_span, plain, quantity

LEVELS = {"shared": "shared memory", "l1": "L1", "l2": "L2", "l3": "L3", "dram": "DRAM", "system": "host memory"}
_PROSE = {"int": "integer instructions", "sfu": "special functions", "tensor": "tensor operations"}
_PROSE |= {group: f"{GROUPS[group]} instructions" for group in FLOAT_PARTS}
_PRICES = {
    "setting": "the other clocks",
    "cost": "the other cost table",
    "meter": "what the meters saw beyond counts and time",
}
_NAMES = {
    **LEVELS,
    **_PRICES,
    "int": "integer",
    "sfu": "special functions",
    "warp_issue": "warp instructions",
    "computation": "computation",
    "data": "data movement",
    "time": "constant power",
    "cpu_time": "CPU time",
    "model": "constant power",
    "appeared": "what only NEW has",
    "vanished": "what only OLD has",
}
ONLY_IN = {"appeared": "NEW", "vanished": "OLD"}
# What is a cause as a whole, the constant power in it too.
_TIMES = ("time", "cpu_time")
_WHOLE = (*_PRICES, "appeared", "vanished", "model", *_TIMES)
# A part this small against the change is not worth words.
_WORTH = 0.1
# From this share on, parts nearly cancel, and a share of what is left says nothing.
CANCELS = 2
_MOST = 3  # causes in a sentence
# From this factor on, "1.5 times fewer" says more than "33 % fewer".
_FACTOR = 1.5
_UNREADABLE = 1000


def sentences(document: Document) -> Iterator[str]:
    """Yield a sentence on what caused a change: the largest cause that the prices tell, else those that may be it."""
    nouns, change_j = document.nouns, document.change_j or 0.0
    verb, whole = "saves", "the increase"
    if change_j < 0:
        verb, whole = "takes back", "the saving"
    along = [cause for cause in document.causes if cause.change_j * change_j > 0]
    if not along:
        yield "Its parts cancel."
        return
    clear = _clear(along)
    if not clear:
        worth = [cause for cause in along if abs(cause.change_j) >= _WORTH * abs(along[0].change_j)][:_MOST]
        cancels = along[0].change_j / change_j > CANCELS
        sizes = [percent(cause.change_j / change_j) for cause in worth]
        if cancels:
            sizes = [quantity(abs(cause.change_j), nouns.joule) for cause in worth]
        parts = [f"{_phrase(cause, nouns)} ({size})" for cause, size in zip(worth, sizes, strict=True)]
        answer = f"{capital(listed(parts, 'or'))}: the prices do not tell which part is the largest"
        if cancels:
            least_j = _WORTH * abs(along[0].change_j)
            against = [cause for cause in document.causes if cause.change_j * change_j < -least_j * abs(change_j)]
            sizes = [quantity(abs(cause.change_j), nouns.joule) for cause in against[:_MOST]]
            backs = [f"{_name(cause.what, nouns)} ({size})" for cause, size in zip(against, sizes, strict=False)]
            answer += phrase("; against it {}", ", ".join(backs))
        yield f"{answer}."
        return
    chosen = _largest(clear)
    answer = f"{_with_times(chosen, nouns)}: {_shares(chosen, change_j, whole, nouns)}"
    # Far more than the change is taken back by what is against it, whether the prices tell how much or not.
    cancels = abs(sum(cause.change_j for cause in chosen)) > CANCELS * abs(change_j)
    against = [cause for cause in document.causes if cause.change_j * change_j < 0 and (cause.is_told or cancels)]
    if against and abs(against[0].change_j) >= _WORTH * abs(change_j):
        answer += f"; {_name(against[0].what, nouns)} {verb} {quantity(abs(against[0].change_j), nouns.joule)}"
    # What would be the largest cause, where the prices do not tell how large it is.
    largest = along[0]
    groups = [step for step in document.steps if largest.what in (step.group, *step.words)]
    ends_j = next((step.interval_j for step in groups if step.interval_j is not None), None)
    if largest not in chosen and not largest.is_told and ends_j is not None:
        share = percent_span(*sorted(end / change_j for end in ends_j))
        answer += f"; {_phrase(largest, nouns)} may be {share} of {whole}, which the prices leave open"
    yield f"{capital(answer)}."


def of_kernel(kernel: Kernel, nouns: Nouns, brief: bool = False) -> str:
    """The cause of a kernel's change: "4.10 times fewer DRAM bytes, so 496 µs shorter"; empty if none is clear.

    brief: the first part only, without the time that follows.
    """
    change = kernel.change_j or 0.0
    if kernel.status != "matched":
        return f"only in {ONLY_IN[kernel.status]}"
    chosen = _largest(_clear([cause for cause in kernel.causes if cause.change_j * change > 0]))
    if brief:
        return "".join(_phrase(cause, nouns) for cause in chosen[:1])
    return _with_times(chosen, nouns)


def _clear(along: Sequence[Cause]) -> Sequence[Cause]:
    """Of causes of one sign, largest first, those whose size the prices tell; or the first if it dwarfs all others."""
    rest_j = sum(abs(cause.change_j) for cause in along[1:])
    if along and rest_j < _WORTH * abs(along[0].change_j):
        return along[:1]
    return [cause for cause in along if cause.is_told]


def _largest(clear: Sequence[Cause]) -> list[Cause]:
    """The first cause; a count that explains no time with the first cause of time behind it, or the reverse."""
    first = clear[:1]
    if not first or (first[0].constant_j and first[0].what not in _TIMES):
        return list(first)
    beside = [cause for cause in clear[1:] if (cause.what in _TIMES) != (first[0].what in _TIMES)]
    worth = [cause for cause in beside if abs(cause.change_j) >= _WORTH * abs(first[0].change_j)]
    return sorted([*first, *worth[:1]], key=lambda cause: cause.what in _TIMES)


def _with_times(causes: Sequence[Cause], nouns: Nouns) -> str:
    """Causes with the time that follows from each: "4.10 times fewer DRAM bytes, so 496 µs shorter and ..."."""
    times = [when(cause.constant_j and cause.what not in _WHOLE, f", so {_time(cause)}") for cause in causes]
    return " and ".join(_phrase(cause, nouns) + time for cause, time in zip(causes, times, strict=True))


def _time(cause: Cause) -> str:
    return f"{quantity(abs(cause.time_s), 's')} {by_sign(cause.time_s, 'shorter', 'longer')}"


def _phrase(cause: Cause, nouns: Nouns) -> str:
    if cause.what in _PRICES:
        return _PRICES[cause.what]
    if cause.unit == "J":  # of two GPUs: energies alone compare
        new, old = (quantity(joules, nouns.joule) for joules in (cause.new, cause.old))
        return f"{new} instead of {old} of {_name(cause.what, nouns)}"
    match cause.what:
        case "cpu_time":
            return f"{quantity(cause.new, 's')} instead of {quantity(cause.old, 's')} of CPU time"
        case "time":
            return f"{_time(cause)} run"
        case "model":
            return f"a modelled time {_time(cause)}, at another efficiency"
        case "launches":
            return f"{_fewer(cause, nouns.launches)} ({cause.old:g} to {cause.new:g})"
        case "appeared" | "vanished":
            number = max(cause.old, cause.new)  # the other side has none
            article = "the" if number == 1 else f"{number:g}"
            return f"{article} {nouns.of(number)} that only {ONLY_IN[cause.what]} has"
    if cause.instead:
        return f"{nouns.group(cause.instead)} instead of {nouns.group(cause.what)}"
    return _fewer(cause, _noun(cause.what, nouns) + nouns.pace) + bracketed(cause.through or "")


def _fewer(cause: Cause, noun: str) -> str:
    """How the count of a cause changed: "4.10 times fewer DRAM bytes", "12 % more integer instructions"."""
    old, new = cause.old, cause.new
    if (new - old) * (cause.change_j - cause.constant_j) < 0 or old == new:
        return f"another mix of {noun}"
    if not old:
        return f"{quantity(new, '')} {noun}, none in OLD"
    if not new:
        return f"none of the {quantity(old, '')} {noun}"
    if max(old / new, new / old) >= _UNREADABLE:
        return f"{quantity(new, '')} instead of {quantity(old, '')} {noun}"
    if old >= _FACTOR * new:
        return f"{plain(old / new)} times fewer {noun}"
    if new >= _FACTOR * old:
        return f"{plain(new / old)} times the {noun}"
    return f"{more_or_less(new / old - 1, 'fewer')} {noun}"


def _shares(causes: Sequence[Cause], change_j: float, whole: str, nouns: Nouns) -> str:
    """The shares of the change that causes have: "DRAM 31 % and constant power 60 % of the saving"."""
    parts: defaultdict[str, float] = defaultdict(float)
    for cause in causes:
        constant_j = cause.constant_j * (cause.what not in _WHOLE)
        parts[_name(cause.what, nouns)] += cause.change_j - constant_j
        parts["constant power"] += constant_j
    shares = {name: joules / change_j for name, joules in parts.items() if joules}
    total = sum(shares.values())
    if total > CANCELS:
        return f"{quantity(abs(total * change_j), nouns.joule)} {by_sign(change_j, 'less', 'more')}"
    if len(shares) < 2:
        return f"{'all' if abs(total - 1) < 5e-4 else percent(total)} of {whole}"
    return f"{listed([f'{name} {percent(share)}' for name, share in shares.items()])} of {whole}"


def _noun(what: str, nouns: Nouns) -> str:
    """The noun of what a cause counts: "DRAM bytes", "integer instructions"."""
    if what in LEVELS:
        return f"{LEVELS[what]} bytes"
    if what in nouns.labels or (what in COUNTS and what not in _PROSE):
        return _name(what, nouns)
    return _PROSE.get(what) or f"{GROUPS[what]} instructions"


def _name(what: str, nouns: Nouns) -> str:
    """The short name of a cause in a sentence: "DRAM", "integer", "constant power"."""
    if what == "launches":
        return nouns.launches
    if what in nouns.labels or what in COUNTS and what not in GROUPS and what not in _NAMES:
        return uncapital(nouns.label(what))
    return _NAMES.get(what) or GROUPS[what]
