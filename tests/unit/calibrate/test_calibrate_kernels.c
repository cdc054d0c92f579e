/* Fitting kernels: the simplex search, splicing JSON, recovering a known model, messages, and the error of the
 * presets on the reference table where it is at hand. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/file.h"
#include "calibrate/fit/check.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/minimize.h"
#include "calibrate/fit/splice.h"
#include "tests/unit/kernel_fixture.h"

static double bowl(void *context)
{
    const double *x = context;
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        const double away = log(x[i] / (i + 1));
        sum += (i + 1) * away * away;
    }
    return sum;
}

static void test_minimize(void)
{
    double x[6] = {3, 3, 3, 3, 3, 3};
    CalNumber numbers[6];
    for (int i = 0; i < 6; i++)
        numbers[i] = (CalNumber){.value = &x[i], .min = i == 5 ? 7 : 0.01, .max = 100};
    cal_minimize(numbers, 6, bowl, x, 0, 4);
    for (int i = 0; i < 5; i++)
        fixture_within(x[i], i + 1, 1e-2);
    fixture_within(x[5], 7, 1e-6); /* held at its bound */
}

static void test_splice(void)
{
    static const struct {
        const char *json, *want;
    } cases[] = {
        {"{\"a\": 1e3, \"m\": {\"x\": [1, {\"y\": \"}\"}], \"g\": {\"old\": 1}, \"z\": 2}}",
         "{\"a\": 1e3, \"m\": {\"x\": [1, {\"y\": \"}\"}], \"g\": NEW, \"z\": 2}}"},
        {"{\"m\": {\"g\": 7}}", "{\"m\": {\"g\": NEW}}"},
        {"{\"m\": {\"x\": 1}, \"g\": 2}", "{\"m\": {\"x\": 1,\n    \"g\": NEW}, \"g\": 2}"},
        {"{\"m\": {}}", "{\"m\": {\n    \"g\": NEW\n}}"},
        {"{\"a\": \"\\\"m\\\": {\"}", "{\"a\": \"\\\"m\\\": {\",\n  \"m\": {\n    \"g\": NEW\n  }}"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *got = cal_splice(cases[i].json, "m", "g", "NEW");
        g_assert_cmpstr(got, ==, cases[i].want);
        g_free(got);
    }
}

/* A table as another machine would have measured it: memory at 0.6, tensor cores at 0.7 of the sheet. */
static char *synthetic_table(void)
{
    SpecAccelerator accelerator = fixture_preset("a100-sxm4-80gb");
    accelerator.model.gemm_shared.memory_frac = 0.6;
    accelerator.model.gemm[SPEC_BF16].peak_frac = 0.7;
    accelerator.model.gemm[SPEC_BF16].power_frac = 0.5;
    GString *text = g_string_new("{\"gemm_measurements\": [");
    const char *comma = "";
    for (double m = 16; m <= 16384; m *= 4)
        for (double n = 1024; n <= 16384; n *= 2)
            for (double k = 1024; k <= 16384; k *= 4) {
                const CostGemm gemm = {.m = m, .n = n, .k = k, .groups = 1, .dtype = SPEC_BF16};
                char number[G_ASCII_DTOSTR_BUF_SIZE];
                g_ascii_dtostr(number, sizeof number, 1e6 * cost_gemm_s(&accelerator, &gemm));
                g_string_append_printf(
                    text,
                    "%s{\"gpu\": \"a100-sxm4-80gb\", \"source\": \"bench\", \"m\": %.0f, \"n\": "
                    "%.0f, \"k\": %.0f, \"dtype\": \"bf16\", \"time_us\": %s}",
                    comma, m, n, k, number);
                comma = ",";
            }
    g_string_append(text,
                    "], \"attention_measurements\": [{\"gpu\": \"a100-sxm4-80gb\", \"pass\": \"both\"}]}");
    char *path = g_build_filename(g_get_tmp_dir(), "orrery-test-kernels-XXXXXX", NULL);
    const int file = g_mkstemp(path);
    g_assert_cmpint(file, >=, 0);
    g_close(file, NULL);
    g_assert_true(g_file_set_contents(path, text->str, -1, NULL));
    g_string_free(text, TRUE);
    return path;
}

/* Of two weight gradients of one product, neither saying what it is added to, the shorter goes to 16 bits; a row that
 * says so, or stands alone, keeps its word. */
static void test_tells_sums(void)
{
    static const char *const row = "{\"gpu\": \"b200-sxm-180gb\", \"source\": \"bench\", \"groups\": 8, "
                                   "\"m_per_group\": %d, \"n\": 4096, \"k\": 7168, \"dtype\": \"bf16\", "
                                   "\"stage\": \"bwd_grad_w\", \"tflops\": %d%s}";
    static const struct {
        int tokens, tflops;
        const char *more;
        bool fp32;
    } cases[] = {
        {128, 100, "", true},
        {128, 200, "", false},
        {128, 300, ", \"accumulate\": true", true},
        {256, 200, "", true},
    };
    g_autoptr(GString) text = g_string_new("{\"grouped_gemm_measurements\": [");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_string_append(text, i > 0 ? ", " : "");
        g_string_append_printf(text, row, cases[i].tokens, cases[i].tflops, cases[i].more);
    }
    g_string_append(text, "]}");
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "table", &error);
    g_assert_no_error(error);
    g_autoptr(GArray) rows = cal_table_rows(orr_json_root(doc), NULL);
    g_assert_cmpint(rows->len, ==, G_N_ELEMENTS(cases));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const CostGemm *gemm = &g_array_index(rows, CalRow, i).gemm;
        g_assert_cmpint(gemm->accumulate_fp32, ==, cases[i].fp32);
        g_assert_cmpint(gemm->accumulate, ==, !cases[i].fp32);
    }
    orr_json_free(doc);
}

