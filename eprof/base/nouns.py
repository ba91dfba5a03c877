"""What runs, and on what, in the words of its processor: a GPU launches kernels, a CPU calls functions."""

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base.vocabulary import COUNTS, CPU, GPU, GROUPS


class Nouns(Struct, frozen=True):
    """The words for one kind of processor.

    board: what holds the processor and has a power limit. simulated: what its simulators do not count exactly. nearer:
    memory levels nearer than DRAM, the farthest first. labels: of what the vocabulary calls otherwise. energy, joule:
    what is compared, and its unit; pace: what counts are of, " a second" where logs tell rates alone.
    """

    kernel: str
    kernels: str
    launch: str
    launches: str
    processor: str
    board: str
    capability: str
    simulated: str
    nearer: tuple[str, ...]
    labels: dict[str, str] = {}
    energy: str = "energy"
    joule: str = "J"
    pace: str = ""

    @property
    def is_of_cpu(self) -> bool:
        """Whether these are the words for a CPU."""
        return self.processor == "CPU"

    def of(self, number: float) -> str:
        """The noun behind a number: "kernel" or "kernels"."""
        return self.kernel if number == 1 else self.kernels

    def label(self, word: str) -> str:
        """The label of a word of the vocabulary on this kind of processor; else of the group with this name."""
        if word in COUNTS and word not in self.labels:
            return COUNTS[word].label
        return self.group(word)

    def group(self, name: str) -> str:
        """What a group of counts is called on this kind of processor."""
        return self.labels.get(name) or GROUPS[name]


_OF_GPUS = Nouns(
    *("kernel", "kernels", "launch", "launches", "GPU", "board", "compute capability", "counts"),
    nearer=("l2", "l1", "shared"),
)
_AMD_LABELS = {"tensor": "Matrix cores", "warp_issue": "Wave instructions issued"}
OF_AMD = replace(_OF_GPUS, labels={**_AMD_LABELS, "sm_active_cycle": "Running compute units"})
_OF_CPUS = Nouns(
    *("function", "functions", "call", "calls", "CPU", "socket", "architecture", "caches"),
    nearer=("l3", "l2", "l1"),
    labels={
        "special": "Divisions and roots",
        "sfu": "Divisions and roots",
        "misc": "Moves and others",
        "global_read": "Requested read",
        "global_write": "Requested write",
    },
)


def in_document(processor: str) -> str | UnsetType:
    """The kind of processor for a document: UNSET for "gpu", which documents leave out."""
    return {GPU: UNSET}.get(processor, processor)


def nouns_of(processor: str | UnsetType | None = None) -> Nouns:
    """The words for "cpu"; for anything else ("gpu", UNSET, None) those for GPUs."""
    return _OF_CPUS if processor == CPU else _OF_GPUS
