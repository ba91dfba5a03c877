"""A report as a file: JSON, Markdown, OpenMetrics text for Prometheus, flame graphs (folded stacks, speedscope).

All samples of OpenMetrics are gauges: a file tells of one run, and the next run may take less. A counter would have to
grow from run to run, and `rate()` would take every smaller run for a restart (docs/traces.md). A flame graph's widths
are microjoules, its frames the group, the kernel and what its energy goes to.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eprof import __version__
from eprof.base.errors import UsageError
from eprof.base.text import in_markdown, phrase, printable, visible, when
from eprof.base.vocabulary import GROUPS, mark_names
from eprof.commands.report.advice.levers import what_to_try
from eprof.commands.report.headline import headline
from eprof.commands.report.tables import kernel_table, operator_table, split_table
from eprof.commands.report.trust import trust
from eprof.commands.report.view import FAMILY_OF, Entry, View, time_of
from eprof.logs.log import BETWEEN
from eprof.profile import schema
from eprof.show.export import dumped, markdown, to_json
from eprof.show.words import costs as costs_words
from eprof.show.words.amounts import Amount
from eprof.show.words.blocks import Block, Notes, Sentence, Tone

__all__ = ["stacks", "to_folded", "to_markdown", "to_openmetrics", "to_speedscope", "to_json"]

_ROWS = 50  # of a table


def to_markdown(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A report as Markdown for a pull request or a notebook: the headline, the split, the kernels, the warnings."""
    view = View(document)
    heading = f"## {in_markdown(view.document.title)}"
    blocks: list[Block] = [headline(view)]
    if view.costs is not None:
        costs = [costs_words.priced(costs) + costs_words.of_gpu(costs) for costs in view.document.prices]
        blocks.append(Sentence(f"Costs: {', '.join(costs)}.", Tone.QUIET))
    blocks += [what_to_try(view), trust(view), split_table(view)]
    if view.document.operators:
        blocks.append(operator_table(view, _ROWS))
    blocks += [kernel_table(view, _ROWS), Notes(view.document.warnings, "warning")]
    return markdown(heading, blocks)


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Labels = Mapping[str, str]
Sample = tuple[Labels, float]


