"""The house rules of docs/architecture.md, checked on the code itself."""

import ast
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
    ["counters", "counts", "times", "checks"],
    ["costtable", "costfile", "costs", "energy", "modelled", "timemodel"],
    ["plan", "planning"],
    ["rooflines", "grouping"],
    ["profile", "document", "whatif", "roofline_document"],
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


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_door_prints_and_exits_and_only_collect_starts_processes(path):
    here = room_of(path)
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "exit", "eval", "exec") or is_door(here) and node.func.id == "print"
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.name != "subprocess" or here == "collect"


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
