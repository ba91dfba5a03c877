"""How far a change is known: against both sides compared anew at the prices of every replica."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from diff_support import KERNEL, MISSING, PRICES, SIMULATED, costs, energy, kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eprof.commands.diff import terminal
from eprof.commands.diff.answer import headline
from eprof.commands.diff.compare import compare
from eprof.commands.diff.files import to_markdown
from eprof.commands.diff.page import html
from eprof.commands.diff.words import trust
from eprof.show.intervals import cell, is_certain
from eprof.show.numbers import NARROW, span

few = settings(max_examples=12)
NUMBER = 12


def factors(seed):
    """How wrong each price and constant power are in each replica."""
    rng = np.random.default_rng(seed)
    return [{name: rng.lognormal(0, 0.4) for name in [*PRICES, "watts"]} for _ in range(NUMBER)]


def priced(factor, setting="852/924", name="table", dearer=1.0):
    prices = {word: None if pj is None else pj * dearer * factor.get(word, 1.0) for word, pj in PRICES.items()}
    return costs(prices, watts=6.8 * dearer * factor.get("watts", 1.0), setting=setting, name=name)


def with_replicas(kernels, *, seed=1, setting="852/924", name="table", dearer=1.0, device="GPU", within=1.0, **more):
    """A priced profile whose table has replicas, and the same priced by each of them."""
    drawn = [priced(factor, setting, name, dearer) for factor in factors(seed)]
    table = SimpleNamespace(
        name=name,
        device=device,
        source="us",
        replicas=lambda _: drawn,
        serves=lambda _: True,
        interval_share=0.9,
        within=within,
        constant=SimpleNamespace(is_per_socket=False),
    )
    found = replace(energy(kernels, priced=priced({}, setting, name, dearer), **more), table=table)
    return found, [energy(kernels, priced=refit, **more) for refit in drawn]


def ends(numbers, value):
    low, high = np.percentile(numbers, [5, 95])
    return pytest.approx([min(low, value), max(high, value)], rel=1e-9, abs=1e-12)


def key(part):
    return part.what, part.because, part.kernel


def agrees(old, new, pairs):
    """Every interval against the percentiles of `compare` at the prices of each pair of replicas."""
    document = compare([old[0]], [new[0]]).typed
    refits = [compare([old[1][i]], [new[1][j]]).typed for i, j in pairs]
    assert document.interval_j == ends([refit.change_j for refit in refits], document.change_j)
    assert document.interval_share == ends([refit.change_share for refit in refits], document.change_share)
    for part in document.parts:
        changes = [sum(other.change_j for other in refit.parts if key(other) == key(part)) for refit in refits]
        assert part.interval_j == ends(changes, part.change_j), key(part)
    for step in document.steps:
        same = (step.group, step.because, step.kernels)
        changes = [
            sum(other.change_j for other in refit.steps if (other.group, other.because, other.kernels) == same)
            for refit in refits
        ]
        assert step.interval_j == ends(changes, step.change_j), same
    for one in document.kernels:
        changes = [next(other.change_j for other in refit.kernels if other.name == one.name) for refit in refits]
        assert one.interval_j == ends(changes, one.change_j), one.name
    return document


SAME = [(place, place) for place in range(NUMBER)]
OLD = {"a": kernel(), "b": kernel(dram_read=2e9), "gone": kernel(integer=3e8)}
NEW = {"a": kernel(dram_read=1e9, time=0.2), "b": kernel(dram_read=2.5e9, integer=9e8), "came": kernel(shared_read=1e9)}


def test_one_table_is_paired():
    document = agrees(with_replicas(OLD), with_replicas(NEW), SAME)
    assert document.intervals.paired and document.intervals.replicas == NUMBER and document.intervals.share == 0.9


def test_another_setting_of_one_table_is_paired():
    document = agrees(with_replicas(OLD), with_replicas(NEW, setting="612/924", dearer=0.7), SAME)
    assert document.intervals.paired
    assert {part.because for part in document.parts} == {"counts", "time", "setting"}


def test_two_tables_are_independent():
    kernels = {name: numbers for name, numbers in NEW.items() if name != "came"}
    every = list(itertools.product(range(NUMBER), repeat=2))
    old = {name: numbers for name, numbers in OLD.items() if name != "gone"}
    document = agrees(with_replicas(old), with_replicas(kernels, seed=2, name="other", dearer=0.7), every)
    assert not document.intervals.paired and document.intervals.replicas == NUMBER**2


def test_estimated_prices_of_two_boards_are_independent():
    """One name and source, but each board's prices are off by an error of its own."""
    old, new = with_replicas({"k": kernel()}), with_replicas({"k": kernel()}, seed=2, device="other GPU")
    document = compare([old[0]], [new[0]]).typed
    changes = [compare([before], [after]).typed.change_j for before in old[1] for after in new[1]]
    assert not document.intervals.paired and document.interval_j == ends(changes, document.change_j)


