"""Calibration by OpenCL and by a meter's log. The prices here are a test's, made up: no hardware has them."""

import json
import sys
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pandas as pd
import pytest
from standin_gpu import CONSTANT_W, DEVICE, EPOCH_S, PRICES, StandIn, Time, hands, write_log

from eprof import cli, costs
from eprof.base.errors import CollectError, LogError
from eprof.collect import sensors
from eprof.collect.meter import Meter, Nothing
from eprof.commands.calibrate import device, results, table
from eprof.commands.calibrate import manifest as manifests
from eprof.commands.calibrate.device import Compiled, DriverError, Launch, OpenClGpu, choose_opencl
from eprof.commands.calibrate.results import MeterLog
from eprof.commands.calibrate.session import Request, Session, on_opencl
from eprof.lab import measurements
from eprof.lab.fitting.solve import form_for

MANIFEST = manifests.load()
OTHER = {
    **DEVICE,
    "processor": "opencl",
    "name": "gfx0",
    "capability": "7.0",
    "is_rated": False,
    "opencl": "OpenCL 2.0",
}
OTHER |= {"core_khz": None, "memory_khz": None, "most_mhz": 1700, "has_shared": True}
OF_CUDA = {"fp16_fma", "fp16_add", "fp16_mul", "tensor", "sleep"}
KERNELS = frozenset(benchmark.kernel for benchmark in MANIFEST.benchmarks) - OF_CUDA
FP64 = {kernel for kernel in KERNELS if "fp64" in kernel}
TOLD = {"l2": 9e12}  # B/s, so that L2 is faster than memory, and slower than L1


def session(tmp_path, kernels=KERNELS, rates=TOLD, log=None, only=(), run=None, **more):
    """A calibration of a stand-in by OpenCL without clocks; its power is in a log that is written when it has run."""
    gpu = StandIn(Time(), OTHER, rates=rates, **more)
    meter = SimpleNamespace(sampling=Meter(Nothing()).sampling, mark=lambda runs: None, result=lambda: {"joules": None})
    hand = hands(gpu, meter)
    hand = hand._replace(
        processor="opencl",
        manifest=on_opencl("").manifest,
        compile=lambda source, capability, target: Compiled(source, "nothing", kernels),
    )
    said = []
    log = log or MeterLog(tmp_path / "power.csv")
    request = Request(tmp_path / "kept", timing=manifests.Timing(rounds=1), log=log, only=only, resume=True)
    made = Session(request, said.append, run(hand) if run else hand)
    made.prepare()
    made.measure()
    return made, gpu, said


def test_known_prices_come_back_and_what_cannot_be_told_apart_is_one_group(tmp_path, monkeypatch):
    """Without FP64, clocks, and an L2 that is faster than memory: the bytes of L2 are in the price of memory's."""
    pytest.importorskip("scipy")
    monkeypatch.setattr(table, "_REPLICAS", 4)
    made, gpu, _ = session(tmp_path, KERNELS - FP64, rates={})
    write_log(gpu, tmp_path / "power.csv")
    rows = made.rows()
    text = table.make(made, made.save(rows), rows, "mine")
    (tmp_path / "mine.toml").write_text(text.text)
    loaded, mistakes = costs.examine(str(tmp_path / "mine.toml"))
    assert mistakes == []
    left_out = {row.benchmark: row.reasons for row in rows if not row.used}
    assert set(left_out) == {"l2_read", "l2_write", "chase_l2", "l2_copy", "mix_l2_12"}
    assert "times the speed of read" in left_out["l2_read"][0]
    assert left_out["mix_l2_12"] == ("l2_read shows that this cache does not hold what is read from it",)
    priced = loaded.at(None)
    assert priced.constant_power_w == pytest.approx(CONSTANT_W, rel=1e-3)
    known = {
        word: PRICES[word.split("_")[0]]
        for word in ("fp32_mul", "integer", "special", "l1_read", "shared_write", "random")
    }
    known["dram_read"] = PRICES["l2"] + PRICES["dram"]
    assert {word: priced.charges[word].pj for word in known} == pytest.approx(known, rel=2e-3)
    assert not {"l2_read", "fp64_fma", "fp16_fma"} & set(priced.charges)
    assert priced.setting.core_mhz is None
    assert 'l2_read = { unpriced = "not told apart from bytes of dram, whose price has both" }' in text.text
    assert "power by the log power.csv" in loaded.source
    notes = " ".join(text.notes)
    assert "Bytes of l2 were not told apart from those of dram, whose price has both." in notes
    assert (
        "No meter tells the clocks at which this was measured; the driver says that it runs at up to 1700 MHz." in notes
    )
    assert (
        "Not measured, as the device or its driver does not have them: fp16_add, fp16_fma, fp16_mul, fp64_add" in notes
    )
    assert "sleep" in made.missing()[0]


