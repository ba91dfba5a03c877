"""`eprof fit`: a cost table from measured power."""

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.base.errors import EprofError, UsageError
from eprof.base.text import few, printable
from eprof.cli.options import matching

if TYPE_CHECKING:
    from eprof.fitting import Fit, Form
    from eprof.fitting.quality import Quality
    from eprof.fitting.table_text import Head
    from eprof.measurements import Measurements

_SUFFIXES = {".toml": "toml", ".json": "json", ".txt": "txt"}
_NAMED = 4  # of the inputs, in the table's source; [fit] has all
_PEAKS = ("sp_flop_per_core_cycle", "dp_flop_per_core_cycle", "dram_byte_per_memory_cycle")


def add_fit(commands: Any) -> argparse.ArgumentParser:
    """The options of `eprof fit`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "fit",
        help="a cost table from measured counts, time and power",
        description="Fit energies, constant power and voltages to measured power, say how well they are known and how "
        "far off kernels and settings are that were left out, and write a cost table.",
        epilog="Examples:\n  eprof fit measured.csv --device 'GeForce GTX 980' -o gtx980.toml\n"
        "  eprof fit measured.csv --loss l2 --ridge 0 --format json\n"
        "  eprof fit my-columns.csv --mapping my-columns.toml --reference 1000/2600 -o mine.toml\n"
        "  eprof fit runs/*.eprof -o mine.toml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="MEASUREMENTS",
        help="CSV or Parquet, a row a kernel and setting, or run directories with measured energy, a row each "
        "(docs/fit.md)",
    )
    parser.add_argument("-o", "--output", action="append", default=[], metavar="PATH", help="write .toml .json or .txt")
    parser.add_argument("--format", choices=("toml", "json", "txt"), help="of --output, or of standard output")
    parser.add_argument("-f", "--force", action="store_true", help="overwrite existing files")
    _add_data(parser)
    _add_form(parser)
    _add_head(parser)
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the columns are")
    group.add_argument(
        "--mapping", metavar="NAME|FILE", help="column mapping (default: the one that suits the columns)"
    )
    group.add_argument(
        "--reference", metavar="CORE/MEMORY", help="MHz at which relative voltages are 1 (default: the highest clocks)"
    )
    group.add_argument("--without", action="append", default=[], metavar="TERM", help="leave a term out (repeatable)")


def _add_form(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the form of the fit (defaults were chosen by leaving kernels out: docs/fit.md)")
    group.add_argument(
        "--voltages",
        choices=("estimated", "given", "one"),
        help="one free voltage a clock level, those of the file, or V = 1 (default: given where the file has them)",
    )
    group.add_argument("--no-clock-tree", action="store_true", help="no power that goes with the clock alone")
    group.add_argument("--weights", choices=("relative", "absolute"), default="relative", help="default: relative, 1/P")
    group.add_argument("--loss", choices=("l1", "l2"), help="absolute residuals or squares (default: l1 with a prior)")
    group.add_argument("--ridge", type=float, metavar="X", help="how strongly energies are drawn (default 0.01, or 0)")
    group.add_argument(
        "--prior",
        default="pooled",
        metavar="pooled|none|TABLE",
        help="energies to draw to: of other GPUs (default), none (to zero), or a cost table",
    )
    group.add_argument("--replicas", type=int, default=40, metavar="N", help="of the bootstrap (default 40, 0: none)")
    group.add_argument("--no-validate", action="store_true", help="do not leave settings and kernels out: quicker")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of random numbers (default 0)")


def _add_head(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the table says of itself")
    group.add_argument("--name", metavar="NAME", help="of the table (default: of the file that -o names)")
    group.add_argument(
        "--device", action="append", default=[], metavar="NAME", help="the GPU as logs name it (repeatable)"
    )
    group.add_argument("--title", metavar="TEXT", help="the GPU for people (default: the first --device)")
    group.add_argument(
        "--default", metavar="CORE/MEMORY", help="its default setting, of those measured (default: the highest clocks)"
    )
    group.add_argument("--source", metavar="TEXT", help="where the measurements come from (default: the files)")
    group.add_argument("--year", type=int, metavar="YEAR", help="of the source")
    group.add_argument("--note", action="append", default=[], metavar="TEXT", help="to stand in reports (repeatable)")
    group.add_argument(
        "--peak", action="append", default=[], metavar="KEY=NUMBER", help=f"for rooflines: {', '.join(_PEAKS)}"
    )


def fit(options: argparse.Namespace) -> int:
    """`eprof fit`."""
    options.inputs = matching(options.inputs)
    outputs = _outputs(options)
    _peaks(options.peak)
    if options.replicas < 0:
        raise UsageError(f"--replicas {options.replicas}: must not be negative; 0 is none.")
    _needs_scipy()
    from eprof.fitting import fit as solve
    from eprof.fitting.document import document
    from eprof.fitting.quality import examine

    measurements = _read(options)
    form = _form(options, measurements)
    measurements = _doubted(measurements, form, options)
    _enough(measurements, form)
    fitted = solve(measurements, form, options.seed)
    protocols = () if options.no_validate else ("setting", "benchmark")
    quality = examine(measurements, fitted, options.replicas, protocols, options.seed, _progress(options))
    found = document(measurements, fitted, quality)
    _deliver(options, outputs, measurements, fitted, quality, found)
    return 0


def _needs_scipy() -> None:
    try:
        import scipy  # noqa: F401
    except ImportError as err:
        raise EprofError("Fitting needs scipy; install it with: pip install 'eprof[fit]'.") from err


def _outputs(options: argparse.Namespace) -> list[tuple[Path, str]]:
    from eprof.cli.writing import refuse_existing

    found = []
    for name in options.output:
        path = Path(name)
        kind = options.format or _SUFFIXES.get(path.suffix.lower())
        if kind is None:
            raise UsageError(f"-o {name}: cannot tell the format from the suffix; use {' '.join(_SUFFIXES)}.")
        refuse_existing(path, options.force)
        if any(Path(one).exists() and path.exists() and path.samefile(one) for one in options.inputs):
            raise UsageError(f"-o {name}: is one of the inputs, and is not overwritten even with -f/--force.")
        found.append((path, kind))
    return found


def _read(options: argparse.Namespace) -> "Measurements":
    from eprof.logs import runs
    from eprof.measurements import read
    from eprof.measurements.reading import joined

    reference = _clocks(options.reference, "--reference") if options.reference else None
    homes = [one for one in options.inputs if runs.is_run(Path(one))]
    files = [one for one in options.inputs if one not in homes]
    parts = [read(files, options.mapping, reference, options.without)] if files else []
    if homes:
        measured, device = _of_runs(homes, reference)
        parts.append(measured)
        # The logs name the GPU: whose table it becomes, and whose own energies the prior leaves out.
        options.device = options.device or ([device] if device else [])
    measurements = joined(parts, reference)
    there = (*measurements.terms, *measurements.untaken)
    unknown = [term for term in options.without if term not in there]
    if unknown:
        raise UsageError(f"--without {unknown[0]}: there is no such term; there are {', '.join(there)}.")
    return measurements.only([term for term in measurements.terms if term not in options.without])


def _of_runs(homes: list[str], reference: tuple[float, float] | None) -> "tuple[Measurements, str | None]":
    """A row for each run directory, and their GPU. Raises EprofError if none can be read."""
    from eprof import api
    from eprof.measurements.programs import from_profiles

    profiles, lost = [], []
    for home in {Path(one).resolve(): one for one in homes}.values():
        try:
            profiles.append((home, api.load(home)))
        except EprofError as err:
            lost.append(f"Left out: {err}")
    return from_profiles(profiles, reference, lost)


def _doubted(measurements: "Measurements", form: "Form", options: argparse.Namespace) -> "Measurements":
    """The measurements with a first note if the prior may have seen them."""
    from dataclasses import replace

    from eprof.fitting.defaults import prior_may_have_seen

    note = (
        prior_may_have_seen(form, options.device[0] if options.device else None) if options.prior == "pooled" else None
    )
    return replace(measurements, notes=(note, *measurements.notes)) if note else measurements


def _clocks(text: str, option: str) -> tuple[float, float]:
    try:
        core, memory = (float(one) for one in text.split("/"))
    except ValueError as err:
        raise UsageError(f"{option} {text}: write core and memory clock in MHz, such as 1000/3505.") from err
    return core, memory


def _form(options: argparse.Namespace, measurements: "Measurements") -> "Form":
    from eprof.fitting import Form
    from eprof.fitting.defaults import RIDGE, form_for, form_without_prior

    default = form_for(measurements, options.device[0] if options.device else None)
    prior = default.prior if options.prior == "pooled" else None
    if options.prior not in ("pooled", "none"):
        prior = _prior(options.prior, measurements)
    ridge = options.ridge if options.ridge is not None else RIDGE if prior or measurements.own else 0.0
    if ridge < 0:
        raise UsageError(f"--ridge {ridge:g}: must not be negative.")
    known = measurements.rows[["core_v", "memory_v"]].notna().all(axis=None)
    return Form(
        voltages=options.voltages or ("given" if known else "estimated"),
        clock_tree=not options.no_clock_tree,
        weights=options.weights,
        loss=options.loss or ("l1" if prior else form_without_prior(measurements).loss),
        ridge=ridge,
        prior=prior,
    )


def _prior(name: str, measurements: "Measurements") -> Mapping[str, float]:
    """The prices of a cost table at its default setting that are of the same name. Raises CostError, UsageError."""
    from eprof import costs

    prices = costs.load(name).at().prices
    found = {term: prices[term].pj for term in measurements.terms if term in prices and prices[term].pj > 0}
    if not found:
        raise UsageError(f"--prior {name}: has none of the prices {', '.join(measurements.terms)}.")
    return found


def _enough(measurements: "Measurements", form: "Form") -> None:
    """Raise EprofError if there are fewer rows than unknowns."""
    from eprof.fitting.quality import Unknowns

    few = Unknowns.of(measurements, form).too_many(len(measurements))
    if few is not None:
        rest = "" if measurements.own else ", or leave terms out with --without"
        doubts = "".join(f" {note}" for note in measurements.notes if "round them" in note)
        raise EprofError(f"{measurements.sources[0]}: {few}; measure more kernels or settings{rest}.{doubts}")


def _progress(options: argparse.Namespace) -> Any:
    if options.quiet or not sys.stderr.isatty():
        return None

    def tell(what: str, done: int, total: int) -> None:
        line = "" if done == total else f"{what}: {done} of {total}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    return tell


def _deliver(
    options: argparse.Namespace,
    outputs: list[tuple[Path, str]],
    measurements: "Measurements",
    fitted: "Fit",
    quality: "Quality",
    found: dict[str, Any],
) -> None:
    from eprof.cli.writing import write

    def render(kind: str, path: Path | None) -> bytes:
        if kind == "json":
            from eprof.files.export import dumped

            return dumped(found, indent=2) + b"\n"
        if kind == "txt":
            from eprof.terminal import fit as console_fit

            return console_fit.text(found, options.verbose).encode("utf-8", "backslashreplace")
        return _table(measurements, fitted, quality, _head(options, path)).encode()

    for path, kind in outputs:
        write(path, render(kind, path), options.force)
        print(f"eprof: wrote {printable(str(path))}", file=sys.stderr)
    if options.format and not outputs:
        sys.stdout.buffer.write(render(options.format, None))
        sys.stdout.buffer.flush()
    elif not options.quiet:
        from eprof.terminal import fit as console_fit

        console_fit.show(found, options.verbose)


def _table(measurements: "Measurements", fitted: "Fit", quality: "Quality", head: "Head") -> str:
    """The table's text, which is read back before anyone gets it: what is written must be right."""
    from eprof.base.toml import Document
    from eprof.costs.file import read
    from eprof.fitting.table_text import text

    found = text(measurements, fitted, quality, head)
    _, errors = read(Document.parse(found, f"{head.name}.toml"))
    if errors:
        raise AssertionError(f"eprof wrote a table that it does not read: {errors[0]}")
    return found


