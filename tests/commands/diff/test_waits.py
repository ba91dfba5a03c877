"""Time that neither instructions nor DRAM bytes explain: the memory level that does is named, with its factor."""

from math import sqrt

import pytest
from diff_support import energy, kernel
from msgspec.structs import replace

import eprof
from eprof.commands.diff import answer, likeness
from eprof.commands.diff.compare import compare
from eprof.commands.diff.schema import Unlike
from eprof.show.numbers import NARROW

LINE = 64
CALLGRIND = """# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: ./walk
positions: line
events: Ir Dr Dw D1mr D1mw DLmr DLmw
ob=(1) /walk
fn=(1) main
1 {instructions} 4000000 0 {near} 0 {far} 0
totals: {instructions} 4000000 0 {near} 0 {far} 0
"""


def walk(tmp_path, name, near, far=1000, instructions=10_000_000):
    """A written profile: so many lines that L1 lacks, so many of them that the last cache lacks, too."""
    path = tmp_path / f"callgrind.out.{name}"
    path.write_text(CALLGRIND.format(near=near, far=far, instructions=instructions))
    return path


def walks(tmp_path, seconds, **new):
    """Row-wise with 11,000 lines, of which 1,000 from DRAM, in 10 ms; against another walk."""
    row, other = walk(tmp_path, 1, near=11_000), walk(tmp_path, 2, **new)
    return timed((row, 0.01), (other, seconds))


def timed(*sides):
    """The difference of two profiles, each with the seconds of its run."""
    old, new = (eprof.load(path, time=[f"{seconds}s"]) for path, seconds in sides)
    return eprof.diff(old, new, costs="sapphirerapids").typed


def lead(document):
    return answer.headline(document).lead.replace(NARROW, " ")


def test_lines_from_l3_explain_the_time_of_a_walk_against_the_rows(tmp_path):
    """91,000 lines of which 1,000 from DRAM are 90,000 from L3, 9 times the 10,000 of OLD: 640 kB to 5.76 MB."""
    document = walks(tmp_path, 0.05, near=91_000)
    level = likeness.waited_for(document)
    assert (level.name, level.old, level.new) == ("l3", 10_000 * LINE, 90_000 * LINE)
    assert lead(document).startswith(
        "Likely longer waits for L3: it moves 9.00 times the bytes (640 kB → 5.76 MB). "
        "50.0 ms instead of 10.0 ms of CPU time"
    )


def test_fewer_lines_from_l3_are_shorter_waits(tmp_path):
    said = lead(walks(tmp_path, 0.002, near=1_500))
    assert said.startswith("Likely shorter waits for L3: it moves 20.0 times fewer bytes (640 kB → 32.0 kB).")


def test_all_that_l3_served_is_gone(tmp_path):
    assert "Likely shorter waits for L3: it moves no bytes (640 kB → 0 B)." in lead(walks(tmp_path, 0.002, near=1_000))


def test_lines_from_l3_that_old_had_none_of(tmp_path):
    document = timed((walk(tmp_path, 1, near=1_000), 0.01), (walk(tmp_path, 2, near=11_000), 0.02))
    assert "Likely longer waits for L3: it moves 640 kB, none in OLD." in lead(document)


@pytest.mark.parametrize(
    ("seconds", "new"),
    [
        (0.05, {"near": 99_000, "far": 9_000}),  # DRAM serves 9 times the lines, too
        (0.05, {"near": 91_000, "instructions": 50_000_000}),
        (0.05, {"near": 11_000}),  # nothing explains it
        (0.002, {"near": 91_000}),  # nor what goes the other way
        (0.0105, {"near": 91_000}),  # no change of time to speak of
    ],
)
def test_no_level_is_named_where_another_count_explains_the_time_or_none_does(tmp_path, seconds, new):
    assert "waits for" not in lead(walks(tmp_path, seconds, **new))


@pytest.mark.parametrize("count", ["near", "far", "instructions"])
@pytest.mark.parametrize("beyond", [0.98, 1.02])
def test_what_goes_half_of_the_way_explains_the_time(tmp_path, count, beyond):
    """Of four times the time, twice the count: half of the way in factors."""
    factor = 4**0.5 * beyond
    new = {"near": 91_000, "far": 1_000, "instructions": 10_000_000}
    if count == "near":
        new["near"] = 1_000 + round(10_000 * factor)
    elif count == "far":
        new["far"] = round(1_000 * factor)
    else:
        new["instructions"] = round(10_000_000 * factor)
    is_named = likeness.waited_for(walks(tmp_path, 0.04, **new)) is not None
    assert is_named == ((beyond > 1) == (count == "near"))


def test_a_tenth_more_time_asks_for_a_reason(tmp_path):
    assert likeness.waited_for(walks(tmp_path, 0.0112, near=91_000)) is not None
    assert likeness.waited_for(walks(tmp_path, 0.0108, near=91_000)) is None
    assert likeness.waited_for(walks(tmp_path, 0.0088, near=2_000)) is not None


