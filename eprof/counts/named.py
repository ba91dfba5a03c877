"""The type of tensor work by the kernel's name, where the counters tell only how busy the tensor pipe was.

The definitions then take all of it for FP16. A library writes the type of its operands into the name ("tf32", "e4m3"):
a busy cycle does half the flops of FP16 in TF32, as many in BF16, and twice as many in FP8.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.marks import Mark
from eprof.base.text import pattern
from eprof.counts.counts import Counts, Way

_AS_FP16 = "tensor_fp16"
# The first that is found: the name of a product in TF32 or BF16 may have an f16 or f32 of its result too.
_NAMES = {
    "tensor_tf32": (pattern(r"(?i)tf32|tfloat32"), 0.5),
    "tensor_bf16": (pattern(r"(?i)bf16|bfloat16"), 1.0),
    "tensor_fp8": (pattern(r"(?i)e4m3|e5m2|fp8|_f8"), 2.0),
    _AS_FP16: (pattern(r"(?i)f16|fp16|half|hgemm|h(?:884|1688|16816)"), 1.0),
}
_ASSUMED = int(Mark.ASSUMED)


def typed_by_name(counts: Counts) -> Counts:
    """The counts with tensor work that was only taken for FP16 in the type that the kernel's name tells."""
    if any(word not in counts.amounts for word in _NAMES):
        return counts
    is_guess = (counts.amount_marks[_AS_FP16] & _ASSUMED) != 0
    types = [_type_of(name) if guess else None for name, guess in zip(counts.rows.kernel, is_guess, strict=True)]
    if not any(types):
        return counts
    amounts = {name: counts.amounts[name].copy() for name in _NAMES}
    marks = {name: counts.amount_marks[name].copy() for name in _NAMES}
    how: Mapping[str, tuple[Way, ...]] = counts.how
    for row, word in enumerate(types):
        if word is None:
            continue
        flops = amounts[_AS_FP16][row]
        amounts[_AS_FP16][row] = 0.0
        amounts[word][row] = _NAMES[word][1] * flops
        marks[word][row] = marks[_AS_FP16][row] = marks[_AS_FP16][row] & ~_ASSUMED
    for word in dict.fromkeys(filter(None, types)):
        for way in counts.how.get(_AS_FP16, ())[:1]:
            note = "cycles in which the tensor pipe was busy, times the rate of the type that the kernel's name tells"
            named = replace(way, note=note, mark=way.mark & ~_ASSUMED, kernels=types.count(word))
            how = {**how, word: (*how.get(word, ()), named)}
    number = len(counts.rows)
    return replace(
        counts,
        amounts=counts.amounts.replaced(Columns.of(amounts, number), amounts),
        amount_marks=counts.amount_marks.replaced(Columns.of(marks, number), marks),
        how=how,
    )


def _type_of(kernel: str) -> str | None:
    return next((word for word, (sign, _) in _NAMES.items() if sign.search(kernel)), None)
