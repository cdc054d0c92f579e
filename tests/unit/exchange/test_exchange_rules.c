/* tests/unit/exchange/test_exchange_rules.c - exports against the checks that each framework makes of its arguments
 * (tests/rules): what a search chose, and random scenarios, pass them all and come back, or are refused by name. */
#include "exchange/exchange.h"
#include "search/choose.h"
#include "spec/load.h"
#include "tests/unit/draws.h"
#include "tests/unit/exchange_fixture.h"
#include "tests/unit/rules_fixture.h"

enum { FORMATS = EXCHANGE_FORMAT_NANOTRON + 1, WINNERS = DRAWS(40), DRAWN = DRAWS(20), MOST_TRIES = 4000 };

static const char *const frameworks[FORMATS] = {"megatron-core", "megatron-core", "deepspeed", "torchtitan",
                                                "nanotron"};
static const SettingsSyntax syntaxes[FORMATS] = {SETTINGS_FLAGS, SETTINGS_DOTLIST, SETTINGS_JSON,
                                                 SETTINGS_TOML, SETTINGS_YAML};

static OrrJsonDoc *rule_table(ExchangeFormat format)
{
    GError *error = NULL;
    g_autofree char *name = g_strconcat(orr_word(&exchange_words_format, format), ".json", NULL);
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "..", "tests", "rules", name, NULL);
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    g_assert_no_error(error);
    return doc;
}

static void put(GHashTable *around, const char *name, double value)
{
    double *kept = g_new(double, 1);
    *kept = value;
    g_hash_table_insert(around, (gpointer)name, kept);
}

static int layout_stages(const Settings *settings)
{
    const Setting *flag = settings_find(settings, "pipeline-model-parallel-layout"),
                  *override = settings_find(settings, "model.pipeline_model_parallel_layout");
    const char *layout = flag != NULL ? flag->value : override != NULL ? override->value : NULL;
    int stages = layout != NULL ? 1 : 0;
    for (const char *c = layout; c != NULL && *c != '\0'; c++)
        stages += *c == '|';
    return stages;
}

/* export NAME=VALUE of a launch script. */
static GHashTable *environment_of(const Spec *spec, ExchangeFormat format)
{
    GHashTable *environment = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GString) script = g_string_new(NULL);
    GError *error = NULL;
    exchange_export_launch(spec, format, EXCHANGE_LAUNCH_TORCHRUN, "config", script, &error);
    g_assert_no_error(error);
    g_auto(GStrv) lines = g_strsplit(script->str, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        char *equals = strchr(*line, '=');
        if (g_str_has_prefix(*line, "export ") && equals != NULL)
            g_hash_table_insert(environment, g_strndup(*line + 7, (gsize)(equals - *line - 7)),
                                g_strdup(equals + 1));
    }
    return environment;
}

static int broken(const OrrJson *table, const Spec *spec, const GString *text, ExchangeFormat format,
                  GArray *applied)
{
    Settings settings;
    GError *error = NULL;
    g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) around = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free),
                          environment = environment_of(spec, format);
    settings_init(&settings);
    settings_read(text->str, text->len, "file", syntaxes[format], &settings, problems, &error);
    g_assert_no_error(error);
    put(around, "world_size", spec_gpus(spec));
    put(around, "blackwell", spec->cluster.accelerator.generation.free_queues);
    put(around, "layers", spec->model.layers);
    put(around, "kv_heads", spec->model.kv_heads);
    put(around, "layout_stages", layout_stages(&settings));
    const Rules rules = {table, &settings, around, environment, NULL};
    const int count = rules_broken(&rules, orr_word(&exchange_words_format, format), applied);
    settings_clear(&settings);
    return count;
}

/* --- scenarios --- */

static const char *pick(GRand *rand, const char *const *words)
{
    return words[g_rand_int_range(rand, 0, (int)g_strv_length((char **)(void *)words))];
}

