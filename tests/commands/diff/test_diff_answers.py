"""What a difference says first, of pairs that were once answered wrongly: made by hand, and real ones."""

from types import SimpleNamespace

import pytest
from conftest import ROOT, SHARED
from diff_support import energy, kernel
from msgspec import UNSET
from msgspec.structs import replace

import eprof
from eprof.commands.diff import answer, schema, terminal, words
from eprof.commands.diff.compare import compare
from eprof.commands.diff.warnings import unlike
from eprof.show.numbers import NARROW

NVPROF, REPRO, ROCPROF = (SHARED / folder for folder in ("nvprof", "repro", "rocprof"))
real = pytest.mark.skipif(not SHARED.is_dir(), reason="needs real logs, which are not part of this project")


def headline(old, new):
    return answer.headline(compare([energy(old)], [energy(new)]).typed).text


def test_energy_is_the_same_though_counts_differ_only_where_a_count_does():
    launches = compare([energy({"k": kernel()})], [energy({"k": kernel()}, launches={"k": 2})]).typed
    assert "he predicted energy is the same: " in answer.headline(launches).text
    unknown = {"k": kernel(control=None)}
    assert "he predicted energy is the same: " in headline({"k": kernel()}, unknown)
    assert "though NEW has 2.00 times the control instructions: " in headline(
        {"k": kernel()}, {"k": kernel(control=2e7)}
    )


def test_a_side_that_counted_nothing_but_time_is_named():
    def timed(seconds):
        return {"k": {"time": seconds}}

    assert "No difference is shown: NEW counted nothing but time, " in headline({"k": kernel()}, timed(0.3))
    assert "No difference is shown: OLD counted nothing but time, " in headline(timed(0.3), {"k": kernel()})
    assert "No difference is shown: nothing but time was counted, and time alone changes" in headline(
        timed(0.3), timed(0.2)
    )


def test_kernels_without_prices_stand_by_how_much_their_time_changed():
    old, new = {"long": {"time": 1.0}, "short": {"time": 0.2}}, {"long": {"time": 1.01}, "short": {"time": 0.1}}
    typed = compare([energy(old, priced=None)], [energy(new, priced=None)]).typed
    assert [each.name for each in typed.kernels] == ["short", "long"]


def test_a_launch_against_a_launch_has_a_cause():
    """Three launches in the place of two, each with twice the DRAM reads: by hand, 2 * 4e9 B * 377 pJ more."""
    old, new = {"k": kernel()}, {"k": {word: 1.5 * number for word, number in kernel(dram_read=8e9).items()}}
    typed = compare([energy(old, launches={"k": 2})], [energy(new, launches={"k": 3})]).typed
    assert typed.per_launch.change_j == pytest.approx(4e9 * 377e-12)
    assert typed.per_launch.causes[0].what == "dram"
    lead = answer.headline(typed).lead
    assert (
        lead.replace("\u202f", " ") == "With as many launches as OLD: 1.80 times the DRAM bytes: all of the increase."
    )
    assert compare([energy(old)], [energy(new)]).typed.per_launch is UNSET


@real
def test_a_launch_against_a_launch_has_an_interval():
    told = eprof.diff(REPRO / "base.csv", REPRO / "intensity-overflow.csv").typed
    low, high = (1 + end for end in told.per_launch.interval_share)
    assert 50 < low < 76.2 < high < 100
    # Each end is that of the whole change, at a tenth of NEW's launches.
    whole = [(1 + end) / 10 for end in told.interval_share]
    assert [low, high] == pytest.approx(whole)
    assert f"76.2 times the energy ({low:.1f} to {high:.1f})" in answer.headline(told).text


@real
def test_launches_of_other_sizes_are_other_work():
    """Grid X of 69 launches: 512 to 1,048,576 blocks of 256 threads; of the one launch 1,048,576."""
    k40c = NVPROF / "k40c-gpu-trace"
    told = eprof.diff(f"{k40c}-many-runs-repeated-headers-prefixed.csv", f"{k40c}-ns-gb-units.csv").typed
    assert "threads in a mean launch 126 M → 268 M (other work?)" in words.unlike(told).replace("\u202f", " ")


def simulated(*names, **more):
    logs = (ROOT / "samples" / "logs" / "simulated" / f"{name}.txt" for name in names)
    return eprof.diff(*logs, **more).typed


