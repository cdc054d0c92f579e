#!/bin/sh
# The studies of docs/GALLERY.md drawn anew give the CSVs that lie in docs/images: check_gallery.sh ORRERY SOURCE. When the model
# has changed, `./dev gallery` draws the pictures of today.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$2/docs/gallery/make.sh" --csv "$1" "$work"
status=0
for csv in "$work"/*.csv; do
    if ! cmp -s "$csv" "$2/docs/images/$(basename "$csv")"; then
        echo "docs/images/$(basename "$csv") has drifted; ./dev gallery draws it anew:"
        diff "$2/docs/images/$(basename "$csv")" "$csv" | head -6
        status=1
    fi
done
for picture in $(grep -o 'images/[a-z-]*\.png' "$2/docs/GALLERY.md" | sort -u); do
    [ -s "$2/docs/$picture" ] || { echo "docs/GALLERY.md: no $picture"; status=1; }
done
exit $status
