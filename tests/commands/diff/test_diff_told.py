"""A difference of logs that do not tell the same things: what one does not say is no change."""

import json

import pytest
from diff_support import energy, kernel
from msgspec.structs import replace

import eprof
from eprof.commands.diff import words
from eprof.commands.diff.answer import headline
from eprof.commands.diff.compare import compare
from eprof.show.blocks import Share
from eprof.show.numbers import NARROW

HEADER = '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
CLOCK = {"smsp__cycles_elapsed.avg": ("cycle", 76e6), "smsp__cycles_elapsed.avg.per_second": ("cycle/second", 760e6)}
DRAM = {"dram__bytes.sum": ("byte", 4e9)}
CACHES = {"l1tex__t_bytes.sum": ("byte", 32e9), "lts__t_bytes.sum": ("byte", 10e9)}
FFMA = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("inst", 1e9)}
ALL = CLOCK | DRAM | CACHES | FFMA


@pytest.fixture
def log(tmp_path):
    """Writes a log of ncu: a launch for each kernel {name: {metric: (unit, number)}}."""

    def write(name, kernels):
        rows = [
            f'"{place}","{kernel}","0","8.0","Command line profiler metrics","{metric}","{unit}","{number}"\n'
            for place, (kernel, metrics) in enumerate(kernels.items())
            for metric, (unit, number) in metrics.items()
        ]
        path = tmp_path / f"{name}.csv"
        path.write_text(HEADER + "".join(rows))
        return path

    return write


def said(document):
    shown = headline(document)
    return f"{shown.text} {shown.lead}".replace(NARROW, " ")


def test_a_log_without_clocks_is_priced_at_those_of_the_other(log, tmp_path):
    told, silent = log("told", {"k": ALL}), log("silent", {"k": DRAM | CACHES | FFMA})
    for old, new in ((told, silent), (silent, told)):
        found = eprof.diff(old, new, costs="a100", fail_above=["2%"]).typed
        assert {side.costs.setting["core_mhz"] for side in (found.old, found.new)} == {760}
        assert found.change_j == 0 and "setting" not in {fact.what for fact in found.unlike}
        assert found.gates[0].failed is False
        assert f"clocks of {'NEW' if new is silent else 'OLD'} assumed" in words.trust(found)
    asked = eprof.diff(told, silent, costs="a100", new_setting="1410/1215").typed
    assert [cause.what for cause in asked.causes] == ["setting"], "what was asked for is a cause"


def test_bytes_of_other_simulated_caches_are_no_saving(tmp_path):
    """A kernel that loads 16,384 times 4 bytes, without caches and with those that let 1,024 sectors through to DRAM."""
    kernel = (
        "Instructions executed for kernel 'k':\n  8 - call llvm.fmuladd.f32()\n  16384 - load global (65536 bytes)\n"
    )
    sectors = {"l2 reads": 4096, "l2 read hits": 3072, "dram reads": 1024, "load requests": 512, "load sectors": 4096}
    others = ("dram writes", "dram left dirty", "l2 writes", "store requests", "store sectors", "l1 load hits")
    counted = {**sectors, **dict.fromkeys(others, 0), "warps": 512, "work-items": 16384, "accesses lost": 0}
    caches = "".join(f"  {number} - cache {what}\n" for what, number in counted.items())
    texts = {"none": kernel, "modelled": f"{kernel}  1 - cache model jetson-tk1\n{caches}"}
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n")
    found = eprof.diff(tmp_path / "none", tmp_path / "modelled", costs="jetson-tk1").typed
    assert ("caches", "none", "jetson-tk1") in {(fact.what, fact.old, fact.new) for fact in found.unlike}
    assert "DRAM bytes" in said(found) and "of other simulated caches, which may be all of it" in said(found)
    same = eprof.diff(tmp_path / "none", tmp_path / "none", costs="jetson-tk1").typed
    assert "caches" not in {fact.what for fact in same.unlike}


def test_a_saved_report_at_the_tables_default_tells_no_clocks_either(log, tmp_path):
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(eprof.load(log("silent", {"k": DRAM | CACHES | FFMA})).energy("a100").document()))
    assert eprof.diff(log("told", {"k": ALL}), saved, costs="a100").change_j == 0


