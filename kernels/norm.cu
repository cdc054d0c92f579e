/* kernels/norm.cu - layer norm and RMS norm, forward and backward; a block a row, statistics in fp32.
 *
 *   y = (x - mu) r w      r = 1 / sqrt(mean((x - mu)^2) + eps)      mu = 0 for RMS norm
 *   dx = r (w dy - mean(w dy) - xhat mean(w dy xhat))               the first mean for layer norm only
 *   dw += sum over rows of dy xhat                                  xhat = (x - mu) r
 * The bias of layer norm is left to the GEMM that follows.
 * Source: [LayerNorm], [RmsNorm]      Ignores: rows longer than one block sweeps in registers
 */
#include "kernels/device.cuh"

#define NORM_EPS 1e-5f

template <bool center>
__global__ static void forward_kernel(const Bf16 *x, const Bf16 *w, Bf16 *y, float *mean, float *scale,
                                      int cols)
{
    const int64_t row = blockIdx.x;
    x += row * cols;
    y += row * cols;
    float sum = 0, square = 0;
    for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        const Pack pack = load_pack(x + c);
        for (int j = 0; j < 8; j++)
            sum += __bfloat162float(pack.v[j]);
    }
    const float mu = center ? block_sum(sum) / (float)cols : 0;
    for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        const Pack pack = load_pack(x + c);
        for (int j = 0; j < 8; j++) {
            const float v = __bfloat162float(pack.v[j]) - mu;
            square += v * v;
        }
    }
    const float r = rsqrtf(block_sum(square) / (float)cols + NORM_EPS);
    for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        Pack pack = load_pack(x + c);
        const Pack weight = load_pack(w + c);
        for (int j = 0; j < 8; j++)
            pack.v[j] =
                __float2bfloat16((__bfloat162float(pack.v[j]) - mu) * r * __bfloat162float(weight.v[j]));
        store_pack(y + c, pack);
    }
    if (threadIdx.x == 0) {
        mean[row] = mu;
        scale[row] = r;
    }
}

/* Blocks walk over rows with the grid's stride; each thread keeps the weight gradient of its columns, 8 for each of
 * its `packs`, in registers and adds it once at the end. 8 x KRN_BLOCK x packs columns at most. */
#define NORM_MOST_PACKS 8
#define NORM_BLOCKS     528 /* four a multiprocessor: each adds a row of weight gradients */

template <bool center, int packs>
__global__ static void backward_kernel(const Bf16 *x, const Bf16 *w, const float *mean, const float *scale,
                                       const Bf16 *dy, Bf16 *dx, float *dw, int64_t rows, int cols)
{
    float dw_part[packs][8];
    for (int i = 0; i < packs; i++)
        for (int j = 0; j < 8; j++)
            dw_part[i][j] = 0;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float mu = center ? mean[row] : 0, r = scale[row];
        float plain = 0, projected = 0;
#pragma unroll
        for (int i = 0; i < packs; i++) {
            const int c = 8 * ((int)threadIdx.x + i * KRN_BLOCK);
            if (c >= cols)
                break;
            const Pack in = load_pack(x + row * cols + c), grad = load_pack(dy + row * cols + c);
            const Pack weight = load_pack(w + c);
            for (int j = 0; j < 8; j++) {
                const float hat = (__bfloat162float(in.v[j]) - mu) * r;
                const float g = __bfloat162float(grad.v[j]), wg = g * __bfloat162float(weight.v[j]);
                plain += wg;
                projected += wg * hat;
                dw_part[i][j] += g * hat;
            }
        }
        plain = center ? block_sum(plain) / (float)cols : 0;
        projected = block_sum(projected) / (float)cols;
        for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
            Pack in = load_pack(x + row * cols + c);
            const Pack grad = load_pack(dy + row * cols + c), weight = load_pack(w + c);
            for (int j = 0; j < 8; j++) {
                const float hat = (__bfloat162float(in.v[j]) - mu) * r;
                const float wg = __bfloat162float(grad.v[j]) * __bfloat162float(weight.v[j]);
                in.v[j] = __float2bfloat16(r * (wg - plain - hat * projected));
            }
            store_pack(dx + row * cols + c, in);
        }
    }
#pragma unroll
    for (int i = 0; i < packs; i++) {
        const int c = 8 * ((int)threadIdx.x + i * KRN_BLOCK);
        for (int j = 0; j < 8 && c < cols; j++)
            atomicAdd(dw + c + j, dw_part[i][j]);
    }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double forward_bytes(const KrnShape *s)
{
    return 4.0 * (double)s->rows * (double)s->cols + 8.0 * (double)s->rows + 2.0 * (double)s->cols;
}

static double backward_bytes(const KrnShape *s)
{
    return 6.0 * (double)s->rows * (double)s->cols + 8.0 * (double)s->rows + 10.0 * (double)s->cols;
}

static int forward_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->cols, 0.5, 1.5);
    krn_set(&b[2], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    krn_set(&b[3], KRN_OUTPUT, KRN_F32, s->rows, 0, 0);
    krn_set(&b[4], KRN_OUTPUT, KRN_F32, s->rows, 0, 0);
    return 5;
}