def test_an_l2_that_is_faster_than_memory_is_told_apart(tmp_path):
    made, gpu, _ = session(tmp_path)
    write_log(gpu, tmp_path / "power.csv")
    rows = made.rows()
    assert all(row.used for row in rows)
    assert results.untold(rows, made.device) == {}
    kepler = {**made.device, "capability": "3.0"}
    beyond = [row for row in rows if "l1_read" not in row.counts and "l1_write" not in row.counts]
    assert results.untold(beyond, made.device) == {"l1": "l2"}
    assert results.untold(beyond, kepler) == {}, "its loads leave L1 out"
    columns = set(results.measurements(rows, made.device).columns)
    measured = measurements.read(made.save(rows))
    assert (measured.mapping, measured.is_clocked) == ("eprof-no-clocks", False)
    assert (form_for(measured).voltages, form_for(measured).prior) == ("one", None), "a prior is of known clocks"
    assert {"l2_read", "fp64_fma", "gpu"} <= columns and "core_mhz" not in columns


@pytest.mark.parametrize(
    ("name", "other", "is_same"),
    [("read", "l2_read", True), ("chase", "chase_l2", True), ("read", "read_stride_8", False), ("read", "copy", False)],
)
def test_levels_are_compared_by_the_same_work(name, other, is_same):
    works = [results._work(MANIFEST.named(benchmark)) for benchmark in (name, other)]
    assert (works[0] == works[1]) is is_same


def test_a_device_that_is_lost_leaves_what_was_measured_and_its_benchmark_is_not_to_blame(tmp_path):

    def lost(hand):
        begun = []

        def run(plan, log, timeout_s, tick=None):
            begun.append(plan)
            return hand.run(plan, log, timeout_s, tick) if len(begun) == 1 else "There is no GPU to calibrate."

        return hand._replace(run=run)

    only = ("light_warp", "integer", "read")
    first, _, said = session(tmp_path, only=only, run=lost, crash_at=("read",))
    assert said[-1] == "The device does not answer any more (There is no GPU to calibrate); what was measured is kept."
    second, gpu, _ = session(tmp_path, only=only)
    assert gpu.launched and "light_warp" not in gpu.launched
    assert second.missing() == []


def test_where_nothing_can_run_one_sentence_says_so(tmp_path):
    with pytest.raises(CollectError, match="nothing to measure. Not on this device, by what its driver has: tensor"):
        session(tmp_path, only=("tensor", "tensor_few"))


def test_a_loop_that_the_compiler_left_out_is_no_measurement(tmp_path):
    made, _, _ = session(tmp_path, only=("integer", "light_warp"), speed_of={"integer": 1e30})
    assert "the compiler left out what is measured" in made.missing()[0]
    zeros = {"name": "copy (zeros)", "blocks": 1, "block": 256, "iterations": 2, "time_s": 1e-3}
    assert made._rates(zeros)["dram"] == 2 * 64 * 512 / 1e-3


# ---- a meter's log


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("measured")
    made, gpu, _ = session(tmp_path)
    write_log(gpu, tmp_path / "right.csv")
    return gpu, made, powers(made, tmp_path / "right.csv", [])


