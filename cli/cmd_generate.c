/* cli/cmd_generate.c - orrery generate: what writing answers costs, without any training. */
#include <math.h>

#include "api/chosen.h"
#include "api/input.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "study/generation.h"

typedef struct GenerateArgs {
    CliArgs common;
    char *prompts, *samples, *prompt_tokens, *answer_tokens, *answer_log_sd, *answer_most, *most_sequences,
        *batch, *context;
    gboolean check;
} GenerateArgs;

/* A number of at least `low`; `fallback` where the flag is not given. */
static bool number(const char *flag, const char *text, double low, double fallback, double *ret_value,
                   GError **error)
{
    char *end = NULL;
    *ret_value = text != NULL ? g_ascii_strtod(text, &end) : fallback;
    return text == NULL || (end != text && *end == '\0' && *ret_value >= low && *ret_value <= 1e9) ||
           orr_fail(error, ORR_ERROR_INPUT, "--%s: \"%.40s\" is not a number from %g to 1e9", flag, text,
                    low);
}

static bool whole(const char *flag, const char *text, double fallback, double *ret_value, GError **error)
{
    return number(flag, text, 1, fallback, ret_value, error) &&
           (*ret_value == floor(*ret_value) ||
            orr_fail(error, ORR_ERROR_INPUT, "--%s: \"%.40s\" is not a whole number", flag, text));
}

static bool question(const GenerateArgs *args, CostGenerateAsk *ask, GError **error)
{
    double mean = 0, log_sd = 0, most = 0, sequences = 0;
    if (!whole("prompts", args->prompts, 1024, &ask->prompts, error) ||
        !whole("samples", args->samples, 1, &ask->samples_per_prompt, error) ||
        !whole("prompt-tokens", args->prompt_tokens, 512, &ask->prompt_tokens, error) ||
        !number("answer-tokens", args->answer_tokens, 1, 1024, &mean, error) ||
        !number("answer-log-sd", args->answer_log_sd, 0, 0, &log_sd, error) ||
        !number("answer-most", args->answer_most, 1, 0, &most, error) ||
        !number("most-sequences", args->most_sequences, 1, 0, &sequences, error))
        return false;
    if (log_sd > 5)
        return orr_fail(error, ORR_ERROR_INPUT, "--answer-log-sd: %g; give at most 5", log_sd);
    ask->most_sequences = (int)sequences;
    orr_lengths_log_normal(mean, log_sd, most, &ask->answers);
    return true;
}

enum { TABLE_MOST = 64 };

/* "1,8,64": numbers of at least 1. */
static bool list(const char *flag, const char *text, const char *fallback, double *values, int *ret_count,
                 GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : fallback, ",", -1);
    *ret_count = 0;
    for (char **part = parts; *part != NULL; part++) {
        if (*ret_count == TABLE_MOST)
            return orr_fail(error, ORR_ERROR_INPUT, "--%s: more than %d numbers; give fewer", flag,
                            TABLE_MOST);
        if (!number(flag, *part, 1, 0, &values[(*ret_count)++], error))
            return false;
    }
    return *ret_count > 0 ||
           orr_fail(error, ORR_ERROR_INPUT, "--%s: is empty; give numbers, as 1,8,64", flag);
}

/* Contexts that are given have to fit the model; of the usual ones those are left that do. */
static bool contexts_fit(const GenerateArgs *args, int positions, GenerationTable *table, double *contexts,
                         GError **error)
{
    int kept = 0;
    for (int i = 0; i < table->context_count; i++) {
        if (positions <= 0 || contexts[i] <= positions)
            contexts[kept++] = contexts[i];
        else if (args->context != NULL)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "--context: %.0f tokens, but the model has %d positions; give at most these, or "
                            "model.max_positions",
                            contexts[i], positions);
    }
    if (kept == 0)
        contexts[kept++] = positions;
    table->context_count = kept;
    return true;
}

/* The table has sequences and contexts of its own. */
static bool table_alone(const GenerateArgs *args, GError **error)
{
    const struct {
        const char *flag, *text;
    } others[] = {{"prompts", args->prompts},
                  {"samples", args->samples},
                  {"prompt-tokens", args->prompt_tokens},
                  {"answer-tokens", args->answer_tokens},
                  {"answer-log-sd", args->answer_log_sd},
                  {"answer-most", args->answer_most},
                  {"most-sequences", args->most_sequences}};
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        if (others[i].text != NULL)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "--%s: not with --batch or --context, which ask for a table without prompts and "
                            "answers; give one or the other",
                            others[i].flag);
    return !args->check ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--check: not with --batch or --context, whose table has no batch of answers "
                    "to check; give one or the other");
}