static int backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->cols, 0.5, 1.5);
    krn_set(&b[2], KRN_INPUT, KRN_F32, s->rows, -0.1f, 0.1f);
    krn_set(&b[3], KRN_INPUT, KRN_F32, s->rows, 0.5, 2);
    krn_set(&b[4], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[5], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    krn_set(&b[6], KRN_IN_OUT, KRN_F32, s->cols, -1, 1);
    return 7;
}

template <bool center>
static KrnStatus launch_forward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    auto kernel = forward_kernel<center>;
    KRN_LAUNCH(kernel, (unsigned)s->rows, KRN_BLOCK, stream, (const Bf16 *)d[0], (const Bf16 *)d[1],
               (Bf16 *)d[2], (float *)d[3], (float *)d[4], (int)s->cols);
    return krn_launched(context, "norm");
}

template <bool center, int packs>
static void enqueue_backward(const KrnShape *s, void *const *d, void *stream)
{
    auto kernel = backward_kernel<center, packs>;
    const unsigned blocks = (unsigned)(s->rows < NORM_BLOCKS ? s->rows : NORM_BLOCKS);
    KRN_LAUNCH(kernel, blocks, KRN_BLOCK, stream, (const Bf16 *)d[0], (const Bf16 *)d[1], (const float *)d[2],
               (const float *)d[3], (const Bf16 *)d[4], (Bf16 *)d[5], (float *)d[6], s->rows, (int)s->cols);
}

template <bool center>
static KrnStatus launch_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const int64_t packs = (s->cols + 8 * KRN_BLOCK - 1) / (8 * KRN_BLOCK);
    if (packs > NORM_MOST_PACKS || s->cols % 8 != 0)
        return krn_fail(context, KRN_UNSUPPORTED, "norm backward",
                        "needs rows of whole groups of 8, 16,384 at most");
    if (packs <= 1)
        enqueue_backward<center, 1>(s, d, stream);
    else if (packs <= 2)
        enqueue_backward<center, 2>(s, d, stream);
    else if (packs <= 4)
        enqueue_backward<center, 4>(s, d, stream);
    else
        enqueue_backward<center, NORM_MOST_PACKS>(s, d, stream);
    return krn_launched(context, "norm backward");
}

static void reference_forward(bool center, const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++) {
        const float *x = h[0] + row * s->cols;
        double mu = 0, square = 0;
        for (int64_t c = 0; c < s->cols && center; c++)
            mu += x[c] / (double)s->cols;
        for (int64_t c = 0; c < s->cols; c++)
            square += (x[c] - mu) * (x[c] - mu) / (double)s->cols;
        const double r = 1 / sqrt(square + NORM_EPS);
        for (int64_t c = 0; c < s->cols; c++)
            h[2][row * s->cols + c] = (float)((x[c] - mu) * r * h[1][c]);
        h[3][row] = (float)mu;
        h[4][row] = (float)r;
    }
}

static void reference_backward(bool center, const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++) {
        const float *x = h[0] + row * s->cols, *dy = h[4] + row * s->cols;
        const double mu = center ? h[2][row] : 0, r = h[3][row];
        double plain = 0, projected = 0;
        for (int64_t c = 0; c < s->cols; c++) {
            const double hat = (x[c] - mu) * r, wg = (double)dy[c] * h[1][c];
            plain += center ? wg / (double)s->cols : 0;
            projected += wg * hat / (double)s->cols;
            h[6][c] += (float)(dy[c] * hat);
        }
        for (int64_t c = 0; c < s->cols; c++)
            h[5][row * s->cols + c] =
                (float)(r * ((double)dy[c] * h[1][c] - plain - (x[c] - mu) * r * projected));
    }
}

static void reference_layer(const KrnShape *s, float *const *h)
{
    reference_forward(true, s, h);
}
static void reference_rms(const KrnShape *s, float *const *h)
{
    reference_forward(false, s, h);
}
static void reference_layer_backward(const KrnShape *s, float *const *h)
{
    reference_backward(true, s, h);
}
static void reference_rms_backward(const KrnShape *s, float *const *h)
{
    reference_backward(false, s, h);
}

const KrnKernel krn_layer_norm = {"layer_norm",    "rows cols",          no_flops,        forward_bytes,
                                  forward_buffers, launch_forward<true>, reference_layer, 0.03};
const KrnKernel krn_rms_norm = {"rms_norm",      "rows cols",           no_flops,      forward_bytes,
                                forward_buffers, launch_forward<false>, reference_rms, 0.03};
const KrnKernel krn_layer_norm_backward = {
    "layer_norm_backward",    "rows cols", no_flops, backward_bytes, backward_buffers, launch_backward<true>,
    reference_layer_backward, 0.03};
const KrnKernel krn_rms_norm_backward = {
    "rms_norm_backward",    "rows cols", no_flops, backward_bytes, backward_buffers, launch_backward<false>,
    reference_rms_backward, 0.03};
