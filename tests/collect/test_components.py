"""Power by component: which sensors are found, what is read of them while a program runs, and its marks beside it."""

import csv
import signal
import subprocess
import time

import pytest

from eprof.collect import nvml, sensors
from eprof.collect.meter import Component


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """Boards are NVML's to find, which is tested with a stand-in."""
    monkeypatch.setattr(nvml, "find", lambda: (None, "none here"))


def zones(root, **labels):
    """RAPL's zones, by their numbers ("0", "0_1")."""
    for number, label in labels.items():
        folder = root / "sys/class/powercap" / f"intel-rapl:{number.strip('z').replace('_', ':')}"
        folder.mkdir(parents=True)
        for name, text in (("name", label), ("energy_uj", 999_999), ("max_energy_range_uj", 1_000_000)):
            (folder / name).write_text(f"{text}\n")


def board(root, number, driver, **files):
    """A device of the kernel's hardware monitoring."""
    folder = root / f"sys/class/hwmon/hwmon{number}"
    (folder / "device").mkdir(parents=True)
    for name, text in {"name": driver, **files}.items():
        (folder / name).write_text(f"{text}\n")
    return folder


def found(root):
    return {component.name: component for component in sensors.components(root)}


def test_every_zone_of_rapl_is_a_component_and_wraps(tmp_path):
    zones(tmp_path, z0="package-0", z0_0="core", z0_1="dram", z1="package-1", z1_0="dram", z2="psys")
    parts = found(tmp_path)
    assert list(parts) == ["package-0", "core-0", "dram-0", "package-1", "dram-1", "psys"]
    (tmp_path / "sys/class/powercap/intel-rapl:1/energy_uj").write_text("500000\n")
    assert (parts["package-1"].read(), parts["package-1"].unit) == (pytest.approx(0.500001), "J")


def test_zones_that_only_root_may_read_are_no_components(tmp_path):
    zones(tmp_path, z0="package-0", z1="package-1")
    (tmp_path / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert list(found(tmp_path)) == ["package-0"]
    assert sensors.components(tmp_path / "nothing") == []


def test_boards_of_hwmon_and_the_platforms_counter_is_left_out_beside_them(tmp_path):
    zones(tmp_path, z0="package-0", z1="psys")
    board(tmp_path, 0, "amdgpu", power1_average=250_000_000)
    board(tmp_path, 1, "amdgpu", power1_average=90_000_000, power1_input=95_000_000)
    board(tmp_path, 2, "xe", energy1_input=7_000_000)
    board(tmp_path, 3, "nvme", temp1_input=40_000)
    board(tmp_path, 4, "power_meter", power1_average=400_000_000)
    readings = {name: (part.read(), part.unit) for name, part in found(tmp_path).items() if name != "package-0"}
    assert readings == {
        "amdgpu": (250, "W"),
        "amdgpu1": (95, "W"),
        "intel-gpu": (7, "J"),
        "system": (400, "W"),
    }


def test_a_gpu_in_the_package_of_its_cpu_is_in_that_power(tmp_path):
    folder = board(tmp_path, 0, "amdgpu", power1_input=15_000_000)
    (folder / "device" / "gpu_metrics").write_bytes(bytes([120, 0, 2, 4]))
    assert found(tmp_path) == {}


def test_sensors_are_read_while_a_program_runs_and_may_fail(tmp_path):
    readings = iter(range(1000))

    def faulty():
        if (number := next(readings)) % 2:
            raise OSError("not now")
        return float(number)

    path = tmp_path / "components.csv"
    with sensors.sampling([Component("gpu0", "W", faulty)], path, epoch_s=0.0):
        while next(readings) < 8:
            time.sleep(0.005)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert rows and all(row["gpu0_w"] == "" or float(row["gpu0_w"]) % 2 == 0 for row in rows)


# ---------------------------------------------------------------------------------------------------- with eprof run


def test_ctrl_c_keeps_the_marks(bench):
    program = bench.script("echo begin load; : > there; sleep 60\n")
    running = bench.start("--profiler", "none", "--mark", "begin (.+)", program)
    bench.await_file("program.eprof/run.json")
    bench.await_file("there")
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate()
    assert (running.returncode, out) == (130, "begin load\n")
    marks = (bench.folder / "program.eprof" / "marks.csv").read_text().splitlines()
    assert [line.split(",")[2] for line in marks] == ["name", "load", "program"]


def test_a_reader_that_goes_away_ends_the_program_as_without_us(bench):
    program = bench.script("trap 'echo piped > ended; exit 3' PIPE\nwhile echo line; do :; done\nexit 4\n")
    words = bench.command("run", "-q", "--profiler", "none", "--mark", "nothing", program)
    running = subprocess.Popen(
        words, cwd=bench.folder, env=bench.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout.readline() == b"line\n"
    running.stdout.close()
    running.stderr.read()
    assert running.wait() in (3, 4, 141)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--mark", "(", "true"], "--mark '(': is no regular expression"),
        (["--profiler", "none", "--costs", "gtx680", "true"], "--costs means nothing to none, which counts nothing"),
        (["--profiler", "oclgrind", "--mark", "x", "true"], "--mark: oclgrind simulates"),
    ],
)
def test_what_cannot_be_marked_is_refused(simulated, words, sentence):
    done = simulated.run(*words)
    assert done.returncode == 2 and sentence in done.stderr


def test_a_mark_that_nothing_matches_is_said(bench):
    done = bench.run("--profiler", "none", "--mark", "nothing", bench.script("echo line\n"))
    assert (done.returncode, done.stdout) == (0, "line\n")
    assert "No line of the output matches --mark nothing" in done.stderr
    assert "No power was measured, as no sensor can be read here; with the log of another meter" in done.stderr
