"""Callgrind by source line, by mark, and by what Python called: lines against addr2line, widths against flops."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import warm
from hypothesis import given
from hypothesis import strategies as st

import eprof
from eprof.base.errors import LogError
from eprof.collect.collector import TIME, Place, Request, Tool
from eprof.collect.directory import OTHER_CODE, QUEUED, SLEPT
from eprof.collect.process import Ended
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.advice.loops import better_loops, flags, without_interpreter
from eprof.commands.report.headline import headline
from eprof.commands.report.trust import trust
from eprof.commands.report.view import View
from eprof.costs import load
from eprof.logs.runs import Run
from eprof.profilers.callgrind.collector import COLLECTOR
from eprof.profilers.callgrind.decode import decoded, in_python, library
from eprof.profilers.callgrind.file_format import Function, parse

N = 40
PRODUCT = f"""#include "eprof_mark.h"
double a[{N}][{N}], b[{N}][{N}], c[{N}][{N}];
__attribute__((noinline)) void product(void) {{
    for (int i = 0; i < {N}; i++)
        for (int j = 0; j < {N}; j++) {{
            double s = 0;
            for (int k = 0; k < {N}; k++)
                s += a[i][k] * b[k][j];
            c[i][j] = s;
        }}
}}
int main(void) {{
    eprof_mark_begin("product"); product(); eprof_mark_end();
    eprof_mark_end();
    eprof_mark_begin("never"); return c[1][2] != 0;
}}
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """A run directory of a scalar matrix product with debug information, and its program."""
    pytest.importorskip("capstone")
    if not all(map(shutil.which, ("gcc", "valgrind", "addr2line"))):
        pytest.skip("no gcc, valgrind or addr2line")
    folder = tmp_path_factory.mktemp("product")
    (folder / "mm.c").write_text(PRODUCT)
    subprocess.run(["gcc", "-O1", "-g", f"-I{eprof.get_include()}", "mm.c", "-o", "mm"], cwd=folder, check=True)
    return run(folder, "--repeat", "1", "./mm"), folder / "mm"


def run(folder, *program):
    words = ["run", "-q", "--no-report", "--profiler", "callgrind", "-o", "run.eprof", *program]
    done = warm.run(words, folder, {**os.environ, "PYTHONPATH": str(Path(eprof.__file__).parents[1])})
    assert done.returncode == 0, done.stderr
    return folder / "run.eprof"


