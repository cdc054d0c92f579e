#!/usr/bin/env python3
"""Runs the code cells of notebooks and compares what they say with what is recorded: run_notebook.py [--fix] NOTEBOOK...

A cell's outputs are what it prints and the value of its last expression, as Jupyter has them. Text must be the recorded text;
of HTML and pictures there must be some where some is recorded, since they are large and their text says the same. --fix
records today's. Only the standard library is needed; the notebooks are as nbformat 4.5 has them.
"""

import ast
import contextlib
import io
import json
import sys
import traceback


def value_of(source, space, name):
    """Runs a cell in `space`; the value of its last expression, or None."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), space)


def outputs_of(source, space, count):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        value = value_of(source, space, f"cell {count}")
    outputs = []
    if said.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": said.getvalue().splitlines(True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(True)
        outputs.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return outputs


def texts(outputs):
    """What is compared: each output's text, and which other forms it has."""
    return [("".join(output["text"]), ()) if output["output_type"] == "stream" else
            ("".join(output["data"]["text/plain"]), tuple(sorted(set(output["data"]) - {"text/plain"}))) for output in outputs]


def run(path, fix):
    with open(path, encoding="utf-8") as file:
        book = json.load(file)
    assert book["nbformat"] == 4 and book["nbformat_minor"] >= 5, f"{path}: nbformat 4.5 is wanted"
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"]), f"{path}: ids of cells are not unique"
    space, count, bad = {"__name__": "__main__"}, 0, 0
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        try:
            outputs = outputs_of("".join(cell["source"]), space, count)
        except Exception:
            print(f"{path}: cell {count} fails:\n{traceback.format_exc()}")
            return False
        if fix:
            cell["outputs"], cell["execution_count"] = outputs, count
        elif texts(outputs) != texts(cell["outputs"]):
            bad += 1
            print(f"{path}: cell {count} says\n{texts(outputs)}\nwhere recorded is\n{texts(cell['outputs'])}")
    if fix:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    print(f"{path}: {count} cells, {bad} differ")
    return bad == 0 and count > 0


if __name__ == "__main__":
    given = sys.argv[1:]
    results = [run(path, "--fix" in given) for path in given if path != "--fix"]
    sys.exit(not results or not all(results))
