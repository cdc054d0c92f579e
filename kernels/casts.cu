/* kernels/casts.cu - what mixed precision adds to a step: casts to e4m3 and to bf16, rotary embedding, the norm of gradients.
 *
 * cast_fp8: bf16 -> e4m3 times a scale, saturating. cast_bf16: fp32 -> bf16. rope: pairs (x, x + cols / 2) turned by the
 * angle of their row, cosine and sine from a table. grad_norm: the sum of the squares of fp32 numbers.
 * Source: [OcpFp8], [RoFormer]
 */
#include "kernels/device.cuh"

#ifndef KRN_EMULATED
#include <cuda_fp8.h>
#endif

#define FP8_MAX 448.0f

__device__ static inline unsigned char to_e4m3(float x)
{
#ifdef KRN_EMULATED
    const float size = fminf(fabsf(x), FP8_MAX);
    const int exponent = size >= 0.015625f ? ilogbf(size) : -6;
    const int steps =
        (int)rintf(ldexpf(size, 3 - exponent)); /* 8 .. 16, or fewer below the least normal number */
    const int code = size >= 0.015625f ? ((exponent + 7) << 3) + steps - 8 : steps;
    return (unsigned char)((x < 0 ? 0x80 : 0) | code);
#else
    return (unsigned char)__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
#endif
}

struct alignas(8) Bytes {
    unsigned char v[8];
};

__global__ static void cast_fp8_kernel(const Bf16 *x, const float *scale, unsigned char *y, int64_t packs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        const Pack a = load_pack(x + 8 * i);
        Bytes b;
        for (int j = 0; j < 8; j++)
            b.v[j] = to_e4m3(__bfloat162float(a.v[j]) * scale[0]);
        *reinterpret_cast<Bytes *>(y + 8 * i) = b;
    }
}

__global__ static void cast_bf16_kernel(const float4 *x, Bf16 *y, int64_t packs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float4 a = x[2 * i], b = x[2 * i + 1];
        Pack p;
        const float v[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        for (int j = 0; j < 8; j++)
            p.v[j] = __float2bfloat16(v[j]);
        store_pack(y + 8 * i, p);
    }
}

/* Blocks walk over rows, threads over packs of a row's first half. */
__global__ static void rope_kernel(const Bf16 *x, const float *cosine, const float *sine, Bf16 *y,
                                   int64_t rows, int64_t half_packs)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        for (int64_t c = threadIdx.x; c < half_packs; c += KRN_BLOCK) {
            const int64_t low = 8 * (2 * row * half_packs + c), high = low + 8 * half_packs;
            Pack a = load_pack(x + low), b = load_pack(x + high);
            for (int j = 0; j < 8; j++) {
                const float u = __bfloat162float(a.v[j]), v = __bfloat162float(b.v[j]);
                const float co = cosine[8 * c + j], si = sine[8 * c + j];
                a.v[j] = __float2bfloat16(u * co - v * si);
                b.v[j] = __float2bfloat16(u * si + v * co);
            }
            store_pack(y + low, a);
            store_pack(y + high, b);
        }
}

__global__ static void grad_norm_kernel(const float4 *x, float *sum, int64_t quads)
{
    float own = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < quads;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float4 v = x[i];
        own += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    own = block_sum(own);
    if (threadIdx.x == 0)
        atomicAdd(sum, own);
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static int64_t elements(const KrnShape *s)
{
    return s->rows * s->cols;
}

static double three_bytes(const KrnShape *s)
{
    return 3.0 * (double)elements(s);
}

static double six_bytes(const KrnShape *s)
{
    return 6.0 * (double)elements(s);
}

static double four_bytes(const KrnShape *s)
{
    return 4.0 * (double)elements(s);
}

/* --- casts --- */

static int cast_fp8_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, elements(s), -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_F32, 1, 100, 100);
    krn_set(&b[2], KRN_OUTPUT, KRN_F8, elements(s), 0, 0);
    return 3;
}

