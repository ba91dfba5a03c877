"""One `eprof calibrate` from start to end: probe the device, compile, check machine code, measure at each setting.

A calibration directory holds calibration.json (what was measured on what), build/ (sources and machine code),
results.jsonl (what the worker measured, as it goes), power.csv (the meter's samples), worker.log, and at the end
measurements.csv (what the fit reads) and rows.csv (everything, with what was left out and why).
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from eprof import __version__
from eprof.base.errors import CollectError, EprofError, LogError
from eprof.base.optional import summed
from eprof.cli.output import Progress, write
from eprof.commands.calibrate import cuda, results, worker
from eprof.commands.calibrate import manifest as manifests
from eprof.commands.calibrate.cuda import Setting, label
from eprof.commands.calibrate.device import Compiled, Cpu, compile_for_cpu
from eprof.commands.calibrate.manifest import Benchmark, Manifest, Timing, capability_of, load
from eprof.commands.calibrate.results import Row
from eprof.commands.calibrate.sass import contradictions, functions
from eprof.commands.calibrate.worker import FAILED, LOST, MEASURED

SCHEMA = "eprof.calibration/1"
# The worker starts again after a crash, without the benchmark that crashed; not for ever.
_MOST_STARTS = 6
_SLACK_S = 120.0


class Backend(NamedTuple):
    """The functions by which a calibration probes, compiles for and runs on one kind of device. Tests have others."""

    processor: str = "cuda"
    manifest: Callable[[Mapping[str, Any]], Manifest] = lambda _: load()
    probe: Callable[[str], dict[str, Any]] = partial(worker.probe, "cuda")
    meter: Callable[[Mapping[str, Any]], object] = worker.open_meter
    compile: Callable[[Path, str, Path], Compiled] = cuda.compile_source
    disassemble: Callable[[Path], tuple[str | None, str]] = cuda.disassemble
    clocks: Callable[[str], dict[int, list[int]]] = cuda.supported
    held: Callable[[str, Setting | None], AbstractContextManager[None]] = cuda.held
    run: Callable[..., str | None] = worker.run


ON_CUDA = Backend()
ON_CPU = Backend(
    "cpu",
    manifest=lambda _: load(manifests.CPU),
    probe=lambda _: Cpu().describe(),
    compile=compile_for_cpu,
    disassemble=lambda _: (None, "what is counted is inline assembly, which a compiler leaves alone"),
)


def on_opencl(wanted: str) -> Backend:
    """The `Backend` that calibrates a GPU of any maker by OpenCL. wanted: its name or number there."""
    return Backend(
        "opencl",
        # Rates are those of NVIDIA's data sheets.
        manifest=lambda device: load() if device["is_rated"] else replace(load(), rates={}),
        probe=partial(worker.probe, "opencl"),
        compile=lambda source, _, __: worker.build(wanted, source),
        disassemble=lambda _: (None, "OpenCL drivers do not show it in a form that is known of every maker"),
    )


class Request(Struct, frozen=True):
    """The options of one `eprof calibrate`.

    settings: clocks to hold; none: those in force. device: a number, or for OpenCL a name. only: names of benchmarks;
    none: all. quick: the few benchmarks of `--quick`, each with random operands and with zeros. log: of another meter.
    """

    directory: Path
    settings: tuple[Setting, ...] = ()
    device: str = "0"
    timing: Timing = field(default_factory=Timing)
    only: tuple[str, ...] = ()
    quick: bool = False
    resume: bool = False
    log: results.MeterLog | None = None


class Session(Struct):
    """One `eprof calibrate` and how far it is. absent: benchmarks the device lacks. say: shows the user a sentence."""

    request: Request
    say: Callable[[str], None]
    backend: Backend = Backend()
    progress: Progress = field(default_factory=Progress)
    manifest: Manifest = field(default_factory=load)
    device: dict[str, Any] = field(default_factory=dict)
    benchmarks: list[Benchmark] = field(default_factory=list)
    absent: list[Benchmark] = field(default_factory=list)
    images: list[Compiled] = field(default_factory=list)
    contradictions: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def events_file(self) -> Path:
        """results.jsonl, to which the worker of the calibration appends an event a line."""
        return self.request.directory / "results.jsonl"

    def prepare(self) -> None:
        """Begin a calibration: probe device, meter and clocks, compile into its directory, check. Raises EprofError."""
        self.device = self.backend.probe(self.request.device)
        self.manifest = self.backend.manifest(self.device)
        capability = capability_of(str(self.device["capability"]))
        self.benchmarks = manifests.choose(self.manifest, capability, self.request.only)
        if self.request.quick:
            self.benchmarks = manifests.choose_quick(self.manifest, capability)
        self._leave_out([benchmark for benchmark in self.benchmarks if not self._has_memory_of(benchmark)])
        if self.request.log is None:
            self.backend.meter(self.device)
        if self.request.settings:
            cuda.check(self.request.settings, self.backend.clocks(str(self.device["bus"])))
        place = self.request.directory
        about = place / "calibration.json"
        measured = bool(results.read(self.events_file))
        if measured and not self.request.resume:
            go_on = "go on with it by --resume, or name another --directory."
            raise EprofError(f"{place}: holds a calibration already; {go_on}")
        if measured and about.exists():
            before = json.loads(about.read_text(encoding="utf-8"))["device"]
            if any(before.get(key) != self.device.get(key) for key in ("name", "capability", "bus")):
                raise EprofError(
                    f"{place}: was measured on {before.get('name')} at {before.get('bus')}, but this is "
                    f"{self.device.get('name')} at {self.device.get('bus')}; name another --directory."
                )
        try:
            (place / "build").mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise EprofError(f"{place}: cannot be made ({err.strerror or err}).") from err
        for name in sorted({benchmark.source for benchmark in self.benchmarks}):
            source = place / "build" / name
            source.write_text(manifests.source_text(name), encoding="utf-8")
            compiled = self.backend.compile(source, str(self.device["capability"]), source.with_suffix(""))
            self.images.append(compiled)
            if compiled.kernels is not None:
                own = [benchmark for benchmark in self.benchmarks if benchmark.source == name]
                self._leave_out([benchmark for benchmark in own if benchmark.kernel not in compiled.kernels])
        if not self.benchmarks:
            raise CollectError(f"There is nothing to measure. {' '.join(self.missing())}")
        self._look_at_machine_code()
        if self.device.get("simulated"):
            self.notes.append("This device is simulated: its times are the simulation's, and a table is a trial.")

    def _has_memory_of(self, benchmark: Benchmark) -> bool:
        """Whether the calibrated device has the cache that a benchmark reads, or shared memory of its own."""
        if benchmark.region in ("l2", "l3"):
            return bool(self.device[f"{benchmark.region}_bytes"])
        is_of_shared = any(word.startswith("shared") for word in benchmark.count)
        return not is_of_shared or bool(self.device.get("has_shared", True))

    def _leave_out(self, benchmarks: Sequence[Benchmark]) -> None:
        self.absent += benchmarks
        self.benchmarks = [benchmark for benchmark in self.benchmarks if benchmark not in benchmarks]

    def _look_at_machine_code(self) -> None:
        """Compare each loop's instructions with the manifest: fill `contradictions`, and note the result in `notes`."""
        code: dict[str, Any] = {}
        for compiled in self.images:
            text, why = self.backend.disassemble(compiled.image)
            if text is None:
                self.notes.append(f"The instruction mix was not checked in machine code: {why}.")
                return
            code |= functions(text)
        capability = capability_of(str(self.device["capability"]))
        for benchmark in self.benchmarks:
            wrong = contradictions(self.manifest, benchmark, capability, code.get(benchmark.kernel, []))
            if wrong:
                self.contradictions[benchmark.name] = wrong
        self.notes.append(
            f"Machine code: {len(self.benchmarks) - len(self.contradictions)} of {len(self.benchmarks)} benchmarks "
            "have the instruction mix that they claim."
        )

    def measure(self) -> None:
        """Run what is not measured yet, in every setting: results go to files. Raises CollectError: nothing can run."""
        about = {
            "schema": SCHEMA,
            "eprof": __version__,
            "device": self.device,
            "compiled": [compiled.how for compiled in self.images],
            "timing": asdict(self.request.timing),
            "settings": [label(setting) for setting in self.request.settings or (None,)],
            "doubts": self.contradictions,
            "notes": self.notes,
            "written_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        write(self.request.directory / "calibration.json", json.dumps(about, indent=1).encode(), True)
        for setting in self.request.settings or (None,):
            with self.backend.held(str(self.device["bus"]), setting):
                self._measure_setting(setting)

    def _measure_setting(self, setting: Setting | None) -> None:
        """Run the worker at one setting, again after a crash, until all is done, time is up or it crashes too often."""
        timing = self.request.timing
        began = time.monotonic()

        def line() -> str:
            events = self._events(setting)
            done = len({event["name"] for event in events if event["event"] == MEASURED})
            left_s = max(timing.budget_s - (time.monotonic() - began), 0.0)
            now = results.crashed(events) or "warming up"
            of = f"{done} of {len(self.benchmarks)} benchmarks"
            return f"{label(setting)} · {of} · {now} · at most {left_s:.0f} s left"

        crashed = None
        for _ in range(_MOST_STARTS):
            events = self._events(setting)
            finished = results.done(events)
            if all(finished.get(benchmark.name, 0) >= timing.rounds for benchmark in self.benchmarks):
                return
            left = timing.budget_s - (time.monotonic() - began)
            plan = self._write_plan(setting, finished, left)
            log = self.request.directory / "worker.log"
            try:
                why = self.backend.run(plan, log, left + _SLACK_S, lambda: self.progress.update(line))
            finally:
                self.progress.wipe()
            if why is None:
                return
            events = self._events(setting)
            name = results.crashed(events)
            if name is not None:
                self._append(FAILED, setting, name, why)
                self.say(f"{name} failed ({why.rstrip('.')}); going on with the others.")
                crashed = name
                continue
            if crashed is not None:
                # Nothing runs any more: not the benchmark is to blame, but the device.
                self._append(LOST, setting, crashed, why)
            if not any(event["event"] == MEASURED for event in events):
                raise CollectError(f"The benchmarks cannot be run: {why.rstrip('.')}.")
            self.say(f"The device does not answer any more ({why.rstrip('.')}); what was measured is kept.")
            return
        self.say(f"The worker crashed {_MOST_STARTS} times at {label(setting)}; what it measured is kept.")

    def _append(self, event: str, setting: Setting | None, name: str, why: str) -> None:
        with self.events_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "setting": label(setting), "name": name, "why": why}) + "\n")

    def _events(self, setting: Setting | None) -> list[results.Event]:
        return results.of_setting(results.read(self.events_file), label(setting))

    def _write_plan(self, setting: Setting | None, finished: Mapping[str, int], left_s: float) -> Path:
        """Write plan.json, the worker's jobs at one setting; drop a last line of results that a crash cut off."""
        timing = self.request.timing
        place = self.request.directory
        # A crash may have left the worker's last line unfinished: the next must not grow onto it.
        self.events_file.touch()
        content = self.events_file.read_bytes()
        if not content.endswith(b"\n"):
            self.events_file.write_bytes(content[: content.rfind(b"\n") + 1])
        plan = {
            **asdict(timing),
            "schema": SCHEMA,
            "device": self.request.device,
            "processor": self.backend.processor,
            "has_meter_log": self.request.log is not None,
            "setting": label(setting),
            "images": [str(compiled.image) for compiled in self.images],
            "results": str(self.events_file),
            "samples": str(place / "power.csv"),
            "warm_with": "fp32_fma",
            "budget_s": max(left_s, 0.0),
            "jobs": manifests.jobs(self.benchmarks, finished),
        }
        path = place / "plan.json"
        path.write_text(json.dumps(plan, indent=1), encoding="utf-8")
        return path

    def rows(self) -> list[Row]:
        """A `Row` for each benchmark measured so far at each setting. Raises LogError: the meter's log does not fit."""
        everything: Sequence[results.Event] = results.read(self.events_file)
        if self.request.log is not None:
            try:
                everything = results.with_power(everything, self.request.log, self._rates, self.say)
            except LogError as err:
                kept = "What was measured is kept: --resume takes another log, or the rest of it."
                raise LogError(f"{err} {kept}") from err
        rows: list[Row] = []
        for setting in self.request.settings or (None,):
            events = results.of_setting(everything, label(setting))
            rows += results.rows(self.manifest, self.benchmarks, self.device, events, setting, self.contradictions)
        return rows

    def _rates(self, event: results.Event) -> dict[str, float]:
        """Hardware unit ("fp32", "dram") -> what the result `event` counts there in a second."""
        capability = capability_of(str(self.device["capability"]))
        launch = event["blocks"] * event["block"], event["iterations"]
        benchmark = self.manifest.named(event["name"].removesuffix(manifests.ZEROS))
        counts = results.accessed(self.manifest.counts(benchmark, capability, *launch), capability)
        return summed((results.resource(word), count / event["time_s"]) for word, count in counts.items())

    def missing(self) -> list[str]:
        """Sentences on benchmarks without a result: those the device lacks, that failed, that time did not reach."""
        sentences = []
        if self.absent:
            names = ", ".join(benchmark.name for benchmark in self.absent)
            sentences.append(f"Not on this device, by what its driver has: {names}.")
        for setting in self.request.settings or (None,):
            events = self._events(setting)
            finished = results.done(events)
            for name, why in results.failures(events).items():
                sentences.append(f"{name} at {label(setting)} failed: {str(why).rstrip('.')}.")
            late = ", ".join(benchmark.name for benchmark in self.benchmarks if benchmark.name not in finished)
            if late:
                sentences.append(f"Not measured at {label(setting)}, for want of time: {late} (--resume goes on).")
        return sentences

    def save(self, rows: Sequence[Row]) -> Path:
        """Write rows.csv and measurements.csv; return the latter's path. Raises EprofError: no row goes into a fit."""
        results.everything(rows).to_csv(self.request.directory / "rows.csv", index=False)
        frame = results.measurements(rows, self.device)
        if frame.empty:
            why = self.request.directory / "rows.csv"
            raise EprofError(f"No benchmark gave a row for a fit; {why} says why of each.")
        path = self.request.directory / "measurements.csv"
        frame.to_csv(path, index=False, float_format="%.9g")
        return path


def kind_of(device: Mapping[str, Any]) -> str:
    """What kind of device was probed, in words: "compute capability 8.6", "16 cores"."""
    of_kind = {"cpu": "{sms} cores", "opencl": "{opencl}"}
    return of_kind.get(device["processor"], "compute capability {capability}").format(**device)
