"""Short labels for kernels that are shown together: what their names share goes first, what tells them apart stays.

Template arguments and parameters are left out, unless two kernels differ only there: then those that differ stay.
Kernels of libraries are called what `counters/names.toml` calls them.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from msgspec import Struct

from eprof.base import resources
from eprof.base.arrays import numbered, numbers_of
from eprof.base.kernels import ANONYMOUS, QUALIFIERS, expression, own_name, readable, selector
from eprof.base.optional import gathered
from eprof.base.text import cut, did_you_mean, few, pattern, when
from eprof.base.toml import Document

NO_LINE = "line not told"  # for work behind the last place in the source that a program told
_LEAST_WIDTH = 8
_LONG_DETAIL = 24  # a template argument longer than this is kept only if no shorter one tells kernels apart
_LONGEST = 5_000  # what is read of a name
_SEARCHED = 2_000  # and where it is searched for a library
_MOST_DETAILS = 100
WIDTH = 34  # of a label in a report
DEVICE_WIDTH = 16  # of which a device takes these, where there are several
_DEEPEST = 20
_EXAMPLES = 8
_FEW = 16

# What compilers and profilers write around the same thing: "(int)4", "bool=1", "4ul", "> >", suffixes of clones.
_NOISE = (
    (ANONYMOUS, ""),
    (pattern(r"^void |\s*\[clone [^\]]*\]$|\s*\(?\.kd\)?$"), ""),
    (QUALIFIERS, ""),
    (pattern(r"\((?:unsigned )?[\w:]+(?: long| int)?\)(?=-?\d)|\b(?:unsigned )?\w+=(?=-?\d)"), ""),
    (pattern(r"\b(\d+)u?l{0,2}\b"), r"\1"),
    (pattern(r">\s+(?=>)"), ">"),
    (pattern(r"&\(([\w:]+)(?:\([^()]*\))?\)"), r"\1"),
)
_LAMBDAS = (
    (pattern(r"[\[{]lambda\([^()]*\)(?: \(instance (\d+)\)|#(\d+))[\]}]"), r"λ\1\2"),
    (pattern(r"operator ?\(\) ?\(\) const::|operator ?\(\) ?\(\)::"), ""),
)
_SIGNS = pattern(r"operator\s*(?:\(\)|<=>|<<=|>>=|->\*?|<<|>>|<=|>=|<|>)|->|[<>(),]")
_CUTS = pattern(r"…{2,}")
_QUALIFIERS = pattern(r"^.*::(?!λ)")
_CAMEL = pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = pattern(r"[^\W_]+")
_TYPE = pattern(r"(?:f|fp|bf|tf|u?int)\d+|float|double|half|bool|char|short|int|long|unsigned|c10::\w+")
_TILE = pattern(r"\d+(?:x\d+)+")
_PIECES = pattern(r"\d+(?:x\d+)*|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[\W_]+|.")


def labels(names: Sequence[str], width: int | None = None) -> list[str]:
    """A label for each of the kernels that are shown together; different names have different labels.

    width: how many characters a label may have. It has more where fewer cannot tell two kernels apart.
    """
    return list(_labels(tuple(names), width))


@lru_cache(maxsize=4)
def _labels(names: tuple[str, ...], width: int | None) -> tuple[str, ...]:
    """`labels`, remembered: those too long for `width` lose their namespaces, then their middle."""
    texts = {name: _Text.of(name) for name in names}
    apart = _told_apart(list(texts.values()))
    if width is not None:
        unqualified = zip(apart, _unqualified(apart), strict=True)
        apart = _fitted([own if len(text) > width else text for text, own in unqualified], max(width, _LEAST_WIDTH))
    numbered = dict(zip(texts, _numbered(apart), strict=True))
    return tuple(numbered[name] for name in names)


def selection(wanted: Sequence[str], *names: Sequence[str]) -> Callable[[str], bool]:
    """A function that tells whether one of `wanted` selects a kernel, as `selector`, or is its label in a report.

    names: of the kernels that are shown together, a list a log. Raises UsageError for what is no regular expression.
    """
    selected = list(wanted)
    for together in names:
        for text in wanted:
            if expression(text) is None and not any(map(selector([text]), together)):
                selected += named_by(text, together)
    return selector(selected)


def no_such_kernel(wanted: Sequence[str], names: Sequence[str]) -> str:
    """The message that `wanted` (of `-k`) selects none of the kernels `names`, and some of their own names."""
    known = list(dict.fromkeys(map(own_name, names)))
    meant = did_you_mean(wanted[0], known)
    return (
        f"-k/--kernel-name {' '.join(wanted)} matches none of {len(names)} kernels.{meant} "
        f"There are {few(known, _EXAMPLES)}."
    )


def named_by(text: str, names: Sequence[str]) -> list[str]:
    """The full names of kernels whose label in a report is `text`; "…" in it stands for any characters."""
    widths = (WIDTH, WIDTH - DEVICE_WIDTH, None)
    forms = [*(labels(names, width) for width in widths), _unqualified(labels(names))]
    shown = [pair for form in forms for pair in zip(form, names, strict=True)]
    exact = [name for label, name in shown if label == text]
    cut_off = re.compile(".*".join(map(re.escape, text.split("…"))))
    return list(dict.fromkeys(exact or [name for label, name in shown if cut_off.fullmatch(label)]))


def label_of(name: str, names: Sequence[str], width: int = 60) -> str:
    """The label of one of the kernels that are shown together, for a sentence; `name` itself if it is none of them."""
    return dict(zip(names, labels(names, width), strict=True)).get(name, name)


def fitted(texts: Sequence[str], width: int) -> list[str]:
    """The texts of a column cut to about `width` characters, each cut an "…"; different ones stay different."""
    distinct = list(dict.fromkeys(texts))
    cuts = dict(zip(distinct, _numbered(_fitted(distinct, max(width, _LEAST_WIDTH))), strict=True))
    return [cuts[text] for text in texts]


class _Text(Struct, frozen=True):
    """A name or a template argument: what is shown of it in any case, and the details that may tell it from others.

    arguments: of the template. others: parameters, or for a kernel of a library the words of its name.
    """

    head: str
    arguments: list[str]
    others: list[str]
    is_library: bool = False

    @classmethod
    def of(cls, name: str) -> _Text:
        """The parts of a full kernel name that its label is made of."""
        text = readable(name)[:_LONGEST]
        if not text.isidentifier():
            text = _replaced(text, _NOISE)
        label = _library_label(text[:_SEARCHED])
        if label:
            return cls(label, [], _WORDS.findall(text), is_library=True)
        return cls.parsed(text)

    @classmethod
    def parsed(cls, text: str) -> _Text:
        """The parts of a name to label, or an argument: what is outside of all brackets, and in the outermost ones."""
        if "<" not in text and "(" not in text:
            return cls(text, [], [])
        text = _replaced(text, _LAMBDAS)
        head: list[str] = []
        inside: dict[str, list[str]] = {"<": [], "(": []}
        depth = start = 0
        opened = "<"
        for sign in _SIGNS.finditer(text):
            # Behind a blank: "main (a.out)", or "<" of an operation of Python or of a command.
            is_remark = sign[0] in "(<" and depth == 0 and text[: sign.start()][-1:] in ("", " ")
            if sign[0] in "<(" and not is_remark:
                if depth == 0:
                    opened = sign[0]
                    head.append(text[start : sign.start()])
                    start = sign.end()
                depth += 1
            elif depth == 1 and sign[0] in ">),":
                inside[opened].append(text[start : sign.start()].strip())
                start = sign.end()
                depth -= sign[0] != ","
            elif depth and sign[0] in ">)":
                depth -= 1
        # A profiler may have cut the name off.
        (inside[opened] if depth else head).append(text[start:].strip())
        return cls("".join(head).strip() or text, inside["<"], inside["("])


def _replaced(text: str, replacements: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for sought, by in replacements:
        text = sought.sub(by, text)
    return text


@lru_cache(maxsize=1)
def _names_file() -> Document:
    return Document.read(resources.folder("counters") / "names.toml")


@lru_cache(maxsize=1)
def _libraries() -> tuple[dict[str, str], list[tuple[str, re.Pattern[str], str]]]:
    """Words for types in names of kernels, and for each library a sign, a pattern and the label of its kernels."""
    document = _names_file()
    types = {key: node.text() for key, node in document.root["type"].items()}
    rows = document.root["library"].entries()
    return types, [(row["sign"].text(), pattern(row["pattern"].text()), row["label"].text()) for row in rows]


def made_for(kernels: Iterable[str]) -> tuple[float, float]:
    """The compute capabilities that kernels of these names were compiled for: (the lowest, the first that is too high).

    0 and infinity where no name tells.
    """
    names = "\n".join(kernels)
    least, below = 0.0, math.inf
    for row in _names_file().root["made_for"].entries():
        if re.search(row["pattern"].text(), names):
            least = max(least, row["least"].number())
            below = min(below, row["below"].number() if "below" in row else below)
    return least, below


def remedy_of(function: str, table: str = "spared") -> str:
    """How to do without a function or kernel, by the first pattern of names.toml's `table` that fits; "": none."""
    rows = _names_file().root[table].entries()
    return next((row["by"].text() for row in rows if re.search(row["pattern"].text(), function)), "")


