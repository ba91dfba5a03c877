"""The page of `eprof tune`, one file that fetches nothing (docs/tune.md)."""

from collections.abc import Iterator

from msgspec import UNSET

from eprof.base.known import growth
from eprof.base.text import capital, when
from eprof.commands.tune import charts, words
from eprof.commands.tune.schema import LostBy, Tune, same
from eprof.show.page.frame import Figure, card, method, page, quiet
from eprof.show.page.heat import energy_map
from eprof.show.words.blocks import Column, Row, Section, Sentence, Table
from eprof.show.words.cells import Cell
from eprof.show.words.cells import decimals as number
from eprof.show.words.numbers import MINUS, NARROW, quantity_or
from eprof.show.words.numbers import error_percent as percent


def html(document: Tune) -> str:
    """The page of `eprof tune`: one self-contained HTML file from a document `eprof.tune/1`."""
    return page(
        document, "tune", words.costs(document), words.headline(document), _figures(document), _sections(document)
    )


def _figures(document: Tune) -> Iterator[Figure]:
    best, fastest, own = document.best, document.fastest, document.each_its_own
    if best is None:
        yield Figure("Best setting", "none")
        return
    yield Figure("Best setting", f"{best.label}{NARROW}MHz", "core/memory")
    yield Figure("Energy there", quantity_or("not known", best.energy_j, "J"), "predicted")
    yield Figure("Time there", quantity_or("not known", best.time_s, "s"), document.time.source)
    if fastest is not None and not same(best, fastest):
        yield Figure("Energy against the fastest", _signed_percent(best.energy_j, fastest.energy_j))
        yield Figure("Time against the fastest", _signed_percent(best.time_s, fastest.time_s))
    if own is not None and len(document.kernels) > 1:
        yield Figure(
            f"Each {document.nouns.kernel} at its own",
            _signed_percent(own.energy_j, best.energy_j),
            "energy, if switching were free",
        )


def _signed_percent(value: float | None, before: float | None) -> str:
    share = growth(value, before)
    if share is None:
        return "not known"
    sign = "+" if share > 0 else MINUS
    size = percent(100 * abs(share)).replace(" ", NARROW)
    return size if abs(share) < 0.5e-4 else f"{sign}{size}"


def _sections(document: Tune) -> Iterator[Section]:
    yield from _clocks(document)
    yield from _trade(document)
    if len(document.kernels) > 1:
        yield _kernels(document)
    if document.energy_lost_percent is not None:
        yield _meter(document, document.energy_lost_percent)
    yield _method(document)


def _clocks(document: Tune) -> Iterator[Section]:
    heat = words.heat(document)
    if heat is None:
        return
    framed = when(document.now is not None, ", framed: the setting in force")
    faint = when(not all(setting.allowed for setting in document.settings), " Faint: outside the limit.")
    legend = (
        f"{heat.legend.replace('*', '★')}{framed}. From light to dark in equal ratios, from the least to the most "
        f"energy.{faint}"
    )
    answer = Sentence(f"{heat.caption} Core clock across, memory clock down, in MHz.")
    maps = charts.kernel_maps(document) if len(document.kernels) > 1 else ""
    chart = energy_map(heat.cells)
    yield card("clocks", "Clocks", "Energy at every clock setting", answer, chart, quiet(legend), maps)


def _trade(document: Tune) -> Iterator[Section]:
    """The section of time against energy of every setting: what less energy costs in time."""
    known = [setting for setting in document.settings if setting.energy_j is not None and setting.time_s]
    best, fastest = document.best, document.fastest
    if best is None or fastest is None or fastest.energy_j is None or len(known) < 3:
        return
    answer = (
        f"{len(document.front)} of {len(known)} settings are worth a look: at every other one, another takes no more "
        "time and less energy."
    )
    below = (
        "To the right: more time than the fastest setting. Upwards: more energy than the best one. Names are "
        "core/memory MHz of the settings worth a look."
    )
    chart = charts.trade(document, known)
    yield card("trade", "Time for energy", "What less energy costs in time", Sentence(answer), chart, quiet(below))


def _kernels(document: Tune) -> Section:
    nouns = document.nouns
    others = sum(not same(kernel.best, kernel.fastest) for kernel in document.kernels)
    answer = (
        f"For {others} of {len(document.kernels)} {nouns.kernels} the fastest setting is not the one with "
        f"{document.objective_words}."
    )
    after = ""
    own, best = document.each_its_own, document.best
    change = own and best and words.change(own.energy_j, best.energy_j)
    if change:
        after = (
            f"Each {nouns.kernel} at its own setting, if changing clocks were free: {change} energy than all at the "
            "program's best."
        )
    heading = f"{nouns.kernel.capitalize()} by {nouns.kernel}"
    table = words.kernels(document)
    return card("kernels", nouns.kernels.capitalize(), heading, Sentence(answer), table, quiet(after))


def _meter(document: Tune, losses: LostBy) -> Section:
    """The section of picks against the meter: the table of [FMM] Table II on these measurements."""
    rows = []
    for picker, lost in (("the model", losses.model), ("the fastest setting (race-to-halt)", losses.oracle)):
        percents = [lost.mean_percent, lost.min_percent, lost.max_percent, lost.all_mean_percent]
        cells: list[Cell] = [picker, str(lost.cases), str(lost.wrong), *(number(value, 2) for value in percents)]
        rows.append(Row(cells, total=lost is losses.model))
    heads = ("kernels", "not the measured best", "lost mean %", "min %", "max %", "mean over all %")
    below = (
        "Lost: how much more energy was measured at the pick than at the measured best, over the kernels whose pick "
        "is not the measured best; the last column is over all kernels."
    )
    answer = Sentence(" ".join(words.lost_words(document)))
    table = Table([Column("pick", "left"), *map(Column, heads)], rows)
    return card("meter", "Against the meter", "Against the measured best", answer, table, quiet(below))


def _method(document: Tune) -> Section:
    model, tested = document.model, ""
    error = model.power_error_percent
    if error is not UNSET and error is not None:
        tested = f" Its mean error on the measured power of these rows is {percent(error)}."
    left_out = "kernel" if model.protocol == "leave_one_benchmark_out" else "setting"
    power = (
        f"A fit for each {left_out}, made from all the others: nothing is predicted by a fit that has seen it.{tested}"
    )
    if model.kind == "table":
        power = f"Cost table {model.name} for {model.device}. {model.source}{tested}"
    parts = {
        "Chosen for": [f"{capital(document.objective_words)}."],
        "Power": [power],
        "Time": [words.time_words(document)],
    }
    return method(document, parts, document.notes)
