"""The page of a difference: the answer, what changed, kernels, counts, the model, what is left out, provenance."""

from collections.abc import Iterator

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.optional import less, mapped, ratio
from eprof.base.text import by_sign, phrase, visible, when
from eprof.commands.diff import answer, likeness, words
from eprof.commands.diff.schema import Document, Side
from eprof.show import amounts, cost_words
from eprof.show.amounts import MISSING, bits
from eprof.show.as_html import change as drawn_change
from eprof.show.as_html import pct, whisker
from eprof.show.blocks import Change, Notes, Section, Sentence, quiet, signed_quantity
from eprof.show.cost_words import clocks_and_volts, devices_named
from eprof.show.html_page import Figure, filled, templates
from eprof.show.intervals import cell, known, label
from eprof.show.numbers import percent, plain_or, signed_percent, utc

_KERNELS = 200
_LOGS = 20


def html(document: Document) -> str:
    """The page of a difference: one self-contained HTML file from a document `eprof.diff/1`."""
    full = answer.answered(document)
    document = words.unmarked(full)
    tables = (costs for side in (document.old, document.new) for costs in side.prices)
    page = filled(
        "diff.html",
        ["report.css", "diff.css"],
        ["diff.js"],
        document=document,
        subtitle=phrase("{} · ", cost_words.all_named(tables)) + utc(document.created_utc),
        not_same=words.unlike(document),
        headline=answer.headline(document),
        trust=words.trust(full),
        verdicts=words.verdicts(document),
        figures=_figures(document),
        legend=amounts.legend(words.legend(document).marks),
        notes=Notes(document.warnings),
        sections=list(_sections(document)),
        provenance=[(label, list(_facts(side))) for label, side in (("OLD", document.old), ("NEW", document.new))],
    )
    # Our own files hold no such characters, so that only names change.
    return visible(page)


def _figures(document: Document) -> list[Figure]:
    """The changes of energy and time and the factors at the top of a difference's page; none of strangers."""
    if likeness.are_strangers(document):
        return []
    times = bits(document.old.time_marks) | bits(document.new.time_marks)
    subject = answer.energy_of(document)
    energy, time = Figure("Energy", "not compared"), Figure("Time", "not known")
    if document.change_j is not None:
        share = phrase("({}) ", mapped(signed_percent, document.change_share))
        joule = document.nouns.joule
        note = share + cell(document.interval_j, joule, signed=True)
        change, marks = signed_quantity(document.change_j, joule), bits(document.marks) & ~MISSING
        energy = Figure(subject.capitalize(), change, note.strip(), marks)
    elif (measured_j := less(document.new.energy_j.measured, document.old.energy_j.measured)) is not None:
        energy = Figure("Energy, measured", signed_quantity(measured_j, "J"))
    if document.change_time_s is not None:
        time = Figure("Time", signed_quantity(document.change_time_s, "s"), "", times & ~MISSING)
    ratios = [
        ("Speedup", document.speedup, "OLD / NEW, time"),
        ("Greenup", document.greenup, f"OLD / NEW, {subject}"),
        ("Powerup", document.powerup, "NEW / OLD, power"),
    ]
    factors = [
        Figure(name, plain_or("not known", ratio), when(ratio is not None, note)) for name, ratio, note in ratios
    ]
    if likeness.launched_otherwise(document):  # what is faster of other numbers of launches, no factor tells
        return [replace(figure, label=f"{figure.label}, in all") for figure in (energy, time)]
    return [energy, factors[1]] if document.above_constant else [energy, time, *factors]