/* A scenario whose split is searched, or with `free` is drawn. Often no valid one, or one that is refused. */
static OrrJsonDoc *random_scenario(GRand *rand, ExchangeFormat format, bool drawn)
{
    static const char *const clusters[] = {"dgx-h100", "dgx-a100-80gb", "dgx-b200", NULL};
    static const char *const models[] = {"llama3-8b",   "mixtral-8x7b",     "llama2-7b",
                                         "llama3.2-1b", "deepseek-v2-lite", NULL};
    static const char *const dense[] = {"llama3-8b", "llama2-7b", "llama3.2-1b", NULL};
    static const char *const overlaps[] = {"[]",
                                           "[\"grad_reduce\"]",
                                           "[\"grad_reduce\",\"param_gather\"]",
                                           "[\"grad_reduce\",\"param_gather\",\"tensor\"]",
                                           "[\"grad_reduce\",\"param_gather\",\"expert\",\"pipeline\"]",
                                           NULL};
    static const char *const precisions[] = {"bf16",        "bf16", "fp16",  "fp8-tensorwise",
                                             "fp8-rowwise", "fp8",  "mxfp8", NULL};
    static const char *const recomputes[] = {"\"none\"",         "\"full\"",
                                             "\"selective\"",    "{\"mode\":\"full\",\"layers\":2}",
                                             "\"selective-op\"", NULL};
    static const char *const schedules[] = {"1f1b", "interleaved", "gpipe", "zb-v", NULL};
    static const char *const nodes[] = {"1", "1", "2", NULL};
    static const char *const degrees[] = {"1", "2", "4", NULL};
    const bool script = format == EXCHANGE_FORMAT_DEEPSPEED;
    const bool plain = script || format == EXCHANGE_FORMAT_NANOTRON; /* dense, no context ranks */
    GString *text = g_string_new(NULL);
    g_string_append_printf(
        text,
        "{\"model\":\"%s\",\"cluster\":{\"preset\":\"%s\",\"nodes\":%s},\"training\":{\"sequence_length\":"
        "4096,"
        "\"global_batch\":%d,\"micro_batch\":%s,\"precision\":\"%s\",\"recompute\":%s},"
        "\"execution\":{\"framework\":\"%s\",\"compiled\":%s,\"overlap\":%s},\"parallel\":{\"tensor\":%s,"
        "\"context\":%s,"
        "\"pipeline\":%s,\"zero\":%s",
        pick(rand, plain ? dense : models), pick(rand, clusters), pick(rand, nodes),
        32 << g_rand_int_range(rand, 0, 3), drawn ? pick(rand, degrees) : "\"auto\"",
        drawn ? pick(rand, precisions) : "bf16", drawn ? pick(rand, recomputes) : "\"auto\"",
        frameworks[format], g_rand_boolean(rand) ? "true" : "false",
        drawn ? pick(rand, overlaps) : "[\"grad_reduce\",\"param_gather\"]",
        drawn ? pick(rand, degrees) : "\"auto\"", plain ? "1" : pick(rand, degrees),
        script  ? "1"
        : drawn ? pick(rand, degrees)
                : "\"auto\"",
        drawn ? (const char *const[]){"0", "1", "2", "3"}[g_rand_int_range(rand, 0, 4)] : "\"auto\"");
    if (drawn) {
        const char *schedule = pick(rand, schedules);
        g_string_append_printf(text, ",\"schedule\":\"%s\",\"virtual_stages\":%d,\"sequence_parallel\":%s",
                               schedule,
                               strcmp(schedule, "1f1b") != 0 && strcmp(schedule, "gpipe") != 0 ? 2 : 1,
                               g_rand_boolean(rand) ? "true" : "false");
    } else {
        g_string_append(text,
                        ",\"sequence_parallel\":\"auto\",\"schedule\":\"auto\",\"virtual_stages\":\"auto\"");
    }
    if (!plain && g_rand_boolean(rand))
        g_string_append_printf(text, ",\"expert\":%s", pick(rand, degrees));
    g_string_append(text, "}}");
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "random", &error);
    g_assert_no_error(error);
    g_string_free(text, TRUE);
    return doc;
}

