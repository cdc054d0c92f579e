/* costmodel/context.c - see context.h. */
#include "costmodel/context.h"

#include <math.h>

#include "costmodel/params.h"

/* Heads of keys and values that travel: all, where latent attention or the framework has expanded them. */
static double travelling_heads(const CostShape *shape)
{
    const bool expanded =
        shape->spec->model.mla.kv_lora_rank > 0 || shape->spec->execution.framework.context.repeats_kv;
    return expanded ? shape->heads : shape->kv_heads;
}

/* Ranks of the all-to-all part: as many of a scale-up domain as divide the heads. */
static int inner_ranks(const CostShape *shape)
{
    int inner = shape->context_group.per_domain;
    const int heads = (int)shape->heads;
    while (heads % inner != 0 || shape->context_group.per_domain % inner != 0)
        inner -= 1;
    return inner;
}

CostContextPlan cost_context_plan(const CostShape *shape)
{
    const SpecParallel *parallel = &shape->spec->parallel;
    const int context = parallel->context;
    CostContextPlan plan = {.inner = 1, .ring = context};
    if (parallel->context_mode == SPEC_CONTEXT_ULYSSES) {
        plan = (CostContextPlan){.inner = context, .ring = 1};
    } else if (parallel->context_mode == SPEC_CONTEXT_HIERARCHICAL) {
        plan.inner = parallel->context_inner > 0 ? parallel->context_inner : inner_ranks(shape);
        plan.ring = context / plan.inner;
    }
    plan.q_tokens = shape->sequence / plan.ring;
    plan.heads = shape->heads / plan.inner;
    plan.kv_heads = fmax(1, travelling_heads(shape) / plan.inner);
    return plan;
}

double cost_context_rank_work(SpecContextMode mode, int context, bool causal, double tokens, int rank)
{
    const double own = tokens / context;
    if (!causal || context < 2) {
        return 1;
    }
    if (mode == SPEC_CONTEXT_RING_NAIVE) {
        return (2.0 * rank + 1) / context;
    }
    if (mode == SPEC_CONTEXT_RING_STRIPED) {
        return (own * (rank + 1) + context * own * (own - 1) / 2) / (own * (tokens + 1) / 2);
    }
    return 1;
}

double cost_document_pairs(double tokens, double document_tokens)
{
    const double ratio = tokens / document_tokens;
    if (document_tokens <= 0 || ratio < 1e-4) {
        return tokens * tokens / 2;
    }
    return document_tokens * tokens + document_tokens * document_tokens * expm1(-ratio);
}

double cost_document_window(double tokens, double document_tokens)
{
    const double pairs = cost_document_pairs(tokens, document_tokens);
    return document_tokens > 0 ? tokens - sqrt(fmax(0, tokens * tokens - 2 * pairs)) : 0;
}

double cost_attention_window(const SpecModel *model, double tokens)
{
    const double window = model->attention_window_tokens;
    return model->attention_chunked && model->causal && window < tokens ? cost_document_window(tokens, window)
                                                                        : window;
}

/* Bytes of keys and values of a whole micro-batch on the ranks of one ring, `element_bytes` each. */
static double kv_bytes(const CostShape *shape, const CostContextPlan *plan, double element_bytes)
{
    const SpecModel *model = &shape->spec->model;
    return shape->batch * shape->sequence * plan->kv_heads * (cost_qk_dim(model) + cost_v_dim(model)) *
           element_bytes;
}

double cost_context_buffer_bytes(const CostShape *shape, bool backward)
{
    if (shape->context < 2) {
        return 0;
    }
    const CostContextPlan plan = cost_context_plan(shape);
    const double whole = kv_bytes(shape, &plan, shape->element_bytes), own = whole / shape->context;
    switch (shape->spec->parallel.context_mode) {
    case SPEC_CONTEXT_ALLGATHER:
        return backward ? 2 * whole : whole;
    case SPEC_CONTEXT_ALLGATHER_RING:
        return backward ? whole + 2 * kv_bytes(shape, &plan, 4) / shape->context : whole;
    case SPEC_CONTEXT_ULYSSES:
        return 0;
    default:
        return backward ? 4 * own : whole;
    }
}

/* Kernels of q x `keys` tokens. */
typedef struct Steps {
    bool causal;
    double count, keys;
    double window; /* of causal ones, 0: none */
} Steps;

