/* exchange/import_megatron_training.c - how Megatron trains: precision, recomputation, attention, framework, batch. */
#include <stdio.h>
#include <string.h>

#include "exchange/import_megatron.h"

#define MOST_DEFERRED 100000 /* --wgrad-deferral-limit 0: of all micro-batches */

static void take_precision(const MegatronNames *names)
{
    static const char *const bridge[][2] = {
        {"fp16_mixed", "fp16"},
        {"bf16_mixed", "bf16"},
        {"bf16_with_fp8_delayed_scaling_mixed", "fp8"},
        {"bf16_with_fp8_current_scaling_mixed", "fp8-cs"},
        {"bf16_with_fp8_subchannel_scaling_mixed", "fp8-blockwise"},
        {"bf16_with_mxfp8_mixed", "mxfp8"},
        {"bf16_with_nvfp4_mixed", "nvfp4"},
    };
    ExchangeImport *import = names->import;
    if (names->bridge) {
        const char *recipe = exchange_import_text(import, "mixed_precision");
        for (gsize i = 0; recipe != NULL && i < G_N_ELEMENTS(bridge); i++)
            if (strcmp(recipe, bridge[i][0]) == 0)
                exchange_import_native(import, "training.precision", bridge[i][1]);
        bool whole = false;
        if (megatron_switch(names, NULL, "ddp.grad_reduce_in_fp32", &whole) && recipe != NULL &&
            strcmp(recipe, "fp16_mixed") != 0)
            exchange_import_native(import, "training.gradient_dtype", whole ? "fp32" : "bf16");
        return;
    }
    const char *fp8 = exchange_import_text(import, "fp8-format"),
               *fp4 = exchange_import_text(import, "fp4-format");
    const char *recipe = exchange_import_text(import, "fp8-recipe");
    const bool bf16 = exchange_import_bool(import, "bf16", false),
               fp16 = exchange_import_bool(import, "fp16", false);
    exchange_import_text(import, "fp4-recipe");
    const char *precision = fp4 != NULL                                           ? "nvfp4"
                            : fp8 != NULL && g_strcmp0(recipe, "tensorwise") == 0 ? "fp8-cs"
                            : fp8 != NULL && g_strcmp0(recipe, "blockwise") == 0  ? "fp8-blockwise"
                            : fp8 != NULL && g_strcmp0(recipe, "mxfp8") == 0      ? "mxfp8"
                            : fp8 != NULL                                         ? "fp8"
                            : bf16                                                ? "bf16"
                            : fp16                                                ? "fp16"
                                                                                  : "fp32";
    if (exchange_import_text(import, "micro-batch-size") != NULL || bf16 || fp16)
        exchange_import_native(import, "training.precision", precision);
    const bool half = exchange_import_bool(import, "grad-reduce-in-bf16", false);
    if (bf16)
        exchange_import_native(import, "training.gradient_dtype", half ? "bf16" : "fp32");
}

/* "core_attn mlp" or "[core_attn,mlp]" as a JSON list. */
static char *module_list(const char *text)
{
    g_auto(GStrv) words = g_strsplit_set(text, " ,[]\"'", -1);
    GString *list = g_string_new("[");
    for (char **word = words; *word != NULL; word++)
        if ((*word)[0] != '\0')
            g_string_append_printf(list, "%s\"%s\"", list->len > 1 ? "," : "", *word);
    g_string_append_c(list, ']');
    return g_string_free(list, FALSE);
}

