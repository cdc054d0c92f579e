#!/usr/bin/env python3
"""Steps of production jobs replayed with each pass as it was measured, and what they lose to stragglers.

    stragglers.py ORRERY [FOLDER] [--write FOLDER]

FOLDER is "data" of github.com/ByteDance-Seed/StragglerAnalysis (Apache-2.0): trace-NAME.parquet holds the spans of a job
(read with pyarrow), result-NAME.json its steps and its authors' own replay. Jobs ST (8 GPUs) and AR (64). Without FOLDER
$ORRERY_SHARED/reference/StragglerAnalysis is read; without either the program skips (77). --write keeps the first step of
each job as a scenario with execution.measured_passes.

Measured are seconds of passes, messages, collectives (from when the last member was there) and the host before the first
pass and behind the last one. Model and GPU are not named: the scenario's do not matter, as everything was measured.
Predicted are all waits, and so the step.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile

try:
    import pyarrow.parquet
except ImportError:
    pyarrow = None

SKIP = 77
JOBS = ("ST", "AR")
MEAN_ERROR, SLOWDOWN_ERROR = 0.007, 0.02


def read_steps(path):
    """{step: {(kind, stage, replica, number): (start s, end s)}}"""
    steps = {}
    for row in pyarrow.parquet.read_table(path).to_pylist():
        key = row["optype"], row["stage"], row["dp_rank"], row["seq_id"]
        steps.setdefault(row["step"], {})[key] = row["start_ts"], row["start_ts"] + row["duration"]
    return steps


class Step:
    """What one step's spans say of each rank."""

    def __init__(self, spans):
        self.spans = spans
        self.stages = 1 + max(key[1] for key in spans)
        self.replicas = 1 + max(key[2] for key in spans)
        self.microbatches = 1 + max(key[3] for key in spans if key[0] == "forward-compute")
        self.start = min(start for start, _ in spans.values())
        self.seconds = max(end for _, end in spans.values()) - self.start
        last = self.microbatches - 1
        self.last_passes = [self.span("backward-compute", s, d, last)[1]
                            for s in range(self.stages) for d in range(self.replicas)]

    def span(self, kind, stage, replica, number=0):
        return self.spans[kind, stage, replica, number]

    def passes(self, kind, stage, replica):
        return [end - start for start, end in (self.span(kind, stage, replica, m) for m in range(self.microbatches))]

    def messages(self, way, stage, replica):
        """From when both sides were there until the first of them was through."""
        peer = stage + (1 if way == "forward" else -1)
        seconds = []
        for m in range(self.microbatches):
            sent, received = self.span(way + "-send", stage, replica, m), self.span(way + "-recv", peer, replica, m)
            seconds.append(max(0, min(sent[1], received[1]) - max(sent[0], received[0])))
        return seconds

    def row(self, stage, replica):
        ranks = [(s, d) for s in range(self.stages) for d in range(self.replicas)]
        outer = stage in (0, self.stages - 1)
        row = {"stage": stage, "replica": replica,
               "forward_s": self.passes("forward-compute", stage, replica),
               "backward_s": self.passes("backward-compute", stage, replica)}
        first = self.span("forward-compute" if stage == 0 else "forward-recv", stage, replica)
        row["begin_s"] = first[0] - self.start
        if stage < self.stages - 1:
            row["send_forward_s"] = self.messages("forward", stage, replica)
        if stage > 0:
            row["send_backward_s"] = self.messages("backward", stage, replica)
        # The host behind the last pass; what it could have waited for, somebody's last pass, is not its own time.
        norms = self.span("layernorm-grads-all-reduce", stage, replica)
        own = self.span("backward-compute", stage, replica, self.microbatches - 1)[1]
        begun = self.span("embedding-grads-all-reduce", stage, replica)[0] if outer else norms[1]
        row["end_s"] = begun - max(end for end in self.last_passes if end <= max(norms[0], own))
        if outer:
            tied = [self.span("embedding-grads-all-reduce", s, replica) for s in (0, self.stages - 1)]
            row["embedding_reduce_s"] = min(end for _, end in tied) - max(start for start, _ in tied)
        before = "embedding-grads-all-reduce" if outer else "layernorm-grads-all-reduce"
        ready = max(self.span(before, stage, d)[1] for d in range(self.replicas))
        row["reduce_s"] = self.span("grads-reduce-scatter", stage, replica)[1] - ready
        clip = self.span("optimizer-clip-main-grad", stage, replica)[1]
        row["norm_s"] = clip - max(self.span("grads-reduce-scatter", *rank)[1] for rank in ranks)
        row["optimizer_s"] = self.span("optimizer", stage, replica)[1] - clip
        return {key: max(0, value) if key.endswith("_s") and not isinstance(value, list) else value
                for key, value in row.items()}

    def scenario(self):
        rows = [self.row(s, d) for s in range(self.stages) for d in range(self.replicas)]
        return {"model": "gpt-1.5b",
                "cluster": {"preset": "dgx-h100", "gpus_per_node": self.stages * self.replicas, "nodes": 1},
                "training": {"global_batch": self.microbatches * self.replicas, "micro_batch": 1,
                             "sequence_length": 1024},
                "parallel": {"pipeline": self.stages, "data": self.replicas, "zero": 0},
                "execution": {"overlap": [], "measured_passes": {"schema": 1, "source": "ByteDance-Seed/StragglerAnalysis",
                                                  "passes": rows}}}


