#!/usr/bin/env python3
"""Published steps of reinforcement learning beside what orrery predicts: rl_rows.py ORRERY [ROWS.json].

Reads rows of $ORRERY_SHARED/reference/posttraining/rl.json whose lengths are known, writes each as a scenario, and prints
measured and predicted seconds of the step and its phases. What the source leaves open is said in ASSUMED below, and is the
same for all rows of a source. With --scenario ID the scenario of one row is printed instead.
"""
import json
import os
import statistics
import subprocess
import sys

ASSUMED = {
    "nemo_rl": "prompts of 150 tokens, log-normal answers of deviation 0.6 cut at the yaml's limit; packed micro-batches "
               "of that many tokens; recomputation of whole layers",
    "verl_logs": "A100s, whose peak the printed MFU and tokens give; Hugging Face models under FSDP; log-normal answers of deviation 0.6 cut at the limit",
    "dschat": "ZeRO-3, 8 sequences to a micro-batch, answers of 256 tokens; one reward pass",
}

MODELS = {"LLAMA3.1_8B": "llama3-8b", "DeepSeek V3": "deepseek-v3", "Qwen3-30B3A": "qwen3-30b-a3b",
          "Qwen3-235B": "qwen3-235b-a22b", "Qwen3-32B": "qwen3-32b"}
CLUSTERS = {"H100": "dgx-h100", "GB200": "gb200-nvl72", "A100-40G": "dgx-a100-40gb", "A100-80G": "dgx-a100-80gb"}
GPUS_PER_NODE = {"GB200": 4}
OPT = {"1.3B": (24, 2048, 32, 8192), "6.7B": (32, 4096, 32, 16384), "13B": (40, 5120, 40, 20480),
       "30B": (48, 7168, 56, 28672), "66B": (64, 9216, 72, 36864), "175B": (96, 12288, 96, 49152),
       "350M": (24, 1024, 16, 4096)}


