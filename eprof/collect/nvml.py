"""NVML, NVIDIA's management library (module `pynvml`): power, energy and clocks of GPUs, how busy their units are."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from eprof.base.optional import ratio
from eprof.base.resources import folder
from eprof.base.text import when
from eprof.collect.machine import has_gpu
from eprof.collect.meter import METHODS, Component, Sample, Source

# ----------------------------------------------------------------------------------------------------------------------
# Which boards a CUDA program sees: CUDA_VISIBLE_DEVICES, by the rules of the CUDA C++ Programming Guide (environment
# variables): places or beginnings of UUIDs, up to the first that is none.

_ORDER = "PCI_BUS_ID"  # in which NVML lists boards; CUDA's own order is FASTEST_FIRST


def visible(environment: Mapping[str, str], uuids: Sequence[str], names: Sequence[str]) -> tuple[list[int], str]:
    """(Places in PCI bus order of the GPUs that a CUDA program sees, ""), or (all places, why they are uncertain).

    uuids, names: of all boards, in that order.
    """
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    all_boards = list(range(len(uuids)))
    if wanted is None or not all_boards:
        return all_boards, ""
    if "GPU-" in wanted and not all(uuids):
        why = "names boards by UUIDs, which not all boards tell, so all are measured"
        return all_boards, f"CUDA_VISIBLE_DEVICES={wanted} {why}"
    boards: list[int] = []
    for word in map(str.strip, wanted.split(",")):
        if word.startswith("MIG-"):
            why = "names a part of a board, but power is measured of whole boards"
            return all_boards, f"CUDA_VISIBLE_DEVICES={wanted} {why}"
        matches = [i for i, uuid in enumerate(uuids) if word.startswith("GPU-") and uuid.startswith(word)]
        if word.isdecimal() and int(word) in all_boards:
            matches = [int(word)]
        if len(matches) != 1 or matches[0] in boards:
            break
        boards += matches
    by_place = any(word.strip().isdecimal() for word in wanted.split(","))
    if by_place and len(set(names)) > 1 and environment.get("CUDA_DEVICE_ORDER") != _ORDER:
        return all_boards, (
            f"which boards CUDA_VISIBLE_DEVICES={wanted} means depends on how fast they are, so all are measured; set "
            f"CUDA_DEVICE_ORDER={_ORDER}"
        )
    return boards, when(not boards, f"CUDA_VISIBLE_DEVICES={wanted} leaves no board visible")


INSTALL = "pip install nvidia-ml-py"
# Reasons for which a GPU runs slower than its setting, so that the energy is not that of the setting.
_SLOWED = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


class Nvml(Source):
    """GPU boards as one source: power and energy are sums, clocks the first's. note: why the boards are uncertain."""

    name = "NVML"

    def __init__(self, nvml: Any, handles: list[Any], note: str = "") -> None:
        self._nvml = nvml
        self._try = partial(_try, nvml)
        self._handles = handles
        self.covers = "the GPU board with its memory"
        if len(handles) > 1:
            self.covers = f"{len(handles)} GPU boards with their memory, those that idle too"
        if note:
            self.covers += f" ({note})"
        self._counts = None not in self._of_all(nvml.nvmlDeviceGetTotalEnergyConsumption)
        self._unit: Literal["W", "J"] = "J" if self._counts else "W"

    def _of_all(self, call: Any) -> list[Any]:
        return [self._try(call, handle) for handle in self._handles]

    def _sum(self, call: Any) -> float | None:
        """The sum of NVML's answers to `call` over all boards, in W or J (NVML's are thousandths); None: one lacks."""
        values = self._of_all(call)
        return None if None in values else sum(values) / 1e3

    def read(self, time_s: float) -> Sample:
        """Read power, energy, clocks, temperature and the reasons for a slow-down through NVML."""
        nvml, first = self._nvml, self._handles[0]
        newer = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        bits = self._try(newer or nvml.nvmlDeviceGetCurrentClocksThrottleReasons, first) or 0
        return Sample(
            time_s,
            power_w=self._sum(nvml.nvmlDeviceGetPowerUsage),
            energy_j=self._sum(nvml.nvmlDeviceGetTotalEnergyConsumption) if self._counts else None,
            core_mhz=self._try(nvml.nvmlDeviceGetClockInfo, first, nvml.NVML_CLOCK_SM),
            memory_mhz=self._try(nvml.nvmlDeviceGetClockInfo, first, nvml.NVML_CLOCK_MEM),
            temperature_c=self._try(nvml.nvmlDeviceGetTemperature, first, nvml.NVML_TEMPERATURE_GPU),
            slowed_by=tuple(word for bit, word in _SLOWED.items() if bits & bit),
        )

    def components(self) -> Iterator[Component]:
        """Each board as a component: its counter of joules if all boards have one, else its power."""
        asks = {"W": self._nvml.nvmlDeviceGetPowerUsage, "J": self._nvml.nvmlDeviceGetTotalEnergyConsumption}
        for place, handle in enumerate(self._handles):
            yield Component(f"gpu{place}", self._unit, partial(self._board, asks[self._unit], handle))

    def sampled(self) -> "Iterator[SampledBoard]":
        """The boards that can sample how busy their units are (NVML's GPM)."""
        support = getattr(self._nvml, "nvmlGpmQueryDeviceSupport", None)
        for place, handle in enumerate(self._handles):
            told = support and self._try(support, handle)
            if told and told.isSupportedDevice:
                yield SampledBoard(self._nvml, handle, place)

    def _board(self, ask: Any, handle: Any) -> float | None:
        """A board's answer to `ask` in W or J (NVML's are thousandths); None where it gives none."""
        return ratio(self._try(ask, handle), 1e3)

    def describe(self) -> dict[str, Any]:
        """The entries for `run.json`: names and power limits (W) of the GPUs, the driver, how energy is read."""
        names = [_text(name) for name in self._of_all(self._nvml.nvmlDeviceGetName)]
        return {
            **super().describe(),
            "devices": names,
            "limits_w": [limit and limit / 1e3 for limit in self._of_all(self._nvml.nvmlDeviceGetEnforcedPowerLimit)],
            "driver": _text(self._try(self._nvml.nvmlSystemGetDriverVersion)),
            "method": METHODS[self._unit],
        }


