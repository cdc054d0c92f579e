/* costmodel/gemm.h - seconds of one matrix multiplication on one accelerator.
 *
 * A physical model: output tiles, waves of tiles over the SMs, the memory roof, split-k, launch, and the
 * power cap that lowers the clock of long dense kernels; its few parameters are fitted per accelerator
 * and dtype (SpecGemmModel) to measured tables by calibrate/. docs/MODEL.md derives it.
 */
#ifndef ORR_COSTMODEL_GEMM_H
#define ORR_COSTMODEL_GEMM_H

#include "spec/spec.h"

/* Which operand is transposed, as the three passes of a linear layer call it. */
typedef enum {
    COST_LAYOUT_FORWARD,         /* TN: Y = X W^T */
    COST_LAYOUT_BACKWARD_INPUT,  /* NN: dX = dY W */
    COST_LAYOUT_BACKWARD_WEIGHT, /* NT: dW = dY^T X */
} CostLayout;

typedef struct CostGemm {
    double m, n, k;  /* [m,k] x [k,n] */
    double groups;   /* independent multiplications of this size in one launch: batched or grouped; 1 */
    SpecDtype dtype; /* of the operands */
    CostLayout layout;
    bool grouped;         /* `groups` are experts, a kernel each; else one strided batch */
    bool accumulate_fp32; /* reads and writes an fp32 output (gradient accumulation) */
    bool accumulate;      /* adds to an output of 16 bits: reads it too */
    int align;    /* 1, 2, 4: elements that divide the rows of an operand (Volta: any size); 0: 16 bytes do */
    bool rowwise; /* on PyTorch's kernel for row-wise scales: its two tiles, sums never split */
    bool blockwise;       /* 8 bits with a scale for each 128 of a sum, Hopper: DeepGEMM's kernel */
    int free_sms;         /* that its kernel leaves to others */
    double fused_bytes;   /* of what is fused behind it: read and written beyond its own output */
    double row_deviation; /* standard deviation of a group's rows, where they are drawn: of m, of k for weight
                           * gradients; 0: every group has the same */
} CostGemm;

/* Seconds on the GPU, launch gap excluded. Falls back to the generation's parameters when the
 * accelerator has no fitted block for the dtype. */
double cost_gemm_s(const SpecAccelerator *accelerator, const CostGemm *gemm);

#endif
