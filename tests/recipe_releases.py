#!/usr/bin/env python3
"""What Megatron-Bridge's performance recipes say, release by release, beside what a profile of Orrery says.

usage: python3 tests/recipe_releases.py GITDIR [KEY...] [--profile FILE]

GITDIR is a clone of NVIDIA-NeMo/Megatron-Bridge with its tags. Printed is each recipe whose KEY is not the same in all
releases that have it (default: the keys below); then, for each release, where the fused grouped MLP, the overlap of
experts' exchanges or their dispatcher is not what the profile says. Nothing of the clone is run: its files are read as
syntax."""
import argparse
import ast
import json
import os
import re
import subprocess

KEYS = ["cutedsl_fused_grouped_mlp", "moe_a2a_overlap", "moe_flex_dispatcher_backend", "virtual_pipeline_model_parallel_size",
        "micro_batch_size", "recompute_modules"]
FUSED = "cutedsl_fused_grouped_mlp"
FOLDER = "scripts/performance/configs"
MODELS = {"DEEPSEEK_V3": "deepseek-v3", "QWEN3_235B_A22B": "qwen3-235b-a22b", "QWEN3_30B_A3B": "qwen3-30b-a3b",
          "GPT_OSS_120B": "gpt-oss-120b"}
CHIPS = {"GB300": "gb300-nvl72", "GB200": "gb200-nvl72", "B300": "b300-sxm-288gb", "B200": "b200-sxm-180gb",
         "H100": "h100-sxm5-80gb"}
PRECISIONS = {"BF16": "bf16", "FP8_CS": "fp8-cs", "FP8_MX": "mxfp8", "NVFP4": "nvfp4"}
PARTS = re.compile(r"(.*)_PRETRAIN_CONFIG_([A-Z]+\d+)_(.+)_(V\d|LARGE_SCALE)$")


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


def literal(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def recipes(text):
    """Names that a file assigns: WorkloadBaseConfig(...), replace(another, ...) or another."""
    found = {}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, node.value
        if isinstance(value, ast.Name) and value.id in found:
            found[name] = dict(found[value.id])
        elif isinstance(value, ast.Call):
            base = value.args[0].id if value.args and isinstance(value.args[0], ast.Name) else None
            found[name] = dict(found.get(base, {}))
            found[name].update({word.arg: literal(word.value) for word in value.keywords if word.arg})
    return found


def release(folder, tag):
    found = {}
    for path in git(folder, "ls-tree", "-r", "--name-only", tag, FOLDER).split():
        if path.endswith("_workload_base_configs.py"):
            found.update(recipes(git(folder, "show", f"{tag}:{path}")))
    return {name: said for name, said in found.items() if PARTS.match(name)}


def profile_says(recipes_of_ours, model, chip, precision):
    """The four facts by the last recipe that holds, in the words of the clone."""
    said = {}
    for recipe in recipes_of_ours:
        if any(given not in recipe.get(key, [given])
               for key, given in (("models", model), ("accelerators", chip), ("precisions", precision))):
            continue
        if set(recipe) & {"stages", "facts", "gpus"}:
            continue
        scenario = recipe["scenario"]
        execution = scenario.get("execution", {})
        products = execution.get("framework", {}).get("experts", {}).get("expert_products")
        if products:
            said[FUSED] = products == "fused"
        if "moe_dispatcher" in scenario.get("parallel", {}):
            said["moe_flex_dispatcher_backend"] = scenario["parallel"]["moe_dispatcher"]
        if "overlap_besides" in execution:
            said["moe_a2a_overlap"] = "expert" in execution["overlap_besides"]
    return said


def compare(tag, found, ours):
    """The newest variant of each cell beside the profile; a line for each fact that differs."""
    cells = {}
    for name, recipe in sorted(found.items()):
        model, chip, precision, variant = PARTS.match(name).groups()
        if variant.startswith("V") and model in MODELS and chip in CHIPS and precision in PRECISIONS:
            cells[MODELS[model], CHIPS[chip], PRECISIONS[precision]] = recipe
    differ = 0
    for (model, chip, precision), recipe in cells.items():
        here = profile_says(ours, model, chip, precision)
        for key, default in ((FUSED, False), ("moe_a2a_overlap", False), ("moe_flex_dispatcher_backend", "alltoall")):
            there = recipe.get(key) or default
            if here.get(key, default) != there:
                differ += 1
                print(f"{tag} {model} on {chip}, {precision}: {key} {there}, profile {here.get(key, default)}")
    print(f"{tag}: {len(cells)} recipes compared, {differ} facts differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    parser.add_argument("gitdir")
    parser.add_argument("keys", nargs="*", default=KEYS)
    parser.add_argument("--profile", default=os.path.join(here, "scenarios/frameworks/megatron-core.json"))
    given = parser.parse_args()
    tags = [tag for tag in git(given.gitdir, "tag", "--sort=v:refname").split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    said = {tag: release(given.gitdir, tag) for tag in tags}
    said = {tag: found for tag, found in said.items() if found}
    print("releases:", ", ".join(f"{tag} ({len(found)} recipes)" for tag, found in said.items()))
    for name in sorted(set().union(*said.values())):
        for key in given.keys:
            values = {tag: found[name].get(key) for tag, found in said.items() if name in found}
            if len({json.dumps(value) for value in values.values()}) > 1:
                print(f"{name} {key}: " + ", ".join(f"{tag} {value}" for tag, value in values.items()))
    with open(given.profile, encoding="utf-8") as file:
        ours = json.load(file)["recipes"]
    for tag, found in said.items():
        compare(tag, found, ours)



if __name__ == "__main__":
    main()