static KrnStatus launch_cast_fp8(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = elements(s) / 8;
    KRN_LAUNCH(cast_fp8_kernel, krn_grid(packs), KRN_BLOCK, stream, (const Bf16 *)d[0], (const float *)d[1],
               (unsigned char *)d[2], packs);
    return krn_launched(context, "cast_fp8");
}

static void reference_cast_fp8(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < elements(s); i++)
        h[2][i] = h[0][i] * h[1][0];
}

/* Half a step of three bits. */
const KrnKernel krn_cast_fp8 = {"cast_fp8",       "rows cols",     no_flops,           three_bytes,
                                cast_fp8_buffers, launch_cast_fp8, reference_cast_fp8, 0.0667};

static int cast_bf16_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_F32, elements(s), -1, 1);
    krn_set(&b[1], KRN_OUTPUT, KRN_BF16, elements(s), 0, 0);
    return 2;
}

static KrnStatus launch_cast_bf16(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = elements(s) / 8;
    KRN_LAUNCH(cast_bf16_kernel, krn_grid(packs), KRN_BLOCK, stream, (const float4 *)d[0], (Bf16 *)d[1],
               packs);
    return krn_launched(context, "cast_bf16");
}

static void reference_cast_bf16(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < elements(s); i++)
        h[1][i] = h[0][i];
}

const KrnKernel krn_cast_bf16 = {
    "cast_bf16",      "rows cols",         no_flops, six_bytes, cast_bf16_buffers,
    launch_cast_bf16, reference_cast_bf16, 0.01};

/* --- rotary embedding --- */

static int rope_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, elements(s), -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_F32, s->cols / 2, -1, 1);
    krn_set(&b[2], KRN_INPUT, KRN_F32, s->cols / 2, -1, 1);
    krn_set(&b[3], KRN_OUTPUT, KRN_BF16, elements(s), 0, 0);
    return 4;
}

static KrnStatus launch_rope(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    if (s->cols % 16 != 0)
        return krn_fail(context, KRN_UNSUPPORTED, "rope", "needs rows of whole packs of 16");
    KRN_LAUNCH(rope_kernel, krn_grid(s->rows * KRN_BLOCK), KRN_BLOCK, stream, (const Bf16 *)d[0],
               (const float *)d[1], (const float *)d[2], (Bf16 *)d[3], s->rows, s->cols / 16);
    return krn_launched(context, "rope");
}

static void reference_rope(const KrnShape *s, float *const *h)
{
    const int64_t half = s->cols / 2;
    for (int64_t i = 0; i < s->rows * half; i++) {
        const int64_t c = i % half, low = i / half * s->cols + c;
        const float u = h[0][low], v = h[0][low + half];
        h[3][low] = u * h[1][c] - v * h[2][c];
        h[3][low + half] = u * h[2][c] + v * h[1][c];
    }
}

const KrnKernel krn_rope = {"rope",       "rows cols", no_flops,       four_bytes,
                            rope_buffers, launch_rope, reference_rope, 0.01};

/* --- norm of gradients --- */

static int grad_norm_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_F32, elements(s), -1, 1);
    krn_set(&b[1], KRN_IN_OUT, KRN_F32, 1, 1, 1);
    return 2;
}

static KrnStatus launch_grad_norm(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t quads = elements(s) / 4;
    KRN_LAUNCH(grad_norm_kernel, krn_grid(quads), KRN_BLOCK, stream, (const float4 *)d[0], (float *)d[1],
               quads);
    return krn_launched(context, "grad_norm");
}

static void reference_grad_norm(const KrnShape *s, float *const *h)
{
    double sum = h[1][0];
    for (int64_t i = 0; i < elements(s); i++)
        sum += (double)h[0][i] * h[0][i];
    h[1][0] = (float)sum;
}

const KrnKernel krn_grad_norm = {
    "grad_norm",      "rows cols",         no_flops, four_bytes, grad_norm_buffers,
    launch_grad_norm, reference_grad_norm, 1e-4};
