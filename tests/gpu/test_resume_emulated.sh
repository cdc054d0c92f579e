#!/bin/sh
# A sweep that is killed (SIGKILL, in the middle of a point) and begun again gives the table of one that was not: the same
# points, and what was measured before the kill is not measured again. What stands in the way is said in one sentence.
#
#   test_resume_emulated.sh PROGRAM NCCL NVML
set -eu
program=$1
ORRERY_NCCL=$2
ORRERY_NVML=$3
export ORRERY_NCCL ORRERY_NVML
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "$*"
    cat out err 2>/dev/null || true
    exit 1
}
points="d 64x4096" # four of them

# Ids and what was skipped, without times.
shape() {
    sed -E 's/"(time_us|busbw_gbps|gbps|tbps|tflops|repeats|spread_frac|outliers|drift_frac|date|command)": [^,]*,?//' "$1" | grep -v '^ *$'
}
"$program" --only "$points" --output whole.json --seconds 0.01 --quiet >out 2>err || fail "the whole sweep"
"$program" --only "$points" --output part.json >out 2>err &
pid=$!
for i in $(seq 1 6000); do
    [ "$(wc -l 2>/dev/null <part.json.journal || echo 0)" -lt 3 ] || break
    sleep 0.02
done
kill -9 $pid
wait $pid 2>/dev/null || true
[ ! -e part.json ] || fail "a killed sweep left a table"
head -n 3 part.json.journal >before
[ "$(wc -l <before)" -eq 3 ] || fail "nothing was done before the kill"
printf '{"id":"torn' >>part.json.journal
"$program" --only "$points" --output part.json --seconds 0.01 >out 2>err || fail "going on"
grep -q "points are there already" err || fail "it began anew"
[ ! -e part.json.journal ] || fail "the journal stayed"
shape whole.json >a && shape part.json >b
diff a b >out || fail "the tables differ"
sed -n 2,3p before | sed -E 's/.*"time_us":([^,]*),.*/\1/' | while read -r time; do
    grep -q -e "\"time_us\": $time" part.json || fail "$time us was measured again"
done
grep -q '"power_w": 500' part.json && grep -q '"temperature_c": 60' part.json && grep -q '"driver": "580.65.06"' part.json ||
    fail "no power, temperature or driver"

# The clock under load, not the one before half of the repeats had run; the power now, not the last second's.
grep -q '"sm_clock_hz": 1500000000' part.json || fail "the boost clock was taken for the clock under load"
grep -q '"clock_limits": "power limit"' part.json || fail "what limits the clocks is not told"
for word in '"cublaslt": "13.0.2"' '"power_limit_w": 700' '"boost_clock_hz": 1980000000' '"pcie_generation": 5' '"cpu": ' '"cpus": '; do
    grep -q -e "$word" part.json || fail "the stamp lacks $word"
done
grep -q "points, about" err || fail "no estimate before the sweep"

# What was skipped is tried again when the sweep is gone on with.
printf '%s\n{"id":"rms_norm 64x4096","skipped":"held by another"}\n' "$(head -n 1 before)" >part.json.journal
"$program" --only "$points" --output part.json --seconds 0.01 --quiet >out 2>err || fail "going on after a skipped point"
! grep -q "held by another" part.json || fail "a skipped point was not tried again"

expect() { # text, then the command
    text=$1
    shift
    status=0
    "$@" >out 2>err || status=$?
    [ $status -eq 2 ] && grep -q -e "$text" err && [ "$(wc -l <err)" -eq 1 ] || fail "$*: status $status, wanted \"$text\""
}
expect "GPU 0 is in use (busy 90 % of the time" env EMULATE_BUSY=90 "$program" --output busy.json --quiet
[ ! -e busy.json ]
EMULATE_BUSY=90 EMULATE_BUSY_ASKED=3 "$program" --only launch --output busy.json --quiet >out 2>err ||
    fail "a GPU that was busy a moment ago is refused"
EMULATE_BUSY=90 "$program" --busy --only launch --output busy.json --quiet >out 2>err || fail "--busy"
expect "no/such/folder/t.json: cannot be written there" "$program" --output no/such/folder/t.json --quiet
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed && chmod a-w closed
    expect "cannot be written there" "$program" --output closed/t.json --quiet
fi
printf '{"journal":1,"device":"another"}\n' >other.json.journal
expect "is of another GPU" "$program" --output other.json --quiet
