"""Marks that a program sets itself: `eprof.mark` and `eprof_mark.h`, from the program to the timeline."""

import csv
import math
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import eprof
from eprof.lab.power import marks

PYTHON = """
import eprof, os, threading, time
@eprof.mark("solve")
def solve():
    with eprof.mark('inner, "x"'):
        time.sleep(0.01)
with eprof.mark("all"):
    solve()
    thread = threading.Thread(target=solve)
    thread.start(); thread.join()
never = eprof.mark("never")
never.__enter__()
os.kill(os.getpid(), 9)
"""
C = """
#include "eprof_mark.h"
void other(void);
int main(void) {
    eprof_mark_end();
    eprof_mark_begin("outer, \\"x\\"");
    other();
    eprof_mark_begin("inner"); eprof_mark_end();
    eprof_mark_end();
    return 0;
}
"""
OTHER = """
#include "eprof_mark.h"
void other(void) { eprof_mark_begin("other"); eprof_mark_end(); }
"""
CPP = """
#include "eprof_mark.h"
#include <thread>
int main() {
    eprof_mark_scope scope("main");
    std::thread worker([] { eprof_mark_scope scope("worker"); });
    worker.join();
}
"""
FORTRAN = """
#include "eprof_mark.h"
program solver
  use eprof_mark
  call eprof_mark_begin("assemble")
  call eprof_mark_end()
end program
"""
HEADER = Path(eprof.get_include()) / "eprof_mark.h"


def ran(tmp_path, command, **more):
    """The marks that a program set, by its name and rank: their times."""
    table = tmp_path / "marks.csv"
    environment = {"EPROF_MARKS": str(table), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), **more}
    subprocess.run(command, env=environment, cwd=tmp_path, timeout=60)
    return marks.read(str(table)).marks


def names(found):
    return [(mark.name, mark.rank.split(" ")[0]) for mark in found]


def test_marks_of_python_nest_and_one_that_a_crash_ends_goes_on(tmp_path):
    found = ran(tmp_path, [sys.executable, "-c", PYTHON])
    assert names(found) == [
        ('inner, "x"', ""),
        ("solve", ""),
        ('inner, "x"', "thread"),
        ("solve", "thread"),
        ("all", ""),
        ("never", ""),
    ]
    inner, solve, _, _, whole, never = found
    assert whole.begin_s <= solve.begin_s <= inner.begin_s < inner.end_s <= solve.end_s <= whole.end_s
    assert inner.end_s - inner.begin_s >= 0.01
    assert never.end_s == math.inf
    assert marks.one_rank(found) == (list(found), 0)


