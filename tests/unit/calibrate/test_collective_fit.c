/* The collective fit: it recovers a known model from rows made with it, and meets measured rows where they are at
 * hand ($ORRERY_SHARED/reference/hardware.json), kept-back ones included. */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "calibrate/fit/collectives.h"
#include "calibrate/fit/collective_rows.h"
#include "costmodel/nccl.h"
#include "spec/load.h"

static SpecCluster node(void)
{
    SpecCluster c = {.gpus_per_node = 8, .nodes = 1, .scale_up_domain_gpus = 8, .oversubscription = 1};
    g_strlcpy(c.accelerator.name, "made-up", sizeof c.accelerator.name);
    c.accelerator.generation = *spec_generation("hopper");
    c.scale_up_bytes_per_s = c.accelerator.scale_up_bytes_per_s = 400e9;
    c.accelerator.reference_scale_out_bytes_per_s_per_gpu = 50e9;
    c.accelerator.host_link_bytes_per_s = 60e9;
    SpecCollectiveModel *m = &c.accelerator.model.collectives;
    *m = spec_collective_model_default;
    m->ring_channel_bytes_per_s = 0.8 * 400e9 / m->ring_channels;
    m->nvls_channels = 8, m->nvls_channel_bytes_per_s = 35e9, m->nvls_min_ranks = 5;
    m->offset_s = 3e-6, m->ll_hop_s = 2e-6, m->simple_hop_s = 12e-6, m->ring_frac = 0.7;
    m->ll128_frac = 0.6, m->ll128_hop_s = 3e-6;
    m->nvls_latency_s = 20e-6, m->nvls_fill_s = 50e-6, m->nvls_frac = 0.9;
    m->alltoall_frac = 0.6, m->alltoall_simple_s = 5e-6;
    return c;
}

/* Rows of the model itself, every `step`-th size from `first`, in nccl-tests' terms. */
static OrrJsonDoc *made_up_rows(const SpecCluster *cluster, int first, int step)
{
    static const char *const ops[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall"};
    GString *text = g_string_new("[");
    for (int op = 0; op < 4; op++)
        for (int ranks = 2; ranks <= 8; ranks *= 2)
            for (int i = first; i < 30; i += step) {
                CostCollective c = {
                    (CostCollectiveOp)op, exp2(i), {.ranks = ranks, .per_domain = ranks, .nic_sharers = 1}};
                g_string_append_printf(text,
                                       "%s{\"gpu\":\"made-up\",\"gpus\":%d,\"op\":\"%s\",\"bytes\":%.0f,"
                                       "\"time_us\":%.6f,\"source\":\"self\"}",
                                       text->len > 1 ? "," : "", ranks, ops[op], exp2(i),
                                       1e6 * cost_collective_s(cluster, &c));
            }
    g_string_append_c(text, ']');
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "rows", NULL);
    g_assert_nonnull(doc);
    g_string_free(text, TRUE);
    return doc;
}

static void test_recovers(void)
{
    SpecCluster truth = node(), fitted = truth;
    OrrJsonDoc *some = made_up_rows(&truth, 9, 2), *others = made_up_rows(&truth, 10, 2);
    GString *log = g_string_new(NULL);
    SpecCollectiveModel *m = &fitted.accelerator.model.collectives;
    CalCollectiveErrors errors;
    g_assert_true(cal_fit_collectives_on(orr_json_root(some), &fitted, m, log, NULL));
    g_assert_true(cal_check_collectives_on(orr_json_root(others), &fitted, log, &errors, NULL));
    g_assert_cmpint(errors.rows, ==, 4 * 3 * 10);
    g_assert_cmpfloat(errors.median_frac, <, 0.01);
    g_assert_cmpfloat(errors.p90_frac, <, 0.04);
    g_assert_cmpfloat_with_epsilon(m->ring_frac, 0.7, 0.04);
    g_assert_cmpfloat_with_epsilon(m->nvls_frac, 0.9, 0.04);
    g_assert_cmpfloat_with_epsilon(m->ll_hop_s, 2e-6, 0.2e-6);
    g_string_free(log, TRUE);
    orr_json_free(some);
    orr_json_free(others);
}

