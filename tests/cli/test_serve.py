"""The server from outside: answers, refusals, jobs, limits, guards.

    test_serve.py ORRERY SOURCE        $ORRERY_SCENARIOS names the presets
"""
import ctypes.util
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile

binary = sys.argv[1]
folder = tempfile.mkdtemp()
server = subprocess.Popen([binary, "serve", "--port", "0", "--quiet"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "TMPDIR": folder})
address = re.match(r"http://127\.0\.0\.1:(\d+)/$", server.stdout.readline().strip())
assert address, "no address"
port = int(address[1])
SMALL = {"model": "llama3-8b", "cluster": {"preset": "dgx-h100", "nodes": 1},
         "training": {"sequence_length": 8192, "global_batch": 16}, "parallel": {"tensor": 4},
         "execution": {"framework": "megatron-core"}}


def request(method, path, body=None, headers=None, at=port):
    connection = http.client.HTTPConnection("127.0.0.1", at, timeout=60)
    sent = {"Content-Type": "application/json", **(headers or {})} if body is not None else headers or {}
    connection.request(method, path, body if isinstance(body, (str, bytes, type(None))) else json.dumps(body), sent)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response, data


def ask(tool, **arguments):
    response, data = request("POST", "/api/" + tool, arguments)
    assert response.status == 200, data
    return json.loads(data)


def refused(status, tool, body, headers=None):
    response, data = request("POST", "/api/" + tool, body, headers)
    assert response.status == status, (response.status, data)
    error = json.loads(data)["error"]
    assert error and "\n" not in error and folder not in error, error
    return error


def raw(text):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        s.sendall(text)
        try:
            s.shutdown(socket.SHUT_WR)
        except OSError:  # the server has ended it already
            pass
        answer = b""
        while part := s.recv(65536):
            answer += part
    return answer


def test_page():
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/tabs.js", "text/javascript"), ("/jobs.js", "text/javascript"), ("/tasks.js", "text/javascript"), ("/page.css", "text/css")):
        response, data = request("GET", path)
        assert response.status == 200 and response.getheader("Content-Type").startswith(kind) and data
        policy = response.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
        again, empty = request("GET", path, headers={"If-None-Match": response.getheader("ETag")})
        assert again.status == 304 and not empty
    assert request("GET", "/etc/passwd")[0].status == 404
    assert request("POST", "/", {})[0].status == 405
    fields = {f["key"]: f["help"] for f in json.loads(request("GET", "/api/fields")[1])}
    assert "ZeRO" in fields["parallel.zero"]


def test_answers():
    known = json.loads(subprocess.run([binary, "run", "gpt3-175b", "--format", "json"], capture_output=True, check=True).stdout)
    whole = ask("run", scenario="gpt3-175b")
    assert whole["answer"]["step_s"] == known["step_s"]
    step = next(n for n in whole["numbers"] if n["path"] == "step_s")
    assert step["label"] == "predicted" and step["interval"]["low"] == known["interval"]["low_s"]
    four, two = (ask("run", scenario=SMALL, set={"parallel.tensor": t})["answer"]["step_s"] for t in (4, 2))
    assert four != two
    assert ask("run", scenario=SMALL)["answer"]["step_s"] == four  # nothing of the last question is left
    known = json.loads(subprocess.run([binary, "explain", "gpt3-175b", "--format", "json"], capture_output=True, check=True).stdout)
    assert ask("explain", scenario="gpt3-175b")["answer"]["changes"] == known["changes"]
    assert ask("help", topic="mfu")["answer"]
    assert ask("list", kind="models", name="llama3-8b")["answer"][0]["name"] == "llama3-8b"
    assert ask("compare", a=SMALL, b="gpt3-175b")["answer"]["b"]["fits"] is True
    assert ask("import", text="--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 8")["answer"]["model"]["layers"] == 2
    assert ask("run", scenario={**SMALL, "cluster": {**SMALL["cluster"], "scale_out_bytes_per_s_per_gpu": "50 GB/s"}})["answer"]["fits"]


def test_refusals():
    assert "parallel.tensor" in refused(400, "run", {"scenario": SMALL, "set": {"parallel.tensor": 3}})
    assert "is missing" in refused(400, "run", {})
    assert "did you mean" in refused(404, "runn", {})
    assert refused(400, "run", "{") and refused(400, "run", "[]")
    assert refused(415, "run", {"scenario": SMALL}, {"Content-Type": "text/plain"})
    assert request("GET", "/api/run")[0].status == 405


