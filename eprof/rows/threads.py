"""Threads beside the one that reads: pyarrow, numpy and hashlib let others run while they work.

Blocks of a log go through three stages: one thread reads, hashes and looks for ends of tables; as many as there are
cores parse; one keeps what was parsed, in the order of the log. Of a short log all is done in one: of thousands of
them, starting threads would take longer than reading.
"""

import os
import resource
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import chain
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
_WAITING = 2
_SCARCE_BYTES = 2 << 30
_MOST_WORKERS = 8


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def are_dear() -> bool:
    """Whether addresses are so few (`ulimit -v`) that threads, each of which sets 70 MB of them aside, take most."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most != resource.RLIM_INFINITY and most < _SCARCE_BYTES


def ahead(items: Iterator[T], see: Callable[[T, Executor], None] | None = None) -> Iterator[T]:
    """The same items, each made while those before it are worked on; the second before the first is given.

    see: is shown items before they are given, as far as they are made, and may have work on them begun.
    """
    first, second = next(items, None), next(items, None)
    if first is not None:
        yield first
    if second is not None:
        yield from _ahead(chain([second], items), see)


def _ahead(items: Iterator[T], see: Callable[[T, Executor], None] | None) -> Iterator[T]:
    most = min(_MOST_WORKERS, cores())
    with ThreadPoolExecutor(1) as maker, ThreadPoolExecutor(most) as workers:
        coming = deque(maker.submit(next, items, None) for _ in range(most if see else 1))
        while (item := coming.popleft().result()) is not None:
            coming.append(maker.submit(next, items, None))
            for later in [item, *(made for one in coming if one.done() and (made := one.result()) is not None)]:
                if see is not None:
                    see(later, workers)
            yield item


class Later:
    """Work that is done beside the caller's, in the order in which it was given; the caller is never far ahead.

    at_once: do it now, without a thread, as is quicker for a short log.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()
        self.at_once = False

    def do(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do this after what was given before. Raises what earlier work raised."""
        if self.at_once:
            work(*args, **kwargs)
            return
        self._pool = self._pool or ThreadPoolExecutor(max_workers=1)
        if len(self._waiting) > _WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(work, *args, **kwargs))

    def wait(self) -> None:
        """Come back when all is done. Raises what the work raised."""
        while self._waiting:
            self._waiting.popleft().result()

    def close(self) -> None:
        """End the thread; what has not begun is left undone."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
