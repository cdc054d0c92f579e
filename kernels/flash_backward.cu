/* kernels/flash_backward.cu - gradients of attention without the scores in memory; bf16, head dims 64 and 128.
 *
 *   P = exp(Q K^T scale - lse)   D = rowsum(dO O)   dS = P (dO V^T - D) scale
 *   dV = P^T dO    dK = dS^T Q    dQ = dS K
 * Two kernels after the one that finds D: one owns 64 keys and walks over the queries (dK, dV), the other owns 64
 * queries and walks over the keys (dQ). Neither needs atomics, so the gradients are the same in every run; the
 * scores and dO V^T are formed in both, 7 products where 5 are counted.
 * Source: [FlashAttention2]      Ignores: what flash_forward.cu ignores
 */
#include "kernels/attention.h"
#include "kernels/mma.cuh"

#define WARPS  4
#define OWNED  (16 * WARPS) /* rows of a block */
#define WALKED 32           /* rows of a tile in shared memory */

struct Strides {
    int seq, heads, kv_heads;
    int64_t q, kv;
    float scale;
    bool causal;
};

__global__ static void row_dots_kernel(const Bf16 *out, const Bf16 *d_out, float *dots, int64_t rows, int dim,
                                       int seq, int heads)
{
    const int64_t row = (int64_t)blockIdx.x * (KRN_BLOCK / 32) + threadIdx.x / 32; /* token, head */
    if (row >= rows)
        return;
    float sum = 0;
    for (int c = (int)threadIdx.x % 32; c < dim; c += 32)
        sum += __bfloat162float(out[row * dim + c]) * __bfloat162float(d_out[row * dim + c]);
    sum = warp_sum(sum);
    const int64_t token = row / heads, head = row % heads;
    if (threadIdx.x % 32 == 0)
        dots[(token / seq * heads + head) * seq + token % seq] = sum;
}

/* c[n] += A x B for a tile of WALKED rows of B, stored a row for each n. */
template <int dim>
__device__ inline void product_rows(float (*c)[4], const uint32_t (*a)[4], const Bf16 *tile, int lane)
{
    uint32_t b[2];
#pragma unroll
    for (int n = 0; n < WALKED / 8; n++)
#pragma unroll
        for (int i = 0; i < dim / 16; i++) {
            load_b_rows(b, tile + 8 * n * (dim + 8) + 16 * i, dim + 8, lane);
            mma_16816(c[n], a[i], b);
        }
}

/* c[n] += A x B, A being the sums x of an earlier product and B WALKED rows of dim values. */
template <int dim>
__device__ inline void product_sums(float (*c)[4], const float (*x)[4], const Bf16 *tile, int lane)
{
    uint32_t a[4], b[2];
#pragma unroll
    for (int i = 0; i < WALKED / 16; i++) {
        pack_a(a, x[2 * i], x[2 * i + 1]);
#pragma unroll
        for (int n = 0; n < dim / 8; n++) {
            load_b_cols(b, tile + 16 * i * (dim + 8) + 8 * n, dim + 8, lane);
            mma_16816(c[n], a, b);
        }
    }
}

template <int dim>
__device__ inline void store_sums(Bf16 *memory, int64_t stride, const float (*c)[4], int lane)
{
    for (int half = 0; half < 2; half++) {
        uint32_t *to = reinterpret_cast<uint32_t *>(memory + (lane / 4 + 8 * half) * stride);
        for (int n = 0; n < dim / 8; n++)
            to[4 * n + lane % 4] = pack_two(c[n][2 * half], c[n][2 * half + 1]);
    }
}