def test_lines_are_those_that_addr2line_tells(product):
    directory, program = product
    (raw,) = (directory / "logs").glob("*.out")
    costs = parse(raw.read_text().split("\n"))
    executed = Counter()
    for place, address, number in zip(costs.places, costs.addresses, costs.own["Ir"], strict=True):
        if costs.functions[place] == Function(str(program), "product"):
            executed[int(address)] += int(number)
    told = subprocess.run(
        ["addr2line", "-e", str(program), *map(hex, executed)], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    expected = Counter()
    for place, number in zip(told, executed.values(), strict=False):
        expected[Path(place.split(" ")[0]).name] += number
    energy = eprof.load(directory, cache=False).energy("sapphirerapids")
    (function,) = (kernel for kernel in energy.document()["kernels"] if kernel["name"] == "product")
    lines = {line["place"]: line["counts"]["retired"]["value"] for line in function["lines"]}
    assert lines == {place: expected[place] for place in lines}
    assert set(lines) >= {"mm.c:7", "mm.c:8"} and lines["mm.c:8"] > N**3
    counted = function["counts"]
    assert counted["fp64_scalar"]["value"] == counted["fp64_narrow"]["value"] == 2 * N**3


# ------------------------------------------------------------------------------------------------------- marks


def test_marks_of_a_program_add_up_to_it_and_each_has_its_own(product):
    whole = eprof.load(product[0], cache=False).energy("sapphirerapids").document()
    document = eprof.load(product[0], cache=False, parts="mark").energy("sapphirerapids").grouped("mark").document()
    assert [note for note in whole["warnings"] if "the program set marks (never, product)" in note]
    groups = {group["name"]: group for group in document["groups"]}
    assert set(groups) == {"product", "never", "(outside of marks)"}
    assert groups["product"]["counts"]["fp64_scalar"]["value"] == pytest.approx(2 * N**3, abs=9)  # and times of marks
    for word, count in whole["counts"].items():
        values = [group["counts"][word]["value"] for group in groups.values() if word in group["counts"]]
        assert sum(filter(None, values)) == pytest.approx(count["value"] or 0.0), word
    joules = [group["energy_j"]["total"] for group in groups.values()]
    assert sum(joules) == pytest.approx(whole["energy_j"]["total"])
    assert document["energy_j"] == pytest.approx(whole["energy_j"])
    names = [kernel["name"] for kernel in document["kernels"]]
    assert [names[place] for place in groups["product"]["kernels"]].count("product") == 1
    assert "product" not in [names[place] for place in groups["(outside of marks)"]["kernels"]]

    difference = eprof.diff(product[0], product[0], costs="sapphirerapids", by=["mark"]).document()
    compared = {kernel["name"]: kernel["old"]["energy_j"] for kernel in difference["kernels"]}
    assert compared == pytest.approx({name: group["energy_j"]["total"] for name, group in groups.items()})
    assert difference["by"] == ["mark"] and difference["change_j"] == 0


THREADS = """
#include "eprof_mark.h"
#include <thread>
double a[64];
#define WORK(name) __attribute__((noinline)) void name(int n) { \\
    for (int k = 0; k < n; k++) for (int i = 0; i < 64; i++) a[i] += a[63 - i] * 1.5; }
WORK(of_main) WORK(of_worker) WORK(of_helper)
extern "C" void of_fortran_();
int main() {
    eprof_mark_scope scope("main");
    std::thread worker([] { eprof_mark_scope scope("worker, \\"x\\"\\n"); of_worker(300); });
    std::thread helper([] { of_helper(7); });
    of_main(100);
    worker.join();
    helper.join();
    of_fortran_();
}
"""
SUBROUTINE = """
#include "eprof_mark.h"
subroutine of_fortran()
  use eprof_mark
  real(8) :: x(64)
  integer :: i
  x = 1
  call eprof_mark_begin("fortran")
  do i = 1, 50
    x = x * 1.5d0
  end do
  call eprof_mark_end()
  if (x(1) < 0) print *, x
end subroutine
"""


def build(folder):
    """THREADS and SUBROUTINE as a program."""
    include, header = f"-I{eprof.get_include()}", str(Path(eprof.get_include()) / "eprof_mark.h")
    (folder / "main.cpp").write_text(THREADS.replace("\\\\", "\\"))
    (folder / "part.F90").write_text(SUBROUTINE)
    subprocess.run(["gfortran", "-O1", include, "-c", "part.F90", "-x", "c", header], cwd=folder, check=True)
    words = ["g++", "-O1", "-pthread", include, "main.cpp", "part.o", "eprof_mark.o", "-lgfortran", "-o", "p"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "p"


def counted(program, folder, **more):
    """What callgrind counts of a program, with the options and the environment of `eprof run`: a profile."""
    (folder / "logs").mkdir(parents=True)
    tool = Tool("callgrind", True, "", shutil.which("valgrind"))
    step = COLLECTOR.step("counters", tool, Request((str(program),)), Place(folder))
    subprocess.run(step.command, env={**os.environ, **step.environment, **more}, check=True)
    (raw,) = (folder / "logs").glob("*.out")
    return decoded(parse(raw.read_text().split("\n")), folder)


def by_function(costs, event):
    """A profile's counts by function and mark."""
    counts = Counter()
    for place, spot, count in zip(costs.places, costs.spot_of, costs.own[event], strict=True):
        counts[costs.functions[place].name.partition("(")[0], costs.spots[spot].mark] += int(count)
    return +counts


def test_threads_and_fortran_have_marks_of_their_own_and_a_thread_without_is_in_those_of_others(tmp_path):
    pytest.importorskip("capstone")
    if not all(map(shutil.which, ("g++", "gfortran", "valgrind"))):
        pytest.skip("no g++, gfortran or valgrind")
    program = build(tmp_path)
    marked, plain = counted(program, tmp_path / "marked"), counted(program, tmp_path / "plain", EPROF_MARKS="")
    flops = {key: count for key, count in by_function(marked, "fp64_scalar").items() if key[0].startswith("of_")}
    assert flops == {
        ("of_main", "main"): 100 * 128,
        ("of_worker", "worker, 'x'"): 300 * 128,
        ("of_helper", "main"): 7 * 128,
        ("of_fortran_", "fortran"): 50 * 64,
    }
    executed, bare = (by_function(costs, "Ir") for costs in (marked, plain))
    for name in ("of_main", "of_worker", "of_helper"):
        assert sum(count for (own, _), count in executed.items() if own == name) == bare[name, "(outside of marks)"]
    again = parse("\n".join(marked.text()).split("\n"))
    assert by_function(again, "Ir") == executed


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("12"), st.sampled_from(["+ a", "+ b", "- a", "- b", "+ ", "-  ", "", "+", "! ", "x"]),
        st.integers(0, 9),
    ),
    max_size=20,
)  # fmt: skip


