/* tests/unit/costmodel/test_moe_permute.c - permutations that look at every expert for each token. */
#include <string.h>

#include "costmodel/ops.h"

/* Rows of one rank of 64, two experts each. */
static Spec make_spec(void)
{
    Spec spec = {0};
    spec.model = (SpecModel){.layers = 1,
                             .hidden = 7168,
                             .heads = 56,
                             .kv_heads = 56,
                             .head_dim = 128,
                             .vocab = 1024,
                             .moe = {.experts = 128, .top_k = 8, .expert_ffn_hidden = 2048, .layer_step = 1}};
    spec.cluster = (SpecCluster){.gpus_per_node = 8, .nodes = 8, .scale_up_domain_gpus = 8};
    spec.training = (SpecTraining){
        .sequence_length = 4096, .global_batch = 64, .micro_batch = 1, .precision = SPEC_PRECISION_BF16};
    spec.parallel = (SpecParallel){.tensor = 1,
                                   .context = 1,
                                   .pipeline = 1,
                                   .virtual_stages = 1,
                                   .data = 64,
                                   .expert = 64,
                                   .expert_tensor = 1};
    spec.execution.attention = SPEC_ATTENTION_FLASH2;
    return spec;
}

/* Seven pieces of 1,024 of 7,168 elements look at 128 experts each, but once for the gradient of weighed rows. */
static void walks(void)
{
    Spec spec = make_spec();
    for (int on = 0; on < 2; on++) {
        spec.execution.framework.kernels.transformer_engine =
            on == 1 ? SPEC_TE_BEFORE_2_6 : SPEC_TE_BEFORE_2_12;
        for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
            CostShape shape;
            CostOps ops = {.count = 0};
            double loads[2] = {-1, -1};
            cost_shape_init(&shape, &spec);
            cost_ops_moe(&shape, (CostPass)pass, COST_OUTSIDE, &ops);
            for (int i = 0; i < ops.count; i++) {
                const CostOp *op = &ops.op[i];
                const bool spreads = strcmp(op->name, "permute") == 0;
                if (spreads || strcmp(op->name, "unpermute") == 0) {
                    loads[spreads] = op->u.memory.walk_loads;
                    g_assert_cmpfloat(op->u.memory.walks, ==, on * 4096);
                }
            }
            g_assert_cmpfloat(loads[0], ==, on * 7 * 128);
            g_assert_cmpfloat(loads[1], ==, on * (pass == COST_FORWARD ? 7 : 1) * 128);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moe-permute/walks", walks);
    return g_test_run();
}
