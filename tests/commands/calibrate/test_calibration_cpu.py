"""Calibration of a processor: the code of its benchmarks, and known prices that come back through RAPL's files."""

import ctypes
import json
import platform
import shutil
from contextlib import contextmanager

import pytest

from eprof import costs
from eprof.base.errors import CollectError
from eprof.cli.dispatch import main
from eprof.collect import sensors
from eprof.collect.meter import Meter
from eprof.commands.calibrate import device, results, table
from eprof.commands.calibrate import manifest as manifests
from eprof.commands.calibrate import manifest as schedule
from eprof.commands.calibrate.device import Compiled, Cpu
from eprof.commands.calibrate.results import accessed
from eprof.commands.calibrate.session import ON_CPU, Request, Session
from eprof.commands.calibrate.worker import open_meter, work

MANIFEST = manifests.load(manifests.CPU)
AVX2 = (32, 1)
LOOPS = [benchmark for benchmark in MANIFEST.benchmarks if benchmark.kernel != "asleep"]
# pJ a SIMD lane or a byte; a byte pays at every level that it passes.
PRICES = {
    **{"fp64_fma": 60.0, "fp64_add": 41.0, "fp64_mul": 47.0, "fp32_fma": 31.0, "fp32_add": 21.0, "fp32_mul": 24.0},
    **{"integer": 35.0, "special": 220.0, "l1": 7.0, "l2": 13.0, "l3": 29.0, "dram": 110.0, "random": 9000.0},
}
CONSTANT_W, ASLEEP_W = 21.5, 4.0
RANGE_UJ = 262_143_328_850
GIGABYTES_S = {"l1": 400e9, "l2": 200e9, "l3": 90e9, "dram": 20e9}


def zone(root, name, label, microjoules):
    folder = root / "sys/class/powercap" / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{label}\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    return folder / "energy_uj"


class StandIn(Cpu):
    """Four cores that draw known joules, told by a tree of powercap files whose counter wraps early on."""

    def __init__(self, root):
        super().__init__(root)
        self.time_s, self.energy_j = 0.0, RANGE_UJ / 1e6 - 10
        self.package = zone(root, "intel-rapl:0", "package-0", int(1e6 * self.energy_j))
        self.memory = zone(root, "intel-rapl:0:0", "dram", 0)

    def describe(self):
        sizes = {"l1_bytes": 2**15, "l2_bytes": 2**20, "l3_bytes": 2**22, "memory_bytes": 2**34}
        return {"processor": "cpu", "name": "Stand-in 4", "capability": "32.1", "bus": "here", "sms": 4, **sizes}

    def load(self, image):
        assert image.read_text() == "stand-in"

    def region(self, job, blocks, room):
        self.kind = job["region"]
        return 4096, 0

    def repeat(self, launch, until):
        kernel, blocks, block, _, _, iterations = launch
        [benchmark] = [
            benchmark
            for benchmark in MANIFEST.benchmarks
            if benchmark.kernel == kernel
            and benchmark.region == self.kind
            and (benchmark.blocks == "1") == (blocks == 1)
        ]
        served = MANIFEST.counts(benchmark, AVX2, blocks * block, iterations)
        counts = accessed(served, AVX2, has_l3=True)
        seconds = iterations * 1e-9 + sum(
            count / GIGABYTES_S.get(word.split("_")[0], 50e9) for word, count in served.items()
        )
        watts = ASLEEP_W if kernel == "asleep" else CONSTANT_W
        joules = watts * seconds + 1e-12 * sum(
            count * PRICES.get(word, PRICES.get(word.split("_")[0], 0.0)) for word, count in counts.items()
        )
        launches = 0
        while True:
            launches += 1
            self.time_s += seconds
            self.energy_j += joules
            self.package.write_text(f"{int(1e6 * self.energy_j) % RANGE_UJ}\n")
            if until():
                return launches, launches * seconds


class Window(Meter):
    """A meter in the stand-in's time: RAPL's files, read at both ends of the window."""

    def __init__(self, device, source):
        super().__init__(source)
        self.device = device

    @contextmanager
    def sampling(self, path):
        self.ends = []
        self.began_s = self.device.time_s
        self.began_j = self.source.read(0.0).energy_j
        yield

    def result(self):
        joules = self.source.read(0.0).energy_j - self.began_j
        return {"joules": joules, "window_s": self.device.time_s - self.began_s}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("calibration")
    device = StandIn(tmp_path)

    def compile_source(source, capability, target):
        target.write_text("stand-in")
        return Compiled(target, "nothing")

    def run(plan, log, timeout_s, tick=None):
        data = json.loads(plan.read_text())
        assert data["processor"] == "cpu"
        source, _ = sensors.find_rapl(tmp_path)
        work(data, device, Window(device, source), lambda: device.time_s)

    hands = ON_CPU._replace(probe=lambda _: device.describe(), meter=lambda _: None, compile=compile_source, run=run)
    timing = schedule.Timing(rounds=1, launch_s=0.5)
    made = Session(Request(tmp_path / "kept", timing=timing), lambda sentence: None, hands)
    made.prepare()
    made.measure()
    return made


