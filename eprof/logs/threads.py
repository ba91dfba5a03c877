"""Threads beside the one that reads: pyarrow, numpy and hashlib let others run while they work.

A log goes through three of them, a block each at a time: read, hash and look for ends of tables; parse; keep. Of a
short log all is done in one: of thousands of them, starting threads would take longer than reading.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
_WAITING = 2


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made while the one before it is worked on; the second before the first is given."""
    first, second = next(items, None), next(items, None)
    if first is not None:
        yield first
    if second is None:
        return
    yield from _ahead(chain([second], items))


def _ahead(items: Iterator[T]) -> Iterator[T]:
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
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
