/* tests/unit/exchange/test_exchange_random.c - random scenarios through every format that is exported: the same
 * scenario comes back, and what a format has no name for stands in its comment. */
#include <string.h>

#include "study/compare.h"
#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"
#include "tests/unit/draws.h"
#include "tests/unit/exchange_fixture.h"

enum {
    FIRST = EXCHANGE_FORMAT_MEGATRON,
    LAST = EXCHANGE_FORMAT_NANOTRON,
    TRIPS = DRAWS(50),
    MOST_TRIES = 20000
};

static const char *pick(GRand *rand, const char *const *words)
{
    return words[g_rand_int_range(rand, 0, (int)g_strv_length((char **)(void *)words))];
}

static int power(GRand *rand, int most)
{
    return 1 << g_rand_int_range(rand, 0, most + 1);
}

static const char *yes_no(GRand *rand)
{
    return g_rand_boolean(rand) ? "true" : "false";
}

static void append_parallel(GRand *rand, bool moe, GString *text, int data)
{
    static const char *const schedules[] = {"1f1b", "1f1b", "interleaved", "gpipe", NULL};
    const int tensor = power(rand, 3), pipeline = power(rand, 2), context = power(rand, 1);
    const char *schedule = pick(rand, schedules);
    g_string_append_printf(text,
                           "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":%d},"
                           "\"parallel\":{\"tensor\":%d,\"context\":%d,\"pipeline\":%d,\"data\":%d,"
                           "\"zero\":%d,\"schedule\":\"%s\",\"virtual_stages\":%d,\"sequence_parallel\":%s",
                           MAX(1, tensor * pipeline * context * data / 8), tensor, context, pipeline, data,
                           g_rand_int_range(rand, 0, 4), schedule,
                           strcmp(schedule, "interleaved") == 0 ? 2 : 1, yes_no(rand));
    if (moe)
        g_string_append_printf(text, ",\"expert\":%d", power(rand, 2));
    if (g_rand_int_range(rand, 0, 4) == 0)
        g_string_append(text, ",\"embedding_as_layer\":true,\"loss_as_layer\":true");
    g_string_append(text, "},");
}

/* Often no valid scenario. */
static OrrJsonDoc *random_scenario(GRand *rand)
{
    static const char *const frameworks[] = {"megatron-core", "deepspeed", "torchtitan", "nanotron", NULL};
    static const char *const precisions[] = {"bf16", "bf16", "fp16", "fp8", NULL};
    static const char *const recomputes[] = {"\"none\"", "\"selective\"", "\"full\"",
                                             "{\"mode\":\"full\",\"layers\":2}", NULL};
    static const char *const overlaps[] = {"[]", "[\"grad_reduce\"]", "[\"grad_reduce\",\"param_gather\"]",
                                           "[\"grad_reduce\",\"param_gather\",\"tensor\"]", NULL};
    static const char *const shapes[] = {
        "\"norm\":\"rmsnorm\",\"position\":\"rope\",\"gated_mlp\":true,\"biases\":\"none\"",
        "\"norm\":\"layernorm\",\"position\":\"learned\",\"gated_mlp\":false,\"biases\":\"all\"", NULL};
    const bool moe = g_rand_int_range(rand, 0, 5) == 0;
    const int data = power(rand, 4);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text,
                           "{\"name\":\"random\",\"model\":{\"name\":\"m\",\"layers\":%d,\"hidden\":%d,"
                           "\"heads\":%d,\"kv_heads\":%d,\"ffn_hidden\":%d,\"vocab\":%d,"
                           "\"tied_embeddings\":%s,%s%s},",
                           8 * g_rand_int_range(rand, 1, 6), 1024 * power(rand, 2), 32, 8 * power(rand, 2),
                           4096 * power(rand, 2), g_rand_boolean(rand) ? 32000 : 128256, yes_no(rand),
                           pick(rand, shapes),
                           moe ? ",\"moe\":{\"experts\":8,\"top_k\":2,\"expert_ffn_hidden\":1024}" : "");
    append_parallel(rand, moe, text, data);
    g_string_append_printf(text,
                           "\"training\":{\"sequence_length\":%d,\"global_batch\":%d,\"micro_batch\":%d,"
                           "\"precision\":\"%s\",\"recompute\":%s,\"tokens\":%d},"
                           "\"execution\":{\"framework\":\"%s\",\"overlap\":%s}}",
                           1024 * power(rand, 3), data * 8 * power(rand, 2), power(rand, 2),
                           pick(rand, precisions), pick(rand, recomputes),
                           g_rand_int_range(rand, 1, 1000) * 1000000, pick(rand, frameworks),
                           pick(rand, overlaps));
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "random", &error);
    g_assert_no_error(error);
    return doc;
}

static OrrJsonDoc *imported(const GString *text, const OrrJson *base)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = exchange_import(text->str, text->len, "file", -1, base, &loss, &error);
    g_assert_no_error(error);
    guint lost = loss.changes->len;
    for (guint i = 0; i < loss.changes->len; i++) {
        g_test_message("%s", (const char *)g_ptr_array_index(loss.changes, i));
        lost -= strstr(g_ptr_array_index(loss.changes, i), "is the base's, the file is for") != NULL;
    }
    g_assert_cmpuint(lost, ==, 0); /* an importer knows all that its exporter writes; the base is another's */
    return doc;
}

