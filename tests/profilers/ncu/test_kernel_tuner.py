"""Kernel Tuner: which counters it is to observe, and the joules of its results."""

import json
import sys
import types

import pytest

import eprof
from eprof import EprofError, costs

# A kernel of 1,000 fused multiply-adds and 1 MB read from DRAM, in 0.5 ms.
FFMA, READ = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "dram__bytes_read.sum"
TIME_MS = 0.5


@pytest.fixture
def energy():
    return eprof.kernel_tuner("v100")


def result(energy, **more):
    counted = dict.fromkeys(energy.counters, 0.0) | {READ: 1e6, FFMA: 1e9}
    return counted | {"time": TIME_MS, "block_size_x": 128} | more


def test_joules_are_counts_times_prices_and_power_times_time(energy):
    table = costs.load("v100").at(None)
    joules = energy.price(result(energy))
    data = 1e6 * table.charges["dram_read"].pj * 1e-12
    assert joules["constant_j"] == pytest.approx(table.constant_power_w * TIME_MS * 1e-3)
    assert joules["data_j"] == pytest.approx(data)
    assert joules["computation_j"] == pytest.approx(1e9 * table.charges["fp32_fma"].pj * 1e-12)
    assert joules["total_j"] == pytest.approx(sum(joules[f"{part}_j"] for part in ("computation", "data", "constant")))


def test_metrics_are_the_parts_of_the_price(energy):
    wanted = energy.price(result(energy))
    got = {name: metric(result(energy)) for name, metric in energy.metrics.items()}
    assert got == {
        f"{name}_j": wanted[f"{part}_j"]
        for name, part in [("energy", "total")] + [(p, p) for p in ("computation", "data", "constant")]
    }
    # Another result is priced anew.
    metric = energy.metrics["constant_j"]
    assert metric(result(energy, time=1.0)) == pytest.approx(2 * metric(result(energy)))


def test_counters_are_names_that_nvmetrics_takes(energy):
    assert READ in energy.counters and not any(set("*[") & set(name) for name in energy.counters)
    assert energy.missing == []
    with pytest.warns(UserWarning, match="Tensor FP64"):
        assert "Tensor FP16" in eprof.kernel_tuner("a100").missing
    assert len(repr(energy)) < 80


@pytest.mark.parametrize("lacking", [READ, "time"])
def test_a_result_without_a_number_is_refused(energy, lacking):
    given = result(energy)
    del given[lacking]
    with pytest.raises(EprofError, match=lacking):
        energy.price(given)
    with pytest.raises(EprofError, match=lacking):
        energy.metrics["energy_j"](given | {lacking: "RuntimeFailedConfig"})


def test_tuned_clocks_choose_the_setting_or_are_refused(energy):
    with pytest.raises(EprofError, match="405"):
        energy.price(result(energy, nvml_gr_clock=405))
    default = costs.load("v100").default
    assert energy.price(result(energy, nvml_gr_clock=default.core_mhz)) == energy.price(result(energy))


@pytest.mark.parametrize(("table", "gpu", "words"), [("gtx980", None, "5.2"), ("a100", "Some GPU", "not known")])
def test_gpus_without_such_counters_are_refused(table, gpu, words):
    with pytest.raises(EprofError, match=words):
        eprof.kernel_tuner(table, gpu=gpu)


# ------------------------------------------------------------------------------------------ with the package itself


@pytest.fixture
def package(monkeypatch):
    """Kernel Tuner, with a stand-in for nvmetrics, which needs a GPU."""
    nvmetrics = types.ModuleType("nvmetrics")
    nvmetrics.started = []
    nvmetrics.measureMetricsStart = lambda metrics, device: nvmetrics.started.append((tuple(metrics), device))
    nvmetrics.measureMetricsStop = lambda: [1e6 if name == READ else 0.0 for name in nvmetrics.started[-1][0]]
    monkeypatch.setitem(sys.modules, "nvmetrics", nvmetrics)
    package = pytest.importorskip("kernel_tuner")
    from kernel_tuner.observers import ncu

    monkeypatch.setattr(ncu, "nvmetrics", nvmetrics)
    return package


def test_the_observer_is_one_of_kernel_tuner(package, energy):
    from kernel_tuner.observers import PrologueObserver

    observer = energy.observer(device=1)
    assert isinstance(observer, PrologueObserver)
    observer.before_start()
    observer.after_finish()
    results = observer.get_results()
    assert results[READ] == 1e6 and energy.metrics["data_j"](results | {"time": TIME_MS}) > 0
    assert sys.modules["nvmetrics"].started == [(tuple(energy.counters), 1)]


def test_kernel_tuner_tunes_for_joules(package, energy, tmp_path):
    """Its simulation mode replays a cache: the quickest configuration reads most, and is not the one of least energy."""
    space = {"32": (1.0, 1e9), "64": (0.9, 40e9), "128": (2.0, 1e9)}
    records = {
        block: result(energy, time=time, **{READ: read})
        | {"block_size_x": int(block), "times": [time], "compile_time": 1.0, "verification_time": 0}
        | {"benchmark_time": 1.0, "strategy_time": 0, "framework_time": 1.0, "timestamp": "2026-11-23 00:00:00+00:00"}
        for block, (time, read) in space.items()
    }
    cache = {
        "device_name": "Tesla V100", "kernel_name": "k", "problem_size": 1, "tune_params_keys": ["block_size_x"],
        "tune_params": {"block_size_x": [32, 64, 128]}, "objective": "energy_j", "cache": records,
    }  # fmt: skip
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(cache))
    results, _ = package.tune_kernel(
        "k", "", 1, [], cache["tune_params"], cache=str(path), simulation_mode=True, metrics=energy.metrics,
        objective="energy_j", objective_higher_is_better=False, verbose=False, quiet=True,
    )  # fmt: skip
    by_block = {tuned["block_size_x"]: tuned for tuned in results}
    assert set(by_block) == {32, 64, 128}
    assert all(tuned["energy_j"] == energy.price(tuned)["total_j"] for tuned in results)
    assert min(results, key=lambda tuned: tuned["energy_j"])["block_size_x"] == 32
    assert min(results, key=lambda tuned: tuned["time"])["block_size_x"] == 64
