/* spec/kernel_model.h - fitted parameters of kernels and collectives: the "model" block of accelerator
 * profiles and the "collectives" block of clusters and calibrations.
 *
 * These structs are only numbers; costmodel/ says what they mean as time, calibrate/ fits them.
 */
#ifndef ORR_SPEC_KERNEL_MODEL_H
#define ORR_SPEC_KERNEL_MODEL_H

#include "spec/names.h"

#define SPEC_MODEL_NOTE_SIZE 128

/* What GEMMs of every dtype share: the machine around the tensor cores. Zero `memory_frac`: block absent, the
 * defaults of the field table apply. Symbols: docs/MODEL-kernels.md. */
typedef struct SpecGemmShared {
    double memory_frac; /* DRAM bandwidth that a GEMM streaming its operands reaches, of the data sheet's */
    double overlap_loss_frac; /* where memory and compute take the same time, what both together take more */
    double tile_s;            /* prologue and drain of one tile's main loop */
    double epilogue_s;        /* writing a 256 x 128 tile from one SM; others in proportion */
    double wave_quantum;      /* 1: a partial last wave costs a whole one; 0: it costs its share */
    double split_s;           /* starting the reduction of a split-k product */
    double split_speedup;     /* bandwidth of that reduction over DRAM's: it stays in the L2 cache */
    double latency_s;         /* first instruction to last byte of an empty kernel */
    double static_frac;       /* share of the power limit that does not depend on the clock */
} SpecGemmShared;

/* One dtype's GEMM model. Zero `peak_frac`: block absent. */
typedef struct SpecGemmModel {
    double peak_frac; /* of the dense peak, in the main loop of an endlessly large tile, before throttling */
    double tile_half; /* operand reuse tm tn / (tm + tn) at which half of that is reached */
    double backward_input_frac;  /* speed of layout NN over TN */
    double backward_weight_frac; /* speed of layout NT over TN */
    double grouped_frac;         /* speed of grouped (expert) products over dense ones */
    double group_s; /* every group of a grouped product adds: experts' kernels start one by one */
    double
        power_frac; /* power of the dense peak at the boost clock over what the limit leaves above static_frac */
    double throttle_s; /* kernels much shorter than this run at the boost clock */
    double fit_rows, fit_median_frac, fit_p90_frac; /* fit error; 0 rows: derived */
} SpecGemmModel;

/* One attention kernel's model. Zero `peak_frac`: block absent. */
typedef struct SpecAttentionModel {
    double peak_frac; /* of the dense peak, forward, head dimension without end */
    double half_dim;  /* head dimension at which the softmax takes as long as the products, forward */
    double wide_frac; /* speed of head dimensions above 128, whose tiles are smaller, forward */
    double backward_peak_frac, backward_half_dim, backward_wide_frac;
    double backward_fp8_half_dim;         /* 0: backward_half_dim */
    double q_tile_tokens, kv_tile_tokens; /* the kernel's block */
    double wave_quantum;                  /* as in SpecGemmShared */
    double tile_s, backward_tile_s;       /* prologue and epilogue of one block of queries */
    double latency_s, backward_latency_s; /* empty kernels */
    double power_frac;                    /* as in SpecGemmModel */
    double fp8_frac;                      /* efficiency over the fp8 peak against that over the 16-bit peak */
    double backward_fp8_frac;             /* the same of the backward; 0: as the forward */
    double mxfp8_frac, backward_mxfp8_frac; /* speed with a scale for 32 elements over one a tensor */
    double early_frac, backward_early_frac; /* speed of the library before its kernels of this block */
    double fit_rows, fit_median_frac, fit_p90_frac;
} SpecAttentionModel;

/* Fractions of the data sheet's memory bandwidth, per kind of kernel. Zero `elementwise_frac`: block absent. */
typedef struct SpecMemoryBoundModel {
    double elementwise_frac, norm_frac, softmax_frac, cross_entropy_frac, permute_frac, cast_frac,
        optimizer_frac;
    double addressed_frac; /* of the framework's sm_elements_per_s: what the clock makes of it */
    double latency_s;      /* of an empty kernel */
    double row_block_s;    /* a block of one row of PyTorch's norms, beside its bytes */
    double fit_rows, fit_median_frac, fit_p90_frac;
} SpecMemoryBoundModel;

/* NCCL's time on one kind of GPU and network: docs/MODEL-collectives.md has the formulas. A "frac" is a bus rate
 * over the scale-up (inside) or NIC (across) rate of one GPU, one way. `offset_s` 0: the inside half is absent;
 * `nic_frac` 0: the across half is. A cluster's halves stand before its accelerator's. */
typedef struct SpecCollectiveModel {
    double fitted; /* 0: block absent */
    /* Inside the scale-up domain. Channels and their rates are the graph that NCCL's choice assumes. */
    double ring_channels, ring_channel_bytes_per_s, nvls_channels, nvls_channel_bytes_per_s, nvls_min_ranks;
    double offset_s, ll_hop_s, ll_spread_s, ll128_hop_s, simple_hop_s, ring_fill_s;
    double nvls_latency_s, nvls_fill_s;
    double alltoall_ll_s, alltoall_simple_s, alltoall_peer_s, alltoall_fill_s;
    double ll_frac, ll128_frac, ring_frac, nvls_frac, alltoall_frac, copy_frac, alltoall_copy_frac;
    double share_exponent;
    double ring_sm_frac, nvls_sm_frac, alltoall_sm_frac; /* taken from compute beside it */
    /* Across nodes. */
    double nic_frac, tree_frac, nvls_tree_frac, net_latency_s, net_simple_s, net_ring_hop_s;
    double net_congestion_frac, net_sm_frac;
    double net_hop_congestion_frac, net_rendezvous_s, net_eager_bytes, net_stripe_s, net_stripe_bytes,
        net_channels;
    double net_told_latency_s, net_told_bytes_per_s, net_fill_s, net_simple_only, amd_cpu, sharp;
    SpecTuner tuner;
} SpecCollectiveModel;

typedef struct SpecKernelModel {
    SpecGemmShared gemm_shared;
    SpecGemmModel gemm[SPEC_DTYPE_COUNT];
    SpecAttentionModel attention[SPEC_ATTENTION_COUNT];
    SpecMemoryBoundModel memory_bound;
    SpecCollectiveModel collectives;
} SpecKernelModel;

/* The defaults of the field tables, for an accelerator without any fitted block (spec/fields_kernel.c). */
extern const SpecGemmShared spec_gemm_shared_default;
extern const SpecGemmModel spec_gemm_model_default;
extern const SpecAttentionModel spec_attention_model_default;
extern const SpecMemoryBoundModel spec_memory_bound_model_default;
/* Switched GPUs in general (spec/fields_collective.c). */
extern const SpecCollectiveModel spec_collective_model_default;

#endif
