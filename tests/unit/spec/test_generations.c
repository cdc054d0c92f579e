/* Generations of chips: a new one is a row of traits, each trait moves what it says and nothing else, and a chip that names
 * none is told of. */
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/file.h"
#include "report/report.h"
#include "spec/fields_internal.h"
#include "spec/load.h"
#include "spec/notes.h"

#define DENSE                                                                                                \
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-b200\",\"nodes\":2,\"accelerator\":%s},"         \
    "\"training\":{\"sequence_length\":4096,\"global_batch\":64,\"precision\":\"mxfp8\"},"                   \
    "\"parallel\":{\"tensor\":2,\"sequence_parallel\":true},"                                                \
    "\"execution\":{\"framework\":\"megatron-core\"}}"

#define EXPERTS                                                                                              \
    "{\"model\":\"%s\",\"cluster\":{\"preset\":\"dgx-b200\",\"nodes\":1},"                                   \
    "\"training\":{\"sequence_length\":4096,\"global_batch\":64,\"precision\":\"mxfp8\"},"                   \
    "\"parallel\":{\"expert\":8},\"execution\":{\"framework\":{\"preset\":\"%s\","                           \
    "\"experts\":{\"expert_products\":\"fused\"}},\"attention\":\"cudnn\"}}"

static bool load(const char *text, const char *const *sets, Spec *ret_spec, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", error);
    g_assert_nonnull(doc);
    const bool ok = spec_load_json(orr_json_root(doc), "test", sets, false, ret_spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

static int64_t step_ps(const char *text, const char *const *sets)
{
    const ReportOptions options = {0};
    GError *error = NULL;
    Spec spec;
    Report report;
    load(text, sets, &spec, &error);
    g_assert_no_error(error);
    OrrArena *arena = orr_arena_new();
    report_run(&spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const int64_t ps = report.step_ps;
    orr_arena_free(arena);
    return ps;
}

static int64_t dense_ps(const char *accelerator, const char *set, const char *trait)
{
    g_autofree char *text = g_strdup_printf(DENSE, accelerator);
    const char *sets[] = {set != NULL ? set : trait, set != NULL ? trait : NULL, NULL};
    return step_ps(text, sets);
}

/* A trait's value in a row, as JSON; g_free. */
static char *value_of(const SpecField *field, const SpecGeneration *row)
{
    const char *place = (const char *)row + field->offset;
    switch (field->type) {
    case SPEC_TYPE_BOOL:
        return g_strdup(*(const bool *)place ? "true" : "false");
    case SPEC_TYPE_INT:
        return g_strdup_printf("%d", *(const int *)(const void *)place);
    case SPEC_TYPE_DOUBLE:
        return g_strdup_printf("%.17g", *(const double *)(const void *)place);
    case SPEC_TYPE_WORD:
        return g_strdup_printf("\"%s\"", spec_word(field->words, *(const int *)(const void *)place));
    default:
        return NULL; /* like, name */
    }
}

/* {"like": `like`, and each trait as `row` has it}; g_free. */
static char *spelled_out(const char *like, const SpecGeneration *row)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "{\"like\":\"%s\",\"name\":\"next\"", like);
    for (int i = 0; i < spec_table_generation.count; i++) {
        const SpecField *field = &spec_table_generation.fields[i];
        g_autofree char *value = value_of(field, row);
        if (value != NULL)
            g_string_append_printf(text, ",\"%s\":%s", field->key, value);
    }
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}

/* The file of B200 with another generation; its path, g_free. */
static char *write_accelerator(const char *folder, const char *generation)
{
    g_autofree char *root = orr_scenarios_dir(NULL),
                    *shipped = g_build_filename(root, "accelerators", "b200-sxm-180gb.json", NULL);
    char *path = g_build_filename(folder, "next.json", NULL);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_read_file(shipped, &error);
    g_assert_no_error(error);
    g_assert_true(orr_json_set(doc, "generation", generation, &error));
    g_autofree char *text = orr_json_dump(orr_json_root(doc));
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    orr_json_free(doc);
    return path;
}

/* What docs/ARCHITECTURE.md promises: a new generation is an accelerator's file and a row, which that file may hold. */
static void test_new_generation(void)
{
    g_autofree char *folder = g_dir_make_tmp("orrery-generation-XXXXXX", NULL);
    static const char *const likes[] = {"blackwell", "pascal", "other"};
    const int64_t want = dense_ps("\"b200-sxm-180gb\"", NULL, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(likes); i++) {
        g_autofree char *row = spelled_out(likes[i], spec_generation("blackwell"));
        g_autofree char *path = write_accelerator(folder, i == 0 ? "{\"like\":\"blackwell\"}" : row);
        g_autofree char *named = g_strdup_printf("\"%s\"", path);
        g_assert_cmpint(dense_ps(named, NULL, NULL), ==, want);
        g_unlink(path);
    }
    g_rmdir(folder);
}

/* Every row, spelled out over every other, is that row. */
static void test_rows_spelled_out(void)
{
    for (int i = 0; i < spec_words_generation.count; i++) {
        const SpecGeneration *row = spec_generation(spec_word(&spec_words_generation, i));
        g_autofree char *value = spelled_out("hopper", row),
                        *set = g_strdup_printf("cluster.accelerator.generation=%s", value),
                        *want = spec_generation_traits(row);
        const char *sets[] = {set, NULL};
        g_autofree char *text = g_strdup_printf(DENSE, "\"b200-sxm-180gb\"");
        GError *error = NULL;
        Spec spec;
        load(text, sets, &spec, &error);
        g_assert_no_error(error);
        g_autofree char *got = spec_generation_traits(&spec.cluster.accelerator.generation);
        g_assert_cmpstr(got, ==, want);
        g_assert_cmpint(spec.cluster.accelerator.generation.assumed, ==, row->assumed);
    }
}

#define TRAIT      "cluster.accelerator.generation."
#define ODD_VOCAB  "model.vocab=50257"
#define FASTER     (-1)
#define SLOWER     1
#define AS_BEFORE  0
#define DENSE_B200 NULL

/* One trait of Blackwell set otherwise: where, and what becomes of the step. */
typedef struct Moved {
    const char *key, *value, *model, *framework; /* model NULL: the dense one on its framework */
    const char *set;
    int direction;
} Moved;

static const Moved moved[] = {
    {"order", "9", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"assumed", "true", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"without_sms", "true", DENSE_B200, NULL, NULL, FASTER},
    {"foreign_kernels", "true", DENSE_B200, NULL,
     "execution={\"framework\":\"pytorch-ddp\",\"compiled\":true}", FASTER},
    {"foreign_kernels", "true", DENSE_B200, NULL, "execution.framework=pytorch-ddp", AS_BEFORE},
    {"nccl_row", "1", DENSE_B200, NULL, "parallel={\"zero\":0}", SLOWER},
    {"multicast", "false", DENSE_B200, NULL, NULL, SLOWER},
    {"two_sm_tiles", "false", DENSE_B200, NULL, NULL, SLOWER},
    {"either_order", "false", DENSE_B200, NULL, "training.precision=fp8", SLOWER},
    {"either_order", "false", DENSE_B200, NULL, "training.precision=bf16", AS_BEFORE},
    {"small_pieces_leave_tensor_cores", "true", DENSE_B200, NULL, ODD_VOCAB, SLOWER},
    {"small_pieces_leave_tensor_cores", "true", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"sm_flops_per_clock", "4096", DENSE_B200, NULL, ODD_VOCAB, FASTER},
    {"sm_flops_per_clock", "4096", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"narrow_cache_per_clock", "11", DENSE_B200, NULL, NULL, AS_BEFORE}, /* of generation alone */
    {"attention_default", "\"attention\"", DENSE_B200, NULL, NULL, SLOWER},
    {"attention_default", "\"attention\"", DENSE_B200, NULL, "execution.attention=cudnn", AS_BEFORE},
    {"assembly_attention", "true", DENSE_B200, NULL, "training.precision=bf16", SLOWER},
    {"assembly_attention", "true", DENSE_B200, NULL, "execution.attention=cudnn", AS_BEFORE},
    {"late_latent_heads", "false", "deepseek-v2-lite", "megatron-core-2025", NULL, FASTER},
    {"late_latent_heads", "false", "deepseek-v2-lite", "megatron-core", NULL, AS_BEFORE},
    {"fused_grouped_experts", "false", "qwen3-30b-a3b", "megatron-core-2026", NULL, SLOWER},
    {"fused_grouped_experts", "false", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"free_queues", "false", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"cudnn_query_tokens", "128", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"sheet_below_highest_clock", "false", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"scale_up_topology", "\"mesh\"", DENSE_B200, NULL, NULL, AS_BEFORE},
    {"compute_capability", "90", DENSE_B200, NULL, NULL, AS_BEFORE},
};

/* `trait`: "cluster.accelerator.generation.KEY=VALUE", or NULL. */
static int64_t moved_ps(const Moved *at, const char *trait)
{
    const char *sets[5] = {NULL};
    int count = 0;
    if (at->set != NULL && strcmp(at->set, ODD_VOCAB) == 0) { /* of software that does not pad it */
        sets[count++] = "training.precision=bf16";
        sets[count++] = "execution.framework=pytorch-ddp";
    }
    if (at->set != NULL)
        sets[count++] = at->set;
    if (trait != NULL)
        sets[count++] = trait;
    g_autofree char *text = at->model != NULL ? g_strdup_printf(EXPERTS, at->model, at->framework)
                                              : g_strdup_printf(DENSE, "\"b200-sxm-180gb\"");
    return step_ps(text, sets);
}

static void test_traits_move(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(moved); i++) {
        const Moved *at = &moved[i];
        const SpecField *field = spec_table_find(&spec_table_generation, at->key);
        g_assert_nonnull(field);
        g_autofree char *same = value_of(field, spec_generation("blackwell")),
                        *on = g_strdup_printf(TRAIT "%s=%s", at->key, same),
                        *off = g_strdup_printf(TRAIT "%s=%s", at->key, at->value);
        const int64_t base = moved_ps(at, NULL), other = moved_ps(at, off);
        g_test_message("%s=%s, %s: %" G_GINT64_FORMAT " ps, then %" G_GINT64_FORMAT, at->key, at->value,
                       at->set != NULL ? at->set : "", base, other);
        g_assert_cmpstr(same, !=, at->value);
        g_assert_cmpint(moved_ps(at, on), ==, base);
        g_assert_cmpint((other > base) - (other < base), ==, at->direction);
    }
    for (int i = 0; i < spec_table_generation.count; i++) { /* no trait is left out */
        const SpecField *field = &spec_table_generation.fields[i];
        bool told = field->type == SPEC_TYPE_CUSTOM || field->type == SPEC_TYPE_NAME ||
                    strcmp(field->key, "chip") == 0; /* which software runs there: moves no time */
        for (gsize j = 0; j < G_N_ELEMENTS(moved); j++)
            told = told || strcmp(moved[j].key, field->key) == 0;
        g_assert_true(told);
    }
}

