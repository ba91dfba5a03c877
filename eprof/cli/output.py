"""The result of a command (`Result`) and where it goes: files of `-o`, standard output, a browser; `Progress`."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from eprof.base.errors import EprofError, UsageError
from eprof.base.text import printable
from eprof.cli.options import SUFFIXES
from eprof.cli.signals_and_streams import closed_streams

if TYPE_CHECKING:
    from eprof.profile.profile import Profile

Output = tuple[Path, str]
_Frame = Callable[[], Any] | None
_Others = Callable[[str], bytes] | None


class Result(NamedTuple):
    """What a command found. render: a format of `SUFFIXES` -> the bytes of a file; show: the summary, on a terminal.

    Both are called late, and only the modules that make the wanted form are loaded. `render` raises UsageError for a
    format that this result has not.
    """

    render: Callable[[str], bytes]
    show: Callable[[], None]


def result_by_modules(document: Any, home: str, verbose: bool, frame: _Frame = None, others: _Others = None) -> Result:
    """The `Result` of a command's document, drawn by the modules `page`, `terminal` and `files` of its package `home`.

    frame: makes the table for CSV and Parquet, if `files` does not. others: format for another tool -> bytes.
    """

    def render(kind: str) -> bytes:
        from eprof.show import export

        match kind:
            case "html":
                return _encoded(_module(home, "page").html(document))
            case "txt":
                return _encoded(_module(home, "terminal").text(document, verbose=verbose))
            case "json":
                return export.to_json(document)
            case "md":
                return bytes(_module(home, "files").to_markdown(document))
            case "csv" | "parquet":
                table = _module(home, "files").frame(document) if frame is None else frame()
                return export.to_csv(table) if kind == "csv" else export.to_parquet(table)
        assert others is not None, "the options of a command name its formats"
        return others(kind)

    def show() -> None:
        _module(home, "terminal").show(document, verbose=verbose)

    return Result(render, show)


def _module(home: str, name: str) -> Any:
    return import_module(f"{home}.{name}")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def result_by_words(document: Any, home: str, verbose: bool, others: _Others = None) -> Result:
    """The `Result` of a command's document, drawn by the modules `words` and `page` of its package `home`.

    The document's `records` are the rows of CSV and Parquet. `words` has TITLE, `subject`, `headline` and `blocks`, and
    `on_terminal` where a terminal shows other blocks than Markdown; `page` has `figures` and `sections`. others: format
    for another tool -> bytes.
    """

    def blocks(kind: str, verbose: bool) -> Iterator[Any]:
        from eprof.show.blocks import quiet

        words = _module(home, "words")
        yield quiet(" · ".join(filter(None, [document.title, words.subject(document)])))
        yield words.headline(document)
        yield from getattr(words, kind, words.blocks)(document, verbose)

    def render(kind: str) -> bytes:
        from eprof.show import export

        match kind:
            case "json":
                return export.dumped(document.plain(), indent=2) + b"\n"
            case "csv" | "parquet":
                import pandas as pd

                table = pd.DataFrame(list(document.records()))
                return export.to_csv(table, quoting=0) if kind == "csv" else export.to_parquet(table)
            case "md":
                return export.markdown(_module(home, "words").TITLE, blocks("blocks", True))
            case "html":
                from eprof.show import html_page

                return _encoded(html_page.page(document, _module(home, "words"), _module(home, "page")))
            case "txt":
                from eprof.show import console

                return _encoded(console.text(blocks("on_terminal", True), verbose=True))
        assert others is not None, "the options of a command name its formats"
        return others(kind)

    def show() -> None:
        from eprof.show import console

        console.show(blocks("on_terminal", verbose), verbose)

    return Result(render, show)


def planned(options: argparse.Namespace, suffixes: Mapping[str, str] = SUFFIXES) -> list[Output]:
    """The files of `-o` (and of `--open`) with their formats, checked before any log is read: no long work in vain.

    Raises UsageError: a format that neither `--format` nor the suffix tells, an input, a file twice. Raises EprofError:
    none of the files may be written.
    """
    outputs: list[Output] = []
    refused: list[EprofError] = []
    for name in options.output:
        if name == "-":
            raise UsageError("-o -: name a file; without -o, --format writes to standard output.")
        path = Path(name)
        # The longest suffix counts: "a.speedscope.json" is no JSON of eprof.
        known = [suffix for suffix in suffixes if name.lower().endswith(suffix)]
        kind = options.format or suffixes.get(max(known, key=len, default=""))
        if kind is None:
            known_ones = " ".join(suffixes)
            raise UsageError(f"-o {name}: cannot tell the format from the suffix; use {known_ones} or --format.")
        try:
            refuse_existing(path, options.force)
        except EprofError as err:
            refused.append(err)
        else:
            inputs = map(Path, getattr(options, "inputs", ()))
            if path.exists() and any(log.exists() and path.samefile(log) for log in inputs):
                raise UsageError(f"-o {name}: is one of the inputs, and is not overwritten even with -f/--force.")
        if any(path.absolute() == planned.absolute() for planned, _ in outputs):
            raise UsageError(f"-o {name}: is named twice.")
        outputs.append((path, kind))
    if refused and len(refused) == len(outputs):
        raise refused[0]
    if getattr(options, "open", False) and not any(kind == "html" for _, kind in outputs):
        first = next(iter(getattr(options, "inputs", ())), "")
        path = Path((Path(first).stem or str(options.command)) + ".html")
        refuse_existing(path, options.force)
        outputs.append((path, "html"))
    return outputs


def deliver(result: Result, outputs: list[Output], options: argparse.Namespace, page: Path | None = None) -> None:
    """Write a command's output files, then the result on standard output: in `--format`, or the summary.

    page: an HTML report to write in any case, in place of an older one. Raises EprofError: a file was not written, when
    all others are.
    """
    if page is not None:
        write(page, result.render("html"), True)
        say(f"wrote {page}")
    errors = write_each(outputs, lambda _, kind: result.render(kind), options.force)
    if 1 in closed_streams and page is None and not outputs:
        raise EprofError("standard output is closed, so nobody would see the result; name a file with -o.")
    if options.format and not outputs:
        print_bytes(result.render(options.format), options.format)
    elif not options.quiet:
        result.show()
    if errors:
        raise errors[0]
    if options.open:
        import webbrowser

        shown = page or next(path for path, kind in outputs if kind == "html")
        if not webbrowser.open(shown.resolve().as_uri()):
            say(f"no browser could be started; open {shown} yourself.")


def write_each(outputs: list[Output], render: Callable[[Path, str], bytes], force: bool) -> list[EprofError]:
    """Write every file that can be written and say so; returns the others' errors. render: (path, format) -> bytes."""
    errors: list[EprofError] = []
    for path, kind in outputs:
        try:
            write(path, render(path, kind), force)
        except EprofError as err:
            reason = str(err)
            named = reason if str(path) in reason else f"{path} was not written: {reason}"
            errors.append(type(err)(named))
        else:
            say(f"wrote {path}")
    for error in errors[1:]:
        say(str(error))
    return errors


