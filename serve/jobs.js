"use strict";
// Long questions as jobs: layouts, plans, sweeps, failures. Each tab has its own, which goes on while others are looked at.

const jobs = {};

function headers() {
  const token = sessionStorage.getItem("orrery-token");
  return token ? { Authorization: "Bearer " + token } : {};
}

// States of a job, as they come.
async function* states(id, signal) {
  const response = await fetch(`api/jobs/${id}/events`, { signal, headers: headers() });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", part; !(part = await reader.read()).done;) {
    const lines = (rest + part.value).split("\n\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line.replace(/^data: /, ""));
  }
}

// A bar, and what is the best so far: only this is read aloud, when it changes.
function progressOf(name) {
  const bar = make("progress", { max: 1, "aria-label": "Progress" }), text = make("span", {}, "Queued \u2026"), best = make("p", { role: "status", class: "best" });
  const cancel = make("button", { type: "button", id: "cancel", onclick: () => { stopJob(name); place(name).replaceChildren(make("p", { role: "status" }, "Cancelled.")); } }, "Cancel");
  const tell = (now) => {
    const p = now.progress, frac = p && p.done_frac;
    bar.value = Math.max(frac || 0, Math.min(1, now.elapsed_s / now.limit_s));
    text.textContent = `${now.state}, ${number(now.elapsed_s, 2)} s` + (frac > 0 && frac < 1 ? `; ${Math.round(100 * frac)} %` : ` of at most ${number(now.limit_s)} s`);
    const words = p && p.best ? `Best so far: ${seconds(p.best.step_s)}, ${p.best.what}` : "";
    if (best.textContent !== words) best.textContent = words;
  };
  return { nodes: [make("p", { class: "row" }, bar, text, cancel), best], tell };
}

async function startJob(name, tool, args, draw) {
  stopJob(name);
  const own = jobs[name] = { stop: new AbortController(), id: null }, progress = progressOf(name), asked = whose();
  place(name).replaceChildren(...progress.nodes);
  try {
    own.id = (await ask("jobs", { tool, arguments: args() })).id;
    for await (const now of states(own.id, own.stop.signal)) progress.tell(now);
    const done = await ask("jobs/" + own.id);
    if (jobs[name] !== own) return;
    if (done.state !== "done") throw new Error(done.error || done.state);
    place(name).replaceChildren(asked, ...draw(done.result.answer).filter(Boolean));
  } catch (problem) {
    if (problem.name !== "AbortError" && jobs[name] === own) place(name).replaceChildren(make("p", { class: "bad", role: "alert" }, problem.message));
  }
}

function stopJob(name) {
  const own = jobs[name];
  if (!own) return;
  if (own.id !== null) fetch("api/jobs/" + own.id, { method: "DELETE", headers: headers() }).catch(() => {});
  own.stop.abort();
  delete jobs[name];
}

// --- layouts ---

const OPEN = ["parallel.tensor", "parallel.pipeline", "parallel.zero", "training.micro_batch", "training.recompute", "parallel.schedule"];

function tabLayouts() {
  return [make("p", {}, "Searches " + OPEN.join(", ") + " for the best layout that fits, with proof."),
    options("search", [{ key: "for", label: "What is best", value: "step", choices: [["step", "Least time of a step"], ["days", "Least days, with failures"], ["cost", "Least cost"], ["energy", "Least energy"]] },
      { key: "seconds", label: "Seconds at most", value: "60", type: "number" }], "Search", (v) => startJob("Layouts", "search", () => ({ scenario: scenario(),
      set: Object.fromEntries(OPEN.map((key) => [key, "auto"])), top: 8, max_seconds: Number(v.seconds) || 60, for: v.for }), drawLayouts)),
    place("Layouts")];
}

function layoutFields(row) {
  const values = [];
  for (const part of ["training", "parallel"])
    for (const [key, value] of Object.entries(row[part] || {}))
      if (TEN.some(([known]) => known === part + "." + key)) values.push([part + "." + key, value]);
  return values;
}

function drawLayouts(a) {
  const words = (row) => layoutFields(row).map(([k, v]) => k.split(".")[1].replaceAll("_", " ") + " " + plain(v)).join(", ");
  const use = (row) => useFields(layoutFields(row)), memory = (row) => row.reserved_bytes ?? row.report.memory.reserved_bytes;
  if (!a.best.length) return [make("p", { id: "proof", class: "bad" }, "No layout fits in memory.")];
  return [make("p", { id: "proof" }, a.proved ? "Proved: no other point of the space is better." : `Not proved yet: others may be ${number(100 * a.gap_frac, 3)} % faster.`),
    table(["Layout", "Step", "MFU", "Memory", ""], a.best.map((row) => [words(row), seconds(row.step_s), number(100 * row.mfu, 3) + " %", gib(memory(row)),
      useButton(words(row), () => use(row))])),
    make("h2", {}, "Time against memory"), make("p", { class: "soft" }, "A dot is a layout; choose one to make it the scenario."),
    scatter(a.pareto, (row) => row.step_s, memory, "step", "memory", seconds, gib, use, words)];
}

// --- how many GPUs ---

function tabPlan() {
  const now = Number(state.fields.gpus) || 64, counts = [now / 4, now / 2, now, now * 2, now * 4].filter((n) => n >= 1).map(Math.floor);
  return [make("p", {}, "Days against dollars at several counts of GPUs, each with its best layout."),
    options("plan", [{ key: "gpus", label: "Counts of GPUs", value: counts.join(", ") }], "Plan", (v) => startJob("Plan", "plan", () => ({ scenario: scenario(),
      gpus: v.gpus.split(/[\s,]+/).filter(Boolean).map(Number), set: { "parallel.tensor": "auto", "parallel.pipeline": "auto", "training.micro_batch": "auto" } }), drawPlan)),
    place("Plan")];
}

