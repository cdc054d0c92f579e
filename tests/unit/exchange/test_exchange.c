/* tests/unit/exchange/test_exchange.c - scenarios to frameworks' files and back: every example and every measured
 * row. */
#include <string.h>

#include "study/compare.h"
#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"
#include "exchange/settings.h"
#include "tests/unit/draws.h"
#include "tests/unit/exchange_fixture.h"

enum { FIRST = EXCHANGE_FORMAT_MEGATRON, LAST = EXCHANGE_FORMAT_NANOTRON };

/* Exports, imports and loads `scenario`; false when the format refuses it. */
static bool round_trip(const OrrJson *scenario, const char *where, ExchangeFormat format)
{
    GError *error = NULL;
    g_autofree Spec *before = g_new0(Spec, 1);
    g_autofree Spec *after = g_new0(Spec, 1);
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autofree char *what = g_strdup_printf("%s as %s", where, orr_word(&exchange_words_format, format));
    spec_load_json(scenario, where, NULL, false, before, NULL, &error);
    g_assert_no_error(error);
    if (!exchange_export(before, scenario, format, text, NULL, &error)) {
        g_assert_true(g_str_has_prefix(error->message, orr_word(&exchange_words_format, format)));
        g_error_free(error);
        return false;
    }
    OrrJsonDoc *doc = exchange_import(text->str, text->len, what, -1, NULL, &loss, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < loss.changes->len; i++)
        g_test_message("%s", (const char *)g_ptr_array_index(loss.changes, i));
    g_assert_cmpuint(loss.changes->len, ==, 0); /* an importer knows all that its exporter writes */
    spec_load_json(orr_json_root(doc), what, NULL, false, after, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(differences(before, after, what), ==, 0);
    orr_json_free(doc);
    return true;
}

static bool loads(const OrrJson *scenario)
{
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    const bool ok = spec_load_json(scenario, "row", NULL, false, spec, NULL, &error);
    g_clear_error(&error);
    return ok;
}

/* Every file of a folder of presets: scenarios, or lists of rows with a "scenario" each. */
static void trip_folder(const char *folder, int trips[EXCHANGE_FORMAT_COUNT])
{
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_read_file(file, &error);
        g_assert_no_error(error);
        const OrrJson *root = orr_json_root(doc), *row = root;
        const bool list = orr_json_type(root) == ORR_JSON_LIST;
        for (row = list ? orr_json_first(root) : root; row != NULL; row = list ? orr_json_next(row) : NULL) {
            const OrrJson *scenario = list ? orr_json_member(row, "scenario") : row;
            if (scenario == NULL || !loads(scenario))
                continue;
            const char *where = list ? orr_json_text(orr_json_member(row, "id")) : name;
            for (int format = FIRST; format <= LAST; format++)
                trips[format] += round_trip(scenario, where, (ExchangeFormat)format) ? 1 : 0;
        }
        orr_json_free(doc);
    }
}

static void test_round_trips(void)
{
    int trips[EXCHANGE_FORMAT_COUNT] = {0};
    trip_folder("examples", trips);
    if (!SANITIZED) /* test_exchange_random makes trips of its own */
        trip_folder("measurements", trips);
    for (int format = FIRST; format <= LAST; format++) {
        g_test_message("%s: %d round trips", orr_word(&exchange_words_format, format), trips[format]);
        g_assert_cmpint(trips[format], >, SANITIZED ? 2 : 5); /* examples alone */
    }
}

/* --- what the file says wins over the comment --- */

static OrrJsonDoc *example(const char *name)
{
    GError *error = NULL;
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", name, NULL);
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    g_assert_no_error(error);
    return doc;
}