def shown_path(path: Path) -> str:
    """A path as text, relative to the working directory if it lies below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def say(sentence: str) -> None:
    """Print a sentence for the user on standard error, behind "eprof: "."""
    print(printable(f"eprof: {sentence}"), file=sys.stderr)


def print_listing(options: argparse.Namespace, data: Any, shown: Iterable[Any]) -> int:
    """Print `data` with --format json, else texts and tables, as `shown` gives them; returns the exit code 0."""
    if options.format == "json":
        import json

        print(json.dumps(data, indent=1))
    else:
        from eprof.show import console

        console.show_list(shown)
    return 0


def print_bytes(content: bytes, kind: str) -> None:
    """Write a command's result to standard output. Raises UsageError for Parquet on a terminal."""
    if kind == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is not for a terminal; name a file with -o, or redirect.")
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def refuse_existing(path: Path, force: bool) -> None:
    """Raise EprofError if `path` exists and may not be replaced (`force`), or no file can be written there at all."""
    if path.is_dir():
        raise EprofError(f"{path}: is a directory; name a file to write.")
    if path.exists() and not path.is_file():
        raise EprofError(f"{path}: is not an ordinary file and is not replaced; use --format for standard output.")
    if path.exists() and not force:
        raise EprofError(f"{path}: exists already and is not overwritten; use another name, or -f/--force.")
    if not path.parent.is_dir():
        raise EprofError(f"{path}: there is no directory {path.parent}; make it first.")


def _link(beside: Path, path: Path) -> None:
    """Give the finished file `beside` its name `path`, by a link: two writers cannot overwrite each other's file."""
    try:
        os.link(beside, path)
    except FileExistsError as err:
        raise EprofError(f"{path}: exists already and is not overwritten; use another name, or -f/--force.") from err
    except OSError:
        # A file system without hard links.
        refuse_existing(path, False)
        beside.replace(path)


