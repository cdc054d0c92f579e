/* kernels/cudnn_attention.cu - attention forward and backward as cuDNN's engines know them: which operations, in which order.
 *
 * [batch, heads, rows, columns], rows of tokens as attention.h lays them out; `lse` is the logarithm of the sum of
 * exponentials. Forward: softmax(scale Q K^T) V. Backward, from O, its gradient G and lse:
 *   P = exp(scale Q K^T - lse)     dV = P^T G     dS = scale P (G V^T - rowsum(G O))     dQ = dS K     dK = dS^T Q
 * dQ is added up in fp32 and rounded at the end. e4m3: operands carry one scale each, probabilities and dS are scaled
 * before they are rounded, and every output leaves its largest absolute value, as Transformer Engine has it.
 * Source: [cudnn-frontend] (the same graph as its SDPA, SDPA backward and SDPA fp8 nodes make)
 */
#include "kernels/attention.h"
#include "kernels/dnn.h"

#include <string.h>

typedef struct Operands {
    int64_t batch, heads, kv_heads, seq, dim;
    int type;
    bool fp8;
    AttentionStrides strides;
} Operands;

static Operands operands_of(const KrnShape *s)
{
    const bool fp8 = s->math == KRN_MATH_FP8;
    return Operands{s->batch,    s->heads,
                    s->kv_heads, s->seq,
                    s->head_dim, fp8 ? DNN_E4M3 : DNN_BF16,
                    fp8,         attention_strides(s)};
}

/* Token rows of `width` elements of which a head takes `dim`. */
static DnnTensor rows(DnnGraph *graph, const Operands *o, int64_t uid, int64_t heads, int64_t width)
{
    const DnnSize size = {{o->batch, heads, o->seq, o->dim}, {o->seq * width, o->dim, width, 1}};
    return dnn_tensor(graph, uid, o->type, &size);
}

/* The same memory with rows and columns exchanged. */
static DnnTensor turned(DnnGraph *graph, const Operands *o, int64_t uid, int64_t heads, int64_t width)
{
    const DnnSize size = {{o->batch, heads, o->dim, o->seq}, {o->seq * width, o->dim, 1, width}};
    return dnn_tensor(graph, uid, o->type, &size);
}

/* One fp32 number a row. */
static DnnTensor per_row(DnnGraph *graph, const Operands *o, int64_t uid)
{
    const DnnSize size = {{o->batch, o->heads, o->seq, 1}, {o->heads * o->seq, o->seq, 1, 1}};
    return dnn_tensor(graph, uid, DNN_F32, &size);
}

static DnnTensor times(DnnGraph *graph, const DnnTensor *x, int64_t uid)
{
    const DnnTensor scale = dnn_scalar(graph, uid, DNN_F32, false);
    return dnn_apply(graph, DNN_MUL, x, &scale);
}

/* A copy of the tensor's description with another type: the last operation writes it so. */
static DnnTensor times_as(DnnGraph *graph, const DnnTensor *x, int64_t uid, int type)
{
    const DnnTensor scale = dnn_scalar(graph, uid, DNN_F32, false);
    const DnnTensor y = dnn_inner(graph, type, x->dims);
    dnn_pointwise(graph, DNN_MUL, x, &scale, &y);
    return y;
}

static void largest(DnnGraph *graph, const DnnTensor *x, int64_t uid)
{
    const DnnTensor y = dnn_scalar(graph, uid, DNN_F32, false);
    dnn_reduce(graph, DNN_ABS_MAX, x, &y);
}

/* scale Q K^T, masked; descaled where `q_scale` and the next are scales. */
static DnnTensor scores(DnnGraph *graph, const Operands *o, const DnnTensor *q, const DnnTensor *kt,
                        const DnnTensor *scale, int64_t q_scale)
{
    const int64_t dims[] = {o->batch, o->heads, o->seq, o->seq};
    const DnnTensor product = dnn_inner(graph, DNN_F32, dims);
    dnn_matmul(graph, q, kt, &product);
    DnnTensor s = dnn_apply(graph, DNN_MUL, &product, scale);
    if (o->fp8) {
        s = times(graph, &s, q_scale);
        s = times(graph, &s, q_scale + 1);
    }
    return s;
}