@pytest.mark.parametrize("standard", ["c99", "c11", "gnu17"])
def test_marks_of_c_are_of_one_stack_in_all_its_files(tmp_path, standard):
    (tmp_path / "main.c").write_text(C.replace("\\\\", "\\"))
    (tmp_path / "other.c").write_text(OTHER)
    build = ["gcc", f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{HEADER.parent}"]
    subprocess.run([*build, "main.c", "other.c", "-o", "prog"], check=True, cwd=tmp_path)
    found = ran(tmp_path, ["./prog"])
    assert sorted(names(found)) == [("inner", ""), ("other", ""), ("outer, 'x'", "")]
    outer = next(mark for mark in found if mark.name.startswith("outer"))
    assert all(outer.begin_s <= mark.begin_s <= mark.end_s <= outer.end_s for mark in found)


def test_below_callgrind_what_eprof_has_python_do_is_told(monkeypatch):
    said = []
    monkeypatch.setenv("EPROF_MARKS", "valgrind")
    with eprof.mark("nobody listens"):
        pass
    monkeypatch.setattr(sys, "_eprof_mark", lambda sign, name: said.append((sign, name)), raising=False)
    with eprof.mark("a\n\tb"), suppress(ValueError), eprof.mark("x" * 300):
        raise ValueError
    assert said == [("+", "a  b"), ("+", "x" * 200), ("-", "x" * 200), ("-", "a  b")]


def test_without_eprof_a_marked_program_writes_nothing(tmp_path):
    (tmp_path / "main.c").write_text(OTHER + "int main(void) { other(); return 0; }")
    subprocess.run(["gcc", f"-I{HEADER.parent}", "main.c", "-o", "prog"], check=True, cwd=tmp_path)
    before = set(tmp_path.iterdir())
    subprocess.run(["./prog"], check=True, cwd=tmp_path, env={})
    assert set(tmp_path.iterdir()) == before


def test_threads_of_cpp_have_marks_of_their_own(tmp_path):
    (tmp_path / "main.cpp").write_text(CPP)
    build = ["g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{HEADER.parent}", "main.cpp", "-o", "prog"]
    subprocess.run([*build, "-pthread"], check=True, cwd=tmp_path)
    assert names(ran(tmp_path, ["./prog"])) == [("worker", "thread"), ("main", "")]


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")
def test_fortran_uses_the_same_header(tmp_path):
    (tmp_path / "solver.F90").write_text(FORTRAN)
    build = ["gfortran", "-Wall", "solver.F90", f"-I{HEADER.parent}", "-x", "c", str(HEADER), "-o", "solver"]
    subprocess.run(build, check=True, cwd=tmp_path)
    assert names(ran(tmp_path, ["./solver"])) == [("assemble", "")]


def test_ranks_of_mpi_are_told_apart_and_children_too(tmp_path):
    program = "import eprof, subprocess, sys\nwith eprof.mark('a'): subprocess.run([sys.executable, '-c', sys.argv[1]])"
    child = "import eprof\nwith eprof.mark('b'): pass"
    found = ran(tmp_path, [sys.executable, "-c", program, child], OMPI_COMM_WORLD_RANK="3")
    assert [mark.name for mark in found] == ["b", "a"]
    assert found[1].rank == "rank 3"
    assert found[0].rank.startswith("rank 3 process ")


def test_marks_of_the_whole_program_stay_beside_those_of_the_busiest_rank():
    whole = marks.Mark("prog", 0.0, 10.0)
    first, second = marks.Mark("a", 1.0, 2.0, "rank 0"), marks.Mark("a", 1.0, 3.0, "rank 1")
    assert marks.one_rank([whole, first, second]) == ([whole, second], 1)
    assert marks.one_rank([whole]) == ([whole], 0)


def test_a_header_that_two_processes_wrote_is_no_row(tmp_path):
    table = tmp_path / "marks.csv"
    table.write_text("begin_s,end_s,name,rank\nbegin_s,end_s,name,rank\n1,,a,\n2,3,a,\n1,4,a,\n5,,b,\n")
    assert [(mark.name, mark.begin_s, mark.end_s) for mark in marks.read(str(table)).marks] == [
        ("a", 2, 3),
        ("a", 1, 4),
        ("b", 5, math.inf),
    ]


def test_a_mark_is_a_range_of_nvtx_where_that_is_loaded(monkeypatch):
    ranges = []
    nvtx = SimpleNamespace(push_range=ranges.append, pop_range=lambda: ranges.append("end"))
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    with eprof.mark("outer"), eprof.mark("inner"):
        pass
    assert ranges == ["outer", "inner", "end", "end"]


def test_marks_that_cannot_be_written_are_told_once_and_the_program_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("EPROF_MARKS", str(tmp_path / "gone" / "marks.csv"))
    with pytest.warns(RuntimeWarning, match="marks are lost from here on") as told, eprof.mark("a"), eprof.mark("b"):
        pass
    assert len(told) == 1


def test_eprof_run_hands_the_program_a_table_and_keeps_it(tmp_path, eprof_command):
    program = "import eprof\nwith eprof.mark('assemble'): pass"
    run = eprof_command("run", "--profiler", "none", "-o", f"{tmp_path}/r.eprof/", sys.executable, "-c", program)
    assert run.returncode == 0
    with (tmp_path / "r.eprof" / "marks.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["end_s"]]
    assert [row["name"] for row in rows] == ["assemble", Path(sys.executable).name]
    inner, whole = ((float(row["begin_s"]), float(row["end_s"])) for row in rows)
    assert whole[0] <= inner[0] <= inner[1] <= whole[1]
