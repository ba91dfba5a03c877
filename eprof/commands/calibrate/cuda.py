"""A GPU by NVIDIA's CUDA: its driver through ctypes, for `worker`; its compilers; and its clocks through NVML.

Functions and constants of the driver are those of cuda.h; `_v2` names are what its macros stand for since CUDA 4. No
Python package is needed for it. Clocks are held only where a user asks for it.
"""

import ctypes
import ctypes.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from eprof.base.errors import CollectError
from eprof.base.text import when
from eprof.collect import nvml
from eprof.collect.machine import answer, cuda_driver, executable
from eprof.commands.calibrate.device import Compiled, DriverError, Gpu, Launch

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
Value = TypeVar("Value", ctypes.c_int, ctypes.c_float, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p)


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
    """One GPU as a `Device` by CUDA's driver, by the number that CUDA gives it, with its primary context."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self._library = cuda_driver()
        self._call("cuInit", 0)
        count = self._told("cuDeviceGetCount", ctypes.c_int).value
        if index >= count:
            raise CollectError(f"There is no GPU {index}: CUDA sees {count} here, numbered from 0.")
        self._device = self._told("cuDeviceGet", ctypes.c_int, index)
        self._call("cuCtxSetCurrent", self._told("cuDevicePrimaryCtxRetain", ctypes.c_void_p, self._device))
        self._functions: dict[str, Any] = {}
        self._modules: list[Any] = []
        self._region: Any = None
        self._out = self._told("cuMemAlloc_v2", ctypes.c_uint64, ctypes.c_size_t(4096))

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of the CUDA driver. Raises CudaError with what the driver says."""
        code = self._library[name](*arguments)
        if code:
            words = ctypes.c_char_p()
            if self._has("cuGetErrorString"):
                self._library["cuGetErrorString"](code, ctypes.byref(words))
            raise CudaError(name, code, (words.value or b"").decode(errors="replace"))

    def _told(self, name: str, kind: type[Value], *arguments: Any) -> Value:
        """What a function of the CUDA driver writes at its first argument, a `kind`. Raises CudaError."""
        value = kind()
        self._call(name, ctypes.byref(value), *arguments)
        return value

    def _has(self, name: str) -> bool:
        """Whether this CUDA driver is new enough to have the function `name`."""
        return hasattr(self._library, name)

    def describe(self) -> dict[str, Any]:
        """What the CUDA driver reports: sizes in bytes, clocks in kHz; None: not known to this driver."""
        name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64)
        self._call("cuDeviceGetName", name, 256, self._device)
        self._call("cuDeviceGetPCIBusId", bus, 64, self._device)
        version = self._told("cuDriverGetVersion", ctypes.c_int).value
        attributes: dict[str, Any] = {key: self._attribute(number) for key, number in _ATTRIBUTES.items()}
        return {
            "processor": "cuda",
            "name": name.value.decode(errors="replace"),
            "capability": f"{attributes.pop('major')}.{attributes.pop('minor')}",
            "bus": bus.value.decode(errors="replace"),
            "memory_bytes": self._told("cuDeviceTotalMem_v2", ctypes.c_size_t, self._device).value,
            "cuda": f"{version // 1000}.{version % 1000 // 10}",
            **attributes,
        }

    def _attribute(self, number: int) -> int | None:
        """An attribute of the GPU by its number in cuda.h; None: this driver does not know it."""
        try:
            return self._told("cuDeviceGetAttribute", ctypes.c_int, number, self._device).value
        except CudaError as err:
            if err.number == _UNKNOWN_VALUE:
                return None
            raise

    def load(self, image: Path) -> None:
        """Load a cubin, a fatbin or PTX into the CUDA driver; functions are looked up by name."""
        # PTX is text and must end with a zero byte.
        code = ctypes.c_char_p(image.read_bytes() + b"\0")
        self._modules.append(self._told("cuModuleLoadData", ctypes.c_void_p, code))

    def _function(self, kernel: str) -> Any:
        """A kernel of the loaded modules, looked up once. Raises CollectError: none of them has it."""
        if kernel in self._functions:
            return self._functions[kernel]
        for module in self._modules:
            with suppress(CudaError):
                function = self._told("cuModuleGetFunction", ctypes.c_void_p, module, kernel.encode())
                self._functions[kernel] = function
                return function
        raise CollectError(f"The compiled kernels have no `{kernel}`.")

    def resident(self, kernel: str, block: int) -> int:
        """How many blocks of `block` threads a multiprocessor holds, 1 at least; before CUDA 6.5 by threads alone."""
        counts = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        if self._has(counts):
            return max(self._told(counts, ctypes.c_int, self._function(kernel), block, ctypes.c_size_t(0)).value, 1)
        return max(int(self._attribute(_ATTRIBUTES["threads_per_sm"]) or 1024) // block, 1)

    def _allocate_region(self, size: int) -> None:
        if self._region is not None:
            self._call("cuMemFree_v2", self._region)
            self._region = None
        self._region = self._told("cuMemAlloc_v2", ctypes.c_uint64, ctypes.c_size_t(size))

    def _launch(self, launch: Launch) -> Any:
        values = (
            self._region or ctypes.c_uint64(),
            self._out,
            *map(ctypes.c_int, (launch.vectors, launch.step, launch.iterations)),
            ctypes.c_float(float("nan")),
            ctypes.c_float(self._scale),
        )
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        grid = (launch.blocks, 1, 1, launch.block, 1, 1)
        self._call("cuLaunchKernel", self._function(launch.kernel), *grid, 0, None, pointers, None)
        return self._begin()

    def _begin(self) -> Any:
        event = self._told("cuEventCreate", ctypes.c_void_p, 0)
        self._call("cuEventRecord", event, None)
        return event

    def _wait(self, event: Any) -> None:
        self._call("cuEventSynchronize", event)
        self._call("cuEventDestroy_v2", event)

    def _seconds(self, begin: Any, event: Any) -> float:
        self._call("cuEventSynchronize", event)
        milliseconds = self._told("cuEventElapsedTime", ctypes.c_float, begin, event).value
        self._wait(begin)
        self._wait(event)
        return milliseconds / 1e3

    def close(self) -> None:
        """Free the GPU's memory and context."""
        self._call("cuCtxSynchronize")
        self._call("cuDevicePrimaryCtxRelease" + when(self._has("cuDevicePrimaryCtxRelease_v2"), "_v2"), self._device)


_PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin", "/usr/lib/nvidia-cuda-toolkit/bin")
_PATIENCE_S = 120.0
_LONGEST_QUOTE = 600


def find(name: str) -> str | None:
    """The path of a tool of CUDA: in PATH, CUDA_HOME, the usual places or NVIDIA's Python packages; else None."""
    return executable((name,), (*_homes(), *_PLACES, *map(str, _packages("bin"))))


def _homes() -> list[str]:
    """The folder of programs in the toolkits that the environment names."""
    return [str(Path(os.environ[key]) / "bin") for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]


def _packages(folder: str) -> Iterable[Path]:
    """Folders of NVIDIA's Python packages that may have the compiler: nvidia/cuda_nvcc/bin, nvidia/cu13/lib..."""
    for place in dict.fromkeys([sysconfig.get_path("purelib"), *sys.path]):
        home = Path(place) / "nvidia"
        if place and home.is_dir():
            yield from sorted(home.glob(f"*/{folder}"))


def compile_source(source: Path, capability: str, target: Path) -> Compiled:
    """Compile CUDA C for a GPU of `capability` into `target` (its suffix is set). Raises CollectError.

    nvcc makes machine code; if it does not know the GPU, or if there is none, NVRTC does. Fast arithmetic is left off.
    """
    reasons, lacks = [], "neither nvcc nor NVRTC (libnvrtc.so) is here"
    nvcc = find("nvcc")
    if nvcc is not None:
        lacks = "NVRTC (libnvrtc.so) is not here"
        image = target.with_suffix(".cubin")
        options = [f"-arch=sm_{capability.replace('.', '')}", "-cubin", "-w", "-o", str(image), str(source)]
        code, output, errors = answer([nvcc, *options], patience_s=_PATIENCE_S)
        if code == 0 and image.exists():
            return Compiled(image, f"nvcc ({nvcc})")
        reasons.append(f"nvcc ({nvcc}) says: {_one_line(errors or output) or f'exit code {code}'}")
    if (library := _nvrtc()) is not None:
        return _Nvrtc(library).compile(source, capability, target)
    reasons.append(lacks)
    raise CollectError(
        f"The microbenchmarks cannot be compiled: {'; '.join(reasons)}. Install the CUDA toolkit that fits the driver, "
        "or `pip install nvidia-cuda-nvrtc`, and see that nvcc is in PATH."
    )


def disassemble(image: Path) -> tuple[str | None, str]:
    """The machine code of a cubin as `cuobjdump -sass` prints it and "", or None and the reason."""
    tool, helper = find("cuobjdump"), find("nvdisasm")
    if tool is None or helper is None:
        return None, "cuobjdump and nvdisasm, of the CUDA toolkit, are not here"
    if image.suffix != ".cubin":
        return None, "the driver, not we, makes machine code from PTX"
    path = os.pathsep.join([str(Path(helper).parent), os.environ.get("PATH", "")])
    code, text, errors = answer([tool, "-sass", str(image)], {**os.environ, "PATH": path}, _PATIENCE_S)
    if code or "Function" not in text:
        return None, f"cuobjdump says: {_one_line(errors) or 'nothing'}"
    return text, ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_QUOTE]


