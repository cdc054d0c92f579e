/* Splits of a machine: the best of a search is the best of all, asked one by one; what is not asked could not win. */
#include <string.h>

#include "workload/purchase.h"

#define SCENARIO                                                                                             \
    "{\"model\":{\"layers\":8,\"hidden\":1024,\"heads\":16,\"ffn_hidden\":4096,\"vocab\":32000,"             \
    "\"position\":"                                                                                          \
    "\"rope\",\"max_positions\":8192%s},"                                                                    \
    "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":%d},\"training\":{\"micro_batch\":1},"                   \
    "\"parallel\":{\"tensor\":%d,\"pipeline\":%d,\"context\":%d},\"workload\":{\"preset\":\"grpo\","         \
    "\"staleness_steps\":%d,"                                                                                \
    "\"micro_batch_tokens\":8192,\"generation\":{\"prompts\":960,\"samples_per_prompt\":8,"                  \
    "\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":512,\"log_sd\":0.7,\"max\":4096}},"                   \
    "\"roles\":{\"rollout\":{\"parallel\":{\"tensor\":%d}%s}}}}"

typedef struct Loaded {
    Spec *spec;
    SpecSource source;
} Loaded;

#define EXPERTS ",\"moe\":{\"experts\":16,\"top_k\":2,\"expert_ffn_hidden\":1024}"

static const SpecRanks OWN = {2, 1, 1};

static Loaded load_model(const char *experts, int nodes, SpecRanks train, int staleness, int tensor,
                         const char *own)
{
    Loaded loaded = {.spec = g_new0(Spec, 1)};
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(SCENARIO, experts, nodes, train.tensor, train.pipeline,
                                            train.context, staleness, tensor, own);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "split", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "split", NULL, false, loaded.spec, &loaded.source, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return loaded;
}

static Loaded load(int nodes, int staleness, int tensor, const char *own)
{
    return load_model("", nodes, OWN, staleness, tensor, own);
}

static void unload(Loaded *loaded)
{
    spec_source_clear(&loaded->source);
    g_free(loaded->spec);
}

static char *layout_text(SpecRanks ranks)
{
    return g_strdup_printf("{\"parallel\":{\"tensor\":%d,\"pipeline\":%d,\"context\":%d}}", ranks.tensor,
                           ranks.pipeline, ranks.context);
}

/* INT64_MAX: it cannot run. */
static int64_t asked_ps(const char *experts, int nodes, const SplitRow *row, const Spec *spec, int staleness)
{
    const int actor = spec_role_index(&spec->workload, "actor"),
              reference = spec_role_index(&spec->workload, "reference");
    g_autofree char *one = layout_text(row->train[actor]), *other = layout_text(row->train[reference]),
                    *nodes_own = row->apart > 0 ? g_strdup_printf(",\"nodes\":%d", row->apart) : g_strdup(""),
                    *own = g_strdup_printf("%s},\"actor\":%s,\"reference\":%.*s", nodes_own, one,
                                           (int)strlen(other) - 1, other);
    g_autofree char *text =
        g_strdup_printf(SCENARIO, experts, nodes - row->apart, 1, 1, 1, staleness, row->tensor, own);
    Spec *asked = g_new0(Spec, 1);
    SpecSource source = {0};
    GError *error = NULL;
    OrrArena *arena = orr_arena_new();
    Workload *workload = ORR_ARENA_NEW(arena, Workload, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "split", &error);
    g_assert_no_error(error);
    const WorkloadAsk ask = {.check = true};
    const bool ok = spec_load_json(orr_json_root(doc), "split", NULL, false, asked, &source, &error) &&
                    workload_ask(asked, &source, &ask, arena, workload, &error);
    const int64_t ps = ok && workload->fits ? workload->step_ps : G_MAXINT64;
    g_clear_error(&error);
    orr_json_free(doc);
    orr_arena_free(arena);
    spec_source_clear(&source);
    g_free(asked);
    return ps;
}

/* Layouts of `most` ranks at most. */
static int all_layouts(int most, SpecRanks *ranks)
{
    int count = 0;
    for (int t = 1; t <= 8; t *= 2)
        for (int p = 1; p <= 8; p *= 2)
            for (int c = 1; c <= 8; c *= 2)
                if (t * p * c <= most)
                    ranks[count++] = (SpecRanks){t, p, c};
    return count;
}

