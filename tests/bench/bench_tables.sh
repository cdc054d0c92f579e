#!/bin/sh
# What tables and traces cost: a trace of a million spans beside the same run without one, and a sweep of 1,000 points of
# GPT-3 175B, from the command line and from Python. A machine that is shared stretches wall time and not CPU time, so
# the time that counts is the lesser of the wall and the CPU time over the cores. Run by `./dev bench`, which sets
# ORRERY_BUILD (a release build) and ORRERY_SCENARIOS. Exit 1 when a goal is missed.
set -eu
orrery=$ORRERY_BUILD/orrery
example=$ORRERY_SCENARIOS/examples/gpt3-175b.json
source=$(cd "$(dirname "$0")/../.." && pwd)
cores=$(getconf _NPROCESSORS_ONLN)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missed=0

# Wall, user and system seconds and the largest resident bytes of a command, by Python where there is one.
command -v python3 >/dev/null || { echo "no python3 to measure with: skipped"; exit 0; }
measure() {
    python3 - "$@" << 'PYTHON'
import os, resource, subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
wall = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024
print(f"{wall:.3f} {used.ru_utime + used.ru_stime:.3f} {used.ru_maxrss * unit}")
PYTHON
}

# name, threads that it may use, goal in seconds, wall CPU bytes, goal in bytes ("-": none)
row() {
    echo "$4" | awk -v name="$1" -v threads="$2" -v goal_s="$3" -v goal_bytes="$5" '
        {
            s = $1 < $2 / threads ? $1 : $2 / threads
            ok = s <= goal_s && (goal_bytes == "-" || $3 <= goal_bytes)
            memory = goal_bytes == "-" ? "" : sprintf("%8.1f MB %8.1f MB", $3 / 1e6, goal_bytes / 1e6)
            printf "%-34s %8.2f s %8.2f s %8.2f s %8.2f s %23s  %s\n", name, $1, $2, s, goal_s, memory, ok ? "met" : "MISSED"
            exit !ok
        }' || missed=1
}

printf '%-34s %10s %10s %10s %10s %23s\n' "on $cores cores" wall CPU counts goal 'memory above, goal'

million="$example --unfold --set training.global_batch=3840 --quiet"
# shellcheck disable=SC2086
plain=$(measure "$orrery" run $million)
# shellcheck disable=SC2086
traced=$(measure "$orrery" run $million --trace "$work/trace.json")
spans=$(grep -c '"ph":"X"' "$work/trace.json")
rm "$work/trace.json"
row "trace of $spans spans" 1 2 "$(echo "$plain $traced" | awk '{ print $4 - $1, $5 - $2, $6 - $3 }')" 50e6

set -- parallel.tensor=1,2,4,8 parallel.pipeline=2,4,8,16,32 training.micro_batch=1,2,4,8,16 \
    training.recompute=selective,full training.global_batch=1536,3072,6144,12288,24576
vary=
for values in "$@"; do vary="$vary --vary $values"; done
# shellcheck disable=SC2086
row "orrery sweep, 1,000 points" "$cores" 3 \
    "$(measure "$orrery" sweep "$example" --set parallel.data=auto $vary --quiet --format csv)" -

cat > "$work/sweep.py" << 'PYTHON'
import sys
import orrery
vary = {key: [int(v) if v.isdigit() else v for v in values.split(",")]
        for key, _, values in (text.partition("=") for text in sys.argv[2:])}
assert len(orrery.sweep(sys.argv[1], vary, {"parallel.data": "auto"})) == 1000
PYTHON
if [ -e "$ORRERY_BUILD/liborrery.so" ]; then
    export ORRERY_LIBRARY="$ORRERY_BUILD/liborrery.so" PYTHONPATH="$source/python" PYTHONDONTWRITEBYTECODE=1
    row "orrery.sweep() of Python" "$cores" 3 "$(measure python3 "$work/sweep.py" "$example" "$@")" -
fi
exit $missed
