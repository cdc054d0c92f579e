"""Load on `orrery serve`: serve_load.py ORRERY REQUESTS CLIENTS. Clients are a process with a thread each and a connection each, and ask
one question after the other; two searches work as jobs meanwhile. Prints latencies without and with the searches."""
import http.client
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time

binary, requests, clients = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
GOAL_MS, GROWTH_MIB = 100, 8
SCENARIO = {"model": "llama3-8b", "cluster": {"preset": "dgx-h100", "nodes": 8}, "training": {"sequence_length": 8192, "global_batch": 512},
            "parallel": {"tensor": 2, "zero": 1}, "execution": {"framework": "megatron-core"}}


def client(port, count, pause_s, times):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for i in range(count):
        body = json.dumps({"scenario": SCENARIO, "set": {"training.global_batch": 512 * (1 + i % 8)}})
        begun = time.monotonic()
        connection.request("POST", "/api/run", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        data = response.read()
        times.append(1e3 * (time.monotonic() - begun))
        assert response.status == 200, data
        if pause_s:
            time.sleep(pause_s)


def clients_process(port, each, pause_s, queue):
    times = []
    threads = [threading.Thread(target=client, args=(port, each, pause_s, times)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put(times)


def load(port, each, pause_s=0):
    queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=clients_process, args=(port, each, pause_s, queue))
    begun = time.monotonic()
    process.start()
    times = sorted(queue.get())
    process.join()
    return times, time.monotonic() - begun


def say(what, times, seconds):
    at = lambda frac: times[min(len(times) - 1, int(frac * len(times)))]
    print(f"{what:52} {len(times):6d} requests, {len(times) / seconds:6.0f}/s, p50 {at(.5):6.1f} ms, p99 {at(.99):6.1f} ms, most {times[-1]:6.1f} ms", flush=True)
    return at(.99)


def resident_mib(pid):
    children = open(f"/proc/{pid}/task/{pid}/children", encoding="ascii").read().split()
    pages = sum(int(open(f"/proc/{p}/statm", encoding="ascii").read().split()[1]) for p in [str(pid), *children])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2 ** 20


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


server = subprocess.Popen([binary, "serve", "--port", "0", "--quiet"], stdout=subprocess.PIPE, text=True)
try:
    port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    load(port, max(1, requests // 5 // clients))
    before = resident_mib(server.pid)
    alone = say(f"{clients} clients without a pause", *load(port, max(1, requests * 4 // 5 // clients)))
    grown = resident_mib(server.pid) - before
    say(f"{clients} clients, a question a second each", *load(port, 10, 1))
    for _ in range(2):
        post(port, "/api/jobs", {"tool": "search", "arguments": {"scenario": "search-mt-nlg-530b", "max_seconds": 300}})
    time.sleep(1)
    busy = say(f"{clients} clients, a question a second, two searches", *load(port, 10, 1))
    say(f"{clients} clients without a pause, two searches", *load(port, 20))
    print(f"memory of server and workers: {before:.1f} MiB, {grown:+.1f} MiB after {requests * 4 // 5} requests more")
finally:
    server.send_signal(signal.SIGTERM)
    server.wait(60)
missed = busy > GOAL_MS or grown > GROWTH_MIB
print(f"goal: p99 at most {GOAL_MS} ms with two searches, {'missed' if missed else 'met'}")
sys.exit(1 if missed else 0)
