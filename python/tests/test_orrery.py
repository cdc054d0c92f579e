"""The package as users have it: installed, with its library and presets inside."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import orrery


@pytest.fixture(scope="module")
def gpt3():
    scenario = orrery.preset("examples", "gpt3-175b")
    scenario["parallel"].pop("data")  # follows from the number of GPUs
    return scenario


def test_run(gpt3):
    report = orrery.run(gpt3)
    assert report.gpus == 1024 and report.fits is True
    assert 10 < report.step_s < 40 and 0.3 < report["mfu"] < 0.7
    assert sum(report.time.values()) == pytest.approx(report.step_s, rel=1e-9)
    assert "GPT-3" in repr(report) and set(report) == set(report.to_dict())
    with pytest.raises(AttributeError, match="no 'steps'"):
        report.steps


def test_fields_and_sets_are_one(gpt3):
    assert orrery.run(gpt3, parallel__tensor=4).step_s == orrery.run(gpt3, {"parallel.tensor": 4}).step_s
    assert orrery.run(gpt3, parallel__tensor=4).step_s != orrery.run(gpt3).step_s
    assert orrery.run(gpt3, **{"parallel.tensor": 4}).step_s == orrery.run(gpt3, parallel__tensor=4).step_s
    with pytest.raises(TypeError, match="parallel__tensor"):
        orrery.run(gpt3, tensor=4)


def test_invariants_hold(gpt3):
    assert orrery.run(gpt3, check=True, unfold=True).step_s == orrery.run(gpt3).step_s


@pytest.mark.parametrize("change, sentence", [
    ({"parallel.tensor": 7}, "tensor"),
    ({"parallel.tensorr": 8}, "did you mean"),
    ({"training.micro_batch": "many"}, "micro_batch"),
    ({"model": "gpt-none"}, "gpt-none"),
])
def test_sentences(gpt3, change, sentence):
    with pytest.raises(orrery.OrreryError, match=sentence):
        orrery.run(gpt3, change)


def test_refused_options(gpt3):
    with pytest.raises(orrery.OrreryError, match="memory-reserve|reserve"):
        orrery.run(gpt3, memory_reserve="much")
    with pytest.raises(orrery.OrreryError, match="auto"):
        orrery.search(gpt3)
    with pytest.raises(orrery.OrreryError, match="top"):
        orrery.search(gpt3, training__micro_batch="auto", top=0)
    with pytest.raises(orrery.OrreryError, match="unit"):
        orrery.plan(gpt3, deadline="30")
    with pytest.raises(orrery.OrreryError, match="no presets of kind"):
        orrery.list("planets")
    with pytest.raises(orrery.OrreryError, match="did you mean"):
        orrery.preset("models", "gpt3-175")
    with pytest.raises(orrery.OrreryError, match="no_such"):
        orrery.run("no_such.json")
    with pytest.raises(orrery.OrreryError):
        orrery.run({"model": float("nan")})


def test_search(gpt3):
    found = orrery.search(gpt3, training__micro_batch="auto", parallel__virtual_stages="auto", top=3)
    assert found.proved and len(found.best) == 3
    winner = dict(gpt3)
    for part, values in found.scenario().items():
        winner[part] = {**winner.get(part, {}), **values}
    assert orrery.run(winner).step_s == pytest.approx(found.best[0].report.step_s, abs=1e-12)
    assert found.best[0].step_s == found.best[0].report.step_s and found.best[0].mfu == found.best[0].report.mfu


def test_progress_and_stop(gpt3):
    seen = []
    from orrery._library import Handle
    with Handle(gpt3, {"parallel.tensor": "auto", "parallel.pipeline": "auto", "training.micro_batch": "auto"},
                seen.append) as handle:
        handle.ask("search", {})
    assert seen and all(0 <= share <= 1 for share in seen)

    def fail(_):
        raise KeyboardInterrupt
    with Handle(gpt3, {"parallel.tensor": "auto", "training.micro_batch": "auto"}, fail) as handle:
        with pytest.raises(KeyboardInterrupt):
            handle.ask("search", {})


def test_plan(gpt3):
    plan = orrery.plan(gpt3, deadline="40 days")
    assert any(row["gpus"] == 1024 for row in plan.rows)
    assert [row.gpus for row in orrery.plan(gpt3, gpus=512).rows] == [512]
    assert len(orrery.plan(gpt3, gpus=512, clusters="dgx-h100").rows) == 1
    assert not plan.partial
    assert len(orrery.plan(gpt3, gpus=[512, 1024], clusters=["dgx-a100-80gb", "dgx-h100"]).rows) >= 4


def test_loops_of_reinforcement_learning():
    """Every call answers for a loop, and all with the step of run."""
    loop = orrery.preset("examples", "rl-grpo-qwen3-30b-a3b-h100")
    step_s = orrery.run(loop).step_s
    assert orrery.explain(loop).step_s == step_s
    found = orrery.search(loop)
    assert found.best[0].step_s <= step_s and found.best[0].train_gpus == 32
    loop["workload"]["steps"] = 1000
    rows = orrery.plan(loop, gpus=32).rows
    assert [row.step_s for row in rows] == [found.best[0].step_s]
    assert orrery.campaign(loop, replicas=10).ideal_days == pytest.approx(step_s * 1000 / 86400)
    table = orrery.sweep(loop, {"workload.roles.rollout.parallel.tensor": [2, 4]})
    rows = table.to_dict("records") if hasattr(table, "to_dict") else table
    assert rows[0]["step_s"] == pytest.approx(step_s, rel=1e-12) and rows[1]["step_s"] < step_s
    report = orrery.run(loop)
    assert "Who works when" in report.page() and "Who works when" in report._repr_html_()
    assert "32 GPUs, fits" in repr(report) and "proved" in repr(found)
    with pytest.raises(orrery.OrreryError, match="are for one training"):
        orrery.plan(loop, clusters=["dgx-h100"])


def test_sweep(gpt3):
    pandas = pytest.importorskip("pandas")
    frame = orrery.sweep(gpt3, {"training.micro_batch": [1, 2, 3], "parallel.tensor": [4, 8]})
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 6
    refused = frame[frame["training.micro_batch"] == 3]
    assert refused["error"].notna().any() or refused["step_s"].notna().all()
    assert frame[frame["training.micro_batch"] == 1]["step_s"].notna().all()


def test_sweep_is_runs(gpt3):
    vary = {"training.micro_batch": [1, 2, 5], "parallel.schedule": ["1f1b", "gpipe"]}

    def rows(jobs):
        table = orrery.sweep(gpt3, vary, {"parallel.tensor": 4}, jobs=jobs)
        return table.to_dict("records") if hasattr(table, "to_dict") else table
    table = rows(1)
    assert str(rows(8)) == str(table) and len(table) == 6  # as text: a NaN is not itself
    assert [row["training.micro_batch"] for row in table] == [1, 1, 2, 2, 5, 5]
    alone = orrery.run(gpt3, parallel__tensor=4, training__micro_batch=2, parallel__schedule="gpipe")
    assert table[3]["step_s"] == pytest.approx(alone.step_s, rel=1e-12)
    assert table[3]["compute_s"] == pytest.approx(alone.time.compute_s, rel=1e-12)
    assert table[3]["verdict"] == alone.memory.verdict
    assert "micro_batch" in table[4]["error"]
    for wrong in ({}, {"parallel.tensor": []}, {"parallel": [{}], "parallel.tensor": [4]}):
        with pytest.raises(orrery.OrreryError):
            orrery.sweep(gpt3, wrong)


def test_threads_say_the_same(gpt3):
    from orrery._library import Handle

    def text(tensor):
        with Handle(gpt3, {"parallel.tensor": tensor}) as handle:
            return handle.ask("run", {})
    alone = {tensor: text(tensor) for tensor in (1, 2, 4, 8)}
    with ThreadPoolExecutor(8) as pool:
        for tensor, together in zip([1, 2, 4, 8] * 8, pool.map(text, [1, 2, 4, 8] * 8)):
            assert together == alone[tensor]


def test_pictures(gpt3):
    report = orrery.run(gpt3)
    shown = report._repr_html_()
    assert "<svg" in shown and "http" not in report.figure("waterfall")
    assert f"fits: {report['memory']['reserved_bytes'] / 2 ** 30:.1f} of" in shown  # as the terminal and the page count it
    assert '<figure id="workers">' in orrery.run("ps_sharded")._repr_html_()  # parameter servers have no pipeline
    assert report.page().startswith("<!DOCTYPE html>")
    assert report.csv("pipeline").startswith("rank,band,start,end,kind")
    assert max(len(line) for line in report.timeline(80).splitlines()) <= 100
    with pytest.raises(KeyError, match="pipeline"):
        report.figure("moon")


def test_presets():
    assert "gpt3-175b" in orrery.list("models") and "h100-sxm5-80gb" in orrery.list("accelerators")
    assert orrery.preset("accelerators", "h100-sxm5-80gb")["memory_bytes"]
    assert "zero" in orrery.help("parallel.zero").lower()
    assert orrery.__version__ == "0.1.0"


def test_explain_and_campaign(gpt3):
    assert orrery.explain(gpt3).changes
    assert orrery.campaign(gpt3, {"faults": "llama3-2024", "storage": "tectonic"}, replicas=50).replicas == 50


def test_compare(gpt3):
    found = orrery.compare(gpt3, {**gpt3, "training": {**gpt3["training"], "micro_batch": 2}}, quick=True)
    assert [field["key"] for field in found.fields] == ["training.micro_batch"]
    with pytest.raises(orrery.OrreryError, match="/no/such"):
        orrery.compare(gpt3, "/no/such.json")


def test_trace(gpt3, tmp_path):
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 900, "args": {}},
        {"ph": "X", "cat": "kernel", "name": "flash_fwd_kernel", "pid": 0, "tid": 7, "ts": 100, "dur": 500, "args": {"stream": 7}}]}))
    alone, beside = orrery.trace(path), orrery.trace(path, gpt3)
    assert alone.step.measured_s == beside.step.measured_s and "predicted_s" in beside.step
    assert any(row["class"] == "attention" for row in alone.classes)


def test_nothing_is_printed(gpt3):
    code = f"import json, orrery; orrery.run(json.loads({json.dumps(json.dumps(gpt3))}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"" and done.stderr == b""


def test_memory_stays(gpt3):
    resource = pytest.importorskip("resource")
    for _ in range(50):
        orrery.run(gpt3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        orrery.run(gpt3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_collective():
    found = orrery.collective("all-gather", [1 << 20, "1GiB"], cluster="dgx-h100", ranks=16)
    assert found.ranks == 16 and [row.bytes for row in found.sizes] == [1 << 20, 1 << 30]
    assert found.sizes[1].busbw_bytes_per_s > found.sizes[0].busbw_bytes_per_s
    slow = orrery.collective(cluster="dgx-h100", ranks=8, algorithm="ring", rate="1GB/s", bytes="1GB")
    assert slow.seconds == pytest.approx(1.75, rel=0.01)  # 2 (n - 1) / n of a gigabyte at one a second
    with pytest.raises(orrery.OrreryError, match="no collective is called"):
        orrery.collective("all-redduce", cluster="dgx-h100")


def test_jobs():
    drawn = orrery.jobs(seed=3, count=20)
    assert drawn.jobs == 20 and {row.policy for row in drawn.policies} >= {"fifo", "packing"}
    assert orrery.jobs(seed=3, count=20) == drawn
    with pytest.raises(orrery.OrreryError, match="seed"):
        orrery.jobs()


def test_files_of_others(gpt3, tmp_path):
    script, notes = orrery.export(gpt3, "megatron")
    assert "--tensor-model-parallel-size" in script and notes
    (tmp_path / "train.sh").write_text(script)
    back = orrery.import_(tmp_path / "train.sh")
    assert orrery.run(back).step_s == pytest.approx(orrery.run(gpt3).step_s, rel=1e-9) and "notes" in repr(back)
    assert "#SBATCH" in orrery.export(gpt3, "megatron", launch="sbatch").text
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 1000}))
    alone = orrery.import_(tmp_path / "config.json")
    assert list(alone) == ["model"] and "A model alone" in alone.notes
    with pytest.raises(orrery.OrreryError, match="give megatron"):
        orrery.export(gpt3, "megatronn")


def test_calibrate(tmp_path):
    rows = ["m,n,k,dtype,time_us"] + [f"{m},{n},4096,bf16,{2 * m * n * 4096 / 500e12 * 1e6 + 5}" for m in (1024, 2048, 4096, 8192)
                                      for n in (1024, 4096, 8192)]
    (tmp_path / "gemms.csv").write_text("\n".join(rows) + "\n")
    profile = orrery.calibrate(tmp_path / "gemms.csv", accelerator="h100-sxm5-80gb")
    assert profile["accelerator"] == "h100-sxm5-80gb" and 0.4 < profile["model"]["gemm"]["bf16"]["peak_frac"] < 0.6
    assert profile.notes and len(repr(profile)) < 200


def test_generate():
    found = orrery.generate("generate-llama3-8b", prompts=32, answer_tokens=64, parallel__tensor=2)
    assert found.to_dict() and len(repr(found)) < 250


def test_plot(gpt3, tmp_path):
    if shutil.which("gnuplot") is None:
        pytest.skip("no gnuplot")
    files = orrery.plot(gpt3, tmp_path / "pictures", what="pipeline", svg=True)
    assert any(name.endswith(".svg") for name in files) and all(os.path.exists(name) for name in files)


def test_glossary():
    assert "waits" in orrery.glossary("bubble") or "Time in which" in orrery.glossary("bubble")
    with pytest.raises(orrery.OrreryError, match="did you mean"):
        orrery.glossary("buble")


def test_short_reprs(gpt3):
    for answer in (orrery.run(gpt3), orrery.explain(gpt3), orrery.search(gpt3, training__micro_batch="auto"), orrery.plan(gpt3, gpus=[1024]),
                   orrery.run(gpt3).memory):
        assert len(repr(answer)) <= 250 and "\n" not in repr(answer)


def test_interrupt():
    """Ctrl-C ends whatever is asked within 0.3 s: here what cannot be stopped, and what stops by itself."""
    code = ("import orrery, os, signal, threading, time\n"
            "told = []\n"
            "def bang():\n"
            "    time.sleep(0.3); told.append(time.monotonic()); os.kill(os.getpid(), signal.SIGINT)\n"
            "threading.Thread(target=bang).start()\n"
            "try:\n"
            "    {}\n"
            "    print('ended before')\n"
            "except KeyboardInterrupt:\n"
            "    print(time.monotonic() - told[0])\n"
            "os._exit(0)\n")
    for call in ("orrery.campaign('campaign-llama3-405b', replicas=20000)",
                 "orrery.run('llama3-405b-16k', {'parallel.data': 4096, 'training.global_batch': 65536, 'cluster.nodes': 65536}, unfold=True)"):
        done = subprocess.run([sys.executable, "-c", code.format(call)], capture_output=True, text=True)
        assert done.stdout.strip(), done.stderr
        assert float(done.stdout) <= 0.3 + 0.5 * (os.getloadavg()[0] > os.cpu_count()), call  # a machine that others use is late


def test_types(tmp_path):
    """What mypy --strict says of a sample: nothing, and of a misspelt member its name."""
    pytest.importorskip("mypy")
    sample = ("import orrery\n"
              "report = orrery.run('gpt3-175b')\n"
              "seconds: float = report.step_s + report.memory.peak_bytes + report.time.compute_s\n"
              "found = orrery.search('gpt3-175b', {'training.micro_batch': 'auto'})\n"
              "print(found.best[0].report.mfu, orrery.collective(ranks=8).sizes[0].seconds, orrery.jobs(seed=1).policies[0].wait_s.p90)\n"
              "print(orrery.explain('gpt3-175b').changes, orrery.plan('gpt3-175b').rows[0].gpus, orrery.export('a', 'megatron').text)\n")
    path = tmp_path / "sample.py"

    def said():
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path), str(path)],
                              capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(orrery.__file__))})
        return done.stdout
    path.write_text(sample)
    assert said() == ""
    path.write_text(sample + "report.memory.peek_bytes\nreport.step\n")
    assert "peek_bytes" in said() and '"step"' in said()


def test_shapes_are_answered():
    """_shapes.py has every member of what is answered."""
    from orrery import _shapes
    for name in ("gpt3-175b", "llama2-70b-lora", "ps_sharded", "rl-grpo-qwen2.5-7b-h20"):
        report = orrery.run(name)
        assert set(report) <= set(_shapes.Report.__annotations__) | {"values", "items", "keys", "get"}, name
