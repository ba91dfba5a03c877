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


# NVML's GPM: the share of time in which units were busy, in percent, between two samples.
NVML_SUCCESS, NVML_GPM_METRICS_GET_VERSION = 0, 1
NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL = 1, 2, 5
NVML_GPM_METRIC_DRAM_BW_UTIL, NVML_GPM_METRIC_FP64_UTIL, NVML_GPM_METRIC_FP32_UTIL, NVML_GPM_METRIC_FP16_UTIL = (
    10,
    11,
    12,
    13,
)
_BUSY = {1: 100.0, 2: 50.0, 5: 0.0, 10: 25.0, 11: 0.0, 12: 12.5}


class _Answer:
    isSupportedDevice = 1
    metricId, value, nvmlReturn = 0, 0.0, 3


class c_nvmlGpmMetricsGet_t:
    def __init__(self):
        self.metrics = [_Answer() for _ in range(16)]


def nvmlGpmQueryDeviceSupport(_):
    if os.environ.get("STAND_IN_NVML") != "hopper":
        raise NVMLError("Not Supported")
    return _Answer()


def nvmlGpmSampleAlloc():
    return []


def nvmlGpmSampleGet(_, sample):
    sample[:] = [time.monotonic()]
    return sample


def nvmlGpmMetricsGet(asked):
    if not asked.sample1 or not asked.sample2[0] > asked.sample1[0] or asked.version != 1:
        raise NVMLError("Invalid Argument")
    for metric in asked.metrics[: asked.numMetrics]:
        if metric.metricId in _BUSY:
            metric.value, metric.nvmlReturn = _BUSY[metric.metricId], NVML_SUCCESS
    return asked