@pytest.mark.parametrize(
    ("near", "words"),
    [
        (91_000, "though L3 moves 9.00 times the bytes (640 kB → 5.76 MB): "),
        (16_100, "though L3 moves 51 % more bytes (640 kB → 966 kB): "),
        (15_900, "though NEW has 49 % more L3 read bytes: "),
        (7_600, "though L3 moves 34 % fewer bytes (640 kB → 422 kB): "),
        (7_700, "though NEW has 33 % fewer L3 read bytes: "),
    ],
)
def test_energy_without_a_time_is_the_same_though_l3_moves_other_bytes(tmp_path, near, words):
    paths = walk(tmp_path, 1, near=11_000), walk(tmp_path, 2, near=near)
    text = answer.headline(eprof.diff(*paths, costs="sapphirerapids").typed).text.replace(NARROW, " ")
    assert f"predicted energy is the same, {words}" in text


# ----------------------------------------------------------------------------------------------------- kernels of GPUs


def kernels(seconds=0.4, **new):
    """A kernel in 0.1 s with 1 GB of L2 and 20 MB of shared memory; against another."""
    old = kernel(l2_read=8e8, l2_write=2e8, shared_read=1e7, shared_write=1e7, time=0.1)
    return {"k": old}, {"k": old | {"time": seconds} | new}


def told(sides, **more):
    return compare(*([energy(side, **more)] for side in sides)).typed


def test_of_two_levels_that_explain_it_that_with_more_bytes_is_named():
    """L2 moves 4 GB more, 5 times as many; shared memory 380 MB more, 20 times as many."""
    more = {"l2_read": 4e9, "l2_write": 1e9, "shared_read": 2e8, "shared_write": 2e8}
    document = told(kernels(**more))
    level = likeness.waited_for(document)
    assert (level.name, level.old, level.new, level.factor) == ("l2", 1e9, 5e9, 5)
    assert likeness.moved_otherwise(document) == level
    words = lead(document)
    assert "Likely longer waits for L2: it moves 5.00 times the bytes (1.00 GB → 5.00 GB)." in words
    assert words.endswith("NEW moves the same number of DRAM bytes and executes the same number of instructions.")


def test_of_two_levels_that_fall_that_with_more_bytes_is_named():
    """L2 moves 960 MB less, shared memory 19 MB less, both to a part of it."""
    less = {"l2_read": 2e7, "l2_write": 2e7, "shared_read": 5e5, "shared_write": 5e5}
    assert likeness.waited_for(told(kernels(seconds=0.02, **less))).name == "l2"


def test_a_level_whose_reads_and_writes_are_not_told_apart():
    old, new = kernels()
    for side, moved in ((old, 1e9), (new, 4e9)):
        side["k"] = {word: number for word, number in side["k"].items() if not word.startswith("l2")} | {"l2": moved}
    level = likeness.waited_for(told((old, new)))
    assert (level.name, level.old, level.new) == ("l2", 1e9, 4e9)


def test_a_level_is_named_where_a_meter_alone_tells_energy():
    document = told(kernels(l2_read=4e9, l2_write=1e9), priced=None)
    sides = {}
    for name, joules in (("old", 1.0), ("new", 3.0)):
        side = getattr(document, name)
        sides[name] = replace(side, energy_j=replace(side.energy_j, measured=joules))
    text = answer.headline(replace(document, **sides)).text.replace(NARROW, " ")
    assert "measured" in text and "Likely longer waits for L2: it moves 5.00 times the bytes" in text


def test_bytes_of_shared_memory_explain_the_time_of_bank_conflicts():
    level = likeness.waited_for(told(kernels(shared_read=8e7, shared_write=8e7)))
    assert level.name == "shared" and level.factor == 8


def test_a_level_is_named_without_prices_too():
    document = told(kernels(l2_read=4e9, l2_write=1e9), priced=None)
    assert "Likely longer waits for L2: it moves 5.00 times the bytes (1.00 GB → 5.00 GB)." in lead(document)


def test_a_level_that_the_cause_names_is_not_named_again():
    prices = {"shared_read": 3500.0, "shared_write": 3500.0, "dram_read": 377.0, "dram_write": 377.0, "integer": 60.0}
    document = told(kernels(shared_read=8e9, shared_write=8e9), prices=prices)
    assert likeness.waited_for(document) is not None
    assert "shared memory bytes" in lead(document) and "waits for" not in lead(document)


def test_no_level_is_named_where_time_is_no_measure_of_waits():
    sides = kernels(l2_read=4e9, l2_write=1e9)
    measured = told(sides)
    assert likeness.waited_for(measured) is not None
    for what in ("gpu", "clocks"):
        assert likeness.waited_for(replace(measured, unlike=[Unlike(what, "a", "b")])) is None
    assert likeness.waited_for(replace(measured, unlike=[Unlike("arguments", "a", "b")])) is not None
    assert likeness.waited_for(replace(measured, a_second=["OLD", "NEW"])) is None
    assert likeness.waited_for(replace(measured, speedup=None)) is None
    assert likeness.waited_for(replace(measured, above_constant="a model's")) is None


@pytest.mark.parametrize("word", ["dram_read", "l2_write"])
def test_no_level_is_named_where_a_count_is_not_known(word):
    old, new = kernels(l2_read=4e9, l2_write=1e9)
    new["k"][word] = float("nan")
    assert likeness.waited_for(told((old, new))) is None


def test_cycles_tell_waits_before_time_does():
    """Twice the cores: four times the cycles in twice the time."""
    old, new = kernels(seconds=0.2, l2_read=8e8 * 1.8, l2_write=2e8 * 1.8)
    assert sqrt(2) < 1.8 and likeness.waited_for(told((old, new))) is not None
    old["k"]["core_active"], new["k"]["core_active"] = 1e8, 4e8
    assert likeness.waited_for(told((old, new))) is None