@given(EVENTS, st.booleans())
def test_every_count_is_of_the_marks_that_were_open_whatever_ends_or_never_does(events, has_threads):
    lines, expected = ["# callgrind format", "positions: line", "events: Ir"], Counter()
    stacks, is_told = {"1": [], "2": []}, True
    for number, (thread, said, count) in enumerate([*events, ("1", "", 1)]):
        lines += [f"part: {number}", *([f"thread: {thread}"] if has_threads else [])]
        lines += [f"desc: Trigger: Client Request: eprof {thread} {said}", "fn=f", f"0 {count}", f"totals: {count}"]
        own = stacks[thread] if has_threads and stacks[thread] else None
        tops = {stack[-1] for stack in ([own] if own else stacks.values()) if stack}
        expected[(" + ".join(sorted(tops)) or "(outside of marks)") if is_told else "mark not told"] += count
        sign, name = said[:1], said[2:].strip() or '""'
        if sign == "+":
            stacks[thread].append(name)
        elif sign == "-" and name in stacks[thread]:
            stacks[thread].reverse()
            stacks[thread].remove(name)
            stacks[thread].reverse()
        is_told &= sign != "!"
    costs = parse(lines)
    assert by_function(costs, "Ir") == Counter({("f", mark): count for mark, count in expected.items() if count})
    again = parse("\n".join(costs.added().text()).split("\n"))
    assert by_function(again, "Ir") == by_function(costs, "Ir") and again.is_whole
    assert by_function(costs.without_marks().added(), "Ir") == +Counter(
        {("f", "(outside of marks)"): sum(expected.values())}
    )


def test_a_thread_with_the_number_of_an_ended_one_has_none_of_its_marks():
    lines = ["# callgrind format", "positions: line", "events: Ir", "thread: 2"]
    for native, said in (("71", "+ never ends"), ("72", "+ b"), ("72", "- b"), ("72", "+ c")):
        lines += [f"desc: Trigger: Client Request: eprof {native} {said}", "fn=f", "0 1"]
    assert by_function(parse(lines), "Ir") == {
        ("f", "(outside of marks)"): 2,
        ("f", "never ends"): 1,  # up to what the new thread says first
        ("f", "b"): 1,
    }


def test_what_cannot_tell_marks_says_what_can(tmp_path):
    log = tmp_path / "perf.txt"
    log.write_text("Performance counter stats for './a':\n\n  1,000  instructions:u\n\n  0.5 seconds time elapsed\n")
    (tmp_path / "callgrind.out.7").write_text("# callgrind format\nevents: Ir\nfn=main\n0 5\ntotals: 5\n")
    for path in (log, tmp_path / "callgrind.out.7"):
        with pytest.raises(
            LogError, match="--group mark: no marks are told.*--profiler callgrind tells its marks apart"
        ):
            eprof.load(path, parts="mark")


def test_advice_names_the_scalar_line_and_saves_less_than_the_function_takes(product):
    document = eprof.load(product[0], cache=False).energy("sapphirerapids").document()
    view = View(document)
    (loop,) = (loop for loop in better_loops(view) if "product" in loop.act)
    assert (
        "product at mm.c:8" in loop.act
        and "of its FP64 arithmetic is scalar" in loop.act
        and "4 fit a vector" in loop.act
    )
    (function,) = (kernel for kernel in view.kernels if kernel.name == "product")
    above = function.energy_j.computation + function.energy_j.data
    assert loop.ends and 0 < loop.ends[0] < loop.ends[1] < above
    assert "the sum in product" in loop.act and "-ffast-math" in loop.act, "it stores one number for 80 operations"

    def advice(**counts):
        for word, number in counts.items():
            function.counts[word].value = number
        return next((loop.act for loop in better_loops(view) if "product" in loop.act), "")

    flops = 2 * N**3
    assert advice(global_write=8 * flops).startswith("vectorise product at mm.c:8 (-O3")
    assert function.signs["unoptimised"] == 0.0, "gcc notes -O1 beside -g"
    assert not advice(retired=10 * flops, load_store=6 * flops).startswith("build")
    function.signs = {"unoptimised": 1.0}
    assert advice() == "build product with -O2: compiled without optimisation now"
    function.signs = {}
    assert advice().startswith("build product at mm.c:8 with -O2, if it was not")
    assert advice(retired=0.8 * flops, load_store=0.4 * flops, fp64_scalar=0, fp64_narrow=0).startswith(
        "keep more in reg"
    )
    function.launches = 1e6  # what each call asks for then stays in L1 from the one before, and may be a stream
    assert not advice().startswith("keep more in reg")
    assert not flags(view) and not list(without_interpreter(view))
    function.lines[0].place = "a.py:8"
    assert not list(better_loops(view)), "nobody can compile a library that Python calls otherwise"


def test_narrow_vectors_are_widened_where_the_loop_does_not_wait_for_dram(product):
    view = View(eprof.load(product[0], cache=False).energy("sapphirerapids").document())
    (function,) = (kernel for kernel in view.kernels if kernel.name == "product")
    scalar_j = {word: count.energy_j or 0.0 for word, count in function.counts.items()}
    function.counts["fp64_scalar"].value = 0.0  # the same work, two lanes an instruction
    (loop,) = (loop for loop in better_loops(view) if "product" in loop.act)
    assert "100\u202f% of its FP64 arithmetic is in vectors of 128 bits, not 256" in loop.act
    once_j = sum(
        scalar_j.get(word, 0.0) for word in ("retired", "core_active", "integer", "control", "load_store", "misc")
    )
    assert loop.ends and loop.ends[1] == pytest.approx(once_j / 2 + scalar_j["fp64_narrow"])
    function.counts["dram_read"].value = function.counts["retired"].value
    (waiting,) = (loop for loop in better_loops(view) if "product" in loop.act)
    assert waiting.ends and waiting.ends[1] == pytest.approx(
        (once_j - scalar_j["core_active"]) / 2 + scalar_j["fp64_narrow"]
    )


