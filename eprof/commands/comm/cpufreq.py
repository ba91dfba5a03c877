"""Clocks of this machine's processor, held by cpufreq of Linux while something is measured."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eprof.base.errors import CollectError
from eprof.collect.machine import CORES

_LOW, _HIGH = "scaling_min_freq", "scaling_max_freq"
_SLOWEST, _FASTEST = "cpuinfo_min_freq", "cpuinfo_max_freq"


@contextmanager
def held_at(core_mhz: float | None, root: Path = Path("/")) -> Iterator[None]:
    """Hold all cores of the processor at a clock in MHz inside the block, and give back what was in force.

    None: leave the clocks alone. root: where /sys stands. Raises CollectError, with nothing changed.
    """
    if core_mhz is None:
        yield
        return
    cores = check_clock(core_mhz, root)
    before = {core: (_number(core / _LOW), _number(core / _HIGH)) for core in cores}
    try:
        try:
            for core in cores:
                _set(core, round(core_mhz * 1000), round(core_mhz * 1000))
        except OSError as err:
            raise CollectError("--clock: this machine does not let its clock be set, and none was changed.") from err
        yield
    finally:
        for core, (low_khz, high_khz) in before.items():
            with suppress(OSError):
                _set(core, low_khz, high_khz)


def check_clock(core_mhz: float, root: Path = Path("/")) -> list[Path]:
    """The cpufreq folders of all cores. Raises CollectError if one of them cannot be set to `core_mhz`."""
    cores = sorted((root / CORES).glob("cpu[0-9]*/cpufreq"))
    if not cores:
        raise CollectError("--clock: this machine lets nobody set its clock (no cpufreq in /sys); none was changed.")
    for core in cores:
        if not all(os.access(core / name, os.W_OK) for name in (_LOW, _HIGH)):
            raise CollectError("--clock: only root may set the clock of this machine; none was changed.")
        slowest_khz, fastest_khz = _number(core / _SLOWEST), _number(core / _FASTEST)
        if not slowest_khz <= round(core_mhz * 1000) <= fastest_khz:
            span = f"{slowest_khz / 1000:g} to {fastest_khz / 1000:g} MHz"
            raise CollectError(f"--clock {core_mhz:g}: this processor has {span}; no clock was changed.")
    return cores


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError) as err:
        raise CollectError(f"--clock: {file} cannot be read, so no clock is changed.") from err


def _set(core: Path, low_khz: int, high_khz: int) -> None:
    """Set both limits of a core's clock, the low one out of the way first: it may never be above the high one."""
    (core / _LOW).write_text(str(_number(core / _SLOWEST)))
    (core / _HIGH).write_text(str(high_khz))
    (core / _LOW).write_text(str(low_khz))
