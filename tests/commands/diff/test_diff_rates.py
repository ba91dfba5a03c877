"""Logs of rates alone, whose second is an assumption: power is compared, and never time or joules of a run."""

import re

import pytest
from diff_support import energy, kernel
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.errors import LogError
from eprof.commands.diff import terminal
from eprof.commands.diff.answer import headline
from eprof.commands.diff.compare import compare
from eprof.commands.diff.files import to_markdown
from eprof.commands.diff.page import html
from eprof.counts.times import ONE_SECOND

few = settings(max_examples=15)
# Joules of kernels while they run, W: counts a second.
BUSY, IDLE = kernel(), {word: number / 3 for word, number in kernel().items()}


def lasting(counts, seconds):
    """The counts of a kernel that makes so many a second, over some seconds."""
    return {word: number * seconds for word, number in counts.items()} | {"time": seconds}


def of_rates(kernels, launches):
    """A side whose log tells rates alone: one second, shared by launches."""
    shares = {name: number / sum(launches.values()) for name, number in launches.items()}
    made = {name: lasting(counts, shares[name]) for name, counts in kernels.items()}
    return energy(made, launches=launches, time_from=ONE_SECOND)


def watts(counts):
    return compare([energy({"k": lasting(counts, 1.0)})], [energy({"k": lasting(counts, 1.0)})]).typed.old.compared_j


@few
@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 99), st.floats(1e-6, 1e3))
def test_a_time_against_rates_compares_watts(first, second, other, seconds):
    """Whatever the launches of NEW: each kernel lasts as long as on the side that knows its time."""
    old = energy({"a": lasting(BUSY, seconds), "b": lasting(BUSY, 3 * seconds)}, launches={"a": first, "b": second})
    new = of_rates({"a": BUSY, "b": IDLE}, {"a": other, "b": first})
    document = compare([old], [new]).typed
    expected_w = 0.75 * (watts(IDLE) - watts(BUSY))
    assert document.change_j == pytest.approx(expected_w) and document.a_second == ["NEW"]
    assert document.old.compared_j == pytest.approx(watts(BUSY))
    assert document.speedup is None and document.change_time_s is None and document.old.time_s is None
    turned = compare([new], [old]).typed
    assert turned.change_j == pytest.approx(-expected_w) and turned.a_second == ["OLD"]


def test_rates_of_both_sides_are_told_as_power_of_a_second():
    old = of_rates({"a": BUSY, "b": BUSY}, {"a": 3, "b": 1})
    new = of_rates({"a": BUSY, "b": IDLE}, {"a": 1, "b": 7})
    difference = compare([old], [new], fail_above=["2%"])
    document = difference.typed
    assert document.change_j == pytest.approx(0.25 * (watts(IDLE) - watts(BUSY)))
    assert headline(document).text.startswith("OLD and NEW tell nothing but rates, without a time (--time, ")
    shown = terminal.text(document, verbose=True) + to_markdown(document).decode() + html(document)
    assert not re.search(r"\d [mµk]?J\b|[0-9] launches", re.sub(r"[\u2009\u202f\xa0]", " ", shown)), shown
    assert "fewer" in shown and "a second" in shown and "the same time" not in shown
    assert document.gates[0].failed is None and document.gates[0].why_not
    assert "of both" not in shown and "per launch" not in shown


def test_equal_rates_are_no_change_however_often_they_were_launched():
    sides = [of_rates({"a": BUSY, "b": IDLE}, {"a": number, "b": number}) for number in (1, 1)]
    text = headline(compare(*([side] for side in sides)).typed).text
    assert text.startswith("No change: every rate is the same; both use ") and text.endswith("W, predicted.")


def test_rates_against_counts_without_a_time_are_refused():
    untimed = energy({"k": {word: number for word, number in kernel().items() if word != "time"}})
    with pytest.raises(LogError, match="NEW tells nothing but rates, without a time, and OLD no time of a kernel"):
        compare([untimed], [of_rates({"k": BUSY}, {"k": 1})])
