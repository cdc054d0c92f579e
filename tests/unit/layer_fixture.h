/* tests/unit/layer_fixture.h - the layer of Llama 3 8B and its ops, for tests of op lists. */
#ifndef ORR_TEST_LAYER_FIXTURE_H
#define ORR_TEST_LAYER_FIXTURE_H

#include "costmodel/ops.h"
#include "spec/spec.h"

static inline SpecModel fixture_llama(int vocab, bool causal)
{
    return (SpecModel){.layers = 4,
                       .hidden = 4096,
                       .heads = 32,
                       .kv_heads = 8,
                       .head_dim = 128,
                       .ffn_hidden = 14336,
                       .gated_mlp = true,
                       .vocab = vocab,
                       .norm = SPEC_NORM_RMSNORM,
                       .position = SPEC_POSITION_ROPE,
                       .causal = causal};
}

/* Tensor ranks of one node of 8, the rest data-parallel. */
static inline SpecParallel fixture_degrees(int tensor, bool sequence_parallel)
{
    return (SpecParallel){.tensor = tensor,
                          .sequence_parallel = sequence_parallel,
                          .context = 1,
                          .pipeline = 1,
                          .virtual_stages = 1,
                          .data = 8 / tensor,
                          .expert = 1,
                          .expert_tensor = 1};
}

static inline CostOps fixture_layer_ops(const Spec *spec, CostPass pass)
{
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, spec);
    cost_ops_layer(&shape, 0, pass, &ops);
    return ops;
}

#endif