template <int dim>
__global__ static void __launch_bounds__(32 * WARPS)
    key_value_kernel(const Bf16 *q, const Bf16 *k, const Bf16 *v, const Bf16 *d_out, const float *lse,
                     const float *dots, Bf16 *dk, Bf16 *dv, Strides z)
{
    __shared__ __align__(16) Bf16 q_tile[WALKED * (dim + 8)];
    __shared__ __align__(16) Bf16 o_tile[WALKED * (dim + 8)];
    const int lane = (int)threadIdx.x % 32, block = (int)blockIdx.x, kv_head = (int)blockIdx.y;
    const int first = block * OWNED + 16 * ((int)threadIdx.x / 32), share = z.heads / z.kv_heads;
    const int64_t token = (int64_t)blockIdx.z * z.seq, out_stride = (int64_t)z.heads * dim;
    const int64_t own = (token + first) * z.kv + (int64_t)kv_head * dim;
    uint32_t key[dim / 16][4], value[dim / 16][4];
    for (int i = 0; i < dim / 16; i++) {
        load_a(key[i], k + own + 16 * i, z.kv, lane);
        load_a(value[i], v + own + 16 * i, z.kv, lane);
    }
    float key_sum[dim / 8][4] = {}, value_sum[dim / 8][4] = {};
    for (int head = kv_head * share; head < (kv_head + 1) * share; head++) {
        const float *row_lse = lse + ((int64_t)blockIdx.z * z.heads + head) * z.seq;
        const float *row_dots = dots + ((int64_t)blockIdx.z * z.heads + head) * z.seq;
        for (int start = z.causal ? block * OWNED : 0; start < z.seq; start += WALKED) {
            __syncthreads();
            load_tile<WALKED, dim>(q_tile, q + (token + start) * z.q + (int64_t)head * dim, z.q,
                                   z.seq - start);
            load_tile<WALKED, dim>(o_tile, d_out + (token + start) * out_stride + (int64_t)head * dim,
                                   out_stride, z.seq - start);
            __syncthreads();
            float p[WALKED / 8][4] = {}, ds[WALKED / 8][4] = {};
            product_rows<dim>(p, key, q_tile, lane);
            product_rows<dim>(ds, value, o_tile, lane);
            for (int n = 0; n < WALKED / 8; n++)
                for (int j = 0; j < 4; j++) {
                    const int query = start + 8 * n + 2 * (lane % 4) + j % 2;
                    const bool hidden = z.causal && first + lane / 4 + 8 * (j / 2) > query;
                    p[n][j] = hidden ? 0 : __expf(p[n][j] * z.scale - row_lse[query]);
                    ds[n][j] = p[n][j] * (ds[n][j] - row_dots[query]) * z.scale;
                }
            product_sums<dim>(value_sum, p, o_tile, lane);
            product_sums<dim>(key_sum, ds, q_tile, lane);
        }
    }
    store_sums<dim>(dk + own, z.kv, key_sum, lane);
    store_sums<dim>(dv + own, z.kv, value_sum, lane);
}

