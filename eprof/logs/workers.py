"""Processes of our own that work beside us, and end with us however we end.

`concurrent.futures` would do but for its ends: its processes outlive a parent that is killed, and at SIGTERM it hangs.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Job = TypeVar("Job")
Result = TypeVar("Result")
# How many jobs may be done ahead of the next one in order, a process.
_AHEAD = 4
_ENDING = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


def in_order(jobs: Sequence[Job], work: Callable[[Job], Result], number: int) -> Generator[Result, None, None]:
    """What `work` makes of each job, in the order of the jobs, by so many processes.

    Raises EOFError if a process was killed, OSError or MemoryError if one cannot be had, and what `work` raises.
    """
    team: list[_Worker] = []
    try:
        with _undisturbed():
            for _ in range(number):
                team.append(_Worker(work))
        yield from _shared_out(jobs, team)
    finally:
        for one in team:
            one.end()


def _shared_out(jobs: Sequence[Any], team: Sequence["_Worker"]) -> Iterator[Any]:
    given = wanted = 0
    ready: dict[int, Any] = {}
    while wanted < len(jobs):
        for one in team:
            # Not far ahead of what is wanted: what is ready takes room.
            if one.at is None and given < min(len(jobs), wanted + _AHEAD * len(team)):
                one.give(given, jobs[given])
                given += 1
        for number, found in [one.take() for one in _Worker.finished(team)]:
            ready[number] = found
        while wanted in ready:
            yield ready.pop(wanted)
            wanted += 1


class _Worker:
    """A process, and the number of the job that it is at."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_life, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()
        self.at: int | None = None

    def give(self, number: int, job: object) -> None:
        """Do this."""
        self._ours.send(job)
        self.at = number

    def take(self) -> tuple[int, Any]:
        """The number of the job, and what was made of it. Raises EOFError if the process is gone, or what it raised."""
        found = self._ours.recv()
        if isinstance(found, BaseException):
            raise found
        number, self.at = self.at, None
        assert number is not None
        return number, found

    @staticmethod
    def finished(team: Sequence["_Worker"]) -> list["_Worker"]:
        """Those that have something to take; waits for one."""
        ready = wait([one._ours for one in team if one.at is not None])
        return [one for one in team if one._ours in ready]

    def end(self) -> None:
        """What it is at is of no use any more, and may take long."""
        self._ours.close()
        self._process.kill()
        self._process.join()


def _life(connection: "Connection[Any, Any]", work: Callable[[Any], Any]) -> None:
    """Without the one that started it there is nothing more to take, and nobody to give it to."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = connection.recv()
            try:
                found = work(job)
            except Exception as err:  # noqa: BLE001 - it is raised where it can be told
                found = err
            connection.send(found)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes that are started inside never see Ctrl-C or a closed terminal: what is to end is for us to say.

    Signals to us wait until the start is done. A mask alone does not hold them back: threads have their own.
    """
    # Multiprocessing's own helper: its start, if it came later, would undo the mask below.
    resource_tracker.ensure_running()
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _ENDING}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
