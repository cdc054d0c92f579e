/* costmodel/ops_attention.c - the attention block of a layer: norm, projections, position encoding, and what lies behind
 * the core (costmodel/ops_attention_core.c). */
#include "costmodel/ops.h"
#include "costmodel/params.h"

/* Latent attention's position, eagerly. Out of views or broadcast, so element by element, either way: x cos 1, x sin 1,
 * half negated 0.5, halves together 1, even and odd dimensions put apart or back 1, of the rotated part of the queries;
 * and the whole queries together. Streams, reads + writes of the rotated part:
 *   forward   sum 2 + 1, joined with nothing 1 + 1
 *   backward  joined 3 + 4 (each part into zeros of the whole, one of them empty; their sum), sum 2 + 1, zeros for even
 *             and odd 0 + 2 and their sum 2 + 1
 * Source: [MegatronCore] rope_utils.py, multi_latent_attention.py of core 0.12; [PyTorchEager] */
#define MLA_ROPE_ADDRESSED 4.5
static const CostMoved mla_rope = {.read = 3, .written = 2}, mla_rope_backward = {.read = 7, .written = 8};

static void push_mla_rope(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double whole = mla->qk_nope_head_dim + mla->qk_rope_head_dim, rotated = mla->qk_rope_head_dim;
    const bool forward = pass == COST_FORWARD;
    const CostMoved streamed = forward ? mla_rope : mla_rope_backward;
    const double of_all = shape->tokens * shape->heads, e = shape->element_bytes;
    const double addressed = MLA_ROPE_ADDRESSED * rotated + whole;
    cost_push_by_element(ops, "rotate", COST_MODULE_MLA_UP, of_all, addressed,
                         cost_both_ways(addressed * e, addressed * e), forward ? 6 : 7);
    cost_push_memory(ops, "rope", COST_MODULE_MLA_UP, COST_MEMORY_ELEMENTWISE, of_all * rotated * e,
                     cost_both_ways(streamed.read, streamed.written), forward ? 3 : 9);
}

static bool eager_mla_rope(const CostShape *shape)
{
    const SpecExecution *execution = &shape->spec->execution;
    return execution->framework.kernels.rope == SPEC_ROPE_FUSED_NOT_LATENT && !execution->compiled;
}

/* Keys put together from their two halves, values apart from them: views, where no kernel rotates as well. */
static void push_keys_and_values(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double two = mla->qk_nope_head_dim + mla->v_head_dim, put = two + mla->qk_rope_head_dim;
    const bool forward = pass == COST_FORWARD;
    cost_push_memory(ops, "keys and values", COST_MODULE_MLA_UP, COST_MEMORY_ELEMENTWISE,
                     shape->tokens * shape->heads * shape->element_bytes,
                     cost_both_ways(forward ? two : put, forward ? put : two), 2);
    if (eager_mla_rope(shape)) {
        ops->op[ops->count - 1].u.memory.addressed = shape->tokens * shape->heads * (forward ? put : two);
    }
}

/* Times that a rotation which joins what it turned with an empty rest copies all of it: backward the gradient of the empty
 * part is cleared whole and added. */
static double rope_joins(const CostShape *shape, CostPass pass)
{
    const bool joins = shape->spec->execution.framework.kernels.rope == SPEC_ROPE_HALVES_JOINED;
    return !joins ? 0 : (pass == COST_FORWARD ? 1 : 2);
}

/* Models of Hugging Face and Megatron's own code; with Transformer Engine what its kernel does not take, cosines and sines
 * with an attention factor (YaRN). Queries and keys apart, bytes an element of e bytes: x cos 2 e, half of it negated e, both
 * halves together out of views 2 e, that sin 2 e; stream: their sum 3 e. Backward: two products 2 e each, half negated e;
 * streams: halves together 2 e, sum 3 e.
 * Source: [MegatronCore] rope_utils.py (apply_rotary_pos_emb, _rotate_half); [Transformers] modeling_llama.py (rotate_half);
 * [PyTorchEager] */
