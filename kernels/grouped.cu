/* kernels/grouped.cu - the experts' products in one call: cublasGemmGroupedBatchedEx of cuBLAS 12.5 and later, bf16 and fp16.
 *
 * cuBLAS is loaded when the kernel is first used (libcublas.so of the toolkit's major version, or $ORRERY_CUBLAS), so that the program
 * starts where there is only cuBLASLt. Every expert is a group of its own, as where experts have different numbers of tokens.
 * The call writes what it reads: no fp32 sums of gradients. Row-major as in gemm.cu: D^T = B^T A^T.
 */
#include "kernels/internal.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS 256

#if defined CUBLAS_VERSION && CUBLAS_VERSION >= 120500

struct Library {
    void *file;
    cublasHandle_t handle;
    decltype(&cublasGemmGroupedBatchedEx) multiply;
    decltype(&cublasSetStream_v2) set_stream;
    void **pointers; /* on the device: those of B, A and D */
    void *of[3];     /* the buffers that they point into */
    KrnShape shape;
};

static Library library; /* one thread and one device use kernels */

template <typename F> static bool find(const char *name, F *at)
{
    void *symbol = dlsym(library.file, name);
    memcpy(at, &symbol, sizeof symbol);
    return symbol != nullptr;
}

static KrnStatus load(KrnContext *context)
{
    char name[48];
    const char *chosen = getenv("ORRERY_CUBLAS");
    decltype(&cublasCreate_v2) create = nullptr;
    if (library.handle != nullptr)
        return KRN_OK;
    snprintf(name, sizeof name, "libcublas.so.%d", CUBLAS_VERSION / 10000);
    library.file = dlopen(chosen != nullptr ? chosen : name, RTLD_NOW | RTLD_LOCAL);
    if (library.file == nullptr)
        return krn_fail(context, KRN_UNSUPPORTED, "cuBLAS",
                        "is not on this machine (ORRERY_CUBLAS names another file)");
    if (!find("cublasGemmGroupedBatchedEx", &library.multiply) || !find("cublasCreate_v2", &create) ||
        !find("cublasSetStream_v2", &library.set_stream))
        return krn_fail(context, KRN_UNSUPPORTED, "cuBLAS",
                        "is older than 12.5, which multiplies groups in one call");
    if (cudaMalloc(&library.pointers, 3 * MAX_GROUPS * sizeof(void *)) != cudaSuccess)
        return krn_fail(context, KRN_NO_MEMORY, "cuBLAS", "no memory for the groups' pointers");
    return create(&library.handle) == CUBLAS_STATUS_SUCCESS
               ? KRN_OK
               : krn_fail(context, KRN_FAILED, "cuBLAS", "cannot be initialised");
}

/* The device's list of where each group's operands lie; written anew for other buffers. */
static bool point(const KrnShape *s, void *const *d)
{
    if (memcmp(library.of, d, sizeof library.of) == 0 && memcmp(&library.shape, s, sizeof *s) == 0)
        return true;
    void *host[3 * MAX_GROUPS];
    const int64_t bytes = (int64_t)krn_type_bytes(krn_math_type(s->math));
    for (int64_t g = 0; g < s->groups; g++) {
        host[g] = (char *)d[1] + g * s->n * s->k * bytes;
        host[MAX_GROUPS + g] = (char *)d[0] + g * s->m * s->k * bytes;
        host[2 * MAX_GROUPS + g] = (char *)d[2] + g * s->m * s->n * bytes;
    }
    memcpy(library.of, d, sizeof library.of);
    library.shape = *s;
    return cudaMemcpy(library.pointers, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess;
}

static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    cublasOperation_t op_b[MAX_GROUPS], op_a[MAX_GROUPS];
    int m[MAX_GROUPS], n[MAX_GROUPS], k[MAX_GROUPS], b_rows[MAX_GROUPS], a_rows[MAX_GROUPS], one[MAX_GROUPS];
    float alpha[MAX_GROUPS], beta[MAX_GROUPS];
    if (s->groups > MAX_GROUPS || (s->math != KRN_MATH_BF16 && s->math != KRN_MATH_FP16) ||
        s->accumulate_fp32)
        return krn_fail(context, KRN_UNSUPPORTED, "cuBLAS",
                        "multiplies groups in bf16 and fp16, without fp32 sums");
    const KrnStatus status = load(context);
    if (status != KRN_OK)
        return status;
    if (!point(s, d))
        return krn_fail(context, KRN_FAILED, "cuBLAS", "the groups' pointers cannot be copied");
    for (int64_t g = 0; g < s->groups; g++) {
        op_b[g] = s->layout == KRN_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
        op_a[g] = s->layout == KRN_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
        m[g] = (int)s->n; /* of the transposed product */
        n[g] = (int)s->m;
        k[g] = (int)s->k;
        b_rows[g] = (int)(s->layout == KRN_TN ? s->k : s->n);
        a_rows[g] = (int)(s->layout == KRN_NT ? s->m : s->k);
        one[g] = 1;
        alpha[g] = 1;
        beta[g] = 0;
    }
    const cudaDataType type = s->math == KRN_MATH_BF16 ? CUDA_R_16BF : CUDA_R_16F;
    library.set_stream(library.handle, (cudaStream_t)stream);
    void *const *at = library.pointers;
    const cublasStatus_t result = library.multiply(
        library.handle, op_b, op_a, m, n, k, alpha, at, type, b_rows, at + MAX_GROUPS, type, a_rows, beta,
        library.pointers + 2 * MAX_GROUPS, type, m, (int)s->groups, one, CUBLAS_COMPUTE_32F);
    if (result == CUBLAS_STATUS_SUCCESS)
        return KRN_OK;
    char why[64];
    snprintf(why, sizeof why, "a grouped product failed with status %d", (int)result);
    return krn_fail(context, result == CUBLAS_STATUS_NOT_SUPPORTED ? KRN_UNSUPPORTED : KRN_FAILED, "cuBLAS",
                    why);
}

#else

static KrnStatus launch(KrnContext *context, const KrnShape *, void *const *, void *)
{
    return krn_fail(context, KRN_UNSUPPORTED, "cuBLAS",
                    "of this build is older than 12.5, which multiplies groups in one call");
}

#endif

static double flops(const KrnShape *s)
{
    return krn_grouped_gemm.flops(s);
}

static double move_bytes(const KrnShape *s)
{
    return krn_grouped_gemm.bytes(s);
}

static int buffers(const KrnShape *s, KrnBuffer *b)
{
    return krn_grouped_gemm.buffers(s, b);
}

static void reference(const KrnShape *s, float *const *h)
{
    krn_grouped_gemm.reference(s, h);
}

const KrnKernel krn_grouped_gemm_one_call = {
    "grouped_gemm_one_call", "m n k groups math layout", flops, move_bytes, buffers, launch, reference, 0.03};
