/* tests/gpu/test_kernels_emulated.cc - every kernel of kernels/ against its reference, on the host.
 *
 * The sources are compiled by the host compiler over emulate/, so that this runs where there is no GPU and no CUDA.
 * What it cannot see: speed, and where a real GPU differs from the emulation.
 */
#include "emulate/cuda_runtime.h"

#include "kernels/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int failures;

static void expect(bool ok, const char *what, double got, double want)
{
    printf("%s %-64s %.3g (at most %.3g)\n", ok ? "ok    " : "FAILED", what, got, want);
    failures += !ok;
}

static KrnShape gemm(int64_t m, int64_t n, int64_t k, int64_t groups, KrnMath math, KrnLayout layout,
                     bool accumulate)
{
    KrnShape s = {};
    s.m = m;
    s.n = n;
    s.k = k;
    s.groups = groups;
    s.math = math;
    s.layout = layout;
    s.accumulate_fp32 = accumulate;
    return s;
}

static KrnShape attention(int64_t batch, int64_t seq, int64_t heads, int64_t kv_heads, int64_t dim,
                          bool causal)
{
    KrnShape s = {};
    s.batch = batch;
    s.seq = seq;
    s.heads = heads;
    s.kv_heads = kv_heads;
    s.head_dim = dim;
    s.causal = causal;
    return s;
}

static KrnShape rows(int64_t count, int64_t cols, int64_t n)
{
    KrnShape s = {};
    s.rows = count;
    s.cols = cols;
    s.n = n;
    return s;
}

/* A library's kernels have no threads here whose order could be reversed. */
static bool has_threads(const char *name)
{
    return strncmp(name, "cudnn_", 6) != 0 && strncmp(name, "te_", 3) != 0 && strstr(name, "gemm") == nullptr;
}

static void check(KrnContext *context, const char *name, const char *sizes, const KrnShape &shape)
{
    const KrnKernel *kernel = krn_find(name);
    char what[160];
    for (int reversed = 0; reversed < (has_threads(name) ? 2 : 1); reversed++) {
        double error = 1e9;
        emulate_reversed = reversed != 0;
        const KrnStatus status = krn_check(context, kernel, &shape, 7, &error);
        snprintf(what, sizeof what, "%s %s%s%s", name, sizes, reversed ? " (reversed)" : "",
                 status == KRN_OK ? "" : krn_context_message(context));
        expect(status == KRN_OK && error <= kernel->tolerance_frac, what, error, kernel->tolerance_frac);
    }
    emulate_reversed = false;
}

static void check_gemms(KrnContext *context)
{
    for (int layout = 0; layout < KRN_LAYOUT_COUNT; layout++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            char sizes[64];
            snprintf(sizes, sizeof sizes, "layout %d accumulate %d", layout, accumulate);
            const bool add = accumulate != 0;
            check(context, "gemm", sizes, gemm(24, 40, 16, 1, KRN_MATH_BF16, (KrnLayout)layout, add));
            check(context, "batched_gemm", sizes, gemm(8, 24, 16, 3, KRN_MATH_BF16, (KrnLayout)layout, add));
            check(context, "grouped_gemm", sizes, gemm(8, 24, 16, 3, KRN_MATH_BF16, (KrnLayout)layout, add));
            check(context, "grouped_gemm_streams", sizes, gemm(8, 24, 16, 6, KRN_MATH_BF16, (KrnLayout)layout, add));
        }
    for (int layout = 0; layout < KRN_LAYOUT_COUNT; layout++) {
        check(context, "grouped_gemm_one_call", "bf16", gemm(8, 24, 16, 3, KRN_MATH_BF16, (KrnLayout)layout, false));
        check(context, "grouped_gemm_one_call", "fp16", gemm(40, 8, 24, 5, KRN_MATH_FP16, (KrnLayout)layout, false));
    }
    check(context, "gemm", "fp16", gemm(16, 24, 32, 1, KRN_MATH_FP16, KRN_TN, false));
    check(context, "gemm", "tf32", gemm(16, 24, 32, 1, KRN_MATH_TF32, KRN_NN, false));
    check(context, "gemm", "fp32", gemm(16, 24, 32, 1, KRN_MATH_FP32, KRN_NT, true));
    check(context, "gemm", "fp8", gemm(16, 32, 48, 1, KRN_MATH_FP8, KRN_TN, false));
    KrnShape precise = gemm(16, 32, 48, 1, KRN_MATH_FP8, KRN_TN, false);
    precise.precise = true;
    check(context, "gemm", "fp8 precise", precise);
}

/* Sizes that end inside a tile of scales; what a mode does not take is refused, not multiplied without it. */
static void check_scales(KrnContext *context)
{
    for (const KrnMath math : {KRN_MATH_FP8_BLOCK, KRN_MATH_MXFP8, KRN_MATH_NVFP4})
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            char sizes[64];
            snprintf(sizes, sizeof sizes, "block scales %d accumulate %d", math, accumulate);
            check(context, "gemm", sizes, gemm(40, 24, 128, 1, math, KRN_TN, accumulate != 0));
            check(context, "gemm", sizes, gemm(144, 160, 384, 1, math, KRN_TN, accumulate != 0));
            double unused;
            const KrnShape wrong = gemm(32, 32, 128, 1, math, KRN_NN, false);
            const KrnStatus status = krn_check(context, &krn_gemm, &wrong, 7, &unused);
            expect(status == KRN_UNSUPPORTED, krn_context_message(context), status, KRN_UNSUPPORTED);
        }
}

