/* unit/costmodel/test_wires.c - exchanges of all with all keep to the links between the halves of a mesh or torus. */
#include <string.h>

#include "base/json.h"
#include "costmodel/collective.h"
#include "costmodel/wires.h"
#include "spec/load.h"

/* Links of a torus of sides a x b x c that lead from its first half along a to the second, and what has to cross them. */
static double crossing_s(int a, int b, int c, int links_of_chip)
{
    int across = 0;
    for (int x = 0; x < a; x++) {
        const int next = (x + 1) % a;
        across += x < a / 2 && next >= a / 2 ? b * c : 0;
        across += x >= a / 2 && next < a / 2 ? b * c : 0;
    }
    const double half = a * b * c / 2.0;
    return half * half / across * links_of_chip;
}

static void load(const char *preset, Spec *spec)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"%s\"},\"training\":{\"sequence_length\":512,"
        "\"global_batch\":12288,\"precision\":\"%s\"},\"execution\":{\"framework\":\"generic\"},\"parallel\":"
        "{\"data\":\"auto\"}}",
        preset, g_str_equal(preset, "dgx-1") ? "fp16" : "bf16");
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static void test_cuts(void)
{
    static const struct {
        const char *preset;
        int a, b, c, links;
    } rows[] = {{"tpu-v4-pod", 4, 1, 1, 6},   {"tpu-v4-pod", 4, 4, 1, 6},   {"tpu-v4-pod", 4, 4, 4, 6},
                {"tpu-v4-pod", 8, 8, 8, 6},   {"tpu-v5p-pod", 16, 8, 8, 6}, {"tpu-v5e-pod", 16, 16, 1, 4},
                {"tpu-v6e-pod", 16, 16, 1, 4}};
    g_autofree Spec *spec = g_new0(Spec, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const int ranks = rows[i].a * rows[i].b * rows[i].c;
        load(rows[i].preset, spec);
        g_test_message("%s, %d ranks", rows[i].preset, ranks);
        g_assert_cmpfloat_with_epsilon(cost_wires_cut_s(&spec->cluster, ranks),
                                       crossing_s(rows[i].a, rows[i].b, rows[i].c, rows[i].links), 1e-9);
    }
    /* four by four of DGX-1: 16 pairs each way over the 6 links between its boards, of 6 links a GPU */
    load("dgx-1", spec);
    g_assert_cmpfloat_with_epsilon(cost_wires_cut_s(&spec->cluster, 8), 16.0, 1e-9);
    load("dgx-h100", spec);
    g_assert_cmpfloat(cost_wires_cut_s(&spec->cluster, 8), ==, 0);
}

/* Long messages of every size of group: no faster than their cut; a switch is bound by the GPUs' own links. */
static void test_exchange(void)
{
    static const char *const presets[] = {"dgx-1", "tpu-v4-pod", "tpu-v5e-pod"};
    g_autofree Spec *spec = g_new0(Spec, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(presets); i++) {
        load(presets[i], spec);
        const SpecCluster *cluster = &spec->cluster;
        const double link = cluster->scale_up_bytes_per_s > 0 ? cluster->scale_up_bytes_per_s
                                                              : cluster->accelerator.scale_up_bytes_per_s;
        for (int ranks = 2; ranks <= cluster->scale_up_domain_gpus && ranks <= 256; ranks *= 2) {
            const CostCollective all = {
                .op = COST_ALL_TO_ALL, .bytes = 1e9, .group = {.ranks = ranks, .per_domain = ranks}};
            g_assert_cmpfloat(cost_collective_s(cluster, &all), >=,
                              1e9 / ranks * cost_wires_cut_s(cluster, ranks) / link);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wires/cuts", test_cuts);
    g_test_add_func("/wires/exchange", test_exchange);
    return g_test_run();
}
