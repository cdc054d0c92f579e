#!/usr/bin/env python3
"""Published steps of reinforcement learning beside what orrery predicts: rl_rows.py ORRERY [--scenario ID].

Reads rows of $ORRERY_SHARED/reference/posttraining/rl.json whose lengths are known, writes each as a scenario, and prints
measured and predicted seconds of the step and its phases. What the source leaves open is said in ASSUMED below, and is the
same for all rows of a source. With --scenario ID the scenario of one row is printed instead.
"""
import json
import math
import os
import statistics
import subprocess
import sys

ASSUMED = {
    "nemo_rl": "prompts of 150 tokens; log-normal answers of deviation 0.6, cut at the yaml's limit, whose mean after the cut is the "
               "measured one; packed micro-batches of that many tokens; recomputation of whole layers where the yaml "
               "checkpoints; colocated models move to fresh host memory and back, vLLM sleeps at level 1 (vllm_worker.py)",
    "verl_logs": "A100s by PCIe: peak from the printed MFU and tokens, and an update takes 1.5 s a micro-batch beside its tokens; "
                 "Hugging Face models under FSDP; vLLM without captured graphs, as the log says; log-normal answers of "
                 "deviation 0.6 cut at the limit",
    "dschat": "as many sequences a GPU as fit, of at most 1,024 in all (BenckmarkSetting.md), no fewer than scripts or a log have: so many are answered and trained on at "
              "once, and a step is as many of these as make 1,024; ZeRO-3 (1.3B: 2); adapters and tensor ranks of generation "
              "where the scripts have them; 256 tokens of prompt and answer; recomputation of whole layers, as most scripts have it (1.3B: the "
              "one of single_gpu), without which larger batches do not fit",
}
# AsyncLLM.from_engine_args runs with SchedulerConfig's own defaults, LLM with those of its class: NVIDIA-NeMo/RL pull request 4221
ASYNC_ENGINE = {"max_sequences": 128, "prefill_tokens": 2048}
FRESH = {"offloaded": True, "host_memory": "fresh"}

MODELS = {"LLAMA3.1_8B": "llama3-8b", "DeepSeek V3": "deepseek-v3", "Qwen3-30B3A": "qwen3-30b-a3b",
          "Qwen3-235B": "qwen3-235b-a22b", "Qwen3-32B": "qwen3-32b"}
CLUSTERS = {"H100": "dgx-h100", "GB200": "gb200-nvl72", "A100-40G": "dgx-a100-40gb", "A100-80G": "dgx-a100-80gb"}
GPUS_PER_NODE = {"GB200": 4}
OPT = {"1.3B": (24, 2048, 32, 8192), "6.7B": (32, 4096, 32, 16384), "13B": (40, 5120, 40, 20480),
       "30B": (48, 7168, 56, 28672), "66B": (64, 9216, 72, 36864), "175B": (96, 12288, 96, 49152),
       "350M": (24, 1024, 16, 4096)}
# least sequences a GPU and tensor ranks of generation, of step3_rlhf_finetuning/training_scripts; 1.3B: its log; 175B: as 66B
BATCH = {"1.3B": (8, 1), "6.7B": (4, 1), "13B": (16, 2), "30B": (4, 1), "66B": (4, 8), "175B": (4, 8)}
# Transformers' models of April 2023, before SDPA; log-probabilities of fp16 logits without their last token (ppo_trainer.py,
# gather_log_probs); 30 million live and prefetched parameters (ds_utils.py) are fewer than a product of 6.7B has
DSCHAT_TRAINING = {"preset": "transformers-deepspeed", "loss": {"kernel": "unfused-shifted-16bit"},
                   "data_parallel": {"prefetch_units": 0}}
# rl.json divides hours by the README's 131.9k queries; the settings' page has 264,292 samples, whose 512 tokens make the 135,317,504
# of both pages (67.5 M of either kind are 264k times 256)
DSCHAT_QUERIES = 131.9e3 / 264292
ADAPTERS = {"13B", "30B", "66B", "175B"}


