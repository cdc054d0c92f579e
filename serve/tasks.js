"use strict";
// Questions beside the step: collectives, fine-tuning, loops of reinforcement learning, recorded traces.

// --- network ---

const OPS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"];
const rate = (v) => number(v / 1e9, 3) + " GB/s";
const size = (v) => (v >= 2 ** 30 ? number(v / 2 ** 30) + " GiB" : v >= 2 ** 20 ? number(v / 2 ** 20) + " MiB" : number(v / 1024) + " KiB");

function tabNetwork() {
  return [make("p", {}, "One collective over sizes: the best algorithm of messages between GPUs, and what NCCL takes, which may add up in the switches (nvls)."),
    options("collective", [{ key: "op", label: "Operation", value: "all-reduce", choices: OPS }, { key: "ranks", label: "GPUs", value: state.fields.gpus || "64", type: "number" },
      { key: "bytes", label: "Sizes, each twice the last", value: "64KiB..4GiB" }], "Time it",
    (v) => into("Network", "Timing \u2026", "collective", () => ({ op: v.op, ranks: Number(v.ranks), bytes: v.bytes, cluster: state.fields.cluster }), (a) => drawNetwork(a))),
    place("Network")];
}

function drawNetwork(a) {
  const rows = a.sizes || [a], nccl = rows.filter((r) => r.nccl);
  const bus = (r, s) => r.busbw_bytes_per_s * r.seconds / s; // the same bytes in another time
  const series = [{ name: "the best plain algorithm", points: rows.map((r) => [r.bytes, r.busbw_bytes_per_s]) },
    { name: "NCCL's choice", points: nccl.map((r) => [r.bytes, bus(r, r.nccl.seconds)]) }].filter((s) => s.points.length);
  return [rows.length > 1 ? curves(`Bus bandwidth of ${a.op} over ${a.ranks} GPUs`, "bytes of each GPU", "bus bandwidth", series, size, rate) : null,
    table(["Size", "Time", "Bus bandwidth", "Algorithm", "NCCL takes", "NCCL's time"], rows.map((r) => [size(r.bytes), seconds(r.seconds), rate(r.busbw_bytes_per_s), r.algorithm,
      r.nccl ? `${r.nccl.algorithm}, ${r.nccl.protocol}` : "\u2013", r.nccl ? seconds(r.nccl.seconds) : "\u2013"]), `${a.op} over ${a.ranks} GPUs`)].filter(Boolean);
}

// --- fine-tuning ---

const WAYS = [["sft", "All weights"], ["lora", "LoRA: adapters beside frozen weights"], ["qlora", "QLoRA: frozen weights in few bits"]];
const DATA = [["", "Texts"], ["dpo", "Pairs (DPO)"], ["orpo", "Pairs without a reference (ORPO)"], ["kto", "Single verdicts (KTO)"], ["reward", "A reward model"]];

// Fields of one way to fine-tune.
function tuned(way, v) {
  const adapter = { rank: Number(v.rank) || 16, targets: v.targets, base_dtype: way === "qlora" ? v.frozen : "bf16" };
  const fields = [["training.task", v.data || way]];
  if (way !== "sft") fields.push(["training.adapter", adapter]);
  if (v.data === "dpo" || v.data === "kto") fields.push(["training.reference", way === "sft" ? "cached" : "adapter-off"]);
  if (v.data === "reward") fields.push(["model.scalar_head", true]);
  return fields;
}

function tabFinetune() {
  return [make("p", {}, "What fits, and how fast: all weights, LoRA and QLoRA of this model on this cluster, side by side."),
    options("finetune", [{ key: "data", label: "Trained on", value: "", choices: DATA }, { key: "rank", label: "Rank of adapters", value: "16", type: "number" },
      { key: "targets", label: "Layers with adapters", value: "all-linear", choices: ["attention", "mlp", "all-linear"] },
      { key: "frozen", label: "Frozen weights of QLoRA", value: "nf4", choices: ["nf4", "int8", "fp8"] }], "Set side by side", askFinetune),
    place("Fine-tuning")];
}

async function askFinetune(v) {
  const box = place("Fine-tuning"), turn = box.turn = (box.turn || 0) + 1;
  box.replaceChildren(make("p", { role: "status" }, "Asking \u2026"));
  const asked = whose(), base = scenario();
  const rows = await Promise.all(WAYS.map(async ([way, name]) => {
    const s = structuredClone(base), fields = tuned(way, v);
    for (const [key, value] of fields) put(s, key, value);
    try { return { name, fields, a: (await ask("run", { scenario: s })).answer }; } catch (problem) { return { name, fields, reason: problem.message }; }
  }));
  if (box.turn === turn) box.replaceChildren(asked, ...drawFinetune(rows));
}

