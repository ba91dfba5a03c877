"""The lock file that CI installs from: it covers what pyproject asks for, with a hash for everything, and names no place."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
PLATFORMS = [{**LINUX, "platform_machine": machine} for machine in ("x86_64", "aarch64")]


def locked():
    """Name -> what is locked under it (several, for several Pythons), each a requirement and its hashes."""
    found = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text()):
        if not entry.startswith("#"):
            words = entry.partition("#")[0].replace("\\\n", " ")
            requirement, *hashes = re.split(r"\s+--hash=", words.strip())
            found.setdefault(name(Requirement(requirement)), []).append((Requirement(requirement), hashes))
    return found


def name(requirement):
    return re.sub(r"[-_.]+", "-", requirement.name).lower()


def asked(extras):
    """The requirements of the project with these extras, with those that its extras name of itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting, found = [*project["dependencies"], *(f"eprof[{extra}]" for extra in extras)], []
    while waiting:
        one = Requirement(waiting.pop())
        if name(one) != "eprof":
            found.append(one)
            continue
        for extra in one.extras:
            listed = map(Requirement, project["optional-dependencies"][extra])
            waiting += [
                f"{each} {'and' if each.marker else ';'} {one.marker}" if one.marker else str(each) for each in listed
            ]
    return found


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda one: one["platform_machine"])
@pytest.mark.parametrize("python", PYTHONS)
def test_it_covers_what_the_project_and_its_tests_need(python, platform):
    here = {"python_version": python, "python_full_version": f"{python}.0", "extra": "", **platform}
    lock, builds = (
        locked(),
        Requirement(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"][0]),
    )
    wanted = [one for one in [*asked(["dev"]), builds] if one.marker is None or one.marker.evaluate(here)]
    assert len(wanted) > 15
    for one in wanted:
        entries = [each for each, _ in lock.get(name(one), []) if each.marker is None or each.marker.evaluate(here)]
        assert len(entries) == 1, f"{one} is not in requirements.lock; run `sh .ci/lock`"
        version = next(iter(entries[0].specifier)).version
        assert one.specifier.contains(version, prereleases=True), f"{one}: {version} is locked; run `sh .ci/lock`"


def test_every_package_has_one_version_and_hashes_and_no_address():
    for entries in locked().values():
        for one, hashes in entries:
            assert one.url is None and [spec.operator for spec in one.specifier] == ["=="]
            assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), one
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", (ROOT / "requirements.lock").read_text())


def test_ci_installs_from_it_and_checks_the_hashes():
    assert "sh tests/run.sh" in (ROOT / ".ci" / "run").read_text()
    assert "sh samples/setup.sh dev" in (ROOT / "tests" / "run.sh").read_text()
    setup = (ROOT / "samples" / "setup.sh").read_text()
    of_dev = setup.partition('"${1:-}" = dev')[2].partition("\nelse")[0]
    installs = [line.split() for line in of_dev.splitlines() if line.strip().startswith("install ")]
    assert len(installs) == 2
    assert {"--require-hashes", "--only-binary", "requirements.lock"} <= set(installs[0])
    assert {"--no-deps", "--no-build-isolation"} <= set(installs[1])


def test_the_audit_does_not_take_silence_for_health():
    assert "--strict" in (ROOT / ".ci" / "audit").read_text()
