"""`eprof completion`: what a shell completes, made from the parsers of the commands.

The script of a shell is small: at each Tab it asks `eprof completion words` what may come next. So it never gets old.
"""

import argparse
from collections.abc import Mapping, Sequence

from eprof.cli.options import DEFINITION, GPU, MAPPING, SETTING, TABLE, Commands, Parser, command, split

_BASH = """\
_eprof() {
    local IFS=$'\\n'
    COMPREPLY=($(eprof completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o bashdefault -F _eprof eprof
"""
_ZSH = """\
#compdef eprof
_eprof() {
    local -a candidates
    candidates=("${(@f)$(eprof completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n $candidates[1] ]]; then compadd -a candidates; else _files; fi
}
if [[ $funcstack[1] == _eprof ]]; then _eprof; else compdef _eprof eprof; fi
"""
_FISH = """\
function __eprof_words
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    eprof completion words -- $before[2..] "$current" 2>/dev/null
    or __fish_complete_path "$current"
end
complete -c eprof -f -a '(__eprof_words)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add(commands: Commands) -> Parser:
    """Add `eprof completion` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "completion",
        "Print what makes a shell complete commands, options, cost tables, settings and GPUs.",
        "source <(eprof completion bash)                   in ~/.bashrc; zsh in ~/.zshrc, behind compinit",
        "eprof completion fish | source                     in ~/.config/fish/config.fish",
    )
    parser.add_argument(
        "form", choices=(*_SCRIPTS, "words"), help="what to print; `words` is what the scripts ask at each Tab"
    )
    parser.add_argument(
        "words", nargs="*", default=[], metavar="WORD", help="of `words`: what is typed so far, behind --"
    )
    return parser


def completion(options: argparse.Namespace) -> int:
    """Run `eprof completion`. Exit code 1 if no word fits; the shell then completes file names."""
    if options.form in _SCRIPTS:
        print(_SCRIPTS[options.form], end="")
        return 0
    _, parsers = options.parsers(next(iter(options.words), ""))
    words = candidates(options.words, parsers)
    for word in words:
        print(word)
    return int(not words)


def candidates(words: Sequence[str], parsers: Mapping[str, Parser]) -> list[str]:
    """The words, sorted, that the last of a command line's `words` may become; none where that is a file name."""
    # bash gives `--costs=gtx` as three words.
    *before, last = words or [""]
    before = [word for word in before if word != "="]
    if last == "=":
        last = ""
    possible: Sequence[str] = []
    parser = parsers.get(next(iter(before), ""))
    if not before:
        possible = [*parsers, "--help", "--version"]
    elif parser is not None and not (parser.runs_program and split(before, parser)[1]):
        options = parser._option_string_actions
        name, is_joined, _ = last.partition("=")
        previous = options.get(before[-1])
        if is_joined and name in options:
            possible = [f"{name}={value}" for value in _values(options[name], before)]
        elif previous is not None and previous.nargs != 0:
            possible = _values(previous, before)
        elif last.startswith("-"):
            possible = list(options)
        else:
            possible = [value for action in parser._get_positional_actions() for value in _values(action, before)]
    return sorted({word for word in possible if word.startswith(last)})


def _values(action: argparse.Action, before: Sequence[str]) -> Sequence[str]:
    """The values that an option takes, by its choices or its metavar; none for a file, a number or a text."""
    if action.choices is not None:
        return list(action.choices)
    if action.metavar == SETTING:
        from eprof import costs

        table = next((word for word in before if word in costs.tables()), None)
        return [] if table is None else [setting.label for setting in costs.load(table).settings]
    kind, _, _ = str(action.metavar).partition("[")
    if kind == TABLE:
        from eprof import costs

        return [*costs.tables(), costs.ESTIMATED, costs.NONE]
    if kind == GPU:
        from eprof.base import gpus

        # As one word each; `eprof costs --estimate` takes them so.
        return [sheet.name.replace(" ", "-") for sheet in gpus.sheets()]
    if kind == DEFINITION:
        from eprof.counts import definition_files

        return [definition.name for definition in definition_files.definitions()]
    if kind == MAPPING:
        from eprof.lab.measurements import mapping

        return [columns.name for columns in mapping.mappings()]
    return []