def library_of(name: str) -> str:
    """The library of the kernel called `name`, the first word of its label ("cublas", "cutlass"); "": of none."""
    return library_label(name).partition(" ")[0]


@lru_cache(maxsize=1 << 14)
def library_label(name: str) -> str:
    """The label of the kernel called `name` by `counters/names.toml`: "cutlass sgemm 128x64 nn"; "": of no library."""
    return _library_label(_replaced(readable(name), _NOISE)[:_SEARCHED])


def without_types(label: str) -> str:
    """The label of a library's kernel without the types that it works on: "at elementwise add"."""
    return " ".join(word for word in label.split() if not _TYPE.fullmatch(word))


def without_tile(label: str) -> str:
    """The label of a library's kernel without the tile that it works on: "cutlass sgemm nn"."""
    return " ".join(word for word in label.split() if not _TILE.fullmatch(word))


def _library_label(text: str) -> str:
    """`library_label` of a name that is readable already."""
    types, libraries = _libraries()
    for sign, form, label in libraries:
        if sign in text and (match := form.search(text)):
            words = {}
            for key, value in match.groupdict(default="").items():
                words[key] = value
                if key.startswith("type"):
                    words[key] = types.get(value, value)
                elif key.startswith("camel"):
                    words[key] = _CAMEL.sub(" ", value).lower()
            return " ".join(label.format_map(words).replace("_", " ").split())
    return ""