static bool answer_table(const GenerateArgs *args, const Spec *spec, GString *out, GError **error)
{
    double batches[TABLE_MOST], contexts[TABLE_MOST];
    GenerationTable table = {batches, contexts, 0, 0};
    return table_alone(args, error) &&
           list("batch", args->batch, "1,8,64,256", batches, &table.batch_count, error) &&
           list("context", args->context, "1024,8192,32768", contexts, &table.context_count, error) &&
           contexts_fit(args, spec->model.max_positions, &table, contexts, error) &&
           generation_table(spec, &table, args->common.format == CLI_FORMAT_JSON, out, error);
}

static bool answer(const GenerateArgs *args, const Spec *spec, GString *out, GError **error)
{
    const bool json = args->common.format == CLI_FORMAT_JSON;
    CostGenerateAsk ask = {.seed = 1};
    Generation generation;
    if (args->batch != NULL || args->context != NULL)
        return answer_table(args, spec, out, error);
    if (!question(args, &ask, error) || !generation_run(spec, &ask, args->check, &generation, error))
        return false;
    if (json)
        generation_json(&generation, out);
    else
        generation_text(&generation, out);
    return true;
}

static bool run(const CliArgs *common, GError **error)
{
    const GenerateArgs *args = (const GenerateArgs *)common;
    const ApiInput input = {.path = common->words[0]};
    g_autofree Spec *asked = g_new0(Spec, 1);
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GString) out = g_string_new(NULL);
    SpecSource source = {0};
    if (common->format == CLI_FORMAT_CSV)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "generate: --format csv: there is no table of it; give text or json");
    if (!api_input_load(&input, common->sets, asked, &source, error))
        return false;
    g_autoptr(GPtrArray) chosen = g_ptr_array_new_with_free_func(g_free);
    const bool ok = api_choose(asked, spec, chosen, error) && answer(args, spec, out, error) &&
                    cli_output_write(common->output, out, error);
    spec_source_clear(&source);
    return ok;
}

static const CliFlag flags[] = {
    {"prompts", CLI_FLAG_TEXT, offsetof(GenerateArgs, prompts), "N", "prompts of the batch (default: 1024)"},
    {"samples", CLI_FLAG_TEXT, offsetof(GenerateArgs, samples), "N", "answers to each prompt (default: 1)"},
    {"prompt-tokens", CLI_FLAG_TEXT, offsetof(GenerateArgs, prompt_tokens), "N",
     "tokens of a prompt (default: 512)"},
    {"answer-tokens", CLI_FLAG_TEXT, offsetof(GenerateArgs, answer_tokens), "N",
     "tokens of an answer on average (default: 1024)"},
    {"answer-log-sd", CLI_FLAG_TEXT, offsetof(GenerateArgs, answer_log_sd), "X",
     "standard deviation of the logarithm of an answer's length (default: 0, all are equally long)"},
    {"answer-most", CLI_FLAG_TEXT, offsetof(GenerateArgs, answer_most), "N",
     "cut longer answers off at this many tokens"},
    {"most-sequences", CLI_FLAG_TEXT, offsetof(GenerateArgs, most_sequences), "N",
     "sequences of a replica at once (default: the engine's)"},
    {"batch", CLI_FLAG_TEXT, offsetof(GenerateArgs, batch), "LIST",
     "a table of tokens a second and GPU instead: by sequences at once, as 1,8,64 ..."},
    {"context", CLI_FLAG_TEXT, offsetof(GenerateArgs, context), "LIST",
     "... and by tokens in each, as 1024,8192"},
    {"check", CLI_FLAG_SWITCH, offsetof(GenerateArgs, check), NULL, "check invariants of the answer"},
};

const CliCommand cli_command_generate = {
    .name = "generate",
    .usage = "SCENARIO.json",
    .summary = "how fast an inference engine writes answers, and what bounds it",
    .help = "Predicts how long a batch of prompts takes from its first token to the end of its last answer. "
            "All prompts "
            "are there at the start, as in reinforcement learning; there are no arrivals. The engine is "
            "execution.framework: vllm, sglang or tensorrt-llm. Weights have the format of "
            "training.precision. Ranks of "
            "parallel.tensor share a sequence; parallel.data are replicas.\n\n"
            "  orrery generate scenarios/examples/generate-llama3-8b.json\n"
            "  orrery generate scenarios/examples/generate-llama3-8b.json --prompts 512 --samples 8 "
            "--answer-tokens 4000 --answer-log-sd 0.8 --answer-most 16000\n"
            "  orrery generate scenarios/examples/generate-llama3-8b.json --batch 1,16,256 --context "
            "1024,16384\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(GenerateArgs),
    .run = run,
};
