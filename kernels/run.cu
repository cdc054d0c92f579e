/* kernels/run.cu - the list of kernels; buffers, random inputs, one launch held against the host's reference. */
#include "kernels/dnn.h"
#include "kernels/device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const KrnKernel *const kernels[] = {&krn_gemm,
                                           &krn_batched_gemm,
                                           &krn_grouped_gemm,
                                           &krn_grouped_gemm_streams,
                                           &krn_grouped_gemm_one_call,
                                           &krn_attention_unfused,
                                           &krn_flash_forward,
                                           &krn_flash_backward,
                                           &krn_cudnn_forward,
                                           &krn_cudnn_backward,
                                           &krn_cudnn_forward_fp8,
                                           &krn_cudnn_backward_fp8,
                                           &krn_layer_norm,
                                           &krn_layer_norm_backward,
                                           &krn_rms_norm,
                                           &krn_rms_norm_backward,
                                           &krn_softmax,
                                           &krn_softmax_backward,
                                           &krn_gelu,
                                           &krn_gelu_backward,
                                           &krn_swiglu,
                                           &krn_swiglu_backward,
                                           &krn_dropout,
                                           &krn_residual_add,
                                           &krn_embedding,
                                           &krn_embedding_backward,
                                           &krn_cross_entropy,
                                           &krn_permute,
                                           &krn_router,
                                           &krn_cast_fp8,
                                           &krn_cast_bf16,
                                           &krn_rope,
                                           &krn_grad_norm,
                                           &krn_adam_fp32,
                                           &krn_adam_mixed,
                                           &krn_te_rms_norm,
                                           &krn_te_rms_norm_backward,
                                           &krn_te_layer_norm,
                                           &krn_te_layer_norm_backward,
                                           &krn_te_swiglu,
                                           &krn_te_swiglu_backward,
                                           &krn_te_cast_fp8,
                                           &krn_te_cast_fp8_both,
                                           &krn_te_cast_mxfp8,
                                           &krn_copy,
                                           &krn_triad,
                                           &krn_transformer_layer};

const KrnKernel *const *krn_kernels(int *ret_count)
{
    *ret_count = (int)(sizeof kernels / sizeof *kernels);
    return kernels;
}

const KrnKernel *krn_find(const char *name)
{
    for (const KrnKernel *kernel : kernels)
        if (strcmp(kernel->name, name) == 0)
            return kernel;
    return nullptr;
}

/* --- context --- */

struct KrnContext {
    KrnGemmState *gemm;
    KrnDnnState *dnn;
    char message[256];
};

KrnGemmState *krn_gemm_state(KrnContext *context)
{
    return context->gemm;
}

KrnDnnState **krn_dnn_state(KrnContext *context)
{
    return &context->dnn;
}

KrnStatus krn_fail(KrnContext *context, KrnStatus status, const char *what, const char *why)
{
    snprintf(context->message, sizeof context->message, "%s: %s", what, why);
    return status;
}

const char *krn_context_message(const KrnContext *context)
{
    return context->message;
}

KrnStatus krn_context_new(KrnContext **ret_context)
{
    KrnContext *context = (KrnContext *)calloc(1, sizeof *context);
    *ret_context = context;
    return krn_gemm_state_new(context, &context->gemm);
}

void krn_context_free(KrnContext *context)
{
    if (context == nullptr)
        return;
    krn_gemm_state_free(context->gemm);
    krn_dnn_state_free(context->dnn);
    free(context);
}

/* --- numbers --- */

