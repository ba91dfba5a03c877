"""Why a difference is there: which cause gets the constant power, what is not the same, and how it is said."""

import math
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from diff_support import PRICES, SIMULATED, costs, energy, kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from likwid_support import csv
from msgspec.structs import replace

import eprof
from eprof.base.vocabulary import nouns_of
from eprof.commands.diff import answer, terminal, words
from eprof.commands.diff.compare import compare
from eprof.commands.diff.files import to_markdown
from eprof.commands.diff.warnings import unlike
from eprof.energy.attribution import given_way
from eprof.energy.time_at_clocks import EXPONENT, SHARE
from eprof.logs.runs import Run
from eprof.show.numbers import NARROW

LOGS = ROOT / "samples" / "logs" / "simulated"
PEAK = 14.784e9  # B/s, of the table in diff_support
BYTES, TIME_S = 5e9, 0.40  # of a kernel that DRAM bounds: its bytes take 0.398 s at 85 % of the peak


def causes(old, new, **more):
    """The causes by what they are, of kernels {name: numbers} or of one."""
    sides = ({"k": side} if "time" in side else side for side in (old, new))
    document = compare(*([energy(kernels, **more)] for kernels in sides)).typed
    return {cause.what: cause for cause in document.causes}


def bound(share, time):
    """A kernel whose bytes are `share` of those of one that DRAM bounds."""
    return kernel(dram_read=share * BYTES, dram_write=0.0, time=time)


def predicted(share):
    """Its time by docs/tune.md: the time of the bytes goes with them, all else stays."""
    memory_s = BYTES / (SHARE * PEAK)
    return (TIME_S**EXPONENT - memory_s**EXPONENT + (share * memory_s) ** EXPONENT) ** (1 / EXPONENT)


def said(document):
    return " ".join(answer.causes_told(document)).replace(NARROW, " ")


def of_one_core(seconds, byte):
    """LIKWID's log of a program that a core of a Xeon 8470 ran, at 2 GHz."""
    cycles = [f"{2e9 * seconds:.0f}"]
    events = [("INSTR_RETIRED_ANY", "FIXC0", ["9000000000"]), ("CPU_CLK_UNHALTED_CORE", "FIXC1", cycles)]
    events += [("CPU_CLK_UNHALTED_REF", "FIXC2", cycles), ("CAS_COUNT_RD", "MBOX0C0", [f"{byte / 64:.0f}"])]
    text = csv("MEM", events, threads=1, seconds=seconds, cpu="Intel(R) Xeon(R) Platinum 8470")
    return text.replace("Skylake SP", "SapphireRapids")


def test_bytes_of_a_core_take_the_time_that_its_path_to_dram_allows(tmp_path, eprof_command):
    """64 GB of 40 GB/s fill 2 s; at the socket's 307 GB/s they would take a tenth of it, and explain little."""
    (tmp_path / "old.csv").write_text(of_one_core(2.0, 64e9))
    (tmp_path / "new.csv").write_text(of_one_core(4.0, 128e9))
    out = " ".join(eprof_command("diff", "old.csv", "new.csv").stdout.split())
    assert "2.00 times the DRAM bytes, so 2.00 s longer" in out.replace(NARROW, " ")


def test_bytes_that_explain_a_measured_time_get_its_constant_power():
    found = causes(bound(1, TIME_S), bound(0.5, predicted(0.5)))
    assert set(found) == {"dram"}
    assert found["dram"].time_s == pytest.approx(predicted(0.5) - TIME_S)
    assert found["dram"].constant_j == pytest.approx(6.8 * (predicted(0.5) - TIME_S))


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_time_that_the_bytes_do_not_explain_is_a_cause_of_its_own(factor):
    found = causes(bound(1, TIME_S), bound(0.5, factor * predicted(0.5)))
    assert found["dram"].constant_j == 0 and found["time"].what == "time"


def test_a_change_of_time_within_the_error_of_the_model_is_explained_by_nothing():
    found = causes(bound(1, TIME_S), bound(0.97, predicted(0.97)))
    assert found["dram"].constant_j == 0 and "time" in found