/* Every layout of the one role with every layout of the other and every degree of those that write, on every part of the
 * nodes: the search finds the best, and its rows are what a run of them says. */
static void check_all(const char *experts, int nodes, int staleness, const char *own)
{
    Loaded loaded = load_model(experts, nodes, OWN, staleness, 1, own);
    const int actor = spec_role_index(&loaded.spec->workload, "actor"),
              reference = spec_role_index(&loaded.spec->workload, "reference");
    SpecRanks ranks[64];
    const int layouts = all_layouts(8 * nodes, ranks), others = own[0] != '\0' ? 1 : layouts,
              stride = others > 1 ? 7 : 1; /* pairs of layouts are many: each seventh */
    Splits splits;
    GError *error = NULL;
    int64_t best_ps = G_MAXINT64;
    splits_search(loaded.spec, &loaded.source, 3, &splits, &error);
    g_assert_no_error(error);
    for (int apart = 0; apart < nodes; apart++)
        for (int tensor = 1; tensor <= 8; tensor *= 2)
            for (int i = 0; i < layouts * others; i += stride) {
                SplitRow row = {.apart = apart, .tensor = tensor};
                row.train[actor] = ranks[i / others];
                row.train[reference] = own[0] != '\0' ? (SpecRanks){1, 1, 1} : ranks[i % others];
                best_ps = MIN(best_ps, asked_ps(experts, nodes, &row, loaded.spec, staleness));
            }
    g_assert_cmpint(splits.row[0].step_ps, <=, best_ps);
    if (stride == 1)
        g_assert_cmpint(splits.row[0].step_ps, ==, best_ps);
    g_assert_cmpint(splits.asked + splits.pruned + splits.refused, ==, splits.space);
    g_assert_cmpint(splits.space, ==, 4 * nodes);
    g_assert_cmpint(splits.layouts, ==, layouts);
    for (int i = 0; i < splits.row_count; i++) {
        g_assert_cmpint(splits.row[i].bound_ps, <=, splits.row[i].step_ps);
        g_assert_cmpint(splits.row[i].step_ps, ==,
                        asked_ps(experts, nodes, &splits.row[i], loaded.spec, staleness));
    }
    unload(&loaded);
}

static void test_best(void)
{
    static const char fixed[] = "},\"reference\":{\"parallel\":{\"tensor\":1}";
    check_all("", 1, 0, "");
    check_all("", 2, 0, fixed);
    check_all("", 2, 1, fixed);
}

/* What a layout leaves open, as the slices of experts, follows from the degree that is tried. */
static void test_experts(void)
{
    check_all(EXPERTS, 1, 0, "");
}

/* A degree over nodes is tried where it is the scenario's own. */
static void test_over_nodes(void)
{
    Loaded loaded = load(
        4, 0, 16, "},\"actor\":{\"parallel\":{\"tensor\":2}},\"reference\":{\"parallel\":{\"tensor\":2}");
    Splits splits;
    GError *error = NULL;
    splits_search(loaded.spec, &loaded.source, SPLIT_MOST_ROWS, &splits, &error);
    g_assert_no_error(error);
    int over = 0;
    for (int i = 0; i < splits.row_count; i++)
        over += splits.row[i].tensor == 16;
    g_assert_cmpint(splits.space, ==, 4 * 5);
    g_assert_cmpint(over, >, 0);
    unload(&loaded);
}

/* A larger machine's best split is never slower, and most of its splits are left out. */
static void test_larger(void)
{
    Splits small, large;
    GError *error = NULL;
    Loaded four = load(4, 1, 1, ""), many = load(40, 1, 1, "");
    splits_search(four.spec, &four.source, 1, &small, &error);
    g_assert_no_error(error);
    splits_search(many.spec, &many.source, 1, &large, &error);
    g_assert_no_error(error);
    g_assert_cmpint(large.row[0].step_ps, <, small.row[0].step_ps);
    g_assert_cmpint(large.pruned, >, large.space / 4);
    unload(&four);
    unload(&many);
}

/* A batch that the whole machine's replicas cannot share is dealt to fewer of them: every row found can run. A run of all of
 * them, and a machine none of whose splits can, are refused with what works. */
