#!/usr/bin/env python3
"""Figures of the docs that stand in sentences and tables, held against a replay of today.

check_figures.py [--fix] ORRERY SOURCE. A row of FIGURES names a page, a sentence around figures (one group each; a space
is any space or line break) and what stands in the groups today. TABLES are rows of a page by the runs that they are of:
a row's count must be that of the runs, and its last cells are today's; those of the first replay are never changed.
--fix puts today's figures in; without it every figure that differs is told, and the exit status is 1.
"""
import glob
import itertools
import json
import os
import re
import subprocess
import sys

BLIND = "docs/accuracy/blind.md"
DEFAULTS = "docs/accuracy/defaults.md"


BLIND_SETS = ["published", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
WITH_DEFAULTS = ["dgxc_benchmarking", "megatron_bridge", "sc21_megatron", "simumax_b200", "torchtitan", "second", "third"]


class Replay:
    """The ledger and the blind sets, replayed once: rows and summary of each file by its name, every row by its id."""

    def __init__(self, orrery, source):
        ledger = sorted(glob.glob(os.path.join(source, "scenarios/measurements/*.json")))
        paths = ledger + [os.path.join(source, "scenarios/blind", name + ".json") for name in BLIND_SETS]
        names = [os.path.basename(path)[:-len(".json")] for path in paths]
        bare = [path for name, path in zip(names, paths) if name in WITH_DEFAULTS]
        runs = [subprocess.Popen([orrery, "validate", *words], stdout=subprocess.PIPE, text=True)
                for words in ([*paths, "--format", "json"], [*bare, "--software-defaults"])]
        output, defaults = (run.communicate()[0] for run in runs)
        if any(run.returncode for run in runs):
            sys.exit("check_figures: orrery validate fails")
        replay = json.loads(output)
        rows = iter(replay["rows"])
        self.summary = dict(zip(names, replay["sources"]))
        self.rows = {name: list(itertools.islice(rows, part["rows"])) for name, part in self.summary.items()}
        self.row = {row["id"]: row for part in self.rows.values() for row in part}
        self.ledger = names[:len(ledger)]
        self.reserve = replay["memory_reserve"]
        found = re.findall(r"^ *(\w+)\.json +\d+ +([0-9.]+) % +([0-9.]+) %", defaults, re.MULTILINE)
        self.defaults = {name: (stated, bare) for name, stated, bare in found}


def percent(value, signed=False):
    return ("%+.1f" if signed else "%.1f") % (100 * value)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def both(replay):
    """Mean error and bias of the second and third set together."""
    errors = [row["error_frac"] for row in replay.rows["second"] + replay.rows["third"]]
    return [percent(mean(map(abs, errors))), percent(mean(errors), True)]


def macro(replay):
    """Mean of the ledger's sources' mean errors."""
    return [percent(mean(replay.summary[name]["mape"] for name in replay.ledger))]


def whole(error):
    """A signed error in whole percents."""
    return "%+d" % round(100 * error) if round(100 * error) else "0"


def errors(*ids, key="error_frac"):
    """The error of each of these rows."""
    return lambda replay: [whole(replay.row[name][key]) for name in ids]


def extremes(*prefixes, key="error_frac"):
    """The least and the largest error of the rows whose ids begin so."""
    def today(replay):
        found = [row[key] for name, row in replay.row.items() if name.startswith(prefixes)]
        return [whole(min(found)), whole(max(found))]
    return today


def of_source(name, *keys):
    """Mean error of a source or set (or other keys of its summary)."""
    return lambda replay: [percent(replay.summary[name][key], key == "bias") for key in keys or ["mape"]]


def between(replay, key="mape"):
    """Whole percents around the mean errors of the sets that others measured."""
    found = [100 * replay.summary[name][key] for name in ("second", "third", "sixth", "seventh")]
    return [str(round(min(found))), str(round(max(found)))]


def far_off(replay):
    """How many runs of the blind sets are over 20 % off, and of how many."""
    found = [abs(row["error_frac"]) for name in BLIND_SETS for row in replay.rows[name]]
    return [str(sum(error > 0.2 for error in found)), str(len(found))]


def reserve(part, whole_part):
    """How many runs a share of memory_reserve is."""
    return lambda replay: [str(round(replay.reserve[part] * replay.reserve[whole_part]))]


FIGURES = [
    ("README.md", r"(\d+) published runs of sixteen sources",
     lambda r: [str(sum(r.summary[name]["rows"] for name in r.ledger))]),
    ("README.md", r"The mean of the sources' mean errors is ([0-9.]+) %", macro),
    ("docs/ACCURACY.md", r"a prediction is off by ([0-9.]+) %", macro),
    ("docs/ACCURACY.md", r"software's source is read\s+by (\d+) to (\d+) %", between),
    (BLIND, r"replays them: ([0-9.]+) % mean error today", of_source("published")),
    (BLIND, r"today ([0-9.]+) %, bias ([-+0-9.]+) %\.", both),
    (BLIND, r"boards had their links and power; ([-+0-9]+) to ([-+0-9]+) % today", extremes("swissai-llama3-8b")),
    (BLIND, r"(\d+) of (\d+) runs are over 20 % off today", far_off),
    (BLIND, r"at first, and is by (\d+) to (\d+) % now", lambda r: between(r, "memory_mape")),
    (BLIND, r"over 64 GPUs and more \| ([-+0-9]+) to ([-+0-9]+) %",
     extremes("modalities-leonardo-2.7b-64-mbs1-full", "modalities-leonardo-2.7b-256", "modalities-leonardo-6.7b-128",
              "modalities-leonardo-13b-64", "modalities-mn5-2.7b-64", "modalities-mn5-2.7b-512-mbs2-full", "modalities-mn5-13b")),
    (BLIND, r"64K and 128K tokens \| ([-+0-9]+) and ([-+0-9]+) % \| unknown; 512K tokens are at ([-+0-9]+) %",
     errors(*("easycontext-llama2-7b-8a100-ring-%dk" % tokens for tokens in (64, 128, 512)))),
    (BLIND, r"Muon; AdamW \| ([-+0-9]+) %; ([-+0-9]+) %",
     errors("modded-nanogpt-first-muon-8h100", "modded-nanogpt-adam-8h100")),
    (BLIND, r"ZeRO-2 on B200 \| ([-+0-9]+) % \| on H200 ([-+0-9]+) %",
     errors("ml-eng-llama3.1-8b-8b200-8k-zero2", "ml-eng-llama3.1-8b-8h200-8k-zero2")),
    (BLIND, r"Two runs remain at ([-+0-9]+) and ([-+0-9]+) %:",
     errors("torch-h100-ddp-gpt2-124m-b8x1-s1024", "torch-h100-ddp-gpt2-124m-b4x8-s1024")),
    (BLIND, r"early Transformer Engine \| ([-+0-9]+) %", errors("te-issue72-gpt2-xl-fp8-mi300x")),
    (BLIND, r"Swiss AI's 300M \| ([-+0-9]+) %", errors("swissai-llama3-300m-32xgh200")),
    (BLIND, r"16 and 32 V100s \| ([-+0-9]+) and ([-+0-9]+) %", errors("dlperf-v100-mp16-3072x16", "dlperf-v100-mp32-3072x32")),
    (BLIND, r"eight stages over two nodes \| ([-+0-9]+) %", errors("nanotron-bench-llama-1b-16gpu-dp2-tp1-pp8-mbz4")),
    (BLIND, r"on 32 V100s \| ([-+0-9]+) to ([-+0-9]+) %", extremes("bmtrain-")),
    (BLIND, r"A800 \(issue 16\) \| ([-+0-9]+) %", errors("megatron-llama-issue16-13b-16a800")),
    (BLIND, r"\(a gist\) \| ([-+0-9]+) to ([-+0-9]+) %", extremes("gist-")),
    (BLIND, r"LUMI, MI250X \| ([-+0-9]+) to ([-+0-9]+) %", extremes("lumi-")),
    (BLIND, r"MaxText on A3 \| ([-+0-9]+) to ([-+0-9]+) %", extremes("maxtext-llama2-7b-")),
    (BLIND, r"torch_xla on TPU v6e \| ([-+0-9]+) to ([-+0-9]+) %", extremes("torchprime-")),
    (BLIND, r"and Llama 3\.1 8B \| ([-+0-9]+) and ([-+0-9]+) %", errors("gaudi2-llama2-13b-16-fp8", "gaudi2-llama3.1-8b-8-fp8")),
    (BLIND, r"ZeRO over 1,024 ranks \| ([-+0-9]+) %", errors("internlm-7b-1024gpu-zall-num4")),
    (BLIND, r"two slices of v6e \| ([-+0-9]+) %", errors("tpu-recipes-llama3.1-405b-2xv6e-256")),
    (BLIND, r"KempnerForge, 70B \| ([-+0-9]+) to ([-+0-9]+) %", extremes("kempner-70b-")),
    (BLIND, r"GPUs, without overlap \| ([-+0-9]+) and ([-+0-9]+) %", errors("megatron-llama-13b-256gpu", "megatron-llama-13b-512gpu")),
    (BLIND, r"H100, bf16 and fp8 \| ([-+0-9]+) and ([-+0-9]+) %", errors("pax-5b-h100-te-bf16", "pax-5b-h100-te-fp8")),
    (BLIND, r"fp8 \| -?\d+ and -?\d+ % \| A100 is at ([-+0-9]+) %", errors("pax-5b-a100-te-bf16")),
    (BLIND, r"pull request 1690 \| ([-+0-9]+) to ([-+0-9]+) %", extremes("titan-pr1690-")),
    (BLIND, r"FlagPerf's Megatron runs \| ([-+0-9]+) to ([-+0-9]+) %",
     extremes("flagperf-llama2-70b", "flagperf-llama3", "flagperf-qwen1.5", key="memory_error_frac")),
    ("docs/REPORT.md", r"Today (\d+) rows have a memory\. (\d+) measured at most",
     lambda r: [str(r.reserve["rows"]), *reserve("seen_covered_frac", "rows")(r)]),
    ("docs/REPORT.md", r"of the (\d+) whose peak is of tensors alone, in a configuration that is published too, (\d+) stay",
     lambda r: [str(r.reserve["needs"]), *reserve("covered_frac", "needs")(r)]),
    ("docs/REPORT.md", r"within prediction and reserve \((\d+) with a reserve", reserve("left_out_covered_frac", "needs")),
    ("docs/REPORT.md", r"(\d+) are called \"does not fit\"", reserve("does_not_fit_frac", "rows")),
    ("docs/REPORT.md", r"(\d+) \"at the edge\"", reserve("at_the_edge_frac", "rows")),
    (DEFAULTS, r"torchtitan \(([0-9.]+) and ([0-9.]+) %\)", lambda r: r.defaults["torchtitan"]),
    (DEFAULTS, r"sc21 \(([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["sc21_megatron"]),
    (DEFAULTS, r"bridge \(([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["megatron_bridge"]),
    (DEFAULTS, r"dgxc \(([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["dgxc_benchmarking"]),
    (DEFAULTS, r"SimuMax's 17 rows \(([0-9.]+) and ([0-9.]+) %\)", lambda r: r.defaults["simumax_b200"]),
    (DEFAULTS, r"\(third ([0-9.]+) and ([0-9.]+) %, second", lambda r: r.defaults["third"]),
    (DEFAULTS, r"%, second ([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["second"]),
]

# Present errors on the pages of single sources.
PAGES = {
    "bloom_176b_prequel": [
        (r"L830, tensor 4, micro-batches of 1, ([-+0-9]+) %", errors("bloom-h13824l78a64-384-tp4pp12dp8-mb1-g2048-fp16-L830"))],
    "dgxc_benchmarking": [
        (r"340B on H100 was \+14 %, is ([-+0-9]+) %", errors("dgxc-v25.04-nemotron4-340b-bf16-1024h100")),
        (r"70B fp8 with pipeline 8 \(([-+0-9]+) %\)", errors("dgxc-v25.04-llama3.1-70b-fp8-512h100")),
        (r"Maverick on 512 H100 \(([-+0-9]+) % in bf16, ([-+0-9]+) % in fp8",
         errors("dgxc-v25.05-llama4-maverick-bf16-512h100", "dgxc-v25.05-llama4-maverick-fp8-512h100")),
        (r"DeepSeek-V3 on GB200 \(([-+0-9]+) %; -63", errors("dgxc-v25.05.04-deepseek-v3-bf16-128gb200")),
        (r"GB200, same release \(([-+0-9]+) to ([-+0-9]+) %,",
         extremes("dgxc-v25.05-llama4-maverick-bf16-128gb200", "dgxc-v25.05-llama4-maverick-fp8-128gb200",
                  "dgxc-v25.05-llama4-maverick-fp8-256gb200")),
        (r"24\.11: fp8 ([-+0-9]+), ([-+0-9]+), ([-+0-9]+) % on 256, 512 and 1,024 GPUs",
         errors(*("dgxc-v24.11.1-gpt3-175b-fp8-%dh100" % gpus for gpus in (256, 512, 1024)))),
        (r"1,024 GPUs, bf16 ([-+0-9]+) to ([-+0-9]+) % on any number", extremes("dgxc-v24.11.1-gpt3-175b-bf16"))],
    "megatron_bridge": [
        (r"nvfp4 is ([-+0-9]+) % on GB200 and ([-+0-9]+) % on GB300",
         errors("mbridge-26.02.01-pret-llama3-405b-gb200-256-nvfp4-tp4pp16cp1ep1-g1536",
                "mbridge-26.06-pret-llama3-405b-gb300-256-nvfp4-tp4pp8cp1ep1-g1536")),
        (r"GB200, 25\.09 \(([-+0-9]+) %\)", errors("mbridge-25.09-pret-llama3-405b-gb200-128-mxfp8-tp4pp8cp2ep1-g64-alt"))],
    "mlperf": [
        (r"and -15 to ([-+0-9]+), ([-+0-9]+) and ([-+0-9]+) %, whose",
         errors(*("mlperf-v6.0-dsv3-gb200-%d" % gpus for gpus in (2048, 4096, 8192)))),
        (r"from \+8 and \+13 to ([-+0-9]+) and ([-+0-9]+) %\.",
         errors("mlperf-v6.0-dsv3-gb300-4096-cw", "mlperf-v6.0-dsv3-gb300-8192-cw")),
        (r"512 GPUs of several racks is ([-+0-9]+) and ([-+0-9]+) %",
         errors("mlperf-v5.1-8b-gb300-512-fp8-cs", "mlperf-v5.1-8b-gb200-512-fp8-cs")),
        (r"8B on MI355X is ([-+0-9]+) %", errors("mlperf-v5.1-8b-mi355x-8-fp8-amd")),
        (r"NeMo 23\.04 \(one row, ([-+0-9]+) %\)", errors("mlperf-v3.0-gpt3-h100-3584-cw"))],
    "mosaic_mpt": [
        (r"70B on 64 of them \(([-+0-9]+) %\)\. On 80 GB it is 30B with 8,192 tokens \(([-+0-9]+) %",
         errors("mpt-70b-s2048-64xa100_40gb-bf16-mb2-gbs128", "mpt-30b-s8192-8xa100_80gb-amp_bf16-mb1-gbs168"))],
    "mt_nlg": [(r"With 1 the error is ([-+0-9]+) to ([-+0-9]+) %", extremes("mtnlg-"))],
    "nanotron_playbook": [
        (r"1\.34B with pipeline 2 \(([-+0-9]+), ([-+0-9]+) %\)", errors("nanotron-llama-1.34b-2n", "nanotron-llama-1.34b-8n")),
        (r"with it they are at ([-+0-9]+) and ([-+0-9]+) %", errors("nanotron-llama-80b-4n", "nanotron-llama-80b-8n")),
        (r"log_reports_reserved`\): ([0-9.]+) % mean", of_source("nanotron_playbook", "memory_mape"))],
    "nemo_launcher_a100": [(r"175B on 64 nodes \(([-+0-9]+) %\)", errors("nfl-a100-3579cdb3-175b-64n")),
                           (r"without tensor parallelism \(([-+0-9]+) %\)", errors("nfl-a100-3579cdb3-5b-2n"))],
    "sc21_megatron": [(r"174\.6B is at ([-+0-9]+) to ([-+0-9]+) %", extremes("sc21-t2-zero3-174.6b")),
                      (r"529\.6B at ([-+0-9]+) to ([-+0-9]+) %", extremes("sc21-t2-zero3-529.6b"))],
    "simumax_b200": [
        (r"context rows \(([-+0-9]+) to ([-+0-9]+) %\)",
         extremes("simumax-b200-llama3_405b_l4_tp2_cp4", "simumax-b200-llama3_70b_l12_tp1_cp8",
                  "simumax-b200-llama3_70b_l12_tp2_cp4"))],
    "torchtitan": [
        (r"within 3 % at 2 but ([-+0-9]+) and ([-+0-9]+) % at 4 and 8",
         errors("titan-8b-fsdp2-cp4-s131072", "titan-8b-fsdp1-cp8-s262144")),
        (r"8B with tensor 8 in fp8: ([-+0-9]+) to ([-+0-9]+) %;", extremes("titan25-8b-tp8-fp8")),
        (r"%; 70B ([-+0-9]+) to ([-+0-9]+) %\. Transposing", extremes("titan25-70b-tp8-fp8"))],
}
FIGURES += [("docs/accuracy/%s.md" % page, *figure) for page, figures in PAGES.items() for figure in figures]

# Last columns of a table, which are today's; those before them are of the first replay and stay.
SOURCES = ["error", "covered", "memory"]
MEASURED_HERE = ["error", "bias", "memory", "covered"]
SETS = ["error", "bias", "covered"]

# A file of runs, the columns, and for each row of the table its first words and how the names of its runs begin.
TABLES = [
    *[(BLIND, name, SETS, [("[%s](#" % name, [""])]) for name in BLIND_SETS],
    (BLIND, "fourth", MEASURED_HERE, [("fourth, H200", ["torch-h200"]), ("fourth, H100", ["torch-h100"])]),
    (BLIND, "fifth", MEASURED_HERE, [("fifth, H100", [""])]),
    (BLIND, "second", SOURCES, [
        ("DLPerf, Megatron-LM 2021, V100", ["dlperf-v100-"]),
        ("DLPerf, NVIDIA's BERT base, V100", ["dlperf-bert"]),
        ("LiBai issue 475", ["libai-", "hf-gpt2"]),
        ("InternLM 7B", ["internlm-"]),
        ("fms-fsdp Llama 7B to 70B, A100", ["fms-fsdp-a100"]),
        ("fms-fsdp Llama 7B to 70B, H100", ["fms-fsdp-h100"]),
        ("TinyLlama", ["tinyllama"]),
        ("FlagPerf with Megatron", ["flagperf-llama2-70b", "flagperf-llama3", "flagperf-qwen1.5"]),
        ("FlagPerf with DeepSpeed", ["flagperf-llama2-7b", "flagperf-baichuan2"]),
        ("Colossal-AI Gemini", ["colossalai"]),
        ("KempnerForge", ["kempner-"]),
        ("OLMo-core", ["olmo-core"]),
        ("Megatron-LLaMA 13B", ["megatron-llama"]),
        ("Transformer Engine issue 72", ["te-issue72"]),
        ("Skywork 13B, GLM-130B", ["skywork", "glm-130b"]),
        ("all 103", [""]),
    ]),
    (BLIND, "third", SOURCES, [
        ("flash-attention's training code", ["flashattention"]),
        ("ATorch Llama-2 7B, FSDP", ["atorch-llama2-7b-fsdp"]),
        ("ATorch Llama-2 7B, DeepSpeed's pipelines", ["atorch-llama2-7b-ds3d"]),
        ("PaddleNLP Llama 7B in FlagPerf, A100 80 GB", ["paddle-llama-7b-a100-80gb"]),
        ("PaddleNLP Llama 7B in FlagPerf, A100 40 GB", ["paddle-llama-7b-a100-40gb"]),
        ("paxml on JAX", ["pax-"]),
        ("Swiss AI Megatron-LM", ["swissai-"]),
        ("ms-swift Qwen2.5-14B", ["swift-qwen2.5"]),
        ("ms-swift Qwen3-30B-A3B", ["swift-qwen3"]),
        ("MegaScale, GPT-NeoX-20B", ["megascale-", "gpt-neox"]),
        ("all 53", [""]),
    ]),
    (BLIND, "sixth", SOURCES, [
        ("nanoGPT issue 110", ["nanogpt-"]),
        ("llm.c, GPT-2", ["llmc-"]),
        ("modded-nanogpt, GPT-2 shapes", ["modded-nanogpt-"]),
        ("nanochat d34", ["nanochat-"]),
        ("JAX-Toolbox, MaxText", ["jaxtoolbox-"]),
        ("tpu-recipes, MaxText", ["tpu-recipes-"]),
        ("torchprime, torch_xla", ["torchprime-"]),
        ("EasyLM, OpenLLaMA", ["easylm-"]),
        ("nanotron's benchmark of layouts", ["nanotron-bench-"]),
        ("Megatron-LLaMA issues", ["megatron-llama-"]),
        ("Hugging Face blog, Granite 7B", ["hf-blog-"]),
        ("torchtitan pull request 1690", ["titan-pr1690-"]),
        ("pith-train issue 79", ["pith-train-"]),
        ("NeMo 24.12's performance summary", ["nemo-24.12-"]),
        ("NVIDIA's BERT of 2019", ["nvidia-bert-large-"]),
        ("EasyContext, Llama 2 7B", ["easycontext-"]),
        ("all 63", [""]),
    ]),
    (BLIND, "seventh", SOURCES, [
        ("Modalities, GPT 2.7B to 13B, 8 to 256 A100", ["modalities-leonardo-"]),
        ("Modalities, GPT 2.7B to 13B, 4 to 512 H100", ["modalities-mn5-"]),
        ("NVIDIA's BERT in PyTorch", ["nvbert-pt-"]),
        ("LitGPT with Thunder", ["litgpt-"]),
        ("a gist of LLaMA-7B with DeepSpeed", ["gist-"]),
        ("BMTrain's table", ["bmtrain-"]),
        ("Fast-LLM, 135M to 8B", ["fastllm-"]),
        ("Colossal-AI, 7B and 70B", ["colossalai-"]),
        ("MaxText's own tables", ["maxtext-"]),
        ("Google Cloud's recipes, MaxText", ["gcp-a4-", "gcp-a3u-maxtext-"]),
        ("Google Cloud's recipes, NeMo", ["gcp-a3u-nemo-", "gcp-a3m-nemo-"]),
        ("Alpa, GPT 2.6B", ["alpa-"]),
        ("ml-engineering's upgrade guide", ["ml-eng-"]),
        ("torchtune, Llama 3.2 3B", ["torchtune-"]),
        ("LUMI, Megatron-DeepSpeed", ["lumi-"]),
        ("Intel's Megatron-DeepSpeed, Gaudi 2", ["gaudi2-"]),
        ("all 70", [""]),
    ]),
    (BLIND, "eighth", SOURCES, [
        ("maxtext-slurm, MaxText on 64 MI355X",
         ["maxtext-slurm-llama", "maxtext-slurm-dsv3-64mi355x", "maxtext-slurm-kimi"]),
        ("maxtext-slurm, MaxText on 64 B200", ["maxtext-slurm-dsv3-64b200"]),
        ("Google's recipes of 2025, MaxText", ["tpu-recipes-"]),
        ("yangwhale's fork", ["yangwhale-"]),
        ("a wiki of experiments", ["tpuwiki-"]),
        ("MaxText's guide", ["maxtext-docs-"]),
        ("torchao's table", ["torchao-"]),
        ("ROCm's Transformer Engine", ["te-issue"]),
        ("optimum-habana", ["optimum-habana-"]),
        ("MLPerf 5.1, LoRA", ["mlperf-v5.1-lora-"]),
        ("tprimat, Primus", ["tprimat-"]),
        ("MarinFold, NeMo", ["marinfold-"]),
        ("all 65", [""]),
    ]),
]


def cells_today(rows, columns):
    errors = [row["error_frac"] for row in rows]
    memory = [abs(row["memory_error_frac"]) for row in rows if row["memory_error_frac"] is not None]
    cells = {"error": percent(mean(map(abs, errors))) + " %",
             "bias": percent(mean(errors), True) + " %",
             "covered": str(sum(bool(row["inside_interval"]) for row in rows)),
             "memory": "%.0f %%" % (100 * mean(memory)) if memory else ""}
    return [cells[column] for column in columns]


def check_table(page, text, columns, wanted, rows, complain):
    """The page with today's cells; `complain` is called with what is wrong."""
    seen = []
    for label, prefixes in wanted:
        runs = [row for row in rows if row["id"].startswith(tuple(prefixes))]
        pattern = re.compile(r"^\| " + re.escape(label) + r"[^\n]*\|$", re.MULTILINE)
        lines = [line for line in pattern.findall(text) if line.count("|") >= 10]
        if len(lines) != 1:
            complain("%s: %d rows of tables begin with \"%s\"" % (page, len(lines), label))
            continue
        cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
        if cells[1] != str(len(runs)):
            complain("%s: %s: %s rows; the set has %d" % (page, label, cells[1], len(runs)))
        today = cells_today(runs, columns)
        first, kept = cells[:-len(today)], cells[-len(today):]
        if kept != today:
            complain("%s: %s: %s; today %s" % (page, label, " | ".join(kept), " | ".join(today)))
            line = "| " + " | ".join(first + today) + " |"
            text = text.replace(lines[0], line.replace("|  |", "| |"))
        seen += [row["id"] for row in runs if prefixes != [""]]
    if seen and sorted(seen) != sorted(row["id"] for row in rows):
        complain("%s: a run is in no row, or in two, of the table of \"%s\"" % (page, wanted[0][0]))
    return text


def check_figure(page, text, pattern, today, complain):
    """The page with today's figures in the groups of the sentence."""
    found = list(re.finditer(pattern.replace(" ", r"\s+"), text))
    if len(found) != 1:
        complain("%s: %d sentences are like \"%s\"" % (page, len(found), pattern))
        return text
    match = found[0]
    for group in range(len(today), 0, -1):
        if match.group(group) != today[group - 1]:
            complain("%s: %s; today %s" % (page, " ".join(match.group(0).split()), today[group - 1]))
        text = text[:match.start(group)] + today[group - 1] + text[match.end(group):]
    return text


def main():
    words = sys.argv[1:]
    fix = "--fix" in words
    orrery, source = [word for word in words if word != "--fix"]
    replay, complaints, texts = Replay(orrery, source), [], {}

    def text_of(page):
        if page not in texts:
            with open(os.path.join(source, page), encoding="utf-8") as file:
                texts[page] = file.read()
        return texts[page]

    for page, pattern, value in FIGURES:
        texts[page] = check_figure(page, text_of(page), pattern, list(value(replay)), complaints.append)
    for page, name, columns, wanted in TABLES:
        texts[page] = check_table(page, text_of(page), columns, wanted, replay.rows[name], complaints.append)
    for complaint in complaints:
        print(complaint)
    if fix:
        for page, text in texts.items():
            with open(os.path.join(source, page), "w", encoding="utf-8") as file:
                file.write(text)
    return 1 if complaints and not fix else 0


if __name__ == "__main__":
    sys.exit(main())
