"""`Energy`: a profile with prices on it, of one GPU or of several, and its document `eprof.profile/1`."""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Array, Floats, Ints, Texts
from eprof.base.brief import Result, brief
from eprof.base.errors import UsageError
from eprof.base.gpus import capability_of_label
from eprof.base.known import mapped
from eprof.base.marks import MISSING, names
from eprof.base.nouns import Nouns
from eprof.base.text import few, listed, phrase, printable, when
from eprof.base.vocabulary import COUNTS, PARTS, RANDOM
from eprof.costs import Costs, CostTable
from eprof.counts import counts
from eprof.counts.counts import Counts
from eprof.energy.attribution import FAMILIES, Split, unpriced
from eprof.energy.limits import Limits
from eprof.energy.limits import priced as within_limits
from eprof.energy.metering import Metered
from eprof.energy.simulated import Modelled, has_modelled_time
from eprof.logs.join.ranks import PARTS as GROUPED_PARTS
from eprof.logs.rows.log import KernelRows
from eprof.logs.runs import Measured
from eprof.profile.device import capabilities_of
from eprof.profile.grouping import Grouping, merged, parse
from eprof.profile.rooflines.work import intensity_of
from eprof.profilers import advice

if TYPE_CHECKING:
    import pandas as pd

    from eprof.profile.profile import Profile
    from eprof.profile.whatif import Answer