def test_a_recurrence_is_no_sum_that_lanes_share(product):
    view = View(eprof.load(product[0], cache=False).energy("sapphirerapids").document())
    (function,) = (kernel for kernel in view.kernels if kernel.name == "product")
    function.counts["global_read"].value = 0.0  # as a = a * x + c has it
    (loop,) = (loop for loop in better_loops(view) if "product" in loop.act)
    assert loop.act.startswith("fuse multiplications and additions of product at mm.c:8 (-march=native")
    executed, fused = function.counts["retired"].value, function.counts["fp64_mul"].value
    joules = {word: count.energy_j or 0.0 for word, count in function.counts.items()}
    counted_j = sum(joules.get(word, 0.0) for word in ("retired", "integer", "control", "load_store", "misc"))
    # A chain of multiplications and additions, four cycles each, is one of multiply-adds of four: half of the time.
    half_j = view.in_program * (joules["core_active"] + view.passing_j(function)) / 2
    assert loop.ends and loop.ends[0] == 0 and loop.ends[1] == pytest.approx(fused / executed * counted_j + half_j)


def test_no_vectors_are_promised_to_what_needs_its_own_result_and_a_product_names_what_allows_them(product):
    view = View(eprof.load(product[0], cache=False).energy("sapphirerapids").document())
    (function,) = (kernel for kernel in view.kernels if kernel.name == "product")

    def advice(**signs):
        function.signs = signs
        return next((loop for loop in better_loops(view) if "product at" in loop.act), None)

    whole, fused = advice(recurrence=0.0), advice(recurrence=1.0)
    assert whole.act.startswith("vectorise the sum")
    assert fused.act.startswith("fuse multiplications and additions") and not flags(view)
    partly = advice(recurrence=0.25)
    assert "75\u202f% of its FP64 arithmetic is scalar and no recurrence, 4 fit" in partly.act
    assert partly.ends[0] == pytest.approx(0.75 * whole.ends[0])
    assert advice(product=1.0).act.startswith(
        "vectorise the product in product at mm.c:8 (omp simd reduction, or -ffast-math"
    )


@pytest.mark.parametrize(("of_text", "said"), [(0.05, "replace the loop at a.py:8"), (0.3, "do less for each element")])
def test_arrays_are_for_loops_over_numbers(product, of_text, said):
    view = View(eprof.load(product[0], cache=False).energy("sapphirerapids").document())
    (function,) = (kernel for kernel in view.kernels if kernel.name == "product")
    function.name, function.lines[0].place, function.signs = "work, Python", "a.py:8", {"text": of_text}
    function.lines = function.lines[:1]
    (loop,) = without_interpreter(view)
    assert loop.act.startswith(said) and ("numpy" in loop.act) == (of_text < 0.1)


@pytest.mark.parametrize(("share", "is_said"), [(0.001, False), (0.05, True)])
def test_shares_are_of_what_was_counted_where_the_rest_can_take_a_hundredth(product, share, is_said):
    document = eprof.load(product[0], cache=False).energy("sapphirerapids").document()
    document["energy_marks"]["computation"].append("missing")
    document["interval_j"]["uncounted"] = {"total": share * document["energy_j"]["total"]}
    shown = headline(View(document))
    assert (" counted (" in shown.text) == is_said


FP32 = """#include <stdlib.h>
__attribute__((noinline)) float powers(float x) {
    float r[16], s = 0;
    for (int j = 0; j < 16; j++) r[j] = j;
    for (int i = 0; i < 200000; i++) for (int j = 0; j < 16; j++) r[j] = r[j] * x + 0.5f;
    for (int j = 0; j < 16; j++) s += r[j];
    return s;
}
int main(int count, char **words) { return powers(0.25f * count) > 99; }
"""


def test_fp32_without_a_price_is_told_with_the_most_that_it_can_take(product, tmp_path):
    (tmp_path / "fp32.c").write_text(FP32)
    subprocess.run(["gcc", "-O3", "fp32.c", "-o", "fp32"], cwd=tmp_path, check=True)
    view = View(eprof.load(run(tmp_path, "--repeat", "1", "./fp32"), cache=False).energy("sapphirerapids").document())
    (function,) = (kernel for kernel in view.kernels if kernel.name == "powers")
    assert [function.counts[f"fp32_{kind}"].value for kind in ("add", "mul")] == [3200016, 3200000]
    # 6.4e6 flops at the 109 pJ that a flop of FP64 takes at most.
    assert view.document.interval_j.uncounted["fp32"] == pytest.approx(6.4e6 * 109e-12, rel=0.01)
    assert "No price, at most " in trust(view).text and "J: FP32" in trust(view).text


