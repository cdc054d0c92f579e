/* tests/unit/report/test_report.c - every writer of a report against one filled by hand. */
#include <string.h>

#include "base/json.h"
#include "report/page.h"
#include "report/parts.h"
#include "tests/unit/report_fixture.h"

/* The key names are a contract. */
static void test_json_keys(void)
{
    static const char *const keys[] = {"schema",
                                       "scenario",
                                       "stamp",
                                       "model",
                                       "gpus",
                                       "fits",
                                       "step_s",
                                       "tokens_per_s",
                                       "tokens_per_s_per_gpu",
                                       "model_flops_per_s_per_gpu",
                                       "mfu",
                                       "hfu",
                                       "mfu_by_convention",
                                       "bubble_frac",
                                       "interval",
                                       "time",
                                       "memory",
                                       "training",
                                       "chosen"};
    static const char *const time_keys[] = {
        "compute_s",       "recompute_s",  "tensor_comm_s", "context_comm_s", "expert_comm_s",
        "pipeline_comm_s", "data_comm_s",  "offload_s",     "optimizer_s",    "bubble_s",
        "other_s",         "stragglers_s", "lengths_s",     "input_s"};
    static const char *const stage_keys[] = {"stage",           "weights_bytes",     "gradients_bytes",
                                             "optimizer_bytes", "activations_bytes", "workspace_bytes",
                                             "reserved_bytes",  "peak_bytes"};
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_json(&f->report, out);
    OrrJsonDoc *doc = parse(out);
    const OrrJson *root = orr_json_root(doc);
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        g_assert_nonnull(orr_json_member(root, keys[i]));
    const OrrJson *time = orr_json_member(root, "time"), *memory = orr_json_member(root, "memory");
    g_assert_cmpint(orr_json_count(time), ==, G_N_ELEMENTS(time_keys));
    for (gsize i = 0; i < G_N_ELEMENTS(time_keys); i++)
        g_assert_nonnull(orr_json_member(time, time_keys[i]));
    const OrrJson *stage = orr_json_first(orr_json_member(memory, "stages"));
    for (gsize i = 0; i < G_N_ELEMENTS(stage_keys); i++)
        number_at(stage, stage_keys[i]);
    g_assert_cmpfloat(number_at(stage, "weights_bytes"), ==, 8 * GIB);
    g_assert_cmpstr(orr_json_text(orr_json_member(root, "scenario")), ==, "two \"stages\"");
    g_assert_cmpfloat(number_at(root, "mfu"), ==, 0.512);
    const OrrJson *training = orr_json_member(root, "training");
    g_assert_cmpfloat(number_at(training, "days"), ==, 33.9);
    g_assert_cmpint(orr_json_type(orr_json_member(training, "usd")), ==, ORR_JSON_NULL);
    orr_json_free(doc);
    fixture_free(f);
}

static void test_json_times_add_up(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_json(&f->report, out);
    ReportTime times[REPORT_TIME_COUNT];
    report_times(f->report.part_ps, f->report.bubble_ps, f->report.late_ps, times);
    int64_t sum = 0;
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        sum += ps_of(out->str, times[i].key);
    g_assert_cmpint(sum, ==, ps_of(out->str, "step_s"));
    g_assert_cmpint(sum, ==, f->report.step_ps);
    fixture_free(f);
}

static void test_json_chosen(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    g_ptr_array_add(chosen, "training.micro_batch=2");
    g_ptr_array_add(chosen, "parallel.schedule=1f1b");
    g_ptr_array_add(chosen, "parallel.sequence_parallel=true");
    f->report.chosen = chosen;
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_json(&f->report, out);
    OrrJsonDoc *doc = parse(out);
    const OrrJson *object = orr_json_member(orr_json_root(doc), "chosen");
    g_assert_cmpfloat(number_at(object, "training.micro_batch"), ==, 2);
    g_assert_cmpstr(orr_json_text(orr_json_member(object, "parallel.schedule")), ==, "1f1b");
    g_assert_true(orr_json_bool(orr_json_member(object, "parallel.sequence_parallel")));
    orr_json_free(doc);
    fixture_free(f);
}

