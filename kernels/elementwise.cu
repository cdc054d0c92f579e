/* kernels/elementwise.cu - dropout, residual addition, copy and triad: one pass over memory, nothing else. */
#include "kernels/device.cuh"

#include <string.h>

/* --- dropout: y = x / (1 - p) where a hash of the index says keep; the mask is made again, not stored --- */

#define DROP_FRAC      0.1f
#define DROP_SEED      17
#define DROP_THRESHOLD 6554u /* of 65,536 */

/* One hash gives the 16 bits of two values, so that the arithmetic stays below the memory's time. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline bool
    keeps(int64_t i)
{
    return (krn_hash((uint64_t)i >> 1, DROP_SEED) >> (16 * (i & 1)) & 0xffffu) >= DROP_THRESHOLD;
}

__global__ static void dropout_kernel(const Bf16 *x, Bf16 *y, int64_t packs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        Pack pack = load_pack(x + 8 * i);
        for (int j = 0; j < 8; j++) {
            const float kept = keeps(8 * i + j) ? 1.0f / (1 - DROP_FRAC) : 0;
            pack.v[j] = __float2bfloat16(__bfloat162float(pack.v[j]) * kept);
        }
        store_pack(y + 8 * i, pack);
    }
}

static double two_passes(const KrnShape *s)
{
    return 4.0 * (double)s->rows * (double)s->cols;
}

static double three_passes(const KrnShape *s)
{
    return 6.0 * (double)s->rows * (double)s->cols;
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static int one_in_one_out(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 2;
}

static KrnStatus launch_dropout(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = s->rows * s->cols / 8;
    KRN_LAUNCH(dropout_kernel, krn_grid(packs), KRN_BLOCK, stream, (const Bf16 *)d[0], (Bf16 *)d[1], packs);
    return krn_launched(context, "dropout");
}

static void reference_dropout(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        h[1][i] = keeps(i) ? h[0][i] / (1 - DROP_FRAC) : 0;
}

const KrnKernel krn_dropout = {"dropout",      "rows cols",    no_flops,          two_passes,
                               one_in_one_out, launch_dropout, reference_dropout, 0.02};

/* --- residual addition: z = x + y --- */

__global__ static void add_kernel(const Bf16 *x, const Bf16 *y, Bf16 *z, int64_t packs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        Pack a = load_pack(x + 8 * i);
        const Pack b = load_pack(y + 8 * i);
        for (int j = 0; j < 8; j++)
            a.v[j] = __float2bfloat16(__bfloat162float(a.v[j]) + __bfloat162float(b.v[j]));
        store_pack(z + 8 * i, a);
    }
}

static int two_in_one_out(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[2], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 3;
}

static KrnStatus launch_add(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = s->rows * s->cols / 8;
    KRN_LAUNCH(add_kernel, krn_grid(packs), KRN_BLOCK, stream, (const Bf16 *)d[0], (const Bf16 *)d[1],
               (Bf16 *)d[2], packs);
    return krn_launched(context, "residual_add");
}

static void reference_add(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        h[2][i] = h[0][i] + h[1][i];
}

const KrnKernel krn_residual_add = {"residual_add", "rows cols", no_flops,      three_passes,
                                    two_in_one_out, launch_add,  reference_add, 0.02};

/* --- copy, and the triad z = x + 3 y of STREAM --- */

__global__ static void copy_kernel(const float4 *x, float4 *y, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        y[i] = x[i];
}

__global__ static void triad_kernel(const float4 *x, const float4 *y, float4 *z, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float4 a = x[i], b = y[i];
        z[i] = make_float4(a.x + 3 * b.x, a.y + 3 * b.y, a.z + 3 * b.z, a.w + 3 * b.w);
    }
}

static double copy_bytes(const KrnShape *s)
{
    return 8.0 * (double)s->rows * (double)s->cols;
}

static double triad_bytes(const KrnShape *s)
{
    return 12.0 * (double)s->rows * (double)s->cols;
}

static int copy_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_F32, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_OUTPUT, KRN_F32, s->rows * s->cols, 0, 0);
    return 2;
}

static int triad_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_F32, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_F32, s->rows * s->cols, -1, 1);
    krn_set(&b[2], KRN_OUTPUT, KRN_F32, s->rows * s->cols, 0, 0);
    return 3;
}

static KrnStatus launch_copy(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t count = s->rows * s->cols / 4;
    KRN_LAUNCH(copy_kernel, krn_grid(count), KRN_BLOCK, stream, (const float4 *)d[0], (float4 *)d[1], count);
    return krn_launched(context, "copy");
}

static KrnStatus launch_triad(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t count = s->rows * s->cols / 4;
    KRN_LAUNCH(triad_kernel, krn_grid(count), KRN_BLOCK, stream, (const float4 *)d[0], (const float4 *)d[1],
               (float4 *)d[2], count);
    return krn_launched(context, "triad");
}

static void reference_copy(const KrnShape *s, float *const *h)
{
    memcpy(h[1], h[0], sizeof(float) * (size_t)(s->rows * s->cols));
}

static void reference_triad(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        h[2][i] = h[0][i] + 3 * h[1][i];
}

const KrnKernel krn_copy = {"copy",       "rows cols", no_flops,       copy_bytes,
                            copy_buffers, launch_copy, reference_copy, 1e-7};
const KrnKernel krn_triad = {"triad",       "rows cols",  no_flops,        triad_bytes,
                             triad_buffers, launch_triad, reference_triad, 1e-6};
