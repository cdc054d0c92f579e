/* unit/costmodel/test_generate_experts.c - how experts, windows in chunks and narrow caches cost while answers are written. */
#include <math.h>
#include <string.h>

#include "costmodel/decode.h"
#include "costmodel/moe.h"
#include "spec/load.h"

static Spec *take(const char *model, const char *precision, const char *more, const char *accelerator)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"%s\",\"cluster\":{\"accelerator\":%s,\"gpus_per_node\":8,\"nodes\":%d},\"training\":{"
        "\"precision\":\"%s\",\"sequence_length\":128,\"global_batch\":16},\"parallel\":{%s},\"execution\":{"
        "\"framework\":"
        "\"tensorrt-llm\"}}",
        model, accelerator, strstr(more, "16") != NULL ? 2 : 1, precision, more);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

#define H100 "\"h100-sxm5-80gb\""

static void near(double value, double want, double frac)
{
    g_assert_cmpfloat_with_epsilon(value, want, frac * fabs(want));
}

/* Engines gather all ranks' rows and scatter sums; without it rows go once to each rank of their experts, of 8 of 128 on 16. */
static void test_exchange(void)
{
    static const struct {
        int nodes;
        bool gathers, narrow;
        const char *precision;
        double bytes; /* of an element on its way */
    } cases[] = {{1, true, false, "bf16", 2},
                 {2, true, false, "bf16", 2},
                 {2, false, false, "bf16", 2},
                 {1, true, true, "nvfp4", 9.0 / 16},
                 {1, true, false, "nvfp4", 2}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const int ranks = 8 * cases[i].nodes;
        g_autofree char *layout = g_strdup_printf("\"expert\":%d,\"data\":%d", ranks, ranks);
        g_autofree Spec *spec = take("qwen3-30b-a3b", cases[i].precision, layout, "\"b200-sxm-180gb\"");
        spec->execution.framework.engine.gathers_rows = cases[i].gathers;
        spec->execution.framework.engine.narrow_rows = cases[i].narrow;
        GError *error = NULL;
        CostDecode decode;
        cost_decode_init(spec, 64, &decode, &error);
        g_assert_no_error(error);
        const double rows = decode.batch[5] * 2048,
                     places = cases[i].gathers ? ranks : cost_moe_places_touched(128, 8, ranks, 0, 0);
        const CostGroup group = decode.shape.expert_group;
        const CostCollective out = {.op = cases[i].gathers ? COST_ALL_GATHER : COST_ALL_TO_ALL,
                                    .bytes = cases[i].bytes * rows * places,
                                    .group = group},
                             back = {.op = cases[i].gathers ? COST_REDUCE_SCATTER : COST_ALL_TO_ALL,
                                     .bytes = 2 * rows * places,
                                     .group = group};
        near(decode.at[5].part_s[COST_DECODE_COMM],
             48 * (cost_collective_s(&spec->cluster, &out) + cost_collective_s(&spec->cluster, &back)), 1e-9);
    }
}

/* Of experts that nobody meets no weights are read: an uneven router, with the same rows, meets fewer. */
static void test_uneven(void)
{
    double products_s[2];
    for (int uneven = 0; uneven < 2; uneven++) {
        g_autofree Spec *spec = take("qwen3-30b-a3b", "bf16", "\"data\":8", H100);
        spec->training.router =
            (SpecRouter){.distribution = SPEC_ROUTER_DIRICHLET, .concentration = uneven ? 0.4 : 1e5};
        GError *error = NULL;
        CostDecode decode;
        cost_decode_init(spec, 16, &decode, &error);
        g_assert_no_error(error);
        products_s[uneven] = decode.at[4].part_s[COST_DECODE_PRODUCTS];
    }
    g_assert_cmpfloat(products_s[1], <, 0.8 * products_s[0]);
}

