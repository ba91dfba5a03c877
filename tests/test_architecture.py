"""The house rules of docs/architecture.md, checked on the code itself."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "eprof"

# Rooms in the direction that data flows. A module may import its own room, rooms before it, and the hall.
ROOMS = [
    ["collect"],
    ["logs"],
    ["runs"],
    ["counters", "term", "counts", "times", "checks"],
    ["costtable", "costfile", "costs", "energy", "modelled", "timemodel"],
    ["plan", "planning"],
    ["rooflines", "grouping"],
    ["profile", "clocks", "document", "whatif", "roofline_document"],
    ["running"],
    ["matching", "compare"],
    ["measurements", "fitting", "validation", "tuning", "tabletext"],
    ["calibration"],
    ["report", "console", "export", "export_roofline", "listing"],
    ["api", "variants", "cli", "__main__", "writing"],
]
HALL = {"advice", "arrays", "errors", "marks", "vocabulary", "definition", "resources", "plain", ""}
RANK = {module: rank for rank, room in enumerate(ROOMS) for module in room}


def is_door(module):
    """`cli` and the modules of its commands: `cli_run`, `cli_diff`..."""
    return module == "cli" or module.startswith("cli_")


@cache
def modules():
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rank_of(module):
    """Where a module stands; the console's and the door's are named after what they show: `console_diff`, `cli_run`."""
    if module not in RANK and (is_door(module) or module.startswith("console_")):
        return RANK[module.partition("_")[0]]
    return RANK[module]


@cache
def nodes(path):
    """What a file is made of; not to be changed."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path):
    """(imported eprof module, is it at module level) for every import in a file."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "eprof":
            rest = node.module.split(".")[1:]
            if rest:
                yield rest[0]
            else:
                yield from (alias.name for alias in node.names if alias.name != "__version__")
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("eprof."))


def may_import(here, module):
    return module not in HALL | {"__init__"} and rank_of(module) <= rank_of(here)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_before_it_and_the_hall(path):
    here = room_of(path)
    if here in HALL or here == "__init__":
        allowed = HALL
    else:
        allowed = HALL | {one for one in {room_of(module) for module in modules()} if may_import(here, one)}
    if here == "__init__":
        allowed = allowed | {"api", "profile", "variants"}
    assert set(imports(path)) <= allowed


# ---- who prints, who exits, who starts processes

PRINTS = r"print|pprint\..*|rich\.print|sys\.(__)?std(out|err)(__)?(\..*)?|os\.write|.*\.print"
EXITS = r"exit|quit|sys\.exit|os\._exit|os\.abort|SystemExit"
RUNS_TEXT = r"eval|exec"
STARTS = (
    r"(subprocess|_posixsubprocess|multiprocessing|pty|webbrowser|distributed|dask\.distributed)(\..*)?"
    r"|os\.(fork|forkpty|system|popen|startfile|posix_spawnp?|(spawn|exec)[lv]p?e?)"
    r"|concurrent\.futures\.(ProcessPoolExecutor|process(\..*)?)"
    r"|(asyncio\..*|.*\.)?(create_subprocess_(exec|shell)|subprocess_(exec|shell))"
)
# What is at odds with "the door alone prints and exits, collect alone starts processes", each with its reason.
EXCEPTIONS = {
    ("prints", "console.py"): "draws with rich what a command hands it",
    ("prints", "console_diff.py"): "draws with rich what a command hands it",
    ("prints", "console_fit.py"): "draws with rich what a command hands it",
    ("prints", "console_roofline.py"): "draws with rich what a command hands it",
    ("prints", "console_tuning.py"): "draws with rich what a command hands it",
    ("prints", "console_validation.py"): "draws with rich what a command hands it",
    ("prints", "listing.py"): "draws with rich what a command hands it",
    ("prints", "collect/streams.py"): "hands on what the profiled program prints",
    ("prints", "collect/splitting.py"): "writes into pipes of its own",
    ("prints", "collect/cuda_worker.py"): "is a program of its own, which collect starts and reads",
    ("exits", "collect/cuda_worker.py"): "is a program of its own, which collect starts",
    ("exits", "collect/splitting.py"): "the end of a process that collect forked",
    ("starts processes", "logs/workers.py"): "reads many logs at once, on all cores",
    ("starts processes", "logs/many.py"): "reads many logs on a Dask cluster, where a user asks for one",
    ("starts processes", "validation/run.py"): "fits of left-out measurements at once, on all cores",
    ("starts processes", "cli_output.py"): "opens the report in the user's browser (--open)",
}


def names_used(tree):
    """Every name that a module uses, as "module.attribute" where it was imported: `Popen` is `subprocess.Popen`.

    A method of something unknown is ".method". Modules imported by their name as text count too.
    """
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else None
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            yield dotted(node, imported)
        if isinstance(node, ast.Call) and dotted(node.func, imported).endswith(("import_module", "__import__")):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


def dotted(node, imported):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, imported)}.{node.attr}"
    if isinstance(node, ast.Name):
        return imported.get(node.id) or node.id
    return ""


def does(tree):
    """What of the things that few may do a module does: "prints", "exits", "starts processes", "runs text"."""
    rules = {"prints": PRINTS, "exits": EXITS, "starts processes": STARTS, "runs text": RUNS_TEXT}
    used = set(names_used(tree))
    return {what for what, pattern in rules.items() if any(re.fullmatch(pattern, name) for name in used)}


def may(what, path):
    here = room_of(path)
    return is_door(here) and what in ("prints", "exits") or here == "collect" and what == "starts processes"


def test_only_the_door_prints_and_exits_and_only_collect_starts_processes():
    found = {
        (what, path.relative_to(PACKAGE).as_posix())
        for path in modules()
        for what in does(ast.parse(path.read_text()))
        if not may(what, path)
    }
    assert found - set(EXCEPTIONS) == set(), "against the rules of docs/architecture.md"
    assert set(EXCEPTIONS) - found == set(), "exceptions that nothing needs any more; take them out"


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("prints", "print('x')"),
        ("prints", "from rich import print as show; show('x')"),
        ("prints", "def show(console):\n    console.print('x')"),
        ("prints", "from rich.console import Console\nConsole().print('x')"),
        ("prints", "import sys\nsys.stdout.buffer.write(b'x')"),
        ("prints", "from sys import stderr\nstderr.write('x')"),
        ("exits", "raise SystemExit(2)"),
        ("exits", "import os as system\nsystem._exit(1)"),
        ("runs text", "eval('1')"),
        ("starts processes", "import subprocess"),
        ("starts processes", "from subprocess import run"),
        ("starts processes", "import os\nos.fork()"),
        ("starts processes", "from os import execvpe as go\ngo('x', [], {})"),
        ("starts processes", "import os\nos.spawnlp(os.P_WAIT, 'x', 'x')"),
        ("starts processes", "import os\nos.posix_spawn('x', ['x'], {})"),
        ("starts processes", "import os\nos.system('x')"),
        ("starts processes", "from multiprocessing import get_context"),
        ("starts processes", "from concurrent.futures import ProcessPoolExecutor"),
        ("starts processes", "import concurrent.futures as pools\npools.ProcessPoolExecutor()"),
        ("starts processes", "import asyncio\nasyncio.create_subprocess_exec('x')"),
        ("starts processes", "async def go(loop):\n    await loop.subprocess_shell(None, 'x')"),
        ("starts processes", "import pty\npty.spawn('x')"),
        ("starts processes", "import importlib\nimportlib.import_module('subprocess')"),
        ("starts processes", "from dask.distributed import Client"),
        ("starts processes", "import webbrowser"),
    ],
)
def test_the_rule_sees_every_way_to_do_it(what, code):
    assert does(ast.parse(code)) == {what}


@pytest.mark.parametrize(
    "code",
    [
        "from concurrent.futures import ThreadPoolExecutor",
        "import os\nos.getpid()",
        "text = 'print(1)'",
        "import sys\nsys.argv",
    ],
)
def test_the_rule_sees_nothing_where_nothing_is(code):
    assert does(ast.parse(code)) == set()


def test_the_house_is_drawn_with_every_room():
    drawing = (ROOT / "docs" / "architecture.md").read_text()
    for path in PACKAGE.iterdir():
        name = path.stem
        if path.suffix == ".py" and not name.startswith(("__", "cli_", "console_")):
            assert f"`{name}" in drawing, f"docs/architecture.md does not mention {name}"


def test_importing_eprof_is_light():
    code = "import sys, eprof, eprof.cli; print([m for m in ('pandas','numpy','pyarrow','rich','jinja2') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
