/* A sweep of a Blackwell GPU: products in mxfp8 and nvfp4 reach the blocks of 8 and 4 bits, pass by pass; those of Hopper with scales
 * of 128 are told and not fitted. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_kernels.h"
#include "tests/unit/calibrate_machine.h"
#include "tests/unit/draws.h"

/* A B200 node whose narrow products are unlike the preset's. */
static void blackwell_init(Machine *machine)
{
    GError *error = NULL;
    machine_init(machine);
    spec_load_cluster("dgx-b200", &machine->cluster, &error);
    g_assert_no_error(error);
    SpecGemmModel *gemm = machine->cluster.accelerator.model.gemm;
    gemm[SPEC_FP8].peak_frac *= 0.9;
    gemm[SPEC_FP8].backward_weight_frac *= 0.93;
    gemm[SPEC_FP4].peak_frac *= 0.8;
    gemm[SPEC_FP4].backward_weight_frac *= 0.9;
}

static double worst_median(const SpecAccelerator *got, const SpecAccelerator *want, KrnMath math)
{
    double worst = 0;
    for (int pass = 0; pass < 3; pass++) {
        g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
        for (int64_t m = 3072; m <= 12288; m *= 2)
            for (int64_t n = 3072; n <= 24576; n *= 2)
                for (int64_t k = 3072; k <= 12288; k *= 2) {
                    const KrnShape shape = fixture_product(m, n, k, math, pass);
                    const double error =
                        fixture_gemm_s(got, &shape, false) / fixture_gemm_s(want, &shape, false) - 1;
                    if (math != KRN_MATH_NVFP4 || pass != 1) /* gradients of inputs are not swept in 4 bits */
                        g_array_append_val(errors, error);
                }
        double median = 0, p90 = 0, bias = 0;
        if (errors->len > 0)
            cal_error_summary((double *)(void *)errors->data, (int)errors->len, &median, &p90, &bias);
        g_test_message("%s pass %d: median %.2f %%, p90 %.2f %%", cal_math_word(math), pass, 100 * median,
                       100 * p90);
        worst = fmax(worst, median);
    }
    return worst;
}

static void test_narrow(void)
{
    g_autofree char *folder = scratch_folder(), *table = g_build_filename(folder, "table.json", NULL),
                    *profile = g_build_filename(folder, "profile.json", NULL);
    g_autoptr(GString) json = g_string_new(NULL), log = g_string_new(NULL);
    GError *error = NULL;
    Machine machine;
    blackwell_init(&machine);
    const CalStamp stamp = stamp_of(&machine);
    const CalSweepOptions options = {.full = true, .only = "gemm", .output = table, .quiet = true};
    fixture_sweep((CalMeter){&machine, measure}, &stamp, &options, true);
    cal_fit_table(table, NULL, NULL, NULL, json, log, &error);
    g_assert_no_error(error);
    g_test_message("%s", log->str);
    g_assert_true(g_file_set_contents(profile, json->str, -1, NULL));
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *set = g_strconcat("cluster.calibration=", profile, NULL);
    fixture_scenario("{\"model\": \"llama3-8b\", \"cluster\": {\"preset\": \"dgx-b200\"}, \"training\": "
                     "{\"sequence_length\": 4096, \"global_batch\": 32, \"micro_batch\": 1}, \"parallel\": "
                     "{\"data\": 8}}",
                     set, spec);
    const SpecAccelerator *got = &spec->cluster.accelerator, *want = &machine.cluster.accelerator;
    g_assert_cmpfloat(worst_median(got, want, KRN_MATH_MXFP8), <, 0.03);
    g_assert_cmpfloat(worst_median(got, want, KRN_MATH_NVFP4), <, 0.03);
    const SpecAccelerator preset = fixture_preset("b200-sxm-180gb");
    g_assert_cmpfloat(worst_median(&preset, want, KRN_MATH_NVFP4), >, 0.05); /* it would not have done */
    g_unlink(table);
    g_unlink(profile);
    g_rmdir(folder);
}

/* Of a Hopper sweep the rows with scales of 128 are counted with their reason. */
static void test_check_rows(void)
{
    g_autofree char *folder = scratch_folder(), *table = g_build_filename(folder, "table.json", NULL);
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(GArray) rows = NULL;
    GError *error = NULL;
    Machine machine;
    machine_init(&machine);
    const CalStamp stamp = stamp_of(&machine);
    const CalSweepOptions options = {.full = true, .only = "gemm fp8", .output = table, .quiet = true};
    fixture_sweep((CalMeter){&machine, measure}, &stamp, &options, true);
    g_assert_true(cal_table_read(table, &rows, log, &error));
    g_test_message("%s", log->str);
    g_assert_nonnull(strstr(log->str, "skipped 26 rows: products with scales of 128 numbers"));
    int passes[3] = {0};
    for (guint i = 0; i < rows->len; i++)
        passes[g_array_index(rows, CalRow, i).gemm.layout]++;
    for (int pass = 0; pass < 3; pass++)
        g_assert_cmpint(passes[pass], >, 20);
    g_unlink(table);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!SANITIZED)
        g_test_add_func("/blackwell/narrow", test_narrow);
    g_test_add_func("/blackwell/check-rows", test_check_rows);
    return g_test_run();
}
