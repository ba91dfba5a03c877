"""Ways to compile one source and run its kernels: OpenCL through pyopencl, CUDA through CuPy or bare (`driver`).

All are imported late: a sample whose `--count` is asked for needs neither. Only one-dimensional groups of BLOCK lanes
exist. Buffers are made by `array` and `zeros` and read by `fetch`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.options import SampleError

REALS: dict[str, type[np.floating[Any]]] = {"single": np.float32, "double": np.float64}


def source_text(path: Path, precision: str, block: int, defines: Mapping[str, object]) -> str:
    """The whole text to compile, in either language: definitions, portability macros, kernels."""
    values = {"BLOCK": block, **({"DOUBLE": 1} if precision == "double" else {}), **defines}
    head = "".join(f"#define {name} {value}\n" for name, value in values.items())
    return head + (Path(__file__).parent / "portable.h").read_text() + path.read_text()


class Device(ABC):
    """One compiled source on one device. `times` is filled by `finish`: seconds of each launch of each kernel."""

    name: str

    def __init__(self, block: int) -> None:
        self.block = block
        self.times: dict[str, list[float]] = {}

    @abstractmethod
    def array(self, host: NDArray[Any]) -> Any:
        """A copy on the device."""

    @abstractmethod
    def zeros(self, count: int, dtype: Any) -> Any:
        """A vector of zeros on the device."""

    @abstractmethod
    def clear(self, buffer: Any) -> None:
        """Set every byte to zero, without a kernel of ours."""

    @abstractmethod
    def fetch(self, buffer: Any, count: int, dtype: Any) -> NDArray[Any]:
        """A copy of a vector on the host."""

    @abstractmethod
    def launch(self, kernel: str, groups: int, *arguments: Any) -> None:
        """Run `groups` groups; integers are passed as 32-bit ones. No groups, no launch."""

    @abstractmethod
    def finish(self) -> None:
        """Wait, and add the seconds of the launches since the last call to `times`."""


class OpenCL(Device):
    """pyopencl."""

    def __init__(self, source: str, block: int, wanted: str) -> None:
        super().__init__(block)
        try:
            import pyopencl as cl
        except ImportError as err:
            raise SampleError("backend=opencl needs pyopencl: pip install 'pyopencl[pocl]'") from err
        self.cl = cl
        device = choose_device(cl, wanted)
        self.name = f"{device.platform.name.strip()}, {device.name.strip()}"
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        if "#define DOUBLE" in source and not device.double_fp_config:
            raise SampleError(f"{self.name} has no double precision; use precision=single")
        self.program = cl.Program(self.context, source).build()
        self.kernels = {kernel.function_name: kernel for kernel in self.program.all_kernels()}
        self.events: list[tuple[str, Any]] = []

    def array(self, host: NDArray[Any]) -> Any:
        """A buffer; one of no elements gets 32 bytes, since OpenCL has no empty ones."""
        flags = self.cl.mem_flags.READ_WRITE | self.cl.mem_flags.COPY_HOST_PTR
        host = np.ascontiguousarray(host)
        return self.cl.Buffer(self.context, flags, hostbuf=host if host.size else np.zeros(32, np.uint8))

    def zeros(self, count: int, dtype: Any) -> Any:
        """A cleared buffer of at least one element."""
        buffer = self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(count, 1) * np.dtype(dtype).itemsize)
        self.clear(buffer)
        return buffer

    def clear(self, buffer: Any) -> None:
        """enqueue_fill_buffer."""
        self.cl.enqueue_fill_buffer(self.queue, buffer, np.uint8(0), 0, buffer.size)

    def fetch(self, buffer: Any, count: int, dtype: Any) -> NDArray[Any]:
        """Waits for the launches before it."""
        host = np.empty(count, dtype)
        if count:
            self.cl.enqueue_copy(self.queue, host, buffer)
        return host

    def launch(self, kernel: str, groups: int, *arguments: Any) -> None:
        """Timed by its profiling event."""
        if groups:
            passed = [np.int32(a) if isinstance(a, int) else a for a in arguments]
            event = self.kernels[kernel](self.queue, (groups * self.block,), (self.block,), *passed)
            self.events.append((kernel, event))

    def finish(self) -> None:
        """Reads the profiling events."""
        self.queue.finish()
        for kernel, event in self.events:
            self.times.setdefault(kernel, []).append((event.profile.end - event.profile.start) * 1e-9)
        self.events.clear()


def choose_device(cl: Any, wanted: str) -> Any:
    """The device whose "platform, device" name contains `wanted`; without a wish a GPU, else a CPU, else any.

    PYOPENCL_CTX, pyopencl's own variable, decides if it is set and nothing is wished for. A simulated device is taken
    only by name or where nothing else is.
    """
    if not wanted and os.environ.get("PYOPENCL_CTX"):
        return cl.create_some_context(interactive=False).devices[0]
    devices = {f"{d.platform.name}, {d.name}": d for platform in cl.get_platforms() for d in platform.get_devices()}
    found = {name: device for name, device in devices.items() if wanted.lower() in name.lower()}
    if not found:
        raise SampleError(f"no OpenCL device is called `{wanted}`; there are: {'; '.join(devices) or 'none'}")
    ranks = [cl.device_type.GPU, cl.device_type.CPU]

    def rank(name: str) -> tuple[bool, int]:
        kinds = [found[name].type & kind for kind in ranks] + [1]
        return "oclgrind" in name.lower(), next(i for i, kind in enumerate(kinds) if kind)

    return found[min(found, key=rank)]


class Cuda(Device):
    """CuPy, which compiles with NVRTC."""

    def __init__(self, source: str, block: int) -> None:
        super().__init__(block)
        try:
            import cupy
        except ImportError as err:
            raise SampleError("backend=cuda needs CuPy: pip install cupy-cuda12x (or the one of your CUDA)") from err
        try:
            properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        except cupy.cuda.runtime.CUDARuntimeError as err:
            raise SampleError(f"backend=cuda finds no usable GPU: {err}") from err
        self.cupy = cupy
        self.name = properties["name"].decode()
        self.module = cupy.RawModule(code=source)
        self.events: list[tuple[str, Any, Any]] = []

    def array(self, host: NDArray[Any]) -> Any:
        """A CuPy array."""
        return self.cupy.asarray(np.ascontiguousarray(host))

    def zeros(self, count: int, dtype: Any) -> Any:
        """A CuPy array of at least one element."""
        return self.cupy.zeros(max(count, 1), dtype)

    def clear(self, buffer: Any) -> None:
        """A memset: CuPy's own fill would be a kernel in the profile."""
        buffer.data.memset_async(0, buffer.nbytes)

    def fetch(self, buffer: Any, count: int, dtype: Any) -> NDArray[Any]:
        """Waits for the launches before it."""
        return self.cupy.asnumpy(buffer).reshape(-1).view(dtype)[:count]

    def launch(self, kernel: str, groups: int, *arguments: Any) -> None:
        """Timed by two events around it."""
        if groups:
            passed = tuple(np.int32(a) if isinstance(a, int) else a for a in arguments)
            start, stop = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            start.record()
            self.module.get_function(kernel)((groups,), (self.block,), passed)
            stop.record()
            self.events.append((kernel, start, stop))

    def finish(self) -> None:
        """Reads the pairs of events."""
        self.cupy.cuda.get_current_stream().synchronize()
        for kernel, start, stop in self.events:
            self.times.setdefault(kernel, []).append(self.cupy.cuda.get_elapsed_time(start, stop) * 1e-3)
        self.events.clear()


