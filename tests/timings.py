#!/usr/bin/env python3
"""Where the time of `./dev test` goes, from what ninja and ctest left in the build folders.

    tests/timings.py [--fix] [OPTIMISED SANITIZED]      folders; build/ci and build/asan-ubsan without

Prints the seconds of each half and its ten slowest tests; --fix puts them in their place in tests/README.md.
"""
import collections
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- timings.py begins -->\n", "<!-- timings.py ends -->\n"


def compile_seconds(build):
    """(seconds from first to last edge, {what: summed seconds}) of the edges that ninja's log holds last."""
    edges = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        edges[output] = (int(begin), int(end))
    sums = collections.Counter()
    for output, (begin, end) in edges.items():
        kind = "programs and libraries"
        if output.endswith(".o"):
            gpu = "emulate" in output or "kernels/" in output or output.endswith(".cu.o")
            kind = "GPU code" if gpu else "tests" if output.startswith("tests/") else "rooms"
        sums[kind] += (end - begin) / 1000
    return max(end for _, end in edges.values()) / 1000, sums


def test_seconds(build):
    """{test: seconds} of the last run of each."""
    tests = {}
    for line in (build / "Testing/Temporary/CTestCostData.txt").read_text().splitlines():
        words = line.split()
        if len(words) == 3 and float(words[2]) > 0:
            tests[words[0]] = float(words[2])
    return tests


def table(builds):
    lines = []
    halves = {name: (compile_seconds(build), test_seconds(build)) for name, build in builds.items()}
    lines.append("| build | built in | objects of rooms, of tests, of the GPU, linking (core-seconds) | tests | core-seconds |\n")
    lines.append("|---|--:|--:|--:|--:|\n")
    for name, ((span, sums), tests) in halves.items():
        parts = ", ".join(f"{sums[kind]:.0f}" for kind in ("rooms", "tests", "GPU code", "programs and libraries"))
        lines.append(f"| {name} | {span:.0f} s | {parts} | {len(tests)} | {sum(tests.values()):.0f} |\n")
    lines.append("\n")
    lines.append("| slowest, " + " | s | slowest, ".join(halves) + " | s |\n")
    lines.append("|---|--:|---|--:|\n")
    slowest = [sorted(tests.items(), key=lambda row: -row[1])[:10] for _, tests in halves.values()]
    for row in zip(*slowest):
        lines.append("| " + " | ".join(f"`{name}` | {seconds:.1f}" for name, seconds in row) + " |\n")
    return "".join(lines)


def main(words):
    fix = "--fix" in words
    folders = [pathlib.Path(word) for word in words if word != "--fix"]
    if len(folders) not in (0, 2):
        sys.exit(__doc__)
    folders = folders or [ROOT / "build/ci", ROOT / "build/asan-ubsan"]
    text = table(dict(zip(("optimised", "sanitized"), folders)))
    sys.stdout.write(text)
    if fix:
        page = ROOT / "tests/README.md"
        before, rest = page.read_text().split(BEGIN)
        page.write_text(before + BEGIN + text + END + rest.split(END)[1])


main(sys.argv[1:])
