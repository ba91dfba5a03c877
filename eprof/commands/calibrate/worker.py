"""The process that runs microbenchmarks on a GPU or the processor: `python -m eprof.commands.calibrate.worker`.

`probe`, `build` and `run`, at the end, start it. It is a process of its own, so that a crash of the driver takes
nothing else with it. What it measures is appended to a file of JSON lines as it goes; before each benchmark it says
that it begins, so that the one that crashed is known.

    probe PROCESSOR DEVICE           say what the GPU is (one JSON line)
    build DEVICE SOURCE              say which kernels the driver of an OpenCL device makes of a source, and how
    PLAN                             a JSON file: run its jobs
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError, EprofError
from eprof.base.optional import ratio
from eprof.base.toml import Formula
from eprof.collect import meter, nvml, process, sensors
from eprof.collect.machine import answer
from eprof.collect.meter import Meter, Nothing
from eprof.commands.calibrate.cuda import CudaGpu
from eprof.commands.calibrate.device import Compiled, Cpu, Device, DriverError, Launch, OpenClGpu

# lost: the device, not the benchmark that had failed
BEGAN, MEASURED, FAILED, LEFT_OUT, NOTE, LOST = "began", "measured", "failed", "left out", "note", "lost"
_PATIENCE_S = 600.0  # with a driver's compiler
_TRIAL_S, _TRIAL_TURNS = 0.02, 16
_MOST_TURNS = 2**30
_WARM_MOST_S = 20.0
_WARM_STEP_S = 1.5
_DRIFT = 0.01
# Beside its window: trials, changes between benchmarks, the meter's start and end.
OVERHEAD_S = 0.4
_COMMAND = (sys.executable, "-m", "eprof.commands.calibrate.worker")
# By the word of a plan: how the device is opened that a user named.
_DEVICES: Mapping[str, Callable[[str], Device]] = {
    "cuda": lambda device: CudaGpu(int(device)),
    "opencl": OpenClGpu,
    "cpu": lambda _: Cpu(),
}


def work(
    plan: Mapping[str, Any],
    gpu: Device,
    meter: Meter,
    now: Callable[[], float] = time.monotonic,
    utc_s: Callable[[], float] = time.time,
) -> None:
    """Run the plan's jobs in the worker, round after round, until all rounds are done or the time is up.

    plan: `jobs` (name, kernel, block, blocks, region, spread, rounds already done), `rounds`, `window_s`, `warm_s`,
    `launch_s`, `budget_s`, `setting`, `images`; files that `results` and the meter's `samples` are appended to.
    now: gives seconds; utc_s: since 1970, as logs of meters do.
    Raises CollectError if the GPU itself fails: no other job can run then.
    """
    worker = _Worker(plan, gpu, meter, now, utc_s, now() + float(plan["budget_s"]), gpu.describe(), {})
    for image in plan["images"]:
        gpu.load(Path(image))
    worker.warm_up()
    for number in range(1, int(plan["rounds"]) + 1):
        for job in plan["jobs"]:
            if number > int(job["done"]) and not worker.run(job, number):
                return


class _Worker(NamedTuple):
    """One run of a plan, which ends at the deadline. turns: benchmark -> turns of the loop in a launch."""

    plan: Mapping[str, Any]
    gpu: Device
    meter: Meter
    now: Callable[[], float]
    utc_s: Callable[[], float]
    deadline: float
    device: Mapping[str, Any]
    turns: dict[str, int]

    def say(self, event: str, **more: Any) -> None:
        """Append a line to the worker's results at once."""
        with Path(self.plan["results"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "setting": self.plan["setting"], **more}) + "\n")

    def sampled(self, launch: Launch, seconds: float) -> tuple[int, float]:
        """Launch a kernel for `seconds` while the meter is read: (launches, seconds in all)."""
        with self.meter.sampling(Path(self.plan["samples"])):
            ran = self.gpu.repeat(launch, self._after(seconds))
            self.meter.mark(1)
        return ran

    def power_w(self) -> float | None:
        """The mean power in W that the worker's meter saw in its last window; None where it saw too little."""
        seen = self.meter.result()
        return ratio(seen.get("joules"), seen.get("window_s"))

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
        """Warm up, then launch the job's kernel without a gap while the meter is read; returns a result's fields."""
        self.gpu.use_operands(float(job["scale"]))
        launch = self.launch(job)
        self.gpu.repeat(launch, self._after(float(self.plan["warm_s"])))
        began_s = self.utc_s()
        launches, seconds = self.sampled(launch, float(self.plan["window_s"]))
        ended_s = self.utc_s()
        return {
            **launch._asdict(),
            "launches": launches,
            "time_s": seconds / launches,
            "power_w": self.power_w(),
            "utc_s": [began_s, ended_s],
            "seen": self.meter.result(),
        }

    def launch(self, job: Mapping[str, Any]) -> Launch:
        """The launch of a job's kernel, with as many turns of its loop as take the plan's `launch_s`."""
        resident = self.gpu.resident(job["kernel"], int(job["block"]))
        values = {"sms": float(self.device["sms"]), "resident": float(resident)}
        blocks = int(Formula.parse(str(job["blocks"]))(values))
        vectors, step = self.gpu.region(job, blocks, self.plan.get("region_bytes"))
        trial = Launch(job["kernel"], blocks, int(job["block"]), vectors, step, _TRIAL_TURNS)
        if (known := self.turns.get(job["name"])) is not None:
            return trial._replace(iterations=known)
        self.gpu.repeat(trial, lambda: True)
        _, seconds = self.gpu.repeat(trial, lambda: True)
        while seconds < _TRIAL_S:
            if trial.iterations >= _MOST_TURNS:
                why = "turns of its loop take no time: the compiler left out what is measured."
                raise CollectError(f"{trial.iterations} {why}")
            farther = {True: 8}.get(seconds < _TRIAL_S / 16, 2)
            trial = trial._replace(iterations=min(trial.iterations * farther, _MOST_TURNS))
            _, seconds = self.gpu.repeat(trial, lambda: True)
        turns = max(1, min(round(trial.iterations * float(self.plan["launch_s"]) / seconds), _MOST_TURNS))
        self.turns[job["name"]] = turns
        return trial._replace(iterations=turns)

    def _after(self, seconds: float) -> Callable[[], bool]:
        end = self.now() + seconds
        return lambda: self.now() >= end

    def warm_up(self) -> None:
        """Run the plan's job `warm_with` until power drifts less than 1 %, at most 20 s, as a warm chip leaks more."""
        job = next((job for job in self.plan["jobs"] if job["name"] == self.plan.get("warm_with")), None)
        if job is None:
            return
        launch = self.launch(job)
        before = None
        end = self.now() + _WARM_MOST_S
        while self.now() < end:
            self.sampled(launch, min(_WARM_STEP_S, float(self.plan["window_s"])))
            power_w = self.power_w()
            if before and power_w and abs(power_w - before) <= _DRIFT * before:
                break
            before = power_w
        self.say(NOTE, what="warmed up", seconds=round(self.now() - (end - _WARM_MOST_S), 3))


