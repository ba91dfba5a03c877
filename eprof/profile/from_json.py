"""A report's JSON, `eprof.profile/1`, read back: checked before anything is made of it, and as a `Profile` again.

So a baseline may be one small file. What it does not hold, counters and launches, is not there; bytes of caches are
known in the books in which they were saved.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import astuple, replace

from eprof import __version__
from eprof.base.arrays import Columns
from eprof.base.errors import CostError, DefinitionError, LogError
from eprof.base.gpus import Traits
from eprof.base.labels import no_such_kernel, selection
from eprof.base.resources import log_content
from eprof.base.text import phrase
from eprof.base.vocabulary import COUNTS, MISSING, SIMULATED, marks_of_names
from eprof.collect.directory import COMPLETE
from eprof.costs import DEFAULT
from eprof.costs import load as load_costs
from eprof.counts import definition_files
from eprof.counts.counts import Counts
from eprof.counts.definition import Definition, without_counters
from eprof.logs.log import IN_KERNEL, Idle, KernelRows, Launches, Log
from eprof.logs.runs import TIME, Run
from eprof.profile import schema
from eprof.profile.counted_profile import Counted
from eprof.profile.device import Device, split_label
from eprof.profile.profile import Profile
from eprof.profile.warnings import MEASURED

_MOST = 1e15
_MOST_BYTES = 256 << 20
_CACHES = [word for word in COUNTS if word.startswith(("l1_", "l2_", "l3_"))]


class _Kind(msgspec.Struct):
    schema: str = ""


def read(path: Path) -> schema.Profile | None:
    """The report in a file of JSON; None for a document of another kind.

    Raises LogError: it is damaged, or has numbers, marks or places that no report has.
    """
    content = log_content(str(path), _MOST_BYTES)
    try:
        if msgspec.json.decode(content, type=_Kind).schema != schema.PROFILE:
            return None
        profile = msgspec.json.decode(content, type=schema.Profile)
        _check(profile)
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError) as err:
        raise LogError(f"{path}: is no report in JSON ({err}); make it again, or move it away.") from err
    return profile


def _check(profile: schema.Profile) -> None:
    """Check a report read from JSON. Raises ValueError or KeyError for numbers, marks or places that no report has."""
    joules = [profile.energy_j, *(kernel.energy_j for kernel in profile.kernels)]
    numbers = [number for each in joules for number in astuple(each)]
    numbers += [profile.time_s, *(kernel.time_s for kernel in profile.kernels)]
    numbers += [costs.constant_power_w for costs in profile.prices]
    if profile.gaps:
        told = astuple(profile.gaps)
        numbers += [each.time_s for several in told if isinstance(several, list) for each in several]
        numbers += [number for number in told if not isinstance(number, list)]
    if profile.ranks:
        numbers += [profile.ranks.number - 1, profile.ranks.time_s.max]
    numbers += (profile.in_use or {}).values()
    if profile.run:
        numbers += [*profile.run.alone_s, *profile.run.used_s]
    wrong = [number for number in numbers if number is not None and not (0 <= number < _MOST and math.isfinite(number))]
    if wrong:
        raise ValueError(f"{wrong[0]:g} is no energy, time or power from 0 to {_MOST:g}")
    counts = [count.value or 0.0 for kernel in profile.kernels for count in kernel.counts.values()]
    if not all(0 <= count < math.inf for count in counts):
        raise ValueError("a count is below 0, or none")
    of_counts = [count.marks for kernel in profile.kernels for count in kernel.counts.values()]
    of_times = [profile.time_marks, *(kernel.time_marks for kernel in profile.kernels)]
    for marks in (*of_times, *of_counts, *astuple(profile.energy_marks)):
        marks_of_names(marks)
    places = [place for group in profile.groups or () for place in group.kernels]
    if not all(0 <= place < len(profile.kernels) for place in places):
        raise ValueError("a group has kernels that are not there")


def load(path: Path, kernels: Sequence[str] = (), command_line: Sequence[str] = ()) -> Profile:
    """The profile that a report's JSON was made of. kernels: which ones, as `eprof.load` has them.

    Raises LogError: another document, or not a whole one, or none of its kernels is selected.
    """
    document = read(path)
    if document is None:
        kind = schema.kind_of(path)
        raise LogError(f"{path}: is a document {kind}; only a report's JSON, {schema.PROFILE}, can be read back.")
    saved = _counts(document, kernels)
    rows = saved.rows
    known = {(device.name, device.index): device for device in document.devices}
    counted = []
    for label in dict.fromkeys(rows.device):
        told = known.get(split_label(label), document.device)
        board = told.told or Traits()
        device = Device(label, told.name, told.index, told.capability, told.capability_from, told=board)
        of_device = rows.chosen(rows.device == label)
        none = np.zeros((len(of_device), 0))
        launches = Launches(of_device, Columns((), none), Columns((), none.astype(np.int8)))
        counted.append(Counted(device, launches, _definition(document), document.time_from, ()))
    priced_as, note = _priced_as(document, path)
    notes = [*filter(None, [note])]
    if document.eprof != __version__:
        notes.append(
            f"It was written by eprof {document.eprof}, and this is {__version__}: what counters and prices mean may "
            "have changed; report on its logs again to be sure."
        )
    if document.run and document.run.repeats > max(1, len(document.run.alone_s)):
        notes.append(
            f"It holds the medians of {document.run.repeats} repeats, which are one here: compare run directories to "
            "have them all."
        )
    notes += filter(IN_KERNEL.search, document.warnings)
    if kernels:
        notes.append(f"{len(rows)} of {len(document.kernels)} kernels are selected by -k/--kernel-name.")
    else:
        notes += [warning for warning in document.warnings if warning.startswith(MEASURED)]
    gaps = not kernels and document.gaps or schema.Gaps(None, None, 0.0)
    idle = None
    if gaps.time_s is not None:
        idle = msgspec.convert(gaps, Idle, from_attributes=True)
    has_times = any(kernel.time_s is not None for kernel in document.kernels)
    return Profile(
        title=document.title,
        logs=tuple(
            Log(
                path=log.path,
                format=log.format,
                sha256=log.sha256 or "",
                size_bytes=log.size_bytes or 0,
                tables=(),
                command=log.command,
            )
            for log in document.inputs
        ),
        counted=tuple(counted),
        warnings=tuple(f"{path.name}: {note}" for note in notes),
        command_line=tuple(command_line),
        priced_as=priced_as,
        total_s=None if has_times or kernels else document.time_s,
        idle=idle,
        copies_s=gaps.copies_s,
        copies=tuple(gaps.copies),
        whole=not kernels,
        _books=_books(saved, document),
    )


def _counts(document: schema.Profile, kernels: Sequence[str]) -> Counts:
    """The counts of a saved report's kernels that `-k` selects, in its own books. Raises LogError: none is left."""
    names = [kernel.name for kernel in document.kernels]
    keep = selection(kernels, names)
    chosen = [kernel for kernel in document.kernels if not kernels or keep(kernel.name)]
    if not names:
        raise LogError("No kernel is left to report on: the report holds none.")
    if not chosen:
        raise LogError(no_such_kernel(kernels, list(dict.fromkeys(names))))
    shape = (len(chosen), len(COUNTS))
    values, marks = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    in_flops = set()
    for row, kernel in enumerate(chosen):
        for column, (word, definition) in enumerate(COUNTS.items()):
            count = kernel.counts.get(word)
            if count is None:
                continue
            if count.value is not None:
                values[row, column] = count.value
            marks[row, column] = int(marks_of_names(count.marks))
            if count.unit == "flop" != definition.unit:
                in_flops.add(word)
    time_marks = np.array([int(marks_of_names(kernel.time_marks)) for kernel in chosen])
    time_s = np.array([kernel.time_s for kernel in chosen], dtype=np.float64)
    # The time of a simulated kernel is a model's, which is asked again.
    is_model = (time_marks & SIMULATED) != 0
    rows = KernelRows(
        device=np.array([kernel.device for kernel in chosen], dtype=object),
        kernel=np.array([kernel.name for kernel in chosen], dtype=object),
        launches=np.array([kernel.launches for kernel in chosen]),
        time_s=np.where(is_model, np.nan, time_s),
        time_marks=np.where(is_model | np.isnan(time_s), MISSING, time_marks),
    )
    words = tuple(COUNTS)
    return Counts(
        rows,
        Columns(words, values),
        Columns(words, marks),
        how={},
        books=next((costs.books for costs in document.prices), "served"),
        in_flops=frozenset(in_flops),
        nouns=_definition(document).nouns,
    )


