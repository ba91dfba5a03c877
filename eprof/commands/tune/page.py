"""The page of `eprof tune`, one file that fetches nothing (docs/tune.md)."""

from collections.abc import Iterator

from markupsafe import Markup

from eprof.base.labels import labels
from eprof.base.optional import growth, ratio
from eprof.base.text import by_sign, capital, when
from eprof.commands.tune import words
from eprof.commands.tune.document import At, LostBy, Tune, label, same
from eprof.show import plot
from eprof.show.blocks import Cell, Column, Row, Section, Sentence, Table, quiet
from eprof.show.blocks import decimals as number
from eprof.show.heat_map import energy_map
from eprof.show.html_page import Figure, card, method, templates
from eprof.show.numbers import MINUS, NARROW, quantity, quantity_or
from eprof.show.numbers import error_percent as percent

_NAMED_DOTS = 12
_CLOCKS = 24  # columns of a heat map, about
_ROOM, _LEAST = 1.1, 1.5  # around the dots; how long an axis is at least, as factors
_FAR = 3  # times the time or the energy that others are held against


def figures(document: Tune) -> Iterator[Figure]:
    """Yield the page's key figures: the best setting, energy and time there, and against the run or the fastest."""
    best, before, own = document.answer(document), document.baseline(document), document.each_its_own
    if best is None:
        yield Figure("Best setting", "none")
        return
    energy, time = document.amounts(document)
    best_j, best_s = getattr(best, energy), getattr(best, time)
    of_energy = of_time = "measured"
    if document.measured_best is None:
        of_energy, of_time = "predicted", document.time.source
    yield Figure("Best setting", f"{best.label}{NARROW}MHz", "core/memory")
    yield Figure("Energy there", quantity_or("not known", best_j, "J"), of_energy)
    yield Figure("Time there", quantity_or("not known", best_s, "s"), of_time)
    if before is not None and not same(best, before):
        against = when(document.is_of_run, "the run") or "the fastest"
        yield Figure(f"Energy against {against}", _signed_percent(best_j, getattr(before, energy)))
        yield Figure(f"Time against {against}", _signed_percent(best_s, getattr(before, time)))
    if own is not None and _is_worth(own.energy_j, best_j):
        change = _signed_percent(own.energy_j, best_j)
        yield Figure(f"Each {document.nouns.kernel} at its own", change, "energy, if switching were free")


def _is_worth(value: float | None, before: float | None) -> bool:
    """Whether two energies differ by 0.05 % or more, and so are worth words."""
    return abs(growth(value, before) or 0.0) >= 5e-4


def _signed_percent(value: float | None, before: float | None) -> str:
    """The change from `before` to `value` as text: "+3.1 %"; "not known" where one of them is not."""
    share = growth(value, before)
    if share is None:
        return "not known"
    size = percent(100 * abs(share)).replace(" ", NARROW)
    return when(abs(share) >= 0.5e-4, by_sign(share, MINUS, "+")) + size


def sections(document: Tune) -> Iterator[Section]:
    """Yield the cards of the page of `eprof tune`: heat map, time against energy, kernels, the meter, method."""
    if (heat := words.heat(document)) is not None:
        yield _clocks(document, heat)
    yield from _trade(document)
    if len(document.kernels) > 1:
        yield _kernels(document)
    if (losses := document.energy_lost_percent) is not None:
        yield _against_the_meter(document, losses)
    power = "A fit for each kernel, made from all the others: nothing is predicted by a fit that has seen it."
    if document.model.kind == "none":
        power = "As measured; without counts there is nothing to predict it by."
    elif document.model.kind == "table":
        power = f"Cost table {document.model.name} for {document.model.device}. {document.model.source.rstrip('.')}."
    if isinstance(error := document.model.power_error_percent, float):
        power += f" Its mean error on the measured power of these rows is {percent(error)}."
    chosen_for, time = f"{capital(document.objective_words)}.", words.time_words(document)
    yield method(document, {"Chosen for": [chosen_for], "Power": [power], "Time": [time]}, document.notes)


def _clocks(document: Tune, heat: words.Heat) -> Section:
    """The card of heat maps: energy of the program at every clock setting, and of the twelve kernels that take most."""
    framed = when(document.now is not None, ", framed: the setting in force")
    faint = when(not all(setting.allowed for setting in document.settings), " Faint: may not be picked.")
    legend = (
        f"{heat.legend.replace('*', '★')}{framed}. From light to dark in equal ratios, from the least to the most "
        f"energy.{faint}"
    )
    cells = words.thinned(heat.cells, _CLOCKS)
    some = when(len(cells) < len(heat.cells), " some of the clocks")
    answer = Sentence(f"{heat.caption} Core clock across{some}, memory clock down, in MHz.")
    dearest = words.by_energy(document)[:12]
    maps = [
        {
            "full": kernel.name,
            "name": name,
            "words": f"best at {label(document.answer(kernel))} MHz",
            "heat": energy_map(words.thinned(words.kernel_heat(document, kernel), _CLOCKS)),
        }
        for kernel, name in zip(dearest, labels([kernel.name for kernel in dearest], 70), strict=True)
    ]
    template = templates().get_template("validation_maps.html")
    drawn = Markup(template.render(maps=maps, nouns=document.nouns))  # noqa: S704  escaped there
    below = when(len(document.kernels) > 1, drawn)
    return card("clocks", "Clocks", "Energy at every clock setting", answer, energy_map(cells), quiet(legend), below)


