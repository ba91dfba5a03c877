"""What is asked of a GPU's driver: for how long its units were busy."""

from types import SimpleNamespace

import pytest

from eprof.collect import nvml


class _Library(SimpleNamespace):
    """NVML with two metrics for each sample, in per cent."""

    NVMLError, NVML_SUCCESS, NVML_GPM_METRICS_GET_VERSION, NVML_CLOCK_SM = RuntimeError, 0, 1, 1
    taken = 0

    def nvmlGpmSampleAlloc(self):
        return object()

    def nvmlGpmSampleGet(self, handle, sample):
        self.taken += 1
        return sample

    def nvmlGpmMetricsGet(self, asked):
        for metric in asked.metrics[: asked.numMetrics]:
            metric.value, metric.nvmlReturn = 10.0 * self.taken, 0
        return asked

    def c_nvmlGpmMetricsGet_t(self):
        return SimpleNamespace(metrics=[SimpleNamespace() for _ in range(100)])

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return 1500

    def __getattr__(self, name):
        if name.startswith("NVML_GPM_METRIC_"):
            return 7
        raise AttributeError(name)


def test_all_units_of_a_board_tell_of_one_sample():
    library = _Library()
    *units, clock = nvml.SampledBoard(library, "handle", 0).components()
    assert [part.read() for part in units] == [0.2] * len(units) and clock.read() == 1500
    assert [part.read() for part in units] == [pytest.approx(0.3)] * len(units) and library.taken == 3
