/* tests/gpu/emulate/cublas_v2.h - the part of cuBLAS that kernels/grouped.cu loads. */
#ifndef EMULATE_CUBLAS_V2_H
#define EMULATE_CUBLAS_V2_H

#include "cublasLt.h"

#define CUBLAS_VERSION 130000

typedef struct EmulatedCublas *cublasHandle_t;

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGemmGroupedBatchedEx(cublasHandle_t handle, const cublasOperation_t op_a[],
                                          const cublasOperation_t op_b[], const int m[], const int n[],
                                          const int k[], const void *alpha, const void *const a[],
                                          cudaDataType a_type, const int lda[], const void *const b[],
                                          cudaDataType b_type, const int ldb[], const void *beta,
                                          void *const c[], cudaDataType c_type, const int ldc[],
                                          int group_count, const int group_size[],
                                          cublasComputeType_t compute);
}

#endif
