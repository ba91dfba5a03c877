"""Levers on launches: longer ones, blocks of other shapes, kernels that need not run. From `eprof.profile/1`."""

import math
from collections.abc import Iterator

from msgspec.structs import replace

from eprof.base.kernels import is_plain_product
from eprof.base.labels import library_of, remedy_of
from eprof.base.optional import gathered
from eprof.base.text import counted, few, phrase, when
from eprof.commands.report.advice.waiting import CLOSED
from eprof.commands.report.change import TENTH, Try, at_most
from eprof.commands.report.first_screen import SHORT_S
from eprof.commands.report.view import View, time_of
from eprof.logs.log import OfShape
from eprof.profile import schema
from eprof.show.words.numbers import quantity

_NEARLY_ALL = 0.9  # of short launches: a start that may take so much of them ends nothing
_OFTEN, _SHAPES = 3, 4  # launches in blocks of a shape, for its time to be known; shapes that are listed
_WITH_OWN_LAUNCHES = (*CLOSED, "thrust", "cub")


def longer_launches(view: View) -> Iterator[Try]:
    """Do more in launches that are so short that they mostly wait for their start: this saves time.

    A start takes no longer than the shortest launch does in all: so much is saved at most for each launch. What a
    library launches is its own, but for products, which take batches; what need not run at all has a lever of its own.
    """
    if view.is_above or view.nouns.is_of_cpu:
        return
    times_s = [view.each_s(kernel) for kernel in view.kernels]
    own = [library_of(kernel.name) not in _WITH_OWN_LAUNCHES or _takes_batches(kernel) for kernel in view.kernels]
    own = [mine and not _remedy(kernel) for mine, kernel in zip(own, view.kernels, strict=True)]
    short = [place for place, each_s in enumerate(times_s) if 0 < each_s < SHORT_S and own[place]]
    if not short:
        return
    taken = {place: times_s[place] * view.kernels[place].launches for place in short}
    if view.has_energy:
        taken = {place: view.kernels[place].energy_j.constant or 0.0 for place in short}
    largest, quickest = max(short, key=taken.__getitem__), min(short, key=times_s.__getitem__)
    start_s, name = times_s[quickest], view.label(view.kernels[quickest])
    most = sum(joules * start_s / times_s[place] for place, joules in taken.items())
    more = counted(len(taken) - 1, f"more {view.nouns.kernel}")
    others = f" and of {more}"
    now = quantity(times_s[largest], "s")
    how = f"do more in each {view.nouns.launch} of"
    if _takes_batches(view.kernels[largest]):
        how = "batch the products of"  # those of a library take batches (cublasGemmStridedBatchedEx), and so does torch
        if not all(_takes_batches(view.kernels[place]) for place in taken):
            others = f", and do more in each {view.nouns.launch} of {more}"
    act = f"{how} {view.label(view.kernels[largest])} (now {now}){when(len(taken) > 1, others)}"
    change = Try(act, TENTH * sum(taken.values()), each="less time", adds=True)
    if most < _NEARLY_ALL * sum(taken.values()):
        why = f"if each start takes {quantity(start_s, 's')}, as a whole {view.nouns.launch} of {name} does"
        change = replace(change, most=most, why=why)
    yield change


def _takes_batches(kernel: schema.Kernel) -> bool:
    """Whether a kernel is a product of matrices, as all are that Tensile makes."""
    return is_plain_product(kernel.name) or library_of(kernel.name) == "tensile"


def better_shapes(view: View) -> Iterator[Try]:
    """Launch a kernel in blocks of the shape that took least time, of those seen with as many threads in all."""
    for kernel in view.kernels:
        often = [shape for shape in kernel.by_shape or () if shape.launches >= _OFTEN]
        for alike in gathered((shape.threads, shape) for shape in often).values():
            best, *others = sorted(alike, key=_of_one)
            slower = [shape for shape in others if shape.launch_s[0] > best.launch_s[1]]
            if not slower:
                continue
            saved_s = sum(shape.time_s - shape.launches * _of_one(best) for shape in slower)
            taken = view.timed(kernel) if view.has_energy else time_of(kernel).or_zero
            times = [f"{_block(shape)}: {quantity(_of_one(shape), 's')}" for shape in others]
            told = f"{quantity(_of_one(best), 's')}; as many threads in {few(times, _SHAPES)}"
            act = f"launch {view.label(kernel)} in blocks of {_block(best)} ({told})"
            yield Try(act, taken * saved_s / (time_of(kernel).value or math.inf))


def _of_one(shape: OfShape) -> float:
    return shape.time_s / shape.launches


def _block(shape: OfShape) -> str:
    """As in "16 x 16": without dimensions of one thread at the end."""
    sizes = " x ".join(map(str, shape.block))
    return sizes.removesuffix(" x 1").removesuffix(" x 1")


def spared_kernels(view: View) -> Iterator[Try]:
    """Avoid kernels that need not run, as their names tell; saves at most their joules, as others may get slower."""
    spared = gathered((_remedy(kernel), kernel) for kernel in view.kernels)
    for how, kernels in spared.items():
        most, *rest = sorted(kernels, key=lambda kernel: -view.ranked(kernel).or_zero)
        saved, names = sum(view.ranked(kernel).or_zero for kernel in kernels), view.label(most)
        if not view.saved_unit:
            saved = sum(map(view.timed, kernels))
        names += phrase(" and {}", when(rest, counted(len(rest), f"more {view.nouns.kernel}")))
        if how:
            act = how.format(f"{sum(kernel.launches for kernel in kernels):,}", names)
            yield replace(at_most(act, saved), adds=True)


def _remedy(kernel: schema.Kernel) -> str:
    """What spares a kernel that need not run; "": nothing that eprof knows."""
    return remedy_of(kernel.name, "spared_kernel")