static DnnTensor masked(DnnGraph *graph, const DnnTensor *x, bool causal)
{
    if (!causal)
        return *x;
    const DnnTensor nothing = dnn_scalar(graph, DNN_UID_NOTHING, DNN_F32, true);
    return dnn_causal(graph, x, &nothing);
}

/* exp(x - max) / sum, and max + log(sum) into `lse`. */
static DnnTensor softmax(DnnGraph *graph, const Operands *o, const DnnTensor *x, const DnnTensor *lse,
                         int type)
{
    const int64_t row_dims[] = {o->batch, o->heads, o->seq, 1};
    const DnnTensor top = dnn_inner(graph, DNN_F32, row_dims), sum = dnn_inner(graph, DNN_F32, row_dims);
    dnn_reduce(graph, DNN_MAX, x, &top);
    const DnnTensor below = dnn_apply(graph, DNN_SUB, x, &top);
    const DnnTensor weight = dnn_apply(graph, DNN_EXP, &below, nullptr);
    dnn_reduce(graph, DNN_SUM, &weight, &sum);
    const DnnTensor log_sum = dnn_apply(graph, DNN_LOG, &sum, nullptr);
    dnn_pointwise(graph, DNN_ADD, &top, &log_sum, lse);
    const DnnTensor p = dnn_inner(graph, type, x->dims);
    dnn_pointwise(graph, DNN_DIV, &weight, &sum, &p);
    return p;
}

/* c = a b, with the scales of both and of what is written: descales at `scales`, +1, scale at `out_scale`. */
static void scaled_product(DnnGraph *graph, const Operands *o, const DnnTensor *a, const DnnTensor *b,
                           const DnnTensor *c, const int64_t uids[4])
{
    const int64_t dims[] = {o->batch, o->heads, c->dims[2], c->dims[3]};
    DnnTensor y = dnn_inner(graph, DNN_F32, dims);
    dnn_matmul(graph, a, b, &y);
    if (c->dims[1] != o->heads) { /* the heads of a group share keys and values */
        const DnnTensor sum = dnn_inner(graph, DNN_F32, c->dims);
        dnn_reduce(graph, DNN_SUM, &y, &sum);
        y = sum;
    }
    y = times(graph, &y, uids[0]);
    y = times(graph, &y, uids[1]);
    const DnnTensor scale = dnn_scalar(graph, uids[2], DNN_F32, false);
    dnn_pointwise(graph, DNN_MUL, &y, &scale, c);
    largest(graph, &y, uids[3]);
}

/* --- forward: q k v out lse; fp8: descales of q k v s, scales of s out, largest of s out --- */

enum {
    F_Q = 1,
    F_K,
    F_V,
    F_OUT,
    F_LSE,
    F_Q_SCALE,
    F_K_SCALE,
    F_V_SCALE,
    F_S_DESCALE,
    F_S_SCALE,
    F_OUT_SCALE,
    F_S_MAX,
    F_OUT_MAX
};

void dnn_attention_forward(DnnGraph *graph, const KrnShape *s)
{
    const Operands o = operands_of(s);
    const DnnTensor q = rows(graph, &o, F_Q, o.heads, o.strides.q);
    const DnnTensor kt = turned(graph, &o, F_K, o.kv_heads, o.strides.kv);
    const DnnTensor v = rows(graph, &o, F_V, o.kv_heads, o.strides.kv);
    const DnnTensor out = rows(graph, &o, F_OUT, o.heads, o.strides.out);
    const DnnTensor lse = per_row(graph, &o, F_LSE);
    const DnnTensor scale = dnn_scalar(graph, DNN_UID_SCALE, DNN_F32, true);
    const DnnTensor all = scores(graph, &o, &q, &kt, &scale, F_Q_SCALE);
    const DnnTensor kept = masked(graph, &all, s->causal);
    DnnTensor p = softmax(graph, &o, &kept, &lse, o.fp8 ? DNN_F32 : o.type);
    if (!o.fp8) {
        dnn_matmul(graph, &p, &v, &out);
        return;
    }
    largest(graph, &p, F_S_MAX);
    p = times_as(graph, &p, F_S_SCALE, o.type);
    const int64_t uids[] = {F_S_DESCALE, F_V_SCALE, F_OUT_SCALE, F_OUT_MAX};
    scaled_product(graph, &o, &p, &v, &out, uids);
}

