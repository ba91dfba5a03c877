"""Output of `perf stat`: text, CSV and JSON of real machines, and what may go wrong with it."""

import math
import re

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import eprof
from eprof import cli, logs
from eprof.base.errors import LogError, MeterError
from eprof.base.vocabulary import Mark
from eprof.logs.log import INTERVAL, JOULE, NOT_ALL, RUNNING, SOCKETS
from eprof.profilers.perf import SIGNS, reader

CPU = SHARED / "cpu"
REAL = sorted(CPU.glob("perf-*"))
NO_COUNTERS = sorted(CPU.glob("perf-*-vm*"))
needs_data = pytest.mark.skipif(not REAL, reason="needs ../shared/data")


@pytest.fixture
def read(tmp_path):
    """Reads a text as a log."""

    def reading(text, name="perf.log", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return logs.read(path, **options)

    return reading


def rows_of(log):
    """Each row's kernel, its time, and its counters that have a value."""
    (table,) = log.tables
    kernels, times, values = table.rows.kernel.texts(), table.rows.time_s, table.counters.values
    return [
        (
            kernel,
            time_s,
            {name: value for name, value in zip(table.counters.names, cells, strict=True) if value == value},
        )
        for kernel, time_s, cells in zip(kernels, times, values, strict=True)
    ]


def only(log):
    (row,) = rows_of(log)
    return row


def real(name):
    return logs.read(CPU / f"perf-{name}")


# ------------------------------------------------------------------------------------------------------- real machines


@needs_data
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_every_real_log_is_read_or_refused_in_a_sentence(path):
    if path in NO_COUNTERS:
        with pytest.raises(LogError, match="perf counted nothing of the processor.*callgrind"):
            logs.read(path)
    else:
        (table,) = logs.read(path).tables
        assert len(table.rows) and len(table.counters.names)


@needs_data
def test_joules_beside_counters_are_measured_energy():
    """Acceptance case B3: two Xeon E5-2630 v3."""
    energy = eprof.load(CPU / "perf-csv-xeon-e5-2630v3-rapl.csv").energy()
    assert energy.measured.joules == energy.document()["energy_j"]["measured"] == 3257.22
    assert energy.measured.seconds == pytest.approx(45.1021, rel=1e-6)
    assert energy.measured.covers == "2 processor packages"
    assert energy.measured.words.startswith("3257.22 J of 2 processor packages in 45.1021 s, 72.2188 W")
    assert energy.listed == ("retired", "core_active")
    assert energy.document()["devices"][0]["processor"] == "cpu"


@needs_data
def test_a_log_of_joules_alone_is_a_report_of_measured_joules(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["report", str(CPU / "perf-csv-xeon-e5-2630v3-rapl.csv")])
    out = " ".join(capsys.readouterr().out.split())
    assert "3.26 kJ measured in 45.1 s, 72.2 W, for 838 G instructions (0.448 a cycle)." in out
    assert "then `eprof diff idle.txt perf-csv-xeon-e5-2630v3-rapl.csv`" in out
    assert "The logs do not name the CPU, so no energy is predicted" in out


@needs_data
def test_nodes_are_added_up_and_mebibytes_are_bytes():
    """Acceptance case B4: 493.44 MiB read, 316.07 MiB written."""
    _, time_s, counters = only(real("csv-per-node-imc-cas.csv"))
    assert math.isnan(time_s)
    assert counters == pytest.approx(
        {
            "uncore_imc/cas_count_read/ bytes": 493.44 * 2**20,
            "uncore_imc/cas_count_write/ bytes": 316.07 * 2**20,
            "sockets in use": 2,
        }
    )
    counts = eprof.load(CPU / "perf-csv-per-node-imc-cas.csv").energy("i7-950").document()["counts"]
    assert counts["dram_read"]["value"] == pytest.approx(517409341, rel=1e-6)
    assert counts["dram_write"]["value"] == pytest.approx(331423416, rel=1e-6)
    assert counts["dram_read"]["marks"] == ["assumed"]


@needs_data
def test_cores_of_both_kinds_are_added_up_and_scaled_values_are_estimated():
    path = CPU / "perf-csv-hybrid-alderlake-with-metricgroup-rows.csv"
    _, time_s, counters = only(logs.read(path))
    assert counters["instructions"] == 4688595 + 37487490
    assert counters["instructions running"] == 63
    assert time_s == pytest.approx(32.13934 / 32.001)
    (branches,) = (kernel["counts"]["control"] for kernel in eprof.load(path).energy().document()["kernels"])
    assert branches == {"value": 845211 + 6571193, "unit": "instruction", "energy_j": 0.0, "marks": ["estimated"]}


@needs_data
def test_an_event_of_several_groups_is_their_mean_by_how_long_each_ran():
    """As its lines have it: so many instructions, in so much of the time."""
    kernel, time_s, counters = only(real("text-altra-instruction-mix.txt"))
    assert (kernel, time_s) == ("false_sharing 2", 0.471328246)
    text = (CPU / "perf-text-altra-instruction-mix.txt").read_text()
    told = re.findall(r"([0-9,]+) +INST_SPEC .*\(([0-9.]+)%\)", text)
    shares = [float(share) for _, share in told]
    counted = sum(int(number.replace(",", "")) * share for (number, _), share in zip(told, shares, strict=True))
    assert len(told) == 9 and counters["inst_spec"] == pytest.approx(counted / sum(shares))
    assert counters["inst_spec running"] == max(shares) == 34.12
    assert counters["ase_spec"] == 257


@needs_data
def test_a_share_that_stands_behind_a_second_metric_is_its_events():
    _, _, counters = only(real("text-neoverse-n1-multiplexed.txt"))
    assert (counters["cycles running"], counters["instructions running"]) == (38.24, 39.99)


@needs_data
def test_each_run_of_a_file_is_a_row():
    rows = rows_of(real("text-intel-topdown-two-runs.txt"))
    assert [kernel for kernel, *_ in rows] == [f"./target/release/two_sum 300 {letter}" for letter in "lms"]
    assert [time_s for _, time_s, _ in rows] == [60.248690210, 61.511974955, 8.557783540]
    assert rows[1][2]["instructions"] == 157923601609


@needs_data
def test_logs_that_name_no_cpu_are_compared():
    new, old = (CPU / f"perf-csv-xeon-e5-2630v3-rapl{which}.csv" for which in ("-idle", ""))
    energies = eprof.diff(old, new).document()
    assert energies["new"]["energy_j"]["measured"] - energies["old"]["energy_j"]["measured"] == pytest.approx(
        464.30 - 3257.22
    )


@needs_data
def test_runs_of_one_command_add_up():
    profile = eprof.load(CPU / "perf-text-energy-pkg-appended.txt")
    (part,) = profile.counted
    assert part.launches.rows.launches.tolist() == [2]
    assert profile.measured.joules == pytest.approx(1.78 + 1.90)
    assert profile.measured.seconds == pytest.approx(0.224659433 + 0.240284540)


@needs_data
def test_intervals_inside_a_readme_add_up():
    _, time_s, counters = only(real("csv-interval-rapl-in-readme.md"))
    assert time_s == 30.001688646
    assert counters == {"2 processor packages": pytest.approx(595.11), SOCKETS: 2}


# ---------------------------------------------------------------------------------------------------------- formats

INTERVALS = """\
     1.000100000;100;;cycles;1000;100.00;;
     1.000100000;30,50;Joules;power/energy-pkg/;1000;100,00;;
     1.000100000;9,25;Joules;power/energy-ram/;1000;100,00;;
     2.000200000;200;;cycles;1000;100.00;;
     2.000200000;31,50;Joules;power/energy-pkg/;1000;100,00;;
     2.000200000;8,75;Joules;power/energy-ram/;1000;100,00;;
"""


def test_decimals_with_a_comma_are_read_where_cells_are_set_apart_otherwise(read):
    _, time_s, counters = only(read(INTERVALS))
    assert time_s == 2.0002
    assert counters == {"cycles": 300, "processor packages and DRAM": 80}
    with pytest.raises(LogError, match="line 1: decimals are written with a comma"):
        read("15,03,msec,task-clock,15025108,100,00,0,224,CPUs utilized\n")


def test_an_interval_that_is_cut_off_makes_lower_bounds(read):
    whole, *_ = read(INTERVALS).tables
    cut, *_ = read("".join(INTERVALS.splitlines(True)[:-1])).tables
    assert (whole.lacks_rows, cut.lacks_rows) == (False, True)


@pytest.mark.parametrize("rest", ["C", "CPU", "CPU1", "CPU1,20", "S1,1,2", "S", "2", '{"cpu" : "1"'])
def test_a_row_of_a_processor_that_is_cut_off_makes_lower_bounds(read, rest):
    rows = "# started on Mon\n\nCPU0,1000,,cycles,100,100.00,,\n"
    for text, is_cut in ((rows, False), (rows + rest, True), (rows + "Done, 5", False), (rows + "Copied", False)):
        assert read(text).tables[0].lacks_rows == is_cut


@pytest.mark.parametrize("sep", [",", ";", "\t", "|", "::"])
def test_any_separator_will_do(sep, read):
    lines = ["S0,2,12891,,INST_RETIRED.ANY,100,100.00,,", "S1,2,9,,inst_retired.any:u,100,50.00,,"]
    lines += ["S0,2,140.44,msec,cpu-clock,140440140,100.00,2.000,CPUs utilized"]
    _, time_s, counters = only(read("\n".join(lines).replace(",", sep) + "\n"))
    assert counters == {"inst_retired.any": 12900, "inst_retired.any running": 50, "sockets in use": 2}
    assert time_s == pytest.approx(0.07022)


@pytest.mark.parametrize(
    "of, used, is_whole",
    [
        ("cpu-clock", 224.457, True),
        ("task-clock", 224.457, False),
        ("cpu-clock", 3.7, False),
        ("cpu-clock", 8.002, True),
    ],
)
def test_perfs_own_choice_of_a_clock_tells_a_run_of_the_whole_machine(read, of, used, is_whole):
    """By itself perf counts cpu-clock where it looks at all CPUs, task-clock where at a program."""
    rows = [f"9000.00,msec,{of},9000000000,100.00,{used},CPUs utilized"]
    rows += [
        f"7,,{event},9000000000,100.00,," for event in ("context-switches", "cpu-migrations", "page-faults", "cycles")
    ]
    (name,) = read("\n".join(rows) + "\n").tables[0].rows.kernel.texts()
    assert (name == "system wide") == is_whole


def test_cgroups_are_rows_without_those_that_hold_others(read):
    log = read("9,,cycles,/,10,100.00,,\n5,,cycles,/a,10,100.00,,\n4,,cycles,/b,10,100.00,,\n")
    assert [(kernel, counters) for kernel, _, counters in rows_of(log)] == [
        ("/a", {"cycles": 5}),
        ("/b", {"cycles": 4}),
    ]
    assert any(note.startswith("`/`: holds other cgroups") for note in log.notes)


@pytest.mark.parametrize("order", [1, -1])
def test_what_the_kernel_did_is_another_count(order, read):
    lines = ["9,,instructions:u,10,100.00,,", "2,,instructions:k,10,100.00,,", "1,,cpu/branches/k,10,100.00,,"]
    assert only(read("\n".join(lines[::order]) + "\n"))[2] == {
        "instructions": 9,
        "instructions:k": 2,
        "cpu/branches/k": 1,
    }


def test_values_that_perf_lacks_are_missing_and_no_zeros(read, tmp_path):
    log = read("7,,cycles,10,100.00,,\n<not counted>,,r01C7,0,0.00,,\n<not supported>,,instructions,0,100.00,,\n")
    assert only(log)[2] == {"cycles": 7}
    assert log.tables[0].counters.names == ("cycles", "r01c7", "instructions")
    assert any("r01c7" in note and "missing" in note for note in log.notes)


def test_events_given_by_numbers_keep_them(read):
    log = read(
        "7,,cpu/event=0xc7,umask=0x10/,10,100.00,,\n8,,uncore_imc_0/x/,1,100.00,,\n9,,uncore_imc_1/x/,1,100.00,,\n"
    )
    assert only(log)[2] == {"cpu/event=0xc7,umask=0x10/": 7, "uncore_imc/x/": 17}


def test_rows_that_come_again_in_the_same_order_are_further_runs(read):
    log = read("7,,cycles,10,100.00,,\n5,,branches,10,100.00,,\n" * 3, "loop.csv")
    assert rows_of(log) == [("whole program", pytest.approx(math.nan, nan_ok=True), {"cycles": 7, "branches": 5})] * 3


def test_json_is_read_with_a_comma_too_much_and_with_decimal_commas(read):
    text = (
        '{"counter-value" : "3257,220000", "unit" : "Joules", "event" : "power/energy-psys/", "pcnt-running" : 100,00, }\n'
        '{"counter-value" : "12.000000", "unit" : "", "event" : "cycles", "event-runtime" : 10, "pcnt-running" : 40.00, }\n'
        '{"counter-value" : "2000000000", "unit" : "ns", "event" : "duration_time", "pcnt-running" : 100.00}\n'
    )
    _, time_s, counters = only(read(text))
    assert time_s == 2
    assert counters == {"the whole platform": 3257.22, "cycles": 12, "cycles running": 40}


TEXT = """\
what the program wrote, 12 lines

 Performance counter stats for './prog 3' (5 runs):

     1{0}133{0}344      cycles:u                  #    3{1}114 GHz            ( +-  0{1}83% )  (66{1}67%)
           140{1}44 msec task-clock                #    1{1}960 CPUs utilized
             1{1}50 Joules power/energy-cores/

           0{1}0716531 +- 0{1}0012 seconds time elapsed  ( +- 1{1}24% )

       0{1}006648000 seconds user
"""


@pytest.mark.parametrize("signs", [",.", ".,", " ,", "\u202f,", "'."])
def test_text_is_read_in_any_locale(signs, read):
    log = read(TEXT.format(*signs))
    kernel, time_s, counters = only(log)
    assert (kernel, time_s) == ("./prog 3", 0.0716531)
    assert counters.pop("cores in use") == pytest.approx(1.96, rel=1e-3)
    assert counters == {"cycles": 1133344, "cycles running": 66.67, "processor cores": 1.5}
    assert len(log.notes) == 4


def test_text_of_intervals_by_cpu_adds_up(read):
    log = read(
        "#           time CPU            counts unit events\n"
        "     1.000064711 CPU0        1,123      cycles\n     1.000064711 CPU1          877      cycles\n"
        "     2.000164711 CPU0        1,000      cycles\n     2.000164711 CPU1  <not counted>      cycles\n"
    )
    assert only(log)[1:] == (2.000164711, {"cycles": 3000, "cycles" + NOT_ALL: 1})


def test_sums_of_intervals_do_not_count_twice(read):
    lines = [
        "     1.000100000,7,,cycles,10,100.00,,",
        "     2.000100000,8,,cycles,10,100.00,,",
        "summary,15,,cycles,20,100.00,,",
    ]
    assert only(read("\n".join(lines) + "\n"))[1:] == (2.0001, {"cycles": 15})
    text = "#           time             counts unit events\n     1.000064711            1,123      cycles\n"
    summary = "\n Performance counter stats for 'x':\n\n   1,123      cycles   [49.9%]\n\n  1.01 seconds time elapsed\n"
    assert only(read(text + summary)) == ("x", 1.01, {"cycles": 1123, "cycles running": 49.9})


def test_channels_that_are_not_merged_are_added_up(read):
    log = read("7,,UNC_M_CAS_COUNT.RD [uncore_imc_0],10,100.00,,\n8,,unc_m_cas_count.rd [uncore_imc_1],10,100.00,,\n")
    assert only(log)[2] == {"unc_m_cas_count.rd": 15}


def test_a_share_behind_a_group_of_metrics_is_no_events(read):
    text = TEXT.format(",", ".").replace(
        "\n           140", "\n    TopdownL1   # 29.4 %  tma_x\n       # 2.0 % tma_y (63.00%)\n           140"
    )
    assert only(read(text))[2]["cycles running"] == 66.67


# ---------------------------------------------------------------------------------------------------------- bad input


@needs_data
@given(st.data())
def test_a_log_cut_or_spoilt_at_any_byte_is_read_or_refused(tmp_path_factory, data):
    whole = data.draw(st.sampled_from(REAL)).read_bytes()
    place = data.draw(st.integers(0, len(whole)))
    noise = data.draw(st.binary(max_size=20))
    behind = data.draw(st.sampled_from([b"", whole[place:]]))
    path = tmp_path_factory.mktemp("cut") / "perf.log"
    path.write_bytes(whole[:place] + noise + behind)
    try:
        log = logs.read(path)
    except LogError as err:
        assert "\n" not in str(err)
    else:
        assert log.tables


@pytest.mark.parametrize("cell", ["1e", "--", "9" * 400, "1.2.3", "", "0x10", '"'])
def test_json_with_strange_numbers_is_read_or_refused(cell, read):
    whole = '{"interval" : 1.000000000, "counter-value" : "5", "event" : "cycles", "event-runtime" : 9, "pcnt-running" : 100.00}'
    for number in ("1.000000000", '"5"', ": 9", "100.00"):
        try:
            log = read(f"{whole}\n{whole.replace(number, f': {cell}' if number == ': 9' else cell)}\n")
        except LogError:
            continue
        assert len(log.tables[0].rows) >= 1


@given(st.text(alphabet="0123456789,.;<> CPUSnotcued/%()#'\"{}:-", max_size=200))
@example("1,,a,2,3.00" * 50)
def test_lines_like_those_of_perf_raise_no_other_error(text):
    from eprof.profilers.perf.reader import Lines

    lines = Lines("x")
    lines.runs[0].is_text = True
    try:
        for line in text.split("\n"):
            lines.feed(line)
        lines.finish("")
    except LogError:
        return
    assert sum(len(run.values) for run in lines.whole_runs()) == sum(len(run.values) for run in lines.runs)


def test_what_cells_of_json_are_called_is_an_entry_of_the_definition(read, monkeypatch):
    text = '{"counter-value" : "5.0", "unit" : "", "event" : "cycles", "event-runtime" : 10, "share" : 40.00}\n'
    assert set(only(read(text))[2]) == {"cycles"}
    renamed = {**reader._EVENTS.json, "share": "running"}
    monkeypatch.setattr(reader, "_EVENTS", replace(reader._EVENTS, json=renamed))
    assert only(read(text))[2] == {"cycles": 5, "cycles" + RUNNING: 40}


SAMPLES = "  44.19%  prog  lib.so     [.] solve(int)\n  18.16%  prog  [unknown]  [k] 0xffffffffa30b82a8\n"


@pytest.mark.parametrize(
    ("head", "table", "said"),
    [
        ("", SAMPLES, ["44 % in solve, 18 % in 0xffffffffa30b82a8 (of an event that it does not name)"]),
        (
            "# Samples: 15  of event 'cache-misses:u'\n",
            SAMPLES,
            ["44 % in solve, 18 % in 0xffffffffa30b82a8 (of `cache-misses:u`)"],
        ),
        ("", SAMPLES * 2, []),
        ("", SAMPLES.replace("%", "%  20.00%"), []),
    ],
)
def test_samples_of_perf_report_beside_counts_are_told_and_split_nothing(read, head, table, said):
    text = "\n Performance counter stats for './a':\n\n  1,234  cycles\n\n  1.002345678 seconds time elapsed\n\n"
    log = read(text + head + table)
    assert only(log) == only(read(text))
    assert [note for note in log.notes if "perf report" in note] == [
        f"Totals: samples of `perf report`: {told}; joules are not split by them" for told in said
    ]


def test_joules_do_not_mix_with_counters_of_definitions(read):
    log = read(INTERVALS, keep=frozenset({"cycles"}))
    assert log.tables[0].units["processor packages and DRAM"] == JOULE
    assert only(read(INTERVALS, keep=frozenset()))[2] == {"processor packages and DRAM": 80}


def test_an_endless_running_time_says_nothing_of_packages(read):
    endless = "9" * 400
    rows = [f"5;;cycles;{endless};100.00;;", f"1.5;Joules;power/energy-pkg/;{endless};100.00;;"]
    text = "\n".join(["# started on Mon", "", *rows, "1000;ns;duration_time;1000;100.00;;", ""])
    _, _, counters = only(read(text))
    assert counters["processor packages"] == 1.5


# --------------------------------------------------------------------------------- what is not known, lost or not used

WRAP = 2**47
FP = "fp_arith_inst_retired.512b_packed_double"


def cpus(*rows):
    return "# started on Mon Nov  2 10:00:00 2026\n\n" + "".join(f"{row};1000000;100.00;;\n" for row in rows)


@pytest.mark.parametrize(
    ("counts", "known"),
    [((WRAP + 10**11, 10**11), 10**11), ((3 * WRAP - 7, 5), 5), ((10**11, 10**11), 2 * 10**11)],
)
def test_counters_that_ran_over_are_lower_bounds(read, counts, known):
    rows = [f"CPU{cpu};{value};;{FP}" for cpu, value in enumerate(counts)]
    log = read(cpus("CPU0;4000000000000;;instructions", "CPU1;4000000000000;;instructions", *rows))
    _, _, counters = only(log)
    assert counters[FP] == known
    is_lost = known != sum(counts)
    assert counters.get(FP + NOT_ALL) == (1 if is_lost else None)
    assert any("ran over" in note for note in log.notes) == is_lost


def test_a_sum_that_ran_over_is_not_known(read):
    log = read(cpus(f"{2 * WRAP + 10};;{FP}", "4000000000000000;;instructions"))
    assert FP not in only(log)[2]
    assert any("run over" in note for note in log.notes)


@pytest.mark.parametrize("lost", ["<not counted>", "<not supported>"])
@pytest.mark.parametrize("place", ["S1;1", "2.000100000"])
def test_joules_of_a_part_are_no_measured_energy(read, lost, place):
    first = "S0;1" if place.startswith("S") else "1.000100000"
    whole = [f"{first};7.5;Joules;power/energy-pkg/", f"{place};8.5;Joules;power/energy-pkg/"]
    counted = [f"{first};100;;instructions", f"{place};100;;instructions"]
    joules = {name: unit for name, unit in read(cpus(*whole, *counted)).tables[0].units.items() if unit == JOULE}
    assert joules
    damaged = [whole[0], whole[1].replace("8.5", lost)]
    for rows in (damaged, whole[:1]):
        log = read(cpus(*rows, *counted) if "S" in place else cpus(rows[0], counted[0], *rows[1:], counted[1]))
        assert JOULE not in log.tables[0].units.values()
        assert any("no measured energy" in note and "power/energy-pkg/" in note for note in log.notes)


def test_a_row_of_one_cpu_that_is_lost_is_seen(read):
    rows = [f"CPU{cpu};{100 + cpu};;{event}" for event in ("instructions", "branches") for cpu in range(3)]
    whole, lacking = read(cpus(*rows)), read(cpus(*rows[:4], *rows[5:]))
    assert "branches" + NOT_ALL not in whole.tables[0].counters
    assert only(lacking)[2]["branches" + NOT_ALL] == 1
    assert "instructions" + NOT_ALL not in only(lacking)[2]
    assert any("lower bounds" in note for note in lacking.notes)


def test_memory_controllers_are_counted_on_one_cpu_a_socket(read):
    rows = [f"CPU{cpu};100;;instructions" for cpu in range(4)]
    sockets = [f"CPU{cpu};100;;unc_m_cas_count.rd" for cpu in (0, 2)]
    counters = only(read(cpus(*rows, *sockets)))[2]
    assert counters == {"instructions": 400, "unc_m_cas_count.rd": 200}


@pytest.mark.parametrize(
    ("rows", "capability", "said"),
    [
        (["23;;fp_ret_sse_avx_ops.all"], None, ["fp_ret_sse_avx_ops.all", "zen2-fp64"]),
        (["23;;fp_ret_sse_avx_ops.all"], "zen2", ["fp_ret_sse_avx_ops.all", "zen2-fp32"]),
        (["23;;fp_ret_sse_avx_ops.all"], "zen2-fp64", []),
        (["23;;dp_spec", "9;;instructions"], None, ["dp_spec", "neoverse-n1"]),
        (["23;;instructions"], "skylake", []),
        (["23;;fp_ret_sse_avx_ops.all", "9;;branches"], "skylake", ["fp_ret_sse_avx_ops.all", "zen4-fp64"]),
    ],
)
def test_what_was_counted_and_not_used_is_named_with_what_would_use_it(tmp_path, rows, capability, said):
    path = tmp_path / "perf.csv"
    path.write_text(cpus(*rows))
    warnings = eprof.load(path, capability=capability, cache=False).energy("i7-950").warnings
    unused = [warning for warning in warnings if warning.startswith("Counted, and not used")]
    assert len(unused) == bool(said)
    assert all(word in unused[0] for word in said)


@pytest.mark.parametrize(
    "row",
    [
        "12,sgemm,input0,kernel,500,600,8.15,34.3",  # a table of measured power
        "39,cachebench,input000,benchmark_int,405,877,38.15",
        "1.5,,power_w,1000,101.25",
        "2024,07,node1,9000,612.50",
    ],
)
def test_tables_of_power_are_no_output_of_perf(row):
    head = b"bench_id,bench_name,arg_set,core_mhz,mem_mhz,power_w\n"
    assert SIGNS.reader_of(head + row.encode() + b"\n") is None
    assert SIGNS.reader_of(b"12,Joules,power/energy-pkg/,1000,100.00,,\n") == "reader"
    assert SIGNS.reader_of(b"12;;instructions;1000;99.50;;\n") == "reader"


@pytest.mark.skipif(not (SHARED / "power").is_dir(), reason="no shared data")
def test_measured_tables_are_no_output_of_perf():
    tables = sorted((SHARED / "power").glob("nvdvfs*.csv"))
    assert tables and not any(SIGNS.reader_of(path.read_bytes()[: 1 << 20]) for path in tables)


_PASTED = " 1,234,567 cycles\n 2,345,678 instructions  # 1.90 insn per cycle\n"


def test_rows_that_were_pasted_without_a_header_are_read(read):
    _, time_s, counters = only(read("a program\n 12 apples\n" + _PASTED + " 7 cache-misses\n"))
    assert counters == {"cycles": 1234567, "instructions": 2345678, "cache-misses": 7} and math.isnan(time_s)
    _, time_s, _ = only(read(_PASTED + "\n 2.500000000 seconds time elapsed\n"))
    assert time_s == 2.5


def test_rows_of_cores_without_a_header_are_read(read):
    """With blanks in the numbers, as some languages have, and a comma before decimals."""
    rows = [
        f"S0-D0-C{core}   2   3 426 8{core}1  cycles:u   (66,67%)\nS0-D0-C{core}   2   46 061  instructions  # 12,62 of it (66,68%)"
        for core in (0, 1)
    ]
    _, _, counters = only(read("\n".join(rows) + "\n"))
    assert counters["cycles"] == 3426801 + 3426811 and counters["instructions"] == 2 * 46061


@pytest.mark.parametrize("sep", [",", "’", ".", "\u202f", " ", "'"])
@pytest.mark.parametrize("first", ["cpu-cycles", "CPU-Cycles:u", "minor-faults", "LLC-prefetches"])
def test_rows_without_a_header_may_have_any_group_sign_and_begin_with_any_event_of_perf(read, sep, first):
    rows = f"5 shops\n  12,345,678 {first} (80.00%)\n 9,876 LLC-loads\n 1,234,567 FP_ARITH_INST_RETIRED.SCALAR_DOUBLE\n"
    event = first.lower().removesuffix(":u")
    _, _, counters = only(read(rows.replace(",", sep)))
    counts = {event: 12345678.0, "llc-loads": 9876.0, "fp_arith_inst_retired.scalar_double": 1234567.0}
    assert {name: counters.get(name) for name in counts} == counts | ({event: None} if "faults" in first else {})
    assert "shops" not in counters


def test_loads_that_missed_the_last_cache_are_at_least_what_dram_gave(tmp_path):
    """258,650,191 lines of 64 B; prefetches, stores and what was written back are not among them."""
    rows = "".join(
        f"  {number}  {event}\n"
        for number, event in [("258,650,191", "LLC-load-misses"), ("1,000,000", "cycles"), ("900,000", "instructions")]
    )
    path = tmp_path / "perf.txt"
    path.write_text(f" Performance counter stats for './a':\n\n{rows}\n       0.500000000 seconds time elapsed\n\n")
    counts = eprof.load(path, cache=False).counts()
    assert counts.amounts["dram_read"].tolist() == [258650191 * 64]
    assert counts.amount_marks["dram_read"].tolist() == [int(Mark.MISSING)]


def test_joules_without_a_header_are_measured_energy(tmp_path, read):
    """As French perf prints them: a blank between groups of digits, a comma before decimals."""
    joules = (
        " 1 005,25 Joules power/energy-pkg/\n 11,75 Joules power/energy-ram/\n\n 10,500000000 seconds time elapsed\n"
    )
    read("make\n" + joules)
    measured = eprof.load(tmp_path / "perf.log").energy().measured
    assert (measured.joules, measured.seconds) == (pytest.approx(1017.0), 10.5)


def test_some_widths_of_vectors_are_at_least_so_many_flops(read, tmp_path):
    header = " Performance counter stats for './a':\n\n 900 cycles\n"
    read(header + " 7 fp_arith_inst_retired.scalar_double\n 5 fp_arith_inst_retired.256b_packed_double\n")
    counts = eprof.load(tmp_path / "perf.log").counts()
    assert [counts.amounts[word][0] for word in ("fp64", "fp64_narrow", "fp64_scalar")] == [7 + 4 * 5, 7, 7]
    assert [int(counts.amount_marks[word][0]) & 1 for word in ("fp64", "fp64_narrow", "fp64_scalar")] == [1, 1, 0]
    assert np.isnan(counts.amounts["fp32"][0])


def test_flops_that_are_among_others_count_once_in_words(read, tmp_path, eprof_here):
    rows = "3,000,000 fp_arith_inst_retired.scalar_double # 1 GFLOPs\n 2,000,000 fp_arith_inst_retired.256b_packed_double\n"
    read(f" Performance counter stats for './a':\n\n {rows}")
    said = " ".join(eprof_here("report", "perf.log").stdout.split())
    assert "Little but FP64 was counted (at least 11.0 Mflop)" in said.replace("\u202f", " ")
    assert "the rest of FP64" in said and "of these FP64 flops" not in said


_OF_CPU = " 40 fp_arith_inst_retired.scalar_double {}\n 70 l2_rqsts.miss\n"


@pytest.mark.parametrize(
    "more, elapsed", [("# 1.3 GFLOPs", ""), ("# 0.5 % of it", ""), ("", "\n 2.5 seconds time elapsed\n")]
)
def test_rows_of_a_processors_own_events_without_a_header_are_read(read, more, elapsed):
    _, time_s, counters = only(read("a program\n" + _OF_CPU.format(more) + elapsed))
    assert counters == {"fp_arith_inst_retired.scalar_double": 40, "l2_rqsts.miss": 70}
    assert time_s == 2.5 if elapsed else math.isnan(time_s)
    assert SIGNS.reader_of(_OF_CPU.format("").encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        _PASTED.split("\n")[1] + "\n",
        _PASTED.replace("#", "="),
        "12 cycles\n13 instructions\n",
        _PASTED.replace("ins", "s"),
    ],
)
def test_numbers_that_a_program_printed_are_no_rows_of_perf(text):
    assert SIGNS.reader_of(text.encode()) is None