def write(path: Path, content: bytes, force: bool) -> None:
    """Write a file in one step: a reader sees the whole file or none. Raises EprofError."""
    refuse_existing(path, force)
    beside = path.parent / f".{path.name[:40]}.{os.urandom(6).hex()}"
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if force:
            beside.replace(path)
        else:
            _link(beside, path)
    except OSError as err:
        raise EprofError(
            f"{path}: cannot be written ({err.strerror or err}); nothing was changed; make room there, or name a file "
            "elsewhere."
        ) from err
    finally:
        with suppress(OSError):
            beside.unlink()


# ----------------------------------------------------------------------------------------------------------------------
# One line on standard error while something takes long: how far it is, and how long it may still take.

# On a terminal the line is redrawn. Elsewhere, in a log of CI for example, every line stays.
_TERMINAL_S = (1.0, 0.25)  # before the first line, between two
_ELSEWHERE_S = (10.0, 30.0)
_READING, _LONG_BYTES = "reading logs", 16 << 20
_SHARE = 0.05  # of the time that goes into finding out what the line says


class Progress:
    """A line on standard error that shows how far long work is, from its second second on (10 s if no terminal).

    Work calls `count`, `reading` or `update` as it proceeds. quiet: nothing is shown.
    """

    def __init__(self, quiet: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._clock = clock
        self._is_terminal = sys.stderr.isatty()
        first_s, self._pause_s = _TERMINAL_S if self._is_terminal else _ELSEWHERE_S
        self._next_s = clock() + first_s
        self._is_shown = False
        self._work = ""
        self._work_began_s = 0.0
        self._first = 0.0  # done when the work was first heard of

    def update(self, line: Callable[[], str]) -> None:
        """Show a line of progress if it is time for one. Call it often: `line` is called only when it is shown."""
        now_s = self._clock()
        if self._quiet or now_s < self._next_s:
            return
        words = line()
        self._show(words)
        self._next_s = now_s + max(self._pause_s, (self._clock() - now_s) / _SHARE)

    @contextmanager
    def begin(self, work: str) -> Iterator[Self]:
        """Show on a terminal, until the `with` block ends, which work begins: its first `count` may be seconds away."""
        if self._is_terminal and not self._quiet:
            self._show(f"{work} ...")
        try:
            yield self
        finally:
            self.wipe()

    def count(self, work: str, done: float, total: float, unit: str = "") -> None:
        """Show "fitting: 3 of 40, 12 s left" if it is time for a line; the end of the work wipes it."""
        if work != self._work:
            self._work = work
            self._work_began_s = self._clock()
            self._first = done
        if done >= total:
            self._work = ""
            self.wipe()
            return

        def line() -> str:
            counted = f"{work}: {done:,} of {total:,}{unit}"
            if done <= self._first:
                return counted
            left_s = (self._clock() - self._work_began_s) * (total - done) / (done - self._first)
            return f"{counted}, {left_s:.0f} s left"

        self.update(line)

    def reading(self, done: int, total: int) -> None:
        """Show progress in reading logs: `done` of `total` bytes."""
        if self._work != _READING and total > _LONG_BYTES:
            from eprof.base.resources import SCARCE_BYTES, is_memory_scarce

            if is_memory_scarce():
                quicker = f"`ulimit -v {SCARCE_BYTES >> 10}` or more is quicker."
                self.say(f"little memory is allowed, so long logs are read slowly; {quicker}")
        self.count(_READING, round(done / 1e6, 1), round(total / 1e6, 1), " MB")

    def say(self, sentence: str) -> None:
        """Print a sentence that stays above the line of progress."""
        self.wipe()
        if not self._quiet:
            say(sentence)

    def wipe(self) -> None:
        """Take the line of progress off the terminal."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False

    def _show(self, line: str) -> None:
        if not self._is_terminal:
            say(line)
            return
        # A line that wraps could not be wiped.
        width = os.get_terminal_size(2).columns or 80
        print(f"\r\x1b[K{printable(line)[: width - 1]}", end="", file=sys.stderr, flush=True)
        self._is_shown = True


def loaded(options: argparse.Namespace, **more: Any) -> "Profile":
    """The profile of a command's inputs, read with the options that all commands of logs have; more: for `api.load`."""
    from eprof.profile import api

    shared = {"capability": options.capability, "kernels": options.kernel_name, "command_line": options.command_line}
    return api.load(*options.inputs, **shared, progress=Progress(options.quiet).reading, **more)
