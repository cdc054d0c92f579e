#!/usr/bin/env python3
"""Do the tests notice a changed line? Random mutants of the rooms, each built and tested.

    tests/mutate.py [--count 20] [--seed 1] [--own] [--list] [ROOM...]
    tests/mutate.py --line FILE:LINE:OPERATOR      one mutant: FILE of the tree, OPERATOR as printed

A mutant drops a term of a sum, turns a sign, swaps * and /, moves or turns a comparison, or swaps && and ||, once, in
code that is not a string, a comment or a preprocessor line. It is killed when it does not build, when a test of its room
fails or takes two minutes, or, where these pass and --own is not given, when one of the label "fast" does. Some survivors cannot be killed: the
line comes to the same. Every survivor is printed with its line, to be read.

Works in build/mutate, on the committed tree; nothing else is touched. Exit 0 when at least 90 % were killed, else 1.
"""
import argparse
import filecmp
import pathlib
import random
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/mutate/tree"
BUILD = ROOT / "build/mutate/build"
ROOMS = ("answer base calibrate campaign costmodel exchange jobs ledger network plan program report schedule search sim spec "
         "step study traffic").split()

WORD = r"[\w.>\[\]-]*\w\]?"
TERM = rf"(?:\(\w+\))?{WORD}(?:\([^()]*\))?(?: [*/] {WORD}(?:\([^()]*\))?)*"
OPERATORS = {
    "drop-term": (rf" [+-] {TERM}(?=[;,)])", ""),
    "plus-minus": (r" \+ ", " - "),
    "minus-plus": (r" - ", " + "),
    "add-subtract": (r" \+= ", " -= "),
    "add-set": (r" \+= ", " = "),
    "times-over": (r" \* ", " / "),
    "over-times": (r" / ", " * "),
    "below-upto": (r" < ", " <= "),
    "upto-below": (r" <= ", " < "),
    "above-from": (r" > ", " >= "),
    "from-above": (r" >= ", " > "),
    "same-other": (r" == ", " != "),
    "other-same": (r" != ", " == "),
    "and-or": (r" && ", " || "),
    "or-and": (r" \|\| ", " && "),
}


def blanked(text):
    """The text with comments, strings, characters and preprocessor lines as spaces of equal length."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*'
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S | re.M)


def mutants(path):
    """(line, operator, begin, end, replacement) of every mutant of a file; only indented lines are inside functions."""
    text = path.read_text()
    code = blanked(text)
    for operator, (pattern, new) in OPERATORS.items():
        for found in re.finditer(pattern, code):
            begin_of_line = code.rfind("\n", 0, found.start()) + 1
            if code[begin_of_line] == " ":
                yield code.count("\n", 0, found.start()) + 1, operator, found.start(), found.end(), new


def run(command, seconds=1800):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return 124, ""


def prepare():
    """The committed tree in TREE, where only what changed is written anew."""
    new = TREE.with_name("new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    subprocess.run(["sh", "-c", 'git -C "$1" archive HEAD | tar -x -C "$2"', "sh", ROOT, new], check=True)
    TREE.mkdir(exist_ok=True)
    for path in TREE.rglob("*"):
        if path.is_file() and not (new / path.relative_to(TREE)).is_file():
            path.unlink()
    for path in new.rglob("*"):
        there = TREE / path.relative_to(new)
        if path.is_file() and not (there.is_file() and filecmp.cmp(path, there, shallow=False)):
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)
    shutil.rmtree(new)
    if not (BUILD / "build.ninja").exists():
        status, said = run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DORRERY_CUDA=OFF"])
        if status != 0:
            sys.exit(said)


def tests_of(label):
    _, said = run(["ctest", "--test-dir", BUILD, "-N", "-L", f"^{label}$"])
    return re.findall(r"Test +#\d+: (\S+)", said)


def short(names):
    """Without the long loops of tests/builds.txt and what reads texts."""
    rows = [line.split() for line in (ROOT / "tests/builds.txt").read_text().splitlines() if line and line[0] != "#"]
    long = {row[0] for row in rows if row[0].startswith("unit/")}
    return [name for name in names if name not in long and not name.startswith(("source/", "docs/", "gpu/"))]


def run_tests(names):
    """The first test that fails, or None."""
    if not names:
        return None
    pattern = "^(" + "|".join(map(re.escape, names)) + ")$"
    status, said = run(["ctest", "--test-dir", BUILD, "-j", "2", "--stop-on-failure", "--timeout", "120", "-R", pattern])
    if status == 0:
        return None
    failed = re.search(r"Test +#\d+: (\S+) \.*\*\*\*", said)
    return failed[1] if failed else "ctest"


def build(targets):
    return run(["ninja", "-C", BUILD, *targets])


def room_targets(names):
    programs = [name.split("/")[1] for name in names]
    return [name for name in programs if name.startswith("test_")]


def judge(room, alone):
    """How a mutant that is in the tree fares: what killed it, or None."""
    own = short(tests_of(room))
    status, said = build(room_targets(own) or ["orrery"])
    if status != 0:
        return "the compiler"
    killer = run_tests(own)
    if killer is None and not alone:
        status, said = build([])
        others = [name for name in short(tests_of("fast")) if name not in own]
        killer = "the compiler" if status != 0 else run_tests(others)
    return killer


def try_mutant(path, mutant, alone):
    line, operator, begin, end, new = mutant
    room = path.split("/")[0]
    file = TREE / path
    text = file.read_text()
    file.write_text(text[:begin] + new + text[end:])
    try:
        killer = judge(room, alone)
    finally:
        file.write_text(text)
    before = text.splitlines()[line - 1].strip()
    print(f"{'killed' if killer else 'ALIVE '} {path}:{line}:{operator}  {before}" + (f"   [{killer}]" if killer else ""),
          flush=True)
    return killer is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--own", action="store_true", help="run the tests of the mutant's room alone")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--line", action="append", default=[], metavar="FILE:LINE:OPERATOR")
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    options = parser.parse_args()
    unknown = [room for room in options.rooms if room not in ROOMS]
    if unknown:
        parser.error(f"no room \"{unknown[0]}\"; rooms: {' '.join(ROOMS)}")
    prepare()
    chosen = []
    for where in options.line:
        path, line, operator = where.split(":")
        found = [m for m in mutants(TREE / path) if m[0] == int(line) and m[1] == operator]
        if not found:
            parser.error(f"no mutant {where}")
        chosen.append((path, found[0]))
    draw = random.Random(options.seed)
    while not options.line and len(chosen) < options.count:
        room = draw.choice(options.rooms or ROOMS)
        path = draw.choice(sorted(TREE.glob(f"{room}/**/*.c")))
        found = list(mutants(path))
        if found:
            chosen.append((str(path.relative_to(TREE)), draw.choice(found)))
    if options.list:
        for path, (line, operator, *_) in chosen:
            print(f"{path}:{line}:{operator}")
        return
    status, said = build([])
    if status != 0:
        sys.exit(said)
    rooms = sorted({path.split("/")[0] for path, _ in chosen})
    for names in [tests_of(room) for room in rooms] + [[] if options.own else tests_of("fast")]:
        failed = run_tests(short(names))
        if failed:
            sys.exit(f"mutate: {failed} fails without a mutant")
    killed = sum(try_mutant(path, mutant, options.own) for path, mutant in chosen)
    print(f"{killed} of {len(chosen)} killed")
    sys.exit(0 if 10 * killed >= 9 * len(chosen) else 1)


main()
