#!/bin/sh
# A Debian package of the tree as it is: packaging/deb.sh FOLDER leaves the .deb there. Needs dpkg-dev, debhelper and what the build
# needs.
set -eu
[ $# -eq 1 ] || { echo "usage: packaging/deb.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/orrery-0.1.0"
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$work/orrery-0.1.0"
cp -R packaging/debian "$work/orrery-0.1.0/debian"
(cd "$work/orrery-0.1.0" && dpkg-buildpackage -b -us -uc) > "$out/deb.log" 2>&1 || { tail -n 30 "$out/deb.log" >&2; exit 1; }
cp "$work"/*.deb "$out/"
ls "$out"/*.deb
