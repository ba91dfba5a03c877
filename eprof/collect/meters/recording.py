"""What a meter reads, written into a table at once, row by row, by a thread that goes on while a program runs."""

import csv
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def recording(path: Path, columns: Sequence[str], row: Callable[[], Iterable[str]], period_s: float) -> Iterator[None]:
    """Write a row every `period_s` s inside the block, below those that the file has.

    row: reads sensors; where it raises OSError, RuntimeError or ValueError, that row is left out.
    """
    stop = threading.Event()
    fresh = not path.exists()
    with path.open("a", newline="", buffering=1) as file:
        rows = csv.writer(file, lineterminator="\n")
        if fresh:
            rows.writerow(columns)

        def work() -> None:
            while True:
                with suppress(OSError, RuntimeError, ValueError):
                    rows.writerow(row())
                if stop.wait(period_s):
                    return

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