@needs_data
@pytest.mark.parametrize("path", [path for path in REAL if "text" in path.name], ids=lambda path: path.name)
def test_a_real_log_without_its_header_has_the_same_counts_or_is_none(path, read):
    text = path.read_text()
    bare = re.sub(r"(?m)^.*Performance counter stats for.*\n|^.* counts unit events.*\n", "", text)
    if path in NO_COUNTERS or text.count("stats for") != 1 or SIGNS.reader_of(bare.encode()) is None:
        pytest.skip("several runs, or too few rows")
    whole, part = ([each[2] for each in rows_of(read(one))] for one in (text, bare))
    assert whole == part


_CLOCK = " 8,000.00 msec {} {}\n"
_BUSY = {
    "twice": ("'./a'", _CLOCK.format("task-clock", "") + _CLOCK.format("task-clock:u", ""), 4.0),
    "not counted": ("'./a'", " <not counted> msec task-clock\n", 1.5),
    "nested": ("'system wide'", _CLOCK.format("task-clock", "a") + _CLOCK.format("task-clock", "a/b"), 4.0),
    "all CPUs": ("'system wide'", _CLOCK.format("task-clock", ""), None),
}


@pytest.mark.parametrize("case", _BUSY)
def test_busy_cores_are_the_programs_processor_time_once(case, read):
    command, clocks, cores = _BUSY[case]
    of_cgroup = "a/b" if case == "nested" else ""
    counted = f" 8,000,000,000 instructions {of_cgroup}\n"
    user = "\n 2.5 seconds user\n 0.5 seconds sys\n" if command == "'./a'" else ""
    text = (
        f"\n Performance counter stats for {command}:\n\n{clocks}{counted}\n 2.000000000 seconds time elapsed\n{user}"
    )
    _, _, counters = only(read(text))
    assert counters.get("cores in use") == (None if cores is None else pytest.approx(cores))


