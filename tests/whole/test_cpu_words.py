"""What is said of a CPU's program: functions that are called on a CPU, and nothing of what only GPUs have."""

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from conftest import SHARED
from golden import DOCUMENTS

import eprof
from eprof.base.vocabulary import nouns_of
from eprof.commands.diff import page as diff
from eprof.commands.diff import terminal as diff_lines
from eprof.commands.diff.schema import Document
from eprof.commands.report import page as report
from eprof.commands.report import terminal as report_lines
from eprof.commands.report.advice.loops import fewer_misses
from eprof.commands.report.trust import trust
from eprof.commands.report.view import View
from eprof.commands.roofline import page as roofline
from eprof.commands.roofline import words as roofline_lines
from eprof.commands.tune import page as tuning
from eprof.commands.tune import words as tuning_lines
from eprof.commands.tune.document import Tune
from eprof.profile import schema
from eprof.show import blocks, console, html_page
from eprof.show.blocks import plain_text

KINDS = {
    "fmm": schema.Profile,
    "titan": schema.Profile,
    "two-devices": schema.Profile,
    "diff": Document,
    "diff-gemm": Document,
    "roofline": schema.Roofline,
    "tune": Tune,
}
OF_GPUS = re.compile(r"\b(kernels?|launch(es|ed)?|gpus?|warps?|multiprocessors?|occupancy|sectors?)\b", re.IGNORECASE)
OF_CPUS = re.compile(r"\bfunctions?\b")


class Shown(HTMLParser):
    """The text of a page, with what is read aloud and shown under the pointer."""

    def __init__(self, page):
        super().__init__()
        self.texts, self._inside = [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self._inside = tag
        self.texts += [value for name, value in attributes if name in ("title", "aria-label")]

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.texts.append(data)


def of_cpu(plain):
    """The document as of CPUs, without counts that only GPUs have and texts that eprof did not write: names, notes."""
    if isinstance(plain, list):
        return [of_cpu(value) for value in plain]
    if not isinstance(plain, dict):
        return re.sub(OF_GPUS, "x", plain) if isinstance(plain, str) else plain
    made = {key: of_cpu(value) for key, value in plain.items() if key not in ("warnings", "notes", "warp_issue")}
    for notes in {"warnings", "notes"} & plain.keys():
        made[notes] = []
    if "capability" in plain or plain.get("schema") in ("eprof.roofline/1", "eprof.tune/1"):
        made["processor"] = "cpu"
    return made


def document(case):
    plain = json.loads((DOCUMENTS / f"{case}.json").read_text(encoding="utf-8"))
    return msgspec.convert(of_cpu(plain), KINDS[case])


PAGES = {
    Document: diff.html,
    schema.Roofline: roofline.html,
    Tune: lambda made: html_page.page(made, tuning_lines, tuning),
    schema.Profile: report.html,
}


def in_terminal(made):
    if isinstance(made, Tune):
        return console.text(tuning_lines.on_terminal(made, True), True)
    rooms = {Document: diff_lines, schema.Roofline: roofline_lines, schema.Profile: report_lines}
    return rooms[type(made)].text(made, verbose=True)


@pytest.mark.parametrize("case", KINDS)
def test_a_cpus_program_has_functions_and_calls_on_the_page_and_in_the_terminal(case):
    made = document(case)
    shown = [*Shown(PAGES[type(made)](made)).texts, in_terminal(made)]
    for text in filter(None, shown):
        assert not OF_GPUS.search(text), text
    assert any(OF_CPUS.search(text) for text in filter(None, shown))


def test_counts_of_a_cpu_are_called_what_they_are_there():
    cpu, gpu = nouns_of("cpu"), nouns_of("gpu")
    assert (cpu.label("special"), cpu.group("sfu")) == ("Divisions and roots", "Divisions and roots")
    assert (gpu.label("special"), gpu.group("sfu")) == ("Special functions", "Special functions")
    assert cpu.label("global_read") == "Requested read" and cpu.group("fp64") == gpu.group("fp64") == "FP64"
    assert cpu.of(1) == "function" and cpu.of(0) == "functions"


def test_instructions_are_those_retired(eprof_here, tmp_path):
    (tmp_path / "perf.txt").write_text(
        " Performance counter stats for './a':\n\n 93,000,000,000 cycles\n 140,000,000,000 instructions\n"
        " 10,000,000,000 branches\n\n 18.0 seconds time elapsed\n 18.0 seconds user\n"
    )
    shown = eprof_here("report", "perf.txt", "--costs", "none").stdout
    assert "One program profiled: 140 G instructions (1.51 a cycle) counted in 18.0 s." in " ".join(shown.split())
    priced = " ".join(eprof_here("report", "perf.txt").stdout.split())
    assert (
        "108 J counted (35.9 J to 1.08 kJ in all) above constant power in 18.0 s, with nothing but instructions"
        in priced
    ), "uncounted FP64 (475 J) and DRAM (285 J) are above the 323 J that another CPU may take for what was counted"
    assert "100 % 140 G instructions Try" in priced, "the only row names no cause again, nor does a bar of one colour"
    assert "Constant power (2.70 W for 1 core, if others fill its socket) adds 48.5 J: about 31 % of the sum." in priced
    text = (tmp_path / "perf.txt").read_text()
    (tmp_path / "perf.txt").write_text(text.replace(" 93,000,000,000 cycles\n", ""))
    assumed = " ".join(eprof_here("report", "perf.txt", "-v").stdout.split())
    assert "Active core cycles" in assumed and "instructions a cycle" not in assumed


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ((74, 5, 20, 1), "execute fewer instructions (2.15 a cycle;"),
        ((43, 9, 5, 43), "let ./a wait less for data, or for busy units (backend bound 43 %;"),
        ((40, 30, 15, 15), "predict more branches of ./a right (bad speculation 30 %;"),
    ],
)
def test_what_holds_cores_back_chooses_the_advice(eprof_here, tmp_path, slots, said):
    names = ("retiring", "bad-spec", "fe-bound", "be-bound")
    rows = "".join(f" {share},000,000,000 topdown-{name}\n" for share, name in zip(slots, names, strict=True))
    (tmp_path / "perf.txt").write_text(
        " Performance counter stats for './a':\n\n 73,600,000,000 cycles\n 157,900,000,000 instructions\n"
        f"{rows}\n 61.5 seconds time elapsed\n 61.3 seconds user\n"
    )
    assert said in " ".join(eprof_here("report", "perf.txt").stdout.split())


