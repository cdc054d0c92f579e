/* tests/published/test_layer.c - one transformer layer of 22B on eight A100s as Megatron-LM timed it alone: kernels and
 * tensor collectives, without pipeline, optimizer or anything else of a step. Source: [Korthikanti2022] Table 4, printed in
 * tenths of a millisecond; sequence 2,048, micro-batch 4. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "costmodel/pass.h"
#include "spec/load.h"

typedef struct Layer {
    const char *sets[3];
    double forward_s, backward_s; /* measured; the backward with what it recomputes */
} Layer;

static double seconds(const CostShape *shape, CostPass pass)
{
    CostOps ops = {.count = 0};
    cost_ops_layer(shape, 0, pass, &ops);
    const CostTime time = cost_time_ops(shape, &ops, pass);
    return cost_time_total_s(&time);
}

static double again_s(const CostShape *shape)
{
    CostOps ops = {.count = 0};
    cost_ops_layer(shape, 0, COST_FORWARD, &ops);
    const CostTime time = cost_time_recompute(shape, &ops, cost_recompute_extent(shape->spec, 0));
    return cost_time_total_s(&time);
}

static void table_4(void)
{
    static const Layer LAYERS[] = {
        {{"parallel.sequence_parallel=false", "training.recompute=none"}, 7.7e-3, 11.9e-3},
        {{"parallel.sequence_parallel=true", "training.recompute=none"}, 7.2e-3, 11.8e-3},
        {{"parallel.sequence_parallel=false", "training.recompute=full"}, 7.7e-3, 19.5e-3},
        {{"parallel.sequence_parallel=false", "training.recompute=selective"}, 7.7e-3, 13.2e-3},
        {{"parallel.sequence_parallel=true", "training.recompute=selective"}, 7.2e-3, 13.1e-3},
    };
    static const char SCENARIO[] =
        "{\"model\":\"gpt-22b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},\"training\":{"
        "\"sequence_length\":2048,\"global_batch\":4,\"micro_batch\":4,\"precision\":\"fp16\"},\"parallel\":{"
        "\"tensor\":8},\"execution\":{\"framework\":\"megatron-lm-2022\"}}";
    GError *error = NULL;
    double sum = 0;
    OrrJsonDoc *doc = orr_json_parse(SCENARIO, strlen(SCENARIO), "table 4", &error);
    g_assert_no_error(error);
    for (gsize i = 0; i < G_N_ELEMENTS(LAYERS); i++) {
        g_autofree Spec *spec = g_new(Spec, 1);
        CostShape shape;
        spec_load_json(orr_json_root(doc), "table 4", LAYERS[i].sets, false, spec, NULL, &error);
        g_assert_no_error(error);
        cost_shape_init(&shape, spec);
        const double forward_s = seconds(&shape, COST_FORWARD);
        const double backward_s =
            seconds(&shape, COST_BACKWARD_INPUT) + seconds(&shape, COST_BACKWARD_WEIGHT) + again_s(&shape);
        g_test_message("%s, %s: forward %.2f ms (measured %.1f), backward %.2f ms (%.1f)", LAYERS[i].sets[0],
                       LAYERS[i].sets[1], 1e3 * forward_s, 1e3 * LAYERS[i].forward_s, 1e3 * backward_s,
                       1e3 * LAYERS[i].backward_s);
        g_assert_cmpfloat(fabs(forward_s / LAYERS[i].forward_s - 1), <=, 0.04);
        g_assert_cmpfloat(fabs(backward_s / LAYERS[i].backward_s - 1), <=, 0.04);
        sum += fabs(forward_s / LAYERS[i].forward_s - 1) + fabs(backward_s / LAYERS[i].backward_s - 1);
    }
    g_test_message("mean |error| %.1f %%", 100 * sum / (2 * G_N_ELEMENTS(LAYERS)));
    g_assert_cmpfloat(sum / (2 * G_N_ELEMENTS(LAYERS)), <=, 0.025);
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/layer/table-4", table_4);
    return g_test_run();
}
