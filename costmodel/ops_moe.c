/* costmodel/ops_moe.c - the MLP of a layer with routed experts: router, exchange of rows, experts, and back.
 *
 * The counts of kernels are those of Megatron-Core's dropless layer; costmodel/moe.h has where rows go and how many
 * the busiest rank gets. All ranks of an expert group wait for that rank, so its load is everybody's time; FLOPs stay
 * those of the average rank.
 */
#include <math.h>
#include <string.h>

#include "costmodel/adapter.h"
#include "costmodel/moe.h"
#include "costmodel/ops.h"
#include "costmodel/ops_moe.h"

/* Kernels of the router: softmax or sigmoid, top-k, two scatters, load-balancing loss with its log, counts of tokens
 * an expert and their sums over ranks. Bytes are of a logit, over all of them, reads
 * and writes together. Source: [MegatronMoE] router.py, moe_utils.py, token_dispatcher.py */
#define ROUTING_KERNELS          30
#define ROUTING_BACKWARD_KERNELS 18
#define ROUTING_BYTES            40
#define ROUTING_BACKWARD_BYTES   24

/* Products whose epilogue activates, weighs and casts, forward and backward; what they move besides hides under them.
 * Source: [TransformerEngine] ops/fused, grouped MLP (CuTe DSL kernels of sm_100 for mxfp8) */
static bool fused_mlp(const CostShape *shape)
{
    const bool adapted = (shape->spec->training.adapter.targets & SPEC_TARGETS_MLP) != 0;
    return shape->spec->execution.framework.experts.expert_products == SPEC_EXPERT_PRODUCTS_FUSED &&
           !adapted && shape->spec->training.precision == SPEC_PRECISION_MXFP8 &&
           shape->accelerator.generation.fused_grouped_experts;
}

/* Device-side sizes: all experts of a rank in one kernel. A graph of the whole iteration cannot do without. */
static bool one_kernel(const CostShape *shape)
{
    const SpecExecution *execution = &shape->spec->execution;
    return execution->framework.experts.expert_products == SPEC_EXPERT_PRODUCTS_GROUPED || fused_mlp(shape) ||
           strstr(execution->cuda_graph, "full_iteration") != NULL;
}

static void push_shared_experts(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const CostModule module = COST_MODULE_SHARED_EXPERT;
    if (model->moe.shared_experts == 0) {
        return;
    }
    const double f = model->moe.shared_expert_ffn_hidden / shape->tensor;
    cost_push_cast(shape, ops, module, pass, shape->part_tokens * shape->hidden,
                   shape->tokens * (model->gated_mlp ? 2 * f : f), COST_GATHERED_INPUT);
    const int in = cost_push_linear(shape, ops, "shared expert in", module, pass, shape->tokens,
                                    shape->hidden, model->gated_mlp ? 2 * f : f, shape->linear_dtype);
    if (model->gated_mlp) {
        cost_split_linear(shape, ops, pass, in, (const double[]){f, f, 0});
    }
    cost_push_tensor_in(shape, ops, pass, module, in);
    cost_push_activation(shape, ops, pass, module, shape->tokens * f);
    const int activation = ops->count - 1;
    cost_push_cast(shape, ops, module, pass, shape->tokens * f, shape->part_tokens * shape->hidden,
                   COST_GATHERED_OUTPUT_GRAD);
    const int out = cost_push_linear(shape, ops, "shared expert out", module, pass, shape->tokens, f,
                                     shape->hidden, shape->linear_dtype);
    cost_push_tensor_out(shape, ops, pass, module, out);
    if (pass == COST_FORWARD) { /* the router keeps their input */
        const double elements = shape->tokens * f, wide = elements * cost_activation_input_bytes(shape);
        cost_keep(ops, (CostTensor){"shared expert activation input", wide * (model->gated_mlp ? 2 : 1), in,
                                    .kept_by = activation});
        cost_keep(ops, (CostTensor){"shared expert output input", cost_kept_element_bytes(shape) * elements,
                                    activation, .kept_by = out, .weight_grad = true});
    }
    if (pass != COST_BACKWARD_WEIGHT) { /* added to the routed output */
        cost_push_memory(ops, "add shared", module, COST_MEMORY_ELEMENTWISE,
                         shape->part_tokens * shape->hidden,
                         cost_both_ways(2 * shape->element_bytes, shape->element_bytes), 1);
    }
}

