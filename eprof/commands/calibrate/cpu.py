"""The processor of this machine as a `Device`, on which every core does the same work at once."""

import ctypes
import mmap
import os
import platform
import re
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.base.optional import mapped
from eprof.collect.machine import CORES, Compiled, bytes_of, compiled, executable, processor_name, text_of
from eprof.commands.calibrate.device import Device, Launch

_PAGE = 4096
_LEAST_BYTES = 2**28  # of memory, so that no cache holds much of it
_FLAGS = {"16.0": (), "16.1": (), "32.0": ("-mavx",), "32.1": ("-mavx", "-mfma")}


def compile_source(source: Path, capability: str, target: Path) -> Compiled:
    """Compile C for this processor into a shared library. Raises CollectError."""
    compiler = executable(("cc", "gcc", "clang"), ())
    if compiler is None:
        raise CollectError("The microbenchmarks need a C compiler, such as gcc, and there is none in PATH.")
    flags = _FLAGS[capability]
    image = compiled(compiler, source, target.with_suffix(".so"), *flags, "-shared", "-fPIC", "-pthread")
    return Compiled(image, " ".join([compiler, "-O2", *flags]))


class Cpu(Device):
    """The processor as a `Device`: a thread on each core counts as a "block". root: where /sys and /proc stand."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        threads = sorted(os.sched_getaffinity(0))
        cores: dict[Collection[int], int] = {}
        for thread in threads:
            siblings = _listed(text_of(root / CORES / f"cpu{thread}/topology/thread_siblings_list"))
            cores.setdefault(frozenset(siblings) or frozenset((thread,)), thread)
        self._cores = list(cores.values())
        self._library: Any = None
        self._region = mmap.mmap(-1, _PAGE)
        self._share = 0

    def describe(self) -> dict[str, Any]:
        """The processor's name, capability (cpu.toml), cores, bytes of memory and of a core's share of each cache."""
        memory = re.search(r"MemAvailable:\s+(\d+) kB", text_of(self._root / "proc/meminfo"))
        caches = {level: self._cache(level) for level in (1, 2, 3)}
        return {
            "processor": "cpu",
            "name": processor_name(self._root),
            "capability": _capability(self._root),
            "bus": platform.node(),
            "sms": len(self._cores),
            "memory_bytes": mapped(lambda found: int(found[1]) * 1024, memory) or _LEAST_BYTES,
            **{f"l{level}_bytes": size for level, size in caches.items()},
        }

    def _cache(self, level: int) -> int:
        """A core's share of the data cache of a level, in bytes, the least of all cores'; 0 where there is none."""
        shares = []
        for core in self._cores:
            for index in (self._root / CORES / f"cpu{core}/cache").glob("index*"):
                if text_of(index / "level").strip() == str(level) and text_of(index / "type").strip() != "Instruction":
                    sharing = _listed(text_of(index / "shared_cpu_list")) & set(self._cores)
                    shares.append(bytes_of(text_of(index / "size")) // max(len(sharing), 1))
        return min(shares, default=0)

    def load(self, image: Path) -> None:
        """Load the library that `compile_source` made."""
        self._library = ctypes.CDLL(str(image))

    def resident(self, kernel: str, block: int) -> int:
        """Always 1: one thread runs on a core of the processor at a time."""
        return 1

    def use_operands(self, scale: float) -> None:
        """Does nothing: operands on the processor are always random."""

    def region(self, job: Mapping[str, Any], blocks: int, room: int | None) -> tuple[int, int]:
        """Bytes of memory for each core: as many as the cache `job["region"]` holds, and no smaller one; and 0."""
        kind = job["region"]
        device = self.describe()
        l1, l2, l3 = (int(device[f"l{level}_bytes"]) for level in (1, 2, 3))
        sizes = {"none": _PAGE, "near": l1 // 2, "l2": l2 // 2, "l3": max(l3 * 3 // 4, l2 + l3 // 2)}
        most = int(device["memory_bytes"]) // 2
        cores = len(self._cores)
        sizes["dram"] = min(max(8 * max(l3, l2) * cores, _LEAST_BYTES), most) // cores
        share = max(sizes[kind] // _PAGE, 1) * _PAGE
        if share != self._share:
            self._region = mmap.mmap(-1, share * cores)
            self._share = share
            self.repeat(Launch("fill", cores, 1, share, 0, 1), lambda: True)
        return share, 0

    def repeat(self, launch: Launch, until: Callable[[], bool]) -> tuple[int, float]:
        """Launch a kernel on `blocks` cores, `vectors` bytes each: launches and seconds. Raises CollectError."""
        blocks = launch.blocks
        cores = (ctypes.c_int * blocks)(*self._cores[:blocks])
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._region))
        arguments = (ctypes.c_void_p(place), ctypes.c_long(launch.vectors), ctypes.c_long(launch.iterations))
        launches = 0
        began = time.perf_counter()
        while True:
            if self._library.launch(self._library[launch.kernel], cores, blocks, *arguments):
                raise CollectError(f"{launch.kernel} could not be started on each of {blocks} cores.")
            launches += 1
            if until():
                return launches, time.perf_counter() - began


def _capability(root: Path) -> str:
    """The bytes of a vector of the processor, and 1 if it has multiply-adds, else 0: "32.1". Raises CollectError."""
    if platform.machine() == "aarch64":
        return "16.1"
    if platform.machine() != "x86_64":
        raise CollectError(f"eprof calibrates x86-64 and 64-bit ARM processors, and this is {platform.machine()}.")
    flags = re.search(r"^flags\s*:(.*)$", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    known = mapped(lambda found: found[1].split(), flags) or []
    if "avx" not in known:
        return "16.0"
    return f"32.{int('fma' in known)}"


def _listed(text: str) -> set[int]:
    """The numbers of "0-3,8"."""
    pairs = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {number for first, last in pairs for number in range(int(first), int(last or first) + 1)}