def test_known_prices_come_back_from_rapl(session, tmp_path):
    rows = session.rows()
    left_out = {row.benchmark: row.reasons for row in rows if not row.used}
    assert set(left_out) == {"asleep"}
    assert {row.benchmark: row.power_w for row in rows}["asleep"] == pytest.approx(ASLEEP_W, rel=1e-4)
    made = table.make(session, session.save(rows), rows, "my-cpu")
    path = tmp_path / "my-cpu.toml"
    path.write_text(made.text)
    loaded, mistakes = costs.examine(str(path))
    assert mistakes == []
    priced = loaded.at(None)
    assert priced.constant_power_w == pytest.approx(CONSTANT_W, rel=1e-3)
    for word, pj in PRICES.items():
        charge = priced.charges[f"{word}_read" if word in GIGABYTES_S else word]
        assert charge.pj == pytest.approx(pj, rel=2e-3), word
    # Counters of Intel tell flops and no kinds.
    assert priced.charges["fp64"].pj == pytest.approx((41 + 47) / 2, rel=2e-3)
    assert "mhz" not in made.text.lower()
    assert "shared_read" not in made.text


def test_the_same_measurements_give_the_same_prices_through_eprof_fit(session, tmp_path):
    table_path = tmp_path / "again.toml"
    words = ["fit", str(session.save(session.rows())), "--no-validate", "--replicas", "0", "-o", str(table_path)]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    priced = costs.load(str(table_path)).at(None)
    assert priced.charges["dram_read"].pj == pytest.approx(PRICES["dram"], rel=1e-3)
    assert priced.constant_power_w == pytest.approx(CONSTANT_W, rel=1e-3)


def test_a_cache_that_is_no_faster_than_memory_is_left_out(session):
    events = results.read(session.events_file)
    slow = [
        {**event, "time_s": 6 * event["time_s"]}
        if event["event"] == "measured" and event["name"] == "l3_read"
        else event
        for event in events
    ]
    rows = results.rows(MANIFEST, session.benchmarks, session.device, slow, None, {})
    why = {row.benchmark: row.reasons for row in rows if not row.used}
    assert set(why) == {"l3_read", "asleep"}
    cache, memory = (
        next(row.counts[name] / row.time_s for row in rows if row.benchmark == name)
        for name in ("l3_read", "dram_read")
    )
    slower = f"it ran at {cache / memory:.2f} times the speed of dram_read"
    assert cache < memory and why["l3_read"] == (f"{slower}: its cache did not hold what it reads",)


def test_without_rapl_one_sentence_says_what_would_allow_it(tmp_path):
    with pytest.raises(CollectError, match=r"no power meter for this processor: RAPL: none here \(virtual machines"):
        open_meter({"processor": "cpu", "bus": "here"}, root=tmp_path)


def test_every_price_of_a_processor_can_be_told_from_the_others():
    import numpy as np
    import pandas as pd

    for capability in ((16, 0), (16, 1), (32, 0), AVX2):
        chosen = [benchmark for benchmark in schedule.choose(MANIFEST, capability) if not benchmark.unfitted]
        counts = [accessed(MANIFEST.counts(benchmark, capability, 1, 1), capability, True) for benchmark in chosen]
        columns = pd.DataFrame(counts).fillna(0.0).drop(columns="control")
        columns = (
            columns.T.groupby(lambda word: word.split("_")[0] if word.startswith(tuple(GIGABYTES_S)) else word).sum().T
        )
        columns["constant"] = 100.0
        scaled = columns.to_numpy() / columns.to_numpy().max(axis=0)
        assert np.linalg.matrix_rank(scaled, tol=1e-3) == columns.shape[1], capability


# ---- the code


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("cpu") / "cpu"
    capability = Cpu().describe()["capability"]
    return device.compile_for_cpu(manifests.home() / "cpu.c", capability, target).image