/* A router in fp32, forward and for either gradient:
 *   tf32    16-bit operands to fp32 logits; TF32, its fp32 result cast to 16 bits (4 + 2 bytes an element of the hidden
 *           size); the input cast (2 + 4), TF32
 *   else    the input cast (2 + 4), fp32; fp32 and the result cast; fp32 of the copy that the forward kept
 * Ignored: that autograd keeps the forward's copy, 4 bytes an element, in core 0.12.
 * Source: [MegatronMoE] moe_utils.py, RouterGatingLinearFunction (core 0.13), router.py of core 0.12; [TransformerEngine] cublaslt_gemm.cu (TF32 where both operands are fp32) */
static int push_router_fp32(const CostShape *shape, CostPass pass, double own, CostOps *ops)
{
    const bool tf32 = shape->spec->execution.framework.experts.router_tf32;
    const bool forward = pass == COST_FORWARD, weight = pass == COST_BACKWARD_WEIGHT;
    const double elements = own * shape->hidden, e = shape->element_bytes;
    if (weight ? tf32 : forward && !tf32) {
        cost_push_memory(ops, "router cast", COST_MODULE_ROUTER, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(e, 4), 1);
    }
    const int gemm = cost_push_linear(shape, ops, "router", COST_MODULE_ROUTER, pass, own, shape->hidden,
                                      shape->spec->model.moe.experts,
                                      !tf32 ? SPEC_FP32 : (forward ? shape->activation_dtype : SPEC_TF32));
    if (!forward && !weight) {
        cost_push_memory(ops, "router cast", COST_MODULE_ROUTER, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(4, e), 1);
    }
    return gemm;
}

static void push_router(const CostShape *shape, CostPass pass, int input, CostOps *ops)
{
    const SpecMoe *moe = &shape->spec->model.moe;
    const CostModule module = COST_MODULE_ROUTER;
    const double own = cost_moe_own_tokens(shape), logits = own * moe->experts;
    const bool frozen = shape->spec->training.freeze.router;
    if (frozen && pass == COST_BACKWARD_WEIGHT)
        return;
    const bool fp32 = moe->router_fp32 && shape->element_bytes < 4;
    const int gemm = fp32 ? push_router_fp32(shape, pass, own, ops)
                          : cost_push_linear(shape, ops, "router", module, pass, own, shape->hidden,
                                             moe->experts, shape->activation_dtype);
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool forward = pass == COST_FORWARD;
    cost_push_memory(ops, "routing", module, COST_MEMORY_SOFTMAX, logits,
                     (CostMoved){.undivided = forward ? ROUTING_BYTES : ROUTING_BACKWARD_BYTES},
                     forward ? ROUTING_KERNELS : ROUTING_BACKWARD_KERNELS);
    if (forward) {
        const int routing = ops->count - 1;
        if (!frozen || moe->shared_experts > 0) /* shared experts keep the same */
            cost_keep(ops,
                      (CostTensor){"router input", shape->element_bytes * shape->part_tokens * shape->hidden,
                                   input, .kept_by = gemm, .weight_grad = true});
        cost_keep(ops,
                  (CostTensor){"router logits and probabilities", 8 * logits, routing, .kept_by = routing});
    }
    if (forward && cost_moe_dropless(shape) && !one_kernel(shape)) {
        ops->op[ops->count - 1].idle_s = shape->spec->execution.framework.experts.host_sync_s;
    }
}

/* Standard deviation of an expert's rows: tokens choose k of E experts, so m (1 - k/E) is the variance of m rows.
 * Capacity pads all to the same. */
