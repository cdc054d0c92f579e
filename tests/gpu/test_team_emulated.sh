#!/bin/sh
# NCCL over nodes: several processes of orrery-calibrate on this machine, a rank each, over the emulation and its own NCCL,
# started as torchrun, srun and mpirun start them.
#
#   test_team_emulated.sh PROGRAM NCCL
set -eu
program=$1
ORRERY_NCCL=$2
ORRERY_NVML=none
ORRERY_PORT=$((10000 + $$ % 9000)) # below those that the system gives out
ORRERY_TIMEOUT=60
folder=$(mktemp -d)
TMPDIR=$folder
export ORRERY_NCCL ORRERY_NVML ORRERY_PORT ORRERY_TIMEOUT TMPDIR
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "$*"
    cat out.* err.* table.json 2>/dev/null || true
    exit 1
}

# team RANKS RANKS_A_NODE LAUNCHER [argument...]: exit statuses in $statuses.
team() {
    ranks=$1 each=$2 launcher=$3
    shift 3
    rm -f table.json table.json.journal out.* err.*
    ORRERY_PORT=$((ORRERY_PORT + 1))
    pids=
    for rank in $(seq 0 $((ranks - 1))); do
        node=$((rank / each)) local=$((rank % each))
        (
            ORRERY_NODE=node$node
            CUDA_VISIBLE_DEVICES=0,1,2,3
            export ORRERY_NODE CUDA_VISIBLE_DEVICES
            case $launcher in
            torchrun) export RANK=$rank WORLD_SIZE="$ranks" LOCAL_RANK=$local MASTER_ADDR=localhost MASTER_PORT=29500 ;;
            slurm) export SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS="$ranks" SLURM_LOCALID=$local SLURM_JOB_NODELIST=localhost ;;
            ompi)
                export OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE="$ranks" OMPI_COMM_WORLD_LOCAL_RANK=$local
                export OMPI_COMM_WORLD_LOCAL_SIZE="$each"
                ;;
            esac
            exec "$program" --output table.json --seconds 0.02 --quiet "$@" >out.$rank 2>err.$rank
        ) &
        pids="$pids $!"
    done
    statuses=
    for pid in $pids; do
        status=0
        wait "$pid" || status=$?
        statuses="$statuses $status"
    done
}

# Rows of table.json that hold a text.
rows() {
    grep -c -e "$1" table.json || true
}

for op in all_reduce all_gather reduce_scatter alltoall broadcast reduce send_recv; do
    team 4 2 torchrun --only "$op 2 nodes 4 gpus 1024"
    [ "$statuses" = " 0 0 0 0" ] || fail "$op: exit statuses$statuses"
    [ "$(rows '"correct": false')" -eq 0 ] && [ "$(rows '"op": "'$op'"')" -eq 1 ] || fail "$op: wrong, or no row"
done
[ "$(rows '"nodes": 2')" -ge 2 ] && [ "$(rows '"gpus": 4')" -ge 2 ] || fail "the table does not tell the nodes"

# All groups of a full sweep: inside one node, over both; small sizes only, more than a rank's box is skipped.
team 4 2 slurm --full --only "all_gather"
[ "$statuses" = " 0 0 0 0" ] || fail "slurm: exit statuses$statuses"
[ "$(rows '"op": "all_gather"')" -ge 10 ] && [ "$(rows '"correct": false')" -eq 0 ] || fail "slurm: rows"
grep -q '"gpus": 2' table.json || fail "slurm: no group inside a node"
team 3 3 ompi --only "all_reduce 1 nodes 3 gpus 16384"
[ "$statuses" = " 0 0 0" ] && [ "$(rows '"correct": true')" -eq 1 ] || fail "mpirun: exit statuses$statuses"

# A product beside a collective, on every rank, from one process that starts the others.
ORRERY_NCCL=$2 "$program" --only "alltoall 4 gpus 16384" --output table.json --seconds 0.02 --quiet >out.x 2>err.x ||
    fail "a process a GPU"
