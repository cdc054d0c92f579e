/* kernels/rows.cu - kernels that move whole rows: embedding and its gradient, permutation of tokens.
 *
 * embedding: rows tokens pick rows of a table [n, cols]; its gradient adds rows in fp32. permute: row i becomes
 * row index[i], as a mixture-of-experts layer sorts tokens by expert.
 */
#include "kernels/device.cuh"

#include <string.h>

/* Blocks walk over rows, threads over a row's packs of 8: no division by the width for every pack. */
__global__ static void gather_kernel(const int *index, const Bf16 *table, Bf16 *y, int64_t rows,
                                     int64_t row_packs)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t from = index[row] * row_packs;
        for (int64_t c = threadIdx.x; c < row_packs; c += KRN_BLOCK)
            store_pack(y + 8 * (row * row_packs + c), load_pack(table + 8 * (from + c)));
    }
}

__global__ static void scatter_add_kernel(const int *index, const Bf16 *dy, float *dtable, int64_t rows,
                                          int64_t cols)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float *to = dtable + index[row] * cols;
        for (int64_t c = threadIdx.x; c < cols; c += KRN_BLOCK)
            atomicAdd(to + c, __bfloat162float(dy[row * cols + c]));
    }
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

static double gather_bytes(const KrnShape *s)
{
    return (double)s->rows * (4 + 4.0 * (double)s->cols);
}

/* Gradient rows in, table rows read and written. */
static double scatter_bytes(const KrnShape *s)
{
    return (double)s->rows * (4 + 10.0 * (double)s->cols);
}

static int gather_buffers(const KrnShape *s, KrnBuffer *b, int64_t table_rows)
{
    krn_set(&b[0], KRN_INPUT, KRN_I32, s->rows, 0, (float)table_rows);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, table_rows * s->cols, -1, 1);
    krn_set(&b[2], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    return 3;
}

static int embedding_buffers(const KrnShape *s, KrnBuffer *b)
{
    return gather_buffers(s, b, s->n);
}

static int permute_buffers(const KrnShape *s, KrnBuffer *b)
{
    return gather_buffers(s, b, s->rows);
}

static int scatter_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_I32, s->rows, 0, (float)s->n);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[2], KRN_IN_OUT, KRN_F32, s->n * s->cols, -1, 1);
    return 3;
}

static KrnStatus launch_gather(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KRN_LAUNCH(gather_kernel, krn_grid(s->rows * KRN_BLOCK), KRN_BLOCK, stream, (const int *)d[0],
               (const Bf16 *)d[1], (Bf16 *)d[2], s->rows, s->cols / 8);
    return krn_launched(context, "gather");
}

static KrnStatus launch_scatter(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KRN_LAUNCH(scatter_add_kernel, krn_grid(s->rows * KRN_BLOCK), KRN_BLOCK, stream, (const int *)d[0],
               (const Bf16 *)d[1], (float *)d[2], s->rows, s->cols);
    return krn_launched(context, "scatter");
}

static void reference_gather(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++)
        memcpy(h[2] + row * s->cols, h[1] + (int64_t)h[0][row] * s->cols, sizeof(float) * (size_t)s->cols);
}

static void reference_scatter(const KrnShape *s, float *const *h)
{
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t c = 0; c < s->cols; c++)
            h[2][(int64_t)h[0][row] * s->cols + c] += h[1][row * s->cols + c];
}

const KrnKernel krn_embedding = {"embedding",       "rows cols n", no_flops,         gather_bytes,
                                 embedding_buffers, launch_gather, reference_gather, 1e-6};
const KrnKernel krn_embedding_backward = {
    "embedding_backward", "rows cols n",  no_flops,          scatter_bytes,
    scatter_buffers,      launch_scatter, reference_scatter, 1e-4};
const KrnKernel krn_permute = {"permute",       "rows cols",   no_flops,         gather_bytes,
                               permute_buffers, launch_gather, reference_gather, 1e-6};
