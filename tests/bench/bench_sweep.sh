#!/bin/sh
# Sweeps of more and more points, with a journal: processor's seconds and memory a point, which must not grow; then the last one
# again, half of whose rows are gone, and whether its table is the same. Run by `./dev bench`, which sets ORRERY_BUILD and
# ORRERY_SCENARIOS.
#
#   bench_sweep.sh [POINTS]      of the largest sweep: 40000, or as many as 1000000
set -eu
orrery=$ORRERY_BUILD/orrery
points=${1:-40000}
scenario=$ORRERY_SCENARIOS/examples/gpt2-xl-1gpu.json
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# $1 values of each of three fields
list() { awk -v n="$1" -v first="$2" -v step="$3" 'BEGIN { for (i = 0; i < n; i++) printf "%s%.0f", i ? "," : "", first + i * step }'; }

sweep() {
    "$orrery" sweep "$scenario" --ideal --quiet --format csv --journal "$1" --output "$2" \
        --vary cluster.accelerator.memory_bytes="$(list "$x" 80e9 1e9)" \
        --vary cluster.accelerator.memory_bytes_per_s="$(list "$y" 1e12 1e10)" \
        --vary training.tokens="$(list "$z" 1e12 1e10)" ${w:+--vary cluster.usd_per_kwh="$w"}
}

measured() { # user + system seconds and bytes of the largest process
    /usr/bin/time -f '%U %S %M' -o "$folder/time" "$0" --one "$1" "$2" "$x" "$y" "$z" "$w"
    awk '{ print $1 + $2, $3 * 1024 }' "$folder/time"
}

if [ "${1:-}" = --one ]; then
    trap - EXIT
    rm -rf "$folder"
    x=$4 y=$5 z=$6 w=$7
    sweep "$2" "$3"
    exit
fi

w=
missed=0
printf '%-12s %10s %12s %12s %12s\n' points seconds 's a point' memory 'bytes a point'
first=
for count in $((points / 100)) $((points / 10)) "$points"; do
    x=$(awk -v n="$count" 'BEGIN { r = int(n ^ (1 / 3)); print (r < 1 ? 1 : r > 64 ? 64 : r) }')
    y=$x
    z=$(((count + x * y - 1) / (x * y)))
    if [ "$z" -gt 64 ]; then
        x=64 y=64 z=64 w=$(list $(((count + 262143) / 262144)) 1 1)
    fi
    rm -rf "$folder/journal"
    all=$((x * y * z * $(printf '%s,' "${w:-1}" | tr -cd , | wc -c)))
    measured "$folder/journal" "$folder/whole.csv" >"$folder/measured"
    awk -v n="$all" '{ printf "%-12d %10.1f %12.6f %8.1f MiB %12.0f\n", n, $1, $1 / n, $2 / 1048576, $2 / n }' "$folder/measured"
    each=$(awk -v n="$all" '{ print $1 / n }' "$folder/measured")
    first=${first:-$each}
done
# The smallest has what a process takes by itself in it.
awk -v a="$first" -v b="$each" 'BEGIN { exit !(b <= 1.3 * a) }' || { echo "MISSED: a point takes longer among many"; missed=1; }
head -n $((all / 2)) "$folder/journal/rows-000000.jsonl" >"$folder/half"
mv "$folder/half" "$folder/journal/rows-000000.jsonl"
measured "$folder/journal" "$folder/again.csv" >"$folder/measured"
awk '{ printf "half of it again %4.1f s, the same table: ", $1 }' "$folder/measured"
cmp -s "$folder/whole.csv" "$folder/again.csv" && echo yes || { echo "MISSED"; missed=1; }
exit $missed