static void take_recompute(const MegatronNames *names)
{
    ExchangeImport *import = names->import;
    const char *granularity = megatron_text(names, "recompute-granularity", "model.recompute_granularity");
    const char *method = megatron_text(names, "recompute-method", "model.recompute_method");
    const char *modules = megatron_text(names, "recompute-modules", "model.recompute_modules");
    int layers = 1;
    bool parts = false;
    megatron_switch(names, "distribute-saved-activations", "model.distribute_saved_activations", &parts);
    exchange_import_int(import, names->bridge ? "model.recompute_num_layers" : "recompute-num-layers",
                        &layers);
    if (granularity == NULL && names->bridge)
        return;
    if (granularity == NULL && !names->bridge) {
        const bool whole = exchange_import_bool(import, "checkpoint-activations", false);
        if (exchange_import_bool(import, "recompute-activations", false))
            granularity = "selective";
        else if (whole)
            granularity = "full";
    }
    if (granularity == NULL || strcmp(granularity, "null") == 0) {
        exchange_import_native(import, "training.recompute", "none");
    } else if (strcmp(granularity, "full") == 0 && (g_strcmp0(method, "block") == 0 || parts)) {
        const int first = g_strcmp0(method, "block") == 0 ? layers : 0;
        g_autofree char *value = g_strdup_printf("{\"mode\":\"full\",\"layers\":%d%s}", first,
                                                 parts ? ",\"partitioned\":true" : "");
        exchange_import_native(import, "training.recompute", value);
    } else if (strcmp(granularity, "full") == 0) {
        exchange_import_native(import, "training.recompute", "full");
    } else {
        g_autofree char *list = module_list(modules != NULL ? modules : "core_attn");
        g_autofree char *value = g_strdup_printf("{\"mode\":\"modules\",\"modules\":%s}", list);
        exchange_import_native(import, "training.recompute",
                               strcmp(list, "[\"core_attn\"]") == 0 ? "selective" : value);
    }
}

/* Of all layers of a stage, what the modules read. */
static void take_fine_offload(const MegatronNames *names)
{
    ExchangeImport *import = names->import;
    bool on = false;
    const char *modules = megatron_text(names, "offload-modules", "model.offload_modules");
    if (!megatron_switch(names, "fine-grained-activation-offloading",
                         "model.fine_grained_activation_offloading", &on) ||
        !on || modules == NULL)
        return;
    g_autofree char *list = module_list(modules);
    exchange_import_native(import, "offload.activations.tier", "host");
    exchange_import_native(import, "offload.activations.modules", list);
}

static void take_attention(const MegatronNames *names)
{
    const char *backend = megatron_text(names, "attention-backend", "model.attention_backend");
    const OrrJson *now = exchange_import_at(names->import, "execution.attention");
    const bool flash =
        now != NULL && orr_json_type(now) == ORR_JSON_TEXT && g_str_has_prefix(orr_json_text(now), "flash");
    const bool older = !names->bridge && exchange_import_bool(names->import, "use-flash-attn", false);
    if (backend == NULL && older)
        backend = "flash";
    if (backend == NULL)
        return;
    if (strcmp(backend, "unfused") == 0 || strcmp(backend, "local") == 0)
        exchange_import_native(names->import, "execution.attention", "unfused");
    else if (strcmp(backend, "fused") == 0)
        exchange_import_native(names->import, "execution.attention", "cudnn");
    else if (strcmp(backend, "flash") == 0 && !flash)
        exchange_import_native(names->import, "execution.attention", "flash2");
}

/* Transformer Engine's layers are what the profile has. */
static void take_layers(const MegatronNames *names)
{
    const char *layers = megatron_text(names, "transformer-impl", "model.transformer_impl");
    if (layers != NULL && strcmp(layers, "transformer_engine") != 0)
        exchange_import_warn(names->import,
                             "transformer-impl: \"%.40s\": layers are simulated as Transformer Engine's",
                             layers);
}

/* Whether weight-gradient GEMMs add to the gradient, as they do unless told otherwise. */
static bool fuses(const MegatronNames *names)
{
    return names->bridge ? exchange_import_bool(names->import, "model.gradient_accumulation_fusion", true)
                         : !exchange_import_bool(names->import, "no-gradient-accumulation-fusion", false);
}