def test_a_clock_without_a_unit_is_in_ns_as_the_kernel_counts_it(read):
    clock = "     9,000,000,000      task-clock:u    #    0.900 CPUs utilized\n"
    text = f" Performance counter stats for './a':\n\n{clock}  48,000,000,000      instructions:u\n"
    _, time_s, counters = only(read(text))
    assert time_s == pytest.approx(10.0)
    assert counters["cores in use"] == pytest.approx(0.9)
    older = text.replace("9,000,000,000 ", "9000.500000 ")  # ms, before they were named
    assert only(read(older))[1] == pytest.approx(10.0, rel=1e-3)


_BLOCK = "  1,000.00 msec task-clock # 1.000 CPUs utilized\n  2,000,000,000 cycles\n  {} instructions\n"


@pytest.mark.parametrize("between", ["\n", "\n  1.000000000 seconds time elapsed\n\n"])
def test_rows_that_begin_again_are_another_run_whose_header_was_left_out(read, between):
    header = " Performance counter stats for './a':\n\n"
    rows = rows_of(read(header + _BLOCK.format("3,000,000,000") + between + _BLOCK.format("4,000,000,000")))
    assert [(kernel, time_s) for kernel, time_s, _ in rows] == [("./a", 1.0)] * 2
    assert [counters["instructions"] for *_, counters in rows] == [3e9, 4e9]
    assert [counters["cores in use"] for *_, counters in rows] == [1.0] * 2
    # Groups of events of one run may name one twice, in one piece.
    twice = header + _BLOCK.format("3,000,000,000") + "  2,000,000,000 cycles  (50.00%)\n"
    assert only(read(twice))[2]["cycles"] == 2e9


