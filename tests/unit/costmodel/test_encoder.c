/* tests/unit/costmodel/test_encoder.c - models with an encoder: parameters of published checkpoints, FLOPs and
 * bytes of cross-attention, pipelines, search, and what is refused. */
#include <math.h>
#include <string.h>

#include "costmodel/activations.h"
#include "costmodel/encoder.h"
#include "costmodel/flops.h"
#include "costmodel/params.h"
#include "report/report.h"
#include "search/search.h"
#include "spec/complete.h"
#include "spec/import_hf.h"
#include "spec/load.h"
#include "spec/read.h"

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool load(const char *text, const char *const *sets, Spec *ret_spec, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok = spec_load_json(orr_json_root(doc), "here", sets, true, ret_spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

static Spec *loaded(const char *text, const char *const *sets)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    load(text, sets, spec, &error);
    g_assert_no_error(error);
    return spec;
}

/* E = 96 tokens of the encoder, T = 64 of the decoder; h 256, 8 heads of 32, 2 of keys, f 1024, V 1000. */
static const char small[] =
    "{\"model\":{\"name\":\"m\",\"encoder_layers\":3,\"layers\":2,\"hidden\":256,\"heads\":8,\"kv_heads\":2,"
    "\"ffn_hidden\":1024,\"vocab\":1000,\"dropout_frac\":0},"
    "\"cluster\":{\"accelerator\":\"a100-sxm4-80gb\",\"gpus_per_node\":8,\"nodes\":1},"
    "\"training\":{\"sequence_length\":64,\"encoder_sequence_length\":96,\"global_batch\":32,\"micro_batch\":"
    "2},"
    "\"parallel\":{\"data\":8},\"execution\":{\"framework\":\"megatron-core\"}}";

static void test_parameters(void)
{
    static const struct {
        const char *preset;
        double parameters; /* of the checkpoints as transformers counts them */
    } cases[] = {{"bart-base", 139420416}, {"bart-large", 406291456}, {"blenderbot-400m", 364802560},
                 {"t5-small", 60506624},   {"t5-base", 222903552},    {"t5-large", 737668096},
                 {"t5-3b", 2851598336},    {"t5-11b", 11307321344.0}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *model = g_strdup_printf("model=%s", cases[i].preset);
        g_autofree Spec *spec = loaded(small, SETS(model));
        g_assert_cmpfloat(cost_parameters(&spec->model, 0, false), ==, cases[i].parameters);
    }
}

static SpecModel imported(const char *text)
{
    GError *error = NULL;
    SpecModel model = {0};
    SpecReadContext context;
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) harmless = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "config.json", &error);
    g_assert_no_error(error);
    OrrJsonDoc *object = spec_import_hf_said(orr_json_root(doc), "m/config.json", changes, harmless, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(changes->len, ==, 0); /* all keys of these files are known */
    spec_read_context_init(&context, "config.json", &spec_table_scenario, false, NULL);
    spec_read_table(&context, &spec_table_model, orr_json_root(object), &model, &error);
    g_assert_no_error(error);
    spec_complete_model(&model, 0, 0, "config.json", NULL, &error);
    g_assert_no_error(error);
    spec_read_context_clear(&context);
    orr_json_free(object);
    orr_json_free(doc);
    return model;
}

