"""Open MPI on this machine: whether it is here, a C program compiled by its compiler, and a run to its end."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from eprof.base.errors import CollectError
from eprof.collect import process
from eprof.collect.tools import ask, executable

INSTALL = "apt install openmpi-bin libopenmpi-dev"
_VERSION = re.compile(r"\(Open MPI\) (\d[\w.]*)")
_LONGEST_QUOTE = 300


class Mpi(NamedTuple):
    """Where Open MPI is, and its version."""

    compiler: str
    launcher: str
    version: str


def find() -> tuple[Mpi | None, str]:
    """Open MPI, or why it cannot be used."""
    compiler, launcher = executable(("mpicc",), ()), executable(("mpirun",), ())
    if launcher is None:
        return None, "Open MPI is not installed"
    if compiler is None:
        return None, "Open MPI has mpirun here, but no mpicc, which compiles programs"
    version = _VERSION.search(ask([launcher, "--version"]))
    if version is None:
        return None, f"{launcher} is not that of Open MPI"
    return Mpi(compiler, launcher, version[1]), ""


def compiled(compiler: str, source: Path, target: Path, *options: str) -> Path:
    """Compile C with Open MPI's compiler; the target. Raises CollectError with what the compiler says."""
    target.unlink(missing_ok=True)
    answer = ask([compiler, "-O2", str(source), "-o", str(target), *options])
    if not target.exists():
        lines = [line for line in answer.splitlines() if "error" in line] or answer.splitlines()[-1:] or ["nothing"]
        raise CollectError(f"{source.name} cannot be compiled; {compiler} says: {lines[0].strip()[:_LONGEST_QUOTE]}.")
    return target


def launch(mpi: Mpi, processes: int) -> list[str]:
    """The words before a program that start it under MPI, so that its waits spin even where cores are few."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [mpi.launcher, *as_root, "--oversubscribe", "--mca", "mpi_yield_when_idle", "0", "-n", str(processes)]


def output_of(command: Sequence[str]) -> str:
    """What a program prints under Open MPI, run to its end.

    Raises CollectError: it failed; KeyboardInterrupt: a signal ended it.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        ended = process.run_alone(command, output.fileno(), errors.fileno())
        text, said = (_text(file) for file in (output, errors))
    if ended.status:
        raise CollectError(f"{Path(command[0]).name} ended with {ended.status}: {_reason(said)}.")
    return text


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _reason(said: str) -> str:
    """Why Open MPI failed: the first line that says something, of what it frames with dashes."""
    lines = [line.strip() for line in said.splitlines() if re.search(r"\w", line)]
    return lines[0][:_LONGEST_QUOTE].rstrip(".") if lines else "it does not say why"
