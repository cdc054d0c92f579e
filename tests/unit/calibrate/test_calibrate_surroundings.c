/* What a sweep stands on besides a GPU: the processor, files, libraries that may be missing, the ranks of a job. */
#include <glib/gstdio.h>
#include <string.h>

#include "calibrate/measure/host_bench.h"
#include "calibrate/measure/libraries.h"
#include "calibrate/measure/sweep.h"
#include "calibrate/measure/team.h"
#include "tests/unit/kernel_fixture.h"

static char *scratch_folder(void)
{
    GError *error = NULL;
    char *folder = g_dir_make_tmp("orrery-test-surroundings-XXXXXX", &error);
    g_assert_no_error(error);
    return folder;
}

/* --- host and libraries --- */

static void test_host(void)
{
    g_autofree char *folder = scratch_folder();
    static const struct {
        const char *name;
        double bytes;
    } cases[] = {{"host_triad", 12e6}, {"cpu_adam", 28e5}, {"file_write", 16777216}, {"file_read", 16777216}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree CalSample *sample = g_new0(CalSample, 1);
        const CalPoint point = {.kind = CAL_POINT_HOST, .name = cases[i].name, .bytes = cases[i].bytes};
        char reason[200] = "";
        const CalOutcome outcome = cal_host_measure(&point, folder, 0.01, sample, reason, sizeof reason);
        if (outcome == CAL_SKIPPED && strstr(reason, "no direct reading") != NULL)
            continue;
        g_assert_cmpint(outcome, ==, CAL_MEASURED);
        g_assert_cmpint(sample->count, >=, 2);
        g_assert_cmpfloat(sample->error_frac, <=, sample->tolerance_frac);
        for (int j = 0; j < sample->count; j++)
            g_assert_cmpfloat(sample->seconds[j], >, 0);
    }
    g_autofree CalSample *sample = g_new0(CalSample, 1);
    const CalPoint point = {.kind = CAL_POINT_HOST, .name = "file_write", .bytes = 1e6};
    char reason[200] = "";
    g_assert_cmpint(cal_host_measure(&point, "no/such/folder", 0.01, sample, reason, sizeof reason), ==,
                    CAL_SKIPPED);
    g_assert_nonnull(strstr(reason, "no/such/folder"));
    g_rmdir(folder); /* empty: no scratch file is left */
    g_assert_false(g_file_test(folder, G_FILE_TEST_EXISTS));
}

static void test_libraries(void)
{
    char reason[200] = "", text[24];
    CalNccl nccl;
    CalNvml nvml;
    g_setenv("ORRERY_NCCL", "libno-such-nccl.so", TRUE);
    g_assert_false(cal_nccl_load(&nccl, reason, sizeof reason));
    g_assert_nonnull(strstr(reason, "libno-such-nccl.so is not on this machine"));
    g_setenv("ORRERY_NCCL", "libm.so.6", TRUE); /* a library without any of the functions */
    g_assert_false(cal_nccl_load(&nccl, reason, sizeof reason));
    g_assert_nonnull(strstr(reason, "too old"));
    g_setenv("ORRERY_NVML", "libm.so.6", TRUE);
    g_assert_false(cal_nvml_load("0000:00:00.0", &nvml, reason, sizeof reason));
    g_assert_nonnull(strstr(reason, "NVML does not answer"));
    cal_nccl_version_text(22907, text, sizeof text);
    g_assert_cmpstr(text, ==, "2.29.7");
    cal_nccl_version_text(2708, text, sizeof text);
    g_assert_cmpstr(text, ==, "2.7.8");
}

/* A team measures collectives alone, over 1, 2, 4 and all of its nodes and over 2 and 4 ranks of one; quick: over all. */
static void test_team(void)
{
    CalStamp stamp = {
        .device = "NVIDIA H200", .gpus = 48, .nodes = 6, .ranks_per_node = 8, .memory_bytes = 150e9};
    for (int full = 0; full < 2; full++) {
        const CalSweepOptions options = {.full = full == 1, .output = "unused"};
        g_autoptr(GArray) points = cal_sweep_points(&stamp, &options);
        g_autoptr(GHashTable) ids = g_hash_table_new(g_str_hash, g_str_equal);
        int nodes[7] = {0};
        for (guint i = 0; i < points->len; i++) {
            const CalPoint *point = &g_array_index(points, CalPoint, i);
            g_assert_cmpint(point->kind, ==, CAL_POINT_COLLECTIVE);
            if (full == 1 && point->nodes == 1)
                g_assert_true(point->gpus == 2 || point->gpus == 4 || point->gpus == 8);
            else
                g_assert_cmpint(point->gpus, ==, 8 * point->nodes);
            g_assert_true(g_hash_table_add(ids, (gpointer)point->id));
            nodes[point->nodes]++;
        }
        g_assert_cmpint(nodes[6], >, 40);
        for (int some = 1; some <= 4; some *= 2)
            g_assert_true((nodes[some] > 0) == (full == 1));
        g_assert_cmpint(nodes[3] + nodes[5], ==, 0);
    }
    static const char *const lists[][2] = {{"gpu[03-07,12],login1", "gpu03"},
                                           {"a1,a2", "a1"},
                                           {"host.site.org", "host.site.org"},
                                           {"n[9]", "n9"},
                                           {"", NULL},
                                           {",x", NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        char host[32];
        const bool ok = cal_team_first_host(lists[i][0], host, sizeof host);
        g_assert_true(ok == (lists[i][1] != NULL));
        if (ok)
            g_assert_cmpstr(host, ==, lists[i][1]);
    }
    char tiny[4];
    g_assert_false(cal_team_first_host("long", tiny, sizeof tiny));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/surroundings/host", test_host);
    g_test_add_func("/surroundings/libraries", test_libraries);
    g_test_add_func("/surroundings/team", test_team);
    return g_test_run();
}