/* The files of facebook/bart-large, facebook/blenderbot-400M-distill and google/flan-t5-base. */
static void test_imports(void)
{
    const SpecModel bart = imported(
        "{\"model_type\":\"bart\",\"activation_dropout\":0.1,\"activation_function\":\"gelu\","
        "\"add_bias_logits\":false,\"add_final_layer_norm\":false,\"attention_dropout\":0.1,\"d_model\":1024,"
        "\"decoder_attention_heads\":16,\"decoder_ffn_dim\":4096,\"decoder_layerdrop\":0.0,"
        "\"decoder_layers\":12,\"dropout\":0.1,\"encoder_attention_heads\":16,\"encoder_ffn_dim\":4096,"
        "\"encoder_layerdrop\":0.0,\"encoder_layers\":12,\"init_std\":0.02,\"is_encoder_decoder\":true,"
        "\"max_position_embeddings\":1024,\"normalize_before\":false,\"num_hidden_layers\":12,"
        "\"scale_embedding\":false,\"vocab_size\":50265}");
    g_assert_cmpfloat(cost_parameters(&bart, 0, false), ==, 406291456);
    const SpecModel blenderbot = imported(
        "{\"model_type\":\"blenderbot\",\"add_final_layer_norm\":true,\"d_model\":1280,"
        "\"decoder_attention_heads\":32,\"decoder_ffn_dim\":5120,\"decoder_layers\":12,\"dropout\":0.1,"
        "\"encoder_attention_heads\":32,\"encoder_ffn_dim\":5120,\"encoder_layers\":2,"
        "\"extra_layer_norm\":false,\"max_position_embeddings\":128,\"normalize_before\":true,"
        "\"normalize_embedding\":false,\"layernorm_variant\":\"prelayernorm\",\"num_hidden_layers\":2,"
        "\"scale_embedding\":true,\"vocab_size\":8008}");
    g_assert_cmpfloat(cost_parameters(&blenderbot, 0, false), ==, 364802560);
    const SpecModel flan = imported(
        "{\"model_type\":\"t5\",\"d_ff\":2048,\"d_kv\":64,\"d_model\":768,\"dropout_rate\":0.1,"
        "\"feed_forward_proj\":\"gated-gelu\",\"is_encoder_decoder\":true,\"layer_norm_epsilon\":1e-06,"
        "\"n_positions\":512,\"num_decoder_layers\":12,\"num_heads\":12,\"num_layers\":12,"
        "\"relative_attention_num_buckets\":32,\"tie_word_embeddings\":false,\"vocab_size\":32128}");
    g_assert_cmpfloat(cost_parameters(&flan, 0, false), ==, 247577856);
    g_assert_true(flan.gated_mlp && !flan.tied_embeddings);
}

/* Source: the closed form of one block, per sequence; attention cores have no weights, and their backward is twice. */
static void test_flops(void)
{
    g_autofree Spec *spec = loaded(small, NULL);
    const double t = 64, e = 96, h = 256, ad = 256, kvd = 64, f = 1024, v = 1000;
    const double projections = 2 * h * (ad + 2 * kvd) + 2 * ad * h, mlp = 4 * h * f;
    const double encoder = e * (projections + mlp) + 4 * e * e * ad;
    const double decoder = t * (projections + mlp) + 4 * t * t * ad / 2;
    const double cross = t * 4 * h * ad + e * 4 * h * kvd + 4 * t * e * ad;
    const double forward = 3 * encoder + 2 * (decoder + cross) + 2 * t * h * v;
    const CostFlops flops = cost_flops(spec, NULL, 0);
    g_assert_cmpfloat_with_epsilon(flops.model, 32 * 3 * forward, 1e-3);
    g_assert_cmpfloat(flops.hardware, ==, flops.model);
}

/* What cross-attention keeps beyond a layer without: its residual and what queries read (4 T h), queries and output
 * (4 T a d), keys and values (4 E kv d), and a log-sum-exp of 4 T a. */
static void test_bytes(void)
{
    g_autofree Spec *spec = loaded(small, NULL),
                    *plain = loaded(small,
                                    SETS("model.encoder_layers=0", "training.encoder_sequence_length=null"));
    CostShape shape, without;
    cost_shape_init(&shape, spec);
    cost_shape_init(&without, plain);
    const double t = 2 * 64, e = 2 * 96, h = 256, ad = 256, kvd = 64, a = 8;
    const double cross = cost_layer_activations(&shape, 4, 1).kept_bytes,
                 alone = cost_layer_activations(&without, 1, 1).kept_bytes;
    g_assert_cmpfloat(cross - alone, ==, 4 * t * h + 4 * t * ad + 4 * e * kvd + 4 * t * a);
    /* the last layer of the encoder keeps the input of its norm and the output for all layers of the decoder */
    const double inner = cost_layer_activations(&shape, 1, 1).kept_bytes,
                 last = cost_layer_activations(&shape, 2, 1).kept_bytes;
    g_assert_cmpfloat(last - inner, ==, 2 * 2 * e * h);
    g_assert_cmpfloat(inner / e, ==, alone / t); /* nothing that is kept here depends on the mask */
    g_assert_cmpfloat(cost_boundary_bytes(&shape), ==, 2 * (t + e) * h);
}

static Report run(const char *const *sets, OrrArena *arena)
{
    GError *error = NULL;
    Report report;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    const ReportOptions options = {.check = true, .unfold = true};
    load(small, sets, spec, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, error == NULL ? &error : NULL);
    g_assert_no_error(error);
    return report;
}

