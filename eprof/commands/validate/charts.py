"""Charts of a validation: pairs of bars, a histogram of errors, a map of errors by clocks."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from eprof.commands.validate.schema import Histogram, SettingScores
from eprof.show.page.frame import heat_table
from eprof.show.page.shell import templates
from eprof.show.page.svg import pct
from eprof.show.words.numbers import MINUS, NARROW, plain, quantity
from eprof.show.words.numbers import error_percent as percent

# Mean errors in per cent at which the colour changes: the same colour means the same error in every report.
STEPS = (2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0)
_HEIGHT = 150


class Pair(Struct, frozen=True):
    """A measured and a predicted quantity; its full and its short name."""

    full: str
    name: str
    measured: float
    predicted: float
    unit: str

    @property
    def error_percent(self) -> float:
        """The signed error of a prediction, relative to what was measured."""
        return 100 * (self.predicted / self.measured - 1)

    @property
    def error(self) -> str:
        """The error of a prediction in words."""
        return signed(self.error_percent)

    @property
    def words(self) -> str:
        """Measured and predicted; watts are all of a size, and share their unit."""
        if self.unit == "W":
            return f"{plain(self.measured)} → {plain(self.predicted)}{NARROW}W"
        return f"{quantity(self.measured, self.unit)} → {quantity(self.predicted, self.unit)}"


def signed(value: float | None) -> str:
    """A signed error of a prediction in per cent: "+3.1 %"."""
    if value is None:
        return "unknown"
    size = f"{abs(value):.1f}"
    sign = "+" if value > 0 else MINUS
    return f"{'' if size == '0.0' else sign}{size}{NARROW}%"


def bars(pairs: Sequence[Pair], far_percent: float) -> Markup:
    """Two thin bars a kernel, measured above predicted; the largest fills the width."""
    top = max((value for pair in pairs for value in (pair.measured, pair.predicted)), default=0.0) or 1.0
    template = templates().get_template("validation_bars.html")
    drawn = template.render(pairs=pairs, width=lambda value: pct(100 * value / top), far_percent=far_percent)
    return Markup(drawn)  # noqa: S704  escaped there


def histogram(histogram: Histogram) -> Markup:
    """A histogram of signed errors of predictions, as far to both sides as there are some."""
    edges, counts = histogram.edges_percent, histogram.counts
    filled = [place for place, several in enumerate(counts) if several]
    reach = max(10.0, -edges[filled[0]], edges[filled[-1] + 1])
    step = 10 if reach > 20 else 5
    many = int(reach // step)
    tick = Markup(
        '<line class="{0}" x1="{1}" x2="{1}" y1="6" y2="{2}"/>'
        '<text class="tick" x="{1}" y="{3}" text-anchor="{4}">{5} %</text>'
    )
    body = Markup("")
    for error in (step * number for number in range(-many, many + 1)):
        anchor = {-reach: "start", reach: "end"}.get(error, "middle")
        words = f"{error:+g}".replace("-", MINUS) if error else "0"
        kind = "axis" if error else "axis zero"
        body += tick.format(kind, pct(50 * (error + reach) / reach), _HEIGHT, _HEIGHT + 16, anchor, words)
    bar = Markup(
        '<rect class="v-predicted" x="{}" y="{:.1f}" width="{}" height="{:.1f}">'
        "<title>{:g} to {:g} %: {}</title></rect>"
    )
    for place in filled:
        low, high = edges[place], edges[place + 1]
        height = max(1.0, counts[place] / max(counts) * (_HEIGHT - 20))
        left, width = pct(50 * (low + reach) / reach + 0.08), pct(50 * (high - low) / reach - 0.16)
        body += bar.format(left, _HEIGHT - height, width, height, low, high, counts[place])
    label = f"Histogram of errors from {-reach:g} to {reach:g} per cent"
    return Markup('<svg class="bar" width="100%" height="{}" role="img" aria-label="{}">{}</svg>').format(
        _HEIGHT + 20, label, body
    )


def error_map(settings: Sequence[SettingScores]) -> Markup:
    """Mean errors of predictions as a table of core by memory clock."""
    cells = {}
    known = Markup('<td class="h{}" title="{}">{:.1f} <small>{}</small></td>')
    for setting in settings:
        scores, cell = setting.scores, Markup('<td class="no"></td>')
        if scores.mean_percent is not None:
            step = sum(scores.mean_percent >= edge for edge in STEPS)
            errors = f"mean {percent(scores.mean_percent)}, largest {percent(scores.max_percent)}"
            title = f"{setting.label} MHz: {scores.n} rows, {errors}"
            cell = known.format(step, title, scores.mean_percent, signed(scores.bias_percent))
        cells[setting.core_mhz, setting.memory_mhz] = cell
    return heat_table(cells)
