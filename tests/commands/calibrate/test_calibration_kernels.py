"""The microbenchmarks do what the manifest says: in machine code of nvcc and NVRTC, and counted on a simulated device."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from eprof.commands.calibrate import cuda, sass
from eprof.commands.calibrate import manifest as manifests

MANIFEST = manifests.load()
SOURCES = sorted({one.source for one in MANIFEST.benchmarks})
# All that nvcc 13 knows; the first ones are always tried, the others where EPROF_ALL_ARCHITECTURES is set (a minute).
ARCHITECTURES = ("75", "90") if not os.environ.get("EPROF_ALL_ARCHITECTURES") else (
    "75", "80", "86", "87", "88", "89", "90", "100", "103", "110", "120", "121"
)  # fmt: skip


def capability(architecture):
    return int(architecture[:-1]), int(architecture[-1])


@pytest.fixture(scope="module")
def cubins(tmp_path_factory):
    """C++03 stands for the compilers of the days of CUDA 6, which know nothing newer."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("no nvcc")
    place, running = tmp_path_factory.mktemp("cubins"), {}
    for name in SOURCES:
        path = place / name
        path.write_text(manifests.source_text(name))
        for one in ARCHITECTURES:
            target = place / f"{path.stem}.{one}.cubin"
            command = [nvcc, "-std=c++03", f"-arch=sm_{one}", "-cubin", "-w", "-Xptxas", "-v"]
            running[one, name] = (
                subprocess.Popen(
                    [*command, "-o", target, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                ),
                target,
            )
    for process, target in running.values():
        said, _ = process.communicate()
        assert process.returncode == 0, said
        assert not re.search(r"[1-9]\d* bytes (stack frame|spill)", said), said
        assert max(int(one) for one in re.findall(r"Used (\d+) registers", said)) <= 64, "half of the threads must fit"
        assert target.exists()
    return {key: target for key, (_, target) in running.items()}


@pytest.fixture(scope="module")
def machine(cubins):
    """Architecture -> kernel -> machine code."""
    found = {}
    for (architecture, _), image in cubins.items():
        text, why = cuda.disassemble(image)
        if text is None:
            pytest.skip(why)
        found.setdefault(architecture, {}).update(sass.functions(text))
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_machine_code_has_the_mix_that_is_claimed(machine, architecture):
    code = machine[architecture]
    chosen = [one for one in MANIFEST.benchmarks if one.runs_on(capability(architecture))]
    assert len(chosen) > 35
    found = {one.name: sass.contradictions(MANIFEST, one, capability(architecture), code[one.kernel]) for one in chosen}
    assert {name: doubts for name, doubts in found.items() if doubts} == {}


@pytest.mark.parametrize(("source", "stride"), [("memory.cu", 2), ("cpu.c", 64)])
def test_a_chase_visits_every_place_once_before_it_comes_to_one_again(source, stride):
    """The numbers of the source itself, walked: places are `stride` apart, the mask is below a power of two."""
    text = manifests.source_text(source)
    factor, addend = int(re.search(r"1664525", text)[0]), int(re.search(r"1013904223(?=u|ull)", text)[0])
    for places in (8, 4096):
        mask, at, seen = places * stride - stride, 0, set()
        while at not in seen:
            seen.add(at)
            at = (at * factor + addend * stride) & mask
        assert at == 0
        assert seen == set(range(0, places * stride, stride))


def test_a_wrong_claim_is_noticed(machine):
    """The check can fail: another benchmark's code, another capability's constants."""
    code = machine["75"]
    fma, tensor = MANIFEST.named("fp32_fma"), MANIFEST.named("tensor")
    assert sass.contradictions(MANIFEST, fma, (7, 5), code["fp32_mul"])
    assert "not 64" in sass.contradictions(MANIFEST, tensor, (8, 0), code["tensor"])[0]
    assert sass.contradictions(MANIFEST, fma, (7, 5), []) == ["its machine code has 0 loops instead of one"]


def test_nvrtc_compiles_what_nvcc_does(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "find", lambda name: None if name == "nvcc" else shutil.which(name))
    source = tmp_path / "arithmetic.cu"
    source.write_text(manifests.source_text("arithmetic.cu"))
    try:
        compiled = cuda.compile_source(source, "7.5", tmp_path / "arithmetic")
    except cuda.CollectError as err:
        assert "neither nvcc nor NVRTC" in str(err)
        pytest.skip("no NVRTC")
    assert compiled.how.startswith("NVRTC")
    assert compiled.image.stat().st_size > 10_000
    source.write_text("this is no program")
    with pytest.raises(cuda.CollectError, match=r"NVRTC .* cannot compile arithmetic.cu for 7.5: .*error"):
        cuda.compile_source(source, "7.5", tmp_path / "arithmetic")


def test_without_a_compiler_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "find", lambda name: None)
    monkeypatch.setattr(cuda, "_nvrtc", lambda: None)
    with pytest.raises(cuda.CollectError, match=r"neither nvcc nor NVRTC .* Install the CUDA toolkit"):
        cuda.compile_source(tmp_path / "x.cu", "9.0", tmp_path / "x")


