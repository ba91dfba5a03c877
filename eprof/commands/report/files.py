"""A report for other tools: JSON, Markdown, a notebook's cell, OpenMetrics, flame graphs, a trace for Perfetto.

All samples of OpenMetrics are gauges: a file tells of one run, and the next run may take less. A counter would have to
grow from run to run, and `rate()` would take every smaller run for a restart (docs/traces.md). A flame graph's widths
are microjoules, its frames the group, the kernel and what its energy goes to.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import Struct

from eprof import __version__
from eprof.base.errors import UsageError
from eprof.base.kernels import short
from eprof.base.optional import mapped
from eprof.base.text import in_markdown, phrase, printable, visible, when
from eprof.base.vocabulary import GROUPS, Mark, mark_names
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.headline import headline
from eprof.commands.report.trust import trust
from eprof.commands.report.view import FAMILY_OF, Entry, View, time_of
from eprof.commands.report.words import kernel_table, operator_table, split_table
from eprof.logs.log import BETWEEN, UNKNOWN, TableRows
from eprof.profile import document as documents
from eprof.profile import schema
from eprof.profile.profile import Energy, Profile
from eprof.show import cost_words
from eprof.show.amounts import Amount, bits
from eprof.show.blocks import Block, Legend, Notes, Sentence, Tone
from eprof.show.export import dumped, markdown, trace_name, trace_number, trace_of
from eprof.show.numbers import percent, quantity

_ROWS = 50  # of a table


def to_markdown(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A report as Markdown for a pull request or a notebook: the headline, the split, the kernels, the warnings."""
    view = View(document)
    heading = f"## {in_markdown(view.document.title)}"
    blocks: list[Block] = [headline(view)]
    if view.costs is not None:
        costs = [cost_words.priced(costs) + cost_words.of_gpu(costs) for costs in view.document.prices]
        blocks.append(Sentence(f"Costs: {', '.join(costs)}.", Tone.QUIET))
    blocks += [what_to_try(view), trust(view), split_table(view)]
    if view.document.operators:
        blocks.append(operator_table(view, _ROWS))
    blocks += [kernel_table(view, _ROWS), Notes(view.document.warnings, "warning")]
    return markdown(heading, blocks)


_CELL_ROWS = 8  # kernels


def html(result: Profile | Energy) -> str:
    """A profile as the HTML of a notebook's cell; one without prices gets those that are taken by default.

    Headline, a bar of the energy by group with its legend where any is known, and a short table of kernels.
    """
    from markupsafe import Markup

    from eprof.show import html_page
    from eprof.show.as_html import pct

    if isinstance(result, Profile):
        result = result.energy()
    view = View(documents.document(result))
    joules = {group: amount.value for group, amount in view.groups.items() if amount.value}
    whole, colors = sum(joules.values()), html_page.group_colours()
    pieces, labels = [], []
    for group, value in joules.items():
        style = f"background-color:{colors[group]}"
        pieces.append(Markup('<span style="{};width:{}"></span>').format(style, pct(100 * value / whole)))
        label = f"{view.group_label(group)} {percent(value / whole)}"
        labels.append(Markup('<span style="{}">&emsp;</span> {}').format(style, label))
    bar = Markup('<div style="display:flex;height:14px;max-width:60em">{}</div><p><small>{}</small></p>').format(
        Markup("").join(pieces), Markup(" &ensp; ").join(labels)
    )
    kernels, marks = kernel_table(view, _CELL_ROWS), Legend(view.marks if view.costs else 0)
    notes = Notes(view.document.warnings, "warning")
    return html_page.notebook_cell([headline(view), bar if whole else Markup(""), kernels, marks, notes])


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Labels = Mapping[str, str]
Sample = tuple[Labels, float]


