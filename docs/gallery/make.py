"""Makes this gallery from the samples: python docs/gallery/make.py (needs playwright and chromium).

The logs are `samples/logs/invented`: numbers written by hand in nvprof's format, to show what a report looks like.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOGS = ["samples/logs/invented/tk1-fmm-counters.csv", "samples/logs/invented/tk1-fmm-times.csv"]
GROUPS = ["--group", "^(u|w|x)_list=near field", "--group", "^v_list=far field", "--group", "^(up|down)=tree"]
PAGES = {
    "report": ["report", *LOGS, "--costs", "jetson-tk1", *GROUPS],
    "roofline": ["roofline", *LOGS, "--costs", "jetson-tk1", "--setting", "852/924", "--setting", "396/204"],
    "jetsons": ["roofline", "--costs", "gtx680", "--costs", "jetson-tk1", "--equal-power"],
}
# Name of the picture -> its page, its theme, its width in pixels, the first and the last element in it.
PICTURES = {
    "report-light": ("report", "light", 1000, ".head", "#where"),
    "report-dark": ("report", "dark", 920, "#limits", "#clocks"),
    "report-phases": ("report", "light", 1000, "#phases", "#phases"),
    "report-phone": ("report", "light", 390, ".head", "#where"),
    "roofline-kernels": ("roofline", "light", 900, ".head", "section:nth-of-type(1)"),
    "roofline-equal-power": ("jetsons", "dark", 1000, ".head", "section:nth-of-type(1)"),
}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
LIMIT = 150_000


def main() -> None:
    """Build the pages in a scratch folder, photograph them, and write the terminal's answers."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, words in PAGES.items():
            eprof(*words, "-q", "-o", f"{scratch}/{name}.html")
        with sync_playwright() as playwright:
            chromium = os.environ.get("EPROF_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            for name in PICTURES:
                photograph(browser, Path(scratch), name)
            browser.close()
    answers = eprof(
        *PAGES["report"], "--what-if", "setting=396/924", "--what-if", "dram=-20%,pi0=0.5", "--format", "txt"
    )
    (HERE / "terminal.txt").write_text(answers, encoding="utf-8")
    lines = eprof("roofline", "--costs", "gtx580", "--costs", "i7-950", "--precision", "fp64", "--format", "txt")
    (HERE / "terminal-roofline.txt").write_text(lines, encoding="utf-8")


def eprof(*words: str) -> str:
    """Run a command in the root of the repository; its standard output."""
    command = [sys.executable, "-m", "eprof", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def photograph(browser: object, scratch: Path, name: str) -> None:
    """One picture, from the top of its first element to the bottom of its last."""
    page_name, scheme, width, first, last = PICTURES[name]
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[attr-defined]
    page.goto((scratch / f"{page_name}.html").as_uri())
    page.locator(":root[data-ready]").wait_for()
    start, end = page.locator(first).first.bounding_box(), page.locator(last).first.bounding_box()
    clip = {"x": 0, "y": start["y"], "width": width, "height": end["y"] + end["height"] + 12 - start["y"]}
    target = HERE / f"{name}.png"
    page.screenshot(path=target, full_page=True, clip=clip)
    page.close()
    size = target.stat().st_size
    if size > LIMIT:
        raise SystemExit(f"{target.name} has {size} bytes, more than {LIMIT}")


if __name__ == "__main__":
    main()
