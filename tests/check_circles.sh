#!/bin/sh
# No files of the program call each other in a circle, but for a registry and its rows: the tables of schedules, of
# commands and of kernels name their rows, which use what stands beside the table.
#
#   check_circles.sh BUILD         reads the room libraries in BUILD with nm; exit 1 and the files if there is a circle
#   check_circles.sh --self-test   expects a circle in what it is given, and none without it
set -eu

# Edges "from to" of files, out of lines "library[file.o]: name type ...": who uses a name, and who defines it.
edges() {
    awk '
    {
        room = $1
        sub(/^.*liborrery_/, "", room)
        file = room
        sub(/\.a\[.*$/, "", room)
        sub(/^[^[]*\[/, "", file)
        sub(/\.o\]:$/, "", file)
        file = room "/" file
        if ($3 == "U") { uses[++count] = $2; users[count] = file }
        else if ($3 ~ /^[TDBRVWC]$/) owner[$2] = file
    }
    END {
        for (i = 1; i <= count; i++)
            if (uses[i] in owner && owner[uses[i]] != users[i]) print users[i], owner[uses[i]]
    }' | grep -v -e '^schedule/schedules\.c schedule/' \
        -e '^cli/commands\.c cli/' -e '^kernels/run\.cu kernels/' | sort -u
}

check() {
    if said=$(edges | LC_ALL=C tsort 2>&1 >/dev/null) && [ -z "$said" ]; then
        return 0
    fi
    printf '%s\n' "$said" | sed -n 's/^tsort: \(.*\..*\)$/\1/p' | grep / >&2 || printf '%s\n' "$said" >&2
    echo "check_circles: these files call each other in a circle; move what they share below both" >&2
    return 1
}

if [ "$1" = --self-test ]; then
    chain="liborrery_a.a[x.c.o]: one T 0 1
liborrery_b.a[y.c.o]: one U
liborrery_b.a[y.c.o]: two T 0 1"
    printf '%s\n' "$chain" | check || { echo "check_circles: a chain is called a circle" >&2; exit 1; }
    if printf '%s\nliborrery_a.a[x.c.o]: two U\n' "$chain" | check 2>/dev/null; then
        echo "check_circles: a circle is not seen" >&2
        exit 1
    fi
    exit 0
fi
nm -A -P "$1"/liborrery_*.a | check