_HOW = "the processor's energy counters, in the log of perf"


def test_joules_that_one_run_could_not_have_are_told_of_the_other(eprof_here, tmp_path):
    """A program's run has no joules of packages (only `-a` has): 43.26 J in 1.001041336 s are 43.215 W."""
    text = """
 Performance counter stats for 'sleep 1':

   <not supported> Joules power/energy-pkg/
         1,990,524      cycles

 Performance counter stats for 'system wide':

             43.26 Joules power/energy-pkg/
   143,313,550,461        cycles

       1.001041336 seconds time elapsed
"""
    (tmp_path / "perf.txt").write_text(text)
    said = " ".join(eprof_here("report", tmp_path / "perf.txt").stdout.split())
    told = "43.26 J of processor packages in 1.00104 s, 43.215 W ({}), of system wide alone, for sleep 1 has none."
    assert f"Measured: {told.format(_HOW)}" in said
    assert "predicted" not in said.replace("no energy is predicted", ""), "no other CPU's prices beside joules"
    eprof_here("report", tmp_path / "perf.txt", "-o", tmp_path / "r.json")
    again = " ".join(eprof_here("report", tmp_path / "r.json").stdout.split())
    assert "predicted" not in again.replace("no energy is predicted", "") and "43.26 J" in again


def test_joules_of_some_runs_are_not_those_of_all(read, tmp_path):
    header = " Performance counter stats for 'system wide':\n\n"
    joules = header + "  100.00 Joules power/energy-pkg/\n\n  10.000000000 seconds time elapsed\n\n"
    counted = header + "  48,000,000,000 instructions\n\n  10.000000000 seconds time elapsed\n"
    read(joules + counted.replace("'system wide'", "'./a'"))
    energy = eprof.load(tmp_path / "perf.log").energy()
    assert energy.measured is None and energy.energy_j is None, "no other CPU's prices beside joules"
    told = "100 J of processor packages in 10 s, 10 W ({}), of system wide alone, for ./a has none."
    assert f"Measured: {told.format(_HOW)}" in energy.warnings
    with pytest.raises(MeterError, match="a meter saw only some of its functions"):
        eprof.load(tmp_path / "perf.log").energy(to_meter=True)
    # Runs of the same with other events are passes over it.
    assert len(read(joules + counted).tables) == 2
    energy = eprof.load(tmp_path / "perf.log").energy()
    assert (energy.measured.joules, energy.measured.seconds) == (100.0, 10.0)
    read(joules + joules.replace("100.00", " 50.00"))
    assert eprof.load(tmp_path / "perf.log").energy().measured.joules == 150.0


