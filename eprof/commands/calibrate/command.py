"""`eprof calibrate`: microbenchmarks on this GPU or processor, and a cost table fitted to them."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.base.errors import EprofError, UsageError
from eprof.base.optional import either, mapped
from eprof.base.text import counted, phrase, printable, when
from eprof.cli.options import Parser, command, positive, seconds
from eprof.cli.output import Progress, refuse_existing, say, shown_path, write

if TYPE_CHECKING:
    from eprof.commands.calibrate.results import Row
    from eprof.commands.calibrate.session import Backend, Request, Session

# A warm-up is longer than sensors average; a shorter --window, for a trial, shortens it too.
_WARM_S = 1.5


def add(commands: Any) -> Parser:
    """Add `eprof calibrate` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "calibrate",
        "Run microbenchmarks whose instructions and bytes are known on this GPU, measure their time and power, and fit "
        "a cost table to them. Needs an NVIDIA GPU with its driver, nvcc or NVRTC, and a power meter (NVML); with "
        "--opencl a GPU of any maker and pyopencl, with --cpu a C compiler and RAPL; with --meter-log any meter that "
        "writes a log. Clocks are left alone unless --settings asks for some.",
        "eprof calibrate -o my-gpu.toml            at the clocks in force, 6 minutes",
        "eprof calibrate --settings 1200,1500,1800 -o my-gpu.toml    holds clocks (root), then gives them back",
        "eprof calibrate --resume -o my-gpu.toml   goes on with what was interrupted",
        "eprof calibrate --quick -o my-gpu.toml    a minute: scales the prices that other GPUs share",
        "eprof calibrate --cpu -o my-cpu.toml      this machine's processor, 4 minutes",
        "eprof calibrate --opencl -o my-gpu.toml   any maker's GPU by OpenCL; --opencl NAME where there are several",
        "eprof calibrate --opencl --meter-log power.csv -o my-gpu.toml    while a meter's program writes power.csv",
        "eprof calibrate --dry-run                 the benchmarks, what each counts, and how long it takes",
    )
    parser.value("--output", "TABLE.toml", "the cost table to write", short="-o")
    parser.flag("--force", "overwrite an existing table", short="-f")
    parser.flag("--cpu", "calibrate the processor instead of a GPU")
    parser.value(
        "--opencl", "NAME", "calibrate an OpenCL device, by name or number (default: the only GPU)", nargs="?", const=""
    )
    parser.value("--meter-log", "FILE", "take power from a meter's log that is recorded beside (formats: timeline.md)")
    parser.value("--component", "NAME", "what the device is in that log (default: the only component, or GPU)")
    parser.value("--directory", "DIR", "keep raw results there (default: TABLE.calibration)")
    parser.flag("--resume", "go on with what is in the directory")
    parser.flag(
        "--quick", "a minute: idle, multiply-adds, copy, shared memory and tensor cores, with zeros and random operands"
    )
    parser.value("--settings", "CORE[/MEMORY],...", "hold these clocks in MHz, one after the other (needs permission)")
    parser.value("--device", "N", "which GPU, as nvidia-smi numbers them (0)", type=int)
    parser.value("--budget", "S", "seconds a setting may take (360)", type=seconds, default=360.0)
    parser.value("--window", "S", "seconds the meter is read (5)", type=seconds, default=5.0)
    parser.value("--repeat", "N", "measure up to N times, as time allows (3)", type=positive, default=3)
    parser.repeatable("--only", "NAME", "only this benchmark (repeatable; see --dry-run)")
    parser.flag("--no-fit", "measure only; `eprof fit` makes a table later")
    parser.flag("--dry-run", "list benchmarks, counts and times; run nothing")
    return parser


def settings(text: str | None) -> tuple[tuple[int, int | None], ...]:
    """(core, memory) in MHz of each setting in "1500/2600,1200": ((1500, 2600), (1200, None)). Raises UsageError."""
    pairs: list[tuple[int, int | None]] = []
    if text is None:
        return ()
    for part in text.split(","):
        clocks = part.strip().split("/")
        if len(clocks) > 2 or not all(mhz.isdecimal() and int(mhz) for mhz in clocks):
            form = "write CORE or CORE/MEMORY in MHz: 1500/2600."
            raise UsageError(f"--settings: `{part.strip()}` is not a setting; {form}")
        core, *memory = map(int, clocks)
        pair = (core, next(iter(memory), None))
        if pair in pairs:
            raise UsageError(f"--settings: {part.strip()} is named twice.")
        pairs.append(pair)
    return tuple(pairs)


