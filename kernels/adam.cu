/* kernels/adam.cu - one Adam step over `rows` x `cols` parameters, all states in fp32.
 *
 *   m = b1 m + (1 - b1) g    v = b2 v + (1 - b2) g^2    p -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 * adam_fp32: 28 bytes a parameter. adam_mixed also writes the bf16 copy that the next forward reads: 30 bytes.
 * Source: [Adam]
 */
#include "kernels/device.cuh"

#define ADAM_RATE 1e-3f
#define ADAM_B1   0.9f
#define ADAM_B2   0.95f
#define ADAM_EPS  1e-8f
#define ADAM_STEP 10

template <bool mixed>
__global__ static void adam_kernel(float *p, const float *g, float *m, float *v, Bf16 *copy, int64_t count,
                                   float m_scale, float v_scale)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float grad = g[i];
        const float first = ADAM_B1 * m[i] + (1 - ADAM_B1) * grad;
        const float second = ADAM_B2 * v[i] + (1 - ADAM_B2) * grad * grad;
        const float next = p[i] - ADAM_RATE * first * m_scale / (sqrtf(second * v_scale) + ADAM_EPS);
        m[i] = first;
        v[i] = second;
        p[i] = next;
        if (mixed)
            copy[i] = __float2bfloat16(next);
    }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double fp32_bytes(const KrnShape *s)
{
    return 28.0 * (double)s->rows * (double)s->cols;
}

static double mixed_bytes(const KrnShape *s)
{
    return 30.0 * (double)s->rows * (double)s->cols;
}

static int fp32_buffers(const KrnShape *s, KrnBuffer *b)
{
    const int64_t count = s->rows * s->cols;
    krn_set(&b[0], KRN_IN_OUT, KRN_F32, count, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_F32, count, -1, 1);
    krn_set(&b[2], KRN_IN_OUT, KRN_F32, count, -0.1f, 0.1f);
    krn_set(&b[3], KRN_IN_OUT, KRN_F32, count, 0, 0.1f);
    return 4;
}

static int mixed_buffers(const KrnShape *s, KrnBuffer *b)
{
    const int count = fp32_buffers(s, b);
    krn_set(&b[count], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return count + 1;
}

template <bool mixed>
static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    auto kernel = adam_kernel<mixed>;
    const int64_t count = s->rows * s->cols;
    const float m_scale = 1 / (1 - powf(ADAM_B1, ADAM_STEP)), v_scale = 1 / (1 - powf(ADAM_B2, ADAM_STEP));
    KRN_LAUNCH(kernel, krn_grid(count), KRN_BLOCK, stream, (float *)d[0], (const float *)d[1], (float *)d[2],
               (float *)d[3], mixed ? (Bf16 *)d[4] : nullptr, count, m_scale, v_scale);
    return krn_launched(context, "adam");
}

static void reference_fp32(const KrnShape *s, float *const *h)
{
    const double m_scale = 1 / (1 - pow(ADAM_B1, ADAM_STEP)), v_scale = 1 / (1 - pow(ADAM_B2, ADAM_STEP));
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        const double g = h[1][i];
        const double m = ADAM_B1 * (double)h[2][i] + (1 - (double)ADAM_B1) * g;
        const double v = ADAM_B2 * (double)h[3][i] + (1 - (double)ADAM_B2) * g * g;
        h[2][i] = (float)m;
        h[3][i] = (float)v;
        h[0][i] = (float)(h[0][i] - ADAM_RATE * m * m_scale / (sqrt(v * v_scale) + ADAM_EPS));
    }
}

static void reference_mixed(const KrnShape *s, float *const *h)
{
    reference_fp32(s, h);
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        h[4][i] = h[0][i];
}

const KrnKernel krn_adam_fp32 = {"adam_fp32",  "rows cols",   no_flops,       fp32_bytes,
                                 fp32_buffers, launch<false>, reference_fp32, 1e-4};
const KrnKernel krn_adam_mixed = {"adam_mixed",  "rows cols",  no_flops,        mixed_bytes,
                                  mixed_buffers, launch<true>, reference_mixed, 0.01};
