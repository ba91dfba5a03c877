"""The house rules of docs/architecture.md, checked on the code itself."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from os.path import commonprefix
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "eprof"

# The spine, in the order in which data walk: a room imports rooms before it, and never one behind it.
SPINE = ["base", "collect", "logs", "counts", "costs", "energy", "profile", "show", "cli"]
# Rooms between: what several commands or profilers share, and a report does without. The same holds among them.
BETWEEN = ["clusters", "readers", "lab", "nvidia"]
# The wings: a folder each, which imports the spine and the rooms between, and never the folder beside it.
WINGS = ["profilers", "commands"]
ROOMS = [*SPINE, *BETWEEN, *WINGS]


@cache
def modules():
    return sorted(PACKAGE.rglob("*.py"))


@cache
def nodes(path):
    """What a file is made of; not to be changed."""
    return list(ast.walk(ast.parse(path.read_text())))


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


@cache
def files():
    return {name_of(path) for path in modules()}


def file_of(module):
    """The file of a module below eprof, "logs.many" or "logs" or ""; None if there is none."""
    place = module.replace(".", "/")
    return next((file for file in (f"{place}.py", f"{place}/__init__.py".lstrip("/")) if file in files()), None)


@cache
def imports(path, types=True):
    """The files of eprof that a file imports, at its top or in a function. types: those also that only name types."""
    for_types = set()
    for node in nodes(path):
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for_types.update(ast.walk(node))
    imported = set()
    for node in nodes(path):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute, so that they can be read"
            home, _, inside = (node.module or "").partition(".")
            if home == "eprof":
                imported |= {file_of(f"{inside}.{alias.name}".strip(".")) or file_of(inside) for alias in node.names}
        elif isinstance(node, ast.Import):
            imported |= {
                file_of(alias.name.partition(".")[2]) for alias in node.names if alias.name.startswith("eprof")
            }
    return imported - {name_of(path), "__init__.py"}


def place_of(file):
    """Where a file is, as the rules see it: a room, a folder of a wing ("commands/tune"), or the door of a wing.

    The door, the files beside a wing's folders, finds these by name and imports none of them.
    """
    room, _, rest = file.partition("/")
    if room not in WINGS:
        return room
    return f"{room}/{rest.partition('/')[0]}" if "/" in rest else f"{room} door"


def may_import(here, there):
    """Whether files at a place may import what is at another."""
    if here == there:
        return True
    if here.endswith(" door"):
        return there == "base"
    if here in SPINE:
        return there in SPINE[: SPINE.index(here)] or there.endswith(" door")
    libraries = SPINE if here.startswith("commands/") else SPINE[:-1]
    if here in BETWEEN:
        return there in [*libraries, *BETWEEN[: BETWEEN.index(here)]] or there.endswith(" door")
    return there in [*libraries, *BETWEEN] or there.endswith(" door")


def test_eprof_itself_holds_rooms_only():
    here = {path.name for path in PACKAGE.iterdir() if path.is_file() or any(path.rglob("*.py"))}
    assert here == {"__init__.py", "__main__.py", "py.typed", *ROOMS}
    folders = {path.parent for path in modules()}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_a_room_imports_rooms_before_it_and_a_folder_of_a_wing_never_its_neighbour():
    assert [arrow for path in modules() if path.parent != PACKAGE for arrow in forbidden(path)] == []
    assert imports(PACKAGE / "__main__.py") == {"cli/__init__.py"}
    assert imports(PACKAGE / "__init__.py", types=False) == set(), "public names are imported when used"


def forbidden(path):
    """ "file imports file" for each import from where the file's own place may not."""
    here = place_of(name_of(path))
    return [
        f"{name_of(path)} imports {file}"
        for file in imports(path, types=not here.endswith(" door"))
        if not may_import(here, place_of(file))
    ]


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("logs/reading.py", {"counts/counts.py", "profilers/ncu/reader.py"}),
        ("cli/dispatch.py", {"commands/run/command.py", "lab/objective.py"}),
        ("lab/welch.py", {"commands/diff/schema.py", "cli/output.py"}),
        ("commands/tune/document.py", {"commands/validate/document.py", "profilers/ncu/reader.py"}),
        ("profilers/ncu/reader.py", {"profilers/nvprof/reader.py", "commands/run/settings.py"}),
        ("profilers/__init__.py", {"profilers/ncu/__init__.py", "logs/reading.py"}),
    ],
)
def test_an_import_from_elsewhere_is_seen(path, seen, monkeypatch):
    allowed = {"base/text.py"}
    monkeypatch.setattr(sys.modules[__name__], "imports", lambda path, types=True: seen | allowed)
    assert set(forbidden(PACKAGE / path)) == {f"{path} imports {file}" for file in seen}