def powers(made, path, said, component=""):
    events = results.read(made.events_file)
    read = results.with_power(events, MeterLog(path, component), made._rates, said.append)
    return [event["power_w"] for event in read if event["event"] == "measured"]


@pytest.mark.parametrize(
    ("ahead_s", "sentence"),
    [(12.0, "s ahead, by what its power would be"), (-40.0, "s behind, by what its power would be")],
)
def test_a_clock_that_is_off_is_found_by_what_the_counts_explain(measured, tmp_path, ahead_s, sentence):
    gpu, made, right = measured
    write_log(gpu, tmp_path / "power.csv", ahead_s=ahead_s)
    said = []
    assert powers(made, tmp_path / "power.csv", said) == pytest.approx(right, rel=1e-6)
    assert sentence in said[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ahead_s": 86400.0}, r"power.csv: has the power from .* UTC, but the benchmarks ran from"),
        ({"ahead_s": -EPOCH_S}, "its times are no dates, so nothing tells what ran when"),
        ({"names": ("gpu0_w", "gpu1_w")}, "say which of its components the device is, by --component: gpu0 and gpu1"),
        ({"names": ("cpu_w", "node_w")}, "say which of its components the device is, by --component: cpu and node"),
    ],
)
def test_a_log_that_cannot_be_used_is_one_sentence(measured, tmp_path, change, sentence):
    gpu, made, _ = measured
    write_log(gpu, tmp_path / "power.csv", **change)
    with pytest.raises(LogError, match=sentence):
        powers(made, tmp_path / "power.csv", [])


def test_the_component_is_the_one_that_is_named_or_the_only_gpu(measured, tmp_path):
    gpu, made, right = measured
    write_log(gpu, tmp_path / "power.csv", names=("cpu_w", "gpu0_w"))
    assert powers(made, tmp_path / "power.csv", []) == pytest.approx(right)
    assert powers(made, tmp_path / "power.csv", [], "cpu") == pytest.approx(right)
    with pytest.raises(LogError, match="has no component `board`; it has cpu and gpu0"):
        powers(made, tmp_path / "power.csv", [], "board")


def test_dates_without_a_zone_are_moved_by_hours(measured, tmp_path):
    gpu, made, right = measured
    write_log(gpu, tmp_path / "seconds.csv", ahead_s=7200.0)
    rows = [line.split(",") for line in (tmp_path / "seconds.csv").read_text().splitlines()[1:]]
    dates = [f"{datetime.fromtimestamp(float(time_s), UTC):%Y-%m-%d %H:%M:%S.%f},{watts}" for time_s, watts in rows]
    (tmp_path / "power.csv").write_text("\n".join(["timestamp,power_w", *dates]) + "\n")
    said = []
    assert powers(made, tmp_path / "power.csv", said) == pytest.approx(right)
    assert said == [f"{tmp_path / 'power.csv'}: its dates have no zone; moved by -2 h they meet the benchmarks."]


def test_too_few_samples_are_no_power_and_say_so(tmp_path):
    made, gpu, _ = session(tmp_path, only=("light_warp",))
    write_log(gpu, tmp_path / "power.csv", period_s=4.0)
    assert "sample" in made.rows()[0].reasons[0]
    assert "3 are needed in all of it (a longer --window" in made.rows()[0].reasons[0]


def test_an_early_log_keeps_what_was_measured(tmp_path):
    made, _, _ = session(tmp_path, only=("light_warp",))
    (tmp_path / "power.csv").write_text("time_s,power_w\n")
    with pytest.raises(LogError, match="What was measured is kept: --resume takes another log"):
        made.rows()


# ---- devices


