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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Columns of a CSV by name, in the order asked for.
columns() {
    awk -F, -v wanted="$1" '
        NR == 1 { n = split(wanted, names, ","); for (i = 1; i <= NF; i++) at[$i] = i; print wanted; next }
        { row = ""; for (i = 1; i <= n; i++) row = row (i > 1 ? "," : "") $at[names[i]]; print row }'
}

draw() { # name heading caption [script [its variables]]
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
${5:-}
load '$here/${4:-$1}.gp'
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
draw bubble "Pipeline bubble against micro-batches" "GPT-3 175B on 64 A100s, tensor 8, pipeline 8; interleaved with three chunks a rank"

# What training a model must hold against what a GPU has; the year of each, and where it is from, in years.csv.
join_years() { # kind, bytes a unit of the list
    "$orrery" list "$1s" --format csv | awk -F, -v kind="$1" -v bytes="$2" '
        NR == FNR { if ($1 == kind) { year[$2] = $3; label[$2] = $4; shown[$2] = $5 } next }
        $1 in year { printf "%s,%s,%.4g,%s\n", year[$1], shown[$1], $2 * bytes / 1073741824, label[$1] }' $here/years.csv -
}
{ echo "year,name,gib,label"; join_years model 16; } > "$out/years.csv"
{ echo "year,name,gib,label"; join_years accelerator 1; } > "$out/years-extra.csv"
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

# The best configuration of each model on each number of nodes: what "auto" becomes, one field after the other.
"$orrery" sweep $examples/llama3-70b-h100.json --vary model=llama3.2-1b,llama3-8b,llama3-70b,llama3-405b \
    --vary cluster.nodes=1,4,16,64,256 --set parallel.tensor=auto --set parallel.pipeline=auto --set parallel.data=auto \
    --set parallel.zero=auto --set parallel.context=1 --set parallel.schedule=1f1b --set parallel.virtual_stages=1 \
    --set training.micro_batch=auto --set training.recompute=auto --set training.global_batch=2048 --format csv --quiet |
    columns model,cluster.nodes,mfu,reserved_bytes,fits | awk -F, '
        NR == 1 { print "column,row,mfu_percent,reserved_gib,fits,nodes,model"; next }
        !($1 in row) { row[$1] = rows++ }
        !($2 in at) { at[$2] = places++ }
        { printf "%d,%d,%.4f,%.4f,%d,%d,%s\n", at[$2], row[$1], $3 * 100, $4 / 1073741824, $5 == "true", $2, $1 }' > "$out/best.csv"
draw best "The best configuration of four models on 8 to 2,048 H100s" \
    "2,048 sequences of 8,192 tokens a step; degrees, micro-batch and recomputation are chosen"

# Scaling with the interval of published runs.
{
    echo "kind,gpus,ktokens_per_s_per_gpu,low,high"
    for nodes in 4 8 16 32 64 128 256 512; do
        for kind in strong weak; do
            batch=512
            [ $kind = strong ] || batch=$((nodes * 16))
            "$orrery" sweep $examples/llama3-70b-h100.json --set parallel.data=auto --set training.global_batch=$batch \
                --vary cluster.nodes=$nodes --format csv --quiet 2> /dev/null || true
        done |
            columns gpus,tokens_per_s_per_gpu,step_s,interval_low_s,interval_high_s | awk -F, -v place=0 '
            $1 == "gpus" { place++; next }
            $2 != "" { printf "%s,%d,%.5f,%.5f,%.5f\n", place == 1 ? "strong" : "weak", $1, $2 / 1e3, $2 / 1e3 * $3 / $5, $2 / 1e3 * $3 / $4 }'
    done | sort -t, -k1,1 -k2,2n
} > "$out/strong.csv"
draw strong "Llama 3 70B on 32 to 4,096 H100s" "tensor 4, context 2, pipeline 4, interleaved; data parallelism follows the GPUs"

# What the peak of the first pipeline rank is made of, by layer.
"$orrery" run $examples/gpt3-175b.json --memory "$work/layers.csv" --by layer --quiet > /dev/null
awk -F, '
    NR == 1 { print "place,layer,weights_gib,gradients_gib,optimizer_gib,activations_gib,workspace_gib"; next }
    $1 == 0 { name = $3 == "" ? "the rank" : $3; if (!(name in seen)) { seen[name] = 1; order[n++] = name }; bytes[name, $4] += $7 }
    END {
        for (i = 0; i < n; i++) {
            printf "%d,%s", i, order[i] == "embedding" ? "emb." : order[i]
            split("weights gradients optimizer activations workspace", kind, " ")
            for (k = 1; k <= 5; k++) printf ",%.4f", bytes[order[i], kind[k]] / 1073741824
            print ""
        }
    }' "$work/layers.csv" > "$out/layers.csv"
draw layers "What fills the first pipeline rank at its peak, by layer" "GPT-3 175B on 1,024 A100s: eight micro-batches are alive; every layer holds the same"

# Timelines: spans of a trace as lanes. Reads tid, start, duration, name; prints lane, start, end (ms), kind.
spans() { # awk condition and lane: 'tid == 0 { lane = 1 }'
    awk '
        function field(key,   at, rest) { at = index($0, "\"" key "\":"); rest = substr($0, at + length(key) + 3); sub(/[,}].*/, "", rest); gsub(/"/, "", rest); return rest }
        /"ph":"X"/ {
            tid = field("tid"); start = field("ts") / 1000; end = start + field("dur") / 1000; name = field("name"); lane = 0
            sub(/ [0-9]+$/, "", name)
            '"$1"'
            gsub(/ /, "_", name)
            if (lane > 0) printf "%d,%.4f,%.4f,%s\n", lane, start, end, name
        }' "$work/trace.json"
}
bucketless="--set execution.framework.data_parallel.bucket_bytes=0 --set execution.framework.data_parallel.first_bucket_bytes=0"
{
    echo "lane,start_ms,end_ms,kind"
    # shellcheck disable=SC2086
    "$orrery" run $examples/ddp_naive_vs_bucket.json $bucketless --trace "$work/trace.json" --quiet > /dev/null
    spans 'if (name ~ /forward|backward|optimizer/) lane = 1; if (name ~ /reduce/) lane = 2'
    "$orrery" run $examples/ddp_naive_vs_bucket.json --trace "$work/trace.json" --quiet > /dev/null
    spans 'if (name ~ /forward|backward|optimizer/) lane = 3; if (name ~ /reduce/) lane = 4'
} > "$out/waitfree.csv"
draw waitfree "Wait-free backpropagation" \
    "VGG-16 on 8 V100s over 25 Gbit/s: all gradients after the backward, or each bucket once it is there" lanes \
    "lanes='at_the_end,_GPU at_the_end,_NIC wait-free,_GPU wait-free,_NIC'; kinds='forward backward reduce_gradients optimizer'; span=670"
zero3="--set model=llama3-8b --set cluster.nodes=1 --set parallel.tensor=1 --set parallel.context=1 --set parallel.pipeline=1
    --set parallel.virtual_stages=1 --set parallel.schedule=1f1b --set parallel.data=8 --set parallel.zero=3
    --set execution.framework=torchtitan --set training.global_batch=8 --set parallel.sequence_parallel=false
    --set execution.overlap=[\"grad_reduce\",\"param_gather\"]"
{
    echo "lane,start_ms,end_ms,kind"
    # shellcheck disable=SC2086
    "$orrery" run $examples/llama3-70b-h100.json $zero3 --trace "$work/trace.json" --quiet > /dev/null
    spans 'if (tid == 0) lane = 1; if (name ~ /gather/) lane = 2; if (name ~ /reduce/) lane = 3; if (name ~ /norm/) lane = 0'
} > "$out/zero3.csv"
draw zero3 "ZeRO-3 (FSDP) over a step" "Llama 3 8B on 8 H100s: each layer's weights are gathered while the layer before it runs" lanes \
    "lanes='GPU gathers reductions'; kinds='forward backward gather_parameters reduce_gradients optimizer'; span=910"

[ -n "$pictures" ] || exit 0

# Figures of the commands themselves.
keep() { # folder, figure; the CSVs of spans and levels are large and stay out
    mv "$1/$2.png" "$out/$2.png"
    case $2 in pipeline | memory | ranks | errors | utilisation | stragglers | topology | interruptions) ;; *) mv "$1/$2.csv" "$out/$2.csv" ;; esac
}
"$orrery" plot $examples/gpt3-175b.json --quiet --output "$work" --set name="GPT-3 175B on 256 A100s, no bubble to speak of" \
    --set cluster.nodes=32 --set parallel.pipeline=4 --set parallel.data=8 --set parallel.schedule=zb-v \
    --set parallel.virtual_stages=2 --set training.global_batch=192 > /dev/null
keep "$work" pipeline
"$orrery" plot $examples/mt-nlg-530b.json --what pipeline --quiet --output "$work" > /dev/null
mv "$work/pipeline.png" "$out/pipeline-deep.png"
"$orrery" plot $examples/gpt3-175b.json --what tornado --quiet --output "$work" > /dev/null
keep "$work" tornado
"$orrery" plot $examples/gpt3-175b.json --what roofline,ranks,errors --quiet --output "$work" > /dev/null
for figure in roofline ranks errors; do keep "$work" $figure; done
"$orrery" plot $examples/gpt3-175b.json --quiet --output "$work" --vary training.micro_batch=1..8 > /dev/null
for figure in memory waterfall sweep; do keep "$work" $figure; done
"$orrery" plan $examples/plan-sc21-175b.json --quiet --deadline "30 days" --plot "$work" > /dev/null
keep "$work" scaling
for machine in dgx-a100-80gb:A100:1.5 dgx-h100:H100:2.5 dgx-b200:B200:4.5; do
    preset=${machine%%:*} usd=${machine##*:} name=${machine%:*}
    printf '{"preset": "%s", "name": "%s at %s USD an hour", "usd_per_gpu_hour": %s}\n' "$preset" "${name#*:}" "$usd" "$usd" \
        > "$work/${name#*:}.json"
done
"$orrery" plan $examples/plan-sc21-175b.json --quiet --deadline "30 days" --cluster "$work/A100.json,$work/H100.json,$work/B200.json" \
    --plot "$work/cost" > /dev/null
keep "$work/cost" cost
"$orrery" validate scenarios/measurements/*.json --quiet --plot "$work" > /dev/null
keep "$work" ledger
"$orrery" plot $examples/zero_offload_10b_v100.json --what utilisation --quiet --output "$work" > /dev/null
keep "$work" utilisation
"$orrery" plot $examples/zero_offload_10b_v100.json --what utilisation --quiet --output "$work" --set offload.scheme=none \
    --set name="10B on one V100 as if it had room: nothing offloaded" > /dev/null
mv "$work/utilisation.png" "$out/utilisation-none.png"
"$orrery" plot $examples/zero_infinity_1t_512.json --what utilisation --quiet --output "$work" > /dev/null
mv "$work/utilisation.png" "$out/utilisation-disks.png"
"$orrery" plot $examples/campaign-llama3-405b.json --what goodput,interval,spares,interruptions --quiet --output "$work" > /dev/null
for figure in goodput interval spares interruptions; do keep "$work" $figure; done

# From one scenario to another, part by part; many jobs on one cluster.
"$orrery" compare $examples/gpt3-175b.json $examples/gpt3-175b-interleaved.json --quick --plot "$work" > /dev/null
keep "$work" difference
"$orrery" jobs --seed 1 --plot "$work" > /dev/null
keep "$work" occupation
"$orrery" plot $examples/stragglers-llama3-405b.json --what stragglers --quiet --output "$work" > /dev/null
keep "$work" stragglers
"$orrery" plot --what topology --cluster dgx-h100 --ranks 64 --quiet --output "$work" > /dev/null
keep "$work" topology
"$orrery" plot $examples/network-llama3-405b.json --what traffic --quiet --output "$work" > /dev/null
keep "$work" traffic
workers() { # name, then scenario and flags
    name=$1
    shift
    "$orrery" plot "$@" --what workers --quiet --output "$work" > /dev/null
    mv "$work/workers.png" "$out/workers-$name.png"
}
workers sync $examples/ps_async_stragglers.json --set parallel.parameter_server.mode=sync --set name="ResNet-50 on 8 workers, sync"
workers async $examples/ps_async_stragglers.json --set name="ResNet-50 on 8 workers, async"
workers wfbp $examples/ps_wfbp_3layer.json --set name="Three layers, wait-free backpropagation"

# What fills the memory when all weights are trained, adapters, or adapters beside narrow weights.
"$orrery" plot $examples/llama2-70b-qlora.json --set model=llama2-7b --set name="Llama 2 7B on one H100" \
    --what finetune --quiet --output "$work" > /dev/null
mv "$work/finetune.png" "$out/finetune.png"
$here/shots.sh "$orrery" "$out"
