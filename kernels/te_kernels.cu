/* kernels/te_kernels.cu - norms, SwiGLU and casts of Transformer Engine as kernels of the sweep.
 *
 * What Megatron-Core and its kin run between two products. Norms keep weights and their gradients in bf16, as the library
 * demands; casts to e4m3 have one scale of the tensor, alone or with the transposed copy that Hopper's weight gradients need;
 * mxfp8 casts write both directions with a power of two for 32 elements each. Tensors are handles over the buffers, made for
 * each launch. Source: [TransformerEngine]
 */
#include "kernels/te.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#define NORM_EPS     1e-5f
#define MOST_TENSORS 12
#define SCALE_BLOCK  32
#define SCALE_ROWS   128 /* the table of scales has whole tiles of 128 x 4 */
#define SCALE_COLS   4
#define E4M3_MOST    448.0f
#define E8M0_BIAS    127

typedef struct Engine {
    TeLibrary te;
    bool tried, found;
    char why[200];
    int processors;
    void *workspace;
    size_t bytes;
} Engine;

static Engine engine; /* one thread and one device use kernels */

static KrnStatus open_engine(KrnContext *context)
{
    if (!engine.tried) {
        engine.tried = true;
        engine.found = te_load(&engine.te, engine.why, sizeof engine.why);
        cudaDeviceProp properties;
        if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) /* kernels run on GPU 0 of the process */
            engine.processors = properties.multiProcessorCount;
    }
    return engine.found ? KRN_OK : krn_fail(context, KRN_UNSUPPORTED, "Transformer Engine", engine.why);
}

/* Handles of one launch; all go when it ends. */
typedef struct Handles {
    TeTensor made[MOST_TENSORS];
    int count;
} Handles;

static TeTensor make_empty(Handles *handles, TeScaling scaling)
{
    return handles->made[handles->count++] = engine.te.create(scaling);
}

/* cols 0: one dimension. */
static void attach(TeTensor tensor, TePart part, TeType type, void *data, int64_t rows, int64_t cols)
{
    TeBuffer buffer = {data, type, {{(size_t)rows, (size_t)cols}, cols > 0 ? 2u : 1u}};
    engine.te.set(&tensor, part, &buffer);
}

static TeTensor make(Handles *handles, TeType type, void *data, int64_t rows, int64_t cols)
{
    TeTensor tensor = make_empty(handles, TE_SCALE_OF_TENSOR);
    attach(tensor, TE_DATA, type, data, rows, cols);
    return tensor;
}

static void drop(Handles *handles)
{
    for (int i = 0; i < handles->count; i++)
        engine.te.destroy(handles->made[i]);
    handles->count = 0;
}

/* A function that is given an empty workspace says which one it wants. It grows outside of what is timed: the first launch of
 * a shape warms up. */
static bool give_workspace(TeTensor workspace)
{
    const TeShape shape = engine.te.shape(workspace);
    size_t bytes = 1;
    for (size_t i = 0; i < shape.ndim; i++)
        bytes *= shape.data[i];
    if (bytes > engine.bytes) {
        cudaFree(engine.workspace);
        engine.bytes = 0;
        if (cudaMalloc(&engine.workspace, bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            engine.workspace = nullptr;
            return false;
        }
        engine.bytes = bytes;
    }
    TeBuffer buffer = {engine.workspace, TE_BYTE, shape};
    engine.te.set(&workspace, TE_DATA, &buffer);
    return true;
}

static KrnStatus launched(KrnContext *context, const char *name)
{
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? KRN_OK : krn_fail(context, KRN_FAILED, name, cudaGetErrorString(error));
}

static double no_flops(const KrnShape *s)
{
    (void)s;
    return 0;
}

/* --- norms: x, gamma, mean, scale and then y; or dy, dx, dgamma --- */

static double forward_bytes(const KrnShape *s)
{
    return krn_rms_norm.bytes(s);
}

static double backward_bytes(const KrnShape *s)
{
    return 6.0 * (double)s->rows * (double)s->cols + 8.0 * (double)s->rows + 4.0 * (double)s->cols;
}

static int forward_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_BF16, s->cols, 0.5, 1.5);
    krn_set(&b[2], KRN_INPUT, KRN_BF16, s->cols, 0, 0); /* beta */
    krn_set(&b[3], KRN_OUTPUT, KRN_BF16, s->rows * s->cols, 0, 0);
    krn_set(&b[4], KRN_SCRATCH, KRN_F32, s->rows, 0, 0);
    krn_set(&b[5], KRN_OUTPUT, KRN_F32, s->rows, 0, 0);
    return 6;
}

