"""How tables of nsys as JSON are recognised; in CSV and text they are recognised with those of ncu."""

from eprof.base.text import pattern

KIND = "nsys-summary"
_SIGN = pattern(rb'[{,]\s*"(?:Time ?\(%\)|Total Time ?\(\w+\)|Duration ?\(\w+\)|QCount|KAvg ?\(\w+\))"\s*:')


def is_in(block: bytes) -> bool:
    """Whether a block holds a row of nsys as JSON."""
    return _SIGN.search(block) is not None
