"""What the GPUs and CPUs of a document are called."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import UnsetType

from eprof.base.nouns import nouns_of


class Device(Protocol):
    """A GPU or CPU in a document."""

    @property
    def name(self) -> str | None:
        """Its name; None where no log names it."""

    @property
    def processor(self) -> str | UnsetType:
        """A kind of processor: "cpu", or a GPU where nothing is said."""

    @property
    def capability(self) -> str | None:
        """Its compute capability or microarchitecture, where known."""


def name_of(device: Device) -> str:
    """What a device is called; "GPU not named" where no log names it."""
    return device.name or f"{nouns_of(device.processor).processor} not named"


def with_capability(device: Device) -> str:
    """What a device is called, with its compute capability, or microarchitecture, where that is known."""
    if not device.capability:
        return name_of(device)
    kind = nouns_of(device.processor).capability.removeprefix("compute ")
    return f"{name_of(device)} ({kind} {device.capability})"


def named(devices: Iterable[Device], call: Callable[[Device], str] = name_of) -> list[str]:
    """The names of devices, each kind once, with how many of it there are: "4 × Tesla V100"."""
    numbers = Counter(map(call, devices))
    return [f"{number} × {name}" if number > 1 else name for name, number in numbers.items()]