def tried(eprof_here, tmp_path, rows, program="./a"):
    """What is tried first of a `perf stat` with some counts, in 10^9, in one line."""
    log = tmp_path / "perf.txt"
    counted = "".join(f" {round(number * 1e9):,} {event}\n" for event, number in rows.items())
    end = " 18.0 seconds time elapsed\n 18.0 seconds user\n\n"
    with log.open("a") as file:
        file.write(f" Performance counter stats for '{program}':\n\n{counted}\n{end}")
    return " ".join(eprof_here("report", log).stdout.partition("\nTry")[2].partition("\nTrust")[0].split())


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "execute fewer instructions (1.75 a cycle; -O3"),
        ({"stalled-cycles-backend": 34}, "let ./a wait less for data, or for busy units (backend bound 43 %;"),
        ({"stalled-cycles-backend": 8, "stall_frontend": 8}, "execute fewer instructions (1.75 a cycle;"),
        ({"branch-misses": 2}, "predict more branches of ./a right (bad speculation 38 %;"),
        (
            {"branch-misses": 2, "stall_frontend": 40},
            "predict more branches of ./a right (bad speculation 38 %;",
        ),
        (
            {"branch-misses": 0.2, "stall_frontend": 40},
            "let ./a wait less for instructions (frontend bound 46 %;",
        ),
        ({"stalled-cycles-frontend": 40}, "execute fewer instructions (1.75 a cycle;"),  # of Intel's: by any cause
        ({"fp_arith_inst_retired.512b_packed_double": 300}, "use FP32 for FP64, if accurate enough, or do fewer flops"),
        ({"fp_arith_inst_retired.512b_packed_single": 300}, "do fewer flops (./a does 94 % of the flops that its"),
        ({"fp_arith_inst_retired.512b_packed_double": 100}, "execute fewer instructions (1.75 a cycle;"),
    ],
)
def test_instructions_save_cycles_unless_these_wait_or_are_full_of_flops(eprof_here, tmp_path, counts, said):
    rest = dict.fromkeys(("scalar_double", "128b_packed_double", "256b_packed_double", "scalar_single"), 0)
    rest |= dict.fromkeys(("128b_packed_single", "256b_packed_single", "512b_packed_double", "512b_packed_single"), 0)
    zero = {f"fp_arith_inst_retired.{event}": number for event, number in rest.items()} if "fp_" in str(counts) else {}
    assert tried(eprof_here, tmp_path, {"cycles": 80, "instructions": 140} | zero | counts).startswith(said)


def test_of_several_programs_the_one_whose_cycles_wait_is_tried_first_and_rows_tell_them_apart(eprof_here, tmp_path):
    """Few cycles wait for instructions: what the others wait for is not told, but they are there to be saved."""
    quick = {"cycles": 20, "instructions": 80, "stall_frontend": 0.1}
    tried(eprof_here, tmp_path, quick, "./quick")
    slow = {"cycles": 60, "instructions": 40, "stall_frontend": 0.1}
    assert tried(eprof_here, tmp_path, slow, "./slow").startswith(
        "find out with `eprof run PROGRAM` what cores wait for (0.667 instructions a cycle in ./slow)"
    )
    several = "runs or processes are added up"
    assert several not in eprof_here("report", tmp_path / "perf.txt").stdout
    tried(eprof_here, tmp_path, slow | {"cycles": 61}, "./slow")
    assert several in eprof_here("report", tmp_path / "perf.txt").stdout


METERED = """CPU name:	Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz
CPU clock:	2.60 GHz
Region solve, Group 1: MEM_DP
| Region Info | {threads} |
| RDTSC Runtime [s] | {seconds} |
| Event | Counter | {threads} |
| INSTR_RETIRED_ANY | FIXC0 | {instructions} |
| CPU_CLK_UNHALTED_CORE | FIXC1 | {cycles} |
| CPU_CLK_UNHALTED_REF | FIXC2 | {cycles} |
| PWR_PKG_ENERGY | PWR0 | 1600 {zeros} |
| FP_ARITH_INST_RETIRED_SCALAR_DOUBLE | PMC1 | {scalar} |
| FP_ARITH_INST_RETIRED_128B_PACKED_DOUBLE | PMC0 | {packed} |
| FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE | PMC2 | {packed} |
| FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE | PMC3 | {packed} |
"""


@pytest.mark.parametrize(
    ("busy", "scalar", "said"),
    [
        ([1.0], 60e9, "vectorise solve"),
        ([1.0], 0, "use more cores (one is busy): saves up to"),
        ([0.4], 60e9, "nothing"),
        ([1.0, 1.0], 0, "execute fewer instructions"),
    ],
)
def test_less_time_saves_constant_power_of_a_metered_socket_while_its_core_works(
    eprof_here, tmp_path, busy, scalar, said
):
    def cells(number):
        return " | ".join(f"{number * share:.0f}" for share in busy)

    threads = " | ".join(f"HWThread {number}" for number in range(len(busy)))
    numbers = {"instructions": cells(240e9), "cycles": cells(130e9), "scalar": cells(scalar), "packed": cells(0)}
    zeros = "| 0" * (len(busy) - 1)
    seconds = " | ".join(["50.000"] * len(busy))
    (tmp_path / "likwid.txt").write_text(METERED.format(threads=threads, seconds=seconds, zeros=zeros, **numbers))
    out = eprof_here("report", tmp_path / "likwid.txt").stdout
    advice = " ".join(out.partition("\nTry")[2].partition("\nTrust")[0].split())
    assert advice.startswith(said)
    saved = re.search(r"up to ([0-9.]+) (kJ|J) \(", advice)
    if len(busy) == busy[0] == 1:
        joules = float(saved[1]) * {"kJ": 1000, "J": 1}[saved[2]]
        assert joules / 1600 == pytest.approx(0.75 if scalar else 0.47, abs=0.05), "the time saved, times the power"
    assert ("the most if time falls with cycles" in advice) is said.startswith("vectorise")


