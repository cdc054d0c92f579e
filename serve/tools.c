/* serve/tools.c - the table of questions. Tested: cli/test_mcp.py, fuzz/fuzz_mcp.c */
#include "serve/tools.h"

#include <string.h>

#include "base/text.h"

#define SCENARIO(name, help)                                                                                 \
    {                                                                                                        \
        name, SERVE_TAKES_SCENARIO, NULL, true, help, 0, 0                                                   \
    }
#define SCENARIO_HELP                                                                                        \
    "A scenario: an object, the name of an example (list examples) or the path of a file; help scenario "    \
    "lists its fields."
#define SETS                                                                                                 \
    {                                                                                                        \
        "set", SERVE_TAKES_SETS, "--set", false,                                                             \
            "Fields to override, as {\"parallel.tensor\": 4}; \"auto\" leaves a field of a layout open.", 0, \
            0                                                                                                \
    }
#define RESERVE                                                                                              \
    {                                                                                                        \
        "memory_reserve", SERVE_TAKES_TEXT, "--memory-reserve", false,                                       \
            "Memory of each GPU to keep free, as 0.1 or \"8 GiB\".", 0, 0                                    \
    }
#define OWN_RUNS                                                                                             \
    {                                                                                                        \
        "own_runs", SERVE_TAKES_TEXT, "--own-runs", false,                                                   \
            "The path of a file of your own measured runs, which correct the prediction.", 0, 0              \
    }
#define TEXT(name, flag, help)                                                                               \
    {                                                                                                        \
        name, SERVE_TAKES_TEXT, flag, false, help, 0, 0                                                      \
    }
#define LIST(name, flag, help)                                                                               \
    {                                                                                                        \
        name, SERVE_TAKES_LIST, flag, false, help, 0, 0                                                      \
    }
#define NUMBER(name, flag, low, high, help)                                                                  \
    {                                                                                                        \
        name, SERVE_TAKES_NUMBER, flag, false, help, low, high                                               \
    }
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define PREDICTED "the simulation of one step; errors against published runs stand in docs/ACCURACY.md"
#define FIELDS    "the scenario, its presets and their sources (tool list)"
#define DEFAULTS  "defaults of the fields, which help KEY explains"
#define FAILURES  "mean times between failures and storage of the presets that `faults` and `storage` name"

