"""Charts of `eprof tune`: heat maps of energy by clocks, and energy against time."""

from collections.abc import Sequence

from markupsafe import Markup

from eprof.base.labels import labels
from eprof.commands.tune import words
from eprof.commands.tune.schema import Setting, Tune, label, same
from eprof.show.page.heat import energy_map
from eprof.show.page.shell import templates
from eprof.show.page.svg import pct
from eprof.show.words.numbers import quantity

_MAPS = 12
_NAME = 70
_NAMED_DOTS = 12
_HEIGHT = 260
# The part of the chart that dots take: from the left and its width in per cent, from the bottom and its height.
_LEFT, _WIDTH, _BOTTOM, _TALL = 4, 88, 46, _HEIGHT - 76
# Names of dots that are nearer than this, in per cent of the width and in pixels, would overlap.
_APART = 9, 14


def kernel_maps(document: Tune) -> Markup:
    """Heat maps of the kernels that use most energy at each pair of clocks."""
    kernels = words.by_energy(document)[:_MAPS]
    maps = [
        {
            "full": kernel.name,
            "name": name,
            "words": f"best at {label(kernel.best)}, fastest at {label(kernel.fastest)} MHz",
            "heat": energy_map(words.kernel_heat(document, kernel)),
        }
        for kernel, name in zip(kernels, labels([kernel.name for kernel in kernels], _NAME), strict=True)
    ]
    template = templates().get_template("validation_maps.html")
    return Markup(template.render(maps=maps, nouns=document.nouns))  # noqa: S704  escaped there


class _Scale:
    """Where a setting's dot is: time to the right, energy upwards, from the least of both."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        times = [setting.time_s or 0.0 for setting in settings]
        energies = [setting.energy_j or 0.0 for setting in settings]
        self._quickest, self._least = min(times), min(energies)
        self.more_time = max(times) / self._quickest - 1 or 1.0
        self.more_energy = max(energies) / self._least - 1 or 1.0

    def at(self, time_s: float | None, energy_j: float | None) -> tuple[float, float]:
        """Where a setting is in the chart: per cent of the width, pixels from the top."""
        right = ((time_s or 0.0) / self._quickest - 1) / self.more_time
        up = ((energy_j or 0.0) / self._least - 1) / self.more_energy
        return _LEFT + _WIDTH * right, _HEIGHT - _BOTTOM - _TALL * up


def trade(document: Tune, settings: Sequence[Setting]) -> Markup:
    """The chart of energy against time: a dot a setting; those on the front have names."""
    scale = _Scale(settings)
    body = Markup('<line class="axis" x1="0%" x2="100%" y1="{0}" y2="{0}"/>').format(_HEIGHT - 18)
    for share in (0.0, 0.5, 1.0):
        body += Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">+{:.0f} % time</text>').format(
            pct(_LEFT + _WIDTH * share), _HEIGHT - 2, 100 * scale.more_time * share
        )
    body += Markup('<text class="tick" x="0%" y="14">+{:.0f} % energy</text>').format(100 * scale.more_energy)
    for setting in settings:
        body += _dot(document, setting, scale)
    body += _names(document, scale)
    return Markup(
        '<svg class="bar" width="100%" height="{}" role="img" aria-label="Energy against time at {} settings">{}</svg>'
    ).format(_HEIGHT, len(settings), body)


def _dot(document: Tune, setting: Setting, scale: _Scale) -> Markup:
    kind = "dot"
    if same(setting, document.best):
        kind = "dot best"
    elif same(setting, document.fastest):
        kind = "dot fastest"
    right, top = scale.at(setting.time_s, setting.energy_j)
    energy, time = quantity(setting.energy_j or 0.0, "J"), quantity(setting.time_s or 0.0, "s")
    return Markup('<circle class="{}" cx="{}" cy="{:.1f}" r="5"><title>{} MHz: {} in {}</title></circle>').format(
        kind, pct(right), top, setting.label, energy, time
    )


def _names(document: Tune, scale: _Scale) -> Markup:
    """Names below the dots of settings on the front, where other dots are not; none too close to the last."""
    body = Markup("")
    last = -100.0, 0.0
    is_short = len(document.front) <= _NAMED_DOTS
    for setting in document.front:
        right, top = scale.at(setting.time_s, setting.energy_j)
        is_close = abs(right - last[0]) < _APART[0] and abs(top - last[1]) < _APART[1]
        # All of a short front have names; of a long one its fast end and the best.
        is_named = is_short or same(setting, document.best) or same(setting, document.front[0])
        if is_close or not is_named:
            continue
        last = right, top
        body += Markup('<text class="dot-name" x="{}" y="{:.1f}" text-anchor="middle">{}</text>').format(
            pct(right), top + 18, setting.label
        )
    return body
