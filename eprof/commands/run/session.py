"""One `eprof run`: its measurements one after the other, everything kept as it comes."""

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof import __version__
from eprof.base.errors import CollectError, EprofError, UsageError
from eprof.base.optional import either, mapped
from eprof.base.text import counted
from eprof.cli.output import Progress
from eprof.collect import machine, process
from eprof.collect.collector import COUNTERS, ENERGY, TIME, Place, Step, Then, Verdict
from eprof.collect.directory import COMPLETE, PARTIAL, SCHEMA, create
from eprof.collect.process import Ended, Streams, held
from eprof.commands.run.program_io import NOTHING, Input, Splitter, Watch
from eprof.commands.run.settings import Settings, Setup, prepare

if TYPE_CHECKING:
    from eprof.collect.meter import Meter
    from eprof.profile.profile import Profile

# Variables that change what a GPU program does or where it runs; no others are written down, they may hold secrets.
_TELLING = (
    *("CUDA_", "NVIDIA_", "OCL_", "OCLGRIND_", "OMP_", "OMPI_COMM_WORLD_", "PMI_"),
    *("SLURM_PROCID", "SLURM_NTASKS", "LD_PRELOAD", "LANG", "LC_ALL"),
)
# After so long a run says once what would be quicker.
_LONG_S = 60.0
_FEW = 10  # launches do not make a rate: kernels differ
# For the program that makes a log of a trace; traces of gigabytes take minutes.
_PATIENCE_S = 1800.0
_LONGEST_ERRORS = 1 << 20
# The time of a short program of a CPU is the median of so many runs, and of as many as take so long together.
_LEAST_RUNS, _MOST_RUNS, _SHORT_S = 3, 15, 1.0