def to_openmetrics(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A report as OpenMetrics, which node_exporter's textfile collector or a push gateway takes, ending in `# EOF`."""
    view = View(document)
    whole, pricing = view.document, {}
    if view.costs is not None:
        settings = []
        for costs in whole.prices:
            clocks = [costs.setting.get("core_mhz"), costs.setting.get("memory_mhz")]
            settings.append("/".join(f"{mhz:g}" for mhz in clocks if mhz is not None) or "fixed")
        metered = when(view.to_meter, "metered")
        pricing = {
            "costs": ", ".join(costs.name for costs in whole.prices),
            "setting": ", ".join(settings),
            "basis": ", ".join(metered or costs.basis or "not stated" for costs in whole.prices),
        }
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
        *_family("eprof_run", "", "The run, and the prices in force.", [(told, 1.0)], "info"),
        *_family("eprof_run_energy", "joules", "Energy of the whole run.", _known(view.energy("total"), {})),
        *_family("eprof_run_measured_energy", "joules", "What a meter saw.", _known(measured, {})),
        *_family("eprof_run_time", "seconds", "Time of all kernels.", _known(view.time, {})),
        *_family("eprof_kernel_energy", "joules", "Energy of a kernel by part.", energies),
        *_family("eprof_kernel_unknown_parts", "", "Parts whose energy is unknown or a bound.", unknown),
        *_family("eprof_kernel_time", "seconds", "Time of all launches of a kernel.", times),
        *_family("eprof_kernel_launches", "", "Launches of a kernel.", launches),
        "# EOF\n",
    ]
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _known(amount: Amount, labels: Labels) -> list[Sample]:
    """The OpenMetrics sample of an amount, with its marks as a label, in a list; an empty list if it is not known."""
    if amount.value is None:
        return []
    return [({**labels, "marks": " ".join(mark_names(amount.marks))}, amount.value)]


def _family(name: str, unit: str, text: str, samples: Iterable[Sample], kind: str = "gauge") -> Iterator[str]:
    """The lines of a metric family of OpenMetrics; nothing where it has no samples.

    Empty labels are the same as none, and left out.
    """
    name, suffix, lines = name + phrase("_{}", unit), when(kind == "info", "_info"), []
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
    """Stack of frames (group, kernel, part) -> J, for a report's flame graph; together all energy that is known.

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
    """Yields (stack of frames, J) for each part of a kernel's energy: below its operators, else phase, else device."""
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
    """A report's flame graph for flamegraph.pl, inferno and speedscope, a line a stack: `frame;frame;frame nanojoules`.

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
    """A report's flame graph in the file format of speedscope.app.

    That format knows no joules, so weights have no unit, and the name says µJ.
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


_LAUNCH_NAME = 80
_ROUNDING = 1e-3  # of the energy: times in ns
_GPU_NOT_NAMED = "GPU not named"


class _Launch(Struct):
    """A launch in a report's trace. lane: 0; 1, 2... where it overlaps others of its stream, drawn on further lines."""

    device: str
    stream: str
    start_ns: int
    end_ns: int
    kernel: schema.Kernel
    operator: str | None
    lane: int = 0

    @property
    def track(self) -> str:
        """The name of the trace's line that the launch is on."""
        stream = phrase("stream {}", self.stream) or "kernels"
        return stream + when(self.lane, f" (overlap {self.lane})")


def to_trace(document: schema.Profile, timeline: TableRows, warn: Callable[[str], None] = lambda note: None) -> bytes:
    """The bytes of a report's trace: launches of kernels as in `timeline`, in µs from the first start, to the ns.

    A launch takes the mean power of its kernel for as long as it ran, so the counter of a GPU's power, integrated over
    time, is the energy of its launches. Kernels that the document does not have (`-k`) and launches without a time are
    left out. warn: takes the sentence that the trace does not hold all energy of the report, which stands in it too.
    """
    kernel_of = {(kernel.device, kernel.name): kernel for kernel in document.kernels}
    columns = (timeline.device, timeline.kernel, timeline.stream, timeline.operator)
    texts = [[None] * len(timeline) if column is None else column.texts().tolist() for column in columns]
    starts = mapped(np.ndarray.tolist, timeline.start_ns) or []
    lengths_ns = np.nan_to_num(timeline.time_s * 1e9, nan=UNKNOWN).round().astype(np.int64).tolist()
    launches = [
        _Launch(device or _GPU_NOT_NAMED, stream or "", start, start + length, kernel_of[device, kernel], operator)
        for device, kernel, stream, operator, start, length in zip(*texts, starts, lengths_ns, strict=True)
        if (device, kernel) in kernel_of and start != UNKNOWN and length != UNKNOWN
    ]
    # Streams by their numbers: shorter ones are smaller.
    launches.sort(key=lambda launch: (launch.device, len(launch.stream), launch.stream, launch.start_ns))
    # Perfetto drops what overlaps on one line, so that goes to further lines.
    for _, of_stream in groupby(launches, key=lambda launch: (launch.device, launch.stream)):
        free_ns: list[int] = []
        for launch in of_stream:
            launch.lane = next((lane for lane, end in enumerate(free_ns) if end <= launch.start_ns), len(free_ns))
            free_ns[launch.lane : launch.lane + 1] = [launch.end_ns]
    first_ns = min((launch.start_ns for launch in launches), default=0)
    head = {
        "eprof": __version__,
        "title": visible(document.title),
        "costs": ", ".join(costs.name for costs in document.prices) or None,
        "first_start_ns": first_ns,
    }
    if note := _shortfall(document, launches):
        head["note"] = note
        warn(note)
    # The head comes first: it is how eprof recognises its own traces.
    return trace_of(head, _rows(launches, first_ns))


