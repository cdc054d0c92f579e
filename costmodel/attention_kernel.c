/* costmodel/attention_kernel.c - which kernel runs the attention core. */
#include "costmodel/ops.h"
#include "costmodel/params.h"

SpecAttention cost_attention_kernel(const Spec *spec)
{
    const SpecAttention named = spec->execution.attention;
    const bool latent =
        cost_qk_dim(&spec->model) > 128 && cost_qk_dim(&spec->model) != cost_v_dim(&spec->model);
    return named == SPEC_ATTENTION_CUDNN && latent &&
                   spec->execution.framework.kernels.cudnn == SPEC_CUDNN_BEFORE_9_11 &&
                   spec->cluster.accelerator.generation.late_latent_heads
               ? SPEC_ATTENTION_UNFUSED
               : named;
}

bool cost_core_block_scaled(const CostShape *shape)
{
    return shape->core_dtype == SPEC_FP8 && shape->spec->training.precision == SPEC_PRECISION_MXFP8 &&
           cost_has_engine(shape, SPEC_TE_SINCE_2_16);
}
