"""A profile in a notebook: headline, bar and a short table."""

from markupsafe import Markup

from eprof.commands.report.headline import headline
from eprof.commands.report.tables import kernel_table
from eprof.commands.report.view import View
from eprof.profile import document as documents
from eprof.profile.profile import Energy, Profile
from eprof.show import html_page
from eprof.show.as_html import pct
from eprof.show.blocks import Legend, Notes
from eprof.show.numbers import percent

_KERNELS = 8


def html(result: Profile | Energy) -> str:
    """A profile as the HTML of a notebook's cell; one without prices gets those that are taken by default."""
    if isinstance(result, Profile):
        result = result.energy()
    view = View(documents.document(result))
    kernels = kernel_table(view, _KERNELS)
    marks = Legend(view.marks if view.costs else 0)
    return html_page.notebook_cell(
        [headline(view), _bar(view), kernels, marks, Notes(view.document.warnings, "warning")]
    )


def _bar(view: View) -> Markup:
    """The energy by group as a bar with its legend; empty where no energy is known."""
    joules = {group: amount.value for group, amount in view.groups.items() if amount.value}
    whole = sum(joules.values())
    if not whole:
        return Markup("")
    colors = html_page.group_colours()
    pieces, labels = [], []
    for group, value in joules.items():
        style = f"background-color:{colors[group]}"
        pieces.append(Markup('<span style="{};width:{}"></span>').format(style, pct(100 * value / whole)))
        label = f"{view.group_label(group)} {percent(value / whole)}"
        labels.append(Markup('<span style="{}">&emsp;</span> {}').format(style, label))
    return Markup('<div style="display:flex;height:14px;max-width:60em">{}</div><p><small>{}</small></p>').format(
        Markup("").join(pieces), Markup(" &ensp; ").join(labels)
    )
