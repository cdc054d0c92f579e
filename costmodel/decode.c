/* costmodel/decode.c - see decode.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/decode.h"

#include <math.h>

#include "base/error.h"
#include "costmodel/decode_memory.h"
#include "costmodel/memory_bound.h"
#include "costmodel/moe.h"
#include "costmodel/params.h"
#include "costmodel/placement.h"

/* Of the HBM's rate, and of the dense 16-bit peak, that decode attention reaches: 3,000 of 3,350 GB/s and 660 of 989 TFLOP/s
 * on H800 SXM5.   Source: [FlashMLA] README */
#define CACHE_READ_FRAC  0.9
#define CACHE_FLOPS_FRAC 0.667

/* Of a layer's experts: top k, rows sorted and counted, two products around the activation, rows summed.
 * Source: [vLLM] fused_moe */
enum { MEASURED_KERNELS = 7 };

double cost_decode_total_s(const CostDecodeTime *time)
{
    double sum = 0;
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        sum += time->part_s[part];
    return sum;
}

typedef struct Layer {
    const CostShape *shape;
    const CostDecodeLoads *loads;
    double rows; /* tokens of this step on the rank */
    CostDecodeTime time;
} Layer;

static void gap(Layer *layer, int kernels)
{
    layer->time.kernels += kernels;
    layer->time.part_s[COST_DECODE_HOST] +=
        kernels * layer->shape->spec->execution.framework.host.kernel_gap_s;
}

/* Matrices that are stored narrower come in fewer bytes; they are widened on the way, and multiplied as fast as wide ones. */
static void product(Layer *layer, double m, double n, double k, double groups, SpecDtype dtype)
{
    const SpecAccelerator *accelerator = &layer->shape->accelerator;
    const CostGemm gemm = {.m = m, .n = n, .k = k, .groups = groups, .dtype = dtype};
    const double whole_s = cost_gemm_s(accelerator, &gemm), peak = accelerator->peak_flops_per_s[dtype],
                 fewer =
                     dtype == layer->shape->linear_dtype
                         ? n * k * groups *
                               (spec_dtype_bytes(dtype) - cost_decode_stored_bytes(layer->shape->spec, dtype))
                         : 0;
    const double saved_s = fewer / accelerator->memory_bytes_per_s;
    layer->time.part_s[COST_DECODE_PRODUCTS] +=
        fmax(whole_s - saved_s, fmin(whole_s, peak > 0 ? 2 * m * n * k * groups / peak : 0));
    gap(layer, 1);
}

