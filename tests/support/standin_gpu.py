"""A GPU that is not there: it counts what the manifest says, takes the time of the busiest unit, and draws known power.

Its prices are known, so that what comes back from a calibration can be compared with what went in. Its clock does not wait.
"""

import json
from contextlib import contextmanager, nullcontext
from pathlib import Path

from eprof.base.toml import Formula
from eprof.commands.calibrate import manifest as manifests
from eprof.commands.calibrate.device import CHUNK, Compiled, DriverError, Gpu, dram_bytes
from eprof.commands.calibrate.results import accessed, peaks, resource
from eprof.commands.calibrate.session import Backend
from eprof.commands.calibrate.worker import work

DEVICE = {
    "processor": "cuda",
    "name": "Stand-in",
    "capability": "9.0",
    "bus": "0000:01:00.0",
    "memory_bytes": 80 * 2**30,
    "cuda": "13.0",
    "threads_per_sm": 2048,
    "sms": 100,
    "core_khz": 1_500_000,
    "memory_khz": 2_000_000,
    "bus_bits": 5120,
    "l2_bytes": 50 * 2**20,
    "ecc": 1,
    "fp32_to_fp64": 2,
}
CONSTANT_W = 90.0
# pJ an instruction or byte at 1500 MHz, by kind; a byte pays at every level that it passes (accessed books).
PRICES = {
    "fp32": 21.0, "fp64": 45.0, "fp16": 23.0, "integer": 11.0, "special": 60.0, "conversion": 40.0, "tensor": 90.0,
    "shared": 5.0, "l1": 4.0, "l2": 18.0, "dram": 48.0, "random": 2500.0,
}  # fmt: skip


class Time:
    """A clock that only work moves on."""

    def __init__(self):
        self.seconds = 0.0


class StandIn(Gpu):
    """See `eprof.commands.calibrate.cuda.CudaGpu`. clock_of: benchmark -> MHz; speed_of: benchmark -> fraction of its peak."""

    def __init__(self, time, device=DEVICE, core_mhz=1500.0, prices=PRICES, constant_w=CONSTANT_W, crash_at=(), **more):
        super().__init__()
        self.time, self.device, self.core_mhz, self.prices, self.constant_w = time, device, core_mhz, prices, constant_w
        self.crash_at, self.more = crash_at, more
        self.energy_j, self.last_mhz, self.launched, self.drawn = 0.0, core_mhz, [], []
        self.operands = 1.0
        self.manifest = manifests.load()

    def describe(self):
        return dict(self.device)

    def load(self, image):
        assert Path(image).exists()

    def resident(self, kernel, block):
        return 2048 // max(block, 64)

    def reserve(self, size):
        assert size <= self.device["memory_bytes"]

    def use_operands(self, scale):
        self.operands = scale

    def _benchmark(self, kernel, blocks, block, vectors):
        """Which benchmark a launch belongs to: the kernel, the grid and the region tell."""
        large = dram_bytes(self.device["l2_bytes"], self.device["memory_bytes"]) // 16
        for one in self.manifest.benchmarks:
            grid = Formula.parse(one.blocks)({"sms": self.device["sms"], "resident": self.resident(kernel, block)})
            far = vectors > self.device["l2_bytes"] // 16
            if (one.kernel, grid, one.block) == (kernel, blocks, block) and far == (one.region == "dram"):
                assert one.region != "dram" or vectors == large // one.spread // CHUNK * CHUNK
                return one
        raise AssertionError((kernel, blocks, block, vectors))

    def repeat(self, launch, until):
        kernel, blocks, block, vectors, _, iterations = launch
        one = self._benchmark(kernel, blocks, block, vectors)
        self.launched.append(one.name)
        if one.name in self.crash_at:
            raise DriverError("The driver says: an illegal memory access was encountered.")
        counts = self.manifest.counts(
            one, manifests.capability_of(self.device["capability"]), blocks * block, iterations
        )
        mhz = self.more.get("clock_of", {}).get(one.name, self.core_mhz)
        known = peaks(self.manifest, self.device, mhz, None)
        busy = {}
        for word, count in counts.items():
            name = resource(word)
            busy[name] = busy.get(name, 0.0) + count / self.more.get("rates", {}).get(name, known.get(name, 2e12))
        seconds = max([*busy.values(), iterations * 1e-7]) / self.more.get("speed_of", {}).get(one.name, 0.9)
        scale = (mhz / 1500.0) ** 2
        passed = accessed(counts, manifests.capability_of(self.device["capability"]))
        joules = sum(count * self.prices.get(resource(word), 0.0) * 1e-12 for word, count in passed.items()) * scale
        # Zeros toggle nothing: 0.6 of what random operands take.
        joules *= 0.6 + 0.4 * self.operands
        launches, began_s = 0, self.time.seconds
        while True:
            self.time.seconds += seconds
            self.energy_j += joules + self.constant_w * seconds
            launches += 1
            if until():
                break
        self.last_mhz = mhz
        self.drawn.append((began_s, self.time.seconds, self.constant_w + joules / seconds))
        return launches, launches * seconds

    # What queues launches is not used here.
    _allocate_region = _begin = _launch = _wait = _seconds = None


