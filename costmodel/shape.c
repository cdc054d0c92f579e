/* costmodel/shape.c - sizes on one rank. See ops.h. */
#include "costmodel/lengths.h"
#include "costmodel/moe.h"
#include "costmodel/ops.h"
#include "costmodel/spread.h"
#include "costmodel/states.h"

static bool accumulates_fp32(const Spec *spec)
{
    return spec->training.gradient_dtype == SPEC_FP32 && spec->training.precision != SPEC_PRECISION_FP32;
}

/* A benchmark's kernel may end before the power limit bites; a training step runs one kernel after the other for
 * days, so even short ones run at the clock that the limit sustains. Source: docs/MODEL-kernels.md "Power" */
static void sustain_clock(SpecAccelerator *accelerator)
{
    for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++) {
        accelerator->model.gemm[dtype].throttle_s = 0;
    }
}

/* Router's draw over the tokens of an expert group. */
static double expert_load(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    const CostPlacement placement = {.experts = spec->model.moe.experts,
                                     .ranks = spec->parallel.expert,
                                     .top_k = spec->model.moe.top_k,
                                     .replicas = spec->parallel.expert_replicas,
                                     .rebalance = spec->parallel.expert_rebalance};
    const double rows = shape->tokens / shape->tensor * spec->model.moe.top_k * spec->parallel.expert;
    return placement.experts > 0 ? cost_moe_load_factor(&spec->training.router, &placement, rows) : 1;
}

void cost_shape_init(CostShape *shape, const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecModel *model = &spec->model;
    const SpecPrecision precision = spec->training.precision;
    const bool full = precision == SPEC_PRECISION_FP32 || precision == SPEC_PRECISION_TF32;
    *shape = (CostShape){.spec = spec, .accelerator = spec->cluster.accelerator};
    sustain_clock(&shape->accelerator);
    shape->batch = spec->training.micro_batch;
    shape->sequence = cost_positions(spec);
    shape->longest_over_mean = cost_longest_over_mean(spec);
    shape->tensor = parallel->tensor;
    shape->context = parallel->context;
    shape->tokens = shape->batch * shape->sequence / shape->context;
    shape->keys = shape->sequence;
    shape->key_tokens = shape->tokens;
    shape->causal = model->causal;
    shape->position_bias =
        model->position == SPEC_POSITION_ALIBI || model->position == SPEC_POSITION_RELATIVE;
    /* on a grid activations lie in blocks over all ranks */
    const bool in_blocks = parallel->sequence_parallel == 1 || parallel->tensor_scheme != SPEC_TENSOR_1D;
    shape->sequence_parallel = in_blocks && parallel->tensor > 1;
    shape->part_tokens = shape->sequence_parallel ? shape->tokens / shape->tensor : shape->tokens;
    shape->hidden = model->hidden;
    shape->heads = model->heads / shape->tensor;
    shape->kv_heads = model->kv_heads >= parallel->tensor ? model->kv_heads / shape->tensor : 1;
    shape->head_dim = model->head_dim;
    shape->element_bytes = full ? 4 : 2;
    shape->stream_bytes = cost_autocasts(spec) ? 4 : shape->element_bytes;
    shape->linear_dtype = spec_gemm_dtype(precision);
    shape->activation_dtype = full                               ? shape->linear_dtype
                              : precision == SPEC_PRECISION_FP16 ? SPEC_FP16
                                                                 : SPEC_BF16;
    const bool narrow = shape->linear_dtype == SPEC_FP8 || shape->linear_dtype == SPEC_FP4;
    shape->core_dtype = narrow && spec->training.attention_8bit ? SPEC_FP8 : shape->activation_dtype;
    shape->head_dtype = narrow && spec->training.head_8bit ? SPEC_FP8 : shape->activation_dtype;
    shape->slowest = cost_slowest_chip(spec->cluster.accelerator.speed_spread_frac, spec_gpus(spec));
    shape->accumulate_fp32 = accumulates_fp32(spec);
    shape->accumulates = spec_microbatches(spec) > 1 && !cost_reduces_each_microbatch(spec);
    shape->tensor_group = cost_group(spec, COST_RANKS_TENSOR);
    shape->context_group = cost_group(spec, COST_RANKS_CONTEXT);
    shape->expert_group = cost_group(spec, COST_RANKS_EXPERT);
    shape->expert_load = expert_load(shape);
}

bool cost_cuts_pieces(const CostShape *shape)
{
    return shape->spec->execution.framework.tensor.tensor_overlap >= SPEC_TENSOR_PIECES;
}

bool cost_own_products(const CostShape *shape)
{
    return shape->spec->execution.framework.tensor.tensor_overlap == SPEC_TENSOR_OWN_PRODUCTS;
}

bool cost_separate_projections(const CostShape *shape)
{
    return shape->spec->execution.framework.kernels.projections != SPEC_PROJECTIONS_JOINED;
}

bool cost_has_engine(const CostShape *shape, SpecTransformerEngine least)
{
    return shape->spec->execution.framework.kernels.transformer_engine >= least;
}