static void check_router(KrnContext *context)
{
    for (const int64_t experts : {8, 64, 256, 1024})
        check(context, "router", "of experts", rows(37, experts, 0));
    double unused;
    const KrnShape few = rows(4, 4, 0);
    const KrnStatus status = krn_check(context, &krn_router, &few, 7, &unused);
    expect(status == KRN_UNSUPPORTED, krn_context_message(context), status, KRN_UNSUPPORTED);
}

static void check_attention(KrnContext *context)
{
    for (int dim = 64; dim <= 128; dim += 64)
        for (int causal = 0; causal < 2; causal++) {
            char sizes[64];
            snprintf(sizes, sizeof sizes, "head_dim %d causal %d", dim, causal);
            const bool mask = causal != 0;
            check(context, "flash_forward", sizes, attention(2, 128, 2, 1, dim, mask));
            check(context, "flash_backward", sizes, attention(1, 128, 2, 1, dim, mask));
            check(context, "attention_unfused", sizes, attention(1, 64, 2, 2, dim, mask));
            for (const char *name : {"cudnn_forward", "cudnn_backward", "cudnn_forward_fp8", "cudnn_backward_fp8"}) {
                check(context, name, sizes, attention(1, 64, 2, 1, dim, mask));
                check(context, name, sizes, attention(1, 64, 2, 2, dim, mask));
            }
        }
    check(context, "flash_forward", "two groups", attention(1, 64, 4, 2, 64, true));
    check(context, "flash_backward", "two groups", attention(1, 64, 4, 2, 64, true));
}

static void check_rows(KrnContext *context)
{
    static const char *const plain[] = {"layer_norm",
                                        "rms_norm",
                                        "layer_norm_backward",
                                        "rms_norm_backward",
                                        "gelu",
                                        "swiglu",
                                        "gelu_backward",
                                        "swiglu_backward",
                                        "dropout",
                                        "residual_add",
                                        "softmax",
                                        "softmax_backward",
                                        "permute",
                                        "cast_bf16",
                                        "grad_norm",
                                        "adam_fp32",
                                        "adam_mixed",
                                        "copy",
                                        "triad",
                                        "cross_entropy"};
    for (const char *name : plain) {
        check(context, name, "5 x 264", rows(5, 264, 0));
        check(context, name, "2 x 2560", rows(2, 2560, 0));
    }
    for (const char *name : {"cast_fp8", "rope"})
        check(context, name, "5 x 2560", rows(5, 2560, 0));
    for (const char *name : {"te_rms_norm", "te_rms_norm_backward", "te_layer_norm", "te_layer_norm_backward", "te_swiglu",
                             "te_swiglu_backward", "te_cast_fp8", "te_cast_fp8_both"}) {
        check(context, name, "5 x 264", rows(5, 264, 0));
        check(context, name, "70 x 512", rows(70, 512, 0)); /* another workspace, of the same size */
    }
    check(context, "te_cast_mxfp8", "160 x 96", rows(160, 96, 0));
    check(context, "te_cast_mxfp8", "32 x 256", rows(32, 256, 0));
    KrnShape masked = rows(48, 24, 0);
    masked.causal = true;
    masked.head_dim = 64;
    check(context, "softmax", "causal", masked);
    check(context, "embedding", "9 of 4", rows(9, 40, 4));
    check(context, "embedding_backward", "9 of 4", rows(9, 40, 4));
}

static KrnShape small_layer()
{
    KrnShape s = attention(1, 64, 2, 1, 64, true);
    s.cols = 96;
    s.n = 160;
    return s;
}

/* Forward pass of the reference from x: sum(y g). */
static double loss_of(const KrnShape &s, float **host, const KrnBuffer *buffers, const float *x,
                      const float *g, int y)
{
    memcpy(host[0], x, sizeof(float) * (size_t)buffers[0].count);
    krn_find("transformer_layer")->reference(&s, host);
    double sum = 0;
    for (int64_t i = 0; i < buffers[0].count; i++)
        sum += (double)host[y][i] * g[i];
    return sum;
}

/* The steps of the layer join up: the gradient it finds of sum(y g) along a direction is the difference of two forward
 * passes. Buffers are put in fp32 here, so that rounding does not drown the difference. */