static void exported(const OrrJson *scenario, ExchangeFormat format, GString *text)
{
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    spec_load_json(scenario, "scenario", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    exchange_export(spec, scenario, format, text, NULL, &error);
    g_assert_no_error(error);
}

static OrrJsonDoc *imported(const char *text, int format, const OrrJson *base, ExchangeLoss *loss)
{
    GError *error = NULL;
    OrrJsonDoc *doc = exchange_import(text, strlen(text), "file", format, base, loss, &error);
    g_assert_no_error(error);
    return doc;
}

static double number_at(const OrrJsonDoc *doc, const char *section, const char *key)
{
    const OrrJson *member = orr_json_member(orr_json_member(orr_json_root(doc), section), key);
    g_assert_nonnull(member);
    return orr_json_number(member);
}

static void test_edited(void)
{
    const struct {
        const char *from, *to;
        ExchangeFormat format;
    } edits[] = {
        {"--global-batch-size 1536", "--global-batch-size 768", EXCHANGE_FORMAT_MEGATRON},
        {"train.global_batch_size=1536", "train.global_batch_size=768", EXCHANGE_FORMAT_MEGATRON_BRIDGE},
    };
    OrrJsonDoc *scenario = example("gpt3-175b-interleaved.json");
    for (gsize i = 0; i < G_N_ELEMENTS(edits); i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        exported(orr_json_root(scenario), edits[i].format, text);
        g_auto(GStrv) parts = g_strsplit(text->str, edits[i].from, 2);
        g_assert_cmpuint(g_strv_length(parts), ==, 2);
        g_autofree char *edited = g_strjoin(edits[i].to, parts[0], parts[1], NULL);
        OrrJsonDoc *doc = imported(edited, -1, NULL, &loss);
        g_assert_cmpfloat(number_at(doc, "training", "global_batch"), ==, 768);
        orr_json_free(doc);
    }
    orr_json_free(scenario);
}

/* Megatron has a flag for one other order and none for the rest. */
static void test_order(void)
{
    static const char *const known[] = {"parallel.order=tp-cp-ep-pp-dp", NULL},
                             *const unknown[] = {"parallel.order=dp-tp-cp-ep-pp", NULL};
    OrrJsonDoc *scenario = example("gpt3-175b.json");
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    GError *error = NULL;
    spec_load_json(orr_json_root(scenario), "scenario", known, false, spec, NULL, &error);
    g_assert_no_error(error);
    exchange_export(spec, orr_json_root(scenario), EXCHANGE_FORMAT_MEGATRON, text, NULL, &error);
    g_assert_no_error(error);
    OrrJsonDoc *doc = imported(strstr(text->str, "\nMEGATRON_ARGS"), -1, orr_json_root(scenario), &loss);
    const OrrJson *parallel = orr_json_member(orr_json_root(doc), "parallel");
    g_assert_cmpstr(orr_json_text(orr_json_member(parallel, "order")), ==, "tp-cp-ep-pp-dp");
    orr_json_free(doc);
    spec_load_json(orr_json_root(scenario), "scenario", unknown, false, spec, NULL, &error);
    g_assert_no_error(error);
    g_assert_false(
        exchange_export(spec, orr_json_root(scenario), EXCHANGE_FORMAT_MEGATRON, text, NULL, &error));
    g_assert_nonnull(strstr(error->message, "parallel.order"));
    g_error_free(error);
    orr_json_free(scenario);
}

/* Without its comment a file still says all that it has names for. */
static void test_base(void)
{
    OrrJsonDoc *scenario = example("gpt3-175b-interleaved.json"), *other = example("llama3-70b-h100.json");
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    exported(orr_json_root(scenario), EXCHANGE_FORMAT_MEGATRON, text);
    const char *args = strstr(text->str, "\nMEGATRON_ARGS");
    OrrJsonDoc *doc = imported(args, -1, orr_json_root(other), &loss);
    g_assert_cmpfloat(number_at(doc, "model", "layers"), ==, 96);
    g_assert_cmpfloat(number_at(doc, "parallel", "virtual_stages"), ==, 3);
    g_assert_cmpfloat(number_at(doc, "training", "sequence_length"), ==, 2048);
    g_assert_cmpfloat(number_at(doc, "training", "tokens"), ==, 300e9);
    g_assert_cmpstr(orr_json_text(orr_json_member(orr_json_member(orr_json_root(doc), "cluster"), "preset")),
                    ==, "dgx-h100");
    orr_json_free(doc);
    orr_json_free(other);
    orr_json_free(scenario);
}

/* Megatron slices experts by the tensor degree unless told otherwise; a scenario leaves spread experts whole. */
static void test_expert_slices(void)
{
    static const char flags[] =
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --num-experts 64 "
        "--tensor-model-parallel-size 4 --expert-model-parallel-size 8 ";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *silent = imported(flags, EXCHANGE_FORMAT_MEGATRON, NULL, &loss);
    g_assert_cmpfloat(number_at(silent, "parallel", "expert_tensor"), ==, 4);
    g_autofree char *told = g_strconcat(flags, "--expert-tensor-parallel-size 2", NULL);
    OrrJsonDoc *sliced = imported(told, EXCHANGE_FORMAT_MEGATRON, NULL, &loss);
    g_assert_cmpfloat(number_at(sliced, "parallel", "expert_tensor"), ==, 2);
    orr_json_free(silent);
    orr_json_free(sliced);
}

/* A user's own script: variables, unknown flags, both spellings of values. */
static void test_script(void)
{
    static const char script[] =
        "#!/bin/bash\nTP=4\n# --num-layers 7 is a comment\n"
        "torchrun --nproc_per_node 8 pretrain_gpt.py \\\n"
        "  --num-layers 32 --hidden-size=4096 --num-attention-heads 32 \\\n"
        "  --tensor-model-parallel-size ${TP} --context-parallel-size ${CP} --pipeline-model-parallel-size 2 "
        "\\\n"
        "  --num-layers-per-virtual-pipeline-stage 4 --swiglu --bf16 \\\n"
        "  --recompute-granularity selective --recompute-modules core_attn mlp \\\n"
        "  --pipeline-model-parallel-layout 'Et\\*15|(t|)*0t*17L' --wandb-project x\n";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = imported(script, EXCHANGE_FORMAT_MEGATRON, NULL, &loss);
    g_assert_cmpfloat(number_at(doc, "model", "layers"), ==, 32);
    g_assert_cmpfloat(number_at(doc, "model", "hidden"), ==, 4096);
    g_assert_cmpfloat(number_at(doc, "parallel", "virtual_stages"), ==, 1);
    g_assert_cmpfloat(number_at(doc, "parallel", "tensor"), ==, 4);
    g_assert_null(orr_json_member(orr_json_member(orr_json_root(doc), "parallel"), "context"));
    g_assert_cmpfloat(number_at(doc, "cluster", "gpus_per_node"), ==, 8);
    g_assert_cmpfloat(number_at(doc, "model", "ffn_hidden"), ==, 10880); /* Megatron-LM's for SwiGLU */
    const OrrJson *parallel = orr_json_member(orr_json_root(doc), "parallel");
    g_autofree char *layers = orr_json_dump(orr_json_member(parallel, "stage_layers"));
    g_assert_cmpstr(layers, ==, "[15,17]");
    g_autoptr(GString) said = g_string_new(NULL);
    for (guint i = 0; i < loss.changes->len; i++)
        g_string_append_printf(said, "%s\n", (const char *)g_ptr_array_index(loss.changes, i));
    g_assert_null(strstr(said->str, "wandb-project"));
    exchange_loss_write(&loss, said);
    g_assert_nonnull(strstr(said->str, "wandb-project"));
    g_assert_nonnull(strstr(said->str, "${CP} is not set in the file"));
    orr_json_free(doc);
}

/* Megatron-LM sums bf16 gradients in fp32 unless told otherwise; Megatron-Bridge says which. */
static void test_gradients(void)
{
    static const struct {
        const char *text, *want;
        ExchangeFormat format;
    } CASES[] = {
        {"--num-layers 32 --micro-batch-size 1 --bf16", "fp32", EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 32 --micro-batch-size 1 --bf16 --grad-reduce-in-bf16", "bf16",
         EXCHANGE_FORMAT_MEGATRON},
        {"--num-layers 32 --micro-batch-size 1 --fp16", NULL, EXCHANGE_FORMAT_MEGATRON},
        {"mixed_precision=bf16_mixed ddp.grad_reduce_in_fp32=true", "fp32", EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"mixed_precision=bf16_mixed ddp.grad_reduce_in_fp32=false", "bf16", EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"mixed_precision=bf16_mixed", NULL, EXCHANGE_FORMAT_MEGATRON_BRIDGE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        OrrJsonDoc *doc = imported(CASES[i].text, CASES[i].format, NULL, &loss);
        const OrrJson *training = orr_json_member(orr_json_root(doc), "training");
        const OrrJson *dtype = training != NULL ? orr_json_member(training, "gradient_dtype") : NULL;
        g_assert_cmpstr(dtype != NULL ? orr_json_text(dtype) : NULL, ==, CASES[i].want);
        orr_json_free(doc);
    }
}

/* Overrides of a recipe take away what they switch off; what they leave out stays the recipe's. */
static void test_recipe(void)
{
    static const struct {
        const char *text;
        unsigned overlap;
        int deferred;
    } CASES[] = {
        {"", SPEC_OVERLAP_TENSOR | SPEC_OVERLAP_PIPELINE, 22},
        {" comm_overlap.tp_comm_overlap=true", SPEC_OVERLAP_TENSOR | SPEC_OVERLAP_PIPELINE, 22},
        {" comm_overlap.tp_comm_overlap=false", SPEC_OVERLAP_PIPELINE, 22},
        {" model.overlap_p2p_comm=false", SPEC_OVERLAP_TENSOR, 22},
        {" comm_overlap.tp_comm_overlap=false model.overlap_p2p_comm=false", 0, 22},
        {" comm_overlap.defer_embedding_wgrad_compute=false", SPEC_OVERLAP_TENSOR | SPEC_OVERLAP_PIPELINE, 0},
        {" comm_overlap.defer_embedding_wgrad_compute=true comm_overlap.wgrad_deferral_limit=50",
         SPEC_OVERLAP_TENSOR | SPEC_OVERLAP_PIPELINE, 50},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        static const char *const sets[] = {"model=llama2-7b", "cluster={\"preset\":\"dgx-h100\",\"nodes\":1}",
                                           "training.sequence_length=4096", "training.global_batch=64", NULL};
        g_autofree char *text = g_strconcat("mixed_precision=bf16_mixed ddp.overlap_grad_reduce=true "
                                            "ddp.overlap_param_gather=true",
                                            CASES[i].text, NULL);
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        g_autofree Spec *spec = g_new0(Spec, 1);
        GError *error = NULL;
        OrrJsonDoc *doc = imported(text, EXCHANGE_FORMAT_MEGATRON_BRIDGE, NULL, &loss);
        spec_load_json(orr_json_root(doc), "overrides", sets, false, spec, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(spec->execution.framework.defaults.recipe_overlap, ==, CASES[i].overlap);
        g_assert_cmpint(spec->execution.framework.pipeline.deferred_head_gradients, ==, CASES[i].deferred);
        orr_json_free(doc);
    }
}

static void test_torchtitan(void)
{
    static const char toml[] =
        "# a job\n[model]\nname = \"llama3\"\nflavor = '405B'  # big\n"
        "[training]\nlocal_batch_size = 32\nseq_len = 8192\n"
        "[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = 8\n"
        "tensor_parallel_degree = 8\npipeline_parallel_degree = 8\n"
        "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
        "pipeline_parallel_layers_per_stage = 8\n"
        "pipeline_parallel_microbatch_size = 1\nfsdp_reshard_after_forward = \"never\"\n";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = imported(toml, -1, NULL, &loss);
    g_assert_cmpstr(orr_json_text(orr_json_member(orr_json_root(doc), "model")), ==, "llama3-405b");
    g_assert_cmpfloat(number_at(doc, "training", "global_batch"), ==, 256); /* 32 x 8 */
    g_assert_cmpfloat(number_at(doc, "training", "micro_batch"), ==, 1);
    g_assert_cmpfloat(number_at(doc, "parallel", "virtual_stages"), ==, 2); /* (126 + 1 + 1) / 8 stages */
    g_assert_cmpfloat(number_at(doc, "parallel", "zero"), ==, 2);
    g_assert_cmpuint(loss.changes->len, ==, 0);
    orr_json_free(doc);
}

/* A model's description under a base that has the rest. */
static void test_hf(void)
{
    static const char config[] =
        "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,"
        "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":128256}";
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *base = example("llama3-70b-h100.json");
    OrrJsonDoc *doc = imported(config, -1, orr_json_root(base), &loss);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const char *const sets[] = {"parallel.virtual_stages=2", NULL};
    GError *error = NULL;
    spec_load_json(orr_json_root(doc), "hf", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(spec->model.layers, ==, 32);
    g_assert_cmpint(spec->parallel.pipeline, ==, 4);
    orr_json_free(doc);
    orr_json_free(base);
}

static void test_refused(void)
{
    const struct {
        const char *set, *key;
        ExchangeFormat format;
    } rows[] = {
        {"parallel.schedule=zb-h1", "parallel.schedule", EXCHANGE_FORMAT_MEGATRON},
        {"training.optimizer=lion", "training.optimizer", EXCHANGE_FORMAT_MEGATRON_BRIDGE},
        {"parallel.zero=1", "parallel.zero", EXCHANGE_FORMAT_TORCHTITAN},
        {"parallel.zero=2", "parallel.zero", EXCHANGE_FORMAT_NANOTRON},
    };
    OrrJsonDoc *base = example("llama3-70b-h100.json");
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const char *const sets[] = {"parallel.virtual_stages=1", "parallel.schedule=1f1b", rows[i].set, NULL};
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GString) text = g_string_new(NULL);
        GError *error = NULL;
        spec_load_json(orr_json_root(base), "llama", sets, false, spec, NULL, &error);
        g_assert_no_error(error);
        g_assert_false(exchange_export(spec, orr_json_root(base), rows[i].format, text, NULL, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, rows[i].key));
        g_error_free(error);
    }
    orr_json_free(base);
}

static void test_unknown(void)
{
    static const char *const texts[] = {"", "hello world", "{\"a\": 1}", "[\"x\"]", "{", "--verbose 3"};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        GError *error = NULL;
        g_assert_null(exchange_import(texts[i], strlen(texts[i]), "file", -1, NULL, &loss, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_null(strchr(error->message, '\n'));
        g_error_free(error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/round-trips", test_round_trips);
    g_test_add_func("/exchange/edited", test_edited);
    g_test_add_func("/exchange/base", test_base);
    g_test_add_func("/exchange/order", test_order);
    g_test_add_func("/exchange/expert-slices", test_expert_slices);
    g_test_add_func("/exchange/script", test_script);
    g_test_add_func("/exchange/gradients", test_gradients);
    g_test_add_func("/exchange/recipe", test_recipe);
    g_test_add_func("/exchange/torchtitan", test_torchtitan);
    g_test_add_func("/exchange/hf", test_hf);
    g_test_add_func("/exchange/refused", test_refused);
    g_test_add_func("/exchange/unknown", test_unknown);
    return g_test_run();
}
