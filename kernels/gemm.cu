/* kernels/gemm.cu - matrix products through cuBLASLt in the layouts of training, batched and grouped.
 *
 * Ours are row-major, cuBLASLt's column-major, so that every product is asked for transposed: D^T [n,m] =
 * B^T A^T, the first operand being our B. The algorithm is the heuristic's first choice, as in a training
 * framework, found once a shape. `grouped_gemm` launches its groups one after another, a kernel each.
 * fp8 (e4m3, scales of 1, bf16 out) exists in the layout TN alone; sums are kept in the tensor core (fast accumulation), as in
 * the forward pass of training frameworks, but not where they are added to an fp32 gradient or `precise` says so.
 * Block scales: fp8 of 128 (cuBLASLt 12.9, Hopper), mxfp8 and nvfp4 (12.8, Blackwell), TN alone. Every scale is 2: where it
 * lies costs time, what it says does not.
 */
#include "kernels/internal.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_BYTES (32ull << 20)
#define MAX_PLANS       64
#define STREAMS         4 /* of grouped products. Source: [TransformerEngine] common/gemm, multi-stream cuBLAS */

/* Until 12.8 the header has no numbers of 4 bits, until 12.9 no scales of 128. */
#ifndef CUBLAS_VERSION
#define CUBLAS_VERSION 0
#endif
#if CUBLAS_VERSION >= 120800
#define FOUR_BITS CUDA_R_4F_E2M1
#else
#define FOUR_BITS CUDA_R_8F_E4M3
#endif

struct Plan {
    KrnShape shape;
    bool batched;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
};

struct KrnGemmState {
    cublasLtHandle_t handle;
    void *workspace;
    cudaStream_t streams[STREAMS];
    cudaEvent_t begun, ended[STREAMS];
    void *workspaces[STREAMS];
    Plan plans[MAX_PLANS];
    int count, next;
};

static cudaDataType data_type(KrnType type)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F,    CUDA_R_8F_E4M3,
                                         CUDA_R_32I, FOUR_BITS,   CUDA_R_8F_E4M3};
    return types[type];
}

KrnType krn_math_type(KrnMath math)
{
    static const KrnType types[] = {KRN_BF16, KRN_F16, KRN_F32, KRN_F32, KRN_F8, KRN_F8, KRN_F8, KRN_F4};
    return types[math];
}

static KrnType out_type(const KrnShape *s)
{
    const KrnType type = krn_math_type(s->math);
    return s->accumulate_fp32 ? KRN_F32 : type == KRN_F8 || type == KRN_F4 ? KRN_BF16 : type;
}

/* --- block scales --- */

#define SCALE      2.0f
#define SCALE_E8M0 128 /* 2 as a power of two, and as e4m3 */
#define SCALE_E4M3 0x40

static bool has_blocks(const KrnShape *s)
{
    return s->math == KRN_MATH_FP8_BLOCK || s->math == KRN_MATH_MXFP8 || s->math == KRN_MATH_NVFP4;
}

static int64_t up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

/* Scales of an operand of `outer` rows of k numbers. Those of 16 and 32 lie in tiles of 128 rows by 4; weights have one for
 * each 128 x 128, in columns of whole fours. Source: cuBLAS documentation, "Scaling Factors Layouts" */
static int64_t scale_count(const KrnShape *s, int64_t outer, bool weights)
{
    if (s->math != KRN_MATH_FP8_BLOCK)
        return up(outer, 128) * up(up(s->k, 16) / (s->math == KRN_MATH_MXFP8 ? 32 : 16), 4);
    const int64_t blocks = up(s->k, 128) / 128;
    return weights && !s->accumulate_fp32 ? up(outer, 128) / 128 * up(blocks, 4) : up(outer, 4) * blocks;
}

static int scale_buffers(const KrnShape *s, KrnBuffer *b)
{
    const float code = s->math == KRN_MATH_MXFP8 ? SCALE_E8M0 : SCALE_E4M3;
    const KrnType type = s->math == KRN_MATH_FP8_BLOCK ? KRN_F32 : KRN_CODE8;
    const float value = type == KRN_F32 ? SCALE : code;
    return krn_set(&b[0], KRN_INPUT, type, scale_count(s, s->m, false), value, value) +
           krn_set(&b[1], KRN_INPUT, type, scale_count(s, s->n, true), value, value);
}

/* Of cuBLASLt's A, our B: the weights, unless their gradient is what is asked for. */
static cublasStatus_t describe_scales(Plan *plan)
{
#if CUBLAS_VERSION >= 120900
    const KrnShape *s = &plan->shape;
    const int32_t rows = s->math == KRN_MATH_MXFP8   ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                         : s->math == KRN_MATH_NVFP4 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3
                                                     : CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    const int32_t weights = s->math == KRN_MATH_FP8_BLOCK && !s->accumulate_fp32
                                ? (int32_t)CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F
                                : rows;
    const cublasStatus_t status = cublasLtMatmulDescSetAttribute(
        plan->product, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &weights, sizeof weights);
    return status != CUBLAS_STATUS_SUCCESS
               ? status
               : cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &rows,
                                                sizeof rows);
