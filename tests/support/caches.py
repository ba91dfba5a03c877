"""The model of caches of eprof/profilers/oclgrind/caches.cpp, built once and fed from Python."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parents[2] / "eprof" / "profilers" / "oclgrind" / "caches.cpp"
_WHAT = {"load": 0, "store": 1 << 16, "atomic": 1 << 17}


@cache
def engine() -> ctypes.CDLL:
    """The engine as a library; tests skip where there is no C++ compiler."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    built = Path(tempfile.mkdtemp(prefix="eprof-caches-")) / "caches.so"
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([compiler, *flags, "-o", built, _SOURCE], check=True)
    library = ctypes.CDLL(str(built))
    built.unlink()
    for name in ("caches_begin", "caches_recorder_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.caches_end.restype = ctypes.c_size_t
    return library


def simulate(gpu, groups, items, local_bytes=0, *, threads=1, warm=False):
    """What the engine counts of a launch, {name: number}; groups as tests/oracle/caches.py describes them."""
    library = engine()
    settings = " ".join(f"{name}={int(value)}" for name, value in (gpu | {"warm": warm}).items())
    os.environ["EPROF_CACHES"] = f"toy {settings}"
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    launch = pointer(library.caches_begin(size(len(groups)), size(items), size(local_bytes)))
    del os.environ["EPROF_CACHES"]

    def work(first):
        recorder = pointer(library.caches_recorder_new(launch))
        for number in range(first, len(groups), threads):
            for phase in groups[number]:
                _phase(library, recorder, phase)
            library.caches_group(recorder, size(number))
        library.caches_recorder_free(recorder)

    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    text = ctypes.create_string_buffer(1 << 14)
    library.caches_end(launch, text, size(len(text)))
    lines = [line.split(" - cache ") for line in text.value.decode().splitlines()]
    return {name: int(number) for number, name in lines if not name.startswith(("model", "accesses lost"))}


def _phase(library, recorder, phase):
    for item, accesses in enumerate(phase):
        library.caches_lane(recorder, item)
        for key, address, bytes_, kind in accesses:
            what = bytes_ | _WHAT[kind]
            library.caches_access(recorder, ctypes.c_uint64(key), ctypes.c_uint64(address), what)
    library.caches_barrier(recorder)