def test_an_nvcc_that_does_not_know_the_gpu_is_quoted(tmp_path, monkeypatch):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho \"nvcc fatal : Value 'sm_35' is not defined\" >&2\nexit 1\n")
    nvcc.chmod(0o755)
    monkeypatch.setattr(cuda, "find", lambda name: str(nvcc))
    monkeypatch.setattr(cuda, "_nvrtc", lambda: None)
    with pytest.raises(cuda.CollectError, match="says: nvcc fatal : Value 'sm_35' is not defined"):
        cuda.compile_source(tmp_path / "x.cu", "3.5", tmp_path / "x")


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
@pytest.mark.parametrize("name", SOURCES)
def test_no_benchmark_uses_what_old_compilers_lack(name):
    """Read as text: no feature of C++11, no header, none of the intrinsics that CUDA 6 has not."""
    text = re.sub(r"/\*.*?\*/", "", manifests.source_text(name), flags=re.DOTALL)
    for word in (
        "auto ",
        "nullptr",
        "constexpr",
        "template",
        "static_assert",
        "#include",
        "_sync(",
        "half2",
        "long long",
    ):
        assert word not in text, word


# ---- counted on the simulated device

RUN = """
import sys
import numpy as np
import pyopencl as cl

def main(path, names):
    device = next(d for p in cl.get_platforms() if "oclgrind" in p.name.lower() for d in p.get_devices())
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, open(path).read()).build()
    kernels = {k.function_name: k for k in program.all_kernels()}
    n = 2 * 8 * 256
    data = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16 * n * 8)
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
    for name in names:
        step = 8 * 256 if not ("shared" in name or "l1" in name) else 32
        for turns in (1, 3):
            kernels[name](queue, (256,), (256,), data, out, *map(np.int32, (n, step, turns)), np.float32("nan"), np.float32(1))
            queue.finish()

main(sys.argv[1], sys.argv[2].split(","))
"""


def counted(path, names):
    """What Oclgrind counts for each kernel in one turn and in three: opcode -> executions, and bytes by way."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, path, ",".join(names)],
        env={**os.environ, "OCLGRIND_INST_COUNTS": "1", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Invalid" not in done.stderr, done.stderr[:2000]
    found, name = {}, ""
    for line in done.stdout.splitlines():
        if title := re.match(r"Instructions executed for kernel '(\w+)'", line):
            name = title[1]
            found.setdefault(name, []).append(Counter())
        elif entry := re.match(r"\s*([\d,]+) - (.+?)(?: \(([\d,]+) bytes\))?$", line):
            found[name][-1][entry[2]] += int((entry[3] or entry[1]).replace(",", ""))
    return found


def in_words(one, seen):
    """Oclgrind's counts as the vocabulary's words; which precision, and which level, the benchmark's claim decides."""
    kind = "fp64" if any(word.startswith("fp64") for word in one.count) else "fp32"
    adds = seen["fadd"] + seen["fsub"]
    words = {
        "fp32_fma": seen["call _Z3fmafff()"],
        "fp64_fma": seen["call _Z3fmaddd()"],
        f"{kind}_add": adds,
        f"{kind}_mul": seen["fmul"],
        "special": seen["call _Z11native_exp2f()"] + seen["call _Z11native_log2f()"],
        "conversion": sum(count for name, count in seen.items() if "convert_" in name),
        "shared_read": seen["load local"],
        "shared_write": seen["store local"],
    }
    for way, done in (("read", "load global"), ("write", "store global")):
        level = next((word for word in one.count if word.endswith(f"_{way}") and not word.startswith("shared")), None)
        words[level or f"dram_{way}"] = seen[done]
    words["random"] = seen["load global"] / 32 if "random" in one.count else 0
    return {word: count for word, count in words.items() if count}


@pytest.mark.parametrize("source", SOURCES)
def test_a_simulated_device_counts_what_is_claimed(source, tmp_path):
    """Between one turn and three nothing but two turns of the loop is added: exactly what the formulas say."""
    cl = pytest.importorskip("pyopencl")
    try:
        if not any("oclgrind" in platform.name.lower() for platform in cl.get_platforms()):
            pytest.skip("no Oclgrind")
    except cl.Error:
        pytest.skip("no OpenCL platform")
    path = tmp_path / "kernels.cl"
    path.write_text(manifests.source_text(source))
    text = Path(path).read_text()
    only_cuda = {"fp16_fma", "fp16_add", "fp16_mul", "tensor", "sleep"}
    chosen = [one for one in MANIFEST.benchmarks if one.source == source and one.kernel not in only_cuda]
    assert all(f"KERNEL({one.kernel})" in text for one in chosen)
    names = sorted({one.kernel for one in chosen})
    turns = counted(path, names)
    for one in chosen:
        few, seen = turns[one.kernel]
        seen = seen.copy()
        seen.subtract(few)
        claimed = MANIFEST.counts(one, (9, 0), 256, 2, overhead=False)
        integers = claimed.pop("integer", 0)
        assert in_words(one, seen) == claimed, one.name
        if one.name == "integer_mad":
            assert (seen["mul"], integers) == (integers, 128 * 512)
        elif integers:
            # The loop's own adds are some.
            assert 0 <= seen["add"] + seen["xor"] - integers <= 10 * 512, one.name
