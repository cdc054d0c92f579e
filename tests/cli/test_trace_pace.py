#!/usr/bin/env python3
"""How fast large things pass: a profiler's trace in, execution traces of many ranks out.

    test_trace_pace.py ORRERY SOURCE

A quarter of 1 GB of Kineto's JSON takes at most a quarter of 5 s of processor time and of 200 MB. Execution traces of 16,384
ranks, a file for each distinct one, take at most 1 s.
"""
import os
import subprocess
import sys
import tempfile

ORRERY = sys.argv[1]
BYTES = 250_000_000
EVENTS = """{{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/linear.py(124): forward", "pid": 1, "tid": 1,
    "ts": {at}.125, "dur": 90.250,
    "args": {{"Python parent id": 5, "Python id": 6, "Ev Idx": 7, "Python module id": 2}}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {at}.250, "dur": 60.125,
    "args": {{
      "External id": {id}, "Record function id": 0, "Sequence number": 3, "Fwd thread id": 0,
      "Concrete Inputs": ["", ""], "Input type": ["c10::BFloat16", "c10::BFloat16"],
      "Input Strides": [[4096, 1], [1, 4096]], "Input Dims": [[4096, 4096], [4096, 4096]], "Ev Idx": 8
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {at}.500, "dur": 5.000,
    "args": {{"External id": {id}, "cbid": 211, "correlation": {id}}}
  }},
  {{
    "ph": "s", "id": {id}, "pid": 1, "tid": 1, "ts": {at}.500, "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT", "pid": 0, "tid": 7,
    "ts": {at}.750, "dur": 88.500,
    "args": {{
      "External id": {id}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {id},
      "registers per thread": 168, "shared memory": 214016, "blocks per SM": 0.848485, "warps per SM": 10.181818,
      "grid": [16, 8, 1], "block": [384, 1, 1], "est. achieved occupancy %": 16
    }}
  }},
  """


def run(*words):
    """Processor seconds and most bytes of one run, and what it printed."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen([ORRERY, *words], stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    assert child.returncode == 0, text
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, text


def read(folder):
    path, written, count = folder + "/rank0.json", 0, 0
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],\n"traceEvents": [\n')
        while written < BYTES:
            count += 1
            written += file.write(EVENTS.format(at=100 * count, id=count))
        file.write('{"ph": "M", "name": "end"}]}')
    seconds, most, text = run("trace", path)
    assert "products 4096x4096x4096" in text and str(count) in text, text
    assert seconds <= 5 * BYTES / 1e9, seconds
    assert most <= 200e6 * BYTES / 1e9, most
    print(f"{BYTES / 1e6:.0f} MB of a trace: {seconds:.2f} s, {most / 1e6:.0f} MB")


def write(folder):
    seconds, most, _ = run("run", "llama3-405b-16k", "--chakra", folder + "/et", "--quiet", "--output", folder + "/report.txt")
    files = [name for name in os.listdir(folder + "/et") if name.endswith(".et")]
    assert len(files) == 16 and seconds <= 1, (len(files), seconds)
    print(f"execution traces of 16,384 ranks, {len(files)} distinct: {seconds:.2f} s, {most / 1e6:.0f} MB")


with tempfile.TemporaryDirectory() as base:
    read(base)
    write(base)