class Energy(Result, Struct, frozen=True, eq=False, dict=True):
    """A profile priced at one setting; kernels with the most energy (else time) come first.

    `costs`, `split` and `table` are None where no cost table is in force. modelled: how the times of simulated kernels
    were. questions, grouping: what `asking` and `grouped` added to the document. total_s: the time of all kernels,
    where it is known of them together only; those without a time took what it leaves of it. metered: how the table was
    scaled to a meter, if it was. by_component: whether time by component was asked for. gpus: where logs are of several
    GPUs, the profile of each at its own prices, the largest energy first; `costs` and `table` are None then.
    """

    profile: "Profile"
    costs: Costs | None
    counts: Counts
    split: Split | None
    modelled: Modelled | None = None
    notes: tuple[str, ...] = ()
    table: CostTable | None = None
    questions: tuple[str, ...] = ()
    grouping: Grouping | None = None
    total_s: float | None = None
    metered: Metered | None = None
    by_component: bool = False
    gpus: tuple["Energy", ...] = ()

    def __repr__(self) -> str:
        """One line: title, joules, number of kernels, cost tables."""
        tables = [f"{gpu.costs.name} at {gpu.costs.setting.label}" for gpu in self.each if gpu.costs is not None]
        table = ", ".join(tables) or "no cost table"
        joules = phrase("{:.3g} J, ", self.energy_j)
        number = len(self.counts.rows)
        kernels = f"{number} {self.counts.nouns.of(number)}"
        return brief(Energy, f"{joules}{kernels}, {table}", self.profile.title)

    @property
    def each(self) -> tuple["Energy", ...]:
        """The priced profile of each GPU with prices of its own; the profile itself, where it has one table."""
        return self.gpus or (self,)

    def check_one_gpu(self, command: str) -> None:
        """Raises UsageError if several GPUs have prices of their own, for a command that works on one."""
        if self.gpus:
            names = listed(list(dict.fromkeys(str(part.device.name) for part in self.profile.counted)))
            raise UsageError(f"{command} is of one GPU, and these logs are of {names}: give the logs of one of them.")

    def places_of(self, gpu: "Energy") -> Ints:
        """The places in this profile of the rows of `gpu`, one of `each`, in their order there."""
        own = set(gpu.counts.rows.device)
        return np.flatnonzero([label in own for label in self.counts.rows.device])

    @property
    def paying(self) -> frozenset[str]:
        """The words that cost something on some GPU of the profile."""
        tables = [gpu.costs for gpu in self.each if gpu.costs is not None]
        return frozenset(word for costs in tables for word, charge in costs.charges.items() if charge.pays)

    @property
    def weights(self) -> Floats:
        """The weight of each row, (n_rows,): its energy in J, or its time in s where no energy is known."""
        if self.split is None or np.isnan(self.split.total_j).all():
            return self.counts.rows.time_s
        return self.split.total_j

    @property
    def energy_j(self) -> float | None:
        """All energy of the kernels that is known, in J: a lower bound where `lacks_some`. None: nothing is known."""
        from eprof.profile.totals import joules_of

        return joules_of(self)["total"]

    @property
    def time_s(self) -> float | None:
        """The time of all kernels in s, as far as it is known; None: no time is known."""
        from eprof.profile.totals import time_of

        return time_of(self)

    def what_if(self, question: str) -> "Answer":
        """A modelled answer to "pi0=0.5", "setting=612/924,dram=-20%", "race"... (whatif.py). Raises EprofError."""
        from eprof.profile.whatif import ask

        return ask(self, question)

    def asking(self, *questions: str) -> "Energy":
        """The priced profile with what-if questions, whose answers stand in its document. Raises EprofError."""
        for question in questions:
            self.what_if(question)
        return replace(self, questions=(*self.questions, *questions))

    def grouped(self, *rules: str) -> "Energy":
        """The priced profile with its kernels in groups: "REGEX=NAME" each, or "device", "rank", "stream", "nvtx"...

        "rank", "stream", "nvtx" and "mark" are for logs that were loaded with `parts`. Raises UsageError.
        """
        grouping = parse(rules)
        if grouping is not None and grouping.by in GROUPED_PARTS and self.counts.rows.part is None:
            raise UsageError(f'To group by {grouping.by}, load the logs with parts="{grouping.by}".')
        return replace(self, grouping=grouping)

    def by(self, *rules: str) -> "Energy":
        """The priced profile with a row for each group in the place of kernels, as `grouped`; without rules, itself."""
        grouping = self.grouped(*rules).grouping
        if grouping is None:
            return self
        counted, split, _ = merged(self.counts, self.split, grouping.names(self.counts.rows))
        nouns = replace(counted.nouns, kernel="group", kernels="groups")
        return replace(self, counts=replace(counted, nouns=nouns), split=split, grouping=None)

    def whole(self) -> tuple["Energy", np.ndarray]:
        """The priced profile with the parts (ranks, streams, ranges) of each kernel added up; and rows' new places."""
        if self.counts.rows.part is None:
            return self, np.arange(len(self.counts.rows))
        counted, split, codes = merged(self.counts, self.split)
        order = in_order(counted.rows, split)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        split = mapped(Split.chosen, split, order)
        gpus = tuple(gpu.whole()[0] for gpu in self.gpus)
        return replace(self, counts=counted.chosen(order), split=split, grouping=None, gpus=gpus), place[codes]

    def priced(self, costs: Costs) -> "Energy":
        """The same profile with other prices, held to what its boards may draw."""
        made = replace(self, costs=costs)
        split, held_costs = within_limits(self.counts, costs, made.limits)
        order = in_order(self.counts.rows, split)
        return replace(made, costs=held_costs, counts=self.counts.chosen(order), split=split.chosen(order))

    @cached_property
    def limits(self) -> Limits:
        """The power limits of the boards that the profile's kernels ran on."""
        from eprof.profile.totals import limits_of

        return limits_of(self)

    def only(self, places: np.ndarray) -> "Energy":
        """The priced profile of some kernels, by their places."""
        return replace(
            self,
            counts=self.counts.chosen(places),
            split=mapped(Split.chosen, self.split, places),
            grouping=None,
            questions=(),
            total_s=self._total_of(places),
            metered=None,
            gpus=tuple(gpu.only(_among(places, self.places_of(gpu))) for gpu in self.gpus),
        )

    def _total_of(self, places: np.ndarray) -> float | None:
        """The total time less that of all other kernels, in s; None where one of the others has no time of its own."""
        times_s = np.delete(self.counts.rows.time_s, places)
        if self.total_s is None or np.isnan(times_s).any():
            return None
        return self.total_s - float(times_s.sum())

    @property
    def shares_socket(self) -> bool:
        """Whether constant power is taken to be that of the busy cores alone, a share of a CPU socket's."""
        return self.table is not None and self.profile.socket_share(self.table) is not None

    @property
    def is_timed(self) -> bool:
        """Whether the profile's time of all kernels is known in full: of each of them, or of all together."""
        return self.total_s is not None or bool(self.counts.rows.is_timed.all())

    @property
    def lacks_some(self) -> bool:
        """Whether some work of the priced profile was not counted, or has no price."""
        return self.split is not None and bool((self.split.row_marks & MISSING).any())

    @property
    def measured(self) -> Measured | None:
        """What a meter saw while the profiled program ran; None where none was read."""
        return self.profile.measured

    @property
    def measured_j(self) -> float | None:
        """The joules that a meter saw, or that the user says it saw; None: none are known."""
        if self.metered is not None:
            return self.metered.meter.joules
        return mapped(attrgetter("joules"), self.measured)

    @property
    def time_from(self) -> str | None:
        """Where the profile's times come from, in words; None if they are those of the logs."""
        sources = [*(part.time_from for part in self.profile.counted), self.modelled and self.modelled.how]
        return "; ".join(dict.fromkeys(source for source in sources if source)) or None

    @cached_property
    def warnings(self) -> list[str]:
        """Everything the user should know of the profile, once each: from logs, counts, checks and costs."""
        from eprof.profile.totals import held_notes

        sentences = []
        if self.measured is not None and self.metered is None:
            differs = f" It may differ from the prediction: {self.measured.reasons()}."
            sentences.append(f"Measured: {self.measured.words}.{when(self.split is not None, differs)}")
        for gpu in self.each:
            sentences += gpu._of_prices(self.gpus)
        if np.isnan(self.counts.rows.time_s).any():
            sentences.append(self._no_time())
        sentences += self._time_in_part()
        if self.grouping is not None and (unused := self.grouping.unused(self.counts.rows)):
            sentences.append(f"No {self.counts.nouns.kernel} is in the group {listed(unused, 'or')} of --group.")
        # What bears on every number stands first: a terminal shows only the first few.
        for part in self.profile.counted:
            sentences += part.warnings
        sentences += held_notes(self)
        return list(dict.fromkeys([*sentences, *self.notes, *self.counts.warnings, *self.profile.warnings]))

    def _of_prices(self, gpus: Sequence["Energy"]) -> list[str]:
        """Warnings on what the profile's prices rest on and lack. gpus: all GPUs of a profile of several, else ()."""
        if self.costs is not None:
            return [*self.costs.notes, *self._unpriced()]
        if not gpus:
            return [self._no_costs()]
        whose = self.profile.counted[0].device.name or f"a {self.profile.nouns.processor} that the logs do not name"
        return [f"No cost table is made for {whose}: its energy is missing, and totals are lower bounds."]

    def _no_costs(self) -> str:
        known = {part.device.name for part in self.profile.counted if part.device.name}
        if self.profile.is_of_cpu:
            why = "No cost table is made for this CPU" if known else "The logs do not name the CPU"
            if np.isnan(self.counts.amounts.values).all():
                return f"{why}, and nothing but time was counted: no table of prices can tell what took the energy."
            return (
                f"{why}, so no energy is predicted: name a table with --costs (sapphirerapids or icelake-sp, if it is "
                "such a server), or make one (eprof calibrate --cpu, eprof fit)."
            )
        whose = f"The logs do not name the {self.profile.nouns.processor}"
        if known:
            whose = f"No cost table is made for {listed(sorted(known))}"
        estimate = '--costs "RTX 4090", with the name of the GPU'
        if any(capability_of_label(name) is None for name in known):
            estimate = "--costs estimated"
        return (
            f"{whose}, so no energy is shown. Three ways to joules: a table of its own (eprof calibrate or eprof fit); "
            "joules that a meter saw, split by the counts (--energy 12J, or eprof run and --to-meter); a rough "
            f"estimate ({estimate})."
        )

    def _no_time(self) -> str:
        rows = self.counts.rows
        unknown = rows.chosen(np.isnan(rows.time_s)).n_kernels
        kernels = self.counts.nouns.kernels
        if self.total_s is not None:
            return (
                f"--time {self.total_s:g} is the time of all {kernels} together, and nothing tells how {unknown} of "
                "them share it: their own time and constant energy are not known; give --time KERNEL=TIME, or a "
                "trace."
            )
        devices = [counted.device for counted in self.profile.counted]
        known = [(device.capability,) if device.capability else capabilities_of(device.label) for device in devices]
        ways, bound = "perf stat -e duration_time, or LIKWID", ""  # whose logs may tell the longest time
        if not self.profile.is_of_cpu:
            bound = when(self.split is not None, ", and nothing bounds the total")
            ways = advice.commands(advice.TIMES, chain.from_iterable(known))
        if all(log.format.startswith("rocprof") for log in self.profile.logs):
            ways = advice.TIMES_ON_AMD
        whose = f"{unknown} of {rows.n_kernels} {kernels} is not known, nor is their"
        if rows.n_kernels == 1:
            whose = f"the {self.counts.nouns.kernel} is not known, nor is its"
        return f"The time of {whose} constant energy{bound}; give times along with the log ({ways}), or --time."

    def _time_in_part(self) -> list[str]:
        """A warning if a log has no time of some launches of a kernel, as intervals then have no end; else []."""
        rows = self.counts.rows
        lacks = ~np.isnan(rows.time_s) & ((rows.time_marks & MISSING) != 0)
        lacks &= ~has_modelled_time(self.counts)
        if self.split is None or self.metered is not None or not lacks.any():
            return []
        nouns = self.counts.nouns
        whose = few(list(map(printable, rows.kernel[lacks].tolist())), 1, nouns.kernels)
        return [
            f"Some {nouns.launches} of {whose} have no time in the log: nothing bounds their energy, nor the total."
        ]

    def _unpriced(self) -> list[str]:
        """Warnings on the classes that were counted without a price, and on those priced but not counted."""
        assert self.split is not None
        costs = self.costs
        assert costs is not None
        sentences: list[str] = []
        words = self.counts.amounts.names
        number = self.counts.amounts.values
        some = (~np.isnan(number) & (number != 0)).any(axis=0).tolist()
        unpriced = [word for word, there in zip(words, some, strict=True) if there and word not in costs.charges]
        nouns = self.counts.nouns
        if unpriced:
            sentences.append(
                f"{costs.name} has no price for {_labels(unpriced, nouns)}: that energy is missing, {self._bounded}."
            )
        marked = (self.counts.amount_marks.values & MISSING) != 0
        lost = dict(zip(words, (np.isnan(number) & marked).any(axis=0).tolist(), strict=True))
        paying = [word for word, charge in costs.charges.items() if charge.pays]
        if RANDOM in paying and lost.get(RANDOM, False):
            sentences.append(
                "Accesses of DRAM at random are not told apart here: their bytes pay as those that stream."
            )
        uncounted = [word for word in paying if lost.get(word, False) and word != RANDOM]
        if set(uncounted) >= {*paying} - {RANDOM}:
            sentences.append(f"No instruction and no byte was counted in these logs; {self._bounded}.")
        elif uncounted:
            sentences.append(
                f"Not counted here, though {costs.name} prices them: {_labels(uncounted, nouns)}; {self._bounded}."
            )
        return sentences

    @property
    def _bounded(self) -> str:
        return "totals are lower bounds" if self.metered is None else "only the metered total has it"

    def to_frame(self) -> "pd.DataFrame":
        """A row a kernel, largest energy first; columns carry units: `time_s`, `total_j`, `fp64_fma` (instructions)...

        `X` is the count (instructions or bytes), `X_j` its energy; `marks` are words joined by spaces. NaN = not known.
        """
        import pandas as pd

        marks = self.counts.rows.time_marks
        if self.split is not None:
            marks = self.split.row_marks
        words = [" ".join(names(mark)) for mark in marks.tolist()]
        columns: dict[str, Any] = {**self.sums(), "marks": words}
        for word in self.listed:
            columns[word] = self.counts.amounts[word]
            if self.split is not None and word in self.split.joules:
                columns[f"{word}_j"] = self.split.joules[word]
        return pd.DataFrame(columns)

    def sums(self) -> dict[str, Array]:
        """The first columns of `to_frame`: each kernel, its launches, time, energies, power and intensity."""
        rows = self.counts.rows
        split = self.split
        joules = dict.fromkeys((*FAMILIES, "total"), np.full(len(rows), np.nan))
        if split is not None:
            parts = (split.computation_j, split.data_j, split.constant_j, split.total_j)
            joules = dict(zip(joules, parts, strict=True))
        # Energy over a time that is a lower bound would bound the power on neither side.
        is_whole = (rows.time_marks & MISSING) == 0
        return {
            "device": rows.device,
            "kernel": rows.kernel,
            **({} if rows.part is None else {"part": rows.part}),
            "launches": rows.launches,
            "time_s": rows.time_s,
            **{f"{family}_j": values for family, values in joules.items()},
            "power_w": joules["total"] / np.where(is_whole & (rows.time_s > 0), rows.time_s, np.nan),
            "intensity_flop_per_byte": intensity_of(self.counts.whole),
        }

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """The words in the profile's document: counted in some kernel, or priced but missing."""
        counts = self.counts
        is_counted = ~np.isnan(counts.amounts.values).all(axis=0)
        is_lost = (np.bitwise_or.reduce(counts.amount_marks.values, axis=0) & MISSING) != 0
        paying = self.paying - {RANDOM}
        is_paying = np.array([word in paying for word in counts.amounts.names], dtype=np.bool_)
        return tuple(compress(counts.amounts.names, is_counted | (is_lost & is_paying)))

    def document(self) -> dict[str, Any]:
        """The profile as the plain data of `docs/profile-json.md`: what is saved, and what every report is made of."""
        from msgspec import to_builtins

        from eprof.profile.document import document

        data: dict[str, Any] = to_builtins(document(self))
        return data


