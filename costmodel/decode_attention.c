/* costmodel/decode_attention.c - attention of one step of generation: what is read of the caches, and what kernels reach. See
 * decode_layer.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/decode_layer.h"

#include <math.h>

#include "costmodel/context.h"
#include "costmodel/decode_memory.h"
#include "costmodel/memory_bound.h"

/* Of the HBM's rate, and of the dense 16-bit peak, that decode attention reaches: 3,000 of 3,350 GB/s and 660 of 989 TFLOP/s
 * on H800 SXM5.   Source: [FlashMLA] README */
#define CACHE_READ_FRAC  0.9
#define CACHE_FLOPS_FRAC 0.667

/* Of `tokens` of `batch` sequences, those that layers with windows see. In chunks of w a sequence of c sees c mod w of its own:
 * on average over lengths from 0 to twice the mean, n whole chunks and a rest r: (n w^2 + r^2) / 2 over that. */
static double windowed_tokens(const CostDecode *decode, double batch, double tokens)
{
    const double w = decode->window_tokens, most = 2 * tokens / batch;
    if (w <= 0 || !decode->shape.spec->model.attention_chunked || most <= w)
        return w > 0 ? fmin(tokens, batch * w) : 0;
    const double n = floor(most / w), r = most - n * w;
    return batch * (n * w * w + r * r) / 2 / most;
}

/* Keys and values in 8 bits are widened before they are multiplied: 2.4 to 3.0e12 numbers a second on H100 and H200 alike.
 * TensorRT-LLM's latent ones are, too (2.8 and 3.0e12); FlashMLA's kernels, for which there is no entry, multiply 8 bits.
 * Source: [aiconfigurator] generation_attention_perf, generation_mla_perf */
static double widened_per_s(const CostDecode *decode, bool measured)
{
    const SpecAccelerator *accelerator = &decode->shape.accelerator;
    const SpecGeneration *generation = &accelerator->generation;
    const Spec *spec = decode->shape.spec;
    const bool narrow = spec_dtype_bytes(spec->execution.framework.engine.cache_dtype) == 1;
    if (!narrow || (spec->model.mla.kv_lora_rank > 0 && !measured) ||
        generation->narrow_cache_per_clock <= 0 || generation->sm_flops_per_clock <= 0)
        return INFINITY;
    return accelerator->peak_flops_per_s[decode->shape.activation_dtype] / generation->sm_flops_per_clock *
           generation->narrow_cache_per_clock;
}

static SpecCacheFormat cache_format(const Spec *spec)
{
    const bool narrow = spec_dtype_bytes(spec->execution.framework.engine.cache_dtype) == 1;
    return spec->model.mla.kv_lora_rank > 0 ? (narrow ? SPEC_CACHE_LATENT_8BIT : SPEC_CACHE_LATENT_16BIT)
                                            : (narrow ? SPEC_CACHE_8BIT : SPEC_CACHE_16BIT);
}

/* The engine's measured kernel for such caches on GPUs alike; NULL: nobody measured it. */
static const SpecAttentionKernel *measured_kernel(const CostDecode *decode)
{
    const Spec *spec = decode->shape.spec;
    const SpecAttentionKernels *kernels = &spec->execution.framework.engine.attention;
    for (int i = 0; i < kernels->count; i++)
        if (kernels->kernel[i].format == cache_format(spec) &&
            spec_generation_same(&kernels->kernel[i].generation, &decode->shape.accelerator.generation))
            return &kernels->kernel[i];
    return NULL;
}

/* Bytes of a sequence's newest queries, keys, values and results in one layer of a rank. */
static double row_bytes(const CostShape *shape)
{
    const SpecModel *model = &shape->spec->model;
    const SpecMla *mla = &model->mla;
    return shape->element_bytes * (mla->kv_lora_rank > 0
                                       ? shape->heads * (2 * mla->kv_lora_rank + mla->qk_rope_head_dim)
                                       : 2 * (shape->heads + shape->kv_heads) * model->head_dim);
}

/* One kernel a layer, for b rows whose caches are C bytes:
 *
 *   t = start + b R / (rows_frac B) + max(C / (memory_frac B), numbers of narrow caches at their rate, FLOPs at 0.667 P)
 *
 * B: rate of the memory, R: bytes of a row's queries, keys, values and results. Where no benchmark of the engine has such
 * kernels, start is a kernel without work and rows are free.
 * Source: [aiconfigurator] generation_attention_perf and generation_mla_perf, fitted as each entry of a recipe says */
double cost_decode_attention_s(const CostDecode *decode, double rows, double batch, double tokens)
{
    const SpecAccelerator *accelerator = &decode->shape.accelerator;
    const SpecAttentionKernel *kernel = measured_kernel(decode);
    const double windowed = windowed_tokens(decode, batch, tokens), pipeline = decode->pipeline,
                 layers = decode->shape.spec->model.layers, rate = accelerator->memory_bytes_per_s;
    const double bytes = tokens * decode->read_bytes + windowed * decode->window_token_bytes,
                 flops = tokens * decode->pair_flops + windowed * decode->window_pair_flops,
                 peak = accelerator->peak_flops_per_s[decode->shape.activation_dtype];
    const double start_s =
        kernel != NULL
            ? layers * (kernel->start_s + rows * row_bytes(&decode->shape) / (kernel->rows_frac * rate))
            : layers / pipeline * cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, 0);
    const double read_frac = kernel != NULL ? kernel->memory_frac : CACHE_READ_FRAC;
    return start_s + fmax(bytes / fmin(widened_per_s(decode, kernel != NULL), read_frac * rate),
                          flops / pipeline / (CACHE_FLOPS_FRAC * peak));
}