def test_trust_says_what_the_simulated_device_does_without():
    gemm = simulated("gemm-naive", "gemm-tiled", costs="jetson-tk1")
    assert "counts simulated (no caches) and time modelled" in words.trust(gemm)
    assert any(note.startswith("Simulated counts have no bank conflicts: ") for note in gemm.warnings)
    unpriced = words.trust(simulated("gemm-tiled", "gemm-naive"))
    assert "counts simulated (" in unpriced and "no caches" in unpriced
    reduce = simulated("reduce-conflicts", "reduce-free", costs="jetson-tk1")
    assert "counts simulated (an address or a division as one instruction) and" in words.trust(reduce)


def test_why_time_alone_is_compared_is_told_by_what_was_counted():
    """Not by what has a price, and of each side by its own kernels, those of the other are no part of it."""
    timed, counts = {"time": 0.35}, {word: number for word, number in kernel().items() if word != "time"}
    alone = headline({"k": timed, "old": timed}, {"k": timed | {"shared_write": 1e6}})
    assert alone.startswith("Of constant power, for OLD counted nothing but time, ")
    assert headline({"k": timed | counts}, {"k": {"time": 0.2}}).startswith(
        "No difference is shown: NEW counted nothing"
    )
    apart = headline({"k": timed | {"l1": 1e6}}, {"k": {"time": 0.2, "l2": 1e6}})
    assert apart.startswith("No difference is shown: nothing but time is known on both sides, ")
    unpriced = headline({"k": timed | {"l1": 1e6}}, {"k": {"time": 0.2, "l1": 2e6}})
    assert unpriced.startswith("Of constant power, for nothing else that both counted has a price, ")
    assert headline({"k": timed}, {"k": {"time": 0.2}}).startswith(
        "No difference is shown: nothing but time was counted, "
    )


def test_equal_counts_without_times_are_no_equal_times():
    counts = {"k": {word: number for word, number in kernel().items() if word != "time"}}
    assert headline(counts, counts).startswith(
        "No change: what both sides count is the same; neither tells a time; both"
    )
    assert headline({"k": kernel()}, {"k": kernel()}).startswith(
        "No change: every count and time is the same; both use"
    )


def test_what_nobody_counted_says_how_to_count():
    document = compare([energy({"k": {}}, device="CC 8.6 (0)")], [energy({"k": {}}, device="CC 8.6 (0)")]).typed
    device = replace(document.old.devices[0], capability="8.6")
    sides = {name: replace(getattr(document, name), devices=[device]) for name in ("old", "new")}
    assert answer.headline(replace(document, **sides)).lead.startswith("Count with ncu --set full ")


def test_without_prices_counts_of_one_side_are_named():
    old, new = {"k": kernel()}, {"k": {"time": 0.35, "integer": 2e8, "l2": 1e6}}
    said = words.trust(compare([energy(old, priced=None)], [energy(new, priced=None)]).typed)
    assert "counted by OLD alone: FP32 multiply-add, FP32 add, " in said and "counted by NEW alone: L2 (" in said
    assert "alone" not in words.trust(compare([energy(old)], [energy(new)]).typed)


@pytest.mark.parametrize(("formats", "is_told"), [(("a", "a"), True), (("a", "b"), False)])
def test_no_copies_are_a_change_only_of_logs_that_tell_them(formats, is_told):
    document = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=1e9)})]).typed
    log = schema.Log("x", "a", "", None)
    old = replace(document.old, copies_s=0.2, inputs=[log])
    new = replace(document.new, inputs=[replace(log, format=formats[1])])
    lead = answer.headline(replace(document, old=old, new=new)).lead
    assert ("copies took 200" in lead) is is_told
    assert "copies took 200" in answer.headline(replace(document, old=old, new=replace(new, copies_s=0.1))).lead


@real
def test_calls_that_a_log_does_not_count_are_no_other_calls():
    """Cachegrind has no calls."""
    home = SHARED / "cpu/simulated"
    cachegrind, callgrind = (home / f"{name}-small-sse2.out.gz" for name in ("cachegrind", "callgrind"))
    for pair in ((cachegrind, callgrind), (callgrind, cachegrind)):
        document = eprof.diff(*pair).typed
        assert "calls" not in words.unlike(document) and not any("another number" in note for note in document.warnings)
    calls = eprof.diff(callgrind, home / "callgrind-gemm512-avx2-wb.out.gz").typed
    assert "calls " in words.unlike(calls)


