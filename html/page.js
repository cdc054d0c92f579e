"use strict";
(function () {
  function zoomable(figure) {
    const svg = figure.querySelector("svg.zooms"), bar = figure.querySelector("p.zoom");
    const whole = svg.getAttribute("viewBox").split(" ").map(Number), view = whole.slice();
    function show() { svg.setAttribute("viewBox", view.map(v => v.toFixed(2)).join(" ")); }
    function clamp() {
      for (let i = 0; i < 2; i++)
        view[i] = Math.min(Math.max(view[i], whole[i]), whole[i] + whole[i + 2] - view[i + 2]);
    }
    function zoom(factor, x, y) {
      const scale = Math.min(Math.max(whole[2] / view[2] * factor, 1), 400);
      const width = whole[2] / scale, height = whole[3] / scale;
      view[0] = x - (x - view[0]) * width / view[2];
      view[1] = y - (y - view[1]) * height / view[3];
      view[2] = width;
      view[3] = height;
      clamp();
      show();
    }
    function at(event) {
      const box = svg.getBoundingClientRect();
      return [view[0] + (event.clientX - box.left) / box.width * view[2],
              view[1] + (event.clientY - box.top) / box.height * view[3]];
    }
    bar.hidden = false;
    bar.addEventListener("click", function (event) {
      const factor = Number(event.target.dataset.zoom);
      if (event.target.dataset.zoom === undefined)
        return;
      if (factor === 0) {
        view.splice(0, 4, ...whole);
        show();
      } else {
        zoom(factor, view[0] + view[2] / 2, view[1] + view[3] / 2);
      }
    });
    svg.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey)
        return;
      event.preventDefault();
      const [x, y] = at(event);
      zoom(Math.exp(-(event.deltaY || event.deltaX) / 300), x, y);
    }, { passive: false });
    let held = null;
    svg.addEventListener("pointerdown", function (event) { held = at(event); svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", function () { held = null; });
    svg.addEventListener("pointermove", function (event) {
      if (held === null)
        return;
      const [x, y] = at(event);
      view[0] -= x - held[0];
      view[1] -= y - held[1];
      clamp();
      show();
    });
    return { at: at, svg: svg, output: bar.querySelector("output") };
  }

  function namePasses(figure, data) {
    const lanes = new Map();
    for (const row of data.rows) {
      const key = row[0] / data.step * 2 + row[1];
      if (!lanes.has(key))
        lanes.set(key, []);
      lanes.get(key).push(row);
    }
    figure.svg.addEventListener("pointermove", function (event) {
      const [x, y] = figure.at(event);
      const time = (x - data.left) / (data.right - data.left) * data.end;
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