#else
    (void)plan;
    return CUBLAS_STATUS_NOT_SUPPORTED; /* this build's cuBLASLt has no block scales */
#endif
}

/* Of the buffers at hand: a product's description is kept, its memory is not. */
static cublasStatus_t point_scales(const Plan *plan, void *const *d)
{
    if (!has_blocks(&plan->shape))
        return CUBLAS_STATUS_SUCCESS;
    const cublasStatus_t status = cublasLtMatmulDescSetAttribute(
        plan->product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &d[4], sizeof d[4]);
    return status != CUBLAS_STATUS_SUCCESS
               ? status
               : cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &d[3],
                                                sizeof d[3]);
}

KrnStatus krn_gemm_state_new(KrnContext *context, KrnGemmState **ret_state)
{
    KrnGemmState *state = (KrnGemmState *)calloc(1, sizeof *state);
    if (cublasLtCreate(&state->handle) != CUBLAS_STATUS_SUCCESS) {
        free(state);
        return krn_fail(context, KRN_FAILED, "cuBLASLt",
                        "cannot be initialised (is the GPU busy or the driver too old?)");
    }
    if (cudaMalloc(&state->workspace, WORKSPACE_BYTES) != cudaSuccess) {
        cublasLtDestroy(state->handle);
        free(state);
        (void)cudaGetLastError();
        return krn_fail(context, KRN_NO_MEMORY, "cuBLASLt", "no memory for a workspace of 32 MiB");
    }
    *ret_state = state;
    return KRN_OK;
}

void krn_gemm_version(char *text, size_t size)
{
    const size_t version = cublasLtGetVersion(); /* 130002: 13.0.2; 12.9.1 is 120901 */
    snprintf(text, size, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

static void plan_clear(Plan *plan)
{
    if (plan->d != nullptr)
        cublasLtMatrixLayoutDestroy(plan->d);
    if (plan->b != nullptr)
        cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->a != nullptr)
        cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->product != nullptr)
        cublasLtMatmulDescDestroy(plan->product);
    memset(plan, 0, sizeof *plan);
}

static void close_streams(KrnGemmState *state);

void krn_gemm_state_free(KrnGemmState *state)
{
    if (state == nullptr)
        return;
    for (int i = 0; i < state->count; i++)
        plan_clear(&state->plans[i]);
    close_streams(state);
    cudaFree(state->workspace);
    cublasLtDestroy(state->handle);
    free(state);
}

static cublasStatus_t layout_new(cublasLtMatrixLayout_t *layout, KrnType type, int64_t rows, int64_t cols,
                                 int batch)
{
    cublasStatus_t status =
        cublasLtMatrixLayoutCreate(layout, data_type(type), (uint64_t)rows, (uint64_t)cols, rows);
    const int64_t stride = rows * cols;
    if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
        status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                  sizeof batch);
    if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
        status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                  &stride, sizeof stride);
    return status;
}

/* What is asked of cuBLASLt: see the head of the file for why A and B change places. */
static cublasStatus_t plan_describe(Plan *plan)
{
    const KrnShape *s = &plan->shape;
    const KrnType type = krn_math_type(s->math);
    const cublasComputeType_t compute =
        s->math == KRN_MATH_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t op_a = s->layout == KRN_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = s->layout == KRN_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int batch = plan->batched ? (int)s->groups : 1;
    cublasStatus_t status = cublasLtMatmulDescCreate(&plan->product, compute, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    const int8_t fast = 1;
    if (status == CUBLAS_STATUS_SUCCESS && s->math == KRN_MATH_FP8 && !s->accumulate_fp32 && !s->precise)
        status = cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                                sizeof fast);
    if (status == CUBLAS_STATUS_SUCCESS && has_blocks(s))
        status = describe_scales(plan);
    if (status == CUBLAS_STATUS_SUCCESS) /* our B: [n,k] or [k,n] row-major */
        status = s->layout == KRN_TN ? layout_new(&plan->a, type, s->k, s->n, batch)
                                     : layout_new(&plan->a, type, s->n, s->k, batch);
    if (status == CUBLAS_STATUS_SUCCESS) /* our A: [m,k], or [k,m] for the weight's gradient */
        status = s->layout == KRN_NT ? layout_new(&plan->b, type, s->m, s->k, batch)
                                     : layout_new(&plan->b, type, s->k, s->m, batch);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = layout_new(&plan->d, out_type(s), s->n, s->m, batch);
    return status;
}

