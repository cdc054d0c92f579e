"use strict";
// The planner's page. All text of answers goes through textContent; nothing is fetched from anywhere but this server.

const FIVE = [
  ["model", "Model", "llama3-8b", "models"],
  ["cluster", "Cluster", "dgx-h100", "clusters"],
  ["gpus", "GPUs", "64"],
  ["tokens", "Tokens", "1e12"],
  ["deadline", "Deadline in days", "30"],
];
const TEN = [
  ["parallel.tensor", "Tensor parallel", "auto"],
  ["parallel.pipeline", "Pipeline parallel", "auto"],
  ["parallel.context", "Context parallel", "1"],
  ["parallel.expert", "Expert parallel", "1"],
  ["parallel.zero", "ZeRO stage", "1"],
  ["parallel.schedule", "Schedule", "1f1b"],
  ["training.micro_batch", "Micro-batch", "auto"],
  ["training.global_batch", "Global batch", "512"],
  ["training.sequence_length", "Sequence length", "8192"],
  ["training.recompute", "Recomputation", "none"],
];
const TABS = ["Answer", "Time", "Memory", "What would help", "Layouts", "Plan", "Compare", "Sources"];

const $ = (id) => document.getElementById(id);
const state = { fields: {}, others: {}, base: null };
let history = [], clusters = {}, all = null, answer = null, kept = null, tab = "Answer";
let asking = null, sequence = 0, job = null;

// --- small helpers ---

function make(name, attributes, ...children) {
  const svg = ["svg", "rect", "circle", "line", "text", "g", "title"].includes(name) && name !== "title";
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null) node.append(child);
  return node;
}

function number(value, digits = 4) {
  if (value === null || value === undefined) return "not known";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(digits)));
}

const gib = (bytes) => number(bytes / 2 ** 30, 3) + " GiB";

function seconds(value) {
  if (value >= 1) return number(value) + " s";
  return value >= 1e-3 ? number(value * 1e3) + " ms" : number(value * 1e6) + " \u00b5s";
}

function typed(text) {
  const trimmed = text.trim();
  try { return JSON.parse(trimmed); } catch { return trimmed; }
}

function put(object, path, value) {
  const keys = path.split(".");
  for (const key of keys.slice(0, -1)) {
    if (typeof object[key] === "string") object[key] = { preset: object[key] };
    object = object[key] = object[key] || {};
  }
  object[keys.at(-1)] = value;
}

async function ask(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const token = sessionStorage.getItem("orrery-token");
  if (token) headers.Authorization = "Bearer " + token;
  const response = await fetch("api/" + path, {
    method: body === undefined ? "GET" : "POST", headers, signal,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const data = await response.json();
  if (!response.ok) throw new Error(data.error || "the server answered " + response.status);
  return data;
}

// --- the scenario ---

function scenario() {
  const s = state.base ? structuredClone(state.base) : { execution: { framework: "megatron-core" } };
  const f = state.fields, perNode = clusters[f.cluster] || 8, gpus = Number(f.gpus);
  if (!state.base || f.model) put(s, "model", f.model ? typed(f.model) : s.model);
  if (f.cluster) {
    const nodes = Math.max(1, Math.ceil(gpus / perNode));
    s.cluster = { ...(typeof s.cluster === "object" ? s.cluster : {}), preset: f.cluster, nodes };
    if (gpus < perNode) s.cluster.gpus_per_node = gpus;
  }
  if (f.tokens) put(s, "training.tokens", typed(f.tokens));
  for (const [key] of TEN) if (f[key]) put(s, key, typed(f[key]));
  for (const [key, value] of Object.entries(state.others)) if (value !== "") put(s, key, typed(value));
  return s;
}

function encode(data) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(data))))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function decode(text) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
}

function readLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.get("token")) sessionStorage.setItem("orrery-token", parts.get("token"));
  for (const [key, , value] of [...FIVE, ...TEN]) state.fields[key] = value;
  if (!parts.get("s")) return;
  try {
    const read = decode(parts.get("s"));
    Object.assign(state, { fields: { ...state.fields, ...read.fields }, others: read.others || {}, base: read.base || null });
  } catch { say("The link is broken; these are the fields to begin with."); }
}

const snapshot = () => structuredClone({ fields: state.fields, others: state.others, base: state.base });

function change(update) {
  history.push(snapshot());
  if (history.length > 100) history.shift();
  update();
  show();
}

function say(text) { $("note").textContent = text; }

// --- the form ---

function field(key, label, value, list, onChange, onRemove) {
  const id = "f-" + key.replaceAll(".", "-");
  const input = make("input", { id, name: key, value: value ?? "", list: list ? "list-" + list : null, spellcheck: "false" });
  input.addEventListener("input", () => { onChange(input.value); });
  const remove = onRemove ? make("button", { type: "button", "aria-label": "Remove " + key, onclick: onRemove }, "\u00d7") : null;
  return make("div", { class: "field" }, make("label", { for: id }, label), make("div", { class: "pair" }, input, remove));
}

let pending = null, typing = false;

// One step of undo for what is typed in one go.
function edited(update) {
  if (!typing) { history.push(snapshot()); typing = true; }
  update();
  clearTimeout(pending);
  pending = setTimeout(() => { typing = false; }, 1500);
  soon();
}

function drawForm() {
  const active = document.activeElement && document.activeElement.id;
  const fields = (rows) => rows.map(([key, label, , list]) =>
    field(key, label, state.fields[key], list, (value) => edited(() => { state.fields[key] = value; })));
  $("five").replaceChildren(...fields(FIVE));
  $("ten").replaceChildren(...fields(TEN));
  $("others").replaceChildren(...Object.entries(state.others).map(([key, value]) =>
    field(key, key, value, null, (text) => edited(() => { state.others[key] = text; }),
      () => change(() => { delete state.others[key]; }))));
  if (active && $(active)) $(active).focus();
}

function show() { drawForm(); soon(); }

async function find() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) { $("found").replaceChildren(); return; }
  all = all || await ask("fields");
  const rows = all.filter((f) => !/^(measurement|accelerator|framework)\./.test(f.key))
    .map((f) => ({ ...f, score: words.every((w) => f.key.includes(w)) ? 2 : words.every((w) => (f.key + f.help).toLowerCase().includes(w)) ? 1 : 0 }))
    .filter((f) => f.score).sort((a, b) => b.score - a.score).slice(0, 12);
  $("found").replaceChildren(...rows.map((f) => make("li", {}, make("button", {
    type: "button", onclick: () => {
      const known = TEN.some(([key]) => key === f.key);
      if (!known) change(() => { state.others[f.key] = state.others[f.key] ?? ""; });
      const input = $("f-" + f.key.replaceAll(".", "-"));
      if (input) input.focus();
    } }, f.key, make("span", {}, f.help.split("\n").slice(1).join("\n").split("\n\n")[0].replace(/\s+/g, " ").trim())))));
  $("found-help").textContent = rows.length ? rows.length + " fields; choose one to set it." : "No field has these words.";
}

// --- asking ---

let timer = null;
function soon() { clearTimeout(timer); timer = setTimeout(run, 40); }

async function run() {
  const turn = ++sequence;
  if (asking) asking.abort();
  asking = new AbortController();
  $("sentence").className = "old";
  const token = sessionStorage.getItem("orrery-token");
  window.history.replaceState(null, "", "#" + (token ? "token=" + token + "&" : "") + "s=" + encode(snapshot()));
  const begun = performance.now();
  try {
    const whole = await ask("run", { scenario: scenario() }, asking.signal);
    if (turn !== sequence) return;
    answer = whole;
    $("error").textContent = "";
    $("sentence").replaceChildren(...sentence(whole.answer));
    $("took").textContent = "Answered in " + Math.round(performance.now() - begun) + " ms.";
    $("sentence").className = "";
    drawTab();
  } catch (problem) {
    if (problem.name === "AbortError" || turn !== sequence) return;
    $("error").textContent = problem.message;
  }
}

