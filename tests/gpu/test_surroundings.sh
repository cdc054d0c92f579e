#!/bin/sh
# orrery-calibrate where it cannot measure: one clear sentence on stderr, exit status 2, nothing on stdout, no files.
# With a GPU: every kernel at small size against the CPU.
#
#   test_surroundings.sh PROGRAM
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

expect() { # words in the sentence, then the command
    words=$1
    shift
    status=0
    "$@" >out 2>err || status=$?
    if [ $status -ne 2 ] || [ -s out ] || [ "$(wc -l <err)" -ne 1 ] || ! grep -q "$words" err; then
        echo "$*: status $status, wanted 2 and a sentence with \"$words\"; said:"
        cat out err
        exit 1
    fi
}

expect "is not an option" "$program" --nonsense
expect "lacks its value" "$program" --output
expect "exclude each other" "$program" --quick --full
"$program" --help >out
grep -q "usage: orrery-calibrate" out
# No GPU is what CUDA sees when none is made visible to it, whatever the machine holds.
expect "no NVIDIA GPU" env CUDA_VISIBLE_DEVICES= "$program" --output table.json
[ ! -e table.json ] && [ ! -e table.json.journal ]

if "$program" --list >points 2>err; then
    "$program" --check --busy
else
    echo "no GPU here: the kernels were compiled, not run"
fi
