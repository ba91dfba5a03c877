"""What if: modelled answers, a row a question; and sliders that the script works out."""

from eprof.base.text import by_sign, capital, when
from eprof.base.vocabulary import CONSTANT
from eprof.show.page.frame import energy_map
from eprof.show.page.svg import laid, mini
from eprof.show.report import packed
from eprof.show.report.sections import Section
from eprof.show.report.view import DRAM, View
from eprof.show.report.whatif import clock_words, is_same, same_clocks
from eprof.show.words.badges import MISSING, UNKNOWN, Amount, bits, quantity_of
from eprof.show.words.cells import HeatCell, colour
from eprof.show.words.numbers import NARROW, percent, quantity


def section(view: View) -> Section | None:
    """The section on what-if answers, or None if there is none."""
    answers, before = view.document.what_if, view.energy("total")
    if not answers or not before.value:
        return None
    scale = max([before.value, *(answer.energy_j.total or 0.0 for answer in answers)])
    sliders = _sliders(view)
    best = min(answers, key=lambda answer: answer.change_j or 0.0)
    finding = "Nothing of this would take less energy."
    if (best.change_j or 0.0) < 0 and best.change_share is not None:
        finding = f"{capital(best.says)}: {percent(-best.change_share)} less, the most of these."
    rows = [
        {
            "says": capital(answer.says),
            "assumes": answer.assumes,
            "bar": mini(laid([("plain", answer.energy_j.total or 0.0)], scale)),
            "energy": quantity_of(Amount(answer.energy_j.total, bits(answer.marks)), "J"),
            "change": _answer_change(answer.change_share),
            "time": _answer_change(answer.time_share),
        }
        for answer in answers
    ]
    content = {
        "sentence": f"{finding} Every answer is modelled, none is measured.",
        "rows": rows,
        "before": quantity_of(before, "J"),
        "bar": mini(laid([("plain", before.value)], scale)),
        "sliders": bool(sliders),
    }
    return Section("whatif", "What if", "What if", "whatif.html", content, sliders)


def _answer_change(share: float | None) -> str:
    if share is None:
        return UNKNOWN
    if is_same(share):
        return "the same"
    return f"{by_sign(share, '▼', '▲')} {percent(abs(share))}"


def _sliders(view: View) -> dict[str, str]:
    """What the script of the what-if sliders needs: constant energy, DRAM's, the rest, in J; nothing if unknown."""
    constant, total = view.energy(CONSTANT), view.energy("total")
    if not constant.value or total.value is None or constant.marks & MISSING:
        return {}
    counts = view.document.counts
    dram = sum(view.energy_of_count(counts[name]).or_zero for name in DRAM if name in counts)
    parts = {"constant": constant.value, "dram": dram, "other": total.value - constant.value - dram}
    return {"what": packed.text({**parts, "marks": total.marks})}


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
        cells[pair] = HeatCell(number, colour(setting.energy_j, joules), sign, is_now=setting.this)
    here = when(any(setting.this for setting in clocks.settings), ", outlined: this run")
    sentence = f"{clock_words(clocks)} In {unit}; ★: the lowest{here}. Modelled: {clocks.assumes}."
    content = {"sentence": sentence, "heat": energy_map(cells)}
    return Section("clocks", "Clocks", "Other clock settings", "clocks.html", content)
