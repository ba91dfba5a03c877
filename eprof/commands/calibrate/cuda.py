"""The CUDA driver through ctypes: no toolkit and no Python package is needed. For `worker`.

Functions and constants are those of cuda.h; `_v2` names are what its macros stand for since CUDA 4.
"""

import ctypes
from contextlib import suppress
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.collect.machine import cuda_driver
from eprof.commands.calibrate.device import DriverError, Gpu

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
        self._library = cuda_driver()

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the CUDA driver. Raises CollectError with what the driver says."""
        code = self._library[name](*arguments)
        if code:
            words = ctypes.c_char_p()
            if self.has("cuGetErrorString"):
                self._library["cuGetErrorString"](code, ctypes.byref(words))
            raise CudaError(name, code, (words.value or b"").decode(errors="replace"))

    def has(self, name: str) -> bool:
        """Whether this driver is new enough to have the function."""
        return hasattr(self._library, name)


class CudaError(DriverError):
    """The CUDA driver refused a call."""

    def __init__(self, name: str, number: int, text: str) -> None:
        explanation = {
            _NO_DEVICE: "this machine has no CUDA GPU that the driver can use",
            _NO_BINARY: "the kernels were compiled for another GPU",
            _BAD_PTX: "the compiler is newer than the driver; use a CUDA toolkit of the driver's version or before",
        }.get(number, text or "no explanation")
        super().__init__(f"The CUDA driver says: {explanation} ({name}, error {number}).")
        self.number = number


class CudaGpu(Gpu):
    """One GPU, by the number that CUDA gives it, with its primary context."""

    def __init__(self, index: int) -> None:
        super().__init__()
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
        self._region: Any = None
        self._out = self._allocate(4096)

    def describe(self) -> dict[str, Any]:
        """What the CUDA driver reports: sizes in bytes, clocks in kHz; None: not known to this driver."""
        name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64)
        self._driver.call("cuDeviceGetName", name, 256, self._device)
        self._driver.call("cuDeviceGetPCIBusId", bus, 64, self._device)
        total, version = ctypes.c_size_t(), ctypes.c_int()
        self._driver.call("cuDeviceTotalMem_v2", ctypes.byref(total), self._device)
        self._driver.call("cuDriverGetVersion", ctypes.byref(version))
        attributes: dict[str, Any] = {key: self._attribute(number) for key, number in _ATTRIBUTES.items()}
        capability = f"{attributes.pop('major')}.{attributes.pop('minor')}"
        return {
            "processor": "cuda",
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
        except CudaError as err:
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
        if kernel in self._functions:
            return self._functions[kernel]
        for module in self._modules:
            function = ctypes.c_void_p()
            with suppress(CudaError):
                self._driver.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
                self._functions[kernel] = function
                return function
        raise CollectError(f"The compiled kernels have no `{kernel}`.")

    def resident(self, kernel: str, block: int) -> int:
        """How many blocks of `block` threads a multiprocessor holds, 1 at least; before CUDA 6.5 by threads alone."""
        if self._driver.has("cuOccupancyMaxActiveBlocksPerMultiprocessor"):
            count = ctypes.c_int()
            arguments = (ctypes.byref(count), self._function(kernel), block, ctypes.c_size_t(0))
            self._driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", *arguments)
            return max(count.value, 1)
        return max(int(self._attribute(_ATTRIBUTES["threads_per_sm"]) or 1024) // block, 1)

    def _allocate(self, size: int) -> Any:
        pointer = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def _allocate_region(self, size: int) -> None:
        if self._region is not None:
            self._driver.call("cuMemFree_v2", self._region)
            self._region = None
        self._region = self._allocate(size)

    def _begin(self) -> Any:
        return self._event()

    def _launch(self, kernel: str, blocks: int, block: int, vectors: int, step: int, iterations: int) -> Any:
        values = (
            self._region or ctypes.c_uint64(),
            self._out,
            ctypes.c_int(vectors),
            ctypes.c_int(step),
            ctypes.c_int(iterations),
            ctypes.c_float(float("nan")),
            ctypes.c_float(self._scale),
        )
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        grid = (blocks, 1, 1, block, 1, 1)
        self._driver.call("cuLaunchKernel", self._function(kernel), *grid, 0, None, pointers, None)
        return self._event()

    def _event(self) -> Any:
        event = ctypes.c_void_p()
        self._driver.call("cuEventCreate", ctypes.byref(event), 0)
        self._driver.call("cuEventRecord", event, None)
        return event

    def _wait(self, event: Any) -> None:
        self._driver.call("cuEventSynchronize", event)
        self._driver.call("cuEventDestroy_v2", event)

    def _seconds(self, begin: Any, event: Any) -> float:
        self._driver.call("cuEventSynchronize", event)
        milliseconds = ctypes.c_float()
        self._driver.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, event)
        self._wait(begin)
        self._wait(event)
        return milliseconds.value / 1e3

    def close(self) -> None:
        """Free the GPU's memory and context."""
        self._driver.call("cuCtxSynchronize")
        newer = "cuDevicePrimaryCtxRelease_v2"
        self._driver.call(newer if self._driver.has(newer) else newer.removesuffix("_v2"), self._device)