def cluster(row, gpus):
    per_node = GPUS_PER_NODE.get(row["gpu"], 8)
    out = {"preset": CLUSTERS[row["gpu"]], "nodes": max(1, gpus // per_node)}
    if gpus < per_node:
        out["gpus_per_node"] = gpus
    elif row["gpu"] == "GB200":
        out["gpus_per_node"] = per_node
    return out


def nemo(row):
    printed = row["train"].get("layout_as_printed", "")
    numbers = [int(x) for x in printed.strip("[]").split(",") if x.strip().isdigit()]
    tp, cp, ep, pp = (numbers + [1, 1, 1, 1])[:4] if len(numbers) < 6 else (*numbers[:3], numbers[5])
    model = MODELS.get(row["model"]["name"])
    if model is None or row["prompts"] is None:
        return None
    limits = [n for n in row["unknown"] if "bounded by total length" in n]
    limit = int(limits[0].split()[-1].replace(",", "")) if limits else 4096
    split = row["split"] or {}
    train = split.get("training_gpus") or row["gpus"]
    prompt = min(150, row["mean_sequence_length"] // 2)
    sequences = row["prompts"] * row["samples_per_prompt"]
    steps = [n for n in row["notes"] if n.startswith("train global batch")]
    batch = int(steps[0].split()[3].rstrip(":")) if steps else sequences
    used = float(row["gen"]["gpu_memory_utilization"] or 0.6)  # examples/configs/grpo_math_1B.yaml, which all recipes extend
    rollout = {"parallel": {"tensor": row["gen"]["tp"] or 1},
               "execution": {"framework": {"preset": "vllm", "engine": {"memory_frac": used}}}}
    if split.get("generation_gpus"):
        rollout["nodes"] = split["generation_gpus"] // GPUS_PER_NODE.get(row["gpu"], 8)
    scenario = {
        "schema": 1, "name": row["id"], "model": model, "cluster": cluster(row, train),
        "training": {"micro_batch": 1, "recompute": "full", "precision": "bf16" if row["train"]["precision"] == "bf16"
                     else "fp8"},
        "parallel": {"tensor": tp, "context": cp, "expert": min(ep, train // pp), "pipeline": pp, "zero": 1},
        "execution": {"framework": "megatron-core"},
        "workload": {"preset": "dapo" if row["algorithm"] == "DAPO" else "grpo",  # reference_policy_kl_penalty 0.01
                     "mini_batches": max(1, sequences // batch), "micro_batch_tokens": limit,
                     "generation": {"prompts": row["prompts"], "samples_per_prompt": row["samples_per_prompt"],
                                    "prompt_tokens": prompt,
                                    "answer_tokens": {"mean": row["mean_sequence_length"] - prompt, "log_sd": 0.6,
                                                      "max": limit - prompt}},
                     "roles": {"rollout": rollout}}}
    if tp > 1:
        scenario["parallel"]["sequence_parallel"] = True
    ahead = split.get("off_policy_steps", 0)
    if ahead:
        scenario["workload"].update({"staleness_steps": ahead, "in_flight": True})
    return scenario


def verl_log(row):
    if row["model"].get("layers") is None or row["gpus"] != 8:
        return None
    return {
        "schema": 1, "name": row["id"], "model": "qwen2.5-7b", "cluster": {"preset": "dgx-a100-80gb", "nodes": 1},
        "training": {"micro_batch": int(row["train"]["micro_batch_per_gpu"]), "recompute": "full"},
        "parallel": {"zero": 3}, "execution": {"framework": "transformers-fsdp"},
        "workload": {"preset": "dapo", "mini_batches": row["prompts"] // int(row["train"]["mini_batch"]),
                     "generation": {"prompts": row["prompts"], "samples_per_prompt": row["samples_per_prompt"],
                                    "prompt_tokens": row["mean_prompt_length"],
                                    "answer_tokens": {"mean": row["mean_response_length"], "log_sd": 0.6,
                                                      "max": row["max_response_length"]}},
                     "roles": {"rollout": {"parallel": {"tensor": row["gen"]["tp"]}}}}}


def opt(size):
    layers, hidden, heads, ffn = OPT[size]
    return {"name": f"opt-{size.lower()}", "layers": layers, "hidden": hidden, "heads": heads, "ffn_hidden": ffn,
            "vocab": 50272, "max_positions": 2048, "tied_embeddings": True, "position": "learned", "norm": "layernorm",
            "biases": True, "gated_mlp": False}


def dschat(row):
    size = row["model"]["name"].split("-")[1]
    if size not in OPT:
        return None
    return {
        "schema": 1, "name": row["id"], "model": opt(size), "cluster": cluster(row, row["gpus"]),
        "training": {"sequence_length": 512, "micro_batch": 8, "precision": "fp16", "recompute": "full"}, "parallel": {"zero": 3},
        "execution": {"framework": "deepspeed"},
        "workload": {"preset": "ppo",
                     "generation": {"prompts": 1024, "prompt_tokens": 256, "answer_tokens": {"mean": 256}},
                     "roles": {"rollout": {"parallel": {"tensor": 1 if row["gpus"] < 8 else 8}},
                               "critic": {"model": opt("350M")}, "reward": {"model": opt("350M")}}}}


def scenario_of(row):
    if row["source_group"].startswith("nemo_rl"):
        return nemo(row)
    if row["source_group"].startswith("verl_logs"):
        return verl_log(row)
    if row["source_group"] == "dschat":
        return dschat(row)
    return None


def main():
    orrery = sys.argv[1]
    path = os.path.join(os.environ.get("ORRERY_SHARED", ""), "reference/posttraining/rl.json")
    only = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--scenario" else None
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    errors = {"step_s": [], "generation_s": [], "logprob_s": [], "update_s": []}
    names = {"generation_s": ["generate"], "logprob_s": ["old log-probs"], "update_s": ["update"]}
    for row in rows:
        scenario = scenario_of(row)
        if scenario is None:
            continue
        if only is not None:
            if row["id"] == only:
                print(json.dumps(scenario, indent=2))
            continue
        run = subprocess.run([orrery, "run", "-", "--format", "json"], input=json.dumps(scenario), capture_output=True,
                             text=True, check=False)
        if run.returncode != 0:
            print(f"{row['id']:52} refused: {run.stderr.strip()[:160]}")
            continue
        answer = json.loads(run.stdout)
        seconds = {p["name"]: p["seconds"] for p in answer["phases"]}
        line = f"{row['id']:52}"
        for key, errs in errors.items():
            measured = row["measured"].get(key)
            predicted = answer["step_s"] if key == "step_s" else sum(seconds.get(n, 0) for n in names[key])
            if measured:
                errs.append(predicted / measured - 1)
                line += f" {key[:-2]} {measured:7.1f} {predicted:7.1f} {100 * errs[-1]:+5.0f} %"
            elif key != "step_s":
                line += f" ({key[:-2]} {predicted:.1f})"
        print(line, answer["bound_by"], "" if answer["fits"] else "DOES NOT FIT")
    for key, errs in errors.items():
        if errs:
            mean = statistics.mean(abs(e) for e in errs)
            print(f"{key:14} {len(errs):3} rows: mean error {100 * mean:.1f} %, median "
                  f"{100 * statistics.median(abs(e) for e in errs):.1f} %")


main()
