/* study/generation.c - see generation.h. Tested: docs/howto/generate.md, unit/costmodel/test_generate.c */
#include "study/generation.h"

#include <math.h>

#include "base/text.h"
#include "report/page.h"

#define GIB 0x1p30

enum { LABEL_COLUMN = 14 };

static const char *const part_keys[COST_DECODE_PART_COUNT] = {"products_s", "attention_s", "comm_s",
                                                              "small_s", "host_s"};
static const char *const part_labels[COST_DECODE_PART_COUNT] = {"products", "attention", "communication",
                                                                "small kernels", "host and gaps"};

static bool holds(const Generation *generation, GError **error)
{
    const CostGenerated *result = &generation->result;
    double parts = 0;
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        parts += result->part_s[part];
    const bool adds = fabs(parts - result->decode_s) <= 1e-9 * result->decode_s &&
                      fabs(result->decode_s + result->prefill_s - result->seconds) <= 1e-9 * result->seconds;
    const bool bounded = result->mean_batch <= result->most_batch &&
                         result->most_batch <= result->sequences && result->tail_s <= result->seconds;
    return (adds && bounded) ||
           orr_fail(error, ORR_ERROR_INTERNAL, "generation: %s",
                    adds ? "more sequences at once than there are" : "its parts do not add up");
}

bool generation_run(const Spec *spec, const CostGenerateAsk *ask, bool check, Generation *ret_generation,
                    GError **error)
{
    *ret_generation = (Generation){.spec = spec, .ask = ask};
    return cost_generate_has_engine(spec, error) &&
           cost_decode_init(spec, cost_generate_most(spec, ask), &ret_generation->decode, error) &&
           cost_generate(&ret_generation->decode, ask, &ret_generation->result, error) &&
           (!check || holds(ret_generation, error));
}

