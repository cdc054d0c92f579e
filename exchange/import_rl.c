/* exchange/import_rl.c - see import_rl.h. Tested: unit/exchange/test_import_rl.c */
#include "exchange/import_rl.h"

#include <string.h>

#include "spec/model_names.h"

void exchange_import_model(ExchangeImport *import, const char *key, const char *to)
{
    const char *path = exchange_import_text(import, key);
    if (path == NULL || exchange_import_at(import, to) != NULL)
        return;
    g_autofree char *preset = spec_model_preset(path);
    if (preset == NULL) {
        exchange_import_warn(
            import, "%s: no preset is called %.80s; give --set %s=NAME, or a path of its config.json", key,
            path, to);
        return;
    }
    g_autofree char *quoted = exchange_json_text(preset);
    exchange_import_native(import, to, quoted);
}

int exchange_import_number(const ExchangeImport *import, const char *key, int fallback)
{
    int value = fallback;
    (void)exchange_import_int(import, key, &value);
    return value;
}

double exchange_import_frac(const ExchangeImport *import, const char *key, double fallback)
{
    const char *text = exchange_import_text(import, key);
    char *end = NULL;
    const double value = text != NULL ? g_ascii_strtod(text, &end) : fallback;
    return text != NULL && (end == text || *end != '\0') ? fallback : value;
}

static void put_number(ExchangeImport *import, const char *key, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    exchange_import_native(import, key, g_ascii_dtostr(text, sizeof text, value));
}

static void put_batch(ExchangeImport *import, const ExchangeLoop *loop)
{
    exchange_import_native_int(import, "workload.generation.prompts", loop->prompts);
    exchange_import_native_int(import, "workload.generation.samples_per_prompt", loop->samples);
    if (exchange_import_at(import, "workload.generation.answer_tokens.mean") == NULL)
        exchange_import_warn(
            import, "data: only the longest prompt and answer are said, and taken for the mean; give --set "
                    "workload.generation.answer_tokens.mean=N and log_sd");
    g_autofree char *prompt = g_strdup_printf("%d", loop->prompt_tokens),
                    *answer = g_strdup_printf("%d", loop->answer_tokens);
    exchange_import_implied(import, "workload.generation.prompt_tokens", prompt);
    exchange_import_implied(import, "workload.generation.answer_tokens.mean", answer);
    exchange_import_native_int(import, "workload.generation.answer_tokens.max", loop->answer_tokens);
    if (loop->kept_frac > 0 && loop->kept_frac < 1)
        put_number(import, "workload.generation.kept_frac", loop->kept_frac);
    exchange_import_native_int(import, "workload.mini_batches", MAX(1, loop->mini_batches));
    exchange_import_native_int(import, "workload.epochs", MAX(1, loop->epochs));
    if (loop->micro_batch_tokens > 0)
        exchange_import_native_int(import, "workload.micro_batch_tokens", loop->micro_batch_tokens);
    exchange_import_native_bool(import, "workload.padded", loop->padded);
}

static void put_engine(ExchangeImport *import, const ExchangeLoop *loop)
{
    g_autofree char *engine = exchange_json_text(loop->engine);
    g_autoptr(GString) own = g_string_new(NULL);
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    exchange_import_native_int(import, "workload.roles.rollout.parallel.tensor", MAX(1, loop->tensor));
    if (loop->expert > 1)
        exchange_import_native_int(import, "workload.roles.rollout.parallel.expert", loop->expert);
    exchange_import_native(import, "workload.generation.engine", engine);
    if (loop->eager)
        g_string_append(own, "\"captures_graphs\":false");
    if (loop->memory_frac > 0)
        g_string_append_printf(own, "%s\"memory_frac\":%s", own->len > 0 ? "," : "",
                               g_ascii_dtostr(number, sizeof number, loop->memory_frac));
    g_autofree char *framework = g_strdup_printf("{\"preset\":%s,\"engine\":{%s}}", engine, own->str);
    if (own->len > 0)
        exchange_import_native(import, "workload.roles.rollout.execution.framework", framework);
    if (loop->max_sequences > 0)
        exchange_import_native_int(import, "workload.generation.max_sequences", loop->max_sequences);
    if (loop->nodes > 0)
        exchange_import_native_int(import, "workload.roles.rollout.nodes", loop->nodes);
    if (loop->nodes > 0 && loop->gpus_per_node > 0)
        exchange_import_native_int(import, "workload.roles.rollout.cluster.gpus_per_node",
                                   loop->gpus_per_node);
}

void exchange_import_loop(ExchangeImport *import, const ExchangeLoop *loop)
{
    exchange_import_native(import, "workload.preset",
                           loop->critic       ? "\"ppo\""
                           : !loop->reference ? "\"dapo\""
                           : loop->rloo       ? "\"rloo\""
                                              : "\"grpo\"");
    if (loop->critic && !loop->reward_model)
        exchange_import_warn(
            import, "rewards: a reward model is assumed; give its phase seconds where a rule scores");
    if (!loop->critic && loop->reward_model)
        exchange_import_warn(import, "rewards: a reward model scores, and is not counted; give the phase "
                                     "\"reward\" its seconds");
    put_batch(import, loop);
    put_engine(import, loop);
    if (loop->staleness_steps > 0)
        exchange_import_native_int(import, "workload.staleness_steps", loop->staleness_steps);
    if (loop->in_flight)
        exchange_import_native_bool(import, "workload.in_flight", true);
}