_GPM_PERIOD_S = 0.1  # as often as a board's counter of joules moves; what is sampled is of the time since the last


class SampledBoard:
    """A GPU that tells by NVML's GPM the share of time, since the last sample, in which each unit was busy.

    Components must be read in their order: the first takes the sample, the others show what it found.
    """

    def __init__(self, nvml: Any, handle: Any, place: int) -> None:
        self._nvml, self._handle, self._place = nvml, handle, place
        from eprof.base.toml import Document  # late: other meters need no definitions

        self._metrics: Mapping[str, str] = Document.read(folder("counters") / "dcgm" / "activity.toml").data["gpm"]
        self._before, self._now = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        nvml.nvmlGpmSampleGet(handle, self._now)
        self._shares: dict[str, float | None] = {}

    def components(self) -> Iterator[Component]:
        """A component for the share (0 to 1) of each unit, and one for the clock of multiprocessors (MHz)."""
        for number, name in enumerate(self._metrics):
            ask = partial(self._share, name, number == 0)
            yield Component(f"gpu{self._place}_{name}", "share", ask, _GPM_PERIOD_S)
        nvml = self._nvml
        clock = partial(_try, nvml, nvml.nvmlDeviceGetClockInfo, self._handle, nvml.NVML_CLOCK_SM)
        yield Component(f"gpu{self._place}_sm_clock", "MHz", clock, _GPM_PERIOD_S)

    def _share(self, name: str, is_first: bool) -> float | None:
        """The share (0 to 1) of the time between two samples in which the unit `name` was busy; None: not told.

        is_first: take the sample; the other units' shares come of the same one.
        """
        if not is_first:
            return self._shares.get(name)
        nvml, self._shares = self._nvml, {}
        self._before, self._now = self._now, self._before
        if _try(nvml, nvml.nvmlGpmSampleGet, self._handle, self._now) is None:
            return None
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(self._metrics)
        asked.sample1, asked.sample2 = self._before, self._now
        for place, metric in enumerate(self._metrics.values()):
            asked.metrics[place].metricId = getattr(nvml, metric)
        if _try(nvml, nvml.nvmlGpmMetricsGet, asked) is not None:
            for metric, told in zip(self._metrics, asked.metrics, strict=False):
                self._shares[metric] = told.value / 100 if told.nvmlReturn == nvml.NVML_SUCCESS else None
        return self._shares.get(name)


def sampled_boards() -> tuple[list[SampledBoard], str]:
    """(The GPUs here that can sample how busy their units are, ""), or ([], why there are none)."""
    source, why = find()
    if not isinstance(source, Nvml):
        return [], why
    boards = list(source.sampled())
    return boards, when(not boards, "NVML: no GPU here samples its activity; those from Hopper on do (GPM)")


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def find() -> tuple[Source | None, str]:
    """(The source of all visible GPUs with a power sensor by NVML, ""), or (None, why there is none)."""
    nvml, why = load()
    if nvml is None:
        return None, why
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as err:
        return None, f"NVML: the GPUs cannot be listed ({err})"
    uuids = [_text(_try(nvml, nvml.nvmlDeviceGetUUID, handle)) or "" for handle in handles]
    names = [_text(_try(nvml, nvml.nvmlDeviceGetName, handle)) or "" for handle in handles]
    places, note = visible(os.environ, uuids, names)
    with_power = [handles[i] for i in places if _try(nvml, nvml.nvmlDeviceGetPowerUsage, handles[i]) is not None]
    if not with_power:
        return None, f"NVML: {note or 'no GPU here has a power sensor'}"
    return Nvml(nvml, with_power, note), ""


def at(bus: str) -> tuple[Any, Any, str]:
    """(NVML's module, its handle of the GPU at PCI address `bus`, ""), or None for one or both, and why."""
    library, why = load()
    if library is None:
        return None, None, why
    if not bus:
        return None, None, "NVML: OpenCL does not tell the GPU's place on the bus"
    try:
        return library, library.nvmlDeviceGetHandleByPciBusId(bus.encode()), ""
    except library.NVMLError as err:
        return library, None, f"NVML does not know the GPU at {bus} ({err})"


def board(bus: str) -> tuple[Source | None, str]:
    """(The source of the GPU at PCI address `bus` by NVML, ""), or (None, why there is none)."""
    library, handle, why = at(bus)
    if handle is None:
        return None, why
    try:
        library.nvmlDeviceGetPowerUsage(handle)
    except library.NVMLError as err:
        return None, f"NVML: this GPU has no power sensor ({err})"
    return Nvml(library, [handle]), ""


def _try(nvml: Any, call: Any, *arguments: Any) -> Any:
    """Call a function of NVML; None where it raises an NVMLError."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def load() -> tuple[Any, str]:
    """(The module pynvml, initialised, ""), or (None, why it cannot be used)."""
    try:
        import pynvml
    except ImportError:
        if has_gpu():
            return None, f"NVML: the Python package is missing ({INSTALL})"
        return None, "NVML: this machine has no NVIDIA GPU"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as err:
        return None, f"NVML: cannot be used ({err}); is the NVIDIA driver loaded?"
    return pynvml, ""
