"""Threads beside the one that reads: pyarrow, numpy and hashlib let others run while they work.

A log goes through three of them, a block each at a time: read, hash and look for ends of tables; parse; keep.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
_WAITING = 2


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made while the one before it is worked on."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


class Later:
    """Work that is done beside the caller's, in the order in which it was given; the caller is never far ahead."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._waiting: deque[Future[None]] = deque()

    def do(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do this after what was given before. Raises what earlier work raised."""
        if len(self._waiting) > _WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(work, *args, **kwargs))

    def wait(self) -> None:
        """Come back when all is done. Raises what the work raised."""
        while self._waiting:
            self._waiting.popleft().result()

    def close(self) -> None:
        """End the thread; what has not begun is left undone."""
        self._pool.shutdown(cancel_futures=True)