static void test_runs(void)
{
    OrrArena *arena = orr_arena_new();
    const int64_t one = run(NULL, arena).step_ps;
    g_assert_cmpint(run(SETS("training.encoder_sequence_length=4096"), arena).step_ps, >, one);
    g_assert_cmpfloat(run(SETS("training.recompute=full"), arena).stages[0].activations_bytes, <,
                      run(NULL, arena).stages[0].activations_bytes);
    run(SETS("parallel.tensor=2", "parallel.data=4", "parallel.sequence_parallel=true"), arena);
    run(SETS("parallel.pipeline=5", "cluster.gpus_per_node=10", "parallel.data=2"), arena);
    run(SETS("parallel.pipeline=4", "parallel.data=2", "parallel.schedule=zb-h1"), arena);
    run(SETS("execution.attention=unfused", "model.position=relative"), arena);
    run(SETS("parallel.zero=3", "execution.framework=deepspeed"), arena);
    orr_arena_free(arena);
}

static void test_search(void)
{
    SearchResult results[2];
    g_autofree Spec *spec =
        loaded(small, SETS("parallel.tensor=auto", "parallel.pipeline=auto", "parallel.data=auto",
                           "parallel.zero=auto", "training.micro_batch=auto", "training.recompute=auto",
                           "cluster.accelerator.memory_bytes=\"3 GB\""));
    for (int i = 0; i < 2; i++) {
        GError *error = NULL;
        const SearchOptions options = {.exhaustive = i == 1, .jobs = 2, .top = 5};
        search_run(spec, &options, &results[i], &error);
        g_assert_no_error(error);
    }
    g_assert_cmpuint(results[0].best->len, ==, 5);
    for (guint i = 0; i < 5; i++) {
        const SearchRun *pruned = &g_array_index(results[0].best, SearchRun, i),
                        *all = &g_array_index(results[1].best, SearchRun, i);
        g_assert_cmpint(search_id_compare(&pruned->id, &all->id), ==, 0);
    }
    for (int i = 0; i < 2; i++)
        search_result_clear(&results[i]);
}

static void test_refused(void)
{
    static const struct {
        const char *set, *says;
    } cases[] = {
        {"parallel.context=2", "parallel.context: an encoder's sequences are not split; give 1"},
        {"model.mtp_layers=1", "model.encoder_layers: 3 with moe, mla, mtp_layers"},
        {"training.document_tokens=10", "training.document_tokens: given with model.encoder_layers 3"},
        {"model.max_positions=80", "training.encoder_sequence_length: 96 is longer"},
        {"model.encoder_layers=0", "training.encoder_sequence_length: 96, but the model has no encoder"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_assert_false(load(small, SETS("parallel.data=4", cases[i].set), spec, &error));
        g_assert_nonnull(strstr(error->message, cases[i].says));
    }
}

/* ZeRO-2 keeps half of states and gradients on each of two cards, so its largest micro-batch is above that of DDP. */
static int largest(const char *zero, OrrArena *arena)
{
    int lo = 1, hi = 256;
    while (lo + 1 < hi) {
        const int batch = (lo + hi) / 2;
        g_autofree char *micro = g_strdup_printf("training.micro_batch=%d", batch),
                        *global = g_strdup_printf("training.global_batch=%d", 2 * batch);
        const Report report = run(SETS("model=blenderbot-400m", "cluster=titan-rtx-pair", "parallel.data=2",
                                       "training.sequence_length=128", "training.encoder_sequence_length=128",
                                       "training.precision=fp16",
                                       "execution.framework=transformers-deepspeed", micro, global, zero),
                                  arena);
        *(report.fits ? &lo : &hi) = batch;
    }
    return lo;
}

static void test_blenderbot(void)
{
    OrrArena *arena = orr_arena_new();
    const int ddp = largest("parallel.zero=0", arena), zero2 = largest("parallel.zero=2", arena);
    g_test_message("largest micro-batch of a card: DDP %d, ZeRO-2 %d", ddp, zero2);
    g_assert_cmpint(ddp, >=, 50);
    g_assert_cmpint(zero2, >, ddp + 5);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/encoder/parameters", test_parameters);
    g_test_add_func("/encoder/imports", test_imports);
    g_test_add_func("/encoder/flops", test_flops);
    g_test_add_func("/encoder/bytes", test_bytes);
    g_test_add_func("/encoder/runs", test_runs);
    g_test_add_func("/encoder/search", test_search);
    g_test_add_func("/encoder/refused", test_refused);
    g_test_add_func("/encoder/blenderbot", test_blenderbot);
    return g_test_run();
}