def test_a_lacking_counter_of_dram_makes_no_bytes_of_l2(log):
    """L2 is net of DRAM on OLD alone: 6 GB of it, and 10 GB of NEW; of the second kernel DRAM served next to nothing."""
    little = ALL | {"dram__bytes.sum": ("byte", 1e6)}
    whole, lacking = log("whole", {"k": ALL, "l": little}), log("lacking", dict.fromkeys("kl", CLOCK | CACHES | FFMA))
    for old, new in ((whole, lacking), (lacking, whole)):
        found = eprof.diff(old, new, costs="a100").typed
        assert found.change_j == 0
        assert {"l2", "dram"} <= {lost.what for lost in found.uncompared}
        lost = found.counts["dram"]
        assert (lost.new if new is lacking else lost.old) is None, "not 0"


def test_bytes_counted_from_other_counters_are_no_saving(log):
    """Of the same kernels one log has reads and writes of DRAM, the other their sum: 5 % more may be the method."""
    parts = {"dram__bytes_read.sum": ("byte", 3e9), "dram__bytes_write.sum": ("byte", 1e9)}
    old = log("parts", {"k": CLOCK | CACHES | FFMA | parts})
    for byte, is_said in ((4.2e9, True), (9e9, False)):
        new = log("whole", {"k": ALL | {"dram__bytes.sum": ("byte", byte)}})
        found = eprof.diff(old, new, costs="a100").typed
        assert [cause.counters for cause in found.causes if cause.what == "dram"] == ["other"]
        assert "counters" in {fact.what for fact in found.unlike}
        assert ("5.0 % more DRAM bytes" in said(found) and "are counted from other counters" in said(found)) == is_said
        assert found.causes[0].what == "dram" and ("2.25 times the DRAM bytes" in said(found)) != is_said


def timed(ms, mhz):
    """`ALL` with a time, and the cycles and the clock that make it."""
    cycles, clock = {"smsp__cycles_elapsed.avg": ("cycle", 1e3 * ms * mhz)}, ("cycle/second", 1e6 * mhz)
    time = {"gpu__time_duration.sum": ("ms", ms)}
    return ALL | time | cycles | {"smsp__cycles_elapsed.avg.per_second": clock}


@pytest.mark.parametrize(
    ("ms", "mhz", "is_noise"), [(104, 760, True), (200, 760, False), (200, 380, False), (110, 750, True)]
)
def test_a_time_that_a_clock_or_cycles_explain_is_no_noise(log, ms, mhz, is_noise):
    """Of 100 ms at 760 MHz: 4 % more cycles, twice the cycles, half the clock; 10 % more time at 1 % less clock."""
    new = timed(ms, mhz)
    if (ms, mhz) == (110, 750):
        del new["smsp__cycles_elapsed.avg"]
    found = eprof.diff(log("old", {"k": timed(100, 760)}), log("new", {"k": new}), costs="RTX A6000").typed
    assert found.rests_on_time == is_noise == ("on a busy machine" in said(found))


def test_another_table_alone_is_not_noise_of_the_time(log):
    kernels = log("k", {"k": timed(100, 760)})
    of_two = [eprof.load(kernels, gpu=gpu).energy(gpu) for gpu in ("a100", "v100")]
    found = compare(*([energy] for energy in of_two)).typed
    assert found.change_j and found.speedup == 1 and not found.rests_on_time


def test_a_kernel_of_one_side_is_the_cause_though_a_word_of_it_was_not_counted(log):
    """Its SM active cycles cost nothing and are not known: the cause is the sum of what is."""
    old = log("old", {"k": timed(100, 760), "gone": {"gpu__time_duration.sum": ("ms", 900)}})
    found = eprof.diff(old, log("new", {"k": timed(100, 760)}), costs="a100").typed
    (gone,) = found.causes
    assert gone.what == "vanished" and gone.change_j == pytest.approx(found.change_j) and not found.rests_on_time
    assert "The kernel that only OLD has: all of the saving" in said(found)


def test_a_shorter_run_names_what_changed_most_with_it(log):
    """Half the time: a quarter of the DRAM bytes explains it, 0.9 times the bytes of L1 does not."""
    bytes_ = {"dram__bytes.sum": ("byte", 1e9), "l1tex__t_bytes.sum": ("byte", 29e9)}
    old, new = log("old", {"k": timed(100, 760)}), log("new", {"k": timed(50, 760) | bytes_})
    text = said(eprof.diff(old, new, costs="a100").typed)
    assert text.endswith("50.0 ms shorter run: 98 % of the saving. 4.00 times fewer DRAM bytes: likely why."), text