/* What a recipe of Megatron-Bridge still switches on beside what its overrides say. */
static char *bridge_framework(const MegatronNames *names, bool told, int deferred)
{
    bool tensor = true, pipeline = true;
    megatron_switch(names, "tp-comm-overlap", "comm_overlap.tp_comm_overlap", &tensor);
    megatron_switch(names, "no-overlap-p2p-communication", "model.overlap_p2p_comm", &pipeline);
    if (tensor && pipeline && !told && fuses(names))
        return g_strdup("megatron-core");
    GString *text = g_string_new("{\"preset\": \"megatron-core\"");
    if (!tensor || !pipeline)
        g_string_append_printf(text, ", \"defaults\": {\"recipe_overlap\": [%s]}",
                               tensor     ? "\"tensor\""
                               : pipeline ? "\"pipeline\""
                                          : "");
    if (told)
        g_string_append_printf(text, ", \"pipeline\": {\"deferred_head_gradients\": %d}", deferred);
    if (!fuses(names))
        g_string_append(text, ", \"kernels\": {\"gradient_sum\": \"pass\"}");
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}

/* A launch of Megatron-LM itself has on what it names; nothing that NVIDIA's recipes switch on comes by itself. Overrides
 * of a recipe take away what they switch off. */
static void take_framework(const MegatronNames *names)
{
    bool defers = false;
    int limit = 0;
    const bool told = megatron_switch(names, "defer-embedding-wgrad-compute",
                                      "comm_overlap.defer_embedding_wgrad_compute", &defers);
    exchange_import_int(names->import,
                        names->bridge ? "comm_overlap.wgrad_deferral_limit" : "wgrad-deferral-limit", &limit);
    const int deferred = !defers ? 0 : limit > 0 ? limit : MOST_DEFERRED;
    g_autofree char *framework =
        names->bridge
            ? bridge_framework(names, told, deferred)
            : g_strdup_printf("{\"preset\": \"megatron-core\", \"defaults\": {\"recipe_overlap\": "
                              "[]}, \"pipeline\": {\"deferred_head_gradients\": %d}%s}",
                              deferred, fuses(names) ? "" : ", \"kernels\": {\"gradient_sum\": \"pass\"}");
    exchange_import_implied(names->import, "execution.framework", framework);
}

/* Without --global-batch-size a step is one micro-batch a data-parallel rank. */
static void take_batch(const MegatronNames *names)
{
    ExchangeImport *import = names->import;
    const int micro = exchange_import_doc_int(import, "training.micro_batch", 0);
    const int data = exchange_import_data(import);
    if (names->bridge || micro <= 0 || data <= 0 || (double)micro * data > 1e9)
        return;
    g_autofree char *batch = g_strdup_printf("%d", micro * data);
    exchange_import_implied(import, "training.global_batch", batch);
}

/* "16 16 5859375": where a batch starts, by what it grows, over how many sequences. */
static void take_ramp(const MegatronNames *names)
{
    ExchangeImport *import = names->import;
    const char *text = megatron_text(names, "rampup-batch-size", "train.rampup_batch_size");
    int values[3] = {0}, count = 0;
    g_auto(GStrv) words = g_strsplit_set(text != NULL ? text : "", " ,[]", -1);
    for (char **word = words; *word != NULL; word++) {
        gint64 value = 0;
        const bool ok = g_ascii_string_to_signed(*word, 10, 1, 1000000000, &value, NULL);
        if (ok && count < 3)
            values[count] = (int)value;
        count += (*word)[0] == '\0' ? 0 : ok ? 1 : 4;
    }
    const int whole = MAX(1, exchange_import_doc_int(import, "training.micro_batch", 1)) *
                      MAX(1, exchange_import_data(import)),
              room = exchange_import_doc_int(import, "training.global_batch", 0) - values[0];
    if (text == NULL || strcmp(text, "null") == 0)
        return;
    if (count != 3 || room <= 0 || room % values[1] != 0 || values[0] % whole != 0 || values[1] % whole != 0)
        exchange_import_warn(
            import,
            "rampup-batch-size: \"%.60s\" is not a start, increment and samples that lead to the "
            "global batch in whole micro-batches of all replicas; ignored",
            text);
    else if (exchange_import_at(import, "training.tokens") == NULL)
        exchange_import_warn(import, "rampup-batch-size: without train-samples the run has no end; ignored");
    else {
        g_autofree char *schedule = g_strdup_printf("[{\"global_batch\": %d, \"by\": %d, \"samples\": %d}]",
                                                    values[0], values[1], values[2]);
        exchange_import_native(import, "training.batch_schedule", schedule);
    }
}

