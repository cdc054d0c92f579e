#!/usr/bin/env python3
"""The six drawings of the docs: draw.py FOLDER writes them as SVG. Rooms come from CMakeLists.txt, the 1F1B step from playing it."""

import html
import os
import re
import sys

INK, SOFT, LINE = "#222222", "#555555", "#888888"
BLUE, SKY, GREEN, MINT, ORANGE, PINK, VIOLET, GREY = (
    "#0072B2", "#56B4E9", "#009E73", "#8FD3B6", "#E69F00", "#CC79A7", "#7A6A9B", "#EDEDED")
HERE = os.path.dirname(os.path.abspath(__file__))


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.parts, self.title = width, height, [], title

    def box(self, x, y, width, height, fill=GREY, stroke="none", round=4):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}" fill="{fill}" stroke="{stroke}"/>')

    def text(self, x, y, text, size=13, anchor="middle", fill=INK, weight="normal"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
                          f'font-weight="{weight}">{html.escape(text)}</text>')

    def label(self, x, y, width, height, lines, fill, ink=INK, size=13):
        self.box(x, y, width, height, fill)
        first = y + height / 2 + size * 0.36 - (len(lines) - 1) * size * 0.62
        for i, line in enumerate(lines):
            self.text(x + width / 2, first + i * size * 1.24, line, size if i == 0 else size - 2, fill=ink if i == 0 else
                      (ink if ink != INK else SOFT))

    def line(self, x0, y0, x1, y1, arrow=False, stroke=LINE, width=1.5, dash=None):
        self.parts.append(f'<path d="M{x0:g} {y0:g}L{x1:g} {y1:g}" stroke="{stroke}" stroke-width="{width:g}" fill="none"'
                          + (' marker-end="url(#a)"' if arrow else "") + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" role="img">\n'
                f"<title>{html.escape(self.title)}</title>\n"
                f'<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>\n'
                f'<rect width="{self.width}" height="{self.height}" fill="#FFFFFF"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def data_flow():
    p = Picture(800, 470, "From a scenario to a report")
    stops = [("scenario.json", "presets, --set", GREY, INK), ("Spec", "values, checked, constant", SKY, INK),
             ("SimPlan", "every duration and byte", SKY, INK), ("SimProgram", "instructions of each stream", SKY, INK),
             ("SimResult", "spans, memory levels", SKY, INK), ("Report", "one struct", GREEN, "#FFFFFF")]
    works = [("spec/", "strict reading; contradictions refused"), ("costmodel/", "GEMMs, attention, collectives to ps and bytes"),
             ("schedule/, program/", "orders become streams and waits"), ("sim/engine", "rates, contention, memory"),
             ("report/", "parts, MFU, memory by stage")]
    for i, (name, what, fill, ink) in enumerate(stops):
        y = 20 + i * 76
        p.label(40, y, 220, 48, [name, what], fill, ink)
        if i < len(works):
            p.line(150, y + 48, 150, y + 74, arrow=True)
            p.text(166, y + 66, works[i][0], 12, "start", INK, "bold")
            p.text(178 + 7.4 * len(works[i][0]), y + 66, works[i][1], 11, "start", SOFT)
    p.label(590, 96, 180, 48, ["search, plan", "many Specs, bounds first"], ORANGE)
    p.line(590, 120, 262, 120, arrow=True, dash="5 4")
    p.label(590, 324, 180, 48, ["ledger", "published runs beside"], VIOLET, "#FFFFFF")
    p.line(260, 424, 680, 424, stroke=LINE)
    p.line(680, 424, 680, 374, arrow=True)
    p.line(680, 324, 680, 146, arrow=True, dash="5 4")
    p.text(690, 240, "reserve", 11, "start", SOFT)
    p.text(270, 416, "text, JSON, CSV, trace, SVG page, plots", 12, "start", SOFT)
    return p


def rooms():
    text = open(os.path.join(HERE, "..", "..", "CMakeLists.txt"), encoding="utf-8").read()
    leans = {words[0]: words[1:] for words in (m.split() for m in re.findall(r"^\s*orrery_room\(([^)]*)\)", text, re.M))}
    leans = {room: [other for other in others if other in leans and other != room] for room, others in leans.items()}

    def level(room):
        return 1 + max((level(other) for other in leans[room]), default=-1)
    levels = {}
    for room in sorted(leans):
        levels.setdefault(level(room), []).append(room)
    top = max(levels) + 1
    levels[top] = ["cli"]
    p = Picture(800, 34 + 44 * (top + 1), "Rooms: each may lean on what lies below")
    colours = {"base": GREY, "spec": GREY, "schedule": GREY, "costmodel": SKY, "sim": SKY, "program": SKY, "step": SKY, "network": SKY, "traffic": SKY}
    for height, names in levels.items():
        width = min(150, 640 / len(names) - 10)
        left = 420 - (len(names) * (width + 10) - 10) / 2
        y = 14 + (top - height) * 44
        for i, name in enumerate(names):
            p.label(left + i * (width + 10), y, width, 34, [name + "/"], colours.get(name, MINT))
        if height < top:
            p.line(60, y - 6, 780, y - 6, stroke="#E4E4E4", width=1)
    p.line(36, 20, 36, 14 + top * 44 + 26, arrow=True)
    p.text(48, 14 + top * 44 + 22, "may include", 12, "start", SOFT)
    return p


def streams():
    p = Picture(800, 400, "One rank: streams and what they hold")
    rows = [("compute", "SMs: all that is left", BLUE, [(0, 150), (190, 110), (300, 84)]),
            ("data communication", "SMs (reserved), port or NIC (fair)", PINK, [(150, 150)]),
            ("send to next stage", "port or NIC (fair)", SKY, [(150, 40), (384, 40)]),
            ("send to previous stage", "port or NIC (fair)", SKY, [(300, 40)]),
            ("host to device", "PCIe root (shared), host DRAM", ORANGE, [(40, 90)]),
            ("device to host", "PCIe root (shared), host DRAM", ORANGE, [(190, 90)]),
            ("host", "CPU cores, host DRAM", VIOLET, [(280, 80)])]
    p.text(20, 26, "stream", 12, "start", SOFT)
    p.text(190, 26, "ops over time", 12, "start", SOFT)
    p.text(650, 26, "holds shares of", 12, "start", SOFT)
    for i, (name, holds, colour, ops) in enumerate(rows):
        y = 40 + i * 42
        p.text(20, y + 19, name, 12, "start")
        p.box(190, y, 440, 28, GREY)
        for start, length in ops:
            p.box(192 + start, y + 3, length - 3, 22, colour, round=2)
        p.text(640, y + 18, holds, 9.5, "start", SOFT)
    # Waits: the reduction and the message for the first op of compute, the third op for the reduction.
    p.line(342, 65, 342, 84, arrow=True, stroke=INK, width=1.2)
    p.line(340, 65, 340, 130, stroke=INK, width=1.2)
    p.line(340, 137, 342, 137, stroke=INK, width=1.2)
    p.line(340, 130, 340, 137, stroke=INK, width=1.2)
    p.line(490, 84, 490, 67, arrow=True, stroke=INK, width=1.2)
    p.line(190, 352, 630, 352, arrow=True)
    p.text(410, 370, "time, whole picoseconds", 12, fill=SOFT)
    p.text(20, 390, "An op takes its time at full rate; who shares an overfull resource gets max-min fair rates. Arrows are waits.", 11, "start", SOFT)
    return p


def one_f_one_b():
    ranks, batches, forward, backward = 4, 8, 1, 2
    done, lanes = {}, [[] for _ in range(ranks)]
    orders = []
    for rank in range(ranks):
        warm = min(batches, ranks - 1 - rank)
        order = [("F", k) for k in range(warm)]
        for k in range(batches - warm):
            order += [("F", warm + k), ("B", k)]
        orders.append(order + [("B", k) for k in range(batches - warm, batches)])
    free = [0] * ranks
    while any(orders):
        for rank in range(ranks):
            if not orders[rank]:
                continue
            what, k = orders[rank][0]
            needs = ("F", rank - 1, k) if what == "F" else ("B", rank + 1, k) if rank < ranks - 1 else ("F", rank, k)
            if what == "F" and rank == 0:
                start = free[rank]
            elif needs in done:
                start = max(free[rank], done[needs])
            else:
                continue
            orders[rank].pop(0)
            free[rank] = done[what, rank, k] = start + (forward if what == "F" else backward)
            lanes[rank].append((what, k, start, free[rank]))
    end = max(free)
    p = Picture(800, 250, "A step of 1F1B: 4 pipeline ranks, 8 micro-batches")
    scale = 690 / end
    for rank, lane in enumerate(lanes):
        y = 44 + rank * 38
        p.text(70, y + 20, f"rank {rank}", 12, "end")
        p.box(84, y, 690, 30, GREY, round=0)
        for what, k, start, stop in lane:
            p.box(84 + start * scale + 0.5, y, (stop - start) * scale - 1, 30, BLUE if what == "F" else GREEN, round=1)
            p.text(84 + (start + stop) / 2 * scale, y + 20, str(k), 11, fill="#FFFFFF")
    warm = (ranks - 1) * forward * scale
    p.text(84, 30, "warm-up", 11, "start", SOFT)
    p.text(84 + 0.42 * 690, 30, "one forward, one backward", 11, "middle", SOFT)
    p.text(774, 30, "drain", 11, "end", SOFT)
    p.line(84 + warm, 36, 84 + warm, 196, stroke=INK, width=1, dash="3 3")
    for x, colour, name in ((84, BLUE, "forward"), (180, GREEN, "backward, twice as long"), (370, "#DDDDDD", "bubble")):
        p.box(x, 214, 16, 14, colour, round=2)
        p.text(x + 22, 226, name, 12, "start")
    p.text(774, 226, f"bubble (p - 1) / (m + p - 1) = {ranks - 1}/{batches + ranks - 1} of the step", 11, "end", SOFT)
    assert end == (batches + ranks - 1) * (forward + backward)
    return p


def memory():
    p = Picture(800, 400, "What fills a GPU, and what makes it smaller")
    blocks = [("weights", "2 B a parameter (bf16)", 40, BLUE, "tensor, pipeline, expert; ZeRO-3"),
              ("gradients", "2 or 4 B a parameter", 52, SKY, "the same; ZeRO-2"),
              ("optimizer states", "Adam: 12 B a parameter (fp32)", 76, VIOLET, "the same; ZeRO-1; offload"),
              ("activations", "of all layers and live micro-batches", 96, ORANGE, "recompute, tensor, context, schedule"),
              ("workspace", "of the op that runs, gathered weights", 22, PINK, "micro-batch, buckets, prefetch"),
              ("allocator, context", "rounding, NCCL, CUDA", 26, "#BBBBBB", "framework")]
    y, left = 360, 190
    p.text(left + 60, 384, "one GPU", 12, fill=SOFT)
    p.text(550, 22, "smaller by", 12, "start", SOFT)
    for name, what, height, colour, by in blocks:
        y -= height
        p.box(left, y, 120, height - 1, colour, round=1)
        middle = y + height / 2 + 4
        p.text(left - 12, middle, name, 13, "end")
        p.text(left + 132, middle, what, 11, "start", SOFT)
        p.text(550, middle, by, 11, "start", INK)
    p.line(left - 10, 18, left + 130, 18, stroke="#D55E00", width=2, dash="7 5")
    p.text(left - 14, 22, "capacity", 12, "end", "#D55E00")
    p.text(left + 60, 36, "room", 11, fill=SOFT)
    return p


def network():
    p = Picture(800, 400, "Two nodes of eight GPUs and the fabric between them")
    for i in range(4):
        p.label(150 + i * 140, 20, 100, 30, [f"spine {i}"], "#CCCCCC")
    for i in range(8):
        x = 90 + i * 88
        p.label(x - 36, 110, 72, 28, [f"leaf {i}"], "#CCCCCC", size=12)
        for j in range(4):
            p.line(x, 110, 200 + j * 140, 50, stroke=ORANGE, width=0.8)
    for node in range(2):
        left = 30 + node * 390
        p.box(left, 196, 350, 150, "#F4F6F8", LINE)
        for gpu in range(8):
            x = left + 26 + gpu * 42.5
            p.box(x - 14, 208, 28, 18, MINT, round=2)
            p.text(x, 221, "NIC", 9)
            p.box(x - 16, 244, 32, 26, GREEN, round=3)
            p.text(x, 262, str(8 * node + gpu), 12, fill="#FFFFFF")
            p.line(x, 226, x, 244)
            p.line(x, 208, 90 + gpu * 88, 138, stroke=ORANGE, width=1)
            p.line(x, 270, left + 175, 300, stroke=BLUE, width=1.5)
        p.label(left + 95, 300, 160, 26, ["NVSwitch"], SKY)
        p.text(left + 175, 340, f"node {node}", 11, fill=SOFT)
    p.text(20, 366, "scale-up (blue): every GPU to every GPU of its node. Scale-out (orange): each GPU has a NIC; rail-optimised, GPU i of", 11, "start", SOFT)
    p.text(20, 382, "every node meets at leaf i, and rails meet at the spines. Degrees are laid out so that tensor stays within a node.", 11, "start", SOFT)
    return p


DRAWINGS = {"data-flow": data_flow, "rooms": rooms, "streams": streams, "1f1b": one_f_one_b, "memory": memory, "network": network}

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, draw in DRAWINGS.items():
        with open(os.path.join(sys.argv[1], name + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw().svg())
