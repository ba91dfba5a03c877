"""How far long work is: what does the work tells a `Progress`, which may show it. This one shows nothing."""

from collections.abc import Callable


class Progress:
    """Takes what long work says of itself; `eprof.cli.progress` has the one that shows it."""

    def update(self, line: Callable[[], str]) -> None:
        """Report where long work stands. Call it often: `line` is called only when there is something to show."""

    def say(self, sentence: str) -> None:
        """Something to know while long work goes on."""

    def wipe(self) -> None:
        """Remove the line of progress from the terminal, as something else writes there now."""
