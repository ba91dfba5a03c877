"""How many threads may work, and a thread that reads ahead of the one that works."""

import os
import resource
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")
_SCARCE_BYTES = 2 << 30


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_memory_scarce() -> bool:
    """Whether addresses are so few (`ulimit -v`) that threads, each of which sets 70 MB of them aside, take most."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most != resource.RLIM_INFINITY and most < _SCARCE_BYTES


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made by a thread that reads ahead while the one before it is worked on."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for long logs only

    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = maker.submit(next, items, None)
            yield item