static double row_deviation(const CostShape *shape, double rows)
{
    const SpecMoe *moe = &shape->spec->model.moe;
    return cost_moe_dropless(shape) ? sqrt(rows * (1 - (double)moe->top_k / fmax(1, moe->experts))) : 0;
}

/* One product for each of the rank's experts. */
static int push_expert_gemm(const CostShape *shape, CostOps *ops, const char *name, CostPass pass, double in,
                            double out)
{
    const double experts = cost_moe_experts_of_rank(shape), even = cost_routed_rows(shape) / experts;
    const double rows = even * cost_moe_load(shape);
    int gemm;
    if (pass == COST_BACKWARD_WEIGHT) {
        gemm = cost_push_weight_gradient(shape, ops, name, COST_MODULE_MOE, (const double[]){out, in, rows},
                                         experts, shape->linear_dtype);
    } else {
        const double n = pass == COST_FORWARD ? out : in, k = pass == COST_FORWARD ? in : out;
        if (cost_is_integer(shape)) {
            cost_push_weight_cast(shape, ops, COST_MODULE_MOE, pass, experts * in * out);
        }
        const int before = ops->count;
        cost_push_widening(shape, ops, COST_MODULE_MOE, pass, experts * in * out);
        if (ops->count > before && !one_kernel(shape))
            ops->op[before].kernels *= (int)fmax(1, experts);
        if (!fused_mlp(shape)) {
            cost_push_scales(shape, ops, COST_MODULE_MOE, (const double[]){rows, n, k}, experts, true);
        }
        cost_push_gemm(ops, name, COST_MODULE_MOE, pass, rows, n, k, experts, shape->linear_dtype);
        gemm = ops->count - 1;
    }
    CostOp *op = &ops->op[gemm];
    op->full_flops = 2 * even * in * out * experts;
    op->model_flops =
        op->full_flops / (cost_moe_dropless(shape) ? 1 : shape->spec->model.moe.capacity_factor);
    op->u.gemm.grouped = experts > 1 && !one_kernel(shape);
    op->u.gemm.row_deviation = row_deviation(shape, rows);
    op->host_kernels = op->u.gemm.grouped ? (int)experts - 1 : 0;
    cost_push_expert_adapter(shape, ops, gemm, pass, even, in);
    return gemm;
}

/* Casts of expert inputs run expert by expert where the products do. */
static void push_expert_cast(const CostShape *shape, CostOps *ops, CostPass pass, double in, double out)
{
    const int before = ops->count;
    cost_push_cast(shape, ops, COST_MODULE_MOE, pass, in, out, COST_GATHERED_NOTHING);
    CostOp *cast = ops->count > before ? &ops->op[ops->count - 1] : NULL;
    if (cast != NULL && !one_kernel(shape)) { /* behind a maximum, if any */
        cast->kernels *= (int)fmax(1, cost_moe_experts_of_rank(shape));
    }
}

/* Experts with biases of their own: PyTorch adds them and, where gated, clamps what the activation reads
 * (costmodel/ops_moe_bias.c), unless the products' kernels or compiled ones do. */
static bool eager_bias(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    return spec->model.biases == SPEC_BIASES_ALL && !spec->execution.compiled && !one_kernel(shape);
}

static void push_expert_activation(const CostShape *shape, CostOps *ops, CostPass pass, double elements)
{
    const CostModule module = COST_MODULE_MOE_ACTIVATION;
    if (pass == COST_BACKWARD_WEIGHT || fused_mlp(shape)) {
        return;
    }
    if (eager_bias(shape) && shape->spec->model.gated_mlp) {
        cost_push_clamped_activation(shape, ops, pass, elements);
        return;
    }
    cost_push_activation(shape, ops, pass, module, elements);
    if (pass == COST_BACKWARD_INPUT &&
        !cost_moe_weighs_returned(shape)) { /* of the probabilities: sums over what the activation read */
        const double read = shape->spec->model.gated_mlp ? 3 : 2;
        cost_push_memory(ops, "probability grad", module, COST_MEMORY_NORM, elements,
                         (CostMoved){.read = shape->element_bytes * read}, 1);
    }
}

