/* kernels/activation.cu - GELU (tanh form) and SwiGLU, forward and backward.
 *
 *   gelu(x) = x/2 (1 + tanh(a (x + b x^3)))          a = sqrt(2/pi), b = 0.044715
 *   swiglu(g, u) = g sigmoid(g) u                     rows hold the gate, then the up projection: 2 cols
 * Source: [Gelu], [SwiGlu]
 */
#include "kernels/device.cuh"

#define GELU_A 0.7978845608028654f
#define GELU_B 0.044715f

__global__ static void gelu_kernel(const Bf16 *x, Bf16 *y, int64_t packs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        Pack pack = load_pack(x + 8 * i);
        for (int j = 0; j < 8; j++) {
            const float v = __bfloat162float(pack.v[j]);
            pack.v[j] = __float2bfloat16(0.5f * v * (1 + tanhf(GELU_A * (v + GELU_B * v * v * v))));
        }
        store_pack(y + 8 * i, pack);
    }
}

__global__ static void gelu_backward_kernel(const Bf16 *x, const Bf16 *dy, Bf16 *dx, int64_t packs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        Pack pack = load_pack(x + 8 * i);
        const Pack grad = load_pack(dy + 8 * i);
        for (int j = 0; j < 8; j++) {
            const float v = __bfloat162float(pack.v[j]), t = tanhf(GELU_A * (v + GELU_B * v * v * v));
            const float slope = 0.5f * (1 + t) + 0.5f * v * (1 - t * t) * GELU_A * (1 + 3 * GELU_B * v * v);
            pack.v[j] = __float2bfloat16(__bfloat162float(grad.v[j]) * slope);
        }
        store_pack(dx + 8 * i, pack);
    }
}

/* Blocks walk over rows, threads over a row's packs of 8: no division by the width for every pack. */
__global__ static void swiglu_kernel(const Bf16 *x, Bf16 *y, int64_t rows, int64_t row_packs)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        for (int64_t c = threadIdx.x; c < row_packs; c += KRN_BLOCK) {
            const int64_t at = row * 2 * row_packs + c;
            Pack gate = load_pack(x + 8 * at);
            const Pack up = load_pack(x + 8 * (at + row_packs));
            for (int j = 0; j < 8; j++) {
                const float g = __bfloat162float(gate.v[j]);
                gate.v[j] = __float2bfloat16(g / (1 + __expf(-g)) * __bfloat162float(up.v[j]));
            }
            store_pack(y + 8 * (row * row_packs + c), gate);
        }
}

__global__ static void swiglu_backward_kernel(const Bf16 *x, const Bf16 *dy, Bf16 *dx, int64_t rows,
                                              int64_t row_packs)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        for (int64_t c = threadIdx.x; c < row_packs; c += KRN_BLOCK) {
            const int64_t at = row * 2 * row_packs + c;
            Pack gate = load_pack(x + 8 * at), up = load_pack(x + 8 * (at + row_packs));
            const Pack grad = load_pack(dy + 8 * (row * row_packs + c));
            for (int j = 0; j < 8; j++) {
                const float g = __bfloat162float(gate.v[j]), u = __bfloat162float(up.v[j]);
                const float d = __bfloat162float(grad.v[j]), s = 1 / (1 + __expf(-g));
                gate.v[j] = __float2bfloat16(d * u * s * (1 + g * (1 - s)));
                up.v[j] = __float2bfloat16(d * g * s);
            }
            store_pack(dx + 8 * at, gate);
            store_pack(dx + 8 * (at + row_packs), up);
        }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double passes(const KrnShape *s, double count)
{
    return 2 * count * (double)s->rows * (double)s->cols;
}

static double gelu_bytes(const KrnShape *s)
{
    return passes(s, 2);
}
static double gelu_backward_bytes(const KrnShape *s)
{
    return passes(s, 3);
}
static double swiglu_bytes(const KrnShape *s)
{
    return passes(s, 3);
}
static double swiglu_backward_bytes(const KrnShape *s)
{
    return passes(s, 5);
}

/* width: values of a row of x over those of y. */
static int forward_buffers(const KrnShape *s, KrnBuffer *b, int64_t width)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols * width, -3, 3);
    krn_set(&b[1], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 2;
}

