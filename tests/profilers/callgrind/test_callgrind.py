"""Callgrind: its format, the decoder, exact counts of programs that are compiled here, time, and processes."""

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from callgrind_support import COMPRESSED, PLAIN
from hypothesis import given, settings
from hypothesis import strategies as st
from run_support import ROOT

from eprof.base.errors import LogError
from eprof.base.vocabulary import Mark
from eprof.collect.collector import COUNTERS, ENERGY, TIME, Place, Request, Tool
from eprof.collect.process import Ended
from eprof.logs import read
from eprof.profile import api
from eprof.profilers.callgrind import decode as machine_code
from eprof.profilers.callgrind.collector import COLLECTOR, valgrind_caches
from eprof.profilers.callgrind.decode import decoded
from eprof.profilers.callgrind.decode import main as decode
from eprof.profilers.callgrind.file_format import Function, parse

DATA = ROOT.parent / "shared" / "data" / "cpu" / "simulated"
KERNELS = Path(__file__).parents[2] / "support" / "cpu_kernels.c"
N = 1024  # of the triad and the stencil; the matrices are 32 wide, the transform has 64 points
BUTTERFLIES = 64 * 6 // 2


def parsed(text):
    return parse(text.split("\n"))


def read_text(path, text):
    path.write_text(text)
    return read(path)


def sums(costs):
    """The events of each function, whichever lines they stand in."""
    total = {}
    for place, own in zip(costs.places.tolist(), costs.own.values, strict=True):
        total[costs.functions[place]] = total.get(costs.functions[place], 0) + own
    return {function: own.tolist() for function, own in total.items()}


# ------------------------------------------------------------------------------------------------------ the format


def test_names_and_addresses_may_be_written_short():
    plain, short = parsed(PLAIN), parsed(COMPRESSED)
    assert sums(plain) == sums(short) == {Function("/a", "main"): [4, 0, 1], Function("/b.so", "work"): [30, 5, 0]}
    assert plain.addresses.tolist() == short.addresses.tolist() == [0x10, 0x12, 0x16, 0x40]
    assert [call.number for call in short.calls] == [3]
    assert plain.is_whole and not plain.skipped and not short.skipped


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 40), st.integers(0, 1 << 40)), min_size=1))
def test_a_profile_that_is_written_reads_the_same(rows):
    lines = ["creator: callgrind-3", "positions: line", "events: Ir Dr"]
    for function, executed, loads in rows:
        lines += [f"ob=/lib{function % 2}.so", f"fn=f{function}", f"0 {executed} {loads}"]
    executed, loads = (sum(row[place] for row in rows) for place in (1, 2))
    costs = decoded(parse([*lines, f"totals: {executed} {loads}"]), Path())
    again = parse("\n".join(costs.text()).split("\n"))
    assert sums(again) == sums(costs)
    assert (again.notes, again.damage) == (costs.notes, None)


def test_parts_of_a_profile_add_up_and_one_that_is_cut_off_has_no_end():
    twice = PLAIN + "part: 2\n" + PLAIN.partition("creator")[2].partition("\n")[2]
    assert sums(parsed(twice))[Function("/a", "main")] == [8, 0, 2]
    assert not parsed(twice.rpartition("ob=")[0]).is_whole


def test_a_part_that_lacks_its_end_is_seen_behind_its_summary():
    part = PLAIN.replace("version: 1", "version: 1\nsummary: 34 5 1")
    assert "summary" in part
    twice = part + "part: 2\n" + part.partition("creator")[2].partition("\n")[2]
    assert parsed(twice).is_whole
    assert parsed(twice.rpartition("ob=")[0]).totals is None


