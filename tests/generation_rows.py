#!/usr/bin/env python3
"""Measured generation beside its prediction: tests/generation_rows.py ORRERY ROWS.json [--rows]

ROWS.json is a list of published runs (posttraining/decode.json of the shared reference data). A row's prediction is what
`orrery generate` says of its model, machine, layout, lengths and precision. Where a row leaves the tensor degree open,
the fastest that fits is taken. Prints errors of tokens a second by source, and the median and 90th percentile of all
rows; and once more without those that APART gives a reason to doubt, whose groups and figures are printed all the same.
"""
import json, math, os, subprocess, sys, tempfile

SCENARIOS = os.environ.get("ORRERY_SCENARIOS") or os.path.join(os.path.dirname(__file__), "..", "scenarios")

MODELS = {"Llama 4 Scout": "llama4-scout-109b", "Llama 4 Maverick": "llama4-maverick-400b", "Qwen3-235B-A22B": "qwen3-235b-a22b",
          "DeepSeek R1 0528": "deepseek-v3", "GPT-OSS 120B": "gpt-oss-120b", "GPT-OSS 20B": "gpt-oss-20b",
          "Llama-2-70B-chat": "llama2-70b", "Mixtral-8x7B-Instruct": "mixtral-8x7b", "Llama-3.1-405B-Instruct": "llama3-405b",
          "Llama-3.1-8B-Instruct": "llama3-8b", "MiniMax-M2.5": "minimax-m2"}
GPUS = {"H100": "h100-sxm5-80gb", "H200": "h200-sxm5-141gb", "B200": "b200-sxm-180gb", "GB200": "gb200-nvl72",
        "GB300": "gb300-nvl72", "GH200": "gh200-96gb", "MI300X": "mi300x-192gb", "MI325X": "mi325x-256gb", "L40S": "l40s-pcie",
        "RTX PRO 6000": "rtx-pro-6000-pcie"}
GRACE = {"GB200": "gb200-nvl72", "GB300": "gb300-nvl72", "GH200": "gh200"}  # clusters whose host is a Grace
MEMORY = {"GH200": 144e9}  # the 144 GB version
# mean tokens of prompts where rows leave them out: the data set's own figure
PROMPTS = {"Llama-2-70B-chat": 156, "Mixtral-8x7B-Instruct": 145}
APART = {
    "MiniMax-M2.5": "the folder's README says that it likely contains errors; its steps take longer for 32 sequences (37 ms) than "
                    "for 48 (24 ms) of the same engine, and four prompts of 1,024 tokens take 0.5 s on eight H200",
    "Mixtral-8x7B-Instruct": "nobody has published how long its prompts are (up to 2,048 tokens); answers are 146",
}
BILLIONS = {"Llama 4 Scout": 109, "Llama 4 Maverick": 400, "Qwen3-235B-A22B": 235, "GPT-OSS 120B": 117, "GPT-OSS 20B": 21}
LONGEST = {"Llama-2-70B-chat": 1024, "Mixtral-8x7B-Instruct": 1024, "Llama-3.1-405B-Instruct": 2000}


def precision(row):
    if "GPT-OSS" in row["model"]:  # experts in mxfp4: widened to 16 bits on Hopper, beside 8-bit activations on Blackwell
        return "bf16" if row["gpu"] in ("H100", "H200") else "mxfp8"
    if row["model"] in ("DeepSeek R1 0528", "MiniMax-M2.5") and row["gpu"] in ("H100", "H200"):
        return "fp8-blockwise"  # as the checkpoints are published: a scale for 128 x 128 weights
    words = str(row["precision"].get("weights") or ("fp8" if row["gpu"] != "B200" else "fp4")).lower()
    return "nvfp4" if "fp4" in words else "fp8" if "fp8" in words else "bf16"


def cache_dtype(row, framework):
    if row["source_group"].startswith("trtllm") and row["gpu"] in ("H100", "H200") and "DeepSeek" not in row["model"]:
        return "bf16"  # left to the checkpoint ("auto"): 8-bit ones of NVIDIA name no format of caches, 4-bit ones fp8
    return row["precision"].get("kv_cache") or ("fp8" if framework == "tensorrt-llm" else "bf16")