[ "$(rows '"correct": true')" -eq 1 ] && [ "$(rows '"gpus": 4')" -ge 1 ] || fail "a process a GPU: no row"

# A rank that hangs: the others give up within ORRERY_TIMEOUT, with a sentence.
EMULATE_HANG_RANK=1 EMULATE_WAIT_MS=300 ORRERY_TIMEOUT=2
export EMULATE_HANG_RANK EMULATE_WAIT_MS ORRERY_TIMEOUT
begin=$(date +%s)
ORRERY_PORT=$((ORRERY_PORT + 1))
pids=
for rank in 0 1; do
    ORRERY_NODE=node$rank RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=localhost "$program" --output hung.json \
        --only "all_reduce 2 nodes 2 gpus 1024" --seconds 0.02 --quiet >out.$rank 2>err.$rank &
    pids="$pids $!"
done
hung=${pids##* } first=${pids% *}
status=0
wait $first || status=$?
[ $status -eq 2 ] && [ $(($(date +%s) - begin)) -le 20 ] || fail "a rank that hangs: status $status"
grep -q -e "did not take part within 2 s" -e "a rank of the team is gone" err.0 || fail "a rank that hangs: no sentence"
kill -9 "$hung"
wait "$hung" 2>/dev/null || true
unset EMULATE_HANG_RANK EMULATE_WAIT_MS
ORRERY_TIMEOUT=60

# Buffers that do not fit on the GPUs are skipped by all ranks together.
team 2 1 torchrun --only "all_reduce 2 nodes 2 gpus 16777216"
[ "$statuses" = " 0 0" ] || fail "memory: exit statuses$statuses"

# A rank that never comes, ranks that are dealt out in turn, an environment that contradicts itself.
expect() { # text, then variables
    text=$1
    shift
    status=0
    env "$@" "$program" --output table.json --quiet >out.x 2>err.x || status=$?
    [ $status -eq 2 ] && grep -q "$text" err.x && [ "$(wc -l <err.x)" -eq 1 ] || fail "$*: status $status, wanted \"$text\""
}
expect "1 of 2 ranks did not reach rank 0" RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost ORRERY_TIMEOUT=1
expect "rank 1 cannot reach rank 0 at localhost" RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost ORRERY_TIMEOUT=1
expect "WORLD_SIZE=none; a number" RANK=0 WORLD_SIZE=none MASTER_ADDR=localhost
expect "nothing says where rank 0 is" RANK=0 WORLD_SIZE=2
expect "start a process a GPU" RANK=0 WORLD_SIZE=8 LOCAL_RANK=4 MASTER_ADDR=localhost CUDA_VISIBLE_DEVICES=0,1,2,3
(ORRERY_NODE=a RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost "$program" --quiet >out.1 2>err.1 || true) &
(ORRERY_NODE=b RANK=2 WORLD_SIZE=3 MASTER_ADDR=localhost "$program" --quiet >out.2 2>err.2 || true) &
expect "number a node's ranks one after another" ORRERY_NODE=b RANK=0 WORLD_SIZE=3 MASTER_ADDR=localhost
wait
grep -q "sent rank 1 away" err.1 || fail "rank 1 was told nothing"

# One process, several ranks on its GPU, where NCCL allows it.
export EMULATE_GPUS=1
rm -f table.json
EMULATE_NCCL=23003 NCCL_MULTI_RANK_GPU_ENABLE=1 "$program" --only "all_reduce 2 ranks on 1 gpu 1024" \
    --output table.json --quiet >out.s 2>err.s || fail "shared GPU failed"
[ "$(rows '"shared_gpu_measurements"')" -eq 1 ] && [ "$(rows '"correct": true')" -eq 1 ] || fail "shared GPU: no row"
EMULATE_NCCL=22907 NCCL_MULTI_RANK_GPU_ENABLE=1 "$program" --list --output table.json >out.s 2>err.s
! grep -q "on 1 gpu" out.s || fail "an older NCCL shares no GPU"