def arrows():
    """(folder, what in it imports, what in it is imported), as files import each other, if only to name types."""
    for path in modules():
        here = _steps(name_of(path))
        for file in imports(path):
            there = _steps(file)
            depth = len(commonprefix([here, there]))
            yield "/".join(here[:depth]), here[depth], there[depth]


def _steps(file):
    """The folders to a file, and its name; the door of a wing is a folder of its own."""
    place = place_of(file)
    return [place, file.rpartition("/")[2]] if place.endswith(" door") else file.split("/")


def circles(pairs):
    """What is left of the arrows when all that begin where none ends, and that end where none begins, are taken away."""
    left = set(pairs)
    while True:
        starts, ends = {start for _, start, _ in left}, {end for _, _, end in left}
        inner = {arrow for arrow in left if arrow[1] in ends and arrow[2] in starts}
        if inner == left:
            return left
        left = inner


def all_circles():
    all_arrows = set(arrows())
    folders = {folder for folder, _, _ in all_arrows}
    return {arrow for folder in folders for arrow in circles(arrow for arrow in all_arrows if arrow[0] == folder)}


def test_no_two_files_or_folders_of_a_folder_form_a_circle():
    assert all_circles() == set()


def test_circles_are_seen():
    line = {("", "a", "b"), ("", "b", "c"), ("", "a", "c")}
    ring = {("", "b", "d"), ("", "d", "b")}
    assert circles(line) == set() and circles(line | ring) == ring


def test_no_prefix_stands_for_a_folder():
    """`cli_run.py` is `commands/run/command.py`; `ncu_reader.py` is `profilers/ncu/reader.py`."""
    folders = {f"{path.parent.name}_" for path in modules()}
    assert [file for file in files() if Path(file).stem.startswith(tuple(folders))] == []


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


def may(what, file):
    """Whether a file may do one of these: commands and terminals print, `cli` exits, `collect` starts processes."""
    home, _, name = file.rpartition("/")
    match what:
        case "prints":
            return home == "cli" or name in ("command.py", "terminal.py") or file == "show/console.py"
        case "exits":
            return home == "cli"
        case "starts processes":
            return home.startswith("collect")
    return False


# What is at odds with that, each with its reason.
EXCEPTIONS = {
    (
        "prints",
        "commands/run/program_io.py",
    ): "hands on what the profiled program prints, and writes into pipes of its own",
    ("prints", "commands/calibrate/worker.py"): "is a program of its own, which collect starts and reads",
    ("prints", "profilers/callgrind/decode.py"): "is a program of its own, which collect starts to make a log",
    ("exits", "profilers/callgrind/decode.py"): "is a program of its own, which collect starts",
    ("exits", "commands/calibrate/worker.py"): "is a program of its own, which collect starts",
    ("exits", "commands/run/program_io.py"): "the end of a process that it forked",
    ("prints", "collect/process.py"): "writes into pipes of its own",
    ("exits", "collect/process.py"): "the end of a process that collect forked",
    ("exits", "__main__.py"): "where Ctrl-C came before the room that exits was there",
    (
        "starts processes",
        "commands/run/program_io.py",
    ): "takes a program's output apart, in a process that outlives eprof",
    ("starts processes", "profilers/oclgrind/native.py"): "has a compiler build Oclgrind's plugin",
    ("starts processes", "profilers/oclgrind/lowering.py"): "is a program of its own, which Oclgrind's plugin starts",
    ("starts processes", "logs/many.py"): "reads many logs at once, on all cores, or on a Dask cluster",
    ("starts processes", "cli/output.py"): "opens the report in the user's browser (--open)",
}


def names_used(nodes):
    """Every name that a module uses, as "module.attribute" where it was imported: `Popen` is `subprocess.Popen`.

    A method of something unknown is ".method". Modules imported by their name as text count too.
    """
    imported = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else None
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
    for node in nodes:
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


def does(nodes):
    """What of the things that few may do a module does: "prints", "exits", "starts processes", "runs text"."""
    rules = {"prints": PRINTS, "exits": EXITS, "starts processes": STARTS, "runs text": RUNS_TEXT}
    used = set(names_used(nodes))
    return {what for what, pattern in rules.items() if any(re.fullmatch(pattern, name) for name in used)}


