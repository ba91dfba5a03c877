"""Metrics of ncu that other tools hand on: results of nsight-python are read, those of Kernel Tuner priced.

Results of nsight-python (NVIDIA's `@nsight.analyze.kernel`): its data frames, and the CSV that it makes of them.

Columns: docs.nvidia.com/nsight-python, "Raw Data CSV" and "Processed Data CSV": a row a run and metric, or their means
over the runs; behind the columns that are always there, one for each argument of the decorated function.

For Kernel Tuner also energy: which counters to observe, and joules from them as metrics to tune for (docs/python.md).
"""

from __future__ import annotations

import csv
import math
import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from eprof import costs as cost_tables
from eprof import logs
from eprof.base.errors import DefinitionError, LogError, UsageError
from eprof.base.text import ShortRepr, few, listed
from eprof.base.units import clock_label
from eprof.base.vocabulary import COUNTS
from eprof.counts import definition_files
from eprof.logs.log import RANGES, Log
from eprof.logs.stream import Source
from eprof.profile.planned_counters import Plan, plan
from eprof.profile.profile import build
from eprof.profilers.ncu.derived import DURATIONS
from eprof.profilers.ncu.sheet import Launch, log_of_launches

if TYPE_CHECKING:
    from eprof.costs import CostTable

KIND = "ncu-metrics"
_VALUES = ("Value", "AvgValue")
_NEEDED = ("Annotation", "Metric", "Kernel", "Unit")
# What is no argument of the function, and may differ between the metrics of one launch.
_OF_METRIC = frozenset(
    (*_VALUES, "Metric", "Unit", "StdDev", "MinValue", "MaxValue", "NumRuns", "CI95_Lower", "CI95_Upper")
    + ("RelativeStdDevPct", "StableMeasurement", "Normalized", "Geomean", "Transformed")
)
_ALWAYS = frozenset(("Annotation", "Kernel", "GPU", "Host", "ComputeClock", "MemoryClock"))
Row = Mapping[Any, Any]


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None, *_: object) -> Log:
    """Read a CSV of nsight-python. Raises LogError: it is cut off, or holds no metrics."""
    lines = b"".join(pieces).decode("utf-8", "replace").splitlines()
    try:
        log = of_rows(source.path, csv.DictReader(lines), keep, parts)
    except csv.Error as err:
        raise LogError(f"{source.path}: a line is no row of a table ({err})") from err
    return replace(log, lines=len(lines), sha256=source.sha256, size_bytes=source.size_bytes)


def of_frame(frame: Any, parts: str | None) -> Log:
    """The log of a data frame of nsight-python. Raises UsageError: it is none; LogError: it has other columns."""
    if not hasattr(frame, "to_dict"):
        raise UsageError(
            f"eprof.load takes names of files and data frames of nsight-python, no {type(frame).__name__}."
        )
    return of_rows("data frame", frame.to_dict("records"), definition_files.names_in_use("ncu"), parts)


def of_rows(path: str, rows: Iterable[Row], keep: Container[str] | None, parts: str | None) -> Log:
    """The `Log` of rows of nsight-python (column -> cell), of a CSV or a frame. Raises LogError on what is wrong."""
    launches: dict[object, Launch] = {}
    seen: Counter[object] = Counter()
    for row in rows:
        lacking = [name for name in _NEEDED if row.get(name) is None]
        if lacking or not any(name in row for name in _VALUES):
            raise LogError(
                f"{path}: is no result of nsight-python, or cut off: {', '.join(lacking) or 'a value'} is not there; "
                "give the frame that `to_dataframe()` returns, or the CSV of `output_csv=True`."
            )
        if str(row.get("Normalized", False)) not in ("False", ""):
            raise LogError(
                f"{path}: its values are normalized against {row['Normalized']}, which are no counts; profile without "
                "`normalize_against`."
            )
        about = tuple((name, str(row[name])) for name in row if name not in _OF_METRIC)
        metric = str(row["Metric"])
        # The metrics of one run stand together, those of the next run, or derived ones, behind them.
        run = seen[about, metric]
        seen[about, metric] += 1
        arguments = [f"{name}={row[name]}" for name in row if name not in _OF_METRIC | _ALWAYS]
        part = " ".join([str(row["Annotation"]), *arguments]) if parts in RANGES else None
        new = Launch(str(row["Kernel"]), str(row.get("GPU") or "") or None, {}, {}, part)
        launch = launches.setdefault((about, run), new)
        value = next(row[name] for name in _VALUES if name in row)
        try:
            launch.values[metric] = float(value)
        except (TypeError, ValueError):
            launch.values[metric] = math.nan
        launch.units[metric] = str(row["Unit"])
    if not launches:
        raise LogError(f"{path}: holds no rows of nsight-python.")
    metrics = dict.fromkeys(name for launch in launches.values() for name in launch.values)
    return log_of_launches(path, KIND, list(launches.values()), metrics, keep)