def devices(*named):
    """OpenCL with these devices: name, whether it is a GPU, platform."""
    kinds = SimpleNamespace(GPU=4, ACCELERATOR=8)
    platforms = [
        SimpleNamespace(
            name=platform,
            get_devices=lambda name=name, is_gpu=is_gpu, platform=platform: [
                SimpleNamespace(name=name, type=4 if is_gpu else 2, platform=SimpleNamespace(name=platform))
            ],
        )
        for name, is_gpu, platform in named
    ]
    return SimpleNamespace(Error=RuntimeError, device_type=kinds, get_platforms=lambda: platforms)


THREE = (("gfx90a", True, "AMD"), ("EPYC", False, "pocl"), ("Oclgrind Simulator", True, "Oclgrind"))


@pytest.mark.parametrize(("wanted", "name"), [("", "gfx90a"), ("2", "Oclgrind Simulator"), ("POCL", "EPYC")])
def test_a_device_is_the_only_gpu_or_the_one_that_is_named(wanted, name):
    pytest.importorskip("pyopencl")
    assert choose_opencl(devices(*THREE), wanted).name == name


@pytest.mark.parametrize(
    ("known", "wanted", "sentence"),
    [
        (THREE[1:], "", "has no GPU here (processors and simulations are taken by name alone)"),
        (
            (THREE[0], THREE[0]),
            "",
            "has 2 GPUs here; say which by --opencl NAME, or its number: 0: gfx90a (AMD); 1: gfx",
        ),
        (THREE, "g", "has 2 devices of that name here; say which"),
        (THREE, "mali", "has no device of that name here"),
    ],
)
def test_devices_are_listed_where_it_is_not_one(known, wanted, sentence):
    pytest.importorskip("pyopencl")
    with pytest.raises(CollectError) as caught:
        choose_opencl(devices(*known), wanted)
    assert sentence in str(caught.value)


def test_without_a_driver_one_sentence_says_so():
    def none():
        raise RuntimeError("PLATFORM_NOT_FOUND_KHR")

    with pytest.raises(
        CollectError, match=r"no driver here \(/etc/OpenCL/vendors names them\): PLATFORM_NOT_FOUND_KHR"
    ):
        choose_opencl(SimpleNamespace(Error=RuntimeError, get_platforms=none), "")


def test_without_pyopencl_the_sentence_says_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(CollectError, match=r"needs the Python package pyopencl: pip install 'eprof\[opencl\]'"):
        OpenClGpu("")


@pytest.mark.parametrize(
    ("asked", "bus"),
    [
        ({"pci_bus_id_nv": 10, "pci_slot_id_nv": 8}, "0000:0a:01.0"),
        ({"topology_amd": SimpleNamespace(bus=-125, device=0, function=1)}, "0000:83:00.1"),
        ({}, ""),
    ],
)
def test_the_place_on_the_bus_is_told_by_extensions(asked, bus):
    pytest.importorskip("pyopencl")
    assert device._bus(SimpleNamespace(**asked)) == bus


def test_the_board_of_hwmon_is_that_at_the_place_of_the_device(tmp_path):
    for number, bus in enumerate(("0000:03:00.0", "0000:83:00.0")):
        folder = tmp_path / f"sys/class/hwmon/hwmon{number}"
        folder.mkdir(parents=True)
        (tmp_path / bus).mkdir()
        (folder / "device").symlink_to(tmp_path / bus)
        for name, text in {"name": "amdgpu", "power1_average": 90e6 + number * 1e6, "freq1_input": 1.7e9}.items():
            (folder / name).write_text(f"{text if name == 'name' else int(text)}\n")
    amd = "Advanced Micro Devices, Inc."
    board, _ = sensors.hwmon_board("0000:83:00.0", amd, tmp_path)
    assert board.read(0.0)[1:6] == (91.0, None, 1700.0, None, None)
    assert (
        sensors.hwmon_board("", amd, tmp_path)[1]
        == "hwmon: 2 boards, and OpenCL does not tell which of them the GPU is"
    )
    assert (
        sensors.hwmon_board("", "Intel(R) Corporation", tmp_path)[1]
        == "hwmon: no GPU of Intel(R) Corporation that it meters"
    )


# ---- a real OpenCL driver, which is a simulated device


