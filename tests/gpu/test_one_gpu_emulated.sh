#!/bin/sh
# From a sweep to a training step, over the emulation: measure, fit, check, run; one GPU, eight with a process each, two nodes.
# The times say nothing; that each program reads what the one before it wrote is what is tested.
#
#   test_one_gpu_emulated.sh PROGRAM ORRERY NCCL SCENARIOS NVML CUDNN
set -eu
program=$1 orrery=$2 scenarios=$4
ORRERY_NCCL=$3 ORRERY_NVML=$5 ORRERY_CUDNN=$6
ORRERY_PORT=$((20000 + $$ % 9000))
export ORRERY_NCCL ORRERY_NVML ORRERY_CUDNN ORRERY_PORT
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "$*"
    cat out err 2>/dev/null || true
    exit 1
}
sweep() { # table, GPUs, points
    EMULATE_GPUS=$2 "$program" --only "$3" --seconds 0.01 --output "$1" --quiet >out 2>err || fail "sweep of $3"
}
fit() { # table, profile, what the fit must say
    "$orrery" calibrate fit "$1" --accelerator h200-sxm5-141gb --output "$2" >out 2>err || fail "fit of $1"
    grep -q -e "$3" out err || fail "the fit of $1 does not say \"$3\""
}
step() { # scenario, profile
    "$orrery" run "$1" --set cluster.calibration="$2" --format json >out 2>err || fail "run of $1 with $2"
    sed -n 's/^ *"step_s": \([0-9.e-]*\).*/\1/p' out | head -n 1
}
cat >many.json <<'S'
{"model": "llama3-8b", "cluster": {"preset": "dgx-h200"}, "training": {"sequence_length": 4096, "global_batch": 16,
 "micro_batch": 1}, "parallel": {"data": 8, "zero": 2}, "offload": {"scheme": "zero-offload"}}
S

# One GPU: no collective, and a profile all the same.
sweep one.json 1 "64x4096"
! grep -q '"collective_measurements"' one.json || fail "one GPU, and collectives"
grep -q '"cudnn": "9.19.0"' one.json || fail "the stamp lacks cuDNN's version"
fit one.json one-profile.json "best measured"
"$orrery" calibrate check one.json --accelerator h200-sxm5-141gb >out 2>err || grep -q "no row" err || fail "check"
"$orrery" run "$scenarios/examples/gpt2-xl-1gpu.json" --set cluster.accelerator=h200-sxm5-141gb \
    --set cluster.calibration="$folder/one-profile.json" >out 2>err || fail "run"
grep -q "tokens/s\|step" out || fail "run printed no step"

# Two sweeps of one kind of GPU as one table; one sweep twice, and another's table, are told.
sweep again.json 1 "norm 64x4096"
sed -i 's/"host": "[^"]*"/"host": "another"/' again.json
"$orrery" calibrate merge one.json again.json --output merged.json >out 2>err || fail "merge"
[ "$(grep -c '"sweep": 1' merged.json)" -ge 1 ] && [ "$(grep -c '"kernel": "rms_norm"' merged.json)" -eq 2 ] || fail "merged rows"
fit merged.json merged-profile.json "best measured"
! "$orrery" calibrate merge one.json one.json >out 2>err && grep -q "is the same sweep as" err || fail "one sweep twice"
! "$orrery" calibrate merge one.json many.json >out 2>err && grep -q 'has no "stamp"' err || fail "a scenario as a table"

# Without cuDNN our own attention is measured: its rows say that they are a floor, and no fit takes them.
ORRERY_CUDNN=none EMULATE_GPUS=1 "$program" --list --full >out 2>err || fail "list"
grep -q "^flash_forward" out && ! grep -q "^cudnn_" out || fail "without cuDNN: no attention of our own"
EMULATE_GPUS=1 "$program" --list --full >out 2>err || fail "list"
grep -q "^cudnn_backward_fp8" out && ! grep -q "^flash_" out || fail "with cuDNN: our own attention"

# Eight GPUs, a process each: links and the host, and the step of an offloaded optimizer that follows from them.
sweep eight.json 8 "8 gpus 16384"
! grep -q '"ranks_per_process"' eight.json || fail "one process for eight GPUs"
sweep host.json 8 "pinned 67108864"
sweep both.json 4 "together_"
grep -q '"speed_spread_frac"' both.json && grep -q '"first_us"' both.json || fail "no spread between the chips"
[ "$(grep -c '"op": "together_' both.json)" -eq 5 ] || fail "not all that ranks do together"
fit eight.json eight-profile.json "collectives fitted to 7 of 7 rows"
"$orrery" calibrate check eight.json --accelerator h200-sxm5-141gb >out 2>err || fail "check of eight"
fit both.json host-profile.json "host memory"
plain=$(step many.json "")
warm=$(step many.json "$folder/host-profile.json")
[ -n "$plain" ] && [ -n "$warm" ] && [ "$plain" != "$warm" ] || fail "the profile's host does not reach the step: $plain, $warm"

# A display card beside two GPUs is none of them.
EMULATE_GPUS=3 EMULATE_UNLIKE=2 "$program" --list >out 2>err || fail "list beside another kind"
grep -q "2 gpus" out && ! grep -q "3 gpus" out && grep -q "GPU 2 is another kind (Emulated display)" err || fail "another kind"

# Two nodes of two GPUs.
pids=
for rank in 0 1 2 3; do
    ORRERY_NODE=node$((rank / 2)) RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) MASTER_ADDR=localhost CUDA_VISIBLE_DEVICES=0,1 \
        EMULATE_GPUS=2 "$program" --only "all_reduce" --seconds 0.01 --output nodes.json --quiet >out.$rank 2>err.$rank &
    pids="$pids $!"
done
for pid in $pids; do
    wait "$pid" || fail "two nodes: $(cat err.*)"
done
grep -q '"nodes": 2' nodes.json || fail "no row over two nodes"
"$orrery" calibrate fit nodes.json --accelerator h200-sxm5-141gb --cluster dgx-h200 --output nodes-profile.json >out 2>err ||
    fail "fit over nodes"
grep -q '"collectives"' nodes-profile.json || fail "the profile of two nodes holds no network"
step many.json "$folder/nodes-profile.json" >/dev/null
