#!/usr/bin/env python3
"""HolisticTraceAnalysis opens the trace of a prediction and finds in it what `orrery trace` does.

    test_hta.py ORRERY SOURCE

Skips (77) without the package: pip install HolisticTraceAnalysis, or let installed.py do so.
"""
import contextlib
import io
import json
import subprocess
import sys
import tempfile

import installed

hta = installed.module("hta.trace_analysis", "HolisticTraceAnalysis")
if hta is None:
    print("no HolisticTraceAnalysis for Python: pip install HolisticTraceAnalysis, or set ORRERY_TEST_INSTALL=FOLDER")
    sys.exit(77)

ORRERY = sys.argv[1]


def orrery(*words):
    done = subprocess.run([ORRERY, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/rank0.json"
        step_s = json.loads(orrery("run", "fsdp_8b_8h100", "--format", "json", "--trace-kernels", path))["step_s"]
        ours = json.loads(orrery("trace", path, "--format", "json"))
        with contextlib.redirect_stdout(io.StringIO()):
            theirs = hta.TraceAnalysis(trace_files={0: path}, trace_dir=folder)
        times = theirs.get_temporal_breakdown(visualize=False).iloc[0]
        kinds, kernels = theirs.get_gpu_kernel_breakdown(visualize=False)
        overlap = theirs.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    # HTA rounds each kernel to microseconds.
    idle, compute, rest = (times[key + "_time(us)"] * 1e-6 for key in ("idle", "compute", "non_compute"))
    assert abs(idle + compute + rest - step_s) < 0.005 * step_s, (times, step_s)
    fall = {part["part"]: part["measured_s"] for part in ours["waterfall"]}
    assert abs(idle - fall["host"] - fall["gaps"]) < 0.005 * step_s, (times, fall)
    assert abs(rest - fall["communication"]) < 0.005 * step_s and abs(compute - fall["compute"]) < 0.005 * step_s
    assert kinds["percentage"].sum() > 99 and 0 < overlap < 100
    names = set(kernels["name"])
    assert {"ncclDevKernel_AllGather", "ncclDevKernel_ReduceScatter"} <= names, names
    print("HTA finds computing, communication and idle time of the predicted step")


main()