/* A number such as 2.4B; 0: none. */
static double tokens_of(const char *text, char **end)
{
    static const char letters[] = "KMBT";
    double value = g_ascii_strtod(text, end);
    const char *letter = *end != text && **end != '\0' ? strchr(letters, g_ascii_toupper(**end)) : NULL;
    for (const char *at = letters; letter != NULL && at <= letter; at++)
        value *= 1000;
    *end += letter != NULL;
    return value;
}

/* "0:16 2.4B:320 12B:1536": from which token on a batch has how many sequences; the last is the run's own.
 * Source: megatron/training/config/training_config.py, step_batch_size_schedule */
static void take_steps(const MegatronNames *names)
{
    ExchangeImport *import = names->import;
    const char *text = megatron_text(names, "step-batch-size-schedule", "train.step_batch_size_schedule");
    if (text == NULL || strcmp(text, "null") == 0)
        return;
    g_autoptr(GString) schedule = g_string_new("[");
    g_auto(GStrv) words = g_strsplit_set(text, " ,;\t", -1);
    double from = 0;
    gint64 batch = 0;
    bool ok = true;
    for (char **word = words; ok && *word != NULL; word++) {
        char *end = NULL;
        gint64 next = 0;
        if ((*word)[0] == '\0')
            continue;
        const double at = tokens_of(*word, &end);
        ok = *end == ':' && g_ascii_string_to_signed(end + 1, 10, 1, 1000000000, &next, NULL) &&
             (batch > 0 ? at > from : at <= 0);
        if (ok && batch > 0)
            g_string_append_printf(schedule, "%s{\"global_batch\": %" G_GINT64_FORMAT ", \"tokens\": %.0f}",
                                   schedule->len > 1 ? ", " : "", batch, at - from);
        from = at;
        batch = next;
    }
    g_string_append_c(schedule, ']');
    if (!ok || batch == 0) {
        exchange_import_warn(
            import, "step-batch-size-schedule: \"%.60s\" is not a list like 0:768 250B:1536; ignored", text);
        return;
    }
    exchange_import_native_int(import, "training.global_batch", (int)batch);
    if (schedule->len > 2 && exchange_import_at(import, "training.tokens") == NULL)
        exchange_import_warn(
            import,
            "step-batch-size-schedule: without train-samples the run has no end; its last batch is taken");
    else if (schedule->len > 2)
        exchange_import_native(import, "training.batch_schedule", schedule->str);
}

/* Pai-Megatron-Patch: a tokenizer's words and what --extra-vocab-size adds up to a model's table.
 * Sources: megatron_patch/tokenizer/__init__.py; tokenizer_config.json of Llama 2 and 3, Qwen2, Mistral and DeepSeek-V2, -V3 */
