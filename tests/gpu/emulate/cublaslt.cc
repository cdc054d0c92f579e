/* tests/gpu/emulate/cublaslt.cc - loops for cuBLASLt: column-major, block scales in the layouts of its documentation. */
#include "cublasLt.h"
#include "cuda_bf16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t cublasLtGetVersion()
{
    return 130002;
}

struct EmulatedHandle {
    int unused;
};
struct EmulatedProduct {
    cublasOperation_t op[2];
    int32_t mode[2]; /* of the scales of A and B */
    const void *scale[2];
};
struct EmulatedLayout {
    cudaDataType type;
    int64_t rows, cols, ld, stride;
    int batch;
};
struct EmulatedPreference {
    size_t workspace;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = new EmulatedHandle{0};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    *layout = new EmulatedLayout{type, (int64_t)rows, (int64_t)cols, ld, 0, 1};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, int attribute,
                                                const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        memcpy(&layout->batch, value, bytes);
    else
        memcpy(&layout->stride, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    (void)compute;
    (void)scale;
    *product = new EmulatedProduct{{CUBLAS_OP_N, CUBLAS_OP_N}, {0, 0}, {nullptr, nullptr}};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product)
{
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, int attribute, const void *value,
                                              size_t bytes)
{
    if (attribute == CUBLASLT_MATMUL_DESC_FAST_ACCUM) /* says how fp8 sums are kept, not what they are */
        return bytes == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
        memcpy(&product->op[attribute == CUBLASLT_MATMUL_DESC_TRANSB], value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        memcpy(&product->mode[attribute == CUBLASLT_MATMUL_DESC_B_SCALE_MODE], value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        memcpy(&product->scale[attribute == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER], value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new EmulatedPreference{0};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, int attribute,
                                                    const void *value, size_t bytes)
{
    (void)attribute;
    memcpy(&preference->workspace, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static bool fits(const EmulatedLayout *layout, cublasOperation_t op, int64_t rows, int64_t cols)
{
    return op == CUBLAS_OP_N ? layout->rows == rows && layout->cols == cols
                             : layout->rows == cols && layout->cols == rows;
}

/* What block scales ask for: 4-bit numbers scales of 16, e4m3 those of 32 or 128; TN; k in whole blocks; scales at hand. */
static bool scales_fit(const EmulatedProduct *product, const EmulatedLayout *a, const EmulatedLayout *b, int64_t k)
{
    const int32_t mode = product->mode[0];
    if (a->type == CUDA_R_4F_E2M1 && mode != CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3)
        return false;
    if (mode == 0)
        return product->mode[1] == 0;
    const bool blocks = mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F ||
                        mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    const bool pair = blocks ? product->mode[1] == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
                             : product->mode[1] == mode;
    return pair && product->scale[0] != nullptr && product->scale[1] != nullptr && a->type == b->type &&
           (mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3 ? a->type == CUDA_R_4F_E2M1 : a->type == CUDA_R_8F_E4M3) &&
           product->op[0] == CUBLAS_OP_T && product->op[1] == CUBLAS_OP_N && k % (blocks ? 128 : 32) == 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *ret_count)
{
    (void)handle;
    (void)c;
    (void)preference;
    const int64_t k = product->op[0] == CUBLAS_OP_N ? a->cols : a->rows;
    const bool ok = fits(a, product->op[0], d->rows, k) && fits(b, product->op[1], k, d->cols) &&
                    wanted > 0 && a->batch == b->batch && a->batch == d->batch && scales_fit(product, a, b, k);
    *ret_count = ok ? 1 : 0;
    results[0].algo.chosen = 1;
    return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static double element(const void *memory, cudaDataType type, int64_t i)
{
    if (type == CUDA_R_32F)
        return ((const float *)memory)[i];
    if (type == CUDA_R_16BF)
        return __bfloat162float(((const __nv_bfloat16 *)memory)[i]);
    if (type == CUDA_R_16F) { /* normal numbers only */
        const unsigned bits = ((const uint16_t *)memory)[i];
        return ldexp(1024 + (bits & 0x3ff), (int)(bits >> 10 & 31) - 25) * (bits >> 15 ? -1 : 1);
    }
    if (type == CUDA_R_4F_E2M1) {
        static const double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
        const unsigned four = ((const uint8_t *)memory)[i / 2] >> 4 * (i % 2);
        return sizes[four & 7] * (four >> 3 & 1 ? -1 : 1);
    }
    const unsigned bits = ((const uint8_t *)memory)[i];
    return ldexp(8 + (bits & 7), (int)(bits >> 3 & 15) - 10) * (bits >> 7 ? -1 : 1);
}

static void put(void *memory, cudaDataType type, int64_t i, double value)
{
    if (type == CUDA_R_32F) {
        ((float *)memory)[i] = (float)value;
    } else if (type == CUDA_R_16BF) {
        ((__nv_bfloat16 *)memory)[i] = __float2bfloat16((float)value);
    } else {
        int exponent;
        const double fraction = frexp(fabs(value), &exponent); /* rounded to 11 bits */
        const unsigned mantissa = (unsigned)lrint(ldexp(fraction, 11));
        const int biased = exponent + 14 + (mantissa == 2048);
        ((uint16_t *)memory)[i] = (uint16_t)((value < 0 ? 0x8000u : 0u) |
                                             (biased > 0 ? (unsigned)biased << 10 | (mantissa & 0x3ff) : 0u));
    }
}

/* The scale of number i along k of row `outer`, where each mode keeps it. */
static double scale_of(const EmulatedProduct *product, int operand, int64_t outer, int64_t outers, int64_t i, int64_t k)
{
    const int32_t mode = product->mode[operand];
    const void *at = product->scale[operand];
    if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F)
        return ((const float *)at)[i / 128 * outers + outer];
    if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F)
        return ((const float *)at)[outer / 128 * ((k / 128 + 3) / 4 * 4) + i / 128];
    if (mode == 0)
        return 1;
    const int64_t block = mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3 ? 16 : 32, inner = i / block,
                  tiles = (k / block + 3) / 4;
    const int64_t place = (outer / 128 * tiles + inner / 4) * 512 + outer % 32 * 16 + outer % 128 / 32 * 4 + inner % 4;
    const uint8_t code = ((const uint8_t *)at)[place];
    return block == 16 ? element(at, CUDA_R_8F_E4M3, place) : ldexp(1, code - 127);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream)
{
    (void)handle;
    (void)c_layout;
    (void)workspace;
    (void)workspace_bytes;
    const char *failing = getenv("EMULATE_FAIL_WIDTH"); /* products of this many columns cannot be launched */
    if (failing != nullptr && d_layout->rows == atoi(failing))
        return emulate_stuck = getenv("EMULATE_STUCK") != nullptr, CUBLAS_STATUS_EXECUTION_FAILED;
    const float times = *(const float *)alpha, keep = *(const float *)beta;
    if (emulate_defer([=]() {
            cublasLtMatmul(handle, product, &times, a, a_layout, b, b_layout, &keep, c, c_layout, d, d_layout,
                           algorithm, workspace, workspace_bytes, stream);
        }))
        return CUBLAS_STATUS_SUCCESS;
    const int64_t k = product->op[0] == CUBLAS_OP_N ? a_layout->cols : a_layout->rows;
    for (int g = 0; g < d_layout->batch && algorithm->chosen; g++)
        for (int64_t col = 0; col < d_layout->cols; col++)
            for (int64_t row = 0; row < d_layout->rows; row++) {
                double sum = 0;
                for (int64_t i = 0; i < k; i++) {
                    const int64_t at =
                        product->op[0] == CUBLAS_OP_N ? row + i * a_layout->ld : i + row * a_layout->ld;
                    const int64_t bt =
                        product->op[1] == CUBLAS_OP_N ? i + col * b_layout->ld : col + i * b_layout->ld;
                    sum += element(a, a_layout->type, g * a_layout->stride + at) *
                           scale_of(product, 0, row, d_layout->rows, i, k) *
                           element(b, b_layout->type, g * b_layout->stride + bt) *
                           scale_of(product, 1, col, d_layout->cols, i, k);
                }
                const int64_t dt = g * d_layout->stride + row + col * d_layout->ld;
                const double old = *(const float *)beta > 0 ? element(c, d_layout->type, dt) : 0;
                put(d, d_layout->type, dt, *(const float *)alpha * sum + *(const float *)beta * old);
            }
    return CUBLAS_STATUS_SUCCESS;
}
