"""Runs steps one after the other until a deadline; what fails, is late or is skipped is written down, never fatal."""

import json
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

OK, FAILED, LATE, SKIPPED = "ok", "failed", "timed out", "skipped"
RESERVE_S = 15  # for packing
LOG_BYTES = 4 << 20  # of one step's output


@dataclass
class Done:
    """One step: what it was, how it ended, and why if it did not end well."""

    name: str
    status: str
    command: list[str] = field(default_factory=list)
    seconds: float = 0.0
    code: int | None = None
    why: str = ""


class Runner:
    """Steps write below `folder`; `logs/NAME.out` and `.err` take what their commands print."""

    def __init__(self, folder: Path, seconds: float, dry: bool = False) -> None:
        self.folder, self.dry = folder, dry
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.done: list[Done] = []
        (folder / "logs").mkdir(parents=True, exist_ok=True)

    @property
    def left_s(self) -> float:
        """Seconds until packing must begin."""
        return self.end - RESERVE_S - time.monotonic()

    def skip(self, name: str, why: str) -> Done:
        """Write down that a step was not run."""
        return self.note(Done(name, SKIPPED, why=why))

    def note(self, one: Done) -> Done:
        """Keep and print a step's end."""
        self.done.append(one)
        told = f" ({one.why})" if one.why else ""
        print(f"{time.monotonic() - self.start:6.1f} s  {one.name}: {one.status}{told}", flush=True)
        return one

    def run(
        self, name: str, command: Sequence[str | Path], limit_s: float, environment: Mapping[str, str] | None = None
    ) -> Done:
        """Run a command, no longer than its limit and the time left."""
        words = [str(word) for word in command]
        if self.dry:
            print(f"{name} (at most {limit_s:g} s):\n    {' '.join(words)}")
            return Done(name, SKIPPED, words, why="dry run")
        if self.left_s < 2:
            return self.note(Done(name, SKIPPED, words, why="no time left"))
        limit = min(limit_s, self.left_s)
        out, err = (self.folder / "logs" / f"{name}.{end}" for end in ("out", "err"))
        began = time.monotonic()
        try:
            with out.open("wb") as told, err.open("wb") as complained:
                code = self._wait(words, limit, told, complained, environment or {})
        except OSError as err_:
            return self.note(Done(name, FAILED, words, why=f"{words[0]}: {err_.strerror or err_}"))
        seconds = round(time.monotonic() - began, 2)
        for path in (out, err):
            shorten(path)
        if code is None:
            return self.note(Done(name, LATE, words, seconds, why=f"stopped after {limit:.0f} s"))
        why = "" if code == 0 else f"exit code {code}: {last_line(err) or last_line(out) or 'it said nothing'}"
        return self.note(Done(name, OK if code == 0 else FAILED, words, seconds, code, why))

    @staticmethod
    def _wait(words: list[str], limit: float, out: object, err: object, environment: Mapping[str, str]) -> int | None:
        """The exit code, or None if the limit came first: then the command and all that it started are ended."""
        process = subprocess.Popen(  # type: ignore[call-overload]
            words,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        try:
            return int(process.wait(limit))
        except subprocess.TimeoutExpired:
            for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
                end_group(process.pid, number)
                try:
                    process.wait(patience)
                    break
                except subprocess.TimeoutExpired:
                    continue
            end_group(process.pid, signal.SIGKILL)
            return None

    def summary(self) -> dict[str, object]:
        """All steps, as plain data."""
        counts = {status: sum(one.status == status for one in self.done) for status in (OK, FAILED, LATE, SKIPPED)}
        return {
            "seconds": round(time.monotonic() - self.start, 1),
            "counts": counts,
            "steps": [asdict(one) for one in self.done],
        }


def end_group(leader: int, number: int) -> None:
    """Send a signal to a process group of ours, if it is still there."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def last_line(path: Path) -> str:
    """The last line of a log that says something."""
    if not path.is_file():
        return ""
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    return next((line[:300] for line in reversed(lines) if line), "")


def shorten(path: Path) -> None:
    """Cut a very long output off, and say so in it."""
    size = path.stat().st_size
    if size > LOG_BYTES:
        with path.open("r+b") as file:
            file.truncate(LOG_BYTES)
            file.seek(0, os.SEEK_END)
            file.write(f"\n[cut off here: {size} bytes]\n".encode())


def pack(
    folder: Path, archive: Path, most_bytes: int, keep: Sequence[str] = ("summary.json", "summary.md")
) -> list[str]:
    """Put the folder into a .tar.gz below `most_bytes`; the biggest files are left out first. Returns what was."""
    dropped: list[str] = []
    while True:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        left = [path for path in files if str(path.relative_to(folder)) not in dropped]
        with tarfile.open(archive, "w:gz") as tar:
            for path in left:
                tar.add(path, arcname=f"{archive.name.removesuffix('.tar.gz')}/{path.relative_to(folder)}")
        over = archive.stat().st_size - most_bytes
        biggest = sorted((path for path in left if path.name not in keep), key=lambda p: p.stat().st_size)
        if over <= 0 or not biggest:
            return dropped
        # Compressed they are smaller: drop at least as many bytes as are over, and look again.
        while over > 0 and biggest:
            path = biggest.pop()
            dropped.append(str(path.relative_to(folder)))
            over -= path.stat().st_size
        note = folder / "DROPPED.txt"
        note.write_text("Left out to keep the archive small:\n" + "".join(f"{name}\n" for name in dropped))


def write_json(path: Path, data: object) -> None:
    """For machines."""
    path.write_text(json.dumps(data, indent=1) + "\n")