static KrnStatus plan_make(KrnContext *context, KrnGemmState *state, Plan *plan, void *const *d)
{
    cublasStatus_t status = plan_describe(plan);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = point_scales(plan, d);
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t found;
    memset(&found, 0, sizeof found);
    int count = 0;
    const size_t workspace = WORKSPACE_BYTES;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulPreferenceCreate(&preference);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &workspace, sizeof workspace);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(state->handle, plan->product, plan->a, plan->b, plan->d,
                                                plan->d, preference, 1, &found, &count);
    if (preference != nullptr)
        cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && count > 0) {
        plan->algorithm = found.algo;
        return KRN_OK;
    }
    return krn_fail(context, KRN_UNSUPPORTED, "cuBLASLt", "has no algorithm for this product on this GPU");
}

static bool same_plan(const Plan *plan, const KrnShape *s, bool batched)
{
    const KrnShape *p = &plan->shape;
    return plan->batched == batched && p->m == s->m && p->n == s->n && p->k == s->k &&
           (!batched || p->groups == s->groups) && p->math == s->math && p->layout == s->layout &&
           p->accumulate_fp32 == s->accumulate_fp32 && p->precise == s->precise;
}

/* The plan of a shape, made when it is not there yet; the oldest gives way. */
static KrnStatus plan_get(KrnContext *context, const KrnShape *s, bool batched, void *const *d,
                          Plan **ret_plan)
{
    KrnGemmState *state = krn_gemm_state(context);
    for (int i = 0; i < state->count; i++)
        if (same_plan(&state->plans[i], s, batched)) {
            *ret_plan = &state->plans[i];
            return KRN_OK;
        }
    Plan fresh;
    memset(&fresh, 0, sizeof fresh);
    fresh.shape = *s;
    fresh.batched = batched;
    const KrnStatus status = plan_make(context, state, &fresh, d);
    if (status != KRN_OK) {
        plan_clear(&fresh);
        return status;
    }
    Plan *plan = &state->plans[state->next];
    plan_clear(plan);
    *plan = fresh;
    state->next = (state->next + 1) % MAX_PLANS;
    if (state->count < MAX_PLANS)
        state->count++;
    *ret_plan = plan;
    return KRN_OK;
}

/* Where numbers of `type` from `first` on lie. */
static char *at(void *memory, KrnType type, int64_t first)
{
    return (char *)memory + (int64_t)((double)first * krn_type_bytes(type));
}

static KrnStatus multiply(KrnContext *context, const Plan *plan, void *const *d, int64_t group,
                          void *workspace, void *stream)
{
    const KrnShape *s = &plan->shape;
    KrnGemmState *state = krn_gemm_state(context);
    const float alpha = 1, beta = s->accumulate_fp32 ? 1 : 0;
    const KrnType in = krn_math_type(s->math);
    const char *a = at(d[0], in, group * s->m * s->k), *b = at(d[1], in, group * s->n * s->k);
    char *to = at(d[2], out_type(s), group * s->m * s->n);
    cublasStatus_t status = point_scales(plan, d);
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            cublasLtMatmul(state->handle, plan->product, &alpha, b, plan->a, a, plan->b, &beta, to, plan->d,
                           to, plan->d, &plan->algorithm, workspace, WORKSPACE_BYTES, (cudaStream_t)stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        return KRN_OK;
    char why[48];
    snprintf(why, sizeof why, "a product failed with status %d", (int)status);
    return krn_fail(context, KRN_FAILED, "cuBLASLt", why);
}

static KrnStatus launch_batched(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Plan *plan;
    if (has_blocks(s) && s->groups > 1)
        return krn_fail(context, KRN_UNSUPPORTED, "cuBLASLt", "multiplies no batches with block scales here");
    const KrnStatus status = plan_get(context, s, true, d, &plan);
    return status == KRN_OK ? multiply(context, plan, d, 0, krn_gemm_state(context)->workspace, stream)
                            : status;
}

static KrnStatus launch_grouped(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Plan *plan;
    KrnStatus status = plan_get(context, s, false, d, &plan);
    for (int64_t group = 0; status == KRN_OK && group < s->groups; group++)
        status = multiply(context, plan, d, group, krn_gemm_state(context)->workspace, stream);
    return status;
}

/* --- groups over several streams --- */

static KrnStatus open_streams(KrnContext *context, KrnGemmState *state)
{
    cudaError_t error = state->begun != nullptr
                            ? cudaSuccess
                            : cudaEventCreateWithFlags(&state->begun, cudaEventDisableTiming);
    for (int i = 0; error == cudaSuccess && i < STREAMS; i++) {
        if (state->workspaces[i] != nullptr)
            continue;
        error = cudaStreamCreateWithFlags(&state->streams[i], cudaStreamNonBlocking);
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&state->ended[i], cudaEventDisableTiming);
        if (error == cudaSuccess)
            error = cudaMalloc(&state->workspaces[i], WORKSPACE_BYTES);
    }
    if (error == cudaSuccess)
        return KRN_OK;
    (void)cudaGetLastError();
    return krn_fail(context, KRN_NO_MEMORY, "cuBLASLt", "no memory for the workspaces of four streams");
}