def shipped(kind, name):
    with open(os.path.join(SCENARIOS, kind, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def bench_limits(row, cache):
    """Most sequences and tokens a step that trtllm-bench sets: TensorRT-LLM tensorrt_llm/bench/build/tuning.py. Formats that it
    does not know, as mxfp4, count as 16 bits; DeepSeek's caches are not in its formula."""
    if row["model"] not in BILLIONS:
        return {}
    model, gpus = shipped("models", MODELS[row["model"]]), int(row["gpus"])
    work, dense = row["workload"], {"nvfp4": 0.5, "fp8": 1}.get(precision(row), 2)
    token = 2 * model["layers"] * max(gpus, model["kv_heads"]) * model["head_dim"] * (1 if cache == "fp8" else 2)
    memory = gpus * shipped("accelerators", GPUS[row["gpu"]])["memory_bytes"] - 1e9 * BILLIONS[row["model"]] * dense
    if memory <= 0:
        return {}  # refused by the rule: the page's run had limits of its own
    batch = min(4096, 0.95 * memory / token / (work["input_length"] + work["output_length"]))
    tokens = min(32768, batch * (1 + work["input_length"] / work["output_length"]))
    step = 32 if batch < 256 else 128 if batch < 1024 else 256
    unit = 256 if tokens < 4096 else 512 if tokens < 8192 else 1024
    return {"max_sequences": max(64, step * math.ceil(batch / step)), "prefill_tokens": max(2048, unit * math.ceil(tokens / unit))}


def router(row):
    """Prompts are random tokens, which no router has been trained on. What aiconfigurator draws experts' loads from: x^-a from
    0.01 to 2, a = 1.2, of DeepSeek 1.01 (collector/helper.py, sdk/models); Dirichlet of the same spread."""
    return {"distribution": "dirichlet", "concentration": 0.6 if row["model"].startswith("DeepSeek") else 0.4}


def scenario(row, tensor, expert, gpus):
    apart = tensor == 1 and expert > 1
    engine = row["engine"].lower()
    framework = "vllm" if "vllm" in engine else "tensorrt-llm"
    cache = cache_dtype(row, framework)
    out = {"name": row["id"], "model": {"preset": MODELS[row["model"]], "max_positions": 131072},
           "cluster": {"accelerator": GPUS[row["gpu"]], "gpus_per_node": min(gpus, 8), "nodes": max(1, gpus // 8)},
           "training": {"precision": precision(row), "sequence_length": 128, "global_batch": max(1, gpus // tensor)},
           "parallel": {"tensor": tensor, "expert": expert, "data": gpus // tensor},
           "execution": {"framework": {"preset": framework, "engine": {"cache_dtype": cache}}}}
    if row["gpu"] in GRACE:
        out["cluster"]["host"] = {"launch_frac": shipped("clusters", GRACE[row["gpu"]])["host"]["launch_frac"]}
    if row["source_group"].startswith("trtllm"):
        out["execution"]["framework"]["engine"].update(bench_limits(row, cache), pads_batches=True)  # cuda_graph_config of the pages
        if row["moe"]:
            out["training"]["router"] = router(row)
        # all-to-all over NVLink, as later versions choose (select_alltoall_method_type); gpt-oss on Hopper runs Triton's kernels, which
        # end in a reduce-scatter of all rows: fused_moe_triton.py
        if row["source_group"] == "trtllm_b" and not ("GPT-OSS" in row["model"] and row["gpu"] in ("H100", "H200")):
            out["execution"]["framework"]["engine"]["gathers_rows"] = False
    if "GPT-OSS" in row["model"]:
        out["execution"]["framework"]["engine"]["weights_dtype"] = "fp4"
    if row["gpu"] in MEMORY:
        out["cluster"]["accelerator"] = {"preset": GPUS[row["gpu"]], "memory_bytes": MEMORY[row["gpu"]]}
    return out


def layouts(row, gpus):
    parallel = row["parallel"]
    scheme = parallel.get("scheme") or ""
    if parallel.get("attention_dp") and parallel.get("ep"):
        return [(1, parallel["ep"])]
    if scheme.startswith("DEP"):
        return [(1, int(scheme[3:]))]
    tensor = parallel.get("tp")
    if row["source_group"] == "trtllm_a" and row["moe"] and tensor > 1:
        return [(1, tensor)]  # the page's command: MoE models run with enable_attention_dp and --ep
    degrees = [tensor] if tensor else [t for t in (1, 2, 4, 8) if t <= gpus and gpus % t == 0]
    return [(t, e) for t in degrees for e in ((1, t) if row["moe"] and t > 1 else (1,))]


def flags(row):
    work = row["workload"]
    prompt = work.get("input_length") or work.get("mean_input_length") or PROMPTS.get(row["model"], 512)
    answer = work.get("output_length") or work.get("mean_output_length_of_run")
    prompts = work.get("requests") or {1000: 3000}.get(work.get("input_length")) or {"Llama-2-70B-chat": 24576, "Mixtral-8x7B-Instruct": 15000,
                                       "Llama-3.1-405B-Instruct": 8313, "Llama-3.1-8B-Instruct": 13368}.get(row["model"], 10000)
    if row["source_group"].startswith("mlperf"):  # LoadGen sends as many samples as ten minutes take, and a tenth more
        prompts = min(999999, max(prompts, 1.1 * 600 * row["measured"]["samples_per_s"]))
    out = ["--prompts", str(round(prompts)), "--prompt-tokens", str(round(prompt)), "--answer-tokens", str(round(answer))]
    if row["model"] in LONGEST:
        out += ["--answer-log-sd", "0.6", "--answer-most", str(LONGEST[row["model"]])]
    if work.get("concurrency"):
        out += ["--most-sequences", str(max(1, round(work["concurrency"] / (row["parallel"].get("attention_dp") or 1))))]
    if "vllm" in row["engine"].lower() and (row["source_group"] == "mlperf_inference_v4.1" or row["gpu"] == "L40S"):
        out += ["--most-sequences", "256"]  # vLLM of 2024, and today's below 70 GiB: engine/arg_utils.py
    if row.get("max_batch_per_replica"):
        out += ["--most-sequences", str(row["max_batch_per_replica"])]
    return out


def ask(binary, row, layout):
    gpus = max(1, int(row["gpus"]))
    tensor, expert = layout
    gpus = gpus // (tensor * expert) * (tensor * expert) if gpus % 8 else gpus
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario(row, tensor, expert, gpus), file)
        file.flush()
        done = subprocess.run([binary, "generate", file.name, "--format", "json", "--check", "--quiet"] + flags(row),
                              capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


def summary(name, errors):
    sizes = sorted(map(abs, errors))
    if sizes:
        print(f'{name}: {len(sizes)} rows, median {100 * sizes[len(sizes) // 2]:.1f} %, P90 {100 * sizes[int(0.9 * len(sizes))]:.1f} %, '
              f'bias {100 * sum(errors) / len(errors):+.1f} %')


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, path = sys.argv[1:3]
    rows = json.load(open(path))
    errors, apart, skipped, groups = [], {}, {}, {}
    for row in rows:
        if row["model"] not in MODELS or row["gpu"] not in GPUS:
            skipped.setdefault(row["gpu"] + " " + row["model"], 0)
            skipped[row["gpu"] + " " + row["model"]] += 1
            continue
        answers = [ask(binary, row, layout) for layout in layouts(row, int(row["gpus"]))]
        good = [a for a in answers if isinstance(a, dict)]
        if not good:
            skipped.setdefault(answers[0][-110:], 0)
            skipped[answers[0][-110:]] += 1
            continue
        best = max(good, key=lambda a: a["tokens_per_s_per_gpu"])
        error = best["tokens_per_s_per_gpu"] / row["measured"]["output_tokens_per_s_per_gpu"] - 1
        (apart.setdefault(row["model"], []) if row["model"] in APART else errors).append(error)
        groups.setdefault(f'{row["source_group"]} {row["gpu"]} {row["model"]} {precision(row)}', []).append(error)
        if "--rows" in sys.argv:
            print(f'{row["id"][:70]:70s} {row["measured"]["output_tokens_per_s_per_gpu"]:9.0f} {best["tokens_per_s_per_gpu"]:9.0f} '
                  f'{100 * error:+7.1f} %')
    for name, found in sorted(groups.items()):
        print(f'{name:60s} {len(found):4d} rows, mean {100 * sum(found) / len(found):+6.1f} %, '
              f'mean |error| {100 * sum(map(abs, found)) / len(found):5.1f} %')
    summary("all", errors + [error for found in apart.values() for error in found])
    for model, found in apart.items():
        summary(f"apart, {model} ({APART[model]})", found)
    if apart:
        summary("all but these", errors)
    for why, count in skipped.items():
        print(f'skipped {count}: {why}')


main()