static const ServeTool tools[] = {
    {.name = "run",
     .title = "One training step",
     .help = "Predicts one training step: step time with its interval, tokens per second, utilisation, "
             "memory and "
             "whether it fits, days, GPU-hours and cost.",
     .words = WORDS("run", "--format=json", "--quiet"),
     .seconds = 120,
     .is_json = true,
     .arguments = {SCENARIO("scenario", SCENARIO_HELP), SETS, RESERVE, OWN_RUNS},
     .labels = {{"", "predicted", PREDICTED},
                {"stamp", "assumed", DEFAULTS},
                {"model", "given", FIELDS},
                {"gpus", "given", FIELDS},
                {"memory.capacity_bytes", "given", FIELDS},
                {"training.effective", "assumed", FAILURES}}},
    {.name = "search",
     .title = "The best layout",
     .help =
         "Finds the fastest layout that fits in memory, over every field that is \"auto\", and says whether "
         "that is proved. Set fields to \"auto\" to open them.",
     .words = WORDS("search", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 60,
     .is_json = true,
     .tells = true,
     .arguments =
         {SCENARIO("scenario", SCENARIO_HELP), SETS,
          NUMBER("top", "--top", 1, 100, "How many layouts to report; 5 by default."),
          NUMBER("max_seconds", "--max-seconds", 0.1, 3600, "Stop then with the best so far; 20 by default."),
          TEXT("for", "--for", "What is best: step (default), or days, cost or energy of all tokens."),
          LIST("clusters", "--cluster", "Clusters to set side by side, each NAME or NAME@USD an hour."),
          LIST("accelerators", "--accelerator", "GPUs to set side by side, each NAME or NAME@USD an hour."),
          RESERVE, OWN_RUNS},
     .labels = {{"", "predicted", PREDICTED}}},
    {.name = "plan",
     .title = "How many GPUs",
     .help = "Says how many GPUs a training takes for a deadline or a budget: days, cost and energy at each "
             "count, "
             "with failures counted in.",
     .words = WORDS("plan", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 300,
     .is_json = true,
     .tells = true,
     .arguments =
         {SCENARIO("scenario", SCENARIO_HELP), SETS,
          TEXT("deadline", "--deadline", "The latest end, as \"30 days\"."),
          NUMBER("budget_usd", "--budget-usd", 0, 1e15, "What it may cost, in US dollars."),
          NUMBER("power_mw", "--power-mw", 1e-9, 1e9, "Megawatts that it may draw, with hosts and cooling."),
          TEXT("for", "--for", "The count with the least days, cost or energy; step by default."),
          LIST("gpus", "--gpus", "Counts of GPUs to try, as [512, 1024]."),
          LIST("clusters", "--cluster", "Clusters to set side by side, each NAME or NAME@USD an hour."),
          LIST("accelerators", "--accelerator", "GPUs to set side by side, each NAME or NAME@USD an hour."),
          LIST("frameworks", "--framework", "Training programs to set side by side, on each machine."),
          RESERVE, OWN_RUNS},
     .labels = {{"", "predicted", PREDICTED},
                {"tokens", "given", FIELDS},
                {"deadline_s", "given", FIELDS},
                {"budget_usd", "given", FIELDS},
                {"assumed", "assumed", FAILURES}}},
    {.name = "sweep",
     .title = "A table of runs",
     .help = "Predicts the step for every combination of values of some fields: a row each, with step time, "
             "memory, days and cost. What cannot run keeps its row and the reason.",
     .words = WORDS("sweep", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 600,
     .is_json = true,
     .tells = true,
     .arguments = {SCENARIO("scenario", SCENARIO_HELP),
                   {"vary", SERVE_TAKES_VARY, "--vary", true,
                    "Fields and their values, as {\"parallel.tensor\": [1, 2, 4]}.", 0, 0},
                   SETS,
                   OWN_RUNS},
     .labels = {{"", "predicted", PREDICTED}}},
    {.name = "campaign",
     .title = "Weeks with failures",
     .help =
         "Lives through the whole training many times, from failure to failure. Says days and goodput with "
         "their spread, what failures cost, the best checkpoint interval, and what spare nodes bring.",
     .words = WORDS("campaign", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 600,
     .is_json = true,
     .tells = true,
     .arguments = {SCENARIO("scenario", SCENARIO_HELP), SETS,
                   NUMBER("replicas", "--replicas", 1, 1e6, "Trainings to live through; 1000 by default."),
                   NUMBER("seed", "--seed", 0, 1e15, "Of their random numbers; 1 by default."),
                   NUMBER("days", "--days", 0.01, 36500,
                          "Days of training without a failure, in place of those of training.tokens.")},
     .labels = {{"", "predicted", "replicas of the run with failures drawn at the rates of `faults`"},
                {"gpus", "given", FIELDS},
                {"mtbf_s", "assumed", FAILURES},
                {"causes", "assumed", FAILURES}}},
    {.name = "explain",
     .title = "What binds",
     .help = "Says what a step waits for, which kernels lose most, and which single changes of the layout "
             "would help "
             "by how much; each is simulated.",
     .words = WORDS("explain", "--format=json", "--quiet"),
     .seconds = 120,
     .is_json = true,
     .arguments = {SCENARIO("scenario", SCENARIO_HELP), SETS, RESERVE, OWN_RUNS},
     .labels = {{"", "predicted", PREDICTED}}},
    {.name = "compare",
     .title = "Two scenarios",
     .help =
         "Sets two scenarios side by side: which fields differ, how step time and memory split in each, and "
         "what each field does alone.",
     .words = WORDS("compare", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 120,
     .is_json = true,
     .arguments = {SCENARIO("a", SCENARIO_HELP), SCENARIO("b", SCENARIO_HELP), SETS, OWN_RUNS},
     .labels = {{"", "predicted", PREDICTED}, {"summary.gpus", "given", FIELDS}}},
    {.name = "collective",
     .title = "One collective",
     .help =
         "Times one collective operation on one network: seconds, bandwidths, the algorithm, and what NCCL "
         "would choose.",
     .words = WORDS("collective", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 120,
     .is_json = true,
     .arguments = {TEXT("op", "--op", "all-reduce (default), all-gather, reduce-scatter, all-to-all ..."),
                   TEXT("bytes", "--bytes", "The size, as \"256MiB\", \"1MiB,4MiB\" or \"8..8GiB\"."),
                   NUMBER("ranks", "--ranks", 1, 1e6, "GPUs that take part."),
                   TEXT("cluster", "--cluster", "The preset of a cluster, as dgx-h100."),
                   TEXT("algorithm", "--algorithm", "One algorithm; by default the fastest of all."),
                   TEXT("library", "--library", "What nccl, rccl, msccl or gloo would take."),
                   TEXT("fidelity", "--fidelity", "analytic (default) or flow, where messages share links."),
                   TEXT("topology", "--topology", "Another network, by its name in list topologies."),
                   TEXT("rate", "--rate", "The rate of every port, as \"50GB/s\"."),
                   TEXT("latency", "--latency", "The latency of every message, as \"5us\".")},
     .labels = {{"", "predicted", "the algorithm step by step at the rates of the links"},
                {"ranks", "given", "the question"},
                {"bytes", "given", "the question"}}},
    {.name = "generate",
     .title = "Writing answers",
     .help =
         "Predicts how fast an inference engine writes answers to a batch of prompts, what bounds it, and "
         "how much of "
         "it the longest answers take. execution.framework names the engine: vllm, sglang or tensorrt-llm.",
     .words = WORDS("generate", "--format=json", "--quiet"),
     .keeps = true,
     .seconds = 60,
     .is_json = true,
     .arguments = {SCENARIO("scenario", SCENARIO_HELP), SETS,
                   NUMBER("prompts", "--prompts", 1, 1e6, "Prompts of the batch; 1024 by default."),
                   NUMBER("samples", "--samples", 1, 1e4, "Answers to each prompt; 1 by default."),
                   NUMBER("prompt_tokens", "--prompt-tokens", 1, 1e7, "Tokens of a prompt; 512 by default."),
                   NUMBER("answer_tokens", "--answer-tokens", 1, 1e7,
                          "Tokens of an answer on average; 1024 by default."),
                   NUMBER("answer_log_sd", "--answer-log-sd", 0, 5,
                          "Standard deviation of the logarithm of their lengths; 0, all equal, by default."),
                   NUMBER("answer_most", "--answer-most", 1, 1e7,
                          "Longer answers are cut off at this many tokens.")},
     .labels = {{"", "predicted",
                 "the cost of each decode step; errors stand in docs/accuracy/generation.md"},
                {"memory", "predicted", "shapes of the model and the engine's recipe"}}},
    {.name = "import",
     .title = "A configuration as a scenario",
     .help = "Turns the configuration of other software into a scenario: Megatron-LM flags, DeepSpeed JSON, "
             "torchtitan "
             "TOML, nanotron YAML or a Hugging Face config.json. Says what was not carried over.",
     .words = WORDS("import"),
     .seconds = 30,
     .is_json = true,
     .arguments = {{"text", SERVE_TAKES_BODY, NULL, false, "The text of the file.", 0, 0},
                   TEXT("file", NULL, "The path of the file, where its text is not given."),
                   TEXT("from", "--from",
                        "megatron, megatron-bridge, deepspeed, torchtitan, nanotron or hf."),
                   {"base", SERVE_TAKES_SCENARIO, "--base", false,
                    "A scenario that says what the file does not.", 0, 0},
                   TEXT("cluster", "--cluster", "The preset of the cluster it is to run on."),
                   SETS},
     .labels = {{"", "given", "the file, the base and the fields that were set"}}},
    {.name = "export",
     .title = "A scenario for its software",
     .help = "Writes a scenario in a framework's own names. The notes say what the file leaves out.",
     .words = WORDS("export"),
     .seconds = 60,
     .arguments = {SCENARIO("scenario", SCENARIO_HELP),
                   {"to", SERVE_TAKES_TEXT, "--to", true,
                    "megatron, megatron-bridge, deepspeed, torchtitan, nanotron, axolotl, llama-factory, "
                    "torchtune, trl, "
                    "peft or schedule.",
                    0, 0},
                   SETS},
     .labels = {{"", "given", "the scenario"}}},
    {.name = "trace",
     .title = "A recorded step compared with its prediction",
     .help = "Reads a profiler's trace: kernels by class and what each instant of the step went to. With a "
             "scenario "
             "its prediction is shown next to it, with the ops that differ most.",
     .words = WORDS("trace", "--format=json", "--quiet"),
     .seconds = 60,
     .is_json = true,
     .arguments = {{"text", SERVE_TAKES_BODY, NULL, false, "The text of the trace, as JSON.", 0, 0},
                   TEXT("file", NULL, "The path of the trace, where its text is not given; .gz too."),
                   {"scenario", SERVE_TAKES_SCENARIO, "--scenario", false, SCENARIO_HELP, 0, 0},
                   SETS},
     .labels = {{"", "predicted", "the simulation of the scenario's step; every measured_s is the trace's"},
                {"step.measured_s", "measured", "the trace"}}},
    {.name = "list",
     .title = "Presets and words",
     .help = "Lists what a scenario can name, with key figures and their sources: models, accelerators, "
             "clusters, "
             "frameworks, schedules, collectives, topologies, faults, storage, examples.",
     .words = WORDS("list", "--format=json"),
     .seconds = 30,
     .is_json = true,
     .arguments = {TEXT("kind", NULL,
                        "models, accelerators, clusters, frameworks, examples ...; none: the kinds."),
                   TEXT("name", "", "Only rows whose name contains this.")},
     .labels = {{"", "given",
                 "the member `source` of each row; \"unverified\" marks what no source confirms"}}},
    {.name = "help",
     .title = "A field, a command or a word",
     .help =
         "Explains a field of a scenario (parallel.zero), a command (search) or a word of the field (mfu). "
         "Nothing asked: the overview.",
     .words = WORDS("help"),
     .seconds = 30,
     .arguments = {TEXT("topic", NULL, "A field, a command or a word; \"scenario\" lists the fields.")},
     .labels = {{"", "given", "the tables of fields"}}},
};

const ServeTool *serve_tools(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(tools);
    return tools;
}

const ServeTool *serve_tool_find(const char *name, GError **error)
{
    const char *names[G_N_ELEMENTS(tools)];
    for (gsize i = 0; i < G_N_ELEMENTS(tools); i++) {
        names[i] = tools[i].name;
        if (strcmp(name, tools[i].name) == 0)
            return &tools[i];
    }
    const char *nearest = orr_nearest(name, names, (int)G_N_ELEMENTS(tools));
    orr_fail(error, ORR_ERROR_INPUT, "\"%.100s\" is not a tool; %s%s", name,
             nearest != NULL ? "did you mean " : "tools/list lists them", nearest != NULL ? nearest : "");
    return NULL;
}

/* --- what tools/list says --- */

static void write_argument(const ServeArgument *a, OrrJsonWriter *w)
{
    static const char *const types[] = {
        [SERVE_TAKES_TEXT] = "string", [SERVE_TAKES_NUMBER] = "number", [SERVE_TAKES_SWITCH] = "boolean",
        [SERVE_TAKES_SETS] = "object", [SERVE_TAKES_LIST] = "array",    [SERVE_TAKES_BODY] = "string",
        [SERVE_TAKES_VARY] = "object",
    };
    orr_jw_begin(w, a->name, '{');
    if (a->takes == SERVE_TAKES_SCENARIO) {
        orr_jw_begin(w, "type", '[');
        orr_jw_text(w, NULL, "object");
        orr_jw_text(w, NULL, "string");
        orr_jw_end(w, ']');
    } else {
        orr_jw_text(w, "type", types[a->takes]);
    }
    if (a->takes == SERVE_TAKES_NUMBER) {
        orr_jw_number(w, "minimum", a->low);
        orr_jw_number(w, "maximum", a->high);
    }
    orr_jw_text(w, "description", a->help);
    orr_jw_end(w, '}');
}

void serve_tool_schema(const ServeTool *tool, const char *key, OrrJsonWriter *w)
{
    orr_jw_begin(w, key, '{');
    orr_jw_text(w, "type", "object");
    orr_jw_begin(w, "properties", '{');
    for (int i = 0; i < SERVE_MOST_ARGUMENTS && tool->arguments[i].name != NULL; i++)
        write_argument(&tool->arguments[i], w);
    orr_jw_end(w, '}');
    orr_jw_begin(w, "required", '[');
    for (int i = 0; i < SERVE_MOST_ARGUMENTS && tool->arguments[i].name != NULL; i++)
        if (tool->arguments[i].required)
            orr_jw_text(w, NULL, tool->arguments[i].name);
    orr_jw_end(w, ']');
    orr_jw_bool(w, "additionalProperties", false);
    orr_jw_end(w, '}');
}
