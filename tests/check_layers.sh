#!/bin/sh
# The house rules that a grep can hold: which room includes which, who sees cJSON, stdio and CUDA, how long a
# file may be, and that no file speaks of one machine's folders. Prints every offence; exit 1 if there are any.
#
#   check_layers.sh [FOLDER]       checks another tree than this one
#   check_layers.sh --self-test    plants offences in a folder of its own and expects to find each
set -eu

rooms="base schedule spec exchange costmodel sim program step network traffic report study ledger campaign answer workload search plan jobs kernels calibrate plots html api serve cli"
max_lines=500
max_function_lines=70

# Rooms that files of a room may include, besides their own. The engine (sim, program) knows time, streams and links only.
allowed() {
    case $1 in
    base) echo "" ;;
    schedule) echo "base" ;;
    spec) echo "schedule base" ;;
    costmodel) echo "spec schedule base" ;;
    sim) echo "base" ;;
    program) echo "sim schedule base" ;;
    step) echo "program sim costmodel spec schedule base" ;;
    network) echo "sim base" ;;
    traffic) echo "network step program sim costmodel spec schedule base" ;;
    report) echo "traffic step program sim costmodel spec schedule base" ;;
    study) echo "exchange report traffic step program sim costmodel spec schedule base" ;;
    exchange) echo "spec schedule base" ;;
    ledger) echo "report step program sim costmodel spec schedule base" ;;
    campaign) echo "report step program sim costmodel spec schedule base" ;;
    answer) echo "campaign ledger report step program sim costmodel spec schedule base" ;;
    workload) echo "answer campaign ledger report step program sim costmodel spec schedule base" ;;
    search) echo "answer campaign ledger report step program sim costmodel spec schedule base" ;;
    plan) echo "answer campaign search ledger report step program sim costmodel spec schedule base" ;;
    jobs) echo "base" ;;
    kernels) echo "" ;;
    calibrate) echo "kernels costmodel spec schedule base" ;;
    plots) echo "study report base" ;;
    html) echo "workload answer campaign ledger plots study report step program sim costmodel spec schedule base" ;;
    api) echo "jobs html plots workload answer campaign plan search ledger study report step program sim costmodel spec schedule base" ;;
    serve) echo "api spec schedule base" ;;
    cli) echo "$rooms" ;;
    esac
}

sources() {
    find "$1" \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) | LC_ALL=C sort
}

# Prints "file: what is wrong" for each offence in the tree at the current folder.
check_includes() {
    for room in $rooms; do
        [ -d "$room" ] || continue
        for file in $(sources "$room"); do
            may=" $room $(allowed "$room") "
            for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]\([^">]*\)[">].*/\1/p' "$file"); do
                case $header in
                *cJSON.h)
                    case $file in base/json*.[ch]) ;; *) echo "$file: cJSON belongs to base/json*.c" ;; esac
                    ;;
                stdio.h)
                    case $room in costmodel | sim | program | step | network) echo "$file: $room does no input or output (stdio.h)" ;; esac
                    ;;
                cuda* | cublas* | nccl* | nvml*)
                    case $file in kernels/* | calibrate/measure/*.cu | calibrate/measure/*.cuh) ;;
                    *) echo "$file: CUDA belongs to kernels/ and calibrate/measure/*.cu ($header)" ;; esac
                    ;;
                */*)
                    to=${header%%/*}
                    case " $rooms " in *" $to "*) ;; *) continue ;; esac
                    case $may in *" $to "*) ;; *) echo "$file: may not include $header" ;; esac
                    ;;
                *) [ ! -e "$room/$header" ] || echo "$file: include \"$room/$header\", not \"$header\"" ;;
                esac
            done
        done
    done
}

# A schedule is known by its row and its generator alone; exchange/ says it in the words of other software, and the glossary
# explains words. Parameter servers have a naive scheme too.
check_schedule_names() {
    [ -f schedule/schedules.c ] || return 0
    words=$(sed -n 's/.*\.name = "\([^"]*\)".*/\1/p' schedule/schedules.c | tr '\n' '|')
    for room in $rooms; do
        case $room in schedule | exchange) continue ;; esac
        [ -d "$room" ] || continue
        grep -rnE --include='*.[ch]' --exclude=glossary.c "\\\\?\"(${words%|})\\\\?\"|sim_schedule_(naive|gpipe|1f1b|interleaved|breadth_first|zb_|v_|dualpipe)" "$room" | grep -v "WORDS(server_scheme" |
            sed 's/^\([^:]*\):\([0-9]*\):.*/\1: line \2 knows a schedule by name/' || true
    done
}

