#!/usr/bin/env python3
"""Figures of the docs that stand in sentences and tables, held against a replay of today.

check_figures.py [--fix] ORRERY SOURCE. A row of FIGURES names a page, a sentence around figures (one group each; a space
is any space or line break) and what stands in the groups today. TABLES are rows of a page by the runs that they are of:
a row's count must be that of the runs, and its last cells are today's mean error, covered runs and error of memory.
--fix puts today's figures in; without it every figure that differs is told, and the exit status is 1.
"""
import glob
import json
import os
import re
import subprocess
import sys

BLIND = "docs/accuracy/blind.md"
DEFAULTS = "docs/accuracy/defaults.md"


class Replay:
    """The ledger and the blind sets, replayed once each."""

    def __init__(self, orrery, source):
        blind = [os.path.join(source, "scenarios/blind", name + ".json") for name in ("published", "second", "third", "sixth", "seventh")]
        ledger = sorted(glob.glob(os.path.join(source, "scenarios/measurements/*.json")))
        self.ledger = self._run(orrery, ledger)
        self.published, self.second, self.third, self.sixth, self.seventh = (self._run(orrery, [path]) for path in blind)
        text = subprocess.run([orrery, "validate", *ledger, *blind, "--software-defaults"], capture_output=True, text=True,
                              check=True).stdout
        reserve = subprocess.run([orrery, "validate", *ledger, *blind, "--reserve"], capture_output=True, text=True,
                                 check=True).stdout
        self.reserve = [number for line in ("predicted \\+ seen: +", "predicted \\+ reserve: +", "sources alone: +")
                        for number in re.search(line + r"(\d+) of (\d+)", reserve).groups()]
        found = re.findall(r"^ *(\w+)\.json +\d+ +([0-9.]+) % +([0-9.]+) %", text, re.MULTILINE)
        self.defaults = {name: (stated, bare) for name, stated, bare in found}

    @staticmethod
    def _run(orrery, paths):
        command = [orrery, "validate", *paths, "--format", "json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def percent(value, signed=False):
    return ("%+.1f" if signed else "%.1f") % (100 * value)


def both(replay):
    """Rows of the second and third set."""
    return replay.second["rows"] + replay.third["rows"]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def swissai_8b(replay):
    """The least and the largest error of Swiss AI's runs of 8B, in whole percents."""
    errors = [round(100 * row["error_frac"]) for row in replay.third["rows"] if row["id"].startswith("swissai-llama3-8b")]
    return ["%+d" % error if error else "0" for error in (min(errors), max(errors))]


def between(replay):
    """Whole percents around the errors of the sets that others measured."""
    errors = [100 * part["overall"]["mape"] for part in (replay.second, replay.third, replay.sixth)]
    return [str(round(min(errors))), str(round(max(errors)))]


FIGURES = [
    ("README.md", r"(\d+) published runs of sixteen sources", lambda r: [str(r.ledger["overall"]["rows"])]),
    ("README.md", r"The mean of the sources' mean errors is ([0-9.]+) %",
     lambda r: [percent(r.ledger["overall"]["macro_mape"])]),
    ("docs/ACCURACY.md", r"a prediction is off by ([0-9.]+) %", lambda r: [percent(r.ledger["overall"]["macro_mape"])]),
    ("docs/ACCURACY.md", r"software's source is read\s+by (\d+) to (\d+) %", between),
    (BLIND, r"replays them: ([0-9.]+) % mean error today", lambda r: [percent(r.published["overall"]["mape"])]),
    (BLIND, r"today ([0-9.]+) %, bias ([-+0-9.]+) %\.",
     lambda r: [percent(mean(abs(row["error_frac"]) for row in both(r))),
                percent(mean(row["error_frac"] for row in both(r)), True)]),
    (BLIND, r"boards had their links and power; ([-+0-9]+) to ([-+0-9]+) % today", swissai_8b),
    ("docs/REPORT.md", r"Today (\d+) rows have a memory\. (\d+) measured at most",
     lambda r: [r.reserve[1], r.reserve[0]]),
    ("docs/REPORT.md", r"of the (\d+) whose peak is of tensors alone, in a configuration that is published too, (\d+) stay",
     lambda r: [r.reserve[3], r.reserve[2]]),
    ("docs/REPORT.md", r"within prediction and reserve \((\d+) with a reserve", lambda r: [r.reserve[4]]),
    (DEFAULTS, r"torchtitan \(([0-9.]+) and ([0-9.]+) %\)", lambda r: r.defaults["torchtitan"]),
    (DEFAULTS, r"sc21 \(([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["sc21_megatron"]),
    (DEFAULTS, r"bridge \(([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["megatron_bridge"]),
    (DEFAULTS, r"dgxc \(([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["dgxc_benchmarking"]),
    (DEFAULTS, r"SimuMax's 17 rows \(([0-9.]+) and ([0-9.]+) %\)", lambda r: r.defaults["simumax_b200"]),
    (DEFAULTS, r"\(third ([0-9.]+) and ([0-9.]+) %, second", lambda r: r.defaults["third"]),
    (DEFAULTS, r"%, second ([0-9.]+) and ([0-9.]+)\)", lambda r: r.defaults["second"]),
]

# First words of a row, and how the names of its runs begin.
TABLES = [
    (BLIND, "second", [
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
    (BLIND, "third", [
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
    (BLIND, "sixth", [
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
    (BLIND, "seventh", [
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
]


def cells_today(rows):
    memory = [abs(row["memory_error_frac"]) for row in rows if row["memory_error_frac"] is not None]
    return [percent(mean(abs(row["error_frac"]) for row in rows)) + " %",
            str(sum(bool(row["inside_interval"]) for row in rows)),
            "%.0f %%" % (100 * mean(memory)) if memory else ""]


def check_table(page, text, name, wanted, rows, complain):
    """The page with today's cells; `complain` is called with what is wrong."""
    seen = []
    for label, prefixes in wanted:
        runs = [row for row in rows if row["id"].startswith(tuple(prefixes))]
        pattern = re.compile(r"^\| " + re.escape(label) + r"[^\n]*\|$", re.MULTILINE)
        lines = [line for line in pattern.findall(text) if line.count("|") >= 10]
        if len(lines) != 1:
            complain("%s: %d rows of set %s begin with \"%s\"" % (page, len(lines), name, label))
            continue
        cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
        if cells[1] != str(len(runs)):
            complain("%s: %s: %s rows; the set has %d" % (page, label, cells[1], len(runs)))
        today = cells_today(runs)
        if cells[-3:] != today:
            complain("%s: %s: %s; today %s" % (page, label, " | ".join(cells[-3:]), " | ".join(today)))
            line = "| " + " | ".join(cells[:-3] + today) + " |"
            text = text.replace(lines[0], line.replace("|  |", "| |"))
        seen += [row["id"] for row in runs if prefixes != [""]]
    if sorted(seen) != sorted(row["id"] for row in rows):
        complain("%s: set %s: a run is in no row of the table, or in two" % (page, name))
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
    for page, name, wanted in TABLES:
        texts[page] = check_table(page, text_of(page), name, wanted, getattr(replay, name)["rows"], complaints.append)
    for complaint in complaints:
        print(complaint)
    if fix:
        for page, text in texts.items():
            with open(os.path.join(source, page), "w", encoding="utf-8") as file:
                file.write(text)
    return 1 if complaints and not fix else 0


if __name__ == "__main__":
    sys.exit(main())
