#!/bin/sh
# The drawings of the docs are what docs/drawings/draw.py draws, and each is on a page. Exit 77 without python3.
set -eu
cd "$(dirname "$0")/.."
command -v python3 > /dev/null || { echo "no python3: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 docs/drawings/draw.py "$work"
status=0
for drawing in "$work"/*.svg; do
    name=$(basename "$drawing")
    cmp "$drawing" "docs/drawings/$name" || { echo "docs/drawings/draw.py docs/drawings draws it anew"; status=1; }
    grep -q "drawings/$name" docs/*.md || { echo "docs/drawings/$name: on no page"; status=1; }
done
exit $status
