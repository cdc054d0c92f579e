/* costmodel/decode_memory.c - see decode_memory.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/decode_memory.h"

#include <math.h>

#include "base/error.h"
#include "costmodel/params.h"

double cost_decode_stored_bytes(const Spec *spec, SpecDtype multiplied)
{
    const int stored = (int)spec->execution.framework.engine.weights_dtype;
    const double wide = spec_dtype_bytes(multiplied);
    return stored == SPEC_AUTO ? wide : fmin(wide, spec_dtype_bytes((SpecDtype)stored));
}

static double cache_element_bytes(const Spec *spec)
{
    return spec_dtype_bytes(spec->execution.framework.engine.cache_dtype);
}

static void fill_cache(CostDecode *decode)
{
    const Spec *spec = decode->shape.spec;
    const SpecModel *model = &spec->model;
    const bool latent = model->mla.kv_lora_rank > 0;
    const double kv = latent ? model->mla.kv_lora_rank + model->mla.qk_rope_head_dim
                             : decode->shape.kv_heads * (cost_qk_dim(model) + cost_v_dim(model)),
                 flops = 2 * decode->shape.heads *
                         (latent ? 2 * model->mla.kv_lora_rank + model->mla.qk_rope_head_dim
                                 : cost_qk_dim(model) + cost_v_dim(model));
    const double stages = fmax(1, spec->parallel.pipeline);
    int windowed = 0;
    for (int i = 0; i < model->layers; i++)
        windowed += cost_layer_windowed(model, i);
    const double full = model->layers - windowed, each = kv * cache_element_bytes(spec) / stages;
    const bool kept = spec->execution.framework.engine.keeps_windows;
    decode->read_bytes = full * each;
    decode->token_bytes = kept ? model->layers * each : full * each;
    decode->token_bytes += spec->execution.framework.engine.workspace_rows * 2 * model->hidden;
    decode->window_token_bytes = windowed * each;
    decode->window_tokens = windowed > 0 ? model->attention_window_tokens : 0;
    decode->sequence_bytes = kept ? 0 : decode->window_token_bytes * decode->window_tokens;
    decode->pair_flops = full * flops;
    decode->window_pair_flops = windowed * flops;
}

/* Matrices of layers in the format of training.precision with its scales, the rest in 16 bits. */
static double weights_bytes(const Spec *spec, const CostShape *shape)
{
    const SpecModel *model = &spec->model;
    const double narrow = cost_decode_stored_bytes(spec, shape->linear_dtype),
                 scales = narrow < 1 ? 1 / 16.0 : 0, tensor = shape->tensor,
                 stages = fmax(1, spec->parallel.pipeline),
                 expert = fmax(1, (double)spec->parallel.expert * MAX(1, spec->parallel.expert_tensor));
    double bytes = 0;
    for (int i = 0; i < model->layers; i++) {
        const CostParams params = cost_part_params(model, COST_PART_LAYER, i);
        bytes += (narrow + scales) * (params.tensor_sharded / tensor + params.expert / expert) +
                 2 * params.replicated;
    }
    const double edges = (double)model->vocab * model->hidden / tensor * 2 * (model->tied_embeddings ? 1 : 2);
    return bytes / stages + edges;
}

bool cost_decode_fill_memory(const Spec *spec, CostDecode *decode, GError **error)
{
    const SpecEngine *engine = &spec->execution.framework.engine;
    const SpecModel *model = &spec->model;
    const double widest = fmax(
        model->ffn_hidden / decode->shape.tensor * (model->gated_mlp ? 3 : 2),
        model->moe.experts > 0 ? model->moe.top_k * (model->hidden + 3.0 * model->moe.expert_ffn_hidden) : 0);
    fill_cache(decode);
    decode->weights_bytes = weights_bytes(spec, &decode->shape);
    decode->work_bytes = engine->fixed_bytes + engine->prefill_tokens * decode->shape.element_bytes *
                                                   (2.0 * model->hidden + widest);
    const double all = spec->cluster.accelerator.memory_bytes * engine->memory_frac;
    decode->cache_bytes = engine->free_memory_frac * (all - decode->weights_bytes - decode->work_bytes);
    return cost_decode_capacity_tokens(decode, 1) >= 1 ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "generation: weights of %.1f GiB and %.1f GiB of work leave no room for keys and values "
                    "in %.1f GiB; "
                    "give a larger parallel.tensor or a narrower training.precision",
                    decode->weights_bytes / 0x1p30, decode->work_bytes / 0x1p30, all / 0x1p30);
}

double cost_decode_capacity_tokens(const CostDecode *decode, double sequences)
{
    const double left = decode->cache_bytes - sequences * decode->sequence_bytes;
    if (decode->token_bytes > 0)
        return fmax(0, left / decode->token_bytes);
    return left >= 0 ? INFINITY : 0; /* all layers have windows */
}
