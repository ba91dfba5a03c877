"""`eprof doctor`: every problem with the command that mends it, in words and as JSON."""

import errno
import json
import os

import pytest
import warm

from eprof import profilers
from eprof.collect import machine
from eprof.commands.doctor import command


def examine(bench, *options, **env):
    return warm.run(("doctor", *options), bench.folder, bench.environment(**env))


def checks(bench, **env):
    done = examine(bench, "--format", "json", **env)
    document = json.loads(done.stdout)
    assert document["schema"] == "eprof.doctor/1"
    assert all(set(one) == {"name", "ok", "detail", "remedy"} for one in document["checks"])
    return done.returncode, {one["name"]: one for one in document["checks"]}


def test_a_laptop_with_the_simulated_device(simulated):
    code, found = checks(simulated)
    assert code == 0
    assert found["simulated device (oclgrind)"]["ok"]
    assert found["eprof run"]["detail"].startswith("uses oclgrind")
    assert found["profiler nvprof"]["ok"] is None  # not missed where there is no GPU
    assert "ok    eprof run: uses oclgrind" in examine(simulated).stdout


def test_a_kepler_board_without_the_meters_package(bench):
    bench.nvprof()
    code, found = checks(bench)
    assert code == 0
    assert found["profiler nvprof"]["ok"]
    assert "11.8.87" in found["profiler nvprof"]["detail"]
    assert found["GPU"]["detail"] == "Tesla K20c (capability 3.5)"
    assert found["cost table"]["ok"] is False
    assert "--costs" in found["cost table"]["remedy"]
    assert found["clocks"]["detail"].startswith("core 705 MHz of at most 758, memory 2600 of 2600")
    assert found["clocks"]["remedy"] == "sudo nvidia-smi -pm 1 && sudo nvidia-smi -ac 2600,758"
    meter = found["power meter"]  # there is a GPU: either the package is missing, or it finds no driver here
    assert meter["remedy"] == "pip install nvidia-ml-py" or "NVML: cannot be used" in meter["detail"]
    ncu = found["profiler ncu"]
    assert (ncu["ok"], ncu["remedy"]) == (None, None)  # it does not count on Kepler
    assert "not needed" in ncu["detail"]


def test_a_hopper_board_misses_no_nvprof(bench):
    bench.ncu()
    code, found = checks(bench)
    assert code == 0
    assert found["profiler ncu"]["ok"]
    assert found["profiler nvprof"]["ok"] is None
    assert "it does not count on NVIDIA H100 80GB HBM3 (capability 9.0)" in found["profiler nvprof"]["detail"]
    assert "-lgc 758" in found["clocks"]["remedy"]


def test_a_gpu_without_its_profiler_says_how_to_install_it(bench):
    bench.tool("nvidia-smi", "nvidia_smi.py")
    bench.more["STAND_IN_GPU"] = "NVIDIA A100, 8.0"
    found = checks(bench)[1]
    assert found["profiler ncu"]["ok"] is False
    assert "nsight-compute" in found["profiler ncu"]["remedy"]


@pytest.mark.parametrize(("installed", "ok"), [(True, True), (False, False)])
def test_a_gpu_without_the_cuda_library(tmp_path, monkeypatch, installed, ok):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    monkeypatch.setattr("eprof.collect.machine._CUDA_LIBRARIES", ("libc.so.6",) if installed else ("libnone.so.1",))
    found = {one.name: one for one in command.examine(profilers.collectors(), tmp_path)}["CUDA library"]
    assert found.ok is ok
    assert ("NVIDIA_DRIVER_CAPABILITIES=compute" in (found.remedy or "")) is not ok


def test_a_meter_is_named_with_what_it_covers(bench):
    bench.nvprof()
    bench.meter()
    assert checks(bench)[1]["power meter"]["detail"].startswith("NVML: energy counter")


@pytest.mark.parametrize(("value", "ok"), [("1", False), ("0", True), (None, None)])
def test_whose_switch_the_counter_permission_is(tmp_path, value, ok, monkeypatch):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    driver = tmp_path / "proc/driver/nvidia"
    driver.mkdir(parents=True)
    (driver / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\nGCC version: 12\n")
    if value is not None:
        (driver / "params").write_text(f"EnableMSI: 1\nRmProfilingAdminOnly: {value}\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = {one.name: one for one in command.examine(profilers.collectors(), tmp_path)}
    assert found["counter permission"].ok is ok
    assert found["driver"].detail == "NVIDIA UNIX x86_64 Kernel Module  550.54.15"
    if ok is False:
        assert "ERR_NVGPUCTRPERM" in found["counter permission"].detail
        assert "NVreg_RestrictProfilingToAdminUsers=0" in found["counter permission"].remedy


@pytest.mark.parametrize(("number", "there"), [(errno.ENXIO, False), (errno.ENODEV, False), (errno.EPERM, True)])
def test_a_device_file_without_a_driver_is_no_gpu(tmp_path, monkeypatch, number, there):
    """NVIDIA's libraries make /dev/nvidiactl when root runs them, where there is no driver too (nvidia-smi 535.261)."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    assert machine.has_nvidia_device(tmp_path)

    def refused(path, flags, *_):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("os.open", refused)
    assert machine.has_nvidia_device(tmp_path) is there


def test_a_jetson_board(tmp_path):
    rail = tmp_path / "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    rail.mkdir(parents=True)
    (rail / "rail_name_0").write_text("VDD_IN\n")
    (rail / "in_power0_input").write_text("5000\n")
    found = {one.name: one for one in command.examine(profilers.collectors(), tmp_path)}
    assert found["clocks"].remedy == "sudo jetson_clocks"


def test_a_simulator_of_clusters_that_is_not_installed_has_its_command(monkeypatch):
    simgrid = pytest.importorskip("eprof.profilers.simgrid.collector")
    monkeypatch.setattr(simgrid, "executable", lambda *_: None)
    found = {check.name: check for check in command.examine([simgrid.COLLECTOR])}
    cluster = found["simulated cluster (simgrid)"]
    assert (cluster.ok, cluster.remedy) == (None, "apt install libsimgrid-dev")
