/* tests/unit/layer_fixture.h - the layer of Llama 3 8B and its ops, for tests of op lists. */
#ifndef ORR_TEST_LAYER_FIXTURE_H
#define ORR_TEST_LAYER_FIXTURE_H

#include <string.h>

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

/* Llama 3 8B with 128,256 tokens on eight H100-like GPUs, two sequences of 4,096 tokens at a time. */
static inline Spec fixture_spec(int tensor, bool compiled)
{
    Spec spec = {0};
    spec.model = fixture_llama(128256, true);
    spec.cluster.gpus_per_node = spec.cluster.scale_up_domain_gpus = 8;
    spec.cluster.nodes = 1;
    spec.cluster.accelerator.generation = *spec_generation("hopper");
    spec.training = (SpecTraining){.sequence_length = 4096,
                                   .global_batch = 8,
                                   .micro_batch = 2,
                                   .precision = SPEC_PRECISION_BF16,
                                   .predicted_frac = 1};
    spec.parallel = fixture_degrees(tensor, tensor > 1);
    spec.execution.attention = SPEC_ATTENTION_FLASH2;
    spec.execution.compiled = compiled;
    return spec;
}

/* Bytes that the memory-bound ops of that name move. */
static inline double fixture_moved(const CostOps *ops, const char *name)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        if (ops->op[i].kind == COST_OP_MEMORY && strcmp(ops->op[i].name, name) == 0) {
            sum += cost_moved_bytes(&ops->op[i]);
        }
    }
    return sum;
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
