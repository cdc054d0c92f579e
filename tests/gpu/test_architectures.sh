#!/bin/sh
# Every .cu of kernels/ was compiled for each architecture that the program is for: its object names them all. Nothing is run.
#
#   test_architectures.sh FOLDER ARCHITECTURE...      FOLDER holds the objects; ARCHITECTURE: 80-real, 100
set -eu
folder=$1
shift
count=0
for object in $(find "$folder" -path '*orrery_kernels.dir/kernels/*.cu.o'); do
    count=$((count + 1))
    for architecture in "$@"; do
        grep -aq "sm_${architecture%%-*}" "$object" || { echo "$object: no sm_${architecture%%-*}" && exit 1; }
    done
done
[ $count -ge 10 ] || { echo "$count objects in $folder" && exit 1; }
echo "$count objects for $*"
