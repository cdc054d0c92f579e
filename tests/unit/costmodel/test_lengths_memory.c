/* unit/costmodel/test_lengths_memory.c - cached blocks that fit no other text: none where texts are alike, more where the
 * vocabulary is wider, and the same each time. */
#include "costmodel/lengths_memory.h"

#include <string.h>

#include "spec/load.h"

static double stranded(const char *lengths, const char *more, const char *framework, double room_bytes)
{
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama2-7b\",\"cluster\":{\"accelerator\":\"a100-sxm4-80gb\",\"gpus_per_node\":1,"
        "\"nodes\":1},"
        "\"training\":{\"task\":\"lora\",\"adapter\":{\"rank\":8},\"sequence_length\":2048,\"global_batch\":"
        "8,"
        "\"micro_batch\":1,\"recompute\":\"full\",\"lengths\":%s%s},\"execution\":{\"framework\":%s}}",
        lengths, more, framework);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    CostShape shape;
    cost_shape_init(&shape, spec);
    return cost_lengths_stranded_bytes(&shape, spec->model.layers, true, room_bytes);
}

#define PADDED  "{\"mean\":900,\"packed\":false}"
#define PYTORCH "\"transformers-ddp\""

static void test_none(void)
{
    static const char *const cases[][3] = {
        {"{\"mean\":900}", "", PYTORCH}, /* packed */
        {"{\"mean\":900,\"log_sd\":0,\"packed\":false}", "", PYTORCH},
        {"{\"histogram\":[[512,7]],\"packed\":false}", "", PYTORCH},
        {PADDED, "", "{\"preset\":\"transformers-ddp\",\"allocator\":{\"expandable_segments\":true}}"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpfloat(stranded(cases[i][0], cases[i][1], cases[i][2], 1e12), ==, 0);
}

static void test_some(void)
{
    const double some = stranded(PADDED, "", PYTORCH, 1e12);
    g_assert_cmpfloat(some, >, 3e8);
    g_assert_cmpfloat(stranded(PADDED, "", PYTORCH, 1e12), ==, some);
    /* two lengths alone leave less than a spread of them up to the same one */
    g_assert_cmpfloat(stranded("{\"histogram\":[[2040,1],[2048,1]],\"packed\":false}", "", PYTORCH, 1e12), <,
                      some);
    /* a GPU without room gives segments back */
    const double tight = stranded(PADDED, "", PYTORCH, 1e9);
    g_assert_cmpfloat(tight, <, some);
    g_assert_cmpfloat(tight, >=, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lengths-memory/none", test_none);
    g_test_add_func("/lengths-memory/some", test_some);
    return g_test_run();
}