static double fitted(const OrrJson *root, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (char **key = keys; *key != NULL; key++) {
        root = orr_json_member(root, *key);
        g_assert_nonnull(root);
    }
    return orr_json_number(root);
}

static void test_recovers(void)
{
    char *path = synthetic_table();
    g_autoptr(GString) json = g_string_new(NULL), again = g_string_new(NULL), log = g_string_new(NULL);
    GError *error = NULL;
    cal_fit_table(path, "a100-sxm4-80gb", NULL, NULL, json, log, &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(log->str, "skipped 1 rows"));
    OrrJsonDoc *doc = orr_json_parse(json->str, json->len, "fit", &error);
    g_assert_no_error(error);
    const OrrJson *root = orr_json_root(doc);
    fixture_within(fitted(root, "model.gemm.shared.memory_frac"), 0.6, 0.03);
    fixture_within(fitted(root, "model.gemm.bf16.peak_frac"), 0.7, 0.08);
    g_assert_cmpfloat(fitted(root, "model.gemm.bf16.fit_rows"), ==, 90);
    g_assert_cmpfloat(fitted(root, "model.gemm.bf16.fit_median_frac"), <, 0.01);
    g_assert_cmpfloat(fitted(root, "model.gemm.bf16.fit_p90_frac"), <, 0.03);
    orr_json_free(doc);
    cal_fit_table(path, "a100-sxm4-80gb", NULL, NULL, again, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json->str, ==, again->str);
    g_remove(path);
    g_free(path);
}

/* The attention block of a fitted profile, as a run of the preset has it. */
static SpecAttentionModel fixture_profile_attention(const char *path)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *set = g_strconcat("cluster.calibration=", path, NULL);
    const char *sets[] = {set, NULL};
    static const char text[] =
        "{\"model\": \"llama3-8b\", \"cluster\": {\"preset\": \"dgx-h200\"}, \"training\": "
        "{\"sequence_length\": 4096, \"global_batch\": 8, \"micro_batch\": 1}, "
        "\"parallel\": {\"data\": 8}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    spec_load_json(orr_json_root(doc), "test", sets, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec->cluster.accelerator.model.attention[SPEC_ATTENTION_CUDNN];
}