static void test_small_batch(void)
{
    Loaded loaded = {.spec = g_new0(Spec, 1)}, again = {.spec = g_new0(Spec, 1)};
    GError *error = NULL;
    Splits splits;
    g_autofree char *text = g_strdup_printf(SCENARIO, "", 16, 2, 1, 1, 1, 1, "");
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "split", &error);
    const char *const sets[] = {"workload.generation.prompts=4", NULL};
    const char *const odd[] = {"workload.generation.prompts=1", "workload.generation.samples_per_prompt=3",
                               "workload.roles.actor={\"parallel\":{\"tensor\":2}}",
                               "workload.roles.reference={\"parallel\":{\"tensor\":2}}", NULL};
    g_assert_true(
        spec_load_json(orr_json_root(doc), "split", sets, true, loaded.spec, &loaded.source, &error));
    g_assert_false(
        spec_load_json(orr_json_root(doc), "split", sets, false, again.spec, &again.source, &error));
    g_assert_nonnull(strstr(error->message, "32 (prompts x samples_per_prompt"));
    g_clear_error(&error);
    splits_search(loaded.spec, &loaded.source, SPLIT_MOST_ROWS, &splits, &error);
    g_assert_no_error(error);
    g_assert_cmpint(splits.row_count, >, 0);
    g_assert_cmpint(splits.refused, >, 0);
    for (int i = 0; i < splits.row_count; i++) {
        const SpecRanks *actor = &splits.row[i].train[spec_role_index(&loaded.spec->workload, "actor")];
        g_assert_cmpint(32 % (splits.row[i].train_gpus / (actor->tensor * actor->pipeline * actor->context)),
                        ==, 0);
    }
    unload(&loaded);
    loaded.spec = g_new0(Spec, 1);
    g_assert_true(
        spec_load_json(orr_json_root(doc), "split", odd, true, loaded.spec, &loaded.source, &error));
    g_assert_false(splits_search(loaded.spec, &loaded.source, 1, &splits, &error));
    g_assert_nonnull(strstr(error->message, "3 sequences of an optimizer step"));
    g_assert_nonnull(
        strstr(error->message, "none of 64 splits")); /* roles with layouts of their own keep them */
    g_clear_error(&error);
    orr_json_free(doc);
    unload(&loaded);
    g_free(again.spec);
}

/* The fewest GPUs that keep a deadline, and days of the step that a search of that size finds; without steps a sentence. */
static void test_purchase(void)
{
    Loaded loaded = load(2, 0, 1, "");
    Purchase purchase;
    Splits splits;
    GError *error = NULL;
    const int gpus[] = {8, 16, 32};
    g_assert_false(purchase_run(loaded.spec, &loaded.source, gpus, 3, 0, 0, &purchase, &error));
    g_assert_nonnull(strstr(error->message, "workload.steps: missing"));
    g_clear_error(&error);
    loaded.spec->workload.steps = 1000;
    purchase_run(loaded.spec, &loaded.source, gpus, 3, 0, 0, &purchase, &error);
    g_assert_no_error(error);
    g_assert_cmpint(purchase.row_count, ==, 3);
    g_assert_cmpint(purchase.row[purchase.answer].gpus, ==, 8);
    const double between_s = (purchase.row[1].days + purchase.row[0].days) / 2 * 86400;
    purchase_run(loaded.spec, &loaded.source, gpus, 3, between_s, 0, &purchase, &error);
    g_assert_no_error(error);
    g_assert_cmpint(purchase.row[purchase.answer].gpus, ==, 16);
    splits_search(loaded.spec, &loaded.source, 1, &splits, &error);
    g_assert_no_error(error);
    g_assert_cmpint(purchase.row[1].split.step_ps, ==, splits.row[0].step_ps);
    purchase_run(loaded.spec, &loaded.source, gpus, 3, 1, 0, &purchase, &error);
    g_assert_no_error(error);
    g_assert_cmpint(purchase.answer, ==, -1);
    g_assert_false(purchase_run(loaded.spec, &loaded.source, (const int[]){12}, 1, 0, 0, &purchase, &error));
    g_clear_error(&error);
    unload(&loaded);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/split/best", test_best);
    g_test_add_func("/split/experts", test_experts);
    g_test_add_func("/split/over-nodes", test_over_nodes);
    g_test_add_func("/split/larger", test_larger);
    g_test_add_func("/split/small-batch", test_small_batch);
    g_test_add_func("/split/purchase", test_purchase);
    return g_test_run();
}