/* Each column is a path of the JSON and holds the same value; its cell is empty where there is no such section. */
static void csv_is_the_json(Fixture *f)
{
    g_strlcpy(f->spec.name, "plain", sizeof f->spec.name); /* no quotes: cells can be split at commas */
    g_autoptr(GString) csv = g_string_new(NULL), json = g_string_new(NULL);
    report_write_csv(&f->report, true, csv);
    report_write_json(&f->report, json);
    OrrJsonDoc *doc = parse(json);
    g_auto(GStrv) lines = g_strsplit(csv->str, "\n", -1);
    g_assert_cmpint(g_strv_length(lines), ==, 3); /* header, row, nothing behind the last line end */
    g_auto(GStrv) keys = g_strsplit(g_strchomp(lines[0]), ",", -1);
    g_auto(GStrv) cells = g_strsplit(g_strchomp(lines[1]), ",", -1);
    g_assert_cmpint(g_strv_length(keys), ==, g_strv_length(cells));
    for (int i = 0; keys[i] != NULL; i++) {
        g_auto(GStrv) path = g_strsplit(keys[i], ".", -1);
        const OrrJson *node = orr_json_root(doc);
        for (char **key = path; *key != NULL && node != NULL && orr_json_type(node) == ORR_JSON_OBJECT; key++)
            node = orr_json_member(node, *key);
        if (node == NULL) {
            g_assert_true(g_str_has_prefix(keys[i], "network.dimensions."));
            g_assert_cmpstr(cells[i], ==, "");
            continue;
        }
        if (orr_json_type(node) == ORR_JSON_NUMBER)
            g_assert_cmpfloat(g_ascii_strtod(cells[i], NULL), ==, orr_json_number(node));
        else if (orr_json_type(node) == ORR_JSON_TEXT)
            g_assert_cmpstr(cells[i], ==, orr_json_text(node));
        else if (orr_json_type(node) == ORR_JSON_NULL)
            g_assert_cmpstr(cells[i], ==, "");
        else
            g_assert_cmpstr(cells[i], ==, orr_json_bool(node) ? "true" : "false");
    }
    g_autoptr(GString) row = g_string_new(NULL);
    report_write_csv(&f->report, false, row);
    g_assert_true(g_str_has_suffix(csv->str, row->str));
    orr_json_free(doc);
}

static void test_csv_is_the_json(void)
{
    Fixture *f = fixture_new();
    csv_is_the_json(f);
    f->report.network = (TrafficSummary){.on = true,
                                         .topology = "leaf-spine",
                                         .step_ps = 3 * MS + 1,
                                         .alone_ps = 2 * MS,
                                         .shared_links = 6,
                                         .left_out_links = 3,
                                         .left_out_frac = 0.25};
    f->report.network.dimensions[TRAFFIC_DATA] =
        (TrafficOfDimension){.across = true, .slowest = 2.5, .fastest = 1, .bytes = 536870912};
    csv_is_the_json(f);
    fixture_free(f);
}

