"""Operators as a reader thinks of them: the calls of one operator by modules of one kind together."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from eprof.base.marks import names
from eprof.base.text import cut, pattern, phrase, when
from eprof.logs.rows.log import BETWEEN
from eprof.profile import schema
from eprof.show.report.view import View, energy_of, time_of
from eprof.show.words.badges import ratio, total
from eprof.show.words.numbers import percent, whole

_SHOWN, _LENGTH = 2, 40  # innermost frames; characters of each
_INSTANCE = pattern(r"(?:_\d+|#\d+)$")
_FAMILIES = ("computation", "data", "constant", "total")
HOW = (
    "A kernel's energy is shared over its launches by their time in the trace, so that of an operator is estimated "
    "where others launch the same kernels, unless the counts are by launch."
)


def merged(operators: Iterable[schema.Operator]) -> list[schema.Operator]:
    """The operators by name and the innermost modules, without the numbers of instances; largest first.

    `BertLayer_0 > BertIntermediate_0 > Linear_4` and `BertLayer_1 > BertIntermediate_1 > Linear_10` are one.
    """
    alike: dict[tuple[str, str], list[schema.Operator]] = {}
    for operator in operators:
        frames = [_INSTANCE.sub("", frame) for frame in (operator.module or "").split(BETWEEN)]
        shown = [cut(frame, _LENGTH) for frame, _ in groupby(frames)]
        alike.setdefault((operator.name, BETWEEN.join(shown[-_SHOWN:])), []).append(operator)
    sums = [_sum(name, module, members) for (name, module), members in alike.items()]
    return sorted(sums, key=lambda each: (-(each.energy_j.total or 0.0), -(each.time_s or 0.0)))


def _sum(name: str, module: str, members: Sequence[schema.Operator]) -> schema.Operator:
    energies = {part: total(energy_of(each, part) for each in members) for part in _FAMILIES}
    time = total(map(time_of, members))
    marks = {part: names(amount.marks) for part, amount in energies.items()}
    return schema.Operator(
        name=name,
        module=module or None,
        launches=sum(each.launches for each in members),
        time_s=time.value,
        time_marks=names(time.marks),
        energy_j=schema.Joules(**{part: amount.value for part, amount in energies.items()}),
        energy_marks=schema.JouleMarks(**marks),
        kernels=[],
        marks=marks["total"],
    )


def called(operator: schema.Operator) -> str:
    """An operator and who called it: "aten::mm in BertSelfAttention > Linear"."""
    return operator.name + phrase(" in {}", operator.module)


def sentence(view: View) -> str:
    """Which operator takes most."""
    operators = merged(view.document.operators or [])
    largest = operators[0]
    share = ratio(energy_of(largest, "total"), view.energy("total")).value
    if share is None:
        share = ratio(time_of(largest), view.time).value
        return "" if share is None else f"{called(largest)} takes {percent(share)} of the time."
    known = when(view.energy("total").lower, "known ")
    return f"{called(largest)} takes {percent(share)} of the {known}energy of {whole(len(operators))} operators."