def test_modelled_time_goes_to_the_roof_that_binds():
    document = eprof.diff(LOGS / "gemm-naive.txt", LOGS / "gemm-tiled.txt", costs="jetson-tk1").typed
    first = document.causes[0]
    steps = {step.group: step.change_j for step in document.steps}
    assert first.what == "dram" and first.change_j == pytest.approx(steps["dram"] + steps["constant"])
    assert said(document) == (
        "14.3 times fewer DRAM bytes, so 532 µs shorter: DRAM 17 % and constant power 85 % of the saving."
    )


def test_prices_of_another_gpu_are_said_to_be():
    gemm = eprof.diff(LOGS / "gemm-naive.txt", LOGS / "gemm-tiled.txt", costs="jetson-tk1").typed
    fmm = LOGS.parent / "invented" / "tk1-fmm-counters.csv"
    assert "not made for this GPU" in words.trust(gemm)
    assert "not made for this GPU" not in words.trust(eprof.diff(fmm, fmm, costs="jetson-tk1").typed)


def test_another_efficiency_is_no_merit_of_the_bytes():
    sides = [
        energy({"k": kernel(time=time)}, time_marks={"k": SIMULATED}, marks={}) for time in (BYTES / PEAK * 4, 0.1)
    ]
    document = compare([sides[0]], [sides[1]]).typed
    assert [cause.what for cause in document.causes] == ["model"]


def test_fewer_launches_of_the_same_kernel():
    old, new = kernel(), {word: number / 2 for word, number in kernel().items()}
    document = compare([energy({"k": old}, launches={"k": 10})], [energy({"k": new}, launches={"k": 5})]).typed
    assert [cause.what for cause in document.causes] == ["launches"]
    assert said(document).startswith(
        "2.00 times fewer launches (10 to 5), so 175 ms shorter: launches 46 % and constant power 54 % of the saving"
    )
    assert answer.headline(document).text.replace(NARROW, " ") == (
        "NEW has 5 launches instead of 10, and per launch uses the same energy and takes the same time. In all: "
        "4.39 J → 2.20 J, 50 % less time."
    )


def test_what_a_launch_takes_is_said_of_the_kernels_that_both_have():
    """Kernels of one side alone are in the sum, not in the change of a launch."""
    half = {word: number / 2 for word, number in kernel().items()}
    sides = (
        energy({"k": kernel(), "gone": kernel(time=1e-3)}, launches={"k": 10, "gone": 1}),
        energy({"k": half}, launches={"k": 5}),
    )
    document = compare(*([side] for side in sides)).typed
    text = answer.headline(document).text.replace(NARROW, " ")
    assert text.startswith(
        "NEW has 5 launches instead of 10 of the kernel in both, and per launch uses the same energy"
    )
    assert ". In all: " in text


def test_few_kernels_of_one_name_are_another_program_and_no_change_of_a_launch():
    """What a library's kernel takes says nothing of two programs; a similar name alone makes no pair to headline."""
    others = ("softmax", "reduce", "gather")
    old = energy({"gemm_32x64": kernel(), **{f"{name}_old": kernel() for name in others}}, launches={"gemm_32x64": 9})
    new = energy({"gemm_32x96": kernel()}, launches={"gemm_32x96": 3})
    document = compare([old], [new]).typed
    assert "launch" not in words.unlike(document) + answer.headline(document).text
    assert "have no kernel in common. OLD has 4 kernels (" in answer.headline(document).text


def test_launches_that_take_longer_each_do_not_explain_the_time():
    """A tenth more launches, each ten times as long: the joules above constant power are theirs, the time is not."""
    old = kernel()
    new = {word: 1.1 * number for word, number in old.items()} | {"time": 11 * old["time"]}
    document = compare([energy({"k": old}, launches={"k": 10})], [energy({"k": new}, launches={"k": 11})]).typed
    by_name = {cause.what: cause for cause in document.causes}
    assert document.causes[0].what == "time"
    assert by_name["launches"].change_j < 0.1 * document.change_j


def test_another_precision_is_one_cause():
    prices = {"fp64_fma": 200.0, "fp32_fma": 58.0}
    old = {"fp64_fma": 1e9, "fp32_fma": 0.0, "time": 1.0}
    new = {"fp64_fma": 0.0, "fp32_fma": 1e9, "time": 1.0}
    document = compare([energy({"k": old}, prices)], [energy({"k": new}, prices)]).typed
    assert [cause.instead for cause in document.causes] == ["fp32"]
    assert said(document) == "FP32 instead of FP64: all of the saving."