def test_no_files():
    """Whatever could name a file is refused before it is opened, and what files hold is never told."""
    secret = os.path.join(folder, "secret.json")
    with open(secret, "w", encoding="utf-8") as f:
        f.write('{"HOLDS-A-SECRET": 1}')
    shown = []
    for path in ("/etc/passwd", secret, "../../etc/passwd", "x.json", "-", "~/x", "1/../../../../etc/passwd", '"\\u002fetc\\u002fpasswd"'):
        for scenario in ({**SMALL, "model": path}, {**SMALL, "cluster": path}, {**SMALL, "model": {"preset": path}},
                         {**SMALL, "execution": {"framework": path}}, {**SMALL, "faults": path}, path,
                         {**SMALL, "parallel": {"schedule": path}}):
            shown.append(refused(400, "run", {"scenario": scenario}))
        shown.append(refused(400, "run", {"scenario": SMALL, "set": {"model": path}}))
        shown.append(refused(400, "run", {"scenario": SMALL, "set": {"cluster": json.dumps({"preset": path})}}))
    shown.append(refused(400, "import", {"file": secret}))
    shown.append(refused(400, "run", {"scenario": SMALL, "own_runs": secret}))
    shown.append(refused(400, "trace", {"file": secret}))
    shown.append(refused(400, "trace", {"text": "{}", "scenario": secret}))
    shown.append(refused(400, "collective", {"topology": secret, "ranks": 4}))
    shown.append(refused(400, "run", {"scenario": json.dumps({**SMALL, "model": secret})}))
    # text of a configuration is no argument that is searched for paths: the process that reads it opens nothing else
    hidden = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "_name_or_path": secret}
    _, data = request("POST", "/api/import", {"text": json.dumps(hidden), "from": "hf"})
    shown.append(data.decode())
    assert not any("SECRET" in text or "root:" in text for text in shown)
    os.remove(secret)


