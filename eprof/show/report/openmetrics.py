"""A report as OpenMetrics text, for Prometheus: joules by kernel and part (docs/traces.md).

All samples are gauges: a file tells of one run, and the next run may take less. A counter would have to grow from run
to run, and `rate()` would take every smaller run for a restart.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eprof.base.marks import names
from eprof.base.text import visible
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.profile import schema
from eprof.show.report.view import View, time_of
from eprof.show.words.badges import Amount

_FAMILIES = {count.group: count.family for count in COUNTS.values()} | {CONSTANT: CONSTANT}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Labels = Mapping[str, str]
Sample = tuple[Labels, float]


def to_openmetrics(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A report as OpenMetrics, which node_exporter's textfile collector or a push gateway takes, ending in `# EOF`."""
    view = View(document)
    lines = [*_families(view), "# EOF\n"]
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _families(view: View) -> Iterator[str]:
    whole = view.document
    yield from _family(
        "eprof_run", "info", "The run, and the prices in force.", "", [(_run_labels(view), 1.0)], "_info"
    )
    yield from _gauge("eprof_run_energy", "joules", "Energy of the whole run.", _known(view.energy("total"), {}))
    measured = Amount(whole.energy_j.measured)
    yield from _gauge("eprof_run_measured_energy", "joules", "What a meter saw.", _known(measured, {}))
    yield from _gauge("eprof_run_time", "seconds", "Time of all kernels.", _known(view.time, {}))
    if view.costs is not None:
        energies = (sample for kernel in view.kernels for sample in _part_samples(view, kernel))
        yield from _gauge("eprof_kernel_energy", "joules", "Energy of a kernel by part.", energies)
        unknown = (_unknown_parts(view, kernel) for kernel in view.kernels)
        yield from _gauge("eprof_kernel_unknown_parts", "", "Parts whose energy is unknown or a bound.", unknown)
    times = (sample for kernel in view.kernels for sample in _known(time_of(kernel), _kernel_labels(kernel)))
    yield from _gauge("eprof_kernel_time", "seconds", "Time of all launches of a kernel.", times)
    launches = ((_kernel_labels(kernel), float(kernel.launches)) for kernel in view.kernels)
    yield from _gauge("eprof_kernel_launches", "", "Launches of a kernel.", launches)


def _run_labels(view: View) -> Labels:
    whole = view.document
    return {"eprof": whole.eprof, "title": whole.title, "created": whole.created_utc, **_pricing(view)}


def _pricing(view: View) -> Labels:
    if view.costs is None:
        return {}
    setting = view.costs.setting
    clocks = [setting.get("core_mhz"), setting.get("memory_mhz")]
    label = "/".join(f"{mhz:g}" for mhz in clocks if mhz is not None)
    basis = "metered" if view.to_meter is not None else view.costs.basis
    return {"costs": view.costs.name, "setting": label or "fixed", "basis": basis or "not stated"}


def _kernel_labels(kernel: schema.Kernel) -> Labels:
    return {"gpu": kernel.device or "", "kernel": kernel.name}


def _part_samples(view: View, kernel: schema.Kernel) -> Iterator[Sample]:
    for group, amount in view.all_groups_of(kernel).items():
        labels = {**_kernel_labels(kernel), "part": group, "family": _FAMILIES[group], **_pricing(view)}
        yield from _known(amount, labels)


def _unknown_parts(view: View, kernel: schema.Kernel) -> Sample:
    parts = view.all_groups_of(kernel).values()
    return _kernel_labels(kernel), float(sum(amount.value is None or amount.lower for amount in parts))


def _known(amount: Amount, labels: Labels) -> Iterable[Sample]:
    """The OpenMetrics sample of an amount, with its marks as a label; nothing where it is not known."""
    return [] if amount.value is None else [({**labels, "marks": " ".join(names(amount.marks))}, amount.value)]


def _gauge(name: str, unit: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    return _family(f"{name}_{unit}" if unit else name, "gauge", text, unit, samples)


def _family(name: str, kind: str, text: str, unit: str, samples: Iterable[Sample], suffix: str = "") -> Iterator[str]:
    """A metric family of OpenMetrics; nothing where it has no samples.

    Empty labels are the same as none, and left out.
    """
    lines = [f"{name}{suffix}{_labelled(labels)} {value!r}" for labels, value in samples]
    if not lines:
        return
    yield f"# TYPE {name} {kind}"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {text}"
    yield from lines


def _labelled(labels: Labels) -> str:
    pairs = [f'{key}="{visible(value).translate(_ESCAPES)}"' for key, value in labels.items() if value]
    return f"{{{','.join(pairs)}}}" if pairs else ""