def test_costs_that_are_lost_or_damaged_make_lower_bounds(tmp_path):
    path = tmp_path / "callgrind.out.1"
    whole = read_text(path, PLAIN).tables[0].counters
    damages = [("0x16 1", "0x16 x"), ("0x16 1", "0x16 -1"), ("0x16 1\n", ""), ("0x16 1", f"0x16 {10**400}")]
    for line, damaged in damages:
        assert line in PLAIN
        log = read_text(path, PLAIN.replace(line, damaged, 1))
        assert log.tables[0].lacks_rows
        assert any("lost or damaged" in note for note in log.notes)
        rows, counters = log.tables[0].rows, log.tables[0].counters
        assert "functions not shown" in rows.kernel.texts()
        assert dict(zip(counters.names, counters.values.sum(axis=0), strict=True)) == dict(
            zip(whole.names, whole.values.sum(axis=0), strict=True)
        )
    with pytest.raises(LogError, match="more than its end tells"):
        read_text(path, PLAIN.replace("calls=3 0x40\n", ""))
    assert parsed(PLAIN).damage is None


@pytest.mark.parametrize("number", ["", "x", str(10**20), "9" * 5000])
def test_damaged_calls_count_neither_calls_nor_costs(number):
    text = re.sub(r"calls=\d+", f"calls={number}", PLAIN)
    assert text != PLAIN
    costs = parsed(text)
    assert not costs.calls
    assert costs.skipped == 1
    assert sums(costs) == sums(parsed(PLAIN))


def test_a_decoded_profile_has_no_end_where_the_raw_one_has_none():
    cut = parsed(PLAIN.rpartition("totals")[0])
    assert not parse("\n".join(decoded(cut, Path()).text()).split("\n")).is_whole


def test_a_name_like_an_address_may_be_none(tmp_path):
    path = tmp_path / "callgrind.out.1"
    assert "0xzz" in read_text(path, PLAIN.replace("work", "0xzz")).tables[0].rows.kernel.names


def test_a_line_that_is_no_cost_is_counted_and_left_out():
    costs = parsed(PLAIN.replace("0x16 1", "0x16 1 2 3 4 5\n+7 x\nnonsense"))
    assert costs.skipped == 3
    assert sums(costs)[Function("/a", "main")] == [3, 0, 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("creator: callgrind-3.19.0\nevents: Ir\n", "killed"), (PLAIN + "events: Ir\n", "different events")],
)
def test_a_profile_without_costs_is_one_sentence(tmp_path, text, reason):
    path = tmp_path / "callgrind.out.1"
    path.write_text(text)
    with pytest.raises(LogError, match=reason):
        api.load(path)


# ------------------------------------------------------------------------------------------------ instructions


@pytest.mark.parametrize(
    ("code", "counted", "lanes", "access_bytes"),
    [
        ("c5fd58c1", "fp64_add", 4, 0),  # vaddpd ymm0, ymm0, ymm1
        ("f20f58c1", "fp64_add", 1, 0),  # addsd xmm0, xmm1
        ("0f5901", "fp32_mul", 4, 16),  # mulps xmm0, [rcx]
        ("c4e2f5b80407", "fp64_fma", 4, 32),  # vfmadd231pd ymm0, ymm1, [rdi + rax]
        ("c4e271b9c2", "fp32_fma", 1, 0),  # vfmadd231ss xmm0, xmm1, xmm2
        ("f20f51c1", "special", 1, 0),  # sqrtsd
        ("660f5ec1", "special", 2, 0),  # divpd
        ("f20f2ac0", "conversion", 1, 0),  # cvtsi2sd xmm0, eax
        ("c5fe5bc1", "conversion", 8, 0),  # vcvttps2dq ymm0, ymm1
        ("660ffec1", "integer", 4, 0),  # paddd xmm0, xmm1
        ("660fefc1", "integer", 2, 0),  # pxor: 64 bits at a time
        ("480307", "integer", 1, 8),  # add rax, [rdi]
        ("8b07", "misc", 1, 4),  # mov eax, [rdi]
        ("50", "misc", 1, 8),  # push rax
        ("c3", "control", 1, 8),  # ret
        ("7502", "control", 1, 0),  # jne
        ("d8c1", "x87", 1, 0),  # fadd st, st(1)
        ("d9ff", "special", 1, 0),  # fcos
        ("f3a4", "misc", 1, 1),  # rep movsb
        ("c4e2e59304e2", "gather", 1, 8),  # vgatherqpd ymm0, [rdx + ymm4*8], ymm3: a lane at a time
        ("c4e2e59004e2", "gather", 1, 8),  # vpgatherdq
        ("c4e2659004e2", "gather", 1, 4),  # vpgatherdd
        ("c4e27d2f0f", "misc", 1, 8),  # vmaskmovpd [rdi], ymm0, ymm1: a lane at a time
        ("c4e2792c0e", "misc", 1, 4),  # vmaskmovps xmm1, xmm0, [rsi]
        ("660ff7c1", "masked", 1, 0),  # maskmovdqu: nobody knows which bytes
        ("0fae06", "misc", 1, 512),  # fxsave [rsi]
        ("f3a7", "integer", 1, 4),  # repe cmpsd: of strings, not of numbers
        ("f20fc20e01", "fp64_other", 1, 8),  # cmpltsd xmm1, [rsi]
    ],
)
def test_an_instruction_counts_its_lanes_and_its_operand(code, counted, lanes, access_bytes):
    capstone = pytest.importorskip("capstone")
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    (_, _, mnemonic, operands), *_ = decoder.disasm_lite(bytes.fromhex(code), 0)
    instruction = machine_code._instruction(mnemonic, operands)
    assert instruction[:3] == (counted, lanes, access_bytes)