static OrrJsonDoc *comment_of(const GString *text, ExchangeFormat format)
{
    GError *error = NULL;
    const char *from = strstr(text->str, "# orrery-scenario: ");
    OrrJsonDoc *doc;
    if (format == EXCHANGE_FORMAT_DEEPSPEED) {
        doc = orr_json_parse(text->str, text->len, "file", &error);
    } else {
        g_assert_nonnull(from);
        from += strlen("# orrery-scenario: ");
        doc = orr_json_parse(from, strcspn(from, "\n"), "comment", &error);
    }
    g_assert_no_error(error);
    return doc;
}

/* Whether the scenario in the comment says something about "section.key". */
static bool says(const OrrJson *scenario, const char *path)
{
    g_auto(GStrv) words = g_strsplit(path, ".", -1);
    for (char **word = words; scenario != NULL && *word != NULL; word++) {
        if (orr_json_type(scenario) != ORR_JSON_OBJECT) /* a preset's name says all */
            return true;
        scenario = orr_json_member(scenario, *word);
    }
    return scenario != NULL;
}

/* The scenario comes back; from a base without training and degrees, what differs stands in the comment. */
static void check_trip(const OrrJson *scenario, const Spec *before, const GString *text,
                       ExchangeFormat format, GHashTable *left_out)
{
    GError *error = NULL;
    g_autofree Spec *after = g_new0(Spec, 1);
    OrrJsonDoc *back = imported(text, NULL);
    spec_load_json(orr_json_root(back), "back", NULL, false, after, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(differences(before, after, orr_word(&exchange_words_format, format)), ==, 0);
    orr_json_free(back);

    OrrJsonDoc *base = orr_json_copy(scenario, "base"), *comment = comment_of(text, format);
    const OrrJson *said = orr_json_root(comment);
    if (format == EXCHANGE_FORMAT_DEEPSPEED)
        said = orr_json_member(said, "orrery");
    static const char *const cleared[] = {"parallel", "training"};
    for (gsize i = 0; i < G_N_ELEMENTS(cleared); i++)
        g_assert_true(orr_json_set(base, cleared[i], i == 0 ? "{}" : "{\"sequence_length\":512}", NULL));
    OrrJsonDoc *bare = imported(text, orr_json_root(base));
    static const char *const keys[] = {
        "training.sequence_length", "training.global_batch",   "training.micro_batch", "training.precision",
        "training.recompute",       "training.tokens",         "parallel.tensor",      "parallel.context",
        "parallel.pipeline",        "parallel.virtual_stages", "parallel.zero",        "parallel.schedule"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_auto(GStrv) words = g_strsplit(keys[i], ".", 2);
        const OrrJson *asked = orr_json_member(orr_json_member(scenario, words[0]), words[1]),
                      *now = orr_json_member(orr_json_member(orr_json_root(bare), words[0]), words[1]);
        g_autofree char *a = orr_json_show(asked), *b = now != NULL ? orr_json_show(now) : g_strdup("");
        if (strcmp(a, b) == 0)
            continue;
        g_hash_table_add(left_out, (gpointer)keys[i]);
        if (!says(said, keys[i]))
            g_test_message("%s: %s: %s is lost: %s", orr_word(&exchange_words_format, format), keys[i], a, b);
        g_assert_true(says(said, keys[i]));
    }
    orr_json_free(bare);
    orr_json_free(base);
    orr_json_free(comment);
}

static void test_random(gconstpointer data)
{
    const ExchangeFormat format = (ExchangeFormat)GPOINTER_TO_INT(data);
    GRand *rand = g_rand_new_with_seed(20261 + (guint)format);
    g_autoptr(GHashTable) left_out = g_hash_table_new(g_str_hash, g_str_equal);
    int trips = 0, refused = 0;
    for (int i = 0; i < MOST_TRIES && trips < TRIPS; i++) {
        OrrJsonDoc *doc = random_scenario(rand);
        GError *error = NULL;
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GString) text = g_string_new(NULL);
        if (spec_load_json(orr_json_root(doc), "random", NULL, false, spec, NULL, NULL)) {
            if (exchange_export(spec, orr_json_root(doc), format, text, NULL, &error)) {
                check_trip(orr_json_root(doc), spec, text, format, left_out);
                trips++;
            } else { /* says which field the framework cannot do */
                g_auto(GStrv) words = g_strsplit(error->message, ": ", 3);
                g_assert_cmpstr(words[0], ==, orr_word(&exchange_words_format, format));
                g_assert_true(g_str_has_prefix(words[1], "model") || strchr(words[1], '.') != NULL);
                g_error_free(error);
                refused++;
            }
        }
        orr_json_free(doc);
    }
    g_assert_cmpint(trips, ==, TRIPS);
    g_autoptr(GList) keys = g_hash_table_get_keys(left_out);
    g_autoptr(GString) names = g_string_new(NULL);
    keys = g_list_sort(keys, (GCompareFunc)(void *)strcmp);
    for (GList *at = keys; at != NULL; at = at->next)
        g_string_append_printf(names, " %s", (const char *)at->data);
    g_test_message("%s: %d round trips, %d refused by name; in the comment:%s",
                   orr_word(&exchange_words_format, format), trips, refused,
                   names->len > 0 ? names->str : " -");
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int format = FIRST; format <= LAST; format++) {
        g_autofree char *path =
            g_strdup_printf("/exchange-random/%s", orr_word(&exchange_words_format, format));
        g_test_add_data_func(path, GINT_TO_POINTER(format), test_random);
    }
    return g_test_run();
}
