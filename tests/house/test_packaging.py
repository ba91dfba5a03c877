"""eprof must find its data in a wheel, in an editable install and in a bare checkout alike."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASK = "import eprof.costs as c, eprof.counts.definition_files as k; print(len(c.tables()), len(k.definitions()))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout, built by its own build backend, without network."""
    out = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build as b; print(b.build_wheel({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def tracked(*folders):
    done = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


def test_the_wheel_holds_exactly_the_tracked_files(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        name if name.startswith("eprof/") else f"eprof/data/{name}"
        for name in tracked("eprof", "calibration", "counters", "costs", "reports", "samples/logs/simulated")
    }
    assert names - wanted == set(), "git add new files (or ignore them) first"
    assert wanted - names == set()


def test_links_of_the_wheels_readme_lead_to_the_repository(wheel):
    files = zipfile.ZipFile(wheel)
    metadata = files.read(next(name for name in files.namelist() if name.endswith("/METADATA"))).decode()
    links = re.findall(r"\]\(([^)\s]+)\)", metadata)
    repository = re.search(r"^Project-URL: Repository, (\S+)$", metadata, re.MULTILINE)[1]
    assert [link for link in links if not link.startswith("https://")] == []
    paths = {
        link.partition("#")[0].removeprefix(repository).split("/", 3)[3]
        for link in links
        if link.startswith(repository)
    }
    assert "docs/growth.svg" in paths and all((ROOT / path).exists() for path in paths)


def counts(python, **more):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | more.pop("env", {})
    done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, env=environment, **more)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_wheel_editable_and_checkout_see_the_same_data(wheel, tmp_path):
    in_checkout = counts(sys.executable, cwd=ROOT)
    assert min(in_checkout) >= 5

    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    assert counts(sys.executable, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "installed")}) == in_checkout

    venv.create(tmp_path / "venv", system_site_packages=False, with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    paths = [path for path in sys.path if path.endswith("site-packages")]
    # An editable install by hatchling is a .pth file that names the checkout.
    (site / "eprof.pth").write_text("\n".join([str(ROOT), *paths]) + "\n")
    assert counts(str(python), cwd=tmp_path) == in_checkout


def test_the_demo_runs_from_the_wheel_and_prints_what_the_readme_shows(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "COLUMNS": "96", "EPROF_CACHE": "off"}
    command = [sys.executable, "-m", "eprof", "demo", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["eprof: wrote eprof-demo/fmm.html", "eprof: wrote eprof-demo/gemm.html"]
    readme = [line.strip() for line in (ROOT / "README.md").read_text().splitlines()]
    assert [line for line in done.stdout.splitlines() if line.strip() not in readme] == []


USER = """
from pathlib import Path
import eprof

def total_j(log: Path) -> float:
    profile = eprof.load(log, capability="3.5")
    energy = profile.energy("gtx680", setting=None)
    frame = energy.grouped("fmm=phase").to_frame()
    answer = energy.what_if("pi0=0.5")
    return float(frame["total_j"].sum()) + (answer.change_j or 0.0)

def gate(old: eprof.Profile, new: eprof.Energy) -> bool:
    difference: eprof.Difference = eprof.diff(old, [new], fail_above=["2%"])
    return all(outcome.failed is False for outcome in difference.gates)

def again() -> eprof.Profile:
    try:
        return eprof.run(["./fmm", "N=65536"])
    except eprof.EprofError as err:
        raise SystemExit(str(err)) from err
"""


def test_types_serve_a_users_strict_mypy(wheel, tmp_path):
    """Against an installed wheel, as users have it; what is wrong in a user's file is seen."""
    pytest.importorskip("mypy")
    venv.create(tmp_path / "venv", system_site_packages=False, with_pip=False)
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text("import eprof\nprofile: int = eprof.load(3)\neprof.lod('x')\n")
    # What mypy found of other packages when it checked this checkout, with the same options, is not found again.
    if (ROOT / ".mypy_cache").exists():
        shutil.copytree(ROOT / ".mypy_cache", tmp_path / "cache")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(tmp_path / "cache"),
        "--python-executable",
        str(tmp_path / "venv" / "bin" / "python"),
    ]
    done = subprocess.run([*command, "user.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert {line.partition(":")[0] for line in lines[:-1]} == {"wrong.py"}, done.stdout + done.stderr
    assert sum("error:" in line for line in lines) == 3


def test_the_version_is_said_once():
    done = subprocess.run(
        [sys.executable, "-m", "eprof", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    import eprof

    assert done.stdout == f"eprof {eprof.__version__}\n"
    assert json.dumps(eprof.__version__) not in (ROOT / "pyproject.toml").read_text()
