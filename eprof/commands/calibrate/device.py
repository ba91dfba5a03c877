"""What `worker` runs microbenchmarks on: it loads kernels and repeats them. The CPU, or a GPU by OpenCL (and `cuda`).

OpenCL reaches a GPU of any maker through the package pyopencl, imported when first needed. What OpenCL does not tell
(how many blocks fit, which level of cache it means, the clock in force) is not invented here.
"""

import ctypes
import mmap
import os
import platform
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError
from eprof.base.optional import mapped
from eprof.base.text import counted, phrase
from eprof.collect.machine import CORES, bytes_of, compiled, executable, processor_name, text_of

CHUNK = 8 * 256  # vectors that a block reads in a turn
_VECTOR = 16
_NEAR = 512


class DriverError(CollectError):
    """The driver of a device refused a call: nothing else can run on it in this process."""


class Compiled(NamedTuple):
    """A benchmark's compiled source: the file to load, how it was made, the kernels in it; None: all of the source."""

    image: Path
    how: str
    kernels: frozenset[str] | None = None


class Launch(NamedTuple):
    """A launch of a benchmark's kernel: blocks, of `block` threads; vectors it touches, step and turns of its loop."""

    kernel: str
    blocks: int
    block: int
    vectors: int
    step: int
    iterations: int


class Device(ABC):
    """A GPU or the processor, as a worker drives it. A "block" is a block of threads, or one thread on a core."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What driver or system says of a device: its name, capability, bus, sms, sizes in bytes, clocks in kHz."""

    @abstractmethod
    def load(self, image: Path) -> None:
        """Load a compiled source; `resident` and `repeat` find its kernels by name."""

    @abstractmethod
    def resident(self, kernel: str, block: int) -> int:
        """How many blocks of `block` threads one multiprocessor, or core, holds at a time."""

    def use_operands(self, scale: float) -> None:  # noqa: B027 (a processor's are always random)
        """Multiply the random operands in memory by `scale` from now on: 1, or 0 for zeros."""

    @abstractmethod
    def region(self, job: Mapping[str, Any], blocks: int, room: int | None) -> tuple[int, int]:
        """Make room in memory for a job: (how much its kernel touches, how far a block goes on in a turn).

        In vectors of 16 bytes on a GPU, in bytes on a processor. room: bytes for the largest region, if asked for.
        Raises CollectError where it has no such memory.
        """

    @abstractmethod
    def repeat(self, launch: Launch, until: Callable[[], bool]) -> tuple[int, float]:
        """Launch a kernel without a gap, at least once, until `until()`: (launches, s in all). Raises CollectError."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Free the device's memory, and whatever else of its driver is held."""