def run(orrery, scenario):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario, file)
        file.flush()
        done = subprocess.run([orrery, "run", file.name, "--format", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def replay(orrery, folder, name, write):
    steps = {number: Step(spans) for number, spans in sorted(read_steps(f"{folder}/trace-{name}.parquet").items())}
    with open(f"{folder}/result-{name}.json") as file:
        authors = json.load(file)
    scenarios = {number: step.scenario() for number, step in steps.items()}
    if write:
        os.makedirs(write, exist_ok=True)
        with open(f"{write}/measured-{name}.json", "w") as file:
            json.dump(scenarios[min(scenarios)], file)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = dict(zip(steps, pool.map(lambda number: run(orrery, scenarios[number]), steps)))
    errors = [answers[n]["step_s"] / steps[n].seconds - 1 for n in steps]
    theirs = [authors["step_t_nodelay"][str(n)] / steps[n].seconds - 1 for n in steps]
    measured = [answers[n]["measured_passes"] for n in steps]
    slowdown = sum(answers[n]["step_s"] for n in steps) / sum(one["even_step_s"] for one in measured)
    mean, off = statistics.mean(map(abs, errors)), slowdown / authors["blocking_slowdown"] - 1
    print(f"{name}: {len(steps)} steps, mean error {100 * mean:.2f} % (bias {100 * statistics.mean(errors):+.2f}, "
          f"largest {100 * max(map(abs, errors)):.2f}), the authors' replay "
          f"{100 * statistics.mean(map(abs, theirs)):.2f} %; stragglers slow it {slowdown:.4f}x, the authors "
          f"{authors['blocking_slowdown']:.4f}x ({100 * off:+.2f} %); alone: " +
          ", ".join(f"{key.split('_')[0]} {statistics.mean(one[key] for one in measured):.3f}x"
                    for key in ("stages_slowdown", "replicas_slowdown", "microbatches_slowdown")))
    return mean <= MEAN_ERROR and abs(off) <= SLOWDOWN_ERROR


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("orrery")
    parser.add_argument("folder", nargs="?", default=os.environ.get("ORRERY_SHARED", "") +
                        "/reference/StragglerAnalysis")
    parser.add_argument("--write")
    asked = parser.parse_args()
    if pyarrow is None:
        print("no pyarrow for Python: pip install pyarrow")
        sys.exit(SKIP)
    if not all(os.path.exists(f"{asked.folder}/trace-{name}.parquet") for name in JOBS):
        print(f"no traces in {asked.folder}: see the head of this file")
        sys.exit(SKIP)
    good = [replay(asked.orrery, asked.folder, name, asked.write) for name in JOBS]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
