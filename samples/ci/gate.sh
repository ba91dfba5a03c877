#!/bin/sh
# Fail a pull request that makes the programs of a job list use more energy than the last release did (docs/ci.md).
#
#   sh samples/ci/gate.sh [JOBS]            profile every job, compare with its stored log; exit code 3 if one fails
#   sh samples/ci/gate.sh --store [JOBS]    profile every job and store its log: do this with a release
#
# JOBS (default: jobs.txt beside this script) has a line per job: NAME PROGRAM [ARG...], paths from the checkout. Logs are
# stored in baseline/ beside JOBS. No GPU: the programs run on the simulated device, whose counts repeat to the digit.
# LIMIT (2%), COSTS (jetson-tk1), CACHES (none: they need a compiler, which not every machine has), OUT (energy-gate/) and EPROF (eprof) may be set in the environment.
set -eu
store=no
if [ "${1:-}" = --store ]; then store=yes; shift; fi
root=$(cd "$(dirname "$0")/../.." && pwd)
jobs=${1:-$root/samples/ci/jobs.txt}
jobs=$(cd "$(dirname "$jobs")" && pwd)/$(basename "$jobs")
baseline=$(dirname "$jobs")/baseline
out=${OUT:-$PWD/energy-gate}
mkdir -p "$out" "$baseline"
cd "$root"

code=0
while read -r name program arguments; do
    case $name in '' | '#'*) continue ;; esac
    rm -rf "$out/$name.eprof"
    # shellcheck disable=SC2086  # EPROF and the arguments are words, several of them
    ${EPROF:-eprof} run --profiler oclgrind --caches "${CACHES:-none}" --costs "${COSTS:-jetson-tk1}" -q --no-report -o "$out/$name.eprof" \
        "$program" -- $arguments </dev/null >"$out/$name.out"
    if [ $store = yes ]; then
        # A log a process; their counts add up, so one behind the other is the log of all.
        cat "$out/$name.eprof"/logs/counters-1*.txt >"$baseline/$name.txt"
        echo "stored $name"
        continue
    fi
    if [ ! -f "$baseline/$name.txt" ]; then
        echo "energy gate: no stored log of $name; run samples/ci/gate.sh --store and commit $baseline" >&2
        exit 1
    fi
    result=0
    ${EPROF:-eprof} diff "$baseline/$name.txt" "$out/$name.eprof" --costs "${COSTS:-jetson-tk1}" \
        --fail-above "${LIMIT:-2%}" -q -f -o "$out/$name.md" -o "$out/$name.html" || result=$?
    cat "$out/$name.md"
    # A gate that could not be judged (1) must not hide behind one that failed (3), nor the other way round: keep the first.
    [ $code -ne 0 ] || code=$result
done <"$jobs"
exit $code
