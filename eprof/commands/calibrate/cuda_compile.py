"""Compiles CUDA C with what is there, nvcc or NVRTC, and takes machine code apart with cuobjdump where there is one."""

import ctypes
import ctypes.util
import os
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.collect.machine import Compiled, answer, executable

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
    reasons = []
    nvcc = find("nvcc")
    if nvcc is not None:
        image = target.with_suffix(".cubin")
        options = [f"-arch=sm_{capability.replace('.', '')}", "-cubin", "-w", "-o", str(image), str(source)]
        code, output, errors = answer([nvcc, *options], patience_s=_PATIENCE_S)
        if code == 0 and image.exists():
            return Compiled(image, f"nvcc ({nvcc})")
        reasons.append(f"nvcc ({nvcc}) says: {_one_line(errors or output) or f'exit code {code}'}")
    if (library := _nvrtc()) is not None:
        return _Nvrtc(library).compile(source, capability, target)
    reasons.append("NVRTC (libnvrtc.so) is not here" if nvcc else "neither nvcc nor NVRTC (libnvrtc.so) is here")
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

    def compile(self, source: Path, capability: str, target: Path) -> Compiled:
        """Compile with NVRTC; raises CollectError with the compiler's log."""
        number = capability.replace(".", "")
        program = ctypes.c_void_p()
        text, name = source.read_bytes(), source.name.encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, name, 0, None, None)
        log = ""
        for kind, architecture in (("CUBIN", f"sm_{number}"), ("PTX", f"compute_{number}")):
            if not hasattr(self._library, f"nvrtcGet{kind}Size"):
                continue
            options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
            if self._library.nvrtcCompileProgram(program, 1, options):
                log = self._get("ProgramLog", program).decode(errors="replace")
                continue
            image = target.with_suffix(f".{kind.lower()}")
            image.write_bytes(self._get(kind, program))
            return Compiled(image, f"NVRTC {self._version()}")
        lines = [line for line in log.splitlines() if "error" in line] or log.splitlines()
        why = _one_line(" ".join(lines)) or "no explanation."
        raise CollectError(f"NVRTC {self._version()} cannot compile {source.name} for {capability}: {why}")

    def _version(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

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
