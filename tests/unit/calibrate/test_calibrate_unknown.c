/* A sweep of a GPU that is no preset becomes an accelerator that stands by itself: known parameters and 3 % of
 * noise, through the fit into a run. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/json.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_kernels.h"
#include "tests/unit/calibrate_fixture.h"
#include "tests/unit/draws.h"
#include "costmodel/gemm.h"
#include "costmodel/memory_bound.h"

#define DEVICE "NVIDIA Q7000"

static CalOutcome measure(void *self, const CalPoint *point, double seconds, CalSample *ret_sample,
                          char *reason, size_t reason_size)
{
    const SpecAccelerator *accelerator = self;
    const KrnShape *s = &point->shape;
    guint32 state = fixture_noise_state(1, point->id);
    double t_s = 0;
    (void)seconds;
    if (strcmp(point->name, "gemm") == 0) {
        t_s = fixture_gemm_s(accelerator, s, false);
        ret_sample->flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    } else if (strcmp(point->name, "copy") == 0 || strcmp(point->name, "triad") == 0) {
        ret_sample->bytes = 6.0 * (double)s->rows * (double)s->cols;
        t_s = cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, ret_sample->bytes);
    } else {
        g_strlcpy(reason, "not of this test", reason_size);
        return CAL_SKIPPED;
    }
    ret_sample->count = 1;
    ret_sample->seconds[0] =
        t_s * (1 + (point->kind == CAL_POINT_DRIFT ? 0.005 : FIXTURE_NOISE_FRAC) * fixture_noise(&state));
    return CAL_MEASURED;
}

static void sweep_into(SpecAccelerator *accelerator, const char *path, const char *only)
{
    CalStamp stamp = {.device = DEVICE, .uuid = "a-stand-in", .gpus = 1, .capability = 90};
    stamp.sm_count = (int)accelerator->sm_count;
    stamp.memory_bytes = accelerator->memory_bytes;
    stamp.l2_bytes = accelerator->l2_bytes;
    const CalSweepOptions options = {.full = !SANITIZED, .only = only, .output = path, .quiet = true};
    fixture_sweep((CalMeter){accelerator, measure}, &stamp, &options, true);
}

static void test_stands_alone(void)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("orrery-test-unknown-XXXXXX", &error),
                    *table = g_build_filename(folder, "table.json", NULL),
                    *file = g_build_filename(folder, "q7000.json", NULL);
    g_autoptr(GString) json = g_string_new(NULL), log = g_string_new(NULL);
    SpecAccelerator truth = fixture_preset("h200-sxm5-141gb"), got;
    truth.sm_count = 96;
    truth.memory_bytes = 96e9;
    truth.memory_bytes_per_s = 3.1e12;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        truth.peak_flops_per_s[i] *= 0.66;
    sweep_into(&truth, table, NULL);
    cal_fit_table(table, NULL, NULL, NULL, json, log, &error);
    g_assert_no_error(error);
    g_test_message("%s", log->str);
    g_assert_nonnull(strstr(log->str, DEVICE " has no preset"));
    g_assert_true(g_file_set_contents(file, json->str, -1, NULL));
    g_assert_true(spec_load_accelerator(file, &got, &error));
    g_assert_cmpstr(got.name, ==, DEVICE);
    fixture_within(got.memory_bytes, 96e9, 1e-9);
    g_assert_cmpstr(got.generation.name, ==, "hopper");
    /* Products that the sweep did not hold. */
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (int64_t m = 768; m <= 12288; m *= 2)
        for (int64_t n = 1536; n <= 24576; n *= 2)
            for (int layout = 0; layout < 3; layout++) {
                const KrnShape shape = {.m = m, .n = n, .k = 6144, .groups = 1, .layout = (KrnLayout)layout};
                const double error_frac =
                    fixture_gemm_s(&got, &shape, false) / fixture_gemm_s(&truth, &shape, false) - 1;
                g_array_append_val(errors, error_frac);
            }
    double median, p90, bias;
    cal_error_summary((double *)(void *)errors->data, (int)errors->len, &median, &p90, &bias);
    g_test_message("%u unseen products: median %.2f %%, p90 %.2f %%, bias %+.2f %%", errors->len,
                   100 * median, 100 * p90, 100 * bias);
    if (!SANITIZED) { /* there the sweep has a fifth of the points */
        g_assert_cmpfloat(median, <, 0.02);
        fixture_within(cost_memory_bound_s(&got, COST_MEMORY_ELEMENTWISE, 3e9),
                       cost_memory_bound_s(&truth, COST_MEMORY_ELEMENTWISE, 3e9), 0.02);
    }
    /* A scenario of these GPUs. */
    g_autofree char *text =
        g_strdup_printf("{\"model\": \"gpt3-1.3b\", \"cluster\": {\"accelerator\": \"%s\", "
                        "\"gpus_per_node\": 1}, \"training\": "
                        "{\"sequence_length\": 2048, \"global_batch\": 2, \"micro_batch\": 1}}",
                        file);
    g_autofree Spec *spec = g_new0(Spec, 1);
    fixture_scenario(text, NULL, spec);
    g_assert_cmpfloat(fixture_step_s(spec), >, 0.01);
    /* A sweep that holds too little to stand for a data sheet. */
    sweep_into(&truth, table, "gemm bf16 TN 4096");
    g_assert_false(cal_fit_table(table, NULL, NULL, NULL, json, log, &error));
    g_assert_nonnull(strstr(error->message, "would stand for its data sheet"));
    g_clear_error(&error);
    g_unlink(table);
    g_unlink(file);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/unknown/stands-alone", test_stands_alone);
    return g_test_run();
}