@pytest.mark.parametrize(("old", "new", "both"), [(1.2, 1.4, 1.4), (1.2, 1.0, None), (1.0, 1.4, None)])
def test_what_one_side_alone_was_measured_by_is_not_said_of_each(old, new, both):
    sides = with_replicas({"k": kernel()}, within=old)[0], with_replicas({"k": kernel()}, name="other", within=new)[0]
    document = compare(*([side] for side in sides)).typed
    assert document.intervals.within == both and not trust(document).startswith("Trust: good")
    assert ("nine of ten" in trust(document)) == (both is not None)


@few
@given(st.dictionaries(st.sampled_from(["dram_read", "integer", "time"]), st.floats(0, 1e9), max_size=3))
def test_nothing_that_is_the_same_on_both_sides_is_uncertain(numbers):
    side = with_replicas({"k": kernel(**numbers)})[0]
    document = compare([side], [side]).typed
    assert document.interval_j == [0, 0] and document.interval_share in ([0, 0], None)
    assert all(part.interval_j == [0, 0] for part in document.parts)
    assert document.kernels[0].interval_j == [0, 0]


@few
@given(st.floats(0.1, 10), st.floats(0.1, 10), st.integers(0, 50))
def test_every_interval_holds_its_change(dram, time, seed):
    new = kernel(dram_read=dram * KERNEL["dram_read"], time=time * KERNEL["time"])
    sides = (with_replicas({"k": numbers}, seed=seed)[0] for numbers in (KERNEL, new))
    document = compare(*([side] for side in sides)).typed
    for entry in (document, *document.parts, *document.steps, *document.kernels):
        low, high = entry.interval_j
        assert low <= entry.change_j <= high
    for side in (document.old, document.new):
        low, high = side.interval_j["total"]
        assert low <= side.energy_j.total <= high


def test_a_paired_change_is_surer_than_the_energies():
    """Half of everything is half, whatever the prices are."""
    half = {word: number / 2 for word, number in KERNEL.items()}
    document = compare([with_replicas({"k": KERNEL})[0]], [with_replicas({"k": half})[0]]).typed
    assert document.interval_share == pytest.approx([-0.5, -0.5])
    low, high = document.old.interval_j["total"]
    assert high - low > 0.1 * document.old.energy_j.total


def test_a_lower_bound_has_no_interval():
    """Two simulated lower bounds are compared; where they end nobody knows."""
    marks = {("k", "dram_read"): MISSING | SIMULATED}
    old, new = (with_replicas({"k": kernel(dram_read=1e9 * n)}, marks=marks)[0] for n in (2, 1))
    document = compare([old], [new]).typed
    intervals = {part.what: part.interval_j for part in document.parts}
    assert intervals["dram_read"] is None and intervals["integer"] == [0, 0]
    assert document.interval_j is None and document.kernels[0].interval_j is None


def test_what_one_side_does_not_know_leaves_the_interval_of_the_rest():
    old, new = with_replicas({"k": kernel()})[0], with_replicas({"k": kernel(dram_read=None, integer=9e8)})[0]
    document = compare([old], [new]).typed
    assert document.partial and document.interval_j is not None
    assert document.new.interval_j["total"] is None and document.new.interval_j["computation"] is not None


def test_kinds_of_several_prices_added_up_have_no_interval():
    dearer = {**PRICES, "fp32_fma": 80.0}
    refits = [costs(dearer)] * NUMBER
    table = SimpleNamespace(
        name="table",
        device="GPU",
        source="us",
        replicas=lambda _: refits,
        serves=lambda _: True,
        interval_share=0.9,
        within=1.0,
        constant=SimpleNamespace(is_per_socket=False),
    )
    only_total = kernel(fp32_fma=None, fp32_add=None, fp32_mul=None, fp32_other=None, fp32=1.2e9)
    old, new = (replace(energy({"k": numbers}, dearer), table=table) for numbers in (only_total, kernel()))
    document = compare([old], [new]).typed
    intervals = {part.what: part.interval_j for part in document.parts}
    assert intervals["fp32"] is None and intervals["dram_read"] == [0, 0]
    assert document.interval_j is None


def test_one_side_without_replicas_leaves_no_interval():
    document = compare([with_replicas(OLD)[0]], [energy(NEW)]).typed
    assert document.interval_j is None and document.intervals is None
    assert document.old.interval_j is not None and document.new.interval_j is None


# ------------------------------------------------------------------------------------------------------------ words