def _head(options: argparse.Namespace, path: Path | None) -> "Head":
    import re

    from eprof.fitting.table_text import Head

    name = options.name or (path.stem if path else Path(options.inputs[0]).stem)
    name = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.") or "table"
    title = options.title or (options.device[0] if options.device else f"the GPU of {Path(options.inputs[0]).name}")
    files = few([Path(path).name for path in options.inputs], _NAMED)
    return Head(
        name=name,
        device=title,
        devices=tuple(options.device),
        source=options.source or f"measurements in {files}",
        year=options.year,
        notes=tuple(options.note),
        peaks=_peaks(options.peak),
        command=_command(options),
        default=_clocks(options.default, "--default") if options.default else None,
    )


def _peaks(given: list[str]) -> dict[str, float]:
    found = {}
    for one in given:
        key, _, value = one.partition("=")
        try:
            found[key] = float(value)
        except ValueError as err:
            raise UsageError(f"--peak {one}: write KEY=NUMBER.") from err
        if key not in _PEAKS or not found[key] > 0:
            raise UsageError(f"--peak {one}: the keys are {', '.join(_PEAKS)}, the numbers above 0.")
    return found


def _command(options: argparse.Namespace) -> str:
    """The command line for the file's header, with bare names of files: nobody else has these directories."""
    words = [str(one) for one in options.command_line]
    bare = [Path(word).name if word in options.inputs or word in options.output else word for word in words]
    return shlex.join(bare)