static void push_rope_by_halves(const CostShape *shape, CostPass pass, double elements, CostOps *ops)
{
    const CostModule module = COST_MODULE_ATTENTION_PROJECTION;
    const bool forward = pass == COST_FORWARD;
    const double joins = rope_joins(shape, pass);
    const double e = shape->element_bytes, turned = forward ? 3.5 : 2.5;
    cost_push_by_element(ops, "rotate", module, elements, turned, cost_both_ways(turned * e, turned * e),
                         forward ? 10 : 6);
    const double read = (forward ? 2 : 3) + joins, written = (forward ? 1 : 2) + joins;
    cost_push_memory(ops, "rope", module, COST_MEMORY_ELEMENTWISE, elements,
                     cost_both_ways(read * e, written * e), (forward ? 2 : 4) + 2 * (int)joins);
}

static void push_rope(const CostShape *shape, CostPass pass, double width, CostOps *ops)
{
    const SpecExecution *execution = &shape->spec->execution;
    const SpecModel *model = &shape->spec->model;
    if (model->position != SPEC_POSITION_ROPE || pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool mla = model->mla.kv_lora_rank > 0;
    const SpecRope rope = execution->framework.kernels.rope;
    const bool fused = rope >= SPEC_ROPE_FUSED || execution->compiled;
    if (mla && eager_mla_rope(shape)) {
        push_mla_rope(shape, pass, ops);
        return;
    }
    const bool halves = !execution->compiled && (fused ? model->rope_scaled : rope != SPEC_ROPE_COMPLEX);
    if (halves && !mla) {
        push_rope_by_halves(shape, pass, shape->tokens * width, ops);
        return;
    }
    /* eager, query and key apart: to fp32 complex (2+4), multiply (4+4), back (4+2) */
    const double joins = rope_joins(shape, pass), bytes = (fused ? 1 : 5 + joins) * shape->element_bytes;
    cost_push_memory(ops, "rope", COST_MODULE_ATTENTION_PROJECTION, COST_MEMORY_ELEMENTWISE,
                     shape->tokens * width, cost_both_ways(bytes, bytes), fused ? 2 : 6 + 2 * (int)joins);
}

/* Queries and keys, products of `gemm`, each normed over its heads, as a part of the attention block: the norm's backward
 * reads what came in. Returns the op that writes what attention reads. */
static int push_qk_norm(const CostShape *shape, CostPass pass, int gemm, CostOps *ops)
{
    const double wide = shape->element_bytes * shape->tokens * shape->head_dim;
    if (!shape->spec->model.qk_norm) {
        return gemm;
    }
    const int norm = ops->count;
    cost_push_norm(shape, ops, pass, shape->tokens * (shape->heads + shape->kv_heads), shape->head_dim);
    for (int i = norm; i < ops->count; i++) {
        ops->op[i].module = COST_MODULE_ATTENTION_PROJECTION;
    }
    if (pass == COST_FORWARD && ops->count > norm) {
        cost_keep(ops, (CostTensor){"query before norm", wide * shape->heads, gemm, .kept_by = norm,
                                    .weight_grad = true});
        cost_keep(ops, (CostTensor){"key before norm", wide * shape->kv_heads, gemm, .product = 1,
                                    .kept_by = norm, .weight_grad = true});
    }
    return ops->count > norm ? ops->count - 1 : gemm;
}

/* The block's input, as its first linear layers read it. */
static void keep_input(const CostShape *shape, int input, int gemm, CostOps *ops)
{
    const double copies = cost_input_copies(shape, 3);
    cost_keep(ops,
              (CostTensor){"qkv input", copies * cost_kept_input_bytes(shape, cost_kept_element_bytes(shape)),
                           input, .kept_by = gemm, .weight_grad = true});
}

/* Latents and their normed copies, which the up-projections read; ops are {down, norm, up}. */
static void keep_latents(const CostShape *shape, const int query[3], const int kv[3], CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double wide = shape->element_bytes * shape->part_tokens, rotated = mla->qk_rope_head_dim;
    const CostTensor latents[] = {{"q latent", mla->q_lora_rank, query[0], .kept_by = query[1]},
                                  {"q latent normed", mla->q_lora_rank, query[1], .kept_by = query[2]},
                                  {"kv latent", mla->kv_lora_rank + rotated, kv[0], .kept_by = kv[1]},
                                  {"kv latent normed", mla->kv_lora_rank, kv[1], .kept_by = kv[2]}};
    for (size_t i = 0; i < G_N_ELEMENTS(latents); i++) {
        CostTensor tensor = latents[i];
        tensor.bytes *= wide;
        tensor.weight_grad = true;
        cost_keep(ops, tensor);
    }
}

static CostProjections push_mla_projections(const CostShape *shape, CostPass pass, int input, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double qk = mla->qk_nope_head_dim + mla->qk_rope_head_dim, tokens = shape->part_tokens;
    const CostModule down = COST_MODULE_ATTENTION_PROJECTION, up = COST_MODULE_MLA_UP;
    int query[3] = {0}, kv[3]; /* down, norm, up */
    if (mla->q_lora_rank > 0) {
        query[0] = cost_push_linear(shape, ops, "q down", down, pass, tokens, shape->hidden, mla->q_lora_rank,
                                    shape->linear_dtype);
        cost_push_norm(shape, ops, pass, tokens, mla->q_lora_rank);
        query[1] = ops->count - 1;
    }
    query[2] = cost_push_linear(shape, ops, "q up", mla->q_lora_rank > 0 ? up : down, pass, shape->tokens,
                                mla->q_lora_rank > 0 ? mla->q_lora_rank : shape->hidden, shape->heads * qk,
                                shape->linear_dtype);
    kv[0] = cost_push_linear(shape, ops, "kv down", down, pass, tokens, shape->hidden,
                             mla->kv_lora_rank + mla->qk_rope_head_dim, shape->linear_dtype);
    cost_push_norm(shape, ops, pass, tokens, mla->kv_lora_rank);
    kv[1] = ops->count - 1;
    kv[2] = cost_push_linear(shape, ops, "kv up", up, pass, shape->tokens, mla->kv_lora_rank,
                             shape->heads * (mla->qk_nope_head_dim + mla->v_head_dim), shape->linear_dtype);
    if (pass == COST_FORWARD) {
        keep_input(shape, input, kv[0], ops);
        keep_latents(shape, query, kv, ops);
    }
    push_rope(shape, pass, shape->heads * mla->qk_rope_head_dim, ops);
    if (pass != COST_BACKWARD_WEIGHT) {
        push_keys_and_values(shape, pass, ops);
    }
    return (CostProjections){
        .last = kv[2], .query = query[2], .key = kv[2], .value = kv[2], .spread = COST_OUTSIDE};
}

/* Keys and values spread over the query heads; backward the sums over each group. */
static int push_repeat(const CostShape *shape, CostPass pass, CostOps *ops)
{
    if (!shape->spec->execution.framework.context.repeats_kv || shape->kv_heads >= shape->heads ||
        pass == COST_BACKWARD_WEIGHT) {
        return COST_OUTSIDE;
    }
    const bool forward = pass == COST_FORWARD;
    const double few = 2 * shape->kv_heads, many = 2 * shape->heads;
    cost_push_memory(ops, "repeat keys", COST_MODULE_ATTENTION_PROJECTION, COST_MEMORY_ELEMENTWISE,
                     shape->tokens * shape->head_dim * shape->element_bytes,
                     cost_both_ways(forward ? few : many, forward ? many : few), 2);
    return ops->count - 1;
}

/* The bias of `width` columns: added to the product's output, and its gradient's sum over tokens. A compiler that leaves
 * products to a library without epilogues runs the sum in the kernel that puts heads before tokens. */
static void push_qkv_bias(const CostShape *shape, CostPass pass, double width, CostOps *ops)
{
    const SpecBiases biases = shape->spec->model.biases;
    const SpecExecution *execution = &shape->spec->execution;
    const SpecBias bias = execution->framework.kernels.bias;
    const bool forward = pass == COST_FORWARD;
    const bool summed = bias == SPEC_BIAS_IN_PRODUCT && !forward && !execution->compiled;
    if (!(bias == SPEC_BIAS_QKV_APART || summed) || pass == COST_BACKWARD_INPUT ||
        (biases != SPEC_BIASES_ALL && biases != SPEC_BIASES_QKV))
        return;
    const double e = shape->element_bytes;
    cost_push_memory(ops, forward ? "qkv bias" : "qkv bias grad", COST_MODULE_ATTENTION_PROJECTION,
                     forward ? COST_MEMORY_ELEMENTWISE : COST_MEMORY_NORM, shape->tokens * width,
                     cost_both_ways(e, forward ? e : 0), 1);
}

static CostProjections push_projections(const CostShape *shape, CostPass pass, int input, CostOps *ops)
{
    const double width = (shape->heads + 2 * shape->kv_heads) * shape->head_dim;
    if (shape->spec->model.mla.kv_lora_rank > 0) {
        return push_mla_projections(shape, pass, input, ops);
    }
    const int gemm = cost_push_linear(shape, ops, "qkv", COST_MODULE_ATTENTION_PROJECTION, pass,
                                      shape->tokens, shape->hidden, width, shape->linear_dtype);
    cost_split_linear(shape, ops, pass, gemm,
                      (const double[]){shape->heads * shape->head_dim, shape->kv_heads * shape->head_dim,
                                       shape->kv_heads * shape->head_dim});
    if (pass == COST_FORWARD) {
        keep_input(shape, input, gemm, ops);
    }
    push_qkv_bias(shape, pass, width, ops);
    const int normed = push_qk_norm(shape, pass, gemm, ops);
    push_rope(shape, pass, (shape->heads + shape->kv_heads) * shape->head_dim, ops);
    const int spread = push_repeat(shape, pass, ops);
    return (CostProjections){.last = gemm, .query = normed, .key = normed, .value = gemm, .spread = spread};
}

/* Casts before the projections: one linear, or the four of latent attention. */
static void push_projection_cast(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double tokens = shape->tokens, part = shape->part_tokens, hidden = part * shape->hidden;
    const CostModule down = COST_MODULE_ATTENTION_PROJECTION, up = COST_MODULE_MLA_UP;
    if (mla->kv_lora_rank == 0) {
        cost_push_cast(shape, ops, down, pass, hidden,
                       tokens * (shape->heads + 2 * shape->kv_heads) * shape->head_dim, COST_GATHERED_INPUT);
        return;
    }
    const double queries = tokens * shape->heads * (mla->qk_nope_head_dim + mla->qk_rope_head_dim);
    const double keys = tokens * shape->heads * (mla->qk_nope_head_dim + mla->v_head_dim);
    cost_push_cast(shape, ops, down, pass, hidden, part * (mla->kv_lora_rank + mla->qk_rope_head_dim),
                   COST_GATHERED_NOTHING);
    cost_push_cast(shape, ops, up, pass, tokens * mla->kv_lora_rank, keys, COST_GATHERED_NOTHING);
    if (mla->q_lora_rank > 0) {
        cost_push_cast(shape, ops, down, pass, hidden, part * mla->q_lora_rank, COST_GATHERED_NOTHING);
        cost_push_cast(shape, ops, up, pass, tokens * mla->q_lora_rank, queries, COST_GATHERED_NOTHING);
    } else {
        cost_push_cast(shape, ops, down, pass, hidden, queries, COST_GATHERED_INPUT);
    }
}

/* Copies between the packed and the per-head layouts around an unfused core. */
static void push_layout_copies(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecExecution *execution = &shape->spec->execution;
    const bool forward = pass == COST_FORWARD;
    if (pass == COST_BACKWARD_WEIGHT || cost_attention_kernel(shape->spec) != SPEC_ATTENTION_UNFUSED) {
        return;
    }
    const bool batches = forward && execution->framework.kernels.batches_heads && !execution->compiled;
    const double copies = forward && !batches ? 1 : 4, bytes = copies * shape->element_bytes;
    cost_push_memory(ops, "layout", COST_MODULE_ATTENTION_PROJECTION, COST_MEMORY_ELEMENTWISE,
                     shape->tokens * shape->heads * cost_v_dim(&shape->spec->model),
                     cost_both_ways(bytes, bytes), batches ? 4 : (forward ? 1 : 2));
}

/* What the projection behind the core reads; an 8-bit cast of it lies beside what the core keeps for itself. */
static void keep_output(const CostShape *shape, int core, int cast, int out, CostOps *ops)
{
    const double elements = shape->tokens * shape->heads * cost_v_dim(&shape->spec->model);
    const double each = cost_kept_element_bytes(shape);
    cost_keep(ops, (CostTensor){"attention output", shape->element_bytes * elements, core, .kept_by = out,
                                .weight_grad = true});
    cost_keep(ops, (CostTensor){"attention output cast", each != shape->element_bytes ? each * elements : 0,
                                cast, .kept_by = out, .weight_grad = true});
}

void cost_push_attention_rest(const CostShape *shape, int layer, CostPass pass, const CostProjections *in,
                              CostOps *ops)
{
    const double width = shape->heads * cost_v_dim(&shape->spec->model);
    const CostModule projection = COST_MODULE_ATTENTION_PROJECTION;
    const int core = cost_push_attention_core(shape, layer, pass, in, ops);
    push_layout_copies(shape, pass, ops);
    cost_push_cast(shape, ops, projection, pass, shape->tokens * width, shape->part_tokens * shape->hidden,
                   COST_GATHERED_OUTPUT_GRAD);
    const int cast = ops->count - 1;
    const int out = cost_push_linear(shape, ops, "attention out", projection, pass, shape->tokens, width,
                                     shape->hidden, shape->linear_dtype);
    cost_push_tensor_out(shape, ops, pass, projection, out);
    if (pass == COST_FORWARD) {
        cost_push_unfused_bias(shape, ops, shape->part_tokens * shape->hidden);
        keep_output(shape, core, cast, out, ops);
    }
}

/* Down-projections cut over tensor ranks gather the block's input each for itself (that of queries beside the one that
 * every block has); their parts are put together, scattered along the sequence and gathered again by what projects up.
 * Backward the parts' gradients are gathered, the up-projections' scattered.
 * Source: [MegatronCore] multi_latent_attention.py, gpt_layer_specs.py of core 0.12 (TEColumnParallelLinear) */
static void push_cut_latents(const CostShape *shape, CostPass pass, const CostProjections *in, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const CostModule module = COST_MODULE_ATTENTION_PROJECTION;
    if (!shape->spec->execution.framework.tensor.cuts_latents || mla->kv_lora_rank == 0 ||
        mla->q_lora_rank == 0 || !shape->sequence_parallel) {
        return;
    }
    cost_push_tensor_in(shape, ops, pass, module, in->query);
    const double widths[] = {mla->q_lora_rank, mla->kv_lora_rank + mla->qk_rope_head_dim};
    for (size_t i = 0; pass != COST_BACKWARD_WEIGHT && i < 2 * G_N_ELEMENTS(widths); i++) {
        const bool scatters = pass == COST_BACKWARD_INPUT && i % 2 == 1;
        cost_push_collective(ops, "latents", module, scatters ? COST_REDUCE_SCATTER : COST_ALL_GATHER,
                             shape->tokens * widths[i / 2] * shape->element_bytes, shape->tensor_group,
                             COST_COMM_TENSOR, -1);
    }
}

void cost_ops_attention(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    const int input = cost_push_block_norm(shape, ops, pass, "layer input", COST_OUTSIDE);
    push_projection_cast(shape, pass, ops);
    cost_push_autocast_input(shape, ops, pass, COST_MODULE_ATTENTION_PROJECTION, 3);
    const CostProjections in = push_projections(shape, pass, input, ops);
    cost_push_tensor_in(shape, ops, pass, COST_MODULE_ATTENTION_PROJECTION, in.last);
    push_cut_latents(shape, pass, &in, ops);
    cost_push_attention_rest(shape, layer, pass, &in, ops);
}
