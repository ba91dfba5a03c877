"""eprof's own words on a page: each explained on hover where it first stands, and all of them at the page's end."""

import re
import tomllib
from functools import lru_cache

from markupsafe import Markup

from eprof.base.resources import folder
from eprof.base.text import when

# What is no running text.
_SILENT = {"script", "style", "title", "svg", "code", "pre", "button", "nav", "a", "textarea", "summary", "abbr"}
_TAG = re.compile(r"(<[^>]*>)")


@lru_cache
def words() -> dict[str, str]:
    """The words that pages explain, with what they mean (reports/glossary.toml)."""
    return tomllib.loads((folder("reports") / "glossary.toml").read_text(encoding="utf-8"))


def explained(page: str) -> str:
    """A page with its words explained."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words()))})\b", re.IGNORECASE)
    met: dict[str, str] = {}

    def explain(found: re.Match[str]) -> str:
        word = found[0].lower()
        if word in met:
            return found[0]
        met[word] = words()[word]
        return Markup('<abbr title="{}">{}</abbr>').format(met[word], Markup(found[0]))

    head, body, rest = page.partition("<main")
    pieces = _TAG.split(body + rest)
    silent: list[str] = []
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            if not silent and len(met) < len(words()):
                pieces[place] = pattern.sub(explain, piece)
            continue
        name = piece.strip("</>").partition(" ")[0]
        if name in _SILENT and not piece.endswith("/>"):
            if piece.startswith("</"):
                silent = silent[:-1]
            else:
                silent.append(name)
    meanings = Markup("").join(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(word, met[word]) for word in sorted(met)
    )
    section = Markup(
        '<section id="words" class="card" aria-labelledby="h-words"><h2 id="h-words">Words</h2>'
        '<dl class="facts long">{}</dl></section>\n'
    )
    shown = when(met, section.format(meanings))
    return head + "".join(pieces).replace("</main>", f"{shown}</main>", 1)