double krn_type_bytes(KrnType type)
{
    static const double bytes[] = {4, 2, 2, 1, 4, 0.5, 1};
    return bytes[type];
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float krn_rounded(KrnType type, float value)
{
    if (type != KRN_BF16 || !isfinite(value))
        return value;
    const uint32_t bits = to_bits(value);
    return from_bits((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}

/* Random fp16 and e4m3 numbers are made bit by bit, of a size near 1, so that host and device agree exactly. */
#define F16_EXPONENT 13 /* 2^-2, or one above */
#define F8_EXPONENT  5  /* 2^-2, or one above */

__global__ static void fill_kernel(void *memory, KrnType type, int64_t count, float low, float high,
                                   uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const uint32_t bits = krn_hash((uint64_t)i, seed);
        const float value = low + (high - low) * ((float)(bits >> 8) / 16777216.0f);
        if (type == KRN_F32)
            ((float *)memory)[i] = value;
        else if (type == KRN_BF16)
            ((Bf16 *)memory)[i] = __float2bfloat16(value);
        else if (type == KRN_F16)
            ((unsigned short *)memory)[i] =
                (unsigned short)((bits & 0x8000) | (F16_EXPONENT + (bits >> 16 & 1)) << 10 | (bits & 0x3ff));
        else if (type == KRN_F8)
            ((unsigned char *)memory)[i] =
                (unsigned char)((bits & 0x80) | (F8_EXPONENT + (bits >> 8 & 1)) << 3 | (bits & 7));
        else if (type == KRN_CODE8)
            ((unsigned char *)memory)[i] = (unsigned char)low;
        else if (type == KRN_F4 && i % 2 == 0) /* both numbers of a byte: two threads must not share it */
            ((unsigned char *)memory)[i / 2] = (unsigned char)(bits & 0xff);
        else if (type == KRN_I32)
            ((int *)memory)[i] = (int)floorf(value < high - 1 ? value : high - 1);
    }
}

/* e2m1: a sign, two bits of exponent, one of mantissa. Source: [OcpMx] */
static float four_bits(uint32_t bits)
{
    static const float sizes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return bits >> 3 & 1 ? -sizes[bits & 7] : sizes[bits & 7];
}

static float widened(KrnType type, const void *memory, int64_t i)
{
    if (type == KRN_F32)
        return ((const float *)memory)[i];
    if (type == KRN_I32)
        return (float)((const int *)memory)[i];
    if (type == KRN_BF16)
        return from_bits((uint32_t)((const uint16_t *)memory)[i] << 16);
    if (type == KRN_F4)
        return four_bits(((const uint8_t *)memory)[i / 2] >> (i % 2 != 0 ? 4 : 0));
    if (type == KRN_CODE8)
        return ((const uint8_t *)memory)[i];
    const uint32_t bits = type == KRN_F16 ? ((const uint16_t *)memory)[i] : ((const uint8_t *)memory)[i];
    const int mantissa = type == KRN_F16 ? 10 : 3, exponents = type == KRN_F16 ? 5 : 4,
              bias = type == KRN_F16 ? 15 : 7;
    const int exponent = (int)(bits >> mantissa & ((1u << exponents) - 1));
    const float fraction = (float)(bits & ((1u << mantissa) - 1)) / (float)(1 << mantissa);
    const float size = exponent == 0 ? ldexpf(fraction, 1 - bias) : ldexpf(1 + fraction, exponent - bias);
    return bits >> (mantissa + exponents) & 1 ? -size : size;
}

/* --- runs --- */

double krn_device_bytes(const KrnKernel *kernel, const KrnShape *shape)
{
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    const int count = kernel->buffers(shape, buffers);
    double bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += (double)buffers[i].count * krn_type_bytes(buffers[i].type);
    return bytes;
}

void krn_run_close(KrnRun *run)
{
    for (int i = 0; i < run->count; i++)
        cudaFree(run->device[i]);
    run->count = 0;
}

KrnStatus krn_run_open(KrnContext *context, const KrnKernel *kernel, const KrnShape *shape, uint64_t seed,
                       KrnRun *ret_run)
{
    KrnRun run;
    memset(&run, 0, sizeof run);
    run.kernel = kernel;
    run.shape = *shape;
    const int count = kernel->buffers(shape, run.buffers);
    for (int i = 0; i < count; i++) {
        const KrnBuffer *buffer = &run.buffers[i];
        const size_t bytes = (size_t)((double)buffer->count * krn_type_bytes(buffer->type));
        if (cudaMalloc(&run.device[i], bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            krn_run_close(&run);
            return krn_fail(context, KRN_NO_MEMORY, kernel->name, "out of GPU memory at this size");
        }
        run.count = i + 1;
        KRN_LAUNCH(fill_kernel, krn_grid(buffer->count), KRN_BLOCK, 0, run.device[i], buffer->type,
                   buffer->count, buffer->low, buffer->high, seed + (uint64_t)i);
    }
    /* The runs that follow use streams that do not wait for the one that fills. */
    KrnStatus status = krn_launched(context, "fill");
    const cudaError_t error = status == KRN_OK ? cudaDeviceSynchronize() : cudaSuccess;
    if (error != cudaSuccess)
        status = krn_fail(context, KRN_FAILED, "fill", cudaGetErrorString(error));
    if (status != KRN_OK)
        krn_run_close(&run);
    else
        *ret_run = run;
    return status;
}

KrnStatus krn_run_launch(KrnContext *context, const KrnRun *run, void *stream)
{
    return run->kernel->launch(context, &run->shape, run->device, stream);
}

static cudaError_t read_back(const KrnRun *run, int i, float *host)
{
    const KrnBuffer *buffer = &run->buffers[i];
    const size_t bytes = (size_t)((double)buffer->count * krn_type_bytes(buffer->type));
    void *raw = malloc(bytes);
    const cudaError_t error = cudaMemcpy(raw, run->device[i], bytes, cudaMemcpyDeviceToHost);
    for (int64_t e = 0; error == cudaSuccess && e < buffer->count; e++)
        host[e] = widened(buffer->type, raw, e);
    free(raw);
    return error;
}

/* Largest difference, over the larger of the wanted value and the root mean square of all; 1 when it is no number. */
static double difference(const float *got, const float *want, int64_t count)
{
    double square = 0, worst = 0;
    for (int64_t i = 0; i < count; i++)
        square += (double)want[i] * want[i] / (double)count;
    const double typical = square > 0 ? sqrt(square) : 1;
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - want[i]) / fmax(typical, fabs((double)want[i]));
        if (!(off <= 1e30))
            return 1;
        worst = off > worst ? off : worst;
    }
    return worst;
}

KrnStatus krn_check(KrnContext *context, const KrnKernel *kernel, const KrnShape *shape, uint64_t seed,
                    double *ret_error_frac)
{
    KrnRun run;
    KrnStatus status = krn_run_open(context, kernel, shape, seed, &run);
    if (status != KRN_OK)
        return status;
    float *want[KRN_MAX_BUFFERS];
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < run.count; i++) {
        want[i] = (float *)calloc((size_t)run.buffers[i].count, sizeof(float));
        if (error == cudaSuccess && run.buffers[i].role != KRN_OUTPUT)
            error = read_back(&run, i, want[i]);
    }
    status = krn_run_launch(context, &run, nullptr);
    if (status == KRN_OK && error == cudaSuccess)
        error = cudaDeviceSynchronize();
    double worst = 0;
    if (status == KRN_OK && error == cudaSuccess)
        kernel->reference(shape, want);
    for (int i = 0; i < run.count; i++) {
        const KrnRole role = run.buffers[i].role;
        if (status == KRN_OK && error == cudaSuccess && (role == KRN_OUTPUT || role == KRN_IN_OUT)) {
            float *got = (float *)malloc(sizeof(float) * (size_t)run.buffers[i].count);
            error = read_back(&run, i, got);
            const double off = difference(got, want[i], run.buffers[i].count);
            worst = off > worst ? off : worst;
            free(got);
        }
    }
    for (int i = 0; i < run.count; i++)
        free(want[i]);
    krn_run_close(&run);
    if (status == KRN_OK && error != cudaSuccess)
        return krn_fail(context, KRN_FAILED, kernel->name, cudaGetErrorString(error));
    *ret_error_frac = worst;
    return status;
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

KrnShape krn_small_shape(const KrnShape *shape)
{
    KrnShape small = *shape;
    const bool is_layer = shape->seq > 0 && shape->cols > 0;
    small.m = at_most(shape->m, 128);
    small.n = at_most(shape->n, is_layer ? 256 : 128);
    small.k = at_most(shape->k, 256);
    small.groups = at_most(shape->groups, 3);
    small.batch = at_most(shape->batch, 2);
    small.seq = at_most(shape->seq, 128);
    small.heads =
        shape->kv_heads > 0 ? at_most(2 * (shape->heads / shape->kv_heads), 8) : at_most(shape->heads, 2);
    small.kv_heads = shape->kv_heads > 0 ? small.heads / at_most(shape->heads / shape->kv_heads, 4) : 0;
    small.rows = at_most(shape->rows, 96); /* whole blocks of 32, no whole tile of 64 */
    small.cols = at_most(shape->cols, is_layer ? 256 : 4096);
    return small;
}

/* --- nothing, and the L2 cache emptied --- */

__global__ static void nothing_kernel(int *unused)
{
    (void)unused;
}

KrnStatus krn_launch_nothing(KrnContext *context, void *stream)
{
    KRN_LAUNCH(nothing_kernel, 1, 32, stream, (int *)nullptr);
    return krn_launched(context, "empty kernel");
}

/* Sums what it reads and keeps the sum only when it is one that zeros do not give: nothing is written, so that no dirty line
 * is left for the timed kernel to write back. */
__global__ static void read_kernel(float4 *memory, int64_t count)
{
    float sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float4 v = memory[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum > 1e30f)
        memory[0].x = sum;
}

KrnStatus krn_flush(KrnContext *context, void *device, int64_t bytes, void *stream)
{
    const int64_t count = bytes / (int64_t)sizeof(float4);
    KRN_LAUNCH(read_kernel, krn_grid(count), KRN_BLOCK, stream, (float4 *)device, count);
    return krn_launched(context, "flush");
}