static void entry(GString *out, const char *label, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void entry(GString *out, const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *line = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    report_page_entry(out, label, LABEL_COLUMN, line);
}

static void write_layout(const Generation *generation, GString *out)
{
    const Spec *spec = generation->spec;
    const SpecParallel *parallel = &spec->parallel;
    const CostDecode *decode = &generation->decode;
    entry(out, "Model", "%s, %s, %s", spec->model.name,
          spec_word(&spec_words_precision, (int)spec->training.precision), spec->execution.framework.name);
    entry(out, "Replicas", "%d of %d GPUs: tensor %d, pipeline %d, expert %d; %s", decode->replicas,
          parallel->tensor * decode->pipeline, parallel->tensor, decode->pipeline, parallel->expert,
          spec->cluster.accelerator.name);
}

static void write_memory(const Generation *generation, GString *out)
{
    char tokens[ORR_TEXT_SIZE];
    const CostDecode *decode = &generation->decode;
    const double capacity = generation->result.capacity_tokens;
    entry(out, "Memory", "weights %.1f GiB, work %.1f, caches %.1f of %.1f GiB a GPU",
          decode->weights_bytes / GIB, decode->work_bytes / GIB, decode->cache_bytes / GIB,
          generation->spec->cluster.accelerator.memory_bytes / GIB);
    if (isinf(capacity))
        entry(out, "Caches", "hold windows alone: %.1f KiB a sequence", decode->sequence_bytes / 1024);
    else
        entry(out, "Caches", "hold %s tokens of a replica, %.1f KiB each", orr_text_count(tokens, capacity),
              decode->token_bytes / 1024);
}

void generation_text(const Generation *generation, GString *out)
{
    char seconds[ORR_TEXT_SIZE], prefill[ORR_TEXT_SIZE], decode[ORR_TEXT_SIZE], tail[ORR_TEXT_SIZE],
        tokens[ORR_TEXT_SIZE];
    const CostGenerated *result = &generation->result;
    const CostGenerateAsk *ask = generation->ask;
    write_layout(generation, out);
    entry(out, "Answers", "%.0f prompts of %.0f tokens, %.0f each, of %.0f tokens on average, at most %.0f",
          ask->prompts, ask->prompt_tokens, ask->samples_per_prompt, orr_lengths_mean(&ask->answers),
          ask->answers.tokens[ask->answers.count - 1]);
    write_memory(generation, out);
    g_string_append_c(out, '\n');
    entry(out, "GENERATION", "%s    %s tokens/s, %.0f a GPU", orr_text_seconds(seconds, result->seconds),
          orr_text_count(tokens, result->tokens_per_s), result->tokens_per_s_per_gpu);
    entry(out, "Time", "prompts %s, answers %s; at the end %s with at most half of the sequences",
          orr_text_seconds(prefill, result->prefill_s), orr_text_seconds(decode, result->decode_s),
          orr_text_seconds(tail, result->tail_s));
    entry(out, "At once", "%.0f sequences on average, %.0f at most; %.0f tokens in each; %.0f gave way",
          result->mean_batch, result->most_batch, result->mean_context, result->preempted);
    g_string_append(out, "\nWhere a step of the answers goes\n");
    static const char *const columns[] = {"", "a step", "share"};
    OrrTable *table = orr_table_new(columns, 3);
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++) {
        char each[ORR_TEXT_SIZE], share[ORR_TEXT_SIZE];
        orr_text_seconds(each, result->part_s[part] / result->steps);
        g_snprintf(share, sizeof share, "%.1f %%", 100 * result->part_s[part] / result->decode_s);
        orr_table_row(table, (const char *const[]){part_labels[part], each, share});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void generation_json(const Generation *generation, GString *out)
{
    const CostGenerated *result = &generation->result;
    const CostDecode *decode = &generation->decode;
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "version", ORRERY_VERSION);
    orr_jw_number(&w, "seconds", result->seconds);
    orr_jw_number(&w, "tokens_per_s", result->tokens_per_s);
    orr_jw_number(&w, "tokens_per_s_per_gpu", result->tokens_per_s_per_gpu);
    orr_jw_number(&w, "prefill_s", result->prefill_s);
    orr_jw_number(&w, "decode_s", result->decode_s);
    orr_jw_number(&w, "tail_s", result->tail_s);
    orr_jw_number(&w, "steps", result->steps);
    orr_jw_number(&w, "mean_sequences", result->mean_batch);
    orr_jw_number(&w, "most_sequences", result->most_batch);
    orr_jw_number(&w, "mean_context_tokens", result->mean_context);
    orr_jw_number(&w, "preempted", result->preempted);
    orr_jw_begin(&w, "memory", '{');
    orr_jw_number(&w, "weights_bytes", decode->weights_bytes);
    orr_jw_number(&w, "work_bytes", decode->work_bytes);
    orr_jw_number(&w, "cache_bytes", decode->cache_bytes);
    orr_jw_number(&w, "cache_token_bytes", decode->token_bytes);
    orr_jw_number(&w, "cache_sequence_bytes", decode->sequence_bytes);
    if (!isinf(result->capacity_tokens))
        orr_jw_number(&w, "cache_tokens", result->capacity_tokens);
    orr_jw_end(&w, '}');
    orr_jw_begin(&w, "step", '{');
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        orr_jw_number(&w, part_keys[part], result->part_s[part] / result->steps);
    orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

static void table_text(const GenerationTable *table, const double *rates, GString *out)
{
    g_autoptr(GPtrArray) headers = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(headers, g_strdup("sequences"));
    for (int c = 0; c < table->context_count; c++)
        g_ptr_array_add(headers, g_strdup_printf("at %.0f tokens", table->contexts[c]));
    OrrTable *page = orr_table_new((const char *const *)headers->pdata, (int)headers->len);
    for (int b = 0; b < table->batch_count; b++) {
        g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(cells, g_strdup_printf("%.0f", table->batches[b]));
        for (int c = 0; c < table->context_count; c++) {
            const double rate = rates[b * table->context_count + c];
            g_ptr_array_add(cells, rate > 0 ? g_strdup_printf("%.0f", rate) : g_strdup("no room"));
        }
        orr_table_row(page, (const char *const *)cells->pdata);
    }
    g_string_append(out, "Tokens a second and GPU while answers are written\n");
    report_page_table(page, out, 2);
    orr_table_free(page);
}

static void table_json(const GenerationTable *table, const double *rates, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "version", ORRERY_VERSION);
    orr_jw_begin(&w, "table", '[');
    for (int i = 0; i < table->batch_count * table->context_count; i++) {
        orr_jw_begin(&w, NULL, '{');
        orr_jw_number(&w, "sequences", table->batches[i / table->context_count]);
        orr_jw_number(&w, "context_tokens", table->contexts[i % table->context_count]);
        if (rates[i] > 0)
            orr_jw_number(&w, "tokens_per_s_per_gpu", rates[i]);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

bool generation_table(const Spec *spec, const GenerationTable *table, bool json, GString *out, GError **error)
{
    CostDecode decode;
    double most = 1;
    for (int b = 0; b < table->batch_count; b++)
        most = fmax(most, table->batches[b]);
    if (!cost_generate_has_engine(spec, error) || !cost_decode_init(spec, most, &decode, error))
        return false;
    g_autofree double *rates = g_new0(double, (gsize)table->batch_count *(gsize)table->context_count);
    for (int i = 0; i < table->batch_count * table->context_count; i++) {
        const double batch = table->batches[i / table->context_count],
                     tokens = batch * table->contexts[i % table->context_count];
        const CostDecodeTime time = cost_decode_step(&decode, batch, tokens);
        if (tokens <= cost_decode_capacity_tokens(&decode, batch))
            rates[i] = batch * (1 + spec->execution.framework.engine.drafted_tokens) /
                       cost_decode_total_s(&time) / (spec->parallel.tensor * decode.pipeline);
    }
    if (json)
        table_json(table, rates, out);
    else
        table_text(table, rates, out);
    return true;
}
