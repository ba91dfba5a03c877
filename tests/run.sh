#!/bin/sh
# Set up .venv with everything the tests need, then run them: linters, types, and the suite on all cores.
set -eu
cd "$(dirname "$0")/.."
# Container images set this; each process would compile pytest's plugins and the tests anew.
unset PYTHONDONTWRITEBYTECODE
sh samples/setup.sh dev
.venv/bin/ruff check eprof tests benchmarks
.venv/bin/ruff format --check eprof tests benchmarks
# In a fresh checkout the other core meanwhile compiles what the tests import: else each worker does.
[ -d tests/__pycache__ ] || .venv/bin/python -m pytest --collect-only >/dev/null 2>&1 &
.venv/bin/mypy
wait
# One worker more than cores: tests wait for browsers, programs and signals.
exec .venv/bin/python -m pytest -n "$(($(getconf _NPROCESSORS_ONLN) + 1))" "$@"