def test_no_vectors_are_promised_where_accesses_jump(product):
    view = View(eprof.load(product[0], cache=False).energy("sapphirerapids").document())
    (function,) = (kernel for kernel in view.kernels if kernel.name == "product")
    for line in function.lines:
        line.counts["l3_read"].value = 8 * line.counts["global_read"].value
    assert not [loop for loop in better_loops(view) if "product" in loop.act]


def test_constant_power_is_that_of_the_cores_that_were_busy(product):
    manifest = json.loads((product[0] / "run.json").read_text())
    (alone,) = (each for each in manifest["measurements"] if each["what"] == "time")
    table = load("sapphirerapids")
    energy = eprof.load(product[0], cache=False).energy(table)
    # Of a program of one millisecond on a busy machine, the loader's work may seem to be all: nothing is left out then.
    used_s = alone["cpu_seconds"] - alone.get("left_out_cpu_s", 0.0)
    busy = used_s / (alone["seconds"] - sum(alone.get("left_out_s", {}).values()))
    assert energy.costs.constant_power_w == pytest.approx(176.3 * busy / 52)
    assert any("share of" in note and "assumed" in note for note in energy.costs.notes)
    cycles = energy.counts.amounts["core_active"].sum()
    assert cycles == pytest.approx(2e9 * used_s, rel=1e-3)
    assert table.in_sockets(2).at(None).constant_power_w == pytest.approx(2 * 176.3)
    alike, shared = table.at(None).peaks, table.in_sockets(0.25).at(None).peaks
    assert (shared.dram_gb_per_s, shared.dp_gflops) == (alike.dram_gb_per_s, alike.dp_gflops / 4)


def test_the_loaders_work_is_not_the_programs(tmp_path, monkeypatch):
    monkeypatch.setattr("eprof.profilers.callgrind.collector.loading_s", lambda program: 0.4)
    step = COLLECTOR.step(TIME, Tool("callgrind", True, "", "/bin/valgrind"), Request(("./a.out",)), Place(tmp_path))
    verdict = COLLECTOR.judge(step, Ended(0, None, 1.0, cpu_s=0.9, ran_s=0.95), [])
    assert verdict.left_out_s == {"the start of the process": 0.4, QUEUED: 0.0, SLEPT: pytest.approx(0.1)}
    assert verdict.left_out_cpu_s == pytest.approx(0.4)
    sleeping = COLLECTOR.judge(step, Ended(0, None, 2.0, cpu_s=0.5, ran_s=0.5, queued_s=0.2), [])
    assert sleeping.left_out_s[SLEPT] == pytest.approx(2.0 - 0.4 - 0.1 - 0.2), "no function of the program's has it"
    for cpu_s, seconds in ((0.3, 1.0), (0.9, 0.3)):
        assert not COLLECTOR.judge(step, Ended(0, None, seconds, cpu_s=cpu_s), []).left_out_s, "more than there was"


# ------------------------------------------------------------------------------------------ time in the kernel

TOUCH = """#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
int main(void) {
    long n = 3 << 20;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    for (long i = 0; i < n; i++) b[i] = 1;
    for (long i = 0; i < n; i++) a[i] = 3 * b[i];
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double system_s = used.ru_stime.tv_sec + 1e-6 * used.ru_stime.tv_usec;
    double user_s = used.ru_utime.tv_sec + 1e-6 * used.ru_utime.tv_usec;
    printf("%ld %g %g %g\\n", used.ru_minflt, user_s, system_s, a[n / 2]);
}
"""
NOTE = "At least {} % of the processor time ran in the kernel: system calls, 12,288 page faults, input and output"


@pytest.fixture(scope="module")
def touching(tmp_path_factory):
    """A run directory of a program that passes once over memory that it has just been given."""
    pytest.importorskip("capstone")
    if not all(map(shutil.which, ("gcc", "valgrind"))):
        pytest.skip("no gcc or no valgrind")
    folder = tmp_path_factory.mktemp("touching")
    (folder / "touch.c").write_text(TOUCH)
    subprocess.run(["gcc", "-O2", "-g", "touch.c", "-o", "touch"], cwd=folder, check=True)
    return run(folder, "./touch")


