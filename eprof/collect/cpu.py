"""The processor of this machine: what it is, work that every core does at once (`eprof calibrate`), and its clock.

The clock is held through Linux's cpufreq, and given back; only where a user asks for it.
"""

import ctypes
import mmap
import os
import platform
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.collect.benchmarked import Device
from eprof.collect.machine import Compiled, compiled, executable, text_of

_CORES = "sys/devices/system/cpu"
_LOW, _HIGH = "scaling_min_freq", "scaling_max_freq"
_SLOWEST, _FASTEST = "cpuinfo_min_freq", "cpuinfo_max_freq"
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
            siblings = _listed(text_of(root / _CORES / f"cpu{thread}/topology/thread_siblings_list"))
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
            "name": name(self._root),
            "capability": _capability(self._root),
            "bus": platform.node(),
            "sms": len(self._cores),
            "memory_bytes": int(memory[1]) * 1024 if memory else _LEAST_BYTES,
            **{f"l{level}_bytes": size for level, size in caches.items()},
        }

    def _cache(self, level: int) -> int:
        """A core's share of the data cache of a level, in bytes, the least of all cores'; 0 where there is none."""
        shares = []
        for core in self._cores:
            for index in (self._root / _CORES / f"cpu{core}/cache").glob("index*"):
                if text_of(index / "level").strip() == str(level) and text_of(index / "type").strip() != "Instruction":
                    sharing = _listed(text_of(index / "shared_cpu_list")) & set(self._cores)
                    shares.append(_bytes(text_of(index / "size")) // max(len(sharing), 1))
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
            self.repeat("fill", cores, 1, share, 0, 1, lambda: True)
        return share, 0

    def repeat(
        self, kernel: str, blocks: int, block: int, vectors: int, step: int, iterations: int, until: Callable[[], bool]
    ) -> tuple[int, float]:
        """Launch a kernel on `blocks` cores, `vectors` bytes each: launches and seconds. Raises CollectError."""
        cores = (ctypes.c_int * blocks)(*self._cores[:blocks])
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._region))
        arguments = (ctypes.c_void_p(place), ctypes.c_long(vectors), ctypes.c_long(iterations))
        launches = 0
        began = time.perf_counter()
        while True:
            if self._library.launch(self._library[kernel], cores, blocks, *arguments):
                raise CollectError(f"{kernel} could not be started on each of {blocks} cores.")
            launches += 1
            if until():
                return launches, time.perf_counter() - began


def name(root: Path = Path("/")) -> str:
    """The processor's name in /proc/cpuinfo, or else the machine's architecture."""
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    return " ".join(found[1].split()) if found else platform.machine()


def valgrind_caches(root: Path = Path("/")) -> dict[str, str]:
    """The caches of this processor as valgrind takes them: "I1", "D1" and "LL" -> "bytes,ways,bytes of a line".

    Valgrind simulates 2^n sets. Where a cache has others, its ways are as many as nearly fill it. What is not told is
    left out.
    """
    found = {}
    for index in sorted((root / _CORES / "cpu0/cache").glob("index*")):
        level, kind, size, sets, line = (
            text_of(index / name).strip() for name in ("level", "type", "size", "number_of_sets", "coherency_line_size")
        )
        name = {"1": f"{kind[:1]}1"}.get(level, "LL")  # the last one that is listed is the last level
        if _bytes(size) and sets.isdecimal() and line.isdecimal() and int(sets) * int(line):
            sets_simulated = 1 << int(sets).bit_length() - 1
            ways = max(_bytes(size) // (sets_simulated * int(line)), 1)
            found[name] = f"{sets_simulated * ways * int(line)},{ways},{line}"
    return found


def _capability(root: Path) -> str:
    """The bytes of a vector of the processor, and 1 if it has multiply-adds, else 0: "32.1". Raises CollectError."""
    if platform.machine() == "aarch64":
        return "16.1"
    if platform.machine() != "x86_64":
        raise CollectError(f"eprof calibrates x86-64 and 64-bit ARM processors, and this is {platform.machine()}.")
    flags = re.search(r"^flags\s*:(.*)$", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    known = set(flags[1].split()) if flags else set()
    if "avx" not in known:
        return "16.0"
    return "32.1" if "fma" in known else "32.0"


def _listed(text: str) -> set[int]:
    """The numbers of "0-3,8"."""
    pairs = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {number for first, last in pairs for number in range(int(first), int(last or first) + 1)}


def _bytes(text: str) -> int:
    """The bytes of "32K"."""
    size = re.match(r"(\d+)([KMG]?)", text)
    return int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]] if size else 0


@contextmanager
def held_at(core_mhz: float | None, root: Path = Path("/")) -> Iterator[None]:
    """Hold all cores of the processor at a clock in MHz inside the block, and give back what was in force.

    None: leave the clocks alone. root: where /sys stands. Raises CollectError, with nothing changed.
    """
    if core_mhz is None:
        yield
        return
    cores = check_clock(core_mhz, root)
    before = {core: (_number(core / _LOW), _number(core / _HIGH)) for core in cores}
    try:
        khz = _khz(core_mhz)
        try:
            for core in cores:
                _set(core, khz, khz)
        except OSError as err:
            raise CollectError("--clock: this machine does not let its clock be set, and none was changed.") from err
        yield
    finally:
        for core, (low_khz, high_khz) in before.items():
            with suppress(OSError):
                _set(core, low_khz, high_khz)


def check_clock(core_mhz: float, root: Path = Path("/")) -> list[Path]:
    """The cpufreq folders of all cores, which can be set to `core_mhz`. Raises CollectError if one cannot."""
    cores = sorted((root / _CORES).glob("cpu[0-9]*/cpufreq"))
    if not cores:
        raise CollectError("--clock: this machine lets nobody set its clock (no cpufreq in /sys); none was changed.")
    for core in cores:
        if not all(os.access(core / name, os.W_OK) for name in (_LOW, _HIGH)):
            raise CollectError("--clock: only root may set the clock of this machine; none was changed.")
        slowest_khz, fastest_khz = _number(core / _SLOWEST), _number(core / _FASTEST)
        if not slowest_khz <= _khz(core_mhz) <= fastest_khz:
            span = f"{slowest_khz / 1000:g} to {fastest_khz / 1000:g} MHz"
            raise CollectError(f"--clock {core_mhz:g}: this processor has {span}; no clock was changed.")
    return cores


def _khz(core_mhz: float) -> int:
    return round(core_mhz * 1000)


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError) as err:
        raise CollectError(f"--clock: {file} cannot be read, so no clock is changed.") from err


def _set(core: Path, low_khz: int, high_khz: int) -> None:
    """Set both limits of a core's clock, the low one out of the way first: it may never be above the high one."""
    (core / _LOW).write_text(str(_number(core / _SLOWEST)))
    (core / _HIGH).write_text(str(high_khz))
    (core / _LOW).write_text(str(low_khz))