function drawFinetune(rows) {
  const fits = rows.filter((r) => r.a);
  return [table(["", "Trained weights", "Step", "Tokens per second", "Memory", "Fits", ""], rows.map((r) => (r.reason
    ? [r.name, make("span", { class: "reason" }, r.reason), "", "", "", "", ""]
    : [r.name, number((r.a.model.trained_parameters ?? r.a.model.parameters) / 1e6, 3) + " M", seconds(r.a.step_s), number(r.a.tokens_per_s), gib(r.a.memory.needed_bytes ?? r.a.memory.peak_bytes),
      make("span", { class: r.a.fits ? "good" : "bad" }, r.a.fits ? "yes" : "no"), useButton(r.name, () => useFields([...r.fields, ...(r.fields.some(([k]) => k === "training.adapter") ? [] : [["training.adapter", "null"]])]))]))),
  fits.length ? make("h2", {}, `Memory of the fullest GPU, of ${gib(fits[0].a.memory.capacity_bytes)}`) : null,
  fits.length ? bars("Memory of the fullest GPU", fits.map((r) => [r.name.split(":")[0], r.a.memory.needed_bytes ?? r.a.memory.peak_bytes]), gib, fits[0].a.memory.capacity_bytes) : null].filter(Boolean);
}

// --- reinforcement learning ---

function loopOf(v) {
  const loop = { preset: v.loop, generation: { prompts: Number(v.prompts), samples_per_prompt: Number(v.samples), prompt_tokens: Number(v.prompt), answer_tokens: { mean: Number(v.answer), log_sd: Number(v.spread), max: Number(v.most) } } };
  if (Number(v.stale) > 0) Object.assign(loop, { staleness_steps: Number(v.stale), in_flight: v.flight === "yes" });
  if (Number(v.nodes) > 0) loop.roles = { rollout: { nodes: Number(v.nodes) } };
  return loop;
}

// Nodes of the rollout are taken from those of the whole.
function withLoop(v) {
  const s = fixed(), apart = Number(v.nodes) || 0;
  s.workload = loopOf(v);
  if (apart > 0 && s.cluster && s.cluster.nodes > apart) s.cluster.nodes -= apart;
  return s;
}

function tabReinforce() {
  const box = place("Reinforcement learning");
  return [make("p", {}, "A step of the loop: answers are written, scored and trained on."),
    options("loop", [{ key: "loop", label: "Loop", value: "grpo", choices: ["grpo", "ppo", "dapo", "rloo", "online-dpo", "distillation"] },
      { key: "prompts", label: "Prompts of a step", value: "128", type: "number" }, { key: "samples", label: "Answers to each", value: "8", type: "number" },
      { key: "prompt", label: "Tokens of a prompt", value: "512", type: "number" }, { key: "answer", label: "Tokens of an answer", value: "2000", type: "number" },
      { key: "most", label: "Tokens of the longest", value: "7680", type: "number" }, { key: "spread", label: "Spread of their logarithm", value: "0.6" }, { key: "nodes", label: "Nodes that only write; 0: shared", value: "0", type: "number" },
      { key: "stale", label: "Steps that answers may be old", value: "0", type: "number" },
      { key: "flight", label: "New weights under way", value: "no", choices: ["no", "yes"] }], "Ask",
    (v) => into("Reinforcement learning", "Asking \u2026", "run", () => ({ scenario: withLoop(v) }), drawLoop)),
    make("p", { class: "row" }, make("button", { type: "button", id: "split", onclick: () => startJob("Reinforcement learning", "search",
      () => { const s = withLoop({ ...picked.loop, nodes: 0 }); return { scenario: s, top: 8, max_seconds: 60 }; }, drawSplits) }, "Deal the nodes to training and writing")),
    box];
}

function drawLoop(a) {
  return [make("p", {}, `A step takes ${seconds(a.step_s)}, ${number(a.tokens_per_s)} tokens per second. It is bound by ${a.bound_by}; ${a.fits ? "all models fit" : "not all models fit"} in memory.`),
    timeline(a.phases), rolesTable(a)];
}

// Phases of a loop over its time.
function timeline(phases) {
  const end = Math.max(...phases.map((p) => p.begin_s + p.seconds)) || 1;
  const svg = make("svg", { viewBox: `0 0 760 ${30 * phases.length + 6}`, role: "img",
    "aria-label": "Phases: " + phases.map((p) => `${p.name} from ${seconds(p.begin_s)}, ${seconds(p.seconds)}`).join("; ") });
  phases.forEach((p, i) => {
    const x = 130 + 430 * p.begin_s / end, width = Math.max(430 * p.seconds / end, 1);
    svg.append(make("text", { x: 0, y: 30 * i + 20 }, p.name), make("rect", { x, y: 30 * i + 6, width, height: 20, class: "c" + i % 8 }),
      make("text", { x: 570, y: 30 * i + 20 }, p.seconds > 0 ? `${seconds(p.seconds)}, ${number(p.gpus)} GPUs` : "given: none"));
  });
  return svg;
}

function rolesTable(a) {
  return table(["Model", "Is", "GPUs", "Layout", "Memory", "Of"], a.roles.map((r) => [r.name, r.model, number(r.gpus), r.layout || "\u2013", gib(r.needed_bytes), gib(r.capacity_bytes)]), "Models of the loop");
}