_PRICED = {"energy_j": "total_j", "computation_j": "computation_j", "data_j": "data_j", "constant_j": "constant_j"}
_CORE, _MEMORY = "nvml_gr_clock", "nvml_mem_clock"  # Kernel Tuner's parameters for clocks, MHz


class KernelTuner(ShortRepr, Struct, frozen=True, eq=False):
    """Prices for the results of Kernel Tuner on one GPU. setting: "CORE/MEMORY" in MHz; None: as they are tuned."""

    table: CostTable
    gpu: str
    setting: str | None
    planned: Plan

    @property
    def counters(self) -> list[str]:
        """The metrics of ncu that Kernel Tuner's `NCUObserver` is to collect for the prices."""
        return list(self.planned.counters)

    @property
    def missing(self) -> list[str]:
        """The kinds of work, in words, that no counter of Kernel Tuner tells: joules of kernels do not hold it."""
        return [COUNTS[word].label for word in self.planned.missing]

    def observer(self, device: int = 0) -> Any:
        """Kernel Tuner's `NCUObserver` for these counters; it needs the package nvmetrics and a GPU."""
        from kernel_tuner.observers.ncu import NCUObserver

        return NCUObserver(metrics=self.counters, device=device)

    @property
    def metrics(self) -> dict[str, Callable[[Mapping[str, Any]], float]]:
        """For Kernel Tuner's `tune_kernel(metrics=...)`: name -> function of a result, energy_j, data_j and so on."""

        @lru_cache(maxsize=1)  # Kernel Tuner asks for one metric after the other of the same result
        def priced(items: tuple[tuple[str, Any], ...]) -> dict[str, float]:
            return self.price(dict(items))

        def joules(part: str, result: Mapping[str, Any]) -> float:
            read = (*self.counters, "time", _CORE, _MEMORY)
            return priced(tuple((name, result[name]) for name in read if name in result))[part]

        return {name: partial(joules, part) for name, part in _PRICED.items()}

    def price(self, result: Mapping[str, Any]) -> dict[str, float]:
        """The joules of one configuration of Kernel Tuner: its counters of one launch, and its time in ms ("time").

        Raises UsageError: a counter or the time is not there; CostError: the table does not know the tuned clocks.
        """
        lacking = [name for name in (*self.counters, "time") if not isinstance(result.get(name), int | float)]
        if lacking:
            raise UsageError(
                f"A result of Kernel Tuner has no number for {few(lacking, 3)}; give tune_kernel "
                "`observers=[energy.observer()]`, and leave out configurations that failed."
            )
        values = {name: float(result[name]) for name in self.counters}
        values[DURATIONS[0]] = 1e6 * float(result["time"])  # ms as ns
        log = log_of_launches("Kernel Tuner", KIND, [Launch("kernel", self.gpu, values, {})], values, keep=None)
        profile = build([log], logs.combine([log], definition_files.capability_of))
        setting = self.setting
        if setting is None and result.keys() & {_CORE, _MEMORY}:  # the clocks are tuned
            default = self.table.default
            setting = clock_label(result.get(_CORE, default.core_mhz), result.get(_MEMORY, default.memory_mhz))
        sums = profile.energy(self.table, setting, to_meter=False).sums()
        return {part: float(sums[part][0]) for part in _PRICED.values()}


def kernel_tuner(costs: str, gpu: str | None = None, setting: str | None = None) -> KernelTuner:
    """Prices for the results of Kernel Tuner (github.com/KernelTuner/kernel_tuner).

    gpu: its name, if it is not the first that the table is made for.
    Warns of what has no counter. Raises CostError: no such table, no such setting; DefinitionError: it is not known
    what counts on this GPU.
    """
    table = cost_tables.load(costs)
    names = [gpu] if gpu is not None else table.devices
    name = next((name for name in names if len(definition_files.capability_of(name)) == 1), None)
    if name is None:
        raise DefinitionError(
            f"The compute capability of {gpu or table.device} is not known; name the GPU, as in "
            'eprof.kernel_tuner("a100", gpu="NVIDIA A100-SXM4-40GB").'
        )
    definition = definition_files.find("ncu", definition_files.capability_of(name)[0])
    # nvmetrics collects hardware counters by full names, not what ncu makes by opcode; shares count nothing.
    every = definition_files.names_in_use("ncu")
    offered = {
        name for name in every if not name.startswith("sass__") and not any(sign in name for sign in ("*", ".pct"))
    }
    tuner = KernelTuner(table, name, setting, plan(definition, table.at(setting), offered))
    if tuner.missing:
        warnings.warn(
            f"No counter that nvmetrics collects tells {listed(tuner.missing)}; joules of kernels with such work are "
            "lower bounds.",
            stacklevel=2,
        )
    return tuner