# ---------------------------------------------------------------------------------------------- real programs


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Builds of the known program; skips without a compiler, valgrind or capstone."""
    pytest.importorskip("capstone")
    if not shutil.which("gcc") or not shutil.which("valgrind"):
        pytest.skip("no gcc or no valgrind")
    folder = tmp_path_factory.mktemp("kernels")

    def build(name, *flags, source=KERNELS):
        subprocess.run(["gcc", *flags, str(source), "-o", str(folder / name)], check=True)
        return folder / name

    return build


@pytest.mark.parametrize(
    ("flags", "is_optimised"),
    [(("-O0", "-g"), False), (("-g", "-gz"), False), (("-O2", "-g"), True), (("-Og", "-g"), True), (("-O0",), None)],
)
def test_what_the_compiler_was_told_is_read_beside_debug_information(compiled, flags, is_optimised):
    assert machine_code.Code(compiled("flags", *flags)).is_optimised() is is_optimised


def counted(program, folder, *arguments):
    """A profile of a program, made as `eprof run` does but for the time: function -> event -> number."""
    tool = Tool("callgrind", True, "", shutil.which("valgrind"))
    (folder / "logs").mkdir()
    step = COLLECTOR.step(COUNTERS, tool, Request((str(program), *arguments)), Place(folder))
    subprocess.run(step.command, check=True, capture_output=True)
    (source,) = (then.source for then in step.then.each())
    costs = decoded(parse(source.read_text().split("\n")), folder)
    own = dict(zip(costs.own.names, costs.own.values.T.tolist(), strict=True))
    return {
        costs.functions[place].name: {event: numbers[row] for event, numbers in own.items()}
        for row, place in enumerate(costs.places.tolist())
    }


BUILDS = {
    "scalar": ("-O2", "-fno-tree-vectorize"),
    "sse2": ("-O3",),
    "avx2": ("-O3", "-march=haswell", "-ffp-contract=fast"),
}


@pytest.mark.parametrize("build", BUILDS)
def test_known_programs_are_counted_exactly(compiled, tmp_path, build):
    is_fused = build == "avx2"
    if is_fused and " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("a processor without AVX2")
    of = counted(compiled(build, *BUILDS[build]), tmp_path, str(N))

    def operations(function):
        return [of[function][f"fp64_{kind}"] for kind in ("fma", "add", "mul")]

    assert operations("triad") == ([N, 0, 0] if is_fused else [0, N, N])
    assert operations("gemm") == ([32**3, 0, 0] if is_fused else [0, 32**3, 32**3])
    assert [of["stencil"][f"fp32_{kind}"] for kind in ("fma", "add", "mul")] == [0, N, N]
    # A butterfly has 4 products and 6 sums; fused, 2 of each become 2 multiply-adds.
    whole = [2 * BUTTERFLIES, 4 * BUTTERFLIES, 2 * BUTTERFLIES]
    assert operations("fft") == (whole if is_fused else [0, 6 * BUTTERFLIES, 4 * BUTTERFLIES])
    # Two arrays in and one out; and the return address.
    assert of["triad"]["load_bytes"] == 16 * N + 8
    assert of["triad"]["store_bytes"] == 8 * N
    assert all(own["undecoded"] == 0 for own in of.values())


STATIC = """#include <stdlib.h>
#include "half.h"
static __attribute__((noinline)) double work(double x) { double a = 1; for (int i = 0; i < 300; i++) a *= x; return a; }
double product(double x) { return work(x) + half(x); }
"""
ALSO_STATIC = """#include <stdlib.h>
#include "half.h"
double product(double x);

