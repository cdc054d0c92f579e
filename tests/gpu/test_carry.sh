#!/bin/sh
# The program as it is carried to a bare node: what it needs is what docs/CALIBRATION.md says, and what came along is found
# beside it, from any folder.
#
#   test_carry.sh CMAKE BUILD
set -eu
cmake=$1
build=$2
command -v readelf >/dev/null && command -v ldd >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$cmake" --install "$build" --component carry --prefix "$folder/carried" >/dev/null
program=$folder/carried/bin/orrery-calibrate

fail() {
    echo "$*"
    readelf -d "$program" | grep -E 'NEEDED|RUNPATH' || true
    exit 1
}
needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in $needed; do
    case $library in
    libcublasLt.so.* | libcjson.so.1 | libm.so.* | libc.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux*) ;;
    *) fail "needs $library, which docs/CALIBRATION.md does not name" ;;
    esac
done
readelf -d "$program" | grep -q 'RUNPATH.*\[$ORIGIN:$ORIGIN/../lib\]' || fail "looks elsewhere than beside itself"
case $needed in
*libcjson*) ldd "$program" | grep -q "libcjson.so.1 => $folder/carried/" || fail "does not find the cJSON beside it" ;;
esac
(cd / && "$program" --help >/dev/null) || fail "does not start"
