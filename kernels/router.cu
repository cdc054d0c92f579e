/* kernels/router.cu - the choice of experts: softmax over a token's logits and the largest eight of it, with their numbers.
 *
 * rows = tokens, cols = experts, at most 1024. A warp a token; of equal logits the first counts.
 * Source: [MegatronMoE] fused top-k with score function
 */
#include "kernels/device.cuh"

#include <string.h>

#define CHOSEN       8
#define MOST_EXPERTS 1024
#define LANE_EXPERTS (MOST_EXPERTS / 32)

__global__ static void router_kernel(const float *logits, float *weights, int *chosen, int64_t rows,
                                     int experts)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t warps = (int64_t)gridDim.x * (KRN_BLOCK / 32);
    for (int64_t row = (int64_t)blockIdx.x * (KRN_BLOCK / 32) + threadIdx.x / 32; row < rows; row += warps) {
        float own[LANE_EXPERTS], sum = 0, top = -INFINITY;
        for (int i = 0; i < LANE_EXPERTS; i++) {
            const int expert = lane + 32 * i;
            own[i] = expert < experts ? logits[row * experts + expert] : -INFINITY;
            top = fmaxf(top, own[i]);
        }
        top = warp_max(top);
        for (int i = 0; i < LANE_EXPERTS; i++)
            sum += __expf(own[i] - top);
        sum = warp_sum(sum);
        for (int k = 0; k < CHOSEN; k++) {
            float best = -INFINITY;
            for (int i = 0; i < LANE_EXPERTS; i++)
                best = fmaxf(best, own[i]);
            best = warp_max(best);
            float first = -INFINITY; /* minus the number of the first expert that has it */
            for (int i = LANE_EXPERTS - 1; i >= 0; i--)
                if (own[i] == best)
                    first = -(float)(lane + 32 * i);
            first = warp_max(first);
            const int expert = (int)-first;
            for (int i = 0; i < LANE_EXPERTS; i++)
                if (lane + 32 * i == expert)
                    own[i] = -INFINITY;
            if (lane == 0) {
                weights[row * CHOSEN + k] = __expf(best - top) / sum;
                chosen[row * CHOSEN + k] = expert;
            }
        }
    }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double move_bytes(const KrnShape *s)
{
    return (double)s->rows * (4.0 * (double)s->cols + 8.0 * CHOSEN);
}

static int buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_F32, s->rows * s->cols, -4, 4);
    krn_set(&b[1], KRN_OUTPUT, KRN_F32, s->rows * CHOSEN, 0, 0);
    krn_set(&b[2], KRN_OUTPUT, KRN_I32, s->rows * CHOSEN, 0, 1);
    return 3;
}

static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    if (s->cols < CHOSEN || s->cols > MOST_EXPERTS)
        return krn_fail(context, KRN_UNSUPPORTED, "router", "chooses among 8 to 1024 experts");
    KRN_LAUNCH(router_kernel, krn_grid(s->rows * 32), KRN_BLOCK, stream, (const float *)d[0], (float *)d[1],
               (int *)d[2], s->rows, (int)s->cols);
    return krn_launched(context, "router");
}

static void reference(const KrnShape *s, float *const *h)
{
    bool taken[MOST_EXPERTS];
    for (int64_t row = 0; row < s->rows; row++) {
        const float *logits = h[0] + row * s->cols;
        double sum = 0;
        memset(taken, 0, sizeof taken);
        for (int64_t e = 0; e < s->cols; e++)
            sum += exp((double)logits[e]);
        for (int k = 0; k < CHOSEN; k++) {
            int64_t best = -1;
            for (int64_t e = 0; e < s->cols; e++)
                if (!taken[e] && (best < 0 || logits[e] > logits[best]))
                    best = e;
            taken[best] = true;
            h[1][row * CHOSEN + k] = (float)(exp((double)logits[best]) / sum);
            h[2][row * CHOSEN + k] = (float)best;
        }
    }
}

const KrnKernel krn_router = {"router", "rows cols", no_flops, move_bytes, buffers, launch, reference, 0.01};
