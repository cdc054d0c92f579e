"use strict";
// The planner's tabs: how they are drawn, and those that show the answer at hand.

const TABS = { "Answer": tabAnswer, "Time": tabTime, "Memory": tabMemory, "What would help": tabHelp, "Layouts": tabLayouts, "Plan": tabPlan,
  "Sweep": tabSweep, "Failures": tabFailures, "Network": tabNetwork, "Fine-tuning": tabFinetune, "Reinforcement learning": tabReinforce,
  "Compare": tabCompare, "Trace": tabTrace, "History": tabHistory, "Sources": tabSources };
const FOLLOWS = ["Answer", "Time", "Memory", "What would help", "Compare", "Sources"]; // drawn anew with every answer; the others ask by a button
const drawn = {}, results = {}, picked = {};

const idOf = (name) => name.replaceAll(" ", "-");

function drawTabs() {
  $("tabs").replaceChildren(...Object.keys(TABS).map((name) => make("button", {
    type: "button", role: "tab", id: "tab-" + idOf(name), "aria-selected": String(name === tab), "aria-controls": "panel",
    tabindex: name === tab ? "0" : "-1", onclick: () => choose(name), onkeydown: turn }, name)));
  $("panel").setAttribute("aria-labelledby", "tab-" + idOf(tab));
}

function turn(event) {
  const names = Object.keys(TABS), at = names.indexOf(tab);
  const to = { ArrowRight: (at + 1) % names.length, ArrowLeft: (at + names.length - 1) % names.length, Home: 0, End: names.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(names[to]);
  $("tab-" + idOf(tab)).focus();
}

function choose(name) { if (name === "History") delete drawn.History; tab = name; drawTabs(); drawTab(); $("panel").scrollTop = 0; }

function drawTab() {
  if (!answer) return;
  const panel = $("panel"), inside = panel.contains(document.activeElement);
  if (!FOLLOWS.includes(tab)) drawn[tab] = drawn[tab] || TABS[tab](answer.answer);
  const nodes = drawn[tab] || TABS[tab](answer.answer);
  if (!nodes || (panel.firstChild === nodes[0] && !FOLLOWS.includes(tab))) return;
  panel.replaceChildren(...nodes);
  if (inside && !panel.contains(document.activeElement)) panel.focus(); // the keyboard stays where it was
}

// --- pieces ---

function card(name, value, more) { return make("li", {}, make("span", {}, name), make("b", {}, value), make("span", {}, more || "")); }

function table(heads, rows, caption) {
  return make("table", {}, caption ? make("caption", {}, caption) : null,
    make("thead", {}, make("tr", {}, ...heads.map((h, i) => (h ? make("th", { class: i ? "n" : "", scope: "col" }, h) : make("td", {}))))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, i) =>
      make(i || !heads[0] ? "td" : "th", i ? { class: "n" } : heads[0] ? { scope: "row" } : {}, cell instanceof Node ? cell : String(cell)))))));
}

// Parts of their sum, or of `whole`.
function bars(title, rows, form, whole) {
  const total = whole || rows.reduce((sum, [, value]) => sum + value, 0) || 1;
  const words = rows.map(([name, value]) => `${name} ${form(value)}`).join(", ");
  const svg = make("svg", { viewBox: `0 0 760 ${26 * rows.length + 6}`, role: "img", "aria-label": `${title}: ${words}` });
  rows.forEach(([name, value], i) => {
    const y = 26 * i + 4, width = 400 * Math.min(1, value / total);
    svg.append(make("text", { x: 0, y: y + 14 }, name), make("rect", { x: 190, y, width: Math.max(width, 0.5), height: 18, class: "c" + i % 8 }),
      make("text", { x: 196 + width, y: y + 14 }, `${form(value)} (${number(100 * value / total, 3)} %)`));
  });
  return svg;
}

function scatter(rows, x, y, xName, yName, xForm, yForm, use, words) {
  const svg = make("svg", { viewBox: "0 0 760 300", role: "group", "aria-label": `${yName} against ${xName}` });
  const span = (f) => { const v = rows.map(f), low = Math.min(...v), high = Math.max(...v); return [low, high > low ? high : low + 1]; };
  const [x0, x1] = span(x), [y0, y1] = span(y);
  svg.append(make("line", { x1: 78, y1: 250, x2: 740, y2: 250, class: "axis" }), make("line", { x1: 78, y1: 20, x2: 78, y2: 250, class: "axis" }),
    make("text", { x: 78, y: 276 }, xForm(x0)), make("text", { x: 740, y: 276, "text-anchor": "end" }, xForm(x1)),
    make("text", { x: 410, y: 294, "text-anchor": "middle" }, xName), make("text", { x: 78, y: 14 }, yName),
    make("text", { x: 72, y: 34, "text-anchor": "end" }, yForm(y1)), make("text", { x: 72, y: 250, "text-anchor": "end" }, yForm(y0)));
  for (const row of rows)
    svg.append(make("circle", { cx: 88 + 640 * (x(row) - x0) / (x1 - x0), cy: 240 - 210 * (y(row) - y0) / (y1 - y0), r: 8, tabindex: "0", role: "button",
      "aria-label": `${words(row)}: ${xForm(x(row))}, ${yForm(y(row))}`, onclick: () => use(row),
      onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); use(row); } } }));
  return svg;
}