def _sections(document: Document) -> Iterator[Section]:
    """Yield the sections of a difference's page: what changed, both sides, kernels, counts, what is left out."""
    if drawn := bars(document):
        subject = f"The change of {answer.energy_of(document)}"
        if document.partial:
            subject = "What both sides know"
        how_to_read = [
            f"{subject}, part by part, largest first; they add up, and shares are of the change.",
            phrase("A thin line over a bar is its {}.", document.intervals and label(document.intervals.share)),
            when(not likeness.is_shown(document), "Bars are grey, because no difference is shown."),
            words.unchanged(document),
        ]
        read = Sentence(" ".join(filter(None, how_to_read)))
        rows = templates().get_template("changed.html").render(bars=drawn, intervals=document.intervals)
        beside = [quiet(text) for text in words.beside(document)]
        chart = Markup(rows)  # noqa: S704  escaped there
        yield Section("changed", "What changed", "What changed", [read, chart, *beside])

    noise = Sentence(words.noise(document))
    yield Section("sides", "OLD and NEW", "OLD and NEW", [noise, words.sides_table(document)])

    nouns = document.nouns
    kernels = nouns.kernels.capitalize()
    matched = f"Largest change first. {kernels} are matched by their full names unless their row says otherwise."
    yield Section("kernels", kernels, kernels, [Sentence(matched), words.kernels_table(document, _KERNELS)])

    priced = (
        "What was executed and moved, and what its change costs. A part by price or setting is what the same counts "
        "cost more or less."
    )
    heading = f"Counts, bytes and time of all matched {nouns.kernels}"
    yield Section("counts", "Counts", heading, [Sentence(priced), words.counts_table(document)])

    if lost := words.left_out_table(document):
        never = Sentence("What one side or both do not know is left out, never taken for nothing.")
        yield Section("lost", "Left out", "Not in the change", [never, lost])


def _facts(side: Side) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of where OLD, or NEW, comes from: program, device, cost tables, time, repeats, logs."""
    yield "Program", side.title
    yield "Device", ", ".join(devices_named(side.devices))
    for costs in side.prices:
        yield "Costs", ", ".join(filter(None, [cost_words.named(costs), clocks_and_volts(costs.setting)]))
    if not side.prices:
        yield "Costs", "none"
    if side.time_from:
        yield "Time", side.time_from
    if side.repeats > 1:
        yield "Repeats", f"{side.repeats}; all numbers are means over them"
    for log in side.inputs[:_LOGS]:
        yield "Log", f"{log.path} ({log.format}, SHA-256 {log.sha256[:16]}…)"
    if len(side.inputs) > _LOGS:
        yield "Logs", f"and {len(side.inputs) - _LOGS} more, in the JSON"


class Bar(Struct, frozen=True):
    """A row of the chart of steps. kind: "less", "more", "unclear" (the change does not stand out of the noise)."""

    name: str
    kind: str
    picture: Markup
    amount: Markup
    share: str
    interval: str = ""
    is_total: bool = False


def bars(document: Document) -> list[Bar]:
    """The chart of a difference: a bar a step, largest first, and one for the whole; empty if no joules changed."""
    steps = words.moving(document)
    if document.change_j is None or not steps:
        return []
    labels = (words.step_label(step, document.nouns) for step in steps)
    parts = [
        (name, step.change_j, step.marks, known(step.interval_j)) for name, step in zip(labels, steps, strict=True)
    ]
    parts.append(("Change", document.change_j, document.marks, known(document.interval_j)))
    reached = [0.0, *(joules for _, change_j, _, ends in parts for joules in (change_j, *(ends or ())))]
    low = min(reached)
    width_j, joule = (max(reached) - low) or 1.0, document.nouns.joule

    def place(joules: float) -> float:
        return float(100 * (-low / width_j + joules / width_j))

    drawn: list[Bar] = []
    for name, change_j, marks, ends in parts:
        kind = by_sign(change_j, "less", "more") if likeness.is_shown(document) else "unclear"
        left, right = sorted((place(0.0), place(change_j)))
        whole_j = document.change_j if likeness.tells_shares(document) else None
        share = mapped(percent, ratio(change_j, whole_j)) or ""
        interval = cell(ends, joule, signed=True)
        spoken = [signed_quantity(change_j, joule), interval, phrase("{} of the change", share)]
        shapes = [
            Markup('<line class="w-join" x1="{0}" x2="{0}" y1="-4" y2="22"/>').format(pct(place(0.0))),
            Markup('<rect class="w-{}" x="{}" y="2" width="{}" height="14"/>').format(
                kind, pct(left), pct(right - left)
            ),
            whisker(mapped(lambda ends: (place(ends[0]), place(ends[1])), ends)),
        ]
        picture = Markup('<svg class="bar" width="100%" height="18" role="img" aria-label="{}">{}</svg>').format(
            f"{name}: {', '.join(filter(None, spoken))}", Markup("").join(shapes)
        )
        amount = drawn_change(Change(change_j, joule, bits(marks) & ~MISSING))
        drawn.append(Bar(name, kind, picture, amount, share, interval, is_total=len(drawn) == len(steps)))
    return drawn
