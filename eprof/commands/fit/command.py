"""`eprof fit`: a cost table from measured power."""

import argparse
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from eprof.base.errors import EprofError, UsageError
from eprof.base.optional import either
from eprof.base.text import by_sign, few, when
from eprof.base.units import clock_pair
from eprof.cli.options import SETTING, Commands, Parser, command, matching, only
from eprof.cli.output import Output, Progress, planned, print_bytes, write_each

if TYPE_CHECKING:
    from eprof.lab.fitting import Form
    from eprof.lab.fitting.table_text import Head
    from eprof.lab.measurements import Measurements

_SUFFIXES = {".toml": "toml", ".json": "json", ".txt": "txt"}
_MOST = 1e9  # of any number that is given
_PEAKS = ("sp_flop_per_core_cycle", "dp_flop_per_core_cycle", "dram_byte_per_memory_cycle", "power_limit_w")


def add(commands: Commands) -> Parser:
    """Add `eprof fit` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "fit",
        "Fit energies, constant power and voltages to measured power, say how well they are known and how far off "
        "kernels and settings are that were left out, and write a cost table.",
        "eprof fit measured.csv --device 'GeForce GTX 980' -o gtx980.toml",
        "eprof fit measured.csv --loss l2 --ridge 0 --format json",
        "eprof fit my-columns.csv --mapping my-columns.toml --reference 1000/2600 -o mine.toml",
        "eprof fit runs/*.eprof -o mine.toml",
        "eprof fit node/*.dcgm --device A100 -o node.toml        sampled activity, a log a program",
    )
    each = "a row a kernel and setting, or run directories with measured energy, a row each, or logs of DCGM"
    parser.add_inputs(f"CSV or Parquet, {each} (docs/fit.md)", metavar="MEASUREMENTS")
    parser.repeatable("--output", "PATH", "write .toml .json or .txt", short="-o")
    parser.choice("--format", ("toml", "json", "txt"), "of --output, or of standard output")
    parser.flag("--force", "overwrite existing files", short="-f")
    data = parser.group("what the columns are")
    data.mapping()
    data.value(
        "--reference",
        SETTING,
        "MHz at which relative voltages are 1 (default: the highest clocks), or that a CPU ran at",
    )
    data.repeatable("--marks", "FILE", "programs of sampled logs by what ran when, as eprof timeline takes it")
    data.repeatable("--without", "TERM", "leave a term out (repeatable)")
    form = parser.group("the form of the fit (defaults were chosen by leaving kernels out: docs/fit.md)")
    form.choice(
        "--voltages",
        ("estimated", "given", "one"),
        "one free voltage a clock level, those of the file, or V = 1 (default: given where the file has them)",
    )
    form.choice(
        "--loss",
        ("l1", "l2", "soft"),
        "absolute residuals, squares, or squares that turn absolute (default: soft with a prior, else l2; l1 where "
        "rows are wild)",
    )
    form.value("--ridge", "X", "how strongly energies are drawn (default 0.003, or 0)", type=float)
    form.value(
        "--prior",
        "pooled|none|TABLE",
        "energies to draw to: of other GPUs of its kind (default), none (to zero), or a cost table",
        default="pooled",
    )
    form.value("--replicas", "N", "of the bootstrap (default 40, 0: none)", type=int, default=40)
    form.flag("--no-validate", "do not leave settings and kernels out: quicker")
    group = parser.group("what the table says of itself")
    group.repeatable("--device", "NAME", "the GPU as logs name it (repeatable)")
    group.value("--title", "TEXT", "the GPU for people (default: the first --device)")
    group.value("--default", SETTING, "its default setting, of those measured (default: the highest clocks)")
    group.value("--source", "TEXT", "where the measurements come from (default: the files)")
    group.value("--year", "YEAR", "of the source", type=int)
    group.repeatable("--note", "TEXT", "to stand in reports (repeatable)")
    group.repeatable("--peak", "KEY=NUMBER", f"for rooflines: {', '.join(_PEAKS)}")
    return parser


def fit(options: argparse.Namespace) -> int:
    """Run `eprof fit`."""
    options.inputs = matching(options.inputs)
    outputs = planned(options, _SUFFIXES)
    _peaks(options.peak)
    # No table has a text that says nothing.
    texts = {"device": options.device, "note": options.note}
    texts |= {name: [given] for name in ("title", "source") if (given := getattr(options, name))}
    for name, given in texts.items():
        if not all(map(str.strip, given)):
            raise UsageError(f"--{name} is empty; leave it out.")
    if options.replicas < 0:
        raise UsageError(f"--replicas {options.replicas}: must not be negative; 0 is none.")
    try:
        import scipy  # noqa: F401
    except ImportError as err:
        raise EprofError("Fitting needs scipy; install it with: pip install scipy.") from err
    from eprof.base.toml import Document
    from eprof.commands.fit.document import document
    from eprof.costs.file import read
    from eprof.lab.fitting import fit as solve
    from eprof.lab.fitting.quality import examine, too_few_rows
    from eprof.lab.fitting.solve import prior_may_have_seen
    from eprof.lab.fitting.table_text import check_events, text

    measurements = _read(options)
    form = _form(options, measurements)
    if options.prior == "pooled" and (note := prior_may_have_seen(form, _device_to_fit(options))):
        measurements = replace(measurements, notes=(note, *measurements.notes))
    too_few = too_few_rows(measurements, form)
    if too_few is not None:
        rest = when(not measurements.own, ", or leave terms out with --without")
        doubts = "".join(f" {note}" for note in measurements.notes if "round them" in note)
        raise EprofError(f"{measurements.sources[0]}: {too_few}; measure more kernels or settings{rest}.{doubts}")
    kinds = [kind for _, kind in outputs] or [options.format]
    if set(kinds) == {"toml"}:
        check_events(measurements)
    protocols = () if options.no_validate else ("setting", "benchmark")
    with Progress(options.quiet).begin("fitting") as progress:
        fitted = solve(measurements, form)
        quality = examine(measurements, fitted, options.replicas, protocols, progress=progress.count)

    def table(path: Path | None) -> bytes:
        head = _head(options, measurements, path)
        written = text(measurements, fitted, quality, head)
        # It is read back before anyone gets it: what is written must be right.
        _, errors = read(Document.parse(written, f"{head.name}.toml"))
        if errors:
            raise AssertionError(f"eprof wrote a table that it does not read: {errors[0]}")
        return written.encode()

    _deliver(options, outputs, document(measurements, fitted, quality), table)
    return 0


def _head(options: argparse.Namespace, measurements: "Measurements", path: Path | None) -> "Head":
    """What a fitted cost table says of itself, by the options; it is named after its file `path`, else the first input.

    Of a GPU whose sampled activity became work by the peaks of a table, that table's peaks stay with it.
    """
    from eprof import costs
    from eprof.lab import programs
    from eprof.lab.fitting.table_text import Head

    first = Path(options.inputs[0])
    # Bare names of files: nobody else has these directories.
    words = [str(word) for word in options.command_line]
    bare = [Path(word).name if word in options.inputs or word in options.output else word for word in words]
    files = few([Path(file).name for file in options.inputs], 4)  # [fit] has all
    peaks: dict[str, float] = {}
    multiprocessors = None
    if measurements.mapping == "sampled":
        peaks, multiprocessors = programs.peaks(costs.load(options.device[0]))
    return Head(
        name=re.sub(r"[^a-z0-9.-]+", "-", (path or first).stem.lower()).strip("-.") or "table",
        device=options.title or _device_to_fit(options) or f"the {measurements.processor.upper()} of {first.name}",
        devices=tuple(options.device),
        source=options.source or f"measurements in {files}",
        year=options.year,
        notes=tuple(options.note),
        peaks={**peaks, **_peaks(options.peak)},
        multiprocessors=multiprocessors,
        command=shlex.join(bare),
        default=_clocks(options.default, "--default"),
    )


def _read(options: argparse.Namespace) -> "Measurements":
    """All inputs of `eprof fit` as one set of measurements, without the terms of `--without`.

    Files are tables or sampled logs; each run directory gives a row. Raises UsageError for an unknown term.
    """
    from eprof.lab import programs
    from eprof.lab.measurements import read
    from eprof.lab.measurements.reading import joined
    from eprof.lab.programs import from_profiles
    from eprof.logs import runs
    from eprof.profile import api

    reference = _clocks(options.reference, "--reference")
    cells = only(options)
    homes = [name for name in options.inputs if runs.is_run(Path(name))]
    files = [name for name in options.inputs if name not in homes]
    parts = []
    if files:
        device = _device_to_fit(options)
        sampled = programs.reader(files, device, "say --device", options.marks, reference=reference)
        of_columns = partial(read, mapping=options.mapping, without=options.without, device=device, only=cells)
        read_files = sampled or partial(of_columns, reference=reference)
        parts.append(read_files(files))
    if homes:
        profiles, lost = [], []
        for home in {Path(name).resolve(): name for name in homes}.values():
            try:
                profiles.append((home, api.load(home)))
            except EprofError as err:
                lost.append(f"Left out: {err}")
        measured, device = from_profiles(profiles, reference, lost)
        parts.append(measured)
        # The logs name the GPU: whose table it becomes, and whose own energies the prior leaves out.
        if device and not options.device:
            options.device = [device]
    measurements = joined(parts, reference)
    known = (*measurements.terms, *measurements.untaken)
    for term in options.without:
        if term not in known:
            raise UsageError(f"--without {term}: there is no such term; there are {', '.join(known)}.")
    return measurements.only([term for term in measurements.terms if term not in options.without])


def _device_to_fit(options: argparse.Namespace) -> str | None:
    return next(iter(options.device), None)


def _clocks(text: str | None, option: str) -> tuple[float, float] | None:
    """(core, memory) in MHz of an option's "1000/3505"; None: not given. Raises UsageError."""
    if text is None:
        return None
    pair = clock_pair(text)
    if pair is None or not all(pair):
        raise UsageError(f"{option} {text}: write core and memory clock in MHz, such as 1000/3505.")
    return pair