// Lines over an axis of powers of two or ten, both logarithmic.
function curves(title, xName, yName, series, xForm, yForm) {
  const points = series.flatMap((s) => s.points), log = Math.log10;
  const span = (i) => { const v = points.map((p) => log(p[i])), low = Math.min(...v), high = Math.max(...v); return [low, Math.max(high, low + 0.1)]; };
  const [x0, x1] = span(0), [y0, y1] = span(1);
  const at = (p) => [88 + 640 * (log(p[0]) - x0) / (x1 - x0), 240 - 210 * (log(p[1]) - y0) / (y1 - y0)];
  const svg = make("svg", { viewBox: `0 0 760 ${300 + 20 * series.length}`, role: "img", "aria-label": title });
  svg.append(make("line", { x1: 78, y1: 250, x2: 740, y2: 250, class: "axis" }), make("line", { x1: 78, y1: 20, x2: 78, y2: 250, class: "axis" }),
    make("text", { x: 78, y: 276 }, xForm(10 ** x0)), make("text", { x: 740, y: 276, "text-anchor": "end" }, xForm(10 ** x1)),
    make("text", { x: 410, y: 276, "text-anchor": "middle" }, xName), make("text", { x: 78, y: 14 }, yName),
    make("text", { x: 72, y: 34, "text-anchor": "end" }, yForm(10 ** y1)), make("text", { x: 72, y: 250, "text-anchor": "end" }, yForm(10 ** y0)));
  series.forEach((s, i) => {
    svg.append(make("polyline", { points: s.points.map((p) => at(p).map((v) => v.toFixed(1)).join(",")).join(" "), class: "line l" + i }),
      make("line", { x1: 88, y1: 296 + 20 * i, x2: 118, y2: 296 + 20 * i, class: "line l" + i }), make("text", { x: 126, y: 300 + 20 * i }, s.name));
  });
  return svg;
}

// A small form of a tab, which keeps what was chosen; `go` gets the values.
function options(of, rows, action, go) {
  const values = picked[of] = picked[of] || {};
  const fields = rows.map(({ key, label, value, choices, list, type }) => {
    const id = `t-${of}-${key}`;
    values[key] = values[key] ?? value;
    const input = choices
      ? make("select", { id }, ...choices.map((c) => (Array.isArray(c) ? c : [c, c])).map(([word, name]) => make("option", { value: word, selected: word === values[key] }, name)))
      : make("input", { id, value: values[key], type: type || "text", list: list ? "list-" + list : null, spellcheck: "false" });
    input.addEventListener("input", () => { values[key] = input.value; });
    return make("div", { class: "field" }, make("label", { for: id }, label), input);
  });
  return make("form", { class: "asks", autocomplete: "off", "aria-label": action, onsubmit: (event) => { event.preventDefault(); go(values); } },
    make("div", { class: "grid" }, ...fields), make("button", { type: "submit", id: of }, action));
}

const place = (name) => (results[name] = results[name] || make("div", {}));

const whose = () => make("p", { class: "soft" }, `Asked of ${state.fields.model || "your model"} on ${state.fields.gpus} GPUs of ${state.fields.cluster || "your cluster"}.`);

// A question into a tab's place; the last one asked wins.
async function into(name, title, tool, args, draw) {
  const box = place(name), turn = box.turn = (box.turn || 0) + 1;
  box.replaceChildren(make("p", { role: "status" }, title));
  try {
    const whole = await ask(tool, args());
    if (box.turn === turn) box.replaceChildren(whose(), ...draw(whole.answer));
  } catch (problem) {
    if (box.turn === turn) box.replaceChildren(make("p", { class: "bad", role: "alert" }, problem.message));
  }
}

function useFields(values) {
  change(() => {
    for (const [key, value] of values) {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      if (TEN.some(([known]) => known === key)) state.fields[key] = text;
      else state.others[key] = text;
    }
  });
}

const useButton = (what, go) => make("button", { type: "button", "aria-label": "Use " + what, onclick: go }, "Use it");

// The scenario with what was chosen where it says auto.
function fixed() {
  const s = scenario();
  for (const [key, value] of Object.entries((answer && answer.answer.chosen) || {})) put(s, key, value);
  return s;
}