/* What the search chose, written into the document. */
static void write_chosen(OrrJsonDoc *doc, const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const struct {
        const char *key;
        int value;
    } numbers[] = {{"parallel.tensor", parallel->tensor},
                   {"parallel.pipeline", parallel->pipeline},
                   {"parallel.virtual_stages", parallel->virtual_stages},
                   {"parallel.zero", parallel->zero},
                   {"training.micro_batch", spec->training.micro_batch}};
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_autofree char *value = g_strdup_printf("%d", numbers[i].value);
        g_assert_true(orr_json_set(doc, numbers[i].key, value, NULL));
    }
    g_autofree char *recompute =
        g_strdup_printf("{\"mode\":\"%s\",\"layers\":%d}",
                        spec_word(&spec_words_recompute, (int)spec->training.recompute.mode),
                        spec->training.recompute.layers);
    if (spec->training.recompute.layers > 0)
        g_assert_true(orr_json_set(doc, "training.recompute", recompute, NULL));
    else
        g_assert_true(orr_json_set(doc, "training.recompute",
                                   spec_word(&spec_words_recompute, (int)spec->training.recompute.mode),
                                   NULL));
    g_assert_true(orr_json_set(doc, "parallel.schedule",
                               spec_word(&spec_words_schedule, (int)parallel->schedule), NULL));
    g_assert_true(orr_json_set(doc, "parallel.sequence_parallel",
                               parallel->sequence_parallel == 1 ? "true" : "false", NULL));
    if (parallel->embedding_as_layer)
        g_assert_true(orr_json_set(doc, "parallel.embedding_as_layer", "true", NULL));
    if (parallel->loss_as_layer)
        g_assert_true(orr_json_set(doc, "parallel.loss_as_layer", "true", NULL));
}

/* A complete scenario and its document; NULL where there is none. */
static OrrJsonDoc *next_scenario(GRand *rand, ExchangeFormat format, bool drawn, Spec *ret_spec)
{
    OrrJsonDoc *doc = random_scenario(rand, format, drawn);
    g_autofree Spec *asked = g_new0(Spec, 1);
    if (spec_load_json(orr_json_root(doc), "random", NULL, true, asked, NULL, NULL)) {
        if (!search_has_auto(asked)) {
            *ret_spec = *asked;
            return doc;
        }
        if (search_choose(asked, ret_spec, NULL)) {
            write_chosen(doc, ret_spec);
            if (spec_load_json(orr_json_root(doc), "chosen", NULL, false, ret_spec, NULL, NULL))
                return doc;
        }
    }
    orr_json_free(doc);
    return NULL;
}

static void check_back(const Spec *before, const GString *text, const ExchangeLoss *loss,
                       ExchangeFormat format)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) back_loss;
    g_autofree Spec *after = g_new0(Spec, 1);
    exchange_loss_init(&back_loss);
    OrrJsonDoc *back = exchange_import(text->str, text->len, "file", (int)format, NULL, &back_loss, &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(back), "back", NULL, false, after, NULL, &error);
    g_assert_no_error(error);
    if (differences(before, after, orr_word(&exchange_words_format, format)) > 0)
        g_assert_cmpuint(loss->changes->len + back_loss.changes->len, >, 0);
    orr_json_free(back);
}