static void refused(const char *text, const char *part)
{
    SpecCluster cluster = node();
    SpecCollectiveModel untouched = {.fitted = 7}, model = untouched;
    GError *error = NULL;
    GString *log = g_string_new(NULL);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "rows", NULL);
    g_assert_false(cal_fit_collectives_on(orr_json_root(doc), &cluster, &model, log, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, part));
    g_assert_true(memcmp(&model, &untouched, sizeof model) == 0);
    g_error_free(error);
    orr_json_free(doc);
    g_string_free(log, TRUE);
}

/* Short rows of one process that enqueues for eight GPUs are its launches; its long rows, and a process a GPU, are links. */
static void test_one_process(void)
{
    static const double sizes[] = {1024, 1048576, 1073741824}, us[] = {40, 45, 4000};
    for (int each = 1; each <= 8; each += 7) {
        g_autoptr(GString) text = g_string_new("[");
        for (int i = 0; i < 3; i++)
            g_string_append_printf(
                text,
                "%s{\"gpu\":\"made-up\",\"gpus\":8,\"op\":\"all_reduce\",\"bytes\":%.0f,"
                "\"time_us\":%.0f,\"source\":\"orrery-calibrate\",\"ranks_per_process\":%d}",
                i > 0 ? "," : "", sizes[i], us[i], each);
        g_string_append_c(text, ']');
        const SpecCluster cluster = node();
        g_autoptr(GArray) rows = NULL;
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "rows", NULL);
        g_assert_true(cal_collective_rows(orr_json_root(doc), &cluster, &rows, &error));
        for (int i = 0; i < 3; i++)
            g_assert_cmpint(g_array_index(rows, CalCollectiveRow, i).launch_bound, ==, each == 8 && i < 2);
        orr_json_free(doc);
    }
}

static void test_refuses(void)
{
    refused("{\"rows\":1}", "list of rows");
    refused("[]", "made-up");
    refused("[{\"op\":\"all_reduce\"}]", "\"gpu\"");
    refused("[{\"gpu\":\"made-up\",\"op\":\"sum\"}]", "\"op\"");
    refused("[{\"gpu\":\"made-up\",\"op\":\"all_reduce\",\"gpus\":1,\"bytes\":8}]", "\"gpus\"");
    refused("[{\"gpu\":\"made-up\",\"op\":\"all_reduce\",\"gpus\":2,\"bytes\":8}]", "\"time_us\"");
}

static OrrJsonDoc *measured(void)
{
    const char *shared = g_getenv("ORRERY_SHARED");
    char *path = shared ? g_build_filename(shared, "reference", "hardware.json", NULL) : NULL;
    OrrJsonDoc *doc = path && g_file_test(path, G_FILE_TEST_EXISTS) ? orr_json_read_file(path, NULL) : NULL;
    if (!doc)
        g_test_skip("no measured rows: ORRERY_SHARED/reference/hardware.json");
    g_free(path);
    return doc;
}

static const char *const presets[] = {
    "a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm5-141gb", "b200-sxm-180gb",    "b300-sxm-288gb",
    "gb200-nvl72",    "gb300-nvl72",    "v100-sxm2-32gb",  "rtx-pro-6000-pcie", "l40s-pcie"};
static const guint healthy = G_N_ELEMENTS(presets) - 1; /* the last one's node is sick: test_sick_node */

/* Presets against all rows of one node that show the GPU and not the host. */
static void test_presets(void)
{
    OrrJsonDoc *doc = measured();
    for (guint i = 0; doc && i < healthy; i++) {
        GString *log = g_string_new(NULL);
        CalCollectiveErrors errors;
        GError *error = NULL;
        cal_check_collectives(orr_json_root(doc), presets[i], log, &errors, &error);
        g_assert_no_error(error);
        g_assert_cmpint(errors.rows, >, 20);
        g_assert_cmpfloat(errors.median_frac, <=, 0.08);
        g_string_free(log, TRUE);
    }
    orr_json_free(doc);
}

/* The one measured L40S node slows down with the square of its GPUs, below any path that its links have: the preset
 * keeps its pairs of GPUs and shares links as the healthy PCIe node does, several times faster at eight GPUs. */