# What a generation of chips can do is asked of its row; recipes' keys and NCCL's own tables have words of their own.
check_generation_names() {
    [ -f spec/generation.c ] || return 0
    words=$(sed -n 's/^ *ROW("\([^"]*\)".*/\1/p' spec/generation.c | grep -vx other | tr '\n' '|')
    for room in $rooms; do
        [ -d "$room" ] || continue
        grep -rnE --include='*.[ch]' "\\\\?\"(${words%|})\\\\?\"|\\<SPEC_GENERATION_[A-Z]" "$room" | grep -v "^spec/generation\.[ch]:" |
            sed 's/^\([^:]*\):\([0-9]*\):.*/\1: line \2 knows a generation by name/' || true
    done
}

# What a recipe does in a step is decided below (step/policy.c, step/pieces.c, the cost model): a search reads the facts. Of a
# recipe itself it reads what the software has to offer, or does by default.
check_policy() {
    [ -d search ] || return 0
    offers='kernels\.recompute_(modes|partial)|pipeline\.schedules|experts\.dispatchers|data_parallel\.plain_zero|defaults\.'
    {
        grep -noE 'framework(\.|->)[a-z_]+\.[a-z_]+' $(sources search) /dev/null | grep -vE "($offers)" || true
        grep -nE 'cost_(keeps_gathered|reduces_each|shards_by_chunk|overlaps_grad)|spec_(hides_param_gather|gathers_on_use|waits_for_sends|prefetch_units)\(|SpecRecipe' \
            $(sources search) /dev/null || true
    } | sed 's/^\([^:]*\):\([0-9]*\):.*/\1: line \2 reads a recipe, not step\/policy.h/'
}

# A recipe's key costs three places: its member, its row, its use. One that is read in more files than this has a rule that is
# said more than once.
most_readers=3
check_recipe_keys() {
    [ -f spec/fields_framework.c ] || return 0
    keys=$(cat spec/fields_framework.c spec/fields_recipe_optimizer.c 2>/dev/null | tr '\n' ' ' |
        grep -oE 'SpecRecipe[A-Za-z]+, +[a-z_0-9]+,' | sed 's/.*, *\([a-z_0-9]*\),/\1/' | sort -u | tr '\n' ' ')
    files=
    for room in costmodel step program report search plan traffic answer workload campaign; do
        [ ! -d "$room" ] || files="$files $(sources "$room" | tr '\n' ' ')"
    done
    grep -oHE '(kernels|host|data_parallel|tensor|context|experts|pipeline|optimizer|loss|allocator|recipe)(\.|->)[a-z_0-9]+' $files /dev/null |
        sed 's/^\([^:]*\):.*[.>]/\1 /' | sort -u | awk -v keys=" $keys" -v most=$most_readers '
            index(keys, " " $2 " ") && $1 ~ /\.c$/ { readers[$2]++; files[$2] = files[$2] " " $1 }
            END { for (key in readers) if (readers[key] > most) print "recipe key " key ": read in" files[key] ", " most " files at most" }'
}

# Fields that may be "auto" are rows of search/axes.c; what goes through all of them folds over the rows. A file that
# names this many of their keys has a list of its own.
check_axes() {
    [ -f search/axes.c ] || return 0
    keys=$(sed -n 's/^    {"\([a-z]*\.[a-z_]*\)",.*/\1/p' search/axes.c)
    for file in $(sources search) $(sources api) $(sources plan); do
        [ "$file" != search/axes.c ] || continue
        count=0
        for key in $keys; do
            ! grep -qF "\"$key\"" "$file" || count=$((count + 1))
        done
        [ "$count" -le 8 ] || echo "$file: names $count fields that may be \"auto\"; fold over search/axes.c"
    done
}

