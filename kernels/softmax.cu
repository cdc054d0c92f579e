/* kernels/softmax.cu - scaled, masked softmax over rows of attention scores, forward and backward.
 *
 *   p = softmax(x / sqrt(head_dim)), causal: columns above (row mod cols) are 0
 *   dx = p (dp - sum(p dp)) / sqrt(head_dim)
 * rows = batch heads queries, cols = keys. Source: [AttentionIsAllYouNeed]
 */
#include "kernels/device.cuh"

__global__ static void softmax_kernel(const Bf16 *x, Bf16 *p, int cols, float scale, bool causal)
{
    const int64_t row = blockIdx.x;
    const int last = causal ? (int)(row % cols) : cols - 1;
    x += row * cols;
    p += row * cols;
    float top = -INFINITY, sum = 0;
    for (int c = 8 * (int)threadIdx.x; c <= last; c += 8 * KRN_BLOCK) {
        const Pack pack = load_pack(x + c);
        for (int j = 0; j < 8; j++)
            if (c + j <= last)
                top = fmaxf(top, __bfloat162float(pack.v[j]) * scale);
    }
    top = block_max(top);
    for (int c = 8 * (int)threadIdx.x; c <= last; c += 8 * KRN_BLOCK) {
        const Pack pack = load_pack(x + c);
        for (int j = 0; j < 8; j++)
            if (c + j <= last)
                sum += __expf(__bfloat162float(pack.v[j]) * scale - top);
    }
    sum = block_sum(sum);
    for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        Pack pack = load_pack(x + c);
        for (int j = 0; j < 8; j++)
            pack.v[j] =
                __float2bfloat16(c + j <= last ? __expf(__bfloat162float(pack.v[j]) * scale - top) / sum : 0);
        store_pack(p + c, pack);
    }
}

__global__ static void softmax_backward_kernel(const Bf16 *p, const Bf16 *dp, Bf16 *dx, int cols, float scale)
{
    const int64_t row = blockIdx.x;
    p += row * cols;
    dp += row * cols;
    dx += row * cols;
    float dot = 0;
    for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        const Pack pack = load_pack(p + c), grad = load_pack(dp + c);
        for (int j = 0; j < 8; j++)
            dot += __bfloat162float(pack.v[j]) * __bfloat162float(grad.v[j]);
    }
    dot = block_sum(dot);
    for (int c = 8 * (int)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        Pack pack = load_pack(p + c);
        const Pack grad = load_pack(dp + c);
        for (int j = 0; j < 8; j++)
            pack.v[j] =
                __float2bfloat16(__bfloat162float(pack.v[j]) * (__bfloat162float(grad.v[j]) - dot) * scale);
        store_pack(dx + c, pack);
    }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double forward_bytes(const KrnShape *s)
{
    return 4.0 * (double)s->rows * (double)s->cols;
}

static double backward_bytes(const KrnShape *s)
{
    return 6.0 * (double)s->rows * (double)s->cols;
}

static int forward_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -8, 8);
    krn_set(&b[1], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 2;
}

static int backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, 0, 2.0f / (float)s->cols);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[2], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 3;
}

static float scale_of(const KrnShape *s)
{
    return s->head_dim > 0 ? 1 / sqrtf((float)s->head_dim) : 1;
}

static KrnStatus launch_forward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    if (s->cols % 8 != 0)
        return krn_fail(context, KRN_UNSUPPORTED, "softmax", "needs rows of whole groups of 8");
    KRN_LAUNCH(softmax_kernel, (unsigned)s->rows, KRN_BLOCK, stream, (const Bf16 *)d[0], (Bf16 *)d[1],
               (int)s->cols, scale_of(s), s->causal);
    return krn_launched(context, "softmax");
}

static KrnStatus launch_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    if (s->cols % 8 != 0)
        return krn_fail(context, KRN_UNSUPPORTED, "softmax backward", "needs rows of whole groups of 8");
    KRN_LAUNCH(softmax_backward_kernel, (unsigned)s->rows, KRN_BLOCK, stream, (const Bf16 *)d[0],
               (const Bf16 *)d[1], (Bf16 *)d[2], (int)s->cols, scale_of(s));
    return krn_launched(context, "softmax backward");
}

static void reference_forward(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++) {
        const float *x = h[0] + row * s->cols;
        float *p = h[1] + row * s->cols;
        const int64_t count = s->causal ? row % s->cols + 1 : s->cols;
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < count; c++)
            top = fmax(top, x[c] * scale_of(s));
        for (int64_t c = 0; c < count; c++)
            sum += exp(x[c] * scale_of(s) - top);
        for (int64_t c = 0; c < s->cols; c++)
            p[c] = c < count ? (float)(exp(x[c] * scale_of(s) - top) / sum) : 0;
    }
}

static void reference_backward(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++) {
        const float *p = h[0] + row * s->cols, *dp = h[1] + row * s->cols;
        double dot = 0;
        for (int64_t c = 0; c < s->cols; c++)
            dot += (double)p[c] * dp[c];
        for (int64_t c = 0; c < s->cols; c++)
            h[2][row * s->cols + c] = (float)(p[c] * (dp[c] - dot) * scale_of(s));
    }
}

const KrnKernel krn_softmax = {"softmax",       "rows cols",    no_flops,          forward_bytes,
                               forward_buffers, launch_forward, reference_forward, 0.05};
const KrnKernel krn_softmax_backward = {
    "softmax_backward", "rows cols",     no_flops,           backward_bytes,
    backward_buffers,   launch_backward, reference_backward, 0.05};