def test_other_clocks_are_a_cause_as_a_whole():
    document = compare(
        [energy({"k": kernel()})], [energy({"k": kernel()}, priced=costs(watts=3.0, setting="396/924"))]
    ).typed
    assert said(document) == "The other clocks: all of the saving."
    assert words.unlike(document) == "Not the same: clocks of the prices 852/924 → 396/924 MHz."


def test_of_causes_that_the_prices_do_not_tell_each_is_named():
    document = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=5e9, integer=5e9)})]).typed
    open_ = replace(document, causes=[replace(cause, is_told=False) for cause in document.causes])
    assert said(open_) == (
        "20 % more DRAM bytes (59 %) or 7.14 times the integer instructions (41 %): the prices do not tell which part "
        "is the largest."
    )
    (first, _) = open_.causes
    assert said(replace(open_, causes=[first])).startswith("20 % more DRAM bytes: "), "beside it there is nothing"


def test_one_log_at_other_clocks_has_one_time():
    fmm = LOGS.parent / "invented" / "tk1-fmm-counters.csv", LOGS.parent / "invented" / "tk1-fmm-times.csv"
    log = "+".join(map(str, fmm))
    document = eprof.diff(log, log, costs="jetson-tk1", new_setting="396/924").typed
    lead = answer.headline(document).lead
    assert lead.startswith("The other clocks: ") and "Both have the time of one log" in lead


numbers = st.floats(0, 1e10)
some_kernels = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.fixed_dictionaries({"integer": numbers, "dram_read": numbers, "time": st.floats(0, 2)}),
    min_size=1,
)


@settings(max_examples=30)
@given(some_kernels, some_kernels)
def test_causes_add_up_to_the_change(old, new):
    document = compare([energy(old)], [energy(new)], similar=False).typed
    if document.change_j is None:
        return
    scale = max(1.0, *(abs(part.change_j) for part in document.parts)) if document.parts else 1.0
    assert math.fsum(cause.change_j for cause in document.causes) == pytest.approx(document.change_j, abs=1e-9 * scale)
    for one in document.kernels:
        assert len(one.causes) <= 3
    words.trust(document)
    said(document)


# ------------------------------------------------------------------------------------------------ what is not the same


def ran(command, environment=(), started="2026-11-23T02:00:00Z", sha256="same"):
    """A priced profile of a run directory."""
    manifest = {
        "command": command,
        "started_utc": started,
        "environment": dict(environment),
        "host": {"name": "node1"},
    }
    priced = energy({"k": kernel()}, sha256=sha256)
    return replace(priced, profile=replace(priced.profile, run=Run(Path("x.eprof"), manifest, {})))


def test_other_arguments_are_said_first():
    sides = [ran("python gemm n=64 kernel=a", {"OMP_NUM_THREADS": "4"}), ran("./gemm n=32 kernel=a")]
    facts = unlike(compare([sides[0]], [sides[1]]).changes)
    assert [(fact.what, fact.old, fact.new) for fact in facts] == [
        ("program", "python", "gemm"),
        ("arguments", "gemm n=64", "n=32"),
        ("environment", "OMP_NUM_THREADS=4", ""),
    ]


def test_other_work_of_a_cpu_is_told_without_arguments():
    """A tenth of the flops at the same command line is no saving of a compiler."""
    less = {word: number / 10 for word, number in kernel().items()}
    document = compare([energy({"k": kernel()})], [energy({"k": less})]).typed
    of_cpu = replace(document, **{name: on_cpu(getattr(document, name)) for name in ("old", "new")})
    for told in (of_cpu, document):
        text = answer.headline(told).text.replace(NARROW, " ")
        assert text.startswith("NEW does 10 % of the flops. NEW uses 90 % less energy") and not words.unlike(told)
        assert text.endswith("Per flop it uses the same energy.")
    fewer = compare([energy({"k": kernel()})], [energy({"k": less | {"dram_read": 4e9, "dram_write": 1e9}})]).typed
    assert "flops" not in answer.headline(fewer).text, "a GPU's division is many flops, and a compiler saves them"