/* 8-bit products want the rows of an expert in multiples of 16 or 32: every row is copied on its way in and out, with
 * the probabilities beside. HybridEP pads as it lands them. Source: [TransformerEngine] Fp8Padding, [MegatronMoE] */
static void push_padding(const CostShape *shape, CostOps *ops, const char *name, CostPass pass,
                         double elements)
{
    const bool narrow = shape->linear_dtype == SPEC_FP8 || shape->linear_dtype == SPEC_FP4;
    const bool lands_padded =
        shape->spec->parallel.moe_dispatcher == SPEC_DISPATCHER_HYBRIDEP && shape->expert_group.ranks > 1;
    if (pass != COST_BACKWARD_WEIGHT && narrow && cost_moe_dropless(shape) && !one_kernel(shape) &&
        !lands_padded && shape->spec->execution.framework.experts.pads_expert_rows) {
        cost_push_memory(ops, name, COST_MODULE_MOE, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(shape->element_bytes, shape->element_bytes), 1);
    }
}

/* Bytes of a token on its way to the experts; gradients take 16 bits. Source: [DeepSeekV3] section 3.3.2 (scales of 4
 * bytes for 128 values), [DeepSeekProfile] */
static double dispatch_bytes(const CostShape *shape, CostPass pass)
{
    const bool narrow = pass == COST_FORWARD && shape->spec->parallel.moe_dispatch_fp8;
    return shape->hidden * (narrow ? 1 + 4.0 / 128 : shape->element_bytes);
}

/* Experts that are sliced over tensor ranks: every slice needs the rows of all, and the parts are summed. */
static void push_slices(const CostShape *shape, CostOps *ops, const char *name, CostCollectiveOp op)
{
    cost_push_collective(ops, name, COST_MODULE_MOE, op,
                         cost_routed_rows(shape) * cost_moe_load(shape) * shape->hidden *
                             shape->element_bytes,
                         cost_group(shape->spec, COST_RANKS_EXPERT_TENSOR), COST_COMM_EXPERT, -1);
}

/* Fused products leave clusters of SMs to the exchange; weight gradients are another kernel. Beside its output of 16 bits
 * the first writes what it activated, cast along rows and along columns; the second's backward reads that output and
 * writes the gradient of it, cast both ways, in place of the gradient of what was activated.
 * Source: [TransformerEngine] ops/fused/grouped_mlp.py (c_tensor, d_row_tensor, d_col_tensor), [cudnn-frontend]
 * grouped_gemm_glu, grouped_gemm_dglu */