def main(words: list[str]) -> int:
    """Run the worker by its command line (top of this file); exit code 0, or 1 with a sentence on standard error."""
    try:
        match words:
            case ["probe", processor, device]:
                gpu = _DEVICES[processor](device)
                sys.stdout.write(json.dumps(gpu.describe()) + "\n")
                gpu.close()
            case ["build", device, source]:
                sys.stdout.write(json.dumps(OpenClGpu(device).build(Path(source))) + "\n")
            case [file]:
                plan = json.loads(Path(file).read_text(encoding="utf-8"))
                gpu = _DEVICES[plan["processor"]](plan["device"])
                meter = open_meter(gpu.describe(), is_needed=not plan["has_meter_log"])
                work(plan, gpu, meter)
                gpu.close()
    except EprofError as err:
        sys.stderr.write(f"{err}\n")
        return 1
    return 0


def open_meter(device: Mapping[str, Any], is_needed: bool = True, root: Path = Path("/")) -> Meter:
    """Open the power meter of a device (as `describe` gives it): of a GPU board by its PCI bus, else RAPL.

    is_needed: else a log has the power, and the meter may see nothing of it. root: where /sys stands.
    Raises CollectError.
    """
    bus, vendor = str(device["bus"]), str(device.get("vendor"))
    looks = [partial(sensors.find_rapl, root)]
    if device["processor"] == "cuda":
        looks = [partial(nvml.board, bus), partial(sensors.find_jetson, root)]
    elif not device.get("in_package", True):
        looks = [partial(nvml.board, bus), partial(sensors.hwmon_board, bus, vendor, root)]
    found, reasons = meter.first(looks)
    if found is None and is_needed:
        kind = {"cpu": "processor"}.get(device["processor"], "GPU")
        raise CollectError(
            f"There is no power meter for this {kind}: {'; '.join(reasons)}. One that another program reads will do: "
            "--meter-log FILE."
        )
    return found or Meter(Nothing())


def probe(processor: str, device: str) -> dict[str, Any]:
    """What `Device.describe` says, asked in a process that ends, so that no driver stays. Raises CollectError."""
    return _asked("There is no GPU to calibrate.", "probe", processor, device)


def build(device: str, source: Path) -> Compiled:
    """Compile a source by the driver of an OpenCL device. Raises CollectError with what its compiler says."""
    built = _asked("The microbenchmarks cannot be compiled.", "build", device, str(source))
    return Compiled(source, built["how"], frozenset(built["kernels"]))


def _asked(what_fails: str, *words: str) -> dict[str, Any]:
    """The JSON line that a worker of these words prints. Raises CollectError: `what_fails`, and the worker's reason."""
    variables = [f"{key}={value}" for key, value in _additions().items()]
    said = answer(["env", *variables, *_COMMAND, *words], patience_s=_PATIENCE_S)
    lines = (said.output + said.errors).strip().splitlines()
    for line in lines:
        if line.startswith("{"):
            told: dict[str, Any] = json.loads(line)
            return told
    reason = ["The process that looks at the GPU died.", *lines][-1]
    raise CollectError(f"{what_fails} {reason}")


def run(plan: Path, log: Path, timeout_s: float, tick: Callable[[], None] | None = None) -> str | None:
    """Run a plan (a JSON file) in a worker that writes to `log`: None, or why it failed. Raises KeyboardInterrupt."""
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
    return [f"it ended with {ended.code}", *lines][-1]


def _additions() -> dict[str, str]:
    """Environment of the worker's process: devices numbered by place on the bus, and eprof where we found it."""
    home = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), "PYTHONPATH": path}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