template <int dim>
__global__ static void __launch_bounds__(32 * WARPS)
    query_kernel(const Bf16 *q, const Bf16 *k, const Bf16 *v, const Bf16 *d_out, const float *lse,
                 const float *dots, Bf16 *dq, Strides z)
{
    __shared__ __align__(16) Bf16 k_tile[WALKED * (dim + 8)];
    __shared__ __align__(16) Bf16 v_tile[WALKED * (dim + 8)];
    const int lane = (int)threadIdx.x % 32, block = (int)blockIdx.x, head = (int)blockIdx.y;
    const int first = block * OWNED + 16 * ((int)threadIdx.x / 32);
    const int64_t token = (int64_t)blockIdx.z * z.seq, out_stride = (int64_t)z.heads * dim;
    const int64_t own = (token + first) * z.q + (int64_t)head * dim;
    const int64_t kv = token * z.kv + (int64_t)(head / (z.heads / z.kv_heads)) * dim;
    uint32_t query[dim / 16][4], grad[dim / 16][4];
    for (int i = 0; i < dim / 16; i++) {
        load_a(query[i], q + own + 16 * i, z.q, lane);
        load_a(grad[i], d_out + (token + first) * out_stride + (int64_t)head * dim + 16 * i, out_stride,
               lane);
    }
    const int64_t row = ((int64_t)blockIdx.z * z.heads + head) * z.seq + first + lane / 4;
    const float row_lse[2] = {lse[row], lse[row + 8]}, row_dots[2] = {dots[row], dots[row + 8]};
    float sum[dim / 8][4] = {};
    const int end = z.causal ? block * OWNED + OWNED : z.seq;
    for (int start = 0; start < end; start += WALKED) {
        __syncthreads();
        load_tile<WALKED, dim>(k_tile, k + kv + start * z.kv, z.kv, z.seq - start);
        load_tile<WALKED, dim>(v_tile, v + kv + start * z.kv, z.kv, z.seq - start);
        __syncthreads();
        float p[WALKED / 8][4] = {}, ds[WALKED / 8][4] = {};
        product_rows<dim>(p, query, k_tile, lane);
        product_rows<dim>(ds, grad, v_tile, lane);
        for (int n = 0; n < WALKED / 8; n++)
            for (int j = 0; j < 4; j++) {
                const int key = start + 8 * n + 2 * (lane % 4) + j % 2;
                const bool hidden = z.causal && key > first + lane / 4 + 8 * (j / 2);
                const float probability = hidden ? 0 : __expf(p[n][j] * z.scale - row_lse[j / 2]);
                ds[n][j] = probability * (ds[n][j] - row_dots[j / 2]) * z.scale;
            }
        product_sums<dim>(sum, ds, k_tile, lane);
    }
    store_sums<dim>(dq + own, z.q, sum, lane);
}

static double flops(const KrnShape *s)
{
    return 5 * attention_product_flops(s);
}

/* Queries, keys, values, output and its gradient in; three gradients out; lse and D. */
static double move_bytes(const KrnShape *s)
{
    return attention_tokens(s) *
           (2.0 * (double)s->head_dim * (double)(4 * s->heads + 4 * s->kv_heads) + 12.0 * (double)s->heads);
}

static int buffers(const KrnShape *s, KrnBuffer *b)
{
    const int64_t tokens = s->batch * s->seq, q = tokens * s->heads * s->head_dim;
    const int64_t kv = tokens * s->kv_heads * s->head_dim;
    krn_set(&b[0], KRN_INPUT, KRN_BF16, q, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, kv, -1, 1);
    krn_set(&b[2], KRN_INPUT, KRN_BF16, kv, -1, 1);
    krn_set(&b[3], KRN_INPUT, KRN_BF16, q, -1, 1);
    krn_set(&b[4], KRN_INPUT, KRN_BF16, q, -1, 1);
    /* Any lse will do for the formulas; near log(seq) the probabilities stay near 1 / seq. */
    const float middle = logf((float)s->seq);
    krn_set(&b[5], KRN_INPUT, KRN_F32, tokens * s->heads, middle, middle + 1);
    krn_set(&b[6], KRN_SCRATCH, KRN_F32, tokens * s->heads, 0, 0);
    krn_set(&b[7], KRN_OUTPUT, KRN_BF16, q, 0, 0);
    krn_set(&b[8], KRN_OUTPUT, KRN_BF16, kv, 0, 0);
    krn_set(&b[9], KRN_OUTPUT, KRN_BF16, kv, 0, 0);
    return 10;
}

