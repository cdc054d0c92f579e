"""Twenty questions with answers that can be checked, asked as an assistant asks them: orrery mcp over its pipes.

    test_mcp.py ORRERY SOURCE        $ORRERY_SCENARIOS names the presets

What is expected comes from the command line's own answers, from files of presets, or from arithmetic.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

binary, source = sys.argv[1], pathlib.Path(sys.argv[2])
GPT3 = source / "scenarios/examples/gpt3-175b.json"
SMALL = {"model": "llama3-8b", "cluster": {"preset": "dgx-h100", "nodes": 1},
         "training": {"sequence_length": 8192, "global_batch": 16, "tokens": 1e9},
         "parallel": {"tensor": 4}, "execution": {"framework": "megatron-core"}}
LABELS = {"measured", "predicted", "assumed", "given"}


class Assistant:
    def __init__(self):
        self.process = subprocess.Popen([binary, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.count = 0

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def request(self, method, params=None):
        self.count += 1
        message = {"jsonrpc": "2.0", "id": self.count, "method": method}
        if params is not None:
            message["params"] = params
        self.say(json.dumps(message))
        answer = self.hear()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.count, answer
        return answer

    def ask(self, tool, **arguments):
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        result = answer["result"]
        assert result["isError"] is False and result["content"][0]["type"] == "text"
        whole = result["structuredContent"]
        assert whole["tool"] == tool and whole["labels"]
        for number in whole["numbers"]:
            assert number["label"] in LABELS and number["source"] and "interval" in number, number
            assert number["value"] == at(whole["answer"], number["path"]), number
        assert all(label["label"] in LABELS and label["source"] for label in whole["labels"])
        return whole

    def refused(self, tool, **arguments):
        error = self.request("tools/call", {"name": tool, "arguments": arguments})["error"]
        assert error["code"] == -32602 and error["message"] and "\n" not in error["message"], error
        assert "/tmp/" not in error["message"], error
        return error["message"]


def at(answer, path):
    for key in path.split("."):
        answer = answer[int(key)] if isinstance(answer, list) else answer[key]
    return answer


def said(*words):
    return json.loads(subprocess.run([binary, *words, "--format", "json"], check=True, capture_output=True, text=True).stdout)


def preset(kind, name):
    return json.loads((source / "scenarios" / kind / f"{name}.json").read_text())


def number(whole, path):
    return next(n for n in whole["numbers"] if n["path"] == path)


a = Assistant()
hello = a.request("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}})
assert hello["result"]["protocolVersion"] == "2025-03-26" and "tools" in hello["result"]["capabilities"]
a.say('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
tools = {tool["name"]: tool for tool in a.request("tools/list")["result"]["tools"]}
assert set(tools) == {"run", "search", "plan", "sweep", "campaign", "explain", "compare", "collective", "generate", "import", "export", "trace", "list", "help"}
assert all(t["inputSchema"]["type"] == "object" and t["description"] for t in tools.values())


# --- the questions ---

def q1():
    "How long is a step of GPT-3 on 1,024 A100s?"
    whole = a.ask("run", scenario="gpt3-175b")
    known = said("run", str(GPT3))
    step = number(whole, "step_s")
    assert step["value"] == known["step_s"] and step["label"] == "predicted" and step["unit"] == "s"
    assert step["interval"] == {"low": known["interval"]["low_s"], "high": known["interval"]["high_s"],
                                "coverage": known["interval"]["coverage"]}
    assert any(text.startswith("cluster.usd_per_gpu_hour=") for text in whole["assumed"])


def q2():
    "How many days, and between which?"
    whole = a.ask("run", scenario=str(GPT3))
    days, step = number(whole, "days"), number(whole, "step_s")
    assert days["interval"]["low"] < days["value"] < days["interval"]["high"]
    assert abs(days["interval"]["high"] / days["value"] - step["interval"]["high"] / step["value"]) < 1e-9


def q3():
    "What does it cost at 2 dollars a GPU-hour?"
    numbers = a.ask("run", scenario="gpt3-175b", set={"cluster.usd_per_gpu_hour": 2})
    assert abs(number(numbers, "usd")["value"] / number(numbers, "gpu_hours")["value"] / 2 - 1) < .2


def q4():
    "Do eight GPUs hold Llama 3 8B?"
    answer = a.ask("run", scenario=SMALL)["answer"]
    assert answer["fits"] is True and answer["gpus"] == 8


def q5():
    "Does one H100 hold Llama 3 70B?"
    answer = a.ask("run", scenario=SMALL, set={"model": "llama3-70b", "parallel.tensor": 1})["answer"]
    assert answer["fits"] is False and answer["memory"]["short_bytes"] > 0


def q6():
    "Which tensor degree is fastest?"
    whole = a.ask("search", scenario=SMALL, set={"parallel.tensor": "auto"}, top=1, max_seconds=20)
    best = whole["answer"]["best"][0]
    steps = [a.ask("run", scenario=SMALL, set={"parallel.tensor": t})["answer"] for t in (1, 2, 4, 8)]
    assert whole["answer"]["proved"] is True
    assert best["step_s"] == min(s["step_s"] for s in steps if s["fits"])
    assert number(whole, "best.0.report.step_s")["interval"]["low"] < best["step_s"]


def q7():
    "512 or 1,024 GPUs?"
    rows = a.ask("plan", scenario="gpt3-175b", gpus=[512, 1024])["answer"]["rows"]
    assert [r["gpus"] for r in rows] == [512, 1024] and rows[0]["days"] > rows[1]["days"]


def q8():
    "How many GPUs for 30 days?"
    answer = a.ask("plan", scenario="gpt3-175b", deadline="30 days", gpus=[256, 512, 1024, 2048])["answer"]
    chosen = [r for r in answer["rows"] if r["answer"]]
    assert chosen and chosen[0]["effective_days"] <= 30
    assert all(r["effective_days"] > 30 for r in answer["rows"] if r["gpus"] < chosen[0]["gpus"])


def q9():
    "What would help GPT-3 most?"
    answer = a.ask("explain", scenario="gpt3-175b")["answer"]
    first = answer["changes"][0]
    key, value = first["set"][0].split("=", 1)
    try:
        value = json.loads(value)
    except ValueError:
        pass
    again = a.ask("run", scenario="gpt3-175b", set={key: value})["answer"] if len(first["set"]) == 1 else first
    assert again["step_s"] == first["step_s"] < answer["step_s"]


def q10():
    "What binds?"
    answer = a.ask("explain", scenario="gpt3-175b")["answer"]
    assert max(answer["binds"], key=lambda b: b["step_frac"])["what"] == "compute"


def q11():
    "Tensor 4 or 8?"
    other = json.loads(json.dumps(SMALL))
    other["parallel"]["tensor"] = 8
    whole = a.ask("compare", a=SMALL, b=other)
    summary = whole["answer"]["summary"]["step_s"]
    assert summary["difference"] == summary["b"] - summary["a"]
    assert "parallel.tensor" in [f["key"] for f in whole["answer"]["fields"]]
    assert whole["answer"]["a"]["file"] == "a.json"


def q12():
    "An all-reduce of 1 GB in a ring of 4 at 50 GB/s: 2 (n - 1) / n of the bytes at the rate."
    whole = a.ask("collective", op="all-reduce", bytes="1GB", ranks=4, rate="50GB/s", latency="1ns", algorithm="ring")
    assert abs(number(whole, "seconds")["value"] / (2 * 3 / 4 * 1e9 / 50e9) - 1) < .02


def q13():
    "What would NCCL choose for it?"
    assert a.ask("collective", bytes="256MiB", ranks=64, cluster="dgx-h100")["answer"]["nccl"]["algorithm"]


def q14():
    "This Megatron script as a scenario?"
    text = ("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 "
            "--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 4 --vocab-size 50000 --log-interval 5")
    whole = a.ask("import", text=text, cluster="dgx-h100", set={"cluster.nodes": 2})
    scenario = whole["answer"]
    assert scenario["parallel"]["tensor"] == 4 and scenario["model"]["layers"] == 32
    assert "does not change it" in whole["notes"]
    assert a.ask("run", scenario=scenario)["answer"]["gpus"] == 16


def q15():
    "This config.json?"
    text = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
                       "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256})
    assert a.ask("import", text=text)["answer"]["model"]["layers"] == 32


def q16():
    "Which models of Llama 3 are there?"
    names = [row["name"] for row in a.ask("list", kind="models", name="llama3")["answer"]]
    assert "llama3-8b" in names and all("llama3" in name for name in names)


def q17():
    "How much memory has an H100, and who says so?"
    row = a.ask("list", kind="accelerators", name="h100-sxm")["answer"][0]
    assert row["memory_bytes"] == preset("accelerators", row["name"])["memory_bytes"] and row["source"]["memory_bytes"]


def q18():
    "What is parallel.zero?"
    assert "optimizer states" in a.ask("help", topic="parallel.zero")["answer"]


def q19():
    "What is MFU?"
    assert "peak" in a.ask("help", topic="mfu")["answer"]


def q20():
    "Is it compute that costs most of GPT-3's step? Do the parts add up?"
    answer = a.ask("run", scenario="gpt3-175b")["answer"]
    assert abs(sum(answer["time"].values()) - answer["step_s"]) < 1e-9
    assert max(answer["time"], key=answer["time"].get) == "compute_s"


def q21():
    "How fast does Llama 3 8B write, and do more samples of a prompt read it once?"
    one = a.ask("generate", scenario="generate-llama3-8b", prompts=256, samples=1)["answer"]
    eight = a.ask("generate", scenario="generate-llama3-8b", prompts=32, samples=8)["answer"]
    assert abs(one["prefill_s"] - 8 * eight["prefill_s"]) < 1e-9 * one["prefill_s"]
    assert abs(sum(one["step"].values()) * one["steps"] - one["decode_s"]) < 1e-9 * one["decode_s"]
    assert one["tokens_per_s"] > 0 and one["tail_s"] == 0


def q22():
    "Which tensor degree is fastest on one node, of 1 to 8?"
    whole = a.ask("sweep", scenario=SMALL, vary={"parallel.tensor": "1..8"})
    rows = whole["answer"]["rows"]
    assert [row["parallel.tensor"] for row in rows] == [1, 2, 4, 8]
    known = json.loads(subprocess.run([binary, "sweep", "-", "--vary", "parallel.tensor=1..8", "--format", "json"], input=json.dumps(SMALL),
                                      capture_output=True, text=True, check=True).stdout)
    assert [row["step_s"] for row in rows] == [row["step_s"] for row in known["rows"]]


def q23():
    "How many days is Llama 3 405B under way, with what fails, and how sure is that?"
    whole = a.ask("campaign", scenario="campaign-llama3-405b", replicas=100)
    days = number(whole, "days.mean")
    assert days["interval"]["coverage"] == 0.8 and days["interval"]["low"] < days["value"] < days["interval"]["high"]
    assert whole["answer"]["ideal_days"] < days["value"] and number(whole, "goodput.mean")["value"] < 1


def q24():
    "What would Megatron-LM's flags be, and do they give the same step?"
    whole = a.ask("export", scenario="gpt3-175b", to="megatron")
    assert "--tensor-model-parallel-size 8" in whole["answer"], whole["answer"]
    assert "leaves out" in whole["notes"] or "carried" in whole["notes"] or whole["notes"], whole
    back = a.ask("import", text=whole["answer"], **{"from": "megatron"})["answer"]
    assert a.ask("run", scenario=back)["answer"]["step_s"] == said("run", str(GPT3))["step_s"]


def q25():
    "Where does a recorded step differ from what is predicted?"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rank0.json"
        subprocess.run([binary, "run", "fsdp_8b_8h100", "--trace-kernels", str(path), "--quiet", "--output", folder + "/out.txt"], check=True)
        for given in ({"file": str(path)}, {"text": path.read_text()}):
            whole = a.ask("trace", scenario="fsdp_8b_8h100", set={"cluster.accelerator.memory_bytes_per_s": "x0.5"}, **given)
            measured, predicted = number(whole, "step.measured_s"), number(whole, "step.predicted_s")
            assert measured["label"] == "measured" and predicted["label"] == "predicted" and predicted["value"] > measured["value"]
            assert any(row["class"] == "attention" for row in whole["answer"]["classes"])


questions = [q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22, q23, q24, q25]
wrong = []
for question in questions:
    try:
        question()
    except Exception as error:  # counted, and told at the end
        wrong.append(f"{question.__name__} {question.__doc__}: {error!r}")

# --- what is refused, in one sentence ---

edited = {"$schema": "../scenario.schema.json", **SMALL}  # for editors: it changes nothing
assert a.ask("run", scenario=edited)["answer"]["time"] == a.ask("run", scenario=SMALL)["answer"]["time"]
assert "did you mean" in a.request("tools/call", {"name": "runn"})["error"]["message"]
assert "scenario is missing" in a.refused("run")
assert "did you mean set" in a.refused("run", scenario="gpt3-175b", sets={})
assert "parallel.tensor" in a.refused("run", scenario=SMALL, set={"parallel.tensor": 3})
assert "scenario.json" in a.refused("run", scenario={"model": "no-such-model"})
assert "begin with" in a.refused("run", scenario="--output=x")
assert "begin with" in a.refused("run", scenario="-")
assert "from 1 to 100" in a.refused("search", scenario=SMALL, top=0)
assert a.refused("collective", cluster="--help")
for line, code in (("{", -32700), ("[]", -32600), ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                   ('{"jsonrpc":"2.0","id":7,"method":"resources/list"}', -32601),
                   ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', -32602)):
    a.say(line)
    assert a.hear()["error"]["code"] == code, line
assert a.request("ping")["result"] == {}
a.process.stdin.close()
assert a.process.wait(10) == 0 and a.process.stdout.read() == ""

print(f"{len(questions) - len(wrong)} of {len(questions)}")
for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