static __attribute__((noinline)) double work(double x) { double s = x; for (int i = 0; i < 70; i++) s += x; return s; }
int main(int count, char **words) { return product(count) + work(count) + work(count + 1) + half(count) > 1e6; }
"""
HALF = """static __attribute__((noinline)) double half(double x) { volatile double by = 0.5; return x * by; }
"""


@pytest.mark.parametrize("flags", [("-O1", "-g"), ("-O1",)])
def test_static_functions_of_one_name_are_told_apart_by_their_files(compiled, tmp_path, flags):
    (tmp_path / "first.c").write_text(STATIC)
    (tmp_path / "second.c").write_text(ALSO_STATIC)
    (tmp_path / "half.h").write_text(HALF)
    program = compiled("static", *flags, str(tmp_path / "first.c"), source=tmp_path / "second.c")
    of = counted(program, tmp_path)
    assert "work" not in of
    assert [of["work (first.c)"][f"fp64_{kind}"] for kind in ("add", "mul")] == [0, 300]
    assert [of["work (second.c)"][f"fp64_{kind}"] for kind in ("add", "mul")] == [2 * 70, 0]
    # A function of a header is one, in however many files, where its lines tell.
    copies = [name for name in of if name.startswith("half")]
    assert copies == ["half"] or "-g" not in flags
    assert sum(of[name]["fp64_mul"] for name in copies) == 2
    (source,) = (tmp_path / "logs").glob("*.out")
    costs = decoded(parse(source.read_text().split("\n")), tmp_path)
    called = {costs.functions[call.callee].name: 0 for call in costs.calls}
    for call in costs.calls:
        called[costs.functions[call.callee].name] += call.number
    assert (called["work (first.c)"], called["work (second.c)"]) == (1, 2)


def test_functions_of_one_name_in_several_programs_are_told_apart_by_these(tmp_path):
    for program, executed in (("first", 400), ("second", 70)):
        text = f"version: 1\npid: 7\nevents: Ir\nob=/there/{program}\nfn=main\n0 {executed}\n"
        text += "cob=/lib/libc.so\ncfn=exit\ncalls=1 0\n0 5\nob=/lib/libc.so\nfn=exit\n0 5\n"
        (tmp_path / f"callgrind.out.{executed}").write_text(f"{text}totals: {executed + 5}\n")
    paths = sorted(tmp_path.iterdir())
    profile = api.load(*paths)
    rows = profile.counted[0].launches.rows
    executed = dict(zip(rows.kernel, profile.counted[0].launches.counters["Ir"].tolist(), strict=True))
    assert executed == {"main (first)": 400, "main (second)": 70, "exit": 10}
    callers = {caller for log in profile.logs for caller, callee, _, _ in log.calls.each()}
    assert callers == {"main (first)", "main (second)"}
    assert "main" in api.load(paths[0]).counted[0].launches.rows.kernel


FORKS = """
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
static char bytes[2048];
__attribute__((noinline)) void compare(void) {
    char *one = bytes, *other = bytes + 1024;
    long rest = 1024;
    __asm__ volatile("repe cmpsb" : "+D"(one), "+S"(other), "+c"(rest) : : "memory", "cc");
}
__attribute__((noinline)) double work(int n) { double s = 0; for (int i = 0; i < n; i++) s += 0.5 * i; return s; }
int main(void) {
    char *none[] = {0};
    pid_t child;
    double s = work(1000);
    if (fork() == 0) { s += work(20000); _exit(s < 0 ? 9 : 0); }
    wait(0);
    posix_spawn(&child, "./no-such-program", 0, 0, none, none);
    compare();
    return s + work(300) < 0 ? 9 : 7;
}
"""


def test_eprof_run_counts_children_once_and_shares_the_time_of_the_bare_run(compiled, eprof_command, tmp_path):
    source = tmp_path / "forks.c"
    source.write_text(FORKS)
    program = compiled("forks", "-O2", source=source)
    done = eprof_command("run", "--no-report", "--profiler", "callgrind", "-o", "run.eprof", program)
    assert done.returncode == 7, done.stderr

    manifest = json.loads((tmp_path / "run.eprof" / "run.json").read_text())
    # A machine with RAPL measures energy between the two.
    assert {entry["what"] for entry in manifest["measurements"]} - {ENERGY} == {TIME, COUNTERS}
    bare_s = api.load(tmp_path / "run.eprof").run.program_s
    energy = api.load(tmp_path / "run.eprof").energy()
    assert energy.costs.name == "sapphirerapids"
    rows = energy.to_frame().set_index("kernel")
    assert rows.loc["work", "fp64_add"] == 1000 + 20000 + 300
    assert rows.loc["work", "launches"] == 3
    assert rows.loc["compare", "global_read"] == 2 * 1024 + 8  # and the return address
    assert np.isclose(rows.time_s.sum(), bare_s)
    assert "estimated" in rows.loc["work", "marks"]

    document = api.load(tmp_path / "run.eprof").energy().document()
    callees = {kernel["name"]: kernel["inclusive_j"] for kernel in document["kernels"]}
    assert callees["main"] > callees["work"] > 0

    some = api.load(tmp_path / "run.eprof", kernels=["work"]).energy().to_frame()
    assert np.isclose(some.time_s.item(), rows.loc["work", "time_s"])


REPLACED = """
#include <unistd.h>
#include <sys/wait.h>
__attribute__((noinline)) double work(int n) { double s = 0; for (int i = 0; i < n; i++) s += 0.5 * i; return s; }
int main(int count, char **words) {
    double s = work(1000);
    if (count > 1) return s + work(300) < 0;
    if (fork() == 0) return s + work(20000) < 0;
    wait(0);
    execl("./next", "next", "again", (char *)0);
    return 9;
}
"""


def test_what_a_program_did_before_it_executed_another_is_missing(compiled, tmp_path, capsys, monkeypatch):
    source = tmp_path / "first.c"
    source.write_text(REPLACED)
    program = compiled("first", "-O1", source=source)
    shutil.copy(program, tmp_path / "next")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    tool = Tool("callgrind", True, "", shutil.which("valgrind"))
    step = COLLECTOR.step(COUNTERS, tool, Request((str(program),)), Place(tmp_path))
    subprocess.run(step.command, check=True, capture_output=True)
    lacks = []
    for then in step.then.each():
        assert decode([str(then.source), "", str(program)]) == 0
        then.log.write_text(capsys.readouterr().out)
        (table,) = read(then.log).tables
        adds = table.counters["fp64_add"][table.rows.kernel.texts().tolist().index("work")]
        lacks.append((adds, table.lacks_rows))
    # The child of the first program, and what became of its parent.
    assert sorted(lacks) == [(1000 + 300, True), (20000, False)]
    (sentence,) = COLLECTOR.judge(step, Ended(0, None, 1.0, False), [tmp_path / "counters-1-7.callgrind"]).messages
    assert sentence.startswith(f"{program} executed ") and "next in its place" in sentence


# ----------------------------------------------------------------------------------------------- recorded profiles


@pytest.fixture
def recorded(tmp_path):
    """Unpacks a recorded profile into a folder of its own; skips where the shared data is not there."""

    def unpack(name, to):
        if not (DATA / name).is_file():
            pytest.skip("no shared data")
        (tmp_path / to).write_bytes(gzip.decompress((DATA / name).read_bytes()))
        return tmp_path / to

    return unpack


def test_a_recorded_gemm_is_decoded_beside_its_program_and_priced_as_an_i7_950(recorded):
    pytest.importorskip("capstone")
    recorded("gemm256-nehalem.elf.gz", "g_nehalem")
    profile = api.load(recorded("callgrind-gemm256-nehalem-i7-950-caches.out.gz", "callgrind.out"), cache=False)
    amounts = profile.counts().table.sum()
    assert (amounts.fp64_add, amounts.fp64_mul, amounts.special) == (16_908_288, 16_777_216, 131_072)
    assert (amounts.dram_read, amounts.dram_write) == (64 * 26_108, 64 * 17_007)
    energy = profile.energy("i7-950")
    joules = energy.split.table.sum()
    assert f"{joules.fp64_add + joules.fp64_mul:.6g}" == "0.0225693"
    assert f"{joules.dram_read + joules.dram_write:.6g}" == "0.00219369"
    # Nobody timed this run, and a simulation of caches is no reason to make a time up.
    assert np.isnan(energy.counts.rows.time_s).all()

    by_name = {kernel: row for row, kernel in enumerate(energy.counts.rows.kernel)}
    marks = energy.counts.amount_marks.only(["fp64_add", "integer", "dram_read"])[by_name["gemm"]]
    assert marks.tolist() == [0, 0, int(Mark.SIMULATED)]
    study = json.loads((DATA / "callgrind-gemm256-classes.json").read_text())["g_nehalem:gemm"]
    own = energy.counts.table.iloc[by_name["gemm"]]
    assert (own.global_read, own.global_write) == (study["load_bytes"], study["store_bytes"])


def test_a_profile_without_its_program_has_bytes_and_says_why_it_has_no_classes(recorded):
    path = recorded("callgrind-gemm256-nehalem-i7-950-caches.out.gz", "callgrind.out")
    energy = api.load(path, cache=False).energy("i7-950")
    own = energy.to_frame().set_index("kernel").loc["gemm"]
    assert np.isnan(own.fp64_add)
    assert own.dram_read == 64 * 8192
    assert any("g_nehalem: is not here" in warning for warning in energy.warnings)


def test_another_file_of_the_same_name_is_not_decoded(recorded):
    pytest.importorskip("capstone")
    path = recorded("callgrind-gemm256-nehalem-i7-950-caches.out.gz", "callgrind.out")
    shutil.copy("/bin/true", path.parent / "g_nehalem")
    own = api.load(path, cache=False).energy("i7-950").to_frame().set_index("kernel").loc["gemm"]
    assert np.isnan(own.fp64_add)


def test_a_program_that_was_built_again_since_is_not_decoded(compiled, tmp_path):
    source, profile = tmp_path / "square.c", tmp_path / "callgrind.out"
    body = "static volatile double a = 2; int main(void) { return a * a > 9; }"
    source.write_text(body)
    program = compiled("square", "-O1", source=source)
    subprocess.run(
        ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={profile}", str(program)],
        check=True,
        capture_output=True,
    )
    assert api.load(profile, cache=False).energy("i7-950").to_frame().fp64_mul.sum() >= 1

    source.write_text(body.replace("*", "+"))
    compiled("square", "-O1", source=source)
    rebuilt_s = profile.stat().st_mtime + 5
    os.utime(program, (rebuilt_s, rebuilt_s))
    again = api.load(profile, cache=False)
    assert np.isnan(again.energy("i7-950").to_frame().set_index("kernel").loc["main", "fp64_add"])
    assert any("square: was changed after the profile was written" in note for log in again.logs for note in log.notes)


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.glob("*.out.gz")) or ["none.out.gz"])
def test_every_recorded_profile_gives_a_report(name):
    if not (DATA / name).is_file():
        pytest.skip("no shared data")
    energy = api.load(DATA / name, cache=False).energy("i7-950")
    assert energy.document()["devices"][0]["processor"] == "cpu"
    assert energy.counts.table.dram_read.sum() > 0


# ------------------------------------------------------------------------------------------------ the profiler


OF_LIBRARIES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) void sort_all(int *v, int n) {
    qsort(v, n, sizeof *v, by_value);
}
__attribute__((noinline)) int append(char *s) {
    for (int i = 0; i < 300; i++)
        strcat(s, "some words ");
    return strlen(s);
}
int main(void) {
    static char s[10000];
    static int v[3000];
    for (int i = 0; i < 3000; i++) v[i] = i * 7919 % 3001;
    sort_all(v, 3000);
    return append(s) + v[0] == 0;
}
"""


