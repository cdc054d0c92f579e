/* kernels/kernels.h - what the calibration times: kernels as table rows, FLOPs and bytes declared beside each.
 *
 * A kernel names its buffers for a shape; krn_run_open allocates them on the current device and fills the inputs
 * with random numbers; `launch` enqueues it once; krn_run_check launches it once and compares every output with
 * `reference` on the host. The header needs no CUDA: streams are passed as void *. A context belongs to one
 * thread and one device.
 */
#ifndef ORR_KERNELS_KERNELS_H
#define ORR_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* F8 is e4m3, F4 e2m1, two a byte; CODE8 is a byte that stands for `low` of its buffer. */
typedef enum { KRN_F32, KRN_BF16, KRN_F16, KRN_F8, KRN_I32, KRN_F4, KRN_CODE8, KRN_TYPE_COUNT } KrnType;

/* Operands and tensor-core path of a matrix product; all accumulate in fp32. */
typedef enum {
    KRN_MATH_BF16,
    KRN_MATH_FP16,
    KRN_MATH_TF32,
    KRN_MATH_FP32,
    KRN_MATH_FP8,
    KRN_MATH_FP8_BLOCK, /* e4m3; fp32 scales of 128 activations, of 128 x 128 weights: Hopper */
    KRN_MATH_MXFP8,     /* e4m3; powers of two as scales of 32: Blackwell */
    KRN_MATH_NVFP4,     /* e2m1; e4m3 scales of 16: Blackwell */
    KRN_MATH_COUNT
} KrnMath;

/* Numbers of 8 and 4 bits are multiplied in the layout TN alone. */
static inline bool krn_has_one_layout(KrnMath math)
{
    return math >= KRN_MATH_FP8;
}

/* Row-major [m,k] x [k,n]. TN: B is stored [n,k] (forward). NN: B is [k,n] (gradient of the input).
 * NT: A is stored [k,m], B [k,n] (gradient of the weight). */
typedef enum { KRN_TN, KRN_NN, KRN_NT, KRN_LAYOUT_COUNT } KrnLayout;

/* Sizes of one point; a kernel reads those that its `sizes` names. */
typedef struct KrnShape {
    int64_t m, n, k, groups; /* groups: independent products of this size */
    KrnMath math;
    KrnLayout layout;
    bool accumulate_fp32; /* adds to an fp32 output, as gradient accumulation does */
    bool precise;         /* fp8 sums leave the tensor core as they go, as for gradients */
    int64_t batch, seq, heads, kv_heads, head_dim;
    bool causal;
    bool library; /* of a layer: attention by cuDNN, not by our own kernel */
    bool packed;  /* queries, keys and values lie beside each other in one buffer of token rows */
    int64_t rows, cols;
} KrnShape;

typedef enum { KRN_INPUT, KRN_OUTPUT, KRN_IN_OUT, KRN_SCRATCH } KrnRole;

typedef struct KrnBuffer {
    KrnType type;
    int64_t count;
    KrnRole role;
    float low, high; /* inputs are uniform in [low, high); whole numbers for KRN_I32 */
} KrnBuffer;

#define KRN_MAX_BUFFERS 40

typedef enum { KRN_OK, KRN_NO_MEMORY, KRN_UNSUPPORTED, KRN_FAILED } KrnStatus;

typedef struct KrnContext KrnContext;

typedef struct KrnKernel {
    const char *name;
    const char *sizes;                      /* members of the shape that it reads */
    double (*flops)(const KrnShape *shape); /* 2 per multiply-add; 0: only moves bytes */
    double (*bytes)(const KrnShape *shape); /* inputs read once, outputs written once */
    int (*buffers)(const KrnShape *shape, KrnBuffer *ret_buffers);
    KrnStatus (*launch)(KrnContext *context, const KrnShape *shape, void *const *device, void *stream);
    void (*reference)(const KrnShape *shape, float *const *host); /* every buffer as fp32 (KRN_I32 too) */
    double tolerance_frac; /* of |got - want| over the larger of |want| and its root mean square */
} KrnKernel;

/* All kernels, in the order of the sweeps. */
const KrnKernel *const *krn_kernels(int *ret_count);
const KrnKernel *krn_find(const char *name); /* NULL: none */

KrnStatus krn_context_new(KrnContext **ret_context);
void krn_context_free(KrnContext *context);
/* One sentence on the last status that was not KRN_OK. */
const char *krn_context_message(const KrnContext *context);

typedef struct KrnRun {
    const KrnKernel *kernel;
    KrnShape shape;
    int count;
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    void *device[KRN_MAX_BUFFERS];
} KrnRun;

double krn_device_bytes(const KrnKernel *kernel, const KrnShape *shape);
/* KRN_NO_MEMORY leaves nothing allocated. */
KrnStatus krn_run_open(KrnContext *context, const KrnKernel *kernel, const KrnShape *shape, uint64_t seed,
                       KrnRun *ret_run);
KrnStatus krn_run_launch(KrnContext *context, const KrnRun *run, void *stream);
void krn_run_close(KrnRun *run);
/* Opens, launches once and compares; for small shapes. */
KrnStatus krn_check(KrnContext *context, const KrnKernel *kernel, const KrnShape *shape, uint64_t seed,
                    double *ret_error_frac);

/* Version of the cuDNN that is loaded at the first question; false and "": there is none that can be used. */
bool krn_dnn_version(KrnContext *context, char *text, size_t size);
/* Version of the Transformer Engine that is loaded, as pip wrote it down beside it, else "2.4 or later"; false with a
 * sentence: there is none that can be used. */
bool krn_te_version(char *text, size_t size);
/* Version of the cuBLASLt that is loaded: major.minor.patch. */
void krn_gemm_version(char *text, size_t size);

double krn_type_bytes(KrnType type);
KrnType krn_math_type(KrnMath math);

/* A layer is a list of kernels over shared buffers, walked by `launch` and by `reference` alike. */
typedef struct KrnStep {
    const KrnKernel *kernel;
    KrnShape shape;
    int buffers[KRN_MAX_BUFFERS];
    int64_t offsets[KRN_MAX_BUFFERS]; /* elements into the buffer */
} KrnStep;

#define KRN_MAX_STEPS 48
/* Steps of the kernel "transformer_layer" for a shape, so that the sum of parts can be timed beside the whole. */
int krn_layer_steps(const KrnShape *shape, KrnStep *ret_steps);

/* One of those steps over the buffers of the layer's run. */
KrnStatus krn_run_launch_step(KrnContext *context, const KrnRun *run, const KrnStep *step, void *stream);
/* The same kernel at sizes that the host's reference works through in a moment. */
KrnShape krn_small_shape(const KrnShape *shape);

/* A kernel that does nothing, for the latency of a launch. */
KrnStatus krn_launch_nothing(KrnContext *context, void *stream);
/* Reads `bytes` at `device`, zeros: what is larger than the L2 cache empties it and leaves nothing to write back. */
KrnStatus krn_flush(KrnContext *context, void *device, int64_t bytes, void *stream);

#ifdef __cplusplus
}
#endif

#endif
