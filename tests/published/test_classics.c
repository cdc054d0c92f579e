/* tests/published/test_classics.c - published data-parallel runs of ResNet-50 and BERT-large on several nodes, each from
 * the run of one node that is most like it: that one sets model.time_frac, and nothing else is known of either.
 *
 * Skipped without the reference data ($ORRERY_SHARED). Sequences that are not padded and are half as long as they may be
 * on average are taken as spread evenly from 0 to twice the mean: a standard deviation of 1/sqrt(3) of it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "spec/load.h"

static const char *text_of(const OrrJson *row, const char *key)
{
    const OrrJson *node = row != NULL ? orr_json_member(row, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : "";
}

static double number_of(const OrrJson *row, const char *group, const char *key)
{
    const OrrJson *object = orr_json_member(row, group);
    const OrrJson *node = object != NULL ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : 0;
}

static const char *gpu_of(const OrrJson *row)
{
    return text_of(orr_json_member(row, "hardware"), "gpu");
}

static const char *profile_of(const OrrJson *row)
{
    static const struct {
        const char *gpu, *profile;
    } known[] = {{"NVIDIA A100-PCIe-80GB", "a100-pcie-80gb"},    {"NVIDIA A100-SXM-40GB", "a100-sxm4-40gb"},
                 {"NVIDIA A100-SXM-80GB CTS", "a100-sxm4-80gb"}, {"NVIDIA H100-PCIe-80GB", "h100-pcie-80gb"},
                 {"NVIDIA H100-SXM5-80GB", "h100-sxm5-80gb"},    {"NVIDIA H100-SXM-80GB", "h100-sxm5-80gb"},
                 {"NVIDIA H200-SXM5-141GB", "h200-sxm5-141gb"},  {"NVIDIA L40S", "l40s-pcie"}};
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strcmp(known[i].gpu, gpu_of(row)) == 0)
            return known[i].profile;
    return NULL;
}

static bool is_bert(const OrrJson *row)
{
    return strstr(text_of(row, "id"), "-bert-") != NULL;
}

static double predict_s(const OrrJson *row, double time_frac)
{
    const int gpus = (int)number_of(row, "hardware", "gpus_per_node");
    const double link = number_of(row, "hardware", "link_gbit_per_s_per_node") / 8 * 1e9 / gpus;
    g_autofree char *spread = g_strdup_printf(",\"sample_spread_frac\":%.6f", 1 / sqrt(3.0));
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"preset\":\"%s\",\"time_frac\":%.9f%s},\"cluster\":{\"accelerator\":\"%s\",\"gpus_per_"
        "node\":%d,"
        "\"nodes\":%d,\"scale_up_domain_gpus\":%d,\"scale_out_bytes_per_s_per_gpu\":%.0f},\"training\":{"
        "\"sequence_length\":%d,\"global_batch\":%d,\"micro_batch\":%d,\"precision\":\"fp16\",\"optimizer\":"
        "\"%s\"},"
        "\"execution\":{\"framework\":\"mxnet-horovod\"}}",
        is_bert(row) ? "bert-large-layers" : "resnet-50", time_frac, is_bert(row) ? spread : "",
        profile_of(row), gpus, (int)number_of(row, "hardware", "nodes"), gpus, link > 0 ? link : 1e9,
        is_bert(row) ? 512 : 1, (int)number_of(row, "parallel", "global_batch"),
        (int)number_of(row, "parallel", "batch_per_gpu"), is_bert(row) ? "adam" : "momentum");
    GError *error = NULL;
    OrrArena *arena = orr_arena_new();
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "row", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    Report report;
    const ReportOptions options = {.check = false};
    if (!spec_load_json(orr_json_root(doc), text_of(row, "id"), NULL, false, spec, NULL, &error) ||
        !report_run(spec, NULL, &options, arena, &report, &error))
        g_error("%s", error->message);
    const double seconds = (double)report.step_ps * 1e-12;
    orr_json_free(doc);
    orr_arena_free(arena);
    g_free(spec);
    return seconds;
}

/* The scale with which the run of one node comes out as measured. */
static double fitted_frac(const OrrJson *row)
{
    double frac = 1;
    for (int i = 0; i < 12; i++)
        frac *= number_of(row, "measured", "step_s") / predict_s(row, frac);
    return frac;
}

/* Length of what two systems' names share: those of one vendor's system share most. */
static int likeness(const OrrJson *one, const OrrJson *many)
{
    const char *a = strstr(text_of(one, "id"), is_bert(one) ? "bert-" : "resnet-");
    const char *b = strstr(text_of(many, "id"), is_bert(many) ? "bert-" : "resnet-");
    int shared = 0;
    if (a == NULL || b == NULL)
        return 0;
    a = strchr(a, '-') + 1;
    b = strchr(b, '-') + 1;
    const char *x = strchr(b, 'x');
    if (g_ascii_isdigit(*b) && x != NULL) /* "2x" of so many nodes */
        b = x + 1;
    while (a[shared] != '\0' && a[shared] == b[shared])
        shared++;
    return shared;
}

static const OrrJson *one_node_of(const OrrJson *rows, const OrrJson *row)
{
    const OrrJson *best = NULL;
    double score = -1;
    for (const OrrJson *other = orr_json_first(rows); other != NULL; other = orr_json_next(other)) {
        if (number_of(other, "hardware", "nodes") > 1 || profile_of(other) == NULL ||
            is_bert(other) != is_bert(row) || strcmp(profile_of(other), profile_of(row)) != 0)
            continue;
        const double batch = number_of(other, "parallel", "batch_per_gpu");
        const double own = number_of(row, "parallel", "batch_per_gpu");
        const bool size = (int)number_of(other, "hardware", "gpus_per_node") ==
                          (int)number_of(row, "hardware", "gpus_per_node");
        const double value = 100 * MIN(likeness(other, row), 8) + 10 * size + 1 / (1 + fabs(batch - own));
        if (value > score) {
            best = other;
            score = value;
        }
    }
    return best;
}

static void scaled_runs(void)
{
    const char *shared = g_getenv("ORRERY_SHARED");
    g_autofree char *path =
        g_build_filename(shared != NULL ? shared : "", "reference", "ddp_classics.json", NULL);
    if (shared == NULL || !g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_test_skip("no reference data");
        return;
    }
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    g_assert_no_error(error);
    const OrrJson *rows = orr_json_root(doc);
    double sum = 0;
    int count = 0;
    for (const OrrJson *row = orr_json_first(rows); row != NULL; row = orr_json_next(row)) {
        const OrrJson *base = number_of(row, "hardware", "nodes") > 1 && profile_of(row) != NULL
                                  ? one_node_of(rows, row)
                                  : NULL;
        if (base == NULL)
            continue;
        const double measured = number_of(row, "measured", "step_s");
        const double off = predict_s(row, fitted_frac(base)) / measured - 1;
        printf("# %-56s from %-48s %7.2f ms %+6.1f %%\n", text_of(row, "id"), text_of(base, "id"),
               measured * 1e3, off * 100);
        sum += fabs(off);
        count++;
        g_assert_cmpfloat(fabs(off), <, 0.25);
    }
    orr_json_free(doc);
    printf("# %d runs, mean error %.1f %%\n", count, 100 * sum / count);
    g_assert_cmpint(count, >=, 10);
    g_assert_cmpfloat(sum / count, <=, 0.12);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/classics/scaled", scaled_runs);
    return g_test_run();
}
