"""The caches of GPUs that the simulated device models: as its plugin is told them, and what it says of them in a log.

`counters/oclgrind/caches.toml` lists them; `caches.cpp` is the model.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

from eprof.base.errors import UsageError
from eprof.base.resources import folder
from eprof.base.text import did_you_mean, few
from eprof.base.toml import Document

NONE, WARM = "none", ":warm"
CACHE, LOST = "cache ", "cache accesses lost"
_MODEL = "cache model "
_MOST_NOTES = 8
_SECTOR_MB = 32e-6
_L1_WAYS = 16
_FEW = 16  # work-items a warp


def geometry(model: str) -> str:
    """The caches of `model` in words for the plugin; "" for "none". "v100:warm": L2 keeps what a launch leaves.

    Raises UsageError if they are not known.
    """
    name = model.removesuffix(WARM)
    if name == NONE:
        return ""
    known = _known()
    if name not in known["gpu"]:
        raise UsageError(
            f"--caches {model}: the caches of {name} are not known.{did_you_mean(name, known['gpu'])} Known are "
            f"{', '.join(known['gpu'])}, each with {WARM} behind if L2 keeps what a launch leaves; {NONE}: no caches."
        )
    chip = known["gpu"][name]
    numbers = known["generation"][chip["like"]] | chip
    words = {
        "sms": numbers["sms"], "groups": numbers["groups"], "warps": numbers["warps"],
        "local": numbers["shared_kib"] << 10,
        "l1_bytes": numbers["l1_kib"] << 10, "l1_ways": _L1_WAYS, "l1_shares": int(numbers.get("l1_shares", False)),
        "l1_least": numbers.get("l1_least_kib", 0) << 10, "l1_keeps_stores": int(numbers.get("l1_keeps_stores", False)),
        "l2_bytes": numbers["l2_kib"] << 10, "l2_ways": numbers["l2_ways"], "l2_line": numbers["l2_line"],
        "warm": int(model.endswith(WARM)),
    }  # fmt: skip
    return " ".join([model, *(f"{key}={value}" for key, value in words.items())])


def models(name: str | None) -> str:
    """`name`, a cost table, if the caches of a GPU of that name are known; else NONE."""
    return str(name) if name in _known()["gpu"] else NONE


@lru_cache(maxsize=1)
def _known() -> Mapping[str, Any]:
    return Document.read(folder("counters") / "oclgrind" / "caches.toml").data


class _Counted(Protocol):
    """A kernel with its counters, as the reader of Oclgrind's logs adds them up."""

    launches: int
    counts: Counter[str]


def models_of(kernel: _Counted) -> dict[str, int]:
    """By model of caches, in how many launches of a kernel it was simulated."""
    named = kernel.counts.items()
    return {name.removeprefix(_MODEL): number for name, number in named if name.startswith(_MODEL)}


def cache_notes(kernels: Mapping[str, _Counted]) -> Iterator[str]:
    """Notes on what modelled caches serve of each kernel, the most bytes of DRAM first, and on half-empty warps."""
    modelled = [(name, kernel) for name, kernel in kernels.items() if models_of(kernel) and not kernel.counts[LOST]]
    modelled.sort(key=lambda entry: -_dram(entry[1].counts))
    # One warp a launch may well be half empty.
    several = [(name, kernel.counts) for name, kernel in modelled if kernel.counts["cache warps"] > kernel.launches]
    sparse = [f"`{name}`" for name, counts in several if counts["cache work-items"] < _FEW * counts["cache warps"]]
    if sparse:
        yield (
            f"work-groups of {few(sparse, 4)} fill less than half of their warps, so few accesses coalesce, and bytes "
            "of L1, L2 and DRAM are many: where a program names no size of work-groups, they have 1 work-item here, "
            "and more on a GPU"
        )
    for name, kernel in modelled[:_MOST_NOTES]:
        counts = {name.removeprefix(CACHE): number for name, number in kernel.counts.items()}
        requests, sectors = counts["load requests"], counts["load sectors"]
        parts = []
        if requests:
            parts.append(f"{sectors / requests:.3g} sectors a load")
        if counts["l1 load hits"]:
            parts.append(f"L1 serves {counts['l1 load hits'] / sectors:.0%} of them")
        if counts["l2 reads"]:
            parts.append(f"L2 {counts['l2 read hits'] / counts['l2 reads']:.0%} of what comes to it")
        ends = [_dram(kernel.counts, end) * _SECTOR_MB for end in ("", " least", " most")]
        parts.append("DRAM {:.3g} MB, {:.3g} to {:.3g} by how many work-groups are in flight".format(*ends))
        yield f"caches of {' and '.join(models_of(kernel))}, modelled: `{name}`: {', '.join(parts)}"


def _dram(counts: Counter[str], end: str = "") -> int:
    return sum(counts[f"cache dram {what}{end}"] for what in ("reads", "writes", "left dirty"))