/* --- backward: q k v out gradient lse (scratch) dq dk dv; fp8: descales of q k v out gradient s ds, scales of s dq dk dv
 * ds, largest of dq dk dv ds --- */

enum {
    B_Q = 1,
    B_K,
    B_V,
    B_OUT,
    B_GRAD,
    B_LSE,
    B_DOTS,
    B_DQ,
    B_DK,
    B_DV,
    B_Q_SCALE,
    B_K_SCALE,
    B_V_SCALE,
    B_OUT_SCALE,
    B_GRAD_SCALE,
    B_S_DESCALE,
    B_DS_DESCALE,
    B_S_SCALE,
    B_DQ_SCALE,
    B_DK_SCALE,
    B_DV_SCALE,
    B_DS_SCALE,
    B_DQ_MAX,
    B_DK_MAX,
    B_DV_MAX,
    B_DS_MAX
};

typedef struct Backward {
    Operands o;
    DnnTensor q, kt, k, vt, grad, scale;
} Backward;

/* rowsum(G O). In bf16 it passes through memory, in which cuDNN's engine writes it first. */
static DnnTensor row_dots(DnnGraph *graph, const Backward *b)
{
    const Operands *o = &b->o;
    const int64_t row_dims[] = {o->batch, o->heads, o->seq, 1};
    const DnnTensor out = rows(graph, o, B_OUT, o->heads, o->strides.out);
    const DnnTensor product = dnn_apply(graph, DNN_MUL, &b->grad, &out);
    DnnTensor dots = dnn_inner(graph, DNN_F32, row_dims);
    dnn_reduce(graph, DNN_SUM, &product, &dots);
    if (o->fp8) {
        dots = times(graph, &dots, B_GRAD_SCALE);
        return times(graph, &dots, B_OUT_SCALE);
    }
    const DnnTensor one = dnn_scalar(graph, DNN_UID_ONE, DNN_F32, true), kept = per_row(graph, o, B_DOTS);
    dnn_pointwise(graph, DNN_MUL, &dots, &one, &kept);
    return kept;
}

/* [.., rows, columns] of the probabilities' kind as [.., columns, rows], in the operands' type. */
static DnnTensor transposed(DnnGraph *graph, const Operands *o, const DnnTensor *x)
{
    const DnnSize size = {{o->batch, o->heads, o->seq, o->seq},
                          {o->heads * o->seq * o->seq, o->seq * o->seq, 1, o->seq}};
    const DnnTensor y = dnn_inner_as(graph, o->type, &size);
    dnn_reshape(graph, x, &y);
    return y;
}

/* a b of all heads, summed over the heads that share keys and values. */
static void to_keys(DnnGraph *graph, const Operands *o, const DnnTensor *a, const DnnTensor *b, int64_t uid,
                    const int64_t *scales)
{
    const DnnTensor gradient = rows(graph, o, uid, o->kv_heads, o->strides.kv);
    if (o->fp8) {
        scaled_product(graph, o, a, b, &gradient, scales);
        return;
    }
    if (o->heads == o->kv_heads) {
        dnn_matmul(graph, a, b, &gradient);
        return;
    }
    const int64_t dims[] = {o->batch, o->heads, o->seq, o->dim};
    const DnnTensor every = dnn_inner(graph, o->type, dims);
    dnn_matmul(graph, a, b, &every);
    dnn_reduce(graph, DNN_SUM, &every, &gradient);
}

/* exp(scale Q K^T - lse); the mask comes after lse in bf16 and before it in fp8: so the engines know it. */
static DnnTensor probabilities(DnnGraph *graph, const Backward *b, bool causal)
{
    const DnnTensor lse = per_row(graph, &b->o, B_LSE);
    DnnTensor s = scores(graph, &b->o, &b->q, &b->kt, &b->scale, B_Q_SCALE);
    if (b->o.fp8)
        s = masked(graph, &s, causal);
    s = dnn_apply(graph, DNN_SUB, &s, &lse);
    if (!b->o.fp8)
        s = masked(graph, &s, causal);
    return dnn_apply(graph, DNN_EXP, &s, nullptr);
}

