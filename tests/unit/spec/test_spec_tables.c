/* The field tables and what is generated from them: words, the manual, the schemas. */
#include <string.h>

#include "spec/help.h"
#include "spec/measurement.h"
#include "spec/schema.h"
#include "tests/unit/test_spec_support.h"

#include "spec/read.h"

/* --- every table is well formed --- */

/* A help text is shown alone: it names what it is about, in sentences that are read once. */
static void check_plain(const char *help)
{
    static const char *const leaning[] = {"The same", "That ",    "Those ",      "These ", "Such ",
                                          "Times ",   "Of ",      "Its ",        "Their ", "Whose ",
                                          "So ",      "Likewise", "Without that"};
    const int most_words = 25;
    for (gsize i = 0; i < G_N_ELEMENTS(leaning); i++)
        g_assert_false(g_str_has_prefix(help, leaning[i]));
    int words = 0;
    for (const char *at = help; *at != '\0'; at++) {
        if (*at == ' ' && at[-1] == '.')
            words = 0;
        else if (at == help || *at == ' ')
            words++;
        g_assert_cmpint(words, <=, most_words);
    }
}

static void check_field(const SpecTable *table, const SpecField *field)
{
    g_test_message("%s.%s: %s", table->name, field->key, field->help);
    g_assert_nonnull(field->help);
    g_assert_cmpuint(strlen(field->help), >, 10);
    const char end = field->help[strlen(field->help) - 1];
    g_assert_true(end == '.' || end == ')');
    check_plain(field->help);
    if (field->type == SPEC_TYPE_INT || field->type == SPEC_TYPE_DOUBLE)
        g_assert_true(field->min < field->max);
    if (field->type == SPEC_TYPE_WORD || field->type == SPEC_TYPE_WORD_SET)
        g_assert_nonnull(field->words);
    if (field->type == SPEC_TYPE_CUSTOM)
        g_assert_nonnull(field->read);
    if (field->type == SPEC_TYPE_OBJECT)
        g_assert_nonnull(field->table);
    g_assert_false((field->flags & SPEC_FIELD_REQUIRED) && field->default_text != NULL);
}

static void check_table(const SpecTable *table, int depth)
{
    g_assert_cmpint(depth, <, 10);
    for (int i = 0; i < table->count; i++) {
        check_field(table, &table->fields[i]);
        for (int j = 0; j < i; j++)
            g_assert_cmpstr(table->fields[i].key, !=, table->fields[j].key);
        if (table->fields[i].table != NULL)
            check_table(table->fields[i].table, depth + 1);
    }
}

static void test_tables(void)
{
    check_table(&spec_table_scenario, 0);
    check_table(&spec_table_measurement, 0);
}

static void test_words(void)
{
    g_assert_cmpstr(spec_word(&spec_words_schedule, sim_schedule_index("1f1b")), ==, "1f1b");
    g_assert_cmpstr(spec_word(&spec_words_schedule, sim_schedule_index("dualpipev")), ==, "dualpipev");
    g_assert_cmpstr(spec_word(&spec_words_precision, SPEC_PRECISION_FP8_ROWWISE), ==, "fp8-rowwise");
    g_assert_cmpstr(spec_word(&spec_words_precision, SPEC_PRECISION_NVFP4), ==, "nvfp4");
    g_assert_cmpstr(spec_word(&spec_words_states, SPEC_STATES_DEEPSEEK_V3), ==, "deepseek-v3");
    g_assert_cmpstr(spec_word(&spec_words_recompute, SPEC_RECOMPUTE_SELECTIVE_LAYER), ==, "selective-layer");
    g_assert_cmpstr(spec_word(&spec_words_topology, SPEC_TOPOLOGY_TORUS3D), ==, "torus3d");
    g_assert_cmpstr(spec_word(&spec_words_loss, SPEC_LOSS_CHUNKED), ==, "chunked");
    g_assert_cmpstr(spec_word(&spec_words_attention, SPEC_AUTO), ==, "auto");
    g_assert_cmpint(1 << (spec_words_module.count - 1), ==, SPEC_MODULE_SHARED_EXPERTS);
    g_assert_cmpint(1 << (spec_words_overlap.count - 1), ==, SPEC_OVERLAP_EXPERT);
    for (int i = 0; i < SPEC_PRECISION_COUNT; i++)
        g_assert_cmpfloat(spec_dtype_bytes(spec_gemm_dtype((SpecPrecision)i)), <=, 4.0);
    g_assert_cmpint(spec_gemm_dtype(SPEC_PRECISION_MXFP8), ==, SPEC_FP8);
    g_assert_cmpint(spec_gemm_dtype(SPEC_PRECISION_NVFP4), ==, SPEC_FP4);
    g_assert_cmpfloat(spec_dtype_bytes(SPEC_FP4), ==, 0.5);
}

/* --- the manual --- */