def test_work_in_the_c_library_is_told_by_who_calls_it_and_what_spares_it(compiled, eprof_command, tmp_path):
    (tmp_path / "calls.c").write_text(OF_LIBRARIES)
    program = compiled("calls", "-g", "-O1", "-fno-builtin", source=tmp_path / "calls.c")
    done = eprof_command("run", "--profiler", "callgrind", "-o", "run.eprof", program)
    assert done.returncode == 0, done.stderr
    energy = api.load(tmp_path / "run.eprof").energy()
    callers = {
        kernel["name"]: [(caller["name"], caller["place"]) for caller in kernel["callers"]]
        for kernel in energy.document()["kernels"]
        if kernel.get("callers")
    }
    assert "by_value" not in callers and "main" not in callers
    assert callers["qsort_r"] == [("sort_all", "calls.c:7")]
    assert any(of[0] == ("append", "calls.c:11") for name, of in callers.items() if "str" in name), callers
    shown = " ".join(done.stdout.split())
    assert "called by sort_all at calls.c:7" in shown
    assert "do less for sort_all at calls.c:7 (an inlined comparison (std::sort)," in shown
    assert "saves up to" in shown and "if none is left" in shown


UNKNOWN = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    puts("ran");
    fflush(stdout);
    if (getenv("EPROF_MARKS")[0] == 'v') __asm__ volatile(CODE);  // "valgrind" where callgrind counts
    return 0;
}
"""


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("vaddpd %zmm0, %zmm1, %zmm1", "cannot run AVX-512 that the program has in main (unknown.c:7)"),
        ("vaesenc %ymm0, %ymm1, %ymm1", "cannot run an instruction that the program has in main (unknown.c:7)"),
    ],
)
def test_what_valgrind_cannot_run_is_one_sentence_with_the_remedy_and_the_run_fails(
    compiled, eprof_command, tmp_path, code, sentence
):
    (tmp_path / "unknown.c").write_text(UNKNOWN.replace("CODE", f'"{code}"'))
    program = compiled("unknown", "-g", "-O1", source=tmp_path / "unknown.c")
    done = eprof_command("run", "--profiler", "callgrind", "-o", "run.eprof", program)
    assert done.returncode == 1 and done.stdout.startswith("ran\n")
    assert f"Valgrind {sentence}, and ended it there: build it with -march=x86-64-v3" in done.stderr
    assert "died of SIGILL in the counters run." in done.stderr and "ended with 132" not in done.stderr
    assert (tmp_path / "run.eprof" / "report.html").is_file()


_FORKED = b"Trigger: --dump-before=fork"


@pytest.mark.parametrize(
    ("parts", "of_child", "sentence"),
    [
        (_FORKED, b"", None),
        (b"", b"", "is counted again in 1 of its children"),
        (_FORKED, b"\npart: 1\nthread: 1\n\npart: 2\nthread: 2\n", None),
        (_FORKED, b"\npart: 1\nthread: 1\n\npart: 1\nthread: 2\n", "may be counted again in 1 of its children"),
    ],
)
def test_a_child_that_has_the_costs_of_its_parent_is_told(tmp_path, parts, of_child, sentence):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "messages-1-7.txt").write_text(
        "==7== Command: ./a\n==7== Parent PID: 1\n==7== For interactive control, run it.\n"
    )
    (logs / "messages-1-9.txt").write_text("==9== Command: ./a\n==9== Parent PID: 7\n==9==\n")
    (logs / "counters-1-7.out").write_bytes(b"desc: " + parts)
    (logs / "counters-1-9.out").write_bytes(of_child)
    step = COLLECTOR.step(COUNTERS, Tool("callgrind", True, ""), Request(("./a",)), Place(tmp_path))
    said = COLLECTOR.judge(step, Ended(0, None, 1.0, False), [logs / "counters-1-7.callgrind"]).messages
    assert [each for each in said if "counted again" in each] == [
        each for each in said if sentence and sentence in each
    ]
    assert (sentence is None) == (not said)


@pytest.mark.parametrize(
    ("program", "command", "other"),
    [
        ("./wrapper.sh", "/bin/true -x", "/bin/true"),
        ("./a", "/opt/my\\ tools/b c", "/opt/my tools/b"),
        ("./a", "/home/me/a -x", None),
        ("./my tool", "./my\\ tool -x", None),
    ],
)
def test_a_program_that_executed_another_in_its_place_is_told(tmp_path, program, command, other):
    """Valgrind names the program that a process became; a child of it (9) is no such case."""
    logs = tmp_path / "logs"
    logs.mkdir()
    started = "==7== For interactive control, run it.\n"
    (logs / "messages-1-7.txt").write_text(f"==7== Command: {command}\n==7== Parent PID: 1\n{started}")
    (logs / "messages-1-9.txt").write_text(f"==9== Command: /bin/ls\n==9== Parent PID: 7\n{started}")
    step = COLLECTOR.step(COUNTERS, Tool("callgrind", True, "", "valgrind"), Request((program,)), Place(tmp_path))
    said = COLLECTOR.judge(step, Ended(0, None, 1.0, False), [logs / "counters-1-7.callgrind"]).messages
    assert [sentence.partition(":")[0] for sentence in said] == (
        [f"{program} executed {other} in its place"] if other else []
    )


def test_the_caches_are_this_machines_else_those_of_the_table(tmp_path, monkeypatch):
    tool = Tool("callgrind", True, "", "/bin/valgrind")
    request = Request(("./a",), caches={"D1": "1024,2,64", "LL": "4096,4,64"})
    for index, (level, kind, size, sets) in enumerate(((1, "Data", "48K", 64), (2, "Unified", "1M", 1024),
                                                       (3, "Unified", "107520K", 114688))):  # fmt: skip
        place = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        place.mkdir(parents=True)
        files = {"level": level, "type": kind, "size": size, "number_of_sets": sets, "coherency_line_size": 64}
        for name, text in files.items():
            (place / name).write_text(f"{text}\n")
    here, nowhere = valgrind_caches(tmp_path), valgrind_caches(tmp_path / "none")
    assert here == {"D1": "49152,12,64", "LL": f"{65536 * 26 * 64},26,64"}, "valgrind takes 2^n sets"
    for told, words in ((here, ("--D1=49152,12,64",)), (nowhere, ("--D1=1024,2,64", "--LL=4096,4,64"))):
        monkeypatch.setattr("eprof.profilers.callgrind.collector.valgrind_caches", lambda told=told: told)
        assert set(words) < set(COLLECTOR.step(COUNTERS, tool, request, Place(tmp_path)).command)


def test_a_profile_that_cannot_be_decoded_is_one_sentence(tmp_path, capsys):
    path = tmp_path / "counters-1-7.out"
    path.write_text("creator: callgrind-3.19.0\n")
    assert decode([str(path)]) == 1
    assert capsys.readouterr().err.startswith("counters-1-7.out: this profile holds no costs")
