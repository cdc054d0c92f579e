/* spec/list_stages.h - how a list of layers is dealt to the stages of a pipeline. */
#ifndef ORR_SPEC_LIST_STAGES_H
#define ORR_SPEC_LIST_STAGES_H

#include "spec/spec.h"

/* Layers of each of `stages` stages, in model order, at least one in each: consecutive ones, so that the most expensive stage
 * costs the least. The cost of a layer is its measured seconds where any layer has them, or else its FLOPs.
 * Needs stages <= layers.   Source: [Huang2019] section 2.2, whose partition goes by estimated cost */
void spec_deal_list(const SpecModel *model, int stages, int *counts);

#endif
