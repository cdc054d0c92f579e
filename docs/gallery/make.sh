#!/bin/sh
# The figures of docs/GALLERY.md: make.sh ORRERY FOLDER writes a picture and the CSV that it shows, each, into FOLDER. With
# --csv only the CSVs of the figures that gnuplot scripts of this folder draw; no gnuplot is needed then.
set -eu
pictures=yes
if [ "$1" = --csv ]; then
    pictures=
    shift
fi
orrery=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
here=docs/gallery
examples=scenarios/examples
export LC_ALL=C.UTF-8

# Columns of a CSV by name, in the order asked for.
columns() {
    awk -F, -v wanted="$1" '
        NR == 1 { n = split(wanted, names, ","); for (i = 1; i <= NF; i++) at[$i] = i; print wanted; next }
        { row = ""; for (i = 1; i <= n; i++) row = row (i > 1 ? "," : "") $at[names[i]]; print row }'
}

draw() { # name heading caption
    [ -n "$pictures" ] || return 0
    extra=$out/$1-extra.csv
    [ -f "$extra" ] || extra=$out/$1.csv
    gnuplot -e "svg=0; width=1000; height=560; picture='$out/$1.png'; data='$out/$1.csv'; extra='$extra'" - << PLOT
load 'plots/style.gp'
set lmargin at screen 0.085
set rmargin at screen 0.97
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 66.0/height
set label 1 "$2" at screen 0.085, screen 1.0 - 26.0/height left font ',15' textcolor rgb ink
set label 2 "$3" at screen 0.085, screen 1.0 - 52.0/height left textcolor rgb '#555555'
load '$here/$1.gp'
PLOT
}

# A bubble against micro-batches, by schedule: one GPT-3 175B on 64 GPUs, so that a pipeline has as many as the batch.
{
    echo "schedule,microbatches,bubble_percent"
    for schedule in gpipe:1 1f1b:1 interleaved:3 zb-h1:1 zb-v:2 dualpipev:2; do
        "$orrery" sweep $examples/gpt3-175b.json --set cluster.nodes=8 --set parallel.data=1 --set parallel.zero=0 \
            --set parallel.schedule="${schedule%:*}" --set parallel.virtual_stages="${schedule#*:}" \
            --vary training.global_batch=8..128 --format csv --quiet |
            columns training.global_batch,bubble_frac |
            awk -F, -v name="${schedule%:*}" 'NR > 1 && $2 != "" { printf "%s,%d,%.4f\n", name, $1, $2 * 100 }'
    done
} > "$out/bubble.csv"
draw bubble "Pipeline bubble against micro-batches" "GPT-3 175B, tensor 8, pipeline 8, A100; interleaved with three chunks a rank"

# What training a model must hold against what a GPU has.
join_years() { # kind, unit bytes of a row
    "$orrery" list "$1s" --format csv | awk -F, -v kind="$1" -v bytes="$2" '
        NR == FNR { if ($1 == kind) year[$2] = $3; next }
        $1 in year { printf "%s,%s,%.4g\n", year[$1], $1, $2 * bytes / 1073741824 }' $here/years.csv -
}
{ echo "year,name,gib"; join_years model 16; } > "$out/years.csv"
{ echo "year,name,gib"; join_years accelerator 1; } > "$out/years-extra.csv"
draw years "What a model needs and what a GPU has" "Weights, gradients and Adam's states in mixed precision, 16 B a parameter, against the memory of one GPU"

# Bus bandwidth against size and GPUs, as NCCL would choose.
{
    echo "ranks,bytes,busbw_gb_per_s"
    for ranks in 8 16 64 256; do
        "$orrery" collective --ranks $ranks --bytes 1KiB..8GiB --cluster dgx-h100 --format csv --quiet |
            columns bytes,nccl_seconds |
            awk -F, -v ranks=$ranks 'NR > 1 { printf "%d,%s,%.4f\n", ranks, $1, $1 / $2 * 2 * (ranks - 1) / ranks / 1e9 }'
    done
} > "$out/bandwidth.csv"
draw bandwidth "Bus bandwidth of an all-reduce" "DGX H100, algorithm and protocol as NCCL chooses them, counted as nccl-tests does"

# MFU over tensor and pipeline degrees.
"$orrery" sweep $examples/gpt3-175b.json --set parallel.data=auto --vary parallel.tensor=1,2,4,8 \
    --vary parallel.pipeline=1,2,4,8,16,32 --format csv --quiet |
    columns parallel.tensor,parallel.pipeline,mfu,fits | awk -F, '
        function power(n,   k) { for (k = 0; 2 ^ k < n; k++); return k }
        NR == 1 { print "column,row,mfu_percent,fits,shown"; next }
        { printf "%d,%d,%.4f,%d,%s\n", power($2), power($1), $3 * 100, $4 == "true",
              $4 == "true" ? sprintf("%.1f %%", $3 * 100) : "no room" }' > "$out/heat.csv"
draw heat "MFU over tensor and pipeline degrees" "GPT-3 175B on 1,024 A100s, data parallelism follows; white: does not fit in memory"

[ -n "$pictures" ] || exit 0

# Figures of the commands themselves.
keep() { # folder, figure; the CSVs of spans and levels are large and stay out
    mv "$1/$2.png" "$out/$2.png"
    case $2 in pipeline | memory) ;; *) mv "$1/$2.csv" "$out/$2.csv" ;; esac
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$orrery" plot $examples/gpt3-175b.json --quiet --output "$work" --set name="GPT-3 175B on 256 A100s, no bubble to speak of" \
    --set cluster.nodes=32 --set parallel.pipeline=4 --set parallel.data=8 --set parallel.schedule=zb-v \
    --set parallel.virtual_stages=2 --set training.global_batch=192 > /dev/null
keep "$work" pipeline
"$orrery" plot $examples/gpt3-175b.json --quiet --output "$work" --vary training.micro_batch=1..8 > /dev/null
for figure in memory waterfall sweep; do keep "$work" $figure; done
"$orrery" plan $examples/plan-sc21-175b.json --quiet --deadline "30 days" --plot "$work" > /dev/null
keep "$work" scaling
"$orrery" validate scenarios/measurements/*.json --quiet --plot "$work" > /dev/null
keep "$work" ledger
