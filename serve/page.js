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

const $ = (id) => document.getElementById(id);
const state = { fields: {}, others: {}, base: null };
let history = [], clusters = {}, all = null, answer = null, tab = "Answer";
let asking = null, sequence = 0;
const kept = []; // to compare: { name, scenario }

// --- small helpers ---

function make(name, attributes, ...children) {
  const svg = ["svg", "rect", "circle", "line", "polyline", "text"].includes(name);
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

function hours(value) {
  if (value === null || value === undefined) return "not known";
  return value >= 172800 ? number(value / 86400, 3) + " days" : value >= 7200 ? number(value / 3600, 3) + " hours" : value >= 120 ? number(value / 60, 3) + " minutes" : seconds(value);
}

// A value as a person would write it: {"mode": "full", "layers": 2} as "full of 2 layers".
function plain(value) {
  if (value && typeof value === "object" && value.mode) return value.layers ? `${value.mode} of ${value.layers} layer${value.layers > 1 ? "s" : ""}` : value.mode;
  if (value === null || value === undefined) return "\u2013";
  return typeof value === "string" ? value : JSON.stringify(value);
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

function addField(key) {
  if (![...FIVE, ...TEN].some(([known]) => known === key)) change(() => { state.others[key] = state.others[key] ?? ""; });
  const input = $("f-" + key.replaceAll(".", "-"));
  if (input) input.focus();
}

async function find() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) { $("found").replaceChildren(); return; }
  all = all || await ask("fields");
  const rows = all.filter((f) => !/^(measurement|accelerator|framework)\./.test(f.key))
    .map((f) => ({ ...f, score: words.every((w) => f.key.includes(w)) ? 2 : words.every((w) => (f.key + f.help).toLowerCase().includes(w)) ? 1 : 0 }))
    .filter((f) => f.score).sort((a, b) => b.score - a.score).slice(0, 12);
  $("found").replaceChildren(...rows.map((f) => make("li", {}, make("button", {
    type: "button", onclick: () => addField(f.key) }, f.key, make("span", {}, f.help.split("\n").slice(1).join("\n").split("\n\n")[0].replace(/\s+/g, " ").trim())))));
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

// --- buttons ---

// Another scenario into the form; `whole`: it says all that it wants to say.
function takeOver(read, whole) {
  state.base = read;
  state.others = {};
  const model = read.model, cluster = read.cluster || {};
  state.fields.model = typeof model === "string" ? model : "";
  if (typeof cluster === "object" && cluster.preset) state.fields.cluster = cluster.preset;
  if (cluster.nodes) state.fields.gpus = String(cluster.nodes * (cluster.gpus_per_node || clusters[cluster.preset] || 8));
  for (const [key, , first] of TEN) {
    const [part, name] = key.split("."), value = (read[part] || {})[name];
    state.fields[key] = value === undefined ? (whole || read[part] ? "" : first) : typeof value === "string" ? value : JSON.stringify(value);
  }
}

$("undo").addEventListener("click", () => {
  const last = history.pop();
  if (!last) { say("Nothing to undo."); return; }
  Object.assign(state, last);
  show();
});
$("keep").addEventListener("click", () => { 
  const name = `${kept.length + 1}: ${state.fields.model || "a model"} on ${state.fields.gpus} GPUs, ${seconds(answer ? answer.answer.step_s : 0)}`;
  kept.push({ name, scenario: fixed() });
  say("Kept. Change something and open Compare.");
 });
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
    change(() => takeOver(own ? read : whole.answer, own));
    say(whole ? whole.notes || "Imported." : "Loaded.");
  } catch (problem) { say(problem.message); }
  $("upload").value = "";
});
$("find").addEventListener("input", () => { find().catch((problem) => say(problem.message)); });
$("form").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => { if (/^#(.*&)?s=/.test(location.hash)) { readLink(); show(); } });
for (const link of document.querySelectorAll(".to-details"))
  link.addEventListener("click", (event) => { event.preventDefault(); $("answer").focus({ preventScroll: true }); $("answer").scrollIntoView(); });

async function begin() {
  readLink();
  drawTabs();
  show();
  const kinds = ["models", "clusters", "faults", "storage"];
  const lists = await Promise.all(kinds.map((kind) => ask("list", { kind })));
  for (const row of lists[1].answer) clusters[row.name] = row.gpus_per_node;
  const choices = (name, words) => document.body.append(make("datalist", { id: "list-" + name }, ...words.map((value) => make("option", { value }))));
  kinds.forEach((kind, i) => choices(kind, lists[i].answer.map((row) => row.name)));
  choices("fields", TEN.map(([key]) => key));
  soon();
}
document.addEventListener("DOMContentLoaded", () => begin().catch((problem) => { $("error").textContent = problem.message; })); // behind all scripts
