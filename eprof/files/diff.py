"""A difference as files for other programs and for people: Markdown for a pull request, CSV, JSON, Parquet."""

from collections.abc import Iterator, Mapping
from typing import Any

from eprof.base.text import in_code, in_markdown
from eprof.files import export
from eprof.words import diff as diff_words
from eprof.words.names import short
from eprof.words.numbers import quantity, signed_percent

_Document = Mapping[str, Any]
_KERNELS = 20
_SYMBOLS = {"estimated": "~", "assumed": "?", "simulated": "s"}
_MEANINGS = {
    "missing": "≥ of what is known",
    "estimated": "~ estimated",
    "assumed": "? rests on an assumption",
    "simulated": "s simulated",
}


def to_json(document: _Document) -> bytes:
    """The document as JSON, UTF-8, a line a kernel, so that text tools and diffs stay usable."""
    return export.to_json(dict(document))


def to_markdown(document: _Document) -> bytes:
    """For a pull request: the sentence, the gates, what changed, the kernels, the notes folded away."""
    said = diff_words.words(document)
    old, new = document["old"], document["new"]
    lines = [f"### Energy: {in_code(old['name'])} → {in_code(new['name'])}", ""]
    lines += [f"**{in_markdown(said.headline)}** {in_markdown(said.lead)}".rstrip(), ""]
    lines += [
        f"- {'✅' if one['failed'] is False else '❌'} {in_markdown(diff_words.gate(one))}" for one in document["gates"]
    ]
    lines += [""] if document["gates"] else []
    lines += _steps(document)
    lines += _kernels(document)
    lines += [in_markdown(one) + "\n" for one in (said.noise, said.model if document["change_j"] else None) if one]
    lines += _notes(document)
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "backslashreplace")


def _steps(document: _Document) -> Iterator[str]:
    if not document["steps"] or document["is_zero"]:
        return
    yield "| what changed | by | of OLD |"
    yield "|---|---:|---:|"
    whole = document["old"]["compared_j"]
    for step in diff_words.moving(document):
        share = signed_percent(step["change_j"] / whole) if whole else ""
        yield f"| {in_markdown(diff_words.label(step))} | {_signed(step['change_j'], step['marks'])} | {share} |"
    share = signed_percent(document["change_share"]) if document["change_share"] is not None else ""
    yield f"| **change** | **{_signed(document['change_j'], document['marks'])}** | **{share}** |"
    yield ""
    if diff_words.unchanged(document):
        yield from (diff_words.unchanged(document), "")


def _kernels(document: _Document) -> Iterator[str]:
    energy = document["change_j"] is not None
    key, unit = ("energy_j", "J") if energy else ("time_s", "s")
    yield f"| kernel | OLD | NEW | change | {'greenup | ' if energy else ''}speedup |"
    yield f"|---|---:|---:|---:|{'---:|' if energy else ''}---:|"
    for kernel in document["kernels"][:_KERNELS]:
        cells = [_amount(kernel[side], key, unit) for side in ("old", "new")]
        change = kernel["change_j"] if energy else _less(kernel)
        named = in_code(short(kernel["name"], 60))
        match = kernel["match"]
        if match is not None and match["how"] != "name":
            named += f" (was {in_code(short(kernel['old']['name'], 60))}: {match['how']})"
        elif kernel["status"] != "matched":
            named += f" ({'new' if kernel['status'] == 'appeared' else 'gone'})"
        ups = [_plain(kernel["greenup"])] if energy else []
        marks = kernel["marks"] if energy else []
        yield f"| {' | '.join([named, *cells, _signed(change, marks, unit), *ups, _plain(kernel['speedup'])])} |"
    rest = len(document["kernels"]) - _KERNELS
    if rest > 0:
        blank = " |" * (5 if energy else 4)
        yield f"| {rest} other kernels |{blank}"
    yield ""


def _less(kernel: Mapping[str, Any]) -> float | None:
    times = [kernel[side]["time_s"] if kernel[side] else 0.0 for side in ("old", "new")]
    return None if None in times else times[1] - times[0]


def _notes(document: _Document) -> Iterator[str]:
    used = {mark for side in ("old", "new") for mark in document[side]["marks"]} | set(document["marks"])
    legend = " · ".join(words for mark, words in _MEANINGS.items() if mark in used)
    if document["change_j"] is not None and legend:
        yield legend
        yield ""
    if document["warnings"]:
        yield f"<details><summary>{len(document['warnings'])} notes</summary>"
        yield ""
        yield from (f"- {in_markdown(warning)}" for warning in document["warnings"])
        yield ""
        yield "</details>"


def _amount(side: Mapping[str, Any] | None, key: str, unit: str) -> str:
    if side is None:
        return "–"
    if side[key] is None:
        return "not known"
    return _marked(quantity(side[key], unit), side["marks"] if key == "energy_j" else [])


def _signed(value: float | None, marks: list[str], unit: str = "J") -> str:
    if value is None:
        return "not known"
    return _marked(("+" if value > 0 else "") + quantity(value, unit), marks)


def _marked(text: str, marks: list[str]) -> str:
    signs = "".join(_SYMBOLS[mark] for mark in marks if mark in _SYMBOLS)
    return ("≥ " if "missing" in marks else "") + signs + text


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