@pytest.mark.parametrize(("missed", "hardly"), [({}, ""), ({"branch-misses": 0.1}, ", hardly for branches")])
def test_branches_that_are_predicted_right_are_no_reason_to_wait(eprof_here, tmp_path, missed, hardly):
    said = tried(eprof_here, tmp_path, {"cycles": 80, "instructions": 40} | missed)
    assert f"what cores wait for (0.500 instructions a cycle{hardly}): each" in said
    assert said.count("`eprof run PROGRAM`") == 1


def test_few_cache_misses_are_no_data_to_wait_for(eprof_here, tmp_path):
    rows = {"cycles": 80, "instructions": 40, "branch-misses": 0.1}
    few = tried(eprof_here, tmp_path, rows | {"cache-misses": 0.02})
    assert few.startswith("wait less for results (0.500 instructions a cycle, and little comes from DRAM): let")
    (tmp_path / "perf.txt").unlink()
    assert "find out" in tried(eprof_here, tmp_path, rows | {"cache-misses": 0.2})


@pytest.mark.parametrize("sys_s", [3.0, 12.0])
def test_what_mostly_runs_in_the_kernel_is_to_ask_less_of_it(eprof_here, tmp_path, sys_s):
    log = tmp_path / "perf.txt"
    counts = " 8,000,000,000 cycles\n 4,000,000,000 instructions\n\n"
    end = f" 18.0 seconds time elapsed\n 8.0 seconds user\n {sys_s} seconds sys\n"
    log.write_text(f" Performance counter stats for './a -n 3':\n\n{counts}{end}")
    advice = " ".join(eprof_here("report", log).stdout.partition("\nTry")[2].split())
    is_much = advice.startswith("work less in the kernel (60 % of the processor time: `strace -c ./a -n 3` counts")
    assert is_much == (sys_s == 12.0)
    assert ("find out" in advice) != is_much


def test_what_the_c_library_executes_its_callers_are_to_spare(eprof_here, tmp_path):
    log = tmp_path / "callgrind.out.1"
    functions = "".join(
        f"fl=a.c\nfn={name}\n1 {number}\n" for name, number in {"_int_malloc": 700, "free": 200, "solve": 100}.items()
    )
    log.write_text(f"# callgrind format\nversion: 1\nevents: Ir\n{functions}totals: 1000\n")
    advice = " ".join(eprof_here("report", log).stdout.partition("\nTry")[2].split())
    assert advice.startswith(
        "have _int_malloc and 1 more do less for its callers (allocate once and reuse, or from a pool)"
    )
    assert "-O3" not in advice.partition("Trust")[0]


def test_one_program_is_named_with_what_is_its_own(eprof_here, tmp_path):
    tried(eprof_here, tmp_path, {"cycles": 10, "instructions": 20}, "target/release/small")
    said = tried(eprof_here, tmp_path, {"cycles": 30, "instructions": 120}, "target/release/large")
    assert said.startswith(
        "execute fewer instructions (86 % in target/release/large; 4.00 a cycle; -C target-cpu=native;"
    )
    debug = tried(eprof_here, tmp_path, {"cycles": 300, "instructions": 1200}, "target/debug/large")
    assert "(90 % in target/debug/large; 4.00 a cycle; --release;" in debug


@pytest.mark.parametrize(
    ("lines", "said", "at_most"),
    [
        (
            7e8,
            "move fewer bytes past L2 (44.8 GB, 0.875 instructions a cycle):",
            "8.96 J if all 44.8 GB past L2 reach it",
        ),
        (
            7e6,
            "wait less for branches and results (0.875 instructions a cycle, and little leaves L2)",
            "89.6 mJ if all 448 MB past L2 reach it",
        ),
    ],
)
def test_lines_that_leave_l2_tell_what_is_waited_for_and_what_dram_may_take(eprof_here, tmp_path, lines, said, at_most):
    counts = {"INSTR_RETIRED_ANY": 7e9, "CPU_CLK_UNHALTED_CORE": 8e9, "L2_LINES_IN_ALL": lines, "L2_TRANS_L2_WB": 0}
    rows = "".join(f"{event},PMC0,{number:.0f}\n" for event, number in counts.items())
    (tmp_path / "likwid.csv").write_text(
        "STRUCT,Info,3,,\nCPU name:,Intel(R) Xeon(R) CPU E5-2650 v3 @ 2.30GHz,,,\nTABLE,Group 1 Raw,L3,4,\n"
        f"Event,Counter,Core 0,\n{rows}TABLE,Group 1 Metric,L3,1,\nMetric,Core 0,\nRuntime (RDTSC) [s],4.5,\n"
    )
    shown = " ".join(eprof_here("report", "likwid.csv").stdout.split())
    assert said in shown and at_most in shown
    # Haswell has no event of flops, so LIKWID no such group for it.
    assert "count the rest: `likwid-perfctr -g MEM` Trust" in shown


def of_real(eprof_here, name):
    """What the first screen says of a real log of CPUs, in one line."""
    path = SHARED / "cpu" / name
    if not path.exists():
        pytest.skip(f"needs the real log {name}, which is not part of this project")
    return " ".join(eprof_here("report", path).stdout.split())


def test_waits_of_what_likwid_bench_streams_are_for_its_bytes(eprof_here):
    said = of_real(eprof_here, "likwid-text-epyc7702-mem.out")
    assert "Try move fewer bytes past L2 (100 GB, 1.36 instructions a cycle):" in said
    assert "DRAM (72.1 J; 20.0 J if all 100 GB past L2 reach it)" in said


def test_waits_of_regions_are_told_of_the_one_that_has_their_numbers(eprof_here):
    said = of_real(eprof_here, "likwid-csv-i3-7100u-l3.csv")
    # (152,019.9 + 149,022.9) 10^6 lines; 1,750.18 10^9 instructions in 2,274.713 10^9 cycles: all of that one region.
    region = "T_Sist_Lin_Padrao_NOpt_4096"
    assert f"move fewer bytes past L2 (19.3 TB, 0.769 instructions a cycle in {region} and 3 more)" in said
    # 10 % of the cycles of the four with more than 3 % of its, 3.80e12, at 972.3 pJ; and of their bytes at 200 pJ.
    saved = "saves 369 J to 1.00 kJ (7.5 to 8.8 % of 4.95 to 11.5 kJ)"  # with 6.51 kJ, were all 32.6 TB DRAM's
    assert f"each 10 % fewer, and cycles, {saved}, most if DRAM serves them;" in said


