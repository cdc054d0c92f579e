/* kernels/attention.h - sizes, counts and host references that the attention kernels share. */
#ifndef ORR_KERNELS_ATTENTION_H
#define ORR_KERNELS_ATTENTION_H

#include "kernels/internal.h"

/* Where query, key and value rows of a token begin, in elements. Packed: a token's row is queries, then keys,
 * then values, and the three pointers differ by an offset only. */
typedef struct AttentionStrides {
    int64_t q, kv, out;
} AttentionStrides;

static inline AttentionStrides attention_strides(const KrnShape *s)
{
    const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const int64_t all = q + 2 * kv;
    return AttentionStrides{s->packed ? all : q, s->packed ? all : kv, q};
}

/* Multiply-adds of one product over the scores, half of them under a causal mask. */
static inline double attention_product_flops(const KrnShape *s)
{
    return 2.0 * (double)s->batch * (double)s->heads * (double)s->seq * (double)s->seq * (double)s->head_dim *
           (s->causal ? 0.5 : 1);
}

static inline double attention_tokens(const KrnShape *s)
{
    return (double)s->batch * (double)s->seq;
}

static inline bool attention_fits(const KrnShape *s)
{
    return (s->head_dim == 64 || s->head_dim == 128) && s->kv_heads > 0 && s->heads % s->kv_heads == 0 &&
           s->seq % 64 == 0;
}

/* q k v -> out, and the logarithm of the sum of exponentials of each query's scores [batch, heads, seq]. */
void attention_reference(const KrnShape *s, const float *q, const float *k, const float *v, float *out,
                         float *lse);
/* Gradients, from out, its gradient and lse. */
void attention_reference_backward(const KrnShape *s, const float *q, const float *k, const float *v,
                                  const float *out, const float *d_out, const float *lse, float *dq,
                                  float *dk, float *dv);

#endif
