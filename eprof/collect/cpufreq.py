"""Clocks of this machine's processor through Linux's cpufreq: held and given back. Only where a user asks for it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eprof.base.errors import CollectError

_FOLDER = "sys/devices/system/cpu"
_LOW, _HIGH = "scaling_min_freq", "scaling_max_freq"


@contextmanager
def held(core_mhz: float | None, root: Path = Path("/")) -> Iterator[None]:
    """Hold all cores at a clock in MHz inside the block, and give back what was in force, whatever happens.

    None: leave the clocks alone. root: where /sys stands. Raises CollectError, with nothing changed, where the clock
    cannot be set.
    """
    if core_mhz is None:
        yield
        return
    cores = sorted((root / _FOLDER).glob("cpu[0-9]*/cpufreq"))
    if not cores:
        raise CollectError("--clock: this machine lets nobody set the clock of its processor (no cpufreq in /sys).")
    before = {core: _limits(core) for core in cores}
    wanted_khz = round(core_mhz * 1000)
    for core in cores:
        _check(core, wanted_khz)
    try:
        for core in cores:
            _set(core, wanted_khz, wanted_khz)
        yield
    except PermissionError as err:
        raise CollectError("--clock: only root may set the clock of the processor; nothing was changed.") from err
    finally:
        for core, (low_khz, high_khz) in before.items():
            with suppress(OSError):
                _set(core, low_khz, high_khz)


def _limits(core: Path) -> tuple[int, int]:
    return _number(core / _LOW), _number(core / _HIGH)


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError) as err:
        raise CollectError(f"--clock: {file} cannot be read, so no clock is changed.") from err


def _check(core: Path, wanted_khz: int) -> None:
    """Raises CollectError for a clock that the core does not have."""
    slowest_khz, fastest_khz = _number(core / "cpuinfo_min_freq"), _number(core / "cpuinfo_max_freq")
    if not slowest_khz <= wanted_khz <= fastest_khz:
        span = f"{slowest_khz / 1000:g} to {fastest_khz / 1000:g} MHz"
        raise CollectError(f"--clock {wanted_khz / 1000:g}: this processor has {span}.")


def _set(core: Path, low_khz: int, high_khz: int) -> None:
    """Both limits; the low one is out of the way first, for it may never be above the high one."""
    (core / _LOW).write_text(str(_number(core / "cpuinfo_min_freq")))
    (core / _HIGH).write_text(str(high_khz))
    (core / _LOW).write_text(str(low_khz))