def made(interval_j, interval_share, parts, change_j=-1.0):
    """A document of a change with some parts: {group: (change, interval, whether its prices tell)}."""
    document = compare([with_replicas(OLD)[0]], [with_replicas(NEW)[0]]).typed
    step = next(step for step in document.steps if step.group == "dram")
    cause = next(cause for cause in document.causes if cause.what == "dram")
    return replace(
        document,
        change_j=change_j,
        interval_j=interval_j,
        change_share=change_j / 4,
        interval_share=interval_share,
        steps=[
            replace(step, group=group, words=[group], change_j=change, interval_j=ends)
            for group, (change, ends, _) in parts.items()
        ],
        causes=[
            replace(cause, what=group, old=4e9, new=1e9, change_j=change, constant_j=0.0, time_s=0.0, is_told=is_told)
            for group, (change, _, is_told) in parts.items()
        ],
        partial=False,
        marks=[],
    )


def said(document):
    chosen = headline(document)
    return chosen.text.replace(NARROW, " "), chosen.lead.replace(NARROW, " ")


def test_the_headline_carries_the_interval_and_the_next_sentence_the_cause():
    sentence, lead = said(made([-1.2, -0.5], [-0.3, -0.1], {"dram": (-0.9, [-1.1, -0.5], True)}))
    assert sentence.startswith("NEW uses 25 % less energy (10 to 30 %), predicted: 12.4 J → 10.5 J, ")
    assert lead == "4.00 times fewer DRAM bytes: 90 % of the saving."


def test_a_part_that_is_not_told_is_never_the_first_cause():
    parts = {"fp64": (-0.6, [-1.2, 0.0], False), "dram": (-0.4, [-0.5, -0.3], True)}
    sentence, lead = said(made([-1.2, -0.5], [-0.3, -0.1], parts))
    assert lead.startswith("4.00 times fewer DRAM bytes: 40 % of the saving; ") and "FP64" not in sentence
    assert re.search(r"FP64 instructions may be 0 to 120 % of the saving, which the prices leave open\.$", lead)


def test_where_no_part_is_told_each_is_named():
    parts = {"fp64": (-0.6, [-1.2, 0.0], False), "dram": (-0.4, [-0.9, 0.3], False)}
    _, lead = said(made([-1.2, -0.5], [-0.3, -0.1], parts))
    assert lead == (
        "4.00 times fewer FP64 instructions (60 %) or 4.00 times fewer DRAM bytes (40 %): the prices do not tell which "
        "part is the largest."
    )


def test_an_interval_around_zero_says_that_nothing_is_told():
    sentence, _ = said(made([-1.2, 0.5], [-0.3, 0.1], {"dram": (-1.0, [-1.2, 0.5], False)}))
    assert sentence == (
        "The prices do not tell which uses less energy: 12.4 J → 10.5 J is predicted (25 % less, 14 % less time), "
        "−1.20 J to +500 mJ is possible."
    )


def test_prices_that_do_not_tell_are_those_with_wide_intervals():
    """A factor of 1.4 either way, on average: some prices tell, some do not; the rule is that of the intervals."""
    old, new = with_replicas({"k": KERNEL}), with_replicas({"k": {word: n / 2 for word, n in KERNEL.items()}})
    document = compare([old[0]], [new[0]]).typed
    intervals = {step.group: (step.change_j, step.interval_j) for step in document.steps}
    for cause in document.causes:
        if cause.what in ("int", "shared"):
            assert cause.is_told is is_certain(*intervals[cause.what]), cause


def test_every_medium_shows_the_intervals():
    document = compare([with_replicas(OLD)[0]], [with_replicas(NEW)[0]]).typed
    shown = {cell(entry.interval_j, "J", signed=True) for entry in (*document.steps, *document.kernels, document)}
    printed = terminal.text(document, verbose=True, width=140)
    assert all(ends.replace(NARROW, " ") in printed for ends in shown)
    assert "the same prices for both sides" in printed
    assert all(ends in to_markdown(document).decode() for ends in shown)
    page = html(document)
    assert all(ends in page for ends in shown)
    steps = [step for step in document.steps if step.change_j]
    assert page.count('class="wh"') == 3 * (len(steps) + 1)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(2.24, 3.55, "2.24 to 3.55 J"), (0.0, 1.25, "0 to 1.25 J"), (0.51, 2.04, "510 mJ to 2.04 J"), (0, 0, "0")],
)
def test_ends_share_their_unit(low, high, text):
    assert span(low, high, "J").replace(NARROW, " ") == text


@pytest.mark.parametrize(
    ("value", "ends", "told"),
    [(1, [0.8, 1.7], True), (1, [0.1, 1.2], False), (1, [0, 0.5], False), (-1, [-1.2, -0.4], True), (1, None, True)],
)
def test_a_part_is_told_if_its_interval_has_one_sign_and_is_no_wider(value, ends, told):
    assert is_certain(value, ends) is told