def has_cuda() -> bool:
    """Whether there is an NVIDIA GPU and something to compile for it."""
    from common import driver

    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount())
    except ImportError:
        return driver.device_count() > 0 and bool(driver.find_nvcc() or next(driver.nvrtc_libraries(), None))
    except Exception:  # a broken driver raises many things, none of which should stop OpenCL
        return False


def open_cuda(source: str, block: int) -> Device:
    """CuPy where it is installed, else the driver's library itself (`driver`)."""
    from common import driver

    try:
        import cupy  # noqa: F401
    except ImportError:
        if not driver.device_count():
            raise SampleError(
                "backend=cuda finds no NVIDIA GPU, nor CuPy: it needs the driver, and nvcc or CuPy "
                "(pip install cupy-cuda12x, or the one of your CUDA)"
            ) from None
        return driver.DriverCuda(source, block)
    return Cuda(source, block)


def open_device(backend: str, source: str, block: int, wanted: str) -> Device:
    """backend: auto, cuda, driver or opencl; wanted: part of an OpenCL device's name, or empty."""
    if backend == "driver":
        from common.driver import DriverCuda

        return DriverCuda(source, block)
    if backend == "cuda" or (backend == "auto" and not wanted and has_cuda()):
        return open_cuda(source, block)
    return OpenCL(source, block, wanted)
