"""How metered energy was split, in sentences: by which shape and factor, and what time alone would say."""

from collections.abc import Iterator

from eprof.base.text import when
from eprof.profile import schema
from eprof.profile.metering import BY_TIME
from eprof.show.report.view import View, by_time_of, energy_of
from eprof.show.words.numbers import plain, quantity, whole

Kernel = tuple[schema.Kernel, float, float]


def sentences(view: View) -> Iterator[str]:
    """How metered energy was split, in sentences; None where no meter was used."""
    if view.to_meter is None:
        return
    to_meter = view.to_meter
    idle = ""
    if to_meter.idle_j:
        idle = f", {quantity(to_meter.idle_j, 'J')} of it idle for {quantity(to_meter.idle_s or 0, 's')}"
    metered = f"{quantity(to_meter.metered_j, 'J')} were metered ({to_meter.source}){idle}."
    if is_by_time(view):
        yield f"{metered} They are split by time alone."
        return
    yield f"{metered} They are split by counts: {_shape(view, to_meter)} times {plain(to_meter.factor)}."
    if len(view.kernels) > 1:
        yield _by_time(view, to_meter)


def is_by_time(view: View) -> bool:
    """Whether metered energy was split by time alone, because nothing that was counted has a price."""
    return view.to_meter is not None and view.to_meter.shape == BY_TIME


def brief(view: View) -> str:
    """How metered energy was split, in two lines: shape and factor, and the kernel of which time says most else."""
    if view.to_meter is None or is_by_time(view):
        return ""
    split = f"Split by {_shape(view, view.to_meter)} times {plain(view.to_meter.factor)}."
    apart = _apart(view, view.to_meter.within)
    if not apart:
        return f"{split} By time alone: much the same."
    kernel, by_counts, by_time = apart[0]
    name = view.label(kernel)
    return f"{split} By time alone {name}: {quantity(by_time, 'J')}, not {quantity(by_counts, 'J')}."


def certainty(view: View, to_meter: schema.ToMeter) -> str:
    """What of the metered numbers is measured, and how well the rest is known."""
    idle = when(to_meter.idle_j, " together with idle time")
    kernels = view.nouns.kernels
    if len(view.kernels) == 1:
        return f"The total{idle} is what the meter saw."
    return (
        f"Total{idle}: what the meter saw. Split over {kernels}: estimated, nine {kernels} of ten are a factor of "
        f"{to_meter.within:g} off at most."
    )


def _shape(view: View, to_meter: schema.ToMeter) -> str:
    """Whose prices give the shape of the split of metered energy."""
    if to_meter.basis == "estimated":
        return f"prices estimated for a {view.nouns.processor} that nobody measured,"
    whose = when(not to_meter.own, f", another {view.nouns.processor}'s table,")
    return f"the prices of {to_meter.shape}{whose}"


def _by_time(view: View, to_meter: schema.ToMeter) -> str:
    """What each kernel would take of the metered energy by time alone, and whether the difference is certain."""
    known = f"a factor of {to_meter.within:g}"
    apart = _apart(view, to_meter.within)
    if not apart:
        return f"Time alone would say the same of every {view.nouns.kernel}, as far as the split is known (to {known})."
    kernel, by_counts, by_time = apart[0]
    alike = len(view.kernels) - len(apart)
    return (
        f"By time alone {view.label(kernel)} would take {quantity(by_time, 'J')} instead of "
        f"{quantity(by_counts, 'J')}; for {whole(alike)} of {whole(len(view.kernels))} {view.nouns.kernels} the two "
        f"differ by less than the split is known to, {known}."
    )


def _apart(view: View, within: float) -> list[Kernel]:
    """Kernels whose metered share time alone would change, the largest difference first."""
    apart = [kernel for kernel in _kernels(view) if not _alike(kernel, within)]
    return sorted(apart, key=lambda kernel: -abs(kernel[1] - kernel[2]))


def _kernels(view: View) -> Iterator[Kernel]:
    for kernel in view.kernels:
        by_counts, by_time = energy_of(kernel, "total").value, by_time_of(kernel).value
        if by_counts is not None and by_time is not None:
            yield kernel, by_counts, by_time


def _alike(kernel: Kernel, within: float) -> bool:
    _, by_counts, by_time = kernel
    return by_counts <= by_time * within and by_time <= by_counts * within
