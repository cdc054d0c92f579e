#!/bin/sh
# ablate.sh ORRERY [MEASUREMENTS...] - what each key of a framework's recipe does to the published runs.
#
# One key after the other is set to its default in every row; printed are how many rows' step times move by 0.1 % or more,
# and by how much at most. A key that moves no row has to be held by a test, or goes.
set -eu

orrery=${1:?usage: ablate.sh ORRERY [MEASUREMENTS...]}
shift
root=$(cd "$(dirname "$0")/../.." && pwd -P)
[ $# -gt 0 ] || set -- "$root"/scenarios/measurements/*.json "$root"/scenarios/blind/*.json
base=$(mktemp)
rows=$(mktemp)
trap 'rm -f "$base" "$rows"' EXIT INT TERM

# "group.key default" of every key that has one.
keys() {
    for group in kernels host data_parallel tensor context experts pipeline optimizer loss allocator defaults; do
        "$orrery" help "execution.framework.$group" | awk -v group="$group" '
            /^  [a-z0-9_]+$/ { key = $1 }
            key != "" && match($0, /default: [^ ]+$/) { print group "." key, substr($0, RSTART + 9); key = "" }'
    done
}

"$orrery" validate "$@" --rows --format csv --quiet >"$base"
printf '%-44s %-10s %5s  %s\n' key "set to" rows most
keys | while read -r key default; do
    "$orrery" validate "$@" --rows --format csv --quiet --set "execution.framework.$key=$default" >"$rows"
    awk -F, -v key="$key" -v default="$default" '
        NR == FNR { was[$1 "," $2] = $5; next }
        FNR > 1 && was[$1 "," $2] > 0 && $5 > 0 {
            moved = $5 / was[$1 "," $2] - 1
            moved = moved < 0 ? -moved : moved
            if (moved >= 0.001) count++
            if (moved > most) most = moved
        }
        END { printf "%-44s %-10s %5d  %.1f %%\n", key, default, count, 100 * most }' "$base" "$rows"
done
