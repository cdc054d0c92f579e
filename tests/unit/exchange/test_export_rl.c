/* unit/exchange/test_export_rl.c - loops as launches of verl and NeMo-RL: what they say, that they come back the same, that
 * an edited file means what it says, and what no launch can say. */
#include <string.h>

#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"

static const char scenario[] =
    "{\"model\":\"qwen2.5-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},\"parallel\":{\"zero\":3},"
    "\"training\":{\"recompute\":\"full\"},\"execution\":{\"framework\":\"transformers-fsdp\"},\"workload\":{"
    "\"preset\":"
    "\"grpo\",\"generation\":{\"prompts\":256,\"samples_per_prompt\":8,\"prompt_tokens\":200,\"answer_"
    "tokens\":{\"mean\":"
    "900,\"log_sd\":0.6,\"max\":4000}},\"mini_batches\":4,\"micro_batch_tokens\":16384,\"staleness_steps\":1,"
    "\"roles\":{"
    "\"rollout\":{\"nodes\":1,\"parallel\":{\"tensor\":2}}}}}";

static OrrJsonDoc *document(const char *const *sets)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "scenario", &error);
    for (const char *const *set = sets; set != NULL && *set != NULL; set++)
        g_assert_true(spec_resolve_set(doc, *set, &error));
    g_assert_no_error(error);
    return doc;
}

/* The file; NULL: refused, *ret_error says why. */
static GString *exported(const OrrJsonDoc *doc, ExchangeFormat format, GError **ret_error)
{
    GError *error = NULL;
    SpecSource source = {0};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    spec_load_json(orr_json_root(doc), "scenario", NULL, false, spec, &source, &error);
    g_assert_no_error(error);
    GString *out = g_string_new(NULL);
    const bool ok = exchange_export(spec, orr_json_root(doc), format, out, &loss, ret_error);
    spec_source_clear(&source);
    if (ok)
        return out;
    g_string_free(out, TRUE);
    return NULL;
}

static const char *shown(OrrJsonDoc *doc, const char *const path[])
{
    static char text[64];
    const OrrJson *node = orr_json_root(doc);
    for (; *path != NULL && node != NULL; path++)
        node = orr_json_member(node, *path);
    g_autofree char *json = node != NULL ? orr_json_dump(node) : g_strdup("-");
    g_strlcpy(text, json, sizeof text);
    return text;
}

static OrrJsonDoc *read_back(const char *text, ExchangeFormat format)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = exchange_import(text, strlen(text), "file", (int)format, NULL, &loss, &error);
    g_assert_no_error(error);
    return doc;
}

static const ExchangeFormat formats[] = {EXCHANGE_FORMAT_VERL, EXCHANGE_FORMAT_NEMO_RL};

static void same(const Spec *a, const Spec *b)
{
    const SpecWorkload *x = &a->workload, *y = &b->workload;
    g_assert_cmpint(x->generation.prompts, ==, y->generation.prompts);
    g_assert_cmpint(x->generation.samples_per_prompt, ==, y->generation.samples_per_prompt);
    g_assert_cmpfloat(x->generation.prompt_tokens, ==, y->generation.prompt_tokens);
    g_assert_cmpfloat(x->generation.answer_tokens.mean, ==, y->generation.answer_tokens.mean);
    g_assert_cmpfloat(x->generation.answer_tokens.log_sd, ==, y->generation.answer_tokens.log_sd);
    g_assert_cmpfloat(x->generation.answer_tokens.max, ==, y->generation.answer_tokens.max);
    g_assert_cmpfloat_with_epsilon(x->generation.kept_frac, y->generation.kept_frac, 1e-5);
    g_assert_cmpint(x->mini_batches, ==, y->mini_batches);
    g_assert_cmpint(x->epochs, ==, y->epochs);
    g_assert_cmpfloat(x->micro_batch_tokens, ==, y->micro_batch_tokens);
    g_assert_cmpfloat(x->staleness_steps, ==, y->staleness_steps);
    g_assert_cmpint(x->in_flight, ==, y->in_flight);
    g_assert_cmpstr(x->name, ==, y->name);
    const int row = spec_role_index(x, "rollout");
    g_assert_cmpint(x->role[row].nodes, ==, y->role[spec_role_index(y, "rollout")].nodes);
    g_assert_cmpint(a->cluster.nodes, ==, b->cluster.nodes);
    g_assert_cmpint(a->cluster.gpus_per_node, ==, b->cluster.gpus_per_node);
    g_assert_true(memcmp(&a->parallel, &b->parallel, sizeof a->parallel) == 0);
    g_assert_cmpint((int)a->training.recompute.mode, ==, (int)b->training.recompute.mode);
}