def _form(options: argparse.Namespace, measurements: "Measurements") -> "Form":
    """The form of the fit: the default of these measurements, with what options say otherwise. Raises UsageError."""
    from eprof import costs
    from eprof.lab.fitting.solve import form_for, ridge_for

    default = form_for(measurements, _device_to_fit(options))
    match options.prior:
        case "pooled":
            prior = default.prior
        case "none":
            prior = None
        case _:
            # The prices of a cost table at its default setting that are of the same name.
            prices = costs.load(options.prior).at().prices
            prior = {term: prices[term].pj for term in measurements.terms if term in prices and prices[term].pj > 0}
            if not prior:
                raise UsageError(f"--prior {options.prior}: has none of the prices {', '.join(measurements.terms)}.")
    ridge = either(options.ridge, ridge_for(measurements, prior))
    if not 0 <= ridge < _MOST:
        raise UsageError(f"--ridge {ridge:g}: must {by_sign(ridge, 'not be negative', f'be below {_MOST:g}')}.")
    voltages = options.voltages
    if voltages is None:
        known = measurements.rows[["core_v", "memory_v"]].notna().all(axis=None)
        voltages = "given" if known else default.voltages
    return replace(default, voltages=voltages, loss=options.loss or default.loss, ridge=ridge, prior=prior)