@pytest.fixture(scope="module")
def oclgrind():
    cl = pytest.importorskip("pyopencl")
    try:
        return OpenClGpu("oclgrind")
    except (CollectError, cl.Error):
        pytest.skip("no Oclgrind")


def source(tmp_path, name):
    path = tmp_path / name
    path.write_text(manifests.source_text(name))
    return path


def test_the_command_measures_on_a_real_driver_and_takes_power_from_a_log(oclgrind, eprof_command, tmp_path):
    """What a meter will have written until then is made up: 42 W throughout."""
    now_s = time.time()
    lines = [f"{now_s + tenth / 10:.1f},42.0" for tenth in range(-100, 1200)]
    (tmp_path / "power.csv").write_text("\n".join(["time_s,power_w", *lines]) + "\n")
    names = ("light_warp", "l1_read", "l2_read", "tensor")
    only = [word for name in names for word in ("--only", name)]
    usual = ("--window", "0.35", "--repeat", "1", "--no-fit", "--directory", "kept", "--meter-log", "power.csv")
    done = eprof_command("calibrate", "--opencl", "oclgrind", *only, *usual)
    assert done.returncode == 0, done.stderr
    assert (
        "Oclgrind Simulator (OpenCL 1.2 (Oclgrind 21.10), driver Oclgrind 21.10), Oclgrind's OpenCL compiler"
        in done.stderr
    )
    assert "This device is simulated" in done.stderr
    assert "Not on this device, by what its driver has: l2_read, tensor." in done.stderr
    rows = pd.read_csv(tmp_path / "kept" / "rows.csv").set_index("benchmark")
    assert rows["power_w"].to_dict() == {"light_warp": 42.0, "l1_read": 42.0}
    assert (rows["time_s"] > 0).all()
    frame = pd.read_csv(tmp_path / "kept" / "measurements.csv")
    assert frame["gpu"].to_list() == ["Oclgrind Simulator"] * 2
    events = [json.loads(line) for line in (tmp_path / "kept" / "results.jsonl").read_text().splitlines()]
    for event in (event for event in events if event["event"] == "measured"):
        begin_s, end_s = event["utc_s"]
        assert 0 < event["time_s"] * event["launches"] <= end_s - begin_s


class Without:
    """A device of which something else is true."""

    def __init__(self, device, **other):
        self.device, self.other = device, other

    def __getattr__(self, name):
        return self.other[name] if name in self.other else getattr(self.device, name)


def test_without_fp64_its_kernels_are_left_out_and_errors_of_the_compiler_quoted(oclgrind, tmp_path, monkeypatch):
    monkeypatch.setattr(oclgrind, "_context", oclgrind._context or oclgrind._cl.Context([oclgrind._device]))
    monkeypatch.setattr(oclgrind, "_device", Without(oclgrind._device, extensions="cl_khr_icd"))
    path = source(tmp_path, "arithmetic.cu")
    built = oclgrind.build(path)
    assert "fp32_fma" in built["kernels"] and not FP64 & set(built["kernels"])
    assert built["how"].endswith("-D WITHOUT_FP64")
    monkeypatch.undo()
    oclgrind.load(path)
    with pytest.raises(DriverError, match="The OpenCL driver says: .*INVALID_WORK_ITEM_SIZE"):
        oclgrind.repeat(Launch("light", 1, 4096, 512, 32, 1), lambda: True)
    path.write_text("this is no program")
    with pytest.raises(CollectError, match=r"of Oclgrind Simulator cannot build arithmetic.cu: .*error"):
        oclgrind.build(path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--opencl", "--quick"], "--opencl runs at the clocks that the device chooses: leave out --quick"),
        (["--opencl", "--cpu"], "--cpu and --opencl are two devices"),
        (["--component", "gpu0"], "give it with --meter-log FILE"),
        (["--meter-log", "none.csv"], "there is no such file; start what writes it first"),
    ],
)
def test_wrong_usage(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["calibrate", "-o", "t.toml", *arguments])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
