/* costmodel/ops_moe.h - what the files that push the ops of routed experts share. */
#ifndef ORR_COSTMODEL_OPS_MOE_H
#define ORR_COSTMODEL_OPS_MOE_H

#include "costmodel/ops.h"

bool cost_moe_dropless(const CostShape *shape);
double cost_moe_own_tokens(const CostShape *shape); /* whose routing this rank owns */
double cost_moe_experts_of_rank(const CostShape *shape);
double cost_moe_load(
    const CostShape *shape); /* rows of the busiest rank over the mean; 1 where all are padded */

/* Rows that buffers have room for over rows that come, at least 1. */
double cost_moe_buffer_frac(const CostShape *shape);

/* Rows are weighed by their tokens' ranks when they are back; else experts weigh them before they leave. */
bool cost_moe_weighs_returned(const CostShape *shape);

/* Copies of rows around an exchange, forward into experts' rows (`spreads`) or out of them; what travels beside the
 * rows; one way of the exchange. */
void cost_push_permute(const CostShape *shape, CostOps *ops, const char *name, CostPass pass, bool spreads);
void cost_push_row_counts(const CostShape *shape, CostOps *ops, CostPass pass);
void cost_push_row_exchange(const CostShape *shape, CostOps *ops, const char *name, double row_bytes);

/* What one-hot masks do in place of a permutation; false, and nothing is pushed, with another dispatcher. Tokens that
 * share a mask; slots of all experts for so many. */
bool cost_push_masked(const CostShape *shape, CostOps *ops, CostPass pass, bool spreads);
double cost_masked_tokens(const CostShape *shape);
double cost_mask_slots(const SpecMoe *moe, double tokens);

#endif