def _shortfall(document: schema.Profile, launches: Sequence[_Launch]) -> str:
    """A sentence on how much of the report's energy is not in the trace, and why; empty if all of it is."""
    total_j = document.energy_j.total
    if not total_j:
        return ""
    seconds = [(launch.end_ns - launch.start_ns) * 1e-9 for launch in launches]
    traced_j = sum((launch.kernel.power_w or 0.0) * time_s for launch, time_s in zip(launches, seconds, strict=True))
    if traced_j >= (1 - _ROUNDING) * total_j:
        return ""
    drawn = {id(launch.kernel) for launch in launches if launch.kernel.power_w is not None}
    lacking = sum(id(kernel) not in drawn for kernel in document.kernels)
    why = "not every launch has a known time"
    if lacking:
        why = f"{lacking} of {len(document.kernels)} kernels have no launch whose time and energy are known"
    return f"The launches of this trace take {quantity(traced_j, 'J')} of the report's {quantity(total_j, 'J')}: {why}."


def _rows(launches: Sequence[_Launch], first_ns: int) -> Iterator[dict[str, Any]]:
    """Yields the events of a report's trace: a process a GPU, a thread a stream, an event a launch, a GPU's power."""
    for number, (device, of_device) in enumerate(groupby(launches, key=attrgetter("device")), 1):
        own = list(of_device)
        yield trace_name("process_name", number, 0, visible(device))
        threads: dict[str, int] = {}
        for launch in own:
            if launch.track not in threads:
                threads[launch.track] = len(threads) + 1
                yield trace_name("thread_name", number, threads[launch.track], visible(launch.track))
            length_ns = launch.end_ns - launch.start_ns
            power_w = launch.kernel.power_w
            arguments: dict[str, Any] = {"kernel": visible(launch.kernel.name)}
            if power_w is not None:
                arguments |= {"energy_j": trace_number(power_w * length_ns * 1e-9), "power_w": trace_number(power_w)}
            arguments |= {"marks": " ".join(launch.kernel.marks), "operator": visible(launch.operator or "")}
            yield {
                "ph": "X",
                "name": visible(short(launch.kernel.name, _LAUNCH_NAME)),
                "cat": "kernel",
                "pid": number,
                "tid": threads[launch.track],
                "ts": (launch.start_ns - first_ns) / 1e3,
                "dur": length_ns / 1e3,
                "args": {name: value for name, value in arguments.items() if value != ""},
            }
        yield from _power(own, number, first_ns)


def _power(launches: Sequence[_Launch], process: int, first_ns: int) -> Iterator[dict[str, Any]]:
    """Yields an event of a report's trace for each change of a GPU's predicted power, W: the sum over kernels."""
    known = [launch for launch in launches if launch.kernel.power_w is not None]
    if not known:
        return
    is_bound = len(known) < len(launches) or any(bits(launch.kernel.marks) & int(Mark.MISSING) for launch in known)
    # Perfetto adds the unit, which is the name of the argument.
    name = "predicted power" + when(is_bound, ", at least,")
    changes_w: dict[int, list[float]] = {}
    for launch in known:
        power_w = launch.kernel.power_w or 0.0
        changes_w.setdefault(launch.start_ns, []).append(power_w)
        changes_w.setdefault(launch.end_ns, []).append(-power_w)
    times_ns = sorted(changes_w)
    running = np.cumsum([sum(changes_w[time_ns]) for time_ns in times_ns])
    # What rounding leaves of a sum that is nothing is no power.
    floor_w = 1e-9 * float(running.max(initial=0.0))
    running[running <= floor_w] = 0.0
    for time_ns, power_w in zip(times_ns, running.tolist(), strict=True):
        value = trace_number(power_w)
        yield {"ph": "C", "name": name, "pid": process, "ts": (time_ns - first_ns) / 1e3, "args": {"W": value}}