// --- the answer at hand ---

function tabAnswer(a) {
  const by = (path) => answer.numbers.find((n) => n.path === path);
  const within = (path, form) => {
    const n = by(path);
    return n && n.interval ? `${n.label}, ${form(n.interval.low)} to ${form(n.interval.high)}` : n ? n.label : "";
  };
  if (a.phases) return loopAnswer(a);
  const chosen = Object.entries(a.chosen || {}), t = a.training || {};
  const price = make("button", { type: "button", onclick: () => addField("cluster.usd_per_gpu_hour") }, "Set a price");
  return [make("ul", { class: "cards" },
    card("Step", seconds(a.step_s), within("step_s", seconds)),
    card("Tokens per second", number(a.tokens_per_s), within("tokens_per_s", number)),
    card("Utilisation (MFU)", number(100 * a.mfu, 3) + " %", within("mfu", (v) => number(100 * v, 3) + " %")),
    card("Days, with failures", number(t.effective_days, 3), t.effective && t.effective.faults_assumed ? `rates of ${t.effective.faults} assumed` : "predicted"),
    card("Days of computing", number(a.days, 3), within("days", (v) => number(v, 3))),
    card("GPU-hours", number(a.gpu_hours), within("gpu_hours", number)),
    card("Cost", a.usd ? number(a.usd) + " dollars" : price, a.usd ? "predicted" : "of a GPU-hour"),
    card("Energy", a.kwh ? number(a.kwh / 1000) + " MWh" : "not known", "predicted"),
    card("Memory of the fullest GPU", gib(a.memory.needed_bytes ?? a.memory.peak_bytes),
      `${a.memory.verdict}, of ${gib(a.memory.capacity_bytes)}`)),
  chosen.length ? make("p", {}, "Chosen where it says auto: " + chosen.map(([k, v]) => `${k} ${plain(v)}`).join(", ") + ".") : null,
  ...(a.notes || []).map((n) => make("p", { class: "soft" }, plain(n)))].filter(Boolean);
}

function tabTime(a) {
  if (a.phases) return [make("p", {}, `The loop is bound by ${a.bound_by}.`), timeline(a.phases)];
  const rows = Object.entries(a.time).filter(([, value]) => value > 0).sort((x, y) => y[1] - x[1])
    .map(([key, value]) => [key.replace(/_s$/, "").replaceAll("_", " "), value]);
  return [make("p", {}, "Where the step goes, on the rank that ends last. What is hidden under computing is not counted."), bars("Parts of the step", rows, seconds)];
}

function tabMemory(a) {
  if (a.roles) return [rolesTable(a)];
  const stage = a.memory.stages.reduce((x, y) => (y.peak_bytes > x.peak_bytes ? y : x));
  const rows = Object.entries(stage).filter(([key, value]) => /^(weights|gradients|optimizer|activations|workspace)_bytes$/.test(key) && value > 0)
    .map(([key, value]) => [key.replace("_bytes", ""), value]);
  return [make("p", {}, `The fullest stage is ${stage.stage}: ${gib(stage.peak_bytes)} allocated of ${gib(a.memory.capacity_bytes)}; ${a.memory.verdict}.`),
    bars("Memory of the fullest stage", rows, gib),
    table(["Stage", "Peak", "Weights", "Gradients", "Optimizer", "Activations"], a.memory.stages.map((s) =>
      [s.stage, gib(s.peak_bytes), gib(s.weights_bytes), gib(s.gradients_bytes), gib(s.optimizer_bytes), gib(s.activations_bytes)]))];
}

async function tabAsync(title, path, body, draw) {
  const of = tab, turn = sequence, show = (...nodes) => {
    const inside = $("panel").contains(document.activeElement);
    $("panel").replaceChildren(...nodes);
    if (inside) $("panel").focus();
  };
  show(make("p", { role: "status" }, title));
  try {
    const whole = await ask(path, body);
    if (of === tab && turn === sequence) show(...draw(whole.answer));
  } catch (problem) {
    if (of === tab) show(make("p", { class: "bad" }, problem.message));
  }
}

function tabHelp() {
  tabAsync("Trying single changes \u2026", "explain", { scenario: fixed() }, (e) => [
    make("p", {}, "A step waits for: " + e.binds.filter((b) => b.step_frac > 0.005).map((b) => `${b.what} (${number(100 * b.step_frac, 3)} %)`).join(", ") + "."),
    table(["Change", "Step", "Gain", "Fits", ""], e.changes.slice(0, 12).map((c) => [c.set.join(", "), seconds(c.step_s), number(100 * c.gain_frac, 3) + " %",
      c.fits ? "yes" : "no", useButton(c.set.join(", "), () => useFields(c.set.map((t) => {
        const at = t.indexOf("="); return [t.slice(0, at), typed(t.slice(at + 1))]; })))]), "Single changes, each simulated")]);
}