template <int dim> static void enqueue(const KrnShape *s, void *const *d, void *stream)
{
    const AttentionStrides strides = attention_strides(s);
    const Strides z = {(int)s->seq, (int)s->heads,         (int)s->kv_heads, strides.q,
                       strides.kv,  1 / sqrtf((float)dim), s->causal};
    const int64_t rows = s->batch * s->seq * s->heads;
    const unsigned blocks = (unsigned)(s->seq / OWNED);
    const unsigned dot_blocks = (unsigned)((rows + KRN_BLOCK / 32 - 1) / (KRN_BLOCK / 32));
    KRN_LAUNCH(row_dots_kernel, dot_blocks, KRN_BLOCK, stream, (const Bf16 *)d[3], (const Bf16 *)d[4],
               (float *)d[6], rows, dim, (int)s->seq, (int)s->heads);
    const dim3 kv_grid(blocks, (unsigned)s->kv_heads, (unsigned)s->batch);
    auto kv_kernel = key_value_kernel<dim>;
    KRN_LAUNCH(kv_kernel, kv_grid, 32 * WARPS, stream, (const Bf16 *)d[0], (const Bf16 *)d[1],
               (const Bf16 *)d[2], (const Bf16 *)d[4], (const float *)d[5], (const float *)d[6], (Bf16 *)d[8],
               (Bf16 *)d[9], z);
    const dim3 q_grid(blocks, (unsigned)s->heads, (unsigned)s->batch);
    auto q_kernel = query_kernel<dim>;
    KRN_LAUNCH(q_kernel, q_grid, 32 * WARPS, stream, (const Bf16 *)d[0], (const Bf16 *)d[1],
               (const Bf16 *)d[2], (const Bf16 *)d[4], (const float *)d[5], (const float *)d[6], (Bf16 *)d[7],
               z);
}

static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    if (!attention_fits(s))
        return krn_fail(context, KRN_UNSUPPORTED, "flash backward",
                        "needs head_dim 64 or 128 and seq of whole tiles");
    if (s->head_dim == 64)
        enqueue<64>(s, d, stream);
    else
        enqueue<128>(s, d, stream);
    return krn_launched(context, "flash backward");
}

static void reference(const KrnShape *s, float *const *h)
{
    attention_reference_backward(s, h[0], h[1], h[2], h[3], h[4], h[5], h[7], h[8], h[9]);
}

const KrnKernel krn_flash_backward = {"flash_backward",
                                      "batch seq heads kv_heads head_dim causal",
                                      flops,
                                      move_bytes,
                                      buffers,
                                      launch,
                                      reference,
                                      0.05};

/* --- on the host, in fp64 (sums of keys and values in fp32 buffers) --- */

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

void attention_reference_backward(const KrnShape *s, const float *q, const float *k, const float *v,
                                  const float *out, const float *d_out, const float *lse, float *dq,
                                  float *dk, float *dv)
{
    const AttentionStrides strides = attention_strides(s);
    const int64_t dim = s->head_dim, share = s->heads / s->kv_heads;
    const double scale = 1 / sqrt((double)dim);
    for (int64_t token = 0; token < s->batch * s->seq; token++)
        for (int64_t i = 0; i < s->kv_heads * dim; i++)
            dk[token * strides.kv + i] = dv[token * strides.kv + i] = 0;
    for (int64_t i = 0; i < s->batch * s->heads * s->seq; i++) {
        const int64_t row = i % s->seq, head = i / s->seq % s->heads, start = i / s->seq / s->heads * s->seq;
        const int64_t at = (start + row) * strides.q + head * dim, keys = s->causal ? row + 1 : s->seq;
        const float *grad = d_out + (start + row) * strides.out + head * dim;
        const double d = dot(grad, out + (start + row) * strides.out + head * dim, dim);
        for (int64_t c = 0; c < dim; c++)
            dq[at + c] = 0;
        for (int64_t j = 0; j < keys; j++) {
            const int64_t kv = (start + j) * strides.kv + head / share * dim;
            const double p = exp(dot(q + at, k + kv, dim) * scale - lse[i]);
            const double ds = p * (dot(grad, v + kv, dim) - d) * scale;
            for (int64_t c = 0; c < dim; c++) {
                dq[at + c] += (float)(ds * k[kv + c]);
                dk[kv + c] += (float)(ds * q[at + c]);
                dv[kv + c] += (float)(p * grad[c]);
            }
        }
    }
}
