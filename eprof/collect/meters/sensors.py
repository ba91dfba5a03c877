"""The sensors of this machine: its meter, and power by component, read in a thread into one table while a program runs.

The table has a column of time (s since the epoch) and one a component: its power (`gpu0_w`) or a counter of its joules
(`package-0_j`). A cell is empty where a sensor gave no answer.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from eprof.base.optional import mapped
from eprof.collect.meters import hwmon, jetson, nvml, rapl
from eprof.collect.meters.meter import PERIOD_S, Component, Meter, first, recording


def meter(host: bool = False) -> tuple[Meter | None, list[str]]:
    """The first meter found (None: none), and a sentence on each that is not. host: RAPL, else the GPU's meters."""
    return first((rapl.find,) if host else (nvml.find, jetson.find))


def components(root: Path = Path("/"), activity: bool = False) -> list[Component]:
    """The components of this machine that have a sensor; `activity`: also how busy units of GPUs are. root: of /sys."""
    boards = list(hwmon.components(root))
    source, _ = nvml.find()
    if isinstance(source, nvml.Nvml):
        boards = [*source.components(), *boards]
    if activity:
        boards += [part for board in nvml.sampled_boards()[0] for part in board.components()]
    parts = [*rapl.components(root), *jetson.components(root)]
    # Whether the platform's counter sees what is plugged in depends on the board: beside boards it is left out.
    return [part for part in parts if not (boards and part.name == rapl.PLATFORM)] + boards


def sampling(parts: Sequence[Component], path: Path, epoch_s: float) -> AbstractContextManager[None]:
    """Read the power of all components inside the block into `path`. epoch_s: when the monotonic clock was 0."""

    def row() -> list[str]:
        return [f"{epoch_s + time.monotonic():.6f}", *map(_cell, parts)]

    columns = ["time_s", *(f"{component.name}_{component.unit.lower()}" for component in parts)]
    return recording(path, columns, row, max((component.period_s for component in parts), default=PERIOD_S))


def _cell(component: Component) -> str:
    try:
        return mapped("{:.6f}".format, component.read()) or ""
    except (OSError, RuntimeError, ValueError):
        return ""
