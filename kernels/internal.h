/* kernels/internal.h - what the files of kernels/ share on the host. */
#ifndef ORR_KERNELS_INTERNAL_H
#define ORR_KERNELS_INTERNAL_H

#include <math.h>

#include "kernels/kernels.h"

/* Remembers "what: why" for krn_context_message; returns `status`. */
KrnStatus krn_fail(KrnContext *context, KrnStatus status, const char *what, const char *why);

/* The cuBLASLt handle, its workspace and the plans found so far; see gemm.cu. */
typedef struct KrnGemmState KrnGemmState;
KrnGemmState *krn_gemm_state(KrnContext *context);
KrnStatus krn_gemm_state_new(KrnContext *context, KrnGemmState **ret_state);
void krn_gemm_state_free(KrnGemmState *state);

/* The value as the type stores it. */
float krn_rounded(KrnType type, float value);

/* A counter turned into 32 random bits; the same on host and device. Source: [SplitMix64]. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint32_t
    krn_hash(uint64_t counter, uint64_t seed)
{
    uint64_t x = counter + seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)((x ^ (x >> 31)) >> 32);
}

static inline int krn_set(KrnBuffer *buffer, KrnRole role, KrnType type, int64_t count, float low, float high)
{
    *buffer = KrnBuffer{type, count, role, low, high};
    return 1;
}

extern const KrnKernel krn_gemm, krn_batched_gemm, krn_grouped_gemm, krn_grouped_gemm_streams,
    krn_grouped_gemm_one_call;
extern const KrnKernel krn_flash_forward, krn_flash_backward, krn_attention_unfused;
extern const KrnKernel krn_cudnn_forward, krn_cudnn_backward, krn_cudnn_forward_fp8, krn_cudnn_backward_fp8;
extern const KrnKernel krn_layer_norm, krn_layer_norm_backward, krn_rms_norm, krn_rms_norm_backward;
extern const KrnKernel krn_softmax, krn_softmax_backward;
extern const KrnKernel krn_gelu, krn_gelu_backward, krn_swiglu, krn_swiglu_backward;
extern const KrnKernel krn_dropout, krn_residual_add, krn_copy, krn_triad;
extern const KrnKernel krn_embedding, krn_embedding_backward, krn_cross_entropy, krn_permute;
extern const KrnKernel krn_router;
extern const KrnKernel krn_cast_fp8, krn_cast_bf16, krn_rope, krn_grad_norm;
extern const KrnKernel krn_adam_fp32, krn_adam_mixed;
extern const KrnKernel krn_te_rms_norm, krn_te_rms_norm_backward, krn_te_layer_norm,
    krn_te_layer_norm_backward;
extern const KrnKernel krn_te_swiglu, krn_te_swiglu_backward;
extern const KrnKernel krn_te_cast_fp8, krn_te_cast_fp8_both, krn_te_cast_mxfp8;
extern const KrnKernel krn_transformer_layer;

#endif
