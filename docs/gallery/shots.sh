#!/bin/sh
# Pictures of `orrery report`'s page in Chromium: shots.sh ORRERY FOLDER writes report.png (1280 px), report-dark.png and
# report-phone.png (390 px), each the whole page. Nothing is done where there is no Chromium.
set -eu
orrery=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "no Chromium: the page was not taken anew" >&2; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$orrery" report scenarios/examples/deepseek-v3-pair.json --max-seconds 20 --quiet --output "$work/page.html"

open() { # flags of the browser
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files --virtual-time-budget=3000 \
        --user-data-dir="$work/profile" "$@" 2> /dev/null
}

# The page in a frame, whose width is never less than asked for and whose height can be read.
shoot() { # name, width, flags of the browser
    name=$1 width=$2
    shift 2
    for height in 900 whole; do
        if [ $height = whole ]; then
            height=$(open --dump-dom "file://$work/frame.html" | sed -n 's/.*data-height="\([0-9]*\)".*/\1/p')
        fi
        cat > "$work/frame.html" << HTML
<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0">
<iframe src="page.html" style="border:0;display:block;width:${width}px;height:${height}px"></iframe>
<script>
onload = () => document.body.dataset.height = document.querySelector("iframe").contentDocument.documentElement.scrollHeight
</script>
HTML
    done
    open --window-size="$width,$height" --screenshot="$out/$name.png" "$@" "file://$work/frame.html"
}
shoot report 1280
shoot report-dark 1280 --blink-settings=preferredColorScheme=0
shoot report-phone 390