static void close_streams(KrnGemmState *state)
{
    for (int i = 0; i < STREAMS; i++) {
        cudaFree(state->workspaces[i]);
        if (state->ended[i] != nullptr)
            cudaEventDestroy(state->ended[i]);
        if (state->streams[i] != nullptr)
            cudaStreamDestroy(state->streams[i]);
    }
    if (state->begun != nullptr)
        cudaEventDestroy(state->begun);
}

/* As a framework does it: each stream waits for what came before and takes every fourth group; what comes after waits for
 * all. A workspace a stream, since products of two may run at once. */
static KrnStatus launch_streams(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KrnGemmState *state = krn_gemm_state(context);
    Plan *plan;
    KrnStatus status = open_streams(context, state);
    if (status == KRN_OK)
        status = plan_get(context, s, false, d, &plan);
    if (status != KRN_OK)
        return status;
    cudaError_t error = cudaEventRecord(state->begun, (cudaStream_t)stream);
    for (int i = 0; error == cudaSuccess && i < STREAMS; i++)
        error = cudaStreamWaitEvent(state->streams[i], state->begun, 0);
    for (int64_t group = 0; error == cudaSuccess && status == KRN_OK && group < s->groups; group++)
        status = multiply(context, plan, d, group, state->workspaces[group % STREAMS],
                          state->streams[group % STREAMS]);
    for (int i = 0; error == cudaSuccess && i < STREAMS; i++) {
        error = cudaEventRecord(state->ended[i], state->streams[i]);
        if (error == cudaSuccess)
            error = cudaStreamWaitEvent((cudaStream_t)stream, state->ended[i], 0);
    }
    return status == KRN_OK && error != cudaSuccess
               ? krn_fail(context, KRN_FAILED, "streams", cudaGetErrorString(error))
               : status;
}

static double flops(const KrnShape *s)
{
    return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->groups;
}

static double move_bytes(const KrnShape *s)
{
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    return (double)s->groups * ((m * k + k * n) * krn_type_bytes(krn_math_type(s->math)) +
                                m * n * krn_type_bytes(out_type(s)) * (s->accumulate_fp32 ? 2 : 1));
}

static int buffers(const KrnShape *s, KrnBuffer *b)
{
    const KrnType type = krn_math_type(s->math);
    krn_set(&b[0], KRN_INPUT, type, s->groups * s->m * s->k, -1, 1);
    krn_set(&b[1], KRN_INPUT, type, s->groups * s->k * s->n, -1, 1);
    krn_set(&b[2], s->accumulate_fp32 ? KRN_IN_OUT : KRN_OUTPUT, out_type(s), s->groups * s->m * s->n, -1, 1);
    return 3 + (has_blocks(s) ? scale_buffers(s, b + 3) : 0);
}

static void reference(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->groups * s->m * s->n; i++) {
        const int64_t group = i / (s->m * s->n), row = i / s->n % s->m, col = i % s->n;
        const float *a = h[0] + group * s->m * s->k, *b = h[1] + group * s->n * s->k;
        const double old = s->accumulate_fp32 ? h[2][i] : 0;
        double sum = 0;
        for (int64_t k = 0; k < s->k; k++)
            sum += (double)(s->layout == KRN_NT ? a[k * s->m + row] : a[row * s->k + k]) *
                   (s->layout == KRN_TN ? b[col * s->k + k] : b[k * s->n + col]);
        h[2][i] = (float)(old + sum * (has_blocks(s) ? SCALE * SCALE : 1));
    }
}

const KrnKernel krn_gemm = {"gemm",    "m n k math layout accumulate_fp32 precise",
                            flops,     move_bytes,
                            buffers,   launch_batched,
                            reference, 0.03};
const KrnKernel krn_batched_gemm = {"batched_gemm", "m n k groups math layout accumulate_fp32",
                                    flops,          move_bytes,
                                    buffers,        launch_batched,
                                    reference,      0.03};
const KrnKernel krn_grouped_gemm = {"grouped_gemm", "m n k groups math layout accumulate_fp32",
                                    flops,          move_bytes,
                                    buffers,        launch_grouped,
                                    reference,      0.03};

const KrnKernel krn_grouped_gemm_streams = {"grouped_gemm_streams",
                                            "m n k groups math layout accumulate_fp32",
                                            flops,
                                            move_bytes,
                                            buffers,
                                            launch_streams,
                                            reference,
                                            0.03};