static void test_sick_node(void)
{
    OrrJsonDoc *doc = measured();
    SpecAccelerator gpu;
    SpecCluster cluster;
    g_autoptr(GArray) rows = NULL, pairs = g_array_new(FALSE, FALSE, sizeof(double));
    g_assert_true(spec_load_accelerator("l40s-pcie", &gpu, NULL));
    cal_reference_cluster(&gpu, &cluster);
    if (!doc)
        return;
    g_assert_true(cal_collective_rows(orr_json_root(doc), &cluster, &rows, NULL));
    int large = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        const double error = cal_collective_error(&cluster, row);
        if (row->across || row->coarse)
            continue;
        if (row->collective.group.ranks == 2)
            g_array_append_val(pairs, error);
        if (row->collective.group.ranks == 8 && row->collective.bytes >= 1 << 24) {
            g_assert_cmpfloat(error, <, -0.7);
            large++;
        }
    }
    g_assert_cmpint(large, >, 10);
    g_assert_cmpint(pairs->len, >, 50);
    const double median = cal_abs_quantile((const double *)(const void *)pairs->data, (int)pairs->len, .5);
    g_test_message("%u rows of two GPUs: median %.1f %%", pairs->len, 100 * median);
    g_assert_cmpfloat(median, <=, 0.1);
    orr_json_free(doc);
}

/* All those rows together: the middle one, and how far the rows of each size are off. */
static void test_inside_nodes(void)
{
    enum { BANDS = 5 };
    static const double most_bytes[BANDS] = {65536, 1 << 20, 1 << 24, 1 << 28, INFINITY};
    OrrJsonDoc *doc = measured();
    GArray *all = g_array_new(FALSE, FALSE, sizeof(double)), *bands[BANDS];
    for (int b = 0; b < BANDS; b++)
        bands[b] = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; doc && i < G_N_ELEMENTS(presets); i++) {
        SpecAccelerator gpu;
        SpecCluster cluster;
        g_autoptr(GArray) rows = NULL;
        g_assert_true(spec_load_accelerator(presets[i], &gpu, NULL));
        cal_reference_cluster(&gpu, &cluster);
        g_assert_true(cal_collective_rows(orr_json_root(doc), &cluster, &rows, NULL));
        for (guint r = 0; r < rows->len; r++) {
            const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, r);
            if (row->across || row->launch_bound || row->coarse ||
                (i >= healthy && row->collective.group.ranks > 2))
                continue;
            const double error = cal_collective_error(&cluster, row);
            int band = 0;
            while (row->collective.bytes > most_bytes[band])
                band++;
            g_array_append_val(all, error);
            g_array_append_val(bands[band], error);
        }
    }
    for (int b = 0; b < BANDS; b++) {
        const double *errors = (const double *)(const void *)bands[b]->data;
        g_test_message("up to %g bytes: %u rows, median %.2f %%, P90 %.1f %%", most_bytes[b], bands[b]->len,
                       100 * cal_abs_quantile(errors, (int)bands[b]->len, .5),
                       100 * cal_abs_quantile(errors, (int)bands[b]->len, .9));
        g_array_unref(bands[b]);
    }
    const double *errors = (const double *)(const void *)all->data;
    const double median = cal_abs_quantile(errors, (int)all->len, .5);
    g_test_message("%u rows inside a node: median %.2f %%, P90 %.1f %%", all->len, 100 * median,
                   100 * cal_abs_quantile(errors, (int)all->len, .9));
    if (doc) {
        g_assert_cmpint((int)all->len, >, 2000);
        g_assert_cmpfloat(median, <=, 0.04);
    }
    g_array_unref(all);
    orr_json_free(doc);
}

/* Every second row of a GPU. */
static OrrJsonDoc *half(const OrrJsonDoc *doc, int which)
{
    GString *text = g_string_new("[");
    const OrrJson *rows = orr_json_member(orr_json_root(doc), "collective_measurements");
    int i = 0;
    for (const OrrJson *row = orr_json_first(rows); row; row = orr_json_next(row))
        if (i++ % 2 == which) {
            char *one = orr_json_dump(row);
            g_string_append_printf(text, "%s%s", text->len > 1 ? "," : "", one);
            g_free(one);
        }
    g_string_append_c(text, ']');
    OrrJsonDoc *result = orr_json_parse(text->str, text->len, "half", NULL);
    g_string_free(text, TRUE);
    return result;
}

