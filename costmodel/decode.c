/* costmodel/decode.c - see decode.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/decode.h"

#include <math.h>

#include "base/error.h"
#include "costmodel/context.h"
#include "costmodel/decode_layer.h"
#include "costmodel/decode_memory.h"
#include "costmodel/memory_bound.h"
#include "costmodel/moe.h"
#include "costmodel/params.h"
#include "costmodel/placement.h"

double cost_decode_total_s(const CostDecodeTime *time)
{
    double sum = 0;
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        sum += time->part_s[part];
    return sum;
}

/* Kernels of one step or two in which every rank reads its peers' memory, beside NCCL's: a flag sent and seen before and behind,
 * then n - 1 parts of the message, or two rounds of n - 1 parts of an n-th.
 * Source: [vLLM] csrc/custom_all_reduce.cuh, [TensorRTLLM] customAllReduceKernels.cu */
static double peers_s(const CostShape *shape, const CostGroup *group, double bytes)
{
    const SpecCollectiveModel *model = &shape->accelerator.model.collectives;
    const double n = group->ranks, rate = shape->accelerator.scale_up_bytes_per_s;
    const double flags_s =
        2 * model->ll_hop_s + cost_memory_bound_s(&shape->accelerator, COST_MEMORY_ELEMENTWISE, 2 * bytes);
    const double once_s = flags_s + (n - 1) * bytes / rate,
                 twice_s = 2 * flags_s + 2 * (n - 1) / n * bytes / rate;
    return group->per_domain == group->ranks && rate > 0 ? fmin(once_s, twice_s) : INFINITY;
}

static void all_reduce(CostDecodeLayer *layer, double bytes)
{
    const CostShape *shape = layer->shape;
    const CostCollective sum = {.op = COST_ALL_REDUCE, .bytes = bytes, .group = shape->tensor_group};
    if (shape->tensor_group.ranks < 2)
        return;
    layer->time.part_s[COST_DECODE_COMM] +=
        fmin(cost_collective_s(&shape->spec->cluster, &sum), peers_s(shape, &sum.group, bytes));
    cost_decode_gap(layer, 1);
}

/* Latent attention multiplies queries and results by the matrices that make keys and values, in place of the cache.
 * Source: [DeepSeekV2] section 2.1, absorbed */
static void projections(CostDecodeLayer *layer)
{
    const CostShape *shape = layer->shape;
    const SpecModel *model = &shape->spec->model;
    const double rows = layer->rows, h = model->hidden, heads = shape->heads;
    const SpecDtype dtype = shape->linear_dtype, wide = shape->activation_dtype;
    const SpecMla *mla = &model->mla;
    if (mla->kv_lora_rank > 0) {
        const double latent = mla->kv_lora_rank + mla->qk_rope_head_dim,
                     q_in = mla->q_lora_rank > 0 ? mla->q_lora_rank : h;
        cost_decode_product(layer, rows, latent + (mla->q_lora_rank > 0 ? mla->q_lora_rank : 0), h, 1, dtype);
        cost_decode_product(layer, rows, heads * cost_qk_dim(model), q_in, 1, dtype);
        cost_decode_product(layer, rows, mla->kv_lora_rank, mla->qk_nope_head_dim, heads, wide);
        cost_decode_product(layer, rows, mla->v_head_dim, mla->kv_lora_rank, heads, wide);
        cost_decode_moves(layer, COST_MEMORY_NORM, 4 * rows * (latent + mla->q_lora_rank));
    } else {
        cost_decode_product(layer, rows, (heads + 2 * shape->kv_heads) * model->head_dim, h, 1, dtype);
    }
    cost_decode_moves(layer, COST_MEMORY_ELEMENTWISE,
                      2 * shape->element_bytes * rows *
                          (heads * cost_qk_dim(model) + 2 * shape->kv_heads * model->head_dim));
    cost_decode_product(layer, rows, h, heads * cost_v_dim(model), 1, dtype);
}

static void add_layer(CostDecodeLayer *layer, int index)
{
    const CostShape *shape = layer->shape;
    const double wide = shape->element_bytes * layer->rows * shape->spec->model.hidden;
    cost_decode_moves(layer, COST_MEMORY_NORM, 4 * wide); /* with the residual: two read, two written */
    projections(layer);
    cost_decode_gap(layer, 1); /* attention */
    all_reduce(layer, wide);
    cost_decode_moves(layer, COST_MEMORY_NORM, 4 * wide);
    if (cost_layer_has_experts(&shape->spec->model, index))
        cost_decode_experts(layer, index);
    else
        cost_decode_mlp(layer, layer->rows, shape->spec->model.ffn_hidden / shape->tensor, 1);
    if (!cost_layer_has_experts(&shape->spec->model, index) || shape->spec->parallel.tensor > 1)
        all_reduce(layer, wide);
}