def test_names_of_rows_stay_apart_from_those_that_are_not_shown():
    shown = ["T_Sist_Lin_Padrao_NOpt_4096", "T_Sist_Lin_Padrao_NOpt_3000"]
    hidden = [name.replace("Padrao", "Inexato") for name in shown]
    table = blocks.Table([], [blocks.Row([name]) for name in shown], hidden=hidden).fitted(22)
    assert all("Padra" in plain_text(row.cells[0]) for row in table.rows)


def test_work_of_one_program_and_waits_of_another_are_both_told(eprof_here):
    said = of_real(eprof_here, "perf-text-intel-topdown-two-runs.txt")
    assert "saves 12.9 J (5.8 % of 222 J); let ./target/release/two_sum 300 m wait less for data" in said
    assert "saves up to 30.9 J (14 % of 222 J) without such waits" in said


def test_two_sockets_draw_twice_what_one_may(eprof_here):
    said = of_real(eprof_here, "perf-text-intel-50threads.txt")
    most_above_j = 2 * 294 * 13.035 - 1746
    assert f"(723 J to {most_above_j / 1e3:.2f} kJ in all)" in said and "(what 2 sockets may draw)" in said
    assert "(what" not in of_real(eprof_here, "perf-csv-xeon-icelake-instructions.csv")


def test_cycles_of_instructions_without_a_time_are_the_fewest_that_these_need(eprof_here, tmp_path):
    (tmp_path / "callgrind.out.7").write_text("# callgrind format\nevents: Ir\nfn=main\n0 8000000\ntotals: 8000000\n")
    said = " ".join(eprof_here("report", "callgrind.out.7").stdout.split())
    # 8e6 instructions of 123 pJ and, at eight a cycle, 1e6 cycles of 972.3 pJ
    assert "1.96 mJ counted (652 µJ or more) above constant power, with nothing but instructions and" in said
    assert "at least 972 µJ of it (8 instructions a cycle); 7.78 mJ at one a cycle." in said
    timed = " ".join(eprof_here("report", "callgrind.out.7", "--time", "0.01").stdout.split())
    assert "instructions and assumed core cycles" in timed and "the least" not in timed
    (tmp_path / "stat.txt").write_text(" Performance counter stats for './a':\n\n    8,000,000      instructions\n\n")
    of_perf = " ".join(eprof_here("report", "stat.txt").stdout.split())
    headline = said[said.index("1.96 mJ counted") : said.index("at one a cycle.")]
    assert headline in of_perf, "of perf it is said in the same words"


def test_what_was_counted_in_part_is_not_called_uncounted(tmp_path):
    rows = [
        ("INSTR_RETIRED_ANY", "FIXC0", 8e6),
        ("CPU_CLK_UNHALTED_CORE", "FIXC1", 4e6),
        ("L1D_REPLACEMENT", "PMC0", ""),
    ]
    counts = "".join(f"{event},{counter},{number}\n" for event, counter, number in rows)
    head = "TABLE,Group 1 Raw,L2,4\nEvent,Counter,HWThread 0\n"
    (tmp_path / "cut.csv").write_text(
        f"{head}{counts}TABLE,Group 1 Metric,L2,1\nMetric,HWThread 0\nRuntime (RDTSC) [s],0.01\n"
    )
    said = trust(View(eprof.load(tmp_path / "cut.csv").energy("icelake-sp").document())).text
    assert "Not counted: the rest of constant power, FP64, the rest of instructions and core cycles and 1 more." in said


@pytest.mark.parametrize(
    ("asked", "lines", "of_dram", "said"),
    [
        (8, 1e6, 1e6, "let find at table.c:3 fetch fewer lines (8 of 64 bytes of each are asked for: smaller keys,"),
        (
            8,
            1e6,
            1e5,
            "use lines in find at table.c:3 before they leave the cache (8 of 64 bytes of each are asked for:",
        ),
        (64, 1e6, 1e6, "let find at table.c:3 work on blocks that stay in the caches,"),
        (64, 1e4, 1e4, "execute fewer instructions"),
        (
            None,
            1e6,
            1e6,
            "let find at table.c:3 fetch fewer lines (loops in the order of memory, smaller elements, blocks",
        ),
    ],
)
def test_lines_that_the_caches_lack_choose_the_advice_and_bound_it(eprof_here, tmp_path, asked, lines, of_dram, said):
    executed = 10_000_000
    rows = f"3 {executed} 1000000 0 0 {lines:.0f} 0 0 {of_dram:.0f} 0"
    events = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw"
    if asked is not None:  # as where the program was there to be decoded
        rows += f" 0 1000000 0 {asked}000000 0"
        events += " undecoded loads stores load_bytes store_bytes"
    (tmp_path / "callgrind.out.7").write_text(
        f"# callgrind format\nevents: {events}\nfl=table.c\nfn=find\n{rows}\ntotals: {rows[2:]}\n"
    )
    shown = " ".join(eprof_here("report", "callgrind.out.7", "--time", "0.05").stdout.split())
    assert said in shown
    waits = 10 * lines + 100 * of_dram
    if waits > executed:
        assert f"up to {100 * waits / (waits + executed):.0f} % waits for caches" in shown
        saved, whole = map(
            float, re.search(r"saves up to [0-9.]+ mJ \(([0-9.]+) % of ([0-9.]+) mJ\) if not even", shown).groups()
        )
        assert saved <= 100 * waits / (waits + executed) + 1 < 100