static void fuse_products(const CostShape *shape, CostOps *ops, CostPass pass, const int product[2],
                          double activated)
{
    if (!fused_mlp(shape) || pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const double wide = activated * (shape->spec->model.gated_mlp ? 2 : 1), cast = 2 * (1 + 1.0 / 32),
                 e = shape->element_bytes;
    for (int i = 0; i < 2; i++) {
        ops->op[product[i]].u.gemm.free_sms = shape->spec->execution.framework.experts.fused_mlp_free_sms;
    }
    if (pass == COST_FORWARD) {
        ops->op[product[0]].u.gemm.fused_bytes = activated * cast;
    } else {
        ops->op[product[1]].u.gemm.fused_bytes = wide * (e + cast) - activated * e;
    }
}

/* The ops of the routed experts in the forward list. */
typedef struct ExpertOps {
    int rows, in, activation, out; /* `rows` writes what `in` reads */
} ExpertOps;

static double kept_row_bytes(const CostShape *shape, double f)
{
    const double width = shape->spec->model.gated_mlp ? 2 : 1;
    return cost_kept_element_bytes(shape) * (shape->hidden + f) + shape->element_bytes * width * f;
}

/* Buffers of a graph have room for more rows than come, so what is kept is copied out of them into pages, and back before
 * the backward: a kernel each for two operands, their scales and the activation's input.
 * Source: [MegatronMoE] paged_stash.py (its copies have a stream of their own, waited for by the next layer's experts) */
static void push_stash(const CostShape *shape, CostOps *ops, CostPass pass, double rows, double f)
{
    const SpecExecution *execution = &shape->spec->execution;
    if (pass != COST_BACKWARD_WEIGHT && execution->framework.experts.paged_stash && fused_mlp(shape) &&
        cost_moe_dropless(shape) && strstr(execution->cuda_graph, "full_iteration") != NULL) {
        const double each = kept_row_bytes(shape, f);
        cost_push_memory(ops, "stash", COST_MODULE_MOE, COST_MEMORY_ELEMENTWISE, rows,
                         cost_both_ways(each, each), 5);
        ops->op[ops->count - 1].u.memory.beside = true;
    }
}

static void keep_tensors(const CostShape *shape, const ExpertOps *at, double rows, double f, CostOps *ops)
{
    const double x = cost_kept_element_bytes(shape), width = shape->spec->model.gated_mlp ? 2 : 1;
    cost_keep(ops, (CostTensor){"permuted rows", x * rows * shape->hidden, at->rows, .kept_by = at->in,
                                .weight_grad = true});
    const double input = eager_bias(shape) ? shape->element_bytes : cost_activation_input_bytes(shape);
    cost_keep(ops, (CostTensor){"expert activation input", input * rows * f * width, at->in,
                                .kept_by = at->activation});
    cost_keep(ops, (CostTensor){"expert output input", x * rows * f, at->activation, .kept_by = at->out,
                                .weight_grad = true});
}

void cost_ops_moe(const CostShape *shape, CostPass pass, int input, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double rows = cost_routed_rows(shape) * cost_moe_load(shape),
                 room = rows * cost_moe_buffer_frac(shape);
    const double f = (double)model->moe.expert_ffn_hidden / shape->spec->parallel.expert_tensor;
    const bool weight = pass == COST_BACKWARD_WEIGHT;
    ExpertOps at;
    push_router(shape, pass, input, ops);
    push_shared_experts(shape, pass, ops);
    if (!weight) {
        cost_push_row_counts(shape, ops, pass);
        cost_push_permute(shape, ops, "permute", pass, true);
        cost_push_row_exchange(shape, ops, "dispatch", dispatch_bytes(shape, pass));
        push_slices(shape, ops, "gather rows", COST_ALL_GATHER);
    }
    push_padding(shape, ops, "pad rows", pass, rows * shape->hidden);
    at.rows = ops->count - 1;
    const bool casts_inside = fused_mlp(shape); /* of what lies between the two products */
    push_expert_cast(shape, ops, pass, rows * shape->hidden,
                     casts_inside ? 0 : rows * (model->gated_mlp ? 2 * f : f));
    at.in = push_expert_gemm(shape, ops, "experts in", pass, shape->hidden, model->gated_mlp ? 2 * f : f);
    ops->op[at.in].temp_bytes = pass == COST_BACKWARD_INPUT ? cost_gradient_working_bytes(shape, rows, f) : 0;
    push_expert_activation(shape, ops, pass, room * f);
    at.activation = ops->count - 1; /* or the product that activates in its epilogue */
    push_expert_cast(shape, ops, pass, casts_inside ? 0 : rows * f, rows * shape->hidden);
    at.out = push_expert_gemm(shape, ops, "experts out", pass, f, shape->hidden);
    fuse_products(shape, ops, pass, (const int[]){at.in, at.out}, rows * f);
    if (pass == COST_FORWARD) {
        keep_tensors(shape, &at, room, f, ops);
    }
    if (eager_bias(shape)) {
        cost_push_output_bias(shape, ops, pass, rows * shape->hidden, cost_moe_experts_of_rank(shape));
    }
    push_stash(shape, ops, pass, rows, f);
    push_padding(shape, ops, "unpad rows", pass, rows * shape->hidden);
    if (!weight) {
        push_slices(shape, ops, "sum rows", COST_REDUCE_SCATTER);
        cost_push_row_exchange(shape, ops, "combine", shape->hidden * shape->element_bytes);
        cost_push_permute(shape, ops, "unpermute", pass, false);
    }
}
