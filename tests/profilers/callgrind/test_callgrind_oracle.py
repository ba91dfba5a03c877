"""Counts of callgrind against what machine code says: by hand for known kernels, and by objdump for all functions."""

import shutil
import subprocess
from pathlib import Path

import pytest
from oracle import executed

import eprof
from eprof.base.vocabulary import Mark
from eprof.logs import read

SUPPORT = Path(__file__).parents[2] / "support"
N = 1000
RETURN = 8  # bytes that a return reads
# Bytes read and written by the kernels of cpu_memory.c, beside the return.
BY_HAND = {
    "histogram": (8 * N, 4 * N),
    "exchange_add": (8 * N, 8 * N),
    "compare_exchange": (24 * N, 24 * N),
    "shifted": (13 * N, 13 * N),
    "registers": (0, 0),
    "copied": (N, N),
    "filled": (0, 8 * N),
    "compared": (8 * N, 0),
    "searched": (N, 0),
    "saved": (0, 512 * N),
    "nothing": (32 * N, 0),
    "gathered": (8 * N, 4 * N),
}
EVENTS = [f"{of}_{kind}" for of in ("fp64", "fp32") for kind in ("fma", "add", "mul", "other")] + ["special"]


@pytest.fixture(scope="module", params=["-O1", "-O2", "-O3"])
def profiled(request, tmp_path_factory):
    """The kernels, built; their functions as eprof counts them (a profile with caches), and the oracle (one without)."""
    pytest.importorskip("capstone")
    if not all(map(shutil.which, ("gcc", "valgrind", "objdump"))) or " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no gcc, valgrind or objdump, or no AVX2")
    folder = tmp_path_factory.mktemp("memory")
    counted, expected = {}, {}
    for source, arguments in (("cpu_memory", []), ("cpu_kernels", ["64"])):
        program = folder / source
        subprocess.run(
            ["gcc", request.param, "-mavx2", "-mfma", str(SUPPORT / f"{source}.c"), "-o", str(program)], check=True
        )
        for caches in ("yes", "no"):
            command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--cache-sim={caches}", "--dump-line=no"]
            out = f"--callgrind-out-file={program}.{caches}.out"
            subprocess.run([*command, out, str(program), *arguments], capture_output=True, check=False)
        log = read(f"{program}.yes.out")
        (table,) = log.tables
        for row, code in enumerate(table.rows.kernel.codes):
            kernel = table.rows.kernel.names[code]
            counted[kernel] = dict(zip(table.counters.names, table.counters.values[row].tolist(), strict=True))
            counted[kernel]["launches"] = int(table.rows.launches[row])
        expected |= executed.functions(program, Path(f"{program}.no.out"))
        counted["notes", source], counted["path", source] = log.notes, log.path
    return counted, expected


@pytest.mark.parametrize("kernel", BY_HAND)
def test_what_changes_memory_is_read_and_written(profiled, kernel):
    counted, _ = profiled
    read_b, written_b = BY_HAND[kernel]
    assert counted[kernel]["load_bytes"] == read_b + RETURN
    assert counted[kernel].get("store_bytes", 0) == written_b


def test_lanes_of_masked_moves_are_bytes_and_no_executions_of_what_stands_behind(profiled):
    counted, _ = profiled
    masked = counted["masked"]
    assert masked["fp64_fma"] == 4 * N
    mask, two = 32, 8
    assert masked["load_bytes"] == 24 * N + mask + two + RETURN
    assert masked["store_bytes"] == 24 * N
    lines = 64 * 32 // 64
    assert lines <= masked["D1mr"] <= lines + 3
    assert lines <= masked["D1mw"] <= lines + 1
    assert masked["I1mr"] <= 5
    assert counted["nothing"]["fp32_add"] == 8 * N
    assert not masked["astray"] and not counted["nothing"]["astray"]


def test_instructions_that_touch_no_memory_are_no_loads_and_stores(profiled):
    counted, _ = profiled
    assert (counted["registers"]["loads"], counted["registers"]["stores"]) == (1, 0)  # the return
    assert (counted["nothing"]["loads"], counted["nothing"]["stores"]) == (N + 1, 0)  # of two moves, one
    assert (counted["masked"]["loads"], counted["masked"]["stores"]) == (N + 3, N)


def test_a_masked_move_at_the_end_of_a_block_is_told(profiled):
    counted, _ = profiled
    assert counted["astray"]["astray"] == N - 1
    assert any("blocks of valgrind's" in note for note in counted["notes", "cpu_memory"])
    counts = eprof.load(counted["path", "cpu_memory"], cache=False).counts()
    marks = dict(zip(counts.rows.kernel, counts.amount_marks.only(["fp64_add", "global_read"]).tolist(), strict=True))
    assert marks["astray"] == [Mark.ESTIMATED, Mark.ESTIMATED | Mark.MISSING]
    assert marks["masked"] == marks["histogram"] == [0, 0]
    assert marks["gathered"] == [0, Mark.ASSUMED]


def test_loops_to_the_beginning_of_a_function_are_no_calls(profiled):
    counted, _ = profiled
    assert counted["looped"]["launches"] == 2
    assert counted["recursive"]["launches"] > 10


def test_every_function_counts_what_its_machine_code_says(profiled):
    counted, expected = profiled
    checked = [name for name in expected if name in counted and name != "astray"]
    assert len(checked) > 20
    for name in checked:
        told, own = expected[name], counted[name]
        assert {event: own[event] for event in EVENTS if own[event]} == {
            event: number for event, number in told.operations.items() if number
        }, name
        if not told.is_open:
            assert (name, own["load_bytes"], own["store_bytes"]) == (name, told.read_b, told.written_b)
    closed = [name for name in checked if not expected[name].is_open]
    assert {"histogram", "exclusive", "exchange_add", "recursive", "triad", "fft"} <= set(closed)


def test_all_that_callgrind_counts_is_used(profiled):
    counted, _ = profiled
    warnings = eprof.load(counted["path", "cpu_memory"], cache=False).energy("i7-950").warnings
    assert not [warning for warning in warnings if "not used" in warning]
