#!/usr/bin/env python3
"""How far a learned profile carries: learn_rows.py ORRERY ROWS.json [ROWS.json ...]

No machine is asked. What "really ran" is a simulated step of a perturbed machine and software: slower memory, products,
attention, norms and host than the preset's. Rows of one machine, software and number format form a family. From the
trace of the first row of a family `orrery learn` writes a profile; with it all other rows of the family are predicted, and
set beside their own perturbed steps. Printed are errors without and with the profile. First of all, the trace of an
unperturbed step has to give back its own time. Exit 1: own steps are off by more than 0.5 %, or others by 3 % on the mean.
"""
import json, os, statistics, subprocess, sys, tempfile

PERTURBED = {"memory": 0.88, "products": 0.93, "attention_speed_frac": 0.8, "step_overhead_s": 0.004}


def call(words):
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def step_s(orrery, path, sets):
    text = call([orrery, "run", path, "--ideal", "--format", "json", "--quiet"] + [w for s in sets for w in ("--set", s)])
    return json.loads(text)["step_s"] if text else None


def perturbed(orrery, path):
    """Overrides of the machine that really ran, from what the scenario has."""
    resolved = json.loads(call([orrery, "list", "accelerators", "--format", "json"]) or "[]")
    scenario = json.load(open(path))
    name = scenario["cluster"].get("accelerator")
    name = name.get("preset") if isinstance(name, dict) else name
    known = {r["name"]: r for r in resolved}
    row = known.get(name)
    if row is None:
        return None
    sets = [f'cluster.accelerator.memory_bytes_per_s={PERTURBED["memory"] * row["memory_bytes_per_s"]:.6g}',
            f'execution.framework.host.step_overhead_s={PERTURBED["step_overhead_s"]}',
            f'execution.framework.kernels.attention_speed_frac={PERTURBED["attention_speed_frac"]}']
    for key, flops in row.items():
        if key.startswith("peak_flops_per_s.") and flops:
            sets.append(f"cluster.accelerator.{key}={PERTURBED['products'] * flops:.6g}")
    return sets


def trace(orrery, path, sets, out):
    return call([orrery, "run", path, "--ideal", "--trace-kernels", out, "--quiet", "--output", os.devnull] +
                [w for s in sets for w in ("--set", s)]) is not None


def learn(orrery, path, kernels, out):
    return call([orrery, "learn", kernels, "--scenario", path, "--output", out, "--quiet"]) is not None


def family(row):
    scenario = row["scenario"]
    return json.dumps([scenario["cluster"], scenario["execution"], scenario["training"].get("precision")], sort_keys=True)


def main():
    orrery, families, own, before, after = os.path.abspath(sys.argv[1]), {}, [], [], []
    for path in [word for word in sys.argv[2:] if word != "--rows"]:
        for row in json.load(open(path)):
            families.setdefault(family(row), []).append(row)
    with tempfile.TemporaryDirectory() as folder:
        kernels, profile = os.path.join(folder, "k.json"), os.path.join(folder, "own.json")
        for rows in families.values():
            if len(rows) < 2:
                continue
            paths = []
            for i, row in enumerate(rows):
                paths.append(os.path.join(folder, f"{i}.json"))
                json.dump(row["scenario"], open(paths[-1], "w"))
            sets = perturbed(orrery, paths[0])
            if sets is None:
                continue
            plain = step_s(orrery, paths[0], [])
            if plain and trace(orrery, paths[0], [], kernels) and learn(orrery, paths[0], kernels, profile):
                own.append(step_s(orrery, paths[0], [f"execution.framework={profile}"]) / plain - 1)
            if not (trace(orrery, paths[0], sets, kernels) and learn(orrery, paths[0], kernels, profile)):
                continue
            for row, path in zip(rows[1:], paths[1:]):
                real = step_s(orrery, path, sets)
                if real:
                    before.append(step_s(orrery, path, []) / real - 1)
                    after.append(step_s(orrery, path, [f"execution.framework={profile}"]) / real - 1)
                    if "--rows" in sys.argv:
                        print(f'{row["id"][:60]:60s} {real:9.4f} s  {100 * before[-1]:+6.1f} %  {100 * after[-1]:+6.1f} %')
    mean = lambda xs: 100 * statistics.mean(map(abs, xs)) if xs else float("nan")
    print(f"own traces: {len(own)}, off by {mean(own):.2f} % on the mean, {100 * max(map(abs, own), default=0):.2f} % at most")
    print(f"other sizes: {len(after)} rows of {len(families)} families, {mean(before):.1f} % before, {mean(after):.1f} % after, "
          f"{100 * max(map(abs, after), default=0):.1f} % at most")
    return 0 if own and after and 100 * max(map(abs, own)) <= 0.5 and mean(after) <= 3 else 1


sys.exit(main())