def test_functions_of_a_cpu_that_a_compiler_joined_are_compared_together():
    """What moved into its caller is no saving of its own: the counts of all functions together are."""
    old = energy({"main": kernel(), "triad": kernel(integer=7e9)})
    new = energy({"main": kernel(**{word: 2 * number for word, number in kernel().items()})})
    cpu = [replace(side, counts=replace(side.counts, nouns=nouns_of("cpu"))) for side in (old, new)]
    document = compare(*([side] for side in cpu)).typed
    assert [cause.what for cause in document.causes if abs(cause.change_j) > 1e-12] == ["int"]
    assert {part.kernel for part in document.parts} == {None} and document.kernels[0].status != "appeared"
    assert any("A compiler may have moved their work" in text for text in document.warnings)
    assert {cause.what for cause in compare([old], [new]).typed.causes} >= {"vanished"}


def on_cpu(side):
    return replace(side, devices=[replace(device, processor="cpu") for device in side.devices])


def test_separate_runs_that_count_alike_are_not_the_same_logs():
    first, second = ran("./app"), ran("./app", started="2026-11-23T03:00:00Z")
    apart, same = compare([first], [second]), compare([first], [first])
    assert apart.typed.is_zero and not apart.typed.same_inputs and same.typed.same_inputs
    assert not any("same logs" in text for text in apart.typed.warnings)


# ------------------------------------------------------------------------------------------------- room on the screen


def crowded():
    """Repeats that differ in everything, of many kernels with long names, with gates."""
    names = [f"void cutlass::Kernel<{'Gemm, ' * 20}{n}>(Params)" for n in range(300)]
    olds = [energy({name: kernel(time=0.3 + n / 1e3) for name in names}, title="o" * 90) for n in range(3)]
    news = [
        energy(
            {name: kernel(dram_read=1e9, time=0.2 + n / 1e3, integer=None) for name in names},
            launches=dict.fromkeys(names, 7),
            device="Another GPU (0)",
            title="n" * 90,
            priced=costs(watts=5.0, name="other", setting="396/924"),
        )
        for n in range(3)
    ]
    return compare(olds, news, fail_above=["2%", "time=5%", "*:10%"]).typed


def test_the_terminal_takes_fifteen_lines_and_eighty_columns():
    lines = terminal.text(crowded(), width=80).splitlines()
    assert len(lines) <= 15, "\n".join(lines)
    assert max(map(len, lines)) <= 80


def test_a_comment_on_a_pull_request_has_room_for_any_difference():
    assert len(to_markdown(crowded()).decode()) < 65_536


def test_parts_that_nearly_cancel_are_told_in_joules():
    """Half the bytes of DRAM, and nearly as many joules more of integers: "980 % of the saving" would say nothing."""
    half_j = 377e-12 * kernel()["dram_read"] / 2
    more = kernel(dram_read=kernel()["dram_read"] / 2, integer=kernel()["integer"] + 0.9 * half_j / 60e-12)
    document = compare([energy({"k": kernel()})], [energy({"k": more})]).typed
    assert document.change_j == pytest.approx(-0.1 * half_j)
    assert "times fewer DRAM bytes: " in said(document) and "% of the saving" not in said(document)
    [bars] = [line for line in terminal.text(document).splitlines() if "█" in line]
    assert "DRAM █" in bars and bars.count("J") >= 2 and "%" not in bars


def test_a_report_that_was_read_back_is_called_by_its_name(tmp_path):
    import json

    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(eprof.load(LOGS / "gemm-tiled.txt").energy("jetson-tk1").document()))
    assert eprof.diff(path, LOGS / "gemm-naive.txt", costs="jetson-tk1").typed.old.name == "baseline.json"


def held(share, **changed):
    """A priced kernel of which a power limit leaves this share of all but constant energy."""
    made = energy({"k": kernel(**changed)})
    return replace(made, split=given_way(made.split, np.array([share])))


