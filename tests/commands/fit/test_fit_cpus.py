"""`eprof fit` of run directories of CPU programs: perf's counters beside RAPL's joules give known prices back."""

import json
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("scipy")

import eprof
from eprof import costs
from eprof.base.errors import MeterError
from eprof.cli import main
from eprof.collect import meter, sensors
from eprof.lab.programs import from_profiles

PJ = {"fp64": 55.0, "fp32": 26.0, "dram": 140.0}
CONSTANT_W = 31.0
EVENTS = {
    "fp_arith_inst_retired.scalar_double": ("fp64", 1),
    "fp_arith_inst_retired.128b_packed_double": ("fp64", 2),
    "fp_arith_inst_retired.256b_packed_double": ("fp64", 4),
    "fp_arith_inst_retired.512b_packed_double": ("fp64", 8),
    "fp_arith_inst_retired.scalar_single": ("fp32", 1),
    "fp_arith_inst_retired.128b_packed_single": ("fp32", 4),
    "fp_arith_inst_retired.256b_packed_single": ("fp32", 8),
    "fp_arith_inst_retired.512b_packed_single": ("fp32", 16),
    "unc_m_cas_count.rd": ("dram", 64),
    "unc_m_cas_count.wr": ("dram", 64),
}
RAPL = {"name": "RAPL", "covers": "processor packages with their memory, and no GPU", "packages": 1}


def directory(path, number, meter=RAPL):
    """A run directory as `eprof run --profiler perf` leaves it, metered twice, with the joules of known prices."""
    random = np.random.default_rng(number)
    counted = {event: int(random.integers(1, 400)) * 10**8 for event in EVENTS}
    seconds = float(random.uniform(2, 5))
    joules = CONSTANT_W * seconds
    joules += sum(count * EVENTS[event][1] * PJ[EVENTS[event][0]] * 1e-12 for event, count in counted.items())
    lines = [f"{count};;{event};2000000000;100.00;;" for event, count in counted.items()]
    lines.append(f"{int(seconds * 1e9)};ns;duration_time;{int(seconds * 1e9)};100.00;;")
    (path / "logs").mkdir(parents=True)
    (path / "logs" / "counters-1.csv").write_text("# started on Mon Nov 23 05:00:00 2026\n\n" + "\n".join(lines) + "\n")
    energy = {"joules": joules, "runs": 2, "window_s": 2 * seconds, "method": "energy counter"}
    record = {
        **{"schema": "eprof.run/1", "status": "complete", "command": f"./program {number}", "program": ["./program"]},
        **{"pricing": {}, "warnings": [], "meter": meter, "device": {"name": "Made-up CPU"}},
        "measurements": [{"what": "energy", "energy": energy}],
    }
    (path / "run.json").write_text(json.dumps(record))
    return path


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu-runs")
    return [directory(folder / f"{number}.eprof", number) for number in range(12)]


def fit(capfd, *words):
    with pytest.raises(SystemExit) as ended:
        main(["fit", *map(str, words)])
    return ended.value.code or 0, *capfd.readouterr()


def test_known_prices_come_back_from_perf_and_rapl(homes, tmp_path, capfd):
    path = tmp_path / "mine.toml"
    code, out, err = fit(capfd, *homes, "-o", path, "--replicas", 2)
    assert code == 0, err
    assert "MHz" not in out
    priced = costs.load(str(path)).at(None)
    assert priced.constant_power_w == pytest.approx(CONSTANT_W, rel=1e-3)
    assert priced.charges["fp64"].pj == pytest.approx(PJ["fp64"], rel=1e-3)
    # A multiply-add counts as two where kinds are not told, so one costs two of them.
    assert priced.charges["fp64_fma"].pj == pytest.approx(2 * PJ["fp64"], rel=1e-3)
    assert priced.charges["fp64_add"].pj == pytest.approx(PJ["fp64"], rel=1e-3)
    assert priced.charges["fp32"].pj == pytest.approx(PJ["fp32"], rel=1e-3)
    assert priced.charges["dram_read"].pj == pytest.approx(PJ["dram"], rel=1e-3)
    # What the counters do not tell has no price.
    assert {"integer", "special", "l1_read", "l2_read", "l3_read"} <= set(priced.unpriced)
    text = path.read_text()
    assert "mhz" not in text.lower()
    assert "tensor" not in text
    assert "GPU" not in text


def test_a_table_that_was_fitted_predicts_what_rapl_saw(homes, tmp_path, capfd):
    path = tmp_path / "mine.toml"
    fit(capfd, *homes[1:], "-o", path, "--replicas", 0, "--no-validate", "-q")
    energy = eprof.load(homes[0]).energy(str(path), to_meter=False)
    assert energy.split.total_j.sum() == pytest.approx(energy.measured_j, rel=1e-3)


def test_a_table_of_another_processor_is_scaled_to_rapl(homes):
    energy = eprof.load(homes[0]).energy("i7-950", to_meter=True)
    assert energy.split.total_j.sum() == pytest.approx(energy.measured_j)
    # Flops and bytes take a tenth and a sixth of what they did in 2010.
    assert 0.05 < energy.metered.factor < 0.3


def test_a_gpus_joules_are_not_a_cpus(tmp_path, capfd):
    home = directory(tmp_path / "x.eprof", 1, {"name": "NVML", "covers": "the GPU board", "devices": ["A GPU"]})
    with pytest.raises(MeterError, match="the meter covers the GPU board: the joules are not this CPU's"):
        eprof.load(home).energy("i7-950", to_meter=True)
    code, _, err = fit(capfd, home)
    assert code == 1
    assert "its meter covers the GPU board" in err


PROGRAM = """
__attribute__((noinline)) double work(int n, double x) { double s = 0; for (int i = 0; i < n; i++) s += x; return s; }
int main(void) { return work(20000, 0.5) == 1e4 ? 0 : 9; }
"""


class Steady(sensors.Rapl):
    """RAPL of a processor that always draws 12 W."""

    def read(self, time_s):
        return super().read(time_s)._replace(energy_j=12 * time_s)


def test_eprof_run_reads_rapl_beside_callgrind_and_the_run_is_a_row_of_a_fit(tmp_path, monkeypatch):
    pytest.importorskip("capstone")
    if not shutil.which("gcc") or not shutil.which("valgrind"):
        pytest.skip("no gcc or no valgrind")
    package = tmp_path / "sys/class/powercap/intel-rapl:0"
    package.mkdir(parents=True)
    for name, content in (("energy_uj", 0), ("max_energy_range_uj", 10**9)):
        (package / name).write_text(f"{content}\n")
    asked = []

    def find(host=False):
        asked.append(host)
        return meter.Meter(Steady([package], []), window_s=0.05), []

    monkeypatch.setattr(sensors, "find_meter", find)
    program = tmp_path / "adds"
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", str(program)], input=PROGRAM, text=True, check=True)
    home = tmp_path / "run.eprof"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--no-report", "--profiler", "callgrind", "-o", str(home), str(program)])
    assert not ended.value.code
    # The processor's meter, though nobody asked for --host-energy.
    assert asked == [True]
    profile = eprof.load(home)
    seen = profile.measured
    assert seen.joules == pytest.approx(12 * seen.seconds)
    measured, device = from_profiles([(str(home), profile)])
    assert measured.power_w.tolist() == pytest.approx([12.0])
    # One more compares the sum.
    assert measured.counts()["fp64_flop"].item() == pytest.approx(20001)
    assert device == profile.counted[0].device.name
