"""The rest's own tests without a wing's folder: `python tests/without.py commands/tune [ARGUMENTS OF PYTEST]`.

The tree is copied without the folder and its tests. A test that names what is gone is left out, and so is `tests/house`,
which holds the documents to all folders. A wing can be deleted if nothing fails.
"""

import inspect
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_GONE = "EPROF_TESTS_WITHOUT"


def _is_named(folder: str, text: str) -> bool:
    """Whether a text names a folder of a wing: as a module, as a command that is called, or in quotes."""
    name = folder.rpartition("/")[2]
    module = rf"eprof\.{folder.replace('/', '[./]')}\b"
    return (
        re.search(rf"{module}|eprof[./]{folder}\b|(?:eprof |--profiler[ =]|['\"/\[-]){name}(?![\w-])", text) is not None
    )


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that import what is gone."""
    if collection_path.suffix == ".py":
        module = os.environ[_GONE].replace("/", ".")
        text = collection_path.read_text()
        if re.search(
            rf"^(?:from|import) eprof\.{module}\b|^from eprof\.{module.replace('.', ' import .*')}\b", text, re.M
        ):
            return True
    return None


def pytest_collection_modifyitems(config, items) -> None:
    """Leave out tests that name what is gone, in their code or in what they are given."""
    folder = os.environ[_GONE]
    named = [item for item in items if _is_named(folder, f"{item.name}\n{inspect.getsource(item.function)}")]
    config.hook.pytest_deselected(items=named)
    items[:] = [item for item in items if item not in set(named)]


def without(folder: str, *words: str) -> int:
    """Run pytest in a copy without `eprof/FOLDER` and `tests/FOLDER`; returns its exit code."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="eprof-without-") as place:
        copy = Path(place, "eprof")
        for name in filter(None, listed.split("\0")):
            if (
                not name.startswith((f"eprof/{folder}/", f"tests/{folder}/", "tests/house/"))
                and (ROOT / name).is_file()
            ):
                target = copy / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((ROOT / name).read_bytes())
                target.chmod((ROOT / name).stat().st_mode)
        (copy / ".venv").symlink_to(ROOT / ".venv")
        if (shared := ROOT.parent / "shared").exists():
            Path(place, "shared").symlink_to(shared.resolve())
        environment = {**os.environ, _GONE: folder, "PYTHONPATH": str(copy)}
        command = [sys.executable, "-m", "pytest", "-p", "tests.without", *words]
        return subprocess.run(command, cwd=copy, env=environment).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (ROOT / "eprof" / sys.argv[1] / "__init__.py").is_file():
        sys.exit(f"{__doc__}")
    sys.exit(without(*sys.argv[1:]))
