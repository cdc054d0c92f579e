/* costmodel/flops.h - floating-point operations of one step, a fold over the graph of each kind of layer, and the ratios that
 * the field's sources derive from them. */
#ifndef ORR_COSTMODEL_FLOPS_H
#define ORR_COSTMODEL_FLOPS_H

#include "spec/spec.h"

/* FLOPs of one training step of the whole job (2 a multiply-add). */
typedef struct CostFlops {
    double model;      /* causal attention halved, LM head in, input embedding out, no recompute */
    double model_full; /* the same with full (not halved) attention */
    double recompute;  /* of the ops that recomputation runs again, causal attention halved */
    double hardware;   /* model + recompute */
} CostFlops;

/* `stage_layers` of each of `stages` of one copy of the model: recomputation may pick layers by their place in a stage. NULL,
 * 0: one stage. What a fused kernel computes twice by itself (scores in its backward) is its own work and counted once. */
CostFlops cost_flops(const Spec *spec, const int *stage_layers, int stages);

/* What a source would print as FLOPs of the step. */
typedef enum {
    COST_CONVENTION_ORRERY, /* `model` above */
    COST_CONVENTION_SC21,   /* 96 B s l h^2 (1 + s/6h + V/16lh): full recompute counted [Narayanan2021] */
    COST_CONVENTION_KORTHIKANTI, /* 72 B L s h^2 (1 + s/6h + V/12hL) [Korthikanti2022] */
    COST_CONVENTION_MEGATRON,    /* current Megatron-LM: causal half, GQA/MLA/MoE aware */
    COST_CONVENTION_PALM,        /* 6N + 12 L heads d s a token [Chowdhery2022] */
    COST_CONVENTION_TORCHTITAN,  /* 6 (N - N_embed) + 6 L a (d_qk + d_v) s a token */
    COST_CONVENTION_MOSAIC,      /* 3 (2 N s + 4 L h s^2) a sequence */
    COST_CONVENTION_6ND,         /* 6 N a token */
    COST_CONVENTION_COUNT
} CostConvention;

const char *cost_convention_name(CostConvention convention);
double cost_convention_flops(const Spec *spec, CostConvention convention);

typedef struct CostMfuByConvention {
    double mfu[COST_CONVENTION_COUNT];
} CostMfuByConvention;

/* Fractions of the dense peak of the training precision for a step of `step_s`. */
CostMfuByConvention cost_mfu_by_convention(const Spec *spec, double step_s);

/* Dense peak FLOP/s of one GPU in the training precision. */
double cost_peak_flops_per_s(const Spec *spec);

#endif
