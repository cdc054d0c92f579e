#!/bin/sh
# Every C and CUDA file is as clang-format leaves it. The layout of one version is not that of another, so the
# check runs with the version below and is skipped (exit 77) where that one is not installed. With --fix it changes
# the files instead.
set -eu
version=14
cd "$(dirname "$0")/.."

# Of every room; build folders and hidden ones hold no sources.
sources() {
    find . \( -name '.?*' -o -name 'build' \) -prune -o \
        \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0
}

for tool in "clang-format-$version" clang-format; do
    if command -v "$tool" >/dev/null && "$tool" --version | grep -q "version $version\."; then
        if [ "${1:-}" = --fix ]; then
            sources | xargs -0 "$tool" -i
            exit 0
        fi
        offences=$(sources | xargs -0 "$tool" --dry-run 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:.*-Wclang-format.*/\1/p' |
            sort | uniq -c)
        [ -z "$offences" ] && exit 0
        printf 'lines to change, file (./dev tidy mends them):\n%s\n' "$offences"
        exit 1
    fi
done
echo "skipped: clang-format $version is not installed"
exit 77