_HYBRID = """ Performance counter stats for {}:

  10,000,000,000      cpu_atom/instructions/u   #  1.0  insn per cycle  ({}%)
  40,000,000,000      cpu_core/instructions/u   #  2.0  insn per cycle  ({}%)
   <not counted>      cpu_lowpower/instructions/u                       (0.00%)

       1.000000000 seconds time elapsed
"""


@pytest.mark.parametrize(
    ("command", "shares", "expected"),
    [
        ("'./a'", ("20.00", "80.00"), 34e9),  # 2e9 of 0.2 s and 32e9 of 0.8 s
        ("'./a'", ("10.00", "40.00"), 34e9),  # as often counted as not
        ("'system wide'", ("20.00", "80.00"), 50e9),
        ("'CPU(s) 0-15'", ("20.00", "80.00"), 50e9),
        ("'./a'", ("100.00", "63.00"), 50e9),
        ("'./a'", ("0.00", "100.00"), 40e9),
        ("'./a'", ("60.00", "80.00"), 38e9),  # of several threads, as perf has them: 6e9 and 32e9
    ],
)
def test_kinds_of_cores_that_a_program_runs_on_in_turn_are_not_added_up(command, shares, expected, read):
    log = read(_HYBRID.format(command, *shares))
    assert only(log)[2]["instructions"] == pytest.approx(expected)
    told = [note for note in log.notes if "perf's own sums, scaled up, are up to 32% more" in note]  # 50e9 / 38e9
    assert len(told) == (shares == ("60.00", "80.00")), "of a thread that moves, perf's scaling is wrong beyond doubt"


_SCALED = """$ perf stat -e instructions perf test -F 10
 Performance counter stats for 'perf test -F 10':

         87,896,447      cpu_atom/instructions/                       (14.37%)
         98,171,964      cpu_core/instructions/                       (85.63%)

$ perf stat --no-scale -e instructions perf test -F 10
 Performance counter stats for 'perf test -F 10':

         13,069,890      cpu_atom/instructions/                       (19.32%)
         83,460,274      cpu_core/instructions/                       (80.68%)
"""


def test_counts_of_a_command_that_says_no_scale_are_what_was_counted(read):
    """perf made 87,896,447 of 14.37 % of them, so that 12.63 M and 84.06 M add up; of the second run it made nothing.

    An event that was on in a fifth of the time is then as much more as where perf scales.
    """
    scaled, unscaled = (counters["instructions"] for *_, counters in rows_of(read(_SCALED)))
    assert scaled == pytest.approx(0.1437 * 87896447 + 0.8563 * 98171964)
    assert unscaled == pytest.approx(13069890 + 83460274)
    text = "$ perf stat {}-e cycles ./a\n Performance counter stats for './a':\n\n  1,000 cycles  (20.00%)\n"
    assert [only(read(text.format(option)))[2]["cycles"] for option in ("", "--no-scale ")] == [1000, 5000]
    both = [" ".join(read(text.format(option)).notes) for option in ("", "--no-scale ")]
    assert "scaled up by perf, so" in both[0] and "scaled up, so" in both[1]


