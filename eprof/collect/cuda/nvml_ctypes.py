"""NVML through ctypes, for machines without the package nvidia-ml-py: the few calls that a calibration makes.

The library (libnvidia-ml.so.1) comes with the driver. Names are those of pynvml: `meters.nvml.Nvml` takes either.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96
_MOST_CLOCKS = 512


class NVMLError(Exception):
    """A call was refused: `value` is NVML's number."""

    def __init__(self, value: int, text: str) -> None:
        super().__init__(text or f"error {value}")
        self.value = value


class Library:
    """The library, initialised. Raises OSError if there is none, NVMLError if it cannot be used."""

    NVMLError = NVMLError
    NVML_ERROR_NO_PERMISSION = 4
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_LIBRARY)
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self._call("nvmlInit_v2")

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            code = self._library[name](*arguments)
        except AttributeError as err:
            raise NVMLError(13, f"this driver has no {name}") from err
        if code:
            raise NVMLError(code, (self._library.nvmlErrorString(code) or b"").decode(errors="replace"))

    def _number(self, name: str, kind: Any, *arguments: Any) -> int:
        value = kind()
        self._call(name, *arguments, ctypes.byref(value))
        return int(value.value)

    def _text(self, name: str, *arguments: Any) -> str:
        text = ctypes.create_string_buffer(_TEXT)
        self._call(name, *arguments, text, _TEXT)
        return text.value.decode(errors="replace")

    def _clocks(self, name: str, *arguments: Any) -> Sequence[int]:
        count = ctypes.c_uint(_MOST_CLOCKS)
        clocks = (ctypes.c_uint * _MOST_CLOCKS)()
        self._call(name, *arguments, ctypes.byref(count), clocks)
        return list(clocks[: count.value])

    def nvmlDeviceGetHandleByPciBusId(self, bus: bytes) -> Any:  # noqa: N802, D102
        device = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByPciBusId_v2", bus, ctypes.byref(device))
        return device

    def nvmlDeviceGetPowerUsage(self, device: Any) -> int:  # noqa: N802, D102
        return self._number("nvmlDeviceGetPowerUsage", ctypes.c_uint, device)

    def nvmlDeviceGetTotalEnergyConsumption(self, device: Any) -> int:  # noqa: N802, D102
        return self._number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong, device)

    def nvmlDeviceGetClockInfo(self, device: Any, which: int) -> int:  # noqa: N802, D102
        return self._number("nvmlDeviceGetClockInfo", ctypes.c_uint, device, which)

    def nvmlDeviceGetTemperature(self, device: Any, which: int) -> int:  # noqa: N802, D102
        return self._number("nvmlDeviceGetTemperature", ctypes.c_uint, device, which)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: Any) -> int:  # noqa: N802, D102
        return self._number("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong, device)

    def nvmlDeviceGetName(self, device: Any) -> str:  # noqa: N802, D102
        return self._text("nvmlDeviceGetName", device)

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802, D102
        return self._text("nvmlSystemGetDriverVersion")

    def nvmlDeviceGetSupportedMemoryClocks(self, device: Any) -> Sequence[int]:  # noqa: N802, D102
        return self._clocks("nvmlDeviceGetSupportedMemoryClocks", device)

    def nvmlDeviceGetSupportedGraphicsClocks(self, device: Any, memory: int) -> Sequence[int]:  # noqa: N802, D102
        return self._clocks("nvmlDeviceGetSupportedGraphicsClocks", device, memory)

    def nvmlDeviceSetGpuLockedClocks(self, device: Any, least: int, most: int) -> None:  # noqa: N802, D102
        self._call("nvmlDeviceSetGpuLockedClocks", device, least, most)

    def nvmlDeviceSetMemoryLockedClocks(self, device: Any, least: int, most: int) -> None:  # noqa: N802, D102
        self._call("nvmlDeviceSetMemoryLockedClocks", device, least, most)

    def nvmlDeviceSetApplicationsClocks(self, device: Any, memory: int, core: int) -> None:  # noqa: N802, D102
        self._call("nvmlDeviceSetApplicationsClocks", device, memory, core)

    def nvmlDeviceResetGpuLockedClocks(self, device: Any) -> None:  # noqa: N802, D102
        self._call("nvmlDeviceResetGpuLockedClocks", device)

    def nvmlDeviceResetMemoryLockedClocks(self, device: Any) -> None:  # noqa: N802, D102
        self._call("nvmlDeviceResetMemoryLockedClocks", device)

    def nvmlDeviceResetApplicationsClocks(self, device: Any) -> None:  # noqa: N802, D102
        self._call("nvmlDeviceResetApplicationsClocks", device)


def load() -> tuple[Library | None, str]:
    """The library, or None and why."""
    try:
        return Library(), ""
    except OSError:
        return None, f"the driver's {_LIBRARY} is not there either"
    except NVMLError as err:
        return None, f"NVML cannot be used ({err})"
