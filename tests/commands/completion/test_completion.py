"""Completion: what shells themselves complete."""

import os
import shutil
import subprocess
import sys
from functools import cache

import pytest
from conftest import ROOT

from eprof.base import gpus
from eprof.cli import dispatch
from eprof.commands.completion import command as completion


def shell(name):
    return shutil.which(name) or pytest.skip(f"needs {name} on the PATH")


@pytest.fixture
def environment(tmp_path):
    """`eprof` on the PATH, in an empty folder but for one log."""
    script = tmp_path / "bin" / "eprof"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m eprof "$@"\n')
    script.chmod(0o755)
    (tmp_path / "metrics.csv").touch()
    path = f"{script.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}


def completed(command, environment, tmp_path):
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert not done.stderr, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """What `eprof completion SHELL` prints, in a file for each shell: a user's shell reads it once, when it starts."""
    folder = tmp_path_factory.mktemp("completion")
    for name in ("bash", "fish", "zsh"):
        with (folder / name).open("w") as file:
            command = [sys.executable, "-m", "eprof", "completion", name]
            subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=file, check=True)
    return folder


# What is typed, where the last word is to be completed, and what a shell offers for it.
TYPED = [
    (["rep"], ["report"]),
    (["report", "--costs", "jet"], ["jetson-tk1"]),
    (["report", "--costs", "jetson-tk1", "--setting", "852/9"], ["852/924"]),
    (
        ["costs", "--estimate", "GeForce-RTX-409"],
        ["GeForce-RTX-4090", "GeForce-RTX-4090-D", "GeForce-RTX-4090-Laptop-GPU"],
    ),
]


@pytest.mark.parametrize(("words", "offered"), [*TYPED, (["report", "--costs", "=", "jet"], ["jetson-tk1"])])
def test_bash_completes(environment, functions, tmp_path, words, offered):
    """As readline does: it sets COMP_WORDS, calls the function and takes COMPREPLY."""
    script = 'source "$0"; COMP_WORDS=(eprof "$@"); COMP_CWORD=$#; _eprof; printf "%s\\n" "${COMPREPLY[@]}"'
    command = [shell("bash"), "--norc", "-c", script, functions / "bash", *words]
    assert completed(command, environment, tmp_path) == offered


def test_bash_leaves_names_of_files_to_itself(environment, tmp_path):
    script = "source <(eprof completion bash); complete -p eprof; COMP_WORDS=(eprof report m); COMP_CWORD=2; _eprof; echo ${#COMPREPLY[@]}"
    shown = completed([shell("bash"), "--norc", "-c", script], environment, tmp_path)
    assert shown[-1] == "0" and shown[:3] == ["complete", "-o", "bashdefault"]


@pytest.mark.parametrize(("words", "offered"), [*TYPED, (["report", "m"], ["metrics.csv"])])
def test_fish_completes(environment, functions, tmp_path, words, offered):
    script = f"source {functions / 'fish'}; complete -C 'eprof {' '.join(words)}'"
    assert completed([shell("fish"), "--no-config", "-c", script], environment, tmp_path) == offered


@pytest.mark.parametrize(("words", "offered"), [*TYPED, (["report", "--costs=jet"], ["--costs=jetson-tk1"])])
def test_zsh_completes(environment, functions, tmp_path, words, offered):
    """With `compadd`, which only works while somebody types, in place of it one that prints."""
    script = (
        'compdef() { :; }; compadd() { print -l -- ${(P)2}; }; source "$0"; words=(eprof "$@"); CURRENT=$#words; _eprof'
    )
    assert completed([shell("zsh"), "-f", "-c", script, functions / "zsh", *words], environment, tmp_path) == offered


@cache
def parsers():
    return dispatch._parser()[1]


def offered(*words):
    return completion.candidates(words, parsers())


def test_every_option_is_offered_and_every_choice():
    for name, parser in parsers().items():
        for action in parser._actions:
            assert set(action.option_strings) <= set(offered(name, "-"))
            if action.choices is not None and action.option_strings:
                assert offered(name, action.option_strings[-1], "") == sorted(action.choices)


def test_behind_a_program_its_own_words_are_left_alone():
    assert "--costs" in offered("run", "--timeout", "3", "--c")
    assert offered("run", "--timeout", "3", "./fmm", "--c") == []
    assert offered("frobnicate", "--c") == []


def test_names_of_gpus_without_spaces_mean_the_same_gpus():
    for name in (sheet.name for sheet in gpus.sheets()):
        sheet = gpus.data_sheet(name.replace(" ", "-"))
        assert sheet is not None and name.startswith(sheet.name), name


def test_without_a_shell_only_the_shell_is_asked_for(eprof_command):
    done = eprof_command("completion")
    assert done.returncode == 2 and "the following arguments are required: form." in done.stderr