class Session:
    """One `eprof run`: its setup, and how far it is. Raises CollectError if its run directory cannot be made."""

    def __init__(self, setup: Setup, progress: Progress | None = None) -> None:
        self.setup = setup
        self.settings = setup.settings
        self.collector = setup.collector
        self.tool = setup.tool
        self.request = setup.request
        self.costs = setup.costs
        self.progress = progress or Progress()
        self.meter, components = setup.sensors()
        self.kinds = setup.measured(self.meter, components)
        self.watch = Watch(components, self.settings.marks, listens=not self.collector.simulated)
        stem = Path(self.settings.program[0]).name.lstrip(".") or "run"
        name = self.settings.place or f"{stem}.eprof"
        self.directory = create(name, self.settings.force, exact=self.settings.place is not None)
        self.planned: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.measurements: list[dict[str, Any]] = []
        self.status: int | None = None
        self.launches: int | None = None
        self._lost = self._is_stopped = self._is_ours = False
        self._is_long = False
        self.run_now = self.runs_planned = 1
        self.started = _now()
        self.commit = machine.revision()

    def run(self) -> int:
        """Make all measurements; returns the program's exit status. Raises CollectError if nothing could be run."""
        self._save()
        repeats = dict.fromkeys(self.kinds, self.settings.repeat or 1)
        if TIME in self.kinds:
            repeats = dict.fromkeys((TIME, ENERGY), self.settings.repeat or 1)
        if self.settings.repeat is None and self.collector.times_alone:
            repeats[TIME] = _MOST_RUNS
        todo = [(kind, number) for kind in self.kinds for number in range(1, repeats.get(kind, 1) + 1)]
        complete = False
        try:
            with held() as self._signals:
                complete = self._measure_all(todo)
            # What was held back after the last measurement is not to be lost.
            if self._signals.stopped_by is not None and not self._is_stopped:
                self.warnings.append(f"Interrupted by {self._signals.stopped_by.name} after the last measurement.")
                self.status = 128 + self._signals.stopped_by
        finally:
            self._save(complete)
        if complete:
            self.directory = self.directory.in_place()
        elif old := self.directory.replaces:
            name = self.directory.path.name
            self.warnings.append(f"{old.name} still has the earlier run, as this one, in {name}, is not complete.")
        return self.status or 0

    @property
    def has_kernels(self) -> bool:
        """Whether the session left anything to report on: logs that are not known to be without kernels."""
        return any(entry["logs"] and entry["kernels"] != 0 for entry in self.measurements)

    def _measure_all(self, todo: Sequence[tuple[str, int]]) -> bool:
        """Make the measurements; returns False where something ended the session before the last of them."""
        self._source = Input(len(todo))
        for index, (measurement, number) in enumerate(todo):
            if self.settings.repeat is None and number > 1 and self._is_timed():
                continue
            self.runs_planned, self.run_now = len(todo), index + 1
            if self.settings.repeat is None:
                self.runs_planned, self.run_now = len(self.kinds), self.kinds.index(measurement) + 1
            try:
                step = self._prepare(measurement, number)
                with self._output(index, measurement, number) as outputs:
                    good = self._measure(step, number, outputs)
            except (EprofError, OSError) as err:
                # What was measured before it is kept.
                if isinstance(err, CollectError) and not self.measurements:
                    raise
                reason = str(err)
                if isinstance(err, OSError):
                    reason = f"{err.filename or 'The run'}: {err.strerror or err}."
                self.warnings.append(f"No {measurement} measurement: {reason}")
                self.status = self.status or 1
                return False
            self._signals.drain()
            stopped_by = self._signals.stopped_by
            if stopped_by is not None:
                self._is_stopped = True
                kept = "the run is not complete, and what was collected is kept."
                self.warnings.append(f"Interrupted by {stopped_by.name}: {kept}")
                # The program that it was sent on to may have answered with a code.
                if self._signals.between or self._is_ours or not self.status:
                    self.status = 128 + stopped_by
                return False
            if not good:
                return False
        return True

    def _is_timed(self) -> bool:
        """Whether the program ran often enough without profiler: a long one once, a short one for a median."""
        alone = [entry for entry in self.measurements if entry["command"] == list(self.request.program)]
        taken_s = [entry["seconds"] for entry in alone]
        is_enough = len(alone) >= _LEAST_RUNS and sum(taken_s) > _SHORT_S
        return not alone or taken_s[0] > _SHORT_S or is_enough

    def _prepare(self, measurement: str, number: int) -> Step:
        """The step of a measurement, its files written; counters are planned only now, as the run's time is known."""
        path, counters = self.directory.path, list[str]()
        if measurement == COUNTERS and not self.collector.counts_all:
            plan = self.setup.plan()
            self.planned = plan._asdict()
            self.warnings += plan.missing
            counters = list(plan.counters)
        step = self.collector.step(measurement, self.tool, self.request, Place(path, number), counters)
        try:
            for name, content in step.files.items():
                (path / name).parent.mkdir(exist_ok=True)
                (path / name).write_text(content)
        except OSError as err:
            raise CollectError(f"{path}: cannot be written to ({err.strerror or err}).") from err
        return step

    @contextlib.contextmanager
    def _output(self, index: int, measurement: str, number: int) -> Any:
        """The descriptors for standard output and errors: passed on in the first run, files of `output/` in others."""
        if index == 0:
            yield self.settings.stdout, 2
            return
        kept = self.directory.path / "output"
        kept.mkdir(exist_ok=True)
        out, err = (kept / f"{measurement}-{number}.{suffix}" for suffix in ("out", "err"))
        with out.open("ab") as out_file, err.open("ab") as err_file:
            yield out_file.fileno(), err_file.fileno()

    def _measure(self, step: Step, number: int, outputs: tuple[int, int]) -> bool:
        """Run one step, judge what it left, and write that into `run.json`; returns whether to go on to the next."""
        began = _now()
        is_kept = outputs[0] != self.settings.stdout
        start = os.lseek(outputs[1], 0, os.SEEK_END) if is_kept else 0
        meter = self.meter if step.what == ENERGY else None
        with self._watch(step).recording(self.directory.path, self._signals):
            if meter is None:
                ended, runs = self._once(step, outputs), 1
            else:
                ended, runs = self._metered(meter, step, outputs)
        for then in mapped(Then.each, step.then) or ():
            self._convert(then)
        logs = self._logs(step)
        errors = ""
        if is_kept:
            with (self.directory.path / "output" / f"{step.what}-{number}.err").open("rb") as file:
                # A profiler speaks at the end.
                file.seek(max(start, file.seek(0, os.SEEK_END) - _LONGEST_ERRORS))
                errors = file.read().decode("utf-8", "replace")
        verdict = self.collector.judge(step, ended, logs, errors)
        entry = _entry(step, number, began, ended, runs, logs, verdict)
        if meter is not None:
            entry["energy"] = meter.result()
        self.measurements.append(entry)
        self.warnings += self._watch(step).warnings()
        good = self._settle(step, ended, verdict)
        self._save()
        return good

    def _watch(self, step: Step) -> Watch:
        """The watch of a step: the session's in the energy run, or the first if there is none; else NOTHING."""
        return self.watch if step.what == min(self.kinds, key=lambda kind: kind != ENERGY) else NOTHING

    def _convert(self, then: Then) -> None:
        """Run the command that makes a log of what a measurement left; the log has its name only when it is whole."""
        part = then.log.with_name(f"{then.log.name}.part")
        errors = then.log.with_name(f"{then.log.name}.err")
        with part.open("wb") as out, errors.open("wb") as err, Path(os.devnull).open("rb") as nothing:
            streams = Streams(nothing.fileno(), out.fileno(), err.fileno())
            try:
                ended = process.run(then.command, self._signals, streams=streams, timeout_s=_PATIENCE_S)
            finally:
                for by_product in then.beside:
                    by_product.unlink(missing_ok=True)
        if ended.status == 0:
            part.replace(then.log)
        else:
            part.unlink()
        if not errors.stat().st_size:
            errors.unlink()

    def _metered(self, meter: "Meter", step: Step, outputs: tuple[int, int]) -> tuple[Ended, int]:
        """Run the program as often as the meter's window has room: (how it ended last, how often it ran)."""
        runs = 0
        total_s = 0.0
        with meter.sampling(self.directory.path / "power.csv"):
            while True:
                ended = self._once(step, outputs)
                runs += 1
                total_s += ended.seconds
                meter.mark(runs)
                done = total_s >= meter.window_s or runs >= meter.most_runs
                if done or ended.status or ended.timed_out or self._signals.stopped_by is not None:
                    return ended, runs

    def _once(self, step: Step, outputs: tuple[int, int]) -> Ended:
        """Run a step's command once, its output passed on, or split into a log for each process: how it ended."""
        name = Path(self.request.program[0]).name
        show_progress = self._ticker(step)
        with self._source.open() as stdin, self._watch(step).program(name, outputs[0]) as stdout:
            if step.in_stdout is None or step.strip is None:
                # The first run's output is the user's: a line of progress in the middle of it would spoil it.
                tick = show_progress if outputs[0] != self.settings.stdout else None
                return self._spawn(step, Streams(stdin, stdout, outputs[1]), tick)
            # Into a log for each process; what is the program's own is passed on.
            splitter = Splitter(self.directory.logs / step.in_stdout, step.strip, stdout, self.progress.wipe)

            def split() -> None:
                splitter.started()
                splitter.tick()
                show_progress()

            try:
                return self._spawn(step, Streams(stdin, splitter.stdout, outputs[1]), split)
            finally:
                splitter.finish()
                if splitter.failed is not None:
                    self._lost = True
                    reason = f"{splitter.failed.filename}: {splitter.failed.strerror}"
                    self.warnings.append(f"Some of the {step.what} log could not be written and is lost ({reason}).")

    def _spawn(self, step: Step, streams: Streams, tick: Callable[[], None] | None) -> Ended:
        """Start a step's command with the watch's environment and the time limit, and wait for it: how it ended."""
        is_alone = step.command == self.request.program
        try:
            return process.run(
                step.command,
                self._signals,
                environment={**os.environ, **self._watch(step).environment, **step.environment},
                streams=streams,
                timeout_s=self.settings.timeout_s,
                tick=tick,
                profiler=None if is_alone else self.collector.processes,
            )
        finally:
            self.progress.wipe()

    def _ticker(self, step: Step) -> Callable[[], None]:
        """A function to be called again and again during a run, which shows how far it is."""
        began = time.monotonic()

        def line() -> str:
            seconds = time.monotonic() - began
            words = [f"{step.what} with {self.collector.name}", f"{seconds:.0f} s"]
            if self.runs_planned > 1:
                words.insert(0, f"run {self.run_now} of {self.runs_planned}")
            done = self.collector.progress(self._logs(step))
            if done is not None:
                launches = counted(done, "kernel launch", "kernel launches")
                if self.launches and 0 < done < self.launches:
                    left_s = seconds * (self.launches - done) / done
                    launches = f"{done:,} of {self.launches:,} kernel launches, about {left_s:.0f} s left"
                elif done >= _FEW:
                    launches += f", {round(60 * done / seconds, 1):,g} a minute"
                words.append(launches)
            if step.passes != "1":
                words.append(f"passes: {step.passes}")
            return " · ".join(words)

        def tick() -> None:
            self.progress.update(line)
            is_long = time.monotonic() - began > _LONG_S
            if is_long and not self._is_long and step.what == COUNTERS:
                self._is_long = True
                self.progress.say(
                    f"this has taken a minute. Quicker: {self.collector.quicker}. Ctrl-C or --timeout S ends the run, "
                    "and the report is made of what was counted by then."
                )

        return tick

    def _logs(self, step: Step) -> list[Path]:
        """The logs that a step has left in the run directory so far, sorted."""
        paths = {path for pattern in step.logs for path in self.directory.logs.glob(pattern)}
        return sorted(path for path in paths if self.collector.is_log(path))

    def _settle(self, step: Step, ended: Ended, verdict: Verdict) -> bool:
        """Add status, warnings and launches of a step that has ended to the session's; returns whether to go on."""
        self.warnings += verdict.messages
        status = self.status or 0
        if verdict.tells_status or ended.timed_out:
            status = either(verdict.program_status, ended.status)
        name = self.request.program[0]
        died_of = (ended.signal or 0) * (status > 128 and verdict.tells_status)
        if self.status is None:
            self.status = status
            if ended.timed_out:
                self.status = status or 1
            elif 0 < status <= 128:
                self.warnings.append(f"{name} ended with exit code {status}.")
        elif status != self.status and not (ended.timed_out or died_of):
            first = f"but with {self.status} in the first run."
            self.warnings.append(f"{name} ended with {status} in the {step.what} run, {first}")
        if ended.timed_out:
            limit = f"{self.settings.timeout_s:g} s (--timeout)"
            self.warnings.append(f"{name} was still running after {limit} and was stopped.")
        elif died_of:
            known = {number.value: number.name for number in signal.Signals}
            self.warnings.append(f"{name} died of {known.get(died_of, f'signal {died_of}')} in the {step.what} run.")
        no_kernels = verdict.kernels == 0 and not verdict.goes_on
        if self.launches is None and (verdict.kernels or no_kernels):
            self.launches = verdict.kernels
        failed = verdict.failed or self._lost or status > 128
        if failed and not self.status:
            self.status = 1
            self._is_ours = True
        return not (failed or ended.timed_out or no_kernels)

    def _save(self, is_complete: bool = False) -> None:
        """Write run.json: the program, the machine, the profiler, all measurements and warnings so far."""
        system, tool, settings = os.uname(), self.tool, self.settings
        record = {
            "schema": SCHEMA,
            "eprof": __version__,
            "status": {True: COMPLETE, False: PARTIAL}[is_complete],
            "program": list(self.request.program),
            "command": shlex.join(self.request.program),
            "cwd": str(Path.cwd()),
            "commit": self.commit,
            "environment": {key: value for key, value in sorted(os.environ.items()) if key.startswith(_TELLING)},
            "host": {
                "name": system.nodename,
                "system": system.sysname,
                "release": system.release,
                "machine": system.machine,
            },
            "started_utc": self.started,
            "ended_utc": _now(),
            "profiler": {
                **{name: getattr(tool, name) for name in ("name", "version", "path", "why")},
                "simulated": self.collector.simulated,
            },
            "device": {"name": tool.device, "capability": tool.capability},
            "meter": self.meter and self.meter.source.describe(),
            "exit_status": self.status,
            "measurements": self.measurements,
            "warnings": list(dict.fromkeys(self.warnings)),
            "command_line": list(settings.command_line),
            "whole": settings.whole,
            "pricing": {"costs": self.costs, "setting": settings.setting, "efficiency": settings.efficiency},
            "plan": self.planned,
            "cluster": getattr(settings.nodes, "about", None),
        }
        self.directory.save(record, last=is_complete)


