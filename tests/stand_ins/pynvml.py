"""A stand-in for NVIDIA's nvidia-ml-py on a GPU that draws 100 W: its counter moves on every 20 ms."""

import os
import time

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
_BEGAN = time.monotonic()


class NVMLError(Exception):
    """As the real one."""


def nvmlInit():
    if os.environ.get("STAND_IN_NVML") == "broken":
        raise NVMLError("Driver Not Loaded")


def nvmlSystemGetDriverVersion():
    return b"550.54.15"


def nvmlDeviceGetCount():
    return int(os.environ.get("STAND_IN_BOARDS", "1"))


def nvmlDeviceGetUUID(index):
    if os.environ.get("STAND_IN_NVML") == "nameless":
        raise NVMLError("Not Supported")
    return f"GPU-{index}af8c9b2-0000-4000-8000-000000000000"


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetName(_):
    return "Tesla V100"


def nvmlDeviceGetEnforcedPowerLimit(_):
    return 250_000


def nvmlDeviceGetPowerUsage(_):
    return 100_000


def nvmlDeviceGetTotalEnergyConsumption(_):
    if os.environ.get("STAND_IN_NVML") == "old":
        raise NVMLError("Not Supported")
    return int((time.monotonic() - _BEGAN) / 0.02) * 2000


def nvmlDeviceGetClockInfo(_, which):
    return 1380 if which == NVML_CLOCK_SM else 877


def nvmlDeviceGetTemperature(*_):
    return 41


def nvmlDeviceGetCurrentClocksThrottleReasons(_):
    return 0x4 if os.environ.get("STAND_IN_NVML") == "capped" else 0