/* Returns the op's index. FLOPs are given for all of them together. */
static int push_steps(const CostShape *shape, const CostContextPlan *plan, const char *name, bool backward,
                      Steps steps, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    CostOp *op = cost_ops_push(ops, name, COST_OP_ATTENTION, COST_MODULE_ATTENTION_CORE);
    op->u.attention = (CostAttention){.kernel = cost_attention_kernel(shape->spec),
                                      .batch = shape->batch,
                                      .q_tokens = plan->q_tokens,
                                      .kv_tokens = steps.keys,
                                      .heads = plan->heads,
                                      .kv_heads = fmin(plan->heads, plan->kv_heads),
                                      .qk_head_dim = cost_qk_dim(model),
                                      .v_head_dim = cost_v_dim(model),
                                      .causal = steps.causal,
                                      .window_tokens = steps.window < steps.keys ? steps.window : 0,
                                      .backward = backward,
                                      .dtype = shape->core_dtype,
                                      .block_scaled = cost_core_block_scaled(shape)};
    op->repeat = steps.count;
    op->kernels = (int)((backward ? 3 : 1) * steps.count);
    return ops->count - 1;
}

static void set_flops(const CostShape *shape, bool backward, double useful, double all, CostOp *op)
{
    const SpecModel *model = &shape->spec->model;
    const double per_pair =
        2 * shape->batch * shape->heads * (cost_qk_dim(model) + cost_v_dim(model)) * (backward ? 2 : 1);
    op->model_flops = per_pair * useful;
    op->full_flops = per_pair * all;
}

static void push_comm(const char *name, CostCollectiveOp collective, double bytes, CostGroup group,
                      double times, int under, CostOps *ops)
{
    const int before = ops->count;
    cost_push_collective(ops, name, COST_MODULE_ATTENTION_CORE, collective, bytes, group, COST_COMM_CONTEXT,
                         under);
    if (ops->count > before) {
        ops->op[before].repeat = times;
        ops->op[before].kernels = (int)times;
    }
}

/* A compiler adds a step's part in one kernel: the fp32 sum read and written, the part read (4 + 4 + 2), and half of the
 * steps write the rows beside those that they worked on besides. */
#define COMPILED_MERGE_BYTES 13

/* Bytes read and written to add an output element of a step to the rest, and an element of the gradients of queries, keys
 * and values; kernel launches of that.   Source: [TransformerEngine] fused_attn correction kernels; torch's ring
 * attention (_SDPAMerger), one kernel for each operation of its formula */
typedef struct Merge {
    double bytes, backward_bytes;
    int kernels;
} Merge;

static const Merge merges[] = {
    [SPEC_CONTEXT_MERGE_FUSED] = {8, 6, 1}, [SPEC_CONTEXT_MERGE_EAGER] = {50, 20, 8}};

/* Adding each step's part to what is there, over the rows that it worked on: three quarters on average where half
 * of the steps of a zig-zag ring have half of the queries. */
static void push_merge(const CostShape *shape, const CostContextPlan *plan, bool backward, double steps,
                       CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const SpecContextMode mode = shape->spec->parallel.context_mode;
    const bool halves = mode != SPEC_CONTEXT_RING_NAIVE && mode != SPEC_CONTEXT_RING_STRIPED && model->causal;
    const double rows = shape->batch * plan->q_tokens * (halves ? 0.75 : 1);
    const double width = backward ? plan->heads * cost_qk_dim(model) +
                                        plan->kv_heads * (cost_qk_dim(model) + cost_v_dim(model))
                                  : plan->heads * cost_v_dim(model);
    const Merge *merge = &merges[shape->spec->execution.framework.context.context_merge];
    const double own = backward ? merge->backward_bytes : merge->bytes;
    const bool compiled = shape->spec->execution.compiled;
    const double bytes = compiled ? fmin(own, COMPILED_MERGE_BYTES) : own;
    const int kernels = compiled ? 1 : merge->kernels;
    if (steps > 0 && bytes > 0) {
        cost_push_memory(ops, "merge", COST_MODULE_ATTENTION_CORE, COST_MEMORY_ELEMENTWISE,
                         steps * rows * width, (CostMoved){.undivided = bytes}, (int)steps * kernels);
    }
}

