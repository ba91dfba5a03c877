"""A stand-in for nvidia-ml-py with the GPU of stub_cuda.c: 150 W, a counter that steps every millisecond, clocks not to set."""

import time

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
NVML_ERROR_NO_PERMISSION = 4
_BUS = b"0000:0A:00.0"


class NVMLError(Exception):
    """As the real one."""

    def __init__(self, value):
        super().__init__({4: "Insufficient Permissions"}.get(value, "Not Found"))
        self.value = value


def nvmlInit():
    """Nothing to start."""


def nvmlDeviceGetHandleByPciBusId(bus):
    if bus != _BUS:
        raise NVMLError(6)
    return "board"


def nvmlDeviceGetPowerUsage(_):
    return 150_000


def nvmlDeviceGetTotalEnergyConsumption(_):
    return int(time.monotonic() * 1000) * 150


def nvmlDeviceGetClockInfo(_, which):
    return 1500 if which == NVML_CLOCK_SM else 1000


def nvmlDeviceGetTemperature(_, which):
    return 55 + which


def nvmlDeviceGetCurrentClocksThrottleReasons(_):
    return 0


def nvmlDeviceGetName(_):
    return "Stub"


def nvmlSystemGetDriverVersion():
    return "1.2"


def nvmlDeviceGetSupportedMemoryClocks(_):
    return [1000]


def nvmlDeviceGetSupportedGraphicsClocks(_, memory):
    if memory != 1000:
        raise NVMLError(6)
    return [1500, 1200]


def nvmlDeviceSetGpuLockedClocks(_, least, most):
    assert least == most
    raise NVMLError(NVML_ERROR_NO_PERMISSION)
