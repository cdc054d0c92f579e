#!/bin/sh
# `mpirun -n K orrery search` prints what one process prints, apart from the seconds. Skipped (77) without mpirun or
# without the module that CMake builds where it finds MPI.
# usage: test_mpirun.sh ORRERY SCENARIOS
set -eu
orrery=$1
scenario=$2/examples/gpt3-175b.json
command -v mpirun >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

search() {
  "$@" "$orrery" search "$scenario" --set parallel.tensor=auto --set parallel.pipeline=auto --set parallel.data=auto \
    --set parallel.zero=auto --set training.micro_batch=auto --set training.recompute=auto --format json --quiet
}

if [ ! -f "$(dirname "$orrery")/orrery_mpi.so" ]; then
  # A build without MPI says so instead of searching twice.
  if OMPI_COMM_WORLD_SIZE=2 "$orrery" search "$scenario" --set parallel.tensor=auto 2>"$folder/error"; then exit 1; fi
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