def test_a_power_limit_is_a_change_of_price_with_its_own_reason():
    """FP32 1.3e9 x 58 pJ, integer 7e8 x 60 pJ, shared 3e8 x 35 pJ and DRAM 5e9 x 377 pJ: 2.0129 J, of which half."""
    sides = [held(1.0)], [held(0.5, time=0.175)]
    for (old, new), sign in ((sides, 1), (sides[::-1], -1)):
        found = compare(old, new, fail_above=["2%", "fp32=2%"]).typed
        sums = {step.because: step.change_j for step in found.steps if step.change_j}
        assert sums == pytest.approx({"limit": -sign * 2.0129 / 2, "time": -sign * 0.175 * 6.8})
        assert math.fsum(part.change_j for part in found.parts) == found.change_j
        assert {cause.what for cause in found.causes} == {"limit", "time"} and found.rests_on_time
        assert [gate.growth for gate in found.gates] == [0, 0], "what binds by the time alone fails no gate of counts"


def test_counts_and_a_power_limit_that_cancel_are_two_parts():
    """1e9 more multiply-adds at the mean price 58 x 0.75 pJ; half the price 58 pJ of a mean 1.5e9: 43.5 mJ both."""
    found = compare([held(1.0)], [held(0.5, fp32_fma=2e9)], fail_above=["fp32_fma=50%"]).typed
    parts = {part.because: part.change_j for part in found.parts if part.what == "fp32_fma"}
    assert parts == pytest.approx({"counts": 0.0435, "limit": -0.0435})
    assert found.gates[0].growth == pytest.approx(1), "the gate is on counts, held or not"


def test_what_one_side_alone_executes_is_no_matter_of_the_power_limit():
    found = compare([held(1.0, fp32_add=0.0)], [held(0.5)]).typed
    parts = {part.because: part.change_j for part in found.parts if part.what == "fp32_add"}
    assert parts == pytest.approx({"counts": 2e8 * 58e-12 * 0.5})


def test_one_verdict_of_repeats_stands_in_headline_sentence_and_gates():
    """Times of 0.35 s and 0.40 s in three logs each, 1 ms apart: constant power alone, 6.8 W x 50 ms = 340 mJ."""
    sides = [[energy({"k": kernel(time=start + 0.001 * n)}) for n in range(3)] for start in (0.35, 0.40)]
    found = compare(*sides, fail_above=["2%", "time=2%"]).typed
    assert found.rests_on_time and found.change_j == pytest.approx(0.34) and not found.tests.dated
    assert "NEW uses 7.7 % more energy" in answer.headline(found).text.replace(NARROW, " ")
    assert "a difference is shown if OLD and NEW ran in turns, which logs without start times" in words.noise(found)
    assert all(gate.failed for gate in found.gates)


def test_kernels_that_run_at_a_time_in_new_alone_are_no_longer_run(tmp_path, eprof_command):
    """Two of 10 ms one after the other, then at a time: 20 ms of constant power, then 10 ms."""
    for name, starts in (("old", (1_000_000_001, 1_010_000_101)), ("new", (1_000_000_001, 1_000_000_101))):
        rows = [f"{start},10000000,1,A100-SXM4-40GB (0),{start % 7},f{place}" for place, start in enumerate(starts)]
        text = "\n".join(["Start (ns),Duration (ns),CorrId,Device,Strm,Name", *rows, ""])
        (tmp_path / f"{name}.csv").write_text(text)
    said = eprof_command("diff", "old.csv", "new.csv").stdout.replace("\u202f", " ")
    assert "NEW uses 50 % less energy" in " ".join(said.split())
    assert "more or fewer kernels at a time, which share constant power" in " ".join(said.lower().split())
    assert "0 s longer" not in said


def test_flops_with_a_second_price_are_counted_once():
    """8e6 additions and 8e6 multiplications, scalar all of them: 16e6 flops, of which narrow ones pay 5 pJ more."""
    prices = {**PRICES, "fp64_add": 20.0, "fp64_mul": 20.0, "fp64_narrow": 5.0}
    sides = [{"fp64_add": n, "fp64_mul": n, "fp64_narrow": 2 * n, "integer": 7e8} for n in (4e6, 8e6)]
    found = compare(*([energy({"k": kernel(**side)}, prices=prices)] for side in sides)).typed
    (flops,) = (cause for cause in found.causes if cause.what == "fp64")
    assert (flops.old, flops.new) == (8e6, 16e6)
    assert flops.change_j == pytest.approx(8e6 * 25e-12)