@pytest.mark.parametrize(("ms", "change"), [(100.0009, "No change"), (100.02, "on a busy machine")])
def test_digits_beyond_the_fifth_are_rounding(log, ms, change):
    new = timed(100, 760) | {"gpu__time_duration.sum": ("ms", ms)}
    found = eprof.diff(log("old", {"k": timed(100, 760)}), log("new", {"k": new}), costs="a100").typed
    assert change in said(found)
    assert found.is_zero == (found.change_j == 0 and not found.causes) == (change == "No change")


def test_a_change_of_less_than_the_fifth_digit_of_all_is_none(log):
    """A thousandth more time of a kernel that takes 0.03 % of all: 3e-7 of it."""
    kernels = [{"k": timed(300, 760), "l": timed(ms, 760)} for ms in (0.1, 0.1001)]
    found = eprof.diff(log("old", kernels[0]), log("new", kernels[1]), costs="RTX A6000").typed
    assert found.change_j and "the predicted energy is the same" in said(found)


def test_a_time_at_other_clocks_than_the_prices_is_assumed(log):
    logs = log("old", {"k": timed(100, 1410)}), log("new", {"k": timed(100, 1410) | {"dram__bytes.sum": ("byte", 2e9)}})
    for setting, is_assumed in (("1110/1215", True), ("1410/1215", False)):
        found = eprof.diff(*logs, costs="a100", new_setting=setting).typed
        assert ("assumed" in found.new.time_marks) == is_assumed and "assumed" not in found.old.time_marks
        assert ("Times are as logged, of NEW at 1410 MHz" in said(found)) == is_assumed
        assert any("NEW ran at 1410 MHz, by its log" in text for text in found.warnings) == is_assumed


def test_parts_that_cancel_have_no_shares_of_what_they_leave(log):
    """As many joules less of the one as more of the other, but for a thousandth."""
    old, new = ({"k": kernel(integer=more, fp32_fma=1e9 + less)} for more, less in ((7e8, 0.0), (1.7e9, -1.033e9)))
    found = compare([energy(old)], [energy(new)]).typed
    assert 0 < abs(found.change_j) < 0.1 * max(abs(step.change_j) for step in found.steps)
    cells = [cell for row in words.steps_table(found).rows for cell in row.cells if isinstance(cell, Share)]
    assert cells and all(cell.value is None for cell in cells)
    more = {name: (unit, 2 * number) for name, (unit, number) in FFMA.items()}
    whole = eprof.diff(log("k", {"k": ALL}), log("l", {"k": ALL | more}), costs="a100").typed
    assert "all of the increase" in said(whole)
    unsure = said(replace(whole, interval_j=[-1.0, 1.0]))
    assert "of the increase" not in unsure and "of the change" in unsure


def test_the_interval_of_a_kernel_that_one_side_has_is_of_the_change_that_its_row_shows(log):
    one = eprof.load(log("one", {"axpy": CLOCK | DRAM | CACHES | FFMA})).energy("a100")
    other = eprof.load(log("other", {"transpose": CACHES})).energy("a100")
    document = compare([one], [other], similar=False).typed
    table = words.kernels_table(document)
    [place] = [place for place, column in enumerate(table.columns) if "interval" in column.label.lower()]
    rows = [(own, change) for own, (change, _) in zip(document.kernels, words.changes_of(document), strict=True)]
    for row, (own, change) in zip(table.rows, rows, strict=True):
        ends = own.interval_j
        assert not row.cells[place] or ends[0] <= change <= ends[1]
    assert any(change != own.change_j for own, change in rows), "a row is of all that one side knows"


@pytest.mark.parametrize("instructions", [838328264175, 838328264762])  # the second: 7e-10 more, which is rounding
def test_joules_that_a_meter_saw_are_a_change_though_nothing_else_is(tmp_path, instructions):
    def perf(name, instructions, joules):
        rows = (
            f"{instructions},,instructions,1443222165638,100.00,0.45,insn per cycle",
            f"{joules},Joules,power/energy-pkg/,90201614991,100.00,2.257,/sec",
        )
        path = tmp_path / f"{name}.csv"
        path.write_text("# started on Sun Apr 28 20:08:07 2024\n" + "".join(f"{row}\n" for row in rows))
        return path

    found = eprof.diff(perf("old", 838328264175, 3257.22), perf("new", instructions, 1628.61)).typed
    assert not found.is_zero and "NEW uses 50 % less energy, measured: 3.26 kJ → 1.63 kJ" in said(found)