/* Layers of one kind cost the same. */
static CostDecodeTime layers_time(const CostDecode *decode, double rows)
{
    const CostShape *shape = &decode->shape;
    const SpecModel *model = &shape->spec->model;
    CostDecodeTime sum = {.kernels = 0};
    for (int first = 0; first < model->layers;) {
        CostDecodeLayer layer = {.shape = shape, .loads = &decode->loads, .rows = rows};
        int end = first + 1;
        while (end < model->layers && cost_layer_kind(model, end) == cost_layer_kind(model, first))
            end++;
        add_layer(&layer, first);
        for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
            sum.part_s[part] += (end - first) * layer.time.part_s[part];
        sum.kernels += (end - first) * layer.time.kernels;
        first = end;
    }
    return sum;
}

/* Logits of the newest token, gathered from tensor ranks, and a draw from them. */
static void add_head(const CostShape *shape, double rows, CostDecodeTime *time)
{
    CostDecodeLayer head = {.shape = shape, .rows = rows};
    const double vocab = shape->spec->model.vocab;
    const CostCollective logits = {
        .op = COST_ALL_GATHER, .bytes = 2 * rows * vocab, .group = shape->tensor_group};
    cost_decode_product(&head, rows, vocab / shape->tensor, shape->spec->model.hidden, 1,
                        shape->activation_dtype);
    if (shape->tensor_group.ranks > 1)
        head.time.part_s[COST_DECODE_COMM] += cost_collective_s(&shape->spec->cluster, &logits);
    cost_decode_moves(&head, COST_MEMORY_SOFTMAX, 6 * rows * vocab);
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        time->part_s[part] += head.time.part_s[part];
    time->kernels += head.time.kernels;
}

/* --- time --- */

/* What generation has no cost of; NULL: it has. */
static const char *lacks(const Spec *spec)
{
    return spec->model.list.text != NULL ? "a model that is a list of layers; give a transformer"
           : spec->model.scalar_head
               ? "model.scalar_head: a reward or value is not a token; give a model with logits"
           : spec->model.encoder_layers > 0 ? "a model with an encoder is not simulated; give one without"
           : spec->model.vision.layers > 0
               ? "a model with a vision tower is not simulated; give the language model alone"
           : !spec->model.causal
               ? "a model whose tokens attend to later ones cannot generate; give a causal one"
           : spec->parallel.context > 1 ? "parallel.context above 1 is not simulated; give 1"
                                        : NULL;
}

/* Sequences that a step of `batch` works on: of the captured graph that it runs as. Source: [TensorRTLLM] CudaGraphConfig */
static double padded(const Spec *spec, double batch)
{
    return spec->execution.framework.engine.pads_batches ? exp2(ceil(log2(fmax(1, batch)) - 1e-9)) : batch;
}

static double step_host_s(const Spec *spec)
{
    return spec_host_s(&spec->cluster.host, spec->execution.framework.engine.step_host_s);
}

bool cost_decode_init(const Spec *spec, double most, CostDecode *ret_decode, GError **error)
{
    *ret_decode =
        (CostDecode){.replicas = MAX(1, spec->parallel.data), .pipeline = MAX(1, spec->parallel.pipeline)};
    if (lacks(spec) != NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "generation: %s", lacks(spec));
    ret_decode->sequence_host_s =
        spec_host_s(&spec->cluster.host, spec->execution.framework.engine.sequence_host_s);
    cost_shape_init(&ret_decode->shape, spec);
    if (!cost_decode_fill_memory(spec, ret_decode, error))
        return false;
    most = padded(spec, most);
    cost_decode_fill_loads(spec, fmax(most, spec->execution.framework.engine.prefill_tokens),
                           &ret_decode->loads);
    double batch = 1;
    while (ret_decode->grid < COST_DECODE_GRID) {
        const int i = ret_decode->grid++;
        ret_decode->batch[i] = batch;
        ret_decode->at[i] = layers_time(ret_decode, batch);
        add_head(&ret_decode->shape, batch, &ret_decode->at[i]);
        ret_decode->at[i].part_s[COST_DECODE_HOST] += step_host_s(spec);
        if (batch >= most)
            break;
        batch = ceil(batch * (batch < 8 ? 2 : 1.5));
    }
    return true;
}

