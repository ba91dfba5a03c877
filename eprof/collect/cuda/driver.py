"""The CUDA driver through ctypes: no toolkit and no Python package is needed. For `worker`; `doctor` looks for it.

Functions and constants are those of cuda.h; `_v2` names are what its macros stand for since CUDA 4.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError

_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_ATTRIBUTES = {
    "threads_per_sm": 39,
    "sms": 16,
    "core_khz": 13,
    "memory_khz": 36,
    "bus_bits": 37,
    "l2_bytes": 38,
    "major": 75,
    "minor": 76,
    "ecc": 32,
    "fp32_to_fp64": 87,
}
_NO_DEVICE, _UNKNOWN_VALUE, _NO_BINARY, _BAD_PTX = 100, 1, 209, 222


class Driver:
    """libcuda with its errors as CollectError."""

    def __init__(self) -> None:
        self._library = _find()

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the CUDA driver. Raises CollectError with what the driver says."""
        code = self._library[name](*arguments)
        if code:
            raise DriverError(name, code, self._text(code))

    def has(self, name: str) -> bool:
        """Whether this driver is new enough to have the function."""
        try:
            self._library[name]
        except AttributeError:
            return False
        return True

    def _text(self, code: int) -> str:
        words = ctypes.c_char_p()
        if not self.has("cuGetErrorString") or self._library["cuGetErrorString"](code, ctypes.byref(words)):
            return ""
        return (words.value or b"").decode(errors="replace")


class DriverError(CollectError):
    """The driver refused a call."""

    def __init__(self, name: str, number: int, text: str) -> None:
        explanation = {
            _NO_DEVICE: "this machine has no CUDA GPU that the driver can use",
            _NO_BINARY: "the kernels were compiled for another GPU",
            _BAD_PTX: "the compiler is newer than the driver; use a CUDA toolkit of the driver's version or before",
        }.get(number, text or "no explanation")
        super().__init__(f"The CUDA driver says: {explanation} ({name}, error {number}).")
        self.number = number


def installed() -> bool:
    """Whether the CUDA driver's library is there; it is not started."""
    try:
        _find()
    except CollectError:
        return False
    return True


def _find() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CollectError("The CUDA driver (libcuda.so.1) is not installed here; it comes with NVIDIA's driver.")