static void test_help(void)
{
    static const struct {
        const char *key, *text;
    } cases[] = {
        {"parallel.zero", "a whole number from 0 to 3, or \"auto\""},
        {"zero", "parallel.zero"},
        {"parallel", "virtual_stages"},
        {"training.recompute", "every_n_layers"},
        {"training.recompute.mode", "one of none, selective, full"},
        {"accelerator.memory_bytes", "\"80 GiB\""},
        {"cluster.accelerator.memory_bytes", "Must be given"},
        {"framework", "data_parallel"},
        {"framework.data_parallel", "bucket_bytes"},
        {"scenario", "training"},
        {"measurement.measured.step_s", "seconds"},
        {"model", "ffn_hidden"},
        {"sequence_length", "training.sequence_length"},
        {"execution.measured_passes.passes.begin_s", "Default: as predicted"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_autoptr(GString) out = g_string_new(NULL);
        spec_help(cases[i].key, out, &error);
        g_assert_no_error(error);
        g_assert_nonnull(strstr(out->str, cases[i].text));
        g_assert_true(g_str_has_suffix(out->str, "\n"));
    }
    static const struct {
        const char *key, *message;
    } bad[] = {{"parallel.zeroo", "did you mean parallel.zero?"},
               {"zeroo", "parallel.zero"},
               {"", "ask for"},
               {"xyzzy.plugh", "ask for"},
               {"parallel.zero.deeper", "no field"}};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *error = NULL;
        g_autoptr(GString) out = g_string_new(NULL);
        g_assert_false(spec_help(bad[i].key, out, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, bad[i].message));
        g_error_free(error);
    }
}

static void test_help_of_every_key(void)
{
    g_autoptr(GPtrArray) keys = spec_help_keys();
    g_assert_cmpuint(keys->len, >, 150);
    for (guint i = 0; i < keys->len; i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        g_assert_true(spec_help(g_ptr_array_index(keys, i), out, NULL));
        for (const char *line = out->str; line != NULL && *line != '\0';) {
            const char *end = strchr(line, '\n');
            g_assert_nonnull(end);
            g_assert_cmpint(g_utf8_strlen(line, end - line), <=, 100);
            line = end + 1;
        }
    }
}

/* --- the schemas --- */

/* The field's schema admits its own default and, where the reader takes "auto", says so. */
static void check_properties(const OrrJson *schema, const SpecTable *table)
{
    const OrrJson *properties = orr_json_member(schema, "properties");
    g_assert_nonnull(properties);
    g_assert_false(orr_json_bool(orr_json_member(schema, "additionalProperties")));
    g_assert_cmpint(orr_json_count(properties), ==, table->count);
    for (int i = 0; i < table->count; i++) {
        const SpecField *field = &table->fields[i];
        const OrrJson *property = orr_json_member(properties, field->key);
        g_assert_nonnull(property);
        g_assert_cmpstr(orr_json_text(orr_json_member(property, "description")), ==, field->help);
        const OrrJson *first = orr_json_first(orr_json_member(property, "anyOf"));
        g_assert_nonnull(first);
        g_autofree char *text = orr_json_dump(orr_json_member(property, "anyOf"));
        if ((field->flags & SPEC_FIELD_AUTO) && field->type == SPEC_TYPE_INT)
            g_assert_nonnull(strstr(text, "{\"const\":\"auto\"}"));
        if (field->table != NULL)
            check_properties(first, field->table);
    }
}

static void test_schemas(void)
{
    const SpecTable *const tables[] = {&spec_table_scenario, &spec_table_model,     &spec_table_accelerator,
                                       &spec_table_cluster,  &spec_table_framework, &spec_table_measurement};
    for (int i = 0; spec_schema_kinds[i] != NULL; i++) {
        GError *error = NULL;
        g_autoptr(GString) out = g_string_new(NULL);
        spec_schema_write(spec_schema_kinds[i], out, &error);
        g_assert_no_error(error);
        OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "schema", &error);
        g_assert_no_error(error);
        const OrrJson *root = orr_json_root(doc), *items = orr_json_member(root, "items");
        g_assert_cmpstr(orr_json_text(orr_json_member(root, "$schema")), ==,
                        "https://json-schema.org/draft/2020-12/schema");
        check_properties(items != NULL ? items : root, tables[i]);
        orr_json_free(doc);
    }
    GError *error = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    g_assert_false(spec_schema_write("modle", out, &error));
    g_assert_nonnull(strstr(error->message, "did you mean model"));
    g_error_free(error);
}

/* --- measurement rows --- */

static void test_measurement(void)
{
    static const char text[] =
        "{\"id\":\"row\",\"source\":\"a paper\",\"date\":\"2024-12\",\"confidence\":\"partial\","
        "\"scenario\":{},\"measured\":{\"step_s\":1.5,\"peak_memory_bytes\":\"70 GiB\","
        "\"memory_kind\":\"reserved\"},\"assumed\":[\"this\",\"that\"]}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "rows.json", &error);
    g_assert_no_error(error);
    SpecMeasurement row;
    spec_read_measurement(orr_json_root(doc), "rows.json", &row, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(row.id, ==, "row");
    g_assert_true(row.partial);
    g_assert_cmpfloat(row.measured.step_s, ==, 1.5);
    g_assert_cmpint(row.measured.memory_kind, ==, SPEC_MEMORY_RESERVED);
    g_assert_cmpint(orr_json_type(row.scenario), ==, ORR_JSON_OBJECT);
    g_assert_true(orr_json_set(doc, "measured.step", "1", &error));
    g_assert_false(spec_read_measurement(orr_json_root(doc), "rows.json", &row, &error));
    g_assert_nonnull(
        strstr(error->message, "rows.json: measured.step: unknown key (value 1); did you mean \"step_s\"?"));
    g_error_free(error);
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/tables/fields", test_tables);
    g_test_add_func("/spec/tables/words", test_words);
    g_test_add_func("/spec/tables/help", test_help);
    g_test_add_func("/spec/tables/help-keys", test_help_of_every_key);
    g_test_add_func("/spec/tables/schemas", test_schemas);
    g_test_add_func("/spec/tables/measurement", test_measurement);
    return g_test_run();
}
