#!/bin/sh
# `orrery sweep --journal`: killed at any moment it goes on where it stopped, and the table is that of one run to the byte.
# usage: test_sweep_journal.sh ORRERY SCENARIOS
set -eu
orrery=$1
scenario=$2/examples/gpt3-175b.json
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

sweep() {
  run=$orrery
  [ "${1:-}" != background ] || { run="exec $orrery"; shift; }
  $run sweep "$scenario" --vary training.micro_batch=1,2,4,7 --vary parallel.virtual_stages=1,2,3 \
    --vary training.recompute=none,selective,full --vary parallel.zero=0,1 --format csv --quiet "$@"
}

sweep >"$folder/whole"
[ "$(wc -l <"$folder/whole")" -eq 73 ]

# Killed after some rows, four times, on one thread and on two.
for rows in 3 20 41 70; do
  sweep background --journal "$folder/rows" --jobs $((rows % 2 + 1)) >"$folder/out" & # its own process, no shell's
  child=$!
  while kill -0 "$child" 2>/dev/null && [ "$(cat "$folder"/rows/rows-*.jsonl 2>/dev/null | wc -l)" -lt "$rows" ]; do :; done
  kill -9 "$child" 2>/dev/null || true
  wait "$child" 2>/dev/null || true
done
# A kill can cut a line where a page ends: only whole lines are rows.
done_rows=$(cat "$folder"/rows/rows-*.jsonl | grep -c '^\[.*\]$')
[ "$done_rows" -ge 41 ]
sweep --journal "$folder/rows" >"$folder/again"
cmp "$folder/whole" "$folder/again"
# No row was done twice, and a complete journal answers at once.
[ "$(cat "$folder"/rows/rows-*.jsonl | grep -c '^\[.*\]$')" -eq 72 ]
sweep --journal "$folder/rows" >"$folder/again"
cmp "$folder/whole" "$folder/again"

# Lines cut anywhere: what is left of them is no row, and is done again.
mkdir "$folder/cut"
cat "$folder"/rows/rows-*.jsonl | grep '^\[.*\]$' >"$folder/all"
for bytes in 1 17 200; do
  head -n 1 "$folder/rows/rows-000000.jsonl" >"$folder/cut/rows-000000.jsonl"
  awk 'length > 300' "$folder/all" | sed -n "5,9p" >>"$folder/cut/rows-000000.jsonl"
  awk 'length > 300' "$folder/all" | sed -n "11p" | head -c "$bytes" >>"$folder/cut/rows-000000.jsonl"
  rm -f "$folder"/cut/rows-000001.jsonl
  sweep --journal "$folder/cut" >"$folder/again"
  cmp "$folder/whole" "$folder/again"
  [ "$(grep -c '^\[.*\]$' "$folder/cut/rows-000001.jsonl")" -eq 67 ]
done

# Parts, in any order, and what reads them all; a part alone says how many there are.
for part in 3 1 2; do
  sweep --journal "$folder/parts" --part $part/3 >"$folder/part$part" 2>"$folder/said"
done
cmp "$folder/whole" "$folder/part2"
[ "$(wc -l <"$folder/part3")" -eq 25 ]
sweep --journal "$folder/parts" >"$folder/again"
cmp "$folder/whole" "$folder/again"

# The script of an array runs: each task its part.
"$orrery" sweep "$scenario" --vary training.micro_batch=1,2,4,7 --journal "$folder/array of tasks" --slurm 3 >"$folder/job.sh"
grep -q '^#SBATCH --array=1-3$' "$folder/job.sh"
mkdir "$folder/bin"
ln -s "$orrery" "$folder/bin/orrery"
for task in 1 2 3; do
  PATH="$folder/bin:$PATH" SLURM_ARRAY_TASK_ID=$task bash "$folder/job.sh"
done
[ "$(cat "$folder/array of tasks"/rows-*.jsonl | grep -c '^\[.*\]$')" -eq 4 ]

# What is wrong is one sentence.
refused() {
  expect=$1
  shift
  if "$@" >/dev/null 2>"$folder/error"; then exit 1; fi
  grep -q -e "$expect" "$folder/error"
  [ "$(wc -l <"$folder/error")" -eq 1 ]
}
refused "another sweep" sweep --journal "$folder/rows" --ideal
refused "another sweep" sweep --journal "$folder/rows" --set training.tokens=1e12
refused "cannot be made" sweep --journal "$folder/whole"
refused "not a part of a sweep" sweep --journal "$folder/p" --part 4/3
refused "not a part of a sweep" sweep --journal "$folder/p" --part 0/3
refused "not a part of a sweep" sweep --journal "$folder/p" --part 3
refused "give --journal FOLDER too" sweep --part 1/3
refused "not a number of tasks" sweep --journal "$folder/p" --slurm 0
refused "needs --journal" sweep --slurm 4
mkdir "$folder/bad"
head -n 1 "$folder/rows/rows-000000.jsonl" >"$folder/bad/rows-000000.jsonl"
for line in 'nonsense' '[]' '[72,"late"]' '[-1,"early"]' '[1.5,"half"]' '[0,null,"","fits",true,8]' '{"a":1}'; do
  { head -n 1 "$folder/rows/rows-000000.jsonl"; echo "$line"; } >"$folder/bad/rows-000000.jsonl"
  refused "line 2 is not a row of this sweep" sweep --journal "$folder/bad"
done
