#!/bin/sh
# What a user waits for: wall time of `orrery run`, process start to exit, and its memory, beside the goals.
# Run by `./dev bench`, which sets ORRERY_BUILD (a release build) and ORRERY_SCENARIOS. Exit 1 when a goal is
# missed.
set -eu
orrery=$ORRERY_BUILD/orrery
timeit=$ORRERY_BUILD/tests/timeit
examples=$ORRERY_SCENARIOS/examples
missed=0

# name, runs, goal in seconds, goal in bytes, arguments of `orrery $command`
row() {
    name=$1 runs=$2 goal_s=$3 goal_bytes=$4
    shift 4
    measured=$("$timeit" "$runs" "$orrery" "$command" "$@") || { missed=1 && return; }
    echo "$measured" | awk -v name="$name" -v runs="$runs" -v goal_s="$goal_s" -v goal_bytes="$goal_bytes" '
        function text_s(s) { return s < 1 ? sprintf("%.1f ms", s * 1e3) : sprintf("%.2f s", s) }
        {
            ok = $1 <= goal_s && $2 <= goal_bytes
            printf "%-34s %4d %10s %10s %9.1f MiB %9.1f MiB  %s\n", name, runs, text_s($1), text_s(goal_s),
                $2 / 1048576, goal_bytes / 1048576, ok ? "met" : "MISSED"
            exit !ok
        }' || missed=1
}

command=run
printf '%-34s %4s %10s %10s %13s %13s\n' 'orrery run' runs median goal 'max memory' goal
command=--version
row 'the program alone' 40 0.003 33554432
command=run
row 'gpt2-xl-1gpu' 40 0.006 33554432 "$examples/gpt2-xl-1gpu.json"
row 'gpt3-175b' 40 0.010 33554432 "$examples/gpt3-175b.json"
row 'llama3-405b-16k' 40 0.012 33554432 "$examples/llama3-405b-16k.json"
row 'llama3-405b-16k --unfold' 3 30 4294967296 "$examples/llama3-405b-16k.json" --unfold
row 'llama3-405b-1m --unfold' 1 30 1000000000 "$examples/llama3-405b-16k.json" --unfold --quiet \
    --set parallel.data=8192 --set training.global_batch=131072 --set cluster.nodes=131072
# A limit that is over while tables fill is kept: tables alone take longer.
command=search
row 'search deepseek-v3, 2 s' 1 3 4294967296 "$examples/search-deepseek-v3.json" --max-seconds 2 --quiet
row 'search mt-nlg-530b, 2 s' 1 3 4294967296 "$examples/search-mt-nlg-530b.json" --max-seconds 2 --quiet
exit $missed
