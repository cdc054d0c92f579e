/* tests/unit/costmodel/test_collective_checks.c - hosts that compare each collective before it starts: messages by
 * hand. */
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "tests/unit/layer_fixture.h"
#include "spec/load.h"

static double host_total_s(const Spec *spec, CostPass pass)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    const CostOps ops = fixture_layer_ops(spec, pass);
    const CostTime time = cost_time_ops(&shape, &ops, pass);
    return cost_time_total_s(&time);
}

/* Four hosts compare each collective by 8 messages of 1 s: two gathers and two reduce-scatters forward; backward two
 * gathers of gradients, two of inputs and two reduce-scatters. Not in a graph, nor where pipelines alone are checked. */
static void checked_collectives(void)
{
    static const double expected_s[COST_PASS_COUNT] = {4 * 8, 4 * 8, 2 * 8};
    Spec spec = {0};
    spec.model = fixture_llama(128256, true);
    spec.cluster.gpus_per_node = spec.cluster.scale_up_domain_gpus = 8;
    spec.cluster.nodes = 1;
    spec.training = (SpecTraining){
        .sequence_length = 4096, .global_batch = 8, .micro_batch = 2, .precision = SPEC_PRECISION_BF16};
    spec.parallel = fixture_degrees(4, true);
    spec.execution.attention = SPEC_ATTENTION_FLASH2;
    SpecFramework *framework = &spec.execution.framework;
    g_assert_true(spec_load_accelerator("a100-sxm4-80gb", &spec.cluster.accelerator, NULL));
    framework->kernels.attention_speed_frac = 1;
    framework->host.collective_check_hop_s = 1;
    for (int pass = 0; pass < COST_PASS_COUNT; pass++)
        g_assert_cmpfloat_with_epsilon(host_total_s(&spec, (CostPass)pass), expected_s[pass], 1e-9);
    g_assert_cmpfloat(cost_collective_check_s(&spec, 1), ==, 0);
    framework->host.collective_checks_pipelines_only = true;
    g_assert_cmpfloat(cost_collective_check_s(&spec, 4), ==, 0);
    spec.parallel.pipeline = 2;
    g_assert_cmpfloat(cost_collective_check_s(&spec, 4), ==, 8);
    Spec off = spec;
    g_strlcpy(off.execution.cuda_graph, "full_iteration", sizeof off.execution.cuda_graph);
    g_assert_cmpfloat(host_total_s(&off, COST_FORWARD), <, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/collective-checks/layer", checked_collectives);
    return g_test_run();
}
