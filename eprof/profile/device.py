"""`Device` of a profile: what a log's label names, and how its compute capability came to be known."""

from collections.abc import Container, Iterable, Sequence

from msgspec import Struct

from eprof.base.errors import DefinitionError
from eprof.base.gpus import UNNAMED, Traits, capability_of_label
from eprof.base.labels import made_for
from eprof.base.text import listed, phrase
from eprof.counts import definition_files


class Device(Struct, frozen=True):
    """A GPU of the logs: its label there ("Tesla K20c (0)"), what it is, and how its capability came to be known.

    may_be: the capabilities that it may have, where nothing tells which. told: what counters tell of its board.
    """

    label: str | None
    name: str | None
    index: int | None
    capability: str | None
    capability_from: str
    may_be: tuple[str, ...] = ()
    told: Traits = Traits()


def device_of(
    label: str | None,
    capability: str | None,
    counter_names: Sequence[str],
    profiler: str,
    kernels: Iterable[str] = (),
    may_be: Container[str] = (),
) -> Device:
    """The device that a log's label names, as `identify` finds it.

    A profiler's definition for simulated devices makes it one; one for any device is taken where nothing tells which.
    """
    everywhere = definition_files.any_device_capability(profiler)
    if everywhere == definition_files.SIMULATED:
        return Device(label, label, None, everywhere, "simulated device")
    alike = Device(label, *split_label(label), everywhere, f"what {profiler} counts alike on all devices")
    try:
        device = identify(label, capability, counter_names, profiler, kernels, may_be)
    except DefinitionError:
        if everywhere is None:
            raise
        return alike
    if everywhere is None or device.capability not in (everywhere, None):
        return device
    # What nothing counts alike on all devices may have names that only some have, as of Arm's events.
    has_any = definition_files.find(profiler, everywhere).profiler_names.intersection(counter_names)
    return alike if has_any or not device.may_be else device


def identify(
    label: str | None,
    capability: str | None,
    counter_names: Sequence[str],
    profiler: str,
    kernels: Iterable[str] = (),
    may_be: Container[str] = (),
) -> Device:
    """The device of a log's label, with the compute capability that `capability` says, or its name, or its counters.

    kernels, may_be: what narrows several down: kernels' names, and capabilities that multiprocessors allow. Candidates
    for a GPU that no log names are in `Device.may_be`. Raises DefinitionError with them if the GPU has a name.
    """
    name, index = split_label(label)
    by_name = definition_files.capability_of(name or "")
    if capability is not None:
        how = "--capability"
        if by_name and capability not in by_name:
            how += f", against {listed(by_name, 'or')} by its name"
        return Device(label, name, index, capability, how)
    in_column = capability_of_label(label or "")
    if in_column is not None:
        return Device(label, name, index, in_column, "the log's CC column")
    if len(by_name) == 1:
        return Device(label, name, index, by_name[0], "device name")
    by_counters = definition_files.guess_capability(counter_names, profiler)
    if not by_counters:
        return Device(label, name, index, None, "no counters that would need it")
    both = [candidate for candidate in by_counters if candidate in (by_name or by_counters)]
    if name is None and len(both) > 1 and both[0][0].isdigit():
        least, below = made_for(kernels)
        both = [candidate for candidate in both if least <= float(candidate) < below] or both
        both = [candidate for candidate in both if candidate in may_be] or both
    if both and (by_name or len({definition_files.find(profiler, candidate).name for candidate in both}) == 1):
        return Device(label, name, index, both[0], "counters present")
    if name is None:
        return Device(label, None, index, None, f"not known; it may be {listed(both, 'or')}", tuple(both))
    definitions = [definition for definition in definition_files.definitions() if definition.profiler == profiler]
    offered = [candidate for definition in definitions for candidate in definition.capabilities]
    may_be = both or [candidate for candidate in by_name if candidate in offered]
    hint = phrase("; it may be {}", listed(may_be, "or"))
    raise DefinitionError(
        f"The compute capability of {name} is not known{hint}. "
        f"Say it with --capability (for example --capability {(may_be or offered)[0]})."
    )


def capabilities_of(label: str | None) -> tuple[str | None, ...]:
    """The compute capabilities that the device with this label may have; (None,) where the label does not tell."""
    if (in_column := capability_of_label(label or "")) is not None:
        return (in_column,)
    return definition_files.capability_of(split_label(label)[0] or "") or (None,)


def split_label(label: str | None) -> tuple[str | None, int | None]:
    """The name and the index in a device's label: ("Tesla K20c", 0) of "Tesla K20c (0)"; None for what it lacks."""
    if label is None:
        return None, None
    name, bracket, index = label.rpartition(" (")
    if bracket and index.endswith(")") and index[:-1].isdecimal() and len(index) < 10:
        return None if name == UNNAMED else name, int(index[:-1])
    return label, None