/* Pairs of a causal block of `tokens` in a window of `window`. */
static double block_pairs(double tokens, double window)
{
    const double w = fmin(window, tokens);
    return tokens * w - w * w / 2;
}

/* Pairs of the last of n contiguous pieces of a causal sequence of s tokens, b of them: min(window, position) a query. */
static double last_piece_pairs(double s, double b, double window)
{
    const double w = fmin(window, s), from = s - b;
    return w <= from ? b * w : (w * w - from * from) / 2 + (s - w) * w;
}

/* What a causal window of w leaves of a ring's steps behind the first, of b tokens each: whole steps where it reaches back
 * past their keys, and keys in them that add up to the pairs. Zig-zag pieces of b/2 lie on both sides of a rank's own. */
static Steps windowed_rest(const CostShape *shape, const CostContextPlan *plan, const CostPairs *pairs,
                           bool naive)
{
    const double b = plan->q_tokens, w = pairs->window, others = plan->ring - 1;
    const double all =
        naive ? last_piece_pairs(shape->sequence, b, w) : block_pairs(shape->sequence, w) / plan->ring;
    const double count = fmin(others, naive ? ceil(w / b) : 2 * ceil(w / (b / 2)));
    return (Steps){.count = count, .keys = fmax(0, all - block_pairs(b, w)) / (count * b)};
}

/* Steps of a ring of n ranks with s/n tokens each, behind the first:
 *   causal     zig-zag: n - 1 of half a block    striped: n - 1 diagonals, whose window is 1/n as long
 *              naive (last rank): n - 1 whole blocks
 *   else       n - 1 whole blocks, or what the window leaves of them */
static Steps rest_of_ring(const CostShape *shape, const CostContextPlan *plan, const CostPairs *pairs)
{
    const SpecContextMode mode = shape->spec->parallel.context_mode;
    const double others = plan->ring - 1, block = plan->q_tokens;
    const bool windowed = pairs->window > 0 && pairs->window < shape->sequence;
    const bool naive = mode == SPEC_CONTEXT_RING_NAIVE;
    if (others <= 0) {
        return (Steps){.count = 0};
    }
    if (!shape->spec->model.causal) {
        const double left = windowed ? fmax(0, pairs->window - block) : others * block;
        const double count = fmin(others, ceil(left / block));
        return (Steps){.count = count, .keys = count > 0 ? left / count : 0};
    }
    if (mode == SPEC_CONTEXT_RING_STRIPED) {
        return (Steps){true, others, block, windowed ? pairs->window / plan->ring : 0};
    }
    if (windowed) {
        return windowed_rest(shape, plan, pairs, naive);
    }
    return (Steps){.count = others, .keys = naive ? block : block / 2};
}

/* The first step is a rank's own block: the diagonal. */
static Steps own_block(const CostShape *shape, const CostContextPlan *plan, const CostPairs *pairs)
{
    const bool causal = shape->spec->model.causal;
    const double stride =
        causal && shape->spec->parallel.context_mode == SPEC_CONTEXT_RING_STRIPED ? plan->ring : 1;
    const double window = pairs->window / stride, block = plan->q_tokens;
    return (Steps){causal, 1, causal || window <= 0 ? block : fmin(window, block), causal ? window : 0};
}

double cost_context_keys(const CostShape *shape, const CostPairs *pairs)
{
    const SpecContextMode mode = shape->spec->parallel.context_mode;
    const CostContextPlan plan = cost_context_plan(shape);
    if (shape->context < 2 || mode == SPEC_CONTEXT_ALLGATHER) {
        return shape->keys;
    }
    const Steps rest = rest_of_ring(shape, &plan, pairs);
    return plan.q_tokens + rest.count * rest.keys;
}

/* Returns the op beside which hops run; `ret_steps`: whose parts are added up. */
static int push_ring_steps(const CostShape *shape, const CostContextPlan *plan, bool backward,
                           const CostPairs *pairs, double *ret_steps, CostOps *ops)
{
    const Steps rest = rest_of_ring(shape, plan, pairs);
    const int first = push_steps(shape, plan, "attention", backward, own_block(shape, plan, pairs), ops);
    *ret_steps = rest.count;
    return rest.count > 0 && rest.keys > 0 ? push_steps(shape, plan, "attention steps", backward, rest, ops)
                                           : first;
}

