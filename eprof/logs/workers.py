"""A pool of processes that ends with its parent, however that ends.

The processes of `concurrent.futures` outlive a parent that is killed, and at SIGTERM it hangs.
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
    """Yields what `work` returns for each job, in the order of the jobs, by `number` worker processes.

    Raises EOFError if a process was killed, OSError or MemoryError if one cannot be had, and what `work` raises.
    """
    team: list[_Worker] = []
    try:
        with _undisturbed():
            for _ in range(number):
                team.append(_Worker(work))
        given = wanted = 0  # numbers of jobs
        ready: dict[int, Result] = {}
        while wanted < len(jobs):
            for worker in team:
                # Not far ahead of the next result: results that wait take memory.
                if worker.job is None and given < min(len(jobs), wanted + _AHEAD * len(team)):
                    worker.give(given, jobs[given])
                    given += 1
            ready |= dict([worker.take() for worker in _Worker.finished(team)])
            while wanted in ready:
                yield ready.pop(wanted)
                wanted += 1
    finally:
        for worker in team:
            worker.end()


class _Worker:
    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = get_context("spawn")
        self._ours, worker_end = context.Pipe()
        self._process = context.Process(target=_life, args=(worker_end, work), daemon=True)
        self._process.start()
        worker_end.close()
        self.job: int | None = None

    def give(self, number: int, job: object) -> None:
        """Send a job to the worker process."""
        self._ours.send(job)
        self.job = number

    def take(self) -> tuple[int, Any]:
        """The number of the worker's job and its result. Raises EOFError if it is gone, or what the job raised."""
        result = self._ours.recv()
        if isinstance(result, BaseException):
            raise result
        number = self.job
        assert number is not None
        self.job = None
        return number, result

    @staticmethod
    def finished(team: Sequence["_Worker"]) -> list["_Worker"]:
        """The workers whose result can be taken; waits until there is one."""
        ready = wait([worker._ours for worker in team if worker.job is not None])
        return [worker for worker in team if worker._ours in ready]

    def end(self) -> None:
        """Kill the worker process: its job is of no use any more, and may take long."""
        self._ours.close()
        self._process.kill()
        self._process.join()


def _life(connection: "Connection[Any, Any]", work: Callable[[Any], Any]) -> None:
    """The life of a worker: it works on jobs until the process that started it is gone."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = connection.recv()
            try:
                result = work(job)
            except Exception as err:  # noqa: BLE001 - the parent raises it
                result = err
            connection.send(result)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes started inside the block ignore Ctrl-C and a closed terminal for good: this process ends them.

    Signals to this process wait until the start is done. A mask alone does not hold them back: threads have their own.
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