/* Kernels one at a time on a chip that idles between: the power limit acts twenty times later than in a step. */
static void burst_rows(const SpecAccelerator *truth, GString *text)
{
    SpecAccelerator burst = *truth;
    const char *comma = "";
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        burst.model.gemm[i].throttle_s *= 20;
    g_string_append(text, "{\"attention_measurements\": [");
    for (int i = 0; i < 64; i++) {
        const CostAttention a = {.kernel = SPEC_ATTENTION_CUDNN,
                                 .batch = 1 + i % 2,
                                 .q_tokens = 1024 << i / 8 % 6,
                                 .kv_tokens = 1024 << i / 8 % 6,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .qk_head_dim = 128,
                                 .v_head_dim = 128,
                                 .causal = i / 2 % 2 == 0,
                                 .backward = i / 4 % 2 == 0,
                                 .dtype = i % 2 == 0 ? SPEC_BF16 : SPEC_FP8};
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_dtostr(number, sizeof number, 1e6 * cost_attention_s(&burst, &a));
        g_string_append_printf(
            text,
            "%s{\"gpu\": \"h200-sxm5-141gb\", \"source\": \"cudnn-frontend\", \"burst\": true, "
            "\"kernel\": \"cuDNN\", \"pass\": \"%s\", \"batch\": %d, \"seq\": %.0f, \"heads\": 64, "
            "\"kv_heads\": 8, \"head_dim\": 128, \"causal\": %s, \"dtype\": \"%s\", \"time_us\": %s}",
            comma, a.backward ? "bwd" : "fwd", 1 + i % 2, a.q_tokens, a.causal ? "true" : "false",
            i % 2 == 0 ? "bf16" : "fp8", number);
        comma = ",";
    }
    g_string_append(text, "]}");
}

/* From bursts alone come the kernel in a training step, slower where it is long, and the backward's share in 8 bits. */
static void test_bursts(void)
{
    SpecAccelerator truth = fixture_preset("h200-sxm5-141gb"), got;
    SpecAttentionModel *model = &truth.model.attention[SPEC_ATTENTION_CUDNN];
    model->peak_frac *= 0.9;
    model->backward_fp8_frac = 0.4;
    g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL), log = g_string_new(NULL);
    burst_rows(&truth, text);
    g_autofree char *folder = g_dir_make_tmp("orrery-test-XXXXXX", NULL),
                    *path = g_build_filename(folder, "bursts.json", NULL);
    GError *error = NULL;
    g_assert_true(g_file_set_contents(path, text->str, -1, NULL));
    cal_fit_table(path, "h200-sxm5-141gb", NULL, NULL, json, log, &error);
    g_assert_no_error(error);
    g_assert_true(g_file_set_contents(path, json->str, -1, NULL));
    OrrJsonDoc *doc = orr_json_parse(json->str, json->len, "fit", &error);
    g_assert_no_error(error);
    fixture_within(fitted(orr_json_root(doc), "model.attention.cudnn.backward_fp8_frac"), 0.4, 0.05);
    g_assert_cmpfloat(fitted(orr_json_root(doc), "model.attention.cudnn.fit_median_frac"), <, 0.01);
    orr_json_free(doc);
    got = truth;
    got.model.attention[SPEC_ATTENTION_CUDNN] = fixture_profile_attention(path);
    CostAttention a = {.kernel = SPEC_ATTENTION_CUDNN,
                       .batch = 2,
                       .heads = 64,
                       .kv_heads = 8,
                       .qk_head_dim = 128,
                       .v_head_dim = 128,
                       .causal = true,
                       .dtype = SPEC_BF16};
    for (double tokens = 1536; tokens <= 49152; tokens *= 2) {
        a.q_tokens = a.kv_tokens = tokens;
        fixture_within(cost_attention_s(&got, &a), cost_attention_s(&truth, &a), 0.03);
    }
    g_remove(path);
    g_rmdir(folder);
}