function sentence(a) {
  const days = a.training && (a.training.effective_days ?? a.training.days), deadline = Number(state.fields.deadline);
  const low = a.interval && a.interval.low_s, high = a.interval && a.interval.high_s;
  const words = [`${number(a.gpus)} GPUs: a step takes ${seconds(a.step_s)}`];
  if (low) words.push(` (${seconds(low)} to ${seconds(high)}, ${Math.round(100 * a.interval.coverage)} % of cases)`);
  if (days) words.push(`, the run ${number(days, 3)} days`);
  if (a.usd) words.push(`, ${number(a.usd)} dollars`);
  words.push(a.fits ? ". It fits in memory" : ". ");
  if (!a.fits) words.push(make("span", { class: "bad" }, "It does not fit in memory"));
  if (days && deadline) {
    const meets = days <= deadline;
    words.push(a.fits ? " and " : "; it ", make("span", { class: meets ? "good" : "bad" },
      meets ? `meets ${deadline} days` : `misses ${deadline} days by ${number(days - deadline, 3)}`));
  }
  words.push(".");
  return words;
}

// --- tabs ---

function drawTabs() {
  $("tabs").replaceChildren(...TABS.map((name) => make("button", {
    type: "button", role: "tab", id: "tab-" + name.replaceAll(" ", "-"), "aria-selected": String(name === tab), "aria-controls": "panel",
    tabindex: name === tab ? "0" : "-1", onclick: () => choose(name), onkeydown: turn }, name)));
  $("panel").setAttribute("aria-labelledby", "tab-" + tab.replaceAll(" ", "-"));
}

function turn(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  choose(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]);
  $("tab-" + tab.replaceAll(" ", "-")).focus();
}

function choose(name) { tab = name; drawTabs(); drawTab(); }

function drawTab() {
  if (!answer) return;
  const draw = { "Answer": tabAnswer, "Time": tabTime, "Memory": tabMemory, "What would help": tabHelp, "Layouts": tabLayouts,
    "Plan": tabPlan, "Compare": tabCompare, "Sources": tabSources }[tab];
  const drawn = draw(answer.answer);
  if (drawn) $("panel").replaceChildren(...drawn);
}

function card(name, value, more) { return make("li", {}, make("span", {}, name), make("b", {}, value), make("span", {}, more || "")); }