def loop(library, kernel):
    """The instructions of a kernel's one loop, from memory: from the target of its last jump backwards to that jump."""
    capstone = pytest.importorskip("capstone")
    address = ctypes.cast(library[kernel], ctypes.c_void_p).value
    code = []
    for instruction in capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(
        ctypes.string_at(address, 2000), address
    ):
        code.append(instruction)
        if instruction.mnemonic.startswith("j") and int(instruction.op_str, 16) <= instruction.address:
            break
    start = int(code[-1].op_str, 16)
    return [instruction for instruction in code if instruction.address >= start]


def tally(body):
    """SIMD lanes and bytes of vectors by word, and other instructions, in one turn."""
    counts = {}
    for instruction in body:
        name = instruction.mnemonic.removeprefix("v")
        width = 32 if "ymm" in instruction.op_str else 16
        kind = next((kind for kind in ("fmadd", "add", "sub", "mul", "div") if name.startswith(kind)), None)
        if name.endswith(("pd", "ps")) and kind:
            bits = 64 if name.endswith("pd") else 32
            word = {"fmadd": f"fp{bits}_fma", "mul": f"fp{bits}_mul", "div": "special"}.get(kind, f"fp{bits}_add")
            counts[word] = counts.get(word, 0) + width * 8 // bits
        elif name.startswith("movap") and "[" in instruction.op_str:
            way = "write" if "[" in instruction.op_str.split(",")[0] else "read"
            counts[way] = counts.get(way, 0) + width
        elif name.startswith("j"):
            counts["control"] = counts.get("control", 0) + 1
        elif name != "pause":
            counts["integer"] = counts.get("integer", 0) + 1
    return counts


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64 is taken apart here")
@pytest.mark.parametrize("benchmark", LOOPS, ids=lambda benchmark: benchmark.name)
def test_a_turn_of_each_loop_is_what_the_manifest_counts(image, benchmark):
    capability = manifests.capability_of(Cpu().describe()["capability"])
    if not benchmark.runs_on(capability):
        pytest.skip("not for this processor")
    seen = tally(loop(ctypes.CDLL(str(image)), benchmark.kernel))
    claimed = {}
    for word, count in MANIFEST.counts(benchmark, capability, 1, 1, overhead=False).items():
        way = word.partition("_")[2]
        claimed[way if way in ("read", "write") else word] = count
    if "random" in claimed:
        assert claimed.pop("random") == seen["read"] / 64
    assert {word: count for word, count in seen.items() if word not in ("integer", "control")} == {
        word: count for word, count in claimed.items() if word != "integer"
    }
    overhead = {word: formula({"threads": 1, "iterations": 1}) for word, formula in benchmark.overhead.items()}
    assert abs(seen["integer"] - claimed.get("integer", 0) - overhead.get("integer", 0)) <= 3
    assert seen["control"] <= 2


def test_the_benchmarks_run_on_every_core_and_their_power_is_rapls(image, tmp_path):
    """The real code, and a meter that steps on by 3 J each time that it is read: how fast the machine is does not matter."""

    class Stepping(sensors.Rapl):
        def read(self, time_s):
            return super().read(time_s)._replace(energy_j=3.0 * time_s)

    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    source = Stepping([tmp_path / "sys/class/powercap/intel-rapl:0"], [])
    chosen = ("awake_1", "integer", "l1_read", "l2_update")
    plan = {
        **{"results": str(tmp_path / "results.jsonl"), "samples": str(tmp_path / "power.csv")},
        **{"setting": "in force", "images": [str(image)], "rounds": 1, "budget_s": 300.0},
        **{"window_s": 0.15, "warm_s": 0.01, "launch_s": 0.01},
        "jobs": schedule.jobs([MANIFEST.named(name) for name in chosen], {}),
    }
    device = Cpu()
    work(plan, device, Meter(source))
    events = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    measured = [event for event in events if event["event"] == "measured"]
    assert [event["name"] for event in measured] == list(chosen)
    assert [event["power_w"] for event in measured] == pytest.approx([3.0] * len(chosen), rel=1e-6)
    assert [event["blocks"] for event in measured] == [1, *[device.describe()["sms"]] * 3]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86-64")
@pytest.mark.parametrize(
    ("flags", "capability"), [("fpu avx fma", "32.1"), ("fpu avx", "32.0"), ("fpu", "16.0"), (None, "16.0")]
)
def test_what_vectors_a_processor_has_is_in_its_flags(tmp_path, flags, capability):
    (tmp_path / "proc").mkdir()
    if flags:
        (tmp_path / "proc" / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n")
    assert device._capability(tmp_path) == capability