static void test_back(void)
{
    static const char *const ways[][4] = {
        {NULL},
        {"workload.in_flight=true", "workload.staleness_steps=3", NULL},
        {"parallel={\"zero\":1,\"tensor\":4,\"sequence_parallel\":true}", "workload.mini_batches=1",
         "execution.framework=megatron-core", NULL},
        {"workload.preset=dapo", "workload.generation.kept_frac=0.5", "workload.mini_batches=2", NULL},
        {"workload.roles.rollout={\"parallel\":{\"tensor\":4}}", "workload.staleness_steps=0",
         "training.micro_batch=2", NULL},
    };
    for (gsize f = 0; f < G_N_ELEMENTS(formats); f++)
        for (gsize i = 0; i < G_N_ELEMENTS(ways); i++) {
            GError *error = NULL;
            OrrJsonDoc *doc = document(ways[i]);
            GString *file = exported(doc, formats[f], &error);
            g_assert_no_error(error);
            OrrJsonDoc *back = read_back(file->str, formats[f]);
            g_autofree Spec *before = g_new0(Spec, 1), *after = g_new0(Spec, 1);
            spec_load_json(orr_json_root(doc), "before", NULL, false, before, NULL, &error);
            g_assert_no_error(error);
            spec_load_json(orr_json_root(back), "after", NULL, false, after, NULL, &error);
            g_assert_no_error(error);
            same(before, after);
            g_string_free(file, TRUE);
            orr_json_free(back);
            orr_json_free(doc);
        }
}

/* What the file says itself is read without the comment, and wins over it. */
static void test_says(void)
{
    static const char *const edits[][2] = {
        {"actor_rollout_ref.rollout.n=8", "actor_rollout_ref.rollout.n=5"},
        {"num_generations_per_prompt: 8", "num_generations_per_prompt: 5"}};
    static const char *const tensors[] = {"actor_rollout_ref.rollout.tensor_model_parallel_size=2",
                                          "tensor_parallel_size: 2"};
    for (gsize f = 0; f < G_N_ELEMENTS(formats); f++) {
        GError *error = NULL;
        OrrJsonDoc *doc = document(NULL);
        GString *file = exported(doc, formats[f], &error);
        g_assert_no_error(error);
        g_assert_nonnull(strstr(file->str, tensors[f]));
        g_assert_nonnull(strstr(file->str, edits[f][0]));
        g_string_replace(file, edits[f][0], edits[f][1], 1);
        OrrJsonDoc *back = read_back(file->str, formats[f]);
        g_assert_cmpstr(
            shown(back, (const char *const[]){"workload", "generation", "samples_per_prompt", NULL}), ==,
            "5");
        g_assert_cmpstr(shown(back, (const char *const[]){"workload", "roles", "rollout", "nodes", NULL}), ==,
                        "1");
        g_assert_cmpstr(
            shown(back, (const char *const[]){"workload", "generation", "answer_tokens", "mean", NULL}), ==,
            "900");
        g_string_free(file, TRUE);
        orr_json_free(back);
        orr_json_free(doc);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *set, *verl, *nemo;
    } cases[] = {
        {"workload.preset=distillation", "workload", "workload"},
        {"workload.roles.reference.nodes=1", "workload.roles", "workload.roles"},
        {"workload.generation={\"prompts\":2,\"samples_per_prompt\":64,\"answer_tokens\":{\"mean\":900}}",
         "workload.mini_batches", NULL},
        {"workload.epochs=2", NULL, "workload.epochs"},
        {"training.recompute=selective", "training.recompute", "training.recompute"},
        {"parallel={\"zero\":3,\"tensor\":2}", "parallel.tensor", NULL},
        {"workload.generation.engine=tensorrt-llm", "workload.generation.engine", NULL},
        {"workload.staleness_steps=0", "workload.staleness_steps", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (gsize f = 0; f < G_N_ELEMENTS(formats); f++) {
            const char *sets[] = {cases[i].set, NULL}, *key = f == 0 ? cases[i].verl : cases[i].nemo;
            GError *error = NULL;
            OrrJsonDoc *doc = document(sets);
            GString *file = exported(doc, formats[f], &error);
            g_assert_true((file == NULL) == (key != NULL));
            if (key != NULL)
                g_assert_nonnull(strstr(error->message, key));
            g_clear_error(&error);
            if (file != NULL)
                g_string_free(file, TRUE);
            orr_json_free(doc);
        }
}

/* A loop is no training of one model, and the other way round. */
static void test_other_formats(void)
{
    GError *error = NULL;
    OrrJsonDoc *doc = document(NULL);
    g_assert_null(exported(doc, EXCHANGE_FORMAT_MEGATRON, &error));
    g_assert_nonnull(strstr(error->message, "nemo-rl"));
    g_clear_error(&error);
    orr_json_remove(doc, "workload");
    g_assert_true(spec_resolve_set(doc, "training.sequence_length=4096", &error) &&
                  spec_resolve_set(doc, "training.global_batch=16", &error));
    g_assert_null(exported(doc, EXCHANGE_FORMAT_VERL, &error));
    g_assert_nonnull(strstr(error->message, "workload"));
    g_clear_error(&error);
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/export-rl/back", test_back);
    g_test_add_func("/export-rl/says", test_says);
    g_test_add_func("/export-rl/refused", test_refused);
    g_test_add_func("/export-rl/other-formats", test_other_formats);
    return g_test_run();
}
