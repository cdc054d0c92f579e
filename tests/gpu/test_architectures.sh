#!/bin/sh
# Every .cu was compiled for each architecture that the program is for: each object holds code for it. Nothing is run.
#
#   test_architectures.sh CUOBJDUMP FOLDER ARCHITECTURE...      FOLDER holds the objects; ARCHITECTURE: 80-real, 100
set -eu
cuobjdump=$1
folder=$2
shift 2
count=0
for object in $(find "$folder" -path '*orrery_kernels.dir/kernels/*.cu.o'); do
    count=$((count + 1))
    code=$("$cuobjdump" --list-elf "$object" 2>&1)
    for architecture in "$@"; do
        case $code in
        *sm_"${architecture%%-*}".cubin* | *sm_"${architecture%%-*}"a.cubin*) ;;
        *"does not contain device code"*) ;;
        *) echo "$object holds no code for sm_${architecture%%-*}: $code" && exit 1 ;;
        esac
    done
done
[ $count -ge 10 ] || { echo "$count objects in $folder" && exit 1; }
echo "$count objects for $*"