def test_modifiers_inside_of_the_unit_of_a_hybrid_cpu_are_no_part_of_the_name(read):
    inside = _HYBRID.replace("instructions/u ", "instructions:u/")
    log = read(inside.format("'./a'", "20.00", "80.00"))
    assert only(log)[2]["instructions"] == pytest.approx(34e9)
    assert any("only user space" in note for note in log.notes)
    assert "instructions" not in only(read(inside.replace(":u/", ":k/").format("'./a'", "20.00", "80.00")))[2]


def test_what_cores_did_in_turn_is_of_the_time_there_of_the_event_that_ran_longest(read):
    """Cycles of the one kind were counted in 40 % of the time, of 80 % that the program spent there."""
    cycles = (
        "  30,000,000,000      cpu_core/cycles:u/  (40.00%)\n  10,000,000,000      cpu_atom/cycles:u/  (20.00%)\n\n"
    )
    text = _HYBRID.format("'./a'", "20.00", "80.00").replace("\n\n       1.0", f"\n{cycles}       1.0")
    assert only(read(text))[2]["cycles"] == pytest.approx(26e9)


def test_channels_that_were_counted_in_turn_are_added_up(read):
    channels = "".join(f"  1,000,000      uncore_imc_{number}/x/  (50.00%)\n" for number in range(2))
    text = f" Performance counter stats for './a':\n\n  5,000 instructions\n{channels}\n  1.0 seconds time elapsed\n"
    assert only(read(text))[2]["uncore_imc/x/"] == 2e6


# ------------------------------------------------------------------------------------------------ as others paste them


def test_a_command_may_stand_on_several_lines(read):
    text = (
        " Performance counter stats for 'python3 -c import numpy\n"
        "print(numpy.ones(3))':\n\n"
        "       1,000,000      cycles\n"
        "       2,000,000      instructions\n\n"
        "       0.5 seconds time elapsed\n"
    )
    kernel, time_s, counters = only(read(text))
    assert kernel == "python3 -c import numpy print(numpy.ones(3))"
    assert (time_s, counters["cycles"], counters["instructions"]) == (0.5, 1e6, 2e6)


def test_a_header_without_counts_below_it_is_told(read):
    with pytest.raises(LogError, match="no line below its header is a count"):
        read(" Performance counter stats for './a':\n\n$ exit\n")


@pytest.mark.parametrize("ahead", ["{}", "  {:3}", "> {:02}"])
def test_listings_whose_lines_are_numbered_are_read_as_far_as_the_numbers_go_on(read, ahead):
    lines = ["", "Performance counter stats for './a':", "", " 1,666,805  cycles:u  (96.40%)", "  30  instructions", ""]
    lines += ["  7.5 seconds time elapsed", ""]
    numbered = [f"{ahead.format(number)} {line}" for number, line in enumerate(lines, start=97)]
    kernel, time_s, counters = only(read("\n".join(numbered) + "\n"))
    assert (kernel, time_s, counters["cycles"], counters["instructions"]) == ("./a", 7.5, 1666805, 30)
    del numbered[2]
    with pytest.raises(LogError, match="no line below its header is a count"):
        read("\n".join(numbered) + "\n")


@pytest.mark.parametrize("sockets", [1, 2])
def test_joules_without_a_time_tell_watts_by_how_long_they_were_counted(read, sockets):
    """On each package the counter runs for the time of the run, however many there are: 88.4 J in 10 s of one."""
    row = '{{"counter-value" : "{}", "unit" : "Joules", "event" : "power/energy-{}/", "event-runtime" : {}}}\n'
    joules = "".join(row.format(88.4 * sockets, name, 10_000_000_000 * sockets) for name in ("pkg", "cores"))
    notes = read(joules).notes
    assert any(
        f"each package drew 8.84 W, as its joules were counted for {10 * sockets} s in all" in note for note in notes
    )
    timed = read(
        f"# started on Mon\n{joules}" + '{"counter-value" : "9", "event" : "duration_time", "event-runtime" : 9}\n'
    )
    assert not any("each package drew" in note for note in timed.notes)


@pytest.mark.parametrize(("unit", "joules"), [("      ", 2.0), ("Joules", 2.0**33)])
def test_energy_without_a_unit_is_what_rapl_counted(read, unit, joules):
    text = f" Performance counter stats for 'system wide':\n\n  {2**33:,} {unit} power/energy-pkg/\n\n  1.000000000 seconds time elapsed\n"
    ((_, _, counters),) = rows_of(read(text))
    assert list(counters.values()) == [joules]


@pytest.mark.parametrize(
    "row",
    [
        "S0-D0-C0  1     3.5 Joules power/energy-pkg/\nS0-D0-C1  0  <not counted> Joules power/energy-pkg/",
        "S0-D0-C0,1,3.5,Joules,power/energy-pkg/,1000000000,100.00,,\n"
        "S0-D0-C1,0,<not counted>,Joules,power/energy-pkg/,0,100.00,,",
    ],
)
def test_cores_on_which_nothing_counts_an_event_lack_nothing(read, row):
    text = f" Performance counter stats for 'system wide':\n\n{row}\n\n  1.000000000 seconds time elapsed\n"
    ((_, _, counters),) = rows_of(read(text))
    assert 3.5 in counters.values()


def test_what_cores_take_of_a_package_is_told(read):
    text = (
        " Performance counter stats for 'system wide':\n\n"
        "  20.00 Joules power/energy-pkg/\n  5.00 Joules power/energy-cores/\n\n  2.000000000 seconds time elapsed\n"
    )
    log = read(text)
    assert any("of the 20 J of packages 25 % are their cores' (5 J)" in note for note in log.notes)


def test_what_packages_take_of_the_whole_platform_is_told(read):
    joules = {"ram": "8.00", "pkg": "12.50", "psys": "50.00"}
    text = "".join(f"  {number} Joules power/energy-{name}/\n" for name, number in joules.items())
    log = read(f" Performance counter stats for 'system wide':\n\n{text}\n  5.000000000 seconds time elapsed\n")
    assert any("of the 50 J of the whole platform 25 % are the packages' (12.5 J)" in note for note in log.notes)
    assert rows_of(log)[0][2] == {"processor packages and DRAM": 20.5}


@pytest.mark.parametrize("event", ["power_core/energy-core/", "power_per_core/energy-per-core/"])
def test_joules_of_each_core_of_an_amd_are_added_up(read, event):
    rows = "".join(
        f"S0-D0-C{core}  1  {joules} Joules {event}\n" for core, joules in enumerate(("0.00", "8.43", "1.00"))
    )
    ((_, _, counters),) = rows_of(read(f" Performance counter stats for 'system wide':\n\n{rows}"))
    assert counters == {"processor cores": pytest.approx(9.43)}


@pytest.mark.parametrize(
    ("joules", "said"), [("0,05", "is 0.045 to 0.055 J"), ("0,21", ""), ("12,74", ""), ("0,00", "is 0 to 0.005 J")]
)
def test_joules_of_a_few_units_of_the_last_digit_have_an_interval(read, joules, said):
    row = f"  {joules} Joules power/energy-pkg/\n"
    log = read(f" Performance counter stats for 'system wide':\n\n{row}\n  0,000869161 seconds time elapsed\n")
    notes = [note for note in log.notes if "decimals that perf printed" in note]
    assert len(notes) == bool(said) and all(said in note for note in notes)


def test_a_quote_before_csv_is_no_place(read):
    row = "2000.00,msec,task-clock:u,2000000000,100.00,1.000,CPUs utilized\n9000,,cycles:u,2000000000,100.00,,\n"
    ((_, _, plain),) = rows_of(read(row))
    ((_, _, quoted),) = rows_of(read(f'data = """{row}'))
    assert quoted == plain and plain["cores in use"] == 1


