"""The form of a fit: which terms, which voltages, which residuals count how much."""

from collections.abc import Mapping

from msgspec import Struct

VOLTAGES = ("estimated", "given", "one")
WEIGHTS = ("relative", "absolute")
LOSSES = ("l1", "l2", "soft")


class Form(Struct, frozen=True):
    """What is fitted, and how. The defaults are those that a bare `fit` takes; `eprof fit` adds loss, ridge and prior.

    voltages: "estimated" (a free one a clock level), "given" (columns of the measurements), "one" (V = 1 everywhere).
    clock_tree: whether power that goes with clock times V^2 is a term. weights: "relative" rows weigh 1/P. loss: "l1"
    is the least sum of absolute residuals, "l2" of squares, "soft" of what is a square for small and absolute for large
    ones. ridge: how strongly an energy that is off its prior by a factor of two
    counts, in units of a row that is 100 % off, for every row; with no `prior` (pJ) all energies are drawn to zero, in
    proportion to what they contribute. starts: how many sets of voltages the search begins from.
    """

    voltages: str = "estimated"
    clock_tree: bool = True
    weights: str = "relative"
    loss: str = "l2"
    ridge: float = 0.0
    prior: Mapping[str, float] | None = None
    starts: int = 3

    def __post_init__(self) -> None:
        for name, known in (("voltages", VOLTAGES), ("weights", WEIGHTS), ("loss", LOSSES)):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} is {value!r}; use one of: {', '.join(known)}")

    @property
    def words(self) -> str:
        """The form of a fit as a phrase, for tables and summaries."""
        clock_tree = "clock tree" if self.clock_tree else "no clock tree"
        losses = {"l1": "least absolute residuals", "l2": "least squares", "soft": "squares, absolute when large"}
        phrases = [f"voltages {self.voltages}", clock_tree, f"{self.weights} weights", losses[self.loss]]
        if self.ridge:
            phrases.append(f"ridge {self.ridge:g} towards {'a prior' if self.prior else 'zero'}")
        return ", ".join(phrases)