// --- two scenarios ---

let examples = null;

function sides() {
  return [["now", "The scenario now"], ...kept.map((k, i) => ["kept" + i, k.name]), ...(examples || []).map((name) => ["example:" + name, "Example: " + name])];
}

function sideOf(word) {
  if (word.startsWith("example:")) return word.slice(8);
  return word.startsWith("kept") ? kept[Number(word.slice(4))].scenario : fixed();
}

function tabCompare() {
  if (!examples) {
    examples = [];
    ask("list", { kind: "examples" }).then((whole) => { examples = whole.answer.map((row) => row.name); if (tab === "Compare") drawTab(); }).catch(() => {});
  }
  const values = picked.compare = picked.compare || { a: null, b: "now" };
  values.a = values.a || (kept.length ? "kept" + (kept.length - 1) : null);
  const pick = (key, label) => {
    const id = "t-compare-" + key, select = make("select", { id }, values[key] ? null : make("option", { value: "" }, "Choose one"),
      ...sides().map(([value, name]) => make("option", { value, selected: value === values[key] }, name)));
    select.addEventListener("change", () => { values[key] = select.value; drawTab(); $(id).focus(); });
    return make("div", { class: "field" }, make("label", { for: id }, label), select);
  };
  const form = make("div", { class: "grid two" }, pick("a", "A"), pick("b", "B"));
  if (!values.a) return [form, make("p", {}, "Keep scenarios with the button beside the form, or choose an example.")];
  if (!results.Compare || results.Compare.of !== sequence + values.a + values.b) {
    into("Compare", "Comparing \u2026", "compare", () => ({ a: sideOf(values.a), b: sideOf(values.b) }), drawCompare);
    results.Compare.of = sequence + values.a + values.b;
  }
  return [form, results.Compare];
}

function drawCompare(c) {
  const form = (key, v) => (/_s$/.test(key) ? seconds(v) : /_bytes$/.test(key) ? gib(v) : number(v));
  return [table(["Figure", "A", "B", "Difference"], Object.entries({ ...c.summary, ...c.time }).filter(([, v]) => v.a || v.b)
    .map(([key, v]) => [key.replace(/_s$|_bytes$/, "").replaceAll("_", " "), form(key, v.a), form(key, v.b),
      v.difference < 0 ? "\u2212" + form(key, -v.difference) : form(key, v.difference)])),
  table(["Field", "A", "B", "Step with it alone"], c.fields.slice(0, 40).map((f) => [f.key, plain(f.a), plain(f.b), f.alone_step_s ? seconds(f.alone_step_s) : "\u2013"]),
    "Fields that differ, and what each does alone")];
}

// --- what was asked before ---

function tabHistory() {
  const box = make("div", {}, make("p", { role: "status" }, "Reading \u2026"));
  const words = (s) => (typeof s === "string" ? s : s && s.model ? `${typeof s.model === "string" ? s.model : s.model.name || "a model"}, ${(s.cluster && s.cluster.preset) || "a cluster"}, ${(s.cluster && s.cluster.nodes) || 1} nodes` : "");
  const open = (args) => (args.scenario && typeof args.scenario === "object" ? useButton(words(args.scenario), () => change(() => takeOver(args.scenario, true))) : "");
  ask("history").then((rows) => box.replaceChildren(rows.length
    ? table(["Asked", "Question", "Of", ""], rows.map((r) => [new Date(1000 * r.at_s).toLocaleString(), r.tool, words(r.arguments.scenario || r.arguments.a), open(r.arguments)]))
    : make("p", {}, "Nothing is kept. The server keeps long questions and their answers where it is started with --store answers.db.")))
    .catch((problem) => box.replaceChildren(make("p", { class: "bad", role: "alert" }, problem.message)));
  return [box];
}

function tabSources() {
  return [make("p", {}, `Orrery ${answer.version}. Every number and what it is:`),
    table(["Number", "Value", "Unit", "Label", "From", "To"], answer.numbers.map((n) => [n.path, number(n.value), n.unit, n.label,
      n.interval ? number(n.interval.low) : "\u2013", n.interval ? number(n.interval.high) : "\u2013"])),
    table(["What", "Label", "Source"], answer.labels.map((l) => [l.path || "all other numbers", l.label, l.source])),
    make("h2", {}, "Assumed, because nobody gave it"),
    make("p", {}, make("code", {}, answer.assumed.join("  "))), make("p", { class: "soft" }, `and ${answer.assumed_in_profiles} more within the profiles of software and chip.`)];
}