def to_openmetrics(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A report as OpenMetrics, which node_exporter's textfile collector or a push gateway takes, ending in `# EOF`."""
    view = View(document)
    whole, pricing = view.document, _pricing(view)
    energies: list[Sample] = []
    unknown: list[Sample] = []
    times: list[Sample] = []
    launches: list[Sample] = []
    for kernel in view.kernels:
        labels = {"gpu": kernel.device or "", "kernel": kernel.name}
        times += _known(time_of(kernel), labels)
        launches.append((labels, float(kernel.launches)))
        if view.costs is not None:
            parts = view.all_groups_of(kernel)
            for group, amount in parts.items():
                energies += _known(amount, {**labels, "part": group, "family": FAMILY_OF[group], **pricing})
            unknown.append((labels, float(sum(amount.value is None or amount.lower for amount in parts.values()))))
    told = {"eprof": whole.eprof, "title": whole.title, "created": whole.created_utc, **pricing}
    measured = Amount(whole.energy_j.measured)
    lines = [
        *_family("eprof_run", "info", "The run, and the prices in force.", "", [(told, 1.0)], "_info"),
        *_gauge("eprof_run_energy", "joules", "Energy of the whole run.", _known(view.energy("total"), {})),
        *_gauge("eprof_run_measured_energy", "joules", "What a meter saw.", _known(measured, {})),
        *_gauge("eprof_run_time", "seconds", "Time of all kernels.", _known(view.time, {})),
        *_gauge("eprof_kernel_energy", "joules", "Energy of a kernel by part.", energies),
        *_gauge("eprof_kernel_unknown_parts", "", "Parts whose energy is unknown or a bound.", unknown),
        *_gauge("eprof_kernel_time", "seconds", "Time of all launches of a kernel.", times),
        *_gauge("eprof_kernel_launches", "", "Launches of a kernel.", launches),
        "# EOF\n",
    ]
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _pricing(view: View) -> Labels:
    if view.costs is None:
        return {}
    prices = view.document.prices
    settings = []
    for costs in prices:
        clocks = [costs.setting.get("core_mhz"), costs.setting.get("memory_mhz")]
        settings.append("/".join(f"{mhz:g}" for mhz in clocks if mhz is not None) or "fixed")
    metered = when(view.to_meter, "metered")
    bases = [metered or costs.basis or "not stated" for costs in prices]
    told = {"costs": [costs.name for costs in prices], "setting": settings, "basis": bases}
    return {label: ", ".join(values) for label, values in told.items()}


def _known(amount: Amount, labels: Labels) -> list[Sample]:
    """The OpenMetrics sample of an amount, with its marks as a label, in a list; an empty list if it is not known."""
    if amount.value is None:
        return []
    return [({**labels, "marks": " ".join(mark_names(amount.marks))}, amount.value)]


def _gauge(name: str, unit: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    return _family(name + phrase("_{}", unit), "gauge", text, unit, samples)


def _family(name: str, kind: str, text: str, unit: str, samples: Iterable[Sample], suffix: str = "") -> Iterator[str]:
    """The lines of a metric family of OpenMetrics; nothing where it has no samples.

    Empty labels are the same as none, and left out.
    """
    lines = []
    for labels, value in samples:
        pairs = [f'{key}="{visible(label).translate(_ESCAPES)}"' for key, label in labels.items() if label]
        lines.append(f"{name}{suffix}{phrase('{{{}}}', ','.join(pairs))} {value!r}")
    if not lines:
        return
    yield f"# TYPE {name} {kind}"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {text}"
    yield from lines


_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNSHARED = "(of no single kernel)"
Stack = tuple[str, ...]


def stacks(document: schema.Profile | Mapping[str, Any]) -> dict[Stack, float]:
    """Joules by stack of frames, (group, kernel, part), for a flame graph; their sum is the known energy of the run.

    Kernels stand below their phase; the parts of the energy stand below ranks, streams and NVTX ranges directly, whose
    kernels the document does not tell apart. Raises UsageError where no energy is known.
    """
    view = View(document)
    whole = view.energy("total").value
    if not whole:
        raise UsageError("A flame graph shows joules, and this report has none; name a cost table with --costs.")
    joules: defaultdict[Stack, float] = defaultdict(float)
    for stack, value in _stacks(view):
        joules[stack] += value
    rest = whole - sum(joules.values())
    if rest > 1e-9 * whole:
        joules[_UNSHARED,] = rest
    return dict(joules)


def _stacks(view: View) -> Iterator[tuple[Stack, float]]:
    if view.document.operators:
        for operator in view.document.operators:
            modules = [module for module in (operator.module or "").split(BETWEEN) if module]
            for place, share in operator.kernels:
                kernel = view.kernels[place]
                for stack, joules in _part_frames(view, (*modules, operator.name, kernel.name), kernel):
                    yield stack, joules * share
        return
    groups = view.document.groups or []
    phase_of = {place: group.name for group in groups for place in group.kernels}
    is_partition = sum(len(group.kernels) for group in groups) == len(phase_of)
    if not is_partition:
        for group in groups:
            yield from _part_frames(view, (group.name,), group)
        return
    for place, kernel in enumerate(view.kernels):
        frames = [phase_of.get(place), when(view.several_devices, kernel.device or ""), kernel.name]
        yield from _part_frames(view, tuple(frame for frame in frames if frame), kernel)


def _part_frames(view: View, frames: Stack, entry: Entry) -> Iterable[tuple[Stack, float]]:
    return [
        ((*frames, GROUPS[group]), amount.value) for group, amount in view.all_groups_of(entry).items() if amount.value
    ]


def to_folded(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A flame graph for flamegraph.pl, inferno and speedscope, a line a stack: `frame;frame;frame nanojoules`.

    The weights are whole numbers. They are rounded on the running sum, so that together they are the rounded total.
    """
    lines = []
    joules, written_nj = 0.0, 0
    for stack, value in stacks(document).items():
        joules += value
        weight_nj = round(joules * 1e9) - written_nj
        written_nj += weight_nj
        frames = ";".join(printable(frame).replace(";", ",") for frame in stack)
        if weight_nj:
            lines.append(f"{frames} {weight_nj}\n")
    return "".join(lines).encode("utf-8", "backslashreplace")


def to_speedscope(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A flame graph in the file format of speedscope.app.

    It knows no joules, so weights have no unit, and the name says µJ.
    """
    joules = stacks(document)
    frames = {frame: number for number, frame in enumerate(dict.fromkeys(f for stack in joules for f in stack))}
    title = View(document).document.title
    profile = {
        "type": "sampled",
        "name": f"{title}: energy in µJ",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(joules.values()) * 1e6,
        "samples": [[frames[frame] for frame in stack] for stack in joules],
        "weights": [value * 1e6 for value in joules.values()],
    }
    file = {
        "$schema": _SCHEMA,
        "version": "0.0.1",
        "name": title,
        "exporter": f"eprof@{__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": printable(frame)} for frame in frames]},
        "profiles": [profile],
    }
    return dumped(file) + b"\n"