/* The ring's ranks lie `inner` apart in the context group. */
static CostGroup ring_group(const CostShape *shape, const CostContextPlan *plan)
{
    return cost_group_part(shape->spec, COST_RANKS_CONTEXT, plan->inner, plan->ring);
}

/* Keys gathered beside op `first`, or passed beside op `steps`; in the backward their gradients as well. */
static void push_ring_comm(const CostShape *shape, const CostContextPlan *plan, bool backward, int first,
                           int steps, CostOps *ops)
{
    const CostGroup group = ring_group(shape, plan);
    const CostGroup pair = cost_group_among(&group, 2, group.per_domain < group.ranks ? 1 : 2);
    const double hop = kv_bytes(shape, plan, shape->element_bytes) / plan->ring, hops = plan->ring - 1;
    const bool gathered = shape->spec->parallel.context_mode == SPEC_CONTEXT_ALLGATHER_RING;
    if (shape->spec->execution.compiled &&
        shape->spec->execution.framework.context.context_merge == SPEC_CONTEXT_MERGE_EAGER) {
        first = steps = -1;
    }
    if (plan->ring < 2) {
        return;
    }
    if (gathered) {
        push_comm("gather keys", COST_ALL_GATHER, hop * plan->ring, group, 1, first, ops);
    } else {
        push_comm("pass keys", COST_SEND_RECV, hop, pair, hops, steps, ops);
    }
    if (backward) {
        const double wide = gathered ? 4 / shape->element_bytes : 1;
        push_comm("pass key grads", COST_SEND_RECV, hop * wide, pair, gathered ? hops + 1 : hops, steps, ops);
    }
}

/* Queries, keys and values to heads before the core, the output back to tokens after it. */
static void push_exchange(const CostShape *shape, const CostContextPlan *plan, const char *name, bool before,
                          CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double kv = fmax(travelling_heads(shape), plan->inner);
    const double width =
        before ? shape->heads * cost_qk_dim(model) + kv * (cost_qk_dim(model) + cost_v_dim(model))
               : shape->heads * cost_v_dim(model);
    if (plan->inner > 1) {
        const CostGroup group = cost_group_part(shape->spec, COST_RANKS_CONTEXT, 1, plan->inner);
        push_comm(name, COST_ALL_TO_ALL, shape->tokens * width * shape->element_bytes, group, 1, -1, ops);
    }
}

void cost_push_context_before(const CostShape *shape, bool backward, CostOps *ops)
{
    const CostContextPlan plan = cost_context_plan(shape);
    push_exchange(shape, &plan, "heads to ranks", !backward, ops);
    if (shape->spec->parallel.context_mode == SPEC_CONTEXT_ALLGATHER) {
        push_comm("gather keys", COST_ALL_GATHER, kv_bytes(shape, &plan, shape->element_bytes),
                  shape->context_group, 1, -1, ops);
    }
}

void cost_push_context_after(const CostShape *shape, bool backward, int first, int last, CostOps *ops)
{
    const CostContextPlan plan = cost_context_plan(shape);
    if (shape->spec->parallel.context_mode != SPEC_CONTEXT_ALLGATHER) {
        push_ring_comm(shape, &plan, backward, first, last, ops);
    } else if (backward) {
        push_comm("reduce key grads", COST_REDUCE_SCATTER, kv_bytes(shape, &plan, shape->element_bytes),
                  shape->context_group, 1, -1, ops);
    }
    push_exchange(shape, &plan, "ranks to heads", backward, ops);
}

void cost_push_context_core(const CostShape *shape, bool backward, const CostPairs *pairs, CostOps *ops)
{
    const CostContextPlan plan = cost_context_plan(shape);
    cost_push_context_before(shape, backward, ops);
    const int first = ops->count;
    int last = first;
    if (shape->spec->parallel.context_mode == SPEC_CONTEXT_ALLGATHER) {
        push_steps(shape, &plan, "attention", backward,
                   (Steps){shape->spec->model.causal, 1, shape->sequence, pairs->window}, ops);
    } else {
        double steps = 0;
        last = push_ring_steps(shape, &plan, backward, pairs, &steps, ops);
        push_merge(shape, &plan, backward, steps, ops);
    }
    set_flops(shape, backward, pairs->useful, pairs->all,
              &ops->op[first]); /* on the first kernel, for all of them */
    cost_push_context_after(shape, backward, first, last, ops);
}