def cluster(row, gpus):
    per_node = GPUS_PER_NODE.get(row["gpu"], 8)
    out = {"preset": CLUSTERS[row["gpu"]], "nodes": max(1, gpus // per_node)}
    if gpus < per_node:
        out["gpus_per_node"] = gpus
    elif row["gpu"] == "GB200":
        out["gpus_per_node"] = per_node
    return out


def before_cut(mean, log_sd, most):
    """Mean of log-normal lengths whose mean is `mean` once they are cut at `most`."""
    def cut(middle):
        phi = lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))
        at = (math.log(most) - middle) / log_sd
        return math.exp(middle + log_sd ** 2 / 2) * phi(at - log_sd) + most * (1 - phi(at))
    low, high = 0.0, math.log(100 * most)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if cut(middle) < mean else (low, middle)
    return round(math.exp(low + log_sd ** 2 / 2), 3)


def answers(mean, most):
    return {"mean": min(most, before_cut(mean, 0.6, most)), "log_sd": 0.6, "max": most}


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
    dapo = row["algorithm"] == "DAPO"
    extra = 3 if dapo else 1  # batch_multiplier of dapo-deepseek-v3-64n8g.yaml
    sequences = row["prompts"] * row["samples_per_prompt"]
    steps = [n for n in row["notes"] if n.startswith("train global batch")]
    batch = int(steps[0].split()[3].rstrip(":")) if steps else sequences
    used = float(row["gen"]["gpu_memory_utilization"] or 0.6)  # examples/configs/grpo_math_1B.yaml, which all recipes extend
    engine = {"memory_frac": used}
    if dapo:
        engine["captures_graphs"] = False  # enforce_eager
    if split.get("generation_gpus") or ("DeepSeek" in row["model"]["name"] and not dapo):
        engine.update(ASYNC_ENGINE)  # async_engine: true in these recipes
    rollout = {"parallel": {"tensor": row["gen"]["tp"] or 1}, "execution": {"framework": {"preset": "vllm", "engine": engine}}}
    apart = split.get("generation_gpus")
    if apart:
        rollout["nodes"] = apart // GPUS_PER_NODE.get(row["gpu"], 8)
    roles = {"rollout": rollout if apart else {**rollout, **FRESH}}
    if not dapo:  # reference_policy_kl_penalty 0.01
        roles["reference"] = FRESH
    if not apart:
        roles["actor"] = FRESH
    scenario = {
        "schema": 1, "name": row["id"], "model": model, "cluster": cluster(row, train),
        "training": {"micro_batch": 1, "recompute": "full" if row["train"]["activation_checkpointing"] else "none",
                     "precision": "bf16" if row["train"]["precision"] == "bf16" else "fp8"},
        "parallel": {"tensor": tp, "context": cp, "expert": min(ep, train // pp), "pipeline": pp, "zero": 1},
        "execution": {"framework": "megatron-core"},
        "workload": {"preset": "dapo" if dapo else "grpo",
                     "mini_batches": max(1, sequences // batch), "micro_batch_tokens": limit,
                     "generation": {"prompts": row["prompts"] * extra, "samples_per_prompt": row["samples_per_prompt"],
                                    "kept_frac": 1 / extra + 1e-6 if extra > 1 else 1, "prompt_tokens": prompt,
                                    "answer_tokens": answers(row["mean_sequence_length"] - prompt, limit - prompt)},
                     "roles": roles}}
    if "0.5" in row["source_group"] and row["gpu"] == "GB200" and "DeepSeek" in row["model"]["name"]:
        # sequence_packing.enabled: false in v0.5.0's grpo-deepseek-v3-32n4g.yaml and -64n4g-async-1off.yaml
        del scenario["workload"]["micro_batch_tokens"]
        scenario["workload"]["padded"] = True
    if tp > 1:
        scenario["parallel"]["sequence_parallel"] = True
    ahead = split.get("off_policy_steps", 0)
    if ahead:
        # weights change under answers, but prompts of the next batch wait for them: async_utils.py, _should_pause_for_generation_limits
        scenario["workload"]["staleness_steps"] = ahead
    return scenario


def verl_log(row):
    if row["model"].get("layers") is None or row["gpus"] != 8:
        return None
    engine = {"memory_frac": float(row["gen"]["gpu_memory_utilization"]), "captures_graphs": False}
    rollout = {"parallel": {"tensor": row["gen"]["tp"]}, "execution": {"framework": {"preset": "vllm", "engine": engine}}, **FRESH}
    return {
        "schema": 1, "name": row["id"], "model": "qwen2.5-7b",
        "cluster": {"accelerator": "a100-pcie-80gb", "gpus_per_node": 8, "nodes": 1},
        "training": {"micro_batch": int(row["train"]["micro_batch_per_gpu"]), "recompute": "full"},
        "parallel": {"zero": 3}, "execution": {"framework": "transformers-fsdp"},
        "workload": {"preset": "dapo", "mini_batches": row["prompts"] // int(row["train"]["mini_batch"]),
                     "generation": {"prompts": row["prompts"], "samples_per_prompt": row["samples_per_prompt"],
                                    "prompt_tokens": row["mean_prompt_length"],
                                    "answer_tokens": answers(row["mean_response_length"], row["max_response_length"])},
                     "roles": {"rollout": rollout}}}


def opt(size):
    layers, hidden, heads, ffn = OPT[size]
    return {"name": f"opt-{size.lower()}", "layers": layers, "hidden": hidden, "heads": heads, "ffn_hidden": ffn,
            "vocab": 50272, "max_positions": 2048, "tied_embeddings": True, "position": "learned", "norm": "layernorm",
            "biases": True, "gated_mlp": False}


def dschat(row, batch=1):
    size = row["model"]["name"].split("-")[1]
    if size not in OPT:
        return None
    tensor = BATCH[size][1]
    training = {"sequence_length": 512, "micro_batch": batch, "precision": "fp16", "recompute": "full"}
    if size in ADAPTERS:
        training.update({"task": "lora", "adapter": {"rank": 128}})
    return {
        "schema": 1, "name": row["id"], "model": opt(size), "cluster": cluster(row, row["gpus"]),
        "training": training, "parallel": {"zero": 2 if size == "1.3B" else 3},
        "execution": {"framework": DSCHAT_TRAINING, "attention": "unfused"},
        "workload": {"preset": "ppo",
                     "keeps_outputs": True,  # output.logits and past_key_values of actor and reference: generate_experience
                     "generation": {"prompts": min(1024, batch * row["gpus"]), "prompt_tokens": 256, "answer_tokens": {"mean": 256},
                                    "engine": "deepspeed-chat"},
                     "roles": {"rollout": {"parallel": {"tensor": tensor}},
                               "critic": {"model": opt("350M")}, "reward": {"model": opt("350M")}}}}


def scenario_of(row):
    if row["source_group"].startswith("nemo_rl"):
        return nemo(row)
    if row["source_group"].startswith("verl_logs"):
        return verl_log(row)
    if row["source_group"] == "dschat":
        return dschat(row)
    return None


def run(orrery, scenario):
    done = subprocess.run([orrery, "run", "-", "--format", "json"], input=json.dumps(scenario), capture_output=True, text=True,
                          check=False)
    return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr.strip())


def ask(orrery, row, scenario):
    """The scenario that was asked and its answer; None with why."""
    if row["source_group"] != "dschat":
        return (scenario, *run(orrery, scenario))
    batch, least = 1024 // row["gpus"], BATCH[row["model"]["name"].split("-")[1]][0]
    while batch > least:
        answer, _ = run(orrery, dschat(row, batch))
        if answer and answer["fits"]:
            break
        batch //= 2
    return (dschat(row, batch), *run(orrery, dschat(row, batch)))


# Published pairs of one loop: on policy and one step off, colocated and apart, fewer GPUs and more, bf16 and fp8
PAIRS = [("nemorl-0.5-grpo-llama3.1_8b-h100-" + a, "nemorl-0.5-grpo-llama3.1_8b-h100-" + b) for a, b in
         (("bf16-16-off0", "bf16-16-off1"), ("bf16-16-off1", "fp8-16-off1"))]
PAIRS += [("nemorl-%s-grpo-deepseekv3-%s" % (v, a), "nemorl-%s-grpo-deepseekv3-%s" % (v, b)) for v, a, b in
          (("0.5", "h100-bf16-256-off0", "h100-bf16-512-off1"), ("0.5", "gb200-bf16-128-off0", "gb200-bf16-256-off1"),
           ("0.6", "h100-bf16-256-off0", "h100-bf16-512-off0"), ("0.6", "h100-bf16-512-off0", "h100-bf16-512-off1"),
           ("0.5", "h100-bf16-512-off1", "h100-fp8-512-off1"), ("0.6", "h100-bf16-512-off1", "h100-fp8-512-off1"),
           ("0.6", "gb200-bf16-128-off0", "gb200-bf16-256-off0"), ("0.6", "gb200-bf16-256-off0", "gb200-bf16-256-off1"))]
PAIRS += [("nemorl-0.5-grpo-qwen3-30b3a-gb200-bf16-16-off0", "nemorl-0.5-grpo-qwen3-30b3a-gb200-bf16-32-off1"),
          ("nemorl-0.6-grpo-qwen3-30b3a-gb200-bf16-16-off0", "nemorl-0.6-grpo-qwen3-30b3a-gb200-bf16-16-off1")]
PAIRS += [("dschat-%s-8xa10040g" % size, "dschat-%s-64xa10080g" % size) for size in ("1.3b", "6.7b", "13b")]


def print_pairs(steps):
    right = 0
    known = [(a, b) for a, b in PAIRS if a in steps and b in steps]
    for a, b in known:
        (measured_a, predicted_a), (measured_b, predicted_b) = steps[a], steps[b]
        same = (measured_b < measured_a) == (predicted_b < predicted_a)
        right += same
        if not same:
            print(f"direction wrong: {a} -> {b}: {measured_b / measured_a:.2f} measured, {predicted_b / predicted_a:.2f} predicted")
    print(f"directions: {right} of {len(known)} published pairs right")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    orrery = sys.argv[1]
    path = os.path.join(os.environ.get("ORRERY_SHARED", ""), "reference/posttraining/rl.json")
    only = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--scenario" else None
    if not os.path.exists(path):
        sys.exit(f"rl_rows.py: {path}: no such file; ORRERY_SHARED names the folder of reference data")
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    errors = {"step_s": [], "generation_s": [], "logprob_s": [], "update_s": []}
    by_source, steps = {}, {}
    names = {"generation_s": ["generate"], "logprob_s": ["old log-probs"], "update_s": ["update"]}
    for row in rows:
        scenario = scenario_of(row)
        if scenario is None:
            continue
        if only is not None:
            if row["id"] == only:
                print(json.dumps(scenario, indent=2))
            continue
        scenario, answer, why = ask(orrery, row, scenario)
        if answer is None:
            print(f"{row['id']:52} refused: {why[:160]}")
            continue
        times = 1024 / scenario["workload"]["generation"]["prompts"] if row["source_group"] == "dschat" else 1
        seconds = {p["name"]: p["seconds"] * times for p in answer["phases"]}
        line = f"{row['id']:52}"
        for key, errs in errors.items():
            measured = row["measured"].get(key)
            if measured and row["source_group"] == "dschat":
                by_source.setdefault("dschat by rl.json's count of queries", []).append(answer["step_s"] * times / measured - 1)
                measured *= DSCHAT_QUERIES
            predicted = answer["step_s"] * times if key == "step_s" else sum(seconds.get(n, 0) for n in names[key])
            if measured:
                errs.append(predicted / measured - 1)
                line += f" {key[:-2]} {measured:7.1f} {predicted:7.1f} {100 * errs[-1]:+5.0f} %"
                if key == "step_s":
                    steps[row["id"]] = (measured, predicted)
                    by_source.setdefault(row["source_group"].split("_0")[0], []).append(errs[-1])
            elif key != "step_s":
                line += f" ({key[:-2]} {predicted:.1f})"
        line += f" (sync {seconds.get('sync', 0):.1f})"
        print(line, answer["bound_by"], "" if answer["fits"] else "DOES NOT FIT")
    print_pairs(steps)
    for source, errs in by_source.items():
        print(f"{source:14} {len(errs):3} rows: mean error of the step {100 * statistics.mean(abs(e) for e in errs):.1f} %, "
              f"bias {100 * statistics.mean(errs):+.1f} %")
    for key, errs in errors.items():
        if errs:
            mean = statistics.mean(abs(e) for e in errs)
            print(f"{key:14} {len(errs):3} rows: mean error {100 * mean:.1f} %, median "
                  f"{100 * statistics.median(abs(e) for e in errs):.1f} %")


main()
