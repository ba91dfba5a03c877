"""What code and documents refer to is there."""

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from eprof.cli import dispatch

ROOT = Path(__file__).parents[2]
CODE = [
    path for folder in ("eprof", "tests", "samples", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))
]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
DOCUMENT = re.compile(r"(?<![\w*/.-])([\w./-]+\.md)\b(?:,\s+\"([^\"]+)\")?")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def remarks(text):
    """The comments and docstrings of a file of Python: comments only where one may name a document."""
    if re.search(r"#.*\.md", text):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node, clean=False) or ""


def missing(remark):
    """The documents, and the headings in them, that a remark cites and a reader does not find."""
    for name, heading in DOCUMENT.findall(remark):
        document = ROOT / name
        if not document.is_file():
            yield name
        elif heading and not re.search(rf"^#+ {re.escape(heading)}", document.read_text(), re.MULTILINE):
            yield f"{name}, {heading}"


def test_documents_that_code_cites_are_there():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in CODE}
    cited = {
        (name, document)
        for name, text in texts.items()
        if ".md" in text
        for remark in remarks(text)
        for document in missing(remark)
    }
    assert cited == set()


def test_a_document_that_is_not_there_is_seen():
    assert list(missing("See counters.md 5.1, and docs/fit.md.")) == ["counters.md"]
    assert list(missing('See docs/fit.md, "Bad input".')) == []
    assert list(missing('See docs/fit.md, "Good input".')) == ["docs/fit.md, Good input"]


def test_links_lead_to_files_that_are_there():
    links = {(path, target) for path in PAGES for target in LINK.findall(path.read_text())}
    assert {(path, target) for path, target in links if not (path.parent / target).exists()} == set()


def test_the_page_of_the_command_line_lists_every_command():
    page = (ROOT / "docs" / "cli.md").read_text()
    assert [name for name in dispatch.names() if not re.search(rf"^    eprof {name}\b", page, re.MULTILINE)] == []


def test_the_site_is_built_strictly(tmp_path):
    """Every link and anchor of every page leads somewhere, and every page has its place."""
    pytest.importorskip("material", reason="needs mkdocs-material (pip install 'eprof[docs]')")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