static void test_order(void)
{
    static const char *const line[] = {"pascal", "volta", "ampere", "hopper", "blackwell"};
    for (gsize i = 0; i < G_N_ELEMENTS(line); i++)
        for (gsize j = 0; j < G_N_ELEMENTS(line); j++) {
            const SpecGeneration *a = spec_generation(line[i]), *b = spec_generation(line[j]);
            g_assert_cmpint(spec_generation_later(a, b), ==, i > j);
            g_assert_cmpint(spec_generation_same(a, b), ==, i == j);
        }
    const SpecGeneration *cdna = spec_generation("cdna"), *tpu = spec_generation("tpu");
    g_assert_true(spec_generation_same(cdna, cdna));
    g_assert_false(spec_generation_same(cdna, tpu));
    g_assert_false(spec_generation_later(spec_generation("hopper"), cdna));
    g_assert_false(spec_generation_later(cdna, spec_generation("hopper")));
}

static void test_capability(void)
{
    static const struct {
        double capability;
        const char *name;
    } cases[] = {{0, "other"},       {52, "other"},      {60, "pascal"},    {70, "volta"},
                 {75, "volta"},      {80, "ampere"},     {89, "ampere"},    {90, "hopper"},
                 {100, "blackwell"}, {103, "blackwell"}, {120, "blackwell"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(spec_generation_of_capability(cases[i].capability)->name, ==, cases[i].name);
}

static void test_refused(void)
{
    static const struct {
        const char *value, *message;
    } cases[] = {{"\"hoper\"", "did you mean \"hopper\"?"},
                 {"\"rubin\"", "give one of pascal, volta"},
                 {"\"rubin\"", "{\"like\": \"blackwell\"}"},
                 {"7", "is not a known generation"},
                 {"{\"like\":\"rubin\"}", "give one of pascal, volta"},
                 {"{\"like\":\"hopper\",\"nccl_row\":4}", "generation.nccl_row: 4"},
                 {"{\"like\":\"hopper\",\"tiles\":2}", "generation.tiles: unknown key"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *set = g_strdup_printf("cluster.accelerator.generation=%s", cases[i].value),
                        *text = g_strdup_printf(DENSE, "\"b200-sxm-180gb\"");
        const char *sets[] = {set, NULL};
        GError *error = NULL;
        Spec spec;
        g_assert_false(load(text, sets, &spec, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].message));
        g_error_free(error);
    }
}

/* Traits over a preset's generation need no "like"; an accelerator of its own without one is refused. */
static void test_like_of_preset(void)
{
    static const char *const alone =
        "{\"model\":\"llama3-8b\",\"cluster\":{\"gpus_per_node\":8,\"accelerator\":{\"memory_bytes\":8e10,"
        "\"memory_bytes_per_s\":2e12,\"peak_flops_per_s\":{\"bf16\":3e14},\"sm_count\":108,"
        "\"generation\":{\"nccl_row\":1}}},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":8}}";
    g_assert_cmpint(
        dense_ps("{\"preset\":\"b200-sxm-180gb\",\"generation\":{\"two_sm_tiles\":false}}", NULL, NULL), ==,
        dense_ps("\"b200-sxm-180gb\"", NULL, TRAIT "two_sm_tiles=false"));
    GError *error = NULL;
    Spec spec;
    g_assert_false(load(alone, NULL, &spec, &error));
    g_assert_nonnull(strstr(error->message, "add \"like\""));
    g_error_free(error);
}

