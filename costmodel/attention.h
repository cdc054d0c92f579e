/* costmodel/attention.h - seconds of the attention core (scores, softmax, values) by kernel generation. */
#ifndef ORR_COSTMODEL_ATTENTION_H
#define ORR_COSTMODEL_ATTENTION_H

#include "spec/spec.h"

typedef struct CostAttention {
    SpecAttention kernel;       /* flash2, flash3, cudnn; unfused goes through GEMMs and memory-bound ops */
    double batch;               /* sequences */
    double q_tokens, kv_tokens; /* a sequence; differ under context parallelism */
    double heads, kv_heads;     /* on this rank */
    double qk_head_dim, v_head_dim;
    bool causal;          /* the half above the diagonal is skipped, except in diagonal blocks */
    double window_tokens; /* 0: none */
    bool backward;
    SpecDtype dtype;
    bool block_scaled; /* 8 bits with a scale for 32 elements, not one a tensor */
    int free_sms;      /* that others hold */
} CostAttention;

/* FLOPs the kernel executes: 2 matmuls forward, 5 backward, masked blocks skipped. */
double cost_attention_executed_flops(const CostAttention *attention);

/* Bytes that it moves with each operand once: queries, keys and values read, the output written; backward the output and its
 * gradient read besides, and the gradients of all three written, that of the queries through a sum in fp32. */
double cost_attention_read_bytes(const CostAttention *attention);
double cost_attention_written_bytes(const CostAttention *attention);

/* Seconds on the GPU, launch gap excluded. */
double cost_attention_s(const SpecAccelerator *accelerator, const CostAttention *attention);

/* Speed of the same on cuDNN before 9.17, over the block's; 1 for other kernels. */
double cost_attention_early_frac(const SpecAccelerator *accelerator, const CostAttention *attention);

#endif