def test_time_in_the_kernel_is_told_as_the_program_sees_it(touching):
    manifest = json.loads((touching / "run.json").read_text())
    alone = [each for each in manifest["measurements"] if each["what"] == "time"]
    faults, *_ = map(float, (touching / "output" / "time-2.out").read_text().split())
    assert faults > 1000 and alone[1]["page_faults"] == pytest.approx(faults, rel=0.02)
    seen = [list(map(float, path.read_text().split())) for path in (touching / "output").glob("time-*.out")]
    system_s, used_s = sum(each[2] for each in seen), sum(each[1] + each[2] for each in seen)
    told_s, of_all_s = (sum(each[name] for each in alone[1:]) for name in ("system_seconds", "cpu_seconds"))
    assert 0.8 * system_s < told_s < of_all_s, "the program cannot see its own end"
    view = View(eprof.load(touching, cache=False).energy("sapphirerapids").document())
    if system_s > 0.5 * used_s:
        assert "of the processor time" in view.in_kernel and "page faults" in view.in_kernel
        assert what_to_try(view).text.startswith(f"work less in the kernel ({view.in_kernel}: `strace -c")
        assert f"in the kernel, and shared out likewise: {view.in_kernel}" in trust(view).text


def test_cycles_in_the_kernel_are_not_the_programs_own(touching):
    def told(*notes):
        view = View(eprof.load(touching, cache=False).energy("sapphirerapids").document())
        others = [note for note in view.document.warnings if "ran in the kernel" not in note]
        view.document.warnings[:] = [*others, *notes]
        return view, sum(map(view.cycles_j, view.kernels))

    view, all_j = told()
    assert not view.in_kernel and "kernel" not in what_to_try(view).text and "in the kernel" not in trust(view).text
    view, own_j = told(NOTE.format(75))
    assert view.in_kernel == "at least 75 % of the processor time, 12,288 page faults"
    assert own_j == pytest.approx(0.25 * all_j) and own_j > 0


def test_a_report_that_is_read_back_has_the_kernels_share(touching, tmp_path):
    document = eprof.load(touching, cache=False).energy("sapphirerapids").document()
    document["warnings"] = [note for note in document["warnings"] if "ran in the kernel" not in note]
    for number, notes in enumerate(([], [NOTE.format(75)])):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document | {"warnings": document["warnings"] + notes}))
        view = View(eprof.load(path, cache=False).energy("sapphirerapids").document())
        assert (view.in_program, bool(view.in_kernel)) == ((1.0, False), (0.25, True))[number]


def test_vectors_save_no_time_of_the_kernels(product):
    def loop(*notes):
        view = View(eprof.load(product[0], cache=False).energy("sapphirerapids").document())
        others = [note for note in view.document.warnings if "ran in the kernel" not in note]
        view.document.warnings[:] = [*others, *notes]
        (function,) = (kernel for kernel in view.kernels if kernel.name == "product")
        own_j = function.counts["core_active"].energy_j
        view.passing_j = lambda _: 9 * own_j
        (change,) = (change for change in better_loops(view) if "product" in change.act)
        return change.ends[1], 10 * own_j

    (all_j, timed_j), (less_j, _) = loop(), loop(NOTE.format(75))
    assert 0.3 * timed_j < all_j - less_j < 0.75 * timed_j and less_j > 0
    (some_j, _) = loop(NOTE.format(50))
    assert all_j - some_j == pytest.approx(2 / 3 * (all_j - less_j)), "half of the time, not three quarters"


def test_a_share_of_the_kernel_is_the_least_without_what_is_left_out():
    def notes(system_s, runs=2, **more):
        one = {"what": "time", "command": ["./a"], "seconds": 1.0, "cpu_seconds": 1.0, **more}
        measurements = [one | system_s] * runs
        run = Run(Path("a.eprof"), {"status": "complete", "program": ["./a"], "measurements": measurements}, {})
        return [note for note in run.notes() if "kernel" in note]

    much = {"system_seconds": 0.7, "page_faults": 12288}
    assert notes(much) == [NOTE.format(70) + "; it is shared out to functions by their cycles."]
    (less,) = notes(much, left_out_cpu_s=0.2)
    assert less.startswith("At least 62 % of the")  # 0.5 of 0.8 s
    assert not notes(much, left_out_cpu_s=0.6), "0.1 of 0.4 s"
    assert not notes({"system_seconds": 0.33}) and notes({"system_seconds": 0.34})
    assert "calls, page faults, input" in notes({"system_seconds": 0.34})[0], "their number is not known"
    assert not notes({}), "a run directory of an earlier version"
    brief = {"cpu_seconds": 0.02}
    assert not notes({"system_seconds": 0.015}, **brief), "too few ticks of Linux tell the two apart"
    assert notes({"system_seconds": 0.015}, runs=3, **brief)


# ----------------------------------------------------------------------------------------------------- Python

