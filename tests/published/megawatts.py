#!/usr/bin/env python3
"""Throughput a megawatt of MLPerf's published training runs, beside the predicted one; and power as it was measured.

    megawatts.py ORRERY [SCENARIOS]

Published: tokens of a run's step over its measured seconds and over the power that vendors give for the node or rack that
it ran on. Predicted: the same tokens over the simulated step and over what `orrery plan` counts for its GPUs: boards,
hosts and cooling within the rack. MLPerf's runs themselves have no power; who measured it in training is below, where
Orrery counts what has to be supplied, which is more.
"""
import json
import os
import statistics
import subprocess
import sys

# Watts of a node or rack and its GPUs, as vendors give them. Sources: [DgxPower], [RackPages], [Nvl72Components]
VENDORS = {
    "a100-sxm4-80gb": ("dgx-a100-80gb", 6500, 8),
    "h100-sxm5-80gb": ("dgx-h100", 10200, 8),
    "h200-sxm5-141gb": ("dgx-h200", 10200, 8),
    "b200-sxm-180gb": ("dgx-b200", 14300, 8),
    "gb200-nvl72": ("gb200-nvl72", 120000, 72),
    "gb300-nvl72": ("gb300-nvl72", 142000, 72),
}
# Watts of a node or of a GPU with its share of it, while it trained. Sources: [Latif2024], [Patterson2021]
MEASURED = (
    ("HGX H100, the most that Llama 2 13B drew", "dgx-h100", 8400 / 8),
    ("V100 of GPT-3, mean of a system's share", "dgx-1", 330),
)
WITHIN = 0.15


def ask(orrery, *words):
    return json.loads(subprocess.run([orrery, *words, "--format", "json", "--quiet"], check=True, capture_output=True).stdout)


def watts_of(orrery, scenarios, cluster):
    """What a plan counts for one GPU of a cluster, with its share of the host: the model does not matter."""
    changes = ("training.tokens=300e9", "training.precision=fp16", "training.global_batch=4608",
               "parallel.data=auto", "execution.attention=unfused", f"cluster={cluster}")
    sets = [word for change in changes for word in ("--set", change)]
    example = os.path.join(scenarios, "examples", "gpt2-xl-1gpu.json")
    row = ask(orrery, "plan", example, *sets, "--gpus", "1152", "--ideal")["rows"][0]
    return row["power_w"] / row["gpus"]


def main():
    orrery = sys.argv[1]
    scenarios = sys.argv[2] if len(sys.argv) > 2 else os.environ["ORRERY_SCENARIOS"]
    path = os.path.join(scenarios, "measurements", "mlperf.json")
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    found = {row["id"]: row for row in ask(orrery, "validate", path)["rows"]}
    counted = {}
    errors = []
    print(f"{'run':<42} {'GPUs':>6} {'published':>10} {'predicted':>10}  tokens/s a kW")
    for row in rows if isinstance(rows, list) else rows["rows"]:
        scenario, result = row["scenario"], found[row["id"]]
        cluster = scenario["cluster"]
        accelerator = cluster.get("accelerator")
        name = accelerator if isinstance(accelerator, str) else (accelerator or {}).get("preset")
        name = name or cluster.get("preset")
        if name not in VENDORS or result["predicted_step_s"] is None:
            print(f"{row['id']:<42} left out: {result['skipped'] or name}")
            continue
        preset, rack_w, rack_gpus = VENDORS[name]
        if name not in counted:
            counted[name] = watts_of(orrery, scenarios, preset)
        gpus = cluster["gpus_per_node"] * cluster["nodes"]
        tokens = scenario["training"]["sequence_length"] * scenario["training"]["global_batch"]
        published = tokens / result["measured_step_s"] / (gpus * rack_w / rack_gpus / 1000)
        predicted = tokens / result["predicted_step_s"] / (gpus * counted[name] / 1000)
        errors.append(predicted / published - 1)
        print(f"{row['id']:<42} {gpus:>6} {published:>10.1f} {predicted:>10.1f}  {100 * errors[-1]:+.1f} %")
    inside = sum(abs(error) <= WITHIN for error in errors)
    mean = statistics.mean(abs(error) for error in errors)
    print(f"{len(errors)} runs: mean error {100 * mean:.1f} %; {inside} within {100 * WITHIN:.0f} %")
    for name, cluster, measured_w in MEASURED:
        counts_w = watts_of(orrery, scenarios, cluster)
        print(f"{name}: {measured_w:.0f} W measured, {counts_w:.0f} W counted ({100 * (counts_w / measured_w - 1):+.0f} %)")
        assert counts_w >= measured_w, "a plan must count at least what was drawn"
    assert len(errors) >= 30 and mean <= WITHIN / 2 and inside >= 0.9 * len(errors)


main()