static void take_patch_vocabulary(const MegatronNames *names)
{
    static const struct {
        const char *type;
        int extra, words; /* extra -1: any */
    } known[] = {{"LLamaTokenizer", -1, 32000},         {"LLama2Tokenizer", -1, 32000},
                 {"LLama3Tokenizer", -1, 128000},       {"Qwen2Tokenizer", -1, 151643},
                 {"Qwen3Tokenizer", -1, 151643},        {"Qwen2VLTokenizer", -1, 151643},
                 {"MistralTokenizer", -1, 32000},       {"MixtralTokenizer", -1, 32000},
                 {"DeepSeekV2Tokenizer", 2400, 100000}, {"DeepSeekV2Tokenizer", 467, 128813}};
    const char *type = exchange_import_text(names->import, "patch-tokenizer-type");
    int extra = 0;
    if (type == NULL || exchange_import_at(names->import, "model.vocab") != NULL)
        return;
    exchange_import_int(names->import, "extra-vocab-size", &extra);
    for (gsize i = 0; i < G_N_ELEMENTS(known) && extra >= 0; i++)
        if (strcmp(known[i].type, type) == 0 && (known[i].extra < 0 || known[i].extra == extra)) {
            exchange_import_native_int(names->import, "model.vocab", known[i].words + extra);
            return;
        }
}

/* The vocabularies of tokenizers whose size is theirs, padded as Megatron pads them, where no size is given. GPT models' default
 * is GPT-2's, as a file of merges shows. Sources: megatron/training/tokenizer/tokenizer.py, _vocab_size_with_padding;
 * pretrain_gpt.py, args_defaults; the vocabularies of openai/gpt-2 and google-research/bert */
void megatron_take_vocabulary(const MegatronNames *names)
{
    static const struct {
        const char *type;
        int tokens;
    } known[] = {
        {"GPT2BPETokenizer", 50257}, {"BertWordPieceLowerCase", 30522}, {"BertWordPieceCase", 28996}};
    if (!names->bridge)
        take_patch_vocabulary(names);
    const char *type = names->bridge ? NULL : exchange_import_text(names->import, "tokenizer-type");
    if (!names->bridge && type == NULL && exchange_import_text(names->import, "merge-file") != NULL)
        type = known[0].type;
    int each = 128, tokens = 0;
    for (gsize i = 0; type != NULL && i < G_N_ELEMENTS(known); i++)
        tokens = strcmp(type, known[i].type) == 0 ? known[i].tokens : tokens;
    if (tokens == 0 || megatron_text(names, "num-layers", NULL) == NULL ||
        exchange_import_at(names->import, "model.vocab") != NULL)
        return;
    exchange_import_int(names->import, "make-vocab-size-divisible-by", &each);
    const int multiple =
        CLAMP(each, 1, 65536) * CLAMP(exchange_import_doc_int(names->import, "parallel.tensor", 1), 1, 1024);
    if (names->import->loss != NULL) {
        g_autofree char *said =
            g_strdup_printf("the %d,%03d words of %s, padded by --make-vocab-size-divisible-by",
                            tokens / 1000, tokens % 1000, type);
        exchange_loss_default(names->import->loss, said);
    }
    exchange_import_native_int(names->import, "model.vocab", (tokens + multiple - 1) / multiple * multiple);
}

void megatron_take_training(const MegatronNames *names)
{
    ExchangeImport *import = names->import;
    const char *samples = megatron_text(names, "train-samples", NULL);
    static const char *const same[] = {"dataset.sequence_length", "dataset.seq_length"};
    for (gsize i = 0; i < G_N_ELEMENTS(same); i++) /* the sequence again */
        exchange_import_text(import, same[i]);
    megatron_word(names, "optimizer", "optimizer.optimizer", megatron_optimizers,
                  (int)G_N_ELEMENTS(megatron_optimizers), &spec_words_optimizer, "training.optimizer");
    take_precision(names);
    take_recompute(names);
    take_fine_offload(names);
    take_attention(names);
    take_layers(names);
    take_batch(names);
    exchange_import_steps(import, names->bridge ? "train.train_iters" : "train-iters");
    const int sequence = exchange_import_doc_int(import, "training.sequence_length", 0);
    char *end = NULL;
    const double count = samples != NULL ? g_ascii_strtod(samples, &end) : 0;
    if (count > 0 && sequence > 0 && *end == '\0')
        exchange_import_tokens(import, count * sequence);
    take_ramp(names);
    take_steps(names);
    take_framework(names);
}