/* Nobody is told of a chip whose generation is known, and everybody of one whose is not. */
static void test_assumed(void)
{
    static const struct {
        const char *set;
        bool told;
    } cases[] = {{TRAIT "order=5", false},
                 {"cluster.accelerator.generation=other", true},
                 {"cluster.accelerator.generation={\"like\":\"other\",\"nccl_row\":2}", false},
                 {"cluster.accelerator=tpu-v5p", false}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(DENSE, "\"b200-sxm-180gb\"");
        const char *sets[] = {cases[i].set, "training.precision=bf16", NULL};
        g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
        GError *error = NULL;
        Spec spec;
        load(text, sets, &spec, &error);
        g_assert_no_error(error);
        spec_notes(&spec, notes);
        bool told = false;
        for (guint j = 0; j < notes->len; j++)
            told = told || strstr(g_ptr_array_index(notes, j), "assumed: without_sms, foreign_kernels, "
                                                               "nccl_row 1") != NULL;
        g_assert_cmpint(told, ==, cases[i].told);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/generations/new", test_new_generation);
    g_test_add_func("/generations/rows", test_rows_spelled_out);
    g_test_add_func("/generations/traits", test_traits_move);
    g_test_add_func("/generations/order", test_order);
    g_test_add_func("/generations/capability", test_capability);
    g_test_add_func("/generations/refused", test_refused);
    g_test_add_func("/generations/like", test_like_of_preset);
    g_test_add_func("/generations/assumed", test_assumed);
    return g_test_run();
}