def beside(profile: "Profile", gpus: Sequence[Energy]) -> Energy:
    """One priced profile of several GPUs, each of which keeps its own prices. gpus: the priced profile of each."""
    gpus = sorted(gpus, key=lambda gpu: -(gpu.energy_j or 0.0))
    books = {gpu.counts.books for gpu in gpus if gpu.costs is not None}
    counted = counts.concat([replace(gpu.counts, books=gpus[0].counts.books) for gpu in gpus])
    split = Split.below([gpu.split or unpriced(gpu.counts) for gpu in gpus])
    order = in_order(counted.rows, split)
    notes = [note for gpu in gpus for note in gpu.notes]
    if len(books) > 1:
        notes.append("Bytes of caches are counted as each GPU's prices want them: sums over GPUs mix both ways.")
    modelled = next((gpu.modelled for gpu in gpus if gpu.modelled is not None), None)
    return Energy(
        profile,
        None,
        counted.chosen(order),
        split.chosen(order),
        modelled,
        tuple(dict.fromkeys(notes)),
        gpus=tuple(gpus),
    )


def _among(places: Ints, own: Ints) -> Ints:
    """Turn row numbers of the profile of all GPUs into those of one GPU, whose rows are `own`; drop those of others."""
    return np.searchsorted(own, places[np.isin(places, own)])


def in_order(rows: KernelRows, split: Split | None) -> Ints:
    """Places of the profile's kernels: most energy first, then most time, then by name; unknown ones last."""
    # The last key counts first.
    keys = [_ranks(rows.device), _ranks(rows.kernel), -rows.time_s]
    if split is not None:
        keys.append(-split.total_j)
    return np.lexsort(np.stack(keys))


def _ranks(texts: Texts) -> Floats:
    """The rank of each text in alphabetical order, (n,); None is last."""
    rank: dict[str | None, int] = {
        text: place for place, text in enumerate(sorted({text for text in texts if text is not None}))
    }
    return np.array([rank.get(text, len(rank)) for text in texts], dtype=np.float64)


def _labels(words: Sequence[str], nouns: Nouns) -> str:
    """The labels of these words as a list in a sentence; all parts of a class go as one: "FP64 and FP32 other"."""
    complete = {part: whole for whole, parts in PARTS.items() if set(parts) <= set(words) for part in (whole, *parts)}
    label_of = {word: nouns.label(word) for word in words}
    label_of |= {word: nouns.group(COUNTS[complete[word]].group) for word in words if word in complete}
    return listed(list(dict.fromkeys(label_of.values())))
