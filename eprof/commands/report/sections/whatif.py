"""What if: modelled answers, a row a question; and sliders that the script works out."""

from collections.abc import Iterable
from typing import Any

from eprof.base.optional import growth, mapped
from eprof.base.text import by_sign, capital, when
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.report import packed
from eprof.commands.report.advice.levers import worth_trying
from eprof.commands.report.sections import Section
from eprof.commands.report.view import DRAM, View
from eprof.commands.report.whatif import clock_words, is_same, same_clocks
from eprof.profile import schema
from eprof.show.page.as_html import laid, mini
from eprof.show.page.frame import energy_map
from eprof.show.words.amounts import MISSING, UNKNOWN, Amount, bits, quantity_of
from eprof.show.words.cells import HeatCell, colour
from eprof.show.words.numbers import NARROW, percent, quantity

_ACTS = 5  # of the changes that are worth trying
_HYPOTHETICAL = ("pi0=", "=free")  # what nobody can do, in questions that every report asks


def section(view: View) -> Section | None:
    """The section on what-if answers, or None if there is none."""
    answers, before = view.document.what_if, view.counted_energy(view.document)
    if not answers or not before.value:
        return None
    acts = worth_trying(view)[:_ACTS]
    sliders = _sliders(view)
    joules = [_joules(view, answer) for answer in answers]
    scale = max(before.value, *(energy or 0.0 for energy in joules))
    possible: list[dict[str, Any]] = []
    thought: list[dict[str, Any]] = []
    for answer, energy in zip(answers, joules, strict=True):
        row = {
            "says": capital(answer.says),
            "assumes": answer.assumes,
            "bar": mini(laid([("plain", energy or 0.0)], scale)),
            "energy": quantity_of(Amount(energy, bits(answer.marks)), "J"),
            "change": _answer_change(mapped(growth, energy, before.value)),
            "time": _answer_change(answer.time_share),
        }
        is_thought = not answer.asked and any(sign in answer.question for sign in _HYPOTHETICAL)
        (thought if is_thought else possible).append(row)
    of = when(view.is_above, " Joules are those above constant power.")
    idle = when(view.document.idle_j, f" Joules are those of {view.nouns.kernels}, without idle time.")
    content = {
        "sentence": f"Every answer is modelled, none is measured.{of}{idle}",
        "acts": [capital(act) for act in acts],
        "rows": possible,
        "thought": thought,
        "before": quantity_of(before, "J"),
        "bar": mini(laid([("plain", before.value)], scale)),
        "sliders": bool(sliders),
        "has_dram": bool(_dram_j(view)),
    }
    return Section("whatif", "What if", "What if", "whatif.html", content, sliders)


def _joules(view: View, answer: schema.Answer) -> float | None:
    """The energy of an answer, J, without constant power where the page counts without; None: not known."""
    if view.is_above:
        return sum(filter(None, [answer.energy_j.computation, answer.energy_j.data])) or None
    return answer.energy_j.total


def _answer_change(share: float | None) -> str:
    if share is None:
        return UNKNOWN
    if is_same(share):
        return "the same"
    return f"{by_sign(share, '▼', '▲')} {percent(abs(share))}"


def _sliders(view: View) -> dict[str, str]:
    """Constant energy, that of DRAM, of active cycles, and the rest, J, as JSON for the script; empty if unknown."""
    constant, total = view.energy(CONSTANT), view.energy("total")
    if view.is_above or not constant.value or total.value is None or constant.marks & MISSING:
        return {}
    dram, cycles = _dram_j(view), _joules_of(view, (name for name, count in COUNTS.items() if count.unit == "cycle"))
    parts = {"constant": constant.value, "dram": dram, "cycles": cycles}
    return {"what": packed.text({**parts, "other": total.value - sum(parts.values()), "marks": total.marks})}


def _dram_j(view: View) -> float:
    return _joules_of(view, DRAM)


def _joules_of(view: View, words: Iterable[str]) -> float:
    counts = view.document.counts
    return sum(view.energy_of_count(counts[name]).or_zero for name in words if name in counts)


def clocks_section(view: View) -> Section | None:
    """The section on other clocks, or None where the table knows one setting only."""
    clocks = view.document.clocks
    if not clocks:
        return None
    known = {(setting.core_mhz, setting.memory_mhz): setting for setting in clocks.settings if setting.energy_j}
    joules = [setting.energy_j or 0.0 for setting in known.values()]
    unit = quantity(min(joules), "J").rpartition(NARROW)[2]
    cells = {}
    for pair, setting in known.items():
        sign = when(same_clocks(setting, clocks.lowest), "*")
        number = quantity(setting.energy_j or 0.0, "J").removesuffix(f"{NARROW}{unit}")
        step = colour(setting.energy_j, joules) if setting.offered else None
        cells[pair] = HeatCell(number, step, sign, is_now=setting.this, is_allowed=setting.offered)
    here = when(any(setting.this for setting in clocks.settings), ", outlined: this run")
    if here and view.costs and view.costs.setting_from == "the table's default":
        here = ", outlined: the table's default, as the log tells no clocks"
    faint = when(
        not all(cell.is_allowed for cell in cells.values()), ", faint: a pair that the table does not vouch for"
    )
    sentence = (
        f"{clock_words(clocks, view.document)} In {unit}; ★: the lowest{here}{faint}. Modelled: {clocks.assumes}."
    )
    content = {"sentence": sentence, "heat": energy_map(cells)}
    return Section("clocks", "Clocks", "Other clock settings", "clocks.html", content)
