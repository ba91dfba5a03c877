"""A report as an energy flame graph: phase > kernel > part, as wide as its joules (docs/traces.md)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eprof.base.errors import UsageError
from eprof.base.text import printable
from eprof.base.version import __version__
from eprof.base.vocabulary import GROUPS
from eprof.logs.rows.log import BETWEEN
from eprof.profile import schema
from eprof.show.files.export import dumped
from eprof.show.report.view import Entry, View

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNSHARED = "(of no single kernel)"
Stack = tuple[str, ...]


def stacks(document: schema.Profile | Mapping[str, Any]) -> dict[Stack, float]:
    """Joules of each stack of frames in a flame graph; together they are the known energy of the run.

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
            modules = operator.module.split(BETWEEN) if operator.module else []
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
        frames = [phase_of.get(place), kernel.device if view.several_devices else None, kernel.name]
        yield from _part_frames(view, tuple(frame for frame in frames if frame), kernel)


def _part_frames(view: View, frames: Stack, entry: Entry) -> Iterable[tuple[Stack, float]]:
    return [
        ((*frames, GROUPS[group]), amount.value) for group, amount in view.all_groups_of(entry).items() if amount.value
    ]


def to_folded(document: schema.Profile | Mapping[str, Any]) -> bytes:
    """A flame graph, a line a stack, `frame;frame;frame nanojoules`: what flamegraph.pl, inferno and speedscope
    read.

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
