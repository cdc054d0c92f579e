/* costmodel/adapter_internal.h - linear layers that adapters stand beside: shared by adapter.c and ops_adapter.c. */
#ifndef ORR_COSTMODEL_ADAPTER_INTERNAL_H
#define ORR_COSTMODEL_ADAPTER_INTERNAL_H

#include "costmodel/ops.h"

/* A linear layer of a block: the projections that it is made of, whose MLP it belongs to, and what tensor ranks cut. */
typedef enum { COST_MLP_NONE, COST_MLP_DENSE, COST_MLP_SHARED, COST_MLP_EXPERTS } CostMlp;
typedef enum { COST_CUT_OUTPUTS, COST_CUT_INPUTS, COST_CUT_NOTHING } CostCut;
typedef struct CostLinear {
    const char *name;
    SpecTarget targets[COST_MAX_PARTS];
    CostCut cut;
    CostMlp mlp;
} CostLinear;

/* Adapters of one linear layer: how many there are, and the outputs of each, whole. */
typedef struct CostAdapters {
    int count;
    double out[COST_MAX_PARTS], all_out;
} CostAdapters;

/* The linear layer of this name; NULL: adapters know none. */
const CostLinear *cost_linear_named(const char *name);
CostAdapters cost_adapters_of(const Spec *spec, const CostLinear *linear);

#endif
