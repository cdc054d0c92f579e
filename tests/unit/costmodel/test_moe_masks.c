/* tests/unit/costmodel/test_moe_masks.c - tokens moved by products with one-hot masks (costmodel/ops_moe_masks.c). */
#include <math.h>
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/ops_moe.h"
#include "spec/load.h"

static void loaded(const char *dispatcher, double factor, Spec *spec)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"preset\":\"deepseek-v3\",\"moe\":{\"capacity_factor\":%g}},\"cluster\":{\"preset\":"
        "\"dgx-h100\","
        "\"nodes\":1},\"training\":{\"sequence_length\":4096,\"micro_batch\":2,\"global_batch\":16},"
        "\"parallel\":{"
        "\"expert\":8,\"data\":8,\"moe_dispatcher\":\"%s\"},\"execution\":{\"framework\":\"maxtext\"}}",
        factor, dispatcher);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    spec_load_json(orr_json_root(doc), "test", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

/* Full FLOPs of the ops whose name has `part`; how many there are. */
static double flops(const Spec *spec, CostPass pass, const char *part, int *ret_count)
{
    CostShape shape;
    g_autofree CostOps *ops = g_new0(CostOps, 1);
    double sum = 0;
    *ret_count = 0;
    cost_shape_init(&shape, spec);
    cost_ops_moe(&shape, pass, 0, ops);
    for (int i = 0; i < ops->count; i++)
        if (strstr(ops->op[i].name, part) != NULL) {
            sum += ops->op[i].full_flops;
            g_assert_cmpfloat(strcmp(part, "mask") == 0 ? ops->op[i].model_flops : 0, ==, 0);
            (*ret_count)++;
        }
    return sum;
}

/* Two sequences of 4,096: 128 choices an expert, 160 slots with a factor of 1.25, of 256 experts. */
static void test_products(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    const double one = 2.0 * 4096 * (160 * 256) * 7168 * 2;
    int count;
    loaded("one-hot", 1.25, spec);
    g_assert_cmpfloat_with_epsilon(flops(spec, COST_FORWARD, "mask", &count) / one, 2, 1e-12);
    g_assert_cmpint(count, ==, 3);
    g_assert_cmpfloat_with_epsilon(flops(spec, COST_BACKWARD_INPUT, "mask", &count) / one, 3, 1e-12);
    g_assert_cmpfloat_with_epsilon(flops(spec, COST_BACKWARD_WEIGHT, "mask", &count), 0, 1e-12);
    flops(spec, COST_FORWARD, "permute", &count);
    g_assert_cmpint(count, ==, 0);
    loaded("alltoall", 1.25, spec);
    flops(spec, COST_FORWARD, "mask", &count);
    g_assert_cmpint(count, ==, 0);
    flops(spec, COST_FORWARD, "permute", &count);
    g_assert_cmpint(count, ==, 2);
}

/* The experts' own rows do not differ. */
static void test_same_experts(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    int count;
    loaded("one-hot", 2, spec);
    const double masked = flops(spec, COST_FORWARD, "experts", &count);
    loaded("alltoall", 2, spec);
    g_assert_cmpfloat(flops(spec, COST_FORWARD, "experts", &count), ==, masked);
    g_assert_cmpfloat(cost_mask_slots(&spec->model.moe, 4096), ==, 256 * 256);
}

/* Buffers of a static shape: eight ranks' rows where experts are many, no more than experts over choices; what passes
 * over rows passes over that room, and products do not. */
static void test_buffers(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    CostShape shape;
    int count;
    loaded("ragged", 0, spec);
    spec->training.router.distribution = SPEC_ROUTER_EVEN;
    cost_shape_init(&shape, spec);
    g_assert_cmpfloat_with_epsilon(cost_moe_buffer_frac(&shape), 8, 1e-12);
    spec->model.moe.top_k = 64;
    cost_shape_init(&shape, spec);
    g_assert_cmpfloat_with_epsilon(cost_moe_buffer_frac(&shape), 4, 1e-12);
    spec->parallel.moe_dispatcher = SPEC_DISPATCHER_ALLTOALL;
    cost_shape_init(&shape, spec);
    g_assert_cmpfloat(cost_moe_buffer_frac(&shape), ==, 1);
    spec->model.moe.top_k = 8;
    const double plain = flops(spec, COST_FORWARD, "experts", &count);
    spec->parallel.moe_dispatcher = SPEC_DISPATCHER_RAGGED;
    g_assert_cmpfloat(flops(spec, COST_FORWARD, "experts", &count), ==, plain);
}

static void test_refused(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GError) error = NULL;
    const char *text =
        "{\"model\":\"deepseek-v3\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_length\":4096,"
        "\"global_batch\":64},\"parallel\":{\"moe_dispatcher\":\"one-hot\"}}";
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", NULL);
    g_assert_false(spec_load_json(orr_json_root(doc), "test", NULL, true, spec, NULL, &error));
    g_assert_nonnull(strstr(error->message, "model.moe.capacity_factor"));
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/costmodel/moe-masks/products", test_products);
    g_test_add_func("/costmodel/moe-masks/same-experts", test_same_experts);
    g_test_add_func("/costmodel/moe-masks/buffers", test_buffers);
    g_test_add_func("/costmodel/moe-masks/refused", test_refused);
    return g_test_run();
}