EPOCH_S = 1.75e9  # of the stand-in's clock, in seconds since 1970


def write_log(gpu, path, period_s=0.1, ahead_s=0.0, names=("power_w",), column="time_s"):
    """What a meter beside the stand-in would have written; what it draws between benchmarks is its constant power."""
    times = [period_s * number for number in range(int(gpu.time.seconds / period_s) + 1)]
    drawn, place, lines = gpu.drawn, 0, []
    for time_s in times:
        while place < len(drawn) - 1 and drawn[place][1] <= time_s:
            place += 1
        watts = drawn[place][2] if drawn[place][0] <= time_s < drawn[place][1] else gpu.constant_w
        lines.append(",".join([f"{EPOCH_S + time_s + ahead_s:.3f}", *[f"{watts:.6f}"] * len(names)]))
    path.write_text("\n".join([",".join([column, *names]), *lines]) + "\n")


class StandInMeter:
    """Reads the stand-in's energy without error, or none at all."""

    def __init__(self, gpu, blind=False):
        self.gpu, self.blind = gpu, blind

    @contextmanager
    def sampling(self, path):
        self.began, self.energy = self.gpu.time.seconds, self.gpu.energy_j
        yield

    def mark(self, runs):
        self.window, self.joules = self.gpu.time.seconds - self.began, self.gpu.energy_j - self.energy

    def result(self):
        return {
            "joules": None if self.blind else self.joules,
            "method": "stand-in",
            "window_s": self.window,
            "core_mhz": self.gpu.last_mhz,
            "core_mhz_spread": 0.0,
            "memory_mhz": 2000.0,
            "temperature_c": 60.0,
            "slowed_by": ["software power cap"] if self.gpu.last_mhz != self.gpu.core_mhz else [],
        }


def hands(gpu, meter=None, held=None, **other):
    """Backend that reach the stand-in. A DriverError ends the worker as it would end the process."""

    def compile_source(source, capability, target):
        image = target.with_suffix(".cubin")
        image.write_text("stand-in")
        return Compiled(image, "nothing")

    def run(plan, log, timeout_s, tick=None):
        data = json.loads(plan.read_text())
        try:
            now = lambda: gpu.time.seconds  # noqa: E731
            work(data, gpu, meter or StandInMeter(gpu), now, lambda: EPOCH_S + now())
        except DriverError as err:
            return str(err)
        return None

    found = {
        "probe": lambda device: dict(gpu.device),
        "meter": lambda device: None,
        "compile": compile_source,
        "disassemble": lambda image: (None, "there is none"),
        "clocks": lambda bus: {2000: [1500, 1200, 900]},
        "held": held or (lambda bus, setting: nullcontext()),
        "run": run,
        **other,
    }
    return Backend(**found)
