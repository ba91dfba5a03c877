"""What `worker` runs microbenchmarks on: it loads kernels and repeats them. A GPU by CUDA or OpenCL, or the CPU."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError

CHUNK = 8 * 256  # vectors that a block reads in a turn
_VECTOR = 16
_NEAR = 512


class DriverError(CollectError):
    """The driver of a device refused a call: nothing else can run on it in this process."""


class Launch(NamedTuple):
    """What to launch: a kernel in blocks of `block` threads; how much it touches, how far on, turns of its loop."""

    kernel: str
    blocks: int
    block: int
    vectors: int
    step: int
    iterations: int


class Device(ABC):
    """A GPU or the processor. A "block" is what runs at one place: a block of threads, or one thread on a core."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What the driver or the system says: processor, name, capability, bus, sms, sizes in bytes, clocks in kHz."""

    @abstractmethod
    def load(self, image: Path) -> None:
        """Load what was compiled; kernels are looked up by name."""

    @abstractmethod
    def resident(self, kernel: str, block: int) -> int:
        """How many blocks of `block` threads one multiprocessor, or core, holds at a time."""

    @abstractmethod
    def use_operands(self, scale: float) -> None:
        """Multiply the random operands in memory by `scale` from now on: 1, or 0 for zeros."""

    @abstractmethod
    def region(self, job: Mapping[str, Any], blocks: int, room: int | None) -> tuple[int, int]:
        """Make room in memory for a job: how much its kernel touches, and how far a block goes on in a turn.

        In vectors of 16 bytes on a GPU, in bytes on a processor. room: bytes for the largest region, if asked for.
        Raises CollectError where it has no such memory.
        """

    @abstractmethod
    def repeat(self, launch: Launch, until: Callable[[], bool]) -> tuple[int, float]:
        """Launch without a gap, at least once, until `until()`: launches, seconds in all. Raises CollectError."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Give back what is held."""


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
        """Queue a launch; returns the event of its end."""

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
        """Vectors of 16 bytes that a kernel touches (8 KB, a quarter of L2, or far more than caches), and its step."""
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
        """Launch until `until()`; one launch is always queued behind another, so there is no gap: launches, seconds."""
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
