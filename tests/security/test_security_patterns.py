"""Every regular expression of eprof takes linear time, whatever a log, a header or a table holds."""

import importlib
import inspect
import pkgutil
import re
import re._parser as parser
import signal
from itertools import product

import pytest

import eprof
from eprof.base.text import pattern

_KIND = type(pattern("x"))
_LENGTH = 30_000  # characters: linear takes a millisecond of the processor, squares a second
_MOST_S = 0.3
_SEARCHES = "search|sub|subn|split|findall|finditer"


def _patterns():
    """Every pattern of a module: {where: (the pattern, whether it is searched for anywhere in a text)}."""
    seen = {}
    for each in pkgutil.walk_packages(eprof.__path__, "eprof."):
        if each.name.endswith("__main__"):
            continue
        module = importlib.import_module(each.name)
        for name, value in vars(module).items():
            if isinstance(value, (_KIND, re.Pattern)):
                searched = re.search(rf"\b{name}\.(?:{_SEARCHES})\(", inspect.getsource(module)) is not None
                seen[id(value)] = (f"{each.name}.{name}", value, searched or seen.get(id(value), (0, 0, False))[2])
    return {where: (value, searched) for where, value, searched in seen.values()}


def _text(parsed):
    """A text that a parsed expression could match: a letter for each of its parts that must be there."""
    for kind, value in parsed:
        match str(kind):
            case "LITERAL":
                yield chr(value)
            case "SUBPATTERN":
                yield from _text(value[3])
            case "ATOMIC_GROUP":
                yield from _text(value)
            case "BRANCH":
                yield from _text(value[1][0])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from _text(value[2])
            case "IN":
                first, what = value[0]
                yield chr(what if str(first) == "LITERAL" else what[0] if str(first) == "RANGE" else ord("x"))
            case "ANY":
                yield "x"


def _attacks(expression):
    """Long texts that nearly match: letters of the expression again and again, alone and behind its beginning."""
    start = "".join(_text(parser.parse(expression.pattern, expression.flags)))
    letters = sorted(set(start[:12]) | set(" a1_("))
    for again in [*letters, *("".join(pair) for pair in product(letters[:3], repeat=2))]:
        places = (0, len(start) // 2, len(start)) if len(again) == 1 else (0,)
        yield from (start[:place] + again * (_LENGTH // len(again)) + "\x01" for place in places)


class TooLong(Exception):
    """More of the processor's time was taken than a linear search can take."""


def _late(*_):
    raise TooLong


def slow_with(expression, is_searched):
    """The beginning of a text with which a pattern takes too long, or None."""
    before = signal.signal(signal.SIGVTALRM, _late)
    attack = None
    try:
        for attack in _attacks(expression):
            subject = attack.encode("latin-1", "replace") if isinstance(expression.pattern, bytes) else attack
            signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_S)
            (expression.search if is_searched else expression.fullmatch)(subject)
    except TooLong:
        return attack[:60]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return None


def _surely_slow_with(*one):
    """The same of three tries: what is slow always is; a virtual machine that stands still counts as time once."""
    for _ in range(3):
        attack = slow_with(*one)
        if attack is None:
            return None
    return attack


# What is given no more than 4,096 characters.
BOUNDED = ("eprof.lab.power.meters._HEADER",)


def test_no_pattern_takes_more_than_linear_time():
    found = {where: _surely_slow_with(*one) for where, one in _patterns().items() if where not in BOUNDED}
    assert len(found) > 100
    assert not {where: text for where, text in found.items() if text is not None}


@pytest.mark.parametrize("bad", [r"\w+__\w+\.", r"[0-9]+\.?[0-9]*x"])
def test_the_attacks_find_what_is_slow(bad):
    assert slow_with(re.compile(bad), False) is not None