def _nvrtc() -> Any:
    """The compiler's library libnvrtc, loaded from wherever it is; None if it is nowhere."""
    names = [ctypes.util.find_library("nvrtc"), "libnvrtc.so"]
    homes = [Path(place).parent for place in (*_homes(), *_PLACES)]
    packed = [library for folder in _packages("lib") for library in sorted(folder.glob("libnvrtc.so*"))]
    for name in filter(None, [*names, *(home / "lib64" / "libnvrtc.so" for home in homes), *packed]):
        with suppress(OSError):
            return ctypes.CDLL(str(name))
    return None


class _Nvrtc:
    """Compiles by NVRTC: to machine code since CUDA 11.1, before that to PTX, which the driver compiles."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self._name = f"NVRTC {major.value}.{minor.value}"

    def compile(self, source: Path, capability: str, target: Path) -> Compiled:
        """Compile CUDA C for a GPU of `capability` to machine code, else to PTX. Raises CollectError with the log."""
        number, log = capability.replace(".", ""), ""
        program = ctypes.c_void_p()
        text = source.read_bytes(), source.name.encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), *text, 0, None, None)
        for kind, architecture in (("CUBIN", f"sm_{number}"), ("PTX", f"compute_{number}")):
            if not hasattr(self._library, f"nvrtcGet{kind}Size"):
                continue
            options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
            if self._library.nvrtcCompileProgram(program, 1, options):
                log = self._get("ProgramLog", program).decode(errors="replace")
                continue
            image = target.with_suffix(f".{kind.lower()}")
            image.write_bytes(self._get(kind, program))
            return Compiled(image, self._name)
        lines = [line for line in log.splitlines() if "error" in line] or log.splitlines()
        why = _one_line(" ".join(lines)) or "no explanation."
        raise CollectError(f"{self._name} cannot compile {source.name} for {capability}: {why}")

    def _get(self, property_name: str, program: Any) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{property_name}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{property_name}", program, text)
        return text.raw

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            words = (self._library.nvrtcGetErrorString(code) or b"").decode(errors="replace")
            raise CollectError(f"NVRTC says: {words} ({name}, error {code}).")


Setting = tuple[int, int | None]


def supported(bus: str) -> dict[int, list[int]]:
    """Memory clock -> core clocks of the GPU at PCI address `bus`, in MHz, descending; empty where NVML lists none."""
    library, device, _ = nvml.at(bus)
    if device is None:
        return {}
    try:
        return {
            int(memory): [int(core) for core in library.nvmlDeviceGetSupportedGraphicsClocks(device, memory)]
            for memory in library.nvmlDeviceGetSupportedMemoryClocks(device)
        }
    except (library.NVMLError, AttributeError):
        return {}


def check(settings: Sequence[Setting], known: dict[int, list[int]]) -> None:
    """Raise CollectError for a setting that is not among the GPU's clocks (`supported`), naming the nearest ones."""
    if not known:
        return
    for core, memory in settings:
        if memory is not None and memory not in known:
            memories = ", ".join(map(str, sorted(known)))
            raise CollectError(f"This GPU has no memory clock of {memory} MHz; it has {memories}.")
        cores = {clock for memory_mhz in known if memory in (None, memory_mhz) for clock in known[memory_mhz]}
        if core not in cores:
            nearest = sorted(sorted(cores), key=lambda clock: abs(clock - core))[:4]
            near = ", ".join(map(str, sorted(nearest)))
            raise CollectError(f"This GPU has no core clock of {core} MHz; near it are {near}.")