/* scale P (G V^T - dots). */
static DnnTensor score_gradient(DnnGraph *graph, const Backward *b, const DnnTensor *p, const DnnTensor *dots)
{
    const int64_t dims[] = {b->o.batch, b->o.heads, b->o.seq, b->o.seq};
    DnnTensor dp = dnn_inner(graph, DNN_F32, dims);
    dnn_matmul(graph, &b->grad, &b->vt, &dp);
    if (b->o.fp8) {
        dp = times(graph, &dp, B_GRAD_SCALE);
        dp = times(graph, &dp, B_V_SCALE);
    }
    dp = dnn_apply(graph, DNN_SUB, &dp, dots);
    dp = dnn_apply(graph, DNN_MUL, &dp, p);
    return dnn_apply(graph, DNN_MUL, &dp, &b->scale);
}

/* dS K: in bf16 through fp32 sums in memory. */
static void to_queries(DnnGraph *graph, const Backward *b, const DnnTensor *ds)
{
    const Operands *o = &b->o;
    const DnnSize size = {{o->batch, o->kv_heads, o->seq, o->dim},
                          {o->seq * o->strides.kv, o->dim, o->strides.kv, 1}};
    const DnnTensor k = dnn_inner_as(graph, o->type, &size),
                    dq = rows(graph, o, B_DQ, o->heads, o->strides.q);
    dnn_reshape(graph, &b->kt, &k);
    if (o->fp8) {
        const int64_t uids[] = {B_DS_DESCALE, B_K_SCALE, B_DQ_SCALE, B_DQ_MAX};
        scaled_product(graph, o, ds, &k, &dq, uids);
        return;
    }
    const DnnSize whole = {{o->batch, o->heads, o->seq, o->dim},
                           {o->heads * o->seq * o->dim, o->seq * o->dim, o->dim, 1}};
    const DnnTensor sum = dnn_tensor(graph, DNN_UID_QUERY_SUM, DNN_F32, &whole);
    dnn_matmul(graph, ds, &k, &sum);
    dnn_pointwise(graph, DNN_IDENTITY, &sum, nullptr, &dq);
}

void dnn_attention_backward(DnnGraph *graph, const KrnShape *s)
{
    Backward b = {};
    b.o = operands_of(s);
    b.q = rows(graph, &b.o, B_Q, b.o.heads, b.o.strides.q);
    b.kt = turned(graph, &b.o, B_K, b.o.kv_heads, b.o.strides.kv);
    b.vt = turned(graph, &b.o, B_V, b.o.kv_heads, b.o.strides.kv);
    b.grad = rows(graph, &b.o, B_GRAD, b.o.heads, b.o.strides.out);
    b.scale = dnn_scalar(graph, DNN_UID_SCALE, DNN_F32, true);
    const DnnTensor dots = row_dots(graph, &b), p = probabilities(graph, &b, s->causal);
    const DnnTensor rounded = b.o.fp8 ? times_as(graph, &p, B_S_SCALE, b.o.type) : p;
    const DnnTensor pt = transposed(graph, &b.o, &rounded);
    const int64_t dv_scales[] = {B_S_DESCALE, B_GRAD_SCALE, B_DV_SCALE, B_DV_MAX};
    to_keys(graph, &b.o, &pt, &b.grad, B_DV, dv_scales);
    DnnTensor ds = score_gradient(graph, &b, &p, &dots);
    if (b.o.fp8) {
        largest(graph, &ds, B_DS_MAX);
        ds = times_as(graph, &ds, B_DS_SCALE, b.o.type);
        to_queries(graph, &b, &ds);
    }
    const DnnTensor dst = transposed(graph, &b.o, &ds);
    const int64_t dk_scales[] = {B_DS_DESCALE, B_Q_SCALE, B_DK_SCALE, B_DK_MAX};
    to_keys(graph, &b.o, &dst, &b.q, B_DK, dk_scales);
    if (!b.o.fp8)
        to_queries(graph, &b, &ds);
}