@pytest.mark.parametrize("kept", [0, 600_000, 2_000_000])
def test_lines_that_stores_alone_fetch_are_streamed_but_what_the_cache_serves_again(tmp_path, kept):
    """kept: lines of L1's misses that the last cache serves, all of which may have been stored."""
    events, stored = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw", 1_000_000
    rows = f"3 10000000 1000000 {8 * stored} 0 {kept} {stored} 0 0 {stored}"
    log = tmp_path / "callgrind.out.7"
    log.write_text(f"# callgrind format\nevents: {events}\nfl=table.c\nfn=fill\n{rows}\ntotals: {rows[2:]}\n")
    (change,) = fewer_misses(View(eprof.load(log).energy("icelake-sp").document()))
    if kept > stored:
        assert change.act.startswith("let fill at table.c:3 fetch fewer lines"), "each may be read from the cache again"
        return
    assert "past the caches in fill at table.c:3 (stores fetch 100 % of lines" in change.act.replace("\u202f", " ")
    # A line is 64 B, of 199.9 pJ each.
    assert change.ends[0] == pytest.approx(max(stored - kept, 0) * 64 * 199.9e-12, rel=1e-3)
    assert change.ends[1] > stored * 64 * 199.9e-12


@pytest.mark.parametrize(
    ("stores", "asked_b", "is_whole"),
    [
        (8_000_000, None, True),
        (16_010_000, None, True),
        (3_267_000, None, False),  # a sieve: some stores jump over lines, others over less
        (2_000_000, None, False),  # a column without optimisation, or vectors of 32 bytes: nobody knows
        (1_000_000, None, False),
        (2_000_000, 64_000_000, True),
        (8_000_000, 12_000_000, False),
        (40_000_000, 320_000_000, False),  # five times each: what is written again would go to DRAM each time
    ],
)
def test_stores_that_jump_over_lines_are_not_streamed(tmp_path, stores, asked_b, is_whole):
    """A million lines that stores fetch, of which nobody, or the decoder, knows the bytes."""
    events, counts = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw", f"20000000 1000 {stores} 0 0 1000000 0 0 1000000"
    if asked_b:
        events, counts = (
            f"{events} undecoded loads stores load_bytes store_bytes",
            f"{counts} 0 1000 {stores} 64000000 {asked_b}",
        )
    log = tmp_path / "callgrind.out.7"
    log.write_text(f"# callgrind format\nevents: {events}\nfl=a.c\nfn=mark\n3 {counts}\ntotals: {counts}\n")
    energy = eprof.load(log).energy("icelake-sp")
    (change,) = fewer_misses(View(energy.document()))
    assert ("past the caches" in change.act) == is_whole
    if not is_whole:
        # Each line is read and written, 64 B of 199.9 pJ both times, and the core waits 110 of 130 cycles.
        dram_j = 2 * 64e6 * 199.9e-12
        assert change.ends[0] == pytest.approx(dram_j / 10, rel=1e-3) and change.most > dram_j


def test_stores_are_streamed_where_caches_do_not_serve_their_lines():
    path = SHARED / "cpu" / "simulated" / "callgrind-small-sse2.out.gz"
    if not path.exists():
        pytest.skip("needs a real log, which is not part of this project")
    streamed = next(fewer_misses(View(eprof.load(path).energy("icelake-sp").document())))
    # The last cache served 24 MB to triad and sdot, which are what main had stored; triad's 8 MB nobody reads.
    assert streamed.act.startswith("store what nobody reads soon past the caches in triad (")
    assert streamed.ends[0] == pytest.approx(8e6 * 199.9e-12, rel=0.01)
    assert streamed.ends[1] < 1.5 * streamed.ends[0]


def test_what_python_has_a_library_do_is_advised_on_by_its_line_or_not_at_all(eprof_here, tmp_path):
    """In short loops what is around them takes most; and nobody can change what ran at a line that nobody knows."""
    events = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw undecoded fp64_add fp64_256b loads stores load_bytes store_bytes"
    text = f"# callgrind format\nevents: {events}\n"
    for line, function, executed, flops, missed in (
        (7, "row.sum, numpy", 60_000_000, 3_000_000, 0),
        (0, "line not told, numpy", 19_000_000, 4_000_000, 1_000_000),
    ):
        counts = f"{executed} 0 0 0 {missed} 0 0 {missed} 0 0 {flops} {flops} 4000000 1000000 320000000 8000000"
        text += f"fl={'a.py' * (line > 0)}\nfn={function}\n{line} {counts}\n"
    (tmp_path / "callgrind.out.7").write_text(text)
    shown = " ".join(eprof_here("report", "callgrind.out.7", "--time", "0.05").stdout.split())
    tried = shown[shown.index(" Try ") : shown.index(" Trust ")]
    assert "instructions a flop): longer inner loops" in tried and "not told" not in tried


def of_callgrind(eprof_here, tmp_path, *lines, time_s=0.05):
    (tmp_path / "callgrind.out.7").write_text("\n".join(["# callgrind format", *lines, ""]))
    return " ".join(eprof_here("report", "callgrind.out.7", "--time", str(time_s)).stdout.split())


def test_divisions_save_their_cycles_and_no_more_than_there_are(eprof_here, tmp_path):
    """Four core cycles each at most: what is saved goes with their number, until no cycles are left."""

    def saved(divisions):
        events, counts = (
            "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw undecoded special",
            f"9 1000000000 {'0 ' * 9}{divisions}",
        )
        shown = of_callgrind(eprof_here, tmp_path, f"events: {events}", "fl=a.c", "fn=norm", counts, time_s=1)
        found = re.search(r"divide less in norm at a.c:9 \((.*) of its .* saves up to ([0-9.]+) (m?J) ", shown)
        return found and (found[1], float(found[2]) * (1e-3 if found[3] == "mJ" else 1))

    assert saved(1_000_000) is None
    (share, some), (_, more), (_, all_of_them), (_, no_more) = map(saved, (2 * 10**8, 3 * 10**8, 10**9, 2 * 10**9))
    assert share == "20 %" and more == pytest.approx(1.5 * some, rel=0.01)
    assert more < all_of_them == no_more < 4 * more


def test_what_tells_how_goes_before_what_does_not(eprof_here, tmp_path):
    """A sieve of 20 million numbers; one in blocks that stay in L1 takes a third of its time (measured)."""
    events = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw undecoded loads stores load_bytes store_bytes"
    counts = "3 292705831 20000111 46588140 0 0 18249027 0 0 0 0 20000111 46588140 20000111 46588140"
    shown = of_callgrind(eprof_here, tmp_path, f"events: {events}", "fl=p.cpp", "fn=sieve", counts, time_s=0.06)
    assert "Try use lines in sieve at p.cpp:3 before they leave the cache (4 of 64 bytes of each are" in shown


