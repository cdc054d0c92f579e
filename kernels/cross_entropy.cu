/* kernels/cross_entropy.cu - loss and its gradient in one pass over the logits, a block a token.
 *
 *   loss = log(sum exp(x)) - x[label]        dx = softmax(x) - [c = label]
 * rows = tokens, cols = vocabulary. The largest logit and the sum are found in one sweep (online softmax), the
 * gradient in a second. Source: [OnlineSoftmax]
 */
#include "kernels/device.cuh"

__global__ static void cross_entropy_kernel(const Bf16 *x, const int *labels, float *loss, Bf16 *dx,
                                            int64_t cols)
{
    const int64_t row = blockIdx.x;
    const int label = labels[row];
    x += row * cols;
    dx += row * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = 8 * (int64_t)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        const Pack pack = load_pack(x + c);
        float here = __bfloat162float(pack.v[0]);
        for (int j = 1; j < 8; j++)
            here = fmaxf(here, __bfloat162float(pack.v[j]));
        const float higher = fmaxf(top, here);
        sum *= __expf(top - higher);
        top = higher;
        for (int j = 0; j < 8; j++)
            sum += __expf(__bfloat162float(pack.v[j]) - top);
    }
    const float all_top = block_max(top);
    sum = block_sum(sum > 0 ? sum * __expf(top - all_top) : 0);
    if (threadIdx.x == 0)
        loss[row] = logf(sum) + all_top - __bfloat162float(x[label]);
    for (int64_t c = 8 * (int64_t)threadIdx.x; c < cols; c += 8 * KRN_BLOCK) {
        Pack pack = load_pack(x + c);
        for (int j = 0; j < 8; j++)
            pack.v[j] = __float2bfloat16(__expf(__bfloat162float(pack.v[j]) - all_top) / sum -
                                         (c + j == label ? 1.0f : 0.0f));
        store_pack(dx + c, pack);
    }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double move_bytes(const KrnShape *s)
{
    return (double)s->rows * (8 + 4.0 * (double)s->cols);
}

static int buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -4, 4);
    krn_set(&b[1], KRN_INPUT, KRN_I32, s->rows, 0, (float)s->cols);
    krn_set(&b[2], KRN_OUTPUT, KRN_F32, s->rows, 0, 0);
    krn_set(&b[3], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 4;
}

static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KRN_LAUNCH(cross_entropy_kernel, (unsigned)s->rows, KRN_BLOCK, stream, (const Bf16 *)d[0],
               (const int *)d[1], (float *)d[2], (Bf16 *)d[3], s->cols);
    return krn_launched(context, "cross-entropy");
}

static void reference(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++) {
        const float *x = h[0] + row * s->cols;
        const int64_t label = (int64_t)h[1][row];
        double sum = 0;
        for (int64_t c = 0; c < s->cols; c++)
            sum += exp(x[c]);
        h[2][row] = (float)(log(sum) - x[label]);
        for (int64_t c = 0; c < s->cols; c++)
            h[3][row * s->cols + c] = (float)(exp(x[c]) / sum - (c == label));
    }
}

const KrnKernel krn_cross_entropy = {"cross_entropy", "rows cols", no_flops,  move_bytes,
                                     buffers,         launch,      reference, 0.05};
