#!/bin/sh
# What a reader may expect of every page: no paragraph over 90 words, no line over 120 columns, no relative link or anchor that
# leads nowhere. Tables and quoted blocks keep their width. check_docs.sh [--fix] [PAGE...]; --fix wraps the paragraphs and
# list items that have a line too long.
set -eu
cd "$(dirname "$0")/.."
fix=
if [ "${1:-}" = --fix ]; then
    fix=yes
    shift
fi
[ $# -gt 0 ] || set -- README.md $(find docs -name '*.md' | sort)

# Words of a paragraph or list item, columns of a line; a block of code (fenced or indented) is neither.
shape() {
    LC_ALL=C awk -v page="$1" '
        function columns(text) { gsub(/[\200-\277]/, "", text); return length(text) }
        function close_paragraph() {
            if (words > 90) { printf "%s:%d: a paragraph of %d words (90 at most)\n", page, first, words; bad = 1 }
            words = 0
        }
        /^```/ { close_paragraph(); fenced = !fenced; next }
        fenced { next }
        /^$/ { close_paragraph(); blank = 1; next }
        /^    / && blank && !listed { next }
        /^[|#]/ { close_paragraph(); listed = 0; blank = 0; next }
        {
            if (blank && !/^ /) listed = 0
            if (/^ *([-*]|[0-9]+[.]) /) { close_paragraph(); listed = 1 }
            blank = 0
            if (words == 0) first = NR
            words += NF
            if (columns($0) > 120) { printf "%s:%d: %d columns (120 at most; --fix wraps)\n", page, NR, columns($0); bad = 1 }
        }
        END { close_paragraph(); exit bad }' "$1"
}

# Wraps at 115 what has a line over 120; the indent is that of a list item.
wrap() {
    LC_ALL=C awk '
        function columns(text) { gsub(/[\200-\277]/, "", text); return length(text) }
        function flush(   i, n, word, line, indent, hang) {
            if (!count) return
            if (!wide) for (i = 1; i <= count; i++) print held[i]
            else {
                match(held[1], /^ *([-*] |[0-9]+[.] )?/)
                indent = substr(held[1], 1, RLENGTH)
                hang = indent; gsub(/[^ ]/, " ", hang)
                all = substr(held[1], RLENGTH + 1)
                for (i = 2; i <= count; i++) all = all " " held[i]
                n = split(all, word, / +/)
                line = indent word[1]
                for (i = 2; i <= n; i++) {
                    if (word[i] == "") continue
                    if (columns(line " " word[i]) > 115 && word[i] !~ /^([-+*>#|]|[0-9]+[.])$/) { print line; line = hang word[i] }
                    else line = line " " word[i]
                }
                print line
            }
            count = 0; wide = 0
        }
        /^```/ { flush(); fenced = !fenced; print; next }
        fenced { print; next }
        /^$/ { flush(); print; blank = 1; next }
        /^    / && blank && !listed { print; next }
        /^[|#]/ { flush(); listed = 0; blank = 0; print; next }
        {
            if (blank && !/^ /) listed = 0
            if (/^ *([-*]|[0-9]+[.]) /) { flush(); listed = 1 }
            blank = 0
            held[++count] = $0
            if (columns($0) > 120) wide = 1
        }
        END { flush() }' "$1"
}

# Anchors of a page as a forge makes them from its headings.
anchors() {
    sed -n '/^```/,/^```/!s/^##* *//p' "$1" | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links() {
    status=0
    folder=$(dirname "$1")
    for link in $(sed '/^```/,/^```/d; s/`[^`]*`//g' "$1" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//'); do
        case $link in http:* | https:* | mailto:*) continue ;; esac
        file=${link%%#*}
        target=$1
        [ -z "$file" ] || target=$folder/$file
        if [ ! -e "$target" ]; then
            echo "$1: leads nowhere: $link"
            status=1
        elif [ "$link" != "$file" ] && ! anchors "$target" | grep -qx -- "${link#*#}"; then
            echo "$1: no such heading: $link"
            status=1
        fi
    done
    return $status
}

bad=0
for page in "$@"; do
    if [ -n "$fix" ]; then
        new=$(mktemp)
        wrap "$page" > "$new"
        cmp -s "$new" "$page" || cp "$new" "$page"
        rm -f "$new"
    fi
    shape "$page" || bad=1
    links "$page" || bad=1
done
exit $bad
