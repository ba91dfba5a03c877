"""How many threads may work, and a thread that reads ahead of the one that works."""

import os
import resource
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 3  # items
# Of addresses: what a long log takes with one thread of polars, and what each further one sets aside.
SCARCE_BYTES, _THREAD_BYTES = 1 << 30, 70 << 20


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_memory_scarce() -> bool:
    """Whether addresses are so few (`ulimit -v`) that no thread may read ahead, which takes many times as long.

    Where there are enough for one thread of polars, and not for one a core, it is told to start one.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return False
    if most < SCARCE_BYTES + cores() * _THREAD_BYTES:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
    return most < SCARCE_BYTES


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yields `items` up to the first None; a thread takes them from their iterator a few ahead of their use."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for long logs only

    with ThreadPoolExecutor(1) as maker:
        coming = deque(maker.submit(next, items, None) for _ in range(_AHEAD))
        while (item := coming.popleft().result()) is not None:
            coming.append(maker.submit(next, items, None))
            yield item