/* Those of norm.cu, but that the weight gradient is bf16 and not added to; dbeta comes behind. */
static int backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    const int count = krn_rms_norm_backward.buffers(s, b);
    krn_set(&b[6], KRN_OUTPUT, KRN_BF16, s->cols, 0, 0);
    krn_set(&b[count], KRN_SCRATCH, KRN_BF16, s->cols, 0, 0);
    return count + 1;
}

typedef struct Norm {
    Handles handles;
    TeTensor x, gamma, beta, mean, scale, y, dy, dx, dgamma, dbeta, workspace;
} Norm;

static void bind_forward(const KrnShape *s, void *const *d, Norm *norm)
{
    Handles *h = &norm->handles;
    norm->x = make(h, TE_BF16, d[0], s->rows, s->cols);
    norm->gamma = make(h, TE_BF16, d[1], s->cols, 0);
    norm->beta = make(h, TE_BF16, d[2], s->cols, 0);
    norm->y = make(h, TE_BF16, d[3], s->rows, s->cols);
    norm->mean = make(h, TE_F32, d[4], s->rows, 0);
    norm->scale = make(h, TE_F32, d[5], s->rows, 0);
    norm->workspace = make_empty(h, TE_SCALE_OF_TENSOR);
}

static void bind_backward(const KrnShape *s, void *const *d, Norm *norm)
{
    Handles *h = &norm->handles;
    norm->x = make(h, TE_BF16, d[0], s->rows, s->cols);
    norm->gamma = make(h, TE_BF16, d[1], s->cols, 0);
    norm->mean = make(h, TE_F32, d[2], s->rows, 0);
    norm->scale = make(h, TE_F32, d[3], s->rows, 0);
    norm->dy = make(h, TE_BF16, d[4], s->rows, s->cols);
    norm->dx = make(h, TE_BF16, d[5], s->rows, s->cols);
    norm->dgamma = make(h, TE_BF16, d[6], s->cols, 0);
    norm->dbeta = make(h, TE_BF16, d[7], s->cols, 0);
    norm->workspace = make_empty(h, TE_SCALE_OF_TENSOR);
}

static void forward(const Norm *n, bool center, void *stream)
{
    const TeLibrary *te = &engine.te;
    if (center)
        te->layer_norm(n->x, n->gamma, n->beta, NORM_EPS, n->y, n->mean, n->scale, n->workspace,
                       engine.processors, false, stream);
    else
        te->rms_norm(n->x, n->gamma, NORM_EPS, n->y, n->scale, n->workspace, engine.processors, false,
                     stream);
}

static void backward(const Norm *n, bool center, void *stream)
{
    const TeLibrary *te = &engine.te;
    if (center)
        te->layer_norm_backward(n->dy, n->x, n->mean, n->scale, n->gamma, n->dx, n->dgamma, n->dbeta,
                                n->workspace, engine.processors, false, stream);
    else
        te->rms_norm_backward(n->dy, n->x, n->scale, n->gamma, n->dx, n->dgamma, n->workspace,
                              engine.processors, false, stream);
}

typedef void (*Bind)(const KrnShape *s, void *const *d, Norm *norm);
typedef void (*Pass)(const Norm *norm, bool center, void *stream);

