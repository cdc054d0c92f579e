#!/bin/sh
# From a sweep of one GPU to a training step, over the emulation: measure, fit, run. The times say nothing; that each
# program reads what the one before it wrote is what is tested.
#
#   test_one_gpu_emulated.sh PROGRAM ORRERY NCCL SCENARIOS
set -eu
program=$1 orrery=$2
ORRERY_NCCL=$3
ORRERY_NVML=none
EMULATE_GPUS=1
export ORRERY_NCCL ORRERY_NVML EMULATE_GPUS
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "$*"
    cat out err 2>/dev/null || true
    exit 1
}
"$program" --only "64x4096" --seconds 0.01 --output table.json --quiet >out 2>err || fail "sweep"
! grep -q '"collective_measurements"' table.json || fail "one GPU, and collectives"
"$orrery" calibrate fit table.json --accelerator h200-sxm5-141gb --output profile.json >out 2>err || fail "fit"
"$orrery" run "$4/examples/gpt2-xl-1gpu.json" --set cluster.accelerator=h200-sxm5-141gb \
    --set cluster.calibration="$folder/profile.json" >out 2>err || fail "run"
grep -q "tokens/s\|step" out || fail "run printed no step"