/* Fitted to one half of the rows, the model meets the other half. */
static void test_kept_back(void)
{
    static const char *const names[] = {"a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm5-141gb",
                                        "b200-sxm-180gb", "b300-sxm-288gb", "gb200-nvl72"};
    OrrJsonDoc *doc = measured();
    for (guint i = 0; doc && i < G_N_ELEMENTS(names); i++) {
        OrrJsonDoc *seen = half(doc, 0), *kept = half(doc, 1);
        GString *log = g_string_new(NULL);
        SpecCollectiveModel model;
        SpecAccelerator gpu;
        GError *error = NULL;
        CalCollectiveErrors errors;
        cal_fit_collectives(orr_json_root(seen), names[i], &model, log, &error);
        g_assert_no_error(error);
        g_assert_true(spec_load_accelerator(names[i], &gpu, NULL));
        gpu.model.collectives = model;
        SpecCluster cluster = {.accelerator = gpu,
                               .nodes = 1,
                               .gpus_per_node = 8,
                               .scale_up_domain_gpus = gpu.reference_scale_up_domain_gpus,
                               .scale_up_bytes_per_s = gpu.scale_up_bytes_per_s,
                               .oversubscription = 1};
        g_assert_true(cal_check_collectives_on(orr_json_root(kept), &cluster, log, &errors, NULL));
        g_test_message("%s: %d kept-back rows, median %.1f %%, P90 %.1f %%", names[i], errors.rows,
                       100 * errors.median_frac, 100 * errors.p90_frac);
        g_assert_cmpfloat(errors.median_frac, <=, 0.08);
        g_string_free(log, TRUE);
        orr_json_free(seen);
        orr_json_free(kept);
    }
    orr_json_free(doc);
}

/* One preset cluster with eight GPUs a node. */
static SpecCluster preset_cluster(const char *name, int nodes)
{
    char *text =
        g_strdup_printf("{\"schema\":1,\"name\":\"x\",\"model\":\"gpt3-125m\",\"cluster\":{\"preset\":\"%s\","
                        "\"nodes\":%d},\"training\":{\"sequence_length\":1024,\"global_batch\":%d,"
                        "\"micro_batch\":1,\"precision\":\"bf16\"},\"parallel\":{}}",
                        name, nodes, 8 * nodes);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "cluster", NULL);
    Spec *spec = g_new0(Spec, 1);
    GError *error = NULL;
    spec_load_json(orr_json_root(doc), "cluster", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    SpecCluster cluster = spec->cluster;
    g_free(spec);
    orr_json_free(doc);
    g_free(text);
    return cluster;
}

/* All-reduce bus bandwidth across nodes. [Nanotron] for p5 (256 MB), [MlEngineering] for p5en and p6, whose rows name the
 * algorithm that they were measured with. */
static void test_across_nodes(void)
{
    enum { CHOSEN = COST_NCCL_ALGORITHM_COUNT };
    static const struct {
        const char *preset;
        int nodes, algorithm;
        double bytes, busbw_bytes_per_s, tolerance_frac;
    } rows[] = {
        {"aws-p5", 1, CHOSEN, 268435456, 436.0e9, 0.15},
        {"aws-p5", 2, CHOSEN, 268435456, 361.7e9, 0.15},
        {"aws-p5", 4, CHOSEN, 268435456, 160.1e9, 0.15},
        {"aws-p5", 8, CHOSEN, 268435456, 99.6e9, 0.15},
        {"aws-p5", 16, CHOSEN, 268435456, 84.7e9, 0.15},
        {"aws-p5", 32, CHOSEN, 268435456, 64.9e9, 0.15},
        {"aws-p5", 64, CHOSEN, 268435456, 32.9e9, 0.15},
        {"aws-p5en", 4, COST_NCCL_NVLS_TREE, 4294967296, 310.07e9, 0.1},
        {"aws-p5en", 4, COST_NCCL_RING, 4294967296, 364.7e9, 0.05},
        {"aws-p6-b200", 4, CHOSEN, 4294967296, 377.34e9, 0.1},
        {"aws-p6-b200", 4, CHOSEN, 1073741824, 361.99e9, 0.1},
        {"aws-p6-b200", 4, CHOSEN, 134217728, 197.94e9, 0.2},
        {"aws-p6-b200", 4, CHOSEN, 8388608, 35.12e9, 0.2},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        SpecCluster cluster = preset_cluster(rows[i].preset, rows[i].nodes);
        int ranks = 8 * rows[i].nodes;
        CostCollective c = {
            COST_ALL_REDUCE, rows[i].bytes, {.ranks = ranks, .per_domain = 8, .nic_sharers = 1}};
        const double predicted =
            rows[i].algorithm == CHOSEN
                ? cost_collective_s(&cluster, &c)
                : cost_collective_by_s(&cluster, &c, (CostNcclAlgorithm)rows[i].algorithm);
        double measured = 2.0 * (ranks - 1) / ranks * rows[i].bytes / rows[i].busbw_bytes_per_s;
        double error = predicted / measured - 1;
        g_test_message("%s, %d nodes, %.0f bytes: %+.1f %%", rows[i].preset, rows[i].nodes, rows[i].bytes,
                       100 * error);
        g_assert_cmpfloat(fabs(error), <=, rows[i].tolerance_frac);
    }
}