/* Twice: what workspace is wanted, then the work. */
static KrnStatus launch_norm(KrnContext *context, const KrnShape *s, void *const *d, void *stream, Bind bind,
                             Pass pass, bool center)
{
    KrnStatus status = open_engine(context);
    Norm norm = {};
    if (status != KRN_OK)
        return status;
    bind(s, d, &norm);
    pass(&norm, center, stream);
    if (give_workspace(norm.workspace)) {
        pass(&norm, center, stream);
        status = launched(context, "Transformer Engine's norm");
    } else {
        status = krn_fail(context, KRN_NO_MEMORY, "Transformer Engine's norm", "no memory for its workspace");
    }
    drop(&norm.handles);
    return status;
}

static KrnStatus launch_rms(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    return launch_norm(context, s, d, stream, bind_forward, forward, false);
}
static KrnStatus launch_rms_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    return launch_norm(context, s, d, stream, bind_backward, backward, false);
}
static KrnStatus launch_layer(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    return launch_norm(context, s, d, stream, bind_forward, forward, true);
}
static KrnStatus launch_layer_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    return launch_norm(context, s, d, stream, bind_backward, backward, true);
}

/* The formulas of norm.cu, whose buffers stand in another order. */
static void reference_forward(const KrnShape *s, float *const *h, const KrnKernel *own)
{
    float *const there[] = {h[0], h[1], h[3], h[4], h[5]};
    own->reference(s, there);
}
static void reference_rms(const KrnShape *s, float *const *h)
{
    reference_forward(s, h, &krn_rms_norm);
}
static void reference_layer(const KrnShape *s, float *const *h)
{
    reference_forward(s, h, &krn_layer_norm);
}

static void reference_rms_backward(const KrnShape *s, float *const *h)
{
    krn_rms_norm_backward.reference(s, h);
}
static void reference_layer_backward(const KrnShape *s, float *const *h)
{
    krn_layer_norm_backward.reference(s, h);
}

/* --- SwiGLU: the buffers and the formulas of activation.cu --- */

static double swiglu_bytes(const KrnShape *s)
{
    return krn_swiglu.bytes(s);
}
static double swiglu_backward_bytes(const KrnShape *s)
{
    return krn_swiglu_backward.bytes(s);
}
static int swiglu_buffers(const KrnShape *s, KrnBuffer *b)
{
    return krn_swiglu.buffers(s, b);
}
static int swiglu_backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    return krn_swiglu_backward.buffers(s, b);
}
static void reference_swiglu(const KrnShape *s, float *const *h)
{
    krn_swiglu.reference(s, h);
}
static void reference_swiglu_backward(const KrnShape *s, float *const *h)
{
    krn_swiglu_backward.reference(s, h);
}

static KrnStatus launch_swiglu(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Handles h = {};
    if (open_engine(context) != KRN_OK)
        return KRN_UNSUPPORTED;
    engine.te.swiglu(make(&h, TE_BF16, d[0], s->rows, 2 * s->cols), make(&h, TE_BF16, d[1], s->rows, s->cols),
                     stream);
    drop(&h);
    return launched(context, "Transformer Engine's SwiGLU");
}

static KrnStatus launch_swiglu_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Handles h = {};
    if (open_engine(context) != KRN_OK)
        return KRN_UNSUPPORTED;
    const TeTensor x = make(&h, TE_BF16, d[0], s->rows, 2 * s->cols);
    const TeTensor dy = make(&h, TE_BF16, d[1], s->rows, s->cols);
    engine.te.swiglu_backward(dy, x, make(&h, TE_BF16, d[2], s->rows, 2 * s->cols), stream);
    drop(&h);
    return launched(context, "Transformer Engine's SwiGLU backward");
}

/* --- casts with one scale: x, scale, inverse scale, maximum, codes, transposed codes --- */

static double cast_bytes(const KrnShape *s)
{
    return 3.0 * (double)s->rows * (double)s->cols;
}

static double cast_both_bytes(const KrnShape *s)
{
    return 4.0 * (double)s->rows * (double)s->cols;
}

static int cast_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_INPUT, KRN_F32, 1, 100, 100);
    krn_set(&b[2], KRN_SCRATCH, KRN_F32, 1, 0, 0);
    krn_set(&b[3], KRN_SCRATCH, KRN_F32, 1, 0, 0);
    krn_set(&b[4], KRN_OUTPUT, KRN_F8, s->rows * s->cols, 0, 0);
    return 5;
}

