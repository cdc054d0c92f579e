#!/bin/sh
# Transformer Engine beside our own kernels, over the emulation: what works is measured in place of ours, what throws, is too
# old or is not there costs nothing but its own rows, and the fit takes the rows as those of their kind.
#
#   test_library_emulated.sh PROGRAM ORRERY ENGINE OLD THROWING
set -eu
program=$1 orrery=$2 engine=$3 old=$4 throwing=$5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ORRERY_CUDNN=none ORRERY_NCCL=none EMULATE_GPUS=1
export ORRERY_CUDNN ORRERY_NCCL EMULATE_GPUS

fail() {
    echo "$*"
    cat out err 2>/dev/null || true
    exit 1
}
list() { # library
    ORRERY_TRANSFORMER_ENGINE=$1 "$program" --list --full >out 2>err || fail "list with $1"
}
has() {
    grep -q "^$1 " out || fail "no point of $1"
}
lacks() {
    ! grep -q "^$1 " out || fail "a point of $1"
}

# All of it works: its kernels stand where ours stood, beside casts that we do not have.
list "$engine"
for name in te_rms_norm te_rms_norm_backward te_layer_norm te_swiglu te_swiglu_backward te_cast_fp8 te_cast_fp8_both te_cast_mxfp8 gelu; do
    has $name
done
for name in rms_norm layer_norm_backward swiglu cast_fp8; do lacks $name; done

# One kernel throws: it alone is ours, and that is said; those behind it are tried all the same.
list "$throwing"
has swiglu && lacks te_swiglu && has te_swiglu_backward && has te_rms_norm && has te_cast_mxfp8
grep -q "breaks off at te_swiglu: by our own" err || fail "nobody says what broke"

# Too old, or not there: our own kernels, with a reason.
list "$old"
lacks te_rms_norm && has rms_norm && lacks te_cast_mxfp8 && lacks cast_mxfp8
grep -q "Transformer Engine is older than 2.4" err || fail "nobody says that it is too old"
list "$folder/none.so"
has rms_norm && lacks te_swiglu
grep -q "ORRERY_TRANSFORMER_ENGINE names another file" err || fail "nobody says how to name the library"

# From pip its version is known; the table says it, and the fit takes its rows.
mkdir -p site/transformer_engine/wheel_lib site/transformer_engine_cu12-2.20.2.dist-info
cp "$engine" site/transformer_engine/wheel_lib/libtransformer_engine.so
ORRERY_TRANSFORMER_ENGINE=$folder/site/transformer_engine/wheel_lib/libtransformer_engine.so
export ORRERY_TRANSFORMER_ENGINE
"$program" --only "64x4096" --seconds 0.01 --output table.json --quiet >out 2>err || fail "sweep"
grep -q '"transformer_engine": "2.20.2"' table.json || fail "the stamp lacks its version"
grep -q '"kernel": "te_rms_norm"' table.json || fail "no row of its norm"
"$orrery" calibrate fit table.json --accelerator h200-sxm5-141gb --output profile.json >out 2>err || fail "fit"
"$orrery" calibrate check table.json --strict --accelerator h200-sxm5-141gb >out 2>err || ! grep -qi "te_" out err || fail "check"
"$program" --only te_ --check >out 2>err || fail "check of its kernels"
[ "$(grep -c "^ok " out)" -ge 9 ] && ! grep -q WRONG out || fail "its kernels are wrong"
echo "all as it should be"
