"""The page of `eprof history`, one file that fetches nothing (docs/history.md)."""

from collections.abc import Iterator
from itertools import pairwise

from markupsafe import Markup

from eprof.base.optional import either, ratio
from eprof.base.text import by_sign, when
from eprof.commands.history import words
from eprof.commands.history.document import LEAST, History
from eprof.show.amounts import bits
from eprof.show.as_html import pct
from eprof.show.blocks import Section, quiet
from eprof.show.html_page import Figure, card, method
from eprof.show.numbers import NARROW, percent, quantity, whole

_HEIGHT, _TOP, _BOTTOM = 240, 16, 30
_LEFT, _WIDTH = 9, 89  # per cent of the width
_KERNELS, _TICKS = 40, 8
_LETTER = 2.2  # of a label, in per cent of the width of a phone


def figures(document: History) -> Iterator[Figure]:
    """Yield the page's key figures: energy of the last run, numbers of runs and changes, how far repeats differ."""
    last = document.runs[-1]
    yield Figure("Last run", quantity(last.energy_j["total"] or 0.0, "J"), words.label(last), bits(last.marks))
    yield Figure("Runs", whole(len(document.runs)))
    yield Figure("Changes", whole(len(words.of_program(document))), "of the whole program")
    if document.noise is not None:
        yield Figure("Repeats differ by", percent(document.noise.share).replace(" ", NARROW))


def sections(document: History) -> Iterator[Section]:
    """Yield the cards of a history's page: energy by run, changes, kernels, runs, and how changes are found."""
    legend = "A dot a run, in the order of time; lines: the mean between changes. The axis does not start at zero."
    yield card("energy", "Energy", "Energy, run by run", _chart(document), quiet(legend))
    if document.changes:
        table, why = words.changes(document, None), words.next_step(document)
        yield card("changes", "Changes", "What changed, and when", table, *why)
    nouns = document.runs[-1].nouns
    heading = f"{nouns.kernel.capitalize()} by {nouns.kernel}"
    yield card("kernels", nouns.kernels.capitalize(), heading, words.kernels(document, _KERNELS))
    yield card("runs", "Runs", "All runs", words.runs(document))
    found = [
        "Binary segmentation: the series is cut where the means of both sides differ most against the noise inside "
        f"them, if Student's t test, with the choice of the cut paid for, gives less than {percent(document.level)}; "
        f"then both pieces likewise. Each side has {LEAST} runs or more; repeats of a commit stay together. "
        f"{nouns.kernels.capitalize()} share {percent(document.level)} among them.",
        "It takes the noise for the same before and after, and runs for independent: a processor that warms up over a "
        "night of runs may look like a change.",
    ]
    yield method(document, {"Changes": found}, document.warnings)


def _chart(document: History) -> Markup:
    """The chart of a history: a dot a run, the mean energy between changes, names of some runs below."""
    energies = words.joules(document)
    changes = words.of_program(document)
    edges = [0, *(change.run for change in changes), len(energies)]
    last = max(len(energies) - 1, 1)
    low_j, high_j = min(energies), max(energies)

    def across(place: float) -> float:  # in per cent
        return _LEFT + _WIDTH * min(max(place, 0.0), last) / last

    def down(energy_j: float) -> float:  # in pixels
        share = either(ratio(energy_j - low_j, high_j - low_j), 0.5)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * share

    body = Markup("")
    for energy_j in dict.fromkeys((low_j, high_j)):
        y = down(energy_j)
        body += Markup(
            '<line class="axis" x1="0%" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
            '<text class="tick" x="0%" y="{above:.1f}">{energy}</text>'
        ).format(y=y, above=y - 4, energy=quantity(energy_j, "J"))
    for start, end in pairwise(edges):
        y = down(sum(energies[start:end]) / (end - start))
        ends = pct(across(start - 0.4)), pct(across(end - 0.6))
        body += Markup('<line class="axis zero" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>').format(*ends, y=y)
    starts = set(edges[1:-1])
    for place, (run, energy) in enumerate(zip(document.runs, energies, strict=True)):
        kind = "dot" + when(place in starts, " best")
        about = f"{words.label(run)}: {quantity(energy, 'J')}, {run.time_utc[:16].replace('T', ' ')}"
        body += Markup('<circle class="{}" cx="{}" cy="{:.1f}" r="4"><title>{}</title></circle>').format(
            kind, pct(across(place)), down(energy), about
        )
    # Labels below: first and last run, latest changes; none where another stands already.
    taken: list[tuple[float, float]] = []
    for place in [*sorted(starts, reverse=True), len(document.runs) - 1, 0][:_TICKS]:
        x, name = across(place), words.label(document.runs[place])
        # It stands right of a place on the left, left of one on the right.
        low = x - (x > 50) * _LETTER * len(name)
        high = low + _LETTER * len(name)
        if all(high < left or low > right for left, right in taken):
            taken.append((low, high))
            label = Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>')
            body += label.format(pct(x), _HEIGHT - 6, by_sign(x - 50, "start", "end"), name)
    spoken = words.headline(document).text
    return Markup('<svg class="bar" width="100%" height="{}" role="img" aria-label="{}">{}</svg>').format(
        _HEIGHT, spoken, body
    )