def test_instructions_by_the_number_of_arms_event(tmp_path):
    log = tmp_path / "arm.txt"
    log.write_text(
        " Performance counter stats for './a':\n\n"
        "  3,000  armv8_pmuv3_0/event=0x08/\n  9,000  armv8_pmuv3_0/event=0x11/\n\n  0.5 seconds time elapsed\n"
    )
    counts = eprof.load(log).energy().document()["counts"]
    assert (counts["retired"]["value"], counts["core_active"]["value"]) == (3000, 9000)


@pytest.mark.parametrize(("sys_s", "said"), [("2.0", True), ("0.2", False)])
def test_much_time_in_the_kernel_is_told(read, sys_s, said):
    log = read(
        " Performance counter stats for './a':\n\n  3,000  cycles:u\n\n  2.5 seconds time elapsed\n\n"
        f"  0.5 seconds user\n  {sys_s} seconds sys\n"
    )
    assert said == any("80 % of the processor time ran in the kernel" in note for note in log.notes)
    # What is in no count then bears on all numbers, so the first screen says so.
    assert said == any(note.startswith("Totals: only user space was counted") for note in log.notes)


ABOVE = """  5,491,605,997 cycles        #    3.409 GHz              [40.18%]
  8,644,643,951 instructions  #    1.57  insns per cycle  [50.89%]

    1.614165346 seconds time elapsed

"""
BELOW = " Performance counter stats for './b':\n\n  3,000 cycles\n  4,000 instructions\n\n  2.0 seconds time elapsed\n"


@pytest.mark.parametrize(
    ("label", "advised"),
    [
        ("'CPU(s) 0'", "`perf stat -C 0 -e cycles,instructions PROGRAM`; {} callgrind PROGRAM`"),
        ("'system wide'", "`perf stat -e cycles,instructions PROGRAM`; {} callgrind PROGRAM`"),
        ("process id '812'", "`perf stat -e cycles,instructions PROGRAM`; {} callgrind PROGRAM`"),
        ("'./a 5'", "`perf stat -e cycles,instructions ./a 5`; {} callgrind ./a 5`"),
    ],
)
def test_what_perf_says_in_place_of_a_command_is_no_program(label, advised, read):
    """A machine-wide counter of a POWER9, on CPU 0."""
    text = f" Performance counter stats for {label}:\n\n  21,431,546  hv_24x7/pm_pb_cyc,chip=0/ # 5.4 GHz x\n"
    with pytest.raises(LogError) as told:
        read(text.replace("hv_24x7/pm_pb_cyc,chip=0/", "page-faults"))
    assert advised.format("where these cannot be counted, `eprof run --profiler") in str(told.value)
    counted = text + "  1,000 cycles\n  2,000 instructions\n"
    assert read(counted).command == ("./a 5" if "./a" in label else None)


@pytest.mark.parametrize(
    ("places", "said"),
    [(("", ""), "177 J at most in each socket (14 to 176 W)"), (("S0 8 ", "S1 8 "), "354 J at most (2 sockets of 14")],
)
def test_constant_power_is_bounded_where_sockets_are_told(places, said, read):
    """176 W in 1.00645 s are 177 J; of how many sockets 224 CPUs are, nothing tells."""
    rows = "".join(f"{place}  225,904.82 msec cpu-clock  # 224.457 CPUs utilized\n" for place in places)
    rows += "".join(f"{place}  <not supported>  cycles\n" for place in places)
    text = f" Performance counter stats for 'system wide':\n\n{rows}\n  1.006450000 seconds time elapsed\n"
    with pytest.raises(LogError) as told:
        read(text)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("cycles", "task_ms", "said"),
    [
        ("814,886,355      cycles:u", "11,112.19", "At least 82 % of the processor time ran in the kernel"),
        ("814,886,355      cycles:u", "1,112.19", None),  # 0.73 GHz
        ("814,886,355      cycles", "11,112.19", None),
    ],
)
def test_cycles_of_user_space_below_any_clock_tell_time_in_the_kernel(cycles, task_ms, said, read):
    """814,886,355 cycles take 2.04 s at 400 MHz, 18 % of 11.112 s."""
    text = f""" Performance counter stats for 'perf bench sched pipe' (10 runs):

       {cycles}                  #    0.073 GHz                      ( +-  1.79% )
        82,724,139      instructions:u            #    0.10  insn per cycle           ( +-  0.00% )
         {task_ms} msec task-clock:u              #    0.996 CPUs utilized            ( +-  0.18% )

           11.1575 +- 0.0207 seconds time elapsed  ( +-  0.19% )
"""
    notes = read(text).notes
    assert [note.partition(":")[0] for note in notes if "ran in the kernel" in note] == [said] * bool(said)
    assert any(note.startswith("Totals: only user space") for note in notes) == bool(said)


def test_rows_above_the_first_header_are_a_run_too(read):
    above, below = rows_of(read(ABOVE + BELOW))
    assert above[1] == 1.614165346 and above[2]["cycles"] == 5491605997 and above[2]["instructions"] == 8644643951
    assert (below[0], below[1], below[2]["cycles"]) == ("./b", 2.0, 3000)
    # A single row, or rows of anything else, are none.
    assert rows_of(read("  12 cycles\n  13 apples # 4.0 %\n" + BELOW)) == rows_of(read(BELOW))


def test_a_header_and_rows_that_mail_wraps_are_read(read):
    text = """  Performance counter stats for 'numactl -m 0 map' (10
runs):

     16,977,242,482      cycles                    #    3.112 GHz
                ( +-  0.04% )  (35.70%)
      1,038,327,182      instructions              #    0.06  insn per cycle
                                                   #    0.04  stalled
cycles per insn  ( +-  0.38% )  (35.75%)
            350,730      branch-misses             #    0.16% of all
branches          ( +-  1.18% )  (35.75%)

             5.4567 +- 0.0300 seconds time elapsed  ( +-  0.55% )
"""
    log = read(text)
    ((kernel, time_s, counts),) = rows_of(log)
    assert (kernel, time_s) == ("numactl -m 0 map", 5.4567)
    assert (counts["cycles"], counts["instructions"]) == (16977242482, 1038327182)
    assert [counts[name + RUNNING] for name in ("cycles", "instructions", "branch-misses")] == [35.70, 35.75, 35.75]
    assert any("means over the runs" in note for note in log.notes)


def test_events_of_ibm_tell_a_cpu_that_no_prices_are_of(eprof_here, tmp_path):
    """Neither an Intel's prices nor `eprof run`, which counts on no POWER."""
    (tmp_path / "log.txt").write_text(
        " Performance counter stats for './tlbie -i 10':\n\n     4,198,594,519      cycles\n"
        "     2,458,254,252      instructions\n     3,004,031,488      PM_EXEC_STALL\n\n"
        "       1.029206442 seconds time elapsed\n"
    )
    said = " ".join(eprof_here("report", "log.txt").stdout.split())
    assert "IBM POWER" in said and "2.46 G instructions" in said, said
    assert "No cost table is made for this CPU, so no energy is predicted." in said
    assert "Ice Lake" not in said and "eprof run" not in said and "calibrate" not in said
    split = " ".join(eprof_here("report", "log.txt", "--energy", "100J", "--costs", "icelake-sp").stdout.split())
    assert "100 J metered in 1.03 s" in split.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("cpuid", "cpu"),
    [
        ("IBM,3931,704,A01,3.7,002f", "IBM Z"),
        ("GenuineIntel-6-55-4", "skylake-sp"),  # 0x55 is 85
        ("AuthenticAMD-25-61-2", "zen4"),  # 0x61 is 97
        ("0x00000000413fd0c1", "neoverse-n1"),  # 0x41, and 0xd0c behind the variant and the architecture
        ("GenuineIntel-6-FF-1", None),
    ],
)
def test_perfs_number_of_the_cpu_tells_which_one_it_is(cpuid, cpu, read):
    text = f"> Using CPUID {cpuid}\n> \n>  Performance counter stats for 'CPU(s) 0':\n> \n>     357,023      cycles\n"
    assert read(text).device == cpu