function drawPlan(a) {
  const rows = a.rows.filter((r) => r.days), usd = rows.every((r) => r.usd);
  const use = (r) => change(() => { state.fields.gpus = String(r.gpus); });
  return [table(["GPUs", "Days", "With failures", "GPU-hours", "Dollars", "Fits", ""], rows.map((r) => [number(r.gpus), number(r.days, 3), number(r.effective_days, 3),
    number(r.gpu_hours), r.usd ? number(r.usd) : "not known", r.fits ? "yes" : "no", useButton(r.gpus + " GPUs", () => use(r))])),
  rows.length > 1 ? scatter(rows, (r) => r.effective_days ?? r.days, (r) => (usd ? r.usd : r.gpu_hours), "days", usd ? "dollars" : "GPU-hours",
    (v) => number(v, 3), (v) => number(v), use, (r) => r.gpus + " GPUs") : null,
  usd ? null : make("p", { class: "soft" }, "Set cluster.usd_per_gpu_hour to see dollars.")];
}

// --- a table of runs ---

function tabSweep() {
  return [make("p", {}, "A run for every combination of values of one field or two: a list as 1,2,4, or 1..8, which doubles."),
    options("sweep", [{ key: "a", label: "Field", value: "parallel.tensor", list: "fields" }, { key: "as", label: "Its values", value: "1,2,4,8" },
      { key: "b", label: "Second field, if any", value: "", list: "fields" }, { key: "bs", label: "Its values", value: "" }], "Sweep",
    (v) => startJob("Sweep", "sweep", () => ({ scenario: scenario(), vary: Object.fromEntries([[v.a, v.as], [v.b, v.bs]].filter(([key, values]) => key && values)) }),
      (a) => drawSweep(a, [v.a, v.b].filter(Boolean)))),
    place("Sweep")];
}

function drawSweep(a, keys) {
  const ran = a.rows.filter((r) => !r.reason), words = (r) => keys.map((key) => `${key.split(".").at(-1).replaceAll("_", " ")} ${plain(r[key])}`).join(", ");
  const use = (r) => useFields(keys.map((key) => [key, r[key]]));
  const fast = ran.filter((r) => r.fits).reduce((x, y) => (x && x.step_s <= y.step_s ? x : y), null);
  return [fast ? make("p", {}, `Fastest that fits: ${words(fast)}, ${seconds(fast.step_s)}.`) : make("p", { class: "bad" }, "None of them fits in memory."),
    table([...keys, "Step", "MFU", "Memory", "Days", "Fits", ""], a.rows.map((r) => (r.reason
      ? [...keys.map((key) => plain(r[key])), make("span", { class: "reason" }, r.reason), "", "", "", "", ""]
      : [...keys.map((key) => plain(r[key])), seconds(r.step_s), number(100 * r.mfu, 3) + " %", gib(r.reserved_bytes || r.peak_bytes), number(r.effective_days || r.days, 3), r.fits ? "yes" : "no",
        useButton(words(r), () => use(r))]))),
    ran.length > 1 ? scatter(ran, (r) => r.step_s, (r) => r.reserved_bytes || r.peak_bytes, "step", "memory", seconds, gib, use, words) : null];
}

// --- weeks with failures ---

function tabFailures() {
  return [make("p", {}, "Lives through the whole training many times, from failure to failure, with checkpoints and restarts."),
    options("campaign", [{ key: "faults", label: "What fails", value: "llama3-2024", list: "faults" }, { key: "storage", label: "Where checkpoints go", value: "superpod-lustre", list: "storage" },
      { key: "spares", label: "Spare nodes", value: "2", type: "number" }, { key: "replicas", label: "Trainings", value: "500", type: "number" }], "Live through it",
    (v) => startJob("Failures", "campaign", () => ({ scenario: withFaults(v), replicas: Number(v.replicas) || 500 }), drawFailures)),
    place("Failures")];
}

function withFaults(v) {
  const s = fixed();
  if (!s.faults) s.faults = { preset: v.faults, spares: Number(v.spares) || 0 };
  if (!s.storage) s.storage = v.storage;
  return s;
}

function drawFailures(a) {
  const tenths = (x, form) => `${form(x.p10)} to ${form(x.p90)} in eight of ten`, n = (v) => number(v, 4);
  const lost = Object.entries(a.lost).filter(([, v]) => v > 0).sort((x, y) => y[1] - x[1]).map(([key, v]) => [key.replace(/_s$/, "").replaceAll("_", " "), v / 86400]);
  return [make("ul", { class: "cards" }, card("Days", n(a.days.mean), tenths(a.days, n)), card("Without failures", n(a.ideal_days), "predicted"),
    card("Goodput", number(100 * a.goodput.mean, 4) + " %", tenths(a.goodput, (v) => number(100 * v, 4) + " %")), card("Interruptions", n(a.interruptions.mean), tenths(a.interruptions, n)),
    card("A failure every", hours(a.mtbf_s), "of the whole job"), card("Checkpoint every", hours(a.checkpoint.interval_s), `written in ${seconds(a.checkpoint.write_s)}; best ${hours(a.checkpoint.best_interval_s)}`)),
  lost.length ? make("h2", {}, "Days lost") : null, lost.length ? bars("Days lost", lost, (v) => number(v, 3) + " days") : null,
  a.causes.length ? table(["Cause", "One every", "In this run"], a.causes.map((c) => [c.cause.replaceAll("_", " "), hours(c.mtbf_s), number(c.interruptions, 3)])) : null,
  a.spares_curve.length ? table(["Spare nodes", "Days", "Nine of ten within"], a.spares_curve.map((r) => [r.spares, n(r.days), n(r.days_p90)]), "What spare nodes bring") : null];
}
