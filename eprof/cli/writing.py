"""Writing results: atomically, and never over somebody's file without --force."""

import os
from contextlib import suppress
from pathlib import Path

from eprof.base.errors import EprofError


def refuse_existing(path: Path, force: bool) -> None:
    """Raise EprofError if the file to write exists and may not be replaced, or cannot be written there at all."""
    if path.is_dir():
        raise EprofError(f"{path}: is a directory; name a file to write.")
    if path.exists() and not path.is_file():
        raise EprofError(f"{path}: is not an ordinary file and is not replaced; use --format for standard output.")
    if path.exists() and not force:
        raise EprofError(f"{path}: exists already and is not overwritten; use another name, or -f/--force.")
    if not path.parent.is_dir():
        raise EprofError(f"{path}: there is no directory {path.parent}; make it first.")


def write(path: Path, content: bytes, force: bool) -> None:
    """Write a file in one step: a reader sees the whole file or none. Raises EprofError."""
    refuse_existing(path, force)
    beside = path.parent / f".{path.name[:40]}.{os.urandom(6).hex()}"
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _move(beside, path, force)
    except OSError as err:
        raise EprofError(
            f"{path}: cannot be written ({err.strerror or err}); nothing was changed; make room there, or name a file "
            "elsewhere."
        ) from err
    finally:
        with suppress(OSError):
            beside.unlink()


def _move(beside: Path, path: Path, force: bool) -> None:
    """Rename the written file, or link where nothing may be replaced: two writers cannot overwrite each other."""
    if force:
        beside.replace(path)
        return
    try:
        os.link(beside, path)
    except FileExistsError as err:
        raise EprofError(f"{path}: exists already and is not overwritten; use another name, or -f/--force.") from err
    except OSError:
        # A file system without hard links.
        refuse_existing(path, force)
        beside.replace(path)