def _deliver(
    options: argparse.Namespace, outputs: list[Output], made: dict[str, Any], table: Callable[[Path | None], bytes]
) -> None:
    """Write the files of `eprof fit` and the result on standard output; a table is named after its file.

    Raises the error of the first file that could not be made, once all others are written.
    """
    from eprof.commands.fit.document import blocks
    from eprof.show import console

    def render(kind: str, path: Path | None = None) -> bytes:
        if kind == "json":
            from eprof.show.export import dumped

            return dumped(made, indent=2) + b"\n"
        if kind == "txt":
            return console.text(blocks(made), options.verbose).encode("utf-8", "backslashreplace")
        return table(path)

    errors = write_each(outputs, lambda path, kind: render(kind, path), options.force)
    if options.format and not outputs:
        print_bytes(render(options.format), options.format)
    elif not options.quiet:
        console.show(blocks(made), options.verbose)
    if errors:
        raise errors[0]


def _peaks(texts: list[str]) -> dict[str, float]:
    """Key -> number of each `--peak KEY=NUMBER`. Raises UsageError for an unknown key, or a number out of range."""
    peaks = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            peaks[key] = float(value)
        except ValueError as err:
            raise UsageError(f"--peak {text}: write KEY=NUMBER.") from err
        if key not in _PEAKS or not 0 < peaks[key] < _MOST:
            raise UsageError(f"--peak {text}: the keys are {', '.join(_PEAKS)}, the numbers above 0, below {_MOST:g}.")
    return peaks
