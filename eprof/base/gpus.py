"""Names of GPUs: drivers and profilers write the name of one GPU in several ways."""

from eprof.base.text import pattern

_INDEX = pattern(r"(?<!\s)\s*\(\d+\)\s*$")
_LABEL = pattern(r"ncu device \d+ \(CC (\d+\.\d+)\)")


def normal_name(device_name: str) -> str:
    """The name of a kind of GPU for matching: as `normal_label`, without the " (0)" behind."""
    return normal_label(_INDEX.sub("", device_name))


def normal_label(device_label: str) -> str:
    """The label of one GPU for matching: lower case, single blanks, without the "NVIDIA" of newer drivers in front."""
    words = device_label.lower().split()
    if words[:1] == ["nvidia"]:
        del words[0]
    return " ".join(words)


def may_be_same(name: str, other_name: str) -> bool:
    """Whether two names may be of one kind of GPU: all words of the shorter one are in the longer one."""
    words = set(normal_name(name).replace("-", " ").split())
    other_words = set(normal_name(other_name).replace("-", " ").split())
    if not words or not other_words:
        return False
    return words <= other_words or other_words <= words


def capability_of_label(label: str) -> str | None:
    """The compute capability in ncu's label of a device ("ncu device 0 (CC 8.0)"), else None."""
    match = _LABEL.fullmatch(label)
    return match[1] if match else None
