"""Mutated requests at a real server: door_http.py ORRERY SECONDS [SEED]. $ORRERY_SCENARIOS names the presets.

Requests are the seeds of fuzz_http with bytes turned, cut, doubled and joined, and questions whose members are drawn from everything
that JSON can be. Each answer has to be whole, with a status of HTTP and the guards, and never 500. No answer may hold what a file outside
the presets says, or name the server's own folder. In the end the server still answers, ends when it is asked to, and has left and said nothing.
"""
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

binary, seconds = sys.argv[1], float(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
SEEDS = [p.read_bytes() for p in sorted((pathlib.Path(__file__).parent / "seeds" / "fuzz_http").iterdir())]
TOOLS = ["run", "search", "plan", "sweep", "campaign", "explain", "compare", "collective", "generate", "import", "export", "trace", "list", "help", "jobs"]
KEYS = ["scenario", "set", "vary", "text", "file", "a", "b", "to", "from", "gpus", "top", "max_seconds", "replicas", "kind", "name", "topic", "tool", "arguments", "op",
        "bytes", "ranks", "cluster", "own_runs", "base"]
FIELDS = ["model", "cluster", "cluster.nodes", "parallel.tensor", "training.micro_batch", "training.lengths", "training.lengths.file", "workload", "faults", "execution.framework"]
TEXTS = ["gpt3-175b", "/etc/passwd", "../../etc/passwd", "auto", "", "x" * 5000, "\u202e\u0000\n", "1e999", "{\"preset\": \"/etc/passwd\"}", "-", "--help", "llama3-8b", "dgx-h100", "x2"]
WRONG = [b"Sanitizer", b"runtime error", b"ended without an answer"]  # of a process that broke; a sanitized build says so itself
SMALL = {"model": "llama3-8b", "cluster": {"preset": "dgx-h100", "nodes": 1}, "training": {"sequence_length": 8192, "global_batch": 16},
         "parallel": {"tensor": 4}, "execution": {"framework": "megatron-core"}}


def value(draw, depth=0):
    kind = draw.randrange(8)
    if kind == 0:
        return draw.choice([0, -1, 1, 2, 1e308, -1e-300, 2 ** 63, 0.5])
    if kind == 1:
        return draw.choice([True, False, None])
    if kind <= 4 or depth > 4:
        return draw.choice(TEXTS)
    if kind == 5:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 6:
        return {draw.choice(KEYS + FIELDS + TEXTS): value(draw, depth + 1) for _ in range(draw.randrange(4))}
    return {**SMALL, draw.choice(["model", "cluster", "training", "parallel", "workload", "faults"]): value(draw, depth + 1)}


def request(draw, port):
    if draw.random() < 0.5:
        body = json.dumps({draw.choice(KEYS): value(draw) for _ in range(draw.randrange(5))}).encode()
        bytes_ = b"POST /api/%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            draw.choice(TOOLS).encode(), port, len(body), body)
    else:
        bytes_ = re.sub(rb"(?i)host: [^\r]*", b"Host: 127.0.0.1:%d" % port, draw.choice(SEEDS))
    if draw.random() < 0.6:
        turned = bytearray(bytes_)
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(turned) + 1)
            what = draw.randrange(4)
            if what == 0 and at < len(turned):
                turned[at] = draw.randrange(256)
            elif what == 1:
                del turned[at:at + draw.randrange(20)]
            elif what == 2:
                turned[at:at] = turned[at:at + draw.randrange(40)]
            else:
                turned[at:at] = draw.choice([b"\r\n", b"\0", b"\xff\xfe", b"{", b"]", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"%2e%2e/"])
        bytes_ = bytes(turned)
    return bytes_


def check(sent, answer):
    """Answers that were begun are whole, one behind the other; a connection without any is the server's right."""
    while answer:
        head, found, rest = answer.partition(b"\r\n\r\n")
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        assert found and status and status[1] != b"500" and b"Content-Security-Policy" in head, (sent[:400], answer[:300])
        if b"text/event-stream" in head:
            return
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        body, answer = rest[:length], rest[length:]
        assert len(body) == length, (sent[:400], head)
        wrong = [word for word in WRONG if word in body]
        assert not wrong, (sent[:600], body[:600])
        assert b"root:" not in body and folder.encode() not in body, (sent[:600], body[:300])


def client(number):
    draw = random.Random(f"{seed} {number}")
    while time.monotonic() < until and not failures:
        sent = request(draw, port)
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=40) as s:
                s.sendall(sent)
                s.shutdown(socket.SHUT_WR)
                while part := s.recv(65536):
                    answer += part
        except (ConnectionError, BrokenPipeError, OSError) as error:
            if isinstance(error, ConnectionRefusedError) or "timed out" in str(error):
                failures.append((error, sent[:600]))
            continue
        try:
            check(sent, answer)
        except (AssertionError, TypeError) as error:
            failures.append(error)
        counts[0] += 1
        counts[1] += answer.startswith(b"HTTP/1.1 200")


folder = tempfile.mkdtemp()
said = tempfile.TemporaryFile()
server = subprocess.Popen([binary, "serve", "--port", "0", "--quiet"], stdout=subprocess.PIPE, stderr=said, text=True, env={**os.environ, "TMPDIR": folder})
port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
until, failures, counts = time.monotonic() + seconds, [], [0, 0]
threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
try:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/run", json.dumps({"scenario": SMALL}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200 and json.loads(response.read())["answer"]["fits"]
    connection.close()
finally:
    server.send_signal(signal.SIGINT)
    status = server.wait(120)
left = os.listdir(folder)
said.seek(0)
noise = said.read().decode(errors="replace").strip()
print(f"seed {seed}: {counts[0]} requests in {seconds:g} s, {counts[1]} answered with 200, failures: {failures or 'none'}, status {status}, left: {left or 'nothing'}, said: {noise[:2000] or 'nothing'}")
sys.exit(bool(failures or status or left or noise))
