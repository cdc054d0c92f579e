"""Writes orrery/_shapes.py, the members of every answer as types: python3 shapes.py [--check]. They are what the calls below answer,
over all examples; --check says which are no longer so (exit 1)."""

import glob
import keyword
import os
import re
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
SCENARIOS = os.environ.get("ORRERY_SCENARIOS", os.path.join(HERE, "..", "scenarios"))

# Objects whose members are a scenario's, a file's or a user's own.
FREE = {"scenario", "set", "scenarios", "profiles", "training", "parallel", "execution", "values", "chosen", "point"}
# A mapping has these itself: such members are reached by their keys alone.
HIDDEN = {"values", "items", "keys", "get", *keyword.kwlist}
# Counts are whole; what has one of these ends may be any number, however round it was.
REAL = re.compile(r"(_s|_frac|_usd|_days|_hours|_w|_j|_mw|_per_.*|usd|days|mean|p\d+|most|seconds|utilisation|fairness|value|low|high|speedup|watts|predicted|measured)$")


class Unwritten(types.ModuleType):
    """_shapes.py before it is written."""

    def __getattr__(self, name):
        from orrery._answer import Answer
        return Answer


def kind(name, samples):
    """The type of the values of a member, and the classes that it needs."""
    samples = [value for value in samples if value is not None]
    kinds = {type(value) for value in samples}
    if not kinds:
        return "Any", []
    if kinds == {bool}:
        return "bool", []
    if kinds <= {int, float}:
        return ("float" if float in kinds or REAL.search(name.split(".")[-1]) else "int"), []
    if kinds == {str}:
        return "str", []
    if kinds == {list}:
        inner, classes = kind(name, [item for value in samples for item in value])
        return f"List[{inner}]", classes
    if kinds == {dict}:
        return shape(name, samples)
    return "Any", []


def shape(name, samples):
    keys = list(dict.fromkeys(key for value in samples for key in value))
    if name.split(".")[-1] in FREE or not keys or any(not key.isidentifier() for key in keys):
        return "Fields", []
    if "." in name and name.split(".")[-1] == "report":
        return "Report", []
    title = "".join(word.capitalize() for word in re.split(r"[._]", name))
    lines, classes = [], []
    for key in keys:
        if key in HIDDEN:
            continue
        values = [value[key] for value in samples if key in value]
        told, needed = kind(f"{name}.{key}", values)
        nothing = any(value is None for value in values) and told != "Any"
        lines.append(f"    {key}: {f'Optional[{told}]' if nothing else told}")
        classes += needed
    return title, classes + [(title, lines)]


def example(name):
    return os.path.join(SCENARIOS, "examples", name + ".json")


def answers():
    """Each class with answers to learn from."""
    sys.modules["orrery._shapes"] = Unwritten("orrery._shapes")
    import orrery
    from orrery import _commands

    # One that is refused here needs what this machine lacks; its shape is that of the others.
    def asked(ask, given):
        found = []
        for one in given:
            try:
                found.append(ask(one).to_dict())
            except orrery.OrreryError:
                pass
        return found

    def is_quick(path):
        with open(path, encoding="utf-8") as text:
            return '"auto"' not in text.read()

    examples = sorted(filter(is_quick, glob.glob(os.path.join(SCENARIOS, "examples", "*.json"))))
    gpt3, small = example("gpt3-175b"), orrery.preset("examples", "fsdp_8b_8h100")
    small["training"]["tokens"] = 1e11
    yield "Report", asked(orrery.run, examples)
    yield "Search", asked(lambda by: orrery.search(small, {"training.micro_batch": "auto"}, by=by), ["step", "cost"])
    yield "Plan", asked(lambda options: orrery.plan(small, gpus=[64, 128], **options),
                        [{}, {"deadline": "30 days", "clusters": ["dgx-a100", "dgx-h100"]}])
    yield "Explanation", asked(orrery.explain, [gpt3, small, example("llama2-70b-lora"), example("rl-grpo-qwen2.5-7b-h20")])
    yield "Comparison", asked(lambda other: orrery.compare(gpt3, other), [example("gpt3-175b-interleaved"), gpt3])
    yield "Campaign", asked(lambda path: orrery.campaign(path, replicas=2, days=10), [example("campaign-2x2"), gpt3])
    measured = [os.path.join(SCENARIOS, "measurements", name + ".json") for name in ("mt_nlg", "bloom_176b_prequel")]
    yield "Validation", asked(orrery.validate, measured)
    yield "Collective", [_commands.collective(cluster="dgx-h100", ranks=16, bytes=bytes, **more).to_dict() for bytes, more in (
        ("1MiB", {}), ("1KiB,1GiB", {"fidelity": "flow"}), ("1MiB", {"trace": True, "show_data": True, "algorithm": "ring"}))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.json")
        _commands.command("run", gpt3, trace_kernels=path)
        yield "Trace", [orrery.trace(path).to_dict(), orrery.trace(path, gpt3).to_dict()]
    yield "Jobs", [_commands.jobs(seed=1, count=50).to_dict(),
                   _commands.jobs(os.path.join(SCENARIOS, "traces", "four-jobs.json")).to_dict()]
    yield "Generated", asked(_commands.generate, [example("generate-llama3-8b")]) + [
        _commands.generate(example("generate-llama3-8b"), batch="1,16", context="1024").to_dict()]


def written():
    text = ['"""The members of answers, as types. Written by python/shapes.py from what is answered; not to be edited."""\n\n'
            "from __future__ import annotations\n\nfrom typing import Any, List, Optional\n\nfrom ._answer import Answer, Fields\n"]
    for name, samples in answers():
        print(name, len(samples), file=sys.stderr)
        for title, lines in shape(name, samples)[1]:
            text.append(f"\n\nclass {title}(Answer):\n" + "\n".join(lines) + "\n")
    return "".join(text)


if __name__ == "__main__":
    path = os.path.join(HERE, "orrery", "_shapes.py")
    fresh = written()
    if "--check" in sys.argv:
        with open(path, encoding="utf-8") as kept:
            if kept.read() != fresh:
                sys.exit("python/orrery/_shapes.py is not what is answered today; python3 python/shapes.py writes it anew")
    else:
        with open(path, "w", encoding="utf-8") as out:
            out.write(fresh)