def _entry(
    step: Step, number: int, began: str, ended: Ended, runs: int, logs: Sequence[Path], verdict: Verdict
) -> dict[str, Any]:
    """The entry of a measurement in run.json: a step, how it ended, the logs it left, and the profiler's verdict."""
    entry: dict[str, Any] = {
        "what": step.what,
        "number": number,
        "command": list(step.command),
        "environment": dict(step.environment),
        "why": step.why,
        "logs": [f"logs/{path.name}" for path in logs],
        "processes": max(len(logs), 1),
        "started_utc": began,
        "seconds": round(ended.seconds, 6),
        "cpu_seconds": round(ended.cpu_s, 6),
        "system_seconds": round(ended.system_s, 6),
        "page_faults": ended.page_faults,
        "queued_seconds": round(ended.queued_s, 6),
        "runs": runs,
        "passes": step.passes,
        "exit_status": ended.status,
        "program_status": verdict.program_status,
        "signal": ended.signal,
        "timed_out": ended.timed_out,
        "kernels": verdict.kernels,
        "failed": verdict.failed,
    }
    if ended.io:
        entry["io"] = dict(ended.io)
    if verdict.left_out_s:
        entry["left_out_s"] = {what: round(seconds, 6) for what, seconds in verdict.left_out_s.items()}
        entry["left_out_cpu_s"] = round(verdict.left_out_cpu_s, 6)
    if step.then is not None:
        entry["then"] = list(step.then.command)
    return entry


def _now() -> str:
    """The time in UTC as run.json has it, to the microsecond: "2026-11-29T21:07:00.000000Z"."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1000:06d}Z"


def run(
    program: Sequence[str],
    *,
    costs: str | None = None,
    setting: str | None = None,
    profiler: str = "auto",
    directory: str | None = None,
    repeat: int | None = None,
    timeout_s: float | None = None,
) -> "Profile":
    """Profile a program, given as its words, as `eprof run` does; into `directory` or the next free run directory.

    Raises CollectError (its `code` is the exit code) if nothing could be run or collected.
    """
    from eprof.profile.api import load

    if isinstance(program, str) or not program:
        raise UsageError('eprof.run takes the words of a command: eprof.run(["./fmm", "N=65536"]).')
    setup = prepare(
        Settings(
            tuple(program),
            profiler,
            costs,
            setting,
            place=directory,
            repeat=repeat,
            timeout_s=timeout_s,
            command_line=("eprof", "run", "--", *program),
        )  # fmt: skip
    )
    running = Session(setup)
    running.run()
    if not running.has_kernels:
        raise CollectError(" ".join(running.warnings) or "Nothing was collected to report on.", running.status or 1)
    return load(running.directory.path)