SCRIPT = """import json, sys
def work(n):
    total = 0
    for i in range(n):
        total += i
    return total
mark = getattr(sys, "_eprof_mark", lambda sign, name: None)  # as eprof.mark does, which takes long to import
mark("+", "sum up")
total = work(50000)
mark("-", "sum up")
print(total + len(sorted(range(30))))
"""
PARTS = """# callgrind format
creator: callgrind-3.19.0
cmd: python a.py
positions: line
events: Ir
part: 1
desc: Trigger: Client Request: {script}:5:8:18 work
ob=/venv/lib/python3/site-packages/numpy.libs/libscipy_openblas64_.so
fn=dgemm
0 70
ob=/usr/lib/libc.so.6
fn=memcpy
0 5
totals: 75
part: 2
desc: Trigger: Program termination
fn=memcpy
0 3
totals: 3
"""


def test_a_python_program_is_told_by_what_it_called_and_the_library_that_did_it(tmp_path):
    script = tmp_path / "a.py"
    script.write_text("\n\n\n\nx = 1 + a.dot(b) + 2\n")
    costs = in_python(parse(PARTS.format(script=script).replace("5:8:18", "5:8:16").split("\n")))
    told = {
        costs.functions[place].name: (costs.spots[spot].file, costs.spots[spot].line, own)
        for place, spot, own in zip(costs.places, costs.spot_of, costs.own["Ir"], strict=True)
    }
    assert told == {
        "a.dot, OpenBLAS": (str(script), 5, 70),
        "a.dot, C library": (str(script), 5, 5),
        "line not told, C library": ("", 0, 3),
    }


def test_an_operator_has_what_ran_in_it_though_python_looks_at_the_next_call_only(tmp_path):
    script = tmp_path / "a.py"
    script.write_text("c = a@a\nc += (c - 1)\nm = c[c < 0]\nprint(c[0])\nk = a.dot(c)\n")
    stack = '\fStack (most recent call first):\n  File "a.py", line {} in <module>\n'
    in_library = stack.replace("\n  File", '\n  File "/lib/python3/x.py", line 9 in f\n  File', 1).format(2)
    looked = f"@{script}:4:0:11 <module>\n"
    samples = [stack.format(1), stack.format(1), in_library, stack.format(3), stack.format(4) + looked]
    samples += ["\f", stack.format(5) + f"@{script}:5:4:12 <module>\n"]
    (tmp_path / "lines-1-77.txt").write_text(f"{tmp_path}\n/lib/python3\n" + "".join(samples))
    lines = ["# callgrind format", "pid: 77", "positions: line", "events: Ir"]
    for number, said in enumerate(["sample"] * 5 + ["resumed", "sample", "sample"], 1):
        lines += [f"part: {number}", f"desc: Trigger: Client Request: {said}"]
        lines += [
            "ob=/x/site-packages/numpy/_core/u.so",
            "fn=f",
            f"0 {10**number}",
            "ob=/usr/bin/python3",
            "fn=g",
            "0 1",
        ]
    costs = decoded(parse(lines), tmp_path)
    told = Counter()
    for place, executed in zip(costs.places, costs.own["Ir"], strict=True):
        told[costs.functions[place].name] += executed
    assert told == {
        "a @ a, numpy": 110, "c += c - 1, numpy": 10**3, "c[c < 0], numpy": 10**4, "print, numpy": 10**5 + 10**6,
        "line not told, numpy": 10**7, "a.dot, numpy": 10**8, "a.py, Python": 4,
        "print, Python": 2, "a.dot, Python": 1, "line not told, Python": 1,
    }  # fmt: skip
    assert {spot.line for spot in costs.spots} == {0, 1, 2, 3, 4, 5}


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=40))
def test_whatever_a_part_says_no_count_is_lost(frame):
    costs = parse(PARTS.replace("{script}:5:8:18 work", frame).split("\n"))
    assert in_python(costs).own["Ir"].sum() == costs.own["Ir"].sum() == 78


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/site-packages/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "numpy"),
        ("/x/site-packages/scipy.libs/libgfortran.so", "scipy"),
        ("/usr/lib/libpython3.11.so.1.0", "Python"),
        ("/usr/bin/python3.11", "Python"),
        ("/usr/lib/x86_64-linux-gnu/libm.so.6", "C math library"),
        ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "libstdc++"),
        ("/lib64/libgomp-plugin.so.1", "OpenMP"),
        ("/home/me/libmine.so", "libmine.so"),
    ],
)
def test_libraries_have_names(path, name):
    assert library(path) == name


