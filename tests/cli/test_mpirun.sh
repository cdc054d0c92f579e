#!/bin/sh
# `mpirun -n K orrery search`, `campaign`, `sweep`, `plan` and `jobs` print what one process prints, apart from the seconds. When
# one of them dies, the others say what they had. Skipped (77) without mpirun or without the module that CMake builds where it
# finds MPI.
# usage: test_mpirun.sh ORRERY SCENARIOS
set -eu
orrery=$1
scenario=$2/examples/gpt3-175b.json
plans=$2
weeks=$2/examples/campaign-llama3-405b.json
command -v mpirun >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

search() {
  "$@" "$orrery" search "$scenario" --set parallel.tensor=auto --set parallel.pipeline=auto --set parallel.data=auto \
    --set parallel.zero=auto --set training.micro_batch=auto --set training.recompute=auto --format json --quiet
}

campaign() {
  "$@" "$orrery" campaign "$weeks" --replicas 101 --seed 7 --format json --quiet
}

sweep() {
  "$@" "$orrery" sweep "$scenario" --vary training.micro_batch=1,2,7 --vary parallel.zero=0,1 --format csv --quiet
}

plan() {
  "$@" "$orrery" plan "$plans/examples/plan-sc21-175b.json" --gpus 512,1024 --set parallel.tensor=auto \
    --set parallel.pipeline=auto --set parallel.data=auto --format csv --quiet
}

jobs() {
  "$@" "$orrery" jobs --seed 1 --count 500 --format json --quiet
}

if [ ! -f "$(dirname "$orrery")/orrery_mpi.so" ]; then
  # A build without MPI says so instead of doing everything twice.
  if OMPI_COMM_WORLD_SIZE=2 "$orrery" search "$scenario" --set parallel.tensor=auto 2>"$folder/error"; then exit 1; fi
  grep -q "this build has no MPI" "$folder/error"
  if OMPI_COMM_WORLD_SIZE=2 "$orrery" campaign "$weeks" 2>"$folder/error"; then exit 1; fi
  grep -q "this build has no MPI" "$folder/error"
  if sweep env OMPI_COMM_WORLD_SIZE=2 2>"$folder/error"; then exit 1; fi
  grep -q "this build has no MPI" "$folder/error"
  if plan env OMPI_COMM_WORLD_SIZE=2 2>"$folder/error"; then exit 1; fi
  grep -q "this build has no MPI" "$folder/error"
  exit 77
fi
mpirun -n 1 true 2>/dev/null || exit 77
search env | grep -v '"seconds"' >"$folder/alone"
grep -q '"proved": true' "$folder/alone"
for ranks in 1 2 3 8; do
  search mpirun -n "$ranks" | grep -v '"seconds"' >"$folder/team"
  cmp "$folder/alone" "$folder/team"
done
campaign env >"$folder/alone"
grep -q '"replicas": 101' "$folder/alone"
for ranks in 1 2 4 8; do
  campaign mpirun -n "$ranks" >"$folder/team"
  cmp "$folder/alone" "$folder/team"
done
for command in sweep plan jobs; do
  $command env >"$folder/alone"
  for ranks in 1 2 4 8; do
    $command mpirun -n "$ranks" >"$folder/team"
    cmp "$folder/alone" "$folder/team"
  done
done
# A scenario that is refused is refused once, and all processes end.
if mpirun -n 2 "$orrery" campaign "$weeks" --set faults.gpu_mtbf_s=-1 2>"$folder/error"; then exit 1; fi
[ "$(grep -c "gpu_mtbf_s" "$folder/error")" -eq 1 ]
# One that dies: the others say what they had, and the same command goes on from the journal, with any number of processes.
long() {
  "$@" "$orrery" sweep "$scenario" --vary parallel.zero=0,1 --vary training.micro_batch=1,2,4,8 --vary \
    cluster.accelerator.memory_bytes="$(seq -s, 80000000000 1000000000 140000000000)" --format csv --quiet --jobs 1 \
    ${journal:+--journal "$journal"}
}
long env >"$folder/alone"
journal=$folder/journal
long exec mpirun -n 3 >"$folder/team" 2>"$folder/error" &
mpirun=$!
until [ -s "$journal/rows-000002.jsonl" ]; do sleep 0.1; done
kill -9 "$(ps -o pid= --ppid $mpirun | head -1)"
if wait $mpirun; then exit 1; fi
said=$(grep -c 'of 3 ends because another one died: .* % of its part of the sweep was done, and the same' "$folder/error")
[ "$said" -eq 2 ]
long mpirun -n 2 >"$folder/team"
cmp "$folder/alone" "$folder/team"