def calibrate(options: argparse.Namespace) -> int:
    """Run `eprof calibrate`; 0: a table was written (or, with --no-fit, all was measured)."""
    from eprof.commands.calibrate import table
    from eprof.commands.calibrate.session import ON_CPU, ON_CUDA, Session, on_opencl

    request = _request(options)
    backend = ON_CUDA
    if options.cpu:
        backend = ON_CPU
    elif options.opencl is not None:
        backend = on_opencl(options.opencl)
    if options.dry_run:
        return _dry_run(request, backend)

    # Before it runs for minutes: may the table be written?
    if options.output is not None:
        if Path(options.output).suffix != ".toml":
            raise UsageError(f"-o {options.output}: a cost table is a .toml file.")
        refuse_existing(Path(options.output), options.force)

    session = Session(request, say, backend, progress=Progress(options.quiet))
    _prepare(session, options)
    try:
        session.measure()
    except KeyboardInterrupt:
        say(f"interrupted; what was measured is in {shown_path(session.request.directory)}, and --resume goes on.")
        raise
    rows = session.rows()
    path = session.save(rows)
    if not options.quiet:
        _show(rows)
    for sentence in session.missing():
        say(sentence)
    if options.no_fit:
        say(f"measured; `eprof fit {shown_path(path)} -o TABLE.toml` makes a table.")
        return 0
    made = table.make(session, path, rows, Path(options.output).stem)
    write(Path(options.output), made.text.encode(), options.force)
    for note in made.notes:
        say(note)
    say(f"wrote {shown_path(Path(options.output))}; `eprof costs {shown_path(Path(options.output))}` shows it.")
    return 0


def _wrong(options: argparse.Namespace) -> Iterator[str]:
    """Yield a sentence for each option of `eprof calibrate`, or combination of them, that cannot be."""
    is_table = options.output is not None or options.dry_run
    if not is_table and options.directory is None:
        yield "Say where the table goes: eprof calibrate [options] -o TABLE.toml."
    if not is_table and not options.no_fit:
        yield "Say where the table goes (-o TABLE.toml), or measure only (--no-fit)."
    if (options.device or 0) < 0:
        yield "--device: GPUs are numbered from 0."
    if options.cpu and options.opencl is not None:
        yield "--cpu and --opencl are two devices: calibrate each by a command of its own."
    if options.quick or options.settings or options.device is not None:
        for option, is_given in (("--cpu", options.cpu), ("--opencl", options.opencl is not None)):
            clocks = "runs at the clocks that the device chooses: leave out --quick, --settings, --device."
            yield from [f"{option} {clocks}"] * is_given
    if options.quick and (options.settings or options.only or options.no_fit):
        own = "--quick runs its own benchmarks at the clocks in force and always makes a table"
        yield f"{own}: leave out --settings, --only and --no-fit."
    if options.component is not None and options.meter_log is None:
        yield "--component names a part of a meter's log: give it with --meter-log FILE."
    if options.meter_log and not Path(options.meter_log).exists():
        yield f"--meter-log {options.meter_log}: there is no such file; start what writes it first."


def _request(options: argparse.Namespace) -> "Request":
    """What the options of `eprof calibrate` ask for. Raises UsageError with the first sentence of `_wrong`."""
    from eprof.commands.calibrate.manifest import QUICK, Timing
    from eprof.commands.calibrate.results import MeterLog
    from eprof.commands.calibrate.session import Request

    for sentence in _wrong(options):
        raise UsageError(sentence)
    log = mapped(lambda file: MeterLog(Path(file), options.component or ""), options.meter_log or None)
    timing = Timing(options.budget, options.window, min(_WARM_S, options.window), rounds=options.repeat)
    if options.quick:
        timing = QUICK
    place = Path(options.directory or Path(options.output or "calibration").with_suffix(".calibration"))
    return Request(
        directory=place,
        settings=settings(options.settings),
        device=either(options.opencl, str(options.device or 0)),
        timing=timing,
        only=tuple(options.only),
        quick=options.quick,
        resume=options.resume,
        log=log,
    )


