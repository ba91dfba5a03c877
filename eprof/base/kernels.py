"""Names of kernels: which of them `-k NAME|regex:...` selects, and what they are called where there is little room."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from eprof.base.errors import UsageError
from eprof.base.text import cut, pattern

_RETURNS = "void "
_REGEX = "regex:"
_ANONYMOUS = pattern(r"\(anonymous namespace\)::|<unnamed>::")
_ANGLES = pattern(r"operator\s*(?:<=>|<<=|>>=|->\*?|<<|>>|<=|>=|<|>)|->|[<>]")
# In a mangled name: a substitution (S9_, T_) or a literal (Li4E), each one unit, whatever digits it holds.
_MANGLED_UNIT = pattern(r"[ST][0-9A-Z]*_|L[a-z]n?\d+E")
_MANGLED_LENGTH = pattern(r"\d+")


def selector(wanted: Sequence[str], option: str = "-k") -> Callable[[str], bool]:
    """Whether a kernel's full name is selected by one of `wanted`, each a name or "regex:...".

    A name may leave out parameters, template arguments, return type and namespaces. Raises UsageError for what is no
    regular expression.
    """
    names = {text for text in wanted if expression(text) is None}
    patterns = [_compiled(text, option) for text in wanted if expression(text) is not None]

    def selects(name: str) -> bool:
        return not names.isdisjoint(spellings(name)) or any(pattern.search(name) for pattern in patterns)

    return selects


def expression(wanted: str) -> str | None:
    """The regular expression of "regex:..."; None for a name."""
    return wanted.removeprefix(_REGEX) if wanted.startswith(_REGEX) else None


def _compiled(wanted: str, option: str) -> re.Pattern[str]:
    try:
        return re.compile(wanted.removeprefix(_REGEX))
    except re.error as err:
        raise UsageError(f"{option} {wanted}: not a regular expression ({err}).") from err


def spellings(name: str) -> set[str]:
    """What users may call a kernel: its full name, and shorter ones down to the function's own name."""
    start, end = core(name)
    before_parameters = name.partition("(")[0].strip()
    return {name, before_parameters, name[start:end], base(name), bare(name), own_name(name)}


def core(name: str) -> tuple[int, int]:
    """Where the name proper starts and ends: without `void ` in front and without the parameter list behind."""
    start = len(_RETURNS) if name.startswith(_RETURNS) else 0
    if not name.endswith(")"):
        return start, len(name)
    depth = 0
    for place in range(len(name) - 1, start, -1):
        depth += (name[place] == ")") - (name[place] == "(")
        if depth == 0:
            is_list = name[place - 1] not in " ("
            return start, place if is_list else len(name)
    return start, len(name)


def short(name: str, length: int = 60) -> str:
    """A name for a chart or a sentence: no `void `, no parameter list, cut in the middle."""
    start, end = core(name)
    return cut(name[start:end], length)


def base(name: str) -> str:
    """What template instances have in common: `void ns::axpy<float, 4>(float*)` -> `ns::axpy`."""
    start, end = core(name)
    text = name[start:end]
    kept = []
    depth = after = 0
    for angle in _ANGLES.finditer(text):
        if angle[0] == "<":
            if depth == 0:
                kept.append(text[after : angle.start()])
            depth += 1
        elif angle[0] == ">" and depth:
            depth -= 1
            after = angle.end()
    if depth or not kept:
        return text
    return "".join(kept) + text[after:] or text


def bare(name: str) -> str:
    """`base` without what compilers and profilers write differently: mangled names, unnamed namespaces.

    `void ns::axpy<float, 4>(float*)`, `ns::axpy` and `_ZN2ns4axpyIfLi4EEEvPT_` all are `ns::axpy`.
    """
    if name.startswith("_Z"):
        return _demangled(name) or name
    return base(_ANONYMOUS.sub("", name)).strip() or name


def own_name(name: str) -> str:
    """The function's own name, without its namespaces: what `ncu -k NAME` matches."""
    return bare(name).rpartition("::")[2]


@lru_cache(maxsize=4096)
def _demangled(symbol: str) -> str | None:
    """The qualified name in an Itanium-mangled symbol, template arguments left out; None if it is of another kind."""
    rest = symbol[2:]
    is_nested = rest.startswith("N")
    rest = rest[1:].lstrip("rVK") if is_nested else rest.removeprefix("L")
    parts: list[str] = []
    while rest:
        length = re.match(r"L?(\d+)", rest)
        if length:
            end = length.end() + int(length[1])
            parts.append(rest[length.end() : end])
            rest = rest[end:]
        elif is_nested and parts and rest.startswith("I"):
            rest = _after_arguments(rest)
        else:
            break
        if not is_nested:
            break
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_")) or None


def _after_arguments(rest: str) -> str:
    """What follows the template arguments `I...E`; names inside are skipped whole, because they may hold any letter."""
    depth = place = 0
    while place < len(rest):
        if unit := _MANGLED_UNIT.match(rest, place):
            place = unit.end()
        elif length := _MANGLED_LENGTH.match(rest, place):
            place = length.end() + int(length[0])
        else:
            depth += (rest[place] in "INXJF") - (rest[place] == "E")
            place += 1
        if depth <= 0:
            return rest[place:]
    return ""