def test_sealed():
    """The wall behind the first one: a process of the server reads presets and its own folder only."""
    environment = {**os.environ, "ORRERY_READS": os.environ["ORRERY_SCENARIOS"]}
    run = subprocess.run([binary, "run", "/etc/passwd"], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 2 and "no files are read here" in run.stderr and "root:" not in run.stderr
    run = subprocess.run([binary, "trace", "/etc/passwd"], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 2 and "no files are read here" in run.stderr and "root:" not in run.stderr
    assert subprocess.run([binary, "run", "gpt3-175b"], capture_output=True, env=environment, check=False).returncode == 0


def test_guards():
    question = {"scenario": SMALL}
    assert refused(403, "run", question, {"Origin": "http://evil.example"})
    assert refused(403, "run", question, {"Host": "evil.example"})
    assert refused(403, "run", question, {"Origin": "null"})
    assert request("POST", "/api/run", question, {"Origin": f"http://127.0.0.1:{port}"})[0].status == 200
    assert request("POST", "/api/run", question, {"Host": f"localhost:{port}"})[0].status == 200
    assert request("GET", "/api/fields")[0].getheader("Access-Control-Allow-Origin") is None


def test_broken_requests():
    host = b"Host: 127.0.0.1:%d\r\n" % port
    for text, status in ((b"GET\r\n\r\n", 400), (b"GET / HTTP/2\r\n\r\n", 505), (b"GET / HTTP/1.1\r\nbroken\r\n\r\n", 400),
                         (b"GET / HTTP/1.1\r\n" + host + host + b"\r\n", 400), (b"GET / HTTP/1.1\r\n\r\n", 403),
                         (b"POST /api/run HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n", 413),
                         (b"POST /api/run HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", 400),
                         (b"POST /api/run HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
                         (b"POST /api/run HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n", 411),
                         (b"GET /" + b"a" * 20000, 431), (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100 + b"\r\n", 431)):
        assert raw(text).startswith(b"HTTP/1.1 %d " % status), (text[:60], raw(text)[:60])
    two = b"GET /page.css HTTP/1.1\r\n" + host + b"\r\n"
    assert raw(two + two).count(b"HTTP/1.1 200 OK") == 2
    assert raw(b"POST /api/run HTTP/1.1\r\n" + host + b"Content-Length: 10\r\n\r\nabc") == b""


def events(job):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/api/jobs/{job}/events")
    response = connection.getresponse()
    assert response.getheader("Content-Type") == "text/event-stream"
    states = [json.loads(line[6:]) for line in response.read().decode().split("\n\n") if line]
    connection.close()
    return states


def job_of(**body):
    response, data = request("POST", "/api/jobs", body)
    assert response.status == 202, data
    return json.loads(data)["id"]


def test_jobs():
    job = job_of(tool="search", arguments={"scenario": SMALL, "set": {"parallel.tensor": "auto"}})
    states = events(job)
    assert states[-1]["state"] == "done" and states[0]["id"] == job
    result = json.loads(request("GET", f"/api/jobs/{job}")[1])["result"]
    assert result["answer"]["proved"] is True
    long = job_of(tool="search", arguments={"scenario": "search-mt-nlg-530b", "max_seconds": 600})
    assert json.loads(request("GET", f"/api/jobs/{long}")[1])["state"] in ("queued", "running")
    assert request("DELETE", f"/api/jobs/{long}")[0].status == 200
    assert events(long)[-1]["state"] == "cancelled"
    bad = job_of(tool="run", arguments={"scenario": SMALL, "set": {"parallel.tensor": 3}})
    assert "parallel.tensor" in events(bad)[-1]["error"]
    assert request("GET", "/api/jobs/999")[0].status == 404
    assert "no files" in refused(400, "jobs", {"tool": "run", "arguments": {"scenario": "/etc/passwd"}})


def test_progress():
    """Jobs tell how far they are; a search also the best so far, which never gets worse and ends as its answer does."""
    for tool, arguments, check in (
            ("sweep", {"scenario": SMALL, "vary": {"training.global_batch": [16, 32, 64], "parallel.tensor": "1..8"}}, lambda a: len(a["rows"]) == 12),
            ("campaign", {"scenario": "campaign-llama3-405b", "replicas": 200}, lambda a: a["replicas"] == 200),
            ("plan", {"scenario": "gpt3-175b", "gpus": [512, 1024]}, lambda a: len(a["rows"]) == 2)):
        job = job_of(tool=tool, arguments=arguments)
        states = events(job)
        assert states[-1]["state"] == "done", states[-1]
        assert states[-1]["progress"]["done_frac"] == 1
        result = json.loads(request("GET", f"/api/jobs/{job}")[1])["result"]
        assert check(result["answer"]) and "done_frac" not in result.get("notes", ""), result.get("notes")
    days = next(n for n in ask("campaign", scenario="campaign-llama3-405b", replicas=100)["numbers"] if n["path"] == "days.mean")
    assert days["interval"]["low"] < days["value"] < days["interval"]["high"] and days["label"] == "predicted"
    job = job_of(tool="search", arguments={"scenario": "search-mt-nlg-530b", "max_seconds": 6})
    states = events(job)
    best = [s["progress"]["best"]["step_s"] for s in states if "best" in s.get("progress", {})]
    assert best and best == sorted(best, reverse=True), best
    assert "tp" in states[-1]["progress"]["best"]["what"]
    answer = json.loads(request("GET", f"/api/jobs/{job}")[1])["result"]["answer"]
    assert abs(best[-1] / answer["best"][0]["step_s"] - 1) < 0.1  # slow GPUs and late input are in the answer alone
    assert "object such as" in refused(400, "sweep", {"scenario": SMALL, "vary": [1]})
    assert "vary is missing" in refused(400, "sweep", {"scenario": SMALL})


def test_description():
    api = json.loads(request("GET", "/api/openapi.json")[1])
    assert api["openapi"].startswith("3.1") and "parallel" in api["components"]["schemas"]["Scenario"]["properties"]
    for path, methods in api["paths"].items():
        for method in methods:
            status = request(method.upper(), path.replace("{id}", "1"), {} if method == "post" else None)[0].status
            assert status != 405 and (status != 404 or "{id}" in path), path


def test_token():
    run = subprocess.run([binary, "serve", "--listen", "not-an-address"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "--listen" in run.stderr
    other = subprocess.Popen([binary, "serve", "--port", "0", "--listen", "0.0.0.0", "--quiet"], stdout=subprocess.PIPE, text=True)
    try:
        where = re.search(r":(\d+)/#token=([0-9a-f]{32})$", other.stdout.readline().strip())
        assert where, "a server that others reach has a token"
        at, token = int(where[1]), where[2]
        question = {"scenario": SMALL}
        assert request("GET", "/", at=at)[0].status == 200
        for headers in ({}, {"Authorization": "Bearer " + "0" * 32}, {"Authorization": "Bearer " + token + "0"}, {"Authorization": token}):
            assert request("POST", "/api/run", question, headers, at=at)[0].status == 401
        assert request("POST", "/api/run", question, {"Authorization": "Bearer " + token}, at=at)[0].status == 200
    finally:
        other.send_signal(signal.SIGTERM)
        assert other.wait(30) == 0
        other.stdout.close()


def test_store():
    """A kept answer outlives the server, however that ends, and is not worked out again."""
    for name in ("answers", "answers.db") if ctypes.util.find_library("sqlite3") else ("answers",):
        with tempfile.TemporaryDirectory() as above:
            check_store(above, os.path.join(above, name))
    run = subprocess.run([binary, "serve", "--store", "/proc/answers.db"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "--store" in run.stderr, run


def check_store(above, store):
    body = {"scenario": SMALL, "set": {"parallel.tensor": "auto"}}
    seconds = []
    for _ in range(2):
        other = subprocess.Popen([binary, "serve", "--port", "0", "--quiet", "--store", store], stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "TMPDIR": above})
        at = int(re.search(r":(\d+)/", other.stdout.readline())[1])
        response, data = request("POST", "/api/search", body, at=at)
        assert response.status == 200, data
        seconds.append(json.loads(data)["answer"]["seconds"])
        history = json.loads(request("GET", "/api/history", at=at)[1])
        other.kill()
        other.wait(30)
        other.stdout.close()
    assert seconds[0] == seconds[1], seconds  # what it took then, to the microsecond
    if not store.endswith(".db"):
        assert len([f for f in os.listdir(store) if f.endswith(".json")]) == 1 and history == []
        return
    assert [(h["tool"], h["arguments"]) for h in history] == [("search", body)] and history[0]["at_s"] > 1.7e9
    with sqlite3.connect(store) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (1,)


try:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name)
finally:
    server.send_signal(signal.SIGINT)
    status = server.wait(30)
    server.stdout.close()
assert status == 0, status
assert os.listdir(folder) == [], os.listdir(folder)
os.rmdir(folder)
