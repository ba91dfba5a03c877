"""Phases and groups: kernels put together by rules, so that each group has an energy of its own.

Every kernel is in exactly one group, so the groups add up to the whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from eprof.errors import UsageError

OTHER = "other"
DEVICE = "device"


@dataclass(frozen=True)
class Rule:
    """Kernels whose name the pattern is found in are of the group `name`."""

    pattern: re.Pattern[str]
    name: str


@dataclass(frozen=True)
class Grouping:
    """How kernels are put together: by rules, the first that fits; or, with `by` "device", by their device."""

    rules: tuple[Rule, ...] = ()
    by: str | None = None

    @property
    def how(self) -> str:
        """In words, for people."""
        if self.by is not None:
            return f"by {self.by}"
        return ", ".join(f"{rule.name}: names with {rule.pattern.pattern}" for rule in self.rules)

    def names(self, kernels: pd.DataFrame) -> list[str]:
        """The group of each kernel; `kernels` has the columns `device` and `kernel`."""
        if self.by == DEVICE:
            return ["GPU not named" if pd.isna(label) else str(label) for label in kernels["device"]]
        known: dict[str, str] = {}
        for kernel in kernels["kernel"].astype(str).unique():
            known[kernel] = next((rule.name for rule in self.rules if rule.pattern.search(kernel)), OTHER)
        return [known[kernel] for kernel in kernels["kernel"].astype(str)]

    def members(self, kernels: pd.DataFrame) -> dict[str, np.ndarray]:
        """The places of each group's kernels, groups in the order of the rules, what is left over last."""
        names = np.array(self.names(kernels), dtype=object)
        order = list(dict.fromkeys([*(rule.name for rule in self.rules), *names.tolist()]))
        if OTHER in order and OTHER not in {rule.name for rule in self.rules}:
            order.append(order.pop(order.index(OTHER)))
        return {name: np.flatnonzero(names == name) for name in order}

    def unused(self, kernels: pd.DataFrame) -> list[str]:
        """The names of groups that no kernel is in: a pattern that was meant to match does not."""
        return [name for name, places in self.members(kernels).items() if not len(places)]


def parse(texts: Sequence[str]) -> Grouping | None:
    """A grouping from `--group` values, "REGEX=NAME" each, or "device" alone; None without any.

    The last `=` parts pattern and name; one name may have several rules. Raises UsageError.
    """
    if not texts:
        return None
    if DEVICE in texts:
        if len(texts) > 1:
            raise UsageError(f"--group {DEVICE}: groups by device and goes with no other --group.")
        return Grouping(by=DEVICE)
    return Grouping(tuple(_rule(text) for text in texts))


def _rule(text: str) -> Rule:
    pattern, found, name = text.rpartition("=")
    if not found or not pattern or not name.strip():
        raise UsageError(f"--group {text}: write REGEX=NAME, such as 'u_.*=near field', or {DEVICE}.")
    try:
        return Rule(re.compile(pattern), name.strip())
    except re.error as err:
        raise UsageError(f"--group {text}: `{pattern}` is not a regular expression ({err}).") from err
