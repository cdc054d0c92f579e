/* kernels/flash_forward.cu - attention without the scores in memory, forward; bf16, head dims 64 and 128.
 *
 * A block of four warps owns 64 queries of one head, a warp 16. Tiles of 64 keys and values pass through shared
 * memory; each warp keeps its queries, the running maximum and sum of every row and the output in registers, and
 * the probabilities of a tile become the next product's operand without leaving them. Tiles above the diagonal
 * are skipped, the one on it is masked. One synchronous load a tile: no asynchronous copies, so the share of the
 * peak is that of a plain kernel, not of a tuned one.
 * Source: [FlashAttention2]      Ignores: dropout, windows, sequences not a multiple of 64
 */
#include "kernels/attention.h"
#include "kernels/mma.cuh"

#define WARPS   4
#define Q_TILE  (16 * WARPS)
#define KV_TILE 64
#define LOG2_E  1.4426950408889634f

/* Rescales the running sums of one of the lane's two rows to a new maximum and adds the tile's exponentials. */
template <int dim>
__device__ inline void online_softmax(float (*s)[4], float (*o)[4], float *top, float *sum, int half,
                                      float scale)
{
    float here = -INFINITY;
    for (int n = 0; n < KV_TILE / 8; n++)
        here = fmaxf(here, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    here = fmaxf(here, __shfl_xor_sync(0xffffffffu, here, 1));
    here = fmaxf(here, __shfl_xor_sync(0xffffffffu, here, 2));
    const float higher = fmaxf(*top, here * scale), keep = exp2f(*top - higher);
    *sum *= keep;
    for (int n = 0; n < dim / 8; n++) {
        o[n][2 * half] *= keep;
        o[n][2 * half + 1] *= keep;
    }
    for (int n = 0; n < KV_TILE / 8; n++)
        for (int j = 2 * half; j < 2 * half + 2; j++) {
            s[n][j] = exp2f(s[n][j] * scale - higher);
            *sum += s[n][j];
        }
    *top = higher;
}

template <int dim>
__global__ static void __launch_bounds__(32 * WARPS)
    flash_forward_kernel(const Bf16 *q, const Bf16 *k, const Bf16 *v, Bf16 *out, float *lse, int seq,
                         int heads, int kv_heads, int64_t q_stride, int64_t kv_stride, float scale,
                         bool causal)
{
    __shared__ __align__(16) Bf16 k_tile[KV_TILE * (dim + 8)];
    __shared__ __align__(16) Bf16 v_tile[KV_TILE * (dim + 8)];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    /* Long rows of a causal mask first. */
    const int block = causal ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    const int head = (int)blockIdx.y, first = block * Q_TILE + 16 * warp;
    const int64_t token = (int64_t)blockIdx.z * seq;
    q += (token + first) * q_stride + (int64_t)head * dim;
    k += token * kv_stride + (int64_t)(head / (heads / kv_heads)) * dim;
    v += token * kv_stride + (int64_t)(head / (heads / kv_heads)) * dim;

    uint32_t a[dim / 16][4];
    for (int i = 0; i < dim / 16; i++)
        load_a(a[i], q + 16 * i, q_stride, lane);
    float o[dim / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    const int end = causal ? block * Q_TILE + Q_TILE : seq;
    for (int start = 0; start < end; start += KV_TILE) {
        __syncthreads();
        load_tile<KV_TILE, dim>(k_tile, k + start * kv_stride, kv_stride, seq - start);
        load_tile<KV_TILE, dim>(v_tile, v + start * kv_stride, kv_stride, seq - start);
        __syncthreads();
        float s[KV_TILE / 8][4] = {};
        uint32_t b[2];
#pragma unroll
        for (int n = 0; n < KV_TILE / 8; n++)
#pragma unroll
            for (int i = 0; i < dim / 16; i++) {
                load_b_rows(b, k_tile + 8 * n * (dim + 8) + 16 * i, dim + 8, lane);
                mma_16816(s[n], a[i], b);
            }
        if (causal && start + KV_TILE > first)
            for (int n = 0; n < KV_TILE / 8; n++)
                for (int j = 0; j < 4; j++)
                    if (start + 8 * n + 2 * (lane % 4) + j % 2 > first + lane / 4 + 8 * (j / 2))
                        s[n][j] = -INFINITY;
        online_softmax<dim>(s, o, &top[0], &sum[0], 0, scale * LOG2_E);
        online_softmax<dim>(s, o, &top[1], &sum[1], 1, scale * LOG2_E);
#pragma unroll
        for (int i = 0; i < KV_TILE / 16; i++) {
            uint32_t p[4];
            pack_a(p, s[2 * i], s[2 * i + 1]);
#pragma unroll
            for (int n = 0; n < dim / 8; n++) {
                load_b_cols(b, v_tile + 16 * i * (dim + 8) + 8 * n, dim + 8, lane);
                mma_16816(o[n], p, b);
            }
        }
    }
    const int64_t out_stride = (int64_t)heads * dim;
    for (int half = 0; half < 2; half++) {
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
        const int row = first + lane / 4 + 8 * half;
        uint32_t *to = reinterpret_cast<uint32_t *>(out + (token + row) * out_stride + (int64_t)head * dim);
        for (int n = 0; n < dim / 8; n++)
            to[4 * n + lane % 4] = pack_two(o[n][2 * half] / sum[half], o[n][2 * half + 1] / sum[half]);
        if (lane % 4 == 0)
            lse[((int64_t)blockIdx.z * heads + head) * seq + row] = top[half] / LOG2_E + logf(sum[half]);
    }
}

static double flops(const KrnShape *s)
{
    return 2 * attention_product_flops(s);
}

/* Queries, keys, values in; output and one fp32 number a row out. */
static double move_bytes(const KrnShape *s)
{
    return attention_tokens(s) *
           (2.0 * (double)s->head_dim * (double)(2 * s->heads + 2 * s->kv_heads) + 4.0 * (double)s->heads);
}

static int buffers(const KrnShape *s, KrnBuffer *b)
{
    const int64_t tokens = s->batch * s->seq;
    krn_set(&b[0], KRN_INPUT, KRN_BF16, tokens * s->heads * s->head_dim, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, tokens * s->kv_heads * s->head_dim, -1, 1);
    krn_set(&b[2], KRN_INPUT, KRN_BF16, tokens * s->kv_heads * s->head_dim, -1, 1);
    krn_set(&b[3], KRN_OUTPUT, KRN_BF16, tokens * s->heads * s->head_dim, 0, 0);
    krn_set(&b[4], KRN_OUTPUT, KRN_F32, tokens * s->heads, 0, 0);
    return 5;
}

template <int dim> static void enqueue(const KrnShape *s, void *const *d, void *stream)
{
    const AttentionStrides strides = attention_strides(s);
    const dim3 grid((unsigned)(s->seq / Q_TILE), (unsigned)s->heads, (unsigned)s->batch);
    auto kernel = flash_forward_kernel<dim>;
    KRN_LAUNCH(kernel, grid, 32 * WARPS, stream, (const Bf16 *)d[0], (const Bf16 *)d[1], (const Bf16 *)d[2],
               (Bf16 *)d[3], (float *)d[4], (int)s->seq, (int)s->heads, (int)s->kv_heads, strides.q,
               strides.kv, 1 / sqrtf((float)dim), s->causal);
}

static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    if (!attention_fits(s))
        return krn_fail(context, KRN_UNSUPPORTED, "flash forward",
                        "needs head_dim 64 or 128 and seq of whole tiles");
    if (s->head_dim == 64)
        enqueue<64>(s, d, stream);
    else
        enqueue<128>(s, d, stream);
    return krn_launched(context, "flash forward");
}

static void reference(const KrnShape *s, float *const *h)
{
    attention_reference(s, h[0], h[1], h[2], h[3], h[4]);
}

const KrnKernel krn_flash_forward = {"flash_forward", "batch seq heads kv_heads head_dim causal",
                                     flops,           move_bytes,
                                     buffers,         launch,
                                     reference,       0.05};

/* --- on the host, in fp64 --- */

static double score(const KrnShape *s, const float *q, const float *k)
{
    double sum = 0;
    for (int64_t d = 0; d < s->head_dim; d++)
        sum += (double)q[d] * k[d];
    return sum / sqrt((double)s->head_dim);
}

void attention_reference(const KrnShape *s, const float *q, const float *k, const float *v, float *out,
                         float *lse)
{
    const AttentionStrides strides = attention_strides(s);
    const int64_t dim = s->head_dim, share = s->heads / s->kv_heads;
    for (int64_t i = 0; i < s->batch * s->heads * s->seq; i++) {
        const int64_t row = i % s->seq, head = i / s->seq % s->heads, start = i / s->seq / s->heads * s->seq;
        const float *query = q + (start + row) * strides.q + head * dim;
        const int64_t keys = s->causal ? row + 1 : s->seq, at = head / share * dim;
        double sum = 0, o[128] = {0};
        for (int64_t j = 0; j < keys; j++) {
            const double p = exp(score(s, query, k + (start + j) * strides.kv + at));
            sum += p;
            for (int64_t d = 0; d < dim; d++)
                o[d] += p * v[(start + j) * strides.kv + at + d];
        }
        for (int64_t d = 0; d < dim; d++)
            out[(start + row) * strides.out + head * dim + d] = (float)(o[d] / sum);
        lse[i] = (float)log(sum);
    }
}
