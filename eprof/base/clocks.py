"""A pair of clocks as users write it: core and memory clock in MHz, "852/924"."""

from msgspec import Struct

from eprof.base.text import pattern

_WRITTEN = pattern(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*+(?:MHz\s*)?")


def parse(text: str) -> tuple[float, float] | None:
    """A pair of clocks as users write it: core and memory clock in MHz; None if the text is no such pair."""
    clocks = _WRITTEN.fullmatch(text)
    return clocks and (float(clocks[1]), float(clocks[2]))


def refusal(text: str) -> str:
    """The sentence that refuses a text that is no pair of clocks."""
    return f"`{text}` is not a setting; write core and memory clock in MHz, such as 852/924."


def label(core_mhz: float, memory_mhz: float) -> str:
    """A pair of clocks as users write it, the inverse of `parse`."""
    return f"{core_mhz:g}/{memory_mhz:g}"


class Clocks(Struct, frozen=True):
    """A setting: core and memory clock in MHz."""

    core_mhz: float
    memory_mhz: float

    @property
    def label(self) -> str:
        """The clocks as users write them: "852/924"."""
        return label(self.core_mhz, self.memory_mhz)
