"""How many threads may work, and a thread that reads ahead of the one that works."""

import os
import resource
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 3  # items
_SCARCE_BYTES = 2 << 30


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_memory_scarce() -> bool:
    """Whether addresses are so few (`ulimit -v`) that threads, each of which sets 70 MB of them aside, take most."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most != resource.RLIM_INFINITY and most < _SCARCE_BYTES


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, made by a thread while others are worked on: it is a few items ahead."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for long logs only

    with ThreadPoolExecutor(1) as maker:
        coming = deque(maker.submit(next, items, None) for _ in range(_AHEAD))
        while (item := coming.popleft().result()) is not None:
            coming.append(maker.submit(next, items, None))
            yield item
