"""Clocks of a GPU through NVML: which there are, holding them, giving them back. Only where a user asks for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from eprof.base.errors import CollectError
from eprof.collect.meters import nvml

Setting = tuple[int, int | None]


def supported(bus: str) -> dict[int, list[int]]:
    """Memory clock -> core clocks of the GPU at PCI address `bus`, in MHz, descending; empty where NVML lists none."""
    library, device, _ = nvml.at(bus)
    if device is None:
        return {}
    try:
        return {
            int(memory): [int(core) for core in library.nvmlDeviceGetSupportedGraphicsClocks(device, memory)]
            for memory in library.nvmlDeviceGetSupportedMemoryClocks(device)
        }
    except (library.NVMLError, AttributeError):
        return {}


def check(settings: Sequence[Setting], known: dict[int, list[int]]) -> None:
    """Raise CollectError for a setting that the GPU does not have, naming the nearest ones."""
    for core, memory in settings:
        if not known:
            return
        if memory is not None and memory not in known:
            words = ", ".join(str(clock) for clock in sorted(known))
            raise CollectError(f"This GPU has no memory clock of {memory} MHz; it has {words}.")
        cores = {clock for memory_mhz in known if memory in (None, memory_mhz) for clock in known[memory_mhz]}
        if core not in cores:
            near = sorted(sorted(cores), key=lambda clock: abs(clock - core))[:4]
            words = ", ".join(str(clock) for clock in sorted(near))
            raise CollectError(f"This GPU has no core clock of {core} MHz; near it are {words}.")


@contextmanager
def held(bus: str, setting: Setting | None) -> Iterator[None]:
    """Hold the GPU's clocks inside the block and give them back behind it, whatever happens; None: leave them.

    Raises CollectError where that is not permitted or not possible; then nothing is changed.
    """
    if setting is None:
        yield
        return
    library, device, why = nvml.at(bus)
    if device is None:
        raise CollectError(f"Clocks cannot be set: {why}.")
    try:
        _hold(library, device, *setting)
        yield
    finally:
        for name in ("ResetGpuLockedClocks", "ResetMemoryLockedClocks", "ResetApplicationsClocks"):
            with suppress(library.NVMLError, AttributeError):
                getattr(library, f"nvmlDevice{name}")(device)


def _hold(library: Any, device: Any, core: int, memory: int | None) -> None:
    """Hold the GPU's clocks: locked (Volta on), else application clocks, which need both clocks."""
    try:
        library.nvmlDeviceSetGpuLockedClocks(device, core, core)
        if memory is not None and memory != library.nvmlDeviceGetClockInfo(device, library.NVML_CLOCK_MEM):
            library.nvmlDeviceSetMemoryLockedClocks(device, memory, memory)
        return
    except (library.NVMLError, AttributeError) as err:
        if getattr(err, "value", None) == getattr(library, "NVML_ERROR_NO_PERMISSION", object()):
            raise _refused(core, memory, err) from err
    try:
        in_force = memory
        if memory is None:
            in_force = library.nvmlDeviceGetClockInfo(device, library.NVML_CLOCK_MEM)
        library.nvmlDeviceSetApplicationsClocks(device, in_force, core)
    except (library.NVMLError, AttributeError) as err:
        raise _refused(core, memory, err) from err


def label(core: int, memory: int | None) -> str:
    """A setting of clocks in words: "1500/2600", or "1500" where that of memory is left alone."""
    return "/".join(str(mhz) for mhz in (core, memory) if mhz is not None)


def _refused(core: int, memory: int | None, err: Any) -> CollectError:
    return CollectError(
        f"The clocks cannot be set to {label(core, memory)} MHz ({err}). It needs root (or `sudo nvidia-smi -acp 0` on "
        "GPUs with application clocks); leave --settings out to calibrate at the setting in force."
    )