static void assert_page(const char *text)
{
    g_assert_true(g_utf8_validate(text, -1, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (g_utf8_strlen(*line, -1) > REPORT_PAGE_WIDTH)
            g_error("%ld columns: %s", g_utf8_strlen(*line, -1), *line);
    }
}

/* The headline's frame: from its upper edge to its lower one all lines end in one column. */
static void assert_box(const char *page)
{
    const char *top = strstr(page, "  \u250c");
    g_assert_nonnull(top);
    g_auto(GStrv) lines = g_strsplit(top, "\n", -1);
    const glong width = g_utf8_strlen(lines[0], -1);
    int at = 1;
    for (; g_str_has_prefix(lines[at], "  \u2502"); at++) {
        g_assert_cmpint(g_utf8_strlen(lines[at], -1), ==, width);
        g_assert_true(g_str_has_suffix(lines[at], "\u2502"));
    }
    g_assert_cmpint(at, >, 1);
    g_assert_true(g_str_has_prefix(lines[at], "  \u2514"));
    g_assert_cmpint(g_utf8_strlen(lines[at], -1), ==, width);
}

static void test_text_says_it(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_text(&f->report, out);
    assert_page(out->str);
    assert_box(out->str);
    static const char *const said[] = {"two \"stages\"",
                                       "STEP 64",
                                       "229,064 tokens/s",
                                       "51.2 %",
                                       "tp4 sp pp2 dp2",
                                       "1,536 sequences of 2,048 tokens",
                                       "Fits:",
                                       "33.9 days",
                                       "13,018 GPU-hours",
                                       "0123456789abcdef",
                                       "training: optimizer=adam"};
    for (gsize i = 0; i < G_N_ELEMENTS(said); i++) {
        if (strstr(out->str, said[i]) == NULL)
            g_error("\"%s\" is missing in\n%s", said[i], out->str);
    }
    f->report.fits = false;
    f->report.memory_verdict = REPORT_MEMORY_NONE;
    f->report.short_bytes = 3 * GIB;
    g_string_truncate(out, 0);
    report_write_text(&f->report, out);
    g_assert_nonnull(strstr(out->str, "DOES NOT FIT: stage 0 lacks 3.00 GiB"));
    fixture_free(f);
}

/* Long names, long pipelines, huge and tiny numbers: never wider than the page, never endless. */
static void test_text_stays_on_the_page(void)
{
    Fixture *f = fixture_new();
    memset(f->spec.name, 'x', sizeof f->spec.name - 1);
    memset(f->spec.model.name, 'y', sizeof f->spec.model.name - 1);
    memset(f->spec.cluster.name, 'z', sizeof f->spec.cluster.name - 1);
    f->spec.name[5] = '\n'; /* a name cannot break the page */
    for (int i = 0; i < 200; i++)
        g_ptr_array_add(f->source.defaulted, "execution.framework.host.kernel_host_s=0.000005");
    fill_stages(f, 64);
    const int64_t steps_ps[] = {0, 1, 5 * MS, INT64_C(9000000000000000000)};
    for (gsize i = 0; i < G_N_ELEMENTS(steps_ps); i++) {
        memset(f->report.part_ps, 0, sizeof f->report.part_ps);
        f->report.bubble_ps = steps_ps[i] / 3;
        f->report.part_ps[SIM_PART_COMPUTE] = steps_ps[i] - steps_ps[i] / 3;
        f->report.step_ps = steps_ps[i];
        g_autoptr(GString) out = g_string_new(NULL);
        report_write_text(&f->report, out);
        assert_page(out->str);
        assert_box(out->str);
        g_assert_nonnull(strstr(out->str, "of 64 stages shown"));
        g_assert_true(g_str_has_prefix(out->str, "xxxxx?xxxxx"));
    }
    fixture_free(f);
}

static void test_text_collapses_equal_stages(void)
{
    Fixture *f = fixture_new();
    fill_stages(f, 8);
    for (int i = 1; i < 7; i++) {
        f->stages[i] = f->stages[1];
        f->stages[i].stage = i;
    }
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_text(&f->report, out);
    g_assert_nonnull(strstr(out->str, "1 to 6"));
    g_assert_null(strstr(out->str, "stages shown"));
    fixture_free(f);
}

static void test_apportion(void)
{
    for (int round = 0; round < 2000; round++) {
        int64_t values[7], units[7], total = 0, sum = 0;
        for (int i = 0; i < 7; i++) {
            values[i] = g_test_rand_int_range(0, 4) == 0 ? 0 : g_test_rand_int_range(1, G_MAXINT32);
            total += values[i];
        }
        const int64_t wanted = g_test_rand_int_range(1, 5000);
        report_page_apportion(values, 7, total, wanted, units);
        for (int i = 0; i < 7; i++) {
            const double exact = total > 0 ? (double)values[i] / (double)total * (double)wanted : 0.0;
            g_assert_cmpfloat(ABS((double)units[i] - exact), <, 1.0);
            sum += units[i];
        }
        g_assert_cmpint(sum, ==, total > 0 ? wanted : 0);
    }
}

static void test_whole(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {7, "7"},
                 {999, "999"},
                 {1000, "1,000"},
                 {-1234567, "-1,234,567"},
                 {999.6, "1,000"},
                 {1e15, "1,000,000,000,000,000"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        char text[ORR_TEXT_SIZE];
        g_assert_cmpstr(report_page_whole(text, cases[i].value), ==, cases[i].text);
    }
    char text[ORR_TEXT_SIZE];
    g_assert_cmpstr(report_page_gpus(text, 1), ==, "1 GPU");
    g_assert_cmpstr(report_page_gpus(text, 1536), ==, "1,536 GPUs");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/json/keys", test_json_keys);
    g_test_add_func("/report/json/times-add-up", test_json_times_add_up);
    g_test_add_func("/report/json/chosen", test_json_chosen);
    g_test_add_func("/report/csv/is-the-json", test_csv_is_the_json);
    g_test_add_func("/report/text/says-it", test_text_says_it);
    g_test_add_func("/report/text/stays-on-the-page", test_text_stays_on_the_page);
    g_test_add_func("/report/text/collapses-equal-stages", test_text_collapses_equal_stages);
    g_test_add_func("/report/page/apportion", test_apportion);
    g_test_add_func("/report/page/whole", test_whole);
    return g_test_run();
}
