"use strict";
(function () {
  const drawing = "http://www.w3.org/2000/svg";
  function add(parent, name, attributes, text) {
    const node = parent.appendChild(document.createElementNS(drawing, name));
    for (const key in attributes)
      node.setAttribute(key, attributes[key]);
    if (text !== undefined)
      node.textContent = text;
  }

  // A figure whose time axis stretches: what lies in ".moves" does, ticks are drawn anew, all else stays.
  function zoomable(figure) {
    const svg = figure.querySelector("svg.zooms"), bar = figure.querySelector("p.zoom"), frame = svg.parentNode;
    const moves = svg.querySelector(".moves"), ticks = svg.querySelector(".ticks"), hooks = [];
    const [left, right, bottom, first, last] = ["left", "right", "bottom", "x0", "x1"].map(k => Number(svg.dataset[k]));
    let from = first, to = last;
    const place = time => left + (right - left) * (time - from) / (to - from);
    const time = x => from + (to - from) * (x - left) / (right - left);
    function show() {
      const factor = (last - first) / (to - from), origin = left + (right - left) * (from - first) / (last - first);
      moves.setAttribute("transform", "matrix(" + factor + " 0 0 1 " + (left - factor * origin) + " 0)");
      ticks.replaceChildren();
      const least = (to - from) / 8, power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].find(n => n * power >= least * (1 - 1e-9)) * power;
      const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
      for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) {
        const x = place(n * step).toFixed(2);
        add(ticks, "line", { class: "axis", x1: x, y1: bottom, x2: x, y2: bottom + 5 });
        add(ticks, "text", { class: "tick", "text-anchor": "middle", x: x, y: bottom + 20 }, (n * step).toFixed(digits));
      }
      for (const hook of hooks)
        hook(from, to, place);
    }
    function look(start, width) {
      width = Math.min(Math.max(width, (last - first) / 2000), last - first);
      from = Math.min(Math.max(start, first), last - width);
      to = from + width;
      show();
    }
    function zoom(factor, about) { look(about - (about - from) / factor, (to - from) / factor); }
    function at(event) {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      return [(event.clientX - box.left) / box.width * view.width, (event.clientY - box.top) / box.height * view.height];
    }
    bar.hidden = false;
    bar.addEventListener("click", function (event) {
      const factor = Number(event.target.dataset.zoom);
      if (factor === 0)
        look(first, last - first);
      else if (factor > 0)
        zoom(factor, (from + to) / 2);
    });
    frame.addEventListener("keydown", function (event) {
      const width = to - from;
      const does = { ArrowLeft: () => look(from - width / 8, width), ArrowRight: () => look(from + width / 8, width),
        "+": () => zoom(2, (from + to) / 2), "=": () => zoom(2, (from + to) / 2), "-": () => zoom(0.5, (from + to) / 2),
        Home: () => look(first, last - first), 0: () => look(first, last - first) }[event.key];
      if (does === undefined || event.ctrlKey || event.metaKey || event.altKey)
        return;
      event.preventDefault();
      does();
    });
    svg.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey)
        return;
      event.preventDefault();
      zoom(Math.exp(-(event.deltaY || event.deltaX) / 300), time(at(event)[0]));
    }, { passive: false });
    let held = null;
    svg.addEventListener("pointerdown", function (event) { held = time(at(event)[0]); svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", function () { held = null; });
    svg.addEventListener("pointermove", function (event) {
      if (held !== null)
        look(from + held - time(at(event)[0]), to - from);
    });
    return { at: at, time: time, hooks: hooks, svg: svg, output: bar.querySelector("output") };
  }

  // Says what the pointer is on, and numbers passes that have room.
  function namePasses(figure, data) {
    const lanes = new Map(), numbers = figure.svg.querySelector(".numbers"), drawn = [...numbers.childNodes];
    for (const row of data.rows) {
      const key = row[0] / data.step * 2 + row[1];
      if (!lanes.has(key))
        lanes.set(key, []);
      lanes.get(key).push(row);
    }
    figure.hooks.push(function (from, to, place) {
      numbers.replaceChildren(...(to - from > data.end * (1 - 1e-9) ? drawn : []));
      if (numbers.childNodes.length > 0)
        return;
      for (const row of data.rows) {
        const kind = data.numbered[row[4]], text = String(row[6]);
        if (kind === 0 || row[1] !== 0 || row[6] < 0 || row[3] < from || row[2] > to ||
            place(row[3]) - place(row[2]) < 7.5 * text.length + 2)
          continue;
        add(numbers, "text", { class: kind === 2 ? "mb light" : "mb", "text-anchor": "middle",
          x: (place(Math.max(row[2], from)) + place(Math.min(row[3], to))) / 2,
          y: data.top + (row[0] / data.step + 0.37) * data.lane + 4 }, text);
      }
    });
    figure.svg.addEventListener("pointermove", function (event) {
      const [x, y] = figure.at(event), time = figure.time(x);
      const lane = (y - data.top) / data.lane, band = lane - Math.floor(lane) > 0.715 ? 1 : 0;
      const row = (lanes.get(Math.floor(lane) * 2 + band) || []).find(r => time >= r[2] && time < r[3]);
      const digits = data.end >= 100 ? 2 : 4;
      figure.output.textContent = row === undefined ? "" : "rank " + row[0] + ": " + data.kinds[row[4]] +
        (row[6] >= 0 ? " of micro-batch " + row[6] : "") + (row[5] >= 0 ? ", stage " + row[5] : "") + ", " +
        row[2].toFixed(digits) + " to " + row[3].toFixed(digits) + " " + data.unit;
    });
  }

  const figures = new Map();
  for (const figure of document.querySelectorAll("figure")) {
    if (figure.querySelector("svg.zooms") !== null)
      figures.set(figure.id, zoomable(figure));
  }
  const passes = document.getElementById("passes");
  if (passes !== null && figures.has("pipeline"))
    namePasses(figures.get("pipeline"), JSON.parse(passes.textContent));
}());