static int cast_both_buffers(const KrnShape *s, KrnBuffer *b)
{
    const int count = cast_buffers(s, b);
    krn_set(&b[count], KRN_OUTPUT, KRN_F8, s->rows * s->cols, 0, 0);
    return count + 1;
}

static KrnStatus cast(KrnContext *context, const KrnShape *s, void *const *d, void *stream, bool both)
{
    Handles h = {};
    if (open_engine(context) != KRN_OK)
        return KRN_UNSUPPORTED;
    const TeTensor x = make(&h, TE_BF16, d[0], s->rows, s->cols),
                   y = make(&h, TE_E4M3, d[4], s->rows, s->cols);
    attach(y, TE_SCALE, TE_F32, d[1], 1, 0);
    attach(y, TE_INVERSE_SCALE, TE_F32, d[2], 1, 0);
    attach(y, TE_AMAX, TE_F32, d[3], 1, 0);
    if (both) {
        attach(y, TE_COLUMN_DATA, TE_E4M3, d[5], s->cols, s->rows);
        attach(y, TE_COLUMN_INVERSE_SCALE, TE_F32, d[2], 1, 0);
    }
    engine.te.quantize(x, y, stream);
    drop(&h);
    return launched(context, "Transformer Engine's cast");
}

static KrnStatus launch_cast(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    return cast(context, s, d, stream, false);
}
static KrnStatus launch_cast_both(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    return cast(context, s, d, stream, true);
}

static void reference_cast(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        h[4][i] = h[0][i] * h[1][0];
}

static void reference_cast_both(const KrnShape *s, float *const *h)
{
    reference_cast(s, h);
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        h[5][i % s->cols * s->rows + i / s->cols] = h[4][i];
}

/* --- casts with a scale for 32 elements: x, codes and scales of rows, codes and scales of columns --- */

static int64_t whole(int64_t count, int64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

static int64_t row_scales(const KrnShape *s)
{
    return whole(s->rows, SCALE_ROWS) * whole(s->cols / SCALE_BLOCK, SCALE_COLS);
}

static int64_t column_scales(const KrnShape *s)
{
    return whole(s->rows / SCALE_BLOCK, SCALE_COLS) * whole(s->cols, SCALE_ROWS);
}

static double blocks_bytes(const KrnShape *s)
{
    return (4.0 + 2.0 / SCALE_BLOCK) * (double)s->rows * (double)s->cols;
}

static int blocks_buffers(const KrnShape *s, KrnBuffer *b)
{
    krn_set(&b[0], KRN_INPUT, KRN_BF16, s->rows * s->cols, -1, 1);
    krn_set(&b[1], KRN_OUTPUT, KRN_F8, s->rows * s->cols, 0, 0);
    krn_set(&b[2], KRN_OUTPUT, KRN_CODE8, row_scales(s), 0, 0);
    krn_set(&b[3], KRN_OUTPUT, KRN_F8, s->rows * s->cols, 0, 0);
    krn_set(&b[4], KRN_OUTPUT, KRN_CODE8, column_scales(s), 0, 0);
    return 5;
}

static KrnStatus launch_blocks(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Handles h = {};
    if (open_engine(context) != KRN_OK)
        return KRN_UNSUPPORTED;
    if (s->rows % SCALE_BLOCK != 0 || s->cols % SCALE_BLOCK != 0)
        return krn_fail(context, KRN_UNSUPPORTED, "mxfp8 cast",
                        "needs rows and columns of whole blocks of 32");
    const TeTensor x = make(&h, TE_BF16, d[0], s->rows, s->cols), y = make_empty(&h, TE_SCALES_OF_32);
    attach(y, TE_DATA, TE_E4M3, d[1], s->rows, s->cols);
    attach(y, TE_INVERSE_SCALE, TE_E8M0, d[2], whole(s->rows, SCALE_ROWS),
           whole(s->cols / SCALE_BLOCK, SCALE_COLS));
    attach(y, TE_COLUMN_DATA, TE_E4M3, d[3], s->rows, s->cols);
    attach(y, TE_COLUMN_INVERSE_SCALE, TE_E8M0, d[4], whole(s->rows / SCALE_BLOCK, SCALE_COLS),
           whole(s->cols, SCALE_ROWS));
    engine.te.quantize(x, y, stream);
    drop(&h);
    return launched(context, "Transformer Engine's mxfp8 cast");
}

/* One block of 32 elements that lie `stride` apart: the smallest power of two that brings its maximum to 448 or less. */
static float scale_block(const float *x, int64_t stride, float *codes)
{
    float most = 0;
    for (int64_t i = 0; i < SCALE_BLOCK; i++)
        most = fmaxf(most, fabsf(x[i * stride]));
    int exponent = 0;
    const float fraction = frexpf(most * (1 / E4M3_MOST), &exponent); /* [0.5, 1) */
    exponent -= fraction == 0.5f; /* a power of two needs no rounding up */
    for (int64_t i = 0; i < SCALE_BLOCK; i++)
        codes[i * stride] = ldexpf(x[i * stride], -exponent);
    return (float)(exponent + E8M0_BIAS);
}

static void reference_blocks(const KrnShape *s, float *const *h)
{
    const int64_t row_line = whole(s->cols / SCALE_BLOCK, SCALE_COLS),
                  column_line = whole(s->cols, SCALE_ROWS);
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t c = 0; c < s->cols; c += SCALE_BLOCK)
            h[2][row * row_line + c / SCALE_BLOCK] =
                scale_block(h[0] + row * s->cols + c, 1, h[1] + row * s->cols + c);
    for (int64_t row = 0; row < s->rows; row += SCALE_BLOCK)
        for (int64_t c = 0; c < s->cols; c++)
            h[4][row / SCALE_BLOCK * column_line + c] =
                scale_block(h[0] + row * s->cols + c, s->cols, h[3] + row * s->cols + c);
}