@pytest.mark.parametrize(("times", "is_told"), [(1, False), (40, True)])
def test_what_is_cleared_once_has_to_be(eprof_here, tmp_path, times, is_told):
    shown = of_callgrind(
        *(eprof_here, tmp_path, "events: Ir", "ob=/usr/lib/x86_64-linux-gnu/libc.so.6", "fn=memset", "0 90000000"),
        *("ob=./a", "fl=a.c", "fn=clear", "7 10000000", "cob=/usr/lib/x86_64-linux-gnu/libc.so.6", "cfn=memset"),
        *(f"calls={times} 0", "7 90000000"),
    )
    assert ("have memset do less for clear at a.c:7 (clear once, or only what is used)" in shown) == is_told


def of_perf(eprof_here, tmp_path, *rows):
    """What the first screen says of a `perf stat -a` of half a second, in one line."""
    log = tmp_path / "stat.txt"
    lines = [
        "",
        " Performance counter stats for 'system wide':",
        "",
        *rows,
        "",
        "       0.500000000 seconds time elapsed",
    ]
    log.write_text("\n".join(lines) + "\n")
    return " ".join(eprof_here("report", log).stdout.split())


def test_joules_alone_stand_in_their_row_and_no_table_is_named_for_them(eprof_here, tmp_path):
    said = of_perf(eprof_here, tmp_path, "    3.68 Joules power/energy-pkg/")
    assert "system wide 3.68 J 100 %" in said
    assert "`perf stat -a -e power/energy-pkg/,cycles,instructions PROGRAM`" in said
    assert "--costs" not in said


def test_the_idle_log_that_is_advised_tells_the_power_without_work(eprof_here, tmp_path):
    rows = ("  40.00 Joules power/energy-pkg/", "  9,000,000,000 cycles", "  9,000,000 instructions")
    busy = of_perf(eprof_here, tmp_path, *rows)
    advised = re.search(
        r"perf stat -a -o (\S+) -e (\S+) sleep 20` on the idle machine, then `(eprof \S+ \S+ \S+)`", busy
    )
    counts = {"power/energy-pkg/": "200.00 Joules", "cycles": "2,000,000,000", "instructions": "900,000,000"}
    counted = "".join(f" {counts[event]} {event}\n" for event in advised[2].split(","))
    end = "\n 20.000000000 seconds time elapsed\n"
    (tmp_path / advised[1]).write_text(f" Performance counter stats for 'system wide':\n\n{counted}{end}")
    assert "10.0 W → 80.0 W" in (said := " ".join(eprof_here(*advised[3].split()[1:]).stdout.split()))
    assert "on one machine 9.61 W without work" in said


def test_cycles_that_nobody_counted_are_no_finding(eprof_here, tmp_path):
    said = of_perf(eprof_here, tmp_path, "    1,301.70 msec task-clock # 2.603 CPUs utilized", "  9,000 ld_spec")
    assert "core cycles" not in said
    assert "work that was not counted" in said


def test_another_cpus_constant_power_has_no_narrow_range(eprof_here, tmp_path):
    said = of_perf(eprof_here, tmp_path, "  9,000,000 instructions", "  20,000,000 cycles")
    low_j, high_j = map(float, re.search(r"48.6 J \(([0-9.]+) to ([0-9.]+) J in all\)", said).groups())
    assert low_j < 0.5 * 20 and high_j > 0.5 * 150, (
        "14 to 176 W, not 93.9 to 98.8 W of the one server behind the prices"
    )
    assert "joules may be 3 times off" in said


def test_instructions_that_an_arm_executed_speculatively_are_an_estimate_beside_assumed_cycles(eprof_here, tmp_path):
    log = tmp_path / "stat.txt"
    rows = "  1,301.70 msec task-clock # 2.603 CPUs utilized\n  803,044,283 INST_SPEC\n"
    log.write_text(f" Performance counter stats for './a':\n\n{rows}\n 0.5 seconds time elapsed\n")
    said, named = (
        " ".join(eprof_here("report", log, *more).stdout.split()) for more in ([], ["--capability", "neoverse-n1"])
    )
    assert "nothing but instructions and assumed core cycles" in named and "803 M instructions" in named
    assert named.partition("-v:")[0] == said.partition("-v:")[0], "names that only Arm's have tell it"
    assert "Try count cycles and stalls, for cores seem to wait (0.257 instructions for each assumed cycle;" in said
    log.write_text(log.read_text().replace("803,044", "3,803,044"))
    assert "Try execute fewer instructions" in " ".join(eprof_here("report", log).stdout.split())


def test_fp32_vectors_have_no_price_so_that_half_of_fp64s_goes_at_most(eprof_here, tmp_path):
    wide = {"cycles": 80, "instructions": 140, "fp_arith_inst_retired.512b_packed_double": 300}
    narrower = [f"fp_arith_inst_retired.{bits}_double" for bits in ("scalar", "128b_packed", "256b_packed")]
    said = tried(eprof_here, tmp_path, wide | dict.fromkeys(narrower, 0))
    low, high, whole = map(float, re.search(r"saves ([\d.]+) to (\d+) J \(.* of (\d+) J\)", said).groups())
    assert (
        high > 2 * low and high == pytest.approx(whole / 2, abs=1) and "costs what one of FP64 does (assumed)" in said
    )


def test_what_was_counted_and_not_used_is_not_called_uncounted(eprof_here, tmp_path):
    counts = dict.fromkeys(("l2_rqsts.miss", "l1-icache-load-misses"), 1)
    tried(eprof_here, tmp_path, counts)
    said = " ".join(eprof_here("report", tmp_path / "perf.txt").stdout.split())
    assert "Of what was counted, only time was used." in said and "Nothing but time" not in said


