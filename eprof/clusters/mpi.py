"""Open MPI or MPICH on this machine: where it is, the command that starts a program under it, a command's output."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eprof.base.errors import CollectError
from eprof.collect import process
from eprof.collect.machine import LONGEST_QUOTE, ask, executable

INSTALL = "apt install openmpi-bin libopenmpi-dev"
_VERSIONS = {
    "openmpi": ("Open MPI", re.compile(r"\((?:Open MPI|OpenRTE)\) (\d[\w.]*)"), INSTALL),
    "mpich": ("MPICH", re.compile(r"HYDRA build details:\s+Version:\s+(\d[\w.]*)"), "apt install mpich libmpich-dev"),
}


class Mpi(NamedTuple):
    """An installed MPI: the paths of mpicc and mpirun, its version, and "openmpi" or "mpich"."""

    compiler: str
    launcher: str
    version: str
    kind: str = "openmpi"

    def __str__(self) -> str:
        return f"{_VERSIONS[self.kind][0]} {self.version}"


def find(kind: str = "openmpi") -> tuple[Mpi | None, str]:
    """(The installed "openmpi" or "mpich", "") or (None, why not). Its mpirun and mpicc may end in `.KIND` (Debian)."""
    name, words, _ = _VERSIONS[kind]
    why = f"{name} is not installed"
    for suffix in ("", f".{kind}"):
        compiler, launcher = (executable((f"{word}{suffix}",), ()) for word in ("mpicc", "mpirun"))
        if launcher is None:
            continue
        version = words.search(ask([launcher, "--version"]))
        if version is None:
            why = f"{launcher} is not that of {name}"
        elif compiler is None:
            why = f"{name} has {Path(launcher).name} here, but no mpicc{suffix}, which compiles programs"
        else:
            return Mpi(compiler, launcher, version[1], kind), ""
    return None, why


def needed(kind: str) -> Mpi:
    """The installed "openmpi" or "mpich". Raises CollectError, with how to install it, where it is not here."""
    found, why = find(kind)
    if found is None:
        raise CollectError(f"{why}; install it ({_VERSIONS[kind][2]}), or leave --mpi out for the closed form.")
    return found


def launch(mpi: Mpi, processes: int) -> list[str]:
    """The words to put before a program to run it in so many processes under MPI; waits spin even on few cores."""
    if mpi.kind == "mpich":
        return [mpi.launcher, "-n", str(processes)]
    as_root = ["--allow-run-as-root"] * (os.geteuid() == 0)
    return [mpi.launcher, *as_root, "--oversubscribe", "--mca", "mpi_yield_when_idle", "0", "-n", str(processes)]


def output_of(command: Sequence[str]) -> str:
    """Run a command to its end and return its output. Raises CollectError: it failed; KeyboardInterrupt: a signal."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        ended = process.run_alone(command, output.fileno(), errors.fileno())
        for file in (output, errors):
            file.seek(0)
        text, said = (file.read().decode(errors="replace") for file in (output, errors))
    if ended.status:
        # The first line that says something, of what MPI frames with dashes.
        lines = [line.strip() for line in said.splitlines() if re.search(r"\w", line)] or ["it does not say why"]
        why = lines[0][:LONGEST_QUOTE].rstrip(".")
        raise CollectError(f"{Path(command[0]).name} ended with {ended.status}: {why}.")
    return text
