"""The process that runs microbenchmarks on a GPU or the processor: `python -m eprof.collect.cuda.worker`.

`probe` and `run`, at the end, start it. It is a process of its own, so that a crash of the driver takes nothing else
with it. What it measures is appended to a file of JSON lines as it goes; before each benchmark it says that it begins,
so that the one that crashed is known.

    probe            say what the GPU is (one JSON line)
    PLAN             a JSON file: run its jobs
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eprof.base.errors import CollectError, EprofError
from eprof.base.toml import Formula
from eprof.collect import process
from eprof.collect.cpu import Cpu
from eprof.collect.cuda.driver import CudaGpu, DriverError
from eprof.collect.tools import ask

if TYPE_CHECKING:
    from eprof.collect.meters.meter import Meter


BEGAN, MEASURED, FAILED, LEFT_OUT, NOTE = "began", "measured", "failed", "left out", "note"
CHUNK = 8 * 256
_VECTOR = 16
_NEAR = 512
_TRIAL_S = 0.02
_MOST_TURNS = 2**30
_WARM_MOST_S = 20.0
_WARM_STEP_S = 1.5
_DRIFT = 0.01
# Beside its window: trials, changes between benchmarks, the meter's start and end.
OVERHEAD_S = 0.4
_GIB = 2**30
_COMMAND = (sys.executable, "-m", "eprof.collect.cuda.worker")


class Place(NamedTuple):
    """Where results and samples go."""

    results: Path
    samples: Path


def work(
    plan: Mapping[str, Any], gpu: CudaGpu | Cpu, meter: "Meter", place: Place, now: Callable[[], float] = time.monotonic
) -> None:
    """Run the plan's jobs in the worker, round after round, until all rounds are done or the time is up.

    plan: `jobs` (name, kernel, block, blocks, region, spread, rounds already done), `rounds`, `window_s`, `warm_s`,
    `launch_s`, `budget_s`, `setting`, `images`. now: gives seconds.
    Raises CollectError if the GPU itself fails: no other job can run then.
    """
    worker = _Worker(plan, gpu, meter, place, now, now() + float(plan["budget_s"]), gpu.describe(), {})
    for image in plan["images"]:
        gpu.load(Path(image))
    worker.warm_up()
    for number in range(1, int(plan["rounds"]) + 1):
        for job in plan["jobs"]:
            if number > int(job["done"]) and not worker.run(job, number):
                return


class _Worker(NamedTuple):
    """One run of a plan, which ends at the deadline. turns: of the loop in a launch, by benchmark."""

    plan: Mapping[str, Any]
    gpu: CudaGpu | Cpu
    meter: "Meter"
    place: Place
    now: Callable[[], float]
    deadline: float
    device: Mapping[str, Any]
    turns: dict[str, int]

    def say(self, event: str, **more: Any) -> None:
        """Append a line to the worker's results at once."""
        with self.place.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "setting": self.plan["setting"], **more}) + "\n")

    def run(self, job: Mapping[str, Any], number: int) -> bool:
        """Measure one job of the worker once. Returns False if no time is left for it or for any other."""
        need = float(self.plan["warm_s"]) + float(self.plan["window_s"]) + OVERHEAD_S
        if self.now() + need > self.deadline:
            self.say(LEFT_OUT, name=job["name"], round=number, why="the time was up")
            return False
        self.say(BEGAN, name=job["name"], round=number)
        try:
            measurement = self.measure(job)
        except DriverError:
            raise
        except EprofError as err:
            self.say(FAILED, name=job["name"], round=number, why=str(err))
            return True
        self.say(MEASURED, name=job["name"], round=number, **measurement)
        return True

    def measure(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Warm up, then launch the worker's kernel without a gap while the meter is read."""
        self.gpu.use_operands(float(job["scale"]))
        launch = self.launch(job)
        self.gpu.repeat(job["kernel"], *launch, self._for(float(self.plan["warm_s"])))
        with self.meter.sampling(self.place.samples):
            launches, seconds = self.gpu.repeat(job["kernel"], *launch, self._for(float(self.plan["window_s"])))
            self.meter.mark(1)
        seen = self.meter.result()
        blocks, block, vectors, step, iterations = launch
        joules, window_s = seen.get("joules"), seen.get("window_s")
        return {
            "blocks": blocks,
            "block": block,
            "iterations": iterations,
            "vectors": vectors,
            "step": step,
            "launches": launches,
            "time_s": seconds / launches,
            "power_w": joules / window_s if joules is not None and window_s else None,
            "measured_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seen": seen,
        }

    def launch(self, job: Mapping[str, Any]) -> tuple[int, int, int, int, int]:
        """The worker's launch: blocks, threads, vectors, step, and turns of the loop so that it takes `launch_s`."""
        resident = self.gpu.resident(job["kernel"], int(job["block"]))
        values = {"sms": float(self.device["sms"]), "resident": float(resident)}
        blocks = int(Formula.parse(str(job["blocks"]))(values))
        vectors, step = self.region(job, blocks)
        size = (blocks, int(job["block"]), vectors, step)
        if job["name"] not in self.turns:
            self.turns[job["name"]] = self._turns(job["kernel"], size)
        return (*size, self.turns[job["name"]])

    def _turns(self, kernel: str, size: tuple[int, int, int, int]) -> int:
        turns = 16
        self.gpu.repeat(kernel, *size, turns, lambda: True)
        while True:
            _, seconds = self.gpu.repeat(kernel, *size, turns, lambda: True)
            if seconds >= _TRIAL_S or turns >= _MOST_TURNS:
                return max(1, min(round(turns * float(self.plan["launch_s"]) / max(seconds, 1e-9)), _MOST_TURNS))
            turns = min(turns * (8 if seconds < _TRIAL_S / 16 else 2), _MOST_TURNS)

    def region(self, job: Mapping[str, Any], blocks: int) -> tuple[int, int]:
        """Vectors that the worker's kernel touches, and how far a block goes on in a turn; makes room for them."""
        if isinstance(self.gpu, Cpu):
            return self.gpu.region(job["region"])
        spread = int(job["spread"])
        if job["region"] in ("none", "near"):
            self.gpu.reserve(2 * _NEAR * _VECTOR)
            return _NEAR, 32
        l2 = int(self.device["l2_bytes"] or 0)
        if job["region"] == "l2":
            if not l2:
                raise CollectError("The driver does not tell how large L2 is.")
            vectors = max(l2 // 4 // _VECTOR // spread // CHUNK, 1) * CHUNK
            self.gpu.reserve(vectors * spread * _VECTOR)
            return vectors, CHUNK
        room = int(self.plan.get("region_bytes") or dram_bytes(l2, int(self.device["memory_bytes"])))
        vectors = room // _VECTOR // spread // CHUNK * CHUNK
        step = blocks * CHUNK
        if vectors < 4 * step:
            raise CollectError(f"The GPU's memory is too small: {room // 2**20} MiB do not outlast its caches.")
        self.gpu.reserve(room)
        return vectors, step

    def _for(self, seconds: float) -> Callable[[], bool]:
        end = self.now() + seconds
        return lambda: self.now() >= end

    def warm_up(self) -> None:
        """Run the worker's first arithmetic job until power drifts less than 1 %, at most 20 s: heat leaks more."""
        job = next((job for job in self.plan["jobs"] if job["name"] == self.plan.get("warm_with")), None)
        if job is None:
            return
        launch = self.launch(job)
        before = None
        end = self.now() + _WARM_MOST_S
        while self.now() < end:
            with self.meter.sampling(self.place.samples):
                self.gpu.repeat(job["kernel"], *launch, self._for(min(_WARM_STEP_S, float(self.plan["window_s"]))))
                self.meter.mark(1)
            now = self.meter.result().get("joules")
            if before and now and abs(now - before) <= _DRIFT * before:
                break
            before = now
        self.say(NOTE, what="warmed up", seconds=round(self.now() - (end - _WARM_MOST_S), 3))


def dram_bytes(l2: int, memory: int) -> int:
    """How much memory the worker's DRAM benchmark reads: 64 times L2, at least 1 GiB, at most half of the GPU's."""
    return min(max(64 * l2, _GIB), memory // 2)


def main(words: list[str]) -> int:
    """The worker's exit code: 0, or 1 with one sentence on standard error."""
    try:
        if words[:1] == ["probe"]:
            gpu = CudaGpu(int(words[1]) if len(words) > 1 else 0)
            print_line({**gpu.describe(), "free_bytes": gpu.free_bytes()})
            gpu.close()
            return 0
        plan = json.loads(Path(words[0]).read_text(encoding="utf-8"))
        live = Cpu() if plan["processor"] == "cpu" else CudaGpu(int(plan["device"]))
        work(plan, live, open_meter(live.describe()), Place(Path(plan["results"]), Path(plan["samples"])))
        live.close()
    except EprofError as err:
        sys.stderr.write(f"{err}\n")
        return 1
    return 0


def open_meter(device: Mapping[str, Any]) -> "Meter":
    """The worker's meter: NVML's of this very GPU, found by its place on the bus; RAPL of a processor.

    Raises CollectError.
    """
    from eprof.collect.cuda.clocks import handle
    from eprof.collect.meters import jetson, nvml, rapl
    from eprof.collect.meters.meter import Meter as Sampler

    if device.get("processor") == "cpu":
        packages, why = rapl.find()
        if packages is None:
            raise CollectError(f"There is no power meter for this processor: {why}.")
        return Sampler(packages)
    library, board, why = handle(str(device["bus"]))
    if board is not None:
        try:
            library.nvmlDeviceGetPowerUsage(board)
            return Sampler(nvml.Nvml(library, [board]))
        except library.NVMLError as err:
            why = f"NVML: this GPU has no power sensor ({err})"
    source, reason = jetson.find()
    if source is None:
        raise CollectError(f"There is no power meter for this GPU: {why}; {reason}.")
    return Sampler(source)


def print_line(data: Mapping[str, Any]) -> None:
    """One JSON line of the worker's on standard output."""
    sys.stdout.write(json.dumps(data) + "\n")


def probe(device: int) -> dict[str, Any]:
    """What the GPU is, found in a process of its own, for the CUDA driver stays in it.

    Raises CollectError with the driver's reason.
    """
    variables = [f"{key}={value}" for key, value in _additions().items()]
    lines = ask(["env", *variables, *_COMMAND, "probe", str(device)]).strip().splitlines()
    for line in lines:
        if line.startswith("{"):
            description: dict[str, Any] = json.loads(line)
            return description
    reason = lines[-1] if lines else "The process that looks at the GPU died."
    raise CollectError(f"There is no GPU to calibrate. {reason}")


def run(plan: Path, log: Path, timeout_s: float, tick: Callable[[], None] | None = None) -> str | None:
    """Start the worker's process on a plan: None if it did all that it could, else why it ended.

    Raises KeyboardInterrupt if a signal stopped it: what it measured is kept.
    """
    command = [*_COMMAND, str(plan)]
    environment = {**os.environ, **_additions()}
    with log.open("ab") as file:
        ended = process.run_alone(
            command, file.fileno(), file.fileno(), environment=environment, timeout_s=timeout_s, tick=tick
        )
    if ended.timed_out:
        return f"it was still running after {timeout_s:.0f} s and was stopped"
    if ended.code == 0:
        return None
    if ended.signal:
        return f"it died of signal {ended.signal}"
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {ended.code}"


def _additions() -> dict[str, str]:
    """Environment of the worker's process: devices numbered by place on the bus, and eprof where we found it."""
    home = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), "PYTHONPATH": path}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