/* --- the kernels --- */

const KrnKernel krn_te_rms_norm = {"te_rms_norm",   "rows cols", no_flops,      forward_bytes,
                                   forward_buffers, launch_rms,  reference_rms, 0.03};
const KrnKernel krn_te_rms_norm_backward = {
    "te_rms_norm_backward", "rows cols", no_flops, backward_bytes, backward_buffers, launch_rms_backward,
    reference_rms_backward, 0.03};
const KrnKernel krn_te_layer_norm = {"te_layer_norm", "rows cols",  no_flops,        forward_bytes,
                                     forward_buffers, launch_layer, reference_layer, 0.03};
const KrnKernel krn_te_layer_norm_backward = {
    "te_layer_norm_backward", "rows cols", no_flops, backward_bytes, backward_buffers, launch_layer_backward,
    reference_layer_backward, 0.03};
const KrnKernel krn_te_swiglu = {"te_swiglu",    "rows cols",   no_flops,         swiglu_bytes,
                                 swiglu_buffers, launch_swiglu, reference_swiglu, 0.03};
const KrnKernel krn_te_swiglu_backward = {"te_swiglu_backward",
                                          "rows cols",
                                          no_flops,
                                          swiglu_backward_bytes,
                                          swiglu_backward_buffers,
                                          launch_swiglu_backward,
                                          reference_swiglu_backward,
                                          0.03};
/* Half a step of three bits. */
const KrnKernel krn_te_cast_fp8 = {"te_cast_fp8", "rows cols", no_flops,       cast_bytes,
                                   cast_buffers,  launch_cast, reference_cast, 0.0667};
const KrnKernel krn_te_cast_fp8_both = {
    "te_cast_fp8_both", "rows cols",         no_flops, cast_both_bytes, cast_both_buffers,
    launch_cast_both,   reference_cast_both, 0.0667};
const KrnKernel krn_te_cast_mxfp8 = {"te_cast_mxfp8", "rows cols",   no_flops,         blocks_bytes,
                                     blocks_buffers,  launch_blocks, reference_blocks, 0.0667};