static void test_messages(void)
{
    char *path = synthetic_table();
    g_autoptr(GString) out = g_string_new(NULL), log = g_string_new(NULL);
    GError *error = NULL;
    g_assert_false(cal_fit_table(path, "a100-sxm4-8gb", NULL, NULL, out, log, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "did you mean \"a100-sxm4-80gb\""));
    g_clear_error(&error);
    g_assert_false(cal_fit_table(path, "h100-sxm5-80gb", NULL, NULL, out, log, &error));
    g_assert_nonnull(strstr(error->message, "no row"));
    g_clear_error(&error);
    g_assert_cmpuint(out->len, ==, 0);
    g_assert_true(g_file_set_contents(path, "[]", -1, NULL));
    g_assert_false(cal_fit_table(path, "a100-sxm4-80gb", NULL, NULL, out, log, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_clear_error(&error);
    g_remove(path);
    g_free(path);
}

/* 8 % at the median for every source with five rows, 20 % at the 90th percentile with twenty. The training
 * rows of the B200 mix two power states that no column tells apart: 25 % there. */
static void test_reference_table(void)
{
    const char *shared = g_getenv("ORRERY_SHARED");
    g_autofree char *path =
        shared != NULL ? g_build_filename(shared, "reference", "hardware.json", NULL) : NULL;
    if (path == NULL || !g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_test_skip("no reference table: set ORRERY_SHARED");
        return;
    }
    g_autoptr(GArray) groups = NULL;
    g_autoptr(GString) log = g_string_new(NULL);
    GError *error = NULL;
    cal_check_table(path, NULL, &groups, log, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(groups->len, >=, 30);
    for (guint i = 0; i < groups->len; i++) {
        const CalCheckGroup *group = &g_array_index(groups, CalCheckGroup, i);
        if (group->rows < 5)
            continue;
        const bool mixed = strcmp(group->accelerator, "b200-sxm-180gb") == 0 &&
                           strcmp(group->kind, "gemm") == 0 && strcmp(group->source, "simumax") == 0;
        g_test_message("%s %s %s %s: median %.3f, p90 %.3f", group->accelerator, group->kind, group->block,
                       group->source, group->median_frac, group->p90_frac);
        g_assert_cmpfloat(group->median_frac, <=, 0.08);
        if (group->rows >= 20)
            g_assert_cmpfloat(group->p90_frac, <=, mixed ? 0.25 : 0.20);
    }
}

/* 16-bit products of a GPU without bf16 are its fp16 block: a fit moves it, `check` names it. */
static void test_before_bf16(void)
{
    g_autoptr(GString) text = g_string_new("m,n,k,dtype,time_us,gpu,source\n");
    for (int m = 1024; m <= 8192; m *= 2)
        for (int n = 1024; n <= 8192; n *= 2)
            g_string_append_printf(text, "%d,%d,4096,fp16,%.0f,t4-16gb,bench\n", m, n,
                                   2e6 * m * n * 4096 / (0.3 * 65e12));
    g_autofree char *folder = g_dir_make_tmp("orrery-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "fp16.csv", NULL);
    g_assert_true(g_file_set_contents(path, text->str, -1, NULL));
    g_autoptr(GString) json = g_string_new(NULL), log = g_string_new(NULL);
    GError *error = NULL;
    cal_fit_table(path, "t4-16gb", NULL, NULL, json, log, &error);
    g_assert_no_error(error);
    OrrJsonDoc *doc = orr_json_parse(json->str, json->len, "fit", &error);
    g_assert_no_error(error);
    const OrrJson *root = orr_json_root(doc);
    g_assert_cmpfloat(fitted(root, "model.gemm.fp16.fit_rows"), ==, 16);
    g_assert_cmpfloat(fitted(root, "model.gemm.fp16.fit_median_frac"), <, 0.05);
    g_assert_null(orr_json_member(orr_json_member(orr_json_member(root, "model"), "gemm"), "bf16"));
    orr_json_free(doc);
    g_autoptr(GArray) groups = NULL;
    cal_check_table(path, "t4-16gb", &groups, log, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(g_array_index(groups, CalCheckGroup, 0).block, ==, "fp16");
    g_remove(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/calibrate/minimize", test_minimize);
    g_test_add_func("/calibrate/splice", test_splice);
    g_test_add_func("/calibrate/tells-sums", test_tells_sums);
    g_test_add_func("/calibrate/recovers", test_recovers);
    g_test_add_func("/calibrate/bursts", test_bursts);
    g_test_add_func("/calibrate/messages", test_messages);
    g_test_add_func("/calibrate/before-bf16", test_before_bf16);
    g_test_add_func("/calibrate/reference-table", test_reference_table);
    return g_test_run();
}
