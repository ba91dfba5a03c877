"""How many threads may work, and a thread that reads ahead of the one that works."""

import os
import resource
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 3  # items
SCARCE_BYTES = 1 << 30  # of addresses, which a long log takes


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_memory_scarce() -> bool:
    """Whether addresses are so few (`ulimit -v`) that no thread may read ahead, which takes many times as long."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most != resource.RLIM_INFINITY and most < SCARCE_BYTES


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yields `items` up to the first None; a thread takes them from their iterator a few ahead of their use."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for long logs only

    with ThreadPoolExecutor(1) as maker:
        coming = deque(maker.submit(next, items, None) for _ in range(_AHEAD))
        while (item := coming.popleft().result()) is not None:
            coming.append(maker.submit(next, items, None))
            yield item
