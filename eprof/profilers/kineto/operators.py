"""Who launched a kernel: annotations, modules and the operator around the launch, as one path (docs/traces.md).

A kernel has the correlation number of its launch, a row of the CUDA or HIP runtime; the launch lies within the rows of
its thread that enclose it in time. The `External id` of a kernel is not used: in older traces it is the correlation
number, and replays of graphs have none. Nor are flows, which often lack an end.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from eprof.logs.rows.events import Event
from eprof.logs.rows.log import BETWEEN

GRAPH = "(graph launch)"
OUTSIDE = "(outside of operators)"
NOT_TOLD = "(launch not in the trace)"
_OPERATOR, _ANNOTATION, _PYTHON = "cpu_op", "user_annotation", "python_function"
_MODULE = "nn.Module: "
_BACKWARD = "autograd::engine::evaluate_function: "


def has_operators(events: Iterable[Event]) -> bool:
    """Whether a PyTorch trace has operators: whether the CPU's side was recorded."""
    return any(event.cat == _OPERATOR for event in events)


def paths(events: Sequence[Event], launches: Iterable[Event]) -> dict[int, str]:
    """The path of each launch, by its `id`: "BertLayer_0 > Linear_3 > aten::addmm", the operator last."""
    wanted = {id(launch) for launch in launches}
    rows = [event for event in events if id(event) in wanted or _is_scope(event)]
    path_of: dict[int, str] = {}
    rows.sort(key=attrgetter("thread"))
    for _, of_thread in groupby(rows, key=attrgetter("thread")):
        for launch, around in _enclosed(of_thread, wanted):
            path_of[id(launch)] = _path(launch, around)
    return path_of


def _is_scope(event: Event) -> bool:
    if event.cat == _PYTHON:
        return event.name.startswith(_MODULE)
    return event.cat in (_OPERATOR, _ANNOTATION)


def _enclosed(rows: Iterable[Event], wanted: set[int]) -> Iterator[tuple[Event, list[Event]]]:
    """Each launch of a thread with the operators' events around it, the outermost first."""
    around: list[Event] = []
    for row in sorted(rows, key=lambda row: (row.ts, id(row) in wanted, -row.dur)):
        around = [scope for scope in around if scope.ts + scope.dur > row.ts or scope.ts == row.ts]
        if id(row) in wanted:
            yield row, around
        else:
            around.append(row)


def _path(launch: Event, around: Sequence[Event]) -> str:
    operators = [scope.name for scope in around if scope.cat == _OPERATOR]
    frames = [frame for scope in around if (frame := _frame(scope))]
    if "GraphLaunch" in launch.name:
        operator = GRAPH
    else:
        operator = operators[-1].removeprefix(_BACKWARD) if operators else OUTSIDE
    if frames and frames[-1] == operator:
        frames.pop()
    return BETWEEN.join(name.replace(BETWEEN, ">") for name in (*frames, operator))


def _frame(scope: Event) -> str | None:
    """What an event adds to an operator path: an annotation, a module, the function whose backward pass runs."""
    if scope.cat == _PYTHON:
        return scope.name.removeprefix(_MODULE)
    if scope.cat == _ANNOTATION:
        return scope.name
    return scope.name.removeprefix(_BACKWARD) if scope.name.startswith(_BACKWARD) else None