def test_a_run_without_a_time_took_no_longer_than_its_counters_of_all_cpus(eprof_here, tmp_path):
    rows = (f"N{node},1,{node + 1}00.5,MiB,uncore_imc/cas_count_read/,{12 + node}074958183,100.00,," for node in (0, 1))
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    said = " ".join(eprof_here("report", "nodes.csv").stdout.split())
    assert "system wide" in said and "The run took at most 12.1 s, as long as its counters counted," in said
    assert "in which constant power takes 4,250 J at most (2 sockets of 14 to 176 W)." in said
    assert "nothing bounds" not in said
    timed = " ".join(eprof_here("report", "nodes.csv", "--time", "12100ms").stdout.split())
    assert "Its 194 W are assumed" in timed and "Try count the rest" in timed and "hardly anything" not in timed


def test_a_hybrid_cpu_is_a_client_and_has_no_servers_constant_power(eprof_here, tmp_path):
    """From 1 to 30 W: 5.48 W, their geometric mean, in 1.0058 s; the low end is 1 W and a third of 3.95 M cycles."""
    rows = ["  1,914,704      cpu_core/cycles/", "  2,036,983      cpu_atom/cycles/", ""]
    path, end = tmp_path / "stat.txt", "          1.005815641 seconds time elapsed"
    path.write_text("\n".join([" Performance counter stats for 'CPU(s) 0,11':", "", *rows, end]) + "\n")
    said = " ".join(eprof_here("report", path, "-o", tmp_path / "r.json").stdout.split())
    assert "Intel hybrid client" in said
    assert "5.51 J of constant power (5.48 W, assumed: each whole socket draws 1 to 30 W, for 1.01 s)" in said
    low_j, high_j = json.loads((tmp_path / "r.json").read_text())["interval_j"]["total"]
    assert low_j == pytest.approx(1.005815641 + (1914704 + 2036983) * 972.3e-12 / 3, rel=1e-3)
    assert high_j > 30 * 1.005815641
    server = path.read_text().replace("cpu_core/cycles/", "cycles").replace("cpu_atom/cycles/", "instructions")
    path.write_text(server)
    assert "14 to 176 W" in " ".join(eprof_here("report", path).stdout.split())


def test_one_cpus_counts_are_no_idle_machines(eprof_here, tmp_path):
    """CPU 0 ran 1.25 G instructions in 977 M cycles in 1.0008 s, while the constant power is of all its socket."""
    rows = (
        "  1,254,992,756      inst_retired.any\n  977,172,805      cycles\n\n        1.000802596 seconds time elapsed\n"
    )
    path = tmp_path / "stat.txt"
    told = []
    for label in ("CPU(s) 0", "system wide"):
        path.write_text(f" Performance counter stats for '{label}':\n\n{rows}")
        told.append(eprof_here("report", path).stdout)
    assert ["hardly anything worked" in said for said in told] == [False, True]


def test_a_machine_that_hardly_works_has_nothing_to_change_and_its_power_is_assumed(eprof_here, tmp_path):
    said = of_perf(eprof_here, tmp_path, "  9,000,000 instructions", "  20,000,000 cycles")
    assert "or let it sleep: hardly anything worked;" in said
    assert "Its 97.1 W are assumed: each whole socket draws 14 to 176 W." in said


def test_an_idle_machines_log_is_to_be_compared_with_work(eprof_here, tmp_path):
    rows = ["  464.30 Joules power/energy-pkg/", "  16,000.00 msec cpu-clock # 32.000 CPUs utilized"]
    said = of_perf(eprof_here, tmp_path, *rows, "  769,000,000 cycles", "  263,000,000 instructions")
    assert "the CPUs hardly worked (48 MHz each, idle time and all): most joules are idle." in said.replace(
        "The", "the"
    )
    assert "or let it sleep: hardly anything worked;" in said and "`eprof diff stat.txt work.txt`" in said
    assert "idle.txt" not in said
    busy = of_perf(eprof_here, tmp_path, *rows, "  16,000,000,000 cycles", "  9,000,000,000 instructions")
    assert "hardly" not in busy and "`eprof diff idle.txt stat.txt`" in busy


def test_a_whole_machine_has_at_least_the_sockets_of_its_cpus(eprof_here, tmp_path):
    """224 CPUs are 4 sockets of 36 cores, two threads each, at 97.1 W for 1 s; 72 CPUs are one."""
    rows = ["  20,000,000 cycles", "  10,000,000 instructions", "  1.000000000 seconds time elapsed"]
    path, told = tmp_path / "all.txt", {}
    for cpus in (72, 224):
        lines = [f"  {cpus},000.00 msec cpu-clock # {cpus}.000 CPUs utilized", *rows]
        path.write_text(" Performance counter stats for 'system wide':\n\n" + "\n".join(lines) + "\n")
        told[cpus] = " ".join(eprof_here("report", path.name, "-v").stdout.split())
    assert "97.1 J of constant power (97.1 W, assumed" in told[72]
    assert "388 J of constant power (388 W, assumed: each whole socket draws 14 to 176 W" in told[224]
    assert "that of 4, as few of 36 cores as have the 224 CPUs that were counted" in told[224]
    assert "(< 1 MHz each, idle time and all)" in told[224]


def test_what_only_the_kernel_counted_was_asked_for_alone(eprof_here, tmp_path):
    (tmp_path / "stat.csv").write_text("9972,,page-faults,203129220,100.00,,\n32,,cs,203129220,100.00,,\n")
    said = eprof_here("report", "stat.csv").stderr
    assert "only `page-faults`, `cs` were asked for" in said and "virtual machines" not in said


def test_of_many_capabilities_none_is_named(eprof_here, tmp_path):
    """An event of twelve definitions tells nothing of a CPU; one of AMD's tells Zen."""
    text = "  9,000,000 cycles\n  1,000,000 {}\n"
    header = " Performance counter stats for './a':\n\n"
    (tmp_path / "perf.txt").write_text(header + text.format("l1-dcache-load-misses"))
    said = " ".join(eprof_here("report", tmp_path / "perf.txt", "-v").stdout.split())
    assert "`l1-dcache-load-misses`. Say which CPU it is (--capability)." in said and "neoverse" not in said
    (tmp_path / "perf.txt").write_text(header + text.format("fp_ret_sse_avx_ops.all"))
    said = " ".join(eprof_here("report", tmp_path / "perf.txt", "-v").stdout.split())
    assert "--capability uses most of it: zen" in said


