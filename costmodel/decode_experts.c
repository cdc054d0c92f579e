/* costmodel/decode_experts.c - experts of one layer of a step of generation: who holds which rows, how they travel, what the
 * kernels take. See decode_layer.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/decode_layer.h"

#include <math.h>

#include "costmodel/decode_memory.h"
#include "costmodel/moe.h"
#include "costmodel/params.h"
#include "costmodel/placement.h"

/* Of a layer's experts: top k, rows sorted and counted, two products around the activation, rows summed.
 * Source: [vLLM] fused_moe */
enum { MEASURED_KERNELS = 7 };

/* Rows to their experts or back, `bytes` of a rank. */
static void exchange(CostDecodeLayer *layer, CostCollectiveOp op, double bytes)
{
    const CostShape *shape = layer->shape;
    const CostCollective rows = {.op = op, .bytes = bytes, .group = shape->expert_group};
    if (bytes <= 0)
        return;
    layer->time.part_s[COST_DECODE_COMM] += cost_collective_s(&shape->spec->cluster, &rows);
    cost_decode_gap(layer, 1);
}

/* What a rank's experts have to do in one layer. */
typedef struct Experts {
    double met;  /* experts that some token meets: E (1 - (1 - k/E)^b) of those of the rank */
    double rows; /* of tokens, one for each expert of each, on the rank whose experts have most */
    double wide; /* of an expert's hidden layer on the rank */
    double seen; /* tokens that the rank sorts and sums: its own, or all ranks' where they are gathered */
    double sent, returned; /* bytes of the exchanges between ranks; 0: none */
    bool gathered;         /* all tokens to every rank */
} Experts;

bool cost_decode_ranks_apart(const Spec *spec)
{
    return spec->parallel.tensor < 2 && spec->parallel.expert > 1;
}

void cost_decode_fill_loads(const Spec *spec, double most, CostDecodeLoads *loads)
{
    const SpecMoe *moe = &spec->model.moe;
    const CostPlacement placement = {.experts = moe->experts,
                                     .ranks = spec->parallel.expert,
                                     .top_k = moe->top_k,
                                     .replicas = spec->parallel.expert_replicas,
                                     .rebalance = spec->parallel.expert_rebalance};
    const double ranks = cost_decode_ranks_apart(spec) ? spec->parallel.expert : 1,
                 last = COST_DECODE_LOADS - 1;
    cost_moe_shares(&spec->training.router, moe->experts, loads->share);
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

/* DeepEP's kernels send; what engines have by themselves gathers all rows and sums by a reduce-scatter.
 * Source: [TensorRTLLM] fused_moe_cutlass.py, [vLLM] device_communicators/all2all.py (AgRsAll2AllManager) */
static bool gathers_rows(const Spec *spec)
{
    const SpecMoeDispatcher dispatcher = spec->parallel.moe_dispatcher;
    return spec->execution.framework.engine.gathers_rows && dispatcher != SPEC_DISPATCHER_DEEPEP &&
           dispatcher != SPEC_DISPATCHER_HYBRIDEP;
}

/* Of one element of a row on its way to experts. Scales of 128 or 16 elements travel with it; a scale for a whole tensor is
 * there already. Source: [TensorRTLLM] fused_moe_cutlass.py: run_post_quant_allgather, for fp8 with one scale and nvfp4 */
static double row_bytes(const CostShape *shape)
{
    const SpecPrecision precision = shape->spec->training.precision;
    const double narrow = spec_dtype_bytes(shape->linear_dtype);
    if (!shape->spec->execution.framework.engine.narrow_rows || precision == SPEC_PRECISION_FP8_BLOCKWISE ||
        narrow >= shape->element_bytes)
        return shape->element_bytes;
    return narrow + (narrow < 1 ? 1 / 16.0 : 0);
}

/* Experts that some of `tokens` meet, where a token's top k are all different: 1 - (1 - k p)^tokens of each. */
static double met_experts(const CostDecodeLoads *loads, int experts, double top_k, double tokens)
{
    double met = 0;
    for (int i = 0; i < experts; i++)
        met += 1 - pow(1 - fmin(1, top_k * loads->share[i]), tokens);
    return met;
}

static Experts experts_of(const CostDecodeLayer *layer, const SpecMoeRun *moe)
{
    const CostShape *shape = layer->shape;
    const SpecParallel *parallel = &shape->spec->parallel;
    const bool apart = cost_decode_ranks_apart(shape->spec); /* with sequences of their own */
    const double tokens = layer->rows, ranks = fmax(1, parallel->expert), top_k = moe->top_k,
                 all = tokens * (apart ? ranks : 1), cut = fmax(1, apart ? 1 : parallel->tensor / ranks);
    const bool gathered = apart && gathers_rows(shape->spec);
    const double places = gathered ? ranks
                                   : cost_moe_places_touched(moe->experts, moe->top_k, (int)ranks,
                                                             shape->spec->model.moe.router_groups,
                                                             shape->spec->model.moe.router_top_groups),
                 copies = apart ? tokens * places * shape->spec->model.hidden : 0;
    return (Experts){.met = met_experts(layer->loads, moe->experts, top_k, all) / ranks,
                     .rows = all * top_k / ranks * load_at(layer->loads, all),
                     .wide = moe->expert_ffn_hidden / cut,
                     .seen = gathered ? all : tokens,
                     .sent = copies * row_bytes(shape),
                     .returned = copies * shape->element_bytes,
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
static void measured(CostDecodeLayer *layer, const SpecExpertKernel *kernel, const Experts *experts)
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
static void grouped(CostDecodeLayer *layer, const SpecMoeRun *moe, const Experts *experts)
{
    const double h = layer->shape->spec->model.hidden;
    cost_decode_moves(layer, COST_MEMORY_SOFTMAX, 8 * layer->rows * moe->experts); /* top k */
    cost_decode_moves(layer, COST_MEMORY_PERMUTE,
                      8 * experts->seen * moe->top_k); /* rows in order of experts */
    cost_decode_mlp(layer, fmax(1, experts->rows / experts->met), experts->wide, experts->met);
    cost_decode_moves(layer, COST_MEMORY_PERMUTE,
                      layer->shape->element_bytes * (experts->rows + experts->seen) * h); /* summed */
}

void cost_decode_experts(CostDecodeLayer *layer, int index)
{
    const CostShape *shape = layer->shape;
    const Spec *spec = shape->spec;
    const SpecMoeRun moe = cost_layer_moe(&spec->model, index);
    const SpecExpertKernel *kernel = measured_experts(shape);
    const Experts experts = experts_of(layer, &moe);
    cost_decode_product(layer, layer->rows, moe.experts, spec->model.hidden, 1, shape->activation_dtype);
    exchange(layer, experts.gathered ? COST_ALL_GATHER : COST_ALL_TO_ALL, experts.sent);
    if (kernel != NULL && shape->accelerator.peak_flops_per_s[shape->linear_dtype] > 0)
        measured(layer, kernel, &experts);
    else
        grouped(layer, &moe, &experts);
    exchange(layer, experts.gathered ? COST_REDUCE_SCATTER : COST_ALL_TO_ALL, experts.returned);
    if (spec->model.moe.shared_experts > 0)
        cost_decode_mlp(layer, layer->rows, spec->model.moe.shared_expert_ffn_hidden / shape->tensor, 1);
}