class Gpu(Device):
    """What GPUs have in common, however they are driven: a region of memory, and launches that are queued."""

    def __init__(self) -> None:
        self._size = 0
        self._scale = 1.0

    @abstractmethod
    def _allocate_region(self, size: int) -> None:
        """Allocate `size` bytes for the region, and free what it had."""

    @abstractmethod
    def _begin(self) -> Any:
        """A mark of now in the queue of launches, for `_seconds`."""

    @abstractmethod
    def _launch(self, launch: Launch) -> Any:
        """Queue a launch on the GPU; returns the event of its end."""

    @abstractmethod
    def _wait(self, event: Any) -> None:
        """Wait for the end of a launch, and free its event."""

    @abstractmethod
    def _seconds(self, begin: Any, event: Any) -> float:
        """Wait for the end of the last launch; returns the seconds since `begin`."""

    def use_operands(self, scale: float) -> None:
        """Multiply the random operands in the GPU's memory by `scale` from now on: 1, or 0 for zeros."""
        changed, self._scale = scale != self._scale, scale
        if changed and self._size:
            self._fill()

    def reserve(self, size: int) -> None:
        """Make the region of memory at least `size` bytes large, filled with numbers. Raises CollectError."""
        if size > self._size:
            self._size = 0
            self._allocate_region(size)
            self._size = size
            self._fill()

    def _fill(self) -> None:
        vectors, blocks = self._size // _VECTOR, 8 * int(self.describe()["sms"])
        self.repeat(Launch("fill", blocks, 256, vectors, 0, -(-vectors // (blocks * 256))), lambda: True)

    def region(self, job: Mapping[str, Any], blocks: int, room: int | None) -> tuple[int, int]:
        """Make room on a GPU: (vectors of 16 bytes: 8 KB, a quarter of L2, or far more than caches; a block's step)."""
        kind, spread = job["region"], int(job["spread"])
        if kind in ("none", "near"):
            self.reserve(2 * _NEAR * _VECTOR)
            return _NEAR, 32
        about = self.describe()
        l2 = int(about["l2_bytes"] or 0)
        if kind == "l2":
            if not l2:
                raise CollectError("The driver does not tell how large L2 is.")
            vectors = max(l2 // 4 // _VECTOR // spread // CHUNK, 1) * CHUNK
            self.reserve(vectors * spread * _VECTOR)
            return vectors, CHUNK
        room = room or dram_bytes(l2, int(about["memory_bytes"]))
        vectors = room // _VECTOR // spread // CHUNK * CHUNK
        step = blocks * CHUNK
        if vectors < 4 * step:
            raise CollectError(f"The GPU's memory is too small: {room // 2**20} MiB do not outlast its caches.")
        self.reserve(room)
        return vectors, step

    def repeat(self, launch: Launch, until: Callable[[], bool]) -> tuple[int, float]:
        """Launch a kernel until `until()`, each queued behind another so that there is no gap: (launches, seconds)."""
        begin = self._begin()
        last = self._launch(launch)
        launches = 1
        while not until():
            queued = self._launch(launch)
            self._wait(last)
            last = queued
            launches += 1
        return launches, self._seconds(begin, last)


def dram_bytes(l2: int, memory: int) -> int:
    """How many bytes a GPU's DRAM benchmark reads: 64 times L2, at least 1 GiB, at most half of `memory`."""
    return min(max(64 * l2, 2**30), memory // 2)


_PAGE = 4096
_LEAST_BYTES = 2**28  # of memory, so that no cache holds much of it
_FLAGS = {"16.0": (), "16.1": (), "32.0": ("-mavx",), "32.1": ("-mavx", "-mfma")}


def compile_for_cpu(source: Path, capability: str, target: Path) -> Compiled:
    """Compile the C microbenchmarks for this processor's capability into a shared library. Raises CollectError."""
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
        cores: dict[Collection[int], int] = {}
        for thread in sorted(os.sched_getaffinity(0)):
            siblings = _listed(text_of(root / CORES / f"cpu{thread}/topology/thread_siblings_list"))
            cores.setdefault(frozenset(siblings) or frozenset((thread,)), thread)
        self._cores = list(cores.values())
        self._library: Any = None
        self._region = mmap.mmap(-1, _PAGE)
        self._share = 0

    def describe(self) -> dict[str, Any]:
        """The processor's name, capability (cpu.toml), cores, bytes of memory and of a core's share of each cache."""
        memory = re.search(r"MemAvailable:\s+(\d+) kB", text_of(self._root / "proc/meminfo"))
        # A core's share of the data cache of each level, the least of all cores'; 0 where there is none.
        caches = {}
        for level in (1, 2, 3):
            shares = []
            for core in self._cores:
                for index in (self._root / CORES / f"cpu{core}/cache").glob("index*"):
                    kind = text_of(index / "type").strip()
                    if text_of(index / "level").strip() == str(level) and kind != "Instruction":
                        sharing = _listed(text_of(index / "shared_cpu_list")) & set(self._cores)
                        shares.append(bytes_of(text_of(index / "size")) // max(len(sharing), 1))
            caches[f"l{level}_bytes"] = min(shares, default=0)
        return {
            "processor": "cpu",
            "name": processor_name(self._root),
            "capability": _capability(self._root),
            "bus": platform.node(),
            "sms": len(self._cores),
            "memory_bytes": mapped(lambda found: int(found[1]) * 1024, memory) or _LEAST_BYTES,
            **caches,
        }

    def load(self, image: Path) -> None:
        """Load the shared library of microbenchmarks that `compile_for_cpu` made."""
        self._library = ctypes.CDLL(str(image))

    def resident(self, kernel: str, block: int) -> int:
        """Always 1: one thread runs on a core of the processor at a time."""
        return 1

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
        """Call a kernel on `blocks` cores at once, `vectors` bytes each: (calls, seconds). Raises CollectError."""
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
    """The processor's vector size in bytes, then 1 if it has multiply-adds, else 0: "32.1". Raises CollectError."""
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
    """The numbers in a list of CPUs as Linux writes it, "0-3,8"."""
    pairs = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {number for first, last in pairs for number in range(int(first), int(last or first) + 1)}


INSTALL = "pip install 'eprof[opencl]'"
_BLOCK = 256
_THREADS = 2048  # of a multiprocessor of most GPUs; where fewer fit, the others wait their turn
_BOOKS = "7.0"  # of other makers: stores pass the first cache, as from Volta on


def _pyopencl() -> Any:
    try:
        import pyopencl
    except ImportError as err:
        raise CollectError(f"OpenCL needs the Python package pyopencl: {INSTALL}.") from err
    return pyopencl


def _name(device: Any) -> str:
    """The name of an OpenCL device: of the board, where the driver tells it (AMD), else its own."""
    return " ".join(str(_told(device, "board_name_amd") or device.name).replace("\0", " ").split())


def _told(device: Any, attribute: str) -> Any:
    """An attribute of an OpenCL device; None where its driver does not know it."""
    try:
        return getattr(device, attribute)
    except (AttributeError, _pyopencl().Error):
        return None


def choose_opencl(cl: Any, wanted: str) -> Any:
    """The OpenCL device that a name or a number means; "": the only GPU that is no simulation. Raises CollectError."""
    # Every device of every platform, with both names.
    try:
        platforms = cl.get_platforms()
    except cl.Error as err:
        raise CollectError(f"OpenCL finds no driver here (/etc/OpenCL/vendors names them): {err}.") from err
    named = []
    for driver in platforms:
        try:
            named += [(f"{_name(device)} ({driver.name.strip()})", device) for device in driver.get_devices()]
        except cl.Error:
            continue  # a platform without a device says so by an error
    fitting = [device for name, device in named if wanted.lower() in name.lower()]
    if wanted.isdecimal():
        fitting = [device for number, (_, device) in enumerate(named) if number == int(wanted)]
    if not wanted:
        gpus = cl.device_type.GPU | cl.device_type.ACCELERATOR
        fitting = [device for _, device in named if device.type & gpus and not _is_simulated(device)]
    if len(fitting) == 1:
        return fitting[0]
    asked, several = {"": ("GPU", "GPUs")}.get(wanted, ("device of that name", "devices of that name"))
    listed = "; ".join(f"{number}: {name}" for number, (name, _) in enumerate(named)) or "nothing"
    if fitting:
        many = counted(len(fitting), asked, several)
        raise CollectError(f"OpenCL has {many} here; say which by --opencl NAME, or its number: {listed}.")
    by_name = "processors and simulations are taken by name alone"
    raise CollectError(f"OpenCL has no {asked} here ({by_name}); it has {listed}.")


def _is_simulated(device: Any) -> bool:
    return "oclgrind" in device.platform.name.lower()


class OpenClGpu(Gpu):
    """A GPU as a `Device` by OpenCL, found by its name or number, with a queue that says when its kernels ran."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._cl = _pyopencl()
        self._device = choose_opencl(self._cl, wanted)
        if self._device.max_work_group_size < _BLOCK:
            raise CollectError(
                f"{_name(self._device)} runs blocks of at most {self._device.max_work_group_size} threads, and the "
                f"microbenchmarks have {_BLOCK}."
            )
        self._kernels: dict[str, Any] = {}
        self._first: Any = None
        self._context: Any = None
        self._queue: Any = None
        self._region: Any = None
        self._out: Any = None

    def describe(self) -> dict[str, Any]:
        """What OpenCL reports, with the keys of `CudaGpu.describe`. Sizes in bytes, clocks in kHz; None: not told.

        l2_bytes: of the one cache that OpenCL knows, whichever that is. memory_bytes: half of it is given at once.
        capability: a GPU of NVIDIA tells it, and `is_rated` says so; else how its bytes are counted.
        """
        device = self._device
        major, minor = (_told(device, f"compute_capability_{part}_nv") for part in ("major", "minor"))
        unified = bool(_told(device, "host_unified_memory"))
        return {
            "processor": "opencl",
            "name": _name(device),
            "capability": phrase("{}.{}", major, minor) or _BOOKS,
            "is_rated": major is not None,
            "bus": _bus(device),
            "opencl": f"{device.version.strip()}, driver {device.driver_version.strip()}",
            "vendor": device.vendor.strip(),
            "simulated": _is_simulated(device),
            "in_package": unified or bool(device.type & self._cl.device_type.CPU),
            "sms": device.max_compute_units,
            "memory_bytes": min(device.global_mem_size, 2 * device.max_mem_alloc_size),
            "l2_bytes": device.global_mem_cache_size,
            "has_shared": device.local_mem_type == self._cl.device_local_mem_type.LOCAL,
            "most_mhz": device.max_clock_frequency,
            "core_khz": None,
            "memory_khz": None,
        }

    def build(self, source: Path) -> dict[str, Any]:
        """Compile a source by the OpenCL driver: "kernels" (names), "how" in words. Raises CollectError with its log.

        A device without FP64, or whose compiler cannot do it though the driver says so, has no kernels of FP64.
        """
        text = source.read_text(encoding="utf-8")
        options = []
        if not self._device.single_fp_config & self._cl.device_fp_config.FMA:
            options.append("-D WITHOUT_FMA")
        tries = [options, [*options, "-D WITHOUT_FP64"]]
        if "cl_khr_fp64" not in self._device.extensions:
            tries = tries[1:]
        self._context = self._context or self._of_driver(self._cl.Context, [self._device])
        said: list[str] = []
        for chosen in tries:
            try:
                program = self._cl.Program(self._context, text).build(chosen)
            except self._cl.Error as err:
                # The line that says what is wrong.
                lines = [line.strip() for line in str(err).splitlines() if line.strip()]
                said.append(next((line for line in lines if "error" in line.lower()), lines[0])[:300].rstrip("."))
                continue
            made = {kernel.function_name: kernel for kernel in program.all_kernels()}
            self._kernels |= made
            how = " ".join([f"{self._device.platform.name.strip()}'s OpenCL compiler", *chosen])
            return {"kernels": sorted(made), "how": how}
        raise CollectError(f"The OpenCL compiler of {_name(self._device)} cannot build {source.name}: {said[0]}.")

    def load(self, image: Path) -> None:
        """Build the OpenCL source of the kernels, which are found by name; make the queue of launches."""
        self.build(image)
        if self._queue is None:
            profiling = self._cl.command_queue_properties.PROFILING_ENABLE
            self._queue = self._of_driver(self._cl.CommandQueue, self._context, properties=profiling)
            self._region = self._out = self._buffer(4096)

    def _of_driver(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """What a call of OpenCL returns. Raises DriverError where the driver refuses it: the device may be lost."""
        try:
            return call(*arguments, **more)
        except self._cl.Error as err:
            raise DriverError(f"The OpenCL driver says: {' '.join(str(err).split())}.") from err

    def _buffer(self, size: int) -> Any:
        return self._of_driver(self._cl.Buffer, self._context, self._cl.mem_flags.READ_WRITE, size)

    def resident(self, kernel: str, block: int) -> int:
        """How many blocks of `block` threads fit on a multiprocessor of most GPUs; OpenCL does not tell."""
        return max(_THREADS // block, 1)

    def _allocate_region(self, size: int) -> None:
        self._region = None  # freed before the larger one is made
        self._region = self._buffer(size)

    def _begin(self) -> Any:
        self._first = None

    def _launch(self, launch: Launch) -> Any:
        import numpy as np

        sizes = map(np.int32, (launch.vectors, launch.step, launch.iterations))
        values = (self._region, self._out, *sizes, np.float32("nan"), np.float32(self._scale))
        threads = (launch.blocks * launch.block,), (launch.block,)
        event = self._of_driver(self._kernels[launch.kernel], self._queue, *threads, *values)
        self._of_driver(self._queue.flush)
        self._first = self._first or event
        return event

    def _wait(self, event: Any) -> None:
        self._of_driver(event.wait)

    def _seconds(self, begin: Any, event: Any) -> float:
        self._wait(event)
        seconds = (event.profile.end - self._first.profile.start) * 1e-9
        if not seconds > 0:
            raise CollectError("The OpenCL driver does not tell when a kernel ran: its events have no times.")
        return float(seconds)


def _bus(device: Any) -> str:
    """The device's place on the bus, "0000:03:00.0"; "" where no extension tells it."""
    bus, slot = _told(device, "pci_bus_id_nv"), _told(device, "pci_slot_id_nv")
    if bus is not None and slot is not None:
        return f"{_told(device, 'pci_domain_id_nv') or 0:04x}:{bus:02x}:{slot >> 3:02x}.{slot & 7}"
    if (place := _told(device, "topology_amd")) is not None:
        return f"0000:{place.bus & 0xFF:02x}:{place.device & 0xFF:02x}.{place.function}"
    return ""