/* Llama 4: in chunks of w tokens, sequences spread from 0 to 8 w see w / 2 of them on the average of three layers of four. */
static void test_chunks(void)
{
    double attention_s[2];
    for (int chunked = 0; chunked < 2; chunked++) {
        g_autofree Spec *spec = take("llama4-scout-109b", "fp8", "\"tensor\":8", H100);
        spec->model.attention_chunked = chunked == 1;
        GError *error = NULL;
        CostDecode decode;
        cost_decode_init(spec, 4, &decode, &error);
        g_assert_no_error(error);
        const double none = cost_decode_step(&decode, 4, 4).part_s[COST_DECODE_ATTENTION];
        attention_s[chunked] =
            cost_decode_step(&decode, 4, 4 * 4 * 8192.0).part_s[COST_DECODE_ATTENTION] - none;
    }
    near(attention_s[0], attention_s[1] * (12 * 4 + 36) / (12 * 4 + 18), 1e-3);
}

/* Hopper widens 8-bit caches more slowly than its memory brings them: 11 numbers an SM and clock. */
static void test_narrow_cache(void)
{
    g_autofree Spec *spec = take("llama3-8b", "fp8", "\"data\":8", "\"h200-sxm5-141gb\"");
    double seconds[2];
    for (int free = 0; free < 2; free++) {
        if (free == 1)
            spec->cluster.accelerator.generation.narrow_cache_per_clock = 0;
        spec->execution.framework.engine.cache_dtype = SPEC_FP8;
        GError *error = NULL;
        CostDecode decode;
        cost_decode_init(spec, 16, &decode, &error);
        g_assert_no_error(error);
        seconds[free] = cost_decode_step(&decode, 16, 16e5).part_s[COST_DECODE_ATTENTION] -
                        cost_decode_step(&decode, 16, 8e5).part_s[COST_DECODE_ATTENTION];
    }
    const SpecAccelerator *accelerator = &spec->cluster.accelerator;
    near(seconds[0], 8e5 * 32 * 2 * 8 * 128 / (accelerator->peak_flops_per_s[SPEC_BF16] / 4096 * 11), 1e-6);
    near(seconds[1], 8e5 * 32 * 2 * 8 * 128 / accelerator->memory_bytes_per_s, 1e-6);
    g_assert_cmpfloat(seconds[1], <, 0.7 * seconds[0]);
}

/* A measured kernel of attention: its start a layer, rows at a share of the memory's rate, caches at another. Entries are of one
 * format and one generation. */
static void test_measured_attention(void)
{
    g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
    SpecAttentionKernels *kernels = &spec->execution.framework.engine.attention;
    const double rate = spec->cluster.accelerator.memory_bytes_per_s;
    double seconds[4];
    for (int i = 0; i < 4; i++) {
        kernels->kernel[0] =
            (SpecAttentionKernel){SPEC_CACHE_16BIT, spec->cluster.accelerator.generation, 1e-4, 0.5, 0.25};
        spec->execution.framework.engine.cache_dtype = i == 2 ? SPEC_FP8 : SPEC_BF16;
        if (i == 3)
            kernels->kernel[0].generation = *spec_generation("blackwell");
        kernels->count = i == 0 ? 0 : 1;
        GError *error = NULL;
        CostDecode decode;
        cost_decode_init(spec, 16, &decode, &error);
        g_assert_no_error(error);
        seconds[i] = cost_decode_step(&decode, 16, 16e4).part_s[COST_DECODE_ATTENTION];
    }
    const double row = 2 * 2 * (32 + 8) * 128, cache = 2 * 2 * 8 * 128;
    near(seconds[1], 32 * (1e-4 + 16 * row / (0.25 * rate) + 16e4 * cache / (0.5 * rate)), 1e-9);
    near(seconds[3], seconds[0], 1e-9);
    g_assert_cmpfloat(seconds[2], <, 0.6 * seconds[0]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/generate-experts/exchange", test_exchange);
    g_test_add_func("/generate-experts/uneven-router", test_uneven);
    g_test_add_func("/generate-experts/chunks", test_chunks);
    g_test_add_func("/generate-experts/narrow-cache", test_narrow_cache);
    g_test_add_func("/generate-experts/measured-attention", test_measured_attention);
    return g_test_run();
}
