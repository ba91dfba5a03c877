"""Meters: energy from counters that step and from sampled power, Jetson rails, RAPL, NVML; and the plan."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_support import STAND_INS

from eprof import costs
from eprof.collect import nvml, sensors
from eprof.collect.meter import Meter, Sample, Source, counted_energy, integrated
from eprof.collect.nvml import visible
from eprof.counts import definition_files
from eprof.profile.planned_counters import plan


@given(st.floats(10, 400), st.floats(0.02, 0.2), st.floats(3.0, 8.0), st.floats(0, 0.1))
def test_a_counter_that_steps_gives_the_power_it_counts(watts, step_s, end_s, offset_s):
    """Read every 20 ms, it moves every `step_s`: the error stays below two updates of the window."""
    times = [0.02 * i for i in range(int(end_s / 0.02) + 1)]
    samples = [Sample(t, energy_j=watts * step_s * int((t + offset_s) / step_s)) for t in times]
    found = counted_energy(samples, end_s)
    assert found == pytest.approx(watts * end_s, rel=max(2 * (0.02 + 1e-6) / (end_s - 2 * step_s), 1e-9) + 1e-6)


def test_a_counter_that_hardly_moved_says_nothing():
    assert counted_energy([Sample(0.0, energy_j=5.0), Sample(1.0, energy_j=5.0)], 1.0) is None
    assert counted_energy([Sample(0.0, energy_j=5.0), Sample(1.0, energy_j=7.0)], 1.0) is None
    assert integrated([Sample(0.0, power_w=5.0)], 1.0) is None


def test_sampled_power_is_integrated_by_trapezoids():
    samples = [Sample(0.0, power_w=0.0), Sample(1.0, power_w=100.0), Sample(3.0, power_w=100.0)]
    assert integrated(samples, 3.0) == pytest.approx(50 + 200)


class Faulty(Source):
    """A sensor that cannot be read every other time."""

    name, covers, period_s = "faulty", "nothing", 0.005

    def __init__(self, error=OSError):
        self.calls = 0
        self.error = error

    def read(self, time_s):
        self.calls += 1
        if self.calls % 2:
            raise self.error("not now")
        return Sample(time_s, power_w=10.0)


@pytest.mark.parametrize("error", [OSError, RuntimeError, ValueError])
def test_readings_that_fail_are_left_out_and_counted(tmp_path, error):
    one = Meter(Faulty(error))
    with one.sampling(tmp_path / "power.csv"):
        while one.source.calls < 6:
            time.sleep(0.005)
        one.mark(1)
    result = one.result()
    assert result["lost_samples"] > 0
    assert result["joules"] == pytest.approx(10 * result["window_s"])
    assert len((tmp_path / "power.csv").read_text().splitlines()) == result["samples"] + 1


@pytest.mark.parametrize("label", ["VDD_IN", "POM_5V_IN", "System 5V", "Total"])
def test_jetson_rails_are_chosen_by_label(tmp_path, label):
    old = tmp_path / "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    old.mkdir(parents=True)
    for number, (name, milliwatts) in enumerate([("VDD_GPU", 900), (label, 5200), ("VDD_CPU", 800)]):
        (old / f"rail_name_{number}").write_text(name + "\n")
        (old / f"in_power{number}_input").write_text(f"{milliwatts}\n")
    source, _ = sensors.find_jetson(tmp_path)
    assert source.covers == f"rail {label}"
    assert source.read(0.0).power_w == pytest.approx(5.2)


def test_jetson_rails_of_newer_kernels_and_clocks(tmp_path):
    new = tmp_path / "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon4"
    new.mkdir(parents=True)
    for name, text in (
        ("in1_label", "VDD_GPU_SOC"),
        ("in1_input", "19000"),
        ("curr1_input", "200"),
        ("in2_label", "lonely"),
    ):
        (new / name).write_text(text + "\n")
    for name, hertz in (("gbus", 852_000_000), ("emc", 924_000_000)):
        clock = tmp_path / f"sys/kernel/debug/clock/{name}"
        clock.mkdir(parents=True)
        (clock / "rate").write_text(f"{hertz}\n")
    source, _ = sensors.find_jetson(tmp_path)
    sample = source.read(1.0)
    assert (sample.power_w, sample.core_mhz, sample.memory_mhz) == (pytest.approx(3.8), 852, 924)
    assert sensors.find_jetson(tmp_path / "empty")[0] is None


def test_rapl_counters_wrap(tmp_path):
    for number, start in ((0, 990_000), (1, 0)):
        package = tmp_path / f"sys/class/powercap/intel-rapl:{number}"
        package.mkdir(parents=True)
        (package / "energy_uj").write_text(f"{start}\n")
        (package / "max_energy_range_uj").write_text("1000000\n")
    (tmp_path / "sys/class/powercap/intel-rapl:0:0").mkdir()
    source, _ = sensors.find_rapl(tmp_path)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("10000\n")
    (tmp_path / "sys/class/powercap/intel-rapl:1/energy_uj").write_text("500000\n")
    assert source.read(0.0).energy_j == pytest.approx(0.02 + 0.5)
    found, why = sensors.find_rapl(tmp_path / "none")
    assert found is None
    assert why.startswith("RAPL: none here (virtual machines")


def test_rapl_adds_the_memory_to_its_packages_but_not_the_platform_or_the_cores(tmp_path):
    """`psys` and `core` hold joules that are in a package already, or that are of the board."""
    zones = {"intel-rapl:0": "package-0", "intel-rapl:1": "psys", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram"}
    for zone, name in zones.items():
        folder = tmp_path / "sys/class/powercap" / zone
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text("0\n")
        (folder / "max_energy_range_uj").write_text("262143328850\n")
    source, _ = sensors.find_rapl(tmp_path)
    for number, zone in enumerate(zones):
        (tmp_path / "sys/class/powercap" / zone / "energy_uj").write_text(f"{10**number * 1_000_000}\n")
    assert source.read(0.0).energy_j == pytest.approx(1 + 1000)
    assert source.describe()["covers"] == "processor packages with their memory, and no GPU"


@pytest.fixture
def stand_in(monkeypatch):
    """NVIDIA's package, stood in for by a module of the same name on the path."""
    monkeypatch.syspath_prepend(str(STAND_INS))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    yield monkeypatch
    sys.modules.pop("pynvml", None)


