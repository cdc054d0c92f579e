#!/bin/sh
# The yardstick of a change that must not move a number: every answer of every example and every measured run, as
# text, of two builds side by side. `./dev equal [REVISION]` calls both halves.
#
#   equal.sh dump ORRERY TREE FOLDER [QUESTIONS]   asks the binary ORRERY about TREE/scenarios; one file an answer;
#                                                  QUESTIONS: only these, as "run validate"
#   equal.sh compare OLD NEW                       which answers differ, and the first lines that do; exit 1 if any does
set -eu

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}

# Everything but what says which build, profile, folder or machine answered, and how long that took. Hashes of profiles change
# with their texts; a number that a text moves is seen in the answer.
strip() {
    sed -E -e 's/"(version|seconds|spent_s|scenario_hash|hash)": ?("[^"]*"|[0-9.e+-]+)/"\1":0/g' \
        -e 's/(sha256:|scenario )[0-9a-f]{8,64}/\1-/g' -e 's/in [0-9.]+ (s|ms|us)$/in a while/' \
        -e "s|${ORRERY_SCENARIOS:-scenarios}/|scenarios/|g" -e 's|(orrery: wrote ).*/|\1|'
}

# One answer: its exit status, its output and its complaint. $1: file; the rest is the command.
ask() {
    file=$1
    shift
    status=0
    "$@" >"$file.out" 2>"$file.err" </dev/null || status=$?
    { echo "exit $status" && cat "$file.out" "$file.err"; } | strip >"$file"
    rm -f "$file.out" "$file.err"
}

dump() {
    orrery=$1
    ORRERY_SCENARIOS=$2/scenarios
    export ORRERY_SCENARIOS
    folder=$3
    wanted=${4:-validate run explain search plan sweep compare campaign report}
    mkdir -p "$folder"
    examples=$ORRERY_SCENARIOS/examples
    {
        case " $wanted " in *" validate "*) printf 'validate-measurements\nvalidate-blind\n' ;; esac
        for example in "$examples"/*.json; do
            for question in $wanted; do
                case $question-$example in
                validate-*) ;;
                plan-*/search-* | sweep-*/search-* | report-*/search-* | run-*/search-deepseek*) ;; # minutes: a search each
                run-* | search-*) echo "$question $example" ;;
                *distbelief* | *network-llama3-405b*) ;; # seconds a step
                *) echo "$question $example" ;;
                esac
            done
        done
    } | xargs -P "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -L 1 "$0" one "$orrery" "$folder" "$examples"
}

one() {
    orrery=$1 folder=$2 examples=$3 question=$4 example=${5:-}
    name=$(basename "$example" .json)
    file=$folder/$question${name:+-$name}
    case $question in
    validate-*) ask "$file" "$orrery" validate "$ORRERY_SCENARIOS/${question#validate-}"/*.json --rows --format json ;;
    run) ask "$file" "$orrery" run "$example" --format json ;;
    explain) ask "$file" "$orrery" explain "$example" --format json ;;
    search) ask "$file" "$orrery" search "$example" --top 3 --jobs 1 --format json ;;
    plan) ask "$file" "$orrery" plan "$example" --format json ;;
    sweep) ask "$file" "$orrery" sweep "$example" --vary training.micro_batch=1,2 --jobs 1 --format json ;;
    compare) ask "$file" "$orrery" compare "$example" "$examples/gpt3-175b.json" --format json ;;
    campaign) ask "$file" "$orrery" campaign "$example" --replicas 10 --jobs 1 --format json ;;
    report) # what the page says in words, without its pictures' coordinates
        ask "$file" "$orrery" report "$example" --no-search --output "$file.html"
        if [ -f "$file.html" ]; then
            sed -n '/<main/,/<\/main>/p' "$file.html" | sed -E 's/<svg.*<\/svg>//g' | strip >>"$file"
            rm -f "$file.html"
        fi
        ;;
    esac
}

# A line an object's member, so that a difference is seen where it is.
lines() {
    sed -E 's/,"/,\n"/g' "$1"
}

compare() {
    old=$1 new=$2
    differ=0
    total=0
    for file in "$old"/* "$new"/*; do
        name=$(basename "$file")
        case $file in "$new"/*) [ ! -f "$old/$name" ] || continue ;; esac
        total=$((total + 1))
        if [ ! -f "$old/$name" ] || [ ! -f "$new/$name" ]; then
            echo "$name: only in $(dirname "$file")"
            differ=$((differ + 1))
        elif ! cmp -s "$old/$name" "$new/$name"; then
            differ=$((differ + 1))
            echo "$name:"
            lines "$old/$name" >"$new/.old"
            lines "$new/$name" >"$new/.new"
            diff "$new/.old" "$new/.new" | grep '^[<>]' | cut -c 1-180 | head -n 6 | sed 's/^/    /' || true
            rm -f "$new/.old" "$new/.new"
        fi
    done
    echo "$differ of $total answers differ"
    [ "$differ" -eq 0 ]
}

case ${1:-} in
dump)
    case $# in 4 | 5) shift && dump "$@" ;; *) usage ;; esac
    ;;
one) shift && one "$@" ;;
compare)
    [ $# -eq 3 ] || usage
    compare "$2" "$3"
    ;;
*) usage ;;
esac
