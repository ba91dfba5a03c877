"""What the terminal's summaries are printed to: standard output, or text for a file."""

import io

from rich.console import Console


class _Terminal(Console):
    """Standard output. rich would end the process by itself when its reader goes away; that is `cli`'s to decide."""

    def on_broken_pipe(self) -> None:
        """Leave a broken pipe of the terminal to the caller."""
        raise BrokenPipeError


def terminal() -> Console:
    """The terminal's screen, for standard output; nothing in what is printed is markup."""
    return _Terminal(highlight=False, markup=False, emoji=False)


def into(buffer: io.StringIO, width: int) -> Console:
    """A screen for a file of `width` columns: no colours, whatever FORCE_COLOR says."""
    return Console(
        file=buffer, width=width, no_color=True, force_terminal=False, highlight=False, markup=False, emoji=False
    )