static void test_rules(gconstpointer data)
{
    const ExchangeFormat format = (ExchangeFormat)GPOINTER_TO_INT(data);
    OrrJsonDoc *table = rule_table(format);
    const int rules = orr_json_count(orr_json_member(orr_json_root(table), "rules"));
    g_autoptr(GArray) applied = g_array_new(FALSE, TRUE, sizeof(int));
    g_array_set_size(applied, (guint)rules);
    GRand *rand = g_rand_new_with_seed(77 + (guint)format);
    int trips[2] = {0, 0}, refused = 0, breaks = 0;
    for (int i = 0; i < MOST_TRIES && trips[0] + trips[1] < WINNERS + DRAWN; i++) {
        const bool drawn = trips[0] >= WINNERS;
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GString) text = g_string_new(NULL);
        g_auto(ExchangeLoss) loss;
        GError *error = NULL;
        exchange_loss_init(&loss);
        OrrJsonDoc *doc = next_scenario(rand, format, drawn, spec);
        if (doc == NULL)
            continue;
        if (exchange_export(spec, orr_json_root(doc), format, text, &loss, &error)) {
            breaks += broken(orr_json_root(table), spec, text, format, applied);
            check_back(spec, text, &loss, format);
            trips[drawn]++;
        } else {
            g_auto(GStrv) words = g_strsplit(error->message, ": ", 3);
            g_assert_cmpstr(words[0], ==, orr_word(&exchange_words_format, format));
            g_assert_true(strchr(words[1], '.') != NULL || g_str_has_prefix(words[1], "model"));
            refused++;
        }
        g_clear_error(&error);
        orr_json_free(doc);
    }
    int met = 0;
    for (guint i = 0; i < applied->len; i++)
        met += g_array_index(applied, int, i) > 0 ? 1 : 0;
    g_test_message(
        "%s: %d winners of searches and %d drawn scenarios exported, %d refused by name; %d of %d rules met",
        orr_word(&exchange_words_format, format), trips[0], trips[1], refused, met, rules);
    g_assert_cmpint(breaks, ==, 0);
    g_assert_cmpint(trips[0], ==, WINNERS);
    g_assert_cmpint(trips[1], ==, DRAWN);
    g_assert_cmpint(3 * met, >, rules);
    g_rand_free(rand);
    orr_json_free(table);
}

/* The tables themselves see a wrong file: one that breaks a rule each. */
static void test_seen(void)
{
    static const struct {
        ExchangeFormat format;
        const char *text;
    } wrong[] = {
        {EXCHANGE_FORMAT_MEGATRON, "--use-megatron-fsdp --use-distributed-optimizer --optimizer adam"},
        {EXCHANGE_FORMAT_MEGATRON, "--tp-comm-overlap --tensor-model-parallel-size 2"},
        {EXCHANGE_FORMAT_MEGATRON, "--sequence-parallel"},
        {EXCHANGE_FORMAT_MEGATRON_BRIDGE, "comm_overlap.tp_comm_overlap=true"},
        {EXCHANGE_FORMAT_DEEPSPEED, "{\"train_batch_size\":7,\"train_micro_batch_size_per_gpu\":2,"
                                    "\"gradient_accumulation_steps\":3}"},
        {EXCHANGE_FORMAT_TORCHTITAN, "[parallelism]\nenable_async_tensor_parallel = true\n"},
        {EXCHANGE_FORMAT_NANOTRON, "parallelism:\n  dp: 3\n  tp: 2\n  pp: 1\n"},
    };
    g_autofree Spec *spec = g_new0(Spec, 1);
    static const char scenario[] =
        "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":64},"
        "\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"torchtitan\"}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "scenario", &error);
    spec_load_json(orr_json_root(doc), "scenario", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        OrrJsonDoc *table = rule_table(wrong[i].format);
        g_autoptr(GString) text = g_string_new(wrong[i].text);
        spec->parallel.zero = wrong[i].format == EXCHANGE_FORMAT_NANOTRON ? 1 : 3;
        g_assert_cmpint(broken(orr_json_root(table), spec, text, wrong[i].format, NULL), >, 0);
        orr_json_free(table);
    }
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange-rules/seen", test_seen);
    for (int format = 0; format < FORMATS; format++) {
        g_autofree char *path =
            g_strdup_printf("/exchange-rules/%s", orr_word(&exchange_words_format, format));
        g_test_add_data_func(path, GINT_TO_POINTER(format), test_rules);
    }
    return g_test_run();
}
