"""The page of a history in a real browser; skipped where there is none (see browser_support.py)."""

import pytest
from report_support import HOSTILE

from eprof.commands.history import page, words
from eprof.commands.history.document import Change, History, Kernel, Noise, Run
from eprof.show import html_page

PARTS = {"computation": 0.1, "data": 0.2, "constant": 0.7, "measured": None}


def run(number, energy, name):
    return Run(
        path=f"nightly/{name}",
        commit=f"{number:040x}"[::-1],
        changed=number % 2 == 0,
        time_utc=f"2026-11-{number % 28 + 1:02d}T02:00:00Z",
        time_from="run",
        device=name,
        costs="gtx680",
        eprof="0.1.0",
        time_s=0.1,
        energy_j={**PARTS, "total": energy},
        marks=["missing", "simulated"],
    )


def document(energies, names=("k",), **more):
    step = len(energies) // 2
    change = Change(
        kernel=None,
        run=step,
        before_j=1.0,
        after_j=2.0,
        change_share=1.0,
        runs_before=step,
        runs_after=len(energies) - step,
        p=1e-9,
        because="data",
        because_j=0.9,
        also=["prices"],
    )
    return History(
        eprof="0.1.0",
        title=names[0],
        created_utc="2026-11-23T00:00:00Z",
        command_line=["eprof", "history", names[0]],
        level=0.01,
        runs=[run(number, energy, names[number % len(names)]) for number, energy in enumerate(energies)],
        noise=Noise(share=0.01, commits=1, runs=2),
        changes=[change] if len(energies) > 3 else [],
        kernels=[Kernel(name=name, energy_j=[None, *energies[1:]]) for name in names],
        warnings=[*names],
        **more,
    )


CASES = {
    "steps": lambda: document([1.0, 1.1, 1.0, 2.0, 2.1, 2.0]),
    "hostile": lambda: document([1.0, 1.0, 2.0, 2.0], HOSTILE),
    "one": lambda: document([1.0]),
    "same": lambda: document([1.0, 1.0]),
    "many": lambda: document([1.0 + (number % 7) / 50 for number in range(25)] * 8, [f"kernel_{n}" for n in range(60)]),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("histories")
    for name, make in CASES.items():
        (folder / f"{name}.html").write_text(html_page.page(make(), words, page), encoding="utf-8")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_loads_clean_and_fits(opener, files, case):
    shown = opener(files / f"{case}.html", width=390, color_scheme="dark")
    shown.fits(390)
    shown.page.emulate_media(color_scheme="light")
    shown.fits(1180)
    assert shown.page.evaluate("window.hacked === undefined && document.images.length === 0")
    dots = shown.page.evaluate("document.querySelectorAll('#energy circle').length")
    assert dots == len(CASES[case]().runs)
    opener.close()
