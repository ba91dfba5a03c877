"""One browser (playwright with the system's Chromium) for all tests that look at pages; skipped where there is none."""

import os
import shutil
import time
from pathlib import Path

import pytest

# The same browser without windows, tabs and toolbars comes first: it takes half the processor time for a page.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = os.environ.get("EPROF_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # each takes half a second to start
]
N = "\u202f"
LISTEN = "addEventListener('securitypolicyviolation', e => console.error('CSP: ' + e.violatedDirective))"


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    if not CHROMIUM:
        pytest.skip("needs chromium on the PATH (or its path in EPROF_CHROMIUM)")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def contexts(browser):
    """Two for all tests, with script and without."""
    made = {scripts: browser.new_context(java_script_enabled=scripts) for scripts in (True, False)}
    for one in made.values():
        one.add_init_script(LISTEN)
    yield made
    for one in made.values():
        one.close()


@pytest.fixture(scope="session")
def opener(contexts):
    """Open a file in the one page that all tests share (a new one takes longer than most tests), or in a fresh one."""
    pages, open_now = {}, {}

    def show(path, fragment="", scripts=True, fresh=False, **options):
        close(scripts)
        if fresh or scripts not in pages:
            pages[scripts] = contexts[scripts].new_page()
        open_now[scripts] = View(pages[scripts], path, fragment, **options)
        return open_now[scripts].ready() if scripts else open_now[scripts]

    def close(*which):
        for one in which or list(open_now):
            if one in open_now:
                open_now.pop(one).close()

    show.close = close
    return show


class View:
    """What a page shows, and everything that goes wrong on it."""

    def __init__(self, page, path, fragment="", width=1180, color_scheme="light"):
        self.page, self.wrong = page, []
        self.file = Path(path).as_uri()
        self._windows = lambda other: self.wrong.append(f"window: {other.url}")
        page.context.on("page", self._windows)
        self._listeners = {
            "dialog": self._dialog,
            "console": lambda message: self.wrong.append(f"console: {message.text}"),
            "pageerror": lambda error: self.wrong.append(f"error: {error}"),
            "request": lambda request: self._request(request.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)
        # An empty page takes another size for nothing, and from it a fragment leads to another document.
        if (page.viewport_size or {}).get("width") != width or "#" in page.url + fragment:
            page.goto("about:blank")
        self.resize(width)
        page.emulate_media(media="screen", color_scheme=color_scheme)
        page.goto(self.file + fragment)

    def close(self):
        """Nothing may have gone wrong, and nothing is left for the next one."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.context.remove_listener("page", self._windows)
        self.page.evaluate("localStorage.clear()")
        self.page.mouse.move(0, 0)
        assert self.wrong == []

    def resize(self, width):
        """As wide as `width`: a tenth of a second, or none where it is so already."""
        if (self.page.viewport_size or {}).get("width") != width:
            self.page.set_viewport_size({"width": width, "height": 900})

    def fits(self, *widths):
        """Whether nothing is wider than the page, for all of `widths`."""
        for width in widths:
            self.resize(width)
            assert self.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width

    def _dialog(self, dialog):
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url):
        if url.partition("#")[0] != self.file:
            self.wrong.append(f"request: {url}")

    def until(self, script, seconds=300):
        """Poll `script` (never wait_for_function: that needs eval, which the policy forbids)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.page.evaluate(script)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not true within {seconds} s: {script}")

    def ready(self):
        self.until("document.documentElement.dataset.ready === '1'")
        return self

    def text(self, selector):
        return self.page.locator(selector).first.text_content().replace(N, " ")

    def column(self, at):
        rows = "[...document.querySelectorAll('#kernels-table tbody tr:not(.gap)')]"
        return self.page.evaluate(f"{rows}.map(row => row.children[{at}].textContent)")