static void moves(Layer *layer, CostMemoryKernel kernel, double bytes)
{
    layer->time.part_s[COST_DECODE_SMALL] += cost_memory_bound_s(&layer->shape->accelerator, kernel, bytes);
    gap(layer, 1);
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

static void all_reduce(Layer *layer, double bytes)
{
    const CostShape *shape = layer->shape;
    const CostCollective sum = {.op = COST_ALL_REDUCE, .bytes = bytes, .group = shape->tensor_group};
    if (shape->tensor_group.ranks < 2)
        return;
    layer->time.part_s[COST_DECODE_COMM] +=
        fmin(cost_collective_s(&shape->spec->cluster, &sum), peers_s(shape, &sum.group, bytes));
    gap(layer, 1);
}

/* Rows to their experts or back, `bytes` of a rank. Source of when they are gathered: [TensorRTLLM] fused_moe, which has no
 * all-to-all where moe_ep_size <= top_k */
static void exchange(Layer *layer, CostCollectiveOp op, double bytes)
{
    const CostShape *shape = layer->shape;
    const CostCollective rows = {.op = op, .bytes = bytes, .group = shape->expert_group};
    if (bytes <= 0)
        return;
    layer->time.part_s[COST_DECODE_COMM] += cost_collective_s(&shape->spec->cluster, &rows);
    gap(layer, 1);
}

/* Latent attention multiplies queries and results by the matrices that make keys and values, in place of the cache.
 * Source: [DeepSeekV2] section 2.1, absorbed */
static void projections(Layer *layer)
{
    const CostShape *shape = layer->shape;
    const SpecModel *model = &shape->spec->model;
    const double rows = layer->rows, h = model->hidden, heads = shape->heads;
    const SpecDtype dtype = shape->linear_dtype, wide = shape->activation_dtype;
    const SpecMla *mla = &model->mla;
    if (mla->kv_lora_rank > 0) {
        const double latent = mla->kv_lora_rank + mla->qk_rope_head_dim,
                     q_in = mla->q_lora_rank > 0 ? mla->q_lora_rank : h;
        product(layer, rows, latent + (mla->q_lora_rank > 0 ? mla->q_lora_rank : 0), h, 1, dtype);
        product(layer, rows, heads * cost_qk_dim(model), q_in, 1, dtype);
        product(layer, rows, mla->kv_lora_rank, mla->qk_nope_head_dim, heads, wide);
        product(layer, rows, mla->v_head_dim, mla->kv_lora_rank, heads, wide);
        moves(layer, COST_MEMORY_NORM, 4 * rows * (latent + mla->q_lora_rank));
    } else {
        product(layer, rows, (heads + 2 * shape->kv_heads) * model->head_dim, h, 1, dtype);
    }
    moves(layer, COST_MEMORY_ELEMENTWISE,
          2 * shape->element_bytes * rows *
              (heads * cost_qk_dim(model) + 2 * shape->kv_heads * model->head_dim));
    product(layer, rows, h, heads * cost_v_dim(model), 1, dtype);
}

static void mlp(Layer *layer, double rows, double wide, double groups)
{
    const CostShape *shape = layer->shape;
    const double h = shape->spec->model.hidden, in = shape->spec->model.gated_mlp ? 2 * wide : wide;
    product(layer, rows, in, h, groups, shape->linear_dtype);
    moves(layer, COST_MEMORY_ELEMENTWISE, shape->element_bytes * rows * groups * (in + wide));
    product(layer, rows, h, wide, groups, shape->linear_dtype);
}

/* What a rank's experts have to do in one layer. */
typedef struct Experts {
    double met;  /* experts that some token meets: E (1 - (1 - k/E)^b) of those of the rank */
    double rows; /* of tokens, one for each expert of each, on the rank whose experts have most */
    double wide; /* of an expert's hidden layer on the rank */
    double seen; /* tokens that the rank sorts and sums: its own, or all ranks' where they are gathered */
    double exchanged; /* bytes of an exchange between ranks; 0: none */
    bool gathered;    /* all tokens to every rank: no more than a copy for each expert of a token */
} Experts;

static bool ranks_apart(const Spec *spec)
{
    return spec->parallel.tensor < 2 && spec->parallel.expert > 1;
}

static void fill_loads(const Spec *spec, double most, CostDecodeLoads *loads)
{
    const SpecMoe *moe = &spec->model.moe;
    const CostPlacement placement = {.experts = moe->experts,
                                     .ranks = spec->parallel.expert,
                                     .top_k = moe->top_k,
                                     .replicas = spec->parallel.expert_replicas,
                                     .rebalance = spec->parallel.expert_rebalance};
    const double ranks = ranks_apart(spec) ? spec->parallel.expert : 1, last = COST_DECODE_LOADS - 1;
    for (int i = 0; i < COST_DECODE_LOADS; i++) {
        loads->tokens[i] = ranks * pow(fmax(2, most), i / last);
        loads->load[i] = placement.experts > 0 ? cost_moe_load_factor(&spec->training.router, &placement,
                                                                      loads->tokens[i] * moe->top_k)
                                               : 1;
    }
}

/* Between two of them: a draw's scatter falls with the root of what is drawn. */
static double load_at(const CostDecodeLoads *loads, double tokens)
{
    int i = 0;
    while (i + 2 < COST_DECODE_LOADS && loads->tokens[i + 1] < tokens)
        i++;
    const double from = 1 / sqrt(loads->tokens[i]), to = 1 / sqrt(loads->tokens[i + 1]),
                 at = fmin(from, fmax(to, 1 / sqrt(tokens)));
    return loads->load[i] + (from - at) / (from - to) * (loads->load[i + 1] - loads->load[i]);
}

static Experts experts_of(const Layer *layer, const SpecMoeRun *moe)
{
    const CostShape *shape = layer->shape;
    const SpecParallel *parallel = &shape->spec->parallel;
    const bool apart = ranks_apart(shape->spec); /* with sequences of their own */
    const double tokens = layer->rows, ranks = fmax(1, parallel->expert), top_k = moe->top_k,
                 all = tokens * (apart ? ranks : 1), cut = fmax(1, apart ? 1 : parallel->tensor / ranks);
    const bool gathered = apart && ranks <= top_k;
    return (Experts){.met = moe->experts / ranks * (1 - pow(1 - top_k / moe->experts, all)),
                     .rows = all * top_k / ranks * load_at(layer->loads, all),
                     .wide = moe->expert_ffn_hidden / cut,
                     .seen = gathered ? all : tokens,
                     .exchanged = apart ? shape->element_bytes * tokens * fmin(ranks, top_k) *
                                              shape->spec->model.hidden
                                        : 0,
                     .gathered = gathered};
}

static SpecExpertFormat expert_format(const Spec *spec)
{
    const bool narrow = (int)spec->execution.framework.engine.weights_dtype == SPEC_FP4;
    switch (spec->training.precision) {
    case SPEC_PRECISION_NVFP4:
        return SPEC_EXPERTS_FP4;
    case SPEC_PRECISION_FP8_BLOCKWISE:
        return SPEC_EXPERTS_FP8_BLOCK;
    case SPEC_PRECISION_FP8:
    case SPEC_PRECISION_FP8_CS:
    case SPEC_PRECISION_FP8_TENSORWISE:
    case SPEC_PRECISION_FP8_ROWWISE:
    case SPEC_PRECISION_MXFP8:
        return narrow ? SPEC_EXPERTS_FP4_8BIT : SPEC_EXPERTS_FP8;
    default:
        return narrow ? SPEC_EXPERTS_FP4_16BIT : SPEC_EXPERTS_16BIT;
    }
}

/* The engine's measured kernels for the format on GPUs alike; NULL: nobody measured them. */
static const SpecExpertKernel *measured_experts(const CostShape *shape)
{
    const SpecExpertKernels *experts = &shape->spec->execution.framework.engine.experts;
    for (int i = 0; i < experts->count; i++)
        if (experts->kernel[i].format == expert_format(shape->spec) &&
            spec_generation_same(&experts->kernel[i].generation, &shape->accelerator.generation))
            return &experts->kernel[i];
    return NULL;
}

/* Kernels of one layer's experts as a benchmark of the engine has them, W bytes and F FLOPs a row of an expert:
 *
 *   t = start + met (a^4 + b^4)^(1/4) + 4 h (rows + seen) / (rows_frac B)
 *   a = W / (memory_frac B)        b = F (rows / met + 64) / (flops_frac P)
 *
 * B: rate of the memory, P: peak of the format. Half of a tile's 128 rows is lost by each expert, and hidden layers are
 * rounded up to 64 columns. Source: [aiconfigurator] data moe_perf, fitted as each entry of a recipe says. */
static void measured(Layer *layer, const SpecExpertKernel *kernel, const Experts *experts)
{
    const CostShape *shape = layer->shape;
    const SpecAccelerator *accelerator = &shape->accelerator;
    const double h = shape->spec->model.hidden, products = shape->spec->model.gated_mlp ? 3 : 2,
                 rate = accelerator->memory_bytes_per_s,
                 peak = accelerator->peak_flops_per_s[shape->linear_dtype], wide = experts->wide,
                 each = fmax(1, experts->rows / experts->met);
    const double stored = cost_decode_stored_bytes(shape->spec, shape->linear_dtype),
                 scales = stored < 1 ? 1 / 16.0 : 0;
    layer->time.kernels += MEASURED_KERNELS; /* pauses between them are in start_s */
    const double read_s = products * h * wide * (stored + scales) / (kernel->memory_frac * rate),
                 multiply_s =
                     2 * products * h * ceil(wide / 64) * 64 * (each + 64) / (kernel->flops_frac * peak);
    layer->time.part_s[COST_DECODE_PRODUCTS] += experts->met * pow(pow(read_s, 4) + pow(multiply_s, 4), 0.25);
    layer->time.part_s[COST_DECODE_SMALL] +=
        kernel->start_s + 4 * h * (experts->rows + experts->seen) / (kernel->rows_frac * rate);
}

/* Each expert is one group of a grouped product; the kernels around it each one by itself. */
static void grouped(Layer *layer, const SpecMoeRun *moe, const Experts *experts)
{
    const double h = layer->shape->spec->model.hidden;
    moves(layer, COST_MEMORY_SOFTMAX, 8 * layer->rows * moe->experts); /* top k */
    moves(layer, COST_MEMORY_PERMUTE, 8 * experts->seen * moe->top_k); /* rows in order of experts */
    mlp(layer, fmax(1, experts->rows / experts->met), experts->wide, experts->met);
    moves(layer, COST_MEMORY_PERMUTE,
          layer->shape->element_bytes * (experts->rows + experts->seen) * h); /* summed */
}

static void add_experts(Layer *layer, int index)
{
    const CostShape *shape = layer->shape;
    const Spec *spec = shape->spec;
    const SpecMoeRun moe = cost_layer_moe(&spec->model, index);
    const SpecExpertKernel *kernel = measured_experts(shape);
    const Experts experts = experts_of(layer, &moe);
    product(layer, layer->rows, moe.experts, spec->model.hidden, 1, shape->activation_dtype);
    exchange(layer, experts.gathered ? COST_ALL_GATHER : COST_ALL_TO_ALL, experts.exchanged);
    if (kernel != NULL && shape->accelerator.peak_flops_per_s[shape->linear_dtype] > 0)
        measured(layer, kernel, &experts);
    else
        grouped(layer, &moe, &experts);
    exchange(layer, experts.gathered ? COST_REDUCE_SCATTER : COST_ALL_TO_ALL, experts.exchanged);
    if (spec->model.moe.shared_experts > 0)
        mlp(layer, layer->rows, spec->model.moe.shared_expert_ffn_hidden / shape->tensor, 1);
}

static void add_layer(Layer *layer, int index)
{
    const CostShape *shape = layer->shape;
    const double wide = shape->element_bytes * layer->rows * shape->spec->model.hidden;
    moves(layer, COST_MEMORY_NORM, 4 * wide); /* with the residual: two read, two written */
    projections(layer);
    gap(layer, 1); /* attention */
    all_reduce(layer, wide);
    moves(layer, COST_MEMORY_NORM, 4 * wide);
    if (cost_layer_has_experts(&shape->spec->model, index))
        add_experts(layer, index);
    else
        mlp(layer, layer->rows, shape->spec->model.ffn_hidden / shape->tensor, 1);
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
        Layer layer = {.shape = shape, .loads = &decode->loads, .rows = rows};
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
    Layer head = {.shape = shape, .rows = rows};
    const double vocab = shape->spec->model.vocab;
    const CostCollective logits = {
        .op = COST_ALL_GATHER, .bytes = 2 * rows * vocab, .group = shape->tensor_group};
    product(&head, rows, vocab / shape->tensor, shape->spec->model.hidden, 1, shape->activation_dtype);
    if (shape->tensor_group.ranks > 1)
        head.time.part_s[COST_DECODE_COMM] += cost_collective_s(&shape->spec->cluster, &logits);
    moves(&head, COST_MEMORY_SOFTMAX, 6 * rows * vocab);
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
               ? "model.scalar_head: a reward or value is no token; give a model with logits"
           : spec->model.encoder_layers > 0 ? "a model with an encoder is not simulated; give one without"
           : !spec->model.causal
               ? "a model whose tokens see those behind them writes nothing; give a causal one"
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
    fill_loads(spec, fmax(most, spec->execution.framework.engine.prefill_tokens), &ret_decode->loads);
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

static double attention_s(const CostDecode *decode, double batch, double tokens)
{
    const SpecAccelerator *accelerator = &decode->shape.accelerator;
    const double windowed = decode->window_tokens > 0 ? fmin(tokens, batch * decode->window_tokens) : 0;
    const double bytes = tokens * decode->read_bytes + windowed * decode->window_token_bytes,
                 flops = tokens * decode->pair_flops + windowed * decode->window_pair_flops,
                 peak = accelerator->peak_flops_per_s[decode->shape.activation_dtype];
    const double empty_s =
        decode->shape.spec->model.layers * cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, 0);
    return empty_s / decode->pipeline + fmax(bytes / (CACHE_READ_FRAC * accelerator->memory_bytes_per_s),
                                             flops / decode->pipeline / (CACHE_FLOPS_FRAC * peak));
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
    time.part_s[COST_DECODE_ATTENTION] += attention_s(decode, batch, tokens);
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

double cost_prefill_s(const CostDecode *decode, double prompts, double tokens)
{
    const Spec *spec = decode->shape.spec;
    const double chunk = fmax(1, fmin(spec->execution.framework.engine.prefill_tokens, prompts * tokens));
    const double together = fmax(1, floor(chunk / tokens)); /* prompts in one kernel of attention */
    CostDecodeTime time = layers_time(decode, chunk);
    add_head(&decode->shape, fmax(1, chunk / tokens), &time);
    time.part_s[COST_DECODE_HOST] += step_host_s(spec);
    await_host(spec, &time);
    const CostAttention core = {.kernel = cost_attention_kernel(spec),
                                .batch = together,
                                .q_tokens = tokens,
                                .kv_tokens = tokens,
                                .heads = decode->shape.heads,
                                .kv_heads = spec->model.mla.kv_lora_rank > 0 ? decode->shape.heads
                                                                             : decode->shape.kv_heads,
                                .qk_head_dim = cost_qk_dim(&spec->model),
                                .v_head_dim = cost_v_dim(&spec->model),
                                .causal = true,
                                .dtype = decode->shape.activation_dtype};
    const double once_s = core.kernel == SPEC_ATTENTION_UNFUSED
                              ? unfused_s(&decode->shape, &core)
                              : cost_attention_s(&decode->shape.accelerator, &core);
    const double attention = spec->model.layers * once_s / together;
    return (cost_decode_total_s(&time) * (tokens / chunk) + attention) * prompts / decode->pipeline;
}