def test_a_level_is_waited_for_by_kernels_of_both_sides_alone(log):
    """What is gone took half of the time and moved half of L1's bytes, and nothing else: the other kernel is the same."""
    nothing = {metric: (unit, 0) for metric, (unit, _) in (DRAM | FFMA).items()}
    nothing["lts__t_bytes.sum"] = ("byte", 0)
    kernels = {"k": timed(100, 760), "initialise": timed(100, 760) | nothing}
    old, new = log("old", kernels), log("new", {"k": timed(100, 760)})
    assert "waits" not in said(eprof.diff(old, new, costs="a100").typed)
    assert "waits" not in said(eprof.diff(new, old, costs="a100").typed)


@pytest.mark.parametrize("misc", [0.0, 8e8])
def test_a_count_without_a_price_is_unknown_though_it_is_0(misc):
    """The table has no price for `misc`: a kernel that came counts none, and the gate is on all that is known."""
    old, new = {"k": kernel(misc=8e8)}, {"k": kernel(misc=8e8), "came": kernel(misc=misc)}
    for sides, failed in (((old, new), True), ((new, old), False)):
        found = compare(*([energy(kernels)] for kernels in sides), fail_above=["2%"]).typed
        assert "misc" in [lost.what for lost in found.unknown] and not found.partial
        assert found.gates[0].failed is failed, "2.0129 J, twice or half of it"


def test_copies_that_changed_stand_beside_kernels_that_did_not(tmp_path):
    """Three copies of 2 ms, of which two are gone, beside a kernel of 2 ms."""
    head = '"Start","Duration","Size","Throughput","Device","Context","Stream","Name"\nms,ms,MB,GB/s,,,,\n'
    kernel_row = '20.0,2.0,,,"Tesla K20c (0)","1","7","axpy(float*) [9]"\n'

    def trace(name, copies):
        rows = (f'{4.0 * n},2.0,8.0,4.0,"Tesla K20c (0)","1","7","[CUDA memcpy HtoD]"\n' for n in range(copies))
        path = tmp_path / f"{name}.csv"
        path.write_text(f"==1== Profiling result:\n{head}{''.join(rows)}{kernel_row}")
        return path

    found = eprof.diff(trace("old", 3), trace("new", 1), costs="estimated").typed
    text = said(found)
    assert found.is_zero and text.startswith("No change of kernels: every count and time is the same")
    assert "Besides, and not in it: " in text and "copies took 6.00 ms → 2.00 ms" in text


def test_intervals_of_two_tables_turn_with_the_sides(log):
    """Each replica of one table meets some of the other's, the same ones whichever of them is OLD's."""
    kernels = log("k", {"k": timed(100, 760)})
    of_two = [eprof.load(kernels, gpu=gpu).energy(gpu) for gpu in ("p100", "gtx1080ti")]
    there, back = (compare(*([energy] for energy in sides)).typed for sides in (of_two, of_two[::-1]))
    assert not there.intervals.paired and there.interval_j == pytest.approx([-end for end in reversed(back.interval_j)])


def test_a_gate_without_a_table_of_its_own_keeps_the_joules_of_the_report(tmp_path):
    """A TITAN has no table: its data sheet prices the report, and a gate only if `--costs estimated` asks for that."""

    def summary(name, transactions):
        rows = ["Device,Kernel,Invocations,Metric Name,Metric Description,Min,Max,Avg"]
        for metric, number in (("dram_read_transactions", transactions), ("inst_fp_32", 1e8)):
            rows.append(f'"GeForce GTX TITAN (0)","k(float*)",1,"{metric}","x",{number:.0f},{number:.0f},{number:.0f}')
        path = tmp_path / f"{name}.csv"
        path.write_text("==1== Profiling result:\n" + "\n".join(rows) + "\n")
        return path

    sides = summary("old", 4e6), summary("new", 8e6)
    found = eprof.diff(*sides, fail_above=["2%", "dram=50%"])
    assert found.change_j == eprof.diff(*sides).change_j > 0
    total, dram = found.gates
    assert "--costs estimated judges it" in total.why_not and total.failed is None
    assert dram.growth == 1 and dram.failed and dram.unit == "byte", "by counts, as without prices"
    assert eprof.diff(*sides, costs="estimated", fail_above=["2%"]).gates[0].failed