/* The fabric of a measured row, by what its source says of it; false: it does not say enough. */
static bool fabric_of(const char *network, int nodes, SpecCluster *ret)
{
    static const struct {
        const char *says, *preset;
    } fabrics[] = {
        {"p4de", "aws-p4de"}, {"p5.48xlarge", "aws-p5"}, {"SHARP", "dgx-h100"}, {"NVL72", "gb200-nvl72"}};
    for (guint i = 0; i < G_N_ELEMENTS(fabrics); i++) {
        if (strstr(network, fabrics[i].says) == NULL)
            continue;
        *ret = preset_cluster(fabrics[i].preset, nodes);
        ret->collectives.sharp = strstr(network, "SHARP") != NULL;
        if (strstr(network, "EKS") !=
            NULL) { /* a container without the tuner plug-in and without NVLink-SHARP */
            ret->collectives.tuner = SPEC_TUNER_NCCL;
            ret->accelerator.model.collectives.nvls_channels = 0;
        }
        return true;
    }
    return false;
}

/* Every published row over several nodes whose fabric is known. Of twenty racks nothing is known but their number; they are
 * printed and counted like the others. */
static void test_published_rows(void)
{
    const char *shared = g_getenv("ORRERY_SHARED");
    g_autofree char *path =
        shared ? g_build_filename(shared, "reference", "collectives_multinode.json", NULL) : NULL;
    OrrJsonDoc *doc = path && g_file_test(path, G_FILE_TEST_EXISTS) ? orr_json_read_file(path, NULL) : NULL;
    double errors[128];
    int count = 0;
    if (!doc) {
        g_test_skip("no measured rows: ORRERY_SHARED/reference/collectives_multinode.json");
        return;
    }
    for (const OrrJson *row = orr_json_first(orr_json_root(doc)); row; row = orr_json_next(row)) {
        const char *network = orr_json_text_of(row, "network", "");
        const int gpus = (int)orr_json_number_of(row, "gpus", 0),
                  nodes = (int)orr_json_number_of(row, "nodes", 1);
        SpecCluster cluster;
        if (nodes < 2 || !fabric_of(network, nodes, &cluster))
            continue;
        const CostCollective c = {
            COST_ALL_REDUCE,
            orr_json_number_of(row, "bytes", 0),
            {.ranks = gpus, .per_domain = MIN(gpus, MAX(cluster.scale_up_domain_gpus, 1)), .nic_sharers = 1}};
        errors[count] = cost_collective_s(&cluster, &c) / (1e-6 * orr_json_number_of(row, "time_us", 0)) - 1;
        g_test_message("%s, %.0f bytes: %+.1f %%", network, c.bytes, 100 * errors[count]);
        count++;
    }
    g_test_message("%d rows over nodes: median %.1f %%, P90 %.1f %%", count,
                   100 * cal_abs_quantile(errors, count, 0.5), 100 * cal_abs_quantile(errors, count, 0.9));
    g_assert_cmpint(count, ==, 45);
    g_assert_cmpfloat(cal_abs_quantile(errors, count, 0.5), <=, 0.05);
    g_assert_cmpfloat(cal_abs_quantile(errors, count, 0.9), <=, 0.12);
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/collective-fit/recovers", test_recovers);
    g_test_add_func("/collective-fit/one-process", test_one_process);
    g_test_add_func("/collective-fit/refuses", test_refuses);
    g_test_add_func("/collective-fit/presets", test_presets);
    g_test_add_func("/collective-fit/sick-node", test_sick_node);
    g_test_add_func("/collective-fit/inside-nodes", test_inside_nodes);
    g_test_add_func("/collective-fit/kept-back", test_kept_back);
    g_test_add_func("/collective-fit/across-nodes", test_across_nodes);
    g_test_add_func("/collective-fit/published-rows", test_published_rows);
    return g_test_run();
}
