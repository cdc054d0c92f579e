#!/bin/sh
# The schedule that docs/ARCHITECTURE.md adds, as code: extract_example.sh PAGE TABLE FOLDER writes schedule_example.c (the
# generator), .h (its declaration), .inc (its row) and schedule_table.c (TABLE with that row) for test_schedule_example.
set -eu
page=$1
table=$2
folder=$3

# An indented block of the page from the line that matches $1 to its end, without the indent.
block() {
    awk -v first="$1" '
        !inside && $0 ~ first { inside = 1 }
        inside && $0 != "" && substr($0, 1, 4) != "    " { exit }
        inside { print substr($0, 5) }' "$page"
}

block '^    /[*] schedule/eager_1f1b' > "$folder/schedule_example.c"
{
    echo '#include "schedule/schedules.h"'
    block '^    void sim_schedule_eager_1f1b.*;$' | sed -n 1p
} > "$folder/schedule_example.h"
block '^    [{].name = "eager-1f1b"' > "$folder/schedule_example.inc"
# The table with the row, to stand in for the library's.
awk -v row="$folder/schedule_example.inc" '
    /^#include "schedule\/schedules.h"/ { print; print "#include \"schedule_example.h\""; next }
    /^};/ && !done { while ((getline line < row) > 0) print line; done = 1 }
    { print }' "$table" > "$folder/schedule_table.c"
for part in c h inc; do
    [ "$(wc -c < "$folder/schedule_example.$part")" -gt 60 ] || {
        echo "extract_example.sh: $page has no block for .$part" >&2
        exit 1
    }
done