def test_prices_of_other_architectures_are_not_those_of_an_ibm_z(eprof_here, tmp_path):
    text = "Using CPUID IBM,3931,704,A01,3.7,002f\n Performance counter stats for 'CPU(s) 0':\n\n"
    (tmp_path / "log.txt").write_text(f"{text}  357,023  cpu_cycles\n\n  0.002454995 seconds time elapsed\n")
    said = " ".join(eprof_here("report", "log.txt").stdout.split())
    assert "IBM Z" in said and "No cost table is made for this CPU" in said
    assert "Ice Lake" not in said and "eprof run" not in said and "neoverse" not in said


def test_flops_that_were_not_counted_did_not_run_over(read):
    """As on the cores of a hybrid processor that have no such event, or in virtual machines."""
    log = read(cpus(f"<not counted>;;{FP}", "4000000000;;instructions"))
    assert only(log)[2] == {"instructions": 4e9} and log.tables[0].counters.names == (FP, "instructions")


def test_a_row_that_one_of_two_runs_lost_makes_their_sum_a_lower_bound(read, tmp_path):
    """Of 2 runs on 3 CPUs, one lacks a row: 100 + 101 + 102 and 100 + 102 branches; nothing was scaled up."""
    rows = [f"CPU{cpu};{100 + cpu};;{event}" for event in ("instructions", "branches") for cpu in range(3)]
    read(cpus(*rows) + cpus(*rows[:4], *rows[5:]))
    counts = eprof.load(tmp_path / "perf.log").counted[0].launches
    marks = counts.marked_by_part().marks
    assert (counts.counters["branches"][0], int(marks["branches"][0])) == (505, Mark.MISSING)
    assert (counts.counters["instructions"][0], int(marks["instructions"][0])) == (606, 0)


def test_intervals_with_a_comma_before_decimals_have_a_time_each(read):
    log = read(INTERVALS.replace("1.0001", "1,0001").replace("2.0002", "2,0002"), parts=INTERVAL)
    assert log.tables[0].rows.part.texts().astype(float).tolist() == [1.0001, 2.0002]


# ------------------------------------------------------------------------------------- what is cut off, or comes again

_OF_ALL = "\n Performance counter stats for 'system wide':\n\n"
_FIRST = f"{_OF_ALL}        1,000      instructions\n      6.00 Joules power/energy-pkg/\n\n 2.000000000 seconds time elapsed\n"


def measured(read, text):
    """What a meter saw of a log, by the profile."""
    path = read(text).path
    return eprof.load(path).energy(costs="none").measured


def test_a_run_whose_end_is_lost_is_named_and_left_out_and_joules_are_not_scaled(read):
    """The first run has 6 J in 2 s: 3 W. Of the second only the first row is there."""
    text = f"{_FIRST}{_OF_ALL}        3,000      instructions\n"
    _, time_s, counters = only(read(text))
    assert time_s == 2 and counters["instructions"] == 1000
    assert any("a further run is cut off behind 1 of 2 rows" in note for note in read(text).notes)
    meter = measured(read, text)
    assert (meter.joules, meter.seconds) == (6, 2)


def test_runs_of_csv_behind_other_lines_are_runs_and_one_cut_within_a_row_is_named(read):
    of_run = "{},,instructions,9,100.00\n{},Joules,power/energy-pkg/,9,100.00\n2000.00,msec,cpu-clock,9,100.00,1.000,CPUs utilized\n"
    whole = f"{of_run.format(700, '5.00')}\n$ perf stat -x, b\n{of_run.format(900, '4.00')}"
    assert sum(row[2]["instructions"] for row in rows_of(read(whole))) == 1600
    assert measured(read, whole).joules == 9
    cut = read(whole.partition("4.00")[0] + "4.0\n")
    assert only(cut)[2]["instructions"] == 700
    assert any("behind 1 of 3 rows" in note for note in cut.notes)


def test_joules_of_a_run_without_time_make_no_mean_power(read):
    meter = measured(read, f"{_FIRST}{_OF_ALL}        3,000      instructions\n      1.00 Joules power/energy-pkg/\n")
    assert meter.joules == 7 and meter.seconds is None


@pytest.mark.parametrize(
    ("before", "times", "seconds"),
    [
        ("", (101.5, 102.0, 102.5), 1.5),
        ("$ perf stat -I 500\n", (101.5,), 0.5),
        ("", (0.5, 1.0), 1.0),
        ("", (1.1, 2.1), 2.1),
    ],
)
def test_the_time_of_intervals_begins_where_the_first_of_them_begins(read, before, times, seconds):
    rows = "".join(f"     {time:.9f}        1,000      cycles\n" for time in times)
    text = f"{before}#           time             counts unit events\n{rows}"
    assert only(read(text))[1] == pytest.approx(seconds)
    each_s = [row[1] for row in rows_of(read(text, parts=INTERVAL))]
    assert sum(each_s) == pytest.approx(seconds)


def test_a_single_interval_of_which_nothing_tells_the_step_begins_with_perf(read):
    text = "#           time             counts unit events\n     1.000100000         4000000000      instructions\n"
    (row,) = read(text).tables[0].rows.time_s.tolist()
    assert row == pytest.approx(1.0001)


def test_a_summary_behind_intervals_of_csv_is_no_further_run(read):
    text = "     1.000000000,300,,cycles,9,100.00\n     2.000000000,400,,cycles,9,100.00\n700,,cycles,9,100.00\n"
    assert only(read(text))[1:] == (2, {"cycles": 700})


def test_cycles_of_a_cgroup_are_cycles(read):
    text = f"{_OF_ALL}  1,000 cycles     test      ( +- 1.00% )\n   500 instructions   test # 0.5 insn per cycle\n"
    assert only(read(text))[::2] == ("test", {"cycles": 1000, "instructions": 500})


def test_joules_of_dram_beside_those_of_cores_are_measured_too(read):
    text = f"{_OF_ALL} 1.50 Joules power/energy-cores/\n 0.25 Joules power/energy-ram/\n\n 2.000000000 seconds time elapsed\n"
    meter = measured(read, text)
    assert (meter.joules, meter.covers) == (1.75, "processor cores and DRAM")


def test_joules_of_a_list_of_cores_that_is_cut_are_told_as_the_least(read):
    rows = "".join(
        f"S0-D0-C{core}  1  {joules} Joules power_core/energy-core/\n" for core, joules in enumerate((1.5, 2))
    )
    with pytest.raises(LogError, match=r"a meter saw at least 3\.5 J of processor cores"):
        read(f"{_OF_ALL}{rows}S0-D0-C2    1   \n")


def test_of_several_meters_the_one_that_saw_most_is_told(read):
    other = f"{_OF_ALL} 1.50 Joules power/energy-cores/\n\n 2.000000000 seconds time elapsed\n"
    assert measured(read, f"{_FIRST}{other}").joules == 6


def test_lines_that_mail_wrapped_are_whole_again(read):
    """Kinds of cores in turn, 20 and 80 % of the time: 100 x 0.2 + 200 x 0.8 = 180."""
    rows = "".join(
        f"{f'            {number}      {unit}/instructions/':75}({share[0]}"[-75:] + f"=\n{share[1:]}%)\n"
        for number, unit, share in ((100, "cpu_atom", "20.00"), (200, "cpu_core", "80.00"))
    )
    assert {len(line) for line in rows.splitlines() if line.endswith("=")} == {76}
    assert only(read(f" Performance counter stats for 'a':\n\n{rows}"))[2]["instructions"] == 180


def test_what_perf_printed_in_comments_of_a_script_is_read(read):
    lines = f"{_FIRST}".replace("\n", "\n# ")
    assert only(read(f"# $ perf stat a{lines}"))[1:] == (2, {"instructions": 1000, "processor packages": 6})


def test_joules_of_one_run_of_three_are_not_scaled(read):
    """The two runs that no meter saw are of other counts, so they are no passes over the first."""
    others = "".join(
        f"{_OF_ALL}  {number} instructions\n\n 2.000000000 seconds time elapsed\n" for number in (3000, 4000)
    )
    energy = eprof.load(read(f"{_FIRST}{others}").path).energy(costs="none")
    assert energy.measured is None
    assert any("so these 6 J are a lower bound" in note for note in energy.warnings)