function tabAnswer(a) {
  const by = (path) => answer.numbers.find((n) => n.path === path);
  const within = (path, form) => {
    const n = by(path);
    return n && n.interval ? `${n.label}, ${form(n.interval.low)} to ${form(n.interval.high)}` : n ? n.label : "";
  };
  const chosen = Object.entries(a.chosen || {});
  return [make("ul", { class: "cards" },
    card("Step", seconds(a.step_s), within("step_s", seconds)),
    card("Tokens per second", number(a.tokens_per_s), within("tokens_per_s", number)),
    card("Utilisation (MFU)", number(100 * a.mfu, 3) + " %", within("mfu", (v) => number(100 * v, 3) + " %")),
    card("Days, with failures", number(a.training && a.training.effective_days, 3), "failures and storage assumed"),
    card("Days of computing", number(a.days, 3), within("days", (v) => number(v, 3))),
    card("GPU-hours", number(a.gpu_hours), within("gpu_hours", number)),
    card("Cost", a.usd ? number(a.usd) + " dollars" : "not known", a.usd ? "predicted" : "set cluster.usd_per_gpu_hour"),
    card("Energy", a.kwh ? number(a.kwh / 1000) + " MWh" : "not known", "predicted"),
    card("Memory of the fullest GPU", gib(a.memory.needed_bytes ?? a.memory.peak_bytes),
      `${a.memory.verdict}, of ${gib(a.memory.capacity_bytes)}`)),
  chosen.length ? make("p", {}, "Chosen where it says auto: " + chosen.map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`).join(", ") + ".") : null,
  ...(a.notes || []).map((n) => make("p", { class: "soft" }, typeof n === "string" ? n : JSON.stringify(n)))].filter(Boolean);
}

function bars(title, rows, form) {
  const total = rows.reduce((sum, [, value]) => sum + value, 0) || 1;
  const svg = make("svg", { viewBox: `0 0 760 ${26 * rows.length + 6}`, role: "img", "aria-label": title });
  rows.forEach(([name, value], i) => {
    const y = 26 * i + 4, width = 400 * value / total;
    svg.append(make("text", { x: 0, y: y + 14 }, name), make("rect", { x: 190, y, width: Math.max(width, 0.5), height: 18, class: "c" + i % 8 }),
      make("text", { x: 196 + width, y: y + 14 }, `${form(value)} (${number(100 * value / total, 3)} %)`));
  });
  return svg;
}

function tabTime(a) {
  const rows = Object.entries(a.time).filter(([, value]) => value > 0).sort((x, y) => y[1] - x[1])
    .map(([key, value]) => [key.replace(/_s$/, "").replaceAll("_", " "), value]);
  return [make("p", {}, "Where the step goes, on the rank that ends last. What is hidden under computing is not counted."), bars("Parts of the step", rows, seconds)];
}

function tabMemory(a) {
  const stage = a.memory.stages.reduce((x, y) => (y.peak_bytes > x.peak_bytes ? y : x));
  const rows = Object.entries(stage).filter(([key, value]) => /^(weights|gradients|optimizer|activations|workspace)_bytes$/.test(key) && value > 0)
    .map(([key, value]) => [key.replace("_bytes", ""), value]);
  return [make("p", {}, `The fullest stage is ${stage.stage}: ${gib(stage.peak_bytes)} allocated of ${gib(a.memory.capacity_bytes)}; ${a.memory.verdict}.`),
    bars("Memory of the fullest stage", rows, gib),
    table(["Stage", "Peak", "Weights", "Gradients", "Optimizer", "Activations"], a.memory.stages.map((s) =>
      [s.stage, gib(s.peak_bytes), gib(s.weights_bytes), gib(s.gradients_bytes), gib(s.optimizer_bytes), gib(s.activations_bytes)]))];
}

function table(heads, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((h, i) => make("th", { class: i ? "n" : "", scope: "col" }, h)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, i) => make("td", { class: i ? "n" : "" }, cell instanceof Node ? cell : String(cell)))))));
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

async function tabAsync(title, path, body, draw) {
  const of = tab, turn = sequence;
  $("panel").replaceChildren(make("p", { role: "status" }, title));
  try {
    const whole = await ask(path, body);
    if (of === tab && turn === sequence) $("panel").replaceChildren(...draw(whole.answer));
  } catch (problem) {
    if (of === tab) $("panel").replaceChildren(make("p", { class: "bad" }, problem.message));
  }
}

function fixed() {
  const s = scenario();
  for (const [key, value] of Object.entries(answer.answer.chosen || {})) put(s, key, value);
  return s;
}

function tabHelp() {
  tabAsync("Trying single changes \u2026", "explain", { scenario: fixed() }, (e) => [
    make("p", {}, "A step waits for: " + e.binds.filter((b) => b.step_frac > 0.005).map((b) => `${b.what} (${number(100 * b.step_frac, 3)} %)`).join(", ") + "."),
    make("p", {}, "Single changes, each simulated:"),
    table(["Change", "Step", "Gain", "Fits", ""], e.changes.slice(0, 12).map((c) => [c.set.join(", "), seconds(c.step_s), number(100 * c.gain_frac, 3) + " %",
      c.fits ? "yes" : "no", make("button", { type: "button", "aria-label": "Use " + c.set.join(", "), onclick: () => useFields(c.set.map((t) => {
        const at = t.indexOf("="); return [t.slice(0, at), typed(t.slice(at + 1))]; })) }, "Use it")]))]);
}

// --- jobs: search and plan ---

async function startJob(tool, args, draw) {
  stopJob();
  const own = job = { stop: new AbortController(), id: null };
  const bar = make("progress", { max: 1, "aria-label": "Progress" }), text = make("span", { role: "status" }, "Queued \u2026");
  $("panel").replaceChildren(make("p", { class: "row" }, bar, text, make("button", { type: "button", id: "cancel", onclick: () => { stopJob(); text.textContent = "Cancelled."; } }, "Cancel")));
  try {
    own.id = (await ask("jobs", { tool, arguments: args })).id;
    const token = sessionStorage.getItem("orrery-token");
    const response = await fetch(`api/jobs/${own.id}/events`, { signal: own.stop.signal, headers: token ? { Authorization: "Bearer " + token } : {} });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", part; !(part = await reader.read()).done;) {
      const lines = (rest + part.value).split("\n\n");
      rest = lines.pop();
      for (const line of lines) {
        const now = JSON.parse(line.replace(/^data: /, ""));
        bar.value = Math.min(1, now.elapsed_s / now.limit_s);
        text.textContent = `${now.state}, ${number(now.elapsed_s, 2)} s of at most ${number(now.limit_s)} s`;
      }
    }
    const done = await ask("jobs/" + own.id);
    if (job !== own) return;
    if (done.state !== "done") throw new Error(done.error || done.state);
    $("panel").replaceChildren(...draw(done.result.answer));
  } catch (problem) {
    if (problem.name !== "AbortError" && job === own) $("panel").replaceChildren(make("p", { class: "bad" }, problem.message), again());
  }
}

function stopJob() {
  if (!job) return;
  if (job.id !== null) {
    const token = sessionStorage.getItem("orrery-token");
    fetch("api/jobs/" + job.id, { method: "DELETE", headers: token ? { Authorization: "Bearer " + token } : {} }).catch(() => {});
  }
  job.stop.abort();
  job = null;
}

function again() { return make("button", { type: "button", onclick: () => drawTab() }, "Back"); }

function tabLayouts() {
  const open = ["parallel.tensor", "parallel.pipeline", "parallel.zero", "training.micro_batch", "training.recompute", "parallel.schedule"];
  return [make("p", {}, "Searches " + open.join(", ") + " for the fastest layout that fits, with proof."),
    make("button", { type: "button", id: "search", onclick: () => startJob("search",
      { scenario: scenario(), set: Object.fromEntries(open.map((key) => [key, "auto"])), top: 8, max_seconds: 60 }, drawLayouts) }, "Search")];
}

function layoutFields(row) {
  const values = [];
  for (const part of ["training", "parallel"])
    for (const [key, value] of Object.entries(row[part] || {}))
      if (TEN.some(([known]) => known === part + "." + key)) values.push([part + "." + key, value]);
  return values;
}

function drawLayouts(a) {
  const words = (row) => layoutFields(row).map(([k, v]) => k.split(".")[1] + " " + (typeof v === "object" ? JSON.stringify(v) : v)).join(", ");
  const use = (row) => make("button", { type: "button", onclick: () => useFields(layoutFields(row)) }, "Use it");
  const memory = (row) => row.reserved_bytes ?? row.report.memory.reserved_bytes;
  return [make("p", { id: "proof" }, a.proved ? "Proved: no other point of the space is faster." : `Not proved yet: others may be ${number(100 * a.gap_frac, 3)} % faster.`),
    table(["Layout", "Step", "MFU", "Memory", ""], a.best.map((row) => [words(row), seconds(row.step_s), number(100 * row.mfu, 3) + " %", gib(memory(row)), use(row)])),
    make("h2", {}, "Time against memory"), make("p", { class: "soft" }, "A dot is a layout; choose one to make it the scenario."),
    scatter(a.pareto, (row) => row.step_s, memory, "step", "memory", seconds, gib, (row) => useFields(layoutFields(row)), words)];
}

function scatter(rows, x, y, xName, yName, xForm, yForm, use, words) {
  const svg = make("svg", { viewBox: "0 0 760 300", role: "group", "aria-label": `${yName} against ${xName}` });
  const span = (f) => { const v = rows.map(f), low = Math.min(...v), high = Math.max(...v); return [low, high > low ? high : low + 1]; };
  const [x0, x1] = span(x), [y0, y1] = span(y);
  svg.append(make("line", { x1: 70, y1: 250, x2: 740, y2: 250, class: "axis" }), make("line", { x1: 70, y1: 20, x2: 70, y2: 250, class: "axis" }),
    make("text", { x: 70, y: 280 }, `${xName} ${xForm(x0)}`), make("text", { x: 740, y: 280, "text-anchor": "end" }, xForm(x1)),
    make("text", { x: 4, y: 24 }, yForm(y1)), make("text", { x: 4, y: 250 }, yForm(y0)));
  for (const row of rows)
    svg.append(make("circle", { cx: 80 + 650 * (x(row) - x0) / (x1 - x0), cy: 240 - 210 * (y(row) - y0) / (y1 - y0), r: 8, tabindex: "0", role: "button",
      "aria-label": `${words(row)}: ${xForm(x(row))}, ${yForm(y(row))}`, onclick: () => use(row), onkeydown: (e) => { if (e.key === "Enter") use(row); } }));
  return svg;
}

function tabPlan() {
  const now = Number(state.fields.gpus) || 64, counts = [now / 4, now / 2, now, now * 2, now * 4].filter((n) => n >= 1).map(Math.floor);
  return [make("p", {}, `Counts of ${counts.join(", ")} GPUs, each with its best layout: days against dollars.`),
    make("button", { type: "button", id: "plan", onclick: () => startJob("plan", { scenario: scenario(), gpus: counts,
      set: { "parallel.tensor": "auto", "parallel.pipeline": "auto", "training.micro_batch": "auto" } }, drawPlan) }, "Plan")];
}

function drawPlan(a) {
  const rows = a.rows.filter((r) => r.days), usd = rows.every((r) => r.usd);
  const use = (r) => change(() => { state.fields.gpus = String(r.gpus); });
  return [table(["GPUs", "Days", "With failures", "GPU-hours", "Dollars", "Fits", ""], rows.map((r) => [number(r.gpus), number(r.days, 3), number(r.effective_days, 3),
    number(r.gpu_hours), r.usd ? number(r.usd) : "not known", r.fits ? "yes" : "no", make("button", { type: "button", onclick: () => use(r) }, "Use it")])),
  rows.length > 1 ? scatter(rows, (r) => r.effective_days ?? r.days, (r) => (usd ? r.usd : r.gpu_hours), "days", usd ? "dollars" : "GPU-hours",
    (v) => number(v, 3), (v) => number(v), use, (r) => r.gpus + " GPUs") : null,
  usd ? null : make("p", { class: "soft" }, "Set cluster.usd_per_gpu_hour to see dollars.")].filter(Boolean);
}

function tabCompare() {
  if (!kept) return [make("p", {}, "Keep a scenario as A with the button above, change it, and come back.")];
  tabAsync("Comparing \u2026", "compare", { a: kept, b: fixed() }, (c) => [
    table(["", "A", "Now", "Difference"], Object.entries({ ...c.summary, ...c.time }).filter(([, v]) => v.a || v.b)
      .map(([key, v]) => [key.replaceAll("_", " "), number(v.a), number(v.b), number(v.difference)])),
    make("h2", {}, "Fields that differ, and what each does alone"),
    table(["Field", "A", "Now", "Step with it alone"], c.fields.slice(0, 40).map((f) => [f.key, JSON.stringify(f.a), JSON.stringify(f.b), f.alone_step_s ? seconds(f.alone_step_s) : "\u2013"]))]);
}

function tabSources() {
  return [make("p", {}, `Orrery ${answer.version}. Every number and what it is:`),
    table(["Number", "Value", "Unit", "Label", "From", "To"], answer.numbers.map((n) => [n.path, number(n.value), n.unit, n.label,
      n.interval ? number(n.interval.low) : "\u2013", n.interval ? number(n.interval.high) : "\u2013"])),
    table(["What", "Label", "Source"], answer.labels.map((l) => [l.path || "all other numbers", l.label, l.source])),
    make("h2", {}, "Assumed, because nobody gave it"),
    make("p", {}, make("code", {}, answer.assumed.join("  "))), make("p", { class: "soft" }, `and ${answer.assumed_in_profiles} more within the profiles of software and chip.`)];
}

// --- buttons ---

$("undo").addEventListener("click", () => {
  const last = history.pop();
  if (!last) { say("Nothing to undo."); return; }
  Object.assign(state, last);
  show();
});
$("keep").addEventListener("click", () => { kept = fixed(); say("Kept as A. Change something and open Compare."); });
$("export").addEventListener("click", () => {
  const url = URL.createObjectURL(new Blob([JSON.stringify({ schema: 1, ...fixed() }, null, 2) + "\n"], { type: "application/json" }));
  make("a", { href: url, download: "scenario.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
});
$("link").addEventListener("click", async () => {
  const link = location.href.replace(/token=[^&]*&?/, "");
  try { await navigator.clipboard.writeText(link); say("The link is copied."); } catch { say("The link is in the address bar."); }
});
$("upload").addEventListener("change", async () => {
  const file = $("upload").files[0];
  if (!file) return;
  try {
    const text = await file.text();
    let read = null;
    try { read = JSON.parse(text); } catch { read = null; }
    const own = read && read.model && read.cluster;
    const whole = own ? null : await ask("import", { text, cluster: state.fields.cluster });
    change(() => {
      state.base = own ? read : whole.answer;
      state.others = {};
      const model = state.base.model, cluster = state.base.cluster || {};
      state.fields.model = typeof model === "string" ? model : "";
      if (typeof cluster === "object" && cluster.preset) state.fields.cluster = cluster.preset;
      if (cluster.nodes) state.fields.gpus = String(cluster.nodes * (cluster.gpus_per_node || clusters[cluster.preset] || 8));
      for (const [key, , first] of TEN) {
        const [part, name] = key.split("."), value = (state.base[part] || {})[name];
        state.fields[key] = value === undefined ? (own ? "" : ["parallel", "training"].includes(part) && state.base[part] ? "" : first) : typeof value === "string" ? value : JSON.stringify(value);
      }
    });
    say(whole ? whole.notes || "Imported." : "Loaded.");
  } catch (problem) { say(problem.message); }
  $("upload").value = "";
});
$("find").addEventListener("input", () => { find().catch((problem) => say(problem.message)); });
$("form").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => { readLink(); show(); });

async function begin() {
  readLink();
  drawTabs();
  show();
  const lists = await Promise.all(["models", "clusters"].map((kind) => ask("list", { kind })));
  for (const row of lists[1].answer) clusters[row.name] = row.gpus_per_node;
  ["models", "clusters"].forEach((kind, i) => document.body.append(make("datalist", { id: "list-" + kind },
    ...lists[i].answer.map((row) => make("option", { value: row.name })))));
  soon();
}
begin().catch((problem) => { $("error").textContent = problem.message; });
