#!/bin/sh
# From nothing to an energy report of a real run: sets up .venv, runs a sample program under the simulated device and prints
# where the report is. No GPU, no root. Arguments go to the program: `sh samples/demo.sh N=2048`.
set -eu
cd "$(dirname "$0")/.."
sh samples/setup.sh simulator
PATH="$PWD/.venv/bin:$PATH"
export PATH
[ $# -gt 0 ] || set -- N=1024
exec eprof run --costs jetson-tk1 samples/nbody/nbody -- "$@"