def test_only_commands_print_and_exit_and_only_collect_starts_processes():
    found = {(what, name_of(path)) for path in modules() for what in does(nodes(path)) if not may(what, name_of(path))}
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
    assert does(list(ast.walk(ast.parse(code)))) == {what}


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
    assert does(list(ast.walk(ast.parse(code)))) == set()


# ---- how statements read


def conditionals(node):
    """How many conditional expressions a statement holds, those of statements inside it not counted."""
    inner = (
        child
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
    )
    return sum(isinstance(child, ast.IfExp) + conditionals(child) for child in inner)


def test_a_statement_holds_one_conditional_expression_at_most():
    dense = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.stmt) and conditionals(node) > 1
    ]
    assert dense == [], "write an early return, a `match`, a table, or two statements"


@pytest.mark.parametrize(
    ("code", "number"), [("a = (1 if b else 2) + (3 if c else 4)", 2), ("if a:\n    b = 1 if c else 2", 0)]
)
def test_conditional_expressions_are_counted(code, number):
    assert conditionals(ast.parse(code).body[0]) == number


def drawn():
    """Each row of the drawing's tables: a room or a folder of a wing, its lines as told, and what is in it."""
    drawing = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([a-z/]+)/` ([\d.]+)( k)? \|([^|]*)\|", drawing, re.MULTILINE)
    return {place: (float(number) * (1000 if thousands else 1), inside) for place, number, thousands, inside in rows}


def test_the_house_is_drawn_with_every_room_and_every_folder_of_a_wing():
    assert [place for place in drawn() if "/" not in place] == ROOMS, "a row a room, in the order of ROOMS"
    folders = {path.parent for path in PACKAGE.glob("*/*/__init__.py") if path.parts[-3] in WINGS}
    assert {place for place in drawn() if "/" in place} == {name_of(folder) for folder in folders}
    words = "".join(inside for _, inside in drawn().values())
    for folder in {path.parent for path in modules()} - {PACKAGE}:
        assert name_of(folder) in drawn() or f"`{folder.name}/`" in words, f"nothing is said of {folder}"


def test_every_file_that_the_drawing_names_is_there():
    folders = {path.name for path in [*ROOT.iterdir(), *PACKAGE.rglob("*")] if path.is_dir()}
    for place, (_, inside) in drawn().items():
        files = {path.stem for path in (PACKAGE / place).rglob("*.*")}
        for name in re.findall(r"`([a-z_/]+)(?:\.py)?`", inside):
            named = {part for part in name.split("/") if part}
            assert named <= files | folders | {"repr"}, f"docs/architecture.md names {name}: not in eprof/{place}"


def test_the_drawing_tells_how_many_lines_a_room_and_a_folder_of_a_wing_have():
    for place, (said, _) in drawn().items():
        lines = sum(path.read_text().count("\n") for path in modules() if path.is_relative_to(PACKAGE / place))
        assert abs(said - lines) <= max(0.15 * lines, 20), f"docs/architecture.md says {said:g} of {place}: {lines}"


def test_importing_eprof_is_light():
    code = "import sys, eprof, eprof.cli; print([m for m in ('pandas','numpy','pyarrow','rich','jinja2') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


_LOG = """==1== NVPROF is profiling process 1, command: ./made_up
==1== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla K20c (0)","axpy(int, float*)",2,"inst_integer","Integer Instructions",1000,1000,1000
"""


_SLOW = ["pandas", "pyarrow", "scipy", "asyncio", "importlib.resources", "multiprocessing", "numpy.ma"]


@pytest.mark.parametrize(
    "page, slow", [(["-o", "page.html"], _SLOW), ([], [*_SLOW, "jinja2"])], ids=["page", "terminal"]
)
@pytest.mark.parametrize(
    "command", [["report", "old.csv", "--time", "0.5"], ["diff", "old.csv", "new.csv"]], ids=" ".join
)
def test_a_small_log_needs_no_library_that_is_slow_to_import(command, page, slow, tmp_path):
    for name in ("old.csv", "new.csv"):
        (tmp_path / name).write_text(_LOG)
    code = (
        "import atexit, sys; from eprof.cli import main\n"
        f"atexit.register(lambda: print([m for m in {slow} if m in sys.modules], file=open('loaded', 'w')))\n"
        f"main({[*command, '--costs', 'gtx680', *page]})"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EPROF_CACHE": "off"}
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=tmp_path, env=environment)
    assert (tmp_path / "loaded").read_text().strip() == "[]"
    assert (tmp_path / "page.html").is_file() == bool(page)
