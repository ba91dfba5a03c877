#!/bin/sh
# Make .venv in the checkout and install eprof into it: `sh samples/setup.sh [EXTRAS]`, for example `dev`.
# Needs Python 3.11 or later with its venv module, and a package index that pip can reach. No root.
# `dev`, what CI and the tests use, is installed as requirements.lock has it: these versions with these hashes, wheels only.
set -eu
cd "$(dirname "$0")/.."

python=""
for one in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    [ -n "$one" ] && command -v "$one" >/dev/null 2>&1 || continue
    if "$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then python=$one; break; fi
done
if [ -z "$python" ]; then
    echo "eprof needs Python 3.11 or later; none was found (set PYTHON=/path/to/python3.11)." >&2
    exit 1
fi

if [ ! -x .venv/bin/pip ]; then
    rm -rf .venv
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        rm -rf .venv
        # Debian and Ubuntu split venv off into a package of its own.
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            apt-get update -qq && apt-get install -y -qq "python$version-venv" >/dev/null
            "$python" -m venv .venv
        else
            echo "Python's venv module is missing; install it with: sudo apt install python$version-venv" >&2
            exit 1
        fi
    fi
fi

install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }
if [ "${1:-}" = dev ]; then
    # Not compiled: most of what is installed is never imported, and the rest is compiled when it is.
    install --require-hashes --only-binary :all: --no-compile -r requirements.lock
    # The build backend is among what is locked, so nothing else is fetched to install eprof itself.
    install --no-deps --no-build-isolation -e .
else
    install -e ".${1:+[$1]}"
fi
