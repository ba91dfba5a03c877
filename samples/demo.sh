#!/bin/sh
# From nothing to an energy report of a real run: sets up .venv, runs the fast multipole method on the simulated device, and
# says where the report is. No GPU, no root. Arguments go to the program: `sh samples/demo.sh N=4096 Q=64`.
set -eu
cd "$(dirname "$0")/.."
sh samples/setup.sh simulator
PATH="$PWD/.venv/bin:$PATH"
export PATH
[ $# -gt 0 ] || set -- N=65536 Q=128
exec eprof run --costs jetson-tk1 samples/fmm/fmm -- "$@"
