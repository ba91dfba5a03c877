"""The document `eprof.tune/1` as a table of rows and as Markdown."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from eprof.base.text import in_markdown
from eprof.tuning.schema import PICKS, At, Kernel, Picked, Tune, label, same

_LISTS = ("energy_j", "time_s", "measured_j", "measured_s")
_HEADS = ("kernel", "best", "energy J", "time s", "fastest", "energy J", "measured best", "lost %", "fastest lost %")


def frame(document: Tune) -> pd.DataFrame:
    """A row for each kernel and setting, and for all kernels together; `pick` says which were chosen, and by what."""
    whole = {name: [getattr(setting, name) for setting in document.settings] for name in _LISTS}
    rows = list(_rows(document.program, document, whole, document))
    for kernel in document.kernels:
        rows += _rows(kernel.name, kernel, {name: getattr(kernel, name) for name in _LISTS}, document)
    return pd.DataFrame(rows)


def _rows(name: str, picks: Picked, lists: dict[str, list[Any]], document: Tune) -> Iterator[dict[str, Any]]:
    for place, setting in enumerate(document.settings):
        yield {
            "kernel": name,
            "core_mhz": setting.core_mhz,
            "memory_mhz": setting.memory_mhz,
            **{column: values[place] for column, values in lists.items()},
            "pick": " ".join(pick for pick in PICKS if same(getattr(picks, pick), setting)),
        }


def markdown(document: Tune) -> str:
    """Best and fastest setting of every kernel, as a Markdown table."""
    lines = [
        f"# Clocks for {in_markdown(document.title)}",
        "",
        f"Objective: {in_markdown(document.objective_words)}.",
        "",
        "| " + " | ".join(_HEADS) + " |",
        "|---|" + "---|" * (len(_HEADS) - 1),
        _line(document.program, document),
    ]
    lines += [_line(kernel.name, kernel, kernel) for kernel in document.kernels]
    if document.notes:
        lines += ["", "## Notes", "", *[f"- {in_markdown(note)}" for note in document.notes]]
    return "\n".join(lines) + "\n"


def _line(name: str, picks: Picked, kernel: Kernel | None = None) -> str:
    """One row; what picks lost is known of kernels alone."""
    cells = [
        in_markdown(name),
        label(picks.best),
        *_energy_and_time(picks.best),
        label(picks.fastest),
        _energy_and_time(picks.fastest)[0],
        label(picks.measured_best),
        _number(kernel.lost_percent if kernel else None),
        _number(kernel.oracle_lost_percent if kernel else None),
    ]
    return "| " + " | ".join(cells) + " |"


def _energy_and_time(setting: At | None) -> tuple[str, str]:
    return ("-", "-") if setting is None else (_number(setting.energy_j), _number(setting.time_s))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