def _prepare(session: "Session", options: argparse.Namespace) -> None:
    """Prepare a calibration; unless quiet, say on what it runs, how long that takes, and where results go."""
    session.prepare()
    timing, count = session.request.timing, len(session.benchmarks)
    if options.quiet:
        return
    from eprof.commands.calibrate.session import kind_of

    device = session.device
    say(f"{device['name']} ({kind_of(device)}), {session.images[0].how}.")
    for note in session.notes:
        say(note)
    number = max(len(session.request.settings), 1)
    seconds = timing.expected_s(count) * number
    duration = when(seconds < 120, f"{seconds:.0f} s") or f"{seconds / 60:.0f} minutes"
    say(
        f"{counted(count, 'benchmark')} at {counted(number, 'setting')}, about {duration}; "
        f"raw results go to {shown_path(session.request.directory)}."
    )
    if timing.benchmarks() < count:
        say(f"The budget of {timing.budget_s:.0f} s holds {timing.benchmarks()} of them: the last ones are left out.")


def _show(rows: Sequence["Row"]) -> None:
    """Print one line a benchmark of `eprof calibrate`: time, power, fraction of peak, or why it is left out."""
    print(f"{'benchmark':<22} {'MHz':>10} {'power':>9} {'of peak':>8} {'bound':>8}  left out of the fit because")
    for row in rows:
        power = mapped("{:.1f} W".format, row.power_w) or "-"
        peak = mapped("{:.0%}".format, row.fraction) or "-"
        clocks = when(row.core_mhz > 0, f"{row.core_mhz:.0f}/{row.memory_mhz:.0f}") or "-"
        why = "; ".join(row.reasons) or (phrase("({})", "; ".join(row.notes)))
        print(printable(f"{row.benchmark:<22} {clocks:>10} {power:>9} {peak:>8} {row.bound or '-':>8}  {why}".rstrip()))
    print(f"{sum(row.used for row in rows)} of {len(rows)} rows go into the fit.")


def _dry_run(request: "Request", backend: "Backend") -> int:
    """Print the benchmarks of `eprof calibrate --dry-run`, what a launch of each counts, how long all take."""
    from eprof.commands.calibrate.manifest import capability_of, choose, choose_quick
    from eprof.commands.calibrate.session import kind_of

    timing = request.timing
    try:
        device = backend.probe(request.device)
        print(printable(f"# {device['name']}, {kind_of(device)}"))
    except EprofError as err:
        like, known = {"cpu": ("processor with AVX2", "32.1")}.get(backend.processor, ("GPU of capability 9.0", "9.0"))
        device = {"capability": known, "is_rated": True}
        say(f"{err} These are the benchmarks for a {like}.")
    manifest, capability = backend.manifest(device), capability_of(str(device["capability"]))
    chosen = choose(manifest, capability, request.only)
    if request.quick:
        chosen = choose_quick(manifest, capability)
    for benchmark in chosen:
        print(printable(f"{benchmark.name:<22} {benchmark.title}"))
        threads = {"1": "on one core"}.get(benchmark.blocks, "on every core")
        if benchmark.block > 1:
            threads = f"blocks = {benchmark.blocks}, {benchmark.block} threads each"
        counts = "; ".join(f"{word} = {formula.text}" for word, formula in benchmark.count.items())
        print(printable(f"{'':<22}   {threads}; {counts or 'nothing is counted'}"))
    number = max(len(request.settings), 1)
    print(
        f"# {counted(len(chosen), 'benchmark')} of {timing.benchmark_s:.1f} s, {counted(number, 'setting')}: about "
        f"{timing.expected_s(len(chosen)) * number:.0f} s; {min(timing.benchmarks(), len(chosen) * timing.rounds)} "
        "measurements a setting"
    )
    return 0
