#!/bin/sh
# tests/fuzz/run.sh BUILD SECONDS [NAME...] - runs each fuzzer of BUILD (preset fuzz) for SECONDS, or those named, and
# prints a line a door: how often it was entered, how many inputs were new, what was found. Exit 1: something was found.
#
# What grows is kept in BUILD/corpus/NAME, which begins with tests/fuzz/corpus/NAME.tar.xz, so that a later run goes on
# from there; an input that breaks something lies beside BUILD/NAME.log as BUILD/NAME-crash-*, -timeout-*, -leak-* or
# -oom-*.
set -u

[ $# -ge 2 ] || {
    echo "usage: $0 BUILD SECONDS [NAME...]" >&2
    exit 2
}
build=$(cd "$1" && pwd -P) || exit 2
seconds=$2
shift 2
case $seconds in '' | *[!0-9]*)
    echo "$0: \"$seconds\" is not a number of seconds" >&2
    exit 2
    ;;
esac
tests=$(cd "$(dirname "$0")" && pwd -P)
scenarios=$(cd "$tests/../../scenarios" && pwd -P)
[ $# -gt 0 ] || set -- $(cd "$build/tests/fuzz" && ls | grep '^fuzz_[a-z]*$')

status=0
for name in "$@"; do
    corpus=$build/corpus/$name
    log=$build/$name.log
    words=$tests/dictionaries/$name.dict
    [ -f "$words" ] || words=
    if [ ! -d "$corpus" ] && [ -f "$tests/corpus/$name.tar.xz" ]; then
        mkdir -p "$corpus" && tar -C "$corpus" -xJf "$tests/corpus/$name.tar.xz"
    fi
    mkdir -p "$corpus" "$build/scratch/$name"
    TMPDIR=$build/scratch/$name ORRERY_SCENARIOS=$scenarios "$build/tests/fuzz/$name" -max_total_time="$seconds" \
        -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 "-artifact_prefix=$build/$name-" \
        ${words:+"-dict=$words"} "$corpus" "$tests/seeds/$name" >"$log" 2>&1
    found=$?
    runs=$(awk '/executed_units/ { runs = $2 } END { print runs + 0 }' "$log")
    new=$(awk '/new_units_added/ { new = $2 } END { print new + 0 }' "$log")
    covered=$(awk '{ for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) } END { print cov + 0 }' "$log")
    said="nothing found"
    if [ "$found" -ne 0 ]; then
        said="FOUND: $(grep -m 1 -E 'ERROR: |runtime error|Assertion' "$log" | cut -c 1-120); $log"
        status=1
    fi
    printf '%-16s %9d runs, %6d new inputs, %6d edges covered in %d s: %s\n' \
        "$name" "$runs" "$new" "$covered" "$seconds" "$said"
    rm -rf "$build/scratch/$name"
done
exit $status
