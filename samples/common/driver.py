"""CUDA with nothing but numpy, the driver's library and a compiler (nvcc, or NVRTC): what CuPy does, through ctypes.

Function names are those of NVIDIA's driver API; `_v2` where its header maps a name to a newer entry point.
"""

import ctypes
import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.launch import Device
from common.options import SampleError

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class DriverError(SampleError):
    """A call of the driver's library failed."""


@cache
def _library() -> ctypes.CDLL | None:
    """libcuda, or None. EPROF_SAMPLES_LIBCUDA names another one (a test's)."""
    named = os.environ.get("EPROF_SAMPLES_LIBCUDA")
    for name in [named] if named else ["libcuda.so.1", "libcuda.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def call(name: str, *arguments: Any) -> None:
    """One call. Raises DriverError with the driver's own words if it fails."""
    library = _library()
    if library is None:
        raise DriverError("NVIDIA's driver (libcuda.so.1) is not installed here")
    code = getattr(library, name)(*arguments)
    if code:
        words = ctypes.c_char_p()
        library.cuGetErrorString(code, ctypes.byref(words))
        raise DriverError(f"{name} failed: {(words.value or b'no words').decode()} (error {code})")


def device_count() -> int:
    """How many GPUs the driver sees; 0 where there is no driver."""
    count = ctypes.c_int()
    try:
        call("cuInit", 0)
        call("cuDeviceGetCount", ctypes.byref(count))
    except DriverError:
        return 0
    return count.value


class Memory:
    """Some bytes on the GPU, freed with the object."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.at = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.at), ctypes.c_size_t(size))

    def __del__(self) -> None:
        library = _library()
        if library is not None and self.at.value:
            library.cuMemFree_v2(self.at)


class DriverCuda(Device):
    """The first GPU, through the driver API."""

    def __init__(self, source: str, block: int) -> None:
        super().__init__(block)
        call("cuInit", 0)
        device, context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(256)
        call("cuDeviceGetName", name, len(name), device)
        self.name = name.value.decode()
        capability = []
        for what in (_MAJOR, _MINOR):
            number = ctypes.c_int()
            call("cuDeviceGetAttribute", ctypes.byref(number), what, device)
            capability.append(number.value)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        self.image = compiled(source, "{}{}".format(*capability))
        call("cuModuleLoadData", ctypes.byref(self.module), self.image)
        self.functions: dict[str, ctypes.c_void_p] = {}
        self.events: list[tuple[str, ctypes.c_void_p, ctypes.c_void_p]] = []

    def array(self, host: NDArray[Any]) -> Memory:
        """Allocate and copy; an empty array gets 32 bytes."""
        host = np.ascontiguousarray(host)
        memory = Memory(max(host.nbytes, 32))
        if host.nbytes:
            call("cuMemcpyHtoD_v2", memory.at, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes))
        return memory

    def zeros(self, count: int, dtype: Any) -> Memory:
        """Allocate and clear at least one element."""
        memory = Memory(max(count, 1) * np.dtype(dtype).itemsize)
        self.clear(memory)
        return memory

    def clear(self, buffer: Memory) -> None:
        """A memset."""
        call("cuMemsetD8_v2", buffer.at, ctypes.c_ubyte(0), ctypes.c_size_t(buffer.size))

    def fetch(self, buffer: Memory, count: int, dtype: Any) -> NDArray[Any]:
        """Waits for the launches before it: they are in the same stream."""
        host = np.empty(count, dtype)
        if host.nbytes:
            call("cuMemcpyDtoH_v2", ctypes.c_void_p(host.ctypes.data), buffer.at, ctypes.c_size_t(host.nbytes))
        return host

    def launch(self, kernel: str, groups: int, *arguments: Any) -> None:
        """Timed by two events around it; the driver copies the arguments before it returns."""
        if not groups:
            return
        values = [a.at if isinstance(a, Memory) else ctypes.c_int32(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        start, stop = self.event(), self.event()
        sizes = (ctypes.c_uint(groups), ctypes.c_uint(1), ctypes.c_uint(1), ctypes.c_uint(self.block))
        rest = (ctypes.c_uint(1), ctypes.c_uint(1), ctypes.c_uint(0), None, pointers, None)
        call("cuEventRecord", start, None)
        call("cuLaunchKernel", self.function(kernel), *sizes, *rest)
        call("cuEventRecord", stop, None)
        self.events.append((kernel, start, stop))

    def function(self, kernel: str) -> ctypes.c_void_p:
        """A kernel by name, looked up once."""
        if kernel not in self.functions:
            found = ctypes.c_void_p()
            call("cuModuleGetFunction", ctypes.byref(found), self.module, kernel.encode())
            self.functions[kernel] = found
        return self.functions[kernel]

    def event(self) -> ctypes.c_void_p:
        """A new event."""
        found = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(found), ctypes.c_uint(0))
        return found

    def finish(self) -> None:
        """Reads the pairs of events."""
        call("cuCtxSynchronize")
        for kernel, start, stop in self.events:
            milliseconds = ctypes.c_float()
            call("cuEventElapsedTime", ctypes.byref(milliseconds), start, stop)
            self.times.setdefault(kernel, []).append(milliseconds.value * 1e-3)
            call("cuEventDestroy_v2", start)
            call("cuEventDestroy_v2", stop)
        self.events.clear()


def compiled(source: str, architecture: str) -> bytes:
    """Machine code for "90" and the like, by nvcc, else by NVRTC. Raises SampleError where there is neither."""
    nvcc = find_nvcc()
    if nvcc:
        return by_nvcc(nvcc, source, architecture)
    nvrtc = next(nvrtc_libraries(), None)
    if nvrtc is not None:
        return by_nvrtc(nvrtc, source, architecture)
    raise SampleError("CUDA kernels need a compiler: CuPy, nvcc on the PATH, or NVRTC (pip install nvidia-cuda-nvrtc)")


def find_nvcc() -> str | None:
    """nvcc on the PATH, or where CUDA_HOME and the usual folder say."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    paths = [shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in homes if home)]
    return next((path for path in paths if path and Path(path).is_file()), None)


def by_nvcc(nvcc: str, source: str, architecture: str) -> bytes:
    """A cubin."""
    with tempfile.TemporaryDirectory() as folder:
        text, binary = Path(folder) / "sample.cu", Path(folder) / "sample.cubin"
        text.write_text(source)
        command = [nvcc, "-cubin", f"-arch=sm_{architecture}", "-lineinfo", "-o", str(binary), str(text)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SampleError(f"{nvcc} does not compile the kernels: {(done.stderr or done.stdout).strip()[:2000]}")
        return binary.read_bytes()


def nvrtc_libraries() -> Iterator[ctypes.CDLL]:
    """NVRTC from NVIDIA's Python packages, or where the loader finds it."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations or []) if found else []
    paths = [str(path) for folder in folders for path in sorted(Path(folder).glob("*/lib/libnvrtc.so*"))]
    for path in [*paths, "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"]:
        try:
            yield ctypes.CDLL(path)
        except OSError:
            continue


def by_nvrtc(nvrtc: ctypes.CDLL, source: str, architecture: str) -> bytes:
    """The same from the compiler that is a library."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"sample.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{architecture}".encode())
    failed = nvrtc.nvrtcCompileProgram(program, 1, options)
    what = "Log" if failed else "CUBIN"
    getattr(nvrtc, f"nvrtcGet{'Program' if failed else ''}{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{'Program' if failed else ''}{what}")(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise SampleError(f"NVRTC does not compile the kernels: {text.value.decode().strip()[:2000]}")
    return text.raw
