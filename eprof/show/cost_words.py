"""Cost tables in words, and what the GPUs and CPUs of a document are called."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import UnsetType

from eprof.base.gpus import capability_of_label, start_of_label
from eprof.base.text import bracketed, phrase, when
from eprof.base.units import clock_label
from eprof.base.vocabulary import nouns_of
from eprof.counts.definition import ANY
from eprof.profile import schema
from eprof.profile.device import split_label
from eprof.show.numbers import NARROW


class Named(Protocol):
    """A cost table in a document."""

    @property
    def name(self) -> str:
        """The name of the cost table."""

    @property
    def basis(self) -> str | None:
        """The basis of the table's prices: "measured", "fitted", "published" or "estimated"; None: not stated."""


class Priced(Named, Protocol):
    """A cost table at a setting: of a report, or of OLD or NEW in a diff."""

    @property
    def setting(self) -> dict[str, float | None]:
        """The cost table's clocks in MHz."""


def of_gpu(costs: schema.TableInForce) -> str:
    """The names of the GPUs that the prices are for, where others have prices of their own: " (Tesla K20c)"; or ""."""
    names = dict.fromkeys(split_label(label)[0] or "not named" for label in costs.of or ())
    return bracketed(", ".join(names))


def named(costs: Named) -> str:
    """A cost table's name with the basis of its prices, "v100 (fitted)"; the name alone if it begins with the basis."""
    if costs.basis and costs.name.startswith(costs.basis):
        return costs.name
    return f"{costs.name} ({costs.basis or 'basis not stated'})"


def all_named(tables: Iterable[Named]) -> str:
    """Cost tables for the head of a page or a summary, each once: "costs a100 (published), v100 (fitted)"; or ""."""
    return phrase("costs {}", ", ".join(dict.fromkeys(map(named, tables))))


def price(charge: schema.Charge, number: Callable[[float], str]) -> str:
    """The price of one event: "7.74 pJ", "pays nothing"; "by GPU" where each of several has its own price."""
    if not charge.pays:
        return "pays nothing"
    if math.isnan(charge.pj):
        return "by GPU"
    return f"{number(charge.pj)}{NARROW}pJ"


def priced(costs: Priced) -> str:
    """A cost table with its basis and setting: "v100 (fitted) at 1380/877 MHz"."""
    return f"{named(costs)} at {setting(costs.setting)}"


def at_setting(costs: Priced) -> str:
    """A cost table at its setting, without what its prices rest on: "v100 at 1380/877 MHz"."""
    return costs.name + when(costs.setting["core_mhz"] is not None, f" at {setting(costs.setting)}")


def setting(values: Mapping[str, float | None]) -> str:
    """A cost table's setting in words: "852/924 MHz", or "its one setting" where the table does not name clocks."""
    core, memory = values["core_mhz"], values["memory_mhz"]
    if core is None or memory is None:
        return "its one setting"
    return f"{clock_label(core, memory)} MHz"


def clocks_and_volts(values: Mapping[str, float | None]) -> str:
    """Clocks and voltages of a cost table: "core 852 MHz at 1.03 V, memory 924 MHz at 1.01 V".

    Voltages that a fit estimated are known only relative to those of its reference setting.
    """
    parts = []
    for domain in ("core", "memory"):
        clock, volts, share = (values.get(f"{domain}_{unit}") for unit in ("mhz", "v", "v_rel"))
        if clock is None:
            continue
        voltage = phrase(" at {:.3g} of its reference voltage", share) or phrase(f" at {{:g}}{NARROW}V", volts)
        parts.append(f"{domain} {clock:g}{NARROW}MHz{voltage}")
    return ", ".join(parts)


class Device(Protocol):
    """A GPU or CPU in a document."""

    @property
    def name(self) -> str | None:
        """The name of the device; None where no log names it."""

    @property
    def processor(self) -> str | UnsetType:
        """The kind of processor: "cpu", or UNSET for a GPU."""

    @property
    def capability(self) -> str | None:
        """The compute capability or microarchitecture, where known."""


def name_of(device: Device) -> str:
    """The name of a device; "GPU not named" where no log names it, with the capability if that is all ncu tells."""
    told = capability_of_label(device.name or "")
    if not device.name or told is not None and not start_of_label(device.name):
        return f"{nouns_of(device.processor).processor} not named{phrase(' (CC {})', told)}"
    return device.name


def with_capability(device: Device) -> str:
    """The name of a device, with its compute capability or microarchitecture where that is known."""
    if device.capability in (None, "", ANY) or capability_of_label(device.name or ""):
        return name_of(device)
    kind = nouns_of(device.processor).capability.removeprefix("compute ")
    return f"{name_of(device)} ({kind} {device.capability})"


def devices_named(devices: Iterable[Device], call: Callable[[Device], str] = name_of) -> list[str]:
    """The names of devices, each once, with their number: "4 × Tesla V100"."""
    numbers = Counter(map(call, devices))
    return [when(number > 1, f"{number} × ") + name for name, number in numbers.items()]