function loopAnswer(a) {
  return [make("ul", { class: "cards" }, card("A step of the loop", seconds(a.step_s), "predicted"), card("Tokens per second", number(a.tokens_per_s), "predicted"),
    card("Bound by", a.bound_by, ""), card("Answers", number(a.sequences.count), `of ${number(a.sequences.mean_answer_tokens)} tokens, the longest sequence ${number(a.sequences.longest_tokens)}`),
    card("Memory", a.fits ? "fits" : "does not fit", `${a.roles.length} models`)), timeline(a.phases), rolesTable(a)];
}

function drawSplits(a) {
  return [make("p", { id: "proof" }, a.proved ? `Proved: the best of ${number(a.space)} ways to deal the nodes.` : "Not proved."),
    table(["Placement", "Train", "Write", "Ranks of a writer", "Step", "Tokens per second", "Bound by"], a.best.map((r) =>
      [r.placement, number(r.train_gpus), number(r.rollout_gpus), r.rollout_tensor, seconds(r.step_s), number(r.tokens_per_s), r.bound_by]))];
}

// --- a recorded trace ---

const KEPT = /^(kernel|cpu_op|cuda_runtime|cuda_driver|gpu_memcpy|gpu_memset|user_annotation|hip_runtime)$/i;
const ARGS = ["correlation", "External id", "stream", "device", "bytes", "Input Dims", "Input type", "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype",
  "Process Group Name", "Process Group Ranks"];
const MOST_BYTES = 13e6;

function tabTrace() {
  const file = make("input", { type: "file", id: "t-trace", accept: ".json,.gz" });
  file.addEventListener("change", () => readTrace(file).catch((problem) => place("Trace").replaceChildren(make("p", { class: "bad", role: "alert" }, problem.message))));
  return [make("p", {}, "What really ran beside what is predicted: a trace of PyTorch's profiler (.json or .json.gz), with record_shapes=True."),
    make("p", { class: "row" }, make("label", { for: "t-trace" }, "A trace of one rank"), file), place("Trace")];
}

// What the analysis reads of a trace, so that a step of hundreds of megabytes becomes a few.
function slim(trace) {
  const events = trace.traceEvents.filter((e) => e.ph === "X" && KEPT.test(e.cat || ""));
  const launched = new Set(events.filter((e) => /kernel|memcpy|memset/i.test(e.cat)).map((e) => e.args && (e.args["External id"] ?? e.args["external id"])));
  const kept = events.filter((e) => !/cpu_op/i.test(e.cat) || launched.has(e.args && (e.args["External id"] ?? e.args["external id"])));
  const args = (from) => Object.fromEntries(ARGS.map((key) => [key, from[key] ?? from[key.toLowerCase()]]).filter(([, value]) => value !== undefined));
  return JSON.stringify({ deviceProperties: trace.deviceProperties, distributedInfo: trace.distributedInfo, traceEvents: kept.map((e) =>
    ({ ph: "X", cat: e.cat, name: e.name.slice(0, 160), pid: e.pid, tid: e.tid, ts: e.ts, dur: e.dur, args: args(e.args || {}) })) });
}

async function readTrace(input) {
  const file = input.files[0];
  if (!file) return;
  place("Trace").replaceChildren(make("p", { role: "status" }, `Reading ${file.name} \u2026`));
  const stream = /\.gz$/.test(file.name) ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  const trace = JSON.parse(await new Response(stream).text());
  if (!Array.isArray(trace.traceEvents)) throw new Error(`${file.name} is no trace of PyTorch's profiler: it has no traceEvents.`);
  const text = slim(trace);
  if (text.length > MOST_BYTES) throw new Error(`${file.name} has ${number(text.length / 1e6)} MB of kernels, and 13 MB are taken; record one step, or ask "orrery trace".`);
  input.value = "";
  await into("Trace", "Comparing \u2026", "trace", () => ({ text, scenario: fixed() }), (a) => drawTrace(a, file.name));
}

function drawTrace(a, name) {
  const row = (key) => (r) => [r[key], seconds(r.measured_s), seconds(r.predicted_s), r.measured_s > 0 ? number(100 * r.error_frac, 3) + " %" : "\u2013"];
  return [make("p", {}, `${name}: a step of ${seconds(a.step.measured_s)} was measured and ${seconds(a.step.predicted_s)} is predicted, ${number(100 * a.step.error_frac, 3)} % off.`),
    a.cancelled ? make("p", { class: "bad" }, "The sum is right because errors cancel.") : null,
    table(["Kernels", "Measured", "Predicted", "Error"], a.classes.map(row("class"))),
    table(["Part of the step", "Measured", "Predicted", "Error"], a.waterfall.map(row("part"))),
    table(["Op", "Measured", "Predicted", "Error"], a.ops.slice(0, 20).map(row("op")), "Ops that differ most")].filter(Boolean);
}