class CudaGpu:
    """One GPU, by the number that CUDA gives it, with its primary context."""

    def __init__(self, index: int) -> None:
        self._driver = Driver()
        self._driver.call("cuInit", 0)
        self._device = ctypes.c_int()
        count = ctypes.c_int()
        self._driver.call("cuDeviceGetCount", ctypes.byref(count))
        if index >= count.value:
            raise CollectError(f"There is no GPU {index}: CUDA sees {count.value} here, numbered from 0.")
        self._driver.call("cuDeviceGet", ctypes.byref(self._device), index)
        self._context = ctypes.c_void_p()
        self._driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self._driver.call("cuCtxSetCurrent", self._context)
        self._functions: dict[str, Any] = {}
        self._modules: list[Any] = []
        self._region = ctypes.c_uint64()
        self._size = 0
        self._scale = 1.0
        self._out = self._allocate(4096)
        self._sms = int(self.describe()["sms"])

    def describe(self) -> dict[str, Any]:
        """What the CUDA driver reports: name, capability, multiprocessors, sizes in bytes, clocks in kHz.

        None: not known to this driver.
        """
        name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64)
        self._driver.call("cuDeviceGetName", name, 256, self._device)
        self._driver.call("cuDeviceGetPCIBusId", bus, 64, self._device)
        total, version = ctypes.c_size_t(), ctypes.c_int()
        self._driver.call("cuDeviceTotalMem_v2", ctypes.byref(total), self._device)
        self._driver.call("cuDriverGetVersion", ctypes.byref(version))
        attributes: dict[str, Any] = {key: self._attribute(number) for key, number in _ATTRIBUTES.items()}
        capability = f"{attributes.pop('major')}.{attributes.pop('minor')}"
        return {
            "name": name.value.decode(errors="replace"),
            "capability": capability,
            "bus": bus.value.decode(errors="replace"),
            "memory_bytes": total.value,
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
            **attributes,
        }

    def _attribute(self, number: int) -> int | None:
        value = ctypes.c_int()
        try:
            self._driver.call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        except DriverError as err:
            if err.number == _UNKNOWN_VALUE:
                return None
            raise
        return value.value

    def load(self, image: Path) -> None:
        """Load a cubin, a fatbin or PTX into the CUDA driver; functions are looked up by name."""
        module = ctypes.c_void_p()
        # PTX is text and must end with a zero byte.
        self._driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image.read_bytes() + b"\0"))
        self._modules.append(module)

    def _function(self, kernel: str) -> Any:
        if kernel not in self._functions:
            self._functions[kernel] = self._look_up(kernel)
        return self._functions[kernel]

    def _look_up(self, kernel: str) -> Any:
        for module in self._modules:
            function = ctypes.c_void_p()
            try:
                self._driver.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
            except DriverError:
                continue
            return function
        raise CollectError(f"The compiled kernels have no `{kernel}`.")

    def resident(self, kernel: str, block: int) -> int:
        """Blocks of that many threads that one multiprocessor holds at a time, by the CUDA driver.

        By the driver's occupancy calculator (CUDA 6.5), else as if threads alone were limited.
        """
        if self._driver.has("cuOccupancyMaxActiveBlocksPerMultiprocessor"):
            count = ctypes.c_int()
            self._driver.call(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                ctypes.byref(count),
                self._function(kernel),
                block,
                ctypes.c_size_t(0),
            )
            return max(count.value, 1)
        return max(int(self._attribute(_ATTRIBUTES["threads_per_sm"]) or 1024) // block, 1)

    def _allocate(self, size: int) -> Any:
        pointer = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def reserve(self, size: int) -> None:
        """Make the GPU's region of memory at least `size` bytes large, filled with numbers.

        Raises CollectError if there is no room.
        """
        if size <= self._size:
            return
        if self._size:
            self._driver.call("cuMemFree_v2", self._region)
            self._size = 0
        self._region = self._allocate(size)
        self._size = size
        self._fill()

    def use_operands(self, scale: float) -> None:
        """Random operands in the GPU's memory times `scale` from now on: 1, or 0 for zeros."""
        if scale == self._scale:
            return
        self._scale = scale
        if self._size:
            self._fill()

    def _fill(self) -> None:
        vectors = self._size // 16
        blocks = 8 * self._sms
        self._launch("fill", blocks, 256, vectors, 0, -(-vectors // (blocks * 256)))
        self._driver.call("cuCtxSynchronize")

    def free_bytes(self) -> int:
        """Memory of the GPU that nobody uses now."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def _launch(self, kernel: str, blocks: int, block: int, vectors: int, step: int, iterations: int) -> None:
        values = (
            self._region,
            self._out,
            ctypes.c_int(vectors),
            ctypes.c_int(step),
            ctypes.c_int(iterations),
            ctypes.c_float(float("nan")),
            ctypes.c_float(self._scale),
        )
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self._driver.call(
            "cuLaunchKernel", self._function(kernel), blocks, 1, 1, block, 1, 1, 0, None, pointers, None
        )  # fmt: skip

    def repeat(
        self, kernel: str, blocks: int, block: int, vectors: int, step: int, iterations: int, until: Callable[[], bool]
    ) -> tuple[int, float]:
        """Launch on the GPU without a gap until a stop is due, at least once: launches, and seconds in all.

        Two launches are always under way, so that the GPU never waits for us; timed by events.
        """
        first, *turns = (self._event() for _ in range(3))
        self._driver.call("cuEventRecord", first, None)
        launches = 0
        last = first
        while True:
            self._launch(kernel, blocks, block, vectors, step, iterations)
            last = turns[launches % 2]
            self._driver.call("cuEventRecord", last, None)
            launches += 1
            if until():
                break
            if launches > 1:
                self._driver.call("cuEventSynchronize", turns[launches % 2])
        self._driver.call("cuEventSynchronize", last)
        milliseconds = ctypes.c_float()
        self._driver.call("cuEventElapsedTime", ctypes.byref(milliseconds), first, last)
        for event in (first, *turns):
            self._driver.call("cuEventDestroy_v2", event)
        return launches, milliseconds.value / 1e3

    def _event(self) -> Any:
        event = ctypes.c_void_p()
        self._driver.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def close(self) -> None:
        """Free the GPU's memory and context."""
        self._driver.call("cuCtxSynchronize")
        newer = "cuDevicePrimaryCtxRelease_v2"
        self._driver.call(newer if self._driver.has(newer) else newer.removesuffix("_v2"), self._device)