@pytest.mark.parametrize(
    ("command", "program", "arguments"),
    [
        (r"C:\Users\us\My Projects\GPU Roofline\build\roof line.exe", "roof line.exe", ""),
        (r'"C:\Program Files\x.exe" -n 4', "x.exe", "-n 4"),
        (r"D:\run\x", "x", ""),
        ("./run 'a b'", "run", "'a b'"),
    ],
)
def test_a_path_of_windows_is_one_word(command, program, arguments):
    found = {}
    for place, text in enumerate((command, "./old")):
        priced = energy({"k": kernel()})
        log = SimpleNamespace(
            command=text, tables=(), caches=None, format="x", path=str(place), sha256="", copies_s=0.0
        )
        found[place] = replace(priced, profile=replace(priced.profile, logs=(log,)))
    facts = {fact.what: fact for fact in unlike(compare([found[1]], [found[0]]).changes)}
    assert facts["program"].new == program
    assert (facts["arguments"].new if arguments else "") == arguments


@real
def test_cycles_that_one_side_alone_made_of_its_time_are_no_cause():
    cpu = SHARED / "cpu"
    logs = (cpu / f"perf-text-{name}.txt" for name in ("neoverse-n1-multiplexed", "altra-instruction-mix"))
    found = eprof.diff(*logs).typed
    assert found.causes[0].what == "cpu_time" and not any(cause.what == "core_active" for cause in found.causes)


@real
def test_a_program_that_is_its_only_row_is_named_once():
    runs = SHARED / "cpu/perf-text-neoverse-n1-multiplexed.txt", SHARED / "cpu/perf-text-altra-instruction-mix.txt"
    told = words.unlike(eprof.diff(*runs).typed)
    assert "program bench → false_sharing; arguments of NEW alone: 2 (" in told and "function " not in told


def test_a_changed_count_without_a_price_is_named():
    sides = ({"k": kernel(misc=misc), "l": kernel(misc=4e8)} for misc in (8e8, 1.2e9))
    assert "though NEW has 33 % more moves and barriers (without a price): " in headline(*sides).replace(NARROW, " ")


def test_gates_that_pass_because_time_alone_tells_nothing_say_so():
    sides = ([energy({"k": {"time": seconds}, "l": {"time": seconds}})] for seconds in (0.2, 0.4))
    found = compare(*sides, fail_above=["2%", "time=5%"]).typed
    told = terminal.text(found, width=400).replace(NARROW, " ")
    assert "No difference is shown: nothing but time was counted, and time alone changes on a busy machine" in told
    assert "2 of 2 gates passed, 2 of them because the runs do not tell growth from noise." in told
    twice = compare([energy({"k": {"time": 0.2}})], [energy({"k": {"time": 0.4}}, launches={"k": 2})]).typed
    assert not twice.rests_on_time, "launches are counts"


def test_a_kernel_under_another_name_is_known_by_its_counts():
    """What the names alpha and omega have in common is no reason; equal counts of no other kernel are."""
    other = kernel(integer=1e9)
    old, new = {"alpha": kernel(), "reduce": other}, {"omega_x": kernel(), "reduce": other}
    found = compare([energy(old)], [energy(new)]).typed
    assert [each.match.how for each in found.kernels if each.name == "omega_x"] == ["equal counts"]
    assert found.is_zero and answer.headline(found).text.startswith("No change: every count and time is the same")
    assert words.unlike(found) == "Not the same: kernel alpha → omega_x (the same by counts)."
    by_name = compare([energy(old)], [energy(new)], similar=False).typed
    assert [each.status for each in by_name.kernels if each.name != "reduce"] == ["vanished", "appeared"]
    two = [energy(old | {"gamma": kernel()})], [energy(new | {"psi_y": kernel()})]
    assert {each.match and each.match.how for each in compare(*two).typed.kernels} == {"name", None}, "which is which?"


def test_modelled_times_at_other_clocks_are_not_of_one_log():
    log = ROOT / "samples" / "logs" / "simulated" / "gemm-tiled.txt"
    old, new = (eprof.load(log).energy("jetson-tk1", setting) for setting in ("852/924", "612/528"))
    found = compare([old], [new]).typed
    assert found.old.time_s != found.new.time_s
    assert "time of one log" not in answer.headline(found).lead


def test_a_leftover_of_one_is_next_to_none():
    assert answer.times(1 / 4e6, "fewer") == "next to no"
    assert answer.times(1 / 40, "fewer") == "40.0 times fewer"