def test_python_is_counted_from_its_first_line_on_unless_it_takes_no_module(tmp_path, monkeypatch):
    script, other = tmp_path / "tool", tmp_path / "other"
    script.write_text("#!/usr/bin/env python3\n")
    other.write_text("#!/bin/sh\n")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    tool = Tool("callgrind", True, "", "/bin/valgrind")

    def path_of(*program):
        return COLLECTOR.step("counters", tool, Request(program), Place(tmp_path)).environment.get("PYTHONPATH")

    for program in (("python3", "a.py", "-I"), ("/usr/bin/python3.12", "-m", "a"), (str(script), "-I")):
        assert path_of(*program).endswith("hook:/mine"), program
    for program in (("python3", "-I", "a.py"), ("python", "-uE", "a.py"), (str(other),), ("./a.out",)):
        assert path_of(*program) is None, program
    step = COLLECTOR.step(TIME, tool, Request(("python3", "a.py")), Place(tmp_path))
    assert COLLECTOR.judge(step, Ended(0, None, 1.0), []).left_out_s == {}
    (tmp_path / "logs").mkdir()
    Path(step.environment["EPROF_PYTHON_TIMES"]).write_text("0.6 0.5 0.02 0.3\n")
    verdict = COLLECTOR.judge(step, Ended(0, None, 1.0, cpu_s=0.8, ran_s=0.8), [])
    assert verdict.left_out_s == {
        "Python's start and end": pytest.approx(0.1),
        "imports": 0.3,
        QUEUED: 0.02,
        SLEPT: pytest.approx(0.08),
    }
    assert verdict.left_out_cpu_s == pytest.approx(0.3)
    assert COLLECTOR.judge(step, Ended(0, None, 0.2, cpu_s=0.8), []).left_out_s == {}, "more than there was"
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr("eprof.profilers.callgrind.collector._CPUINFO", cpuinfo)
    counting = COLLECTOR.step("counters", tool, Request(("python3", "a.py")), Place(tmp_path))
    of_c = COLLECTOR.step("counters", tool, Request(("./a.out",)), Place(tmp_path))
    assert "--dump-line=no" in counting.command, "lines of C would be read for nothing"
    assert "--dump-line=no" not in of_c.command and "--instr-atstart=no" not in of_c.command
    profile = [tmp_path / "counters-1-7.callgrind"]
    hidden = {"avx2 avx512f fma": "AVX-512", "avx2 avx512f sha_ni": "AVX-512 or SHA instructions", "avx2 fma": ""}
    for has, lacks in hidden.items():
        cpuinfo.write_text(f"flags : {has}\n")
        said = " ".join(COLLECTOR.judge(counting, Ended(0, None, 1.0), profile).messages)
        assert f"{OTHER_CODE}{lacks}, and this one has" in said if lacks else OTHER_CODE not in said


def test_a_script_named_python_is_left_to_run_before_valgrind_begins(tmp_path, monkeypatch):
    script, other = tmp_path / "python", tmp_path / "python3"
    script.write_text(f'#!/bin/sh\nexport PYTHONPATH=/mine OF_SCRIPT=1\nexec {sys.executable} "$@"\n')
    other.write_text("#!/bin/sh\necho no python\n")
    for each in (script, other):
        each.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    tool = Tool("callgrind", True, "", "/bin/valgrind")
    counting, another = (
        COLLECTOR.step("counters", tool, Request((name, "a.py")), Place(tmp_path)) for name in ("python", "python3")
    )
    assert counting.command[-2:] == (sys.executable, "a.py")
    assert counting.then.command[-1] == sys.executable, "nothing was executed in its place"
    assert counting.environment["PYTHONPATH"].endswith("hook:/mine") and counting.environment["OF_SCRIPT"] == "1"
    assert COLLECTOR.step(TIME, tool, Request(("python", "a.py")), Place(tmp_path)).command == ("python", "a.py")
    assert another.command[-2:] == ("python3", "a.py") and "OF_SCRIPT" not in another.environment


def test_a_python_program_runs_as_ever_and_its_start_is_left_out(tmp_path):
    pytest.importorskip("capstone")
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    (tmp_path / "a.py").write_text(SCRIPT)
    directory = run(tmp_path, sys.executable, "a.py")
    assert (directory / "output" / "counters-1.out").read_text() == f"{49999 * 25000 + 30}\n"
    manifest = json.loads((directory / "run.json").read_text())
    alone = [each for each in manifest["measurements"] if each["what"] == "time"]
    assert 3 <= len(alone) <= 15, "a short program is timed several times"
    profile = eprof.load(directory, cache=False)
    kept_s = [each["seconds"] - sum(each["left_out_s"].values()) for each in alone]
    assert 0 < profile.run.program_s == pytest.approx(statistics.median(kept_s))
    assert any(warning.startswith("Left out of the time") for warning in profile.warnings)
    assert any(f"the median of {len(alone)} runs" in warning for warning in profile.warnings)
    document = profile.energy("sapphirerapids").document()
    assert "(without Python's start and end" in headline(View(document)).text
    kernels = document["kernels"]
    (work,) = (kernel for kernel in kernels if kernel["name"] == "work, Python")
    assert {line["place"] for line in work["lines"]} <= {"a.py:4", "a.py:5"}
    executed = sum(kernel["counts"]["retired"]["value"] for kernel in kernels)
    assert work["counts"]["retired"]["value"] > 0.5 * executed, "imports and Python's start are not counted"
    marked = eprof.load(directory, cache=False, parts="mark").counts()
    by_mark = marked.table["retired"]
    assert by_mark[marked.rows.part == "sum up"].sum() > 0.8 * executed and by_mark.sum() == executed
