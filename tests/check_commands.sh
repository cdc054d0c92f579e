#!/bin/sh
# The commands of the docs, run as printed: check_commands.sh [--fix] ORRERY SOURCE PAGE... In a page an indented or fenced
# line "$ command" is run (with "\" at its end the next line belongs to it), in an empty folder that has scenarios/ and
# docs/; it must succeed, and the lines quoted below it must stand in its output, one after the other. "..." on a line of its
# own stands for any lines, within a line for any text. A fenced block "```json FILE" or "```yaml FILE" is written to FILE first. --fix
# puts the lines of today in place of those that differ only in their numbers.
set -eu
fix=
if [ "${1:-}" = --fix ]; then
    fix=yes
    shift
fi
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source=$(cd "$2" && pwd)
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# Files N.cmd (a command), N.want ("line number<tab>text" of what is quoted) and N.file ("name", then its text).
split() {
    awk -v folder="$2" '
        function close_case() { if (number) { close(folder "/" number ".cmd"); close(folder "/" number ".want") } }
        function start(text) { close_case(); number++; printf "%s\n", text > (folder "/" number ".cmd"); quoting = 1 }
        /^```/ {
            fenced = !fenced; quoting = 0; writing = 0
            if (fenced && ($1 == "```json" || $1 == "```yaml") && NF == 2) {
                number++; writing = 1; print $2 > (folder "/" number ".file")
            }
            next
        }
        writing { print > (folder "/" number ".file"); next }
        {
            inside = fenced || /^    /
            text = $0
            if (!fenced) sub(/^    /, "", text)
        }
        continued { sub(/^ */, "", text); printf "%s\n", text > (folder "/" number ".cmd"); continued = text ~ /\\$/; next }
        inside && text ~ /^[$] / { sub(/^[$] /, "", text); start(text); continued = text ~ /\\$/; next }
        !fenced && $0 == "" && quoting { held[++blanks] = NR; next }
        !inside { quoting = 0; blanks = 0; next }
        quoting {
            for (b = 1; b <= blanks; b++) printf "%d\t\n", held[b] > (folder "/" number ".want")
            blanks = 0
            printf "%d\t%s\n", NR, text > (folder "/" number ".want")
        }' "$1"
}

# Complaints on stdout; lines to put in place into $4.
compare() {
    awk -v page="$3" -v mended="$4" -v fix="$fix" '
        function bare(line) { gsub(/\302\240/, " ", line); sub(/[ \t\r]+$/, "", line); return line }
        function literal(text) { gsub(/[][\\.^$*+?(){}|\/]/, "\\\\&", text); return text }
        function matches(quoted, line,   parts, n, i, rest, at) {
            if (index(quoted, "...") == 0) return quoted == line
            n = split(quoted, parts, "[.][.][.]")
            rest = line
            for (i = 1; i <= n; i++) {
                if (parts[i] == "") continue
                at = index(rest, parts[i])
                if (!at || (i == 1 && at != 1)) return 0
                rest = substr(rest, at + length(parts[i]))
            }
            return quoted ~ /[.][.][.]$/ || rest == ""
        }
        function shape(line) { gsub(/[0-9][0-9.,]*/, "#", line); gsub(/[█▉▊▋▌▍▎▏▓▒░ ─-]+/, " ", line); return line }
        NR == FNR { got[++lines] = bare($0); next }
        { at = index($0, "\t"); number[++quotes] = substr($0, 1, at - 1); want[quotes] = bare(substr($0, at + 1)) }
        END {
            from = 1; skip = 1
            for (q = 1; q <= quotes; q++) {
                if (want[q] == "...") { skip = 1; continue }
                found = 0
                for (l = from; l <= (skip ? lines : from) && !found; l++) if (matches(want[q], got[l])) found = l
                for (l = from; fix && l <= lines && !found; l++)
                    if (shape(want[q]) == shape(got[l])) { found = l; printf "%d\t%s\n", number[q], got[l] >> mended }
                if (!found) { printf "%s:%d: not in the output: %s\n", page, number[q], want[q]; bad = 1; skip = 1; continue }
                from = found + 1; skip = 0
            }
            exit bad
        }' "$1" "$2"
}

for page in "$@"; do
    name=$(echo "$page" | tr '/.' '__')
    cases=$work/$name.cases
    box=$work/$name
    mkdir -p "$cases" "$box/bin" "$box/home"
    ln -s "$source/scenarios" "$source/docs" "$box/"
    ln -s "$binary" "$box/bin/orrery"
    # Stands in for the build and the installation, which other tests do.
    cat > "$box/dev" << DEV
#!/bin/sh
if [ "\$1" = install ]; then mkdir -p "\$2/bin" && ln -sf "$binary" "\$2/bin/orrery"; else exec "$binary" "\$@"; fi
DEV
    chmod +x "$box/dev"
    : > "$cases/mended"
    split "$source/$page" "$cases"
    number=1
    while [ -f "$cases/$number.cmd" ] || [ -f "$cases/$number.file" ]; do
        at=$cases/$number
        number=$((number + 1))
        if [ -f "$at.file" ]; then
            sed 1d "$at.file" > "$box/$(sed -n 1p "$at.file")"
            continue
        fi
        touch "$at.want"
        if ! (cd "$box" && HOME=$box/home PATH=$box/bin:$PATH COLUMNS=100 NO_COLOR=1 sh "$at.cmd") > "$at.got" 2>&1 </dev/null; then
            printf '%s: failed: %s\n' "$page" "$(cat "$at.cmd")"
            tail -n 5 "$at.got"
            status=1
        elif ! compare "$at.got" "$at.want" "$page" "$cases/mended"; then
            printf '    from: %s\n' "$(cat "$at.cmd")"
            status=1
        fi
    done
    [ "$number" -gt 1 ] || { echo "$page: no command in it"; status=1; }
    if [ -s "$cases/mended" ]; then
        awk -F '\t' 'NR == FNR { text[$1] = $2; next }
            /^```/ { fenced = !fenced }
            FNR in text { print (fenced ? "" : "    ") text[FNR]; next }
            { print }' "$cases/mended" "$source/$page" > "$work/new"
        cp "$work/new" "$source/$page"
        echo "$page: $(wc -l < "$cases/mended") lines mended"
    fi
    rm -rf "$box"
done
exit $status