/* Without captured graphs the host launches kernel after kernel, ahead of the GPU where it can. */
static void await_host(const Spec *spec, CostDecodeTime *time)
{
    const SpecFramework *framework = &spec->execution.framework;
    const double launched_s = time->kernels * spec_host_s(&spec->cluster.host, framework->host.kernel_host_s);
    if (!framework->engine.captures_graphs)
        time->part_s[COST_DECODE_HOST] +=
            fmax(0, launched_s - (cost_decode_total_s(time) - step_host_s(spec)));
}

/* A pipeline of p stages has p batches in flight: each is a p-th of the sequences. */
CostDecodeTime cost_decode_step(const CostDecode *decode, double batch, double tokens)
{
    const double each = padded(decode->shape.spec, fmax(1, batch / decode->pipeline));
    CostDecodeTime time = decode->at[0];
    int i = 0;
    while (i + 1 < decode->grid && decode->batch[i + 1] <= each)
        i++;
    const bool inside = i + 1 < decode->grid;
    const double t = inside ? (each - decode->batch[i]) / (decode->batch[i + 1] - decode->batch[i]) : 0;
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        time.part_s[part] = decode->at[i].part_s[part] +
                            (inside ? t * (decode->at[i + 1].part_s[part] - decode->at[i].part_s[part]) : 0);
    time.part_s[COST_DECODE_ATTENTION] += cost_decode_attention_s(decode, each, batch, tokens);
    await_host(decode->shape.spec, &time);
    time.part_s[COST_DECODE_HOST] += batch * decode->sequence_host_s;
    return time;
}

/* Scores, softmax and values of one prompt as kernels of their own: all scores are written and read. */
static double unfused_s(const CostShape *shape, const CostAttention *core)
{
    const SpecAccelerator *accelerator = &shape->accelerator;
    const CostGemm scores = {.m = core->q_tokens,
                             .n = core->kv_tokens,
                             .k = core->qk_head_dim,
                             .groups = core->batch * core->heads,
                             .dtype = core->dtype},
                   values = {.m = core->q_tokens,
                             .n = core->v_head_dim,
                             .k = core->kv_tokens,
                             .groups = core->batch * core->heads,
                             .dtype = core->dtype};
    const double bytes =
        2 * shape->element_bytes * core->batch * core->heads * core->q_tokens * core->kv_tokens;
    return cost_gemm_s(accelerator, &scores) + cost_gemm_s(accelerator, &values) +
           cost_memory_bound_s(accelerator, COST_MEMORY_SOFTMAX, bytes);
}

static double attention_kernel_s(const CostDecode *decode, const CostAttention *core)
{
    return core->kernel == SPEC_ATTENTION_UNFUSED ? unfused_s(&decode->shape, core)
                                                  : cost_attention_s(&decode->shape.accelerator, core);
}

static int windowed_layers(const SpecModel *model)
{
    int windowed = 0;
    for (int i = 0; i < model->layers; i++)
        windowed += cost_layer_windowed(model, i);
    return windowed;
}

double cost_prefill_s(const CostDecode *decode, double prompts, double tokens)
{
    const Spec *spec = decode->shape.spec;
    const double chunk = fmax(1, fmin(spec->execution.framework.engine.prefill_tokens, prompts * tokens));
    const double together = fmax(1, floor(chunk / tokens)); /* prompts in one kernel of attention */
    CostDecodeTime time = layers_time(decode, chunk);
    add_head(&decode->shape, fmax(1, chunk / tokens), &time);
    time.part_s[COST_DECODE_HOST] += step_host_s(spec);
    await_host(spec, &time);
    CostAttention core = {.kernel = cost_attention_kernel(spec),
                          .batch = together,
                          .q_tokens = tokens,
                          .kv_tokens = tokens,
                          .heads = decode->shape.heads,
                          .kv_heads =
                              spec->model.mla.kv_lora_rank > 0 ? decode->shape.heads : decode->shape.kv_heads,
                          .qk_head_dim = cost_qk_dim(&spec->model),
                          .v_head_dim = cost_v_dim(&spec->model),
                          .causal = true,
                          .dtype = decode->shape.activation_dtype};
    const int windowed = windowed_layers(&spec->model);
    double attention = (spec->model.layers - windowed) * attention_kernel_s(decode, &core) / together;
    core.window_tokens = cost_attention_window(&spec->model, tokens);
    if (core.window_tokens >= tokens)
        core.window_tokens = 0;
    attention += windowed * attention_kernel_s(decode, &core) / together;
    return (cost_decode_total_s(&time) * (tokens / chunk) + attention) * prompts / decode->pipeline;
}