static void check_layer_gradient()
{
    const KrnShape s = small_layer();
    const KrnKernel *kernel = krn_find("transformer_layer");
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    const int count = kernel->buffers(&s, buffers);
    float *host[KRN_MAX_BUFFERS];
    int y = -1, x_grad = -1, y_grad = -1;
    for (int i = 0; i < count; i++) {
        host[i] = (float *)calloc((size_t)buffers[i].count, sizeof(float));
        for (int64_t e = 0; e < buffers[i].count; e++)
            host[i][e] = buffers[i].low + (buffers[i].high - buffers[i].low) *
                                              (float)(krn_hash((uint64_t)e, 100 + (uint64_t)i) >> 8) /
                                              16777216.0f;
        if (buffers[i].role == KRN_OUTPUT)
            (y < 0 ? y : x_grad) = i;
        if (i > 0 && buffers[i].role == KRN_INPUT && buffers[i].count == buffers[0].count &&
            buffers[i].low <= -1)
            y_grad = i;
    }
    const int64_t n = buffers[0].count;
    float *x = (float *)malloc(sizeof(float) * (size_t)n), *g = (float *)malloc(sizeof(float) * (size_t)n);
    float *moved = (float *)malloc(sizeof(float) * (size_t)n);
    memcpy(x, host[0], sizeof(float) * (size_t)n);
    memcpy(g, host[y_grad], sizeof(float) * (size_t)n);
    loss_of(s, host, buffers, x, g, y);
    double along = 0, size = 0;
    for (int64_t i = 0; i < n; i++)
        size += (double)host[x_grad][i] * host[x_grad][i];
    for (int64_t i = 0; i < n; i++)
        along += (double)host[x_grad][i] * host[x_grad][i] / sqrt(size);
    const double step = 0.5;
    float *direction = (float *)malloc(sizeof(float) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        direction[i] = (float)(host[x_grad][i] / sqrt(size));
    double difference = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int64_t i = 0; i < n; i++)
            moved[i] = x[i] + (float)(sign * step) * direction[i];
        difference += sign * loss_of(s, host, buffers, moved, g, y) / (2 * step);
    }
    expect(fabs(difference / along - 1) < 0.02, "gradient of the layer along itself",
           fabs(difference / along - 1), 0.02);
    for (int i = 0; i < count; i++)
        free(host[i]);
    free(direction);
    free(moved);
    free(g);
    free(x);
}

/* The L2 cache is emptied by reading: memory that must not be written takes it, so that no dirty line is left to be written
 * back inside the timed kernel. A write would end this program. */
static void check_flush(KrnContext *context)
{
    const size_t bytes = 1 << 16;
    void *memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const KrnStatus status =
        memory != MAP_FAILED ? krn_flush(context, memory, (int64_t)bytes, nullptr) : KRN_NO_MEMORY;
    expect(status == KRN_OK, "a flush reads, and does not write", status, KRN_OK);
    munmap(memory, bytes);
}

static void check_counts()
{
    int count;
    const KrnKernel *const *all = krn_kernels(&count);
    KrnShape s = small_layer();
    s.m = 128;
    s.k = 64;
    s.groups = 2;
    s.rows = 64;
    for (int i = 0; i < count; i++) {
        const bool ok = all[i]->bytes(&s) > 0 && all[i]->flops(&s) >= 0 && krn_device_bytes(all[i], &s) > 0 &&
                        krn_find(all[i]->name) == all[i];
        expect(ok, all[i]->name, all[i]->bytes(&s), INFINITY);
    }
    const KrnShape square = gemm(128, 256, 64, 1, KRN_MATH_BF16, KRN_NT, true);
    expect(krn_gemm.flops(&square) == 2.0 * 128 * 256 * 64, "FLOPs of a product", krn_gemm.flops(&square),
           4194304);
    const double bytes = 2 * (128 * 64 + 64 * 256) + 8 * 128 * 256;
    expect(krn_gemm.bytes(&square) == bytes, "bytes of an accumulating product", krn_gemm.bytes(&square),
           bytes);
    /* 6 FLOPs a weight and token, and attention forward 2, backward 5 products. */
    const double t = 64, weights = 96.0 * (2 + 2) * 64 + 96.0 * 128 + 3 * 96.0 * 160;
    const double want = 6 * t * weights + 7 * 2.0 * 2 * 64 * 64 * 64 / 2;
    const KrnShape layer = small_layer();
    expect(fabs(krn_transformer_layer.flops(&layer) / want - 1) < 1e-12, "FLOPs of a layer",
           krn_transformer_layer.flops(&layer), want);
}

int main()
{
    KrnContext *context;
    if (krn_context_new(&context) != KRN_OK)
        return 1;
    check_counts();
    check_flush(context);
    check_gemms(context);
    check_scales(context);
    check_router(context);
    check_attention(context);
    check_rows(context);
    check(context, "transformer_layer", "small", small_layer());
    KrnShape library = small_layer();
    library.library = true;
    check(context, "transformer_layer", "attention by cuDNN", library);
    check_layer_gradient();
    emulate_memory_bytes = 100;
    double unused;
    const KrnShape big = rows(64, 64, 0);
    const KrnStatus status = krn_check(context, &krn_copy, &big, 1, &unused);
    expect(status == KRN_NO_MEMORY, krn_context_message(context), (double)status, KRN_NO_MEMORY);
    krn_context_free(context);
    printf("%d failed\n", failures);
    return failures > 0;
}
