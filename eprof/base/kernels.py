"""Names of kernels: those that `-k NAME|regex:...` selects, demangled and shorter ones, the same kernel in two logs."""

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from eprof.base.errors import UsageError
from eprof.base.optional import gathered
from eprof.base.text import cut, pattern

_RETURNS = "void "
_REGEX = "regex:"
ANONYMOUS = pattern(r"\(anonymous namespace\)::|<?unnamed>::")
_ARROWS = r"operator\s*(?:<=>|<<=|>>=|->\*?|<<|>>|<=|>=|<|>)|->"
_ANGLES = pattern(rf"{_ARROWS}|[<>]")
_IN_ANGLES = re.compile("<[^<>]*>")  # a name of Python: "<lambda>"
_BRACKETS = pattern(rf"{_ARROWS}|[<>()]")
QUALIFIERS = pattern(r"(?<=\))(?:\s*+(?:const\b|volatile\b|noexcept\b|&&?))+\s*$")  # of a member, behind its parameters
_CLOSING = {"<": ">", "(": ")"}
_CUTS = ("…", "...")  # of profilers
# What a mangled name is made of; a substitution (S9_, T_) and a literal (Li4E) are one unit, whatever digits they hold.
_MANGLED = pattern(
    r"(?P<reference>[ST][0-9A-Z]*_|S[a-z])|(?P<literal>L[a-z]n?\d+E)|(?P<length>\d{1,6})|(?P<open>[NIJXFL])"
    r"|(?P<close>E)|(?P<type>_Z|[PRKOV]|DF16b|DF16_|D[a-z]|[a-z])"
)
_BUILTIN = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "f": "float", "d": "double", "Dh": "half", "DF16_": "half", "DF16b": "bfloat16_t",
}  # fmt: skip
_TRUTHS = {"Lb0E": "false", "Lb1E": "true"}
# What gcc and LLVM call a copy that they made of a function: with a constant put in, without an argument, a part of it.
_COPY = pattern(r"(?:\.(?:constprop|isra|part|cold|lto_priv|llvm)(?:\.\d+)?)+(?= \(|$)")
_PRODUCT = pattern(r"(?i)gemm|nvjet")
_NO_PLAIN_PRODUCT = pattern(r"(?i)fmha|attention|flash|conv|fprop|wgrad|dgrad|quant|awq|gptq|marlin|3xtf32|tf32x3")


def selector(wanted: Sequence[str], option: str = "-k") -> Callable[[str], bool]:
    """A function that tells whether one of `wanted`, each a name or "regex:...", selects a kernel by its full name.

    A name may leave out parameters, template arguments, return type and namespaces. Raises UsageError for what is no
    regular expression.
    """
    names = set()
    patterns = []
    for text in wanted:
        regex = expression(text)
        if regex is None:
            names.add(text)
            continue
        try:
            patterns.append(re.compile(regex))
        except re.error as err:
            raise UsageError(f"{option} {text}: not a regular expression ({err}).") from err

    def selects(name: str) -> bool:
        return not names.isdisjoint(spellings(name)) or any(pattern.search(name) for pattern in patterns)

    return selects


def expression(wanted: str) -> str | None:
    """The regular expression of "regex:..." for kernel names; None for a name."""
    return wanted.removeprefix(_REGEX) if wanted.startswith(_REGEX) else None


def spellings(name: str) -> set[str]:
    """The names that users may call a kernel by: its full one, and shorter ones down to the function's own name."""
    start, end = core(name)
    before_parameters = name.partition("(")[0].strip()
    return {name, before_parameters, name[start:end], base(name), bare(name), own_name(name)}


def core(name: str) -> tuple[int, int]:
    """Start and end of a kernel's name proper: without `void ` in front, and parameters and qualifiers behind."""
    start = len(name) - len(name.removeprefix(_RETURNS))
    whole = QUALIFIERS.sub("", closed(name))
    if not whole.endswith(")"):
        return start, len(name)
    depth = 0
    for place in range(len(whole) - 1, start, -1):
        depth += (whole[place] == ")") - (whole[place] == "(")
        if depth == 0:
            if whole[place - 1] not in " (":
                return start, place
            break
    return start, len(name)


def closed(name: str) -> str:
    """A name with the brackets closed that it left open where a profiler cut it off: `f<int, …` -> `f<int, …>`."""
    if not name.endswith(_CUTS):
        return name
    closing = ""
    for bracket in _BRACKETS.finditer(name):
        if bracket[0] in _CLOSING:
            closing = _CLOSING[bracket[0]] + closing
        elif bracket[0] == closing[:1]:
            closing = closing[1:]
    return name + closing


def short(name: str, length: int = 60) -> str:
    """A kernel's name that stands alone, in a file or a warning: no `void `, no parameter list, cut in the middle."""
    start, end = core(name)
    return cut(name[start:end], length)


def base(name: str) -> str:
    """A kernel's name without template arguments and parameters: `void ns::axpy<float, 4>(float*)` -> `ns::axpy`."""
    start, end = core(name)
    text = closed(name[start:end])
    own = _IN_ANGLES.match(text)
    kept = [own[0]] if own else []
    depth, after = 0, len("".join(kept))
    for angle in _ANGLES.finditer(text, after):
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
    """`base` of a kernel without what compilers and profilers write differently: mangled names, unnamed namespaces.

    `void ns::axpy<float, 4>(float*)`, `ns::axpy` and `_ZN2ns4axpyIfLi4EEEvPT_` all are `ns::axpy`; a compiler's copy of
    a function, `axpy.constprop.0`, is `axpy`.
    """
    return base(ANONYMOUS.sub("", readable(_COPY.sub("", name)))).strip() or name