static int backward_buffers(const KrnShape *s, KrnBuffer *b, int64_t width)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols * width, -3, 3);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[2], KRN_OUTPUT, KRN_BF16, s->rows * s->cols * width, 0, 0);
    return 3;
}

static int gelu_buffers(const KrnShape *s, KrnBuffer *b)
{
    return forward_buffers(s, b, 1);
}
static int gelu_backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    return backward_buffers(s, b, 1);
}
static int swiglu_buffers(const KrnShape *s, KrnBuffer *b)
{
    return forward_buffers(s, b, 2);
}
static int swiglu_backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    return backward_buffers(s, b, 2);
}

static KrnStatus launch_gelu(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = s->rows * s->cols / 8;
    KRN_LAUNCH(gelu_kernel, krn_grid(packs), KRN_BLOCK, stream, (const Bf16 *)d[0], (Bf16 *)d[1], packs);
    return krn_launched(context, "gelu");
}

static KrnStatus launch_gelu_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = s->rows * s->cols / 8;
    KRN_LAUNCH(gelu_backward_kernel, krn_grid(packs), KRN_BLOCK, stream, (const Bf16 *)d[0],
               (const Bf16 *)d[1], (Bf16 *)d[2], packs);
    return krn_launched(context, "gelu backward");
}

static KrnStatus launch_swiglu(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KRN_LAUNCH(swiglu_kernel, krn_grid(s->rows * KRN_BLOCK), KRN_BLOCK, stream, (const Bf16 *)d[0],
               (Bf16 *)d[1], s->rows, s->cols / 8);
    return krn_launched(context, "swiglu");
}

static KrnStatus launch_swiglu_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KRN_LAUNCH(swiglu_backward_kernel, krn_grid(s->rows * KRN_BLOCK), KRN_BLOCK, stream, (const Bf16 *)d[0],
               (const Bf16 *)d[1], (Bf16 *)d[2], s->rows, s->cols / 8);
    return krn_launched(context, "swiglu backward");
}

static void reference_gelu(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        const double v = h[0][i];
        h[1][i] = (float)(0.5 * v * (1 + tanh(GELU_A * (v + GELU_B * v * v * v))));
    }
}

static void reference_gelu_backward(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        const double v = h[0][i], t = tanh(GELU_A * (v + GELU_B * v * v * v));
        const double slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * GELU_A * (1 + 3 * GELU_B * v * v);
        h[2][i] = (float)(h[1][i] * slope);
    }
}

static void reference_swiglu(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t c = 0; c < s->cols; c++) {
            const double g = h[0][row * 2 * s->cols + c], u = h[0][row * 2 * s->cols + s->cols + c];
            h[1][row * s->cols + c] = (float)(g / (1 + exp(-g)) * u);
        }
}

static void reference_swiglu_backward(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t c = 0; c < s->cols; c++) {
            const int64_t at = row * 2 * s->cols + c;
            const double g = h[0][at], u = h[0][at + s->cols], d = h[1][row * s->cols + c];
            const double sigmoid = 1 / (1 + exp(-g));
            h[2][at] = (float)(d * u * sigmoid * (1 + g * (1 - sigmoid)));
            h[2][at + s->cols] = (float)(d * g * sigmoid);
        }
}

const KrnKernel krn_gelu = {"gelu",       "rows cols", no_flops,       gelu_bytes,
                            gelu_buffers, launch_gelu, reference_gelu, 0.03};
const KrnKernel krn_gelu_backward = {"gelu_backward",
                                     "rows cols",
                                     no_flops,
                                     gelu_backward_bytes,
                                     gelu_backward_buffers,
                                     launch_gelu_backward,
                                     reference_gelu_backward,
                                     0.03};
const KrnKernel krn_swiglu = {"swiglu",       "rows cols",   no_flops,         swiglu_bytes,
                              swiglu_buffers, launch_swiglu, reference_swiglu, 0.03};
const KrnKernel krn_swiglu_backward = {"swiglu_backward",
                                       "rows cols",
                                       no_flops,
                                       swiglu_backward_bytes,
                                       swiglu_backward_buffers,
                                       launch_swiglu_backward,
                                       reference_swiglu_backward,
                                       0.03};