def _told_apart(texts: Sequence[_Text], deepest: int = _DEEPEST) -> list[str]:
    """A label for each text: its head, and where several have the same head the fewest details that differ."""
    told = [text.head for text in texts]
    for members in gathered((text.head, place) for place, text in enumerate(texts)).values():
        if len(members) > 1 and deepest:
            start, end, details = _details([texts[place] for place in members], deepest)
            for place, detail in zip(members, details, strict=True):
                told[place] += when(detail, start + detail + end)
    return told


def _details(texts: Sequence[_Text], deepest: int) -> tuple[str, str, list[str]]:
    """The details that tell texts of one head apart: (the bracket before each, the one behind, each text's detail)."""
    is_library = texts[0].is_library
    arguments = max(len(text.arguments) for text in texts)
    rows = [_padded(text.arguments, arguments) + text.others for text in texts]
    widths = set(map(len, rows))
    if is_library and len(widths) > 1:
        # Names that have not as many words: a column a word.
        words = list(dict.fromkeys(word for row in rows for word in row))[:_MOST_DETAILS]
        rows = [[when(word in row, word) for word in words] for row in rows]
    else:
        rows = [_padded(row, min(max(widths), _MOST_DETAILS)) for row in rows]
    kept = _columns_that_tell(rows)
    columns = [_short_details([row[place] for row in rows], deepest - 1) for place in kept]
    start, between, end = "<", ", ", ">"
    if is_library:
        start, between, end = " ", " ", ""
    elif kept and kept[0] >= arguments:
        start, end = "(", ")"
    return start, end, [between.join(filter(None, (column[place] for column in columns))) for place in range(len(rows))]


def _padded(row: Sequence[str], width: int) -> list[str]:
    return [*row[:width], *[""] * (width - len(row))]


def _short_details(details: Sequence[str], deepest: int) -> list[str]:
    """Labels of arguments or parameters, told apart in the same way: without what all have, without namespaces."""
    texts = [_Text.parsed(detail) for detail in details]
    if deepest and len({text.head for text in texts}) == 1:
        _, _, inner = _details(texts, deepest)
        if all(inner):
            return inner
    return _unqualified(_told_apart(texts, deepest))


def _unqualified(texts: Sequence[str]) -> list[str]:
    """Labels without namespaces, but those that would look alike."""
    short = {}
    for text in texts:
        head, bracket, rest = text.partition("<")
        short[text] = _QUALIFIERS.sub("", head) + bracket + rest
    times = Counter(short.values())
    apart = {text: own for text, own in short.items() if times[own] == 1}
    return [apart.get(text, text) for text in texts]


def _columns_that_tell(rows: Sequence[Sequence[str]]) -> list[int]:
    """The places of a few columns that tell all different rows apart: in each step the one that tells most."""
    columns = [numbers_of(cells) for cells in zip(*rows, strict=True)]
    differ = [place for place, numbers in enumerate(columns) if numbers.any()]
    differ.sort(key=lambda place: max(len(row[place]) for row in rows) > _LONG_DETAIL)
    all_different = len(set(map(tuple, rows)))
    kept: list[int] = []
    # Names that the columns kept so far do not tell apart have a number in common.
    alike = np.zeros(len(rows), dtype=np.int64)
    while alike.max() + 1 < all_different:
        # A number below the number of names beside a multiple of it is a pair of two numbers.
        pairs = {place: len(rows) * alike + columns[place] for place in differ}
        best = max(differ, key=lambda place: len(set(pairs[place].tolist())))  # noqa: B023
        kept.append(best)
        alike, _ = numbered(pairs[best])
    return sorted(kept)