def test_nvml_reads_all_that_the_gpu_tells(stand_in):
    stand_in.setenv("STAND_IN_NVML", "capped")
    source, why = nvml.find()
    assert why == ""
    sample = source.read(0.5)
    assert (sample.power_w, sample.core_mhz, sample.memory_mhz, sample.temperature_c) == (100.0, 1380, 877, 41)
    assert sample.energy_j is not None
    assert sample.slowed_by == ("software power cap",)
    assert source.describe()["method"] == "energy counter"


def test_nvml_without_an_energy_counter_samples_power(stand_in):
    stand_in.setenv("STAND_IN_NVML", "old")
    source, _ = nvml.find()
    assert source.read(0.0).energy_j is None
    assert source.describe()["method"] == "sampled power"


def test_nvml_without_a_driver_says_so(stand_in):
    stand_in.setenv("STAND_IN_NVML", "broken")
    assert "Driver Not Loaded" in nvml.find()[1]


@pytest.mark.parametrize(
    ("asked", "watts", "covers"),
    [
        (None, 400.0, "4 GPU boards with their memory, those that idle too"),
        ("2", 100.0, "the GPU board with its memory"),
        ("GPU-3af8,1", 200.0, "2 GPU boards"),
        ("0,2,9,3", 200.0, "2 GPU boards"),  # what stands behind a board that is none is not seen
        ("MIG-1af8", 400.0, "a part of a board"),
    ],
)
def test_only_the_boards_that_the_program_sees_are_measured(stand_in, asked, watts, covers):
    stand_in.setenv("STAND_IN_BOARDS", "4")
    stand_in.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if asked is not None:
        stand_in.setenv("CUDA_VISIBLE_DEVICES", asked)
    source, _ = nvml.find()
    assert source.read(0.0).power_w == watts
    assert covers in source.covers
    assert len(source.describe()["devices"]) == watts / 100


def test_a_program_that_sees_no_board_has_no_meter(stand_in):
    stand_in.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert nvml.find() == (None, "NVML: CUDA_VISIBLE_DEVICES=-1 leaves no board visible")


def test_places_of_boards_of_several_kinds_need_their_order():
    uuids, names = ["GPU-a", "GPU-b"], ["Tesla V100", "Tesla K20c"]
    assert visible({"CUDA_VISIBLE_DEVICES": "1"}, uuids, names)[0] == [0, 1]
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in visible({"CUDA_VISIBLE_DEVICES": "1"}, uuids, names)[1]
    ordered = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert visible(ordered, uuids, names) == ([1], "")
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-b"}, uuids, names) == ([1], "")
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-b"}, ["", "GPU-b"], names)[0] == [0, 1]


def test_a_board_that_does_not_tell_its_uuid_is_measured_all_the_same(stand_in):
    stand_in.setenv("STAND_IN_NVML", "nameless")
    assert nvml.find()[0].read(0.0).power_w == 100.0


def test_the_host_is_measured_only_when_asked(monkeypatch):
    _, reasons = sensors.find_meter()
    assert not any("RAPL" in one for one in reasons)


# ---------------------------------------------------------------------------------------------------------- plan


@pytest.mark.parametrize(
    "definition", [one for one in definition_files.definitions() if one.profiler == "nvprof"], ids=lambda one: one.name
)
@pytest.mark.parametrize("table", ["jetson-tk1", "gtx680", None])
def test_what_is_planned_prices_what_can_be_counted(definition, table):
    priced = costs.load(table).at() if table else None
    found = plan(definition, priced)
    assert set(found.counters) <= definition.profiler_names
    assert all(found.why(name) for name in found.counters)
    reasons = {word for word in found.missing}
    assert not reasons - (set(definition.uncountable) | {"fp16", "fp32", "fp64"})


def test_the_plan_takes_what_is_offered_and_tells_what_is_not():
    definition = definition_files.named("3.5")
    priced = costs.load("jetson-tk1").at()
    everything = plan(definition, priced, definition.profiler_names)
    old_names = {name.replace("flop_count", "flops") for name in definition.profiler_names}
    assert "flops_dp_fma" in plan(definition, priced, old_names).counters
    less = plan(definition, priced, set(everything.counters) - {"inst_integer"})
    assert set(less.missing) == {"integer"}
    assert "inst_integer" in less.missing["integer"]
    assert "inst_control" not in everything.counters  # the table says that it pays nothing


def test_nothing_offered_means_all_is_missing():
    found = plan(definition_files.named("3.5"), costs.load("jetson-tk1").at(), set())
    assert not found.counters
    assert "fp64_fma" in found.missing
