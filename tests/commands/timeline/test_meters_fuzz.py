"""Logs of meters cut, doubled, permuted, merged: the same answer, a sentence, or a mark; and joules against an oracle."""

import random
from pathlib import Path

import cuts
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_meters import READ, joules

from eprof.base.errors import EprofError
from eprof.commands.timeline import document as timeline_document
from eprof.commands.timeline import fusion
from eprof.lab.power import logs as power
from eprof.lab.power import marks
from tests.oracle import timeline as oracle

TEXTS = {what: row for what, row in READ.items() if isinstance(row[0], str)}


def tried(path, text, interval_s):
    """The series of a log and what is said of it; None and the sentence where it is refused."""
    path.unlink(missing_ok=True)  # to write over a file waits for the disk
    path.write_text(text)
    notes = []
    try:
        return power.read(str(path), notes, interval_s), " ".join(notes)
    except EprofError as err:
        assert "\n" not in str(err) and str(err).startswith(str(path))
        return None, str(err)


def watts_of(series):
    """The numbers of each component, rounded: what a cut may not invent."""
    return {each.component: {round(watts, 9) for watts in each.watts.tolist() if watts == watts} for each in series}


@pytest.mark.parametrize("what", TEXTS)
def test_a_log_cut_anywhere_invents_no_number(what, tmp_path):
    text, interval_s, _, _ = TEXTS[what]
    whole, _ = tried(tmp_path / "log", text, interval_s)
    known = watts_of(whole)
    for place in cuts.places(text, last=120 if len(text) < 3000 else 30):
        series, said = tried(tmp_path / "log", text[:place], interval_s)
        if series is None or "no column tells" in said or "was set" in said:
            continue
        for component, watts in watts_of(series).items():
            assert component not in known or watts <= known[component], (text[:place][-40:], said)


@pytest.mark.parametrize("what", TEXTS)
def test_a_log_doubled_gives_the_same_or_says_so(what, tmp_path):
    text, interval_s, _, _ = TEXTS[what]
    if interval_s or "interval" in text or "elapsed" in text or "Joules" in text or " sec" in text:
        return  # without times, twice as long is what it says
    expected = joules(tried(tmp_path / "log", text, None)[0])
    series, said = tried(tmp_path / "log", text + text, None)
    if (
        series is not None
        and not any(each.unknown_s for each in series)
        and "left out" not in said
        and "there twice" not in said
    ):
        assert joules(series) == pytest.approx(expected), said


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("what", ["ms and W", "s and mW", "semicolons", "GPUs by bus", "dmon with dates", "packed"])
def test_rows_in_any_order_give_the_same_or_say_so(what, seed, tmp_path):
    text = READ[what][0] if what != "packed" else "time_s,power_w\n0,1\n1,2\n2,4\n3,8\n4,16\n5,32\n"
    head = 2 if what == "dmon with dates" else 1
    lines = text.splitlines(True)
    body = lines[head:]
    random.Random(seed).shuffle(body)
    expected = joules(tried(tmp_path / "log", text, None)[0])
    series, said = tried(tmp_path / "log", "".join([*lines[:head], *body]), None)
    if (
        series is not None
        and not any(each.unknown_s for each in series)
        and "left out" not in said
        and "there twice" not in said
    ):
        assert joules(series) == pytest.approx(expected), said


def test_two_logs_behind_each_other_are_marked(tmp_path):
    one = "timestamp,power_w\n" + "".join(f"2024-01-01 00:00:{s:02d},10\n" for s in range(10))
    other = one.replace(",10\n", ",70\n")
    series, said = tried(tmp_path / "log", one + other, None)
    assert "10 samples of power do not come later" in said and series[0].unknown_s
    assert joules(series)["power"] <= 100


# ---------------------------------------------------------------------------------------------------------- the oracle

TIMES = st.lists(st.integers(1, 40), min_size=2, max_size=12)
WATTS = st.one_of(st.none(), st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
SPANS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-20, 300), st.integers(1, 200)), min_size=1, max_size=6)
FORMS = {
    "W": ("time_s,cpu_w", lambda time, watts: f"{time / 8},{'' if watts is None else watts}"),
    "mW in cells": ("time_ms,cpu power", lambda time, watts: f"{time * 125},{'N/A' if watts is None else f'{1000 * watts} mW'}"),
    "kW, commas": ("time_s;cpu [kW]", lambda time, watts: f"{time / 8};{'-' if watts is None else f'{watts / 1000:.3f}'}".replace(".", ",")),
    "dmon": ("# time gpu pwr\n# s Idx W", lambda time, watts: f"{time / 8} 0 {'-' if watts is None else watts}"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@given(gaps=TIMES, watts=st.lists(WATTS, min_size=13, max_size=13), spans=SPANS)
@settings(max_examples=60, deadline=None)
def test_joules_of_regions_are_those_of_the_oracle(form, gaps, watts, spans, tmp_path_factory):
    times = np.cumsum([0, *gaps]).tolist()
    samples = list(zip(times, watts, strict=False))
    assume(any(watt is not None for _, watt in samples))
    head, row = FORMS[form]
    home = Path(tmp_path_factory.getbasetemp())
    (home / "p.csv").write_text("\n".join([head, *(row(time, watt) for time, watt in samples)]) + "\n")
    ranges = [(name, begin, begin + length) for name, begin, length in spans]
    (home / "m.csv").write_text("begin_s,end_s,name\n" + "".join(f"{b / 8},{e / 8},{n}\n" for n, b, e in ranges))
    steps = oracle.steps_of_power(samples)
    assume(any(begin < steps[-1][1] and end > 0 for _, begin, end in ranges))
    series = power.read(str(home / "p.csv"), [])
    fused = fusion.fused(series, marks.read(str(home / "m.csv")), fusion.Asked(idle_w=7.0), [])
    made = timeline_document.document(fused, fusion.Asked(idle_w=7.0), "a test")
    own, whole, unknown = oracle.joules(steps, ranges)
    component = made.components[0]
    assert made.total_j == pytest.approx(float(sum(own.values())) / 8)
    assert component.unknown_s == pytest.approx(float(sum(unknown.values())) / 8, abs=1e-9)
    assert made.outside_j[component.name] == pytest.approx(float(own.get(None, 0)) / 8, abs=1e-6)
    assert {function.name for function in made.functions} >= {name for name in own if name}
    for function in made.functions:
        expected = own.get(function.name)
        found = function.energy_j[component.name]
        assert function.unknown_s == pytest.approx(float(unknown.get(function.name, 0)) / 8, abs=1e-6)
        if expected is None:
            assert found is None and function.above_idle_j[component.name] is None
        else:
            assert found == pytest.approx(float(expected) / 8, abs=1e-6)
            known_s = function.time_s - function.unknown_s
            assert function.above_idle_j[component.name] == pytest.approx(float(expected) / 8 - 7 * known_s, abs=1e-6)
        if function.name in whole:
            assert function.inclusive_j[component.name] == pytest.approx(float(whole[function.name]) / 8, abs=1e-6)