def own_name(name: str) -> str:
    """A kernel's own name, without its namespaces: what `ncu -k NAME` matches."""
    return bare(name).rpartition("::")[2]


def is_plain_product(kernel: str) -> bool:
    """Whether a kernel's name is that of a product of two matrices and nothing else.

    Attention, convolutions and products of quantised operands do more beside.
    """
    return bool(_PRODUCT.search(kernel)) and not _NO_PLAIN_PRODUCT.search(kernel)


def readable(name: str) -> str:
    """A kernel's name; a mangled one as its function with template arguments.

    `_ZN2ns4axpyIfLi4EEEvPT_` -> `ns::axpy<float, 4>`. References back into the name (S_, T_) are left out: to write
    them out may take time without end.
    """
    return (name.startswith("_Z") and _demangled(name)) or name


@lru_cache(maxsize=4096)
def _demangled(symbol: str) -> str | None:
    """The kernel in an Itanium-mangled symbol, without parameters and intricate arguments (lambdas); None: no name."""
    frames: list[list[str]] = [[]]  # what stands in each of the groups that are open, the outermost first
    opened = ""
    place = len("_Z")
    while token := _MANGLED.match(symbol, place):
        place = token.end()
        kind, text = token.lastgroup, token[0]
        if kind == "close" and opened:
            _close(frames, opened[-1])
            opened = opened[:-1]
        elif kind == "open" and (text != "L" or opened[-1:] in ("I", "J", "X")):
            opened += text
            frames.append([])
        elif kind == "length" and not (opened.endswith("L") and frames[-1]):
            place += int(text)
            frames[-1].append(symbol[token.end() : place])
        elif kind in ("length", "literal"):
            # A number: `Lb1E` -> `true`, `Lin4E` -> `-4`.
            number = text.strip("LE").lstrip("abcdefghijklmopqrstuvwxyz").replace("n", "-")
            frames[-1].append(_TRUTHS.get(text, number))
        elif text in _BUILTIN and opened and opened[-1] != "X":
            frames[-1].append(_BUILTIN[text])
        if not opened and frames[0] and symbol[place : place + 1] != "I":
            break
    if opened.startswith("N"):
        return "::".join(frames[1]) or None
    return "".join(frames[0]) or None


def _close(frames: list[list[str]], opener: str) -> None:
    """Join the parts of a mangled name's innermost open group (it began with `opener`) into the group around it."""
    parts = [part for part in frames.pop() if not part.startswith("_GLOBAL__N_")]
    before = frames[-1]
    if opener == "N":
        before.append("::".join(parts))
    elif opener == "I" and before:
        before[-1] += f"<{', '.join(parts)}>"
    elif opener == "L":
        before += parts[-1:] if parts and parts[-1].isdigit() else parts[:1]
    else:
        before += parts


# ----------------------------------------------------------------------------------------------------------------------
# Kernels that traces and the logs of ncu spell differently: "(bool)1" or "true", "float*" or "float *".
#
# Times of nsys or of PyTorch's profiler belong to the kernels that ncu counted. Names that differ in spelling only are
# made the same; then those that differ in their parameters, which ncu writes as "T1"; then those whose functions have
# the same name, if there is only one such kernel on each side.

_UNNAMED = pattern(r"<unnamed>|\(anonymous namespace\)")
_CAST = pattern(r"\((?:bool|char|short|int|long|long long|unsigned(?: (?:char|short|int|long|long long))?)\)(?=-?\d)")
_SUFFIX = pattern(r"\b(\d+)(?:u|l|ul|ull|ll)\b", re.IGNORECASE)
_LAMBDA = pattern(r"\[lambda\(([^\[\]]*)\) \(instance (\d+)\)\]")
_CONST = pattern(r"\bconst\b")  # before its type or behind it
_SPACE = pattern(r"\s+(?=\W)|(?<=\W)\s+")
_OTHER_WORDS = (("true", "1"), ("false", "0"))


def match_names(timed: Collection[str], counted: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Match kernels that a trace timed with those that ncu counted, by looser and looser spellings.

    Returns ({name in the trace: ncu's name} where these differ, names in the trace that may be several of ncu's).
    """
    timed_only = sorted(set(timed) - set(counted))
    counted_only = sorted(set(counted) - set(timed))
    names: dict[str, str] = {}
    for key in (normal_spelling, without_parameters, function_name):
        groups = gathered((key(name), name) for name in counted_only)
        for name, timed_names in gathered((key(name), name) for name in timed_only).items():
            if len(timed_names) == 1 == len(groups.get(name, ())):
                names[timed_names[0]] = groups[name][0]
        timed_only = [name for name in timed_only if name not in names]
        counted_only = [name for name in counted_only if name not in names.values()]
    left = set(map(function_name, counted_only))
    return names, [name for name in timed_only if function_name(name) in left]


def function_name(kernel: str) -> str:
    """For matching names of two logs: the kernel's function, without return type, template arguments and parameters."""
    bare = _UNNAMED.sub("{}", kernel)
    return re.split(r"[<(]", bare, maxsplit=1)[0].rpartition(" ")[2]


def normal_spelling(kernel: str) -> str:
    """For matching names of two logs: the kernel's, without blanks, casts, suffixes, `const` that only some write."""
    name = _LAMBDA.sub(r"{lambda(\1)#\2}", _CONST.sub("", _UNNAMED.sub("{}", kernel)))
    name = _SUFFIX.sub(r"\1", _CAST.sub("", name))
    for word, number in _OTHER_WORDS:
        name = re.sub(rf"\b{word}\b", number, name)
    return _SPACE.sub("", name.strip())


def without_parameters(kernel: str) -> str:
    """The kernel's name and template arguments: ncu spells parameters as "T1", other tools as their types."""
    start, end = core(kernel)
    return normal_spelling(kernel[start:end])
