"""Each command and each profiler can be deleted: in a copy without its folder, the rest imports, lists itself, works.

Half of a wing goes at a time, in so many ways that of each two folders one is gone while the other is there, and the other
way round: then each is seen to work without each, in a third of the time.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "eprof"
FOLDERS = sorted(
    path.parent.relative_to(PACKAGE).as_posix()
    for wing in ("commands", "profilers")
    for path in (PACKAGE / wing).glob("*/__init__.py")
)

# Imports all that eprof needs of others, then forks for the folders that are to go together: pandas is imported once.
TRY = """
import contextlib, functools, gc, importlib, io, os, pkgutil, sys, traceback
from importlib.machinery import SourceFileLoader

copy, log, wing, *parts = sys.argv[1:]
sys.dont_write_bytecode = True

def import_all():
    import eprof
    for module in pkgutil.walk_packages(eprof.__path__, "eprof."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

def import_all_anew():
    for name in [name for name in sys.modules if name.partition(".")[0] == "eprof"]:
        del sys.modules[name]
    import_all()

def output(*words):
    from eprof.cli import main
    text = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            main(words)
        except SystemExit as err:
            code = err.code
    text.seek(0)
    return code, text.read()

def try_without(gone):
    import_all_anew()
    import eprof
    assert eprof.__file__.startswith(copy), eprof.__file__
    from eprof import profilers
    from eprof.cli import dispatch
    for name, home in eprof._HOMES.items():
        is_left = not home.startswith(tuple(f"eprof.{wing}.{folder}." for folder in gone))
        assert (name in dir(eprof), hasattr(eprof, name)) == (is_left, is_left), name
    starred = {}
    exec("from eprof import *", starred)
    assert starred.keys() - {"__builtins__"} == set(dir(eprof))
    left = dispatch.names()
    code, text = output("--help")
    assert code == 0 and not gone & set(left) and all(f"    {name}" in text for name in left), text
    for name in left:
        code, text = output(name, "--help")
        assert code == 0 and f"eprof {name}" in text, text
    if wing == "profilers":
        assert not gone & set(profilers.names()) and not gone & set(profilers.signs())
    else:
        for name in gone - set(profilers.names()):
            code, text = output(name, "--help")
            assert code == 2 and f"there is no command `{name}`" in text, text
    for words in (["report", log, "--costs", "gtx680", "--time", "0.5"], ["costs", "gtx680"], ["doctor"]):
        if words[0] in left:
            code, text = output(*words)
            fails = "no profiler can be used here" in text if words == ["doctor"] else "nvprof" in gone and log in words
            assert code == fails, text

import_all()
output("report", log, "--costs", "gtx680", "--time", "0.5")  # what pandas makes for the first report, each finds made
SourceFileLoader.get_code = functools.cache(SourceFileLoader.get_code)  # of the same files, for all children
sys.path.insert(0, copy)
import_all_anew()
gc.disable()  # a process that is gone in a moment leaves no garbage
gc.freeze()
for part in parts:
    gone = set(part.split(","))
    for folder in gone:
        os.rename(f"{copy}/eprof/{wing}/{folder}", f"{copy}/without-{folder}")
    if not os.fork():
        code = 1
        try:
            try_without(gone)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if os.waitstatus_to_exitcode(os.wait()[1]):
        sys.exit(f"without {part}")
    for folder in gone:
        os.rename(f"{copy}/without-{folder}", f"{copy}/eprof/{wing}/{folder}")
"""

_LOG = """==1== NVPROF is profiling process 1, command: ./made_up
==1== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla K20c (0)","axpy(int, float*)",2,"inst_integer","Integer Instructions",1000,1000,1000
"""


def _link(source, target):
    """As `os.link`; a copy where the folder for temporary files is on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def halves(folders):
    """Some of the folders at a time: for each two, one part has the first only, and one the second only."""
    for bit in range((len(folders) - 1).bit_length()):
        for side in (0, 1):
            yield [folder for number, folder in enumerate(folders) if number >> bit & 1 == side]


def test_each_two_folders_are_parted_both_ways():
    for number in range(2, 40):
        parts = list(halves(range(number)))
        pairs = {(one, other) for part in parts for one in part for other in set(range(number)) - set(part)}
        assert len(pairs) == number * (number - 1)


@pytest.mark.parametrize("wing", ["commands", "profilers"])
def test_each_folder_of_a_wing_can_be_deleted(wing, tmp_path):
    (tmp_path / "log.csv").write_text(_LOG)
    names = [folder.split("/")[1] for folder in FOLDERS if folder.startswith(f"{wing}/")]
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "eprof", copy_function=_link)
    for data in ("counters", "costs", "reports", "calibration", "samples"):
        (copy / data).symlink_to(ROOT / data)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EPROF_CACHE": "off"}
    words = [sys.executable, "-c", TRY, str(copy), str(tmp_path / "log.csv"), wing]
    words += [",".join(part) for part in halves(names)]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_tests_of_a_wing_lie_in_its_folder_and_import_no_command_but_its_own():
    """So that they go with it, and those of others stay as they are; a report is what all of them may look at."""
    for file in (ROOT / "tests").glob("*/*/test_*.py"):
        wing, folder = file.parts[-3:-1]
        if wing in ("commands", "profilers"):
            assert f"{wing}/{folder}" in FOLDERS, f"{file}: there is no such folder in eprof/{wing}"
            imported = set(re.findall(r"^ *(?:from|import) eprof\.commands\.(\w+)", file.read_text(), re.MULTILINE))
            assert imported <= {folder if wing == "commands" else "", "report"}, file