check_sizes() {
    for folder in $rooms tests; do
        [ -d "$folder" ] || continue
        for file in $(sources "$folder"); do
            lines=$(wc -l <"$file")
            case ${file##*/} in fields_*) lines=0 ;; esac # tables are as long as what they list
            [ "$lines" -le $max_lines ] || echo "$file: $((lines)) lines, $max_lines at most"
            # A body opens and closes with a brace in the first column; nothing else opens with one.
            awk -v most=$max_function_lines -v file="$file" '
                /^\{/ { start = NR }
                /^\}/ && start { if (NR - start + 2 > most) print file ": function of " NR - start + 2 " lines at line " start - 1 ", " most " at most"; start = 0 }
            ' "$file"
        done
    done
}

# Folders of one machine: home directories and working copies, at the start of a path.
check_paths() {
    if git rev-parse --show-cdup 2>/dev/null | grep -qx ''; then
        git ls-files -co --exclude-standard
    else
        find . \( -name build -o -name .git -o -name .cache \) -prune -o -type f -print
    fi | while IFS= read -r file; do
        [ ! -f "$file" ] || printf '%s\0' "$file"
    done | xargs -0 grep -nIE "(^|[][:space:]\"'=(,:\`<>])/(root|home|work|Users|tmp/[a-z]+)/[A-Za-z0-9_.]" /dev/null |
        cut -c 1-160 || true
}

check_tree() {
    check_includes
    check_schedule_names
    check_generation_names
    check_policy
    check_recipe_keys
    check_axes
    check_sizes
    check_paths
}

self_test() {
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    mkdir -p "$tree/base" "$tree/spec" "$tree/costmodel" "$tree/sim" "$tree/program" "$tree/cli" "$tree/docs"
    cd "$tree"
    echo '#include "spec/spec.h"' >base/a.c
    echo '#include "costmodel/flops.h"' >spec/a.c
    echo '#include <cjson/cJSON.h>' >spec/b.c
    echo '#include "sim/engine.h"' >costmodel/a.c
    echo '#include <stdio.h>' >sim/a.c
    echo '#  include <cuda_runtime.h>' >sim/b.c
    echo '#include "costmodel/flops.h"' >sim/engine_x.c
    echo '#include "spec/spec.h"' >program/x.c
    touch base/own.h
    echo '#include "own.h"' >base/b.c
    { echo 'void f(void)' && echo '{' && yes '    ;' | head -n $((max_function_lines - 2)) && echo '}'; } >cli/b.c
    yes '' | head -n $((max_lines + 1)) >cli/a.c
    cp cli/a.c cli/fields_a.c
    echo "see /""home/someone/notes" >docs/a.md
    mkdir -p "$tree/schedule" "$tree/search" "$tree/exchange"
    echo '    {.name = "zb-x",' >schedule/schedules.c
    echo 'if (strcmp(name, "zb-x") == 0)' >search/a.c
    echo 'fail("give \"zb-x\"");' >search/b.c
    echo '{"zb-x", "ZBX"}' >exchange/a.c
    echo '    ROW("gen-x", .order = 9),' >spec/generation.c
    echo 'if (strcmp(generation->name, "gen-x") == 0)' >search/g.c
    echo 'if (generation == SPEC_GENERATION_X)' >costmodel/g.c
    echo 'if (spec->execution.framework.data_parallel.root_unit)' >search/bound_x.c
    echo 'FLAG(SpecRecipeLoss, told_often, ""),' >spec/fields_framework.c
    for n in p q r s; do echo 'if (framework->loss.told_often)' >costmodel/$n.c; done
    for n in a b c d e f g h i; do echo "    {\"parallel.$n\","; done >search/axes.c
    mkdir -p "$tree/api" "$tree/plan"
    sed 's/{/use(/' search/axes.c >api/list.c
    expected=19
    printf '#include "base/a.h"\n#include "sim/b.h"\n#include "schedule/a.h"\n' >program/good.c
    printf '#include "base/json.h"\n#include <cjson/cJSON.h>\n' >base/json_good.c
    found=$(check_tree | wc -l)
    [ "$found" -eq $expected ] || {
        echo "planted $expected offences, found $((found)):"
        check_tree
        exit 1
    }
}

case ${1:-} in
--self-test)
    self_test
    exit 0
    ;;
esac
cd "${1:-$(dirname "$0")/..}"
offences=$(check_tree)
if [ -n "$offences" ]; then
    printf '%s\n' "$offences"
    exit 1
fi