def _kernels(document: Tune) -> Section:
    """The card of the kernels: how many are best elsewhere than where they ran, or the fastest; and each one's best."""
    nouns, own, best = document.nouns, document.each_its_own, document.answer(document)
    best_j = getattr(best, document.amounts(document)[0], None)
    others = sum(not same(document.answer(kernel), document.baseline(kernel)) for kernel in document.kernels)
    answer = Sentence(
        f"{others} of {len(document.kernels)} {nouns.kernels} have the {document.objective_words} elsewhere than "
        f"{words.baseline(document)}."
    )
    after = ""
    if own is not None and _is_worth(own.energy_j, best_j):
        after = (
            f"Each {nouns.kernel} at its own setting, if changing clocks were free: "
            f"{words.change('energy', own.energy_j, best_j)} than all at the program's best."
        )
    heading = f"{nouns.kernel.capitalize()} by {nouns.kernel}"
    return card("kernels", nouns.kernels.capitalize(), heading, answer, words.kernels(document), quiet(after))


def _against_the_meter(document: Tune, losses: LostBy) -> Section:
    """The card with [FMM] Table II on these measurements: what the model's picks, and the fastest, lose."""
    rows = []
    for picker, lost in (("the model", losses.model), ("the fastest setting (race to halt)", losses.oracle)):
        percents = [lost.mean_percent, lost.min_percent, lost.max_percent, lost.all_mean_percent]
        cells: list[Cell] = [picker, str(lost.cases), str(lost.wrong), *(number(value, 2) for value in percents)]
        rows.append(Row(cells, total=lost is losses.model))
    heads = ("kernels", "not the measured best", "lost mean %", "min %", "max %", "mean over all %")
    below = quiet(
        "Lost: how much more energy was measured at the pick than at the measured best, over the kernels whose "
        "pick is not the measured best; the last column is over all kernels."
    )
    answer = Sentence(" ".join(words.lost_words(document)))
    table = Table([Column("pick", "left"), *map(Column, heads)], rows)
    return card("meter", "Against the meter", "Against the measured best", answer, table, below)


def _trade(document: Tune) -> Iterator[Section]:
    """Yield the card of time against energy of every setting; none where fewer than three settings have both."""
    known = [setting for setting in document.settings if all(over(document, setting, setting))]
    best, before = document.answer(document), document.baseline(document)
    if best is None or before is None or not all(over(document, before, before)) or len(known) < 3:
        return
    near = [setting for setting in known if max(over(document, setting, before)) <= _FAR]
    count = len(document.front)
    are = {1: "setting is"}.get(count, "settings are")
    answer = (
        f"{count} of {len(known)} {are} worth a look: at every other one, another takes no more time and "
        f"less energy. Both are over those at {before.label} MHz, {words.baseline(document)}."
    )
    far = when(len(near) < len(known), f"{len(known) - len(near)} with more than {_FAR} times as much are not drawn.")

    # All of a short front have names; of a long one its fast end, and always the best and what it is held against.
    is_long = len(document.front) > _NAMED_DOTS
    named = [*document.front[: 1 if is_long else None], best, before]
    energy, time = document.amounts(document)
    dots = []
    for setting in near:
        name = when(any(same(setting, pick) for pick in named), setting.label)
        if same(setting, best):
            name = f"{setting.label} (best)"
        joules, seconds = quantity(getattr(setting, energy), "J"), quantity(getattr(setting, time), "s")
        spoken = f"{setting.label} MHz: {joules} in {seconds}"
        dots.append(plot.Dot(*over(document, setting, before), 0.08, name, spoken))
    panel = plot.Panel(
        "Energy",
        f"over that at {before.label} MHz",
        "trade",
        plot.axis([dot.x for dot in dots], _ROOM, _LEAST),
        plot.axis([dot.y for dot in dots], _ROOM, _LEAST),
        [],
        dots,
        below=f"time over that at {before.label} MHz",
        height=plot.LARGE,
    )
    drawn = plot.panel_html(panel, f"Energy against time at {len(near)} settings")
    chart = Markup('<div class="plots">{}</div>').format(drawn)
    yield card("trade", "Time for energy", "What less energy costs in time", Sentence(answer), chart, quiet(far))


def over(document: Tune, setting: At, before: At) -> tuple[float, float]:
    """(time, energy) of a setting as factors of those at `before`; 0 where one is not known."""
    energy, time = (ratio(getattr(setting, field), getattr(before, field)) for field in document.amounts(document))
    return time or 0.0, energy or 0.0
