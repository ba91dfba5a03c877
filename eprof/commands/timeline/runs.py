"""What a run directory of `eprof run` holds: power by component, and marks, on one clock."""

from collections.abc import Iterator
from pathlib import Path

from eprof.base.errors import LogError
from eprof.collect import directory

_METER = "power.csv"  # of the one meter that reports use; on a clock of its own


def power(path: str) -> str:
    """The power log of a run directory; any other path as it is. Raises LogError."""
    if not _is_run(path):
        return path
    logs = [str(Path(path) / name) for name in (directory.COMPONENTS, _METER) if (Path(path) / name).is_file()]
    if logs:
        return logs[0]
    hint = (
        f"; for its marks: eprof timeline POWER --marks {path}, with the log of a meter beside it"
        if marks(path)
        else ""
    )
    raise LogError(f"{path}: no power was measured in this run, as no sensor was found{hint}.")


def marks(path: str) -> str | None:
    """The marks of a run directory, None where it has none; any other path as it is."""
    if not _is_run(path):
        return path
    file = Path(path) / directory.MARKS
    return str(file) if file.is_file() else None


def notes(path: str) -> Iterator[str]:
    """What to know of a run directory for its timeline."""
    manifest = (directory.manifest(Path(path)) or {}) if _is_run(path) else None
    if manifest is None:
        return
    if manifest.get("status") != directory.COMPLETE:
        yield f"{path} was not finished: power and marks end early."
    runs = sum(int(entry.get("runs", 1)) for entry in manifest.get("measurements", []) if entry["what"] == "energy")
    if runs > 1:
        yield f"The program ran {runs} times while power was read: times, calls and joules are of all {runs} runs."


def _is_run(path: str) -> bool:
    return Path(path).is_dir() and directory.is_run_directory(Path(path))