@contextmanager
def held(bus: str, setting: Setting | None) -> Iterator[None]:
    """Hold the clocks of the GPU at `bus` inside the block and give them back behind it, whatever happens; None: none.

    Raises CollectError where that is not permitted or not possible; then nothing is changed.
    """
    if setting is None:
        yield
        return
    library, device, why = nvml.at(bus)
    if device is None:
        raise CollectError(f"Clocks cannot be set: {why}.")
    try:
        _hold(library, device, *setting)
        yield
    finally:
        for name in ("ResetGpuLockedClocks", "ResetMemoryLockedClocks", "ResetApplicationsClocks"):
            with suppress(library.NVMLError, AttributeError):
                getattr(library, f"nvmlDevice{name}")(device)


def _hold(library: Any, device: Any, core: int, memory: int | None) -> None:
    """Hold a GPU's clocks, in MHz: locked (Volta on), else application clocks, which need both. Raises CollectError."""
    refusals = (library.NVMLError, AttributeError)
    try:
        in_force = library.nvmlDeviceGetClockInfo(device, library.NVML_CLOCK_MEM)
        try:
            library.nvmlDeviceSetGpuLockedClocks(device, core, core)
            if memory not in (None, in_force):
                library.nvmlDeviceSetMemoryLockedClocks(device, memory, memory)
        except refusals as err:
            if getattr(err, "value", None) == getattr(library, "NVML_ERROR_NO_PERMISSION", object()):
                raise
            library.nvmlDeviceSetApplicationsClocks(device, memory or in_force, core)
    except refusals as err:
        raise CollectError(
            f"The clocks cannot be set to {label((core, memory))} MHz ({err}). It needs root (or `sudo nvidia-smi -acp "
            "0` on GPUs with application clocks); leave --settings out to calibrate at the setting in force."
        ) from err


def label(setting: Setting | None) -> str:
    """A setting of a calibration in words: "1500/2600", "1500" (memory clock left alone), or "in force"."""
    return "/".join(str(mhz) for mhz in setting or ("in force",) if mhz is not None)