def _books(saved: Counts, document: schema.Profile) -> dict[str, Counts]:
    """A saved report's counts in both books, by name; in the books not saved, a GPU's bytes of caches are not known."""
    of_gpu = {label: costs.books for costs in document.prices for label in costs.of or ()}
    own = np.array([of_gpu.get(label, saved.books) for label in saved.rows.device], dtype=object)
    columns = np.array([saved.amounts.names.index(word) for word in _CACHES])
    made = {}
    for books in ("served", "accessed"):
        values, marks = saved.amounts.values.copy(), saved.amount_marks.values.copy()
        lost = np.ix_(own != books, columns)
        marks[lost] = np.where(~np.isnan(values[lost]) | (marks[lost] != 0), MISSING, 0)
        values[lost] = np.nan
        amounts, amount_marks = Columns(saved.amounts.names, values), Columns(saved.amounts.names, marks)
        made[books] = replace(saved, amounts=amounts, amount_marks=amount_marks, books=books)
    return made


def _definition(document: schema.Profile) -> Definition:
    """The definition that made a saved report's counts; one without words where eprof has none of that name."""
    try:
        return definition_files.named(document.definition.name)
    except DefinitionError:
        none = without_counters()
        return replace(none, processor=document.device.processor or none.processor)


def _priced_as(document: schema.Profile, path: Path) -> tuple[Run, str]:
    """A run with a saved report's costs, setting and efficiency, to price it alike; a note on what cannot be, or ""."""
    note = ""
    pricing: dict[str | None, dict[str, Any]] = {}
    for costs in document.prices:
        own: dict[str, Any] = {}
        if costs.basis != "estimated":
            try:
                load_costs(costs.name)
                core, memory = costs.setting.get("core_mhz"), costs.setting.get("memory_mhz")
                own = {"costs": costs.name, "setting": phrase("{:g}/{:g}", core, memory) or None}
                if costs.setting_from == DEFAULT:
                    own["setting"] = None
            except CostError:
                note = f"It was priced with {costs.name}, which is no table of eprof; name its file with --costs."
        if document.modelled_time is not UNSET and document.modelled_time.given:
            own["efficiency"] = document.modelled_time.efficiency
        pricing |= dict.fromkeys(costs.of or [None], own)
    manifest: dict[str, Any] = {"pricing": pricing.get(None, {}), "pricing_of": pricing, "eprof": document.eprof}
    manifest["in_use"] = document.in_use or {}
    if document.run:
        # What `run.json` had on when the run began, and on the times of its program alone.
        measurements = [{"what": TIME, "seconds": seconds} for seconds in document.run.alone_s]
        for measurement, used_s in zip(measurements, document.run.used_s, strict=False):
            measurement["cpu_seconds"] = used_s
        manifest |= {"status": COMPLETE, "started_utc": document.run.started_utc, "measurements": measurements}
    return Run(path, manifest, {}), note
