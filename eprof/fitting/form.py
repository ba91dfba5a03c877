"""The form of a fit: which terms, which voltages, which residuals count how much."""

from collections.abc import Mapping
from dataclasses import dataclass

VOLTAGES = ("estimated", "given", "one")
WEIGHTS = ("relative", "absolute")
LOSSES = ("l2", "l1")


@dataclass(frozen=True)
class Form:
    """What is fitted, and how.

    voltages: "estimated" (a free one a clock level), "given" (columns of the measurements), "one" (V = 1 everywhere).
    clock_tree: whether power that goes with clock times V^2 is a term. weights: "relative" rows weigh 1/P. loss: "l1"
    weighs rows down that fit badly (IRLS). ridge: how strongly energies are drawn towards `prior` (pJ), or to zero; in
    units of rows. starts: how many sets of voltages the search begins from.
    """

    voltages: str = "estimated"
    clock_tree: bool = True
    weights: str = "relative"
    loss: str = "l2"
    ridge: float = 0.0
    prior: Mapping[str, float] | None = None
    starts: int = 4

    def __post_init__(self) -> None:
        for name, value, known in (
            ("voltages", self.voltages, VOLTAGES),
            ("weights", self.weights, WEIGHTS),
            ("loss", self.loss, LOSSES),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; use one of: {', '.join(known)}")
