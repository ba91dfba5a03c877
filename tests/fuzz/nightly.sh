#!/bin/sh
# Every reader for a night, on all cores: half of the time at random, half guided by coverage (where atheris is installed).
#
#     sh tests/fuzz/nightly.sh [SECONDS] [TOTALS.json]
#
# Ends with 1 if there is a new file in tests/fuzz/findings. Inputs go on from where TOTALS.json says that the last night
# ended (in ~/.cache/eprof-fuzz if it is not named); PYTHON names the interpreter, CORPUS the folder in which guided inputs
# are kept from night to night.
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python}
seconds=${1:-28800}
home=${XDG_CACHE_HOME:-$HOME/.cache}/eprof-fuzz
totals=${2:-$home/totals.json}
corpus=${CORPUS:-$home/corpus}
cores=$(nproc 2>/dev/null || echo 1)
mkdir -p "$home"
before=$(find "$here/findings" -type f | sort)

at_random() { # SECONDS
    for core in $(seq "$cores"); do
        "$python" "$here/run.py" all --share "$core/$cores" --inputs 1000000000 --seconds "$1" --totals "$totals" &
    done
    wait
}

guided() { # SECONDS of each target
    for core in $(seq "$cores"); do
        "$python" "$here/run.py" --list | awk "NR % $cores == $core - 1" | while read -r target; do
            CORPUS=$corpus/$target "$python" "$here/guided.py" "$target" --totals "$totals" \
                -max_total_time="$1" -verbosity=0 </dev/null 2>&1 | grep -aE "^($target |Traceback|[A-Za-z]*Error)" # what it found
        done &
    done
    wait
}

if "$python" -c 'import atheris' 2>/dev/null; then
    at_random $((seconds / 2))
    each=$((seconds * cores / 2 / $("$python" "$here/run.py" --list | wc -l)))
    guided $((each > 0 ? each : 1))
else
    echo "atheris is not there (pip install atheris), so nothing is guided by coverage" >&2
    at_random "$seconds"
fi

"$python" "$here/run.py" --told --totals "$totals"
after=$(find "$here/findings" -type f | sort)
if [ "$before" != "$after" ]; then
    echo "new findings:"
    echo "$after" | while read -r one; do echo "$before" | grep -qxF "$one" || echo "$one"; done
    exit 1
fi
