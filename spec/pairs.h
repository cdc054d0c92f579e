/* spec/pairs.h - sequences that stand together in every micro-batch. */
#ifndef ORR_SPEC_PAIRS_H
#define ORR_SPEC_PAIRS_H

#include "spec/adapter.h"

/* Two in tasks on pairs, whose halves are compared; else one. A micro-batch and the global batch are multiples of it. */
static inline int spec_sequences_together(SpecTask task)
{
    return task == SPEC_TASK_DPO || task == SPEC_TASK_ORPO || task == SPEC_TASK_REWARD ? 2 : 1;
}

#endif