def test_flops_of_all_types_bound_those_of_fp64(eprof_here, tmp_path):
    """59.2 G flops at 3 times 99.4 and 180 pJ are 50 J at most; 84.1 G cycles alone would allow 571 J."""
    rows = ("84,092,282,119 cycles:u", "{} fp_ret_sse_avx_ops.all:u")
    text = " Performance counter stats for './a':\n\n  {}\n  {}\n\n  22.7 seconds time elapsed\n"
    for options in ((), ("--capability", "zen2"), ("--capability", "zen4")):
        most = {}
        for flops in ("59,207,044,954", "592,070,450"):
            (tmp_path / "perf.txt").write_text(text.format(rows[0], rows[1].format(flops)))
            said = eprof_here("report", tmp_path / "perf.txt", "--format", "json", *options).stdout
            most[flops] = json.loads(said)["interval_j"]["uncounted"]["fp64"]
        assert most["592,070,450"] == pytest.approx(most["59,207,044,954"] / 100, rel=0.01), options


def test_instructions_that_nobody_counted_are_not_none(eprof_here, tmp_path):
    said = of_perf(eprof_here, tmp_path, "  22,397.33 msec task-clock # 0.986 CPUs utilized", "  84,092,282,119 cycles")
    assert "0 instructions a cycle" not in said
    assert "what cores wait for (instructions were not counted)" in said


def test_a_table_of_measured_runs_is_sent_to_fit(eprof_here, tmp_path):
    runs = tmp_path / "runs.csv"
    columns = "benchmark,cluster,ranks,sockets_seen,time_s_mean,core_cycles,instructions,pkg_j,fp64_scalar_inst"
    runs.write_text(
        f"{columns},fp64_128_inst,fp64_256_inst,fp64_512_inst,dram_read_b,dram_write_b\na,X,1,1,9,8,7,900,1,1,1,1,1,1\n"
    )
    said = eprof_here("report", runs).stderr
    assert "a table of measured runs; `eprof fit" in said


def test_a_table_of_runs_whose_columns_are_not_known_is_sent_to_tune_in_a_sentence(eprof_here, tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text("app,freq,POWER,energy_counter_j,exe_s\na,1410,200,900,4.5\na,1200,180,880,4.9\n")
    assert eprof_here("report", runs).stderr == (
        f"eprof: {runs}: this is a table of measured runs; `eprof tune {runs}` says how to name its columns for it\n"
    )


def test_a_table_of_another_cpu_is_called_so(eprof_here):
    assert "zen5 has no table of its own" in eprof_here("costs", "zen5").stderr
    assert "no table of its own" not in eprof_here("costs", "sapphirerapids").stderr


@pytest.mark.parametrize(
    ("loading", "failed", "said"),
    [
        (
            900,
            "perror",
            "run that works: it told an error (perror), and 90 % of the instructions are the loader's start",
        ),
        (900, "f", "longer run: 90 % of the instructions are the loader's start; of the rest 99 % are in main"),
        (400, "f", ""),
    ],
)
def test_a_program_that_only_started_is_to_be_run_at_work(eprof_here, tmp_path, loading, failed, said):
    rows = {"_dl_addr": loading - 100, "do_lookup_x": 100, failed: 1, "main": 999 - loading}
    lines = "".join(f"fn={name}\n0 {number}\n" for name, number in rows.items())
    (tmp_path / "c.out").write_text(f"cmd: ./a\nevents: Ir\nfl=a.c\n{lines}summary: 1000\n")
    shown = " ".join(eprof_here("report", tmp_path / "c.out").stdout.split())
    assert (f"Try profile a {said}" in shown) == bool(said)


@pytest.mark.parametrize(("seconds", "is_short"), [("0.000035", True), ("0.000999", True), ("1.300000", False)])
def test_what_is_shorter_than_a_threads_start_gets_no_more_cores(eprof_here, tmp_path, seconds, is_short):
    counters = {
        "threads": "Core 0",
        "seconds": seconds,
        "instructions": 9306,
        "cycles": 36262,
        "scalar": 0,
        "packed": 0,
    }
    text = METERED.replace("| PWR_PKG_ENERGY | PWR0 | 1600 {zeros} |\n", "")
    (tmp_path / "likwid.txt").write_text(text.format(**counters).replace("Gold 6132 CPU", "CPU E5-2670 0"))
    said = " ".join(eprof_here("report", tmp_path / "likwid.txt").stdout.split())
    assert "use more cores" not in said or not is_short
    assert "hardly" not in said or not is_short
    assert ("are too short to tell" in said) == is_short


def test_cores_at_work_are_not_idle_where_nobody_priced_instructions(eprof_here, tmp_path):
    rule = "-" * 80
    counters = {"INSTR_RETIRED_ANY": 3_600_000_000, "CPU_CLK_UNHALTED_CORE": 3_500_000_000}
    rows = "".join(f"| {name} | FIXC{place} | {count} |\n" for place, (name, count) in enumerate(counters.items()))
    (tmp_path / "likwid.txt").write_text(
        f"{rule}\nCPU name:\tIntel(R) Xeon(R) CPU X5650 @ 2.67GHz\nCPU type:\tIntel Core Westmere processor\n"
        f"CPU clock:\t2.67 GHz\n{rule}\nRegion a, Group 1: L2CACHE\n| Region Info | Core 2 |\n"
        f"| RDTSC Runtime [s] | 1.300000 |\n| call count | 1 |\n\n| Event | Counter | Core 2 |\n{rows}"
    )
    said = " ".join(eprof_here("report", tmp_path / "likwid.txt").stdout.split())
    assert "Intel Core i7-950" in said
    assert "hardly" not in said
    assert "count the rest: `likwid-perfctr -g MEM`" in said


@pytest.mark.skipif(not (SHARED / "cpu").is_dir(), reason="needs the real logs of CPUs")
def test_instructions_of_all_types_bound_fp64_where_the_cpu_has_no_other_vectors(eprof_here):
    log = SHARED / "cpu" / "perf-text-altra-instruction-mix.txt"  # VFP_SPEC 0, ASE_SPEC 257; others have SVE, too
    said = " ".join(eprof_here("report", str(log), "--capability", "neoverse-n1").stdout.split())
    assert "at most 20.6 J: DRAM" in said and "FP64 (2.72" not in said
