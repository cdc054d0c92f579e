#!/bin/sh
# `mpirun -n K orrery search`, `campaign`, `sweep` and `plan` print what one process prints, apart from the seconds. Skipped (77)
# without mpirun or without the module that CMake builds where it finds MPI.
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
for ranks in 1 2 3 4; do
  search mpirun -n "$ranks" | grep -v '"seconds"' >"$folder/team"
  cmp "$folder/alone" "$folder/team"
done
campaign env >"$folder/alone"
grep -q '"replicas": 101' "$folder/alone"
for ranks in 1 2 3; do
  campaign mpirun -n "$ranks" >"$folder/team"
  cmp "$folder/alone" "$folder/team"
done
for command in sweep plan; do
  $command env >"$folder/alone"
  for ranks in 1 2 3; do
    $command mpirun -n "$ranks" >"$folder/team"
    cmp "$folder/alone" "$folder/team"
  done
done
# A scenario that is refused is refused once, and all processes end.
if mpirun -n 2 "$orrery" campaign "$weeks" --set faults.gpu_mtbf_s=-1 2>"$folder/error"; then exit 1; fi
[ "$(grep -c "gpu_mtbf_s" "$folder/error")" -eq 1 ]
