/* tests/gpu/emulate/cublas.cc - cuBLAS for the emulation, a library of its own that is loaded as cuBLAS would be: groups of products,
 * column-major, bf16 and fp16 as the real one has them, other types refused. */
#include "cublas_v2.h"

#include "cuda_bf16.h"

#include <math.h>

static float value_at(const void *memory, cudaDataType type, int64_t i)
{
    if (type == CUDA_R_16BF)
        return __bfloat162float(((const __nv_bfloat16 *)memory)[i]);
    const unsigned bits = ((const uint16_t *)memory)[i]; /* normal numbers only */
    return (float)ldexp(1024 + (bits & 0x3ff), (int)(bits >> 10 & 31) - 25) * (bits >> 15 ? -1 : 1);
}

static void put(void *memory, cudaDataType type, int64_t i, float value)
{
    if (type == CUDA_R_16BF) {
        ((__nv_bfloat16 *)memory)[i] = __float2bfloat16(value);
        return;
    }
    int exponent;
    const unsigned mantissa = (unsigned)lrint(ldexp(frexp(fabs((double)value), &exponent), 11));
    const int biased = exponent + 14 + (mantissa == 2048);
    ((uint16_t *)memory)[i] =
        (uint16_t)((value < 0 ? 0x8000u : 0u) | (biased > 0 ? (unsigned)biased << 10 | (mantissa & 0x3ff) : 0u));
}

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    static char something;
    *handle = (cublasHandle_t)(void *)&something;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmGroupedBatchedEx(cublasHandle_t, const cublasOperation_t op_a[],
                                          const cublasOperation_t op_b[], const int m[], const int n[],
                                          const int k[], const void *alpha, const void *const a[],
                                          cudaDataType a_type, const int lda[], const void *const b[],
                                          cudaDataType b_type, const int ldb[], const void *beta,
                                          void *const c[], cudaDataType c_type, const int ldc[],
                                          int group_count, const int group_size[], cublasComputeType_t compute)
{
    if (a_type != b_type || a_type != c_type || (a_type != CUDA_R_16BF && a_type != CUDA_R_16F) ||
        compute != CUBLAS_COMPUTE_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int at = 0;
    for (int g = 0; g < group_count; g++)
        for (int i = 0; i < group_size[g]; i++, at++)
            for (int col = 0; col < n[g]; col++)
                for (int row = 0; row < m[g]; row++) {
                    double sum = 0;
                    for (int l = 0; l < k[g]; l++)
                        sum += (double)value_at(a[at], a_type,
                                                op_a[g] == CUBLAS_OP_N ? row + (int64_t)l * lda[g] : l + (int64_t)row * lda[g]) *
                               value_at(b[at], b_type,
                                        op_b[g] == CUBLAS_OP_N ? l + (int64_t)col * ldb[g] : col + (int64_t)l * ldb[g]);
                    const int64_t to = row + (int64_t)col * ldc[g];
                    const float old = ((const float *)beta)[g] > 0 ? value_at(c[at], c_type, to) : 0;
                    put(c[at], c_type, to, ((const float *)alpha)[g] * (float)sum + ((const float *)beta)[g] * old);
                }
    return CUBLAS_STATUS_SUCCESS;
}
}
