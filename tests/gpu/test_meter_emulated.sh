#!/bin/sh
# The whole of orrery-calibrate over the emulation: points of every kind are measured (the times say nothing), answers are
# right, what does not fit is skipped, surroundings are told.
#
#   test_meter_emulated.sh PROGRAM NCCL CUBLAS
set -eu
program=$1
ORRERY_NCCL=$2
ORRERY_NVML=none
ORRERY_CUBLAS=$3
export ORRERY_NCCL ORRERY_NVML ORRERY_CUBLAS
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "$*"
    cat out err 2>/dev/null || true
    exit 1
}

# Text in the points' names, text that the table must hold, how often at least.
expect() {
    rm -f table.json
    "$program" --only "$1" --seconds 0.02 --output table.json --quiet >out 2>err || fail "--only \"$1\" failed"
    found=$(grep -c -e "$2" table.json || true)
    [ "$found" -ge "$3" ] || { cat table.json && fail "--only \"$1\": \"$2\" $found times, wanted $3"; }
    ! grep -q '"correct": false' table.json || { cat table.json && fail "--only \"$1\": a wrong answer"; }
}
for op in all_reduce all_gather reduce_scatter alltoall broadcast reduce send_recv; do
    expect "$op 4 gpus 1024" '"correct": true' 1
done
expect "all_gather 4 gpus" '"busbw_gbps"' 3
expect "rms_norm 64x4096" '"correct": true' 1
expect "rms_norm 64x4096" '"memory_bound_measurements"' 1
expect "launch" '"latency_measurements"' 1
expect "launch" '"time_us"' 2
expect "stream_wait" '"time_us"' 1
expect "h2d_pinned 65536" '"gbps"' 1
expect "d2h_pageable 65536" '"gbps"' 1
expect "both_pinned 65536" '"gbps"' 1
expect "both_pageable 65536" '"gbps"' 1
expect "device_to_device 65536" '"gbps"' 1
expect "peer_to_peer 65536" '"gbps"' 1
expect "peer_to_peer_both 65536" '"gbps"' 1
expect "gemm bf16 TN 4096x16384x4096" 'GiB of GPU memory' 1
expect "h2d_pinned 268435456" 'out of memory at this size' 1
expect "gemm_beside_d2h" 'out of memory at this size' 1
grep -q '"device": "Emulated GPU"' table.json || fail "no stamp"
grep -q '"nccl": "2.29.7"' table.json || fail "no version of NCCL"

# What is not a GPU's alone: a process is started for each GPU, none where there is one GPU, and then no collective either.
expect "all_reduce 4 gpus 1024" '"busbw_gbps"' 1
! grep -q '"ranks_per_process"' table.json || fail "one process enqueued for all GPUs"
EMULATE_GPUS=1 "$program" --list >out 2>err && ! grep -q -e "all_reduce" -e "alltoall" out || fail "one GPU, and collectives"

# A product that cannot be launched is skipped; the sweep goes on. A GPU that no longer answers ends it.
EMULATE_FAIL_WIDTH=128 "$program" --only "gemm bf16 TN 128x" --seconds 0.02 --output failed.json --quiet >out 2>err ||
    fail "one failed product ended the sweep"
grep -q 'a product failed with status 13' failed.json || fail "the failed product is not told"
status=0
EMULATE_STUCK=1 EMULATE_FAIL_WIDTH=128 "$program" --only "gemm bf16 TN 128x" --seconds 0.02 --output stuck.json --quiet \
    >out 2>err || status=$?
[ $status -eq 2 ] && grep -q '"broken"' stuck.json.journal || fail "a stuck GPU did not end the sweep"

# Short kernels are timed in a graph: a pair of events would add half a millisecond here.
pair_us=500
EMULATE_FASTER=1000 EMULATE_EVENT_US=$pair_us "$program" --only "rms_norm 64x4096" --seconds 0.02 --output pairs.json \
    --quiet >out 2>err || fail "pairs"
! grep -q '"timing": "graph"' pairs.json || fail "a long kernel in a graph"
EMULATE_FASTER=100000 EMULATE_EVENT_US=20 "$program" --only "rms_norm 64x4096" --seconds 0.001 --output graph.json --quiet \
    >out 2>err || fail "graph"
[ "$(grep -c '"timing": "graph"' graph.json)" -ge 1 ] || fail "a short kernel was timed by pairs of events"
sed -n 's/.*"time_us": \([0-9.]*\).*/\1/p' graph.json | awk '$1 >= 20 { exit 1 }' || fail "the events' time is still there"

refuse() { # text, then variables
    text=$1
    shift
    status=0
    env "$@" "$program" --busy --output none.json >out 2>err || status=$?
    [ $status -eq 2 ] && grep -q "$text" err && [ ! -e none.json ] || fail "$*: status $status, wanted \"$text\""
}
refuse "no NVIDIA GPU" EMULATE_GPUS=0 EMULATE_ERROR=100
refuse "driver is too old: it knows CUDA 12.2, this program is built with 13.0" EMULATE_ERROR=35 EMULATE_DRIVER=12020
refuse "no NVIDIA GPU" EMULATE_ERROR=35 EMULATE_DRIVER=0
refuse "compute capability 7.0; 8.0 or later" EMULATE_CHIP=70

"$program" --check --only grouped_gemm_one_call >out 2>err && [ "$(grep -c '^ok' out)" -eq 3 ] || fail "experts in one call"
ORRERY_CUBLAS=libnone.so
"$program" --check --only grouped_gemm_one_call >out 2>err || fail "experts without cuBLAS"
[ "$(grep -c '^skip.*cuBLAS.*is not on this machine' out)" -eq 3 ] || fail "experts without cuBLAS: not told"
ORRERY_NCCL=libnone.so
expect "all_reduce" 'libnone.so is not on this machine' 1
