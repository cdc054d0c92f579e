#!/usr/bin/env python3
"""Sentences that the program prints have at most 25 words, those of a page 38, and say what they are about.

    check_words.py [ROOT]      exit 1 and the sentences if some are longer, or lean on a sentence before them

Looks at every string of the product's C that holds a sentence: errors, notes, answers. Help texts of fields have a test
of their own (unit/spec/test_spec_tables.c). An argument ("%s") counts as one word.
"""
import pathlib
import re
import sys

MOST_WORDS = 25
MOST_WORDS_OF_PAGE = 38
LEANING = re.compile(r"(The same|That|Those|Times their|Such|Theirs)\b")
STRING = r'"(?:\\.|[^"\\\n])*"'
MACRO = r"(?:\s*\b(?:G_\w+_FORMAT|PRI\w+)\b)?"
STRINGS = re.compile(rf"{STRING}(?:{MACRO}\s*{STRING})*")


def texts(source):
    """(line, text) of each run of adjacent strings outside comments and preprocessor lines."""
    code = re.sub(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|^[ \t]*#[^\n]*',
                  lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), source, flags=re.S | re.M)
    for found in STRINGS.finditer(code):
        parts = re.findall(STRING, found[0])
        yield code.count("\n", 0, found.start()) + 1, "".join(part[1:-1] for part in parts)


def sentences(text):
    text = re.sub(r"\\[nt]", "\n", text)
    for block in re.split(r"\n", text):
        yield from (part.strip() for part in re.split(r"(?<=[.!?;])\s+", block))


def prose(page):
    """(line, paragraph or list item) of a page: no headings, tables or blocks of code."""
    start, parts, fenced, listed, blank = 0, [], False, False, True
    for number, line in enumerate(page.split("\n") + [""], 1):
        fence = line.startswith("```")
        item = re.match(r" *([-*]|\d+[.]) ", line)
        code = fenced or fence or (line.startswith("    ") and blank and not listed)
        fenced ^= fence
        if parts and (code or item or line == "" or line[0] in "|#"):
            yield start, " ".join(parts)
            parts = []
        if code or line == "" or line[0] in "|#":
            listed = listed and not line.startswith(("|", "#"))
            blank = line == "" or (blank and line.startswith("    "))
            continue
        listed = bool(item) or (listed and not (blank and line[0] != " "))
        start = start if parts else number
        parts.append(line[item.end():] if item else line.strip())
        blank = False


def check_page(name, page):
    for line, paragraph in prose(page):
        paragraph = re.sub(r"\]\([^)]*\)", "]", paragraph)
        for sentence in re.split(r"(?<=[.!?])[\")\]]*\s+(?=[A-Z`\"(\[*0-9])", paragraph):
            words = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if words > MOST_WORDS_OF_PAGE:
                yield f"{name}:{line}: {words} words: {sentence}"


def check_pages(root):
    wrong = []
    for path in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        name = str(path.relative_to(root))
        wrong += check_page(name, path.read_text())
    return wrong


def check(root):
    wrong = []
    for path in sorted(root.glob("*/**/*.c")):
        name = str(path.relative_to(root))
        if name.startswith(("tests/", "build/", "docs/")) or "/fields_" in name:
            continue
        for line, text in texts(path.read_text()):
            for sentence in sentences(text):
                words = len(sentence.split())
                if words > MOST_WORDS:
                    wrong.append(f"{name}:{line}: {words} words: {sentence}")
                elif words > 3 and LEANING.match(sentence):
                    wrong.append(f"{name}:{line}: leans on what is not there: {sentence}")
    return wrong


top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
found = check(top) + check_pages(top)
for sentence in found:
    print(sentence)
if found:
    sys.exit(f"check_words: {len(found)} sentences; at most {MOST_WORDS} words each in print, {MOST_WORDS_OF_PAGE} on a page, subject first")
