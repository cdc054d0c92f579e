/* The points of a scenario's own kernels, from the list that a run writes. */
#include <glib/gstdio.h>
#include <string.h>

#include "calibrate/measure/sweep.h"

/* A scenario's own kernels: each once, in the layout of its pass; what this machine has too few GPUs for is left out. */
static void test_shapes(void)
{
    static const char list[] =
        "piece,count,pass,kernel,kind,beside,recomputed,launches,seconds,size,groups,"
        "flops,flops_per_s,bytes,bytes_per_s\n"
        "layer,80,forward,qkv,gemm,,no,1,1e-4,4096x2560x8192,1,1e11,1e14,,\n"
        "layer,80,forward,qkv,gemm,,yes,1,1e-4,4096x2560x8192,1,1e11,1e14,,\n"
        "layer,80,backward-weight,qkv,gemm,,no,1,1e-4,2560x8192x4096,1,1e11,1e14,,\n"
        "layer,80,forward,attention,attention,,no,1,1e-4,2x4096x4096 heads 32/8 dim 128/128 "
        "causal bf16,,1e11,1e14,,\n"
        "layer,80,backward-input,attention,attention,,no,1,1e-4,1x4096x4096 heads 32/8 dim "
        "128/128 causal fp8,,1e11,1e14,,\n"
        "layer,80,forward,attention,attention,,no,1,1e-4,1x1024x4096 heads 32/8 dim 128/128 "
        "bf16,,1e11,1e14,,\n"
        "layer,80,backward-input,norm,memory,,no,2,1e-5,,,,,100663296,1e12\n"
        "layer,80,forward,gather,collective,qkv,no,1,1e-4,,4,,,67108864,1e11\n"
        "layer,80,forward,reduce,collective,qkv,no,1,1e-4,,64,,,67108864,1e11\n";
    static const char *const want[] = {"gemm bf16 TN 4096x2560x8192",
                                       "gemm bf16 NT+fp32 2560x8192x4096",
                                       "cudnn_forward 2x4096 heads 32/8 dim 128 causal",
                                       "cudnn_backward_fp8 1x4096 heads 32/8 dim 128 causal",
                                       "te_rms_norm_backward 2048x4096",
                                       "all_gather 4 gpus 67108864"};
    g_autofree char *folder = g_dir_make_tmp("orrery-test-shapes-XXXXXX", NULL),
                    *path = g_build_filename(folder, "kernels.csv", NULL);
    CalStamp stamp = {.device = "NVIDIA H200",
                      .gpus = 8,
                      .capability = 90,
                      .memory_bytes = 1.41e11,
                      .cudnn = "9.19.0",
                      .te_kernels = "te_rms_norm te_rms_norm_backward"};
    const CalSweepOptions options = {.shapes = path, .output = "unused"};
    GError *error = NULL;
    g_assert_true(g_file_set_contents(path, list, -1, NULL));
    g_autoptr(GArray) points = cal_sweep_points_of(path, &stamp, &options, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(points->len, ==, G_N_ELEMENTS(want));
    for (guint i = 0; i < points->len; i++)
        g_assert_cmpstr(g_array_index(points, CalPoint, i).id, ==, want[i]);
    g_strlcpy(stamp.te_kernels, "te_rms_norm",
              sizeof stamp.te_kernels); /* the one of the backward pass broke off */
    g_autoptr(GArray) own = cal_sweep_points_of(path, &stamp, &options, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(g_array_index(own, CalPoint, 4).id, ==, "rms_norm_backward 2048x4096");
    g_assert_true(g_file_set_contents(path, "m,n,k\n1,2,3\n", -1, NULL));
    g_assert_null(cal_sweep_points_of(path, &stamp, &options, &error));
    g_assert_nonnull(strstr(error->message, "no kernel to measure"));
    g_clear_error(&error);
    g_unlink(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/shapes/list", test_shapes);
    return g_test_run();
}
