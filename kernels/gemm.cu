/* kernels/gemm.cu - matrix products through cuBLASLt in the layouts of training, batched and grouped.
 *
 * Ours are row-major, cuBLASLt's column-major, so that every product is asked for transposed: D^T [n,m] =
 * B^T A^T, the first operand being our B. The algorithm is the heuristic's first choice, as in a training
 * framework, found once a shape. `grouped_gemm` launches its groups one after another, a kernel each.
 * fp8 (e4m3, scales of 1, bf16 out) exists in the layout TN alone; sums are kept in the tensor core (fast accumulation), as in
 * the forward pass of training frameworks, but not where they are added to an fp32 gradient.
 */
#include "kernels/internal.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_BYTES (32ull << 20)
#define MAX_PLANS       64

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
    Plan plans[MAX_PLANS];
    int count, next;
};

static cudaDataType data_type(KrnType type)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F, CUDA_R_8F_E4M3, CUDA_R_32I};
    return types[type];
}

KrnType krn_math_type(KrnMath math)
{
    static const KrnType types[] = {KRN_BF16, KRN_F16, KRN_F32, KRN_F32, KRN_F8};
    return types[math];
}

static KrnType out_type(const KrnShape *s)
{
    const KrnType type = krn_math_type(s->math);
    return s->accumulate_fp32 ? KRN_F32 : type == KRN_F8 ? KRN_BF16 : type;
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

void krn_gemm_state_free(KrnGemmState *state)
{
    if (state == nullptr)
        return;
    for (int i = 0; i < state->count; i++)
        plan_clear(&state->plans[i]);
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
    if (status == CUBLAS_STATUS_SUCCESS && type == KRN_F8 && !s->accumulate_fp32)
        status = cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                                sizeof fast);
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

static KrnStatus plan_make(KrnContext *context, KrnGemmState *state, Plan *plan)
{
    cublasStatus_t status = plan_describe(plan);
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
           p->accumulate_fp32 == s->accumulate_fp32;
}

/* The plan of a shape, made when it is not there yet; the oldest gives way. */
static KrnStatus plan_get(KrnContext *context, const KrnShape *s, bool batched, Plan **ret_plan)
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
    const KrnStatus status = plan_make(context, state, &fresh);
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

static KrnStatus multiply(KrnContext *context, const Plan *plan, void *const *d, int64_t group, void *stream)
{
    const KrnShape *s = &plan->shape;
    KrnGemmState *state = krn_gemm_state(context);
    const float alpha = 1, beta = s->accumulate_fp32 ? 1 : 0;
    const int64_t in = (int64_t)krn_type_bytes(krn_math_type(s->math)),
                  out = (int64_t)krn_type_bytes(out_type(s));
    const char *a = (const char *)d[0] + group * s->m * s->k * in,
               *b = (const char *)d[1] + group * s->n * s->k * in;
    char *to = (char *)d[2] + group * s->m * s->n * out;
    const cublasStatus_t status =
        cublasLtMatmul(state->handle, plan->product, &alpha, b, plan->a, a, plan->b, &beta, to, plan->d, to,
                       plan->d, &plan->algorithm, state->workspace, WORKSPACE_BYTES, (cudaStream_t)stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        return KRN_OK;
    char why[48];
    snprintf(why, sizeof why, "a product failed with status %d", (int)status);
    return krn_fail(context, KRN_FAILED, "cuBLASLt", why);
}

static KrnStatus launch_batched(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Plan *plan;
    const KrnStatus status = plan_get(context, s, true, &plan);
    return status == KRN_OK ? multiply(context, plan, d, 0, stream) : status;
}

static KrnStatus launch_grouped(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    Plan *plan;
    KrnStatus status = plan_get(context, s, false, &plan);
    for (int64_t group = 0; status == KRN_OK && group < s->groups; group++)
        status = multiply(context, plan, d, group, stream);
    return status;
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
    return 3;
}

static void reference(const KrnShape *s, float *const *h)
{
    for (int64_t i = 0; i < s->groups * s->m * s->n; i++) {
        const int64_t group = i / (s->m * s->n), row = i / s->n % s->m, col = i % s->n;
        const float *a = h[0] + group * s->m * s->k, *b = h[1] + group * s->n * s->k;
        double sum = s->accumulate_fp32 ? h[2][i] : 0;
        for (int64_t k = 0; k < s->k; k++)
            sum += (double)(s->layout == KRN_NT ? a[k * s->m + row] : a[row * s->k + k]) *
                   (s->layout == KRN_TN ? b[col * s->k + k] : b[k * s->n + col]);
        h[2][i] = (float)sum;
    }
}

const KrnKernel krn_gemm = {
    "gemm", "m n k math layout accumulate_fp32", flops, move_bytes, buffers, launch_batched, reference, 0.03};
const KrnKernel krn_batched_gemm = {"batched_gemm", "m n k groups math layout accumulate_fp32",
                                    flops,          move_bytes,
                                    buffers,        launch_batched,
                                    reference,      0.03};
const KrnKernel krn_grouped_gemm = {"grouped_gemm", "m n k groups math layout accumulate_fp32",
                                    flops,          move_bytes,
                                    buffers,        launch_grouped,
                                    reference,      0.03};