def _fitted(texts: Sequence[str], width: int, deepest: int = _DEEPEST) -> list[str]:
    """Labels cut in the middle to about `width` characters, where they do not differ; equal cuts are made anew."""
    if all(len(text) <= width for text in texts):
        return list(texts)
    distinct = list(dict.fromkeys(texts))
    times = Counter(chain.from_iterable(set(_PIECES.findall(text)) for text in distinct))
    fitted = [_without_common(text, width, times) for text in texts]
    if 1 < len(distinct) <= _FEW:
        # One that lost every word that is its own is cut around these instead: "reduce-conflicts.txt" beside
        # "reduce-free.txt" is "redu…conflicts.txt", and not "reduce-….txt".
        for place, text in enumerate(texts):
            own = [word for word in _PIECES.findall(text) if times[word] == 1 and word[0].isalnum()]
            if own and not any(word in fitted[place] for word in own):
                start, end = max((_shared([text, other]) for other in distinct if other != text), key=sum)
                room = width - (len(text) - start - end) - 2
                if room >= 0:
                    fitted[place] = _shortened(text, start, end, room)
    places: dict[str, dict[str, list[int]]] = {}
    for place, (text, label) in enumerate(zip(texts, fitted, strict=True)):
        places.setdefault(label, {}).setdefault(text, []).append(place)
    for alike in places.values():
        if len(alike) > 1 and deepest:
            for text, label in zip(alike, _cut_around(list(alike), width, deepest), strict=True):
                for place in alike[text]:
                    fitted[place] = label
    return fitted


def _shared(texts: Sequence[str]) -> tuple[int, int]:
    """How many characters all texts have in common at their start, and at their end."""
    start = len(os.path.commonprefix(texts))
    return start, len(os.path.commonprefix([text[start:][::-1] for text in texts]))


def _without_common(text: str, width: int, times: Counter[str]) -> str:
    """A label of `width` characters at most: without words behind its first that most others have, too.

    Numbers go before words, a tile even at the end: "gemm" tells more. times: how many texts have a word.
    """
    if len(text) <= width:
        return text
    pieces = _PIECES.findall(text)
    # A word tells most, a number less, what stands between them next to nothing.
    costs = [(0.01 + 0.49 * piece[0].isdigit() + 0.99 * piece[0].isalpha()) / times[piece] for piece in pieces]
    best, best_cost = cut(text, width), math.inf
    end, left = 1, len(text) + 1
    last = len(pieces) - (not _TILE.fullmatch(pieces[-1]))
    for start in range(1, last):
        while left > width and end < last:
            left -= len(pieces[end])
            end += 1
        if left > width:
            break
        cost = sum(costs[start:end])
        if cost < best_cost:
            best, best_cost = "".join(pieces[:start]) + "…" + "".join(pieces[end:]), cost
        left += len(pieces[start])
    return best


def _cut_around(texts: Sequence[str], width: int, deepest: int) -> list[str]:
    """Labels that share their start and end, cut around what they do not share."""
    start, end = _shared(texts)
    room = width - max(len(text) - start - end for text in texts) - 2
    if room >= 0:
        return [_shortened(text, start, end, room) for text in texts]
    front = width // 4
    middles = [text[start : len(text) - end] for text in texts]
    narrow = max(width - front - 2, _LEAST_WIDTH)
    return [f"{texts[0][:front]}…{middle}" for middle in _fitted(middles, narrow, deepest - 1)]


def _shortened(text: str, start: int, end: int, room: int) -> str:
    """A label that begins and ends as others do, shortened: of what it shares, `room` letters stay."""
    front = min(start, room * 3 // 5)
    back = min(end, room - front)
    head = text[:start] if start - front <= 1 else f"{text[:front]}…"
    tail = text[len(text) - end :] if end - back <= 1 else f"…{text[len(text) - back :]}"
    return head + text[start : len(text) - end] + tail


def _numbered(texts: Iterable[str]) -> list[str]:
    """The texts made different: the second of equal ones ends in " #2", the third in " #3"."""
    times: dict[str, int] = {}
    numbered = []
    for text in texts:
        text = label = _CUTS.sub("…", text)  # what was cut may begin or end where another cut is
        while label in times:
            times[text] += 1
            label = f"{text} #{times[text]}"
        times.setdefault(label, 1)
        numbered.append(label)
    return numbered
